//! The inputs of joins, what is known of their rows, and the conditions between them.

use std::hash::BuildHasher;

use datafusion::{
    common::{Column, DFSchemaRef, ScalarValue, config::ConfigOptions},
    datasource::source_as_provider,
    error::Result,
    logical_expr::{
        Distinct, Expr, JoinType, LogicalPlan, TableScan, expr_rewriter::unnormalize_cols,
    },
};
use rustc_hash::FxBuildHasher;

use crate::{scan::EngineTable, state::Context};

/// Rows of an input of which nothing is known.
const UNKNOWN_ROWS: f64 = 1_000.0;
/// The share of rows that satisfy a condition which indexes do not answer.
const OF_CONDITION: f64 = 0.5;
/// Rows of a group, and of a value of a column without an index.
const ROWS_OF_GROUP: f64 = 4.0;
const ROWS_OF_VALUE: f64 = 10.0;

/// An input of joins.
pub(super) struct JoinInput {
    schema: DFSchemaRef,
    /// The estimated number of rows.
    pub rows: f64,
    /// The number of rows of its table, if it is one.
    pub table_rows: f64,
    /// Its scan, if it is a table.
    table: Option<TableScan>,
    /// The only key of its groups.
    group: Option<Column>,
}

/// A value of a relation that equals values of others.
pub(super) struct EqualValue {
    pub expr: Expr,
    pub relation: usize,
    /// Its estimated number of distinct values in the table.
    pub distinct: f64,
    /// Whether an index finds the rows of a value.
    pub is_indexed: bool,
}

/// Values of several relations that are all equal.
#[derive(Default)]
pub(super) struct EqualValues {
    pub of: Vec<EqualValue>,
}

/// A condition on several relations.
pub(super) struct InputCondition {
    pub expr: Expr,
    /// The relations that it reads, a bit for each.
    pub reads: u64,
}

/// The inputs of joins and the conditions of these.
pub(super) struct JoinInputs {
    pub inputs: Vec<JoinInput>,
    pub equal: Vec<EqualValues>,
    pub conditions: Vec<InputCondition>,
}

impl JoinInput {
    pub(super) fn of(plan: &LogicalPlan, options: &ConfigOptions) -> Result<Self> {
        let rows = rows_of(plan, options)?;
        let table = scan_of(plan);
        let size = table.and_then(|scan| with_table(scan, |table| table.rows() as f64));
        Ok(Self {
            schema: plan.schema().clone(),
            rows,
            table_rows: size.unwrap_or(rows).max(rows),
            table: table.cloned(),
            group: only_key(plan),
        })
    }

    /// The distinct values of an expression on it, and whether an index finds the rows of one.
    fn distinct_values(&self, expr: &Expr) -> (f64, bool) {
        let columns = expr.column_refs();
        let mut columns = columns.into_iter();
        let (Some(column), None) = (columns.next(), columns.next()) else {
            return (self.rows, false);
        };
        if self.group.as_ref().is_some_and(|group| group.name == column.name) {
            return (self.rows, false);
        }
        let found = self.table.as_ref();
        let found = found.and_then(|scan| with_table(scan, |it| it.distinct_values(&column.name)));
        match found.flatten() {
            Some(count) => (count as f64, true),
            None => ((self.table_rows / ROWS_OF_VALUE).max(1.0), false),
        }
    }
}

impl JoinInputs {
    /// The inputs with the conditions of their joins; `None` if a condition reads something else.
    pub(super) fn new(
        inputs: Vec<JoinInput>,
        equalities: &[(Expr, Expr)],
        conditions: &[Expr],
    ) -> Option<Self> {
        let mut made = Self { inputs, equal: Vec::new(), conditions: Vec::new() };
        for (left, right) in equalities {
            match (made.only_relation(left)?, made.only_relation(right)?) {
                (Some(left_of), Some(right_of)) => {
                    made.add_equal((left, left_of), (right, right_of))
                }
                // DataFusion finds such joins again, and loses the equality where it takes their inputs apart.
                _ => return None,
            }
        }
        for condition in conditions {
            made.add_condition(condition.clone())?;
        }
        made.add_equal_within()?;
        Some(made)
    }

    /// The relations that an expression reads.
    fn reads(&self, expr: &Expr) -> Option<u64> {
        if expr.contains_outer() {
            return None;
        }
        let mut reads = 0;
        for column in expr.column_refs() {
            let place = self.inputs.iter().position(|input| input.schema.has_column(column))?;
            reads |= 1 << place;
        }
        Some(reads)
    }

    /// The relation that an expression reads, if it is one.
    fn only_relation(&self, expr: &Expr) -> Option<Option<usize>> {
        let reads = self.reads(expr)?;
        Some(reads.is_power_of_two().then(|| reads.trailing_zeros() as usize))
    }

    fn add_condition(&mut self, expr: Expr) -> Option<()> {
        let reads = self.reads(&expr)?;
        self.conditions.push(InputCondition { expr, reads });
        Some(())
    }

    fn add_equal(&mut self, left: (&Expr, usize), right: (&Expr, usize)) {
        let has = |values: &EqualValues, expr: &Expr| values.of.iter().any(|it| it.expr == *expr);
        let mut take = |expr: &Expr| {
            let place = self.equal.iter().position(|values| has(values, expr));
            place.map(|place| self.equal.swap_remove(place))
        };
        let mut values = take(left.0).unwrap_or_default();
        if !has(&values, right.0) {
            values.of.extend(take(right.0).unwrap_or_default().of);
        }
        for (expr, relation) in [left, right] {
            let Some(input) = self.inputs.get(relation).filter(|_| !has(&values, expr)) else {
                continue;
            };
            let (distinct, is_indexed) = input.distinct_values(expr);
            let distinct = distinct.max(1.0);
            values.of.push(EqualValue { expr: expr.clone(), relation, distinct, is_indexed });
        }
        self.equal.push(values);
    }

    /// Equal values of one relation are compared with each other: a further relation is joined by one of them alone.
    fn add_equal_within(&mut self) -> Option<()> {
        let mut within = Vec::new();
        for values in &self.equal {
            for (at, value) in values.of.iter().enumerate() {
                let mut before = values.of.iter().take(at);
                if let Some(first) = before.find(|first| first.relation == value.relation) {
                    within.push(first.expr.clone().eq(value.expr.clone()));
                }
            }
        }
        within.into_iter().try_for_each(|condition| self.add_condition(condition))
    }
}

/// The scan of a relation that is a table.
fn scan_of(plan: &LogicalPlan) -> Option<&TableScan> {
    match plan {
        LogicalPlan::TableScan(scan) => Some(scan),
        LogicalPlan::SubqueryAlias(alias) => scan_of(&alias.input),
        LogicalPlan::Filter(filter) => scan_of(&filter.input),
        _ => None,
    }
}

fn with_table<T>(scan: &TableScan, read: impl FnOnce(&EngineTable) -> T) -> Option<T> {
    let provider = source_as_provider(&scan.source).ok()?;
    let any: &dyn std::any::Any = provider.as_ref();
    any.downcast_ref::<EngineTable>().map(read)
}

/// The estimated rows of a scan, which are counted once for a statement.
fn counted(scan: &TableScan, table: &EngineTable, options: &ConfigOptions) -> Result<f64> {
    let key = FxBuildHasher.hash_one((&scan.table_name, &scan.filters));
    let estimates = Context::of_options(options).map(|context| &context.estimates);
    let known = estimates.and_then(|known| known.lock().get(&key).copied());
    if let Some(rows) = known {
        return Ok(rows);
    }
    let conditions = unnormalize_cols(scan.filters.iter().cloned());
    let rows = table.estimated_rows(&conditions, options)? as f64;
    if let Some(estimates) = estimates {
        estimates.lock().insert(key, rows);
    }
    Ok(rows)
}

/// The only key of the groups that a plan returns.
fn only_key(plan: &LogicalPlan) -> Option<Column> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => match aggregate.group_expr.as_slice() {
            [Expr::Column(column)] => Some(column.clone()),
            _ => None,
        },
        LogicalPlan::SubqueryAlias(alias) => only_key(&alias.input),
        LogicalPlan::Projection(projection) => only_key(&projection.input),
        _ => None,
    }
}

/// The estimated number of rows of a plan.
fn rows_of(plan: &LogicalPlan, options: &ConfigOptions) -> Result<f64> {
    let of = |plan: &LogicalPlan| rows_of(plan, options);
    Ok(match plan {
        LogicalPlan::TableScan(scan) => {
            let counted = with_table(scan, |table| counted(scan, table, options));
            counted.transpose()?.unwrap_or(UNKNOWN_ROWS)
        }
        LogicalPlan::Filter(filter) => of(&filter.input)? * OF_CONDITION,
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => 1.0,
        LogicalPlan::Aggregate(aggregate) => of(&aggregate.input)? / ROWS_OF_GROUP,
        LogicalPlan::Distinct(Distinct::All(input)) => of(input)? / ROWS_OF_GROUP,
        LogicalPlan::Limit(limit) => match limit.fetch.as_deref() {
            Some(Expr::Literal(ScalarValue::Int64(Some(most)), _)) => {
                of(&limit.input)?.min(*most as f64)
            }
            _ => of(&limit.input)?,
        },
        LogicalPlan::Join(join) => {
            let (left, right) = (of(&join.left)?, of(&join.right)?);
            match join.join_type {
                JoinType::LeftSemi | JoinType::LeftAnti => left * OF_CONDITION,
                JoinType::RightSemi | JoinType::RightAnti => right * OF_CONDITION,
                JoinType::LeftMark => left,
                JoinType::RightMark => right,
                _ => left.max(right),
            }
        }
        LogicalPlan::Union(union) => {
            union.inputs.iter().map(|input| of(input)).sum::<Result<f64>>()?
        }
        LogicalPlan::EmptyRelation(_) => 1.0,
        LogicalPlan::Values(values) => values.values.len() as f64,
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Projection(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Extension(_) => match plan.inputs().first() {
            Some(input) => of(input)?,
            None => UNKNOWN_ROWS,
        },
        _ => UNKNOWN_ROWS,
    })
}
