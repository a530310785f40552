//! SEARCH and COUNT against the scan.

use proptest::prelude::*;

use super::{
    oracle::{Oracle, id},
    random::Random,
    table::{BM25, BODY, ID, POSITION, TITLE, moment, row, schema, single, view},
};
use crate::{
    Hit, Row, Schema, SearchReply, SearchRequest, Selection, SortBy, SortKey, TextQuery, Value,
    read::search::{count, search},
    snapshot::TableView,
};

pub fn ids(reply: &SearchReply) -> Vec<i64> {
    let id = |hit: &Hit| match hit.key[..] {
        [Value::Int(id)] => id,
        _ => panic!("keys are single integers"),
    };
    reply.hits.iter().map(id).collect()
}

pub fn term(text: &str) -> SearchRequest {
    let text = Some(TextQuery::Term(text.to_owned()));
    let selection = Selection { table: "articles".to_owned(), text, ..Selection::default() };
    SearchRequest { selection, limit: 100, ..SearchRequest::default() }
}

pub fn answer(view: &TableView, request: &SearchRequest) -> SearchReply {
    search(view, request, BM25, moment()).unwrap()
}

/// A random request; all the same for the same generator.
pub fn request(random: &mut Random, rows: &[crate::Row]) -> SearchRequest {
    let selection = Selection {
        table: "articles".to_owned(),
        text: random.chance(85).then(|| random.query(rows, 3)),
        filter: random.chance(50).then(|| random.filter(3)),
        fuzzy: None,
        ..Selection::default()
    };
    let limit = random.one(&[0, 1, 5, 20, 1000]);
    let offset = random.one(&[0, 0, 0, 3, 17]);
    SearchRequest { selection, sort: random.order(), limit, offset, ..SearchRequest::default() }
}

fn check(schema: &Schema, rows: &[crate::Row], view: &TableView, request: &SearchRequest) {
    let oracle = Oracle::new(schema, rows);
    let text = request.selection.text.as_ref();
    let mut expected = oracle.select(text, request.selection.filter.as_ref());
    oracle.sort(&mut expected, &request.sort, text);
    let reply = answer(view, request);
    assert_eq!(reply.total, expected.len() as u64, "total of {request:?}");
    let page = expected.iter().skip(request.offset).take(request.limit);
    let page: Vec<i64> = page.map(|row| id(row)).collect();
    assert_eq!(ids(&reply), page, "page of {request:?}");
    let counted = count(view, &request.selection, moment()).unwrap();
    assert_eq!(counted.count, reply.total);
    assert_eq!(reply.report.returned, page.len() as u64);
    assert_eq!(reply.report.after_filters, reply.total);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_search_equals_a_scan(seed: u64) {
        let mut random = Random::new(seed);
        let schema = schema(random.chance(50));
        let count = random.one(&[0, 3, 40, 150]);
        let rows = random.rows(count);
        let segments = 1 + random.below(7);
        let view = view(schema.clone(), random.spread(&rows, segments));
        for _ in 0..25 {
            check(&schema, &rows, &view, &request(&mut random, &rows));
        }
    }
}

#[test]
fn rows_come_newest_first_and_whole() {
    let rows = vec![row(1, "One", "rain"), row(2, "Two", "Rain!"), row(3, "Three", "sun")];
    let view = single(schema(false), rows);
    let mut request = term("RAIN");
    request.fields = vec!["title".to_owned(), "*".to_owned()];
    let reply = answer(&view, &request);
    assert_eq!((reply.total, ids(&reply)), (2, vec![2, 1]));
    assert_eq!(reply.field_names, ["title", "id", "number", "price", "category", "title", "body"]);
    assert_eq!(reply.hits[0].fields[0], Value::Text("Two".into()));
    assert_eq!(reply.hits[1].fields[6], Value::Text("rain".into()));
    assert_eq!(reply.hits[0].score, None);
    assert_eq!(reply.report.position, POSITION);
}

#[test]
fn synonyms_of_a_word_are_found() {
    let mut schema = schema(false);
    schema.synonyms = vec![vec!["Car".to_owned(), "automobile".to_owned()]];
    let rows = ["a car", "an automobile", "a bike", "cars"];
    let rows = rows.iter().zip(1..).map(|(text, id)| row(id, text, "")).collect();
    let view = single(schema, rows);
    assert_eq!(ids(&answer(&view, &term("AUTOMOBILE"))), [4, 2, 1]);
    assert_eq!(ids(&answer(&view, &term("cars"))), [4]);
}

#[test]
fn a_pattern_that_ends_in_a_space_is_exact() {
    let rows = vec![row(1, "red wine", ""), row(2, "red", "wine"), row(3, "red  wine", "")];
    let view = single(schema(false), rows.clone());
    assert_eq!(ids(&answer(&view, &term("red "))), [3, 1]);
    assert_eq!(ids(&answer(&view, &term(" wine"))), [3, 1]);
    let view = single(super::table::schema(true), rows);
    assert_eq!(ids(&answer(&view, &term("red wine"))), [2, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn the_rows_of_long_pages_are_those_of_the_table(seed: u64) {
        let mut random = Random::new(seed);
        let rows = random.rows(400);
        let segments = 1 + random.below(3);
        let view = view(schema(false), random.spread(&rows, segments));
        let oracle = Oracle::new(&view.schema, &rows);
        for _ in 0..6 {
            // Many rows or few between those of the page; a column twice.
            let filter = random.chance(70).then(|| random.filter(1));
            let descending = random.chance(30);
            let mut expected = oracle.select(None, filter.as_ref());
            expected.sort_by_key(|row| id(row));
            if descending {
                expected.reverse();
            }
            let limit = random.one(&[70, 200, 400]);
            let selection =
                Selection { table: "articles".to_owned(), filter, ..Selection::default() };
            let request = SearchRequest {
                selection,
                sort: vec![SortKey { by: SortBy::Key, descending }],
                fields: ["body", "id", "title", "body"].map(str::to_owned).to_vec(),
                limit,
                ..SearchRequest::default()
            };
            let columns = [BODY, ID, TITLE, BODY];
            let expected = expected.iter().take(limit);
            let expected: Vec<Row> =
                expected.map(|row| columns.map(|at| row[at].clone()).to_vec()).collect();
            let found: Vec<Row> =
                answer(&view, &request).hits.into_iter().map(|hit| hit.fields).collect();
            prop_assert_eq!(found, expected, "{:?}", request);
        }
    }
}
