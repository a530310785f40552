//! REPLICATION, SYNC and WAIT.

use std::time::Duration;

use remora_protocol::line::{
    LineError, Replication, Sync, Wait, code,
    reply::{self, SourceLine},
};
use remora_source::mysql::{State, TableState, gtid::GtidSet};

use super::Session;
use crate::{
    report::storage_error,
    requests::{Answer, blocking},
    settings::Dialect,
    sources::WaitFailure,
};

impl Session {
    pub(super) fn replication(&self, command: Replication, out: &mut Vec<u8>) -> Answer {
        match command {
            Replication::Status => {
                let own = self.caller.settings().dialect == Dialect::Remora;
                let mut status = self.caller.shared.sources.replication_status(own);
                if let Some((status, value)) =
                    status.as_mut().filter(|_| own).zip(storage_error(&self.caller.shared))
                {
                    let key = "storage".to_owned();
                    status.sources.push(SourceLine { key, value });
                }
                reply::write_replication_status(out, status.as_ref());
            }
            Replication::Stop => {
                blocking(|| self.stop_sources())?;
                reply::write_replication_stopped(out);
            }
            Replication::Start => {
                blocking(|| self.resume_sources())?;
                reply::write_replication_started(out);
            }
        }
        Ok(())
    }

    fn stop_sources(&self) -> Answer {
        let all = self.caller.shared.sources.all();
        let running = all.iter().filter(|one| is_running(&one.source.status().state));
        let running: Vec<_> = running.collect();
        if running.is_empty() {
            return Err(not_ready("Replication is not running"));
        }
        running.iter().try_for_each(|one| one.source.stop()).map_err(refused)
    }

    fn resume_sources(&self) -> Answer {
        let all = self.caller.shared.sources.all();
        if all.is_empty() {
            return Err(not_ready("Replication is not configured on this server"));
        }
        let ended = all.iter().filter(|one| !is_running(&one.source.status().state));
        let ended: Vec<_> = ended.collect();
        if ended.is_empty() {
            return Err(LineError::new(code::ALREADY_EXISTS, "Replication is already running"));
        }
        ended.iter().try_for_each(|one| one.source.resume()).map_err(refused)
    }

    pub(super) fn sync(&self, command: &Sync, out: &mut Vec<u8>) -> Answer {
        match command {
            Sync::Status => {
                let statuses =
                    self.caller.shared.sources.sync_statuses(&self.caller.shared.database);
                reply::write_sync_status(out, &statuses);
            }
            Sync::Stop(table) => self.stop_sync(table.as_deref(), out)?,
            Sync::Start(table) => {
                let table = blocking(|| self.start_sync(table))?;
                reply::write_sync_started(out, &table);
            }
        }
        Ok(())
    }

    fn start_sync(&self, name: &str) -> Result<String, LineError> {
        let sources = &self.caller.shared.sources;
        if sources.is_empty() {
            return Err(not_ready(
                "SYNC needs a MySQL source, which is not configured on this server; load files \
                 with 'remora import'",
            ));
        }
        let (one, table, state) =
            sources.source_of(name).ok_or_else(|| LineError::table_not_found(name))?;
        if matches!(state, TableState::Copying { .. }) {
            let message = format!("SYNC already in progress for table '{table}'");
            return Err(LineError::new(code::SYNC_RUNNING, message));
        }
        one.source.sync(&table).map_err(refused)?;
        Ok(table)
    }

    fn stop_sync(&self, name: Option<&str>, out: &mut Vec<u8>) -> Answer {
        let sources = &self.caller.shared.sources;
        let (count, table) = match name {
            None => (sources.all().iter().map(|one| one.source.cancel_sync(None)).sum(), None),
            Some(name) => match sources.source_of(name) {
                Some((one, table, _)) => (one.source.cancel_sync(Some(&table)), Some(table)),
                None => (0, None),
            },
        };
        if count == 0 {
            let message = "No active SYNC operations to stop";
            return Err(LineError::new(code::NOT_FOUND, message));
        }
        reply::write_sync_stopped(out, table.as_deref(), count);
        Ok(())
    }

    /// WAIT: waits until a source's transactions are visible here.
    pub(super) fn wait(&self, wait: &Wait, out: &mut Vec<u8>) -> Answer {
        let shared = &self.caller.shared;
        if shared.sources.is_empty() {
            return Err(not_ready("Replication is not configured on this server"));
        }
        let invalid =
            |error: remora_source::Error| LineError::new(code::INVALID_ARGUMENT, error.to_string());
        let gtids = GtidSet::parse(&wait.gtids).map_err(invalid)?;
        let is_stopping = || *shared.stopping.borrow();
        let waited = blocking(|| shared.sources.wait(&gtids, wait.timeout, &is_stopping));
        waited.map_err(|why| not_reached(why, wait.timeout))?;
        let applied = shared.sources.applied_text(&shared.database.source_positions());
        reply::write_waited(out, &applied);
        Ok(())
    }
}

fn not_reached(why: WaitFailure, timeout: Duration) -> LineError {
    match why {
        WaitFailure::Timeout => {
            let message = format!("These transactions were not applied within {timeout:?}");
            LineError::new(code::TIMEOUT, message)
        }
        WaitFailure::TooManyWaiting => {
            LineError::server_busy("too many requests wait for a position")
        }
        WaitFailure::Stopping => LineError::new(code::SHUTTING_DOWN, "The server is stopping"),
    }
}

fn is_running(state: &State) -> bool {
    matches!(state, State::Connecting | State::Copying | State::Running)
}

/// The error of a source, under the code for its kind.
fn refused(error: remora_source::Error) -> LineError {
    match error {
        remora_source::Error::Engine(error) => error.into(),
        error => not_ready(&error.to_string()),
    }
}

fn not_ready(message: &str) -> LineError {
    LineError::new(code::NOT_READY, message)
}
