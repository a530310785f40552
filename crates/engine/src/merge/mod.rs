//! Background merges: few segments however small the batches are.
//!
//! Two threads merge, one what takes milliseconds and one the rest, so that a long merge does not
//! let the small segments of a stream of writes pile up; a writer that would wait for them does what
//! is quick itself. A merge reads segments that it has claimed, without any lock; when it is done it
//! replaces them by its output in one step, with the documents deleted that were deleted meanwhile.

mod checkpoint;
mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use remora_index::{
    Bitmap,
    segment::{MergeInput, Segment, merge},
};

use crate::{
    Error, Position, Result, Schema,
    indexing::segment_spec,
    shared::{DatabaseState, PoisonOnPanic},
    snapshot::{Claim, Claims, SegmentView, Snapshot, TableView},
    storage::manifest::SegmentRecord,
};

pub(crate) use checkpoint::{CHANGE_BYTES, checkpoint, write_recovered};
pub(crate) use plan::{Limit, Size, is_crowded, is_merge_due, tier};

/// How long a thread sleeps when nobody wakes it.
const IDLE: Duration = Duration::from_secs(1);
/// How long after a failed checkpoint the next one is tried.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(5);

/// Without a batch for so long a database is idle.
const QUIET: Duration = Duration::from_secs(5);

/// Since when no batch was written.
struct Quiet {
    position: Position,
    since: Instant,
}

impl Quiet {
    /// Which of the large merges are to be done at `now`.
    fn size(&mut self, position: Position, now: Instant) -> Size {
        if position != self.position {
            *self = Self { position, since: now };
        }
        if now - self.since >= QUIET { Size::Idle } else { Size::Large }
    }
}

/// Merges until writes stop.
pub(crate) fn run_small(shared: &DatabaseState) {
    let _guard = PoisonOnPanic(shared, "small merge");
    while shared.published.stopped().is_none() {
        let limit = Limit::of(&shared.options);
        let due =
            |current: &Snapshot, claims: &Claims<'_>| find(current, claims, Size::Small, &limit);
        shared
            .published
            .wait_for_work(Instant::now() + IDLE, |current, claims| due(current, claims).is_some());
        merge_next(shared, Size::Small);
    }
}

/// Merges and checkpoints until writes stop.
pub(crate) fn run_large(shared: &DatabaseState) {
    let _guard = PoisonOnPanic(shared, "large merge");
    let mut retry = Instant::now();
    let mut quiet = Quiet { position: shared.published.load().position, since: retry };
    while shared.published.stopped().is_none() {
        let size = quiet.size(shared.published.load().position, Instant::now());
        shared.published.wait_for_work(Instant::now() + IDLE, |current, claims| {
            (is_checkpoint_due(shared) && retry <= Instant::now())
                || find(current, claims, size, &Limit::of(&shared.options)).is_some()
        });
        if is_checkpoint_due(shared) && retry <= Instant::now() && !try_checkpoint(shared) {
            retry = Instant::now() + CHECKPOINT_RETRY;
        }
        merge_next(shared, size);
    }
}

/// Merges what is quick to merge of those tables with these numbers that are crowded; false if there
/// is nothing. For a writer that waits: the threads may have more to do elsewhere.
pub(crate) fn relieve(shared: &DatabaseState, numbers: &BTreeSet<u32>) -> bool {
    merge_chosen(shared, |current, claims| {
        let limit = Limit::of(&shared.options);
        let tables = current.tables.values().filter(|table| numbers.contains(&table.number));
        choose(tables.filter(|table| is_crowded(table, &limit)), claims, Size::Relief, &limit)
    })
}

/// Merges all of a table's segments into one, or into as few as may be that large, and frees what
/// deletions left. Cost: the table's index is read and written once. A table that is not there is
/// left alone.
pub(crate) fn optimize(shared: &DatabaseState, table: &str) -> Result<()> {
    let Some(claim) = shared.published.claim_all(table)? else { return Ok(()) };
    let groups = plan::groups(&claim.views, &Limit::of(&shared.options));
    let is_done = |group: &Vec<SegmentView>| {
        group.len() <= 1 && group.iter().all(|view| view.deleted_count == 0)
    };
    let mut groups = groups.iter().filter(|group| !is_done(group));
    groups.try_for_each(|group| merge_inputs(shared, &claim.table, group))
}

/// One that failed is due whatever there is to save: it may have failed behind its manifest, and what is
/// told of it stands until one succeeds.
fn is_checkpoint_due(shared: &DatabaseState) -> bool {
    shared.unsaved_bytes.load(Ordering::Relaxed) >= shared.options.checkpoint_bytes
        || shared.checkpoint_failure.lock().is_some()
}

/// Whether the checkpoint succeeded. Without it everything stays in memory and in the log.
fn try_checkpoint(shared: &DatabaseState) -> bool {
    match checkpoint(shared) {
        Ok(()) | Err(Error::Closed | Error::Poisoned(_)) => true,
        Err(error) => {
            let directory = shared.directory.display();
            tracing::error!(%error, %directory, "checkpoint failed; nothing is lost, it is retried");
            false
        }
    }
}

/// A table and which of its segments are merged.
type Choice = (Arc<TableView>, Vec<usize>);

fn find(current: &Snapshot, claims: &Claims<'_>, size: Size, limit: &Limit) -> Option<Choice> {
    choose(current.tables.values(), claims, size, limit)
}

fn choose<'t>(
    mut tables: impl Iterator<Item = &'t Arc<TableView>>,
    claims: &Claims<'_>,
    size: Size,
    limit: &Limit,
) -> Option<Choice> {
    tables.find_map(|table| {
        plan::plan(table, claims, size, limit).map(|chosen| (Arc::clone(table), chosen))
    })
}

fn merge_next(shared: &DatabaseState, size: Size) {
    let limit = Limit::of(&shared.options);
    merge_chosen(shared, |current, claims| find(current, claims, size, &limit));
}

/// Merges what is chosen; false if nothing was.
fn merge_chosen(
    shared: &DatabaseState,
    choose: impl FnOnce(&Snapshot, &Claims<'_>) -> Option<Choice>,
) -> bool {
    let Some(claim) = shared.published.claim(choose) else { return false };
    // Kept and told there. Neither other tables nor this one's other segments suffer.
    let _ = merge_claimed(shared, &claim);
    true
}

/// What is told of a merge that failed.
pub(crate) fn failure_of(table: &str, why: &str) -> String {
    format!("a merge of table {table:?} failed, and is tried again: {why}")
}

fn merge_claimed(shared: &DatabaseState, claim: &Claim<'_>) -> Result<()> {
    merge_inputs(shared, &claim.table, &claim.views)
}

/// Merges claimed segments of a table into one.
fn merge_inputs(shared: &DatabaseState, table: &TableView, inputs: &[SegmentView]) -> Result<()> {
    shared.merging.fetch_add(1, Ordering::Relaxed);
    let merged = merge_views(&table.schema, inputs);
    shared.merging.fetch_sub(1, Ordering::Relaxed);
    let output = merged.inspect_err(|error| {
        let (why, name) = (in_files(shared, inputs, error), &table.schema.name);
        if table.activity.merge_failed(why.clone(), inputs, Instant::now()) {
            let directory = shared.directory.display();
            tracing::error!(%directory, "{}", failure_of(name, &why));
        }
    })?;
    let bytes = output.as_ref().map_or(0, |segment| segment.byte_count());
    table.activity.merged(inputs);
    shared.published.update(|current| replace(current, table.number, inputs, output));
    shared.unsaved_bytes.fetch_add(bytes, Ordering::Relaxed);
    Ok(())
}

/// The error, with the files that hold what was to be merged.
fn in_files(shared: &DatabaseState, inputs: &[SegmentView], error: &Error) -> String {
    // A checkpoint may hold them for long: then the error must do alone.
    let files = shared.files.try_lock();
    let files = files.iter().filter_map(|files| files.as_ref());
    let paths = files.flat_map(|files| {
        let record = |view: &SegmentView| files.record_of(&view.segment);
        let path = |record: &SegmentRecord| files.path(record.file).display().to_string();
        inputs.iter().filter_map(record).map(path).collect::<Vec<_>>()
    });
    let paths: Vec<String> = paths.collect();
    match paths.is_empty() {
        true => error.to_string(),
        false => format!("{error}, in one of {}", paths.join(", ")),
    }
}

/// One segment with the live documents of `views`; `None` if there are none.
pub(crate) fn merge_views(schema: &Schema, views: &[SegmentView]) -> Result<Option<Arc<Segment>>> {
    if views.iter().all(|view| view.live_count() == 0) {
        return Ok(None);
    }
    let input = |view: &SegmentView| MergeInput {
        segment: Arc::clone(&view.segment),
        deleted: view.deleted.clone(),
    };
    let inputs: Vec<MergeInput> = views.iter().map(input).collect();
    Ok(Some(Arc::new(merge(&inputs, &segment_spec(schema))?)))
}

/// The snapshot with the merge's output in the place of its inputs; `None` if the table is gone.
fn replace(
    current: &Snapshot,
    number: u32,
    inputs: &[SegmentView],
    output: Option<Arc<Segment>>,
) -> Option<Snapshot> {
    let mut tables = current.tables.iter();
    let (name, table) = tables.find(|(_, table)| table.number == number)?;
    let is_input = |view: &SegmentView| inputs.iter().any(|input| input.is_of(&view.segment));
    let place = table.segments.iter().position(is_input).unwrap_or(table.segments.len());
    let mut segments = table.segments.clone();
    segments.retain(|view| !is_input(view));
    if let Some(output) = output {
        let deleted = deleted_meanwhile(table, inputs, &output);
        let view = SegmentView::new(output, Some(deleted), &table.schema);
        if view.live_count() > 0 {
            segments.insert(place.min(segments.len()), view);
        }
    }
    let mut tables = current.tables.clone();
    tables.insert(Arc::clone(name), Arc::new(TableView { segments, ..TableView::clone(table) }));
    Some(current.with_tables(tables))
}

/// Those of the output's documents that were deleted in the inputs since they were claimed.
fn deleted_meanwhile(table: &TableView, inputs: &[SegmentView], output: &Segment) -> Bitmap {
    let mut deleted = Bitmap::new(output.doc_count());
    let mut key = Vec::new();
    for input in inputs {
        let mut gone = match table.segments.iter().find(|view| view.is_of(&input.segment)) {
            Some(now) => match &now.deleted {
                Some(deleted) => Bitmap::clone(deleted),
                None => continue,
            },
            // The writer dropped it: no document of it is live any more.
            None => Bitmap::full(input.segment.doc_count()),
        };
        input.deleted.iter().for_each(|before| gone.subtract(before));
        for doc in gone.iter() {
            key.clear();
            input.segment.keys().read(doc, &mut key);
            if let Some(doc) = output.keys().find(&key) {
                deleted.insert(doc);
            }
        }
    }
    deleted
}
