//! Which SELECT of a statement each table stands in, for EXPLAIN.

/// What a SELECT is to the statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SelectKind {
    /// The outermost.
    #[default]
    Primary,
    /// A later part of a UNION.
    Union,
    /// In an expression.
    Subquery,
    /// A table of FROM or WITH.
    Derived,
}

/// A table in a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatementTable {
    /// What plans call it.
    pub unique: String,
    /// What the statement calls it.
    pub alias: String,
    /// The number of the SELECT, from 1.
    pub select: usize,
    /// What that is.
    pub kind: SelectKind,
    /// Whether it is the system's, whose rows are made when it is named.
    pub is_system: bool,
}

/// Where a SELECT stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    pub select: usize,
    pub kind: SelectKind,
}

impl Standing {
    /// A SELECT of this kind, whose number is not known yet.
    pub fn of(kind: SelectKind) -> Self {
        Self { select: 0, kind }
    }
}
