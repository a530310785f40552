//! Reads the documents of a collection with their ids, and reports problems of its files.

use std::{fs::File, io, path::Path};

use super::{
    Problem,
    directory::Collection,
    hash_table::{Entry, HashTable},
    records::Records,
};
use crate::{
    Error, Result,
    files::{Rows, Shape, read_document},
};

/// Something found in a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A document.
    Document {
        /// Its id.
        id: i64,
        /// Its text as compact JSON.
        text: String,
        /// The bytes of its record in the file.
        bytes: u64,
    },
    /// Something unreadable; the caller decides whether to continue.
    Problem(Problem),
}

/// Reads a collection.
pub struct Reader<'c> {
    collection: &'c Collection,
    shape: Shape,
}

impl<'c> Reader<'c> {
    /// Reads this collection.
    pub fn new(collection: &'c Collection) -> Self {
        let shape = Shape { rows: Rows::Documents, key: Vec::new() };
        Self { collection, shape }
    }

    /// Visits the documents partition by partition in the order of the id table, then records without an id. Cost: a
    /// read for each document, and memory of a sixty-fourth of the largest file.
    ///
    /// # Errors
    /// A file cannot be read, or the first error of `visit`, which stops.
    pub fn each(&self, visit: &mut dyn FnMut(Found) -> Result<()>) -> Result<()> {
        (0..self.collection.partitions)
            .try_for_each(|partition| self.partition(partition, visit))?;
        self.files_beyond(visit)
    }

    fn partition(&self, partition: u32, visit: &mut dyn FnMut(Found) -> Result<()>) -> Result<()> {
        let (ids_name, records_name) = (format!("id_{partition}"), format!("dat_{partition}"));
        let Some(ids) = self.open(&ids_name, visit)? else { return Ok(()) };
        let Some(file) = self.open(&records_name, visit)? else { return Ok(()) };
        let (ids_name, records_name) =
            (self.display_text(&ids_name), self.display_text(&records_name));
        let sizes = self.collection.sizes;
        let table = HashTable::new(&ids_name, &ids, sizes)?;
        let mut records = Records::new(&records_name, &file, sizes)?;
        // Two closures share one visitor.
        let visit = std::cell::RefCell::new(visit);
        let mut tell = |problem| (visit.borrow_mut())(Found::Problem(problem));
        table.chains(
            &mut |bucket, entries| {
                for (place, entry) in entries.iter().enumerate() {
                    let earlier = entries.get(..place).unwrap_or_default();
                    let found = match self.misplaced(partition, bucket, entry, earlier) {
                        Some(message) => {
                            Err(Problem { file: ids_name.clone(), offset: entry.offset, message })
                        }
                        None => self.document(&ids_name, &records_name, entry, &mut records)?,
                    };
                    (visit.borrow_mut())(found.unwrap_or_else(Found::Problem))?;
                }
                Ok(())
            },
            &mut tell,
        )?;
        records.report_unread(&mut tell)
    }

    /// Why tiedot would not find an id at its place.
    fn misplaced(
        &self,
        partition: u32,
        bucket: u64,
        entry: &Entry,
        earlier: &[Entry],
    ) -> Option<String> {
        let Collection { partitions, sizes, .. } = self.collection;
        let id = entry.key;
        if id < 0 || sizes.first_bucket(id) != bucket {
            return Some(format!("the id {id} does not belong to bucket {bucket}"));
        }
        if id % i64::from(*partitions) != i64::from(partition) {
            return Some(format!(
                "the id {id} does not belong to this partition: is the number of partitions {partitions}?"
            ));
        }
        let is_twice = earlier.iter().any(|other| other.key == id);
        is_twice
            .then(|| format!("the id {id} stands twice in the table of ids: the first is taken"))
    }

    /// The document of an entry.
    fn document(
        &self,
        ids_name: &str,
        records_name: &str,
        entry: &Entry,
        records: &mut Records<'_>,
    ) -> Result<std::result::Result<Found, Problem>> {
        let Entry { key: id, value, offset } = *entry;
        let bytes = match records.read(value)? {
            Ok(bytes) => bytes,
            Err(reason) => {
                let message =
                    format!("the id {id} leads to byte {value} of {records_name}, {reason}");
                return Ok(Err(Problem { file: ids_name.to_owned(), offset, message }));
            }
        };
        let text = std::str::from_utf8(bytes.trim_ascii_end()).map_err(|_| "not UTF-8".to_owned());
        let document = text.and_then(|text| read_document(text, 1, &self.shape, false));
        Ok(match document {
            Ok(document) => {
                let (text, bytes) = (document.text.into_owned(), bytes.len() as u64);
                Ok(Found::Document { id, text, bytes })
            }
            Err(reason) => Err(Problem {
                file: records_name.to_owned(),
                offset: u64::try_from(value).unwrap_or(0),
                message: format!("the document {id} is half written or damaged: {reason}"),
            }),
        })
    }

    /// Reports files of records that belong to no partition.
    fn files_beyond(&self, visit: &mut dyn FnMut(Found) -> Result<()>) -> Result<()> {
        let Collection { path, partitions, .. } = self.collection;
        let failed = |error| Error::io(&path.display().to_string(), error);
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix("dat_").and_then(|number| number.parse::<u32>().ok());
            if number.is_some_and(|number| number >= *partitions) {
                let message = format!("is of none of the {partitions} partitions");
                visit(Found::Problem(Problem {
                    file: self.display_text(&name),
                    offset: 0,
                    message,
                }))?;
            }
        }
        Ok(())
    }

    /// Opens a file of the collection; a missing one is reported.
    fn open(&self, name: &str, visit: &mut dyn FnMut(Found) -> Result<()>) -> Result<Option<File>> {
        let path: &Path = &self.collection.path.join(name);
        match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = "is missing, with the documents that it had".to_owned();
                visit(Found::Problem(Problem {
                    file: self.display_text(name),
                    offset: 0,
                    message,
                }))?;
                Ok(None)
            }
            Err(error) => Err(Error::io(&path.display().to_string(), error)),
        }
    }

    fn display_text(&self, file: &str) -> String {
        format!("{}/{file}", self.collection.name)
    }
}
