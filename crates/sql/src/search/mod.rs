//! Text conditions in SQL, answered from the text index: MATCH, LIKE, INSTR, REGEXP.
//!
//! Each becomes an equivalent query of the engine ([`IndexAnswer::Exact`]), or one that finds a superset
//! of the rows ([`IndexAnswer::Superset`]), which the condition itself then filters.

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
pub(crate) use function::match_function;
pub(crate) use keywords::{KEYWORDS_FACTORS, KEYWORDS_HELD, KEYWORDS_MODE, ranker};
pub(crate) use like::{beginning, begins, held, holds, like, may_hold, plain_beginning};
pub(crate) use plan::{SearchedTable, letters, plan, text};
pub(crate) use words::selection;

/// What the text index can answer of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IndexAnswer {
    /// The query finds exactly the rows for which the condition holds.
    Exact(TextQuery),
    /// The query finds all rows for which the condition holds, and maybe others.
    Superset(TextQuery),
    /// Nothing: the condition is evaluated for every row.
    Scan,
}

impl IndexAnswer {
    /// The query, exact or not, if there is one.
    pub(crate) fn superset(self) -> Option<TextQuery> {
        match self {
            Self::Exact(query) | Self::Superset(query) => Some(query),
            Self::Scan => None,
        }
    }

    /// The query, if it is exact.
    pub(crate) fn exact(self) -> Option<TextQuery> {
        match self {
            Self::Exact(query) => Some(query),
            _ => None,
        }
    }
}
