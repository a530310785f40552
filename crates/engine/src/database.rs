//! The database: tables, one writer, snapshots for readers.
//!
//! This is the facade. A write goes through [`crate::write`]. A read goes through [`crate::read`] and uses the
//! snapshot that is published when it begins. Neither waits for the other.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{
    ChangeBatch, CheckReport, CheckStep, CountReply, Definition, Error, FacetReply, FacetRequest,
    LargeBatch, Options, PathDef, Pending, Pipeline, Position, PrebuiltSegments, Reader, Result,
    Row, Schema, SearchReply, SearchRequest, Selection, SourcePositions, TableStatistics,
    TableVersion, Transaction, Value, Watch, WatchRequest, WatchStatus,
    check::{Repaired, check, check_without_rows, repair},
    merge,
    read::visit_json,
    recovery::{Purpose, Recovered, recover},
    shared::{DatabaseState, Definitions, Job, Waiter, WatchOrder},
    snapshot::{Snapshot, TableView},
    storage::{
        lock::DirectoryLock,
        rows::json_of,
        store::{DiskStore, Store, StoreOptions},
    },
    write::{self, RowColumns},
};

/// The time limit of closing. A merge that takes longer is abandoned; its output is not published.
const CLOSE_TIME: Duration = Duration::from_millis(4_500);
/// The time limit for jobs in the writer's queue when the database is closed.
const DRAIN_TIME: Duration = Duration::from_millis(2_000);

/// The niceness (CPU priority) of small merges: slightly below searches, which profit from fewer segments.
const SMALL_MERGE_NICENESS: i32 = 5;

/// An open data directory. Clones share it; all methods may be called from any thread. Dropping the last clone closes
/// it.
#[derive(Clone)]
pub struct Database {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<DatabaseState>,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    writer: Option<JoinHandle<()>>,
    merges: Vec<JoinHandle<()>>,
}

impl Database {
    /// Opens or creates the directory, locks it and runs recovery. Cost: reads the segment files once, and indexes
    /// the changes since the last checkpoint again.
    ///
    /// # Errors
    /// - [`Error::Conflict`]: the directory is already open, in this process or another.
    /// - [`Error::Corrupt`]: the directory has another format version, or the row store is damaged or has lost
    ///   durable data. Damaged segments are no error: they are rebuilt from the rows.
    /// - [`Error::NotFound`]: the directory has a subdirectory `store` that is not a Remora row store.
    /// - [`Error::Io`] or [`Error::Full`]: the directory cannot be created, read or written.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let lock = DirectoryLock::open_or_create(path)?;
        let store_options = StoreOptions {
            cache_bytes: options.row_cache_bytes,
            rows_memtable_bytes: options.memtable_bytes,
            ..StoreOptions::default()
        };
        let store = Arc::new(DiskStore::open(&path.join("store"), store_options)?);
        remora_index::set_page_cache_bytes(options.page_cache_bytes);
        Self::start(path, options, store, Some(lock))
    }

    /// Recovers from `store` and starts the threads.
    pub(crate) fn start(
        path: &Path,
        options: Options,
        store: Arc<dyn Store>,
        lock: Option<DirectoryLock>,
    ) -> Result<Self> {
        let started = Instant::now();
        let recovered = recover(path, &*store, Purpose::Start)?;
        let Recovered { snapshot, files, damage, unsaved_bytes, .. } = recovered;
        for damage in &damage {
            tracing::warn!(directory = %path.display(), "rebuilt: {damage}");
        }
        let position = snapshot.position.0;
        let shared = DatabaseState::new(path.to_owned(), options, store, lock, (snapshot, files))?;
        let shared = Arc::new(shared);
        shared.unsaved_bytes.store(unsaved_bytes, Ordering::Relaxed);
        let fresh = position == 0 || !damage.is_empty();
        if fresh && let Err(error) = merge::checkpoint(&shared) {
            tracing::error!(%error, "the first checkpoint failed; it is tried again later");
        }
        tracing::info!(directory = %path.display(), position, time = ?started.elapsed(), "open");
        let threads = Mutex::new(Threads::start(&shared)?);
        Ok(Self { handle: Arc::new(Handle { shared, threads }) })
    }

    /// Verifies a data directory that is not open: every checksum, every segment against the rows, every count.
    /// Continues after a problem and lists it. Calls `progress` before each segment. Cost: everything is read and
    /// every row is indexed again, one segment at a time.
    ///
    /// # Errors
    /// Damage of rows, segments or the manifest is no error: the report lists it.
    ///
    /// - [`Error::NotFound`]: the path is not a data directory.
    /// - [`Error::Conflict`]: it is already open, in this process or another.
    /// - [`Error::Corrupt`]: it has another format version.
    /// - [`Error::Io`] or [`Error::Full`]: it cannot be read, or the row store cannot be opened.
    pub fn check(path: &Path, progress: &mut dyn FnMut(CheckStep<'_>)) -> Result<CheckReport> {
        let _lock = DirectoryLock::open(path)?;
        let store = DiskStore::open(&path.join("store"), StoreOptions::default());
        match store.and_then(|store| check(path, &store, progress)) {
            Err(Error::Corrupt(what)) => check_without_rows(path, what),
            checked => checked,
        }
    }

    /// Checks a data directory that is not open, and rebuilds segments and the manifest from the rows if needed.
    /// Cost: that of two checks.
    ///
    /// # Errors
    /// Those of [`Database::check`], and [`Error::Io`], [`Error::Full`] or [`Error::Poisoned`] if the result cannot
    /// be written. Damage that cannot be rebuilt is no error: the second report lists it.
    pub fn repair(path: &Path, progress: &mut dyn FnMut(CheckStep<'_>)) -> Result<Repaired> {
        let _lock = DirectoryLock::open(path)?;
        let store = DiskStore::open(&path.join("store"), StoreOptions::default());
        match store.and_then(|store| repair(path, &store, progress)) {
            Err(Error::Corrupt(what)) => {
                let found = check_without_rows(path, what)?;
                Ok(Repaired { before: found.clone(), after: found })
            }
            repaired => repaired,
        }
    }

    /// The path of the data directory.
    pub fn path(&self) -> PathBuf {
        self.shared().directory.clone()
    }

    /// Creates a table. Nothing happens if it exists with the same definition.
    ///
    /// # Errors
    /// Those of [`Database::define`]: [`Error::Conflict`] if a table with this name has another definition,
    /// [`Error::Request`] if the definition is not valid.
    pub fn create_table(&self, schema: Schema) -> Result<()> {
        self.define(vec![Definition::Create(schema)], Vec::new()).map(|_| ())
    }

    /// Drops a table and its rows.
    ///
    /// # Errors
    /// Those of [`Database::define`]: [`Error::NotFound`] if there is no such table.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.define(vec![Definition::Drop(name.to_owned())], Vec::new()).map(|_| ())
    }

    /// Changes definitions in order and atomically, and stores positions of sources with them. On return they are
    /// durable and visible, after every batch submitted before. The position does not advance if tables are only
    /// created or dropped, no positions are given and no watcher gets an event.
    ///
    /// # Errors
    /// If one definition fails, none takes effect.
    ///
    /// - [`Error::NotFound`]: there is no table to drop, rename or alter.
    /// - [`Error::Taken`]: a table has the name of a [`Definition::Vacant`].
    /// - [`Error::Conflict`]: a table with this name has another definition.
    /// - [`Error::Request`]: a definition is not valid, or a table cannot be altered into it.
    /// - [`Error::NotUnique`]: a path is to be unique and two rows have the same value there. [`Error::Conflict`] if
    ///   not all rows are indexed by it yet: see [`Database::wait_for_path`].
    /// - [`Error::Corrupt`] or [`Error::Io`]: the rows of a table that must be indexed again cannot be read.
    /// - [`Error::Busy`]: all table numbers are used up.
    /// - [`Error::Full`]: the disk is full.
    /// - [`Error::Poisoned`] or [`Error::Closed`]: the database accepts no writes any more.
    pub fn define(
        &self,
        definitions: Vec<Definition>,
        positions: Vec<(String, String)>,
    ) -> Result<Position> {
        self.define_indexed(definitions, positions, Vec::new())
    }

    /// As [`Database::define`], with segments that [`Database::prebuild_segments`] built for the definitions. Writers then
    /// wait only while rows written since are indexed, not for all rows. Segments that fit no definition are ignored.
    ///
    /// # Errors
    /// As [`Database::define`].
    pub fn define_indexed(
        &self,
        definitions: Vec<Definition>,
        positions: Vec<(String, String)>,
        ahead: Vec<PrebuiltSegments>,
    ) -> Result<Position> {
        self.shared().check_open()?;
        let definitions = Definitions { definitions, positions, ahead };
        self.queue(|waiter| Job::Define(definitions, waiter))?.wait()
    }

    /// Indexes the rows of a table for a new definition, in this thread, while others write. `None` if the definition
    /// alters no existing table, if the existing segments suffice, or if it changes columns, key or condition of the
    /// rows. Cost: the time and memory of indexing all rows of the table.
    ///
    /// # Errors
    /// - [`Error::Request`]: the definition is not valid, or the table cannot be altered into it.
    /// - [`Error::Corrupt`] or [`Error::Io`]: its rows cannot be read.
    /// - [`Error::Closed`]: the database was closed.
    pub fn prebuild_segments(&self, definition: &Definition) -> Result<Option<PrebuiltSegments>> {
        self.shared().check_open()?;
        write::prebuild_segments(&self.handle.shared, definition)
    }

    /// The names of all tables, sorted, without hidden tables. Names of hidden tables begin with `#`; such tables can
    /// be used like any other, but are not listed.
    pub fn tables(&self) -> Vec<String> {
        self.reader().tables()
    }

    /// A table's definition.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such table, [`Error::Closed`] after [`Database::close`].
    pub fn schema(&self, table: &str) -> Result<Arc<Schema>> {
        self.reader().schema(table)
    }

    /// Waits until background merges have indexed all rows of a table by a path of its definition. Returns at once
    /// for a path that is not in the definition.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such table, [`Error::Busy`] if the rows cannot be indexed for now,
    /// [`Error::Request`] if one of them has too much there ([`Options::path_index_bytes`]), [`Error::Poisoned`] or
    /// [`Error::Closed`] if the database accepts no writes any more.
    pub fn wait_for_path(&self, table: &str, path: &PathDef) -> Result<()> {
        let (_, view) = self.table(table)?;
        write::wait_for_paths(self.shared(), view.number, &|one| one.is_along(path))
    }

    /// The highest column id that the table has or had. A new column needs a higher one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such table, [`Error::Closed`] after [`Database::close`].
    pub fn highest_column_id(&self, table: &str) -> Result<u32> {
        let (_, view) = self.table(table)?;
        let history = view.format.history();
        let past = history.layouts.iter().flatten().map(|(id, _)| *id);
        let fills = history.fills.iter().map(|(id, _)| *id);
        let now = view.schema.columns.iter().map(|column| column.id);
        Ok(past.chain(fills).chain(now).max().unwrap_or(0))
    }

    /// Applies a batch. Returns when it is visible and as durable as the options require. Blocks while the writer
    /// or the merges lag behind (backpressure).
    ///
    /// # Errors
    /// Those of [`Database::submit`] and of [`Pending::wait`]. Nothing of the batch is applied,
    /// except that after [`Error::Poisoned`] only the next start shows whether it was.
    pub fn apply(&self, batch: ChangeBatch) -> Result<Position> {
        self.submit(batch)?.wait()
    }

    /// Applies a batch whose rows include the values of hidden columns (those of key expressions), computed by the
    /// caller.
    ///
    /// # Errors
    /// Those of [`Database::apply`].
    pub fn apply_computed(&self, batch: ChangeBatch) -> Result<Position> {
        self.submit_rows(batch, RowColumns::Computed)?.wait()
    }

    /// Validates and encodes a batch in this thread and queues it. Batches submitted by one thread are applied in
    /// order. Other threads index large batches, so a single caller can use all cores. Blocks while the queue is full
    /// (64 MB). If a batch fails later, for example because its table was dropped, later batches are applied
    /// nevertheless; see [`Database::pipeline`].
    ///
    /// # Errors
    /// Errors in the rows are returned here; others by [`Pending::wait`].
    ///
    /// - [`Error::NotFound`]: there is no such table.
    /// - [`Error::Request`]: a row or a key does not fit its table, the batch or a row is larger than [`Options`]
    ///   allow, or the table has keys over expressions that this process cannot compute
    ///   ([`Database::apply_computed`]).
    /// - [`Error::Exists`]: the batch inserts a row after an earlier row with the same key.
    /// - [`Error::NotUnique`]: two rows of it have the same value at a unique path.
    /// - [`Error::Poisoned`] or [`Error::Closed`]: the database accepts no writes any more.
    pub fn submit(&self, batch: ChangeBatch) -> Result<Pending> {
        self.submit_rows(batch, RowColumns::Visible)
    }

    fn submit_rows(&self, batch: ChangeBatch, row_columns: RowColumns) -> Result<Pending> {
        self.shared().check_open()?;
        let prepared = write::prepare(batch, row_columns, &self.snapshot(), self.shared())?;
        self.queue(|waiter| Job::Apply(prepared, waiter))
    }

    /// Applies a batch if each key that it changes has a row, and if none of its tables was altered since `reader`'s
    /// snapshot. Cost: that of [`Database::apply`], and a look-up of each key. Cheaper than a transaction: nothing is
    /// remembered of what others write.
    ///
    /// # Errors
    /// [`Error::Conflict`] if that is not so; nothing is applied then. Otherwise those of [`Database::apply`].
    pub fn apply_to_existing(&self, reader: &Reader, batch: ChangeBatch) -> Result<Position> {
        self.shared().check_open()?;
        let snapshot = reader.snapshot();
        let mut prepared = write::prepare(batch, RowColumns::Visible, snapshot, self.shared())?;
        prepared.must_exist = true;
        self.queue(|waiter| Job::Apply(prepared, waiter))?.wait()
    }

    /// Begins a transaction: a snapshot to read, and a batch that is applied only if no other writer changed its
    /// keys since.
    pub fn begin(&self) -> Transaction {
        Transaction::begin(&self.handle.shared)
    }

    /// Begins a sequence of batches. After one fails, the later ones are not applied.
    pub fn pipeline(&self) -> Pipeline {
        Pipeline::new(&self.handle.shared)
    }

    /// Begins a batch of any size, even larger than memory. Its rows are staged in the data directory. Other
    /// writes and definitions continue meanwhile, and are ordered before it.
    ///
    /// # Errors
    /// - [`Error::Full`]: the disk is full.
    /// - [`Error::Busy`]: all table numbers are used up; a large batch takes one.
    /// - [`Error::Corrupt`] or [`Error::Io`]: the row store cannot be read.
    /// - [`Error::Poisoned`] or [`Error::Closed`]: the database accepts no writes any more.
    pub fn begin_large(&self) -> Result<LargeBatch> {
        self.shared().check_open()?;
        LargeBatch::begin(&self.handle.shared)
    }

    /// Starts to watch changes: after the requested position, else after the saved position of the watcher with this
    /// name, else from now on.
    ///
    /// # Errors
    /// - [`Error::Conflict`]: the watcher with this name is already open, or has other tables.
    /// - [`Error::NotFound`]: the changes after the requested position were dropped.
    /// - [`Error::Request`]: the name is empty or too long, the list of tables is empty, a table is hidden or
    ///   distributed, or the position is in the future.
    /// - [`Error::Full`], [`Error::Poisoned`] or [`Error::Closed`]: nothing can be written, which a new watcher
    ///   needs.
    pub fn watch(&self, request: WatchRequest) -> Result<Watch> {
        Watch::begin(&self.handle.shared, request)
    }

    /// The named watchers, by name.
    pub fn watchers(&self) -> Vec<WatchStatus> {
        WatchStatus::all(self.shared())
    }

    /// Removes the watcher with this name, so that no changes are kept for it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none; [`Error::Conflict`] if it is open; [`Error::Full`], [`Error::Poisoned`]
    /// or [`Error::Closed`] if nothing can be written.
    pub fn forget_watcher(&self, name: &str) -> Result<()> {
        self.shared().check_open()?;
        let forget = |waiter| Job::Watch(WatchOrder::Forget(name.to_owned(), waiter));
        self.queue(forget)?.wait().map(drop)
    }

    /// Blocks the writer until the result is dropped. For tests.
    ///
    /// # Errors
    /// [`Error::Poisoned`] or [`Error::Closed`] if the database accepts no writes any more.
    #[doc(hidden)]
    pub fn hold_writer(&self) -> Result<impl Send + use<>> {
        let (hold, until) = crossbeam_channel::bounded::<()>(0);
        self.shared().check_open()?;
        self.shared().queue.push(Job::Hold(until))?;
        Ok(hold)
    }

    /// The stored position of a source.
    ///
    /// # Errors
    /// [`Error::Closed`] after [`Database::close`].
    pub fn source_position(&self, source: &str) -> Result<Option<String>> {
        self.shared().check_open()?;
        Ok(self.snapshot().sources.get(source).map(str::to_owned))
    }

    /// The stored positions of all sources, from one snapshot.
    pub fn source_positions(&self) -> SourcePositions {
        self.snapshot().sources.clone()
    }

    /// Waits until `reached` accepts the visible position of a source. It is called in this thread, once for each
    /// position seen.
    ///
    /// # Errors
    /// [`Error::Busy`] if no such position is visible within `timeout`; [`Error::Poisoned`] or [`Error::Closed`] if the
    /// database accepts no writes any more.
    pub fn wait_for_source(
        &self,
        source: &str,
        timeout: Duration,
        reached: &dyn Fn(&str) -> bool,
    ) -> Result<()> {
        self.shared().check_open()?;
        // A time that no clock reaches has no end.
        let deadline = Instant::now().checked_add(timeout);
        let published = &self.shared().published;
        loop {
            let seen = self.snapshot().sources.clone();
            if seen.get(source).is_some_and(reached) {
                return Ok(());
            }
            let moved = |current: &Snapshot| !current.sources.is_still(&seen, source);
            if !published.wait_until(deadline, moved)? {
                let at = seen.get(source).unwrap_or("unknown");
                return Err(Error::Busy(format!(
                    "source {source:?} did not get there in time: it is at {at}"
                )));
            }
        }
    }

    /// The position of the last visible batch.
    pub fn position(&self) -> Position {
        self.snapshot().position
    }

    /// The version of a table's newest rows.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such table, [`Error::Closed`] after [`Database::close`].
    pub fn table_version(&self, table: &str) -> Result<TableVersion> {
        self.reader().version(table)
    }

    /// Waits until the batch at `position` is visible.
    ///
    /// # Errors
    /// [`Error::Busy`] if it is not visible within `timeout`; [`Error::Poisoned`] or [`Error::Closed`] if the
    /// database accepts no writes any more.
    pub fn wait_for(&self, position: Position, timeout: Duration) -> Result<()> {
        self.shared().check_open()?;
        let deadline = Instant::now().checked_add(timeout);
        let visible = |current: &Snapshot| current.position >= position;
        if self.shared().published.wait_until(deadline, visible)? {
            return Ok(());
        }
        let (asked, at) = (position.0, self.position().0);
        Err(Error::Busy(format!(
            "position {asked} was not reached within {timeout:?}: the database is at {at}"
        )))
    }

    /// A reader of the newest snapshot of all tables.
    pub fn reader(&self) -> Reader {
        Reader::new(&self.handle.shared)
    }

    /// Runs SEARCH on the newest snapshot.
    ///
    /// # Errors
    /// The same as those of [`Reader::search`].
    pub fn search(&self, request: &SearchRequest) -> Result<SearchReply> {
        self.reader().search(request)
    }

    /// Runs COUNT on the newest snapshot.
    ///
    /// # Errors
    /// The same as those of [`Reader::count`].
    pub fn count(&self, selection: &Selection) -> Result<CountReply> {
        self.reader().count(selection)
    }

    /// Runs FACET on the newest snapshot.
    ///
    /// # Errors
    /// The same as those of [`Reader::facet`].
    pub fn facet(&self, request: &FacetRequest) -> Result<FacetReply> {
        self.reader().facet(request)
    }

    /// The row with this primary key.
    ///
    /// # Errors
    /// The same as those of [`Reader::get`].
    pub fn get(&self, table: &str, key: &[Value]) -> Result<Option<Row>> {
        self.reader().get(table, key)
    }

    /// Calls `visit` with the JSON document in a column of the row with this primary key, where it is stored, or with `None`
    /// if the value is NULL or of another type. Returns whether there is such a row. Cost: a read of the row store, half a
    /// microsecond for a row that was read before.
    ///
    /// # Errors
    /// Those of [`Reader::get`].
    pub fn visit_json(
        &self,
        table: &str,
        key: &[Value],
        column: usize,
        visit: &mut dyn FnMut(Option<&str>),
    ) -> Result<bool> {
        self.shared().check_open()?;
        match self.shared().published.peek().tables.get(table) {
            Some(view) if !view.schema.is_distributed() => visit_json(view, key, column, visit),
            _ => {
                let row = self.reader().get(table, key)?;
                row.iter().for_each(|row| visit(json_of(row, column)));
                Ok(row.is_some())
            }
        }
    }

    /// Whether SQL or a source declared the table: then the engine alone does not keep what was declared.
    ///
    /// # Errors
    /// As [`Database::schema`].
    pub fn is_declared(&self, table: &str) -> Result<bool> {
        self.shared().check_open()?;
        match self.shared().published.peek().tables.get(table) {
            Some(view) => Ok(view.schema.declared.is_some()),
            None => Ok(self.schema(table)?.declared.is_some()),
        }
    }

    /// Calls `visit` with every row of one snapshot in key order.
    ///
    /// # Errors
    /// - [`Error::NotFound`]: there is no such table.
    /// - [`Error::Corrupt`] or [`Error::Io`]: a row cannot be read.
    /// - [`Error::Conflict`]: the row store was reopened after a full disk, which ended the snapshot.
    /// - [`Error::Closed`]: the database was closed.
    /// - The first error of `visit`, which ends the scan.
    pub fn scan(&self, table: &str, visit: &mut dyn FnMut(Row) -> Result<()>) -> Result<Position> {
        let reader = self.reader();
        reader.visit_rows(table, visit)?;
        Ok(reader.position())
    }

    /// Merges a table's segments (`None`: those of each table) into one, or as few as [`Options::max_segment_bytes`]
    /// allows. Frees the space of deleted documents.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such table, [`Error::Corrupt`] or [`Error::Io`] if a segment cannot be
    /// read, [`Error::Poisoned`] if the database accepts no writes any more; and those of [`Database::checkpoint`].
    pub fn optimize(&self, table: Option<&str>) -> Result<()> {
        let tables = match table {
            Some(name) if !self.snapshot().parts_of(name).is_empty() => {
                self.snapshot().parts_of(name)
            }
            Some(name) => vec![self.table(name)?.1.schema.name.clone()],
            None => self.tables(),
        };
        tables.iter().try_for_each(|table| merge::optimize(self.shared(), table))?;
        self.checkpoint()
    }

    /// Writes segments in memory to files, so that the next start is quick.
    ///
    /// # Errors
    /// An error loses nothing: the last checkpoint and the log after it stay valid.
    ///
    /// - [`Error::Io`] or [`Error::Full`]: the files cannot be written.
    /// - [`Error::Corrupt`]: a segment or the log cannot be read.
    /// - [`Error::Poisoned`]: rows could not be made durable, now or earlier.
    /// - [`Error::Closed`]: the database was closed.
    pub fn checkpoint(&self) -> Result<()> {
        self.shared().check_open()?;
        merge::checkpoint(self.shared())
    }

    /// Why the last checkpoint failed, for example because the disk is full; `None` if it succeeded. Until one
    /// succeeds, everything stays in memory and in the log, and nothing is lost.
    pub fn checkpoint_failure(&self) -> Option<String> {
        self.shared().checkpoint_failure.lock().clone()
    }

    /// Tables with problems, by name, with a message. First, tables whose last merge failed and is being retried:
    /// reads become slower, and in the end writes are refused. Second, tables with documents that have too much at an
    /// indexed path: conditions on that path read those documents until they are rewritten.
    pub fn merge_failures(&self) -> Vec<(String, String)> {
        let snapshot = self.snapshot();
        let failures = snapshot.tables.values().filter_map(|table| {
            let name = table.schema.name.clone();
            let failure = table.activity.merge_failure();
            let failure = failure.map(|why| merge::failure_of(&name, &why));
            let why = failure.or_else(|| merge::without_path(table))?;
            Some((name, why))
        });
        let mut failures: Vec<_> = failures.collect();
        failures.sort();
        failures
    }

    /// Why writes fail, either for now (a full disk) or until the directory is reopened. `None` if they do not.
    pub fn write_refusal(&self) -> Option<String> {
        match self.shared().published.stopped() {
            Some(error) => Some(error.to_string()),
            None => self.shared().store().ok()?.refusal(),
        }
    }

    /// The statistics of a table.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such table, [`Error::Closed`] after [`Database::close`].
    pub fn statistics(&self, table: &str) -> Result<TableStatistics> {
        let reader = self.reader();
        let table = reader.known(table)?;
        if table.schema.is_distributed() {
            // Segments and bytes belong to its parts.
            return Ok(TableStatistics { rows: table.live_count(), ..TableStatistics::default() });
        }
        let store = self.shared().store()?;
        let merging = self.shared().merging.load(Ordering::Relaxed) > 0;
        let mut statistics = TableStatistics {
            rows: table.live_count(),
            segments: table.segments.len() as u64,
            store_bytes: store.table_bytes(table.number),
            merging,
            ..TableStatistics::default()
        };
        table.segments.iter().for_each(|view| statistics.add(&table.schema, view));
        statistics.tell_indexes(&table.schema, &table.segments);
        statistics.tell(table.activity.done());
        statistics.merge_failure = table.activity.merge_failure();
        statistics.path_failure = merge::without_path(&table);
        Ok(statistics)
    }

    /// Bytes of the row store on disk, its journal included.
    ///
    /// # Errors
    /// [`Error::Closed`] after [`Database::close`].
    pub fn store_bytes(&self) -> Result<u64> {
        Ok(self.shared().store()?.disk_bytes())
    }

    /// Stops the writer and the merges, runs a checkpoint and unlocks the directory, within five seconds. Later
    /// calls return [`Error::Closed`]; closing again does nothing.
    ///
    /// # Errors
    /// [`Error::Busy`] if the last write has not ended: the directory stays locked until it has. Those of
    /// [`Database::checkpoint`] if the last checkpoint failed: the database is closed, and the next start takes
    /// longer.
    pub fn close(&self) -> Result<()> {
        self.handle.close()
    }

    /// The newest state of a table.
    #[cfg(test)]
    pub(crate) fn view(&self, table: &str) -> Arc<TableView> {
        Arc::clone(&self.snapshot().tables[table])
    }

    pub(crate) fn shared(&self) -> &DatabaseState {
        &self.handle.shared
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.shared().published.load()
    }

    fn table(&self, name: &str) -> Result<(Arc<Snapshot>, Arc<TableView>)> {
        let snapshot = self.snapshot();
        let reader = Reader::of(&self.handle.shared, Arc::clone(&snapshot));
        let table = Arc::clone(&*reader.table(name)?);
        Ok((snapshot, table))
    }

    /// Queues a job.
    fn queue(&self, job: impl FnOnce(Waiter) -> Job) -> Result<Pending> {
        let (waiter, pending) = Pending::new(&self.handle.shared);
        self.shared().queue.push(job(waiter))?;
        Ok(pending)
    }
}

impl Handle {
    fn close(&self) -> Result<()> {
        // Held to the end, so that a concurrent call returns only when the database is closed.
        let mut threads = self.threads.lock();
        let Some(writer) = threads.writer.take() else { return Ok(()) };
        let started = Instant::now();
        self.shared.queue.close(Error::Closed);
        if !join_until(&writer, started + DRAIN_TIME) {
            self.shared.queue.fail(&Error::Closed);
        }
        if !join_until(&writer, started + CLOSE_TIME) {
            return Err(self.abandon());
        }
        let healthy = self.shared.published.stopped().is_none();
        let saved = if healthy { self.save(started + CLOSE_TIME) } else { Ok(()) };
        self.shared.published.stop(Error::Closed);
        for merge in threads.merges.drain(..) {
            join_until(&merge, started + CLOSE_TIME);
        }
        self.shared.release();
        saved
    }

    /// Runs a checkpoint, so that the next start is quick.
    fn save(&self, deadline: Instant) -> Result<()> {
        merge::checkpoint(&self.shared)?;
        self.shared.store()?.flush(deadline)
    }

    /// Closes although the writer still waits for the disk. The directory stays locked until the writer ends, because
    /// it may still write.
    fn abandon(&self) -> Error {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.published.stop(Error::Closed);
        let directory = self.shared.directory.display();
        Error::Busy(format!(
            "the last write to {directory} has not ended: the directory stays locked until it ends"
        ))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the last checkpoint failed; the next start takes longer");
        }
    }
}

impl Threads {
    fn start(shared: &Arc<DatabaseState>) -> Result<Self> {
        let spawn = |name: &str, niceness: i32, run: fn(&DatabaseState)| {
            let shared = Arc::clone(shared);
            std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                merge::lower_priority(niceness);
                run(&shared);
            })
        };
        let writer = Some(spawn("remora-writer", 0, write::run)?);
        let merges = vec![
            spawn("remora-merge-s", SMALL_MERGE_NICENESS, merge::run_small)?,
            spawn("remora-merge-l", 0, merge::run_large)?,
        ];
        Ok(Self { writer, merges })
    }
}

/// Waits for the end of a thread; false if it still runs at `deadline`.
fn join_until(thread: &JoinHandle<()>, deadline: Instant) -> bool {
    while !thread.is_finished() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}
