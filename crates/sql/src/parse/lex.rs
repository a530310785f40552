//! Additions to MySQL's lexer: errors, and texts as the client sent them.

use remora_mysql::{ErrorCode, LexMode, Token};

use crate::{Error, Result};

/// All tokens of a text; 1064 where quotes or comments do not end.
pub(crate) fn tokens(text: &[u8], mode: LexMode) -> Result<Vec<Token>> {
    remora_mysql::tokens(text, mode).map_err(|unterminated| near(text, unterminated.start))
}

/// The bytes that a client sent in the place of a text.
pub(crate) fn sent_bytes(text: Vec<u8>, mode: LexMode) -> Vec<u8> {
    if mode.client.is_utf8() {
        return text;
    }
    let mut sent = Vec::with_capacity(text.len());
    mode.client.encode(&String::from_utf8_lossy(&text), &mut sent);
    sent
}

/// 1064 with the text from the place on.
pub(crate) fn near(text: &[u8], at: usize) -> Error {
    const SHOWN: usize = 80;
    let before = text.get(..at).unwrap_or(text);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let rest = text.get(at..).unwrap_or_default();
    let rest: String = String::from_utf8_lossy(rest).chars().take(SHOWN).collect();
    let message = format!(
        "You have an error in your SQL syntax; check the manual that corresponds to your MySQL \
         server version for the right syntax to use near '{rest}' at line {line}"
    );
    Error::new(ErrorCode::ParseError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_that_do_not_end_are_named_with_their_line() {
        let error = tokens(b"select\n'abc", LexMode::default()).unwrap_err();
        assert!(error.message.ends_with("near ''abc' at line 2"), "{error}");
    }
}
