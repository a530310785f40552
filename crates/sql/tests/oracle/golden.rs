//! The format of golden files.
//!
//! ```text
//! case   := "> " statement "\n" answer "\n"
//! answer := "= " (name "\t" type) ("\t" name "\t" type)* "\n" row*  |  "! " code " " message "\n"
//! row    := "- " value ("\t" value)* "\n"
//! ```
//!
//! Values are MySQL's text, NULL is `\N`, bytes that are not text are `\x` and hexadecimal digits. The rows of a
//! statement without ORDER BY are sorted.

/// A statement and its result.
#[derive(Clone, Debug)]
pub struct Case {
    pub statement: String,
    pub answer: Answer,
}

/// The result of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Columns by name and type, and rows.
    Rows { columns: Vec<(String, String)>, rows: Vec<Vec<String>> },
    /// An error's code and message.
    Error(u16, String),
}

/// Reads a golden file.
pub fn parse(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(statement) = line.strip_prefix("> ") else { continue };
        let head = lines.next().unwrap_or("");
        let answer = match head.strip_prefix("! ") {
            Some(error) => {
                let (code, message) = error.split_once(' ').unwrap_or((error, ""));
                Answer::Error(code.parse().unwrap(), message.to_owned())
            }
            None => {
                let head = head.strip_prefix("= ").unwrap_or("");
                let mut rows = Vec::new();
                while let Some(row) = lines.next_if(|line| line.starts_with("- ")) {
                    rows.push(row[2..].split('\t').map(str::to_owned).collect());
                }
                Answer::Rows { columns: pairs(head), rows }
            }
        };
        cases.push(Case { statement: statement.to_owned(), answer });
    }
    cases
}

fn pairs(head: &str) -> Vec<(String, String)> {
    let parts: Vec<&str> = head.split('\t').collect();
    parts.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

/// Writes a golden file.
pub fn format(cases: &[Case]) -> String {
    let mut lines = Vec::new();
    for case in cases {
        lines.push(format!("> {}", case.statement));
        match &case.answer {
            Answer::Error(code, message) => lines.push(format!("! {code} {message}")),
            Answer::Rows { columns, rows } => {
                let columns = columns.iter().map(|(name, kind)| format!("{name}\t{kind}"));
                lines.push(format!("= {}", columns.collect::<Vec<_>>().join("\t")));
                lines.extend(rows.iter().map(|row| format!("- {}", row.join("\t"))));
            }
        }
        lines.push(String::new());
    }
    lines.join("\n")
}

/// Escapes characters that would end a value.
pub fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\0', "\\0")
}

/// Bytes as a value.
pub fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => escaped(text),
        Err(_) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("\\x{digits}")
        }
    }
}

/// The rows in the order in which they are compared.
pub fn ordered(statement: &str, mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    if !statement.to_uppercase().contains("ORDER BY") {
        rows.sort_by_key(|row| row.join("\t"));
    }
    rows
}

/// Describes the difference, if there is one. Doubles are compared as numbers, except for their last digit.
pub fn difference(expected: &Answer, found: &Answer) -> Option<String> {
    let (columns, rows, found_columns, found_rows) = match (expected, found) {
        (Answer::Error(code, message), Answer::Error(found_code, found_message)) => {
            // Out-of-range messages quote the expression, which the servers print differently.
            let same = code == found_code && (message == found_message || *code == 1690);
            let what =
                || format!("  wanted {code} {message}\n  found  {found_code} {found_message}");
            return (!same).then(what);
        }
        (
            Answer::Rows { columns, rows },
            Answer::Rows { columns: found_columns, rows: found_rows },
        ) => (columns, rows, found_columns, found_rows),
        _ => return Some(format!("  wanted {expected:?}\n  found  {found:?}")),
    };
    if columns != found_columns {
        return Some(format!("  wanted {columns:?}\n  found  {found_columns:?}"));
    }
    let kinds: Vec<&str> = columns.iter().map(|(_, kind)| kind.as_str()).collect();
    let same = rows.len() == found_rows.len()
        && rows.iter().zip(found_rows).all(|(a, b)| {
            a.len() == b.len()
                && a.iter().zip(b).zip(&kinds).all(|((a, b), kind)| same_value(a, b, kind))
        });
    (!same).then(|| format!("  wanted {rows:?}\n  found  {found_rows:?}"))
}

fn same_value(a: &str, b: &str, kind: &str) -> bool {
    if a == b {
        return true;
    }
    let precision = match kind {
        "double" => 1e-14,
        "float" => 1e-5,
        "year" => 0.0,
        _ => return false,
    };
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= a.abs() * precision,
        _ => false,
    }
}
