//! Names that servers allow and few people use.

use remora_peers::Kind;
use remora_source::mysql::{State, TableState};

use crate::pair::{Pair, quoted};

/// Names of columns: spaces, dots, quotes, line breaks, SQL's own words, names of ours.
const COLUMNS: [&str; 22] = [
    " x",
    "a.b",
    "a`b",
    "a\"b",
    "it's",
    "new\nline",
    "tab\there",
    "back\\slash",
    "e",
    "é",
    "_score",
    "rowid",
    "#copy:x",
    "*",
    "?",
    "%s",
    "select",
    ";",
    "-- x",
    "/* x */",
    "{\"json\":1}",
    "ﬁ ½ ｆｕｌｌ",
];

/// Names of tables.
const TABLES: [&str; 13] = [
    " t",
    "a.b",
    "a`b",
    "a\"b",
    "it's",
    "new\nline",
    "back\\slash",
    "#copy:others",
    "#copy:shop.others",
    "e",
    "é",
    "select",
    "/* x */",
];

fn create(name: &str) -> String {
    format!("CREATE TABLE {} (id INT PRIMARY KEY, v VARCHAR(20))", quoted(name))
}

/// A table with every odd column, copied and followed.
fn odd_columns_are_followed(kind: Kind) {
    let longest = "海".repeat(64);
    let names: Vec<&str> = COLUMNS.into_iter().chain([&*longest]).collect();
    let columns: Vec<_> =
        names.iter().map(|name| format!("{} VARCHAR(20)", quoted(name))).collect();
    let columns = columns.join(", ");
    let copied = format!("CREATE TABLE copied ({columns}, PRIMARY KEY (` x`, `a``b`))");
    let values: Vec<_> = (0..names.len()).map(|number| format!("'v{number}'")).collect();
    let values = values.join(", ");
    let mut pair = Pair::start(
        kind,
        &[
            "CREATE TABLE others (id INT AUTO_INCREMENT PRIMARY KEY)",
            &copied,
            &format!("INSERT INTO copied VALUES ({values})"),
        ],
    );
    pair.compare();
    assert_eq!(pair.rows("copied").len(), 1);
    pair.run("CREATE TABLE followed LIKE copied");
    pair.run("INSERT INTO followed SELECT * FROM copied");
    for name in &names {
        let name = quoted(name);
        pair.run(&format!("UPDATE followed SET {name} = CONCAT({name}, 'u')"));
    }
    pair.run("ALTER TABLE followed ADD ` added` INT, ADD `add``\ned` INT");
    pair.run("UPDATE followed SET ` added` = 3, `add``\ned` = 4");
    pair.compare();
    pair.others_go_on();
    pair.close();
    pair.run("DELETE FROM copied");
    pair.open();
    pair.compare();
}

#[test]
fn mariadb_10_11_odd_columns_are_followed() {
    odd_columns_are_followed(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_odd_columns_are_followed() {
    odd_columns_are_followed(Kind::MySql97);
}

/// Tables of every odd name, of before and made while following.
fn odd_tables_are_followed(kind: Kind) {
    // The servers' files have these names, in which a letter beyond ASCII takes several bytes.
    let longest = "é".repeat(64);
    let names: Vec<&str> = TABLES.into_iter().chain([&*longest, "E"]).collect();
    let mut statements: Vec<String> = names.iter().map(|name| create(name)).collect();
    for name in &names {
        statements.push(format!("INSERT INTO {} VALUES (1, 'one')", quoted(name)));
    }
    statements.push("CREATE TABLE others (id INT AUTO_INCREMENT PRIMARY KEY)".to_owned());
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let mut pair = Pair::start(kind, &statements);
    pair.compare();
    for name in &names {
        let table = quoted(name);
        pair.run(&format!("INSERT INTO {table} VALUES (2, 'two')"));
        pair.run(&format!("ALTER TABLE {table} ADD w INT DEFAULT 5"));
        pair.run(&format!("UPDATE {table} SET w = 6 WHERE id = 1"));
    }
    pair.compare();
    for name in &names {
        pair.run(&format!("DROP TABLE {}", quoted(name)));
        pair.run(&create(name));
        pair.run(&format!("INSERT INTO {} VALUES (3, 'three')", quoted(name)));
    }
    pair.compare();
    pair.others_go_on();
}

#[test]
fn mariadb_10_11_odd_tables_are_followed() {
    odd_tables_are_followed(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_odd_tables_are_followed() {
    odd_tables_are_followed(Kind::MySql97);
}

/// Two tables of a source whose names are one here: one is followed, the other named.
fn one_local_name_of_two_tables_is_refused(kind: Kind) {
    let mut pair = Pair::start_with(
        kind,
        &[],
        &[
            "CREATE DATABASE `shop.a`",
            "CREATE TABLE `shop.a`.`b` (id INT PRIMARY KEY)",
            "CREATE TABLE shop.`a.b` (id INT PRIMARY KEY)",
            "INSERT INTO `shop.a`.`b` VALUES (1)",
            "INSERT INTO shop.`a.b` VALUES (2), (3)",
            "CREATE DATABASE `#copy:shop`",
            "CREATE TABLE `#copy:shop`.others (id INT PRIMARY KEY)",
            "INSERT INTO `#copy:shop`.others VALUES (7)",
            "CREATE TABLE others (id INT AUTO_INCREMENT PRIMARY KEY)",
        ],
        |settings| settings.database = None,
    );
    pair.run("INSERT INTO `shop.a`.`b` VALUES (11)");
    pair.run("INSERT INTO shop.`a.b` VALUES (12), (13)");
    pair.run("INSERT INTO `#copy:shop`.others VALUES (8)");
    pair.others_go_on();
    for round in 0..2 {
        let ids = |rows: Vec<Vec<String>>| rows.concat().join(",");
        let (one, two) = ("1,11", "12,13,2,3");
        pair.wait("one of the tables", |_| {
            pair.database().schema("shop.a.b").is_ok()
                && [one, two].contains(&&*ids(pair.rows("a.b")))
        });
        assert!(matches!(pair.status().state, State::Running | State::Copying));
        assert_eq!(pair.rows("others").len(), round + 1);
        let refused = |table: &str| {
            pair.status().tables.into_iter().find_map(|one| match one.state {
                TableState::Refused(reason) if one.table == table => Some(reason),
                _ => None,
            })
        };
        assert!(refused("`#copy:shop`.`others`").unwrap().contains("rename its database"));
        let other = refused("`shop.a`.`b`").or_else(|| refused("`shop`.`a.b`")).unwrap();
        assert!(other.contains("is that of `shop"), "{other}");
        pair.close();
        pair.run("DELETE FROM `shop.a`.`b` WHERE id = 5");
        pair.open();
        pair.others_go_on();
    }
}

#[test]
fn mariadb_10_11_refuses_one_local_name_of_two_tables() {
    one_local_name_of_two_tables_is_refused(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_refuses_one_local_name_of_two_tables() {
    one_local_name_of_two_tables_is_refused(Kind::MySql97);
}
