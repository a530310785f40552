//! The public entry: an open database.

use std::{path::Path, sync::Arc};

use parking_lot::Mutex;
use remora_engine::{Database as Engine, Definition, Error as EngineError};

use crate::{
    Batch, Collection, Durability, Error, Options, Result, Table, TableBuilder, WatchBuilder,
    Watcher, directory::TemporaryDirectory, handle::Handle, ids::Ids,
};
#[cfg(feature = "sql")]
use crate::{
    Value,
    sessions::Sessions,
    sql::{self, Connection, Outcome, Prepared, RowStream, Rows},
};

/// An open database: a directory on the disk, or one that is gone when it is closed. Cheap to
/// clone, for all threads; closed when the last clone, and whatever was made of it, is dropped.
///
/// Tables ([`Table`]), documents ([`Collection`]) and SQL reach the same rows. Calls wait until they are answered; no
/// runtime is needed, and they may be made within one. An async program that minds waiting
/// makes them in its runtime's blocking threads (tokio's `spawn_blocking`).
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
    /// Opens the database of a directory, which is made if it is not there. Cost: milliseconds,
    /// and the time to index what was written since the last checkpoint.
    ///
    /// # Errors
    /// - [`Error::InUse`]: it is open already, in this process or another.
    /// - [`Error::Corrupt`]: its rows are damaged, or another version wrote it. (Damaged indexes are
    ///   rebuilt.)
    /// - [`Error::NotFound`]: it has something else in it.
    /// - [`Error::Io`] or [`Error::Full`]: it cannot be made, read or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens the database of a directory with these settings.
    ///
    /// # Errors
    /// Those of [`Database::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::start(path.as_ref(), options, None)
    }

    /// A database that is gone when the last of its clones is: in a directory of the system's for
    /// temporary files, written without syncs, so that it is in memory as long as the system has
    /// memory for it.
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

    /// The tables and collections of a database that the program has open by the engine, as a server has. It is not
    /// closed when this is dropped. Make one of these for an engine and clone it, for ids of documents are given
    /// here. Statements run in sessions that know nothing of those of a server over the same engine.
    pub fn over(engine: Engine) -> Self {
        let handle = Handle {
            // A server has the folder of the directory to itself.
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

    /// Where it lives.
    pub fn path(&self) -> std::path::PathBuf {
        self.handle.engine.path()
    }

    /// Closes it, within five seconds, for all clones: what is called later answers [`Error::Closed`]. Dropping
    /// the last clone does the same and tells nobody of errors.
    ///
    /// # Errors
    /// [`Error::Busy`] if the last write has not ended, [`Error::Io`] or [`Error::Full`] if the
    /// indexes cannot be written, so that the next opening takes longer. No row is lost.
    pub fn close(&self) -> Result<()> {
        Ok(self.handle.engine.close()?)
    }

    /// Makes a table, or gives the one that is there with the same definition.
    ///
    /// # Errors
    /// [`Error::Request`] if the definition is wrong, [`Error::Exists`] if there is a table of that name with another
    /// one, [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it cannot be written.
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

    /// A table that is there. One that SQL made is read by it: its database stands before its name, but for `remora`,
    /// which statements begin in.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of that name.
    pub fn table(&self, name: &str) -> Result<Table> {
        Table::new(Arc::clone(&self.handle), name)
    }

    /// The names of all tables and collections, sorted.
    pub fn tables(&self) -> Vec<String> {
        self.handle.engine.tables()
    }

    /// Drops a table or a collection with all its rows.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of that name, [`Error::Request`] if SQL made it, which
    /// drops what belongs to it.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.handle.writable(name)?;
        Ok(self.handle.engine.drop_table(name)?)
    }

    /// The collection of this name, which is made if there is none.
    ///
    /// # Errors
    /// [`Error::Exists`] if a table has the name, [`Error::Request`] if it cannot be one,
    /// [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it cannot be made.
    pub fn collection(&self, name: &str) -> Result<Collection> {
        Collection::open(Arc::clone(&self.handle), name)
    }

    /// The collection of this name; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Closed`] if the database was closed.
    pub fn find_collection(&self, name: &str) -> Result<Option<Collection>> {
        Collection::find_named(&self.handle, name)
    }

    /// Makes a collection.
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
    /// [`Error::Exists`] if a table or a collection has the name; else those of [`Database::collection`].
    pub fn create_collection(&self, name: &str) -> Result<Collection> {
        Collection::create(&self.handle, name)
    }

    /// The collection of this name whose documents have texts of the caller's as ids, which is made if there is none.
    /// It is another thing than one whose ids are numbers: neither opens the other.
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

    /// The collection of this name whose ids are texts; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`Database::find_collection`].
    pub fn find_keyed_collection(&self, name: &str) -> Result<Option<Collection<String>>> {
        Collection::find_named(&self.handle, name)
    }

    /// Makes a collection whose ids are texts.
    ///
    /// # Errors
    /// Those of [`Database::create_collection`].
    pub fn create_keyed_collection(&self, name: &str) -> Result<Collection<String>> {
        Collection::create(&self.handle, name)
    }

    /// The names of the collections whose ids are texts, sorted.
    pub fn keyed_collections(&self) -> Vec<String> {
        let mut names = self.handle.engine.tables();
        names.retain(|name| matches!(self.find_keyed_collection(name), Ok(Some(_))));
        names
    }

    /// Changes of several tables and collections that are one durable step.
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.handle))
    }

    /// Begins to watch what is committed, by whomever: see [`Watch`](crate::Watch).
    pub fn watch(&self) -> WatchBuilder {
        WatchBuilder::new(Arc::clone(&self.handle))
    }

    /// The watchers that have a name, by it, open or not.
    pub fn watchers(&self) -> Vec<Watcher> {
        let watchers = self.handle.engine.watchers().into_iter();
        watchers.map(Watcher::of_engine).collect()
    }

    /// Forgets a watcher: nothing is kept for it any more.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of that name, [`Error::Conflict`] if it is open, [`Error::Full`],
    /// [`Error::ReadOnly`] or [`Error::Closed`] if it cannot be written.
    pub fn forget_watcher(&self, name: &str) -> Result<()> {
        Ok(self.handle.engine.forget_watcher(name)?)
    }

    /// The names of the collections whose ids are numbers, sorted.
    pub fn collections(&self) -> Vec<String> {
        let mut names = self.handle.engine.tables();
        names.retain(|name| matches!(self.find_collection(name), Ok(Some(_))));
        names
    }

    /// Gives a collection, with ids of either type, another name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of that name, [`Error::Exists`] if the new name is taken,
    /// [`Error::Request`] if it cannot be one, [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it cannot
    /// be written.
    pub fn rename_collection(&self, from: &str, to: &str) -> Result<()> {
        let _alone = self.handle.definitions.lock();
        if self.find_collection(from)?.is_none() && self.find_keyed_collection(from)?.is_none() {
            return Err(Error::NotFound(format!("there is no collection {from:?}").into()));
        }
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
    /// Copies tables of a MySQL or MariaDB and follows them by its binlog, in threads of its own: see
    /// [`Replica`](crate::Replica). Tables are named as patterns (`articles`, `shop.order*`); none means all of the URL's
    /// database, or without one all of the server.
    ///
    /// # Errors
    /// [`Error::Source`](crate::Error::Source) says what of the URL, of the source's settings or of the user's grants is
    /// wrong, with the mend, or that the source cannot be reached (one that was followed before is tried again until it
    /// is there); [`Error::Closed`] if the database was closed.
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
    /// Runs a statement for what it changes, in a session of its own, with a value for each `?`:
    /// [`params!`](crate::params). It is committed and durable on return.
    ///
    /// # Errors
    /// MySQL's, whose number [`Error::mysql_code`] gives:
    ///
    /// - [`Error::Request`]: the statement or a value is wrong, or something is not supported.
    /// - [`Error::NotFound`] or [`Error::Exists`]: a table or column is not there, or a key is.
    /// - [`Error::Conflict`]: others change the same rows all the time.
    /// - [`Error::Busy`]: it takes more memory or time than it may.
    /// - [`Error::Full`], [`Error::Io`] or [`Error::Closed`]: it cannot be read or written.
    pub fn execute(&self, text: &str, values: impl AsRef<[Value]>) -> Result<Outcome> {
        sql::execute_once(&self.handle, text, values.as_ref())
    }

    /// Runs a statement for its rows, in a session of its own, with a value for each `?`. The rows
    /// are all in memory: `LIMIT` them, or take [`Database::query_stream`].
    ///
    /// # Errors
    /// Those of [`Database::execute`], and [`Error::Request`] if it is a statement that has no rows.
    pub fn query(&self, text: &str, values: impl AsRef<[Value]>) -> Result<Rows> {
        sql::query_once(&self.handle, text, values.as_ref())
    }

    /// Runs a statement for its rows, which come one by one as they are read: of any number of them a few batches of up to
    /// 8,192 are in memory.
    ///
    /// # Errors
    /// Those of [`Database::query`] that show before the first row; the others come in a row's place.
    pub fn query_stream(&self, text: &str, values: impl AsRef<[Value]>) -> Result<RowStream> {
        RowStream::start(&self.handle, text, values.as_ref())
    }

    /// Runs a statement for its rows, as Arrow: batches of up to 8,192 rows, or one without rows. Integers are of 64 bits,
    /// decimals of 128 (of more than 38 digits text), moments microseconds, JSON text, vectors bytes.
    ///
    /// # Errors
    /// Those of [`Database::query`], and [`Error::Request`] if a value has none in Arrow, such as a date of zeros.
    pub fn query_arrow(
        &self,
        text: &str,
        values: impl AsRef<[Value]>,
    ) -> Result<Vec<arrow::record_batch::RecordBatch>> {
        self.query(text, values)?.to_arrow()
    }

    /// Reads a statement that is to run many times.
    ///
    /// # Errors
    /// [`Error::Request`] if it is wrong or cannot be prepared, [`Error::NotFound`] if a table or
    /// column is not there.
    pub fn prepare(&self, text: &str) -> Result<Prepared> {
        Prepared::new(Arc::clone(&self.handle), text)
    }

    /// A session for statements that belong together.
    pub fn connection(&self) -> Connection {
        Connection::new(Arc::clone(&self.handle))
    }

    /// Runs what `work` does in one transaction, which is committed if it ends well and rolled back
    /// if it answers an error. It reads the moment it began at and its own changes.
    ///
    /// # Errors
    /// That of `work`; [`Error::Conflict`] if somebody else changed a row meanwhile that it changes: nothing is
    /// changed, run it again.
    pub fn transaction<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        sql::transaction(&self.handle, work)
    }
}
