//! The snapshot that a reader holds, with the state of every table at one position; and the newest
//! snapshot, which the writer and the merges replace.

mod activity;
mod hidden_rows;
mod published;
mod same_keys;
mod segment_view;
mod united;
mod united_rows;
mod usage;

use std::{collections::HashMap, sync::Arc};

use remora_index::paths::PathSpec;

pub(crate) use activity::{Activity, Done};
pub(crate) use hidden_rows::HiddenRows;
pub(crate) use published::{Claim, Claims, Published};
pub(crate) use segment_view::SegmentView;
pub(crate) use united::{United, UnitedViews, of_other_servers};
pub(crate) use usage::UsageCounters;

use crate::{
    Position, Schema, SourcePositions,
    encode::RowFormat,
    schema::Synonyms,
    storage::{
        rows::{RowReader, rows_at},
        store::StoreSnapshot,
    },
};

/// The state of all tables at one position. It is published by an atomic pointer swap.
pub(crate) struct Snapshot {
    /// The position of the last batch in it.
    pub position: Position,
    /// The positions of the sources.
    pub sources: SourcePositions,
    /// The tables by name.
    pub tables: HashMap<Arc<str>, Arc<TableView>>,
    /// Cached views of tables that are read as one.
    pub united: UnitedViews,
}

impl Snapshot {
    /// A snapshot.
    pub fn new(
        position: Position,
        sources: SourcePositions,
        tables: HashMap<Arc<str>, Arc<TableView>>,
    ) -> Self {
        Self { position, sources, tables, united: UnitedViews::default() }
    }

    /// The same snapshot with other tables.
    pub fn with_tables(&self, tables: HashMap<Arc<str>, Arc<TableView>>) -> Self {
        Self::new(self.position, self.sources.clone(), tables)
    }
}

/// One table at one position.
#[derive(Clone)]
pub(crate) struct TableView {
    /// The table's number in the store; never given to another table.
    pub number: u32,
    /// The definition. Segments may be older: a column that a segment lacks is NULL in all its documents.
    pub schema: Arc<Schema>,
    /// How its rows are stored.
    pub format: Arc<RowFormat>,
    /// The version of the definition: the batch that set it; 0 if that was before the directory was opened.
    pub defined: Position,
    /// The specifications of the definition's paths, in its order.
    pub paths: Arc<[PathSpec]>,
    /// The definition's synonyms.
    pub synonyms: Arc<Synonyms>,
    /// The last batch that changed one of its rows.
    pub changed: Position,
    /// The segments, oldest first. A live key is in exactly one of them.
    pub segments: Vec<SegmentView>,
    /// For tables read as one, the name of each and the number of its segments, in order; empty for other tables.
    pub parts: Arc<[(String, usize)]>,
    /// The rows at the same position.
    pub rows: Arc<dyn RowReader>,
    /// The number under which rows of the table are staged, if any. A staged row takes precedence
    /// over the table's own.
    pub staged: Option<u32>,
    /// The table's counters of look-ups and merges.
    pub activity: Arc<Activity>,
    /// The table's usage counters of indexes.
    pub usage: Arc<UsageCounters>,
}

impl TableView {
    /// The same table at a later snapshot of the store, last changed at `changed`.
    pub fn at(
        &self,
        store: &Arc<dyn StoreSnapshot>,
        changed: Position,
        segments: Vec<SegmentView>,
    ) -> Self {
        let rows = rows_at(store, self.number, &self.format, self.staged);
        Self { changed, segments, rows, ..self.clone() }
    }

    /// The number of rows of the view.
    pub fn live_count(&self) -> u64 {
        self.segments.iter().map(|view| u64::from(view.live_count())).sum()
    }
}
