//! Rows of a snapshot that its reader has chosen, for a condition that the engine cannot evaluate.

use std::{fmt, sync::Arc};

use remora_index::{Bitmap, DocSet, segment::Segment};

use super::reader::Reader;
use crate::{Error, RequestPart, Result, Value, encode::encode_key, snapshot::TableView};

/// Rows of one table at one moment, for [`Filter::Rows`](crate::Filter::Rows). It takes one bit for each row of the
/// table's segments, and keeps the segments.
#[derive(Clone)]
pub struct RowSet(Arc<[RowsOfSegment]>);

struct RowsOfSegment {
    segment: Arc<Segment>,
    docs: DocSet,
}

/// A [`RowSet`] while its rows are added: see [`Reader::choose_rows`].
pub struct RowSetBuilder {
    view: Arc<TableView>,
    /// The rows of each segment.
    docs: Vec<Bitmap>,
}

impl Reader {
    /// An empty set of rows of a table, to which rows of this snapshot can be added. Cost: one bit for each row.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such table.
    pub fn choose_rows(&self, table: &str) -> Result<RowSetBuilder> {
        let view = Arc::clone(&*self.table(table)?);
        let docs = view.segments.iter().map(|it| Bitmap::new(it.segment.doc_count())).collect();
        Ok(RowSetBuilder { view, docs })
    }
}

impl RowSetBuilder {
    /// Adds the row with this key, if there is one. Cost: a look-up in each segment.
    ///
    /// # Errors
    /// [`Error::Request`] if it cannot be a key of the table.
    pub fn add(&mut self, key: &[Value]) -> Result<()> {
        let key = encode_key(&self.view.schema, key)?;
        for (view, docs) in self.view.segments.iter().zip(&mut self.docs) {
            if let Some(doc) = view.segment.keys().find(&key).filter(|doc| !view.is_deleted(*doc)) {
                docs.insert(doc);
                break;
            }
        }
        Ok(())
    }

    /// The rows that were added.
    pub fn finish(self) -> RowSet {
        let segments = self.view.segments.iter().zip(self.docs);
        let segments = segments.map(|(view, docs)| RowsOfSegment {
            segment: Arc::clone(&view.segment),
            docs: DocSet::Bits(Arc::new(docs)),
        });
        RowSet(segments.collect())
    }
}

impl RowSet {
    /// The rows that are documents of a segment.
    pub(super) fn docs(&self, segment: &Segment) -> Result<&DocSet> {
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
