//! Computes uncorrelated subqueries of comparisons in WHERE before the rest of a statement is planned
//! (`id = (SELECT MAX(id) FROM t WHERE …)`, `price > ALL (SELECT …)`), so that scans take their values like those of
//! literals: as keys and ranges. Cached plans do the same with scalar ones in each run ([`super::settle`]).

use std::{pin::Pin, sync::Arc};

use datafusion::{
    arrow::datatypes::{DataType, FieldRef},
    common::{
        DFSchema, ScalarValue,
        metadata::FieldMetadata,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result as PlanResult,
    execution::SessionState as PlanState,
    logical_expr::{
        BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Subquery,
        utils::split_conjunction,
    },
    physical_plan::{ExecutionPlan, execute_stream},
};
use futures::StreamExt;

use super::{
    compared::{ComparedMembers, Decision, Quantified},
    joinable::outer_columns,
    stages,
    subquery::{self, UncorrelatedSubquery, uncorrelated},
    watch,
};
use crate::{
    meaning::{is_false_of_null, types::ExprType},
    nodes::{TreeNode, WholePlan},
    state::Context,
};

/// The most subqueries of a statement that are computed first.
const MOST: usize = 64;
/// The most bytes of a value that becomes a literal: rules copy literals.
const MAX_BYTES: usize = 64 << 10;

/// Sees the plan of each subquery before it runs, and may wrap it.
pub(super) type See<'s> =
    &'s mut (dyn FnMut(Arc<dyn ExecutionPlan>) -> PlanResult<Arc<dyn ExecutionPlan>> + Send);

/// The analysed plan with such subqueries replaced by their values. A subquery that fails stays, because it may stand in
/// a condition that no row reaches.
pub(super) fn computed<'f>(
    plan: LogicalPlan,
    state: &'f PlanState,
    context: &'f Context,
    see: See<'f>,
) -> Pin<Box<dyn Future<Output = PlanResult<LogicalPlan>> + Send + 'f>> {
    // Boxed, because subqueries have subqueries.
    Box::pin(async move {
        let mut known: Vec<(Expr, Expr)> = Vec::new();
        for sought in sought(&plan)? {
            match value_of(&sought, state, context, &mut *see).await {
                Ok(Some(value)) => known.push((sought.expr, value)),
                Ok(None) => {}
                Err(_) if context.is_over() => return Err(watch::ended()),
                Err(_) => {}
            }
        }
        with_values(plan, &known)
    })
}

/// The plan with subqueries replaced by their values.
fn with_values(plan: LogicalPlan, known: &[(Expr, Expr)]) -> PlanResult<LogicalPlan> {
    if known.is_empty() {
        return Ok(plan);
    }
    let done = plan.transform_whole(|node| {
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = node else {
            return Ok(Transformed::no(node));
        };
        let new = predicate.transform_down(|expr| {
            match known.iter().find(|(query, _)| *query == expr) {
                Some((_, value)) => {
                    Ok(Transformed::new(value.clone(), true, TreeNodeRecursion::Jump))
                }
                None => Ok(Transformed::no(expr)),
            }
        })?;
        Ok(Transformed::new(
            LogicalPlan::Filter(Filter::try_new(new.data, input)?),
            new.transformed,
            TreeNodeRecursion::Continue,
        ))
    })?;
    Ok(done.data)
}

/// A subquery that is computed first.
struct Sought {
    /// What its value replaces.
    expr: Expr,
    plan: LogicalPlan,
    /// The type of the literal that its value becomes.
    field: FieldRef,
    /// The quantified comparison that it is, with the compared value.
    quantified: Option<(Quantified, Expr)>,
}

/// The subqueries, each once.
fn sought(plan: &LogicalPlan) -> PlanResult<Vec<Sought>> {
    let mut found: Vec<Sought> = Vec::new();
    // A query over the rows of a recursion has no value of its own.
    if plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))? {
        return Ok(found);
    }
    plan.apply_whole(|node| {
        let LogicalPlan::Filter(filter) = node else { return Ok(TreeNodeRecursion::Continue) };
        for part in split_conjunction(&filter.predicate) {
            sought_in(part, filter.input.schema(), &mut found)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    // Those within another one are computed with it. The outer one was found first.
    let mut outermost: Vec<Sought> = Vec::with_capacity(found.len());
    for each in found {
        let mut is_within = false;
        for outer in &outermost {
            is_within |= has_expression(&outer.plan, &each.expr)?;
        }
        if !is_within {
            outermost.push(each);
        }
    }
    Ok(outermost)
}

fn has_expression(plan: &LogicalPlan, sought: &Expr) -> PlanResult<bool> {
    let mut has = false;
    plan.apply_whole(|node| {
        node.apply_to_expressions(|expr| {
            expr.apply(|each| {
                has |= each == sought;
                Ok(if has { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(has)
}

/// Those of a condition that a scan may look up.
fn sought_in(part: &Expr, schema: &DFSchema, found: &mut Vec<Sought>) -> PlanResult<()> {
    let mut add = |sought: Sought| {
        if found.len() < MOST && !found.iter().any(|known| known.expr == sought.expr) {
            found.push(sought);
        }
    };
    if let Some((plan, quantified, value)) = subquery::quantified(part) {
        if quantified.seeks_end() && value.any_column_refs() && !value.contains_outer() {
            let (_, field) = value.to_field(schema)?;
            // Of texts the end depends on collations: each row decides for itself.
            if ExprType::of_field(&field).is_text() {
                return Ok(());
            }
            let quantified = Some((quantified, value.clone()));
            add(Sought { expr: part.clone(), plan: plan.clone(), field, quantified });
        }
        return Ok(());
    }
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else { return Ok(()) };
    if !is_false_of_null(*op) {
        return Ok(());
    }
    for (side, other) in [(left, right), (right, left)] {
        if !other.any_column_refs() {
            continue;
        }
        side.apply(|each| {
            let Some(plan) = query_of(each)? else { return Ok(TreeNodeRecursion::Continue) };
            if let Some(field) = plan.schema().fields().first().cloned() {
                add(Sought { expr: each.clone(), plan, field, quantified: None });
            }
            Ok(TreeNodeRecursion::Jump)
        })?;
    }
    Ok(())
}

/// The plan of an uncorrelated scalar subquery that is not volatile, limited to two rows: a second one is an error.
fn query_of(expr: &Expr) -> PlanResult<Option<LogicalPlan>> {
    match expr {
        // Those that are volatile are functions by now.
        Expr::ScalarSubquery(Subquery { subquery, .. }) if outer_columns(subquery)?.is_empty() => {
            let plan = LogicalPlanBuilder::from(subquery.as_ref().clone()).limit(0, Some(2))?;
            plan.build().map(Some)
        }
        expr => Ok(match uncorrelated(expr)? {
            Some(UncorrelatedSubquery { plan, is_exists: false }) => Some(plan),
            _ => None,
        }),
    }
}

/// What replaces a subquery: its value, or the comparison that a quantified one comes to; `None` if it stays.
async fn value_of(
    sought: &Sought,
    state: &PlanState,
    context: &Context,
    see: See<'_>,
) -> PlanResult<Option<Expr>> {
    let plan = computed(sought.plan.clone(), state, context, &mut *see).await?;
    let plan = {
        let _planning = context.planning.begin();
        stages::made_of(plan, state).await?
    };
    let plan = watch::watched(see(plan)?, context)?;
    match &sought.quantified {
        None => only_value(plan, state, &sought.field).await,
        Some((quantified, value)) => {
            let members = ComparedMembers::of(plan, state.task_ctx(), *quantified).await?;
            let decision = members.decision(*quantified, &ExprType::of_field(&sought.field))?;
            Ok(match decision {
                None => None,
                Some(Decision::Truth(truth)) => {
                    Some(Expr::Literal(ScalarValue::Boolean(Some(truth)), None))
                }
                Some(Decision::Bound(bound)) => literal(bound, &sought.field)?.map(|bound| {
                    let (value, bound) = (Box::new(value.clone()), Box::new(bound));
                    Expr::BinaryExpr(BinaryExpr::new(value, quantified.op, bound))
                }),
            })
        }
    }
}

/// The value of a scalar subquery; `None` if it has several rows.
async fn only_value(
    plan: Arc<dyn ExecutionPlan>,
    state: &PlanState,
    field: &FieldRef,
) -> PlanResult<Option<Expr>> {
    let mut value = ScalarValue::try_from(field.data_type())?;
    let mut stream = execute_stream(plan, state.task_ctx())?;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        rows += batch.num_rows();
        if rows > 1 {
            return Ok(None);
        }
        if batch.num_rows() > 0 {
            value = ScalarValue::try_from_array(batch.column(0), 0)?;
        }
    }
    literal(value, field)
}

/// A value as a literal of this type; `None` if it is too long or of another type.
fn literal(value: ScalarValue, field: &FieldRef) -> PlanResult<Option<Expr>> {
    let (held, wanted) = (value.data_type(), field.data_type());
    let value = match (&held, wanted) {
        (held, wanted) if held == wanted => value,
        (DataType::Int64 | DataType::UInt64, DataType::Int64 | DataType::UInt64)
        | (
            DataType::Decimal128(..) | DataType::Decimal256(..),
            DataType::Decimal128(..) | DataType::Decimal256(..),
        ) => value.cast_to(wanted)?,
        _ => return Ok(None),
    };
    let is_short = value.size() <= MAX_BYTES;
    let literal = Expr::Literal(value, Some(FieldMetadata::from(field.as_ref())));
    Ok(is_short.then_some(literal))
}
