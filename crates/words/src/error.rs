//! Errors about words, by what the caller can do about them.

/// The crate's result.
pub type Result<T, E = WordsError> = std::result::Result<T, E>;

/// An error of word search.
#[derive(Debug, thiserror::Error)]
pub enum WordsError {
    /// A setting is unknown or its value is not understood: mend the table's declaration.
    #[error("{setting}: {message}")]
    Setting {
        /// The setting's name.
        setting: String,
        /// What is wrong with its value.
        message: String,
    },
    /// The query is refused, in Sphinx's words: mend the query.
    #[error("{0}")]
    Query(String),
    /// An option of an excerpt or of suggestions is unknown or its value is not understood: mend the option.
    #[error("{0}")]
    Option(String),
    /// The ranking expression is refused, in Sphinx's words where it has any: mend the expression.
    #[error("{0}")]
    Expression(String),
}
