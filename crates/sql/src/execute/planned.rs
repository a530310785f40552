//! How a DataFusion plan reads its tables, in order, for EXPLAIN.

use std::sync::Arc;

use datafusion::{
    common::{config::ConfigOptions, tree_node::TreeNodeRecursion},
    datasource::source::DataSourceExec,
    error::Result as PlanResult,
    physical_expr::{PhysicalExpr, ScalarFunctionExpr},
    physical_plan::{
        ExecutionPlan,
        aggregates::AggregateExec,
        displayable,
        filter::FilterExec,
        joins::{HashJoinExec, NestedLoopJoinExec},
        sorts::sort::SortExec,
        windows::{BoundedWindowAggExec, WindowAggExec},
    },
};

use super::access::{AccessRequest, TableAccess};
use crate::{
    Result,
    error::{from_engine, from_plan},
    nodes::TreeNode,
    plan::{JsonRowsExec, subquery_plan},
    resolve::StatementTable,
    scan::ScanExec,
};

/// EXPLAIN's words for a dynamic filter from a join: its keys are known only after the other side was read.
const OF_A_JOIN: &str = "of which only those whose keys the other side of the join has";

/// MySQL's estimate of the rows that JSON_TABLE makes of a document.
const ROWS_OF_DOCUMENT: u64 = 2;

/// The accesses of a plan's tables and of those of the subqueries that ran before it, given the places of its relations
/// in the statement.
pub(super) fn accesses(
    plan: &Arc<dyn ExecutionPlan>,
    subqueries: &[Arc<dyn ExecutionPlan>],
    places: &[StatementTable],
    options: &ConfigOptions,
) -> Result<Vec<TableAccess>> {
    let mut walk = Walk::new(places, options);
    for plan in std::iter::once(plan).chain(subqueries) {
        walk.plan(plan, ParentOperators::default())?;
    }
    let Walk { mut made, .. } = walk;
    if made.is_empty() {
        let why = if places.is_empty() { "No tables used" } else { "No row is read" };
        made.push(TableAccess::of_no_table(why));
    }
    made.sort_by_key(|access| access.select);
    Ok(made)
}

/// What a step of a plan does, in MySQL's words where it has any.
pub(super) fn step(
    plan: &Arc<dyn ExecutionPlan>,
    places: &[StatementTable],
    options: &ConfigOptions,
) -> String {
    let any: &dyn std::any::Any = plan.as_ref();
    if let Some(scan) = any.downcast_ref::<ScanExec>() {
        let mut walk = Walk::new(places, options);
        if walk.scan(scan, ParentOperators::default()).is_ok()
            && let Some(access) = walk.made.pop()
        {
            return access.estimated_line();
        }
    }
    let said = displayable(plan.as_ref()).one_line().to_string();
    let name = plan.name();
    let rest = said.trim().strip_prefix(name).unwrap_or_default().to_owned();
    let known = STEPS.iter().find(|(theirs, _)| *theirs == name);
    format!("{}{rest}", known.map_or(name, |(_, ours)| *ours))
}

/// The names of steps.
const STEPS: [(&str, &str); 19] = [
    ("AggregateExec", "Aggregate"),
    ("BoundedWindowAggExec", "Window aggregate"),
    ("CrossJoinExec", "Cross join"),
    ("FilterExec", "Filter"),
    ("GlobalLimitExec", "Limit"),
    ("HashJoinExec", "Hash join"),
    ("SequentialUnion", "One part after the other"),
    ("RowByRowExec", "Assign variables row by row"),
    ("JsonRowsExec", "JSON_TABLE"),
    ("LateExec", "Late"),
    ("LocalLimitExec", "Limit"),
    ("NestedLoopJoinExec", "Nested loop join"),
    ("ProjectionExec", "Project"),
    ("SortExec", "Sort"),
    ("SortMergeJoinExec", "Merge join"),
    ("SortPreservingMergeExec", "Merge sorted"),
    ("UnnestSetExec", "Unfold"),
    ("UnionExec", "Append"),
    ("WindowAggExec", "Window aggregate"),
];

/// What the operators above do with the rows of the first table read.
#[derive(Clone, Copy, Default)]
struct ParentOperators {
    is_filtered: bool,
    is_sorted: bool,
    is_grouped: bool,
    /// Whether its rows are joined with those of tables read before.
    is_joined: bool,
}

struct Walk<'a> {
    places: &'a [StatementTable],
    options: &'a ConfigOptions,
    made: Vec<TableAccess>,
    /// Whether it is inside a correlated subquery.
    is_dependent: bool,
    /// The system tables not met yet, last first.
    of_system: Vec<&'a StatementTable>,
}

impl<'a> Walk<'a> {
    fn new(places: &'a [StatementTable], options: &'a ConfigOptions) -> Self {
        let of_system = places.iter().rev().filter(|place| place.is_system).collect();
        Self { places, options, made: Vec::new(), is_dependent: false, of_system }
    }

    fn plan(&mut self, plan: &Arc<dyn ExecutionPlan>, above: ParentOperators) -> Result<()> {
        let any: &dyn std::any::Any = plan.as_ref();
        if let Some(scan) = any.downcast_ref::<ScanExec>() {
            return self.scan(scan, above);
        }
        if any.is::<DataSourceExec>()
            && let Some(place) = self.of_system.pop()
        {
            let every = TableAccess { rows: None, ..TableAccess::every(&place.alias, 0) };
            self.made.push(every.placed(Some(place)));
            return Ok(());
        }
        let mut first = above;
        first.is_filtered |= any.is::<FilterExec>();
        first.is_sorted |= any.is::<SortExec>();
        let grouped = any.downcast_ref::<AggregateExec>();
        first.is_grouped |= grouped.is_some_and(|grouped| !grouped.group_expr().is_empty());
        first.is_grouped |= any.is::<WindowAggExec>() || any.is::<BoundedWindowAggExec>();
        let joins = any.is::<HashJoinExec>() || any.is::<NestedLoopJoinExec>();
        for (number, child) in plan.children().into_iter().enumerate() {
            let behind = ParentOperators { is_joined: joins, ..ParentOperators::default() };
            self.plan(child, if number == 0 { first } else { behind })?;
        }
        if let Some(rows) = any.downcast_ref::<JsonRowsExec>() {
            self.json_table(rows.called());
        }
        for (is_dependent, within) in self.within(plan).map_err(from_plan)? {
            let outer = std::mem::replace(&mut self.is_dependent, is_dependent);
            self.plan(&within, ParentOperators::default())?;
            self.is_dependent = outer;
        }
        Ok(())
    }

    /// JSON_TABLE, with MySQL's estimate of rows per document.
    fn json_table(&mut self, called: &str) {
        let place = self.places.iter().find(|place| place.unique == called);
        let mut access = TableAccess::every(called, ROWS_OF_DOCUMENT);
        access.is_dependent = self.is_dependent;
        access.add_extra("Table function: json_table");
        access.add_extra("Using temporary");
        self.made.push(access.placed(place));
    }

    /// The plans of subqueries that run inside functions of a plan.
    fn within(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
    ) -> PlanResult<Vec<(bool, Arc<dyn ExecutionPlan>)>> {
        let mut found = Vec::new();
        plan.apply_expressions(&mut |expr: &Arc<dyn PhysicalExpr>| {
            expr.apply(|each| {
                if let Some(call) = each.downcast_ref::<ScalarFunctionExpr>() {
                    found.extend(subquery_plan(call, self.options)?);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(found)
    }

    fn scan(&mut self, scan: &ScanExec, above: ParentOperators) -> Result<()> {
        let place = self.places.iter().find(|place| scan.relation() == Some(&place.unique));
        let has_condition = above.is_filtered || scan.asked().is_some();
        let mut access = match scan.access().map_err(|error| from_engine(&error))? {
            Some((mut path, compared)) => {
                if let Some(limit) = scan.limit() {
                    path.examined = path.examined.min(limit as u64);
                    path.matching = path.matching.min(limit as u64);
                }
                let wanted = AccessRequest { in_order: false, has_condition };
                let mut access = TableAccess::of(scan.sql(), scan.called(), &path, wanted);
                if !compared.is_empty() && access.compared.is_some() {
                    access.compared = Some(compared.join(","));
                }
                access
            }
            None => {
                let mut access = TableAccess::every(scan.called(), 0);
                if has_condition {
                    access.add_extra("Using where");
                }
                access
            }
        };
        access.is_dependent = self.is_dependent;
        if scan.own_rows() > 0 {
            access.rows = access.rows.map(|rows| rows.saturating_add(scan.own_rows() as u64));
            access.add_extra(format!("{} rows of the session", scan.own_rows()));
        }
        if above.is_sorted {
            access.add_extra_first("Using filesort");
        }
        if above.is_grouped {
            access.add_extra_first("Using temporary");
        }
        if above.is_joined {
            access.add_extra("Using join buffer (hash join)");
        }
        if scan.is_joined() && !self.is_dependent {
            access.add_extra(OF_A_JOIN);
        }
        access.extra.extend(scan.asked_of_text());
        self.made.push(access.placed(place));
        Ok(())
    }
}
