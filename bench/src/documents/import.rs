//! `remora import` and `remora export` of JSON Lines: the benchmark's documents are imported from a
//! file into a collection, and exported again.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::{PATHS, sample::Sample};
use crate::{measure, random::SplitMix64, remora};

/// The figures of one run of a command.
#[derive(Debug, Serialize)]
pub(super) struct Transfer {
    pub name: &'static str,
    pub documents: u64,
    pub file_bytes: u64,
    pub mb_per_second: f64,
    pub cpu_us: f64,
}

/// Imports this many documents into a collection without an index and into one with six indexes,
/// and exports them.
pub(super) fn measure_transfers(directory: &Path, documents: u64) -> Result<Vec<Transfer>> {
    let file = directory.join("documents.jsonl");
    let mut random = SplitMix64::new(9);
    let mut out = BufWriter::new(File::create(&file)?);
    for _ in 0..documents {
        serde_json::to_writer(&mut out, &Sample::new(&mut random, documents))?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    let indexed = directory.join("imported-indexed");
    let database = ::remora::Database::open(&indexed)?;
    let all = database.collection("bench")?;
    PATHS.iter().try_for_each(|path| all.index(*path).map(|_| ()))?;
    database.close()?;
    let plain = directory.join("imported");
    let binary = remora::binary()?;
    let run = |name, data: &Path, arguments: &[&str]| -> Result<Transfer> {
        let mut command = Command::new(&binary);
        command.args(arguments).args(["--collection", "bench", "--data"]).arg(data);
        match arguments {
            ["export"] => command.arg("-o").arg(directory.join("exported.jsonl")),
            _ => command.arg(&file),
        };
        let (before, begin) = (measure::children_cpu_time(), Instant::now());
        let output = command.output()?;
        let wall = begin.elapsed();
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let cpu = measure::children_cpu_time().zip(before);
        let cpu = cpu.map(|(after, before)| after.saturating_sub(before));
        let cpu = cpu.context("the system tells no processor time")?;
        let file_bytes = file.metadata()?.len();
        Ok(Transfer {
            name,
            documents,
            file_bytes,
            mb_per_second: file_bytes as f64 / 1e6 / wall.as_secs_f64(),
            cpu_us: cpu.as_secs_f64() * 1e6 / documents as f64,
        })
    };
    let transfers = vec![
        run("import", &plain, &["import"])?,
        run("import, six indexes", &indexed, &["import"])?,
        run("export", &plain, &["export"])?,
    ];
    let exported = directory.join("exported.jsonl").metadata()?.len();
    ensure!(exported == file.metadata()?.len(), "{exported} bytes were exported");
    Ok(transfers)
}
