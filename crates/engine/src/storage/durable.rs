//! Files and directories made durable.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use crate::{Error, Result};

/// Replaces a file whole: a crash leaves the old bytes or the new ones, both durable on return.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension("tmp");
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        path.parent().map_or(Ok(()), sync_directory)
    };
    write().map_err(|error| {
        // What is left of it would only take room; it is overwritten by the next attempt anyhow.
        let _ = fs::remove_file(&temporary);
        io_error("write", path, &error)
    })
}

/// Makes renames and removals in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// An error that says what was tried on which path and what the system answered.
pub(crate) fn io_error(verb: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::of_system(error, format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_whole_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("FILE");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    /// Whoever is told so tries again later, and does not take it for the end.
    #[test]
    fn a_file_that_finds_no_room_is_an_error_of_the_full_disk() {
        use std::io::{Error as IoError, ErrorKind};
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
        for kind in full {
            let error = io_error("write", Path::new("x.seg"), &IoError::from(kind));
            assert!(matches!(&error, Error::Full(what) if what.contains("x.seg")), "{error:?}");
            assert!(matches!(Error::from(IoError::from(kind)), Error::Full(_)));
        }
        let error = io_error("write", Path::new("x.seg"), &IoError::from(ErrorKind::NotFound));
        assert!(matches!(error, Error::Io(_)), "{error:?}");
        // A device of the system that is always full.
        if Path::new("/dev/full").exists() {
            let mut file = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let error = file.write_all(b"x").unwrap_err();
            assert!(matches!(Error::from(error), Error::Full(_)));
        }
    }
}
