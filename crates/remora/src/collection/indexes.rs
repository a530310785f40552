//! Indexes of paths into a collection's documents.

use remora_engine::{Definition, PathDef, Reader, Schema};

use super::{Collection, DOC_PLACE, DocumentId};
use crate::{Error, Field, Result};

/// An index of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct PathIndex {
    /// The path.
    pub path: Field,
    /// Whether searches use it: all documents that were there before it was made are in it.
    pub is_ready: bool,
    /// Whether no two documents have the same value there.
    pub is_unique: bool,
}

impl<K: DocumentId> Collection<K> {
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
        let path = PathDef::new(DOC_PLACE, path.into().parts);
        self.define(|paths| {
            let is_new = !paths.iter().any(|one| one.is_along(&path));
            if is_new {
                paths.push(path);
            }
            is_new
        })
    }

    /// Indexes what a path leads to, and lets no two documents have the same number, text or truth there from now on,
    /// whoever writes them; within arrays each value counts, and one document may have it several times. What has
    /// nothing there, null, an object or an array within an array is not compared. Says whether it was not unique before.
    ///
    /// It returns when all documents that are there are indexed and compared, while others are read and written; then
    /// writes wait for a last look at all values, some 100 ns each. Where two documents have the same value the path is
    /// as it was before. A process that ends meanwhile leaves an index that is not unique.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let users = db.collection("users")?;
    /// users.index_unique("email")?;
    /// let ann = users.insert_json(r#"{"email": "ann@example.org"}"#)?;
    /// let again = users.insert_json(r#"{"email": "ann@example.org"}"#);
    /// assert!(again.is_err_and(|it| matches!(it, remora::Error::Exists(_))));
    /// users.delete(ann)?;
    /// users.insert_json(r#"{"email": "ann@example.org"}"#)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Exists`] names the path, a value and the ids of two documents that have it; those of
    /// [`Collection::index`].
    pub fn index_unique(&self, path: impl Into<Field>) -> Result<bool> {
        let path = PathDef::new(DOC_PLACE, path.into().parts);
        let schema = self.handle.writable(&self.name)?;
        if schema.paths.iter().any(|one| one.unique && one.is_along(&path)) {
            return Ok(false);
        }
        let is_new = self.index(Field { parts: path.names.clone() })?;
        let made = self.make_unique(&path);
        if made.is_err() && is_new {
            // What was wrong before is told. Somebody else may have made it unique meanwhile.
            let _ = self.define(|paths| {
                let before = paths.len();
                paths.retain(|one| one.unique || !one.is_along(&path));
                paths.len() < before
            });
        }
        made
    }

    /// Makes an index unique once all documents are in it; says whether it was not.
    fn make_unique(&self, path: &PathDef) -> Result<bool> {
        loop {
            let engine = &self.handle.engine;
            engine.wait_for_path(&self.name, path)?;
            let checked = engine.reader().check_unique(&self.name, path);
            let made = checked.map_err(Error::from).and_then(|()| {
                self.try_define(|paths| match paths.iter_mut().find(|one| one.is_along(path)) {
                    Some(one) => Ok(!std::mem::replace(&mut one.unique, true)),
                    None => {
                        let message = "the index was dropped while it was made unique";
                        Err(Error::conflict(message))
                    }
                })
            });
            // Documents came meanwhile that are not indexed yet.
            if !matches!(made, Err(Error::Conflict(_))) || !self.is_indexed(path)? {
                return made;
            }
        }
    }

    fn is_indexed(&self, path: &PathDef) -> Result<bool> {
        let schema = self.handle.engine.schema(&self.name)?;
        Ok(schema.paths.iter().any(|one| one.is_along(path)))
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
        self.try_define(|paths| Ok(change(paths)))
    }

    fn try_define(&self, change: impl FnOnce(&mut Vec<PathDef>) -> Result<bool>) -> Result<bool> {
        let _alone = self.handle.definitions.lock();
        let schema = self.handle.writable(&self.name)?;
        if !super::is_collection::<K>(&schema) {
            return Err(super::other_row());
        }
        let mut schema = Schema::clone(&schema);
        if !change(&mut schema.paths)? {
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
        let field = Field { parts: path.names.clone() };
        PathIndex { path: field, is_ready: ready.contains(&place), is_unique: path.unique }
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
