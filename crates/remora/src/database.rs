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
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("shop");
    /// let db = remora::Database::open(&path)?;
    /// db.collection("notes")?.insert_json(r#"{"text": "kept"}"#)?;
    /// drop(db);
    /// let db = remora::Database::open(&path)?;
    /// assert_eq!(db.collection("notes")?.len()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// ```
    /// use remora::{Database, Durability, Options};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("shop");
    /// let durability = Durability::Interval(std::time::Duration::from_millis(50));
    /// let db = Database::open_with(&path, Options { durability, ..Options::default() })?;
    /// assert!(matches!(Database::open(&path), Err(remora::Error::InUse(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::start(path.as_ref(), options, None)
    }

    /// A temporary database, which is deleted with its last clone. It is in a directory for
    /// temporary files, and what is written is not synced, so it stays in memory as long as the operating system's page
    /// cache has room for it. Opening and closing sync some fifty small files: milliseconds, or tenths of a second where
    /// the directory (`TMPDIR`) is on a slow disk. Cost: that.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// db.collection("notes")?.insert_json(r#"{"text": "for a while"}"#)?;
    /// let path = db.path();
    /// drop(db);
    /// assert!(!path.exists());
    /// # Ok::<(), remora::Error>(())
    /// ```
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

    /// The tables and collections of an engine (`remora_engine::Database`) that the program has opened itself, as a server
    /// does. Dropping it does not close the engine. Create only one for each engine and clone it,
    /// because it generates the ids of documents. Its SQL sessions are independent of those of a
    /// server over the same engine. Cost: microseconds.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let engine = remora_engine::Database::open(directory.path(), remora_engine::Options::default())?;
    /// let db = remora::Database::over(engine.clone());
    /// db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// drop(db);
    /// assert_eq!(engine.tables(), ["birds"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// assert!(db.path().is_dir());
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn path(&self) -> std::path::PathBuf {
        self.handle.engine.path()
    }

    /// Closes the database for all clones, within five seconds. Later calls return
    /// [`Error::Closed`]. Dropping the last clone does the same without reporting errors. Cost: writes the indexes of
    /// recent changes to files.
    ///
    /// ```
    /// let db = remora::Database::in_memory()?;
    /// let notes = db.collection("notes")?;
    /// db.clone().close()?;
    /// let late = notes.insert_json(r#"{"text": "too late"}"#);
    /// assert!(matches!(late, Err(remora::Error::Closed)));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Busy`] if the last write has not ended, [`Error::Io`] or [`Error::Full`] if the
    /// indexes cannot be written. Then the next opening takes longer, but no row is lost.
    pub fn close(&self) -> Result<()> {
        Ok(self.handle.engine.close()?)
    }

    /// Creates a table, or returns the existing one if it has the same definition. Cost: a sync.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// birds.insert(&serde_json::json!({"id": 1, "name": "Heron"}))?;
    /// let same = db.create_table("birds", |t| t.int("id").key().text("name"))?;
    /// assert_eq!(same.count()?, 1);
    /// let other = db.create_table("birds", |t| t.int("id").key());
    /// assert!(matches!(other, Err(remora::Error::Exists(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
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
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.execute("CREATE TABLE birds (id INT PRIMARY KEY, name VARCHAR(40))", [])?;
    /// db.execute("INSERT INTO birds VALUES (1, 'Heron')", [])?;
    /// let birds = db.table("birds")?;
    /// assert_eq!(birds.get_as::<(i64, String)>(1)?, Some((1, "Heron".to_owned())));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no table of this name.
    pub fn table(&self, name: &str) -> Result<Table> {
        Table::new(Arc::clone(&self.handle), name)
    }

    /// The name of the source that a table follows; `None` if it follows none.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.create_table("birds", |t| t.int("id").key())?;
    /// assert_eq!(db.source_of("birds"), None);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn source_of(&self, table: &str) -> Option<String> {
        self.handle.source_of(table)
    }

    /// The names of all tables and collections, sorted.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.create_table("birds", |t| t.int("id").key())?;
    /// db.collection("notes")?;
    /// assert_eq!(db.tables(), ["birds", "notes"]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn tables(&self) -> Vec<String> {
        self.handle.engine.tables()
    }

    /// Drops a table or a collection with all its rows. Cost: a sync.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.create_table("birds", |t| t.int("id").key())?;
    /// db.drop_table("birds")?;
    /// assert!(matches!(db.drop_table("birds"), Err(remora::Error::NotFound(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
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
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.collection("notes")?.insert_json(r#"{"text": "Herons nest at the reef"}"#)?;
    /// assert_eq!(db.collection("notes")?.len()?, 1);
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Exists`] if a table has this name, [`Error::Request`] if the name is invalid;
    /// [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it cannot be created.
    pub fn collection(&self, name: &str) -> Result<Collection> {
        Collection::open(Arc::clone(&self.handle), name)
    }

    /// The collection of this name; `None` if it does not exist. Cost: a look-up in memory.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// assert!(db.find_collection("notes")?.is_none());
    /// db.collection("notes")?;
    /// assert!(db.find_collection("notes")?.is_some());
    /// # Ok::<(), remora::Error>(())
    /// ```
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
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.keyed_collection("books")?;
    /// assert!(db.find_keyed_collection("books")?.is_some());
    /// assert!(db.find_collection("books")?.is_none()); // Its ids are texts.
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::find_collection`].
    pub fn find_keyed_collection(&self, name: &str) -> Result<Option<Collection<String>>> {
        Collection::find_named(&self.handle, name)
    }

    /// Creates a collection with text ids. Cost: a sync.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.create_keyed_collection("books")?.insert_as("978-3-16", &serde_json::json!({}))?;
    /// let again = db.create_keyed_collection("books");
    /// assert!(matches!(again, Err(remora::Error::Exists(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Database::create_collection`].
    pub fn create_keyed_collection(&self, name: &str) -> Result<Collection<String>> {
        Collection::create(&self.handle, name)
    }

    /// The names of the collections with text ids, sorted.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.keyed_collection("books")?;
    /// db.collection("notes")?;
    /// assert_eq!((db.keyed_collections(), db.collections()), (vec!["books".into()], vec!["notes".into()]));
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn keyed_collections(&self) -> Vec<String> {
        let mut names = self.handle.engine.tables();
        names.retain(|name| matches!(self.find_keyed_collection(name), Ok(Some(_))));
        names
    }

    /// Starts a batch: changes of several tables and collections in one durable step.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let (orders, items) = (db.collection("orders")?, db.collection("items")?);
    /// let mut batch = db.batch();
    /// let order = batch.insert_document(&orders, &serde_json::json!({"customer": "Ann"}))?;
    /// batch.insert_document(&items, &serde_json::json!({"order": order}))?;
    /// batch.commit()?;
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.handle))
    }

    /// All tables and collections as of now, for reads that must see one state: see [`Snapshot`](crate::Snapshot). Cost: some
    /// microseconds.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let notes = db.collection("notes")?;
    /// let before = db.snapshot()?;
    /// notes.insert_json(r#"{"text": "later"}"#)?;
    /// assert_eq!((before.collection(&notes)?.len()?, notes.len()?), (0, 1));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`] if the database was closed.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::new(Arc::clone(&self.handle))
    }

    /// Starts watching committed changes of all writers: see [`Watch`](crate::Watch).
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let notes = db.collection("notes")?;
    /// let mut changes = db.watch().tables(["notes"]).start()?;
    /// notes.insert_json(r#"{"text": "Herons nest at the reef"}"#)?;
    /// let change = changes.next_within(std::time::Duration::from_secs(10))?;
    /// assert!(change.is_some_and(|change| change.table() == "notes"));
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn watch(&self) -> WatchBuilder {
        WatchBuilder::new(Arc::clone(&self.handle))
    }

    /// The named watchers, sorted by name, open or not.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.watch().named("mailer").start()?;
    /// db.watch().named("audit").start()?;
    /// let names: Vec<String> = db.watchers().into_iter().map(|watcher| watcher.name).collect();
    /// assert_eq!(names, ["audit", "mailer"]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn watchers(&self) -> Vec<Watcher> {
        let watchers = self.handle.engine.watchers().into_iter();
        watchers.map(Watcher::of_engine).collect()
    }

    /// Removes a watcher: no changes are kept for it any more. Cost: a sync.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let open = db.watch().named("mailer").start()?;
    /// assert!(matches!(db.forget_watcher("mailer"), Err(remora::Error::Conflict(_))));
    /// drop(open);
    /// db.forget_watcher("mailer")?;
    /// assert!(db.watchers().is_empty());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name, [`Error::Conflict`] if it is open;
    /// [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it cannot be written.
    pub fn forget_watcher(&self, name: &str) -> Result<()> {
        Ok(self.handle.engine.forget_watcher(name)?)
    }

    /// The names of the collections with number ids, sorted.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.collection("notes")?;
    /// db.create_table("birds", |t| t.int("id").key())?;
    /// assert_eq!(db.collections(), ["notes"]);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn collections(&self) -> Vec<String> {
        let mut names = self.handle.engine.tables();
        names.retain(|name| matches!(self.find_collection(name), Ok(Some(_))));
        names
    }

    /// Renames a collection, with ids of either type. Cost: a sync; no document is rewritten.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let id = db.collection("notes")?.insert_json(r#"{"text": "kept"}"#)?;
    /// db.rename_collection("notes", "ideas")?;
    /// assert!(db.collection("ideas")?.get(id)?.is_some());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name, [`Error::Exists`] if the new name is in use,
    /// [`Error::Request`] if it is invalid, or if SQL declared keys or conditions of the collection; [`Error::Full`],
    /// [`Error::ReadOnly`] or [`Error::Closed`] if it cannot be written.
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
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// let db = remora::Database::open("replica")?;
    /// let replica = db.follow("mysql://remora:secret@db.example:3306/shop", ["articles", "order*"])?;
    /// replica.wait_until_live(Duration::from_secs(600))?;
    /// println!("{} orders", db.table("shop.orders")?.count()?);
    /// # Ok::<(), remora::Error>(())
    /// ```
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
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.execute("CREATE TABLE birds (id INT PRIMARY KEY, name VARCHAR(40))", [])?;
    /// let written = db.execute("INSERT INTO birds VALUES (?, ?)", remora::params![1, "Heron"])?;
    /// assert_eq!(written.rows_changed, 1);
    /// let again = db.execute("INSERT INTO birds VALUES (?, ?)", remora::params![1, "Kite"]);
    /// assert_eq!(again.err().and_then(|error| error.mysql_code()), Some(1062));
    /// # Ok::<(), remora::Error>(())
    /// ```
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
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let rows = db.query("SELECT ? AS id, ? AS name", remora::params![7, "Heron"])?;
    /// for row in &rows {
    ///     println!("{}: {}", row.get::<i64>("id")?, row.get::<String>("name")?);
    /// }
    /// assert_eq!(rows.one::<(i64, String)>()?, (7, "Heron".to_owned()));
    /// # Ok::<(), remora::Error>(())
    /// ```
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
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// db.execute("CREATE TABLE numbers (n INT PRIMARY KEY)", [])?;
    /// db.execute("INSERT INTO numbers VALUES (1), (2), (3)", [])?;
    /// let mut sum = 0;
    /// for row in db.query_stream("SELECT n FROM numbers WHERE n > ?", remora::params![1])? {
    ///     sum += row?.get::<i64>("n")?;
    /// }
    /// assert_eq!(sum, 5);
    /// # Ok::<(), remora::Error>(())
    /// ```
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
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let batches = db.query_arrow("SELECT 7 AS n UNION ALL SELECT 8", [])?;
    /// let schema = batches[0].schema();
    /// assert_eq!(schema.field(0).data_type(), &remora::arrow::datatypes::DataType::Int64);
    /// assert_eq!(batches[0].num_rows(), 2);
    /// # Ok::<(), remora::Error>(())
    /// ```
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
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # db.execute("CREATE TABLE birds (id INT PRIMARY KEY, name VARCHAR(40))", [])?;
    /// let insert = db.prepare("INSERT INTO birds VALUES (?, ?)")?;
    /// for (id, name) in [(1, "Heron"), (2, "Kite")] {
    ///     insert.execute(remora::params![id, name])?;
    /// }
    /// assert!(matches!(db.prepare("SELECT * FROM fish"), Err(remora::Error::NotFound(_))));
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if it is invalid or cannot be prepared, [`Error::NotFound`] if a table or
    /// column does not exist.
    pub fn prepare(&self, text: &str) -> Result<Prepared> {
        Prepared::new(Arc::clone(&self.handle), text)
    }

    /// A session, for statements that depend on each other.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let mut connection = db.connection();
    /// connection.execute("SET @limit = 3", [])?;
    /// assert_eq!(connection.query("SELECT @limit + 1", [])?.one::<i64>()?, 4);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn connection(&self) -> Connection {
        Connection::new(Arc::clone(&self.handle))
    }

    /// Runs `work` in a transaction, which is committed if it returns `Ok` and rolled back if it
    /// returns an error. The transaction reads the state at its beginning and its own changes. Cost: memory for what it
    /// changes, and one sync at the commit.
    ///
    /// ```
    /// use remora::{Database, Error, params};
    ///
    /// let db = Database::in_memory()?;
    /// db.execute("CREATE TABLE accounts (id INT PRIMARY KEY, balance INT)", [])?;
    /// db.execute("INSERT INTO accounts VALUES (1, 100), (2, 0)", [])?;
    /// let pay = |amount: i64| {
    ///     db.transaction(|tx| {
    ///         tx.execute("UPDATE accounts SET balance = balance - ? WHERE id = 1", params![amount])?;
    ///         tx.execute("UPDATE accounts SET balance = balance + ? WHERE id = 2", params![amount])
    ///     })
    /// };
    /// while let Err(error) = pay(30) {
    ///     if !matches!(error, Error::Conflict(_)) {
    ///         return Err(error);
    ///     }
    /// }
    /// assert_eq!(db.query("SELECT balance FROM accounts WHERE id = 2", [])?.one::<i64>()?, 30);
    /// # Ok::<(), Error>(())
    /// ```
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
