//! A damaged row store is told, with the table and the place, and never answers wrongly. What can be
//! rebuilt is, the rest is listed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use remora_engine::{CheckReport, Database, Error, Options, Row};

use crate::common::*;

const ROWS: i64 = 4_000;

/// A directory whose rows are in files of the row store, some behind them in its journal.
fn filled() -> (tempfile::TempDir, Vec<Row>) {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let noise = |id: i64| -> String {
        let mut random = Random(id as u64);
        (0..600).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
    };
    for first in (0..ROWS).step_by(400) {
        let changes = (first..first + 400).map(|id| put(id, id, &noise(id)));
        apply(&database, changes.collect()).unwrap();
    }
    // Closing flushes what is in memory, if it is much; what comes behind it stays in the journal.
    database.close().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, (0..50).map(|id| put(id * 80, id, "changed later")).collect()).unwrap();
    let all = rows(&database);
    database.close().unwrap();
    (directory, all)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => _ = fs::copy(&from, &to).unwrap(),
        }
    }
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files_below(&path, found),
            false => found.push(path),
        }
    }
}

/// What a file is, whatever its number.
fn kind(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    let of = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let of = if of.bytes().all(|byte| byte.is_ascii_digit()) { "N" } else { of };
    let digits = |name: &str| name.trim_matches(|c: char| c.is_ascii_digit()).to_owned();
    format!("{of}/{}", digits(name))
}

/// A table of the file that is the largest below the store: rows.
fn file_of_rows(path: &Path) -> PathBuf {
    let mut files = Vec::new();
    files_below(&path.join("store/keyspaces"), &mut files);
    files.into_iter().max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap()
}

fn problems_of(report: &CheckReport) -> Vec<String> {
    report.problems.iter().map(ToString::to_string).collect()
}

/// Opens the directory and reads all of it: the rows are right, or damage is told.
fn rows_or_damage(path: &Path) -> Result<Vec<Row>, Error> {
    let database = Database::open(path, Options { checkpoint_bytes: u64::MAX, ..quick() })?;
    let mut found = Vec::new();
    database.scan(TABLE, &mut |row| {
        found.push(row);
        Ok(())
    })?;
    Ok(found)
}

/// Files of every kind, cut and with flipped bits: nobody is ever told other rows than were written.
#[test]
fn all_damage_of_the_row_store_is_detected() {
    let (directory, all) = filled();
    let mut files = Vec::new();
    files_below(&directory.path().join("store"), &mut files);
    let mut kinds: Vec<String> = files.iter().map(|file| kind(file)).collect();
    kinds.sort();
    kinds.dedup();
    println!("{kinds:?}");
    assert!(kinds.len() >= 5, "{kinds:?}");
    let mut random = Random::seeded();
    let mut found = [0, 0];
    for file in files {
        let inside = file.strip_prefix(directory.path()).unwrap();
        // The journal is long and empty for the most part: what was written is at its beginning.
        let written = fs::read(&file).unwrap();
        let length = written.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1) as u64;
        for round in 0..6 {
            let damaged = tempfile::tempdir().unwrap();
            copy(directory.path(), damaged.path());
            let victim = damaged.path().join(inside);
            let what = match round {
                _ if length == 0 => "is empty".to_owned(),
                0 | 1 => {
                    let left = if round == 0 { 0 } else { random.below(length) };
                    let file = fs::OpenOptions::new().write(true).open(&victim).unwrap();
                    file.set_len(left).unwrap();
                    format!("cut to {left} of {length}")
                }
                _ => {
                    let bit = random.below(length * 8);
                    let mut bytes = written.clone();
                    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                    fs::write(&victim, bytes).unwrap();
                    format!("bit {bit} of {} flipped", length * 8)
                }
            };
            let outcome = rows_or_damage(damaged.path());
            found[usize::from(outcome.is_err())] += 1;
            match outcome {
                Ok(rows) => {
                    let same = rows == all;
                    assert!(same, "{} {what}: {} rows", inside.display(), rows.len());
                }
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains("store"), "{} {what}: {said}", inside.display());
                    let report = Database::check(damaged.path(), &mut |_| {}).unwrap();
                    let told = problems_of(&report);
                    assert!(!told.is_empty(), "{} {what}: {said}", inside.display());
                }
            }
        }
    }
    println!("{} harmless, {} told", found[0], found[1]);
    assert!(found[1] > 10, "{found:?}");
}

/// Damage of rows in the midst of a table, and of two files beside: all of it is listed, what can be
/// is rebuilt, and the rows that can be read are read.
#[test]
fn a_check_continues_after_damage_and_a_repair_rebuilds_the_rest() {
    let (directory, all) = filled();
    let path = directory.path();
    let victim = file_of_rows(path);
    let mut bytes = fs::read(&victim).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&victim, &bytes).unwrap();
    let mut segments: Vec<_> =
        fs::read_dir(path.join("segments")).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let smallest = segments.iter().min_by_key(|file| fs::metadata(file).unwrap().len()).unwrap();
    fs::remove_file(smallest).unwrap();
    let lost_segment = smallest.file_name().unwrap().to_str().unwrap().to_owned();

    let error = rows_or_damage(path).unwrap_err().to_string();
    assert!(error.contains(TABLE) && error.contains("keyspaces") && error.contains("key ["));
    assert!(error.contains("remora check") && error.contains("backup"), "{error}");

    let report = Database::check(path, &mut |_| {}).unwrap();
    let told = problems_of(&report);
    assert!(told.iter().any(|what| what.contains(&lost_segment)), "{told:#?}");
    let lost: Vec<_> = report.problems.iter().filter(|one| !one.can_be_rebuilt).collect();
    assert!(lost.len() > 1, "{told:#?}");
    assert!(lost.iter().all(|one| one.table.as_deref() == Some(TABLE)), "{told:#?}");
    assert!(report.trusted.iter().any(|what| what.contains(TABLE)), "{:?}", report.trusted);
    let readable = report.tables[0].rows;
    assert!(readable > ROWS as u64 / 2 && readable < ROWS as u64, "{readable}");

    let repaired = Database::repair(path, &mut |_| {}).unwrap();
    assert_eq!(repaired.before.problems, report.problems);
    let left = repaired.after.problems;
    assert!(left.iter().all(|one| !one.can_be_rebuilt), "{left:#?}");
    let database = Database::open(path, quick()).unwrap();
    // The keys on the left of the damage and on its right, by the store and by the index.
    let kept = |id: i64| database.get(TABLE, &[remora_engine::Value::Int(id)]);
    assert_eq!(kept(1).unwrap().as_ref(), Some(&all[1]));
    assert_eq!(kept(ROWS - 1).unwrap().as_ref(), all.last());
    apply(&database, vec![put(ROWS, 0, "written behind the repair")]).unwrap();
    assert_eq!(find(&database, "behind the repair"), [ROWS]);
}

/// The same where no segment knows which rows there must be: those behind the damage are found.
#[test]
fn rows_after_damage_are_found_without_any_segment() {
    let (directory, all) = filled();
    let path = directory.path();
    let victim = file_of_rows(path);
    let mut bytes = fs::read(&victim).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&victim, &bytes).unwrap();
    for segment in fs::read_dir(path.join("segments")).unwrap() {
        fs::remove_file(segment.unwrap().path()).unwrap();
    }
    let readable = Database::check(path, &mut |_| {}).unwrap().tables[0].rows;
    assert!(readable > ROWS as u64 * 9 / 10 && readable < ROWS as u64, "{readable}");
    let repaired = Database::repair(path, &mut |_| {}).unwrap();
    let left = repaired.after.problems;
    assert!(left.iter().all(|one| !one.can_be_rebuilt), "{left:#?}");
    let database = Database::open(path, quick()).unwrap();
    assert_eq!(count(&database), readable);
    let last = database.get(TABLE, &[remora_engine::Value::Int(ROWS - 1)]).unwrap();
    assert_eq!(last.as_ref(), all.last());
}

/// A journal that was cut behind the last checkpoint's rows.
#[test]
fn truncated_journal_is_refused_until_the_loss_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    for id in 0..20 {
        apply(&database, vec![put(id, id, "a row of the journal")]).unwrap();
    }
    database.close().unwrap();
    let journal = directory.path().join("store/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64;
    fs::OpenOptions::new().write(true).open(&journal).unwrap().set_len(end / 2).unwrap();
    for _ in 0..2 {
        let error = Database::open(directory.path(), quick()).err().unwrap();
        assert!(matches!(error, Error::Corrupt(_)), "{error}");
        let said = error.to_string();
        assert!(said.contains("but batch 20 was durable"), "{said}");
        let report = Database::check(directory.path(), &mut |_| {}).unwrap();
        assert!(
            report.problems.iter().any(|one| !one.can_be_rebuilt),
            "{:?}",
            problems_of(&report)
        );
    }
    let repaired = Database::repair(directory.path(), &mut |_| {}).unwrap();
    assert_eq!(repaired.after.problems, []);
    let database = Database::open(directory.path(), quick()).unwrap();
    let left = count(&database) as i64;
    assert!(left > 0 && left < 20, "{left}");
    assert_eq!(find(&database, "journal"), (0..left).collect::<Vec<_>>());
    check_is_clean(database);
}

/// The file that says which format the directory has: without it, or with another word in it, nothing
/// is opened, checked or changed.
#[test]
fn a_damaged_format_is_refused() {
    let (directory, _) = filled();
    let format = directory.path().join("FORMAT");
    let good = fs::read(&format).unwrap();
    let cuts = (0..good.len()).map(|length| good[..length].to_vec());
    let flips = (0..good.len() * 8).map(|bit| {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    });
    for bad in cuts.chain(flips) {
        fs::write(&format, &bad).unwrap();
        let error = Database::open(directory.path(), quick()).err().unwrap().to_string();
        assert!(error.contains("FORMAT"), "{bad:?}: {error}");
        assert!(Database::check(directory.path(), &mut |_| {}).is_err(), "{bad:?}");
        assert!(Database::repair(directory.path(), &mut |_| {}).is_err(), "{bad:?}");
    }
    fs::remove_file(&format).unwrap();
    let error = Database::open(directory.path(), quick()).err().unwrap().to_string();
    assert!(error.contains("no FORMAT"), "{error}");
    fs::write(&format, &good).unwrap();
    assert_eq!(problems_of(&Database::check(directory.path(), &mut |_| {}).unwrap()), [""; 0]);
}
