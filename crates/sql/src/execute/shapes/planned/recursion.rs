//! Recursive common table expressions in cached plans. Their rows come in the order that `plan/recursion.rs` describes: a
//! block runs over the rows behind its place until it has read all, then the next block does.

use std::{mem, sync::Arc, time::Instant};

use datafusion::{
    arrow::{
        array::{BooleanArray, RecordBatch},
        compute::filter_record_batch,
        datatypes::SchemaRef,
        row::{RowConverter, SortField},
    },
    error::Result as PlanResult,
};
use rustc_hash::FxHashSet;

use super::{
    expressions::{BatchExpression, all_evaluated},
    planned_run::{PlannedRun, SLICE},
    read::PlanReader,
    tree::CachedRecursion,
};
use crate::scan::joined as one_batch;

impl CachedRecursion {
    /// All rows; `None` if that exceeds the limits, one of which is the number of rounds: the general path reports it.
    pub(super) fn rows(&self, reading: &mut PlanReader<'_>) -> PlanResult<Option<RecordBatch>> {
        let started = Instant::now();
        let asked = reading.asked();
        let most_bytes = asked.most().bytes;
        let mut seen = SeenRows::of(self.keys.as_ref(), &self.schema)?;
        let mut blocks: Vec<UnreadRows> =
            self.blocks.iter().map(|_| UnreadRows::default()).collect();
        let (mut all, mut bytes, mut turn) = (Vec::new(), 0, 0);
        let mut made = reading.part(&self.first)?;
        loop {
            let Some(batch) = made.and_then(|batch| self.as_row_type(&batch)) else {
                return Ok(None);
            };
            let batch = match &mut seen {
                Some(seen) => seen.new_rows(batch, asked)?,
                None => batch,
            };
            if batch.num_rows() > 0 {
                bytes += batch.get_array_memory_size();
                blocks.iter_mut().for_each(|block| block.batches.push(batch.clone()));
                all.push(batch);
            }
            let from = turn;
            let mut order = (0..blocks.len()).map(|step| (from + step) % blocks.len());
            let is_unread = |at: &usize| blocks.get(*at).is_some_and(|it| !it.batches.is_empty());
            let Some(next) = order.find(is_unread) else { break };
            turn = next;
            let (Some(unread), Some(block)) = (blocks.get_mut(turn), self.blocks.get(turn)) else {
                return Ok(None);
            };
            unread.rounds += 1;
            let is_long = !asked.is_aside && started.elapsed() > SLICE;
            if unread.rounds > asked.context.most_recursion_rounds || bytes > most_bytes || is_long
            {
                return Ok(None);
            }
            asked.check()?;
            reading
                .begin_round(self.number, one_batch(&self.schema, mem::take(&mut unread.batches))?);
            made = reading.part(block)?;
        }
        one_batch(&self.schema, all).map(Some)
    }

    /// The rows of a part as rows of the expression; `None` if they are not.
    fn as_row_type(&self, batch: &RecordBatch) -> Option<RecordBatch> {
        RecordBatch::try_new(Arc::clone(&self.schema), batch.columns().to_vec()).ok()
    }
}

/// The rows that a block has not read, and the number of its rounds.
#[derive(Default)]
struct UnreadRows {
    batches: Vec<RecordBatch>,
    rounds: u64,
}

/// The distinct rows so far.
struct SeenRows {
    keys: Arc<[BatchExpression]>,
    converter: RowConverter,
    known: FxHashSet<Box<[u8]>>,
}

impl SeenRows {
    fn of(keys: Option<&Arc<[BatchExpression]>>, schema: &SchemaRef) -> PlanResult<Option<Self>> {
        let Some(keys) = keys else { return Ok(None) };
        let fields = keys.iter().map(|key| Ok(SortField::new(key.data_type(schema)?)));
        let converter = RowConverter::new(fields.collect::<PlanResult<_>>()?)?;
        Ok(Some(Self { keys: Arc::clone(keys), converter, known: FxHashSet::default() }))
    }

    /// The rows that were not there before.
    fn new_rows(&mut self, batch: RecordBatch, asked: &PlannedRun) -> PlanResult<RecordBatch> {
        let keys = all_evaluated(&self.keys, &batch, asked.asked())?;
        let rows = self.converter.convert_columns(&keys)?;
        let is_new: BooleanArray =
            rows.iter().map(|row| Some(self.known.insert(row.data().into()))).collect();
        if is_new.true_count() == batch.num_rows() {
            return Ok(batch);
        }
        Ok(filter_record_batch(&batch, &is_new)?)
    }
}
