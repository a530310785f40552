//! TPC-C's reads: Stock-Level as BenchmarkSQL writes it, a join that returns a row by key, and the twelve conditions,
//! on Remora's own tables and on real servers' in the same run.
//!
//! All servers are loaded by the same statements, and all must give the same answers.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use mysql::{Conn, prelude::Queryable};
use remora_peers::Kind;
use serde::Serialize;

use super::{Scale, conditions::CONDITIONS, load};
use crate::{
    lookup::servers::{self, DatabaseServer},
    measure::{RunLimits, Timing, repeat},
    random::SplitMix64,
    suite::WorkDirectory,
    table::Table,
    tpcc::DISTRICTS,
};

/// Runs of statements that take microseconds.
const OFTEN: RunLimits = RunLimits { runs: 2_000, budget: Duration::from_secs(5) };
/// Runs of a condition.
const SELDOM: RunLimits = RunLimits { runs: 5, budget: Duration::from_secs(2) };

const STOCK_LEVEL: &str = "SELECT count(*) AS low_stock FROM (
    SELECT s_w_id, s_i_id, s_quantity FROM stock
     WHERE s_w_id = ? AND s_quantity < ? AND s_i_id IN (
       SELECT /*+ TIDB_INLJ(order_line) */ ol_i_id FROM district
         JOIN order_line ON ol_w_id = d_w_id AND ol_d_id = d_id
           AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id
        WHERE d_w_id = ? AND d_id = ?)) AS L";
const CUSTOMER: &str = "SELECT c_discount, c_last, c_credit, w_tax FROM customer
    JOIN warehouse ON w_id = c_w_id WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";

/// Options of `tpcc-reads`.
#[derive(clap::Args, Debug)]
pub struct ReadsOptions {
    /// Number of warehouses.
    #[arg(long, default_value_t = 4)]
    warehouses: u32,
    /// Number of items. TPC-C has 100,000.
    #[arg(long, default_value_t = 100_000)]
    items: u32,
    /// Number of customers per district. TPC-C has 3,000.
    #[arg(long, default_value_t = 3_000)]
    customers: u32,
    /// Measure only Remora.
    #[arg(long)]
    without_peers: bool,
    /// Time in seconds that Remora keeps running after its measurement, for other tools.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    linger: u64,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-tpcc-reads.json")]
    json: PathBuf,
}

/// The figures of one server.
#[derive(Serialize)]
struct Figures {
    server: String,
    load_s: f64,
    statements: Vec<(String, Timing)>,
    /// The shortest time of each condition, in milliseconds.
    conditions_ms: Vec<f64>,
    /// Stock-Level's result for each district, to be compared between servers.
    low_stocks: Vec<u64>,
}

/// Runs the suite.
pub fn reads(options: &ReadsOptions) -> Result<()> {
    let directory = WorkDirectory::new()?;
    let (warehouses, items, customers) = (options.warehouses, options.items, options.customers);
    let scale = Scale { warehouses, items, customers };
    let mut figures = Vec::new();
    let remora = servers::remora(directory.path(), 1)?;
    figures.push(measure(&remora, scale)?);
    println!("{}", table(&figures));
    if options.linger > 0 {
        println!("{} lingers", remora.name);
        std::thread::sleep(Duration::from_secs(options.linger));
    }
    if !options.without_peers {
        for kind in [Kind::MariaDb1011, Kind::MySql97] {
            for holder in servers::peer(kind, &["InnoDB"], 1)? {
                figures.push(measure(&holder, scale)?);
            }
        }
        println!("{}", table(&figures));
    }
    let file = std::fs::File::create(&options.json)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    serde_json::to_writer_pretty(file, &figures)?;
    let first = figures.first().context("nothing was measured")?;
    let same = figures.iter().all(|one| one.low_stocks == first.low_stocks);
    ensure!(same, "the servers' stock levels differ");
    Ok(())
}

fn measure(holder: &DatabaseServer, scale: Scale) -> Result<Figures> {
    eprintln!("loading {}", holder.name);
    let begun = Instant::now();
    load(&|| holder.connect(false), scale)?;
    let load_s = begun.elapsed().as_secs_f64();
    eprintln!("asking {}", holder.name);
    let mut connection = holder.connect(false)?;
    let mut low_stocks = Vec::new();
    for warehouse in 1..=scale.warehouses {
        for district in 1..=DISTRICTS {
            let arguments = (warehouse, 20, warehouse, district);
            let low: Option<u64> = connection.exec_first(STOCK_LEVEL, arguments)?;
            low_stocks.push(low.context("no stock level")?);
        }
    }
    let statements = statements(holder, &mut connection, scale)?;
    let mut conditions_ms = Vec::new();
    for (number, condition) in (1..).zip(CONDITIONS) {
        let timing = repeat(SELDOM, holder.processor(), || {
            let broken: Option<u64> = connection.query_first(condition)?;
            ensure!(broken == Some(0), "{}: condition {number} gave {broken:?}", holder.name);
            Ok(())
        })?;
        conditions_ms.push(timing.min_us / 1e3);
    }
    Ok(Figures { server: holder.name.clone(), load_s, statements, conditions_ms, low_stocks })
}

/// Times of the statements of one transaction, each for random districts.
fn statements(
    holder: &DatabaseServer,
    connection: &mut Conn,
    scale: Scale,
) -> Result<Vec<(String, Timing)>> {
    let mut random = SplitMix64::new(7);
    let mut below = |end: u32| 1 + random.next() % u64::from(end);
    let stock_level = connection.prep(STOCK_LEVEL)?;
    let prepared = repeat(OFTEN, holder.processor(), || {
        let warehouse = below(scale.warehouses);
        let arguments = (warehouse, 9 + below(11), warehouse, below(DISTRICTS));
        let low: Option<u64> = connection.exec_first(&stock_level, arguments)?;
        low.context("no stock level").map(|_| ())
    })?;
    let text = repeat(OFTEN, holder.processor(), || {
        let warehouse = below(scale.warehouses).to_string();
        let arguments =
            [&warehouse, &(9 + below(11)).to_string(), &warehouse, &below(DISTRICTS).to_string()];
        let mut text = STOCK_LEVEL.to_owned();
        arguments.iter().for_each(|argument| text = text.replacen('?', argument, 1));
        let low: Option<u64> = connection.query_first(text)?;
        low.context("no stock level").map(|_| ())
    })?;
    let customer = connection.prep(CUSTOMER)?;
    let joined = repeat(OFTEN, holder.processor(), || {
        let key = (below(scale.warehouses), below(DISTRICTS), below(scale.customers));
        let row: Option<(String, String, String, String)> =
            connection.exec_first(&customer, key)?;
        row.context("no customer").map(|_| ())
    })?;
    let named = [
        ("Stock-Level, prepared", prepared),
        ("Stock-Level, text", text),
        ("customer and warehouse, prepared", joined),
    ];
    Ok(named.map(|(name, timing)| (name.to_owned(), timing)).into())
}

fn table(figures: &[Figures]) -> String {
    let mut statements = Table::new(&["server", "p50 us", "p99 us", "server cpu us", "statement"]);
    for one in figures {
        for (name, timing) in &one.statements {
            statements.row(vec![
                one.server.clone(),
                format!("{:.0}", timing.p50_us),
                format!("{:.0}", timing.p99_us),
                timing.cpu_us.map(|us| format!("{us:.0}")).unwrap_or_default(),
                name.clone(),
            ]);
        }
    }
    let mut heads = vec!["condition, ms"];
    heads.extend(figures.iter().map(|one| one.server.as_str()));
    let mut conditions = Table::new(&heads);
    let row = |name: &str, of: &dyn Fn(&Figures) -> f64| {
        let cells = figures.iter().map(|one| format!("{:.1}", of(one)));
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>()
    };
    for number in 0..CONDITIONS.len() {
        let of = |one: &Figures| one.conditions_ms.get(number).copied().unwrap_or_default();
        conditions.row(row(&(number + 1).to_string(), &of));
    }
    conditions.row(row("all", &|one| one.conditions_ms.iter().sum()));
    conditions.row(row("loaded in, s", &|one| one.load_s));
    format!("{statements}\n{conditions}")
}
