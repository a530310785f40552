//! The lock that reserves a data directory for one process, and the directory's format version.
//!
//! ```text
//! LOCK   := the process number of the holder, in decimal
//! FORMAT := "remora 1\n"
//! ```
//! The lock is an advisory lock of the operating system on the open file, so a killed process leaves none behind. The
//! number in the file is only for the error message.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    path::Path,
};

use super::durable::{io_error, write_atomically};
use crate::{Error, Missing, Result};

const LOCK_FILE: &str = "LOCK";
const FORMAT_FILE: &str = "FORMAT";
const FORMAT: &str = "remora 1\n";
/// What a data directory contains besides these files.
const DATA: [&str; 3] = ["store", "segments", "MANIFEST"];

/// A locked data directory. Dropping it unlocks the directory.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    file: File,
}

impl DirectoryLock {
    /// Creates the directory if it is missing, locks it and checks its format version.
    pub fn open_or_create(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).map_err(|error| io_error("make", directory, &error))?;
        let lock = Self::acquire(directory)?;
        check_or_write_format(directory)?;
        Ok(lock)
    }

    /// Locks an existing directory and checks its format version.
    pub fn open(directory: &Path) -> Result<Self> {
        if !directory.join(FORMAT_FILE).is_file() {
            let message = format!("{} is not a Remora data directory", directory.display());
            return Err(Error::missing(Missing::Path, message));
        }
        let lock = Self::acquire(directory)?;
        check_or_write_format(directory)?;
        Ok(lock)
    }

    fn acquire(directory: &Path) -> Result<Self> {
        let path = directory.join(LOCK_FILE);
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(|error| io_error("open", &path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held_elsewhere(directory, file)),
            Err(TryLockError::Error(error)) => return Err(io_error("lock", &path, &error)),
        }
        let name_holder = || -> std::io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // A full disk must not keep an existing directory from being opened and read.
        if let Err(error) = { name_holder }() {
            tracing::warn!(path = %path.display(), %error, "the lock file does not name its holder");
        }
        Ok(Self { file })
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing the file unlocks it too, so an error here does no harm.
        let _ = self.file.unlock();
    }
}

fn held_elsewhere(directory: &Path, mut file: File) -> Error {
    let mut holder = String::new();
    let holder = match file.read_to_string(&mut holder) {
        Ok(1..) => format!("process {}", holder.trim()),
        _ => "another process".to_owned(),
    };
    let directory = directory.display();
    Error::Conflict(format!(
        "{directory} is in use by {holder}: stop it or choose another directory"
    ))
}

fn check_or_write_format(directory: &Path) -> Result<()> {
    let path = directory.join(FORMAT_FILE);
    match fs::read_to_string(&path) {
        Ok(text) if text == FORMAT => Ok(()),
        Ok(text) => Err(Error::Corrupt(format!(
            "{} says {:?}, this program reads {:?}: use the program that wrote the directory",
            path.display(),
            text.trim_end(),
            FORMAT.trim_end(),
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            refuse_data_without_format(directory)?;
            write_atomically(&path, FORMAT.as_bytes())
        }
        Err(error) => Err(io_error("read", &path, &error)),
    }
}

/// Refuses a directory with data but without a format version: a new directory gets its format version first.
fn refuse_data_without_format(directory: &Path) -> Result<()> {
    let Some(found) = DATA.iter().find(|name| directory.join(name).exists()) else {
        return Ok(());
    };
    Err(Error::Corrupt(format!(
        "{0} holds {found} and no {FORMAT_FILE}: if it is a data directory of this version whose file \
         was lost, write the line '{1}' to {0}/{FORMAT_FILE}; else restore it from a backup",
        directory.display(),
        FORMAT.trim_end(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_holder_of_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let first = DirectoryLock::open_or_create(directory.path()).unwrap();
        let error = DirectoryLock::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(first);
        DirectoryLock::open(directory.path()).unwrap();
    }

    #[test]
    fn other_format_and_foreign_directory_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(DirectoryLock::open(directory.path()), Err(Error::NotFound { .. })));
        fs::write(directory.path().join(FORMAT_FILE), "remora 9\n").unwrap();
        let error = DirectoryLock::open_or_create(directory.path()).unwrap_err();
        assert!(error.to_string().contains("remora 9"), "{error}");
    }

    #[test]
    fn data_without_a_format_are_refused() {
        for name in DATA {
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir(directory.path().join(name)).unwrap();
            let error = DirectoryLock::open_or_create(directory.path()).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(name) && error.contains("'remora 1'"), "{error}");
            assert!(!directory.path().join(FORMAT_FILE).exists());
            fs::write(directory.path().join(FORMAT_FILE), "remora 1\n").unwrap();
            DirectoryLock::open_or_create(directory.path()).unwrap();
        }
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("notes"), "").unwrap();
        DirectoryLock::open_or_create(directory.path()).unwrap();
    }
}
