//! The snapshot that a reader pins, with the state of every table at one position; and the newest snapshot, which the
//! writer and the merges replace.

mod activity;
mod hidden_rows;
mod published;
mod same_keys;
mod segment_view;
mod united;
mod united_rows;
mod usage;

use std::{collections::HashMap, sync::Arc};

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

/// The state of all tables at one position. Published whole by an atomic pointer swap.
pub(crate) struct Snapshot {
    /// The newest batch that is in it.
    pub position: Position,
    /// How far the sources were then.
    pub sources: SourcePositions,
    /// The tables by name.
    pub tables: HashMap<Arc<str>, Arc<TableView>>,
    /// Those that were read as one so far.
    pub united: UnitedViews,
}

impl Snapshot {
    /// A moment.
    pub fn new(
        position: Position,
        sources: SourcePositions,
        tables: HashMap<Arc<str>, Arc<TableView>>,
    ) -> Self {
        Self { position, sources, tables, united: UnitedViews::default() }
    }

    /// The same moment with other tables.
    pub fn with_tables(&self, tables: HashMap<Arc<str>, Arc<TableView>>) -> Self {
        Self::new(self.position, self.sources.clone(), tables)
    }
}

/// One table at one position.
#[derive(Clone)]
pub(crate) struct TableView {
    /// The table's number in the store; never given to another table.
    pub number: u32,
    /// The definition. Segments may be older: what they lack of it is NULL in all their documents.
    pub schema: Arc<Schema>,
    /// How its rows are stored.
    pub format: Arc<RowFormat>,
    /// The batch that gave it this definition; 0 if that was before the directory was opened.
    pub defined: Position,
    /// The definition's synonyms.
    pub synonyms: Arc<Synonyms>,
    /// The newest batch that changed a row of it.
    pub changed: Position,
    /// The segments, oldest first. A live key is in exactly one of them.
    pub segments: Vec<SegmentView>,
    /// Of tables as one, what each is called and how many of the segments are its own, in their order; of another
    /// table nothing.
    pub parts: Arc<[(String, usize)]>,
    /// The rows at the same position.
    pub rows: Arc<dyn RowReader>,
    /// The number under which rows of it are staged that are read in the place of the table's.
    pub staged: Option<u32>,
    /// What was done with the table.
    pub activity: Arc<Activity>,
    /// How often its indexes answered.
    pub usage: Arc<UsageCounters>,
}

impl TableView {
    /// The same table at a later moment of the store, changed last at `changed`.
    pub fn at(
        &self,
        store: &Arc<dyn StoreSnapshot>,
        changed: Position,
        segments: Vec<SegmentView>,
    ) -> Self {
        let rows = rows_at(store, self.number, &self.format, self.staged);
        Self { changed, segments, rows, ..self.clone() }
    }

    /// How many rows the view has.
    pub fn live_count(&self) -> u64 {
        self.segments.iter().map(|view| u64::from(view.live_count())).sum()
    }
}
