//! Segments that are built for a changed definition before it takes effect: see `write::prebuilt`.

use std::sync::Arc;

use remora_index::segment::Segment;

use super::DatabaseState;
use crate::{Position, Schema, snapshot::Snapshot};

/// The segments of a table for a new definition, with the rows of one snapshot.
/// [`Database::prebuild_segments`](crate::Database::prebuild_segments) builds them, and
/// [`Database::define_indexed`](crate::Database::define_indexed) uses them. While this exists, every written key
/// is recorded in a bounded list. If more than a million keys are written, or the table's definition changes, it
/// becomes useless, and the writer indexes all rows.
pub struct PrebuiltSegments {
    pub(crate) recording: KeyRecording,
    /// The table's number, and the version of its definition.
    pub(crate) number: u32,
    pub(crate) defined: Position,
    /// The new definition.
    pub(crate) schema: Schema,
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) text_bytes: u64,
}

impl std::fmt::Debug for PrebuiltSegments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrebuiltSegments").field("table", &self.schema.name).finish_non_exhaustive()
    }
}

/// Records the keys written since its position, as long as it exists.
pub(crate) struct KeyRecording {
    shared: Arc<DatabaseState>,
    position: Position,
}

impl KeyRecording {
    /// Starts to record keys; also returns the snapshot of that position.
    pub fn begin(shared: &Arc<DatabaseState>) -> (Self, Arc<Snapshot>) {
        let snapshot = shared.transactions.begin(&shared.published);
        (Self { shared: Arc::clone(shared), position: snapshot.position }, snapshot)
    }

    /// The position of the snapshot.
    pub fn position(&self) -> Position {
        self.position
    }
}

impl Drop for KeyRecording {
    fn drop(&mut self) {
        self.shared.transactions.end(self.position);
    }
}
