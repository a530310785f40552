//! Errors of segments, grouped by what the caller can do about them.

/// The crate's result.
pub type Result<T, E = IndexError> = std::result::Result<T, E>;

/// An error of the index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The bytes are not what was written: rebuild the segment from the row store.
    #[error("segment is corrupt: {0}")]
    Corrupt(String),
    /// The operating system could not read the segment's file.
    #[error("segment file cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// The segment would pass a limit of its format: split the input.
    #[error("segment is full: {0}")]
    Full(&'static str),
    /// Documents came in an order or a shape that the builder does not accept: a bug in the caller.
    #[error("segment input is invalid: {0}")]
    Invalid(String),
}

impl IndexError {
    /// A corrupt-bytes error that names the part.
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt(what.into())
    }
}
