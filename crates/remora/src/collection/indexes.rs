//! Indexes of paths into a collection's documents.

use remora_engine::{Definition, PathDef, Reader, Schema};

use super::{Collection, DOC_PLACE};
use crate::{Field, Result};

/// An index of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct PathIndex {
    /// The path.
    pub path: Field,
    /// Whether searches use it: all documents that were there before it was made are in it.
    pub is_ready: bool,
}

impl Collection {
    /// Indexes what a path leads to, so that searches that ask for it read no other documents; says whether it was
    /// not indexed before. It returns at once: the documents that are there are indexed in the background, while others
    /// are read and written, and searches use the index when all of them are. Cost: some bytes a value on disk and in
    /// memory, and some 100 ns a value at each write.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let books = db.collection("books")?;
    /// books.index("year")?;
    /// books.insert_json(r#"{"title": "Reef", "year": 1999, "tags": ["sea"]}"#)?;
    /// assert_eq!(books.find("year BETWEEN 1990 AND 1999").count()?, 1);
    /// assert_eq!(books.find("year > 1990").explain()?.indexes, ["year"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Request`] if there are 64 indexes or the path is too long, [`crate::Error::NotFound`] if the collection was
    /// dropped, [`crate::Error::Full`], [`crate::Error::ReadOnly`], [`crate::Error::Busy`] or [`crate::Error::Closed`] if it cannot be written.
    pub fn index(&self, path: impl Into<Field>) -> Result<bool> {
        let path = PathDef { column: DOC_PLACE, names: path.into().parts };
        self.define(|paths| {
            let is_new = !paths.contains(&path);
            if is_new {
                paths.push(path);
            }
            is_new
        })
    }

    /// Drops the index of a path; says whether there was one.
    ///
    /// # Errors
    /// Those of [`Collection::index`].
    pub fn drop_index(&self, path: impl Into<Field>) -> Result<bool> {
        let names = path.into().parts;
        self.define(|paths| {
            let before = paths.len();
            paths.retain(|path| path.names != names);
            paths.len() < before
        })
    }

    /// The indexes, in the order in which they were made.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if the collection was dropped, [`crate::Error::Closed`] if the database was closed.
    pub fn indexes(&self) -> Result<Vec<PathIndex>> {
        paths_of(&self.handle.engine.reader(), &self.name)
    }

    /// Changes the paths; says what `change` does, which is whether it did.
    fn define(&self, change: impl FnOnce(&mut Vec<PathDef>) -> bool) -> Result<bool> {
        let _alone = self.handle.definitions.lock();
        let schema = self.handle.writable(&self.name)?;
        if !super::is_collection(&schema) {
            return Err(super::other_row());
        }
        let mut schema = Schema::clone(&schema);
        if !change(&mut schema.paths) {
            return Ok(false);
        }
        let definition = Definition::Alter { schema, fills: Vec::new() };
        self.handle.engine.define(vec![definition], Vec::new())?;
        Ok(true)
    }
}

/// The indexes of a collection at one moment.
pub(super) fn paths_of(reader: &Reader, collection: &str) -> Result<Vec<PathIndex>> {
    let (schema, ready) = (reader.schema(collection)?, reader.ready_paths(collection)?);
    let index = |(place, path): (usize, &PathDef)| {
        let path = Field { parts: path.names.clone() };
        PathIndex { path, is_ready: ready.contains(&place) }
    };
    Ok(schema.paths.iter().enumerate().map(index).collect())
}

/// How a search is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindPlan {
    /// The paths whose indexes find documents. Without any all documents are read.
    pub indexes: Vec<String>,
    /// Whether what they find is the answer; if not, each document that they find is read and tested.
    pub is_exact: bool,
    /// The path whose index gives the order, so that no documents are read but those of the page.
    pub order: Option<String>,
}
