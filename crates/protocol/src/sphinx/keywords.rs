//! A request for the words of a text: query, index, and a `u32` that says whether counts are wanted.

use super::{
    RequestError,
    encode::{Fields, Text},
};

/// A request to split a text into words, by the settings of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct KeywordsRequest<'a> {
    /// The text.
    pub text: Text<'a>,
    /// The index whose settings say how texts become words.
    pub index: Text<'a>,
    /// Whether the counts of rows and occurrences are wanted.
    pub with_numbers: bool,
}

/// A word of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keyword {
    /// The word as it stands in the text.
    pub tokenized: String,
    /// The word as it is indexed.
    pub normalized: String,
    /// The number of rows that contain the word.
    pub documents: u32,
    /// The number of its occurrences.
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
