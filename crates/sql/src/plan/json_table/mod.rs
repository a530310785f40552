//! JSON_TABLE: joins each row with the rows made of its document.
//!
//! ```text
//! Join: LEFT, condition                         Project: columns of t, values of the texts
//!   Scan: t                              ──→      JsonRows: rows of t.doc that meet the condition, or one of NULLs
//!   Project: values of the texts                    Scan: t
//!     Filter: #json_rows(outer t.doc)
//!       Scan: what stands for JSON_TABLE
//! ```
//! Without a join it gives the rows of one document, which is a constant or comes from a row of an outer query.

mod narrow;
mod node;
mod rows;

use std::sync::Arc;

use datafusion::{
    catalog::TableProvider,
    common::{
        Column, DFSchema, JoinType, TableReference,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNodeRecursion},
    },
    datasource::source_as_provider,
    error::Result,
    logical_expr::{
        Expr, Extension, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, TableScan,
        utils::conjunction,
    },
    optimizer::AnalyzerRule,
};

use crate::{
    Error,
    meaning::{JSON_ROWS, external},
    nodes::{TreeNode, WholePlan},
    scan::JsonSource,
};

pub(super) use narrow::NarrowedDocuments;
pub(super) use node::{JsonRows, planned};
pub(crate) use rows::JsonRowsExec;

/// The rule that inserts the JSON_TABLE node.
#[derive(Debug)]
pub(super) struct JsonTables;

impl AnalyzerRule for JsonTables {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_asked = false;
        plan.apply_whole(|node| {
            is_asked |= matches!(node, LogicalPlan::TableScan(scan) if source(scan).is_some());
            Ok(if is_asked { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !is_asked {
            return Ok(plan);
        }
        let done = plan.transform_whole(|plan| match plan {
            LogicalPlan::Filter(filter) => match made(&filter)? {
                Some(rows) => Ok(Transformed::yes(extension(rows))),
                None => Ok(Transformed::no(LogicalPlan::Filter(filter))),
            },
            LogicalPlan::Join(join) => match beside(&join)? {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(LogicalPlan::Join(join))),
            },
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &str {
        "json_tables"
    }
}

/// Whether the plan has a JSON_TABLE whose document or condition refers to an outer row.
fn are_of_outer_rows(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        let LogicalPlan::Extension(extension) = node else { return Ok(false) };
        let are_rows = extension.node.as_any().is::<JsonRows>();
        Ok(are_rows && extension.node.expressions().iter().any(Expr::contains_outer))
    })
}

/// The JSON_TABLE in an extension node, if its document is not a table's column.
pub(super) fn of_one_document(extension: &Extension) -> Option<&JsonRows> {
    let rows = extension.node.as_any().downcast_ref::<JsonRows>()?;
    matches!(rows.input, LogicalPlan::EmptyRelation(_)).then_some(rows)
}

fn extension(rows: JsonRows) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(rows) })
}

/// The placeholder table of JSON_TABLE, if a scan reads one.
fn source(scan: &TableScan) -> Option<Arc<dyn TableProvider>> {
    let provider = source_as_provider(&scan.source).ok()?;
    let any: &dyn std::any::Any = provider.as_ref();
    any.is::<JsonSource>().then_some(provider)
}

/// JSON_TABLE of the document that a filter over the placeholder table names.
fn made(filter: &Filter) -> Result<Option<JsonRows>> {
    let input = match filter.input.as_ref() {
        LogicalPlan::SubqueryAlias(named) => named.input.as_ref(),
        input => input,
    };
    let LogicalPlan::TableScan(scan) = input else { return Ok(None) };
    let Some(provider) = source(scan) else { return Ok(None) };
    let any: &dyn std::any::Any = provider.as_ref();
    let Some(source) = any.downcast_ref::<JsonSource>() else { return Ok(None) };
    let mut document = None;
    filter.predicate.apply(|expr| {
        if let Expr::ScalarFunction(call) = expr
            && call.name() == JSON_ROWS
        {
            document = call.args.first().cloned();
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let Some(document) = document else { return Ok(None) };
    let input = LogicalPlanBuilder::empty(true).build()?;
    let table = Arc::clone(source.table());
    let made = filter.input.schema().iter();
    let made = made.map(|(table, field)| (table.cloned(), Arc::clone(field))).collect();
    JsonRows::new(input, table, made, document).map(Some)
}

/// The parts of a derived table that is a JSON_TABLE of the rows to its left.
struct Lateral<'p> {
    alias: &'p TableReference,
    selected: &'p Projection,
    rows: &'p JsonRows,
}

fn lateral(plan: &LogicalPlan) -> Option<Lateral<'_>> {
    let LogicalPlan::SubqueryAlias(named) = plan else { return None };
    let LogicalPlan::Subquery(subquery) = named.input.as_ref() else { return None };
    let LogicalPlan::Projection(selected) = subquery.subquery.as_ref() else { return None };
    let LogicalPlan::Extension(extension) = selected.input.as_ref() else { return None };
    let rows = extension.node.as_any().downcast_ref::<JsonRows>()?;
    Some(Lateral { alias: &named.alias, selected, rows })
}

/// The join of rows with the JSON_TABLE of their documents.
fn beside(join: &Join) -> Result<Option<LogicalPlan>> {
    let Some(lateral) = lateral(&join.right) else {
        for side in [&join.left, &join.right] {
            check_lateral(side)?;
        }
        return Ok(None);
    };
    let keeps = join.join_type == JoinType::Left;
    if !keeps && join.join_type != JoinType::Inner || !join.on.is_empty() {
        return Err(external(Error::unsupported("this kind of JOIN with JSON_TABLE")));
    }
    let left = join.left.schema();
    let document = within(&lateral.rows.document, left)?;
    let values = lateral.selected.schema.fields().iter().zip(&lateral.selected.expr);
    let values: Vec<(Column, Expr)> = values
        .map(|(field, value)| {
            let column = Column::new(Some(lateral.alias.clone()), field.name());
            (column, value.clone().unalias())
        })
        .collect();
    let mut rows = lateral.rows.over(join.left.as_ref().clone(), document)?;
    if keeps {
        let condition = join.filter.as_ref().map(|filter| over(filter, &values)).transpose()?;
        rows = rows.keeping(condition.map(|condition| within(&condition, left)).transpose()?)?;
    }
    let mut items: Vec<Expr> = left.columns().into_iter().map(Expr::Column).collect();
    for (column, value) in values {
        items.push(value.alias_qualified(column.relation, column.name));
    }
    let plan = Projection::try_new(items, Arc::new(extension(rows)))?;
    let plan = LogicalPlan::Projection(plan);
    let filter = conjunction(join.filter.clone().filter(|_| !keeps));
    Ok(Some(match filter {
        Some(filter) => {
            let filter = within(&filter, left)?;
            LogicalPlan::Filter(Filter::try_new(filter, Arc::new(plan))?)
        }
        None => plan,
    }))
}

/// Refuses a LATERAL subquery with a JSON_TABLE of the rows to its left inside.
fn check_lateral(side: &LogicalPlan) -> Result<()> {
    let query = match side {
        LogicalPlan::SubqueryAlias(named) => named.input.as_ref(),
        side => side,
    };
    if let LogicalPlan::Subquery(query) = query
        && are_of_outer_rows(&query.subquery)?
    {
        let what = "JSON_TABLE of an outer column in a LATERAL query";
        return Err(external(Error::unsupported(what)));
    }
    Ok(())
}

/// An expression with references to outer columns replaced by the rows' own columns, where they mean those.
fn within(expr: &Expr, rows: &DFSchema) -> Result<Expr> {
    let moved = expr.clone().transform_up(|expr| {
        Ok(match expr {
            Expr::OuterReferenceColumn(_, column) if rows.has_column(&column) => {
                Transformed::yes(Expr::Column(column))
            }
            expr => Transformed::no(expr),
        })
    });
    moved.map(|moved| moved.data)
}

/// An expression with columns replaced by the expressions that compute them.
fn over(expr: &Expr, values: &[(Column, Expr)]) -> Result<Expr> {
    let moved = expr.clone().transform_up(|expr| {
        let Expr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
        Ok(match values.iter().find(|(known, _)| known == column) {
            Some((_, value)) => Transformed::yes(value.clone()),
            None => Transformed::no(expr),
        })
    });
    moved.map(|moved| moved.data)
}
