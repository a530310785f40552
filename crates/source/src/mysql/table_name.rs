//! The name of a table at the source.

/// A table by its database and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableName {
    pub database: String,
    pub table: String,
}

impl TableName {
    /// Whether some bytes of it may have been invalid in their character set.
    pub(super) fn is_garbled(&self) -> bool {
        [&self.database, &self.table].iter().any(|name| name.contains(['\u{fffd}', '?']))
    }
}
