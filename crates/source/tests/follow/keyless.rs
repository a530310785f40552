//! Tables without a key: followed by their whole row images, equal rows counted.

use std::{
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use mysql::{Conn, prelude::Queryable};
use remora_engine::{Change, ChangeBatch, TableChanges, Value};
use remora_peers::{FOLLOWER_USER, Kind};
use remora_source::mysql::{
    TableState,
    schema::{SourceColumn, SourceType, read_table},
    values::from_select,
};

use crate::pair::{PATIENCE, Pair};

/// Columns of every type, each with values that come up again and again.
const COLUMNS: [(&str, &[&str]); 30] = [
    ("TINYINT", &["1", "-1", "NULL"]),
    ("SMALLINT UNSIGNED", &["1", "65535", "NULL"]),
    ("MEDIUMINT", &["-8388608", "7", "NULL"]),
    ("INT", &["1", "-2147483648", "NULL"]),
    ("BIGINT UNSIGNED", &["18446744073709551615", "0", "NULL"]),
    ("DECIMAL(20,5)", &["-12.5", "0", "99999999999999.99999"]),
    ("DECIMAL(40,10)", &["1e29", "-0.1", "0"]),
    ("FLOAT", &["0.1", "-0.0", "0", "3.4028e38", "16777217"]),
    ("DOUBLE", &["0.1", "-0.0", "0", "1e200", "-4.9e-300", "123456789.125"]),
    ("FLOAT(7,3)", &["1.2345", "0.1", "NULL"]),
    ("BIT(9)", &["b'101'", "b'111111111'", "NULL"]),
    ("YEAR", &["2024", "0", "1901"]),
    ("DATE", &["'2024-02-29'", "'0000-00-00'", "NULL"]),
    ("TIME(3)", &["'-838:59:59'", "'12:30:00.25'", "NULL"]),
    ("DATETIME(6)", &["'2024-01-01 00:00:00.000001'", "'0000-00-00'", "NULL"]),
    ("TIMESTAMP(2) NULL", &["'2024-06-01 12:00:00.5'", "'0000-00-00'", "NULL"]),
    ("CHAR(10)", &["'a'", "'a '", "''", "NULL", "'é '"]),
    ("VARCHAR(20)", &["'a'", "'a '", "''", "NULL", "'NULL'"]),
    ("VARCHAR(20) CHARACTER SET latin1", &["'Ö'", "'a'", "NULL"]),
    ("VARCHAR(20) CHARACTER SET sjis", &["'表'", "'ソ'", "NULL"]),
    ("VARCHAR(300) CHARACTER SET utf16", &["'🐟'", "'a'", "NULL"]),
    ("TEXT", &["'text'", "REPEAT('ab', 5000)", "NULL"]),
    ("BINARY(4)", &["'a'", "0x61000000", "0x61000001", "NULL"]),
    ("VARBINARY(20)", &["'a'", "0x6100", "''", "NULL"]),
    ("BLOB", &["0x00ff", "REPEAT('x', 3000)", "NULL"]),
    ("ENUM('z','y','')", &["'z'", "'y'", "''", "NULL"]),
    ("SET('c','b','a')", &["'c,a'", "''", "NULL"]),
    ("GEOMETRY", &["NULL"]),
    ("INT GENERATED", &[]),
    ("JSON", &["'{\"a\": [1, 2.50, null]}'", "'[]'", "NULL"]),
];

/// Numbers that look random and are the same every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn of<'t>(&mut self, values: &[&'t str]) -> &'t str {
        values[self.below(values.len())]
    }
}

/// The columns that a server has, with their names.
fn columns(kind: Kind) -> Vec<(String, &'static str, &'static [&'static str])> {
    let has = |declared: &str| match declared {
        "INT GENERATED" => false,
        "JSON" => kind != Kind::MySql56,
        _ => true,
    };
    let columns = COLUMNS.iter().filter(|(declared, _)| has(declared));
    columns.enumerate().map(|(at, (kind, values))| (format!("c{at}"), *kind, *values)).collect()
}

fn table(kind: Kind, name: &str, options: &str) -> String {
    let mut lines: Vec<_> =
        columns(kind).iter().map(|(name, declared, _)| format!("{name} {declared}")).collect();
    if kind != Kind::MySql56 {
        lines.push("v INT AS (c3 + 1) VIRTUAL".to_owned());
        lines.push("s INT AS (c0 + 1) STORED".to_owned());
    }
    format!("CREATE TABLE {name} ({}){options}", lines.join(", "))
}

/// Statements that insert, change and delete rows, equal ones among them.
fn statement(kind: Kind, name: &str, chance: &mut Chance) -> String {
    let columns = columns(kind);
    let condition = |chance: &mut Chance| {
        let (column, _, values) = &columns[chance.below(columns.len())];
        match chance.of(values) {
            "NULL" => format!("{column} IS NULL"),
            value => format!("{column} = {value}"),
        }
    };
    match chance.below(10) {
        0..5 => {
            let names: Vec<_> = columns.iter().map(|(name, ..)| name.as_str()).collect();
            let mut row = || {
                let values = columns.iter().map(|(_, _, values)| chance.of(values));
                format!("({})", values.collect::<Vec<_>>().join(", "))
            };
            let (one, other) = (row(), row());
            let names = names.join(", ");
            format!("INSERT IGNORE INTO {name} ({names}) VALUES {one}, {one}, {other}, {one}")
        }
        5..7 => {
            let (column, _, values) = &columns[chance.below(columns.len())];
            let value = chance.of(values);
            let condition = condition(chance);
            let limit = 1 + chance.below(3);
            format!("UPDATE IGNORE {name} SET {column} = {value} WHERE {condition} LIMIT {limit}")
        }
        7..9 => {
            let condition = condition(chance);
            format!("DELETE FROM {name} WHERE {condition} LIMIT {}", 1 + chance.below(2))
        }
        _ => {
            let names: Vec<_> = columns.iter().map(|(name, ..)| name.as_str()).collect();
            let names = names.join(", ");
            format!("INSERT INTO {name} ({names}) SELECT {names} FROM {name} LIMIT 2")
        }
    }
}

/// The table's number here: another one after a copy.
fn number(pair: &Pair, name: &str) -> u32 {
    pair.database().table_version(&format!("shop.{name}")).unwrap().table
}

/// Catches up and compares every row with a SELECT, read as copies read it: there are bytes.
fn compare_values(pair: &mut Pair, names: &[&str]) {
    pair.catch_up();
    for name in names {
        let source = read_table(&mut pair.conn, "shop", name).unwrap().unwrap();
        let statement = format!("SELECT {} FROM {name}", source.select_list());
        let rows: Vec<mysql::Row> = pair.conn.query(statement).unwrap();
        let shown = |(column, value): (&SourceColumn, mysql::Value)| {
            let value = from_select(column, value).unwrap();
            match (&column.kind, value) {
                // The engine shows as many digits as a FLOAT has.
                (SourceType::Float, Value::Float(number)) => {
                    Value::Float((number as f32).to_string().parse().unwrap()).to_string()
                }
                (_, value) => value.to_string(),
            }
        };
        let read = |row: mysql::Row| -> Vec<String> {
            source.columns.iter().zip(row.unwrap()).map(shown).collect()
        };
        let mut theirs: Vec<_> = rows.into_iter().map(read).collect();
        theirs.sort();
        let ours = pair.rows(name);
        if let Some((ours, theirs)) = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs)
        {
            panic!("{name}: {ours:?} here, {theirs:?} there");
        }
        assert_eq!(ours.len(), theirs.len(), "{name}");
    }
}

fn loosen(conn: &mut Conn) {
    conn.query_drop("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'").unwrap();
}

fn rows_of_every_type(kind: Kind) {
    const NAMES: [&str; 2] = ["t", "m"];
    let mut pair = Pair::start_with(kind, &[], &[], |settings| settings.chunk_rows = 7);
    loosen(&mut pair.conn);
    pair.run(&table(kind, "t", ""));
    pair.run(&table(kind, "m", " ENGINE=MyISAM"));
    let mut chance = Chance(7);
    let mut some = |pair: &mut Pair, names: &[&str], count: usize| {
        for _ in 0..count {
            for name in names {
                let statement = statement(kind, name, &mut chance);
                pair.run(&statement);
            }
        }
    };
    some(&mut pair, &NAMES, 150);
    compare_values(&mut pair, &NAMES);
    let numbers = [number(&pair, "t"), number(&pair, "m")];
    some(&mut pair, &NAMES, 150);
    pair.run("BEGIN");
    // MySQL takes no other tables into a transaction with GTIDs.
    let taken = if kind.is_mariadb() { &NAMES[..] } else { &NAMES[..1] };
    some(&mut pair, taken, 20);
    pair.run("ROLLBACK");
    compare_values(&mut pair, &NAMES);
    pair.close();
    some(&mut pair, &NAMES, 50);
    pair.open();
    compare_values(&mut pair, &NAMES);
    assert_eq!([number(&pair, "t"), number(&pair, "m")], numbers, "copied for no reason");
    // The rows of a copy are those of the stream: each goes by its row image.
    pair.close();
    pair.move_to(tempfile::tempdir().unwrap());
    pair.open();
    some(&mut pair, &NAMES, 50);
    compare_values(&mut pair, &NAMES);
    let numbers = [number(&pair, "t"), number(&pair, "m")];
    some(&mut pair, &NAMES, 100);
    pair.run("UPDATE IGNORE t SET c3 = 77, c17 = 'changed'");
    pair.run("DELETE FROM m ORDER BY c3 LIMIT 100");
    compare_values(&mut pair, &NAMES);
    pair.run("DELETE FROM t");
    pair.run("DELETE FROM m");
    compare_values(&mut pair, &NAMES);
    assert_eq!([number(&pair, "t"), number(&pair, "m")], numbers, "copied for no reason");
}

#[test]
fn mariadb_10_11_rows_of_every_type() {
    rows_of_every_type(Kind::MariaDb1011);
}

#[test]
fn mariadb_11_8_rows_of_every_type() {
    rows_of_every_type(Kind::MariaDb118);
}

#[test]
fn mysql_9_7_rows_of_every_type() {
    rows_of_every_type(Kind::MySql97);
}

#[test]
fn mysql_5_6_rows_of_every_type() {
    rows_of_every_type(Kind::MySql56);
}

/// Changes rows of a table of few different ones until told to stop. If the pauses grow, each is longer than the one
/// before: a copy without a lock waits for a time without changes, which must come on the slowest machine too.
fn load(mut conn: Conn, seed: u64, pause: Duration, grows: bool, end: &AtomicBool) {
    conn.query_drop("USE shop").unwrap();
    let (mut chance, mut pause) = (Chance(seed), pause);
    while !end.load(Ordering::Relaxed) {
        let (a, b) = (chance.below(40), chance.below(40));
        let statement = match chance.below(6) {
            0 | 1 => format!("INSERT INTO t VALUES ({a}, 'x{b}'), ({a}, 'x{b}'), ({b}, NULL)"),
            2 => format!("UPDATE t SET a = {b} WHERE a = {a} LIMIT 5"),
            3 => format!("UPDATE t SET v = NULL WHERE a = {a} LIMIT 3"),
            _ => format!("DELETE FROM t WHERE a = {a} LIMIT 4"),
        };
        // Who waits for another is told so now and then.
        let _ = conn.query_drop(statement);
        let waited = Instant::now();
        while waited.elapsed() < pause && !end.load(Ordering::Relaxed) {
            sleep(pause.min(Duration::from_millis(10)));
        }
        if grows {
            pause += pause / 10;
        }
    }
}

/// Tells the load to stop, whatever ends the test.
struct AtEnd<'e>(&'e AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn copied_under_load(kind: Kind, options: &str, may_lock: bool, pause: Duration) {
    let create = format!("CREATE TABLE t (a INT, v VARCHAR(20)){options}");
    let mut pair = Pair::start_with(kind, &[], &[&create], |settings| settings.chunk_rows = 100);
    if may_lock {
        pair.run(&format!("GRANT LOCK TABLES ON shop.* TO '{FOLLOWER_USER}'@'%'"));
    }
    pair.run("INSERT INTO t VALUES (1, 'x1'), (2, 'x2'), (2, 'x2'), (3, NULL), (4, 'x4')");
    for _ in 0..10 {
        pair.run("INSERT INTO t SELECT a * 7 % 41, v FROM t");
    }
    for round in 0..4 {
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _ended = AtEnd(&end);
            for seed in 0..3 {
                let (conn, end) = (pair.server.connect().unwrap(), &end);
                scope.spawn(move || load(conn, 3 * round + seed, pause, pause >= CALM, end));
            }
            pair.close();
            pair.move_to(tempfile::tempdir().unwrap());
            pair.settings.copy_rows_per_second = Some(20_000);
            pair.open();
            // Some copies are broken off and begun anew.
            sleep(Duration::from_millis(150 * round));
            pair.close();
            pair.open();
            let executed = pair.executed();
            pair.follower().wait_for(&executed, PATIENCE).unwrap();
            pair.wait("a copy", |status| {
                let live = status.tables.iter().all(|table| table.state == TableState::Live);
                live && !status.tables.is_empty()
            });
        });
    }
    pair.compare();
    pair.run("DELETE FROM t WHERE a % 2 = 0");
    pair.run("UPDATE t SET a = a + 1");
    pair.compare();
}

const BUSY: Duration = Duration::from_millis(1);
const CALM: Duration = Duration::from_millis(300);

#[test]
fn mariadb_10_11_copied_under_load() {
    copied_under_load(Kind::MariaDb1011, "", false, BUSY);
}

#[test]
fn mariadb_11_8_copied_under_load() {
    copied_under_load(Kind::MariaDb118, "", false, BUSY);
}

#[test]
fn mysql_9_7_copied_under_load() {
    copied_under_load(Kind::MySql97, "", true, BUSY);
}

#[test]
fn mysql_9_7_copied_under_load_without_a_lock() {
    copied_under_load(Kind::MySql97, "", false, CALM);
}

#[test]
fn mysql_5_6_copied_under_load() {
    copied_under_load(Kind::MySql56, "", true, BUSY);
}

#[test]
fn mysql_5_6_copied_without_a_lock() {
    copied_under_load(Kind::MySql56, "", false, Duration::from_secs(1));
}

#[test]
fn an_engine_without_transactions_copied_under_load() {
    copied_under_load(Kind::MariaDb1011, " ENGINE=MyISAM", true, BUSY);
}

#[test]
fn an_engine_without_transactions_copied_without_a_lock() {
    copied_under_load(Kind::MySql97, " ENGINE=MyISAM", false, Duration::from_secs(1));
}

/// Transactions larger than a batch, of rows that were there, that came in them, and of both.
fn large_transactions(kind: Kind) {
    let create = "CREATE TABLE t (a INT, v VARCHAR(20))";
    let mut pair = Pair::start(kind, &[create, "CREATE TABLE n (id INT PRIMARY KEY)"]);
    pair.run("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b'), (NULL, NULL)");
    for _ in 0..15 {
        pair.run("INSERT INTO t SELECT a + 1, v FROM t");
    }
    pair.run("BEGIN");
    pair.run("UPDATE t SET a = a + 100");
    pair.run("INSERT INTO n VALUES (1)");
    pair.run("DELETE FROM t WHERE a % 3 = 0");
    pair.run("INSERT INTO t SELECT a, v FROM t LIMIT 1000");
    pair.run("COMMIT");
    pair.compare();
    let before = number(&pair, "t");
    pair.run("BEGIN");
    pair.run("DELETE FROM t");
    pair.run("ROLLBACK");
    pair.run("UPDATE t SET v = 'c'");
    pair.compare();
    pair.close();
    pair.run("DELETE FROM t LIMIT 80000");
    pair.open();
    pair.compare();
    assert_eq!(number(&pair, "t"), before, "copied for no reason");
    // And while it is copied.
    pair.follower().sync("shop.t").unwrap();
    pair.run("UPDATE t SET v = 'd'");
    pair.run("DELETE FROM t LIMIT 10000");
    pair.compare();
}

#[test]
fn mariadb_10_11_large_transactions() {
    large_transactions(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_large_transactions() {
    large_transactions(Kind::MySql97);
}

fn definitions_change(kind: Kind) {
    let mut pair = Pair::start(kind, &["CREATE TABLE t (a INT, v VARCHAR(20))"]);
    for statement in [
        "INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b'), (NULL, NULL)",
        "ALTER TABLE t ADD INDEX (a)",
        "DELETE FROM t WHERE a = 1 LIMIT 1",
        "ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 5",
        "UPDATE t SET n = 6 WHERE a = 1",
        "ALTER TABLE t MODIFY a BIGINT, MODIFY v VARCHAR(100)",
        "DELETE FROM t WHERE a = 2",
        "ALTER TABLE t CHANGE v w VARCHAR(100)",
        "INSERT INTO t VALUES (3, 'c', 1), (3, 'c', 1), (3, 'c', 1)",
        "ALTER TABLE t DROP COLUMN n",
        "DELETE FROM t WHERE a = 3 LIMIT 2",
        "ALTER TABLE t MODIFY w VARCHAR(100) FIRST",
        "UPDATE t SET w = 'q' LIMIT 1",
        "ALTER TABLE t ADD COLUMN id INT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        "UPDATE t SET w = 'r' WHERE id = 1",
        "INSERT INTO t (w, a) VALUES ('s', 1), ('s', 1)",
        "ALTER TABLE t MODIFY id INT NOT NULL, DROP PRIMARY KEY",
        "INSERT INTO t VALUES ('s', 1, 7), ('s', 1, 7)",
        "DELETE FROM t WHERE id = 7 LIMIT 1",
        "ALTER TABLE t ADD UNIQUE (a)",
        "ALTER TABLE t DROP INDEX a_2",
        "RENAME TABLE t TO u",
        "INSERT INTO u SELECT * FROM u",
        "DELETE FROM u LIMIT 3",
        "TRUNCATE TABLE u",
        "INSERT INTO u VALUES ('x', 1, 1), ('x', 1, 1)",
        "DROP TABLE u",
        "CREATE TABLE u (a INT)",
        "INSERT INTO u VALUES (1), (1), (NULL), (NULL)",
        "DELETE FROM u WHERE a IS NULL LIMIT 1",
        "CREATE TABLE w AS SELECT * FROM u",
        "DELETE FROM w LIMIT 1",
    ] {
        // The unique keys do not fit all rows.
        let _ = pair.conn.query_drop(statement);
        pair.compare();
    }
}

#[test]
fn mariadb_10_11_definitions_change() {
    definitions_change(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_definitions_change() {
    definitions_change(Kind::MySql97);
}

/// A row that goes but is not here is a fault, and the table is copied anew.
#[test]
fn locally_missing_row_causes_a_copy() {
    let mut pair = Pair::start(Kind::MariaDb1011, &["CREATE TABLE t (a INT, v VARCHAR(20))"]);
    pair.run("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b'), (3, 'c')");
    for _ in 0..14 {
        pair.run("INSERT INTO t SELECT a + 1, v FROM t WHERE a < 30 LIMIT 20000");
    }
    pair.compare();
    let lose = |pair: &mut Pair| {
        // Nothing is known of its rows any more but what is stored.
        pair.close();
        pair.open();
        pair.catch_up();
        let table: Arc<str> = "shop.t".into();
        let hidden = pair.database().schema(&table).unwrap().hidden_key().unwrap();
        let mut key = None;
        pair.database()
            .scan(&table, &mut |row| {
                key.get_or_insert(row[hidden].clone());
                Ok(())
            })
            .unwrap();
        let changes = vec![Change::Delete(vec![key.unwrap()])];
        let tables = vec![TableChanges { table, changes }];
        pair.database().apply(ChangeBatch { tables, positions: Vec::new() }).unwrap();
        number(pair, "t")
    };
    let before = lose(&mut pair);
    pair.run("DELETE FROM t WHERE a < 3");
    pair.run("DELETE FROM t");
    pair.run("INSERT INTO t VALUES (1, 'a'), (1, 'a'), (2, 'b'), (3, 'c')");
    pair.compare();
    assert_ne!(number(&pair, "t"), before);
    for _ in 0..15 {
        pair.run("INSERT INTO t SELECT a + 1, v FROM t");
    }
    pair.compare();
    // In a transaction larger than a batch.
    let before = lose(&mut pair);
    pair.run("UPDATE t SET v = 'z'");
    pair.compare();
    assert_ne!(number(&pair, "t"), before);
}

/// The server makes a key that nobody asked for, and may hide it.
#[test]
fn generated_invisible_primary_key_is_used() {
    let options = [
        "--sql-generate-invisible-primary-key=ON",
        "--show-gipk-in-create-table-and-information-schema=OFF",
    ];
    let mut pair = Pair::start_with(Kind::MySql97, &options, &["CREATE TABLE t (a INT)"], |_| {});
    pair.run("INSERT INTO t VALUES (1), (1), (2), (NULL)");
    pair.run("DELETE FROM t WHERE a = 1 LIMIT 1");
    pair.run("UPDATE t SET a = 5 WHERE a IS NULL");
    pair.compare();
    assert_eq!(pair.database().schema("shop.t").unwrap().hidden_key(), None);
    pair.follower().sync("shop.t").unwrap();
    pair.run("INSERT INTO t VALUES (7)");
    pair.compare();
}

/// Children of a foreign key change with their parents, and the binlog does not say so.
#[test]
fn foreign_key_actions_are_applied() {
    let mut pair = Pair::start(
        Kind::MariaDb1011,
        &[
            "CREATE TABLE p (id INT PRIMARY KEY)",
            "CREATE TABLE c (p INT, v INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        ],
    );
    pair.run("INSERT INTO p VALUES (1), (2), (3)");
    pair.run("INSERT INTO c VALUES (1, 1), (1, 1), (2, 1), (3, 1), (NULL, 1)");
    pair.compare();
    pair.run("DELETE FROM p WHERE id = 1");
    pair.compare();
    pair.run("INSERT INTO c VALUES (2, 1), (2, 1)");
    pair.run("DELETE FROM p WHERE id = 2");
    pair.run("INSERT INTO c VALUES (3, 1)");
    pair.compare();
}
