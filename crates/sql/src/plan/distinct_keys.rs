//! COUNT(DISTINCT …) beside other aggregates. Alone it becomes a grouping of its own by a rule of DataFusion; what is left
//! counts with one table for all groups.

use datafusion::{
    common::{DFSchema, tree_node::Transformed},
    error::Result,
    logical_expr::{
        Aggregate, Expr, ExprSchemable, LogicalPlan,
        expr::{AggregateFunction, AggregateFunctionParams},
        expr_rewriter::NamePreserver,
    },
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

use crate::{
    meaning::{count_distinct, is_counted},
    nodes::TreeNode,
};

/// The rule of DataFusion that comes before this one.
pub(super) const BEHIND: &str = "single_distinct_aggregation_to_group_by";

/// The rule.
#[derive(Debug)]
pub(super) struct DistinctKeys;

impl OptimizerRule for DistinctKeys {
    fn name(&self) -> &str {
        "distinct_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let names = NamePreserver::new(&plan);
        let LogicalPlan::Aggregate(Aggregate { input, group_expr, aggr_expr, schema, .. }) = plan
        else {
            return Ok(Transformed::no(plan));
        };
        let mut is_changed = false;
        let mut counted = Vec::with_capacity(aggr_expr.len());
        for expr in aggr_expr {
            let done = named_by_keys(&names, expr, input.schema())?;
            is_changed |= done.transformed;
            counted.push(done.data);
        }
        let plan = Aggregate::try_new_with_schema(input, group_expr, counted, schema)?;
        Ok(Transformed::new_transformed(LogicalPlan::Aggregate(plan), is_changed))
    }
}

/// The aggregate of a plan that no rule sees, with one table for all groups where it counts distinct keys.
pub(super) fn counted(expr: Expr, input: &DFSchema) -> Result<Expr> {
    let names = NamePreserver::new_for_projection();
    named_by_keys(&names, expr, input).map(|done| done.data)
}

fn named_by_keys(names: &NamePreserver, expr: Expr, input: &DFSchema) -> Result<Transformed<Expr>> {
    let name = names.save(&expr);
    let done = expr.transform_up(|expr| by_keys(expr, input))?;
    Ok(if done.transformed { done.update_data(|expr| name.restore(expr)) } else { done })
}

fn by_keys(expr: Expr, input: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let is_count = func.name() == "count" && params.distinct && params.order_by.is_empty();
    let is_of_key = match params.args.as_slice() {
        [key] => is_counted(&key.get_type(input)?),
        _ => false,
    };
    if !is_count || !is_of_key {
        return Ok(Transformed::no(Expr::AggregateFunction(AggregateFunction { func, params })));
    }
    let params = AggregateFunctionParams { distinct: false, ..params };
    Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction {
        func: count_distinct(),
        params,
    })))
}
