//! Keeps conditions without columns above aggregates that have a row for no rows. DataFusion's rule moves conditions on
//! groups below the groups, and takes one without columns for such a condition: `COUNT(*) … HAVING RAND() > 2` would count
//! no rows instead of having no row.

use datafusion::{
    common::tree_node::Transformed,
    error::Result,
    logical_expr::{Expr, LogicalPlan, utils::split_conjunction},
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule, push_down_filter::PushDownFilter},
};

/// The name of the rule that it replaces.
pub(super) const REPLACED: &str = "push_down_filter";

/// The rule, except for such conditions.
#[derive(Debug)]
pub(super) struct FiltersAboveOneGroup(PushDownFilter);

impl FiltersAboveOneGroup {
    pub(super) fn new() -> Self {
        Self(PushDownFilter::new())
    }
}

impl OptimizerRule for FiltersAboveOneGroup {
    fn name(&self) -> &str {
        REPLACED
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match decides_one_group(&plan) {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}

/// Whether it is a filter, or several, with a condition without columns above an aggregate that always has a row.
fn decides_one_group(plan: &LogicalPlan) -> bool {
    let (mut node, mut is_plain) = (plan, true);
    while let LogicalPlan::Filter(filter) = node {
        is_plain &= split_conjunction(&filter.predicate).iter().all(|it| it.any_column_refs());
        node = &filter.input;
    }
    let LogicalPlan::Aggregate(aggregate) = node else { return false };
    let groups = &aggregate.group_expr;
    !is_plain && groups.iter().all(|group| matches!(group, Expr::GroupingSet(_)))
}
