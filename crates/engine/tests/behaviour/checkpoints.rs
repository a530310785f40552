//! A checkpoint that cannot be written costs nothing but time.

use std::fs;

use remora_engine::Error;

use crate::common::*;

#[test]
fn a_failed_checkpoint_is_an_error_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![put(1, 1, "before")]).unwrap();
    database.checkpoint().unwrap();
    let (segments, away) = (directory.path().join("segments"), directory.path().join("away"));
    fs::rename(&segments, &away).unwrap();
    fs::write(&segments, "in the way").unwrap();
    apply(&database, vec![put(2, 2, "meanwhile")]).unwrap();
    let error = database.checkpoint().unwrap_err();
    assert!(matches!(&error, Error::Io(message) if message.contains("segments")), "{error}");
    apply(&database, vec![put(3, 3, "meanwhile")]).unwrap();
    assert_eq!(find(&database, "meanwhile"), [2, 3]);
    fs::remove_file(&segments).unwrap();
    fs::rename(&away, &segments).unwrap();
    database.checkpoint().unwrap();
    database.close().unwrap();
    let database = open(directory.path(), quick());
    assert_eq!((find(&database, "before"), find(&database, "meanwhile")), (vec![1], vec![2, 3]));
    check_is_clean(database);
}

#[test]
fn only_files_that_the_manifest_names_stay() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let files = || fs::read_dir(directory.path().join("segments")).unwrap().count();
    for id in 0..5 {
        apply(&database, vec![put(id, id, "text")]).unwrap();
        database.checkpoint().unwrap();
    }
    assert_eq!(files() as u64, database.statistics(TABLE).unwrap().segments);
    database.optimize(None).unwrap();
    assert_eq!(files(), 1);
    database.drop_table(TABLE).unwrap();
    database.checkpoint().unwrap();
    assert_eq!(files(), 0);
}
