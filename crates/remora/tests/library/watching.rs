//! Watchers: the received changes give the tables, whatever wrote them and however often a watcher restarts.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use remora::{Change, Database, Durability, Error, Event, Options, Value, Watch, params};
use serde_json::json;

use crate::Tested;

const NOW: Duration = Duration::ZERO;

/// Tables rebuilt from received changes. Each change must match the previous row.
#[derive(Debug, Default, PartialEq)]
pub struct Replay {
    pub tables: BTreeMap<String, BTreeMap<String, Vec<Value>>>,
    transaction: u64,
    is_open: bool,
}

impl Replay {
    pub fn take(&mut self, change: &Change) {
        let transaction = change.transaction();
        match self.is_open {
            true => assert_eq!(transaction, self.transaction, "one begins within another"),
            false => assert!(transaction > self.transaction, "{change:?} is told twice"),
        }
        assert_eq!(change.position(), transaction - u64::from(!change.is_last()));
        (self.transaction, self.is_open) = (transaction, !change.is_last());
        let table = self.tables.entry(change.table().to_owned()).or_default();
        let key = format!("{:?}", change.key());
        match change.event() {
            Event::Insert { row } => {
                let before = table.insert(key, row.values().to_vec());
                assert_eq!(before, None, "{change:?}");
            }
            Event::Update { old, row } => {
                let before = table.insert(key, row.values().to_vec());
                assert_eq!(before.as_deref(), Some(old.values()), "{change:?}");
            }
            Event::Delete { old } => {
                assert_eq!(table.remove(&key).as_deref(), Some(old.values()), "{change:?}");
            }
            Event::Truncated | Event::Dropped => table.clear(),
            other => {
                assert!(matches!(other, Event::Created | Event::Altered), "{other:?}");
            }
        }
    }

    /// The rows of a table, by their values.
    pub fn rows(&self, table: &str) -> Vec<Vec<Value>> {
        sorted(self.tables.get(table).into_iter().flat_map(BTreeMap::values).cloned().collect())
    }
}

pub fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

pub fn rows_of(db: &Database, table: &str) -> remora::Result<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    db.table(table)?.for_each(|row| {
        rows.push(row.into_values());
        Ok(())
    })?;
    Ok(sorted(rows))
}

/// The changes available now.
fn told(watch: &mut Watch) -> remora::Result<Vec<Change>> {
    let mut changes = Vec::new();
    while let Some(change) = watch.next_within(NOW)? {
        changes.push(change);
    }
    Ok(changes)
}

fn quick() -> Options {
    Options { durability: Durability::None, ..Options::default() }
}

/// Moves money between accounts by SQL, and writes rows and documents at the same time.
fn write(db: &Database, writer: i64) -> Tested {
    let (notes, events) = (db.table("notes")?, db.collection("events")?);
    for round in 0..120 {
        let (from, to) = (round % 7, (round + writer) % 7);
        let moved = db.transaction(|tx| -> Result<(), Error> {
            tx.execute("UPDATE accounts SET money = money - 1 WHERE id = ?", params![from])?;
            tx.execute("UPDATE accounts SET money = money + 1 WHERE id = ?", params![to])?;
            Ok(())
        });
        match moved {
            Ok(()) | Err(Error::Conflict(_)) => {}
            Err(error) => return Err(error.into()),
        }
        notes.upsert(&json!({"id": round % 11, "body": format!("writer {writer} {round}")}))?;
        notes.delete((round * 3 + writer) % 11)?;
        let id = events.insert(&json!({"writer": writer, "round": round}))?;
        if round % 3 == 0 {
            events.delete(id)?;
        }
        if writer == 0 {
            if round % 40 == 39 {
                db.execute("TRUNCATE TABLE log", [])?;
            }
            db.execute("INSERT INTO log (text) VALUES (?)", params![format!("{round}")])?;
        }
    }
    Ok(())
}

#[test]
fn what_watchers_are_told_gives_the_tables_whoever_writes() -> Tested {
    let directory = tempfile::tempdir()?;
    let db = Database::open_with(directory.path(), quick())?;
    db.create_table("notes", |t| t.int("id").key().text("body"))?;
    db.collection("events")?;
    db.execute("CREATE TABLE accounts (id INT PRIMARY KEY, money INT)", [])?;
    db.execute("CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(20))", [])?;
    let watches = [
        db.watch().named("all").start()?,
        db.watch().named("accounts").tables(["accounts"]).start()?,
        db.watch().start()?,
    ];
    db.execute("INSERT INTO accounts VALUES (0,9),(1,9),(2,9),(3,9),(4,9),(5,9),(6,9)", [])?;
    let is_done = AtomicBool::new(false);
    let replays = thread::scope(|scope| {
        let watchers = watches.map(|mut watch| {
            let is_done = &is_done;
            scope.spawn(move || {
                let mut replay = Replay::default();
                loop {
                    let ends = is_done.load(Ordering::Acquire);
                    match watch.next_within(Duration::from_millis(20)).unwrap() {
                        Some(change) => {
                            replay.take(&change);
                            let accounts = replay.rows("accounts");
                            if change.is_last() && accounts.len() == 7 {
                                let money = |row: &Vec<Value>| match row[1] {
                                    Value::Int(money) => money,
                                    _ => 0,
                                };
                                let sum: i64 = accounts.iter().map(money).sum();
                                assert_eq!(sum, 63, "a transaction is told in part");
                            }
                        }
                        None if ends => return replay,
                        None => {}
                    }
                }
            })
        });
        let writers = [0, 1, 2].map(|writer| {
            let db = &db;
            scope.spawn(move || write(db, writer).unwrap())
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, Ordering::Release);
        watchers.map(|watcher| watcher.join().unwrap())
    });
    for replay in [&replays[0], &replays[2]] {
        for table in ["notes", "events", "accounts", "log"] {
            assert_eq!(replay.rows(table), rows_of(&db, table)?, "{table}");
        }
    }
    assert_eq!(replays[1].rows("accounts"), rows_of(&db, "accounts")?);
    assert_eq!(replays[1].tables.len(), 1);
    Ok(())
}

/// From any saved position, a restarted watcher continues directly after it.
#[test]
fn a_watcher_goes_on_behind_its_saved_position_after_a_restart() -> Tested {
    let directory = tempfile::tempdir()?;
    let mut db = Database::open_with(directory.path(), quick())?;
    db.create_table("t", |t| t.int("id").key().int("n"))?;
    let mut saved = Vec::new();
    drop(db.watch().named("w").start()?);
    for round in 0..12 {
        let table = db.table("t")?;
        table.upsert_many((0..3).map(|id| json!({"id": id, "n": round})))?;
        table.delete(1)?;
        db.close()?;
        drop(table);
        db = Database::open_with(directory.path(), quick())?;
        let mut watch = db.watch().named("w").start()?;
        let changes = told(&mut watch)?;
        let all: Vec<(u64, String)> =
            changes.iter().map(|it| (it.transaction(), format!("{it:?}"))).collect();
        // What was told behind the saved position before is told again, as it was.
        assert!(all.starts_with(&saved), "{all:?} does not go on with {saved:?}");
        assert!(all.len() >= saved.len() + 4, "{all:?}");
        match round % 3 {
            // Half of a transaction: it is told again whole.
            0 => {
                changes[1].save()?;
                let first = changes[0].transaction();
                assert_eq!(changes[1].position(), first - 1);
                saved = all;
            }
            1 => {
                changes[3].save()?;
                let done = changes[3].position();
                saved = all.into_iter().filter(|(transaction, _)| *transaction > done).collect();
            }
            _ => {
                watch.save(watch.position())?;
                saved.clear();
                drop(watch);
                // A position that the program keeps itself.
                let earlier = changes[0].transaction() - 1;
                let mut again = db.watch().named("w").from(earlier).start()?;
                assert_eq!(told(&mut again)?.len(), changes.len());
            }
        }
    }
    let watchers = db.watchers();
    assert_eq!((watchers.len(), watchers[0].name.as_str(), &watchers[0].tables), (1, "w", &None));
    Ok(())
}

#[test]
fn what_is_written_with_the_position_is_written_once() -> Tested {
    let db = Database::in_memory()?;
    let orders = db.create_table("orders", |t| t.int("id").key().int("total"))?;
    let sums = db.create_table("sums", |t| t.int("id").key().int("sum"))?;
    let start = || db.watch().named("sums").tables(["orders"]).start();
    let mut watch = start()?;
    let mut expected = 0;
    for id in 0..50 {
        orders.insert(&json!({"id": id, "total": id}))?;
        expected += id;
        if id % 7 == 3 {
            // Told, and given up before it is done.
            let _ = watch.next_within(NOW)?;
            drop(watch);
            watch = start()?;
        }
        while let Some(change) = watch.next_within(NOW)? {
            let total: i64 = change.row().ok_or("no row")?.get("total")?;
            let sum = sums.get(1)?.map_or(Ok(0), |row| row.get::<i64>("sum"))?;
            let mut batch = db.batch();
            batch.upsert(&sums, &json!({"id": 1, "sum": sum + total}))?;
            batch.done(&change)?;
            batch.commit()?;
        }
    }
    let sum: i64 = sums.get(1)?.ok_or("no sum")?.get("sum")?;
    assert_eq!(sum, expected);
    let other = Database::in_memory()?;
    orders.insert(&json!({"id": 99, "total": 1}))?;
    let change = watch.next_within(NOW)?.ok_or("no change")?;
    assert!(matches!(other.batch().done(&change), Err(Error::Request(_))));
    assert!(matches!(other.batch().insert(&orders, &json!({})), Err(Error::Request(_))));
    Ok(())
}

#[test]
fn definitions_of_sql_are_told_with_the_rows_as_they_were() -> Tested {
    let db = Database::in_memory()?;
    let mut watch = db.watch().named("w").start()?;
    for statement in [
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), UNIQUE KEY (name))",
        "INSERT INTO t VALUES (1, 'Heron')",
        "ALTER TABLE t ADD COLUMN wings INT NOT NULL DEFAULT 2",
        "UPDATE t SET wings = 3",
        "RENAME TABLE t TO birds",
        "INSERT INTO birds VALUES (2, 'Kite', 2)",
        "TRUNCATE TABLE birds",
        "ALTER TABLE birds DROP COLUMN name",
        "DROP TABLE birds",
    ] {
        db.execute(statement, [])?;
    }
    let mut short = Vec::new();
    for change in told(&mut watch)? {
        let what = match change.event() {
            Event::Insert { row } => format!("+{}", row.columns().len()),
            Event::Update { old, row } => format!("{}={}", old.columns().len(), row.values().len()),
            other => format!("{other:?}"),
        };
        short.push(format!("{} {what}", change.table()));
    }
    let renamed = "birds Renamed { from: \"t\" }";
    let expected = [
        "t Created",
        "t +2",
        "t Altered",
        "t 3=3",
        renamed,
        "birds +3",
        "birds Truncated",
        // A column of a unique key: the table is made anew.
        "birds Replaced",
        "birds Dropped",
    ];
    assert_eq!(short, expected);
    Ok(())
}

/// A watcher that does not read delays no writes, and its backlog does not grow memory or disk use.
#[test]
fn a_slow_watcher_loses_its_place_and_holds_up_nobody() -> Tested {
    let directory = tempfile::tempdir()?;
    let options = Options { max_watch_bytes: 400_000, ..quick() };
    let db = Database::open_with(directory.path(), options.clone())?;
    let table = db.create_table("t", |t| t.int("id").key().text("body"))?;
    let mut slow = db.watch().named("slow").start()?;
    let mut without_name = db.watch().start()?;
    let body = "not compressed ".repeat(60);
    for round in 0..30 {
        let row = |id| json!({"id": id, "body": format!("{round} {body}")});
        table.upsert_many((0..50).map(row))?;
    }
    for watch in [&mut slow, &mut without_name] {
        let Err(lost) = watch.next_within(NOW) else { return Err("nothing is lost".into()) };
        assert!(matches!(lost, Error::Gone(_)), "{lost:?}");
        assert!(lost.to_string().contains("read the tables"), "{lost}");
    }
    let errors: Vec<_> = slow.by_ref().take(3).collect();
    assert!(matches!(&errors[..], [Err(Error::Gone(_))]), "{errors:?}");
    drop((slow, without_name));
    assert!(matches!(db.watch().named("slow").start().err(), Some(Error::Gone(_))));
    db.forget_watcher("slow")?;
    assert_eq!(db.watchers(), []);
    Ok(())
}

#[test]
fn an_iterator_ends_when_the_database_is_closed() -> Tested {
    let db = Database::in_memory()?;
    let table = db.create_table("t", |t| t.int("id").key())?;
    let watch = db.watch().tables(["t"]).start()?;
    let count = AtomicUsize::new(0);
    thread::scope(|scope| {
        let ended = scope.spawn(|| {
            watch
                .inspect(|_| _ = count.fetch_add(1, Ordering::Relaxed))
                .filter(Result::is_ok)
                .count()
        });
        for id in 0..10 {
            table.insert(&json!({"id": id}))?;
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        while count.load(Ordering::Relaxed) < 10 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        db.close()?;
        assert_eq!(ended.join().map_err(|_| "the watcher panicked")?, 10);
        Ok(())
    })
}

#[test]
fn one_without_a_name_saves_nothing() -> Tested {
    let db = Database::in_memory()?;
    let table = db.create_table("t", |t| t.int("id").key())?;
    let mut watch = db.watch().start()?;
    table.insert(&json!({"id": 1}))?;
    let change = watch.next_within(NOW)?.ok_or("no change")?;
    assert!(matches!(change.save(), Err(Error::Request(_))));
    assert!(matches!(watch.save(watch.position()), Err(Error::Request(_))));
    assert!(matches!(db.batch().done(&change), Err(Error::Request(_))));
    Ok(())
}
