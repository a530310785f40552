//! Aggregation over one batch.

use std::sync::Arc;

use datafusion::{
    arrow::{
        array::{ArrayRef, Int64Array, RecordBatch, UInt32Array},
        compute::{take, take_arrays},
        datatypes::{DataType, SchemaRef},
        row::{RowConverter, SortField},
    },
    common::{ScalarValue, exec_err},
    error::Result as PlanResult,
    logical_expr::EmitTo,
    physical_expr::{
        aggregate::AggregateFunctionExpr,
        expressions::{Column, Literal},
    },
    physical_plan::{
        ExecutionPlan,
        aggregates::{AggregateExec, AggregateMode},
    },
};
use rustc_hash::FxHashMap;

use super::expressions::{BatchExpression, FunctionContext, ScanOrigin, all_evaluated, of_columns};

/// The group keys and the aggregate functions.
pub(super) struct GroupStep {
    keys: Vec<BatchExpression>,
    functions: Vec<GroupFunction>,
    schema: SchemaRef,
}

struct GroupFunction {
    of: Arc<AggregateFunctionExpr>,
    args: Vec<BatchExpression>,
}

/// A function of all rows whose value is known without reading them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndFunction {
    /// The number of rows.
    Count,
    /// The least or the greatest value of a column of the input.
    End { column: usize, greatest: bool },
}

/// The group of each row, and the first row of each group.
struct Groups {
    of_rows: Vec<usize>,
    firsts: Vec<u32>,
}

impl GroupStep {
    /// The grouping of an aggregate operator; `None` if it is not supported here.
    pub(super) fn of(plan: &AggregateExec) -> Option<Self> {
        let by = plan.group_expr();
        let is_plain = *plan.mode() == AggregateMode::Single
            && !by.has_grouping_set()
            && plan.limit_options().is_none()
            && plan.filter_expr().iter().all(Option::is_none)
            && plan.aggr_expr().iter().all(|function| function.order_bys().is_empty());
        if !is_plain {
            return None;
        }
        let keys: Vec<BatchExpression> = by.expr().iter().map(|(key, _)| Arc::clone(key)).collect();
        let input = plan.input_schema();
        // +0 and -0 are one group, but differ in the row format.
        let float = |key: &BatchExpression| {
            let kind = key.data_type(&input);
            kind.map_or(true, |kind| matches!(kind, DataType::Float32 | DataType::Float64))
        };
        if keys.iter().any(float) {
            return None;
        }
        let functions = plan.aggr_expr().iter();
        let functions =
            functions.map(|of| GroupFunction { of: Arc::clone(of), args: of.expressions() });
        Some(Self { keys, functions: functions.collect(), schema: plan.schema() })
    }

    /// Its functions, if it has no keys and they are MIN and MAX of columns and COUNT(*).
    pub(super) fn ends(&self) -> Option<Vec<EndFunction>> {
        if self.has_keys() || self.functions.is_empty() {
            return None;
        }
        let function = |function: &GroupFunction| {
            let [arg] = function.args.as_slice() else { return None };
            let column = arg.downcast_ref::<Column>().map(Column::index);
            match (function.of.fun().name(), column) {
                ("min", Some(column)) => Some(EndFunction::End { column, greatest: false }),
                ("max", Some(column)) => Some(EndFunction::End { column, greatest: true }),
                ("count", None) if !function.of.is_distinct() => {
                    let literal = arg.downcast_ref::<Literal>()?;
                    (!literal.value().is_null()).then_some(EndFunction::Count)
                }
                _ => None,
            }
        };
        self.functions.iter().map(function).collect()
    }

    /// The value of a function over these rows.
    pub(super) fn value(
        &self,
        number: usize,
        batch: &RecordBatch,
        asked: FunctionContext<'_>,
    ) -> PlanResult<ArrayRef> {
        match self.functions.get(number) {
            Some(function) => function.of_all(batch, asked),
            None => exec_err!("there is no function {number} in a grouping"),
        }
    }

    /// The value of COUNT(*) for so many rows.
    pub(super) fn count(rows: u64) -> ArrayRef {
        Arc::new(Int64Array::from(vec![i64::try_from(rows).unwrap_or(i64::MAX)]))
    }

    /// The result row without keys, of the values of the functions.
    pub(super) fn row(&self, values: Vec<ArrayRef>) -> PlanResult<RecordBatch> {
        of_columns(&self.schema, values, 1)
    }

    /// Whether it has group keys.
    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The scan columns of the result columns, which of a group are those of its keys; `None` if it has no keys, or one
    /// that is no scan column.
    pub(super) fn key_origins(&self, below: &[ScanOrigin]) -> Option<Vec<ScanOrigin>> {
        let origin = |key: &BatchExpression| {
            let column = key.downcast_ref::<Column>()?;
            below.get(column.index()).copied().flatten().map(Some)
        };
        let mut origins = self.keys.iter().map(origin).collect::<Option<Vec<_>>>()?;
        origins.resize(self.width(), None);
        self.has_keys().then_some(origins)
    }

    /// The number of result columns.
    pub(super) fn width(&self) -> usize {
        self.schema.fields().len()
    }

    /// The group key with this number.
    pub(super) fn key(&self, place: usize) -> Option<&BatchExpression> {
        self.keys.get(place)
    }

    pub(super) fn expressions(&self) -> Vec<&BatchExpression> {
        self.keys.iter().chain(self.functions.iter().flat_map(|function| &function.args)).collect()
    }

    /// One row for each group, in the order of their first rows.
    pub(super) fn apply(
        &self,
        batch: &RecordBatch,
        asked: FunctionContext<'_>,
    ) -> PlanResult<RecordBatch> {
        if self.keys.is_empty() {
            let values = self.functions.iter().map(|function| function.of_all(batch, asked));
            return of_columns(&self.schema, values.collect::<PlanResult<_>>()?, 1);
        }
        if batch.num_rows() == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let keys = all_evaluated(&self.keys, batch, asked)?;
        let groups = Groups::of(&keys, batch.num_rows())?;
        let firsts = UInt32Array::from(groups.firsts.clone());
        let mut columns = take_arrays(&keys, &firsts, None)?;
        for function in &self.functions {
            columns.push(function.of_groups(batch, &groups, asked)?);
        }
        of_columns(&self.schema, columns, groups.firsts.len())
    }
}

impl Groups {
    fn of(keys: &[ArrayRef], rows: usize) -> PlanResult<Self> {
        let fields = keys.iter().map(|key| SortField::new(key.data_type().clone()));
        let converted = RowConverter::new(fields.collect())?.convert_columns(keys)?;
        let mut known: FxHashMap<&[u8], usize> = FxHashMap::default();
        let mut groups = Self { of_rows: Vec::with_capacity(rows), firsts: Vec::new() };
        let converted: Vec<_> = converted.iter().collect();
        for (at, row) in converted.iter().enumerate() {
            let group = *known.entry(row.as_ref()).or_insert_with(|| {
                groups.firsts.push(at as u32);
                groups.firsts.len() - 1
            });
            groups.of_rows.push(group);
        }
        Ok(groups)
    }

    /// For each group, the first row with a value that is not NULL.
    fn first_present(&self, values: &ArrayRef) -> UInt32Array {
        let mut firsts = vec![None; self.firsts.len()];
        for (at, group) in self.of_rows.iter().enumerate() {
            if let Some(first @ None) = firsts.get_mut(*group)
                && values.is_valid(at)
            {
                *first = Some(at as u32);
            }
        }
        UInt32Array::from(firsts)
    }

    /// The rows of each group.
    fn rows(&self) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); self.firsts.len()];
        for (at, group) in self.of_rows.iter().enumerate() {
            if let Some(of_group) = rows.get_mut(*group) {
                of_group.push(at as u32);
            }
        }
        rows
    }
}

impl GroupFunction {
    fn of_all(&self, batch: &RecordBatch, asked: FunctionContext<'_>) -> PlanResult<ArrayRef> {
        let mut accumulator = self.of.create_accumulator()?;
        if batch.num_rows() > 0 {
            accumulator.update_batch(&all_evaluated(&self.args, batch, asked)?)?;
        }
        accumulator.evaluate()?.to_array()
    }

    fn of_groups(
        &self,
        batch: &RecordBatch,
        groups: &Groups,
        asked: FunctionContext<'_>,
    ) -> PlanResult<ArrayRef> {
        let args = all_evaluated(&self.args, batch, asked)?;
        if let ("any_value", false, [arg]) =
            (self.of.fun().name(), self.of.is_distinct(), &args[..])
        {
            return Ok(take(arg, &groups.first_present(arg), None)?);
        }
        if self.of.groups_accumulator_supported() {
            let mut accumulator = self.of.create_groups_accumulator()?;
            accumulator.update_batch(&args, &groups.of_rows, None, groups.firsts.len())?;
            return accumulator.evaluate(EmitTo::All);
        }
        let mut values = Vec::with_capacity(groups.firsts.len());
        for rows in groups.rows() {
            let rows = UInt32Array::from(rows);
            let of_group = args.iter().map(|arg| Ok(take(arg, &rows, None)?));
            let mut accumulator = self.of.create_accumulator()?;
            accumulator.update_batch(&of_group.collect::<PlanResult<Vec<_>>>()?)?;
            values.push(accumulator.evaluate()?);
        }
        ScalarValue::iter_to_array(values)
    }
}
