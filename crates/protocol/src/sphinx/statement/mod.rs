//! Converts requests to SQL statements, with every name and text quoted.
//!
//! A search becomes one SELECT. `search` composes it from `select` (its values), `filter` (its conditions), `group`,
//! `order` and `options`. `names` looks up names in the table's `shape`, and `expression` converts the expressions of
//! select lists and orders. `excerpt`, `keywords` and `update` make statements of their own.

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

/// The reason why a request cannot be converted: a sentence for the client.
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
