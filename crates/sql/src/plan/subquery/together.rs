//! Runs a correlated subquery for many outer rows at once, if that costs less than one run for each of them.
//!
//! Which costs less depends on how many inner rows an outer row has, so it is measured: the first outer rows are
//! computed one by one, then growing numbers of them together.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use datafusion::{
    arrow::{
        array::{Array, ArrayRef, RecordBatch, UInt32Array},
        compute::take,
        datatypes::{FieldRef, SchemaRef},
    },
    catalog::{Session, TableProvider, memory::MemorySourceConfig},
    common::{Column, ScalarValue, config::ConfigOptions},
    error::Result as PlanResult,
    execution::SessionState as PlanState,
    logical_expr::{Expr, LogicalPlan, TableType},
    physical_plan::{ExecutionPlan, execute_stream},
};
use futures::TryStreamExt;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    super::direct,
    Kind, Subquery,
    decorrelate::{self, Decorrelated},
    ready::are_same_types,
    stages, waited, watch, watched,
};

/// Outer rows that are computed one by one before many are computed together, and the fewest for which that is tried.
/// None where every statement is planned with the optimizer.
const FIRST: u32 = 32;
/// Numbers of outer rows that are computed together.
const SIZES: [usize; 3] = [256, 2_048, 8_192];
/// Larger numbers are not tried if a smaller one took as long as this.
const MAX_TRIAL: Duration = Duration::from_millis(500);

/// How long the results of outer rows took so far.
#[derive(Default)]
struct Pace {
    singles: u32,
    of_singles: Duration,
    /// The number of sizes that were tried.
    tried: usize,
    last: Duration,
    /// The best size, and its time for each outer row.
    best: Option<(usize, Duration)>,
}

impl Pace {
    /// The number of outer rows to compute together next; `None` to compute the next one alone.
    fn next(&self, first: u32) -> Option<usize> {
        if self.singles < first {
            return None;
        }
        if let Some(size) = SIZES.get(self.tried)
            && self.last < MAX_TRIAL
        {
            return Some(*size);
        }
        let alone = self.of_singles.checked_div(self.singles);
        let is_better = |each| alone.is_none_or(|alone| each < alone);
        self.best.filter(|(_, each)| is_better(*each)).map(|(size, _)| size)
    }

    fn ran_alone(&mut self, time: Duration) {
        self.singles = self.singles.saturating_add(1);
        self.of_singles += time;
    }

    fn ran_together(&mut self, rows: usize, time: Duration) {
        let each = time / u32::try_from(rows.max(1)).unwrap_or(u32::MAX);
        let size = SIZES.get(self.tried).or(SIZES.last()).copied().unwrap_or(rows);
        self.last = time;
        self.tried = (self.tried + 1).min(SIZES.len());
        if self.best.is_none_or(|(_, best)| each <= best) {
            self.best = Some((size, each));
        }
    }
}

/// The plans and measurements of a subquery.
#[derive(Default)]
pub(super) struct Together {
    pace: Mutex<Pace>,
    /// Plans that no thread is running.
    idle: Mutex<Vec<TogetherPlan>>,
    /// Whether it was found that it must be computed row by row.
    is_refused: AtomicBool,
}

/// The optimised plan of a subquery over a table of outer rows.
struct TogetherPlan {
    plan: LogicalPlan,
    /// The types of the outer columns that it is made for.
    fields: Vec<FieldRef>,
    is_total: bool,
    rows: Arc<OuterRows>,
    state: PlanState,
}

/// A table of outer rows.
#[derive(Debug)]
struct OuterRows {
    schema: SchemaRef,
    rows: Mutex<Option<RecordBatch>>,
}

#[async_trait]
impl TableProvider for OuterRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let rows: Vec<RecordBatch> = self.rows.lock().iter().cloned().collect();
        let schema = Arc::clone(&self.schema);
        Ok(MemorySourceConfig::try_new_exec(&[rows], schema, projection.cloned())?)
    }
}

/// The outer rows of a batch, by column.
struct OuterBatch<'b> {
    arrays: &'b [ArrayRef],
    fields: &'b [FieldRef],
    options: &'b Arc<ConfigOptions>,
}

impl OuterBatch<'_> {
    fn row(&self, row: usize) -> PlanResult<Vec<ScalarValue>> {
        self.arrays.iter().map(|array| ScalarValue::try_from_array(array, row)).collect()
    }
}

/// The fields with the types that their arrays have: of a column that is NULL in one input of a UNION, the planner may
/// know another one.
fn as_held(fields: &[FieldRef], arrays: &[ArrayRef]) -> Vec<FieldRef> {
    let held = fields.iter().zip(arrays).map(|(field, array)| {
        match field.data_type() == array.data_type() {
            true => Arc::clone(field),
            false => Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone())),
        }
    });
    held.collect()
}

fn first(options: &ConfigOptions) -> u32 {
    if direct::most_rows(options) == 0 { 0 } else { FIRST }
}

type Results = FxHashMap<Vec<ScalarValue>, ScalarValue>;

impl Subquery {
    /// Its results for the outer rows of some arrays.
    pub(super) fn of_rows(
        &self,
        arrays: &[ArrayRef],
        fields: &[FieldRef],
        options: &Arc<ConfigOptions>,
    ) -> PlanResult<Vec<ScalarValue>> {
        let rows = arrays.first().map_or(0, |array| array.len());
        let fields = &as_held(fields, arrays);
        let batch = OuterBatch { arrays, fields, options };
        let mut values = Vec::with_capacity(rows);
        let mut found = Results::default();
        let mut may_be_many = true;
        for row in 0..rows {
            watch::check(options)?;
            let outer = batch.row(row)?;
            if let Some(known) = found.get(&outer).cloned().or_else(|| self.known(&outer)) {
                values.push(known);
                continue;
            }
            if let Some(size) = self.size_of_next(options).filter(|_| may_be_many) {
                may_be_many = self.run_together(&batch, row, size, &mut found)?;
                if let Some(known) = found.get(&outer) {
                    values.push(known.clone());
                    continue;
                }
            }
            let begun = Instant::now();
            values.push(self.value(&outer, fields, options)?);
            self.together.pace.lock().ran_alone(begun.elapsed());
        }
        Ok(values)
    }

    /// The number of outer rows to compute together, if any.
    fn size_of_next(&self, options: &ConfigOptions) -> Option<usize> {
        let may = !self.is_volatile
            && !self.outer.is_empty()
            && matches!(self.kind, Kind::Scalar | Kind::Exists)
            && !self.together.is_refused.load(Ordering::Relaxed);
        may.then(|| self.together.pace.lock().next(first(options))).flatten()
    }

    /// Computes the results for at most `size` outer rows from `row` on and adds them to `found`. Adds none and returns
    /// false if there are few. Adds none if it fails: then the subquery runs row by row from now on, and reports its own error.
    fn run_together(
        &self,
        batch: &OuterBatch<'_>,
        row: usize,
        size: usize,
        found: &mut Results,
    ) -> PlanResult<bool> {
        let rows = batch.arrays.first().map_or(0, |array| array.len());
        let (mut seen, mut places, mut asked) = (FxHashSet::default(), Vec::new(), Vec::new());
        for at in row..rows {
            let outer = batch.row(at)?;
            let is_known = found.contains_key(&outer) || self.known(&outer).is_some();
            if !is_known && seen.insert(outer.clone()) {
                places.push(u32::try_from(at).unwrap_or(u32::MAX));
                asked.push(outer);
            }
            if asked.len() == size {
                break;
            }
        }
        if asked.len() < first(batch.options) as usize {
            return Ok(false);
        }
        let begun = Instant::now();
        let results = match self.results(batch, &places) {
            Ok(Some(results)) => results,
            Ok(None) => {
                self.together.is_refused.store(true, Ordering::Relaxed);
                return Ok(true);
            }
            Err(_) => {
                watch::check(batch.options)?;
                self.together.is_refused.store(true, Ordering::Relaxed);
                return Ok(true);
            }
        };
        self.together.pace.lock().ran_together(asked.len(), begun.elapsed());
        for (outer, value) in asked.into_iter().zip(results) {
            self.known.lock().keep(&outer, &value);
            found.insert(outer, value);
        }
        Ok(true)
    }

    /// The results for the outer rows at these places; `None` if they cannot be computed together.
    fn results(
        &self,
        batch: &OuterBatch<'_>,
        places: &[u32],
    ) -> PlanResult<Option<Vec<ScalarValue>>> {
        let made = match self.idle_together(batch.fields) {
            Some(made) => Some(made),
            None => self.together_plan(batch)?,
        };
        let Some(made) = made else { return Ok(None) };
        let number: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..places.len() as u32));
        let at = UInt32Array::from(places.to_vec());
        let mut columns = vec![number];
        for array in batch.arrays {
            columns.push(take(array.as_ref(), &at, None)?);
        }
        let rows = RecordBatch::try_new(Arc::clone(&made.rows.schema), columns)?;
        *made.rows.rows.lock() = Some(rows);
        let results = waited(self.collected(&made, places.len(), batch.options))?;
        let missing = match (results.iter().position(Option::is_none), made.is_total, self.kind) {
            (Some(first), true, _) => {
                let first = places.get(first).map_or(0, |place| *place as usize);
                self.value(&batch.row(first)?, batch.fields, batch.options)?
            }
            (_, _, Kind::Exists) => ScalarValue::Boolean(Some(false)),
            _ => ScalarValue::try_from(self.field().data_type())?,
        };
        *made.rows.rows.lock() = None;
        self.together.idle.lock().push(made);
        let results = results.into_iter().map(|value| value.unwrap_or_else(|| missing.clone()));
        Ok(Some(results.collect()))
    }

    fn idle_together(&self, fields: &[FieldRef]) -> Option<TogetherPlan> {
        let mut idle = self.together.idle.lock();
        let at = idle.iter().position(|made| are_same_types(&made.fields, fields))?;
        Some(idle.swap_remove(at))
    }

    fn together_plan(&self, batch: &OuterBatch<'_>) -> PlanResult<Option<TogetherPlan>> {
        let schema = decorrelate::schema(batch.fields);
        let rows = Arc::new(OuterRows { schema, rows: Mutex::default() });
        let outer: Vec<Column> = self.outer.iter().map(|(_, column)| column.clone()).collect();
        let provider: Arc<dyn TableProvider> = Arc::clone(&rows) as _;
        let Some(Decorrelated { plan, is_total }) =
            decorrelate::decorrelated(&self.plan, &outer, self.kind, provider)?
        else {
            return Ok(None);
        };
        let state = stages::state_of(batch.options);
        let plan = stages::analysed(&state, plan)?;
        let plan = stages::logical(&state, plan)?;
        let fields = batch.fields.to_vec();
        Ok(Some(TogetherPlan { plan, fields, is_total, rows, state }))
    }

    /// The result of each outer row; `None` for those without inner rows.
    async fn collected(
        &self,
        made: &TogetherPlan,
        rows: usize,
        options: &ConfigOptions,
    ) -> PlanResult<Vec<Option<ScalarValue>>> {
        let plan = stages::physical_of(&made.state, &made.plan).await?;
        let mut stream = execute_stream(watched(plan, options)?, made.state.task_ctx())?;
        let mut results = vec![None; rows];
        while let Some(batch) = stream.try_next().await? {
            for row in 0..batch.num_rows() {
                let number = ScalarValue::try_from_array(batch.column(0), row)?;
                let value = match self.kind {
                    Kind::Exists => ScalarValue::Boolean(Some(true)),
                    _ => ScalarValue::try_from_array(batch.column(1), row)?,
                };
                let ScalarValue::UInt32(Some(number)) = number else { continue };
                let Some(place) = results.get_mut(number as usize) else { continue };
                if place.replace(value).is_some() {
                    return Err(super::too_many_values());
                }
            }
        }
        Ok(results)
    }
}
