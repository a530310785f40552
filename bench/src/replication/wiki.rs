//! Wiki rows: copied with their text indexes, then inserted, updated and deleted.

use std::path::Path;

use anyhow::{Context, Result};
use mysql::{Conn, Params, Value, prelude::Queryable};
use remora_peers::Server;

use super::{
    ReplicationOptions, backlog,
    remora::{Remora, spent_between},
    report::{Figure, Report, Spread, Target},
    source,
};
use crate::{
    corpus::{Document, data_directory, read_directory, thin_out},
    suite::WorkDirectory,
};

const DATABASE: &str = "wiki";
const TABLE: &str = "wiki.docs";
/// Runs of each measurement.
const RUNS: usize = 3;
/// Rows per recorded transaction.
const TRANSACTION_ROWS: usize = 10;
/// Rows per transaction of the initial load.
const LOAD_ROWS: usize = 500;
/// A word that is in every updated row and in no other.
const MARK: &str = "qzxupdatedqzx";

const CREATE: &str = "CREATE TABLE docs (
    id BIGINT UNSIGNED NOT NULL PRIMARY KEY, title VARCHAR(255) NOT NULL, text MEDIUMTEXT NOT NULL,
    lang VARCHAR(8) NOT NULL, year INT, category VARCHAR(255), page_id BIGINT UNSIGNED
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4";

/// Writes documents to the source.
type Write<'w> = &'w dyn Fn(&mut Conn, &[Document]) -> Result<()>;

/// Measures copies and changes.
pub fn measure(options: &ReplicationOptions, program: &Path, report: &mut Report) -> Result<()> {
    let documents = read_directory(&data_directory(options.data.as_deref())?)?;
    let rows = options.rows.min(documents.len());
    let documents = thin_out(documents, rows);
    eprintln!("loading {rows} wiki rows");
    let server = source::start(options.server)?;
    let mut connection = source::connect(&server, DATABASE)?;
    connection.query_drop(CREATE)?;
    insert(&mut connection, &documents, 0, LOAD_ROWS)?;
    connection.query_drop("ANALYZE TABLE docs")?;
    let work = WorkDirectory::new()?;
    let mut remora = copies(&server, program, work.path(), &documents, report)?;
    changes(&server, &mut remora, &documents, report)
}

/// Copies several times; the last copy keeps following.
fn copies(
    server: &Server,
    program: &Path,
    work: &Path,
    documents: &[Document],
    report: &mut Report,
) -> Result<Remora> {
    let (mut rates, mut wall_s, mut cpu_s, mut threads) = (Vec::new(), 0.0, 0.0, Vec::new());
    let mut kept = None;
    for run in 0..RUNS {
        drop(kept.take());
        let url = server.follower_url(DATABASE);
        let mut remora = Remora::start(program, &work.join(format!("copy-{run}")), &url)?;
        remora.wait_until_live(1)?;
        let seconds = remora.started.elapsed().as_secs_f64();
        threads = spent_between(&Default::default(), &remora.threads()?);
        cpu_s += remora.processor().whole().unwrap_or_default().as_secs_f64();
        wall_s += seconds;
        rates.push(documents.len() as f64 / seconds);
        kept = Some(remora);
    }
    let mut remora = kept.context("nothing was copied")?;
    let memory = remora.resident_bytes()? >> 20;
    let target = Target::AtLeast(50_000.0);
    report.add(Figure {
        wall_s,
        cpu_s: Some(cpu_s),
        threads,
        note: format!("from the start of the process; {memory} MiB resident"),
        wrong: differs(&mut remora, "the", texts_with(documents, "the"))?,
        ..Figure::new("initial copy of wiki rows", "rows/s", Spread::of(rates), target)
    });
    Ok(remora)
}

/// Inserts other rows, updates and deletes them, one part in each run.
fn changes(
    server: &Server,
    remora: &mut Remora,
    documents: &[Document],
    report: &mut Report,
) -> Result<()> {
    let target = Target::AtLeast(30_000.0);
    let first = documents.last().map_or(0, |last| last.id) + 1;
    let part = documents.len().div_ceil(RUNS).max(1);
    let update = format!(
        "UPDATE docs SET text = CONCAT(text, ' {MARK}'), year = COALESCE(year, 0) + 1
         WHERE id BETWEEN ? AND ?"
    );
    let mut measure = |name: &str, write: Write<'_>| {
        let mut runs = Vec::new();
        for part in documents.chunks(part) {
            let mut connection = source::connect(server, DATABASE)?;
            runs.push(backlog::apply(remora, server, || write(&mut connection, part))?);
        }
        let found = remora.count(TABLE, MARK)?;
        Ok::<_, anyhow::Error>((backlog::per_second(name, &runs, target), found))
    };
    let insert = |connection: &mut Conn, part: &[Document]| {
        insert(connection, part, first, TRANSACTION_ROWS)
    };
    let update = |connection: &mut Conn, part: &[Document]| each(connection, &update, part, first);
    let delete = |connection: &mut Conn, part: &[Document]| {
        each(connection, "DELETE FROM docs WHERE id BETWEEN ? AND ?", part, first)
    };
    let all = documents.len() as u64;
    let steps: [(_, Write<'_>, _); 3] =
        [("inserts", &insert, 0), ("updates", &update, all), ("deletes", &delete, 0)];
    for (name, write, marked) in steps {
        eprintln!("recording {name}");
        let (mut figure, found) = measure(&format!("wiki rows, {name}"), write)?;
        if found != marked {
            figure.wrong = Some(format!("{found} rows are marked, not {marked}"));
        }
        report.add(figure);
    }
    Ok(())
}

/// Inserts documents with `first` added to their ids, `rows` in each statement.
fn insert(connection: &mut Conn, documents: &[Document], first: u64, rows: usize) -> Result<()> {
    for part in documents.chunks(rows) {
        let places = vec!["(?,?,?,?,?,?,?)"; part.len()].join(",");
        let values: Vec<Value> = part.iter().flat_map(|row| values(row, first)).collect();
        let sql = format!("INSERT INTO docs VALUES {places}");
        connection.exec_drop(sql, Params::Positional(values))?;
    }
    Ok(())
}

fn values(document: &Document, first: u64) -> [Value; 7] {
    [
        (first + document.id).into(),
        document.title.as_str().into(),
        document.text.as_str().into(),
        document.language.as_str().into(),
        document.year.into(),
        document.category.as_deref().into(),
        document.page_id.into(),
    ]
}

/// Runs a statement over ranges of the ids.
fn each(connection: &mut Conn, sql: &str, documents: &[Document], first: u64) -> Result<()> {
    for part in documents.chunks(TRANSACTION_ROWS) {
        let ends = part.first().zip(part.last());
        let (from, to) =
            ends.map(|(from, to)| (first + from.id, first + to.id)).unwrap_or_default();
        connection.exec_drop(sql, (from, to))?;
    }
    Ok(())
}

/// The number of documents that a search for an ASCII term must find.
fn texts_with(documents: &[Document], term: &str) -> u64 {
    let holds = |text: &str| text.to_lowercase().contains(term);
    let found = documents.iter().filter(|row| {
        let category = row.category.as_deref().unwrap_or_default();
        [&row.title, &row.text, &row.language].into_iter().any(|text| holds(text))
            || holds(category)
    });
    found.count() as u64
}

fn differs(remora: &mut Remora, term: &str, truth: u64) -> Result<Option<String>> {
    let found = remora.count(TABLE, term)?;
    Ok((found != truth).then(|| format!("{found} rows hold {term:?}, not {truth}")))
}
