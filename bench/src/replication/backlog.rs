//! Applying a backlog: what the source committed while Remora was not following.

use anyhow::Result;
use remora_peers::Server;

use super::{
    remora::{Remora, Threads, add, spent_between},
    report::{Figure, Spread, Target},
    source,
};
use crate::measure::{Once, once};

/// A backlog that was applied.
pub struct Applied {
    changes: u64,
    time: Once,
    /// CPU time of the background work left after that, in seconds.
    after_s: f64,
    before: Threads,
    after: Threads,
}

impl Applied {
    /// Row changes.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// CPU time with the background work left behind, in seconds.
    pub fn cpu_s(&self) -> f64 {
        self.time.cpu_s.unwrap_or(0.0) + self.after_s
    }

    /// Wall time, in seconds.
    pub fn wall_s(&self) -> f64 {
        self.time.wall_s
    }
}

/// Stops following, runs `write`, then measures until all of it is readable.
pub fn apply(
    remora: &mut Remora,
    server: &Server,
    write: impl FnOnce() -> Result<()>,
) -> Result<Applied> {
    remora.stop_following()?;
    write()?;
    let position = source::position(server)?;
    remora.settle()?;
    let (changes, before) = (remora.changes()?, remora.threads()?);
    let processor = remora.processor();
    let ((), time) = once(processor, || {
        remora.follow()?;
        remora.wait_for(&position)
    })?;
    let (changes, after) = (remora.changes()? - changes, remora.threads()?);
    let ((), rest) = once(processor, || remora.settle())?;
    Ok(Applied { changes, time, after_s: rest.cpu_s.unwrap_or(0.0), before, after })
}

/// Row changes per second of wall time, for each run.
pub fn per_second(name: &str, runs: &[Applied], target: Target) -> Figure {
    let rate = |run: &Applied| run.changes as f64 / run.time.wall_s;
    figure(name, "rows/s", runs, rate, target)
}

/// Row changes per second of CPU time, for each run.
pub fn per_core(name: &str, runs: &[Applied], target: Target) -> Figure {
    let rate = |run: &Applied| run.changes as f64 / run.time.cpu_s.unwrap_or(f64::INFINITY);
    figure(name, "rows/s per core", runs, rate, target)
}

fn figure(
    name: &str,
    unit: &'static str,
    runs: &[Applied],
    rate: impl Fn(&Applied) -> f64,
    target: Target,
) -> Figure {
    let changes: u64 = runs.iter().map(|run| run.changes).sum();
    let after: f64 = runs.iter().map(|run| run.after_s).sum();
    let mut threads = Vec::new();
    for run in runs {
        add(&mut threads, spent_between(&run.before, &run.after));
    }
    Figure {
        wall_s: runs.iter().map(|run| run.time.wall_s).sum(),
        cpu_s: runs.iter().map(|run| run.time.cpu_s).sum(),
        threads,
        note: format!("{changes} changes; {after:.2} cpu s of merges behind"),
        ..Figure::new(name, unit, Spread::of(runs.iter().map(rate).collect()), target)
    }
}
