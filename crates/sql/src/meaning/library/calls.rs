//! Expressions that call one of our functions, and those of a given type.

use datafusion::{
    common::ScalarValue,
    logical_expr::{Expr, expr::ScalarFunction, lit},
};

use super::super::{function::Dialect, types::ExprType};

/// A call of one of our functions.
pub(super) fn called(name: &str, args: Vec<Expr>, dialect: Dialect) -> Expr {
    match super::function(name, dialect) {
        Some(udf) => Expr::ScalarFunction(ScalarFunction::new_udf(udf, args)),
        None => lit(ScalarValue::Null),
    }
}

/// The expression converted to a type, unless it has that type.
pub(crate) fn converted(expr: &Expr, from: &ExprType, to: &ExprType, dialect: Dialect) -> Expr {
    // Booleans have another representation than integers.
    if from.kind == to.kind && from.arrow() == to.arrow() && from.length != 1 {
        return expr.clone();
    }
    with_representation(expr.clone(), to, dialect)
}

/// The expression with a declared type, in the representation of that type.
pub(crate) fn with_representation(expr: Expr, kind: &ExprType, dialect: Dialect) -> Expr {
    with_type("convert_to", expr, kind, dialect)
}

/// The expression with a declared type of the same representation.
pub(crate) fn typed(expr: Expr, kind: &ExprType, dialect: Dialect) -> Expr {
    with_type("typed", expr, kind, dialect)
}

fn with_type(name: &str, expr: Expr, kind: &ExprType, dialect: Dialect) -> Expr {
    let spelled = Expr::Literal(ScalarValue::from(kind.spelled()), None);
    match super::function(name, dialect) {
        Some(udf) => Expr::ScalarFunction(ScalarFunction::new_udf(udf, vec![expr, spelled])),
        None => expr,
    }
}
