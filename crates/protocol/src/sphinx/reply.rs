//! Writes replies in the form of the client's version.
//!
//! ```text
//! search := [>= 0x10D: u32 status], [error: text] | [warning: text] found           for each query
//! found  := [>= 0x102: u32 count, fields, u32 count, {name, u32 kind}],
//!           u32 count, [>= 0x108: u32 1], matches, u32 total, u32 total_found, u32 ms,
//!           u32 count, {word, u32 documents, u32 hits}
//! match  := u64 id (< 0x108: u32), u32 weight, values | < 0x102: u32 id, u32 number, u32 time, u32 weight
//! value  := u32 | i64 | f32 | text | u32 count of u32s, u32s or i64s
//! ```

use super::{
    Command, Keyword,
    encode::{put_count, put_text, put_u32},
    frame::{Status, put_error, put_reply, put_texts},
};

/// The answer to one query of a search request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The query succeeded.
    Found {
        /// A warning; empty if there is none.
        warning: String,
        /// The rows and their attributes.
        found: Found,
    },
    /// The query failed, with this message.
    Error(String),
}

/// What a query found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The names of the full-text fields.
    pub fields: Vec<String>,
    /// The attributes. Each match has a value for each of them.
    pub attributes: Vec<Attribute>,
    /// The matching rows.
    pub matches: Vec<Match>,
    /// The number of rows that can be fetched.
    pub total: u32,
    /// The number of rows that match.
    pub total_found: u32,
    /// The duration of the query in milliseconds.
    pub milliseconds: u32,
    /// The words of the query.
    pub words: Vec<Word>,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// The name of the attribute.
    pub name: String,
    /// The type of its values.
    pub kind: AttributeKind,
}

/// The type of the values of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// Integers of 32 bits without a sign.
    Number = 1,
    /// Seconds since 1970.
    Timestamp = 2,
    /// 0 or 1.
    Bool = 4,
    /// Floating-point numbers of 32 bits.
    Float = 5,
    /// Integers of 64 bits with a sign.
    BigInt = 6,
    /// Texts.
    Text = 7,
    /// Sets of integers of 32 bits without a sign.
    Set = 0x4000_0001,
    /// Sets of integers of 64 bits with a sign.
    WideSet = 0x4000_0002,
}

/// A row that matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// The key of the row.
    pub id: u64,
    /// The weight of the row. A negative weight is sent as the unsigned number with the same bits.
    pub weight: i32,
    /// The values of the row, one for each attribute.
    pub values: Vec<Value>,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A value of a `Number`, `Timestamp` or `Bool` attribute.
    Number(u32),
    /// A value of a `BigInt` attribute.
    BigInt(i64),
    /// A value of a `Float` attribute.
    Float(f32),
    /// A value of a `Text` attribute.
    Text(Vec<u8>),
    /// A value of a `Set` attribute.
    Set(Vec<u32>),
    /// A value of a `WideSet` attribute.
    WideSet(Vec<i64>),
}

/// A word of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Word {
    /// The word as it is indexed.
    pub word: String,
    /// The number of rows that contain the word.
    pub documents: u32,
    /// The number of its occurrences.
    pub hits: u32,
}

/// Appends the reply to a search. Clients of versions before 0x10D send one query and get one answer.
pub fn put_search(out: &mut Vec<u8>, version: u16, answers: &[Answer]) {
    if version >= 0x10D {
        return put_reply(out, Status::Ok, Command::Search.version(), |out| {
            answers.iter().for_each(|answer| put_answer(out, version, answer));
        });
    }
    match answers.first() {
        Some(Answer::Found { warning, found }) => {
            let warned = !warning.is_empty() && version >= 0x106;
            let status = if warned { Status::Warning } else { Status::Ok };
            put_reply(out, status, Command::Search.version(), |out| {
                if warned {
                    put_text(out, warning.as_bytes());
                }
                put_found(out, version, found);
            });
        }
        Some(Answer::Error(message)) => put_error(out, message),
        None => put_error(out, ""),
    }
}

fn put_answer(out: &mut Vec<u8>, version: u16, answer: &Answer) {
    match answer {
        Answer::Error(message) => {
            put_u32(out, Status::Error as u32);
            put_text(out, message.as_bytes());
        }
        Answer::Found { warning, found } => {
            if warning.is_empty() {
                put_u32(out, Status::Ok as u32);
            } else {
                put_u32(out, Status::Warning as u32);
                put_text(out, warning.as_bytes());
            }
            put_found(out, version, found);
        }
    }
}

fn put_found(out: &mut Vec<u8>, version: u16, found: &Found) {
    if version >= 0x102 {
        put_count(out, found.fields.len());
        put_texts(out, found.fields.iter().map(String::as_bytes));
        put_count(out, found.attributes.len());
        for attribute in &found.attributes {
            put_text(out, attribute.name.as_bytes());
            put_u32(out, attribute.kind as u32);
        }
    }
    put_count(out, found.matches.len());
    if version >= 0x108 {
        put_u32(out, 1);
    }
    for row in &found.matches {
        match version {
            0x102.. => put_match(out, version, row),
            _ => put_old_match(out, found, row),
        }
    }
    put_u32(out, found.total);
    put_u32(out, found.total_found);
    put_u32(out, found.milliseconds);
    put_count(out, found.words.len());
    for word in &found.words {
        put_text(out, word.word.as_bytes());
        put_u32(out, word.documents);
        put_u32(out, word.hits);
    }
}

fn put_match(out: &mut Vec<u8>, version: u16, row: &Match) {
    match version {
        0x108.. => out.extend_from_slice(&row.id.to_be_bytes()),
        _ => put_u32(out, row.id as u32),
    }
    out.extend_from_slice(&row.weight.to_be_bytes());
    row.values.iter().for_each(|value| put_value(out, version, value));
}

/// Appends a match in the form before version 0x102: without attributes, but with the first number and the first
/// timestamp.
fn put_old_match(out: &mut Vec<u8>, found: &Found, row: &Match) {
    put_u32(out, row.id as u32);
    for kind in [AttributeKind::Number, AttributeKind::Timestamp] {
        let place = found.attributes.iter().position(|attribute| attribute.kind == kind);
        match place.and_then(|place| row.values.get(place)) {
            Some(Value::Number(number)) => put_u32(out, *number),
            _ => put_u32(out, 1),
        }
    }
    out.extend_from_slice(&row.weight.to_be_bytes());
}

/// Appends a value. A type that the client's version does not know is sent as 0.
fn put_value(out: &mut Vec<u8>, version: u16, value: &Value) {
    match value {
        Value::Number(number) => put_u32(out, *number),
        Value::Float(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::BigInt(number) if version >= 0x114 => out.extend_from_slice(&number.to_be_bytes()),
        Value::BigInt(number) => put_u32(out, *number as u32),
        Value::Text(text) if version >= 0x117 => put_text(out, text),
        Value::Set(set) if version >= 0x10C => {
            put_count(out, set.len());
            set.iter().for_each(|number| put_u32(out, *number));
        }
        Value::WideSet(set) if version >= 0x10C => {
            // What is counted has 4 bytes.
            put_count(out, set.len() * 2);
            set.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
        }
        Value::Text(_) | Value::Set(_) | Value::WideSet(_) => put_u32(out, 0),
    }
}

/// Appends the reply to a request for excerpts: one excerpt for each text.
pub fn put_excerpts(out: &mut Vec<u8>, excerpts: &[String]) {
    put_reply(out, Status::Ok, Command::Excerpt.version(), |out| {
        put_texts(out, excerpts.iter().map(String::as_bytes));
    });
}

/// Appends the reply to a request for the words of a text.
pub fn put_keywords(out: &mut Vec<u8>, with_numbers: bool, keywords: &[Keyword]) {
    put_reply(out, Status::Ok, Command::Keywords.version(), |out| {
        put_count(out, keywords.len());
        for keyword in keywords {
            put_text(out, keyword.tokenized.as_bytes());
            put_text(out, keyword.normalized.as_bytes());
            if with_numbers {
                put_u32(out, keyword.documents);
                put_u32(out, keyword.hits);
            }
        }
    });
}

/// Appends the reply to an update: the number of rows that were found. An empty warning means none.
pub fn put_updated(out: &mut Vec<u8>, warning: &str, rows: u32) {
    let status = if warning.is_empty() { Status::Ok } else { Status::Warning };
    put_reply(out, status, Command::Update.version(), |out| {
        if !warning.is_empty() {
            put_text(out, warning.as_bytes());
        }
        put_u32(out, rows);
    });
}

/// Appends the reply to a status request: pairs of name and value.
pub fn put_status(out: &mut Vec<u8>, figures: &[(String, String)]) {
    put_reply(out, Status::Ok, Command::Status.version(), |out| {
        put_count(out, figures.len());
        put_u32(out, 2);
        for (name, value) in figures {
            put_text(out, name.as_bytes());
            put_text(out, value.as_bytes());
        }
    });
}

/// Appends the reply to a ping: the number of the request.
pub fn put_ping(out: &mut Vec<u8>, cookie: u32) {
    put_reply(out, Status::Ok, Command::Ping.version(), |out| put_u32(out, cookie));
}

/// Appends the reply to a request to write attributes to disk: how often that was done.
pub fn put_flushed(out: &mut Vec<u8>, times: u32) {
    put_reply(out, Status::Ok, Command::FlushAttributes.version(), |out| put_u32(out, times));
}
