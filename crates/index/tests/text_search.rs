//! Text index searches, compared with a scan of all texts: random documents of mixed scripts, random pieces of them and
//! other random patterns, before and after merges.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, io::Write, sync::Arc};

use proptest::prelude::*;
use remora_index::{
    Bitmap, DocSet, SectionWriter, Sections,
    column::{Cell, ColumnKind},
    segment::{
        ColumnSpec, Document, IndexPart, IndexSpec, MergeInput, Segment, SegmentBuilder,
        SegmentSpec, TextSpec, merge,
    },
    text::{AtomKind, Normalization, Pattern, TextIndex, WordPattern, atoms},
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
    build_with(rows, SegmentBuilder::new(&spec()))
}

fn build_with(rows: &Rows, mut builder: SegmentBuilder) -> Segment {
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
    // Most texts do not hold it, which this finds out sooner.
    if !text.contains(piece) {
        return 0;
    }
    text.char_indices().filter(|(at, _)| text[*at..].starts_with(piece)).count() as u32
}

/// Documents and occurrences, by a scan of all texts.
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
        assert_eq!(text.count(&pattern).unwrap(), None, "{piece:?} is counted unread");
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

/// Checks an answer within given documents: it has exactly those of them with the pattern.
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

/// A random piece of a text.
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
    fn pattern_searches_match_a_scan(
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
    fn merge_equals_new_build(
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

/// Enough documents for blocks, bitmaps, suffix lists and stored unions.
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
fn large_segment_gives_equal_answers() {
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
fn similar_words_are_within_the_edit_distance() {
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

/// Small segments store unions of the posting lists of their frequent words.
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

/// SplitMix64.
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(clock.unwrap().as_nanos() as u64);
        println!("REMORA_SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of these elements; earlier ones are more frequent.
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let (a, b) = (self.next() as usize % all.len(), self.next() as usize % all.len());
        all[a.min(b)]
    }
}

/// Words that are prefixes and suffixes of each other.
const PAIRED: [&str; 16] = [
    "in", "a", "the", "within", "this", "is", "and", "band", "there", "of", "roof", "an", "2010",
    "ein", "thé", "theatre",
];
const HAN: [char; 7] = ['の', '日', '本', '東', '京', 'で', 'あ'];

fn run(random: &mut Random, most: u64) -> String {
    let length = 1 + random.next() % most;
    (0..length).map(|_| random.of(&HAN)).collect()
}

/// Enough documents for lists of neighbours: frequent words and characters in all mixtures.
fn neighbouring_rows(random: &mut Random) -> Rows {
    let mut rows = Rows::new();
    for key in 0..9_000 {
        let texts = (0..1 + random.next() % 2).map(|_| {
            let mut text = String::new();
            for _ in 0..random.next() % 7 {
                match random.next() % 8 {
                    0..4 => text.push_str(random.of(&PAIRED)),
                    4..7 => text.push_str(&run(random, 7)),
                    _ => text.push_str(&format!("x{:x}", random.next() % 3000)),
                }
                text.push_str(random.of(&[" ", "", ", ", "  ", "-"]));
            }
            // Frequent words of which some stand nowhere behind each other, and two in one text, as parts of words.
            match (key, random.next() % 12) {
                (4_000, _) => text.push_str(", threef corals"),
                (_, at @ 0..3) => text.push_str(["; coral", "; reef", "; coral reef"][at as usize]),
                _ => {}
            }
            text
        });
        rows.insert(key * 2, texts.collect());
    }
    rows
}

fn bytes_of(segment: &Segment, section: &str) -> u64 {
    segment.section_sizes().iter().filter(|one| one.0 == section).map(|one| one.2).sum()
}

fn check_neighbours(segment: &Segment, rows: &Rows, random: &mut Random, patterns: usize) {
    for _ in 0..patterns {
        let pattern = match random.next() % 6 {
            0 => format!("{} {}", random.of(&PAIRED), random.of(&PAIRED)),
            1 => format!("{} {} {}", random.of(&PAIRED), random.of(&PAIRED), random.of(&PAIRED)),
            2 => run(random, 9),
            3 => format!("{}{}", run(random, 4), random.of(&PAIRED)),
            4 => format!("{} {}", run(random, 5), run(random, 2)).replace('あ', ""),
            _ => cut(rows, random.next()),
        };
        check(segment, rows, &pattern);
        check_spelled(segment, rows, &pattern);
    }
}

/// The lists contain only one of several equivalent characters.
fn check_spelled(segment: &Segment, rows: &Rows, piece: &str) {
    const ALIKE: [(char, char); 2] = [('e', 'é'), ('の', '日')];
    let others = |c: char, out: &mut Vec<char>| {
        out.push(c);
        for (a, b) in ALIKE {
            out.extend((c == a).then_some(b));
            out.extend((c == b).then_some(a));
        }
    };
    let folded = |text: &str| {
        ALIKE.iter().fold(normalized(text), |text, (a, b)| text.replace(*b, &a.to_string()))
    };
    let Some(pattern) = Pattern::new(piece, &Normalization::default()) else { return };
    let text = segment.text(2).unwrap();
    let Some(spelled) = text.spelled(&pattern, &others, &mut Vec::new()) else { return };
    let matches = text.find(&spelled).unwrap();
    let holds = |texts: &[String]| texts.iter().any(|text| folded(text).contains(&folded(piece)));
    for (texts, doc) in rows.values().zip(0..) {
        let is_found = matches.docs.contains(doc);
        let is_right =
            if matches.verify { is_found || !holds(texts) } else { is_found == holds(texts) };
        assert!(is_right, "{piece:?} in {texts:?}");
    }
}

/// Whole words only: prefixes and suffixes of longer words do not match.
fn check_words(segment: &Segment, rows: &Rows, words: &str) {
    let pattern = WordPattern::new(words, &Normalization::default(), false).unwrap();
    let holds = |texts: &[String]| texts.iter().any(|text| pattern.occurs_in(&normalized(text)));
    let (sure, doubtful) = pattern.find(segment.text(2).unwrap()).unwrap();
    for (texts, doc) in rows.values().zip(0..) {
        let found = sure.contains(doc) || doubtful.contains(doc) && holds(texts);
        assert_eq!(found, holds(texts), "{words:?} in {texts:?}");
    }
}

#[test]
fn frequent_neighbours_match_a_scan() {
    let random = &mut Random::seeded();
    let rows = neighbouring_rows(random);
    let built = build(&rows);
    assert!(bytes_of(&built, "TNBK") > 8 * 40, "there are lists");
    assert!(built.text(2).unwrap().knows_neighbours());
    check_neighbours(&from_file(&built), &rows, random, 150);
    let count = |piece: &str| {
        let pattern = Pattern::new(piece, &Normalization::default()).unwrap();
        built.text(2).unwrap().count(&pattern).unwrap()
    };
    for (first, second) in PAIRED.iter().zip(&PAIRED[1..]) {
        check_words(&built, &rows, &format!("{first} {second}"));
    }
    let pairs = PAIRED.iter().flat_map(|a| PAIRED.map(|b| format!("{a} {b}")));
    let pairs: Vec<String> = pairs.collect();
    let two = HAN.iter().flat_map(|a| HAN.map(|b| format!("{a}{b}")));
    let runs: Vec<String> = two.flat_map(|two| HAN.map(|c| format!("{two}{c}"))).collect();
    for pieces in [pairs, runs] {
        let told = pieces.iter().filter_map(|piece| Some((piece, count(piece)?)));
        let told: Vec<(&String, u32)> = told.take(20).collect();
        assert_eq!(told.len(), 20, "lists tell");
        for (piece, count) in told {
            assert_eq!(count as usize, scan(&rows, piece).len(), "{piece}");
        }
    }
}

#[test]
fn frequent_words_that_are_never_adjacent_are_recorded() {
    let random = &mut Random::seeded();
    let rows = neighbouring_rows(random);
    let built = build(&rows);
    assert_eq!(bytes_of(&built, "TNBC"), 4);
    for (piece, documents) in [("coral coral", 0), ("reef reef", 0), ("reef coral", 1)] {
        let pattern = Pattern::new(piece, &Normalization::default()).unwrap();
        assert_eq!(built.text(2).unwrap().count(&pattern).unwrap(), Some(documents), "{piece}");
        for longer in ["", " reef", "s", "l", ", the"] {
            check(&built, &rows, &format!("{piece}{longer}"));
            check(&built, &rows, &format!("the {piece}{longer}"));
        }
        check_words(&built, &rows, piece);
    }
}

#[test]
fn changed_neighbour_lists_are_detected() {
    let random = &mut Random::seeded();
    let built = build(&neighbouring_rows(random));
    assert!(from_file(&built).text(2).unwrap().has_right_neighbours().unwrap());
    let sections = Sections::open(built.bytes().unwrap().into_owned()).unwrap();
    for changed in [*b"TNBK", *b"TNBL", *b"TNBC"] {
        let mut out = SectionWriter::new();
        for (tag, id, _) in sections.sizes() {
            let mut bytes = sections.get(tag, id).unwrap().to_vec();
            if tag.0 == changed {
                let at = random.next() as usize % bytes.len();
                bytes[at] ^= 1 << (random.next() % 8);
            }
            out.add(tag, id, &bytes);
        }
        let other = Segment::open(out.finish()).unwrap();
        assert!(!matches!(other.text(2).unwrap().has_right_neighbours(), Ok(true)));
    }
}

/// Segments of an older format without neighbour lists are searched too, and get the lists in a merge.
#[test]
fn neighbour_lists_of_merges_and_builds_are_equal() {
    let random = &mut Random::seeded();
    let rows = neighbouring_rows(random);
    let mut old = SegmentBuilder::new(&spec());
    old.forget_neighbours();
    let old = build_with(&rows, old);
    assert!(bytes_of(&old, "TNBO") == 0 && !old.text(2).unwrap().knows_neighbours());
    check_neighbours(&old, &rows, random, 20);
    let newer = neighbouring_rows(random);
    let newer: Rows = newer.into_iter().map(|(key, texts)| (key + 1, texts)).collect();
    let mut deleted = Bitmap::new(old.doc_count());
    let mut left = newer.clone();
    for ((&key, texts), doc) in rows.iter().zip(0..) {
        if random.next().is_multiple_of(3) {
            deleted.insert(doc);
        } else {
            left.insert(key, texts.clone());
        }
    }
    let input =
        |segment, deleted| MergeInput { segment: Arc::new(segment), deleted, paths: vec![] };
    let inputs = [input(old, Some(Arc::new(deleted))), input(build(&newer), None)];
    let merged = merge(&inputs, &spec()).unwrap();
    assert!(bytes_of(&merged, "TNBK") > 8 * 40);
    assert!(merged.bytes().unwrap() == build(&left).bytes().unwrap());
    check_neighbours(&merged, &left, random, 20);
}
