//! Path values of random documents, compared with a scan of all documents. Merged sections are compared with new
//! builds, and damaged ones must not panic.

use std::{
    collections::BTreeSet,
    ops::{Bound, ControlFlow},
};

use proptest::prelude::*;

use super::{merge::merge, writer::PathWriter, *};
use crate::{
    SectionWriter,
    text::{GONE, Normalization, Pattern},
};

fn spec() -> PathSpec {
    PathSpec { id: 7, label: b"doc.year".to_vec(), kind: PathKind::Values }
}

/// The values at a path in these documents, collected in pieces of this many bytes.
fn collected<V: AsRef<[u8]>>(
    spec: PathSpec,
    documents: &[Vec<V>],
    piece_bytes: usize,
) -> PathsBuilder {
    let mut builder = PathsBuilder::with_pieces(&[spec], piece_bytes);
    let mut keys = PathKeys::default();
    for values in documents {
        keys.clear();
        values.iter().for_each(|value| keys.push(|out| out.extend_from_slice(value.as_ref())));
        keys.end_path();
        builder.add(&keys).unwrap();
    }
    builder
}

/// The bytes of a segment that contains only these paths.
fn written(paths: PathsBuilder) -> Vec<u8> {
    let mut out = SectionWriter::new();
    paths.finish(&mut out).unwrap();
    out.finish()
}

/// The index of the values of these documents.
fn built(documents: &[Vec<Vec<u8>>]) -> PathIndex {
    let bytes = written(collected(spec(), documents, PIECE_BYTES));
    let sections = crate::Sections::open(bytes).unwrap();
    PathIndex::open(&sections, spec().id, documents.len() as u32).unwrap().unwrap()
}

/// The index of the values of these documents in the blocks that earlier versions wrote.
fn built_in_long_blocks(documents: &[Vec<Vec<u8>>]) -> PathIndex {
    let mut writer = PathWriter::with_room(documents.len() as u32, 0);
    writer.block_entries = MAX_BLOCK_ENTRIES;
    expected(documents).iter().for_each(|(value, doc)| writer.push(value, *doc).unwrap());
    let mut out = SectionWriter::new();
    writer.add_to(&spec(), &mut out);
    let sections = crate::Sections::open(out.finish()).unwrap();
    PathIndex::open(&sections, spec().id, documents.len() as u32).unwrap().unwrap()
}

fn entries(index: &PathIndex) -> Vec<(Vec<u8>, u32)> {
    let (mut all, mut entries) = (Vec::new(), index.entries().unwrap());
    while let Some((value, doc)) = entries.next().unwrap() {
        all.push((value.to_vec(), doc));
    }
    all
}

fn expected(documents: &[Vec<Vec<u8>>]) -> BTreeSet<(Vec<u8>, u32)> {
    let of = |(doc, values): (u32, &Vec<Vec<u8>>)| -> Vec<(Vec<u8>, u32)> {
        values.iter().map(|value| (value.clone(), doc)).collect()
    };
    (0..).zip(documents).flat_map(of).collect()
}

/// Documents with few distinct values, so that some blocks begin within the entries of one value,
/// and with some long values.
fn any_documents() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    let few = prop::collection::vec(0_u8..3, 0..3);
    let wide = prop::collection::vec(any::<u8>(), 0..40);
    let value = prop_oneof![8 => few, 2 => wide];
    prop::collection::vec(prop::collection::vec(value, 0..4), 0..700)
}

fn any_bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let value = || prop::collection::vec(0_u8..4, 0..3);
    prop_oneof![
        Just(Bound::Unbounded),
        value().prop_map(Bound::Included),
        value().prop_map(Bound::Excluded)
    ]
}

fn within(value: &[u8], low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> bool {
    let above = match low {
        Bound::Unbounded => true,
        Bound::Included(low) => value >= low.as_slice(),
        Bound::Excluded(low) => value > low.as_slice(),
    };
    above
        && match high {
            Bound::Unbounded => true,
            Bound::Included(high) => value <= high.as_slice(),
            Bound::Excluded(high) => value < high.as_slice(),
        }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn value_searches_match_a_scan(
        documents in any_documents(),
        is_in_long_blocks in any::<bool>(),
        bounds in prop::collection::vec((any_bound(), any_bound()), 1..6),
    ) {
        let index = match is_in_long_blocks {
            true => built_in_long_blocks(&documents),
            false => built(&documents),
        };
        let all = expected(&documents);
        prop_assert_eq!(entries(&index), all.iter().cloned().collect::<Vec<_>>());
        prop_assert_eq!(index.entry_count(), all.len() as u64);
        let all_bounds = [(Bound::Unbounded, Bound::Unbounded)];
        for (low, high) in bounds.iter().chain(&all_bounds) {
            let asked = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            for (backwards, wanted) in [(false, 3), (true, 3), (true, usize::MAX)] {
                let mut walked = Vec::new();
                index.walk(asked, backwards, &mut |value, doc| {
                    walked.push((value.to_vec(), doc));
                    if walked.len() < wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                }).unwrap();
                let is_asked = |(value, _): &&(Vec<u8>, u32)| within(value, low, high);
                let mut expected: Vec<_> = all.iter().filter(is_asked).cloned().collect();
                if backwards {
                    expected.reverse();
                }
                expected.truncate(wanted);
                prop_assert_eq!(walked, expected);
            }
        }
        let docs: BTreeSet<u32> = all.iter().map(|(_, doc)| *doc).collect();
        prop_assert_eq!(index.is_single(), docs.len() == all.len());
        let is_in_any = |(value, _): &&(Vec<u8>, u32)| {
            bounds.iter().any(|(low, high)| within(value, low, high))
        };
        let of_any: BTreeSet<u32> = all.iter().filter(is_in_any).map(|(_, doc)| *doc).collect();
        let ranges = bounds.iter().map(|(low, high)| {
            (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice))
        });
        let found = index.select(ranges).unwrap();
        let found: BTreeSet<u32> =
            (0..documents.len() as u32).filter(|doc| found.contains(*doc)).collect();
        prop_assert_eq!(&found, &of_any);
        for (low, high) in bounds {
            let is_found = |(value, _): &&(Vec<u8>, u32)| within(value, &low, &high);
            let wanted: BTreeSet<u32> = all.iter().filter(is_found).map(|(_, doc)| *doc).collect();
            let (from, to) = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            let found = index.select([(from, to)]).unwrap();
            let found: BTreeSet<u32> =
                (0..documents.len() as u32).filter(|doc| found.contains(*doc)).collect();
            prop_assert_eq!(&found, &wanted);
            let count = all.iter().filter(is_found).count() as u64;
            prop_assert!((count..=count + 256).contains(&index.most_within(from, to).unwrap()));
        }
        // Look up each value that occurs, and one that may be missing.
        let mut values: BTreeSet<&[u8]> = all.iter().map(|(value, _)| value.as_slice()).collect();
        values.insert(&[1, 3]);
        for value in values {
            let wanted = all.iter().filter(|(other, _)| other == value).map(|(_, doc)| *doc);
            let found = index.select([(Bound::Included(value), Bound::Included(value))]).unwrap();
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
        }
    }

    #[test]
    fn merged_values_equal_values_built_from_live_documents(
        documents in any_documents(),
        spread in prop::collection::vec((0_usize..3, any::<bool>()), 700),
    ) {
        let (mut parts, mut maps, mut left) = (vec![Vec::new(); 3], vec![Vec::new(); 3], Vec::new());
        for (values, (part, is_gone)) in documents.into_iter().zip(spread) {
            maps[part].push(if is_gone { GONE } else { left.len() as u32 });
            parts[part].push(values.clone());
            if !is_gone {
                left.push(values);
            }
        }
        let parts: Vec<PathIndex> = parts.iter().map(|part| built(part)).collect();
        let sources: Vec<_> = parts.iter().zip(maps.iter().map(Vec::as_slice)).collect();
        let mut merged = SectionWriter::new();
        merge(&sources, left.len() as u32, &spec(), &mut merged).unwrap();
        prop_assert_eq!(merged.finish(), written(collected(spec(), &left, PIECE_BYTES)));
    }

    #[test]
    fn damaged_values_are_errors_or_other_values(
        documents in any_documents(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let index = built(&documents);
        let mut bytes = index.entries.to_vec();
        for (at, byte) in changes {
            if let Some(place) = (!bytes.is_empty()).then(|| at.index(bytes.len())) {
                bytes[place] = byte;
            }
        }
        let damaged = PathIndex { entries: Slice::new(bytes), ..index };
        let mut entries = match damaged.entries() {
            Ok(entries) => entries,
            Err(_) => return Ok(()),
        };
        let mut count = 0;
        while let Ok(Some((_, doc))) = entries.next() {
            prop_assert!(doc < damaged.doc_count);
            count += 1;
            prop_assert!(count <= 10_000_000);
        }
        let _ = damaged.select([(Bound::Included(&[1][..]), Bound::Excluded(&[2][..]))]);
        let _ = damaged.select([(Bound::Included(&[1][..]), Bound::Included(&[1][..]))]);
        let _ = damaged.most_within(Bound::Included(&[1]), Bound::Excluded(&[2]));
    }
}

fn texts_spec() -> PathSpec {
    let kind = PathKind::Texts(Normalization::default());
    PathSpec { id: 9, label: b"doc.title".to_vec(), kind }
}

/// Merges the pieces of a path for the live documents; the others are left out.
fn of_pieces(
    spec: &PathSpec,
    pieces: &PathPieces,
    is_live: impl Fn(usize) -> bool,
    count: usize,
) -> crate::Result<Vec<u8>> {
    let mut next = 0;
    let map = (0..count).map(|doc| {
        let new = if is_live(doc) { next } else { GONE };
        next += u32::from(new != GONE);
        new
    });
    let map: Vec<u32> = map.collect();
    let mut out = SectionWriter::new();
    PathPart::merge(&pieces.sources(&map)?, next, spec, &mut out)?;
    Ok(out.finish())
}

proptest! {
    /// Values collected in pieces result in the same bytes as values collected at once, and the
    /// size of the collected values is bounded.
    #[test]
    fn values_added_in_pieces_equal_whole_values(
        documents in any_documents(),
        piece_bytes in 1_usize..3_000,
        gone in prop::collection::vec(any::<bool>(), 700),
        taken in 0_usize..=700,
    ) {
        let whole = collected(spec(), &documents, usize::MAX);
        let pieces = collected(spec(), &documents, piece_bytes);
        let of_document = |values: &Vec<Vec<u8>>| {
            values.iter().map(|value| value.len() + size_of::<usize>()).sum::<usize>() + 8
        };
        let largest = documents.iter().map(of_document).max().unwrap_or_default();
        let most = pieces.most_collected_bytes();
        prop_assert!(most < piece_bytes + largest.max(1), "{} {} {}", most, piece_bytes, largest);
        prop_assert_eq!(written(whole), written(pieces));
        // Only the first documents are in pieces, and some of them are gone.
        let taken = taken.min(documents.len());
        let found = collected(spec(), &documents[..taken], piece_bytes).finish_pieces().unwrap();
        let is_live = |doc: usize| doc < taken && !gone[doc];
        let left = documents.iter().enumerate().filter(|(doc, _)| is_live(*doc));
        let left: Vec<_> = left.map(|(_, values)| values.clone()).collect();
        let merged = of_pieces(&spec(), &found[0], is_live, documents.len()).unwrap();
        prop_assert_eq!(merged, written(collected(spec(), &left, usize::MAX)));
        // If a live document is in no piece, the merge is an error.
        if taken < documents.len() {
            let all = of_pieces(&spec(), &found[0], |doc| doc <= taken, documents.len());
            prop_assert!(all.is_err());
        }
    }

    /// Texts collected in pieces result in the same bytes too, and a search finds the same
    /// documents as a scan.
    #[test]
    fn texts_added_in_pieces_equal_whole_texts(
        documents in prop::collection::vec(prop::collection::vec("[abB é]{0,5}", 0..3), 1..40),
        piece_bytes in 1_usize..200,
        piece in "[abB é]{1,3}",
    ) {
        let normalization = Normalization::default();
        let whole = written(collected(texts_spec(), &documents, usize::MAX));
        prop_assert_eq!(&whole, &written(collected(texts_spec(), &documents, piece_bytes)));
        let sections = crate::Sections::open(whole).unwrap();
        let found = PathTexts::open(&sections, texts_spec().id, documents.len() as u32);
        let found = found.unwrap().unwrap();
        prop_assume!(!piece.ends_with(' '));
        let wanted = normalization.apply(&piece).into_owned();
        let holds = |texts: &Vec<String>| {
            texts.iter().any(|text| normalization.apply(text).contains(&wanted))
        };
        let expected: Vec<u32> =
            (0..).zip(&documents).filter(|(_, texts)| holds(texts)).map(|(doc, _)| doc).collect();
        let pattern = Pattern::new(&piece, &normalization).unwrap();
        let matches = found.index().find(&pattern).unwrap();
        prop_assert!(!matches.verify);
        prop_assert_eq!(matches.docs.iter().collect::<Vec<u32>>(), expected);
    }
}

/// The pieces of all paths end at the same documents, and the limit applies to all paths together.
#[test]
fn paths_share_the_memory_limit_of_one_collection() {
    let other = PathSpec { id: 8, label: b"doc.name".to_vec(), kind: PathKind::Values };
    let specs = [spec(), texts_spec(), other];
    let (mut builder, mut whole) =
        (PathsBuilder::with_pieces(&specs, 1_000), PathsBuilder::new(&specs));
    let mut keys = PathKeys::default();
    for number in 0..500_u32 {
        keys.clear();
        for path in 0..3_u32 {
            if number % (path + 2) != 0 {
                keys.push(|out| out.extend(format!("{:03}", number * 7 % 101).bytes()));
            }
            keys.end_path();
        }
        builder.add(&keys).unwrap();
        whole.add(&keys).unwrap();
        // The largest of these documents counts as 3 * (3 + 8 + 8) bytes.
        assert!(builder.most_collected_bytes() < 1_000 + 57);
    }
    assert!(builder.bytes() > 0 && whole.most_collected_bytes() > 10_000);
    assert_eq!(written(whole), written(builder));
    let mut builder = PathsBuilder::with_pieces(&specs, 1_000);
    assert!(builder.add(&PathKeys::default()).is_err());
}

#[test]
fn invalid_text_is_refused() {
    let mut texts = PathsBuilder::new(&[texts_spec()]);
    let mut keys = PathKeys::default();
    keys.push(|out| out.push(0xff));
    keys.end_path();
    assert!(texts.add(&keys).is_err());
}

/// The values fill whole blocks, so that a search after the last one does not begin within a
/// block.
#[test]
fn search_behind_all_values_finds_nothing() {
    for count in [1_u8, 2, 31, 32, 33, 90] {
        let documents: Vec<Vec<Vec<u8>>> = (0..count).map(|number| vec![vec![number]]).collect();
        let index = built(&documents);
        for low in [Bound::Excluded(&[count - 1][..]), Bound::Included(&[count])] {
            let mut found = Vec::new();
            let mut note = |value: &[u8], doc: u32| {
                found.push((value.to_vec(), doc));
                ControlFlow::Continue(())
            };
            index.walk((low, Bound::Unbounded), false, &mut note).unwrap();
            assert_eq!(found, [], "of {count}");
            let selected = index.select([(low, Bound::Unbounded)]).unwrap();
            assert_eq!(selected.count(), 0, "of {count}");
        }
        let behind = [count];
        let same = (Bound::Included(&behind[..]), Bound::Included(&behind[..]));
        assert_eq!(index.select([same]).unwrap().count(), 0, "of {count}");
    }
}
