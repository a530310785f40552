//! Recursive common table expressions: what their rows are made of first and later must be of one
//! type in every respect, so the columns get the plainest type of their kind.

use std::{
    hash::{Hash, Hasher},
    ops::ControlFlow,
    sync::{Arc, LazyLock},
};

use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef},
    common::exec_err,
    error::Result as PlanResult,
    logical_expr::{
        ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        Volatility,
    },
    sql::sqlparser::ast::{Query, SelectItem, SetExpr, VisitMut, VisitorMut},
};

use super::resolve::matching::function_call;
use crate::{SqlType, meaning::types::ExprType};

/// The name of the function that does it.
pub(super) const NAME: &str = "recursive_value";

/// The function.
pub(super) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(RecursiveValue::new())));
    Arc::clone(&FUNCTION)
}

/// Puts the function around the columns of recursive common table expressions.
pub(super) fn normalise(query: &mut Query) {
    let walked: ControlFlow<()> = query.visit(&mut Walk);
    debug_assert!(walked.is_continue());
}

struct Walk;

impl VisitorMut for Walk {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some(with) = query.with.as_mut().filter(|with| with.recursive) {
            for cte in &mut with.cte_tables {
                if matches!(cte.query.body.as_ref(), SetExpr::SetOperation { .. }) {
                    wrap(&mut cte.query.body);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn wrap(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::ExprWithAlias { expr, .. } = item {
                    *expr = function_call(NAME, vec![expr.clone()]);
                }
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            wrap(left);
            wrap(right);
        }
        SetExpr::Query(query) => wrap(&mut query.body),
        _ => {}
    }
}

#[derive(Debug)]
struct RecursiveValue {
    signature: Signature,
}

impl RecursiveValue {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

/// The plainest type of a kind.
fn plainest(field: &Field) -> ExprType {
    let kind = ExprType::of_field(field);
    let mut plain = match kind.kind {
        SqlType::Date => ExprType::date(),
        SqlType::DateTime(_) | SqlType::Timestamp(_) => ExprType::date_time(6),
        SqlType::Time(_) => ExprType::time(6),
        SqlType::Json => ExprType::json(),
        _ if kind.is_text() => ExprType::text(u32::MAX, kind.collation),
        _ => ExprType::of_arrow(field.data_type()),
    };
    plain.not_null = false;
    plain
}

impl ScalarUDFImpl for RecursiveValue {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> PlanResult<DataType> {
        exec_err!("{NAME} has the type of its argument")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> PlanResult<FieldRef> {
        let Some(field) = args.arg_fields.first() else { return exec_err!("{NAME} of nothing") };
        Ok(Arc::new(plainest(field).field_of(NAME, field.data_type().clone())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => exec_err!("{NAME} of nothing"),
        }
    }
}

impl PartialEq for RecursiveValue {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RecursiveValue {}

impl Hash for RecursiveValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NAME.hash(state);
    }
}
