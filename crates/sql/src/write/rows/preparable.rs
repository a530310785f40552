//! Checks a prepared statement that changes rows: its syntax, but for the rows of VALUES; its tables exist, and the user
//! may read and write their rows.
//!
//! Other errors are reported when it runs. Its subqueries are planned only for accounts with limited rights; for others
//! that would find nothing more.

use std::ops::Range;

use datafusion::sql::sqlparser::ast::Expr;

use super::{
    delete::is_deleted,
    evaluate::{StatementText, TreeQuery},
    literal::Parameters,
    named::{NamedTable, assigned_column, changed_tables},
    target::{table_name, table_of},
    update::check_clauses,
};
use crate::{
    Result,
    catalog::{TableName, Verb},
    parse::{Statement, Tokens, write},
    state::SessionState,
};

/// Errors 1064, 1142, 1146, and those of column names.
pub(crate) async fn check(session: &mut SessionState, statement: &Statement<'_>) -> Result<()> {
    // Their values are unknown yet.
    let parameters = Parameters { values: &[], places: Vec::new() };
    let text = StatementText { statement, parameters: &parameters };
    let mut tokens = text.verb();
    let reads = match () {
        () if tokens.accept("INSERT") => inserted(session, text, &mut tokens, Verb::Insert)?,
        () if tokens.accept("REPLACE") => inserted(session, text, &mut tokens, Verb::Replace)?,
        () if tokens.accept("UPDATE") => Some(updated(session, text)?),
        () if tokens.accept("DELETE") => Some(deleted(session, text)?),
        () => return Ok(()),
    };
    match reads {
        Some(query) if session.identity.rights.is_some() => query.check(session).await,
        _ => Ok(()),
    }
}

fn check_target(session: &SessionState, name: &TableName, verb: Verb) -> Result<()> {
    if session.transaction.temporary(name).is_none() {
        name.check(&session.identity, verb)?;
    }
    table_of(session, name, verb).map(|_| ())
}

/// INSERT and REPLACE. Returns the SELECT of their reads.
fn inserted<'s>(
    session: &SessionState,
    text: StatementText<'s>,
    tokens: &mut Tokens<'_>,
    verb: Verb,
) -> Result<Option<TreeQuery<'s>>> {
    while tokens.accept_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"]) {}
    tokens.accept("INTO");
    let name = table_name(tokens, session)?;
    check_target(session, &name, verb)?;
    query_of_rows(tokens)?.map(|range| text.query(range)).transpose()
}

/// The tokens of the query that gives the rows, if there is one.
fn query_of_rows(tokens: &mut Tokens<'_>) -> Result<Option<Range<usize>>> {
    let begins_query =
        |tokens: &Tokens<'_>| ["SELECT", "WITH", "TABLE"].iter().any(|word| tokens.is_word(word));
    let mut inner = *tokens;
    let listed = inner.take("(") && !begins_query(&inner) && !inner.is("(");
    if listed {
        tokens.parenthesised()?;
    }
    let mut first = *tokens;
    while first.take("(") {}
    if !begins_query(&first) {
        return Ok(None);
    }
    let ends = |tokens: &Tokens<'_>| {
        let mut ahead = *tokens;
        ahead.accept_all("ON DUPLICATE KEY")
    };
    tokens.skip_until(ends).map(Some)
}

/// UPDATE. Returns the SELECT of its reads.
fn updated<'s>(session: &SessionState, text: StatementText<'s>) -> Result<TreeQuery<'s>> {
    let write::Update { rows, assignments, .. } = write::update(text.statement)?;
    check_clauses(&rows)?;
    let named = changed_tables(session, &rows)?;
    if let [one] = &named[..] {
        // The right to write is checked before anything about the table is revealed.
        check_target(session, &one.name, Verb::Update)?;
    }
    let mut items = Vec::with_capacity(assignments.len());
    for write::Assigned { path, value, value_at } in assignments {
        let (table, _) = assigned_column(session, &path, &named)?;
        if let Some(one) = named.get(table) {
            check_target(session, &one.name, Verb::Update)?;
        }
        // DEFAULT and `()` are no expressions, and what is one token reads nothing that matters.
        let is_empty = matches!(&value, Expr::Tuple(parts) if parts.is_empty());
        if value_at.len() > 1 && !is_empty {
            items.push(value);
        }
    }
    Ok(TreeQuery { query: rows.select_with_one(items), source: text.source() })
}

/// DELETE. Returns the SELECT of its reads.
fn deleted<'s>(session: &SessionState, text: StatementText<'s>) -> Result<TreeQuery<'s>> {
    let write::Delete { listed, rows, .. } = write::delete(text.statement)?;
    let named = changed_tables(session, &rows)?;
    let wanted = |named: &&NamedTable| {
        listed.as_ref().is_none_or(|all| all.iter().any(|listed| is_deleted(named, listed)))
    };
    named
        .iter()
        .filter(wanted)
        .try_for_each(|one| check_target(session, &one.name, Verb::Delete))?;
    Ok(TreeQuery { query: rows.select_with_one(Vec::new()), source: text.source() })
}
