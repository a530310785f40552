//! CALL REMORA_PART: serves a part of another server's table that lies here
//! ([`crate::agents::wire`]).
//!
//! The other server may read what its account may read. The snapshot it opens belongs to the
//! connection until it opens another, closes it, or disconnects.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_engine::{
    Filter, KeywordQuery, MAX_PATTERNS, Reader, ScanRequest, Schema, Selection, TextQuery,
    united_name,
};
use remora_mysql::ErrorCode;
use serde::Serialize;

use crate::{
    Cell, Error, Reply, Result,
    agents::{
        AgentOptions, ServedPart,
        wire::{
            MAX_DEPTH, MAX_NAME_BYTES, Request, VERSION, WireQuery, WireTextCondition, bytes_of,
        },
    },
    catalog::{TableName, Verb},
    error::from_engine,
    meaning::types::ExprType,
    parse::Tokens,
    search,
    state::SessionState,
};

/// The longest answer, in bytes.
const MAX_ANSWER_BYTES: u32 = 1 << 30;
/// The longest request, in bytes: one that hides the most keys.
const MAX_REQUEST_BYTES: usize = 40 << 20;
/// The most columns of a scan.
const MAX_COLUMNS: usize = 8_192;
/// The most scores of a scan.
const MAX_SCORES: usize = 64;
/// The most keywords, or sets of them, whose statistics may be requested.
const MAX_WANTED: usize = 65_536;
/// The most keys hidden by one request.
const MAX_HIDDEN: usize = 1 << 18;
/// The most fields with weights.
const MAX_FIELD_WEIGHTS: usize = 4_096;
/// The most tables read as one.
const MAX_TABLES: usize = 64;

/// Answers a request, given as the next token. Slow work runs in a separate thread, so that a
/// disconnect is noticed and ends it.
pub(super) async fn run<R: Reply>(
    session: &mut SessionState,
    tokens: &mut Tokens<'_>,
    reply: &mut R,
) -> Result<()> {
    let text = tokens.text()?;
    tokens.need(")")?;
    tokens.expect_end()?;
    check_served(session)?;
    if text.len() > MAX_REQUEST_BYTES {
        return Err(refused(&format!("a request has {MAX_REQUEST_BYTES} bytes at most")));
    }
    let request: Request = serde_json::from_slice(&text).map_err(|error| {
        let message = format!("what another server asks is not understood: {error}");
        Error::new(ErrorCode::ParseError, message)
    })?;
    let answer = answer(session, request).await?;
    reply.columns(&[ExprType::binary(MAX_ANSWER_BYTES).not_null().column_named("answer")])?;
    reply.row(&[Cell::Bytes(&answer)])
}

async fn answer(session: &mut SessionState, request: Request) -> Result<Vec<u8>> {
    let run = session.shared.agents.run.clone();
    match request {
        Request::Open { version, tables, trail, is_partial } => {
            session.part = None;
            check_open(version, &trail)?;
            let (name, part) = begin(session, &tables, trail, is_partial)?;
            let (part, answer) = aside(move || {
                check_there(&part.reader, &part.table, &name)?;
                let opened = part.opened(true, &run).map_err(|error| from_engine(&error))?;
                Ok((part, json(&opened)?))
            })
            .await?;
            session.part = Some(Box::new(part));
            Ok(answer)
        }
        Request::Close => {
            session.part = None;
            Ok(Vec::new())
        }
        request => {
            let mut part = session.part.take().ok_or_else(|| refused("no part is open"))?;
            part.reader = session.limited(&part.reader, 0);
            // After an error the part counts as closed.
            let (part, answer) = aside(move || {
                let answer = asked(&mut part, request, &run)?;
                Ok((part, answer))
            })
            .await?;
            session.part = Some(part);
            Ok(answer)
        }
    }
}

/// 1227 for accounts that may not request parts, since a part may use memory outside the limits of
/// statements.
fn check_served(session: &SessionState) -> Result<()> {
    let account = &session.identity.user;
    if session.shared.host.serves_parts(account) {
        return Ok(());
    }
    let message = format!(
        "Access denied: other servers do not ask as '{account}' for parts of their tables: name it in agents.serves of remora.toml"
    );
    Err(Error::new(ErrorCode::SpecificAccessDenied, message))
}

/// Runs work in a thread that may block.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(refused("a part was asked for and the answer broke off")))
}

fn check_open(version: u32, trail: &[String]) -> Result<()> {
    if version != VERSION {
        let message =
            format!("another server speaks version {version} and this one {VERSION}: update one");
        return Err(refused(&message));
    }
    if trail.len() > MAX_DEPTH || trail.iter().any(|name| name.len() > MAX_NAME_BYTES) {
        let message = format!("{} servers ask one behind the other: {MAX_DEPTH} may", trail.len());
        return Err(refused(&message));
    }
    Ok(())
}

/// Opens the newest snapshot of a table, or of several read as one.
fn begin(
    session: &SessionState,
    tables: &[String],
    trail: Vec<String>,
    is_partial: bool,
) -> Result<(TableName, ServedPart)> {
    let name = table_name(tables)?;
    name.check(&session.identity, Verb::Select)?;
    let engine_name = name.engine_name(&session.shared);
    let lost = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lost);
    let asked = AgentOptions { is_partial, ..AgentOptions::default() };
    let reader = session.with_remote_tables(
        asked,
        trail,
        Arc::new(move |part: &str, why: &str| told.lock().push(format!("{part}: {why}"))),
    );
    let reader = session.limited(&reader, 0);
    for part in reader.parts(&engine_name) {
        TableName::of_engine(&part, &session.shared).check(&session.identity, Verb::Select)?;
    }
    Ok((name, ServedPart::new(reader, engine_name, lost)))
}

/// 1146 if the table does not exist.
fn check_there(reader: &Reader, engine_name: &str, name: &TableName) -> Result<()> {
    match reader.schema(engine_name) {
        Ok(_) => Ok(()),
        Err(remora_engine::Error::NotFound { .. }) => Err(name.missing()),
        Err(error) => Err(from_engine(&error)),
    }
}

/// The table named by a list of `database.table`.
fn table_name(tables: &[String]) -> Result<TableName> {
    if tables.is_empty() || tables.len() > MAX_TABLES {
        return Err(refused(&format!("{} tables: 1 to {MAX_TABLES} are one", tables.len())));
    }
    let (mut databases, mut names) = (Vec::new(), Vec::new());
    for table in tables {
        let split = table.split_once('.').filter(|_| !table.contains('\0'));
        let (database, name) =
            split.ok_or_else(|| refused(&format!("{table:?} is no database.table")))?;
        databases.push(database);
        names.push(name);
    }
    let first = databases.first().copied().unwrap_or_default();
    if databases.iter().any(|database| *database != first) {
        return Err(refused("tables of several databases are not one"));
    }
    Ok(TableName::new(first, united_name(names)))
}

/// Answers a request to an open part.
fn asked(part: &mut ServedPart, request: Request, run: &str) -> Result<Vec<u8>> {
    let schema = part.reader.schema(&part.table).map_err(|error| from_engine(&error))?;
    let engine = |error: remora_engine::Error| from_engine(&error);
    let table = part.table.clone();
    match request {
        Request::Hide { keys } => {
            if keys.len() > MAX_HIDDEN {
                return Err(refused(&format!("{MAX_HIDDEN} keys are hidden at most")));
            }
            let keys: Option<Vec<Vec<u8>>> = keys.iter().map(|key| bytes_of(key)).collect();
            part.hide(&keys.ok_or_else(|| refused("a key has no digits"))?).map_err(engine)?;
            json(&part.opened(false, run).map_err(engine)?)
        }
        Request::Keys { from } => {
            let from = bytes_of(&from).ok_or_else(|| refused("a key has no digits"))?;
            part.keys(&from).map_err(engine)
        }
        Request::Statistics { query, wanted } => {
            let listed = [wanted.keywords.len(), wanted.unions];
            if listed.iter().any(|count| *count > MAX_WANTED) {
                return Err(refused(&format!("a query has {MAX_WANTED} keywords at most")));
            }
            if wanted.patterns.len() > MAX_PATTERNS {
                let most =
                    format!("{MAX_PATTERNS} words with wildcards may be asked for at a time");
                return Err(refused(&most));
            }
            let query = keywords(&schema, &query)?;
            json(&part.reader.keyword_statistics(&table, &query, &wanted).map_err(engine)?)
        }
        Request::Count { text, filter } => {
            check_filter(filter.as_ref())?;
            let text = text.map(|text| condition(&schema, &text)).transpose()?;
            let selection = Selection { table, text, filter, ..Selection::default() };
            json(&part.reader.count(&selection).map_err(engine)?.count)
        }
        Request::Facet { text, filter, column } => {
            check_filter(filter.as_ref())?;
            let text = text.map(|text| condition(&schema, &text)).transpose()?;
            let selection = Selection { table, text, filter, ..Selection::default() };
            part.facet(selection, column).map_err(engine)
        }
        Request::Scan { .. } => scan(part, &schema, request),
        Request::Next { cursor } => part.page(cursor).map_err(engine),
        Request::End { cursor } => {
            part.end(cursor);
            Ok(Vec::new())
        }
        Request::Open { .. } | Request::Close => Err(refused("it is answered elsewhere")),
    }
}

/// Opens a scan. `request` must be [`Request::Scan`].
fn scan(part: &mut ServedPart, schema: &Arc<Schema>, request: Request) -> Result<Vec<u8>> {
    let Request::Scan { cursor, text, filter, columns, scores, limit, best, page_rows, page_bytes } =
        request
    else {
        return Err(refused("it is no scan"));
    };
    check_filter(filter.as_ref())?;
    if columns.len() > MAX_COLUMNS || scores.len() > MAX_SCORES {
        let most = format!("{MAX_COLUMNS} columns and {MAX_SCORES} scores of a row may be");
        return Err(refused(&most));
    }
    let scores = scores.iter().map(|score| condition(schema, score));
    let request = ScanRequest {
        text: text.map(|text| condition(schema, &text)).transpose()?,
        filter,
        columns,
        scores: scores.collect::<Result<_>>()?,
        limit,
        best,
        batch_rows: page_rows,
        in_key_order: true,
        ..ScanRequest::default()
    };
    part.scan(cursor, request, page_bytes).map_err(|error| from_engine(&error))
}

/// Refuses conditions on paths in documents: which paths are indexed differs between servers.
fn check_filter(filter: Option<&Filter>) -> Result<()> {
    match filter {
        Some(
            Filter::Path(..)
            | Filter::PathsTogether(..)
            | Filter::PathTexts(..)
            | Filter::PathMayHold(..),
        ) => Err(refused("conditions by paths are not asked of parts")),
        Some(Filter::Rows(_)) => Err(refused("rows of a snapshot are not asked of parts")),
        Some(Filter::Not(inner) | Filter::Prefix(inner)) => check_filter(Some(inner)),
        Some(Filter::And(parts) | Filter::Or(parts)) => {
            parts.iter().try_for_each(|part| check_filter(Some(part)))
        }
        Some(
            Filter::Compare { .. }
            | Filter::In(..)
            | Filter::Between(..)
            | Filter::KeyIn(..)
            | Filter::KeyWithin(..)
            | Filter::Begins(..)
            | Filter::IsNull(..)
            | Filter::IsNotNull(..),
        )
        | None => Ok(()),
    }
}

/// Converts a text condition from its wire form.
fn condition(schema: &Schema, text: &WireTextCondition) -> Result<TextQuery> {
    let each = |parts: &[WireTextCondition]| {
        parts.iter().map(|part| condition(schema, part)).collect::<Result<Vec<_>>>()
    };
    Ok(match text {
        WireTextCondition::Keywords(query) => {
            TextQuery::Keywords(Arc::new(keywords(schema, query)?))
        }
        WireTextCondition::And(parts) => TextQuery::And(each(parts)?),
        WireTextCondition::Or(parts) => TextQuery::Or(each(parts)?),
        WireTextCondition::Not(part) => TextQuery::Not(Box::new(condition(schema, part)?)),
    })
}

/// Converts a keyword query from its wire form, with its ranker.
fn keywords(schema: &Schema, query: &WireQuery) -> Result<KeywordQuery> {
    if query.field_weights.len() > MAX_FIELD_WEIGHTS {
        return Err(refused(&format!("{MAX_FIELD_WEIGHTS} weights of fields are the most")));
    }
    let ranker = match &query.expression {
        Some(expression) => format!("{}({expression})", query.ranker),
        None => query.ranker.clone(),
    };
    Ok(KeywordQuery { ranker: search::ranker(schema, &ranker)?, ..query.to_query() })
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| refused(&error.to_string()))
}

fn refused(message: &str) -> Error {
    Error::new(ErrorCode::ForeignQuery, message)
}
