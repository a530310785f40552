//! The time from a commit at the source until a search finds its row.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use mysql::{Conn, prelude::Queryable};

use super::{
    remora::count,
    report::{Figure, Spread, Target},
};
use crate::{measure::percentile, peers::LineClient};

/// The table that is probed; it must exist before following begins.
pub const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS probe (id INT AUTO_INCREMENT PRIMARY KEY, token VARCHAR(40))";
const TABLE: &str = "tpcc.probe";
/// The longest wait for one row.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// How a latency is measured.
#[derive(Clone, Copy)]
pub struct Probe {
    /// How long latencies are measured.
    pub time: Duration,
    /// The pause between two commits.
    pub pause: Duration,
    /// The pause between two searches. A measured latency may be too long by this much.
    pub look: Duration,
}

/// Commits rows and waits for each; returns the latencies in ascending order, in milliseconds.
pub fn measure(source: &mut Conn, client: &mut LineClient, probe: Probe) -> Result<Vec<f64>> {
    let mut waits = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < probe.time {
        let token = format!("token{:x}", begun.elapsed().as_nanos());
        source.exec_drop("INSERT INTO probe (token) VALUES (?)", (&token,))?;
        let committed = Instant::now();
        while count(client, TABLE, &token)? == 0 {
            if committed.elapsed() > MAX_WAIT {
                bail!("a row was not found {} s after its commit", MAX_WAIT.as_secs());
            }
            sleep(probe.look);
        }
        waits.push(committed.elapsed().as_secs_f64() * 1e3);
        sleep(probe.pause);
    }
    waits.sort_by(f64::total_cmp);
    Ok(waits)
}

/// A percentile of the latencies; the others are in the note.
pub fn figure(name: &str, waits: &[f64], percent: usize, target: Target) -> Figure {
    let at = |percent| percentile(waits, percent);
    let value = Spread { runs: waits.len(), median: at(percent), min: at(0), max: at(100) };
    let note = format!("p50 {:.2}, p90 {:.2}, p99 {:.2}", at(50), at(90), at(99));
    Figure { note, ..Figure::new(name, "ms", value, target) }
}
