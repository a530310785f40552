//! Watching (change data capture): committed changes one by one, from a position on.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{
    ChangeBatch, Position, Schema, Value, Watch as EngineWatch, WatchRequest, WatchStatus, Watched,
    WatchedChange,
};

use crate::{Error, Result, handle::Handle, row::Row, table::shown};

/// What is to be watched: [`Database::watch`](crate::Database::watch) begins one, [`WatchBuilder::start`] ends it.
pub struct WatchBuilder {
    handle: Arc<Handle>,
    request: WatchRequest,
}

impl WatchBuilder {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, request: WatchRequest::default() }
    }

    /// Keeps changes for this name from now on, until it is forgotten, also while nobody reads them and across restarts; if it
    /// is there it goes on behind its saved position. One without a name begins now and is gone with the [`Watch`].
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.request.name = Some(name.into());
        self
    }

    /// Watches these tables and collections alone, whether they are there or not; a table of SQL has its database
    /// before its name (`shop.orders`), but for those of `remora`. Without this all are watched.
    pub fn tables<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.request.tables.get_or_insert_default().extend(names.into_iter().map(T::into));
        self
    }

    /// Begins behind a position that the program has kept itself, of [`Change::position`] or [`Watch::position`].
    pub fn from(mut self, position: u64) -> Self {
        self.request.from = Some(Position(position));
        self
    }

    /// Begins. Cost: the first watcher of a database costs a sync; what writes cost from then on says [`Watch`].
    ///
    /// # Errors
    /// - [`Error::Gone`]: what comes behind the position is not kept any more.
    /// - [`Error::Conflict`]: the watcher of this name is open, or has other tables.
    /// - [`Error::Request`]: the name is empty or above 200 bytes, or the position lies ahead.
    /// - [`Error::Full`], [`Error::ReadOnly`] or [`Error::Closed`]: nothing can be written.
    pub fn start(self) -> Result<Watch> {
        let engine = self.handle.engine.watch(self.request)?;
        Ok(Watch { name: engine.name().map(Into::into), engine, handle: self.handle, ended: false })
    }
}

/// What is committed, by whomever, change by change in the order of commits: an iterator that waits for what comes.
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
/// **Which changes.** All that are committed behind its position, each once, in the order of commits; those of a
/// transaction stand together ([`Change::transaction`], [`Change::is_last`]). Of several changes that a transaction makes
/// to a row the outcome is told. What is told is durable as far as [`Options::durability`](crate::Options) says.
///
/// **Across restarts.** One that has a name goes on behind the position that was saved last: by [`Change::save`], or with
/// what the program writes, by [`Batch::done`](crate::Batch::done). No change behind it is left out, and those that were
/// told and not saved are told again: at least once; what is written in the same batch as the position, exactly once.
///
/// **What it costs.** Nothing while there is no watcher. While there is one, each write of a watched table reads the row
/// before, if there is one, and writes both rows once more, in the same commit and sync. A transaction larger than memory (a
/// large load, a copy of a followed table) is read once more before its commit, while other writes wait.
/// What all watchers have saved is dropped. Whoever is further behind than
/// [`Options::max_watch_bytes`](crate::Options::max_watch_bytes) gets [`Error::Gone`]: who is slow holds up nobody. In
/// memory is a megabyte or so, and the largest row.
///
/// **Definitions** have changes of their own: see [`Event`]. Hidden tables (of keys and of copies) are not told of.
///
/// **The state it begins at.** Start the watcher first, then read the tables, then apply its changes: a change that
/// is in what was read already makes the row what it was, and the later ones follow.
///
/// It ends when the database is closed: [`Database::close`](crate::Database::close) from another thread ends the wait.
/// Dropping it leaves what is stored of its name.
pub struct Watch {
    engine: EngineWatch,
    handle: Arc<Handle>,
    name: Option<Arc<str>>,
    ended: bool,
}

impl Watch {
    /// The next change; `None` if there is none within this time.
    ///
    /// # Errors
    /// - [`Error::Gone`]: what comes next is not kept any more.
    /// - [`Error::Closed`]: the database was closed.
    /// - [`Error::ReadOnly`]: it takes no writes any more, and all changes were told.
    /// - [`Error::Corrupt`] or [`Error::Io`]: the changes cannot be read.
    pub fn next_within(&mut self, patience: Duration) -> Result<Option<Change>> {
        let deadline = Instant::now().checked_add(patience);
        let change = self.engine.next_change(deadline)?;
        Ok(change.map(|change| self.change(change)))
    }

    /// How far it has come: all changes up to here were told.
    pub fn position(&self) -> u64 {
        self.engine.position().0
    }

    /// Saves under its name, durably, that everything up to a position is done, of a [`Change::position`] or
    /// [`Watch::position`]: also where nothing was to be told, so that less is kept for it.
    ///
    /// # Errors
    /// [`Error::Request`] if it has no name or did not come so far; [`Error::Full`], [`Error::ReadOnly`] or
    /// [`Error::Closed`] if it cannot be written.
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

    /// Waits for the next change. The end is that of the database, or comes behind an error.
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

/// A change that was committed.
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

/// What happened. Rows have the columns that their table had then.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// There is a new row.
    Insert {
        /// The row.
        row: Row,
    },
    /// A row is another one now, or was written again as it was.
    Update {
        /// The row before.
        old: Row,
        /// The row.
        row: Row,
    },
    /// A row is gone.
    Delete {
        /// The row before.
        old: Row,
    },
    /// There is a new table, without rows.
    Created,
    /// The table is gone, and its rows with it.
    Dropped,
    /// All rows of the table are gone.
    Truncated,
    /// The table has another definition, and the rows it had: columns that are new are NULL in them or what the
    /// definition says.
    Altered,
    /// The table had this name before; what had its name is gone.
    Renamed {
        /// The name before.
        from: String,
    },
    /// The table has other rows than before, of which nothing was told: it took the place of the one that had its
    /// name, as where a schema change or a copy of a followed table made it anew. Read it.
    Replaced,
}

impl Change {
    /// The name of the table or collection.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The row's key, in the order of the key's columns; `None` where it is the table that changed.
    pub fn key(&self) -> Option<&[Value]> {
        self.key.as_deref()
    }

    /// What happened.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The row as it is by the change; `None` if it is gone, or the table changed.
    pub fn row(&self) -> Option<&Row> {
        match &self.event {
            Event::Insert { row } | Event::Update { row, .. } => Some(row),
            _ => None,
        }
    }

    /// The number of the transaction that made it: equal for its changes alone, and greater for later ones.
    pub fn transaction(&self) -> u64 {
        self.transaction
    }

    /// Whether it is the last change of its transaction that is told.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Where to go on if everything up to this change is done. Before the last change of a transaction that is before the
    /// transaction: all of it is told again.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Saves under the watcher's name, durably, that everything up to this change is done. Cost: that of a small write, a
    /// sync with it; several thousand changes may share one.
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

/// A watcher that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watcher {
    /// Its name.
    pub name: String,
    /// The tables it watches; `None`: all.
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

/// What happened as a program gets it, with the key of the row.
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
