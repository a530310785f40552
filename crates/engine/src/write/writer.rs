//! The writer thread: the only one that commits rows and moves the position.

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
    shared::{DatabaseState, PoisonOnPanic, PreparedBatch, PreparedTable, Taken, Waiter},
    snapshot::{Published, Snapshot, TableView},
    storage::{
        catalog,
        staged::{Settling, staged_key},
        store::{Keyspace, Store, StoreBatch, StoreSnapshot},
    },
};

/// How long the threads that merge are waited for before it is looked again what there is to do.
const MERGE_WAIT: Duration = Duration::from_millis(20);
/// Batches of a pipeline are synced within so long, where others are at once.
const PIPELINE_SYNC: Duration = Duration::from_millis(100);
/// How often it is looked whether a disk that was full has room.
const ROOM_POLL: Duration = Duration::from_secs(1);
/// A thread of the writer ends when nothing came for so long.
pub(super) const QUIET: Duration = Duration::from_secs(1);
/// A wait for merges of so long is told to the operator.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// Does what is queued until the queue is closed and empty.
pub(crate) fn run(shared: &DatabaseState) {
    let _guard = PoisonOnPanic(shared, "writer");
    let Ok(store) = shared.store() else { return };
    let position = shared.published.load().position;
    let recent = RecentWrites::default();
    let openings = store.openings();
    let (unsynced_since, settling, feed) = (None, None, None);
    let mut writer =
        Writer { shared, store, position, unsynced_since, recent, settling, feed, openings };
    writer.load_feed();
    writer.run();
}

/// The state of the writer thread.
pub(super) struct Writer<'s> {
    pub shared: &'s DatabaseState,
    pub store: Arc<dyn Store>,
    /// The last committed batch.
    pub position: Position,
    /// Since when a commit waits for its sync.
    unsynced_since: Option<Instant>,
    /// What transactions may collide with.
    pub recent: RecentWrites,
    /// The large batch whose rows are being moved to their tables.
    pub settling: Option<Settling>,
    /// What is kept for those who watch.
    pub feed: Option<Feed>,
    /// How often the store had been opened anew when it was last looked.
    openings: u64,
}

impl Writer<'_> {
    /// Works until the queue is closed. Each stretch of work has a thread that ends when nothing comes any more: only
    /// then does the allocator give back what that thread allocated and others freed, which after a copy is more than
    /// the tables.
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
                    // There are too many threads.
                    Err(_) => work.lock().work(),
                }
            });
            if is_open {
                self.shared.queue.wait();
            }
        }
        self.sync_after(Duration::ZERO);
    }

    /// Does what is queued until nothing came for some time, or the queue is closed; whether it is open.
    fn work(&mut self) -> bool {
        let _guard = PoisonOnPanic(self.shared, "writer");
        loop {
            let patience = self.patience();
            let began = Instant::now();
            match self.shared.queue.take(patience.or(Some(QUIET))) {
                Taken::Group(group) => self.write(group),
                Taken::Definitions(definitions, waiter) => {
                    waiter.answer(self.define(definitions));
                }
                Taken::Reserve(answer) => {
                    // A caller that is gone does not want to know.
                    let _ = answer.send(self.reserve());
                }
                Taken::Large(large, waiter) => waiter.answer(self.commit_large(large)),
                Taken::Watch(order) => self.watch(order),
                // Nothing is sent: this is the end of the sender.
                Taken::Hold(until) => _ = until.recv(),
                Taken::Nothing if patience.is_none() && began.elapsed() >= QUIET => return true,
                Taken::Nothing => {}
                Taken::Closed => return false,
            }
            if !matches!(self.settle_some(), Ok(()) | Err(Error::Full(_))) {
                return false;
            }
            self.sync_if_due();
            // That there is no room yet is nobody's concern here.
            let _ = self.resume();
        }
    }

    /// Writes a group. A batch that expects something of a key is checked against what stands
    /// before it: a batch of the group that changes the key is written first.
    fn write(&mut self, group: Vec<(PreparedBatch, Waiter)>) {
        let group = self.with_current_paths(self.indexed(group));
        if !group.iter().any(|(batch, _)| batch.expects()) {
            return self.write_together(group);
        }
        let mut together = Vec::with_capacity(group.len());
        let mut keys = FxHashSet::default();
        for (batch, waiter) in group {
            if batch.expects() && batch.claims().any(|key| keys.contains(&key)) {
                self.write_together(std::mem::take(&mut together));
                keys.clear();
            }
            let mut checked = self.check_expectations(&batch);
            // One before it may give the value up.
            if matches!(checked, Err(Error::NotUnique { .. })) && !together.is_empty() {
                self.write_together(std::mem::take(&mut together));
                keys.clear();
                checked = self.check_expectations(&batch);
            }
            match checked {
                Ok(()) if batch.since.is_some() && batch.is_empty() => {
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
        self.write_together(together);
    }

    /// Waits until the large batches are indexed; answers those that cannot be.
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

    /// Brings along those that were prepared before the paths of a table were changed; answers those that cannot be.
    fn with_current_paths(
        &self,
        group: Vec<(PreparedBatch, Waiter)>,
    ) -> Vec<(PreparedBatch, Waiter)> {
        let snapshot = self.shared.published.load();
        let mut current = Vec::with_capacity(group.len());
        for (mut batch, waiter) in group {
            let mut tables = batch.tables.iter_mut();
            let followed = tables.try_for_each(|table| match find_table(&snapshot, table.number) {
                Some(view) => table.follow_paths(view),
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

    fn write_together(&mut self, group: Vec<(PreparedBatch, Waiter)>) {
        let (batches, waiters): (Vec<_>, Vec<_>) = self.refuse_stale(group).into_iter().unzip();
        if batches.is_empty() {
            return;
        }
        match self.write_batches(&batches) {
            Ok(first) => {
                let positions = (first.0..).map(Position);
                waiters.into_iter().zip(positions).for_each(|(waiter, at)| waiter.answer(Ok(at)));
            }
            // A batch that cannot be indexed must not take the others of its group with it.
            Err(error)
                if batches.len() > 1 && !matches!(error, Error::Poisoned(_) | Error::Full(_)) =>
            {
                let alone = batches.into_iter().zip(waiters);
                alone.for_each(|alone| self.write_together(vec![alone]));
            }
            Err(error) => {
                batches.iter().for_each(PreparedBatch::break_pipeline);
                waiters.into_iter().for_each(|waiter| waiter.answer(Err(error.clone())));
            }
        }
    }

    /// Makes batches durable and visible; answers the position of the first. The order of the
    /// steps must not move:
    /// 1. Index: what cannot be indexed is refused while nothing is written yet.
    /// 2. Commit and sync: a reader must not see what a crash could take back. Batches of a pipeline
    ///    alone are not waited for: whoever feeds it begins again where the store is, with the same.
    /// 3. Publish, and only then acknowledge: a caller must see its own write.
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
        self.follow_store()?;
        self.recent.note(&self.shared.transactions, batches, first);
        self.shared.unsaved_bytes.fetch_add(indexed.unsaved_bytes, Ordering::Relaxed);
        self.wake_merges(&indexed);
        self.keep_feed(feed);
        Ok(first)
    }

    /// Commits; answers the feed as it is then.
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
        // Only the last of a source counts.
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

    /// What a large batch has staged of these keys is not the newest any more.
    fn unstage(&self, table: &PreparedTable, commit: &mut StoreBatch) {
        let Some(settling) = &self.settling else { return };
        for change in &table.changes {
            let key = staged_key(table.number, &change.key);
            commit.delete(Keyspace::Rows(settling.number), key);
        }
    }

    /// Commits; a failure ends all writing, save that of a full disk. A store that was opened anew for
    /// it may have the batch: whoever commits one that readers see publishes it, and then calls
    /// [`Writer::follow_store`].
    pub(super) fn commit_to_store(&mut self, commit: StoreBatch, sync: bool) -> Result<()> {
        self.resume()?;
        if let Err(error) = self.store.commit(commit, sync) {
            self.follow_store()?;
            return Err(self.shared.poison(&error));
        }
        if self.store.openings() != self.openings {
            self.complete_store()?;
        }
        match sync {
            true => self.unsynced_since = None,
            false => _ = self.unsynced_since.get_or_insert_with(Instant::now),
        }
        Ok(())
    }

    /// Writes again after a full disk, once there is room. What readers have is seen to before and
    /// behind that, for they must not wait for the room.
    fn resume(&mut self) -> Result<()> {
        self.follow_store()?;
        if self.store.refusal().is_none() {
            return Ok(());
        }
        let resumed = self.store.resume().map_err(|error| match error {
            full @ Error::Full(_) => full,
            other => self.shared.poison(&other),
        });
        self.follow_store()?;
        resumed
    }

    /// Reads the newest moment of the store: once more if it was opened anew behind the reading, as
    /// for another thread that stages.
    pub(super) fn read_store<T>(
        &self,
        mut read: impl FnMut(&Arc<dyn StoreSnapshot>) -> Result<T>,
    ) -> Result<T> {
        loop {
            let openings = self.store.openings();
            match read(&self.store.snapshot()) {
                Err(Error::Conflict(_)) if self.store.openings() != openings => {}
                // There is no moment of a store that a full disk keeps from being opened.
                Err(error @ Error::Conflict(_)) => {
                    return Err(self.store.refusal().map_or(error, Error::Full));
                }
                read => return read,
            }
        }
    }

    /// The newest moment of the store, which must have all that was acknowledged.
    fn complete_store(&self) -> Result<Arc<dyn StoreSnapshot>> {
        let read = |store: &Arc<dyn StoreSnapshot>| {
            Ok((Arc::clone(store), catalog::read_position(&**store)?))
        };
        let (store, there) = self.read_store(read).map_err(|error| self.shared.poison(&error))?;
        if there < self.position {
            let (there, known) = (there.0, self.position.0);
            let lost =
                format!("the row store was opened anew and ends with batch {there} of {known}");
            return Err(self.shared.poison(&Error::Corrupt(lost)));
        }
        Ok(store)
    }

    /// Publishes what is there with the rows of a store that was opened anew.
    pub(super) fn follow_store(&mut self) -> Result<()> {
        let openings = self.store.openings();
        if openings == self.openings {
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
        self.openings = openings;
        Ok(())
    }

    /// Drops the rows of a table that is not there any more.
    pub(super) fn drop_rows(&self, table: u32) -> Result<()> {
        self.store.drop_rows(table).map_err(|error| self.shared.poison(&error))
    }

    fn sync_after(&mut self, interval: Duration) {
        if self.unsynced_since.is_none_or(|since| since.elapsed() < interval) {
            return;
        }
        match self.store.sync().map_err(|error| self.shared.poison(&error)) {
            // It is tried again.
            Err(Error::Full(_)) => self.unsynced_since = Some(Instant::now()),
            _ => self.unsynced_since = None,
        }
    }

    /// How long a commit may wait for its sync; `None` where the system decides.
    fn sync_interval(&self) -> Option<Duration> {
        match self.shared.options.durability {
            Durability::Always => Some(PIPELINE_SYNC),
            Durability::Interval(interval) => Some(interval),
            Durability::None => None,
        }
    }

    /// How long to wait for a job: until the next sync is due, not at all while there are rows to
    /// be moved, or until it is looked again whether a full disk has room.
    fn patience(&self) -> Option<Duration> {
        if self.store.refusal().is_some() {
            return Some(ROOM_POLL);
        }
        if self.settling.is_some() {
            return Some(Duration::ZERO);
        }
        let interval = self.sync_interval()?;
        self.unsynced_since.map(|since| interval.saturating_sub(since.elapsed()))
    }

    /// Answers the batches whose tables were dropped or altered since they were prepared, and
    /// those behind a failed one of their pipeline.
    fn refuse_stale(&self, group: Vec<(PreparedBatch, Waiter)>) -> Vec<(PreparedBatch, Waiter)> {
        let current = self.shared.published.load();
        let mut kept = Vec::with_capacity(group.len());
        for (batch, waiter) in group {
            let refusal = match batch.is_behind_failure() {
                true => Some(Error::Conflict("a batch before this one failed".to_owned())),
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

    /// Back-pressure: readers ask every segment, so there must not be many. A table whose merges fail
    /// is not waited for: it refuses.
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
        // What the threads do elsewhere may take long: the writer helps itself meanwhile.
        while !published.wait_until(Some(Instant::now()), |current| !crowded(current))? {
            if !relieve(self.shared, &touched) {
                refuse_unmerged(published, &touched, &limit)?;
                published.wait_until(Some(Instant::now() + MERGE_WAIT), |now| !crowded(now))?;
            }
        }
        if since.elapsed() >= LONG_WAIT {
            let waited_ms = since.elapsed().as_millis() as u64;
            tracing::warn!(waited_ms, "writes waited: they come faster than segments are merged");
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

/// Refuses writes of a table that has too many segments and cannot have them merged. While a merge of
/// it runs that is not known.
fn refuse_unmerged(published: &Published, touched: &BTreeSet<u32>, limit: &Limit) -> Result<()> {
    if published.is_merging(touched) {
        return Ok(());
    }
    // Loaded behind that: a merge publishes what it made before it gives its claim back.
    let current = &published.load();
    for view in touched.iter().filter_map(|&number| find_table(current, number)) {
        if is_crowded(view, limit)
            && let Some(why) = view.activity.merge_failure()
        {
            let (table, segments) = (&view.schema.name, view.segments.len());
            return Err(Error::Busy(format!(
                "table {table:?} has {segments} segments and none can be merged, which is tried \
                 again: {why}; if it stays, restart: a damaged segment is rebuilt from the rows"
            )));
        }
    }
    Ok(())
}

/// Why changes cannot be applied that were prepared for a table as it was.
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

/// The table of this number.
pub(super) fn find_table(snapshot: &Snapshot, number: u32) -> Option<&TableView> {
    snapshot.tables.values().find(|view| view.number == number).map(|view| &**view)
}
