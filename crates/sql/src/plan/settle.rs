//! Takes what a clock decides out of a plan that is kept: `NOW() - INTERVAL 7 DAY` is another moment at each run.
//! The greatest expressions of no columns that ask a clock become functions that read their values
//! ([`crate::scan::settled`]).

use std::sync::Arc;

use datafusion::{
    common::{
        DFSchema,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    error::Result as PlanResult,
    execution::SessionState as PlanState,
    logical_expr::{
        Expr, ExprSchemable, LogicalPlan, expr_rewriter::NamePreserver,
        physical_planning_context::PhysicalPlanningContext,
    },
    physical_expr::{PhysicalExpr, create_physical_expr},
};

use crate::scan::settled;

/// Functions that ask when the statement began.
const OF_A_CLOCK: [&str; 5] =
    ["now", "current_date", "utc_date", "utc_timestamp", "unix_timestamp"];

/// The plan, and the constants that its functions read, in the order of their numbers.
pub(super) fn settle(
    plan: LogicalPlan,
    state: &PlanState,
) -> PlanResult<(LogicalPlan, Vec<Arc<dyn PhysicalExpr>>)> {
    let nothing = DFSchema::empty();
    let planning = PhysicalPlanningContext::default();
    let mut constants = Vec::new();
    let settled = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let new = expr.transform_down(|expr| {
                if !is_settled(&expr) {
                    return Ok(Transformed::no(expr));
                }
                let field = expr.to_field(&nothing)?.1;
                let value = settled::value(constants.len(), &field);
                let properties = state.execution_props();
                constants.push(create_physical_expr(&expr, &nothing, properties, &planning)?);
                Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
            })?;
            Ok(Transformed::new(
                name.restore(new.data),
                new.transformed,
                TreeNodeRecursion::Continue,
            ))
        })
    })?;
    Ok((settled.data, constants))
}

/// Whether an expression asks a clock and nothing else but constants.
fn is_settled(expr: &Expr) -> bool {
    let (mut asks, mut is_constant) = (false, true);
    // Nothing fails on the way.
    let _ = expr.apply(|each| {
        match each {
            Expr::ScalarFunction(call) => {
                asks |= OF_A_CLOCK.contains(&call.name());
                is_constant &= !each.is_volatile_node();
            }
            Expr::Literal(..)
            | Expr::BinaryExpr(_)
            | Expr::Cast(_)
            | Expr::Negative(_)
            | Expr::Case(_) => {}
            _ => is_constant = false,
        }
        Ok(if is_constant { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    asks && is_constant
}
