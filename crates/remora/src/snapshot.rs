//! All tables and collections as of one moment.

use std::sync::Arc;

use remora_engine::{Reader, ScanRequest};
use serde::de::DeserializeOwned;

use crate::{
    Collection, DocumentId, Error, IntoKey, Moment, Result, Row, Search, Table, handle::Handle,
    table::shown,
};
#[cfg(feature = "sql")]
use crate::{Rows, Value, sql};

/// The rows of a batch of a scan.
const BATCH_ROWS: usize = 1_024;

/// All tables and collections as of one moment: reads by key, searches and statements see the same state, whatever is
/// written in the meantime. Made by [`Database::snapshot`](crate::Database::snapshot). It is cheap to clone and can be used
/// from all threads; statements of it and its clones run one at a time, other reads in parallel. No writer waits for it.
/// While it exists, what it reads is kept: segment files on disk, and rows that were replaced since.
///
/// ```
/// use remora::{Database, params};
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let stock = db.create_table("stock", |t| t.int("id").key().int("pieces").text("name"))?;
/// let orders = db.collection("orders")?;
/// stock.insert(&json!({"id": 1, "pieces": 10, "name": "Reef knot"}))?;
/// let before = db.snapshot()?;
///
/// let mut batch = db.batch();
/// batch.upsert(&stock, &json!({"id": 1, "pieces": 7, "name": "Granny knot"}))?;
/// batch.insert_document(&orders, &json!({"pieces": 3}))?;
/// batch.commit()?;
///
/// assert_eq!(before.get(&stock, 1)?.ok_or("it is there")?.get::<i64>("pieces")?, 10);
/// assert_eq!(before.search(&stock, "reef").count()?, 1);
/// assert_eq!(orders.find("pieces > 0").at(&before.collection(&orders)?).count()?, 0);
/// assert_eq!(before.query("SELECT pieces FROM stock WHERE id = ?", params![1])?.one::<i64>()?, 10);
/// let after = db.snapshot()?;
/// assert_eq!(after.query("SELECT MAX(s.pieces) + SUM(o.doc->'$.pieces') FROM stock s, orders o", [])?.one::<f64>()?, 10.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    handle: Arc<Handle>,
    reader: Reader,
    #[cfg(feature = "sql")]
    session: Arc<OpenSession>,
}

/// The session whose transaction reads the moment.
#[cfg(feature = "sql")]
struct OpenSession {
    handle: Arc<Handle>,
    session: parking_lot::Mutex<Option<remora_sql::Session>>,
}

impl Snapshot {
    pub(crate) fn new(handle: Arc<Handle>) -> Result<Self> {
        // Fails if the database was closed, of which a reader alone says nothing.
        handle.engine.source_position("")?;
        #[cfg(feature = "sql")]
        {
            let mut session = Some(handle.sessions.begin());
            for text in ["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", BEGIN] {
                sql::run_text(&mut session, text)?;
            }
            // The transaction's own moment: another reader would be of another one.
            let reader = session.as_ref().ok_or(Error::Closed)?.reader();
            let session = OpenSession {
                handle: Arc::clone(&handle),
                session: parking_lot::Mutex::new(session),
            };
            Ok(Self { handle, reader, session: Arc::new(session) })
        }
        #[cfg(not(feature = "sql"))]
        {
            let reader = handle.engine.reader();
            Ok(Self { handle, reader })
        }
    }

    /// The names of the tables and collections that there were, sorted.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let before = db.snapshot()?;
    /// db.collection("notes")?;
    /// assert_eq!((before.tables().len(), db.tables().len()), (0, 1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn tables(&self) -> Vec<String> {
        self.reader.tables()
    }

    /// The row with this key. Cost: that of [`Table::get`].
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// let before = db.snapshot()?;
    /// birds.delete(1)?;
    /// let row = before.get(&birds, 1)?.ok_or("there was none")?;
    /// assert_eq!(row.get::<String>("name")?, "Heron");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Table::get`], [`Error::NotFound`] if the table was made after the moment, and [`Error::Request`] if it belongs
    /// to another database.
    pub fn get(&self, table: &Table, key: impl IntoKey) -> Result<Option<Row>> {
        self.check_database(&table.handle)?;
        let schema = self.reader.schema(&table.name)?;
        let row = self.reader.get(&table.name, &key.into_key())?;
        Ok(row.map(|values| shown(&schema, values)))
    }

    /// The row with this key, deserialized. Cost: that of [`Snapshot::get`].
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// let before = db.snapshot()?;
    /// birds.delete(1)?;
    /// assert_eq!(before.get_as::<(i64, String)>(&birds, 1)?, Some((1, "Heron".to_owned())));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Snapshot::get`], and [`Error::Request`] if the row cannot be deserialized as `T`.
    pub fn get_as<T: DeserializeOwned>(
        &self,
        table: &Table,
        key: impl IntoKey,
    ) -> Result<Option<T>> {
        self.get(table, key)?.map(|row| row.deserialize()).transpose()
    }

    /// The exact number of rows of a table. Cost: reads no row.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// let before = db.snapshot()?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// assert_eq!((before.count(&birds)?, birds.count()?), (0, 1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Snapshot::get`].
    pub fn count(&self, table: &Table) -> Result<u64> {
        self.check_database(&table.handle)?;
        Ok(self.reader.row_count(&table.name)?)
    }

    /// Calls `visit` with all rows of a table in the order of keys, until it returns an error. Cost: a read of the row
    /// store for each row; some hundred rows are in memory.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// let mut names = Vec::new();
    /// db.snapshot()?.for_each(&birds, |row| {
    ///     names.push(row.get::<String>("name")?);
    ///     Ok(())
    /// })?;
    /// assert_eq!(names, ["Heron"]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Snapshot::get`], and the error of `visit`.
    pub fn for_each(&self, table: &Table, mut visit: impl FnMut(Row) -> Result<()>) -> Result<()> {
        self.check_database(&table.handle)?;
        let schema = self.reader.schema(&table.name)?;
        let request = ScanRequest {
            table: table.name.to_string(),
            columns: (0..schema.columns.len()).collect(),
            batch_rows: BATCH_ROWS,
            in_key_order: true,
            ..ScanRequest::default()
        };
        for batch in self.reader.scan(request)? {
            let batch = batch?;
            for place in 0..batch.rows {
                let values = batch.columns.iter().map(|column| column.value(place)).collect();
                visit(shown(&schema, values))?;
            }
        }
        Ok(())
    }

    /// A search of a table for a text, as by [`Table::search`].
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Grey heron"}))?;
    /// let before = db.snapshot()?;
    /// birds.delete(1)?;
    /// assert_eq!((before.search(&birds, "heron").count()?, birds.search("heron").count()?), (1, 0));
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn search(&self, table: &Table, text: &str) -> Search {
        self.bound(table, table.search(text))
    }

    /// A search of all rows of a table, as by [`Table::all`].
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// let before = db.snapshot()?;
    /// birds.upsert(&serde_json::json!({"id": 1, "name": "Grey heron"}))?;
    /// let rows: Vec<(i64, String)> = before.all(&birds).filter("id = 1").run_as()?;
    /// assert_eq!(rows, [(1, "Heron".to_owned())]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn all(&self, table: &Table) -> Search {
        self.bound(table, table.all())
    }

    fn bound(&self, table: &Table, search: Search) -> Search {
        search.at(self.check_database(&table.handle).map(|()| self.reader.clone()))
    }

    /// A collection at the moment, which [`Find::at`](crate::Find::at) takes. Cost: a look-up in memory.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let notes = db.collection("notes")?;
    /// let before = db.snapshot()?.collection(&notes)?;
    /// notes.insert_json(r#"{"text": "later"}"#)?;
    /// assert_eq!((notes.all().at(&before).count()?, before.len()?), (0, 0));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if it was made after the moment, [`Error::Request`] if it belongs to another database.
    pub fn collection<K: DocumentId>(&self, collection: &Collection<K>) -> Result<Moment<K>> {
        self.check_database(&collection.handle)?;
        self.reader.schema(&collection.name)?;
        Ok(Moment::of(self.reader.clone(), &collection.name))
    }

    fn check_database(&self, handle: &Arc<Handle>) -> Result<()> {
        match Arc::ptr_eq(handle, &self.handle) {
            true => Ok(()),
            false => Err(Error::request("the snapshot belongs to another database")),
        }
    }
}

/// Begins the transaction of a snapshot.
#[cfg(feature = "sql")]
const BEGIN: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";

#[cfg(feature = "sql")]
impl Snapshot {
    /// Runs a statement and returns its rows, with a value for each `?`. All rows are in memory: use `LIMIT`. It waits for
    /// another statement of this snapshot or its clones to end. Cost: that of the statement, and of preparing it.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// let before = db.snapshot()?;
    /// birds.delete(1)?;
    /// let name = before.query("SELECT name FROM birds WHERE id = ?", remora::params![1])?;
    /// assert_eq!(name.one::<String>()?, "Heron");
    /// assert!(before.query("DELETE FROM birds", []).is_err());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::query`](crate::Database::query); [`Error::Request`] for a statement without rows, which is not
    /// run, and for all statements after one that ended the snapshot's transaction, as OPTIMIZE TABLE does.
    pub fn query(&self, text: &str, values: impl AsRef<[Value]>) -> Result<Rows> {
        let mut session = self.session.session.lock();
        let open = session.as_ref().ok_or(Error::Closed)?;
        let is_whole =
            open.status().in_transaction && open.reader().position() == self.reader.position();
        if !is_whole {
            let message =
                "a statement ended the transaction of the snapshot: take another snapshot";
            return Err(Error::request(message));
        }
        sql::read_in(&mut session, text, values.as_ref())
    }

    /// Runs a statement and returns its rows as Arrow, as [`Database::query_arrow`](crate::Database::query_arrow) does.
    /// Cost: that of [`Snapshot::query`], and a copy of the rows.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// let before = db.snapshot()?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// assert_eq!(before.query_arrow("SELECT * FROM birds", [])?[0].num_rows(), 0);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Snapshot::query`] and of [`Database::query_arrow`](crate::Database::query_arrow).
    pub fn query_arrow(
        &self,
        text: &str,
        values: impl AsRef<[Value]>,
    ) -> Result<Vec<arrow::record_batch::RecordBatch>> {
        self.query(text, values)?.to_arrow()
    }
}

#[cfg(feature = "sql")]
impl Drop for OpenSession {
    fn drop(&mut self) {
        if let Some(session) = self.session.lock().take() {
            self.handle.sessions.end(session);
        }
    }
}
