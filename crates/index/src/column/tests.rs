//! Columns of every layout, compared with a plain vector.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;
use crate::SectionWriter;

const ID: u32 = 7;

/// A value that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owned {
    Null,
    Ordinal(u64),
    Bytes(Vec<u8>),
}

impl Owned {
    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Ordinal(value) => Cell::Ordinal(*value),
            Self::Bytes(value) => Cell::Bytes(value),
        }
    }
}

fn sections(kind: ColumnKind, values: &[Owned]) -> Sections {
    let mut writer = ColumnWriter::new(ID, kind);
    values.iter().for_each(|value| writer.push(value.cell()).unwrap());
    let mut out = SectionWriter::new();
    writer.finish(&mut out).unwrap();
    Sections::open(out.finish()).unwrap()
}

fn open(kind: ColumnKind, values: &[Owned]) -> Column {
    Column::open(&sections(kind, values), ID, values.len() as u32).unwrap().unwrap()
}

fn any_kind() -> impl Strategy<Value = ColumnKind> {
    prop_oneof![Just(ColumnKind::Ordinal), Just(ColumnKind::Bytes)]
}

/// Distinct values of a kind: near each other, far apart, both ends; texts that begin alike.
fn pool(kind: ColumnKind, size: usize) -> BoxedStrategy<Vec<Owned>> {
    match kind {
        ColumnKind::Ordinal => {
            let near = (any::<u64>(), vec(0u64..5000, size))
                .prop_map(|(base, steps)| steps.iter().map(|s| base.saturating_add(*s)).collect());
            let far = vec(prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)], size);
            let pool = prop_oneof![near, far];
            pool.prop_map(|all: Vec<u64>| all.into_iter().map(Owned::Ordinal).collect()).boxed()
        }
        ColumnKind::Bytes => {
            let long = "common prefix [ab]{0,9}".prop_map(String::into_bytes);
            let short = vec(any::<u8>(), 0..12);
            vec(prop_oneof![short, long].prop_map(Owned::Bytes), size).boxed()
        }
    }
}

/// A column with few or many distinct values, sorted or not; without NULLs, with some of them, with
/// runs of them at the start, or with NULLs only.
fn columns() -> impl Strategy<Value = (ColumnKind, Vec<Owned>)> {
    let lengths = prop_oneof![0usize..10, 60usize..70, 1020usize..1030, 0usize..3500];
    (any_kind(), lengths, prop_oneof![1usize..6, 20usize..60, Just(3000)])
        .prop_flat_map(|(kind, length, distinct)| {
            let picks = vec(any::<Index>(), length);
            (Just(kind), pool(kind, distinct), picks, any::<bool>(), 0usize..5, any::<Index>())
        })
        .prop_map(|(kind, pool, picks, sorted, null_pattern, place)| {
            let mut values: Vec<Owned> = picks.iter().map(|pick| pick.get(&pool).clone()).collect();
            if sorted {
                values.sort();
            }
            let run = place.index(values.len() + 1);
            for (doc, value) in values.iter_mut().enumerate() {
                let is_null = match null_pattern {
                    0 | 1 => false,
                    2 => doc % 3 == 1,
                    3 => doc < run,
                    _ => true,
                };
                if is_null {
                    *value = Owned::Null;
                }
            }
            (kind, values)
        })
}

/// Conditions built from two values, from values that occur and from values next to them.
fn predicates(a: &Owned, b: &Owned, values: &[Owned]) -> Vec<Predicate> {
    let mut all = vec![Predicate::IsNull];
    let some: BTreeSet<&Owned> = values.iter().step_by(11).chain([a, b]).collect();
    match (a, b) {
        (Owned::Ordinal(a), Owned::Ordinal(b)) => {
            for low in bounds(*a) {
                for high in bounds(*b) {
                    all.push(Predicate::OrdinalRange(low, high));
                }
            }
            let some = some.iter().filter_map(|value| match value {
                Owned::Ordinal(value) => Some(*value),
                _ => None,
            });
            all.push(Predicate::OrdinalIn(some.collect()));
            all.extend([vec![], vec![*a], vec![*b]].map(Predicate::OrdinalIn));
        }
        (Owned::Bytes(a), Owned::Bytes(b)) => {
            for low in bounds(a.clone()) {
                for high in bounds(b.clone()) {
                    all.push(Predicate::BytesRange(low.clone(), high));
                }
            }
            let some = some.iter().filter_map(|value| match value {
                Owned::Bytes(value) => Some(value.clone()),
                _ => None,
            });
            all.push(Predicate::BytesIn(some.collect()));
            all.extend([vec![], vec![a.clone()], vec![b.clone()]].map(Predicate::BytesIn));
        }
        _ => {}
    }
    all
}

fn bounds<T: Clone>(value: T) -> [Bound<T>; 3] {
    [Bound::Included(value.clone()), Bound::Excluded(value), Bound::Unbounded]
}

/// The meaning of a condition, written out.
fn holds(predicate: &Predicate, value: &Owned) -> bool {
    fn within<T: Ord>(low: &Bound<T>, high: &Bound<T>, value: &T) -> bool {
        let above = match low {
            Bound::Included(low) => value >= low,
            Bound::Excluded(low) => value > low,
            Bound::Unbounded => true,
        };
        let below = match high {
            Bound::Included(high) => value <= high,
            Bound::Excluded(high) => value < high,
            Bound::Unbounded => true,
        };
        above && below
    }
    match (predicate, value) {
        (Predicate::IsNull, value) => *value == Owned::Null,
        (Predicate::OrdinalRange(low, high), Owned::Ordinal(value)) => within(low, high, value),
        (Predicate::OrdinalIn(values), Owned::Ordinal(value)) => values.contains(value),
        (Predicate::BytesRange(low, high), Owned::Bytes(value)) => within(low, high, value),
        (Predicate::BytesIn(values), Owned::Bytes(value)) => values.contains(value),
        _ => false,
    }
}

fn value_of(kind: ColumnKind) -> impl Strategy<Value = Owned> {
    pool(kind, 1).prop_map(|pool| pool.into_iter().next().unwrap())
}

/// A column and two values, which occur in it if it has values.
fn questions() -> impl Strategy<Value = (ColumnKind, Vec<Owned>, Owned, Owned)> {
    columns().prop_flat_map(|(kind, values)| {
        let present = values.clone();
        let value = move || {
            let (present, strange) = (present.clone(), value_of(kind));
            (any::<Index>(), any::<bool>(), strange).prop_map(move |(place, known, strange)| {
                let known = known.then(|| present.get(place.index(present.len().max(1))));
                known.flatten().filter(|value| **value != Owned::Null).cloned().unwrap_or(strange)
            })
        };
        (Just(kind), Just(values), value(), value())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_predicate_matches_a_scan(
        (kind, values, a, b) in questions(),
        step in 1usize..40,
    ) {
        let column = open(kind, &values);
        let some: Vec<u32> = (0..values.len() as u32).step_by(step).collect();
        for predicate in predicates(&a, &b, &values) {
            let expected: Vec<u32> = (0..values.len() as u32)
                .filter(|doc| holds(&predicate, &values[*doc as usize]))
                .collect();
            let selected: Vec<u32> = column.select(&predicate).unwrap().iter().collect();
            prop_assert_eq!(&selected, &expected, "{:?}", predicate);
            let mut kept = some.clone();
            kept.push(values.len() as u32);
            column.retain(&mut kept, &predicate);
            let expected: Vec<u32> = expected.into_iter().filter(|d| some.contains(d)).collect();
            prop_assert_eq!(&kept, &expected, "{:?}", predicate);
        }
    }

    #[test]
    fn values_round_trip_in_order((kind, values) in columns()) {
        let column = open(kind, &values);
        prop_assert_eq!(column.kind(), kind);
        prop_assert_eq!(column.get(values.len() as u32), Cell::Null);
        for (doc, value) in values.iter().enumerate() {
            prop_assert_eq!(column.get(doc as u32), value.cell());
        }
        let forth = (0..values.len() as u32).filter(|doc| doc % 5 < 3);
        let docs: Vec<u32> = forth.chain((0..values.len() as u32).rev().step_by(2)).collect();
        let mut next = docs.iter();
        let mut same = true;
        column.for_each_of(&docs, |cell| {
            same &= next.next().is_some_and(|&doc| values[doc as usize].cell() == cell);
        });
        prop_assert!(same && next.next().is_none());
        for (a, b) in (0..values.len()).zip((0..values.len()).rev()).step_by(3) {
            let order = values[a].cmp(&values[b]);
            prop_assert_eq!(column.compare(a as u32, b as u32), order);
            let ranks = column.rank(a as u32).cmp(&column.rank(b as u32));
            prop_assert!(ranks == order || ranks == Ordering::Equal);
            prop_assert!(values[a] != Owned::Null || column.rank(a as u32) == 0);
        }
    }

    #[test]
    fn values_are_counted_in_order((kind, values) in columns(), step in 1usize..40) {
        let column = open(kind, &values);
        let list: Vec<u32> = (0..values.len() as u32).step_by(step).collect();
        let mut expected: BTreeMap<Owned, u32> = BTreeMap::new();
        list.iter().for_each(|doc| *expected.entry(values[*doc as usize].clone()).or_default() += 1);
        let list = DocSet::List(list);
        let bits = DocSet::Bits(Arc::new(list.clone().into_bitmap(values.len() as u32)));
        for docs in [list, bits] {
            let mut counted = Vec::new();
            column.count_values(&docs, &mut |cell, count| counted.push((own(cell), count)));
            prop_assert_eq!(counted, expected.clone().into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn damaged_columns_answer_without_panic(
        (kind, values, a, b) in questions(),
        flips in vec((any::<Index>(), 0u8..8, any::<bool>()), 1..6),
        cut in proptest::option::of(any::<Index>()),
    ) {
        let mut bytes = sections(kind, &values).get(COLUMN, ID).unwrap().to_vec();
        for (place, bit, in_front) in flips {
            let length = if in_front { bytes.len().min(80) } else { bytes.len() };
            bytes[place.index(length)] ^= 1 << bit;
        }
        cut.iter().for_each(|cut| bytes.truncate(cut.index(bytes.len())));
        let mut out = SectionWriter::new();
        out.add(COLUMN, ID, &bytes);
        let sections = Sections::open(out.finish()).unwrap();
        let doc_count = values.len() as u32;
        if let Ok(Some(column)) = Column::open(&sections, ID, doc_count) {
            ask_everything(&column, doc_count, &predicates(&a, &b, &values));
        }
    }
}

fn own(cell: Cell<'_>) -> Owned {
    match cell {
        Cell::Null => Owned::Null,
        Cell::Ordinal(value) => Owned::Ordinal(value),
        Cell::Bytes(value) => Owned::Bytes(value.to_vec()),
    }
}

fn ask_everything(column: &Column, doc_count: u32, predicates: &[Predicate]) {
    for doc in (0..doc_count).chain([doc_count, u32::MAX]) {
        column.get(doc);
        column.rank(doc);
        column.compare(doc, doc / 2);
    }
    let docs: Vec<u32> = (0..doc_count).chain([doc_count, u32::MAX]).collect();
    for predicate in predicates {
        if let Ok(selected) = column.select(predicate) {
            assert!(selected.iter().all(|doc| doc < doc_count));
        }
        column.retain(&mut docs.clone(), predicate);
    }
    let mut total = 0;
    column.count_values(&DocSet::List(docs), &mut |_, count| total += count);
    column.count_values(&DocSet::all(doc_count), &mut |_, count| total += count);
    assert!(total <= 2 * doc_count);
}

fn layout(kind: ColumnKind, values: &[Owned]) -> u8 {
    sections(kind, values).get(COLUMN, ID).unwrap()[1]
}

#[test]
fn the_layout_follows_the_number_of_distinct_values() {
    let spread = |count: u64, distinct: u64| -> Vec<Owned> {
        (0..count).map(|doc| Owned::Ordinal(doc % distinct * 1000)).collect()
    };
    assert_eq!(layout(ColumnKind::Ordinal, &spread(400, 100)), DICTIONARY);
    assert_eq!(layout(ColumnKind::Ordinal, &spread(400, 101)), PLAIN);
    assert_eq!(layout(ColumnKind::Ordinal, &spread(400_000, 65_535)), DICTIONARY);
    assert_eq!(layout(ColumnKind::Ordinal, &spread(400_000, 65_536)), PLAIN);
    assert_eq!(layout(ColumnKind::Ordinal, &vec![Owned::Null; 9]), DICTIONARY);
}

#[test]
fn columns_with_the_largest_dictionary_are_correct() {
    let values: Vec<Owned> = (0..400_000u64)
        .map(|doc| match doc % 65_536 {
            0 => Owned::Null,
            value => Owned::Ordinal(value << 40),
        })
        .collect();
    let column = open(ColumnKind::Ordinal, &values);
    assert!((0..400_000).all(|doc| column.get(doc) == values[doc as usize].cell()));
    let last = Predicate::OrdinalIn(vec![65_535 << 40]);
    assert_eq!(column.select(&last).unwrap().count(), 6);
}

#[test]
fn values_of_another_kind_and_too_long_ones_are_refused() {
    let mut ordinals = ColumnWriter::new(ID, ColumnKind::Ordinal);
    assert!(matches!(ordinals.push(Cell::Bytes(b"x")), Err(IndexError::Invalid(_))));
    let mut bytes = ColumnWriter::new(ID, ColumnKind::Bytes);
    assert!(matches!(bytes.push(Cell::Ordinal(1)), Err(IndexError::Invalid(_))));
    let longest = vec![b'x'; MAX_VALUE_BYTES + 1];
    assert!(matches!(bytes.push(Cell::Bytes(&longest)), Err(IndexError::Invalid(_))));
    bytes.push(Cell::Bytes(&longest[1..])).unwrap();
    let mut out = SectionWriter::new();
    bytes.finish(&mut out).unwrap();
    let sections = Sections::open(out.finish()).unwrap();
    let column = Column::open(&sections, ID, 1).unwrap().unwrap();
    assert_eq!(column.get(0), Cell::Bytes(&longest[1..]));
    let mut docs = vec![0];
    let wrong = Predicate::OrdinalIn(vec![1]);
    assert!(matches!(column.select(&wrong), Err(IndexError::Invalid(_))));
    column.retain(&mut docs, &wrong);
    assert!(docs.is_empty());
    assert!(Column::open(&sections, ID + 1, 1).unwrap().is_none());
    assert!(Column::open(&sections, ID, 2).is_err());
}
