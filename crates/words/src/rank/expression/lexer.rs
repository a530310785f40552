//! The tokens of an expression.

use super::{
    functions::{self, Named},
    node::{Aggregate, AttributeKind, Attributes, Factor},
    refused,
};
use crate::Result;

/// A token.
#[derive(Clone, Debug)]
pub(super) enum ExpressionToken {
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

impl ExpressionToken {
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
pub(super) struct ExpressionLexer<'t> {
    text: &'t str,
    at: usize,
    attributes: &'t dyn Attributes,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'t> ExpressionLexer<'t> {
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
    pub fn next(&mut self) -> Result<(ExpressionToken, &'t str)> {
        while matches!(self.byte(0), b' ' | b'\t'..=b'\r') {
            self.at += 1;
        }
        let from = self.rest();
        let token = match self.byte(0) {
            // A zero byte ends the text, as in Sphinx.
            0 => ExpressionToken::End,
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

    fn number(&mut self) -> ExpressionToken {
        let text = self.take(real_length(self.rest()));
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let digit =
                |value: u64, byte: u8| value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            return ExpressionToken::Integer(text.bytes().fold(0, digit).cast_signed());
        }
        ExpressionToken::Real(text.parse::<f64>().unwrap_or(0.0) as f32)
    }

    fn dot(&mut self) -> ExpressionToken {
        if self.byte(1).is_ascii_digit() {
            let length = real_length(self.rest());
            if !is_name(self.byte(length)) {
                let value = self.take(length).parse::<f64>().unwrap_or(0.0);
                return ExpressionToken::DotNumber(value as f32);
            }
        }
        self.at += 1;
        while matches!(self.byte(0), b' ' | b'\t'..=b'\r') {
            self.at += 1;
        }
        self.take_name();
        ExpressionToken::Subkey
    }

    fn magic(&mut self) -> Result<ExpressionToken> {
        self.at += 1;
        match self.take_name().to_ascii_lowercase().as_str() {
            "id" => Ok(ExpressionToken::AtKey),
            "weight" => Ok(ExpressionToken::AtWeight),
            "geodist" => Err(refused("geoanchor is not set, @geodist expression unavailable")),
            _ => Ok(ExpressionToken::UserVariable),
        }
    }

    fn word(&mut self) -> ExpressionToken {
        let written = self.take_name();
        let name = written.to_ascii_lowercase();
        match name.as_str() {
            "id" => return ExpressionToken::Key,
            "weight" => return ExpressionToken::Weight,
            "groupby" => return ExpressionToken::GroupBy,
            "distinct" => return ExpressionToken::Distinct,
            "and" => return ExpressionToken::And,
            "or" => return ExpressionToken::Or,
            "not" => return ExpressionToken::Not,
            "div" => return ExpressionToken::Div,
            "mod" => return ExpressionToken::Mod,
            "for" => return ExpressionToken::For,
            "is" => return ExpressionToken::Is,
            "null" => return ExpressionToken::Null,
            "count" => return ExpressionToken::Count,
            _ => {}
        }
        if let Some((number, kind)) = self.attributes.find(&name) {
            return ExpressionToken::Attribute(number, kind);
        }
        match name.as_str() {
            "sum" => return ExpressionToken::Aggregate(Aggregate::Sum),
            "top" => return ExpressionToken::Aggregate(Aggregate::Top),
            "max_window_hits" => return ExpressionToken::MaxWindowHits,
            "bm25a" => return ExpressionToken::Bm25a,
            "bm25f" => return ExpressionToken::Bm25f,
            "in" => return ExpressionToken::In,
            _ => {}
        }
        if let Some(named) = functions::by_name(&name) {
            return ExpressionToken::Function(named);
        }
        if functions::is_refused(&name) {
            return ExpressionToken::Refused(name);
        }
        match Factor::by_name(&name) {
            Some(factor) => ExpressionToken::Factor(factor),
            None => ExpressionToken::Name(written.to_owned()),
        }
    }

    fn quoted(&mut self) -> Result<ExpressionToken> {
        let from = self.rest();
        let mut characters = from.char_indices();
        let end = characters.next().map(|(_, quote)| quote);
        while let Some((at, character)) = characters.next() {
            if Some(character) == end {
                self.at += at + 1;
                return Ok(ExpressionToken::Text);
            }
            if character == '\\' {
                characters.next();
            }
        }
        Err(refused(format!("unterminated string constant near '{from}'")))
    }

    fn symbol(&mut self) -> Result<ExpressionToken> {
        let from = self.rest();
        let symbol = from.chars().next().unwrap_or_default();
        self.at += symbol.len_utf8();
        let next = self.byte(0);
        Ok(match (symbol, next) {
            ('<', b'>') => self.double(ExpressionToken::NotEqual),
            ('<', b'=') => self.double(ExpressionToken::AtMost),
            ('>', b'=') => self.double(ExpressionToken::AtLeast),
            ('=', b'=') => self.double(ExpressionToken::Equal),
            ('=', _) => ExpressionToken::Equal,
            ('<' | '>' | '+' | '-' | '*' | '/' | '(' | ')' | ',' | '&' | '|' | '%', _)
            | ('{' | '}' | '[' | ']' | '`', _) => ExpressionToken::Symbol(symbol),
            _ => return Err(refused(format!("unknown operator '{symbol}' near '{from}'"))),
        })
    }

    fn double(&mut self, token: ExpressionToken) -> ExpressionToken {
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
