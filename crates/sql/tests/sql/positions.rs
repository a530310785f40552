//! Waiting for positions of a replicated server: by functions, and before every read of a session.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use crate::support::{Server, rows, run};
use remora_mysql::ErrorCode;
use remora_sql::{Error, Host, ReplicaReport, Result};

/// A source that has applied the transactions `u:1` to `u:n`.
#[derive(Default)]
struct Following {
    applied: AtomicU64,
    stands_still: AtomicBool,
}

impl Host for Following {
    fn replicas(&self) -> Vec<ReplicaReport> {
        let applied = format!("u:1-{}", self.applied.load(SeqCst));
        vec![ReplicaReport { source: "s".to_owned(), applied, fields: Vec::new() }]
    }

    /// Applies one transaction at each polling step of a wait.
    fn wait_for_gtids(&self, _: Option<&str>, gtids: &str, timeout: Duration) -> Result<bool> {
        let wanted = gtids.strip_prefix("u:1-").and_then(|number| number.parse::<u64>().ok());
        let wrong = || Error::new(ErrorCode::MalformedGtidSet, "no set");
        let wanted = wanted.ok_or_else(wrong)?;
        if self.applied.load(SeqCst) >= wanted {
            return Ok(true);
        }
        thread::sleep(timeout);
        if !timeout.is_zero() && !self.stands_still.load(SeqCst) {
            self.applied.fetch_add(1, SeqCst);
        }
        Ok(self.applied.load(SeqCst) >= wanted)
    }
}

fn server() -> (Server, Arc<Following>) {
    let host = Arc::new(Following::default());
    (Server::with_host(Arc::clone(&host) as Arc<dyn Host>), host)
}

#[tokio::test]
async fn functions_wait_as_mysql_and_mariadb_do() {
    let (server, host) = server();
    let mut session = server.session();
    let cases = [
        ("SELECT WAIT_FOR_EXECUTED_GTID_SET('u:1-3')", "0"),
        ("SELECT WAIT_FOR_EXECUTED_GTID_SET('u:1-3', 0.01)", "0"),
        ("SELECT WAIT_FOR_EXECUTED_GTID_SET('u:1-9000', 0.05)", "1"),
        ("SELECT WAIT_FOR_EXECUTED_GTID_SET('')", "0"),
        ("SELECT WAIT_FOR_EXECUTED_GTID_SET('x')", "1772 no set"),
        (
            "SELECT WAIT_FOR_EXECUTED_GTID_SET(NULL)",
            "1772 Malformed GTID set specification 'NULL'.",
        ),
        ("SELECT MASTER_GTID_WAIT('u:1-3')", "0"),
        ("SELECT MASTER_GTID_WAIT('u:1-9000', 0)", "-1"),
        ("SELECT MASTER_GTID_WAIT('u:1-9000', 0.05)", "-1"),
        ("SELECT MASTER_GTID_WAIT(NULL, 1)", "NULL"),
    ];
    for (statement, expected) in cases {
        assert_eq!(rows(&mut session, statement).await, expected, "{statement}");
    }
    let applied = format!("u:1-{}", host.applied.load(SeqCst));
    assert_eq!(rows(&mut session, "SELECT @@gtid_executed").await, applied);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_without_end_keeps_nobody_from_reading_and_can_be_killed() {
    let (server, host) = server();
    host.stands_still.store(true, SeqCst);
    let waits = |_| {
        let mut session = server.session();
        let interrupter = session.interrupter();
        let statement = "SELECT WAIT_FOR_EXECUTED_GTID_SET('u:1-9')";
        let task = tokio::spawn(async move { rows(&mut session, statement).await });
        (task, interrupter)
    };
    let waiting: Vec<_> = (0..8).map(waits).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut reader = server.session();
    assert_eq!(rows(&mut reader, "SELECT COUNT(*) + 1 FROM (SELECT 1) t").await, "2");
    for (task, interrupter) in waiting {
        interrupter.store(true, SeqCst);
        assert_eq!(task.await.unwrap(), "1317 Query execution was interrupted");
    }
}

#[tokio::test]
async fn reads_of_a_session_wait_for_its_position() {
    let (server, host) = server();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    let wrong = rows(&mut session, "SET sql_wait_for_position = 'x'").await;
    assert_eq!(wrong, "1772 no set");
    for statement in
        ["SELECT id FROM t WHERE id = 1", "SELECT COUNT(*) + 0 FROM t", "SELECT 1", "DO 1"]
    {
        let wanted = host.applied.load(SeqCst) + 2;
        let set = format!("SET sql_wait_for_position = 'u:1-{wanted}'");
        run(&mut session, &set).await.unwrap();
        run(&mut session, statement).await.unwrap();
        assert_eq!(host.applied.load(SeqCst), wanted, "{statement}");
    }
    let wanted = host.applied.load(SeqCst) + 1;
    let set = format!("SET STATEMENT sql_wait_for_position = 'u:1-{wanted}' FOR SELECT * FROM t");
    run(&mut session, &set).await.unwrap();
    assert_eq!(host.applied.load(SeqCst), wanted);
    // A transaction waits when it takes its snapshot: once, or for each statement in READ COMMITTED.
    for (level, waits) in [("REPEATABLE READ", false), ("READ COMMITTED", true)] {
        run(&mut session, "SET sql_wait_for_position = ''").await.unwrap();
        run(&mut session, &format!("SET TRANSACTION ISOLATION LEVEL {level}")).await.unwrap();
        run(&mut session, "BEGIN").await.unwrap();
        let applied = host.applied.load(SeqCst);
        let set = format!("SET sql_wait_for_position = 'u:1-{}'", applied + 1);
        run(&mut session, &set).await.unwrap();
        run(&mut session, "SELECT * FROM t").await.unwrap();
        assert_eq!(host.applied.load(SeqCst), applied + u64::from(waits), "{level}");
        run(&mut session, "COMMIT").await.unwrap();
    }
    let wanted = host.applied.load(SeqCst);
    let prepared = session.prepare(b"SELECT id FROM t WHERE id = 1").await.unwrap();
    let set = format!("SET sql_wait_for_position = 'u:1-{}'", wanted + 1);
    run(&mut session, &set).await.unwrap();
    session.execute(&prepared, &[], &mut crate::support::Answers::default()).await.unwrap();
    assert_eq!(host.applied.load(SeqCst), wanted + 1);
}

#[tokio::test]
async fn a_position_that_is_not_reached_ends_the_read() {
    let (server, host) = server();
    host.stands_still.store(true, SeqCst);
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    let set = "SET sql_wait_for_position = 'u:1-5', sql_wait_for_position_ms = 120";
    run(&mut session, set).await.unwrap();
    let expected = "3024 The position 'u:1-5' of sql_wait_for_position was not reached within \
                    120 ms: it is 'u:1-0'";
    for statement in ["SELECT * FROM t", "START TRANSACTION", "INSERT INTO t SELECT 1"] {
        assert_eq!(rows(&mut session, statement).await, expected, "{statement}");
    }
    // Statements that read no rows do not wait.
    for statement in ["ROLLBACK", "SHOW TABLES", "SET @a = 1"] {
        run(&mut session, statement).await.unwrap();
    }
    session.interrupter().store(true, SeqCst);
    let killed = rows(&mut session, "SELECT * FROM t").await;
    assert_eq!(killed, "1317 Query execution was interrupted");
    session.interrupter().store(false, SeqCst);
    run(&mut session, "SET sql_wait_for_position = ''").await.unwrap();
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM t").await, "0");
}

#[tokio::test]
async fn a_transaction_waits_where_it_begins() {
    let (server, host) = server();
    let mut session = server.session();
    run(&mut session, "CREATE TABLE t (id INT PRIMARY KEY)").await.unwrap();
    run(&mut session, "SET sql_wait_for_position = 'u:1-2'").await.unwrap();
    run(&mut session, "BEGIN").await.unwrap();
    assert_eq!(host.applied.load(SeqCst), 2);
    run(&mut session, "SET sql_wait_for_position = 'u:1-5'").await.unwrap();
    run(&mut session, "SELECT * FROM t").await.unwrap();
    assert_eq!(host.applied.load(SeqCst), 2);
    run(&mut session, "COMMIT").await.unwrap();
    run(&mut session, "SET autocommit = 0").await.unwrap();
    run(&mut session, "SELECT * FROM t").await.unwrap();
    assert_eq!(host.applied.load(SeqCst), 5);
}
