//! Notes of how a run of a plan reads its tables, for EXPLAIN.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use remora_engine::{Filter, SortKey};

use super::tree::Origin;

/// The reads of a run, in their order. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Trace(Arc<Mutex<Noted>>);

/// What was noted.
#[derive(Default)]
pub(super) struct Noted {
    pub reads: Vec<ReadRows>,
    /// How many reads were not made in vain, whatever is tried next.
    kept: usize,
    /// The steps behind the tables, in their order.
    pub steps: Vec<StepTaken>,
}

/// What a step took.
pub(super) struct StepTaken {
    pub what: &'static str,
    pub rows: u64,
    pub time: Duration,
}

/// One read of a scan.
pub(super) struct ReadRows {
    pub scan: usize,
    /// The conditions of the statement.
    pub filter: Option<Filter>,
    /// The keys of rows that were read before, of which it is to have some.
    pub keys: Vec<Keys>,
    /// Most rows.
    pub limit: Option<u64>,
    /// The order that its first rows were taken in, and how many.
    pub page: Option<(Vec<SortKey>, usize)>,
    /// How many rows it gave, and how long that took.
    pub rows: u64,
    pub time: Duration,
}

/// Keys that a table is read by.
pub(super) struct Keys {
    /// That it has one of them.
    pub filter: Filter,
    /// The column of the scan.
    pub place: Option<usize>,
    /// The column that they are of.
    pub from: Origin,
    /// How many there are.
    pub count: u64,
}

impl ReadRows {
    /// A read by the conditions of the statement alone.
    pub fn of(scan: usize, filter: Option<Filter>) -> Self {
        let (keys, rows, time) = (Vec::new(), 0, Duration::ZERO);
        Self { scan, filter, keys, limit: None, page: None, rows, time }
    }

    /// All that is asked.
    pub fn whole_filter(&self) -> Option<Filter> {
        let mut filters: Vec<Filter> = self.keys.iter().map(|keys| keys.filter.clone()).collect();
        filters.extend(self.filter.clone());
        Filter::all_of(filters)
    }
}

impl Trace {
    pub fn push(&self, read: ReadRows) {
        self.0.lock().reads.push(read);
    }

    /// Keeps what was read so far.
    pub fn keep(&self) {
        let mut noted = self.0.lock();
        noted.kept = noted.reads.len();
    }

    /// Drops what was tried in vain, but for so many reads.
    pub fn truncate(&self, reads: usize) {
        let mut noted = self.0.lock();
        let kept = noted.kept + reads;
        noted.reads.truncate(kept);
        noted.steps.clear();
    }

    /// Says what the newest read of a scan gave.
    pub fn has_read(&self, scan: usize, rows: u64, time: Duration) {
        let mut noted = self.0.lock();
        if let Some(read) = noted.reads.iter_mut().rev().find(|read| read.scan == scan) {
            (read.rows, read.time) = (rows, time);
        }
    }

    /// Says what a step behind the tables gave.
    pub fn has_done(&self, what: &'static str, rows: u64, time: Duration) {
        self.0.lock().steps.push(StepTaken { what, rows, time });
    }

    pub fn take(&self) -> Noted {
        std::mem::take(&mut self.0.lock())
    }
}
