//! Indexes of paths into a collection's documents.

use std::collections::HashSet;

use remora_engine::{Definition, PathDef, Reader, Schema};

use super::{Collection, DOC_PLACE, DocumentId};
use crate::{Error, Field, Paths, Result};

/// An index of a collection.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// let books = db.collection("books")?;
/// books.index("year")?;
/// books.index_text(["title", "author.name"])?;
/// let indexes = books.indexes()?;
/// let shown: Vec<String> = indexes.iter().map(|index| index.to_string()).collect();
/// assert_eq!(shown, ["year", "texts of title, author.name"]);
/// assert!(indexes[0].is_plain() && !indexes[1].is_plain());
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PathIndex {
    /// The first path.
    pub path: Field,
    /// The other paths of an index of several paths.
    pub further: Vec<Field>,
    /// What is indexed.
    pub kind: IndexKind,
    /// Whether searches use it, because it contains all documents that existed before it was
    /// created.
    pub is_ready: bool,
    /// Whether it is unique: no two documents have the same value at the path, or the same values at all paths.
    pub is_unique: bool,
}

/// What an index contains of the values at its paths.
///
/// ```
/// use remora::IndexKind;
///
/// let db = remora::Database::in_memory()?;
/// let books = db.collection("books")?;
/// books.index("year")?;
/// books.index_text("title")?;
/// let kinds: Vec<IndexKind> = books.indexes()?.iter().map(|index| index.kind).collect();
/// assert_eq!(kinds, [IndexKind::Values, IndexKind::Texts]);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// The values, sorted.
    Values,
    /// The contents of texts, for MATCHES.
    Texts,
}

impl PathIndex {
    /// Whether it indexes the values of a single path.
    pub fn is_plain(&self) -> bool {
        self.further.is_empty() && self.kind == IndexKind::Values
    }
}

/// The form that [`FindPlan::indexes`] has.
impl std::fmt::Display for PathIndex {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paths = std::iter::once(&self.path).chain(&self.further);
        out.write_str(&shown(self.kind, paths.map(Field::names)))
    }
}

/// The description of an index in a plan.
pub(super) fn shown<'p>(kind: IndexKind, paths: impl Iterator<Item = &'p [String]>) -> String {
    let paths: Vec<String> = paths.map(|names| names.join(".")).collect();
    let paths = paths.join(", ");
    match kind {
        IndexKind::Values => paths,
        IndexKind::Texts => format!("texts of {paths}"),
    }
}

impl<K: DocumentId> Collection<K> {
    /// Indexes the values at a path, so that searches with conditions on it read only matching
    /// documents. Returns whether the path was not indexed before. It returns at once: existing
    /// documents are indexed in the background, concurrently with reads and writes, and searches
    /// use the index once it contains all of them. Cost: some bytes per value on disk and in
    /// memory, and about 100 ns per value for each write.
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
    /// Several paths, up to 32, can be indexed together: sorted by the first, then by the second,
    /// and so on. Such an index answers lists of values for the first paths and a range of the next
    /// path at once. It also provides the order of all its paths, each ascending or descending, or
    /// that of its last paths if the condition requires one value for each of the paths before.
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
    /// If paths lead through arrays, a document has an entry for each combination of its values. A
    /// document with more than 1,000 entries, or more than 64 KiB of them, is contained in every
    /// result of such an index. While there is such a document, all results of the index are read
    /// and tested, also after it was deleted or replaced, until the segment in which it was written
    /// has been merged.
    ///
    /// # Errors
    /// [`crate::Error::Request`] if there are 64 indexes already, a path is too long, or no path or
    /// the same path twice is given; [`crate::Error::NotFound`] if the collection was dropped;
    /// [`crate::Error::Full`], [`crate::Error::ReadOnly`], [`crate::Error::Busy`] or
    /// [`crate::Error::Closed`] if it cannot be written.
    pub fn index(&self, paths: impl Into<Paths>) -> Result<bool> {
        self.index_values(values_of(paths.into())?)
    }

    fn index_values(&self, path: PathDef) -> Result<bool> {
        self.define(|paths| {
            let is_new = !paths.iter().any(|one| one.is_along(&path));
            if is_new {
                paths.push(path);
            }
            is_new
        })
    }

    /// Indexes the values at a path as unique: from now on no two documents can have the same
    /// number, text or boolean there, whoever writes them. Each value in an array counts, and one
    /// document may have a value several times. Missing values, null, objects and nested arrays are
    /// not compared. Returns whether the path was not unique before.
    ///
    /// It returns when all existing documents are indexed and compared, concurrently with reads and
    /// writes. At the end writes wait for a final check of all values, about 100 ns each. If two
    /// documents have the same value, the path is as it was before. If the process ends in the
    /// meantime, an index that is not unique may remain.
    ///
    /// Several paths, up to 32, can be unique together: no two documents can have the same combination
    /// of values. A document that lacks a number, text or boolean at one of the paths is not compared.
    /// Through arrays, each combination of a document's elements counts. A document with more than
    /// 1,000 combinations, or more than 64 KiB of them, is refused then. The index serves searches as
    /// that of [`Collection::index`] does. Cost: that of [`Collection::index`], and for each written value a look-up in
    /// the index of each segment, under a microsecond.
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
    /// users.index_unique(["team", "number"])?;
    /// users.insert_json(r#"{"team": "red", "number": 7}"#)?;
    /// assert!(users.insert_json(r#"{"team": "red", "number": 7}"#).is_err());
    /// users.insert_json(r#"{"team": "blue", "number": 7}"#)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Exists`] with the path, a value and the ids of two documents that have it;
    /// those of [`Collection::index`].
    pub fn index_unique(&self, paths: impl Into<Paths>) -> Result<bool> {
        let path = values_of(paths.into())?;
        let schema = self.handle.engine.schema(&self.name)?;
        if schema.paths.iter().any(|one| one.unique && one.is_along(&path)) {
            return Ok(false);
        }
        let is_new = self.index_values(path.clone())?;
        let made = self.make_unique(&path);
        if made.is_err() && is_new {
            // The earlier error is reported. Another caller may have made the index unique in the
            // meantime.
            let _ = self.define(|paths| {
                let before = paths.len();
                paths.retain(|one| one.unique || !one.is_along(&path));
                paths.len() < before
            });
        }
        made
    }

    /// Makes an index unique once it contains all documents. Returns whether it was not unique
    /// before.
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
            // Documents that are not indexed yet were written in the meantime.
            if !matches!(made, Err(Error::Conflict(_))) || !self.is_indexed(path)? {
                return made;
            }
        }
    }

    /// Indexes the texts at these paths, and texts in arrays there, so that searches for their
    /// contents ([`crate::Filter::matches`]) read no documents. Returns whether they were not
    /// indexed before. It returns at once, and existing documents are indexed in the background, as
    /// by [`Collection::index`]. Of values that are not texts it only records which documents have
    /// some. One index answers searches of all its paths together exactly. For fewer paths, the
    /// documents that it finds are read and tested; so a path that is searched alone is best
    /// indexed alone.
    ///
    /// Cost: about as many bytes on disk as the texts have, and for each write the time of a
    /// table's text index.
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
    /// [`crate::Error::Request`] if no path, the same path twice or more than 32 paths are given;
    /// those of [`Collection::index`].
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

    /// Drops the text index of these paths, given in any order. Returns whether it existed. Cost: a sync; no document
    /// is rewritten.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.index_text(["title", "chapters.text"])?;
    /// assert!(books.drop_index_text(["chapters.text", "title"])?);
    /// assert!(!books.drop_index_text("title")?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::index_text`].
    pub fn drop_index_text(&self, paths: impl Into<Paths>) -> Result<bool> {
        self.drop_path(&texts_of(paths.into())?)
    }

    fn is_indexed(&self, path: &PathDef) -> Result<bool> {
        let schema = self.handle.engine.schema(&self.name)?;
        Ok(schema.paths.iter().any(|one| one.is_along(path)))
    }

    /// Drops the index of a path, or of several paths that are indexed together in this order.
    /// Returns whether it existed. Cost: a sync; no document is rewritten.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.index(["author.name", "year"])?;
    /// assert!(!books.drop_index("year")?); // Another index.
    /// assert!(books.drop_index(["author.name", "year"])?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Collection::index`], and [`crate::Error::Request`] if it belongs to a key that SQL
    /// declared.
    pub fn drop_index(&self, paths: impl Into<Paths>) -> Result<bool> {
        self.drop_path(&values_of(paths.into())?)
    }

    fn drop_path(&self, path: &PathDef) -> Result<bool> {
        #[cfg(feature = "sql")]
        {
            let schema = self.handle.engine.schema(&self.name)?;
            if schema.declared.is_some() && remora_sql::is_declared_path(&schema, path) {
                let kind = if path.texts { IndexKind::Texts } else { IndexKind::Values };
                let message = format!(
                    "a key that SQL declared of {:?} has the index of {}: drop the key with DROP INDEX",
                    self.name,
                    shown(kind, path.paths())
                );
                return Err(Error::request(message));
            }
        }
        self.define(|paths| {
            let before = paths.len();
            paths.retain(|one| !one.is_along(path));
            paths.len() < before
        })
    }

    /// The indexes in the order in which they were created. Cost: a look-up in memory.
    ///
    /// ```
    /// # let books = remora::Database::in_memory()?.collection("books")?;
    /// books.index_unique("isbn")?;
    /// books.index("year")?;
    /// let indexes = books.indexes()?;
    /// assert_eq!((indexes[0].path.to_string().as_str(), indexes[0].is_unique), ("isbn", true));
    /// let building = indexes.iter().filter(|index| !index.is_ready).count();
    /// println!("{building} of {} indexes are being built", indexes.len());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if the collection was dropped, [`crate::Error::Closed`] if the database was closed.
    pub fn indexes(&self) -> Result<Vec<PathIndex>> {
        paths_of(&self.handle.engine.reader(), &self.name)
    }

    /// Changes the indexed paths by `change`, and returns what it returns: whether it changed
    /// something.
    fn define(&self, change: impl FnOnce(&mut Vec<PathDef>) -> bool) -> Result<bool> {
        self.try_define(|paths| Ok(change(paths)))
    }

    fn try_define(&self, change: impl FnOnce(&mut Vec<PathDef>) -> Result<bool>) -> Result<bool> {
        let _alone = self.handle.definitions.lock();
        self.handle.keeper(&self.name)?;
        let schema = self.handle.engine.schema(&self.name)?;
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
    // With a repeated path it would be the same index as without.
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

/// How a search is executed.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// let books = db.collection("books")?;
/// books.index("year")?;
/// let plan = books.find("year > 2000").sort_by("year").explain()?;
/// assert_eq!((plan.indexes, plan.is_exact), (vec!["year".to_owned()], true));
/// let plan = books.find("pages > 100").explain()?;
/// assert!(plan.indexes.is_empty());
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindPlan {
    /// The indexes that find documents, by their paths, such as `author.name, year`, or
    /// `texts of title, body` for a text index. If empty, all documents are read.
    pub indexes: Vec<String>,
    /// Whether the indexes answer the filter exactly. Otherwise each document that they find is
    /// read and tested.
    pub is_exact: bool,
    /// The index that provides the order, by its paths, so that only documents of the page are
    /// read.
    pub order: Option<String>,
}
