//! Numbers of modes and rankers.

use super::{Fields, RequestError, Text};

/// What the text of a query means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// Rows with all words.
    #[default]
    All,
    /// Rows with any word.
    Any,
    /// Rows with the words in a row.
    Phrase,
    /// The query language, with all rows of one weight.
    Boolean,
    /// The query language.
    Extended,
    /// All rows, whatever the text.
    FullScan,
}

impl MatchMode {
    pub(super) fn numbered(code: i32) -> Result<Self, RequestError> {
        Ok(match code {
            0 => Self::All,
            1 => Self::Any,
            2 => Self::Phrase,
            3 => Self::Boolean,
            4 | 6 => Self::Extended,
            5 => Self::FullScan,
            _ => return Err(RequestError::MatchMode(code)),
        })
    }
}

/// How rows are weighed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ranker<'a> {
    /// By the longest runs of words, then by their weights.
    #[default]
    ProximityBm25,
    /// By the weights of words.
    Bm25,
    /// All alike.
    None,
    /// By the number of words.
    WordCount,
    /// By the longest runs of words.
    Proximity,
    /// By the number of words and their runs.
    MatchAny,
    /// By the fields that have words.
    FieldMask,
    /// By runs, and the better if they begin or fill a field.
    Sph04,
    /// By an expression.
    Expression(Text<'a>),
    /// By an expression, with its factors.
    Export(Text<'a>),
}

impl<'a> Ranker<'a> {
    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, RequestError> {
        let code = fields.i32()?;
        Ok(match code {
            0 => Self::ProximityBm25,
            1 => Self::Bm25,
            2 => Self::None,
            3 => Self::WordCount,
            4 => Self::Proximity,
            5 => Self::MatchAny,
            6 => Self::FieldMask,
            7 => Self::Sph04,
            8 => Self::Expression(fields.text()?),
            9 => Self::Export(fields.text()?),
            _ => return Err(RequestError::RankingMode(code)),
        })
    }
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortMode {
    /// The heaviest first.
    #[default]
    Relevance,
    /// The greatest value of an attribute first.
    AttributeDescending,
    /// The least value of an attribute first.
    AttributeAscending,
    /// The last hour, day, week, month, quarter of a year; within each the heaviest first.
    TimeSegments,
    /// By a clause.
    Extended,
    /// The greatest value of an expression first.
    Expression,
}

impl SortMode {
    pub(super) fn numbered(code: i32) -> Result<Self, RequestError> {
        Ok(match code {
            0 => Self::Relevance,
            1 => Self::AttributeDescending,
            2 => Self::AttributeAscending,
            3 => Self::TimeSegments,
            4 => Self::Extended,
            5 => Self::Expression,
            _ => return Err(RequestError::SortMode(code)),
        })
    }
}
