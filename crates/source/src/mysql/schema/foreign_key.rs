//! Foreign keys whose actions change rows. Most servers do not log those changes.

use remora_mysql::LexMode;

use super::{SourceTable, Words};
use crate::mysql::scan::Scan;

/// A foreign key with actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    /// The referencing columns.
    pub columns: Vec<String>,
    /// The database and name of the referenced table.
    pub parent: (String, String),
    /// The referenced columns.
    pub parent_columns: Vec<String>,
    /// The action when the referenced row is deleted.
    pub on_delete: ReferentialAction,
    /// The action when the referenced columns change.
    pub on_update: ReferentialAction,
}

/// A foreign key action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReferentialAction {
    /// None: the change is refused.
    #[default]
    Nothing,
    /// CASCADE.
    Cascade,
    /// SET NULL.
    SetNull,
}

impl SourceTable {
    /// The foreign keys of the table that have actions.
    pub(crate) fn reacting_keys(&self) -> Vec<ForeignKey> {
        reacting_keys(&self.words, &self.database)
    }

    /// The databases and names of the tables that its foreign keys name, with actions or not.
    pub(crate) fn parents(&self) -> Vec<(String, String)> {
        let lines = self.words.of_table().map(|table| table.keys).unwrap_or_default();
        let keys = lines.iter().filter_map(|line| ForeignKey::parse(line, &self.database));
        keys.map(|key| key.parent).collect()
    }
}

/// The reacting foreign keys in SHOW CREATE TABLE of a table in this database.
pub(super) fn reacting_keys(words: &Words, database: &str) -> Vec<ForeignKey> {
    let lines = words.of_table().map(|table| table.keys).unwrap_or_default();
    let keys = lines.iter().filter_map(|line| ForeignKey::parse(line, database));
    let nothing = ReferentialAction::Nothing;
    keys.filter(|key| key.on_delete != nothing || key.on_update != nothing).collect()
}

impl ForeignKey {
    /// Parses a line of `SHOW CREATE TABLE`; `None` if it is not such a foreign key.
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
                    return ReferentialAction::Cascade;
                } else if rest.skip_all(&["SET", "NULL"]) {
                    return ReferentialAction::SetNull;
                }
            }
            ReferentialAction::Nothing
        };
        let (on_delete, on_update) = (reaction("DELETE"), reaction("UPDATE"));
        let parent = (parent.database, parent.table);
        Some(Self { columns, parent, parent_columns, on_delete, on_update })
    }
}

/// Parses the names in the following parentheses.
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
            on_delete: ReferentialAction::SetNull,
            on_update: ReferentialAction::Cascade,
        };
        assert_eq!(ForeignKey::parse(line, "d"), Some(key));
        let line = "CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`x`) ON DELETE CASCADE";
        let key = ForeignKey::parse(line, "d").unwrap();
        assert_eq!(key.parent, ("d".to_owned(), "p".to_owned()));
        assert_eq!(
            (key.on_delete, key.on_update),
            (ReferentialAction::Cascade, ReferentialAction::Nothing)
        );
        assert_eq!(ForeignKey::parse("KEY `a` (`a`)", "d"), None);
        assert_eq!(ForeignKey::parse("FOREIGN KEY (`a`", "d"), None);
        assert_eq!(ForeignKey::parse("FOREIGN KEY (`a`) REFERENCES", "d"), None);
    }
}
