//! Recovery: builds the first snapshot from the row store and the segment files.
//!
//! The rows are the truth. The segments are a cache of them at the manifest's position. So recovery
//! 1. opens the segments of the manifest and verifies every byte;
//! 2. deletes from them the keys that the log changed after the manifest's position;
//! 3. indexes those rows again as the store has them now. Only their last state matters, not how often or in which
//!    order they changed.
//!
//! Steps 2 and 3 process the log a page at a time, so that a long log costs time but not memory. A key of a later
//! page is deleted from the segments that an earlier page built.
//!
//! If the manifest or a segment is missing or damaged, step 3 scans all rows of the table and indexes those that no
//! intact segment has. Nothing that fails verification is used. A damaged row store is different, because there is no
//! second copy of the rows: a start refuses it; a check lists the damage and continues.

mod problem;
mod readable;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

pub use problem::Problem;
pub(crate) use readable::scan_readable;

use crate::{
    Error, Position, Result, Row, Schema,
    encode::RowFormat,
    indexing::{BoundedIndexer, path_specs},
    merge::CHANGE_BYTES,
    schema::Synonyms,
    snapshot::{SegmentView, Snapshot, TableView, UsageCounters},
    storage::{
        catalog::{
            ChangedKeys, read_log_after, read_position, read_sources, read_staged, read_tables,
        },
        feed::{read_generations, read_registrations},
        manifest::{Manifest, TableRecord},
        rows::{DAMAGED_ROWS, RowReader, rows_at},
        segment_files::SegmentFiles,
        staged::{move_staged, staged_keys},
        store::{Store, StoreBatch, StoreSnapshot},
    },
};

/// Bytes of logged keys in memory at once. Small in tests, so that there are several pages.
const PAGE_BYTES: usize = if cfg!(test) { 1_000 } else { 16 << 20 };

/// Why a directory is recovered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose<'a> {
    /// To open it for writing: damage of the row store is an error.
    Start,
    /// To check it: damage of the row store is listed and the readable rows are read. Nothing is changed, because
    /// what is here may be the last copy.
    Check,
    /// To check it and to repair it.
    Repair {
        /// Tables whose segments must not be used.
        distrusted: &'a BTreeSet<u32>,
        /// Whether the list of tables is complete. If not, no rows are moved or dropped.
        is_whole: bool,
    },
}

impl Purpose<'_> {
    /// Whether damage of the row store is listed instead of being an error.
    fn continues_past_damage(self) -> bool {
        !matches!(self, Self::Start)
    }

    /// Whether staged rows are moved to their tables and rows without a table are dropped.
    fn cleans_up(self) -> bool {
        match self {
            Self::Start => true,
            Self::Check => false,
            Self::Repair { is_whole, .. } => is_whole,
        }
    }

    fn ignores_segments(self, table: u32) -> bool {
        matches!(self, Self::Repair { distrusted, .. } if distrusted.contains(&table))
    }
}

/// The result of recovery.
pub(crate) struct Recovered {
    /// The state after the last committed batch.
    pub snapshot: Snapshot,
    /// The segment files; those of the snapshot are registered.
    pub files: SegmentFiles,
    /// What was missing or damaged. What can be rebuilt has been.
    pub damage: Vec<Problem>,
    /// The manifest's position, if a manifest was used.
    pub manifest: Option<Position>,
    /// Tables without a complete set of intact segments: nothing proves which rows they must have.
    pub unproven_tables: Vec<String>,
    /// Bytes that were indexed again; they count towards the next checkpoint.
    pub unsaved_bytes: u64,
}

/// Recovers the tables of `directory` from its store. It writes only to clean up: it drops the rows of dropped tables
/// and of uncommitted large batches, a feed without registered watchers and segment files that no manifest names, and
/// moves the staged rows of a committed batch. A check writes nothing.
pub(crate) fn recover(
    directory: &Path,
    store: &dyn Store,
    purpose: Purpose<'_>,
) -> Result<Recovered> {
    let position = read_position(&*store.snapshot())?;
    let mut damage = Vec::new();
    // Before anything is written: a store that lost its end must not be changed.
    let manifest = usable_manifest(directory, position, purpose, &mut damage)?;
    let staged = if purpose.cleans_up() { clean_up(store)? } else { staged_number(store)? };
    let rows = store.snapshot();
    let files = SegmentFiles::open(directory)?;
    let unproven_tables = Vec::new();
    let mut recovery =
        Recovery { manifest, files, damage, purpose, position, staged, unproven_tables };
    let mut tables = BTreeMap::new();
    for (number, format) in read_tables(&*rows)? {
        tables.insert(number, recovery.begin(number, format, &rows));
    }
    let mut unsaved_bytes = recovery.replay_changes(&rows, &mut tables)?;
    let sources = read_sources(&*rows)?;
    let mut snapshot = Snapshot::new(position, sources, Default::default());
    let with_rows = store.row_tables();
    for (number, mut table) in tables {
        // While rows are staged, all rows of a table may be among them.
        if staged.is_none() && !with_rows.contains(&number) {
            recovery.refuse_without_rows(&mut table)?;
        }
        unsaved_bytes += table.rebuild(&mut recovery)?;
        let name = Arc::from(table.schema.name.as_str());
        snapshot.tables.insert(name, Arc::new(table.view(position)));
    }
    let Recovery { manifest, mut files, damage, unproven_tables, .. } = recovery;
    let at = manifest.as_ref().map(|manifest| manifest.position);
    // An uncommitted large batch leaves segment files that no manifest names.
    if let Some(manifest) = manifest
        && !matches!(purpose, Purpose::Check)
    {
        files.remove_all_but(manifest)?;
    }
    Ok(Recovered { snapshot, files, damage, manifest: at, unproven_tables, unsaved_bytes })
}

/// Moves committed staged rows to their tables and drops rows without a table. Such rows remain when a crash comes
/// between the end of a definition and the drop of its rows, or during a large batch. The feed stays if a watcher is
/// registered. Returns `None`: nothing is staged afterwards.
fn clean_up(store: &dyn Store) -> Result<Option<u32>> {
    let tables = read_tables(&*store.snapshot())?;
    let mut kept: BTreeSet<u32> = tables.into_iter().map(|(number, _)| number).collect();
    let staged = staged_number(store)?;
    kept.extend(staged);
    kept.extend(clean_up_feed(store)?);
    drop_all_but(store, &kept)?;
    let Some(number) = staged else { return Ok(None) };
    move_staged(store)?;
    kept.remove(&number);
    drop_all_but(store, &kept)?;
    Ok(None)
}

/// The numbers of the feed's generations. Without registered watchers the feed is deleted: watchers without a name
/// did not survive the restart.
fn clean_up_feed(store: &dyn Store) -> Result<Vec<u32>> {
    let moment = store.snapshot();
    let generations = read_generations(&*moment)?;
    if generations.is_empty() || !read_registrations(&*moment)?.is_empty() {
        return Ok(generations.iter().map(|generation| generation.number).collect());
    }
    let mut commit = StoreBatch::new();
    generations.iter().for_each(|generation| generation.delete(&mut commit));
    store.commit(commit, false)?;
    Ok(Vec::new())
}

fn drop_all_but(store: &dyn Store, kept: &BTreeSet<u32>) -> Result<()> {
    let mut orphans = store.row_tables().into_iter().filter(|number| !kept.contains(number));
    orphans.try_for_each(|number| store.drop_rows(number))
}

/// The number under which committed rows are staged.
fn staged_number(store: &dyn Store) -> Result<Option<u32>> {
    Ok(read_staged(&*store.snapshot())?.map(|(number, _)| number))
}

/// The manifest, if it can be trusted; problems are added to `damage`. A manifest ahead of the rows means that rows
/// are lost: it is written only after its rows are durable.
fn usable_manifest(
    directory: &Path,
    position: Position,
    purpose: Purpose<'_>,
    damage: &mut Vec<Problem>,
) -> Result<Option<Manifest>> {
    match Manifest::read(directory) {
        Ok(Some(manifest)) if manifest.position <= position => return Ok(Some(manifest)),
        Ok(None) if position == Position(0) => return Ok(None),
        Ok(Some(manifest)) => {
            let (store, ends, known) = (directory.join("store"), position.0, manifest.position.0);
            let what = format!(
                "the row store in {} ends with batch {ends}, but batch {known} was durable: a \
                 journal was cut or lost, and with it the changes of the batches after {ends}",
                store.display()
            );
            if !purpose.continues_past_damage() {
                return Err(Error::Corrupt(format!(
                    "{what}; restore a backup, or accept the loss by `remora check --repair`"
                )));
            }
            damage.push(Problem::lost(None, what));
        }
        Ok(None) => damage.push(Problem::of_database("the manifest is missing".to_owned())),
        Err(error) => damage.push(Problem::of_database(error.to_string())),
    }
    Ok(None)
}

struct Recovery<'a> {
    manifest: Option<Manifest>,
    files: SegmentFiles,
    damage: Vec<Problem>,
    unproven_tables: Vec<String>,
    purpose: Purpose<'a>,
    /// The last committed batch.
    position: Position,
    /// The number under which rows are staged; they are read before those of their tables.
    staged: Option<u32>,
}

/// A table during recovery.
struct Recovering {
    number: u32,
    schema: Arc<Schema>,
    format: Arc<RowFormat>,
    rows: Arc<dyn RowReader>,
    segments: Vec<SegmentView>,
    /// Unused segments, whose keys lead past rows that cannot be read.
    unused_segments: Vec<SegmentView>,
    /// Whether all rows are scanned because segments are missing.
    is_rebuilt: bool,
}

impl Recovery<'_> {
    /// Applies the log after the manifest, and then the staged keys. Returns their bytes for the next checkpoint.
    fn replay_changes(
        &mut self,
        rows: &Arc<dyn StoreSnapshot>,
        tables: &mut BTreeMap<u32, Recovering>,
    ) -> Result<u64> {
        let after = self.manifest.as_ref().map_or(Position(0), |manifest| manifest.position);
        let (staged, mut unsaved_bytes) = (self.staged, 0);
        let replay = &mut |page: ChangedKeys| {
            for (number, changed) in page {
                if let Some(table) = tables.get_mut(&number) {
                    unsaved_bytes += table.apply(&changed, self)?;
                }
            }
            Ok(())
        };
        let read = read_log_after(&**rows, after, PAGE_BYTES, replay).and_then(|()| {
            staged.map_or(Ok(()), |number| staged_keys(&**rows, number, PAGE_BYTES, replay))
        });
        match read {
            // Without the log it is unknown which documents are outdated: all rows are scanned.
            Err(Error::Corrupt(what)) if self.purpose.continues_past_damage() => {
                self.damage.push(Problem::lost(None, what));
                tables.values_mut().for_each(Recovering::stop_using_segments);
            }
            read => read?,
        }
        Ok(unsaved_bytes)
    }

    fn begin(
        &mut self,
        number: u32,
        format: Arc<RowFormat>,
        store: &Arc<dyn StoreSnapshot>,
    ) -> Recovering {
        let schema = Arc::clone(format.schema());
        let rows = rows_at(store, number, &format, self.staged);
        let damages = self.damage.len();
        let indexed_from = Position(format.history().indexed_from);
        let outdated = self.manifest.as_ref().is_some_and(|m| m.position < indexed_from);
        let distrusted = self.purpose.ignores_segments(number);
        // A start reads past no damage, so it needs no segments as a guide.
        let segments = match outdated && !self.purpose.continues_past_damage() {
            true => Vec::new(),
            false => self.load_segments(number, &schema),
        };
        let is_damaged = self.manifest.is_none() || self.damage.len() > damages;
        if is_damaged && self.position > Position(0) {
            self.unproven_tables.push(schema.name.clone());
        }
        let unused_segments = Vec::new();
        let mut table = Recovering {
            number,
            schema,
            format,
            rows,
            segments,
            unused_segments,
            is_rebuilt: is_damaged,
        };
        if outdated || distrusted {
            table.stop_using_segments();
        }
        table
    }

    /// The intact segments of a table.
    fn load_segments(&mut self, number: u32, schema: &Schema) -> Vec<SegmentView> {
        let tables = self.manifest.iter().flat_map(|manifest| &manifest.tables);
        let records = tables.filter(|table| table.number == number);
        let records: Vec<_> = records.flat_map(|TableRecord { segments, .. }| segments).collect();
        let mut views = Vec::with_capacity(records.len());
        for (record, deleted) in records {
            match self.files.load(record) {
                Ok(segment) => views.push(SegmentView::new(segment, Some(deleted.clone()), schema)),
                Err(error) => {
                    tracing::warn!(table = %schema.name, %error, "a segment cannot be used");
                    self.damage.push(Problem::of_table(&schema.name, error.to_string()));
                }
            }
        }
        views
    }

    /// Refuses a table whose index has documents but whose keyspace in the row store is gone.
    fn refuse_without_rows(&mut self, table: &mut Recovering) -> Result<()> {
        if table.segments.is_empty() {
            return Ok(());
        }
        let rows: u64 = table.segments.iter().map(|view| u64::from(view.live_count())).sum();
        let what = format!("the row store has lost all of its rows, {rows} at the last checkpoint");
        table.stop_using_segments();
        let name = table.schema.name.clone();
        match self.purpose.continues_past_damage() {
            true => self.damage.push(Problem::lost(Some(&name), what)),
            false => {
                return Err(Error::Corrupt(format!("table {name:?}: {what}{DAMAGED_ROWS}")));
            }
        }
        Ok(())
    }

    /// Handles an unreadable row: an error at a start; otherwise it is listed and skipped.
    fn unreadable(&mut self, schema: &Schema, error: Error) -> Result<()> {
        match error {
            Error::Corrupt(what) if self.purpose.continues_past_damage() => {
                self.damage.push(Problem::lost(Some(&schema.name), what));
                Ok(())
            }
            other => Err(other),
        }
    }
}

impl Recovering {
    /// Applies a page of changed keys to the segments; returns their bytes for the next checkpoint.
    fn apply(&mut self, changed: &BTreeSet<Vec<u8>>, recovery: &mut Recovery<'_>) -> Result<u64> {
        for view in &mut self.segments {
            if let Some(left) = view.without(changed.iter().map(Vec::as_slice), &self.schema) {
                *view = left;
            }
        }
        self.segments.retain(|view| view.live_count() > 0);
        let keys: u64 = changed.iter().map(|key| (key.len() + CHANGE_BYTES) as u64).sum();
        if self.is_rebuilt {
            return Ok(keys);
        }
        let schema = Arc::clone(&self.schema);
        let mut indexer = BoundedIndexer::new(&schema)?;
        for key in changed {
            match self.rows.get(key, None, &|_| true) {
                Ok(Some(row)) => indexer.add(key, &row)?,
                Ok(None) => {}
                Err(error) => recovery.unreadable(&schema, error)?,
            }
        }
        Ok(keys + self.take(indexer)?)
    }

    /// Stops using the segments, except as a guide past damage.
    fn stop_using_segments(&mut self) {
        self.unused_segments.append(&mut self.segments);
        self.is_rebuilt = true;
    }

    /// Scans the rows and indexes those that no segment has, if segments are missing. Returns the bytes indexed.
    fn rebuild(&mut self, recovery: &mut Recovery<'_>) -> Result<u64> {
        if !self.is_rebuilt {
            return Ok(0);
        }
        let schema = Arc::clone(&self.schema);
        tracing::warn!(table = %schema.name, "the index is rebuilt from the rows");
        let mut indexer = BoundedIndexer::new(&schema)?;
        let segments = &self.segments;
        let unused_segments = [segments.as_slice(), &self.unused_segments].concat();
        let visit = &mut |key: &[u8], row: Row| {
            if !segments.iter().any(|view| view.has_live(key)) {
                indexer.add(key, &row)?;
            }
            Ok(true)
        };
        match recovery.purpose.continues_past_damage() {
            false => self.rows.scan(&[], visit)?,
            true => scan_readable(&*self.rows, &unused_segments, visit, &mut |error| {
                recovery.unreadable(&schema, error)
            })?,
        }
        self.take(indexer)
    }

    fn take(&mut self, indexer: BoundedIndexer<'_>) -> Result<u64> {
        let bytes = indexer.all_text_bytes;
        let built = indexer.finish()?.into_iter();
        self.segments.extend(built.map(|new| SegmentView::new(new, None, &self.schema)));
        Ok(bytes)
    }

    fn view(self, changed: Position) -> TableView {
        let Self { number, schema, format, rows, segments, .. } = self;
        let synonyms = Arc::new(Synonyms::of(&schema));
        let usage = Arc::new(UsageCounters::of(&schema, None));
        TableView {
            number,
            paths: path_specs(&schema).into(),
            schema,
            synonyms,
            format,
            defined: Position(0),
            changed,
            segments,
            parts: Arc::default(),
            rows,
            staged: None,
            activity: Arc::default(),
            usage,
        }
    }
}
