//! Chooses rows of a snapshot, for a condition that the engine cannot evaluate.

use std::sync::Arc;

use remora_index::{Bitmap, DocSet};

use super::reader::Reader;
use crate::{Result, RowSet, Value, encode::encode_key, snapshot::TableView};

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
    /// [`crate::Error::NotFound`] if there is no such table.
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
    /// [`crate::Error::Request`] if it cannot be a key of the table.
    pub fn add(&mut self, key: &[Value]) -> Result<()> {
        let key = encode_key(&self.view.schema, key)?;
        for (view, docs) in self.view.segments.iter().zip(&mut self.docs) {
            if let Some(doc) = view.live_doc(&key) {
                docs.insert(doc);
                break;
            }
        }
        Ok(())
    }

    /// The rows that were added.
    pub fn finish(self) -> RowSet {
        let segments = self.view.segments.iter().zip(self.docs);
        let chosen =
            segments.map(|(view, docs)| (Arc::clone(&view.segment), DocSet::Bits(Arc::new(docs))));
        RowSet::new(chosen)
    }
}
