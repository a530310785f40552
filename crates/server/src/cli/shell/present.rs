//! Formats replies for people: keys in lines, rows in columns.

use std::fmt::Write;

use crate::cli::output::{align, thousands};

/// The most terminal columns of a cell.
const CELL_COLUMNS: usize = 60;
/// The most columns of a line of keys.
const LINE_COLUMNS: usize = 96;

/// The formatted reply, with a line break.
pub(in crate::cli) fn present(reply: &str) -> String {
    let reply = reply.replace("\r\n", "\n");
    let reply = reply.trim_end_matches('\n');
    let (first, rest) = reply.split_once('\n').unwrap_or((reply, ""));
    let words: Vec<&str> = first.split(' ').collect();
    match words.as_slice() {
        ["OK", "RESULTS", total, keys @ ..] if !rest.starts_with('\n') && keys.is_empty() => {
            format!("{}{}", count(total, "match", "matches"), rows(rest))
        }
        ["OK", "RESULTS", total, keys @ ..] => {
            format!("{}{}{}", count(total, "match", "matches"), wrap(keys), debug(rest))
        }
        ["OK", "COUNT", total] => format!("{}{}", count(total, "match", "matches"), debug(rest)),
        ["OK", "FACET", _, distinct] => {
            format!("{}{}", count(distinct, "value", "values"), rows(rest))
        }
        ["OK", "DOC", ..] => fields(first),
        _ => format!("{reply}\n"),
    }
}

fn count(number: &str, one: &str, many: &str) -> String {
    let shown = number.parse().map_or(number.to_owned(), thousands);
    format!("{shown} {}\n", if number == "1" { one } else { many })
}

/// Tab-separated lines in columns; text after an empty line is unchanged.
fn rows(text: &str) -> String {
    let (table, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let split = |line: &str| line.split('\t').map(str::to_owned).collect();
    let rows: Vec<Vec<String>> = table.lines().filter(|line| !line.is_empty()).map(split).collect();
    format!("{}{}", align(&rows, CELL_COLUMNS), debug(rest))
}

fn debug(rest: &str) -> String {
    let rest = rest.trim_matches('\n');
    if rest.is_empty() { String::new() } else { format!("{rest}\n") }
}

/// Keys side by side, as many per line as fit.
fn wrap(keys: &[&str]) -> String {
    let mut text = String::new();
    let mut column = 0;
    for key in keys {
        if column > 0 && column + key.len() + 1 > LINE_COLUMNS {
            text.push('\n');
            column = 0;
        }
        if column > 0 {
            text.push(' ');
        }
        text.push_str(key);
        column += key.len() + 1;
    }
    if column > 0 {
        text.push('\n');
    }
    text
}

/// `OK DOC key name=value …`, with one value per line.
fn fields(line: &str) -> String {
    let mut text = String::new();
    for field in split_fields(line.strip_prefix("OK DOC ").unwrap_or(line)) {
        let (name, value) = field.split_once('=').unwrap_or(("key", field));
        let _ = writeln!(text, "{name:<16} {value}");
    }
    text
}

/// Splits at spaces outside of double quotes.
fn split_fields(line: &str) -> Vec<&str> {
    let (mut fields, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (index, letter) in line.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ' ' if !quoted => {
                fields.push(line.get(start..index).unwrap_or(""));
                start = index + 1;
            }
            _ => {}
        }
    }
    fields.push(line.get(start..).unwrap_or(""));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_for_people() {
        assert_eq!(present("OK COUNT 1234"), "1,234 matches\n");
        assert_eq!(present("OK RESULTS 3 7 5 1"), "3 matches\n7 5 1\n");
        assert_eq!(present("OK RESULTS 1\r\n7\tx\r\n"), "1 match\n7  x\n");
        assert_eq!(present("OK FACET 2 2\r\nen\t10\r\nfra\t9\r\n"), "2 values\nen   10\nfra  9\n");
        assert_eq!(present("ERROR 3000 no"), "ERROR 3000 no\n");
        assert_eq!(
            present("OK DOC 7 name=\"a b\" year=1"),
            "key              7\nname             \"a b\"\nyear             1\n"
        );
        let debug = present("OK COUNT 1\r\n\r\n# DEBUG\r\nquery_time: 0.1ms");
        assert_eq!(debug, "1 match\n# DEBUG\nquery_time: 0.1ms\n");
    }
}
