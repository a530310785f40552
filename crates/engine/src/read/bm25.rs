//! BM25 with the statistics of the whole table: the contribution of a term to a row's score.
//!
//! ```text
//! score(row) = Σ idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · length / average length))
//! idf(t)     = ln((N − df + 0.5) / (df + 0.5) + 1)
//! ```
//! The sum is over the distinct terms of the expression that stand under an even number of NOTs,
//! in the order of the query. `tf` is the number of places where the term begins, overlapping ones
//! included, and `length` the row's length in code points, both over all text indexes. `N`, the
//! average and `df` (rows that hold the term) are of the live rows of the table. Nothing depends
//! on how rows lie in segments, so that scores are the same to the last bit for any number of
//! them. A term of a FUZZY search counts as one occurrence.

use remora_index::text::TextIndex;

use crate::snapshot::{SegmentView, TableView};

/// The contribution of a term of this weight to a document's score.
#[inline]
pub(super) fn part(weight: f64, occurrences: u32, norm: f64) -> f64 {
    let occurrences = f64::from(occurrences);
    weight * occurrences / (occurrences + norm)
}

/// A term that is scored.
#[derive(Clone, Copy)]
pub(super) struct Weighted {
    /// The number of the term in the expression.
    pub term: usize,
    /// `idf · (k1 + 1)`: an upper bound of its contribution to any score.
    pub weight: f64,
}

/// `idf(t)` of a term that `holding` of `rows` rows contain.
pub(super) fn idf(rows: u64, holding: u64) -> f64 {
    let (rows, holding) = (rows as f64, holding as f64);
    ((rows - holding + 0.5) / (holding + 0.5)).ln_1p()
}

/// `k1 · (1 − b + b · length / average length)` of a document.
pub(super) struct Norm {
    base: f64,
    per_character: f64,
}

impl Norm {
    /// The norm for a table.
    pub fn new(view: &TableView, (k1, b): (f64, f64)) -> Self {
        let total: u64 = view.segments.iter().flat_map(|segment| segment.live_lengths.iter()).sum();
        let average = total as f64 / view.live_count().max(1) as f64;
        Self { base: k1 * (1.0 - b), per_character: k1 * b / average.max(f64::MIN_POSITIVE) }
    }

    /// The norms of the documents of one segment.
    pub fn segment<'v>(&self, view: &TableView, segment: &'v SegmentView) -> SegmentNorms<'v> {
        let indexes = view.schema.texts.iter();
        let indexes = indexes.filter_map(|text| segment.segment.text(text.id)).collect();
        SegmentNorms { base: self.base, per_character: self.per_character, indexes }
    }
}

/// The norms of the documents of one segment.
pub(super) struct SegmentNorms<'v> {
    base: f64,
    per_character: f64,
    indexes: Vec<&'v TextIndex>,
}

impl SegmentNorms<'_> {
    /// The norm of a document.
    #[inline]
    pub fn of(&self, doc: u32) -> f64 {
        let length: u64 = self.indexes.iter().map(|index| u64::from(index.length(doc))).sum();
        self.base + self.per_character * length as f64
    }
}
