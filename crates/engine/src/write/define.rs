//! Creates, changes and drops tables, in the writer thread between two groups of batches.
//!
//! A list of definitions is applied to a draft of the tables, then committed and published at once. A dropped table
//! loses its definition first, so a crash never leaves a table without its rows; the next start drops rows without a
//! table.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use super::{
    alter::{Altered, alter},
    prebuilt::RebasedSegments,
    unique::check_defined,
    writer::{Writer, find_table},
};
use crate::{
    Definition, Error, Position, Result, Schema, Value,
    encode::{History, RowFormat},
    error::no_table,
    indexing::{BoundedIndexer, RequiredRows, path_specs},
    schema::Synonyms,
    shared::Definitions,
    snapshot::{SegmentView, Snapshot, TableView, UsageCounters},
    storage::{
        catalog,
        feed::Defined,
        rows::rows_at,
        store::{StoreBatch, StoreSnapshot},
    },
};

/// The tables as they will be after the commit.
struct Draft {
    tables: BTreeMap<Arc<str>, Drafted>,
    store: Arc<dyn StoreSnapshot>,
    commit: StoreBatch,
    next_number: u32,
    /// Numbers of tables to drop.
    dropped: Vec<u32>,
    /// The position of this commit if it takes one (see `advances_position`).
    position: Position,
    advances_position: bool,
    text_bytes: u64,
    /// Segments built ahead that definitions may use.
    ready: Vec<RebasedSegments>,
}

/// One table of the draft.
struct Drafted {
    number: u32,
    format: Arc<RowFormat>,
    /// As in [`TableView::staged`].
    staged: Option<u32>,
    /// Whether its definition must be stored and its view published again.
    must_store: bool,
    /// Whether existing rows read differently from before.
    altered: bool,
    /// The new segments of the table; `None` if they do not change.
    segments: Option<Vec<SegmentView>>,
}

impl Writer<'_> {
    /// Applies all definitions in one step, or none of them.
    pub(super) fn define(&mut self, asked: Definitions) -> Result<Position> {
        let Definitions { definitions, positions, ahead } = asked;
        let mut draft = self.draft()?;
        for ahead in &ahead {
            draft.ready.extend(self.rebase_segments(ahead)?);
        }
        draft.advances_position = !positions.is_empty();
        let mut events = Vec::new();
        for definition in definitions {
            let event = event_of(&definition, &draft);
            match definition {
                Definition::Vacant(table) if draft.tables.contains_key(table.as_str()) => {
                    return Err(Error::Taken { table });
                }
                Definition::Vacant(_) => {}
                Definition::Create(schema) => draft.create(schema)?,
                Definition::Drop(name) => draft.drop_table(&name)?,
                Definition::Rename { from, to } => draft.rename(&from, &to)?,
                Definition::Alter { schema, fills } => draft.alter(schema, &fills)?,
            }
            push_event(&mut events, event);
        }
        self.check_unique_paths(&draft.tables)?;
        let events = self.watched_events(events);
        // A watcher resumes after a position, so an event that it gets needs a position of its own.
        draft.advances_position |= !events.is_empty();
        let Draft { tables, mut commit, next_number, dropped, position, advances_position, .. } =
            draft;
        let text_bytes = draft.text_bytes;
        let must_store = tables.values().any(|drafted| drafted.must_store);
        if !(must_store || advances_position) && dropped.is_empty() {
            return Ok(self.position);
        }
        catalog::put_next_table(&mut commit, next_number);
        for drafted in tables.values().filter(|drafted| drafted.must_store) {
            catalog::put_table(&mut commit, drafted.number, &drafted.format)?;
        }
        dropped.iter().for_each(|&number| catalog::delete_table(&mut commit, number));
        if advances_position {
            catalog::put_position(&mut commit, position);
            catalog::put_sources(&mut commit, positions.iter().map(|(name, at)| (name, at)));
        }
        let feed = self.recorded_defined(&events, position, &mut commit)?;
        // Always synced: definitions change rarely, and all rows depend on them.
        self.commit_to_store(commit, true)?;
        if advances_position {
            self.position = position;
        }
        self.publish_tables(tables, &positions);
        self.refresh_snapshots()?;
        self.shared.unsaved_bytes.fetch_add(text_bytes, Ordering::Relaxed);
        for number in dropped {
            self.drop_rows(number)?;
        }
        self.keep_feed(feed);
        Ok(self.position)
    }

    /// Checks that paths which become unique have no duplicate values.
    fn check_unique_paths(&self, tables: &BTreeMap<Arc<str>, Drafted>) -> Result<()> {
        let current = self.shared.published.load();
        for drafted in tables.values().filter(|drafted| drafted.must_store) {
            let before = find_table(&current, drafted.number);
            let there = || before.map(|view| view.segments.as_slice());
            let segments = drafted.segments.as_deref().or_else(there).unwrap_or_default();
            check_defined(drafted.format.schema(), segments, before)?;
        }
        Ok(())
    }

    fn draft(&self) -> Result<Draft> {
        let store = self.store.snapshot();
        let current = self.shared.published.load();
        let tables = current.tables.iter().map(|(name, view)| {
            let (number, format) = (view.number, Arc::clone(&view.format));
            let (staged, segments) = (view.staged, None);
            let drafted =
                Drafted { number, format, staged, must_store: false, altered: false, segments };
            (Arc::clone(name), drafted)
        });
        Ok(Draft {
            tables: tables.collect(),
            commit: StoreBatch::new(),
            next_number: catalog::next_table(&*store)?,
            store,
            dropped: Vec::new(),
            position: Position(self.position.0 + 1),
            advances_position: false,
            text_bytes: 0,
            ready: Vec::new(),
        })
    }

    fn publish_tables(&self, tables: BTreeMap<Arc<str>, Drafted>, positions: &[(String, String)]) {
        let store = self.store.snapshot();
        self.shared.published.update(|current| {
            let tables = tables.into_iter().filter_map(|(name, drafted)| {
                let before = find_table(current, drafted.number);
                match before {
                    Some(_) if !drafted.must_store => {
                        current.tables.get(&name).map(|view| (name, Arc::clone(view)))
                    }
                    _ => {
                        let view = drafted.view(before, &store, self.position);
                        Some((name, Arc::new(view)))
                    }
                }
            });
            let tables = tables.collect();
            let sources = current.sources.with(positions.iter().map(|(name, at)| (name, at)));
            Some(Snapshot::new(self.position, sources, tables))
        });
    }
}

/// The event for watchers, if the definition changes something.
fn event_of(definition: &Definition, draft: &Draft) -> Option<Defined> {
    let there = |name: &str| draft.tables.get(name).map(|table| table.format.schema());
    match definition {
        Definition::Create(schema) if there(&schema.name).is_none() => {
            Some(Defined::Created(schema.name.clone()))
        }
        Definition::Alter { schema, .. }
            if there(&schema.name).is_some_and(|it| **it != *schema) =>
        {
            Some(Defined::Altered(schema.name.clone()))
        }
        Definition::Vacant(_) | Definition::Create(_) | Definition::Alter { .. } => None,
        Definition::Drop(name) => Some(Defined::Dropped(name.clone())),
        Definition::Rename { from, to } => Some(Defined::Renamed(from.clone(), to.clone())),
    }
}

/// Appends an event. Dropping and creating a table of the same name in one step is a truncation.
fn push_event(events: &mut Vec<Defined>, event: Option<Defined>) {
    match (events.last_mut(), event) {
        (Some(Defined::Dropped(dropped)), Some(Defined::Created(created)))
            if *dropped == created =>
        {
            events.pop();
            events.push(Defined::Truncated(created));
        }
        (_, event) => events.extend(event),
    }
}

impl Draft {
    fn create(&mut self, schema: Schema) -> Result<()> {
        if let Some(there) = self.tables.get(schema.name.as_str()) {
            if there.format.schema().means(&schema) {
                return Ok(());
            }
            return Err(Error::Conflict(format!(
                "there is a table {:?} of another definition: drop it or choose another name",
                schema.name
            )));
        }
        schema.validate()?;
        RequiredRows::of(&schema)?;
        let number = self.next_number;
        self.next_number = catalog::number_after(number)?;
        let name = Arc::from(schema.name.as_str());
        let format = Arc::new(RowFormat::new(Arc::new(schema)));
        let segments = Some(Vec::new());
        let (must_store, altered, staged) = (true, false, None);
        let table = Drafted { number, format, staged, must_store, altered, segments };
        self.tables.insert(name, table);
        Ok(())
    }

    fn drop_table(&mut self, name: &str) -> Result<()> {
        let table = self.tables.remove(name).ok_or_else(|| no_table(name))?;
        self.dropped.push(table.number);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let mut table = self.tables.remove(from).ok_or_else(|| no_table(from))?;
        let schema = Schema { name: to.to_owned(), ..Schema::clone(table.format.schema()) };
        schema.validate()?;
        let history = table.format.history().clone();
        table.format = Arc::new(RowFormat::with_history(Arc::new(schema), history));
        table.must_store = true;
        if let Some(replaced) = self.tables.insert(Arc::from(to), table) {
            self.dropped.push(replaced.number);
        }
        self.advances_position = true;
        Ok(())
    }

    fn alter(&mut self, schema: Schema, fills: &[(u32, Value)]) -> Result<()> {
        let name = schema.name.clone();
        let table = self.tables.get_mut(name.as_str()).ok_or_else(|| no_table(&name))?;
        if schema == **table.format.schema() {
            return Ok(());
        }
        let altered = !schema.means(table.format.schema());
        let Altered { mut format, index_anew } = alter(&table.format, schema, fills)?;
        if index_anew {
            let history = History { indexed_from: self.position.0, ..format.history().clone() };
            format = RowFormat::with_history(Arc::clone(format.schema()), history);
        }
        let format = Arc::new(format);
        let fits = |ready: &RebasedSegments| {
            ready.number == table.number && ready.schema == **format.schema()
        };
        let ready = self.ready.iter().position(fits);
        if let Some(ready) = ready.filter(|_| index_anew).map(|place| self.ready.remove(place)) {
            self.text_bytes += ready.text_bytes;
            table.segments = Some(ready.segments);
        } else if index_anew {
            let mut indexer = BoundedIndexer::new(format.schema())?;
            let rows = rows_at(&self.store, table.number, &format, table.staged);
            rows.scan(&[], &mut |key, row| indexer.add(key, &row).map(|()| true))?;
            self.text_bytes += indexer.all_text_bytes;
            let built = indexer.finish()?.into_iter();
            let built = built.map(|new| SegmentView::new(new, None, format.schema()));
            table.segments = Some(built.collect());
        }
        table.format = format;
        table.must_store = true;
        table.altered |= altered;
        self.advances_position = true;
        Ok(())
    }
}

impl Drafted {
    /// The view that is published; `before` is the current one.
    fn view(
        self,
        before: Option<&TableView>,
        store: &Arc<dyn StoreSnapshot>,
        position: Position,
    ) -> TableView {
        let Self { number, format, staged, altered, segments, .. } = self;
        let schema = Arc::clone(format.schema());
        let segments = segments.unwrap_or_else(|| {
            let segments = before.iter().flat_map(|view| &view.segments);
            if !altered {
                return segments.cloned().collect();
            }
            let again = |view: &SegmentView| {
                let deleted = view.deleted.as_deref().cloned();
                SegmentView::new(Arc::clone(&view.segment), deleted, &schema)
            };
            segments.map(again).collect()
        });
        let (changed, defined) = match before {
            Some(view) if !altered => (view.changed, view.defined),
            Some(_) => (position, position),
            None => (position, Position(0)),
        };
        let activity = before.map(|view| Arc::clone(&view.activity)).unwrap_or_default();
        let usage = match before {
            Some(view) if Arc::ptr_eq(&view.schema, &schema) => Arc::clone(&view.usage),
            before => Arc::new(UsageCounters::of(&schema, before.map(|view| &*view.usage))),
        };
        let synonyms = Arc::new(Synonyms::of(&schema));
        let rows = rows_at(store, number, &format, staged);
        TableView {
            number,
            paths: path_specs(&schema).into(),
            schema,
            synonyms,
            format,
            defined,
            changed,
            segments,
            parts: Arc::default(),
            rows,
            staged,
            activity,
            usage,
        }
    }
}
