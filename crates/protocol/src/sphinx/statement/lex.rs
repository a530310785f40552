//! The tokens of select lists and ORDER BY clauses.
//!
//! ```text
//! name   := letter, "_" or "@", then letters, digits, "_" and "@" | "`" anything else "`"
//! number := digits ["." digits] | "." digits, [("e" | "E") ["+" | "-"] digits]
//! text   := "'" anything, "\" before what would end it, "'"
//! sign   := "<=" | ">=" | "<>" | "!=" | one other character
//! ```

use std::borrow::Cow;

use super::{Refused, Result};

/// The most tokens of a clause.
const MAX_TOKENS: usize = 4_096;

/// A token of a clause.
#[derive(Clone, Debug, PartialEq)]
pub enum Token<'a> {
    /// A name or a keyword.
    Name(&'a str),
    /// A number, as it stands in the clause.
    Number(&'a str),
    /// The content of a text, without its quotes and escapes.
    Text(Cow<'a, str>),
    /// An operator or mark.
    Sign(&'a str),
}

/// The tokens of a clause and a position among them.
pub struct Tokens<'a> {
    text: &'a str,
    /// Each token with its first byte and the byte behind it.
    tokens: Vec<(Token<'a>, usize, usize)>,
    next: usize,
}

impl<'a> Tokens<'a> {
    /// Splits a clause into tokens.
    ///
    /// # Errors
    /// A sentence for a text or a name without an end, and for more than 4,096 tokens.
    pub fn new(text: &'a str) -> Result<Self> {
        let mut tokens = Vec::new();
        let mut at = 0;
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let trimmed = rest.trim_start();
            at += rest.len() - trimmed.len();
            if trimmed.is_empty() {
                return Ok(Self { text, tokens, next: 0 });
            }
            if tokens.len() == MAX_TOKENS {
                return Err(Refused::new("a clause of more than 4096 words"));
            }
            let (token, length) = first(trimmed)?;
            tokens.push((token, at, at + length));
            at += length;
        }
    }

    /// The next token; it stays the next.
    pub fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.next).map(|(token, _, _)| token)
    }

    /// Takes the next token.
    pub fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek().cloned();
        self.next += usize::from(token.is_some());
        token
    }

    /// Takes the next token if it is this sign.
    pub fn take(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.next += usize::from(is_it);
        is_it
    }

    /// Takes the next token if it is this name.
    pub fn take_name(&mut self, name: &str) -> bool {
        let is_it =
            matches!(self.peek(), Some(Token::Name(next)) if next.eq_ignore_ascii_case(name));
        self.next += usize::from(is_it);
        is_it
    }

    /// Takes the next token, which has to be this sign.
    ///
    /// # Errors
    /// A sentence if it is something else.
    pub fn need(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Whether the next token is a name that is called as a function: `(` follows it.
    pub fn is_call(&self) -> bool {
        matches!(self.tokens.get(self.next + 1), Some((Token::Sign("("), _, _)))
    }

    /// Whether no token is left.
    pub fn is_end(&self) -> bool {
        self.next == self.tokens.len()
    }

    /// The position of the next token.
    pub fn place(&self) -> usize {
        self.next
    }

    /// Goes back to the token at a position.
    pub fn go_back(&mut self, place: usize) {
        self.next = self.next.min(place);
    }

    /// The text of the clause from the token at a position up to the next one.
    pub fn text_since(&self, place: usize) -> &'a str {
        let start = self.tokens.get(place).map_or(0, |(_, start, _)| *start);
        let last = self.next.checked_sub(1).and_then(|last| self.tokens.get(last));
        self.text.get(start..last.map_or(0, |(_, _, end)| *end)).unwrap_or_default()
    }

    /// The error that refuses the next token.
    pub fn unexpected(&self) -> Refused {
        match self.tokens.get(self.next) {
            None => Refused::new("syntax error, unexpected end of the clause"),
            Some((_, start, _)) => {
                let rest = self.text.get(*start..).unwrap_or_default();
                let near: String = rest.chars().take(40).collect();
                Refused::new(format!("syntax error near '{near}'"))
            }
        }
    }
}

/// The first token of a text that begins with one, and its length in bytes.
fn first(text: &str) -> Result<(Token<'_>, usize)> {
    let is_first = |character: char| character.is_alphabetic() || "_@".contains(character);
    let mut characters = text.chars();
    let begin = characters.next().unwrap_or_default();
    let follow = characters.next().unwrap_or_default();
    if is_first(begin) {
        let is_part = |character: char| is_first(character) || character.is_numeric();
        let (name, length) = run(text, is_part);
        return Ok((Token::Name(name), length));
    }
    if begin.is_ascii_digit() || (begin == '.' && follow.is_ascii_digit()) {
        return Ok(number(text));
    }
    match begin {
        '\'' => quoted(text),
        '`' => {
            let inner = text.get(1..).unwrap_or_default();
            let end = inner.find('`').ok_or_else(|| Refused::new("a name without its last `"))?;
            Ok((Token::Name(inner.get(..end).unwrap_or_default()), end + 2))
        }
        _ => {
            let two = text.get(..2).filter(|two| ["<=", ">=", "<>", "!="].contains(two));
            let sign = two.unwrap_or_else(|| text.get(..begin.len_utf8()).unwrap_or_default());
            Ok((Token::Sign(sign), sign.len()))
        }
    }
}

fn run(text: &str, is_part: impl Fn(char) -> bool) -> (&str, usize) {
    let end = text.find(|character| !is_part(character)).unwrap_or(text.len());
    (text.get(..end).unwrap_or_default(), end)
}

fn number(text: &str) -> (Token<'_>, usize) {
    let digits = |at: usize| run(text.get(at..).unwrap_or_default(), |c| c.is_ascii_digit()).1;
    let mut end = digits(0);
    if text.get(end..).unwrap_or_default().starts_with('.') {
        end += 1 + digits(end + 1);
    }
    if text.get(end..).unwrap_or_default().starts_with(['e', 'E']) {
        let signed = text.get(end + 1..).unwrap_or_default().starts_with(['+', '-']);
        let exponent = end + 1 + usize::from(signed);
        let length = digits(exponent);
        if length > 0 {
            end = exponent + length;
        }
    }
    (Token::Number(text.get(..end).unwrap_or_default()), end)
}

fn quoted(text: &str) -> Result<(Token<'_>, usize)> {
    let mut said = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\'' => return Ok((Token::Text(said.into()), at + 1)),
            '\\' => said.extend(characters.next().map(|(_, escaped)| escaped)),
            other => said.push(other),
        }
    }
    Err(Refused::new("a text without its last '"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<Token<'_>> {
        let mut tokens = Tokens::new(text).unwrap();
        std::iter::from_fn(|| tokens.next()).collect()
    }

    #[test]
    fn clause_tokens_are_recognized() {
        let expected = [
            Token::Name("@weight"),
            Token::Sign("*"),
            Token::Number("1.5e-3"),
            Token::Sign(">="),
            Token::Text("it's".into()),
            Token::Sign(","),
            Token::Name("a b"),
            Token::Number(".5"),
            Token::Name("e"),
        ];
        assert_eq!(words(r"@weight*1.5e-3 >='it\'s', `a b` .5e"), expected);
        assert!(Tokens::new("'open").is_err());
        assert!(Tokens::new("`open").is_err());
        assert!(Tokens::new(&"a ".repeat(4_097)).is_err());
    }

    proptest! {
        #[test]
        fn parsing_of_any_text_terminates(text in "\\PC{0,60}") {
            if let Ok(tokens) = Tokens::new(&text) {
                let written: usize = tokens.tokens.iter().map(|(_, start, end)| end - start).sum();
                prop_assert!(written <= text.len());
            }
        }
    }
}
