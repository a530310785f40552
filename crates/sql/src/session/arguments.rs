//! The arguments of a CALL.

use remora_engine::Value;
use remora_mysql::TokenKind;

use crate::{Result, parse::Tokens};

/// The arguments between the parentheses, and the values of its `?`.
pub(super) struct Arguments<'t> {
    pub(super) tokens: Tokens<'t>,
    pub(super) parameters: std::slice::Iter<'t, Value>,
}

/// An argument.
pub(super) enum Argument {
    Text(String),
    Number(i64),
}

impl Arguments<'_> {
    /// The next value.
    pub(super) fn value(&mut self) -> Result<Argument> {
        let is_parameter = self.tokens.peek().is_some_and(|next| next.kind == TokenKind::Parameter);
        if is_parameter {
            self.tokens.next();
            return match self.parameters.next() {
                Some(Value::Text(text)) => Ok(Argument::Text(text.to_string())),
                Some(Value::Int(number)) => Ok(Argument::Number(*number)),
                Some(Value::Uint(number)) => Ok(Argument::Number(*number as i64)),
                _ => Err(self.tokens.syntax_error()),
            };
        }
        if self.tokens.is_text() {
            return self.tokens.utf8().map(Argument::Text);
        }
        let is_negative = self.tokens.take("-");
        let number = i64::try_from(self.tokens.number()?).unwrap_or(i64::MAX);
        Ok(Argument::Number(if is_negative { -number } else { number }))
    }

    pub(super) fn text(&mut self) -> Result<String> {
        match self.value()? {
            Argument::Text(text) => Ok(text),
            Argument::Number(number) => Ok(number.to_string()),
        }
    }

    /// Parses a text, or several in parentheses.
    pub(super) fn texts(&mut self) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        if self.tokens.take("(") {
            texts.push(self.text()?);
            while self.tokens.take(",") {
                texts.push(self.text()?);
            }
            self.tokens.need(")")?;
        } else {
            texts.push(self.text()?);
        }
        Ok(texts)
    }

    /// Parses the options up to the end of the statement.
    pub(super) fn options(
        &mut self,
        mut set: impl FnMut(&str, Argument) -> Result<()>,
    ) -> Result<()> {
        while self.tokens.take(",") {
            let value = self.value()?;
            if self.tokens.is_word("AS") {
                self.tokens.next();
            }
            let name = self.tokens.name()?;
            set(&name, value)?;
        }
        self.end()
    }

    /// The end of the statement.
    pub(super) fn end(&mut self) -> Result<()> {
        self.tokens.need(")")?;
        self.tokens.expect_end()
    }
}
