//! Segments of a changed definition that were made before it takes effect: see `write::ahead`.

use std::sync::Arc;

use remora_index::segment::Segment;

use super::DatabaseState;
use crate::{Position, Schema, snapshot::Snapshot};

/// The segments of a table as a definition wants them, of the rows of one moment. Made by
/// [`Database::index_ahead`](crate::Database::index_ahead) and taken by
/// [`Database::define_indexed`](crate::Database::define_indexed). While it is there every key that is written is noted, in a
/// bounded list: if more than a million are, or the table becomes another, it is of no use, and
/// the writer indexes all rows.
pub struct IndexedAhead {
    pub(crate) moment: Moment,
    /// The table's number, and which of its definitions was current.
    pub(crate) number: u32,
    pub(crate) defined: Position,
    /// The definition that the segments are of.
    pub(crate) schema: Schema,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) text_bytes: u64,
}

impl std::fmt::Debug for IndexedAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexedAhead").field("table", &self.schema.name).finish_non_exhaustive()
    }
}

/// From where on the keys that are written are noted, as long as it is there.
pub(crate) struct Moment {
    shared: Arc<DatabaseState>,
    position: Position,
}

impl Moment {
    /// From now on, and what can be read now.
    pub fn begin(shared: &Arc<DatabaseState>) -> (Self, Arc<Snapshot>) {
        let snapshot = shared.transactions.begin(&shared.published);
        (Self { shared: Arc::clone(shared), position: snapshot.position }, snapshot)
    }

    /// What was written up to here is in what can be read.
    pub fn position(&self) -> Position {
        self.position
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        self.shared.transactions.end(self.position);
    }
}
