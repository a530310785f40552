//! The columns of recursive common table expressions. DataFusion requires the initial and the recursive rows to have
//! exactly the same types, so each column is converted to the plainest type of its kind.

use std::{
    convert::Infallible,
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
    sql::sqlparser::ast::{Query, SelectItem, SetExpr, VisitorMut},
};

use crate::{
    SqlType,
    meaning::types::ExprType,
    parse::{VisitMut, function_call},
};

/// The name of the conversion function.
pub(super) const NAME: &str = "recursive_value";

/// The conversion function.
pub(super) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(RecursiveValue::new())));
    Arc::clone(&FUNCTION)
}

/// Wraps the columns of recursive common table expressions in the conversion function.
pub(crate) fn normalise_recursive(query: &mut Query) {
    let ControlFlow::Continue(()) = query.visit(&mut Walk);
}

struct Walk;

impl VisitorMut for Walk {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
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

/// How the values of a column are represented.
fn held(given: &DataType) -> DataType {
    match given {
        // A truth value has another representation than the integers that follow.
        DataType::Boolean => DataType::Int64,
        // As in MySQL, what begins with NULL alone has texts.
        DataType::Null => DataType::Utf8View,
        held => held.clone(),
    }
}

/// The plainest type of a field's kind.
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
        let held = held(field.data_type());
        let plain = plainest(&field.as_ref().clone().with_data_type(held.clone()));
        Ok(Arc::new(plain.field_of(NAME, held)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => match (value.data_type(), held(&value.data_type())) {
                (given, held) if given == held => Ok(value),
                (_, held) => value.cast_to(&held, None),
            },
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
