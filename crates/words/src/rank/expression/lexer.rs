//! The tokens of an expression.

use super::{
    functions::{self, Named},
    node::{Aggregate, AttributeKind, Attributes, Factor},
    refused,
};
use crate::Result;

/// A token.
#[derive(Clone, Debug)]
pub(super) enum Token {
    End,
    Integer(i64),
    Real(f32),
    /// `.5`.
    DotNumber(f32),
    Text,
    /// `.name`.
    Subkey,
    Attribute(usize, AttributeKind),
    Name(String),
    Function(Named),
    /// The name of a function that is refused.
    Refused(String),
    In,
    Factor(Factor),
    Aggregate(Aggregate),
    MaxWindowHits,
    Bm25a,
    Bm25f,
    /// `id`, and `@id`.
    Key,
    AtKey,
    Weight,
    AtWeight,
    UserVariable,
    And,
    Or,
    Not,
    Div,
    Mod,
    For,
    Is,
    Null,
    Count,
    Distinct,
    GroupBy,
    Equal,
    NotEqual,
    AtMost,
    AtLeast,
    Symbol(char),
}

impl Token {
    /// The token's name in Sphinx's error messages.
    pub fn name(&self) -> String {
        let name = match self {
            Self::Symbol(symbol) => return format!("'{symbol}'"),
            Self::End => "$end",
            Self::Integer(_) => "TOK_CONST_INT",
            Self::Real(_) => "TOK_CONST_FLOAT",
            Self::DotNumber(_) => "TOK_DOT_NUMBER",
            Self::Text => "TOK_CONST_STRING",
            Self::Subkey => "TOK_SUBKEY",
            Self::Attribute(_, AttributeKind::Real) => "TOK_ATTR_FLOAT",
            Self::Attribute(..) => "TOK_ATTR_INT",
            Self::Name(_) => "TOK_IDENT",
            Self::Function(_) | Self::Refused(_) => "TOK_FUNC",
            Self::In => "TOK_FUNC_IN",
            Self::Factor(_) => "TOK_HOOK_IDENT",
            Self::Aggregate(_) | Self::MaxWindowHits | Self::Bm25a | Self::Bm25f => "TOK_HOOK_FUNC",
            Self::Key => "TOK_ID",
            Self::AtKey => "TOK_ATID",
            Self::Weight => "TOK_WEIGHT",
            Self::AtWeight => "TOK_ATWEIGHT",
            Self::UserVariable => "TOK_USERVAR",
            Self::And => "TOK_AND",
            Self::Or => "TOK_OR",
            Self::Not => "TOK_NOT",
            Self::Div => "TOK_DIV",
            Self::Mod => "TOK_MOD",
            Self::For => "TOK_FOR",
            Self::Is => "TOK_IS",
            Self::Null => "TOK_NULL",
            Self::Count => "TOK_COUNT",
            Self::Distinct => "TOK_DISTINCT",
            Self::GroupBy => "TOK_GROUPBY",
            Self::Equal => "TOK_EQ",
            Self::NotEqual => "TOK_NE",
            Self::AtMost => "TOK_LTE",
            Self::AtLeast => "TOK_GTE",
        };
        name.to_owned()
    }
}

/// Splits the text of an expression into tokens.
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    attributes: &'t dyn Attributes,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str, attributes: &'t dyn Attributes) -> Self {
        Self { text, at: 0, attributes }
    }

    /// The rest of the text.
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The next token, and the text from its start on.
    ///
    /// # Errors
    /// [`crate::WordsError::Expression`] for an unknown operator or a text without a closing quote.
    pub fn next(&mut self) -> Result<(Token, &'t str)> {
        while matches!(self.byte(0), b' ' | b'\t'..=b'\r') {
            self.at += 1;
        }
        let from = self.rest();
        let token = match self.byte(0) {
            // A zero byte ends the text, as in Sphinx.
            0 => Token::End,
            b'0'..=b'9' => self.number(),
            b'@' if is_name(self.byte(1)) && !self.byte(1).is_ascii_digit() => self.magic()?,
            byte if is_name(byte) => self.word(),
            b'.' => self.dot(),
            b'\'' | b'"' => self.quoted()?,
            _ => self.symbol()?,
        };
        Ok((token, from))
    }

    /// Takes `length` bytes.
    fn take(&mut self, length: usize) -> &'t str {
        let from = self.at;
        self.at += length;
        self.text.get(from..self.at).unwrap_or_default()
    }

    fn take_name(&mut self) -> &'t str {
        let length = self.rest().bytes().take_while(|&byte| is_name(byte)).count();
        self.take(length)
    }

    fn number(&mut self) -> Token {
        let text = self.take(real_length(self.rest()));
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let digit =
                |value: u64, byte: u8| value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            return Token::Integer(text.bytes().fold(0, digit).cast_signed());
        }
        Token::Real(text.parse::<f64>().unwrap_or(0.0) as f32)
    }

    fn dot(&mut self) -> Token {
        if self.byte(1).is_ascii_digit() {
            let length = real_length(self.rest());
            if !is_name(self.byte(length)) {
                let value = self.take(length).parse::<f64>().unwrap_or(0.0);
                return Token::DotNumber(value as f32);
            }
        }
        self.at += 1;
        while matches!(self.byte(0), b' ' | b'\t'..=b'\r') {
            self.at += 1;
        }
        self.take_name();
        Token::Subkey
    }

    fn magic(&mut self) -> Result<Token> {
        self.at += 1;
        match self.take_name().to_ascii_lowercase().as_str() {
            "id" => Ok(Token::AtKey),
            "weight" => Ok(Token::AtWeight),
            "geodist" => Err(refused("geoanchor is not set, @geodist expression unavailable")),
            _ => Ok(Token::UserVariable),
        }
    }

    fn word(&mut self) -> Token {
        let written = self.take_name();
        let name = written.to_ascii_lowercase();
        match name.as_str() {
            "id" => return Token::Key,
            "weight" => return Token::Weight,
            "groupby" => return Token::GroupBy,
            "distinct" => return Token::Distinct,
            "and" => return Token::And,
            "or" => return Token::Or,
            "not" => return Token::Not,
            "div" => return Token::Div,
            "mod" => return Token::Mod,
            "for" => return Token::For,
            "is" => return Token::Is,
            "null" => return Token::Null,
            "count" => return Token::Count,
            _ => {}
        }
        if let Some((number, kind)) = self.attributes.find(&name) {
            return Token::Attribute(number, kind);
        }
        match name.as_str() {
            "sum" => return Token::Aggregate(Aggregate::Sum),
            "top" => return Token::Aggregate(Aggregate::Top),
            "max_window_hits" => return Token::MaxWindowHits,
            "bm25a" => return Token::Bm25a,
            "bm25f" => return Token::Bm25f,
            "in" => return Token::In,
            _ => {}
        }
        if let Some(named) = functions::by_name(&name) {
            return Token::Function(named);
        }
        if functions::is_refused(&name) {
            return Token::Refused(name);
        }
        match Factor::by_name(&name) {
            Some(factor) => Token::Factor(factor),
            None => Token::Name(written.to_owned()),
        }
    }

    fn quoted(&mut self) -> Result<Token> {
        let from = self.rest();
        let mut characters = from.char_indices();
        let end = characters.next().map(|(_, quote)| quote);
        while let Some((at, character)) = characters.next() {
            if Some(character) == end {
                self.at += at + 1;
                return Ok(Token::Text);
            }
            if character == '\\' {
                characters.next();
            }
        }
        Err(refused(format!("unterminated string constant near '{from}'")))
    }

    fn symbol(&mut self) -> Result<Token> {
        let from = self.rest();
        let symbol = from.chars().next().unwrap_or_default();
        self.at += symbol.len_utf8();
        let next = self.byte(0);
        Ok(match (symbol, next) {
            ('<', b'>') => self.double(Token::NotEqual),
            ('<', b'=') => self.double(Token::AtMost),
            ('>', b'=') => self.double(Token::AtLeast),
            ('=', b'=') => self.double(Token::Equal),
            ('=', _) => Token::Equal,
            ('<' | '>' | '+' | '-' | '*' | '/' | '(' | ')' | ',' | '&' | '|' | '%', _)
            | ('{' | '}' | '[' | ']' | '`', _) => Token::Symbol(symbol),
            _ => return Err(refused(format!("unknown operator '{symbol}' near '{from}'"))),
        })
    }

    fn double(&mut self, token: Token) -> Token {
        self.at += 1;
        token
    }
}

/// The length of the number at the start of the text: digits, a point, digits, an exponent.
fn real_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') {
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    length
}
