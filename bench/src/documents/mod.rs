//! Documents in process: tiedot's benchmark, with its document, its six indexes, its query and its mix of operations
//! (github.com/HouzuoGuo/tiedot, `benchmark.go`), through the crate `remora`.
//!
//! Each phase is split over threads. Its CPU time is that of the whole process, background work included, until the
//! last operation has ended. The time to generate documents and queries is measured separately and shown next to it.
//! With `--tiedot ADDRESS`, the same operations go over HTTP to a real tiedot and to a server of ours (`tiedot.rs`).

mod definitions;
mod import;
mod limited;
mod operations;
mod sample;
mod tiedot;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use remora::{Database, Durability, Options};
use serde::Serialize;

use self::{definitions::define, operations::Operations, sample::Sample};
use crate::{measure::MeasuredProcess, random::SplitMix64, suite::WorkDirectory, table::Table};

/// The paths that tiedot's benchmark indexes.
const PATHS: [&str; 6] =
    ["nested.nested.str", "nested.nested.int", "nested.nested.float", "strs", "ints", "floats"];
/// Number of times a database is opened; the median counts.
const OPENINGS: usize = 11;

/// Options of `documents`.
#[derive(clap::Args, Clone, Debug)]
pub struct DocumentOptions {
    /// Number of documents, and of operations, in each phase.
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// Number of threads. Their concurrent writes share a sync.
    #[arg(long, default_value_t = 32)]
    threads: usize,
    /// Number of runs. Medians are reported.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-documents.json")]
    json: PathBuf,
    /// Measure with limited memory instead: documents with a text of `--body-bytes`, in one process without a limit and
    /// in one with this limit in MiB, page cache included. All answers are checked. systemd creates the control group,
    /// unless `--cgroup` is given.
    #[arg(long, value_name = "MIB")]
    memory_mib: Option<u64>,
    /// The directory of a memory controller (cgroup version 1 or 2) in which to create the control group.
    #[arg(long, value_name = "DIR", requires = "memory_mib")]
    cgroup: Option<PathBuf>,
    /// Size in bytes of the unindexed text of each document, for --memory-mib.
    #[arg(long, default_value_t = 4_000)]
    body_bytes: u64,
    /// Measure over HTTP instead: the same requests to the tiedot at this address and to a server of ours for its
    /// clients. All answers are compared first. tiedot gets the collection `remora_bench`, which is dropped again.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "memory_mib")]
    tiedot: Option<String>,
    /// Internal: the working directory of a process with limited memory.
    #[arg(long, hide = true)]
    work: Option<PathBuf>,
    /// Internal: the control group that it joins.
    #[arg(long, hide = true)]
    join: Option<PathBuf>,
}

/// One phase of one run.
#[derive(Clone, Debug, Serialize)]
struct Phase {
    durability: &'static str,
    name: &'static str,
    operations: u64,
    per_second: f64,
    cpu_us: f64,
    /// The part of it that generates documents and queries.
    generator_us: f64,
}

/// Sizes and times that belong to no phase.
#[derive(Debug, Serialize)]
struct DatabaseFigures {
    documents: u64,
    disk_bytes: u64,
    empty_bytes: u64,
    first_opening_ms: f64,
    opening_ms: f64,
    key_read_us: f64,
    sql_point_select_us: f64,
}

/// Runs the suite.
pub fn documents(options: &DocumentOptions) -> Result<()> {
    if let Some(path) = &options.work {
        return limited::work(options, path);
    }
    if let Some(memory_mib) = options.memory_mib {
        return limited::limited(options, memory_mib);
    }
    if let Some(address) = &options.tiedot {
        return tiedot::compare(options, address);
    }
    let directory = WorkDirectory::new()?;
    let transfers = import::measure_transfers(directory.path(), 4 * options.count)?;
    let database_figures = measure_database(directory.path(), options)?;
    let mut phases = Vec::new();
    for (name, durability) in [("always", Durability::Always), ("none", Durability::None)] {
        for round in 0..options.rounds.max(1) {
            eprintln!("sync {name}, round {}", round + 1);
            let path = directory.path().join(format!("{name}-{round}"));
            phases.extend(run(&path, (name, durability), options)?);
        }
    }
    print(&phases, &database_figures);
    let mut table = Table::new(&["command", "documents", "MB/s", "CPU us a document"]);
    for one in &transfers {
        let (documents, rate) = (one.documents.to_string(), format!("{:.1}", one.mb_per_second));
        table.row(vec![one.name.to_owned(), documents, rate, format!("{:.2}", one.cpu_us)]);
    }
    println!("{table}");
    let file = std::fs::File::create(&options.json)
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    serde_json::to_writer_pretty(file, &(&database_figures, &phases, &transfers))?;
    Ok(())
}

fn print(phases: &[Phase], database_figures: &DatabaseFigures) {
    let heads = ["sync", "phase", "per second", "CPU us", "least", "most", "of it generator"];
    let mut table = Table::new(&heads);
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for phase in phases {
        let key = (phase.durability, phase.name);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let same = phases.iter().filter(|other| (other.durability, other.name) == key);
        let of = |value: fn(&Phase) -> f64| {
            let mut values: Vec<f64> = same.clone().map(value).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let (rates, cpu) = (of(|it| it.per_second), of(|it| it.cpu_us));
        let middle = |values: &[f64]| values.get(values.len() / 2).copied().unwrap_or_default();
        let generator = middle(&of(|it| it.generator_us));
        table.row(vec![
            phase.durability.to_owned(),
            phase.name.to_owned(),
            format!("{:.0}", middle(&rates)),
            format!("{:.2}", middle(&cpu)),
            format!("{:.2}", cpu.first().copied().unwrap_or_default()),
            format!("{:.2}", cpu.last().copied().unwrap_or_default()),
            format!("{generator:.2}"),
        ]);
    }
    println!("{table}");
    println!(
        "{} documents with six indexes: {:.1} MiB on the disk; an empty database: {:.0} KiB, opened anew in \
         {:.1} ms, again in {:.1} ms; a document by its id {:.2} us, SQL's point select {:.2} us",
        database_figures.documents,
        database_figures.disk_bytes as f64 / 1_048_576.0,
        database_figures.empty_bytes as f64 / 1_024.0,
        database_figures.first_opening_ms,
        database_figures.opening_ms,
        database_figures.key_read_us,
        database_figures.sql_point_select_us,
    );
}

/// Runs all phases on a new database.
fn run(
    path: &Path,
    (durability, setting): (&'static str, Durability),
    options: &DocumentOptions,
) -> Result<Vec<Phase>> {
    let database =
        Database::open_with(path, Options { durability: setting, ..Options::default() })?;
    let all = database.collection("bench")?;
    for path in PATHS {
        all.index(path)?;
    }
    let on = Operations::new(&all, options.count);
    let mut phases = Vec::new();
    let mut phase = |name, operation: &Operation<'_>, generator: &Generator<'_>| {
        phases.push(measured((durability, name), options, operation, generator)?);
        anyhow::Ok(())
    };
    let makes_document = |random: &mut SplitMix64| _ = std::hint::black_box(on.sample(random));
    let makes_id = |random: &mut SplitMix64| _ = std::hint::black_box(on.id(random));
    let makes_query = |random: &mut SplitMix64| _ = std::hint::black_box(on.query(random));
    let makes_mixed = |random: &mut SplitMix64| on.generate_mixed(random);
    phase("insert", &|random| on.insert(random), &makes_document)?;
    phase("read", &|random| on.read(random), &makes_id)?;
    phase("read as text", &|random| on.read_text(random), &makes_id)?;
    phase("lookup", &|random| on.look_up(random), &makes_query)?;
    phase("update", &|random| on.update(random), &makes_document)?;
    phase("delete", &|random| on.delete(random), &makes_id)?;
    let before = on.inserted();
    phase("mixed", &|random| on.mixed(random), &makes_mixed)?;
    ensure!(on.inserted() > before, "the mix inserts");
    // tiedot's `bench2` defines collections meanwhile.
    let is_done = AtomicBool::new(false);
    let rounds = thread::scope(|scope| -> Result<u64> {
        let defining = scope.spawn(|| define(&database, &is_done));
        let mixed = phase("mixed, definitions", &|random| on.mixed(random), &makes_mixed);
        is_done.store(true, Ordering::Relaxed);
        let rounds = defining.join().map_err(|_| anyhow!("the defining thread panicked"))??;
        mixed.map(|()| rounds)
    })?;
    ensure!(rounds > 0, "nothing was defined beside the mix");
    database.close()?;
    Ok(phases)
}

type Operation<'o> = dyn Fn(&mut SplitMix64) -> Result<()> + Sync + 'o;
type Generator<'o> = dyn Fn(&mut SplitMix64) + Sync + 'o;

/// Runs an operation on several threads; the CPU time is the process's.
fn measured(
    (durability, name): (&'static str, &'static str),
    options: &DocumentOptions,
    operation: &Operation<'_>,
    generator: &Generator<'_>,
) -> Result<Phase> {
    let each = options.count / options.threads.max(1) as u64;
    let operations = each * options.threads.max(1) as u64;
    let generator_us = {
        let mut random = SplitMix64::new(1);
        let begin = Instant::now();
        (0..10_000).for_each(|_| generator(&mut random));
        begin.elapsed().as_secs_f64() * 1e6 / 10_000.0
    };
    let (before, begin) = (spent()?, Instant::now());
    thread::scope(|scope| -> Result<()> {
        let work = |thread: u64| {
            scope.spawn(move || -> Result<()> {
                let mut random = SplitMix64::new(thread * 7_919 + 1);
                (0..each).try_for_each(|_| operation(&mut random))
            })
        };
        let threads: Vec<_> = (0..options.threads.max(1) as u64).map(work).collect();
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        Ok(())
    })?;
    let wall = begin.elapsed();
    let cpu = spent()?.saturating_sub(before);
    Ok(Phase {
        durability,
        name,
        operations,
        per_second: operations as f64 / wall.as_secs_f64(),
        cpu_us: cpu.as_secs_f64() * 1e6 / operations as f64,
        generator_us,
    })
}

fn spent() -> Result<Duration> {
    MeasuredProcess::Own.whole().ok_or_else(|| anyhow!("the system tells no processor time"))
}

fn measure_database(directory: &Path, options: &DocumentOptions) -> Result<DatabaseFigures> {
    let empty = directory.join("empty");
    let begin = Instant::now();
    Database::open(&empty)?.close()?;
    let first_opening_ms = begin.elapsed().as_secs_f64() * 1e3;
    let empty_bytes = bytes_of(&empty)?;
    let mut openings = Vec::new();
    for _ in 0..OPENINGS {
        let begin = Instant::now();
        let database = Database::open(&empty)?;
        openings.push(begin.elapsed().as_secs_f64() * 1e3);
        database.close()?;
    }
    openings.sort_by(f64::total_cmp);

    let (full, documents) = (directory.join("full"), 4 * options.count);
    let database =
        Database::open_with(&full, Options { durability: Durability::None, ..Options::default() })?;
    let all = database.collection("bench")?;
    for path in PATHS {
        all.index(path)?;
    }
    let mut random = SplitMix64::new(5);
    let mut id = 0;
    while id < documents as i64 {
        let many = (0..1_000).map(|_| Sample::new(&mut random, documents));
        all.insert_many(many)?;
        id += 1_000;
    }
    let ids: Vec<i64> = all.page(None, 10_000)?.iter().map(|document| document.id).collect();
    let key_read_us = each_us(&ids, |id| Ok(_ = all.get_json(id)?))?;
    database.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(100))", [])?;
    let rows: Vec<String> = ids.iter().map(|id| format!("({id}, 'name {id}')")).collect();
    database.execute(&format!("INSERT INTO t VALUES {}", rows.join(",")), [])?;
    let select = database.prepare("SELECT name FROM t WHERE id = ?")?;
    let sql_point_select_us = each_us(&ids, |id| Ok(_ = select.query([remora::Value::Int(id)])?))?;
    database.close()?;
    Ok(DatabaseFigures {
        documents,
        disk_bytes: bytes_of(&full)?,
        empty_bytes,
        first_opening_ms,
        opening_ms: openings.get(OPENINGS / 2).copied().unwrap_or_default(),
        key_read_us,
        sql_point_select_us,
    })
}

/// The median time per operation by key, over chunks of 100 operations, in microseconds.
fn each_us(ids: &[i64], mut operation: impl FnMut(i64) -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for ids in ids.chunks(100) {
        let begin = Instant::now();
        ids.iter().try_for_each(|&id| operation(id))?;
        times.push(begin.elapsed().as_secs_f64() * 1e6 / ids.len() as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

fn bytes_of(path: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() {
            bytes_of(&entry.path())?
        } else {
            // Allocated bytes, since files are sparse.
            std::os::unix::fs::MetadataExt::blocks(&metadata) * 512
        };
    }
    Ok(bytes)
}
