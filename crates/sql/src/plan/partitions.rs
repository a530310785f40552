//! Rows of windows come partition by partition, that of NULL first, as MySQL has them where no other order is asked
//! for. DataFusion, which may choose the order of partitions, sorts NULL last.

use std::sync::Arc;

use datafusion::{
    common::{
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode},
    },
    error::Result as PlanResult,
    physical_expr::{LexOrdering, OrderingRequirements, PhysicalSortExpr},
    physical_optimizer::PhysicalOptimizerRule,
    physical_plan::{
        ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions,
        sorts::sort::SortExec,
        windows::{BoundedWindowAggExec, WindowAggExec},
    },
};

/// The rule. It comes behind the one that sorts.
#[derive(Debug)]
pub(super) struct PartitionsOfNull;

/// Where the rule comes.
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

/// The sort below a window with NULL first where the window lets it choose; `None` of other plans.
fn sorted(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let any: &dyn std::any::Any = plan.as_ref();
    if !any.is::<WindowAggExec>() && !any.is::<BoundedWindowAggExec>() {
        return None;
    }
    let children = plan.children();
    let [below] = children.as_slice() else { return None };
    let below: &dyn std::any::Any = below.as_ref();
    let sort = below.downcast_ref::<SortExec>()?;
    let required = plan.required_input_ordering().pop().flatten();
    let required = OrderingRequirements::into_single(required?);
    let is_free = |key: &PhysicalSortExpr| {
        required.iter().any(|it| it.expr.eq(&key.expr) && it.options.is_none())
    };
    let keys = sort.expr().iter().map(|key| {
        let mut key = key.clone();
        key.options.nulls_first |= is_free(&key);
        key
    });
    let sorted = SortExec::new(LexOrdering::new(keys)?, Arc::clone(sort.input()))
        .with_fetch(sort.fetch())
        .with_preserve_partitioning(sort.preserve_partitioning());
    Some(Arc::new(sorted))
}
