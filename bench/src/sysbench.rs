//! sysbench's read-only workloads with prepared statements, run by sysbench on a Remora that follows a MariaDB, on that
//! MariaDB, and on a MySQL with its own copy of the rows, by turns.
//!
//! Clients and servers share the machine, so each rate is shown with the server's CPU time per query.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use mysql::{Conn, Row, prelude::Queryable};
use serde::Serialize;

use crate::{
    answer::{Answer, is_ordered},
    lookup::servers::{DATABASE, DatabaseServer},
    random::SplitMix64,
    replication::report::{Figure, Report, Spread, Target},
    server_group::{ServerGroup, ServerGroupOptions},
    suite::machine,
    table::Table,
};

/// The workloads, and the target rate of each relative to MariaDB.
const WORKLOADS: [(&str, f64); 4] = [
    ("oltp_point_select", 2.0),
    ("oltp_read_only", 1.5),
    ("select_random_points", 1.5),
    ("select_random_ranges", 1.5),
];
/// Seconds that sysbench may exceed its time before it is killed.
const MAX_WAIT: u64 = 60;
/// Statements of each kind whose answers are compared.
const COMPARED: usize = 20;

/// Options of `sysbench`.
#[derive(clap::Args, Debug)]
pub struct SysbenchOptions {
    /// Run only these workloads, separated by commas. Default: all.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = WORKLOADS.map(|one| one.0))]
    only: Vec<String>,
    /// Numbers of clients that send statements at the same time, separated by commas.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 8, 32])]
    threads: Vec<u32>,
    /// Time in seconds to measure each server in each round.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    seconds: u64,
    /// Number of rounds. Each round measures all servers.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Number of tables.
    #[arg(long, value_name = "N", default_value_t = 4)]
    tables: usize,
    /// Number of rows in each table.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rows: u64,
    #[command(flatten)]
    server_group: ServerGroupOptions,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-sysbench.json")]
    json: PathBuf,
}

/// The rates of one server in one workload with one number of threads.
#[derive(Serialize)]
struct Rates {
    server: String,
    /// The rates in queries per second, by round.
    queries_per_second: Vec<f64>,
    cpu_us_per_query: Vec<f64>,
}

/// One workload with one number of threads, on all servers.
#[derive(Serialize)]
struct Load {
    workload: &'static str,
    threads: u32,
    target: f64,
    rates: Vec<Rates>,
}

#[derive(Serialize)]
struct ReportFile<'r> {
    report: &'r Report,
    loads: &'r [Load],
}

/// Runs the suite; fails if an answer was wrong or a workload failed, not if it was slow.
pub fn sysbench(options: &SysbenchOptions) -> Result<()> {
    remora_peers::fetch("sysbench")?;
    ensure!(
        options.rounds > 0 && options.tables > 0 && options.rows >= 1_000,
        "too little is asked"
    );
    let prepare = |database_server: &DatabaseServer| {
        let arguments = arguments(database_server, "oltp_read_only", options, 1);
        run(&[arguments, vec!["prepare".to_owned()]].concat(), 600).map(drop)
    };
    let server_group =
        ServerGroup::start(&options.server_group, options.tables, &prepare, &|_| Ok(()))?;
    let [remora, source, ..] = &server_group.database_servers[..] else {
        bail!("a server is missing")
    };
    compare([remora, source], options)?;
    let (mut loads, mut report) = (Vec::new(), Report::new(machine(), "MariaDB 10.11"));
    for (workload, target) in WORKLOADS {
        if !options.only.is_empty() && !options.only.iter().any(|name| name == workload) {
            continue;
        }
        for &threads in &options.threads {
            match measure(&server_group.database_servers, workload, target, threads, options) {
                Ok(load) => {
                    report.add(figure(&load));
                    loads.push(load);
                }
                Err(error) => report.add(failed(workload, threads, &error)),
            }
        }
    }
    report.machine_at_end();
    println!("{}\n{report}", table(&loads));
    if let Some(directory) = options.json.parent() {
        fs::create_dir_all(directory)?;
    }
    let file = fs::File::create(&options.json)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    serde_json::to_writer_pretty(file, &ReportFile { report: &report, loads: &loads })?;
    println!("everything: {}", options.json.display());
    match report.wrong() {
        0 => Ok(()),
        wrong => bail!("{wrong} workloads failed"),
    }
}

/// Runs all rounds of one workload.
fn measure(
    database_servers: &[DatabaseServer],
    workload: &'static str,
    target: f64,
    threads: u32,
    options: &SysbenchOptions,
) -> Result<Load> {
    let empty = |database_server: &DatabaseServer| Rates {
        server: database_server.name.clone(),
        queries_per_second: Vec::new(),
        cpu_us_per_query: Vec::new(),
    };
    let mut rates: Vec<Rates> = database_servers.iter().map(empty).collect();
    for _ in 0..options.rounds {
        for (database_server, rates) in database_servers.iter().zip(&mut rates) {
            eprintln!("{workload}, {threads} threads, {}", database_server.name);
            let mut arguments = arguments(database_server, workload, options, threads);
            arguments.extend([format!("--time={}", options.seconds), "run".to_owned()]);
            let before = database_server.processor().whole();
            let output = run(&arguments, options.seconds + MAX_WAIT)
                .with_context(|| format!("{workload} on {}", database_server.name))?;
            let cpu = before.zip(database_server.processor().whole());
            let (queries, per_second) = queries(&output)?;
            rates.queries_per_second.push(per_second);
            rates.cpu_us_per_query.extend(cpu.map(|(before, after)| {
                after.saturating_sub(before).as_secs_f64() * 1e6 / queries.max(1.0)
            }));
        }
    }
    Ok(Load { workload, threads, target, rates })
}

fn arguments(
    database_server: &DatabaseServer,
    workload: &str,
    options: &SysbenchOptions,
    threads: u32,
) -> Vec<String> {
    let connection = database_server.client_options();
    let connection = connection.iter().map(|one| one.replacen("--", "--mysql-", 1));
    let mut arguments = vec![workload.to_owned(), "--db-driver=mysql".to_owned()];
    arguments.extend(connection);
    arguments.extend([
        format!("--mysql-db={DATABASE}"),
        format!("--tables={}", options.tables),
        format!("--table-size={}", options.rows),
        format!("--threads={threads}"),
    ]);
    arguments
}

/// Runs sysbench for at most `limit` seconds; returns its output.
fn run(arguments: &[String], limit: u64) -> Result<String> {
    let output = Command::new("timeout")
        .args(["--kill-after=5", &limit.to_string(), "sysbench"])
        .args(arguments)
        .output()
        .context("cannot run sysbench")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("sysbench ended with {}: {errors}{text}", output.status);
    }
    Ok(text)
}

/// The number of queries and the rate: `queries:  123  (45.6 per sec.)`.
fn queries(output: &str) -> Result<(f64, f64)> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix("queries:"));
    let line = line.with_context(|| format!("sysbench names no queries: {output}"))?;
    let (count, rate) = line.split_once('(').context("no rate")?;
    let rate = rate.split_ascii_whitespace().next().context("no rate")?;
    Ok((count.trim().parse()?, rate.parse()?))
}

/// Runs the workloads' statements on Remora and its source and compares the answers.
fn compare(database_servers: [&DatabaseServer; 2], options: &SysbenchOptions) -> Result<()> {
    let limit = Duration::from_secs(MAX_WAIT);
    let (mut own, mut source) =
        (database_servers[0].connect_for(limit)?, database_servers[1].connect_for(limit)?);
    for statement in statements(options) {
        let answer = |connection: &mut Conn| -> Result<Answer> {
            let rows: Vec<Row> = connection.query(&statement).context(statement.clone())?;
            Ok(Answer::of(rows, is_ordered(&statement)))
        };
        let (own, source) = (answer(&mut own)?, answer(&mut source)?);
        ensure!(own == source, "{statement}\nRemora: {own}\nMariaDB: {source}");
    }
    Ok(())
}

fn statements(options: &SysbenchOptions) -> Vec<String> {
    let sums = "COUNT(*), SUM(k), SUM(CRC32(c)), SUM(CRC32(pad))";
    let whole = (1..=options.tables).map(|table| format!("SELECT {sums} FROM sbtest{table}"));
    let mut statements: Vec<String> = whole.collect();
    let mut random = SplitMix64::new(11);
    for _ in 0..COMPARED {
        let mut below = |most: u64| 1 + random.next() % most;
        let table = format!("FROM sbtest{} WHERE", below(options.tables as u64));
        let (id, rows) = (below(options.rows), options.rows);
        let range = format!("id BETWEEN {id} AND {}", id + 99);
        let keys: Vec<String> = (0..10).map(|_| below(rows).to_string()).collect();
        let between = |key: &String| format!("k BETWEEN {key} AND {key} + 5");
        let ranges: Vec<String> = keys.iter().map(between).collect();
        statements.extend([
            format!("SELECT c {table} id = {id}"),
            format!("SELECT c {table} {range}"),
            format!("SELECT SUM(k) {table} {range}"),
            format!("SELECT c {table} {range} ORDER BY c"),
            format!("SELECT DISTINCT c {table} {range} ORDER BY c"),
            format!("SELECT id, k, c, pad {table} k IN ({})", keys.join(", ")),
            format!("SELECT count(k) {table} {}", ranges.join(" OR ")),
        ]);
    }
    statements
}

/// Remora's rate relative to MariaDB's, by round.
fn figure(load: &Load) -> Figure {
    let [own, source, ..] = &load.rates[..] else {
        return Figure::new(load.workload, "x", Spread::default(), Target::None);
    };
    let ratios = own.queries_per_second.iter().zip(&source.queries_per_second);
    let ratios: Vec<f64> = ratios.map(|(own, source)| own / source).collect();
    let name = format!("{}, {} threads, in rates of MariaDB", load.workload, load.threads);
    Figure::new(&name, "x", Spread::of(ratios), Target::AtLeast(load.target))
}

/// The figure of a workload that failed.
fn failed(workload: &str, threads: u32, error: &anyhow::Error) -> Figure {
    let name = format!("{workload}, {threads} threads");
    let wrong = Some(format!("{error:#}"));
    Figure { wrong, ..Figure::new(&name, "x", Spread::default(), Target::None) }
}

fn table(loads: &[Load]) -> Table {
    let servers = loads.first().map(|load| &load.rates[..]).unwrap_or_default();
    let mut heads = vec!["workload".to_owned(), "threads".to_owned()];
    for rates in servers {
        heads.extend([format!("{} queries/s", rates.server), "cpu us/query".to_owned()]);
    }
    heads.push(String::new());
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    for load in loads {
        let mut row = vec![load.workload.to_owned(), load.threads.to_string()];
        for rates in &load.rates {
            let median = |values: &[f64]| Spread::of(values.to_vec()).median;
            row.push(format!("{:.0}", median(&rates.queries_per_second)));
            row.push(format!("{:.1}", median(&rates.cpu_us_per_query)));
        }
        row.push(String::new());
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_from_what_sysbench_prints() {
        let output = "SQL statistics:\n    transactions:  100 (20.00 per sec.)\n    \
                      queries:                             10208  (2041.35 per sec.)\n";
        assert_eq!(queries(output).unwrap(), (10_208.0, 2_041.35));
        assert!(queries("nothing").is_err());
    }
}
