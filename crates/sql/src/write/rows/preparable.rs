//! Checks a prepared statement that changes rows: its tables exist, and the user may read and write their rows.
//!
//! Other errors are reported when it runs. Its subqueries are planned only for accounts with limited rights; for others
//! that would find nothing more.

use std::ops::Range;

use super::{
    delete::{deleted_tables, is_deleted},
    evaluate::Query,
    literal::Parameters,
    target::{table_name, table_of},
    update::{Named, assigned_column, is_rest, named_tables},
};
use crate::{
    Result,
    catalog::{TableName, Verb},
    parse::{Statement, Tokens},
    state::SessionState,
};

/// Errors 1142, 1146, and those of column names.
pub(crate) async fn check(session: &mut SessionState, statement: &Statement<'_>) -> Result<()> {
    let source = &statement.source;
    let mut tokens = Tokens::new(&source.text, &source.tokens, source.mode);
    let reads = match () {
        () if tokens.accept("INSERT") => inserted(session, &mut tokens, Verb::Insert)?,
        () if tokens.accept("REPLACE") => inserted(session, &mut tokens, Verb::Replace)?,
        () if tokens.accept("UPDATE") => updated(session, &mut tokens)?,
        () if tokens.accept("DELETE") => deleted(session, &mut tokens)?,
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
fn inserted(session: &SessionState, tokens: &mut Tokens<'_>, verb: Verb) -> Result<Option<Query>> {
    while tokens.accept_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"]) {}
    tokens.accept("INTO");
    let name = table_name(tokens, session)?;
    check_target(session, &name, verb)?;
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
    let range = tokens.skip_until(|tokens| {
        let mut ahead = *tokens;
        ahead.accept_all("ON DUPLICATE KEY")
    })?;
    let mut query = Query::new("");
    query.push_tokens(tokens, range, &nothing());
    Ok(Some(query))
}

/// UPDATE. Returns the SELECT of its reads.
fn updated(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Option<Query>> {
    while tokens.accept_any(&["LOW_PRIORITY", "IGNORE"]) {}
    let tables = tokens.skip_until(|tokens| tokens.is_word("SET"))?;
    let named = named_tables(session, tokens, tables.clone())?;
    tokens.expect("SET")?;
    if let [one] = &named[..] {
        // The right to write is checked before anything about the table is revealed.
        check_target(session, &one.name, Verb::Update)?;
    }
    let mut query = Query::new("SELECT 1");
    loop {
        let mut path = vec![tokens.name()?];
        while tokens.take(".") {
            path.push(tokens.name()?);
        }
        let (table, _) = assigned_column(session, &path, &named)?;
        if let Some(one) = named.get(table) {
            check_target(session, &one.name, Verb::Update)?;
        }
        if !tokens.take("=") {
            tokens.need(":=")?;
        }
        let value = tokens.skip_until(|tokens| tokens.is(",") || is_rest(tokens))?;
        if value.len() > 1 {
            query.push(",");
            query.push_tokens(tokens, value, &nothing());
        }
        if !tokens.take(",") {
            break;
        }
    }
    push_rows(&mut query, tokens, tables)?;
    Ok(Some(query))
}

/// DELETE. Returns the SELECT of its reads.
fn deleted(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<Option<Query>> {
    while tokens.accept_any(&["LOW_PRIORITY", "QUICK", "IGNORE"]) {}
    let (listed, tables) = deleted_tables(session, tokens)?;
    let named = named_tables(session, tokens, tables.clone())?;
    let wanted = |named: &&Named| {
        listed.as_ref().is_none_or(|all| all.iter().any(|listed| is_deleted(named, listed)))
    };
    named
        .iter()
        .filter(wanted)
        .try_for_each(|one| check_target(session, &one.name, Verb::Delete))?;
    let mut query = Query::new("SELECT 1");
    push_rows(&mut query, tokens, tables)?;
    Ok(Some(query))
}

/// Appends the tables and the conditions.
fn push_rows(query: &mut Query, tokens: &mut Tokens<'_>, tables: Range<usize>) -> Result<()> {
    query.push(" FROM ");
    query.push_tokens(tokens, tables, &nothing());
    let rest = tokens.skip_until(|_| false)?;
    query.push_tokens(tokens, rest, &nothing());
    Ok(())
}

/// No parameters: their values are unknown yet.
fn nothing() -> Parameters<'static> {
    Parameters { values: &[], places: Vec::new() }
}
