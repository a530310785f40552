//! The binlog stream of real servers: histories, resuming, refusals and ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    thread,
    time::{Duration, Instant},
};

use mysql::{Conn, prelude::Queryable};
use remora_peers::{FOLLOWER_PASSWORD, FOLLOWER_USER, Kind, Server};
use remora_source::{
    Error,
    mysql::{
        binlog::{SourceEvent, SourceStream},
        connection::{self, Connection},
        coordinates::Coordinates,
        gtid::{Gtid, GtidSet},
        requirements,
        settings::MysqlSettings,
    },
};

fn settings(server: &Server) -> MysqlSettings {
    MysqlSettings::from_url(&server.follower_url("shop")).unwrap()
}

fn run(conn: &mut Conn, script: &str) {
    for statement in script.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        conn.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn reader(server: &Server) -> Connection {
    connection::connect(&settings(server)).unwrap()
}

/// One transaction: its GTIDs and what it did, in few words.
#[derive(Clone, Debug, PartialEq)]
struct TransactionSummary {
    gtids: Vec<Gtid>,
    did: Vec<String>,
}

/// Everything from `from` to the end of the binlog.
fn history(server: &Server, from: &GtidSet) -> Vec<TransactionSummary> {
    let end = reader(server).binlog_end().unwrap();
    let mut stream = SourceStream::open(&settings(server), from).unwrap();
    let mut told = Vec::new();
    let mut now = TransactionSummary { gtids: Vec::new(), did: Vec::new() };
    let mut place = Coordinates::default();
    while place < end {
        match stream.next().unwrap() {
            SourceEvent::Begin { gtid, .. } => {
                now = TransactionSummary { gtids: vec![gtid], did: Vec::new() }
            }
            SourceEvent::AlsoCovers(gtid) => now.gtids.push(gtid),
            SourceEvent::TableMap(_) | SourceEvent::File { .. } => {}
            SourceEvent::Rows { table, kind, body, .. } => {
                assert!(!body.is_empty());
                now.did.push(format!("{kind:?} {}", table.table));
            }
            SourceEvent::Statement { query, .. } => {
                let words: Vec<_> = query.sql.split_whitespace().take(2).collect();
                now.did.push(words.join(" ").to_lowercase());
            }
            SourceEvent::Commit { end } => {
                told.push(now.clone());
                place = end;
            }
            SourceEvent::Rollback { end } => place = end,
            SourceEvent::Abandoned => panic!("abandoned"),
            SourceEvent::Heartbeat { end } => place = place.max(end),
        }
    }
    told
}

fn did(told: &[TransactionSummary]) -> Vec<String> {
    told.iter().map(|told| told.did.join(", ")).collect()
}

const SCRIPT: &str = "
    CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY, t TEXT);
    INSERT INTO shop.a VALUES (1, 'one'), (2, 'two');
    BEGIN; INSERT INTO shop.a VALUES (3, 'three'); UPDATE shop.a SET t = 'uno' WHERE id = 1; COMMIT;
    BEGIN; INSERT INTO shop.a VALUES (4, 'four'); SAVEPOINT s; DELETE FROM shop.a; ROLLBACK TO s;
    COMMIT;
    BEGIN; INSERT INTO shop.a VALUES (5, 'five'); ROLLBACK;
    ALTER TABLE shop.a ADD COLUMN n INT;
    XA START 'x'; INSERT INTO shop.a VALUES (6, 'six', 6); XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x';
    XA START 'y'; INSERT INTO shop.a VALUES (7, 'six', 6); XA END 'y'; XA PREPARE 'y'; XA ROLLBACK 'y';
    FLUSH BINARY LOGS;
    DELETE FROM shop.a WHERE id = 2;
    TRUNCATE TABLE shop.a";

#[test]
fn every_server_streams_its_history_and_resumes_anywhere() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]).unwrap();
        let from = connection::connect(&MysqlSettings::from_url(&server.follower_url("")).unwrap());
        let from = from.unwrap().executed().unwrap();
        run(&mut server.connect().unwrap(), SCRIPT);
        let whole = history(&server, &from);
        let told: Vec<_> = did(&whole)
            .into_iter()
            .filter(|did| !did.is_empty() && did != "flush binary")
            .collect();
        let expected = [
            "create database",
            "create table",
            "Insert a",
            "Insert a, Update a",
            "Insert a",
            "alter table",
            "Insert a",
            "Delete a",
            "truncate table",
        ];
        assert_eq!(told, expected, "{}", kind.name());

        let executed = reader(&server).executed().unwrap();
        let mut applied = from.clone();
        for (at, transaction) in whole.iter().enumerate() {
            // An XA commit without its prepare is refused by a MariaDB, which told it before.
            let xa = kind.is_mariadb() && at >= 6;
            if !xa {
                assert_eq!(history(&server, &applied), whole[at..], "{} at {at}", kind.name());
            }
            transaction.gtids.iter().for_each(|gtid| applied.add(gtid));
        }
        assert_eq!(applied, executed, "{}", kind.name());
        requirements::check(&mut reader(&server), &settings(&server)).unwrap();
    }
}

#[test]
fn compressed_and_large_transactions_are_unpacked() {
    for (kind, option) in [
        (Kind::MySql97, "--binlog-transaction-compression=ON"),
        (Kind::MariaDb1011, "--log-bin-compress=1"),
        (Kind::MariaDb118, "--log-bin-compress=1"),
        (Kind::MySql56, "--binlog-rows-query-log-events=1"),
        (Kind::MySql97, "--binlog-checksum=NONE"),
        (Kind::MariaDb1011, "--binlog-checksum=NONE"),
    ] {
        let mut options = vec![option, "--max-allowed-packet=64M"];
        if kind == Kind::MySql56 {
            // There, a row is at most a tenth of it.
            options.push("--innodb-log-file-size=256M");
        }
        let server = Server::start(kind, &options).unwrap();
        let mut conn = server.connect().unwrap();
        run(
            &mut conn,
            "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY, t LONGTEXT)",
        );
        let from = reader(&server).executed().unwrap();
        // Larger than one packet of the protocol.
        run(&mut conn, "BEGIN; INSERT INTO shop.a VALUES (1, REPEAT('x', 20000000))");
        run(
            &mut conn,
            "INSERT INTO shop.a VALUES (2, 'y'); COMMIT; DELETE FROM shop.a WHERE id = 1",
        );
        let told = history(&server, &from);
        assert_eq!(did(&told), ["Insert a, Insert a", "Delete a"], "{} {option}", kind.name());
    }
}

#[test]
fn tagged_gtids_are_streamed_and_resumed() {
    let server = Server::start(Kind::MySql97, &[]).unwrap();
    let mut conn = server.connect().unwrap();
    run(&mut conn, "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY)");
    let from = reader(&server).executed().unwrap();
    run(&mut conn, "SET gtid_next = 'AUTOMATIC:blue'; INSERT INTO shop.a VALUES (1)");
    run(&mut conn, "SET gtid_next = 'AUTOMATIC:red_1'; INSERT INTO shop.a VALUES (2)");
    run(&mut conn, "SET gtid_next = 'AUTOMATIC'; INSERT INTO shop.a VALUES (3)");
    run(&mut conn, "SET gtid_next = 'AUTOMATIC:blue'; INSERT INTO shop.a VALUES (4)");
    let whole = history(&server, &from);
    assert_eq!(whole.len(), 4);
    assert!(whole[1].gtids[0].to_string().ends_with(":red_1:1"), "{:?}", whole[1]);
    let mut applied = from;
    for (at, transaction) in whole.iter().enumerate() {
        assert_eq!(history(&server, &applied), whole[at..], "at {at}");
        transaction.gtids.iter().for_each(|gtid| applied.add(gtid));
    }
    assert_eq!(applied, reader(&server).executed().unwrap());
}

#[test]
fn unknown_source_position_is_a_distinct_error() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]).unwrap();
        let mut conn = server.connect().unwrap();
        run(&mut conn, "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY)");
        let old = reader(&server).executed().unwrap();
        run(&mut conn, "INSERT INTO shop.a VALUES (1); FLUSH BINARY LOGS");
        run(&mut conn, "INSERT INTO shop.a VALUES (2); FLUSH BINARY LOGS");
        let end = reader(&server).binlog_end().unwrap();
        purge_to(&mut conn, &end.file);
        let error = first_error(&server, &old);
        assert!(matches!(error, Error::Purged { .. }), "{}: {error}", kind.name());

        let mut ahead = reader(&server).executed().unwrap();
        let last = match &ahead {
            GtidSet::MySql(set) => set.to_string().replace(":1-", ":1-9"),
            GtidSet::MariaDb(set) => format!("{set}9"),
        };
        ahead.unite(&GtidSet::parse(&last).unwrap());
        let error = first_error(&server, &ahead);
        assert!(matches!(error, Error::BackInTime { .. }), "{}: {error}", kind.name());
    }
}

/// A server keeps a file, without a word, while its engine may still need it.
fn purge_to(conn: &mut Conn, file: &str) {
    for _ in 0..100 {
        run(conn, &format!("PURGE BINARY LOGS TO '{file}'"));
        let first: mysql::Row = conn.query_first("SHOW BINARY LOGS").unwrap().unwrap();
        if first.get::<String, _>(0).as_deref() == Some(file) {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{file} is not the first");
}

fn first_error(server: &Server, from: &GtidSet) -> Error {
    let mut stream = match SourceStream::open(&settings(server), from) {
        Err(error) => return error,
        Ok(stream) => stream,
    };
    let end = reader(server).binlog_end().unwrap();
    while *stream.place() < end {
        if let Err(error) = stream.next() {
            return error;
        }
    }
    panic!("{}: everything came", server.kind().name());
}

#[test]
fn a_blocked_stream_is_interrupted_and_a_dead_source_is_noticed() {
    for kind in Kind::ALL {
        let mut server = Server::start(kind, &[]).unwrap();
        run(&mut server.connect().unwrap(), "CREATE DATABASE shop");
        let from = reader(&server).executed().unwrap();
        let mut stream = SourceStream::open(&settings(&server), &from).unwrap();
        let interrupter = stream.interrupter();
        let ended = thread::spawn(move || {
            loop {
                if let Err(error) = stream.next() {
                    return error;
                }
            }
        });
        thread::sleep(Duration::from_millis(300));
        let start = Instant::now();
        interrupter.interrupt();
        let error = ended.join().unwrap();
        assert!(matches!(error, Error::Cancelled), "{}: {error}", kind.name());
        // Not the silence of a dead source ended it.
        assert!(start.elapsed() < Duration::from_secs(9));

        let mut stream = SourceStream::open(&settings(&server), &from).unwrap();
        server.kill().unwrap();
        let error = loop {
            if let Err(error) = stream.next() {
                break error;
            }
        };
        assert!(matches!(error, Error::Unreachable { .. }), "{}: {error}", kind.name());
    }
}

#[test]
fn missing_source_requirements_are_reported_with_advice() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]).unwrap();
        let mut conn = server.connect().unwrap();
        run(
            &mut conn,
            "CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY);
             CREATE USER 'bare'@'%' IDENTIFIED BY 'p'; CREATE USER 'half'@'%' IDENTIFIED BY 'p';
             GRANT SELECT ON shop.* TO 'half'@'%'",
        );
        let status = if kind.is_mariadb() { "BINLOG MONITOR" } else { "REPLICATION CLIENT" };
        run(&mut conn, &format!("GRANT {status} ON *.* TO 'half'@'%'"));
        let as_user = |user: &str, password: &str| MysqlSettings {
            user: user.to_owned(),
            password: password.to_owned(),
            ..settings(&server)
        };
        let check = |settings: &MysqlSettings| {
            let checked = connection::connect(settings);
            let checked = checked.and_then(|mut source| requirements::check(&mut source, settings));
            checked.unwrap_err().to_string()
        };
        let wrong = check(&as_user(FOLLOWER_USER, "no"));
        assert!(wrong.contains("check the user's name and password"), "{wrong}");
        for (user, password) in [("bare", "p"), ("half", "p")] {
            let message = check(&as_user(user, password));
            assert!(message.contains("GRANT REPLICATION SLAVE"), "{}: {message}", kind.name());
            assert!(message.contains(&format!("TO '{user}'@'%'")), "{message}");
        }
        let nowhere = MysqlSettings {
            database: Some("nowhere".to_owned()),
            ..as_user(FOLLOWER_USER, FOLLOWER_PASSWORD)
        };
        let message = check(&nowhere);
        assert!(message.contains("`nowhere`"), "{message}");

        for (set, back, named) in [
            ("binlog_format = STATEMENT", "binlog_format = ROW", "SET GLOBAL binlog_format = ROW"),
            ("binlog_row_image = MINIMAL", "binlog_row_image = FULL", "binlog_row_image = FULL"),
        ] {
            run(&mut conn, &format!("SET GLOBAL {set}"));
            let message = check(&settings(&server));
            assert!(message.contains(named), "{}: {message}", kind.name());
            run(&mut conn, &format!("SET GLOBAL {back}"));
        }
        requirements::check(&mut reader(&server), &settings(&server)).unwrap();
    }
}

#[test]
fn a_source_without_binlog_or_gtids_is_refused() {
    for (kind, option, named) in [
        (Kind::MySql97, "--skip-log-bin", "log_bin="),
        (Kind::MySql97, "--gtid-mode=OFF", "SET GLOBAL gtid_mode = ON"),
        (Kind::MariaDb1011, "--skip-log-bin", "log_bin="),
        (Kind::MariaDb1011, "--binlog-ignore-db=shop", "binlog_ignore_db"),
        (Kind::MySql97, "--binlog-do-db=other", "binlog_do_db"),
    ] {
        let server = Server::start(kind, &[option]).unwrap();
        run(&mut server.connect().unwrap(), "CREATE DATABASE shop");
        let error = requirements::check(&mut reader(&server), &settings(&server)).unwrap_err();
        assert!(matches!(error, Error::Requirement { .. }), "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
}
