//! Opening a data directory as the settings describe it.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path};

use remora_engine::{Database, Definition, Options, Schema};
use rustix::{fs::Mode, process::umask};

use crate::{
    Error, Result,
    settings::{Dialect, Settings},
    zone,
};

/// Opens the data directory, loads the newest dump into an empty one where that is asked for, and
/// makes the tables that are missing.
///
/// # Errors
/// [`Error::Settings`] if a dump was loaded into the directory by halves, or a table is there with
/// another definition than the settings give; [`Error::Engine`] if the directory cannot be opened,
/// or a dump or table is refused; [`Error::Io`] if the system refuses a file of the dump.
pub fn open_database(settings: &Settings) -> Result<Database> {
    crate::dump::refuse_half_loaded(&settings.data)?;
    keep_from_others(&settings.data);
    let database = open_with_collations(&settings.data, settings.engine_options())?;
    if settings.dump.load_on_startup && database.tables().is_empty() {
        crate::dump::load_newest_dump(&database, settings)?;
    }
    for schema in &settings.tables {
        let schema = zone::in_utc(schema, settings.time_zone.as_ref());
        make_table(&database, &schema, settings)?;
    }
    Ok(database)
}

/// Opens a data directory, some indexes of which may be by collations.
pub(crate) fn open_with_collations(
    data: &Path,
    options: Options,
) -> remora_engine::Result<Database> {
    remora_sql::register_collations();
    Database::open(data, options)
}

/// What others than the owner may not do with what is stored: write as its group, anything as others.
const NOT_FOR_OTHERS: u32 = 0o027;

/// Sees to it that directories which this process makes are 0750 from now on and files 0640, and that a
/// data directory that is there is not open to others either.
pub(crate) fn keep_from_others(data: &Path) {
    let before = umask(Mode::from_raw_mode(NOT_FOR_OTHERS));
    umask(before | Mode::from_raw_mode(NOT_FOR_OTHERS));
    let Ok(metadata) = std::fs::metadata(data) else { return };
    let mode = metadata.permissions().mode();
    if metadata.is_dir() && mode & NOT_FOR_OTHERS != 0 {
        let narrowed = Permissions::from_mode(mode & !NOT_FOR_OTHERS);
        if let Err(error) = std::fs::set_permissions(data, narrowed) {
            tracing::warn!("{} can be read by others, and stays so: {error}", data.display());
        }
    }
}

/// Makes a table, or makes sure that the one that is there can stand for it.
fn make_table(database: &Database, wanted: &Schema, settings: &Settings) -> Result<()> {
    if wanted.is_distributed() {
        return make_distributed(database, wanted).map(drop);
    }
    if !database.tables().contains(&wanted.name) {
        return Ok(database.create_table(wanted.clone())?);
    }
    let present = database.schema(&wanted.name)?;
    // An index of a sphinx.conf keeps the settings that it was made with, as in Sphinx, or got by ALTER TABLE.
    if *present == *wanted || settings.sphinx_conf.is_some() {
        return Ok(());
    }
    if settings.dialect == Dialect::Remora {
        return Err(Error::Settings(format!(
            "table '{}' in {} has another definition than [tables.{0}] in the settings: take the \
             section out to serve the table as it is, or export its rows and import them into a \
             table of a new name",
            wanted.name,
            settings_path(database),
        )));
    }
    match missing_column(&present, wanted) {
        None => Ok(()),
        Some(column) => Err(Error::Settings(format!(
            "table '{}' lacks the column '{column}' that the settings name: import it again with \
             that column, or take the column out of the settings",
            wanted.name
        ))),
    }
}

/// Makes a table that has the rows of others, or gives the one that is there these parts; whether it is new.
pub(crate) fn make_distributed(database: &Database, wanted: &Schema) -> Result<bool> {
    let name = &wanted.name;
    if !database.tables().contains(name) {
        database.create_table(wanted.clone())?;
        return Ok(true);
    }
    let present = database.schema(name)?;
    if !present.is_distributed() {
        return Err(Error::Settings(format!(
            "table '{name}' in {} has rows of its own, and is to be distributed over {}: drop it (DROP TABLE), or \
             give the index another name",
            settings_path(database),
            [wanted.parts(), wanted.agents()].concat().join(", "),
        )));
    }
    let is_same = present.parts() == wanted.parts()
        && present.agents() == wanted.agents()
        && present.agent_settings() == wanted.agent_settings();
    if !is_same {
        let altered = Definition::Alter { schema: wanted.clone(), fills: Vec::new() };
        database.define(vec![altered], Vec::new())?;
    }
    Ok(false)
}

/// A MygramDB file tells only some columns and not their exact types: a table that was made from
/// data serves it if it has them all.
fn missing_column<'w>(present: &Schema, wanted: &'w Schema) -> Option<&'w str> {
    let has = |name: &str| present.columns.iter().any(|c| c.name.eq_ignore_ascii_case(name));
    wanted.columns.iter().map(|column| column.name.as_str()).find(|name| !has(name))
}

fn settings_path(database: &Database) -> String {
    database.path().display().to_string()
}
