//! The app suite: the ordinary statements of a shop, a forum and a back office, run on a MariaDB, on a Remora that
//! replicates it and on a MySQL, each with the usual indexes.
//!
//! Every run of a statement has its own literals, so that plan caches help and result caches do not. Answers are
//! compared before times are measured, and the servers take turns.
//!
//! With `--indexes` it measures instead what secondary keys cost while they are followed (`key_cost`).

mod adversarial;
mod calendar;
mod client;
mod draw;
mod key_cost;
mod load;
mod report;
mod rows;
mod skewed_rows;
mod template;
mod times;

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use mysql::prelude::Queryable;
use serde::Serialize;

use self::{
    adversarial::CaseTimes,
    client::Client,
    draw::LiteralGenerator,
    load::{Share, analyze, create, create_views, definitions, fill},
    report::single,
    rows::Shop,
    template::Template,
    times::{Figures, RunLimits},
};
use crate::{
    lookup::servers::{DATABASE, DatabaseServer},
    measure::directory_bytes,
    replication::report::{Figure, Report, Target},
    server_group::{ServerGroup, ServerGroupOptions},
    suite::machine,
};

const SCHEMA: &str = include_str!("schema.sql");
const VIEWS: &str = include_str!("views.sql");
const STATEMENTS: &str = include_str!("statements.sql");
/// The most memory that Remora may need, as a share of the size of the source's data.
const MEMORY: f64 = 0.8;

/// Options of `app`.
#[derive(clap::Args, Debug)]
pub struct AppOptions {
    /// Size of the data: 1 is 50,000 users with 500,000 orders.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Seed of the random literals.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Send prepared statements instead of statement texts.
    #[arg(long)]
    prepared: bool,
    /// Use the same literals in all runs of a statement. A statement that is slower without this option is planned
    /// in each run.
    #[arg(long)]
    same_literals: bool,
    /// Run only these parts, separated by commas. Default: all.
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// Run only statements whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Number of answers of each statement to compare before it is timed.
    #[arg(long, value_name = "N", default_value_t = 6)]
    compared: usize,
    /// The most timed runs of each statement.
    #[arg(long, value_name = "N", default_value_t = 100)]
    runs: usize,
    /// Time in seconds to measure a statement. It runs a few times even if that takes longer.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,
    /// Timeout of a statement in seconds. It then counts as failed.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    limit: u64,
    /// Measure what three secondary keys per table cost, instead of statements: copy and apply rate, start-up time and
    /// memory with the keys declared at the MariaDB, relative to the same rows without keys.
    #[arg(long)]
    indexes: bool,
    /// Number of rounds with --indexes. Each measures both, in alternating order.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Time in seconds that the servers keep running at the end, for other tools.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    linger: u64,
    #[command(flatten)]
    server_group: ServerGroupOptions,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-app.json")]
    json: PathBuf,
}

/// What is measured.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The statements of an application.
    Statements,
    /// Data that estimates go wrong with: the chosen plan beside forced ones.
    Adversarial,
}

/// Everything that one run measured.
#[derive(Serialize)]
struct ReportFile<'r> {
    seed: u64,
    scale: f64,
    prepared: bool,
    same_literals: bool,
    servers: &'r [&'r str],
    report: &'r Report,
    statements: &'r [Figures],
    adversarial: &'r [CaseTimes],
}

impl AppOptions {
    fn wants(&self, part: Part) -> bool {
        self.part.is_empty() || self.part.contains(&part)
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.limit)
    }

    fn budget(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.clamp(0.0, 3_600.0))
    }
}

/// Runs the suite; fails on a wrong answer, not on a slow one.
pub fn app(options: &AppOptions) -> Result<()> {
    let shop = Shop::new(options.scale);
    if options.indexes {
        let program = options.server_group.program()?;
        let mut report = Report::new(machine(), "MariaDB 10.11");
        key_cost::measure(&program, &shop, options.rounds, &mut report)?;
        report.machine_at_end();
        println!("{report}");
        return write(options, &["Remora"], &report, &[], &[]);
    }
    let server_group = start(options, &shop)?;
    let names: Vec<&str> = server_group
        .database_servers
        .iter()
        .map(|database_server| database_server.name.as_str())
        .collect();
    let mut report = Report::new(machine(), "MariaDB 10.11");
    let (mut statements, mut cases) = (Vec::new(), Vec::new());
    if options.wants(Part::Statements) {
        statements = measure(options, &server_group.database_servers, &shop)?;
        println!("{}", report::table(&statements, &names));
        report::figures(&statements, &names).into_iter().for_each(|figure| report.add(figure));
    }
    if options.wants(Part::Adversarial) {
        let [remora, source, ..] = &server_group.database_servers[..] else {
            bail!("a server is missing")
        };
        let (limit, budget) = (options.limit(), options.budget());
        cases = adversarial::measure(remora, source, &shop, options.seed, limit, budget)?;
        println!("{}", adversarial::table(&cases));
        report.add(worst(&cases));
    }
    for figure in sizes(&server_group)? {
        report.add(figure);
    }
    report.machine_at_end();
    println!("{report}");
    let differ = show_differences(&statements, &cases);
    write(options, &names, &report, &statements, &cases)?;
    if options.linger > 0 {
        for database_server in &server_group.database_servers {
            println!(
                "{} lingers: {}",
                database_server.name,
                database_server.client_options().join(" ")
            );
        }
        std::thread::sleep(Duration::from_secs(options.linger));
    }
    match differ {
        0 => Ok(()),
        differ => bail!("the answers of {differ} statements were not the same"),
    }
}

/// Starts the servers and loads the rows.
fn start(options: &AppOptions, shop: &Shop) -> Result<ServerGroup> {
    let tables = definitions(SCHEMA).chain(definitions(adversarial::SCHEMA)).count();
    let limit = Duration::from_secs(600);
    let fill_with = |database_server: &DatabaseServer, share: Share| {
        let mut connection = database_server.connect_for(limit)?;
        if share == Share::Most {
            create(&mut connection, SCHEMA)?;
            create(&mut connection, adversarial::SCHEMA)?;
            create_views(&mut connection, VIEWS)?;
        }
        fill(&mut connection, &rows::TABLES, shop, share)?;
        fill(&mut connection, &skewed_rows::TABLES, shop, share)
    };
    let first = |database_server: &DatabaseServer| fill_with(database_server, Share::Most);
    let later = |database_server: &DatabaseServer| {
        fill_with(database_server, Share::Last)?;
        let mut connection = database_server.connect_for(limit)?;
        analyze(&mut connection, &rows::TABLES)?;
        analyze(&mut connection, &skewed_rows::TABLES)
    };
    ServerGroup::start(&options.server_group, tables, &first, &later)
}

fn measure(
    options: &AppOptions,
    database_servers: &[DatabaseServer],
    shop: &Shop,
) -> Result<Vec<Figures>> {
    let client = |database_server| Client::new(database_server, options.limit(), options.prepared);
    let mut clients: Vec<Client<'_>> =
        database_servers.iter().map(client).collect::<Result<_>>()?;
    let effort = RunLimits {
        compared: options.compared,
        runs: options.runs,
        budget: options.budget(),
        is_same: options.same_literals,
    };
    let mut draw = LiteralGenerator::new(shop, options.seed);
    let mut all = Vec::new();
    for template in Template::read(STATEMENTS)? {
        if options.only.as_ref().is_some_and(|part| !template.name.contains(part.as_str())) {
            continue;
        }
        eprintln!("{}", template.name);
        let figures = times::measure(&template, &mut clients, &mut draw, effort)?;
        if let Some(difference) = &figures.difference {
            eprintln!("DIFFERS: {difference}");
        }
        all.push(figures);
    }
    Ok(all)
}

/// The worst ratio of a chosen plan to the best forced one.
fn worst(cases: &[CaseTimes]) -> Figure {
    let worst = cases.iter().max_by(|a, b| a.of_best.total_cmp(&b.of_best));
    let target = Target::AtMost(adversarial::BOUND);
    let of_best = worst.map_or(0.0, |case| case.of_best);
    let mut figure = single("worst chosen plan in times of the best forced", "x", of_best, target);
    figure.note = worst.map(|case| case.name.clone()).unwrap_or_default();
    figure
}

/// Remora's memory and disk relative to the size of the source's data.
fn sizes(server_group: &ServerGroup) -> Result<[Figure; 2]> {
    let data = directory_bytes(&server_group.source.data().join(DATABASE))?;
    let resident = server_group.remora.resident_bytes()?;
    let disk = server_group.remora.disk_bytes()?;
    let share = |bytes: u64| bytes as f64 / data.max(1) as f64;
    let memory_name = "memory in sizes of the source's data";
    let mut memory = single(memory_name, "x", share(resident), Target::AtMost(MEMORY));
    let disk_name = "disk in sizes of the source's data";
    let mut on_disk = single(disk_name, "x", share(disk), Target::None);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut connection = server_group.source.connect()?;
    let rows: Option<Option<f64>> = connection.query_first(format!(
        "SELECT SUM(data_length + index_length) + 0E0 FROM information_schema.tables
         WHERE table_schema = '{DATABASE}'"
    ))?;
    let rows = rows.flatten().unwrap_or_default() as u64;
    memory.note = format!(
        "{:.0} MiB resident ({:.0} before it was asked), {:.0} MiB in the source's files, {:.0} MiB of rows and indexes",
        mib(resident),
        mib(server_group.resident_at_first),
        mib(data),
        mib(rows)
    );
    on_disk.note = format!("{:.0} MiB in the data directory, its journal included", mib(disk));
    Ok([memory, on_disk])
}

/// Prints the differences and returns how many statements differed.
fn show_differences(statements: &[Figures], cases: &[CaseTimes]) -> usize {
    let statements =
        statements.iter().filter_map(|one| Some((&one.name, one.difference.as_ref()?)));
    let cases = cases.iter().filter_map(|case| Some((&case.name, case.wrong.as_ref()?)));
    let mut count = 0;
    for (name, difference) in statements.chain(cases) {
        println!("DIFFERS: {name}\n{difference}\n");
        count += 1;
    }
    count
}

fn write(
    options: &AppOptions,
    servers: &[&str],
    report: &Report,
    statements: &[Figures],
    adversarial: &[CaseTimes],
) -> Result<()> {
    let &AppOptions { seed, scale, prepared, same_literals, ref json, .. } = options;
    if let Some(directory) = json.parent() {
        fs::create_dir_all(directory)?;
    }
    let file =
        fs::File::create(json).with_context(|| format!("cannot write {}", json.display()))?;
    let written = ReportFile {
        seed,
        scale,
        prepared,
        same_literals,
        servers,
        report,
        statements,
        adversarial,
    };
    serde_json::to_writer_pretty(file, &written)?;
    println!("everything: {}", json.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_has_a_name_of_its_own_and_can_be_filled() {
        let templates = Template::read(STATEMENTS).unwrap();
        let shop = Shop::new(0.01);
        let mut names = std::collections::BTreeSet::new();
        for template in &templates {
            assert!(names.insert(&template.name), "{}", template.name);
            let known = ["point", "near", "one-table", "three-tables", "list-rows", "list-sums"];
            assert!(template.notes.iter().all(|note| known.contains(&note.as_str())));
            for seed in 0..20 {
                let filled = template.fill(&mut LiteralGenerator::new(&shop, seed)).unwrap();
                assert!(!filled.text.contains(['{', '}']), "{}", template.name);
            }
        }
        assert!(templates.len() >= 45);
        assert_eq!(
            templates.iter().filter(|one| one.notes.contains(&"point".to_owned())).count(),
            1
        );
    }

    #[test]
    fn all_that_an_application_asks_is_asked() {
        for asked in [
            "MATCH(",
            "FORCE INDEX (",
            " EXISTS (",
            " OVER (",
            "(created_at, id) < (",
            "FROM open_orders",
            "FROM product_ratings",
        ] {
            assert!(STATEMENTS.contains(asked), "{asked}");
        }
    }

    #[test]
    fn every_table_has_rows() {
        let defined = definitions(SCHEMA).chain(definitions(adversarial::SCHEMA));
        let filled = rows::TABLES.iter().chain(&skewed_rows::TABLES);
        for (definition, table) in defined.zip(filled) {
            assert!(definition.starts_with(&format!("CREATE TABLE {} (", table.name)));
        }
    }
}
