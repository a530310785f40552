//! DELETE from one table or from several: a SELECT finds the keys, then the rows are deleted one by one.
//!
//! ```text
//! delete := "DELETE" word* ["IGNORE"] ("FROM" table [["AS"] alias] rest
//!           | table,* "FROM" tables rest | "FROM" table,* "USING" tables rest)
//! rest   := ["WHERE" …] ["ORDER" "BY" …] ["LIMIT" …]
//! ```

use std::ops::Range;

use remora_mysql::{ErrorCode, messages};

use super::{
    evaluate::Query,
    explained::Explained,
    literal::Parameters,
    target::{TargetTable, table_name},
    update::{Named, changed, is_rest, key_items, key_of, key_query, named_tables, rest},
};
use crate::{
    Error, Outcome, Result, catalog::Verb, parse::Tokens, state::SessionState, transaction::Key,
};

/// Runs DELETE.
pub(super) async fn delete(
    session: &mut SessionState,
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
) -> Result<Outcome> {
    let (named, targets, from) = read_delete(session, tokens, parameters)?;
    if let ([named], [Some(target)]) = (&named[..], &targets[..]) {
        let mut query = key_query(named, target);
        query.push_query(&from);
        if let Some(keys) = query.keys(session, target)? {
            return delete_keys(session, target, &keys);
        }
    }
    let found = deleted_query(&named, &targets, &from).rows(session).await?;
    let mut deleted = 0;
    let mut at = 0;
    for target in targets.iter().flatten() {
        let length = target.table.schema.primary_key.len();
        for row in &found {
            let Some(key) = key_of(row, at, length) else { continue };
            session.check_progress()?;
            if let Some(old) = target.row(session, &key)? {
                target.delete(session, &old);
                deleted += 1;
            }
        }
        at += length;
    }
    Ok(Outcome { affected_rows: deleted, ..Outcome::default() })
}

/// The SELECT with which DELETE finds its rows.
pub(super) fn explained_delete(
    session: &mut SessionState,
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
) -> Result<Explained> {
    let (named, targets, from) = read_delete(session, tokens, parameters)?;
    let query = Some(deleted_query(&named, &targets, &from));
    Ok(Explained { verb: "DELETE", targets: changed(&named, &targets), query })
}

/// The tables of a DELETE, those of them whose rows are deleted, and the tokens after FROM.
fn read_delete(
    session: &mut SessionState,
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
) -> Result<(Vec<Named>, Vec<Option<TargetTable>>, Query)> {
    tokens.expect("DELETE")?;
    while tokens.accept_any(&["LOW_PRIORITY", "QUICK"]) {}
    session.refuses_warnings &= !tokens.accept("IGNORE");
    let (listed, tables) = deleted_tables(session, tokens)?;
    let named = named_tables(session, tokens, tables.clone())?;
    let rest = rest(tokens)?;
    let targets = deleted_targets(session, &named, listed.as_deref())?;
    let mut from = Query::default();
    from.push_tokens(tokens, tables, parameters);
    from.push_tokens(tokens, rest, parameters);
    Ok((named, targets, from))
}

/// The SELECT of the keys to delete.
fn deleted_query(named: &[Named], targets: &[Option<TargetTable>], from: &Query) -> Query {
    let mut query = Query::new("SELECT ");
    let items = named.iter().zip(targets).flat_map(|(named, target)| {
        target.iter().flat_map(|target| key_items(named, target)).collect::<Vec<_>>()
    });
    for (index, item) in items.enumerate() {
        query.push(if index > 0 { "," } else { "" });
        query.push_query(&item);
    }
    query.push(" FROM ");
    query.push_query(from);
    query
}

/// Deletes the rows with these keys.
fn delete_keys(session: &mut SessionState, target: &TargetTable, keys: &[Key]) -> Result<Outcome> {
    let mut deleted = 0;
    for key in keys {
        session.check_progress()?;
        if let Some(old) = target.row(session, key)? {
            target.delete(session, &old);
            deleted += 1;
        }
    }
    Ok(Outcome { affected_rows: deleted, ..Outcome::default() })
}

/// A listed table: database and name.
pub(super) type Listed = (Option<String>, String);

/// The tables to delete from, if they are listed separately, and the tokens of the tables that are read.
pub(super) fn deleted_tables(
    session: &SessionState,
    tokens: &mut Tokens<'_>,
) -> Result<(Option<Vec<Listed>>, Range<usize>)> {
    let first_from = tokens.accept("FROM");
    let mut ahead = *tokens;
    table_name(&mut ahead, session)?;
    if ahead.take(".") {
        ahead.need("*")?;
    }
    if first_from && !ahead.is(",") && !ahead.is_word("USING") {
        return Ok((None, tokens.skip_until(is_rest)?));
    }
    let mut listed = Vec::new();
    loop {
        listed.push(listed_table(tokens)?);
        if !tokens.take(",") {
            break;
        }
    }
    if !tokens.accept("USING") {
        tokens.expect("FROM")?;
    }
    Ok((Some(listed), tokens.skip_until(is_rest)?))
}

/// Whether a listed table is this one.
pub(super) fn is_deleted(named: &Named, (database, table): &Listed) -> bool {
    let same = *table == named.alias || *table == named.name.table;
    same && database.as_ref().is_none_or(|database| *database == named.name.database)
}

/// The targets among the tables that are read: those listed, or all.
fn deleted_targets(
    session: &SessionState,
    named: &[Named],
    listed: Option<&[Listed]>,
) -> Result<Vec<Option<TargetTable>>> {
    let missing = listed.into_iter().flatten();
    let mut missing = missing.filter(|listed| !named.iter().any(|named| is_deleted(named, listed)));
    if let Some((_, missing)) = missing.next() {
        let message = messages::unknown_table_in(missing, "MULTI DELETE");
        return Err(Error::new(ErrorCode::UnknownTableInDelete, message));
    }
    let wanted = |named: &Named| {
        listed.is_none_or(|listed| listed.iter().any(|listed| is_deleted(named, listed)))
    };
    let target = |named: &Named| TargetTable::find(session, &named.name, Verb::Delete);
    named.iter().map(|named| wanted(named).then(|| target(named)).transpose()).collect()
}

/// `[db.]table[.*]`.
fn listed_table(tokens: &mut Tokens<'_>) -> Result<Listed> {
    let first = tokens.name()?;
    if !tokens.take(".") || tokens.take("*") {
        return Ok((None, first));
    }
    let table = tokens.name()?;
    if tokens.take(".") {
        tokens.need("*")?;
    }
    Ok((Some(first), table))
}
