//! A large batch as it waits for the writer: its rows are staged, its segments built.

use std::{collections::BTreeMap, sync::Arc};

use remora_index::{Bitmap, segment::Segment};

use crate::{Position, snapshot::SegmentView};

/// What the writer gets of a large batch.
pub(crate) struct LargeCommit {
    /// The number under which its rows are staged.
    pub number: u32,
    /// What it makes of each table.
    pub tables: BTreeMap<u32, Built>,
    /// As in [`crate::ChangeBatch::positions`].
    pub positions: Vec<(String, String)>,
    /// What it counts for the next checkpoint.
    pub unsaved_bytes: u64,
}

/// What a large batch makes of a table.
pub(crate) struct Built {
    /// The name of the table.
    pub name: String,
    /// Which definition its rows have: see `TableView::defined`.
    pub defined: Position,
    /// Its own segments.
    pub segments: Vec<SegmentView>,
    /// What is known of the published segments: the documents whose keys are in the batch.
    pub replaced: Vec<(Arc<Segment>, Bitmap)>,
}
