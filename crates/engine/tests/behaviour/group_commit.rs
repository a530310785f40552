//! Batches of many threads are committed in groups; each is durable, visible to its own caller and
//! has a position of its own.

use std::{collections::BTreeSet, time::Duration};

use remora_engine::{Durability, Options, Position, Value};

use crate::common::*;

const THREADS: i64 = 8;
const BATCHES: i64 = 25;

#[test]
fn callers_see_their_own_writes_at_their_positions() {
    for durability in [Durability::Always, Durability::Interval(Duration::from_millis(1))] {
        let directory = tempfile::tempdir().unwrap();
        let database = open(directory.path(), Options { durability, ..Options::default() });
        let write = |thread: i64| -> Vec<Position> {
            let write_one = |number| {
                let id = thread * 1_000 + number;
                let changes = vec![put(id, number, "grouped"), put(-1, id, "the same key")];
                let position = apply(&database, changes).unwrap();
                assert!(database.position() >= position);
                assert!(database.get(TABLE, &[Value::Int(id)]).unwrap().is_some());
                position
            };
            (0..BATCHES).map(write_one).collect()
        };
        let positions: BTreeSet<Position> = std::thread::scope(|scope| {
            let write = &write;
            let threads = (0..THREADS).map(|thread| scope.spawn(move || write(thread)));
            let threads: Vec<_> = threads.collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let all = (THREADS * BATCHES) as u64;
        assert_eq!(positions, (1..=all).map(Position).collect());
        database.close().unwrap();
        let database = open(directory.path(), quick());
        assert_eq!((count(&database), database.position()), (all + 1, Position(all)));
        assert_eq!(find(&database, "grouped").len() as u64, all);
        assert_eq!(find(&database, "same key"), [-1]);
    }
}
