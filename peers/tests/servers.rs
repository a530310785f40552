//! Every kind of server starts, stops, crashes, comes back with its data, and follows another.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{thread::sleep, time::Duration};

use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server, replicate};

fn rows(connection: &mut Conn) -> Vec<u32> {
    connection.query("SELECT id FROM shop.t ORDER BY id").unwrap()
}

fn lives_through_stops_and_crashes(kind: Kind) {
    let mut server = Server::start(kind, &["--server-id=7"]).unwrap();
    let mut connection = server.connect().unwrap();
    assert_eq!(connection.query_first::<u32, _>("SELECT @@server_id").unwrap(), Some(7));
    connection.query_drop("CREATE DATABASE shop").unwrap();
    connection.query_drop("CREATE TABLE shop.t (id INT PRIMARY KEY)").unwrap();
    connection.query_drop("INSERT INTO shop.t VALUES (1)").unwrap();
    let port = server.port();
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    let mut connection = server.connect().unwrap();
    assert_eq!(rows(&mut connection), [1]);
    connection.query_drop("INSERT INTO shop.t VALUES (2)").unwrap();
    server.kill().unwrap();
    assert!(server.connect().is_err());
    server.restart().unwrap();
    assert_eq!(rows(&mut server.connect().unwrap()), [1, 2]);

    let mut follower = Conn::new(server.follower_url("shop").as_str()).unwrap();
    assert_eq!(rows(&mut follower), [1, 2]);
    assert!(follower.query_drop("INSERT INTO t VALUES (3)").is_err());
    let data = server.data();
    drop(server);
    assert!(!data.exists());
}

fn follows_another(kind: Kind) {
    let source = Server::start(kind, &["--server-id=1"]).unwrap();
    let replica = Server::start(kind, &["--server-id=2"]).unwrap();
    let mut connection = source.connect().unwrap();
    connection.query_drop("CREATE DATABASE shop").unwrap();
    connection.query_drop("CREATE TABLE shop.t (id INT PRIMARY KEY)").unwrap();
    replicate(&source, &replica).unwrap();
    connection.query_drop("INSERT INTO shop.t VALUES (5)").unwrap();
    let mut connection = replica.connect().unwrap();
    while connection.query::<u32, _>("SELECT id FROM shop.t").unwrap_or_default() != [5] {
        sleep(Duration::from_millis(20));
    }
}

macro_rules! for_every_kind {
    ($($name:ident: $kind:ident),*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn lives_through_stops_and_crashes() {
                super::lives_through_stops_and_crashes(Kind::$kind);
            }

            #[test]
            fn follows_another() {
                super::follows_another(Kind::$kind);
            }
        })*
    };
}

for_every_kind!(
    mariadb_10_11: MariaDb1011,
    mariadb_11_8: MariaDb118,
    mysql_9_7: MySql97,
    mysql_5_6: MySql56
);
