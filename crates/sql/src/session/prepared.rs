//! PREPARE, EXECUTE and DEALLOCATE: prepared statements by text.

use std::sync::Arc;

use remora_engine::Value;
use remora_mysql::{ErrorCode, TokenKind, messages};

use crate::{
    Column, Error, Outcome, Reply, Result, execute,
    parse::{Source, Statement, StatementKind, split},
    show,
    state::SessionState,
    write,
};

/// The most named statements of a session, and the most bytes of their texts.
const MAX_NAMED: usize = 16_382;
const MAX_NAMED_BYTES: usize = 64 << 20;

/// Runs PREPARE, EXECUTE, DEALLOCATE PREPARE, DROP PREPARE.
pub(super) async fn run<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let source = &statement.source;
    if source.is_word(0, "EXECUTE") {
        return execute(session, statement, reply).await;
    }
    let mut outcome = Outcome::default();
    if source.is_word(0, "PREPARE") {
        prepare(session, statement).await?;
        "Statement prepared".clone_into(&mut outcome.info);
    } else {
        deallocate(session, statement)?;
    }
    reply.done(&outcome, false)?;
    Ok(outcome)
}

async fn prepare(session: &mut SessionState, statement: &Statement<'_>) -> Result<()> {
    let source = &statement.source;
    let name = source.plain(1).ok_or_else(|| source.syntax_error(1))?.to_lowercase();
    if !source.is_word(2, "FROM") {
        return Err(source.syntax_error(2));
    }
    let token = source.tokens.get(3).ok_or_else(|| source.syntax_error(3))?;
    let text = match token.kind {
        TokenKind::Text => source.plain(3).unwrap_or_default(),
        TokenKind::UserVariable => {
            let bytes = source.bytes(token);
            let name = String::from_utf8_lossy(bytes.get(1..).unwrap_or_default()).into_owned();
            match session.user_variable(&name) {
                Value::Null => "NULL".to_owned(),
                value => value.to_string(),
            }
        }
        _ => return Err(source.syntax_error(3)),
    };
    session.named_statements.remove(&name);
    let mut sources = split(text.as_bytes(), false, session.lex_mode())?;
    let made =
        sources.pop().ok_or_else(|| Error::new(ErrorCode::EmptyQuery, messages::EMPTY_QUERY))?;
    check_preparable(&made)?;
    let made = Arc::new(made);
    described(session, &made).await?;
    if session.named_statements.len() >= MAX_NAMED {
        let message = format!("Can't create more than {MAX_NAMED} prepared statements");
        return Err(Error::new(ErrorCode::OutOfMemory, message));
    }
    let texts = session.named_statements.values().map(|kept| kept.text.len());
    if texts.sum::<usize>() + made.text.len() > MAX_NAMED_BYTES {
        let message = format!("prepared statements take more than {MAX_NAMED_BYTES} bytes");
        return Err(Error::new(ErrorCode::OutOfMemory, message));
    }
    session.named_statements.insert(name, made);
    Ok(())
}

/// The result columns of a statement, as far as they are known before it runs. Tables and columns
/// must exist, and the user must have the rights.
pub(super) async fn described(
    session: &mut SessionState,
    source: &Arc<Source>,
) -> Result<Vec<Column>> {
    let statement = Statement { source: Arc::clone(source), parameters: &[] };
    match source.kind {
        StatementKind::Select => execute::columns(session, &statement).await,
        StatementKind::Show => show::columns(session, &statement),
        StatementKind::Rows => write::check(session, &statement).await.map(|()| Vec::new()),
        _ => Ok(Vec::new()),
    }
}

/// 1295 for statements that cannot be prepared: those about prepared statements, which could run
/// themselves endlessly, and LOCK TABLES.
pub(super) fn check_preparable(source: &Source) -> Result<()> {
    let locks = source.is_word(0, "LOCK") || source.is_word(0, "UNLOCK");
    if source.kind != StatementKind::Prepared && !locks {
        return Ok(());
    }
    let message = "This command is not supported in the prepared statement protocol yet";
    Err(Error::new(ErrorCode::NotPrepared, message))
}

fn deallocate(session: &mut SessionState, statement: &Statement<'_>) -> Result<()> {
    let source = &statement.source;
    if !source.is_word(1, "PREPARE") {
        return Err(source.syntax_error(1));
    }
    let name = source.plain(2).ok_or_else(|| source.syntax_error(2))?;
    match session.named_statements.remove(&name.to_lowercase()) {
        Some(_) => Ok(()),
        None => Err(Error::unknown_statement(&name, "DEALLOCATE PREPARE")),
    }
}

async fn execute<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let source = &statement.source;
    let name = source.plain(1).ok_or_else(|| source.syntax_error(1))?;
    let parameters = parameters(session, statement)?;
    let found = session.named_statements.get(&name.to_lowercase()).cloned();
    let made = found.ok_or_else(|| Error::unknown_statement(&name, "EXECUTE"))?;
    if made.parameters != parameters.len() {
        return Err(Error::new(
            ErrorCode::WrongArguments,
            messages::incorrect_arguments("EXECUTE"),
        ));
    }
    let made = Statement { source: made, parameters: &parameters };
    Box::pin(session.run(&made, false, reply)).await?;
    Ok(Outcome::default())
}

/// The values after USING.
fn parameters(session: &SessionState, statement: &Statement<'_>) -> Result<Vec<Value>> {
    let source = &statement.source;
    if source.tokens.len() == 2 {
        return Ok(Vec::new());
    }
    if !source.is_word(2, "USING") {
        return Err(source.syntax_error(2));
    }
    let mut values = Vec::new();
    let mut at = 3;
    loop {
        let token = source.tokens.get(at).ok_or_else(|| source.syntax_error(at))?;
        if token.kind != TokenKind::UserVariable {
            return Err(source.syntax_error(at));
        }
        let name = source.bytes(token).get(1..).unwrap_or_default();
        values.push(session.user_variable(&String::from_utf8_lossy(name)));
        if source.tokens.len() == at + 1 {
            return Ok(values);
        }
        if !source.is(at + 1, ",") {
            return Err(source.syntax_error(at + 1));
        }
        at += 2;
    }
}
