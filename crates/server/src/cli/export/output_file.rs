//! A file that gets its name when it is whole, so that an interrupted export leaves nothing that looks like one.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{Error, Result};

/// An output: a file, or standard output.
pub(super) struct OutputFile {
    out: Box<dyn Write>,
    path: PathBuf,
    unfinished: Option<Unfinished>,
}

/// A file beside the one that it becomes. It is removed unless it does.
struct Unfinished {
    file: File,
    path: PathBuf,
    /// The path that it gets.
    whole: PathBuf,
}

impl OutputFile {
    /// Begins a file; `None` is standard output. What is not a regular file, such as a pipe, is written as it is.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be created.
    pub(super) fn create(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            let out = Box::new(io::stdout().lock());
            return Ok(Self { out, path: PathBuf::from("-"), unfinished: None });
        };
        Self::at(path).map_err(|source| Error::io("cannot write", path, source))
    }

    fn at(path: &Path) -> io::Result<Self> {
        let existing = fs::metadata(path).ok();
        if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
            let out = Box::new(File::options().write(true).open(path)?);
            return Ok(Self { out, path: path.to_owned(), unfinished: None });
        }
        // A link stays, and its file is replaced.
        let whole = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
        let mut name = whole.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = whole.with_file_name(name);
        let file = File::create(&part)?;
        if let Some(existing) = existing {
            file.set_permissions(existing.permissions())?;
        }
        let out = Box::new(file.try_clone()?);
        let unfinished = Some(Unfinished { file, path: part, whole });
        Ok(Self { out, path: path.to_owned(), unfinished })
    }

    /// The path as it was given.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written. Then it does not exist.
    pub(super) fn finish(mut self) -> Result<()> {
        let ended = self.out.flush().and_then(|()| match &self.unfinished {
            Some(unfinished) => {
                unfinished.file.sync_all()?;
                fs::rename(&unfinished.path, &unfinished.whole)
            }
            None => Ok(()),
        });
        ended.map_err(|source| Error::io("cannot write", &self.path, source))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It has another name if it is whole. An error leaves a file whose name says what it is.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut output = OutputFile::create(Some(&path)).unwrap();
        output.write_all(b"one").unwrap();
        assert!(!path.exists());
        output.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        // One that is not finished leaves what was there, and nothing else.
        let mut output = OutputFile::create(Some(&path)).unwrap();
        output.write_all(b"two").unwrap();
        drop(output);
        assert_eq!((fs::read(&path).unwrap(), names(folder.path()).len()), (b"one".to_vec(), 2));
        // A link still leads to it.
        let mut output = OutputFile::create(Some(&link)).unwrap();
        output.write_all(b"three").unwrap();
        output.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"three");
        assert!(OutputFile::create(Some(&folder.path().join("no/a.json"))).is_err());
    }
}
