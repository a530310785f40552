//! First pages by a text condition against a scan, and how few texts they read.

use std::sync::Arc;

use proptest::prelude::*;

use super::{
    oracle::{Oracle, id},
    random::Random,
    searches,
    table::{ID, TITLE, row, schema, single, view},
};
use crate::{
    ColumnLetters, Comparison, Filter, LetterClasses, Literal, Piece, PieceMatch, SearchRequest,
    Selection, SortBy, SortKey, TextQuery, Value,
    interrupt::InterruptCheck,
    read::search::{first, first_access, planned_count},
    snapshot::TableView,
};

fn page(view: &TableView, request: &SearchRequest) -> Option<Vec<i64>> {
    let hits = first(view, request, &InterruptCheck::NEVER).unwrap()?;
    let id = |value: &Value| if let Value::Int(id) = value { *id } else { panic!("{value}") };
    Some(hits.iter().map(|hit| id(&hit.fields[0])).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn first_pages_equal_those_of_a_scan(seed: u64) {
        let mut random = Random::new(seed);
        let schema = schema(random.chance(50));
        let count = random.one(&[0, 3, 40, 400]);
        let rows = random.rows(count);
        let segments = 1 + random.below(5);
        let view = view(schema.clone(), random.spread(&rows, segments));
        let oracle = Oracle::new(&schema, &rows);
        for _ in 0..40 {
            let mut request = searches::request(&mut random, &rows);
            request.fields = vec!["id".to_owned()];
            let Some(page) = page(&view, &request) else { continue };
            let text = request.selection.text.as_ref();
            let mut expected = oracle.select(text, request.selection.filter.as_ref());
            oracle.sort(&mut expected, &request.sort, text);
            let expected = expected.iter().skip(request.offset).take(request.limit);
            let expected: Vec<i64> = expected.map(|row| self::id(row)).collect();
            prop_assert_eq!(page, expected, "page of {:?}", request);
            let (planned, is_exact) = planned_count(
                &view,
                &request.selection,
                super::table::moment(),
            ).unwrap();
            let total = oracle.select(text, request.selection.filter.as_ref()).len() as u64;
            prop_assert!(planned >= total && (planned == total || !is_exact), "{:?}", request);
        }
    }
}

/// Letters that equal only themselves.
#[derive(Debug)]
struct Exact;

impl LetterClasses for Exact {
    fn are_equal(&self, a: char, b: char) -> bool {
        a == b
    }

    fn equals(&self, letter: char, out: &mut Vec<char>) {
        out.push(letter);
    }
}

fn of_letters(text: &str, is_tested_again: bool, by: &str, descending: bool) -> SearchRequest {
    let piece = Piece {
        texts: vec![4],
        text: text.to_owned(),
        matching: PieceMatch::Substring,
        letters: Some(ColumnLetters { column: TITLE, classes: Arc::new(Exact), is_tested_again }),
    };
    let selection = Selection {
        table: "articles".to_owned(),
        text: Some(TextQuery::Piece(piece)),
        ..Selection::default()
    };
    let sort = vec![SortKey { by: SortBy::Column(by.to_owned()), descending }];
    SearchRequest { selection, sort, limit: 5, fields: vec!["id".to_owned()], ..Default::default() }
}

/// A thousand rows, of which every fourth has `red wine`, every fourth `Red wine` and every other one `redo`.
fn wines() -> TableView {
    let titles = ["a red wine", "redo", "a Red wine", "redo"];
    let rows = (0..1_000).map(|id| {
        let mut row = row(id, titles[id as usize % 4], "");
        row[super::table::NUMBER] = Value::Int(1_000 - id);
        row
    });
    let view = single(schema(true), rows.collect());
    assert_eq!(view.schema.columns[ID].name, "id");
    view
}

#[test]
fn no_more_texts_are_read_than_a_page_needs() {
    let view = wines();
    let examined = |request: &SearchRequest| {
        first_access(&view, request, &InterruptCheck::NEVER).unwrap().unwrap().examined
    };
    let by_key = of_letters("red ", false, "id", false);
    assert_eq!(page(&view, &by_key).unwrap(), [0, 4, 8, 12, 16]);
    assert!(examined(&by_key) <= 20, "{}", examined(&by_key));
    let backwards = of_letters("red ", false, "id", true);
    assert_eq!(page(&view, &backwards).unwrap(), [996, 992, 988, 984, 980]);
    assert!(examined(&backwards) <= 20, "{}", examined(&backwards));
    let by_number = of_letters("red ", false, "number", false);
    assert_eq!(page(&view, &by_number).unwrap(), [996, 992, 988, 984, 980]);
    assert!(examined(&by_number) <= 20, "{}", examined(&by_number));
    let mut behind = of_letters("Red ", false, "id", false);
    behind.offset = 240;
    assert_eq!(page(&view, &behind).unwrap(), [962, 966, 970, 974, 978]);
    // A condition on columns leaves few rows before texts are read.
    let mut few = of_letters("red ", false, "id", false);
    few.selection.filter = Some(Filter::Compare {
        column: "number".to_owned(),
        comparison: Comparison::LessOrEqual,
        literal: Literal::Value(Value::Int(8)),
    });
    assert_eq!(page(&view, &few).unwrap(), [992, 996]);
    assert!(examined(&few) <= 8, "{}", examined(&few));
}

#[test]
fn no_text_is_read_where_the_caller_tests_again() {
    let view = wines();
    let planned = |request: &SearchRequest| {
        planned_count(&view, &request.selection, super::table::moment()).unwrap()
    };
    let again = of_letters("red ", true, "id", false);
    assert_eq!(page(&view, &again).unwrap(), [0, 2, 4, 6, 8]);
    assert_eq!(planned(&again), (500, true));
    let once = of_letters("red ", false, "id", false);
    assert_eq!(planned(&once), (500, false));
}
