//! KILL, FLUSH, LOCK TABLES, and the statements that check or tidy tables.

use remora_engine::Value;
use remora_mysql::TokenKind;

use super::{
    grid::{Grid, text},
    listing, system, tables, views,
};
use crate::{
    Access, Error, Outcome, Reply, Result,
    catalog::{TableName, Verb, database_denied, not_a_table},
    error::from_engine,
    parse::{Statement, Tokens},
    state::SessionState,
};

/// Runs FLUSH, LOCK TABLES, and CHECK, OPTIMIZE and the like.
pub(super) async fn run<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let source = &statement.source;
    let mut tokens = Tokens::new(&source.text, &source.tokens, source.mode);
    if tokens.accept("FLUSH") {
        // Nothing to do: caches here are never stale.
        return Ok(Outcome::default());
    }
    let locks = tokens.is_word("LOCK");
    if locks || tokens.is_word("UNLOCK") {
        tokens.next();
        if tokens.accept("INSTANCE") {
            return Ok(Outcome::default());
        }
        if !tokens.accept_any(&["TABLES", "TABLE"]) {
            return Err(tokens.syntax_error());
        }
        return lock(session, locks, &mut tokens).await;
    }
    for kind in ["ANALYZE", "CHECK", "OPTIMIZE", "REPAIR", "CHECKSUM"] {
        if tokens.accept(kind) {
            tokens.accept_any(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
            // Sphinx's form is `OPTIMIZE INDEX name`.
            let is_sphinxs = kind == "OPTIMIZE" && tokens.accept("INDEX");
            if !is_sphinxs && !tokens.accept_any(&["TABLE", "TABLES"]) {
                return Err(tokens.syntax_error());
            }
            return maintain(session, kind, &mut tokens, reply).await;
        }
    }
    Err(Error::unsupported(source.shown()))
}

/// LOCK and UNLOCK TABLES. Nothing is locked, since snapshots already give readers what they lock
/// tables for. The tables and the user's rights are checked, so that a client still gets the usual
/// errors.
///
/// ```text
/// lock := ("TABLES" | "TABLE") one ("," one)*
/// one  := table [["AS"] alias] ("READ" ["LOCAL"] | ["LOW_PRIORITY"] "WRITE")
/// ```
async fn lock(session: &mut SessionState, locks: bool, tokens: &mut Tokens<'_>) -> Result<Outcome> {
    if locks {
        check_locks(session, tokens)?;
    }
    // LOCK commits the open transaction, and so does UNLOCK after a LOCK.
    if locks || session.locks_tables {
        session.commit().await?;
    }
    session.locks_tables = locks;
    Ok(Outcome::default())
}

fn check_locks(session: &SessionState, tokens: &mut Tokens<'_>) -> Result<()> {
    const KINDS: [&str; 3] = ["READ", "WRITE", "LOW_PRIORITY"];
    let is_kind = |tokens: &Tokens<'_>| KINDS.iter().any(|word| tokens.is_word(word));
    loop {
        let name = listing::table_name(session, tokens)?;
        if tokens.accept("AS") || !is_kind(tokens) {
            tokens.name()?;
        }
        tokens.accept("LOW_PRIORITY");
        let writes = tokens.accept("WRITE");
        if !writes {
            tokens.expect("READ")?;
            tokens.accept("LOCAL");
        }
        check_lock(session, &name, writes)?;
        if !tokens.take(",") {
            return tokens.expect_end();
        }
    }
}

/// 1044 or 1146 if the table does not exist or the user may not lock it.
fn check_lock(session: &SessionState, name: &TableName, writes: bool) -> Result<()> {
    if name.database.is_empty() {
        session.current_database()?;
    }
    if system::is_systems(name) {
        return system::find(name).map(|_| ());
    }
    let access = if writes { Access::Write } else { Access::Read };
    let is_own = session.transaction.temporary(name).is_some();
    if !is_own && !session.identity.may(&name.database, &name.table, access) {
        return Err(database_denied(&session.identity, &name.database));
    }
    if views::find(session, name)?.is_some() {
        return Ok(());
    }
    tables::one(session, name).map(|_| ())
}

/// Ends a connection, or only its statement.
///
/// # Errors
/// 1094 if there is no such connection, 1095 if it is another user's, 1317 if it is this session's.
pub(crate) fn kill(session: &SessionState, id: u64, only_statement: bool) -> Result<Outcome> {
    let host = &session.shared.host;
    let unknown = || Error::unknown_thread(id);
    if session.identity.rights.is_some() {
        let processes = host.processes();
        let target = processes.iter().find(|process| process.id == id).ok_or_else(unknown)?;
        if target.user != session.identity.user {
            return Err(Error::not_owner(id));
        }
    }
    host.kill(id, only_statement)?;
    if id == session.id {
        return Err(crate::Error::interrupted());
    }
    Ok(Outcome::default())
}

async fn maintain<R: Reply>(
    session: &mut SessionState,
    kind: &str,
    tokens: &mut Tokens<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let mut names = vec![listing::table_name(session, tokens)?];
    while tokens.take(",") {
        names.push(listing::table_name(session, tokens)?);
    }
    // Options such as QUICK or FOR UPGRADE change nothing here.
    while tokens.peek().is_some_and(|next| next.kind == TokenKind::Word) {
        tokens.next();
    }
    if kind != "CHECKSUM" {
        session.commit().await?;
    }
    let mut grid = match kind {
        "CHECKSUM" => Grid::new(&["Table varchar(128) NOT NULL", "Checksum bigint unsigned"]),
        _ => Grid::new(&[
            "Table varchar(128) NOT NULL",
            "Op varchar(10) NOT NULL",
            "Msg_type varchar(10) NOT NULL",
            "Msg_text longtext NOT NULL",
        ]),
    };
    for name in names {
        let full = text(format!("{}.{}", name.database, name.table));
        if kind == "CHECKSUM" {
            tables::one(session, &name)?;
            grid.push(vec![full, Value::Null]);
            continue;
        }
        let operation = text(kind.to_lowercase());
        for (level, message) in table_report(session, kind, &name).await {
            grid.push(vec![full.clone(), operation.clone(), text(level), text(message)]);
        }
    }
    grid.send(reply)?;
    Ok(Outcome::default())
}

/// The result row of one table for CHECK, ANALYZE and the like.
async fn table_report(
    session: &SessionState,
    kind: &str,
    name: &TableName,
) -> Vec<(&'static str, String)> {
    let failed =
        |error: Error| vec![("Error", error.message), ("status", "Operation failed".to_owned())];
    if let Ok(Some(_)) = views::find(session, name) {
        return match kind {
            "CHECK" => vec![("status", "OK".to_owned())],
            _ => failed(not_a_table(name)),
        };
    }
    let known = match tables::one(session, name) {
        Ok(known) => known,
        Err(error) => return failed(error),
    };
    if kind == "REPAIR" {
        let message = "The storage engine for the table doesn't support repair";
        return vec![("note", message.to_owned())];
    }
    if kind == "OPTIMIZE" && known.temporary.is_none() {
        let parts = known.table.schema.parts().iter();
        let mut parts = parts.map(|part| TableName::of_engine(part, &session.shared));
        let denied = name
            .check(&session.identity, Verb::Insert)
            .and_then(|()| parts.try_for_each(|part| part.check(&session.identity, Verb::Insert)))
            .err();
        let database = session.shared.database.clone();
        let optimize = move || database.optimize(Some(&known.engine_name));
        let result = match denied {
            Some(error) => Err(error),
            None => match tokio::task::spawn_blocking(optimize).await {
                Ok(result) => result.map_err(|error| from_engine(&error)),
                Err(_) => Err(crate::Error::interrupted()),
            },
        };
        if let Err(error) = result {
            return failed(error);
        }
    }
    vec![("status", "OK".to_owned())]
}
