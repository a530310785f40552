//! Refuses syntax that the parser accepts and MySQL does not, by its tokens.

use remora_mysql::TokenKind;

use super::Source;
use crate::{Error, Result};

/// Words before a query.
const BEFORE_QUERY: [&str; 8] =
    ["ALL", "AS", "DISTINCT", "EXCEPT", "FROM", "INTERSECT", "JOIN", "UNION"];
/// Words before an item of a SELECT.
const BEFORE_ITEM: [&str; 4] = ["ALL", "DISTINCT", "DISTINCTROW", "SELECT"];
/// Literals that look like a column's name.
const LITERALS: [&str; 3] = ["NULL", "TRUE", "FALSE"];

/// Error 1064 for syntax that MySQL does not have, 1235 for syntax that only its other storage engines support.
pub(super) fn check(source: &Source, at: usize) -> Result<()> {
    let is = |word: &str| source.is_word(at, word);
    // Stored texts may have MariaDB's syntax, which is understood. Unsupported GROUP BY forms are refused all the same.
    if source.is_kept && !is("WITH") && !is("GROUP") {
        return Ok(());
    }
    if is("VALUES") {
        return values(source, at);
    }
    if source.is(at, "(") && source.is(at + 1, "*") && source.is(at + 2, ")") {
        return every_row(source, at);
    }
    if is("TABLE")
        && let Some(end) = table_query(source, at)
        && !ends_table_query(source, end)
    {
        return Err(source.syntax_error(end));
    }
    if is("LIMIT") && source.is_word(at + 1, "ALL") {
        return Err(source.syntax_error(at + 1));
    }
    if is("FETCH") && ["FIRST", "NEXT"].iter().any(|word| source.is_word(at + 1, word)) {
        return Err(source.syntax_error(at));
    }
    let behind_offset = at >= 2 && source.is_word(at - 2, "OFFSET");
    if behind_offset && is_offset(source, at - 2) && (is("ROW") || is("ROWS")) {
        return Err(source.syntax_error(at));
    }
    let is_named = source.is_word(at + 2, "AS") || source.is(at + 2, "(");
    if is("WITH") && source.is_word(at + 1, "CUBE") && !is_named {
        return Err(source.syntax_error(at));
    }
    if is("GROUP") && source.is_word(at + 1, "BY") {
        let by = |words: &[&str]| {
            words.iter().enumerate().all(|(nth, word)| source.is_word(at + 2 + nth, word))
        };
        if by(&["CUBE"]) && source.is(at + 3, "(") {
            return Err(Error::unsupported("GROUP BY CUBE"));
        }
        if by(&["GROUPING", "SETS"]) && source.is(at + 4, "(") {
            return Err(Error::unsupported("GROUP BY GROUPING SETS"));
        }
    }
    Ok(())
}

/// Whether this is `TABLE t`, a query.
pub(super) fn is_table_query(source: &Source, at: usize) -> bool {
    table_query(source, at).is_some_and(|end| ends_table_query(source, end))
}

/// The end of `TABLE name` here.
fn table_query(source: &Source, at: usize) -> Option<usize> {
    let is_name = |at: usize| {
        let kind = source.tokens.get(at).map(|token| token.kind);
        matches!(kind, Some(TokenKind::Word | TokenKind::Quoted))
    };
    let is_qualified = || at.checked_sub(1).is_some_and(|before| source.is(before, "."));
    if !source.is_word(at, "TABLE") || is_qualified() || !is_name(at + 1) {
        return None;
    }
    match source.is(at + 2, ".") && is_name(at + 3) {
        true => Some(at + 4),
        false => Some(at + 2),
    }
}

/// Whether what follows `TABLE name` does not belong to it.
fn ends_table_query(source: &Source, end: usize) -> bool {
    const WORDS: [&str; 9] =
        ["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT", "INTO", "FOR", "LOCK", "ON"];
    source.tokens.get(end).is_none()
        || source.is(end, ")")
        || source.is(end, ";")
        || WORDS.iter().any(|word| source.is_word(end, word))
}

/// Whether this OFFSET follows LIMIT and a number. Anywhere else it is a name.
pub(super) fn is_offset(source: &Source, at: usize) -> bool {
    at >= 2 && source.is_word(at - 2, "LIMIT")
}

/// `(*)` is allowed as the argument of a function only.
fn every_row(source: &Source, open: usize) -> Result<()> {
    let before = open.checked_sub(1).and_then(|before| source.tokens.get(before));
    let is_name = before.is_some_and(|token| {
        let is_word = |word: &&str| token.is_word(&source.text, word);
        matches!(token.kind, TokenKind::Word | TokenKind::Quoted)
            && !BEFORE_ITEM.iter().any(is_word)
    });
    if is_name { Ok(()) } else { Err(source.syntax_error(open + 1)) }
}

/// `VALUES ROW(…), ROW(…)`: each row says so. `VALUES(column)` is a function.
fn values(source: &Source, at: usize) -> Result<()> {
    if source.is_word(at + 1, "ROW") {
        return rows(source, at + 1);
    }
    if !source.is(at + 1, "(") {
        return Ok(());
    }
    let Some(before) = at.checked_sub(1) else { return Err(source.syntax_error(at + 1)) };
    let is_query = |at: usize| BEFORE_QUERY.iter().any(|word| source.is_word(at, word));
    let in_parentheses = source.is(before, "(");
    if is_query(before) || source.is(before, ")") {
        return if is_of_column(source, at + 1) {
            Ok(())
        } else {
            Err(source.syntax_error(at + 1))
        };
    }
    if !in_parentheses || is_of_column(source, at + 1) {
        return Ok(());
    }
    // Where an expression is expected it is the function, whose argument is a column.
    let begins = before.checked_sub(1).is_none_or(|place| is_query(place) || source.is(place, "("));
    Err(source.syntax_error(if begins { at + 1 } else { at + 2 }))
}

/// Whether the parentheses hold a column's name alone.
fn is_of_column(source: &Source, open: usize) -> bool {
    let is_name = |at: usize| {
        let is_word = source
            .tokens
            .get(at)
            .is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::Quoted));
        is_word && !LITERALS.iter().any(|word| source.is_word(at, word))
    };
    let mut at = open + 1;
    while is_name(at) && source.is(at + 1, ".") {
        at += 2;
    }
    is_name(at) && source.is(at + 1, ")")
}

fn rows(source: &Source, mut at: usize) -> Result<()> {
    loop {
        if !source.is_word(at, "ROW") {
            return Err(source.syntax_error(at));
        }
        match closing(source, at + 1) {
            Some(end) if source.is(end + 1, ",") => at = end + 2,
            _ => return Ok(()),
        }
    }
}

/// The parenthesis that closes the one here.
pub(super) fn closing(source: &Source, at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    (at..source.tokens.len()).find(|&place| {
        depth += usize::from(source.is(place, "("));
        let closes = source.is(place, ")");
        depth = depth.saturating_sub(usize::from(closes));
        closes && depth == 0
    })
}
