//! What fails on the way into the engine.

use std::{
    thread,
    time::{Duration, Instant},
};

use remora_engine::Definition;
use remora_peers::Kind;
use remora_source::mysql::{State, TableState};

use crate::pair::{PATIENCE, Pair};

const TABLES: [&str; 2] = [
    "CREATE TABLE goods (id INT PRIMARY KEY, name VARCHAR(50))",
    "CREATE TABLE others (id INT PRIMARY KEY)",
];

/// A transaction whose batch fails must not be skipped by one that is behind it.
#[test]
fn nothing_is_applied_after_a_failed_batch() {
    let mut pair = Pair::start(Kind::MariaDb1011, &TABLES);
    pair.compare();
    let inserts = pair.status().inserts;
    // The writer stands still; behind it waits another table of the name, so that the batch that
    // was prepared for this one is refused.
    let held = pair.database().hold_writer().unwrap();
    let schema = pair.database().schema("shop.goods").unwrap();
    let database = pair.database().clone();
    let again = thread::spawn(move || {
        let definitions =
            vec![Definition::Drop("shop.goods".to_owned()), Definition::Create((*schema).clone())];
        database.define(definitions, Vec::new()).unwrap();
    });
    thread::sleep(Duration::from_millis(200));
    pair.run("INSERT INTO goods VALUES (1, 'must not be lost')");
    pair.wait("the first transaction", |status| status.inserts == inserts + 1);
    thread::sleep(Duration::from_millis(200));
    pair.run("INSERT INTO others VALUES (1)");
    pair.wait("the second transaction", |status| status.inserts == inserts + 2);
    thread::sleep(Duration::from_millis(200));
    drop(held);
    again.join().unwrap();
    let start = Instant::now();
    while pair.rows("goods").is_empty() || pair.rows("others").is_empty() {
        assert!(start.elapsed() < PATIENCE, "{:#?}", pair.status());
        thread::sleep(Duration::from_millis(5));
    }
    pair.compare();
}

/// A row larger than the limits stops its table; a transaction of which it is a part is applied
/// without it, and the table is copied when the row is gone.
#[test]
fn refused_row_stops_only_its_table() {
    let mut pair = Pair::start(Kind::MariaDb1011, &TABLES);
    pair.compare();
    pair.close();
    pair.options.max_row_bytes = 10_000;
    pair.open();
    pair.run("ALTER TABLE goods MODIFY name LONGTEXT");
    pair.run("INSERT INTO goods VALUES (1, 'small')");
    pair.compare();
    pair.run("START TRANSACTION");
    pair.run("INSERT INTO others VALUES (1)");
    pair.run("INSERT INTO goods VALUES (2, 'small too')");
    pair.run("INSERT INTO goods VALUES (3, REPEAT('large', 5000))");
    pair.run("COMMIT");
    pair.run("INSERT INTO others VALUES (2)");
    let stops = |pair: &Pair| {
        pair.wait("the end of a table", |_| match pair.state("goods") {
            Some(TableState::Stopped(reason)) => reason.contains("the limit is 10000"),
            _ => false,
        });
        pair.wait("the others to go on", |status| status.state == State::Running);
    };
    stops(&pair);
    let all = pair.executed();
    pair.follower().wait_for(&all, PATIENCE).unwrap();
    pair.compare_table("others");
    assert_eq!(pair.rows("goods"), [["1", "small"]]);
    // A copy cannot hold the row either.
    pair.follower().sync("shop.goods").unwrap();
    pair.wait("a copy", |_| !matches!(pair.state("goods"), Some(TableState::Stopped(_))));
    stops(&pair);
    pair.close();
    pair.open();
    stops(&pair);
    pair.run("DELETE FROM goods WHERE id = 3");
    pair.follower().sync("shop.goods").unwrap();
    pair.wait("a copy", |_| pair.rows("goods").len() == 2);
    pair.compare();
}
