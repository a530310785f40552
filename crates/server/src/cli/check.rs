//! `remora check`: does a data directory hold what was written?

use std::{io::IsTerminal, process::ExitCode};

use remora_engine::{CheckStep, Database};

use super::{CheckOptions, output::counted};
use crate::{Result, command::refuse_half_loaded};

/// Checks the directory; the exit code is 2 if something is wrong.
pub fn check(options: &CheckOptions) -> Result<ExitCode> {
    super::require_data_directory(&options.dir)?;
    refuse_half_loaded(&options.dir)?;
    let shown = std::io::stderr().is_terminal();
    let report = Database::check(&options.dir, &mut |step| {
        if shown {
            let CheckStep { table, segment, segments } = step;
            eprint!("\rtable '{table}': segment {} of {segments} ", segment + 1);
        }
    })?;
    if shown {
        eprintln!();
    }
    for table in &report.tables {
        let (rows, segments) = (table.rows, table.segments as u64);
        let (rows, segments) = (counted(rows, "row"), counted(segments, "segment"));
        println!("table '{}': {rows} in {segments}", table.name);
    }
    for problem in &report.problems {
        println!("wrong: {problem}");
    }
    if report.problems.is_empty() {
        println!("Everything is as it was written.");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(2))
}
