//! Checks before fjall opens a directory: fjall takes missing files for files that never existed, and deletes what
//! belonged to them.

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

/// The file that fjall puts into its directory once it has made what else there must be.
const FJALL_MARKER: &str = "version";
/// Where fjall has its keyspaces, which there are, what says which files one has (`u64` the number of the
/// list, `u128` its checksum, 0).
const KEYSPACES: &str = "keyspaces";
const DEFINITIONS: &str = "keyspaces/0";
const CURRENT: &str = "current";
const TABLES: &str = "tables";
const FIRST_JOURNAL: &str = "0.jnl";
/// What fjall's journals end with.
pub(super) const JOURNAL: &str = "jnl";
/// What fjall makes.
const MADE: [&str; 4] = [FJALL_MARKER, KEYSPACES, FIRST_JOURNAL, "lock"];

/// Refuses a directory that is none of ours, or that fjall would open with less than was in it. What a
/// first opening left that did not come to its end goes.
pub(super) fn examine(directory: &Path) -> Result<()> {
    remove_unmade(directory)?;
    refuse_strangers(directory)?;
    refuse_incomplete(directory)?;
    refuse_damaged_versions(directory)?;
    refuse_lost_keyspaces(directory)
}

/// Removes what fjall leaves where it is ended while it makes a database, or met a full disk: it can
/// neither open that nor make it anew. There never was a row in it: the journal is blank, and there is
/// no list of the definitions' files nor any file for it to list.
fn remove_unmade(directory: &Path) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::of_system(&error, format!("cannot clear {}: {error}", directory.display()))
    };
    match is_unmade(directory) {
        Ok(true) => {}
        Ok(false) => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    tracing::warn!(directory = %directory.display(), "the row store was not made whole: made anew");
    // Ended amid this, it is done again.
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
    // The journal is made before the marker: without it alone it was lost.
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

/// That something is not there is as good as that it is gone.
fn absent(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Whether nothing was written to a journal since it was made, which is long and empty then.
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

/// Refuses a store that lacks a file without which fjall takes it for one that never had any rows, and
/// removes them.
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

/// Refuses a store of which the list of a keyspace's files is not what was written. fjall has its checksum
/// beside it and does not look at it: it would believe the list, or end the process.
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
    let message = format!("{directory} is not a Remora row store: name an empty directory or one");
    Error::missing(Missing::Path, message)
}

/// Refuses a store that has a keyspace without the list of its files: fjall takes it for one that was
/// dropped, and removes what is left of it. One that was is not among the definitions any more.
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

/// Whether fjall's definitions name the keyspace of this number.
fn is_defined(directory: &Path, number: u64) -> Result<bool> {
    let numbers = SequenceNumberCounter::default;
    let config = Config::new(directory.join(DEFINITIONS), numbers(), numbers());
    let key = [b"n", number.to_be_bytes().as_slice()].concat();
    let look_up = || config.open()?.get(&key, SeqNo::MAX);
    // As in the opening behind it, what is read is asserted.
    let found =
        catch_unwind(AssertUnwindSafe(look_up)).unwrap_or(Err(lsm_tree::Error::Unrecoverable));
    found.map(|name| name.is_some()).map_err(|error| store_error(error.into()))
}

fn missing(what: &Path) -> Error {
    let what = what.display();
    Error::Corrupt(format!("{what} is missing, without which the row store would lose rows"))
}
