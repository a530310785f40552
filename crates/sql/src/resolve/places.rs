//! The SELECT that each table of a statement belongs to, for EXPLAIN.

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
}

/// The number and the role of a SELECT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SelectPosition {
    pub select: usize,
    pub kind: SelectKind,
}

impl SelectPosition {
    /// A SELECT in this role, with its number still to be set.
    pub fn of(kind: SelectKind) -> Self {
        Self { select: 0, kind }
    }
}
