//! Values, keys and columns at the servers' limits.

use remora_peers::Kind;
use remora_source::mysql::{State, TableState};

use crate::pair::Pair;

const OTHERS: &str = "CREATE TABLE others (id INT AUTO_INCREMENT PRIMARY KEY)";

/// A column that was short holds a value that no index of short values takes.
fn column_that_grows_long_is_followed(kind: Kind) {
    let mut pair = Pair::start(
        kind,
        &[
            OTHERS,
            "CREATE TABLE goods (id INT PRIMARY KEY, a VARCHAR(100), b VARCHAR(50))",
            "INSERT INTO goods VALUES (1, 'one', 'b')",
        ],
    );
    pair.compare();
    pair.run("ALTER TABLE goods MODIFY a LONGTEXT");
    pair.compare();
    let indexed = |pair: &Pair| pair.database().schema("shop.goods").unwrap().columns[1].indexed;
    assert!(indexed(&pair));
    pair.run("INSERT INTO goods VALUES (2, REPEAT('x', 1048577), NULL)");
    pair.others_go_on();
    pair.compare();
    assert!(!indexed(&pair));
    pair.close();
    // The same while the table is copied, and by an update of many rows at once.
    pair.run("CREATE TABLE more (id INT PRIMARY KEY, a VARCHAR(100))");
    pair.run("INSERT INTO more VALUES (1, 'one'), (2, 'two')");
    pair.run("ALTER TABLE more MODIFY a LONGTEXT");
    pair.run("UPDATE more SET a = REPEAT(a, 700000)");
    pair.open();
    pair.others_go_on();
    pair.compare();
    pair.run("UPDATE goods SET a = CONCAT(a, 'y'), b = 'c'");
    pair.compare();
    assert_eq!(pair.status().state, State::Running);
}

#[test]
fn mariadb_10_11_follows_a_column_that_grows_long() {
    column_that_grows_long_is_followed(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_follows_a_column_that_grows_long() {
    column_that_grows_long_is_followed(Kind::MySql97);
}

/// The longest decimals, copied and followed; what they are called here.
fn decimals(kind: Kind, types: &[&str]) {
    let mut statements = vec![OTHERS.to_owned()];
    for (number, kind) in types.iter().enumerate() {
        statements.push(format!("CREATE TABLE d{number} (k {kind} PRIMARY KEY, v {kind})"));
        statements.push(format!("INSERT INTO d{number} VALUES (0, NULL), (-0.6, 0.5)"));
    }
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let mut pair = Pair::start(kind, &statements);
    pair.run("SET sql_mode = ''");
    pair.compare();
    for number in 0..types.len() {
        pair.run(&format!("INSERT INTO d{number} VALUES (1e66, -1e66), (-1e66, 1e-38)"));
        pair.run(&format!("UPDATE d{number} SET v = 1 / 3"));
        pair.run(&format!("UPDATE d{number} SET v = k, k = k / 7 WHERE k > 0"));
        pair.run(&format!("CREATE TABLE c{number} (id INT PRIMARY KEY) SELECT 1 AS id, v FROM d{number} WHERE k < -1 LIMIT 1"));
    }
    pair.compare();
    pair.others_go_on();
}

#[test]
fn mariadb_10_11_decimals() {
    let types =
        ["DECIMAL(40,31)", "DECIMAL(65,38)", "DECIMAL(38,38)", "DECIMAL(65,0)", "DECIMAL(65,30)"];
    decimals(Kind::MariaDb1011, &types);
}

#[test]
fn mysql_9_7_decimals() {
    decimals(Kind::MySql97, &["DECIMAL(65,30)", "DECIMAL(30,30)", "DECIMAL(65,0)"]);
}

/// Columns that a server makes of expressions of many digits.
fn expressions_as_columns(kind: Kind) {
    let mut pair = Pair::start(kind, &[OTHERS]);
    pair.run("SET sql_mode = ''");
    let ones = "1".repeat(81);
    for (number, expression) in [
        ones.clone(),
        format!("{ones}.5"),
        format!("0.{ones}"),
        format!("SUM({ones})"),
        format!("AVG(0.{ones})"),
        format!("ROUND({ones}, 30)"),
        "SUM(CAST(1 AS DECIMAL(65,0)))".to_owned(),
        "CAST(1 AS DECIMAL(65,30)) * CAST(1 AS DECIMAL(65,30))".to_owned(),
        "CAST(1 AS DECIMAL(65,30)) / 3".to_owned(),
        "18446744073709551615 * 1.5".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        pair.run(&format!(
            "CREATE TABLE e{number} (id INT PRIMARY KEY) SELECT 1 AS id, {expression} AS v"
        ));
        pair.run(&format!("INSERT INTO e{number} SELECT 2, {expression}"));
    }
    pair.compare();
    pair.others_go_on();
}

#[test]
fn mariadb_10_11_expressions_as_columns() {
    expressions_as_columns(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_expressions_as_columns() {
    expressions_as_columns(Kind::MySql97);
}

/// A key of as many columns as the server takes, and keys that are longer in UTF-8.
fn long_keys(kind: Kind, parts: usize) {
    let columns =
        |kind: &str| -> String { (0..parts).map(|part| format!("k{part} {kind}, ")).collect() };
    let key = (0..parts).map(|part| format!("k{part}")).collect::<Vec<_>>().join(", ");
    let mut pair = Pair::start(
        kind,
        &[
            OTHERS,
            &format!("CREATE TABLE parts ({} v INT, PRIMARY KEY ({key}))", columns("TINYINT")),
            &format!("INSERT INTO parts SELECT {} 1", "1, ".repeat(parts)),
            "CREATE TABLE letters (k VARCHAR(3000) CHARACTER SET latin1 PRIMARY KEY, v INT)",
            "INSERT INTO letters VALUES (REPEAT('é', 3000), 1), ('a', 2)",
            "CREATE TABLE kana (k VARCHAR(700) CHARACTER SET sjis, l VARBINARY(1500), v INT, \
             PRIMARY KEY (l, k))",
            "INSERT INTO kana VALUES (REPEAT('ｱ', 700), REPEAT(0x00, 1500), 1)",
        ],
    );
    pair.catch_up();
    pair.run("UPDATE parts SET k3 = 5, v = 2");
    pair.run(&format!("INSERT INTO parts SELECT {} 3", "2, ".repeat(parts)));
    pair.run("INSERT INTO letters VALUES (REPEAT('ü', 3000), 3)");
    pair.run("UPDATE letters SET v = v + 10");
    pair.run("DELETE FROM letters WHERE v = 11");
    pair.run("UPDATE kana SET v = 4");
    pair.run("INSERT INTO kana VALUES (REPEAT('ｲ', 700), REPEAT(0x00, 1500), 1)");
    pair.run("DELETE FROM kana WHERE v = 4");
    pair.catch_up();
    pair.compare_table("parts");
    pair.compare_table("letters");
    let live = |name: &str| pair.state(name) == Some(TableState::Live);
    assert!(live("kana") && pair.rows("kana").len() == 1);
    pair.others_go_on();
}

#[test]
fn mariadb_10_11_long_keys() {
    long_keys(Kind::MariaDb1011, 32);
}

#[test]
fn mysql_9_7_long_keys() {
    long_keys(Kind::MySql97, 16);
}

/// As many columns as a server takes, very many labels, and a definition of megabytes.
fn wide_tables(kind: Kind) {
    let count = if kind.is_mariadb() { 2_500 } else { 4_000 };
    let columns: Vec<_> = (0..count).map(|number| format!("c{number} TINYINT")).collect();
    let labels: Vec<_> = (0..5_000).map(|number| format!("'label {number}'")).collect();
    let mut pair = Pair::start(
        kind,
        &[
            OTHERS,
            &format!(
                "CREATE TABLE wide (id INT PRIMARY KEY, {}) ENGINE=MyISAM",
                columns.join(", ")
            ),
            "INSERT INTO wide (id, c7) VALUES (1, 2)",
            &format!("CREATE TABLE labels (id INT PRIMARY KEY, e ENUM({}))", labels.join(", ")),
            "INSERT INTO labels VALUES (1, 'label 4999')",
        ],
    );
    pair.compare();
    pair.run("INSERT INTO wide (id, c9) VALUES (2, 3)");
    pair.run("UPDATE labels SET e = 'label 3'");
    pair.run(&format!("CREATE TABLE again (id INT PRIMARY KEY, e ENUM({}))", labels.join(", ")));
    pair.run("INSERT INTO again VALUES (1, 'label 77')");
    let texts: Vec<_> = (0..150).map(|number| format!("t{number} TEXT")).collect();
    pair.run(&format!("CREATE TABLE texts (id INT PRIMARY KEY, {})", texts.join(", ")));
    pair.run("INSERT INTO texts (id, t149) VALUES (1, 'last')");
    pair.compare();
    pair.others_go_on();
}

#[test]
fn mariadb_10_11_wide_tables() {
    wide_tables(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_wide_tables() {
    wide_tables(Kind::MySql97);
}

/// ENUM and SET of bytes.
fn binary_enum_labels_are_followed(kind: Kind) {
    let mut pair = Pair::start(
        kind,
        &[
            OTHERS,
            "CREATE TABLE goods (id INT PRIMARY KEY, e ENUM('a', 'b', 'é') CHARACTER SET binary, \
             s SET('x', 'y', 'é') CHARACTER SET binary)",
            "INSERT INTO goods VALUES (1, 'a', 'x,y'), (2, 'é', 'é'), (3, NULL, '')",
        ],
    );
    pair.compare();
    pair.run("INSERT INTO goods VALUES (4, 'é', 'x,é'), (5, 'b', 'y')");
    pair.run("UPDATE goods SET e = 'é', s = 'y,é' WHERE id = 1");
    pair.run("CREATE TABLE keyed (e ENUM('b', 'a', 'é') CHARACTER SET binary PRIMARY KEY, v INT)");
    pair.run("INSERT INTO keyed VALUES ('a', 1), ('é', 2), ('b', 3)");
    pair.run("UPDATE keyed SET v = v + 1");
    pair.compare();
    pair.others_go_on();
}

#[test]
fn mariadb_10_11_follows_binary_enum_labels() {
    binary_enum_labels_are_followed(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_follows_binary_enum_labels() {
    binary_enum_labels_are_followed(Kind::MySql97);
}

/// MySQL loses the letters of an ENUM that it converts to `ucs2`: its members are equal then, and so are keys here.
#[test]
fn mysql_9_7_members_that_become_equal_stop_their_table() {
    let tables = [
        OTHERS,
        "CREATE TABLE kinds (a INT, e ENUM('a', 'b', 'c'), PRIMARY KEY (a, e))",
        "INSERT INTO kinds VALUES (1, 'a'), (1, 'b'), (2, 'a'), (2, 'b')",
        "CREATE TABLE plain (a INT PRIMARY KEY, e ENUM('a', 'b'))",
        "INSERT INTO plain VALUES (1, 'a'), (2, 'b')",
    ];
    let mut pair = Pair::start(Kind::MySql97, &tables);
    pair.compare();
    pair.run("ALTER TABLE kinds CONVERT TO CHARACTER SET ucs2");
    pair.run("ALTER TABLE plain CONVERT TO CHARACTER SET ucs2");
    assert!(pair.reason("kinds").contains("two members of e in its key are equal"));
    assert_eq!(pair.rows("kinds").len(), 4);
    pair.others_go_on();
    pair.wait("a copy", |_| pair.state("plain") == Some(TableState::Live));
    pair.compare_table("plain");
    pair.close();
    pair.move_to(tempfile::tempdir().unwrap());
    pair.open();
    assert!(pair.reason("kinds").contains("MODIFY that column"));
    pair.others_go_on();
}
