//! Copies, and what happens meanwhile.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use mysql::{Conn, prelude::Queryable};
use remora_peers::Kind;
use remora_source::mysql::TableState;

use crate::pair::Pair;

const TABLES: [&str; 3] = [
    "CREATE TABLE goods (id INT PRIMARY KEY, name VARCHAR(100), body TEXT, price DECIMAL(8,2))",
    "CREATE TABLE pairs (a VARCHAR(20), b BIGINT UNSIGNED, c INT, PRIMARY KEY (a, b))",
    "CREATE TABLE notes (id BIGINT AUTO_INCREMENT PRIMARY KEY, note TEXT)",
];

fn fill(conn: &mut Conn, rows: usize) {
    let mut goods = Vec::new();
    let mut pairs = Vec::new();
    for number in 0..rows {
        goods.push(format!("({number}, 'name {number}', 'the body of {number}', {number}.25)"));
        pairs.push(format!("('k{}', {number}, {})", number % 7, number * 3));
    }
    for chunk in goods.chunks(1_000) {
        conn.query_drop(format!("INSERT INTO goods VALUES {}", chunk.join(","))).unwrap();
    }
    for chunk in pairs.chunks(1_000) {
        conn.query_drop(format!("INSERT INTO pairs VALUES {}", chunk.join(","))).unwrap();
    }
}

/// Changes of every kind, key changes and roll-backs too.
fn write(conn: &mut Conn, step: usize, rows: usize) {
    let id = step * 7_919 % rows;
    let other = rows + step;
    let statements = [
        "START TRANSACTION".to_owned(),
        format!("UPDATE goods SET name = 'changed {step}', price = {step} WHERE id = {id}"),
        format!("DELETE FROM goods WHERE id = {}", (id + 1) % rows),
        format!("INSERT INTO goods VALUES ({other}, 'new {step}', 'fresh body {step}', NULL)"),
        format!("UPDATE goods SET id = {} WHERE id = {}", other + 1_000_000, (id + 2) % rows),
        format!("UPDATE pairs SET b = b + 1000000 WHERE a = 'k3' AND b = {}", (id + 3) % rows),
        format!("DELETE FROM pairs WHERE b = {}", (id + 4) % rows),
        format!("INSERT INTO notes (note) VALUES ('note {step}')"),
        if step % 5 == 4 { "ROLLBACK" } else { "COMMIT" }.to_owned(),
    ];
    for statement in statements {
        conn.query_drop(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn copies_under_load(kind: Kind) {
    const ROWS: usize = 20_000;
    let mut pair = Pair::start_with(kind, &[], &TABLES, |settings| settings.chunk_rows = 500);
    pair.compare();
    pair.close();
    fill(&mut pair.conn, ROWS);
    // Applied from the stream, as both tables were there.
    pair.open();
    pair.compare();
    // Copied beside what is there while everything changes.
    let running = AtomicBool::new(true);
    let mut writer = pair.server.connect().unwrap();
    writer.query_drop("USE shop").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut step = 0;
            while running.load(Ordering::SeqCst) && step < 5_000 {
                write(&mut writer, step, ROWS);
                step += 1;
            }
        });
        for _ in 0..2 {
            for table in ["shop.goods", "shop.pairs", "shop.notes"] {
                pair.follower().sync(table).unwrap();
            }
            pair.wait("the beginning of the copies", |status| {
                status.tables.iter().any(|table| table.state != TableState::Live)
            });
            pair.wait("the end of the copies", |status| {
                status.tables.iter().all(|table| table.state == TableState::Live)
            });
        }
        running.store(false, Ordering::SeqCst);
    });
    pair.compare();
}

fn first_copy_under_load(kind: Kind) {
    const ROWS: usize = 20_000;
    let mut pair = Pair::start_with(kind, &[], &TABLES, |settings| settings.chunk_rows = 700);
    pair.close();
    fill(&mut pair.conn, ROWS);
    // Another name: everything is copied for the first time.
    pair.settings.name = "again".to_owned();
    let (running, mut writer) = (AtomicBool::new(true), pair.server.connect().unwrap());
    writer.query_drop("USE shop").unwrap();
    let fresh = tempfile::tempdir().unwrap();
    pair.move_to(fresh);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut step = 0;
            while running.load(Ordering::SeqCst) && step < 5_000 {
                write(&mut writer, step, ROWS);
                step += 1;
            }
        });
        pair.open();
        // Killed in the middle, as far as the store can tell: the copies go on where they were.
        std::thread::sleep(std::time::Duration::from_millis(300));
        pair.close();
        pair.open();
        pair.wait("all tables", |status| {
            status.tables.len() == 3
                && status.tables.iter().all(|table| table.state == TableState::Live)
        });
        running.store(false, Ordering::SeqCst);
    });
    pair.compare();
}

#[test]
fn mariadb_10_11_is_copied_under_load() {
    copies_under_load(Kind::MariaDb1011);
    first_copy_under_load(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_is_copied_under_load() {
    copies_under_load(Kind::MySql97);
    first_copy_under_load(Kind::MySql97);
}

#[test]
fn mysql_5_6_is_copied_under_load() {
    copies_under_load(Kind::MySql56);
}

#[test]
fn a_transaction_larger_than_a_batch_is_visible_whole() {
    let statements = ["CREATE TABLE many (id INT PRIMARY KEY, a INT, note VARCHAR(50))"];
    let mut pair = Pair::start(Kind::MariaDb1011, &statements);
    pair.compare();
    pair.run("INSERT INTO many SELECT seq, seq, CONCAT('note ', seq) FROM seq_1_to_300000");
    pair.catch_up();
    assert_eq!(pair.database().statistics("shop.many").unwrap().rows, 300_000);
    pair.run("START TRANSACTION");
    pair.run("UPDATE many SET a = a + 1");
    pair.run("ROLLBACK");
    pair.run("DELETE FROM many WHERE id % 3 = 0");
    pair.run("UPDATE many SET id = id + 1000000 WHERE id % 3 = 1");
    pair.compare();
}

/// Many rows that take their time: a copy of them is given up, and the table stays as it was.
#[test]
fn a_copy_is_cancelled() {
    let mut pair = Pair::start_with(Kind::MariaDb1011, &[], &TABLES, |settings| {
        settings.chunk_rows = 50;
        settings.copy_rows_per_second = Some(100);
    });
    pair.compare();
    fill(&mut pair.conn, 2_000);
    pair.compare();
    pair.follower().sync("shop.goods").unwrap();
    pair.follower().sync("shop.pairs").unwrap();
    pair.wait("the beginning of the copies", |_| {
        let copied =
            |name| matches!(pair.state(name), Some(TableState::Copying { rows, .. }) if rows > 0);
        copied("goods") && copied("pairs")
    });
    assert!(pair.follower().sync("shop.goods").is_err());
    pair.run("UPDATE goods SET name = 'meanwhile' WHERE id < 100");
    assert_eq!(pair.follower().cancel_sync(Some("shop.goods")), 1);
    pair.wait("the end of one", |_| pair.state("goods") == Some(TableState::Live));
    assert!(matches!(pair.state("pairs"), Some(TableState::Copying { .. })));
    assert_eq!(pair.follower().cancel_sync(None), 1);
    assert_eq!(pair.follower().cancel_sync(Some("shop.notes")), 0);
    pair.compare();
    assert!(pair.database().schema("#copy:shop.goods").is_err());
}

/// No more rows are read than the settings allow: 2,000 of them take two seconds, less one chunk.
#[test]
fn copy_respects_its_rate_limit() {
    let mut pair = Pair::start_with(Kind::MariaDb1011, &[], &TABLES[..1], |settings| {
        settings.chunk_rows = 100;
        settings.copy_rows_per_second = Some(1_000);
    });
    pair.run(TABLES[1]);
    fill(&mut pair.conn, 2_000);
    pair.compare();
    let start = Instant::now();
    pair.follower().sync("shop.goods").unwrap();
    pair.wait("a copy", |_| pair.state("goods") != Some(TableState::Live));
    pair.wait("its end", |_| pair.state("goods") == Some(TableState::Live));
    assert!(start.elapsed() >= Duration::from_millis(1_800), "{:?}", start.elapsed());
}
