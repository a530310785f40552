//! Watchers are told of each change once, in order, or that they have lost their place.

use std::time::{Duration, Instant};

use remora_engine::{
    Change, Database, Definition, Error, Missing, Options, Position, Schema, TableChanges, Value,
    Watch, WatchRequest, Watched, WatchedChange,
};

use crate::common::*;

fn named(name: &str) -> WatchRequest {
    WatchRequest { name: Some(name.to_owned()), ..WatchRequest::default() }
}

/// What is told now.
fn changes_of(watch: &mut Watch) -> Vec<WatchedChange> {
    let next = || watch.next_change(Some(Instant::now())).unwrap();
    std::iter::from_fn(next).collect()
}

/// A table of the same columns under another name.
fn schema_of(name: &str) -> Schema {
    Schema { name: name.to_owned(), ..schema() }
}

fn large(database: &Database, parts: Vec<Vec<Change>>) -> Result<Position, Error> {
    let mut large = database.begin_large()?;
    for part in parts {
        large.add(batch(part).tables)?;
    }
    large.commit(Vec::new())
}

/// Batches of every kind, large ones too, restarts, tables made empty: what is told gives the table.
#[test]
fn the_changes_of_a_watch_give_the_table() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let options = Options { checkpoint_bytes: 20_000, ..quick() };
    let mut database = open(directory.path(), options.clone());
    let mut replay = Replay::default();
    replay.follow(&database, false);
    let mut beside = Replay::default();
    let mut watch = database.watch(WatchRequest::default()).unwrap();
    for step in 0..150 {
        let ids = |random: &mut Random| random.below(60) as i64;
        let change = |random: &mut Random| match random.below(4) {
            0 => delete(ids(random)),
            _ => put(ids(random), step, &random.text()),
        };
        match random.below(12) {
            0 => {
                drop(watch);
                database.close().unwrap();
                database = open(directory.path(), options.clone());
                beside.rows = rows(&database).into_iter().map(|row| (id_of(&row), row)).collect();
                watch = database.watch(WatchRequest::default()).unwrap();
            }
            1 => {
                let emptied =
                    vec![Definition::Drop(TABLE.to_owned()), Definition::Create(schema())];
                database.define(emptied, Vec::new()).unwrap();
            }
            2 => {
                let parts = (0..3).map(|_| (0..30).map(|_| change(&mut random)).collect());
                let parts: Vec<Vec<Change>> = parts.collect();
                large(&database, parts).unwrap();
                // While the rows are moved to their table.
                apply(&database, vec![change(&mut random)]).unwrap();
            }
            3 => {
                // Several batches of one group, of the same keys.
                let hold = database.hold_writer().unwrap();
                let all: Vec<_> = (0..5)
                    .map(|_| {
                        let changes = (0..4).map(|_| change(&mut random)).collect();
                        database.submit(batch(changes)).unwrap()
                    })
                    .collect();
                drop(hold);
                all.into_iter().for_each(|pending| _ = pending.wait().unwrap());
            }
            _ => {
                let many = random.below(8) + 1;
                apply(&database, (0..many).map(|_| change(&mut random)).collect()).unwrap();
            }
        }
        changes_of(&mut watch).into_iter().for_each(|change| beside.take(change));
        assert_eq!(beside.all(), rows(&database), "step {step}");
        if random.below(5) == 0 {
            replay.follow(&database, random.below(2) == 0);
            assert_eq!(replay.all(), rows(&database), "step {step}");
        }
    }
    assert!(replay.told > 100, "{}", replay.told);
    drop(watch);
    check_is_clean(database);
}

/// Who writes does not wait for who reads, whose place goes when the feed takes more than it may.
#[test]
fn watcher_too_far_behind_gets_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { max_watch_bytes: 200_000, ..quick() };
    let database = open(directory.path(), options.clone());
    let mut slow = database.watch(named("slow")).unwrap();
    let mut quick = database.watch(named("quick")).unwrap();
    let body = "a text of some length ".repeat(20);
    let (mut last, mut seen) = (Position(0), 0);
    for round in 0..40 {
        for id in 0..20 {
            last = apply(&database, vec![put(id, round, &body)]).unwrap();
        }
        let changes = changes_of(&mut quick);
        seen += changes.len();
        quick.save(changes.last().unwrap().resume_at()).unwrap();
    }
    assert_eq!(seen, 800);
    // Generations are dropped whole: what is there is not far above the limit.
    let bytes = database.store_bytes().unwrap();
    println!("{bytes} bytes on the disk, {last:?}");
    let lost = slow.next_change(Some(Instant::now())).unwrap_err();
    assert!(matches!(&lost, Error::NotFound { what: Missing::Changes, .. }), "{lost:?}");
    assert!(lost.to_string().contains("no longer kept"), "{lost}");
    drop((slow, quick));
    drop(database);
    // After a restart too.
    let database = open(directory.path(), options);
    let again = database.watch(named("slow")).err().unwrap();
    assert!(matches!(again, Error::NotFound { what: Missing::Changes, .. }), "{again:?}");
    let mut quick = database.watch(named("quick")).unwrap();
    assert_eq!(changes_of(&mut quick), []);
    // Forgotten, it begins anew.
    database.forget_watcher("slow").unwrap();
    let mut slow = database.watch(named("slow")).unwrap();
    apply(&database, vec![delete(1)]).unwrap();
    assert_eq!((changes_of(&mut slow).len(), changes_of(&mut quick).len()), (1, 1));
}

/// A batch larger than all that may be kept takes the places of those before it, and is whole for nobody.
#[test]
fn a_batch_larger_than_the_feed_is_not_watched_in_part() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { max_watch_bytes: 50_000, ..quick() };
    let database = open(directory.path(), options);
    let mut watch = database.watch(named("w")).unwrap();
    let body = "many words of a text ".repeat(30);
    let part = |first: i64| (first..first + 200).map(|id| put(id, 1, &body)).collect();
    large(&database, (0..8).map(|at| part(at * 200)).collect()).unwrap();
    apply(&database, vec![put(1, 2, "behind")]).unwrap();
    let lost = watch.next_change(Some(Instant::now())).unwrap_err();
    assert!(matches!(&lost, Error::NotFound { what: Missing::Changes, .. }), "{lost:?}");
    drop(watch);
    database.forget_watcher("w").unwrap();
    let mut watch = database.watch(named("w")).unwrap();
    apply(&database, vec![put(1, 3, "told")]).unwrap();
    assert_eq!(changes_of(&mut watch).len(), 1);
}

/// A large batch that is refused, or killed, after it was noted leaves nothing of it to be told.
#[test]
fn a_large_batch_is_watched_whole_and_large_transactions_page_by_page() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let mut watch = database.watch(named("w")).unwrap();
    let body = "many words of a text ".repeat(50);
    let parts = (0..5).map(|at| (at * 500..at * 500 + 500).map(|id| put(id, 1, &body)).collect());
    let position = large(&database, parts.collect()).unwrap();
    let changes = changes_of(&mut watch);
    assert_eq!(changes.len(), 2_500);
    assert!(changes.iter().all(|change| change.batch == position));
    assert_eq!(changes.iter().filter(|change| change.is_last).count(), 1);
    assert!(changes.last().unwrap().is_last);
    // Until its end is told, where to go on is before it.
    let before = changes.first().unwrap().resume_at();
    assert_eq!((before.0 + 1, changes.last().unwrap().resume_at()), (position.0, position));
    watch.save(before).unwrap();
    drop(watch);
    let mut watch = database.watch(named("w")).unwrap();
    assert_eq!(changes_of(&mut watch).len(), 2_500);
    assert_eq!(watch.position(), database.position());
}

#[test]
fn definitions_are_watched_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let mut all = database.watch(named("all")).unwrap();
    let one = WatchRequest { tables: Some(vec!["b".to_owned()]), ..named("b") };
    let mut one = database.watch(one).unwrap();
    apply(&database, vec![put(1, 1, "first")]).unwrap();
    let mut wider = schema();
    wider.columns.push(remora_engine::ColumnDef {
        id: 4,
        name: "more".to_owned(),
        ..schema().columns[1].clone()
    });
    let fills = vec![(4, Value::Int(7))];
    let define = |definitions| database.define(definitions, Vec::new()).unwrap();
    define(vec![Definition::Alter { schema: wider.clone(), fills }]);
    apply(&database, vec![Change::Put([row(1, 2, "second"), vec![Value::Int(8)]].concat())])
        .unwrap();
    let rename = |from: &str, to: &str| Definition::Rename { from: from.into(), to: to.into() };
    define(vec![rename(TABLE, "a")]);
    define(vec![Definition::Create(schema_of("#hidden"))]);
    define(vec![rename("#hidden", "b")]);
    define(vec![rename("a", "b")]);
    define(vec![Definition::Create(schema_of("c")), Definition::Drop("b".to_owned())]);
    // The same again is no change.
    define(vec![Definition::Create(schema_of("c"))]);
    let short = |changes: Vec<WatchedChange>| -> Vec<String> {
        let of_row = |it: &WatchedChange| match &it.what {
            Watched::Insert { new, .. } => format!("+{new:?}"),
            Watched::Update { old, new, .. } => format!("{old:?}={new:?}"),
            other => format!("{other:?}"),
        };
        changes.iter().map(|it| format!("{} {}", it.table, of_row(it))).collect()
    };
    let row = |values: &str| format!("[Int(1), {values}]");
    let (first, second) = (row("Int(1), Text(\"first\")"), row("Int(2), Text(\"second\"), Int(8)"));
    let filled = row("Int(1), Text(\"first\"), Int(7)");
    let expected = [
        format!("{TABLE} +{first}"),
        format!("{TABLE} Altered"),
        format!("{TABLE} {filled}={second}"),
        format!("a Renamed {{ from: {TABLE:?} }}"),
        "b Replaced".to_owned(),
        "b Renamed { from: \"a\" }".to_owned(),
        "c Created".to_owned(),
        "b Dropped".to_owned(),
    ];
    assert_eq!(short(changes_of(&mut all)), expected);
    assert_eq!(short(changes_of(&mut one)), ["b Replaced", "b Replaced", "b Dropped"]);
}

#[test]
fn errors_name_what_cannot_be_watched() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let message = |request| database.watch(request).err().unwrap().to_string();
    let tables = |tables: &[&str]| {
        let tables = tables.iter().map(|&table| table.to_owned()).collect();
        WatchRequest { tables: Some(tables), ..named("w") }
    };
    assert!(message(named("")).contains("1 to 200 bytes"));
    assert!(message(tables(&["#x"])).contains("hidden"));
    assert!(message(tables(&[])).contains("no table is named"));
    let ahead = WatchRequest { from: Some(Position(99)), ..named("w") };
    assert!(message(ahead).contains("is after the last one"));
    let watch = database.watch(named("w"));
    assert!(message(named("w")).contains("open already"));
    assert!(database.forget_watcher("w").unwrap_err().to_string().contains("is open"));
    let watch = watch.unwrap();
    assert!(watch.save(Position(9)).unwrap_err().to_string().contains("has reached"));
    drop(watch);
    assert!(message(tables(&["a"])).contains("other tables"));
    assert_eq!(database.watchers().len(), 1);
    database.forget_watcher("w").unwrap();
    let nobody = database.forget_watcher("w").unwrap_err();
    assert!(matches!(nobody, Error::NotFound { what: Missing::Watcher, .. }), "{nobody:?}");
    assert_eq!(database.watchers(), []);
}

/// What a watch waits for, and that its end is the database's.
#[test]
fn a_watch_waits_and_ends_with_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    let mut watch = database.watch(named("w")).unwrap();
    let soon = Instant::now() + Duration::from_millis(20);
    assert_eq!(watch.next_change(Some(soon)).unwrap(), None);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let first = watch.next_change(None).unwrap();
            (first.is_some(), watch.next_change(None))
        });
        apply(&database, vec![put(1, 1, "one")]).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        database.close().unwrap();
        let (first, end) = waits.join().unwrap();
        assert!(first && matches!(end, Err(Error::Closed)), "{end:?}");
    });
    drop(watch);
    drop(database);
    // What was told and not saved is told again.
    let database = open(directory.path(), quick());
    let mut watch = database.watch(named("w")).unwrap();
    assert_eq!(changes_of(&mut watch).len(), 1);
}

/// Others' changes take nothing away from who is told of few tables, as long as it reads.
#[test]
fn the_position_of_a_watcher_of_a_quiet_table_advances() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), Options { max_watch_bytes: 100_000, ..quick() });
    database.create_table(schema_of("quiet")).unwrap();
    let quiet = WatchRequest { tables: Some(vec!["quiet".to_owned()]), ..named("quiet") };
    let mut quiet = database.watch(quiet).unwrap();
    let mut other = database.watch(named("other")).unwrap();
    let body = "a text of some length ".repeat(20);
    for round in 0..60 {
        for id in 0..10 {
            apply(&database, vec![put(id, round, &body)]).unwrap();
        }
        assert_eq!(changes_of(&mut quiet), []);
        let changes = changes_of(&mut other);
        other.save(changes.last().unwrap().resume_at()).unwrap();
    }
    let changes = vec![put(1, 1, "told")];
    let tables = vec![TableChanges { table: "quiet".into(), changes }];
    database.apply(remora_engine::ChangeBatch { tables, positions: Vec::new() }).unwrap();
    drop(quiet);
    let quiet = WatchRequest { tables: Some(vec!["quiet".to_owned()]), ..named("quiet") };
    assert_eq!(changes_of(&mut database.watch(quiet).unwrap()).len(), 1);
}
