//! Background merges (compaction): keep the number of segments small, however small the batches are.
//!
//! There are two merge threads: one for merges that take milliseconds, one for the rest, so that a long merge does
//! not let the small segments of a stream of writes pile up. A writer that would have to wait does quick merges
//! itself. A merge claims its segments, reads them without locks, and then replaces them by its output in one
//! step; documents deleted in the meantime are deleted in the output too. If segments lack indexes of paths, the
//! merge builds them from the rows. If that is much, it takes only the first documents of a segment
//! (`portion.rs`), which are deleted there in the same step; the next merge continues after them.

mod checkpoint;
mod plan;
mod portion;
mod priority;
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
    segment::{MergeInput, Segment, merge},
};

use crate::{
    Error, Position, Result, Schema,
    indexing::{lacks_an_index, segment_spec, stored_indexes},
    schema::without_absent,
    shared::{DatabaseState, PoisonOnPanic},
    snapshot::{Claim, Claims, SegmentView, Snapshot, TableView},
    storage::manifest::SegmentRecord,
};

pub(crate) use checkpoint::{CHANGE_BYTES, checkpoint, write_recovered};
pub(crate) use plan::{Limit, Size, is_crowded, is_merge_due, tier};
pub(crate) use priority::lower_priority;

use portion::{MergeLimits, OmittedPath, PathRows, Portion, PortionOutcome, PortionPart, take};
use priority::aside;

/// Merges of at least this many bytes run in a thread of their own.
const OWN_THREAD_BYTES: u64 = 1 << 20;
/// How long an idle thread sleeps.
const IDLE: Duration = Duration::from_secs(1);
/// The delay before a failed checkpoint is retried.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(5);

/// The niceness (CPU priority) of large merges and checkpoints: below that of small merges. A merge
/// that is due because its table was searched often has the priority of searches.
const LARGE_MERGE_NICENESS: i32 = 10;

/// A table is quiet if nothing was written to it for this long.
const QUIET_TIME: Duration = Duration::from_secs(5);
/// A search of one segment takes about as long as a merge of this many bytes.
const ASKED_BYTES: u64 = 64;

/// For each table, the time since which no row has changed.
#[derive(Default)]
struct LastChanges(HashMap<u32, (Position, Instant)>);

impl LastChanges {
    /// Updates the record with the tables' positions at `now`.
    fn look(&mut self, tables: impl Iterator<Item = (u32, Position)>, now: Instant) {
        let before = std::mem::take(&mut self.0);
        self.0.extend(tables.map(|(number, changed)| {
            let since = before.get(&number).filter(|(position, _)| *position == changed);
            (number, (changed, since.map_or(now, |(_, since)| *since)))
        }));
    }

    /// Whether all tables are quiet at `now`.
    fn is_everywhere(&self, now: Instant) -> bool {
        self.0.values().all(|(_, since)| now - *since >= QUIET_TIME)
    }

    /// Which large merges of a table are due at `now`.
    fn size(&self, (number, changed): (u32, Position), now: Instant) -> Size {
        let since = self.0.get(&number).filter(|(position, _)| *position == changed);
        match since {
            Some((_, since)) if now - *since >= QUIET_TIME => Size::Idle,
            _ => Size::Large,
        }
    }
}

/// Whether searches since a table's last change have cost as much as the merge that spares the next ones.
fn is_asked_often(table: &TableView) -> bool {
    let asked = table.activity.asked_since_change().saturating_mul(ASKED_BYTES);
    asked > 0 && plan::quiet_bytes(table).is_some_and(|bytes| bytes <= asked)
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

/// Merges and checkpoints until writes stop, each in a thread with its own priority.
pub(crate) fn run_large(shared: &DatabaseState) {
    let _guard = PoisonOnPanic(shared, "large merge");
    let mut retry = Instant::now();
    let mut last_changes = LastChanges::default();
    let mut flushed = shared.published.load().position;
    while shared.published.stopped().is_none() {
        let limit = Limit::of(&shared.options);
        let now = Instant::now();
        let current = shared.published.load();
        last_changes.look(current.tables.values().map(|table| (table.number, table.changed)), now);
        if current.position != flushed && last_changes.is_everywhere(now) {
            flushed = current.position;
            flush(shared);
        }
        drop(current);
        let find = |current: &Snapshot, claims: &Claims<'_>| {
            current.tables.values().find_map(|table| {
                let size = match is_asked_often(table) {
                    true => Size::Idle,
                    false => last_changes.size((table.number, table.changed), now),
                };
                choose(std::iter::once(table), claims, size, &limit)
            })
        };
        shared.published.wait_for_work(Instant::now() + IDLE, |current, claims| {
            (is_checkpoint_due(shared) && retry <= Instant::now())
                || find(current, claims).is_some()
        });
        if is_checkpoint_due(shared)
            && retry <= Instant::now()
            && !aside(LARGE_MERGE_NICENESS, &|| try_checkpoint(shared))
        {
            retry = Instant::now() + CHECKPOINT_RETRY;
        }
        if let Some(claim) = shared.published.claim(find) {
            let niceness = if is_asked_often(&claim.table) { 0 } else { LARGE_MERGE_NICENESS };
            // The failure was already recorded and logged.
            let _ = aside(niceness, &|| merge_claimed(shared, &claim));
        }
    }
}

/// Flushes the row store's memory to files: there it takes half the space, and the next start has less to replay.
fn flush(shared: &DatabaseState) {
    let flushed = shared.store().and_then(|store| store.flush(Instant::now()));
    if let Err(error) = flushed {
        // Nothing is lost. The next write reports the cause.
        tracing::debug!(%error, "the row store could not be flushed while nothing was written");
    }
}

/// Does quick merges of crowded tables among those with these numbers; false if there are none. For a writer that
/// waits, as the merge threads may be busy with other tables.
pub(crate) fn relieve(shared: &DatabaseState, numbers: &BTreeSet<u32>) -> bool {
    merge_chosen(shared, |current, claims| {
        let limit = Limit::of(&shared.options);
        let tables = current.tables.values().filter(|table| numbers.contains(&table.number));
        choose(tables.filter(|table| is_crowded(table, &limit)), claims, Size::Relief, &limit)
    })
}

/// Merges all of a table's segments into one, or into as few as the size limit allows, and frees the space of
/// deleted documents. Cost: the table's index is read and written once. Does nothing if the table does not exist.
pub(crate) fn optimize(shared: &DatabaseState, table: &str) -> Result<()> {
    loop {
        let Some(claim) = shared.published.claim_all(table)? else { return Ok(()) };
        let groups = plan::groups(&claim.views, &Limit::of(&shared.options));
        let is_done = |group: &Vec<SegmentView>| {
            group.len() <= 1 && group.iter().all(|view| view.deleted_count == 0)
        };
        let mut is_whole = true;
        for group in groups.iter().filter(|group| !is_done(group)) {
            let merged = merge_inputs(shared, &claim.table, group, Deletions::Freed)?;
            is_whole &= merged == Extent::Whole;
        }
        if is_whole {
            return Ok(());
        }
    }
}

/// After a failure a checkpoint is due in any case: it may have failed after writing the manifest, and the failure
/// is reported until one succeeds.
fn is_checkpoint_due(shared: &DatabaseState) -> bool {
    shared.unsaved_bytes.load(Ordering::Relaxed) >= shared.options.checkpoint_bytes
        || shared.checkpoint_failure.lock().is_some()
}

/// Runs a checkpoint; false if it failed and must be retried. True also if the database is closed or poisoned.
/// After a failure everything stays in memory and in the log.
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

/// A table and the indexes of its segments to merge.
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

/// Merges the chosen segments; false if there are none.
fn merge_chosen(
    shared: &DatabaseState,
    choose: impl FnOnce(&Snapshot, &Claims<'_>) -> Option<Choice>,
) -> bool {
    let Some(claim) = shared.published.claim(choose) else { return false };
    // The failure was already recorded and logged. It affects neither other tables nor other
    // segments of this one.
    let _ = merge_claimed(shared, &claim);
    true
}

/// The message about a failed merge.
pub(crate) fn failure_of(table: &str, why: &str) -> String {
    format!("a merge of table {table:?} failed, and is tried again: {why}")
}

/// The message about a table with a segment that is left without the index of a path, because a document has too
/// much there; `None` if there is no such segment. Segments that a merge will still index do not count.
pub(crate) fn without_path(table: &TableView) -> Option<String> {
    if table.schema.paths.is_empty() {
        return None;
    }
    let specs = &table.paths;
    let mut views = table.segments.iter();
    let why = views
        .find_map(|view| specs.iter().find_map(|spec| table.activity.why_without(view, spec)))?;
    let name = &table.schema.name;
    Some(format!("table {name:?} has documents that are not indexed by all its paths: {why}"))
}

/// How much of the claimed segments was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// As much as fits into one segment.
    Whole,
    /// Some documents: the rest still lacks paths.
    Part,
    /// Nothing: the table or path was dropped, or the database is closing.
    Stopped,
}

/// Whether a merge rewrites a segment only because of its few deleted documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deletions {
    /// No: a segment under writes would be rewritten for each deletion.
    Stay,
    /// Yes, to free their space.
    Freed,
}

fn merge_claimed(shared: &DatabaseState, claim: &Claim<'_>) -> Result<Extent> {
    merge_inputs(shared, &claim.table, &claim.views, Deletions::Stay)
}

/// Merges claimed segments of a table into one; or as many of their documents as fit into one with the paths they
/// lack.
fn merge_inputs(
    shared: &DatabaseState,
    table: &TableView,
    inputs: &[SegmentView],
    deletions: Deletions,
) -> Result<Extent> {
    let mut left_out = Vec::new();
    loop {
        shared.merging.fetch_add(1, Ordering::Relaxed);
        let made = make_aside(shared, table, inputs, &left_out);
        shared.merging.fetch_sub(1, Ordering::Relaxed);
        match made.inspect_err(|error| tell_failure(shared, table, inputs, error))? {
            Made::Stopped => return Ok(Extent::Stopped),
            Made::TooMuch(one) => {
                left_out.push(one);
                if let [alone] = inputs
                    && gains_nothing(table, alone, &left_out, deletions)
                {
                    leave_without(shared, table, &alone.segment, &left_out);
                    return Ok(Extent::Whole);
                }
            }
            Made::Segment { taken, output, is_whole } => {
                if let Some(output) = &output {
                    leave_without(shared, table, output, &left_out);
                }
                publish(shared, table, &taken, output);
                return Ok(if is_whole { Extent::Whole } else { Extent::Part });
            }
        }
    }
}

/// Replaces the merged documents by the output, in a new snapshot.
fn publish(
    shared: &DatabaseState,
    table: &TableView,
    taken: &[PortionPart<'_>],
    output: Option<Arc<Segment>>,
) {
    let bytes = output.as_ref().map_or(0, |segment| segment.byte_count());
    let views: Vec<SegmentView> = taken.iter().map(|taken| taken.view.clone()).collect();
    table.activity.merged(&views);
    shared.published.update(|current| replace(current, table.number, taken, output));
    shared.unsaved_bytes.fetch_add(bytes, Ordering::Relaxed);
}

fn tell_failure(shared: &DatabaseState, table: &TableView, inputs: &[SegmentView], error: &Error) {
    let (why, name) = (in_files(shared, inputs, error), &table.schema.name);
    if table.activity.merge_failed(why.clone(), inputs, Instant::now()) {
        let directory = shared.directory.display();
        tracing::error!(%directory, "{}", failure_of(name, &why));
    }
}

/// Whether merging the segment alone would not change it: it lacks no index except these paths, and its deleted
/// documents may stay.
fn gains_nothing(
    table: &TableView,
    view: &SegmentView,
    left_out: &[OmittedPath],
    deletions: Deletions,
) -> bool {
    let may_stay = match deletions {
        Deletions::Stay => view.deleted_count <= view.live_count(),
        Deletions::Freed => view.deleted_count == 0,
    };
    let has =
        |spec| view.segment.has_path(spec) || left_out.iter().any(|one| one.too_much.spec == *spec);
    may_stay
        && table.paths.iter().all(has)
        && !lacks_an_index(&view.segment, &stored_indexes(&table.schema))
}

/// Records that a segment lacks the indexes of paths, and why.
fn leave_without(
    shared: &DatabaseState,
    table: &TableView,
    segment: &Arc<Segment>,
    left_out: &[OmittedPath],
) {
    for OmittedPath { too_much, key } in left_out {
        // The document is not in this segment, or was deleted.
        let Some(doc) = segment.keys().find(key) else { continue };
        table.activity.leave_without(segment, &too_much.spec, doc, &too_much.why);
        let (directory, name) = (shared.directory.display(), &table.schema.name);
        tracing::error!(%directory, table = %name, "documents are left without an index: {}", too_much.why);
    }
}

/// The error, with the names of the input files.
fn in_files(shared: &DatabaseState, inputs: &[SegmentView], error: &Error) -> String {
    // A checkpoint may hold the lock for long; then the names are omitted.
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

/// The outcome of a merge.
enum Made<'v> {
    Segment { taken: Vec<PortionPart<'v>>, output: Option<Arc<Segment>>, is_whole: bool },
    TooMuch(OmittedPath),
    Stopped,
}

/// As [`make`], but large merges and merges that index paths run in a new thread. The allocator keeps freed memory
/// (a few times the segments' size) for a thread, and returns it when the thread ends.
fn make_aside<'v>(
    shared: &DatabaseState,
    table: &TableView,
    views: &'v [SegmentView],
    left_out: &[OmittedPath],
) -> Result<Made<'v>> {
    let make = || make(shared, table, views, left_out);
    let bytes: u64 = views.iter().map(SegmentView::bytes).sum();
    let lacks_a_path =
        |view: &SegmentView| table.paths.iter().any(|spec| !view.segment.has_path(spec));
    if bytes < OWN_THREAD_BYTES && !views.iter().any(lacks_a_path) {
        return make();
    }
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("remora-merging".to_owned());
        match builder.spawn_scoped(scope, make) {
            Ok(merging) => merging.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => make(),
        }
    })
}

fn make<'v>(
    shared: &DatabaseState,
    table: &TableView,
    views: &'v [SegmentView],
    left_out: &[OmittedPath],
) -> Result<Made<'v>> {
    let (schema, rows) = (&*table.schema, &*table.rows);
    let paths = PathRows { schema, rows, left_out, may_continue: &|| may_continue(shared, table) };
    let held_bytes = shared.options.path_index_bytes.max(1);
    let bounds = MergeLimits { limit: Limit::of(&shared.options), held_bytes };
    let portion = match take(views, &paths, &bounds)? {
        PortionOutcome::Portion(portion) => portion,
        PortionOutcome::TooMuch(one) => return Ok(Made::TooMuch(one)),
        PortionOutcome::Stopped => return Ok(Made::Stopped),
    };
    let Portion { taken, inputs, is_whole, held_bytes, most_collected_bytes, .. } = portion;
    if held_bytes > 0 {
        tracing::debug!(table = %schema.name, held_bytes, most_collected_bytes, "paths are indexed");
    }
    let output = merge_live(schema, &inputs)?;
    Ok(Made::Segment { taken, output, is_whole })
}

/// Whether the result of a merge is still wanted: the database is open, and the table and its paths still exist.
fn may_continue(shared: &DatabaseState, table: &TableView) -> bool {
    if shared.published.stopped().is_some() {
        return false;
    }
    let current = shared.published.load();
    let Some(now) = current.tables.values().find(|now| now.number == table.number) else {
        return false;
    };
    Arc::ptr_eq(&now.schema, &table.schema) || {
        table.paths.iter().all(|spec| now.paths.contains(spec))
    }
}

/// Merges the live documents of `views` into one segment; `None` if there are none. A path that one of them lacks
/// is left out.
pub(crate) fn merge_views(schema: &Schema, views: &[SegmentView]) -> Result<Option<Arc<Segment>>> {
    let input = |view: &SegmentView| {
        let (segment, deleted) = (Arc::clone(&view.segment), view.deleted.clone());
        MergeInput { segment, deleted, paths: Vec::new() }
    };
    merge_live(schema, &views.iter().map(input).collect::<Vec<_>>())
}

fn merge_live(schema: &Schema, inputs: &[MergeInput]) -> Result<Option<Arc<Segment>>> {
    let is_gone = |input: &MergeInput| {
        let deleted = input.deleted.as_ref().map_or(0, |deleted| deleted.count());
        deleted >= input.segment.doc_count()
    };
    if inputs.iter().all(is_gone) {
        return Ok(None);
    }
    let mut spec = segment_spec(schema);
    without_absent(&mut spec, inputs.iter().map(|input| &*input.segment));
    Ok(Some(Arc::new(merge(inputs, &spec)?)))
}

/// The snapshot with the inputs replaced by the merge's output; `None` if the table was dropped.
fn replace(
    current: &Snapshot,
    number: u32,
    taken: &[PortionPart<'_>],
    output: Option<Arc<Segment>>,
) -> Option<Snapshot> {
    let mut tables = current.tables.iter();
    let (name, table) = tables.find(|(_, table)| table.number == number)?;
    let taken_of = |now: &SegmentView| taken.iter().find(|taken| taken.view.is_of(&now.segment));
    let mut segments = Vec::with_capacity(table.segments.len() + 1);
    let mut place = None;
    for now in &table.segments {
        match taken_of(now) {
            None => segments.push(now.clone()),
            Some(taken) => {
                place.get_or_insert(segments.len());
                segments.extend(taken.rest(now, &table.schema));
            }
        }
    }
    if let Some(output) = output {
        let deleted = deleted_meanwhile(table, taken, &output);
        let view = SegmentView::new(output, Some(deleted), &table.schema);
        if view.live_count() > 0 {
            segments.insert(place.unwrap_or(segments.len()), view);
        }
    }
    let mut tables = current.tables.clone();
    tables.insert(Arc::clone(name), Arc::new(TableView { segments, ..TableView::clone(table) }));
    Some(current.with_tables(tables))
}

/// The documents of the output that were deleted in the inputs after they were claimed.
fn deleted_meanwhile(table: &TableView, taken: &[PortionPart<'_>], output: &Segment) -> Bitmap {
    let mut deleted = Bitmap::new(output.doc_count());
    let mut key = Vec::new();
    for PortionPart { view: input, docs } in taken {
        let mut gone = match table.segments.iter().find(|view| view.is_of(&input.segment)) {
            Some(now) => match &now.deleted {
                Some(deleted) => Bitmap::clone(deleted),
                None => continue,
            },
            // The writer dropped the segment, because all its documents were deleted.
            None => Bitmap::full(input.segment.doc_count()),
        };
        input.deleted.iter().for_each(|before| gone.subtract(before));
        for doc in gone.iter().filter(|doc| docs.contains(doc)) {
            key.clear();
            input.segment.keys().read(doc, &mut key);
            if let Some(doc) = output.keys().find(&key) {
                deleted.insert(doc);
            }
        }
    }
    deleted
}
