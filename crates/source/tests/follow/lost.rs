//! Positions that are lost: the source was reset, restored, exchanged or purged.

use std::{
    fs,
    path::Path,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use mysql::prelude::Queryable;
use remora_peers::{Kind, Server};
use remora_source::mysql::{State, TableState, settings::OnLostPosition};

use crate::pair::{PATIENCE, Pair};

const TABLES: [&str; 4] = [
    "CREATE TABLE goods (id INT PRIMARY KEY, name VARCHAR(50))",
    "INSERT INTO goods VALUES (1, 'one')",
    "CREATE TABLE others (id INT PRIMARY KEY)",
    "INSERT INTO others VALUES (7), (8)",
];

/// What forgets a server's history.
fn reset(kind: Kind) -> &'static str {
    match kind {
        Kind::MySql97 => "RESET BINARY LOGS AND GTIDS",
        _ => "RESET MASTER",
    }
}

/// How often each table was copied.
fn copies(pair: &Pair) -> Vec<u64> {
    let tables = pair.status().tables.into_iter();
    tables.map(|table| table.copied.map_or(0, |copied| copied.times)).collect()
}

/// Waits until each table was copied so often, and compares.
fn compare_copied(pair: &mut Pair, times: u64) {
    let start = Instant::now();
    while copies(pair).iter().any(|copies| *copies < times) {
        assert!(start.elapsed() < PATIENCE, "{:#?}", pair.status());
        sleep(Duration::from_millis(5));
    }
    pair.compare();
    assert_eq!(pair.status().last_error, None);
}

/// The numbers of transactions begin again: seldom fewer than before when that is noticed.
fn a_reset_while_following(kind: Kind) {
    let mut pair = Pair::start(kind, &TABLES);
    compare_copied(&mut pair, 1);
    for (round, inserts) in [(2, 0), (3, 1), (4, 60)] {
        for number in 0..5 {
            pair.run(&format!("INSERT INTO goods VALUES ({}, 'before')", round * 1000 + number));
        }
        pair.compare();
        pair.run(reset(kind));
        for number in 0..inserts {
            let id = round * 1000 + 500 + number;
            pair.run(&format!("REPLACE INTO goods VALUES ({id}, 'after')"));
            pair.run(&format!("DELETE FROM goods WHERE id = {}", id - 500));
        }
        println!("round {round}");
        compare_copied(&mut pair, round);
        pair.run("UPDATE others SET id = id + 100");
        pair.compare();
    }
    assert_eq!(copies(&pair), [4, 4], "what is not lost is not copied");
}

#[test]
fn mariadb_10_11_copies_after_a_reset() {
    a_reset_while_following(Kind::MariaDb1011);
}

#[test]
fn mariadb_11_8_copies_after_a_reset() {
    a_reset_while_following(Kind::MariaDb118);
}

#[test]
fn mysql_9_7_copies_after_a_reset() {
    a_reset_while_following(Kind::MySql97);
}

#[test]
fn mysql_5_6_copies_after_a_reset() {
    a_reset_while_following(Kind::MySql56);
}

/// After the reset the source counts beyond what was followed, or not so far.
fn source_reset_while_stopped(kind: Kind) {
    for inserts in [0, 40] {
        a_reset_while_down_and(kind, inserts);
    }
}

fn a_reset_while_down_and(kind: Kind, inserts: u32) {
    let mut pair = Pair::start(kind, &TABLES);
    pair.run("INSERT INTO goods VALUES (2, 'two')");
    pair.compare();
    pair.close();
    // Binlog files know the second in which they were made.
    sleep(Duration::from_millis(1_100));
    pair.run(reset(kind));
    pair.run("DELETE FROM goods WHERE id = 1");
    pair.run("INSERT INTO others VALUES (9)");
    for number in 0..inserts {
        pair.run(&format!("INSERT INTO goods VALUES ({}, 'after')", 100 + number));
    }
    pair.open();
    compare_copied(&mut pair, 1);
    pair.run("INSERT INTO others VALUES (10)");
    pair.compare();
}

#[test]
fn mariadb_10_11_copies_after_a_reset_while_stopped() {
    source_reset_while_stopped(Kind::MariaDb1011);
}

#[test]
fn mariadb_11_8_copies_after_a_reset_while_stopped() {
    source_reset_while_stopped(Kind::MariaDb118);
}

#[test]
fn mysql_9_7_copies_after_a_reset_while_stopped() {
    source_reset_while_stopped(Kind::MySql97);
}

#[test]
fn mysql_5_6_copies_after_a_reset_while_stopped() {
    source_reset_while_stopped(Kind::MySql56);
}

/// Nobody tells its DROP any more.
fn a_table_dropped_where_the_position_is_lost(kind: Kind) {
    let mut pair = Pair::start(kind, &TABLES);
    pair.run("CREATE TABLE gone (id INT PRIMARY KEY)");
    pair.run("INSERT INTO gone VALUES (1)");
    pair.run("CREATE TABLE hidden (id INT PRIMARY KEY)");
    pair.compare();
    pair.close();
    sleep(Duration::from_millis(1_100));
    pair.run("DROP TABLE gone");
    pair.run(reset(kind));
    pair.run("INSERT INTO others VALUES (9)");
    pair.open();
    compare_copied(&mut pair, 1);
    assert_eq!(pair.state("gone"), None);
    assert!(pair.database().schema("shop.gone").is_err());
    pair.run("DROP TABLE hidden");
    pair.run(reset(kind));
    pair.run("INSERT INTO others VALUES (10)");
    compare_copied(&mut pair, 2);
    pair.run("CREATE TABLE gone (a INT PRIMARY KEY, b INT)");
    pair.run("INSERT INTO gone VALUES (2, 3)");
    pair.compare();
}

#[test]
fn mariadb_10_11_drops_what_went_with_the_position() {
    a_table_dropped_where_the_position_is_lost(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_drops_what_went_with_the_position() {
    a_table_dropped_where_the_position_is_lost(Kind::MySql97);
}

fn copy_directory(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

fn a_restored_backup(kind: Kind) {
    let mut pair = Pair::start(kind, &TABLES);
    pair.compare();
    let backup = tempfile::tempdir().unwrap();
    pair.server.stop().unwrap();
    copy_directory(&pair.server.data(), &backup.path().join("data"));
    pair.server.restart().unwrap();
    pair.reconnect();
    for number in 10..20 {
        pair.run(&format!("INSERT INTO goods VALUES ({number}, 'lost')"));
    }
    pair.compare();
    pair.server.stop().unwrap();
    fs::remove_dir_all(pair.server.data()).unwrap();
    copy_directory(&backup.path().join("data"), &pair.server.data());
    pair.server.restart().unwrap();
    pair.reconnect();
    pair.run("INSERT INTO goods VALUES (10, 'another')");
    compare_copied(&mut pair, 2);
}

#[test]
fn mariadb_10_11_copies_after_a_restored_backup() {
    a_restored_backup(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_copies_after_a_restored_backup() {
    a_restored_backup(Kind::MySql97);
}

/// Another server at the address, which never had what was followed.
fn another_server(kind: Kind) {
    let mut pair = Pair::start(kind, &TABLES);
    for number in 10..20 {
        pair.run(&format!("INSERT INTO goods VALUES ({number}, 'there')"));
    }
    pair.compare();
    pair.close();
    let other = Server::start(kind, &["--server-id=2"]).unwrap();
    let mut conn = other.connect().unwrap();
    conn.query_drop("CREATE DATABASE shop CHARACTER SET utf8mb4").unwrap();
    conn.query_drop("CREATE TABLE shop.goods (id INT PRIMARY KEY, name VARCHAR(50))").unwrap();
    conn.query_drop("CREATE TABLE shop.others (id INT PRIMARY KEY)").unwrap();
    conn.query_drop("INSERT INTO shop.goods VALUES (1, 'here')").unwrap();
    pair.settings.port = other.port();
    pair.server = other;
    pair.open();
    pair.reconnect();
    compare_copied(&mut pair, 1);
}

#[test]
fn mariadb_10_11_copies_after_a_change_of_server() {
    another_server(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_copies_after_a_change_of_server() {
    another_server(Kind::MySql97);
}

/// Where nothing is to be copied by itself, following stops and says so; any SYNC copies all.
fn lost_position_with_stop_copies_nothing(kind: Kind) {
    let stop = |settings: &mut remora_source::mysql::MysqlSettings| {
        settings.on_lost_position = OnLostPosition::Stop;
    };
    let mut pair = Pair::start_with(kind, &[], &TABLES, stop);
    pair.run("INSERT INTO goods VALUES (2, 'two')");
    compare_copied(&mut pair, 1);
    pair.run(reset(kind));
    pair.run("DELETE FROM goods");
    let fails = |pair: &Pair| {
        pair.wait("a failure", |status| match &status.state {
            State::Failed(reason) => {
                reason.contains("on_lost_position is stop") && reason.contains("reset")
                    || reason.contains("does not have")
            }
            _ => false,
        });
    };
    fails(&pair);
    assert_eq!(pair.rows("goods").len(), 2);
    assert!(pair.status().last_error.unwrap().1.contains("on_lost_position"));
    let paused = TableState::Paused { why: "following failed", copying: false };
    assert_eq!(pair.state("goods"), Some(paused));
    pair.follower().sync("shop.others").unwrap();
    compare_copied(&mut pair, 2);
    pair.run("INSERT INTO goods VALUES (3, 'three')");
    pair.compare();
}

#[test]
fn mariadb_10_11_stops_at_a_lost_position() {
    lost_position_with_stop_copies_nothing(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_stops_at_a_lost_position() {
    lost_position_with_stop_copies_nothing(Kind::MySql97);
}

/// A position of GTIDs passes over what was logged without one.
#[test]
fn transactions_without_a_gtid_are_not_passed_over() {
    let mut pair = Pair::start(Kind::MySql97, &TABLES);
    compare_copied(&mut pair, 1);
    let off = ["ON_PERMISSIVE", "OFF_PERMISSIVE"];
    let on = ["ON_PERMISSIVE", "ON"];
    for (round, is_open) in [(2_u64, true), (3, false)] {
        if !is_open {
            pair.close();
        }
        let set = |pair: &mut Pair, modes: [&str; 2]| {
            modes.iter().for_each(|mode| pair.run(&format!("SET GLOBAL gtid_mode = {mode}")));
        };
        set(&mut pair, off);
        pair.run(&format!("INSERT INTO goods VALUES ({round}, 'without')"));
        pair.run("UPDATE others SET id = id + 100");
        set(&mut pair, on);
        pair.run(&format!("INSERT INTO goods VALUES ({round}0, 'with')"));
        if !is_open {
            pair.open();
        }
        // Until the loss is noticed the tables can be live without the rows.
        let start = Instant::now();
        let without = round.to_string();
        while !pair.rows("goods").iter().any(|row| row[0] == without) {
            assert!(start.elapsed() < PATIENCE, "{:#?}", pair.status());
            sleep(Duration::from_millis(20));
        }
        pair.compare();
    }
    // Nothing is copied once more.
    pair.close();
    pair.run("FLUSH BINARY LOGS");
    pair.open();
    pair.run("INSERT INTO goods VALUES (99, 'more')");
    pair.compare();
    assert_eq!(copies(&pair), [0, 0], "{:#?}", pair.status());
}
