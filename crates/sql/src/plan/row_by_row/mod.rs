//! SELECT lists that assign user variables (`@n := @n + 1`). Their expressions are evaluated from
//! left to right, row by row, in the order of the rows.
//!
//! ```text
//! Project: a, set_user_variable('n', …)           InTurn: a, set_user_variable('n', …)
//!   Sort, Limit                           ──→       Sort, Limit
//!     Scan: t                                         Scan: t
//! ```
//! The resolver has already moved ORDER BY and LIMIT below (`resolve/assigned.rs`).

mod rows;
mod types;

use std::{fmt, sync::Arc};

use datafusion::{
    catalog::Session,
    common::{
        DFSchema, DFSchemaRef,
        config::ConfigOptions,
        plan_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    logical_expr::{
        BinaryExpr, Expr, Extension, LogicalPlan, Operator, Projection, UserDefinedLogicalNodeCore,
        physical_planning_context::PhysicalPlanningContext,
    },
    optimizer::AnalyzerRule,
    physical_expr::create_physical_expr,
    physical_plan::ExecutionPlan,
};

use crate::{
    meaning::{ASSIGN_VARIABLE, GIVE_LAST_INSERT_ID, READ_VARIABLE, undecided},
    nodes::TreeNode,
};
use rows::RowByRowExec;

/// The rule that inserts the row-by-row projection.
#[derive(Debug)]
pub(super) struct RowByRowRule;

impl AnalyzerRule for RowByRowRule {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_asked = false;
        plan.apply(|node| {
            if let LogicalPlan::Projection(projection) = node {
                is_asked |= projection_uses_variables(projection)?;
            }
            Ok(if is_asked { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !is_asked {
            return Ok(plan);
        }
        let turned = plan.transform_up(|node| match node {
            LogicalPlan::Projection(projection) if projection_uses_variables(&projection)? => {
                let Projection { expr, input, .. } = projection;
                let exprs = types::told(expr, input.schema())?;
                let exprs = exprs.into_iter().map(undecided_sides).collect::<Result<_>>()?;
                let node = Arc::new(RowByRowProjection::new(exprs, Arc::unwrap_or_clone(input))?);
                Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
            }
            node => Ok(Transformed::no(node)),
        })?;
        Ok(turned.data)
    }

    fn name(&self) -> &str {
        "turns"
    }
}

/// Whether a projection must be evaluated row by row: it uses variables, or it calls
/// `LAST_INSERT_ID(value)` for rows. The latter is left alone beside a subquery, since the resolver
/// has not moved the order below, and only in a plain projection can a subquery become a join.
fn projection_uses_variables(projection: &Projection) -> Result<bool> {
    let (mut gives_ids, mut has_queries) = (false, false);
    for expr in &projection.expr {
        if uses_variables(expr)? {
            return Ok(true);
        }
        gives_ids |= gives_id(expr)?;
        has_queries |= has_query(expr)?;
    }
    let has_rows = !matches!(*projection.input, LogicalPlan::EmptyRelation(_));
    Ok(has_rows && gives_ids && !has_queries)
}

fn has_query(expr: &Expr) -> Result<bool> {
    expr.exists(|each| {
        Ok(matches!(
            each,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        ))
    })
}

/// Whether an expression calls `LAST_INSERT_ID(value)`.
fn gives_id(expr: &Expr) -> Result<bool> {
    expr.exists(|each| Ok(call_of(each, GIVE_LAST_INSERT_ID).is_some()))
}

/// Whether an expression reads or assigns variables.
fn uses_variables(expr: &Expr) -> Result<bool> {
    expr.exists(|each| {
        Ok(call_of(each, READ_VARIABLE).is_some() || call_of(each, ASSIGN_VARIABLE).is_some())
    })
}

/// Wraps the operands of AND and OR that use no variables. Otherwise optimizer rules could fold
/// them and drop the other operand with its assignments.
fn undecided_sides(expr: Expr) -> Result<Expr> {
    let side = |side: Box<Expr>| -> Result<Box<Expr>> {
        Ok(if uses_variables(&side)? { side } else { Box::new(undecided(*side)) })
    };
    let made = expr.transform_up(|each| match each {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right })
            if uses_variables(&left)? || uses_variables(&right)? =>
        {
            let both = BinaryExpr::new(side(left)?, op, side(right)?);
            Ok(Transformed::yes(Expr::BinaryExpr(both)))
        }
        each => Ok(Transformed::no(each)),
    })?;
    Ok(made.data)
}

/// The arguments of a call of the function of this name.
fn call_of<'e>(expr: &'e Expr, name: &str) -> Option<&'e [Expr]> {
    match expr {
        Expr::ScalarFunction(call) if call.name() == name => Some(&call.args),
        _ => None,
    }
}

/// A projection to be evaluated row by row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub(super) struct RowByRowProjection {
    projection: Projection,
}

impl RowByRowProjection {
    fn new(exprs: Vec<Expr>, input: LogicalPlan) -> Result<Self> {
        Ok(Self { projection: Projection::try_new(exprs, Arc::new(input))? })
    }
}

impl UserDefinedLogicalNodeCore for RowByRowProjection {
    fn name(&self) -> &str {
        "InTurn"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.projection.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.projection.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.projection.expr.clone()
    }

    fn fmt_for_explain(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.projection.expr.iter().map(ToString::to_string).collect();
        write!(out, "InTurn: {}", shown.join(", "))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        match <[LogicalPlan; 1]>::try_from(inputs) {
            Ok([input]) => Self::new(exprs, input),
            Err(_) => plan_err!("rows are evaluated in turn of one input"),
        }
    }
}

/// Plans the physical operator.
pub(super) fn planned(
    turn: &RowByRowProjection,
    below: &DFSchema,
    input: Arc<dyn ExecutionPlan>,
    session: &dyn Session,
) -> Result<Arc<dyn ExecutionPlan>> {
    let planning = PhysicalPlanningContext::default();
    let properties = session.execution_props();
    let physical = |expr: &Expr| {
        let expr = expr.clone().unalias_nested().data;
        let is_asked = uses_variables(&expr)?;
        Ok((create_physical_expr(&expr, below, properties, &planning)?, is_asked))
    };
    let exprs: Vec<_> = turn.projection.expr.iter().map(physical).collect::<Result<_>>()?;
    let schema = Arc::clone(turn.projection.schema.inner());
    Ok(Arc::new(RowByRowExec::new(rows::with_kept_sort(input)?, exprs, schema)))
}
