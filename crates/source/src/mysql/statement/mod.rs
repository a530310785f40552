//! Parses statements of the binlog for their effects on tables.
//!
//! ```text
//! CREATE [OR REPLACE] TABLE [IF NOT EXISTS] name …
//! ALTER [ONLINE] [IGNORE] TABLE [IF EXISTS] name clauses
//! CREATE [OR REPLACE] [UNIQUE | FULLTEXT | SPATIAL | VECTOR] INDEX … ON name, DROP INDEX … ON name
//! DROP TABLE [IF EXISTS] name, …      RENAME TABLE [IF EXISTS] name TO name, …
//! TRUNCATE [TABLE] name               DROP {DATABASE | SCHEMA} [IF EXISTS] name
//! CREATE TEMPORARY TABLE name …       REPAIR TABLE name, …
//! SET STATEMENT variable = value, … FOR statement
//! INSERT | REPLACE | UPDATE | DELETE | LOAD | SELECT | …    rows that were logged as a statement
//! ```
//! A statement is understood, or known to change no table ([`harmless`]), or not understood. The last kind may have
//! changed any table.

mod alteration;
mod harmless;

pub(crate) use alteration::Alteration;

use alteration::Clauses;
use harmless::{HARMLESS, OF_VIEWS, is_harmless};

use super::{
    binlog::Query,
    scan::{Scan, folded},
    table_name::TableName,
};

/// The effect of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// A new table.
    Create(Creation),
    /// Another definition, perhaps another name, perhaps rows added or removed without row events.
    Alter {
        table: TableName,
        renamed: Option<TableName>,
        alteration: Alteration,
        /// Other tables whose rows move too, or that are created or dropped.
        others: Vec<TableName>,
    },
    /// Tables are dropped.
    Drop(Vec<TableName>),
    /// Tables are renamed, one after the other.
    Rename(Vec<(TableName, TableName)>),
    /// All rows of a table are deleted.
    Truncate(TableName),
    /// All tables of a database are dropped.
    DropDatabase(String),
    /// Rows of tables may have changed.
    Repair(Vec<TableName>),
    /// A temporary table is created, which hides the base table of the same name in its session.
    Temporary(TableName),
    /// Rows are changed without row events.
    Rows,
    /// Views are created, changed or dropped.
    Views,
    /// No effect on tables.
    Harmless,
    /// Not understood: any effect is possible.
    Unknown,
}

/// A created table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Creation {
    /// Its name, and a second one if the text can be read in two ways.
    pub names: Vec<TableName>,
    /// IF NOT EXISTS: no effect if the table existed.
    pub unless_there: bool,
    /// CREATE … SELECT: it has rows for which there are no row events.
    pub with_rows: bool,
    /// The table of CREATE TABLE … LIKE.
    pub like: Option<TableName>,
    /// All names and keywords after its name.
    pub words: Vec<String>,
}

/// The effect of a statement on a table's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DefinitionEffect {
    /// Unchanged, under this name.
    Unchanged(TableName),
    /// Changed or dropped.
    Changed,
}

/// The first words of statements that change rows.
const ROWS: &[&str] = &[
    "ANALYZE", "BEGIN", "CALL", "DELETE", "DO", "HANDLER", "INSERT", "LOAD", "REPLACE", "SELECT",
    "TABLE", "UPDATE", "VALUES", "WITH",
];

impl Statement {
    /// The effect of a logged statement. With `folds_names` (`lower_case_table_names` of the source) names are folded
    /// to lower case.
    pub fn of(query: &Query, folds_names: bool) -> Self {
        let mut statement = Self::read(query, &query.sql, folds_names);
        let other = query.other_sql.as_deref().map(|sql| Self::read(query, sql, folds_names));
        match (&mut statement, other) {
            (Self::Create(creation), Some(Self::Create(other))) => {
                creation.names.extend(other.names);
            }
            (Self::Drop(tables), Some(Self::Drop(others))) => tables.extend(others),
            _ => {}
        }
        statement
    }

    fn read(query: &Query, sql: &str, folds_names: bool) -> Self {
        let scan = Scan::of(sql, query.mode).filter(|_| query.is_mode_known);
        let Some(scan) = scan else { return Self::Unknown };
        let (database, pads_char) = (&query.database, query.pads_char);
        let mut parser = Parser { scan, database, folds_names, pads_char };
        let read = parser.statement(sql).unwrap_or(Self::Unknown);
        // A name with bytes that are not text cannot be represented.
        let is_garbled = !query.is_exact && read.tables().iter().any(TableName::is_garbled);
        if is_garbled { Self::Unknown } else { read }
    }

    /// The effect on this table's definition.
    pub fn effect_on(&self, table: &TableName) -> DefinitionEffect {
        let mut name = table.clone();
        let changes = match self {
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
            Self::DropDatabase(database) => *database == table.database,
            Self::Create(_) | Self::Alter { .. } | Self::Drop(_) => self.tables().contains(table),
            Self::Unknown => true,
            Self::Truncate(_)
            | Self::Repair(_)
            | Self::Temporary(_)
            | Self::Rows
            | Self::Views
            | Self::Harmless => false,
        };
        if changes { DefinitionEffect::Changed } else { DefinitionEffect::Unchanged(name) }
    }

    /// The renames of a RENAME TABLE: old and new names.
    pub fn renames(&self) -> &[(TableName, TableName)] {
        match self {
            Self::Rename(renames) => renames,
            _ => &[],
        }
    }

    /// Whether it renames a table to this name.
    pub fn renames_to(&self, table: &TableName) -> bool {
        match self {
            Self::Rename(renames) => renames.iter().any(|(_, to)| to == table),
            Self::Alter { renamed, .. } => renamed.as_ref() == Some(table),
            _ => false,
        }
    }

    /// Whether views may change or be renamed.
    pub fn may_change_views(&self) -> bool {
        matches!(self, Self::Views | Self::Rename(_) | Self::DropDatabase(_))
    }

    /// All tables that it names.
    fn tables(&self) -> Vec<TableName> {
        match self {
            Self::Create(creation) => creation.names.clone(),
            Self::Alter { table, renamed, others, .. } => {
                [table].into_iter().chain(renamed).chain(others).cloned().collect()
            }
            Self::Drop(tables) | Self::Repair(tables) => tables.clone(),
            Self::Rename(renames) => {
                renames.iter().flat_map(|(from, to)| [from.clone(), to.clone()]).collect()
            }
            Self::Truncate(table) | Self::Temporary(table) => vec![table.clone()],
            Self::DropDatabase(database) => {
                vec![TableName { database: database.clone(), table: String::new() }]
            }
            Self::Rows | Self::Views | Self::Harmless | Self::Unknown => Vec::new(),
        }
    }
}

struct Parser<'q> {
    scan: Scan<'q>,
    database: &'q str,
    folds_names: bool,
    /// Whether CHAR values may be read with the spaces that fill them.
    pads_char: bool,
}

impl Parser<'_> {
    fn statement(&mut self, sql: &str) -> Option<Statement> {
        if self.scan.is_at_end() {
            return Some(Statement::Harmless);
        }
        self.pass_settings(sql)?;
        let verb = self.scan.word()?;
        let whole = self.scan.clone();
        self.scan.pass();
        let understood = match verb.as_str() {
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "RENAME" => self.rename(),
            "TRUNCATE" => self.truncate(),
            "REPAIR" => self.repair(),
            _ => None,
        };
        if understood.is_some() {
            return understood;
        }
        if is_harmless(&whole, OF_VIEWS) {
            return Some(Statement::Views);
        }
        if is_harmless(&whole, HARMLESS) {
            return Some(Statement::Harmless);
        }
        ROWS.contains(&verb.as_str()).then_some(Statement::Rows)
    }

    /// Skips any number of `SET STATEMENT variable = value, … FOR`. If one sets `sql_mode`, the lexer mode of the rest
    /// is unknown, which is accepted only if it makes no difference.
    fn pass_settings(&mut self, sql: &str) -> Option<()> {
        while self.scan.skip_all(&["SET", "STATEMENT"]) {
            let mut sets_mode = false;
            while !self.scan.skip("FOR") {
                if self.scan.is_at_end() {
                    return None;
                }
                sets_mode |= self.scan.is(&["SQL_MODE"]);
                if !self.scan.skip_parentheses() {
                    self.scan.pass();
                }
            }
            if sets_mode && sql.contains(['"', '\\']) {
                return None;
            }
            self.pads_char |= sets_mode;
        }
        Some(())
    }

    fn create(&mut self) -> Option<Statement> {
        let replaces = self.scan.skip_all(&["OR", "REPLACE"]);
        if replaces && (self.scan.skip("DATABASE") || self.scan.skip("SCHEMA")) {
            return self.database();
        }
        if replaces && self.scan.skip("SEQUENCE") {
            // Of a table too.
            return Some(Statement::Drop(vec![self.table()?]));
        }
        let is_temporary = self.scan.skip("TEMPORARY");
        if self.scan.skip("TABLE") {
            let unless_there = self.scan.skip_all(&["IF", "NOT", "EXISTS"]);
            let name = self.table()?;
            if is_temporary {
                return Some(Statement::Temporary(name));
            }
            let (with_rows, words, names) = (self.has_query(), self.scan.names(), vec![name]);
            self.scan.skip_symbol("(");
            let like = self.scan.skip("LIKE").then(|| self.table()).flatten();
            return Some(Statement::Create(Creation {
                names,
                unless_there,
                with_rows,
                like,
                words,
            }));
        }
        if is_temporary {
            // A sequence.
            return None;
        }
        let _ = self.scan.skip("ONLINE") || self.scan.skip("OFFLINE");
        for kind in ["UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR"] {
            self.scan.skip(kind);
        }
        self.scan.skip("INDEX").then(|| self.index()).flatten()
    }

    /// Whether a query fills the created table: the rest of the statement has `SELECT`, `TABLE name` or `VALUES`. The
    /// last also occurs in partition definitions.
    fn has_query(&self) -> bool {
        let mut rest = self.scan.clone();
        let mut depth = 0_usize;
        while !rest.is_at_end() {
            let is_list = rest.is(&["VALUES"]) && !rest.is_at(1, &["LESS", "IN"]);
            if rest.is(&["SELECT"]) || is_list || depth == 0 && rest.is(&["TABLE"]) {
                return true;
            }
            depth += usize::from(rest.is_symbol("("));
            depth = depth.saturating_sub(usize::from(rest.is_symbol(")")));
            rest.pass();
        }
        false
    }

    /// The table of an index statement.
    fn index(&mut self) -> Option<Statement> {
        while !self.scan.skip("ON") {
            if self.scan.is_at_end() {
                return None;
            }
            self.scan.pass();
        }
        let table = self.table()?;
        let alteration = Alteration { words: self.scan.names(), ..Alteration::default() };
        Some(Statement::Alter { table, renamed: None, alteration, others: Vec::new() })
    }

    fn drop(&mut self) -> Option<Statement> {
        let _ = self.scan.skip("ONLINE") || self.scan.skip("OFFLINE");
        if self.scan.skip("INDEX") {
            return self.index();
        }
        if self.scan.skip("DATABASE") || self.scan.skip("SCHEMA") {
            self.skip_if_exists();
            return self.database();
        }
        let is_table = self.scan.skip("TABLE") || self.scan.skip("TABLES");
        let tables = is_table.then(|| self.tables()).flatten()?;
        self.ends_with(&["RESTRICT", "CASCADE"]).then_some(Statement::Drop(tables))
    }

    fn database(&mut self) -> Option<Statement> {
        let name = self.scan.name()?;
        Some(Statement::DropDatabase(if self.folds_names { folded(&name) } else { name }))
    }

    fn repair(&mut self) -> Option<Statement> {
        let _ = self.scan.skip("LOCAL") || self.scan.skip("NO_WRITE_TO_BINLOG");
        let is_table = self.scan.skip("TABLE") || self.scan.skip("TABLES");
        is_table.then(|| self.tables()).flatten().map(Statement::Repair)
    }

    fn truncate(&mut self) -> Option<Statement> {
        self.scan.skip("TABLE");
        let table = self.table()?;
        self.ends_with(&["DROP", "REUSE", "STORAGE"]).then_some(Statement::Truncate(table))
    }

    fn rename(&mut self) -> Option<Statement> {
        if !self.scan.skip("TABLE") && !self.scan.skip("TABLES") {
            return None;
        }
        self.skip_if_exists();
        let mut renames = Vec::new();
        loop {
            let from = self.table()?;
            self.skip_wait();
            if !self.scan.skip("TO") {
                return None;
            }
            renames.push((from, self.table()?));
            if !self.scan.skip_symbol(",") {
                return self.ends_with(&[]).then_some(Statement::Rename(renames));
            }
        }
    }

    fn alter(&mut self) -> Option<Statement> {
        while self.scan.skip("ONLINE") || self.scan.skip("OFFLINE") {}
        let drops_rows = self.scan.skip("IGNORE");
        if !self.scan.skip("TABLE") {
            return None;
        }
        self.skip_if_exists();
        let table = self.table()?;
        let clauses = Clauses::read(&mut self.scan, self.database, self.folds_names);
        let Clauses { mut alteration, renamed, others } = clauses;
        if drops_rows {
            alteration.moves_rows = Some("rows that did not fit were dropped");
        }
        if self.pads_char && !(alteration.declared.is_empty() && alteration.added.is_empty()) {
            alteration.moves_rows = Some("spaces may have been added (PAD_CHAR_TO_FULL_LENGTH)");
        }
        Some(Statement::Alter { table, renamed, alteration, others })
    }

    fn table(&mut self) -> Option<TableName> {
        self.scan.table(self.database, self.folds_names)
    }

    /// `[IF EXISTS] name, …`.
    fn tables(&mut self) -> Option<Vec<TableName>> {
        self.skip_if_exists();
        let mut names = vec![self.table()?];
        while self.scan.skip_symbol(",") {
            names.push(self.table()?);
        }
        Some(names)
    }

    fn skip_if_exists(&mut self) {
        self.scan.skip_all(&["IF", "EXISTS"]);
    }

    /// Skips MariaDB's lock wait clause.
    fn skip_wait(&mut self) {
        if self.scan.skip("WAIT") {
            self.scan.pass();
        }
        self.scan.skip("NOWAIT");
    }

    /// Whether only these words, which make no difference, follow.
    fn ends_with(&mut self, words: &[&str]) -> bool {
        self.skip_wait();
        while self.scan.is(words) {
            self.scan.pass();
        }
        self.scan.skip_symbol(";");
        self.scan.is_at_end()
    }
}

#[cfg(test)]
mod tests {
    use remora_mysql::{Charset, Comments, LexMode, SqlMode};

    use super::*;

    fn name(text: &str) -> TableName {
        let (database, table) = text.split_once('.').unwrap();
        TableName { database: database.to_owned(), table: table.to_owned() }
    }

    fn query(sql: &str, sql_mode: u64) -> Query {
        let mode = LexMode::of_sql_mode(
            SqlMode::from_bits(sql_mode),
            Charset::UTF8MB4,
            Comments::AllOfMariaDb,
        );
        Query { mode, ..Query::plain("d", sql) }
    }

    fn parse(sql: &str) -> Statement {
        Statement::of(&query(sql, 0), false)
    }

    /// The altered table, its new name, whether rows move, and the other tables.
    fn altered(sql: &str) -> (TableName, Option<TableName>, bool, Vec<TableName>) {
        match parse(sql) {
            Statement::Alter { table, renamed, alteration, others } => {
                (table, renamed, alteration.moves_rows.is_some(), others)
            }
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn created_and_dropped_tables_are_recognized() {
        let created = |sql: &str| match parse(sql) {
            Statement::Create(Creation { names, unless_there, with_rows, like, .. }) => {
                (names, unless_there, with_rows, like)
            }
            other => panic!("{sql}: {other:?}"),
        };
        let t = || vec![name("d.t")];
        assert_eq!(created("create table t (a int)"), (t(), false, false, None));
        assert_eq!(
            created("/* c */ CREATE -- x\n TABLE IF NOT EXISTS `e`.`a``b`(a int) # end"),
            (vec![name("e.a`b")], true, false, None)
        );
        let like = Some(name("d.u"));
        let replaced = "CREATE OR REPLACE TABLE e . t LIKE u";
        assert_eq!(created(replaced), (vec![name("e.t")], false, false, like.clone()));
        assert_eq!(created("CREATE TABLE t (LIKE u)"), (t(), false, false, like));
        assert_eq!(created("/*!40000 CREATE TABLE `t` (a int) */"), (t(), false, false, None));
        for filled in ["SELECT 1", "(SELECT 1)", "(a INT) AS SELECT 1", "TABLE u", "VALUES (1)"] {
            assert!(created(&format!("CREATE TABLE t {filled}")).2, "{filled}");
        }
        let ranges =
            "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))";
        assert_eq!(created(ranges), (t(), false, false, None));
        let temporary = Statement::Temporary(name("d.t"));
        assert_eq!(parse("CREATE OR REPLACE TEMPORARY TABLE t (a int)"), temporary);
        let drop = |names: &[&str]| Statement::Drop(names.iter().map(|text| name(text)).collect());
        assert_eq!(
            parse("DROP TABLE IF EXISTS `t`,e.u /* generated by server */"),
            drop(&["d.t", "e.u"])
        );
        assert_eq!(parse("DROP TABLE t WAIT 3 CASCADE"), drop(&["d.t"]));
        assert_eq!(parse("DROP TABLE t FROBNICATE"), Statement::Unknown);
        assert_eq!(parse("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`"), Statement::Harmless);
        assert_eq!(parse("drop schema if exists `x y`"), Statement::DropDatabase("x y".to_owned()));
        let replaced = Statement::DropDatabase("e".to_owned());
        assert_eq!(parse("CREATE OR REPLACE SCHEMA e"), replaced);
        assert_eq!(parse("CREATE OR REPLACE SEQUENCE t"), drop(&["d.t"]));
        assert_eq!(parse("CREATE SEQUENCE t"), Statement::Harmless);
        assert_eq!(parse("TRUNCATE t"), Statement::Truncate(name("d.t")));
        assert_eq!(parse("truncate table e.t NOWAIT"), Statement::Truncate(name("e.t")));
        assert_eq!(
            parse("REPAIR TABLE t, u QUICK"),
            Statement::Repair(vec![name("d.t"), name("d.u")])
        );
    }

    #[test]
    fn tables_are_altered() {
        assert_eq!(altered("ALTER TABLE t ADD COLUMN a INT"), (name("d.t"), None, false, vec![]));
        let renamed = |sql: &str| altered(sql).1;
        assert_eq!(renamed("ALTER TABLE t ADD x INT, RENAME e.u"), Some(name("e.u")));
        assert_eq!(renamed("alter table t rename to u"), Some(name("d.u")));
        assert_eq!(renamed("ALTER TABLE t ADD c INT COMMENT 'RENAME u'"), None);
        assert_eq!(renamed("ALTER TABLE t RENAME COLUMN a TO b, RENAME INDEX i TO j"), None);
        assert_eq!(
            altered("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u"),
            (name("d.t"), None, true, vec![name("d.u")])
        );
        assert!(altered("ALTER IGNORE TABLE t ADD UNIQUE (a)").2);
        assert_eq!(altered("CREATE UNIQUE INDEX i ON e.t (a)").0, name("e.t"));
        assert_eq!(altered("DROP INDEX i ON `t`").0, name("d.t"));
        assert_eq!(altered("CREATE INDEX i USING HASH ON t (a)").0, name("d.t"));
    }

    #[test]
    fn settings_before_a_statement_are_passed() {
        let set = "SET STATEMENT max_statement_time=9, lock_wait_timeout=(1+2) FOR ";
        assert_eq!(parse(&format!("{set}TRUNCATE t")), Statement::Truncate(name("d.t")));
        assert_eq!(parse(&format!("{set}DELETE FROM t")), Statement::Rows);
        assert_eq!(
            parse("SET STATEMENT sql_mode='' FOR TRUNCATE t"),
            Statement::Truncate(name("d.t"))
        );
        assert_eq!(parse("SET STATEMENT sql_mode='' FOR TRUNCATE \"t\""), Statement::Unknown);
        assert_eq!(parse("SET STATEMENT a=1"), Statement::Unknown);
    }

    #[test]
    fn padded_texts_are_new_values() {
        let moves = |sql: &str, pads_char| {
            let query = Query { pads_char, ..query(sql, 0) };
            match Statement::of(&query, false) {
                Statement::Alter { alteration, .. } => alteration.moves_rows.is_some(),
                other => panic!("{sql}: {other:?}"),
            }
        };
        for (sql, is_moved) in [
            ("ALTER TABLE t MODIFY c VARCHAR(20)", true),
            ("ALTER TABLE t CHANGE c d TEXT", true),
            ("ALTER TABLE t ADD g TEXT AS (CONCAT(c, 'x')) STORED", true),
            ("ALTER TABLE t DROP c", false),
            ("ALTER TABLE t RENAME TO u", false),
        ] {
            assert_eq!((moves(sql, true), moves(sql, false)), (is_moved, false), "{sql}");
        }
        let set =
            "SET STATEMENT sql_mode='PAD_CHAR_TO_FULL_LENGTH' FOR ALTER TABLE t MODIFY c TEXT";
        assert!(moves(set, false));
    }

    #[test]
    fn sql_mode_determines_quotes() {
        let ansi = |sql: &str| Statement::of(&query(sql, 4), false);
        let Statement::Alter { alteration, .. } =
            ansi(r#"ALTER TABLE "t" CHANGE "a" "b" INT, CHANGE "b" "a" INT"#)
        else {
            panic!()
        };
        assert_eq!(alteration.renamed.len(), 2);
        assert_eq!(parse("TRUNCATE \"t\""), Statement::Unknown);
        let sql = r"ALTER TABLE t COMMENT 'x\', CHANGE a b INT";
        let Statement::Alter { alteration, .. } = Statement::of(&query(sql, 1 << 20), false) else {
            panic!()
        };
        assert_eq!(alteration.renamed.len(), 1);
        assert_eq!(parse(sql), Statement::Unknown);
    }

    #[test]
    fn names_are_folded_where_the_source_does() {
        let folded = |sql: &str| Statement::of(&Query::plain("D", sql), true);
        assert_eq!(folded("TRUNCATE T"), Statement::Truncate(name("d.t")));
        assert_eq!(folded("DROP TABLE `E`.T"), Statement::Drop(vec![name("e.t")]));
        assert_eq!(folded("DROP DATABASE D"), Statement::DropDatabase("d".to_owned()));
        assert_eq!(folded("TRUNCATE `ΣΑΣİ`"), Statement::Truncate(name("d.σασi")));
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
        assert_eq!(parse("RENAME USER a TO b"), Statement::Harmless);
    }

    #[test]
    fn statement_effect_follows_renames() {
        let effect_on = |sql: &str| parse(sql).effect_on(&name("d.t"));
        let stays = |text: &str| DefinitionEffect::Unchanged(name(text));
        assert_eq!(effect_on("ALTER TABLE u ADD a INT"), stays("d.t"));
        assert_eq!(effect_on("ALTER TABLE t ADD a INT"), DefinitionEffect::Changed);
        assert_eq!(
            effect_on("ALTER TABLE u CONVERT PARTITION p TO TABLE t"),
            DefinitionEffect::Changed
        );
        assert_eq!(effect_on("CREATE INDEX i ON t (a)"), DefinitionEffect::Changed);
        assert_eq!(effect_on("DROP TABLE u, t"), DefinitionEffect::Changed);
        assert_eq!(effect_on("DROP DATABASE e"), stays("d.t"));
        assert_eq!(effect_on("DROP DATABASE d"), DefinitionEffect::Changed);
        assert_eq!(effect_on("RENAME TABLE t TO u, v TO t, u TO v"), stays("d.v"));
        assert_eq!(effect_on("RENAME TABLE v TO t"), DefinitionEffect::Changed);
        assert_eq!(effect_on("ALTER TABLE v RENAME t"), DefinitionEffect::Changed);
        assert_eq!(effect_on("TRUNCATE t"), stays("d.t"));
        assert_eq!(effect_on("FROBNICATE"), DefinitionEffect::Changed);
    }

    #[test]
    fn ambiguous_text_affects_both_possible_tables() {
        let sql = "CREATE TABLE `tÃ¤` (a INT)".to_owned();
        let other_sql = Some("CREATE TABLE `tä` (a INT)".to_owned());
        let Statement::Create(creation) =
            Statement::of(&Query { other_sql, ..Query::plain("d", &sql) }, false)
        else {
            panic!()
        };
        assert_eq!(creation.names, [name("d.tÃ¤"), name("d.tä")]);
        let (sql, other_sql) = ("DROP TABLE `tÃ¤`".to_owned(), Some("DROP TABLE `tä`".to_owned()));
        let dropped = Statement::of(&Query { other_sql, ..Query::plain("d", &sql) }, false);
        assert_eq!(dropped, Statement::Drop(vec![name("d.tÃ¤"), name("d.tä")]));
        let garbled = Query { is_exact: false, ..Query::plain("d", "TRUNCATE `t?`") };
        assert_eq!(Statement::of(&garbled, false), Statement::Unknown);
    }

    #[test]
    fn harmless_statements_are_recognized() {
        for sql in [
            "CREATE DEFINER = CURRENT_USER() TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
            "CREATE DEFINER=a @ 'b' PROCEDURE p() DROP TABLE t",
            "CREATE AGGREGATE FUNCTION f(x INT) RETURNS INT RETURN 1",
            "DROP TEMPORARY TABLE t",
            "ALTER DATABASE d CHARACTER SET utf8mb4",
            "GRANT SELECT ON t TO u",
            "OPTIMIZE LOCAL TABLE t",
            "ANALYZE TABLE t",
            "# nothing",
            "",
        ] {
            assert_eq!(parse(sql), Statement::Harmless, "{sql}");
        }
        for sql in [
            "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW v AS SELECT 1",
            "ALTER VIEW v AS SELECT 1",
            "DROP VIEW IF EXISTS t",
        ] {
            assert_eq!(parse(sql), Statement::Views, "{sql}");
        }
        for sql in [
            "ALTER DATABASE `#mysql50#a-b` UPGRADE DATA DIRECTORY NAME",
            "FROBNICATE TABLE t",
            "SET @a = f()",
            "/*! /*M!100 `",
            "CREATE TABLE",
            "(SELECT f())",
        ] {
            assert_eq!(parse(sql), Statement::Unknown, "{sql}");
        }
        for sql in ["SELECT `d`.`f`()", "ANALYZE DELETE FROM t", "UPDATE v SET a = 1", "DO f()"] {
            assert_eq!(parse(sql), Statement::Rows, "{sql}");
        }
    }

    /// Without its entry, a harmless statement is not understood as another.
    #[test]
    fn without_an_entry_a_harmless_statement_is_not_understood() {
        for (place, entry) in HARMLESS.iter().enumerate() {
            let mut list = HARMLESS.to_vec();
            list.remove(place);
            let text = entry.join(" ");
            let scan = Scan::of(&text, LexMode::default()).unwrap();
            assert!(is_harmless(&scan, HARMLESS), "{text}");
            assert!(!is_harmless(&scan, &list), "{text} is there twice");
            assert!(!matches!(
                parse(&text),
                Statement::Create(_) | Statement::Alter { .. } | Statement::Drop(_)
            ));
        }
    }
}
