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

/// Conditions of many keys of several columns are neither deep nor slow, whichever column differs.
#[tokio::test]
async fn thousands_of_locked_rows_have_keys_of_two_columns() {
    let server = Server::new();
    let (mut a, mut b) = (server.session(), server.session());
    for (table, key) in [("wide", "part, n"), ("deep", "n, part")] {
        let made = format!("CREATE TABLE {table} (part VARCHAR(3), n INT, PRIMARY KEY ({key}))");
        run(&mut a, &made).await.unwrap();
        let values: Vec<String> = (1..=20_050).map(|n| format!("('p{}',{n})", n % 3)).collect();
        for values in values.chunks(5_000) {
            let insert = format!("INSERT INTO {table} VALUES {}", values.join(","));
            run(&mut a, &insert).await.unwrap();
        }
        run(&mut a, &format!("BEGIN; SELECT n FROM {table} WHERE n <= 3000 FOR UPDATE"))
            .await
            .unwrap();
        let count = format!("SELECT COUNT(*), MIN(n) FROM {table} FOR UPDATE SKIP LOCKED");
        assert_eq!(rows(&mut b, &count).await, "17050|3001", "{table}");
        let few = format!("SELECT n FROM {table} ORDER BY n LIMIT 2 FOR UPDATE SKIP LOCKED");
        assert_eq!(rows(&mut b, &few).await, "3001\n3002", "{table}");
        let page = format!("SELECT n FROM {table} ORDER BY n LIMIT 1500 FOR UPDATE SKIP LOCKED");
        let found = rows(&mut b, &page).await;
        assert_eq!(found.lines().count(), 1_500, "{table}: {found:.200}");
        assert!(found.ends_with("4500"), "{table}");
        // More are free than locked, and the other way round.
        let most = format!("SELECT COUNT(*) FROM {table} WHERE n < 3500 FOR UPDATE SKIP LOCKED");
        assert_eq!(rows(&mut b, &most).await, "499", "{table}");
        run(&mut a, "ROLLBACK").await.unwrap();
        let all = format!("SELECT n FROM {table} LIMIT 20050 FOR UPDATE SKIP LOCKED");
        let error = run(&mut b, &all).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotSupported, "{}", error.message);
        assert!(error.message.contains("more than 20000 rows"), "{}", error.message);
    }
}

/// The rows that are locked are the first ones in the order of the SELECT.
#[tokio::test]
async fn order_by_positions_and_aliases_choose_the_rows() {
    let server = Server::new();
    let mut session = server.session();
    let table = "CREATE TABLE due (id INT PRIMARY KEY, s INT); \
                 INSERT INTO due VALUES (1,3),(2,1),(3,2)";
    run(&mut session, table).await.unwrap();
    for (read, answer) in [
        ("SELECT s, due.* FROM due ORDER BY 1 LIMIT 1", "1|2|1"),
        ("SELECT id, s FROM due ORDER BY 2 LIMIT 1", "2|1"),
        ("SELECT * FROM due ORDER BY s DESC LIMIT 1", "1|3"),
        ("SELECT * FROM due ORDER BY 2", "2|1\n3|2\n1|3"),
        ("SELECT id, s AS x FROM due ORDER BY x * 2 LIMIT 1", "2|1"),
        ("SELECT id, s AS x FROM due ORDER BY -x LIMIT 1", "1|3"),
        ("SELECT id, s + 0 AS x FROM due ORDER BY ABS(x - 2), id LIMIT 1", "3|2"),
        // An alias alone goes before the column of its name, within an expression the column does.
        ("SELECT id, -s AS s FROM due ORDER BY s LIMIT 1", "1|-3"),
        ("SELECT id, -s AS s FROM due ORDER BY s + 0 LIMIT 1", "2|-1"),
    ] {
        let read = format!("{read} FOR UPDATE SKIP LOCKED");
        assert_eq!(rows(&mut session, &read).await, answer, "{read}");
    }
    for read in [
        "SELECT * FROM due ORDER BY 2 LIMIT 1 FOR UPDATE SKIP LOCKED",
        "SELECT due.*, s FROM due ORDER BY 3 LIMIT 1 FOR SHARE NOWAIT",
    ] {
        let error = run(&mut session, read).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotSupported, "{read}: {}", error.message);
        assert!(error.message.contains("name the column"), "{}", error.message);
    }
    // Without these words all rows are protected, whichever comes first.
    let mut other = server.session();
    let read = run(&mut session, "BEGIN; SELECT * FROM due ORDER BY 2 LIMIT 1 FOR UPDATE").await;
    assert_eq!(read.unwrap().sets[1].text(), "2|1");
    run(&mut other, "UPDATE due SET s = 5 WHERE id = 2").await.unwrap();
    let done = run(&mut session, "UPDATE due SET s = 6 WHERE id = 3; COMMIT").await;
    assert_eq!(done.unwrap_err().code, ErrorCode::Deadlock);
}

/// Rows beyond LIMIT count in windows and for FOUND_ROWS().
#[tokio::test]
async fn windows_and_found_rows_count_all_rows_that_are_free() {
    let server = jobs(9).await;
    let (mut a, mut b) = (server.session(), server.session());
    run(&mut a, "BEGIN; SELECT id FROM jobs WHERE id IN (1, 4) FOR UPDATE").await.unwrap();
    for (read, answer) in [
        ("SELECT id, COUNT(*) OVER () FROM jobs ORDER BY id LIMIT 2", "2|7\n3|7"),
        ("SELECT id, COUNT(*) OVER w FROM jobs WINDOW w AS () ORDER BY id LIMIT 1", "2|7"),
        ("SELECT id FROM jobs ORDER BY ROW_NUMBER() OVER (ORDER BY id DESC) LIMIT 1", "9"),
        ("SELECT SQL_CALC_FOUND_ROWS id FROM jobs ORDER BY id LIMIT 2", "2\n3"),
    ] {
        let read = format!("{read} FOR UPDATE SKIP LOCKED");
        assert_eq!(rows(&mut b, &read).await, answer, "{read}");
    }
    assert_eq!(rows(&mut b, "SELECT FOUND_ROWS()").await, "7");
    // The session's limit is one of the SELECT alone.
    run(&mut b, "SET sql_select_limit = 2").await.unwrap();
    let last = "SELECT id FROM jobs ORDER BY id DESC FOR UPDATE SKIP LOCKED";
    assert_eq!(rows(&mut b, last).await, "9\n8");
    assert_eq!(rows(&mut b, "SELECT COUNT(*) FROM jobs FOR UPDATE SKIP LOCKED").await, "7");
}

/// Others do not see a row that an open transaction inserts: its locks would only take the place of those of rows.
#[tokio::test]
async fn rows_that_a_transaction_inserts_are_not_locked() {
    let server = jobs(3).await;
    let (mut a, mut b) = (server.session(), server.session());
    assert_eq!(rows(&mut b, NEXT).await, "1");
    let insert = "INSERT INTO jobs VALUES (9,'q',0)";
    run(&mut a, &format!("BEGIN; {insert}; SELECT * FROM jobs WHERE id = 9 FOR UPDATE"))
        .await
        .unwrap();
    assert_eq!(rows(&mut a, "SELECT id FROM jobs WHERE id = 9 FOR UPDATE NOWAIT").await, "9");
    run(&mut b, insert).await.unwrap();
    run(&mut b, "BEGIN").await.unwrap();
    assert_eq!(rows(&mut b, "SELECT id FROM jobs WHERE id = 9 FOR UPDATE NOWAIT").await, "9");
    assert_eq!(run(&mut a, "COMMIT").await.unwrap_err().code, ErrorCode::Deadlock);
}

/// A client that leaves during its COMMIT does not unlock the rows before they are changed.
#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_commit_keeps_its_rows_locked() {
    let server = jobs(40).await;
    for _ in 0..20 {
        let (mut a, mut b) = (server.session(), server.session());
        run(&mut a, "BEGIN").await.unwrap();
        let id = rows(&mut a, NEXT).await;
        let update = format!("UPDATE jobs SET taken = 1 WHERE id = {id}");
        run(&mut a, &update).await.unwrap();
        tokio::select! {
            biased;
            _ = run(&mut a, "COMMIT") => {}
            () = std::future::ready(()) => {}
        }
        run(&mut b, "BEGIN").await.unwrap();
        assert_ne!(rows(&mut b, NEXT).await, id);
        run(&mut b, "ROLLBACK").await.unwrap();
        drop(a);
        let is_taken = format!("SELECT taken FROM jobs WHERE id = {id}");
        for _ in 0..1_000 {
            if rows(&mut b, &is_taken).await == "1" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn of_names_a_table_of_from() {
    let server = jobs(3).await;
    let mut session = server.session();
    for begin in ["", "BEGIN"] {
        if !begin.is_empty() {
            run(&mut session, begin).await.unwrap();
        }
        for (read, name) in [
            ("SELECT id FROM jobs FOR UPDATE OF x SKIP LOCKED", Some("x")),
            ("SELECT id FROM jobs FOR UPDATE OF x", Some("x")),
            ("SELECT id FROM jobs FOR SHARE OF jobs, x NOWAIT", Some("x")),
            ("SELECT id FROM jobs j FOR UPDATE OF jobs", Some("jobs")),
            ("SELECT id FROM jobs j FOR UPDATE OF j SKIP LOCKED", None),
            (
                "SELECT j.id FROM (SELECT 1 AS id) d JOIN jobs j ON j.id < 4 ORDER BY j.id FOR SHARE OF d, j",
                None,
            ),
        ] {
            let found = rows(&mut session, read).await;
            match name {
                Some(name) => {
                    let error = format!("3568 Unresolved table name `{name}` in locking clause.");
                    assert_eq!(found, error, "{read}");
                }
                None => assert_eq!(found, "1\n2\n3", "{read}"),
            }
        }
    }
}

#[tokio::test]
async fn views_refuse_it_and_derived_tables_lock_nothing() {
    let server = jobs(3).await;
    let (mut a, mut b) = (server.session(), server.session());
    run(&mut a, "CREATE VIEW all_jobs AS SELECT id FROM jobs").await.unwrap();
    run(&mut a, "BEGIN; SELECT id FROM jobs WHERE id = 1 FOR UPDATE").await.unwrap();
    for read in [
        "SELECT id FROM all_jobs FOR UPDATE SKIP LOCKED",
        "SELECT v.id FROM jobs j JOIN all_jobs v ON v.id = j.id FOR SHARE NOWAIT",
        "SELECT v.id FROM jobs j JOIN all_jobs v ON v.id = j.id FOR UPDATE OF v SKIP LOCKED",
    ] {
        let error = run(&mut b, read).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotSupported, "{read}: {}", error.message);
        assert!(error.message.contains("all_jobs"), "{}", error.message);
    }
    let joined = "SELECT v.id FROM jobs j JOIN all_jobs v ON v.id = j.id ORDER BY 1 FOR UPDATE OF j \
                  SKIP LOCKED";
    assert_eq!(rows(&mut b, joined).await, "2\n3");
    let derived = "SELECT id FROM (SELECT id FROM jobs) d ORDER BY id FOR UPDATE SKIP LOCKED";
    assert_eq!(rows(&mut b, derived).await, "1\n2\n3");
    run(&mut b, "CREATE TEMPORARY TABLE own (id INT PRIMARY KEY); INSERT INTO own VALUES (7)")
        .await
        .unwrap();
    assert_eq!(rows(&mut b, "SELECT id FROM own FOR UPDATE NOWAIT").await, "7");
}

/// Some drivers send the numbers of LIMIT as text; NULL is 0.
#[tokio::test]
async fn limit_takes_the_parameters_that_it_takes_elsewhere() {
    let server = jobs(5).await;
    let (mut a, mut b) = (server.session(), server.session());
    run(&mut a, "BEGIN; SELECT id FROM jobs WHERE id = 1 FOR UPDATE").await.unwrap();
    let text = b"SELECT id FROM jobs ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED";
    let prepared = b.prepare(text).await.unwrap();
    for (limit, answer) in
        [(Value::Text("2".into()), "2\n3"), (Value::Null, ""), (Value::Uint(1), "2")]
    {
        let mut answers = Answers::default();
        b.execute(&prepared, &[limit], &mut answers).await.unwrap();
        assert_eq!(answers.sets[0].text(), answer);
    }
}

#[tokio::test]
async fn a_shared_row_that_one_of_its_sharers_changes_is_locked() {
    let server = jobs(3).await;
    let (mut a, mut b, mut c) = (server.session(), server.session(), server.session());
    let shared = "SELECT id FROM jobs WHERE id = 1 FOR SHARE";
    for session in [&mut a, &mut b] {
        run(session, "BEGIN").await.unwrap();
        assert_eq!(rows(session, &format!("{shared} NOWAIT")).await, "1");
    }
    assert_eq!(rows(&mut c, &format!("{shared} NOWAIT")).await, "1");
    run(&mut b, "UPDATE jobs SET taken = 1 WHERE id = 1").await.unwrap();
    assert_eq!(rows(&mut c, &format!("{shared} SKIP LOCKED")).await, "");
    assert!(rows(&mut a, &format!("{shared} NOWAIT")).await.starts_with("3572 "));
    run(&mut a, "ROLLBACK").await.unwrap();
    assert_eq!(rows(&mut c, &format!("{shared} SKIP LOCKED")).await, "");
    run(&mut b, "COMMIT").await.unwrap();
    assert_eq!(rows(&mut c, &format!("{shared} SKIP LOCKED")).await, "1");
}

/// A row that is found in a round, and again in the next one with more rows, is protected once.
#[tokio::test]
async fn rows_are_protected_once_however_often_more_are_read() {
    let server = Server::with_most_changes(100);
    let mut workers: Vec<_> = (0..4).map(|_| server.session()).collect();
    let mut b = server.session();
    run(&mut b, "CREATE TABLE jobs (id INT PRIMARY KEY)").await.unwrap();
    for start in (1..300).step_by(50) {
        let values: Vec<String> = (start..start + 50).map(|id| format!("({id})")).collect();
        run(&mut b, &format!("INSERT INTO jobs VALUES {}", values.join(","))).await.unwrap();
    }
    for (worker, start) in workers.iter_mut().zip((46..).step_by(50)) {
        let end = start + 49;
        let read = format!("SELECT id FROM jobs WHERE id BETWEEN {start} AND {end} FOR UPDATE");
        run(worker, &format!("BEGIN; {read}")).await.unwrap();
    }
    let expected: Vec<String> = (1..46).chain(246..261).map(|id| id.to_string()).collect();
    run(&mut b, "BEGIN").await.unwrap();
    let read = "SELECT id FROM jobs ORDER BY id LIMIT 60 FOR UPDATE SKIP LOCKED";
    assert_eq!(rows(&mut b, read).await, expected.join("\n"));
    run(&mut b, "DELETE FROM jobs WHERE id < 46; COMMIT").await.unwrap();
}
