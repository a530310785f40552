//! The order in which inner joins are made. DataFusion makes them as they are written. With the tables of fewest rows
//! first, joins have few rows to begin with, and each further table is asked for the keys of those alone.
//!
//! ```text
//! users ⋈ orders ⋈ items ⋈ payments (method = 'invoice')
//!                   ──→
//! payments (method = 'invoice') ⋈ orders ⋈ users ⋈ items
//! ```
//! The order changes only if that saves a good part of the estimated cost: the estimates are rough. STRAIGHT_JOIN keeps
//! the order of the statement.

mod cost;
mod inputs;

use std::sync::Arc;

use datafusion::{
    common::{JoinType, NullEquality, config::ConfigOptions, tree_node::Transformed},
    error::Result,
    logical_expr::{
        Expr, Join, JoinConstraint, LogicalPlan, Projection,
        utils::{conjunction, split_conjunction_owned},
    },
    optimizer::{OptimizerConfig, OptimizerRule},
};

use self::{
    cost::Costs,
    inputs::{EqualValues, JoinInput, JoinInputs},
};
use crate::{nodes::TreeNode, state::Context};

/// The name of the rule behind which it runs: conditions are at their tables, and no projections between the joins.
pub(super) const BEHIND: &str = "push_down_filter";

/// The fewest tables whose order is chosen. Of two, DataFusion chooses by their number of rows.
const FEWEST: usize = 3;
/// The most tables that MySQL joins.
const MOST: usize = 61;
/// The order changes if its cost is less than this share of the written order's.
const WORTHWHILE: f64 = 0.7;

/// The rule.
#[derive(Debug)]
pub(super) struct JoinOrder;

impl OptimizerRule for JoinOrder {
    fn name(&self) -> &str {
        "join_order"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let options = config.options();
        let keeps_order =
            Context::of_options(&options).is_some_and(|context| context.keeps_join_order);
        if keeps_order { Ok(Transformed::no(plan)) } else { ordered(plan, &options) }
    }
}

/// The plan with its joins in the best order.
fn ordered(plan: LogicalPlan, options: &ConfigOptions) -> Result<Transformed<LogicalPlan>> {
    // Each round of a recursion has few rows, of which nothing is known yet. Its joins begin with them as written.
    if matches!(plan, LogicalPlan::RecursiveQuery(_)) {
        return Ok(Transformed::no(plan));
    }
    if !is_inner(&plan) {
        return plan.map_children(|child| ordered(child, options));
    }
    let mut joins = Joins::default();
    joins.add(&plan);
    let mut is_changed = false;
    for input in &mut joins.inputs {
        let changed = ordered(input.clone(), options)?;
        is_changed |= changed.transformed;
        *input = changed.data;
    }
    if let Some(relations) = joins.relations(options)? {
        let most_keys = options.optimizer.hash_join_inlist_pushdown_max_distinct_values;
        if let Some(order) = Costs::new(&relations, most_keys).best_order(WORTHWHILE) {
            return rebuilt(&plan, joins.inputs, &relations, &order).map(Transformed::yes);
        }
    }
    if !is_changed {
        return Ok(Transformed::no(plan));
    }
    let mut inputs = joins.inputs.into_iter();
    Ok(Transformed::yes(with_inputs(plan, &mut inputs)?))
}

/// Whether it is an inner join by `=`.
fn is_inner(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join)
        if join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNothing)
}

/// Inner joins that are inputs of each other.
#[derive(Default)]
struct Joins {
    /// Their other inputs, as written.
    inputs: Vec<LogicalPlan>,
    equalities: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
}

impl Joins {
    fn add(&mut self, plan: &LogicalPlan) {
        match plan {
            LogicalPlan::Join(join) if is_inner(plan) => {
                self.add(&join.left);
                self.add(&join.right);
                self.equalities.extend(join.on.iter().cloned());
                self.conditions
                    .extend(join.filter.iter().cloned().flat_map(split_conjunction_owned));
            }
            other => self.inputs.push(other.clone()),
        }
    }

    /// What their order depends on; `None` if it must stay.
    fn relations(&self, options: &ConfigOptions) -> Result<Option<JoinInputs>> {
        let equal = self.equalities.iter().flat_map(|(left, right)| [left, right]);
        if !(FEWEST..=MOST).contains(&self.inputs.len())
            || self.conditions.iter().chain(equal).any(Expr::is_volatile)
        {
            return Ok(None);
        }
        // These read columns of the tables before them.
        let is_dependent = |plan: &LogicalPlan| Ok(matches!(plan, LogicalPlan::Subquery(_)));
        for input in &self.inputs {
            if input.exists(is_dependent)? {
                return Ok(None);
            }
        }
        let made = self.inputs.iter().map(|input| JoinInput::of(input, options));
        let relations = made.collect::<Result<Vec<_>>>()?;
        Ok(JoinInputs::new(relations, &self.equalities, &self.conditions))
    }
}

/// The same joins over other inputs.
fn with_inputs(
    plan: LogicalPlan,
    inputs: &mut dyn Iterator<Item = LogicalPlan>,
) -> Result<LogicalPlan> {
    if !is_inner(&plan) {
        return Ok(inputs.next().unwrap_or(plan));
    }
    let LogicalPlan::Join(join) = plan else { return Ok(plan) };
    let left = with_inputs(Arc::unwrap_or_clone(join.left), inputs)?;
    let right = with_inputs(Arc::unwrap_or_clone(join.right), inputs)?;
    let (left, right) = (Arc::new(left), Arc::new(right));
    Ok(LogicalPlan::Join(Join { left, right, ..join }))
}

/// The joins in this order, with the columns of the old plan.
fn rebuilt(
    plan: &LogicalPlan,
    inputs: Vec<LogicalPlan>,
    relations: &JoinInputs,
    order: &[usize],
) -> Result<LogicalPlan> {
    let mut inputs: Vec<Option<LogicalPlan>> = inputs.into_iter().map(Some).collect();
    let mut take = |at: usize| inputs.get_mut(at).and_then(Option::take);
    let mut made: Option<LogicalPlan> = None;
    let mut joined = 0;
    for &next in order {
        let Some(right) = take(next) else { continue };
        let Some(left) = made.take() else {
            (made, joined) = (Some(right), 1 << next);
            continue;
        };
        let on = relations.equal.iter().flat_map(|values| values.pairs(joined, next)).collect();
        let all = joined | 1 << next;
        let conditions = relations.conditions.iter().filter(|condition| {
            condition.reads & !all == 0
                && (condition.reads & !joined != 0 || joined.is_power_of_two())
        });
        let filter = conjunction(conditions.map(|condition| condition.expr.clone()));
        let join = Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on,
            filter,
            JoinType::Inner,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?;
        (made, joined) = (Some(LogicalPlan::Join(join)), all);
    }
    let Some(made) = made else { return Ok(plan.clone()) };
    let columns = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let schema = Arc::clone(plan.schema());
    Projection::try_new_with_schema(columns, Arc::new(made), schema).map(LogicalPlan::Projection)
}

impl EqualValues {
    /// The equalities by which a relation is joined with those before it.
    fn pairs(&self, joined: u64, next: usize) -> Vec<(Expr, Expr)> {
        let before = self.of.iter().find(|value| joined >> value.relation & 1 == 1);
        let Some(before) = before else { return Vec::new() };
        let of_next = self.of.iter().filter(|value| value.relation == next);
        of_next.map(|value| (before.expr.clone(), value.expr.clone())).collect()
    }
}
