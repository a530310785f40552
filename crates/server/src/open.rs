//! Opens a data directory according to the settings.

use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use remora_engine::{Database, Definition, Options, Schema};
use rustix::{fs::Mode, process::umask};

use crate::{
    Error, Result,
    settings::{Dialect, Settings},
    zone,
};

/// Opens the data directory, loads the newest dump into an empty one if that is configured, and creates missing tables.
///
/// # Errors
/// [`Error::Settings`] if a load of a dump was interrupted, or an existing table differs from its configured
/// definition; [`Error::Usage`] if the folder holds files of others; [`Error::Engine`] if the directory cannot be opened, or a dump or table is refused; [`Error::Io`] if a
/// file of the dump cannot be read.
pub fn open_database(settings: &Settings) -> Result<Database> {
    crate::dump::refuse_half_loaded(&settings.data)?;
    let Settings { file, dump, logging, query_log, listen, .. } = settings;
    let own = [file, &logging.file, &query_log.file, &listen.line_socket, &listen.sql_socket];
    let own: Vec<&Path> = own.into_iter().flatten().map(PathBuf::as_path).collect();
    claim(&settings.data, &[&own[..], &[&dump.dir]].concat())?;
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

/// Opens a data directory whose indexes may use collations.
pub(crate) fn open_with_collations(
    data: &Path,
    options: Options,
) -> remora_engine::Result<Database> {
    remora_sql::register_collations();
    Database::open(data, options)
}

/// What may lie in a folder before it becomes a data directory: what the engine makes, which then says what is missing,
/// dumps, and what a file system has in its root. Hidden files may, too.
const EXPECTED: [&str; 7] =
    ["LOCK", "MANIFEST", "dumps", "lost+found", "segments", "spill", "store"];

/// Refuses a folder with other files than those of a data directory and the server's `own`, and leaves it as it is; then
/// keeps others from the directory and from all new files.
///
/// # Errors
/// [`Error::Usage`] with the name of such a file.
pub(crate) fn claim(data: &Path, own: &[&Path]) -> Result<()> {
    refuse_foreign(data, own)?;
    keep_from_others(data);
    Ok(())
}

fn refuse_foreign(data: &Path, own: &[&Path]) -> Result<()> {
    // A folder that cannot be read is reported when it is opened.
    let Ok(entries) = std::fs::read_dir(data) else { return Ok(()) };
    if data.join("FORMAT").exists() {
        return Ok(());
    }
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let own: Vec<PathBuf> = own.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let is_own = |name: &String| {
        let path = data.join(name).canonicalize();
        path.is_ok_and(|path| own.iter().any(|file| file.starts_with(&path)))
    };
    let is_expected = |name: &str| name.starts_with('.') || EXPECTED.contains(&name);
    let is_foreign = |name: &String| !is_expected(name) && !is_own(name);
    match names.filter(is_foreign).min() {
        None => Ok(()),
        Some(name) => Err(Error::Usage(format!(
            "{} is no data directory and holds other files, such as '{name}': name an empty folder, or one that does \
             not exist yet",
            data.display()
        ))),
    }
}

/// The umask: the group may not write, others may do nothing.
const NOT_FOR_OTHERS: u32 = 0o027;

/// Makes new directories of this process 0750 and new files 0640, and removes others' access to an existing data
/// directory.
fn keep_from_others(data: &Path) {
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

/// Creates a table, or checks that the existing one matches.
fn make_table(database: &Database, wanted: &Schema, settings: &Settings) -> Result<()> {
    if wanted.is_distributed() {
        return make_distributed(database, wanted).map(drop);
    }
    if !database.tables().contains(&wanted.name) {
        return Ok(database.create_table(wanted.clone())?);
    }
    let present = database.schema(&wanted.name)?;
    // An index of a sphinx.conf keeps the settings with which it was created, as in Sphinx, or those from ALTER TABLE.
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

/// Creates a distributed table, or gives an existing one these parts. Returns whether it is new.
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

/// A MygramDB file names only some columns and not their exact types. An existing table matches if it has all of them;
/// otherwise this is the missing one.
fn missing_column<'w>(present: &Schema, wanted: &'w Schema) -> Option<&'w str> {
    let has = |name: &str| present.columns.iter().any(|c| c.name.eq_ignore_ascii_case(name));
    wanted.columns.iter().map(|column| column.name.as_str()).find(|name| !has(name))
}

fn settings_path(database: &Database) -> String {
    database.path().display().to_string()
}
