//! Damaged segments with corrected checksums, which anyone with write access to the data directory can create. They are
//! refused or give some answer, and never panic.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{ops::Bound, sync::OnceLock};

use proptest::prelude::*;
use remora_index::{
    SectionWriter, Sections,
    column::{Cell, ColumnKind, Predicate},
    paths::{PathKeys, PathKind, PathSpec},
    segment::{
        ColumnSpec, Document, IndexPart, IndexSpec, MergeInput, Segment, SegmentBuilder,
        SegmentSpec, TextSpec, merge,
    },
    text::{Normalization, Pattern},
};

fn spec() -> SegmentSpec {
    SegmentSpec {
        columns: vec![
            ColumnSpec { id: 1, kind: ColumnKind::Ordinal },
            ColumnSpec { id: 2, kind: ColumnKind::Bytes },
        ],
        texts: vec![TextSpec { id: 3, normalization: Normalization::default() }],
        indexes: vec![IndexSpec {
            id: 4,
            parts: vec![IndexPart { column: 2, descending: false, order: None }],
        }],
        words: Vec::new(),
        paths: vec![
            PathSpec { id: 5, label: b"doc.n".to_vec(), kind: PathKind::Values },
            PathSpec {
                id: 6,
                label: b"doc.t".to_vec(),
                kind: PathKind::Texts(Normalization::default()),
            },
        ],
    }
}

/// Enough documents for blocks, bitmaps and suffix lists.
fn sound() -> Vec<u8> {
    let mut builder = SegmentBuilder::new(&spec());
    for key in 0..1500u64 {
        let text = format!("the {:x} of {}, 東京{}都 c++", key * 0x9e37_79b9, key % 50, key % 7);
        let name = format!("name {}", key % 300);
        let columns = [Cell::Ordinal(key % 90), Cell::Bytes(name.as_bytes())];
        let texts = [vec![text.as_str()]];
        let mut values = PathKeys::default();
        (0..key % 3).for_each(|nth| values.push(|out| out.push((key % 9 + nth) as u8)));
        values.end_path();
        (0..key % 2).for_each(|_| values.push(|out| out.extend_from_slice(text.as_bytes())));
        values.end_path();
        let document = Document {
            key: &key.to_be_bytes(),
            columns: &columns,
            texts: &texts,
            words: &[],
            paths: &values,
        };
        builder.add(&document).unwrap();
    }
    builder.finish().unwrap().bytes().unwrap().into_owned()
}

/// Enough documents for lists of neighbours.
fn with_neighbours() -> Vec<u8> {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    let make = || {
        let spec = SegmentSpec { texts: spec().texts, ..SegmentSpec::default() };
        let mut builder = SegmentBuilder::new(&spec);
        let paths = PathKeys::default();
        for key in 0..8200u64 {
            let text = ["the reef of", "of the", "日本の東", "東京日本", ""][key as usize % 5];
            let texts = [vec![text]];
            let key = &key.to_be_bytes();
            let document = Document { key, columns: &[], texts: &texts, words: &[], paths: &paths };
            builder.add(&document).unwrap();
        }
        builder.finish().unwrap().bytes().unwrap().into_owned()
    };
    MADE.get_or_init(make).clone()
}

/// A segment in which bytes of one section with this name are replaced, with correct checksums.
fn damaged(
    sound: Vec<u8>,
    named: &[u8],
    section: usize,
    changes: &[(usize, u8)],
    cut: usize,
) -> Vec<u8> {
    let sections = Sections::open(sound).unwrap();
    let is_named = |tag: &remora_index::SectionTag| tag.0.starts_with(named);
    let count = sections.sizes().filter(|(tag, ..)| is_named(tag)).count();
    let mut out = SectionWriter::new();
    let mut index = 0;
    for (tag, id, _) in sections.sizes() {
        let mut bytes = sections.get(tag, id).unwrap().to_vec();
        let is_wanted = is_named(&tag) && index == section % count;
        index += usize::from(is_named(&tag));
        if is_wanted && !bytes.is_empty() {
            for (at, value) in changes {
                let at = at % bytes.len();
                bytes[at] = *value;
            }
            bytes.truncate(bytes.len() - cut % bytes.len());
        }
        out.add(tag, id, &bytes);
    }
    out.finish()
}

fn ask_everything(segment: Segment) {
    for doc in [0, 1, 700, 1499, u32::MAX] {
        segment.keys().read(doc, &mut Vec::new());
        if let Some(column) = segment.column(2) {
            let _ = column.get(doc);
        }
    }
    let _ = segment.keys().find(&700u64.to_be_bytes());
    if let Some(column) = segment.column(1) {
        let _ = column.select(&Predicate::OrdinalRange(Bound::Included(5), Bound::Excluded(60)));
    }
    if let Some(text) = segment.text(3) {
        for piece in ["the", "e", "9", "of 3", "東京", "京3都", "c++", "the 9", "都 c", "zz"] {
            let pattern = Pattern::new(piece, &Normalization::default()).unwrap();
            let _ = text.find(&pattern);
            let _ = text.count(&pattern);
            let _ = text.occurrences(&pattern, None, &mut Vec::new());
        }
        let _ = text.find_similar_word("teh", 2);
    }
    if let Some(index) = segment.index(&spec().indexes[0]) {
        let low = Bound::Included(Cell::Bytes(b"name 17"));
        index.range(&[], low, Bound::Unbounded).for_each(|at| _ = index.doc(at));
        let _ = index.is_right();
    }
    if let Some(path) = segment.path(&spec().paths[0]) {
        let _ = path.select([(Bound::Included(&[3][..]), Bound::Excluded(&[7][..]))]);
        let _ = path.most_within(Bound::Included(&[3]), Bound::Unbounded);
    }
    if let Some(texts) = segment.path_texts(&spec().paths[1]) {
        let pattern = Pattern::new("of 3", &Normalization::default()).unwrap();
        let _ = texts.find(&pattern);
    }
    let _ =
        merge(&[MergeInput { segment: segment.into(), deleted: None, paths: Vec::new() }], &spec());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn damaged_segments_never_panic(
        section: usize,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        cut in prop_oneof![3 => Just(0usize), 1 => any::<usize>()],
    ) {
        if let Ok(segment) = Segment::open(damaged(sound(), b"", section, &changes, cut)) {
            ask_everything(segment);
        }
    }

    #[test]
    fn damaged_neighbour_lists_never_panic(
        section: usize,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        cut in prop_oneof![3 => Just(0usize), 1 => any::<usize>()],
    ) {
        let bytes = damaged(with_neighbours(), b"TNB", section, &changes, cut);
        let Ok(segment) = Segment::open(bytes) else { return Ok(()) };
        let text = segment.text(3).unwrap();
        for piece in ["of the", "the of", "the reef", "日本の", "日本の東", "東京日本", "京日本の", "the reef of"] {
            let pattern = Pattern::new(piece, &Normalization::default()).unwrap();
            if let Ok(found) = text.find(&pattern) {
                prop_assert!(found.docs.iter().all(|doc| doc < segment.doc_count()));
            }
            let _ = text.count(&pattern);
            let _ = text.occurrences(&pattern, None, &mut Vec::new());
        }
    }
}
