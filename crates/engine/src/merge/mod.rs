//! Background merges: few segments however small the batches are.
//!
//! Two threads merge, one what takes milliseconds and one the rest, so that a long merge does not
//! let the small segments of a stream of writes pile up; a writer that would wait for them does what
//! is quick itself. A merge reads segments that it has claimed, without any lock; when it is done it
//! replaces them by its output in one step, with the documents deleted that were deleted meanwhile. What
//! segments lack of paths it makes of their rows: where that is much it takes the first of a segment's documents
//! alone (`portion.rs`), which are deleted there in the same step, and the next merge takes what follows.

mod checkpoint;
mod plan;
mod portion;
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
    indexing::{lacks_an_index, path_specs, segment_spec, stored_indexes},
    shared::{DatabaseState, PoisonOnPanic},
    snapshot::{Claim, Claims, SegmentView, Snapshot, TableView},
    storage::manifest::SegmentRecord,
};

pub(crate) use checkpoint::{CHANGE_BYTES, checkpoint, write_recovered};
pub(crate) use plan::{Limit, Size, is_crowded, is_merge_due, tier};
use portion::{Bounds, LeftOut, PathRows, Portion, Taken, Took, take};

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

/// What is told of a table that has a segment without a path, if one has.
pub(crate) fn without_path(table: &TableView) -> Option<String> {
    if table.schema.paths.is_empty() {
        return None;
    }
    let specs = path_specs(&table.schema);
    let mut views = table.segments.iter();
    let why = views
        .find_map(|view| specs.iter().find_map(|spec| table.activity.why_without(view, spec)))?;
    let name = &table.schema.name;
    Some(format!("table {name:?} has documents that are not indexed by all its paths: {why}"))
}

/// How much of claimed segments was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// All that may be one segment.
    Whole,
    /// Some documents: what is left lacks paths still.
    Part,
    /// Nothing: the table or the path is gone, or the database is being closed.
    Stopped,
}

/// What a merge does with the few deletions of a segment that would be the same without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deletions {
    /// They stay: a segment that is written to would be made again for each.
    Stay,
    /// What they left is freed.
    Freed,
}

fn merge_claimed(shared: &DatabaseState, claim: &Claim<'_>) -> Result<Extent> {
    merge_inputs(shared, &claim.table, &claim.views, Deletions::Stay)
}

/// Merges claimed segments of a table into one, or as many of their documents as may be one with the paths that they
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

/// Puts what was made in the place of what it was made of.
fn publish(
    shared: &DatabaseState,
    table: &TableView,
    taken: &[Taken<'_>],
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

/// Whether a segment merged alone would be the same, with these paths left out, but for deletions that may stay.
fn gains_nothing(
    table: &TableView,
    view: &SegmentView,
    left_out: &[LeftOut],
    deletions: Deletions,
) -> bool {
    let may_stay = match deletions {
        Deletions::Stay => view.deleted_count <= view.live_count(),
        Deletions::Freed => view.deleted_count == 0,
    };
    let has =
        |spec| view.segment.has_path(spec) || left_out.iter().any(|one| one.too_much.spec == *spec);
    may_stay
        && path_specs(&table.schema).iter().all(has)
        && !lacks_an_index(&view.segment, &stored_indexes(&table.schema))
}

/// Keeps that a segment is without paths, and why.
fn leave_without(
    shared: &DatabaseState,
    table: &TableView,
    segment: &Arc<Segment>,
    left_out: &[LeftOut],
) {
    for LeftOut { too_much, key } in left_out {
        // It was not taken with this segment, or is gone.
        let Some(doc) = segment.keys().find(key) else { continue };
        table.activity.leave_without(segment, &too_much.spec, doc, &too_much.why);
        let (directory, name) = (shared.directory.display(), &table.schema.name);
        tracing::error!(%directory, table = %name, "documents are left without an index: {}", too_much.why);
    }
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

/// What came of a merge.
enum Made<'v> {
    Segment { taken: Vec<Taken<'v>>, output: Option<Arc<Segment>>, is_whole: bool },
    TooMuch(LeftOut),
    Stopped,
}

/// The same as [`make`]; of large segments and of paths in a thread that ends with it. What a thread has freed is kept
/// for it by the allocator, a few times the segments' size after a merge, and given back when it ends.
fn make_aside<'v>(
    shared: &DatabaseState,
    table: &TableView,
    views: &'v [SegmentView],
    left_out: &[LeftOut],
) -> Result<Made<'v>> {
    let make = || make(shared, table, views, left_out);
    let bytes: u64 = views.iter().map(SegmentView::bytes).sum();
    let specs = path_specs(&table.schema);
    let lacks_a_path = |view: &SegmentView| specs.iter().any(|spec| !view.segment.has_path(spec));
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
    left_out: &[LeftOut],
) -> Result<Made<'v>> {
    let (schema, rows) = (&*table.schema, &*table.rows);
    let paths = PathRows { schema, rows, left_out, goes_on: &|| goes_on(shared, table) };
    let held_bytes = shared.options.path_index_bytes.max(1);
    let bounds = Bounds { limit: Limit::of(&shared.options), held_bytes };
    let portion = match take(views, &paths, &bounds)? {
        Took::Portion(portion) => portion,
        Took::TooMuch(one) => return Ok(Made::TooMuch(one)),
        Took::Stopped => return Ok(Made::Stopped),
    };
    let Portion { taken, inputs, is_whole, held_bytes, most_collected_bytes, .. } = portion;
    if held_bytes > 0 {
        tracing::debug!(table = %schema.name, held_bytes, most_collected_bytes, "paths are indexed");
    }
    let output = merge_live(schema, &inputs)?;
    Ok(Made::Segment { taken, output, is_whole })
}

/// Whether what a merge of the table makes is wanted still: the database is open, the table is there, and so are the paths
/// that it had.
fn goes_on(shared: &DatabaseState, table: &TableView) -> bool {
    if shared.published.stopped().is_some() {
        return false;
    }
    let current = shared.published.load();
    let Some(now) = current.tables.values().find(|now| now.number == table.number) else {
        return false;
    };
    Arc::ptr_eq(&now.schema, &table.schema) || {
        let (before, now) = (path_specs(&table.schema), path_specs(&now.schema));
        before.iter().all(|spec| now.contains(spec))
    }
}

/// One segment with the live documents of `views`; `None` if there are none. A path that one of them lacks is left out.
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
    Ok(Some(Arc::new(merge(inputs, &segment_spec(schema))?)))
}

/// The snapshot with the merge's output in the place of what it took; `None` if the table is gone.
fn replace(
    current: &Snapshot,
    number: u32,
    taken: &[Taken<'_>],
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

/// Those of the output's documents that were deleted since they were claimed where they were taken from.
fn deleted_meanwhile(table: &TableView, taken: &[Taken<'_>], output: &Segment) -> Bitmap {
    let mut deleted = Bitmap::new(output.doc_count());
    let mut key = Vec::new();
    for Taken { view: input, docs } in taken {
        let mut gone = match table.segments.iter().find(|view| view.is_of(&input.segment)) {
            Some(now) => match &now.deleted {
                Some(deleted) => Bitmap::clone(deleted),
                None => continue,
            },
            // The writer dropped it: no document of it is live any more.
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
