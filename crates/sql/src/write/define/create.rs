//! CREATE TABLE, except distributed tables (`distributed.rs`).

use std::sync::Arc;

use remora_engine::{Definition, Schema, Value};
use remora_mysql::ErrorCode;

use super::{
    define, distributed,
    draft::Draft,
    key_columns::add_key_columns,
    named,
    names::{check_name, check_temporary_name, exists},
    percolate,
    references::check_references,
    selected::{add_selected, tables_of},
    table_exists,
};
use crate::{
    Error, Outcome, Result,
    catalog::{SqlTable, TableName, Verb, database_collation},
    parse::define::{DuplicateRows, QualifiedName, QueryDefinition, TableBody, TableDefinition},
    shared::position_name,
    state::SessionState,
    transaction::{Overlay, TableStorage, TemporaryTable, TransactionCharacteristics},
    write::{
        rows::{TargetTable, query_rows, table_of},
        unique::{UniqueKey, hidden_schema},
    },
};

/// Runs CREATE TABLE.
pub(super) async fn run(session: &mut SessionState, table: TableDefinition) -> Result<Outcome> {
    let TableDefinition { temporary, lenient, name, body } = table;
    let name = named(session, &name)?;
    match temporary {
        true => check_temporary_name(session, &name)?,
        false => check_name(session, &name)?,
    }
    if exists(session, &name, temporary) {
        return already(session, table_exists(&name.table), lenient);
    }
    let (elements, options, duplicates, query) = match body {
        TableBody::Elements { elements, options, duplicates, query } => {
            (elements, options, duplicates, query)
        }
        TableBody::Like(like) => {
            return create_like(session, &name, &like, temporary, lenient).await;
        }
        TableBody::Distributed(parts) => {
            return match distributed::create(session, &name, &parts).await {
                Ok(()) => Ok(Outcome::default()),
                Err(error) => already(session, error, lenient),
            };
        }
    };
    let mut draft = Draft::default();
    draft.options.collation = database_collation(&session.shared, &name.database);
    // Options come after the columns but affect their meaning.
    draft.options.set_all(&options)?;
    elements.into_iter().try_for_each(|element| draft.add(element))?;
    if draft.options.is_percolate {
        return of_queries(session, &name, draft, temporary, lenient).await;
    }
    let mut rows = None;
    if let Some(QueryDefinition { source, query }) = query {
        let ignores = duplicates == DuplicateRows::Ignore;
        session.refuses_warnings = session.variables.sql_mode.is_strict() && !ignores;
        let tables = tables_of(session, &query)?;
        let found = query_rows(session, *query, &source).await;
        session.refuses_warnings = false;
        let mut found = found?;
        let positions = add_selected(session, &mut draft, &found.columns, &tables);
        let given = positions.iter().filter_map(|place| draft.columns.get(*place));
        found.fit(given.map(|column| &column.spec.kind).enumerate());
        rows = Some((positions, found.rows));
    }
    draft.finish(&name)?;
    check_references(session, &name, &draft, None).await?;
    draft.settle_defaults(session)?;
    if !draft.foreign.is_empty() {
        session.warn(ErrorCode::NotSupported, "FOREIGN KEY constraints are kept but not enforced");
    }
    if let Err(error) = make(session, &name, &draft, temporary).await {
        return already(session, error, lenient);
    }
    let Some((positions, rows)) = rows else { return Ok(Outcome::default()) };
    fill(session, &name, (positions, rows), duplicates).await
}

/// Creates a table with the definition of another.
async fn create_like(
    session: &mut SessionState,
    name: &TableName,
    like: &QualifiedName,
    temporary: bool,
    lenient: bool,
) -> Result<Outcome> {
    let table = table_of(session, &named(session, like)?, Verb::Alter)?;
    let mut draft = Draft::of(&table);
    draft.columns.iter_mut().for_each(|column| column.id = None);
    draft.row_number = None;
    draft.options.auto_increment = None;
    draft.foreign.clear();
    draft.checks.iter_mut().for_each(|check| check.name.clear());
    draft.finish(name)?;
    made(session, name, &draft, temporary, lenient).await
}

const TEMPORARY_PERCOLATE: &str = "a temporary percolate table";

/// Creates a percolate table for documents of this definition.
async fn of_queries(
    session: &mut SessionState,
    name: &TableName,
    mut documents: Draft,
    temporary: bool,
    lenient: bool,
) -> Result<Outcome> {
    if temporary {
        return Err(Error::unsupported(TEMPORARY_PERCOLATE));
    }
    documents.settle_defaults(session)?;
    let queries = percolate::queries(name, documents)?;
    made(session, name, &queries, false, lenient).await
}

/// Creates the table of a draft. With IF NOT EXISTS an existing table is not an error.
async fn made(
    session: &mut SessionState,
    name: &TableName,
    draft: &Draft,
    temporary: bool,
    lenient: bool,
) -> Result<Outcome> {
    if temporary && draft.documents.is_some() {
        return Err(Error::unsupported(TEMPORARY_PERCOLATE));
    }
    match make(session, name, draft, temporary).await {
        Ok(()) => Ok(Outcome::default()),
        Err(error) => already(session, error, lenient),
    }
}

/// With IF NOT EXISTS turns the error of an existing table into a note; other errors end the
/// statement.
fn already(session: &SessionState, error: Error, lenient: bool) -> Result<Outcome> {
    if error.code != ErrorCode::TableExists || !lenient {
        return Err(error);
    }
    session.note(error.code, error.message);
    Ok(Outcome::default())
}

/// Inserts the rows of CREATE TABLE … AS SELECT. The table is dropped if that fails.
async fn fill(
    session: &mut SessionState,
    name: &TableName,
    (positions, rows): (Vec<usize>, Vec<Vec<Value>>),
    duplicates: DuplicateRows,
) -> Result<Outcome> {
    let owned = !session.transaction.is_begun();
    if owned {
        let shared = Arc::clone(&session.shared);
        let manner = TransactionCharacteristics {
            statement_only: true,
            ..TransactionCharacteristics::default()
        };
        session.transaction.begin(&shared, manner);
    }
    let result = match TargetTable::find(session, name, Verb::Create) {
        Ok(target) => {
            crate::write::rows::fill(session, &target, (positions, rows), duplicates).await
        }
        Err(error) => Err(error),
    };
    let result = match (result, owned) {
        (Ok(outcome), true) => session.commit().await.map(|()| outcome),
        (result, _) => result,
    };
    if owned && result.is_err() {
        session.transaction.roll_back();
    }
    match result {
        Ok(outcome) => Ok(outcome),
        Err(error) => {
            let shared = Arc::clone(&session.shared);
            let _alone = shared.naming.lock().await;
            super::drop::drop_one(session, name).await?;
            Err(error)
        }
    }
}

/// Creates the table of a draft with the hidden tables of its unique keys; error 1050 if it exists.
pub(super) async fn make(
    session: &mut SessionState,
    name: &TableName,
    draft: &Draft,
    temporary: bool,
) -> Result<()> {
    let mut draft = draft.clone();
    add_key_columns(session, name, &mut draft, None).await?;
    let next = draft.options.auto_increment.unwrap_or(1);
    if temporary {
        let schema =
            draft.build(format!("#temporary.{}.{}", name.database, name.table), None, None);
        schema.validate().map_err(crate::error::from_engine_write)?;
        let schema = Arc::new(schema);
        for (place, schema) in hidden(&schema, &TableStorage::Temporary(name.clone())) {
            if let TableStorage::Temporary(name) = place {
                let rows = Arc::new(Overlay::default());
                let table = TemporaryTable { schema: Arc::new(schema), rows, next: 1, next_row: 1 };
                session.transaction.put_temporary(name, table);
            }
        }
        let table =
            TemporaryTable { schema, rows: Arc::new(Overlay::default()), next, next_row: 1 };
        session.transaction.put_temporary(name.clone(), table);
        let room = session.transaction.check_room(&TableStorage::Temporary(name.clone()));
        if room.is_err() {
            super::drop::drop_one(session, name).await?;
        }
        return room;
    }
    let engine_name = name.engine_name(&session.shared);
    let schema = Arc::new(draft.build(engine_name.clone(), None, None));
    // Checked when the definition runs, because sources create tables too.
    let mut definitions =
        vec![Definition::Vacant(engine_name.clone()), Definition::Create(Schema::clone(&schema))];
    for (_, schema) in hidden(&schema, &TableStorage::Engine(engine_name.as_str().into())) {
        definitions.push(Definition::Create(schema));
    }
    let shared = Arc::clone(&session.shared);
    let _alone = session.wait_for(shared.naming.lock()).await?;
    check_name(session, name)?;
    if exists(session, name, false) {
        return Err(table_exists(&name.table));
    }
    let stored = if next > 1 { next.to_string() } else { String::new() };
    session.shared.counters.forget(&engine_name);
    define(session, definitions, vec![(position_name(&engine_name), stored)]).await
}

/// The definitions of a table's hidden tables, and where they are stored.
pub(super) fn hidden(schema: &Arc<Schema>, place: &TableStorage) -> Vec<(TableStorage, Schema)> {
    let table = SqlTable::of(schema);
    let keys = UniqueKey::of(&table, place).into_iter();
    let made = keys.map(|unique| {
        let name = match &unique.place {
            TableStorage::Engine(name) => name.to_string(),
            TableStorage::Temporary(name) => name.table.clone(),
        };
        (unique.place, hidden_schema(name, schema))
    });
    made.collect()
}
