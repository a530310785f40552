//! The first hours: what is wrong at the start is an error that names its mend.

use mysql::{Conn, prelude::Queryable};
use remora_engine::{Database, Options};
use remora_peers::{HOST, Kind, Server};
use remora_source::{
    Error,
    mysql::{Follower, MysqlSettings, State},
};

/// A server with a database `shop`, and one that nobody follows yet.
struct First {
    server: Server,
    conn: Conn,
    database: Database,
    _directory: tempfile::TempDir,
}

impl First {
    fn start(kind: Kind) -> Self {
        let server = Server::start(kind, &[]).unwrap();
        let mut conn = server.connect().unwrap();
        for statement in [
            "CREATE DATABASE shop CHARACTER SET utf8mb4",
            "CREATE TABLE shop.apples (id INT PRIMARY KEY)",
            "CREATE TABLE shop.pears (id INT PRIMARY KEY, secret INT)",
            "CREATE VIEW shop.fruit AS SELECT id FROM shop.apples",
            "CREATE USER 'g'@'127.0.0.1' IDENTIFIED BY 'w'",
            "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'g'@'127.0.0.1'",
            "GRANT SELECT ON shop.apples TO 'g'@'127.0.0.1'",
        ] {
            conn.query_drop(statement).unwrap();
        }
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(directory.path(), Options::default()).unwrap();
        Self { server, conn, database, _directory: directory }
    }

    /// Starts to follow these tables as the follower of all tests, or as `g`.
    fn follow(&self, is_g: bool, tables: &str) -> Result<Follower, Error> {
        let url = match is_g {
            true => format!("mysql://g:w@{HOST}:{}/shop", self.server.port()),
            false => self.server.follower_url("shop"),
        };
        let settings = MysqlSettings::from_url(&format!("{url}?tables={tables}")).unwrap();
        Follower::start(self.database.clone(), settings)
    }

    fn refusal(&self, is_g: bool, tables: &str) -> String {
        match self.follow(is_g, tables) {
            Ok(_) => panic!("{tables} are followed"),
            Err(error) => error.to_string(),
        }
    }

    fn run(&mut self, statement: &str) {
        self.conn.query_drop(statement).unwrap();
    }
}

fn missing_tables_are_reported(kind: Kind) {
    let mut first = First::start(kind);
    let address = format!("{HOST}:{}", first.server.port());
    let there = "there are shop.apples, shop.pears";
    assert_eq!(
        first.refusal(false, "apples,nosuch"),
        format!("there is no table `shop.nosuch` at {address}; {there}")
    );
    assert_eq!(
        first.refusal(false, "a*,z*"),
        format!("no table of {address} that the user can see fits `shop.z*`; {there}")
    );
    // An account is known by the name that the server has for it.
    let grant = "run at the source: GRANT SELECT ON `shop`.`pears` TO 'g'@'127.0.0.1';";
    let refusal = first.refusal(true, "apples,pears");
    assert!(refusal.contains(grant), "{refusal}");
    first.run("GRANT INSERT ON shop.pears TO 'g'@'127.0.0.1'");
    let refusal = first.refusal(true, "apples,pears");
    assert!(refusal.contains(grant) && refusal.contains("pears"), "{refusal}");
    first.run("GRANT SELECT (id) ON shop.pears TO 'g'@'127.0.0.1'");
    let refusal = first.refusal(true, "p*");
    assert!(refusal.contains(grant) && refusal.contains("it may not read shop.pears"), "{refusal}");
    first.run("GRANT SELECT ON shop.pears TO 'g'@'127.0.0.1'");
    first.run("REVOKE REPLICATION SLAVE ON *.* FROM 'g'@'127.0.0.1'");
    let refusal = first.refusal(true, "*");
    let grant = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'g'@'127.0.0.1';";
    assert!(refusal.contains(grant), "{refusal}");
    first.run("GRANT REPLICATION SLAVE ON *.* TO 'g'@'127.0.0.1'");
    let follower = first.follow(true, "p*").unwrap();
    let start = std::time::Instant::now();
    while first.database.tables().is_empty() {
        assert!(start.elapsed() < crate::pair::PATIENCE, "{:#?}", follower.status());
    }
    follower.close();
    // What was followed may be gone: the stream tells.
    first.run("DROP TABLE shop.pears");
    first.follow(true, "pears").unwrap().close();
    assert!(first.refusal(true, "apples,nosuch").contains("nosuch"));
}

#[test]
fn mariadb_10_11_reports_missing_tables() {
    missing_tables_are_reported(Kind::MariaDb1011);
}

#[test]
fn mariadb_11_8_reports_missing_tables() {
    missing_tables_are_reported(Kind::MariaDb118);
}

#[test]
fn mysql_9_7_reports_missing_tables() {
    missing_tables_are_reported(Kind::MySql97);
}

#[test]
fn mysql_5_6_reports_missing_tables() {
    missing_tables_are_reported(Kind::MySql56);
}

/// Two replicas of one id throw each other out for ever.
#[test]
fn duplicate_server_id_error_names_the_setting() {
    let first = First::start(Kind::MariaDb1011);
    let url = format!("{}?server-id=77", first.server.follower_url("shop"));
    let follow = |database: &Database| {
        Follower::start(database.clone(), MysqlSettings::from_url(&url).unwrap()).unwrap()
    };
    let other_directory = tempfile::tempdir().unwrap();
    let other = Database::open(other_directory.path(), Options::default()).unwrap();
    let followers = [follow(&first.database), follow(&other)];
    let start = std::time::Instant::now();
    let named = |follower: &Follower| {
        let error = follower.status().last_error;
        error.is_some_and(|(_, error)| {
            error.contains("has our server_id, 77") && error.contains("set server_id")
        })
    };
    while !followers.iter().any(named) {
        assert!(start.elapsed() < crate::pair::PATIENCE, "{:#?}", followers[0].status());
    }
}

/// Stopping answers when it has stopped, so that what is sent behind it finds it so.
#[test]
fn no_writes_after_stop_returns() {
    let first = First::start(Kind::MariaDb1011);
    let follower = first.follow(false, "*").unwrap();
    for _ in 0..20 {
        follower.stop().unwrap();
        assert_eq!(follower.status().state, State::Stopped);
        follower.resume().unwrap();
        assert_ne!(follower.status().state, State::Stopped);
    }
    let start = std::time::Instant::now();
    while follower.status().state != State::Running {
        assert!(start.elapsed() < crate::pair::PATIENCE, "{:#?}", follower.status());
    }
}
