//! Calls whose arguments are not values: MATCH … AGAINST, and functions with a unit.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    SearchModifier, Value, ValueWithSpan,
};

use super::scores::{arguments, column_of, is_called};
use crate::{
    Error, Result,
    meaning::json::Path,
    parse::{MATCH, MATCH_AT_PATHS, MATCH_OF_PATHS, function_call},
};

/// Functions whose first argument is a keyword.
const WITH_UNIT: [&str; 3] = ["timestampdiff", "timestampadd", "get_format"];

/// MATCH (names) AGAINST (query mode) as a function call.
pub(super) fn call(names: Vec<Expr>, query: &ValueWithSpan, mode: Option<String>) -> Expr {
    let mut args = vec![text(mode.unwrap_or_default()), sought(query)];
    args.extend(names);
    function_call(MATCH, args)
}

/// Error 1235 for WITH QUERY EXPANSION.
pub(super) fn check_modifier(modifier: Option<&SearchModifier>) -> Result<()> {
    match modifier {
        Some(
            SearchModifier::InNaturalLanguageModeWithQueryExpansion
            | SearchModifier::WithQueryExpansion,
        ) => Err(Error::unsupported("WITH QUERY EXPANSION")),
        _ => Ok(()),
    }
}

/// The query of AGAINST as a text.
fn sought(query: &ValueWithSpan) -> Expr {
    match &query.value {
        Value::Number(digits, _) => text(digits.clone()),
        // NULL matches nothing.
        Value::Null => text(""),
        _ => Expr::Value(query.clone()),
    }
}

/// Whether a call is a MATCH over texts at paths with resolved names that is not rewritten yet.
pub(super) fn is_of_paths(function: &Function) -> bool {
    is_called(function, MATCH_OF_PATHS)
}

/// Rewrites MATCH (document->>path, …) AGAINST (query mode), with resolved names, to a scoring
/// function of mode, query, document and paths. If all paths are plain names of one document, a
/// text index can have them.
pub(super) fn at_paths(function: &Function) -> Result<Expr> {
    let args = arguments(function);
    let [mode, Expr::Value(query), texts @ ..] = args.as_slice() else {
        return Err(Error::unsupported("AGAINST of this"));
    };
    if is_expanded(mode) {
        return Err(Error::unsupported("WITH QUERY EXPANSION"));
    }
    let mut document: Option<&Expr> = None;
    let mut paths = Vec::with_capacity(texts.len());
    for of in texts {
        let Some((column, path)) = text_at_path(of) else {
            let what = "MATCH of anything but columns alone, or texts at paths of one JSON column alone: doc->>'$.title', doc->>'$.body'";
            return Err(Error::unsupported(what));
        };
        if *document.get_or_insert(column) != column {
            return Err(Error::unsupported("MATCH of texts in several documents: ask each alone"));
        }
        if Path::parse(&path)?.names().is_none() {
            let what = format!("MATCH of what '{path}' leads to: a text index has paths of names");
            return Err(Error::unsupported(what));
        }
        paths.push(text(path));
    }
    let Some(document) = document else { return Err(Error::unsupported("MATCH of nothing")) };
    let mut args = vec![(*mode).clone(), sought(query), document.clone()];
    args.extend(paths);
    Ok(function_call("match_score", vec![function_call(MATCH_AT_PATHS, args)]))
}

fn is_expanded(mode: &Expr) -> bool {
    let Expr::Value(mode) = mode else { return false };
    matches!(&mode.value, Value::SingleQuotedString(mode) if mode.contains("EXPANSION"))
}

/// The column and the path of `column->>'path'`, in either spelling.
fn text_at_path(expr: &Expr) -> Option<(&Expr, String)> {
    let (document, path) = match expr {
        Expr::BinaryOp { left, op: BinaryOperator::LongArrow, right } => (left.as_ref(), &**right),
        Expr::Function(unquote) if has_name(unquote, "json_unquote") => {
            match arguments(unquote).as_slice() {
                [Expr::BinaryOp { left, op: BinaryOperator::Arrow, right }] => {
                    (left.as_ref(), &**right)
                }
                [Expr::Function(extract)] if has_name(extract, "json_extract") => {
                    match arguments(extract).as_slice() {
                        [document, path] => (*document, *path),
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    let Expr::Value(path) = path else { return None };
    let path = path.value.clone().into_string()?;
    column_of(document).is_some().then_some((document, path))
}

fn has_name(function: &Function, name: &str) -> bool {
    function.name.to_string().eq_ignore_ascii_case(name)
}

/// Turns the unit argument of these functions into a text.
pub(super) fn unit_as_text(function: &mut Function) {
    let name = function.name.to_string().to_lowercase();
    if !WITH_UNIT.contains(&name.as_str()) {
        return;
    }
    let FunctionArguments::List(list) = &mut function.args else { return };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first))) = list.args.first_mut() else {
        return;
    };
    if let Expr::Identifier(word) = first {
        *first = text(word.value.clone());
    }
}

/// A literal text.
pub(super) fn text(value: impl Into<String>) -> Expr {
    Expr::Value(ValueWithSpan::from(Value::SingleQuotedString(value.into())))
}

/// A value as a literal.
pub(crate) fn literal(value: &remora_engine::Value) -> Expr {
    use remora_engine::Value as Ours;
    let number = |digits: String| match digits.strip_prefix('-') {
        Some(digits) => Expr::UnaryOp {
            op: datafusion::sql::sqlparser::ast::UnaryOperator::Minus,
            expr: Box::new(literal_number(digits.to_owned())),
        },
        None => literal_number(digits),
    };
    match value {
        Ours::Null => Expr::Value(ValueWithSpan::from(Value::Null)),
        Ours::Int(_) | Ours::Uint(_) | Ours::Decimal(_) => number(value.to_string()),
        Ours::Bool(truth) => number(u8::from(*truth).to_string()),
        Ours::Float(double) => number(format!("{double:e}")),
        Ours::Bytes(bytes) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            Expr::Value(ValueWithSpan::from(Value::HexStringLiteral(digits)))
        }
        value => text(value.to_string()),
    }
}

fn literal_number(digits: String) -> Expr {
    Expr::Value(ValueWithSpan::from(Value::Number(digits, false)))
}
