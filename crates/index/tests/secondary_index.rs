//! Secondary indexes, compared with a sort and a scan of all documents, built and merged.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    cmp::Ordering,
    ops::Bound::{self, Excluded, Included, Unbounded},
    sync::Arc,
};

use proptest::prelude::*;
use remora_index::{
    Bitmap, TextOrder,
    column::{Cell, ColumnKind},
    segment::{
        ColumnSpec, Document, IndexPart, IndexSpec, MergeInput, Segment, SegmentBuilder,
        SegmentSpec, merge,
    },
};

/// A number and a short text, either of which may be missing.
type Row = (Option<u8>, Option<String>);

fn part(column: u32, descending: bool) -> IndexPart {
    IndexPart { column, descending, order: None }
}

/// Orders texts without regard to case and to the number of their letters beyond one.
const FOLDED: TextOrder = TextOrder {
    number: 7,
    key: |_, text, key| key.extend(text.iter().take(2).map(u8::to_ascii_lowercase)),
};

/// The same part by the order of texts.
fn folded(part: IndexPart) -> IndexPart {
    IndexPart { order: Some(FOLDED), ..part }
}

/// Indexes of every kind; one is over a column that no segment has.
fn indexes() -> Vec<IndexSpec> {
    let shapes = [
        vec![part(1, false)],
        vec![part(1, true)],
        vec![part(2, false), part(1, true)],
        vec![part(1, true), part(2, true)],
        vec![part(9, false), part(2, true)],
        vec![folded(part(2, false))],
        vec![folded(part(2, true)), part(1, false), part(2, false)],
        vec![part(1, false), folded(part(2, false))],
    ];
    (0..).zip(shapes).map(|(id, parts)| IndexSpec { id, parts }).collect()
}

fn spec(indexes: Vec<IndexSpec>) -> SegmentSpec {
    let columns = vec![
        ColumnSpec { id: 1, kind: ColumnKind::Ordinal },
        ColumnSpec { id: 2, kind: ColumnKind::Bytes },
    ];
    SegmentSpec { columns, texts: Vec::new(), indexes, ..SegmentSpec::default() }
}

fn cells(row: &Row) -> [Cell<'_>; 2] {
    let number = row.0.map_or(Cell::Null, |number| Cell::Ordinal(u64::from(number)));
    let text = row.1.as_ref().map_or(Cell::Null, |text| Cell::Bytes(text.as_bytes()));
    [number, text]
}

/// The sort key of a part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sorted {
    Null,
    Number(u64),
    Text(Vec<u8>),
}

impl Sorted {
    fn of(row: &Row, part: &IndexPart) -> Self {
        let cell = match part.column {
            1 => cells(row)[0],
            2 => cells(row)[1],
            _ => Cell::Null,
        };
        match (cell, part.order) {
            (Cell::Null, _) => Self::Null,
            (Cell::Ordinal(number), _) => Self::Number(number),
            (Cell::Bytes(text), None) => Self::Text(text.to_vec()),
            (Cell::Bytes(text), Some(order)) => {
                let mut key = Vec::new();
                order.write_key(text, &mut key);
                Self::Text(key)
            }
        }
    }

    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Number(number) => Cell::Ordinal(*number),
            Self::Text(text) => Cell::Bytes(text),
        }
    }
}

fn build(rows: &[(u32, Row)], indexes: Vec<IndexSpec>) -> Segment {
    let mut builder = SegmentBuilder::new(&spec(indexes));
    for (key, row) in rows {
        let document = Document {
            key: &key.to_be_bytes(),
            columns: &cells(row),
            texts: &[],
            words: &[],
            paths: &remora_index::paths::PathKeys::default(),
        };
        builder.add(&document).unwrap();
    }
    builder.finish().unwrap()
}

fn directed(ordering: Ordering, descending: bool) -> Ordering {
    if descending { ordering.reverse() } else { ordering }
}

fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    // Some texts are equal in more bytes than a fence has.
    let text = prop_oneof![4 => "[abAB]{0,3}", 1 => "b{70}[ab]{0,2}"];
    let row = (proptest::option::of(0..6u8), proptest::option::of(text));
    proptest::collection::vec(row, 1..most)
}

fn bound(kind: u8, cell: Cell<'_>) -> Bound<Cell<'_>> {
    match kind {
        0 => Included(cell),
        1 => Excluded(cell),
        _ => Unbounded,
    }
}

/// Whether a value lies within the bounds.
fn lies(cell: Cell<'_>, low: Bound<Cell<'_>>, high: Bound<Cell<'_>>) -> bool {
    (match low {
        Included(low) => cell >= low,
        Excluded(low) => cell > low,
        Unbounded => true,
    }) && match high {
        Included(high) => cell <= high,
        Excluded(high) => cell < high,
        Unbounded => true,
    }
}

proptest! {
    #[test]
    fn ranges_match_a_sorted_scan(
        rows in rows(700), low: prop::sample::Index, high: prop::sample::Index,
        kinds in (0..3u8, 0..3u8), prefix in 0..2usize,
    ) {
        let rows: Vec<(u32, Row)> = (0..).zip(rows).collect();
        let segment = build(&rows, indexes());
        for spec in indexes() {
            let index = segment.index(&spec).unwrap();
            prop_assert!(index.is_right());
            let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
            expected.sort_by(|&a, &b| {
                let of = |doc: u32, part| Sorted::of(&rows[doc as usize].1, part);
                let parts = spec.parts.iter();
                parts.fold(Ordering::Equal, |ordering, part| {
                    let next = of(a, part).cmp(&of(b, part));
                    ordering.then(directed(next, part.descending))
                })
            });
            let (low, high) = (&low.get(&rows).1, &high.get(&rows).1);
            let prefix = prefix.min(spec.parts.len() - 1);
            let values: Vec<Sorted> =
                spec.parts[..prefix].iter().map(|part| Sorted::of(low, part)).collect();
            let next = &spec.parts[prefix];
            let (low, high) = (Sorted::of(low, next), Sorted::of(high, next));
            let bounds = (bound(kinds.0, low.cell()), bound(kinds.1, high.cell()));
            expected.retain(|&doc| {
                let row = &rows[doc as usize].1;
                let parts = spec.parts.iter().zip(&values);
                let same = parts.into_iter().all(|(part, value)| Sorted::of(row, part) == *value);
                same && lies(Sorted::of(row, next).cell(), bounds.0, bounds.1)
            });
            let values: Vec<Cell<'_>> = values.iter().map(Sorted::cell).collect();
            let found = index.range(&values, bounds.0, bounds.1);
            let found: Vec<u32> = found.map(|position| index.doc(position)).collect();
            prop_assert_eq!(found, expected, "{:?} {:?}", spec, bounds);
        }
    }

    #[test]
    fn merged_bytes_equal_built_bytes(
        all in rows(900), of in proptest::collection::vec(0..3usize, 900),
        gone in proptest::collection::vec(any::<bool>(), 900), with in 0..9usize,
    ) {
        let all: Vec<(u32, Row)> = (0..).zip(all).collect();
        let mut inputs = Vec::new();
        for number in 0..3 {
            let mine: Vec<(u32, Row)> =
                all.iter().filter(|(key, _)| of[*key as usize] == number).cloned().collect();
            // Each input has other indexes: the merge makes those that are missing.
            let segment = build(&mine, indexes().into_iter().skip(with * number).collect());
            let mut deleted = Bitmap::new(mine.len() as u32);
            for (doc, (key, _)) in (0..).zip(&mine) {
                if gone[*key as usize] {
                    deleted.insert(doc);
                }
            }
            inputs.push(MergeInput { segment: Arc::new(segment), deleted: Some(Arc::new(deleted)), paths: Vec::new() });
        }
        let live: Vec<(u32, Row)> =
            all.into_iter().filter(|(key, _)| !gone[*key as usize]).collect();
        let merged = merge(&inputs, &spec(indexes())).unwrap();
        let built = build(&live, indexes());
        prop_assert!(merged.bytes().unwrap() == built.bytes().unwrap());
    }
}

#[test]
fn index_with_other_parts_is_not_used() {
    let segment = build(&[(1, (Some(1), None))], indexes());
    let other = IndexSpec { id: 0, parts: vec![part(2, false)] };
    assert!(segment.index(&other).is_none());
}

/// Rows with few different states and distinct numbers.
fn many(count: u32) -> Segment {
    let rows =
        (0..count).map(|key| (key, (Some((key % 5) as u8), Some(format!("{}", key ^ 0x5a)))));
    build(&rows.collect::<Vec<_>>(), indexes())
}

#[test]
fn index_size_is_bounded_by_document_number_bits() {
    for count in [100, 1_000, 5_000, 70_000] {
        let segment = many(count);
        let most = f64::from(count) * (f64::from(count).log2() / 8.0 + 1.0);
        let mut sizes = vec![0; indexes().len()];
        for (name, id, bytes) in segment.section_sizes() {
            if name == "SIDX" || name == "SIDF" {
                sizes[id as usize] += bytes;
            }
        }
        assert!(sizes.iter().all(|&bytes| (bytes as f64) < most), "{count}: {sizes:?} {most}");
    }
}

thread_local! {
    static KEYS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Binary order that counts comparisons.
const COUNTED: TextOrder = TextOrder {
    number: 8,
    key: |_, text, key| {
        KEYS.set(KEYS.get() + 1);
        key.extend(text);
    },
};

#[test]
fn keys_outside_a_segment_need_two_comparisons() {
    let rows = (0..20_000_u32).map(|key| (key, (None, Some(format!("m{key:05}")))));
    let by = IndexSpec { id: 1, parts: vec![IndexPart { order: Some(COUNTED), ..part(2, false) }] };
    let segment = build(&rows.collect::<Vec<_>>(), vec![by.clone()]);
    let index = segment.index(&by).unwrap();
    let looks = |text: &str| {
        KEYS.set(0);
        let cell = Cell::Bytes(text.as_bytes());
        let found = index.range(&[], Included(cell), Included(cell)).len();
        (found, KEYS.get())
    };
    assert!(looks("a").1 <= 2, "{:?}", looks("a"));
    assert!(looks("z").1 <= 2, "{:?}", looks("z"));
    assert_eq!((looks("a").0, looks("z").0, looks("m00000").0, looks("m19999").0), (0, 0, 1, 1));
    let (found, count) = looks("m12345");
    assert!(found == 1 && count <= 6 + 3, "{count}");
}

#[test]
fn few_first_values_are_found_without_a_search() {
    let rows = (0..20_000_u32).map(|key| (key, (Some(key as u8), Some(format!("s{}", key % 5)))));
    let rows: Vec<(u32, Row)> = rows.collect();
    let first = IndexPart { order: Some(COUNTED), ..part(2, false) };
    let by = IndexSpec { id: 1, parts: vec![first, part(1, false)] };
    let segment = build(&rows, vec![by.clone()]);
    let index = segment.index(&by).unwrap();
    assert_eq!(index.range(&[], Unbounded, Unbounded), 0..20_000);
    KEYS.set(0);
    let value = Cell::Bytes(b"s3");
    assert_eq!(index.range(&[value], Unbounded, Unbounded), 12_000..16_000);
    let high = index.range(&[value], Included(Cell::Ordinal(250)), Unbounded);
    let is_high = |(key, (number, _)): &&(u32, Row)| key % 5 == 3 && *number >= Some(250);
    assert_eq!(high, 16_000 - rows.iter().filter(is_high).count() as u32..16_000);
    assert_eq!(index.range(&[Cell::Bytes(b"s31")], Unbounded, Unbounded), 16_000..16_000);
    assert_eq!(index.range(&[], Excluded(value), Included(Cell::Bytes(b"s9"))), 16_000..20_000);
    assert!(KEYS.get() <= 4 * 5, "{}", KEYS.get());
    KEYS.set(0);
    assert_eq!(index.group(12_000..20_000, 1, false), 12_000..16_000);
    assert_eq!(index.group(0..13_000, 1, true), 12_000..13_000);
    assert_eq!(KEYS.get(), 0);
}

proptest! {
    #[test]
    fn groups_end_where_a_column_changes(
        rows in rows(120), at in any::<prop::sample::Index>(), spec in 0..8usize,
    ) {
        let rows: Vec<(u32, Row)> = (0..).zip(rows).collect();
        let (segment, spec) = (build(&rows, indexes()), indexes().swap_remove(spec));
        let index = segment.index(&spec).unwrap();
        let at = at.index(rows.len()) as u32;
        for parts in 1..=spec.parts.len() {
            let values = |position: u32| -> Vec<Sorted> {
                let row = &rows[index.doc(position) as usize].1;
                spec.parts[..parts].iter().map(|part| Sorted::of(row, part)).collect()
            };
            let len = rows.len() as u32;
            let end = (at..len).take_while(|other| values(*other) == values(at)).count() as u32;
            prop_assert_eq!(index.group(at..len, parts, false), at..at + end);
            let start = (0..=at).rev().take_while(|other| values(*other) == values(at)).count();
            prop_assert_eq!(index.group(0..at + 1, parts, true), at + 1 - start as u32..at + 1);
        }
        prop_assert_eq!(index.group(3..3, 1, false), 3..3);
    }
}

/// Deletes these documents of a version.
fn without(deleted: &Bitmap, gone: impl IntoIterator<Item = u32>) -> Arc<Bitmap> {
    let mut deleted = deleted.clone();
    gone.into_iter().for_each(|doc| {
        deleted.insert(doc);
    });
    Arc::new(deleted)
}

#[test]
fn ranks_of_live_documents_follow_deletions() {
    const COUNT: u32 = 20_000;
    let segment = many(COUNT);
    let mixed = |number: u32| number.wrapping_mul(0x9e37_79b9).rotate_left(15) % COUNT;
    let mut versions = vec![Arc::new(Bitmap::new(COUNT))];
    // One document, some, many, those of a whole range, and all.
    for gone in [1, 4, 9, 6_000, 2, 3, COUNT] {
        let last = versions.last().unwrap();
        let numbered = (0..gone).map(|number| mixed(number + last.count()));
        versions.push(without(last, numbered));
    }
    versions.push(without(&versions[2], 7_000..9_000));
    // An older version again, as of a long transaction.
    versions.push(Arc::clone(&versions[3]));
    for spec in indexes() {
        let index = segment.index(&spec).unwrap();
        for deleted in &versions {
            let ranks = index.live_ranks(deleted, u64::MAX).unwrap();
            let is_live = |position: &u32| !deleted.contains(index.doc(*position));
            let live: Vec<u32> = (0..COUNT).filter(is_live).collect();
            assert_eq!(ranks.count(&(0..COUNT)) as usize, live.len(), "{spec:?}");
            for number in 0..40 {
                let (one, other) = (mixed(number), mixed(number + 40));
                let range = one.min(other)..one.max(other);
                let within = live.iter().filter(|position| range.contains(position)).count();
                assert_eq!(ranks.count(&range) as usize, within, "{spec:?} {range:?}");
                assert_eq!(ranks.nth(one), live.get(one as usize).copied(), "{spec:?} {one}");
                assert_eq!(ranks.is_live(one), is_live(&one));
            }
        }
    }
}

#[test]
fn ranks_are_made_once_reading_cost_as_much() {
    const COUNT: u32 = 20_000;
    let segment = many(COUNT);
    let index = segment.index(&indexes()[0]).unwrap();
    let deleted = without(&Bitmap::new(COUNT), [3, 700, 12_345]);
    let asked = |deleted: &Arc<Bitmap>, reads: u64| {
        (1..).find(|_| index.live_ranks(deleted, reads).is_some()).unwrap_or(0)
    };
    assert_eq!(asked(&deleted, 1_000), 20);
    assert_eq!(asked(&deleted, 0), 1);
    // One more costs a search, not the whole index.
    let more = without(&deleted, [19_999]);
    assert!((2..10).contains(&asked(&more, 100)));
    assert_eq!(asked(&more, 0), 1);
    // Many more cost the whole index.
    let many = without(&more, 4_000..5_000);
    assert_eq!(asked(&many, 1_000), 20);
    assert_eq!(index.live_ranks(&many, 0).unwrap().count(&(0..COUNT)), COUNT - 1_004);
}
