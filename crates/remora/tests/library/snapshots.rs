//! Snapshots: tables, collections, searches and statements at one moment, while others write.

use std::{
    sync::atomic::{AtomicBool, AtomicI64, Ordering},
    thread,
};

use remora::{Collection, Database, Error, Snapshot, Table, params};
use serde_json::json;

use crate::Tested;

/// What all places together always have.
const TOTAL: i64 = 3_000;

/// A table of the library, one of SQL, and a collection. Each holds a part of the total.
struct Places {
    db: Database,
    table: Table,
    of_sql: Table,
    documents: Collection,
}

impl Places {
    fn new(db: Database) -> Result<Self, Error> {
        let table = db.create_table("held", |t| t.int("id").key().int("n").text("word"))?;
        db.execute(
            "CREATE TABLE kept (id INT PRIMARY KEY, n INT NOT NULL, word TEXT, FULLTEXT (word))",
            [],
        )?;
        db.execute("INSERT INTO kept VALUES (1, 1000, 'reef w0')", [])?;
        table.insert(&json!({"id": 1, "n": 1000, "word": "reef w0"}))?;
        let documents = db.collection("papers")?;
        documents.insert_as(1, &json!({"n": 1000}))?;
        documents.index("n")?;
        let of_sql = db.table("kept")?;
        Ok(Self { db, table, of_sql, documents })
    }

    /// One step of a writer: moves something between the places, and adds a row to each.
    fn step(&self, step: i64) -> Result<(), Error> {
        let word = format!("reef w{step}");
        self.db.transaction(|tx| {
            tx.execute("UPDATE kept SET n = n + 2, word = ? WHERE id = 1", params![word.as_str()])?;
            tx.execute("INSERT INTO kept VALUES (?, 0, 'atoll')", params![step + 1])?;
            tx.execute("UPDATE held SET n = n - 1, word = ? WHERE id = 1", params![word.as_str()])?;
            tx.execute("INSERT INTO held VALUES (?, 0, 'atoll')", params![step + 1])?;
            let n = 1_000 - step;
            tx.documents(&self.documents)?.upsert(1, &json!({"n": n}))?;
            tx.documents(&self.documents)?.insert(&json!({"n": 0}))?;
            Ok(())
        })
    }

    /// Asks a snapshot in every way; gives the step that it shows.
    fn check(&self, at: &Snapshot) -> Result<i64, Box<dyn std::error::Error>> {
        let moment = at.collection(&self.documents)?;
        let document = moment.get(1)?.ok_or("a document")?;
        let step = 1_000 - document["n"].as_i64().ok_or("a number")?;
        let row = at.get(&self.table, 1)?.ok_or("a row")?;
        assert_eq!(row.get::<i64>("n")?, 1_000 - step);
        assert_eq!(at.get(&self.of_sql, 1)?.ok_or("a row")?.get::<i64>("n")?, 1_000 + 2 * step);
        let counts = [at.count(&self.table)?, at.count(&self.of_sql)?, moment.len()?];
        assert_eq!(counts, [step as u64 + 1; 3]);
        for table in [&self.table, &self.of_sql] {
            let found = at.search(table, &format!("reef w{step}")).run()?;
            assert_eq!(found.total, 1, "step {step}");
            assert_eq!(at.search(table, "atoll").count()?, step as u64);
            assert_eq!(at.all(table).filter("n = 0").count()?, step as u64);
            let mut sum = 0;
            at.for_each(table, |row| {
                sum += row.get::<i64>("n")?;
                Ok(())
            })?;
            assert_eq!(sum, row_sum(table.name(), step));
        }
        assert_eq!(self.documents.find("n > 0").at(&moment).ids()?, [1]);
        let sum = "SELECT CAST((SELECT SUM(n) FROM kept) + (SELECT SUM(n) FROM held) \
                   + (SELECT SUM(doc->'$.n') FROM papers) AS SIGNED)";
        assert_eq!(at.query(sum, [])?.one::<i64>()?, TOTAL);
        let counted = "SELECT COUNT(*) FROM kept JOIN held USING (id) WHERE kept.n >= ?";
        assert_eq!(at.query(counted, params![0])?.one::<i64>()?, step + 1);
        let found = "SELECT n FROM kept WHERE MATCH(word) AGAINST(?)";
        let word = format!("w{step}");
        assert_eq!(at.query(found, params![word])?.one::<i64>()?, 1_000 + 2 * step);
        Ok(step)
    }
}

fn row_sum(table: &str, step: i64) -> i64 {
    if table == "kept" { 1_000 + 2 * step } else { 1_000 - step }
}

#[test]
fn a_snapshot_is_one_moment_while_others_write() -> Tested {
    let directory = tempfile::tempdir()?;
    let places = Places::new(Database::open(directory.path())?)?;
    let first = places.db.snapshot()?;
    let (ended, written) = (AtomicBool::new(false), AtomicI64::new(0));
    thread::scope(|scope| -> Tested {
        let writer = scope.spawn(|| -> Result<(), Error> {
            for step in 1..=400 {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                places.step(step)?;
                written.store(step, Ordering::Release);
            }
            Ok(())
        });
        let readers = [0, 1].map(|_| {
            scope.spawn(|| {
                let mut seen = 0;
                for _ in 0..30 {
                    let before = written.load(Ordering::Acquire);
                    let at = places.db.snapshot().unwrap();
                    let step = places.check(&at).unwrap();
                    assert!(step >= before && step >= seen, "{step} after {before} and {seen}");
                    assert_eq!(places.check(&at.clone()).unwrap(), step);
                    seen = step;
                }
            })
        });
        let panicked = readers.map(|reader| reader.join().is_err());
        ended.store(true, Ordering::Relaxed);
        writer.join().map_err(|_| "the writer panicked")??;
        assert_eq!(panicked, [false; 2]);
        Ok(())
    })?;
    assert!(written.load(Ordering::Acquire) > 3, "a writer ran beside the readers");
    assert_eq!(places.check(&first)?, 0, "the first snapshot has stayed");
    Ok(())
}

#[test]
fn a_snapshot_only_reads() -> Tested {
    let places = Places::new(Database::in_memory()?)?;
    let at = places.db.snapshot()?;
    places.documents.insert(&json!({"n": 0}))?;
    for text in [
        "INSERT INTO kept VALUES (9, 9, '')",
        "DELETE FROM held",
        "CREATE TABLE x (a INT)",
        "DROP TABLE kept",
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "COMMIT AND CHAIN",
        "SET autocommit = 1",
    ] {
        assert!(matches!(at.query(text, []), Err(Error::Request(_))), "{text}");
    }
    assert_eq!(places.check(&at)?, 0);
    assert!(places.db.table("x").is_err());
    // What ends its transaction ends its statements, not its other reads.
    for text in ["OPTIMIZE TABLE kept", "ANALYZE TABLE kept", "SELECT 1 FROM kept FOR UPDATE"] {
        let ran = at.query(text, []);
        match at.query("SELECT COUNT(*) FROM papers", []) {
            Ok(rows) => assert_eq!(rows.one::<i64>()?, 1, "{text}: {ran:?}"),
            Err(error) => assert!(error.to_string().contains("take another"), "{text}: {error}"),
        }
        assert!(at.get(&places.table, 1)?.is_some());
    }
    Ok(())
}

#[test]
fn what_is_made_or_dropped_later_stays_as_it_was() -> Tested {
    let places = Places::new(Database::in_memory()?)?;
    let at = places.db.snapshot()?;
    let later = places.db.create_table("later", |t| t.int("id").key())?;
    let notes = places.db.collection("notes")?;
    assert!(matches!(at.count(&later), Err(Error::NotFound(_))));
    assert!(matches!(at.search(&later, "x").run(), Err(Error::NotFound(_))));
    assert!(matches!(at.collection(&notes), Err(Error::NotFound(_))));
    assert!(!at.tables().contains(&"later".to_owned()));
    places.db.drop_table("held")?;
    places.db.drop_table("papers")?;
    places.db.execute("DROP TABLE kept", [])?;
    assert_eq!(at.get(&places.table, 1)?.ok_or("a row")?.get::<i64>("n")?, 1_000);
    assert_eq!(at.collection(&places.documents)?.get(1)?, Some(json!({"n": 1000})));
    assert_eq!(at.count(&places.of_sql)?, 1);
    // Another database's tables are refused.
    let other = Places::new(Database::in_memory()?)?;
    for refused in [
        at.get(&other.table, 1).map(drop),
        at.search(&other.table, "x").run().map(drop),
        at.collection(&other.documents).map(drop),
        at.for_each(&other.table, |_| Ok(())),
    ] {
        assert!(matches!(refused, Err(Error::Request(_))), "{refused:?}");
    }
    let closed = other.db.snapshot()?;
    other.db.close()?;
    assert!(matches!(closed.get(&other.table, 1), Err(Error::Closed)));
    assert!(matches!(other.db.snapshot(), Err(Error::Closed)));
    Ok(())
}
