//! DROP TABLE, TRUNCATE and RENAME TABLE.

use std::sync::Arc;

use remora_engine::Definition;

use super::{define, dropping, hidden_tables};
use crate::{
    Code, Error, Outcome, Result,
    select::names::{TableName, database_exists},
    session::SessionState,
    write::{
        counters::position_name,
        overlay::Overlay,
        rows::{Target, table_name},
        tokens::Tokens,
        transaction::{Place, TemporaryTable},
        unique::UniqueKey,
    },
};

/// Runs DROP [TEMPORARY] TABLE from the word behind DROP on.
pub(super) async fn drop(session: &mut SessionState, tokens: &mut Tokens<'_>) -> Result<Outcome> {
    let temporary = tokens.accept("TEMPORARY");
    if tokens.accept("VIEW") && !temporary {
        return drop_views(session, tokens);
    }
    if !tokens.accept_any(&["TABLE", "TABLES"]) {
        return Err(Error::unsupported("DROP of anything but tables and databases"));
    }
    let lenient = tokens.accept_all("IF EXISTS");
    let names = names(session, tokens)?;
    tokens.accept_any(&["RESTRICT", "CASCADE"]);
    tokens.expect_end()?;
    let mut definitions = Vec::new();
    let mut positions = Vec::new();
    let mut missing = Vec::new();
    for name in &names {
        if session.transaction.temporary(name).is_some() {
            drop_temporary(session, name)?;
            continue;
        }
        match if temporary { Err(name.missing()) } else { Target::find(session, name) } {
            Ok(target) => {
                let (dropped, forgotten) = dropping(&target);
                definitions.extend(dropped);
                positions.extend(forgotten);
                if let Some(name) = target.engine_name() {
                    session.shared.counters.forget(name);
                }
            }
            Err(error) if error.code == Code::NoSuchTable => {
                missing.push(format!("{}.{}", name.database, name.table));
            }
            Err(error) => return Err(error),
        }
    }
    if !missing.is_empty() && !lenient {
        let message = format!("Unknown table '{}'", missing.join(","));
        return Err(Error::new(Code::UnknownTable, message));
    }
    for name in missing {
        session.note(Code::UnknownTable, format!("Unknown table '{name}'"));
    }
    if !definitions.is_empty() {
        define(session, definitions, positions).await?;
    }
    Ok(Outcome::default())
}

/// There are no views, so there is none to drop.
fn drop_views(session: &mut SessionState, tokens: &mut Tokens<'_>) -> Result<Outcome> {
    let lenient = tokens.accept_all("IF EXISTS");
    for name in names(session, tokens)? {
        let message = format!("Unknown table '{}.{}'", name.database, name.table);
        if !lenient {
            return Err(Error::new(Code::UnknownTable, message));
        }
        session.note(Code::UnknownTable, message);
    }
    Ok(Outcome::default())
}

/// Drops a table that this statement made.
pub(super) async fn drop_one(session: &mut SessionState, name: &TableName) -> Result<()> {
    if session.transaction.temporary(name).is_some() {
        return drop_temporary(session, name);
    }
    let target = Target::find(session, name)?;
    let (definitions, positions) = dropping(&target);
    define(session, definitions, positions).await
}

fn drop_temporary(session: &mut SessionState, name: &TableName) -> Result<()> {
    let target = Target::find(session, name)?;
    for unique in UniqueKey::of(&target.table, &target.place) {
        if let Place::Temporary(name) = unique.place {
            session.transaction.drop_temporary(&name);
        }
    }
    session.transaction.drop_temporary(name);
    Ok(())
}

fn names(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Vec<TableName>> {
    let mut names = Vec::new();
    loop {
        names.push(table_name(tokens, session)?);
        if !tokens.take(",") {
            return Ok(names);
        }
    }
}

/// Runs TRUNCATE from the word behind it on: the table is made anew.
pub(super) async fn truncate(
    session: &mut SessionState,
    tokens: &mut Tokens<'_>,
) -> Result<Outcome> {
    tokens.accept("TABLE");
    let name = table_name(tokens, session)?;
    tokens.expect_end()?;
    let target = Target::find(session, &name)?;
    if let Place::Temporary(name) = &target.place {
        let uniques = UniqueKey::of(&target.table, &target.place).into_iter();
        let hidden = uniques.filter_map(|unique| match unique.place {
            Place::Temporary(name) => Some(name),
            Place::Engine(_) => None,
        });
        for name in hidden.chain([name.clone()]) {
            if let Some(table) = session.transaction.drop_temporary(&name) {
                let rows = Arc::new(Overlay::default());
                let table = TemporaryTable { rows, next: 1, ..table };
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
        let schema = schema.map_err(crate::write::transaction::engine_error)?;
        definitions.push(Definition::Drop(table.to_owned()));
        definitions.push(Definition::Create(remora_engine::Schema::clone(&schema)));
    }
    session.shared.counters.forget(engine_name);
    define(session, definitions, vec![(position_name(engine_name), String::new())]).await?;
    Ok(Outcome::default())
}

/// Runs RENAME TABLE from the word behind RENAME on.
pub(super) async fn rename(session: &mut SessionState, tokens: &mut Tokens<'_>) -> Result<Outcome> {
    if !tokens.accept_any(&["TABLE", "TABLES"]) {
        return Err(Error::unsupported("RENAME of anything but tables"));
    }
    let mut pairs = Vec::new();
    loop {
        let from = table_name(tokens, session)?;
        tokens.expect("TO")?;
        pairs.push((from, table_name(tokens, session)?));
        if !tokens.take(",") {
            break;
        }
    }
    tokens.expect_end()?;
    for (from, to) in pairs {
        rename_one(session, &from, &to).await?;
    }
    Ok(Outcome::default())
}

/// Renames a table and what belongs to it.
pub(super) async fn rename_one(
    session: &mut SessionState,
    from: &TableName,
    to: &TableName,
) -> Result<()> {
    let new_name = to.engine_name(&session.shared);
    if session.shared.database.schema(&new_name).is_ok() {
        let message = format!("Table '{}' already exists", to.table);
        return Err(Error::new(Code::TableExists, message));
    }
    let target = Target::find(session, from)?;
    to.check(&session.identity, true)?;
    if !database_exists(session, &to.database) {
        let message = format!("Unknown database '{}'", to.database);
        return Err(Error::new(Code::UnknownDatabase, message));
    }
    let Some(old_name) = target.engine_name() else {
        return Err(Error::unsupported("RENAME of a temporary table"));
    };
    let place = Place::Engine(new_name.as_str().into());
    let hidden = hidden_tables(&target.table, &target.place);
    let renamed = hidden_tables(&target.table, &place);
    let pairs = hidden.into_iter().zip(renamed);
    let pairs = pairs.chain([(old_name.to_string(), new_name.clone())]);
    let definitions = pairs.map(|(from, to)| Definition::Rename { from, to }).collect();
    let next = target.peek_value(session)?;
    let positions = vec![
        (position_name(old_name), String::new()),
        (position_name(&new_name), next.map(|next| next.to_string()).unwrap_or_default()),
    ];
    define(session, definitions, positions).await?;
    session.shared.counters.forget(old_name);
    session.shared.counters.forget(&new_name);
    Ok(())
}
