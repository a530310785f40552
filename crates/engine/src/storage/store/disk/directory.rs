//! Checks a directory before fjall opens it. fjall treats missing files as files that never
//! existed, and deletes the data that belonged to them.

use std::{
    ffi::OsString,
    io::{ErrorKind, Read},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use lsm_tree::{AbstractTree, Config, SeqNo, SequenceNumberCounter};
use xxhash_rust::xxh3::xxh3_128;

use super::error::store_error;
use crate::{Error, Missing, Result};

/// The file that fjall writes last when it creates a database.
const FJALL_MARKER: &str = "version";
/// fjall's keyspaces, the keyspace of their definitions, and in each the file that names its list of files (`u64`
/// number of the list, `u128` checksum, 0).
const KEYSPACES: &str = "keyspaces";
const DEFINITIONS: &str = "keyspaces/0";
const CURRENT: &str = "current";
const TABLES: &str = "tables";
const FIRST_JOURNAL: &str = "0.jnl";
/// The extension of fjall's journals.
pub(super) const JOURNAL: &str = "jnl";
/// The files and folders that fjall creates in a new database.
const MADE: [&str; 4] = [FJALL_MARKER, KEYSPACES, FIRST_JOURNAL, "lock"];

/// Refuses a directory that is not a store of this program, or that fjall would open with rows
/// missing. Removes what an interrupted creation left.
pub(super) fn examine(directory: &Path) -> Result<()> {
    remove_unmade(directory)?;
    refuse_strangers(directory)?;
    refuse_incomplete(directory)?;
    refuse_damaged_versions(directory)?;
    refuse_lost_keyspaces(directory)
}

/// Removes what an interrupted creation left, after a kill or on a full disk: fjall can neither
/// open it nor create it again. It never contained rows: its journal is blank, and it has neither a
/// list of definition files nor such a file.
fn remove_unmade(directory: &Path) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::of_system(&error, format!("cannot clear {}: {error}", directory.display()))
    };
    match is_unmade(directory) {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    tracing::warn!(directory = %directory.display(), "the row store was created only in part: it is created again");
    // If this is interrupted, the next opening repeats it.
    for name in MADE {
        let path = directory.join(name);
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
        removed.or_else(absent).map_err(failed)?;
    }
    Ok(())
}

fn is_unmade(directory: &Path) -> std::io::Result<bool> {
    let there = names(directory)?;
    let is_known = |name: &OsString| MADE.iter().any(|known| name == known);
    if there.is_empty() || !there.iter().all(is_known) {
        return Ok(false);
    }
    let definitions = directory.join(DEFINITIONS);
    let lists_nothing = !definitions.join(CURRENT).exists()
        && names(&directory.join(KEYSPACES))?.iter().all(|name| name == "0")
        && names(&definitions.join(TABLES))?.is_empty();
    // The journal is created before the marker: a marker without a journal means that the journal was lost.
    let is_blank = match directory.join(FIRST_JOURNAL) {
        journal if journal.is_file() => is_blank(&journal)?,
        _ => !directory.join(FJALL_MARKER).exists(),
    };
    Ok(lists_nothing && is_blank)
}

fn names(directory: &Path) -> std::io::Result<Vec<OsString>> {
    match std::fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect(),
        Err(error) => absent(error).map(|()| Vec::new()),
    }
}

/// Treats a missing file as removed.
fn absent(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Whether a journal was never written to. A journal is created at full length, filled with zeros.
fn is_blank(journal: &Path) -> std::io::Result<bool> {
    let mut file = std::fs::File::open(journal)?;
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(true),
            bytes if part.iter().take(bytes).any(|&byte| byte != 0) => return Ok(false),
            _ => {}
        }
    }
}

fn refuse_strangers(directory: &Path) -> Result<()> {
    let mut entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Error::Io(format!("cannot read {}: {error}", directory.display())));
        }
    };
    let ours = entries.next().is_none() || directory.join(FJALL_MARKER).is_file();
    if ours { Ok(()) } else { Err(not_ours(directory)) }
}

/// Refuses a store that lacks a file without which fjall would conclude that there never were rows,
/// and remove them.
fn refuse_incomplete(directory: &Path) -> Result<()> {
    if !directory.join(FJALL_MARKER).is_file() {
        return Ok(());
    }
    let definitions = directory.join(DEFINITIONS).join(CURRENT);
    if !definitions.is_file() {
        return Err(missing(&definitions));
    }
    let entries = std::fs::read_dir(directory)
        .map_err(|error| Error::Io(format!("cannot read {}: {error}", directory.display())))?;
    let is_journal =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == JOURNAL);
    match entries.filter_map(|entry| Some(entry.ok()?.path())).any(|path| is_journal(&path)) {
        true => Ok(()),
        false => Err(missing(&directory.join("N.jnl"))),
    }
}

/// Refuses a store with a damaged list of a keyspace's files. fjall stores a checksum of the list but does not verify
/// it: it would trust the list or panic.
fn refuse_damaged_versions(directory: &Path) -> Result<()> {
    let Ok(keyspaces) = std::fs::read_dir(directory.join(KEYSPACES)) else { return Ok(()) };
    for keyspace in keyspaces.filter_map(|entry| Some(entry.ok()?.path())) {
        let current = keyspace.join(CURRENT);
        let Ok(bytes) = std::fs::read(&current) else { continue };
        let damaged = |path: &Path| {
            let path = path.display();
            Error::Corrupt(format!("{path}, which lists files of the row store, is damaged"))
        };
        let parts = bytes.split_first_chunk::<8>();
        let parts =
            parts.and_then(|(number, rest)| Some((number, rest.split_first_chunk::<16>()?)));
        let Some((number, (checksum, [0]))) = parts else { return Err(damaged(&current)) };
        let list = keyspace.join(format!("v{}", u64::from_le_bytes(*number)));
        let listed = std::fs::read(&list).map_err(|_| damaged(&list))?;
        if xxh3_128(&listed) != u128::from_le_bytes(*checksum) {
            return Err(damaged(&list));
        }
    }
    Ok(())
}

pub(super) fn not_ours(directory: &Path) -> Error {
    let directory = directory.display();
    let message =
        format!("{directory} is not a Remora row store: name a row store or an empty directory");
    Error::missing(Missing::Path, message)
}

/// Refuses a store in which a keyspace lacks its list of files. fjall would treat the keyspace as
/// dropped and remove the rest of it. A keyspace that was really dropped is not in the definitions
/// any more.
fn refuse_lost_keyspaces(directory: &Path) -> Result<()> {
    let Ok(keyspaces) = std::fs::read_dir(directory.join(KEYSPACES)) else { return Ok(()) };
    let mut without = keyspaces.filter_map(|entry| {
        let path = entry.ok()?.path();
        let number: u64 = path.file_name()?.to_str()?.parse().ok()?;
        (path.is_dir() && !path.join(CURRENT).is_file()).then_some((number, path))
    });
    without.try_for_each(|(number, path)| match is_defined(directory, number)? {
        true => Err(missing(&path.join(CURRENT))),
        false => Ok(()),
    })
}

/// Whether fjall's definitions contain the keyspace of this number.
fn is_defined(directory: &Path, number: u64) -> Result<bool> {
    let numbers = SequenceNumberCounter::default;
    let config = Config::new(directory.join(DEFINITIONS), numbers(), numbers());
    let key = [b"n", number.to_be_bytes().as_slice()].concat();
    let look_up = || config.open()?.get(&key, SeqNo::MAX);
    // fjall panics on damaged data, here as well as when it opens the database.
    let found =
        catch_unwind(AssertUnwindSafe(look_up)).unwrap_or(Err(lsm_tree::Error::Unrecoverable));
    found.map(|name| name.is_some()).map_err(|error| store_error(error.into()))
}

fn missing(what: &Path) -> Error {
    let what = what.display();
    Error::Corrupt(format!("{what} is missing: without it the row store would lose rows"))
}
