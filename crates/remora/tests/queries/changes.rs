//! Changes by a filter, also while others write.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use remora::{Database, Error};
use serde_json::json;

use crate::Tested;

#[test]
fn more_documents_than_a_step_has_are_changed() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("all")?;
    all.insert_many((0..25_000).map(|n| json!({"n": n % 2, "m": n})))?;
    assert_eq!(all.merge_patch_where("n = 0", &json!({"n": 2, "m": null}))?, 12_500);
    assert_eq!(all.find("n = 2 AND NOT m EXISTS").count()?, 12_500);
    assert_eq!(all.delete_where("n EXISTS")?, 25_000);
    assert!(all.is_empty()?);
    assert_eq!(all.delete_where("n EXISTS")?, 0);
    // More bytes than a step has.
    all.insert_many((0..40).map(|n| json!({"n": n, "text": "x".repeat(1 << 20)})))?;
    assert_eq!(all.merge_patch_where("n >= 1", &json!({"new": true}))?, 39);
    assert_eq!(all.find("new = true").count()?, 39);
    Ok(())
}

#[test]
fn what_cannot_be_changed_is_told() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("all")?;
    all.insert_many([json!({"n": 1}), json!({"n": 2})])?;
    assert!(matches!(all.delete_where("n ="), Err(Error::Request(_))));
    all.index_unique("n")?;
    assert!(matches!(all.merge_patch_where("n > 0", &json!({"n": 3})), Err(Error::Exists(_))));
    assert_eq!(all.find("n = 1 OR n = 2").count()?, 2, "all documents of a step or none");
    let deep = (0..98).fold(json!(1), |inner, _| json!([inner]));
    let refused = all.merge_patch_where("n = 1", &json!({"a": {"b": deep}}));
    assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    db.drop_table("all")?;
    assert!(matches!(all.delete_where("n = 1"), Err(Error::NotFound(_))));
    Ok(())
}

#[test]
fn documents_that_others_change_meanwhile_are_spared() -> Tested {
    let db = Database::in_memory()?;
    let all = db.collection("all")?;
    for round in 0..10 {
        let ids = all.insert_many((0..2_000).map(|_| json!({"old": true})))?;
        let begun = AtomicBool::new(false);
        let (spared, deleted) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                begun.store(true, Ordering::Release);
                let mut spared = Vec::new();
                // From the end, which is deleted last.
                for id in ids.iter().rev().step_by(5) {
                    match all.merge_patch(*id, &json!({"old": false})) {
                        Ok(_) => spared.push(*id),
                        Err(Error::NotFound(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                spared
            });
            while !begun.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            let deleted = all.delete_where("old = true").unwrap();
            (writer.join().unwrap(), deleted)
        });
        assert_eq!(deleted + spared.len() as u64, 2_000, "round {round}");
        let mut left = all.find("old = false").ids()?;
        left.reverse();
        assert_eq!(left, spared, "round {round}");
        all.delete_where("old = false")?;
    }
    Ok(())
}

#[test]
fn changes_at_a_moment_can_be_stopped() -> Tested {
    let db = Database::in_memory()?;
    let plain = db.collection("plain")?;
    let kept = db.collection("kept")?;
    db.execute("CREATE INDEX n ON kept ((CAST(doc->>'$.n' AS SIGNED)))", [])?;
    for all in [&plain, &kept] {
        let id = all.insert(&json!({"n": 1}))?;
        let before = all.now();
        let first = all.insert_many((0..25_000).map(|_| json!({"n": 1})))?[0];
        // What came after the moment is not changed.
        assert_eq!(all.merge_patch_where_at(&before, "n = 1", &json!({"n": 2}))?, 1);
        assert_eq!(
            (all.find("n = 2").ids()?, all.delete_where_at(&before, "n = 1")?),
            (vec![id], 0)
        );
        let over = all.now().within(Duration::ZERO);
        assert!(matches!(all.delete_where_at(&over, "n = 1"), Err(Error::Busy(_))));
        let stop = Arc::new(AtomicBool::new(false));
        // A limit in addition changes nothing of the flag.
        let now = all.now().until(Arc::clone(&stop)).within(Duration::from_secs(600));
        let stopped = std::thread::scope(|scope| {
            let changing =
                scope.spawn(|| all.merge_patch_where_at(&now, "n = 1", &json!({"m": 1})));
            while !all.get_json(first).unwrap().unwrap().contains("m") {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
            changing.join().unwrap()
        });
        assert!(matches!(stopped, Err(Error::Busy(_))), "{stopped:?}");
        assert_eq!(all.find("m = 1").count()?, 10_000);
        assert!(matches!(all.delete_where_at(&now, "n = 1"), Err(Error::Busy(_))));
        assert_eq!(all.len()?, 25_001);
        let other = db.collection("other")?.now();
        assert!(matches!(all.delete_where_at(&other, "n = 1"), Err(Error::Request(_))));
    }
    Ok(())
}
