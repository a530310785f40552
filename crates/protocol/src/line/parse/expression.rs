//! Boolean expressions.
//!
//! ```text
//! or   = and { "OR" and }
//! and  = not { [ "AND" ] not }
//! not  = "NOT" not | term | "(" or ")"
//! ```

use remora_engine::TextQuery;

use super::{ParseLimits, lexeme::Lexeme};
use crate::line::{LineError, code};

/// Parses a complete expression.
pub(super) fn parse(lexemes: &[Lexeme], limits: &ParseLimits) -> Result<TextQuery, LineError> {
    let terms = lexemes.iter().filter(|lexeme| matches!(lexeme, Lexeme::Term(_))).count();
    if terms > limits.max_terms {
        return Err(error(format!("Too many terms in expression (max {})", limits.max_terms)));
    }
    let mut parser = Parser { lexemes, max_depth: limits.max_depth };
    let query = parser.or(0)?;
    match parser.lexemes.first() {
        None => Ok(query),
        Some(_) => Err(error("Unexpected token after expression")),
    }
}

struct Parser<'a> {
    /// The remaining tokens.
    lexemes: &'a [Lexeme<'a>],
    max_depth: usize,
}

impl Parser<'_> {
    fn or(&mut self, depth: usize) -> Result<TextQuery, LineError> {
        let mut operands = vec![self.and(depth)?];
        while self.eat(Lexeme::Or) {
            operands.push(self.and(depth)?);
        }
        Ok(combined(operands, TextQuery::Or))
    }

    fn and(&mut self, depth: usize) -> Result<TextQuery, LineError> {
        let mut operands = vec![self.not(depth)?];
        while self.eat(Lexeme::And) || self.at_operand() {
            operands.push(self.not(depth)?);
        }
        Ok(combined(operands, TextQuery::And))
    }

    fn not(&mut self, depth: usize) -> Result<TextQuery, LineError> {
        if depth > self.max_depth {
            return Err(error(format!("nesting depth exceeds {}", self.max_depth)));
        }
        let Some((lexeme, rest)) = self.lexemes.split_first() else { return Err(no_operand()) };
        self.lexemes = rest;
        match lexeme {
            Lexeme::Not => Ok(TextQuery::Not(Box::new(self.not(depth + 1)?))),
            Lexeme::Term("") => Err(error("Empty term in expression")),
            Lexeme::Term(term) => Ok(TextQuery::Term((*term).to_owned())),
            Lexeme::Open => {
                let inner = self.or(depth + 1)?;
                if self.eat(Lexeme::Close) {
                    return Ok(inner);
                }
                Err(error("Expected closing parenthesis ')'"))
            }
            Lexeme::Close | Lexeme::And | Lexeme::Or => Err(no_operand()),
        }
    }

    fn at_operand(&self) -> bool {
        matches!(self.lexemes.first(), Some(Lexeme::Not | Lexeme::Term(_) | Lexeme::Open))
    }

    fn eat(&mut self, wanted: Lexeme) -> bool {
        match self.lexemes.split_first() {
            Some((lexeme, rest)) if *lexeme == wanted => {
                self.lexemes = rest;
                true
            }
            _ => false,
        }
    }
}

fn combined(mut operands: Vec<TextQuery>, operator: fn(Vec<TextQuery>) -> TextQuery) -> TextQuery {
    match operands.pop() {
        Some(only) if operands.is_empty() => only,
        Some(last) => {
            operands.push(last);
            operator(operands)
        }
        None => operator(operands),
    }
}

fn no_operand() -> LineError {
    error("Expected term or opening parenthesis '('")
}

fn error(message: impl std::fmt::Display) -> LineError {
    LineError::new(code::EXPRESSION, format!("Invalid boolean search expression: {message}"))
}
