//! Window functions return rows partition by partition, with the NULL partition first, as MySQL does when there is no
//! ORDER BY. DataFusion, free to choose the order of partitions, sorts NULL last.

use std::{any::Any, sync::Arc};

use datafusion::{
    common::{config::ConfigOptions, tree_node::Transformed},
    error::Result as PlanResult,
    physical_expr::{
        LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr, expressions::Column,
    },
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions,
        projection::ProjectionExec,
        sorts::sort::SortExec,
        windows::{BoundedWindowAggExec, WindowAggExec},
    },
};

use crate::nodes::TreeNode;

/// The rule. It runs after the rule that adds sorts.
#[derive(Debug)]
pub(super) struct PartitionsOfNull;

/// The rule that this one follows.
pub(super) const BEHIND: &str = "EnsureRequirements";

impl PhysicalOptimizerRule for PartitionsOfNull {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let done = plan.transform_up(|plan| match sorted(&plan) {
            Some(sort) => {
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                plan.replace_children(vec![sort], options).map(Transformed::yes)
            }
            None => Ok(Transformed::no(plan)),
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &'static str {
        "partitions_of_null"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The input of a window operator, sorted with NULL first by the keys whose order the operator leaves open; `None` for
/// other plans.
fn sorted(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let any: &dyn Any = plan.as_ref();
    if !any.is::<WindowAggExec>() && !any.is::<BoundedWindowAggExec>() {
        return None;
    }
    let children = plan.children();
    let [below] = children.as_slice() else { return None };
    let required = plan.required_input_ordering().pop().flatten();
    let required = OrderingRequirements::into_single(required?);
    let free = required.iter().filter(|it| it.options.is_none());
    nulls_first(below, free.map(|it| Arc::clone(&it.expr)).collect())
}

/// The sort with NULL first for its `free` keys. It may be below a projection of columns.
fn nulls_first(
    plan: &Arc<dyn ExecutionPlan>,
    free: Vec<Arc<dyn PhysicalExpr>>,
) -> Option<Arc<dyn ExecutionPlan>> {
    let any: &dyn Any = plan.as_ref();
    if let Some(projection) = any.downcast_ref::<ProjectionExec>() {
        let below = |expr: Arc<dyn PhysicalExpr>| {
            let any: &dyn Any = expr.as_ref();
            let place = any.downcast_ref::<Column>()?.index();
            projection.expr().get(place).map(|selected| Arc::clone(&selected.expr))
        };
        let free = free.into_iter().filter_map(below).collect();
        let sorted = nulls_first(projection.input(), free)?;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        return Arc::clone(plan).replace_children(vec![sorted], options).ok();
    }
    // A limit takes other rows in another order.
    let sort = any.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none())?;
    let changes = |key: &PhysicalSortExpr| {
        !key.options.nulls_first && free.iter().any(|expr| expr.eq(&key.expr))
    };
    if !sort.expr().iter().any(changes) {
        return None;
    }
    let keys = sort.expr().iter().map(|key| {
        let mut key = key.clone();
        key.options.nulls_first |= changes(&key);
        key
    });
    let sorted = SortExec::new(LexOrdering::new(keys)?, Arc::clone(sort.input()))
        .with_fetch(sort.fetch())
        .with_preserve_partitioning(sort.preserve_partitioning());
    Some(Arc::new(sorted))
}
