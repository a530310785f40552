//! Many small batches leave few segments, and no merge loses or revives a row.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use remora_engine::Options;

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

/// Neither OPTIMIZE nor any other merge makes a segment above the limits; what is found stays the
/// same.
#[test]
fn segments_have_a_largest_size() {
    for (max_segment_bytes, max_segment_documents) in [(120_000, 1 << 20), (1 << 30, 3_000)] {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { max_segment_bytes, max_segment_documents, ..quick() };
        let database = open(directory.path(), options.clone());
        for first in (0..20_000).step_by(500) {
            let body =
                |id: i64| format!("row {id} of many, word{} word{}", id % 977, id * 31 % 499);
            apply(&database, (first..first + 500).map(|id| put(id, id, &body(id))).collect())
                .unwrap();
        }
        apply(&database, (0..20_000).step_by(3).map(delete).collect()).unwrap();
        let found = find(&database, "word31 ");
        for _ in 0..2 {
            database.optimize(None).unwrap();
            let statistics = database.statistics(TABLE).unwrap();
            println!("{:?}", statistics.levels);
            assert!((4..=12).contains(&statistics.segments), "{}", statistics.segments);
            for level in &statistics.levels {
                assert_eq!(level.deleted, 0);
                assert!(level.bytes / level.segments <= max_segment_bytes);
                assert!(level.rows / level.segments <= max_segment_documents);
            }
            assert_eq!((find(&database, "word31 "), count(&database)), (found.clone(), 13_333));
        }
        drop(database);
        let database = open(directory.path(), options);
        assert_eq!(find(&database, "word31 "), found);
        check_is_clean(database);
    }
}

#[test]
fn batch_with_text_larger_than_a_segment_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { max_batch_text_bytes: 10_000, ..quick() };
    let database = open(directory.path(), options);
    let body = "word ".repeat(100);
    let refused = apply(&database, (0..100).map(|id| put(id, 0, &body)).collect());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("smaller batches") && said.contains("10000"), "{said}");
    apply(&database, (0..10).map(|id| put(id, 0, &body)).collect()).unwrap();
    assert_eq!(count(&database), 10);
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
