//! The statements of a query, and their results as a reply.

use std::time::Instant;

use remora_mysql::ErrorCode;
use remora_protocol::sphinx::{
    Answer, Attribute, Found, Match, Query, Value, Word,
    statement::{Statement, TableShape, search},
};
use remora_sql::{Cell, Column, Error, Identity, Result};

use super::{
    rows::Rows,
    table,
    values::{integer, text, value},
};
use crate::{mysql::SqlClient, query_log::AnsweredSearch};

/// The message for an unknown index.
pub(super) const UNKNOWN_INDEX: &str = "unknown local index '?' in search request";
/// The most refused indexes in a warning.
const MOST_TOLD: usize = 16;

/// Answers a query with a limit of bytes for its rows.
pub(super) async fn answer(
    client: &mut SqlClient,
    identity: &Identity,
    query: &Query<'_>,
    room: &mut usize,
) -> Answer {
    let answer = try_answer(client, identity, query, room).await;
    client.begin_part(0);
    answer.unwrap_or_else(Answer::Error)
}

async fn try_answer(
    client: &mut SqlClient,
    identity: &Identity,
    query: &Query<'_>,
    room: &mut usize,
) -> std::result::Result<Answer, String> {
    let begin = Instant::now();
    let lots = table::find_groups(client, identity, &query.indexes, UNKNOWN_INDEX).await?;
    let ((shape, statement), refusals) = build_statement(query, lots)?;
    let failed = |error: remora_sql::Error| rephrase(&shape, &error.message);
    client.begin_part(query.max_query_ms.into());
    let read = of_statement(client, query, &statement, room).await;
    let Reading { matches, total_found, words, mut warning } = read.map_err(failed)?;
    add_refusals(&mut warning, &refusals);
    client.log_search(&AnsweredSearch {
        connection: 0,
        elapsed: begin.elapsed(),
        found: total_found.into(),
        documents: statement.has_words.then(|| documents_of(&words)),
        table: &shape.shown(),
        query: &query.text,
        statement: &statement.rows,
        is_prepared: false,
    });
    // An outer order applies to the rows within the inner limit.
    let most = match query.outer {
        Some(_) => query.most_rows().min(query.limit),
        None => query.most_rows(),
    };
    let attributes = statement.outputs.into_iter();
    let attributes = attributes.map(|output| Attribute { name: output.name, kind: output.kind });
    let found = Found {
        attributes: attributes.collect(),
        matches,
        total: total_found.min(most),
        total_found,
        milliseconds: u32::try_from(begin.elapsed().as_millis()).unwrap_or(u32::MAX),
        words,
        fields: shape.fields,
    };
    Ok(Answer::Found { warning, found })
}

/// The rows that contain each word, summed up.
fn documents_of(words: &[Word]) -> u64 {
    words.iter().map(|word| u64::from(word.documents)).sum()
}

/// The tables that have what the query needs, the statement, and why other tables are left out, as `searchd` leaves out
/// indexes.
fn build_statement(
    query: &Query<'_>,
    lots: Vec<std::result::Result<TableShape, String>>,
) -> std::result::Result<((TableShape, Statement), Vec<String>), String> {
    let (mut statements, mut refusals) = (Vec::new(), Vec::new());
    for lot in lots {
        let made = lot.and_then(|shape| {
            let statement = search(query, &shape).map_err(|error| error.to_string())?;
            Ok((shape, statement))
        });
        match made {
            Ok(made) => statements.push(made),
            Err(error) => refusals.push(error),
        }
    }
    let mut statements = statements.into_iter();
    match (statements.next(), statements.next()) {
        (Some(only), None) => Ok((only, refusals)),
        (Some((first, _)), Some((second, _))) => {
            let (first, second) = (first.shown(), second.shown());
            Err(format!(
                "index {first}: it differs from {second}, so '*' cannot search them as one: name \
                 indexes that match"
            ))
        }
        (None, _) => Err(refusals.into_iter().next().unwrap_or_default()),
    }
}

/// Adds a warning about the indexes of `*` that were left out.
fn add_refusals(warning: &mut String, refusals: &[String]) {
    let mut add = |part: &str| {
        if !warning.is_empty() {
            warning.push_str("; ");
        }
        warning.push_str(part);
    };
    refusals.iter().take(MOST_TOLD).for_each(|refusal| add(refusal));
    if let Some(more) = refusals.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        add(&format!("{more} more are left out"));
    }
}

/// An SQL message about a table, rephrased for an index.
fn rephrase(shape: &TableShape, message: &str) -> String {
    let table = format!("table {}: ", shape.shown());
    match message.strip_prefix(&table) {
        Some(why) => format!("index {}: {why}", shape.shown()),
        None => message.to_owned(),
    }
}

/// What a query found.
#[derive(Default)]
struct Reading {
    matches: Vec<Match>,
    total_found: u32,
    words: Vec<Word>,
    warning: String,
}

/// Runs a query's statements. At the end of `max_query_time` the rows that came until then are the answer, with a
/// warning, as in `searchd`.
async fn of_statement(
    client: &mut SqlClient,
    query: &Query<'_>,
    statement: &Statement,
    room: &mut usize,
) -> Result<Reading> {
    let late = |error: &Error| query.max_query_ms > 0 && error.code == ErrorCode::QueryTimeout;
    let mut read = Reading::default();
    let ended = matches(client, statement, room, &mut read.matches).await;
    let ended = match (ended, statement.has_words) {
        (Ok(()), true) => meta(client).await.map(|told| (read.words, read.warning) = told),
        (ended, _) => ended,
    };
    let counted = match ended {
        Ok(()) => number(client, &statement.count).await,
        Err(error) => Err(error),
    };
    match counted {
        Ok(total_found) => read.total_found = total_found,
        Err(error) if late(&error) => {
            read.total_found = u32::try_from(read.matches.len()).unwrap_or(u32::MAX);
            "query time exceeded max_query_time".clone_into(&mut read.warning);
        }
        Err(error) => return Err(error),
    }
    Ok(read)
}

/// Reads the rows; their memory is taken from `room`.
async fn matches(
    client: &mut SqlClient,
    statement: &Statement,
    room: &mut usize,
    all: &mut Vec<Match>,
) -> Result<()> {
    let kinds: Vec<_> = statement.outputs.iter().map(|output| output.kind).collect();
    let convert = |_: &[Column], cells: &[Cell<'_>]| {
        let mut cells = cells.iter().copied();
        let mut next = || cells.next().unwrap_or(Cell::Null);
        let (id, weight) = (integer(next()) as u64, integer(next()) as i32);
        let values: Vec<_> = kinds.iter().map(|kind| value(*kind, next())).collect();
        let bytes = values.iter().map(size).sum();
        (Match { id, weight, values }, bytes)
    };
    let mut reply = Rows::new(client.interrupter(), convert).with_limit(*room);
    let ended = client.run(&statement.rows, &mut reply).await;
    *room = room.saturating_sub(reply.bytes());
    *all = reply.rows;
    ended
}

/// The memory of a value.
fn size(value: &Value) -> usize {
    let text = match value {
        Value::Text(text) => text.len(),
        Value::Set(numbers) => size_of_val(numbers.as_slice()),
        Value::WideSet(numbers) => size_of_val(numbers.as_slice()),
        _ => 0,
    };
    size_of::<Value>() + text
}

/// The words of the last search with their statistics, and its warning.
async fn meta(client: &mut SqlClient) -> Result<(Vec<Word>, String)> {
    let convert = |_: &[Column], cells: &[Cell<'_>]| {
        let part = |place: usize| cells.get(place).map_or_else(String::new, |c| text(*c).into());
        ((part(0), part(1)), 0)
    };
    let mut reply = Rows::new(client.interrupter(), convert);
    client.run("SHOW META", &mut reply).await?;
    let (mut words, mut warning) = (Vec::<Word>::new(), String::new());
    for (name, value) in reply.rows {
        match name.split('[').next().unwrap_or_default() {
            "keyword" => words.push(Word { word: value, ..Word::default() }),
            "docs" => set(&mut words, |word| word.documents = value.parse().unwrap_or_default()),
            "hits" => set(&mut words, |word| word.hits = value.parse().unwrap_or_default()),
            "warning" => warning = value,
            _ => {}
        }
    }
    Ok((words, warning))
}

fn set(words: &mut [Word], change: impl FnOnce(&mut Word)) {
    if let Some(word) = words.last_mut() {
        change(word);
    }
}

async fn number(client: &mut SqlClient, statement: &str) -> Result<u32> {
    let convert =
        |_: &[Column], cells: &[Cell<'_>]| (cells.first().map_or(0, |cell| integer(*cell)), 0);
    let mut reply = Rows::new(client.interrupter(), convert);
    client.run(statement, &mut reply).await?;
    let number = reply.rows.first().copied().unwrap_or_default();
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}
