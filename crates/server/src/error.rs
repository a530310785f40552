//! Errors of the server, by what its operator can do about them.

use std::path::Path;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the server or of a command line. Its text is one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is wrong.
    #[error("{0}")]
    Settings(String),
    /// The command line asks for something that cannot be done.
    #[error("{0}")]
    Usage(String),
    /// The operating system refused an operation.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted, and what to do.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// An error of the engine.
    #[error("{0}")]
    Engine(#[from] remora_engine::Error),
    /// An error of the library, which provides collections.
    #[error("{0}")]
    Library(#[from] remora::Error),
    /// A file to import or export.
    #[error("{0}")]
    Source(#[from] remora_source::Error),
    /// The remote server answered with an error, or unexpectedly.
    #[error("{0}")]
    Remote(String),
}

impl Error {
    /// An error of the operating system while doing `what` on `path`.
    pub fn io(what: &str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { what: format!("{what} {}", path.display()), source }
    }
}
