//! A damaged or missing file of the index is found, reported by `check`, and rebuilt from the rows.

use std::{fs, path::Path, path::PathBuf};

use remora_engine::Database;

use crate::common::*;

/// A directory whose rows are in two segment files and, some, in the log only.
fn filled() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, (0..50).map(|id| put(id, id, "first file")).collect()).unwrap();
    database.checkpoint().unwrap();
    apply(&database, (40..60).map(|id| put(id, id, "second file")).collect()).unwrap();
    apply(&database, vec![delete(7)]).unwrap();
    database.close().unwrap();
    directory
}

fn verify(path: &Path) {
    let database = Database::open(path, quick()).unwrap();
    let first: Vec<i64> = (0..40).filter(|&id| id != 7).collect();
    assert_eq!(find(&database, "first"), first);
    assert_eq!(find(&database, "second"), (40..60).collect::<Vec<_>>());
    assert_eq!((count(&database), rows(&database).len()), (59, 59));
    check_is_clean(database);
}

/// The problems that `check` finds, as text.
fn problems(path: &Path) -> String {
    let report = Database::check(path, &mut |_| {}).unwrap();
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    problems.join("\n")
}

fn segment_files(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path.join("segments")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn an_intact_directory_is_clean() {
    let directory = filled();
    assert_eq!(problems(directory.path()), "");
    assert!(segment_files(directory.path()).len() >= 2);
    verify(directory.path());
}

#[test]
fn a_lost_or_torn_manifest_is_rebuilt() {
    for length in [None, Some(0), Some(20), Some(60)] {
        let directory = filled();
        let manifest = directory.path().join("MANIFEST");
        match length {
            None => fs::remove_file(&manifest).unwrap(),
            Some(length) => {
                fs::OpenOptions::new()
                    .write(true)
                    .open(&manifest)
                    .unwrap()
                    .set_len(length)
                    .unwrap();
            }
        }
        assert!(problems(directory.path()).contains("anifest") || length.is_some());
        assert_ne!(problems(directory.path()), "");
        verify(directory.path());
    }
}

#[test]
fn a_lost_segment_is_rebuilt() {
    for index in 0..2 {
        let directory = filled();
        let lost = segment_files(directory.path()).remove(index);
        fs::remove_file(&lost).unwrap();
        let name = lost.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(problems(directory.path()).contains(&name), "{}", problems(directory.path()));
        verify(directory.path());
    }
}

#[test]
fn a_flipped_bit_is_never_served() {
    let mut random = Random::seeded();
    for _ in 0..12 {
        let directory = filled();
        let files = segment_files(directory.path());
        let file = &files[random.below(files.len() as u64) as usize];
        let mut bytes = fs::read(file).unwrap();
        let bit = random.below(bytes.len() as u64 * 8) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(file, &bytes).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let found = problems(directory.path());
        assert!(found.contains(&name) && found.contains(TABLE), "{found}");
        verify(directory.path());
    }
}

#[test]
fn a_directory_that_is_open_is_not_checked() {
    let directory = tempfile::tempdir().unwrap();
    let _database = open(directory.path(), quick());
    let error = Database::check(directory.path(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    let stranger = tempfile::tempdir().unwrap();
    assert!(Database::check(stranger.path(), &mut |_| {}).is_err());
}
