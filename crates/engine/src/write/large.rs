//! Batches larger than memory: written part by part, visible and durable as one.
//!
//! ```text
//! caller   begin: queue, wait for the writer
//!          add: prepare a part, hand it over             (prepare)
//! writer   index the part, note the old rows             (group, undo)
//!          commit the part's rows and log; none of it is visible
//! caller   commit
//! writer   one synced commit: the undo mark goes, the positions move
//!          publish, acknowledge
//! ```
//! The writer does nothing else meanwhile, readers go on with the snapshot of before, and so do
//! checkpoints, which write what is published. A batch that is dropped, or that a crash ends, is
//! rolled back from the old rows. In memory are one or two parts and the segments of all parts.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use remora_index::segment::Segment;

use super::{
    group::IndexedGroup,
    pending::Waiter,
    prepare::{PreparedBatch, PreparedTable, prepare},
    queue::Job,
    writer::{Writer, find_table},
};
use crate::{
    ChangeBatch, Error, Position, RequestPart, Result, TableChanges, catalog,
    merge::merge_views,
    shared::Shared,
    snapshot::{SegmentView, Snapshot, TableView},
    store::{Keyspace, StoreBatch, StoreSnapshot},
    undo,
};

/// How often the writer looks whether the database is being closed.
const POLL: Duration = Duration::from_millis(50);
/// With so many segments of a table the smaller ones are merged.
const SEGMENTS: usize = 40;
/// At most so many are merged at once.
const MERGED_SEGMENTS: usize = 32;
/// No merge makes a larger segment than about this.
const MERGED_BYTES: u64 = 256 << 20;

/// A batch of any size that becomes visible and durable whole. Dropping it rolls it back.
pub struct LargeBatch {
    shared: Arc<Shared>,
    parts: Sender<Part>,
    outcome: Receiver<Result<Position>>,
}

/// What the writer gets of it.
enum Part {
    Changes(PreparedBatch),
    Commit(Vec<(String, String)>),
}

/// The writer's end of a [`LargeBatch`].
pub(crate) struct LargeParts {
    begun: Sender<()>,
    parts: Receiver<Part>,
    waiter: Waiter,
}

impl LargeBatch {
    pub(crate) fn begin(shared: &Arc<Shared>) -> Result<Self> {
        let (waiter, outcome) = Waiter::new();
        let (begun, has_begun) = bounded(1);
        let (sender, parts) = bounded(1);
        shared.queue.push(Job::Large(LargeParts { begun, parts, waiter }))?;
        let batch = Self { shared: Arc::clone(shared), parts: sender, outcome };
        match has_begun.recv() {
            Ok(()) => Ok(batch),
            Err(_) => Err(batch.refusal()),
        }
    }

    /// Adds changes behind those that were added before. The limits of one batch hold for what is
    /// added at once: add a few megabytes at a time. Rows that do not fit their table are refused
    /// here and leave the batch as it was; any other error ends it.
    pub fn add(&mut self, tables: Vec<TableChanges>) -> Result<()> {
        self.shared.check_open()?;
        let batch = ChangeBatch { tables, positions: Vec::new() };
        // No definition changes while the writer is with this batch.
        let prepared = prepare(batch, &self.shared.published.load(), &self.shared)?;
        if prepared.expects() {
            let message = "a batch that comes in parts inserts nothing: put the rows instead";
            return Err(Error::request(RequestPart::Row, message));
        }
        self.parts.send(Part::Changes(prepared)).map_err(|_| self.refusal())
    }

    /// Makes all of it visible and durable, with these positions of sources.
    pub fn commit(self, positions: Vec<(String, String)>) -> Result<Position> {
        self.parts.send(Part::Commit(positions)).map_err(|_| self.refusal())?;
        self.outcome.recv().unwrap_or_else(|_| Err(self.shared.refusal()))
    }

    /// Why the writer takes nothing more of it.
    fn refusal(&self) -> Error {
        match self.outcome.recv() {
            Ok(Err(error)) => error,
            _ => self.shared.refusal(),
        }
    }
}

impl LargeParts {
    /// Ends the batch before it has begun.
    pub fn refuse(self, reason: &Error) {
        self.waiter.answer(Err(reason.clone()));
    }
}

/// How the writer's work on a large batch ended.
pub(super) enum Ended {
    /// The batch was committed or rolled back, or no write is possible any more.
    Whole,
    /// The database is closed: the next start rolls the batch back.
    UnderWay,
}

impl Writer<'_> {
    /// Takes a large batch from its begin to its end.
    pub(super) fn write_large(&mut self, parts: LargeParts) -> Ended {
        let LargeParts { begun, parts, waiter } = parts;
        let mut large = Large::new(self);
        if begun.send(()).is_err() {
            return Ended::Whole;
        }
        let outcome = loop {
            match parts.recv_timeout(POLL) {
                Ok(Part::Changes(mut batch)) => {
                    let written = batch
                        .wait_until_indexed()
                        .and_then(|()| self.write_part(&mut large, &batch));
                    if let Err(error) = written {
                        break Err(error);
                    }
                }
                Ok(Part::Commit(positions)) => break self.commit_large(&mut large, &positions),
                Err(RecvTimeoutError::Disconnected) => break Err(Error::Closed),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.shared.queue.is_closed() {
                let reason = self.shared.refusal();
                waiter.answer(Err(reason.clone()));
                // What waits behind must not be written on top of half a batch.
                self.shared.queue.fail(&reason);
                return Ended::UnderWay;
            }
            self.sync_if_due();
        };
        let ended = match &outcome {
            Ok(_) => large.undo,
            Err(_) => self.roll_back(),
        };
        // Garbage from here on.
        let dropped = ended.map_or(Ok(()), |number| self.store.drop_rows(number));
        let dropped = dropped.map_err(|error| self.shared.poison(&error));
        waiter.answer(dropped.and(outcome));
        Ended::Whole
    }

    /// Half a batch that cannot be rolled back ends all writing.
    fn roll_back(&mut self) -> Option<u32> {
        match undo::roll_back(&*self.store) {
            Ok(number) => number,
            Err(error) => {
                self.shared.poison(&error);
                None
            }
        }
    }

    /// Writes a part: first what undoes it, then its rows.
    fn write_part(&mut self, large: &mut Large, batch: &PreparedBatch) -> Result<()> {
        let indexed = IndexedGroup::new(std::slice::from_ref(batch))?;
        self.note_old_rows(large, &batch.tables)?;
        let mut commit = StoreBatch::new();
        for table in &batch.tables {
            table.put_rows(&mut commit);
        }
        let position = large.position;
        for (&number, runs) in &indexed.tables {
            let built = large.tables.entry(number).or_default();
            built.log_part =
                catalog::put_log(&mut commit, position, number, built.log_part, runs.keys());
        }
        self.commit_to_store(commit, false)?;
        let current = self.shared.published.load();
        for (number, runs) in &indexed.tables {
            if let (Some(view), Some(built)) =
                (find_table(&current, *number), large.tables.get_mut(number))
            {
                runs.apply_to(&mut built.segments, &view.schema);
                built.merge_small(view)?;
            }
        }
        large.text_bytes += indexed.text_bytes;
        Ok(())
    }

    /// Notes the rows that the changed keys had before the batch.
    fn note_old_rows(&mut self, large: &mut Large, tables: &[PreparedTable]) -> Result<()> {
        let mut commit = StoreBatch::new();
        let undo = match large.undo {
            Some(number) => number,
            None => {
                let number = catalog::next_table(&*large.before)?;
                catalog::put_next_table(&mut commit, catalog::number_after(number)?);
                catalog::put_undo(&mut commit, number);
                large.undo = Some(number);
                number
            }
        };
        let current = self.shared.published.load();
        let mut bytes = 0;
        for table in tables {
            let view = find_table(&current, table.number);
            let rows = Keyspace::Rows(table.number);
            for change in &table.changes {
                let known_absent = view.is_some_and(|view| is_absent(view, &change.key));
                let old = match known_absent {
                    true => None,
                    false => large.before.get(rows, &change.key)?,
                };
                let value = undo::undo_value(old.as_deref());
                bytes += change.key.len() + value.len();
                let key = undo::undo_key(table.number, &change.key);
                commit.put(Keyspace::Rows(undo), key, value);
                if bytes >= undo::COMMIT_BYTES {
                    self.commit_to_store(std::mem::take(&mut commit), false)?;
                    bytes = 0;
                }
            }
        }
        self.commit_to_store(commit, false)
    }

    /// Makes the batch durable and visible; the order of the steps must not move.
    /// 1. The synced commit that ends the batch: until then it is rolled back by a crash.
    /// 2. Publish, and only then acknowledge.
    fn commit_large(
        &mut self,
        large: &mut Large,
        positions: &[(String, String)],
    ) -> Result<Position> {
        let mut commit = StoreBatch::new();
        catalog::delete_undo(&mut commit);
        catalog::put_position(&mut commit, large.position);
        catalog::put_sources(&mut commit, positions.iter().map(|(name, at)| (name, at)));
        self.commit_to_store(commit, true)?;
        self.position = large.position;
        let published = self.publish_large(large, positions);
        // Committed but not to be seen: only a new start shows it.
        published.map_err(|error| self.shared.poison(&error))?;
        let tables = large.tables.keys().copied();
        self.recent.note_tables(&self.shared.transactions, tables, large.position);
        self.shared.unsaved_bytes.fetch_add(large.text_bytes, Ordering::Relaxed);
        self.shared.published.notify_work();
        Ok(self.position)
    }

    /// Publishes the snapshot with the batch. The documents that it replaced are sought outside the
    /// gate; merges may exchange segments meanwhile, whose documents are then sought again.
    fn publish_large(&self, large: &Large, positions: &[(String, String)]) -> Result<()> {
        let store = self.store.snapshot();
        let mut left = Left::default();
        loop {
            left.find(&self.shared.published.load(), large, &store)?;
            let mut is_published = false;
            self.shared.published.update(|current| {
                let tables = current.tables.iter().map(|(name, view)| {
                    let built = large.tables.get(&view.number);
                    let mut segments = match built {
                        Some(_) => left.of(view)?,
                        None => view.segments.clone(),
                    };
                    let changed = built.map_or(view.changed, |_| large.position);
                    segments.extend(built.iter().flat_map(|built| built.segments.iter().cloned()));
                    Some((Arc::clone(name), Arc::new(view.at(&store, changed, segments))))
                });
                let tables = tables.collect::<Option<HashMap<_, _>>>()?;
                is_published = true;
                let sources = positions.iter().map(|(name, at)| (name, at));
                let sources = current.sources.with(sources);
                Some(Snapshot { position: large.position, sources, tables })
            });
            if is_published {
                return Ok(());
            }
        }
    }
}

/// Whether the index knows that there is no row of this key: rows that are not in the view are not
/// in the index.
fn is_absent(view: &TableView, key: &[u8]) -> bool {
    view.schema.required.is_none() && !view.segments.iter().any(|segment| segment.has_live(key))
}

/// A large batch as the writer has it.
struct Large {
    /// What it will have when it is committed.
    position: Position,
    /// The store before it.
    before: Arc<dyn StoreSnapshot>,
    /// The number under which the old rows are, once there are any.
    undo: Option<u32>,
    tables: BTreeMap<u32, Built>,
    text_bytes: u64,
}

/// What a large batch made of a table.
#[derive(Default)]
struct Built {
    segments: Vec<SegmentView>,
    /// The number of the next part of the log.
    log_part: u32,
}

impl Large {
    fn new(writer: &Writer<'_>) -> Self {
        Self {
            position: Position(writer.position.0 + 1),
            before: writer.store.snapshot(),
            undo: None,
            tables: BTreeMap::new(),
            text_bytes: 0,
        }
    }
}

impl Built {
    /// Keeps the segments few, as the merges do for what is published.
    fn merge_small(&mut self, view: &TableView) -> Result<()> {
        if self.segments.len() < SEGMENTS {
            return Ok(());
        }
        self.segments.sort_by_key(SegmentView::bytes);
        let mut bytes = 0;
        let small = self.segments.iter().take(MERGED_SEGMENTS).take_while(|segment| {
            bytes += segment.bytes();
            bytes <= MERGED_BYTES
        });
        let small = small.count();
        if small > 1 {
            let merged = merge_views(view, self.segments.get(..small).unwrap_or_default())?;
            let merged = merged.map(|merged| SegmentView::new(merged, None, &view.schema));
            self.segments.splice(..small, merged);
        }
        Ok(())
    }
}

/// What is left of the published segments without the documents that a large batch replaced.
#[derive(Default)]
struct Left(Vec<(Arc<Segment>, SegmentView)>);

impl Left {
    /// Finds it for the segments for which it is not known.
    fn find(
        &mut self,
        current: &Snapshot,
        large: &Large,
        store: &Arc<dyn StoreSnapshot>,
    ) -> Result<()> {
        let Some(undo) = large.undo else { return Ok(()) };
        for view in current.tables.values().filter(|view| large.tables.contains_key(&view.number)) {
            let unknown = view.segments.iter().filter(|segment| self.get(segment).is_none());
            let unknown: Vec<&SegmentView> = unknown.collect();
            if unknown.is_empty() {
                continue;
            }
            let mut gone: Vec<Vec<u32>> = vec![Vec::new(); unknown.len()];
            store.scan(Keyspace::Rows(undo), &view.number.to_be_bytes(), &mut |noted, _| {
                let (table, key) = undo::parse_undo_key(noted)?;
                if table != view.number {
                    return Ok(false);
                }
                for (segment, gone) in unknown.iter().zip(&mut gone) {
                    let doc = segment.segment.keys().find(key);
                    gone.extend(doc.filter(|&doc| !segment.is_deleted(doc)));
                }
                Ok(true)
            })?;
            let left = unknown.into_iter().zip(gone).map(|(segment, gone)| {
                let left = match gone.is_empty() {
                    true => segment.clone(),
                    false => segment.without_docs(&gone, &view.schema),
                };
                (Arc::clone(&segment.segment), left)
            });
            let left: Vec<_> = left.collect();
            self.0.extend(left);
        }
        Ok(())
    }

    fn get(&self, segment: &SegmentView) -> Option<&SegmentView> {
        self.0.iter().find(|(known, _)| segment.is_of(known)).map(|(_, left)| left)
    }

    /// The segments of a table; `None` if one of them is not known.
    fn of(&self, view: &TableView) -> Option<Vec<SegmentView>> {
        let left = view.segments.iter().map(|segment| self.get(segment).cloned());
        let mut left = left.collect::<Option<Vec<_>>>()?;
        left.retain(|segment| segment.live_count() > 0);
        Some(left)
    }
}
