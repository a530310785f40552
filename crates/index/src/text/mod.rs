//! The text index: exact substring matching from a vocabulary and positions.

use crate::{DocSet, Result};

/// How text is normalised before it is cut into atoms, the same for documents and queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normalization {
    /// Unicode NFKC.
    pub nfkc: bool,
    /// Width after NFKC.
    pub width: Width,
    /// Full Unicode case folding.
    pub fold_case: bool,
    /// Drop accents (nonspacing marks of a canonical decomposition).
    pub fold_accents: bool,
}

/// Full-width and half-width forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// As NFKC left them.
    Keep,
    /// ICU's Fullwidth-Halfwidth transform.
    Narrow,
    /// ICU's Halfwidth-Fullwidth transform.
    Wide,
}

impl Default for Normalization {
    fn default() -> Self {
        Self { nfkc: true, width: Width::Keep, fold_case: true, fold_accents: false }
    }
}

impl Normalization {
    /// The normalised text; borrowed where nothing changes.
    pub fn apply<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, str> {
        std::borrow::Cow::Borrowed(text)
    }
}

/// A normalised, non-empty text to be found, cut into atoms once for all segments.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
}

impl Pattern {
    /// Normalises and cuts `text`; `None` if nothing is left of it.
    pub fn new(text: &str, normalization: &Normalization) -> Option<Self> {
        let text = normalization.apply(text).into_owned();
        (!text.is_empty()).then_some(Self { text })
    }
    /// The normalised text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The documents that hold a pattern.
pub struct Matches {
    /// The documents; deleted ones are still among them.
    pub docs: DocSet,
    /// The positions could not tell (a pattern that ends in a single space): `docs` is then a
    /// superset and the caller reads the texts of those documents.
    pub verify: bool,
}

/// One text index of a segment.
pub struct TextIndex {}

impl TextIndex {
    /// The documents in which some column's normalised text contains the pattern.
    pub fn find(&self, _pattern: &Pattern) -> Result<Matches> {
        Ok(Matches { docs: DocSet::empty(), verify: false })
    }
    /// Calls `visit(document, occurrences)` in ascending order for each document that holds the
    /// pattern; occurrences are counted as `str::matches` does. True means verify, as above
    /// (occurrences are then meaningless).
    pub fn occurrences(&self, _pattern: &Pattern, _visit: &mut dyn FnMut(u32, u32)) -> Result<bool> {
        Ok(false)
    }
    /// The length of a document's normalised text in code points, all columns together.
    pub fn length(&self, _doc: u32) -> u32 {
        0
    }
    /// The sum of the lengths of all documents, deleted ones included.
    pub fn total_length(&self) -> u64 {
        0
    }
    /// The documents that have a word within `distance` (1 or 2) edits of `word` (normalised,
    /// one word atom).
    pub fn find_similar_word(&self, _word: &str, _distance: u8) -> Result<DocSet> {
        Ok(DocSet::empty())
    }
    /// Terms and postings, for reports.
    pub fn statistics(&self) -> TextStatistics {
        TextStatistics::default()
    }
}

/// What a text index holds, for reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextStatistics {
    /// Distinct terms.
    pub terms: u64,
    /// Pairs of term and document.
    pub postings: u64,
    /// Occurrences.
    pub positions: u64,
    /// Posting lists held as bits.
    pub bitmap_lists: u64,
    /// Bytes of the whole text index.
    pub bytes: u64,
}
