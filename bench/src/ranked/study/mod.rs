//! The other experiments of the study: parts of the rows in one server and in several, numbers of threads, processes and
//! clients, sizes of the data. Each writes a chart. What is measured is checked first: a Remora must answer as one
//! table with the same rows does.

mod many_servers;
mod node;
mod one_server;
mod summary;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use self::node::Engine;
use super::{
    answers::{self, Agreement, Answer, SearchTarget},
    chart::Chart,
    queries::{Kind, Query, statement},
    servers::{Files, Server},
    times::{self, Figures, Work},
};

/// Clients in the experiments that do not vary them, as in the study.
const CLIENTS: usize = 4;
/// How the study asked: rows with any of the words.
const KIND: Kind = Kind::Any;

/// An experiment of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Experiment {
    /// Ways to work × parts of one server × clients.
    E1,
    /// Threads × parts of one server.
    E2,
    /// Parts read directly, through agents, and by several threads.
    E3,
    /// Each server for itself.
    E4,
    /// Servers × parts of each.
    E5,
    /// Parts on several disks.
    E6,
    /// Sizes of the data × parts of one server.
    E7,
    /// One front server over all others, or a second level between them.
    E8,
    /// Any and all of the words.
    E9,
    /// Answers of parts and of one table.
    E10,
    /// All of it: parts against time.
    E11,
}

/// Options of the study.
#[derive(clap::Args, Clone, Debug)]
pub struct StudyOptions {
    /// The study's experiments to run, separated by commas; without a value none. E9 and E10 are measured anyway, and
    /// have charts only if they are named. Default: all.
    #[arg(long, value_enum, value_delimiter = ',', num_args = 0.., hide_default_value = true, default_values =
        ["e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9", "e10", "e11"])]
    experiments: Vec<Experiment>,
    /// Numbers of parts of one server. 1 is always measured.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6, 7, 8])]
    parts: Vec<usize>,
    /// Numbers of servers in E4, E5 and E8.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])]
    server_counts: Vec<usize>,
    /// Sizes of the data in E7, as shares of the rows.
    #[arg(long, value_delimiter = ',', default_values_t = [0.0625, 0.25, 1.0])]
    sizes: Vec<f64>,
    /// Queries of each point of a chart.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    study_queries: usize,
    /// Queries whose answers are compared before a server is measured, as ANY and as ALL.
    #[arg(long, value_name = "N", default_value_t = 100)]
    checked: usize,
    /// Directories on different disks for E6, separated by commas. Without two of them E6 is left out.
    #[arg(long, value_name = "DIR", value_delimiter = ',')]
    disks: Vec<PathBuf>,
}

impl StudyOptions {
    /// What a short run of some minutes does.
    pub fn shorten(&mut self) {
        self.parts = vec![1, 2, 4, 8];
        self.server_counts = vec![1, 2, 4, 8];
        self.study_queries = 100;
        self.checked = 30;
    }
}

/// What the experiments found.
#[derive(Default, Serialize)]
pub struct Findings {
    pub agreements: Vec<Agreement>,
    pub figures: Vec<Measured>,
    pub charts: Vec<Chart>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// A point of a chart.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub experiment: Experiment,
    /// The number of parts in which the rows are.
    pub parts: usize,
    /// The number of servers that have them.
    pub servers: usize,
    /// The number of rows.
    pub rows: usize,
    #[serde(flatten)]
    pub figures: Figures,
}

/// What all experiments need.
pub struct Study<'s> {
    pub options: &'s StudyOptions,
    pub files: &'s Files,
    pub engines: Vec<Engine>,
    pub rows: usize,
    pub queries: &'s [Query],
    pub ranker: &'s str,
    pub rounds: usize,
    findings: Findings,
}

/// A place in a chart, and the setting that is measured.
struct Point<'p> {
    experiment: Experiment,
    parts: usize,
    servers: usize,
    rows: usize,
    index: &'p str,
    clients: usize,
    setting: &'p str,
}

/// The answers of one table, for each kind that is compared.
type Truth = Vec<(Kind, Vec<Answer>)>;

impl<'s> Study<'s> {
    /// `queries` are asked of each server.
    pub fn new(
        options: &'s StudyOptions,
        (files, rows): (&'s Files, usize),
        queries: &'s [Query],
        (ranker, rounds): (&'s str, usize),
        has_sphinx: bool,
    ) -> Self {
        let engines =
            if has_sphinx { &[Engine::Remora, Engine::Sphinx][..] } else { &[Engine::Remora] };
        let engines = engines.to_vec();
        let queries = queries.get(..options.study_queries).unwrap_or(queries);
        Self {
            options,
            files,
            engines,
            rows,
            queries,
            ranker,
            rounds,
            findings: Findings::default(),
        }
    }

    /// Runs the experiments that need servers of their own, and writes all charts. `figures` and `agreements` are those
    /// of the servers with one table, for E9 and E10.
    pub fn run(
        mut self,
        (figures, agreements): (&[Figures], &[Agreement]),
        directory: &Path,
    ) -> Result<Findings> {
        one_server::run(&mut self)?;
        many_servers::run(&mut self)?;
        summary::charts(&mut self, figures, agreements);
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        for chart in &self.findings.charts {
            chart.write(directory)?;
            println!("{}, {}:\n\n{}", chart.title, chart.up, chart.table());
        }
        for note in &self.findings.notes {
            println!("{note}");
        }
        println!("charts: {}", directory.display());
        Ok(self.findings)
    }

    fn has(&self, experiment: Experiment) -> bool {
        self.options.experiments.contains(&experiment)
    }

    fn note(&mut self, note: String) {
        if !self.findings.notes.contains(&note) {
            self.findings.notes.push(note);
        }
    }

    /// Measures a server in each round.
    fn measure(&mut self, server: &Server, point: &Point<'_>) -> Result<()> {
        let options = format!("ranker={}", self.ranker);
        let text = |query| statement(point.index, &KIND.text(query), &options);
        let statements: Vec<String> = self.queries.iter().map(text).collect();
        let work = Work {
            setting: point.setting,
            kind: KIND,
            statements: &statements,
            behind: "",
            clients: point.clients,
        };
        for round in 0..self.rounds.max(1) {
            // The CPU time of the server's other processes is not counted, so none is told.
            let figures = Figures { cpu_us: None, ..times::measure(server, &work, round)? };
            let Point { experiment, parts, servers, rows, .. } = *point;
            self.findings.figures.push(Measured { experiment, parts, servers, rows, figures });
        }
        Ok(())
    }

    /// The answers of a server's table.
    fn answers(&self, server: &Server, index: &str) -> Result<Truth> {
        let options = format!("ranker={}", self.ranker);
        let checked = self.queries.get(..self.options.checked).unwrap_or(self.queries);
        let mut all = Vec::new();
        for kind in [Kind::Any, Kind::All] {
            let side = SearchTarget { server, index, options: options.clone(), label: "" };
            all.push((kind, answers::of(kind, checked, &side)?));
        }
        Ok(all)
    }

    /// Compares a server's answers with those of one table. Sphinx's parts are compared too; they may differ.
    fn check(
        &mut self,
        engine: Engine,
        server: &Server,
        index: &str,
        name: &str,
        truth: &Truth,
    ) -> Result<()> {
        let given = self.answers(server, index)?;
        for ((kind, expected), (_, given)) in truth.iter().zip(given) {
            let side = format!("{} {name}", engine.name());
            let agreement = answers::agreement(*kind, side, expected, &given);
            if agreement.is_own() && agreement.different > 0 {
                agreement.print();
            }
            self.findings.agreements.push(agreement);
        }
        Ok(())
    }

    /// The median over the rounds of the figures that fit.
    fn median(
        &self,
        fits: impl Fn(&Measured) -> bool,
        pick: impl Fn(&Figures) -> f64,
    ) -> Option<f64> {
        let fitting = self.findings.figures.iter().filter(|it| fits(it));
        let numbers: Vec<f64> = fitting.map(|it| pick(&it.figures)).collect();
        (!numbers.is_empty()).then(|| times::median(numbers))
    }

    /// A chart of an experiment. `place` gives panel, series and category of a point.
    fn chart(
        &mut self,
        experiment: Experiment,
        (title, across, up): (&str, &str, &str),
        place: impl Fn(&Measured) -> (String, String, String),
        pick: impl Fn(&Figures) -> f64,
    ) {
        let mut chart = Chart {
            name: format!("{experiment:?}"),
            title: title.to_owned(),
            across: across.to_owned(),
            up: up.to_owned(),
            ..Chart::default()
        };
        let mut seen = Vec::new();
        let own: Vec<Measured> = self
            .findings
            .figures
            .iter()
            .filter(|it| it.experiment == experiment)
            .cloned()
            .collect();
        for measured in &own {
            let at = place(measured);
            if seen.contains(&at) {
                continue;
            }
            let fits = |it: &Measured| it.experiment == experiment && place(it) == at;
            if let Some(number) = self.median(fits, &pick) {
                chart.add(&at.0, &at.1, &at.2, number);
            }
            seen.push(at);
        }
        if !own.is_empty() {
            self.findings.charts.push(chart);
        }
    }
}
