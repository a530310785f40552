//! Records how a run of a plan reads its tables, for EXPLAIN.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use remora_engine::{Filter, SortKey, TextQuery};

use super::expressions::ScanOrigin;
use crate::scan::ScanCondition;

/// The records of a run. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Trace(Arc<Mutex<TraceRecords>>);

/// The records.
#[derive(Default)]
pub(super) struct TraceRecords {
    pub reads: Vec<ReadRows>,
    /// The number of reads that `truncate` must keep.
    kept: usize,
    /// The steps after the reads, in order.
    pub steps: Vec<StepRecord>,
}

/// The result of a step.
pub(super) struct StepRecord {
    pub what: &'static str,
    pub rows: u64,
    pub time: Duration,
}

/// One read of a scan.
pub(super) struct ReadRows {
    pub scan: usize,
    /// The statement's own conditions.
    pub filter: Option<Filter>,
    pub text: Option<TextQuery>,
    /// The keys from tables read before, by which it is filtered.
    pub keys: Vec<KeysRead>,
    /// The most rows that were read.
    pub limit: Option<u64>,
    /// The order in which its first rows were read, and how many.
    pub page: Option<(Vec<SortKey>, usize)>,
    /// The path in whose order they were read, by its position in the table's definition.
    pub by_path: Option<usize>,
    /// The number of rows it gave, and the time it took.
    pub rows: u64,
    pub time: Duration,
}

/// Keys that a table is filtered by.
pub(super) struct KeysRead {
    /// The filter for rows with one of the keys.
    pub filter: Filter,
    /// The column of the scan, if it is known.
    pub place: Option<usize>,
    /// The scan column that the keys come from.
    pub from: ScanOrigin,
    /// The number of keys.
    pub count: u64,
}

impl ReadRows {
    /// A read by the statement's own conditions only.
    pub fn of(scan: usize, filter: Option<Filter>) -> Self {
        let (text, keys, rows, time) = (None, Vec::new(), 0, Duration::ZERO);
        Self { scan, filter, text, keys, limit: None, page: None, by_path: None, rows, time }
    }

    /// Whether its first rows were read in the order of the statement.
    pub fn is_in_order(&self) -> bool {
        self.page.is_some() || self.by_path.is_some()
    }

    /// All conditions of the read together.
    pub fn whole(&self) -> ScanCondition<'_> {
        let mut filters: Vec<Filter> = self.keys.iter().map(|keys| keys.filter.clone()).collect();
        filters.extend(self.filter.clone());
        ScanCondition { filter: Filter::all_of(filters), text: self.text.as_ref() }
    }

    /// The statement's own conditions alone.
    pub fn own(&self) -> ScanCondition<'_> {
        ScanCondition { filter: self.filter.clone(), text: self.text.as_ref() }
    }
}

impl Trace {
    pub fn push(&self, read: ReadRows) {
        self.0.lock().reads.push(read);
    }

    /// Protects the reads recorded so far from `truncate`.
    pub fn keep(&self) {
        let mut noted = self.0.lock();
        noted.kept = noted.reads.len();
    }

    /// Drops the records of an abandoned attempt, except for the protected reads and `reads` more.
    pub fn truncate(&self, reads: usize) {
        let mut noted = self.0.lock();
        let kept = noted.kept + reads;
        noted.reads.truncate(kept);
        noted.steps.clear();
    }

    /// Records the result of the newest read of a scan.
    pub fn has_read(&self, scan: usize, rows: u64, time: Duration) {
        let mut noted = self.0.lock();
        if let Some(read) = noted.reads.iter_mut().rev().find(|read| read.scan == scan) {
            (read.rows, read.time) = (rows, time);
        }
    }

    /// Records the result of a step after the reads.
    pub fn has_done(&self, what: &'static str, rows: u64, time: Duration) {
        self.0.lock().steps.push(StepRecord { what, rows, time });
    }

    pub fn take(&self) -> TraceRecords {
        std::mem::take(&mut self.0.lock())
    }
}
