//! Field limits: `@title`, `@(title,body)`, `@!title`, `@*`, `@title[5]`.

use super::tree::{FieldMask, Limit};
use crate::{Result, WordsError};

/// A field limit.
pub(super) struct Fields {
    /// The limit; `None` if the `@` has no effect.
    pub limit: Option<Limit>,
    /// The place at which the text continues.
    pub end: usize,
    /// The last unknown field name, if the query is relaxed.
    pub unknown: Option<String>,
}

/// Parses a field limit from `start`, after the `@`.
///
/// # Errors
/// [`WordsError::Query`] if a name is no field, unless the query `is_relaxed`, or if a list is not closed.
pub(super) fn parse(
    text: &str,
    start: usize,
    names: &[String],
    is_relaxed: bool,
) -> Result<Fields> {
    let rest = text.get(start..).unwrap_or("");
    let is_negated = rest.starts_with('!');
    let rest = rest.strip_prefix('!').unwrap_or(rest);
    let at = text.len() - rest.len();
    if rest.starts_with('*') {
        let limit = (!is_negated).then_some(Limit::NONE);
        return Ok(Fields { limit, end: at + 1, unknown: None });
    }
    let mut reader = Reader { names, is_relaxed, mask: FieldMask::NONE, unknown: None };
    let end = if rest.starts_with('(') {
        match reader.list(text, at + 1)? {
            Some(end) => end,
            None => return Ok(Fields { limit: None, end: at + 1, unknown: None }),
        }
    } else {
        let length = name_length(rest);
        if length == 0 {
            return Ok(Fields { limit: None, end: at, unknown: None });
        }
        reader.name(&rest[..length])?;
        at + length
    };
    let Reader { mask, unknown, .. } = reader;
    let fields = if is_negated { mask.complement() } else { mask };
    let (last_position, end) = last_position(text, end);
    Ok(Fields { limit: Some(Limit { fields, last_position }), end, unknown })
}

struct Reader<'a> {
    names: &'a [String],
    is_relaxed: bool,
    mask: FieldMask,
    unknown: Option<String>,
}

impl Reader<'_> {
    /// Parses names up to the `)`; returns where that ends, or `None` if no name follows the `(`.
    fn list(&mut self, text: &str, start: usize) -> Result<Option<usize>> {
        let (mut at, mut names) = (start, Vec::new());
        loop {
            let rest = &text[at..];
            let length = name_length(rest);
            if length == 0 {
                return if at == start { Ok(None) } else { Err(bad_list(rest)) };
            }
            names.push(&rest[..length]);
            at += length;
            match text[at..].chars().next() {
                Some(',') => at += 1,
                Some(')') => break,
                Some(other) => return Err(invalid_character(other)),
                None => return Err(missing_closing()),
            }
        }
        names.into_iter().try_for_each(|name| self.name(name))?;
        Ok(Some(at + 1))
    }

    fn name(&mut self, name: &str) -> Result<()> {
        let is_it = |field: &String| field.eq_ignore_ascii_case(name);
        match self.names.iter().position(is_it).and_then(|place| u8::try_from(place).ok()) {
            Some(field) => self.mask.insert(field),
            None if self.is_relaxed => self.unknown = Some(name.to_owned()),
            None => return Err(error(unknown_field(name))),
        }
        Ok(())
    }
}

/// The error for a list that continues with `rest` after a comma.
fn bad_list(rest: &str) -> WordsError {
    if rest.is_empty() {
        return missing_closing();
    }
    error(format!("query error: invalid field block operator syntax near '{rest}'"))
}

/// The message for an unknown field: an error, or, after `query warning: `, a warning.
fn unknown_field(name: &str) -> String {
    format!("query error: no field '{name}' found in schema")
}

fn missing_closing() -> WordsError {
    error("query error: missing closing ')' in field block operator")
}

fn invalid_character(character: char) -> WordsError {
    error(format!("query error: invalid character '{character}' in field block operator"))
}

fn error(message: impl Into<String>) -> WordsError {
    WordsError::Query(message.into())
}

/// The length in bytes of the name at the start of the text.
fn name_length(text: &str) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.find(|c| !is_name(c)).unwrap_or(text.len())
}

/// The position in `[5]`, before which a space may stand, and where the text continues; 0 and `end` if there is none.
fn last_position(text: &str, start: usize) -> (u32, usize) {
    let end = start + usize::from(text[start..].starts_with(" ["));
    let Some(rest) = text[end..].strip_prefix('[') else { return (0, start) };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    if digits == 0 || !rest[digits..].starts_with(']') {
        return (0, start);
    }
    // Overflow wraps, as in Sphinx.
    let number = rest[..digits]
        .bytes()
        .fold(0u32, |number, digit| number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
    (number, end + 1 + digits + 1)
}
