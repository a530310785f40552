//! Statements at random. The server may refuse them: a name may mean no table now.

use std::path::PathBuf;

use mysql::{Conn, prelude::Queryable};
use remora_peers::Kind;

use super::Client;
use crate::{beside::DATABASE, random::Random};

/// Names of tables: few, so that they meet.
const TABLES: [&str; 8] = ["t0", "t1", "t2", "t3", "a b", "größe", "select", "T1"];
const COLUMNS: [&str; 6] = ["a", "b", "c", "d", "größe", "A"];
const TYPES: [&str; 17] = [
    "INT",
    "BIGINT",
    "INT UNSIGNED",
    "VARCHAR(30)",
    "VARCHAR(200)",
    "CHAR(9)",
    "TEXT",
    "DECIMAL(12,3)",
    "DATETIME(3)",
    "DOUBLE",
    "ENUM('x', 'y', '7')",
    "VARBINARY(40)",
    "VARCHAR(30) CHARACTER SET latin1",
    "TINYINT",
    "FLOAT(9,1)",
    "DOUBLE UNSIGNED",
    "DECIMAL(12,3) UNSIGNED ZEROFILL",
];
const MODES: [&str; 8] = [
    "",
    "ANSI_QUOTES",
    "ANSI",
    "NO_BACKSLASH_ESCAPES",
    "ANSI_QUOTES,NO_BACKSLASH_ESCAPES",
    "PIPES_AS_CONCAT,IGNORE_SPACE",
    "STRICT_TRANS_TABLES",
    "NO_AUTO_VALUE_ON_ZERO",
];
const CLIENTS: [&str; 4] = ["utf8mb4", "latin1", "utf8mb4", "latin2"];

/// Makes statements.
pub struct Statements {
    kind: Kind,
    pub random: Random,
    file: PathBuf,
    names: usize,
    /// The tables that there are, each with its columns.
    there: Vec<(String, Vec<String>)>,
}

/// What a statement that was executed means for its session.
pub fn note(client: &mut Client, statement: &str) {
    let value = |prefix: &str| statement.strip_prefix(prefix).map(str::to_owned);
    if let Some(modes) = value("SET sql_mode = ") {
        client.modes = modes;
    } else if let Some(names) = value("SET NAMES ") {
        client.client = Some(names);
    }
    client.in_transaction = match statement {
        "BEGIN" | "START TRANSACTION" => true,
        "COMMIT" | "ROLLBACK" => false,
        _ => client.in_transaction,
    };
}

impl Statements {
    pub fn new(kind: Kind, random: Random, file: PathBuf) -> Self {
        Self { kind, random, file, names: 0, there: Vec::new() }
    }

    /// Learns which tables there are.
    pub fn learn(&mut self, connection: &mut Conn) {
        let columns: Vec<(String, String)> = connection
            .query(format!(
                "SELECT table_name, column_name FROM information_schema.columns
                 WHERE table_schema = '{DATABASE}' AND column_name <> 'id'
                 ORDER BY table_name, ordinal_position"
            ))
            .unwrap();
        self.there.clear();
        for (table, column) in columns {
            match self.there.last_mut() {
                Some((last, columns)) if *last == table => columns.push(column),
                _ => self.there.push((table, vec![column])),
            }
        }
    }

    /// A statement for this session.
    pub fn next(&mut self, client: &mut Client) -> String {
        if client.in_transaction {
            return match self.random.below(12) {
                0 => "ROLLBACK".to_owned(),
                1..=2 => "COMMIT".to_owned(),
                3 => "SAVEPOINT s".to_owned(),
                4 => "ROLLBACK TO s".to_owned(),
                _ => self.rows(client),
            };
        }
        let statement = match self.random.below(100) {
            0..=3 => return format!("SET sql_mode = '{}'", self.random.pick(&MODES)),
            4..=6 => {
                let format = self.random.pick(&["ROW", "STATEMENT", "MIXED", "ROW"]);
                return format!("SET binlog_format = {format}");
            }
            7 => return format!("SET NAMES {}", self.random.pick(&CLIENTS)),
            8..=12 => return self.random.pick(&["BEGIN", "START TRANSACTION"]).to_owned(),
            13..=27 => self.create(client),
            28..=33 => self.drop(client),
            34..=41 => self.rename(client),
            42..=58 => self.alter(client),
            59..=61 => format!("TRUNCATE TABLE {}", self.table(client)),
            62..=65 => self.object(client),
            66 => self.other(client),
            _ => self.rows(client),
        };
        self.decorated(statement)
    }

    /// The same statement in another form.
    fn decorated(&mut self, statement: String) -> String {
        match self.random.below(24) {
            0 => format!(
                "/* {} */ {statement}",
                self.random.pick(&["x", "it's", "DROP TABLE t0", "\""])
            ),
            1 => format!("/*!50000 {statement} */"),
            2 => format!("-- c\n{statement} # end"),
            3 => statement.replacen(' ', " /* c */ ", 1),
            4 => statement.replacen(' ', "\n\t", 2),
            5 if self.kind.is_mariadb() => {
                format!("SET STATEMENT max_statement_time=60 FOR {statement}")
            }
            6 if self.kind.is_mariadb() => {
                format!("EXECUTE IMMEDIATE '{}'", statement.replace('\'', "''"))
            }
            7 if self.kind.is_mariadb() => format!("BEGIN NOT ATOMIC {statement}; END"),
            8 => statement.to_ascii_lowercase(),
            9 => format!("{statement};"),
            _ => statement,
        }
    }

    fn quoted(&mut self, client: &Client, name: &str) -> String {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric()) && name != "select";
        match self.random.below(3) {
            0 if plain => name.to_owned(),
            1 if client.has_ansi_quotes() => format!("\"{name}\""),
            _ => format!("`{name}`"),
        }
    }

    /// A name of a table, mostly one of the followed database.
    fn table(&mut self, client: &Client) -> String {
        let name = match self.random.below(20) {
            0..=14 if !self.there.is_empty() => self.random.pick(&self.there).0,
            0..=16 => self.random.pick(&TABLES[..4]).to_owned(),
            _ => self.random.pick(&TABLES).to_owned(),
        };
        let name = self.quoted(client, &name);
        match self.random.below(12) {
            0 => format!("shop.{name}"),
            1 => format!("`shop` . {name}"),
            _ => name,
        }
    }

    /// A name of a table that need not be there.
    fn new_table(&mut self, client: &Client) -> String {
        let there = std::mem::take(&mut self.there);
        let name = self.table(client);
        self.there = there;
        name
    }

    fn column(&mut self, client: &Client) -> String {
        let name = match self.random.chance(85) {
            true => self.random.pick(&COLUMNS[..4]),
            false => self.random.pick(&COLUMNS),
        };
        self.quoted(client, name)
    }

    /// A column of this table, mostly.
    fn column_of(&mut self, client: &Client, table: &str) -> String {
        let bare = |c: char| matches!(c, '`' | '"');
        let name = table.rsplit('.').next().unwrap_or_default().trim().trim_matches(bare);
        let there = self.there.iter().find(|(there, _)| there == name);
        match there.map(|(_, columns)| columns.clone()) {
            Some(columns) if !columns.is_empty() && self.random.chance(90) => {
                let column = self.random.pick(&columns);
                self.quoted(client, &column)
            }
            _ => self.column(client),
        }
    }

    fn definition(&mut self) -> String {
        let mut text = self.random.pick(&TYPES).to_owned();
        match self.random.below(8) {
            0 => text.push_str(" NOT NULL"),
            1 => text.push_str(" DEFAULT NULL"),
            2 => text.push_str(" COMMENT 'x, DROP a'"),
            3 if text.starts_with("INT") => text.push_str(" DEFAULT 7"),
            _ => {}
        }
        text
    }

    fn create(&mut self, client: &Client) -> String {
        let table = self.new_table(client);
        let how = match self.random.below(8) {
            0 if self.kind.is_mariadb() => "CREATE OR REPLACE TABLE",
            1 | 2 => "CREATE TABLE IF NOT EXISTS",
            3 => "CREATE TEMPORARY TABLE",
            _ => "CREATE TABLE",
        };
        match self.random.below(10) {
            0 => format!("{how} {table} LIKE {}", self.table(client)),
            // MySQL 5.6 refuses CREATE … SELECT, and may leave the table there, with nothing logged.
            1..=3 if self.kind == Kind::MySql56 => format!("{how} {table} (id INT PRIMARY KEY)"),
            1 | 2 => format!(
                "{how} {table} (id INT PRIMARY KEY, {} INT) SELECT {} AS id, {} AS a",
                self.column(client),
                self.random.below(50),
                self.random.below(9)
            ),
            3 => format!(
                "{how} {table} (PRIMARY KEY (id)) SELECT id, {} FROM {}",
                self.column(client),
                self.table(client)
            ),
            4 => format!(
                "{how} {table} (id INT PRIMARY KEY, a INT, b INT, FOREIGN KEY (a) REFERENCES {} (id) \
                 ON DELETE CASCADE ON UPDATE CASCADE)",
                self.table(client)
            ),
            5 => format!(
                "{how} {table} (id INT PRIMARY KEY, a INT, b INT) PARTITION BY RANGE (id) (PARTITION p0 \
                 VALUES LESS THAN (20), PARTITION p1 VALUES LESS THAN MAXVALUE)"
            ),
            6 => format!(
                "{how} {table} (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(30)) ENGINE=MyISAM"
            ),
            _ => {
                let key = self.random.pick(&["", " AUTO_INCREMENT"]);
                let definitions: Vec<_> = ["a", "b", "c", "d"][..1 + self.random.below(4)]
                    .iter()
                    .map(|name| format!("{name} {}", self.definition()))
                    .collect();
                format!("{how} {table} (id INT{key} PRIMARY KEY, {})", definitions.join(", "))
            }
        }
    }

    fn drop(&mut self, client: &Client) -> String {
        let how = self.random.pick(&[
            "DROP TABLE",
            "DROP TABLE IF EXISTS",
            "DROP TABLES IF EXISTS",
            "DROP TEMPORARY TABLE",
        ]);
        let mut names = vec![self.table(client)];
        if self.random.chance(20) {
            names.push(self.table(client));
        }
        format!("{how} {}", names.join(", "))
    }

    fn rename(&mut self, client: &Client) -> String {
        let (a, b, c) = (self.table(client), self.table(client), self.table(client));
        self.names += 1;
        let free = format!("tmp{}", self.names);
        match self.random.below(8) {
            0..=2 => format!("RENAME TABLE {a} TO {free}, {b} TO {a}, {free} TO {b}"),
            3 => format!("RENAME TABLE {a} TO {free}, {b} TO {a}, {c} TO {b}, {free} TO {c}"),
            4 => format!("ALTER TABLE {a} RENAME TO {}", self.new_table(client)),
            5 => format!("RENAME TABLE {a} TO other.{free}"),
            6 => format!("RENAME TABLE {b} TO {free}, {a} TO {b}"),
            _ => format!("RENAME TABLE {a} TO {}", self.new_table(client)),
        }
    }

    fn alter(&mut self, client: &Client) -> String {
        let table = self.table(client);
        let (x, y) = (self.column_of(client, &table), self.column_of(client, &table));
        let new = self.column(client);
        let definition = self.definition();
        let change = match self.random.below(22) {
            0..=2 => format!("ADD {new} {definition}"),
            3 => format!("ADD COLUMN ({new} INT DEFAULT 3, `ü` VARCHAR(9) DEFAULT 'q')"),
            4 => format!("DROP {x}"),
            5..=6 => format!("CHANGE {x} {y} INT, CHANGE {y} {x} INT"),
            7 => format!("CHANGE {x} {new} {definition}"),
            8 => format!("DROP {x}, ADD {x} INT DEFAULT 4"),
            9..=10 => format!("MODIFY {x} {definition}"),
            11 => format!("MODIFY {x} INT FIRST"),
            12 => format!("MODIFY {x} VARCHAR(40) AFTER {y}"),
            13 => format!("ADD n{} INT NOT NULL AUTO_INCREMENT UNIQUE", self.names),
            14 => format!("RENAME COLUMN {x} TO {new}"),
            15 => "CONVERT TO CHARACTER SET utf8mb4".to_owned(),
            16 => format!("ENGINE={}", self.random.pick(&["InnoDB", "MyISAM", "InnoDB", "MEMORY"])),
            17 => self
                .random
                .pick(&[
                    "DROP PARTITION p0",
                    "TRUNCATE PARTITION p0",
                    "REMOVE PARTITIONING",
                    "REBUILD PARTITION p0",
                ])
                .to_owned(),
            18 => format!("EXCHANGE PARTITION p0 WITH TABLE {}", self.table(client)),
            19 => format!(
                "COMMENT '{}', DROP {x}, ADD {x} INT DEFAULT 5",
                self.random.pick(&["x", "x\\", "''", "a\"b", "/* "])
            ),
            20 => format!("ADD INDEX i{} ({x})", self.names),
            _ => format!("RENAME TO {}, ADD {new} INT DEFAULT 6", self.new_table(client)),
        };
        format!("ALTER TABLE {table} {change}")
    }

    /// Views, triggers and routines.
    fn object(&mut self, client: &Client) -> String {
        let (a, b) = (self.table(client), self.table(client));
        match self.random.below(8) {
            0 => "DROP VIEW IF EXISTS v".to_owned(),
            1 | 2 => format!("CREATE VIEW v AS SELECT * FROM {a}"),
            3 => format!(
                "CREATE TRIGGER g AFTER INSERT ON {a} FOR EACH ROW DELETE FROM {b} WHERE id = NEW.id + 1"
            ),
            4 => "DROP TRIGGER IF EXISTS g".to_owned(),
            5 => format!(
                "CREATE PROCEDURE p(n INT) BEGIN INSERT IGNORE INTO {a} (id) VALUES (n); UPDATE {b} SET a = n; END"
            ),
            6 => "DROP PROCEDURE IF EXISTS p".to_owned(),
            _ => format!("CALL p({})", self.random.below(60)),
        }
    }

    /// What has to do with tables as a whole.
    fn other(&mut self, client: &Client) -> String {
        let table = self.table(client);
        match self.random.below(9) {
            0 => "CREATE DATABASE other".to_owned(),
            1 => "DROP DATABASE other".to_owned(),
            2 => "FLUSH TABLES".to_owned(),
            3 => format!("ANALYZE TABLE {table}"),
            4 => format!("OPTIMIZE TABLE {table}"),
            5 => "FLUSH BINARY LOGS".to_owned(),
            6 => format!("CREATE INDEX j ON {table} (a)"),
            7 => format!("REPAIR TABLE {table}"),
            _ => format!(
                "CREATE TABLE other.{} (id INT PRIMARY KEY)",
                self.random.pick(&TABLES[..4])
            ),
        }
    }

    fn rows(&mut self, client: &Client) -> String {
        let (a, b) = (self.table(client), self.table(client));
        let a = if self.random.chance(8) { "v".to_owned() } else { a };
        let x = self.column_of(client, &a);
        let mut id = || self.random.below(40);
        let (i, j, k) = (id(), id(), id());
        match self.random.below(20) {
            0..=4 => format!("INSERT IGNORE INTO {a} (id, {x}) VALUES ({i}, {j}), ({k}, {i})"),
            5 => format!("REPLACE INTO {a} (id, {x}) VALUES ({i}, {j})"),
            6 => format!("INSERT INTO {a} (id) VALUES ({i}) ON DUPLICATE KEY UPDATE {x} = {j}"),
            7 => format!("INSERT IGNORE INTO {a} (id, {x}) SELECT id + 1, {j} FROM {b}"),
            8..=9 => format!("UPDATE {a} SET {x} = {j} WHERE id < {i}"),
            10 => format!("UPDATE IGNORE {a} SET id = id + 1 WHERE id = {i}"),
            11 => format!("UPDATE {a} SET {x} = CONCAT({j}, 'é')"),
            12 => format!("UPDATE {a}, {b} SET {a}.{x} = {j} WHERE {a}.id = {b}.id"),
            13..=14 => format!("DELETE FROM {a} WHERE id > {i} LIMIT 3"),
            15 => format!("DELETE {a} FROM {a} JOIN {b} USING (id) WHERE id = {i}"),
            16 => format!("DELETE FROM {a}"),
            17 => format!(
                "LOAD DATA INFILE '{}' REPLACE INTO TABLE {a} (id, @x, @y) SET {x} = @x",
                self.file.display()
            ),
            18 => format!("INSERT INTO {a} SET id = {i}, {x} = 'it''s'"),
            _ => format!("UPDATE {a} SET {x} = {x} ORDER BY id LIMIT 2"),
        }
    }
}
