//! The progress of copying a source's tables: bars on a terminal, lines in a log.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    sync::Arc,
    time::{Duration, Instant},
};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use remora_source::mysql::{TableState, TableStatus};

use crate::{Server, shared::ServerState, sources::state_text};

/// How often the tables are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often a running copy is logged.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Shows copies until the result is dropped.
pub(super) fn show(server: &Server) -> Option<ProgressTask> {
    let shared = Arc::clone(server.shared());
    if shared.sources.is_empty() {
        return None;
    }
    Some(ProgressTask { task: tokio::spawn(watch(shared)) })
}

/// The task that checks; it ends when dropped.
pub(super) struct ProgressTask {
    task: tokio::task::JoinHandle<()>,
}

impl Drop for ProgressTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(shared: Arc<ServerState>) {
    let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
    let mut tables: BTreeMap<String, ReportedState> = BTreeMap::new();
    loop {
        for (_, status) in shared.sources.statuses() {
            for table in &status.tables {
                let reported = tables.entry(table.table.clone()).or_default();
                reported.update(table, bars.as_ref());
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// What was last reported of a table.
#[derive(Default)]
struct ReportedState {
    kind: Option<std::mem::Discriminant<TableState>>,
    reported_at: Option<Instant>,
    bar: Option<ProgressBar>,
}

impl ReportedState {
    fn update(
        &mut self,
        TableStatus { table, state, .. }: &TableStatus,
        bars: Option<&MultiProgress>,
    ) {
        // The log reports the source itself, once for all its tables.
        if matches!(state, TableState::Paused { .. }) {
            return;
        }
        let kind = Some(std::mem::discriminant(state));
        let changed = self.kind != kind;
        self.kind = kind;
        if let (Some(bars), TableState::Copying { rows, estimated, .. }) = (bars, state) {
            let bar = self.bar.get_or_insert_with(|| bars.add(bar(table)));
            bar.set_length((*estimated).max(*rows));
            bar.set_position(*rows);
            return;
        }
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let goes_on = matches!(state, TableState::Copying { .. });
        let due =
            self.reported_at.is_none_or(|reported_at| reported_at.elapsed() >= REPORT_INTERVAL);
        if changed || (goes_on && due) {
            self.reported_at = Some(Instant::now());
            log_state(table, state);
        }
    }
}

fn log_state(table: &str, state: &TableState) {
    match state {
        TableState::Stopped(_) | TableState::Refused(_) => {
            tracing::warn!("table {table}: {}", state_text(state));
        }
        _ => tracing::info!("table {table}: {}", state_text(state)),
    }
}

fn bar(table: &str) -> ProgressBar {
    let template = "{msg} {bar:30} {percent:>3}% {human_pos}/{human_len} rows {per_sec} {eta} left";
    // An invalid template falls back to the default one.
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style).with_message(table.to_owned())
}
