//! A temporary directory that is removed with its owner.

use std::{
    fs::DirBuilder,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{Error, Result};

/// The most names to try.
const TRIES: u32 = 64;

/// A directory in the system's directory for temporary files. Dropping it removes it with its
/// contents.
#[derive(Debug)]
pub(crate) struct TemporaryDirectory {
    path: PathBuf,
}

impl TemporaryDirectory {
    /// Creates a new directory with an unused name.
    pub fn new() -> Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let mut last = None;
        for _ in 0..TRIES {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
            let name = format!("remora-{process}-{number}-{:x}", now.subsec_nanos());
            let path = std::env::temp_dir().join(name);
            match own().create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) => last = Some(error),
            }
        }
        let why = last.map_or_else(String::new, |error| error.to_string());
        let folder = std::env::temp_dir();
        let message = format!("cannot make a directory in {}: {why}; set TMPDIR", folder.display());
        Err(Error::Io(message.into()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Only the owner has access to it.
fn own() -> DirBuilder {
    #[cfg_attr(not(unix), allow(unused_mut, reason = "rights are those of the folder there"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // An error cannot be reported here.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
