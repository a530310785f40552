//! The entries that a commit adds to the change feed.
//!
//! The writer changes a copy of the feed and replaces the original after the commit succeeded. For each change of a
//! watched table it reads the old row, unless the row is known to be new, and writes both in the same commit. Without
//! watchers there is no feed.

use std::{collections::VecDeque, sync::Arc};

use rustc_hash::FxHashMap;

use crate::{
    Position, Result,
    encode::RowFormat,
    shared::{PreparedBatch, PreparedTable, Watchers},
    snapshot::{Snapshot, TableView},
    storage::{
        catalog,
        feed::{
            Defined, FeedWriter, Generation, StoredChange, entry_key, parse_entry_key,
            put_definition, read_generations,
        },
        rows::{RowReader, rows_at},
        staged::{parse_staged_key, parse_staged_value},
        store::{Keyspace, StoreBatch, StoreSnapshot},
    },
};

/// The feed's limit is divided among this many generations, because a generation can only be dropped whole.
const GENERATIONS: u64 = 8;
/// Bytes of staged rows that are recorded per commit.
const STAGED_BYTES: usize = if cfg!(test) { 64 } else { 256 << 10 };

/// The feed as the writer knows it.
#[derive(Clone)]
pub(super) struct Feed {
    /// The generations, oldest first. Entries are added to the last one.
    generations: VecDeque<Generation>,
    /// For each table number: the definition that the last generation holds, and its number.
    known: FxHashMap<u32, (Arc<RowFormat>, u64)>,
    /// The most bytes of all generations together.
    limit: u64,
    /// Whether it may have entries of a batch that was not committed.
    pub is_unfinished: bool,
}

/// The state before the commit whose changes are recorded.
pub(super) struct RecordContext<'m> {
    /// The tables.
    pub current: &'m Snapshot,
    /// The rows.
    pub store: &'m Arc<dyn StoreSnapshot>,
    /// The watchers, whose tables are recorded.
    pub watchers: &'m Watchers,
}

/// The progress of recording the staged rows of a large batch.
pub(super) struct StagedCursor {
    from: Vec<u8>,
    entries: FeedWriter,
}

impl StagedCursor {
    /// A cursor before the first row of the batch at this position.
    pub fn begin(position: Position) -> Self {
        Self { from: Vec::new(), entries: FeedWriter::new(position) }
    }
}

impl Feed {
    /// The stored feed; `None` if there is none.
    pub fn load(store: &dyn StoreSnapshot, limit: u64, position: Position) -> Result<Option<Self>> {
        let generations = VecDeque::from(read_generations(store)?);
        let is_unfinished = generations.iter().any(|one| one.last > position);
        let feed = Self { generations, known: FxHashMap::default(), limit, is_unfinished };
        Ok((!feed.generations.is_empty()).then_some(feed))
    }

    /// Starts a feed of changes after `after`.
    pub fn begin(
        store: &dyn StoreSnapshot,
        limit: u64,
        after: Position,
        commit: &mut StoreBatch,
    ) -> Result<Self> {
        let (generations, known) = (VecDeque::new(), FxHashMap::default());
        let mut feed = Self { generations, known, limit, is_unfinished: false };
        feed.add_generation(store, after, commit)?;
        Ok(feed)
    }

    fn add_generation(
        &mut self,
        store: &dyn StoreSnapshot,
        after: Position,
        commit: &mut StoreBatch,
    ) -> Result<()> {
        let number = catalog::next_table(store)?;
        catalog::put_next_table(commit, catalog::number_after(number)?);
        let generation = Generation { number, after, last: after, bytes: 0 };
        generation.put(commit);
        self.generations.push_back(generation);
        self.known.clear();
        Ok(())
    }

    /// Starts another generation if the last one is full. The new one has all changes after the last batch of the old
    /// one; nothing was recorded in between. If a large batch spans both, the new one alone does not have all of that
    /// batch.
    fn rotate(&mut self, store: &dyn StoreSnapshot, commit: &mut StoreBatch) -> Result<()> {
        match self.generations.back() {
            Some(last) if last.bytes >= self.limit / GENERATIONS => {
                let after = last.last;
                self.add_generation(store, after, commit)
            }
            _ => Ok(()),
        }
    }

    fn place(&self) -> Keyspace {
        // A feed always has a generation.
        self.generations.back().map_or(Keyspace::Rows(0), Generation::place)
    }

    /// Counts what was put into the last generation.
    fn grow(&mut self, position: Position, bytes: u64, commit: &mut StoreBatch) {
        if let Some(generation) = self.generations.back_mut()
            && bytes > 0
        {
            generation.last = position;
            generation.bytes += bytes;
            generation.put(commit);
        }
    }

    /// Makes sure that the last generation holds the table's definition. Returns the number of the definition and the
    /// bytes added for it.
    fn definition(
        &mut self,
        view: &TableView,
        position: Position,
        commit: &mut StoreBatch,
    ) -> Result<(u64, u64)> {
        if let Some((format, definition)) = self.known.get(&view.number)
            && Arc::ptr_eq(format, &view.format)
        {
            return Ok((*definition, 0));
        }
        let (number, format) = (view.number, &view.format);
        let bytes = put_definition(commit, self.place(), number, position.0, format)?;
        self.known.insert(number, (Arc::clone(format), position.0));
        Ok((position.0, bytes))
    }

    /// Records the changes of a group of batches. `first` is the position of the first batch.
    pub fn record(
        &mut self,
        batches: &[PreparedBatch],
        first: Position,
        context: &RecordContext<'_>,
        commit: &mut StoreBatch,
    ) -> Result<()> {
        let wanted = |table: &PreparedTable| context.wanted(table.number);
        if !batches.iter().flat_map(|batch| &batch.tables).any(|table| wanted(table).is_some()) {
            return Ok(());
        }
        self.rotate(&**context.store, commit)?;
        // The rows as earlier batches of the group leave them.
        let mut changed: FxHashMap<(u32, &[u8]), Option<&[u8]>> = FxHashMap::default();
        for (batch, position) in batches.iter().zip((first.0..).map(Position)) {
            let mut entries = FeedWriter::new(position);
            let mut bytes = 0;
            for table in &batch.tables {
                let Some(view) = wanted(table) else { continue };
                let rows = context.rows(view);
                let (definition, more) = self.definition(view, position, commit)?;
                bytes += more;
                entries.begin_table(commit, self.place(), view.number, definition);
                for change in &table.changes {
                    let key = (view.number, change.key.as_slice());
                    let new = change.stored.as_deref();
                    let read;
                    let old = match changed.get(&key) {
                        Some(old) => *old,
                        None if change.must_be_absent => None,
                        None => {
                            read = old_row(view, &*rows, &change.key)?;
                            read.as_deref()
                        }
                    };
                    entries.push(commit, self.place(), StoredChange { old, new });
                    if batches.len() > 1 {
                        changed.insert(key, new);
                    }
                }
                entries.flush(commit, self.place());
            }
            self.grow(position, bytes + entries.bytes, commit);
        }
        Ok(())
    }

    /// Records changes of definitions.
    pub fn record_defined(
        &mut self,
        events: &[Defined],
        position: Position,
        commit: &mut StoreBatch,
    ) -> Result<()> {
        let mut entries = FeedWriter::new(position);
        let place = self.place();
        events.iter().try_for_each(|one| entries.push_defined(commit, place, one))?;
        self.grow(position, entries.bytes, commit);
        Ok(())
    }

    /// Records a part of the rows staged under a number, before their batch is committed. Returns whether there are
    /// more.
    pub fn record_staged(
        &mut self,
        number: u32,
        at: &mut StagedCursor,
        position: Position,
        context: &RecordContext<'_>,
        commit: &mut StoreBatch,
    ) -> Result<bool> {
        self.rotate(&**context.store, commit)?;
        let before = at.entries.bytes;
        let (mut definitions, mut bytes, mut next) = (0, 0, None);
        let mut of_table = None;
        let from = std::mem::take(&mut at.from);
        context.store.scan(Keyspace::Rows(number), &from, &mut |staged, value| {
            let (table, key) = parse_staged_key(staged)?;
            bytes += staged.len() + value.len();
            if of_table.as_ref().is_none_or(|(number, _)| *number != table) {
                let wanted = context.wanted(table).map(|view| (view, context.rows(view)));
                if let Some((view, _)) = &wanted {
                    let (definition, more) = self.definition(view, position, commit)?;
                    definitions += more;
                    at.entries.begin_table(commit, self.place(), table, definition);
                }
                of_table = Some((table, wanted));
            }
            if let Some((_, Some((view, rows)))) = &of_table {
                let old = old_row(view, &**rows, key)?;
                let change = StoredChange { old: old.as_deref(), new: parse_staged_value(value)? };
                at.entries.push(commit, self.place(), change);
            }
            let is_full = bytes >= STAGED_BYTES;
            if is_full {
                next = Some([staged, &[0]].concat());
            }
            Ok(!is_full)
        })?;
        at.entries.flush(commit, self.place());
        self.grow(position, definitions + at.entries.bytes - before, commit);
        self.is_unfinished = true;
        let has_more = next.is_some();
        at.from = next.unwrap_or_default();
        Ok(has_more)
    }

    /// A commit that removes entries of a batch that was not committed, up to 1,024 per generation. `None` if none
    /// are left.
    pub fn discard(
        &mut self,
        store: &dyn StoreSnapshot,
        position: Position,
    ) -> Result<Option<StoreBatch>> {
        let mut commit = StoreBatch::new();
        for generation in &mut self.generations {
            if generation.last <= position {
                continue;
            }
            let (mut count, place) = (0, generation.place());
            let behind = entry_key(Position(position.0 + 1), 0);
            store.scan(place, &behind, &mut |key, value| {
                parse_entry_key(key)?;
                count += 1;
                let bytes = (key.len() + value.len()) as u64;
                generation.bytes = generation.bytes.saturating_sub(bytes);
                commit.delete(place, key);
                Ok(count < 1_024)
            })?;
            if count < 1_024 {
                generation.last = position;
                generation.after = generation.after.min(position);
            }
            generation.put(&mut commit);
        }
        // The removed entries may include definitions, so all are put again when needed.
        self.known.clear();
        self.is_unfinished = !commit.is_empty();
        Ok((!commit.is_empty()).then_some(commit))
    }

    /// Removes generations that no watcher needs (all have passed their last batch), and the oldest ones while the
    /// feed exceeds its limit. The last generation stays.
    pub fn trim(&mut self, passed: Position) -> Vec<Generation> {
        let mut trimmed = Vec::new();
        let mut bytes: u64 = self.generations.iter().map(|one| one.bytes).sum();
        while self.generations.len() > 1
            && let Some(first) = self.generations.front()
            && (first.last <= passed || bytes > self.limit)
        {
            bytes -= first.bytes;
            if first.last > passed {
                tracing::warn!(
                    behind = passed.0,
                    trimmed = first.last.0,
                    "the feed of changes is full: changes are dropped that a watcher has not read"
                );
            }
            trimmed.extend(self.generations.pop_front());
        }
        trimmed
    }

    /// All generations.
    pub fn all(&self) -> Vec<Generation> {
        self.generations.iter().copied().collect()
    }
}

impl<'m> RecordContext<'m> {
    /// The table, if a watcher watches it.
    fn wanted(&self, number: u32) -> Option<&'m TableView> {
        let view = self.current.tables.values().find(|view| view.number == number)?;
        self.watchers.want(&view.schema.name).then_some(&**view)
    }

    fn rows(&self, view: &TableView) -> Arc<dyn RowReader> {
        rows_at(self.store, view.number, &view.format, view.staged)
    }
}

/// The stored row before the change. If the segments contain all rows of the table, they are asked
/// first whether there is such a row.
fn old_row(view: &TableView, rows: &dyn RowReader, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let knows_all = view.schema.required.is_none();
    if knows_all && !view.segments.iter().any(|segment| segment.has_live(key)) {
        return Ok(None);
    }
    Ok(rows.stored(key)?.map(|row| row.to_vec()))
}
