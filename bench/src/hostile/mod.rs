//! Statements of malicious clients: each shape at growing size until it is refused or too large,
//! while another connection reads rows by key; then endless statements, which are ended.
//!
//! The targets: no statement runs for more than two seconds before it ends or is refused, the other
//! connection does not wait twice as long as before, and after a statement was ended the server is
//! idle within 100 ms and leaves no file behind.

mod random_shapes;
mod shapes;
mod termination;

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use mysql::{Conn, Error as ClientError, prelude::Queryable};
use serde::Serialize;

use self::shapes::Shape;
use crate::{
    lookup::servers::{self, DatabaseServer},
    measure::{microseconds, percentile, resident_bytes},
    random::SplitMix64,
    suite::WorkDirectory,
    table::Table,
};

/// Options of `hostile`.
#[derive(clap::Args, Debug)]
pub struct HostileOptions {
    /// The largest size of a statement, in repeated parts.
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    largest: usize,
    /// Send only statement shapes whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Send this number of random shapes instead of the listed ones.
    #[arg(long, value_name = "N")]
    drawn: Option<usize>,
    /// Seed for --drawn.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of rows in the table that the other connection reads.
    #[arg(long, default_value_t = 200_000)]
    rows: u64,
    /// Skip the statements that run until they are killed.
    #[arg(long)]
    without_ended: bool,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-hostile.json")]
    json: PathBuf,
}

/// The smallest size, and the factor to the next one.
const SMALLEST: usize = 16;
const FACTOR: usize = 4;
/// Statements with more bytes are not sent.
const MOST_BYTES: usize = 16 << 20;
/// The target for the longest statement.
const MOST_TIME: Duration = Duration::from_secs(2);
/// Statements are ended after this time.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// How long the other connection is measured before the first shape.
const IDLE: Duration = Duration::from_secs(5);
/// Pause between two of its statements.
const PAUSE: Duration = Duration::from_millis(1);
/// The most shapes that are shown.
const SHOWN: usize = 30;

/// The results of a shape.
#[derive(Serialize)]
struct Figures {
    shape: String,
    /// The size of the slowest statement.
    size: usize,
    bytes: usize,
    seconds: f64,
    /// The size and the error of the first refusal.
    refused: Option<(usize, String)>,
    /// The largest growth of resident memory, in MiB.
    grown_mb: u64,
    over: bool,
}

#[derive(Serialize)]
struct Report {
    shapes: Vec<Figures>,
    idle_p99_us: f64,
    beside_p99_us: f64,
    beside_worst_us: f64,
    ended: Vec<termination::Figures>,
}

/// Runs the suite.
pub fn hostile(options: &HostileOptions) -> Result<()> {
    let directory = WorkDirectory::new()?;
    let database_server = servers::remora(directory.path(), options.rows)?;
    let mut connection = database_server.connect(false)?;
    for statement in shapes::TABLES {
        connection.query_drop(statement)?;
    }
    let mut shapes = match options.drawn {
        Some(count) => random_shapes::random_shapes(count, options.seed),
        None => shapes::all(),
    };
    if let Some(only) = &options.only {
        shapes.retain(|shape| shape.name.contains(only.as_str()));
    }
    let mut report = measure_concurrent_reads(&database_server, options, &shapes)?;
    if !options.without_ended {
        report.ended =
            termination::measure(&database_server, &directory.path().join("data/spill"))?;
    }
    print(&report);
    let file = std::fs::File::create(&options.json)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    Ok(serde_json::to_writer_pretty(file, &report)?)
}

/// Sends the shapes while another connection reads rows.
fn measure_concurrent_reads(
    database_server: &DatabaseServer,
    options: &HostileOptions,
    shapes: &[Shape],
) -> Result<Report> {
    let (stop, idle) = (AtomicBool::new(false), AtomicUsize::new(usize::MAX));
    thread::scope(|scope| {
        let asker = scope.spawn(|| ask(database_server, options.rows, &stop, &idle));
        thread::sleep(IDLE);
        idle.store(0, Ordering::SeqCst);
        let mut figures = Vec::new();
        for (number, shape) in shapes.iter().enumerate() {
            let one = grow(database_server, shape, options.largest);
            eprintln!(
                "{:>4} {:.3} s  {}",
                number + 1,
                one.as_ref().map_or(0.0, |one| one.seconds),
                shape.name
            );
            figures.push(one);
        }
        stop.store(true, Ordering::SeqCst);
        let asked = asker.join().map_err(|_| anyhow::anyhow!("the other connection panicked"))?;
        let (mut before, mut during) = asked?;
        before.sort_unstable();
        during.sort_unstable();
        let at = |walls: &[Duration], percent| microseconds(percentile(walls, percent));
        Ok(Report {
            shapes: figures.into_iter().collect::<Result<_>>()?,
            idle_p99_us: at(&before, 99),
            beside_p99_us: at(&during, 99),
            beside_worst_us: at(&during, 100),
            ended: Vec::new(),
        })
    })
}

/// Reads rows by key; returns the times before the first shape and those from then on.
fn ask(
    database_server: &DatabaseServer,
    rows: u64,
    stop: &AtomicBool,
    idle: &AtomicUsize,
) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let mut connection = database_server.connect(false)?;
    let mut random = SplitMix64::new(1);
    let (mut before, mut during) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let id = 1 + random.next() % rows;
        let started = Instant::now();
        let found: Option<u64> = connection
            .query_first(format!("SELECT id FROM {} WHERE id = {id}", database_server.table))?;
        anyhow::ensure!(found == Some(id), "row {id} is missing");
        let is_idle = idle.load(Ordering::Relaxed) == usize::MAX;
        if is_idle { &mut before } else { &mut during }.push(started.elapsed());
        thread::sleep(PAUSE);
    }
    Ok((before, during))
}

/// Runs one shape at growing sizes.
fn grow(database_server: &DatabaseServer, shape: &Shape, largest: usize) -> Result<Figures> {
    let before = resident_bytes(database_server.process_id())?;
    let mut figures = Figures {
        shape: shape.name.clone(),
        size: 0,
        bytes: 0,
        seconds: 0.0,
        refused: None,
        grown_mb: 0,
        over: false,
    };
    let mut connection = database_server.connect_for(MAX_WAIT)?;
    let mut size = SMALLEST;
    while size <= largest && figures.refused.is_none() && !figures.over {
        let statement = shape.statement(size);
        if statement.len() > MOST_BYTES {
            break;
        }
        let started = Instant::now();
        let answer = run(&mut connection, &statement);
        let took = started.elapsed();
        if took.as_secs_f64() > figures.seconds {
            (figures.seconds, figures.size) = (took.as_secs_f64(), size);
            figures.bytes = statement.len();
        }
        figures.over = took > MOST_TIME;
        match answer {
            Ok(()) => {}
            Err(ClientError::MySqlError(error)) => {
                figures.refused = Some((size, format!("{} {}", error.code, error.message)));
            }
            Err(error) => {
                figures.refused = Some((size, error.to_string()));
                database_server.end(connection.connection_id())?;
                connection = database_server.connect_for(MAX_WAIT)?;
            }
        }
        let grown = resident_bytes(database_server.process_id())?.saturating_sub(before) >> 20;
        figures.grown_mb = grown.max(figures.grown_mb);
        size *= FACTOR;
    }
    Ok(figures)
}

/// Runs a statement and reads its whole result.
fn run(connection: &mut Conn, statement: &str) -> mysql::Result<()> {
    let mut answer = connection.query_iter(statement)?;
    while let Some(rows) = answer.iter() {
        for row in rows {
            row?;
        }
    }
    Ok(())
}

fn print(report: &Report) {
    let mut slowest: Vec<&Figures> = report.shapes.iter().collect();
    slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let mut table =
        Table::new(&["shape", "s", "pieces", "bytes", "MB more", "refused at", "error"]);
    for one in slowest.iter().take(SHOWN) {
        let (at, error) = match &one.refused {
            Some((at, error)) => (at.to_string(), error.chars().take(70).collect()),
            None => Default::default(),
        };
        table.row(vec![
            one.shape.chars().take(60).collect(),
            format!("{:.3}", one.seconds),
            one.size.to_string(),
            one.bytes.to_string(),
            one.grown_mb.to_string(),
            at,
            error,
        ]);
    }
    println!("{table}");
    let over = slowest.iter().filter(|one| one.over).count();
    let refused = slowest.iter().filter(|one| one.refused.is_some()).count();
    let grown = slowest.iter().map(|one| one.grown_mb).max().unwrap_or_default();
    println!(
        "{} shapes: {refused} refused at some size, {over} over {} s, {grown} MB more at most",
        slowest.len(),
        MOST_TIME.as_secs()
    );
    println!(
        "another connection's p99: {:.0} us idle, {:.0} us beside: {:.2} times; longest {:.0} us",
        report.idle_p99_us,
        report.beside_p99_us,
        report.beside_p99_us / report.idle_p99_us,
        report.beside_worst_us
    );
    if !report.ended.is_empty() {
        println!("{}", termination::table(&report.ended));
    }
}
