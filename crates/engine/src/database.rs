//! The database: tables, one writer, snapshots for readers.

use std::{path::{Path, PathBuf}, sync::Arc, time::Duration};

use crate::*;

/// How soon a batch is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// fsync before the acknowledgement.
    Always,
    /// fsync at this interval.
    Interval(Duration),
    /// When the operating system pleases.
    None,
}

/// Settings of a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// How soon a batch is safe.
    pub durability: Durability,
    /// Bytes of the row store's block cache.
    pub row_cache_bytes: u64,
    /// Bytes of text in memory segments before they are written to a file.
    pub checkpoint_bytes: u64,
    /// Most changes of one batch.
    pub max_batch_changes: usize,
    /// Most bytes of one row.
    pub max_row_bytes: usize,
    /// BM25's parameters.
    pub bm25: (f64, f64),
}

/// An open data directory. Clones share it; all methods may be called from any thread.
#[derive(Clone)]
pub struct Database {}

impl Database {
    /// Opens or makes the directory, locks it, recovers.
    pub fn open(_path: &Path, _options: Options) -> Result<Self> { Ok(Self {}) }
    /// Where it lives.
    pub fn path(&self) -> PathBuf { PathBuf::new() }
    /// Makes a table; a conflict if there is another of that name and a different definition.
    pub fn create_table(&self, _schema: Schema) -> Result<()> { Ok(()) }
    /// Drops a table and its rows.
    pub fn drop_table(&self, _name: &str) -> Result<()> { Ok(()) }
    /// The tables' names, sorted.
    pub fn tables(&self) -> Vec<String> { Vec::new() }
    /// A table's definition.
    pub fn schema(&self, _table: &str) -> Result<Arc<Schema>> { Err(Error::Closed) }
    /// Applies a batch: returns when it is visible and as durable as the options say.
    pub fn apply(&self, _batch: ChangeBatch) -> Result<Position> { Err(Error::Closed) }
    /// The stored position of a source.
    pub fn source_position(&self, _source: &str) -> Result<Option<String>> { Ok(None) }
    /// The position of the newest visible batch.
    pub fn position(&self) -> Position { Position(0) }
    /// SEARCH.
    pub fn search(&self, _request: &SearchRequest) -> Result<SearchReply> { Err(Error::Closed) }
    /// COUNT.
    pub fn count(&self, _selection: &Selection) -> Result<CountReply> { Err(Error::Closed) }
    /// FACET.
    pub fn facet(&self, _request: &FacetRequest) -> Result<FacetReply> { Err(Error::Closed) }
    /// The row with this primary key.
    pub fn get(&self, _table: &str, _key: &[Value]) -> Result<Option<Row>> { Ok(None) }
    /// Calls `visit` with every row of one snapshot in key order; stops on its first error.
    pub fn scan(&self, _table: &str, _visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<Position> { Err(Error::Closed) }
    /// Merges each table's segments into one and frees what deletions left (`None`: all tables).
    pub fn optimize(&self, _table: Option<&str>) -> Result<()> { Ok(()) }
    /// Writes memory segments to files so that the next start is quick.
    pub fn checkpoint(&self) -> Result<()> { Ok(()) }
    /// A table's figures.
    pub fn statistics(&self, _table: &str) -> Result<TableStatistics> { Err(Error::Closed) }
    /// Stops the writer and the merges, checkpoints, unlocks. Later calls answer `Closed`.
    pub fn close(&self) -> Result<()> { Ok(()) }
}

/// A table's figures, all true.
#[derive(Clone, Debug, Default)]
pub struct TableStatistics {
    /// Rows.
    pub rows: u64,
    /// Segments.
    pub segments: u64,
    /// Distinct terms (of the largest segment at least).
    pub terms: u64,
    /// Pairs of term and row.
    pub postings: u64,
    /// Occurrences.
    pub positions: u64,
    /// Posting lists held as bits.
    pub bitmap_lists: u64,
    /// Bytes of the index in memory.
    pub index_bytes: u64,
    /// Bytes of the row store on disk.
    pub store_bytes: u64,
    /// Bytes of text in indexed text columns, after normalisation.
    pub text_bytes: u64,
    /// Whether a merge runs now.
    pub merging: bool,
}
