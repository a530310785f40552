//! Sort with a limit (top k) over rows that conditions drop which only the plan can test: first over the first rows of
//! the order, which the engine finds along the key or an index, then over more of them. If they still do not fill the
//! page, all rows are read.
//!
//! ```text
//! Sort with a limit of n             First rows
//!   Project                            Sort with a limit of n, over the first rows of the order
//!     Filter: LENGTH(title) > 30  ──→    Project, Filter, Scan: the first 160 rows, then 800, …
//!       Scan: all rows                 or else the plan as it was
//! ```
//! The rows that are read in vain are a small share of all.

use std::{fmt, sync::Arc};

use datafusion::{
    arrow::{array::RecordBatch, datatypes::SchemaRef},
    common::{
        exec_err,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::Volatility,
    physical_expr::{
        EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr, ScalarFunctionExpr,
        expressions::Column,
    },
    physical_plan::{
        ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
        ExecutionPlanProperties, Partitioning, PlanProperties, ReplaceChildrenOptions,
        coop::CooperativeExec, execute_stream, filter::FilterExec, projection::ProjectionExec,
        repartition::RepartitionExec, sorts::sort::SortExec,
        sorts::sort_preserving_merge::SortPreservingMergeExec, stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};

use super::{best::projected, operator::over_one_input, watch};
use crate::{nodes::TreeNode, scan::ScanExec, state::Context};

type Plan = Arc<dyn ExecutionPlan>;

/// Of tables with fewer rows in another order than the key's all rows are read at once.
const MIN_ROWS: usize = 4_096;
/// The most rows of a page that are held, and their most bytes.
const MAX_PAGE: usize = 10_000;
const MAX_BYTES: usize = 32 << 20;
/// The fewest rows that are tried, for each row of the page.
const FIRST_TRIED: usize = 4;
const MIN_TRIED: usize = 64;
/// At most one in this many rows is read in key order, and in another order, where rows are read one by one.
const SHARE_BY_KEY: usize = 4;
const SHARE: usize = 16;

/// Rewrites top-k sorts over conditions that the engine does not answer.
pub(super) fn first_rows(plan: Plan) -> Result<Plan> {
    let done = plan.transform_down(|node| match FirstRowsExec::of(&node)? {
        Some(first) => Ok(Transformed::new(Arc::new(first) as Plan, true, TreeNodeRecursion::Jump)),
        None => Ok(Transformed::no(node)),
    });
    done.map(|done| done.data)
}

/// A sort with a limit that reads the first rows of its order before all rows.
struct FirstRowsExec {
    /// The plan that reads all rows.
    every: Plan,
    order: LexOrdering,
    /// What is sorted.
    below: Plan,
    /// The number of rows that are wanted.
    wanted: usize,
    /// The number of rows of the scan, and the most that are tried.
    most: usize,
    properties: Arc<PlanProperties>,
}

impl FirstRowsExec {
    /// `None` if the node is no such sort, the engine does not have the order, or trying does not pay off.
    fn of(node: &Plan) -> Result<Option<Self>> {
        let sort = match node.downcast_ref::<SortPreservingMergeExec>() {
            Some(merge) => merge.input(),
            None => node,
        };
        let Some(sort) = sort.downcast_ref::<SortExec>() else { return Ok(None) };
        let (Some(wanted), below) = (node.fetch(), sort.input()) else { return Ok(None) };
        let is_one = node.output_partitioning().partition_count() == 1;
        if !is_one || wanted == 0 || wanted > MAX_PAGE || is_volatile(below)? {
            return Ok(None);
        }
        let order: Vec<PhysicalSortExpr> = sort.expr().iter().cloned().collect();
        let Some((_, scan)) = limited(below, order, tried_first(wanted), false)? else {
            return Ok(None);
        };
        let share = if scan.is_in_key_order() { SHARE_BY_KEY } else { SHARE };
        let most = scan.row_count().map_or(0, |rows| rows / share);
        if most < (MIN_ROWS / SHARE).max(tried_first(wanted)) {
            return Ok(None);
        }
        let equivalences =
            EquivalenceProperties::new_with_orderings(node.schema(), [sort.expr().clone()]);
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            node.pipeline_behavior(),
            node.boundedness(),
        );
        let (order, below) = (sort.expr().clone(), Arc::clone(below));
        let (every, properties) = (Arc::clone(node), Arc::new(properties));
        Ok(Some(Self { every, order, below, wanted, most, properties }))
    }

    /// The page if it is among the first `rows` rows of the order; otherwise the number of its rows that are.
    async fn tried(&self, rows: usize, context: &Arc<TaskContext>) -> Result<Tried> {
        let order = self.order.iter().cloned().collect();
        let options = context.session_config().options();
        // What the session has changed may be too much to index. The plan that reads all rows does not need that.
        let below = match limited(&self.below, order, rows, true) {
            Ok(Some((below, _))) => below,
            Ok(None) => return Ok(Tried::Many),
            Err(_) => {
                watch::check(options)?;
                return Ok(Tried::Many);
            }
        };
        let sort = SortExec::new(self.order.clone(), below).with_fetch(Some(self.wanted));
        let mut plan: Plan = Arc::new(sort);
        if let Some(statement) = Context::of_options(options) {
            plan = watch::watched(plan, statement)?;
        }
        let mut stream = execute_stream(plan, Arc::clone(context))?;
        let (mut batches, mut found, mut bytes) = (Vec::new(), 0, 0);
        while let Some(batch) = stream.try_next().await? {
            found += batch.num_rows();
            bytes += batch.get_array_memory_size();
            if bytes > MAX_BYTES {
                return Ok(Tried::Many);
            }
            batches.push(batch);
        }
        Ok(if found >= self.wanted { Tried::Page(batches) } else { Tried::Few(found) })
    }

    async fn rows(
        self,
        context: Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        Ok(match self.page(&context).await? {
            Some(batches) => futures::stream::iter(batches.into_iter().map(Ok)).boxed(),
            None => execute_stream(Arc::clone(&self.every), context)?.boxed(),
        })
    }

    /// The page, if it is found among the first rows.
    async fn page(&self, context: &Arc<TaskContext>) -> Result<Option<Vec<RecordBatch>>> {
        let mut rows = tried_first(self.wanted);
        while rows <= self.most {
            let statement = Context::of_options(context.session_config().options());
            let warned = statement.map(|statement| (statement, statement.warnings.mark()));
            let tried = self.tried(rows, context).await?;
            if let Tried::Page(batches) = tried {
                return Ok(Some(batches));
            }
            // The same rows will warn again.
            if let Some((statement, mark)) = warned {
                statement.warnings.forget_since(mark);
            }
            match tried {
                Tried::Few(found) => rows = next_tried(rows, found, self.wanted),
                Tried::Page(_) | Tried::Many => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// What the first rows of an order gave.
enum Tried {
    /// All rows of the page.
    Page(Vec<RecordBatch>),
    /// So many rows of it.
    Few(usize),
    /// More bytes than are held.
    Many,
}

/// How many rows of an order are tried first.
fn tried_first(wanted: usize) -> usize {
    wanted.saturating_mul(FIRST_TRIED).max(MIN_TRIED)
}

/// How many rows to try after `tried` rows gave only `found` of the page: a quarter more than fill it if the share
/// stays the same.
fn next_tried(tried: usize, found: usize, wanted: usize) -> usize {
    let likely = tried.saturating_mul(wanted) / found.max(1);
    likely.saturating_add(likely / 4).clamp(tried.saturating_mul(2), tried.saturating_mul(8))
}

/// The plan below a sort with its scan limited to the first rows of the order, and that scan; `None` if that is not
/// possible. It can run if it `runs`.
fn limited(
    below: &Plan,
    order: Vec<PhysicalSortExpr>,
    rows: usize,
    runs: bool,
) -> Result<Option<(Plan, ScanExec)>> {
    if let Some(scan) = below.downcast_ref::<ScanExec>() {
        return Ok(scan
            .of_first(&order, rows, runs)?
            .map(|scan| (Arc::new(scan.clone()) as Plan, scan)));
    }
    let of_input = |order: Vec<PhysicalSortExpr>, moved: &dyn Fn(_) -> Result<_>| {
        let below = |key: PhysicalSortExpr| Ok(PhysicalSortExpr { expr: moved(key.expr)?, ..key });
        order.into_iter().map(below).collect::<Result<Vec<_>>>()
    };
    let mut is_kept = true;
    let order = if let Some(projection) = below.downcast_ref::<ProjectionExec>() {
        of_input(order, &|expr| projected(expr, projection))?
    } else if let Some(filter) = below.downcast_ref::<FilterExec>() {
        match filter.projection() {
            Some(chosen) => of_input(order, &|expr| chosen_of(expr, chosen))?,
            None => order,
        }
    } else if below.is::<RepartitionExec>() {
        is_kept = false;
        order
    } else if below.is::<CooperativeExec>() {
        order
    } else {
        return Ok(None);
    };
    let [input] = below.children()[..] else { return Ok(None) };
    let Some((input, scan)) = limited(input, order, rows, runs)? else { return Ok(None) };
    if !is_kept {
        return Ok(Some((input, scan)));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Ok(Some((Arc::clone(below).replace_children(vec![input], options)?, scan)))
}

/// An expression over the columns that a filter selects as one over its input's.
fn chosen_of(expr: Arc<dyn PhysicalExpr>, chosen: &[usize]) -> Result<Arc<dyn PhysicalExpr>> {
    let made = expr.transform_up(|each| {
        let Some(column) = each.downcast_ref::<Column>() else { return Ok(Transformed::no(each)) };
        let Some(place) = chosen.get(column.index()) else { return Ok(Transformed::no(each)) };
        let moved = Arc::new(Column::new(column.name(), *place)) as Arc<dyn PhysicalExpr>;
        Ok(Transformed::yes(moved))
    })?;
    Ok(made.data)
}

/// Whether a plan evaluates something that may give another value the next time, such as RAND() or a subquery.
fn is_volatile(plan: &Plan) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        node.apply_expressions(&mut |expr: &Arc<dyn PhysicalExpr>| {
            expr.apply(|each| {
                if let Some(call) = each.downcast_ref::<ScalarFunctionExpr>() {
                    found |= call.fun().signature().volatility == Volatility::Volatile;
                }
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    })?;
    Ok(found)
}

impl fmt::Debug for FirstRowsExec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FirstRowsExec").field("every", &self.every).finish_non_exhaustive()
    }
}

impl DisplayAs for FirstRowsExec {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "First rows of the order, at most {}; if they do not fill the page:", self.most)
    }
}

impl ExecutionPlan for FirstRowsExec {
    fn name(&self) -> &'static str {
        "FirstRowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn fetch(&self) -> Option<usize> {
        Some(self.wanted)
    }

    over_one_input!(every);

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Plan>,
        _: ReplaceChildrenOptions,
    ) -> Result<Plan> {
        let Some(every) = children.into_iter().next() else {
            return exec_err!("the first rows are of an input");
        };
        Ok(Arc::new(Self {
            every,
            order: self.order.clone(),
            below: Arc::clone(&self.below),
            properties: Arc::clone(&self.properties),
            ..*self
        }))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let this = Self {
            every: Arc::clone(&self.every),
            order: self.order.clone(),
            below: Arc::clone(&self.below),
            properties: Arc::clone(&self.properties),
            ..*self
        };
        let schema: SchemaRef = self.schema();
        let rows = futures::stream::once(this.rows(context));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_rows_are_tried_as_the_share_of_the_page_says() {
        assert_eq!((tried_first(20), tried_first(1)), (80, 64));
        assert_eq!(next_tried(80, 10, 20), 200);
        assert_eq!(next_tried(80, 19, 20), 160);
        assert_eq!(next_tried(80, 0, 20), 640);
        assert_eq!(next_tried(usize::MAX, 0, 20), usize::MAX);
    }
}
