//! The SELECT that each table of a statement belongs to, for EXPLAIN, and its number, for plans that are kept.

use std::{convert::Infallible, ops::ControlFlow};

use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart, Query, TableFactor, VisitorMut};

use crate::parse::VisitMut;

/// The role of a SELECT in a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SelectKind {
    /// The outermost SELECT.
    #[default]
    Primary,
    /// A later input of a UNION.
    Union,
    /// A subquery in an expression.
    Subquery,
    /// A derived table or a common table expression.
    Derived,
}

/// A table's place in a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatementTable {
    /// Its name in plans.
    pub unique: String,
    /// Its name or alias in the statement.
    pub alias: String,
    /// The number of the SELECT, from 1.
    pub select: usize,
    /// The role of that SELECT.
    pub kind: SelectKind,
    /// Whether it is a system table, whose rows are made during resolution.
    pub is_system: bool,
    /// The number that [`number_tables`] gave it.
    pub number: u64,
}

/// Numbers the tables of a statement. Their names do not tell them apart: two SELECTs may each call a table the same.
///
/// The number takes the place of the line that the parser found the name in, which nothing needs after parsing.
pub(crate) fn number_tables(query: &mut Query) {
    let ControlFlow::Continue(()) = query.visit(&mut Numbering(0));
}

/// The number of a table by its name in FROM; the line of the name if the tables were not numbered.
pub(crate) fn number_of(name: &ObjectName) -> u64 {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map_or(0, |last| last.span.start.line)
}

struct Numbering(u64);

impl VisitorMut for Numbering {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Table { name, .. } = factor
            && let Some(ObjectNamePart::Identifier(last)) = name.0.last_mut()
        {
            self.0 += 1;
            last.span.start.line = self.0;
        }
        ControlFlow::Continue(())
    }
}

/// The number and the role of a SELECT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SelectPosition {
    pub select: usize,
    pub kind: SelectKind,
    /// Whether EXISTS asks for its rows: nobody sees its select list.
    pub in_exists: bool,
}

impl SelectPosition {
    /// A SELECT in this role, with its number still to be set.
    pub fn of(kind: SelectKind) -> Self {
        Self { select: 0, kind, in_exists: false }
    }
}
