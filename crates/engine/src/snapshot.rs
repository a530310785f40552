//! What a reader pins: the state of every table at one position.

use std::{collections::HashMap, sync::Arc};

use remora_index::{Bitmap, segment::Segment};

use crate::{Position, Result, Row, Schema};

/// The state of all tables at one position. Published whole by an atomic pointer swap.
pub(crate) struct Snapshot {
    /// The newest batch that is in it.
    pub position: Position,
    /// The tables by name.
    pub tables: HashMap<Arc<str>, Arc<TableView>>,
}

/// One table at one position.
pub(crate) struct TableView {
    /// The definition the segments were written under.
    pub schema: Arc<Schema>,
    /// The segments, oldest first. A live key is in exactly one of them.
    pub segments: Vec<SegmentView>,
    /// The rows at the same position.
    pub rows: Arc<dyn RowReader>,
}

/// One segment and what is gone from it.
#[derive(Clone)]
pub(crate) struct SegmentView {
    /// The documents.
    pub segment: Arc<Segment>,
    /// Deleted documents; `None` if none.
    pub deleted: Option<Arc<Bitmap>>,
    /// `deleted.count()`.
    pub deleted_count: u32,
    /// For each text index of the schema (same order) the summed length of the live documents.
    pub live_lengths: Arc<[u64]>,
}

impl SegmentView {
    /// How many documents are live.
    pub fn live_count(&self) -> u32 {
        self.segment.doc_count() - self.deleted_count
    }
}

impl TableView {
    /// How many rows the view has.
    pub fn live_count(&self) -> u64 {
        self.segments.iter().map(|view| u64::from(view.live_count())).sum()
    }
}

/// Reads whole rows of one table at one position.
pub(crate) trait RowReader: Send + Sync {
    /// The row with this encoded key.
    fn get(&self, key: &[u8]) -> Result<Option<Row>>;
    /// Calls `visit(encoded key, row)` in key order, from `from` on (included), until it answers
    /// false.
    fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], Row) -> Result<bool>) -> Result<()>;
}
