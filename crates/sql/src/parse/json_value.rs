//! `JSON_VALUE` with clauses; without any it is a function like others.
//!
//! ```text
//! call    := "JSON_VALUE" "(" document "," path ["RETURNING" type] [answer "ON" "EMPTY"] [answer "ON" "ERROR"] ")"
//! answer  := "NULL" | "ERROR" | "DEFAULT" literal
//! ```

use datafusion::sql::sqlparser::{
    ast::{CastKind, DataType, ExactNumberInfo, Expr, Value},
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::Token,
};

use super::{UNSUPPORTED, cast::is_known, function_call};

/// The function that represents the call. Its arguments: document, path, type, and the answers ON EMPTY and ON ERROR.
/// It returns a text, which a cast converts to the type. It can be parsed back from its text, because views store it
/// so.
pub(crate) const JSON_VALUE_OF: &str = "json_value_of";

/// Prefix of an answer: a default value follows.
pub(crate) const DEFAULT: char = '=';
/// The answer ERROR.
pub(crate) const ERROR: &str = "error";
/// The character sets that RETURNING may name: those that the result has anyway.
const CHARSETS: [&str; 3] = ["utf8mb4", "utf8mb3", "utf8"];
/// The answer NULL.
const NULL: &str = "null";

/// Whether the next call has clauses.
pub(super) fn has_clauses(parser: &Parser<'_>) -> bool {
    let mut depth = 0_usize;
    for at in parser.get_current_index() + 1.. {
        match &parser.token_at(at).token {
            Token::EOF => return false,
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => return false,
            Token::RParen => depth -= 1,
            Token::Word(word) if depth == 1 && word.quote_style.is_none() => {
                let begins = [Keyword::RETURNING, Keyword::DEFAULT, Keyword::ERROR, Keyword::ON];
                if begins.contains(&word.keyword) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Parses the arguments, after the function's name.
pub(super) fn json_value(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let document = parser.parse_expr()?;
    parser.expect_token(&Token::Comma)?;
    let path = parser.parse_expr()?;
    let kind = returned(parser)?;
    let mut on_empty = NULL.to_owned();
    let mut on_error = NULL.to_owned();
    let mut said = answer(parser)?;
    if let Some(answer) = said.take_if(|(_, is_empty)| *is_empty) {
        on_empty = answer.0;
        said = self::answer(parser)?;
        if said.as_ref().is_some_and(|(_, is_empty)| *is_empty) {
            return parser.expected_at("ERROR", parser.get_current_index());
        }
    }
    if let Some((answer, _)) = said {
        on_error = answer;
    }
    parser.expect_token(&Token::RParen)?;
    let text = |text: String| Expr::Value(Value::SingleQuotedString(text).into());
    let name = kind.as_ref().map_or_else(|| "char 512".to_owned(), name_of);
    let args = vec![document, path, text(name), text(on_empty), text(on_error)];
    let value = function_call(JSON_VALUE_OF, args);
    Ok(match kind {
        None => value,
        Some(kind) => Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(value),
            data_type: cast_to(kind),
            array: false,
            format: None,
        },
    })
}

fn returned(parser: &mut Parser<'_>) -> Result<Option<DataType>, ParserError> {
    if !parser.parse_keyword(Keyword::RETURNING) {
        return Ok(None);
    }
    let place = parser.get_current_index() + 1;
    let kind = parser.parse_data_type()?;
    if !is_known(&kind) {
        return parser.expected_at("a type of CAST", place);
    }
    if matches!(kind, DataType::Char(_) | DataType::Character(_)) {
        charset(parser)?;
    }
    Ok(Some(kind))
}

/// The character set after a text type.
fn charset(parser: &mut Parser<'_>) -> Result<(), ParserError> {
    let is_said = parser.parse_keywords(&[Keyword::CHARACTER, Keyword::SET])
        || parser.parse_keyword(Keyword::CHARSET);
    if !is_said {
        return Ok(());
    }
    let name = parser.parse_identifier()?.value;
    if CHARSETS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    Err(unsupported(&format!("JSON_VALUE with CHARACTER SET {name}")))
}

/// 1235.
fn unsupported(what: &str) -> ParserError {
    ParserError::ParserError(format!("{UNSUPPORTED}{what}"))
}

/// The answer of one clause, and whether it is ON EMPTY.
fn answer(parser: &mut Parser<'_>) -> Result<Option<(String, bool)>, ParserError> {
    let answer = if parser.parse_keyword(Keyword::NULL) {
        NULL.to_owned()
    } else if parser.parse_keyword(Keyword::ERROR) {
        ERROR.to_owned()
    } else if parser.parse_keyword(Keyword::DEFAULT) {
        let sign = if parser.consume_token(&Token::Minus) { "-" } else { "" };
        // The type of a moment's text says nothing that the type of the call does not.
        if sign.is_empty()
            && matches!(parser.peek_nth_token_ref(1).token, Token::SingleQuotedString(_))
        {
            let _ =
                parser.parse_one_of_keywords(&[Keyword::DATE, Keyword::TIME, Keyword::TIMESTAMP]);
        }
        match parser.parse_value()?.value {
            Value::Boolean(value) if sign.is_empty() => format!("{DEFAULT}{value}"),
            Value::Number(digits, _) => format!("{DEFAULT}{sign}{digits}"),
            Value::SingleQuotedString(text) if sign.is_empty() => format!("{DEFAULT}{text}"),
            Value::Null if sign.is_empty() => NULL.to_owned(),
            other if sign.is_empty() => {
                return Err(unsupported(&format!("JSON_VALUE with DEFAULT {other}")));
            }
            other => {
                let found = format!("Expected: a literal, found: {other}");
                return Err(ParserError::ParserError(found));
            }
        }
    } else {
        return Ok(None);
    };
    parser.expect_keyword_is(Keyword::ON)?;
    let is_empty = matches!(
        &parser.peek_token_ref().token,
        Token::Word(word) if word.value.eq_ignore_ascii_case("EMPTY")
    );
    if is_empty {
        parser.advance_token();
    } else {
        parser.expect_keyword_is(Keyword::ERROR)?;
    }
    Ok(Some((answer, is_empty)))
}

/// A type as the function takes it: its name and its numbers.
fn name_of(kind: &DataType) -> String {
    let sized = |name: &str, size: Option<u64>| match size {
        Some(size) => format!("{name} {size}"),
        None => name.to_owned(),
    };
    match kind {
        DataType::Signed | DataType::SignedInteger => "signed".to_owned(),
        DataType::Unsigned | DataType::UnsignedInteger => "unsigned".to_owned(),
        DataType::Char(length) | DataType::Character(length) => {
            use datafusion::sql::sqlparser::ast::CharacterLength::IntegerLength;
            let length = length.as_ref().and_then(|length| match length {
                IntegerLength { length, .. } => Some(*length),
                _ => None,
            });
            sized("char", length)
        }
        DataType::Binary(length) => sized("binary", *length),
        DataType::Decimal(info) | DataType::Dec(info) => {
            let (digits, scale) = match info {
                ExactNumberInfo::None => (10, 0),
                ExactNumberInfo::Precision(digits) => (*digits, 0),
                ExactNumberInfo::PrecisionAndScale(digits, scale) => (*digits, *scale),
            };
            format!("decimal {digits} {scale}")
        }
        DataType::Float(_) => "float".to_owned(),
        DataType::Double(_) | DataType::DoublePrecision | DataType::Real => "double".to_owned(),
        DataType::Date => "date".to_owned(),
        DataType::Time(digits, _) => sized("time", Some(digits.unwrap_or(0))),
        DataType::Datetime(digits) => sized("datetime", Some(digits.unwrap_or(0))),
        DataType::JSON => "json".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

/// The type that the text is cast to, without a length: it is neither cut nor padded.
fn cast_to(kind: DataType) -> DataType {
    match kind {
        DataType::Binary(_) => DataType::Binary(None),
        kind => kind,
    }
}
