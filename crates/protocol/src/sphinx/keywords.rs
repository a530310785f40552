//! A request for the words of a text: query, index, `u32` whether with numbers.

use super::{
    RequestError,
    encode::{Fields, Text},
};

/// Asks for the words of a text as an index knows them.
#[derive(Clone, Debug, PartialEq)]
pub struct KeywordsRequest<'a> {
    /// The text.
    pub text: Text<'a>,
    /// The index.
    pub index: Text<'a>,
    /// Whether numbers of rows and of occurrences are asked for.
    pub with_numbers: bool,
}

/// A word of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keyword {
    /// As it stands in the text.
    pub tokenized: String,
    /// As it is indexed.
    pub normalized: String,
    /// Rows that have it.
    pub documents: u32,
    /// Its occurrences.
    pub hits: u32,
}

impl<'a> KeywordsRequest<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// [`RequestError::Truncated`].
    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, RequestError> {
        let (text, index) = (fields.text()?, fields.text()?);
        Ok(Self { text, index, with_numbers: fields.flag()? })
    }
}
