//! A large batch in the writer's queue. Its rows are staged, and its segments are built.

use std::{collections::BTreeMap, sync::Arc};

use remora_index::{Bitmap, segment::Segment};

use crate::{Position, snapshot::SegmentView};

/// A large batch, ready to be committed.
pub(crate) struct LargeCommit {
    /// The number under which its rows are staged.
    pub number: u32,
    /// The segments for each table.
    pub tables: BTreeMap<u32, Built>,
    /// As in [`crate::ChangeBatch::positions`].
    pub positions: Vec<(String, String)>,
    /// The bytes it adds to the size at which the next checkpoint is due.
    pub unsaved_bytes: u64,
}

/// The part of a large batch for one table.
pub(crate) struct Built {
    /// The name of the table.
    pub name: String,
    /// The version of the definition that its rows have: see `TableView::defined`.
    pub defined: Position,
    /// The segments of the batch.
    pub segments: Vec<SegmentView>,
    /// For published segments, the documents whose keys are in the batch, as far as they are known.
    pub replaced: Vec<(Arc<Segment>, Bitmap)>,
}
