//! Replies: what was asked for, in the form of the client's version.
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

/// The answer to one query of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Rows, and what is to be said about them.
    Found {
        /// A warning; empty is none.
        warning: String,
        /// The rows.
        found: Found,
    },
    /// Why there are none.
    Error(String),
}

/// What a query found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Names of the fields that are searched.
    pub fields: Vec<String>,
    /// The attributes of which each match has a value.
    pub attributes: Vec<Attribute>,
    /// The rows.
    pub matches: Vec<Match>,
    /// Rows that can be asked for.
    pub total: u32,
    /// Rows that were found.
    pub total_found: u32,
    /// Milliseconds it took.
    pub milliseconds: u32,
    /// The words of the query.
    pub words: Vec<Word>,
}

/// An attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: AttributeKind,
}

/// What an attribute's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// Numbers of 32 bits without a sign.
    Number = 1,
    /// Seconds since 1970.
    Timestamp = 2,
    /// 0 or 1.
    Bool = 4,
    /// Numbers with a point, of 32 bits.
    Float = 5,
    /// Numbers of 64 bits.
    BigInt = 6,
    /// Texts.
    Text = 7,
    /// Sets of numbers of 32 bits.
    Set = 0x4000_0001,
    /// Sets of numbers of 64 bits.
    WideSet = 0x4000_0002,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// Its key.
    pub id: u64,
    /// Its weight. One below zero is sent as the number that has the same bits.
    pub weight: i32,
    /// Its values, one for each attribute.
    pub values: Vec<Value>,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a number, a timestamp or a bool.
    Number(u32),
    /// Of a wide number.
    BigInt(i64),
    /// Of a number with a point.
    Float(f32),
    /// Of a text.
    Text(Vec<u8>),
    /// Of a set of numbers.
    Set(Vec<u32>),
    /// Of a set of wide numbers.
    WideSet(Vec<i64>),
}

/// A word of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Word {
    /// As it is indexed.
    pub word: String,
    /// Rows that have it.
    pub documents: u32,
    /// Its occurrences.
    pub hits: u32,
}

/// Appends the reply to a search. Clients before 0x10D send one query and get one answer.
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

/// A match without attributes but the first number and the first timestamp.
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

/// Appends a value; one of a kind that the client's version does not know is 0.
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

/// Appends the reply to a request for excerpts: as many as there were texts.
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

/// Appends the reply to an update: how many rows it found. An empty warning is none.
pub fn put_updated(out: &mut Vec<u8>, warning: &str, rows: u32) {
    let status = if warning.is_empty() { Status::Ok } else { Status::Warning };
    put_reply(out, status, Command::Update.version(), |out| {
        if !warning.is_empty() {
            put_text(out, warning.as_bytes());
        }
        put_u32(out, rows);
    });
}

/// Appends the reply to a request for figures: names and values.
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

/// Appends the reply to a ping: the number that came with it.
pub fn put_ping(out: &mut Vec<u8>, cookie: u32) {
    put_reply(out, Status::Ok, Command::Ping.version(), |out| put_u32(out, cookie));
}

/// Appends the reply to a request to write attributes to disk: how often that was done.
pub fn put_flushed(out: &mut Vec<u8>, times: u32) {
    put_reply(out, Status::Ok, Command::FlushAttributes.version(), |out| put_u32(out, times));
}
