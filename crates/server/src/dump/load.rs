//! Loads a dump: each of its tables replaces the table of the same name.
//!
//! Rows go through the normal write path in batches, so an interrupted load leaves tables incomplete. A marker file in
//! the data directory records that: while it exists, only another load may open the directory.

use std::path::{Path, PathBuf};

use remora_engine::{Database, dump::DumpInfo};
use remora_source::mysql::followed_tables;

use crate::{Error, Result, settings::Settings};

const MARKER: &str = "half-loaded-dump";

/// Loads a dump after verifying its checksums. A damaged one changes nothing.
pub(crate) fn load_dump(database: &Database, path: &Path) -> Result<DumpInfo> {
    let verified = remora_engine::dump::verify(path)?;
    let marker = marker(&database.path());
    let shown = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    std::fs::write(&marker, shown.display().to_string())
        .map_err(|source| Error::io("cannot write", &marker, source))?;
    let present = database.tables();
    let is_dumped = |name: &String| verified.tables.iter().any(|table| table.name == *name);
    let followed = all_followed_tables(database);
    // A followed table that the dump lacks was created later: the stream will create it again.
    for table in present.iter().filter(|table| is_dumped(table) || followed.contains(table)) {
        database.drop_table(table)?;
    }
    let info = database.restore(path)?;
    database.checkpoint()?;
    std::fs::remove_file(&marker).map_err(|source| Error::io("cannot remove", &marker, source))?;
    Ok(info)
}

/// The tables of any source.
fn all_followed_tables(database: &Database) -> Vec<String> {
    let positions = database.source_positions();
    let keys = || positions.iter().map(|(key, _)| key);
    let sources = keys().filter_map(|key| key.strip_suffix("/source"));
    sources.flat_map(|source| followed_tables(source, keys())).collect()
}

/// Loads the newest dump in the dump directory, if there is one.
pub(crate) fn load_newest_dump(database: &Database, settings: &Settings) -> Result<()> {
    let Some(path) = super::schedule::dumps_by_age(&settings.dump.dir, "").pop() else {
        tracing::info!("dump.load_on_startup: {} holds no dump", settings.dump.dir.display());
        return Ok(());
    };
    let info = load_dump(database, &path)?;
    tracing::info!(path = %path.display(), rows = info.rows, "a dump was loaded");
    Ok(())
}

/// Refuses a data directory in which a load of a dump was interrupted.
pub(crate) fn refuse_half_loaded(data: &Path) -> Result<()> {
    match std::fs::read_to_string(marker(data)) {
        Err(_) => Ok(()),
        Ok(dump) => Err(Error::Settings(format!(
            "a load of the dump {dump} into {0} was cut off: run 'remora dump load --data {0} \
             {dump}' again",
            data.display()
        ))),
    }
}

/// Whether a load into the data directory was interrupted.
pub(super) fn is_half_loaded(data: &Path) -> bool {
    marker(data).exists()
}

fn marker(data: &Path) -> PathBuf {
    data.join(MARKER)
}
