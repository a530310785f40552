//! A session's transaction: its changes over the snapshot it began with, and rollback.
//!
//! Changes stay with the session until COMMIT. The engine refuses the commit if another session wrote one of the keys
//! meanwhile (1213): snapshot isolation, first committer wins. A statement outside a transaction is a transaction of
//! its own. It is retried after a conflict.

mod locks;
mod overlay;
mod own;
mod temporary;

use std::sync::{Arc, OnceLock};

use remora_engine::{
    ChangeBatch, Error as EngineError, Missing, Row, TableChanges, Transaction, Value,
};
use rustc_hash::FxHashMap;

pub(crate) use overlay::{Overlay, RowKey, change_bytes};
use own::KeptLevels;
pub(crate) use own::OwnChanges;
use parking_lot::Mutex;
use remora_mysql::ErrorCode;
pub(crate) use temporary::TemporaryTable;
use temporary::TemporaryTables;

use crate::{
    Error, Result,
    catalog::{Reader, TableName},
    error::from_engine_write,
    shared::{InstanceState, Rule, TransactionLocks},
};

/// The open transaction and the temporary tables of a session.
pub(crate) struct TransactionState {
    open: Option<OpenTransaction>,
    temporary: TemporaryTables,
    /// The most memory for indexing the changes, in bytes.
    most_bytes: u64,
    /// The client's file for LOAD DATA LOCAL.
    file: Option<Arc<[u8]>>,
    /// READ ONLY or READ WRITE for the next transaction only, from SET TRANSACTION.
    pub(crate) next_read_only: Option<bool>,
    /// Whether the next transaction only is READ COMMITTED, from SET TRANSACTION.
    pub(crate) next_sees_committed: Option<bool>,
}

/// The characteristics of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransactionCharacteristics {
    /// READ ONLY.
    pub(crate) read_only: bool,
    /// READ COMMITTED: each statement sees what is committed when it begins.
    pub(crate) sees_committed: bool,
    /// It is the implicit transaction of one statement.
    pub(crate) statement_only: bool,
}

impl TransactionCharacteristics {
    /// Whether each of its statements takes a new snapshot.
    fn begins_anew(self) -> bool {
        self.sees_committed && !self.statement_only
    }
}

/// Changed rows of a percolate table by id, and the rules that they were parsed to.
pub(crate) type ParsedRules = FxHashMap<u64, (Arc<Row>, Arc<Rule>)>;

struct OpenTransaction {
    engine: Transaction,
    manner: TransactionCharacteristics,
    /// The newer snapshot that statements read, if the engine's transaction must keep its own.
    latest: Option<Reader>,
    /// Whether rows are protected.
    protects: bool,
    /// The rows that it has locked, for SKIP LOCKED and NOWAIT of others.
    locks: TransactionLocks,
    tables: FxHashMap<Arc<str>, Arc<Overlay>>,
    /// The changes as they are now, once a statement has asked for them. Every change empties it first, so that nobody
    /// shares a table's changes while they are written.
    own: OnceLock<Arc<OwnChanges>>,
    /// What statements have indexed of the changes, once one has asked for them.
    indexed: OnceLock<Arc<Mutex<KeptLevels>>>,
    /// The rules of percolate tables among the changes, parsed, by the engine's table names.
    parsed_rules: FxHashMap<String, ParsedRules>,
    /// The previous state of each changed row, for rollback.
    undo: Vec<Undo>,
    /// The approximate memory of the changes.
    bytes: u64,
    savepoints: Vec<(String, usize)>,
    /// Whether a temporary table was dropped in it.
    dropped_temporary: bool,
    /// AUTO_INCREMENT counters that are committed with its changes.
    positions: FxHashMap<String, String>,
    /// Positions that are committed with it, also without changes.
    kept_positions: Vec<(String, String)>,
}

impl OpenTransaction {
    fn reader(&self) -> &Reader {
        self.latest.as_ref().unwrap_or_else(|| self.engine.reader())
    }

    /// Notes that a row of a table is about to be changed, or changed back.
    fn note_change(&mut self, table: &Arc<str>, key: &RowKey) {
        self.own.take();
        if let Some(indexed) = self.indexed.get() {
            indexed.lock().note(table, key);
        }
    }

    /// Whether its commit can conflict with other sessions.
    fn is_bound(&self) -> bool {
        self.protects
            || !self.positions.is_empty()
            || !self.kept_positions.is_empty()
            || self.tables.values().any(|overlay| overlay.len() > 0)
    }

    /// Whether the tables that it changed have the same definitions in `reader` as in its first snapshot.
    fn fits(&self, reader: &Reader) -> bool {
        let mut changed = self.tables.iter().filter(|(_, overlay)| overlay.len() > 0);
        changed.all(|(table, _)| {
            let number = |reader: &Reader| reader.version(table).map(|version| version.table);
            let (now, then) = (reader, self.engine.reader());
            matches!((number(now), number(then)), (Ok(now), Ok(then)) if now == then)
                && matches!((now.schema(table), then.schema(table)), (Ok(a), Ok(b)) if a == b)
        })
    }

    /// Converts an engine error. In READ COMMITTED, a table that is missing in the first snapshot was created since:
    /// that is reported as a conflict, so that the client retries.
    fn error(manner: TransactionCharacteristics, error: EngineError) -> Error {
        match error {
            EngineError::NotFound { what: Missing::Table, .. } if manner.begins_anew() => {
                from_engine_write(EngineError::Conflict("a table was made meanwhile".into()))
            }
            error => from_engine_write(error),
        }
    }

    /// Drops the undo entries of a table that no longer exists, and adjusts savepoints.
    fn forget(&mut self, table: &TableStorage) {
        let gone: Vec<usize> = (0..self.undo.len())
            .filter(|&at| self.undo.get(at).is_some_and(|undo| undo.table == *table))
            .collect();
        for (_, mark) in &mut self.savepoints {
            let before = *mark;
            *mark -= gone.partition_point(|at| *at < before);
        }
        let bytes = &mut self.bytes;
        self.undo.retain(|undo| {
            let stays = undo.table != *table;
            *bytes = bytes.saturating_sub(if stays { 0 } else { undo.bytes });
            stays
        });
    }
}

struct Undo {
    table: TableStorage,
    key: RowKey,
    before: Option<Option<Arc<Row>>>,
    /// The approximate memory of the change.
    bytes: u64,
}

/// Where a table's rows are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TableStorage {
    /// In the engine, under this name.
    Engine(Arc<str>),
    /// In the session's memory.
    Temporary(TableName),
}

impl TransactionState {
    /// A new session's state.
    pub(crate) fn new(shared: &InstanceState) -> Self {
        let all_bytes = Arc::clone(&shared.temporary_bytes);
        let temporary = TemporaryTables::new(&shared.settings, all_bytes);
        let most_bytes = shared.settings.max_query_memory_bytes;
        Self {
            open: None,
            temporary,
            most_bytes,
            file: None,
            next_read_only: None,
            next_sees_committed: None,
        }
    }

    /// Whether an explicit transaction is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.manner.statement_only)
    }

    /// The snapshot that the open transaction reads.
    pub(crate) fn reader(&self) -> Option<Reader> {
        self.open.as_ref().map(|open| open.reader().clone())
    }

    /// The session's uncommitted changes to a table of the engine.
    pub(crate) fn overlay(&self, table: &str) -> Option<Arc<Overlay>> {
        self.open.as_ref()?.tables.get(table).filter(|overlay| overlay.len() > 0).cloned()
    }

    /// The session's uncommitted changes to all tables of the engine; `None` if there are none.
    pub(crate) fn own_changes(&self) -> Option<Arc<OwnChanges>> {
        let open = self.open.as_ref()?;
        let changed = open.tables.iter().filter(|(_, overlay)| overlay.len() > 0);
        let changed = changed.map(|(table, overlay)| (Arc::clone(table), Arc::clone(overlay)));
        let changed: Vec<(Arc<str>, Arc<Overlay>)> = changed.collect();
        if changed.is_empty() {
            return None;
        }
        let make = || {
            let kept = Arc::clone(open.indexed.get_or_init(Arc::default));
            Arc::new(OwnChanges::new(changed, open.reader().clone(), self.most_bytes, kept))
        };
        Some(Arc::clone(open.own.get_or_init(make)))
    }

    /// Removes what [`TransactionState::keep_parsed_rules`] has kept for a table.
    pub(crate) fn take_parsed_rules(&mut self, table: &str) -> ParsedRules {
        self.open.as_mut().and_then(|open| open.parsed_rules.remove(table)).unwrap_or_default()
    }

    /// Keeps the parsed rules of a percolate table until the transaction ends.
    pub(crate) fn keep_parsed_rules(&mut self, table: &str, rules: ParsedRules) {
        if let Some(open) = &mut self.open {
            open.parsed_rules.insert(table.to_owned(), rules);
        }
    }

    /// A temporary table.
    pub(crate) fn temporary(&self, name: &TableName) -> Option<&TemporaryTable> {
        self.temporary.get(name)
    }

    /// Adds a temporary table. Returns the one of that name that it replaces.
    pub(crate) fn put_temporary(
        &mut self,
        name: TableName,
        table: TemporaryTable,
    ) -> Option<TemporaryTable> {
        self.temporary.put(name, table)
    }

    /// Drops a temporary table, with its undo entries.
    pub(crate) fn drop_temporary(&mut self, name: &TableName) -> Option<TemporaryTable> {
        let dropped = self.temporary.take(name)?;
        if let Some(open) = &mut self.open {
            open.forget(&TableStorage::Temporary(name.clone()));
        }
        Some(dropped)
    }

    /// Removes a temporary table that held rows of one statement.
    pub(crate) fn take_temporary(&mut self, name: &TableName) -> Option<TemporaryTable> {
        self.temporary.take(name)
    }

    /// The AUTO_INCREMENT counter of a temporary table, or its counter of hidden row numbers if `beside`.
    pub(crate) fn temporary_counter(&mut self, name: &TableName, beside: bool) -> Option<&mut u64> {
        self.temporary.counter(name, beside)
    }

    /// Stores the client's file for LOAD DATA LOCAL.
    pub(crate) fn give_file(&mut self, bytes: Vec<u8>) {
        self.file = Some(bytes.into());
    }

    /// The client's file, if there is one.
    pub(crate) fn file(&self) -> Option<Arc<[u8]>> {
        self.file.clone()
    }

    /// Removes the client's file, because its statement has ended.
    pub(crate) fn take_file(&mut self) -> Option<Arc<[u8]>> {
        self.file.take()
    }

    /// Begins a transaction. None may be open.
    pub(crate) fn begin(&mut self, shared: &InstanceState, manner: TransactionCharacteristics) {
        self.open = Some(OpenTransaction {
            engine: shared.database.begin(),
            manner,
            latest: None,
            protects: false,
            locks: TransactionLocks::new(&shared.row_locks),
            tables: FxHashMap::default(),
            own: OnceLock::new(),
            indexed: OnceLock::new(),
            parsed_rules: FxHashMap::default(),
            undo: Vec::new(),
            bytes: 0,
            savepoints: Vec::new(),
            dropped_temporary: false,
            positions: FxHashMap::default(),
            kept_positions: Vec::new(),
        });
    }

    /// Begins a statement. In READ COMMITTED it reads a new snapshot. Conflicts of the transaction's own changes are
    /// still detected against its first snapshot.
    pub(crate) fn begin_statement(&mut self, shared: &InstanceState) {
        let Some(open) = &mut self.open else { return };
        if !open.manner.begins_anew() {
            return;
        }
        open.own.take();
        if open.is_bound() {
            let latest = shared.database.reader();
            // If a changed table was redefined, the old snapshot stays; the commit will fail.
            if open.fits(&latest) {
                open.latest = Some(latest);
                if let Some(indexed) = open.indexed.get() {
                    indexed.lock().note_moved();
                }
            }
        } else {
            open.engine = shared.database.begin();
            open.latest = None;
            open.indexed.take();
        }
    }

    /// The characteristics of the explicit transaction; `None` if there is none.
    pub(crate) fn manner(&self) -> Option<TransactionCharacteristics> {
        self.open.as_ref().map(|open| open.manner).filter(|manner| !manner.statement_only)
    }

    /// Whether all statements of the open transaction read its first snapshot.
    pub(crate) fn has_moment(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.manner.begins_anew())
    }

    /// Whether the open transaction is READ ONLY; `None` if none is open.
    pub(crate) fn only_reads(&self) -> Option<bool> {
        self.open.as_ref().map(|open| open.manner.read_only)
    }

    /// Notes a DROP TEMPORARY TABLE, which no rollback undoes.
    pub(crate) fn note_dropped_temporary(&mut self) {
        if let Some(open) = &mut self.open {
            open.dropped_temporary = true;
        }
    }

    /// Whether a temporary table was dropped in the open transaction.
    pub(crate) fn has_dropped_temporary(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.dropped_temporary)
    }

    /// Whether any transaction is open, including a statement's implicit one.
    pub(crate) fn is_begun(&self) -> bool {
        self.open.is_some()
    }

    /// Error 1792 in a READ ONLY transaction, except for temporary tables.
    pub(crate) fn check_writable(&self, place: &TableStorage) -> Result<()> {
        let refuses = self.open.as_ref().is_some_and(|open| open.manner.read_only);
        if refuses && matches!(place, TableStorage::Engine(_)) {
            return Err(read_only_transaction());
        }
        Ok(())
    }

    /// The row with this key, as the session sees it.
    pub(crate) fn row(&self, place: &TableStorage, key: &RowKey) -> Result<Option<Arc<Row>>> {
        match place {
            TableStorage::Temporary(name) => {
                let table = self.temporary.get(name);
                Ok(table.and_then(|table| table.rows.get(key).flatten().cloned()))
            }
            TableStorage::Engine(name) => {
                let Some(open) = &self.open else { return Ok(None) };
                if let Some(known) = open.tables.get(name).and_then(|overlay| overlay.get(key)) {
                    return Ok(known.cloned());
                }
                let row = open.reader().get(name, &key.0).map_err(from_engine_write)?;
                Ok(row.map(Arc::new))
            }
        }
    }

    /// Sets or deletes the row with this key, for this session.
    pub(crate) fn set(&mut self, place: &TableStorage, key: RowKey, row: Option<Arc<Row>>) {
        let bytes = change_bytes(row.as_deref());
        let before = match place {
            TableStorage::Engine(name) => match &mut self.open {
                Some(open) => {
                    open.note_change(name, &key);
                    open.lock_changed(name, &key);
                    let overlay = open.tables.entry(Arc::clone(name)).or_default();
                    Arc::make_mut(overlay).set(key.clone(), row)
                }
                None => return,
            },
            TableStorage::Temporary(name) => self.temporary.set(name, key.clone(), row),
        };
        if let Some(open) = &mut self.open {
            open.bytes = open.bytes.saturating_add(bytes);
            open.undo.push(Undo { table: place.clone(), key, before, bytes });
        }
    }

    /// Error 1038 if the transaction's changes take more than `most` bytes.
    pub(crate) fn check_size(&self, most: u64) -> Result<()> {
        if self.open.as_ref().is_none_or(|open| open.bytes <= most) {
            return Ok(());
        }
        let message = format!(
            "the changes of a transaction take more than {most} bytes: raise \
             sql.max_query_memory_mb or commit more often"
        );
        Err(Error::new(ErrorCode::OutOfMemory, message))
    }

    /// Error 1114 if a temporary table, or all of them together, take too much memory.
    pub(crate) fn check_room(&self, place: &TableStorage) -> Result<()> {
        match place {
            TableStorage::Temporary(name) => self.temporary.check_room(name),
            TableStorage::Engine(_) => Ok(()),
        }
    }

    /// Makes the commit fail if another session writes this row first.
    pub(crate) fn protect(&mut self, table: &str, key: &[Value]) -> Result<()> {
        match &mut self.open {
            Some(open) => {
                open.protects = true;
                let manner = open.manner;
                open.engine
                    .protect(table, key)
                    .map_err(|error| OpenTransaction::error(manner, error))
            }
            None => Ok(()),
        }
    }

    /// Stores a counter with the transaction.
    pub(crate) fn store_position(&mut self, name: String, position: String) {
        if let Some(open) = &mut self.open {
            open.positions.insert(name, position);
        }
    }

    /// Stores a position with the transaction, even if it changes nothing. Rolling back to a savepoint keeps it.
    pub(crate) fn keep_position(&mut self, name: String, position: String) {
        if let Some(open) = &mut self.open {
            open.kept_positions.push((name, position));
        }
    }

    /// The current position in the undo log.
    pub(crate) fn mark(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.undo.len())
    }

    /// Undoes all changes since the mark.
    pub(crate) fn go_back(&mut self, mark: usize) {
        let Some(open) = &mut self.open else { return };
        open.own.take();
        while open.undo.len() > mark {
            let Some(Undo { table, key, before, bytes }) = open.undo.pop() else { return };
            open.bytes = open.bytes.saturating_sub(bytes);
            let name = match table {
                TableStorage::Temporary(name) => {
                    self.temporary.set(&name, key, before.flatten());
                    continue;
                }
                TableStorage::Engine(name) => name,
            };
            open.note_change(&name, &key);
            let Some(overlay) = open.tables.get_mut(&name).map(Arc::make_mut) else { continue };
            match before {
                Some(row) => _ = overlay.set(key, row),
                None => _ = overlay.forget(&key),
            }
        }
    }

    /// SAVEPOINT: replaces one of the same name.
    pub(crate) fn save(&mut self, name: &str) {
        let Some(open) = &mut self.open else { return };
        open.savepoints.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        open.savepoints.push((name.to_owned(), open.undo.len()));
    }

    /// ROLLBACK TO: removes later savepoints and keeps this one.
    pub(crate) fn return_to(&mut self, name: &str) -> Result<()> {
        let place = self.savepoint(name)?;
        let Some(open) = &mut self.open else { return Ok(()) };
        open.savepoints.truncate(place + 1);
        let mark = open.savepoints.get(place).map_or(0, |(_, mark)| *mark);
        self.go_back(mark);
        Ok(())
    }

    /// RELEASE: removes this savepoint and later ones.
    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        let place = self.savepoint(name)?;
        if let Some(open) = &mut self.open {
            open.savepoints.truncate(place);
        }
        Ok(())
    }

    fn savepoint(&self, name: &str) -> Result<usize> {
        let savepoints = self.open.iter().flat_map(|open| &open.savepoints);
        let place = savepoints.into_iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        place.ok_or_else(|| {
            Error::new(ErrorCode::DoesNotExist, format!("SAVEPOINT {name} does not exist"))
        })
    }

    /// ROLLBACK, which also restores temporary tables.
    pub(crate) fn roll_back(&mut self) {
        self.go_back(0);
        self.open = None;
    }

    /// COMMIT: durable and visible on return. Error 1213 on a conflict.
    pub(crate) async fn commit(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let OpenTransaction { engine, manner, tables, positions, kept_positions, locks, .. } = open;
        let changed = tables.into_iter().filter(|(_, overlay)| overlay.len() > 0);
        let tables: Vec<TableChanges> = changed
            .map(|(table, overlay)| TableChanges { table, changes: overlay.changes() })
            .collect();
        let counters = positions.into_iter().filter(|_| !tables.is_empty());
        let positions = counters.chain(kept_positions).collect();
        let batch = ChangeBatch { tables, positions };
        // The engine waits for the disk, which must not block a thread that other sessions use.
        let commit = move || {
            let committed = engine.commit_computed(batch);
            // Only now, even if nobody awaits the commit any more: who locks one of its rows sees what was committed.
            drop(locks);
            committed
        };
        let committed = tokio::task::spawn_blocking(commit).await;
        let committed =
            committed.map_err(|error| Error::new(ErrorCode::Unknown, error.to_string()))?;
        committed.map(|_| ()).map_err(|error| OpenTransaction::error(manner, error))
    }
}

/// Error 1792.
pub(crate) fn read_only_transaction() -> Error {
    let message = "Cannot execute statement in a READ ONLY transaction.";
    Error::new(ErrorCode::ReadOnlyTransaction, message)
}
