//! Errors between a source and a table, distinguished by what the caller can do about them.

use std::fmt;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of an import, an export, a schema description, or of following a MySQL or MariaDB.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused an operation, or compressed bytes are damaged.
    #[error("{file}: {error}")]
    Io {
        /// The file's name as the caller gave it.
        file: String,
        /// The error.
        error: std::io::Error,
    },
    /// One record is malformed: correct that line, or skip such lines.
    #[error("{0}")]
    Record(RecordProblem),
    /// The file as a whole cannot be read in this format: name another format or convert it.
    #[error("{file}: {message}")]
    Format {
        /// The file's name as the caller gave it.
        file: String,
        /// What was found and what to do.
        message: String,
    },
    /// The schema cannot be inferred, or its description is wrong.
    #[error("{0}")]
    Schema(String),
    /// A value of a stored row has no form in the chosen file format.
    #[error("{0}")]
    Export(String),
    /// The engine refused an operation.
    #[error(transparent)]
    Engine(#[from] remora_engine::Error),
    /// A sink refused one row of a batch, of which nothing was applied.
    #[error("row {} of the batch: {message}", place + 1)]
    Row {
        /// Its place in the batch.
        place: usize,
        /// Why.
        message: String,
    },
    /// A sink other than a database refused the rows.
    #[error("{0}")]
    Sink(String),
    /// The caller asked to stop. Applied batches stay; a rerun continues from there.
    #[error("stopped on request")]
    Cancelled,
    /// A setting of the source is wrong: correct it.
    #[error("{0}")]
    Setting(String),
    /// The source does not answer, or the connection broke: try again later.
    #[error("cannot reach {address}: {message}")]
    Unreachable {
        /// `host:port` of the source.
        address: String,
        /// What the network or the client said.
        message: String,
    },
    /// The source refuses the user: correct the password or the grants.
    #[error("{address} refuses {user}: {message}; {advice}")]
    AccessDenied {
        /// `host:port` of the source.
        address: String,
        /// The user as configured.
        user: String,
        /// What the source said or what is missing.
        message: String,
        /// What to do, with the exact statement.
        advice: String,
    },
    /// The source is not set up to be followed: change the named setting there.
    #[error("{message}; {advice}")]
    Requirement {
        /// What was found.
        message: String,
        /// What to do, with the exact statement or line of its settings.
        advice: String,
    },
    /// The source no longer has the transactions after our position: copy its tables again.
    #[error("the source no longer has the changes after {position:?}: {message}")]
    Purged {
        /// The position that was asked for, as a GTID set.
        position: String,
        /// What the source said.
        message: String,
    },
    /// The source lacks transactions that were applied from it (a restored backup, another server), or its history
    /// differs: connect to the right source, or copy its tables again.
    #[error("the source does not have what was applied from it: {message}")]
    BackInTime {
        /// Which transactions are missing there.
        message: String,
    },
    /// An event at the source cannot be followed, although nothing is damaged (lost events, a statement logged as text,
    /// an XA transaction prepared before the copy): copy again.
    #[error("{file}:{offset}: {message}")]
    Unfollowable {
        /// The binlog file at the source.
        file: String,
        /// The offset of the event's end in that file, in bytes.
        offset: u64,
        /// What happened.
        message: String,
    },
    /// An event's bytes are not what the source wrote: reconnect. If the error persists, the source's binlog is damaged
    /// on disk.
    #[error("{file}:{offset}: damaged binlog event: {message}")]
    Damaged {
        /// The binlog file at the source.
        file: String,
        /// The offset of the event's beginning in that file, in bytes.
        offset: u64,
        /// What disagrees.
        message: String,
    },
    /// An event is intact but not understood: the server is newer than this program, or this program has a bug.
    #[error("{file}:{offset}: cannot read the binlog event {event}: {message}")]
    Undecodable {
        /// The binlog file at the source.
        file: String,
        /// The offset of the event's end in that file, in bytes.
        offset: u64,
        /// The event's kind.
        event: String,
        /// What is wrong with it.
        message: String,
    },
    /// One table cannot be followed; the others can.
    #[error("table {table} is not followed: {reason}")]
    TableRefused {
        /// `database.table`.
        table: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The source refused a statement that should have worked.
    #[error("the source refused `{statement}`: {message}")]
    Statement {
        /// The statement or its beginning.
        statement: String,
        /// What the source said.
        message: String,
    },
}

/// A malformed record and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordProblem {
    /// The file's name as the caller gave it.
    pub file: String,
    /// The line the record starts on, from 1.
    pub line: u64,
    /// The record's offset in the uncompressed bytes.
    pub offset: u64,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for RecordProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl Error {
    pub(crate) fn io(file: &str, error: std::io::Error) -> Self {
        Self::Io { file: file.to_owned(), error }
    }

    pub(crate) fn format(file: &str, message: impl Into<String>) -> Self {
        Self::Format { file: file.to_owned(), message: message.into() }
    }
}
