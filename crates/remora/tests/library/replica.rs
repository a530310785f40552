//! Tables that a program replicates from a real MySQL and MariaDB in its own process.

use std::time::Duration;

use mysql::{Conn, prelude::Queryable};
use remora::{Database, Error, Event, FollowState, Replica, TableState, field};
use remora_peers::{HOST, Kind, Server};

use crate::Tested;

const PATIENCE: Duration = Duration::from_secs(60);

fn source(kind: Kind) -> Result<(Server, Conn), Box<dyn std::error::Error>> {
    let server = Server::start(kind, &[])?;
    let mut conn = server.connect()?;
    for statement in [
        "CREATE DATABASE shop CHARACTER SET utf8mb4",
        "USE shop",
        "CREATE TABLE articles (id INT PRIMARY KEY, title VARCHAR(100), body TEXT)",
        "CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, article INT, amount DECIMAL(8,2))",
        "CREATE TABLE secret (id INT PRIMARY KEY)",
        "INSERT INTO articles VALUES (1, 'Heron', 'Herons nest at the reef'), (2, 'Kite', 'Wind')",
        "INSERT INTO orders (article, amount) VALUES (1, 9.50), (2, 3.25)",
    ] {
        conn.query_drop(statement)?;
    }
    Ok((server, conn))
}

/// The transactions that the source has committed.
fn committed(kind: Kind, conn: &mut Conn) -> Result<String, Box<dyn std::error::Error>> {
    let variable = if kind.is_mariadb() { "@@gtid_binlog_pos" } else { "@@GLOBAL.gtid_executed" };
    let set: Option<String> = conn.query_first(format!("SELECT {variable}"))?;
    Ok(set.ok_or("no position")?.replace('\n', ""))
}

fn follow(db: &Database, server: &Server) -> remora::Result<Replica> {
    db.follow(&server.follower_url("shop"), ["articles", "orders"])
}

/// Copy, replication, waits, stop, restart, searches, joins and watching.
fn a_replica_in_process(kind: Kind) -> Tested {
    let (server, mut conn) = source(kind)?;
    let directory = tempfile::tempdir()?;
    let db = Database::open(directory.path())?;
    let replica = follow(&db, &server)?;
    replica.wait_until_live(PATIENCE)?;
    let status = replica.status();
    assert_eq!((status.state, status.tables.len()), (FollowState::Running, 2));
    assert!(status.tables.iter().all(|table| table.state == TableState::Live));
    assert_eq!(status.source, format!("{HOST}:{}", server.port()));
    assert_eq!(db.tables(), ["shop.articles", "shop.orders"]);
    assert_eq!(db.table("shop.articles")?.search("EEF").count()?, 1);

    let mut watch = db.watch().named("mail").tables(["shop.orders"]).start()?;
    conn.query_drop("BEGIN")?;
    conn.query_drop("INSERT INTO orders (article, amount) VALUES (1, 1.00)")?;
    conn.query_drop("UPDATE orders SET amount = 4 WHERE id = 2")?;
    conn.query_drop("COMMIT")?;
    replica.wait_for(&committed(kind, &mut conn)?, PATIENCE)?;
    let text = "SELECT title, SUM(amount) FROM shop.articles a JOIN shop.orders o ON o.article = a.id \
                GROUP BY title ORDER BY title";
    let sums: Vec<(String, f64)> = db.query(text, [])?.deserialize()?;
    assert_eq!(sums, [("Heron".to_owned(), 10.5), ("Kite".to_owned(), 4.0)]);
    let first = watch.next_within(PATIENCE)?.ok_or("nothing is told")?;
    let second = watch.next_within(PATIENCE)?.ok_or("nothing is told")?;
    assert_eq!((first.transaction(), first.is_last()), (second.transaction(), false));
    let is_update = |event: &Event| matches!(event, Event::Update { .. });
    assert!(is_update(first.event()) != is_update(second.event()), "{first:?} {second:?}");
    second.save()?;
    drop((first, second, watch));

    // Stopped, nothing comes; gone on with, all of it.
    replica.stop()?;
    assert_eq!(replica.status().state, FollowState::Stopped);
    conn.query_drop("DELETE FROM orders WHERE id = 1")?;
    let gtids = committed(kind, &mut conn)?;
    let late = replica.wait_for(&gtids, Duration::from_millis(50));
    assert!(matches!(late, Err(Error::Busy(_))), "{late:?}");
    assert!(replica.wait_until_live(PATIENCE).is_err());
    replica.resume()?;
    // However long it takes.
    replica.wait_for(&gtids, Duration::MAX)?;
    drop(replica);
    conn.query_drop("INSERT INTO articles VALUES (3, 'Reef', 'more')")?;
    db.close()?;

    let db = Database::open(directory.path())?;
    let replica = follow(&db, &server)?;
    replica.wait_for(&committed(kind, &mut conn)?, PATIENCE)?;
    let orders = db.table("shop.orders")?;
    assert_eq!((orders.count()?, db.table("shop.articles")?.count()?), (2, 3));
    assert_eq!(orders.all().filter(field("amount").at_least(4)).count()?, 1);
    let mut watch = db.watch().named("mail").tables(["shop.orders"]).start()?;
    let gone = watch.next_within(PATIENCE)?.ok_or("nothing is told")?;
    assert!(matches!(gone.event(), Event::Delete { .. }), "{gone:?}");
    replica.copy_anew("shop.articles")?;
    replica.wait_until_live(PATIENCE)?;
    // What is closed under it ends it.
    db.close()?;
    assert!(matches!(replica.wait_until_live(PATIENCE), Err(Error::Closed)));
    Ok(())
}

#[test]
fn a_replica_of_mariadb_in_process() -> Tested {
    a_replica_in_process(Kind::MariaDb1011)
}

#[test]
fn a_replica_of_mysql_in_process() -> Tested {
    a_replica_in_process(Kind::MySql97)
}

#[test]
fn what_cannot_be_followed_is_named() -> Tested {
    let db = Database::in_memory()?;
    for (url, names) in [
        ("http://h", "mysql://"),
        ("mysql://u:secret@127.0.0.1:1/shop", "127.0.0.1:1"),
        ("mysql://u:secret@127.0.0.1?nonsense=1", "nonsense"),
    ] {
        let Err(error) = db.follow(url, ["t"]) else { return Err("it is followed".into()) };
        assert!(
            matches!(error, Error::Source(_)) && error.to_string().contains(names),
            "{error:?}"
        );
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    Ok(())
}
