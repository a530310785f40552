//! DROP TABLE, TRUNCATE and RENAME TABLE.

use std::{collections::BTreeMap, sync::Arc};

use remora_engine::Definition;
use remora_mysql::{ErrorCode, messages};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    define, dropping,
    foreign::{Moved, follow},
    hidden_tables, named,
    names::check_name,
    table_exists, view,
};
use crate::{
    Error, Outcome, Result,
    catalog::{TableName, Verb, View},
    parse::define::QualifiedName,
    shared::position_name,
    state::SessionState,
    transaction::{Overlay, TableStorage, TemporaryTable},
    write::{rows::TargetTable, unique::UniqueKey},
};

/// Runs DROP [TEMPORARY] TABLE.
pub(super) async fn drop(
    session: &mut SessionState,
    temporary: bool,
    lenient: bool,
    names: &[QualifiedName],
) -> Result<Outcome> {
    let names: Vec<TableName> =
        names.iter().map(|name| named(session, name)).collect::<Result<_>>()?;
    let mut definitions = Vec::new();
    let mut positions = Vec::new();
    let mut missing = Vec::new();
    for name in &names {
        if session.transaction.temporary(name).is_some() {
            drop_temporary(session, name)?;
            session.transaction.note_dropped_temporary();
            continue;
        }
        match if temporary {
            Err(name.missing())
        } else {
            TargetTable::find(session, name, Verb::Drop)
        } {
            Ok(target) => {
                let (dropped, forgotten) = dropping(&target);
                definitions.extend(dropped);
                positions.extend(forgotten);
                if let Some(name) = target.engine_name() {
                    session.shared.counters.forget(name);
                }
            }
            Err(error) if error.code == ErrorCode::NoSuchTable => {
                missing.push(format!("{}.{}", name.database, name.table));
            }
            Err(error) => return Err(error),
        }
    }
    if !missing.is_empty() && !lenient {
        let message = messages::unknown_table(missing.join(","));
        return Err(Error::new(ErrorCode::UnknownTable, message));
    }
    for name in missing {
        session.note(ErrorCode::UnknownTable, messages::unknown_table(name));
    }
    if !definitions.is_empty() {
        define(session, definitions, positions).await?;
    }
    Ok(Outcome::default())
}

/// Drops a table that this statement created.
pub(super) async fn drop_one(session: &mut SessionState, name: &TableName) -> Result<()> {
    if session.transaction.temporary(name).is_some() {
        return drop_temporary(session, name);
    }
    let target = TargetTable::find(session, name, Verb::Drop)?;
    let (definitions, positions) = dropping(&target);
    define(session, definitions, positions).await
}

fn drop_temporary(session: &mut SessionState, name: &TableName) -> Result<()> {
    let target = TargetTable::find(session, name, Verb::Drop)?;
    for unique in UniqueKey::of(&target.table, &target.place) {
        if let TableStorage::Temporary(name) = unique.place {
            session.transaction.drop_temporary(&name);
        }
    }
    session.transaction.drop_temporary(name);
    Ok(())
}

/// Runs TRUNCATE, which replaces the table by an empty one.
pub(super) async fn truncate(session: &mut SessionState, name: &QualifiedName) -> Result<Outcome> {
    let target = TargetTable::find(session, &named(session, name)?, Verb::Drop)?;
    target.check_rows_of_its_own("TRUNCATE")?;
    if let TableStorage::Temporary(name) = &target.place {
        let uniques = UniqueKey::of(&target.table, &target.place).into_iter();
        let hidden = uniques.filter_map(|unique| match unique.place {
            TableStorage::Temporary(name) => Some(name),
            TableStorage::Engine(_) => None,
        });
        for name in hidden.chain([name.clone()]) {
            if let Some(table) = session.transaction.drop_temporary(&name) {
                let rows = Arc::new(Overlay::default());
                let table = TemporaryTable { rows, next: 1, next_row: 1, ..table };
                session.transaction.put_temporary(name, table);
            }
        }
        return Ok(Outcome::default());
    }
    let Some(engine_name) = target.engine_name() else { return Ok(Outcome::default()) };
    let mut definitions = Vec::new();
    let hidden = hidden_tables(&target.table, &target.place);
    for table in hidden.iter().map(String::as_str).chain([&**engine_name]) {
        let schema = session.shared.database.schema(table);
        let schema = schema.map_err(crate::error::from_engine_write)?;
        definitions.push(Definition::Drop(table.to_owned()));
        definitions.push(Definition::Create(remora_engine::Schema::clone(&schema)));
    }
    session.shared.counters.forget(engine_name);
    define(session, definitions, vec![(position_name(engine_name), String::new())]).await?;
    Ok(Outcome::default())
}

/// Runs RENAME TABLE.
pub(super) async fn rename(
    session: &mut SessionState,
    pairs: &[(QualifiedName, QualifiedName)],
) -> Result<Outcome> {
    let both = |(from, to): &(_, _)| Ok((named(session, from)?, named(session, to)?));
    let pairs: Vec<(TableName, TableName)> = pairs.iter().map(both).collect::<Result<_>>()?;
    if let [(from, to)] = &pairs[..]
        && let Some(view) = view::renamed(session, from)?
    {
        view::rename(session, view, to.clone()).await?;
        return Ok(Outcome::default());
    }
    rename_all(session, pairs).await?;
    Ok(Outcome::default())
}

/// Renames tables one after the other, with their hidden tables, in one atomic step.
pub(super) async fn rename_all(
    session: &mut SessionState,
    pairs: Vec<(TableName, TableName)>,
) -> Result<()> {
    let mut renaming = Renaming::default();
    for (from, to) in pairs {
        renaming.add(session, from, to)?;
    }
    let Renaming { mut definitions, positions, renamed, .. } = renaming;
    let moved: Vec<Moved<'_>> = renamed
        .iter()
        .map(|(to, each)| Moved { from: &each.target.name, to, columns: &[] })
        .collect();
    let called = |name: &str| {
        let is_it = |each: &&Renamed| each.target.engine_name().is_some_and(|old| **old == *name);
        renamed.values().find(is_it).map_or(name, |each| &each.engine_name).to_owned()
    };
    definitions.extend(follow(session, &moved, called)?);
    let names: Vec<String> = definitions.iter().flat_map(renamed_names).collect();
    define(session, definitions, positions.into_iter().collect()).await?;
    names.iter().for_each(|name| session.shared.counters.forget(name));
    Ok(())
}

fn renamed_names(definition: &Definition) -> Vec<String> {
    match definition {
        Definition::Rename { from, to } => vec![from.clone(), to.clone()],
        _ => Vec::new(),
    }
}

/// Renames in progress.
#[derive(Default)]
struct Renaming {
    /// Tables renamed so far, by their new names.
    renamed: FxHashMap<TableName, Renamed>,
    /// Names that have become free.
    free: FxHashSet<TableName>,
    definitions: Vec<Definition>,
    positions: BTreeMap<String, String>,
}

/// A renamed table.
struct Renamed {
    target: TargetTable,
    engine_name: String,
}

impl Renaming {
    fn add(&mut self, session: &SessionState, from: TableName, to: TableName) -> Result<()> {
        // Rights are checked before the other name, so that no error reveals a table.
        if !self.renamed.contains_key(&from) {
            from.check(&session.identity, Verb::Rename)?;
        }
        check_name(session, &to)?;
        let new_name = to.engine_name(&session.shared);
        let database = &session.shared.database;
        if View::is_there(&database.reader(), &to) {
            return Err(table_exists(&to.table));
        }
        let is_there = database.schema(&new_name).is_ok();
        if self.renamed.contains_key(&to) || is_there && !self.free.contains(&to) {
            return Err(table_exists(&to.table));
        }
        let Renamed { target, engine_name: old_name } = self.take(session, &from)?;
        let hidden = |name: &str| hidden_tables(&target.table, &TableStorage::Engine(name.into()));
        let pairs = hidden(&old_name).into_iter().zip(hidden(&new_name));
        let pairs = pairs.chain([(old_name.clone(), new_name.clone())]);
        // Checked when the definition runs, because sources create tables too.
        self.definitions.push(Definition::Vacant(new_name.clone()));
        self.definitions.extend(pairs.map(|(from, to)| Definition::Rename { from, to }));
        let next = target.peek_value(session)?;
        self.positions.insert(position_name(&old_name), String::new());
        let stored = next.map(|next| next.to_string()).unwrap_or_default();
        self.positions.insert(position_name(&new_name), stored);
        self.free.remove(&to);
        self.free.insert(from);
        self.renamed.insert(to, Renamed { target, engine_name: new_name });
        Ok(())
    }

    /// The table that has this name after the renames so far.
    fn take(&mut self, session: &SessionState, name: &TableName) -> Result<Renamed> {
        if let Some(renamed) = self.renamed.remove(name) {
            return Ok(renamed);
        }
        if self.free.contains(name) {
            return Err(name.missing());
        }
        let target = TargetTable::find(session, name, Verb::Rename)?;
        match target.engine_name().map(ToString::to_string) {
            Some(engine_name) => Ok(Renamed { target, engine_name }),
            None => Err(Error::unsupported("RENAME of a temporary table")),
        }
    }
}
