//! Many small batches leave few segments, and no merge loses or revives a row.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::common::*;

const BATCHES: u64 = 6_000;

#[test]
fn segments_stay_few_under_single_row_batches() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let (done, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut model = BTreeMap::new();
    let mut random = Random::seeded();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                most.fetch_max(database.statistics(TABLE).unwrap().segments, Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        for number in 0..BATCHES {
            let id = random.below(2_000) as i64;
            if random.below(4) == 0 {
                apply(&database, vec![delete(id)]).unwrap();
                model.remove(&id);
            } else {
                let score = number as i64;
                apply(&database, vec![put(id, score, &format!("row {id} of {score}"))]).unwrap();
                model.insert(id, score);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("{} segments at most", most.load(Ordering::Relaxed));
    assert!(most.load(Ordering::Relaxed) <= 64 + 1);
    let ids: Vec<i64> = model.keys().copied().collect();
    assert_eq!(find(&database, "row"), ids);
    for (&id, &score) in model.iter().take(50) {
        assert_eq!(find(&database, &format!("row {id} of {score}")), [id]);
    }
    database.optimize(None).unwrap();
    assert_eq!(database.statistics(TABLE).unwrap().segments, 1);
    assert_eq!((find(&database, "row"), count(&database)), (ids, model.len() as u64));
    check_is_clean(database);
}

/// Large batches are indexed by their callers, small ones by the writer: of a key that is in both,
/// the last one stands, in the order of their positions.
#[test]
fn large_and_small_batches_follow_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let rows_of_a_batch = 1_500;
    std::thread::scope(|scope| {
        for thread in 0..3i64 {
            let database = &database;
            scope.spawn(move || {
                for round in 0..4 {
                    let score = thread * 10 + round;
                    let large = (0..rows_of_a_batch).map(|id| put(id, score, "large"));
                    apply(database, large.collect()).unwrap();
                    apply(database, vec![put(round, score, "small"), delete(100)]).unwrap();
                }
            });
        }
    });
    apply(&database, vec![put(100, 0, "small")]).unwrap();
    assert_eq!(count(&database), rows_of_a_batch as u64);
    let small = find(&database, "small");
    let stored = rows(&database);
    let by_rows = stored.iter().filter(|row| row[2] == remora_engine::Value::Text("small".into()));
    assert_eq!(small, by_rows.map(|row| id_of(row)).collect::<Vec<_>>());
    check_is_clean(database);
}
