//! Errors of this crate, grouped by what the caller can do about them.

/// The crate's result.
pub type Result<T, E = WordsError> = std::result::Result<T, E>;

/// An error of word search.
#[derive(Debug, thiserror::Error)]
pub enum WordsError {
    /// A setting is unknown or its value is invalid: correct the table's declaration.
    #[error("{setting}: {message}")]
    Setting {
        /// The setting's name.
        setting: String,
        /// What is wrong with its value.
        message: String,
    },
    /// The query is invalid, with Sphinx's message: correct the query.
    #[error("{0}")]
    Query(String),
    /// An option of excerpts or suggestions is unknown or its value is invalid: correct the option.
    #[error("{0}")]
    Option(String),
    /// The ranking expression is invalid, with Sphinx's message if it has one: correct the expression.
    #[error("{0}")]
    Expression(String),
}
