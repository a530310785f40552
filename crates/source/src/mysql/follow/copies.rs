//! Copies from the applier's side: windows, chunks at their positions, the final swap.

use std::{sync::Arc, time::Instant};

use remora_engine::{Change, ChangeBatch, Definition, TableChanges};

use super::{
    applier::Applier,
    definition_commit::DefinitionCommit,
    positions::{Progress, STALE, copied_key, copy_key, definition_text, table_key},
    rows::failed_again,
    shared::TableRequest,
    table::{Copy, FollowedTable, Visible, hidden_name, schema},
    whole_copies::insert_all,
};
use crate::{
    Error, Result,
    mysql::{
        copy::estimate,
        inbox::{Chunk, OpenedWindow, WindowRequest},
        schema::SourceTable,
        table_name::TableName,
    },
};

/// The most open windows of a copy: a chunk is read while the one before waits for the stream.
const MAX_OPEN_WINDOWS: usize = 2;
/// How often a table's rows may be unreadable before the table stops.
const ATTEMPTS: u32 = 3;

impl Applier {
    /// A copy requests a window, which is opened between two transactions.
    pub fn request_window(&mut self, request: WindowRequest) {
        if let Some(copy) = self.copy_of_number(request.copy) {
            copy.windows.close(request.instead_of.unwrap_or(0));
            copy.requests.push_back(request);
        }
    }

    /// Takes a chunk that was read. It waits for its position in the stream.
    pub fn take_chunk(&mut self, chunk: Chunk) {
        if let Some(copy) = self.copy_of_number(chunk.copy) {
            copy.all_read = chunk.last;
            copy.chunks.push_back(chunk);
        }
    }

    /// Advances all copies as far as the position in the stream permits.
    pub fn advance_copies(&mut self) -> Result<()> {
        while let Some((number, error)) = self.failed_copies.pop() {
            self.copy_failed(number, error)?;
        }
        for table in self.copying.clone() {
            if self.tables.get(&table).is_none_or(|followed| followed.uncertainty.is_some()) {
                continue;
            }
            if self.restart_if_invalid(&table)? {
                continue;
            }
            self.begin_copy(&table);
            self.open_windows(&table);
            self.decide_moment(&table)?;
            while let Some(chunk) = self.ready_chunk(&table) {
                self.apply_chunk(&table, chunk)?;
            }
        }
        Ok(())
    }

    pub fn copy_of_number(&mut self, number: u64) -> Option<&mut Copy> {
        let copies = self.tables.values_mut().filter_map(|table| table.copy.as_mut());
        copies.into_iter().find(|copy| copy.number == number)
    }

    /// Queues a copy whose hidden table exists.
    fn begin_copy(&mut self, table: &TableName) {
        let Some(followed) = self.tables.get_mut(table) else { return };
        let Some(copy) = followed.copy.as_mut().filter(|copy| !copy.is_started) else { return };
        (copy.is_started, copy.since) = (true, Instant::now());
        self.copies.push(copy.task(&followed.source));
    }

    fn open_windows(&mut self, table: &TableName) {
        let Some(copy) = self.tables.get_mut(table).and_then(|table| table.copy.as_mut()) else {
            return;
        };
        while copy.windows.len() < MAX_OPEN_WINDOWS
            && let Some(request) = copy.requests.pop_front()
        {
            let window = copy.windows.open();
            copy.whole.begin();
            let (applied, place) = (self.applied.clone(), self.place.clone());
            if request.reply.send(OpenedWindow { window, applied, place }).is_err() {
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
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let Some(copy) = &mut followed.copy else { return Ok(()) };
        let read = chunk.rows.len() as u64;
        let changes = match followed.source.is_keyless() {
            true => Some(insert_all(&followed.source, chunk.rows)),
            false => {
                let rows = copy.windows.unchanged(chunk.window, chunk.rows, &followed.source.key);
                rows.map(|rows| rows.into_iter().map(Change::Put).collect())
            }
        };
        copy.windows.close(chunk.window);
        let Some(changes) = changes else {
            self.last_copy += 1;
            copy.renumber(self.last_copy);
            self.begin_copy(table);
            return Ok(());
        };
        self.shared.unreadable.lock().remove(table);
        copy.progress.rows += read;
        copy.progress.after = chunk.after;
        let progress = copy.progress.text();
        let hidden = Arc::clone(&copy.hidden);
        let key = copy_key(&self.shared.settings.name, &followed.name);
        self.shared.board.set_table(&followed.name, followed.state());
        // Earlier changes in the stream may be older than the chunk.
        if self.batch.has_whole() {
            self.submit()?;
        }
        let tables = vec![TableChanges { table: Arc::clone(&hidden), changes }];
        let tables = self.counted(tables, false)?;
        let positions = self.take_positions(vec![(key, progress)]);
        self.submit_batch(ChangeBatch { tables, positions })?;
        if !chunk.last {
            return Ok(());
        }
        match self.occurrences.missing(&hidden) {
            0 => self.finish_copy(table),
            missing => {
                tracing::warn!(table = table.table, missing, "rows went that were never copied");
                self.restart_copy(table)
            }
        }
    }

    /// Replaces the table by its complete copy.
    fn finish_copy(&mut self, table: &TableName) -> Result<()> {
        self.copying.retain(|other| other != table);
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let Some(copy) = followed.copy.take() else { return Ok(()) };
        (followed.visible, followed.stopped) = (Visible::Current, None);
        let name = followed.name.to_string();
        let source = &self.shared.settings.name;
        let positions = vec![
            (copy_key(source, &name), String::new()),
            (copied_key(source, &name), String::new()),
            (table_key(source, &name), definition_text(&followed.source)),
        ];
        let rename = Definition::Rename { from: copy.hidden.to_string(), to: name.clone() };
        self.define(vec![rename], positions)?;
        tracing::info!(table = name, rows = copy.progress.rows, "copied");
        self.shared.board.count_copy(&name, copy.progress.rows, copy.since.elapsed());
        self.shared.board.clear_error();
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
        let answer = self.ask(&table, None)?;
        let end = self.source.binlog_end()?;
        let Some(followed) = self.tables.get_mut(&table) else { return Ok(()) };
        if !answer.is_ok_and(|read| read.reads_as(&followed.source)) {
            // The source has another table by now, or one that it cannot open. The stream will tell; otherwise the
            // source's answer at this position counts.
            if followed.explained_before.is_none() && followed.uncertainty.is_none() {
                followed.explained_before = Some(end);
                self.uncertain.retain(|other| *other != table);
                self.uncertain.push(table.clone());
            }
        } else if failed_again(&self.shared.unreadable, &table) >= ATTEMPTS {
            return self.drop_copy(&table, format!("its copy cannot go on: {error}"));
        }
        if followed.source.is_keyless() {
            return self.restart_copy(&table);
        }
        if let Some(copy) = &mut followed.copy {
            self.last_copy += 1;
            copy.renumber(self.last_copy);
        }
        Ok(())
    }

    /// Gives up a copy. The readable table stays.
    fn drop_copy(&mut self, table: &TableName, reason: String) -> Result<()> {
        self.copying.retain(|other| other != table);
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let Some(copy) = followed.copy.take() else { return Ok(()) };
        tracing::warn!(table = &*followed.name, "{reason}");
        if followed.visible != Visible::Current {
            followed.stopped = Some(reason.clone());
            self.shared.given_up.lock().insert(table.clone(), reason);
        }
        let source = &self.shared.settings.name;
        let mut commit = DefinitionCommit::default();
        commit.drop_copy(&self.shared.database, source, &followed.name, &copy.hidden);
        self.define(commit.definitions, commit.positions)?;
        self.show(table);
        Ok(())
    }

    /// Publishes a table's state.
    pub fn show(&self, table: &TableName) {
        if let Some(followed) = self.tables.get(table) {
            self.shared.board.set_table(&followed.name, followed.state());
        }
    }

    /// Stops feeding a table whose rows cannot be read. It stays as it is, and the next session copies it, unless that
    /// did not help before.
    pub fn freeze(&mut self, table: &TableName, reason: &str, times: u32) -> Result<()> {
        tracing::warn!(table = table.table, "its rows cannot be read: {reason}");
        if times >= ATTEMPTS {
            self.shared.given_up.lock().insert(table.clone(), reason.to_owned());
        }
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let mut commit = DefinitionCommit::default();
        let (name, source) = (&followed.name, &self.shared.settings.name);
        if followed.visible == Visible::Current {
            commit.positions.push((table_key(source, name), STALE.to_owned()));
        }
        if let Some(copy) = followed.copy.take() {
            commit.drop_copy(&self.shared.database, source, name, &copy.hidden);
        }
        self.define(commit.definitions, commit.positions)
    }

    /// Adds a new copy of a table, which is `source` at this position, to the commit. The readable table is fed
    /// meanwhile if its rows can be read and none are `lost`.
    pub fn start_copy(
        &mut self,
        table: &TableName,
        source: SourceTable,
        lost: bool,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let estimate = estimate(&mut self.source, &source)?;
        let settings = &self.shared.settings;
        let Some(followed) = self.tables.get_mut(table) else { return Ok(()) };
        let name = followed.name.to_string();
        if followed.visible == Visible::Current && (lost || !followed.source.reads_as(&source)) {
            followed.visible = Visible::Frozen;
            commit.positions.push((table_key(&settings.name, &name), STALE.to_owned()));
        }
        let hidden = hidden_name(&name);
        self.occurrences.forget_table(&hidden);
        commit.drop_if_exists(&self.shared.database, &hidden);
        commit.definitions.push(Definition::Create(schema(settings, &source, &hidden, None)));
        let progress = Progress::default();
        commit.positions.push((copy_key(&settings.name, &name), progress.text()));
        commit.positions.push((copied_key(&settings.name, &name), definition_text(&source)));
        self.last_copy += 1;
        followed.copy = Some(Copy::new(self.last_copy, &name, progress, estimate));
        followed.source = Arc::new(source);
        (followed.uncertainty, followed.stopped) = (None, None);
        if !self.copying.contains(table) {
            self.copying.push(table.clone());
        }
        self.routes.clear();
        self.show(table);
        Ok(())
    }

    /// Executes the owner's requests for tables.
    pub fn execute_requests(&mut self) -> Result<()> {
        while let Some(request) = self.shared.next_request() {
            match request {
                TableRequest::Sync(name) => self.sync(&name)?,
                TableRequest::Words(request) => self.declare_words(&request)?,
                TableRequest::Cancel(name) => {
                    let is_named = |table: &TableName| {
                        let followed = self.tables.get(table);
                        let here = followed.map(|followed| &*followed.name);
                        name.as_deref().is_none_or(|name| Some(name) == here)
                    };
                    let cancelled: Vec<_> =
                        self.copying.iter().filter(|table| is_named(table)).cloned().collect();
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
        let Some(table) =
            known.map(|(table, _)| table.clone()).or_else(|| self.table_by_local_name(name))
        else {
            self.shared.board.forget_table(name);
            return Ok(());
        };
        self.shared.forget_failures(&table);
        // Removes the state that was shown for the request; the real state is shown below.
        self.shared.board.forget_table(name);
        let mut commit = DefinitionCommit::default();
        match self.tables.get(&table) {
            Some(FollowedTable { uncertainty: None, stopped: None, source, .. }) => {
                let source = (**source).clone();
                self.start_copy(&table, source, false, &mut commit)?;
            }
            Some(_) => {
                self.mark_uncertain(&table, true);
                self.resolve(&table, &mut commit)?;
            }
            None => {
                self.follow_renamed(&table, &mut commit);
                self.resolve(&table, &mut commit)?;
            }
        }
        self.show(&table);
        self.commit_in_order(commit)?;
        self.advance_copies()
    }

    fn table_by_local_name(&self, name: &str) -> Option<TableName> {
        let (database, table) = name
            .split_once('.')
            .or_else(|| Some((self.shared.settings.database.as_deref()?, name)))?;
        Some(TableName { database: database.to_owned(), table: table.to_owned() })
    }
}
