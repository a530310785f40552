//! Keywords of segments, compared with the texts: their documents, counts and positions, built and merged.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, OnceLock},
};

use proptest::prelude::*;
use remora_index::{
    Bitmap, SectionWriter, Sections,
    segment::{Document, MergeInput, Segment, SegmentBuilder, SegmentSpec, WordsSpec, merge},
    words::WordsIndex,
};
use remora_words::{
    analysis::{Analyzer, Scratch},
    hits::PackedPosition,
    settings::{Files, Settings},
};

const ID: u32 = 7;
const FIELDS: usize = 3;

/// Rows by key: the texts of their fields.
type Rows = BTreeMap<u64, [String; FIELDS]>;
/// Documents by their number, with the places of a keyword in each.
type Places = BTreeMap<String, BTreeMap<u32, Vec<PackedPosition>>>;

fn analyzer() -> Arc<Analyzer> {
    let mut settings = Settings::default();
    // Positions are then not counts.
    settings.set("stopwords_list", "the;of").unwrap();
    settings.set("morphology", "stem_en").unwrap();
    settings.set("index_exact_words", "1").unwrap();
    Arc::new(Analyzer::new(&settings, &Files::none()).unwrap())
}

fn spec(analyzer: &Arc<Analyzer>) -> SegmentSpec {
    let words = WordsSpec { id: ID, fields: FIELDS, analyzer: Arc::clone(analyzer) };
    SegmentSpec { words: vec![words], ..SegmentSpec::default() }
}

fn build(rows: &Rows, analyzer: &Arc<Analyzer>) -> Segment {
    let mut builder = SegmentBuilder::new(&spec(analyzer));
    for (key, fields) in rows {
        let words = [fields.iter().map(String::as_str).collect::<Vec<&str>>()];
        let document = Document {
            key: &key.to_be_bytes(),
            columns: &[],
            texts: &[],
            words: &words,
            paths: &remora_index::paths::PathKeys::default(),
        };
        builder.add(&document).unwrap();
    }
    builder.finish().unwrap()
}

/// The expected contents of a segment of these rows.
fn expected(rows: &Rows, analyzer: &Analyzer) -> Places {
    let mut scratch = Scratch::default();
    let mut places = Places::new();
    for (doc, fields) in (0..).zip(rows.values()) {
        for (field, text) in (0..).zip(fields) {
            let mut found: Vec<(String, u32)> = Vec::new();
            analyzer.document(text, &mut scratch, &mut |keyword: &str, position| {
                found.push((keyword.to_owned(), position));
            });
            let last = found.last().map(|(_, position)| *position);
            for (keyword, position) in found {
                let place = PackedPosition::new(field, position, Some(position) == last);
                places.entry(keyword).or_default().entry(doc).or_default().push(place);
            }
        }
    }
    places
}

fn check(segment: &Segment, rows: &Rows, analyzer: &Analyzer) {
    let words = segment.words(ID).unwrap();
    let places = expected(rows, analyzer);
    let mut all = Vec::new();
    words.for_each_with_prefix("", |keyword, number| {
        all.push((keyword.to_owned(), number));
        ControlFlow::Continue(())
    });
    let names: Vec<&String> = all.iter().map(|(keyword, _)| keyword).collect();
    assert_eq!(names, places.keys().collect::<Vec<_>>());
    for (keyword, documents) in &places {
        let number = words.find(keyword).unwrap();
        assert_eq!(words.document_count(number).unwrap() as usize, documents.len());
        let mut postings = Vec::new();
        let mut note = |doc, hits: u32| {
            postings.push((doc, hits as usize));
            ControlFlow::Continue(())
        };
        words.for_each_posting(number, &mut note).unwrap();
        let counted: Vec<_> = documents.iter().map(|(doc, places)| (*doc, places.len())).collect();
        assert_eq!(postings, counted, "{keyword}");
        let mut some = Vec::new();
        let note = |doc, hits: u32| {
            some.push((doc, hits as usize));
            if some.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        words.for_each_posting(number, note).unwrap();
        assert_eq!(some, counted[..counted.len().min(3)], "{keyword}");
        check_frequencies(words, number, &counted);
        let mut cursor = words.cursor(number).unwrap();
        for (&doc, places) in documents {
            assert_eq!(cursor.advance(doc).unwrap(), Some(doc));
            assert_eq!(cursor.frequency().unwrap() as usize, places.len());
            let mut found = Vec::new();
            cursor.places(|place| found.push(place)).unwrap();
            assert_eq!(&found, places, "{keyword} in {doc}");
        }
        let mut inner = Vec::new();
        words.for_each_with_piece(keyword, |other, _| {
            inner.push(other.to_owned());
            ControlFlow::Continue(())
        });
        assert!(
            inner.contains(keyword) && inner.iter().all(|other| other.contains(keyword.as_str()))
        );
    }
    assert_eq!(words.find("nothing of this name"), None);
    check_pairs(words, &all, rows.len());
}

/// The frequencies of a keyword in many documents and in few.
fn check_frequencies(words: &WordsIndex, number: u32, counted: &[(u32, usize)]) {
    let last = counted.last().map_or(0, |it| it.0);
    for step in [1, 2, 97] {
        let docs: Vec<u32> = (0..=last + 3).step_by(step).collect();
        let wanted = docs.iter().enumerate();
        let of = |doc: &u32| counted.binary_search_by_key(doc, |it| it.0).ok();
        let expected: Vec<(usize, usize)> =
            wanted.filter_map(|(at, doc)| Some((at, counted[of(doc)?].1))).collect();
        for most in [usize::MAX, 1] {
            let mut found = Vec::new();
            let note = |at, hits: u32| {
                found.push((at, hits as usize));
                if found.len() >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            words.for_each_frequency(number, &docs, note).unwrap();
            assert_eq!(found, expected[..expected.len().min(most)]);
        }
    }
}

/// Compares the lists of pairs with the places of both keywords.
fn check_pairs(words: &WordsIndex, all: &[(String, u32)], documents: usize) {
    // Of few documents there are none.
    if !words.has_pairs() {
        assert!(documents < 64 || all.is_empty());
        return;
    }
    let places_of = |number: u32| -> BTreeMap<u32, Vec<u32>> {
        let mut cursor = words.cursor(number).unwrap();
        let mut places = BTreeMap::new();
        while let Some(doc) = cursor.advance(places.len() as u32).unwrap() {
            let mut at = 0;
            let place = |step: &u32| {
                at += step;
                at
            };
            places.extend((places.len() as u32..doc).map(|doc| (doc, Vec::new())));
            places.insert(doc, cursor.steps().unwrap().iter().map(place).collect());
        }
        places
    };
    let places: BTreeMap<u32, _> =
        all.iter().map(|&(_, number)| (number, places_of(number))).collect();
    let mut listed = 0;
    for &(_, left) in all {
        for &(_, right) in all {
            for distance in 0..7 {
                let Some(found) = words.documents_apart((left, right), distance).unwrap() else {
                    continue;
                };
                listed += 1;
                let is_there = |doc: &u32| {
                    let (left, right) = (places[&left].get(doc), places[&right].get(doc));
                    let is_behind =
                        |at: &u32| right.is_some_and(|it| it.contains(&(at + distance)));
                    left.is_some_and(|it| it.iter().any(is_behind))
                };
                let expected: Vec<u32> = (0..documents as u32).filter(is_there).collect();
                let found: Vec<u32> = found.iter().collect();
                assert_eq!(found, expected, "{left} {right} {distance}");
            }
        }
    }
    assert!(listed > 0 && words.has_right_pairs().unwrap());
}

fn rows() -> impl Strategy<Value = Rows> {
    let word = prop::sample::select(vec![
        "reef",
        "reefs",
        "coral",
        "the",
        "of",
        "running",
        "runs",
        "日本",
        "日本語",
        "x1",
        "coral",
        "coral",
    ]);
    let text = prop::collection::vec(word, 0..14).prop_map(|words| words.join(" "));
    let fields = [text.clone(), text.clone(), text];
    prop::collection::btree_map(0u64..400, fields, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_segment_holds_the_keywords_of_its_texts(rows in rows()) {
        let analyzer = analyzer();
        let segment = build(&rows, &analyzer);
        check(&segment, &rows, &analyzer);
        check(&Segment::open(segment.bytes().unwrap().into_owned()).unwrap(), &rows, &analyzer);
    }

    #[test]
    fn merged_segment_equals_built_segment(rows in rows(), cut in 0u64..400, gone in 1u64..9) {
        let analyzer = analyzer();
        let (low, high): (Rows, Rows) = rows.clone().into_iter().partition(|(key, _)| *key < cut);
        let inputs = [low, high].into_iter().filter(|rows| !rows.is_empty()).map(|rows| {
            let segment = Arc::new(build(&rows, &analyzer));
            let mut deleted = Bitmap::new(segment.doc_count());
            for (doc, key) in (0..).zip(rows.keys()) {
                if key % gone == 0 {
                    deleted.insert(doc);
                }
            }
            MergeInput { segment, deleted: Some(Arc::new(deleted)), paths: Vec::new() }
        });
        let inputs: Vec<MergeInput> = inputs.collect();
        let merged = merge(&inputs, &spec(&analyzer)).unwrap();
        let live: Rows = rows.into_iter().filter(|(key, _)| key % gone != 0).collect();
        check(&merged, &live, &analyzer);
        let built = build(&live, &analyzer);
        prop_assert_eq!(merged.bytes().unwrap(), built.bytes().unwrap());
    }
}

/// A segment whose lists of pairs are changed, with correct checksums; without any if `changes` is `None`.
fn changed(segment: &Segment, nth: usize, changes: Option<&[(usize, u8)]>, cut: usize) -> Vec<u8> {
    let sections = Sections::open(segment.bytes().unwrap().into_owned()).unwrap();
    let (mut out, mut seen) = (SectionWriter::new(), 0);
    for (tag, id, _) in sections.sizes() {
        let mut bytes = sections.get(tag, id).unwrap().to_vec();
        if tag.0.starts_with(b"TPR") {
            let Some(changes) = changes else { continue };
            if seen == nth % 3 && !bytes.is_empty() {
                let length = bytes.len();
                changes.iter().for_each(|&(at, value)| bytes[at % length] = value);
                bytes.truncate(length - cut % length);
            }
            seen += 1;
        }
        out.add(tag, id, &bytes);
    }
    assert!(seen == 3 || changes.is_none());
    out.finish()
}

fn many_rows() -> Rows {
    let words = ["coral", "reef", "x1", "runs", "日本"];
    let text = |key: u64, field: u64| {
        let word = |nth| words[((key * 7 + field * 3 + nth * nth) % 11 % 5) as usize];
        (0..(key + field) % 9).map(word).collect::<Vec<_>>().join(" ")
    };
    (0..300).map(|key| (key, [0, 1, 2].map(|field| text(key, field)))).collect()
}

#[test]
fn a_huge_document_is_in_the_lists_of_all_its_pairs() {
    let (mut rows, analyzer) = (many_rows(), analyzer());
    rows.insert(1_000, ["coral reef x1 ".repeat(100_000), String::new(), String::new()]);
    let built = build(&rows, &analyzer);
    let words = built.words(ID).unwrap();
    let number = |keyword: &str| words.find(keyword).unwrap();
    let huge = rows.len() as u32 - 1;
    let mut listed = 0;
    for (left, right) in ["coral", "reef", "x1"]
        .iter()
        .flat_map(|left| ["coral", "reef", "x1"].map(|right| (*left, right)))
    {
        let found = words.documents_apart((number(left), number(right)), 1).unwrap();
        let Some(found) = found else { continue };
        listed += 1;
        assert!(found.iter().any(|doc| doc == huge), "{left} {right}");
    }
    assert!(listed > 3 && words.has_right_pairs().unwrap());
}

#[test]
fn segments_without_lists_of_pairs_get_them_by_a_merge() {
    let (rows, analyzer) = (many_rows(), analyzer());
    let built = build(&rows, &analyzer);
    assert!(built.words(ID).unwrap().has_pairs());
    check(&built, &rows, &analyzer);
    let old = Segment::open(changed(&built, 0, None, 0)).unwrap();
    let words = old.words(ID).unwrap();
    assert!(!words.has_pairs() && words.has_right_pairs().unwrap());
    assert!(words.documents_apart((0, 0), 1).unwrap().is_none());
    let input = MergeInput { segment: Arc::new(old), deleted: None, paths: Vec::new() };
    let merged = merge(&[input], &spec(&analyzer)).unwrap();
    assert_eq!(merged.bytes().unwrap(), built.bytes().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn damaged_lists_of_pairs_never_panic(
        nth: usize,
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..5),
        cut in prop_oneof![3 => Just(0usize), 1 => any::<usize>()],
    ) {
        static SOUND: OnceLock<Segment> = OnceLock::new();
        let sound = SOUND.get_or_init(|| build(&many_rows(), &analyzer()));
        let bytes = changed(sound, nth, Some(&changes), cut);
        let Ok(segment) = Segment::open(bytes.clone()) else { return Ok(()) };
        let words = segment.words(ID).unwrap();
        for (left, right, distance) in (0..20).flat_map(|left| {
            (0..20).flat_map(move |right| (0..6).map(move |distance| (left, right, distance)))
        }) {
            if let Ok(Some(docs)) = words.documents_apart((left, right), distance) {
                prop_assert!(docs.iter().all(|doc| doc < segment.doc_count()));
            }
        }
        let is_right = words.has_right_pairs();
        // Not every byte of offsets counts.
        let may_be_right = nth % 3 == 1 || bytes == *sound.bytes().unwrap();
        prop_assert!(may_be_right || !is_right.is_ok_and(|is_right| is_right));
    }
}

#[test]
fn texts_of_many_words_have_lists_at_each_distance() {
    let mut state = 9u64;
    let mut below = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % most
    };
    let mut word = || match below(5) {
        0 => ["coral", "reef", "x1"][below(3) as usize].to_owned(),
        _ => format!("x{}", 2 + below(600)),
    };
    let mut text = |words: u64| (0..words).map(|_| word()).collect::<Vec<_>>().join(" ");
    let rows: Rows = (0..100).map(|key| (key, [3, 60, 20].map(&mut text))).collect();
    let analyzer = analyzer();
    let segment = build(&rows, &analyzer);
    check(&segment, &rows, &analyzer);
    let words = segment.words(ID).unwrap();
    let pair = ["coral", "reef"].map(|keyword| words.find(keyword).unwrap());
    for distance in 1..=4 {
        let docs = words.documents_apart((pair[0], pair[1]), distance).unwrap().unwrap();
        assert!((5..95).contains(&docs.count()), "{distance}: {}", docs.count());
    }
    assert!(words.documents_apart((pair[0], pair[1]), 5).unwrap().is_none());
}
