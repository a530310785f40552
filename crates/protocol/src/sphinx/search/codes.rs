//! The numbers of match modes, rankers and sort modes.

use super::{Fields, RequestError, Text};

/// The match mode: how the text of a query is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// Finds rows that contain all words.
    #[default]
    All,
    /// Finds rows that contain any word.
    Any,
    /// Finds rows that contain the words as a phrase.
    Phrase,
    /// The text is a query in the query language, and all rows have the same weight.
    Boolean,
    /// The text is a query in the query language.
    Extended,
    /// Finds all rows and ignores the text.
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

/// The ranker: how rows are weighed.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ranker<'a> {
    /// By the longest runs of words in each field, then by BM25.
    #[default]
    ProximityBm25,
    /// By the matched fields, then by BM25.
    Bm25,
    /// All rows have the weight 1.
    None,
    /// By the number of occurrences.
    WordCount,
    /// By the longest runs of words.
    Proximity,
    /// By the matched words and the longest run in each field.
    MatchAny,
    /// By a bit mask of the matched fields.
    FieldMask,
    /// By runs, with a bonus for fields that begin with the query or equal it.
    Sph04,
    /// By a ranking expression.
    Expression(Text<'a>),
    /// By a ranking expression whose factors are also given.
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
    /// By weight, descending.
    #[default]
    Relevance,
    /// By an attribute, descending.
    AttributeDescending,
    /// By an attribute, ascending.
    AttributeAscending,
    /// By segments of time (last hour, day, week, month, three months), then by weight, descending.
    TimeSegments,
    /// By an ORDER BY clause.
    Extended,
    /// By an expression, descending.
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
