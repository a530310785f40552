//! The search suite: load, compare answers with the oracle, measure, then measure the rivals.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    corpus::{Corpus, Document, data_directory, read_directory, thin_out},
    extend::extend,
    measure::{RunLimits, processors, repeat},
    oracle::{Answer, Oracle},
    peers::{MygramDb, Peer, Rival},
    queries::{Query, QuerySet, queries},
    remora::{Engine, Server, throughput, under_writes},
    report::{Machine, PeerFigures, PeerQuery, QueryFigures, Remora, Report},
    substrings,
};

/// Runs of each of the eleven queries.
const ELEVEN_EFFORT: RunLimits = RunLimits { runs: 200, budget: Duration::from_secs(1) };
/// Runs of each query of the large sets.
const SET_EFFORT: RunLimits = RunLimits { runs: 9, budget: Duration::from_millis(100) };
/// A rival runs each query as often as Remora, but no longer than this.
const RIVAL_BUDGET: Duration = Duration::from_secs(5);
/// Runs of a rival of each of the 2,000 substrings: some rivals need a tenth of a second for each.
const RIVAL_SUBSTRINGS_EFFORT: RunLimits =
    RunLimits { runs: 3, budget: Duration::from_millis(500) };

/// Options of `search`.
#[derive(clap::Args, Debug)]
pub struct SearchOptions {
    /// Number of rows to load. If the data has fewer, the rest is generated. Default: all rows of the data.
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Directory with JSON Lines files, plain or compressed with zstd. Default: the environment variable
    /// REMORA_BENCH_DATA, or shared/data next to the work tree.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Also measure rival search engines. Needs a build with --features rivals.
    #[arg(long)]
    rivals: bool,
    /// Measure only these rivals, separated by commas. Default: all.
    #[arg(long, value_enum, value_delimiter = ',', requires = "rivals")]
    only: Vec<Rival>,
    /// Also measure a running MygramDB at this address. It must have the same rows with the same ids.
    #[arg(long, value_name = "HOST:PORT")]
    mygramdb: Option<String>,
    /// The table of that MygramDB. Needed if it has several.
    #[arg(long, value_name = "NAME", requires = "mygramdb")]
    mygramdb_table: Option<String>,
    /// The query sets for Remora, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["eleven", "game", "drawn"])]
    queries: Vec<QuerySet>,
    /// The query sets for rivals, separated by commas. Some rivals need a second for each query.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["eleven"])]
    rival_queries: Vec<QuerySet>,
    /// Measure only the rivals, without Remora.
    #[arg(long)]
    without_remora: bool,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-search.json")]
    json: PathBuf,
}

/// A query and its correct answer.
struct Case {
    query: Query,
    truth: Answer,
}

/// Runs the suite; fails if Remora gave a wrong answer.
pub fn search(options: &SearchOptions) -> Result<()> {
    let mut report = Report { machine: machine(), ..Default::default() };
    let data = data_directory(options.data.as_deref())?;
    let corpus = corpus(&data, options.rows)?;
    report.rows = corpus.documents.len();
    report.text_bytes = corpus.text_bytes();
    let cases = cases(&options.queries, &data, &corpus)?;
    report.queries = cases.iter().map(unmeasured).collect();
    if !options.without_remora {
        report.remora = Some(measure_remora(&corpus, &cases, &mut report.queries)?);
    }
    measure_rivals(options, &corpus, &cases, &mut report)?;
    print(&report);
    if let Some(directory) = options.json.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let file = std::fs::File::create(&options.json)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    serde_json::to_writer_pretty(file, &report)?;
    println!("everything: {}", options.json.display());
    match report.wrong_answers() {
        0 => Ok(()),
        wrong => bail!("{wrong} of {} queries were answered wrongly", cases.len()),
    }
}

fn corpus(data: &Path, rows: Option<usize>) -> Result<Corpus> {
    Ok(Corpus::new(read_documents(data, rows)?))
}

/// The documents of a directory: all of them, fewer at even distances, or more, the rest generated.
pub fn read_documents(data: &Path, rows: Option<usize>) -> Result<Vec<Document>> {
    eprintln!("reading {}", data.display());
    let documents = read_directory(data)?;
    let rows = rows.unwrap_or(documents.len());
    Ok(if rows <= documents.len() {
        thin_out(documents, rows)
    } else {
        eprintln!("generating {} rows", rows - documents.len());
        extend(documents, rows)
    })
}

fn cases(sets: &[QuerySet], data: &Path, corpus: &Corpus) -> Result<Vec<Case>> {
    let mut queries = queries(sets, data, corpus)?;
    if sets.contains(&QuerySet::Substrings) {
        queries.extend(substrings::substrings(corpus)?);
    }
    eprintln!("reading every row for {} queries", queries.len());
    let oracle = Oracle::scan(corpus, queries.iter().map(|query| &query.expression))?;
    let case = |query: Query| Case { truth: oracle.answer(&query.expression), query };
    Ok(queries.into_iter().map(case).collect())
}

fn unmeasured(case: &Case) -> QueryFigures {
    QueryFigures {
        name: case.query.name.clone(),
        group: case.query.group.clone(),
        truth: case.truth.total,
        ..Default::default()
    }
}

fn measure_remora(corpus: &Corpus, cases: &[Case], queries: &mut [QueryFigures]) -> Result<Remora> {
    let directory = WorkDirectory::new()?;
    let data = directory.0.join("data");
    eprintln!("building");
    let engine = Engine::open(&data)?;
    let mut remora = engine.build(corpus, &data)?;
    engine.settle()?;
    eprintln!("asking the library");
    for (case, figures) in cases.iter().zip(&mut *queries) {
        ask_engine(&engine, case, figures)
            .with_context(|| format!("{} ({})", case.query.name, case.query.group))?;
    }
    engine.close()?;
    eprintln!("asking the server");
    ask_server(&data, cases, queries, &mut remora)?;
    let eleven: Vec<&Query> = cases.iter().map(|case| &case.query).filter(is_eleven).collect();
    if !eleven.is_empty() {
        eprintln!("searching while rows are written");
        let engine = Engine::open(&data)?;
        remora.writes = Some(under_writes(&engine, corpus, &eleven)?);
        engine.close()?;
    }
    Ok(remora)
}

fn is_eleven(query: &&Query) -> bool {
    query.set == QuerySet::Eleven
}

fn effort(query: &Query) -> RunLimits {
    if query.set == QuerySet::Eleven { ELEVEN_EFFORT } else { SET_EFFORT }
}

fn ask_engine(engine: &Engine, case: &Case, figures: &mut QueryFigures) -> Result<()> {
    let expression = &case.query.expression;
    let found = engine.search(expression)?;
    let count = engine.count(expression)?;
    figures.wrong = difference_from("library", &found, count, &case.truth);
    figures.engine = engine.measure(expression, effort(&case.query))?;
    Ok(())
}

fn ask_server(
    data: &Path,
    cases: &[Case],
    queries: &mut [QueryFigures],
    remora: &mut Remora,
) -> Result<()> {
    let mut server = Server::start(data)?;
    remora.start_ms = server.start.as_secs_f64() * 1e3;
    remora.resident_at_start = server.resident_bytes()?;
    for (case, figures) in cases.iter().zip(queries) {
        let expression = &case.query.expression;
        let found = server.search(expression)?;
        let count = server.count(expression)?;
        let mistake = difference_from("server", &found, count, &case.truth);
        figures.wrong = figures.wrong.take().or(mistake);
        figures.trip = server.measure(expression, effort(&case.query))?;
    }
    remora.resident_after = server.resident_bytes()?;
    remora.throughput = throughput(&server)?;
    server.stop()
}

/// How an answer differs from the correct one.
fn difference_from(who: &str, found: &Answer, count: u64, truth: &Answer) -> Option<String> {
    if found.total != truth.total {
        return Some(format!("{who} found {} rows, there are {}", found.total, truth.total));
    }
    if count != truth.total {
        return Some(format!("{who} counted {count} rows, there are {}", truth.total));
    }
    let place = (0..truth.newest.len().max(found.newest.len()))
        .find(|place| truth.newest.get(*place) != found.newest.get(*place))?;
    let id = |ids: &[u64]| ids.get(place).map_or("nothing".to_owned(), u64::to_string);
    let (wrong, right) = (id(&found.newest), id(&truth.newest));
    Some(format!("{who} has {wrong} in place {}, there belongs {right}", place + 1))
}

fn measure_rivals(
    options: &SearchOptions,
    corpus: &Corpus,
    cases: &[Case],
    report: &mut Report,
) -> Result<()> {
    let cases: Vec<&Case> =
        cases.iter().filter(|case| options.rival_queries.contains(&case.query.set)).collect();
    if options.rivals {
        let all: &[Rival] = <Rival as clap::ValueEnum>::value_variants();
        for rival in if options.only.is_empty() { all } else { &options.only } {
            eprintln!("asking {rival:?}");
            let (load, peers) = rival.open(corpus)?;
            for mut peer in peers {
                let load = Some(load.clone());
                report.peers.push(PeerFigures { load, ..ask(peer.as_mut(), &cases) });
            }
        }
    }
    if let Some(address) = &options.mygramdb {
        eprintln!("asking MygramDB");
        let mut peer = MygramDb::connect(address, options.mygramdb_table.as_deref())?;
        report.peers.push(ask(&mut peer, &cases));
    }
    Ok(())
}

fn ask(peer: &mut dyn Peer, cases: &[&Case]) -> PeerFigures {
    PeerFigures {
        name: peer.name().to_owned(),
        in_process: peer.in_process(),
        load: None,
        queries: cases.iter().map(|case| ask_one(peer, case)).collect(),
    }
}

/// A rival that rejects a query does not end the run; its error becomes the note.
fn ask_one(peer: &mut dyn Peer, case: &Case) -> PeerQuery {
    let Case { query, truth } = case;
    let mut asked = || -> Result<PeerQuery> {
        let processor = peer.processor();
        let newest = peer.search(&query.expression)?;
        let found = peer.count(&query.expression)?;
        let effort = match query.set {
            QuerySet::Substrings => RIVAL_SUBSTRINGS_EFFORT,
            _ => RunLimits { budget: RIVAL_BUDGET, ..effort(query) },
        };
        Ok(PeerQuery {
            name: query.name.clone(),
            search: repeat(effort, processor, || peer.search(&query.expression).map(drop))?,
            count: repeat(effort, processor, || peer.count(&query.expression).map(drop))?,
            found,
            is_right: found == truth.total && newest == truth.newest,
            note: peer.note(&query.expression).map(str::to_owned),
        })
    };
    asked().unwrap_or_else(|error| PeerQuery {
        name: query.name.clone(),
        search: Default::default(),
        count: Default::default(),
        found: 0,
        is_right: false,
        note: Some(format!("refused: {error:#}")),
    })
}

/// This machine and its load average.
pub fn machine() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let information = read("/proc/cpuinfo");
    let name = information.lines().find_map(|line| line.strip_prefix("model name"));
    Machine {
        processor: name.unwrap_or("?").trim_start_matches([' ', '\t', ':']).to_owned(),
        processors: processors(),
        load_at_start: read("/proc/loadavg")
            .split(' ')
            .next()
            .and_then(|load| load.parse().ok())
            .unwrap_or_default(),
    }
}

fn print(report: &Report) {
    println!("{}", report.summary());
    println!("Medians in microseconds, SEARCH newest 100 by key / COUNT:\n");
    println!("{}", report.comparison());
    if let Some(classes) = substrings::classes(report) {
        println!("Substrings by class, p50 / p99 of the queries' medians, microseconds:\n");
        println!("{classes}");
    }
    if report.remora.is_some() {
        println!("All queries, microseconds:\n\n{}", report.groups());
        println!("Slow in the engine, medians in microseconds:\n\n{}", report.slowest());
    }
    println!("lost: {}   wrong: {}", report.lost(), report.wrong_answers());
}

/// A directory for the data of one run, on the same disk as the cache; removed when dropped.
pub struct WorkDirectory(PathBuf);

impl WorkDirectory {
    /// Makes a new one.
    pub fn new() -> Result<Self> {
        let name = format!("run-{}", std::process::id());
        let path = remora_peers::cache_directory()?.join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} is left behind: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_first_mistake() {
        let truth = Answer { total: 2, newest: vec![9, 4] };
        assert_eq!(difference_from("it", &truth, 2, &truth), None);
        let said = |found: Answer, count| difference_from("it", &found, count, &truth).unwrap();
        let short = Answer { total: 2, newest: vec![9] };
        assert_eq!(said(short, 2), "it has nothing in place 2, there belongs 4");
        assert_eq!(said(truth.clone(), 3), "it counted 3 rows, there are 2");
        let less = Answer { total: 1, newest: vec![9, 4] };
        assert_eq!(said(less, 2), "it found 1 rows, there are 2");
    }
}
