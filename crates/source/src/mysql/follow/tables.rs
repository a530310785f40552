//! The start of a session: compares the source's tables with the local ones.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use remora_engine::{Database, Definition};
use rustc_hash::FxHashMap;

use super::{
    definition_commit::DefinitionCommit,
    parents::unfollowed_parent,
    positions::{
        Progress, STALE, copied_key, copy_key, definition_text, stored_definition, table_key,
        tables_with,
    },
    shared::{FollowState, TableRequest},
    status::TableState,
    table::{
        Copy, FollowedTable, Visible, definition, hidden_name, local_name, name_conflict, schema,
        source_name,
    },
    uncertainty::{Absence, Answer, Uncertainty},
};
use crate::{
    Error, Result,
    mysql::{
        connection::Connection,
        coordinates::Coordinates,
        copy::estimate,
        schema::{SourceTable, read_table, read_tables},
        settings::MysqlSettings,
        table_name::TableName,
    },
};

/// The tables, and the number of the last copy.
pub(super) struct Tables {
    pub tables: FxHashMap<TableName, FollowedTable>,
    pub last_copy: u64,
}

/// What is copied in any case.
pub(super) struct CopyRequest {
    /// Everything, because the position cannot be continued.
    pub start_over: bool,
    /// The tables of these local names.
    pub synced: HashSet<String>,
}

/// Collects the local tables as they were at the applied position, and reads the source's current definitions. The
/// stream must explain any difference before it reaches the source's current position.
pub(super) fn compare(
    shared: &FollowState,
    source: &mut Connection,
    wanted: &CopyRequest,
    commit: &mut DefinitionCommit,
) -> Result<Tables> {
    let (read, refused) = read_tables(&mut source.conn, &shared.selection)?;
    let end = source.binlog_end()?;
    shared.board.tables.lock().clear();
    let mut answers = BTreeMap::new();
    for read in read {
        let table = TableName { database: read.database.clone(), table: read.name.clone() };
        match restrict_to_definition(&shared.settings, read) {
            Ok(read) => answers.insert(table, Ok(read)),
            Err(Error::TableRefused { reason, .. }) => {
                answers.insert(table, Err(Absence::Refused(reason)))
            }
            Err(error) => return Err(error),
        };
    }
    for refused in refused {
        let table = TableName { database: refused.database, table: refused.table };
        answers.insert(table, Err(Absence::Refused(refused.reason)));
    }
    refuse_children_of_unfollowed(source, &mut answers)?;
    let mut tables = Tables { tables: FxHashMap::default(), last_copy: 0 };
    for table in stored_tables(shared).into_iter().chain(answers.keys().cloned()) {
        if !tables.tables.contains_key(&table) {
            let answer = answers.get(&table);
            tables.add(shared, source, table, (answer, &end), wanted, commit)?;
        }
    }
    tables.handle_missing(shared, wanted, commit);
    Ok(tables)
}

/// Refuses tables whose rows may change without being logged.
fn refuse_children_of_unfollowed(
    source: &mut Connection,
    answers: &mut BTreeMap<TableName, Answer>,
) -> Result<()> {
    let mut blind = Vec::new();
    for (table, answer) in &*answers {
        let is_followed = |parent: &TableName| answers.get(parent).is_some_and(Result::is_ok);
        if let Ok(read) = answer
            && let Some(reason) = unfollowed_parent(source, read, is_followed)?
        {
            blind.push((table.clone(), Err(Absence::Refused(reason))));
        }
    }
    answers.extend(blind);
    Ok(())
}

/// The source's tables that are stored here with their definition.
fn stored_tables(shared: &FollowState) -> BTreeSet<TableName> {
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

/// The state of a table of whose rows some are missing, by what the source says of it.
fn missed(answer: Option<&Answer>, end: &Coordinates) -> Uncertainty {
    let answer = answer.cloned().unwrap_or(Err(Absence::Gone));
    Uncertainty {
        answer: Some((answer, end.clone())),
        missed: true,
        may_reference: true,
        ..Uncertainty::default()
    }
}

impl Tables {
    fn add(
        &mut self,
        shared: &FollowState,
        source: &mut Connection,
        table: TableName,
        (answer, end): (Option<&Answer>, &Coordinates),
        wanted: &CopyRequest,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let (database, settings) = (&shared.database, &shared.settings);
        let name = local_name(settings, &table);
        if let Some(reason) = name_conflict(settings, &table, self.tables.iter()) {
            shared.board.set_table(&source_name(&table), TableState::Refused(reason));
            return Ok(());
        }
        let mut followed = FollowedTable::unknown(&table, name.clone());
        let stored = database.source_position(&table_key(&settings.name, &name))?;
        if exists_locally(database, &name) && stored.is_none() {
            shared.board.set_table(&name, TableState::Refused(name_taken_message(&name)));
            return Ok(());
        }
        let is_ordered = wanted.synced.contains(&name);
        if is_ordered {
            shared.forget_failures(&table);
        }
        followed.stopped = shared.given_up.lock().get(&table).cloned();
        let usable = !wanted.start_over && !is_ordered && followed.stopped.is_none();
        if exists_locally(database, &name) {
            match stored_definition(stored.as_deref()).filter(|_| usable) {
                Some(stored) => {
                    let here = (&*name, table_key(&settings.name, &name));
                    let stored = in_source_order(shared, stored, here, commit)?;
                    (followed.source, followed.visible) = (stored.into(), Visible::Current);
                }
                None => {
                    followed.visible = Visible::Frozen;
                    commit.positions.push((table_key(&settings.name, &name), STALE.to_owned()));
                }
            }
        }
        self.resume_copy(shared, source, &mut followed, usable, commit)?;
        let known = followed.visible == Visible::Current || followed.copy.is_some();
        followed.uncertainty = None;
        if answer.is_none() && wanted.start_over && !settings.strict_schema {
            // See [`Tables::handle_missing`].
            return Ok(());
        }
        match answer {
            Some(Ok(read)) if known && read.reads_as(&followed.source) => {}
            _ if followed.stopped.is_some() => {}
            _ if known => followed.explained_before = Some(end.clone()),
            Some(Err(absence)) if followed.visible == Visible::Absent => {
                shared.board.set_table(&name, TableState::Refused(absence.clone().reason()));
                return Ok(());
            }
            answer => followed.uncertainty = Some(missed(answer, end)),
        }
        shared.board.set_table(&name, followed.state());
        self.tables.insert(table, followed);
        Ok(())
    }

    /// Resumes the copy of a table, or drops what exists of it.
    fn resume_copy(
        &mut self,
        shared: &FollowState,
        source: &mut Connection,
        followed: &mut FollowedTable,
        usable: bool,
        commit: &mut DefinitionCommit,
    ) -> Result<()> {
        let (database, settings) = (&shared.database, &shared.settings);
        let stored = |key: String| database.source_position(&key);
        let hidden = hidden_name(&followed.name);
        let progress = stored(copy_key(&settings.name, &followed.name))?;
        let definition = stored(copied_key(&settings.name, &followed.name))?;
        let progress = progress.as_deref().and_then(Progress::parse);
        let definition = stored_definition(definition.as_deref());
        match (progress, definition) {
            // A copy that is read whole restarts, because its position is in the past.
            (Some(progress), Some(definition))
                if usable && !definition.is_keyless() && exists_locally(database, &hidden) =>
            {
                let here = (&*hidden, copied_key(&settings.name, &followed.name));
                let definition = in_source_order(shared, definition, here, commit)?;
                self.last_copy += 1;
                let estimate = estimate(source, &definition)?;
                let copy = Copy::new(self.last_copy, &followed.name, progress, estimate);
                (followed.source, followed.copy) = (definition.into(), Some(copy));
            }
            (None, None) if !exists_locally(database, &hidden) => {}
            (Some(_), Some(definition))
                if usable && definition.is_keyless() && followed.visible == Visible::Current =>
            {
                commit.drop_copy(database, &settings.name, &followed.name, &hidden);
                // The table is intact, and yet a copy was wanted: for a functional key, or as ordered.
                if !shared.request(TableRequest::Sync(followed.name.to_string())) {
                    tracing::warn!(table = &*followed.name, "its copy does not go on: SYNC it");
                }
            }
            _ => commit.drop_copy(database, &settings.name, &followed.name, &hidden),
        }
        Ok(())
    }

    /// Local tables that are otherwise unknown. The stream will tell what happened to them, unless that part of it is
    /// lost: then those that the source does not have are dropped, as their DROP would have done. A database of which the
    /// source has no followed table is no such case: it may be a new server, or one that is being restored.
    fn handle_missing(
        &self,
        shared: &FollowState,
        wanted: &CopyRequest,
        commit: &mut DefinitionCommit,
    ) {
        let known: HashSet<&str> = self.tables.values().map(|followed| &*followed.name).collect();
        let (database, settings) = (&shared.database, &shared.settings);
        for table in tables_with(database, &|table| table_key(&settings.name, table)) {
            if known.contains(table.as_str()) || !exists_locally(database, &table) {
                continue;
            }
            let (there, name) = source_parts(&table, settings);
            let has_others = known.iter().any(|name| source_parts(name, settings).0 == there);
            let may_drop = wanted.start_over && !settings.strict_schema && has_others;
            if may_drop && shared.selection.matches(&there, &name) {
                tracing::warn!(table, "dropped: the source has no such table any more");
                commit.drop_if_exists(database, &table);
                commit.positions.push((table_key(&settings.name, &table), String::new()));
            } else {
                let reason = "the source has no such table any more".to_owned();
                shared.board.set_table(&table, TableState::Stopped(reason));
            }
        }
    }
}

/// The database and name at the source of a local table that it has.
fn source_parts(name: &str, settings: &MysqlSettings) -> (String, String) {
    match name.split_once('.') {
        Some((database, table)) => (database.to_owned(), table.to_owned()),
        None => (settings.database.clone().unwrap_or_default(), name.to_owned()),
    }
}

/// The databases and names of the tables that were followed before.
pub(super) fn followed_before(
    database: &Database,
    settings: &MysqlSettings,
) -> Vec<(String, String)> {
    let mut names = tables_with(database, &|table| table_key(&settings.name, table));
    names.extend(tables_with(database, &|table| copied_key(&settings.name, table)));
    names.iter().map(|name| source_parts(name, settings)).collect()
}

/// Shows the tables that were followed before, until they can be compared with the source's.
pub(super) fn publish_stored_states(shared: &FollowState) {
    let positions = shared.database.source_positions();
    let name = &shared.settings.name;
    for table in tables_with(&shared.database, &|table| table_key(name, table)) {
        let state = match positions.get(&table_key(name, &table)) {
            Some(STALE) => TableState::CatchingUp,
            _ => TableState::Live,
        };
        shared.board.set_table(&table, state);
    }
}

/// Checks that the source has what each configured definition needs.
pub(super) fn check_definitions(source: &mut Connection, settings: &MysqlSettings) -> Result<()> {
    for definition in &settings.definitions {
        let (database, table) = match definition.name.split_once('.') {
            Some((database, table)) => (database, table),
            None => (settings.database.as_deref().unwrap_or_default(), definition.name.as_str()),
        };
        if let Some(read) = read_table(&mut source.conn, database, table)? {
            restrict_to_definition(settings, read)?;
        }
    }
    Ok(())
}

/// The definition of a local table in the source's column order; older versions appended new columns. `here` is its
/// name and the name of its stored definition.
fn in_source_order(
    shared: &FollowState,
    stored: SourceTable,
    here: (&str, String),
    commit: &mut DefinitionCommit,
) -> Result<SourceTable> {
    let table = TableName { database: stored.database.clone(), table: stored.name.clone() };
    let (name, key) = here;
    let defined = definition(&shared.settings, &table).is_some();
    let Some(ordered) = stored.in_image_order().filter(|_| !defined) else { return Ok(stored) };
    let previous = shared.database.schema(name)?;
    let highest = shared.database.highest_column_id(name)?;
    let schema = schema(&shared.settings, &ordered, name, Some((&previous, highest)));
    commit.definitions.push(Definition::Alter { schema, fills: Vec::new() });
    commit.positions.push((key, definition_text(&ordered)));
    Ok(ordered)
}

fn exists_locally(database: &Database, table: &str) -> bool {
    database.schema(table).is_ok()
}

/// The table restricted to its configured definition.
pub(super) fn restrict_to_definition(
    settings: &MysqlSettings,
    read: SourceTable,
) -> Result<SourceTable> {
    let table = TableName { database: read.database.clone(), table: read.name.clone() };
    match definition(settings, &table) {
        Some(definition) => read.narrowed_to(definition),
        None => Ok(read),
    }
}

/// Why a table cannot have its name here.
pub(super) fn name_taken_message(name: &str) -> String {
    format!("there is a table {name:?} here that does not come from this source: drop or rename it")
}
