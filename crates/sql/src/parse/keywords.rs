//! `MATCH('query')`, a query by keywords, and `OPTION`, which says how it is weighed.
//!
//! ```text
//! match   := "MATCH" "(" text ["," table] ")"                       a call of [`KEYWORDS`]: query, options, table
//! option  := "OPTION" name "=" value ("," name "=" value)*          behind everything else of a SELECT
//! value   := name | number | text | "(" name "=" number ("," name "=" number)* ")" | name "(" text ")"
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, VisitMut,
    VisitorMut,
};

use super::{Source, Tokens};
use crate::Result;

/// The name of the function that `MATCH('query')` becomes: query, options, and the table if it is named.
pub(crate) const KEYWORDS: &str = "match_keywords";

/// Where the OPTION clause of a statement begins, and its options, one a line.
pub(super) fn option_clause(source: &Source) -> Result<Option<(usize, String)>> {
    let is_option = |at: &usize| {
        source.is_word(*at, "OPTION")
            && source.is(at + 2, "=")
            && *at > 0
            && !source.is(at - 1, ".")
    };
    let Some(start) = (1..source.tokens.len()).rev().find(is_option) else { return Ok(None) };
    let mut tokens = Tokens::new(&source.text, &source.tokens[start + 1..], source.mode);
    let mut lines = Vec::new();
    loop {
        let name = tokens.name()?.to_lowercase();
        tokens.need("=")?;
        let value = value(&mut tokens)?.replace(['\n', '\r'], " ");
        lines.push(format!("{name}={value}"));
        if !tokens.take(",") {
            break;
        }
    }
    tokens.expect_end()?;
    Ok(Some((start, lines.join("\n"))))
}

/// The value of an option: a list as `name=number,name=number`.
fn value(tokens: &mut Tokens<'_>) -> Result<String> {
    if tokens.is_text() {
        return tokens.utf8();
    }
    if !tokens.take("(") {
        let Some(token) = tokens.next() else { return Err(tokens.syntax_error()) };
        let value = String::from_utf8_lossy(tokens.bytes(token)).into_owned();
        if !tokens.take("(") {
            return Ok(value);
        }
        let inner = if tokens.is_text() { tokens.utf8()? } else { String::new() };
        tokens.need(")")?;
        return Ok(format!("{value}({inner})"));
    }
    let mut parts = Vec::new();
    loop {
        let name = tokens.name()?;
        tokens.need("=")?;
        parts.push(format!("{name}={}", tokens.number()?));
        if !tokens.take(",") {
            break;
        }
    }
    tokens.need(")")?;
    Ok(parts.join(","))
}

/// Gives the options to each query by keywords of a statement; says whether there is one.
pub(super) fn give_options(statement: &mut ast::Statement, options: &str) -> bool {
    let mut giving = Giving { options, is_given: false };
    let _ = statement.visit(&mut giving);
    giving.is_given
}

struct Giving<'o> {
    options: &'o str,
    is_given: bool,
}

impl VisitorMut for Giving<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && let Some([_, options, ..]) = arguments_of(function, KEYWORDS)
        {
            self.is_given = true;
            let text = Value::SingleQuotedString(self.options.to_owned());
            *options = FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(text.into())));
        }
        ControlFlow::Continue(())
    }
}

/// The arguments of a call of that function.
fn arguments_of<'f>(function: &'f mut Function, name: &str) -> Option<&'f mut [FunctionArg]> {
    if function.name.to_string() != name {
        return None;
    }
    match &mut function.args {
        FunctionArguments::List(list) => Some(&mut list.args),
        _ => None,
    }
}
