//! `remora check`: verifies a data directory.

use std::{io::IsTerminal, process::ExitCode};

use remora_engine::{CheckReport, CheckStep, Database, Problem, Repaired};

use super::{CheckOptions, output::counted};
use crate::{Result, dump::refuse_half_loaded};

/// Checks the directory and, if asked, rebuilds what can be rebuilt. The exit code is 2 if damage remains or data is
/// lost.
///
/// # Errors
/// [`crate::Error::Usage`] if there is no data directory, [`crate::Error::Settings`] if a load of a dump was
/// interrupted, [`crate::Error::Engine`] as in [`Database::check`] and [`Database::repair`]. Damage itself is not an
/// error.
pub fn check(options: &CheckOptions) -> Result<ExitCode> {
    super::require_data_directory(&options.dir)?;
    refuse_half_loaded(&options.dir)?;
    remora_sql::register_collations();
    let shown = std::io::stderr().is_terminal();
    let mut progress = |step: CheckStep<'_>| {
        if shown {
            let CheckStep { table, segment, segments } = step;
            eprint!("\rtable '{table}': segment {} of {segments} ", segment + 1);
        }
    };
    if options.repair {
        let repaired = Database::repair(&options.dir, &mut progress)?;
        end_progress(shown);
        return Ok(print_repair(&repaired));
    }
    let report = Database::check(&options.dir, &mut progress)?;
    end_progress(shown);
    print_tables(&report);
    report.problems.iter().for_each(print_problem);
    report.trusted.iter().for_each(|what| println!("trusted: {what}"));
    if report.problems.is_empty() {
        println!("Everything is as it was written.");
        return Ok(ExitCode::SUCCESS);
    }
    let dir = options.dir.display();
    if report.problems.iter().any(|problem| problem.can_be_rebuilt) {
        println!("What is wrong is rebuilt from the rows by `remora check --repair {dir}`.");
    }
    print_recovery_advice(&report.problems);
    Ok(ExitCode::from(2))
}

fn end_progress(shown: bool) {
    if shown {
        eprintln!();
    }
}

fn print_tables(report: &CheckReport) {
    for table in &report.tables {
        let (rows, segments) = (table.rows, table.segments as u64);
        let (rows, segments) = (counted(rows, "row"), counted(segments, "segment"));
        println!("table '{}': {rows} in {segments}", table.name);
    }
}

fn print_problem(problem: &Problem) {
    let kind = if problem.can_be_rebuilt { "wrong" } else { "lost" };
    println!("{kind}: {problem}");
}

fn print_recovery_advice(problems: &[Problem]) {
    if problems.iter().any(|problem| !problem.can_be_rebuilt) {
        println!(
            "There is no second copy of what is lost: restore a backup, or copy or import those tables again."
        );
    }
}

/// Reports what a repair rebuilt, what it left, and what is lost.
fn print_repair(repaired: &Repaired) -> ExitCode {
    let Repaired { before, after } = repaired;
    print_tables(after);
    let is_left = |problem: &Problem| after.problems.contains(problem);
    let rebuilt = |problem: &&Problem| problem.can_be_rebuilt && !is_left(problem);
    before.problems.iter().filter(rebuilt).for_each(|problem| println!("rebuilt: {problem}"));
    let mut lost: Vec<Problem> =
        before.problems.iter().filter(|problem| !problem.can_be_rebuilt).cloned().collect();
    let news: Vec<_> = after.problems.iter().filter(|one| !lost.contains(one)).cloned().collect();
    lost.extend(news);
    lost.iter().for_each(print_problem);
    before.trusted.iter().for_each(|what| println!("trusted: {what}"));
    print_recovery_advice(&lost);
    if lost.is_empty() {
        println!("Everything is as its rows say.");
        return ExitCode::SUCCESS;
    }
    ExitCode::from(2)
}
