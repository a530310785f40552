//! Which values become JSON booleans in a document: results of comparisons, conditions and the
//! literal TRUE. Other integers that are 0 or 1 stay numbers, even the results of
//! `IF(c, TRUE, FALSE)`, `MAX(a > 1)` or a derived table.

use datafusion::{
    common::ScalarValue,
    logical_expr::{BinaryExpr, Expr, LogicalPlan, expr::ScalarFunction},
};

use super::super::{
    call::{Call, TypeContext},
    function::{Definition, Dialect},
    types::ExprType,
    value::SqlValue,
};
use crate::Result;

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
