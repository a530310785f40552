//! Keeps `<=>` apart from `=` when joins are put into another order. DataFusion's rule takes the equality of one join of a
//! tree for that of all others: NULLs would match under `=` too.

use datafusion::{
    common::{NullEquality, tree_node::Transformed},
    error::Result,
    logical_expr::LogicalPlan,
    optimizer::{OptimizerConfig, OptimizerRule, eliminate_cross_join::EliminateCrossJoin},
};

use crate::nodes::TreeNode;

/// The name of the rule that it replaces.
pub(super) const REPLACED: &str = "eliminate_cross_join";

/// The rule, for plans without `<=>`.
#[derive(Debug)]
pub(super) struct CrossJoins(EliminateCrossJoin);

impl CrossJoins {
    pub(super) fn new() -> Self {
        Self(EliminateCrossJoin::new())
    }
}

impl OptimizerRule for CrossJoins {
    fn name(&self) -> &str {
        REPLACED
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let is_null_safe = |node: &LogicalPlan| {
            Ok(matches!(node, LogicalPlan::Join(join)
                if join.null_equality == NullEquality::NullEqualsNull))
        };
        match plan.exists(is_null_safe)? {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}
