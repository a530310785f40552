//! Positions of sources: stored with what they stand for, seen with it, waited for.

use std::time::Duration;

use remora_engine::{ChangeBatch, Database, Error, Position, Selection};

use crate::common::*;

fn positions(all: &[(&str, &str)]) -> ChangeBatch {
    let pair = |&(name, position): &(&str, &str)| (name.to_owned(), position.to_owned());
    ChangeBatch { tables: Vec::new(), positions: all.iter().map(pair).collect() }
}

fn all(database: &Database) -> Vec<(String, String)> {
    let sources = database.source_positions();
    sources.iter().map(|(name, position)| (name.to_owned(), position.to_owned())).collect()
}

fn pair(name: &str, position: &str) -> (String, String) {
    (name.to_owned(), position.to_owned())
}

#[test]
fn a_batch_may_have_several_positions_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    database.apply(positions(&[("mysql", "u:1"), ("copy", "7")])).unwrap();
    let reply = database.apply(positions(&[("copy", "9"), ("mysql", "u:1-2")])).unwrap();
    assert_eq!(reply, Position(2));
    assert_eq!(all(&database), [pair("copy", "9"), pair("mysql", "u:1-2")]);
    database.apply(positions(&[("copy", "")])).unwrap();
    assert_eq!(all(&database), [pair("mysql", "u:1-2")]);
    assert_eq!(database.source_position("copy").unwrap(), None);
    drop(database);
    let database = open(directory.path(), quick());
    assert_eq!(all(&database), [pair("mysql", "u:1-2")]);
    assert_eq!(database.position(), Position(3));
    check_is_clean(database);
}

#[test]
fn reply_has_the_source_positions_of_its_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..=300i64 {
                let positions = vec![("s".to_owned(), number.to_string())];
                let batch = batch(vec![put(number, number, "row")]);
                let _ = database.submit(ChangeBatch { positions, ..batch }).unwrap();
            }
        });
        let selection = Selection { table: TABLE.to_owned(), ..Selection::default() };
        loop {
            let reply = database.count(&selection).unwrap();
            let source = reply.report.sources.get("s").unwrap_or("0");
            assert_eq!(reply.count.to_string(), source);
            if reply.count == 300 {
                break;
            }
        }
        writer.join().unwrap();
    });
}

#[test]
fn submitted_batches_are_applied_in_order_and_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let pending: Vec<_> = (0..500)
        .map(|number| database.submit(batch(vec![put(1, number, "again")])).unwrap())
        .collect();
    for (number, pending) in (1..).zip(pending) {
        assert_eq!(pending.wait().unwrap(), Position(number));
    }
    assert_eq!(rows(&database), [row(1, 499, "again")]);
    let refused = database.submit(batch(vec![remora_engine::Change::Put(Vec::new())]));
    assert!(matches!(refused.err(), Some(Error::Request { .. })));
    let dropped = database.submit(batch(vec![put(2, 2, "kept")])).unwrap();
    drop(dropped);
    database.close().unwrap();
    assert_eq!(open(directory.path(), quick()).statistics(TABLE).unwrap().rows, 2);
}

#[test]
fn wait_for_a_source_ends_at_its_position_or_timeout() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let late = database.wait_for_source("s", Duration::from_millis(1), &|_| true);
    assert!(matches!(late, Err(Error::Busy(_))), "{late:?}");
    let database = &database;
    std::thread::scope(|scope| {
        let reached = |at: &str| at.parse::<u64>().unwrap() >= 5;
        let long = Duration::from_secs(600);
        let waiter = scope.spawn(move || database.wait_for_source("s", long, &reached));
        for number in 1..=5 {
            database.apply(positions(&[("s", &number.to_string()), ("other", "0")])).unwrap();
        }
        waiter.join().unwrap().unwrap();
    });
    std::thread::scope(|scope| {
        let endless = || database.wait_for_source("s", Duration::MAX, &|at| at == "9");
        let waiter = scope.spawn(endless);
        std::thread::sleep(Duration::from_millis(20));
        database.close().unwrap();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Closed)));
    });
}
