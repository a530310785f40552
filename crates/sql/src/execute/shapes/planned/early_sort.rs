//! Sorts before the subqueries of a select list run, so that they run for the rows of the page alone.
//!
//! ```text
//! Queries: a column more for each ── Project ── Sort ── the page
//! Sort ── the page ── Queries ── Project
//! ```

use std::sync::Arc;

use datafusion::physical_expr::{PhysicalSortExpr, expressions::Column};

use super::{expressions::BatchExpression, steps::BatchStep, tree::moved};

/// Moves the first sort of a plan, and the LIMIT that follows it, before the steps that run subqueries for its rows, if it sorts by columns that are there
/// before them.
pub(super) fn sort_before_queries(steps: &mut Vec<BatchStep>) {
    let Some(sort) = steps.iter().position(|step| matches!(step, BatchStep::Sort(_))) else {
        return;
    };
    let before = steps.get(..sort).unwrap_or_default();
    let kept = before.iter().rev().take_while(|step| step.keeps_rows()).count();
    let passed = before.get(sort - kept..).unwrap_or_default();
    let runs_queries = passed.iter().any(|step| matches!(step, BatchStep::SubqueryColumns(_)));
    if let Some(BatchStep::Sort(keys)) = steps.get(sort)
        && runs_queries
        && let Some(keys) = keys_before(keys, passed)
    {
        let cuts = steps.iter().skip(sort + 1).take_while(|step| matches!(step, BatchStep::Cut(_)));
        let end = sort + 1 + cuts.count();
        let mut moved: Vec<BatchStep> = steps.drain(sort..end).collect();
        if let Some(first) = moved.first_mut() {
            *first = BatchStep::Sort(keys);
        }
        steps.splice(sort - kept..sort - kept, moved);
    }
}

/// The sort keys over the columns before these steps; `None` if one is computed in them.
fn keys_before(
    keys: &[(BatchExpression, PhysicalSortExpr)],
    passed: &[BatchStep],
) -> Option<Vec<(BatchExpression, PhysicalSortExpr)>> {
    let before = |(expression, key): &(BatchExpression, PhysicalSortExpr)| {
        let mut expression = Arc::clone(expression);
        for step in passed.iter().rev() {
            let column = |place| step.of_column(place).filter(|it| it.is::<Column>());
            expression = moved(&expression, &column)?;
        }
        Some((Arc::clone(&expression), PhysicalSortExpr { expr: expression, options: key.options }))
    };
    keys.iter().map(before).collect()
}
