//! Literals of a statement that stay parameters of its cached plan. Comparisons with them are planned as comparisons with
//! a placeholder, which the optimizer moves like a constant and does not compute; before the plan runs, each placeholder
//! becomes a function that reads the value of the run ([`crate::scan::settled`]).

use std::{collections::BTreeSet, sync::Arc};

use datafusion::{
    arrow::datatypes::{DataType, FieldRef},
    common::{
        DFSchema, ScalarValue, exec_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result as PlanResult,
    logical_expr::{
        ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs,
        ScalarUDF, ScalarUDFImpl, Signature, Volatility,
        expr::{Placeholder, ScalarFunction},
        expr_rewriter::NamePreserver,
        utils::merge_schema,
    },
};
use remora_mysql::Collation;

use crate::{
    SqlType,
    meaning::{COMPARISONS, RUN_LITERAL, types::ExprType},
    nodes::{TreeNode, WholePlan},
    scan::settled::{self, ValueSlot},
};

/// What the name of a placeholder begins with; the number of its slot follows.
const PREFIX: &str = "run";

/// Stands around a marked literal until [`taken`].
#[derive(Debug, PartialEq, Eq, Hash)]
struct MarkedLiteral {
    signature: Signature,
}

/// The function around marked literals.
pub(super) fn function() -> Arc<ScalarUDF> {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::from(MarkedLiteral { signature }))
}

impl ScalarUDFImpl for MarkedLiteral {
    fn name(&self) -> &'static str {
        RUN_LITERAL
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> PlanResult<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> PlanResult<FieldRef> {
        match args.arg_fields.first() {
            Some(field) => Ok(Arc::clone(field)),
            None => exec_err!("a literal without a value"),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        exec_err!("a literal was marked and not taken")
    }
}

/// A plan with placeholders for the marked literals whose types fit, and the numbers of these literals in the order of
/// their slots. All others are plain literals again.
pub(super) fn taken(
    plan: LogicalPlan,
    collation: Collation,
) -> PlanResult<(LogicalPlan, Vec<usize>)> {
    let (mut found, mut refused) = (BTreeSet::new(), BTreeSet::new());
    let plan = replaced(plan, &mut |call, schema| {
        for (number, fits) in marked(call, schema, collation)? {
            found.insert(number);
            if !fits {
                refused.insert(number);
            }
        }
        Ok(None)
    })?;
    let numbers: Vec<usize> = found.difference(&refused).copied().collect();
    let plan = replaced(plan, &mut |call, _| {
        let Some((literal, number)) = literal_of(call) else { return Ok(None) };
        let slot = numbers.iter().position(|it| *it == number);
        Ok(Some(match (slot, literal) {
            (Some(slot), Expr::Literal(value, _)) => placeholder(slot, value, collation),
            _ => literal.clone(),
        }))
    })?;
    Ok((plan, numbers))
}

/// A plan with functions that read the run's values in place of the placeholders.
pub(super) fn filled(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    let done = plan.transform_whole(|node| {
        let names = NamePreserver::new(&node);
        node.transform_expressions(|expr| {
            let name = names.save(&expr);
            let new = filled_in(expr)?;
            Ok(Transformed::new(name.restore(new.data), new.transformed, new.tnr))
        })
    })?;
    Ok(done.data)
}

/// The same of an expression.
pub(super) fn filled_in(expr: Expr) -> PlanResult<Transformed<Expr>> {
    let done = expr.transform_down(|expr| {
        let Some((slot, field)) = slot_of(&expr) else { return Ok(Transformed::no(expr)) };
        Ok(Transformed::yes(settled::value(ValueSlot::Run(slot), field)))
    })?;
    Ok(Transformed::new(done.data, done.transformed, TreeNodeRecursion::Continue))
}

/// Whether an expression is the place of a run's literal.
pub(super) fn is_place(expr: &Expr) -> bool {
    slot_of(expr).is_some()
}

fn slot_of(expr: &Expr) -> Option<(usize, &FieldRef)> {
    let Expr::Placeholder(Placeholder { id, field: Some(field) }) = expr else { return None };
    Some((id.strip_prefix(PREFIX)?.parse().ok()?, field))
}

/// Each type is the widest of its kind: a plan serves longer numbers than the one it was made for.
fn placeholder(slot: usize, value: &ScalarValue, collation: Collation) -> Expr {
    let kind = match value {
        ScalarValue::Int64(_) => {
            ExprType::of_literal(&ScalarValue::Int64(Some(i64::MAX)), collation)
        }
        value => ExprType::of_literal(value, collation),
    };
    let field = Arc::new(kind.field(RUN_LITERAL));
    Expr::Placeholder(Placeholder::new_with_field(format!("{PREFIX}{slot}"), Some(field)))
}

/// The literal and the number of a call of the function around marked literals.
fn literal_of(call: &ScalarFunction) -> Option<(&Expr, usize)> {
    let (RUN_LITERAL, [literal, Expr::Literal(ScalarValue::Int64(Some(number)), _)]) =
        (call.name(), call.args.as_slice())
    else {
        return None;
    };
    Some((literal, usize::try_from(*number).ok()?))
}

/// The numbers of the marked literals that a comparison has, and whether each may be a placeholder: an integer beside
/// numbers, a text beside texts. Comparisons of other types look at the value of a literal. Without a column it would be
/// a constant, which may decide more than this comparison.
fn marked(
    call: &ScalarFunction,
    schema: &DFSchema,
    collation: Collation,
) -> PlanResult<Vec<(usize, bool)>> {
    if !COMPARISONS.contains(&call.name()) {
        return Ok(Vec::new());
    }
    let has_columns = call.args.iter().any(Expr::any_column_refs);
    let (mut found, mut types) = (Vec::new(), Vec::new());
    for arg in &call.args {
        let own = match arg {
            Expr::ScalarFunction(inner) => {
                literal_of(inner).map(|(literal, number)| match literal {
                    Expr::Literal(value, _) => (number, value.clone()),
                    _ => (number, ScalarValue::Null),
                })
            }
            _ => None,
        };
        match (own, arg) {
            (Some((number, value)), _) => {
                types.push(ExprType::of_literal(&value, collation));
                found.push((number, value));
            }
            (None, Expr::Literal(value, _)) => types.push(ExprType::of_literal(value, collation)),
            (None, arg) => {
                types.push(ExprType::of_field(&arg.to_field(schema)?.1));
                // The size of an interval is an integer whatever the date is compared with.
                let size = match arg {
                    Expr::ScalarFunction(inner) => dated(inner),
                    _ => None,
                };
                found.extend(size.map(|number| (number, ScalarValue::Boolean(None))));
            }
        }
    }
    let are_numbers = types
        .iter()
        .all(|it| it.is_number() && !matches!(it.kind, SqlType::Year | SqlType::Bit(_)));
    let are_texts =
        types.iter().all(|it| it.is_text() && !matches!(it.kind, SqlType::Enum | SqlType::Set));
    let fits = |value: &ScalarValue| match value {
        ScalarValue::Boolean(None) => true,
        ScalarValue::Int64(Some(_)) => are_numbers,
        ScalarValue::Utf8(Some(_)) | ScalarValue::Utf8View(Some(_)) => are_texts,
        _ => false,
    };
    Ok(found.into_iter().map(|(number, value)| (number, has_columns && fits(&value))).collect())
}

/// The number of the marked size of an interval that is added to a date.
fn dated(call: &ScalarFunction) -> Option<usize> {
    let ("date_add" | "date_sub", [_, Expr::ScalarFunction(size), ..]) =
        (call.name(), call.args.as_slice())
    else {
        return None;
    };
    literal_of(size).map(|(_, number)| number)
}

/// The plan with each function replaced for which `new` returns another expression.
fn replaced(
    plan: LogicalPlan,
    new: &mut dyn FnMut(&ScalarFunction, &DFSchema) -> PlanResult<Option<Expr>>,
) -> PlanResult<LogicalPlan> {
    let done = plan.transform_whole(|node| {
        let mut schema = merge_schema(&node.inputs());
        if let LogicalPlan::TableScan(scan) = &node {
            let name = scan.table_name.clone();
            schema.merge(&DFSchema::try_from_qualified_schema(name, &scan.source.schema())?);
        }
        let names = NamePreserver::new(&node);
        node.transform_expressions(|expr| {
            let name = names.save(&expr);
            let done = expr.transform_down(|expr| match &expr {
                Expr::ScalarFunction(call) => match new(call, &schema)? {
                    Some(new) => Ok(Transformed::new(new, true, TreeNodeRecursion::Jump)),
                    None => Ok(Transformed::no(expr)),
                },
                _ => Ok(Transformed::no(expr)),
            })?;
            let (expr, is_new) = (name.restore(done.data), done.transformed);
            Ok(Transformed::new(expr, is_new, TreeNodeRecursion::Continue))
        })
    })?;
    Ok(done.data)
}
