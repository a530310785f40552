//! kill -9 of a process that writes, watches changes and writes what it received.
//!
//! A child process, which runs this same binary, writes rows in several threads. A watcher in it copies them to another
//! table, each change in one batch with its position. The parent kills the child and opens the directory. The watcher
//! then continues, and the copy must equal the table. A second watcher, whose position the parent keeps, must receive
//! each change once. `REMORA_CRASH_ROUNDS` sets the number of rounds, `REMORA_SEED` the times of the kills.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use remora::{Database, Event, Options, Result};
use serde_json::json;

use crate::{
    Tested,
    watching::{Replay, rows_of},
};

const DIRECTORY: &str = "REMORA_WATCH_DIRECTORY";
const NOW: Duration = Duration::ZERO;

fn open(path: &Path) -> Result<Database> {
    // Small, so that much is dropped; and large enough for what nobody reads between two rounds.
    let options = Options { max_watch_bytes: 64 << 20, ..Options::default() };
    let db = Database::open_with(path, options)?;
    for table in ["rows", "copy"] {
        db.create_table(table, |t| t.int("id").key().text("body"))?;
    }
    Ok(db)
}

/// Copies received changes to the other table until none arrives within this time.
fn copy(db: &Database, patience: Duration) -> Result<()> {
    let copy = db.table("copy")?;
    let mut watch = db.watch().named("copy").tables(["rows"]).start()?;
    while let Some(change) = watch.next_within(patience)? {
        let mut batch = db.batch();
        match change.event() {
            // Inserted, so that what is done twice fails.
            Event::Insert { row } => {
                let body: String = row.get("body")?;
                batch.insert(&copy, &json!({"id": row.get::<i64>("id")?, "body": body}))?;
            }
            Event::Update { row, .. } => {
                let body: String = row.get("body")?;
                batch.upsert(&copy, &json!({"id": row.get::<i64>("id")?, "body": body}))?;
            }
            _ => batch.delete(&copy, change.key().and_then(<[_]>::first).cloned())?,
        }
        assert!(change.is_last(), "a transaction of one row has more: {change:?}");
        batch.done(&change)?;
        batch.commit()?;
    }
    Ok(())
}

/// The child process: does nothing without a directory in the environment.
#[test]
fn child_that_writes_and_watches_until_it_is_killed() -> Tested {
    let Ok(directory) = std::env::var(DIRECTORY) else { return Ok(()) };
    let db = open(Path::new(&directory))?;
    thread::scope(|scope| {
        for writer in 0..3_i64 {
            let db = &db;
            scope.spawn(move || {
                let table = db.table("rows").unwrap();
                for round in 0_i64.. {
                    let id = writer * 100 + round % 20;
                    let body = format!("round {round}");
                    match round % 5 {
                        4 => _ = table.delete(id - 1).unwrap(),
                        _ => table.upsert(&json!({"id": id, "body": body})).unwrap(),
                    }
                    // One write, so that a kill leaves no half line behind a whole one.
                    std::io::stdout().lock().write_all(b"wrote\n").unwrap();
                }
            });
        }
        scope.spawn(|| copy(&db, Duration::from_secs(60)).unwrap());
    });
    Ok(())
}

#[test]
fn watchers_survive_kill_9() -> Tested {
    let number = |name: &str| std::env::var(name).ok().and_then(|told| told.parse::<u64>().ok());
    let clock = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    let mut random = number("REMORA_SEED").unwrap_or(clock);
    println!("REMORA_SEED={random}");
    let directory = tempfile::tempdir()?;
    let db = open(directory.path())?;
    drop(db.watch().named("copy").tables(["rows"]).start()?);
    let mut replay = Replay::default();
    let mut position = db.watch().named("replay").tables(["rows"]).start()?.position();
    drop(db);
    let mut changes = 0;
    for round in 0..number("REMORA_CRASH_ROUNDS").unwrap_or(8) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut child = Command::new(std::env::current_exe()?)
            .args([
                "--exact",
                "kills::child_that_writes_and_watches_until_it_is_killed",
                "--nocapture",
            ])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let wrote =
            output.lines().map_while(std::io::Result::ok).find(|line| line.contains("wrote"));
        assert!(wrote.is_some(), "nothing was written before the kill");
        thread::sleep(Duration::from_millis((random >> 33) % 250));
        child.kill()?;
        child.wait()?;
        let db = open(directory.path())?;
        let mut watch = db.watch().named("replay").tables(["rows"]).from(position).start()?;
        while let Some(change) = watch.next_within(NOW)? {
            replay.take(&change);
            changes += 1;
        }
        position = watch.position();
        if random >> 40 & 1 == 0 {
            watch.save(position)?;
        }
        let rows = rows_of(&db, "rows")?;
        assert_eq!(replay.rows("rows"), rows, "round {round}: what was told gives other rows");
        copy(&db, NOW)?;
        assert_eq!(rows_of(&db, "copy")?, rows, "round {round}: the copy differs");
        println!("round {round}: {} rows, {changes} changes told", rows.len());
    }
    assert!(changes > 0);
    Ok(())
}
