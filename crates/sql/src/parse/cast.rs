//! `CAST(value AS type)` and `CONVERT(value, type)`: MySQL's types of them. The parser knows those of columns too.

use datafusion::sql::sqlparser::{
    ast::{CastKind, DataType, Expr},
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::Token,
};

/// Types that the parser does not know.
const NAMED: [&str; 14] = [
    "binary",
    "char",
    "decimal",
    "geometrycollection",
    "linestring",
    "multilinestring",
    "multipoint",
    "multipolygon",
    "nchar",
    "point",
    "polygon",
    "signed",
    "unsigned",
    "year",
];

/// `(value AS type [ARRAY])`.
pub(super) fn cast(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let cast = parser.parse_cast_expr(CastKind::Cast)?;
    let is_as = |token: &Token| matches!(token, Token::Word(word) if word.keyword == Keyword::AS);
    match &cast {
        Expr::Cast { data_type, .. } if !is_known(data_type) => refused(parser, is_as),
        _ => Ok(cast),
    }
}

/// `(value, type)` or `(value USING charset)`.
pub(super) fn convert(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let convert = parser.parse_convert_expr(false)?;
    match &convert {
        Expr::Convert { data_type: Some(data_type), .. } if !is_known(data_type) => {
            refused(parser, |token| *token == Token::Comma)
        }
        _ => Ok(convert),
    }
}

/// Whether it is a type of CAST.
pub(super) fn is_known(data_type: &DataType) -> bool {
    match data_type {
        DataType::Signed
        | DataType::SignedInteger
        | DataType::Unsigned
        | DataType::UnsignedInteger
        | DataType::Char(_)
        | DataType::Character(_)
        | DataType::Binary(_)
        | DataType::Decimal(_)
        | DataType::Dec(_)
        | DataType::Float(_)
        | DataType::Double(_)
        | DataType::DoublePrecision
        | DataType::Real
        | DataType::Date
        | DataType::Time(..)
        | DataType::Datetime(_)
        | DataType::JSON => true,
        DataType::Custom(name, _) => {
            let name = name.to_string();
            NAMED.iter().any(|known| name.eq_ignore_ascii_case(known))
        }
        _ => false,
    }
}

/// A syntax error at the type, which begins after a token.
fn refused(parser: &Parser<'_>, begins: impl Fn(&Token) -> bool) -> Result<Expr, ParserError> {
    let (mut depth, end) = (0_usize, parser.get_current_index());
    let is_before = |at: &usize| match &parser.token_at(*at).token {
        Token::RParen => {
            depth += 1;
            false
        }
        Token::LParen => {
            depth = depth.saturating_sub(1);
            false
        }
        token => depth == 0 && begins(token),
    };
    let before = (0..end).rev().find(is_before);
    parser.expected_at("a type of CAST", before.map_or(end, |before| before + 1))
}
