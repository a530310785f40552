//! sphinx.conf: the configuration of Sphinx 2.2.11 and of Manticore's plain indexes.
//!
//! A plain index becomes a table with ranked search, loaded from its sources; a real-time index becomes an empty table.
//! Unsupported keys are refused with file and line. In this list each module imports only those before it:
//! - `keys`, `text`: the file as sections and settings;
//! - `columns`, `listen`: fields, attributes and addresses;
//! - `documents`, `command`: a source's output, and the commands that produce it;
//! - `separated`, `docset`, `query`: documents of tsvpipe and csvpipe, of xmlpipe2, of a MySQL, with the numbers of its
//!   multi-value attributes (`sets`) and its joined fields (`joined`), which are read by queries of pairs (`pairs`), in
//!   ranges (`range`), and columns that are compressed or name files (`unpack`);
//! - `plan`: an index as a table and the sources of its rows; `load`: the rows into the table.

mod columns;
mod command;
mod docset;
mod documents;
mod joined;
mod keys;
mod listen;
mod load;
mod pairs;
mod plan;
mod query;
mod range;
mod separated;
mod sets;
mod text;
mod unpack;

#[cfg(test)]
mod tests;

use std::{
    fmt::Display,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use remora_engine::Schema;

use crate::{Error, Result};
use keys::{Meaning, SectionKind};
use text::Section;

pub use command::end_commands;
pub use listen::{Listen, ListenAddress, Protocol};
pub use load::Loaded;

/// The most bytes of a file.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The folder for Remora's files beside those of Sphinx.
const DATA_FOLDER: &str = "remora";

/// A sphinx.conf. It contains passwords, so it has no `Debug`.
pub struct SphinxConf {
    file: String,
    sections: Vec<Section>,
    warnings: Vec<String>,
}

/// The type of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// An index that is built from sources.
    Plain,
    /// A real-time index, which is written by SQL.
    RealTime,
    /// Stored queries that documents are put to.
    Percolate,
    /// An index over other indexes.
    Distributed,
    /// Settings that other sections inherit.
    Template,
    /// An unknown type.
    Other(String),
}

/// An error in a line of the file.
fn wrong(file: &str, line: u32, message: impl Display) -> Error {
    Error::Setting(format!("{file}:{line}: {message}"))
}

impl SphinxConf {
    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, else those of [`SphinxConf::parse`].
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|error| Error::io(&name, error))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::format(&name, "is not UTF-8: convert it, as by iconv"))?;
        Self::parse(&name, &text)
    }

    /// Parses a text. `file` is its name in messages.
    ///
    /// # Errors
    /// [`Error::Setting`] with the line if it is invalid or has an unknown key; [`Error::Format`] if it is longer than
    /// 4 MiB.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(Error::format(file, "is longer than 4 MiB: split it"));
        }
        let mut warnings = Vec::new();
        let sections = text::parse(file, text, &mut warnings)?;
        Ok(Self { file: file.to_owned(), sections, warnings })
    }

    /// The warnings that Sphinx would give.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The names and types of the indexes, in file order.
    pub fn indexes(&self) -> impl Iterator<Item = (&str, IndexKind)> {
        let indexes = self.sections.iter().filter(|section| section.kind == SectionKind::Index);
        indexes.map(|section| (section.name.as_str(), index_kind(section)))
    }

    /// The table of a real-time index.
    ///
    /// # Errors
    /// [`Error::Setting`] if there is no such index, or it uses unsupported keys.
    pub fn real_time_table(&self, index: &str) -> Result<Schema> {
        plan::real_time_table(self, self.index(index)?)
    }

    /// The documents of a percolate index: a definition without a key, with a SQL declaration for each column.
    ///
    /// # Errors
    /// [`Error::Setting`] if there is no such index, or it uses unsupported keys.
    pub fn percolate_documents(&self, index: &str) -> Result<Schema> {
        plan::percolate_documents(self, self.index(index)?)
    }

    /// The table of a distributed index.
    ///
    /// # Errors
    /// [`Error::Setting`] if there is no such index, or it has parts on other servers, or none.
    pub fn distributed_table(&self, index: &str) -> Result<Schema> {
        plan::distributed_table(self, self.index(index)?)
    }

    /// The addresses of searchd.
    ///
    /// # Errors
    /// [`Error::Setting`] if a line is invalid or asks for something unsupported.
    pub fn listen(&self) -> Result<Vec<Listen>> {
        listen::read(&self.file, self.single(SectionKind::Searchd))
    }

    /// The default folder of Remora's files: `remora` in searchd's `data_dir`, or else in the one folder that holds the
    /// files of all indexes.
    ///
    /// # Errors
    /// [`Error::Setting`] if there is neither.
    pub fn data(&self) -> Result<PathBuf> {
        let searchd = self.single(SectionKind::Searchd);
        let data_dir = searchd.map_or("", |section| section.text("data_dir"));
        if !data_dir.is_empty() {
            return Ok(Path::new(data_dir).join(DATA_FOLDER));
        }
        let indexes = self.sections.iter().filter(|section| section.kind == SectionKind::Index);
        let paths = indexes.map(|section| section.text("path")).filter(|path| !path.is_empty());
        let mut folders: Vec<PathBuf> =
            paths.map(|path| Path::new(path).with_file_name(DATA_FOLDER)).collect();
        folders.dedup();
        match folders.as_slice() {
            [folder] => Ok(folder.clone()),
            [] => Err(self.no_data("no index has a path, and searchd no data_dir")),
            [first, second, ..] => Err(self.no_data(&format!(
                "the files of the indexes lie in several folders, as {} and {}",
                first.with_file_name("").display(),
                second.with_file_name("").display()
            ))),
        }
    }

    /// The keys of searchd that have no effect here.
    pub fn unused(&self) -> Vec<String> {
        let settings = self.single(SectionKind::Searchd).into_iter().flat_map(|it| &it.settings);
        let is_unused = |key: &&str| {
            let known = keys::find(SectionKind::Searchd, key);
            known.is_some_and(|key| key.meaning == Meaning::Harmless)
        };
        let mut names: Vec<&str> = settings.map(|setting| setting.key).filter(is_unused).collect();
        names.dedup();
        names.into_iter().map(|name| format!("searchd.{name}")).collect()
    }

    fn no_data(&self, why: &str) -> Error {
        Error::Setting(format!("{}: {why}: name a data directory by --data", self.file))
    }

    fn index(&self, name: &str) -> Result<&Section> {
        let found =
            self.sections.iter().find(|it| it.kind == SectionKind::Index && it.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.indexes().map(|(name, _)| name).take(20).collect();
            let there = match names.is_empty() {
                true => "it has none".to_owned(),
                false => format!("it has {}", names.join(", ")),
            };
            Error::Setting(format!("{}: there is no index '{name}': {there}", self.file))
        })
    }

    fn single(&self, kind: SectionKind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }
}

fn index_kind(section: &Section) -> IndexKind {
    let is_built = section.get("source").is_some();
    match section.text("type") {
        "" if !is_built => IndexKind::Template,
        "" | "plain" => IndexKind::Plain,
        "rt" => IndexKind::RealTime,
        "percolate" => IndexKind::Percolate,
        "distributed" => IndexKind::Distributed,
        "template" => IndexKind::Template,
        other => IndexKind::Other(other.to_owned()),
    }
}
