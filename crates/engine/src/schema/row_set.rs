//! Rows of a snapshot that its reader has chosen, for a condition that the engine cannot evaluate.

use std::{fmt, sync::Arc};

use remora_index::{DocSet, segment::Segment};

use crate::{Error, RequestPart, Result};

/// Rows of one table at one moment, for [`Filter::Rows`](crate::Filter::Rows). It takes one bit for each row of the
/// table's segments, and keeps the segments.
#[derive(Clone)]
pub struct RowSet(Arc<[RowsOfSegment]>);

struct RowsOfSegment {
    segment: Arc<Segment>,
    docs: DocSet,
}

impl RowSet {
    /// The chosen documents of each segment.
    pub(crate) fn new(segments: impl Iterator<Item = (Arc<Segment>, DocSet)>) -> Self {
        Self(segments.map(|(segment, docs)| RowsOfSegment { segment, docs }).collect())
    }

    /// The rows that are documents of a segment.
    pub(crate) fn docs(&self, segment: &Segment) -> Result<&DocSet> {
        let of = self.0.iter().find(|of| std::ptr::eq(Arc::as_ptr(&of.segment), segment));
        let message = "The rows were chosen in another snapshot, or of another table";
        of.map(|of| &of.docs).ok_or_else(|| Error::request(RequestPart::Filter, message.to_owned()))
    }
}

/// The same set, not only equal rows.
impl PartialEq for RowSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for RowSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("RowSet").field(&self.0.len()).finish()
    }
}
