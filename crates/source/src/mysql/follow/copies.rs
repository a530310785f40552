//! Copies as the applier sees them: windows, chunks at their places, the swap at the end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{Change, ChangeBatch, Database, Definition, TableChanges};

use super::{
    applier::Applier,
    positions::{Progress, STALE, Stored, copy_key, fingerprint, table_key},
    shared::TableOrder,
    statement::TableName,
    table::{Copy, FollowedTable, Visible, hidden_name, name_here, schema},
};
use crate::{
    Error, Result,
    mysql::{
        binlog::Coordinates,
        copy::{Chunk, Opened, WindowRequest, estimate, wait_until_executed},
        schema::{SourceTable, read_table},
    },
};

/// Windows that one copy has open: a chunk is read while the one before waits for the stream.
const WINDOWS: usize = 2;
/// A table that was created is shown within this time, unless it is gone again.
const SHOWN_WITHIN: Duration = Duration::from_millis(300);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// So often a table's rows may be unreadable before it is given up.
const ATTEMPTS: u32 = 3;

/// What is to be done about tables in one step.
#[derive(Default)]
pub(super) struct Step {
    pub definitions: Vec<Definition>,
    pub positions: Vec<Stored>,
}

impl Step {
    /// Whether there will be a table of this name after what the step does so far.
    pub fn is_there(&self, database: &Database, name: &str) -> bool {
        let before = database.schema(name).is_ok();
        self.definitions.iter().fold(before, |is_there, definition| match definition {
            Definition::Create(schema) => is_there || schema.name == name,
            Definition::Drop(dropped) => is_there && dropped != name,
            Definition::Rename { from, to } => (is_there && from != name) || to == name,
            Definition::Alter { .. } => is_there,
        })
    }

    /// Drops a table, if it will be there.
    pub fn drop_if_there(&mut self, database: &Database, name: &str) {
        if self.is_there(database, name) {
            self.definitions.push(Definition::Drop(name.to_owned()));
        }
    }

    /// Whether there will be a position of this name.
    pub fn has_position(&self, database: &Database, name: &str) -> bool {
        match self.positions.iter().rev().find(|(known, _)| known == name) {
            Some((_, position)) => !position.is_empty(),
            None => database.source_positions().get(name).is_some(),
        }
    }
}

impl Applier {
    /// Tells the workers of the copies that need not wait for the stream.
    pub fn hand_out_copies(&mut self) {
        for table in &self.copying {
            if let Some(followed) = self.tables.get(table)
                && let Some(copy) = followed.copy.as_ref().filter(|copy| copy.barrier.is_none())
            {
                self.copies.push(copy.task(&followed.source));
            }
        }
    }

    /// A copy wants a window: it opens between two transactions.
    pub fn want_window(&mut self, request: WindowRequest) {
        if let Some(copy) = self.copy_of_number(request.copy) {
            copy.windows.close(request.instead_of.unwrap_or(0));
            copy.requests.push_back(request);
        }
    }

    /// A chunk was read: it waits for its place in the stream.
    pub fn take_chunk(&mut self, chunk: Chunk) {
        if let Some(copy) = self.copy_of_number(chunk.copy) {
            copy.all_read = chunk.last;
            copy.chunks.push_back(chunk);
        }
    }

    /// Does for every copy what can be done at this place of the stream.
    pub fn serve_copies(&mut self) -> Result<()> {
        while let Some((number, error)) = self.failed_copies.pop() {
            self.copy_failed(number, error)?;
        }
        for table in self.copying.clone() {
            self.begin_copy(&table);
            self.open_windows(&table);
            while let Some(chunk) = self.ready_chunk(&table) {
                self.apply_chunk(&table, chunk)?;
            }
        }
        Ok(())
    }

    fn copy_of_number(&mut self, number: u64) -> Option<&mut Copy> {
        let copies = self.tables.values_mut().filter_map(|table| table.copy.as_mut());
        copies.into_iter().find(|copy| copy.number == number)
    }

    /// Begins to read and to feed when the stream has come as far as the definition.
    fn begin_copy(&mut self, table: &TableName) {
        let Some(followed) = self.tables.get_mut(table) else { return };
        let Some(copy) = &mut followed.copy else { return };
        if copy.barrier.as_ref().is_some_and(|barrier| self.place >= *barrier) {
            copy.barrier = None;
            copy.since = Instant::now();
            self.copies.push(copy.task(&followed.source));
            self.routes.clear();
        }
    }

    fn open_windows(&mut self, table: &TableName) {
        let Some(copy) = self.tables.get_mut(table).and_then(|table| table.copy.as_mut()) else {
            return;
        };
        while copy.windows.len() < WINDOWS
            && let Some(request) = copy.requests.pop_front()
        {
            let window = copy.windows.open();
            let (applied, place) = (self.applied.clone(), self.place.clone());
            if request.reply.send(Opened { window, applied, place }).is_err() {
                copy.windows.close(window);
            }
        }
    }

    fn ready_chunk(&mut self, table: &TableName) -> Option<Chunk> {
        let copy = self.tables.get_mut(table)?.copy.as_mut()?;
        let ready = copy.chunks.front().is_some_and(|chunk| self.place >= chunk.end);
        if ready { copy.chunks.pop_front() } else { None }
    }

    fn apply_chunk(&mut self, table: &TableName, chunk: Chunk) -> Result<()> {
        let last_copy = self.last_copy;
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let Some(copy) = &mut followed.copy else { return Ok(()) };
        let read = chunk.rows.len() as u64;
        let rows = copy.windows.unchanged(chunk.window, chunk.rows, &followed.source.key);
        copy.windows.close(chunk.window);
        let Some(rows) = rows else {
            copy.renumber(last_copy + 1);
            self.last_copy += 1;
            self.copies.push(copy.task(&followed.source));
            return Ok(());
        };
        copy.progress.rows += read;
        copy.progress.after = chunk.after;
        let progress = copy.progress.text();
        let hidden = Arc::clone(&copy.hidden);
        let key = copy_key(&self.shared.settings.name, &followed.name);
        let changes: Vec<_> = rows.into_iter().map(Change::Put).collect();
        self.shared.board.set_table(&followed.name, followed.state());
        // What came before it in the stream may be older than it.
        if self.batch.has_whole() {
            self.submit()?;
        }
        let tables = vec![TableChanges { table: hidden, changes }];
        let positions = vec![(key, progress), self.position()];
        self.submit_batch(ChangeBatch { tables, positions })?;
        if chunk.last { self.finish_copy(table) } else { Ok(()) }
    }

    /// The copy is whole: it takes the place of what was there.
    fn finish_copy(&mut self, table: &TableName) -> Result<()> {
        self.copying.retain(|other| other != table);
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let Some(copy) = followed.copy.take() else { return Ok(()) };
        (followed.visible, followed.stopped) = (Visible::Fed, None);
        let name = followed.name.to_string();
        let source = &self.shared.settings.name;
        let positions = vec![
            (copy_key(source, &name), String::new()),
            (table_key(source, &name), copy.progress.layout),
        ];
        let rename = Definition::Rename { from: copy.hidden.to_string(), to: name.clone() };
        self.define(vec![rename], positions)?;
        tracing::info!(table = name, rows = copy.progress.rows, "copied");
        self.show(table);
        Ok(())
    }

    fn copy_failed(&mut self, number: u64, error: Error) -> Result<()> {
        let of_number = |followed: &FollowedTable| {
            followed.copy.as_ref().is_some_and(|copy| copy.number == number)
        };
        let mut tables = self.tables.iter();
        let Some((table, _)) = tables.find(|(_, followed)| of_number(followed)) else {
            return Ok(());
        };
        let table = table.clone();
        match error {
            error @ (Error::Unreachable { .. } | Error::BackInTime { .. }) => Err(error),
            error => self.drop_copy(&table, format!("its copy cannot go on: {error}")),
        }
    }

    /// Ends a copy; what could be read before stays.
    fn drop_copy(&mut self, table: &TableName, reason: String) -> Result<()> {
        self.copying.retain(|other| other != table);
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let Some(copy) = followed.copy.take() else { return Ok(()) };
        if followed.visible != Visible::Fed {
            followed.stopped = Some(reason.clone());
            self.shared.given_up.lock().insert(table.clone(), reason);
        }
        let key = copy_key(&self.shared.settings.name, &followed.name);
        let mut step = Step::default();
        step.drop_if_there(&self.shared.database, &copy.hidden);
        step.positions.push((key, String::new()));
        self.define(step.definitions, step.positions)?;
        self.show(table);
        Ok(())
    }

    /// Shows a table's state.
    pub fn show(&self, table: &TableName) {
        if let Some(followed) = self.tables.get(table) {
            self.shared.board.set_table(&followed.name, followed.state());
        }
    }

    /// Rows of the table cannot be read: what can be read of it stays as it is, and the next
    /// session copies it, unless that did not help before.
    pub fn freeze(&mut self, table: &TableName, reason: &str, times: u32) -> Result<()> {
        tracing::warn!(table = table.table, "its rows cannot be read: {reason}");
        if times >= ATTEMPTS {
            self.shared.given_up.lock().insert(table.clone(), reason.to_owned());
        }
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let mut step = Step::default();
        let (name, source) = (&followed.name, &self.shared.settings.name);
        if followed.visible == Visible::Fed {
            step.positions.push((table_key(source, name), STALE.to_owned()));
        }
        if let Some(copy) = followed.copy.take() {
            step.positions.push((copy_key(source, name), String::new()));
            step.drop_if_there(&self.shared.database, &copy.hidden);
        }
        self.define(step.definitions, step.positions)
    }

    /// What the source's table is now, as far as it is followed, and after all that was applied: a
    /// definition that the stream told of may not be shown yet. The error says why the table
    /// cannot be followed.
    pub fn read_source(
        &mut self,
        table: &TableName,
    ) -> Result<std::result::Result<Option<SourceTable>, String>> {
        wait_until_executed(&mut self.source, &self.applied)?;
        let read = read_table(&mut self.source.conn, &table.database, &table.table);
        let narrowed = read.and_then(|read| match read {
            Some(read) => super::tables::narrowed(&self.shared.settings, read).map(Some),
            None => Ok(None),
        });
        match narrowed {
            Ok(read) => Ok(Ok(read)),
            Err(Error::TableRefused { reason, .. }) => Ok(Err(reason)),
            Err(error) => Err(error),
        }
    }

    /// As [`Applier::read_source`] for a table that was just created: a MariaDB may log that a
    /// moment before it shows the table.
    pub fn read_created(
        &mut self,
        table: &TableName,
    ) -> Result<std::result::Result<Option<SourceTable>, String>> {
        let deadline = Instant::now() + SHOWN_WITHIN;
        loop {
            match self.read_source(table)? {
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK_AGAIN),
                read => return Ok(read),
            }
        }
    }

    /// Adds to the step that the table is copied anew as `source`, which was read when the binlog
    /// ended at `barrier` or later. Rows that follow the same layout are fed meanwhile unless
    /// they are `lost`.
    pub fn start_copy(
        &mut self,
        table: &TableName,
        source: SourceTable,
        barrier: Coordinates,
        lost: bool,
        step: &mut Step,
    ) -> Result<()> {
        let estimate = estimate(&mut self.source, &source)?;
        let settings = &self.shared.settings;
        let layout = fingerprint(&source);
        self.last_copy += 1;
        let number = self.last_copy;
        let name = name_here(settings, table);
        let followed = self.tables.entry(table.clone()).or_insert_with(|| FollowedTable {
            source: Arc::new(source.clone()),
            name: name.as_str().into(),
            visible: Visible::Absent,
            copy: None,
            stopped: None,
        });
        if followed.visible == Visible::Fed && (lost || fingerprint(&followed.source) != layout) {
            followed.visible = Visible::Frozen;
            step.positions.push((table_key(&settings.name, &name), STALE.to_owned()));
        }
        let hidden = hidden_name(&name);
        step.drop_if_there(&self.shared.database, &hidden);
        step.definitions.push(Definition::Create(schema(settings, &source, &hidden, None)));
        let progress = Progress { layout, ..Progress::default() };
        step.positions.push((copy_key(&settings.name, &name), progress.text()));
        let mut copy = Copy::new(number, &name, progress, estimate);
        copy.barrier = Some(barrier);
        followed.source = Arc::new(source);
        (followed.copy, followed.stopped) = (Some(copy), None);
        self.shared.given_up.lock().remove(table);
        if !self.copying.contains(table) {
            self.copying.push(table.clone());
        }
        Ok(())
    }

    /// Does what the owner ordered for tables.
    pub fn obey_orders(&mut self) -> Result<()> {
        while let Some(order) = self.shared.next_order() {
            match order {
                TableOrder::Sync(name) => self.sync(&name)?,
                TableOrder::Cancel(name) => {
                    let named = |table: &TableName| {
                        let followed = self.tables.get(table);
                        let here = followed.map(|followed| &*followed.name);
                        name.as_deref().is_none_or(|name| Some(name) == here)
                    };
                    let cancelled: Vec<_> =
                        self.copying.iter().filter(|table| named(table)).cloned().collect();
                    for table in cancelled {
                        self.drop_copy(&table, "its copy was cancelled: SYNC it".to_owned())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn sync(&mut self, name: &str) -> Result<()> {
        let known = self.tables.iter().find(|(_, followed)| &*followed.name == name);
        let Some(table) = known.map(|(table, _)| table.clone()).or_else(|| self.named(name)) else {
            return Ok(());
        };
        self.shared.unreadable.lock().remove(&table);
        self.shared.unfitting.lock().remove(&table);
        let mut step = Step::default();
        let barrier = self.source.binlog_end()?;
        match self.read_source(&table)? {
            Ok(Some(source)) => {
                self.start_copy(&table, source, barrier, false, &mut step)?;
                self.define(step.definitions, step.positions)?;
                self.show(&table);
                self.serve_copies()
            }
            Ok(None) => Ok(()),
            Err(reason) => {
                let refused = super::status::TableState::Refused(reason);
                self.shared.board.set_table(name, refused);
                Ok(())
            }
        }
    }

    fn named(&self, name: &str) -> Option<TableName> {
        let (database, table) = name
            .split_once('.')
            .or_else(|| Some((self.shared.settings.database.as_deref()?, name)))?;
        Some(TableName { database: database.to_owned(), table: table.to_owned() })
    }
}
