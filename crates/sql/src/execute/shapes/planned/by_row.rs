//! Correlated subqueries that run once for each outer row: `(SELECT status FROM orders WHERE user_id = u.id ORDER BY
//! created_at DESC LIMIT 1)`.
//!
//! ```text
//! Filter first conditions ── Queries: a column more for each ── Filter those that name them ── Project without them
//! ```
//! The outer values are put into the query's slots, and its tables are looked up by them. Outer rows with equal values
//! run the query once.

use std::{ops::Range, sync::Arc, time::Instant};

use datafusion::{
    arrow::{
        array::{ArrayRef, RecordBatch},
        datatypes::{Field, Schema, SchemaRef},
    },
    common::{
        ScalarValue, exec_err,
        tree_node::{Transformed, TreeNode},
    },
    error::Result as PlanResult,
    physical_expr::{ScalarFunctionExpr, expressions::Column},
};
use remora_engine::{Filter, SortKey};
use rustc_hash::FxHashMap;

use super::{
    read::Reading,
    run::{PlannedRun, SLICE, value_of},
    steps::{Expression, Step, all_evaluated, of_columns},
    tree::{Of, PlanNode},
};
use crate::{aside::wait_aside, scan::settled::query_of};

/// Of so many rows the first in an order are looked for by that.
const MANY_ROWS: u64 = 64;

/// A query that runs for one row after the other.
pub(super) struct RowQuery {
    pub part: PlanNode,
    /// Whether it is asked for rows rather than its only value.
    pub is_exists: bool,
    /// The slots of the values of the row.
    pub slots: Range<usize>,
    /// The order whose first rows it takes, and how many, if the engine has it.
    pub order: Option<(Vec<SortKey>, usize)>,
}

/// Columns beside the others: what queries give for each row.
pub(super) struct Beside {
    /// The number of each query and the values that it is given.
    calls: Vec<(usize, Vec<Expression>)>,
    schema: SchemaRef,
}

impl Beside {
    /// What gives the values of the queries in expressions of columns of `below`, and the expressions with its columns
    /// in their places; `None` if there are no queries in them.
    pub fn of(
        expressions: Vec<Expression>,
        below: &SchemaRef,
    ) -> PlanResult<(Option<Self>, Vec<Expression>)> {
        let mut calls = Vec::new();
        let mut fields: Vec<Arc<Field>> = below.fields().iter().cloned().collect();
        let mut replaced = Vec::with_capacity(expressions.len());
        for expression in expressions {
            let new = expression.transform_down(|each| {
                let Some(number) = query_of(&each) else { return Ok(Transformed::no(each)) };
                let args = each.downcast_ref::<ScalarFunctionExpr>().map(ScalarFunctionExpr::args);
                calls.push((number, args.unwrap_or_default().to_vec()));
                let name = format!("query {number}");
                let field = each.return_field(below)?.as_ref().clone().with_name(&name);
                let column: Expression = Arc::new(Column::new(&name, fields.len()));
                fields.push(Arc::new(field.with_nullable(true)));
                Ok(Transformed::complete(column))
            })?;
            replaced.push(new.data);
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(((!calls.is_empty()).then_some(Self { calls, schema }), replaced))
    }

    /// The columns below and its own.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many columns are below.
    pub fn width_below(&self) -> usize {
        self.schema.fields().len() - self.calls.len()
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.schema.fields().len()
    }

    /// What the queries are given.
    pub fn expressions(&self) -> Vec<Expression> {
        self.calls.iter().flat_map(|(_, args)| args.iter().cloned()).collect()
    }

    /// The rows with what the queries give for each; `None` if one has several rows, or more would be looked at than
    /// may be.
    fn apply(&self, batch: &RecordBatch, asked: &PlannedRun) -> PlanResult<Option<RecordBatch>> {
        if batch.num_rows() == 0 {
            return Ok(Some(RecordBatch::new_empty(Arc::clone(&self.schema))));
        }
        let mut columns = batch.columns().to_vec();
        let mut left = Left::of(asked);
        for (number, args) in &self.calls {
            let args = all_evaluated(args, batch, asked.asked())?;
            let running = Running::of(asked, *number)?;
            let Some(values) = running.values(&args, batch.num_rows(), &mut left)? else {
                return Ok(None);
            };
            columns.push(ScalarValue::iter_to_array(values)?);
        }
        of_columns(&self.schema, columns, batch.num_rows()).map(Some)
    }
}

/// What queries may still take for the rows of a batch.
struct Left {
    /// When they are to have ended: a connection's thread has others to serve.
    end: Option<Instant>,
    bytes: usize,
}

impl Left {
    fn of(asked: &PlannedRun) -> Self {
        let end = (!asked.is_aside).then(|| Instant::now() + SLICE);
        Self { end, bytes: asked.most().bytes }
    }

    /// Takes what a value takes; whether there was so much left.
    fn take(&mut self, value: &ScalarValue) -> bool {
        let left = self.bytes.checked_sub(value.size());
        self.bytes = left.unwrap_or(0);
        left.is_some() && self.end.is_none_or(|end| Instant::now() < end)
    }
}

/// A query with a run of its plan that is its own.
struct Running<'a> {
    query: &'a RowQuery,
    /// What is asked of the tables around.
    around: &'a PlannedRun,
    asked: PlannedRun,
}

impl<'a> Running<'a> {
    fn of(around: &'a PlannedRun, number: usize) -> PlanResult<Self> {
        let Some(query) = around.plan.queries.get(number) else {
            return exec_err!("there is no query {number} in a kept plan");
        };
        Ok(Self { query, around, asked: around.untraced() })
    }

    /// What it gives for each row; `None` if that is for one, or takes too much.
    fn values(
        mut self,
        args: &[ArrayRef],
        rows: usize,
        left: &mut Left,
    ) -> PlanResult<Option<Vec<ScalarValue>>> {
        let mut known: FxHashMap<Vec<ScalarValue>, ScalarValue> = FxHashMap::default();
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            let args = args.iter().map(|each| ScalarValue::try_from_array(each, row));
            let args = args.collect::<PlanResult<Vec<_>>>()?;
            let value = match known.get(&args) {
                Some(known) => known.clone(),
                None => {
                    let Some(value) = self.value(&args)? else { return Ok(None) };
                    known.insert(args, value.clone());
                    value
                }
            };
            if !left.take(&value) {
                return Ok(None);
            }
            values.push(value);
        }
        Ok(Some(values))
    }

    /// What it gives for the values of a row; `None` if it has several rows, or looks at too many.
    fn value(&mut self, args: &[ScalarValue]) -> PlanResult<Option<ScalarValue>> {
        self.asked.check()?;
        let context = Arc::make_mut(&mut self.asked.context);
        let last = self.query.slots.end.max(context.outer_row.len());
        context.outer_row.resize(last, ScalarValue::Null);
        for (slot, value) in self.query.slots.clone().zip(args) {
            if let Some(place) = context.outer_row.get_mut(slot) {
                place.clone_from(value);
            }
        }
        for scan in self.query.part.of.scans() {
            let Some(read) = self.around.plan.reads.get(scan) else { continue };
            let mut filters = read.scan.settled_filters(&self.asked.context, true);
            filters.extend(self.around.filters.get(scan).cloned().flatten());
            if let Some(place) = self.asked.filters.get_mut(scan) {
                *place = Filter::all_of(filters);
            }
        }
        match self.rows()? {
            Some(batch) => value_of(&batch, self.query.is_exists),
            None => Ok(None),
        }
    }

    fn rows(&self) -> PlanResult<Option<RecordBatch>> {
        let (asked, part) = (&self.asked, &self.query.part);
        let mut reading = Reading::new(asked, &part.of, asked.most(), None)?;
        let (Some((order, count)), Of::Scan(scan)) = (&self.query.order, &part.of) else {
            return reading.part(part);
        };
        if reading.fewest() <= MANY_ROWS {
            return reading.part(part);
        }
        let Some(read) = asked.plan.reads.get(*scan) else { return Ok(None) };
        let filter = asked.filters.get(*scan).cloned().flatten();
        let first = read.scan.first_along(&asked.reader, filter, (order, *count), &asked.zone)?;
        let Some(first) = first else { return reading.part(part) };
        let is_all = first.num_rows() < *count;
        let made = Reading::new(asked, &part.of, asked.most(), Some((*scan, first)))?.part(part)?;
        match made {
            Some(made) if is_all || made.num_rows() >= *count => Ok(Some(made)),
            // Conditions behind the scan left some out.
            _ => reading.part(part),
        }
    }
}

impl PlannedRun {
    /// What a step makes of a batch; `None` if more would be looked at than may be.
    pub(super) fn apply(
        &self,
        step: &Step,
        batch: &RecordBatch,
    ) -> PlanResult<Option<RecordBatch>> {
        match step {
            Step::Beside(beside) if self.is_aside => wait_aside(|| beside.apply(batch, self)),
            Step::Beside(beside) => beside.apply(batch, self),
            step => step.apply(batch, self.asked()).map(Some),
        }
    }
}
