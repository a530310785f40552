//! What the SQL layer needs of the server that embeds it.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use remora_mysql::ErrorCode;

use crate::{Error, Identity, Result};

/// The server around the SQL layer: its connections and the servers it follows. The default methods
/// are those of an embedded database: no other connections, nothing followed.
pub trait Host: Send + Sync {
    /// The open connections.
    fn processes(&self) -> Vec<Process> {
        Vec::new()
    }

    /// Ends a connection, or only its running statement.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownThread`] if there is no such connection; [`ErrorCode::NotSupported`] by
    /// default.
    fn kill(&self, _id: u64, _only_statement: bool) -> Result<()> {
        Err(Error::unsupported("KILL"))
    }

    /// The configured accounts.
    fn accounts(&self) -> Vec<Account> {
        Vec::new()
    }

    /// The followed servers.
    fn replicas(&self) -> Vec<ReplicaReport> {
        Vec::new()
    }

    /// Names and values for SHOW STATUS, with MySQL's names where they exist.
    fn status(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The name of the source that `database.table` follows, if it follows one.
    fn source_of(&self, _table: &str) -> Option<String> {
        None
    }

    /// Declares the ranked search of a followed table; `None` removes it. Returns once its rows are
    /// indexed, which may take long.
    ///
    /// # Errors
    /// [`ErrorCode::OptionPreventsStatement`] if the table follows no source, or its ranked search
    /// is declared elsewhere.
    fn declare_words(&self, _table: &str, _words: Option<TableWords>) -> Result<()> {
        Err(no_source_error())
    }

    /// Waits until `source`, or any source if `None`, has applied the GTID set; false after
    /// `timeout`.
    ///
    /// # Errors
    /// [`ErrorCode::MalformedGtidSet`] if the text is not a GTID set,
    /// [`ErrorCode::OptionPreventsStatement`] if there is no source, [`ErrorCode::ServerShutdown`]
    /// if the server stops meanwhile, [`ErrorCode::Unknown`] if too many requests are waiting
    /// already.
    fn wait_for_gtids(
        &self,
        _source: Option<&str>,
        _gtids: &str,
        _timeout: Duration,
    ) -> Result<bool> {
        Err(no_source_error())
    }

    /// Whether other servers may use this account to request parts of tables (`CALL REMORA_PART`).
    /// Such requests use memory outside the limits of queries.
    fn serves_parts(&self, _account: &str) -> bool {
        true
    }

    /// The most connections to other servers at a time.
    fn most_agents(&self) -> usize {
        256
    }

    /// Connects to the SQL port of another server and logs in, within the limit. With `is_kept` an
    /// idle connection may be reused, and the connection is kept for reuse when it is dropped.
    ///
    /// # Errors
    /// [`ErrorCode::NotSupported`] if this host contacts no other servers, or not this one;
    /// [`ErrorCode::TooManyConnections`] if there are too many connections to other servers;
    /// [`ErrorCode::ForeignQuery`] if the server does not answer or refuses the login.
    fn agent(
        &self,
        _address: &str,
        _is_kept: bool,
        _limit: &AgentLimit<'_>,
    ) -> Result<Box<dyn AgentConnection>> {
        let what = "tables of other servers (agents) in a database within a program";
        Err(Error::unsupported(what))
    }
}

/// The limits of a request to another server.
#[derive(Clone, Copy, Debug)]
pub struct AgentLimit<'l> {
    /// The deadline, however many bytes have arrived by then.
    pub until: Instant,
    /// The most bytes of an answer.
    pub most_bytes: usize,
    /// Whether nobody waits for the answer any more. Check it about fifty times a second.
    pub is_left: &'l AtomicBool,
}

/// A connection to another server.
pub trait AgentConnection: Send {
    /// Runs a statement that returns one binary value, within the limit.
    ///
    /// # Errors
    /// [`ErrorCode::ForeignQuery`] with the server's message, or the reason why there is none. The
    /// connection is then not reused.
    fn ask(&mut self, statement: &str, limit: &AgentLimit<'_>) -> Result<Vec<u8>>;
}

/// The host of an embedded database.
pub struct EmbeddedHost;

impl Host for EmbeddedHost {}

/// The ranked search of a table, as SQL declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableWords {
    /// The columns, in the order of fields.
    pub columns: Vec<String>,
    /// Settings by Sphinx's names.
    pub settings: Vec<(String, String)>,
}

/// 1290: a statement waits for a source's position, but there is no source.
pub fn no_source_error() -> Error {
    let message = "This server follows no other: there is no position to wait for";
    Error::new(ErrorCode::OptionPreventsStatement, message)
}

/// One account, as `mysql.user` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// User, host pattern and rights.
    pub identity: Identity,
    /// The name of its authentication method.
    pub plugin: &'static str,
}

/// One connection, as SHOW PROCESSLIST shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// The connection's number.
    pub id: u64,
    /// The user.
    pub user: String,
    /// The client's host.
    pub host: String,
    /// The current database.
    pub database: Option<String>,
    /// `Query`, `Sleep`, …
    pub command: String,
    /// Seconds in this state.
    pub seconds: u64,
    /// What it is doing.
    pub state: String,
    /// The statement.
    pub statement: Option<String>,
}

/// The status of a followed server, as SHOW REPLICA STATUS prints it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaReport {
    /// The source's name.
    pub source: String,
    /// The GTID set that was applied.
    pub applied: String,
    /// MySQL's column names and their values.
    pub fields: Vec<(String, String)>,
}
