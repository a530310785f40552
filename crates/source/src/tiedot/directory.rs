//! The directory of a database: its collections with their indexes, and the sizes in its files.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{Error, Result};

const PARTITIONS_FILE: &str = "number_of_partitions";
const CONFIG_FILE: &str = "data-config.json";
/// The separator between the names of an indexed path.
const PATH_SEPARATOR: char = '!';
/// The most partitions: tiedot makes one for each processor.
const MAX_PARTITIONS: u32 = 65_536;
/// The most bytes of the two small files.
const MAX_SMALL_FILE_BYTES: u64 = 64 << 10;

/// A tiedot database.
#[derive(Clone, Debug)]
pub struct Directory {
    /// The collections, by name.
    pub collections: Vec<Collection>,
}

/// A collection.
#[derive(Clone, Debug)]
pub struct Collection {
    /// The name.
    pub name: String,
    /// The indexed paths, sorted.
    pub indexes: Vec<Vec<String>>,
    /// Whether it is a copy that an interrupted scrub left.
    pub is_left_by_scrub: bool,
    pub(super) path: PathBuf,
    pub(super) partitions: u32,
    pub(super) sizes: Sizes,
}

/// Sizes in all files of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Sizes {
    /// The most bytes of a record's room.
    #[serde(rename = "DocMaxRoom")]
    pub max_room: u64,
    /// Entries in a bucket.
    #[serde(rename = "PerBucket")]
    pub bucket_entries: u64,
    /// The bits of a key's hash, which is the number of its first bucket.
    #[serde(rename = "HashBits")]
    pub hash_bits: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { max_room: 2 << 20, bucket_entries: 16, hash_bits: 16 }
    }
}

impl Directory {
    /// Opens a database without reading records. No tiedot process may have it open.
    ///
    /// # Errors
    /// It is not a tiedot directory, or cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let text = small_file(&path.join(PARTITIONS_FILE))?.ok_or_else(|| {
            Error::format(
                &name,
                format!("is no database of tiedot's: it has no file {PARTITIONS_FILE}"),
            )
        })?;
        let partitions =
            text.trim().parse().ok().filter(|count| (1..=MAX_PARTITIONS).contains(count));
        let partitions = partitions.ok_or_else(|| {
            let text = text.trim().chars().take(40).collect::<String>();
            let message =
                format!("{PARTITIONS_FILE} says {text:?}, not how many partitions there are");
            Error::format(&name, message)
        })?;
        let sizes = read_sizes(path, &name)?;
        let mut collections = Vec::new();
        for path in folders(path)? {
            let name = name_of(&path)?;
            let mut indexes = Vec::new();
            for folder in folders(&path)? {
                indexes.push(name_of(&folder)?.split(PATH_SEPARATOR).map(str::to_owned).collect());
            }
            let is_left_by_scrub = is_left_by_scrub(&name);
            collections.push(Collection {
                name,
                indexes,
                is_left_by_scrub,
                path,
                partitions,
                sizes,
            });
        }
        Ok(Self { collections })
    }
}

/// Whether the name has the form `scrub-NAME-NANOSECONDS`.
fn is_left_by_scrub(name: &str) -> bool {
    let rest = name.strip_prefix("scrub-").and_then(|rest| rest.rsplit_once('-'));
    rest.is_some_and(|(_, time)| time.len() >= 18 && time.bytes().all(|byte| byte.is_ascii_digit()))
}

fn read_sizes(path: &Path, name: &str) -> Result<Sizes> {
    let Some(text) = small_file(&path.join(CONFIG_FILE))? else { return Ok(Sizes::default()) };
    let sizes: Sizes = serde_json::from_str(&text)
        .map_err(|error| Error::format(name, format!("{CONFIG_FILE} cannot be read: {error}")))?;
    let fits = (1..=1 << 30).contains(&sizes.max_room)
        && (1..=4_096).contains(&sizes.bucket_entries)
        && (1..=32).contains(&sizes.hash_bits);
    match fits {
        true => Ok(sizes),
        false => Err(Error::format(
            name,
            format!(
                "{CONFIG_FILE} has sizes that no database has: DocMaxRoom {}, PerBucket {}, HashBits {}",
                sizes.max_room, sizes.bucket_entries, sizes.hash_bits
            ),
        )),
    }
}

/// The text of a file; `None` if it does not exist.
fn small_file(path: &Path) -> Result<Option<String>> {
    let failed = |error| Error::io(&path.display().to_string(), error);
    match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
        Ok(file) => {
            let mut text = String::new();
            file.take(MAX_SMALL_FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
            Ok(Some(text))
        }
    }
}

/// The folders in a folder, by name. Like tiedot, this ignores links.
fn folders(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io(&path.display().to_string(), error);
    let mut folders = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

fn name_of(path: &Path) -> Result<String> {
    let name = path.file_name().unwrap_or_default();
    name.to_str().map(str::to_owned).ok_or_else(|| {
        Error::format(&path.display().to_string(), "has a name that is not UTF-8: rename it")
    })
}
