//! A reader waits for a position.

use std::time::Duration;

use remora_engine::{Error, Position};

use crate::common::*;

#[test]
fn wait_for_a_position() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    database.wait_for(Position(0), Duration::ZERO).unwrap();
    let late = database.wait_for(Position(1), Duration::from_millis(1));
    assert!(matches!(late, Err(Error::Busy(_))), "{late:?}");
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            database.wait_for(Position(2), Duration::from_secs(600)).unwrap();
            find(&database, "second")
        });
        apply(&database, vec![put(1, 1, "first")]).unwrap();
        apply(&database, vec![put(2, 2, "second")]).unwrap();
        assert_eq!(reader.join().unwrap(), [2]);
    });
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| database.wait_for(Position(9), Duration::from_secs(600)));
        database.close().unwrap();
        assert!(matches!(reader.join().unwrap(), Err(Error::Closed)));
    });
}
