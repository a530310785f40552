//! A small segment with bytes of one section replaced and its checksums made right: refused or
//! answered, never a panic. The input is the section's number, then (place, place, value) triples.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_index::{
    SectionWriter, Sections,
    segment::{Document, MergeInput, Segment, SegmentBuilder, SegmentSpec, TextSpec, merge},
    text::{Normalization, Pattern},
};

fn spec() -> SegmentSpec {
    let normalization = Normalization::default();
    SegmentSpec { columns: Vec::new(), texts: vec![TextSpec { id: 3, normalization }], ..SegmentSpec::default() }
}

fn sound() -> Vec<u8> {
    let mut builder = SegmentBuilder::new(&spec());
    for key in 0..300u64 {
        let text = format!("the {:x} of {}, 東京{}都 c++", key * 0x9e37_79b9, key % 50, key % 7);
        let texts = [vec![text.as_str()]];
        let document = Document { key: &key.to_be_bytes(), columns: &[], texts: &texts, words: &[] };
        builder.add(&document).unwrap();
    }
    builder.finish().unwrap().bytes().unwrap().into_owned()
}

fuzz_target!(|input: &[u8]| {
    let Some((&section, changes)) = input.split_first() else { return };
    let _ = Segment::open(input.to_vec());
    let sections = Sections::open(sound()).unwrap();
    let count = sections.sizes().count();
    let mut out = SectionWriter::new();
    for (index, (tag, id, _)) in sections.sizes().enumerate() {
        let mut bytes = sections.get(tag, id).unwrap().to_vec();
        if index == usize::from(section) % count && !bytes.is_empty() {
            for change in changes.chunks_exact(3) {
                let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
                bytes[at] = change[2];
            }
        }
        out.add(tag, id, &bytes);
    }
    let Ok(segment) = Segment::open(out.finish()) else { return };
    if let Some(text) = segment.text(3) {
        for piece in ["the", "e", "of 3", "東京", "京3都", "c++", "the 9"] {
            let pattern = Pattern::new(piece, &Normalization::default()).unwrap();
            let _ = text.find(&pattern);
            let _ = text.occurrences(&pattern, None, &mut Vec::new());
        }
    }
    let _ = merge(&[MergeInput { segment: segment.into(), deleted: None }], &spec());
});
