//! Paths of dump files, which must be inside the dump directory.

use std::path::{Component, Path, PathBuf};

use remora_protocol::line::{LineError, code};

use crate::{Error, Result};

/// The path of a file name in `dir`. An absolute path must be inside it.
pub(crate) fn resolve(dir: &Path, name: &str) -> Result<PathBuf, LineError> {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let given = Path::new(name);
    let within = if given.is_absolute() {
        given.strip_prefix(&dir).map_err(|_| outside(name, &dir))?
    } else {
        given
    };
    let plain = within.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || within.as_os_str().is_empty() {
        return Err(outside(name, &dir));
    }
    let path = dir.join(within);
    // A symbolic link in the directory must not lead out of it.
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, dir.canonicalize().ok()) {
        (Some(parent), Some(dir)) if !parent.starts_with(&dir) => Err(outside(name, &dir)),
        _ => Ok(path),
    }
}

/// As [`resolve`], for a file that must exist.
pub(crate) fn resolve_existing(dir: &Path, name: &str) -> Result<PathBuf, LineError> {
    let path = resolve(dir, name)?;
    let real = path.canonicalize().map_err(|_| {
        LineError::new(code::NOT_FOUND, format!("There is no dump {}", path.display()))
    })?;
    let dir = dir.canonicalize().unwrap_or_default();
    if real.starts_with(&dir) { Ok(path) } else { Err(outside(name, &dir)) }
}

/// Creates the directory of a file.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    std::fs::create_dir_all(parent).map_err(|source| Error::io("cannot make", parent, source))
}

fn outside(name: &str, dir: &Path) -> LineError {
    LineError::new(
        code::INVALID_ARGUMENT,
        format!("'{name}' does not lie in the dump directory {}", dir.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_directory_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let dumps = dir.path().join("dumps");
        std::fs::create_dir(&dumps).unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(dir.path(), dumps.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("secret"), dumps.join("file")).unwrap();
        assert_eq!(resolve(&dumps, "a.dmp").unwrap(), dumps.join("a.dmp"));
        let whole = dumps.join("a.dmp").display().to_string();
        assert_eq!(resolve(&dumps, &whole).unwrap(), dumps.join("a.dmp"));
        for wrong in ["", ".", "..", "../secret", "a/../../secret", "/etc/passwd", "link/secret"] {
            assert!(resolve(&dumps, wrong).is_err(), "{wrong}");
        }
        assert!(resolve_existing(&dumps, "file").is_err());
        assert_eq!(resolve_existing(&dumps, "none").unwrap_err().code, 8);
    }
}
