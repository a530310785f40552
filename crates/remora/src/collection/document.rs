//! A document with its id, and the version of one.

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use super::DocumentId;
use crate::{Error, Result};

/// A document with its id.
///
/// ```
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let books = db.collection("books")?;
/// let id = books.insert(&json!({"title": "Reefs", "year": 2015}))?;
/// for document in books.find("year = 2015").run()?.documents {
///     assert_eq!((document.id, &document.doc["title"]), (id, &json!("Reefs")));
/// }
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Document<K: DocumentId = i64> {
    /// The id.
    pub id: K,
    /// The document.
    pub doc: Json,
}

/// The version of a document: the hash of its text. SQL that rewrites a document may change the
/// form of its text, and so its version.
///
/// ```
/// use remora::Error;
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let books = db.collection("books")?;
/// let id = books.insert(&json!({"n": 1}))?;
/// let (_, version) = books.get_versioned(id)?.ok_or(Error::Closed)?;
/// let newer = books.replace_if(id, version, &json!({"n": 2}))?;
/// assert!(newer != version);
/// let late = books.replace_if(id, version, &json!({"n": 3}));
/// assert!(matches!(late, Err(Error::Changed(_))));
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub u64);

impl Version {
    /// The version of a document with this text.
    pub(crate) fn of(text: &str) -> Self {
        Self(xxh3_64(text.as_bytes()))
    }
}

impl<K: DocumentId> Document<K> {
    /// Deserializes the document. Cost: a copy of what `T` takes.
    ///
    /// ```
    /// # let birds = remora::Database::in_memory()?.collection("birds")?;
    /// #[derive(serde::Deserialize)]
    /// struct Bird {
    ///     name: String,
    /// }
    /// birds.insert_json(r#"{"name": "Heron"}"#)?;
    /// for document in birds.all().run()?.documents {
    ///     assert_eq!(document.deserialize::<Bird>()?.name, "Heron");
    /// }
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] with the id and the reason.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.doc)
            .map_err(|error| Error::request(format!("document {}: {error}", self.id)))
    }
}
