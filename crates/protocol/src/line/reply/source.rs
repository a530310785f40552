//! Replies to REPLICATION and SYNC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{line, named, number, one_line, text};

/// The state of replication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicationState {
    /// Changes arrive.
    Running,
    /// No changes arrive.
    #[default]
    Stopped,
    /// It stopped with an error.
    Failed,
}

impl ReplicationState {
    /// Its name in replies.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// The figures of REPLICATION STATUS.
#[derive(Clone, Debug, Default)]
pub struct ReplicationStatus {
    /// The state.
    pub state: ReplicationState,
    /// The applied position.
    pub current_gtid: String,
    /// The number of applied events.
    pub processed_events: u64,
    /// The number of waiting events.
    pub queue_size: u64,
    /// The number of events with a wrong checksum.
    pub crc_errors: u64,
    /// Whether the source's table definition no longer fits.
    pub schema_incompatible: bool,
    /// The code of the last error; 0 if there is none.
    pub last_error_code: u16,
    /// The last error.
    pub last_error: String,
    /// When the last event was applied, in seconds since 1970; 0 if none was.
    pub last_applied_unixtime: u64,
    /// The seconds since then.
    pub seconds_since_last_applied: u64,
    /// Remora's addition: each source and each of its tables.
    pub sources: Vec<SourceLine>,
}

/// A line that MygramDB does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// `source <name>` or `table <name>`.
    pub key: String,
    /// Its state.
    pub value: String,
}

/// The reply to REPLICATION STATUS; `None` if no source is configured.
pub fn write_replication_status(out: &mut Vec<u8>, status: Option<&ReplicationStatus>) {
    text(out, "OK REPLICATION\r\n");
    match status {
        None => line(out, "status", "not_configured"),
        Some(status) => write_source(out, status),
    }
    text(out, "END");
}

fn write_source(out: &mut Vec<u8>, status: &ReplicationStatus) {
    line(out, "status", status.state.name());
    line(out, "current_gtid", &status.current_gtid);
    line(out, "processed_events", status.processed_events);
    line(out, "queue_size", status.queue_size);
    line(out, "crc_errors", status.crc_errors);
    line(out, "schema_incompatible", status.schema_incompatible);
    line(out, "last_error_code", status.last_error_code);
    line(out, "last_error", &status.last_error);
    line(out, "last_applied_unixtime", status.last_applied_unixtime);
    line(out, "seconds_since_last_applied", status.seconds_since_last_applied);
    for SourceLine { key, value } in &status.sources {
        line(out, key, value);
    }
}

/// The reply to POSITION.
pub fn write_position(out: &mut Vec<u8>, on: bool) {
    text(out, if on { "OK POSITION_ON" } else { "OK POSITION_OFF" });
}

/// Appends the applied position to the body of SEARCH, COUNT, GET or FACET, as a separate line:
/// `# POSITION <gtid-set>`. The empty line that ends the reply or a DEBUG block follows it.
pub fn write_applied(out: &mut Vec<u8>, applied: &str) {
    if !out.ends_with(b"\r\n") {
        text(out, "\r\n");
    }
    named(out, "# POSITION", if applied.is_empty() { "" } else { " " });
    one_line(out, applied);
    text(out, "\r\n");
}

/// The reply to WAIT: `OK WAITED <gtid-set>` with the applied position.
pub fn write_waited(out: &mut Vec<u8>, applied: &str) {
    named(out, "OK WAITED ", applied);
}

/// The reply to REPLICATION STOP.
pub fn write_replication_stopped(out: &mut Vec<u8>) {
    text(out, "OK REPLICATION_STOPPED");
}

/// The reply to REPLICATION START.
pub fn write_replication_started(out: &mut Vec<u8>) {
    text(out, "OK REPLICATION_STARTED");
}

/// The state of a table's copy.
#[derive(Clone, Debug)]
pub struct SyncStatus {
    /// The table.
    pub table: String,
    /// The phase.
    pub phase: SyncPhase,
}

/// A phase of a copy.
#[derive(Clone, Debug, PartialEq)]
pub enum SyncPhase {
    /// The copy was requested.
    Starting,
    /// Rows are being read.
    InProgress {
        /// The number of rows read.
        rows: u64,
        /// The number of rows expected.
        total: u64,
        /// Rows per second.
        rate: f64,
    },
    /// The copy is complete.
    Completed {
        /// The number of rows read.
        rows: u64,
        /// Its duration.
        time: Duration,
        /// The position of the table when it was completed.
        gtid: String,
        /// The state of replication since then.
        replication: String,
        /// When it was completed.
        finished: SystemTime,
        /// The number of completed copies since the start, which distinguishes this one from
        /// earlier ones.
        copies: u64,
    },
    /// The copy failed. The table is as before.
    Failed(String),
    /// The copy was cancelled. The table is as before.
    Cancelled,
    /// Cancellation was requested.
    Cancelling,
}

/// The reply to SYNC STATUS.
pub fn write_sync_status(out: &mut Vec<u8>, tables: &[SyncStatus]) {
    text(out, "OK SYNC_STATUS\r\n");
    if tables.is_empty() {
        text(out, "status=IDLE message=\"No sync operation performed\"\r\n");
    }
    for status in tables {
        let phase = shown_phase(&status.phase);
        one_line(out, &format!("table={} status={phase}", status.table));
        text(out, "\r\n");
    }
    text(out, "END\r\n");
}

fn shown_phase(phase: &SyncPhase) -> String {
    match phase {
        SyncPhase::Starting => "STARTING".to_owned(),
        SyncPhase::InProgress { rows, total, rate } => {
            let percent = 100.0 * *rows as f64 / (*total).max(1) as f64;
            let progress = format!("progress={rows}/{total} rows ({percent:.1}%)");
            format!("IN_PROGRESS {progress} rate={rate:.0} rows/s")
        }
        SyncPhase::Completed { rows, time, gtid, replication, finished, copies } => {
            let time = time.as_secs_f64();
            let finished = finished.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            format!(
                "COMPLETED rows={rows} time={time:.1}s gtid={gtid} replication={replication} \
                 finished={finished:.3} copies={copies}"
            )
        }
        SyncPhase::Failed(error) => format!("FAILED error=\"{error}\""),
        SyncPhase::Cancelled => "CANCELLED".to_owned(),
        SyncPhase::Cancelling => "CANCELLING".to_owned(),
    }
}

/// The reply to SYNC.
pub fn write_sync_started(out: &mut Vec<u8>, table: &str) {
    named(out, "OK SYNC STARTED table=", table);
}

/// The reply to SYNC STOP: the table, or the number of cancelled copies.
pub fn write_sync_stopped(out: &mut Vec<u8>, table: Option<&str>, count: usize) {
    text(out, "OK SYNC CANCELLATION REQUESTED ");
    match table {
        Some(table) => named(out, "table=", table),
        None => {
            text(out, "count=");
            number(out, count as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn without_a_source_the_status_says_so() {
        let source = printed(|out| write_replication_status(out, None));
        assert_eq!(source, "OK REPLICATION\r\nstatus: not_configured\r\nEND");
    }

    #[test]
    fn sync_shows_its_phase() {
        let table = || "db.t".to_owned();
        let idle = printed(|out| write_sync_status(out, &[]));
        let expected = "OK SYNC_STATUS\r\nstatus=IDLE message=\"No sync operation performed\"\r\n\
            END\r\n";
        assert_eq!(idle, expected);
        let phase = SyncPhase::InProgress { rows: 5, total: 10, rate: 2.0 };
        let busy = printed(|out| write_sync_status(out, &[SyncStatus { table: table(), phase }]));
        let expected = "OK SYNC_STATUS\r\ntable=db.t status=IN_PROGRESS progress=5/10 rows (50.0%) \
            rate=2 rows/s\r\nEND\r\n";
        assert_eq!(busy, expected);
    }
}
