//! A transaction's own changes, read together with its snapshot.
//!
//! A transaction writes nothing before its commit. For a read that needs more than the rows themselves (a ranked search
//! counts the words of the whole table), the changes are indexed as at the commit, and the reader's tables get them as
//! the newest segments:
//!
//! ```text
//! segments  [a] [b] [c]   rows deleted or replaced are tombstones      [a'] [b] [c'] [own rows]
//! rows      the store     own rows and deletions come first            own > the store
//! ```
//! So every read answers as it would after the commit, and no read path knows of transactions. A reader with changes
//! can get further changes, so that what was indexed once is kept.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use remora_index::segment::Segment;

use crate::{
    Change, ChangeBatch, Position, Reader, Result, Row, Schema, TableChanges,
    encode::{FittedRow, RowFormat},
    error::no_table,
    indexing::{RequiredRows, RowIndexer, indexed_bytes},
    snapshot::{SegmentView, TableView},
    storage::{
        rows::{RowReader, RowVisitor},
        store::{RowVersion, StoredBytes},
    },
    write::{RowColumns, computed, distributed, prepare_change},
};

/// The number of readers with changes made so far: each has its own version of the changed tables.
static MADE: AtomicU64 = AtomicU64::new(0);

/// A segment is finished once it has this many bytes of text: finishing it cannot be interrupted.
const SEGMENT_TEXT_BYTES: usize = 8 << 20;
/// The most documents in one segment.
const SEGMENT_DOCUMENTS: usize = 50_000;
/// How many rows are prepared, or keys looked up, between two checks of the interrupt.
const AT_ONCE: usize = if cfg!(test) { 4 } else { 1_024 };
/// The memory of a change besides its row and key, in bytes.
const CHANGE_BYTES: usize = 96;

/// Changes to tables that are not committed, encoded and indexed. See [`Reader::index_changes`].
pub struct IndexedChanges {
    /// By table number.
    tables: BTreeMap<u32, IndexedTable>,
    bytes: u64,
}

/// The changes to one table.
#[derive(Default)]
struct IndexedTable {
    /// The encoded rows by encoded key; `None` is a deletion.
    own: Arc<BTreeMap<Vec<u8>, Option<StoredBytes>>>,
    segments: Vec<Arc<Segment>>,
}

impl IndexedChanges {
    /// The approximate memory that they take, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Reader {
    /// Checks, encodes and indexes changes for [`Reader::with_changes`]. The changes are those of a transaction with
    /// this reader's definitions; their rows include the values of hidden columns. Of several changes of a key the last
    /// one counts; each table may come once. Whether unique paths stay unique is not checked. `None` if they take more than about `most` bytes
    /// of memory. Cost: that of indexing the rows, in this thread; no other writer is waited for.
    ///
    /// # Errors
    /// Those of [`Database::apply`](crate::Database::apply) for a batch that is refused before it is written, and
    /// [`Error::Ended`](crate::Error::Ended) if the reader was interrupted.
    pub fn index_changes(&self, batch: ChangeBatch, most: u64) -> Result<Option<IndexedChanges>> {
        let mut indexed = IndexedChanges { tables: BTreeMap::new(), bytes: 0 };
        for TableChanges { table, changes } in batch.tables {
            let tables = &self.snapshot().tables;
            let view = tables.get(&table).ok_or_else(|| no_table(&table))?;
            if view.schema.is_distributed() {
                return Err(distributed(&view.schema));
            }
            let mut rows = Rows { most: most.saturating_sub(indexed.bytes), ..Rows::default() };
            let is_whole = rows.prepare(self, view, changes)?;
            let Some(table) = is_whole.then(|| rows.index(self, &view.schema)).transpose()? else {
                return Ok(None);
            };
            indexed.bytes += rows.bytes;
            indexed.tables.insert(view.number, table);
        }
        Ok((indexed.bytes <= most).then_some(indexed))
    }

    /// The snapshot with these changes, as every reader would see it if they were committed now. They must have been
    /// indexed for the same definitions of their tables. Cost: looks up each changed key in every segment.
    ///
    /// Changed tables have a [`TableVersion`](crate::TableVersion) that no other reader has. The reader's position stays.
    ///
    /// # Errors
    /// [`Error::Ended`](crate::Error::Ended) if the reader was interrupted.
    pub fn with_changes(&self, changes: &IndexedChanges) -> Result<Self> {
        let mut tables = self.snapshot().tables.clone();
        for view in tables.values_mut() {
            let Some(changed) = changes.tables.get(&view.number) else { continue };
            *view = Arc::new(changed.over(view, self)?);
        }
        Ok(self.at(Arc::new(self.snapshot().with_tables(tables))))
    }
}

impl IndexedTable {
    /// The table with these changes.
    fn over(&self, view: &TableView, reader: &Reader) -> Result<TableView> {
        let mut changed = TableView::clone(view);
        for segment in &mut changed.segments {
            let mut gone = Vec::new();
            for (at, key) in self.own.keys().enumerate() {
                if at % AT_ONCE == 0 {
                    reader.ending().check()?;
                }
                gone.extend(segment.live_doc(key));
            }
            if !gone.is_empty() {
                *segment = segment.without_docs(&gone, &view.schema);
            }
        }
        changed.segments.retain(|segment| segment.live_count() > 0);
        let added = self.segments.iter();
        let added = added.map(|new| SegmentView::new(Arc::clone(new), None, &view.schema));
        changed.segments.extend(added);
        changed.rows = Arc::new(OwnRows {
            own: Arc::clone(&self.own),
            below: Arc::clone(&view.rows),
            format: Arc::clone(&view.format),
        });
        changed.changed = Position(u64::MAX - MADE.fetch_add(1, Ordering::Relaxed));
        Ok(changed)
    }
}

/// The encoded row of a change, and its values. A deletion has neither.
type Prepared = (Option<StoredBytes>, Option<FittedRow>);

/// The changes to a table while they are indexed.
#[derive(Default)]
struct Rows {
    /// The last change of each key.
    changes: BTreeMap<Vec<u8>, Prepared>,
    /// The approximate memory of the changes, in bytes.
    bytes: u64,
    most: u64,
}

impl Rows {
    /// Checks and encodes the changes. False if they take too much memory.
    fn prepare(&mut self, reader: &Reader, view: &TableView, changes: Vec<Change>) -> Result<bool> {
        let options = &reader.shared().options;
        let mut changes = changes.into_iter().peekable();
        while changes.peek().is_some() {
            reader.ending().check()?;
            let some: Vec<Change> = changes.by_ref().take(AT_ONCE).collect();
            for change in computed(&view.schema, some, RowColumns::Computed)? {
                let change = prepare_change(change, &view.format, options)?;
                let bytes = change.stored.as_ref().map_or(0, |row| row.len()) + change.key.len();
                self.bytes += (bytes + CHANGE_BYTES) as u64;
                self.changes.insert(change.key, (change.stored, change.row));
            }
            if self.bytes > self.most {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Indexes the changed rows.
    fn index(&mut self, reader: &Reader, schema: &Schema) -> Result<IndexedTable> {
        let required = RequiredRows::of(schema)?;
        let mut table = IndexedTable::default();
        let mut own = BTreeMap::new();
        let (mut indexer, mut text_bytes) = (RowIndexer::new(schema), 0);
        let mut cut = |indexer: RowIndexer<'_>, bytes: &mut u64| -> Result<()> {
            let segment = indexer.finish()?.map(Arc::new);
            *bytes += segment.as_ref().map_or(0, |segment| segment.byte_count());
            table.segments.extend(segment);
            Ok(())
        };
        for (key, (stored, row)) in std::mem::take(&mut self.changes) {
            reader.ending().check()?;
            if let Some(row) = row.filter(|it| required.accept(&it.row)) {
                indexer.add_fitted(&key, &row)?;
                text_bytes += indexed_bytes(schema, &row.row, &row.paths);
            }
            own.insert(key, stored);
            if text_bytes >= SEGMENT_TEXT_BYTES || indexer.documents() >= SEGMENT_DOCUMENTS {
                let full = std::mem::replace(&mut indexer, RowIndexer::new(schema));
                text_bytes = 0;
                cut(full, &mut self.bytes)?;
                if self.bytes > self.most {
                    break;
                }
            }
        }
        cut(indexer, &mut self.bytes)?;
        table.own = Arc::new(own);
        Ok(table)
    }
}

/// A transaction's own rows of a table, encoded, over those of its snapshot.
struct OwnRows {
    /// By encoded key; `None` is a deletion.
    own: Arc<BTreeMap<Vec<u8>, Option<StoredBytes>>>,
    below: Arc<dyn RowReader>,
    format: Arc<RowFormat>,
}

impl RowReader for OwnRows {
    fn get(
        &self,
        key: &[u8],
        version: Option<RowVersion>,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Row>> {
        match self.own.get(key) {
            None => self.below.get(key, version, wanted),
            Some(own) => {
                own.as_ref().map(|row| self.format.decode_columns(row, wanted)).transpose()
            }
        }
    }

    fn stored(&self, key: &[u8]) -> Result<Option<StoredBytes>> {
        match self.own.get(key) {
            None => self.below.stored(key),
            Some(own) => Ok(own.clone()),
        }
    }

    fn scan_columns(
        &self,
        from: &[u8],
        wanted: &dyn Fn(usize) -> bool,
        visit: &mut RowVisitor<'_>,
    ) -> Result<()> {
        let mut own = self.own.range(from.to_vec()..).peekable();
        let mut continues = true;
        self.below.scan_columns(from, wanted, &mut |key, row| {
            while let Some((before, stored)) = own.next_if(|(own, _)| own.as_slice() < key) {
                if let Some(stored) = stored
                    && !visit(before, self.format.decode(stored)?)?
                {
                    continues = false;
                    return Ok(false);
                }
            }
            continues = match own.next_if(|(own, _)| own.as_slice() == key) {
                None => visit(key, row)?,
                Some((_, None)) => true,
                Some((_, Some(stored))) => visit(key, self.format.decode(stored)?)?,
            };
            Ok(continues)
        })?;
        while continues && let Some((key, stored)) = own.next() {
            if let Some(stored) = stored {
                continues = visit(key, self.format.decode(stored)?)?;
            }
        }
        Ok(())
    }
}
