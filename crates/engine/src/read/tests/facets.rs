//! FACET against the scan.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use proptest::prelude::*;

use super::{
    endings::After,
    oracle::Oracle,
    random::Random,
    searches::request,
    table::{CATEGORY, NUMBER, PRICE, moment, schema, view},
};
use crate::{
    Ending, Error, FacetRequest, Interrupt, Value,
    interrupt::InterruptCheck,
    read::facet::{FacetLimit, facet, facet_within},
    value::compare,
};

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
            let values = random.below(6) as u64;
            let limit = FacetLimit { values, bytes: usize::MAX };
            let within = facet_within(&view, &request, limit, moment()).unwrap();
            prop_assert_eq!(within.is_some(), reply.distinct <= values);
        }
    }
}

/// No text is looked for: it looks among the values, and before and behind them.
#[test]
fn a_facet_of_all_rows_ends_wherever_it_is_interrupted() {
    let mut random = Random::new(11);
    let schema = schema(false);
    let mut rows = random.rows(400);
    rows.iter_mut().zip(0..).for_each(|(row, number)| row[NUMBER] = Value::Int(number));
    let view = view(schema.clone(), random.spread(&rows, 1));
    let column = schema.columns[NUMBER].name.clone();
    let request = FacetRequest { column, limit: 1_000, ..FacetRequest::default() };
    let after = |most: usize| {
        let after = Arc::new(After { looks: AtomicUsize::new(0), most });
        let interrupt: Arc<dyn Interrupt> = Arc::<After>::clone(&after);
        let counted = facet(&view, &request, (moment().0, &InterruptCheck::new(interrupt)));
        (counted, after.looks.load(Ordering::Relaxed))
    };
    let (counted, looks) = after(usize::MAX);
    let values = counted.unwrap().distinct as usize;
    // 16 values between two looks, in tests.
    assert!(values > 64 && looks > values / 16, "{looks} looks, {values} values");
    for most in 0..looks {
        let (ended, told) = after(most);
        let is_ended = matches!(ended, Err(Error::Ended(Ending::Interrupted)));
        assert!(is_ended && told == most + 1, "{told} looks after {most} of {looks}: {ended:?}");
    }
}

#[test]
fn a_facet_with_a_limit_holds_so_many_bytes() {
    let mut random = Random::new(12);
    let schema = schema(false);
    let rows = random.rows(100);
    let view = view(schema.clone(), random.spread(&rows, 2));
    let column = schema.columns[CATEGORY].name.clone();
    let request = FacetRequest { column, limit: 1_000, ..FacetRequest::default() };
    let all = facet(&view, &request, moment()).unwrap();
    let texts = all.values.iter().filter_map(|(value, _)| match value {
        Value::Text(text) => Some(text.len()),
        _ => None,
    });
    let bytes: usize = texts.sum();
    assert!(bytes > 0);
    for (bytes, is_within) in [(bytes, true), (bytes - 1, false)] {
        let limit = FacetLimit { values: u64::MAX, bytes };
        let within = facet_within(&view, &request, limit, moment()).unwrap();
        assert_eq!(within.is_some(), is_within);
    }
}
