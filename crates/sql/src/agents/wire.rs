//! The messages between servers: what one asks another for a part of a table, and the answers. A request is a statement
//! with one JSON text; an answer is JSON or bytes.
//!
//! ```text
//! statement := CALL REMORA_PART('JSON of a Request')
//! answer    := one row of one column: JSON, or for Keys rows of one column (remora_engine::encode_rows), or
//! page      := more:u8 rows                             of Scan and Next
//! values    := counted:u8 rows                          of Facet: each with its number of rows; 0 and none if too many
//! ```
//! The first request of a part is Open, which pins a snapshot for the connection; another Open releases it. The asking
//! server numbers its scans, and ends those whose last page it does not read.

use std::sync::Arc;

use remora_engine::{
    BestRows, FactorsForm, Filter, KeywordQuery, KeywordStatistics, Schema, TextQuery, Value,
    WantedStatistics,
};
use remora_words::rank::IdfKind;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Both sides speak the same.
pub(crate) const VERSION: u32 = 3;
/// The procedure that is called.
pub(crate) const PROCEDURE: &str = "REMORA_PART";
/// Tables of other servers that have tables of other servers: so many one behind the other.
pub(crate) const MAX_DEPTH: usize = 4;
/// The most bytes of what names one of them.
pub(crate) const MAX_NAME_BYTES: usize = 4_096;
/// Most rows of a page, and most of their values.
pub(crate) const MAX_PAGE_ROWS: usize = 8_192;
pub(crate) const MAX_PAGE_VALUES: usize = 1 << 20;
/// Keys of a page.
pub(crate) const PAGE_KEYS: usize = 16_384;
/// The most bytes of a page before its last row.
pub(crate) const MAX_PAGE_BYTES: usize = 16 << 20;
/// What a value has beside its text.
const VALUE_BYTES: usize = 16;
/// The most bytes of answers: the last row of a page may have more than all before it.
const PAGE_BYTES: usize = 64 << 20;
const TOLD_BYTES: usize = 16 << 20;
const SHORT_BYTES: usize = 64 << 10;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Pins the moment of a table, or of several as one, by `database.table`.
    /// `trail` has the tables for which it is asked for, one behind the other, each with its server.
    Open { version: u32, tables: Vec<String>, trail: Vec<String>, is_partial: bool },
    /// Leaves out the rows of these keys, in hexadecimal digits.
    Hide { keys: Vec<String> },
    /// Some keys from one on.
    Keys { from: String },
    /// Numbers of keywords.
    Statistics { query: Query, wanted: WantedStatistics },
    /// How many rows match.
    Count { text: Option<WireTextCondition>, filter: Option<Filter> },
    /// How many rows that match have each value of a column.
    Facet { text: Option<WireTextCondition>, filter: Option<Filter>, column: String },
    /// The first page of the rows that match, in the order of keys.
    Scan {
        cursor: u32,
        text: Option<WireTextCondition>,
        filter: Option<Filter>,
        columns: Vec<usize>,
        scores: Vec<WireTextCondition>,
        limit: Option<u64>,
        /// Rows that are not among these may be left out.
        best: Option<BestRows>,
        page_rows: usize,
        /// A page ends behind the row with which it has so many.
        page_bytes: usize,
    },
    /// The next page.
    Next { cursor: u32 },
    /// No more pages are wanted.
    End { cursor: u32 },
    /// Lets go of the moment.
    Close,
}

impl Request {
    /// The most bytes that its answer may have.
    pub(crate) fn most_answer_bytes(&self) -> usize {
        match self {
            Self::Scan { .. } | Self::Next { .. } | Self::Keys { .. } | Self::Facet { .. } => {
                PAGE_BYTES
            }
            Self::Open { .. } | Self::Statistics { .. } => TOLD_BYTES,
            Self::Hide { .. } | Self::Count { .. } | Self::End { .. } | Self::Close => SHORT_BYTES,
        }
    }
}

/// How many rows a page has at most, where that many are asked for, of so many columns.
pub(crate) fn page_rows(asked: usize, columns: usize) -> usize {
    asked.clamp(1, MAX_PAGE_ROWS.min(MAX_PAGE_VALUES / columns.max(1)).max(1))
}

/// What a row counts in a page.
pub(crate) fn row_bytes(row: &[Value]) -> usize {
    let bytes = |value: &Value| match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    row.iter().map(|value| VALUE_BYTES + bytes(value)).sum()
}

/// The answer to Open and Hide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenReply {
    /// The definition; none of Hide.
    pub schema: Option<Schema>,
    pub rows: u64,
    pub version: String,
    /// The first and the last key, in hexadecimal digits.
    pub ends: Option<(String, String)>,
    /// Parts of it that did not answer.
    pub lost: Vec<String>,
}

/// A condition on texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum WireTextCondition {
    Keywords(Box<Query>),
    And(Vec<WireTextCondition>),
    Or(Vec<WireTextCondition>),
    Not(Box<WireTextCondition>),
}

/// A query by keywords.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    pub text: String,
    pub ranker: String,
    pub expression: Option<String>,
    pub field_weights: Vec<(String, i32)>,
    pub table_weight: Option<i32>,
    pub is_plain: bool,
    pub is_divided: bool,
    /// Whether factors are told, and as JSON, and without closeness.
    pub factors: Option<(bool, bool)>,
    pub statistics: Option<KeywordStatistics>,
}

impl Query {
    pub(crate) fn of(asked: &KeywordQuery) -> Self {
        let (ranker, expression) = asked.ranker.name();
        Self {
            text: asked.text.clone(),
            ranker: ranker.to_owned(),
            expression: expression.map(|expression| expression.text().to_owned()),
            field_weights: asked.field_weights.clone(),
            table_weight: asked.table_weight,
            is_plain: asked.idf.is_plain,
            is_divided: asked.idf.is_divided,
            factors: asked.factors.map(|form| (form.is_json, form.is_without_closeness)),
            statistics: asked.statistics.as_deref().cloned(),
        }
    }

    /// The query, but for its ranker.
    pub(crate) fn to_query(&self) -> KeywordQuery {
        let form = |(is_json, is_without_closeness)| FactorsForm { is_json, is_without_closeness };
        KeywordQuery {
            text: self.text.clone(),
            field_weights: self.field_weights.clone(),
            table_weight: self.table_weight,
            idf: IdfKind { is_plain: self.is_plain, is_divided: self.is_divided },
            factors: self.factors.map(form),
            statistics: self.statistics.clone().map(Arc::new),
            ..KeywordQuery::default()
        }
    }
}

impl WireTextCondition {
    /// `None` for what other servers are not asked.
    pub(crate) fn of(text: &TextQuery) -> Option<Self> {
        let each = |parts: &[TextQuery]| parts.iter().map(Self::of).collect::<Option<Vec<_>>>();
        Some(match text {
            TextQuery::Keywords(asked) => Self::Keywords(Box::new(Query::of(asked))),
            TextQuery::And(parts) => Self::And(each(parts)?),
            TextQuery::Or(parts) => Self::Or(each(parts)?),
            TextQuery::Not(part) => Self::Not(Box::new(Self::of(part)?)),
            TextQuery::Term(_) | TextQuery::Piece(_) => return None,
        })
    }
}

/// The statement of a request. Only what JSON has of quotes and backslashes is doubled.
pub(crate) fn statement(request: &Request) -> Result<String> {
    let json = serde_json::to_string(request).map_err(Error::unsupported)?;
    Ok(format!("CALL {PROCEDURE}('{}')", json.replace('\\', "\\\\").replace('\'', "''")))
}

/// Bytes in hexadecimal digits.
pub(crate) fn digits(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS.get(usize::from(half)).copied().unwrap_or(b'0'));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of hexadecimal digits; `None` if they are none.
pub(crate) fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let half = |digit: u8| char::from(digit).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(half(*high)? << 4 | half(*low)?).ok(),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes_of(&digits(&bytes)).unwrap(), bytes);
        for wrong in ["a", "0g", "é", "+1"] {
            assert_eq!(bytes_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_request_is_a_statement_whose_text_is_it() {
        let query =
            KeywordQuery { text: r#"it's \"a\" \\ b"#.to_owned(), ..KeywordQuery::default() };
        let text =
            WireTextCondition::of(&TextQuery::Not(Box::new(TextQuery::Keywords(query.into()))));
        let request = Request::Count { text, filter: None };
        let statement = statement(&request).unwrap();
        let made = crate::parse::split(statement.as_bytes(), false, Default::default()).unwrap();
        let [source] = &made[..] else { panic!("{} statements", made.len()) };
        let text = source.tokens.get(3).unwrap();
        let text = remora_mysql::unquoted(source.bytes(text), source.mode);
        assert_eq!(serde_json::from_slice::<Request>(&text).unwrap(), request);
        for wrong in [r#"{"count":{"text":null,"filter":null,"x":1}}"#, r#"{"zzz":1}"#, "[]"] {
            assert!(serde_json::from_str::<Request>(wrong).is_err(), "{wrong}");
        }
    }
}
