//! Every answer of a text index equals reading every text: random documents of mixed scripts,
//! random pieces of them and random other patterns, before and after merges.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, io::Write, sync::Arc};

use proptest::prelude::*;
use remora_index::{
    Bitmap, DocSet,
    column::{Cell, ColumnKind},
    segment::{
        ColumnSpec, Document, IndexPart, IndexSpec, MergeInput, Segment, SegmentBuilder,
        SegmentSpec, TextSpec, merge,
    },
    text::{AtomKind, Normalization, Pattern, TextIndex, atoms},
};

/// Rows by key: the texts of one text index's columns.
type Rows = BTreeMap<u64, Vec<String>>;

fn spec() -> SegmentSpec {
    SegmentSpec {
        columns: vec![ColumnSpec { id: 4, kind: ColumnKind::Ordinal }],
        texts: vec![TextSpec { id: 2, normalization: Normalization::default() }],
        indexes: vec![IndexSpec {
            id: 5,
            parts: vec![IndexPart { column: 4, descending: true, order: None }],
        }],
        words: Vec::new(),
        paths: Vec::new(),
    }
}

fn build(rows: &Rows) -> Segment {
    let mut builder = SegmentBuilder::new(&spec());
    for (key, texts) in rows {
        let texts = vec![texts.iter().map(String::as_str).collect()];
        let columns = [if key % 3 == 0 { Cell::Null } else { Cell::Ordinal(key / 2) }];
        let document = Document {
            key: &key.to_be_bytes(),
            columns: &columns,
            texts: &texts,
            words: &[],
            paths: &remora_index::paths::PathKeys::default(),
        };
        builder.add(&document).unwrap();
    }
    builder.finish().unwrap()
}

fn normalized(text: &str) -> String {
    Normalization::default().apply(text).into_owned()
}

fn starts(text: &str, piece: &str) -> u32 {
    text.char_indices().filter(|(at, _)| text[*at..].starts_with(piece)).count() as u32
}

/// (document, occurrences) by reading every text.
fn scan(rows: &Rows, piece: &str) -> Vec<(u32, u32)> {
    let piece = normalized(piece);
    let counts = rows
        .values()
        .map(|texts| -> u32 { texts.iter().map(|text| starts(&normalized(text), &piece)).sum() });
    (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
}

/// The same segment, opened from a file.
fn from_file(segment: &Segment) -> Segment {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&segment.bytes().unwrap()).unwrap();
    Segment::open_file(file).unwrap()
}

fn check(segment: &Segment, rows: &Rows, piece: &str) {
    let Some(pattern) = Pattern::new(piece, &Normalization::default()) else { return };
    let text = segment.text(2).unwrap();
    let expected = scan(rows, piece);
    let matches = text.find(&pattern).unwrap();
    let docs: Vec<u32> = matches.docs.iter().collect();
    if matches.verify {
        assert!(piece.ends_with(' ') || pattern.text().ends_with(' '), "{piece:?} reads texts");
        assert!(expected.iter().all(|(doc, _)| docs.contains(doc)), "{piece:?} misses documents");
        return;
    }
    assert_eq!(docs, expected.iter().map(|(doc, _)| *doc).collect::<Vec<_>>(), "{piece:?}");
    if let Some(count) = text.count(&pattern).unwrap() {
        assert_eq!(count as usize, expected.len(), "count of {piece:?}");
    }
    let mut occurrences = Vec::new();
    text.occurrences(&pattern, None, &mut occurrences).unwrap();
    assert_eq!(occurrences, expected, "occurrences of {piece:?}");
    check_among(text, &pattern, &expected, rows.len() as u32);
}

/// Of some documents: those that hold the pattern, no others that do not.
fn check_among(text: &TextIndex, pattern: &Pattern, expected: &[(u32, u32)], doc_count: u32) {
    for step in [1, 2, 7] {
        let list: Vec<u32> = (0..doc_count).filter(|doc| doc * 5 % 7 % step == 0).collect();
        let wanted = |docs: &mut dyn Iterator<Item = (u32, u32)>| -> Vec<(u32, u32)> {
            docs.filter(|(doc, _)| list.binary_search(doc).is_ok()).collect()
        };
        let expected = wanted(&mut expected.iter().copied());
        let bits = DocSet::Bits(DocSet::List(list.clone()).into_bitmap(doc_count).into());
        for among in [DocSet::List(list.clone()), bits] {
            let docs = text.find_among(pattern, &among).unwrap().docs;
            let docs = wanted(&mut docs.iter().map(|doc| (doc, 0)));
            assert!(docs.iter().map(|one| one.0).eq(expected.iter().map(|one| one.0)));
            let mut occurrences = Vec::new();
            text.occurrences(pattern, Some(&among), &mut occurrences).unwrap();
            assert_eq!(wanted(&mut occurrences.into_iter()), expected, "{:?}", pattern.text());
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[abc]{1,4}",
        4 => Just(" ".to_owned()),
        1 => "[-,. ]{1,3}",
        1 => Just("  ".to_owned()),
        4 => "[東京都日]{1,4}",
        2 => "[가나다]{1,3}",
        1 => "[ｱｶﾞＡa\u{301}éß]{1,3}",
        1 => "[ไทย\u{e31}]{1,3}",
        1 => "\\PC{1,3}",
        1 => Just("😀".to_owned()),
        1 => Just("\u{0}".to_owned()),
    ];
    proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

fn rows(most: usize) -> impl Strategy<Value = Rows> {
    let texts = proptest::collection::vec(text(), 0..3);
    proptest::collection::btree_map(0u64..4000, texts, 0..most)
}

/// A piece of some text, cut anywhere.
fn cut(rows: &Rows, seed: u64) -> String {
    let texts: Vec<&String> = rows.values().flatten().collect();
    let Some(text) = texts.get(seed as usize % texts.len().max(1)) else { return "a".to_owned() };
    let text: Vec<char> = normalized(text).chars().collect();
    let start = (seed >> 16) as usize % text.len().max(1);
    text.iter().skip(start).take(1 + (seed >> 40) as usize % 8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn patterns_are_found_as_by_reading(
        rows in rows(60),
        seeds in proptest::collection::vec(any::<u64>(), 12),
        others in proptest::collection::vec(text(), 4),
    ) {
        let segment = build(&rows);
        let cuts = seeds.iter().map(|&seed| cut(&rows, seed));
        for piece in cuts.chain(others) {
            check(&segment, &rows, &piece);
        }
    }

    #[test]
    fn a_merge_is_what_a_builder_makes(
        rows in rows(120),
        parts in 1usize..5,
        deleted in proptest::collection::vec(any::<bool>(), 120),
        seeds in proptest::collection::vec(any::<u64>(), 4),
    ) {
        let mut runs = vec![Rows::new(); parts];
        let mut left = Rows::new();
        let mut gone = vec![Vec::new(); parts];
        for (index, (key, texts)) in rows.iter().enumerate() {
            let run = (key * 7 % 13) as usize % parts;
            if deleted[index] {
                gone[run].push(runs[run].len() as u32);
            } else {
                left.insert(*key, texts.clone());
            }
            runs[run].insert(*key, texts.clone());
        }
        let inputs: Vec<MergeInput> = runs.iter().zip(&gone).map(|(run, gone)| {
            let mut deleted = Bitmap::new(run.len() as u32);
            gone.iter().for_each(|&doc| { deleted.insert(doc); });
            MergeInput { segment: Arc::new(build(run)), deleted: Some(Arc::new(deleted)), paths: Vec::new() }
        }).collect();
        let merged = merge(&inputs, &spec()).unwrap();
        prop_assert!(merged.bytes().unwrap() == build(&left).bytes().unwrap());
        for seed in seeds {
            check(&merged, &left, &cut(&left, seed));
        }
    }
}

/// Enough documents for blocks, bits, suffixes and ready-made unions.
fn many_rows() -> Rows {
    let mut state = 12u64;
    let mut random = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut rows = Rows::new();
    for key in 0..40_000 {
        let mut text = String::new();
        for _ in 0..4 + random(12) {
            let rank = random(30).min(random(3000)).min(random(3000));
            let word = format!("{}{:x}", ["the", "band", "and", "x"][rank as usize % 4], rank);
            text.push_str(&word);
            text.push_str([" ", " ", " ", ", ", "-"][random(5) as usize]);
        }
        if random(3) == 0 {
            let han = |number: u64| char::from_u32(0x4e00 + number as u32).unwrap_or('一');
            (0..random(9)).for_each(|_| text.push(han(random(40).min(random(40)))));
        }
        rows.insert(key * 3, vec![text]);
    }
    rows
}

#[test]
fn a_large_segment_answers_alike() {
    let rows = many_rows();
    let segment = from_file(&build(&rows));
    assert!(segment.memory_bytes() < segment.byte_count());
    let words = ["the", "and", "an", "a", "d", "x1", "the0", "band5", "nd2", "zzz", "thea5"];
    let phrases = ["the0 x3", "x3 and", "0 the", "and2, x", "a - b", "-band1 ", " the4", "e0-x"];
    let characters = ["一", "一丁", "丁一丁", "丂七一丁", "0 一", "、"];
    for piece in words.iter().chain(&phrases).chain(&characters) {
        check(&segment, &rows, piece);
    }
    let mut state = 5u64;
    for _ in 0..300 {
        state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        check(&segment, &rows, &cut(&rows, state));
    }
}

#[test]
fn similar_words_are_those_within_the_distance() {
    let rows = many_rows();
    let segment = build(&rows);
    for (word, distance) in [("band1", 1), ("thx5", 1), ("xand1", 2), ("q", 1), ("the12345", 2)] {
        let docs: Vec<u32> =
            segment.text(2).unwrap().find_similar_word(word, distance).unwrap().iter().collect();
        let similar = |text: &String| {
            let text = normalized(text);
            atoms(&text).any(|(kind, atom)| {
                kind == AtomKind::Word && distance_between(atom, word) <= usize::from(distance)
            })
        };
        let numbered = (0..).zip(rows.values());
        let expected = numbered.filter(|(_, texts)| texts.iter().any(similar));
        assert_eq!(docs, expected.map(|(doc, _)| doc).collect::<Vec<u32>>(), "{word} {distance}");
    }
}

fn distance_between(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Small segments keep unions of their frequent words.
#[test]
fn frequent_words_of_every_length_are_found_in_small_segments() {
    let words = ["a", "an", "the", "that", "there", "number", "strasse", "grundstrasse", "日本"];
    let text = |id: u64| -> String {
        let held = words.iter().zip(0..).filter(|(_, at)| !id.is_multiple_of(at + 2));
        held.map(|(word, _)| format!("{word} ")).chain([id.to_string()]).collect()
    };
    let rows: Rows = (0..400).map(|id| (id, vec![text(id)])).collect();
    let segment = build(&rows);
    let pieces = words.iter().flat_map(|word| {
        let ends = word.char_indices().map(|(at, _)| &word[at..]);
        ends.chain([*word]).map(str::to_owned).collect::<Vec<_>>()
    });
    pieces.for_each(|piece| check(&segment, &rows, &piece));
}
