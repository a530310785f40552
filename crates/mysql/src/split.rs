//! The statements of a text.

use std::ops::Range;

use crate::{LexMode, Lexer, Token, Unterminated};

/// A statement within a text.
#[derive(Debug)]
pub struct StatementTokens {
    /// Its bytes in the text.
    pub text: Range<usize>,
    /// Its tokens, at least one. Their offsets are from its own beginning.
    pub tokens: Vec<Token>,
}

/// The statements of a text, without empty ones. If `many` is not set, it is one: a second one is left where it is, for
/// the parser to complain of.
///
/// # Errors
/// [`Unterminated`] if quotes or a comment do not end.
pub fn split(text: &[u8], many: bool, mode: LexMode) -> Result<Vec<StatementTokens>, Unterminated> {
    let mut lexer = Lexer::new(text, mode);
    let mut statements = Vec::new();
    let mut tokens = Vec::new();
    let mut begin = 0;
    while let Some(token) = lexer.next()? {
        if many && token.is(text, ";") {
            finish(begin..token.start, &mut tokens, &mut statements);
            begin = token.end;
        } else {
            tokens.push(token);
        }
    }
    if !many && tokens.last().is_some_and(|token| token.is(text, ";")) {
        tokens.pop();
    }
    finish(begin..text.len(), &mut tokens, &mut statements);
    Ok(statements)
}

fn finish(text: Range<usize>, tokens: &mut Vec<Token>, statements: &mut Vec<StatementTokens>) {
    if tokens.is_empty() {
        return;
    }
    let mut tokens = std::mem::take(tokens);
    for token in &mut tokens {
        token.start -= text.start;
        token.end -= text.start;
    }
    statements.push(StatementTokens { text, tokens });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_split_outside_of_quotes() {
        let text: &[u8] = b"select ';' ; ; set a=1;-- x";
        let all = split(text, true, LexMode::default()).unwrap();
        let shown: Vec<_> = all.iter().map(|each| &text[each.text.clone()]).collect();
        assert_eq!(shown, [&b"select ';' "[..], b" set a=1"]);
        assert_eq!(all[1].tokens[0].bytes(b" set a=1"), b"set");
        let one = split(b"select 1; select 2;", false, LexMode::default()).unwrap();
        assert_eq!((one.len(), one[0].tokens.len()), (1, 5));
        assert!(split(b"select 'a", true, LexMode::default()).is_err());
    }
}
