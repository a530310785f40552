//! Tokens of a request.

use std::borrow::Cow;

use super::{LineError, code};

/// A token. Quoted tokens are never keywords or operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub text: Cow<'a, str>,
    pub quoted: bool,
}

impl Token<'_> {
    /// Whether it is this keyword, in any case.
    pub(super) fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether it is one of these keywords, in any case.
    pub(super) fn is_any(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.is(keyword))
    }
}

/// A cursor over tokens.
pub(super) struct Tokens<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// Splits a frame into tokens.
    pub(super) fn cut(frame: &'a [u8]) -> Result<Self, LineError> {
        let line = std::str::from_utf8(frame).map_err(|_| invalid_utf8())?;
        let mut tokens = Vec::with_capacity(16);
        let mut at = 0;
        while let Some((token, end)) = next_token(line, at)? {
            tokens.push(token);
            at = end;
        }
        Ok(Self { tokens, at: 0 })
    }

    /// The remaining tokens.
    pub(super) fn rest(&self) -> &[Token<'a>] {
        self.tokens.get(self.at..).unwrap_or_default()
    }

    /// The next token, without consuming it.
    pub(super) fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.at)
    }

    /// Consumes the next token.
    pub(super) fn next(&mut self) -> Option<&Token<'a>> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    /// Skips `count` tokens.
    pub(super) fn skip(&mut self, count: usize) {
        self.at = self.tokens.len().min(self.at + count);
    }

    /// Skips the next token if it is this keyword.
    pub(super) fn eat(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is(keyword));
        self.at += usize::from(found);
        found
    }

    /// Whether all tokens were consumed.
    pub(super) fn is_done(&self) -> bool {
        self.at >= self.tokens.len()
    }
}

/// The next token at or after `at`, and its end.
fn next_token(line: &str, mut at: usize) -> Result<Option<(Token<'_>, usize)>, LineError> {
    while let Some(width) = white_space_at(line, at) {
        at += width;
    }
    match line.as_bytes().get(at) {
        None => Ok(None),
        Some(&quote @ (b'"' | b'\'')) => quoted_token(line, at + 1, quote).map(Some),
        Some(_) => {
            let end = bare_end(line, at);
            let text = Cow::Borrowed(line.get(at..end).unwrap_or_default());
            Ok(Some((Token { text, quoted: false }, end)))
        }
    }
}

fn bare_end(line: &str, start: usize) -> usize {
    let mut end = start;
    while let Some(&byte) = line.as_bytes().get(end) {
        let ends = matches!(byte, b'"' | b'\'')
            || (!byte.is_ascii_graphic() && white_space_at(line, end).is_some());
        if ends {
            break;
        }
        end += 1;
    }
    end
}

/// The rest of a quoted token, after its opening quote.
fn quoted_token(line: &str, start: usize, quote: u8) -> Result<(Token<'_>, usize), LineError> {
    let bytes = line.as_bytes();
    let unclosed = || LineError::syntax(format!("Unclosed quote: {}", char::from(quote)));
    let rest = bytes.get(start..).unwrap_or_default();
    let first = memchr::memchr2(quote, b'\\', rest).ok_or_else(unclosed)? + start;
    if bytes.get(first) == Some(&quote) {
        let text = Cow::Borrowed(line.get(start..first).unwrap_or_default());
        return Ok((Token { text, quoted: true }, first + 1));
    }
    let mut text = bytes.get(start..first).unwrap_or_default().to_vec();
    let mut at = first;
    loop {
        let byte = *bytes.get(at).ok_or_else(unclosed)?;
        at += 1;
        match byte {
            byte if byte == quote => break,
            b'\\' => at += unescape(bytes.get(at..).unwrap_or_default(), &mut text)?,
            byte => text.push(byte),
        }
    }
    let text = String::from_utf8(text).map_err(|_| invalid_utf8())?;
    Ok((Token { text: Cow::Owned(text), quoted: true }, at))
}

/// Appends the character that an escape represents. Returns the length of the escape after its
/// backslash.
fn unescape(escape: &[u8], text: &mut Vec<u8>) -> Result<usize, LineError> {
    let Some(&kind) = escape.first() else {
        return Err(LineError::syntax("Unterminated escape sequence at end of input"));
    };
    let byte = match kind {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'x' => {
            if let [_, high, low, ..] = escape
                && let (Some(high), Some(low)) = (hex_digit(*high), hex_digit(*low))
            {
                text.push(high << 4 | low);
                return Ok(3);
            }
            b'x'
        }
        other => other,
    };
    text.push(byte);
    Ok(1)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn invalid_utf8() -> LineError {
    LineError::new(code::TOKEN, "Invalid UTF-8 in request: send text as UTF-8")
}

/// The width of the white space character at a byte offset, if there is one.
pub(super) fn white_space_at(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes().get(at..)?;
    match *bytes {
        [b' ' | b'\t'..=b'\r', ..] => Some(1),
        [0xc2, 0xa0, ..] => Some(2),
        [0xe1, 0x9a, 0x80, ..]
        | [0xe2, 0x80, 0x80..=0x8b | 0xa8 | 0xa9 | 0xaf, ..]
        | [0xe2, 0x81, 0x9f, ..]
        | [0xe3, 0x80, 0x80, ..] => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(line: &[u8]) -> Vec<(String, bool)> {
        let tokens = Tokens::cut(line).unwrap();
        tokens.rest().iter().map(|token| (token.text.to_string(), token.quoted)).collect()
    }

    fn refused(line: &[u8]) -> String {
        Tokens::cut(line).err().unwrap().to_string()
    }

    #[test]
    fn unicode_white_space_separates_tokens() {
        let line = "a\tb\u{a0}c\u{1680}d\u{2000}e\u{200b}f\u{2028}g\u{2029}h\u{202f}i\u{205f}j\
            \u{3000}k\nl\rm\u{b}n\u{c}o";
        let words: String = cut(line.as_bytes()).into_iter().map(|(text, _)| text).collect();
        assert_eq!(words, "abcdefghijklmno");
        assert_eq!(cut("a\u{85}b\u{feff}".as_bytes()).len(), 1);
    }

    #[test]
    fn quotes_make_tokens_and_end_bare_ones() {
        let token = |text: &str, quoted| (text.to_owned(), quoted);
        assert_eq!(cut(br#"a"b c"d"#), [token("a", false), token("b c", true), token("d", false)]);
        assert_eq!(cut(br#"'it"s' """#), [token("it\"s", true), token("", true)]);
        assert_eq!(cut(br"a\n\"), [token(r"a\n\", false)]);
    }

    #[test]
    fn escapes_stand_for_their_bytes() {
        let (text, _) = cut(br#""\n\t\r\\\"\'\x41\xe6\x9d\xb1\xZ\q""#).remove(0);
        assert_eq!(text, "\n\t\r\\\"'A東xZq");
    }

    #[test]
    fn open_quotes_and_bad_bytes_are_refused() {
        assert_eq!(refused(b"a \"b"), "3000 Unclosed quote: \"");
        assert_eq!(refused(b"a 'b\\'"), "3000 Unclosed quote: '");
        assert_eq!(refused(b"'b\\"), "3000 Unterminated escape sequence at end of input");
        assert!(refused(b"a \xff").starts_with("3001 "));
        assert!(refused(b"'\\xff'").starts_with("3001 "));
    }
}
