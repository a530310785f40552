//! Time: repeated runs, their median and spread, and CPU time next to every wall time.
//!
//! CPU time is read from Linux's `/proc`: `schedstat` counts nanoseconds per thread, `stat` clock ticks per process
//! (including threads that have ended).

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde::Serialize;

/// Runs before the first measured one.
const WARM_UP_RUNS: usize = 2;
/// The resolution of a process's CPU time: Linux counts in hundredths of a second on every common
/// architecture.
const TICK: Duration = Duration::from_millis(10);

/// How often an operation is run.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// The most measured runs.
    pub runs: usize,
    /// After this time no further run starts, once three runs are done.
    pub budget: Duration,
}

/// Repeated times of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Timing {
    /// Measured runs.
    pub runs: usize,
    /// Median wall time, in microseconds.
    pub p50_us: f64,
    /// 99th percentile of the wall time, in microseconds.
    pub p99_us: f64,
    /// The shortest wall time, in microseconds.
    pub min_us: f64,
    /// Mean CPU time of a run, in microseconds: of the server's process or, for an engine in this process, of this one.
    /// `None` if the system does not report it.
    pub cpu_us: Option<f64>,
}

/// Wall and CPU time of an operation that runs once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Once {
    /// Wall time, in seconds.
    pub wall_s: f64,
    /// CPU time, in seconds.
    pub cpu_s: Option<f64>,
}

/// The process whose CPU time is counted.
#[derive(Clone, Copy, Debug)]
pub enum MeasuredProcess {
    /// This process.
    Own,
    /// Another process, by its id.
    Of(u32),
    /// Unknown, because the server runs on another machine.
    Unknown,
}

impl MeasuredProcess {
    /// CPU time of the threads that still run, in nanoseconds.
    pub fn precise(self) -> Option<Duration> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process()?)).ok()?;
        let nanoseconds = tasks.flatten().filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_ascii_whitespace().next()?.parse::<u64>().ok()
        });
        Some(Duration::from_nanos(nanoseconds.sum()))
    }

    /// CPU time of all threads, including ended ones, in clock ticks.
    pub fn whole(self) -> Option<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.process()?)).ok()?;
        // The second field is a name in parentheses that may contain spaces.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = fields.get(11)?.parse::<u32>().ok()? + fields.get(12)?.parse::<u32>().ok()?;
        Some(TICK * ticks)
    }

    /// The CPU time spent so far, by both counts.
    pub fn spent(self) -> Option<Spent> {
        Some(Spent { precise: self.precise()?, whole: self.whole()? })
    }

    fn process(self) -> Option<u32> {
        match self {
            Self::Own => Some(std::process::id()),
            Self::Of(process) => Some(process),
            Self::Unknown => None,
        }
    }
}

/// The CPU time of all processes that this one started and that have ended.
pub fn children_cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = fields.get(13)?.parse::<u32>().ok()? + fields.get(14)?.parse::<u32>().ok()?;
    Some(TICK * ticks)
}

/// The CPU time that a process had spent at some moment, by both of the system's counts.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    precise: Duration,
    whole: Duration,
}

impl Spent {
    /// CPU time between this moment and a later one: in nanoseconds, unless threads ended meanwhile and took their
    /// precise times with them.
    pub fn until(self, later: Self) -> Duration {
        let precise = later.precise.saturating_sub(self.precise);
        let whole = later.whole.saturating_sub(self.whole);
        if whole > precise + 2 * TICK { whole } else { precise }
    }
}

/// Runs `operation` until the limits are reached.
pub fn repeat(
    effort: RunLimits,
    processor: MeasuredProcess,
    mut operation: impl FnMut() -> Result<()>,
) -> Result<Timing> {
    let start = Instant::now();
    for _ in 0..WARM_UP_RUNS {
        operation()?;
        if start.elapsed() > effort.budget {
            break;
        }
    }
    let before = processor.precise();
    let mut walls = Vec::with_capacity(effort.runs);
    let start = Instant::now();
    while walls.len() < effort.runs && (walls.len() < 3 || start.elapsed() < effort.budget) {
        let start = Instant::now();
        operation()?;
        walls.push(start.elapsed());
    }
    let cpu = before.zip(processor.precise()).map(|(before, after)| after.saturating_sub(before));
    let mut timing = timing(&mut walls);
    timing.cpu_us = cpu.map(|cpu| microseconds(cpu) / timing.runs.max(1) as f64);
    Ok(timing)
}

/// Runs `operation` once.
pub fn once<T>(
    processor: MeasuredProcess,
    operation: impl FnOnce() -> Result<T>,
) -> Result<(T, Once)> {
    let before = processor.whole();
    let start = Instant::now();
    let result = operation()?;
    let wall_s = start.elapsed().as_secs_f64();
    let cpu = before.zip(processor.whole()).map(|(before, after)| after.saturating_sub(before));
    Ok((result, Once { wall_s, cpu_s: cpu.map(|cpu| cpu.as_secs_f64()) }))
}

/// Median, 99th percentile and minimum of wall times.
pub fn timing(walls: &mut [Duration]) -> Timing {
    walls.sort_unstable();
    Timing {
        runs: walls.len(),
        p50_us: microseconds(percentile(walls, 50)),
        p99_us: microseconds(percentile(walls, 99)),
        min_us: microseconds(percentile(walls, 0)),
        cpu_us: None,
    }
}

/// The smallest of the ascending values such that at least `percent` per cent of them do not exceed it; the default for
/// no values.
pub fn percentile<T: Copy + Default>(ascending: &[T], percent: usize) -> T {
    let rank = (ascending.len() * percent).div_ceil(100).max(1);
    ascending.get(rank - 1).copied().unwrap_or_default()
}

/// Resident memory of a process, in bytes.
pub fn resident_bytes(process: u32) -> Result<u64> {
    status(process, "VmRSS:")
}

/// Resident memory of a process that belongs to no file (heap and stacks), in bytes.
pub fn anonymous_bytes(process: u32) -> Result<u64> {
    status(process, "RssAnon:")
}

fn status(process: u32, name: &str) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kibibytes: u64 =
        kibibytes.with_context(|| format!("no {name} in {path}"))?.trim().parse()?;
    Ok(kibibytes * 1024)
}

/// Bytes of the files under a directory.
pub fn directory_bytes(directory: &std::path::Path) -> Result<u64> {
    let mut bytes = 0;
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            } else {
                bytes += entry.metadata()?.len();
            }
        }
    }
    Ok(bytes)
}

/// The number of threads that this machine runs at once.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A duration in microseconds.
pub fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<u32> = (1..=200).collect();
        assert_eq!([0, 1, 50, 99, 100].map(|p| percentile(&values, p)), [1, 2, 100, 198, 200]);
        assert_eq!(percentile(&[7_u32], 99), 7);
        assert_eq!(percentile::<u32>(&[], 50), 0);
    }

    #[test]
    fn a_timing_holds_the_median_and_the_spread() {
        let mut walls = [30, 10, 20].map(Duration::from_micros);
        let timing = timing(&mut walls);
        assert_eq!((timing.runs, timing.p50_us, timing.p99_us), (3, 20.0, 30.0));
        assert_eq!(timing.min_us, 10.0);
    }

    #[test]
    fn runs_as_often_as_told_after_warming_up() {
        let mut runs = 0;
        let effort = RunLimits { runs: 5, budget: Duration::from_secs(60) };
        let timing = repeat(effort, MeasuredProcess::Own, || {
            runs += 1;
            Ok(())
        });
        assert_eq!(timing.unwrap().runs, 5);
        assert_eq!(runs, 5 + WARM_UP_RUNS);
    }

    #[test]
    fn what_ended_threads_spent_is_counted() {
        let spent = |precise, whole| Spent {
            precise: Duration::from_millis(precise),
            whole: Duration::from_millis(whole),
        };
        let between = |before: Spent, after| before.until(after).as_millis();
        assert_eq!(between(spent(100, 100), spent(105, 110)), 5);
        assert_eq!(between(spent(100, 100), spent(40, 180)), 80);
    }

    #[test]
    fn reads_its_own_figures() {
        let resident = resident_bytes(std::process::id()).unwrap();
        let anonymous = anonymous_bytes(std::process::id()).unwrap();
        assert!(resident > 100_000 && (1..=2 * resident).contains(&anonymous));
        assert!(MeasuredProcess::Own.precise().unwrap() > Duration::ZERO);
        assert!(MeasuredProcess::Own.whole().is_some());
        assert!(MeasuredProcess::Unknown.whole().is_none());
    }
}
