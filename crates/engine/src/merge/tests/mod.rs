//! Changes of a table while one of its merges runs, and failures of merges.

mod paths;

use std::{sync::Arc, time::Instant};

use super::{
    ASKED_BYTES, LastChanges, QUIET_TIME, Size, is_asked_often, merge_claimed, optimize,
    plan::{SEGMENTS_MAX, quiet_bytes},
};
use crate::{
    Change, Database, Durability, Filter, Options, Position, SearchRequest, Selection, Value,
    storage::store::{Keyspace, Store, testing::FaultyStore},
    write::tests::fixture::{batch, count, put, rows, schema},
};

fn start(directory: &std::path::Path) -> Database {
    let options = Options { durability: Durability::None, ..Options::default() };
    let store = Arc::new(FaultyStore::default());
    let database = Database::start(directory, options, store, None).unwrap();
    database.create_table(schema()).unwrap();
    database
}

fn delete(id: i64) -> Change {
    Change::Delete(vec![Value::Int(id)])
}

/// Ids whose documents are live in the index, ascending.
fn live(database: &Database) -> Vec<i64> {
    let view = database.view("t");
    let mut ids: Vec<i64> = rows(database)
        .iter()
        .filter_map(|row| match row[0] {
            Value::Int(id) => Some(id),
            _ => None,
        })
        .filter(|&id| {
            let key = crate::encode::encode_key(&view.schema, &[Value::Int(id)]).unwrap();
            view.segments.iter().filter(|segment| segment.has_live(&key)).count() == 1
        })
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn deletions_and_replacements_during_a_merge_are_carried_over() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    for first in [0, 10, 20] {
        let ids = first..first + 10;
        database
            .apply(batch(ids.flat_map(|id| put(id, "old").tables.remove(0).changes).collect()))
            .unwrap();
    }
    database.apply(batch(vec![delete(3)])).unwrap();
    let shared = database.shared();
    let claim = shared.published.claim_all("t").unwrap().unwrap();
    // One segment loses some of its documents. Another loses all of them, and the writer drops it.
    database.apply(batch(vec![delete(4), delete(21)])).unwrap();
    database.apply(put(5, "new")).unwrap();
    database.apply(batch((10..20).map(delete).collect())).unwrap();
    merge_claimed(shared, &claim).unwrap();
    drop(claim);
    let expected: Vec<i64> =
        (0..30).filter(|id| ![3, 4, 21].contains(id) && !(10..20).contains(id)).collect();
    assert_eq!(live(&database), expected);
    assert_eq!(count(&database), expected.len() as u64);
    assert_eq!(database.view("t").segments.len(), 2);
}

#[test]
fn a_merge_of_a_dropped_table_is_thrown_away() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    database.apply(put(1, "old")).unwrap();
    database.apply(put(2, "old")).unwrap();
    let claim = database.shared().published.claim_all("t").unwrap().unwrap();
    database.drop_table("t").unwrap();
    database.create_table(schema()).unwrap();
    database.apply(put(3, "new")).unwrap();
    merge_claimed(database.shared(), &claim).unwrap();
    drop(claim);
    assert_eq!((live(&database), count(&database)), (vec![3], 1));
}

/// While one thread holds a claim and another waits for all segments, nobody can merge. The writer
/// must stop at the limit, and continue once merges do.
#[test]
fn the_writer_waits_for_the_merges() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    database.apply(put(-1, "claimed")).unwrap();
    let shared = database.shared();
    let claim = shared.published.claim_all("t").unwrap().unwrap();
    let batches = SEGMENTS_MAX as i64 * 2;
    std::thread::scope(|scope| {
        scope.spawn(|| database.optimize(Some("t")).unwrap());
        while !shared.published.is_waiting_for_all() {
            std::thread::yield_now();
        }
        let writer =
            scope.spawn(|| (0..batches).for_each(|id| _ = database.apply(put(id, "x")).unwrap()));
        let segments = || database.view("t").segments.len();
        while segments() < SEGMENTS_MAX {
            std::thread::yield_now();
        }
        for _ in 0..1_000 {
            std::thread::yield_now();
            assert_eq!(segments(), SEGMENTS_MAX);
        }
        assert!(!writer.is_finished());
        drop(claim);
        writer.join().unwrap();
    });
    assert_eq!(count(&database), batches as u64 + 1);
}

#[test]
fn table_becomes_idle_after_its_last_change() {
    let start = Instant::now();
    let mut last_changes = LastChanges::default();
    let (one, other) = ((1, Position(1)), (2, Position(1)));
    last_changes.look([one, other].into_iter(), start);
    assert_eq!(last_changes.size(one, start), Size::Large);
    assert_eq!(last_changes.size(one, start + QUIET_TIME), Size::Idle);
    let changed = (1, Position(2));
    assert_eq!(last_changes.size(changed, start + QUIET_TIME), Size::Large);
    last_changes.look([changed, other].into_iter(), start + QUIET_TIME);
    assert_eq!(last_changes.size(other, start + QUIET_TIME), Size::Idle);
    assert_eq!(last_changes.size(changed, start + QUIET_TIME + QUIET_TIME / 2), Size::Large);
    assert_eq!(last_changes.size(changed, start + 2 * QUIET_TIME), Size::Idle);
    // A table that no longer exists is forgotten.
    last_changes.look([other].into_iter(), start + 3 * QUIET_TIME);
    assert_eq!(last_changes.size(changed, start + 9 * QUIET_TIME), Size::Large);
}

#[test]
fn table_is_merged_once_searches_have_cost_as_much() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    for id in 0..3 {
        database.apply(put(id, "old")).unwrap();
    }
    // The merge threads leave claimed segments alone.
    let claim = database.shared().published.claim_all("t").unwrap();
    let view = || database.view("t");
    let asked = || is_asked_often(&view());
    let bytes = quiet_bytes(&view()).unwrap();
    assert_eq!(bytes, view().segments.iter().map(|segment| segment.bytes()).sum::<u64>());
    let enough = bytes.div_ceil(ASKED_BYTES) as usize;
    assert!(!asked());
    view().activity.asked(enough - 1);
    assert!(!asked());
    view().activity.asked(1);
    assert!(asked());
    // After a change the cost is counted from zero, and after the merge too.
    database.apply(put(3, "old")).unwrap();
    assert!(!asked());
    view().activity.asked(2 * enough);
    assert!(asked());
    drop(claim);
    optimize(database.shared(), "t").unwrap();
    assert!(!asked() && view().segments.len() == 1);
    view().activity.asked(2 * enough);
    assert!(!asked(), "there is nothing to merge");
}

#[test]
fn searches_are_counted_for_merges() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    for id in 0..3 {
        database.apply(put(id, "old")).unwrap();
    }
    let before = database.view("t").activity.asked_since_change();
    assert_eq!((count(&database), database.view("t").segments.len()), (3, 3));
    let asked = || database.view("t").activity.asked_since_change() - before;
    assert_eq!(asked(), 0, "nothing is asked of a segment");
    let filter = Some(Filter::IsNotNull("id".to_owned()));
    let selection = Selection { table: "t".to_owned(), filter, ..Selection::default() };
    assert_eq!(database.count(&selection).unwrap().count, 3);
    assert_eq!(asked(), 3);
    let request = SearchRequest { selection, limit: 9, ..SearchRequest::default() };
    assert_eq!(database.search(&request).unwrap().hits.len(), 3);
    assert_eq!(asked(), 6);
}

/// Deletions fill the log as insertions do, so they must lead to checkpoints, which trim it.
#[test]
fn deletions_lead_to_checkpoints() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(FaultyStore::default());
    let options =
        Options { durability: Durability::None, checkpoint_bytes: 20_000, ..Options::default() };
    let database = Database::start(directory.path(), options, Arc::clone(&store) as _, None);
    let database = database.unwrap();
    database.create_table(schema()).unwrap();
    let rows = 2_000;
    let all = (0..rows).flat_map(|id| put(id, "x").tables.remove(0).changes).collect();
    database.apply(batch(all)).unwrap();
    database.checkpoint().unwrap();
    let logged = || {
        let mut entries = 0u64;
        let count = &mut |_: &[u8], _: &[u8]| {
            entries += 1;
            Ok(true)
        };
        store.snapshot().scan(Keyspace::Log, &[], count).unwrap();
        entries
    };
    assert_eq!(logged(), 0);
    // Each deletion is a batch of its own with its own log entry.
    (0..rows).for_each(|id| _ = database.apply(batch(vec![delete(id)])).unwrap());
    let bytes_of_one = 64 + 8;
    let deadline = Instant::now() + std::time::Duration::from_secs(300);
    while logged() > 20_000 / bytes_of_one {
        assert!(Instant::now() < deadline, "no checkpoint trims the log");
        std::thread::yield_now();
    }
    assert_eq!(count(&database), 0);
}

/// All merges of a table fail. It takes writes until it has too many segments, and then refuses
/// them. The other table is written and merged nevertheless.
#[test]
fn failed_merge_affects_only_its_table() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    database.create_table(crate::Schema { name: "other".to_owned(), ..schema() }).unwrap();
    let to_other = |id: i64| {
        let mut batch = put(id, "x");
        batch.tables[0].table = Arc::from("other");
        batch
    };
    // No failed merge is tried again while this test runs.
    let later = Instant::now() + std::time::Duration::from_secs(3_600);
    let refused = (0..).find_map(|id| {
        let view = database.view("t");
        view.activity.merge_failed("made to fail".to_owned(), &view.segments, later);
        database.apply(to_other(id)).unwrap();
        Some((id, database.apply(put(id, "x")).err()?))
    });
    let (written, error) = refused.unwrap();
    let said = error.to_string();
    assert!(matches!(error, crate::Error::Busy(_)), "{error:?}");
    assert!(said.contains("\"t\"") && said.contains("made to fail"), "{said}");
    assert_eq!(database.view("t").segments.len(), SEGMENTS_MAX);
    assert_eq!(written, SEGMENTS_MAX as i64);
    (1_000..1_500).for_each(|id| _ = database.apply(to_other(id)).unwrap());
    assert!(database.view("other").segments.len() < SEGMENTS_MAX);
    assert_eq!(database.view("t").segments.len(), SEGMENTS_MAX);
    let failures = database.merge_failures();
    let [(table, failure)] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!(table, "t");
    assert!(failure.contains("\"t\"") && failure.contains("made to fail"), "{failure}");
    let of = |table: &str| database.statistics(table).unwrap().merge_failure;
    assert_eq!((of("t").as_deref(), of("other")), (Some("made to fail"), None));
    // A requested merge is tried at once. It succeeds, and the failure is cleared.
    database.optimize(Some("t")).unwrap();
    assert_eq!((database.merge_failures(), of("t")), (Vec::new(), None));
    database.apply(put(written, "x")).unwrap();
    assert_eq!(count(&database), SEGMENTS_MAX as u64 + 1);
}

/// After a failed merge, writes are not refused while another merge of the table runs, because that
/// one may make room.
#[test]
fn writes_wait_for_a_merge_that_runs() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    let later = Instant::now() + std::time::Duration::from_secs(3_600);
    (0..SEGMENTS_MAX as i64).for_each(|id| {
        let view = database.view("t");
        view.activity.merge_failed("made to fail".to_owned(), &view.segments, later);
        database.apply(put(id, "x")).unwrap();
    });
    let view = database.view("t");
    assert_eq!(view.segments.len(), SEGMENTS_MAX);
    view.activity.merge_failed("made to fail".to_owned(), &view.segments, later);
    let claim = database.shared().published.claim_all("t").unwrap().unwrap();
    let (sender, answer) = crossbeam_channel::bounded(1);
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(database.apply(put(-1, "x"))));
        // Long enough for a refusal to arrive.
        let early = answer.recv_timeout(std::time::Duration::from_millis(200));
        assert!(early.is_err(), "{early:?}");
        merge_claimed(database.shared(), &claim).unwrap();
        drop(claim);
        answer.recv_timeout(std::time::Duration::from_secs(60)).unwrap().unwrap();
    });
    assert_eq!(count(&database), SEGMENTS_MAX as u64 + 1);
}

/// Segments that were not inputs of a failed merge are merged as usual. The inputs of the failed
/// merge are merged after a pause, or at once if one of them is gone.
#[test]
fn segments_of_a_failed_merge_are_left_alone_for_a_while() {
    let directory = tempfile::tempdir().unwrap();
    let database = start(directory.path());
    database.apply(put(1, "x")).unwrap();
    database.apply(put(2, "x")).unwrap();
    let view = database.view("t");
    let (activity, segments) = (&view.activity, &view.segments);
    let now = Instant::now();
    let holds = |seconds: u64| {
        let then = now + std::time::Duration::from_secs(seconds);
        activity.holds_back(&segments[0].segment, &view.segments, then)
    };
    assert!(!holds(0));
    // The pause doubles, up to a minute. A repeated failure is reported once.
    for (times, seconds) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
        let is_news = activity.merge_failed("why".to_owned(), &segments[..1], now);
        assert_eq!(is_news, times == 0);
        assert!(holds(seconds - 1) && !holds(seconds), "{times}");
        assert!(!activity.holds_back(&segments[1].segment, &view.segments, now));
    }
    let other = crate::snapshot::TableView { segments: segments[1..].to_vec(), ..(*view).clone() };
    let then = now + std::time::Duration::from_secs(1);
    assert!(!activity.holds_back(&segments[0].segment, &other.segments, then));
    activity.merged(&segments[1..]);
    assert!(activity.merge_failure().is_some());
    activity.merged(&segments[..1]);
    assert_eq!(activity.merge_failure(), None);
}
