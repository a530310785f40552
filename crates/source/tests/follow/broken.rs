//! Tables that the source itself cannot read, and copies that its server ends.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use mysql::prelude::Queryable;
use remora_peers::Kind;

use crate::pair::Pair;

const OTHERS: &str = "CREATE TABLE others (id INT AUTO_INCREMENT PRIMARY KEY)";

/// A table whose file was taken away: stopped with the server's words, until it has one again.
fn a_discarded_tablespace(kind: Kind) {
    let mut pair = Pair::start(
        kind,
        &[
            OTHERS,
            "CREATE TABLE goods (id INT PRIMARY KEY, v INT)",
            "INSERT INTO goods VALUES (1, 1), (2, 2)",
        ],
    );
    pair.compare();
    pair.run("FLUSH TABLES goods FOR EXPORT");
    let data = pair.server.data().join("shop");
    let saved = pair.server.data().join("saved.ibd");
    fs::copy(data.join("goods.ibd"), &saved).unwrap();
    pair.run("UNLOCK TABLES");
    pair.run("ALTER TABLE goods DISCARD TABLESPACE");
    pair.others_go_on();
    let reason = pair.reason("goods");
    assert!(reason.contains("1814") && reason.contains("goods"), "{reason}");
    pair.others_go_on();
    pair.close();
    pair.open();
    let reason = pair.reason("goods");
    assert!(reason.contains("1814"), "{reason}");
    pair.others_go_on();
    fs::copy(&saved, data.join("goods.ibd")).unwrap();
    pair.run("ALTER TABLE goods IMPORT TABLESPACE");
    pair.run("INSERT INTO goods VALUES (3, 3)");
    pair.compare();
    assert_eq!(pair.rows("goods").len(), 3);
}

#[test]
fn mariadb_10_11_a_discarded_tablespace() {
    a_discarded_tablespace(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_a_discarded_tablespace() {
    a_discarded_tablespace(Kind::MySql97);
}

/// Tables whose files are damaged or gone at the source.
fn damaged_files(kind: Kind) {
    let statements = [
        OTHERS,
        "CREATE TABLE crashed (id INT PRIMARY KEY, v VARCHAR(50)) ENGINE=MyISAM",
        "INSERT INTO crashed VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE gone (id INT PRIMARY KEY, v VARCHAR(50)) ENGINE=MyISAM",
        "INSERT INTO gone VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE lost (id INT PRIMARY KEY, v VARCHAR(50))",
        "INSERT INTO lost VALUES (1, 'a'), (2, 'b')",
        "CREATE VIEW broken AS SELECT id FROM others",
    ];
    let mut pair = Pair::start(kind, &statements);
    pair.catch_up();
    pair.close();
    pair.server.stop().unwrap();
    let data = pair.server.data().join("shop");
    fs::write(data.join("crashed.MYI"), b"no index").unwrap();
    fs::remove_file(data.join("gone.MYD")).unwrap();
    fs::remove_file(data.join("lost.ibd")).unwrap();
    pair.server.restart().unwrap();
    pair.reconnect();
    pair.run("ALTER TABLE others RENAME TO renamed");
    pair.run("ALTER TABLE renamed RENAME TO others");
    pair.open();
    pair.others_go_on();
    // A copy of what is here already, exact, which cannot be made.
    for table in ["shop.crashed", "shop.gone", "shop.lost"] {
        let _ = pair.follower().sync(table);
    }
    pair.others_go_on();
    // Beside a source of which nothing is known yet.
    pair.close();
    pair.move_to(tempfile::tempdir().unwrap());
    pair.open();
    for table in ["crashed", "gone", "lost"] {
        let reason = pair.reason(table);
        let words = ["error 1", "error 3", "cannot open it"];
        assert!(words.iter().any(|word| reason.contains(word)), "{table}: {reason}");
    }
    pair.others_go_on();
}

#[test]
fn mariadb_10_11_damaged_files() {
    damaged_files(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_damaged_files() {
    damaged_files(Kind::MySql97);
}

/// What ends the statements that read one table.
enum Ends {
    Statement,
    Connection,
}

/// Ends the thread that ends them.
struct Done<'d>(&'d AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A copy that the source's server ends whenever it reads: the stream and the others go on, and the
/// table says why it does not.
fn a_copy_is_ended(kind: Kind, ends: Ends) {
    let mut pair = Pair::start_with(
        kind,
        &[],
        &[
            OTHERS,
            "CREATE TABLE goods (id INT PRIMARY KEY, v INT)",
            "INSERT INTO goods VALUES (1, 1), (2, 2)",
        ],
        |settings| settings.tables = vec!["others".to_owned()],
    );
    pair.catch_up();
    pair.close();
    pair.settings.tables.clear();
    let mut locker = pair.server.connect().unwrap();
    locker.query_drop("LOCK TABLES shop.goods WRITE").unwrap();
    let mut killer = pair.server.connect().unwrap();
    let done = AtomicBool::new(false);
    let what = match ends {
        Ends::Statement => "QUERY",
        Ends::Connection => "CONNECTION",
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let victims: Vec<u64> = killer
                    .query(
                        "SELECT id FROM information_schema.processlist WHERE \
                         info LIKE '%goods%LIMIT%' AND id <> CONNECTION_ID()",
                    )
                    .unwrap();
                for victim in victims {
                    let _ = killer.query_drop(format!("KILL {what} {victim}"));
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        let _done = Done(&done);
        pair.open();
        for _ in 0..3 {
            pair.others_go_on();
            thread::sleep(Duration::from_millis(300));
        }
        let reason = pair.reason("goods");
        let named = ["1317", "interrupted", "connection", "lost", "killed", "1927", "broken"];
        let reason = reason.to_lowercase();
        assert!(named.iter().any(|word| reason.contains(word)), "{reason}");
        pair.others_go_on();
    });
    locker.query_drop("UNLOCK TABLES").unwrap();
    pair.follower().sync("shop.goods").unwrap();
    pair.wait("a copy", |_| pair.database().schema("shop.goods").is_ok());
    pair.compare();
}

#[test]
fn mariadb_10_11_a_copy_whose_statements_end() {
    a_copy_is_ended(Kind::MariaDb1011, Ends::Statement);
}

#[test]
fn mysql_9_7_a_copy_whose_statements_end() {
    a_copy_is_ended(Kind::MySql97, Ends::Statement);
}

#[test]
fn mariadb_10_11_a_copy_whose_connections_end() {
    a_copy_is_ended(Kind::MariaDb1011, Ends::Connection);
}

#[test]
fn mysql_9_7_a_copy_whose_connections_end() {
    a_copy_is_ended(Kind::MySql97, Ends::Connection);
}

/// A lock that is held too long, and a time that statements may take.
#[test]
fn a_copy_that_waits_for_a_lock() {
    let mut pair = Pair::start_with(
        Kind::MariaDb1011,
        &["--lock-wait-timeout=1"],
        &[
            OTHERS,
            "CREATE TABLE goods (id INT PRIMARY KEY, v INT)",
            "INSERT INTO goods VALUES (1, 1), (2, 2)",
        ],
        |settings| settings.tables = vec!["others".to_owned()],
    );
    pair.catch_up();
    pair.close();
    pair.settings.tables.clear();
    let mut locker = pair.server.connect().unwrap();
    locker.query_drop("LOCK TABLES shop.goods WRITE").unwrap();
    pair.open();
    pair.others_go_on();
    let reason = pair.reason("goods");
    assert!(reason.contains("1205"), "{reason}");
    pair.others_go_on();
    locker.query_drop("UNLOCK TABLES").unwrap();
    pair.follower().sync("shop.goods").unwrap();
    pair.wait("a copy", |_| pair.database().schema("shop.goods").is_ok());
    pair.compare();
}
