//! What MySQL means by an expression: types, coercion, collations, functions.
//!
//! A statement meets this module twice. Before it is planned, [`rewrite`] makes every operator,
//! CASE, CAST, LIKE, BETWEEN, IN list and every other special form a call of a function by name, so
//! that DataFusion's own meaning is never asked; [`scalar_function`] and [`aggregate_function`]
//! give the planner those functions, each of which derives its type as MySQL does ([`types`]).
//! After it is planned and before DataFusion's own type coercion, [`analyzer_rules`] replace calls
//! by plain expressions where those mean the same, so that joins, filters and statistics work, and
//! put sort keys under comparisons, GROUP BY, DISTINCT, ORDER BY and UNION of text.
//!
//! At run time, [`function::Definition`]s from the tables under `library` compute a type from the arguments' types and
//! a [`value::SqlValue`] from the arguments' values, row by row; the commonest calculations run by column ([`kernels`]).
//! [`formula`] evaluates keys over expressions for one row without any of that.

mod aggregate;
mod array;
mod call;
pub(crate) mod collation;
mod compare;
mod copies;
pub(crate) mod decimal;
mod declared;
pub(crate) mod encoding;
mod formatted;
mod formula;
mod frames;
mod function;
pub(crate) mod geometry;
pub(crate) mod json;
pub(crate) mod json_table;
mod kernels;
mod library;
mod md5;
pub(crate) mod number;
mod rewrite;
mod rules;
pub(crate) mod temporal;
pub(crate) mod types;
mod value;

use std::sync::Arc;

use datafusion::{
    logical_expr::{Expr, ScalarUDF, expr::ScalarFunction},
    optimizer::AnalyzerRule,
};

use crate::state::Context;

pub(crate) use aggregate::{COUNT_NUMBERS, aggregate_function, count_distinct, is_counted};
pub(crate) use compare::is_false_of_null;
pub(crate) use declared::expr_type;
pub(crate) use formula::Formula;
pub(crate) use function::external;
pub(crate) use library::{
    ASSIGN_VARIABLE, EACH, GIVE_LAST_INSERT_ID, GROUP_KEY, IN_DOCUMENT, INSTANT, JSON_ROWS,
    NUMBERS_OF, READ_VARIABLE, ROWS_MAY_HAVE, UNFOLD, extracted, extracted_type, is_per_statement,
    rows_may_have,
};
pub(crate) use rewrite::{
    COMPARISONS, RUN_LITERAL, RewriteSettings, RunLiteral, RunLiteralValue, is_volatile,
    mark_run_literals, may_be_cached, rewrite,
};
pub(crate) use rules::distinct_keys;

/// The scalar function of this name, in lower case, as a session means it.
pub(crate) fn scalar_function_in(name: &str, context: &Context) -> Option<Arc<ScalarUDF>> {
    library::function(name, function::Dialect::of(context))
}

/// CASE with one condition: NULL if the condition does not hold.
pub(crate) fn value_where(condition: Expr, value: Expr) -> Expr {
    match library::function("case", function::Dialect::default()) {
        Some(case) => Expr::ScalarFunction(ScalarFunction::new_udf(case, vec![condition, value])),
        None => value,
    }
}

/// Hides a boolean from optimizer rules, so that they cannot fold it and drop what stands beside
/// it.
pub(crate) fn undecided(truth: Expr) -> Expr {
    match library::function("undecided", function::Dialect::default()) {
        Some(undecided) => Expr::ScalarFunction(ScalarFunction::new_udf(undecided, vec![truth])),
        None => truth,
    }
}

/// The rules that run before DataFusion's own.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![Arc::new(rules::Meaning)]
}
