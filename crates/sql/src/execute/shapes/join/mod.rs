//! Joins by keys, answered without planning. Each table is read by its key or by leading key columns, whose values come
//! from literals or from an earlier table. One temporary table of the session may take part; it is read whole first.
//! Point joins have this shape, as do lookups of keys in a temporary table and every form of TPC-C's Stock-Level.
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
//! All columns of facts are integers. Anything else, or a join that would collect too many rows, takes the general
//! path.

mod explain;
mod of_tree;
mod plan;
mod read;
mod run;

pub(super) use explain::explain;
pub(super) use of_tree::shape;
pub(super) use plan::JoinPlan;
pub(super) use run::run;

use std::ops::Range;

use super::shape::{ColumnName, Comparison, LiteralGroup};

/// A statement of this shape.
#[derive(Debug)]
pub(super) struct JoinShape {
    items: Items,
    chain: Chain,
}

/// The select list.
#[derive(Debug)]
enum Items {
    /// `COUNT(*)`, with the name of its result column.
    Count(String),
    /// `COUNT(DISTINCT column)`, with its name.
    CountDistinct(ColumnName, String),
    /// Columns, with their names.
    Columns(Vec<(ColumnName, String)>),
}

/// Joined tables with their conditions.
#[derive(Debug, Default)]
struct Chain {
    tables: Vec<Named>,
    facts: Vec<JoinCondition>,
    /// Columns of a derived table: they must exist, although their values are not used.
    selected: Vec<ColumnName>,
}

/// A table with its alias.
#[derive(Debug)]
struct Named {
    database: Option<String>,
    table: String,
    alias: Option<String>,
}

/// Conditions, and the tables they may name: those that the JOIN of their ON joins, and none before a comma.
#[derive(Debug)]
struct JoinCondition {
    fact: JoinPredicate,
    sees: Range<usize>,
}

/// A condition.
#[derive(Debug)]
enum JoinPredicate {
    /// A column compared with a literal.
    Constant(ColumnName, Comparison, LiteralGroup),
    /// A column compared with another column, to which a literal may be added.
    Columns(ColumnName, Comparison, ColumnName, Option<LiteralOffset>),
    /// A column is one of a list.
    In(ColumnName, LiteralGroup),
    /// A column is among the values of a column of other tables.
    InChain(ColumnName, ColumnName, Chain),
}

/// A literal that is added to a column or subtracted from it.
#[derive(Clone, Copy, Debug)]
struct LiteralOffset {
    subtracted: bool,
    literal: LiteralGroup,
}
