//! Filters.
//!
//! ```text
//! filter     = column operator value                        ; `a = 1`, `a=1`, `a= 1`, `a GTE 1`
//!            | predicate | "(" or ")"                       ; Remora's own
//! or         = and { "OR" and }
//! and        = not { "AND" not }
//! not        = "NOT" not | "(" or ")" | predicate
//! predicate  = column operator value
//!            | column [ "NOT" ] "IN" "(" value { "," value } ")"
//!            | column [ "NOT" ] "BETWEEN" value "AND" value
//!            | column "IS" [ "NOT" ] "NULL"
//! ```

use remora_engine::{Comparison, Filter, Literal};

use super::{
    ParseLimits,
    words::{Word, Words, operator_at, operator_keyword, split_operator},
};
use crate::line::{
    LineError, code,
    token::{Token, Tokens},
};

/// The most bytes of a value.
pub(crate) const MAX_VALUE_BYTES: usize = 1024;
/// The most bytes of a column's name.
const MAX_COLUMN_BYTES: usize = 128;
/// The error for a filter with too few tokens.
const INCOMPLETE: &str = "FILTER requires column, operator, and value";

/// A filter and what it counts towards the limits.
pub(crate) struct ReadFilter {
    pub filter: Filter,
    /// The bytes of its columns and values.
    pub bytes: usize,
    /// The number of its conditions.
    pub conditions: usize,
}

/// Parses what follows FILTER.
pub(super) fn read(tokens: &mut Tokens, limits: &ParseLimits) -> Result<ReadFilter, LineError> {
    let mut reader = Reader { words: Words::new(tokens), limits, bytes: 0, conditions: 0 };
    let filter = match reader.words.tokens().rest() {
        [first, ..] if !limits.strict && !first.quoted && first.text.starts_with('(') => {
            reader.not(0)?
        }
        [_, second, ..] if !limits.strict && begins_predicate(second) => reader.predicate()?,
        _ => reader.comparison()?,
    };
    if reader.words.is_within_token() {
        return Err(error("Unexpected text behind FILTER: put a space behind it"));
    }
    Ok(ReadFilter { filter, bytes: reader.bytes, conditions: reader.conditions })
}

/// Parses a complete text as `or`.
pub(crate) fn read_expression(text: &str, limits: &ParseLimits) -> Result<ReadFilter, LineError> {
    let tokens = &mut Tokens::cut(text.as_bytes())?;
    let mut reader = Reader { words: Words::new(tokens), limits, bytes: 0, conditions: 0 };
    let filter = reader.or(0)?;
    match reader.words.next() {
        None => Ok(ReadFilter { filter, bytes: reader.bytes, conditions: reader.conditions }),
        found => Err(unexpected("AND or OR", found)),
    }
}

/// The comparison for a symbol or a keyword.
pub(crate) fn comparison_named(text: &str) -> Option<Comparison> {
    match operator_at(text, 0) {
        Some((comparison, length)) => (length == text.len()).then_some(comparison),
        None => operator_keyword(text),
    }
}

/// Checks that a column's name is short and consists of letters, digits and `_.$-`.
pub(crate) fn check_column(name: &str, limits: &ParseLimits) -> Result<(), LineError> {
    let fits = |char: char| {
        char.is_ascii_alphanumeric()
            || matches!(char, '_' | '.' | '$' | '-')
            || (!limits.strict && char.is_alphanumeric())
    };
    match name.len() {
        1..=MAX_COLUMN_BYTES if name.chars().all(fits) => Ok(()),
        1..=MAX_COLUMN_BYTES => Err(error(format!("Invalid column name: {name}"))),
        0 => Err(error("Column name is empty")),
        _ => Err(error(format!("Column name exceeds maximum length ({MAX_COLUMN_BYTES})"))),
    }
}

fn begins_predicate(token: &Token) -> bool {
    let is_list = || token.text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("IN("));
    token.is_any(&["IN", "NOT", "BETWEEN", "IS"]) || (!token.quoted && is_list())
}

struct Reader<'t, 'a> {
    words: Words<'t, 'a>,
    limits: &'t ParseLimits,
    bytes: usize,
    conditions: usize,
}

impl Reader<'_, '_> {
    /// MygramDB's form: the operands are whole tokens, so a value may contain any character.
    fn comparison(&mut self) -> Result<Filter, LineError> {
        let tokens = self.words.tokens();
        let first = tokens.next().ok_or_else(|| error(INCOMPLETE))?.clone();
        let split = if first.quoted { None } else { split_operator(&first.text) };
        if let Some((column, comparison, value)) = split.filter(|(column, ..)| !column.is_empty()) {
            return match value {
                "" => {
                    let value = tokens.next().ok_or_else(|| error(INCOMPLETE))?.clone();
                    self.compare(column, comparison, &value.text, value.quoted)
                }
                value => self.compare(column, comparison, value, false),
            };
        }
        let operator = tokens.next().ok_or_else(|| error(INCOMPLETE))?.clone();
        if let Some(comparison) = whole_operator(&operator) {
            let value = tokens.next().ok_or_else(|| error(INCOMPLETE))?.clone();
            return self.compare(&first.text, comparison, &value.text, value.quoted);
        }
        match split_operator(&operator.text) {
            Some(("", comparison, value)) if !operator.quoted => {
                self.compare(&first.text, comparison, value, false)
            }
            _ if tokens.is_done() => Err(error(INCOMPLETE)),
            _ => Err(error(format!("Invalid filter operator: {}", operator.text))),
        }
    }

    fn or(&mut self, depth: usize) -> Result<Filter, LineError> {
        let mut operands = vec![self.and(depth)?];
        while self.words.eat_keyword("OR") {
            operands.push(self.and(depth)?);
        }
        Ok(combined(operands, Filter::Or))
    }

    fn and(&mut self, depth: usize) -> Result<Filter, LineError> {
        let mut operands = vec![self.not(depth)?];
        while self.words.eat_keyword("AND") {
            operands.push(self.not(depth)?);
        }
        Ok(combined(operands, Filter::And))
    }

    fn not(&mut self, depth: usize) -> Result<Filter, LineError> {
        if depth > self.limits.max_depth {
            let max = self.limits.max_depth;
            return Err(error(format!("FILTER is nested too deeply (max {max})")));
        }
        if self.words.eat_keyword("NOT") {
            return Ok(Filter::Not(Box::new(self.not(depth + 1)?)));
        }
        if self.words.eat(&Word::Open) {
            let inner = self.or(depth + 1)?;
            return self.expect(&Word::Close).map(|()| inner);
        }
        self.predicate()
    }

    fn predicate(&mut self) -> Result<Filter, LineError> {
        let column = match self.words.next() {
            Some(Word::Text { text, .. }) => text,
            other => return Err(unexpected("a column", other)),
        };
        match self.words.next() {
            Some(Word::Operator(comparison)) => self.compare_word(&column, comparison),
            Some(word) => match word.keyword_operator() {
                Some(comparison) => self.compare_word(&column, comparison),
                None if word.is("NOT") => {
                    let word = self.words.next();
                    let inner = self.list_or_range(column, word)?;
                    Ok(Filter::Not(Box::new(inner)))
                }
                None if word.is("IS") => self.null_test(column),
                None => self.list_or_range(column, Some(word)),
            },
            None => Err(error(INCOMPLETE)),
        }
    }

    fn compare_word(&mut self, column: &str, comparison: Comparison) -> Result<Filter, LineError> {
        match self.words.next() {
            Some(Word::Text { text, quoted }) => self.compare(column, comparison, &text, quoted),
            other => Err(unexpected("a value", other)),
        }
    }

    fn list_or_range(
        &mut self,
        column: String,
        keyword: Option<Word>,
    ) -> Result<Filter, LineError> {
        match keyword {
            Some(word) if word.is("IN") => {
                self.count(&column)?;
                self.expect(&Word::Open)?;
                let mut values = vec![self.value()?];
                while self.words.eat(&Word::Comma) {
                    values.push(self.value()?);
                }
                self.expect(&Word::Close)?;
                Ok(Filter::In(column, values))
            }
            Some(word) if word.is("BETWEEN") => {
                self.count(&column)?;
                let low = self.value()?;
                if !self.words.eat_keyword("AND") {
                    return Err(unexpected("AND", self.words.next()));
                }
                Ok(Filter::Between(column, low, self.value()?))
            }
            other => Err(unexpected("an operator", other)),
        }
    }

    fn null_test(&mut self, column: String) -> Result<Filter, LineError> {
        self.count(&column)?;
        let is_not = self.words.eat_keyword("NOT");
        if !self.words.eat_keyword("NULL") {
            return Err(unexpected("NULL", self.words.next()));
        }
        Ok(if is_not { Filter::IsNotNull(column) } else { Filter::IsNull(column) })
    }

    fn compare(
        &mut self,
        column: &str,
        comparison: Comparison,
        value: &str,
        quoted: bool,
    ) -> Result<Filter, LineError> {
        self.count(column)?;
        let is_bare = !quoted || self.limits.strict;
        if is_bare && value.starts_with(['=', '<', '>', '!']) {
            return Err(error(format!("Invalid filter value: {value}")));
        }
        let literal = self.literal(value)?;
        Ok(Filter::Compare { column: column.to_owned(), comparison, literal })
    }

    fn expect(&mut self, wanted: &Word) -> Result<(), LineError> {
        if self.words.eat(wanted) {
            return Ok(());
        }
        Err(unexpected(wanted.shown(), self.words.next()))
    }

    fn value(&mut self) -> Result<Literal, LineError> {
        match self.words.next() {
            Some(Word::Text { text, .. }) => self.literal(&text),
            other => Err(unexpected("a value", other)),
        }
    }

    fn literal(&mut self, value: &str) -> Result<Literal, LineError> {
        if value.len() > MAX_VALUE_BYTES {
            let message = format!("FILTER value exceeds maximum length ({MAX_VALUE_BYTES})");
            return Err(error(message));
        }
        self.bytes += value.len();
        Ok(Literal::Text(value.to_owned()))
    }

    fn count(&mut self, column: &str) -> Result<(), LineError> {
        check_column(column, self.limits)?;
        self.bytes += column.len();
        self.conditions += 1;
        Ok(())
    }
}

fn whole_operator(token: &Token) -> Option<Comparison> {
    if token.quoted { None } else { comparison_named(&token.text) }
}

fn combined(mut operands: Vec<Filter>, operator: fn(Vec<Filter>) -> Filter) -> Filter {
    match operands.pop() {
        Some(only) if operands.is_empty() => only,
        last => {
            operands.extend(last);
            operator(operands)
        }
    }
}

fn unexpected(wanted: &str, found: Option<Word>) -> LineError {
    match found {
        Some(word) => error(format!("FILTER expects {wanted} before: {}", word.shown())),
        None => error(format!("FILTER expects {wanted} at its end")),
    }
}

fn error(message: impl Into<String>) -> LineError {
    LineError::new(code::FILTER, message)
}
