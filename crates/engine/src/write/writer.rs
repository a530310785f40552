//! The writer thread: the only one that commits rows and advances the position.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    thread::ScopedJoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use super::{
    feed::Feed,
    group::{IndexedGroup, publish},
    recent::RecentWrites,
};
use crate::{
    Durability, Error, Position, Result,
    error::no_table,
    merge::{Limit, is_crowded, is_merge_due, relieve},
    shared::{DatabaseState, PoisonOnPanic, PreparedBatch, PreparedTable, TakenJobs, Waiter},
    snapshot::{Published, Snapshot, TableView},
    storage::{
        catalog,
        staged::{StagedMove, staged_key},
        store::{Keyspace, Store, StoreBatch, StoreSnapshot},
    },
};

/// How long to wait for merges before checking again what can be done.
const MERGE_WAIT: Duration = Duration::from_millis(20);
/// The longest delay between a pipeline batch's commit and its sync.
const PIPELINE_SYNC: Duration = Duration::from_millis(100);
/// How often a full disk is checked for room.
const ROOM_POLL: Duration = Duration::from_secs(1);
/// The writer's thread ends after this time without work.
pub(super) const IDLE_TIME: Duration = Duration::from_secs(1);
/// Waits for merges from this length on are logged.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// Runs the writer until the queue is closed and empty.
pub(crate) fn run(shared: &DatabaseState) {
    let _guard = PoisonOnPanic(shared, "writer");
    let Ok(store) = shared.store() else { return };
    let position = shared.published.load().position;
    let recent = RecentWrites::default();
    let reopen_count = store.reopen_count();
    let (unsynced_since, staged_move, feed) = (None, None, None);
    let mut writer =
        Writer { shared, store, position, unsynced_since, recent, staged_move, feed, reopen_count };
    writer.load_feed();
    writer.run();
}

/// The state of the writer thread.
pub(super) struct Writer<'s> {
    pub shared: &'s DatabaseState,
    pub store: Arc<dyn Store>,
    /// The last committed batch.
    pub position: Position,
    /// The time of the oldest commit that is not synced.
    unsynced_since: Option<Instant>,
    /// Recently written keys, for transaction conflicts.
    pub recent: RecentWrites,
    /// The large batch whose rows are being moved to their tables.
    pub staged_move: Option<StagedMove>,
    /// The change feed, if there are watchers.
    pub feed: Option<Feed>,
    /// The store's reopen count that readers' snapshots reflect.
    reopen_count: u64,
}

impl Writer<'_> {
    /// Works until the queue is closed. Each stretch of work has a thread of its own that ends when idle. Only then
    /// does the allocator return memory that this thread allocated and others freed; after a copy that is more than
    /// the tables take.
    fn run(&mut self) {
        let mut is_open = true;
        while is_open {
            let work = Mutex::new(&mut *self);
            is_open = std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().name("remora-writes".to_owned());
                let done = thread.spawn_scoped(scope, || work.lock().work());
                match done.map(ScopedJoinHandle::join) {
                    Ok(Ok(is_open)) => is_open,
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    // No thread can be started: work in this one.
                    Err(_) => work.lock().work(),
                }
            });
            if is_open {
                self.shared.queue.wait();
            }
        }
        self.sync_after(Duration::ZERO);
    }

    /// Works until the queue is idle or closed; returns whether it is open.
    fn work(&mut self) -> bool {
        let _guard = PoisonOnPanic(self.shared, "writer");
        loop {
            let wait_time = self.wait_time();
            let began = Instant::now();
            match self.shared.queue.take(wait_time.or(Some(IDLE_TIME))) {
                TakenJobs::Group(group) => self.write(group),
                TakenJobs::Definitions(definitions, waiter) => {
                    waiter.answer(self.define(definitions));
                }
                TakenJobs::Reserve(answer) => {
                    // The caller may have stopped waiting.
                    let _ = answer.send(self.reserve());
                }
                TakenJobs::Large(large, waiter) => waiter.answer(self.commit_large(large)),
                TakenJobs::Watch(order) => self.watch(order),
                // Nothing is sent: this waits until the sender is dropped.
                TakenJobs::Hold(until) => _ = until.recv(),
                TakenJobs::Nothing if wait_time.is_none() && began.elapsed() >= IDLE_TIME => {
                    return true;
                }
                TakenJobs::Nothing => {}
                TakenJobs::Closed => return false,
            }
            if !matches!(self.move_some_staged(), Ok(()) | Err(Error::Full(_))) {
                return false;
            }
            self.sync_if_due();
            // If there is still no room, the next round tries again.
            let _ = self.resume();
        }
    }

    /// Writes a group. A batch that expects something of a key must be checked against the state before it. So if an
    /// earlier batch of the group changes the key, that one is written first.
    fn write(&mut self, group: Vec<(PreparedBatch, Waiter)>) {
        let group = self.with_current_paths(self.indexed(group));
        if !group.iter().any(|(batch, _)| batch.expects()) {
            return self.commit_group(group);
        }
        let mut together = Vec::with_capacity(group.len());
        let mut keys = FxHashSet::default();
        for (batch, waiter) in group {
            if batch.expects() && batch.claims().any(|key| keys.contains(&key)) {
                self.commit_group(std::mem::take(&mut together));
                keys.clear();
            }
            let mut checked = self.check_expectations(&batch);
            // An earlier batch of the group may free the value.
            if matches!(checked, Err(Error::NotUnique { .. })) && !together.is_empty() {
                self.commit_group(std::mem::take(&mut together));
                keys.clear();
                checked = self.check_expectations(&batch);
            }
            match checked {
                Ok(()) if batch.precondition.is_some() && batch.is_empty() => {
                    waiter.answer(Ok(self.position))
                }
                Ok(()) => {
                    keys.extend(batch.claims());
                    together.push((batch, waiter));
                }
                Err(error) => {
                    batch.break_pipeline();
                    waiter.answer(Err(error));
                }
            }
        }
        self.commit_group(together);
    }

    /// Waits until the large batches are indexed; refuses those that cannot be.
    fn indexed(&self, group: Vec<(PreparedBatch, Waiter)>) -> Vec<(PreparedBatch, Waiter)> {
        let mut indexed = Vec::with_capacity(group.len());
        for (mut batch, waiter) in group {
            match batch.wait_until_indexed() {
                Ok(()) => indexed.push((batch, waiter)),
                Err(error) => {
                    batch.break_pipeline();
                    waiter.answer(Err(error));
                }
            }
        }
        indexed
    }

    /// Updates batches that were prepared before the paths of a table changed; refuses those that cannot be.
    fn with_current_paths(
        &self,
        group: Vec<(PreparedBatch, Waiter)>,
    ) -> Vec<(PreparedBatch, Waiter)> {
        let snapshot = self.shared.published.load();
        let mut current = Vec::with_capacity(group.len());
        for (mut batch, waiter) in group {
            let mut tables = batch.tables.iter_mut();
            let followed = tables.try_for_each(|table| match find_table(&snapshot, table.number) {
                Some(view) => table.update_paths(view),
                None => Ok(()),
            });
            match followed {
                Ok(()) => current.push((batch, waiter)),
                Err(error) => {
                    batch.break_pipeline();
                    waiter.answer(Err(error));
                }
            }
        }
        current
    }

    fn commit_group(&mut self, group: Vec<(PreparedBatch, Waiter)>) {
        let (batches, waiters): (Vec<_>, Vec<_>) = self.refuse_stale(group).into_iter().unzip();
        if batches.is_empty() {
            return;
        }
        match self.write_batches(&batches) {
            Ok(first) => {
                let positions = (first.0..).map(|at| Ok(Position(at)));
                Waiter::answer_all(waiters.into_iter().zip(positions));
            }
            // A batch that cannot be indexed must not fail the others of its group.
            Err(error)
                if batches.len() > 1 && !matches!(error, Error::Poisoned(_) | Error::Full(_)) =>
            {
                let alone = batches.into_iter().zip(waiters);
                alone.for_each(|alone| self.commit_group(vec![alone]));
            }
            Err(error) => {
                batches.iter().for_each(PreparedBatch::break_pipeline);
                waiters.into_iter().for_each(|waiter| waiter.answer(Err(error.clone())));
            }
        }
    }

    /// Makes batches durable and visible; returns the position of the first. The order of the steps must not change:
    /// 1. Index. A batch that cannot be indexed is refused before anything is written.
    /// 2. Commit and sync. A reader must not see what a crash could undo. A group of pipeline batches alone is not
    ///    synced here: after a crash its source sends the same batches again.
    /// 3. Publish, and only then acknowledge. A caller must see its own write.
    fn write_batches(&mut self, batches: &[PreparedBatch]) -> Result<Position> {
        self.wait_for_merges(batches)?;
        let indexed = IndexedGroup::new(batches)?;
        let first = Position(self.position.0 + 1);
        let last = Position(self.position.0 + batches.len() as u64);
        let feed = self.commit(batches, &indexed, first, last)?;
        self.position = last;
        let store = self.store.snapshot();
        self.shared.published.update(|current| {
            let sources = batches.iter().flat_map(|batch| &batch.positions);
            let sources = current.sources.with(sources.map(|(name, at)| (name, at)));
            Some(publish(current, &indexed, last, sources, &store))
        });
        self.refresh_snapshots()?;
        self.recent.note(&self.shared.transactions, batches, first);
        self.shared.unsaved_bytes.fetch_add(indexed.unsaved_bytes, Ordering::Relaxed);
        self.wake_merges(&indexed);
        self.keep_feed(feed);
        Ok(first)
    }

    /// Commits the batches; returns the new feed.
    fn commit(
        &mut self,
        batches: &[PreparedBatch],
        indexed: &IndexedGroup<'_>,
        first: Position,
        last: Position,
    ) -> Result<Option<Feed>> {
        let mut commit = StoreBatch::new();
        let feed = self.recorded(batches, first, &mut commit)?;
        for table in batches.iter().flat_map(|batch| &batch.tables) {
            table.put_rows(&mut commit);
            self.unstage(table, &mut commit);
        }
        // Only the last position of a source counts.
        let positions = batches.iter().flat_map(|batch| &batch.positions);
        let positions: BTreeMap<_, _> = positions.map(|(name, at)| (name, at)).collect();
        catalog::put_sources(&mut commit, positions.into_iter());
        indexed.tables.iter().for_each(|(&table, runs)| {
            catalog::put_log(&mut commit, last, table, 0, runs.keys());
        });
        catalog::put_position(&mut commit, last);
        let always = self.shared.options.durability == Durability::Always;
        let sync = always && !batches.iter().all(PreparedBatch::is_of_pipeline);
        self.commit_to_store(commit, sync)?;
        Ok(feed)
    }

    /// Deletes the staged rows of these keys, which the batch replaces.
    fn unstage(&self, table: &PreparedTable, commit: &mut StoreBatch) {
        let Some(staged_move) = &self.staged_move else { return };
        for change in &table.changes {
            let key = staged_key(table.number, &change.key);
            commit.delete(Keyspace::Rows(staged_move.number), key);
        }
    }

    /// Commits. A failure ends all writing, except a full disk. If the store was reopened because of that, it may
    /// contain the batch all the same: a caller that commits what readers see must publish it and then call
    /// [`Writer::refresh_snapshots`].
    pub(super) fn commit_to_store(&mut self, commit: StoreBatch, sync: bool) -> Result<()> {
        self.resume()?;
        if let Err(error) = self.store.commit(commit, sync) {
            self.refresh_snapshots()?;
            return Err(self.shared.poison(&error));
        }
        if self.store.reopen_count() != self.reopen_count {
            self.complete_store()?;
        }
        match sync {
            true => self.unsynced_since = None,
            false => _ = self.unsynced_since.get_or_insert_with(Instant::now),
        }
        Ok(())
    }

    /// Resumes writing after a full disk, once there is room. Readers' snapshots are renewed before and after the
    /// attempt, so that they do not wait for room.
    fn resume(&mut self) -> Result<()> {
        self.refresh_snapshots()?;
        if self.store.refusal().is_none() {
            return Ok(());
        }
        let resumed = self.store.resume().map_err(|error| match error {
            full @ Error::Full(_) => full,
            other => self.shared.poison(&other),
        });
        self.refresh_snapshots()?;
        resumed
    }

    /// Reads the newest snapshot of the store. Tries again if the store was reopened meanwhile, for example by a
    /// thread that stages rows.
    pub(super) fn read_store<T>(
        &self,
        mut read: impl FnMut(&Arc<dyn StoreSnapshot>) -> Result<T>,
    ) -> Result<T> {
        loop {
            let reopen_count = self.store.reopen_count();
            match read(&self.store.snapshot()) {
                Err(Error::Conflict(_)) if self.store.reopen_count() != reopen_count => {}
                // A store that cannot be reopened on a full disk has no snapshot.
                Err(error @ Error::Conflict(_)) => {
                    return Err(self.store.refusal().map_or(error, Error::Full));
                }
                read => return read,
            }
        }
    }

    /// The newest snapshot of the store. It must have every acknowledged batch.
    fn complete_store(&self) -> Result<Arc<dyn StoreSnapshot>> {
        let read = |store: &Arc<dyn StoreSnapshot>| {
            Ok((Arc::clone(store), catalog::read_position(&**store)?))
        };
        let (store, there) = self.read_store(read).map_err(|error| self.shared.poison(&error))?;
        if there < self.position {
            let (there, known) = (there.0, self.position.0);
            let lost = format!(
                "the row store was reopened and ends with batch {there}, but batch {known} was written"
            );
            return Err(self.shared.poison(&Error::Corrupt(lost)));
        }
        Ok(store)
    }

    /// If the store was reopened, publishes the tables again with its newest snapshot.
    pub(super) fn refresh_snapshots(&mut self) -> Result<()> {
        let reopen_count = self.store.reopen_count();
        if reopen_count == self.reopen_count {
            return Ok(());
        }
        let store = self.complete_store()?;
        self.shared.published.update(|current| {
            let tables = current.tables.iter().map(|(name, view)| {
                let view = view.at(&store, view.changed, view.segments.clone());
                (Arc::clone(name), Arc::new(view))
            });
            Some(current.with_tables(tables.collect()))
        });
        self.reopen_count = reopen_count;
        Ok(())
    }

    /// Drops the rows of a dropped table.
    pub(super) fn drop_rows(&self, table: u32) -> Result<()> {
        self.store.drop_rows(table).map_err(|error| self.shared.poison(&error))
    }

    fn sync_after(&mut self, interval: Duration) {
        if self.unsynced_since.is_none_or(|since| since.elapsed() < interval) {
            return;
        }
        match self.store.sync().map_err(|error| self.shared.poison(&error)) {
            // The sync is tried again.
            Err(Error::Full(_)) => self.unsynced_since = Some(Instant::now()),
            _ => self.unsynced_since = None,
        }
    }

    /// How long a commit may wait for its sync; `None` if the operating system decides.
    fn sync_interval(&self) -> Option<Duration> {
        match self.shared.options.durability {
            Durability::Always => Some(PIPELINE_SYNC),
            Durability::Interval(interval) => Some(interval),
            Durability::None => None,
        }
    }

    /// How long to wait for a job: until the next sync is due, not at all while rows are to be moved, or until the
    /// next check whether a full disk has room. `None`: as long as the thread may be idle ([`IDLE_TIME`]).
    fn wait_time(&self) -> Option<Duration> {
        if self.store.refusal().is_some() {
            return Some(ROOM_POLL);
        }
        if self.staged_move.is_some() {
            return Some(Duration::ZERO);
        }
        let interval = self.sync_interval()?;
        self.unsynced_since.map(|since| interval.saturating_sub(since.elapsed()))
    }

    /// Refuses batches whose tables were dropped or altered since they were prepared, and those after a failed batch
    /// of their pipeline.
    fn refuse_stale(&self, group: Vec<(PreparedBatch, Waiter)>) -> Vec<(PreparedBatch, Waiter)> {
        let current = self.shared.published.load();
        let mut kept = Vec::with_capacity(group.len());
        for (batch, waiter) in group {
            let refusal = match batch.is_behind_failure() {
                true => {
                    Some(Error::Conflict("an earlier batch of this pipeline failed".to_owned()))
                }
                false => batch.tables.iter().find_map(|table| stale(&current, table)),
            };
            match refusal {
                Some(error) => {
                    batch.break_pipeline();
                    waiter.answer(Err(error));
                }
                None => kept.push((batch, waiter)),
            }
        }
        kept
    }

    /// Backpressure: waits while a touched table has too many segments, because readers ask each of them. If its
    /// merges fail, the batch is refused.
    fn wait_for_merges(&self, batches: &[PreparedBatch]) -> Result<()> {
        let tables = batches.iter().flat_map(|batch| &batch.tables);
        let touched: BTreeSet<u32> = tables.map(|table| table.number).collect();
        let limit = Limit::of(&self.shared.options);
        let crowded = |current: &Snapshot| {
            let mut views = touched.iter().filter_map(|&number| find_table(current, number));
            views.any(|view| is_crowded(view, &limit))
        };
        if !crowded(&self.shared.published.load()) {
            return Ok(());
        }
        self.shared.published.notify_work();
        let since = Instant::now();
        let published = &self.shared.published;
        // Other merges may take long, so the writer merges these tables itself.
        while !published.wait_until(Some(Instant::now()), |current| !crowded(current))? {
            if !relieve(self.shared, &touched) {
                refuse_unmerged(published, &touched, &limit)?;
                published.wait_until(Some(Instant::now() + MERGE_WAIT), |now| !crowded(now))?;
            }
        }
        if since.elapsed() >= LONG_WAIT {
            let waited_ms = since.elapsed().as_millis() as u64;
            tracing::warn!(
                waited_ms,
                "writes waited, because they come faster than segments are merged"
            );
        }
        Ok(())
    }

    pub(super) fn sync_if_due(&mut self) {
        if let Some(interval) = self.sync_interval() {
            self.sync_after(interval);
        }
    }

    fn wake_merges(&self, indexed: &IndexedGroup<'_>) {
        let current = self.shared.published.load();
        let limit = Limit::of(&self.shared.options);
        let due = |&number: &u32| {
            find_table(&current, number).is_some_and(|view| is_merge_due(view, &limit))
        };
        let full = self.shared.unsaved_bytes.load(Ordering::Relaxed);
        let full = full >= self.shared.options.checkpoint_bytes;
        if full || indexed.tables.keys().any(due) {
            self.shared.published.notify_work();
        }
    }
}

/// Refuses writes to a table that has too many segments and whose merges fail. While a merge of it runs, that is not
/// known.
fn refuse_unmerged(published: &Published, touched: &BTreeSet<u32>, limit: &Limit) -> Result<()> {
    if published.is_merging(touched) {
        return Ok(());
    }
    // Loaded only now: a merge publishes its result before it releases its claim.
    let current = &published.load();
    for view in touched.iter().filter_map(|&number| find_table(current, number)) {
        if is_crowded(view, limit)
            && let Some(why) = view.activity.merge_failure()
        {
            let (table, segments) = (&view.schema.name, view.segments.len());
            return Err(Error::Busy(format!(
                "table {table:?} has {segments} segments and none can be merged: {why}. It is \
                 tried again; if it keeps failing, restart: a damaged segment is rebuilt from \
                 the rows"
            )));
        }
    }
    Ok(())
}

/// Why a prepared batch no longer applies to its table, if so.
pub(super) fn stale(current: &Snapshot, prepared: &PreparedTable) -> Option<Error> {
    let name = &prepared.schema.name;
    match find_table(current, prepared.number) {
        None => Some(no_table(name)),
        Some(view) if view.defined != prepared.defined => Some(Error::Conflict(format!(
            "table {name:?} was altered while this batch waited: send it again"
        ))),
        Some(_) => None,
    }
}

/// The table with this number.
pub(super) fn find_table(snapshot: &Snapshot, number: u32) -> Option<&TableView> {
    snapshot.tables.values().find(|view| view.number == number).map(|view| &**view)
}
