//! What can go wrong in the server, by what its operator can do about it.

use std::path::Path;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the server or of a command line; its text is one sentence with the mend.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is wrong.
    #[error("{0}")]
    Settings(String),
    /// The command line asks for something that cannot be done.
    #[error("{0}")]
    Usage(String),
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, and the mend.
        what: String,
        /// Its answer.
        source: std::io::Error,
    },
    /// The engine's answer.
    #[error("{0}")]
    Engine(#[from] remora_engine::Error),
    /// The library's answer, which has collections.
    #[error("{0}")]
    Library(#[from] remora::Error),
    /// A file to import or export.
    #[error("{0}")]
    Source(#[from] remora_source::Error),
    /// The server at the other end answered with an error, or not as expected.
    #[error("{0}")]
    Remote(String),
}

impl Error {
    /// A refusal of the operating system while `what` was tried on `path`.
    pub fn io(what: &str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { what: format!("{what} {}", path.display()), source }
    }
}
