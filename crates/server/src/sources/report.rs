//! The sources' status for the protocols.

use std::time::{SystemTime, UNIX_EPOCH};

use remora_engine::Database;
use remora_protocol::{
    http::{Availability, SourceMetrics, SourceTableMetrics},
    line::reply::{
        ReplicationInfo, ReplicationState, ReplicationStatus, SourceLine, SyncPhase, SyncStatus,
    },
};
use remora_source::mysql::{FollowerStatus, SCHEMA_INCOMPATIBLE, State, TableState, TableStatus};

use super::Sources;

type Status<'n> = (&'n str, FollowerStatus);

impl Sources {
    /// The combined status of all sources; `None` without any.
    pub(crate) fn replication(&self) -> Option<(ReplicationStatus, Availability)> {
        let statuses = self.statuses();
        (!statuses.is_empty()).then(|| (combine(&statuses), availability(&statuses)))
    }

    /// REPLICATION STATUS: all sources combined and, with `lines`, a line for each source and table.
    pub(crate) fn replication_status(&self, lines: bool) -> Option<ReplicationStatus> {
        let statuses = if lines { self.full_statuses() } else { self.statuses() };
        if statuses.is_empty() {
            return None;
        }
        let mut status = combine(&statuses);
        if lines {
            status.sources = statuses.iter().flat_map(lines_of).collect();
        }
        Some(status)
    }

    /// INFO's section.
    pub(crate) fn info(&self) -> ReplicationInfo {
        let statuses = self.statuses();
        if statuses.is_empty() {
            return ReplicationInfo::default();
        }
        let sum = |figure: fn(&FollowerStatus) -> u64| {
            statuses.iter().map(|(_, status)| figure(status)).sum::<u64>()
        };
        let (added, removed) =
            (sum(|status| status.updates_added), sum(|status| status.updates_removed));
        let updates = sum(|status| status.updates);
        let running = combine(&statuses).state == ReplicationState::Running;
        ReplicationInfo {
            status: if running { "running" } else { "stopped" },
            gtid: gtid_text(&statuses),
            events: sum(|status| status.events),
            counters: [
                sum(|status| status.inserts),
                sum(|status| status.inserts_skipped),
                updates,
                added,
                removed,
                updates.saturating_sub(added + removed),
                sum(|status| status.updates_skipped),
                sum(|status| status.deletes),
                sum(|status| status.deletes_skipped),
                sum(|status| status.statements),
                sum(|status| status.skipped_other_tables),
            ],
        }
    }

    /// Whether every table has been copied once.
    pub(crate) fn is_initialized(&self, database: &Database) -> bool {
        let present = database.tables();
        let statuses = self.statuses();
        let mut tables = statuses.iter().flat_map(|(_, status)| &status.tables);
        let connecting = statuses
            .iter()
            .any(|(_, status)| status.tables.is_empty() && status.state == State::Connecting);
        !connecting
            && tables.all(|table| {
                matches!(table.state, TableState::Refused(_)) || present.contains(&table.table)
            })
    }

    /// Whether a table is being copied.
    pub(crate) fn is_copying(&self) -> bool {
        let statuses = self.statuses();
        let mut tables = statuses.iter().flat_map(|(_, status)| &status.tables);
        tables.any(|table| is_copy(&table.state))
    }

    /// SYNC STATUS: every table that was or is being copied, or cannot be.
    pub(crate) fn sync_statuses(&self, database: &Database) -> Vec<SyncStatus> {
        let mut shown = Vec::new();
        for (_, status) in self.statuses() {
            for table in &status.tables {
                let phase = phase(table, &status, database);
                let table = table.table.clone();
                shown.extend(phase.map(|phase| SyncStatus { table, phase }));
            }
        }
        shown
    }

    /// The metrics of each source.
    pub(crate) fn metrics(&self) -> Vec<SourceMetrics> {
        let metrics = self.statuses().into_iter().map(|(name, status)| SourceMetrics {
            name: name.to_owned(),
            lag_seconds: status.lag_seconds,
            lag_transactions: status.lag_transactions,
            queue_length: status.queue_length,
            statements: [
                ("definition", status.statements),
                ("rows", status.row_statements),
                ("harmless", status.harmless_statements),
                ("not_understood", status.unknown_statements),
            ],
            tables: status.tables.into_iter().map(table_metrics).collect(),
        });
        metrics.collect()
    }
}

/// The phase of a table's copy; `None` if it was not copied since the start.
fn phase(table: &TableStatus, status: &FollowerStatus, database: &Database) -> Option<SyncPhase> {
    Some(match &table.state {
        TableState::Copying { rows: 0, .. } => SyncPhase::Starting,
        TableState::Copying { rows, estimated, rows_per_second, .. } => {
            let rate = *rows_per_second as f64;
            SyncPhase::InProgress { rows: *rows, total: *estimated, rate }
        }
        TableState::CatchingUp => SyncPhase::InProgress { rows: 1, total: 1, rate: 0.0 },
        TableState::Live | TableState::Paused { copying: false, .. } => {
            let copied = table.copied.as_ref()?;
            SyncPhase::Completed {
                rows: database.statistics(&table.table).map_or(0, |statistics| statistics.rows),
                time: copied.took,
                gtid: status.applied.clone(),
                replication: state_of(&status.state).name().to_owned(),
                finished: copied.at,
                copies: copied.times,
            }
        }
        TableState::Paused { copying: true, .. } => {
            let why = last_error(status).map(|(_, error)| error);
            let why = why.unwrap_or_else(|| state_text(&table.state));
            SyncPhase::Failed(why)
        }
        TableState::Stopped(reason) | TableState::Refused(reason) => {
            SyncPhase::Failed(reason.clone())
        }
    })
}

fn table_metrics(table: TableStatus) -> SourceTableMetrics {
    let copying = match table.state {
        TableState::Copying { rows, estimated, .. } => Some((rows, estimated)),
        _ => None,
    };
    SourceTableMetrics { live: table.state == TableState::Live, name: table.table, copying }
}

fn is_copy(state: &TableState) -> bool {
    matches!(state, TableState::Copying { .. } | TableState::CatchingUp)
}

fn state_of(state: &State) -> ReplicationState {
    match state {
        State::Connecting | State::Copying | State::Running => ReplicationState::Running,
        State::Stopped => ReplicationState::Stopped,
        State::Failed(_) => ReplicationState::Failed,
    }
}

/// The worst state of all.
fn worst(statuses: &[Status<'_>]) -> ReplicationState {
    let states = || statuses.iter().map(|(_, status)| state_of(&status.state));
    match () {
        () if states().any(|state| state == ReplicationState::Failed) => ReplicationState::Failed,
        () if states().any(|state| state == ReplicationState::Stopped) => ReplicationState::Stopped,
        () => ReplicationState::Running,
    }
}

fn availability(statuses: &[Status<'_>]) -> Availability {
    let connecting = statuses.iter().any(|(_, status)| status.state == State::Connecting);
    match worst(statuses) {
        ReplicationState::Failed => Availability::Failed,
        ReplicationState::Stopped => Availability::Disconnected,
        ReplicationState::Running if connecting => Availability::Starting,
        ReplicationState::Running => Availability::Connected,
    }
}

fn combine(statuses: &[Status<'_>]) -> ReplicationStatus {
    let sum = |figure: fn(&FollowerStatus) -> u64| {
        statuses.iter().map(|(_, status)| figure(status)).sum::<u64>()
    };
    let mut errors = statuses.iter().filter_map(|(_, status)| last_error(status));
    let (last_error_code, last_error) = errors.next_back().unwrap_or_default();
    let applied = statuses.iter().filter_map(|(_, status)| status.last_applied_at).max();
    let since = |moment: SystemTime, earlier: SystemTime| {
        moment.duration_since(earlier).map_or(0, |since| since.as_secs())
    };
    ReplicationStatus {
        state: worst(statuses),
        current_gtid: gtid_text(statuses),
        processed_events: sum(|status| status.events),
        queue_size: sum(|status| status.queue_length),
        crc_errors: sum(|status| status.checksum_errors),
        schema_incompatible: last_error_code == SCHEMA_INCOMPATIBLE,
        last_error_code,
        last_error,
        last_applied_unixtime: applied.map_or(0, |moment| since(moment, UNIX_EPOCH)),
        seconds_since_last_applied: applied.map_or(0, |moment| since(SystemTime::now(), moment)),
        sources: Vec::new(),
    }
}

/// The last error, or why a source failed.
fn last_error(status: &FollowerStatus) -> Option<(u16, String)> {
    match (&status.last_error, &status.state) {
        (Some(error), _) => Some(error.clone()),
        (None, State::Failed(reason)) => Some((0, reason.clone())),
        (None, _) => None,
    }
}

fn gtid_text(statuses: &[Status<'_>]) -> String {
    match statuses {
        [(_, only)] => only.applied.clone(),
        all => {
            let shown = all.iter().map(|(name, status)| format!("{name}={}", status.applied));
            shown.collect::<Vec<_>>().join(" ")
        }
    }
}

fn lines_of((name, status): &Status<'_>) -> Vec<SourceLine> {
    let mut shown = format!("{} state={}", status.source, name_of(&status.state));
    if !status.server_uuid.is_empty() {
        shown.push_str(&format!(" uuid={}", status.server_uuid));
    }
    if let Some(lag) = status.lag_seconds {
        shown.push_str(&format!(" lag_seconds={lag:.3}"));
    }
    if let Some(lag) = status.lag_transactions {
        shown.push_str(&format!(" lag_transactions={lag}"));
    }
    let mut lines = vec![SourceLine { key: format!("source {name}"), value: shown }];
    let tables = status.tables.iter().map(|table| SourceLine {
        key: format!("table {}", table.table),
        value: {
            let mut value = state_text(&table.state);
            let missing = [("words", &table.words_missing), ("keys", &table.keys_missing)];
            for (what, missing) in missing {
                if let Some(missing) = missing {
                    value.push_str(&format!("; {what}: {missing}"));
                }
            }
            value
        },
    });
    lines.extend(tables);
    lines
}

fn name_of(state: &State) -> &'static str {
    match state {
        State::Connecting => "connecting",
        State::Copying => "copying",
        State::Running => "running",
        State::Stopped => "stopped",
        State::Failed(_) => "failed",
    }
}

/// A table's state as text.
pub(crate) fn state_text(state: &TableState) -> String {
    match state {
        TableState::Copying { rows, estimated, rows_per_second, seconds_left } => {
            let percent = 100 * *rows / (*estimated).max(1);
            format!(
                "copying {rows}/{estimated} rows ({percent}%) {rows_per_second} rows/s \
                 {seconds_left} s left"
            )
        }
        TableState::CatchingUp => "catching up".to_owned(),
        TableState::Live => "live".to_owned(),
        TableState::Paused { why, copying: false } => format!("paused: {why}"),
        TableState::Paused { why, copying: true } => {
            format!("paused: {why}; its copy goes on afterwards")
        }
        TableState::Stopped(reason) => format!("stopped: {reason}"),
        TableState::Refused(reason) => format!("refused: {reason}"),
    }
}
