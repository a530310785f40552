//! `GEODIST()`: Sphinx's function for the distance between two points on the earth.
//!
//! ```text
//! call   := "GEODIST" "(" latitude "," longitude "," latitude "," longitude ["," "{" option ("," option)* "}"] ")"
//! option := "in" "=" ("deg" | "degrees" | "rad" | "radians")
//!         | "out" "=" ("m" | "meters" | "km" | "kilometers" | "ft" | "feet" | "mi" | "miles")
//!         | "method" "=" ("adaptive" | "haversine")
//! ```

use datafusion::sql::sqlparser::{
    ast::{Expr, Value},
    parser::{Parser, ParserError},
    tokenizer::Token,
};

use super::function_call;

/// The number of coordinates of two points.
const NUMBERS: usize = 4;

/// The options, as further arguments of the function.
struct Measure {
    /// Whether coordinates are in degrees, not in radians.
    degrees: bool,
    /// The result's unit in metres.
    unit: &'static str,
    /// Whether the earth is treated as a sphere for every distance.
    sphere: bool,
}

/// Parses the arguments, after the function's name.
pub(super) fn distance(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let mut args = Vec::with_capacity(NUMBERS + 3);
    let mut measure = Measure { degrees: false, unit: "1", sphere: false };
    loop {
        if args.len() == NUMBERS && parser.peek_token_ref().token == Token::LBrace {
            measure.read(parser)?;
            break;
        }
        args.push(parser.parse_expr()?);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    // A view stores all arguments. The function itself refuses any other number of them.
    if args.len() == NUMBERS {
        let number = |digits: &str| Expr::Value(Value::Number(digits.to_owned(), false).into());
        let truth = |is: bool| number(if is { "1" } else { "0" });
        args.extend([truth(measure.degrees), number(measure.unit), truth(measure.sphere)]);
    }
    Ok(function_call("geodist", args))
}

impl Measure {
    /// Reads the options.
    fn read(&mut self, parser: &mut Parser) -> Result<(), ParserError> {
        parser.expect_token(&Token::LBrace)?;
        loop {
            let name = parser.parse_identifier()?.value.to_lowercase();
            parser.expect_token(&Token::Eq)?;
            let value = parser.parse_identifier()?.value.to_lowercase();
            match (name.as_str(), value.as_str()) {
                ("in", "deg" | "degrees") => self.degrees = true,
                ("in", "rad" | "radians") => self.degrees = false,
                ("out", "m" | "meters") => self.unit = "1",
                ("out", "km" | "kilometers") => self.unit = "1000",
                ("out", "ft" | "feet") => self.unit = "0.3048",
                ("out", "mi" | "miles") => self.unit = "1609.344",
                ("method", "adaptive") => self.sphere = false,
                ("method", "haversine") => self.sphere = true,
                _ => {
                    let what = format!("{}GEODIST with {name}={value}", super::UNSUPPORTED);
                    return Err(ParserError::ParserError(what));
                }
            }
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RBrace)?;
        Ok(())
    }
}
