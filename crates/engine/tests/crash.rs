//! kill -9 at random moments of a write load, and a disk that fills up.
//!
//! A child process, this same binary, writes batches and prints each one that was acknowledged.
//! The parent kills it and opens the directory: what was acknowledged must be there whole, what was
//! under way whole or not at all, and the check must find nothing.
//! `REMORA_CRASH_ROUNDS` sets the number of rounds, `REMORA_SEED` the moments.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails, in its helpers as well"
)]

mod common;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use common::*;
use remora_engine::{ChangeBatch, Database, Durability, Error, Options, Row, TableChanges, Value};

const DIRECTORY: &str = "REMORA_CRASH_DIRECTORY";
const PHASE: &str = "REMORA_CRASH_PHASE";
/// Threads that write small batches; one more writes large ones, and one batches in parts.
const SMALL_WRITERS: i64 = 3;
/// The one of them whose batches are transactions.
const TRANSACTION_WRITER: i64 = 1;
const LARGE_WRITER: i64 = SMALL_WRITERS;
const PARTS_WRITER: i64 = SMALL_WRITERS + 1;
const WRITERS: usize = PARTS_WRITER as usize + 1;
const SLOTS: i64 = 10;
const ROWS_OF_A_SLOT: i64 = 4;
const ROWS_OF_A_LARGE_BATCH: i64 = 1_100;

fn options() -> Options {
    // A tiny limit makes the child write checkpoints all the time.
    Options { durability: Durability::Always, checkpoint_bytes: 60_000, ..Options::default() }
}

/// Batch `number` of a writer: the rows of one slot, replaced or deleted, and its number as the
/// position of a source.
fn batch_of(writer: i64, number: i64) -> ChangeBatch {
    let slot = number % SLOTS;
    let (first, rows) = match writer {
        LARGE_WRITER => (1_000_000, ROWS_OF_A_LARGE_BATCH),
        PARTS_WRITER => (2_000_000, ROWS_OF_A_LARGE_BATCH),
        _ => (writer * 1_000 + slot * 10, ROWS_OF_A_SLOT),
    };
    let ids = first..first + rows;
    let changes = match number % 7 {
        0 => ids.map(delete).collect(),
        _ => ids.map(|id| put(id, number, &format!("writer{writer} batch{number}."))).collect(),
    };
    let positions = vec![(format!("writer{writer}"), number.to_string())];
    ChangeBatch { positions, ..batch(changes) }
}

/// The rows after batches `1..=last` of each writer, worked out without a database.
fn expected_rows(last: &[i64]) -> BTreeMap<i64, Row> {
    let mut rows = BTreeMap::new();
    for (writer, &last) in last.iter().enumerate() {
        for number in (last - SLOTS + 1).max(1)..=last {
            for change in &batch_of(writer as i64, number).tables[0].changes {
                match change {
                    remora_engine::Change::Put(row) | remora_engine::Change::Insert(row) => {
                        rows.insert(id_of(row), row.clone());
                    }
                    remora_engine::Change::Delete(key) => _ = rows.remove(&id_of(key)),
                }
            }
        }
    }
    rows
}

fn last_batch(database: &Database, writer: i64) -> i64 {
    let position = database.source_position(&format!("writer{writer}")).unwrap();
    position.map_or(0, |number| number.parse().unwrap())
}

/// The child: does nothing unless it is told where to write.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let database = open(Path::new(&directory), options());
    std::thread::scope(|scope| {
        for writer in 0..WRITERS as i64 {
            let database = &database;
            scope.spawn(move || {
                let first = last_batch(database, writer) + 1;
                for number in first.. {
                    write(database, writer, number);
                    // One write, so that a kill leaves no half line behind a whole one.
                    let line = format!("ack {writer} {number}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

fn write(database: &Database, writer: i64, number: i64) {
    if writer == TRANSACTION_WRITER {
        return write_transaction(database, writer, number);
    }
    let ChangeBatch { mut tables, positions } = batch_of(writer, number);
    if writer != PARTS_WRITER {
        database.apply(ChangeBatch { tables, positions }).unwrap();
        return;
    }
    let mut large = database.begin_large().unwrap();
    let table = tables.remove(0);
    for changes in table.changes.chunks(ROWS_OF_A_LARGE_BATCH as usize / 10) {
        let part = TableChanges { table: table.table.clone(), changes: changes.to_vec() };
        large.add(vec![part]).unwrap();
    }
    large.commit(positions).unwrap();
}

/// A batch in parts collides with every transaction on its table, so it may take several.
fn write_transaction(database: &Database, writer: i64, number: i64) {
    loop {
        let mut transaction = database.begin();
        transaction.protect(TABLE, &[Value::Int(writer * 1_000)]).unwrap();
        match transaction.commit(batch_of(writer, number)) {
            Ok(_) => return,
            Err(Error::Conflict(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn spawn_child(directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_until_it_is_killed", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets a child write for a random time, kills it, and notes the last acknowledged batch of each
/// writer. One child in four is killed while it starts.
fn run_and_kill(directory: &Path, random: &mut Random, acknowledged: &mut [i64]) {
    let mut child = spawn_child(directory);
    let output = BufReader::new(child.stdout.take().unwrap());
    let patience = Duration::from_millis(random.below(200));
    let at_start = random.below(4) == 0;
    let (writes, first_write) = std::sync::mpsc::channel();
    let killer = std::thread::spawn(move || {
        if !at_start {
            // An error means that the child ended by itself; the verification will tell.
            let _ = first_write.recv();
        }
        std::thread::sleep(patience);
        child.kill().unwrap();
        child.wait().unwrap();
    });
    for line in output.lines().map_while(Result::ok) {
        // The harness prints the test's name without a line end before the first one.
        let Some((_, acknowledgement)) = line.split_once("ack ") else { continue };
        let numbers: Vec<i64> =
            acknowledgement.split(' ').filter_map(|part| part.parse().ok()).collect();
        if let [writer, number] = numbers[..] {
            acknowledged[writer as usize] = number;
            let _ = writes.send(());
        }
    }
    killer.join().unwrap();
}

fn verify(directory: &Path, acknowledged: &[i64]) -> Vec<i64> {
    let database = open(directory, options());
    let last: Vec<i64> = (0..WRITERS as i64).map(|writer| last_batch(&database, writer)).collect();
    for (last, acknowledged) in last.iter().zip(acknowledged) {
        let whole = *last == *acknowledged || *last == acknowledged + 1;
        assert!(whole, "batch {acknowledged} was acknowledged, batch {last} is there");
    }
    let expected = expected_rows(&last);
    assert_eq!(rows(&database), expected.values().cloned().collect::<Vec<_>>());
    assert_eq!(count(&database), expected.len() as u64);
    for (writer, number) in last.iter().enumerate() {
        let ids = |term: &str| -> Vec<i64> {
            let has = |row: &Row| matches!(&row[2], Value::Text(t) if t.contains(term));
            expected.iter().filter(|(_, row)| has(row)).map(|(id, _)| *id).collect()
        };
        for term in [format!("writer{writer} "), format!("r{writer} batch{number}.")] {
            assert_eq!(find(&database, &term), ids(&term), "{term}");
        }
    }
    check_is_clean(database);
    last
}

#[test]
fn acknowledged_batches_survive_kill_9() {
    let rounds = std::env::var("REMORA_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: u64 = rounds.unwrap_or(12);
    let mut random = Random::seeded();
    let mut directory = tempfile::tempdir().unwrap();
    let mut acknowledged = vec![0; WRITERS];
    for round in 0..rounds {
        if round % 25 == 24 {
            directory = tempfile::tempdir().unwrap();
            acknowledged.fill(0);
        }
        run_and_kill(directory.path(), &mut random, &mut acknowledged);
        acknowledged = verify(directory.path(), &acknowledged);
        println!("round {round}: batches {acknowledged:?}");
    }
}

/// The child of the full disk: fills it, or verifies what it left once there is room again.
#[test]
fn child_that_fills_the_disk() {
    let Ok(phase) = std::env::var(PHASE) else { return };
    let directory = std::env::var(DIRECTORY).unwrap();
    // Beside the full disk, not on it.
    let acknowledged = Path::new("acknowledged");
    let database = open(Path::new(&directory), options());
    let noise = |id: i64| -> String {
        let mut random = Random(id as u64);
        (0..2_000).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
    };
    if phase == "fill" {
        let fill = (0i64..).find_map(|number| {
            let ids = number * 20..(number + 1) * 20;
            let changes = ids.map(|id| put(id, number, &format!("kept {}", noise(id))));
            apply(&database, changes.collect()).err().map(|error| (number, error))
        });
        let (batches, error) = fill.unwrap();
        assert!(matches!(error, Error::Poisoned(_) | Error::Io(_)), "{error}");
        let said = error.to_string();
        assert!(said.contains("space") || said.contains("large"), "{said}");
        println!("after {batches} batches: {said}");
        assert!(batches > 0, "{said}");
        let again = apply(&database, vec![put(-1, 0, "refused")]);
        assert!(matches!(again, Err(Error::Poisoned(_))), "{again:?}");
        // Reads go on.
        assert_eq!(count(&database), batches as u64 * 20);
        assert_eq!(find(&database, "kept").len() as i64, batches * 20);
        std::fs::write(acknowledged, batches.to_string()).unwrap();
    } else {
        let batches: i64 = std::fs::read_to_string(acknowledged).unwrap().parse().unwrap();
        let found = find(&database, "kept");
        let all = |batches: i64| (0..batches * 20).collect::<Vec<i64>>();
        // The batch that was refused is there whole or not at all.
        assert!(found == all(batches) || found == all(batches + 1), "{}", found.len());
        apply(&database, vec![put(-1, 0, "taken again")]).unwrap();
        check_is_clean(database);
    }
    println!("phase {phase} done");
}

/// On a small file system of its own where the system lets us mount one, else under a limit of the
/// size of files, which the kernel answers in the same place.
#[test]
fn a_full_disk_loses_nothing() {
    let outside = tempfile::tempdir().unwrap();
    let mounted = "mount -t tmpfs -o size=12m tmpfs disk && export REMORA_CRASH_DIRECTORY=$PWD/disk/db \
        && REMORA_CRASH_PHASE=fill $CHILD && mount -o remount,size=500m disk \
        && REMORA_CRASH_PHASE=verify $CHILD";
    let limited = "export REMORA_CRASH_DIRECTORY=$PWD/disk/db; \
        (trap '' XFSZ; ulimit -f 4000; REMORA_CRASH_PHASE=fill $CHILD) \
        && REMORA_CRASH_PHASE=verify $CHILD";
    let can_mount = run_script(outside.path(), &["unshare", "-rm"], "mount -t tmpfs t disk").0;
    let (ended_well, output) = match can_mount {
        true => run_script(outside.path(), &["unshare", "-rm"], mounted),
        false => run_script(outside.path(), &[], limited),
    };
    println!("{output}");
    assert!(ended_well && output.contains("phase verify done"), "{output}");
}

fn run_script(directory: &Path, wrapper: &[&str], script: &str) -> (bool, String) {
    std::fs::create_dir_all(directory.join("disk")).unwrap();
    let child = std::env::current_exe().unwrap();
    let child = format!("{} --exact child_that_fills_the_disk --nocapture", child.display());
    let mut words = wrapper.to_vec();
    words.extend(["sh", "-c", script]);
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(directory)
        .env("CHILD", child)
        .stderr(Stdio::inherit())
        .output();
    match output {
        Ok(output) => (output.status.success(), String::from_utf8_lossy(&output.stdout).into()),
        Err(error) => (false, error.to_string()),
    }
}
