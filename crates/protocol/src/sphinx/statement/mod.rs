//! Requests as SQL: each becomes statements of the SQL port's, with every name and text quoted.
//!
//! A search asks for rows by one SELECT: `search` puts it together from `select` (what is shown),
//! `filter` (which rows), `group`, `order` and `options`; names are looked up in the table's `shape`
//! by `names`, and `expression` reads the language of select lists and orders. `excerpt`, `keywords`
//! and `update` are statements of their own.

mod excerpt;
mod expression;
mod filter;
mod group;
mod keywords;
mod lex;
mod names;
mod options;
mod order;
mod quote;
mod search;
mod select;
mod shape;
mod update;

use std::fmt;

pub use excerpt::excerpts;
pub use keywords::keywords;
pub use search::{Output, Statement, search};
pub use shape::{Column, ColumnKind, Indexes, TableShape};
pub use update::updates;

/// Why a request has no statement: a sentence for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    message: String,
}

impl Refused {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

type Result<T> = std::result::Result<T, Refused>;
