//! FACET against the scan.

use proptest::prelude::*;

use super::{
    oracle::Oracle,
    random::Random,
    searches::request,
    table::{CATEGORY, NUMBER, PRICE, moment, schema, view},
};
use crate::{FacetRequest, Value, read::facet::facet, value::compare};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_facet_equals_a_scan(seed: u64) {
        let mut random = Random::new(seed);
        let schema = schema(false);
        let rows = random.rows(100);
        let segments = 1 + random.below(6);
        let view = view(schema.clone(), random.spread(&rows, segments));
        let oracle = Oracle::new(&schema, &rows);
        for _ in 0..15 {
            let selection = request(&mut random, &rows).selection;
            let column = random.one(&[NUMBER, PRICE, CATEGORY]);
            let selected = oracle.select(selection.text.as_ref(), selection.filter.as_ref());
            let mut counts: Vec<(Value, u64)> = Vec::new();
            for row in &selected {
                match counts.iter_mut().find(|(value, _)| *value == row[column]) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((row[column].clone(), 1)),
                }
            }
            counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| compare(&a.0, &b.0)));
            let (limit, offset) = (random.below(8), random.below(3));
            let column = schema.columns[column].name.to_uppercase();
            let request =
                FacetRequest { selection, column, limit, offset, ..FacetRequest::default() };
            let reply = facet(&view, &request, moment()).unwrap();
            prop_assert_eq!(reply.matched, selected.len() as u64);
            prop_assert_eq!(reply.distinct, counts.len() as u64);
            let page: Vec<_> = counts.into_iter().skip(offset).take(limit).collect();
            prop_assert_eq!(reply.values, page);
        }
    }
}
