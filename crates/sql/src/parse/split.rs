//! A text becomes its statements.

use remora_mysql::{LexMode, Lexer, Token};

use super::{Source, near};
use crate::Result;

/// The statements of a text, without empty ones; if `many` is not set, a second one is left where
/// it is, for the parser to complain of.
pub(crate) fn split(text: &[u8], many: bool, mode: LexMode) -> Result<Vec<Source>> {
    let mut lexer = Lexer::new(text, mode);
    let mut statements = Vec::new();
    let mut tokens = Vec::new();
    let mut begin = 0;
    while let Some(token) = lexer.next().map_err(|open| near(text, open.start))? {
        if many && token.is(text, ";") {
            finish(text, begin, token.start, &mut tokens, mode, &mut statements);
            begin = token.end;
        } else {
            tokens.push(token);
        }
    }
    if !many && tokens.last().is_some_and(|token| token.is(text, ";")) {
        tokens.pop();
    }
    finish(text, begin, text.len(), &mut tokens, mode, &mut statements);
    Ok(statements)
}

fn finish(
    text: &[u8],
    begin: usize,
    end: usize,
    tokens: &mut Vec<Token>,
    mode: LexMode,
    statements: &mut Vec<Source>,
) {
    if tokens.is_empty() {
        return;
    }
    let mut tokens = std::mem::take(tokens);
    for token in &mut tokens {
        token.start -= begin;
        token.end -= begin;
    }
    let text = text.get(begin..end).unwrap_or_default().to_vec();
    statements.push(Source::new(text, tokens, mode));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Kind;

    #[test]
    fn statements_are_split_outside_of_quotes() {
        let all = split(b"select ';' ; ; set a=1;-- x", true, LexMode::default()).unwrap();
        let shown: Vec<_> = all.iter().map(|each| each.shown().into_owned()).collect();
        assert_eq!(shown, ["select ';' ", " set a=1"]);
        assert_eq!((all[0].kind, all[1].kind), (Kind::Select, Kind::Set));
        assert!(all[1].is_word(0, "SET") && all[1].is(2, "="));
    }
}
