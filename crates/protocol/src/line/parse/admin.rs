//! Parses commands that do not read rows.

use std::time::Duration;

use super::words::{Word, Words};
use crate::line::{
    Auth, Cache, Command, Config, Dump, LineError, Replication, Sync, Wait,
    token::{Token, Tokens},
};

/// The default timeout of WAIT.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);
/// The longest timeout of WAIT, in seconds.
const MAX_WAIT_S: f64 = 3600.0;

/// Parses the arguments of all commands except SEARCH, COUNT, GET and FACET.
pub(super) fn parse(command: &Token, tokens: &mut Tokens) -> Result<Command, LineError> {
    match () {
        () if command.is("INFO") => Ok(Command::Info),
        () if command.is("DUMP") => parse_dump(tokens).map(Command::Dump),
        () if command.is("REPLICATION") => parse_replication(tokens).map(Command::Replication),
        () if command.is("SYNC") => parse_sync(tokens).map(Command::Sync),
        () if command.is("OPTIMIZE") => Ok(Command::Optimize(optional(tokens))),
        () if command.is("DEBUG") => parse_debug(tokens),
        () if command.is("CACHE") => parse_cache(tokens).map(Command::Cache),
        () if command.is("CONFIG") => parse_config(tokens).map(Command::Config),
        () if command.is("SET") => parse_set(tokens),
        () if command.is("SHOW") => parse_show(tokens),
        () if command.is_any(&["SAVE", "LOAD"]) => {
            let name = command.text.to_ascii_uppercase();
            Err(LineError::syntax(format!("{name} is no longer supported; use DUMP {name}")))
        }
        () => Err(LineError::syntax(format!("Unknown command: {}", command.text))),
    }
}

/// `AUTH token`, and Remora's `AUTH user password`.
pub(super) fn parse_auth(tokens: &mut Tokens, strict: bool) -> Result<Command, LineError> {
    let first = required(tokens, "AUTH requires a token")?;
    let second = if strict { None } else { optional(tokens) };
    Ok(Command::Auth(match second {
        Some(password) => Auth { user: Some(first), secret: password },
        None => Auth { user: None, secret: first },
    }))
}

fn parse_dump(tokens: &mut Tokens) -> Result<Dump, LineError> {
    let verb = subcommand(tokens, "DUMP", "SAVE, LOAD, VERIFY, INFO or STATUS")?;
    let mut file = |verb| required(tokens, &format!("DUMP {verb} requires a filepath"));
    match () {
        () if verb.is("SAVE") => Ok(Dump::Save(optional(tokens))),
        () if verb.is("LOAD") => file("LOAD").map(Dump::Load),
        () if verb.is("VERIFY") => file("VERIFY").map(Dump::Verify),
        () if verb.is("INFO") => file("INFO").map(Dump::Info),
        () if verb.is("STATUS") => Ok(Dump::Status),
        () => Err(unknown("DUMP", &verb)),
    }
}

fn parse_replication(tokens: &mut Tokens) -> Result<Replication, LineError> {
    let verb = subcommand(tokens, "REPLICATION", "STATUS, STOP or START")?;
    match () {
        () if verb.is("STATUS") => Ok(Replication::Status),
        () if verb.is("STOP") => Ok(Replication::Stop),
        () if verb.is("START") => Ok(Replication::Start),
        () => Err(unknown("REPLICATION", &verb)),
    }
}

fn parse_sync(tokens: &mut Tokens) -> Result<Sync, LineError> {
    let first = subcommand(tokens, "SYNC", "a table name, STATUS or STOP")?;
    match () {
        () if first.is("STATUS") => Ok(Sync::Status),
        () if first.is("STOP") => Ok(Sync::Stop(optional(tokens))),
        () => Ok(Sync::Start(first.text.to_string())),
    }
}

/// `<gtid-set> [<seconds>]`
pub(super) fn parse_wait(tokens: &mut Tokens) -> Result<Command, LineError> {
    let gtids = required(tokens, "WAIT requires a GTID set")?;
    let timeout = match optional(tokens) {
        None => DEFAULT_WAIT,
        Some(text) => {
            let seconds = text.parse().ok().filter(|seconds| (0.0..=MAX_WAIT_S).contains(seconds));
            let wrong =
                || LineError::syntax(format!("WAIT takes 0 to {MAX_WAIT_S} seconds, got: {text}"));
            Duration::from_secs_f64(seconds.ok_or_else(wrong)?)
        }
    };
    Ok(Command::Wait(Wait { gtids, timeout }))
}

pub(super) fn parse_position(tokens: &mut Tokens) -> Result<Command, LineError> {
    match tokens.next() {
        Some(mode) if mode.is("ON") => Ok(Command::Position(true)),
        Some(mode) if mode.is("OFF") => Ok(Command::Position(false)),
        _ => Err(LineError::syntax("POSITION requires ON or OFF")),
    }
}

fn parse_debug(tokens: &mut Tokens) -> Result<Command, LineError> {
    match tokens.next() {
        Some(mode) if mode.is("ON") => Ok(Command::Debug(true)),
        Some(mode) if mode.is("OFF") => Ok(Command::Debug(false)),
        _ => Err(LineError::syntax("DEBUG requires ON or OFF")),
    }
}

fn parse_cache(tokens: &mut Tokens) -> Result<Cache, LineError> {
    let verb = subcommand(tokens, "CACHE", "CLEAR, STATS, ENABLE or DISABLE")?;
    match () {
        () if verb.is("CLEAR") => Ok(Cache::Clear(optional(tokens))),
        () if verb.is("STATS") => Ok(Cache::Stats),
        () if verb.is("ENABLE") => Ok(Cache::Enable),
        () if verb.is("DISABLE") => Ok(Cache::Disable),
        () => Err(unknown("CACHE", &verb)),
    }
}

fn parse_config(tokens: &mut Tokens) -> Result<Config, LineError> {
    let Some(verb) = tokens.next().cloned() else { return Ok(Config::Show(None)) };
    match () {
        () if verb.is("SHOW") => Ok(Config::Show(optional(tokens))),
        () if verb.is("HELP") => Ok(Config::Help(optional(tokens))),
        () if verb.is("VERIFY") => {
            required(tokens, "CONFIG VERIFY requires a filepath").map(Config::Verify)
        }
        () => Err(unknown("CONFIG", &verb)),
    }
}

/// `name = value[, …]`
fn parse_set(tokens: &mut Tokens) -> Result<Command, LineError> {
    let usage = || LineError::syntax("SET requires: name = value[, name = value]");
    let words = &mut Words::new(tokens);
    let mut pairs = Vec::new();
    loop {
        let Some(Word::Text { text: name, .. }) = words.next() else { return Err(usage()) };
        let Some(Word::Operator(remora_engine::Comparison::Equal)) = words.next() else {
            return Err(usage());
        };
        let Some(Word::Text { text: value, .. }) = words.next() else { return Err(usage()) };
        pairs.push((name, value));
        match words.next() {
            None => return Ok(Command::Set(pairs)),
            Some(Word::Comma) => (),
            Some(_) => return Err(usage()),
        }
    }
}

fn parse_show(tokens: &mut Tokens) -> Result<Command, LineError> {
    if !tokens.eat("VARIABLES") {
        return Err(LineError::syntax("SHOW supports: SHOW VARIABLES [LIKE 'pattern']"));
    }
    if !tokens.eat("LIKE") {
        return Ok(Command::ShowVariables(None));
    }
    let pattern = required(tokens, "SHOW VARIABLES LIKE requires a pattern")?;
    Ok(Command::ShowVariables(Some(pattern)))
}

fn subcommand<'a>(
    tokens: &mut Tokens<'a>,
    command: &str,
    expected: &str,
) -> Result<Token<'a>, LineError> {
    let missing = || LineError::syntax(format!("{command} requires {expected}"));
    tokens.next().cloned().ok_or_else(missing)
}

fn unknown(command: &str, subcommand: &Token) -> LineError {
    LineError::syntax(format!("Unknown {command} subcommand: {}", subcommand.text))
}

fn required(tokens: &mut Tokens, missing: &str) -> Result<String, LineError> {
    optional(tokens).ok_or_else(|| LineError::syntax(missing))
}

fn optional(tokens: &mut Tokens) -> Option<String> {
    tokens.next().map(|token| token.text.to_string())
}
