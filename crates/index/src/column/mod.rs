//! Typed columns: every value that is filtered, sorted, grouped or returned.

use std::{cmp::Ordering, ops::Bound};

use crate::{DocSet, Result, SectionWriter, Sections};

/// How a column's values are held. The engine maps its types onto these so that their order is
/// the order of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Order-preserving 64-bit numbers: integers, floats, dates, times.
    Ordinal,
    /// Order-preserving byte strings: short text, wide decimals.
    Bytes,
}

/// One value of a column, borrowed. `Null` sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A value of an ordinal column.
    Ordinal(u64),
    /// A value of a byte column.
    Bytes(&'a [u8]),
}

/// A condition on one column. NULL satisfies only [`Predicate::IsNull`].
#[derive(Clone, Debug)]
pub enum Predicate {
    /// The value is NULL.
    IsNull,
    /// The value is within the bounds.
    OrdinalRange(Bound<u64>, Bound<u64>),
    /// The value is one of these (sorted, distinct).
    OrdinalIn(Vec<u64>),
    /// The value is within the bounds.
    BytesRange(Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// The value is one of these (sorted, distinct).
    BytesIn(Vec<Vec<u8>>),
}

/// Collects one column of a segment in document order.
pub struct ColumnWriter {}

impl ColumnWriter {
    /// An empty column `id`.
    pub fn new(_id: u32, _kind: ColumnKind) -> Self {
        Self {}
    }
    /// Appends the next document's value.
    pub fn push(&mut self, _cell: Cell<'_>) -> Result<()> {
        Ok(())
    }
    /// Writes the sections of this column.
    pub fn finish(self, _out: &mut SectionWriter) -> Result<()> {
        Ok(())
    }
}

/// One column of a segment.
#[derive(Clone)]
pub struct Column {}

impl Column {
    /// Opens the column `id`, or `None` if the segment was written before the column existed.
    pub fn open(_sections: &Sections, _id: u32, _doc_count: u32) -> Result<Option<Self>> {
        Ok(None)
    }
    /// How values are held.
    pub fn kind(&self) -> ColumnKind {
        ColumnKind::Ordinal
    }
    /// The value of a document; `Null` past the end.
    pub fn get(&self, _doc: u32) -> Cell<'_> {
        Cell::Null
    }
    /// The documents that satisfy the condition.
    pub fn select(&self, _predicate: &Predicate) -> Result<DocSet> {
        Ok(DocSet::empty())
    }
    /// Keeps of `docs` those that satisfy the condition: cheaper than [`Column::select`] where
    /// `docs` is small.
    pub fn retain(&self, _docs: &mut Vec<u32>, _predicate: &Predicate) {}
    /// Orders two documents of this segment by this column.
    pub fn compare(&self, _a: u32, _b: u32) -> Ordering {
        Ordering::Equal
    }
    /// A number that orders this segment's documents as their values do (NULL is 0).
    pub fn rank(&self, _doc: u32) -> u64 {
        0
    }
    /// Calls `visit` once for each distinct value among `docs` with how many have it.
    pub fn count_values(&self, _docs: &DocSet, _visit: &mut dyn FnMut(Cell<'_>, u32)) {}
}
