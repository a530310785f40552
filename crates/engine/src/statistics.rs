//! The figures of a table.

use crate::{Schema, snapshot::SegmentView};

/// A table's figures, all true.
#[derive(Clone, Debug, Default)]
pub struct TableStatistics {
    /// Rows.
    pub rows: u64,
    /// Segments.
    pub segments: u64,
    /// Distinct terms (of the largest segment at least).
    pub terms: u64,
    /// Pairs of term and row.
    pub postings: u64,
    /// Occurrences.
    pub positions: u64,
    /// Posting lists held as bits.
    pub bitmap_lists: u64,
    /// Bytes of the index in memory.
    pub index_bytes: u64,
    /// Bytes of the row store on disk.
    pub store_bytes: u64,
    /// Code points of text in indexed text columns, after normalisation.
    pub text_chars: u64,
    /// Whether a merge runs now.
    pub merging: bool,
}

impl TableStatistics {
    /// Adds those of one segment.
    pub(crate) fn add(&mut self, schema: &Schema, view: &SegmentView) {
        let mut terms = 0;
        for text in schema.texts.iter().filter_map(|text| view.segment.text(text.id)) {
            let figures = text.statistics();
            terms += figures.terms;
            self.postings += figures.postings;
            self.positions += figures.positions;
            self.bitmap_lists += figures.bitmap_lists;
        }
        self.terms = self.terms.max(terms);
        let deleted = view.deleted.as_ref().map_or(0, |deleted| deleted.memory_bytes());
        self.index_bytes += view.segment.memory_bytes() + deleted as u64;
        self.text_chars += view.live_lengths.iter().sum::<u64>();
    }
}
