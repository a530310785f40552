//! Keywords of segments, compared with the texts: their documents, counts and positions, built and merged.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use proptest::prelude::*;
use remora_index::{
    Bitmap,
    segment::{Document, MergeInput, Segment, SegmentBuilder, SegmentSpec, WordsSpec, merge},
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
