//! `kill -9` at random moments of sessions that write transactions: acknowledged commits are there, every transaction
//! is there completely or not at all, and AUTO_INCREMENT returns no value twice.
//!
//! A child process, this same binary, writes and prints each commit; the parent kills it and opens
//! the directory. `REMORA_CRASH_ROUNDS` sets the number of rounds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use support::{Server, rows, run};

const DIRECTORY: &str = "REMORA_SQL_CRASH_DIRECTORY";
const WRITERS: u64 = 3;

/// The child process: does nothing unless a directory is given.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn child_that_writes_until_it_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let server = Server::at(Path::new(&directory));
    let mut session = server.session();
    let tables = [
        "CREATE TABLE IF NOT EXISTS a (id INT AUTO_INCREMENT PRIMARY KEY, w INT, n INT)",
        "CREATE TABLE IF NOT EXISTS b (w INT, n INT, k VARCHAR(20) UNIQUE, PRIMARY KEY (w, n))",
    ];
    for table in tables {
        run(&mut session, table).await.unwrap();
    }
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let mut session = server.session();
        tasks.push(tokio::spawn(async move {
            let last = format!("SELECT COALESCE(MAX(n), 0) FROM b WHERE w = {writer}");
            let first: u64 = rows(&mut session, &last).await.parse().unwrap();
            for number in first + 1.. {
                let text = format!(
                    "BEGIN; INSERT INTO a (w, n) VALUES ({writer}, {number}), ({writer}, {number}); \
                     INSERT INTO b VALUES ({writer}, {number}, 'k{writer}.{number}'); COMMIT"
                );
                while let Err(error) = run(&mut session, &text).await {
                    // The definition has changed meanwhile.
                    assert!([1412, 1213, 1205].contains(&error.code.number()), "{error}");
                    run(&mut session, "ROLLBACK").await.unwrap();
                }
                let line = format!("ack {writer} {number}\n");
                std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
            }
        }));
    }
    let mut session = server.session();
    for key in ["a (w, n)", "b (n DESC, k)", "a ((n + 1))"].iter().cycle() {
        let _ = run(&mut session, "DROP INDEX made ON a").await;
        let _ = run(&mut session, "DROP INDEX made ON b").await;
        run(&mut session, &format!("CREATE INDEX made ON {key}")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!tasks.iter().any(tokio::task::JoinHandle::is_finished), "a writer has ended");
    }
}

/// Kills the child some time after its first commit; returns the last acknowledged number of each writer.
fn one_round(directory: &Path, lifetime: Duration) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_that_writes_until_it_is_killed", "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (commits, first_commit) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut last = vec![0_u64; WRITERS as usize];
        for line in output.lines().map_while(Result::ok) {
            let Some(acknowledged) = line.split("ack ").nth(1) else { continue };
            let mut parts = acknowledged.split(' ').map(|part| part.parse::<u64>());
            if let (Some(Ok(writer)), Some(Ok(number))) = (parts.next(), parts.next()) {
                last[writer as usize] = number;
                let _ = commits.send(());
            }
        }
        last
    });
    // An error means that the child ended by itself; nothing was acknowledged then.
    let _ = first_commit.recv();
    std::thread::sleep(lifetime);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn committed_transactions_survive_kill_9_whole() {
    let rounds = std::env::var("REMORA_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok());
    let directory = tempfile::tempdir().unwrap();
    for round in 0..rounds.unwrap_or(3_u64) {
        let lifetime = Duration::from_millis(100 + round * 137 % 500);
        let path = directory.path().to_owned();
        let acknowledged = tokio::task::spawn_blocking(move || one_round(&path, lifetime));
        let acknowledged = acknowledged.await.unwrap();
        assert!(acknowledged.iter().any(|&last| last > 0), "round {round}: nothing acknowledged");
        let server = Server::at(directory.path());
        let mut session = server.session();
        for (writer, last) in acknowledged.iter().enumerate() {
            let text = format!("SELECT COUNT(*) >= {last} FROM b WHERE w = {writer}");
            assert_eq!(rows(&mut session, &text).await, "1", "round {round}: a commit is gone");
        }
        let halves = "SELECT COUNT(*) FROM (SELECT w, n, COUNT(*) AS c FROM a GROUP BY w, n) AS x \
                      LEFT JOIN b ON b.w = x.w AND b.n = x.n WHERE c <> 2 OR b.n IS NULL";
        assert_eq!(rows(&mut session, halves).await, "0", "round {round}: half a transaction");
        let lone =
            "SELECT COUNT(*) FROM b LEFT JOIN a ON a.w = b.w AND a.n = b.n WHERE a.n IS NULL";
        assert_eq!(rows(&mut session, lone).await, "0", "round {round}: half a transaction");
        // The counter's next value is larger than all committed ones.
        let next = "INSERT INTO a (w, n) VALUES (99, 0), (99, 0)";
        run(&mut session, next).await.unwrap();
        let lower =
            "SELECT COUNT(*) FROM a WHERE w <> 99 AND id >= (SELECT MIN(id) FROM a WHERE w = 99)";
        assert_eq!(rows(&mut session, lower).await, "0", "round {round}: a value was given twice");
        run(&mut session, "DELETE FROM a WHERE w = 99").await.unwrap();
        let by_key = "SELECT COUNT(*) FROM a WHERE n + 1 = 3";
        let by_row = "SELECT COUNT(*) FROM a WHERE n + 1 + 0 = 3";
        assert_eq!(rows(&mut session, by_key).await, rows(&mut session, by_row).await);
        server.database.close().unwrap();
        drop(session);
        drop(server);
        let report = remora_engine::Database::check(directory.path(), &mut |_| {}).unwrap();
        assert_eq!(report.problems, [], "round {round}");
    }
}
