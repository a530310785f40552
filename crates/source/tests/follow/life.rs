//! Life with a source that comes and goes.

use std::time::Instant;

use mysql::prelude::Queryable;
use remora_engine::{Database, Options};
use remora_peers::{Kind, Server, replicate};
use remora_source::{
    Error,
    mysql::{Follower, MysqlSettings, State, TableState},
};

use crate::pair::{PATIENCE, Pair};

const TABLE: [&str; 2] = [
    "CREATE TABLE goods (id INT PRIMARY KEY, name VARCHAR(50))",
    "INSERT INTO goods VALUES (1, 'one')",
];

fn survives_restarts(kind: Kind) {
    let mut pair = Pair::start(kind, &TABLE);
    pair.compare();
    for round in 2..5 {
        pair.run(&format!("INSERT INTO goods VALUES ({round}, 'before')"));
        match round {
            2 => pair.server.restart().unwrap(),
            3 => {
                pair.catch_up();
                pair.server.kill().unwrap();
                pair.server.restart().unwrap();
            }
            _ => {
                pair.close();
                pair.open();
            }
        }
        pair.reconnect();
        pair.run(&format!("UPDATE goods SET name = 'after' WHERE id = {round}"));
        pair.compare();
    }
    pair.follower().stop().unwrap();
    pair.wait("a stop", |status| status.state == State::Stopped);
    pair.run("DELETE FROM goods WHERE id = 1");
    assert_eq!(pair.rows("goods").len(), 4);
    pair.follower().resume().unwrap();
    pair.compare();
}

#[test]
fn mariadb_10_11_continues_after_restarts() {
    survives_restarts(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_continues_after_restarts() {
    survives_restarts(Kind::MySql97);
}

fn purged_binlogs_lead_to_copies(kind: Kind) {
    let mut pair = Pair::start(kind, &TABLE);
    pair.compare();
    pair.close();
    pair.run("INSERT INTO goods VALUES (2, 'two')");
    pair.run("DELETE FROM goods WHERE id = 1");
    pair.run("CREATE TABLE other (id INT PRIMARY KEY)");
    pair.run("INSERT INTO other VALUES (5)");
    pair.run("FLUSH BINARY LOGS");
    pair.run("FLUSH BINARY LOGS");
    let logs: Vec<mysql::Row> = pair.conn.query("SHOW BINARY LOGS").unwrap();
    let last: String = logs.last().unwrap().get(0).unwrap();
    pair.run("INSERT INTO goods VALUES (3, 'three')");
    pair.run(&format!("PURGE BINARY LOGS TO '{last}'"));
    pair.open();
    pair.wait("a session", |status| status.state == State::Running);
    pair.compare();
    pair.run("INSERT INTO goods VALUES (4, 'four')");
    pair.compare();
}

#[test]
fn mariadb_10_11_copies_after_purged_binlogs() {
    purged_binlogs_lead_to_copies(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_copies_after_purged_binlogs() {
    purged_binlogs_lead_to_copies(Kind::MySql97);
}

#[test]
fn mysql_9_7_fails_over() {
    failover_to_a_server_with_the_same_history_continues(Kind::MySql97);
}

#[test]
fn mariadb_10_11_fails_over() {
    failover_to_a_server_with_the_same_history_continues(Kind::MariaDb1011);
}

fn failover_to_a_server_with_the_same_history_continues(kind: Kind) {
    let options = |id: &'static str| [id, "--log-slave-updates=1"];
    let mut pair = Pair::start_with(kind, &options("--server-id=1"), &TABLE, |_| {});
    let replica = Server::start(kind, &options("--server-id=2")).unwrap();
    replicate(&pair.server, &replica).unwrap();
    pair.run("INSERT INTO goods VALUES (2, 'two')");
    pair.compare();
    let executed = pair.executed().to_string();
    pair.close();
    let mut conn = replica.connect().unwrap();
    let (wait, stop) = match kind.is_mariadb() {
        true => ("SELECT MASTER_GTID_WAIT(?, 60)", "STOP SLAVE"),
        false => ("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 60)", "STOP REPLICA"),
    };
    let waited: Option<i32> = conn.exec_first(wait, (executed,)).unwrap();
    assert_eq!(waited, Some(0));
    conn.query_drop(stop).unwrap();
    pair.settings.port = replica.port();
    let before = pair.status_uuid.clone();
    pair.server = replica;
    pair.open();
    pair.reconnect();
    pair.run("INSERT INTO goods VALUES (3, 'three')");
    pair.compare();
    if !kind.is_mariadb() {
        assert_ne!(before, pair.status().server_uuid);
    }
    let copied = pair.status().tables.iter().any(|table| table.state != TableState::Live);
    assert!(!copied);
}

#[test]
fn two_sources_feed_one_database() {
    let mut pair = Pair::start(Kind::MariaDb1011, &TABLE);
    let other = Server::start(Kind::MySql97, &[]).unwrap();
    let mut conn = other.connect().unwrap();
    conn.query_drop("CREATE DATABASE park").unwrap();
    conn.query_drop("CREATE TABLE park.trees (id INT PRIMARY KEY)").unwrap();
    conn.query_drop("INSERT INTO park.trees VALUES (7)").unwrap();
    conn.query_drop("CREATE DATABASE shop").unwrap();
    conn.query_drop("CREATE TABLE shop.goods (id INT PRIMARY KEY)").unwrap();
    pair.compare();
    let mut settings = MysqlSettings::from_url(&other.follower_url("")).unwrap();
    settings.name = "other".to_owned();
    let second = Follower::start(pair.database().clone(), settings).unwrap();
    let start = Instant::now();
    while pair.database().tables() != ["park.trees", "shop.goods"] {
        assert!(start.elapsed() < PATIENCE, "{:#?}", second.status());
    }
    conn.query_drop("INSERT INTO park.trees VALUES (8)").unwrap();
    pair.run("INSERT INTO goods VALUES (2, 'two')");
    pair.compare_table_after_catching_up("goods");
    while pair.database().statistics("park.trees").unwrap().rows != 2 {
        assert!(start.elapsed() < PATIENCE, "{:#?}", second.status());
    }
    // The name belongs to the first source.
    let tables = second.status().tables;
    let goods = tables.iter().find(|table| table.table == "shop.goods").unwrap();
    assert!(matches!(goods.state, TableState::Refused(_)), "{goods:?}");
    second.close();
}

#[test]
fn first_start_reports_configuration_errors() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), Options::default()).unwrap();
    let server = Server::start(Kind::MariaDb1011, &["--binlog-row-image=MINIMAL"]).unwrap();
    let start = |url: &str| {
        let settings = MysqlSettings::from_url(url).unwrap();
        Follower::start(database.clone(), settings).err().unwrap()
    };
    let url = server.follower_url("");
    assert!(matches!(start(&url), Error::Requirement { .. }));
    let wrong = url.replace("fins", "wrong");
    assert!(matches!(start(&wrong), Error::AccessDenied { .. }));
    drop(server);
    assert!(matches!(start(&url), Error::Unreachable { .. }));
}
