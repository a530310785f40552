//! Expressions stored with a table. The text is respelled so that the default `sql_mode` reads it
//! as the session's mode read the original. It then means the same in any session and after a
//! restart. Its tree is parsed by the entry for statements.

use std::ops::Range;

use datafusion::sql::sqlparser::ast::{Expr, Query, TableWithJoins};
use remora_mysql::{LexMode, Token, TokenKind};

use crate::{
    Error, Result,
    blocking::run_blocking_if_long,
    parse::{
        Source, Tokens, read, tokens,
        write::{expressions, query_of_items},
    },
};

/// Consumes `( … )` and returns the expression in between.
pub(super) fn parenthesised(tokens: &mut Tokens<'_>) -> Result<String> {
    tokens.need("(")?;
    let range = tokens.skip_until(|tokens| tokens.is(")"))?;
    tokens.need(")")?;
    respelled(tokens, range)
}

/// The text of some tokens in the default mode. Texts get single quotes, which no mode reads as a
/// name.
pub(super) fn respelled(tokens: &Tokens<'_>, range: Range<usize>) -> Result<String> {
    let mut ahead = tokens.within(range.clone());
    let mut out = String::new();
    let mut before = TokenClass::Other;
    while let Some(token) = ahead.peek() {
        let place = ahead.place();
        let gap = if place > range.start { tokens.gap_before(place) } else { String::new() };
        let (spelled, word) = spelled(&ahead, token, before)?;
        let is_blank = gap.bytes().all(|byte| byte.is_ascii_whitespace());
        match (is_blank, gap.is_empty()) {
            // Two adjacent texts would be read as one with a quote in it.
            (_, true) if before.needs_space(spelled) => out.push(' '),
            (true, _) => out.push_str(&gap),
            // A comment becomes a space.
            (false, _) => out.push(' '),
        }
        out.push_str(&word);
        before = spelled;
        ahead.next();
    }
    Ok(out)
}

/// The class of a token that decides whether a space must follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenClass {
    Text,
    /// `_utf8mb4` and the like. Texts in wide character sets have at least two bytes per character.
    Introducer {
        is_wide: bool,
    },
    Other,
}

impl TokenClass {
    /// Whether a space must separate this token from the next one.
    fn needs_space(self, next: Self) -> bool {
        self == Self::Text && next == Self::Text
    }
}

/// The spelling of a token in the default mode.
fn spelled(at: &Tokens<'_>, token: &Token, before: TokenClass) -> Result<(TokenClass, String)> {
    let mode = at.mode();
    let refused =
        |what: &str| Err(Error::unsupported(format!("{what} in what is stored with a table")));
    let bytes = at.bytes(token);
    match token.kind {
        TokenKind::Quoted => {
            let name = at.text_of(token);
            let Ok(name) = String::from_utf8(name) else {
                return refused("a name that is no text");
            };
            Ok((TokenClass::Other, quoted_name(&name)))
        }
        TokenKind::Text | TokenKind::National => {
            let is_ascii = bytes.is_ascii();
            if let TokenClass::Introducer { is_wide } = before
                && !mode.client.is_utf8()
                && (is_wide || !is_ascii)
            {
                return refused("a text with a character set, of a client whose own is not UTF-8,");
            }
            let Ok(text) = String::from_utf8(at.text_of(token)) else {
                return refused("bytes in quotes that are no text, which x'…' can have,");
            };
            let prefix = if token.kind == TokenKind::National { "N" } else { "" };
            Ok((TokenClass::Text, format!("{prefix}{}", quoted_text(&text))))
        }
        TokenKind::Operator if at.is("||") && mode.pipes_as_concat => {
            refused("|| under PIPES_AS_CONCAT, for which CONCAT can be written,")
        }
        TokenKind::Word if mode.high_not && at.is_prefix_not(at.place()) => {
            Ok((TokenClass::Other, "!".to_owned()))
        }
        _ => {
            let Ok(word) = std::str::from_utf8(bytes) else {
                return refused("a name that is no text");
            };
            let spelled = match token.kind == TokenKind::Word && word.starts_with('_') {
                true => TokenClass::Introducer { is_wide: is_wide(word) },
                false => TokenClass::Other,
            };
            Ok((spelled, word.to_owned()))
        }
    }
}

/// A text as an SQL literal.
pub(crate) fn quoted_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for character in text.chars() {
        match character {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

/// A name in backquotes.
pub(crate) fn quoted_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Whether a text is one expression in parentheses.
pub(crate) fn is_parenthesised(text: &str) -> bool {
    let whole = read(text, |tokens| {
        tokens.parenthesised()?;
        tokens.expect_end()
    });
    text.starts_with('(') && whole.is_ok()
}

/// The syntax tree of a stored expression; `None` if it is not understood here.
pub(crate) fn stored_expression(expression: &str) -> Option<Expr> {
    let text = format!("({})", as_asked(expression)?);
    parsed_expression(&text).ok().map(|(expr, _)| expr)
}

/// The syntax tree of an expression that is stored with a table, and the text in which its places are. An earlier version
/// may have written it, so it is read leniently.
///
/// # Errors
/// 1064 if it is not an expression.
pub(crate) fn parsed_expression(text: &str) -> Result<(Expr, Source)> {
    let (text, mode) = (text.as_bytes().to_vec(), LexMode::default());
    let read = tokens(&text, mode)?;
    let source = Source { is_kept: true, ..Source::new(text, read, mode) };
    let all = 0..source.tokens.len();
    let expr = expressions(&source, &[(all, &[])])?.pop();
    Ok((expr.ok_or_else(|| source.syntax_error(0))?, source))
}

/// The SELECT of stored expressions from a table, and the text in which its places are. It is always read in the default
/// mode, in which they were written and checked.
///
/// # Errors
/// 1064 if they are no expressions.
pub(crate) fn query_of_stored(
    expressions: &[impl AsRef<str>],
    from: TableWithJoins,
) -> Result<(Query, Source)> {
    let texts: Vec<&str> = expressions.iter().map(AsRef::as_ref).collect();
    let (text, mode) = (texts.join(",").into_bytes(), LexMode::default());
    let read = tokens(&text, mode)?;
    let source = Source::new(text, read, mode);
    let items = 0..source.tokens.len();
    let parse = || query_of_items(&source, items, &[], vec![from]);
    let query = run_blocking_if_long(source.is_long(), parse)?;
    Ok((query, source))
}

/// An expression without the character sets that MySQL's SHOW CREATE TABLE adds to each text and CAST. Those that are
/// not Unicode stay.
fn as_asked(expression: &str) -> Option<String> {
    let asked = read(expression, |tokens| {
        let mut asked = String::with_capacity(expression.len());
        while !tokens.at_end() {
            let place = tokens.place();
            if !passes_charset(tokens) {
                asked.push_str(&tokens.gap_before(place));
                asked.push_str(&tokens.shown(place..place + 1));
                tokens.next();
            }
        }
        Ok(asked)
    });
    asked.ok()
}

/// Skips a character set if one is next.
fn passes_charset(tokens: &mut Tokens<'_>) -> bool {
    let mut ahead = *tokens;
    let is_introducer = ahead.accept_any(&["_utf8mb4", "_utf8mb3", "_utf8"]) && ahead.is_text();
    let mut behind = *tokens;
    let is_of_cast = (behind.accept("CHARSET") || behind.accept_all("CHARACTER SET"))
        && behind.accept("utf8mb4")
        && behind.is(")");
    match (is_introducer, is_of_cast) {
        (true, _) => *tokens = ahead,
        (_, true) => *tokens = behind,
        _ => {}
    }
    is_introducer || is_of_cast
}

/// Whether a character set is not a superset of ASCII.
fn is_wide(introducer: &str) -> bool {
    let wide = ["_utf16", "_utf16le", "_utf32", "_ucs2"];
    wide.iter().any(|name| introducer.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use remora_mysql::{Comments, SqlMode};

    use super::*;

    fn kept(mode: &str, expression: &str) -> String {
        let mode = SqlMode::parse(mode).unwrap();
        let mode = LexMode::of_sql_mode(mode, LexMode::default().client, Comments::default());
        let all = tokens(expression.as_bytes(), mode).unwrap();
        let made = parenthesised(&mut Tokens::new(expression.as_bytes(), &all, mode));
        made.unwrap_or_else(|error| error.message)
    }

    #[test]
    fn what_the_default_mode_reads_alike_stays_as_it_is_written() {
        for expression in
            ["a > 1  and `b``c` <> 'it''s'", "lower(`n`)", "_utf8mb4'x' = N'y'", "not a"]
        {
            assert_eq!(kept("", &format!("({expression})")), expression);
        }
    }

    #[test]
    fn what_depends_on_the_mode_is_spelled_for_the_default_one() {
        for (mode, expression, expected) in [
            ("", r#"(a = "it's" or b = "\\")"#, r"a = 'it''s' or b = '\\'"),
            ("", "(a||b)", "a||b"),
            ("", r#"(a = 'x'"y" 'z')"#, "a = 'x' 'y' 'z'"),
            ("", "(a /* 'x' */ > 1 /*!80000 and b > 2 */)", "a > 1 and b > 2"),
            ("ANSI_QUOTES", r#"("a`b""c" = 'x"y')"#, r#"`a``b"c` = 'x"y'"#),
            ("NO_BACKSLASH_ESCAPES", r"(a = '\' or b = 'c\n')", r"a = '\\' or b = 'c\\n'"),
            ("NO_BACKSLASH_ESCAPES", r#"(a = "\""")"#, r#"a = '\\"'"#),
            ("HIGH_NOT_PRECEDENCE", "(not a between 1 and 2)", "! a between 1 and 2"),
            (
                "HIGH_NOT_PRECEDENCE",
                "(a not in (1) and b is not null)",
                "a not in (1) and b is not null",
            ),
        ] {
            assert_eq!(kept(mode, expression), expected, "{mode}: {expression}");
        }
        let refused = kept("PIPES_AS_CONCAT", "(a || b)");
        assert!(refused.contains("CONCAT can be written"), "{refused}");
    }
}
