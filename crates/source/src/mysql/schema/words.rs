//! Parses SHOW CREATE TABLE of the source.
//!
//! ```text
//! statement := "CREATE TABLE " name " (" line{","} ") " options
//! line      := "  `" name "` " words                  a column
//!            | "  " words                             a key, a foreign key, a check
//! options   := words, of several lines where the table is partitioned
//! ```
//! A line break in a comment or a default is written as `\n`, so lines can be split.

use remora_engine::DeclaredTable;
use serde::{Deserialize, Serialize};

/// The longest statement that is kept, in bytes.
const MAX_BYTES: usize = 4 << 20;
const COUNTER: &str = "AUTO_INCREMENT=";

/// What the source says of a table; nothing if it did not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Words {
    /// Names of columns and the text after each.
    columns: Vec<(String, String)>,
    /// Keys and options.
    table: Option<DeclaredTable>,
}

impl Words {
    /// Parses the statement; empty if it is not of the form above.
    pub fn of(statement: &str) -> Self {
        let short = Some(statement).filter(|statement| statement.len() <= MAX_BYTES);
        short.and_then(split_definition).unwrap_or_default()
    }

    /// The text after a column's name.
    pub fn of_column(&self, name: &str) -> Option<String> {
        let found = self.columns.iter().find(|(other, _)| other == name);
        found.map(|(_, words)| words.clone())
    }

    /// The keys and options.
    pub fn of_table(&self) -> Option<DeclaredTable> {
        self.table.clone()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn split_definition(statement: &str) -> Option<Words> {
    let (head, body) = statement.split_once('\n')?;
    if !(head.starts_with("CREATE TABLE `") && head.ends_with(" (")) {
        return None;
    }
    let (mut columns, mut keys) = (Vec::new(), Vec::new());
    let mut rest = body;
    loop {
        if let Some(options) = rest.strip_prefix(')') {
            let options = without_auto_increment(options.trim_start());
            return Some(Words {
                columns,
                table: Some(DeclaredTable { keys, options, ..DeclaredTable::default() }),
            });
        }
        let (line, behind) = rest.split_once('\n')?;
        rest = behind;
        let line = line.strip_prefix("  ")?;
        let line = line.strip_suffix(',').unwrap_or(line);
        match line.strip_prefix('`') {
            Some(quoted) => columns.push(column(quoted)?),
            None => keys.push(line.to_owned()),
        }
    }
}

/// A column's name up to its closing backquote, and the rest.
fn column(quoted: &str) -> Option<(String, String)> {
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let (part, behind) = rest.split_once('`')?;
        name.push_str(part);
        match behind.strip_prefix('`') {
            Some(behind) => {
                name.push('`');
                rest = behind;
            }
            None => return Some((name, behind.trim_start().to_owned())),
        }
    }
}

/// The options without the AUTO_INCREMENT counter, which every insert changes.
fn without_auto_increment(options: &str) -> String {
    // A comment, which may contain the word, comes after it.
    let quote = options.find('\'').unwrap_or(options.len());
    let Some(start) = options.find(COUNTER).filter(|start| *start < quote) else {
        return options.to_owned();
    };
    let (before, counter) = options.split_at(start);
    let behind = counter.split_once(' ').map_or("", |(_, behind)| behind);
    format!("{before}{behind}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_statement_is_split() {
        let statement = "CREATE TABLE `t` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  \
             `a``b` enum('x,','y)') DEFAULT 'x,' COMMENT 'it\\n  `c` x',\n  \
             PRIMARY KEY (`id`),\n  KEY `k` (`a``b`)\n) ENGINE=InnoDB AUTO_INCREMENT=17 \
             DEFAULT CHARSET=latin1 COMMENT='AUTO_INCREMENT=5 x'\n PARTITION BY HASH (`id`)";
        let words = Words::of(statement);
        assert_eq!(words.of_column("id").unwrap(), "int(11) NOT NULL AUTO_INCREMENT");
        let expected = "enum('x,','y)') DEFAULT 'x,' COMMENT 'it\\n  `c` x'";
        assert_eq!(words.of_column("a`b").unwrap(), expected);
        assert_eq!(words.of_column("c"), None);
        let table = words.of_table().unwrap();
        assert_eq!(table.keys, ["PRIMARY KEY (`id`)", "KEY `k` (`a``b`)"]);
        let expected = "ENGINE=InnoDB DEFAULT CHARSET=latin1 COMMENT='AUTO_INCREMENT=5 x'\n \
             PARTITION BY HASH (`id`)";
        assert_eq!(table.options, expected);
    }

    #[test]
    fn only_the_auto_increment_option_is_removed() {
        assert_eq!(without_auto_increment("ENGINE=MyISAM AUTO_INCREMENT=5"), "ENGINE=MyISAM");
        assert_eq!(
            without_auto_increment("COMMENT='AUTO_INCREMENT=5 a'"),
            "COMMENT='AUTO_INCREMENT=5 a'"
        );
        assert_eq!(without_auto_increment(""), "");
    }

    #[test]
    fn other_definition_forms_are_ignored() {
        for statement in [
            "",
            "CREATE TABLE `t` (\n  `id` int",
            "CREATE TABLE \"t\" (\n  \"id\" int\n) ENGINE=InnoDB",
            "CREATE TABLE `t` (\n`id` int\n)",
            "CREATE ALGORITHM=UNDEFINED VIEW `v` AS SELECT 1",
        ] {
            assert!(Words::of(statement).is_empty(), "{statement}");
        }
    }
}
