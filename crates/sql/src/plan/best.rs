//! Sort with a limit (top k) over a table with rows on other servers: each server sends only its
//! first rows.
//!
//! ```text
//! Sort with a limit of n          Sort with a limit of n
//!   Project                ──→      Project
//!     Scan: all rows                  Scan: the first n rows of each server
//! ```
//! The nodes in between may only change columns, not rows.

use std::sync::Arc;

use datafusion::{
    common::tree_node::{Transformed, TreeNode},
    error::Result,
    physical_expr::{PhysicalExpr, PhysicalSortExpr, expressions::Column},
    physical_plan::{
        ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions, coop::CooperativeExec,
        projection::ProjectionExec, sorts::sort::SortExec,
    },
};

use crate::scan::ScanExec;

type Plan = Arc<dyn ExecutionPlan>;

/// Rewrites top-k sorts over remote tables so that servers send only their first rows.
pub(super) fn best(plan: Plan) -> Result<Plan> {
    let done = plan.transform_up(|node| {
        let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(Transformed::no(node)) };
        let Some(rows) = sort.fetch() else { return Ok(Transformed::no(node)) };
        let order = sort.expr().iter().cloned().collect();
        match limited(sort.input(), order, rows)? {
            Some(below) => {
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                Ok(Transformed::yes(Arc::clone(&node).replace_children(vec![below], options)?))
            }
            None => Ok(Transformed::no(node)),
        }
    });
    done.map(|done| done.data)
}

/// The plan below a sort with its scan limited to the first rows; `None` if it is not possible.
fn limited(below: &Plan, order: Vec<PhysicalSortExpr>, rows: usize) -> Result<Option<Plan>> {
    if let Some(scan) = below.downcast_ref::<ScanExec>() {
        return Ok(scan.of_best(&order, rows).map(|scan| Arc::new(scan) as Plan));
    }
    let order = match below.downcast_ref::<ProjectionExec>() {
        Some(projection) => {
            let below = |key: PhysicalSortExpr| {
                Ok(PhysicalSortExpr { expr: projected(key.expr, projection)?, ..key })
            };
            order.into_iter().map(below).collect::<Result<_>>()?
        }
        None if below.is::<CooperativeExec>() => order,
        None => return Ok(None),
    };
    let [input] = below.children()[..] else { return Ok(None) };
    let Some(input) = limited(input, order, rows)? else { return Ok(None) };
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(below).replace_children(vec![input], options).map(Some)
}

/// An expression over a projection's columns as one over the projection's input.
pub(super) fn projected(
    expression: Arc<dyn PhysicalExpr>,
    projection: &ProjectionExec,
) -> Result<Arc<dyn PhysicalExpr>> {
    let made = expression.transform_up(|each| {
        let column = each.downcast_ref::<Column>().map(Column::index);
        let of_input = column.and_then(|place| projection.expr().get(place));
        Ok(match of_input {
            Some(of_input) => Transformed::yes(Arc::clone(&of_input.expr)),
            None => Transformed::no(each),
        })
    })?;
    Ok(made.data)
}
