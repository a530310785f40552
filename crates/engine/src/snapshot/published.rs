//! The published snapshot: readers load it, the writer and the merges replace it.
//!
//! Readers take no lock: [`Published::load`] is an atomic pointer read. A thread that replaces the snapshot holds the
//! gate from loading the old one to storing the new one, so no replacement is lost; nothing slow happens under the
//! gate. The gate also protects the claims: a claimed segment is the input of one merge only.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Instant,
};

use arc_swap::{ArcSwap, Guard};
use parking_lot::{Condvar, Mutex, MutexGuard};
use remora_index::segment::Segment;

use super::{SegmentView, Snapshot, TableView};
use crate::{Error, Result};

/// The newest snapshot, and the claims on its segments.
pub(crate) struct Published {
    current: ArcSwap<Snapshot>,
    gate: Mutex<Gate>,
    /// Signals that a snapshot was published, a claim was released, or writes stopped.
    changed: Condvar,
    /// Signals that a merge or a checkpoint may be due, or that writes stopped.
    work: Condvar,
}

#[derive(Default)]
struct Gate {
    claimed: Vec<Arc<Segment>>,
    /// The number of threads that wait until there are no claims. Meanwhile no other thread can
    /// claim segments.
    waiting_for_all: usize,
    stopped: Option<Error>,
}

impl Published {
    /// Publishes the first snapshot.
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            current: ArcSwap::from_pointee(snapshot),
            gate: Mutex::default(),
            changed: Condvar::new(),
            work: Condvar::new(),
        }
    }

    /// The newest snapshot. Never waits.
    #[inline]
    pub fn load(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The newest snapshot for a short look. Cheaper than [`Self::load`], which counts the owners of the snapshot: the
    /// counter is shared by all threads.
    #[inline]
    pub fn peek(&self) -> Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Replaces the snapshot by the result of `change`; `None` keeps it.
    pub fn update(&self, change: impl FnOnce(&Snapshot) -> Option<Snapshot>) {
        let gate = self.gate.lock();
        if let Some(changed) = change(&self.current.load()) {
            self.current.store(Arc::new(changed));
        }
        drop(gate);
        self.changed.notify_all();
    }

    /// Replaces segments by others with the same documents, except those that a merge is reading.
    pub fn exchange(&self, same: &[(Arc<Segment>, Arc<Segment>)]) {
        let gate = self.gate.lock();
        let claims = Claims(&gate.claimed);
        let mut tables = self.current.load().tables.clone();
        for table in tables.values_mut() {
            let is_old = |view: &SegmentView| same.iter().any(|(old, _)| view.is_of(old));
            if !table.segments.iter().any(is_old) {
                continue;
            }
            let activity = Arc::clone(&table.activity);
            for view in &mut Arc::make_mut(table).segments {
                let exchange = same.iter().find(|(old, _)| view.is_of(old) && !claims.has(old));
                if let Some((old, new)) = exchange {
                    activity.exchanged(old, new);
                    view.segment = Arc::clone(new);
                }
            }
        }
        self.current.store(Arc::new(self.current.load().with_tables(tables)));
    }

    /// Drops all tables from the snapshot, so that the store can be closed.
    pub fn clear(&self) {
        self.update(|current| Some(current.with_tables(HashMap::new())));
    }

    /// Wakes the merge threads: a merge or a checkpoint may be due.
    pub fn notify_work(&self) {
        self.work.notify_all();
    }

    /// Ends all waits with `reason`; later reasons are ignored.
    pub fn stop(&self, reason: Error) {
        self.gate.lock().stopped.get_or_insert(reason);
        self.changed.notify_all();
        self.work.notify_all();
    }

    /// Why writes stopped, if they did.
    pub fn stopped(&self) -> Option<Error> {
        self.gate.lock().stopped.clone()
    }

    /// Waits until `ready` is true. False on timeout at `deadline`; an error if writes stop.
    pub fn wait_until(
        &self,
        deadline: Option<Instant>,
        ready: impl Fn(&Snapshot) -> bool,
    ) -> Result<bool> {
        let mut gate = self.gate.lock();
        loop {
            if ready(&self.current.load()) {
                return Ok(true);
            }
            if let Some(reason) = &gate.stopped {
                return Err(reason.clone());
            }
            if !wait(&self.changed, &mut gate, deadline) {
                return Ok(false);
            }
        }
    }

    /// Waits for [`Published::notify_work`], at most until `deadline`.
    pub fn wait_for_work(&self, deadline: Instant, due: impl Fn(&Snapshot, &Claims<'_>) -> bool) {
        let mut gate = self.gate.lock();
        while gate.stopped.is_none() && !due(&self.current.load(), &Claims(&gate.claimed)) {
            if self.work.wait_until(&mut gate, deadline).timed_out() {
                return;
            }
        }
    }

    /// Claims the segments that `pick` chooses among the unclaimed ones.
    pub fn claim(
        &self,
        pick: impl FnOnce(&Snapshot, &Claims<'_>) -> Option<(Arc<TableView>, Vec<usize>)>,
    ) -> Option<Claim<'_>> {
        let mut gate = self.gate.lock();
        if gate.waiting_for_all > 0 {
            return None;
        }
        let (table, chosen) = pick(&self.current.load(), &Claims(&gate.claimed))?;
        Some(self.claim_chosen(&mut gate, table, &chosen))
    }

    /// Claims all segments of the table, after waiting until there are no other claims; `None` if the table does
    /// not exist.
    pub fn claim_all(&self, table: &str) -> Result<Option<Claim<'_>>> {
        let mut gate = self.gate.lock();
        gate.waiting_for_all += 1;
        while !gate.claimed.is_empty() && gate.stopped.is_none() {
            self.changed.wait(&mut gate);
        }
        gate.waiting_for_all -= 1;
        if let Some(reason) = &gate.stopped {
            return Err(reason.clone());
        }
        let table = self.current.load().tables.get(table).cloned();
        Ok(table.map(|table| {
            let all: Vec<usize> = (0..table.segments.len()).collect();
            self.claim_chosen(&mut gate, table, &all)
        }))
    }

    /// Whether a merge of one of these tables is running or waiting.
    pub fn is_merging(&self, numbers: &BTreeSet<u32>) -> bool {
        let gate = self.gate.lock();
        let claims = Claims(&gate.claimed);
        let current = self.current.load();
        let mut tables = current.tables.values().filter(|table| numbers.contains(&table.number));
        gate.waiting_for_all > 0
            || tables.any(|table| table.segments.iter().any(|view| claims.has(&view.segment)))
    }

    /// Whether a thread waits until there are no claims.
    #[cfg(test)]
    pub fn is_waiting_for_all(&self) -> bool {
        self.gate.lock().waiting_for_all > 0
    }

    fn claim_chosen(&self, gate: &mut Gate, table: Arc<TableView>, chosen: &[usize]) -> Claim<'_> {
        let views = chosen.iter().filter_map(|&index| table.segments.get(index));
        let views: Vec<_> = views.cloned().collect();
        gate.claimed.extend(views.iter().map(|view| Arc::clone(&view.segment)));
        Claim { published: self, table, views }
    }
}

/// Waits for a signal. Returns false if `deadline` has passed.
fn wait(condition: &Condvar, gate: &mut MutexGuard<'_, Gate>, deadline: Option<Instant>) -> bool {
    match deadline {
        None => condition.wait(gate),
        Some(deadline) => return !condition.wait_until(gate, deadline).timed_out(),
    }
    true
}

/// The segments that are inputs of running merges.
pub(crate) struct Claims<'g>(&'g [Arc<Segment>]);

impl Claims<'_> {
    /// Whether the segment is claimed.
    pub fn has(&self, segment: &Arc<Segment>) -> bool {
        self.0.iter().any(|claimed| Arc::ptr_eq(claimed, segment))
    }

    /// An empty set of claims.
    pub fn none() -> Self {
        Self(&[])
    }
}

/// The input segments of one merge. They stay in the published table until this is dropped, with two exceptions:
/// the writer may delete documents, and drop a segment without live ones; and the merge itself moves documents to
/// another segment.
pub(crate) struct Claim<'p> {
    published: &'p Published,
    /// The table at the time of the claim.
    pub table: Arc<TableView>,
    /// The segments at that time.
    pub views: Vec<SegmentView>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut gate = self.published.gate.lock();
        let mine = |segment: &Arc<Segment>| self.views.iter().any(|view| view.is_of(segment));
        gate.claimed.retain(|segment| !mine(segment));
        drop(gate);
        self.published.changed.notify_all();
        self.published.work.notify_all();
    }
}
