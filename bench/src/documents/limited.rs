//! Runs the same work twice, each time in a new process: with all memory, and in a control group
//! whose memory is a third of the data or less. At the end, every document and some lookups are
//! compared with what the generator made. Writes are not synced, and their time includes generating
//! the documents, which is the same in both runs.
//!
//! A control group also counts the page cache. A limit of the address space does not: under it,
//! files are read from memory that nothing counts. With cgroup v2, systemd creates the group
//! (`systemd-run --scope`). Elsewhere, and with version 1, `--cgroup` names a directory in which a
//! group is created and removed again.
//!
//! The allocator (mimalloc) keeps what each thread freed last. A program with many threads and
//! little memory tells it to return freed pages at once, and so do both runs.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context, Result, bail, ensure};
use remora::{Collection, Database, Durability, Options};
use serde::{Deserialize, Serialize};

use super::{DocumentOptions, PATHS, bytes_of, measured, operations::Operations, sample::Sample};
use crate::{random::SplitMix64, suite::WorkDirectory, table::Table};

/// The data has at least this many times the size of the memory.
const LEAST_TIMES: u64 = 3;
/// The number of documents in one write.
const BATCH: u64 = 100;
/// The number of lookups whose answers are compared with a scan of all documents.
const CHECKED_LOOKUPS: usize = 200;
/// One in this many documents is replaced.
const REPLACED_SHARE: u64 = 10;

/// A document with a text that is not indexed.
#[derive(Serialize)]
struct DocumentWithBody {
    #[serde(flatten)]
    sample: Sample,
    body: String,
}

/// What a run reports, one line each.
#[derive(Debug, Deserialize, Serialize)]
enum RunReport {
    Phase { name: String, per_second: f64, cpu_us: f64 },
    Data { disk_bytes: u64 },
    Memory { limit_bytes: Option<u64>, peak_bytes: Option<u64> },
    Checked { documents: u64, lookups: usize },
}

/// A control group that is removed at the end.
struct ControlGroup(PathBuf);

/// Runs both and prints their figures side by side.
pub(super) fn limited(options: &DocumentOptions, memory_mib: u64) -> Result<()> {
    let directory = WorkDirectory::new()?;
    let program = std::env::current_exe()?;
    let free = run(Command::new(&program), &directory.path().join("free"), options)?;
    eprintln!("the same within {memory_mib} MiB");
    let path = directory.path().join("limited");
    let reports = match &options.cgroup {
        Some(parent) => {
            let group = ControlGroup::new(parent, memory_mib << 20)?;
            let joining = DocumentOptions { join: Some(group.0.clone()), ..options.clone() };
            run(Command::new(&program), &path, &joining).with_context(|| match group.kills() {
                Some(kills) if kills > 0 => {
                    "the system ended the process: its memory was not enough"
                }
                _ => "the limited run failed",
            })?
        }
        None => {
            let mut command = Command::new("systemd-run");
            command.args(["--quiet", "--scope"]);
            if !is_root()? {
                command.arg("--user");
            }
            command.args(["-p", &format!("MemoryMax={memory_mib}M"), "-p", "MemorySwapMax=0"]);
            command.arg(&program);
            run(command, &path, options).context(
                "the limited run failed: its memory was not enough, or systemd makes no groups here (then name a \
                 directory of the memory controller with --cgroup)",
            )?
        }
    };
    let is_limited = reports.iter().any(|one| {
        matches!(one, RunReport::Memory { limit_bytes: Some(bytes), .. } if *bytes <= memory_mib << 20)
    });
    ensure!(
        is_limited,
        "the process was not limited: name a directory of the memory controller with --cgroup"
    );
    print(&free, &reports, memory_mib)
}

/// Runs a command that works at `path`, and returns its reports.
fn run(mut command: Command, path: &Path, options: &DocumentOptions) -> Result<Vec<RunReport>> {
    command.env("MIMALLOC_PURGE_DELAY", "0");
    command.arg("documents").arg("--work").arg(path);
    command.args(["--count", &options.count.to_string()]);
    command.args(["--threads", &options.threads.to_string()]);
    command.args(["--body-bytes", &options.body_bytes.to_string()]);
    if let Some(group) = &options.join {
        command.arg("--join").arg(group);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut reports = Vec::new();
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        let line = line?;
        eprintln!("{line}");
        reports.push(serde_json::from_str(&line).with_context(|| format!("it told {line:?}"))?);
    }
    let status = child.wait()?;
    ensure!(status.success(), "the run ended with {status}");
    Ok(reports)
}

fn print(free: &[RunReport], limited: &[RunReport], memory_mib: u64) -> Result<()> {
    let heads = ["phase", "per second", "limited", "slowdown", "CPU us", "CPU us, limited"];
    let mut table = Table::new(&heads);
    for (one, other) in free.iter().zip(limited) {
        if let (
            RunReport::Phase { name, per_second, cpu_us },
            RunReport::Phase { per_second: slow, cpu_us: slow_cpu_us, .. },
        ) = (one, other)
        {
            table.row(vec![
                name.clone(),
                format!("{per_second:.0}"),
                format!("{slow:.0}"),
                format!("{:.1}", per_second / slow),
                format!("{cpu_us:.2}"),
                format!("{slow_cpu_us:.2}"),
            ]);
        }
    }
    println!("{table}");
    let disk = |reports: &[RunReport]| {
        reports.iter().find_map(|one| match one {
            RunReport::Data { disk_bytes } => Some(*disk_bytes),
            _ => None,
        })
    };
    let peak = |reports: &[RunReport]| {
        let peak = reports.iter().find_map(|one| match one {
            RunReport::Memory { peak_bytes, .. } => *peak_bytes,
            _ => None,
        });
        peak.map_or_else(|| "unknown".to_owned(), |bytes| format!("{:.0} MiB", mib(bytes)))
    };
    let bytes = disk(limited).context("the limited run told no size")?;
    println!(
        "{:.0} MiB on the disk, {:.1} times the {memory_mib} MiB of memory; most memory of the limited run {} with its page \
         cache; every document and {CHECKED_LOOKUPS} lookups of both runs were as they should be",
        mib(bytes),
        mib(bytes) / memory_mib as f64,
        peak(limited),
    );
    ensure!(
        bytes >= LEAST_TIMES * (memory_mib << 20),
        "the data is less than {LEAST_TIMES} times the memory: raise --count or --body-bytes"
    );
    Ok(())
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn is_root() -> Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::metadata("/proc/self")?.uid() == 0)
}

impl ControlGroup {
    fn new(parent: &Path, bytes: u64) -> Result<Self> {
        let path = parent.join(format!("remora-bench-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let group = Self(path);
        let limit = ["memory.max", "memory.limit_in_bytes"].map(|name| group.0.join(name));
        let Some(limit) = limit.iter().find(|path| path.exists()) else {
            bail!("{} has no limit of memory: it is no group of that controller", parent.display());
        };
        fs::write(limit, bytes.to_string())
            .with_context(|| format!("cannot write {}", limit.display()))?;
        // The group gets no swap. Not every kernel accounts for it.
        for (name, most) in [("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", bytes)] {
            let path = group.0.join(name);
            if path.exists() {
                fs::write(path, most.to_string())?;
            }
        }
        Ok(group)
    }

    /// How often the system killed a process because memory ran out.
    fn kills(&self) -> Option<u64> {
        let mut text = ["memory.events", "memory.oom_control"].iter();
        let text = text.find_map(|name| fs::read_to_string(self.0.join(name)).ok())?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            eprintln!("{} is left behind: {error}", self.0.display());
        }
    }
}

/// The work itself, in the process with or without the limit.
pub(super) fn work(options: &DocumentOptions, path: &Path) -> Result<()> {
    if let Some(group) = &options.join {
        fs::write(group.join("cgroup.procs"), std::process::id().to_string())?;
    }
    let settings = Options { durability: Durability::None, ..Options::default() };
    let database = Database::open_with(path, settings)?;
    let all = database.collection("bench")?;
    for path in PATHS {
        all.index(path)?;
    }
    let work = Work { options, all: &all };
    work.insert()?;
    work.read()?;
    work.measure_lookups()?;
    work.replace()?;
    work.check()?;
    work.check_lookups()?;
    database.close()?;
    report(&RunReport::Data { disk_bytes: bytes_of(path)? })?;
    let group = options.join.as_deref();
    let limit_bytes = number_of(group, ["memory.max", "memory.limit_in_bytes"]);
    let peak_bytes = number_of(group, ["memory.peak", "memory.max_usage_in_bytes"]);
    report(&RunReport::Memory { limit_bytes, peak_bytes })
}

fn report(line: &RunReport) -> Result<()> {
    println!("{}", serde_json::to_string(line)?);
    Ok(())
}

/// A number that this process's control group reports, by its names in both versions.
fn number_of(group: Option<&Path>, names: [&str; 2]) -> Option<u64> {
    let own = || {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        Some(Path::new("/sys/fs/cgroup").join(path))
    };
    let group = group.map(Path::to_path_buf).or_else(own)?;
    let text = names.iter().find_map(|name| fs::read_to_string(group.join(name)).ok())?;
    text.trim().parse().ok()
}

fn is_replaced(id: u64) -> bool {
    (id - 1).is_multiple_of(REPLACED_SHARE)
}

struct Work<'w> {
    options: &'w DocumentOptions,
    all: &'w Collection,
}

impl Work<'_> {
    /// The document of an id, before or after it was replaced.
    fn document(&self, id: u64, is_replaced: bool) -> DocumentWithBody {
        let mut random = SplitMix64::new(id * 2 + u64::from(is_replaced));
        let sample = Sample::new(&mut random, self.options.count);
        let letter = |bits: u64| char::from(b'0' + (bits % 64) as u8);
        let body = (0..self.options.body_bytes).map(|_| letter(random.next() >> 32)).collect();
        DocumentWithBody { sample, body }
    }

    /// Measures this many operations on this many documents each.
    fn phase(
        &self,
        name: &'static str,
        (operations, of_each): (u64, u64),
        operation: &(dyn Fn(&mut SplitMix64) -> Result<()> + Sync),
    ) -> Result<()> {
        let options = DocumentOptions { count: operations, ..self.options.clone() };
        let done = measured(("none", name), &options, operation, &|_| ())?;
        let name = name.to_owned();
        let (per_second, cpu_us) = (done.per_second * of_each as f64, done.cpu_us / of_each as f64);
        report(&RunReport::Phase { name, per_second, cpu_us })
    }

    fn insert(&self) -> Result<()> {
        let (next, count) = (AtomicU64::new(0), self.options.count);
        let batch = || {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            let ids = (from..(from + BATCH).min(count)).map(|id| id + 1);
            self.all.upsert_many(ids.map(|id| (id as i64, self.document(id, false))))
        };
        self.phase("insert", (count / BATCH, BATCH), &|_| Ok(batch()?))?;
        // The remaining operations, if the threads have no equal shares.
        while next.load(Ordering::Relaxed) < count {
            batch()?;
        }
        Ok(())
    }

    fn read(&self) -> Result<()> {
        self.phase("read as text", (self.options.count, 1), &|random| {
            let id = 1 + random.below(self.options.count as usize) as i64;
            ensure!(self.all.get_json(id)?.is_some(), "document {id} is missing");
            Ok(())
        })
    }

    fn measure_lookups(&self) -> Result<()> {
        let count = self.options.count;
        let on = Operations::new(self.all, count);
        self.phase("lookup", (count, 1), &|random| on.look_up(random))
    }

    /// Compares lookups with a scan of all documents, as they are after the replacements.
    fn check_lookups(&self) -> Result<()> {
        let count = self.options.count;
        let ints = |id: u64| self.document(id, is_replaced(id)).sample.ints;
        let ints: Vec<[i64; 2]> = (1..=count).map(ints).collect();
        let mut random = SplitMix64::new(11);
        for _ in 0..CHECKED_LOOKUPS {
            let from = random.below(count as usize) as i64;
            let found = self.all.find(remora::field("ints").between(from, from + 2)).ids()?;
            let is_it = |ints: &[i64; 2]| ints.iter().any(|it| (from..=from + 2).contains(it));
            let ids = (1..).zip(&ints).filter(|(_, ints)| is_it(ints)).map(|(id, _)| id);
            ensure!(found == ids.collect::<Vec<i64>>(), "the lookup of {from} is wrong");
        }
        Ok(())
    }

    fn replace(&self) -> Result<()> {
        let next = AtomicU64::new(0);
        let replaced = |id: u64| self.all.replace(id as i64, &self.document(id, true));
        let replace = || {
            let id = next.fetch_add(REPLACED_SHARE, Ordering::Relaxed) + 1;
            if id <= self.options.count { replaced(id) } else { Ok(()) }
        };
        self.phase("replace", (self.options.count / REPLACED_SHARE, 1), &|_| Ok(replace()?))?;
        while next.load(Ordering::Relaxed) < self.options.count {
            replace()?;
        }
        Ok(())
    }

    /// Compares every document.
    fn check(&self) -> Result<()> {
        let mut documents = 0;
        for id in 1..=self.options.count {
            // JSON values are compared, because stored members are in another order.
            let expected = serde_json::to_value(self.document(id, is_replaced(id)))?;
            let found = self.all.get(id as i64)?;
            ensure!(found == Some(expected), "document {id} is not as it was written");
            documents += 1;
        }
        ensure!(self.all.len()? == documents, "there are more documents than were written");
        report(&RunReport::Checked { documents, lookups: CHECKED_LOOKUPS })
    }
}
