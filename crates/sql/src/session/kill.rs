//! KILL, whose number may be any expression: `KILL QUERY CONNECTION_ID()`.

use remora_engine::Value;

use crate::{
    Outcome, Result, execute,
    parse::{Statement, Tokens, write::expressions},
    show,
    state::SessionState,
};

/// `KILL [CONNECTION | QUERY] expression`.
pub(super) async fn run(session: &SessionState, statement: &Statement<'_>) -> Result<Outcome> {
    let source = &statement.source;
    let mut tokens = Tokens::new(&source.text, &source.tokens, source.mode);
    tokens.expect("KILL")?;
    let only_statement = tokens.accept("QUERY");
    if !only_statement {
        tokens.accept("CONNECTION");
    }
    if tokens.at_end() {
        return Err(tokens.syntax_error());
    }
    let mut ahead = tokens;
    let id = match ahead.number() {
        Ok(id) if ahead.at_end() => id,
        _ => evaluated(session, statement, &mut tokens).await?,
    };
    show::kill(session, id, only_statement)
}

/// The value of the expression as a number; 0 if it is none.
async fn evaluated(
    session: &SessionState,
    statement: &Statement<'_>,
    tokens: &mut Tokens<'_>,
) -> Result<u64> {
    let parts = [(tokens.take_rest(), statement.parameters)];
    let Some(expr) = expressions(&statement.source, &parts)?.pop() else { return Ok(0) };
    let value = execute::value(session, expr, &statement.source).await?;
    Ok(match value {
        Value::Uint(id) => id,
        Value::Int(id) => u64::try_from(id).unwrap_or(0),
        // The conversion saturates, and no connection has such a number.
        value => value.to_string().trim().parse::<f64>().map_or(0, |id| id.round() as u64),
    })
}
