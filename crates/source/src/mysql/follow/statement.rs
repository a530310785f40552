//! What a statement of the binlog does to tables: just enough of SQL to tell which tables.
//!
//! ```text
//! CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name …
//! ALTER [ONLINE] [IGNORE] TABLE [IF EXISTS] name … [RENAME [TO | AS] name] …
//! CREATE [OR REPLACE] [UNIQUE | FULLTEXT | SPATIAL | VECTOR] INDEX … ON name, DROP INDEX … ON name
//! DROP TABLE [IF EXISTS] name, …      RENAME TABLE [IF EXISTS] name TO name, …
//! TRUNCATE [TABLE] name               DROP {DATABASE | SCHEMA} [IF EXISTS] name
//! INSERT | REPLACE | UPDATE | DELETE | LOAD …   rows that were logged as a statement
//! ```
//! Comments are passed over, but what stands in `/*! … */` counts. Everything else is of no concern.

/// A table by its database and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TableName {
    pub database: String,
    pub table: String,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// A new table. With `unless_there` nothing happened if there was one of that name.
    Create { table: TableName, unless_there: bool },
    /// Another definition, perhaps another name, perhaps rows gone or come without a row event.
    Alter { table: TableName, renamed: Option<TableName>, moves_rows: Vec<TableName> },
    /// Tables gone.
    Drop(Vec<TableName>),
    /// Tables with other names, one after the other.
    Rename(Vec<(TableName, TableName)>),
    /// All rows of a table gone.
    Truncate(TableName),
    /// All tables of a database gone.
    DropDatabase(String),
    /// Rows changed without a row event; every name that stands in the statement.
    Rows(Vec<String>),
    /// Of no concern.
    Other,
}

/// What a statement makes of a table's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays as it is, under this name.
    Stays(TableName),
    /// It is another, or gone.
    Changes,
}

/// A piece of SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Quoted(String),
    Text,
    Symbol(char),
}

impl Statement {
    /// Reads a statement that ran with this default database. Where the source `folds_names`
    /// (its `lower_case_table_names`), so are they here.
    pub fn parse(database: &str, sql: &str, folds_names: bool) -> Self {
        let mut parser = Parser { tokens: tokens(sql), at: 0, database, folds_names };
        parser.statement().unwrap_or(Self::Other)
    }
}

impl Statement {
    /// What it makes of this table's definition.
    pub fn fate(&self, table: &TableName) -> Fate {
        let mut name = table.clone();
        let changes = match self {
            Self::Create { table: made, .. } => made == table,
            Self::Alter { table: altered, renamed, .. } => {
                altered == table || renamed.as_ref() == Some(table)
            }
            Self::Drop(tables) => tables.contains(table),
            Self::DropDatabase(database) => *database == table.database,
            Self::Rename(renames) => {
                let mut replaced = false;
                for (from, to) in renames {
                    replaced |= *to == name;
                    if *from == name {
                        name.clone_from(to);
                    }
                }
                replaced
            }
            Self::Truncate(_) | Self::Rows(_) | Self::Other => false,
        };
        if changes { Fate::Changes } else { Fate::Stays(name) }
    }
}

struct Parser<'d> {
    tokens: Vec<Token>,
    at: usize,
    database: &'d str,
    folds_names: bool,
}

impl Parser<'_> {
    fn statement(&mut self) -> Option<Statement> {
        let verb = self.word()?;
        match verb.as_str() {
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "RENAME" => self.rename(),
            "TRUNCATE" => {
                self.skip("TABLE");
                Some(Statement::Truncate(self.name()?))
            }
            "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "LOAD" | "WITH" => {
                let names = self.tokens.drain(..).filter_map(|token| match token {
                    Token::Word(name) | Token::Quoted(name) => Some(name),
                    Token::Text | Token::Symbol(_) => None,
                });
                Some(Statement::Rows(names.collect()))
            }
            _ => None,
        }
    }

    fn create(&mut self) -> Option<Statement> {
        let _ = self.skip("OR") && self.skip("REPLACE");
        if self.skip("TABLE") {
            let unless_there = self.skip("IF") && self.skip("NOT") && self.skip("EXISTS");
            return Some(Statement::Create { table: self.name()?, unless_there });
        }
        for kind in ["UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"] {
            self.skip(kind);
        }
        self.skip("INDEX").then(|| self.index()).flatten()
    }

    /// The table of an index statement.
    fn index(&mut self) -> Option<Statement> {
        while !self.skip("ON") {
            self.next()?;
        }
        let table = self.name()?;
        Some(Statement::Alter { table, renamed: None, moves_rows: Vec::new() })
    }

    fn drop(&mut self) -> Option<Statement> {
        if self.skip("INDEX") {
            return self.index();
        }
        if self.skip("DATABASE") || self.skip("SCHEMA") {
            self.skip_if_exists();
            let name = self.identifier()?;
            let name = if self.folds_names { name.to_lowercase() } else { name };
            return Some(Statement::DropDatabase(name));
        }
        if !self.skip("TABLE") && !self.skip("TABLES") {
            return None;
        }
        self.skip_if_exists();
        let mut names = vec![self.name()?];
        while self.skip_symbol(',') {
            names.push(self.name()?);
        }
        Some(Statement::Drop(names))
    }

    fn rename(&mut self) -> Option<Statement> {
        if !self.skip("TABLE") && !self.skip("TABLES") {
            return None;
        }
        self.skip_if_exists();
        let mut renames = Vec::new();
        loop {
            let from = self.name()?;
            // MariaDB: how long to wait for the table.
            while !self.skip("TO") {
                self.next()?;
            }
            renames.push((from, self.name()?));
            if !self.skip_symbol(',') {
                return Some(Statement::Rename(renames));
            }
        }
    }

    fn alter(&mut self) -> Option<Statement> {
        self.skip("ONLINE");
        self.skip("IGNORE");
        if !self.skip("TABLE") {
            return None;
        }
        self.skip_if_exists();
        let table = self.name()?;
        let (mut renamed, mut moves_rows) = (None, Vec::new());
        let mut depth = 0_usize;
        while let Some(token) = self.next() {
            match token {
                Token::Symbol('(') => depth += 1,
                Token::Symbol(')') => depth = depth.saturating_sub(1),
                Token::Word(word) if depth == 0 => match word.to_ascii_uppercase().as_str() {
                    "RENAME" if !self.peeks(&["COLUMN", "INDEX", "KEY"]) => {
                        let _ = self.skip("TO") || self.skip("AS") || self.skip_symbol('=');
                        renamed = self.name();
                    }
                    "DROP" | "TRUNCATE" if self.peeks(&["PARTITION"]) => {
                        moves_rows.push(table.clone());
                    }
                    "IMPORT" | "DISCARD" => moves_rows.push(table.clone()),
                    "EXCHANGE" | "CONVERT" if self.peeks(&["PARTITION", "TABLE"]) => {
                        moves_rows.push(table.clone());
                        moves_rows.extend(self.other_table());
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        Some(Statement::Alter { table, renamed, moves_rows })
    }

    /// The table that partitions are exchanged with.
    fn other_table(&mut self) -> Option<TableName> {
        while !self.skip("TABLE") {
            self.next()?;
        }
        self.name()
    }

    /// `name` or `database.name`.
    fn name(&mut self) -> Option<TableName> {
        let first = self.identifier()?;
        let (database, table) = match self.skip_symbol('.') {
            true => (first, self.identifier()?),
            false => (self.database.to_owned(), first),
        };
        let folded = |name: String| if self.folds_names { name.to_lowercase() } else { name };
        Some(TableName { database: folded(database), table: folded(table) })
    }

    fn identifier(&mut self) -> Option<String> {
        match self.next()? {
            Token::Word(name) | Token::Quoted(name) => Some(name),
            Token::Text | Token::Symbol(_) => None,
        }
    }

    fn word(&mut self) -> Option<String> {
        match self.next()? {
            Token::Word(word) => Some(word.to_ascii_uppercase()),
            _ => None,
        }
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn skip(&mut self, word: &str) -> bool {
        let is_next = self.peeks(&[word]);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_symbol(&mut self, symbol: char) -> bool {
        let is_next = self.tokens.get(self.at) == Some(&Token::Symbol(symbol));
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_if_exists(&mut self) {
        let _ = self.skip("IF") && self.skip("EXISTS");
    }

    /// Whether one of these words is next.
    fn peeks(&self, words: &[&str]) -> bool {
        match self.tokens.get(self.at) {
            Some(Token::Word(next)) => words.iter().any(|word| next.eq_ignore_ascii_case(word)),
            _ => false,
        }
    }
}

/// Cuts SQL into pieces.
fn tokens(sql: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(character) = rest.chars().next() {
        let behind = rest.get(character.len_utf8()..).unwrap_or_default();
        rest = match character {
            '/' if behind.starts_with("*!") => after_version(after(behind, "!")),
            '/' if behind.starts_with("*M!") => after_version(after(behind, "!")),
            '/' if behind.starts_with('*') => after(behind, "*/"),
            '*' if behind.starts_with('/') => after(behind, "/"),
            '#' => after(behind, "\n"),
            '-' if is_dash_comment(behind) => after(behind, "\n"),
            '`' | '"' => {
                let (name, rest) = quoted(behind, character, character == '"');
                tokens.push(Token::Quoted(name));
                rest
            }
            '\'' => {
                let (_, rest) = quoted(behind, character, true);
                tokens.push(Token::Text);
                rest
            }
            _ if is_word(character) => {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let (word, rest) = rest.split_at(end);
                tokens.push(Token::Word(word.to_owned()));
                rest
            }
            _ if character.is_whitespace() => behind,
            symbol => {
                tokens.push(Token::Symbol(symbol));
                behind
            }
        };
    }
    tokens
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$' || character >= '\u{80}'
}

fn is_dash_comment(behind: &str) -> bool {
    let mut behind = behind.chars();
    behind.next() == Some('-') && behind.next().is_none_or(|c| c.is_whitespace() || c.is_control())
}

/// What stands in a comment for newer servers, behind their version.
fn after_version(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit())
}

fn after<'t>(text: &'t str, end: &str) -> &'t str {
    text.find(end).and_then(|at| text.get(at + end.len()..)).unwrap_or_default()
}

/// A quoted text, in which the quote doubled is one, and what stands behind it.
fn quoted(text: &str, quote: char, escapes: bool) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character == '\\' && escapes {
            value.extend(characters.next().map(|(_, escaped)| escaped));
        } else if character != quote {
            value.push(character);
        } else if characters.next_if(|(_, next)| *next == quote).is_some() {
            value.push(quote);
        } else {
            return (value, text.get(at + 1..).unwrap_or_default());
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TableName {
        let (database, table) = text.split_once('.').unwrap();
        TableName { database: database.to_owned(), table: table.to_owned() }
    }

    fn parse(sql: &str) -> Statement {
        Statement::parse("d", sql, false)
    }

    fn alter(table: &str, renamed: Option<&str>, moves: &[&str]) -> Statement {
        Statement::Alter {
            table: name(table),
            renamed: renamed.map(name),
            moves_rows: moves.iter().map(|table| name(table)).collect(),
        }
    }

    #[test]
    fn tables_are_made_and_dropped() {
        let create =
            |table: &str, unless_there| Statement::Create { table: name(table), unless_there };
        assert_eq!(parse("create table t (a int)"), create("d.t", false));
        assert_eq!(
            parse("/* c */ CREATE -- x\n TABLE IF NOT EXISTS `e`.`a``b`(a int) # end"),
            create("e.a`b", true)
        );
        assert_eq!(parse("CREATE OR REPLACE TABLE e . t LIKE u"), create("e.t", false));
        assert_eq!(parse("/*!40000 CREATE TABLE \"t\" (a int) */"), create("d.t", false));
        assert_eq!(parse("CREATE TEMPORARY TABLE t (a int)"), Statement::Other);
        assert_eq!(parse("CREATE VIEW v AS SELECT 1"), Statement::Other);
        let drop = |names: &[&str]| Statement::Drop(names.iter().map(|text| name(text)).collect());
        assert_eq!(
            parse("DROP TABLE IF EXISTS `t`,e.u /* generated by server */"),
            drop(&["d.t", "e.u"])
        );
        assert_eq!(parse("DROP TEMPORARY TABLE t"), Statement::Other);
        assert_eq!(parse("DROP VIEW t"), Statement::Other);
        assert_eq!(parse("drop schema if exists `x y`"), Statement::DropDatabase("x y".to_owned()));
        assert_eq!(parse("TRUNCATE t"), Statement::Truncate(name("d.t")));
        assert_eq!(parse("truncate table e.t"), Statement::Truncate(name("e.t")));
    }

    #[test]
    fn tables_are_altered() {
        assert_eq!(parse("ALTER TABLE t ADD COLUMN a INT"), alter("d.t", None, &[]));
        assert_eq!(
            parse("ALTER TABLE t RENAME COLUMN a TO b, RENAME INDEX i TO j"),
            alter("d.t", None, &[])
        );
        assert_eq!(parse("ALTER TABLE t ADD x INT, RENAME e.u"), alter("d.t", Some("e.u"), &[]));
        assert_eq!(parse("alter table t rename to u"), alter("d.t", Some("d.u"), &[]));
        assert_eq!(parse("ALTER TABLE t ADD c INT COMMENT 'RENAME u'"), alter("d.t", None, &[]));
        assert_eq!(parse("ALTER TABLE t DROP PARTITION p"), alter("d.t", None, &["d.t"]));
        assert_eq!(
            parse("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u"),
            alter("d.t", None, &["d.t", "d.u"])
        );
        assert_eq!(parse("CREATE UNIQUE INDEX i ON e.t (a)"), alter("e.t", None, &[]));
        assert_eq!(parse("DROP INDEX i ON `t`"), alter("d.t", None, &[]));
        assert_eq!(parse("ALTER DATABASE d CHARACTER SET utf8mb4"), Statement::Other);
    }

    #[test]
    fn names_are_folded_where_the_source_does() {
        let folded = |sql: &str| Statement::parse("D", sql, true);
        assert_eq!(folded("TRUNCATE T"), Statement::Truncate(name("d.t")));
        assert_eq!(folded("DROP TABLE `E`.T"), Statement::Drop(vec![name("e.t")]));
        assert_eq!(folded("DROP DATABASE D"), Statement::DropDatabase("d".to_owned()));
        assert_eq!(parse("TRUNCATE T"), Statement::Truncate(name("d.T")));
    }

    #[test]
    fn tables_are_renamed() {
        let renames = Statement::Rename(vec![
            (name("d.t"), name("d._t_del")),
            (name("d._t_gho"), name("d.t")),
        ]);
        assert_eq!(
            parse("rename /* gh-ost */ table `d`.`t` to `d`.`_t_del`, _t_gho to t"),
            renames
        );
        assert_eq!(parse("RENAME TABLE t WAIT 5 TO _t_del, _t_gho NOWAIT TO t"), renames);
        assert_eq!(parse("RENAME USER a TO b"), Statement::Other);
    }

    #[test]
    fn a_definition_is_followed_through_its_names() {
        let fate = |sql: &str| parse(sql).fate(&name("d.t"));
        let stays = |text: &str| Fate::Stays(name(text));
        assert_eq!(fate("ALTER TABLE u ADD a INT"), stays("d.t"));
        assert_eq!(fate("ALTER TABLE t ADD a INT"), Fate::Changes);
        assert_eq!(fate("CREATE INDEX i ON t (a)"), Fate::Changes);
        assert_eq!(fate("DROP TABLE u, t"), Fate::Changes);
        assert_eq!(fate("DROP DATABASE e"), stays("d.t"));
        assert_eq!(fate("DROP DATABASE d"), Fate::Changes);
        assert_eq!(fate("RENAME TABLE t TO u, v TO t, u TO v"), stays("d.v"));
        assert_eq!(fate("RENAME TABLE v TO t"), Fate::Changes);
        assert_eq!(fate("ALTER TABLE v RENAME t"), Fate::Changes);
        assert_eq!(fate("TRUNCATE t"), stays("d.t"));
    }

    #[test]
    fn rows_in_statements_name_their_tables() {
        let Statement::Rows(names) = parse("UPDATE e.`t u` SET a = 'x'") else { panic!() };
        assert!(names.contains(&"t u".to_owned()) && !names.contains(&"x".to_owned()));
        assert_eq!(parse("GRANT SELECT ON t TO u"), Statement::Other);
        assert_eq!(parse(""), Statement::Other);
        assert_eq!(parse("/*! /*M!100 `"), Statement::Other);
    }
}
