//! Watching (change data capture): committed changes one by one, starting at a position.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{
    ChangeBatch, Position, Schema, Value, Watch as EngineWatch, WatchRequest, WatchStatus, Watched,
    WatchedChange,
};

use crate::{Error, Result, handle::Handle, row::Row, table::shown};

/// The settings of a watcher. [`Database::watch`](crate::Database::watch) creates them, and
/// [`WatchBuilder::start`] starts it.
///
/// ```
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
/// let mut changes = db.watch().named("mailer").tables(["birds"]).start()?;
/// birds.insert(&json!({"id": 1, "name": "Heron"}))?;
/// let change = changes.next().ok_or(remora::Error::Closed)??;
/// assert_eq!(change.table(), "birds");
/// # Ok::<(), remora::Error>(())
/// ```
pub struct WatchBuilder {
    handle: Arc<Handle>,
    request: WatchRequest,
}

impl WatchBuilder {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, request: WatchRequest::default() }
    }

    /// Gives the watcher a name. From then on changes are kept for it until it is removed, also
    /// across restarts and while nobody reads them. If the watcher exists, it continues after its
    /// saved position. An unnamed watcher starts now and ends with the [`Watch`].
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.request.name = Some(name.into());
        self
    }

    /// Watches only these tables and collections, whether they exist or not. Tables of SQL are
    /// qualified by their database (`shop.orders`), except those in `remora`. The default is all
    /// tables.
    pub fn tables<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.request.tables.get_or_insert_default().extend(names.into_iter().map(T::into));
        self
    }

    /// Starts after a position that the program has stored itself, from [`Change::position`] or
    /// [`Watch::position`], and not after the saved one. The watcher needs a name, for which the
    /// changes since then were kept.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.collection("birds")?;
    /// let first = db.watch().named("mailer").start()?;
    /// let stored = first.position();
    /// birds.insert_json(r#"{"name": "Heron"}"#)?;
    /// drop(first);
    /// let mut again = db.watch().named("mailer").from(stored).start()?;
    /// assert!(again.next_within(std::time::Duration::from_secs(10))?.is_some());
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn from(mut self, position: u64) -> Self {
        self.request.from = Some(Position(position));
        self
    }

    /// Starts watching. Cost: a sync for the first watcher of a database. See [`Watch`] for the
    /// cost of later writes.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// let open = db.watch().named("mailer").start()?;
    /// let second = db.watch().named("mailer").start();
    /// assert!(matches!(second, Err(remora::Error::Conflict(_))));
    /// drop(open);
    /// assert!(db.watch().named("mailer").start().is_ok());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Gone`]: the changes after the position are no longer kept.
    /// - [`Error::Conflict`]: the watcher of this name is open, or watches other tables.
    /// - [`Error::Request`]: the name is empty or longer than 200 bytes, or the position is in the
    ///   future.
    /// - [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`]: nothing can be written.
    pub fn start(self) -> Result<Watch> {
        let engine = self.handle.engine.watch(self.request)?;
        Ok(Watch { name: engine.name().map(Into::into), engine, handle: self.handle, ended: false })
    }
}

/// Committed changes of all writers, one by one in the order of commits: an iterator that waits for
/// the next change.
///
/// ```
/// use remora::{Database, Event};
/// use serde_json::json;
///
/// let db = Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
/// let changes = db.watch().named("mailer").tables(["birds"]).start()?;
/// birds.insert(&json!({"id": 1, "name": "Heron"}))?;
/// birds.upsert(&json!({"id": 1, "name": "Grey heron"}))?;
/// birds.delete(1)?;
///
/// for change in changes.take(3) {
///     let change = change?;
///     match change.event() {
///         Event::Insert { row } => println!("new: {row:?}"),
///         Event::Update { old, row } => println!("{old:?} is now {row:?}"),
///         Event::Delete { old } => println!("gone: {old:?}"),
///         other => println!("{}: {other:?}", change.table()),
///     }
///     change.save()?;
/// }
/// # Ok::<(), remora::Error>(())
/// ```
///
/// **Which changes.** All changes committed after its position, each once, in the order of commits.
/// The changes of a transaction are consecutive ([`Change::transaction`], [`Change::is_last`]). If
/// a transaction changes a row several times, only the final result is reported. Reported changes
/// are durable to the degree of [`Options::durability`](crate::Options).
///
/// **Across restarts.** A named watcher continues after the position that was last saved: by
/// [`Change::save`], or together with what the program writes, by
/// [`Batch::done`](crate::Batch::done). No later change is left out, and changes that were reported
/// but not saved are reported again. So each change is processed at least once, or exactly once if
/// its effect is written in the same batch as the position.
///
/// **Cost.** Without watchers, nothing. With watchers, each write to a watched table reads the
/// row's previous version, if there is one, and writes both versions again, in the same commit and
/// sync. A transaction larger than memory (a large load, a copy of a followed table) is read again
/// before its commit, while other writes wait. Changes that all watchers have saved are dropped. A
/// watcher that is further behind than
/// [`Options::max_watch_bytes`](crate::Options::max_watch_bytes) gets [`Error::Gone`], so that a
/// slow watcher blocks nobody. Memory: about a megabyte, and the largest row.
///
/// **Definitions** are reported as changes of their own: see [`Event`]. Hidden tables (of keys and
/// of copies) are not reported.
///
/// **The initial state.** Start the watcher first, then read the tables, then apply the changes.
/// Applying a change that the tables already contained leaves the row as it is, and later ones
/// follow.
///
/// It ends when the database is closed: [`Database::close`](crate::Database::close) in another
/// thread ends the wait. Dropping it keeps the stored state of its name.
pub struct Watch {
    engine: EngineWatch,
    handle: Arc<Handle>,
    name: Option<Arc<str>>,
    ended: bool,
}

impl Watch {
    /// The next change; `None` if none arrives within this time. Cost: a read of the next changes, about a megabyte at
    /// a time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.collection("birds")?;
    /// let mut changes = db.watch().start()?;
    /// assert!(changes.next_within(Duration::ZERO)?.is_none());
    /// birds.insert_json(r#"{"name": "Heron"}"#)?;
    /// assert!(changes.next_within(Duration::from_secs(10))?.is_some());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Gone`]: the next changes are no longer kept.
    /// - [`Error::Closed`]: the database was closed.
    /// - [`Error::ReadOnly`]: the database no longer accepts writes, and all changes were reported.
    /// - [`Error::Corrupt`] or [`Error::Io`]: the changes cannot be read.
    pub fn next_within(&mut self, patience: Duration) -> Result<Option<Change>> {
        let deadline = Instant::now().checked_add(patience);
        let change = self.engine.next_change(deadline)?;
        Ok(change.map(|change| self.change(change)))
    }

    /// The current position: all changes up to it were reported.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.collection("birds")?;
    /// let mut changes = db.watch().start()?;
    /// let before = changes.position();
    /// birds.insert_json(r#"{"name": "Heron"}"#)?;
    /// changes.next_within(std::time::Duration::from_secs(10))?;
    /// assert!(changes.position() > before);
    /// # Ok::<(), remora::Error>(())
    /// ```
    pub fn position(&self) -> u64 {
        self.engine.position().0
    }

    /// Durably saves, under the watcher's name, that everything up to a position was processed. It
    /// is a [`Change::position`] or [`Watch::position`]; the latter also advances while nothing is
    /// reported, so that fewer changes are kept. Cost: that of a small write with a sync.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.collection("birds")?;
    /// let mut changes = db.watch().named("mailer").start()?;
    /// birds.insert_json(r#"{"name": "Heron"}"#)?;
    /// changes.next_within(std::time::Duration::from_secs(10))?;
    /// changes.save(changes.position())?;
    /// assert_eq!(db.watchers()[0].position, changes.position());
    /// # Ok::<(), remora::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if the watcher has no name or has not reached the position;
    /// [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it cannot be written.
    pub fn save(&self, position: u64) -> Result<()> {
        Ok(self.engine.save(Position(position))?)
    }

    fn change(&self, change: WatchedChange) -> Change {
        let position = change.resume_at().0;
        let (key, event) = event(change.what);
        Change {
            handle: Arc::clone(&self.handle),
            watcher: self.name.clone(),
            transaction: change.batch.0,
            position,
            is_last: change.is_last,
            table: change.table,
            key,
            event,
        }
    }
}

impl Iterator for Watch {
    type Item = Result<Change>;

    /// Waits for the next change. It ends after an error, or when the database is closed.
    fn next(&mut self) -> Option<Result<Change>> {
        if self.ended {
            return None;
        }
        match self.engine.next_change(None) {
            Ok(Some(change)) => Some(Ok(self.change(change))),
            Ok(None) | Err(remora_engine::Error::Closed) => {
                self.ended = true;
                None
            }
            Err(error) => {
                self.ended = true;
                Some(Err(error.into()))
            }
        }
    }
}

/// A committed change.
///
/// ```
/// use remora::{Event, Value};
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
/// let mut changes = db.watch().start()?;
/// birds.insert_many([json!({"id": 1, "name": "Heron"}), json!({"id": 2, "name": "Kite"})])?;
/// let (first, second) = (changes.next().ok_or("no change")??, changes.next().ok_or("no change")??);
/// assert_eq!((first.table(), first.key()), ("birds", Some(&[Value::Int(1)][..])));
/// assert!(matches!(first.event(), Event::Insert { .. }));
/// assert_eq!(second.row().map(|row| row.get("name")).transpose()?, Some("Kite".to_owned()));
/// assert!(first.transaction() == second.transaction() && second.is_last());
/// assert!(first.position() < second.position());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Change {
    pub(crate) handle: Arc<Handle>,
    watcher: Option<Arc<str>>,
    transaction: u64,
    position: u64,
    is_last: bool,
    table: Arc<str>,
    key: Option<Vec<Value>>,
    event: Event,
}

/// What a change did. Rows have the columns that their table had at that time.
///
/// ```
/// use remora::Event;
/// use serde_json::json;
///
/// let db = remora::Database::in_memory()?;
/// let birds = db.create_table("birds", |t| t.int("id").key().text("name"))?;
/// let mut changes = db.watch().start()?;
/// birds.insert(&json!({"id": 1, "name": "Heron"}))?;
/// birds.delete(1)?;
/// let mut next = || changes.next().ok_or(remora::Error::Closed)?;
/// assert!(matches!(next()?.event(), Event::Insert { .. }));
/// assert!(matches!(next()?.event(), Event::Delete { .. }));
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A row was inserted.
    Insert {
        /// The new row.
        row: Row,
    },
    /// A row was changed, or written again unchanged.
    Update {
        /// The row before.
        old: Row,
        /// The row after.
        row: Row,
    },
    /// A row was deleted.
    Delete {
        /// The deleted row.
        old: Row,
    },
    /// A table was created, without rows.
    Created,
    /// The table was dropped with its rows.
    Dropped,
    /// All rows of the table were deleted.
    Truncated,
    /// The definition of the table was changed. Its rows stay; new columns have NULL or their
    /// default in them.
    Altered,
    /// The table was renamed. A table that had the new name was dropped.
    Renamed {
        /// The old name.
        from: String,
    },
    /// The rows of the table were replaced without individual changes: another table took its
    /// place, for example a rebuilt one after a schema change, or a new copy of a followed table.
    /// Read it again.
    Replaced,
}

impl Change {
    /// The name of the table or collection.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The row's key, in the order of the key's columns; `None` for a change of the table.
    pub fn key(&self) -> Option<&[Value]> {
        self.key.as_deref()
    }

    /// What the change did.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The row after the change; `None` if it was deleted, and for a change of the table.
    pub fn row(&self) -> Option<&Row> {
        match &self.event {
            Event::Insert { row } | Event::Update { row, .. } => Some(row),
            _ => None,
        }
    }

    /// The number of the transaction: only its changes have it, and later transactions have greater
    /// ones.
    pub fn transaction(&self) -> u64 {
        self.transaction
    }

    /// Whether it is the last reported change of its transaction.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The position to save once everything up to this change was processed. Before the last change
    /// of a transaction, it is the position before the transaction, all of which would be reported
    /// again.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Durably saves, under the watcher's name, that everything up to this change was processed.
    /// Cost: that of a small write with a sync; several thousand changes may share one.
    ///
    /// ```
    /// # let db = remora::Database::in_memory()?;
    /// # let birds = db.collection("birds")?;
    /// let mut changes = db.watch().named("mailer").start()?;
    /// birds.insert_json(r#"{"name": "Heron"}"#)?;
    /// changes.next().ok_or("no change")??.save()?;
    /// drop(changes);
    /// let mut later = db.watch().named("mailer").start()?; // The bird is not reported again.
    /// assert!(later.next_within(std::time::Duration::ZERO)?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Request`] if the watcher has no name; [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`] if it
    /// cannot be written.
    pub fn save(&self) -> Result<()> {
        let stored = EngineWatch::position_of(self.watcher_name()?, Position(self.position));
        self.handle.engine.apply(ChangeBatch { tables: Vec::new(), positions: vec![stored] })?;
        Ok(())
    }

    pub(crate) fn watcher_name(&self) -> Result<&str> {
        self.watcher.as_deref().ok_or_else(|| {
            Error::request("a watcher without a name cannot store its position: give it a name")
        })
    }
}

impl std::fmt::Debug for Change {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Change")
            .field("transaction", &self.transaction)
            .field("is_last", &self.is_last)
            .field("table", &self.table)
            .field("event", &self.event)
            .finish()
    }
}

/// A named watcher.
///
/// ```
/// let db = remora::Database::in_memory()?;
/// drop(db.watch().named("mailer").start()?);
/// let watchers = db.watchers();
/// assert_eq!((watchers[0].name.as_str(), &watchers[0].tables), ("mailer", &None));
/// db.forget_watcher("mailer")?;
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watcher {
    /// Its name.
    pub name: String,
    /// The tables that it watches; `None` means all.
    pub tables: Option<Vec<String>>,
    /// The saved position.
    pub position: u64,
}

impl Watcher {
    pub(crate) fn of_engine(status: WatchStatus) -> Self {
        let WatchStatus { name, tables, saved } = status;
        Self { name, tables, position: saved.0 }
    }
}

/// Converts a change of the engine, with the key of the row.
fn event(what: Watched) -> (Option<Vec<Value>>, Event) {
    let key = |schema: &Schema, row: &[Value]| {
        let parts = schema.primary_key.iter();
        Some(parts.filter_map(|&part| row.get(part).cloned()).collect())
    };
    match what {
        Watched::Insert { schema, new } => {
            (key(&schema, &new), Event::Insert { row: shown(&schema, new) })
        }
        Watched::Update { schema, old, new } => {
            let key = key(&schema, &new);
            (key, Event::Update { old: shown(&schema, old), row: shown(&schema, new) })
        }
        Watched::Delete { schema, old } => {
            (key(&schema, &old), Event::Delete { old: shown(&schema, old) })
        }
        Watched::Created => (None, Event::Created),
        Watched::Dropped => (None, Event::Dropped),
        Watched::Truncated => (None, Event::Truncated),
        Watched::Altered => (None, Event::Altered),
        Watched::Renamed { from } => (None, Event::Renamed { from }),
        Watched::Replaced => (None, Event::Replaced),
    }
}
