//! Statistics of a table.

use remora_index::segment::IndexSpec;

use crate::{
    Schema,
    indexing::{index_for, index_specs},
    merge,
    snapshot::{Done, SegmentView},
};

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
    /// The tree: segments by their size, the smallest first; levels without segments are left out.
    pub levels: Vec<LevelStatistics>,
    /// How often look-ups by key asked a bloom filter since the directory was opened.
    pub bloom_checks: u64,
    /// How often it said that the key is not there, so that nothing was searched.
    pub bloom_saves: u64,
    /// Merges since the directory was opened.
    pub merges: u64,
    /// Bytes of the segments that they read.
    pub merged_bytes: u64,
    /// Why the last merge failed; `None` if it did not. Other tables are merged all the same.
    pub merge_failure: Option<String>,
    /// Why some rows are not indexed by a path and stay so; `None` if that is not so.
    pub path_failure: Option<String>,
    /// The secondary indexes that are declared, each once.
    pub indexes: Vec<IndexStatistics>,
}

/// How far a secondary index is made: merges in the background make one that was declared later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// Its columns: `status, created DESC`.
    pub columns: String,
    /// The segments that have it, or a longer one that begins with it.
    pub segments: u64,
    /// Rows of those.
    pub rows: u64,
}

/// The segments of one level: each level's are eight times as large as the last one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelStatistics {
    /// Its number: 0 has the smallest segments.
    pub level: u32,
    /// Its segments.
    pub segments: u64,
    /// Rows that are in them and not deleted.
    pub rows: u64,
    /// Rows that are in them and deleted.
    pub deleted: u64,
    /// Bytes of them.
    pub bytes: u64,
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
        self.add_to_level(view);
    }

    /// Tells of the secondary indexes of a table with these segments.
    pub(crate) fn tell_indexes(&mut self, schema: &Schema, segments: &[SegmentView]) {
        let specs = index_specs(schema);
        let figures = specs.iter().map(|spec| {
            let having =
                segments.iter().filter(|view| index_for(&view.segment, spec, &specs).is_some());
            let mut figures =
                IndexStatistics { columns: named(schema, spec), ..IndexStatistics::default() };
            having.for_each(|view| {
                figures.segments += 1;
                figures.rows += u64::from(view.live_count());
            });
            figures
        });
        self.indexes = figures.collect();
    }

    fn add_to_level(&mut self, view: &SegmentView) {
        let level = merge::tier(view.bytes());
        let place = self.levels.partition_point(|known| known.level < level);
        if self.levels.get(place).is_none_or(|known| known.level != level) {
            self.levels.insert(place, LevelStatistics { level, ..LevelStatistics::default() });
        }
        if let Some(known) = self.levels.get_mut(place) {
            known.segments += 1;
            known.rows += u64::from(view.live_count());
            known.deleted += u64::from(view.deleted_count);
            known.bytes += view.bytes();
        }
    }

    /// Tells what was done with the table.
    pub(crate) fn tell(&mut self, done: Done) {
        self.bloom_checks = done.bloom.checks;
        self.bloom_saves = done.bloom.saves;
        self.merges = done.merges;
        self.merged_bytes = done.merged_bytes;
    }
}

/// The columns of an index.
fn named(schema: &Schema, spec: &IndexSpec) -> String {
    let parts = spec.parts.iter().map(|part| {
        let place = schema.columns.iter().position(|column| column.id == part.column);
        let name = place.map(|place| schema.shown_name(place)).unwrap_or_default();
        format!("{name}{}", if part.descending { " DESC" } else { "" })
    });
    parts.collect::<Vec<String>>().join(", ")
}
