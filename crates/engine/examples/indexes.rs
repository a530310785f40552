//! What secondary indexes cost: `indexes ROWS DIRECTORY`.
//!
//! Loads ROWS rows into a table without indexes and into one with three, in batches that take turns, merges both, and
//! opens each directory again. Prints what each took, and the bytes of the index sections in memory. Texts are ordered
//! by bytes; of a collation the keys come on top, which SQL's own load measures.

use std::{
    error::Error,
    path::Path,
    time::{Duration, Instant},
};

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, IndexColumn, IndexDef, Options, Schema,
    TableChanges, Value,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const TABLE: &str = "orders";
/// Rows of one batch.
const ROWS_AT_ONCE: i64 = 10_000;
/// How often each directory is opened again.
const STARTS: usize = 5;

/// A table in a directory of its own, and what it took.
struct Measured {
    database: Database,
    applied: Duration,
    merged: Duration,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rows, directory] = &arguments[..] else { return Err("indexes ROWS DIRECTORY".into()) };
    let (rows, directory): (i64, _) = (rows.parse()?, Path::new(directory));
    let mut both = [open(directory, 0)?, open(directory, 3)?];
    for first in (0..rows).step_by(ROWS_AT_ONCE as usize) {
        for measured in &mut both {
            let changes = (first..rows.min(first + ROWS_AT_ONCE)).map(row).map(Change::Put);
            let tables = vec![TableChanges { table: TABLE.into(), changes: changes.collect() }];
            let started = Instant::now();
            measured.database.apply(ChangeBatch { tables, positions: Vec::new() })?;
            measured.applied += started.elapsed();
        }
    }
    for measured in &mut both {
        let started = Instant::now();
        measured.database.optimize(Some(TABLE))?;
        measured.merged = started.elapsed();
    }
    for (count, Measured { database, applied, merged }) in [0, 3].into_iter().zip(both) {
        let figures = database.statistics(TABLE)?;
        database.close()?;
        drop(database);
        let mut starts = Vec::new();
        for _ in 0..STARTS {
            let started = Instant::now();
            let database = Database::open(&path(directory, count), Options::default())?;
            starts.push(started.elapsed());
            database.close()?;
        }
        starts.sort();
        let start = starts.get(STARTS / 2).copied().unwrap_or_default();
        println!(
            "{count} indexes: applied in {applied:.2?}, merged in {merged:.2?}, started in \
             {start:.2?}; {} bytes in memory for {} rows",
            figures.index_bytes, figures.rows
        );
    }
    Ok(())
}

fn path(directory: &Path, indexes: usize) -> std::path::PathBuf {
    directory.join(format!("{indexes}-indexes"))
}

fn open(directory: &Path, indexes: usize) -> Outcome<Measured> {
    let path = path(directory, indexes);
    std::fs::create_dir_all(&path)?;
    let database = Database::open(&path, Options::default())?;
    database.create_table(schema(indexes))?;
    Ok(Measured { database, applied: Duration::ZERO, merged: Duration::ZERO })
}

fn schema(indexes: usize) -> Schema {
    let column = |id, name: &str, kind| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable: false,
        indexed: true,
        declared: None,
    };
    let all: [&[usize]; 3] = [&[1], &[2, 3], &[4]];
    let index = |columns: &&[usize]| IndexDef {
        columns: columns
            .iter()
            .map(|&column| IndexColumn { column, descending: false, order: None, prefix: None })
            .collect(),
    };
    Schema {
        name: TABLE.to_owned(),
        columns: vec![
            column(1, "id", ColumnType::Int(64)),
            column(2, "user", ColumnType::Int(32)),
            column(3, "status", ColumnType::Int(8)),
            column(4, "made", ColumnType::Int(64)),
            column(5, "mail", ColumnType::Text),
        ],
        primary_key: vec![0],
        texts: Vec::new(),
        indexes: all.iter().take(indexes).map(index).collect(),
        required: None,
        synonyms: Vec::new(),
        words: None,
        paths: Vec::new(),
        declared: None,
    }
}

fn row(id: i64) -> Vec<Value> {
    // Numbers that look random.
    let mixed = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) >> 20;
    let number = |limit: u64| Value::Int((mixed % limit) as i64);
    let mail = format!("user{}@example{}.com", mixed % 50_000_007, mixed % 97);
    vec![Value::Int(id), number(100_003), number(7), number(1 << 40), Value::Text(mail.into())]
}
