//! The clauses of an ALTER TABLE, as far as `information_schema` does not show their effect: which columns were
//! renamed, which were dropped or recreated under an old name, what was done to partitions.
//!
//! ```text
//! clauses := [WAIT n | NOWAIT] clause ("," clause)*
//! ```
//! An unknown clause counts as one that changes rows.

use crate::mysql::{scan::Scan, table_name::TableName};

/// The effects of an ALTER TABLE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alteration {
    /// Old and new names of columns.
    pub renamed: Vec<(String, String)>,
    /// Columns that it drops.
    pub dropped: Vec<String>,
    /// Added columns, and the first words of other additions.
    pub added: Vec<String>,
    /// Redeclared columns, by their new names.
    pub declared: Vec<String>,
    /// Why rows may have been added or removed without row events.
    pub moves_rows: Option<&'static str>,
    /// All names and keywords in it.
    pub words: Vec<String>,
}

/// The effects of clauses on tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Clauses {
    pub alteration: Alteration,
    /// The table's new name.
    pub renamed: Option<TableName>,
    /// Other tables whose rows move, or that are created or dropped.
    pub others: Vec<TableName>,
}

const PARTITION: &str = "a partition was dropped, emptied or exchanged";
const TABLESPACE: &str = "its tablespace was exchanged";
const REPAIRED: &str = "a partition was repaired, which may cost rows";
const NOT_UNDERSTOOD: &str = "a clause was not understood";

/// Table options that a value follows. They do not change rows, and definitions are read again.
const OPTIONS: &[&str] = &[
    "AUTO_INCREMENT",
    "AUTOEXTEND_SIZE",
    "AVG_ROW_LENGTH",
    "CHARSET",
    "CHECKSUM",
    "COLLATE",
    "COMMENT",
    "COMPRESSION",
    "CONNECTION",
    "DATA",
    "DELAY_KEY_WRITE",
    "ENCRYPTED",
    "ENCRYPTION",
    "ENCRYPTION_KEY_ID",
    "ENGINE",
    "ENGINE_ATTRIBUTE",
    "IETF_QUOTES",
    "INDEX",
    "INSERT_METHOD",
    "KEY_BLOCK_SIZE",
    "MAX_ROWS",
    "MIN_ROWS",
    "PACK_KEYS",
    "PAGE_CHECKSUM",
    "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_LEVEL",
    "PASSWORD",
    "ROW_FORMAT",
    "SECONDARY_ENGINE",
    "SECONDARY_ENGINE_ATTRIBUTE",
    "SEQUENCE",
    "STATS_AUTO_RECALC",
    "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES",
    "TABLE_CHECKSUM",
    "TABLESPACE",
    "TRANSACTIONAL",
    "TYPE",
];

/// Maintenance of partitions that changes no rows.
const MAINTENANCE: &[&str] = &["ANALYZE", "CHECK", "COALESCE", "OPTIMIZE", "REBUILD", "REORGANIZE"];

impl Alteration {
    /// The combined effect of consecutive alterations that touch different columns.
    pub fn combined(alterations: &[Self]) -> Self {
        let mut all = Self::default();
        for alteration in alterations {
            all.renamed.extend_from_slice(&alteration.renamed);
            all.dropped.extend_from_slice(&alteration.dropped);
            all.added.extend_from_slice(&alteration.added);
            all.declared.extend_from_slice(&alteration.declared);
            all.moves_rows = all.moves_rows.or(alteration.moves_rows);
            all.words.extend_from_slice(&alteration.words);
        }
        all
    }

    /// Whether it created the column of this name, which did not exist before.
    pub fn creates_column(&self, name: &str) -> bool {
        let has =
            |names: &[String]| names.iter().any(|one| one.to_lowercase() == name.to_lowercase());
        has(&self.added) && !has(&self.declared)
    }

    /// Whether this name or keyword occurs in it.
    pub fn mentions(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.words.iter().any(|word| word.to_lowercase() == name)
    }
}

impl Clauses {
    /// Parses the text after the table's name.
    pub fn read(scan: &mut Scan<'_>, database: &str, folds_names: bool) -> Self {
        let mut reader =
            ClauseReader { scan, database, folds_names, found: Self::default(), is_ordered: false };
        reader.found.alteration.words = reader.scan.names();
        if reader.scan.skip("WAIT") {
            reader.scan.pass();
        }
        reader.scan.skip("NOWAIT");
        while !reader.scan.is_at_end() {
            if reader.clause().is_none() {
                reader.keep_no_rows(NOT_UNDERSTOOD);
            }
            reader.pass_clause();
        }
        reader.found
    }
}

struct ClauseReader<'s, 'q> {
    scan: &'s mut Scan<'q>,
    database: &'s str,
    folds_names: bool,
    found: Clauses,
    /// Whether the last clause was ORDER BY, whose columns are separated by commas too.
    is_ordered: bool,
}

impl ClauseReader<'_, '_> {
    /// Parses a clause as far as it matters; `None` if it is not understood.
    fn clause(&mut self) -> Option<()> {
        let was_ordered = std::mem::take(&mut self.is_ordered);
        let Some(verb) = self.scan.word() else { return self.next_of_order(was_ordered) };
        match verb.as_str() {
            "ALTER" | "FORCE" | "ALGORITHM" | "LOCK" => Some(()),
            "ADD" => self.add(),
            "MODIFY" => self.modify(),
            "CHANGE" => self.change(),
            "DROP" => self.drop(),
            "RENAME" => self.rename(),
            "ORDER" => {
                self.is_ordered = true;
                Some(())
            }
            "CONVERT" => self.convert(),
            "TRUNCATE" if self.scan.is_at(1, &["PARTITION"]) => self.keep_no_rows(PARTITION),
            "EXCHANGE" => {
                self.keep_no_rows(PARTITION);
                self.other_table()
            }
            "REPAIR" if self.scan.is_at(1, &["PARTITION"]) => self.keep_no_rows(REPAIRED),
            "DISCARD" | "IMPORT" => self.keep_no_rows(TABLESPACE),
            word if MAINTENANCE.contains(&word) => {
                self.scan.is_at(1, &["PARTITION", "PARTITIONS"]).then_some(())
            }
            "REMOVE" => self.scan.is_at(1, &["PARTITIONING"]).then_some(()),
            "ENABLE" | "DISABLE" => self.scan.is_at(1, &["KEYS", "KEY"]).then_some(()),
            "WITH" | "WITHOUT" => self.scan.is_at(1, &["VALIDATION"]).then_some(()),
            "SECONDARY_LOAD" | "SECONDARY_UNLOAD" => Some(()),
            _ => self.options().or_else(|| self.next_of_order(was_ordered)),
        }
    }

    /// A further column of ORDER BY.
    fn next_of_order(&mut self, was_ordered: bool) -> Option<()> {
        self.is_ordered = was_ordered;
        was_ordered.then_some(())
    }

    fn keep_no_rows(&mut self, why: &'static str) -> Option<()> {
        self.found.alteration.moves_rows.get_or_insert(why);
        Some(())
    }

    /// `ADD [COLUMN] [IF NOT EXISTS] {name … | (name …, …)}`, or an addition that is not a column.
    fn add(&mut self) -> Option<()> {
        self.scan.pass();
        self.skip_column();
        let _ = self.scan.skip_all(&["IF", "NOT", "EXISTS"]);
        let mut list = self.scan.clone();
        let is_list = list.skip_symbol("(");
        loop {
            self.found.alteration.added.extend(list.name());
            while is_list && !list.is_at_end() && !list.is_symbol(")") && !list.is_symbol(",") {
                if !list.skip_parentheses() {
                    list.pass();
                }
            }
            if !is_list || !list.skip_symbol(",") {
                return Some(());
            }
        }
    }

    /// `MODIFY [COLUMN] [IF EXISTS] name …`.
    fn modify(&mut self) -> Option<()> {
        self.scan.pass();
        self.skip_column();
        let name = self.scan.name()?;
        self.found.alteration.declared.push(name);
        Some(())
    }

    /// `CHANGE [COLUMN] [IF EXISTS] from to …`.
    fn change(&mut self) -> Option<()> {
        self.scan.pass();
        self.skip_column();
        let from = self.scan.name()?;
        let to = self.scan.name()?;
        self.found.alteration.declared.push(to.clone());
        self.rename_column(from, to);
        Some(())
    }

    /// `DROP PARTITION …`, `DROP key …`, `DROP [COLUMN] [IF EXISTS] name`.
    fn drop(&mut self) -> Option<()> {
        const KEYS: &[&str] =
            &["CHECK", "CONSTRAINT", "FOREIGN", "INDEX", "KEY", "PERIOD", "PRIMARY", "SYSTEM"];
        self.scan.pass();
        if self.scan.is(&["PARTITION"]) {
            return self.keep_no_rows(PARTITION);
        }
        // A column may have the name of one of these keywords; then nothing follows it.
        if self.scan.is(KEYS) && self.scan.clone().has_more() {
            return Some(());
        }
        self.skip_column();
        let name = self.scan.name()?;
        self.found.alteration.dropped.push(name);
        Some(())
    }

    /// `RENAME COLUMN a TO b`, `RENAME {INDEX | KEY} a TO b`, `RENAME [TO | AS | =] table`.
    fn rename(&mut self) -> Option<()> {
        self.scan.pass();
        if self.scan.is(&["INDEX", "KEY"]) && self.scan.is_at(2, &["TO"]) {
            return Some(());
        }
        if self.scan.is(&["COLUMN"]) {
            let place = self.scan.place();
            self.scan.pass();
            let _ = self.scan.skip_all(&["IF", "EXISTS"]);
            let from = self.scan.name();
            if let (Some(from), true) = (from, self.scan.skip("TO")) {
                let to = self.scan.name()?;
                self.rename_column(from, to);
                return Some(());
            }
            self.scan.go_to(place);
        }
        let _ = self.scan.skip("TO") || self.scan.skip("AS") || self.scan.skip_symbol("=");
        self.found.renamed = Some(self.scan.table(self.database, self.folds_names)?);
        Some(())
    }

    /// `CONVERT TO CHARACTER SET …`, `CONVERT PARTITION p TO TABLE t`, `CONVERT TABLE t TO PARTITION …`.
    fn convert(&mut self) -> Option<()> {
        if self.scan.is_at(1, &["TO"]) {
            return Some(());
        }
        self.keep_no_rows(PARTITION);
        self.other_table()
    }

    /// The other table of EXCHANGE PARTITION or CONVERT.
    fn other_table(&mut self) -> Option<()> {
        while !self.scan.skip("TABLE") {
            if self.scan.is_at_end() {
                return None;
            }
            self.scan.pass();
        }
        let table = self.scan.table(self.database, self.folds_names)?;
        self.found.others.push(table);
        Some(())
    }

    /// Table options, and the partitioning after them.
    fn options(&mut self) -> Option<()> {
        while !self.scan.is_at_end() && !self.scan.is_symbol(",") {
            if self.scan.is(&["PARTITION"]) && self.scan.is_at(1, &["BY"]) {
                while !self.scan.is_at_end() {
                    self.scan.pass();
                }
                return Some(());
            }
            self.scan.skip("DEFAULT");
            if !self.scan.skip_all(&["CHARACTER", "SET"]) {
                self.scan.word().filter(|word| OPTIONS.contains(&word.as_str()))?;
                self.scan.pass();
                self.scan.skip("DIRECTORY");
            }
            self.scan.skip_symbol("=");
            if !self.scan.skip_parentheses() {
                self.scan.pass();
            }
        }
        Some(())
    }

    fn skip_column(&mut self) {
        // A column may be called COLUMN.
        if self.scan.is(&["COLUMN"]) && self.scan.clone().has_more() {
            self.scan.pass();
        }
        let _ = self.scan.skip_all(&["IF", "EXISTS"]);
    }

    fn rename_column(&mut self, from: String, to: String) {
        if from.to_lowercase() != to.to_lowercase() {
            self.found.alteration.renamed.push((from, to));
        }
    }

    /// Skips to the end of the clause and its comma.
    fn pass_clause(&mut self) {
        while !self.scan.is_at_end() {
            if self.scan.skip_symbol(",") {
                return;
            }
            if !self.scan.skip_parentheses() {
                self.scan.pass();
            }
        }
    }
}

impl Scan<'_> {
    /// Whether the clause continues after the next token.
    fn has_more(mut self) -> bool {
        self.pass();
        !self.is_at_end() && !self.is_symbol(",")
    }
}

#[cfg(test)]
mod tests {
    use remora_mysql::LexMode;

    use super::*;

    fn clauses(text: &str) -> Clauses {
        let mut scan = Scan::of(text, LexMode::default()).unwrap();
        Clauses::read(&mut scan, "d", false)
    }

    fn pairs(names: &[(&str, &str)]) -> Vec<(String, String)> {
        names.iter().map(|&(from, to)| (from.to_owned(), to.to_owned())).collect()
    }

    #[test]
    fn renamed_and_dropped_columns_are_found() {
        let found = clauses("RENAME COLUMN a TO `b``c`, CHANGE COLUMN d e INT").alteration;
        assert_eq!(found.renamed, pairs(&[("a", "b`c"), ("d", "e")]));
        let found = clauses("change `ä` ö int, drop x").alteration;
        assert_eq!((found.renamed, found.dropped), (pairs(&[("ä", "ö")]), vec!["x".to_owned()]));
        let found = clauses("MODIFY a INT COMMENT 'CHANGE a b', DROP COLUMN IF EXISTS c");
        assert_eq!(found.alteration.dropped, ["c"]);
        assert_eq!(found.alteration.renamed, []);
        assert_eq!(clauses("CHANGE a a BIGINT").alteration.renamed, []);
        let found = clauses("CHANGE IF EXISTS a b INT, CHANGE b a INT").alteration;
        assert_eq!(found.renamed, pairs(&[("a", "b"), ("b", "a")]));
        assert_eq!(clauses("RENAME COLUMN").renamed.unwrap().table, "COLUMN");
    }

    #[test]
    fn added_columns_are_found() {
        let added = |text: &str| clauses(text).alteration.added;
        assert_eq!(added("ADD a INT, ADD COLUMN `b` INT AFTER a"), ["a", "b"]);
        assert_eq!(
            added("ADD COLUMN IF NOT EXISTS (a DECIMAL(4, 2), b INT, CHECK (b > 1))")[..2],
            ["a", "b"]
        );
        assert_eq!(added("ADD `column` INT, ADD INDEX (a)"), ["column", "INDEX"]);
        let found =
            clauses("ADD IF NOT EXISTS a INT, MODIFY COLUMN a INT, CHANGE b c INT").alteration;
        assert_eq!(found.declared, ["a", "c"]);
        assert!(!found.creates_column("A") && !found.creates_column("c"));
        assert!(clauses("ADD a INT").alteration.creates_column("A"));
    }

    #[test]
    fn clauses_that_move_rows_are_found() {
        for text in [
            "DROP PARTITION p0",
            "TRUNCATE PARTITION ALL",
            "EXCHANGE PARTITION p WITH TABLE u",
            "IMPORT TABLESPACE",
            "DISCARD PARTITION p TABLESPACE",
            "REPAIR PARTITION p",
            "CONVERT PARTITION p TO TABLE q",
            "ADD a INT, FROBNICATE HARD",
            "ENGINE=InnoDB UNION=(a, b)",
            "WHATEVER=1",
        ] {
            assert!(clauses(text).alteration.moves_rows.is_some(), "{text}");
        }
        assert_eq!(clauses("CONVERT PARTITION p TO TABLE q").others.len(), 1);
        assert_eq!(clauses("EXCHANGE PARTITION p WITH TABLE e.u").others[0].database, "e");
    }

    #[test]
    fn clauses_that_keep_rows_are_understood() {
        for text in [
            "ADD PARTITION (PARTITION p1 VALUES LESS THAN (3), PARTITION p2 VALUES LESS THAN (9))",
            "ADD INDEX (a), ADD (b INT, c INT), ADD CONSTRAINT CHECK (a > 1)",
            "WAIT 5 ORDER BY a DESC, b, c",
            "NOWAIT FORCE, ALGORITHM=INPLACE, LOCK=NONE",
            "DEFAULT CHARACTER SET = utf8mb4 COLLATE utf8mb4_bin COMMENT='a, b', AUTO_INCREMENT 7",
            "ENGINE InnoDB PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))",
            "PARTITION BY HASH (id) PARTITIONS 4",
            "REMOVE PARTITIONING, REBUILD PARTITION p, DISABLE KEYS",
            "CONVERT TO CHARACTER SET latin1, DROP PRIMARY KEY, DROP FOREIGN KEY f",
            "RENAME INDEX a TO b, ALTER COLUMN c SET DEFAULT 'x'",
            "DATA DIRECTORY '/x' ROW_FORMAT=DYNAMIC",
            "",
        ] {
            assert_eq!(clauses(text).alteration.moves_rows, None, "{text}");
        }
    }
}
