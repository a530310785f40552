//! Recovery: from the store and what the segment files still hold to the first snapshot.
//!
//! The rows are the truth, the segments a cache of them at the manifest's position. So recovery
//! 1. opens the segments of the manifest, verifying every byte;
//! 2. deletes from them the keys that the log changed after the manifest's position;
//! 3. indexes those rows again as the store has them now: only their last state matters, so it
//!    does not matter how often or in which order they changed.
//!
//! Where the manifest or a segment is missing or damaged, step 3 walks all rows of the table and
//! indexes those that no intact segment has. Nothing that fails verification is used.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use remora_index::segment::Segment;

use crate::{
    Position, Result, Row, Schema,
    catalog::{read_log_after, read_position, read_sources, read_tables},
    check::Problem,
    document::{RowIndexer, text_bytes},
    encode::RowFormat,
    files::SegmentFiles,
    manifest::{Manifest, TableRecord},
    snapshot::{RowReader, SegmentView, Snapshot, TableView},
    staged::settle,
    store::{Store, StoreSnapshot, StoredRows},
    synonyms::Synonyms,
    write::RequiredRows,
};

/// Text of one segment that recovery builds: bounds the memory of the building.
const SEGMENT_TEXT_BYTES: usize = 16 << 20;
/// Documents of one segment that recovery builds.
const SEGMENT_DOCUMENTS: usize = 100_000;

/// What recovery found.
pub(crate) struct Recovered {
    /// The state after the last committed batch.
    pub snapshot: Snapshot,
    /// The segment files, with those of the snapshot known.
    pub files: SegmentFiles,
    /// What was missing or damaged and has been rebuilt.
    pub damage: Vec<Problem>,
    /// Bytes of text that were indexed again.
    pub indexed_bytes: u64,
}

/// Recovers the tables of `directory` from its store. Writes nothing but what a dropped table or a
/// large batch left that was not committed, and what one staged that was.
pub(crate) fn recover(directory: &Path, store: &dyn Store) -> Result<Recovered> {
    settle(store)?;
    let rows = store.snapshot();
    let position = read_position(&*rows)?;
    let mut damage = Vec::new();
    let mut recovery = Recovery {
        manifest: usable_manifest(directory, position, &mut damage),
        files: SegmentFiles::open(directory)?,
        damage,
        indexed_bytes: 0,
        position,
    };
    let after = recovery.manifest.as_ref().map_or(Position(0), |manifest| manifest.position);
    let mut changed = read_log_after(&*rows, after)?;
    let tables = read_tables(&*rows)?;
    let defined: BTreeSet<u32> = tables.iter().map(|(number, _)| *number).collect();
    let sources = read_sources(&*rows)?;
    let mut snapshot = Snapshot { position, sources, tables: Default::default() };
    for (number, format) in tables {
        let changed = changed.remove(&number).unwrap_or_default();
        let name = Arc::from(format.schema().name.as_str());
        let view = recovery.recover_table(number, format, &rows, &changed)?;
        snapshot.tables.insert(name, Arc::new(view));
    }
    // A crash between the end of a definition and the end of its rows leaves rows without a table.
    let mut orphans = store.row_tables().into_iter().filter(|number| !defined.contains(number));
    orphans.try_for_each(|number| store.drop_rows(number))?;
    let Recovery { manifest, mut files, damage, indexed_bytes, .. } = recovery;
    // A large batch that was not committed leaves files that no manifest names.
    if let Some(manifest) = manifest {
        files.remove_all_but(manifest)?;
    }
    Ok(Recovered { snapshot, files, damage, indexed_bytes })
}

/// The manifest, if it can be trusted; what stands against it goes to `damage`.
fn usable_manifest(
    directory: &Path,
    position: Position,
    damage: &mut Vec<Problem>,
) -> Option<Manifest> {
    match Manifest::read(directory) {
        Ok(Some(manifest)) if manifest.position <= position => return Some(manifest),
        Ok(None) if position == Position(0) => return None,
        Ok(Some(manifest)) => damage.push(Problem::of_database(format!(
            "the manifest is of batch {}, the row store ends with {}",
            manifest.position.0, position.0
        ))),
        Ok(None) => damage.push(Problem::of_database("the manifest is missing".to_owned())),
        Err(error) => damage.push(Problem::of_database(error.to_string())),
    }
    None
}

struct Recovery {
    manifest: Option<Manifest>,
    files: SegmentFiles,
    damage: Vec<Problem>,
    indexed_bytes: u64,
    /// The last committed batch.
    position: Position,
}

impl Recovery {
    fn recover_table(
        &mut self,
        number: u32,
        format: Arc<RowFormat>,
        store: &Arc<dyn StoreSnapshot>,
        changed: &BTreeSet<Vec<u8>>,
    ) -> Result<TableView> {
        let schema = Arc::clone(format.schema());
        let rows = StoredRows::new(Arc::clone(store), number, Arc::clone(&format));
        let damages = self.damage.len();
        let indexed_from = Position(format.history().indexed_from);
        let outdated = self.manifest.as_ref().is_some_and(|m| m.position < indexed_from);
        let mut segments = match outdated {
            true => Vec::new(),
            false => self.load_segments(number, &schema),
        };
        for view in &mut segments {
            if let Some(left) = view.without(changed.iter().map(Vec::as_slice), &schema) {
                *view = left;
            }
        }
        segments.retain(|view| view.live_count() > 0);
        let mut indexer = Indexer::new(&schema)?;
        if outdated || self.manifest.is_none() || self.damage.len() > damages {
            tracing::warn!(table = %schema.name, "the index is rebuilt from the rows");
            rows.scan(&[], &mut |key, row| {
                if !segments.iter().any(|view| view.has_live(key)) {
                    indexer.add(key, &row)?;
                }
                Ok(true)
            })?;
        } else {
            for key in changed {
                if let Some(row) = rows.get(key, &|_| true)? {
                    indexer.add(key, &row)?;
                }
            }
        }
        self.indexed_bytes += indexer.all_text_bytes;
        let built = indexer.finish()?;
        segments.extend(built.into_iter().map(|new| SegmentView::new(new, None, &schema)));
        let (defined, changed, rows) = (Position(0), self.position, Arc::new(rows));
        let synonyms = Arc::new(Synonyms::of(&schema));
        Ok(TableView {
            number,
            schema,
            synonyms,
            format,
            defined,
            changed,
            segments,
            rows,
            staged: None,
            activity: Arc::default(),
        })
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
}

/// Builds segments of bounded size from rows in key order.
pub(crate) struct Indexer<'s> {
    schema: &'s Schema,
    required: RequiredRows,
    current: RowIndexer<'s>,
    current_text_bytes: usize,
    /// Bytes of text of all of them.
    pub all_text_bytes: u64,
    built: Vec<Arc<Segment>>,
}

impl<'s> Indexer<'s> {
    /// For rows of a table.
    pub fn new(schema: &'s Schema) -> Result<Self> {
        Ok(Self {
            schema,
            required: RequiredRows::of(schema)?,
            current: RowIndexer::new(schema),
            current_text_bytes: 0,
            all_text_bytes: 0,
            built: Vec::new(),
        })
    }

    /// Takes the next row, if it is in the table's view.
    pub fn add(&mut self, key: &[u8], row: &Row) -> Result<()> {
        if !self.required.accept(row) {
            return Ok(());
        }
        self.current.add(key, row)?;
        let bytes = text_bytes(self.schema, row);
        self.current_text_bytes += bytes;
        self.all_text_bytes += bytes as u64;
        let full = self.current_text_bytes >= SEGMENT_TEXT_BYTES;
        if full || self.current.documents() >= SEGMENT_DOCUMENTS { self.cut() } else { Ok(()) }
    }

    fn cut(&mut self) -> Result<()> {
        let full = std::mem::replace(&mut self.current, RowIndexer::new(self.schema));
        self.current_text_bytes = 0;
        self.built.extend(full.finish()?.map(Arc::new));
        Ok(())
    }

    /// The segments.
    pub fn finish(mut self) -> Result<Vec<Arc<Segment>>> {
        self.cut()?;
        Ok(self.built)
    }
}
