//! Which tables a statement asks about, so that what is told of a server does not cost a look at all of them.

use remora_mysql::Collation;

use crate::{catalog::TableName, meaning::collation};

/// The names of the tables that are asked about. The statement's condition decides beside it: these may be too many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestedTables {
    /// The databases that they may be in; `None` is any.
    pub(crate) databases: Option<Vec<String>>,
    /// What they may be called; `None` is anything.
    pub(crate) tables: Option<Vec<String>>,
}

impl RequestedTables {
    /// Those of one database.
    pub(super) fn of_database(database: &str) -> Self {
        Self { databases: Some(vec![database.to_owned()]), tables: None }
    }

    /// Whether all tables are asked about.
    pub(crate) fn is_all(&self) -> bool {
        self.databases.is_none() && self.tables.is_none()
    }

    /// Whether a table is: names are compared as the columns of `information_schema` are.
    pub(super) fn has(&self, name: &TableName) -> bool {
        let is_among = |names: &Option<Vec<String>>, name: &str| {
            let is = |one: &String| collation::equal(one, name, Collation::UTF8MB3_GENERAL_CI);
            names.as_ref().is_none_or(|names| names.iter().any(is))
        };
        is_among(&self.databases, &name.database) && is_among(&self.tables, &name.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_their_columns_are() {
        let name = TableName::new("Shop", "Café");
        let tables = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
        assert!(RequestedTables::default().is_all() && RequestedTables::default().has(&name));
        assert!(
            RequestedTables::of_database("shop ").has(&name)
                && !RequestedTables::of_database("shops").has(&name)
        );
        let both = |names: &[&str]| RequestedTables {
            tables: tables(names),
            ..RequestedTables::of_database("SHOP")
        };
        assert!(both(&["other", "cafe"]).has(&name) && !both(&["other"]).has(&name));
        assert!(!both(&[]).has(&name) && !both(&[]).is_all());
    }
}
