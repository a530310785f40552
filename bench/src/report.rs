//! The results of a run, as one JSON file and as aligned tables.

use serde::Serialize;

use crate::{
    measure::{Once, Timing, percentile},
    peers::Load,
    queries::is_class,
    table::Table,
};

/// Target for the engine's slowest query, in microseconds.
const SLOW_US: f64 = 5_000.0;
/// The most slow queries that are named.
const NAMED_SLOW: usize = 10;

/// The results of a run.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The machine of the run.
    pub machine: Machine,
    /// Rows of the corpus.
    pub rows: usize,
    /// Bytes of title and text, joined.
    pub text_bytes: u64,
    /// Remora's figures that belong to no query; `None` if it was left out.
    pub remora: Option<Remora>,
    /// The queries, with Remora's figures for each.
    pub queries: Vec<QueryFigures>,
    /// The rivals.
    pub peers: Vec<PeerFigures>,
}

/// The machine.
#[derive(Debug, Default, Serialize)]
pub struct Machine {
    /// The CPU's name.
    pub processor: String,
    /// The number of threads it runs at once.
    pub processors: usize,
    /// The load average; above 0 other programs inflate the times.
    pub load_at_start: f64,
}

/// Remora's figures that belong to no query.
#[derive(Debug, Default, Serialize)]
pub struct Remora {
    /// The cost of loading all rows.
    pub apply: Once,
    /// The cost of the checkpoint after loading.
    pub checkpoint: Once,
    /// The cost of merging all segments into one.
    pub optimize: Once,
    /// The number of segments before that.
    pub segments: u64,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Bytes of the row store.
    pub store_bytes: u64,
    /// Bytes of the data directory.
    pub disk_bytes: u64,
    /// The time from the start of the process to its first answer, in milliseconds.
    pub start_ms: f64,
    /// Resident memory of the server after its first answer, in bytes.
    pub resident_at_start: u64,
    /// Resident memory after all queries, in bytes.
    pub resident_after: u64,
    /// The rates of queries per second over several connections.
    pub throughput: Vec<Throughput>,
    /// The times of SEARCH while rows are written.
    pub writes: Option<UnderWrites>,
}

/// Queries per second over a number of connections.
#[derive(Debug, Serialize)]
pub struct Throughput {
    /// SEARCH or COUNT, and its query.
    pub request: String,
    /// Connections, each with one request at a time.
    pub connections: usize,
    /// Replies per second.
    pub per_second: f64,
    /// The server's CPU time per reply, in microseconds.
    pub server_cpu_us: Option<f64>,
}

/// SEARCH of the eleven in turn, idle and under single-row batches.
#[derive(Debug, Serialize)]
pub struct UnderWrites {
    /// The times without writes.
    pub idle: Timing,
    /// The times with writes.
    pub writing: Timing,
    /// Batches per second that were acknowledged.
    pub batches_per_second: f64,
}

/// One query's figures.
#[derive(Debug, Default, Serialize)]
pub struct QueryFigures {
    /// The query.
    pub name: String,
    /// The part of the suite it belongs to.
    pub group: String,
    /// The number of matching rows, from the oracle.
    pub truth: u64,
    /// Remora's answer, if it was wrong.
    pub wrong: Option<String>,
    /// The times in this process.
    pub engine: Operations,
    /// The times over one connection of the line protocol.
    pub trip: Operations,
}

/// The three operations of one query.
#[derive(Debug, Default, Serialize)]
pub struct Operations {
    /// The newest 100 by key.
    pub search: Timing,
    /// COUNT.
    pub count: Timing,
    /// The 100 with the highest score.
    pub ranked: Timing,
}

/// One rival's figures.
#[derive(Debug, Serialize)]
pub struct PeerFigures {
    /// The name of the rival.
    pub name: String,
    /// Whether it ran in this process.
    pub in_process: bool,
    /// Loading; `None` if the data was there already.
    pub load: Option<Load>,
    /// The figures for each query.
    pub queries: Vec<PeerQuery>,
}

/// One rival's figures of one query.
#[derive(Debug, Serialize)]
pub struct PeerQuery {
    /// The query.
    pub name: String,
    /// The newest 100 by key.
    pub search: Timing,
    /// COUNT.
    pub count: Timing,
    /// The number it counted.
    pub found: u64,
    /// Whether its count and ids are correct.
    pub is_right: bool,
    /// A remark on its answer, or why it has none.
    pub note: Option<String>,
}

impl Report {
    /// The figures that belong to no query.
    pub fn summary(&self) -> String {
        let Machine { processor, processors, load_at_start } = &self.machine;
        let mut lines = vec![
            format!("{processor}, {processors} threads, load {load_at_start} at the start"),
            format!("{} rows, {} of text", self.rows, mebibytes(self.text_bytes)),
        ];
        lines.extend(self.remora.iter().flat_map(|remora| remora.lines(self.text_bytes)));
        let loads = self.peers.iter().filter_map(|peer| Some((peer, peer.load.as_ref()?)));
        lines.extend(loads.map(|(peer, load)| {
            let figures = speeds(self.text_bytes, load.wall_s, load.cpu_s);
            let ratio = load.disk_bytes as f64 / self.text_bytes.max(1) as f64;
            format!("{}: load {figures}, files {ratio:.2} x text", peer.name)
        }));
        lines.join("\n") + "\n"
    }

    /// The comparison with the rivals for each query that they answered too (or of the eleven); times are medians in
    /// microseconds, SEARCH / COUNT.
    pub fn comparison(&self) -> Table {
        let mut heads = vec!["query", "rows", "Remora engine", "Remora trip"];
        heads.extend(self.peers.iter().map(|peer| peer.name.as_str()));
        heads.extend(["best rival / Remora", ""]);
        let mut table = Table::new(&heads);
        // There are too many substrings to name: their classes have a table of their own.
        let named = self.queries.iter().filter(|query| !is_class(&query.group));
        for query in named.filter(|query| self.is_compared(query)) {
            let mut cells = vec![query.name.clone(), query.truth.to_string()];
            cells.push(pair(&query.engine.search, &query.engine.count));
            cells.push(pair(&query.trip.search, &query.trip.count));
            cells.extend(self.peers.iter().map(|peer| peer_cell(peer, &query.name)));
            let search = self.advantage(query, Operation::Search);
            let count = self.advantage(query, Operation::Count);
            cells.push(format!("{} / {}", times(search), times(count)));
            cells.push(verdict(query, search, count));
            table.row(cells);
        }
        table
    }

    /// The number of wrong answers of Remora's.
    pub fn wrong_answers(&self) -> usize {
        self.queries.iter().filter(|query| query.wrong.is_some()).count()
    }

    /// The compared operations in which a rival gave the same answer faster.
    pub fn lost(&self) -> usize {
        let compared = self.queries.iter().filter(|query| self.is_compared(query));
        let ratios = compared.flat_map(|query| {
            [Operation::Search, Operation::Count].map(|operation| self.advantage(query, operation))
        });
        ratios.flatten().filter(|(ratio, _)| *ratio < 1.0).count()
    }

    /// The spread within each group of queries: medians of the runs, and the worst by name.
    pub fn groups(&self) -> Table {
        let heads = ["group", "queries", "operation", "engine p50", "engine p99", "p99 of p99s"];
        let mut table = Table::new(&[&heads[..], &["trip p50", "trip p99", "worst", ""]].concat());
        let mut groups: Vec<&str> = self.queries.iter().map(|query| query.group.as_str()).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups.into_iter().chain(["all"]) {
            let queries: Vec<&QueryFigures> =
                self.queries.iter().filter(|q| group == "all" || q.group == group).collect();
            for (operation, pick) in OPERATIONS {
                table.row(group_row(group, operation, &queries, pick));
            }
        }
        table
    }

    /// The engine's slowest queries, and how many take longer than [`SLOW_US`].
    pub fn slowest(&self) -> String {
        let mut lines = Vec::new();
        for (operation, pick) in OPERATIONS {
            let mut slow: Vec<(f64, &str)> = self
                .queries
                .iter()
                .map(|query| (pick(&query.engine).p50_us, query.name.as_str()))
                .filter(|(median_us, _)| *median_us > SLOW_US)
                .collect();
            slow.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
            lines.push(format!("{operation}: {} queries over {SLOW_US:.0} us", slow.len()));
            let named = slow.iter().take(NAMED_SLOW);
            lines.extend(named.map(|(median_us, name)| format!("  {} {name}", micros(*median_us))));
        }
        lines.join("\n") + "\n"
    }

    fn is_compared(&self, query: &QueryFigures) -> bool {
        let has_answer =
            |peer: &PeerFigures| peer.queries.iter().any(|other| other.name == query.name);
        query.group == "eleven" || self.peers.iter().any(has_answer)
    }

    /// How many times as long as Remora the fastest rival with the right answer takes, and its name: engine time
    /// against a rival in this process, round trip against a server.
    fn advantage(&self, query: &QueryFigures, operation: Operation) -> Option<(f64, &str)> {
        let ratios = self.peers.iter().filter_map(|peer| {
            let own = if peer.in_process { &query.engine } else { &query.trip };
            let own = operation.of(own);
            let answer = peer.queries.iter().find(|other| other.name == query.name)?;
            let theirs = operation.of_peer(answer);
            let is_fair = answer.is_right && own.runs > 0 && theirs.runs > 0;
            is_fair.then(|| (theirs.p50_us / own.p50_us, peer.name.as_str()))
        });
        ratios.min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// The operations in which rivals are compared.
#[derive(Clone, Copy)]
enum Operation {
    Search,
    Count,
}

impl Operation {
    fn of(self, operations: &Operations) -> &Timing {
        match self {
            Self::Search => &operations.search,
            Self::Count => &operations.count,
        }
    }

    fn of_peer(self, query: &PeerQuery) -> &Timing {
        match self {
            Self::Search => &query.search,
            Self::Count => &query.count,
        }
    }
}

impl Remora {
    fn lines(&self, text_bytes: u64) -> Vec<String> {
        let per_text =
            |bytes: u64| format!("{:.2} x text", bytes as f64 / text_bytes.max(1) as f64);
        let steps = [self.apply, self.checkpoint, self.optimize];
        let wall_s = steps.iter().map(|step| step.wall_s).sum();
        let cpu_s = steps.iter().map(|step| step.cpu_s).sum();
        let size = |bytes: u64| format!("{} ({})", mebibytes(bytes), per_text(bytes));
        let mut lines = vec![
            format!("build: {}", speeds(text_bytes, wall_s, cpu_s)),
            format!(
                "  applied in {:.1} s, checkpoint {:.1} s, {} segments merged in {:.1} s",
                self.apply.wall_s, self.checkpoint.wall_s, self.segments, self.optimize.wall_s
            ),
            format!("index {}, row store {}", size(self.index_bytes), size(self.store_bytes)),
            format!("data directory {}", size(self.disk_bytes)),
            format!("start to first answer: {:.0} ms", self.start_ms),
            format!(
                "resident: {} at the start, {} after the queries",
                size(self.resident_at_start),
                size(self.resident_after)
            ),
        ];
        lines.extend(self.throughput.iter().map(Throughput::line));
        lines.extend(self.writes.iter().map(UnderWrites::line));
        lines
    }
}

impl Throughput {
    fn line(&self) -> String {
        let cpu = self.server_cpu_us.map_or_else(|| "?".to_owned(), micros);
        let Self { request, connections, per_second, .. } = self;
        format!(
            "{request}, {connections} connections: {per_second:.0} a second, server {cpu} us CPU"
        )
    }
}

impl UnderWrites {
    fn line(&self) -> String {
        format!(
            "SEARCH under {:.0} single-row batches a second: p50 {} us, p99 {} us; idle {} and {} \
             us: p99 {:.1} times idle",
            self.batches_per_second,
            micros(self.writing.p50_us),
            micros(self.writing.p99_us),
            micros(self.idle.p50_us),
            micros(self.idle.p99_us),
            self.writing.p99_us / self.idle.p99_us
        )
    }
}

/// Wall and CPU time of loading some text, and the resulting rates.
fn speeds(text_bytes: u64, wall_s: f64, cpu_s: Option<f64>) -> String {
    let megabytes = text_bytes as f64 / 1e6;
    let cpu = cpu_s.map_or_else(String::new, |cpu_s| {
        format!(", {cpu_s:.1} s CPU: {:.1} MB/s a core", megabytes / cpu_s)
    });
    format!("{wall_s:.1} s: {:.1} MB/s{cpu}", megabytes / wall_s)
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

type Pick = fn(&Operations) -> &Timing;

/// The three operations by name.
const OPERATIONS: [(&str, Pick); 3] = [
    ("SEARCH", |operations| &operations.search),
    ("COUNT", |operations| &operations.count),
    ("_score", |operations| &operations.ranked),
];

fn verdict(
    query: &QueryFigures,
    search: Option<(f64, &str)>,
    count: Option<(f64, &str)>,
) -> String {
    if let Some(wrong) = &query.wrong {
        return format!("WRONG: {wrong}");
    }
    let lost = [("SEARCH", search), ("COUNT", count)].into_iter().filter_map(|(name, best)| {
        let (_, rival) = best.filter(|(ratio, _)| *ratio < 1.0)?;
        Some(format!("LOST {name} to {rival}"))
    });
    lost.collect::<Vec<_>>().join(", ")
}

fn peer_cell(peer: &PeerFigures, query: &str) -> String {
    let Some(figures) = peer.queries.iter().find(|other| other.name == query) else {
        return "-".into();
    };
    let mut cell = pair(&figures.search, &figures.count);
    if !figures.is_right {
        cell.push_str(&format!(" wrong ({})", figures.found));
    }
    if let Some(note) = &figures.note {
        cell.push_str(&format!(" {note}"));
    }
    cell
}

fn group_row(group: &str, operation: &str, queries: &[&QueryFigures], pick: Pick) -> Vec<String> {
    let sorted = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    let medians = sorted(queries.iter().map(|query| pick(&query.engine).p50_us).collect());
    let tails = sorted(queries.iter().map(|query| pick(&query.engine).p99_us).collect());
    let trips = sorted(queries.iter().map(|query| pick(&query.trip).p50_us).collect());
    let worst =
        queries.iter().max_by(|a, b| pick(&a.engine).p50_us.total_cmp(&pick(&b.engine).p50_us));
    vec![
        group.into(),
        queries.len().to_string(),
        operation.into(),
        micros(percentile(&medians, 50)),
        micros(percentile(&medians, 99)),
        micros(percentile(&tails, 99)),
        micros(percentile(&trips, 50)),
        micros(percentile(&trips, 99)),
        worst.map(|query| micros(pick(&query.engine).p50_us)).unwrap_or_default(),
        worst.map(|query| query.name.clone()).unwrap_or_default(),
    ]
}

fn pair(search: &Timing, count: &Timing) -> String {
    format!("{} / {}", one(search), one(count))
}

fn one(timing: &Timing) -> String {
    if timing.runs == 0 { "-".into() } else { micros(timing.p50_us) }
}

fn times(best: Option<(f64, &str)>) -> String {
    best.map_or_else(|| "-".into(), |(ratio, _)| format!("{ratio:.1}"))
}

/// Microseconds with three significant digits.
pub fn micros(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(p50_us: f64) -> Timing {
        Timing { runs: 3, p50_us, ..Default::default() }
    }

    fn operations(search: f64, count: f64) -> Operations {
        Operations { search: timing(search), count: timing(count), ranked: timing(1.0) }
    }

    fn peer(name: &str, in_process: bool, search: f64, count: f64, is_right: bool) -> PeerFigures {
        let query = PeerQuery {
            name: "日本".into(),
            search: timing(search),
            count: timing(count),
            found: 8,
            is_right,
            note: None,
        };
        PeerFigures { name: name.into(), in_process, load: None, queries: vec![query] }
    }

    fn report(peers: Vec<PeerFigures>) -> Report {
        let query = QueryFigures {
            name: "日本".into(),
            group: "eleven".into(),
            truth: 7,
            engine: operations(10.0, 2.0),
            trip: operations(50.0, 40.0),
            ..Default::default()
        };
        Report { queries: vec![query], peers, ..Default::default() }
    }

    #[test]
    fn servers_are_held_against_round_trips_and_libraries_against_engine_time() {
        let report = report(vec![
            peer("server", false, 100.0, 100.0, true),
            peer("library", true, 30.0, 1.0, true),
        ]);
        let query = &report.queries[0];
        assert_eq!(report.advantage(query, Operation::Search), Some((2.0, "server")));
        assert_eq!(report.advantage(query, Operation::Count), Some((0.5, "library")));
        assert_eq!(report.lost(), 1);
        let table = report.comparison().to_string();
        assert!(table.contains("2.0 / 0.5") && table.contains("LOST COUNT to library"), "{table}");
    }

    #[test]
    fn a_wrong_rival_is_shown_and_is_no_bar() {
        let report = report(vec![peer("library", true, 1.0, 1.0, false)]);
        assert_eq!(report.lost(), 0);
        let table = report.comparison().to_string();
        assert!(table.contains("wrong (8)") && table.contains("- / -"), "{table}");
    }

    #[test]
    fn groups_name_their_worst_query() {
        let table = report(Vec::new()).groups().to_string();
        assert!(table.contains("eleven") && table.contains("all") && table.contains("日本"));
    }
}
