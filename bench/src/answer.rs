//! A server's answer, in a form that can be compared with another server's.

use std::fmt;

use mysql::{Row, Value};

/// The most characters of an answer that are printed.
const SHOWN: usize = 300;

/// Rows as strings, sorted if the statement has no ORDER BY, or an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Rows(Vec<Vec<String>>),
    Error(u16, String),
}

impl Answer {
    /// An answer of these rows; sorts them unless `is_ordered`.
    pub fn of(rows: Vec<Row>, is_ordered: bool) -> Self {
        let cells = |row: Row| row.unwrap().into_iter().map(text).collect();
        let mut rows: Vec<Vec<String>> = rows.into_iter().map(cells).collect();
        if !is_ordered {
            rows.sort_unstable();
        }
        Self::Rows(rows)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(rows) => {
                let text: String = format!("{rows:?}").chars().take(SHOWN).collect();
                write!(out, "{} rows {text}", rows.len())
            }
            Self::Error(code, message) => write!(out, "error {code}: {message}"),
        }
    }
}

/// The string of a value, the same for the text protocol and the binary one.
fn text(value: Value) -> String {
    match value {
        Value::NULL => "NULL".to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => other.as_sql(true).trim_matches('\'').to_owned(),
    }
}

/// Whether the statement itself has an ORDER BY, not only a part of it in parentheses.
pub fn is_ordered(statement: &str) -> bool {
    let mut depth = 0_usize;
    statement.char_indices().any(|(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && statement.get(at..).is_some_and(|rest| rest.starts_with("ORDER BY"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_within_parentheses_is_not_the_statements() {
        assert!(is_ordered("SELECT a FROM t WHERE b IN (1) ORDER BY a"));
        assert!(!is_ordered("SELECT ROW_NUMBER() OVER (ORDER BY a) FROM t"));
        assert!(!is_ordered("SELECT a FROM t"));
    }

    #[test]
    fn values_are_compared_as_they_are_read() {
        assert_eq!(text(Value::Int(-5)), text(Value::Bytes(b"-5".into())));
        let date = Value::Date(2025, 3, 1, 0, 0, 0, 0);
        assert_eq!(text(date), "2025-03-01");
        assert_eq!(text(Value::Date(2025, 3, 1, 10, 20, 30, 0)), "2025-03-01 10:20:30");
    }
}
