//! `kill -9` of a whole server while clients write over its protocols and others search: after the next start,
//! acknowledged writes are there, transactions are there completely or not at all, and the directory is consistent.
//!
//! `REMORA_CRASH_ROUNDS` sets the number of rounds, `REMORA_SEED` the times of the kills.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use mysql::prelude::Queryable;

/// Writers for each protocol.
const WRITERS: u64 = 2;
/// How many rows each writer of the line protocol keeps; older ones are deleted.
const KEPT: u64 = 20;

/// A server process on the directory.
struct Serving {
    child: Child,
    line: String,
    sql: String,
}

impl Serving {
    fn start(data: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_remora"))
            .args([
                "serve",
                "--line",
                "127.0.0.1:0",
                "--sql",
                "127.0.0.1:0",
                "--http",
                "",
                "--data",
            ])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = |name: &str| {
            let found = output.find_map(|line| Some(line.unwrap().strip_prefix(name)?.to_owned()));
            found.expect("the server ended")
        };
        let (line, sql) = (told("line protocol: "), told("MySQL protocol: "));
        Self { child, line, sql }
    }

    fn session(&self) -> mysql::Conn {
        let (host, port) = self.sql.rsplit_once(':').unwrap();
        let options = mysql::OptsBuilder::new().ip_or_hostname(Some(host)).user(Some("root"));
        mysql::Conn::new(options.tcp_port(port.parse().unwrap())).unwrap()
    }

    fn lines(&self) -> Lines {
        let stream = TcpStream::connect(&self.line).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Lines(BufReader::new(stream))
    }
}

/// Kills by SIGKILL.
impl Drop for Serving {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A connection of the line protocol.
struct Lines(BufReader<TcpStream>);

impl Lines {
    /// `None` once the server is gone.
    fn ask(&mut self, request: &str) -> Option<String> {
        self.0.get_mut().write_all(format!("{request}\r\n").as_bytes()).ok()?;
        let mut reply = String::new();
        self.0.read_line(&mut reply).ok()?;
        reply.ends_with("\r\n").then(|| reply.trim_end().to_owned())
    }
}

/// The last acknowledged number of each writer.
#[derive(Default)]
struct Acknowledged {
    transactions: [AtomicU64; WRITERS as usize],
    put: [AtomicU64; WRITERS as usize],
    deleted: [AtomicU64; WRITERS as usize],
}

impl Acknowledged {
    /// The last number of each writer.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        self.transactions.iter().chain(&self.put).map(|number| number.load(Ordering::Acquire))
    }
}

fn define(serving: &Serving) {
    let mut session = serving.session();
    for statement in [
        "CREATE DATABASE IF NOT EXISTS shop",
        "CREATE TABLE IF NOT EXISTS shop.parts (id INT AUTO_INCREMENT PRIMARY KEY, w INT, n INT, \
         body TEXT, FULLTEXT KEY (body))",
        "CREATE TABLE IF NOT EXISTS shop.orders (w INT, n INT, k VARCHAR(20) UNIQUE, PRIMARY KEY (w, n))",
    ] {
        session.query_drop(statement).unwrap();
    }
    let schema = r#"{"name":"docs","primary_key":["id"],"columns":[{"name":"id","type":"int64"},{"name":"body","type":"text"}],"texts":[{"columns":["body"]}]}"#;
    let reply = serving.lines().ask(&format!("CREATE TABLE docs {schema}")).unwrap();
    assert!(reply.starts_with("OK CREATED") || reply.contains("exist"), "{reply}");
}

/// Runs transactions over two tables until the server is gone. Every third is rolled back.
fn transact(mut session: mysql::Conn, writer: u64, acknowledged: &AtomicU64) -> Option<()> {
    let last = format!("SELECT COALESCE(MAX(n), 0) FROM shop.orders WHERE w = {writer}");
    let first: u64 = session.query_first(last).ok()??;
    for number in first + 1.. {
        let write = |session: &mut mysql::Conn, number: u64, end: &str| -> Option<()> {
            session.query_drop("BEGIN").ok()?;
            let parts = format!(
                "INSERT INTO shop.parts (w, n, body) VALUES ({writer}, {number}, 'a part'), \
                 ({writer}, {number}, 'another part')"
            );
            session.query_drop(parts).ok()?;
            let order = format!("INSERT INTO shop.orders VALUES (?, ?, 'k{writer}.{number}')");
            session.exec_drop(order, (writer, number)).ok()?;
            session.query_drop(end).ok()
        };
        if number % 3 == 0 {
            write(&mut session, number + 1_000_000, "ROLLBACK")?;
        }
        write(&mut session, number, "COMMIT")?;
        acknowledged.store(number, Ordering::Release);
    }
    None
}

/// Writes rows by the line protocol until the server is gone; deletes old ones.
fn put(mut lines: Lines, writer: u64, put: &AtomicU64, deleted: &AtomicU64) -> Option<()> {
    let first = put.load(Ordering::Acquire) + 1;
    for number in first.. {
        let id = writer * 1_000_000_000 + number;
        let body = format!("kept w{writer} {}", "some words to be indexed ".repeat(20));
        let reply = lines.ask(&format!(r#"PUT docs {{"id":{id},"body":"{body}"}}"#))?;
        assert!(reply.starts_with("OK PUT 1"), "{reply}");
        put.store(number, Ordering::Release);
        if let Some(old) = number.checked_sub(KEPT).filter(|&old| old > 0) {
            let reply = lines.ask(&format!("DELETE docs {}", writer * 1_000_000_000 + old))?;
            assert!(reply.starts_with("OK DELETE"), "{reply}");
            deleted.store(old, Ordering::Release);
        }
    }
    None
}

/// Reads and merges until the server is gone.
fn disturb(mut lines: Lines, mut session: mysql::Conn) -> Option<()> {
    loop {
        assert!(lines.ask("SEARCH docs words LIMIT 5")?.starts_with("OK"));
        let counted = "SELECT COUNT(*) FROM shop.parts WHERE MATCH (body) AGAINST ('part')";
        let _: Option<u64> = session.query_first(counted).ok()?;
        assert!(lines.ask("OPTIMIZE docs")?.starts_with("OK"));
    }
}

/// Writes until the server is killed, which happens this long after every writer's first acknowledgement.
fn write_until_killed(serving: Serving, lifetime: Duration, acknowledged: &Acknowledged) {
    let before: Vec<u64> = acknowledged.numbers().collect();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let at = writer as usize;
            let (session, lines) = (serving.session(), serving.lines());
            scope.spawn(move || transact(session, writer, &acknowledged.transactions[at]));
            let (rows, deleted) = (&acknowledged.put[at], &acknowledged.deleted[at]);
            scope.spawn(move || put(lines, writer, rows, deleted));
        }
        let (lines, session) = (serving.lines(), serving.session());
        scope.spawn(move || disturb(lines, session));
        while (acknowledged.numbers().zip(&before)).any(|(number, before)| number == *before) {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(lifetime);
        drop(serving);
    });
}

fn number(session: &mut mysql::Conn, query: &str) -> u64 {
    session.query_first(query).unwrap().unwrap()
}

fn check_transactions(session: &mut mysql::Conn, acknowledged: &Acknowledged) {
    for (writer, last) in acknowledged.transactions.iter().enumerate() {
        let last = last.load(Ordering::Acquire);
        let query = format!("SELECT COUNT(*) FROM shop.orders WHERE w = {writer}");
        let found = number(session, &query);
        assert!(found == last || found == last + 1, "writer {writer}: {last} of {found}");
    }
    let halves = "SELECT COUNT(*) FROM (SELECT w, n, COUNT(*) AS c FROM shop.parts GROUP BY w, n) x \
                  LEFT JOIN shop.orders o ON o.w = x.w AND o.n = x.n WHERE c <> 2 OR o.n IS NULL";
    assert_eq!(number(session, halves), 0, "half a transaction");
    let lone = "SELECT COUNT(*) FROM shop.orders o LEFT JOIN shop.parts p ON p.w = o.w AND p.n = o.n \
                WHERE p.n IS NULL OR o.n > 1000000";
    assert_eq!(number(session, lone), 0, "half a transaction, or one rolled back");
    let found = "SELECT COUNT(*) FROM shop.parts WHERE MATCH (body) AGAINST ('part')";
    let all = number(session, "SELECT COUNT(*) FROM shop.parts");
    assert_eq!(number(session, found), all, "rows and index differ");
}

fn check_rows(lines: &mut Lines, acknowledged: &Acknowledged) {
    for writer in 0..WRITERS {
        let at = writer as usize;
        let last = acknowledged.put[at].load(Ordering::Acquire);
        let deleted = acknowledged.deleted[at].load(Ordering::Acquire);
        let count = lines.ask(&format!("COUNT docs w{writer}")).unwrap();
        let count: u64 = count.strip_prefix("OK COUNT ").unwrap().parse().unwrap();
        // The last PUT and the last DELETE may have been applied without an acknowledgement.
        let expected = last - deleted;
        assert!((expected - 1..=expected + 1).contains(&count), "writer {writer}: {count} rows");
        for number in deleted.saturating_sub(2)..=last {
            let id = writer * 1_000_000_000 + number;
            let reply = lines.ask(&format!("GET docs {id}")).unwrap();
            let is_there = reply.starts_with("OK DOC");
            match number {
                gone if gone <= deleted => assert!(!is_there, "{id} is there again: {reply}"),
                unknown if unknown == deleted + 1 => {}
                _ => assert!(is_there, "{id} is gone: {reply}"),
            }
        }
        // A row that was applied without an acknowledgement counts as acknowledged from now on.
        let next = lines.ask(&format!("GET docs {}", writer * 1_000_000_000 + last + 1)).unwrap();
        acknowledged.put[at].fetch_add(u64::from(next.starts_with("OK DOC")), Ordering::AcqRel);
        let reply = lines.ask(&format!("DELETE docs {}", writer * 1_000_000_000 + deleted + 1));
        assert!(reply.unwrap().starts_with("OK DELETE"));
        acknowledged.deleted[at].fetch_add(1, Ordering::AcqRel);
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn what_a_server_acknowledged_survives_kill_9() {
    let rounds = from_environment("REMORA_CRASH_ROUNDS").unwrap_or(4);
    let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let seed = from_environment("REMORA_SEED").unwrap_or_else(now);
    println!("REMORA_SEED={seed}");
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let acknowledged = Acknowledged::default();
    for round in 0..rounds {
        let serving = Serving::start(&data);
        define(&serving);
        if round > 0 {
            check_transactions(&mut serving.session(), &acknowledged);
            check_rows(&mut serving.lines(), &acknowledged);
        }
        let lifetime_ms = (seed ^ (round + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        write_until_killed(serving, Duration::from_millis(lifetime_ms % 700), &acknowledged);
        let check = Command::new(env!("CARGO_BIN_EXE_remora")).arg("check").arg(&data).output();
        let check = check.unwrap();
        let said = String::from_utf8_lossy(&check.stdout);
        assert!(check.status.success(), "round {round}: {said}");
    }
    let serving = Serving::start(&data);
    check_transactions(&mut serving.session(), &acknowledged);
    check_rows(&mut serving.lines(), &acknowledged);
}
