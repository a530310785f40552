//! The public entry point: an open database.

use std::{path::Path, sync::Arc};

use parking_lot::Mutex;
use remora_engine::{Database as Engine, Definition, Error as EngineError};

use crate::{
    Batch, Collection, Durability, Error, Options, Result, Snapshot, Table, TableBuilder,
    WatchBuilder, Watcher, directory::TemporaryDirectory, handle::Handle, ids::Ids,
};
#[cfg(feature = "sql")]
use crate::{
    Value,
    sessions::Sessions,
    sql::{self, Connection, Outcome, Prepared, RowStream, Rows},
};

/// An open database, in a directory or temporary. It is cheap to clone and can be used from all
/// threads. It is closed when the last clone, and everything that was made from it, is dropped.
///
/// Tables ([`Table`]), documents ([`Collection`]) and SQL access the same rows. All calls block
/// until they are done. They need no async runtime, but may be called within one; an async program
/// that must not block calls them in its runtime's blocking threads (tokio's `spawn_blocking`).
///
/// ```
/// use remora::{Database, params};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Bird {
///     id: u32,
///     name: String,
/// }
///
/// let db = Database::in_memory()?;
/// db.execute("CREATE TABLE birds (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100))", params![])?;
/// let inserted = db.execute("INSERT INTO birds (name) VALUES (?), (?)", params!["Heron", "Kite"])?;
/// assert_eq!((inserted.rows_changed, inserted.last_insert_id), (2, 1));
///
/// let birds = db.query("SELECT id, name FROM birds ORDER BY name", params![])?;
/// let birds: Vec<Bird> = birds.deserialize()?;
/// assert_eq!((birds[1].id, birds[1].name.as_str()), (2, "Kite"));
///
/// let by_id = db.prepare("SELECT name FROM birds WHERE id = ?")?;
/// assert_eq!(by_id.query(params![1])?.one::<String>()?, "Heron");
///
/// db.transaction(|tx| {
///     tx.execute("UPDATE birds SET name = ? WHERE id = ?", params!["Grey heron", 1])?;
///     tx.execute("DELETE FROM birds WHERE id = ?", params![2])
/// })?;
/// let batches = db.query_arrow("SELECT COUNT(*) FROM birds", params![])?;
/// assert_eq!(batches[0].num_rows(), 1);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone)]
pub struct Database {
    handle: Arc<Handle>,
}

impl Database {
    /// Opens the database in a directory, which is created if it does not exist. Cost:
    /// milliseconds, and the time to index what was written since the last checkpoint.
    ///
    /// # Errors
    /// - [`Error::InUse`]: it is already open, in this process or another.
    /// - [`Error::Corrupt`]: its rows are damaged, or it was written by an incompatible version.
    ///   (Damaged indexes are rebuilt.)
    /// - [`Error::NotFound`]: the directory contains something else.
    /// - [`Error::Io`] or [`Error::Full`]: it cannot be created, read or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens the database in a directory with these settings. Cost: that of [`Database::open`].
    ///
    /// # Errors
    /// Those of [`Database::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::start(path.as_ref(), options, None)
    }

    /// A temporary database, which is deleted with its last clone. It is in a directory for
    /// temporary files and is written without syncs, so it stays in memory as long as the operating
    /// system's page cache has room for it. Cost: milliseconds.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Full`] if there is no room for it.
    pub fn in_memory() -> Result<Self> {
        let directory = TemporaryDirectory::new()?;
        let path = directory.path().to_owned();
        let options = Options { durability: Durability::None, ..Options::default() };
        Self::start(&path, options, Some(directory))
    }

    fn start(path: &Path, options: Options, directory: Option<TemporaryDirectory>) -> Result<Self> {
        #[cfg(feature = "sql")]
        remora_sql::register_collations();
        let own = remora_engine::Options {
            durability: options.durability,
            row_cache_bytes: options.row_cache_bytes,
            max_watch_bytes: options.max_watch_bytes,
            ..remora_engine::Options::default()
        };
        let engine = Engine::open(path, own).map_err(|error| match error {
            EngineError::Conflict(message) => Error::InUse(message.into()),
            other => other.into(),
        })?;
        let handle = Handle {
            #[cfg(feature = "sql")]
            sessions: {
                let spill = engine.path().join("spill");
                Sessions::new(engine.clone(), &options, Some(spill))
            },
            ids: Ids::default(),
            definitions: Mutex::default(),
            engine,
            closes: true,
            directory,
        };
        Ok(Self { handle: Arc::new(handle) })
    }

    /// The tables and collections of an engine that the program has opened itself, as a server
    /// does. Dropping it does not close the engine. Create only one for each engine and clone it,
    /// because it generates the ids of documents. Its SQL sessions are independent of those of a
    /// server over the same engine.
    pub fn over(engine: Engine) -> Self {
        let handle = Handle {
            // The folder for spilled rows in the directory belongs to the server.
            #[cfg(feature = "sql")]
            sessions: Sessions::new(engine.clone(), &Options::default(), None),
            ids: Ids::default(),
            definitions: Mutex::default(),
            engine,
            closes: false,
            directory: None,
        };
        Self { handle: Arc::new(handle) }
    }

    /// The directory of the database.
    pub fn path(&self) -> std::path::PathBuf {
        self.handle.engine.path()
    }

    /// Closes the database for all clones, within five seconds. Later calls return
    /// [`Error::Closed`]. Dropping the last clone does the same without reporting errors.
    ///
    /// # Errors
    /// [`Error::Busy`] if the last write has not ended, [`Error::Io`] or [`Error::Full`] if the
    /// indexes cannot be written. Then the next opening takes longer, but no row is lost.
    pub fn close(&self) -> Result<()> {
        Ok(self.handle.engine.close()?)
    }

    /// Creates a table, or returns the existing one if it has the same definition. Cost: a sync.
    ///
    /// # Errors
    /// [`Error::Request`] if the definition is invalid, [`Error::Exists`] if a table of this name
    /// has another definition; [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it
    /// cannot be written.
    pub fn create_table(
        &self,
        name: &str,
        define: impl FnOnce(TableBuilder) -> TableBuilder,
    ) -> Result<Table> {
        let schema = define(TableBuilder::new(name)).finish()?;
        self.handle.engine.create_table(schema).map_err(|error| match error {
            EngineError::Conflict(message) => Error::Exists(message.into()),
            other => other.into(),
        })?;
        self.table(name)
    }

    /// An existing table. Tables that SQL created can be read: their names are qualified by their
    /// database, except those in `remora`, the default database of statements. Cost: a look-up in memory.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no table of this name.
    pub fn table(&self, name: &str) -> Result<Table> {
        Table::new(Arc::clone(&self.handle), name)
    }

    /// The name of the source that a table follows; `None` if it follows none.
    pub fn source_of(&self, table: &str) -> Option<String> {
        self.handle.source_of(table)
    }

    /// The names of all tables and collections, sorted.
    pub fn tables(&self) -> Vec<String> {
        self.handle.engine.tables()
    }

    /// Drops a table or a collection with all its rows. Cost: a sync.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name, [`Error::Request`] if SQL created it:
    /// only SQL drops everything that belongs to it.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.handle.writable(name)?;
        Ok(self.handle.engine.drop_table(name)?)
    }

    /// The collection of this name. It is created if it does not exist. Cost: a look-up in memory, or a sync if it is
    /// created.
    ///
    /// # Errors
    /// [`Error::Exists`] if a table has this name, [`Error::Request`] if the name is invalid;
    /// [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it cannot be created.
    pub fn collection(&self, name: &str) -> Result<Collection> {
        Collection::open(Arc::clone(&self.handle), name)
    }

    /// The collection of this name; `None` if it does not exist. Cost: a look-up in memory.
    ///
    /// # Errors
    /// [`Error::Closed`] if the database was closed.
    pub fn find_collection(&self, name: &str) -> Result<Option<Collection>> {
        Collection::find_named(&self.handle, name)
    }

    /// Creates a collection. Cost: a sync.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// db.create_collection("votes")?.insert_json(r#"{"for": 7}"#)?;
    /// assert!(db.create_collection("votes").is_err_and(|it| matches!(it, remora::Error::Exists(_))));
    /// db.rename_collection("votes", "points")?;
    /// assert_eq!(db.collections(), ["points"]);
    /// assert_eq!(db.collection("points")?.len()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Exists`] if a table or a collection has this name; else those of
    /// [`Database::collection`].
    pub fn create_collection(&self, name: &str) -> Result<Collection> {
        Collection::create(&self.handle, name)
    }

    /// The collection of this name with text ids that the caller gives. It is created if it does
    /// not exist. A collection has either text ids or number ids, and only the matching method
    /// opens it. Cost: that of [`Database::collection`].
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let db = remora::Database::in_memory()?;
    /// let books = db.keyed_collection("books")?;
    /// books.insert_as("978-3-16", &json!({"title": "Reef"}))?;
    /// books.merge_patch("978-3-16", &json!({"year": 1999}))?;
    /// assert_eq!(books.find("year = 1999").ids()?, ["978-3-16"]);
    /// assert_eq!(books.page(Some("978"), 10)?.len(), 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::collection`].
    pub fn keyed_collection(&self, name: &str) -> Result<Collection<String>> {
        Collection::open(Arc::clone(&self.handle), name)
    }

    /// The collection of this name with text ids; `None` if it does not exist. Cost: a look-up in memory.
    ///
    /// # Errors
    /// Those of [`Database::find_collection`].
    pub fn find_keyed_collection(&self, name: &str) -> Result<Option<Collection<String>>> {
        Collection::find_named(&self.handle, name)
    }

    /// Creates a collection with text ids. Cost: a sync.
    ///
    /// # Errors
    /// Those of [`Database::create_collection`].
    pub fn create_keyed_collection(&self, name: &str) -> Result<Collection<String>> {
        Collection::create(&self.handle, name)
    }

    /// The names of the collections with text ids, sorted.
    pub fn keyed_collections(&self) -> Vec<String> {
        let mut names = self.handle.engine.tables();
        names.retain(|name| matches!(self.find_keyed_collection(name), Ok(Some(_))));
        names
    }

    /// Starts a batch: changes of several tables and collections in one durable step.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.handle))
    }

    /// All tables and collections as of now, for reads that must see one state: see [`Snapshot`](crate::Snapshot). Cost: some
    /// microseconds.
    ///
    /// # Errors
    /// [`Error::Closed`] if the database was closed.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::new(Arc::clone(&self.handle))
    }

    /// Starts watching committed changes of all writers: see [`Watch`](crate::Watch).
    pub fn watch(&self) -> WatchBuilder {
        WatchBuilder::new(Arc::clone(&self.handle))
    }

    /// The named watchers, sorted by name, open or not.
    pub fn watchers(&self) -> Vec<Watcher> {
        let watchers = self.handle.engine.watchers().into_iter();
        watchers.map(Watcher::of_engine).collect()
    }

    /// Removes a watcher: no changes are kept for it any more. Cost: a sync.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name, [`Error::Conflict`] if it is open;
    /// [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it cannot be written.
    pub fn forget_watcher(&self, name: &str) -> Result<()> {
        Ok(self.handle.engine.forget_watcher(name)?)
    }

    /// The names of the collections with number ids, sorted.
    pub fn collections(&self) -> Vec<String> {
        let mut names = self.handle.engine.tables();
        names.retain(|name| matches!(self.find_collection(name), Ok(Some(_))));
        names
    }

    /// Renames a collection, with ids of either type. Cost: a sync; no document is rewritten.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name, [`Error::Exists`] if the new name is in
    /// use, [`Error::Request`] if it is invalid, or if SQL declared keys or conditions of the collection; [`Error::Full`], [`Error::ReadOnly`] or
    /// [`Error::Closed`] if it cannot be written.
    pub fn rename_collection(&self, from: &str, to: &str) -> Result<()> {
        let _alone = self.handle.definitions.lock();
        if self.find_collection(from)?.is_none() && self.find_keyed_collection(from)?.is_none() {
            return Err(Error::NotFound(format!("there is no collection {from:?}").into()));
        }
        // Only SQL renames what belongs to its keys.
        self.handle.writable(from)?;
        let engine = &self.handle.engine;
        let definitions = vec![
            Definition::Vacant(to.to_owned()),
            Definition::Rename { from: from.to_owned(), to: to.to_owned() },
        ];
        self.handle.ids.rename(engine, from, to, |positions| {
            engine.define(definitions, positions)?;
            Ok(())
        })
    }
}

#[cfg(feature = "follow")]
impl Database {
    /// Copies tables of a MySQL or MariaDB and follows its binlog, in background threads: see
    /// [`Replica`](crate::Replica). Tables are given as patterns (`articles`, `shop.order*`). If
    /// none is given, all tables of the URL's database are followed, or all of the server if the
    /// URL names none. Cost: returns when the source has answered; the copying takes as long as the tables are large.
    ///
    /// # Errors
    /// [`Error::Source`](crate::Error::Source) if the URL, the source's settings or the user's
    /// grants are wrong, with the remedy, or if the source cannot be reached (a source that was
    /// followed before is retried until it answers); [`Error::Closed`] if the database was closed.
    pub fn follow<T: Into<String>>(
        &self,
        url: &str,
        tables: impl IntoIterator<Item = T>,
    ) -> Result<crate::Replica> {
        crate::Replica::start(&self.handle, url, tables.into_iter().map(T::into).collect())
    }
}

#[cfg(feature = "sql")]
impl Database {
    /// Runs a statement in a session of its own and returns its effect. [`params!`](crate::params)
    /// gives a value for each `?`. On return it is committed and durable. Cost: that of the statement, and one sync if
    /// it writes.
    ///
    /// # Errors
    /// They correspond to MySQL's errors, whose numbers [`Error::mysql_code`] returns:
    ///
    /// - [`Error::Request`]: the statement or a value is invalid, or a feature is not supported.
    /// - [`Error::NotFound`] or [`Error::Exists`]: a table or column does not exist, or a key
    ///   exists.
    /// - [`Error::Conflict`]: other writers kept changing the same rows.
    /// - [`Error::Busy`]: it exceeds its limit of memory or time.
    /// - [`Error::Full`], [`Error::Io`] or [`Error::Closed`]: it cannot be read or written.
    pub fn execute(&self, text: &str, values: impl AsRef<[Value]>) -> Result<Outcome> {
        sql::execute_once(&self.handle, text, values.as_ref())
    }

    /// Runs a statement in a session of its own and returns its rows, with a value for each `?`.
    /// All rows are in memory: use `LIMIT`, or [`Database::query_stream`]. Cost: that of the statement, and memory for
    /// all its rows.
    ///
    /// # Errors
    /// Those of [`Database::execute`], and [`Error::Request`] if the statement returns no rows.
    pub fn query(&self, text: &str, values: impl AsRef<[Value]>) -> Result<Rows> {
        sql::query_once(&self.handle, text, values.as_ref())
    }

    /// Runs a statement and returns its rows one by one as they are produced. At any time, only a
    /// few batches of up to 8,192 rows are in memory. Cost: that of the statement; a thread of the database produces
    /// the rows.
    ///
    /// # Errors
    /// Those of [`Database::query`] that occur before the first row. Later ones are returned in
    /// place of a row.
    pub fn query_stream(&self, text: &str, values: impl AsRef<[Value]>) -> Result<RowStream> {
        RowStream::start(&self.handle, text, values.as_ref())
    }

    /// Runs a statement and returns its rows as Arrow: batches of up to 8,192 rows, or one empty
    /// batch. Integers have 64 bits; decimals have 128 bits, or are texts above 38 digits; dates
    /// are days, times have microseconds; JSON is text, vectors are bytes. Cost: that of [`Database::query`], and a
    /// copy of the rows.
    ///
    /// # Errors
    /// Those of [`Database::query`], and [`Error::Request`] if Arrow cannot represent a value, such
    /// as a zero date.
    pub fn query_arrow(
        &self,
        text: &str,
        values: impl AsRef<[Value]>,
    ) -> Result<Vec<arrow::record_batch::RecordBatch>> {
        self.query(text, values)?.to_arrow()
    }

    /// Prepares a statement that is run many times. Cost: parses the statement; its plan is kept for all runs.
    ///
    /// # Errors
    /// [`Error::Request`] if it is invalid or cannot be prepared, [`Error::NotFound`] if a table or
    /// column does not exist.
    pub fn prepare(&self, text: &str) -> Result<Prepared> {
        Prepared::new(Arc::clone(&self.handle), text)
    }

    /// A session, for statements that depend on each other.
    pub fn connection(&self) -> Connection {
        Connection::new(Arc::clone(&self.handle))
    }

    /// Runs `work` in a transaction, which is committed if it returns `Ok` and rolled back if it
    /// returns an error. The transaction reads the state at its beginning and its own changes. Cost: memory for what it
    /// changes, and one sync at the commit.
    ///
    /// # Errors
    /// The error of `work`; [`Error::Conflict`] if another writer changed one of the changed rows
    /// in the meantime: then nothing is changed, and it can be run again.
    pub fn transaction<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        sql::transaction(&self.handle, work)
    }
}
