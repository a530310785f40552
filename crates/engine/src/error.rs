//! Errors, grouped by what the caller can do about them.

use std::io::ErrorKind;

use crate::value::KeyValues;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the engine. The codes for clients are assigned in `protocol`.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The request is invalid: correct it and send it again.
    #[error("{message}")]
    Request {
        /// The invalid part.
        part: RequestPart,
        /// What is wrong, where, and how to correct it.
        message: String,
    },
    /// There is no such table, column or key.
    #[error("{message}")]
    NotFound {
        /// What kind of thing is missing.
        what: Missing,
        /// Names the thing.
        message: String,
    },
    /// The change conflicts with the current state.
    #[error("{0}")]
    Conflict(String),
    /// A name that must be free is taken by a table.
    #[error("there is a table {table:?} already: choose another name")]
    Taken {
        /// The name.
        table: String,
    },
    /// A row to be inserted has the key of an existing row.
    #[error("table {table:?} has a row with the key ({}) already", list(key))]
    Exists {
        /// The table's name.
        table: String,
        /// The primary key's values.
        key: KeyValues,
    },
    /// Two rows would have the same value at a unique path, or the same values at several paths that are unique together.
    #[error(
        "path {path:?} of table {table:?} is unique, and the rows with the keys ({}) and ({}) both have {value} there",
        list(&keys[0]), list(&keys[1])
    )]
    NotUnique {
        /// The table's name.
        table: String,
        /// The path's names with points between; of several paths with commas between.
        path: String,
        /// The value, shortened if it is long.
        value: String,
        /// The keys of the two rows.
        keys: Box<[KeyValues; 2]>,
    },
    /// A limit of a queue, of memory or of time was reached: try again later.
    #[error("{0}")]
    Busy(String),
    /// Stored data is damaged.
    #[error("stored data is corrupt: {0}")]
    Corrupt(String),
    /// An error of the operating system.
    #[error("{0}")]
    Io(String),
    /// The disk is full. Nothing was done; the request can be repeated when there is space.
    #[error("{0}")]
    Full(String),
    /// An earlier write could not be made durable: the store rejects writes until it is reopened.
    #[error("the store refuses writes since a write could not be made durable: {0}")]
    Poisoned(String),
    /// The database is shutting down.
    #[error("the database is shutting down")]
    Closed,
    /// Another server with rows of the table did not answer, or gave a wrong answer.
    #[error("{0}")]
    RemoteServer(String),
    /// A read was interrupted.
    #[error("the read {}", why(*.0))]
    Ended(Ending),
}

/// Why a read was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The caller cancelled it.
    Interrupted,
    /// It exceeded its time limit.
    TimedOut,
}

/// The part of a request that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPart {
    /// The search expression.
    Expression,
    /// A filter.
    Filter,
    /// A sort key or cursor.
    Sort,
    /// LIMIT.
    Limit,
    /// OFFSET.
    Offset,
    /// A facet.
    Facet,
    /// The list of returned fields.
    Fields,
    /// A key.
    Key,
    /// A table definition.
    Schema,
    /// A row of a change batch.
    Row,
    /// The size of a change batch or transaction.
    Batch,
    /// Anything else.
    Other,
}

/// What is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A table.
    Table,
    /// A column.
    Column,
    /// A row.
    Row,
    /// A data directory or file.
    Path,
    /// A watcher.
    Watcher,
    /// Changes that are no longer kept for a watcher.
    Changes,
}

impl Error {
    /// A request error.
    pub fn request(part: RequestPart, message: impl Into<String>) -> Self {
        Self::Request { part, message: message.into() }
    }

    /// An error of the operating system, with a message.
    pub(crate) fn of_system(error: &std::io::Error, message: String) -> Self {
        if is_full(error) { Self::Full(message) } else { Self::Io(message) }
    }

    /// A missing thing.
    pub fn missing(what: Missing, message: impl Into<String>) -> Self {
        Self::NotFound { what, message: message.into() }
    }
}

/// Why a read ended.
fn why(ending: Ending) -> &'static str {
    match ending {
        Ending::Interrupted => "was interrupted",
        Ending::TimedOut => "took longer than allowed",
    }
}

/// Values, separated by commas.
fn list(values: &KeyValues) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(", ")
}

impl From<remora_index::IndexError> for Error {
    fn from(error: remora_index::IndexError) -> Self {
        match error {
            remora_index::IndexError::Io(error) => Self::from(error),
            remora_index::IndexError::Full(_) => {
                let message = format!("{error}: write smaller batches");
                Self::request(crate::RequestPart::Batch, message)
            }
            other => Self::Corrupt(other.to_string()),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::of_system(&error, error.to_string())
    }
}

/// Whether an error means that there is no space: on the disk, in a quota, or below a file size limit.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    kinds.contains(&error.kind())
}

/// The error for a table that does not exist.
pub(crate) fn no_table(name: &str) -> Error {
    Error::missing(Missing::Table, format!("there is no table {name:?}"))
}
