//! Parses SORT.

use remora_engine::{SortBy, SortKey};

use super::keywords::begins_clause;
use crate::line::{
    LineError, code,
    token::{Token, Tokens},
};

/// The most sort columns.
const MAX_SORT_KEYS: usize = 16;
/// The error for several sort columns in MygramDB's dialect.
const SINGLE_SORT: &str = "Multiple column sorting is not supported. Sort by a single column only.";
/// The error for a missing comma between sort columns.
const SORT_COMMA: &str = "SORT takes a column and ASC or DESC; put commas between several";

/// `[BY] [column] [ASC|DESC]`, and more of them after commas. `strict`: in MygramDB's dialect.
pub(super) fn read(tokens: &mut Tokens, strict: bool) -> Result<Vec<SortKey>, LineError> {
    tokens.eat("BY");
    let keys = sort_words(tokens, strict);
    if keys.len() > 1 && strict {
        return Err(sort_error(SINGLE_SORT));
    }
    if keys.len() > MAX_SORT_KEYS {
        return Err(sort_error(format!("Too many sort columns (max {MAX_SORT_KEYS})")));
    }
    let surplus = if strict { SINGLE_SORT } else { SORT_COMMA };
    keys.iter().map(|words| sort_key(words, surplus)).collect()
}

/// The words up to the next clause, split at commas.
fn sort_words<'a>(tokens: &mut Tokens<'a>, strict: bool) -> Vec<Vec<Token<'a>>> {
    let mut keys = vec![Vec::new()];
    while let Some(token) = tokens.peek().filter(|token| !begins_clause(token, strict)).cloned() {
        tokens.skip(1);
        if token.quoted {
            keys.last_mut().into_iter().for_each(|words| words.push(token.clone()));
            continue;
        }
        for (at, piece) in token.text.split(',').enumerate() {
            if at > 0 {
                keys.push(Vec::new());
            }
            let word = Token { text: piece.to_owned().into(), quoted: false };
            let words = keys.last_mut().filter(|_| !piece.is_empty());
            words.into_iter().for_each(|words| words.push(word.clone()));
        }
    }
    keys
}

fn sort_key(words: &[Token], surplus: &str) -> Result<SortKey, LineError> {
    let (by, rest) = match words {
        [first, ..] if direction(first).is_some() => (SortBy::Key, words),
        [column, rest @ ..] if column.is("_score") => (SortBy::Score, rest),
        [column, rest @ ..] => (SortBy::Column(column.text.to_string()), rest),
        [] => return Err(sort_error("SORT requires a column name or ASC/DESC")),
    };
    let descending = match rest {
        [] => Some(true),
        [only] => direction(only),
        _ => None,
    };
    let descending = descending.ok_or_else(|| sort_error(surplus))?;
    Ok(SortKey { by, descending })
}

/// Whether a direction is descending.
fn direction(token: &Token) -> Option<bool> {
    if token.is("DESC") {
        return Some(true);
    }
    token.is("ASC").then_some(false)
}

fn sort_error(message: impl Into<String>) -> LineError {
    LineError::new(code::SORT, message)
}
