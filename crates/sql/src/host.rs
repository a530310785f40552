//! What statements need of the server around them.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use remora_mysql::ErrorCode;

use crate::{Error, Identity, Result};

/// The server around the SQL side: its connections and the servers it follows. What is not said
/// is as in a database within a program: nobody else is connected, nobody is followed.
pub trait Host: Send + Sync {
    /// The open connections.
    fn processes(&self) -> Vec<Process> {
        Vec::new()
    }

    /// Ends a connection, or only its running statement.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownThread`] if there is no such connection; [`ErrorCode::NotSupported`] unless the
    /// host says otherwise.
    fn kill(&self, _id: u64, _only_statement: bool) -> Result<()> {
        Err(Error::unsupported("KILL"))
    }

    /// The accounts that are set up.
    fn accounts(&self) -> Vec<Account> {
        Vec::new()
    }

    /// The servers that are followed.
    fn replicas(&self) -> Vec<ReplicaReport> {
        Vec::new()
    }

    /// Figures for SHOW STATUS, by MySQL's names where it has one.
    fn status(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The name of the source that `database.table` is replicated from, if it is.
    fn source_of(&self, _table: &str) -> Option<String> {
        None
    }

    /// Declares the words of a table that is replicated; `None` takes them away. Returns when its rows are
    /// indexed, which may take long.
    ///
    /// # Errors
    /// [`ErrorCode::OptionPreventsStatement`] if the table is not replicated, or its words are declared elsewhere.
    fn declare_words(&self, _table: &str, _words: Option<TableWords>) -> Result<()> {
        Err(no_source_error())
    }

    /// Whether the GTID set is contained in what `source` applied (any source where `None`); waits
    /// for it until `timeout`. `false` is a timeout.
    ///
    /// # Errors
    /// [`ErrorCode::MalformedGtidSet`] if the text is no GTID set, [`ErrorCode::OptionPreventsStatement`] if
    /// nobody is followed, [`ErrorCode::ServerShutdown`] if the server stops meanwhile,
    /// [`ErrorCode::Unknown`] if too many requests wait already.
    fn wait_for_gtids(
        &self,
        _source: Option<&str>,
        _gtids: &str,
        _timeout: Duration,
    ) -> Result<bool> {
        Err(no_source_error())
    }

    /// Whether other servers may ask as that account for parts of their tables (`CALL REMORA_PART`), which costs memory that
    /// no query of a reader does.
    fn serves_parts(&self, _account: &str) -> bool {
        true
    }

    /// How many other servers are asked at a time at most.
    fn most_agents(&self) -> usize {
        256
    }

    /// Connects to the SQL port of another server, in whose tables parts of tables lie, and logs in, within the limit. The
    /// connection may be one that was kept if it `is_kept`, and is kept for others then when it is let go.
    ///
    /// # Errors
    /// [`ErrorCode::NotSupported`] if this host asks no others, or not that one; [`ErrorCode::TooManyConnections`] if it has too
    /// many connections to others; [`ErrorCode::ForeignQuery`] if it
    /// does not answer, or refuses the login.
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

/// How long another server is waited for, and how much it may send.
#[derive(Clone, Copy, Debug)]
pub struct AgentLimit<'l> {
    /// When the wait ends, however many bytes have come until then.
    pub until: Instant,
    /// The most bytes of an answer.
    pub most_bytes: usize,
    /// Whether nobody waits any more; looked at some fifty times a second.
    pub is_left: &'l AtomicBool,
}

/// A connection to another server.
pub trait AgentConnection: Send {
    /// Runs a statement that gives one value of bytes, within the limit.
    ///
    /// # Errors
    /// [`ErrorCode::ForeignQuery`] with what the server says, or why it said nothing. Such a connection is not kept.
    fn ask(&mut self, statement: &str, limit: &AgentLimit<'_>) -> Result<Vec<u8>>;
}

/// The host of a database within a program.
pub struct EmbeddedHost;

impl Host for EmbeddedHost {}

/// The words of a table, as SQL declares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableWords {
    /// The names of the columns, in the order of fields.
    pub columns: Vec<String>,
    /// Settings by Sphinx's names.
    pub settings: Vec<(String, String)>,
}

/// 1290 where a position of a source is waited for and there is none.
pub fn no_source_error() -> Error {
    let message = "This server follows no other: there is no position to wait for";
    Error::new(ErrorCode::OptionPreventsStatement, message)
}

/// One account, as `mysql.user` shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Who, where from (a pattern), and what for.
    pub identity: Identity,
    /// How its password is proved, by name.
    pub plugin: &'static str,
}

/// One connection, as SHOW PROCESSLIST shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// The connection's number.
    pub id: u64,
    /// Who.
    pub user: String,
    /// From where.
    pub host: String,
    /// The chosen database.
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

/// One followed server, as SHOW REPLICA STATUS shows it: its columns by MySQL's names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplicaReport {
    /// The source's name.
    pub source: String,
    /// The GTID set that is applied.
    pub applied: String,
    /// MySQL's columns and their values.
    pub fields: Vec<(String, String)>,
}
