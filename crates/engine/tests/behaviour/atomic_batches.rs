//! A reader sees whole batches, in the rows and in the index, whatever is written meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use remora_engine::{FacetRequest, Selection};

use crate::common::*;

const ROWS_OF_A_BATCH: i64 = 5;
const BATCHES: i64 = 400;

/// Each batch sets the score of all rows to its number; two scores at once are half a batch.
#[test]
fn readers_see_whole_batches() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let write = |score: i64| {
        let changes = (0..ROWS_OF_A_BATCH).map(|id| put(id, score, &format!("batch {score}")));
        apply(&database, changes.collect()).unwrap();
    };
    write(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut newest = 0;
            while !done.load(Ordering::Relaxed) {
                let selection = Selection { table: TABLE.to_owned(), ..Selection::default() };
                let column = "score".to_owned();
                let request =
                    FacetRequest { selection, column, limit: 10, ..FacetRequest::default() };
                let facet = database.facet(&request).unwrap();
                assert_eq!((facet.values.len(), facet.matched), (1, ROWS_OF_A_BATCH as u64));
                let remora_engine::Value::Int(score) = facet.values[0].0 else { panic!() };
                assert!(score >= newest, "{score} after {newest}");
                newest = score;
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let rows = rows(&database);
                assert_eq!(rows.len(), ROWS_OF_A_BATCH as usize);
                assert!(rows.iter().all(|row| row[1] == rows[0][1]), "{rows:?}");
            }
        });
        (1..BATCHES).for_each(write);
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(find(&database, &format!("batch {}", BATCHES - 1)).len(), 5);
}
