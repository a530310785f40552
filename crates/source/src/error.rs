//! What can go wrong between a file and a table, by what the caller can do about it.

use std::fmt;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of an import, an export or a schema description.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused, or compressed bytes are damaged.
    #[error("{file}: {error}")]
    Io {
        /// The file as the caller named it.
        file: String,
        /// What was refused.
        error: std::io::Error,
    },
    /// One record is wrong: mend that line, or skip such lines.
    #[error("{0}")]
    Record(RecordProblem),
    /// The file as a whole cannot be read this way: name another format or convert it.
    #[error("{file}: {message}")]
    Format {
        /// The file as the caller named it.
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
    /// The table refused.
    #[error(transparent)]
    Engine(#[from] remora_engine::Error),
    /// Something other than a database refused the rows.
    #[error("{0}")]
    Sink(String),
    /// The caller asked to stop. What was applied stays; a rerun goes on from there.
    #[error("stopped on request")]
    Cancelled,
}

/// What is wrong with one record, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordProblem {
    /// The file as the caller named it.
    pub file: String,
    /// The line the record starts on, from 1.
    pub line: u64,
    /// Where the record starts in the uncompressed bytes.
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
