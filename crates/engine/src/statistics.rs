//! Statistics of a table.

use remora_index::segment::IndexSpec;

use crate::{
    Schema,
    indexing::{index_for, index_specs},
    merge,
    schema::PrefixColumn,
    snapshot::{Done, SegmentView},
};

/// Statistics of a table. All are exact, except as noted.
#[derive(Clone, Debug, Default)]
pub struct TableStatistics {
    /// The number of rows.
    pub rows: u64,
    /// The number of segments.
    pub segments: u64,
    /// Distinct terms; at least those of the largest segment.
    pub terms: u64,
    /// The number of postings: pairs of term and row.
    pub postings: u64,
    /// The number of positions.
    pub positions: u64,
    /// Posting lists stored as bitmaps.
    pub bitmap_lists: u64,
    /// Bytes of the index in memory.
    pub index_bytes: u64,
    /// Bytes of the table's rows on disk, without the journal.
    pub store_bytes: u64,
    /// Code points of text in indexed text columns, after normalisation.
    pub text_chars: u64,
    /// Whether a merge runs now.
    pub merging: bool,
    /// Segments by size, the smallest first; levels without segments are left out.
    pub levels: Vec<LevelStatistics>,
    /// Look-ups in bloom filters since the directory was opened.
    pub bloom_checks: u64,
    /// Look-ups for which the filter excluded the key, which saved a search.
    pub bloom_saves: u64,
    /// Merges since the directory was opened.
    pub merges: u64,
    /// Bytes of the input segments of these merges.
    pub merged_bytes: u64,
    /// Why the last merge failed; `None` if it did not. Merges of other tables are not affected.
    pub merge_failure: Option<String>,
    /// Why some rows are not indexed by a path; `None` if all are.
    pub path_failure: Option<String>,
    /// The declared secondary indexes, without duplicates.
    pub indexes: Vec<IndexStatistics>,
}

/// The progress of building a secondary index: background merges add one that was declared later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// The columns of the index: `status, created DESC`.
    pub columns: String,
    /// The number of segments that have it, or a longer one with it as a prefix.
    pub segments: u64,
    /// The number of rows in those segments.
    pub rows: u64,
}

/// The segments of one level (tier). Segments of a level are about eight times as large as those of the level before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelStatistics {
    /// The number of the level; level 0 has the smallest segments.
    pub level: u32,
    /// The number of segments.
    pub segments: u64,
    /// Live rows in them.
    pub rows: u64,
    /// Deleted rows in them.
    pub deleted: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl TableStatistics {
    /// Adds the statistics of one segment.
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

    /// Fills in the statistics of the secondary indexes.
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

    /// Fills in the counters of look-ups and merges.
    pub(crate) fn tell(&mut self, done: Done) {
        self.bloom_checks = done.bloom.checks;
        self.bloom_saves = done.bloom.saves;
        self.merges = done.merges;
        self.merged_bytes = done.merged_bytes;
    }
}

/// The columns of an index as text.
fn named(schema: &Schema, spec: &IndexSpec) -> String {
    let prefixes = PrefixColumn::all(schema);
    let parts = spec.parts.iter().map(|part| {
        let descending = if part.descending { " DESC" } else { "" };
        if let Some(prefix) = prefixes.iter().find(|prefix| prefix.id == part.column) {
            let name = schema.shown_name(prefix.column);
            return format!("{name} to {} bytes{descending}", prefix.bytes);
        }
        let place = schema.columns.iter().position(|column| column.id == part.column);
        let name = place.map(|place| schema.shown_name(place)).unwrap_or_default();
        format!("{name}{descending}")
    });
    parts.collect::<Vec<String>>().join(", ")
}
