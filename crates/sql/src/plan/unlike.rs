//! Keeps conditions on the side of a join where they were written. DataFusion copies a condition over an equality of two
//! columns to the other column. If the columns have different collations or types, the copy means something else there:
//! `LIKE 'ä%'` finds 'ab' without regard to accents, but not in binary order.

use datafusion::{
    arrow::datatypes::Field,
    common::{Column, DFSchema, ExprSchema, tree_node::Transformed},
    error::Result,
    logical_expr::{Expr, LogicalPlan},
    optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule},
};

use super::keys::same;
use crate::{SqlType, meaning::types::ExprType};

/// The rule: of two key columns that mean different things, one becomes the result of a function, which DataFusion does
/// not take for the other column. It runs before the rule that copies conditions.
#[derive(Debug)]
pub(super) struct UnlikeKeys;

impl OptimizerRule for UnlikeKeys {
    fn name(&self) -> &str {
        "unlike_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
        let mut is_changed = false;
        for (left, right) in &mut join.on {
            let (Expr::Column(of_left), Expr::Column(of_right)) = (&*left, &*right) else {
                continue;
            };
            let found =
                field(join.left.schema(), of_left).zip(field(join.right.schema(), of_right));
            if !found.is_some_and(|(left, right)| are_alike(left, right)) {
                *right = same(right.clone());
                is_changed = true;
            }
        }
        match is_changed {
            true => Ok(Transformed::yes(LogicalPlan::Join(join))),
            false => Ok(Transformed::no(LogicalPlan::Join(join))),
        }
    }
}

fn field<'s>(schema: &'s DFSchema, column: &Column) -> Option<&'s Field> {
    schema.field_from_column(column).ok().map(|field| field.as_ref())
}

/// Whether each condition means the same of both columns when their values are equal.
fn are_alike(left: &Field, right: &Field) -> bool {
    let (left, right) = (ExprType::of_field(left), ExprType::of_field(right));
    let is_number = |kind: &ExprType| {
        use SqlType::{BigInt, Int, MediumInt, SmallInt, TinyInt};
        matches!(kind.kind, TinyInt | SmallInt | MediumInt | Int | BigInt)
    };
    let is_text = |kind: &ExprType| kind.is_text() && kind.members.is_none();
    let are_of_a_kind = left.kind == right.kind
        || is_number(&left) && is_number(&right)
        || is_text(&left) && is_text(&right);
    are_of_a_kind
        && left.unsigned == right.unsigned
        && left.collation == right.collation
        && left.coercibility == right.coercibility
        && left.members == right.members
        && left.decimals == right.decimals
        && left.width == right.width
        && left.multi == right.multi
}
