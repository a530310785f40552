//! Literal values in statements, which need no planning. They are read from the tokens, not by the parser: an INSERT may
//! have millions of them, and a syntax tree of every literal costs several times as much time and memory.

use remora_engine::{Date, DateTime, Decimal, Value};
use remora_mysql::{ErrorCode, TokenKind, messages};

use crate::{
    Error, Result, SqlType,
    catalog::TypeSpec,
    meaning::temporal::{parse_moment, parse_time},
    parse::Tokens,
    write::convert::text_of,
};

/// The value given for a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellExpr {
    /// A value.
    Value(Value),
    /// `x'…'` or `b'…'`: a number in a numeric column, bytes in any other.
    Digits(Vec<u8>),
    /// `()` or `(1, 2)`: a set. A single value in parentheses is an expression.
    List(Vec<Value>),
    /// DEFAULT.
    Default,
    /// An expression: the tokens it is made of, which are parsed when it is evaluated.
    Expression(std::ops::Range<usize>),
}

impl CellExpr {
    /// The value for a column of a type; NULL for expressions and DEFAULT.
    ///
    /// # Errors
    /// 1241 for a list if the column is not a set.
    pub(crate) fn value(&self, kind: &TypeSpec) -> Result<Value> {
        Ok(match self {
            Self::Value(value) => value.clone(),
            Self::List(values) if kind.multi().is_some() => {
                let values: Vec<String> = values.iter().map(text_of).collect();
                Value::Json(format!("[{}]", values.join(", ")).into())
            }
            Self::List(_) => {
                let message = messages::operand_columns(1);
                return Err(Error::new(ErrorCode::OperandColumns, message));
            }
            Self::Digits(bytes) => match kind.sql {
                _ if kind.is_integer() => number_of(bytes),
                SqlType::Float
                | SqlType::Double
                | SqlType::Decimal(..)
                | SqlType::Year
                | SqlType::Bit(_) => number_of(bytes),
                _ => Value::Bytes(bytes.as_slice().into()),
            },
            Self::Default | Self::Expression(_) => Value::Null,
        })
    }
}

/// The bytes of a hexadecimal or binary literal as a number. More than 64 bits stay bytes.
fn number_of(bytes: &[u8]) -> Value {
    let significant: Vec<u8> = bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
    match significant.len() {
        0..=8 => {
            Value::Uint(significant.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        }
        _ => Value::Uint(u64::MAX),
    }
}

/// Parses the value for a column, which ends before `,` or `)` or where `stop` says. `parameters` are the values of the
/// statement's `?`.
pub(crate) fn given(
    tokens: &mut Tokens<'_>,
    parameters: &Parameters<'_>,
    stop: impl Fn(&Tokens<'_>) -> bool,
) -> Result<CellExpr> {
    let mut ahead = *tokens;
    if let Some(given) = plain(&mut ahead, parameters)
        && (ahead.at_end() || ahead.is(",") || ahead.is(")") || stop(&ahead))
    {
        *tokens = ahead;
        return Ok(given);
    }
    let mut ahead = *tokens;
    if let Some(values) = list(&mut ahead, parameters)
        && (ahead.at_end() || ahead.is(",") || ahead.is(")") || stop(&ahead))
    {
        *tokens = ahead;
        return Ok(CellExpr::List(values));
    }
    let range = tokens.skip_until(|tokens| tokens.is(",") || stop(tokens))?;
    if range.is_empty() { Err(tokens.syntax_error()) } else { Ok(CellExpr::Expression(range)) }
}

/// The values of a statement's `?`.
pub(crate) struct Parameters<'p> {
    /// In order.
    pub values: &'p [Value],
    /// The token positions of the `?`.
    pub places: Vec<usize>,
}

impl<'p> Parameters<'p> {
    /// The value of the `?` at a token position.
    fn at(&self, place: usize) -> Option<&'p Value> {
        self.values.get(self.places.binary_search(&place).ok()?)
    }

    /// The values of the `?` in these tokens.
    pub(crate) fn within(&self, tokens: std::ops::Range<usize>) -> &'p [Value] {
        let first = self.places.partition_point(|place| *place < tokens.start);
        let last = self.places.partition_point(|place| *place < tokens.end);
        self.values.get(first..last).unwrap_or_default()
    }
}

/// `()`, or two or more literals in parentheses.
fn list(tokens: &mut Tokens<'_>, parameters: &Parameters<'_>) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    if !tokens.take("(") {
        return None;
    }
    if tokens.take(")") {
        return Some(values);
    }
    loop {
        let CellExpr::Value(value) = plain(tokens, parameters)? else { return None };
        values.push(value);
        if tokens.take(")") {
            return (values.len() > 1).then_some(values);
        }
        if !tokens.take(",") {
            return None;
        }
    }
}

/// A literal.
pub(super) fn plain(tokens: &mut Tokens<'_>, parameters: &Parameters<'_>) -> Option<CellExpr> {
    let place = tokens.place();
    let token = tokens.peek()?;
    let value = match token.kind {
        TokenKind::Text | TokenKind::National => return text(tokens).map(CellExpr::Value),
        TokenKind::Integer | TokenKind::Decimal | TokenKind::Float => {
            tokens.next();
            number(std::str::from_utf8(tokens.bytes(token)).ok()?, token.kind, false)?
        }
        TokenKind::Hex | TokenKind::Bits => {
            tokens.next();
            return digits(tokens.bytes(token), token.kind == TokenKind::Hex).map(CellExpr::Digits);
        }
        TokenKind::Parameter => {
            tokens.next();
            parameters.at(place)?.clone()
        }
        TokenKind::Operator if tokens.is("-") || tokens.is("+") => {
            let negative = tokens.take("-") || !tokens.take("+");
            let token = tokens.next()?;
            number(std::str::from_utf8(tokens.bytes(token)).ok()?, token.kind, negative)?
        }
        TokenKind::Word => return word(tokens),
        _ => return None,
    };
    Some(CellExpr::Value(value))
}

fn text(tokens: &mut Tokens<'_>) -> Option<Value> {
    let bytes = tokens.text().ok()?;
    Some(match String::from_utf8(bytes) {
        Ok(text) => Value::Text(text.into()),
        Err(error) => Value::Bytes(error.into_bytes().into()),
    })
}

fn word(tokens: &mut Tokens<'_>) -> Option<CellExpr> {
    if tokens.accept("NULL") {
        return Some(CellExpr::Value(Value::Null));
    }
    if tokens.accept("TRUE") {
        return Some(CellExpr::Value(Value::Bool(true)));
    }
    if tokens.accept("FALSE") {
        return Some(CellExpr::Value(Value::Bool(false)));
    }
    let word = tokens.name().ok()?;
    if word.eq_ignore_ascii_case("DEFAULT") {
        return Some(CellExpr::Default);
    }
    if word.eq_ignore_ascii_case("_binary") && tokens.is_text() {
        return Some(CellExpr::Value(Value::Bytes(tokens.sent().ok()?.into())));
    }
    if word.eq_ignore_ascii_case("_binary") && tokens.is_kind(TokenKind::Hex) {
        let token = tokens.next()?;
        return digits(tokens.bytes(token), true)
            .map(|bytes| CellExpr::Value(Value::Bytes(bytes.into())));
    }
    if ["_utf8mb4", "_utf8mb3", "_utf8", "_ascii"]
        .iter()
        .any(|name| word.eq_ignore_ascii_case(name))
    {
        return text(tokens).map(CellExpr::Value);
    }
    if !tokens.is_text() {
        return None;
    }
    let text = tokens.utf8().ok()?;
    temporal(&word, &text).map(CellExpr::Value)
}

/// `DATE'…'`, `TIME'…'`, `TIMESTAMP'…'`.
fn temporal(word: &str, text: &str) -> Option<Value> {
    let moment = || parse_moment(text).filter(|parsed| parsed.complete);
    match word.to_ascii_uppercase().as_str() {
        "DATE" => {
            let moment = moment().filter(|parsed| !parsed.has_clock)?.moment;
            let (year, month, day) = (moment.year, moment.month, moment.day);
            Some(Value::Date(Date { year, month, day }))
        }
        "TIME" => {
            let time = parse_time(text).filter(|time| time.complete)?;
            Some(Value::Time(time.micros))
        }
        "TIMESTAMP" => {
            let parsed = moment().filter(|parsed| parsed.offset_minutes.is_none())?;
            let (year, month, day) = (parsed.moment.year, parsed.moment.month, parsed.moment.day);
            let micros = parsed.moment.micros.unsigned_abs();
            Some(Value::DateTime(DateTime { date: Date { year, month, day }, micros }))
        }
        _ => None,
    }
}

fn number(text: &str, kind: TokenKind, negative: bool) -> Option<Value> {
    let sign = if negative { "-" } else { "" };
    match kind {
        TokenKind::Integer => {
            if negative {
                let signed = format!("-{text}");
                return match signed.parse() {
                    Ok(number) => Some(Value::Int(number)),
                    Err(_) => decimal(&signed),
                };
            }
            match text.parse::<i64>() {
                Ok(number) => Some(Value::Int(number)),
                Err(_) => match text.parse() {
                    Ok(number) => Some(Value::Uint(number)),
                    Err(_) => decimal(text),
                },
            }
        }
        TokenKind::Decimal => decimal(&format!("{sign}{text}")),
        TokenKind::Float => {
            let number: f64 = text.parse().ok()?;
            // A number that is too large is an error, which planning reports.
            number.is_finite().then_some(Value::Float(if negative { -number } else { number }))
        }
        _ => None,
    }
}

/// A decimal with the scale it is written with.
fn decimal(text: &str) -> Option<Value> {
    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let scale = u8::try_from(fraction).ok().filter(|scale| *scale <= 30)?;
    Decimal::parse(text, 65, scale).map(Value::Decimal)
}

/// The bytes of `0x1F`, `x'1F'`, `0b1`, `b'1'`.
fn digits(text: &[u8], hexadecimal: bool) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let inner = match text.split_once('\'') {
        Some((_, inner)) => inner.strip_suffix('\'')?,
        None => text.get(2..)?,
    };
    let (radix, width) = if hexadecimal { (16, 2) } else { (2, 8) };
    if hexadecimal && text.contains('\'') && inner.len() % 2 == 1 {
        return None;
    }
    let padding = (width - inner.len() % width) % width;
    let padded = format!("{}{inner}", "0".repeat(padding));
    let chunk = |at: usize| u8::from_str_radix(padded.get(at..at + width)?, radix).ok();
    (0..padded.len()).step_by(width).map(chunk).collect()
}
