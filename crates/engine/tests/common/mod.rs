//! What the tests of this folder share: a table, rows of it, and a seeded generator.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Durability, Error, Normalization,
    Options, Position, Row, Schema, SearchRequest, Selection, TableChanges, TextDef, TextQuery,
    Value, WatchRequest, Watched, WatchedChange,
};

/// The name of the table.
pub const TABLE: &str = "articles";

/// A table with a number as key, a number and a text.
pub fn schema() -> Schema {
    let column = |id, name: &str, kind, nullable| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable,
        indexed: kind != ColumnType::Text,
        declared: None,
    };
    Schema {
        texts: vec![TextDef {
            id: 1,
            columns: vec![2],
            delimiter: None,
            normalization: Normalization::default(),
        }],
        ..Schema::over(
            TABLE,
            vec![
                column(1, "id", ColumnType::Int(64), false),
                column(2, "score", ColumnType::Int(64), true),
                column(3, "body", ColumnType::Text, true),
            ],
            vec![0],
        )
    }
}

/// Options that do not wait for the disk.
pub fn quick() -> Options {
    Options { durability: Durability::None, ..Options::default() }
}

/// Opens the directory with the table in it.
pub fn open(path: &Path, options: Options) -> Database {
    let database = Database::open(path, options).expect("the directory opens");
    database.create_table(schema()).expect("the table is made or there");
    database
}

/// A row.
pub fn row(id: i64, score: i64, body: &str) -> Row {
    vec![Value::Int(id), Value::Int(score), Value::Text(body.into())]
}

/// A change that puts a row.
pub fn put(id: i64, score: i64, body: &str) -> Change {
    Change::Put(row(id, score, body))
}

/// A change that deletes a row.
pub fn delete(id: i64) -> Change {
    Change::Delete(vec![Value::Int(id)])
}

/// A batch of changes to the table.
pub fn batch(changes: Vec<Change>) -> ChangeBatch {
    ChangeBatch {
        tables: vec![TableChanges { table: Arc::from(TABLE), changes }],
        positions: Vec::new(),
    }
}

/// Applies changes to the table as one batch.
pub fn apply(database: &Database, changes: Vec<Change>) -> Result<Position, Error> {
    database.apply(batch(changes))
}

/// All rows, by a scan of the store.
pub fn rows(database: &Database) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut push = |row| {
        rows.push(row);
        Ok(())
    };
    database.scan(TABLE, &mut push).expect("the scan ends");
    rows
}

/// The keys of the rows whose text has `term`, by the index, ascending.
pub fn find(database: &Database, term: &str) -> Vec<i64> {
    let text = Some(TextQuery::Term(term.to_owned()));
    let selection = Selection { table: TABLE.to_owned(), text, ..Selection::default() };
    let request = SearchRequest { selection, limit: 1_000_000, ..SearchRequest::default() };
    let reply = database.search(&request).expect("the search is valid");
    assert_eq!(reply.total, reply.hits.len() as u64);
    let mut keys: Vec<i64> = reply.hits.iter().map(|hit| id_of(&hit.key)).collect();
    keys.sort_unstable();
    keys
}

/// How many rows the index has.
pub fn count(database: &Database) -> u64 {
    let selection = Selection { table: TABLE.to_owned(), ..Selection::default() };
    database.count(&selection).expect("the count is valid").count
}

/// The key of a row or of a hit.
pub fn id_of(values: &[Value]) -> i64 {
    match values.first() {
        Some(Value::Int(id)) => *id,
        other => panic!("no key: {other:?}"),
    }
}

/// Waits until `holds`, for as long as it takes.
#[track_caller]
pub fn wait_until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A seeded generator of numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// A generator whose seed is `REMORA_SEED` or the clock; it is printed.
    pub fn seeded() -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(clock.expect("the clock is set").as_nanos() as u64);
        println!("REMORA_SEED={seed}");
        Self(seed)
    }

    /// The next number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// A text of some words.
    pub fn text(&mut self) -> String {
        const WORDS: [&str; 12] = [
            "river",
            "Strom",
            "東京都",
            "data",
            "database",
            "ship",
            "shipyard",
            "ÉTÉ",
            "한국어",
            "a",
            "",
            "été-2024",
        ];
        let words = self.below(12);
        let words: Vec<&str> =
            (0..words).map(|_| WORDS[self.below(WORDS.len() as u64) as usize]).collect();
        words.join(" ")
    }
}

/// Closes the database and checks its directory.
pub fn check_is_clean(database: Database) {
    let path = database.path();
    database.close().expect("it closes");
    drop(database);
    let report = Database::check(&path, &mut |_| {}).expect("the directory can be checked");
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
}

/// The table made anew from what a watcher of it is told: each change must fit what was there.
#[derive(Default)]
pub struct Replay {
    pub rows: BTreeMap<i64, Row>,
    position: Option<Position>,
    /// Changes that were told.
    pub told: u64,
    in_batch: Option<Position>,
}

impl Replay {
    /// Takes all changes since the last time, where nobody writes meanwhile; the first time it begins with
    /// the rows that are there.
    pub fn follow(&mut self, database: &Database, saves: bool) {
        let request = WatchRequest {
            name: Some("replay".to_owned()),
            tables: Some(vec![TABLE.to_owned()]),
            from: self.position,
        };
        let mut watch = database.watch(request).unwrap();
        if self.position.is_none() {
            self.rows = rows(database).into_iter().map(|row| (id_of(&row), row)).collect();
        }
        while let Some(change) = watch.next_change(Some(Instant::now())).unwrap() {
            self.take(change);
        }
        assert_eq!(self.in_batch, None, "a batch was not told to its end");
        assert_eq!(watch.position(), database.position());
        self.position = Some(watch.position());
        if saves {
            watch.save(watch.position()).unwrap();
        }
    }

    /// Takes a change.
    pub fn take(&mut self, change: WatchedChange) {
        let WatchedChange { batch, is_last, what, .. } = change;
        assert!(self.in_batch.is_none_or(|open| open == batch), "{batch:?} begins in another");
        assert!(self.position.is_none_or(|done| done < batch), "{batch:?} is told twice");
        self.in_batch = (!is_last).then_some(batch);
        if is_last {
            self.position = Some(batch);
        }
        self.told += 1;
        match what {
            Watched::Insert { new, .. } => {
                assert_eq!(self.rows.insert(id_of(&new), new.clone()), None, "{batch:?}: {new:?}");
            }
            Watched::Update { old, new, .. } => {
                assert_eq!(self.rows.insert(id_of(&new), new), Some(old), "{batch:?}");
            }
            Watched::Delete { old, .. } => {
                assert_eq!(self.rows.remove(&id_of(&old)), Some(old), "{batch:?}");
            }
            Watched::Truncated | Watched::Dropped => self.rows.clear(),
            Watched::Created | Watched::Altered => {}
            other => panic!("{batch:?}: {other:?}"),
        }
    }

    /// What it makes of the table.
    pub fn all(&self) -> Vec<Row> {
        self.rows.values().cloned().collect()
    }
}
