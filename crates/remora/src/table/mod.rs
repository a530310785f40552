//! Tables: rows by key, and searches.

mod define;
pub(crate) mod encode;
mod search;

use std::sync::Arc;

use remora_engine::{Change, Schema, Value};
use serde::{Serialize, de::DeserializeOwned};

pub use define::TableBuilder;
pub use search::{Facet, Found, FoundRow, Search};

use crate::{
    Error, IntoKey, Result,
    handle::Handle,
    row::{Row, columns_of},
};

/// A table of a database: rows by key, and searches. It is cheap to clone and can be used from all
/// threads.
///
/// Rows are structs whose fields are the columns; a column without a field is NULL. A write returns
/// when it is visible to all and durable, according to [`Options::durability`](crate::Options).
/// A row takes at most 64 MiB. Tables that SQL created can be read here. They can only be written with SQL, which
/// enforces what it declares.
///
/// ```
/// use remora::{Database, field};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Deserialize, Serialize, PartialEq)]
/// struct Bird {
///     id: u32,
///     name: String,
///     habitat: String,
/// }
///
/// let db = Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.uint("id").key().text("name").short_text("habitat"))?;
/// let bird = |id, name: &str, habitat: &str| Bird { id, name: name.into(), habitat: habitat.into() };
/// birds.insert(&bird(1, "Common kingfisher", "rivers"))?;
/// birds.insert_many([bird(2, "Belted kingfisher", "lakes"), bird(3, "Reef heron", "coasts")])?;
///
/// let found = birds.search("KINGFISH").filter("habitat = 'rivers'").facet("habitat").run()?;
/// assert_eq!((found.total, found.facets[0].values[0].1), (1, 1));
/// assert_eq!(found.deserialize::<Bird>()?, [bird(1, "Common kingfisher", "rivers")]);
/// assert_eq!(birds.all().filter(field("id").at_least(2)).order_by("habitat").run()?.total, 2);
///
/// assert_eq!(birds.get_as::<Bird>(3)?, Some(bird(3, "Reef heron", "coasts")));
/// assert!(birds.delete(3)?);
/// assert_eq!(birds.count()?, 2);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone)]
pub struct Table {
    pub(crate) handle: Arc<Handle>,
    pub(crate) name: Arc<str>,
}

impl Table {
    pub(crate) fn new(handle: Arc<Handle>, name: &str) -> Result<Self> {
        handle.engine.schema(name)?;
        Ok(Self { handle, name: name.into() })
    }

    /// The name of the table.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// assert_eq!(db.create_table("birds", |t| t.int("id").key())?.name(), "birds");
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether SQL created it, so that only SQL can write it. Cost: a look-up in memory.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.execute("CREATE TABLE birds (id INT PRIMARY KEY)", [])?;
    /// let birds = db.table("birds")?;
    /// assert!(birds.is_of_sql()? && birds.insert(&serde_json::json!({"id": 1})).is_err());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if the table was dropped, [`Error::Closed`] if the database was closed.
    pub fn is_of_sql(&self) -> Result<bool> {
        Ok(self.handle.engine.schema(&self.name)?.declared.is_some())
    }

    /// Inserts a row. No row with its key may exist. Cost: some microseconds, and a sync.
    ///
    /// ```
    /// #[derive(serde::Serialize)]
    /// struct Bird<'b> {
    ///     id: u32,
    ///     name: &'b str,
    /// }
    /// # let db = remora::Database::in_memory()?;
    /// let birds = db.create_table("birds", |t| t.uint("id").key().text("name"))?;
    /// birds.insert(&Bird { id: 1, name: "Heron" })?;
    /// let again = birds.insert(&Bird { id: 1, name: "Kite" });
    /// assert!(matches!(again, Err(remora::Error::Exists(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Exists`]: a row with this key exists.
    /// - [`Error::Request`]: a field is not a column or does not fit it, or a required column is
    ///   NULL.
    /// - [`Error::NotFound`]: the table was dropped.
    /// - [`Error::Full`], [`Error::ReadOnly`], [`Error::Busy`] or [`Error::Closed`]: it cannot be written.
    pub fn insert<T: Serialize + ?Sized>(&self, row: &T) -> Result<()> {
        self.write([row], Change::Insert).map(drop)
    }

    /// Inserts rows in one durable step: all of them or none. Returns their number. Cost: some microseconds for each
    /// row, and one sync.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.uint("id").key().text("name"))?;
    /// let rows = (1..=1_000).map(|id| serde_json::json!({"id": id, "name": format!("Bird {id}")}));
    /// assert_eq!(birds.insert_many(rows)?, 1_000);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Table::insert`]; [`Error::Request`] for more than a million rows.
    pub fn insert_many<T: Serialize>(&self, rows: impl IntoIterator<Item = T>) -> Result<u64> {
        self.write(rows, Change::Insert)
    }

    /// Inserts a row, or replaces the row with its key. Cost: that of an insert.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.uint("id").key().text("name"))?;
    /// birds.upsert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// birds.upsert(&serde_json::json!({"id": 1, "name": "Grey heron"}))?;
    /// assert_eq!(birds.get_as::<(u32, String)>(1)?, Some((1, "Grey heron".to_owned())));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Table::insert`] except [`Error::Exists`].
    pub fn upsert<T: Serialize + ?Sized>(&self, row: &T) -> Result<()> {
        self.write([row], Change::Put).map(drop)
    }

    /// Inserts or replaces rows in one durable step. If a key occurs several times, the last row
    /// wins. Returns the number of rows. Cost: some microseconds for each row, and one sync.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.uint("id").key().text("name"))?;
    /// let named = |id: u32, name: &str| serde_json::json!({"id": id, "name": name});
    /// birds.upsert_many([named(1, "Heron"), named(2, "Kite"), named(1, "Grey heron")])?;
    /// assert_eq!((birds.count()?, birds.search("grey").count()?), (2, 1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Table::upsert`]; [`Error::Request`] for more than a million rows.
    pub fn upsert_many<T: Serialize>(&self, rows: impl IntoIterator<Item = T>) -> Result<u64> {
        self.write(rows, Change::Put)
    }

    fn write<T: Serialize>(
        &self,
        rows: impl IntoIterator<Item = T>,
        change: fn(Vec<Value>) -> Change,
    ) -> Result<u64> {
        let schema = self.handle.writable(&self.name)?;
        let changes: Result<Vec<Change>> =
            rows.into_iter().map(|row| Ok(change(encode::row(&row, &schema)?))).collect();
        let changes = changes?;
        let count = changes.len() as u64;
        if count > 0 {
            self.handle.apply(&self.name, changes)?;
        }
        Ok(count)
    }

    /// Deletes the row with this key. Returns whether it existed. Cost: a look-up of the key, and a sync.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let visits = db.create_table("visits", |t| t.short_text("place").key().int("year").key())?;
    /// visits.insert(&serde_json::json!({"place": "reef", "year": 2015}))?;
    /// assert!(visits.delete(("reef", 2015))?);
    /// assert!(!visits.delete(("reef", 2015))?);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Table::get`], and those of [`Table::insert`] except [`Error::Exists`].
    pub fn delete(&self, key: impl IntoKey) -> Result<bool> {
        self.handle.writable(&self.name)?;
        self.handle.delete(&self.name, &key.into_key())
    }

    /// The row with this key: one value, or a tuple with a value for each column of the key. Cost:
    /// a microsecond if all columns are short, else a read of the row store.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.uint("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// if let Some(bird) = birds.get(1)? {
    ///     assert_eq!(bird.get::<String>("name")?, "Heron");
    /// }
    /// assert!(birds.get(2)?.is_none());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Request`]: it is not a valid key of the table.
    /// - [`Error::NotFound`]: the table was dropped.
    /// - [`Error::Corrupt`], [`Error::Io`] or [`Error::Closed`]: it cannot be read.
    pub fn get(&self, key: impl IntoKey) -> Result<Option<Row>> {
        let reader = self.handle.engine.reader();
        let schema = reader.schema(&self.name)?;
        let row = reader.get(&self.name, &key.into_key())?;
        Ok(row.map(|values| shown(&schema, values)))
    }

    /// The row with this key, deserialized. Cost: that of [`Table::get`].
    ///
    /// ```
    /// #[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
    /// struct Bird {
    ///     id: u32,
    ///     name: Option<String>,
    /// }
    /// # let db = remora::Database::in_memory()?;
    /// let birds = db.create_table("birds", |t| t.uint("id").key().text("name"))?;
    /// birds.insert(&Bird { id: 1, name: None })?;
    /// assert_eq!(birds.get_as(1)?, Some(Bird { id: 1, name: None }));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Table::get`], and [`Error::Request`] if the row cannot be deserialized as `T`.
    pub fn get_as<T: DeserializeOwned>(&self, key: impl IntoKey) -> Result<Option<T>> {
        self.get(key)?.map(|row| row.deserialize()).transpose()
    }

    /// The exact number of rows. Cost: reads no row.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.uint("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// assert_eq!(birds.count()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if the table was dropped, [`Error::Closed`] if the database was closed.
    pub fn count(&self) -> Result<u64> {
        Ok(self.handle.engine.reader().row_count(&self.name)?)
    }

    /// Calls `visit` with all rows as of one moment, in the order of keys, until it returns an
    /// error. Cost: a read of the row store for each row, one row in memory at a time.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.uint("id").key().text("name"))?;
    /// birds.insert_many([2, 1].map(|id| serde_json::json!({"id": id, "name": "Heron"})))?;
    /// let mut ids = Vec::new();
    /// birds.for_each(|row| {
    ///     ids.push(row.get::<u32>("id")?);
    ///     Ok(())
    /// })?;
    /// assert_eq!(ids, [1, 2]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Table::get`], and the error of `visit`.
    pub fn for_each(&self, mut visit: impl FnMut(Row) -> Result<()>) -> Result<()> {
        let schema = self.handle.engine.schema(&self.name)?;
        let mut failed = None;
        let scanned = self.handle.engine.scan(&self.name, &mut |values| {
            visit(shown(&schema, values)).map_err(|error: Error| {
                failed = Some(error);
                remora_engine::Error::Closed
            })
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(scanned.map(drop)?),
        }
    }

    /// A search for a text: rows that contain it in one of their searchable columns, also within
    /// words, in any script and ignoring case.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.uint("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Common kingfisher 翡翠"}))?;
    /// for text in ["KINGFISHER", "ngfish", "翠"] {
    ///     assert_eq!(birds.search(text).count()?, 1);
    /// }
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn search(&self, text: &str) -> Search {
        Search::new(Arc::clone(&self.handle), &self.name, Some(text))
    }

    /// A search of all rows, which can be filtered, sorted and counted.
    pub fn all(&self) -> Search {
        Search::new(Arc::clone(&self.handle), &self.name, None)
    }
}

/// A row of the engine without its hidden columns.
pub(crate) fn shown(schema: &Schema, values: Vec<Value>) -> Row {
    let columns = columns_of(schema);
    if columns.len() == values.len() {
        return Row::new(columns, values);
    }
    let shown = values.into_iter().enumerate().filter(|(place, _)| !schema.is_hidden(*place));
    Row::new(columns, shown.map(|(_, value)| value).collect())
}
