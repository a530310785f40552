//! SELECT … FOR UPDATE and FOR SHARE: the rows read are protected until the commit, which fails (1213) if another
//! session changed one of them.

use super::{
    evaluate::StatementText,
    named::{keys_text, named_tables, one_table},
    target::{TargetTable, check_lockable, table_of},
    update::key_of,
};
use crate::{Result, catalog::Verb, parse::Tokens, state::SessionState, transaction::TableStorage};

/// Words that end a FROM clause.
const CLAUSES: [&str; 7] = ["WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "INTO"];

/// Whether a SELECT has a locking clause.
pub(super) fn locks(tokens: &Tokens<'_>) -> bool {
    let mut ahead = *tokens;
    let found = ahead.skip_until(begins_lock);
    found.is_ok() && begins_lock(&ahead)
}

/// Protects the rows of the tables in FROM that satisfy WHERE.
pub(super) async fn protect(session: &mut SessionState, text: StatementText<'_>) -> Result<()> {
    let (mut tokens, parameters) = (text.tokens(), text.parameters);
    tokens.skip_until(|tokens| tokens.is_word("FROM") || begins_lock(tokens))?;
    if !tokens.accept("FROM") {
        return Ok(());
    }
    let ends = |tokens: &Tokens<'_>| {
        CLAUSES.iter().any(|word| tokens.is_word(word)) || begins_lock(tokens)
    };
    let tables = tokens.skip_until(ends)?;
    let mut only = tokens.within(tables.clone());
    let named = match one_table(session, &mut only).filter(|_| only.at_end()) {
        Some(one) => vec![one],
        None => named_tables(session, &text.tables(tables.clone())?)?,
    };
    let start = tokens.place();
    let grouped = |tokens: &Tokens<'_>| {
        ["GROUP", "HAVING", "WINDOW", "INTO"].iter().any(|word| tokens.is_word(word))
    };
    // With GROUP BY all rows that satisfy WHERE are protected.
    let rest = tokens.skip_until(|tokens| grouped(tokens) || begins_lock(tokens))?;
    let rest = start..rest.end;
    for one in &named {
        check_lockable(session, &one.name)?;
        let Ok(table) = table_of(session, &one.name, Verb::Select) else { continue };
        let place = TableStorage::Engine(one.name.engine_name(&session.shared).into());
        let is_temporary = session.transaction.temporary(&one.name).is_some();
        let target = TargetTable::at(one.name.clone(), place, table);
        let Some(engine_name) = target.engine_name().filter(|_| !is_temporary) else { continue };
        let mut query = keys_text([(one, &target)]);
        query.push(" FROM ");
        query.push_tokens(&tokens, tables.clone(), parameters);
        query.push_tokens(&tokens, rest.clone(), parameters);
        if let ([_], Some(keys)) = (&named[..], query.keys(session, &target)?) {
            for key in keys {
                session.transaction.protect(engine_name, &key.0)?;
            }
            continue;
        }
        let length = target.table.schema.primary_key.len();
        for row in query.rows(session).await? {
            if let Some(key) = key_of(&row, 0, length) {
                session.transaction.protect(engine_name, &key.0)?;
            }
        }
    }
    Ok(())
}

/// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`.
fn begins_lock(tokens: &Tokens<'_>) -> bool {
    let mut ahead = *tokens;
    ahead.accept_all("FOR UPDATE")
        || ahead.accept_all("FOR SHARE")
        || ahead.accept_all("LOCK IN SHARE MODE")
}
