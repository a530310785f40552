//! `MATCH('query')`, a keyword query, and `OPTION`, the settings of its ranking.
//!
//! ```text
//! match   := "MATCH" "(" text ["," table] ")"                       a call of [`KEYWORDS`]: query, options, table
//! option  := "OPTION" name "=" value ("," name "=" value)*          behind everything else of a SELECT
//! value   := name | number | text | "(" name "=" number ("," name "=" number)* ")" | name "(" text ")"
//! ```

use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, SetExpr, Setting,
    Value, VisitorMut,
};

use remora_engine::Value as Bound;
use remora_mysql::{Token, TokenKind};

use super::{Source, Tokens, VisitMut, options};
use crate::Result;

/// The function that represents `MATCH('query')`. Its arguments: query, options, and the table if it is named.
pub(crate) const KEYWORDS: &str = "match_keywords";

/// A ranker whose parameter has no value yet.
pub(crate) const UNKNOWN_RANKER: &str = "?";

/// The value of an option.
#[derive(Debug)]
pub(crate) enum OptionValue {
    /// A name or a number, as written.
    Word(String),
    Text(KnownText),
    /// `(title=10, body=3)`.
    List(Vec<(String, KnownText)>),
    /// `expr('…')`.
    Call(String, KnownText),
}

/// The value of a text or a parameter; `None` while the parameter has no value.
pub(crate) type KnownText = Option<String>;

/// The options of a statement by their names, in lower case.
pub(crate) type NamedOptions = Vec<(String, OptionValue)>;

impl OptionValue {
    /// The value as one text: a list as `name=number,name=number`; `None` if a parameter of it has no value.
    fn into_text(self) -> KnownText {
        match self {
            Self::Word(word) => Some(word),
            Self::Text(text) => text,
            Self::List(parts) => {
                let parts = parts.into_iter().map(|(name, number)| Some((name, number?)));
                let parts: Option<Vec<_>> = parts.collect();
                let shown = |(name, number)| format!("{name}={number}");
                Some(parts?.into_iter().map(shown).collect::<Vec<_>>().join(","))
            }
            Self::Call(name, inner) => inner.map(|inner| format!("{name}({inner})")),
        }
    }
}

/// The position of the OPTION clause in these tokens of a statement, and its options, one per line. Options whose
/// parameters have no values yet are left out, except the ranker.
pub(super) fn option_clause(
    source: &Source,
    tokens: &Range<usize>,
    parameters: &[Bound],
) -> Result<Option<(usize, String)>> {
    let found = named_options_within(source, tokens, parameters)?;
    let Some((start, options)) = found else { return Ok(None) };
    let mut lines = Vec::new();
    for (name, value) in options {
        match value.into_text() {
            Some(value) => {
                options::check(&name, &value)?;
                lines.push(format!("{name}={}", value.replace(['\n', '\r'], " ")));
            }
            // Which other options are allowed depends on the ranker, so they are checked once it is known.
            None if name == "ranker" => lines.push(format!("{name}={UNKNOWN_RANKER}")),
            None => {}
        }
    }
    Ok(Some((start, lines.join("\n"))))
}

/// The position of a statement's OPTION clause, and its options, unchecked.
pub(crate) fn named_options(
    source: &Source,
    parameters: &[Bound],
) -> Result<Option<(usize, NamedOptions)>> {
    named_options_within(source, &(0..source.tokens.len()), parameters)
}

fn named_options_within(
    source: &Source,
    tokens: &Range<usize>,
    parameters: &[Bound],
) -> Result<Option<(usize, NamedOptions)>> {
    let is_option = |at: &usize| {
        source.is_word(*at, "OPTION")
            && source.is(at + 2, "=")
            && *at > 0
            && !source.is(at - 1, ".")
    };
    let Some(start) = tokens.clone().rev().find(is_option) else { return Ok(None) };
    let is_parameter = |token: &&Token| token.kind == TokenKind::Parameter;
    let before = source.tokens.get(tokens.start..start).unwrap_or_default();
    let passed = before.iter().filter(is_parameter).count();
    let tokens = source.tokens.get(start + 1..tokens.end).unwrap_or_default();
    let tokens = Tokens::new(&source.text, tokens, source.mode);
    let mut clause = Options { tokens, parameters: parameters.get(passed..).unwrap_or(&[]) };
    let mut options = Vec::new();
    loop {
        let name = clause.tokens.name()?.to_lowercase();
        clause.tokens.need("=")?;
        options.push((name, clause.value()?));
        if !clause.tokens.take(",") {
            break;
        }
    }
    clause.tokens.expect_end()?;
    Ok(Some((start, options)))
}

/// The content of an OPTION clause, and the values of its parameters.
struct Options<'t> {
    tokens: Tokens<'t>,
    parameters: &'t [Bound],
}

impl Options<'_> {
    fn value(&mut self) -> Result<OptionValue> {
        if let Some(value) = self.parameter() {
            return Ok(OptionValue::Text(value));
        }
        let tokens = &mut self.tokens;
        if tokens.is_text() {
            return tokens.utf8().map(|text| OptionValue::Text(Some(text)));
        }
        if !tokens.take("(") {
            let Some(token) = tokens.next() else { return Err(tokens.syntax_error()) };
            let word = String::from_utf8_lossy(tokens.bytes(token)).into_owned();
            if !tokens.take("(") {
                return Ok(OptionValue::Word(word));
            }
            let inner = self.inner()?;
            self.tokens.need(")")?;
            return Ok(OptionValue::Call(word, inner));
        }
        let mut parts = Vec::new();
        loop {
            let name = self.tokens.name()?;
            self.tokens.need("=")?;
            let number = match self.parameter() {
                Some(value) => value,
                None => Some(self.tokens.number()?.to_string()),
            };
            parts.push((name, number));
            if !self.tokens.take(",") {
                break;
            }
        }
        self.tokens.need(")")?;
        Ok(OptionValue::List(parts))
    }

    /// The text between the parentheses of `expr('…')`.
    fn inner(&mut self) -> Result<KnownText> {
        match self.parameter() {
            Some(value) => Ok(value),
            None if self.tokens.is_text() => self.tokens.utf8().map(Some),
            None => Ok(Some(String::new())),
        }
    }

    /// Consumes `?` and returns its value, if it has one.
    fn parameter(&mut self) -> Option<KnownText> {
        let next = self.tokens.peek()?;
        if next.kind != TokenKind::Parameter {
            return None;
        }
        self.tokens.next();
        let Some((first, rest)) = self.parameters.split_first() else { return Some(None) };
        self.parameters = rest;
        Some(match first {
            Bound::Int(number) => Some(number.to_string()),
            Bound::Uint(number) => Some(number.to_string()),
            Bound::Text(text) => Some(text.to_string()),
            _ => None,
        })
    }
}

/// Passes the options to the statement's keyword queries and stores them in the statement. Returns false if it has
/// neither keyword queries nor tables.
pub(super) fn set_options(statement: &mut ast::Statement, options: &str) -> bool {
    let is_given = give_options(statement, options);
    keep_options(statement, options) || is_given
}

/// Passes the options to each keyword query of a statement. Returns whether there is one.
fn give_options(statement: &mut ast::Statement, options: &str) -> bool {
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

/// Stores the options in a query, because some apply to the whole statement. Returns false if it reads no table.
fn keep_options(statement: &mut ast::Statement, options: &str) -> bool {
    let ast::Statement::Query(query) = statement else { return false };
    let setting = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let value = Value::SingleQuotedString(value.to_owned());
        Some(Setting { key: Ident::new(name), value: Expr::Value(value.into()) })
    };
    query.settings = Some(options.lines().filter_map(setting).collect());
    matches!(query.body.as_ref(), SetExpr::Select(select) if !select.from.is_empty())
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
