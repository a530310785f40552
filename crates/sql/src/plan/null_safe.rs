//! Keeps `<=>` apart from `=`, and equalities of several tables whole, when joins are put into another order.
//! DataFusion's rule takes the equality of one join of a tree for that of all others: NULLs would match under `=` too.

use datafusion::{
    common::{NullEquality, tree_node::Transformed},
    error::Result,
    logical_expr::{Expr, LogicalPlan},
    optimizer::{OptimizerConfig, OptimizerRule, eliminate_cross_join::EliminateCrossJoin},
};

use crate::nodes::TreeNode;

/// The name of the rule that it replaces.
pub(super) const REPLACED: &str = "eliminate_cross_join";

/// The rule, for plans without `<=>`, and without equalities that compute one side from several tables: it loses those
/// where it joins these tables at different places.
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
        let stays = |node: &LogicalPlan| {
            let LogicalPlan::Join(join) = node else { return Ok(false) };
            let mut compared = join.on.iter().flat_map(|(left, right)| [left, right]);
            Ok(join.null_equality == NullEquality::NullEqualsNull || compared.any(reads_several))
        };
        match plan.exists(stays)? {
            true => Ok(Transformed::no(plan)),
            false => self.0.rewrite(plan, config),
        }
    }
}

/// Whether an expression has columns of several tables.
fn reads_several(expr: &Expr) -> bool {
    let columns = expr.column_refs();
    let mut relations = columns.iter().map(|column| &column.relation);
    let first = relations.next();
    relations.any(|relation| Some(relation) != first)
}
