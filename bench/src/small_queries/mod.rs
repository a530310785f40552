//! Distinct queries over tables of a few rows, where parsing and planning dominate. All servers
//! have the same tables and run the same queries. Answers are compared before times are.

mod generate;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use mysql::{Conn, Error as ClientError, Row, prelude::Queryable};
use remora_peers::Kind;
use serde::Serialize;

use self::generate::QueryGenerator;
use crate::{
    answer::{Answer, is_ordered},
    lookup::servers::{self, DatabaseServer},
    measure::{microseconds, percentile},
    suite::WorkDirectory,
    table::Table,
};

/// Options of `small-queries`.
#[derive(clap::Args, Debug)]
pub struct SmallQueryOptions {
    /// Number of queries.
    #[arg(long, default_value_t = 10_000)]
    queries: usize,
    /// Seed of the random queries.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure only Remora. Answers are not compared.
    #[arg(long)]
    without_peers: bool,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-small-queries.json")]
    json: PathBuf,
}

/// The most differences that are shown.
const SHOWN: usize = 20;

/// The figures of one server.
#[derive(Serialize)]
struct Figures {
    server: String,
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    server_cpu_us: Option<f64>,
    /// Medians by kind, in microseconds.
    kinds: BTreeMap<&'static str, f64>,
}

/// Runs the suite; fails on a wrong answer.
pub fn small_queries(options: &SmallQueryOptions) -> Result<()> {
    let directory = WorkDirectory::new()?;
    let mut database_servers = vec![servers::remora(directory.path(), 1)?];
    if !options.without_peers {
        database_servers.extend(servers::peer(Kind::MySql97, &["InnoDB"], 0)?);
        database_servers.extend(servers::peer(Kind::MariaDb1011, &["InnoDB"], 0)?);
    }
    let (mut figures, mut answers) = (Vec::new(), Vec::new());
    for database_server in &database_servers {
        eprintln!("{}", database_server.name);
        let (of_server, given) = ask(database_server, options)?;
        figures.push(of_server);
        answers.push(given);
    }
    println!("{}", table(&figures));
    let file = std::fs::File::create(&options.json)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    serde_json::to_writer_pretty(file, &figures)?;
    match answers.as_slice() {
        [own, truth, ..] => compare(options, own, truth),
        _ => Ok(()),
    }
}

/// Creates the tables and runs all queries in order.
fn ask(
    database_server: &DatabaseServer,
    options: &SmallQueryOptions,
) -> Result<(Figures, Vec<Answer>)> {
    let mut connection = database_server.connect(false)?;
    let mut draw = QueryGenerator::new(options.seed);
    for statement in draw.tables() {
        connection.query_drop(&statement).with_context(|| statement.clone())?;
    }
    let before = database_server.processor().whole();
    let started = Instant::now();
    let (mut walls, mut answers) = (Vec::new(), Vec::new());
    let mut kinds: BTreeMap<&'static str, Vec<Duration>> = BTreeMap::new();
    for _ in 0..options.queries {
        let (kind, query) = draw.query();
        let began = Instant::now();
        let answer = answer(&mut connection, &query)?;
        walls.push(began.elapsed());
        kinds.entry(kind).or_default().push(began.elapsed());
        answers.push(answer);
    }
    let seconds = started.elapsed().as_secs_f64();
    let cpu = before.zip(database_server.processor().whole());
    let cpu = cpu.map(|(before, after)| after.saturating_sub(before));
    walls.sort_unstable();
    let median = |mut walls: Vec<Duration>| {
        walls.sort_unstable();
        microseconds(percentile(&walls, 50))
    };
    let figures = Figures {
        server: database_server.name.clone(),
        per_second: options.queries as f64 / seconds,
        p50_us: microseconds(percentile(&walls, 50)),
        p99_us: microseconds(percentile(&walls, 99)),
        server_cpu_us: cpu.map(|cpu| microseconds(cpu) / options.queries.max(1) as f64),
        kinds: kinds.into_iter().map(|(kind, walls)| (kind, median(walls))).collect(),
    };
    Ok((figures, answers))
}

fn answer(connection: &mut Conn, query: &str) -> Result<Answer> {
    match connection.query::<Row, _>(query) {
        Ok(rows) => Ok(Answer::of(rows, is_ordered(query))),
        Err(ClientError::MySqlError(error)) => Ok(Answer::Error(error.code, error.message)),
        Err(error) => Err(error).with_context(|| query.to_owned()),
    }
}

/// Prints the queries whose answers differ from the other server's.
fn compare(options: &SmallQueryOptions, own: &[Answer], truth: &[Answer]) -> Result<()> {
    let mut draw = QueryGenerator::new(options.seed);
    draw.tables();
    let (mut wrong, mut refused, mut both) = (0, 0, 0);
    for (own, truth) in own.iter().zip(truth) {
        let (_, query) = draw.query();
        let count = match (own, truth) {
            (Answer::Error(..), Answer::Error(..)) => {
                both += 1;
                continue;
            }
            (Answer::Error(..), _) => &mut refused,
            (own, truth) if own != truth => &mut wrong,
            _ => continue,
        };
        *count += 1;
        if *count <= SHOWN {
            println!("{query}\n  own:   {own:.300?}\n  truth: {truth:.300?}");
        }
    }
    println!(
        "{} queries: {wrong} wrong, {refused} refused by Remora alone, {both} refused by both",
        options.queries
    );
    anyhow::ensure!(wrong == 0, "{wrong} answers were wrong");
    Ok(())
}

fn table(figures: &[Figures]) -> Table {
    let kinds: Vec<&str> =
        figures.first().map(|one| one.kinds.keys().copied().collect()).unwrap_or_default();
    let mut heads = vec!["server", "queries/s", "p50 us", "p99 us", "server cpu us"];
    heads.extend(&kinds);
    heads.push("");
    let mut table = Table::new(&heads);
    for one in figures {
        let mut row = vec![
            one.server.clone(),
            format!("{:.0}", one.per_second),
            format!("{:.0}", one.p50_us),
            format!("{:.0}", one.p99_us),
            one.server_cpu_us.map(|us| format!("{us:.0}")).unwrap_or_default(),
        ];
        row.extend(one.kinds.values().map(|us| format!("{us:.0}")));
        row.push(String::new());
        table.row(row);
    }
    table
}
