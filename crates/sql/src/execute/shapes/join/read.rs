//! Reads the tables of a join one after the other, for the rows of the tables before.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use remora_engine::{Filter, KeyValues, Literal, ScanRequest, Value};

use super::{
    LiteralOffset,
    plan::{Comparand, JoinChain, JoinStep, JoinTest},
};
use crate::{
    Result,
    catalog::Reader,
    error::from_engine,
    execute::shapes::{
        constant::{Comparable, Constant, Fitted},
        parameterize::Constants,
        shape::Comparison,
    },
    state::SessionState,
    transaction::Overlay,
};

/// The most rows of one table that are collected.
const MAX_ROWS: usize = 20_000;
/// The most preceding rows for which a table is scanned once each.
const MAX_SCANS: usize = 1_000;
/// Rows in a batch of a scan.
const BATCH_ROWS: usize = 1_024;

/// Rows of `width` values each.
#[derive(Default)]
pub(super) struct ChainRows {
    pub(super) width: usize,
    pub(super) count: usize,
    pub(super) values: Vec<Value>,
}

impl ChainRows {
    /// Iterates over the rows.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[Value]> {
        (0..self.count).map(|row| {
            let start = row * self.width;
            self.values.get(start..start + self.width).unwrap_or_default()
        })
    }

    /// The distinct integers of a slot, ascending.
    pub(super) fn distinct(&self, slot: usize) -> Vec<i128> {
        let numbers = self.iter().filter_map(|row| number(row.get(slot)?));
        numbers.collect::<BTreeSet<i128>>().into_iter().collect()
    }
}

/// A test filled with the values of one row.
#[derive(Clone)]
enum Filled {
    Compare(Comparison, i128),
    /// Equal to one of these numbers, which ascend.
    OneOf(Arc<[i128]>),
    /// A comparison with NULL, which is never true.
    Never,
}

/// A run over one snapshot with the literals of a statement.
pub(super) struct JoinRun<'a> {
    pub(super) session: &'a SessionState,
    pub(super) reader: &'a Reader,
    pub(super) constants: &'a Constants<'a>,
    /// Records of the reads, for EXPLAIN.
    pub(super) noted: Option<RefCell<Vec<StepRead>>>,
}

/// How a table was read.
pub(super) struct StepRead {
    /// The number of joined rows before it.
    pub rows_before: usize,
    /// The number of keys looked up.
    pub keys: usize,
    /// The request of the first scan.
    pub scan: Option<ScanRequest>,
    /// The number of joined rows after it.
    pub rows: usize,
    pub time: Duration,
}

impl JoinRun<'_> {
    /// The rows of a chain; `None` if there are too many, or a literal needs a conversion.
    pub(super) fn rows(&self, chain: &JoinChain) -> Result<Option<ChainRows>> {
        let mut before: Vec<Arc<[i128]>> = Vec::new();
        for (other, slot) in &chain.before {
            let Some(rows) = self.rows(other)? else { return Ok(None) };
            before.push(rows.distinct(*slot).into());
        }
        let mut rows = ChainRows { count: 1, ..ChainRows::default() };
        for step in &chain.steps {
            self.session.check_interrupted()?;
            let Some(filled) = self.fill(step, &before, &rows) else { return Ok(None) };
            self.note(rows.count);
            let started = self.noted.as_ref().map(|_| Instant::now());
            let next = match (&step.table.temporary, step.key.is_empty()) {
                (Some(held), _) => whole(step, held, &filled),
                (None, false) => self.look_up(step, &rows, &filled)?,
                (None, true) => self.scan(step, &rows, &filled)?,
            };
            let Some(next) = next else { return Ok(None) };
            rows = next;
            self.note_more(|step| {
                step.rows = rows.count;
                step.time = started.map(|started| started.elapsed()).unwrap_or_default();
            });
        }
        Ok(Some(rows))
    }

    fn note(&self, rows_before: usize) {
        if let Some(noted) = &self.noted {
            let (rows, time) = (0, Duration::ZERO);
            noted.borrow_mut().push(StepRead { rows_before, keys: 0, scan: None, rows, time });
        }
    }

    /// Adds to the record of the table being read.
    fn note_more(&self, say: impl FnOnce(&mut StepRead)) {
        if let Some(noted) = &self.noted
            && let Some(step) = noted.borrow_mut().last_mut()
        {
            say(step);
        }
    }

    /// The filled tests of each joined row, row by row.
    fn fill(
        &self,
        step: &JoinStep,
        before: &[Arc<[i128]>],
        rows: &ChainRows,
    ) -> Option<Vec<Filled>> {
        let constants: Option<Vec<Option<Filled>>> =
            step.tests.iter().map(|test| self.constant(test, before)).collect();
        let constants = constants?;
        let mut filled = Vec::with_capacity(rows.count * constants.len());
        for row in rows.iter() {
            for (test, constant) in step.tests.iter().zip(&constants) {
                filled.push(match (constant, test.with) {
                    (Some(constant), _) => constant.clone(),
                    (None, Comparand::Slot(comparison, slot, added)) => {
                        self.slot(comparison, row.get(slot)?, added)?
                    }
                    (None, _) => return None,
                });
            }
        }
        Some(filled)
    }

    /// A test's value that holds for all rows; the inner `None` if it depends on the row.
    fn constant(&self, test: &JoinTest, before: &[Arc<[i128]>]) -> Option<Option<Filled>> {
        Some(match test.with {
            Comparand::Constant(comparison, group) => {
                let fitted = fit(test.comparable, &self.constants.one(group))?;
                Some(fitted.map_or(Filled::Never, |number| Filled::Compare(comparison, number)))
            }
            Comparand::List(group) => {
                let literals = self.constants.group(group).iter();
                let fitted =
                    literals.map(|literal| fit(test.comparable, &self.constants.constant(literal)));
                let numbers: BTreeSet<i128> =
                    fitted.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
                Some(Filled::OneOf(numbers.into_iter().collect()))
            }
            Comparand::Before(chain) => Some(Filled::OneOf(Arc::clone(before.get(chain)?))),
            Comparand::Slot(..) => None,
        })
    }

    /// A comparison with a value of the row; `None` if MySQL might report an error.
    fn slot(
        &self,
        comparison: Comparison,
        value: &Value,
        added: Option<LiteralOffset>,
    ) -> Option<Filled> {
        let Some(mut number) = number(value) else { return Some(Filled::Never) };
        if let Some(LiteralOffset { subtracted, literal }) = added {
            let added = match self.constants.one(literal) {
                Constant::Integer(added) => i64::try_from(added).ok()?,
                Constant::Null => return Some(Filled::Never),
                _ => return None,
            };
            number += if subtracted { -i128::from(added) } else { i128::from(added) };
            i64::try_from(number).ok()?;
        }
        Some(Filled::Compare(comparison, number))
    }

    /// Looks up the rows of a table whose whole keys are known.
    fn look_up(
        &self,
        step: &JoinStep,
        rows: &ChainRows,
        filled: &[Filled],
    ) -> Result<Option<ChainRows>> {
        let (mut keys, mut of_row): (Vec<KeyValues>, Vec<usize>) = (Vec::new(), Vec::new());
        for (row, tests) in filled_rows(step, rows, filled).enumerate() {
            if push_keys(step, tests, &mut keys).is_none() {
                return Ok(None);
            }
            of_row.resize(keys.len(), row);
        }
        self.note_more(|step| step.keys = keys.len());
        let mut found: Vec<(usize, Vec<Value>)> = Vec::new();
        let table = &step.table.engine_name;
        self.reader
            .get_many(table, &keys, &step.fields, &mut |place, values| {
                let row = of_row.get(place).copied().unwrap_or_default();
                let tests = filled_row(step, filled, row);
                let holds = step.tests.iter().zip(tests).all(|(test, filled)| {
                    values.get(test.field).is_some_and(|value| filled.holds(value))
                });
                if holds {
                    found.push((place, std::mem::take(values)));
                }
                Ok(())
            })
            .map_err(|error| from_engine(&error))?;
        found.sort_unstable_by_key(|(place, _)| *place);
        let mut next = ChainRows { width: rows.width + step.fields.len(), ..ChainRows::default() };
        for (place, values) in found {
            let row = of_row.get(place).copied().unwrap_or_default();
            next.push(rows, row, values);
        }
        Ok(Some(next))
    }

    /// Scans a table by leading key columns, once for each joined row.
    fn scan(
        &self,
        step: &JoinStep,
        rows: &ChainRows,
        filled: &[Filled],
    ) -> Result<Option<ChainRows>> {
        let mut next = ChainRows { width: rows.width + step.fields.len(), ..ChainRows::default() };
        if rows.count > MAX_SCANS {
            return Ok(None);
        }
        for (row, tests) in filled_rows(step, rows, filled).enumerate() {
            if tests.iter().any(|filled| matches!(filled, Filled::Never)) {
                continue;
            }
            let filters = step.tests.iter().zip(tests);
            let request = ScanRequest {
                table: step.table.engine_name.clone(),
                filter: Some(Filter::And(filters.map(|(test, it)| it.filter(test)).collect())),
                columns: step.fields.clone(),
                batch_rows: BATCH_ROWS,
                ..ScanRequest::default()
            };
            self.note_more(|step| {
                step.scan.get_or_insert_with(|| request.clone());
            });
            let scan = self.reader.scan(request).map_err(|error| from_engine(&error))?;
            if next.count as u64 + scan.rows() > MAX_ROWS as u64 {
                return Ok(None);
            }
            for batch in scan {
                let batch = batch.map_err(|error| from_engine(&error))?;
                for at in 0..batch.rows {
                    next.push(rows, row, batch.columns.iter().map(|column| column.value(at)));
                }
            }
        }
        Ok(Some(next))
    }
}

impl ChainRows {
    /// Appends a joined row: row `row` of `before`, followed by `values`.
    fn push(&mut self, before: &ChainRows, row: usize, values: impl IntoIterator<Item = Value>) {
        let start = row * before.width;
        let old = before.values.get(start..start + before.width).unwrap_or_default();
        self.values.extend_from_slice(old);
        self.values.extend(values);
        self.count += 1;
    }
}

impl Filled {
    fn holds(&self, value: &Value) -> bool {
        let Some(number) = number(value) else { return false };
        match self {
            Self::Compare(comparison, other) => comparison.holds(number, *other),
            Self::OneOf(numbers) => numbers.binary_search(&number).is_ok(),
            Self::Never => false,
        }
    }

    /// The test as an engine filter.
    fn filter(&self, test: &JoinTest) -> Filter {
        let value = |number: i128| test.comparable.fit(&Constant::Integer(number));
        match self {
            Self::Compare(comparison, number) => {
                let fitted = value(*number).unwrap_or(Fitted::Null);
                test.operand.compare(*comparison, fitted)
            }
            Self::OneOf(numbers) => {
                let values = numbers.iter().filter_map(|number| match value(*number) {
                    Some(Fitted::Value(value)) => Some(Literal::Value(value)),
                    _ => None,
                });
                Filter::In(test.operand.name.clone(), values.collect())
            }
            Self::Never => Filter::In(test.operand.name.clone(), Vec::new()),
        }
    }

    /// The numbers that the slot must equal.
    fn numbers(&self) -> &[i128] {
        match self {
            Self::Compare(_, number) => std::slice::from_ref(number),
            Self::OneOf(numbers) => numbers,
            Self::Never => &[],
        }
    }
}

/// The rows of a temporary table, which is read first; `None` if there are too many.
fn whole(step: &JoinStep, held: &Overlay, filled: &[Filled]) -> Option<ChainRows> {
    if held.row_count() > MAX_ROWS {
        return None;
    }
    let mut rows = ChainRows { width: step.fields.len(), ..ChainRows::default() };
    for row in held.rows() {
        let value = |field: &usize| row.get(*field).unwrap_or(&Value::Null);
        let holds = |(test, filled): (&JoinTest, &Filled)| {
            step.fields.get(test.field).is_some_and(|field| filled.holds(value(field)))
        };
        if step.tests.iter().zip(filled).all(holds) {
            rows.values.extend(step.fields.iter().map(|field| value(field).clone()));
            rows.count += 1;
        }
    }
    Some(rows)
}

/// The filled tests of each row.
fn filled_rows<'f>(
    step: &JoinStep,
    rows: &ChainRows,
    filled: &'f [Filled],
) -> impl Iterator<Item = &'f [Filled]> {
    let width = step.tests.len();
    (0..rows.count).map(move |row| filled.get(row * width..(row + 1) * width).unwrap_or_default())
}

fn filled_row<'f>(step: &JoinStep, filled: &'f [Filled], row: usize) -> &'f [Filled] {
    let width = step.tests.len();
    filled.get(row * width..(row + 1) * width).unwrap_or_default()
}

/// Appends the keys that the tests of a row name; `None` if there are too many.
fn push_keys(step: &JoinStep, tests: &[Filled], keys: &mut Vec<KeyValues>) -> Option<()> {
    let mut made = vec![KeyValues::new()];
    for &test in &step.key {
        let (test, filled) = (step.tests.get(test)?, tests.get(test)?);
        let values = filled.numbers().iter().filter_map(|number| {
            match test.comparable.fit(&Constant::Integer(*number)) {
                Some(Fitted::Value(value)) => Some(value),
                _ => None,
            }
        });
        let values: Vec<Value> = values.collect();
        if made.len().saturating_mul(values.len()) + keys.len() > MAX_ROWS {
            return None;
        }
        let longer = made.iter().flat_map(|key| {
            values.iter().map(|value| {
                let mut key = key.clone();
                key.push(value.clone());
                key
            })
        });
        made = longer.collect();
    }
    keys.append(&mut made);
    Some(())
}

/// A literal as a number that compares equally with the column; the inner `None` for NULL, the outer if it needs a
/// conversion.
fn fit(comparable: Comparable, constant: &Constant<'_>) -> Option<Option<i128>> {
    Some(match comparable.fit(constant)? {
        Fitted::Value(value) => number(&value),
        Fitted::Below => Some(i128::MIN),
        Fitted::Above => Some(i128::MAX),
        Fitted::Null => None,
    })
}

/// An integer.
fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some((*number).into()),
        Value::Uint(number) => Some((*number).into()),
        _ => None,
    }
}
