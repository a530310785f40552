//! Pages and facets of a table whose rows lie in several databases, compared with those of one table; what a part may
//! not answer; first rows along an index of a part.

use proptest::prelude::*;

use super::{
    gathered::{ALL, Fault, KEY, PART, Spread, WHOLE, apply, asked, failure, halves, rows},
    random::Random,
    table::row,
};
use crate::{
    BestRows, Change, FacetRequest, Hit, IndexColumn, IndexDef, Reader, ScanRequest, Schema,
    SearchRequest, Selection, SortBy, SortKey, TextQuery, Value,
};

/// A page and a facet of all parts are those of one table. Returns how many rows and values they have.
fn compare_pages(reader: &Reader, random: &mut Random) -> usize {
    let asked = asked(random);
    let is_by_keywords = matches!(asked.text, None | Some(TextQuery::Keywords(_)));
    let selection = |table: &str| Selection {
        table: table.to_owned(),
        text: asked.text.clone(),
        filter: asked.filter.clone(),
        ..Selection::default()
    };
    let names = ["id", "number", "price", "category", "title"];
    let sort: Vec<SortKey> = random.order();
    let is_scored = sort.iter().any(|key| key.by == SortBy::Score);
    let page = SearchRequest {
        sort,
        limit: random.below(30),
        offset: random.below(3) * random.below(20),
        fields: names.iter().filter(|_| random.chance(50)).map(|it| (*it).to_owned()).collect(),
        ..SearchRequest::default()
    };
    let of = |table: &str| SearchRequest { selection: selection(table), ..page.clone() };
    let mut found = 0;
    match (reader.best_page(&of(ALL)), reader.search(&of(WHOLE))) {
        (Ok(Some((hits, report))), Ok(whole)) => {
            let shown = |hits: &[Hit]| -> Vec<(Vec<Value>, Option<f64>)> {
                hits.iter().map(|hit| (hit.fields.clone(), hit.score)).collect()
            };
            assert_eq!(shown(&hits), shown(&whole.hits), "{page:?} {:?}", selection(ALL));
            assert_eq!(report.warning, whole.report.warning, "{page:?}");
            found += hits.len();
        }
        (Ok(None), _) => assert!(is_scored && asked.text.is_none() || !is_by_keywords),
        (given, whole) => assert_eq!(given.is_err(), whole.is_err(), "{page:?} {given:?}"),
    }
    let column = random.one(&["number", "price", "category"]).to_owned();
    let (limit, offset) = (random.below(12), random.below(3));
    let of = |table: &str| FacetRequest {
        selection: selection(table),
        column: column.clone(),
        limit,
        offset,
        values_only: false,
    };
    match (reader.facet_few(&of(ALL), 30), reader.facet(&of(WHOLE))) {
        (Ok(given), Ok(whole)) => {
            let given = given.unwrap();
            let (distinct, matched) = (whole.distinct, whole.matched);
            assert_eq!((given.distinct, given.matched), (distinct, matched), "{column}");
            assert_eq!(given.values, whole.values, "{column} {:?}", selection(ALL));
            found += given.values.len();
        }
        (given, whole) => assert_eq!(given.is_err(), whole.is_err(), "{column} {given:?}"),
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn pages_and_facets_of_several_servers_are_those_of_one_table(seed: u64) {
        let mut random = Random::new(seed);
        let mut spread = Spread::new(&mut random);
        let mut found = 0;
        for _ in 0..3 {
            spread.change(&mut random);
            let reader = spread.reader(Fault::None);
            found += (0..40).map(|_| compare_pages(&reader, &mut random)).sum::<usize>();
        }
        prop_assert!(found > 0, "nothing was found");
    }
}

#[test]
fn a_facet_of_parts_is_checked_and_has_few_values() {
    let spread = halves();
    let facet = |fault, column: &str| {
        let selection = Selection { table: ALL.to_owned(), ..Selection::default() };
        let column = column.to_owned();
        let request = FacetRequest { selection, column, limit: 9, ..FacetRequest::default() };
        spread.reader(fault).facet_few(&request, 30)
    };
    let found = facet(Fault::None, "number").unwrap().unwrap();
    assert_eq!((found.matched, found.values[0].1), (40, 40));
    // 40 keys are more than are counted of all parts together, and none of the parts has as many.
    assert!(facet(Fault::None, "id").unwrap().is_none());
    for (fault, message) in [
        (Fault::Silent, "is silent"),
        (Fault::Counts, "values that it cannot have"),
        (Fault::Order, "values that it cannot have"),
        (Fault::Columns, "does not fit its column"),
    ] {
        let error = failure(facet(fault, "number"));
        assert!(error.contains(message) && error.contains("server "), "{fault:?}: {error}");
    }
}

#[test]
fn a_page_with_too_many_bytes_is_not_held() {
    let spread = halves();
    let long = |id| row(id, &"often ".repeat(2_000), "often");
    apply(&spread.servers[0], PART, (0..25).map(|id| Change::Put(long(id))).collect());
    let page = |limit, fields: &[&str]| {
        let selection = Selection { table: ALL.to_owned(), ..Selection::default() };
        let fields = fields.iter().map(|it| (*it).to_owned()).collect();
        let request = SearchRequest { selection, limit, fields, ..SearchRequest::default() };
        spread.reader(Fault::None).best_page(&request).unwrap().map(|(hits, _)| hits.len())
    };
    assert_eq!(page(40, &["id"]), Some(40));
    assert_eq!(page(1, &["title"]), Some(1));
    assert_eq!(page(40, &["title"]), None);
}

#[test]
fn parts_read_their_first_rows_along_an_index() {
    let spread = halves();
    let server = &spread.servers[0];
    let number = IndexColumn { column: 1, descending: false, order: None, prefix: None };
    let schema = server.reader().schema(PART).unwrap();
    let schema =
        Schema { indexes: vec![IndexDef { columns: vec![number] }], ..schema.as_ref().clone() };
    server.drop_table(PART).unwrap();
    server.create_table(schema).unwrap();
    let numbered = |id: i64| {
        let mut row = row(id, "often", "often a");
        row[1] = Value::Int(1_000 - id);
        Change::Put(row)
    };
    apply(server, PART, (0..1_000).map(numbered).collect());
    let sort = vec![SortKey { by: SortBy::Column("number".to_owned()), descending: false }, KEY];
    let best = Some(BestRows { sort, score: 0, rows: 5 });
    let request = ScanRequest { columns: vec![0], best, batch_rows: 8, ..ScanRequest::default() };
    let given = rows(&server.reader(), PART, &request).unwrap();
    let ids: Vec<Value> = given.into_iter().flatten().collect();
    assert_eq!(ids, (995..1_000).map(Value::Int).collect::<Vec<_>>());
    let usage = server.reader().index_usage(PART).unwrap();
    assert_eq!(usage.secondary[0].orders, 1, "{usage:?}");
}
