//! The replication suite: how fast a real server's changes are applied, how soon they are searchable,
//! and what following costs the source.
//!
//! Remora runs as `remora serve --mysql` with its default settings, in a process of its own. Where
//! applying is measured, the changes are in the binlog before Remora begins to read them.

pub mod backlog;
mod conditions;
mod cost;
mod large;
mod latency;
mod load;
pub mod remora;
pub mod report;
pub mod source;
mod tpcc_parts;
mod wiki;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use remora_peers::Kind;

use crate::{suite::machine, tpcc::kind};
use report::Report;

/// Options of `replication`.
#[derive(clap::Args, Debug)]
pub struct ReplicationOptions {
    /// The source server to start: MySQL or MariaDB and its version.
    #[arg(long, value_name = "NAME", default_value = "mariadb1011", value_parser = kind)]
    server: Kind,
    /// Time in seconds that TPC-C writes in each measurement.
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u64,
    /// Number of wiki rows to copy. The same number is then inserted, updated and deleted.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rows: usize,
    /// Items, and customers per district, in percent of TPC-C's own scale.
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    scale: u32,
    /// Number of child rows that one deleted parent row deletes by its foreign key.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    children: usize,
    /// Number of connections that write TPC-C's transactions.
    #[arg(long, value_name = "N", default_value_t = 2)]
    terminals: u32,
    /// Run only these parts, separated by commas. Default: all.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Directory with JSON Lines files, plain or compressed with zstd, for the wiki rows. Default: the environment
    /// variable REMORA_BENCH_DATA, or shared/data next to the work tree.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The remora program to measure. Default: the one next to this program, which is built first.
    #[arg(long, value_name = "FILE")]
    remora: Option<PathBuf>,
    /// Write all measurements to this JSON file.
    #[arg(long, value_name = "FILE", default_value = "target/bench-replication.json")]
    json: PathBuf,
}

/// What is measured.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The first copy of the wiki rows, then inserts, updates and deletes of them.
    Wiki,
    /// Rows without a key, and a foreign key's cascade.
    Large,
    /// A recorded TPC-C binlog.
    Apply,
    /// From a commit until it is found.
    Latency,
    /// What the source's TPC-C loses, beside an ordinary replica.
    Cost,
    /// TPC-C's conditions at positions that readers see.
    Conditions,
}

impl ReplicationOptions {
    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// The server program to measure.
    fn program(&self) -> Result<PathBuf> {
        self.remora.clone().map_or_else(crate::remora::binary, Ok)
    }
}

/// Runs the suite; fails on a wrong result, not on a slow one.
pub fn replication(options: &ReplicationOptions) -> Result<()> {
    options.server.fetch()?;
    let program = options.program()?;
    let mut report = Report::new(machine(), options.server.name());
    if options.wants(Part::Wiki) {
        wiki::measure(options, &program, &mut report)?;
    }
    if options.wants(Part::Large) {
        large::measure(options, &program, &mut report)?;
    }
    let parts = [Part::Apply, Part::Latency, Part::Cost, Part::Conditions];
    if parts.iter().any(|&part| options.wants(part)) {
        tpcc_parts::measure(options, &program, &mut report)?;
    }
    report.machine_at_end();
    println!("{report}");
    write(&options.json, &report)?;
    match report.wrong() {
        0 => Ok(()),
        wrong => bail!("{wrong} answers were wrong"),
    }
}

fn write(path: &Path, report: &Report) -> Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let file =
        fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    serde_json::to_writer_pretty(file, report)?;
    println!("everything: {}", path.display());
    Ok(())
}
