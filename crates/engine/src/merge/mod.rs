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
    collections::{BTreeSet, HashMap},
    panic::resume_unwind,
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use remora_index::{
    Bitmap,
    paths::PathPart,
    segment::{MergeInput, Segment, merge},
};

use crate::{
    Error, Position, Result, Schema,
    indexing::{missing_paths, segment_spec},
    shared::{DatabaseState, PoisonOnPanic},
    snapshot::{Claim, Claims, SegmentView, Snapshot, TableView},
    storage::{manifest::SegmentRecord, rows::RowReader},
};

pub(crate) use checkpoint::{CHANGE_BYTES, checkpoint, write_recovered};
pub(crate) use plan::{Limit, Size, is_crowded, is_merge_due, tier};

/// From so many bytes on a merge has a thread of its own.
const OWN_THREAD_BYTES: u64 = 1 << 20;
/// How long a thread sleeps when nobody wakes it.
const IDLE: Duration = Duration::from_secs(1);
/// How long after a failed checkpoint the next one is tried.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(5);

/// A table that nothing was written to for so long is quiet.
const QUIET: Duration = Duration::from_secs(5);

/// Since when no row of each table was changed.
#[derive(Default)]
struct Quiet(HashMap<u32, (Position, Instant)>);

impl Quiet {
    /// Takes note of the tables at `now`.
    fn look(&mut self, tables: impl Iterator<Item = (u32, Position)>, now: Instant) {
        let before = std::mem::take(&mut self.0);
        self.0.extend(tables.map(|(number, changed)| {
            let since = before.get(&number).filter(|(position, _)| *position == changed);
            (number, (changed, since.map_or(now, |(_, since)| *since)))
        }));
    }

    /// Whether all tables are quiet at `now`.
    fn is_everywhere(&self, now: Instant) -> bool {
        self.0.values().all(|(_, since)| now - *since >= QUIET)
    }

    /// Which of a table's large merges are to be done at `now`.
    fn size(&self, (number, changed): (u32, Position), now: Instant) -> Size {
        let since = self.0.get(&number).filter(|(position, _)| *position == changed);
        match since {
            Some((_, since)) if now - *since >= QUIET => Size::Idle,
            _ => Size::Large,
        }
    }
}

/// Merges until writes stop.
pub(crate) fn run_small(shared: &DatabaseState) {
    let _guard = PoisonOnPanic(shared, "small merge");
    while shared.published.stopped().is_none() {
        let limit = Limit::of(&shared.options);
        let find = |current: &Snapshot, claims: &Claims<'_>| {
            choose(current.tables.values(), claims, Size::Small, &limit)
        };
        shared.published.wait_for_work(Instant::now() + IDLE, |current, claims| {
            find(current, claims).is_some()
        });
        merge_chosen(shared, find);
    }
}

/// Merges and checkpoints until writes stop.
pub(crate) fn run_large(shared: &DatabaseState) {
    let _guard = PoisonOnPanic(shared, "large merge");
    let mut retry = Instant::now();
    let mut quiet = Quiet::default();
    let mut flushed = shared.published.load().position;
    while shared.published.stopped().is_none() {
        let limit = Limit::of(&shared.options);
        let now = Instant::now();
        let current = shared.published.load();
        quiet.look(current.tables.values().map(|table| (table.number, table.changed)), now);
        if current.position != flushed && quiet.is_everywhere(now) {
            flushed = current.position;
            flush(shared);
        }
        drop(current);
        let find = |current: &Snapshot, claims: &Claims<'_>| {
            current.tables.values().find_map(|table| {
                let size = quiet.size((table.number, table.changed), now);
                choose(std::iter::once(table), claims, size, &limit)
            })
        };
        shared.published.wait_for_work(Instant::now() + IDLE, |current, claims| {
            (is_checkpoint_due(shared) && retry <= Instant::now())
                || find(current, claims).is_some()
        });
        if is_checkpoint_due(shared) && retry <= Instant::now() && !try_checkpoint(shared) {
            retry = Instant::now() + CHECKPOINT_RETRY;
        }
        merge_chosen(shared, find);
    }
}

/// Has the store move what it holds in memory to files: there it takes half as much, and a start replays less.
fn flush(shared: &DatabaseState) {
    let flushed = shared.store().and_then(|store| store.flush(Instant::now()));
    if let Err(error) = flushed {
        // Nothing is lost, and who writes next is told of what stands in the way.
        tracing::debug!(%error, "the row store was not flushed while nothing was written");
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
    let merged = merge_aside(table, inputs);
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

/// The same as [`merge_views`]; of large segments in a thread that ends with it. What a thread has freed is kept for it
/// by the allocator, a few times the segments' size after a merge, and given back when it ends.
fn merge_aside(table: &TableView, views: &[SegmentView]) -> Result<Option<Arc<Segment>>> {
    let merge = || merge_views(&table.schema, views, Some(&*table.rows));
    let bytes: u64 = views.iter().map(SegmentView::bytes).sum();
    if bytes < OWN_THREAD_BYTES {
        return merge();
    }
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("remora-merging".to_owned());
        match builder.spawn_scoped(scope, merge) {
            Ok(merging) => merging.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => merge(),
        }
    })
}

/// One segment with the live documents of `views`; `None` if there are none. Without the `rows` of their moment a path
/// that one of them lacks is left out.
pub(crate) fn merge_views(
    schema: &Schema,
    views: &[SegmentView],
    rows: Option<&dyn RowReader>,
) -> Result<Option<Arc<Segment>>> {
    if views.iter().all(|view| view.live_count() == 0) {
        return Ok(None);
    }
    let input = |view: &SegmentView| {
        let paths = match rows {
            Some(rows) => paths_from_rows(schema, view, rows)?,
            None => Vec::new(),
        };
        let (segment, deleted) = (Arc::clone(&view.segment), view.deleted.clone());
        Ok(MergeInput { segment, deleted, paths })
    };
    let inputs: Vec<MergeInput> = views.iter().map(input).collect::<Result<_>>()?;
    Ok(Some(Arc::new(merge(&inputs, &segment_spec(schema))?)))
}

/// What a segment lacks of paths, by the rows of its live documents.
fn paths_from_rows(
    schema: &Schema,
    view: &SegmentView,
    rows: &dyn RowReader,
) -> Result<Vec<(u32, PathPart)>> {
    let wanted = |column: usize| schema.paths.iter().any(|path| path.column == column);
    let mut key = Vec::new();
    missing_paths(schema, &view.segment, |doc| {
        if view.is_deleted(doc) {
            return Ok(None);
        }
        key.clear();
        view.segment.keys().read(doc, &mut key);
        rows.get(&key, &wanted)
    })
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
