//! Calls whose arguments are not values: MATCH … AGAINST, and functions with a unit.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, ValueWithSpan,
};

use crate::parse::{MATCH, function_call};

/// Functions whose first argument is a keyword.
const WITH_UNIT: [&str; 3] = ["timestampdiff", "timestampadd", "get_format"];

/// MATCH (names) AGAINST (query mode) as a function call.
pub(super) fn call(names: Vec<Expr>, query: &ValueWithSpan, mode: Option<String>) -> Expr {
    let query = match &query.value {
        Value::Number(digits, _) => text(digits.clone()),
        // NULL matches nothing.
        Value::Null => text(""),
        _ => Expr::Value(query.clone()),
    };
    let mut args = vec![text(mode.unwrap_or_default()), query];
    args.extend(names);
    function_call(MATCH, args)
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
pub(super) fn literal(value: &remora_engine::Value) -> Expr {
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
