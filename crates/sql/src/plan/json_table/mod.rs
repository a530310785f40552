//! JSON_TABLE of documents that rows have: rows beside those whose documents they are of.
//!
//! ```text
//! Join: LEFT, condition                         Project: columns of t, values of the texts
//!   Scan: t                              ──→      JsonRows: rows of t.doc that meet the condition, or one of NULLs
//!   Project: values of the texts                    Scan: t
//!     Filter: #json_rows(outer t.doc)
//!       Scan: what stands for JSON_TABLE
//! ```
//! Without a join they are the rows of one document: of none of a table, or of a row around the query.

mod node;
mod rows;

use std::sync::Arc;

use datafusion::{
    catalog::TableProvider,
    common::{
        Column, DFSchema, JoinType, TableReference,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
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
    scan::JsonSource,
};

pub(super) use node::{JsonRows, planned};
pub(crate) use rows::JsonRowsExec;

/// The rule that puts in what makes rows of documents.
#[derive(Debug)]
pub(super) struct JsonTables;

impl AnalyzerRule for JsonTables {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_asked = false;
        plan.apply_with_subqueries(|node| {
            is_asked |= matches!(node, LogicalPlan::TableScan(scan) if source(scan).is_some());
            Ok(if is_asked { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if !is_asked {
            return Ok(plan);
        }
        let done = plan.transform_up_with_subqueries(|plan| match plan {
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

/// Whether the plan has rows of documents that the query around it has, or that meet what it has.
fn are_of_outer_rows(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        let LogicalPlan::Extension(extension) = node else { return Ok(false) };
        let are_rows = extension.node.as_any().is::<JsonRows>();
        Ok(are_rows && extension.node.expressions().iter().any(Expr::contains_outer))
    })
}

/// The rows of one document, which no table has, if a step makes such.
pub(super) fn of_one_document(extension: &Extension) -> Option<&JsonRows> {
    let rows = extension.node.as_any().downcast_ref::<JsonRows>()?;
    matches!(rows.input, LogicalPlan::EmptyRelation(_)).then_some(rows)
}

fn extension(rows: JsonRows) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(rows) })
}

/// What stands for JSON_TABLE, if a scan is of it.
fn source(scan: &TableScan) -> Option<Arc<dyn TableProvider>> {
    let provider = source_as_provider(&scan.source).ok()?;
    let any: &dyn std::any::Any = provider.as_ref();
    any.is::<JsonSource>().then_some(provider)
}

/// The rows of the document of a filter over what stands for JSON_TABLE.
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

/// The join with a JSON_TABLE of its left side's rows: those with what their documents have.
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

/// Refuses a LATERAL query that has JSON_TABLE in it of rows to its left.
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

/// An expression with the columns of the rows themselves where it names them as those of rows around it.
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

/// An expression over values with what makes them in their places.
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
