//! What large things take of memory and time: `large_things transaction|optimize|rebuild ROWS DIRECTORY`.
//!
//! `transaction` changes ROWS rows in one batch while another thread commits to another table;
//! `optimize` loads ROWS rows and merges them; `rebuild` copies them into a table with another key,
//! as ALTER TABLE does. Each prints its time and the process's peak of resident memory.

use std::{
    error::Error,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Normalization, Options, Row, ScanRequest,
    Schema, TableChanges, TextDef, Value,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Rows of one batch.
const ROWS_AT_ONCE: i64 = 50_000;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, rows, directory] = &arguments[..] else {
        return Err("large_things transaction|optimize|rebuild ROWS DIRECTORY".into());
    };
    let (rows, directory) = (rows.parse()?, Path::new(directory));
    let database = Database::open(directory, Options::default())?;
    for table in ["large", "small", "again"] {
        database.create_table(schema(table))?;
    }
    match what.as_str() {
        "transaction" => transaction(&database, rows)?,
        "optimize" => optimize(&database, rows)?,
        "rebuild" => rebuild(&database, rows)?,
        other => return Err(format!("{other} is none of these").into()),
    }
    println!("peak of resident memory: {}", peak_memory()?);
    Ok(())
}

fn schema(name: &str) -> Schema {
    let column = |id, name: &str, kind, indexed| ColumnDef {
        id,
        name: name.to_owned(),
        kind,
        nullable: false,
        indexed,
        declared: None,
    };
    Schema {
        name: name.to_owned(),
        columns: vec![
            column(1, "id", ColumnType::Int(64), true),
            column(2, "number", ColumnType::Int(64), true),
            column(3, "body", ColumnType::Text, false),
        ],
        primary_key: vec![usize::from(name == "again")],
        texts: vec![TextDef {
            id: 1,
            columns: vec![2],
            delimiter: None,
            normalization: Normalization::default(),
        }],
        required: None,
        indexes: Vec::new(),
        synonyms: Vec::new(),
        words: None,
        paths: Vec::new(),
        declared: None,
    }
}

/// A row whose number is another permutation of the keys.
fn row(id: i64, rows: i64) -> Row {
    let number = (id * 7_919) % rows.max(1) * 10 + id % 10;
    let body = format!("item {id} of shelf{} colour{} size{}", id % 9_973, id % 37, id % 11);
    vec![Value::Int(id), Value::Int(number), Value::Text(body.into())]
}

fn part(table: &str, changes: Vec<Change>) -> Vec<TableChanges> {
    vec![TableChanges { table: table.into(), changes }]
}

fn load(database: &Database, rows: i64) -> Outcome<()> {
    let start = Instant::now();
    for first in (0..rows).step_by(ROWS_AT_ONCE as usize) {
        let ids = first..(first + ROWS_AT_ONCE).min(rows);
        let tables = part("large", ids.map(|id| Change::Put(row(id, rows))).collect());
        database.apply(ChangeBatch { tables, positions: Vec::new() })?;
    }
    println!("{rows} rows loaded in {:?}, peak {}", start.elapsed(), peak_memory()?);
    Ok(())
}

fn transaction(database: &Database, rows: i64) -> Outcome<()> {
    let half = rows / 2;
    load(database, half)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let local = scope.spawn(|| local_writer(database, &done));
        let start = Instant::now();
        let mut large = database.begin_large()?;
        for first in (0..rows).step_by(ROWS_AT_ONCE as usize) {
            let ids = first..(first + ROWS_AT_ONCE).min(rows);
            large.add(part("large", ids.map(|id| Change::Put(row(id + 1, rows))).collect()))?;
        }
        println!("{rows} changes staged after {:?}", start.elapsed());
        large.commit(vec![("source".to_owned(), "1".to_owned())])?;
        println!("committed after {:?}", start.elapsed());
        // The next large batch waits until the rows of this one are moved.
        database.begin_large()?.commit(Vec::new())?;
        println!("moved after {:?}", start.elapsed());
        done.store(true, Ordering::Relaxed);
        let waits = local.join().map_err(|_| "the local writer panicked")?;
        print_waits(waits.map_err(|error| error.to_string())?);
        println!("{} rows", database.reader().row_count("large")?);
        Ok(())
    })
}

/// How long each commit of a row a few milliseconds took.
fn local_writer(
    database: &Database,
    done: &AtomicBool,
) -> Result<Vec<Duration>, remora_engine::Error> {
    let mut waits = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let tables = part("small", vec![Change::Put(row(waits.len() as i64, 1_000))]);
        let start = Instant::now();
        database.apply(ChangeBatch { tables, positions: Vec::new() })?;
        waits.push(start.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(waits)
}

fn print_waits(mut waits: Vec<Duration>) {
    waits.sort();
    let at = |share: f64| waits.get((waits.len() as f64 * share) as usize).copied();
    let (half, most) = (at(0.5).unwrap_or_default(), at(0.99).unwrap_or_default());
    let last = waits.last().copied().unwrap_or_default();
    println!("{} local commits: p50 {half:?}, p99 {most:?}, longest {last:?}", waits.len());
}

fn optimize(database: &Database, rows: i64) -> Outcome<()> {
    load(database, rows)?;
    let start = Instant::now();
    database.optimize(Some("large"))?;
    let statistics = database.statistics("large")?;
    println!("OPTIMIZE in {:?}: {} segments", start.elapsed(), statistics.segments);
    statistics.levels.iter().for_each(|level| println!("{level:?}"));
    Ok(())
}

fn rebuild(database: &Database, rows: i64) -> Outcome<()> {
    load(database, rows)?;
    let start = Instant::now();
    let request = ScanRequest {
        table: "large".to_owned(),
        columns: vec![0, 1, 2],
        batch_rows: 10_000,
        in_key_order: true,
        ..ScanRequest::default()
    };
    for batch in database.reader().scan(request)? {
        let batch = batch?;
        let changes = (0..batch.rows).map(|at| {
            Change::Insert(batch.columns.iter().map(|column| column.value(at)).collect())
        });
        let tables = part("again", changes.collect());
        database.apply(ChangeBatch { tables, positions: Vec::new() })?;
    }
    println!("rebuilt in {:?}: {} rows", start.elapsed(), database.reader().row_count("again")?);
    Ok(())
}

fn peak_memory() -> Outcome<String> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(peak.unwrap_or("unknown").trim().to_owned())
}
