//! `SELECT … INTO @a, @b`: one row becomes variables.

use datafusion::sql::sqlparser::ast;
use remora_mysql::{ErrorCode, TokenKind};

use crate::{Error, Outcome, Result, parse::Source, state::SessionState};

/// The statement without its INTO clause, and the clause's variables; `None` if it has no such clause.
pub(super) fn taken(source: &Source) -> Result<Option<(Source, Vec<String>)>> {
    let mut depth = 0_usize;
    let mut found = None;
    for at in 0..source.tokens.len() {
        if source.is(at, "(") {
            depth += 1;
        } else if source.is(at, ")") {
            depth = depth.saturating_sub(1);
        } else if depth == 0 && source.is_word(at, "INTO") && at > 1 {
            found = Some(at);
            break;
        }
    }
    let Some(into) = found else { return Ok(None) };
    if source.is_word(into + 1, "OUTFILE") || source.is_word(into + 1, "DUMPFILE") {
        return Err(Error::unsupported("INTO OUTFILE"));
    }
    let mut names = Vec::new();
    let mut at = into + 1;
    loop {
        let token = source.tokens.get(at).ok_or_else(|| source.syntax_error(at))?;
        if token.kind != TokenKind::UserVariable {
            return Err(source.syntax_error(at));
        }
        let name = String::from_utf8_lossy(source.bytes(token)).into_owned();
        names.push(name.trim_start_matches('@').trim_matches(['`', '\'', '"']).to_owned());
        at += 1;
        if !source.is(at, ",") {
            break;
        }
        at += 1;
    }
    let mut tokens = source.tokens.clone();
    tokens.drain(into..at);
    Ok(Some((Source::new(source.text.clone(), tokens, source.mode), names)))
}

/// Runs the query and sets the variables. If it has several rows, the variables get the first row and the result is
/// error 1172.
pub(super) async fn run(
    session: &mut SessionState,
    query: ast::Query,
    source: &Source,
    names: &[String],
) -> Result<Outcome> {
    let rows = super::collect(session, query, source).await?;
    if rows.columns.len() != names.len() {
        let message = "The used SELECT statements have a different number of columns";
        return Err(Error::new(ErrorCode::UnionColumns, message));
    }
    let count = rows.count();
    if count == 0 {
        let message = "No data - zero rows fetched, selected, or processed";
        session.warn(ErrorCode::NoData, message);
        return Ok(Outcome::default());
    }
    for (index, name) in names.iter().enumerate() {
        session.user_variables.set(name, rows.value(0, index))?;
    }
    if count > 1 {
        let message = "Result consisted of more than one row";
        return Err(Error::new(ErrorCode::TooManyRows, message));
    }
    Ok(Outcome { affected_rows: 1, ..Outcome::default() })
}
