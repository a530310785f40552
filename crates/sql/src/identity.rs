//! The user of a session and their rights.

/// The user of a session, as authenticated by the protocol.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// The user's name.
    pub user: String,
    /// The client's address.
    pub host: String,
    /// The user's rights; `None` means all.
    pub rights: Option<Vec<Right>>,
}

/// A right to a table or to all tables of a database.
#[derive(Clone, Debug, PartialEq)]
pub struct Right {
    /// The database; `*` means any.
    pub database: String,
    /// The table; `*` means any.
    pub table: String,
    /// The level of access.
    pub access: Access,
}

/// Levels of access. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Reading rows.
    Read,
    /// Inserting, updating and deleting rows.
    Write,
    /// Creating, altering and dropping tables and databases.
    Define,
}

/// Replaces a point in a database's name within the engine's table names, where a point separates
/// database and table. MySQL names its files in the same way.
pub(crate) const STORED_POINT: &str = "@002e";
/// The prefix of the engine's hidden tables.
const HIDDEN: char = '#';

impl Identity {
    /// Whether the user has this access to a table.
    pub fn may(&self, database: &str, table: &str, access: Access) -> bool {
        let Some(rights) = &self.rights else { return true };
        let fits = |pattern: &str, name: &str| pattern == "*" || pattern == name;
        let allows = |right: &Right| {
            fits(&right.database, database) && fits(&right.table, table) && right.access >= access
        };
        rights.iter().any(allows)
    }

    /// Whether the user has this access to the table of this engine name. Hidden tables are
    /// accessible to administrators only.
    pub fn may_engine(&self, name: &str, default_database: &str, access: Access) -> bool {
        if self.rights.is_none() {
            return true;
        }
        remora_engine::united_names(name).all(|name| {
            let (database, table) = name.split_once('.').unwrap_or((default_database, name));
            let shown = database.replace(STORED_POINT, ".");
            !is_hidden(database, table) && self.may(&shown, table, access)
        })
    }

    /// Whether the user has any right in a database.
    pub fn may_see(&self, database: &str) -> bool {
        self.rights.as_ref().is_none_or(|rights| {
            rights.iter().any(|right| right.database == "*" || right.database == database)
        })
    }
}

/// Whether a table is hidden, such as those of unique keys.
pub(crate) fn is_hidden(database: &str, table: &str) -> bool {
    database.starts_with(HIDDEN) || table.starts_with(HIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(rights: &[(&str, &str, Access)]) -> Identity {
        let right = |&(database, table, access): &(&str, &str, Access)| Right {
            database: database.to_owned(),
            table: table.to_owned(),
            access,
        };
        Identity { rights: Some(rights.iter().map(right).collect()), ..Identity::default() }
    }

    #[test]
    fn a_right_goes_as_far_as_it_says() {
        use Access::{Define, Read, Write};
        let all = [Read, Write, Define];
        for given in all {
            let one = who(&[("shop", "orders", given)]);
            for asked in all {
                assert_eq!(one.may("shop", "orders", asked), asked <= given);
                assert!(!one.may("shop", "items", asked) && !one.may("hr", "orders", asked));
                // A database itself requires a right to all of its tables.
                assert!(!one.may("shop", "", asked));
                assert_eq!(who(&[("shop", "*", given)]).may("shop", "", asked), asked <= given);
                assert_eq!(who(&[("*", "*", given)]).may("hr", "pay", asked), asked <= given);
            }
            assert!(one.may_see("shop") && !one.may_see("hr"));
        }
        let both = who(&[("shop", "*", Read), ("shop", "orders", Write)]);
        assert!(both.may("shop", "orders", Write) && !both.may("shop", "items", Write));
        assert!(who(&[]).rights.is_some() && !who(&[]).may("shop", "orders", Read));
        assert!(Identity::default().may("hr", "", Define));
    }

    #[test]
    fn the_engines_names_are_those_of_sql() {
        let one = who(&[("remora", "orders", Access::Read), ("shop", "*", Access::Read)]);
        let may = |name| one.may_engine(name, "remora", Access::Read);
        assert!(may("orders") && may("remora.orders") && may("shop.a") && may("shop.a.b"));
        let dotted = who(&[("a.b", "c", Access::Read)]);
        let may_dotted = |name| dotted.may_engine(name, "remora", Access::Read);
        assert!(may_dotted("a@002eb.c") && !may_dotted("a.b.c") && !may_dotted("a.c"));
        assert!(!may("items") && !may("hr.orders") && !may("shop.#unique.a") && !may("#copy.a"));
    }
}
