//! `HIGHLIGHT()`: Manticore's function that marks a search's matches in the texts of a row.
//!
//! ```text
//! call    := "HIGHLIGHT" "(" [options ["," texts ["," query]]] ")"
//! options := "{" [option ("," option)*] "}"              option := name "=" (number | text)
//! texts   := a text that names fields, with commas between them; empty is all | any other expression: a text itself
//! ```

use datafusion::sql::sqlparser::{
    ast::{Expr, Value},
    parser::{Parser, ParserError},
    tokenizer::Token,
};

use super::function_call;

/// The function that represents the call. Its arguments: options, texts, query, as far as given. It can be parsed back
/// from its text, because views store it so.
pub(crate) const HIGHLIGHT: &str = "highlight_call";
/// The separator of options.
pub(crate) const BETWEEN_OPTIONS: char = '\u{1F}';

/// Parses the arguments, after the function's name.
pub(super) fn highlight(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let mut options = Vec::new();
    let mut args = Vec::new();
    if parser.peek_token_ref().token != Token::RParen {
        parser.expect_token(&Token::LBrace)?;
        options = read_options(parser)?;
        while args.len() < 2 && parser.consume_token(&Token::Comma) {
            args.push(parser.parse_expr()?);
        }
    }
    parser.expect_token(&Token::RParen)?;
    let options = options.join(BETWEEN_OPTIONS.encode_utf8(&mut [0; 4]));
    args.insert(0, Expr::Value(Value::SingleQuotedString(options).into()));
    Ok(function_call(HIGHLIGHT, args))
}

/// The options up to the brace, each as `name=value`.
pub(super) fn read_options(parser: &mut Parser) -> Result<Vec<String>, ParserError> {
    let mut options = Vec::new();
    if parser.consume_token(&Token::RBrace) {
        return Ok(options);
    }
    loop {
        let name = parser.parse_identifier()?.value;
        parser.expect_token(&Token::Eq)?;
        match parser.parse_value()?.value {
            // A parameter without a value, while the statement is prepared.
            Value::Null => {}
            Value::Number(digits, _) => options.push(format!("{name}={digits}")),
            Value::SingleQuotedString(text) if !text.contains(BETWEEN_OPTIONS) => {
                options.push(format!("{name}={text}"));
            }
            other => {
                let found = format!("{other} as the value of option {name} of HIGHLIGHT");
                return Err(ParserError::ParserError(found));
            }
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RBrace)?;
    Ok(options)
}
