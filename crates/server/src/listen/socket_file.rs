//! The file of a Unix socket: its mode and its removal.

use std::{
    fs::Permissions,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tokio::net::UnixListener;

use crate::{Error, Result};

/// A socket's file; removed when dropped, unless another has replaced it.
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: Option<Identity>,
}

impl SocketFile {
    /// Listens on a path. A stale socket, such as a killed server leaves, is replaced. `mode` is the file's mode, if
    /// not the system's default.
    pub(crate) fn bind(path: &Path, mode: Option<u32>) -> Result<(Self, UnixListener)> {
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(Error::Settings(format!(
                "{}: another server listens on this socket; stop it or choose another path",
                path.display()
            )));
        }
        if let Ok(metadata) = std::fs::symlink_metadata(path) {
            if !metadata.file_type().is_socket() {
                return Err(Error::Settings(format!(
                    "{}: something else than a socket is there; choose another path",
                    path.display()
                )));
            }
            std::fs::remove_file(path)
                .map_err(|source| Error::io("cannot replace", path, source))?;
        }
        let listener = UnixListener::bind(path)
            .map_err(|source| Error::io("cannot listen on", path, source))?;
        let file = Self { path: path.to_owned(), identity: identity(path) };
        if let Some(mode) = mode {
            std::fs::set_permissions(path, Permissions::from_mode(mode))
                .map_err(|source| Error::io("cannot set who may use", path, source))?;
        }
        Ok((file, listener))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            // In a directory that became read-only the file stays; the next start replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Device, inode and creation time: the inode of a removed file may be reused at once.
type Identity = (u64, u64, std::time::SystemTime);

fn identity(path: &Path) -> Option<Identity> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    let made = metadata.created().or_else(|_| metadata.modified()).ok()?;
    Some((metadata.dev(), metadata.ino(), made))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> String {
        SocketFile::bind(path, None).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[tokio::test]
    async fn socket_file_is_private_and_removed_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("line.sock");
        let (file, listener) = SocketFile::bind(&path, Some(0o770)).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o770);
        assert!(refusal(&path).contains("another server listens"));
        drop((file, listener));
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn only_a_stale_socket_file_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("line.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let (old, listener) = SocketFile::bind(&path, None).unwrap();
        drop(listener);
        let (_new, _listener) = SocketFile::bind(&path, None).unwrap();
        drop(old);
        assert!(path.exists(), "the file of the server behind it is gone");
        let text = directory.path().join("text");
        std::fs::write(&text, "precious").unwrap();
        assert!(refusal(&text).contains("something else"));
        assert_eq!(std::fs::read_to_string(&text).unwrap(), "precious");
    }
}
