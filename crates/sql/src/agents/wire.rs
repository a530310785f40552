//! The messages between servers: requests for a part of a table, and the answers. A request is a
//! statement with one JSON text; an answer is JSON or bytes.
//!
//! ```text
//! statement := CALL REMORA_PART('JSON of a Request')
//! answer    := one row of one column: JSON, or for Keys rows of one column (remora_engine::encode_rows), or
//! page      := more:u8 rows                             of Scan and Next
//! values    := counted:u8 rows                          of Facet: each with its number of rows; 0 and none if too many
//! ```
//! The first request for a part is Open, which pins a snapshot for the connection. Another Open
//! releases it. The client numbers its scans, and ends those whose last page it does not read.

use std::sync::Arc;

use remora_engine::{
    BestRows, FactorsForm, Filter, KeywordQuery, KeywordStatistics, Schema, TextQuery, Value,
    WantedStatistics,
};
use remora_words::{query::QueryOptions, rank::IdfKind, settings::WordExpansion};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The version of this protocol. Both servers must have the same.
pub(crate) const VERSION: u32 = 4;
/// The procedure that carries requests.
pub(crate) const PROCEDURE: &str = "REMORA_PART";
/// How many servers a distributed table may pass through, one behind the other.
pub(crate) const MAX_DEPTH: usize = 4;
/// The most bytes of the text that names a mirror's tables.
pub(crate) const MAX_NAME_BYTES: usize = 4_096;
/// The most rows of a page, and the most values in all its rows.
pub(crate) const MAX_PAGE_ROWS: usize = 8_192;
pub(crate) const MAX_PAGE_VALUES: usize = 1 << 20;
/// The number of keys in a page.
pub(crate) const PAGE_KEYS: usize = 16_384;
/// The most bytes of a page before its last row.
pub(crate) const MAX_PAGE_BYTES: usize = 16 << 20;
/// The size of a value in a page, its text not counted.
const VALUE_BYTES: usize = 16;
/// The most bytes of an answer: with a page (whose last row may be larger than all before it), with
/// a description, and with a number or nothing.
const PAGE_BYTES: usize = 64 << 20;
const TOLD_BYTES: usize = 16 << 20;
const SHORT_BYTES: usize = 64 << 10;

/// A request to another server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Pins a snapshot of a table, or of several read as one, given as `database.table`. `trail` is
    /// the chain of tables, each with its server, through which the request came.
    Open { version: u32, tables: Vec<String>, trail: Vec<String>, is_partial: bool },
    /// Hides the rows with these keys, which are in hexadecimal.
    Hide { keys: Vec<String> },
    /// Asks for a page of keys from this one on.
    Keys { from: String },
    /// Asks for the collection statistics of keywords.
    Statistics { query: WireQuery, wanted: WantedStatistics },
    /// Counts the rows that match.
    Count { text: Option<WireTextCondition>, filter: Option<Filter> },
    /// Counts the matching rows for each value of a column.
    Facet { text: Option<WireTextCondition>, filter: Option<Filter>, column: String },
    /// Opens a scan of the matching rows in key order, and returns the first page.
    Scan {
        cursor: u32,
        text: Option<WireTextCondition>,
        filter: Option<Filter>,
        columns: Vec<usize>,
        scores: Vec<WireTextCondition>,
        limit: Option<u64>,
        /// The server may leave out rows that are not among these best ones.
        best: Option<BestRows>,
        page_rows: usize,
        /// A page ends after the row with which it reaches this size.
        page_bytes: usize,
    },
    /// Asks for the next page of a scan.
    Next { cursor: u32 },
    /// Ends a scan early.
    End { cursor: u32 },
    /// Releases the snapshot.
    Close,
}

impl Request {
    /// The most bytes that the answer may have.
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

/// The rows of a page of so many columns: the number asked for, within the limits of a page.
pub(crate) fn page_rows(asked: usize, columns: usize) -> usize {
    asked.clamp(1, MAX_PAGE_ROWS.min(MAX_PAGE_VALUES / columns.max(1)).max(1))
}

/// The size of a row as a page counts it, in bytes.
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
    /// The table's definition; `None` in the answer to Hide.
    pub schema: Option<Schema>,
    pub rows: u64,
    pub version: String,
    /// The first and the last key, in hexadecimal; `None` if the table is empty.
    pub ends: Option<(String, String)>,
    /// Reports of servers that are missing from the part.
    pub lost: Vec<String>,
}

/// A condition on texts, as it is sent to other servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum WireTextCondition {
    Keywords(Box<WireQuery>),
    And(Vec<WireTextCondition>),
    Or(Vec<WireTextCondition>),
    Not(Box<WireTextCondition>),
}

/// A keyword query, as it is sent to other servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireQuery {
    pub text: String,
    pub ranker: String,
    pub expression: Option<String>,
    pub field_weights: Vec<(String, i32)>,
    pub table_weight: Option<i32>,
    pub is_plain: bool,
    pub is_divided: bool,
    pub options: WireOptions,
    /// Whether to return ranking factors: as JSON, and without the closeness factors.
    pub factors: Option<(bool, bool)>,
    pub statistics: Option<KeywordStatistics>,
}

/// How the text of a keyword query is read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireOptions {
    /// Whether parts of words and words as written are added.
    pub expand_keywords: Option<(bool, bool)>,
    pub expansion_limit: u32,
    pub is_any: bool,
    pub is_unstemmed: bool,
    pub takes_only_not: bool,
}

impl WireOptions {
    fn of(options: QueryOptions) -> Self {
        let QueryOptions { expand_keywords, expansion_limit, is_any, is_unstemmed, takes_only_not } =
            options;
        let expand_keywords = expand_keywords.map(|forms| (forms.has_parts, forms.has_exact));
        Self { expand_keywords, expansion_limit, is_any, is_unstemmed, takes_only_not }
    }

    fn to_options(self) -> QueryOptions {
        let Self { expand_keywords, expansion_limit, is_any, is_unstemmed, takes_only_not } = self;
        let forms = |(has_parts, has_exact)| WordExpansion { has_parts, has_exact };
        let expand_keywords = expand_keywords.map(forms);
        QueryOptions { expand_keywords, expansion_limit, is_any, is_unstemmed, takes_only_not }
    }
}

impl WireQuery {
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
            options: WireOptions::of(asked.options),
            factors: asked.factors.map(|form| (form.is_json, form.is_without_closeness)),
            statistics: asked.statistics.as_deref().cloned(),
        }
    }

    /// The engine's query. The ranker is not part of it, as its expression must be parsed for a
    /// table.
    pub(crate) fn to_query(&self) -> KeywordQuery {
        let form = |(is_json, is_without_closeness)| FactorsForm { is_json, is_without_closeness };
        KeywordQuery {
            text: self.text.clone(),
            field_weights: self.field_weights.clone(),
            table_weight: self.table_weight,
            idf: IdfKind { is_plain: self.is_plain, is_divided: self.is_divided },
            options: self.options.to_options(),
            factors: self.factors.map(form),
            statistics: self.statistics.clone().map(Arc::new),
            ..KeywordQuery::default()
        }
    }
}

impl WireTextCondition {
    /// The condition to send, or `None` if other servers cannot evaluate it.
    pub(crate) fn of(text: &TextQuery) -> Option<Self> {
        let each = |parts: &[TextQuery]| parts.iter().map(Self::of).collect::<Option<Vec<_>>>();
        Some(match text {
            TextQuery::Keywords(asked) => Self::Keywords(Box::new(WireQuery::of(asked))),
            TextQuery::And(parts) => Self::And(each(parts)?),
            TextQuery::Or(parts) => Self::Or(each(parts)?),
            TextQuery::Not(part) => Self::Not(Box::new(Self::of(part)?)),
            TextQuery::Term(_) | TextQuery::Piece(_) => return None,
        })
    }
}

/// The statement that carries a request. JSON can only contain backslashes and quotes that need
/// doubling.
pub(crate) fn statement(request: &Request) -> Result<String> {
    let json = serde_json::to_string(request).map_err(Error::unsupported)?;
    Ok(format!("CALL {PROCEDURE}('{}')", json.replace('\\', "\\\\").replace('\'', "''")))
}

/// Bytes in hexadecimal.
pub(crate) fn digits(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS.get(usize::from(half)).copied().unwrap_or(b'0'));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of a hexadecimal text, or `None` if it is malformed.
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
