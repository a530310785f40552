//! A cursor over the tokens of a statement. Definitions are parsed with it, and those parts of writes that need no
//! syntax tree. Expressions of definitions are passed on as text.

use std::ops::Range;

use remora_mysql::{LexMode, Token, TokenKind, unquoted};

use crate::{
    Error, Result,
    parse::{near, sent_bytes},
};

/// A place in a statement. A copy looks ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'t> {
    text: &'t [u8],
    tokens: &'t [Token],
    mode: LexMode,
    at: usize,
}

impl<'t> Tokens<'t> {
    /// The beginning of a statement.
    pub(crate) fn new(text: &'t [u8], tokens: &'t [Token], mode: LexMode) -> Self {
        Self { text, tokens, mode, at: 0 }
    }

    /// The next token.
    pub(crate) fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    /// Takes the next token.
    pub(crate) fn next(&mut self) -> Option<&'t Token> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    /// How quotes are read.
    pub(crate) fn mode(&self) -> LexMode {
        self.mode
    }

    /// How many tokens were taken.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// The bytes of a token.
    pub(crate) fn bytes(&self, token: &Token) -> &'t [u8] {
        token.bytes(self.text)
    }

    /// The text of a range of tokens, as it was written.
    pub(crate) fn slice(&self, tokens: Range<usize>) -> &'t [u8] {
        let Some(tokens) = self.tokens.get(tokens) else { return &[] };
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => self.text.get(first.start..last.end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// As [`Tokens::slice`], with replacement characters for bytes that are not UTF-8.
    pub(crate) fn shown(&self, tokens: Range<usize>) -> String {
        String::from_utf8_lossy(self.slice(tokens)).into_owned()
    }

    /// The text between a token and the one before it.
    pub(crate) fn gap_before(&self, place: usize) -> String {
        let before = place.checked_sub(1).and_then(|before| self.tokens.get(before));
        match (before, self.tokens.get(place)) {
            (Some(before), Some(token)) => {
                let gap = self.text.get(before.end..token.start).unwrap_or_default();
                String::from_utf8_lossy(gap).into_owned()
            }
            _ => String::new(),
        }
    }

    /// The tokens of a range, as a statement of their own.
    pub(crate) fn within(&self, tokens: Range<usize>) -> Self {
        Self {
            tokens: self.tokens.get(..tokens.end).unwrap_or_default(),
            at: tokens.start,
            ..*self
        }
    }

    /// Whether the next token is of this kind.
    pub(crate) fn is_kind(&self, kind: TokenKind) -> bool {
        self.peek().is_some_and(|next| next.kind == kind)
    }

    /// Whether a text is next.
    pub(crate) fn is_text(&self) -> bool {
        self.is_kind(TokenKind::Text) || self.is_kind(TokenKind::National)
    }

    /// Whether the next token is this word, in any case.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.peek().is_some_and(|next| next.is_word(self.text, word))
    }

    /// Whether a reserved word is next. After a period it is a name (`t.limit`).
    pub(crate) fn is_reserved(&self, word: &str) -> bool {
        let before = self.at.checked_sub(1).and_then(|before| self.tokens.get(before));
        self.is_word(word) && !before.is_some_and(|before| before.is(self.text, "."))
    }

    /// Takes the next token if it is this word.
    pub(crate) fn accept(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    /// Takes the next tokens if they are these words, separated by spaces; all or none.
    pub(crate) fn accept_all(&mut self, words: &str) -> bool {
        let mut ahead = *self;
        let all = words.split(' ').all(|word| ahead.accept(word));
        if all {
            *self = ahead;
        }
        all
    }

    /// Whether the next tokens are these words, separated by spaces.
    pub(crate) fn begins(&self, words: &str) -> bool {
        let mut ahead = *self;
        ahead.accept_all(words)
    }

    /// Takes one of these words.
    pub(crate) fn accept_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.accept(word))
    }

    /// Takes these words, separated by spaces, or fails.
    pub(crate) fn expect(&mut self, words: &str) -> Result<()> {
        words.split(' ').try_for_each(|word| match self.accept(word) {
            true => Ok(()),
            false => Err(self.syntax_error()),
        })
    }

    /// Whether the next token is this operator or mark.
    pub(crate) fn is(&self, operator: &str) -> bool {
        self.peek().is_some_and(|next| next.is(self.text, operator))
    }

    /// Takes the next token if it is this operator or mark.
    pub(crate) fn take(&mut self, operator: &str) -> bool {
        let is = self.is(operator);
        self.at += usize::from(is);
        is
    }

    /// Takes this operator or mark or fails.
    pub(crate) fn need(&mut self, operator: &str) -> Result<()> {
        if self.take(operator) { Ok(()) } else { Err(self.syntax_error()) }
    }

    /// Whether the token at this place is a NOT that begins an expression, not a part of an operator: it is what
    /// HIGH_NOT_PRECEDENCE makes a `!` of. That of `NOT EXISTS` means the same in any mode.
    pub(crate) fn is_prefix_not(&self, place: usize) -> bool {
        let is = |place: usize, words: &[&str]| {
            let token = self.tokens.get(place);
            token.is_some_and(|token| words.iter().any(|word| token.is_word(self.text, word)))
        };
        is(place, &["NOT"])
            && !is(place + 1, &["IN", "LIKE", "BETWEEN", "REGEXP", "RLIKE", "EXISTS"])
            && !place.checked_sub(1).is_some_and(|before| is(before, &["IS"]))
    }

    /// Whether nothing is left.
    pub(crate) fn at_end(&self) -> bool {
        self.peek().is_none()
    }

    /// Fails unless nothing is left.
    pub(crate) fn expect_end(&self) -> Result<()> {
        if self.at_end() { Ok(()) } else { Err(self.syntax_error()) }
    }

    /// Takes a name.
    pub(crate) fn name(&mut self) -> Result<String> {
        self.accept_name().ok_or_else(|| self.syntax_error())
    }

    /// Takes a name if one is next.
    pub(crate) fn accept_name(&mut self) -> Option<String> {
        let next = self.peek()?;
        let bytes = match next.kind {
            TokenKind::Word => self.bytes(next).to_vec(),
            TokenKind::Quoted => unquoted(self.bytes(next), self.mode),
            _ => return None,
        };
        self.next();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The name of a variable, without `@` and quotes.
    pub(crate) fn variable_name(&self, token: &Token) -> String {
        let name = self.bytes(token).get(1..).unwrap_or_default();
        let name = match name.first() {
            Some(b'`' | b'\'' | b'"') => unquoted(name, self.mode),
            _ => name.to_vec(),
        };
        String::from_utf8_lossy(&name).into_owned()
    }

    /// Takes a text literal and the adjacent ones after it.
    pub(crate) fn text(&mut self) -> Result<Vec<u8>> {
        if !self.is_text() {
            return Err(self.syntax_error());
        }
        let mut text = Vec::new();
        while self.is_text()
            && let Some(token) = self.next()
        {
            text.extend(self.text_of(token));
        }
        Ok(text)
    }

    /// The value of a text literal.
    pub(crate) fn text_of(&self, token: &Token) -> Vec<u8> {
        let bytes = self.bytes(token);
        let skipped = usize::from(token.kind == TokenKind::National);
        unquoted(bytes.get(skipped..).unwrap_or_default(), self.mode)
    }

    /// Takes a text literal as the bytes that the client sent.
    pub(crate) fn sent(&mut self) -> Result<Vec<u8>> {
        self.text().map(|text| sent_bytes(text, self.mode))
    }

    /// Takes a text literal as UTF-8.
    pub(crate) fn utf8(&mut self) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.text()?).into_owned())
    }

    /// Takes one or more of something, separated by commas.
    pub(crate) fn list<T>(&mut self, one: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.take(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// Takes an unsigned integer.
    pub(crate) fn number(&mut self) -> Result<u64> {
        let next = self.peek().filter(|next| next.kind == TokenKind::Integer);
        let text = next.and_then(|next| std::str::from_utf8(self.bytes(next)).ok());
        let number = text.and_then(|text| text.parse().ok()).ok_or_else(|| self.syntax_error())?;
        self.next();
        Ok(number)
    }

    /// Takes `( … )` and gives the text between.
    pub(crate) fn parenthesised(&mut self) -> Result<String> {
        self.need("(")?;
        let range = self.skip_until(|tokens| tokens.is(")"))?;
        self.need(")")?;
        Ok(self.shown(range))
    }

    /// Takes tokens until `stop` says so outside of parentheses, or a `)` or the end comes. Gives
    /// what was taken.
    pub(crate) fn skip_until(&mut self, stop: impl Fn(&Self) -> bool) -> Result<Range<usize>> {
        let start = self.at;
        let mut depth = 0_usize;
        while self.peek().is_some() {
            let closes = self.is(")");
            if depth == 0 && (closes || stop(self)) {
                break;
            }
            depth += usize::from(self.is("("));
            depth -= usize::from(closes);
            self.next();
        }
        if depth > 0 { Err(self.syntax_error()) } else { Ok(start..self.at) }
    }

    /// The place of the next token.
    pub(crate) fn here(&self) -> Place {
        Place(self.syntax_error())
    }

    /// Takes all tokens that are left.
    pub(crate) fn take_rest(&mut self) -> Range<usize> {
        let start = std::mem::replace(&mut self.at, self.tokens.len());
        start..self.at
    }

    /// 1064 at the next token.
    pub(crate) fn syntax_error(&self) -> Error {
        near(self.text, self.peek().map_or(self.text.len(), |next| next.start))
    }
}

/// The beginning of a part of a statement, which its error quotes.
#[derive(Clone, Debug)]
pub(crate) struct Place(Error);

impl Place {
    /// 1064 at this place.
    pub(crate) fn error(&self) -> Error {
        self.0.clone()
    }
}

/// Reads a text that is no statement, such as a stored declaration.
pub(crate) fn read<T>(text: &str, read: impl FnOnce(&mut Tokens<'_>) -> Result<T>) -> Result<T> {
    let mode = LexMode::default();
    let tokens = super::lex::tokens(text.as_bytes(), mode)?;
    read(&mut Tokens::new(text.as_bytes(), &tokens, mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_marks_and_texts_are_taken() {
        read("Insert INTO `a``b` (x) 'it''s' 'on' n'e' 12 -", |tokens| {
            assert!(tokens.accept_all("INSERT INTO") && !tokens.accept("x"));
            assert_eq!(tokens.name()?, "a`b");
            assert_eq!(tokens.parenthesised()?, "x");
            assert_eq!(tokens.utf8()?, "it'sone");
            assert_eq!(tokens.number()?, 12);
            assert!(!tokens.at_end() && tokens.take("-") && tokens.at_end());
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn expressions_end_outside_of_parentheses() {
        read("f(a, (b)) + 1, c) d", |tokens| {
            let range = tokens.skip_until(|tokens| tokens.is(","))?;
            assert_eq!(tokens.shown(range), "f(a, (b)) + 1");
            tokens.need(",")?;
            let range = tokens.skip_until(|tokens| tokens.is(","))?;
            assert_eq!(tokens.shown(range), "c");
            Ok(())
        })
        .unwrap();
        assert!(read("f(a", |tokens| tokens.skip_until(|_| false)).is_err());
    }

    #[test]
    fn syntax_errors_tell_the_place() {
        let error = read("a\nb c", |tokens| {
            tokens.next();
            tokens.expect("x")
        });
        let message = error.unwrap_err().message;
        assert!(message.ends_with("near 'b c' at line 2"), "{message}");
    }
}
