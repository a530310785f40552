//! Cursors: pages that follow each other, and cursors that nobody gave.

use proptest::prelude::*;

use super::{
    random::Random,
    searches::{answer, ids, request, term},
    table::{BM25, moment, row, schema, single, view},
};
use crate::{Error, RequestPart, SearchRequest, SortBy, SortKey, read::search::search};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn pages_by_cursor_equal_one_long_page(seed: u64) {
        let mut random = Random::new(seed);
        let schema = schema(random.chance(50));
        let rows = random.rows(90);
        let segments = 1 + random.below(6);
        let view = view(schema, random.spread(&rows, segments));
        for _ in 0..8 {
            let whole = SearchRequest { limit: 1000, offset: 0, ..request(&mut random, &rows) };
            let expected = answer(&view, &whole);
            let mut page = SearchRequest { limit: 1 + random.below(20), ..whole.clone() };
            let mut collected = Vec::new();
            for _ in 0..=rows.len() {
                let reply = answer(&view, &page);
                prop_assert_eq!(reply.total, expected.total);
                collected.extend(ids(&reply));
                page.after = reply.cursor;
                if reply.hits.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(collected, ids(&expected), "{:?}", whole);
        }
    }

    #[test]
    fn hostile_cursors_are_refused(text: String, flip: prop::sample::Index, byte: u8) {
        let view = single(schema(false), (0..5).map(|id| row(id, "rain", "")).collect());
        let mut request = term("rain");
        request.sort = vec![SortKey { by: SortBy::Column("category".into()), descending: true }];
        request.limit = 2;
        let mut cursor = answer(&view, &request).cursor.unwrap().into_bytes();
        let at = flip.index(cursor.len());
        let harmless = cursor[at] == byte || !byte.is_ascii();
        cursor[at] = if byte.is_ascii() { byte } else { cursor[at] };
        for (cursor, refused) in [(text, true), (String::from_utf8(cursor).unwrap(), !harmless)] {
            request.after = Some(cursor);
            let reply = search(&view, &request, BM25, moment());
            prop_assert_eq!(is_sort_error(&reply), refused);
        }
    }
}

fn is_sort_error<T>(reply: &Result<T, Error>) -> bool {
    matches!(reply, Err(Error::Request { part: RequestPart::Sort, .. }))
}

#[test]
fn a_cursor_of_another_order_or_table_is_refused() {
    let rows = (0..5).map(|id| row(id, "rain", "")).collect::<Vec<_>>();
    let here = single(schema(false), rows.clone());
    let mut elsewhere = schema(false);
    elsewhere.name = "others".to_owned();
    let elsewhere = single(elsewhere, rows);
    let mut request = term("rain");
    request.limit = 2;
    request.after = answer(&here, &request).cursor;
    assert_eq!(ids(&answer(&here, &request)), [2, 1]);
    assert!(is_sort_error(&search(&elsewhere, &request, BM25, moment())));
    request.sort = vec![SortKey { by: SortBy::Key, descending: false }];
    assert!(is_sort_error(&search(&here, &request, BM25, moment())));
}
