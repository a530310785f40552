//! Batches larger than memory: staged by their caller part by part, visible and durable as one.
//!
//! ```text
//! caller   begin: reserve a number
//!          add: prepare a part, have it indexed          (prepare, indexing/)
//!               put the rows of the part before it under the number, its segment into a file
//!          commit: queue, wait
//! writer   one synced commit: the mark that the rows are staged, the positions
//!          publish, acknowledge
//!          move the rows to their tables, a part between two groups    (storage/staged)
//! ```
//! Other writers and definitions continue meanwhile. Before the commit only the batch itself reads its staged rows
//! ([`LargeBatch::reader`]). A batch that is dropped or ended by a crash leaves nothing behind. Memory holds two
//! parts, the data of segments that is not left in files, and one bit per document of the table's segments.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::bounded;
use remora_index::{Bitmap, segment::Segment};

use super::{
    computed::RowColumns,
    group::{ChangeRuns, IndexedGroup},
    prepare::prepare,
    writer::{Writer, find_table, stale},
};
use crate::{
    ChangeBatch, Error, Position, Reader, RequestPart, Result, Schema, TableChanges,
    error::no_table,
    merge::merge_views,
    shared::{Built, DatabaseState, Job, LargeCommit, PreparedBatch, PreparedTable, Waiter},
    snapshot::{SegmentView, Snapshot, TableView},
    storage::{
        catalog,
        rows::OverlaidRows,
        staged::{self, StagedMove},
        store::{Keyspace, Store, StoreBatch, StoreSnapshot},
    },
};

/// Bytes of one commit of staged rows. The store does nothing else during a commit.
const COMMIT_BYTES: usize = 256 << 10;
/// How often a commit that waits for the move of another batch's rows checks for a full disk.
const STAGED_MOVE_POLL: Duration = Duration::from_millis(100);
/// At this many segments of a table the smaller ones are merged.
const SEGMENTS: usize = 40;
/// The most segments merged at once.
const MERGED_SEGMENTS: usize = 32;
/// The approximate size limit of segments that a merge makes.
const MERGED_BYTES: u64 = 256 << 20;
/// Up to this many documents, the keys of a segment are looked up among the staged rows. For larger segments the
/// staged rows are looked up in the segment.
const LOOKED_UP_DOCUMENTS: u32 = 100_000;

/// A batch of any size that becomes visible and durable as a whole. Dropping it without a commit discards it.
pub struct LargeBatch {
    shared: Arc<DatabaseState>,
    number: u32,
    /// The part added last; it may still be in the indexing threads.
    last: Option<PreparedBatch>,
    tables: BTreeMap<u32, Built>,
    staged_bytes: u64,
    unsaved_bytes: u64,
    /// Why staging failed: a part is missing, so the batch cannot be committed.
    failure: Option<Error>,
    is_committed: bool,
}

impl LargeBatch {
    pub(crate) fn begin(shared: &Arc<DatabaseState>) -> Result<Self> {
        let (sender, number) = bounded(1);
        shared.queue.push(Job::Reserve(sender))?;
        let number = number.recv().unwrap_or_else(|_| Err(shared.refusal()))?;
        Ok(Self {
            shared: Arc::clone(shared),
            number,
            last: None,
            tables: BTreeMap::new(),
            staged_bytes: 0,
            unsaved_bytes: 0,
            failure: None,
            is_committed: false,
        })
    }

    /// Adds changes after those added before. The limits of one batch apply to each call: add a few megabytes at a
    /// time.
    ///
    /// # Errors
    /// Errors of these changes are returned at once, and the batch stays as it was: [`Error::NotFound`] if there is
    /// no such table, [`Error::Request`] if a row or a key does not fit its table, a row is an insert (only puts and
    /// deletes are allowed), or the changes are too many or too large.
    ///
    /// This call also stages the changes added before. If that fails, the batch cannot be committed, and later calls
    /// return the same error:
    ///
    /// - [`Error::Conflict`] or [`Error::NotFound`]: their table was altered or dropped meanwhile.
    /// - [`Error::Request`]: the batch is larger than
    ///   [`Options::max_large_batch_bytes`](crate::Options::max_large_batch_bytes).
    /// - [`Error::Full`], [`Error::Io`] or [`Error::Corrupt`]: they cannot be written or indexed.
    /// - [`Error::Poisoned`] or [`Error::Closed`]: the database accepts no writes any more.
    pub fn add(&mut self, tables: Vec<TableChanges>) -> Result<()> {
        self.check_whole()?;
        let batch = ChangeBatch { tables, positions: Vec::new() };
        let prepared =
            prepare(batch, RowColumns::VisibleOnly, &self.shared.published.load(), &self.shared)?;
        if prepared.inserts() {
            let message = "a large batch cannot insert rows: put them instead";
            return Err(Error::request(RequestPart::Row, message));
        }
        let before = self.last.replace(prepared);
        before.map_or(Ok(()), |before| self.stage(before))
    }

    /// A snapshot of all tables with the changes added so far. Cost: the last added changes are staged on disk.
    ///
    /// # Errors
    /// Those of [`LargeBatch::add`] if the changes added last cannot be staged; [`Error::Corrupt`], [`Error::Io`] or
    /// [`Error::Conflict`] if the staged rows cannot be read.
    pub fn reader(&mut self) -> Result<Reader> {
        self.stage_last()?;
        let current = self.shared.published.load();
        let store = self.shared.store()?.snapshot();
        let mut tables = current.tables.clone();
        for view in tables.values_mut() {
            let Some(built) = self.tables.get_mut(&view.number) else { continue };
            built.find_replaced(self.number, view, &store)?;
            let segments = built.segments_with_batch(view).unwrap_or_default();
            let rows = Arc::new(OverlaidRows {
                below: Arc::clone(&view.rows),
                snapshot: Arc::clone(&store),
                number: self.number,
                table: view.number,
                format: Arc::clone(&view.format),
            });
            *view = Arc::new(TableView { segments, rows, ..TableView::clone(view) });
        }
        Ok(Reader::of(&self.shared, Arc::new(current.with_tables(tables))))
    }

    /// Makes the batch visible and durable, with these positions of sources. Waits while the rows of another large
    /// batch are moved to their tables, but not for room on a full disk.
    ///
    /// # Errors
    /// - Those of [`LargeBatch::add`] if the changes added last cannot be staged.
    /// - [`Error::Conflict`] or [`Error::NotFound`]: a table was altered or dropped meanwhile.
    /// - [`Error::NotUnique`]: two rows would have the same value at a unique path.
    /// - [`Error::Full`]: the disk is full.
    /// - [`Error::Busy`]: a unique path is not indexed, and cannot be.
    /// - [`Error::Corrupt`] or [`Error::Io`]: the staged rows cannot be read.
    /// - [`Error::Poisoned`] or [`Error::Closed`]: the database accepts no writes any more. If that happened during
    ///   the commit, only the next start shows whether it succeeded.
    pub fn commit(mut self, positions: Vec<(String, String)>) -> Result<Position> {
        self.stage_last()?;
        self.wait_until_staged_moved()?;
        self.find_all_replaced()?;
        let tables = std::mem::take(&mut self.tables);
        let (number, unsaved_bytes) = (self.number, self.unsaved_bytes);
        let commit = LargeCommit { number, tables, positions, unsaved_bytes };
        let (waiter, outcome) = Waiter::new();
        self.shared.queue.push(Job::Large(commit, waiter))?;
        let outcome = outcome.wait().unwrap_or_else(|| Err(self.shared.refusal()));
        // After these errors only the next start can tell whether it was committed: keep its rows.
        self.is_committed = matches!(outcome, Ok(_) | Err(Error::Poisoned(_) | Error::Closed));
        outcome
    }

    fn stage_last(&mut self) -> Result<()> {
        self.check_whole()?;
        self.last.take().map_or(Ok(()), |last| self.stage(last))
    }

    fn check_whole(&self) -> Result<()> {
        self.shared.check_open()?;
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Writes the rows and the segments of a part.
    fn stage(&mut self, mut part: PreparedBatch) -> Result<()> {
        let staged = part.wait_until_indexed().and_then(|()| self.stage_indexed(&part));
        self.failure = staged.as_ref().err().cloned();
        staged
    }

    fn stage_indexed(&mut self, part: &PreparedBatch) -> Result<()> {
        let current = self.shared.published.load();
        let indexed = IndexedGroup::new(std::slice::from_ref(part))?;
        for table in &part.tables {
            self.check_definition(&current, table)?;
            self.put_rows(table)?;
        }
        for (number, runs) in &indexed.tables {
            if let (Some(view), Some(built)) =
                (find_table(&current, *number), self.tables.get_mut(number))
            {
                built.add(runs, view, &self.shared)?;
            }
        }
        self.unsaved_bytes += indexed.unsaved_bytes;
        let limit = self.shared.options.max_large_batch_bytes;
        if self.staged_bytes > limit {
            let message = format!("a large batch of more than {limit} bytes: make it smaller");
            return Err(Error::request(RequestPart::Batch, message));
        }
        Ok(())
    }

    /// All parts must use the same definition of the table.
    fn check_definition(&mut self, current: &Snapshot, table: &PreparedTable) -> Result<()> {
        if let Some(error) = stale(current, table) {
            return Err(error);
        }
        let view = find_table(current, table.number);
        let view = view.ok_or_else(|| no_table(&table.schema.name))?;
        let built = self.tables.entry(table.number).or_insert_with(|| Built::new(view));
        if built.defined == table.defined { Ok(()) } else { Err(altered(&built.name)) }
    }

    fn put_rows(&mut self, table: &PreparedTable) -> Result<()> {
        let store = self.shared.store()?;
        let mut commit = StoreBatch::new();
        let mut bytes = 0;
        for change in &table.changes {
            let key = staged::staged_key(table.number, &change.key);
            let value = staged::staged_value(change.stored.as_deref());
            bytes += key.len() + value.len();
            self.staged_bytes += (key.len() + value.len()) as u64;
            commit.put(Keyspace::Rows(self.number), key, value);
            if bytes >= COMMIT_BYTES {
                self.commit_staged(&*store, std::mem::take(&mut commit))?;
                bytes = 0;
            }
        }
        self.commit_staged(&*store, commit)
    }

    fn commit_staged(&self, store: &dyn Store, commit: StoreBatch) -> Result<()> {
        store.commit(commit, false).map_err(|error| self.shared.poison(&error))
    }

    /// Does the look-ups that the writer would otherwise do, because they take long on large
    /// tables.
    fn find_all_replaced(&mut self) -> Result<()> {
        let current = self.shared.published.load();
        let store = self.shared.store()?.snapshot();
        for (&number, built) in &mut self.tables {
            if let Some(view) = find_table(&current, number) {
                built.find_replaced(self.number, view, &store)?;
            }
        }
        Ok(())
    }

    fn wait_until_staged_moved(&self) -> Result<()> {
        let is_moved =
            |current: &Snapshot| current.tables.values().all(|table| table.staged.is_none());
        loop {
            let deadline = Instant::now() + STAGED_MOVE_POLL;
            if self.shared.published.wait_until(Some(deadline), is_moved)? {
                return Ok(());
            }
            // On a full disk no rows are moved, so the wait could not end.
            if let Some(reason) = self.shared.store()?.refusal() {
                return Err(Error::Full(reason));
            }
        }
    }
}

impl Drop for LargeBatch {
    fn drop(&mut self) {
        if self.is_committed || self.staged_bytes == 0 {
            return;
        }
        // If the database is closed, the next start drops the rows.
        if let Ok(store) = self.shared.store()
            && let Err(error) = store.drop_rows(self.number)
        {
            self.shared.poison(&error);
        }
    }
}

fn altered(table: &str) -> Error {
    let message =
        format!("table {table:?} was altered while a large batch was sent: send it again");
    Error::Conflict(message)
}

impl Built {
    fn new(view: &TableView) -> Self {
        let nothing =
            |one: &SegmentView| (Arc::clone(&one.segment), Bitmap::new(one.segment.doc_count()));
        let replaced = view.segments.iter().map(nothing).collect();
        let name = view.schema.name.clone();
        Self { name, defined: view.defined, segments: Vec::new(), replaced }
    }

    /// Adds the changes of a part.
    fn add(
        &mut self,
        runs: &ChangeRuns<'_>,
        view: &TableView,
        shared: &DatabaseState,
    ) -> Result<()> {
        runs.apply_to(&mut self.segments, &view.schema);
        for key in runs.keys() {
            for (segment, replaced) in &mut self.replaced {
                if let Some(document) = segment.keys().find(key) {
                    replaced.insert(document);
                }
            }
        }
        self.merge_small(&view.schema)?;
        for view in &mut self.segments {
            if let Some(saved) = shared.save_ahead(&view.segment)? {
                view.segment = saved;
            }
        }
        Ok(())
    }

    /// Merges small segments if there are many, as background merges do for published ones.
    fn merge_small(&mut self, schema: &Schema) -> Result<()> {
        if self.segments.len() < SEGMENTS {
            return Ok(());
        }
        self.segments.sort_by_key(SegmentView::bytes);
        let mut bytes = 0;
        let small = self.segments.iter().take(MERGED_SEGMENTS).take_while(|segment| {
            bytes += segment.bytes();
            bytes <= MERGED_BYTES
        });
        let small = small.count();
        if small > 1 {
            let merged = merge_views(schema, self.segments.get(..small).unwrap_or_default())?;
            let merged = merged.map(|merged| SegmentView::new(merged, None, schema));
            self.segments.splice(..small, merged);
        }
        Ok(())
    }

    /// Finds the replaced documents in segments of the table that were not searched yet.
    pub(super) fn find_replaced(
        &mut self,
        number: u32,
        view: &TableView,
        store: &Arc<dyn StoreSnapshot>,
    ) -> Result<()> {
        let is_there = |segment: &Arc<Segment>| view.segments.iter().any(|one| one.is_of(segment));
        self.replaced.retain(|(segment, _)| is_there(segment));
        let unknown = view.segments.iter().filter(|one| self.replaced_in(one).is_none());
        let unknown = unknown.map(|one| Arc::clone(&one.segment));
        let (small, large): (Vec<_>, Vec<_>) =
            unknown.partition(|segment| segment.doc_count() <= LOOKED_UP_DOCUMENTS);
        for segment in small {
            let replaced = staged_documents(&segment, number, view.number, &**store)?;
            self.replaced.push((segment, replaced));
        }
        if large.is_empty() {
            return Ok(());
        }
        let mut replaced: Vec<Bitmap> =
            large.iter().map(|segment| Bitmap::new(segment.doc_count())).collect();
        store.scan(Keyspace::Rows(number), &view.number.to_be_bytes(), &mut |staged, _| {
            let (table, key) = staged::parse_staged_key(staged)?;
            for (segment, replaced) in large.iter().zip(&mut replaced) {
                if let Some(document) = segment.keys().find(key) {
                    replaced.insert(document);
                }
            }
            Ok(table == view.number)
        })?;
        self.replaced.extend(large.into_iter().zip(replaced));
        Ok(())
    }

    fn replaced_in(&self, view: &SegmentView) -> Option<&Bitmap> {
        let known = self.replaced.iter().find(|(segment, _)| view.is_of(segment));
        known.map(|(_, replaced)| replaced)
    }

    /// The table's segments with the batch applied; `None` if one of them was not searched yet.
    pub(super) fn segments_with_batch(&self, view: &TableView) -> Option<Vec<SegmentView>> {
        let mut segments = Vec::with_capacity(view.segments.len() + self.segments.len());
        for segment in &view.segments {
            let replaced = self.replaced_in(segment)?.iter();
            let gone: Vec<u32> = replaced.filter(|&doc| !segment.is_deleted(doc)).collect();
            segments.push(match gone.is_empty() {
                true => segment.clone(),
                false => segment.without_docs(&gone, &view.schema),
            });
        }
        segments.retain(|segment| segment.live_count() > 0);
        segments.extend(self.segments.iter().cloned());
        Some(segments)
    }
}

/// The documents of a segment whose keys are staged.
fn staged_documents(
    segment: &Segment,
    number: u32,
    table: u32,
    store: &dyn StoreSnapshot,
) -> Result<Bitmap> {
    let mut staged = Bitmap::new(segment.doc_count());
    let mut key = Vec::new();
    for document in 0..segment.doc_count() {
        key.clear();
        segment.keys().read(document, &mut key);
        if store.get(Keyspace::Rows(number), &staged::staged_key(table, &key))?.is_some() {
            staged.insert(document);
        }
    }
    Ok(staged)
}

impl Writer<'_> {
    /// Reserves a number under which rows are staged.
    pub(super) fn reserve(&mut self) -> Result<u32> {
        let number = self.read_store(|store| catalog::next_table(&**store))?;
        let mut commit = StoreBatch::new();
        catalog::put_next_table(&mut commit, catalog::number_after(number)?);
        self.commit_to_store(commit, false)?;
        self.refresh_snapshots()?;
        Ok(number)
    }

    /// Makes a staged batch durable and visible. The order of the steps must not change:
    /// 1. Record the changes for watchers. Without the next step they do not count.
    /// 2. Commit the mark, synced. Without it the next start drops the staged rows.
    /// 3. Publish, and only then acknowledge.
    pub(super) fn commit_large(&mut self, mut large: LargeCommit) -> Result<Position> {
        while self.staged_move.is_some() {
            self.move_some_staged()?;
        }
        let current = self.shared.published.load();
        for (&number, built) in &large.tables {
            match find_table(&current, number) {
                None => return Err(no_table(&built.name)),
                Some(view) if view.defined != built.defined => return Err(altered(&built.name)),
                Some(_) => {}
            }
        }
        self.check_unique_large(&mut large)?;
        let position = Position(self.position.0 + 1);
        self.record_large(&large, position)?;
        let mut commit = StoreBatch::new();
        if !large.tables.is_empty() {
            catalog::put_staged(&mut commit, large.number, position);
        }
        catalog::put_position(&mut commit, position);
        catalog::put_sources(&mut commit, large.positions.iter().map(|(name, at)| (name, at)));
        self.commit_to_store(commit, true)?;
        self.position = position;
        // It is committed, but only a restart can show it: end writing.
        self.publish_large(&mut large).map_err(|error| match error {
            // [`Error::Full`] would invite the caller to try again, which is wrong after the
            // commit.
            Error::Full(reason) => self.shared.poison(&Error::Poisoned(reason)),
            other => self.shared.poison(&other),
        })?;
        self.refresh_snapshots()?;
        let tables = large.tables.keys().copied();
        self.recent.note_tables(&self.shared.transactions, tables, position);
        self.shared.unsaved_bytes.fetch_add(large.unsaved_bytes, Ordering::Relaxed);
        self.shared.published.notify_work();
        if !large.tables.is_empty() {
            self.staged_move = Some(StagedMove::new(large.number, position));
        }
        let feed = self.feed.take();
        self.keep_feed(feed);
        Ok(position)
    }

    /// Publishes the snapshot with the batch. Replaced documents are searched outside the lock of `published`. A
    /// merge may exchange segments meanwhile; then the new ones are searched and it tries again.
    fn publish_large(&self, large: &mut LargeCommit) -> Result<()> {
        loop {
            let current = self.shared.published.load();
            let store = self.read_store(|store| {
                for (&number, built) in &mut large.tables {
                    if let Some(view) = find_table(&current, number) {
                        built.find_replaced(large.number, view, store)?;
                    }
                }
                Ok(Arc::clone(store))
            })?;
            let mut is_published = false;
            self.shared.published.update(|current| {
                let tables = current.tables.iter().map(|(name, view)| {
                    let view = match large.tables.get(&view.number) {
                        None => view.at(&store, view.changed, view.segments.clone()),
                        Some(built) => {
                            let segments = built.segments_with_batch(view)?;
                            view.activity.changed();
                            let staged = Some(large.number);
                            let view = TableView { staged, ..TableView::clone(view) };
                            view.at(&store, self.position, segments)
                        }
                    };
                    Some((Arc::clone(name), Arc::new(view)))
                });
                let tables = tables.collect::<Option<HashMap<_, _>>>()?;
                is_published = true;
                let sources = large.positions.iter().map(|(name, at)| (name, at));
                let sources = current.sources.with(sources);
                Some(Snapshot::new(self.position, sources, tables))
            });
            if is_published {
                return Ok(());
            }
        }
    }

    /// Moves some of the staged rows to their tables. A failure ends all writing, except a full disk: then the same
    /// rows are moved again later.
    pub(super) fn move_some_staged(&mut self) -> Result<()> {
        let Some(staged_move) = self.staged_move.take() else { return Ok(()) };
        let moved = self.move_staged_part(staged_move.clone());
        if let Ok(next) = moved {
            self.staged_move = next;
            return Ok(());
        }
        if matches!(moved, Err(Error::Full(_))) {
            self.staged_move = Some(staged_move);
        }
        moved.map(|_| ())
    }

    /// Moves some rows. Returns the rest of the move; `None` if all rows are moved.
    fn move_staged_part(&mut self, staged_move: StagedMove) -> Result<Option<StagedMove>> {
        let current = self.shared.published.load();
        let is_there = |table: u32| find_table(&current, table).is_some();
        let next = self.read_store(|store| {
            let mut after = staged_move.clone();
            Ok((after.next(&**store, &is_there)?, after))
        });
        match next.map_err(|error| self.shared.poison(&error))? {
            (Some(commit), after) => {
                self.commit_to_store(commit, false)?;
                // The move changes nothing that readers see.
                self.refresh_snapshots()?;
                Ok(Some(after))
            }
            (None, _) => self.end_staged_move(&staged_move).map(|()| None),
        }
    }

    /// Ends the move. Older snapshots still read the staged rows; new ones do not look for them.
    fn end_staged_move(&mut self, staged_move: &StagedMove) -> Result<()> {
        self.commit_to_store(staged_move.end(), true)?;
        let store = self.store.snapshot();
        self.shared.published.update(|current| {
            let tables = current.tables.iter().map(|(name, view)| {
                let view = TableView { staged: None, ..TableView::clone(view) };
                let view = view.at(&store, view.changed, view.segments.clone());
                (Arc::clone(name), Arc::new(view))
            });
            Some(current.with_tables(tables.collect()))
        });
        self.refresh_snapshots()?;
        self.drop_rows(staged_move.number)
    }
}
