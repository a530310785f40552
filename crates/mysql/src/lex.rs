//! Splits MySQL's statements into tokens. A token is a kind and a range of the text; nothing is copied.
//!
//! Comments are skipped. [`Comments`] says of which `/*! … */` the content is read as a part of the statement.

use crate::{Charset, SqlMode};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name or keyword without quotes.
    Word,
    /// A name in quotes.
    Quoted,
    /// Text in quotes.
    Text,
    /// A text in the national character set, `n'text'`.
    National,
    /// Digits.
    Integer,
    /// Digits with a point.
    Decimal,
    /// A number with an exponent.
    Float,
    /// A hexadecimal literal: `0x1f` or `x'1f'`.
    Hex,
    /// A bit literal: `0b101` or `b'101'`.
    Bits,
    /// The placeholder `?` of a prepared statement.
    Parameter,
    /// A user variable: `@name` or `@'name'`. Also an `@` alone.
    UserVariable,
    /// A system variable, `@@name`. In `@@global.name` the point and `name` are tokens of their own.
    SystemVariable,
    /// An operator or punctuation mark, the longest that begins here.
    Operator,
}

/// One token: its bytes are `text[start..end]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind of the token.
    pub kind: TokenKind,
    /// The offset of its first byte.
    pub start: usize,
    /// The offset of the byte after it.
    pub end: usize,
}

/// The settings of a session that decide how its statements are split into tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LexMode {
    /// Whether `"` quotes names, not texts.
    pub ansi_quotes: bool,
    /// Whether a backslash is an ordinary character, not an escape.
    pub no_backslash_escapes: bool,
    /// Whether `||` concatenates texts.
    pub pipes_as_concat: bool,
    /// Whether NOT has the precedence of `!`.
    pub high_not: bool,
    /// The character set in which the client sent the text, before it was converted to UTF-8. A literal behind
    /// `_binary` is bytes of this character set.
    pub client: Charset,
    /// Which comments are read as parts of the statement.
    pub comments: Comments,
}

/// Which of the comments `/*! … */` are read as parts of the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comments {
    /// Comments without a version, and those whose version is at most this one, such as `90_700` for MySQL 9.7.0.
    UpTo(u32),
    /// All of them. In the text that a MySQL logs, those that it did not run are ordinary comments.
    All,
    /// All of them, and all `/*M! … */`, for the text that a MariaDB logs.
    AllOfMariaDb,
}

/// A quoted text, quoted name or comment that has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unterminated {
    /// The offset at which it begins, in bytes.
    pub start: usize,
}

impl Default for Comments {
    /// Up to the version of MySQL that Remora follows.
    fn default() -> Self {
        Self::UpTo(90_700)
    }
}

/// Splits a text into tokens, one after the other.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    mode: LexMode,
    in_comment: bool,
    after_point: bool,
}

impl LexMode {
    /// The settings of a `sql_mode`.
    #[must_use]
    pub fn of_sql_mode(mode: SqlMode, client: Charset, comments: Comments) -> Self {
        Self {
            ansi_quotes: mode.has(SqlMode::ANSI_QUOTES),
            no_backslash_escapes: mode.has(SqlMode::NO_BACKSLASH_ESCAPES),
            pipes_as_concat: mode.has(SqlMode::PIPES_AS_CONCAT),
            high_not: mode.has(SqlMode::HIGH_NOT_PRECEDENCE),
            client,
            comments,
        }
    }

    /// Whether a backslash escapes the next character between these quotes. It never does in names.
    fn escapes(self, quote: u8) -> bool {
        quote != b'`' && !(quote == b'"' && self.ansi_quotes) && !self.no_backslash_escapes
    }
}

impl Token {
    /// The bytes of the token in its text.
    pub fn bytes<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// Whether the token is this keyword, given in upper case.
    pub fn is_word(&self, text: &[u8], keyword: &str) -> bool {
        self.kind == TokenKind::Word && self.bytes(text).eq_ignore_ascii_case(keyword.as_bytes())
    }

    /// Whether the token is this operator.
    pub fn is(&self, text: &[u8], operator: &str) -> bool {
        self.kind == TokenKind::Operator && self.bytes(text) == operator.as_bytes()
    }
}

impl<'a> Lexer<'a> {
    /// A lexer at the beginning of a text.
    #[must_use]
    pub fn new(text: &'a [u8], mode: LexMode) -> Self {
        Self::new_at(text, 0, mode)
    }

    /// A lexer at the beginning of a token of a text.
    #[must_use]
    pub fn new_at(text: &'a [u8], at: usize, mode: LexMode) -> Self {
        Self { text, at, mode, in_comment: false, after_point: false }
    }

    /// The next token, `None` at the end.
    ///
    /// # Errors
    /// [`Unterminated`] if quotes or a comment do not end.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot fail")]
    pub fn next(&mut self) -> Result<Option<Token>, Unterminated> {
        self.pass_blanks()?;
        let Some(first) = self.peek(0) else { return Ok(None) };
        let start = self.at;
        let kind = self.token(first)?;
        self.after_point = kind == TokenKind::Operator && self.text.get(start) == Some(&b'.');
        Ok(Some(Token { kind, start, end: self.at }))
    }

    /// Skips a list of integers: each is digits with a comma behind and perhaps spaces before. Calls `visit` with the
    /// range of each integer's digits. It stops at anything else. Most of a long IN list is passed so, in a quarter of
    /// the time that tokens would take.
    pub fn pass_listed_integers(&mut self, mut visit: impl FnMut(usize, usize)) {
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
            let rest = rest.get(spaces..).unwrap_or_default();
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 || rest.get(digits) != Some(&b',') {
                return;
            }
            let start = self.at + spaces;
            visit(start, start + digits);
            self.at = start + digits + 1;
        }
    }

    fn token(&mut self, first: u8) -> Result<TokenKind, Unterminated> {
        match first {
            b'\'' => self.quoted(b'\'', TokenKind::Text),
            b'"' if self.mode.ansi_quotes => self.quoted(b'"', TokenKind::Quoted),
            b'"' => self.quoted(b'"', TokenKind::Text),
            b'`' => self.quoted(b'`', TokenKind::Quoted),
            b'?' => Ok(self.take(1, TokenKind::Parameter)),
            b'@' => self.variable(),
            b'0'..=b'9' if !self.after_point => Ok(self.number()),
            b'.' if !self.after_name() && self.peek(1).is_some_and(|b| b.is_ascii_digit()) => {
                Ok(self.number())
            }
            _ if is_name(first) => self.word(first),
            _ => Ok(self.operator()),
        }
    }

    /// Skips white space and comments.
    fn pass_blanks(&mut self) -> Result<(), Unterminated> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c), _) => {
                    self.at += 1;
                    self.after_point = false;
                }
                (Some(b'#'), _) => self.pass_line(),
                (Some(b'-'), Some(b'-')) if self.peek(2).is_none_or(|b| b <= b' ') => {
                    self.pass_line();
                }
                (Some(b'/'), Some(b'*')) => self.comment()?,
                (Some(b'*'), Some(b'/')) if self.in_comment => {
                    self.in_comment = false;
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn pass_line(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
    }

    fn comment(&mut self) -> Result<(), Unterminated> {
        if !self.in_comment
            && let Some(length) = self.read_comment()
        {
            self.at += length;
            self.in_comment = true;
            return Ok(());
        }
        let rest = self.text.get(self.at + 2..).unwrap_or_default();
        let Some(end) = memchr::memmem::find(rest, b"*/") else {
            return Err(Unterminated { start: self.at });
        };
        self.at += end + 4;
        Ok(())
    }

    /// The length of the opening of a comment that is read, including its version; `None` if the comment is skipped.
    fn read_comment(&self) -> Option<usize> {
        let opening = match (self.peek(2), self.peek(3)) {
            (Some(b'!'), _) => 3,
            (Some(b'M'), Some(b'!')) if self.mode.comments == Comments::AllOfMariaDb => 4,
            _ => return None,
        };
        let version = |digits: usize| {
            let start = self.at + opening;
            let text = std::str::from_utf8(self.text.get(start..start + digits)?).ok()?;
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok())?
        };
        let versions = [6, 5].into_iter().find_map(|digits| Some((digits, version(digits)?)));
        let (length, version) = versions.unwrap_or((0, 0));
        match self.mode.comments {
            Comments::UpTo(newest) if version > newest => None,
            _ => Some(opening + length),
        }
    }

    fn quoted(&mut self, quote: u8, kind: TokenKind) -> Result<TokenKind, Unterminated> {
        let start = self.at;
        self.at += 1;
        let escapes = self.mode.escapes(quote);
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let found = match escapes {
                true => memchr::memchr2(quote, b'\\', rest),
                false => memchr::memchr(quote, rest),
            };
            let Some(found) = found else { return Err(Unterminated { start }) };
            self.at += found + 1;
            let escaped = self.text.get(self.at - 1) == Some(&b'\\') && escapes;
            if escaped || self.peek(0) == Some(quote) {
                self.at += 1;
            } else {
                return Ok(kind);
            }
        }
    }

    fn variable(&mut self) -> Result<TokenKind, Unterminated> {
        if self.peek(1) == Some(b'@') {
            self.at += 2;
            return Ok(self.name(TokenKind::SystemVariable));
        }
        self.at += 1;
        match self.peek(0) {
            Some(quote @ (b'\'' | b'"' | b'`')) => self.quoted(quote, TokenKind::UserVariable),
            _ => {
                while self.peek(0).is_some_and(|byte| is_name(byte) || byte == b'.') {
                    self.at += 1;
                }
                Ok(TokenKind::UserVariable)
            }
        }
    }

    fn word(&mut self, first: u8) -> Result<TokenKind, Unterminated> {
        if self.peek(1) == Some(b'\'') && !self.after_point {
            match first {
                b'x' | b'X' => return self.prefixed(TokenKind::Hex),
                b'b' | b'B' => return self.prefixed(TokenKind::Bits),
                b'n' | b'N' => return self.prefixed(TokenKind::National),
                _ => {}
            }
        }
        Ok(self.name(TokenKind::Word))
    }

    fn prefixed(&mut self, kind: TokenKind) -> Result<TokenKind, Unterminated> {
        self.at += 1;
        self.quoted(b'\'', kind)
    }

    fn name(&mut self, kind: TokenKind) -> TokenKind {
        while self.peek(0).is_some_and(is_name) {
            self.at += 1;
        }
        kind
    }

    /// A number, or a name that begins with digits.
    fn number(&mut self) -> TokenKind {
        let start = self.at;
        if let Some(kind) = self.radix_number() {
            return kind;
        }
        self.digits();
        if self.at > start && self.peek(0).is_some_and(is_name) && !self.exponent_follows() {
            return self.name(TokenKind::Word);
        }
        let mut kind = TokenKind::Integer;
        if self.peek(0) == Some(b'.') {
            self.at += 1;
            self.digits();
            kind = TokenKind::Decimal;
        }
        if self.exponent_follows() {
            self.at += 2;
            self.digits();
            kind = TokenKind::Float;
        }
        kind
    }

    /// `0x…` and `0b…`.
    fn radix_number(&mut self) -> Option<TokenKind> {
        let (kind, fits): (_, fn(u8) -> bool) = match (self.peek(0)?, self.peek(1)?) {
            (b'0', b'x') => (TokenKind::Hex, |byte| byte.is_ascii_hexdigit()),
            (b'0', b'b') => (TokenKind::Bits, |byte| matches!(byte, b'0' | b'1')),
            _ => return None,
        };
        let rest = self.text.get(self.at + 2..)?;
        let length = rest.iter().take_while(|byte| fits(**byte)).count();
        let ends = rest.get(length).is_none_or(|byte| !is_name(*byte));
        (length > 0 && ends).then(|| self.take(length + 2, kind))
    }

    fn exponent_follows(&self) -> bool {
        let digit = |ahead: usize| self.peek(ahead).is_some_and(|byte| byte.is_ascii_digit());
        let signed = matches!(self.peek(1), Some(b'+' | b'-')) && digit(2);
        matches!(self.peek(0), Some(b'e' | b'E')) && (digit(1) || signed)
    }

    fn digits(&mut self) {
        while self.peek(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn operator(&mut self) -> TokenKind {
        const LONG: [&[u8]; 13] = [
            b"<=>", b"->>", b"<=", b">=", b"<>", b"!=", b":=", b"&&", b"||", b"<<", b">>", b"->",
            b"..",
        ];
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = LONG.iter().find(|operator| rest.starts_with(operator));
        self.take(length.map_or(1, |operator| operator.len()), TokenKind::Operator)
    }

    /// Whether a name ends directly before the current position, so that a point here separates names.
    fn after_name(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        before.is_some_and(|byte| is_name(*byte) || matches!(byte, b'`' | b'"'))
    }

    fn take(&mut self, length: usize, kind: TokenKind) -> TokenKind {
        self.at += length;
        kind
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }
}

/// Whether the byte can stand in a name without quotes.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// All tokens of a text.
///
/// # Errors
/// [`Unterminated`] if quotes or a comment do not end.
pub fn tokens(text: &[u8], mode: LexMode) -> Result<Vec<Token>, Unterminated> {
    let mut lexer = Lexer::new(text, mode);
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        tokens.push(token);
    }
    Ok(tokens)
}

/// The content of a quoted text or name, without its quotes and escapes.
pub fn unquoted(bytes: &[u8], mode: LexMode) -> Vec<u8> {
    let Some((&quote, rest)) = bytes.split_first() else { return Vec::new() };
    let inner = rest.split_last().map_or(rest, |(_, inner)| inner);
    let escapes = mode.escapes(quote);
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if escapes => unescape(bytes.next(), &mut out),
            byte if byte == quote => {
                // A doubled quote stands for one quote.
                bytes.next();
                out.push(quote);
            }
            byte => out.push(byte),
        }
    }
    out
}

fn unescape(byte: Option<u8>, out: &mut Vec<u8>) {
    match byte {
        Some(b'0') => out.push(0),
        Some(b'b') => out.push(8),
        Some(b'n') => out.push(b'\n'),
        Some(b'r') => out.push(b'\r'),
        Some(b't') => out.push(b'\t'),
        Some(b'Z') => out.push(26),
        // The backslash stays, because LIKE interprets these escapes itself.
        Some(byte @ (b'%' | b'_')) => out.extend([b'\\', byte]),
        Some(byte) => out.push(byte),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let text = text.as_bytes();
        let tokens = tokens(text, LexMode::default()).unwrap();
        let one = |token: &Token| {
            format!("{:?} {}", token.kind, String::from_utf8_lossy(token.bytes(text)))
        };
        tokens.iter().map(one).collect()
    }

    #[test]
    fn listed_integers_are_passed_as_far_as_they_are_plain() {
        let passed = |text: &str| {
            let mut lexer = Lexer::new(text.as_bytes(), LexMode::default());
            let mut found = Vec::new();
            lexer.pass_listed_integers(|start, end| found.push(text[start..end].to_owned()));
            let next = lexer.next().unwrap();
            (found.join(" "), next.map(|token| text[token.start..token.end].to_owned()))
        };
        let told = |found: &str, next: &str| (found.to_owned(), Some(next.to_owned()));
        assert_eq!(passed("1, 22,  333,4)"), told("1 22 333", "4"));
        assert_eq!(passed("1,2 ,3)"), told("1", "2"));
        assert_eq!(passed("1,2x,3)"), told("1", "2x"));
        assert_eq!(passed("1,2.5,3)"), told("1", "2.5"));
        assert_eq!(passed("-1,2)"), told("", "-"));
        assert_eq!(passed("7"), told("", "7"));
        assert_eq!(passed("7,"), ("7".to_owned(), None));
    }

    #[test]
    fn numbers_and_names_are_told_apart() {
        assert_eq!(
            shown("1 1.5 .5 1e3 1a 2e 0x1F 0b01 x'1f' t.1a `a``b` 1.e2"),
            [
                "Integer 1",
                "Decimal 1.5",
                "Decimal .5",
                "Float 1e3",
                "Word 1a",
                "Word 2e",
                "Hex 0x1F",
                "Bits 0b01",
                "Hex x'1f'",
                "Word t",
                "Operator .",
                "Word 1a",
                "Quoted `a``b`",
                "Float 1.e2"
            ]
        );
    }

    #[test]
    fn comments_are_passed_and_versioned_ones_read() {
        assert_eq!(shown("a -- b\n#c\n/* d */ e"), ["Word a", "Word e"]);
        assert_eq!(shown("a /*!40101 b */ c"), ["Word a", "Word b", "Word c"]);
        assert_eq!(shown("a /*!999999 b */ c"), ["Word a", "Word c"]);
        assert_eq!(shown("1--1"), ["Integer 1", "Operator -", "Operator -", "Integer 1"]);
    }

    #[test]
    fn a_logged_text_is_read_with_all_its_versioned_comments() {
        let shown = |text: &str, comments| {
            let mode = LexMode { comments, ..LexMode::default() };
            let tokens = tokens(text.as_bytes(), mode).unwrap();
            let words = tokens.iter().map(|token| token.bytes(text.as_bytes()));
            String::from_utf8(words.collect::<Vec<_>>().join(&b' ')).unwrap()
        };
        let text = "a /*!999999 b */ /*!c /* d */ e*/ /*M!100100 f*/ /*!50700g*/";
        assert_eq!(shown(text, Comments::All), "a b c e g");
        assert_eq!(shown(text, Comments::AllOfMariaDb), "a b c e f g");
        assert_eq!(shown(text, Comments::default()), "a c e g");
    }

    #[test]
    fn backslashes_are_no_escapes_in_names_nor_where_the_mode_says_so() {
        let count = |text: &str, mode| {
            let mode = LexMode::of_sql_mode(mode, Charset::UTF8MB4, Comments::All);
            tokens(text.as_bytes(), mode).map(|tokens| tokens.len())
        };
        assert_eq!(count(r#""a\" b"#, SqlMode::from_bits(0)), Err(Unterminated { start: 0 }));
        assert_eq!(count(r#""a\" b"#, SqlMode::ANSI_QUOTES), Ok(2));
        assert_eq!(count(r"'x\' b", SqlMode::NO_BACKSLASH_ESCAPES), Ok(2));
        let ansi = LexMode::of_sql_mode(SqlMode::ANSI_QUOTES, Charset::UTF8MB4, Comments::All);
        assert_eq!(unquoted(br#""a\""b""#, ansi), br#"a\"b"#);
    }

    #[test]
    fn variables_and_operators() {
        assert_eq!(
            shown("@a:=@@session.x<=>?->>@`b c`"),
            [
                "UserVariable @a",
                "Operator :=",
                "SystemVariable @@session",
                "Operator .",
                "Word x",
                "Operator <=>",
                "Parameter ?",
                "Operator ->>",
                "UserVariable @`b c`"
            ]
        );
    }

    #[test]
    fn quotes_are_taken_away() {
        let plain =
            |text: &str| String::from_utf8(unquoted(text.as_bytes(), LexMode::default())).unwrap();
        assert_eq!(plain(r"'a\'b''c\n\%'"), "a'b'c\n\\%");
        assert_eq!(plain("`a``b\\`"), "a`b\\");
        let unterminated = tokens(b"select\n'abc", LexMode::default()).unwrap_err();
        assert_eq!(unterminated.start, 7);
    }
}
