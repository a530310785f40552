//! The entries that a commit adds to the change feed.
//!
//! The feed is changed on a copy, which replaces it after the commit succeeded. For each change of a watched table this
//! reads the old row, unless the row is new, and writes both in the same commit. Without watchers there is no feed.

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
            Defined, Entries, Generation, StoredChange, entry_key, parse_entry_key, put_definition,
            read_generations,
        },
        rows::{RowReader, rows_at},
        staged::{parse_staged_key, parse_staged_value},
        store::{Keyspace, StoreBatch, StoreSnapshot},
    },
};

/// A generation is dropped whole, so the feed has several within what it may take.
const GENERATIONS: u64 = 8;
/// Bytes of staged rows that are brought into the feed at once.
const STAGED_BYTES: usize = if cfg!(test) { 64 } else { 256 << 10 };

/// The feed as the writer knows it.
#[derive(Clone)]
pub(super) struct Feed {
    /// Oldest first; the last one is written to.
    generations: VecDeque<Generation>,
    /// What the last generation has of each table's definition.
    known: FxHashMap<u32, (Arc<RowFormat>, u64)>,
    /// Most bytes of all of them.
    limit: u64,
    /// Whether it may have entries of a batch that was not committed.
    pub is_unfinished: bool,
}

/// What a commit is to be recorded with.
pub(super) struct Moment<'m> {
    /// The tables before it.
    pub current: &'m Snapshot,
    /// The rows before it.
    pub store: &'m Arc<dyn StoreSnapshot>,
    /// For whom.
    pub watchers: &'m Watchers,
}

/// How far a large batch was brought into the feed.
pub(super) struct StagedFrom {
    from: Vec<u8>,
    entries: Entries,
}

impl StagedFrom {
    /// The begin of the batch at this position.
    pub fn begin(position: Position) -> Self {
        Self { from: Vec::new(), entries: Entries::new(position) }
    }
}

impl Feed {
    /// The feed that is there; `None` if there is none.
    pub fn load(store: &dyn StoreSnapshot, limit: u64, position: Position) -> Result<Option<Self>> {
        let generations = VecDeque::from(read_generations(store)?);
        let is_unfinished = generations.iter().any(|one| one.last > position);
        let feed = Self { generations, known: FxHashMap::default(), limit, is_unfinished };
        Ok((!feed.generations.is_empty()).then_some(feed))
    }

    /// A feed of what comes behind `after`.
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

    /// Begins another generation where the last is full. It has all that came behind what that one has: between the
    /// two nothing was recorded, and of a batch that is in both the second one alone has not all.
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
        // There is always one.
        self.generations.back().map_or(Keyspace::Rows(0), Generation::place)
    }

    /// Notes what was put into the last generation.
    fn grow(&mut self, position: Position, bytes: u64, commit: &mut StoreBatch) {
        if let Some(generation) = self.generations.back_mut()
            && bytes > 0
        {
            generation.last = position;
            generation.bytes += bytes;
            generation.put(commit);
        }
    }

    /// The number of a table's definition in the last generation, which has it on return.
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

    /// Records what a group of batches changes, the first of them at `first`.
    pub fn record(
        &mut self,
        batches: &[PreparedBatch],
        first: Position,
        moment: &Moment<'_>,
        commit: &mut StoreBatch,
    ) -> Result<()> {
        let wanted = |table: &PreparedTable| moment.wanted(table.number);
        if !batches.iter().flat_map(|batch| &batch.tables).any(|table| wanted(table).is_some()) {
            return Ok(());
        }
        self.rotate(&**moment.store, commit)?;
        // What the batches before in the group made of a key.
        let mut changed: FxHashMap<(u32, &[u8]), Option<&[u8]>> = FxHashMap::default();
        for (batch, position) in batches.iter().zip((first.0..).map(Position)) {
            let mut entries = Entries::new(position);
            let mut bytes = 0;
            for table in &batch.tables {
                let Some(view) = wanted(table) else { continue };
                let rows = moment.rows(view);
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

    /// Records what happened to definitions.
    pub fn record_defined(
        &mut self,
        told: &[Defined],
        position: Position,
        commit: &mut StoreBatch,
    ) -> Result<()> {
        let mut entries = Entries::new(position);
        let place = self.place();
        told.iter().try_for_each(|one| entries.push_defined(commit, place, one))?;
        self.grow(position, entries.bytes, commit);
        Ok(())
    }

    /// Records some of what is staged under a number, before that is committed; whether there is more.
    pub fn record_staged(
        &mut self,
        number: u32,
        at: &mut StagedFrom,
        position: Position,
        moment: &Moment<'_>,
        commit: &mut StoreBatch,
    ) -> Result<bool> {
        self.rotate(&**moment.store, commit)?;
        let before = at.entries.bytes;
        let (mut definitions, mut bytes, mut next) = (0, 0, None);
        let mut of_table = None;
        let from = std::mem::take(&mut at.from);
        moment.store.scan(Keyspace::Rows(number), &from, &mut |staged, value| {
            let (table, key) = parse_staged_key(staged)?;
            bytes += staged.len() + value.len();
            if of_table.as_ref().is_none_or(|(number, _)| *number != table) {
                let wanted = moment.wanted(table).map(|view| (view, moment.rows(view)));
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
        let goes_on = next.is_some();
        at.from = next.unwrap_or_default();
        Ok(goes_on)
    }

    /// A commit that removes some of what a batch left that was not committed; `None` if there is
    /// nothing any more.
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
        // Definitions that it put may be among them: they are put again.
        self.known.clear();
        self.is_unfinished = !commit.is_empty();
        Ok((!commit.is_empty()).then_some(commit))
    }

    /// Takes away the generations that nobody needs, or that there is no room for: the last one is
    /// written to and stays. `passed` is up to where nobody needs anything.
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
                    "the feed of changes is full: a watcher that is behind has lost its place"
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

impl<'m> Moment<'m> {
    /// The table, if somebody is to be told of it.
    fn wanted(&self, number: u32) -> Option<&'m TableView> {
        let view = self.current.tables.values().find(|view| view.number == number)?;
        self.watchers.want(&view.schema.name).then_some(&**view)
    }

    fn rows(&self, view: &TableView) -> Arc<dyn RowReader> {
        rows_at(self.store, view.number, &view.format, view.staged)
    }
}

/// The row before, as it is stored. Where the segments have all rows they say whether there is one.
fn old_row(view: &TableView, rows: &dyn RowReader, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let knows_all = view.schema.required.is_none();
    if knows_all && !view.segments.iter().any(|segment| segment.has_live(key)) {
        return Ok(None);
    }
    Ok(rows.stored(key)?.map(|row| row.to_vec()))
}
