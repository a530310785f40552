//! Text conditions in SQL, answered from the text index: MATCH, LIKE, INSTR, REGEXP.
//!
//! Each becomes an equivalent query of the engine ([`Answer::Exact`]), or one that finds a superset of the rows
//! ([`Answer::Superset`]), on which the condition itself is then evaluated.

mod at_paths;
mod boolean;
mod function;
mod keywords;
mod like;
mod plan;
mod words;

use remora_engine::TextQuery;

pub(crate) use at_paths::match_at_paths_function;
pub(crate) use boolean::{asked, matching, pieces};
pub(crate) use function::{PreparedQuery, match_function};
pub(crate) use keywords::{KEYWORDS_FACTORS, KEYWORDS_HELD, KEYWORDS_MODE, ranker};
pub(crate) use like::{beginning, begins, held, holds, like, plain_beginning};
pub(crate) use plan::{SearchedTable, letters, plan, text};
pub(crate) use words::selection;

/// What the text index knows of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The rows it finds are those the condition holds for.
    Exact(TextQuery),
    /// All rows that the condition holds for are among those it finds.
    Superset(TextQuery),
    /// Nothing: every row is asked.
    Scan,
}

impl Answer {
    /// The query, if there is one.
    pub(crate) fn superset(self) -> Option<TextQuery> {
        match self {
            Self::Exact(query) | Self::Superset(query) => Some(query),
            Self::Scan => None,
        }
    }

    /// The query, if it says just what the condition says.
    pub(crate) fn exact(self) -> Option<TextQuery> {
        match self {
            Self::Exact(query) => Some(query),
            _ => None,
        }
    }
}
