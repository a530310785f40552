//! `CAST(value AS type)` and `CONVERT(value, type)`: MySQL's types of them. The parser knows those of columns too.

use datafusion::sql::sqlparser::{
    ast::{CastKind, DataType, Expr, Ident, ObjectName},
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

/// `(value AS type [ARRAY])`, or `(value AS CHAR[(n)] charset)`.
pub(super) fn cast(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    if names_charset(parser) {
        return cast_to_charset(parser);
    }
    let cast = parser.parse_cast_expr(CastKind::Cast)?;
    let is_as = |token: &Token| matches!(token, Token::Word(word) if word.keyword == Keyword::AS);
    match &cast {
        Expr::Cast { data_type, .. } if !is_known(data_type) => refused(parser, is_as),
        _ => Ok(cast),
    }
}

/// Whether the parentheses that come next end with a character set. Looks at each token in them once.
fn names_charset(parser: &Parser<'_>) -> bool {
    let (mut depth, mut end) = (0_usize, parser.index());
    loop {
        match &parser.token_at(end).token {
            Token::EOF => return false,
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => break,
            Token::RParen => depth -= 1,
            _ => {}
        }
        end += 1;
    }
    let is = |before: usize, words: &[&str]| {
        let token = end.checked_sub(before).map(|at| &parser.token_at(at).token);
        let said = |word: &str| words.iter().any(|known| word.eq_ignore_ascii_case(known));
        matches!(token, Some(Token::Word(word)) if word.quote_style.is_none() && said(&word.value))
    };
    is(2, &["CHARSET", "SET"]) || is(1, &["ASCII", "UNICODE"]) && is(2, &["CHAR", "CHARACTER"])
}

/// `(value AS CHAR[(n)] (("CHARACTER SET" | "CHARSET") name | "ASCII" | "UNICODE"))`.
fn cast_to_charset(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_keyword_is(Keyword::AS)?;
    let data_type = parser.parse_data_type()?;
    if !matches!(data_type, DataType::Char(_) | DataType::Character(_)) {
        return parser.expected_at(")", parser.index());
    }
    let is_named = parser.parse_keyword(Keyword::CHARSET)
        || parser.parse_keywords(&[Keyword::CHARACTER, Keyword::SET])
        || parser.parse_keywords(&[Keyword::CHAR, Keyword::SET]);
    let said = parser.parse_identifier()?;
    let charset = match is_named {
        true => said,
        false if said.value.eq_ignore_ascii_case("UNICODE") => Ident::new("ucs2"),
        false => Ident::new("latin1"),
    };
    let charset = ObjectName::from(vec![charset]);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Convert {
        is_try: false,
        expr,
        data_type: Some(data_type),
        charset: Some(charset),
        target_before_value: false,
        styles: Vec::new(),
    })
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
