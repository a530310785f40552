//! Joins by keys, answered without planning. Each table is read by its key or by leading key columns, whose values the
//! statement or an earlier table gives. One temporary table of the session may take part; it is read whole first. Point
//! joins have this shape, look-ups of keys that a client put into a temporary table, and TPC-C's Stock-Level in every
//! form.
//!
//! ```text
//! statement := "SELECT" items "FROM" joined ("WHERE" fact ("AND" fact)*)?
//!            | "SELECT" "COUNT" "(" "*" ")" alias? "FROM"
//!              "(" "SELECT" column,* "FROM" joined ("WHERE" facts)? ")" alias
//! items     := "COUNT" "(" "*" ")" alias? | "COUNT" "(" "DISTINCT" column ")" alias?
//!            | column alias? ("," column alias?)*
//! joined    := table (("," | "INNER"? "JOIN" | "CROSS" "JOIN") table ("ON" facts)?)*
//! facts     := fact ("AND" fact)* | "(" facts ")"
//! fact      := operand comparison operand | column "BETWEEN" literal "AND" literal
//!            | column "IN" "(" literal,* ")"
//!            | column "IN" "(" "SELECT" column "FROM" joined ("WHERE" facts)? ")"
//! operand   := literal | column (("+" | "-") literal)?
//! ```
//! All columns of facts are integers. Whatever does not fit, or takes more rows than are worth
//! collecting, goes the general way.

mod explain;
mod parse;
mod plan;
mod read;
mod run;

pub(super) use explain::explain;
pub(super) use parse::shape;
pub(super) use plan::Plan;
pub(super) use run::run;

use std::ops::Range;

use super::shape::{ColumnName, Comparison, Group};

/// A statement of this shape.
#[derive(Debug)]
pub(super) struct Shape {
    items: Items,
    chain: Chain,
}

/// What is selected.
#[derive(Debug)]
enum Items {
    /// How many rows, under this name.
    Count(String),
    /// How many values of a column.
    CountDistinct(ColumnName, String),
    /// Columns, each under a name.
    Columns(Vec<(ColumnName, String)>),
}

/// Tables, and what must hold of their rows.
#[derive(Debug, Default)]
struct Chain {
    tables: Vec<Named>,
    facts: Vec<Said>,
    /// Columns that must exist though nobody sees them.
    selected: Vec<ColumnName>,
}

/// A table as the statement names it.
#[derive(Debug)]
struct Named {
    database: Option<String>,
    table: String,
    alias: Option<String>,
}

/// What must hold, and which of the tables it may name: ON sees the tables that its JOIN joins, and
/// none before a comma.
#[derive(Debug)]
struct Said {
    fact: Fact,
    sees: Range<usize>,
}

/// What must hold.
#[derive(Debug)]
enum Fact {
    /// A column compared with a literal.
    Constant(ColumnName, Comparison, Group),
    /// A column compared with another, to which a literal may be added.
    Columns(ColumnName, Comparison, ColumnName, Option<Added>),
    /// A column is one of a list.
    In(ColumnName, Group),
    /// A column is one of those that a column of other tables has.
    InChain(ColumnName, ColumnName, Chain),
}

/// A literal that is added to a column, or subtracted.
#[derive(Clone, Copy, Debug)]
struct Added {
    subtracted: bool,
    literal: Group,
}
