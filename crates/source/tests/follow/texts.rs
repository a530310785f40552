//! Texts that are no Unicode, which older servers and MariaDB let in.

use remora_peers::Kind;
use remora_source::mysql::TableState;

use crate::pair::Pair;

const TABLES: [&str; 3] = [
    "CREATE TABLE good (id INT PRIMARY KEY, v VARCHAR(20))",
    "CREATE TABLE bad (a INT, b VARCHAR(9), v VARCHAR(20) CHARACTER SET utf8, PRIMARY KEY (a, b))",
    "CREATE TABLE wide (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET ucs2)",
];

fn stopped(pair: &Pair, name: &str) -> String {
    pair.wait("a stopped table", |_| matches!(pair.state(name), Some(TableState::Stopped(_))));
    match pair.state(name) {
        Some(TableState::Stopped(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

/// What a reason must name.
fn names(reason: &str, parts: &[&str]) {
    for part in parts {
        assert!(reason.contains(part), "{part} in {reason}");
    }
}

fn texts_that_are_none_are_refused_by_name(kind: Kind) {
    let mut pair = Pair::start(kind, &TABLES);
    pair.compare();
    for table in ["good", "bad (a, b, v)", "wide"] {
        let b = if table.starts_with("bad") { "'x'," } else { "" };
        pair.run(&format!("INSERT INTO {table} VALUES (1, {b} 'one')"));
    }
    pair.compare();
    // Of the stream.
    pair.run("INSERT INTO bad VALUES (7, 'k', x'61eda080'), (8, 'l', 'eight')");
    let reason = stopped(&pair, "bad");
    names(&reason, &["column \"v\"", "(7, k)", "0x61EDA080", "copy the table again"]);
    pair.run("UPDATE wide SET v = x'0061d800' WHERE id = 1");
    names(&stopped(&pair, "wide"), &["column \"v\"", "(1)", "no Unicode"]);
    // The last good state stays, nothing of it is another text; the other table goes on.
    assert_eq!(pair.rows("bad"), [["1", "x", "one"]]);
    pair.run("INSERT INTO good VALUES (2, 'two')");
    pair.wait("the other table", |_| pair.rows("good").len() == 2);
    pair.run("UPDATE bad SET v = 'mended' WHERE a = 7");
    pair.run("UPDATE wide SET v = 'mended'");
    pair.follower().sync("shop.bad").unwrap();
    pair.follower().sync("shop.wide").unwrap();
    pair.compare();
    // Of a copy.
    pair.close();
    pair.run("INSERT INTO bad VALUES (9, 'm', x'edb080')");
    pair.settings.name = "again".to_owned();
    pair.move_to(tempfile::tempdir().unwrap());
    pair.open();
    let reason = stopped_or_refused(&pair, "bad");
    names(&reason, &["column \"v\"", "(9, m)", "0xEDB080"]);
    pair.wait("the other tables", |_| {
        ["good", "wide"].iter().all(|name| pair.state(name) == Some(TableState::Live))
    });
    pair.compare_table("good");
    pair.run("DELETE FROM bad WHERE a = 9");
    pair.follower().sync("shop.bad").unwrap();
    pair.compare();
    // Of a default, which the rows that were there get.
    pair.run("ALTER TABLE good ADD w VARCHAR(9) CHARACTER SET utf8 DEFAULT x'eda080'");
    names(&stopped_or_refused(&pair, "good"), &["column \"w\"", "(1)", "0xEDA080"]);
    pair.run("UPDATE good SET w = 'mended'");
    pair.follower().sync("shop.good").unwrap();
    pair.compare();
    // Of a definition.
    let labels = "ENUM('a', x'eda080') CHARACTER SET utf8";
    pair.run(&format!("CREATE TABLE labels (id INT PRIMARY KEY, v {labels})"));
    names(&stopped_or_refused(&pair, "labels"), &["column \"v\"", "labels are no Unicode"]);
}

fn stopped_or_refused(pair: &Pair, name: &str) -> String {
    let reason = |state| match state {
        Some(TableState::Stopped(reason) | TableState::Refused(reason)) => Some(reason),
        _ => None,
    };
    pair.wait("a table that is not copied", |_| reason(pair.state(name)).is_some());
    reason(pair.state(name)).unwrap()
}

#[test]
fn mariadb_10_11_texts() {
    texts_that_are_none_are_refused_by_name(Kind::MariaDb1011);
}

#[test]
fn mysql_5_6_texts() {
    texts_that_are_none_are_refused_by_name(Kind::MySql56);
}
