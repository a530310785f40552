//! HIGHLIGHT: snippets of the original text with the matches marked.
//!
//! Matches are found in the normalised text but shown in the original. The original is cut into grapheme clusters,
//! each is normalised alone, and the offsets are recorded. If clusters normalise differently together than alone
//! (Hangul letters that compose across clusters), the text between two spaces becomes one unit. A match marks
//! every unit that it touches.
//!
//! Terms under an even number of NOTs are marked, in the first text index that has a match. Overlapping and
//! adjacent matches are merged. Half of `snippet_chars` is shown on each side of a match. Windows that touch are
//! merged, and at most `max_fragments` of them are joined by `...`. Without an exact match (for example with
//! FUZZY) the beginning of the text is shown. Nothing is escaped: the tags are inserted as they are.

use std::{cell::OnceCell, ops::Range};

use memchr::memmem::Finder;
use unicode_segmentation::UnicodeSegmentation;

use remora_index::text::Normalization;

use super::expression::{Expression, Matcher};
use crate::{Highlight, Row, Schema, TextDef, indexing::indexed_texts};

/// Marks matches in the texts of rows.
pub(super) struct Highlighter<'p> {
    indexes: Vec<IndexMarker<'p>>,
    style: &'p Highlight,
}

/// The terms as patterns of one text index.
struct IndexMarker<'p> {
    definition: &'p TextDef,
    finders: Vec<Finder<'p>>,
    ascii: OnceCell<Vec<Option<u8>>>,
}

impl<'p> Highlighter<'p> {
    /// Prepares the terms of an expression.
    pub fn new(
        schema: &'p Schema,
        expression: Option<&'p Expression>,
        style: &'p Highlight,
    ) -> Self {
        let indexes = schema.texts.iter().enumerate().map(|(index, definition)| {
            let terms = expression.map_or(&[][..], |expression| &expression.terms);
            let positive = terms.iter().filter(|term| term.positive);
            let matchers = positive.filter_map(|term| term.matchers.get(index)?.as_ref());
            let finders = matchers.map(|matcher: &Matcher| Finder::new(matcher.text())).collect();
            IndexMarker { definition, finders, ascii: OnceCell::new() }
        });
        Self { indexes: indexes.collect(), style }
    }

    /// The marked text of a row.
    pub fn snippet(&self, row: &Row) -> String {
        let mut beginning = None;
        for index in &self.indexes {
            let (text, hits) = index.hits(row);
            if !hits.is_empty() {
                return marked(&text, &hits, self.style);
            }
            beginning.get_or_insert(text);
        }
        let text = beginning.unwrap_or_default();
        let end =
            text.char_indices().nth(self.style.snippet_chars).map_or(text.len(), |(at, _)| at);
        text[..end].to_owned()
    }
}

impl IndexMarker<'_> {
    /// The original texts of a row, joined by spaces, and the ranges to be marked: ascending and disjoint.
    fn hits(&self, row: &Row) -> (String, Vec<Range<usize>>) {
        let (mut joined, mut hits) = (String::new(), Vec::new());
        for text in indexed_texts(self.definition, row) {
            if !joined.is_empty() {
                joined.push(' ');
            }
            let start = joined.len();
            let found = self.hits_of_text(&text).into_iter();
            hits.extend(found.map(|hit| start + hit.start..start + hit.end));
            joined.push_str(&text);
        }
        (joined, merged(hits))
    }

    fn hits_of_text(&self, text: &str) -> Vec<Range<usize>> {
        if self.finders.is_empty() {
            return Vec::new();
        }
        let ascii = self.ascii.get_or_init(|| ascii_table(&self.definition.normalization));
        let mapped = Mapped::new(text, &self.definition.normalization, ascii);
        let hits = self.finders.iter().flat_map(|finder| {
            let length = finder.needle().len();
            let found = finder.find_iter(mapped.normalized.as_bytes());
            found.map(move |at| at..at + length)
        });
        hits.map(|hit| mapped.original(hit)).collect()
    }
}

/// Sorts ranges, and merges those that overlap or touch.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, kept| {
        let meets = next.start <= kept.end;
        if meets {
            kept.end = kept.end.max(next.end);
        }
        meets
    });
    ranges
}

/// A normalised text with a map to offsets of the original.
struct Mapped {
    normalized: String,
    /// The start of each unit in the normalised text and in the original, then both lengths.
    units: Vec<(usize, usize)>,
}

impl Mapped {
    fn new(text: &str, normalization: &Normalization, ascii: &[Option<u8>]) -> Self {
        let mut mapped = Self { normalized: String::new(), units: Vec::new() };
        let mut start = 0;
        for stretch in text.split_inclusive(' ') {
            mapped.push(stretch, start, normalization, ascii);
            start += stretch.len();
        }
        mapped.units.push((mapped.normalized.len(), text.len()));
        mapped
    }

    fn push(
        &mut self,
        stretch: &str,
        start: usize,
        normalization: &Normalization,
        ascii: &[Option<u8>],
    ) {
        let (units, bytes) = (self.units.len(), self.normalized.len());
        for (at, cluster) in stretch.grapheme_indices(true) {
            self.units.push((self.normalized.len(), start + at));
            match cluster.as_bytes() {
                [byte] => match ascii.get(usize::from(*byte)).copied().flatten() {
                    Some(byte) => self.normalized.push(char::from(byte)),
                    None => self.normalized.push_str(&normalization.apply(cluster)),
                },
                _ => self.normalized.push_str(&normalization.apply(cluster)),
            }
        }
        if stretch.is_ascii() {
            return;
        }
        let whole = normalization.apply(stretch);
        if self.normalized[bytes..] != *whole {
            self.units.truncate(units);
            self.units.push((bytes, start));
            self.normalized.truncate(bytes);
            self.normalized.push_str(&whole);
        }
    }

    /// The range of the original's units that a range of the normalised text touches.
    fn original(&self, range: Range<usize>) -> Range<usize> {
        let first = self.units.partition_point(|unit| unit.0 <= range.start).saturating_sub(1);
        let behind = self.units.partition_point(|unit| unit.0 < range.end);
        let at = |unit: usize| self.units.get(unit).map_or(0, |unit| unit.1);
        at(first)..at(behind)
    }
}

/// For each ASCII byte, the single byte it normalises to, if it does.
fn ascii_table(normalization: &Normalization) -> Vec<Option<u8>> {
    let entry = |byte: u8| {
        let text = char::from(byte).to_string();
        match normalization.apply(&text).as_bytes() {
            [single] => Some(*single),
            _ => None,
        }
    };
    (0..128).map(entry).collect()
}

/// The windows around the hits, marked and joined.
fn marked(text: &str, hits: &[Range<usize>], style: &Highlight) -> String {
    let windows = windows(text, hits, style);
    let mut out = String::new();
    for (index, window) in windows.iter().enumerate() {
        if index > 0 {
            out.push_str("...");
        }
        let mut shown = window.start;
        for hit in hits.iter().filter(|hit| window.start <= hit.start && hit.end <= window.end) {
            out.push_str(&text[shown..hit.start]);
            out.push_str(&style.open);
            out.push_str(&text[hit.start..hit.end]);
            out.push_str(&style.close);
            shown = hit.end;
        }
        out.push_str(&text[shown..window.end]);
    }
    out
}

/// The ranges shown: half of the snippet's length on each side of each match, cut between grapheme clusters.
/// Ranges that touch are merged.
fn windows(text: &str, hits: &[Range<usize>], style: &Highlight) -> Vec<Range<usize>> {
    let half = style.snippet_chars / 2;
    let mut windows: Vec<Range<usize>> = Vec::new();
    for hit in hits {
        let start = match windows.last() {
            Some(last) if hit.start <= last.end => hit.start,
            _ => back(text, hit.start, half),
        };
        let end = hit.end + forward(&text[hit.end..], half);
        let count = windows.len();
        match windows.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ if count == style.max_fragments.max(1) => break,
            _ => windows.push(start..end),
        }
    }
    windows
}

/// The offset at most `chars` characters before `at`.
fn back(text: &str, at: usize, chars: usize) -> usize {
    let mut left = chars;
    let clusters = text[..at].graphemes(true).rev();
    let shown = clusters.take_while(|cluster| fits(cluster, &mut left));
    at - shown.map(str::len).sum::<usize>()
}

/// The bytes of the first clusters of at most `chars` characters.
fn forward(text: &str, chars: usize) -> usize {
    let mut left = chars;
    text.graphemes(true).take_while(|cluster| fits(cluster, &mut left)).map(str::len).sum()
}

/// Whether the cluster fits into the remaining length; if so, subtracts it.
fn fits(cluster: &str, left: &mut usize) -> bool {
    let rest = left.checked_sub(cluster.chars().count());
    *left = rest.unwrap_or(0);
    rest.is_some()
}
