//! Who asks, and what may be done.

/// Who a session acts for, as the wire found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// The client's address.
    pub host: String,
    /// What the user may do: `None` means everything.
    pub rights: Option<Vec<Right>>,
}

/// A right to a table or to all of a database.
#[derive(Clone, Debug, PartialEq)]
pub struct Right {
    /// The database; `*` is any.
    pub database: String,
    /// The table; `*` is any.
    pub table: String,
    /// Whether rows and definitions may be changed, beyond reading.
    pub write: bool,
}

impl Identity {
    /// Whether the table may be read, or written.
    pub fn may(&self, database: &str, table: &str, write: bool) -> bool {
        let Some(rights) = &self.rights else { return true };
        let fits = |pattern: &str, name: &str| pattern == "*" || pattern == name;
        let allows = |right: &Right| {
            fits(&right.database, database) && fits(&right.table, table) && (right.write || !write)
        };
        rights.iter().any(allows)
    }
}
