//! CREATE, ALTER, DROP and RENAME of views.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use remora_engine::Definition;
use remora_mysql::{ErrorCode, LexMode, messages};

use super::{
    define, named,
    names::{check_place, check_spelling},
    table_exists,
};
use crate::{
    Error, Outcome, Result,
    catalog::{TableName, Verb, View, not_a_view},
    execute,
    parse::{
        Source, Statement,
        define::{QualifiedName, QueryDefinition, ViewDefinition, ViewHead},
        split,
    },
    resolve::{SessionCatalog, check_column_name, view_text},
    state::SessionState,
};

/// Runs CREATE VIEW or ALTER VIEW.
pub(super) async fn create(session: &mut SessionState, view: ViewDefinition) -> Result<Outcome> {
    let ViewDefinition { alters, mut head, select } = view;
    let name = named(session, &head.name)?;
    check_spelling(&name)?;
    name.check(&session.identity, Verb::CreateView)?;
    check_place(session, &name)?;
    if head.definer.is_none() {
        head.definer = Some((session.identity.user.clone(), session.identity.host.clone()));
    }
    if let Some(outcome) = taken(session, &name, &head, alters)? {
        return Ok(outcome);
    }
    head.columns.iter().try_for_each(|column| check_column_name(column))?;
    let QueryDefinition { source, query } = select;
    let select = kept_select(session, *query, &source, &name, &head.columns)?;
    check_plan(session, &name, &head, &select).await?;
    execute::warn_of_marks(session, &source);
    let variables = &session.variables;
    let charset = variables.character_set_client.name().to_owned();
    let made = View::new(name.clone(), head, select, (charset, variables.collation_connection));
    let shared = Arc::clone(&session.shared);
    let _alone = session.wait_for(shared.naming.lock()).await?;
    if let Some(outcome) = taken(session, &name, &made.head, alters)? {
        return Ok(outcome);
    }
    // Checked when the definition runs, because sources create tables too.
    let vacant = Definition::Vacant(name.engine_name(&session.shared));
    define(session, vec![vacant], vec![made.to_keep()]).await?;
    Ok(Outcome::default())
}

/// The error if the name is taken or missing; an outcome if there is nothing to do.
fn taken(
    session: &SessionState,
    name: &TableName,
    head: &ViewHead,
    alters: bool,
) -> Result<Option<Outcome>> {
    let replaces = head.replaces || alters;
    let reader = session.shared.database.reader();
    if reader.schema(&name.engine_name(&session.shared)).is_ok() {
        if replaces {
            return Err(not_a_view(name));
        }
        return already(session, name, head.lenient);
    }
    match View::find(&reader, name) {
        Ok(None) if alters => Err(name.missing()),
        Ok(None) => Ok(None),
        Ok(Some(view)) if replaces => check_local(&view).map(|()| None),
        Err(_) if replaces => Ok(None),
        Ok(Some(_)) | Err(_) => already(session, name, head.lenient),
    }
}

/// Error 1050, or a note with IF NOT EXISTS.
fn already(session: &SessionState, name: &TableName, lenient: bool) -> Result<Option<Outcome>> {
    let error = table_exists(&name.table);
    if !lenient {
        return Err(error);
    }
    session.note(error.code, error.message);
    Ok(Some(Outcome::default()))
}

/// Error 1290 for a view that follows a source.
fn check_local(view: &View) -> Result<()> {
    let Some(source) = &view.declared.source else { return Ok(()) };
    let message = format!(
        "View '{}' follows the source '{source}' and is read-only here, so it cannot execute this statement",
        view.name
    );
    Err(Error::new(ErrorCode::OptionPreventsStatement, message))
}

/// The stored text of the SELECT.
fn kept_select(
    session: &SessionState,
    query: ast::Query,
    source: &Arc<Source>,
    name: &TableName,
    columns: &[String],
) -> Result<String> {
    if !query.locks.is_empty() {
        return Err(Error::unsupported("FOR UPDATE or FOR SHARE in a view"));
    }
    let catalog = SessionCatalog::new(session, source).for_view(name.clone());
    // As in MySQL, a view does not exist while it is being created.
    view_text(query, source, &catalog, columns).map_err(|error| match error.code {
        ErrorCode::ViewRecursion => name.missing(),
        _ => error,
    })
}

/// Plans the SELECT, which finds its other errors. Error 1166 for an invalid column name.
async fn check_plan(
    session: &mut SessionState,
    name: &TableName,
    head: &ViewHead,
    select: &str,
) -> Result<()> {
    let made = split(select.as_bytes(), false, LexMode::default())?.pop();
    let source = made.ok_or_else(|| Error::unsupported("a view of nothing"))?;
    let statement = Statement { source: Arc::new(source), parameters: &[] };
    let described = Box::pin(execute::columns(session, &statement)).await?;
    if head.columns.is_empty() {
        described.iter().try_for_each(|column| check_column_name(&column.name))?;
    }
    tracing::debug!(view = %name, columns = described.len(), "a view is made");
    Ok(())
}

/// Runs DROP VIEW.
pub(super) async fn drop(
    session: &mut SessionState,
    lenient: bool,
    names: &[QualifiedName],
) -> Result<Outcome> {
    let names: Vec<TableName> =
        names.iter().map(|name| named(session, name)).collect::<Result<_>>()?;
    let reader = session.shared.database.reader();
    let (mut forgotten, mut missing) = (Vec::new(), Vec::new());
    for name in &names {
        name.check(&session.identity, Verb::Drop)?;
        if reader.schema(&name.engine_name(&session.shared)).is_ok() {
            return Err(not_a_view(name));
        }
        match View::find(&reader, name) {
            Ok(None) => missing.push(name.to_string()),
            Ok(Some(view)) => {
                check_local(&view)?;
                forgotten.push(View::to_forget(name));
            }
            Err(_) => forgotten.push(View::to_forget(name)),
        }
    }
    if !missing.is_empty() && !lenient {
        let message = messages::unknown_table(missing.join(","));
        return Err(Error::new(ErrorCode::UnknownTable, message));
    }
    for name in missing {
        session.note(ErrorCode::UnknownTable, messages::unknown_table(name));
    }
    if !forgotten.is_empty() {
        define(session, Vec::new(), forgotten).await?;
    }
    Ok(Outcome::default())
}

/// The view of this name for RENAME TABLE, if there is one.
pub(super) fn renamed(session: &SessionState, name: &TableName) -> Result<Option<View>> {
    let reader = session.shared.database.reader();
    let is_table = session.transaction.temporary(name).is_some()
        || reader.schema(&name.engine_name(&session.shared)).is_ok();
    if is_table { Ok(None) } else { View::find(&reader, name) }
}

/// Renames a view within its database.
pub(super) async fn rename(session: &mut SessionState, view: View, to: TableName) -> Result<()> {
    view.name.check(&session.identity, Verb::Rename)?;
    check_spelling(&to)?;
    to.check(&session.identity, Verb::CreateView)?;
    check_place(session, &to)?;
    check_local(&view)?;
    if to.database != view.name.database {
        let message = format!(
            "Changing schema from '{}' to '{}' is not allowed.",
            view.name.database, to.database
        );
        return Err(Error::new(ErrorCode::SchemaChange, message));
    }
    let reader = session.shared.database.reader();
    let engine_name = to.engine_name(&session.shared);
    if View::is_there(&reader, &to) || reader.schema(&engine_name).is_ok() {
        return Err(table_exists(&to.table));
    }
    let forgotten = View::to_forget(&view.name);
    let kept = view.renamed(to).to_keep();
    define(session, vec![Definition::Vacant(engine_name)], vec![forgotten, kept]).await
}
