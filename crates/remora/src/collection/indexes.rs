//! Indexes of paths into a collection's documents.

use std::collections::HashSet;

use remora_engine::{Definition, PathDef, Reader, Schema};

use super::{Collection, DOC_PLACE, DocumentId};
use crate::{Error, Field, Paths, Result};

/// An index of a collection.
#[derive(Clone, Debug, PartialEq)]
pub struct PathIndex {
    /// The path.
    pub path: Field,
    /// Further paths, which are indexed together with it.
    pub further: Vec<Field>,
    /// What is indexed of them.
    pub kind: IndexKind,
    /// Whether searches use it: all documents that were there before it was made are in it.
    pub is_ready: bool,
    /// Whether no two documents have the same value there.
    pub is_unique: bool,
}

/// What is indexed of what paths lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// The values, in their order.
    Values,
    /// What stands in the texts.
    Texts,
}

impl PathIndex {
    /// Whether it is of the values of one path.
    pub fn is_plain(&self) -> bool {
        self.further.is_empty() && self.kind == IndexKind::Values
    }
}

/// As [`FindPlan::indexes`] has it.
impl std::fmt::Display for PathIndex {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paths = std::iter::once(&self.path).chain(&self.further);
        out.write_str(&shown(self.kind, paths.map(Field::names)))
    }
}

/// An index as a plan names it.
pub(super) fn shown<'p>(kind: IndexKind, paths: impl Iterator<Item = &'p [String]>) -> String {
    let paths: Vec<String> = paths.map(|names| names.join(".")).collect();
    let paths = paths.join(", ");
    match kind {
        IndexKind::Values => paths,
        IndexKind::Texts => format!("texts of {paths}"),
    }
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
    /// Several paths are indexed together: in the order of the first, then of the second, and so on, up to 32. Such an index
    /// answers lists of values for the first paths and a range of the next at once, and gives documents in the order of all
    /// its paths, each in either direction, or of the last ones where the condition names a value for each of the first.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let books = db.collection("books")?;
    /// books.index(["author.name", "year"])?;
    /// books.insert_json(r#"{"title": "Reef", "year": 1999, "author": {"name": "Ann"}}"#)?;
    /// let ann = books.find("author.name = 'Ann' AND year > 1990").sort_by_desc("year").limit(10);
    /// let plan = ann.explain()?;
    /// assert_eq!((plan.indexes[0].as_str(), plan.order.as_deref()), ("author.name, year", Some("author.name, year")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Through arrays a document has an entry for each combination of its values. One with more than 1,000, or with more
    /// than 64 KiB of them, is in every answer of such an index, and as long as there is one what is found is read and tested:
    /// one that was deleted or replaced too, until what was written with it is merged.
    ///
    /// # Errors
    /// [`crate::Error::Request`] if there are 64 indexes, a path is too long, none is given or one twice;
    /// [`crate::Error::NotFound`] if the collection was dropped, [`crate::Error::Full`], [`crate::Error::ReadOnly`], [`crate::Error::Busy`] or [`crate::Error::Closed`] if it cannot be written.
    pub fn index(&self, paths: impl Into<Paths>) -> Result<bool> {
        let path = values_of(paths.into())?;
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

    /// Indexes the texts that these paths lead to, those within an array there too, so that searches that ask what
    /// stands in them ([`crate::Filter::matches`]) read no documents; says whether they were not indexed before. It returns
    /// at once, and the documents that are there are indexed in the background, as with [`Collection::index`]. Of
    /// values that are no texts it knows only which documents have some. One index answers for all its paths at once, and for fewer of them finds
    /// documents that are then read and tested; so paths that are asked alone are best indexed alone.
    ///
    /// Cost: about as many bytes on disk as the texts have, and the time of a table's text index at each write.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let books = db.collection("books")?;
    /// books.index_text(["title", "chapters.text"])?;
    /// books.insert_json(r#"{"title": "The Coral Reef", "chapters": [{"text": "Fish of the sea"}]}"#)?;
    /// assert_eq!(books.find("(title, chapters.text) MATCHES 'coral reef'").count()?, 1);
    /// assert_eq!(books.find("chapters.text MATCHES 'FISH'").count()?, 1);
    /// let plan = books.find("(title, chapters.text) MATCHES 'sea'").explain()?;
    /// assert_eq!((plan.indexes.as_slice(), plan.is_exact), (&["texts of title, chapters.text".to_owned()][..], true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Request`] if no path is given, one twice, or more than 32; those of [`Collection::index`].
    pub fn index_text(&self, paths: impl Into<Paths>) -> Result<bool> {
        let texts = texts_of(paths.into())?;
        self.define(|paths| {
            let is_new = !paths.iter().any(|one| one.is_along(&texts));
            if is_new {
                paths.push(texts);
            }
            is_new
        })
    }

    /// Drops the index of the texts of these paths, in whatever order they are given; says whether there was one.
    ///
    /// # Errors
    /// Those of [`Collection::index_text`].
    pub fn drop_index_text(&self, paths: impl Into<Paths>) -> Result<bool> {
        let texts = texts_of(paths.into())?;
        self.define(|paths| {
            let before = paths.len();
            paths.retain(|one| !one.is_along(&texts));
            paths.len() < before
        })
    }

    fn is_indexed(&self, path: &PathDef) -> Result<bool> {
        let schema = self.handle.engine.schema(&self.name)?;
        Ok(schema.paths.iter().any(|one| one.is_along(path)))
    }

    /// Drops the index of a path, or of several that are indexed together in this order; says whether there was one.
    ///
    /// # Errors
    /// Those of [`Collection::index`].
    pub fn drop_index(&self, paths: impl Into<Paths>) -> Result<bool> {
        let path = values_of(paths.into())?;
        self.define(|paths| {
            let before = paths.len();
            paths.retain(|one| !one.is_along(&path));
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

fn texts_of(paths: Paths) -> Result<PathDef> {
    let names = paths.into_names();
    // As indexes of texts are compared, one of a path twice is that of the path.
    let distinct = names.iter().collect::<HashSet<_>>().len();
    if distinct < names.len() {
        return Err(Error::request("a path is given twice for one index of texts"));
    }
    PathDef::of_texts(DOC_PLACE, names).ok_or_else(no_path)
}

fn values_of(paths: Paths) -> Result<PathDef> {
    PathDef::together(DOC_PLACE, paths.into_names()).ok_or_else(no_path)
}

fn no_path() -> Error {
    Error::request("no path is given that is to be indexed")
}

/// The indexes of a collection at one moment.
pub(super) fn paths_of(reader: &Reader, collection: &str) -> Result<Vec<PathIndex>> {
    let (schema, ready) = (reader.schema(collection)?, reader.ready_paths(collection)?);
    let index = |(place, path): (usize, &PathDef)| {
        let further = path.further.iter().map(|names| Field { parts: names.clone() });
        PathIndex {
            path: Field { parts: path.names.clone() },
            further: further.collect(),
            kind: if path.texts { IndexKind::Texts } else { IndexKind::Values },
            is_ready: ready.contains(&place),
            is_unique: path.unique,
        }
    };
    Ok(schema.paths.iter().enumerate().map(index).collect())
}

/// How a search is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindPlan {
    /// The indexes that find documents, by their paths: `author.name, year`; those of texts as `texts of title, body`.
    /// Without any all documents are read.
    pub indexes: Vec<String>,
    /// Whether what they find is the answer; if not, each document that they find is read and tested.
    pub is_exact: bool,
    /// The index that gives the order, by its paths, so that no documents are read but those of the page.
    pub order: Option<String>,
}
