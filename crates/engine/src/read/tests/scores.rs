//! Scores: by definition, and the same however rows lie.

use proptest::prelude::*;

use super::{
    oracle::{Oracle, id},
    random::Random,
    searches::{answer, ids, term},
    table::{row, schema, single, view},
};
use crate::{SearchReply, SearchRequest, SortBy, SortKey, TextQuery};

fn bits(reply: &SearchReply) -> Vec<u64> {
    reply.hits.iter().map(|hit| hit.score.unwrap().to_bits()).collect()
}

fn by_score(mut request: SearchRequest) -> SearchRequest {
    request.sort = vec![SortKey { by: SortBy::Score, descending: true }];
    request
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn scores_do_not_depend_on_segments(seed: u64) {
        let mut random = Random::new(seed);
        let schema = schema(random.chance(50));
        let rows = random.rows(120);
        let one = single(schema.clone(), rows.clone());
        let seven = view(schema.clone(), random.spread(&rows, 7));
        let oracle = Oracle::new(&schema, &rows);
        for _ in 0..10 {
            let mut request = by_score(term(""));
            request.limit = 1000;
            request.selection.text = Some(random.query(&rows, 2));
            let (a, b) = (answer(&one, &request), answer(&seven, &request));
            prop_assert_eq!(ids(&a), ids(&b));
            prop_assert_eq!(bits(&a), bits(&b));
            for hit in &a.hits {
                let row = rows.iter().find(|row| hit.key[0] == crate::Value::Int(id(row)));
                let expected = oracle.score(request.selection.text.as_ref(), row.unwrap());
                let score = hit.score.unwrap();
                prop_assert!((score - expected).abs() < 1e-9, "{score} {expected} {request:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn top_k_equals_the_sorted_prefix(seed: u64) {
        let mut random = Random::new(seed);
        let schema = schema(random.chance(50));
        let rows = random.rows(150);
        let view = view(schema, random.spread(&rows, 3));
        for _ in 0..10 {
            let mut request = by_score(term(""));
            let terms = (0..2 + random.below(6)).map(|_| random.query(&rows, 0)).collect();
            let any = TextQuery::Or(terms);
            request.selection.text = Some(match random.below(3) {
                0 => TextQuery::And(vec![any, random.query(&rows, 1)]),
                _ => any,
            });
            request.limit = 1000;
            let all = answer(&view, &request);
            request.limit = 1 + random.below(12);
            request.offset = random.below(4);
            let page = request.offset..all.hits.len().min(request.offset + request.limit);
            let best = answer(&view, &request);
            prop_assert_eq!(best.total, all.total);
            prop_assert_eq!(&best.hits, &all.hits[page.start.min(page.end)..page.end]);
        }
    }
}

#[test]
fn a_short_text_with_many_occurrences_comes_first() {
    let rows = vec![
        row(1, "rain", "and a lot of other weather that has nothing to do with it"),
        row(2, "rain rain", ""),
        row(3, "sun", ""),
        row(4, "rain", "and a lot of other weather that has nothing to do with it"),
    ];
    let view = single(schema(false), rows);
    assert_eq!(ids(&answer(&view, &by_score(term("rain")))), [2, 4, 1]);
}
