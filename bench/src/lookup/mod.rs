//! Rows by key, one at a time: in process, and over the network from a hundred concurrent clients; and rows by a part
//! of their text, with LIKE.
//!
//! Each client reads random rows out of a million, one statement after the other. The server's CPU time per statement
//! is shown next to the rate, since clients and server share the machine.

mod in_process;
mod like;
pub mod rows;
pub mod servers;

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use mysql::{Row, prelude::Queryable};
use remora_peers::Kind;
use serde::Serialize;

pub use in_process::InProcess;

use self::servers::DatabaseServer;
use crate::{random::SplitMix64, suite::WorkDirectory, table::Table};

/// Options of `lookup`.
#[derive(clap::Args, Debug)]
pub struct LookupOptions {
    /// Number of rows in the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Number of clients that send queries at the same time.
    #[arg(long, default_value_t = 100)]
    clients: usize,
    /// Time in seconds to measure each access method.
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    seconds: u64,
    /// Measure only Remora.
    #[arg(long)]
    without_peers: bool,
    /// Measure only the library in this process. No server is started.
    #[arg(long)]
    only_in_process: bool,
    /// Number of wiki rows for queries with LIKE. 0 skips them.
    #[arg(long, value_name = "N", default_value_t = 301_450)]
    like_rows: usize,
    /// Directory with JSON Lines files, plain or compressed with zstd. Default: the environment variable
    /// REMORA_BENCH_DATA, or shared/data next to the work tree.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Measure only LIKE, no lookups by key.
    #[arg(long)]
    only_like: bool,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-lookup.json")]
    json: PathBuf,
}

/// A way to send statements.
#[derive(Clone, Copy)]
struct AccessMethod {
    name: &'static str,
    prepared: bool,
    compressed: bool,
}

const ACCESS_METHODS: [AccessMethod; 4] = [
    AccessMethod { name: "text", prepared: false, compressed: false },
    AccessMethod { name: "prepared", prepared: true, compressed: false },
    AccessMethod { name: "text, compressed", prepared: false, compressed: true },
    AccessMethod { name: "prepared, compressed", prepared: true, compressed: true },
];

/// The figures of one server for one way.
#[derive(Serialize)]
struct Figures {
    server: String,
    way: &'static str,
    statements: u64,
    per_second: f64,
    p95_us: f64,
    server_cpu_us: Option<f64>,
}

/// Runs the suite.
pub fn lookup(options: &LookupOptions) -> Result<()> {
    if options.only_like {
        return like::like(options);
    }
    let directory = WorkDirectory::new()?;
    let mut in_process = InProcess::open(&directory.path().join("inside"), options.rows)?;
    let inside = in_process.lookups(options.rows)?;
    println!("{inside}");
    drop(in_process);
    let mut figures = Vec::new();
    if !options.only_in_process {
        let mut database_servers = vec![servers::remora(directory.path(), options.rows)?];
        if !options.without_peers {
            let mariadb = ["MEMORY", "InnoDB"];
            database_servers.extend(servers::peer(Kind::MariaDb1011, &mariadb, options.rows)?);
            database_servers.extend(servers::peer(Kind::MySql97, &["InnoDB"], options.rows)?);
        }
        for way in ACCESS_METHODS {
            for database_server in &database_servers {
                eprintln!("{}, {}", database_server.name, way.name);
                figures.push(measure(database_server, way, options)?);
            }
        }
    }
    println!("{}", table(&figures));
    let file = std::fs::File::create(&options.json)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    serde_json::to_writer_pretty(file, &figures)?;
    if options.only_in_process || options.like_rows == 0 {
        return Ok(());
    }
    like::like(options)
}

fn measure(
    database_server: &DatabaseServer,
    way: AccessMethod,
    options: &LookupOptions,
) -> Result<Figures> {
    let (begin, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let statements = AtomicU64::new(0);
    thread::scope(|scope| {
        let client = |number: usize| {
            let (begin, stop, statements) = (&begin, &stop, &statements);
            scope.spawn(move || {
                ask(database_server, way, options.rows, number, begin, stop, statements)
            })
        };
        let clients: Vec<_> = (0..options.clients).map(client).collect();
        // All connections are open; the first second is not measured.
        begin.store(true, Ordering::SeqCst);
        thread::sleep(Duration::from_secs(1));
        let before = (database_server.processor().whole(), statements.load(Ordering::Relaxed));
        let started = Instant::now();
        thread::sleep(Duration::from_secs(options.seconds));
        let seconds = started.elapsed().as_secs_f64();
        let after = (database_server.processor().whole(), statements.load(Ordering::Relaxed));
        stop.store(true, Ordering::SeqCst);
        let mut walls = Vec::new();
        for client in clients {
            let ended = client.join().map_err(|_| anyhow::anyhow!("a client panicked"))?;
            walls.extend(ended?);
        }
        walls.sort_unstable();
        let count = after.1 - before.1;
        let cpu = before.0.zip(after.0).map(|(before, after)| after.saturating_sub(before));
        let p95 = walls.get(walls.len() * 95 / 100).copied().unwrap_or_default();
        Ok(Figures {
            server: database_server.name.clone(),
            way: way.name,
            statements: count,
            per_second: count as f64 / seconds,
            p95_us: p95.as_secs_f64() * 1e6,
            server_cpu_us: cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / count.max(1) as f64),
        })
    })
}

/// One client: sends statements until `stop` is set, and times every hundredth.
fn ask(
    database_server: &DatabaseServer,
    way: AccessMethod,
    rows: u64,
    number: usize,
    begin: &AtomicBool,
    stop: &AtomicBool,
    statements: &AtomicU64,
) -> Result<Vec<Duration>> {
    let mut connection = database_server.connect(way.compressed)?;
    let select = format!("SELECT id, k, c, pad FROM {} WHERE id = ", database_server.table);
    let statement = connection.prep(format!("{select}?"))?;
    let mut random = SplitMix64::new(number as u64 + 1);
    let mut walls = Vec::new();
    while !begin.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
    }
    for turn in 0u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let id = 1 + random.next() % rows;
        let started = turn.is_multiple_of(100).then(Instant::now);
        let row: Option<Row> = match way.prepared {
            true => connection.exec_first(&statement, (id,))?,
            false => connection.query_first(format!("{select}{id}"))?,
        };
        walls.extend(started.map(|started| started.elapsed()));
        let found: Option<u64> = row.and_then(|row| row.get(0));
        ensure!(found == Some(id), "{}: row {id} is missing", database_server.name);
        statements.fetch_add(1, Ordering::Relaxed);
    }
    Ok(walls)
}

fn table(figures: &[Figures]) -> Table {
    let mut table = Table::new(&["server", "statements/s", "p95 us", "server cpu us", "way"]);
    for one in figures {
        table.row(vec![
            one.server.clone(),
            format!("{:.0}", one.per_second),
            format!("{:.0}", one.p95_us),
            one.server_cpu_us.map(|us| format!("{us:.1}")).unwrap_or_default(),
            one.way.to_owned(),
        ]);
    }
    table
}
