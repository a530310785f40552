//! `INTERVAL size unit`, where MySQL takes it: beside `+` or behind `-`, as an argument of functions of dates, and in
//! the frames of windows. Anywhere else the error is reported after the unit.

use datafusion::sql::sqlparser::{
    ast::{BinaryOperator, Expr},
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::{Token, Word},
};

/// The functions of a date and a span.
const OF_SPANS: [&str; 4] = ["DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE"];

/// Words before a sign that is of one operand.
const NO_OPERANDS: [Keyword; 19] = [
    Keyword::ALL,
    Keyword::AND,
    Keyword::BETWEEN,
    Keyword::BY,
    Keyword::CASE,
    Keyword::DISTINCT,
    Keyword::DIV,
    Keyword::ELSE,
    Keyword::HAVING,
    Keyword::IN,
    Keyword::LIKE,
    Keyword::NOT,
    Keyword::ON,
    Keyword::OR,
    Keyword::SELECT,
    Keyword::THEN,
    Keyword::WHEN,
    Keyword::WHERE,
    Keyword::XOR,
];

/// Binds tighter than AND and looser than comparisons: the operand of `INTERVAL size unit +`.
const SUMMAND: u8 = 10;

/// A span that was read; it began at the token of this number.
pub(super) fn placed(
    parser: &mut Parser<'_>,
    span: Expr,
    place: usize,
) -> Result<Expr, ParserError> {
    if has_place(parser, place) {
        return Ok(span);
    }
    if !parser.consume_token(&Token::Plus) {
        return parser.expected_ref("+", parser.peek_token_ref());
    }
    let right = Box::new(parser.parse_subexpr(SUMMAND)?);
    // Nothing that follows binds tighter. Parentheses would be others in the text of a view.
    Ok(Expr::BinaryOp { left: Box::new(span), op: BinaryOperator::Plus, right })
}

/// Whether what stands before a span takes one.
fn has_place(parser: &Parser<'_>, place: usize) -> bool {
    let Some(before) = place.checked_sub(1) else { return false };
    let next = &parser.peek_token_ref().token;
    match &parser.token_at(before).token {
        Token::Plus | Token::Minus => {
            before > 0 && ends_operand(&parser.token_at(before - 1).token) && !binds_tighter(next)
        }
        Token::Comma => *next == Token::RParen && is_argument(parser, before),
        Token::Word(word) => {
            let begins_bound = [Keyword::RANGE, Keyword::ROWS, Keyword::BETWEEN, Keyword::AND]
                .contains(&word.keyword);
            begins_bound && is_bound(next)
        }
        _ => false,
    }
}

/// Whether a token may end what a sign adds to.
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(Word { keyword, quote_style: None, .. }) => !NO_OPERANDS.contains(keyword),
        Token::Word(_)
        | Token::RParen
        | Token::RBrace
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::SingleQuotedByteStringLiteral(_) => true,
        _ => false,
    }
}

/// Whether an operator would take the span before the sign does.
fn binds_tighter(token: &Token) -> bool {
    match token {
        Token::Mul | Token::Div | Token::Mod | Token::Caret => true,
        Token::Word(word) => {
            word.quote_style.is_none()
                && ["DIV", "MOD", "COLLATE"].iter().any(|it| word.value.eq_ignore_ascii_case(it))
        }
        _ => false,
    }
}

fn is_bound(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.keyword, Keyword::PRECEDING | Keyword::FOLLOWING))
}

/// Whether a comma stands in a call of a function of spans.
fn is_argument(parser: &Parser<'_>, comma: usize) -> bool {
    let mut depth = 0_usize;
    for at in (0..comma).rev() {
        match &parser.token_at(at).token {
            Token::RParen => depth += 1,
            Token::LParen if depth > 0 => depth -= 1,
            Token::LParen => {
                let Some(name) = at.checked_sub(1) else { return false };
                let Token::Word(word) = &parser.token_at(name).token else { return false };
                return OF_SPANS.iter().any(|name| word.value.eq_ignore_ascii_case(name));
            }
            _ => {}
        }
    }
    false
}
