//! Takes out of a plan that is kept what is another constant at each run: what a clock decides (`NOW() - INTERVAL 7
//! DAY`), and queries of no outer row that are asked for a value (`(SELECT MAX(id) FROM t)`, `EXISTS (…)`). Functions that
//! read their values stand in their places ([`crate::scan::settled`]).

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

use super::subquery::{Alone, alone};
use crate::scan::settled;

/// Functions that ask when the statement began.
const OF_A_CLOCK: [&str; 5] =
    ["now", "current_date", "utc_date", "utc_timestamp", "unix_timestamp"];

/// A constant that is settled for each run. It may read those before it.
pub(crate) enum Settled<P> {
    Constant(Arc<dyn PhysicalExpr>),
    /// The only value of a query, or whether it has rows.
    Query(P, bool),
}

type Constants = Vec<Settled<LogicalPlan>>;

/// The plan, and the constants that its functions read, in the order of their numbers.
pub(super) fn settle(plan: LogicalPlan, state: &PlanState) -> PlanResult<(LogicalPlan, Constants)> {
    let mut constants = Vec::new();
    let plan = settled_in(plan, state, &mut constants)?;
    Ok((plan, constants))
}

fn settled_in(
    plan: LogicalPlan,
    state: &PlanState,
    constants: &mut Constants,
) -> PlanResult<LogicalPlan> {
    let plan = replaced(plan, &mut |expr| {
        let Some(Alone { plan, is_exists }) = alone(expr)? else { return Ok(None) };
        let query = settled_in(plan, state, constants)?;
        constants.push(Settled::Query(query, is_exists));
        Ok(Some(constants.len() - 1))
    })?;
    let planning = PhysicalPlanningContext::default();
    replaced(plan, &mut |expr| {
        if !asks_a_clock(expr) {
            return Ok(None);
        }
        let properties = state.execution_props();
        let constant = create_physical_expr(expr, &DFSchema::empty(), properties, &planning)?;
        constants.push(Settled::Constant(constant));
        Ok(Some(constants.len() - 1))
    })
}

/// The plan with the greatest expressions replaced of which `number` gives the number of a constant.
fn replaced(
    plan: LogicalPlan,
    number: &mut dyn FnMut(&Expr) -> PlanResult<Option<usize>>,
) -> PlanResult<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let new = expr.transform_down(|expr| {
                let Some(number) = number(&expr)? else { return Ok(Transformed::no(expr)) };
                let field = expr.to_field(&DFSchema::empty())?.1;
                let value = settled::value(number, &field);
                Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
            })?;
            let (new, is_new) = (name.restore(new.data), new.transformed);
            Ok(Transformed::new(new, is_new, TreeNodeRecursion::Continue))
        })
    })?;
    Ok(done.data)
}

/// Whether an expression asks a clock, and nothing else but constants.
fn asks_a_clock(expr: &Expr) -> bool {
    let (mut asks, mut is_constant) = (false, true);
    // Nothing fails on the way.
    let _ = expr.apply(|each| {
        match each {
            Expr::ScalarFunction(call) => {
                asks |= OF_A_CLOCK.contains(&call.name());
                is_constant &= !each.is_volatile_node() || call.name() == settled::NAME;
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
