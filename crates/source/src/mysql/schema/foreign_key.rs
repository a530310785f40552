//! Foreign keys by which the source changes rows of one table when rows of another change. Most servers do not log
//! those changes.

use remora_mysql::LexMode;

use super::{SourceTable, Words};
use crate::mysql::scan::Scan;

/// A foreign key that changes rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    /// The columns that refer.
    pub columns: Vec<String>,
    /// Database and name of the table that they refer to.
    pub parent: (String, String),
    /// The columns that they refer to.
    pub parent_columns: Vec<String>,
    /// What becomes of a row when the one that it refers to is deleted.
    pub on_delete: Reaction,
    /// What becomes of it when the columns that it refers to change.
    pub on_update: Reaction,
}

/// What becomes of a row that refers to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// It stands in the way.
    #[default]
    Nothing,
    /// The same as of the other.
    Cascade,
    /// It refers to nothing.
    SetNull,
}

impl SourceTable {
    /// The foreign keys of the table that change its rows.
    pub(crate) fn reacting_keys(&self) -> Vec<ForeignKey> {
        reacting_keys(&self.words, &self.database)
    }
}

/// The foreign keys that change rows, of a table of this database in the source's words.
pub(super) fn reacting_keys(words: &Words, database: &str) -> Vec<ForeignKey> {
    let lines = words.of_table().map(|table| table.keys).unwrap_or_default();
    let keys = lines.iter().filter_map(|line| ForeignKey::parse(line, database));
    let nothing = Reaction::Nothing;
    keys.filter(|key| key.on_delete != nothing || key.on_update != nothing).collect()
}

impl ForeignKey {
    /// Reads a line of `SHOW CREATE TABLE`; `None` if it says something else.
    fn parse(line: &str, database: &str) -> Option<Self> {
        let mut scan = Scan::of(line, LexMode::default())?;
        while !scan.skip_all(&["FOREIGN", "KEY"]) {
            if scan.is_at_end() {
                return None;
            }
            scan.pass();
        }
        let columns = names(&mut scan)?;
        if !scan.skip("REFERENCES") {
            return None;
        }
        let parent = scan.table(database, false)?;
        let parent_columns = names(&mut scan)?;
        let reaction = |event: &str| {
            let mut rest = scan.clone();
            while !rest.is_at_end() {
                if !rest.skip_all(&["ON", event]) {
                    rest.pass();
                } else if rest.skip("CASCADE") {
                    return Reaction::Cascade;
                } else if rest.skip_all(&["SET", "NULL"]) {
                    return Reaction::SetNull;
                }
            }
            Reaction::Nothing
        };
        let (on_delete, on_update) = (reaction("DELETE"), reaction("UPDATE"));
        let parent = (parent.database, parent.table);
        Some(Self { columns, parent, parent_columns, on_delete, on_update })
    }
}

/// The names in the parentheses that are next.
fn names(scan: &mut Scan<'_>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    if !scan.skip_symbol("(") {
        return None;
    }
    loop {
        names.push(scan.name()?);
        if scan.skip_symbol(")") {
            return Some(names);
        }
        scan.skip_symbol(",").then_some(())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = "CONSTRAINT `FOREIGN` FOREIGN KEY (`a`, `b,c`) REFERENCES `o``x`.`p` (`x`, `y`) \
                    ON DELETE SET NULL ON UPDATE CASCADE";
        let key = ForeignKey {
            columns: vec!["a".to_owned(), "b,c".to_owned()],
            parent: ("o`x".to_owned(), "p".to_owned()),
            parent_columns: vec!["x".to_owned(), "y".to_owned()],
            on_delete: Reaction::SetNull,
            on_update: Reaction::Cascade,
        };
        assert_eq!(ForeignKey::parse(line, "d"), Some(key));
        let line = "CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`x`) ON DELETE CASCADE";
        let key = ForeignKey::parse(line, "d").unwrap();
        assert_eq!(key.parent, ("d".to_owned(), "p".to_owned()));
        assert_eq!((key.on_delete, key.on_update), (Reaction::Cascade, Reaction::Nothing));
        assert_eq!(ForeignKey::parse("KEY `a` (`a`)", "d"), None);
        assert_eq!(ForeignKey::parse("FOREIGN KEY (`a`", "d"), None);
        assert_eq!(ForeignKey::parse("FOREIGN KEY (`a`) REFERENCES", "d"), None);
    }
}
