//! Values of random documents beside a look at all of them; merges beside building anew; damage.

use std::{
    collections::BTreeSet,
    ops::{Bound, ControlFlow},
};

use proptest::prelude::*;

use super::{merge::merge, texts::TextsBuilder, *};
use crate::{
    SectionWriter,
    text::{GONE, Normalization, Pattern},
};

fn spec() -> PathSpec {
    PathSpec { id: 7, label: b"doc.year".to_vec(), kind: PathKind::Values }
}

/// The values of documents.
fn built(documents: &[Vec<Vec<u8>>]) -> PathIndex {
    let (mut builder, mut keys) = (PathBuilder::default(), PathKeys::default());
    for values in documents {
        keys.clear();
        values.iter().for_each(|value| keys.push(|out| out.extend_from_slice(value)));
        keys.end_path();
        builder.add(keys.of(0));
    }
    builder.finish_alone(&spec()).unwrap()
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

/// Few values, so that blocks begin within one; and long ones.
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
    fn values_are_found_as_a_look_at_all_finds_them(
        documents in any_documents(),
        bounds in prop::collection::vec((any_bound(), any_bound()), 1..6),
    ) {
        let index = built(&documents);
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
    }

    #[test]
    fn merged_values_are_those_that_are_built_of_what_is_left(
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
        let (mut merged, mut whole) = (crate::SectionWriter::new(), crate::SectionWriter::new());
        merge(&sources, left.len() as u32, &spec(), &mut merged).unwrap();
        let (mut builder, mut keys) = (PathBuilder::default(), PathKeys::default());
        for values in &left {
            keys.clear();
            values.iter().for_each(|value| keys.push(|out| out.extend_from_slice(value)));
            keys.end_path();
            builder.add(keys.of(0));
        }
        builder.finish(&spec(), &mut whole).unwrap();
        prop_assert_eq!(merged.finish(), whole.finish());
    }

    #[test]
    fn damaged_values_are_errors_or_others(
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
        let _ = damaged.most_within(Bound::Included(&[1]), Bound::Excluded(&[2]));
    }
}

fn texts_spec() -> PathSpec {
    let kind = PathKind::Texts(Normalization::default());
    PathSpec { id: 9, label: b"doc.title".to_vec(), kind }
}

/// The bytes of a segment that has the texts of documents alone.
fn written(texts: TextsBuilder) -> Vec<u8> {
    let mut out = SectionWriter::new();
    texts.finish(&texts_spec(), &mut out).unwrap();
    out.finish()
}

proptest! {
    /// Runs of texts are what is indexed at once, to the byte, and find what reading all texts finds.
    #[test]
    fn texts_in_runs_are_texts_at_once(
        documents in prop::collection::vec(prop::collection::vec("[abB é]{0,5}", 0..3), 1..40),
        run_bytes in 1_usize..60,
        piece in "[abB é]{1,3}",
    ) {
        let normalization = Normalization::default();
        let mut whole = TextsBuilder::new(normalization);
        let mut runs = TextsBuilder::with_runs(normalization, run_bytes);
        let mut alone = PathPartBuilder::new(texts_spec().kind);
        for texts in &documents {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            whole.add(&texts).unwrap();
            runs.add(&texts).unwrap();
            alone.add(texts.iter().map(|text| text.as_bytes())).unwrap();
        }
        prop_assert_eq!(written(whole), written(runs));
        let PathPart::Texts(found) = alone.finish_alone(&texts_spec()).unwrap() else { panic!() };
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

#[test]
fn what_is_no_text_is_refused() {
    let mut texts = PathPartBuilder::new(texts_spec().kind);
    assert!(texts.add([&[0xff_u8][..]].into_iter()).is_err());
}
