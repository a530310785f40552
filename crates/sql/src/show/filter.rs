//! The result of a SHOW, and which of its rows its LIKE or WHERE keeps.

use super::grid::Grid;
use crate::{Result, parse::Tokens};

/// The result of a SHOW statement before filtering.
pub(super) struct Shown {
    /// All rows.
    pub(super) grid: Grid,
    /// Which rows to return.
    pub(super) filter: Filter,
}

/// The LIKE or WHERE clause of SHOW.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Filter {
    /// All rows.
    All,
    /// Rows whose first column matches this pattern, whatever its case is.
    Like(String),
    /// Rows whose first column, a name of a table or a database, matches this pattern.
    LikeExactly(String),
    /// Rows that satisfy an expression. Holds the index of the token WHERE.
    Where(usize),
}

impl Filter {
    /// Parses LIKE or WHERE. The tokens after WHERE are not consumed.
    pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        if tokens.accept("LIKE") {
            let pattern = tokens.utf8()?;
            tokens.expect_end()?;
            return Ok(Self::Like(pattern));
        }
        if tokens.is_word("WHERE") {
            return Ok(Self::Where(tokens.place()));
        }
        tokens.expect_end()?;
        Ok(Self::All)
    }

    /// Parses LIKE or WHERE of names of tables or databases, which differ by case.
    pub(super) fn read_of_names(tokens: &mut Tokens<'_>) -> Result<Self> {
        Ok(match Self::read(tokens)? {
            Self::Like(pattern) => Self::LikeExactly(pattern),
            filter => filter,
        })
    }

    /// The suffix that MySQL adds to the first column's name.
    pub(super) fn suffix(&self) -> String {
        match self {
            Self::Like(pattern) | Self::LikeExactly(pattern) => format!(" ({pattern})"),
            _ => String::new(),
        }
    }
}
