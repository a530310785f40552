//! Joins of two batches.

use std::hash::Hash;

use datafusion::{
    arrow::{
        array::{
            Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, UInt32Array,
            UInt64Array,
        },
        compute::take,
        datatypes::{DataType, Int64Type, UInt64Type},
        row::{RowConverter, Rows, SortField},
    },
    common::{JoinSide, JoinType, exec_err},
    error::Result as PlanResult,
};
use rustc_hash::FxHashMap;

use super::{
    expressions::{FunctionContext, all_evaluated, evaluated, of_columns},
    tree::{Join, PlanSide, Residual},
};

/// The row numbers of matching pairs, in the order of the side that was read first.
struct Pairs {
    left: Vec<u32>,
    right: Vec<u32>,
}

/// The row numbers of both sides in the result; `None` within an array stands for NULLs.
struct JoinedRows {
    left: Option<UInt32Array>,
    right: Option<UInt32Array>,
    mark: Option<BooleanArray>,
}

/// Joins two batches, in the row order of the side `first`; `None` if there are more than about `most` pairs.
pub(super) fn joined(
    join: &Join,
    (left, right): (&RecordBatch, &RecordBatch),
    first: PlanSide,
    most: usize,
    asked: FunctionContext<'_>,
) -> PlanResult<Option<RecordBatch>> {
    let (mut left_keys, mut right_keys) = (Vec::new(), Vec::new());
    for (of_left, of_right) in &join.on {
        left_keys.push(evaluated(of_left, left, asked)?);
        right_keys.push(evaluated(of_right, right, asked)?);
    }
    let rows = (left.num_rows(), right.num_rows());
    let pairs = match first {
        PlanSide::Left => pairs((&left_keys, rows.0), (&right_keys, rows.1), most)?
            .map(|(left, right)| Pairs { left, right }),
        PlanSide::Right => pairs((&right_keys, rows.1), (&left_keys, rows.0), most)?
            .map(|(right, left)| Pairs { left, right }),
    };
    let Some(mut pairs) = pairs else { return Ok(None) };
    if let Some(filter) = &join.filter {
        pairs = pairs.that_hold(filter, (left, right), asked)?;
    }
    let chosen = pairs.chosen(join.kind, rows)?;
    let mut columns = columns_of(left, chosen.left.as_ref())?;
    columns.extend(columns_of(right, chosen.right.as_ref())?);
    let rows = chosen.left.as_ref().or(chosen.right.as_ref()).map_or(0, Array::len);
    columns.extend(chosen.mark.map(|mark| std::sync::Arc::new(mark) as ArrayRef));
    if let Some(projection) = &join.projection {
        columns = projection.iter().filter_map(|place| columns.get(*place).cloned()).collect();
    }
    of_columns(&join.schema, columns, rows).map(Some)
}

/// Pairs of rows with equal keys, by a hash table over `other`; `None` if there are too many. NULL matches nothing.
fn pairs(
    (first_keys, first_rows): (&[ArrayRef], usize),
    (other_keys, other_rows): (&[ArrayRef], usize),
    most: usize,
) -> PlanResult<Option<(Vec<u32>, Vec<u32>)>> {
    if first_keys.is_empty() {
        if first_rows.saturating_mul(other_rows) > most {
            return Ok(None);
        }
        let (mut first, mut other) = (Vec::new(), Vec::new());
        for row in 0..first_rows as u32 {
            first.extend(std::iter::repeat_n(row, other_rows));
            other.extend(0..other_rows as u32);
        }
        return Ok(Some((first, other)));
    }
    if let ([of_first], [of_other]) = (first_keys, other_keys)
        && of_first.data_type() == of_other.data_type()
        && let (Some(sought), Some(held)) = (Integers::of(of_first), Integers::of(of_other))
    {
        let held = JoinHashTable::new(other_rows, |row| held.get(row));
        return Ok(held.pairs(first_rows, |row| sought.get(row), most));
    }
    let fields = first_keys.iter().map(|key| SortField::new(key.data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    let (sought, held) =
        (converter.convert_columns(first_keys)?, converter.convert_columns(other_keys)?);
    let held = JoinHashTable::new(other_rows, |row| key(&held, other_keys, row));
    Ok(held.pairs(first_rows, |row| key(&sought, first_keys, row), most))
}

/// The key of a row; `None` if a part of it is NULL.
fn key<'r>(rows: &'r Rows, keys: &[ArrayRef], row: usize) -> Option<&'r [u8]> {
    keys.iter().all(|key| key.is_valid(row)).then(|| rows.row(row).data())
}

/// A column of integers, or of what is held as such.
pub(super) enum Integers<'a> {
    Signed(&'a Int64Array),
    Unsigned(&'a UInt64Array),
}

impl<'a> Integers<'a> {
    /// The column; `None` if it holds something else.
    pub(super) fn of(column: &'a ArrayRef) -> Option<Self> {
        let signed = column.as_primitive_opt::<Int64Type>().map(Self::Signed);
        signed.or_else(|| column.as_primitive_opt::<UInt64Type>().map(Self::Unsigned))
    }

    /// The bits of a row's number; `None` if it is NULL.
    pub(super) fn get(&self, row: usize) -> Option<u64> {
        match self {
            Self::Signed(column) => column.is_valid(row).then(|| column.value(row).cast_unsigned()),
            Self::Unsigned(column) => column.is_valid(row).then(|| column.value(row)),
        }
    }
}

/// A hash table of one side: its rows by key.
struct JoinHashTable<K> {
    firsts: FxHashMap<K, u32>,
    /// For each row, the next row with the same key.
    next: Vec<u32>,
}

/// Ends a chain of rows.
const END: u32 = u32::MAX;

impl<K: Eq + Hash> JoinHashTable<K> {
    /// The rows that have a key.
    fn new(count: usize, key: impl Fn(usize) -> Option<K>) -> Self {
        let mut held = Self { firsts: FxHashMap::default(), next: vec![END; count] };
        held.firsts.reserve(count);
        // Backwards, so that the rows of each chain ascend.
        for row in (0..count).rev() {
            let after = key(row).and_then(|key| held.firsts.insert(key, row as u32));
            if let (Some(after), Some(next)) = (after, held.next.get_mut(row)) {
                *next = after;
            }
        }
        held
    }

    fn rows_of(&self, key: &K) -> impl Iterator<Item = u32> {
        let first = self.firsts.get(key).copied();
        std::iter::successors(first, |row| {
            self.next.get(*row as usize).copied().filter(|next| *next != END)
        })
    }

    /// Pairs of each of the `first` rows of the other side with the rows of the same key; `None` if there are too many.
    fn pairs(
        &self,
        first: usize,
        key: impl Fn(usize) -> Option<K>,
        most: usize,
    ) -> Option<(Vec<u32>, Vec<u32>)> {
        let (mut firsts, mut others) = (Vec::new(), Vec::new());
        for row in 0..first {
            let Some(key) = key(row) else { continue };
            for same in self.rows_of(&key) {
                firsts.push(row as u32);
                others.push(same);
            }
            if firsts.len() > most {
                return None;
            }
        }
        Some((firsts, others))
    }
}

impl Pairs {
    /// The pairs for which the residual condition is true.
    fn that_hold(
        self,
        filter: &Residual,
        (left, right): (&RecordBatch, &RecordBatch),
        asked: FunctionContext<'_>,
    ) -> PlanResult<Self> {
        let count = self.left.len();
        // The condition is not evaluated for no rows: that might raise an error.
        if count == 0 {
            return Ok(self);
        }
        let (of_left, of_right) =
            (UInt32Array::from(self.left.clone()), UInt32Array::from(self.right.clone()));
        let mut columns = Vec::with_capacity(filter.columns.len());
        for (side, place) in &filter.columns {
            columns.push(match side {
                JoinSide::Left => take(left.column(*place), &of_left, None)?,
                JoinSide::Right => take(right.column(*place), &of_right, None)?,
                JoinSide::None => return exec_err!("a column is of no side"),
            });
        }
        let batch = of_columns(&filter.schema, columns, count)?;
        let holds = all_evaluated(std::slice::from_ref(&filter.condition), &batch, asked)?;
        let Some(holds) = holds.first().filter(|it| *it.data_type() == DataType::Boolean) else {
            return exec_err!("a condition is none");
        };
        let holds = holds.as_boolean();
        let kept = |rows: &[u32]| {
            let kept = rows.iter().enumerate();
            let kept = kept.filter(|(at, _)| holds.is_valid(*at) && holds.value(*at));
            kept.map(|(_, row)| *row).collect()
        };
        Ok(Self { left: kept(&self.left), right: kept(&self.right) })
    }

    /// The result rows for this kind of join.
    fn chosen(self, kind: JoinType, (left, right): (usize, usize)) -> PlanResult<JoinedRows> {
        let Self { left: of_left, right: of_right } = self;
        let only_left =
            |rows: Vec<u32>, mark| JoinedRows { left: Some(rows.into()), right: None, mark };
        let only_right =
            |rows: Vec<u32>, mark| JoinedRows { left: None, right: Some(rows.into()), mark };
        Ok(match kind {
            JoinType::Inner => {
                JoinedRows { left: Some(of_left.into()), right: Some(of_right.into()), mark: None }
            }
            JoinType::Left => {
                let (of_left, of_right) = with_unmatched(&of_left, &of_right, left);
                JoinedRows { left: Some(of_left.into()), right: Some(of_right.into()), mark: None }
            }
            JoinType::Right => {
                let (of_right, of_left) = with_unmatched(&of_right, &of_left, right);
                JoinedRows { left: Some(of_left.into()), right: Some(of_right.into()), mark: None }
            }
            JoinType::LeftSemi => only_left(those(&matched(&of_left, left), true), None),
            JoinType::LeftAnti => only_left(those(&matched(&of_left, left), false), None),
            JoinType::LeftMark => {
                only_left((0..left as u32).collect(), Some(matched(&of_left, left).into()))
            }
            JoinType::RightSemi => only_right(those(&matched(&of_right, right), true), None),
            JoinType::RightAnti => only_right(those(&matched(&of_right, right), false), None),
            JoinType::RightMark => {
                only_right((0..right as u32).collect(), Some(matched(&of_right, right).into()))
            }
            JoinType::Full => return exec_err!("a full join is not made here"),
        })
    }
}

/// For each of `count` rows, whether it is in `rows`.
fn matched(rows: &[u32], count: usize) -> Vec<bool> {
    let mut matched = vec![false; count];
    for row in rows {
        if let Some(matched) = matched.get_mut(*row as usize) {
            *matched = true;
        }
    }
    matched
}

/// The rows that are matched, or those that are not.
fn those(matched: &[bool], wanted: bool) -> Vec<u32> {
    let rows = matched.iter().enumerate().filter(|(_, matched)| **matched == wanted);
    rows.map(|(row, _)| row as u32).collect()
}

/// The pairs, plus each unmatched row of the first side with `None`. The pairs are in the order of the first side.
fn with_unmatched(first: &[u32], other: &[u32], count: usize) -> (Vec<u32>, Vec<Option<u32>>) {
    let (mut rows, mut others) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut pairs = first.iter().zip(other).peekable();
    for row in 0..count as u32 {
        let before = rows.len();
        while let Some((_, other)) = pairs.next_if(|(first, _)| **first == row) {
            rows.push(row);
            others.push(Some(*other));
        }
        if rows.len() == before {
            rows.push(row);
            others.push(None);
        }
    }
    (rows, others)
}

fn columns_of(batch: &RecordBatch, rows: Option<&UInt32Array>) -> PlanResult<Vec<ArrayRef>> {
    let Some(rows) = rows else { return Ok(Vec::new()) };
    batch.columns().iter().map(|column| Ok(take(column, rows, None)?)).collect()
}
