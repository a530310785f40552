//! Experiments with the parts of one server: E1, E2, E3 and E7.

use std::slice;

use anyhow::Result;

use super::{
    CLIENTS, Experiment, Measured, Point, Study, Truth,
    node::{AGENTS, Engine, LOCALS, Node, Share, Threads},
};
use crate::ranked::servers::Server;

/// The numbers of clients in E1.
const CLIENTS_OF_E1: [usize; 4] = [1, 2, 4, 8];
/// The numbers of threads in E2.
const THREADS: [usize; 4] = [1, 2, 3, 4];

/// The parts of some rows, in one server.
struct Parts {
    engine: Engine,
    node: Node,
    rows: usize,
    count: usize,
}

pub fn run(study: &mut Study<'_>) -> Result<()> {
    let asked = [Experiment::E1, Experiment::E2, Experiment::E3, Experiment::E7];
    if !asked.iter().any(|it| study.has(*it)) {
        return Ok(());
    }
    if study.has(Experiment::E1) {
        study.note(
            "E1: workers = none is left out: it serves one connection after the other, and cannot ask itself as an agent."
                .to_owned(),
        );
    }
    for rows in sizes(study) {
        let mut truth = None;
        for count in counts(&study.options.parts) {
            for engine in study.engines.clone() {
                eprintln!("{rows} rows, {count} parts, {}", engine.name());
                let name = format!("{rows}-{count}");
                let place = (engine, study.files.directory(), name.as_str());
                let node = Node::new(study.files, place, Share::all(rows, count), Vec::new())?;
                node.load()?;
                all(study, &Parts { engine, node, rows, count }, &mut truth)?;
            }
        }
    }
    charts(study);
    Ok(())
}

/// The numbers of rows, all of them last. Only E7 needs the others.
fn sizes(study: &Study<'_>) -> Vec<usize> {
    let mut sizes = vec![study.rows];
    if study.has(Experiment::E7) {
        let share = |share: &f64| (study.rows as f64 * share.clamp(0.0, 1.0)) as usize;
        sizes.extend(study.options.sizes.iter().map(share).filter(|rows| *rows > 0));
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// 1, whose answers the others must give, and the other numbers.
pub fn counts(wanted: &[usize]) -> Vec<usize> {
    let mut counts: Vec<usize> = wanted.iter().copied().filter(|count| *count > 0).collect();
    counts.push(1);
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// All experiments with these parts. The first answers become the truth.
fn all(study: &mut Study<'_>, parts: &Parts, truth: &mut Option<Truth>) -> Result<()> {
    if truth.is_none() {
        let server = parts.node.start(Threads::new(0))?;
        *truth = Some(study.answers(&server, "p0")?);
        server.stop()?;
    }
    let Some(truth) = truth else { return Ok(()) };
    if parts.rows == study.rows {
        workers(study, parts, truth)?;
        threads(study, parts, truth)?;
        agents(study, parts, truth)?;
    }
    if study.has(Experiment::E7) {
        let threads = match parts.engine {
            Engine::Remora => Threads::new(0),
            Engine::Sphinx => Threads::new(parts.count),
        };
        let server = started(study, parts, threads, &[parts.locals()], truth)?;
        let setting = format!("{} rows", parts.rows);
        ask(study, &server, parts, (Experiment::E7, parts.locals(), CLIENTS, &setting))?;
        server.stop()?;
    }
    Ok(())
}

impl Parts {
    /// The table over all parts; one part is asked itself.
    fn locals(&self) -> &'static str {
        if self.count == 1 { "p0" } else { LOCALS }
    }

    fn agents(&self) -> &'static str {
        if self.count == 1 { "p0" } else { AGENTS }
    }
}

/// Starts the server and compares the answers of its tables.
fn started(
    study: &mut Study<'_>,
    parts: &Parts,
    threads: Threads,
    indexes: &[&str],
    truth: &Truth,
) -> Result<Server> {
    let server = parts.node.start(threads)?;
    for index in indexes {
        let name = match parts.count {
            1 => "one table".to_owned(),
            count => format!("{index} of {count} parts"),
        };
        study.check(parts.engine, &server, index, &name, truth)?;
    }
    Ok(server)
}

fn ask(
    study: &mut Study<'_>,
    server: &Server,
    parts: &Parts,
    (experiment, index, clients, setting): (Experiment, &str, usize, &str),
) -> Result<()> {
    let (rows, parts) = (parts.rows, parts.count);
    study.measure(server, &Point { experiment, parts, servers: 1, rows, index, clients, setting })
}

/// E1: ways to work, with one part read directly and the others through agents.
fn workers(study: &mut Study<'_>, parts: &Parts, truth: &Truth) -> Result<()> {
    if !study.has(Experiment::E1) {
        return Ok(());
    }
    let ways: &[(&str, Threads)] = match parts.engine {
        Engine::Sphinx => &[
            ("fork", Threads { workers: "fork", count: 0 }),
            ("prefork", Threads { workers: "prefork", count: 0 }),
            ("threads", Threads { workers: "threads", count: 0 }),
        ],
        Engine::Remora => &[
            ("1 worker thread", Threads { workers: "threads", count: 1 }),
            ("2 worker threads", Threads { workers: "threads", count: 2 }),
            ("a worker thread for each processor", Threads { workers: "threads", count: 0 }),
        ],
    };
    for (way, threads) in ways {
        let server = started(study, parts, *threads, &[parts.agents()], truth)?;
        for clients in CLIENTS_OF_E1 {
            ask(study, &server, parts, (Experiment::E1, parts.agents(), clients, way))?;
        }
        server.stop()?;
    }
    Ok(())
}

/// E2: threads for the parts (Sphinx) and for connections (Remora).
fn threads(study: &mut Study<'_>, parts: &Parts, truth: &Truth) -> Result<()> {
    if !study.has(Experiment::E2) {
        return Ok(());
    }
    for count in THREADS {
        let server = started(study, parts, Threads::new(count), &[parts.locals()], truth)?;
        let setting = format!("{count} threads");
        ask(study, &server, parts, (Experiment::E2, parts.locals(), CLIENTS, &setting))?;
        server.stop()?;
    }
    Ok(())
}

/// E3: parts read one after the other, through agents, and at the same time.
fn agents(study: &mut Study<'_>, parts: &Parts, truth: &Truth) -> Result<()> {
    if !study.has(Experiment::E3) {
        return Ok(());
    }
    let (one, many) = match parts.engine {
        Engine::Sphinx => (0, parts.count),
        Engine::Remora => (1, 0),
    };
    for (setting, index, count) in [
        ("local", parts.locals(), one),
        ("agents", parts.agents(), one),
        ("local, threads", parts.locals(), many),
    ] {
        let server = started(study, parts, Threads::new(count), slice::from_ref(&index), truth)?;
        ask(study, &server, parts, (Experiment::E3, index, CLIENTS, setting))?;
        server.stop()?;
    }
    Ok(())
}

fn charts(study: &mut Study<'_>) {
    let series = |it: &Measured| format!("{} {}", it.figures.server, it.figures.setting);
    let parts = |it: &Measured| it.parts.to_string();
    study.chart(
        Experiment::E1,
        (
            "E1: ways to work; one part directly, the others through agents",
            "parts",
            "queries a second",
        ),
        |it| (format!("{} clients", it.figures.clients), series(it), parts(it)),
        |it| it.per_second,
    );
    study.chart(
        Experiment::E2,
        (
            "E2: threads for parts (searchd) and for connections (Remora), 4 clients",
            "parts",
            "queries a second",
        ),
        |it| (it.figures.server.to_owned(), it.figures.setting.clone(), parts(it)),
        |it| it.per_second,
    );
    study.chart(
        Experiment::E3,
        (
            "E3: parts read directly, through agents, by threads, 4 clients",
            "parts",
            "queries a second",
        ),
        |it| (it.figures.server.to_owned(), it.figures.setting.clone(), parts(it)),
        |it| it.per_second,
    );
    study.chart(
        Experiment::E7,
        ("E7: sizes of the data, 4 clients", "parts", "mean time in ms"),
        |it| (it.figures.server.to_owned(), it.figures.setting.clone(), parts(it)),
        |it| it.mean_us / 1e3,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_comes_first() {
        assert_eq!(counts(&[8, 2, 0, 2]), [1, 2, 8]);
        assert_eq!(counts(&[]), [1]);
    }
}
