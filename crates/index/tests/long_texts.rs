//! Searches in texts of a megabyte, compared with a scan: a long text alone, among short ones, and after a merge.
//! `REMORA_SEED` repeats a run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use remora_index::{
    segment::{Document, MergeInput, Segment, SegmentBuilder, SegmentSpec, TextSpec, merge},
    text::{Normalization, Pattern},
};

const LONG_BYTES: usize = 1 << 20;
const TEXT: u32 = 1;
const PATTERNS: u64 = 40;

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

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % limit
    }

    /// A text of about `bytes` bytes, built of the given pieces.
    fn text(&mut self, bytes: usize, pieces: &[&str]) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            text.push_str(pieces[self.below(pieces.len())]);
        }
        text
    }
}

/// Parts that texts are built of: a mixture, one very long word, only separators, one repeated character, Han without a
/// space, many combining marks.
const SHAPES: [&[&str]; 6] = [
    &[
        "river ",
        "Strom",
        " ",
        "  ",
        "東京",
        "都",
        "-",
        "é",
        "e\u{301}",
        "한국어 ",
        "ﾊﾝ",
        "😀",
        "\u{0}",
        "ß",
        "Ａ",
    ],
    &["a", "b", "c"],
    &[" ", ",", "\n", "\u{3000}"],
    &["の"],
    &["東", "京", "都", "日", "本"],
    &["a\u{301}", "\u{301}", "\u{5d0}\u{5b0}", " "],
];

fn build(texts: &[(u64, String)]) -> Arc<Segment> {
    let mut builder = SegmentBuilder::new(&spec());
    for (key, text) in texts {
        let texts = [vec![text.as_str()]];
        builder
            .add(&Document {
                key: &key.to_be_bytes(),
                columns: &[],
                texts: &texts,
                words: &[],
                paths: &remora_index::paths::PathKeys::default(),
            })
            .unwrap();
    }
    Arc::new(builder.finish().unwrap())
}

fn spec() -> SegmentSpec {
    let normalization = Normalization::default();
    let texts = vec![TextSpec { id: TEXT, normalization }];
    SegmentSpec { texts, ..SegmentSpec::default() }
}

/// A random piece of a text: mostly short, sometimes hundreds of characters long.
fn piece(random: &mut Random, texts: &[String]) -> String {
    let text = &texts[random.below(texts.len())];
    let length = [3, 3, 12, 100, 600][random.below(5)];
    let mut start = random.below(text.len().max(1)).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    text[start..].chars().take(1 + random.below(length)).collect()
}

/// Documents with the number of occurrences of the piece in each, by a scan.
fn scan(texts: &[String], piece: &str) -> Vec<(u32, u32)> {
    let borders = borders(piece.as_bytes());
    let starts = |text: &String| occurrences(text.as_bytes(), piece.as_bytes(), &borders);
    (0..).zip(texts.iter().map(starts)).filter(|(_, count)| *count > 0).collect()
}

/// The failure function of Knuth, Morris and Pratt: for each byte of the piece, the length of the longest proper prefix
/// that ends there. A naive search takes quadratic time in texts of one repeated character.
fn borders(piece: &[u8]) -> Vec<usize> {
    let mut borders = vec![0];
    let mut length = 0;
    for &byte in piece.iter().skip(1) {
        length = longer(piece, &borders, length, byte);
        borders.push(length);
    }
    borders
}

/// The length of the prefix that ends at this byte, given the length that ended before it.
fn longer(piece: &[u8], borders: &[usize], mut length: usize, byte: u8) -> usize {
    while length > 0 && (length == piece.len() || piece[length] != byte) {
        length = borders[length - 1];
    }
    length + usize::from(piece[length] == byte)
}

fn occurrences(text: &[u8], piece: &[u8], borders: &[usize]) -> u32 {
    let mut length = 0;
    let mut count = 0;
    for &byte in text {
        length = longer(piece, borders, length, byte);
        count += u32::from(length == piece.len());
    }
    count
}

fn check(segment: &Segment, texts: &[String], piece: &str) {
    let Some(pattern) = Pattern::new(piece, &Normalization::default()) else { return };
    let shown: String = piece.chars().take(40).collect();
    let expected = scan(texts, pattern.text());
    let index = segment.text(TEXT).unwrap();
    let found = index.find(&pattern).unwrap();
    let docs: Vec<u32> = found.docs.iter().collect();
    if found.verify {
        assert!(expected.iter().all(|(doc, _)| docs.contains(doc)), "{shown:?}");
        return;
    }
    assert!(docs.iter().copied().eq(expected.iter().map(|(doc, _)| *doc)), "{shown:?}: {docs:?}");
    let mut occurrences = Vec::new();
    index.occurrences(&pattern, None, &mut occurrences).unwrap();
    assert_eq!(occurrences, expected, "occurrences of {shown:?}");
}

#[test]
fn long_text_searches_match_a_scan() {
    let mut random = Random::seeded();
    let mut texts: Vec<(u64, String)> = Vec::new();
    for (shape, pieces) in (0..).zip(SHAPES) {
        texts.push((shape * 10, random.text(LONG_BYTES, pieces)));
        texts.push((shape * 10 + 1, random.text(30, pieces)));
    }
    texts.push((1_000, String::new()));
    let (even, odd): (Vec<_>, Vec<_>) = texts.iter().cloned().partition(|(key, _)| key % 20 < 10);
    let whole = build(&texts);
    let input = |segment| MergeInput { segment, deleted: None, paths: Vec::new() };
    let merged = merge(&[input(build(&even)), input(build(&odd))], &spec()).unwrap();
    assert!(merged.bytes().unwrap() == whole.bytes().unwrap(), "a merge has other bytes");
    let normalized: Vec<String> =
        texts.iter().map(|(_, text)| Normalization::default().apply(text).into_owned()).collect();
    for _ in 0..PATTERNS {
        let piece = piece(&mut random, &normalized);
        check(&whole, &normalized, &piece);
    }
    // The whole of a text is a piece of it as well.
    check(&whole, &normalized, &normalized[0]);
}
