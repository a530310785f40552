//! Notes of how a run of a plan reads its tables, for EXPLAIN.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_engine::{Filter, SortKey};

use super::tree::Origin;

/// The reads of a run, in their order. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Trace(Arc<Mutex<Vec<ReadRows>>>);

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
        Self { scan, filter, keys: Vec::new(), limit: None, page: None }
    }

    /// All that is asked.
    pub fn whole_filter(&self) -> Option<Filter> {
        let mut filters: Vec<Filter> = self.keys.iter().map(|keys| keys.filter.clone()).collect();
        filters.extend(self.filter.clone());
        match filters.len() {
            0 | 1 => filters.pop(),
            _ => Some(Filter::And(filters)),
        }
    }
}

impl Trace {
    pub fn push(&self, read: ReadRows) {
        self.0.lock().push(read);
    }

    /// Drops what was tried in vain.
    pub fn truncate(&self, kept: usize) {
        self.0.lock().truncate(kept);
    }

    pub fn take(&self) -> Vec<ReadRows> {
        std::mem::take(&mut self.0.lock())
    }
}
