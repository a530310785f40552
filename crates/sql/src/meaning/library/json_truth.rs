//! Which values become JSON booleans in a document and beside one: results of comparisons, conditions and the
//! literal TRUE. Other integers that are 0 or 1 stay numbers, even the results of
//! `IF(c, TRUE, FALSE)`, `MAX(a > 1)` or a derived table. And which documents are true.

use datafusion::{
    common::ScalarValue,
    logical_expr::{BinaryExpr, Expr, LogicalPlan, expr::ScalarFunction, lit},
};

use super::super::{
    call::{Call, TypeContext},
    function::{Definition, Dialect},
    json::{self, Json},
    types::ExprType,
    value::SqlValue,
};
use crate::{Result, SqlType};
use remora_mysql::ErrorCode;

/// Wraps an argument that becomes a value in a document. Statements cannot name it.
pub(crate) const IN_DOCUMENT: &str = "#in_document";

/// Functions that count as conditions although they return integers.
const CONDITIONS: [&str; 10] = [
    "is_ipv4",
    "is_ipv4_compat",
    "is_ipv4_mapped",
    "is_ipv6",
    "is_uuid",
    "isnull",
    "json_contains",
    "json_contains_path",
    "json_overlaps",
    "json_valid",
];

/// The text of warning 3986.
const IN_CONDITION: &str = "Evaluating a JSON value in SQL boolean context does an implicit comparison against JSON \
     integer 0; if this is not what you want, consider converting JSON to a SQL numeric type with JSON_VALUE RETURNING";

pub(super) const FUNCTIONS: &[Definition] =
    &[Definition::new(IN_DOCUMENT, 1, 1, same_type, same).expanding(expand_in_document)];

fn same_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(typing.get(0))
}

fn same<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(args.first().cloned().unwrap_or(SqlValue::Null))
}

/// Marks booleans, and widens other one-digit integers so that they are not taken for booleans.
fn expand_in_document(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let [value] = args else { return Ok(None) };
    let kind = typing.get(0);
    if !kind.is_integer() || kind.length != 1 {
        return Ok(Some(value.clone()));
    }
    let name = if is_truth(value) { "cast_json" } else { "cast_signed" };
    let dialect = Dialect { collation: typing.collation, division_digits: typing.division_digits };
    let udf = super::function(name, dialect);
    Ok(udf.map(|udf| Expr::ScalarFunction(ScalarFunction::new_udf(udf, vec![value.clone()]))))
}

/// A value that is compared with a document: a condition becomes a JSON boolean.
pub(super) fn beside_document(value: &Expr, kind: &ExprType, dialect: Dialect) -> Expr {
    if !kind.is_integer() || kind.length != 1 || !is_truth(value) {
        return value.clone();
    }
    if let Expr::Literal(ScalarValue::Boolean(Some(truth)), _) = value {
        let text = ScalarValue::Utf8View(Some(truth.to_string()));
        return Expr::Literal(text, Some(ExprType::json().literal_metadata()));
    }
    match super::function("cast_json", dialect) {
        Some(udf) => Expr::ScalarFunction(ScalarFunction::new_udf(udf, vec![value.clone()])),
        None => value.clone(),
    }
}

/// Whether a value is true where AND, OR, NOT, XOR, IS TRUE and WHERE ask; `None` for NULL. A document is true there
/// unless it is the number 0, with warning 3986. (IF and CASE take its number instead.)
pub(super) fn is_true(value: &SqlValue<'_>, call: &Call<'_>) -> Option<bool> {
    let SqlValue::Json(text) = value else { return value.is_true(call) };
    // Sets of numbers are held as documents.
    if call.types.iter().any(|kind| kind.multi.is_some()) {
        return value.is_true(call);
    }
    call.warn_once(ErrorCode::JsonInCondition, || IN_CONDITION.to_owned());
    let document = Json::parse(text).unwrap_or(Json::Null);
    Some(json::compare(&document, &Json::Int(0)).is_ne())
}

/// The truth of an expression without a call, if it is a condition or an integer.
pub(super) fn expand_truth(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let ([expr], [kind]) = (args, typing.types) else { return Ok(None) };
    let boolean = matches!(
        expr,
        Expr::BinaryExpr(BinaryExpr { op, .. }) if op.supports_propagation() || op.is_logic_operator()
    );
    let boolean = boolean
        || matches!(
            expr,
            Expr::Not(_)
                | Expr::InList(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::Exists(_)
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
        )
        || matches!(expr, Expr::ScalarFunction(function) if is_condition(function));
    if boolean {
        return Ok(Some(expr.clone()));
    }
    if kind.is_integer() && kind.length > 1 {
        return Ok(Some(expr.clone().not_eq(lit(0i64))));
    }
    Ok(None)
}

fn is_condition(function: &ScalarFunction) -> bool {
    super::definition(function.name()).is_some_and(|each| each.is_truth)
}

/// The condition of an IF or a CASE.
pub(super) fn expand_branch_truth(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    if typing.get(0).kind == SqlType::Json {
        return Ok(None);
    }
    if let Some(expanded) = expand_truth(args, typing)? {
        return Ok(Some(expanded));
    }
    let dialect = Dialect { collation: typing.collation, division_digits: typing.division_digits };
    let udf = super::function("truth", dialect);
    Ok(udf.map(|udf| Expr::ScalarFunction(ScalarFunction::new_udf(udf, args.to_vec()))))
}

/// Whether an expression is itself a condition, rather than a function of one.
fn is_truth(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_truth(&alias.expr),
        Expr::Cast(cast) => is_truth(&cast.expr),
        Expr::Literal(value, _) => matches!(value, ScalarValue::Boolean(_)),
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            op.supports_propagation() || op.is_logic_operator()
        }
        Expr::ScalarFunction(call) => match (call.name(), call.args.as_slice()) {
            ("typed" | "numbered", [inner, ..]) => is_truth(inner),
            (name, _) => {
                CONDITIONS.contains(&name) || super::definition(name).is_some_and(|it| it.is_truth)
            }
        },
        // A subquery without a table counts as its selected expression.
        Expr::ScalarSubquery(query) => match query.subquery.as_ref() {
            LogicalPlan::Projection(selected) => {
                let is_of_no_table = matches!(*selected.input, LogicalPlan::EmptyRelation(_));
                is_of_no_table && selected.expr.iter().all(is_truth)
            }
            _ => false,
        },
        Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::InList(_)
        | Expr::InSubquery(_)
        | Expr::SetComparison(_)
        | Expr::Exists(_)
        | Expr::Between(_)
        | Expr::Like(_) => true,
        _ => false,
    }
}
