//! `remora import -c sphinx.conf`: loads indexes from their sources, each atomically.

use std::{path::Path, process::ExitCode};

use remora_engine::{Database, Schema};
use remora_source::{
    files::Progress,
    sphinx_conf::{IndexKind, Loaded, SphinxConf, end_commands},
};
use tokio::signal::unix::{SignalKind, signal};

use super::{open, progress::Display};
use crate::{
    Error, Result,
    cli::{
        ImportOptions,
        output::{counted, thousands},
    },
    open::make_distributed,
    settings::percolate_table,
};

/// The exit status of a process that was ended by a signal, as in shells.
const ENDED_BY_SIGNAL: i32 = 130;

/// Loads the named indexes, or all.
///
/// # Errors
/// [`Error::Source`] if the file cannot be read or names no data directory, [`Error::Usage`] if there is no such index,
/// or [`Error::Engine`] if the data directory cannot be opened. An error of one index is reported, and the others are
/// loaded.
pub(super) fn import(options: &ImportOptions, path: &Path) -> Result<ExitCode> {
    let conf = SphinxConf::read(path)?;
    for warning in conf.warnings() {
        eprintln!("{warning}");
    }
    let wanted = choose(options, path, &conf)?;
    let data = options.data.clone().map_or_else(|| conf.data(), Ok)?;
    let database = open(&data)?;
    end_commands_by_signals()?;
    let mut failed = false;
    for (name, kind) in wanted {
        if let Err(error) = make(&database, &conf, &name, &kind) {
            failed = true;
            eprintln!("remora: index '{name}' stays as it was: {error}");
        }
    }
    database.close()?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// On a signal, kills the sources' commands before exiting. A partly loaded index is not visible.
fn end_commands_by_signals() -> Result<()> {
    let failed = |source| Error::Io { what: "cannot take signals".to_owned(), source };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        let take = |kind| signal(kind).map_err(failed);
        (take(SignalKind::interrupt())?, take(SignalKind::terminate())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        end_commands();
        std::process::exit(ENDED_BY_SIGNAL);
    });
    Ok(())
}

/// The indexes to load, with their types.
fn choose(
    options: &ImportOptions,
    path: &Path,
    conf: &SphinxConf,
) -> Result<Vec<(String, IndexKind)>> {
    let mut chosen = Vec::new();
    for file in &options.files {
        let name = file.display().to_string();
        let found = conf.indexes().find(|(index, _)| *index == name);
        let Some((_, kind)) = found else {
            let names: Vec<&str> = conf.indexes().map(|(name, _)| name).collect();
            return Err(Error::Usage(format!(
                "{} has no index '{name}'; it has {}",
                path.display(),
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            )));
        };
        match kind {
            IndexKind::Plain
            | IndexKind::RealTime
            | IndexKind::Percolate
            | IndexKind::Distributed => {
                chosen.push((name, kind));
            }
            IndexKind::Template => {
                return Err(Error::Usage(format!(
                    "index '{name}' has no source: it holds settings for others"
                )));
            }
            IndexKind::Other(kind) => {
                return Err(Error::Usage(format!(
                    "index '{name}' is {kind}: only plain, rt, percolate and distributed are known"
                )));
            }
        }
    }
    if options.files.is_empty() {
        for (name, kind) in conf.indexes() {
            match kind {
                IndexKind::Plain
                | IndexKind::RealTime
                | IndexKind::Percolate
                | IndexKind::Distributed => {
                    chosen.push((name.to_owned(), kind));
                }
                IndexKind::Template => {}
                IndexKind::Other(kind) => {
                    eprintln!(
                        "index '{name}' is passed over: it is {kind}; plain, rt, percolate and distributed are known"
                    );
                }
            }
        }
    }
    // After their parts.
    chosen.sort_by_key(|(_, kind)| *kind == IndexKind::Distributed);
    match chosen.is_empty() {
        true => Err(Error::Usage(format!("{} has no index to load", path.display()))),
        false => Ok(chosen),
    }
}

fn make(database: &Database, conf: &SphinxConf, name: &str, kind: &IndexKind) -> Result<()> {
    if *kind == IndexKind::RealTime {
        return make_empty(database, conf.real_time_table(name)?);
    }
    if *kind == IndexKind::Percolate {
        return make_empty(database, percolate_table(conf, name)?);
    }
    if *kind == IndexKind::Distributed {
        return make_parts_one(database, conf, name);
    }
    let mut display = Display::new();
    let loaded = conf.load(database, name, &mut |loaded| display.show(&progress(name, loaded)));
    display.finish();
    let loaded = loaded?;
    for warning in &loaded.warnings {
        eprintln!("{warning}");
    }
    let replaced = match loaded.replaced {
        0 => String::new(),
        count => format!(", {} replaced by a later one of the same number", thousands(count)),
    };
    println!("{} into table '{name}'{replaced}", counted(loaded.rows, "row"));
    Ok(())
}

/// Creates the table of an index that SQL writes; an existing one stays.
fn make_empty(database: &Database, schema: Schema) -> Result<()> {
    let name = schema.name.clone();
    if database.schema(&name).is_ok() {
        let rows = database.statistics(&name)?.rows;
        println!("table '{name}' is there, with {}", counted(rows, "row"));
    } else {
        database.create_table(schema)?;
        println!("table '{name}' is made, without rows");
    }
    Ok(())
}

/// Creates the table of a distributed index.
fn make_parts_one(database: &Database, conf: &SphinxConf, name: &str) -> Result<()> {
    let schema = conf.distributed_table(name)?;
    let rows = match schema.parts().is_empty() {
        true => 0,
        false => database.reader().united_rows(schema.parts())?,
    };
    let made = if make_distributed(database, &schema)? { "made" } else { "there" };
    println!(
        "table '{name}' is {made}, distributed over {}, with {}",
        [schema.parts(), schema.agents()].concat().join(", "),
        counted(rows, "row")
    );
    Ok(())
}

fn progress(index: &str, loaded: &Loaded) -> Progress {
    Progress {
        file: format!("index '{index}'"),
        rows: loaded.rows,
        skipped: 0,
        record_bytes: loaded.bytes,
        bytes: loaded.bytes,
        total_bytes: None,
        elapsed: loaded.elapsed,
    }
}
