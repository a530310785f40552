//! The status of a follower.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use super::row_outcome::{RowCounters, RowOutcome};

/// The status of a follower.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowerStatus {
    /// `host:port` of the source.
    pub source: String,
    /// The source's server UUID; empty before the first connection.
    pub server_uuid: String,
    /// The state.
    pub state: State,
    /// The visible position: the text of a GTID set.
    pub applied: String,
    /// How long ago the source committed the transaction being applied; 0 if nothing waits.
    pub lag_seconds: Option<f64>,
    /// Transactions of the source that are not visible yet, counted once a second.
    pub lag_transactions: Option<u64>,
    /// When a transaction was last applied.
    pub last_applied_at: Option<SystemTime>,
    /// Events read from the binlog.
    pub events: u64,
    /// Rows inserted; updates that change a row's key count as a deletion and an insert.
    pub inserts: u64,
    /// Rows inserted that do not satisfy their table's required filter.
    pub inserts_skipped: u64,
    /// Rows updated: added, removed and modified.
    pub updates: u64,
    /// Rows that now satisfy the filter.
    pub updates_added: u64,
    /// Rows that no longer satisfy the filter.
    pub updates_removed: u64,
    /// Rows updated that do not satisfy the filter, neither before nor after.
    pub updates_skipped: u64,
    /// Rows deleted.
    pub deletes: u64,
    /// Rows deleted that did not satisfy the filter.
    pub deletes_skipped: u64,
    /// Schema changes applied.
    pub statements: u64,
    /// Row changes that were logged as statements: tables were copied again for each.
    pub row_statements: u64,
    /// Statements that are known to change no table.
    pub harmless_statements: u64,
    /// Statements that were not understood: tables were copied again for each.
    pub unknown_statements: u64,
    /// Row events of tables that are not followed.
    pub skipped_other_tables: u64,
    /// Events whose checksum was wrong.
    pub checksum_errors: u64,
    /// Events that wait to be applied.
    pub queue_length: u64,
    /// The last error with MygramDB's code.
    pub last_error: Option<(u16, String)>,
    /// The tables, by name.
    pub tables: Vec<TableStatus>,
}

/// The state of a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is connecting.
    Connecting,
    /// It follows, and at least one table is being copied.
    Copying,
    /// It follows.
    Running,
    /// It was told to stop.
    Stopped,
    /// It stopped with this error; resuming tries again.
    Failed(String),
}

/// The status of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStatus {
    /// Its name here.
    pub table: String,
    /// Its state.
    pub state: TableState,
    /// The last copy that was completed since the start.
    pub copied: Option<Copied>,
    /// The parts of its ranked search that are not available, with the reasons.
    pub words_missing: Option<String>,
    /// The functional keys that cannot be used here, with the reasons. Only in [`super::Follower::full_status`].
    pub keys_missing: Option<String>,
}

/// A completed copy of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Copied {
    /// The number of completed copies since the start, including this one.
    pub times: u64,
    /// When it was completed.
    pub at: SystemTime,
    /// Its duration since it began or was resumed.
    pub took: Duration,
    /// Rows that were read.
    pub rows: u64,
}

/// The state of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableState {
    /// It is being copied. An existing table stays readable as it was.
    Copying {
        /// Rows copied.
        rows: u64,
        /// The source's estimate of the total rows.
        estimated: u64,
        /// Since the copy began or was resumed.
        rows_per_second: u64,
        /// At this rate.
        seconds_left: u64,
    },
    /// Everything was read and waits for its position in the stream.
    CatchingUp,
    /// It equals the source's table at the applied position and follows it.
    Live,
    /// It is not fed. Its rows are those at the applied position or, if a copy has begun, those before the copy.
    Paused {
        /// The reason.
        why: &'static str,
        /// Whether its copy continues afterwards.
        copying: bool,
    },
    /// It is no longer followed and keeps its last good state.
    Stopped(String),
    /// It cannot be followed.
    Refused(String),
}

/// Where the threads record what [`FollowerStatus`] reports.
#[derive(Default)]
pub(crate) struct StatusBoard {
    pub tables: Mutex<BTreeMap<String, TableState>>,
    pub copied: Mutex<BTreeMap<String, Copied>>,
    /// The parts of tables' ranked search that are not available.
    words: Mutex<BTreeMap<String, String>>,
    pub phase: Mutex<Phase>,
    /// Whether there is a last error.
    has_error: AtomicBool,
    pub counters: Counters,
    /// The commit time at the source of the transaction being applied, in microseconds since 1970; 0 if nothing waits.
    pub applying_since_us: AtomicI64,
    pub last_applied_us: AtomicI64,
    /// When the stream last delivered a transaction, and when it last said that there is none.
    pub delivered_us: AtomicI64,
    pub heartbeat_us: AtomicI64,
    /// One more than the number of waiting transactions; 0 if it is unknown.
    pub waiting_transactions: AtomicU64,
}

/// The part of a status that rarely changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    pub state: Option<State>,
    pub server_uuid: String,
    pub last_error: Option<(u16, String)>,
}

/// Counts since the start.
#[derive(Default)]
pub(crate) struct Counters {
    pub events: AtomicU64,
    pub(super) rows: RowCounters,
    pub statements: AtomicU64,
    pub row_statements: AtomicU64,
    pub harmless_statements: AtomicU64,
    pub unknown_statements: AtomicU64,
    pub skipped: AtomicU64,
    pub checksum_errors: AtomicU64,
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl StatusBoard {
    pub fn set_state(&self, state: State) {
        self.phase.lock().state = Some(state);
    }

    /// Notes that following is wanted again.
    pub fn resume(&self) {
        let mut phase = self.phase.lock();
        if matches!(phase.state, Some(State::Stopped | State::Failed(_))) {
            phase.state = Some(State::Connecting);
        }
    }

    /// Notes that following has stopped. An error stays.
    pub fn set_stopped(&self) {
        let mut phase = self.phase.lock();
        if !matches!(phase.state, Some(State::Failed(_))) {
            phase.state = Some(State::Stopped);
        }
    }

    pub fn set_error(&self, code: u16, message: String) {
        self.phase.lock().last_error = Some((code, message));
        self.has_error.store(true, Ordering::Relaxed);
    }

    /// Clears the last error, because following got past it.
    pub fn clear_error(&self) {
        if self.has_error.swap(false, Ordering::Relaxed) {
            self.phase.lock().last_error = None;
        }
    }

    /// Counts a completed copy of a table.
    pub fn count_copy(&self, table: &str, rows: u64, took: Duration) {
        let mut copied = self.copied.lock();
        let times = copied.get(table).map_or(0, |before| before.times) + 1;
        let at = SystemTime::now();
        copied.insert(table.to_owned(), Copied { times, at, took, rows });
    }

    pub fn set_table(&self, table: &str, state: TableState) {
        self.tables.lock().insert(table.to_owned(), state);
    }

    /// Sets the parts of a table's ranked search that are not available; empty if all are.
    pub fn report_unavailable_words(&self, table: &str, missing: String) {
        let mut words = self.words.lock();
        if missing.is_empty() {
            if words.remove(table).is_some() {
                tracing::info!("the words of table {table} are as they are declared");
            }
        } else if words.get(table) != Some(&missing) {
            tracing::warn!("the words of table {table}: {missing}");
            words.insert(table.to_owned(), missing);
        }
    }

    pub fn forget_table(&self, table: &str) {
        self.tables.lock().remove(table);
    }

    /// Removes refused tables whose names have this prefix.
    pub fn forget_refused(&self, prefix: &str) {
        let is_refused = |state: &TableState| matches!(state, TableState::Refused(_));
        self.tables.lock().retain(|name, state| !(is_refused(state) && name.starts_with(prefix)));
    }

    /// The number of tables being copied.
    pub fn copying(&self) -> usize {
        let copies = |state: &&TableState| {
            matches!(state, TableState::Copying { .. } | TableState::CatchingUp)
        };
        self.tables.lock().values().filter(copies).count()
    }

    pub fn fill(&self, status: &mut FollowerStatus) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        status.events = read(&counters.events);
        let rows = |outcome| counters.rows.read(outcome);
        status.inserts = rows(RowOutcome::Inserted);
        status.inserts_skipped = rows(RowOutcome::InsertSkipped);
        status.updates_added = rows(RowOutcome::UpdateAdded);
        status.updates_removed = rows(RowOutcome::UpdateRemoved);
        status.updates_skipped = rows(RowOutcome::UpdateSkipped);
        let changed = status.updates_added + status.updates_removed;
        status.updates = changed + rows(RowOutcome::UpdateModified);
        status.deletes = rows(RowOutcome::Deleted);
        status.deletes_skipped = rows(RowOutcome::DeleteSkipped);
        status.statements = read(&counters.statements);
        status.row_statements = read(&counters.row_statements);
        status.harmless_statements = read(&counters.harmless_statements);
        status.unknown_statements = read(&counters.unknown_statements);
        status.skipped_other_tables = read(&counters.skipped);
        status.checksum_errors = read(&counters.checksum_errors);
        let last = self.last_applied_us.load(Ordering::Relaxed);
        status.last_applied_at = u64::try_from(last)
            .ok()
            .filter(|micros| *micros > 0)
            .map(|micros| UNIX_EPOCH + Duration::from_micros(micros));
        let phase = self.phase.lock().clone();
        status.server_uuid = phase.server_uuid;
        status.last_error = phase.last_error;
        status.state = phase.state.unwrap_or(State::Connecting);
        if matches!(status.state, State::Running) {
            if self.copying() > 0 {
                status.state = State::Copying;
            }
            status.lag_seconds = Some(self.lag_seconds());
            let waiting = self.waiting_transactions.load(Ordering::Relaxed);
            status.lag_transactions = waiting.checked_sub(1);
        }
        status.tables = self.reported_tables(&status.state);
    }

    fn reported_tables(&self, state: &State) -> Vec<TableStatus> {
        let (copied, words) = (self.copied.lock().clone(), self.words.lock().clone());
        let line = |(table, of_table): (&String, &TableState)| TableStatus {
            table: table.clone(),
            state: of_table.with_source_state(state),
            copied: copied.get(table).cloned(),
            words_missing: words.get(table).cloned(),
            keys_missing: None,
        };
        self.tables.lock().iter().map(line).collect()
    }

    fn lag_seconds(&self) -> f64 {
        match self.applying_since_us.load(Ordering::Relaxed) {
            0 => 0.0,
            since => (now_us().saturating_sub(since)).max(0) as f64 / 1e6,
        }
    }
}

impl TableState {
    /// The state of the table in this state of the follower: a table that is not fed is not live.
    fn with_source_state(&self, state: &State) -> Self {
        let (why, waits) = match state {
            State::Running | State::Copying => return self.clone(),
            State::Connecting => ("the source is not connected", false),
            State::Stopped => ("following is stopped", true),
            State::Failed(_) => ("following failed", true),
        };
        match self {
            Self::Live => Self::Paused { why, copying: false },
            Self::Copying { .. } | Self::CatchingUp if waits => Self::Paused { why, copying: true },
            other => other.clone(),
        }
    }
}

/// The current time in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The state of a copy of this many rows that began or was resumed at `since`.
pub(crate) fn copying(rows: u64, resumed: u64, estimated: u64, since: Instant) -> TableState {
    let seconds = since.elapsed().as_secs_f64().max(0.001);
    let rows_per_second = (rows.saturating_sub(resumed) as f64 / seconds) as u64;
    let left = estimated.saturating_sub(rows);
    let seconds_left = left.checked_div(rows_per_second).unwrap_or(0);
    TableState::Copying { rows, estimated: estimated.max(rows), rows_per_second, seconds_left }
}
