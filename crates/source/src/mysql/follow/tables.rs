//! What a session begins with: the source's tables beside what is here of them.

use std::{collections::HashSet, sync::Arc};

use remora_engine::{Database, Definition};
use rustc_hash::FxHashMap;

use super::{
    copies::Step,
    positions::{Progress, STALE, copy_key, fingerprint, table_key, tables_with},
    shared::Shared,
    statement::TableName,
    status::TableState,
    table::{Copy, FollowedTable, Visible, definition, hidden_name, name_here, schema},
};
use crate::{
    Error, Result,
    mysql::{
        binlog::Coordinates,
        connection::Connection,
        copy::estimate,
        schema::{SourceTable, read_tables},
        settings::MysqlSettings,
    },
};

/// The tables and how many copies are numbered.
pub(super) struct Tables {
    pub tables: FxHashMap<TableName, FollowedTable>,
    pub last_copy: u64,
}

/// Reads the source's tables and compares them with what is here. Where the position cannot be
/// gone on from (`anew`) everything is copied.
pub(super) fn compare(
    shared: &Shared,
    source: &mut Connection,
    anew: bool,
    step: &mut Step,
) -> Result<Tables> {
    let barrier = source.binlog_end()?;
    let (read, refused) = read_tables(&mut source.conn, &shared.selection)?;
    shared.board.tables.lock().clear();
    for refused in refused {
        let table = TableName { database: refused.database, table: refused.table };
        let state = TableState::Refused(refused.reason);
        shared.board.set_table(&name_here(&shared.settings, &table), state);
    }
    let mut tables = Tables { tables: FxHashMap::default(), last_copy: 0 };
    for read in read {
        tables.add(shared, source, read, &barrier, anew, step)?;
    }
    tables.mark_missing(shared);
    Ok(tables)
}

impl Tables {
    fn add(
        &mut self,
        shared: &Shared,
        source: &mut Connection,
        read: SourceTable,
        barrier: &Coordinates,
        anew: bool,
        step: &mut Step,
    ) -> Result<()> {
        let (database, settings) = (&shared.database, &shared.settings);
        let table = TableName { database: read.database.clone(), table: read.name.clone() };
        let name = name_here(settings, &table);
        let read = match narrowed(settings, read) {
            Ok(read) => read,
            Err(Error::TableRefused { reason, .. }) => {
                shared.board.set_table(&name, TableState::Refused(reason));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let layout = fingerprint(&read);
        let stored = database.source_position(&table_key(&settings.name, &name))?;
        let visible = match (database.schema(&name).is_ok(), &stored) {
            (true, None) => {
                shared.board.set_table(&name, TableState::Refused(taken(&name)));
                return Ok(());
            }
            (true, Some(stored)) if *stored == layout && !anew => Visible::Fed,
            (true, Some(_)) => Visible::Frozen,
            (false, _) => Visible::Absent,
        };
        if visible == Visible::Frozen && stored.as_deref() != Some(STALE) {
            step.positions.push((table_key(&settings.name, &name), STALE.to_owned()));
        }
        let mut followed = FollowedTable {
            source: Arc::new(read),
            name: name.as_str().into(),
            visible,
            copy: None,
            stopped: shared.given_up.lock().get(&table).cloned(),
        };
        if followed.stopped.is_none() {
            let estimate = estimate(source, &followed.source)?;
            self.resume_or_copy(shared, &mut followed, estimate, (barrier, anew), step)?;
        }
        shared.board.set_table(&name, followed.state());
        self.tables.insert(table, followed);
        Ok(())
    }

    fn resume_or_copy(
        &mut self,
        shared: &Shared,
        followed: &mut FollowedTable,
        estimate: (u64, u64),
        (barrier, anew): (&Coordinates, bool),
        step: &mut Step,
    ) -> Result<()> {
        let (database, settings) = (&shared.database, &shared.settings);
        let layout = fingerprint(&followed.source);
        let key = copy_key(&settings.name, &followed.name);
        let stored = database.source_position(&key)?;
        let hidden = hidden_name(&followed.name);
        let is_here = database.schema(&hidden).is_ok();
        if stored.is_none() && followed.visible == Visible::Fed {
            return Ok(());
        }
        self.last_copy += 1;
        let progress = stored.as_deref().and_then(Progress::parse);
        if let Some(progress) = progress.filter(|known| known.layout == layout && is_here && !anew)
        {
            followed.copy = Some(Copy::new(self.last_copy, &followed.name, progress, estimate));
            return Ok(());
        }
        if is_here {
            step.definitions.push(Definition::Drop(hidden.clone()));
        }
        let schema = schema(settings, &followed.source, &hidden, None);
        step.definitions.push(Definition::Create(schema));
        let progress = Progress { layout, ..Progress::default() };
        step.positions.push((key, progress.text()));
        let mut copy = Copy::new(self.last_copy, &followed.name, progress, estimate);
        copy.barrier = Some(barrier.clone());
        followed.copy = Some(copy);
        Ok(())
    }

    /// Tables that are here and no longer at the source: the stream will tell what became of them.
    fn mark_missing(&self, shared: &Shared) {
        let known: HashSet<&str> = self.tables.values().map(|followed| &*followed.name).collect();
        let name = &shared.settings.name;
        for table in tables_with(&shared.database, &|table| table_key(name, table)) {
            if !known.contains(table.as_str()) && is_here(&shared.database, &table) {
                let reason = "the source has no such table any more".to_owned();
                shared.board.set_table(&table, TableState::Stopped(reason));
            }
        }
    }
}

fn is_here(database: &Database, table: &str) -> bool {
    database.schema(table).is_ok()
}

/// The table as the settings define it.
pub(super) fn narrowed(settings: &MysqlSettings, read: SourceTable) -> Result<SourceTable> {
    let table = TableName { database: read.database.clone(), table: read.name.clone() };
    match definition(settings, &table) {
        Some(definition) => read.narrowed_to(definition),
        None => Ok(read),
    }
}

/// Why a table cannot have its name here.
pub(super) fn taken(name: &str) -> String {
    format!("there is a table {name:?} here that does not come from this source: drop or rename it")
}
