//! Watching (change data capture): committed changes in commit order, from a position on.
//!
//! While a watcher exists, the writer stores changes in the feed ([`crate::write`]). A watcher reads the feed from
//! the row store one page at a time, at its own pace, up to the published position. Changes that no watcher needs any
//! more are dropped. If the feed exceeds [`Options::max_watch_bytes`](crate::Options::max_watch_bytes), its oldest
//! changes are dropped too, and a watcher that still needed them gets an error.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use crossbeam_channel::bounded;

use crate::{
    ChangeBatch, Error, Missing, Pending, Position, RequestPart, RequiredRows, Result, Row, Schema,
    encode::RowFormat,
    shared::{DatabaseState, Job, WatchOrder, Watcher},
    snapshot::Snapshot,
    storage::{
        feed::{
            Defined, FeedEntry, Generation, StoredChange, WATCH_POSITION, entry_key, parse_entry,
            parse_entry_key, read_definition, read_generations,
        },
        store::StoreSnapshot,
    },
    write::{RowColumns, prepare},
};

/// Bytes of feed entries read at once.
const PAGE_BYTES: usize = if cfg!(test) { 300 } else { 1 << 20 };
/// The most table definitions kept in memory; beyond that all are read again.
const MAX_FORMATS: usize = 1_024;
/// The longest name of a watcher, in bytes.
const MAX_NAME_BYTES: usize = 200;
/// After skipping `max_watch_bytes / SKIPPED_PART` bytes of changes to other tables, a named watcher saves its
/// position. Otherwise those changes would push the feed past its limit and the watcher would lose its place.
const SKIPPED_PART: u64 = 16;

/// What a watcher asks for.
#[derive(Clone, Debug, Default)]
pub struct WatchRequest {
    /// The name under which the position is stored. A watcher without a name starts at the current position and is
    /// removed when it is dropped.
    pub name: Option<String>,
    /// The tables to watch, existing or not. `None`: all that are not hidden.
    pub tables: Option<Vec<String>>,
    /// Start after this batch. `None`: after the saved position, or after the last committed batch if the watcher is
    /// new.
    pub from: Option<Position>,
}

/// A named watcher and its saved position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchStatus {
    /// The name of the watcher.
    pub name: String,
    /// The tables that it watches; `None` for all.
    pub tables: Option<Vec<String>>,
    /// The saved position: changes up to this batch are done.
    pub saved: Position,
}

/// A committed change.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedChange {
    /// The position of its batch, which all changes of the batch share.
    pub batch: Position,
    /// Whether it is the last change of its batch that this watcher gets.
    pub is_last: bool,
    /// The name of the table when it changed.
    pub table: Arc<str>,
    /// What happened.
    pub what: Watched,
}

/// What happened to a row or a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    /// A row was added.
    Insert {
        /// The definition at that time.
        schema: Arc<Schema>,
        /// The new row.
        new: Row,
    },
    /// A row was replaced.
    Update {
        /// The definition at that time.
        schema: Arc<Schema>,
        /// The row before.
        old: Row,
        /// The row after.
        new: Row,
    },
    /// A row was deleted.
    Delete {
        /// The definition at that time.
        schema: Arc<Schema>,
        /// The deleted row.
        old: Row,
    },
    /// A table was created, without rows.
    Created,
    /// The table and its rows were dropped.
    Dropped,
    /// All rows of the table were deleted.
    Truncated,
    /// The definition of the table changed; its rows stayed.
    Altered,
    /// The table was renamed to this name. A table that had the name before is gone.
    Renamed {
        /// The old name.
        from: String,
    },
    /// Another table took this name, with rows that were never reported: read the table.
    Replaced,
}

impl WatchedChange {
    /// The position to resume from once everything up to this change is done. A batch is done with its last change;
    /// before that, this is the position before the batch.
    pub fn resume_at(&self) -> Position {
        if self.is_last { self.batch } else { Position(self.batch.0.saturating_sub(1)) }
    }
}

impl WatchStatus {
    /// All named watchers, by name.
    pub(crate) fn all(shared: &DatabaseState) -> Vec<Self> {
        let sources = shared.published.load().sources.clone();
        let status = |watcher: Arc<Watcher>| {
            let tables = watcher.tables.as_ref();
            Some(Self {
                name: watcher.name.clone()?,
                tables: tables.map(|tables| tables.iter().cloned().collect()),
                saved: watcher.passed(&sources),
            })
        };
        shared.watchers.all_named().into_iter().filter_map(status).collect()
    }
}

/// An open watcher. Dropping it keeps the stored position of a named watcher.
pub struct Watch {
    shared: Arc<DatabaseState>,
    watcher: Arc<Watcher>,
    /// Where to read next: the entry of this batch and part, or the first one after it.
    at: (u64, u32),
    /// Changes read but not yet returned.
    read_ahead: VecDeque<WatchedChange>,
    formats: HashMap<(u32, u64), Arc<Format>>,
    /// The last batch a change was returned from.
    last_returned: u64,
    /// Bytes of feed entries without a change for this watcher, since the last change it returned.
    skipped_bytes: u64,
}

/// How to read rows of one table definition.
struct Format {
    rows: RowFormat,
    table: Arc<str>,
    required: RequiredRows,
}

impl Watch {
    pub(crate) fn begin(shared: &Arc<DatabaseState>, request: WatchRequest) -> Result<Self> {
        shared.check_open()?;
        check_request(&request)?;
        let WatchRequest { name, tables, from } = request;
        let current = shared.published.load();
        let is_declared =
            |table: &str| current.tables.get(table).is_some_and(|it| it.schema.is_distributed());
        let parts = |table: &String| is_declared(table) || !current.parts_of(table).is_empty();
        if let Some(table) = tables.iter().flatten().find(|table| parts(table)) {
            let message = format!("table {table:?} is distributed: watch its parts");
            return Err(Error::request(RequestPart::Other, message));
        }
        let (sender, answer) = bounded(1);
        let order = WatchOrder::Begin(name, tables.clone(), sender);
        shared.queue.push(Job::Watch(order))?;
        let watcher = answer.recv().unwrap_or_else(|_| Err(shared.refusal()))?;
        let name = watcher.name.as_deref().unwrap_or_default();
        if watcher.is_open.swap(true, Ordering::AcqRel) {
            let message =
                format!("watcher {name:?} is open already: close it first, or use another name");
            return Err(Error::Conflict(message));
        }
        let mut watch = Self {
            shared: Arc::clone(shared),
            watcher,
            at: (0, 0),
            read_ahead: VecDeque::new(),
            formats: HashMap::new(),
            last_returned: 0,
            skipped_bytes: 0,
        };
        if watch.watcher.tables != tables.map(|tables| tables.into_iter().collect()) {
            let name = watch.watcher.name.as_deref().unwrap_or_default();
            let message = format!(
                "watcher {name:?} watches other tables: forget it first, or use another name"
            );
            return Err(Error::Conflict(message));
        }
        let current = shared.published.load();
        let from = from.unwrap_or_else(|| watch.watcher.passed(&current.sources));
        if from > current.position {
            let (asked, now) = (from.0, current.position.0);
            let message = format!(
                "position {asked} is after the last one, {now}: it belongs to another database"
            );
            return Err(Error::request(RequestPart::Other, message));
        }
        if from < watch.watcher.since {
            return Err(no_longer_kept(from.0 + 1, watch.watcher.since));
        }
        watch.at = (from.0.saturating_add(1), 0);
        watch.last_returned = from.0;
        watch.reading(|watch, store| watch.generations(store).map(drop))?;
        Ok(watch)
    }

    /// Returns the next change. Waits for it until `deadline` (`None`: without limit); `None` if there is none by
    /// then. Cost: microseconds, and a read of the row store per megabyte of the feed.
    ///
    /// # Errors
    /// - [`Error::NotFound`]: the next changes were dropped from the feed, or the watcher was forgotten.
    /// - [`Error::Closed`]: the database was closed. A named watcher can go on when the database is open again.
    /// - [`Error::Corrupt`], [`Error::Io`]: the changes cannot be read.
    /// - [`Error::Poisoned`]: the database accepts no writes any more, and all changes were returned.
    pub fn next_change(&mut self, deadline: Option<Instant>) -> Result<Option<WatchedChange>> {
        loop {
            self.shared.check_open()?;
            if let Some(change) = self.pop() {
                return Ok(Some(change));
            }
            let visible = self.shared.published.load().position.0;
            if self.at.0 <= visible {
                self.reading(|watch, store| watch.read_page(visible, store))?;
                continue;
            }
            self.save_skipped();
            let moved = |current: &Snapshot| current.position.0 > visible;
            if !self.shared.published.wait_until(deadline, moved)? {
                return Ok(None);
            }
        }
    }

    /// Saves durably that everything up to this batch is done. The next watch with this name resumes after it. To
    /// save the position in the same batch as other changes, use [`Watch::stored`].
    ///
    /// # Errors
    /// [`Error::Request`] if the watcher has no name or has not reached the position; [`Error::Full`],
    /// [`Error::Poisoned`] or [`Error::Closed`] if nothing can be written.
    pub fn save(&self, position: Position) -> Result<()> {
        let positions = vec![self.stored(position)?];
        let batch = ChangeBatch { tables: Vec::new(), positions };
        let prepared =
            prepare(batch, RowColumns::Visible, &self.shared.published.load(), &self.shared)?;
        let (waiter, pending) = Pending::new(&self.shared);
        self.shared.queue.push(Job::Apply(prepared, waiter))?;
        pending.wait().map(drop)
    }

    /// The entry for [`ChangeBatch::positions`] that saves this position together with that batch.
    ///
    /// # Errors
    /// [`Error::Request`] if the watcher has no name or has not reached the position.
    pub fn stored(&self, position: Position) -> Result<(String, String)> {
        let refused = |message: &str| Err(Error::request(RequestPart::Other, message));
        let Some(name) = &self.watcher.name else {
            return refused("a watcher without a name cannot store its position: give it a name");
        };
        // The position before a batch that was returned only in part is valid too.
        if position > self.position() || position < self.watcher.since {
            return refused("a watcher can only store a position that it has reached");
        }
        Ok(Self::position_of(name, position))
    }

    /// The entry for [`ChangeBatch::positions`] that saves a position for the watcher of this name. Not checked: the
    /// watcher must have reached the position.
    pub fn position_of(name: &str, position: Position) -> (String, String) {
        (format!("{WATCH_POSITION}{name}"), position.0.to_string())
    }

    /// The position of the watcher: all changes up to this batch were returned.
    pub fn position(&self) -> Position {
        let next = self.read_ahead.front().map_or(self.at.0, |change| change.batch.0);
        // If a page ended within a batch, the rest of that batch is still to come.
        Position(next.saturating_sub(1))
    }

    /// The name under which it is stored.
    pub fn name(&self) -> Option<&str> {
        self.watcher.name.as_deref()
    }

    /// The next change, once it is known whether it is the last of its batch.
    fn pop(&mut self) -> Option<WatchedChange> {
        let batch = self.read_ahead.front()?.batch;
        let is_last = match self.read_ahead.get(1) {
            Some(next) => next.batch != batch,
            None if self.at.0 > batch.0 => true,
            None => return None,
        };
        let change = self.read_ahead.pop_front()?;
        (self.last_returned, self.skipped_bytes) = (batch.0, 0);
        Some(WatchedChange { is_last, ..change })
    }

    /// Reads the newest snapshot of the store. Tries again if the store was reopened meanwhile (after a full disk).
    fn reading<T>(
        &mut self,
        read: impl Fn(&mut Self, &dyn StoreSnapshot) -> Result<T>,
    ) -> Result<T> {
        loop {
            let store = self.shared.store()?;
            let reopen_count = store.reopen_count();
            let before = (self.at, self.read_ahead.len());
            match read(self, &*store.snapshot()) {
                Err(Error::Conflict(_)) if store.reopen_count() != reopen_count => {
                    self.at = before.0;
                    self.read_ahead.truncate(before.1);
                }
                done => return done,
            }
        }
    }

    /// The generations of the feed. Returns an error if they do not reach back to the next change
    /// to be read.
    fn generations(&self, store: &dyn StoreSnapshot) -> Result<Vec<Generation>> {
        let generations = read_generations(store)?;
        match generations.first() {
            Some(first) if self.at.0 > first.after.0 => Ok(generations),
            Some(first) => Err(no_longer_kept(self.at.0, first.after)),
            None => {
                let message = "the watcher was forgotten, and its changes are no longer kept: begin a new one";
                Err(Error::missing(Missing::Changes, message))
            }
        }
    }

    /// Reads one page, up to the batch `visible`.
    fn read_page(&mut self, visible: u64, store: &dyn StoreSnapshot) -> Result<()> {
        if self.watcher.name.is_none() {
            let position = self.position().0;
            self.watcher.passed.store(position, Ordering::Release);
        }
        let mut bytes = 0;
        for generation in self.generations(store)? {
            let from = entry_key(Position(self.at.0), self.at.1);
            let place = generation.place();
            let mut is_full = false;
            store.scan(place, &from, &mut |key, value| {
                let (batch, part) = parse_entry_key(key)?;
                if batch.0 > visible {
                    return Ok(false);
                }
                let before = self.read_ahead.len();
                self.take(batch, value, &generation, store)?;
                self.at = (batch.0, part + 1);
                bytes += value.len();
                if self.read_ahead.len() == before {
                    self.skipped_bytes += value.len() as u64;
                }
                is_full = bytes >= PAGE_BYTES;
                Ok(!is_full)
            })?;
            if is_full {
                return Ok(());
            }
        }
        self.at = (visible.saturating_add(1), 0);
        Ok(())
    }

    fn take(
        &mut self,
        batch: Position,
        value: &[u8],
        generation: &Generation,
        store: &dyn StoreSnapshot,
    ) -> Result<()> {
        match parse_entry(value)? {
            FeedEntry::Defined(defined) => {
                let event = event_for(&self.watcher, defined);
                self.read_ahead.extend(event.map(|(table, what)| WatchedChange {
                    batch,
                    is_last: false,
                    table: table.into(),
                    what,
                }));
            }
            FeedEntry::Rows(table, definition, changes) => {
                let format = self.format(table, definition, generation, store)?;
                if !self.watcher.wants(&format.table) {
                    return Ok(());
                }
                for change in changes {
                    let Some(what) = format.read(change)? else { continue };
                    let table = Arc::clone(&format.table);
                    self.read_ahead.push_back(WatchedChange { batch, is_last: false, table, what });
                }
            }
        }
        Ok(())
    }

    fn format(
        &mut self,
        table: u32,
        definition: u64,
        generation: &Generation,
        store: &dyn StoreSnapshot,
    ) -> Result<Arc<Format>> {
        if let Some(format) = self.formats.get(&(table, definition)) {
            return Ok(Arc::clone(format));
        }
        let rows = read_definition(store, generation.place(), table, definition)?;
        let (name, required) =
            (rows.schema().name.as_str().into(), RequiredRows::of(rows.schema())?);
        let format = Arc::new(Format { table: name, required, rows });
        if self.formats.len() >= MAX_FORMATS {
            self.formats.clear();
        }
        self.formats.insert((table, definition), Arc::clone(&format));
        Ok(format)
    }

    /// Saves the position if many changes of other tables were skipped, see [`SKIPPED_PART`].
    fn save_skipped(&mut self) {
        let most = self.shared.options.max_watch_bytes / SKIPPED_PART;
        if self.watcher.name.is_none() || self.skipped_bytes < most {
            return;
        }
        let sources = self.shared.published.load().sources.clone();
        // A failure is harmless, because saving is tried again. The position is not saved while
        // changes that were returned are not done.
        if self.watcher.passed(&sources).0 >= self.last_returned
            && self.save(self.position()).is_ok()
        {
            self.skipped_bytes = 0;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watcher.is_open.store(false, Ordering::Release);
        if self.watcher.name.is_none() {
            self.shared.watchers.remove(&self.watcher);
        }
    }
}

impl Format {
    /// The change as the table's readers see it: rows that do not meet its condition do not exist for them.
    fn read(&self, change: StoredChange<'_>) -> Result<Option<Watched>> {
        let row = |stored: Option<&[u8]>| -> Result<Option<Row>> {
            let row = stored.map(|stored| self.rows.decode(stored)).transpose()?;
            Ok(row.filter(|row| self.required.accept(row)))
        };
        let schema = || Arc::clone(self.rows.schema());
        Ok(match (row(change.old)?, row(change.new)?) {
            (None, None) => None,
            (None, Some(new)) => Some(Watched::Insert { schema: schema(), new }),
            (Some(old), Some(new)) => Some(Watched::Update { schema: schema(), old, new }),
            (Some(old), None) => Some(Watched::Delete { schema: schema(), old }),
        })
    }
}

/// The event that a change of definitions is for this watcher, if any.
fn event_for(watcher: &Watcher, defined: Defined) -> Option<(String, Watched)> {
    let (table, what) = match defined {
        Defined::Created(table) => (table, Watched::Created),
        Defined::Dropped(table) => (table, Watched::Dropped),
        Defined::Truncated(table) => (table, Watched::Truncated),
        Defined::Altered(table) => (table, Watched::Altered),
        Defined::Renamed(from, to) => match (watcher.wants(&from), watcher.wants(&to)) {
            (true, true) => (to, Watched::Renamed { from }),
            // Its earlier rows belong to a table that is not watched.
            (false, true) => (to, Watched::Replaced),
            (true, false) => (from, Watched::Dropped),
            (false, false) => return None,
        },
    };
    watcher.wants(&table).then_some((table, what))
}

fn no_longer_kept(next: u64, kept: Position) -> Error {
    let message = format!(
        "the changes of batch {next} are no longer kept, only those after batch {}: read the \
         tables, and watch from the position of that read (if the watcher has a name, forget it \
         first)",
        kept.0
    );
    Error::missing(Missing::Changes, message)
}

fn check_request(request: &WatchRequest) -> Result<()> {
    let wrong = |message: String| Err(Error::request(RequestPart::Other, message));
    if let Some(name) = &request.name
        && (name.is_empty() || name.len() > MAX_NAME_BYTES)
    {
        return wrong(format!("the name of a watcher must have 1 to {MAX_NAME_BYTES} bytes"));
    }
    let tables = request.tables.iter().flatten();
    match tables.clone().find(|table| table.starts_with('#')) {
        Some(hidden) => wrong(format!("table {hidden:?} is hidden: it cannot be watched")),
        None if request.tables.is_some() && tables.count() == 0 => {
            wrong("no table is named: name some, or leave the list out for all".to_owned())
        }
        None => Ok(()),
    }
}
