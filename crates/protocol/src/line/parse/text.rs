//! Parses the text of a query: a literal, or a boolean expression.

use remora_engine::TextQuery;

use super::{
    ParseLimits, expression,
    lexeme::{Lexeme, lexemes},
};
use crate::line::{
    LineError,
    token::{Token, Tokens},
};

/// Keywords that end a text. AND, OR and NOT may be part of it.
const ENDS: [&str; 7] = ["FILTER", "SORT", "LIMIT", "OFFSET", "HIGHLIGHT", "FUZZY", "FACET"];

/// Remora's keywords, which end a text only in upper case: for MygramDB `life after death` is a
/// text.
const REMORA_ENDS: [&str; 3] = ["FIELDS", "AFTER", "CURSOR"];

/// The error for ORDER BY.
pub(super) const ORDER_BY: &str =
    "ORDER BY is not supported. Use SORT instead. Example: SEARCH table text SORT column DESC";

/// A text.
pub(crate) struct ReadText {
    pub query: TextQuery,
    /// The bytes that count towards the limit of a query.
    pub bytes: usize,
}

/// Parses the text; `None` if a clause stands in its place. As in MygramDB, OR or NOT without a
/// term is itself the text.
pub(super) fn read(
    tokens: &mut Tokens,
    limits: &ParseLimits,
    command: &str,
) -> Result<Option<ReadText>, LineError> {
    let extent = extent(tokens.rest(), limits)?;
    let region = tokens.rest().get(..extent).unwrap_or_default();
    let lexemes: Vec<Lexeme> = region.iter().flat_map(lexemes).collect();
    check_parentheses(&lexemes)?;
    let is_bare = limits.strict && matches!(lexemes[..], [Lexeme::Or | Lexeme::Not]);
    let is_expression = is_expression(&lexemes) && !is_bare;
    let is_operator = |token: &Token| token.is("AND") || token.is("NOT");
    let length = match region.iter().position(is_operator) {
        Some(operator) if !is_expression && !is_bare => operator,
        _ => extent,
    };
    let text = joined(region.get(..length).unwrap_or_default());
    if length > 0 && text.is_empty() {
        return Err(LineError::syntax(format!("{command} requires non-empty search text")));
    }
    let read = match length {
        0 => None,
        _ if is_expression => {
            let query = expression::parse(&lexemes, limits)?;
            Some(ReadText { query, bytes: text.len() })
        }
        _ => Some(ReadText { bytes: text.len(), query: TextQuery::Term(text) }),
    };
    tokens.skip(length);
    Ok(read)
}

/// Parses a complete text as an expression.
pub(crate) fn read_expression(text: &str, limits: &ParseLimits) -> Result<TextQuery, LineError> {
    let tokens = Tokens::cut(text.as_bytes())?;
    let lexemes: Vec<Lexeme> = tokens.rest().iter().flat_map(lexemes).collect();
    check_parentheses(&lexemes)?;
    expression::parse(&lexemes, limits)
}

/// The number of tokens before the first keyword that ends a text, outside parentheses.
fn extent(tokens: &[Token], limits: &ParseLimits) -> Result<usize, LineError> {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        if depth == 0 && token.is("ORDER") && tokens.get(at + 1).is_some_and(|by| by.is("BY")) {
            return Err(LineError::syntax(ORDER_BY));
        }
        if depth == 0 && ends_text(token, limits) {
            return Ok(at);
        }
        if !token.quoted {
            depth += depth_change(&token.text);
        }
    }
    Ok(tokens.len())
}

fn ends_text(token: &Token, limits: &ParseLimits) -> bool {
    let is_own = || REMORA_ENDS.iter().any(|keyword| token.text == *keyword);
    token.is_any(&ENDS) || (!limits.strict && !token.quoted && is_own())
}

fn depth_change(text: &str) -> isize {
    let change = |byte| match byte {
        b'(' => 1,
        b')' => -1,
        _ => 0,
    };
    text.bytes().map(change).sum()
}

fn check_parentheses(lexemes: &[Lexeme]) -> Result<(), LineError> {
    let mut depth = 0usize;
    for lexeme in lexemes {
        match lexeme {
            Lexeme::Open => depth += 1,
            Lexeme::Close => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return Err(LineError::syntax("Unmatched closing parenthesis")),
            },
            _ => (),
        }
    }
    match depth {
        0 => Ok(()),
        _ => Err(LineError::syntax("Unclosed parenthesis")),
    }
}

/// Whether AND and NOT belong to the text. They do if it has an OR, an operator within parentheses,
/// a parenthesis after an operator, or a NOT at its beginning.
fn is_expression(lexemes: &[Lexeme]) -> bool {
    let mut depth = 0usize;
    let mut previous = None;
    for lexeme in lexemes {
        let behind_operator = matches!(previous, Some(Lexeme::And | Lexeme::Not));
        match lexeme {
            Lexeme::Or => return true,
            Lexeme::And if depth > 0 => return true,
            Lexeme::Not if depth > 0 || previous.is_none() => return true,
            Lexeme::Open if behind_operator => return true,
            Lexeme::Open => depth += 1,
            Lexeme::Close => depth = depth.saturating_sub(1),
            _ => (),
        }
        previous = Some(*lexeme);
    }
    false
}

/// Joins the tokens with a space, except inside unquoted parentheses.
fn joined(tokens: &[Token]) -> String {
    let mut text = String::with_capacity(tokens.iter().map(|token| token.text.len() + 1).sum());
    let mut behind_open = true;
    for token in tokens {
        let before_close = !token.quoted && token.text.starts_with(')');
        if !behind_open && !before_close {
            text.push(' ');
        }
        text.push_str(&token.text);
        behind_open = !token.quoted && token.text.ends_with('(');
    }
    text
}
