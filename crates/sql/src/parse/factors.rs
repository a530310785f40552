//! `PACKEDFACTORS()`, which Manticore calls `FACTORS()` too: what a ranking expression weighs a row by.
//!
//! ```text
//! call := ("PACKEDFACTORS" | "FACTORS") "(" ["{" [name "=" number ("," name "=" number)*] "}"] ")"
//! ```

use datafusion::sql::sqlparser::{
    ast::{Expr, Value},
    parser::{Parser, ParserError},
    tokenizer::Token,
};

use super::{function_call, highlight::read_options};

/// The function that represents the call. Its argument is a text of all options: `name=value`, separated by commas. It
/// can be parsed back from its text, because views store it so.
pub(crate) const FACTORS: &str = "factors_call";

/// Parses the arguments, after the function's name.
pub(super) fn factors(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let options = match parser.consume_token(&Token::LBrace) {
        true => read_options(parser)?,
        false => Vec::new(),
    };
    parser.expect_token(&Token::RParen)?;
    let options = Value::SingleQuotedString(options.join(","));
    Ok(function_call(FACTORS, vec![Expr::Value(options.into())]))
}
