//! Errors, distinguished by what the caller can do about them.

use std::fmt;

use remora_engine::{Error as EngineError, Missing};

/// The result type of this crate.
///
/// ```
/// fn open() -> remora::Result<remora::Database> {
///     remora::Database::in_memory()
/// }
/// assert!(open()?.tables().is_empty());
/// # Ok::<(), remora::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed call. It has changed nothing, but for two: [`Error::ReadOnly`], whose write may be there when the database is
/// opened again, and calls that work in several steps and say so ([`Collection::delete_where`](crate::Collection::delete_where)).
///
/// ```
/// use remora::{Database, Error};
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
/// birds.insert(&json!({"id": 1, "name": "Heron"}))?;
/// match birds.insert(&json!({"id": 1, "name": "Stork"})) {
///     Err(Error::Exists(why)) => assert!(why.message().contains("birds")),
///     other => panic!("{other:?}"),
/// }
/// assert!(!birds.insert(&json!({"id": "x"})).is_err_and(|error| error.is_retryable()));
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The call itself is invalid, including its statement or a value: correct it.
    #[error("{0}")]
    Request(Detail),
    /// A table, column, document or path does not exist.
    #[error("{0}")]
    NotFound(Detail),
    /// The key of an inserted row, the value of a document at a unique path, or the name of a new
    /// table exists already.
    #[error("{0}")]
    Exists(Detail),
    /// Another writer was faster: read again and retry.
    #[error("{0}")]
    Conflict(Detail),
    /// A document is not in the expected state: read it again and decide anew.
    #[error("{0}")]
    Changed(Detail),
    /// The changes that a watcher needs are no longer kept: read the tables, and watch from there.
    #[error("{0}")]
    Gone(Detail),
    /// A limit of memory, time or a queue was exceeded: retry later, or request less.
    #[error("{0}")]
    Busy(Detail),
    /// The directory is already open, in this process or another: use that one, or close it.
    #[error("{0}")]
    InUse(Detail),
    /// The disk is full: free some space and retry.
    #[error("{0}")]
    Full(Detail),
    /// Stored data is damaged: `remora check` reports details.
    #[error("{0}")]
    Corrupt(Detail),
    /// The operating system refused an operation, or an internal task failed.
    #[error("{0}")]
    Io(Detail),
    /// A server cannot be followed: the message contains its answer and the remedy.
    #[error("{0}")]
    Source(Detail),
    /// A write could not be made durable: reads still work; to write, open the directory again.
    #[error("{0}")]
    ReadOnly(Detail),
    /// The database was closed.
    #[error("the database is closed: open it again")]
    Closed,
}

/// The message of an error, and MySQL's number if a statement failed.
///
/// ```
/// use remora::{Database, Error};
///
/// let db = Database::in_memory()?;
/// match db.table("nothing") {
///     Err(Error::NotFound(detail)) => assert!(detail.message().contains("nothing")),
///     _ => panic!("there is no such table"),
/// }
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    message: String,
    mysql_code: Option<u16>,
}

impl Detail {
    /// The message.
    ///
    /// ```
    /// let error = remora::Filter::parse("year >").err();
    /// if let Some(remora::Error::Request(detail)) = error {
    ///     println!("{}", detail.message());
    /// }
    /// ```
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<String> for Detail {
    fn from(message: String) -> Self {
        Self { message, mysql_code: None }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl Error {
    /// MySQL's number for this error, such as 1062 for a duplicate key, if a statement failed.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let wrong = db.query("SELEC 1", []).err().and_then(|error| error.mysql_code());
    /// assert_eq!(wrong, Some(1064));
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn mysql_code(&self) -> Option<u16> {
        self.detail()?.mysql_code
    }

    /// Whether the same call may succeed if it is repeated: [`Error::Conflict`] at once,
    /// [`Error::Busy`] and [`Error::Full`] later.
    ///
    /// ```
    /// use remora::Error;
    ///
    /// assert!(Error::Conflict("another writer was faster".to_owned().into()).is_retryable());
    /// assert!(!Error::Closed.is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Conflict(_) | Self::Busy(_) | Self::Full(_))
    }

    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::Request(message.into().into())
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::Conflict(message.into().into())
    }

    /// The same error, with the place in front of the message.
    pub(crate) fn at(mut self, place: impl fmt::Display) -> Self {
        if let Some(detail) = self.detail_mut() {
            detail.message = format!("{place}: {}", detail.message);
        }
        self
    }

    fn detail(&self) -> Option<&Detail> {
        match self {
            Self::Request(detail)
            | Self::NotFound(detail)
            | Self::Exists(detail)
            | Self::Conflict(detail)
            | Self::Changed(detail)
            | Self::Gone(detail)
            | Self::Busy(detail)
            | Self::InUse(detail)
            | Self::Full(detail)
            | Self::Corrupt(detail)
            | Self::Io(detail)
            | Self::Source(detail)
            | Self::ReadOnly(detail) => Some(detail),
            Self::Closed => None,
        }
    }

    fn detail_mut(&mut self) -> Option<&mut Detail> {
        match self {
            Self::Request(detail)
            | Self::NotFound(detail)
            | Self::Exists(detail)
            | Self::Conflict(detail)
            | Self::Changed(detail)
            | Self::Gone(detail)
            | Self::Busy(detail)
            | Self::InUse(detail)
            | Self::Full(detail)
            | Self::Corrupt(detail)
            | Self::Io(detail)
            | Self::Source(detail)
            | Self::ReadOnly(detail) => Some(detail),
            Self::Closed => None,
        }
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        let detail = Detail::from(error.to_string());
        match error {
            EngineError::Request { .. } => Self::Request(detail),
            EngineError::NotFound { what: Missing::Changes, .. } => Self::Gone(detail),
            EngineError::NotFound { .. } => Self::NotFound(detail),
            EngineError::Conflict(_) => Self::Conflict(detail),
            EngineError::Taken { .. }
            | EngineError::Exists { .. }
            | EngineError::NotUnique { .. } => Self::Exists(detail),
            EngineError::Busy(_) | EngineError::Ended(_) => Self::Busy(detail),
            EngineError::Corrupt(_) => Self::Corrupt(detail),
            EngineError::Io(_) | EngineError::RemoteServer(_) => Self::Io(detail),
            EngineError::Full(_) => Self::Full(detail),
            EngineError::Poisoned(_) => Self::ReadOnly(detail),
            EngineError::Closed => Self::Closed,
        }
    }
}

#[cfg(feature = "sql")]
impl From<remora_sql::Error> for Error {
    fn from(error: remora_sql::Error) -> Self {
        use remora_mysql::ErrorCode as Code;
        let detail = Detail { message: error.to_string(), mysql_code: Some(error.code.number()) };
        match error.code {
            Code::NoSuchTable | Code::UnknownTable | Code::UnknownDatabase => {
                Self::NotFound(detail)
            }
            Code::UnknownColumn => Self::NotFound(detail),
            Code::DuplicateKey | Code::TableExists | Code::DatabaseExists => Self::Exists(detail),
            Code::Deadlock | Code::LockWaitTimeout => Self::Conflict(detail),
            Code::OutOfMemory | Code::TableFull | Code::QueryTimeout | Code::Interrupted => {
                Self::Busy(detail)
            }
            Code::DiskFull => Self::Full(detail),
            Code::ServerShutdown => Self::Closed,
            Code::Unknown => Self::Io(detail),
            _ => Self::Request(detail),
        }
    }
}

#[cfg(feature = "follow")]
impl From<remora_source::Error> for Error {
    fn from(error: remora_source::Error) -> Self {
        match error {
            remora_source::Error::Engine(error) => error.into(),
            remora_source::Error::Cancelled => {
                Self::Source("following has ended: start it again".to_owned().into())
            }
            other => Self::Source(other.to_string().into()),
        }
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::request(message.to_string())
    }
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::request(message.to_string())
    }
}
