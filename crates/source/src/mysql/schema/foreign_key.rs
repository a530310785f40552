//! Foreign keys by which the source changes rows of a table when those of another change. Most
//! servers do not say so in their binlog.

use super::{
    SourceTable,
    statement::{Token, tokens},
};

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
        let lines = self.words.of_table().map(|table| table.keys).unwrap_or_default();
        let keys = lines.iter().filter_map(|line| ForeignKey::parse(line, &self.database));
        let nothing = Reaction::Nothing;
        keys.filter(|key| key.on_delete != nothing || key.on_update != nothing).collect()
    }
}

impl ForeignKey {
    /// Reads a line of `SHOW CREATE TABLE`; `None` if it says something else.
    fn parse(line: &str, database: &str) -> Option<Self> {
        let tokens = tokens(line);
        let word = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is(word));
        let name = |at: usize| tokens.get(at).and_then(Token::name).map(str::to_owned);
        let start = (0..tokens.len()).find(|&at| word(at, "FOREIGN") && word(at + 1, "KEY"))?;
        let (columns, mut at) = names(&tokens, start + 2)?;
        if !word(at, "REFERENCES") {
            return None;
        }
        let mut parent = (database.to_owned(), name(at + 1)?);
        at += 2;
        if tokens.get(at) == Some(&Token::Other('.')) {
            parent = (parent.1, name(at + 1)?);
            at += 2;
        }
        let (parent_columns, rest) = names(&tokens, at)?;
        let reaction = |event: &str| {
            let said = (rest..tokens.len()).find(|&at| word(at, "ON") && word(at + 1, event));
            match said {
                Some(at) if word(at + 2, "CASCADE") => Reaction::Cascade,
                Some(at) if word(at + 2, "SET") && word(at + 3, "NULL") => Reaction::SetNull,
                _ => Reaction::Nothing,
            }
        };
        let (on_delete, on_update) = (reaction("DELETE"), reaction("UPDATE"));
        Some(Self { columns, parent, parent_columns, on_delete, on_update })
    }
}

/// The names in parentheses that begin at a place, and the place behind them.
fn names(tokens: &[Token], at: usize) -> Option<(Vec<String>, usize)> {
    let inside = tokens.get(at..)?.strip_prefix(&[Token::Other('(')])?;
    let end = inside.iter().position(|token| *token == Token::Other(')'))?;
    let names = inside.get(..end)?.iter().filter_map(Token::name).map(str::to_owned).collect();
    Some((names, at + end + 2))
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
