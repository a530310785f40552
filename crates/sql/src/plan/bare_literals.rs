//! Strips literals in comparisons to their bare values. A literal may carry a type for clients, so that two literals of
//! the same value differ; DataFusion takes a column that equals two different literals for a contradiction.

use datafusion::{
    common::{ScalarValue, tree_node::Transformed},
    error::Result,
    logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator},
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

use crate::nodes::{TreeNode, WholePlan};

/// The rule.
#[derive(Debug)]
pub(super) struct BareLiterals;

impl OptimizerRule for BareLiterals {
    fn name(&self) -> &str {
        "bare_literals"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(_) | LogicalPlan::Join(_) => {
                plan.transform_expressions(|expr| expr.transform_up(bare))
            }
            plan => Ok(Transformed::no(plan)),
        }
    }
}

fn bare(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let compares =
        matches!(op, Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    if !compares || !(carries(&left) || carries(&right)) {
        return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    }
    let (left, right) = (Box::new(value(*left)), Box::new(value(*right)));
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
}

fn carries(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_, Some(_)) => true,
        Expr::Literal(ScalarValue::Float64(Some(number)), None) => is_negative_zero(*number),
        _ => false,
    }
}

fn value(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(number)), _) if is_negative_zero(number) => {
            Expr::Literal(ScalarValue::Float64(Some(0.0)), None)
        }
        Expr::Literal(value, _) => Expr::Literal(value, None),
        expr => expr,
    }
}

fn is_negative_zero(number: f64) -> bool {
    number == 0.0 && number.is_sign_negative()
}
