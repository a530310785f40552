//! Durable changes of files and directories.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
};

use crate::{Error, Result};

/// Replaces a file as a whole. After a crash it has either the old bytes or the new ones. The new
/// bytes are durable on return.
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
        // A leftover file would only take space, and the next attempt overwrites it.
        let _ = fs::remove_file(&temporary);
        io_error("write", path, &error)
    })
}

/// Makes renames and removals in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// An error that names the operation, the path and the system's error.
pub(crate) fn io_error(verb: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::of_system(error, format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_file_is_complete_without_temporary_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("FILE");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    /// An [`Error::Full`] tells the caller to try again later.
    #[test]
    fn file_without_disk_space_is_a_full_disk_error() {
        use std::io::{Error as IoError, ErrorKind};
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
        for kind in full {
            let error = io_error("write", Path::new("x.seg"), &IoError::from(kind));
            assert!(matches!(&error, Error::Full(what) if what.contains("x.seg")), "{error:?}");
            assert!(matches!(Error::from(IoError::from(kind)), Error::Full(_)));
        }
        let error = io_error("write", Path::new("x.seg"), &IoError::from(ErrorKind::NotFound));
        assert!(matches!(error, Error::Io(_)), "{error:?}");
        // A Linux device that is always full.
        if Path::new("/dev/full").exists() {
            let mut file = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let error = file.write_all(b"x").unwrap_err();
            assert!(matches!(Error::from(error), Error::Full(_)));
        }
    }
}
