//! Plans whose result has exactly one row for each row of the scan that has the order: rows before OFFSET are counted by
//! the engine instead of read.

use datafusion::{common::JoinType, physical_expr::expressions::Column};

use super::{
    CachedPlan,
    expressions::BatchExpression,
    steps::BatchStep,
    tree::{Join, PlanNode, RowSource},
};

impl CachedPlan {
    /// Whether every row of the scan that has the order is exactly one result row.
    pub(super) fn each_is_shown(&self) -> bool {
        let keeps = |step: &BatchStep| step.keeps_rows() || matches!(step, BatchStep::Sort(_));
        self.root.steps.iter().all(keeps) && self.is_one_to_one(&self.root.of)
    }

    /// Whether every row of the leftmost scan is exactly one row: LEFT JOINs by whole keys only add columns.
    fn is_one_to_one(&self, of: &RowSource) -> bool {
        match of {
            RowSource::Scan(_) => true,
            RowSource::Join(join) => {
                let keeps = |part: &PlanNode| part.steps.iter().all(BatchStep::keeps_rows);
                join.kind == JoinType::Left
                    && keeps(&join.left)
                    && keeps(&join.right)
                    && self.is_one_to_one(&join.left.of)
                    && self.is_by_key(join)
            }
            _ => false,
        }
    }

    /// Whether at most one row of the right side, which is a table, matches a row of the left.
    fn is_by_key(&self, join: &Join) -> bool {
        let RowSource::Scan(scan) = join.right.of else { return false };
        let Some(read) = self.reads.get(scan) else { return false };
        let Some(table) = self.tables.get(read.table) else { return false };
        let widths = self.reads.iter().map(|read| read.scan.schema().fields().len());
        let origins = join.right.origins(&widths.collect::<Vec<_>>());
        let position = |of: &BatchExpression| {
            let column = of.downcast_ref::<Column>()?;
            let (_, place) = origins.get(column.index()).copied().flatten()?;
            read.scan.position(place)
        };
        let known: Vec<usize> = join.on.iter().filter_map(|(_, of)| position(of)).collect();
        let key = &table.schema().primary_key;
        !key.is_empty() && key.iter().all(|part| known.contains(part))
    }
}
