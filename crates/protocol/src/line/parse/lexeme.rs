//! The tokens of a text with operators: words, AND, OR, NOT and parentheses.

use crate::line::token::Token;

/// A token of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lexeme<'a> {
    Open,
    Close,
    And,
    Or,
    Not,
    Term(&'a str),
}

/// The pieces of a token: a quoted token is a term, others are split at parentheses.
pub(super) fn lexemes<'a>(token: &'a Token) -> impl Iterator<Item = Lexeme<'a>> {
    let mut rest = (!token.text.is_empty() || token.quoted).then_some(&*token.text);
    std::iter::from_fn(move || {
        let text = rest?;
        if token.quoted {
            rest = None;
            return Some(Lexeme::Term(text));
        }
        let end = match text.find(['(', ')']) {
            Some(0) => 1,
            Some(end) => end,
            None => text.len(),
        };
        let (piece, after) = text.split_at_checked(end)?;
        rest = Some(after).filter(|after| !after.is_empty());
        Some(bare_lexeme(piece))
    })
}

fn bare_lexeme(piece: &str) -> Lexeme<'_> {
    match piece {
        "(" => Lexeme::Open,
        ")" => Lexeme::Close,
        word if word.eq_ignore_ascii_case("AND") => Lexeme::And,
        word if word.eq_ignore_ascii_case("OR") => Lexeme::Or,
        word if word.eq_ignore_ascii_case("NOT") => Lexeme::Not,
        word => Lexeme::Term(word),
    }
}
