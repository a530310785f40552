//! Implements `Host`: the server's services for the SQL crate.

use std::{sync::Arc, time::Duration};

use remora_mysql::{ErrorCode, messages};
use remora_source::{
    mysql::{FollowerStatus, State, gtid::GtidSet},
    schema_file::DeclaredWords,
};
use remora_sql::{
    Account, AgentConnection, AgentLimit, Error, Host, Identity, Process, ReplicaReport, Result,
    TableWords, no_source_error,
};

use super::{agents::AgentClients, processes::Processes};
use crate::{
    settings::{self, User},
    shared::ServerState,
    sources::WaitFailure,
};

/// The server, as the SQL crate sees it.
pub(super) struct SqlHost {
    shared: Arc<ServerState>,
    processes: Arc<Processes>,
    agents: Arc<AgentClients>,
}

impl SqlHost {
    /// The server with these parts.
    pub(super) fn new(shared: Arc<ServerState>, processes: Arc<Processes>) -> Self {
        Self { shared, processes, agents: Arc::default() }
    }
}

impl Host for SqlHost {
    fn processes(&self) -> Vec<Process> {
        self.processes.list()
    }

    fn kill(&self, id: u64, only_statement: bool) -> Result<()> {
        let process = self.processes.find(id);
        process.ok_or_else(|| Error::unknown_thread(id))?.kill(only_statement);
        Ok(())
    }

    fn accounts(&self) -> Vec<Account> {
        let settings = self.shared.settings.load();
        let account = |user: &User| Account {
            identity: Identity {
                user: user.name.clone(),
                host: user.host.to_string(),
                rights: user.rights.clone(),
            },
            plugin: user.password.plugin(None).name(),
        };
        settings.users.iter().map(account).collect()
    }

    fn replicas(&self) -> Vec<ReplicaReport> {
        let report = |(name, status): (&str, FollowerStatus)| ReplicaReport {
            source: name.to_owned(),
            fields: fields_of(&status),
            applied: status.applied,
        };
        self.shared.sources.statuses().into_iter().map(report).collect()
    }

    fn status(&self) -> Vec<(String, String)> {
        let processes = &self.processes;
        [
            ("Aborted_connects", processes.refused()),
            ("Connections", processes.total()),
            ("Queries", processes.commands()),
            ("Questions", processes.commands()),
            ("Threads_connected", processes.connected() as u64),
            ("Threads_running", processes.running() as u64),
            ("Uptime", self.shared.started.elapsed().as_secs()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .to_vec()
    }

    fn serves_parts(&self, account: &str) -> bool {
        settings::serves(&self.shared.settings.load(), account)
    }

    fn most_agents(&self) -> usize {
        self.shared.settings.load().agents.max_connections
    }

    fn agent(
        &self,
        address: &str,
        is_kept: bool,
        limit: &AgentLimit<'_>,
    ) -> Result<Box<dyn AgentConnection>> {
        self.agents.open(&self.shared.settings.load().agents, address, is_kept, limit)
    }

    fn source_of(&self, table: &str) -> Option<String> {
        let (source, ..) = self.shared.sources.source_of(table)?;
        Some(source.name.clone())
    }

    fn declare_words(&self, table: &str, words: Option<TableWords>) -> Result<()> {
        // Only by its full name: another table in the default database may have the bare name.
        let found = self.shared.sources.source_of(table).filter(|(_, full, _)| full == table);
        let Some((source, table, _)) = found else {
            return Err(no_source_error());
        };
        let words = words.map(|TableWords { columns, settings }| DeclaredWords {
            columns,
            settings,
            files: Vec::new(),
        });
        source.source.declare_words(&table, words).map_err(|error| {
            let code = match error {
                remora_source::Error::Setting(_) => ErrorCode::OptionPreventsStatement,
                _ => ErrorCode::Unknown,
            };
            Error::new(code, error.to_string())
        })
    }

    fn wait_for_gtids(&self, source: Option<&str>, gtids: &str, timeout: Duration) -> Result<bool> {
        let wrong = || {
            let message = messages::malformed_gtid_set(gtids);
            Error::new(ErrorCode::MalformedGtidSet, message)
        };
        if self.shared.sources.is_empty() {
            return Err(no_source_error());
        }
        let gtids = GtidSet::parse(gtids).map_err(|_| wrong())?;
        let is_stopping = || *self.shared.stopping.borrow();
        match self.shared.sources.wait_for(source, &gtids, timeout, &is_stopping) {
            Ok(()) => Ok(true),
            Err(WaitFailure::Timeout) => Ok(false),
            Err(WaitFailure::TooManyWaiting) => {
                Err(Error::new(ErrorCode::Unknown, "too many requests wait for a position already"))
            }
            Err(WaitFailure::Stopping) => Err(Error::shutdown()),
        }
    }
}

/// A source's status under MySQL's field names.
fn fields_of(status: &FollowerStatus) -> Vec<(String, String)> {
    let yes = |yes: bool| if yes { "Yes" } else { "No" }.to_owned();
    let (io, sql) = match &status.state {
        State::Running | State::Copying => (true, true),
        State::Connecting => (false, true),
        State::Stopped | State::Failed(_) => (false, false),
    };
    let (number, error) = status.last_error.clone().unwrap_or_default();
    let (host, port) = status.source.rsplit_once(':').unwrap_or((&status.source, ""));
    let lag = status.lag_seconds.map_or("NULL".to_owned(), |lag| format!("{}", lag as u64));
    [
        ("Source_Host", host.to_owned()),
        ("Source_Port", port.to_owned()),
        ("Source_UUID", status.server_uuid.clone()),
        ("Replica_IO_Running", yes(io)),
        ("Replica_SQL_Running", yes(sql)),
        ("Seconds_Behind_Source", lag),
        ("Last_Errno", number.to_string()),
        ("Last_Error", error),
        ("Executed_Gtid_Set", status.applied.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
