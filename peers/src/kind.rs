//! The kinds of servers, and where their files are.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// A server that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// MariaDB 10.11, installed by the system's packages.
    MariaDb1011,
    /// MariaDB 11.8, unpacked into the cache.
    MariaDb118,
    /// MySQL 9.7, unpacked into the cache.
    MySql97,
    /// MySQL 5.6, unpacked into the cache.
    MySql56,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::MariaDb1011, Self::MariaDb118, Self::MySql97, Self::MySql56];

    /// The short name, which is that of its folder in the cache and that for `peers/scripts/fetch`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb1011 => "mariadb1011",
            Self::MariaDb118 => "mariadb118",
            Self::MySql97 => "mysql97",
            Self::MySql56 => "mysql56",
        }
    }

    /// The beginning of the text that `SELECT version()` returns.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::MariaDb1011 => "10.11.",
            Self::MariaDb118 => "11.8.",
            Self::MySql97 => "9.7.",
            Self::MySql56 => "5.6.",
        }
    }

    /// Whether this is a MariaDB.
    #[must_use]
    pub fn is_mariadb(self) -> bool {
        matches!(self, Self::MariaDb1011 | Self::MariaDb118)
    }

    /// Fetches the server's programs from the network, unless they are present. Takes about a
    /// minute.
    ///
    /// # Errors
    /// The script cannot be run, or ends with an error.
    pub fn fetch(self) -> Result<()> {
        if self.root().is_ok() { Ok(()) } else { fetch(self.name()) }
    }

    /// The folder of its programs and messages, which a package calls `/usr`.
    pub(crate) fn root(self) -> Result<PathBuf> {
        let (root, program) = match self {
            Self::MariaDb1011 => (PathBuf::from("/usr"), "sbin/mariadbd"),
            Self::MariaDb118 => (self.directory()?.join("root/usr"), "sbin/mariadbd"),
            Self::MySql97 => (self.directory()?.join("root/usr"), "sbin/mysqld"),
            Self::MySql56 => (self.directory()?.join("root"), "mysqld"),
        };
        let complete = self == Self::MariaDb1011 || self.directory()?.join("complete").exists();
        if !complete || !root.join(program).exists() {
            let name = self.name();
            bail!("the server {name} is not on this machine: run peers/scripts/fetch {name}");
        }
        Ok(root)
    }

    /// The folder of this kind in the cache.
    pub(crate) fn directory(self) -> Result<PathBuf> {
        Ok(cache_directory()?.join(self.name()))
    }
}

/// Fetches the program that `peers/scripts/fetch` knows by this name, unless it is present.
///
/// # Errors
/// The script cannot be run, or ends with an error.
pub fn fetch(name: &str) -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/fetch");
    let status = Command::new(&script)
        .arg(name)
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", script.display()))?;
    if !status.success() {
        bail!("{} {name} ended with {status}", script.display());
    }
    Ok(())
}

/// The directory in which servers and loaded corpora are kept between runs.
///
/// # Errors
/// Neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn cache_directory() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(path) => PathBuf::from(path),
        None => Path::new(&std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(base.join("remora-bench"))
}
