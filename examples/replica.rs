//! Tables of a MySQL or MariaDB in the memory and on the disk of this program: copied, followed by the binlog, searched in
//! microseconds, and watched as they change. Stop it and start it again: it goes on where it was.
//!
//! ```sh
//! cargo run --example replica -- mysql://remora:secret@127.0.0.1:3306/shop articles ~/replica
//! ```

use std::time::Duration;

use remora::{Database, Event, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, table, path] = arguments.as_slice() else {
        println!("usage: replica mysql://USER:PASSWORD@HOST:PORT/DATABASE TABLE DIRECTORY");
        return Ok(());
    };
    follow(&Database::open(path)?, url, table, Duration::MAX).map(drop)
}

/// Shows what changes, until nothing does for this time; how many changes that were.
fn follow(db: &Database, url: &str, table: &str, patience: Duration) -> Result<usize> {
    let replica = db.follow(url, [table])?;
    replica.wait_until_live(Duration::from_secs(3_600))?;
    let status = replica.status();
    for table in &status.tables {
        let rows = db.table(&table.name)?.count()?;
        println!("{}: {rows} rows of {} at {}", table.name, status.source, status.position);
    }
    let names: Vec<String> = status.tables.into_iter().map(|table| table.name).collect();
    let mut changes = db.watch().named("replica").tables(names).start()?;
    let mut told = 0;
    while let Some(change) = changes.next_within(patience)? {
        told += 1;
        match change.event() {
            Event::Insert { row } => println!("+ {:?}", row.values()),
            Event::Update { old, row } => println!("{:?} -> {:?}", old.values(), row.values()),
            Event::Delete { old } => println!("- {:?}", old.values()),
            other => println!("{}: {other:?}", change.table()),
        }
        if change.is_last() {
            change.save()?;
        }
    }
    Ok(told)
}

#[test]
fn it_runs() -> std::result::Result<(), Box<dyn std::error::Error>> {
    use mysql::prelude::Queryable;
    use remora_peers::{Kind, Server};

    let server = Server::start(Kind::MariaDb1011, &[])?;
    let mut source = server.connect()?;
    source.query_drop("CREATE DATABASE shop")?;
    source.query_drop("CREATE TABLE shop.articles (id INT PRIMARY KEY, title VARCHAR(100))")?;
    source.query_drop("INSERT INTO shop.articles VALUES (1, 'Heron')")?;
    let db = Database::in_memory()?;
    let url = server.follower_url("shop");
    assert_eq!(follow(&db, &url, "articles", Duration::from_millis(200))?, 0);
    // While nobody follows, and told when somebody does again.
    source.query_drop("UPDATE shop.articles SET title = 'Grey heron'")?;
    source.query_drop("INSERT INTO shop.articles VALUES (2, 'Kite')")?;
    assert_eq!(follow(&db, &url, "articles", Duration::from_secs(3))?, 2);
    assert_eq!(db.table("shop.articles")?.search("heron").count()?, 1);
    Ok(())
}
