//! Parts of JSON attributes in Sphinx's dialect: `j.a.b`, `j.list[0]`, `j['name']`.
//!
//! A part becomes a call of [`JSON_PART`]. Where a document has no such part, or a JSON null, it is NULL: it equals
//! nothing, counts as 0 in arithmetic, and differs from every value.

use std::fmt::Write as _;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, Subscript, UnaryOperator, Value, ValueWithSpan,
};

use super::{
    from::binary,
    scores::ResolvedTables,
    sets::{bare, kind_of},
};
use crate::{SqlType, meaning::json::JSON_PART, parse::function_call};

/// The part of a document under names within it. `document` is the column.
pub(super) fn part(document: Expr, names: &[Ident]) -> Expr {
    let mut path = "$".to_owned();
    names.iter().for_each(|name| push_name(&mut path, &name.value));
    extract(document, path)
}

/// The column and the call that `column.list[0]` means; `None` for other expressions.
pub(super) fn accessed(expr: &Expr) -> Option<(Ident, Expr)> {
    let Expr::CompoundFieldAccess { root, access_chain } = expr else { return None };
    let Expr::Identifier(column) = root.as_ref() else { return None };
    let mut path = "$".to_owned();
    for step in access_chain {
        match step {
            AccessExpr::Dot(Expr::Identifier(name)) => push_name(&mut path, &name.value),
            AccessExpr::Subscript(Subscript::Index { index: Expr::Value(value) }) => {
                match &value.value {
                    Value::SingleQuotedString(name) => push_name(&mut path, name),
                    Value::Number(digits, _) if digits.bytes().all(|it| it.is_ascii_digit()) => {
                        path.push('[');
                        path.push_str(digits);
                        path.push(']');
                    }
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    Some((column.clone(), extract(Expr::Identifier(column.clone()), path)))
}

/// Whether an expression is a column of documents.
pub(super) fn is_document(expr: &Expr, tables: &ResolvedTables) -> bool {
    kind_of(expr, tables).is_some_and(|kind| kind.kind == SqlType::Json && kind.multi.is_none())
}

/// Whether an expression is a part of a document.
pub(super) fn is_part(expr: &Expr) -> bool {
    matches!(bare(expr), Expr::Function(function) if is_call(function, JSON_PART))
}

/// A condition with NOT on a part, which holds where the part is missing; `None` for other expressions.
pub(super) fn condition(expr: &mut Expr) -> Option<Expr> {
    match expr {
        Expr::BinaryOp { left, op, right }
            if *op == BinaryOperator::NotEq && (is_part(left) || is_part(right)) =>
        {
            *op = BinaryOperator::Eq;
        }
        Expr::InList { expr, negated, .. } | Expr::Between { expr, negated, .. }
            if *negated && is_part(expr) =>
        {
            *negated = false;
        }
        _ => return None,
    }
    let holds = function_call("coalesce", vec![expr.clone(), number("0")]);
    Some(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(holds) })
}

/// Whether a document or a part of one has one of these values, or has one in its array.
pub(super) fn holds_one_of(document: Expr, values: Vec<Expr>) -> Expr {
    let values = function_call("json_array", values);
    let overlaps = function_call("json_overlaps", vec![document, values]);
    function_call("coalesce", vec![overlaps, number("0")])
}

/// The number of a part in arithmetic.
pub(super) fn number_of(part: Expr) -> Expr {
    let real = binary(part, BinaryOperator::Plus, number("0e0"));
    function_call("coalesce", vec![Expr::Nested(Box::new(real)), number("0")])
}

/// A number as it is written.
pub(super) fn number(digits: &str) -> Expr {
    Expr::Value(Value::Number(digits.to_owned(), false).into())
}

/// The arguments of a call that has nothing else in its parentheses.
pub(super) fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    if list.duplicate_treatment.is_some() || function.over.is_some() {
        return None;
    }
    let mut exprs = Vec::with_capacity(list.args.len());
    for arg in &list.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = arg else { return None };
        exprs.push(expr);
    }
    Some(exprs)
}

/// The text of a literal.
pub(super) fn literal_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        _ => None,
    }
}

fn is_call(function: &Function, name: &str) -> bool {
    let named = function.name.0.first().and_then(|part| part.as_ident());
    function.name.0.len() == 1 && named.is_some_and(|named| named.value == name)
}

fn extract(document: Expr, path: String) -> Expr {
    let path = Expr::Value(Value::SingleQuotedString(path).into());
    function_call(JSON_PART, vec![document, path])
}

/// Adds a member's name to a path, in quotes unless it is a plain word.
fn push_name(path: &mut String, name: &str) {
    let is_word = name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if is_word {
        path.push('.');
        path.push_str(name);
        return;
    }
    path.push_str(".\"");
    for letter in name.chars() {
        match letter {
            '"' | '\\' => {
                path.push('\\');
                path.push(letter);
            }
            control if u32::from(control) < 0x20 => {
                // Writing to a String never fails.
                let _ = write!(path, "\\u{:04x}", u32::from(control));
            }
            letter => path.push(letter),
        }
    }
    path.push('"');
}
