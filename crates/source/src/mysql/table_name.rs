//! What a table is called at the source.

/// A table by its database and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableName {
    pub database: String,
    pub table: String,
}

impl TableName {
    /// Whether bytes of it may have been no text in their character set.
    pub(super) fn is_garbled(&self) -> bool {
        [&self.database, &self.table].iter().any(|name| name.contains(['\u{fffd}', '?']))
    }
}
