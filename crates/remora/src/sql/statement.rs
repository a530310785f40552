//! Runs a statement, from its text to its rows.

use std::sync::Arc;

use remora_engine::Value;
use remora_sql::Session;

use super::{
    reply::Taken,
    rows::{Answer, Outcome, Rows},
};
use crate::{
    Error, Result,
    handle::Handle,
    runtime,
    sessions::{PreparedStatement, lend, prepare},
};

/// Runs a statement in a separate session and returns its effect.
pub(crate) fn execute_once(handle: &Handle, text: &str, parameters: &[Value]) -> Result<Outcome> {
    Ok(run_once(handle, text, parameters)?.outcome)
}

/// Runs a statement in a separate session and returns its rows.
pub(crate) fn query_once(handle: &Handle, text: &str, parameters: &[Value]) -> Result<Rows> {
    rows_of(run_once(handle, text, parameters)?)
}

fn run_once(handle: &Handle, text: &str, parameters: &[Value]) -> Result<Answer> {
    in_session(handle, |session| match parameters {
        [] => run_text(session, text),
        parameters => {
            let prepared = handle.sessions.prepare(session, text)?;
            run_prepared(session, &prepared, parameters)
        }
    })
}

/// Runs a prepared statement in a separate session.
pub(super) fn run_prepared_once(
    handle: &Handle,
    prepared: &Arc<PreparedStatement>,
    parameters: &[Value],
) -> Result<Answer> {
    in_session(handle, |session| run_prepared(session, prepared, parameters))
}

/// Lends a session, which is reset afterwards.
fn in_session(
    handle: &Handle,
    run: impl FnOnce(&mut Option<Session>) -> Result<Answer>,
) -> Result<Answer> {
    let mut session = Some(handle.sessions.begin());
    let answer = run(&mut session);
    let Some(session) = session else { return answer };
    let in_transaction = session.status().in_transaction;
    handle.sessions.end(session);
    if in_transaction && answer.is_ok() {
        return Err(Error::request(
            "a transaction begins and ends in one connection: use transaction(|tx| …) or connection()",
        ));
    }
    answer
}

/// Runs a statement in this session and returns its rows. One that has none is refused before it runs.
pub(crate) fn read_in(
    session: &mut Option<Session>,
    text: &str,
    parameters: &[Value],
) -> Result<Rows> {
    let prepared = prepare(session, text)?;
    if prepared.statement.columns.is_empty() {
        return Err(Error::request("the statement has no rows, and is not run: it must read"));
    }
    rows_of(run_prepared(session, &prepared, parameters)?)
}

/// Runs a statement without parameters.
pub(crate) fn run_text(session: &mut Option<Session>, text: &str) -> Result<Answer> {
    let (is_deep, text) = (runtime::may_be_deep(text), text.to_owned());
    lend(session, is_deep, async move |mut session| {
        let mut taken = Taken::default();
        let ran = session.query(text.as_bytes(), false, &mut taken).await;
        (session, ran.map(|()| taken.answer()))
    })
}

/// Runs a prepared statement.
pub(super) fn run_prepared(
    session: &mut Option<Session>,
    prepared: &Arc<PreparedStatement>,
    parameters: &[Value],
) -> Result<Answer> {
    check(prepared.statement.parameters, parameters)?;
    let (prepared, parameters) = (Arc::clone(prepared), parameters.to_vec());
    lend(session, prepared.is_deep, async move |mut session| {
        let mut taken = Taken::default();
        let ran = session.execute(&prepared.statement, &parameters, &mut taken).await;
        (session, ran.map(|()| taken.answer()))
    })
}

/// Checks the number of parameters, and that numbers are finite.
pub(super) fn check(expected: usize, parameters: &[Value]) -> Result<()> {
    let given = parameters.len();
    if expected != given {
        let message = format!("the statement has {expected} ?, but {given} values are given");
        return Err(Error::request(message));
    }
    let is_finite = |value: &Value| !matches!(value, Value::Float(number) if !number.is_finite());
    match parameters.iter().position(|value| !is_finite(value)) {
        Some(place) => {
            let message = format!("value {} is no finite number, which no column holds", place + 1);
            Err(Error::request(message))
        }
        None => Ok(()),
    }
}

/// The rows of a result; an error if the statement returns none.
pub(super) fn rows_of(answer: Answer) -> Result<Rows> {
    answer.rows.ok_or_else(|| {
        Error::request("the statement was run and has no rows: use execute() for such statements")
    })
}
