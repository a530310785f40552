//! What a session begins with: the source's tables beside what is here of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use remora_engine::Database;
use rustc_hash::FxHashMap;

use super::{
    doubt::{Answer, Doubt},
    positions::{Progress, STALE, copied_key, copy_key, stored_definition, table_key, tables_with},
    shared::Shared,
    statement::TableName,
    status::TableState,
    step::Step,
    table::{Copy, FollowedTable, Visible, definition, hidden_name, name_here},
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

/// Puts together what is here, as it was at the applied position, and asks the source what it has
/// now: what is not the same the stream must explain before it comes to where the source is. Where
/// the position cannot be gone on from (`anew`) everything is copied.
pub(super) fn compare(
    shared: &Shared,
    source: &mut Connection,
    anew: bool,
    step: &mut Step,
) -> Result<Tables> {
    let (read, refused) = read_tables(&mut source.conn, &shared.selection)?;
    let end = source.binlog_end()?;
    shared.board.tables.lock().clear();
    let mut answers = BTreeMap::new();
    for read in read {
        let table = TableName { database: read.database.clone(), table: read.name.clone() };
        match narrowed(&shared.settings, read) {
            Ok(read) => answers.insert(table, Ok(read)),
            Err(Error::TableRefused { reason, .. }) => answers.insert(table, Err(reason)),
            Err(error) => return Err(error),
        };
    }
    for refused in refused {
        let table = TableName { database: refused.database, table: refused.table };
        answers.insert(table, Err(refused.reason));
    }
    let mut tables = Tables { tables: FxHashMap::default(), last_copy: 0 };
    for table in stored_tables(shared).into_iter().chain(answers.keys().cloned()) {
        if !tables.tables.contains_key(&table) {
            let answer = answers.get(&table);
            tables.add(shared, source, table, (answer, &end), anew, step)?;
        }
    }
    tables.mark_missing(shared);
    Ok(tables)
}

/// The tables of the source that are here with their definition.
fn stored_tables(shared: &Shared) -> BTreeSet<TableName> {
    let (database, source) = (&shared.database, &shared.settings.name);
    let mut tables = BTreeSet::new();
    for key in [table_key, copied_key] {
        for name in tables_with(database, &|table| key(source, table)) {
            let positions = database.source_positions();
            let stored = stored_definition(positions.get(&key(source, &name)));
            let stored = stored.filter(|read| shared.selection.matches(&read.database, &read.name));
            tables
                .extend(stored.map(|read| TableName { database: read.database, table: read.name }));
        }
    }
    tables
}

impl Tables {
    fn add(
        &mut self,
        shared: &Shared,
        source: &mut Connection,
        table: TableName,
        (answer, end): (Option<&Answer>, &Coordinates),
        anew: bool,
        step: &mut Step,
    ) -> Result<()> {
        let (database, settings) = (&shared.database, &shared.settings);
        let name = name_here(settings, &table);
        let mut followed = FollowedTable::unknown(&table, name.clone());
        let stored = database.source_position(&table_key(&settings.name, &name))?;
        if is_here(database, &name) && stored.is_none() {
            shared.board.set_table(&name, TableState::Refused(taken(&name)));
            return Ok(());
        }
        followed.stopped = shared.given_up.lock().get(&table).cloned();
        let usable = !anew && followed.stopped.is_none();
        if is_here(database, &name) {
            match stored_definition(stored.as_deref()).filter(|_| usable) {
                Some(definition) => {
                    (followed.source, followed.visible) = (definition.into(), Visible::Fed);
                }
                None => {
                    followed.visible = Visible::Frozen;
                    step.positions.push((table_key(&settings.name, &name), STALE.to_owned()));
                }
            }
        }
        self.resume_copy(shared, source, &mut followed, usable, step)?;
        let known = followed.visible == Visible::Fed || followed.copy.is_some();
        followed.doubt = None;
        match answer {
            Some(Ok(read)) if known && read.reads_as(&followed.source) => {}
            _ if followed.stopped.is_some() => {}
            _ if known => followed.unexplained = Some(end.clone()),
            Some(Err(reason)) if followed.visible == Visible::Absent => {
                shared.board.set_table(&name, TableState::Refused(reason.clone()));
                return Ok(());
            }
            answer => {
                let answer = answer.map(|answer| (answer.clone(), end.clone()));
                followed.doubt = Some(Doubt { answer, missed: true, ..Doubt::default() });
            }
        }
        shared.board.set_table(&name, followed.state());
        self.tables.insert(table, followed);
        Ok(())
    }

    /// Goes on with the copy of a table, or drops what is there of it.
    fn resume_copy(
        &mut self,
        shared: &Shared,
        source: &mut Connection,
        followed: &mut FollowedTable,
        usable: bool,
        step: &mut Step,
    ) -> Result<()> {
        let (database, settings) = (&shared.database, &shared.settings);
        let stored = |key: String| database.source_position(&key);
        let hidden = hidden_name(&followed.name);
        let progress = stored(copy_key(&settings.name, &followed.name))?;
        let definition = stored(copied_key(&settings.name, &followed.name))?;
        let progress = progress.as_deref().and_then(Progress::parse);
        let definition = stored_definition(definition.as_deref());
        match (progress, definition) {
            // A copy that is read whole begins anew: its moment is gone.
            (Some(progress), Some(definition))
                if usable && !definition.is_keyless() && is_here(database, &hidden) =>
            {
                self.last_copy += 1;
                let estimate = estimate(source, &definition)?;
                let copy = Copy::new(self.last_copy, &followed.name, progress, estimate);
                (followed.source, followed.copy) = (definition.into(), Some(copy));
            }
            (None, None) if !is_here(database, &hidden) => {}
            _ => step.drop_copy(database, &settings.name, &followed.name, &hidden),
        }
        Ok(())
    }

    /// Tables that are here and of which nothing else is known: the stream will tell what became of
    /// them.
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
