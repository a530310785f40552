//! When a disk counts as full, and when it can be written again.

use std::{fs::OpenOptions, io::Error as IoError, path::Path};

use rustix::{
    fs::{FallocateFlags, fallocate, statvfs},
    io::Errno,
};

/// Free bytes needed before a store is written again after a full disk: enough to flush the rows in memory and to
/// start a journal.
pub(super) const NEEDED_BYTES: u64 = 32 << 20;
/// The system's errors for a full disk.
const FULL: [Errno; 3] = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG];

/// Whether [`NEEDED_BYTES`] cannot be written because the disk is full. False for any other error, which may have
/// affected more than this write.
pub(super) fn is_used_up(directory: &Path) -> bool {
    tried(directory).is_err_and(|error| FULL.contains(&error))
}

/// Whether [`NEEDED_BYTES`] can be written to the disk.
pub(super) fn has_room(directory: &Path) -> bool {
    tried(directory).is_ok()
}

/// Tries to reserve [`NEEDED_BYTES`] in an unnamed file.
fn tried(directory: &Path) -> Result<(), Errno> {
    match reserve(directory) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => match free_bytes(directory)? {
            NEEDED_BYTES.. => Ok(()),
            _ => Err(Errno::NOSPC),
        },
        tried => tried,
    }
}

fn reserve(directory: &Path) -> Result<(), Errno> {
    let path = directory.join("room");
    let system = |error: IoError| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let file =
        OpenOptions::new().write(true).create(true).truncate(true).open(&path).map_err(system)?;
    std::fs::remove_file(&path).map_err(system)?;
    fallocate(&file, FallocateFlags::empty(), 0, NEEDED_BYTES)
}

fn free_bytes(directory: &Path) -> Result<u64, Errno> {
    let figures = statvfs(directory)?;
    Ok(figures.f_bavail.saturating_mul(figures.f_frsize))
}
