//! Special forms: literals, LIKE, CASE, EXTRACT, TRIM, SUBSTRING and the like.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, Expr, Function, TrimWhereField, Value, ValueWithSpan,
};

use super::{
    super::copies,
    arguments::{in_document, wrong_count},
    branch_truth, call, casts, digits, literal, negated_if, text,
};
use crate::{Error, Result, meaning::library::definition, parse::visit_expressions};

/// A literal in a form that the planner reads as MySQL does.
pub(super) fn value(value: ValueWithSpan) -> Expr {
    let span = value.span;
    // Its position tells which literal of the statement it is.
    let placed = |value: Value| Expr::Value(ValueWithSpan { value, span });
    match value.value {
        Value::Number(digits, _) => match digits.bytes().any(|byte| matches!(byte, b'e' | b'E')) {
            true => call("double_literal", vec![text(digits)]),
            false if digits.contains('.') || digits.len() > 19 => decimal_or_integer(digits),
            false => placed(Value::Number(digits, false)),
        },
        Value::DoubleQuotedString(words) => placed(Value::SingleQuotedString(words)),
        Value::NationalStringLiteral(words) => text(words),
        Value::HexStringLiteral(digits) => call("hex_literal", vec![text(digits)]),
        Value::SingleQuotedByteStringLiteral(bits) => call("bit_literal", vec![text(bits)]),
        other => placed(other),
    }
}

fn decimal_or_integer(digits: String) -> Expr {
    match digits.parse::<u64>() {
        Ok(_) => literal(Value::Number(digits, false)),
        Err(_) => call("decimal_literal", vec![text(digits)]),
    }
}

/// `-x`; for a literal the negative literal.
pub(super) fn negative(expr: Expr) -> Expr {
    if let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) = &expr {
        if digits.parse::<i64>().is_ok() {
            return call("integer_literal", vec![text(format!("-{digits}"))]);
        }
        if digits == "9223372036854775808" {
            return call("integer_literal", vec![text(format!("-{digits}"))]);
        }
    }
    call("negative", vec![digits::hex_as_number(expr)])
}

/// Rewrites every form that is not a plain operator.
pub(super) fn special(expr: Expr) -> Result<Expr> {
    Ok(match expr {
        Expr::Like { negated, expr, pattern, escape_char, any: false } => {
            let mut args = vec![*expr, *pattern];
            args.extend(escape_char.map(Expr::Value));
            negated_if(negated, call("like", args))
        }
        Expr::RLike { negated, expr, pattern, .. } => {
            negated_if(negated, call("regexp_like", vec![*expr, *pattern]))
        }
        Expr::Case { operand, conditions, else_result, .. } => {
            case(operand, conditions, else_result)?
        }
        Expr::Interval(interval) => {
            let Some(unit) = interval.leading_field else {
                return Err(Error::unsupported("INTERVAL without a unit"));
            };
            call("interval", vec![*interval.value, text(unit.to_string())])
        }
        Expr::Extract { field, expr, .. } => call("extract", vec![text(field.to_string()), *expr]),
        Expr::Ceil { expr, .. } => call("ceiling", vec![*expr]),
        Expr::Floor { expr, .. } => call("floor", vec![*expr]),
        Expr::Position { expr, r#in } => call("locate", vec![*expr, *r#in]),
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            if substring_from.is_none() {
                return Err(wrong_count("substring"));
            }
            let mut args = vec![*expr];
            args.extend(substring_from.map(|from| *from));
            args.extend(substring_for.map(|length| *length));
            call("substring", args)
        }
        Expr::Trim { trim_where, trim_what, expr, .. } => {
            let side = match trim_where {
                None | Some(TrimWhereField::Both) => "BOTH",
                Some(TrimWhereField::Leading) => "LEADING",
                Some(TrimWhereField::Trailing) => "TRAILING",
            };
            let mut args = vec![text(side), *expr];
            args.extend(trim_what.map(|what| *what));
            call("trim", args)
        }
        Expr::Collate { expr, collation } => {
            let name = collation.to_string().trim_matches('`').to_lowercase();
            call("collate", vec![*expr, text(name)])
        }
        Expr::Prefixed { prefix, value } => call("introduced", vec![text(prefix.value), *value]),
        other => typed_or_nested(other)?,
    })
}

/// Rewrites forms with a type or a subquery; other expressions stay.
fn typed_or_nested(expr: Expr) -> Result<Expr> {
    Ok(match expr {
        Expr::TypedString(typed) => {
            let name = match typed.data_type {
                DataType::Date => "date_literal",
                DataType::Time(..) => "time_literal",
                _ => "timestamp_literal",
            };
            call(name, vec![Expr::Value(typed.value)])
        }
        Expr::Convert { expr, data_type, charset, .. } => {
            casts::convert(*expr, data_type, charset)?
        }
        Expr::Cast { expr, data_type, array: false, .. } => casts::cast(*expr, &data_type)?,
        Expr::MemberOf(member) => {
            call("member of", vec![in_document(*member.value), *member.array])
        }
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => match *right {
            Expr::Subquery(subquery) => Expr::InSubquery { expr: left, subquery, negated: false },
            other => return Err(Error::unsupported(other)),
        },
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => match *right {
            Expr::Subquery(subquery) => Expr::InSubquery { expr: left, subquery, negated: true },
            other => return Err(Error::unsupported(other)),
        },
        Expr::AnyOp { .. } | Expr::AllOp { .. } => expr,
        Expr::Exists { .. }
        | Expr::InSubquery { .. }
        | Expr::Subquery(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Tuple(_)
        | Expr::GroupingSets(_)
        | Expr::Rollup(_)
        | Expr::Wildcard(_)
        | Expr::QualifiedWildcard(..) => expr,
        Expr::Nested(inner) => Expr::Nested(inner),
        other => return Err(Error::unsupported(other)),
    })
}

fn case(
    operand: Option<Box<Expr>>,
    whens: Vec<CaseWhen>,
    otherwise: Option<Box<Expr>>,
) -> Result<Expr> {
    if let Some(operand) = operand.as_ref().filter(|operand| varies(operand)) {
        let mut args = vec![operand.as_ref().clone()];
        args.extend(whens.into_iter().flat_map(|when| [when.condition, when.result]));
        args.extend(otherwise.map(|expr| *expr));
        return Ok(call("case_of", args));
    }
    if let Some(operand) = &operand {
        check_copies(operand, whens.len())?;
    }
    let mut args = Vec::with_capacity(whens.len() * 2 + 1);
    for when in whens {
        args.push(match &operand {
            Some(operand) => call("case_equal", vec![operand.as_ref().clone(), when.condition]),
            None => branch_truth(when.condition),
        });
        args.push(when.result);
    }
    args.extend(otherwise.map(|expr| *expr));
    Ok(call("case", args))
}

/// Whether an expression is volatile.
pub(super) fn varies(expr: &Expr) -> bool {
    let found = visit_expressions(expr, |each| match each {
        Expr::Function(function) if is_volatile(function) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Whether a call is volatile.
pub(crate) fn is_volatile(function: &Function) -> bool {
    let [part] = function.name.0.as_slice() else { return false };
    let known = part.as_ident().and_then(|name| definition(&name.value.to_lowercase()));
    known.is_some_and(|known| known.volatile)
}

/// 1038 if an expression is too large to be copied this often.
fn check_copies(expr: &Expr, times: usize) -> Result<()> {
    let mut left = copies::nodes_allowed(times);
    let counted: ControlFlow<()> = visit_expressions(expr, |_| {
        left = left.saturating_sub(1);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match counted {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(copies::too_large()),
    }
}
