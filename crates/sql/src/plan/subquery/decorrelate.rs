//! A correlated subquery as a query over a table of outer rows, so that it runs once for thousands of them. The values
//! of the outer columns are joined with the tables of the subquery, and what it groups is grouped by outer row too.
//!
//! ```text
//! (SELECT COUNT(*) FROM o WHERE o.user = u.id AND o.total > u.most)
//! SELECT #row, COUNT(*) FROM #outer, o WHERE o.user = #0 AND o.total > #1 GROUP BY #row
//! ```
//! The equality is the key of the join, so that the other side is looked up by index. Without one nothing is gained.

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef},
    catalog::TableProvider,
    common::{Column, TableReference, tree_node::Transformed},
    datasource::provider_as_source,
    error::Result as PlanResult,
    logical_expr::{
        Aggregate, BinaryExpr, Distinct, Expr, FetchType, Filter, Limit, LogicalPlan,
        LogicalPlanBuilder, Operator, Projection, SkipType, SubqueryAlias,
        expr_rewriter::NamePreserver, utils::split_conjunction,
    },
};

use super::{super::joinable::outer_columns, Kind};
use crate::nodes::TreeNode;

/// The relation of the outer rows, whose columns are `#row`, `#0`, `#1` and so on.
const RELATION: &str = "#outer";
const ROW: &str = "#row";

/// A subquery over a table of outer rows.
pub(super) struct Decorrelated {
    /// Its columns are the number of an outer row and, of a scalar subquery, a value.
    pub plan: LogicalPlan,
    /// Whether it has a value for an outer row without inner rows too: the same for all of them.
    pub is_total: bool,
}

/// The schema of a table of outer rows.
pub(super) fn schema(fields: &[FieldRef]) -> SchemaRef {
    let number = Field::new(ROW, DataType::UInt32, false);
    let of_values = fields
        .iter()
        .enumerate()
        .map(|(at, field)| field.as_ref().clone().with_name(format!("#{at}")).with_nullable(true));
    Arc::new(Schema::new(std::iter::once(number).chain(of_values).collect::<Vec<_>>()))
}

/// The query `plan` over a table of outer rows; `None` if it cannot be written so, or if no equality correlates it.
pub(super) fn decorrelated(
    plan: &LogicalPlan,
    outer: &[Column],
    kind: Kind,
    rows: Arc<dyn TableProvider>,
) -> PlanResult<Option<Decorrelated>> {
    let rows = LogicalPlanBuilder::scan(RELATION, provider_as_source(rows), None)?.build()?;
    let mut decorrelator =
        Decorrelator { outer, kind, rows, is_total: false, is_keyed: false, is_top: true };
    let Some(below) = decorrelator.node(plan)? else { return Ok(None) };
    let number = Expr::Column(Column::new(Some(RELATION), ROW));
    let made = match (kind, plan.schema().columns().into_iter().next()) {
        (Kind::Exists, _) => {
            LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(below), vec![number], Vec::new())?)
        }
        (Kind::Scalar, Some(value)) => {
            let value = Expr::Column(value).alias("value");
            LogicalPlan::Projection(Projection::try_new(vec![number, value], Arc::new(below))?)
        }
        _ => return Ok(None),
    };
    let is_whole = decorrelator.is_keyed && outer_columns(&made)?.is_empty();
    Ok(is_whole.then_some(Decorrelated { plan: made, is_total: decorrelator.is_total }))
}

struct Decorrelator<'p> {
    outer: &'p [Column],
    kind: Kind,
    rows: LogicalPlan,
    /// An aggregate of all rows was met. What is above it sees one row for each outer row.
    is_total: bool,
    /// An equality of an outer and an inner value was met.
    is_keyed: bool,
    /// Whether nothing above this node drops or groups rows, so that a limit does not change whether there is a row.
    is_top: bool,
}

impl Decorrelator<'_> {
    /// The node with the columns of the outer rows added to its own.
    fn node(&mut self, node: &LogicalPlan) -> PlanResult<Option<LogicalPlan>> {
        if outer_columns(node)?.is_empty() {
            let made = LogicalPlanBuilder::from(self.rows.clone()).cross_join(node.clone())?;
            return made.build().map(Some);
        }
        let is_top = self.is_top;
        self.is_top &= matches!(
            node,
            LogicalPlan::Projection(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Limit(_)
        );
        match node {
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::SubqueryAlias(alias) => self.alias(alias),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let below = self.node(input)?.filter(|_| !self.is_total);
                Ok(below.map(|below| LogicalPlan::Distinct(Distinct::All(Arc::new(below)))))
            }
            // Only a limit needs the order.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.node(&sort.input),
            LogicalPlan::Limit(limit) => self.limit(limit, is_top),
            _ => Ok(None),
        }
    }

    fn filter(&mut self, filter: &Filter) -> PlanResult<Option<LogicalPlan>> {
        let Some(below) = self.node(&filter.input)? else { return Ok(None) };
        // Without the groups that it drops, rows that are missing are of two kinds.
        if self.is_total {
            return Ok(None);
        }
        self.is_keyed |= split_conjunction(&filter.predicate).into_iter().any(is_equality);
        let predicate = self.within(filter.predicate.clone())?;
        Ok(Some(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(below))?)))
    }

    fn projection(&mut self, projection: &Projection) -> PlanResult<Option<LogicalPlan>> {
        let Some(below) = self.node(&projection.input)? else { return Ok(None) };
        if self.is_total && projection.expr.iter().any(Expr::contains_outer) {
            return Ok(None);
        }
        let names = NamePreserver::new_for_projection();
        let mut items = self.columns();
        for expr in &projection.expr {
            let name = names.save(expr);
            items.push(name.restore(self.within(expr.clone())?));
        }
        Ok(Some(LogicalPlan::Projection(Projection::try_new(items, Arc::new(below))?)))
    }

    fn alias(&mut self, alias: &SubqueryAlias) -> PlanResult<Option<LogicalPlan>> {
        let Some(below) = self.node(&alias.input)? else { return Ok(None) };
        let mut items = self.columns();
        let inside = alias.input.schema().columns().into_iter();
        items.extend(inside.zip(alias.schema.columns()).map(|(inside, outside)| {
            Expr::Column(inside).alias_qualified(outside.relation, outside.name)
        }));
        Ok(Some(LogicalPlan::Projection(Projection::try_new(items, Arc::new(below))?)))
    }

    fn aggregate(&mut self, aggregate: &Aggregate) -> PlanResult<Option<LogicalPlan>> {
        let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
        let cannot = |expr: &Expr| matches!(expr, Expr::GroupingSet(_)) || expr.contains_outer();
        if group_expr.iter().chain(aggr_expr).any(cannot) {
            return Ok(None);
        }
        let Some(below) = self.node(input)?.filter(|_| !self.is_total) else { return Ok(None) };
        self.is_total = group_expr.is_empty();
        let groups = self.columns().into_iter().chain(group_expr.iter().cloned()).collect();
        let made = Aggregate::try_new(Arc::new(below), groups, aggr_expr.clone())?;
        Ok(Some(LogicalPlan::Aggregate(made)))
    }

    /// A limit that leaves the result as it is.
    fn limit(&mut self, limit: &Limit, is_top: bool) -> PlanResult<Option<LogicalPlan>> {
        let (SkipType::Literal(0), FetchType::Literal(Some(1..) | None)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Ok(None);
        };
        let below = self.node(&limit.input)?;
        Ok(below.filter(|_| self.is_total || is_top && self.kind == Kind::Exists))
    }

    /// The columns of the outer rows.
    fn columns(&self) -> Vec<Expr> {
        self.rows.schema().columns().into_iter().map(Expr::Column).collect()
    }

    /// The expression with outer columns read from the outer rows.
    fn within(&self, expr: Expr) -> PlanResult<Expr> {
        let moved = expr.transform_up(|expr| {
            let Expr::OuterReferenceColumn(_, column) = &expr else {
                return Ok(Transformed::no(expr));
            };
            let at = self.outer.iter().position(|known| known == column);
            let place = at.map(|at| {
                Expr::Column(Column::new(Some(TableReference::bare(RELATION)), format!("#{at}")))
            });
            Ok(place.map_or(Transformed::no(expr), Transformed::yes))
        });
        moved.map(|moved| moved.data)
    }
}

/// Whether a condition equates a value of outer columns with one of inner columns.
fn is_equality(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else {
        return false;
    };
    let pair = |outer: &Expr, inner: &Expr| {
        outer.contains_outer()
            && !outer.any_column_refs()
            && inner.any_column_refs()
            && !inner.contains_outer()
            && !outer.is_volatile()
            && !inner.is_volatile()
    };
    pair(left, right) || pair(right, left)
}
