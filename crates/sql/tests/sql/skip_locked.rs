//! FOR UPDATE and FOR SHARE with SKIP LOCKED and NOWAIT: workers that take jobs from one table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use remora_engine::Value;
use remora_mysql::ErrorCode;

use crate::support::{Answers, Server, rows, run};

const NEXT: &str = "SELECT id FROM jobs WHERE taken = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";

async fn jobs(count: usize) -> Server {
    let server = Server::new();
    let mut session = server.session();
    let table =
        "CREATE TABLE jobs (id INT PRIMARY KEY, queue VARCHAR(9), taken INT, KEY (queue, taken))";
    run(&mut session, table).await.unwrap();
    let rows: Vec<String> = (1..=count).map(|id| format!("({id},'q{}',0)", id % 2)).collect();
    run(&mut session, &format!("INSERT INTO jobs VALUES {}", rows.join(","))).await.unwrap();
    server
}

#[tokio::test]
async fn each_worker_takes_another_row_and_all_commit() {
    let server = jobs(5).await;
    let (mut a, mut b, mut c) = (server.session(), server.session(), server.session());
    for (worker, id) in [(&mut a, "1"), (&mut b, "2"), (&mut c, "3")] {
        run(worker, "BEGIN").await.unwrap();
        assert_eq!(rows(worker, NEXT).await, id);
        // The rows that it has locked are its own.
        assert_eq!(rows(worker, NEXT).await, id);
    }
    // Outside of a transaction nothing stays locked.
    let mut other = server.session();
    assert_eq!(rows(&mut other, NEXT).await, "4");
    assert_eq!(rows(&mut other, NEXT).await, "4");
    assert_eq!(rows(&mut other, "SELECT COUNT(*) FROM jobs FOR SHARE SKIP LOCKED").await, "2");
    for (worker, id) in [(&mut b, 2), (&mut a, 1), (&mut c, 3)] {
        run(worker, &format!("UPDATE jobs SET taken = 1 WHERE id = {id}; COMMIT")).await.unwrap();
    }
    assert_eq!(rows(&mut a, NEXT).await, "4");
    assert_eq!(rows(&mut a, "SELECT SUM(taken) FROM jobs").await, "3");
    // Whatever ends a transaction unlocks its rows.
    run(&mut a, "BEGIN").await.unwrap();
    assert_eq!(rows(&mut a, NEXT).await, "4");
    assert_eq!(rows(&mut b, NEXT).await, "5");
    run(&mut a, "ROLLBACK").await.unwrap();
    assert_eq!(rows(&mut b, NEXT).await, "4");
    run(&mut a, "BEGIN").await.unwrap();
    assert_eq!(rows(&mut a, NEXT).await, "4");
    drop(a);
    assert_eq!(rows(&mut b, NEXT).await, "4");
}

/// A row that was changed since the snapshot could not be changed: the commit would fail.
#[tokio::test]
async fn rows_that_others_have_changed_since_the_snapshot_are_left_out() {
    let server = jobs(4).await;
    let (mut a, mut b) = (server.session(), server.session());
    run(&mut a, "BEGIN; SELECT COUNT(*) FROM jobs").await.unwrap();
    run(&mut b, "UPDATE jobs SET taken = 1 WHERE id = 1; DELETE FROM jobs WHERE id = 2")
        .await
        .unwrap();
    let nowait = rows(&mut a, "SELECT id FROM jobs WHERE id = 1 FOR UPDATE NOWAIT").await;
    assert!(nowait.starts_with("3572 "), "{nowait}");
    assert_eq!(rows(&mut a, NEXT).await, "3");
    run(&mut a, "UPDATE jobs SET taken = 1 WHERE id = 3; COMMIT").await.unwrap();
    // Rows that an open transaction has changed or deleted are locked too.
    run(&mut b, "BEGIN; UPDATE jobs SET queue = 'z' WHERE id = 4").await.unwrap();
    assert_eq!(rows(&mut a, NEXT).await, "");
    run(&mut b, "ROLLBACK").await.unwrap();
    assert_eq!(rows(&mut a, NEXT).await, "4");
}

#[tokio::test]
async fn nowait_is_refused_and_the_transaction_goes_on() {
    let server = jobs(4).await;
    let (mut a, mut b) = (server.session(), server.session());
    run(&mut a, "BEGIN; SELECT id FROM jobs WHERE id = 1 FOR UPDATE").await.unwrap();
    run(&mut a, "SELECT id FROM jobs WHERE id = 2 FOR SHARE").await.unwrap();
    run(&mut b, "BEGIN").await.unwrap();
    for (read, answer) in [
        ("id = 1 FOR UPDATE NOWAIT", None),
        ("id = 1 FOR SHARE NOWAIT", None),
        ("id = 2 FOR UPDATE NOWAIT", None),
        ("id = 2 FOR SHARE NOWAIT", Some("2")),
        ("id = 3 FOR UPDATE NOWAIT", Some("3")),
        ("id < 4 FOR UPDATE SKIP LOCKED", Some("3")),
        ("id < 4 FOR SHARE SKIP LOCKED", Some("2\n3")),
        ("id > 2 ORDER BY id DESC LIMIT 1 FOR UPDATE NOWAIT", Some("4")),
    ] {
        let read = format!("SELECT id FROM jobs WHERE {read}");
        match answer {
            Some(answer) => assert_eq!(rows(&mut b, &read).await, answer, "{read}"),
            None => {
                let error = run(&mut b, &read).await.unwrap_err();
                assert_eq!(error.code, ErrorCode::LockNotAvailable, "{read}");
            }
        }
    }
    run(&mut b, "UPDATE jobs SET taken = 1 WHERE id = 3; COMMIT").await.unwrap();
}

#[tokio::test]
async fn any_form_of_select_leaves_out_rows_of_others() {
    let server = jobs(9).await;
    let (mut a, mut b) = (server.session(), server.session());
    let table = "CREATE TABLE ready (queue VARCHAR(9), n INT, job INT, PRIMARY KEY (queue, n)); \
                 INSERT INTO ready VALUES ('q0',1,2),('q0',2,4),('q1',1,1),('q1',2,3),('q2',1,NULL)";
    run(&mut a, table).await.unwrap();
    let locked = "BEGIN; SELECT id FROM jobs WHERE id IN (1, 4) FOR UPDATE; \
                  SELECT 1 FROM ready WHERE queue = 'q0' AND n = 1 FOR UPDATE";
    run(&mut a, locked).await.unwrap();
    for (read, answer) in [
        ("SELECT id FROM jobs ORDER BY id LIMIT 2, 2 FOR UPDATE SKIP LOCKED", "5\n6"),
        ("SELECT id FROM jobs ORDER BY id LIMIT 3 OFFSET 1 FOR UPDATE SKIP LOCKED", "3\n5\n6"),
        ("SELECT COUNT(*), SUM(id) FROM jobs FOR UPDATE SKIP LOCKED", "7|40"),
        (
            "SELECT queue, COUNT(*) n FROM jobs GROUP BY queue ORDER BY queue LIMIT 1 FOR UPDATE \
          SKIP LOCKED",
            "q0|3",
        ),
        (
            "SELECT queue, n FROM ready ORDER BY 1, 2 FOR UPDATE SKIP LOCKED",
            "q0|2\nq1|1\nq1|2\nq2|1",
        ),
        ("SELECT queue, n FROM ready ORDER BY 1, 2 LIMIT 1 FOR UPDATE SKIP LOCKED", "q0|2"),
        (
            "SELECT r.job FROM ready r JOIN jobs j ON j.id = r.job ORDER BY 1 FOR UPDATE SKIP LOCKED",
            "3",
        ),
        (
            "SELECT r.job FROM ready r JOIN jobs j ON j.id = r.job ORDER BY 1 FOR UPDATE OF r \
          SKIP LOCKED",
            "1\n3\n4",
        ),
        (
            "SELECT r.job FROM ready r JOIN jobs j ON j.id = r.job ORDER BY 1 LIMIT 2 FOR UPDATE OF \
          j SKIP LOCKED",
            "2\n3",
        ),
        (
            "SELECT r.n, j.id FROM ready r LEFT JOIN jobs j ON j.id = r.job WHERE r.n = 1 ORDER BY \
          2 FOR UPDATE SKIP LOCKED",
            "1|NULL",
        ),
        (
            "WITH few AS (SELECT 4 AS id UNION SELECT 5) SELECT jobs.id FROM few JOIN jobs USING \
          (id) FOR UPDATE SKIP LOCKED",
            "5",
        ),
        ("SELECT id FROM jobs WHERE id IN (1, 4) LIMIT 1 FOR UPDATE SKIP LOCKED", ""),
        ("SELECT 7 FOR UPDATE SKIP LOCKED", "7"),
    ] {
        let found = run(&mut b, &format!("BEGIN; {read}; COMMIT")).await;
        let found = found.map(|answers| answers.sets[1].text()).map_err(|error| error.message);
        assert_eq!(found.as_deref(), Ok(answer), "{read}");
    }
    let into = "SELECT id INTO @id FROM jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
    run(&mut b, into).await.unwrap();
    assert_eq!(rows(&mut b, "SELECT @id").await, "2");
    let text = b"SELECT id FROM jobs WHERE id > ? ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED";
    let prepared = b.prepare(text).await.unwrap();
    let mut answers = Answers::default();
    b.execute(&prepared, &[Value::Int(0), Value::Int(3)], &mut answers).await.unwrap();
    assert_eq!(answers.sets[0].text(), "2\n3\n5");
}

/// More rows are locked than are read beyond LIMIT at first.
#[tokio::test]
async fn many_locked_rows_are_passed_over() {
    let server = jobs(3_000).await;
    let (mut a, mut b) = (server.session(), server.session());
    run(&mut a, "BEGIN; SELECT id FROM jobs WHERE id < 2500 FOR UPDATE").await.unwrap();
    run(&mut b, "BEGIN").await.unwrap();
    assert_eq!(rows(&mut b, NEXT).await, "2500");
    let all = "SELECT COUNT(*) FROM jobs FOR UPDATE SKIP LOCKED";
    assert_eq!(rows(&mut b, all).await, "501");
    run(&mut a, "COMMIT").await.unwrap();
    assert_eq!(rows(&mut a, all).await, "2499");
}

/// What locks no rows does not claim to leave out those of others.
#[tokio::test]
async fn queries_within_a_statement_refuse_it() {
    let server = jobs(2).await;
    let mut session = server.session();
    run(&mut session, "CREATE TABLE other (id INT)").await.unwrap();
    for statement in [
        "SELECT * FROM (SELECT id FROM jobs FOR UPDATE SKIP LOCKED) x",
        "SELECT (SELECT id FROM jobs LIMIT 1 FOR UPDATE NOWAIT)",
        "(SELECT id FROM jobs FOR UPDATE SKIP LOCKED) UNION SELECT 1",
        "INSERT INTO other SELECT id FROM jobs FOR UPDATE SKIP LOCKED",
        "UPDATE other SET id = (SELECT MAX(id) FROM jobs FOR UPDATE SKIP LOCKED)",
        "CREATE TABLE made AS SELECT id FROM jobs FOR UPDATE NOWAIT",
    ] {
        let error = run(&mut session, statement).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotSupported, "{statement}: {}", error.message);
        assert!(error.message.contains("of anything but the outermost SELECT"), "{error:?}");
    }
}
