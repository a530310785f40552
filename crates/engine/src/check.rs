//! Checks a data directory: whether the index agrees with the rows.
//!
//! The directory is recovered as at a start; the report lists what recovery found missing or damaged. Then each row
//! must be live in exactly one segment, each live document must have its row, and each segment must equal, byte for
//! byte, a segment built from the rows of its live keys. Unreadable parts are listed, and the check continues after
//! them.

use std::{collections::BTreeSet, path::Path};

use crate::{
    Error, Position, Result, Row, Schema, WordsDef,
    indexing::{RequiredRows, RowIndexer, index_specs, path_specs},
    merge::{merge_views, write_recovered},
    recovery::{Problem, Purpose, Recovered, recover, scan_readable},
    snapshot::{SegmentView, TableView},
    storage::{manifest::Manifest, rows::DAMAGED_ROWS, segment_files::SegmentFiles, store::Store},
    unique::{are_indexed, check_paths, unique_places},
};

/// The most problems listed for one table; further ones are only counted.
const PROBLEMS_PER_TABLE: usize = 20;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The tables, by name.
    pub tables: Vec<CheckedTable>,
    /// The problems that were found.
    pub problems: Vec<Problem>,
    /// What could not be verified because there is nothing to compare it with.
    pub trusted: Vec<String>,
}

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The check before the repair.
    pub before: CheckReport,
    /// The check after the repair. Problems listed here could not be repaired.
    pub after: CheckReport,
}

/// A checked table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedTable {
    /// The name of the table.
    pub name: String,
    /// The number of readable rows in the table's view.
    pub rows: u64,
    /// The number of segments.
    pub segments: usize,
}

/// The progress of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckStep<'c> {
    /// The table being checked.
    pub table: &'c str,
    /// The number of the next segment, from 0.
    pub segment: usize,
    /// The number of segments of the table.
    pub segments: usize,
}

/// Checks the directory against its store.
pub(crate) fn check(
    directory: &Path,
    store: &dyn Store,
    progress: &mut dyn FnMut(CheckStep<'_>),
) -> Result<CheckReport> {
    Ok(check_tables(directory, store, progress)?.0)
}

/// Checks the directory, rebuilds what it can, and checks it again.
pub(crate) fn repair(
    directory: &Path,
    store: &dyn Store,
    progress: &mut dyn FnMut(CheckStep<'_>),
) -> Result<Repaired> {
    let (before, wrong) = check_tables(directory, store, progress)?;
    if before.problems.is_empty() {
        return Ok(Repaired { after: before.clone(), before });
    }
    // Rows without a table may be the remains of a table whose definition was lost.
    let is_whole = before.problems.iter().all(|one| one.can_be_rebuilt || one.table.is_some());
    let purpose = Purpose::Repair { distrusted: &wrong, is_whole };
    let Recovered { snapshot, mut files, .. } = recover(directory, store, purpose)?;
    write_recovered(directory, store, &mut files, &snapshot)?;
    drop(snapshot);
    let after = check(directory, store, progress)?;
    Ok(Repaired { before, after })
}

/// The report for a directory whose row store cannot be opened or has lost its table definitions: that problem, and
/// the damaged segment files.
pub(crate) fn check_without_rows(directory: &Path, what: String) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    report.problems.push(Problem::lost(None, format!("{what}{DAMAGED_ROWS}")));
    let mut files = SegmentFiles::open(directory)?;
    match Manifest::read(directory) {
        Ok(manifest) => {
            for (record, _) in manifest
                .iter()
                .flat_map(|manifest| &manifest.tables)
                .flat_map(|table| &table.segments)
            {
                if let Err(error) = files.load(record) {
                    report.problems.push(Problem::lost(None, error.to_string()));
                }
            }
        }
        Err(error) => report.problems.push(Problem::lost(None, error.to_string())),
    }
    report.trusted.push(
        "that the segments match the rows: no row could be read. The segment files that \
         are not listed are intact"
            .to_owned(),
    );
    Ok(report)
}

/// The report, and the tables whose segments differ from their rows.
fn check_tables(
    directory: &Path,
    store: &dyn Store,
    progress: &mut dyn FnMut(CheckStep<'_>),
) -> Result<(CheckReport, BTreeSet<u32>)> {
    let recovered = recover(directory, store, Purpose::Check)?;
    let trusted = not_verified(&recovered);
    let Recovered { snapshot, damage, .. } = recovered;
    let mut report = CheckReport { tables: Vec::new(), problems: damage, trusted };
    let mut wrong = BTreeSet::new();
    let names: BTreeSet<_> = snapshot.tables.keys().collect();
    for table in names.into_iter().filter_map(|name| snapshot.tables.get(name)) {
        let mut problems = Problems::new(table);
        let rows = check_rows(table, &mut problems)?;
        for (segment, view) in table.segments.iter().enumerate() {
            let (table_name, segments) = (table.schema.name.as_str(), table.segments.len());
            progress(CheckStep { table: table_name, segment, segments });
            if let Err(error) = check_segment(table, segment, view, &mut problems) {
                problems.add(format!("segment {segment}: {error}"));
            }
        }
        report.trusted.extend(check_unique(table, &mut problems)?);
        let (name, segments) = (table.schema.name.clone(), table.segments.len());
        report.trusted.extend(columns_of_rows_alone(&table.schema));
        report.tables.push(CheckedTable { name, rows, segments });
        if problems.some_can_be_rebuilt {
            wrong.insert(table.number);
        }
        let found = problems.finish();
        // Recovery has already reported unreadable rows of tables that it rebuilt.
        let news: Vec<_> = found.into_iter().filter(|one| !report.problems.contains(one)).collect();
        report.problems.extend(news);
    }
    Ok((report, wrong))
}

/// Descriptions of what the check could not verify.
fn not_verified(recovered: &Recovered) -> Vec<String> {
    let mut trusted = Vec::new();
    let end = recovered.snapshot.position;
    match recovered.manifest {
        Some(at) if at < end => trusted.push(format!(
            "that the row store ends with batch {}: the manifest confirms only the batches up to \
             {}, and a journal that lost its last batches looks like one without them",
            end.0, at.0
        )),
        None if end > Position(0) => trusted.push(format!(
            "that the row store ends with batch {}: there is no manifest to confirm it",
            end.0
        )),
        _ => {}
    }
    trusted.extend(recovered.unproven_tables.iter().map(|table| {
        format!(
            "that no row of table {table:?} is missing: some of its segments are missing, so \
             their rows could not be compared"
        )
    }));
    trusted
}

/// The columns that no segment contains: there is nothing to compare their values with.
fn columns_of_rows_alone(schema: &Schema) -> Option<String> {
    let in_segments = |place: usize| {
        schema.primary_key.contains(&place)
            || schema.texts.iter().any(|text| text.columns.contains(&place))
    };
    let columns = schema.columns.iter().enumerate();
    let alone = columns.filter(|(place, column)| !column.indexed && !in_segments(*place));
    let names: Vec<&str> = alone.map(|(_, column)| column.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let (table, names) = (&schema.name, names.join(", "));
        format!(
            "that the values of {names} in table {table:?} are right: no index has these \
             columns, so only the row store's own checksums protect them"
        )
    })
}

/// Checks unique paths for duplicates; returns what could not be verified.
fn check_unique(table: &TableView, problems: &mut Problems<'_>) -> Result<Option<String>> {
    let schema = &table.schema;
    if !are_indexed(schema, &table.segments, unique_places(schema)) {
        let name = &schema.name;
        return Ok(Some(format!(
            "that the values of table {name:?} at unique paths are unique: not all rows are \
             indexed by these paths yet"
        )));
    }
    match check_paths(table, unique_places(schema)) {
        Err(error @ Error::NotUnique { .. }) => problems.add_lost(error.to_string()),
        // Unreadable segments were reported above.
        Err(Error::Corrupt(_)) | Ok(()) => {}
        Err(other) => return Err(other),
    }
    Ok(None)
}

/// Checks that each row of the view is live in exactly one segment, and that nothing else is live.
fn check_rows(table: &TableView, problems: &mut Problems<'_>) -> Result<u64> {
    let required = RequiredRows::of(&table.schema)?;
    let (mut rows, mut unreadable) = (0, Vec::new());
    let visit = &mut |key: &[u8], row: Row| {
        let expected = usize::from(required.accept(&row));
        rows += expected as u64;
        let found = table.segments.iter().filter(|view| view.has_live(key)).count();
        if found != expected {
            problems.add(format!("key {key:02x?} is in {found} segments, not in {expected}"));
        }
        Ok(true)
    };
    scan_readable(&*table.rows, &table.segments, visit, &mut |error| match error {
        Error::Corrupt(what) => {
            unreadable.push(what);
            Ok(())
        }
        other => Err(other),
    })?;
    if rows != table.live_count() && unreadable.is_empty() {
        problems.add(format!(
            "the segments have {} live documents, and the table has {rows} rows",
            table.live_count()
        ));
    }
    unreadable.into_iter().for_each(|what| problems.add_lost(what));
    Ok(rows)
}

/// Checks that the segment, without its deleted documents, equals one built from the rows.
fn check_segment(
    table: &TableView,
    number: usize,
    view: &SegmentView,
    problems: &mut Problems<'_>,
) -> Result<()> {
    let mut rebuilt = RowIndexer::as_in(&table.schema, &view.segment);
    let mut key = Vec::new();
    let mut unreadable = 0;
    for doc in (0..view.segment.doc_count()).filter(|&doc| !view.is_deleted(doc)) {
        key.clear();
        view.segment.keys().read(doc, &mut key);
        match table.rows.get(&key, None, &|_| true) {
            Ok(Some(row)) => rebuilt.add(&key, &row)?,
            Ok(None) => problems.add(format!("segment {number}: key {key:02x?} has no row")),
            Err(Error::Corrupt(_)) => unreadable += 1,
            Err(other) => return Err(other),
        }
    }
    if unreadable > 0 {
        let what =
            format!("segment {number} was not compared: {unreadable} of its rows cannot be read");
        problems.add_lost(what);
        return Ok(());
    }
    let rebuilt = rebuilt.finish()?;
    let merged = merge_views(&table.schema, std::slice::from_ref(view))?;
    let same = match (&rebuilt, &merged) {
        (Some(rebuilt), Some(merged)) => rebuilt.bytes()? == merged.bytes()?,
        (None, None) => true,
        _ => false,
    };
    if !same {
        problems.add(format!("segment {number} differs from its rows"));
    }
    let specs = index_specs(&table.schema);
    let mut indexes = specs.iter().filter_map(|spec| view.segment.index(spec));
    if !indexes.all(|index| index.is_right()) {
        problems
            .add(format!("segment {number} has an index that is not in the order of its columns"));
    }
    let of_columns = table.schema.texts.iter().filter_map(|text| view.segment.text(text.id));
    let specs = path_specs(&table.schema);
    let of_paths = specs.iter().filter_map(|spec| view.segment.path_texts(spec));
    for text in of_columns.chain(of_paths) {
        match text.has_right_neighbours() {
            Ok(true) => {}
            Ok(false) => problems.add(format!(
                "segment {number} has lists of neighbours that do not match its texts"
            )),
            Err(error) => problems.add(format!("segment {number}: {error}")),
        }
    }
    check_pairs(table, number, view, problems);
    Ok(())
}

/// Checks the lists of pairs of a segment's words against their postings.
fn check_pairs(table: &TableView, number: usize, view: &SegmentView, problems: &mut Problems<'_>) {
    let id = table.schema.words.as_ref().map(WordsDef::segment_id);
    let Some(words) = id.and_then(|id| view.segment.words(id)) else { return };
    match words.has_right_pairs() {
        Ok(true) => {}
        Ok(false) => {
            problems.add(format!("segment {number} has lists of pairs that do not match its words"))
        }
        Err(error) => problems.add(format!("segment {number}: {error}")),
    }
}

/// The problems of one table; only a limited number is listed.
struct Problems<'t> {
    table: &'t TableView,
    listed: Vec<Problem>,
    unlisted: u64,
    /// Whether a repair can fix some of them, listed or not.
    some_can_be_rebuilt: bool,
    /// Whether some of those not listed cannot be fixed.
    unlisted_lost: bool,
}

impl<'t> Problems<'t> {
    fn new(table: &'t TableView) -> Self {
        Self {
            table,
            listed: Vec::new(),
            unlisted: 0,
            some_can_be_rebuilt: false,
            unlisted_lost: false,
        }
    }

    fn add(&mut self, what: String) {
        self.push(Problem::of_table(&self.table.schema.name, what));
    }

    fn add_lost(&mut self, what: String) {
        self.push(Problem::lost(Some(&self.table.schema.name), what));
    }

    fn push(&mut self, problem: Problem) {
        self.some_can_be_rebuilt |= problem.can_be_rebuilt;
        if self.listed.len() < PROBLEMS_PER_TABLE {
            self.listed.push(problem);
        } else {
            self.unlisted += 1;
            self.unlisted_lost |= !problem.can_be_rebuilt;
        }
    }

    fn finish(mut self) -> Vec<Problem> {
        if self.unlisted > 0 {
            let what = format!("and {} more problems", self.unlisted);
            let more = Problem::of_table(&self.table.schema.name, what);
            self.listed.push(Problem { can_be_rebuilt: !self.unlisted_lost, ..more });
        }
        self.listed
    }
}
