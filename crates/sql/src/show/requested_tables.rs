//! The tables that a condition on information_schema can select, so that a query need not examine
//! every table.

use remora_mysql::Collation;

use crate::{catalog::TableName, meaning::collation};

/// A superset of the tables that a statement asks about. The statement's own condition still
/// filters the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestedTables {
    /// The possible databases; `None` for all.
    pub(crate) databases: Option<Vec<String>>,
    /// The possible table names; `None` for all.
    pub(crate) tables: Option<Vec<String>>,
}

impl RequestedTables {
    /// All tables of one database.
    pub(super) fn of_database(database: &str) -> Self {
        Self { databases: Some(vec![database.to_owned()]), tables: None }
    }

    /// Whether nothing restricts the tables.
    pub(crate) fn is_all(&self) -> bool {
        self.databases.is_none() && self.tables.is_none()
    }

    /// Whether a table may be among them. Names are compared with the collation of
    /// `information_schema`.
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
