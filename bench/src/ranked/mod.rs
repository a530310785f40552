//! Ranked search by keywords, compared with Sphinx 2.2.11: the experiments E1 to E11 of a study of distributed Sphinx over
//! the same rows with the study's mix of queries. Ids and weights are compared before times are measured.

mod answers;
mod chart;
mod client;
mod footprint;
mod histogram;
mod log;
mod processes;
mod queries;
mod servers;
mod study;
mod times;
mod words;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use self::{
    answers::{Agreement, SearchTarget},
    footprint::Footprint,
    histogram::{CLASSES, Spread},
    queries::{Kind, Query, statement},
    servers::{Files, REMORA, SHARDED, SPHINX, Server, TABLE},
    study::{Findings, Study, StudyOptions},
    times::{Figures, Work},
    words::Words,
};
use crate::{
    corpus::{Document, data_directory},
    random::SplitMix64,
    report::Machine,
    suite::{WorkDirectory, machine, read_documents},
};

/// The statement after each query if totals are wanted. Its time counts as that of the query.
const META: &str = "SHOW META LIKE 'total_found'";
/// The size of a short run.
const SHORT_ROWS: usize = 20_000;
const SHORT_QUERIES: usize = 500;

/// Options of `ranked`.
#[derive(clap::Args, Clone, Debug)]
pub struct RankedOptions {
    /// Number of rows to load. If the data has fewer, the rest is generated. The study had 1900000. Default: all rows
    /// of the data.
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Directory with JSON Lines files, plain or compressed with zstd. Default: the environment variable
    /// REMORA_BENCH_DATA, or shared/data next to the work tree.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Number of queries. The answers to all of them are compared.
    #[arg(long, default_value_t = 10_000)]
    queries: usize,
    /// How many of these queries are timed, starting with the first.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    measured: usize,
    /// Seed of the random queries.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The ranker: how rows are weighted.
    #[arg(long, default_value = "proximity_bm25")]
    ranker: String,
    /// The query kinds: how words are combined. Separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["any", "all", "phrase", "proximity"])]
    kinds: Vec<Kind>,
    /// Numbers of clients that send queries at the same time, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    clients: Vec<usize>,
    /// Number of runs. Medians are reported.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Also send SHOW META after each query for the number of rows found, and count its time.
    #[arg(long)]
    with_totals: bool,
    /// Number of parts of Sphinx's second, distributed index of the same rows. 0 skips its experiments.
    #[arg(long, default_value_t = 4)]
    shards: usize,
    /// Number of queries in the histogram for each number of words. 0 skips the histogram.
    #[arg(long, value_name = "N", default_value_t = 200)]
    histogram: usize,
    /// Number of queries of each kind to compare with distributed tables on 2, 3 and 8 servers. 0 skips these.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    distributed: usize,
    #[command(flatten)]
    study: StudyOptions,
    /// Directory for the charts of the study's experiments, an SVG each.
    #[arg(long, value_name = "DIR", default_value = "target/bench-ranked")]
    charts: PathBuf,
    /// Measure nothing: make the histograms of a log of queries, of Remora or Sphinx, in either format.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// A run of about ten minutes: at most 20000 rows and 500 queries, one round, fewer parts, servers and clients.
    #[arg(long)]
    short: bool,
    /// Measure only Remora.
    #[arg(long)]
    without_sphinx: bool,
    /// The remora program to measure. Default: the one next to this program, which is built first.
    #[arg(long, value_name = "FILE")]
    remora: Option<PathBuf>,
    /// Directory for the answers, in the format of `remora compare`.
    #[arg(long, value_name = "DIR", default_value = "target/bench-ranked")]
    answers: PathBuf,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-ranked.json")]
    json: PathBuf,
}

/// The results of a run.
#[derive(Default, Serialize)]
struct Report {
    machine: Machine,
    sphinx: Option<String>,
    rows: usize,
    text_bytes: u64,
    seed: u64,
    load_s: Vec<(&'static str, f64)>,
    resident_bytes: Vec<(&'static str, u64)>,
    agreements: Vec<Agreement>,
    figures: Vec<Figures>,
    spreads: Vec<Spread>,
    footprints: Vec<Footprint>,
    study: Findings,
}

/// The running servers, Remora first.
struct Servers {
    files: Files,
    running: Vec<Server>,
}

impl RankedOptions {
    /// What a short run does.
    fn shortened(&self) -> Self {
        let mut options = self.clone();
        options.rows = Some(options.rows.unwrap_or(SHORT_ROWS).min(SHORT_ROWS));
        options.queries = options.queries.min(SHORT_QUERIES);
        options.measured = options.measured.min(SHORT_QUERIES);
        options.distributed = options.distributed.min(SHORT_QUERIES / 5);
        options.histogram = options.histogram.min(SHORT_QUERIES / 10);
        options.rounds = 1;
        options.study.shorten();
        options
    }
}

/// Runs the suite; fails if an answer of Remora's differs from Sphinx's.
pub fn ranked(options: &RankedOptions) -> Result<()> {
    if let Some(path) = &options.log {
        return log::study(path, &options.charts);
    }
    match options.short {
        true => run(&options.shortened()),
        false => run(options),
    }
}

fn run(options: &RankedOptions) -> Result<()> {
    let mut report = Report { machine: machine(), seed: options.seed, ..Report::default() };
    let data = data_directory(options.data.as_deref())?;
    let documents = read_documents(&data, options.rows)?;
    report.rows = documents.len();
    report.text_bytes = documents.iter().map(|it| (it.title.len() + it.text.len()) as u64).sum();
    let words = Words::of(&documents);
    let queries = queries::queries(&words, options.seed, options.queries)?;
    introduce(&report, &words, &queries);
    report.sphinx = if options.without_sphinx { None } else { servers::sphinx_version() };
    match &report.sphinx {
        Some(version) => println!("{version}"),
        None => println!("without Sphinx, which peers/scripts/fetch sphinx installs"),
    }
    let directory = WorkDirectory::new()?;
    let mut servers = load(options, &documents, &directory, &mut report)?;
    compare(options, &queries, &servers, &mut report)?;
    distribute(options, &queries, &servers, &mut report)?;
    let measured = queries.get(..options.measured).unwrap_or(&queries);
    measure(options, measured, &servers, &mut report)?;
    spread(options, &words, &mut servers, &mut report)?;
    for server in &servers.running {
        report.resident_bytes.push((server.name, server.resident_bytes()?));
    }
    let Servers { files, running } = servers;
    running.into_iter().try_for_each(Server::stop)?;
    report.footprints = footprint::measure(&files, &documents)?;
    println!("What words take, as shares of the text:\n");
    println!("{}", footprint::table(&report.footprints, report.text_bytes));
    report.study = study(options, &queries, &files, &report)?;
    let file = std::fs::File::create(&options.json)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    serde_json::to_writer_pretty(file, &report)?;
    println!("everything: {}; answers: {}", options.json.display(), options.answers.display());
    let own = report.agreements.iter().chain(&report.study.agreements).filter(|it| it.is_own());
    let wrong: usize = own.map(|it| it.different).sum();
    ensure!(wrong == 0, "{wrong} answers of Remora's differ from those of one index");
    Ok(())
}

fn introduce(report: &Report, words: &Words<'_>, queries: &[Query]) {
    let Machine { processor, processors, load_at_start } = &report.machine;
    println!("{processor}, {processors} threads, load {load_at_start} at the start");
    let megabytes = report.text_bytes as f64 / 1e6;
    println!("{} rows, {megabytes:.0} MB of text, {} words", report.rows, words.count());
    let all: usize = queries.iter().map(|query| query.words.len()).sum();
    let mut different: Vec<&[String]> =
        queries.iter().map(|query| query.words.as_slice()).collect();
    different.sort_unstable();
    different.dedup();
    println!(
        "seed {}: {} queries, {} different, {:.2} words on average",
        report.seed,
        queries.len(),
        different.len(),
        all as f64 / queries.len().max(1) as f64
    );
}

/// The study's other experiments, with servers of their own.
fn study(
    options: &RankedOptions,
    queries: &[Query],
    files: &Files,
    report: &Report,
) -> Result<Findings> {
    let (weighs, has_sphinx) = ((&*options.ranker, options.rounds), report.sphinx.is_some());
    let study = Study::new(&options.study, (files, report.rows), queries, weighs, has_sphinx);
    study.run((&report.figures, &report.agreements), &options.charts)
}

/// Loads and starts the servers.
fn load(
    options: &RankedOptions,
    documents: &[Document],
    directory: &WorkDirectory,
    report: &mut Report,
) -> Result<Servers> {
    let program = options.remora.clone().map_or_else(crate::remora::binary, Ok)?;
    let program = program.canonicalize().with_context(|| format!("no {}", program.display()))?;
    let files = Files::write(directory.path(), program, documents, options.shards)?;
    eprintln!("loading Remora");
    report.load_s.push((REMORA, files.load_remora()?.as_secs_f64()));
    let mut running = vec![files.start_remora(0)?];
    if let Some(server) = running.first() {
        server.connect()?.count(&format!("OPTIMIZE TABLE {TABLE}"))?;
        server.settle()?;
    }
    if report.sphinx.is_some() {
        eprintln!("loading Sphinx");
        report.load_s.push((SPHINX, files.load_sphinx()?.as_secs_f64()));
        running.push(files.start_sphinx(1)?);
    }
    for (name, seconds) in &report.load_s {
        let whose =
            if *name == SPHINX && options.shards > 0 { "both of its indexes" } else { "one table" };
        println!("{name}: {whose} loaded in {seconds:.1} s");
    }
    Ok(Servers { files, running })
}

/// Compares Remora's answers with Sphinx's, and those of Sphinx's distributed index with its plain one.
fn compare(
    options: &RankedOptions,
    queries: &[Query],
    servers: &Servers,
    report: &mut Report,
) -> Result<()> {
    let side = |server, index, more: &str, label| SearchTarget {
        server,
        index,
        options: format!("ranker={}{more}", options.ranker),
        label,
    };
    for &kind in &options.kinds {
        eprintln!("comparing {}", kind.name());
        let sides = match servers.running.as_slice() {
            [remora, sphinx] => {
                let mut sides =
                    vec![side(sphinx, TABLE, "", SPHINX), side(remora, TABLE, "", REMORA)];
                if options.shards > 0 && matches!(kind, Kind::Any | Kind::All) {
                    sides.push(side(sphinx, SHARDED, "", "shards"));
                    sides.push(side(sphinx, SHARDED, ", local_df=1", "shards-local_df"));
                }
                sides
            }
            running => running.iter().map(|server| side(server, TABLE, "", REMORA)).collect(),
        };
        report.agreements.extend(answers::compare(kind, queries, &sides, &options.answers)?);
    }
    report.agreements.iter().for_each(Agreement::print);
    Ok(())
}

/// Experiment E10 over several processes.
fn distribute(
    options: &RankedOptions,
    queries: &[Query],
    servers: &Servers,
    report: &mut Report,
) -> Result<()> {
    let (Some(whole), 1..) = (servers.running.first(), options.distributed) else { return Ok(()) };
    let asked = processes::ComparisonSettings {
        kinds: &options.kinds,
        queries: queries.get(..options.distributed).unwrap_or(queries),
        ranker: &options.ranker,
        answers: &options.answers,
    };
    let agreements = processes::compare(&servers.files, whole, &asked)?;
    agreements.iter().for_each(Agreement::print);
    report.agreements.extend(agreements);
    Ok(())
}

fn statements(queries: &[Query], kind: Kind, index: &str, ranker: &str) -> Vec<String> {
    let options = format!("ranker={ranker}");
    queries.iter().map(|query| statement(index, &kind.text(query), &options)).collect()
}

/// Experiment E9, and E10 of one index: every kind with every number of clients. The servers take
/// turns.
fn measure(
    options: &RankedOptions,
    queries: &[Query],
    servers: &Servers,
    report: &mut Report,
) -> Result<()> {
    let mut figures = Vec::new();
    let behind = if options.with_totals { META } else { "" };
    for &kind in &options.kinds {
        let statements = statements(queries, kind, TABLE, &options.ranker);
        for &clients in &options.clients {
            eprintln!("{}, {clients} clients", kind.name());
            let work =
                Work { setting: "one table", kind, statements: &statements, behind, clients };
            for round in 0..options.rounds.max(1) {
                let mut turn: Vec<&Server> = servers.running.iter().collect();
                if round % 2 == 1 {
                    turn.reverse();
                }
                for server in turn {
                    figures.push(times::measure(server, &work, round)?);
                }
            }
        }
    }
    figures.sort_by_key(|it| (it.kind, it.clients, it.server));
    print("One table, the median of the rounds [least-most]", &figures);
    println!(
        "{SPHINX}'s time / {REMORA}'s in the same round:\n\n{}",
        times::ratios(&figures, REMORA, SPHINX)
    );
    report.figures.extend(figures);
    Ok(())
}

fn print(title: &str, figures: &[Figures]) {
    println!("\n{title}:\n\n{}\n{}", times::table(figures), times::chart(figures));
}

/// The histogram of a query log: response times by the number of words, first cold, then warm.
fn spread(
    options: &RankedOptions,
    words: &Words<'_>,
    servers: &mut Servers,
    report: &mut Report,
) -> Result<()> {
    if options.histogram == 0 {
        return Ok(());
    }
    eprintln!("times by the number of words");
    // What is measured first has not been read before.
    servers.restart(0, 1)?;
    let mut random = SplitMix64::new(options.seed.wrapping_add(1));
    let mut classes = Vec::new();
    for (name, fewest, most) in CLASSES {
        let mut drawn = Vec::with_capacity(options.histogram);
        for _ in 0..options.histogram {
            let length = fewest + random.below(most - fewest + 1);
            drawn.push(queries::long_query(words, &mut random, length)?);
        }
        classes.push((name, statements(&drawn, Kind::Any, TABLE, &options.ranker)));
    }
    for server in &servers.running {
        let mut client = server.connect()?;
        for state in ["cold", "warm"] {
            for (name, statements) in &classes {
                let mut times = Vec::with_capacity(statements.len());
                for statement in statements {
                    let asked = std::time::Instant::now();
                    client.count(statement)?;
                    times.push(asked.elapsed());
                }
                report.spreads.push(Spread::of(server.name, state, name, &times));
            }
        }
    }
    println!("Answers to ANY by the number of words, per cent by milliseconds:\n");
    println!("{}", histogram::table(&report.spreads, "words"));
    Ok(())
}

impl Servers {
    /// Restarts all servers with these numbers of threads: Remora's for connections, Sphinx's for parts of an index.
    fn restart(&mut self, connections: usize, parts: usize) -> Result<()> {
        let names: Vec<&str> = self.running.iter().map(|server| server.name).collect();
        for server in self.running.drain(..) {
            server.stop()?;
        }
        for name in names {
            self.running.push(match name {
                REMORA => self.files.start_remora(connections)?,
                _ => self.files.start_sphinx(parts)?,
            });
        }
        Ok(())
    }
}
