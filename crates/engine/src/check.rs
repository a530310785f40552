//! The check of a data directory: does the index say what the rows say?
//!
//! The directory is recovered as at a start, with what recovery found missing or damaged on the
//! report. Then each row must be live in exactly one segment, each live document must have its
//! row, and each segment must be, byte for byte, what indexing the rows of its live keys gives.

use std::{collections::BTreeSet, fmt, path::Path};

use crate::{
    Result,
    document::RowIndexer,
    merge::merge_views,
    recovery::{Recovered, recover},
    snapshot::{SegmentView, TableView},
    store::Store,
    write::RequiredRows,
};

/// Problems of one table that are told one by one; the others are counted.
const PROBLEMS_PER_TABLE: usize = 20;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The tables, by name.
    pub tables: Vec<CheckedTable>,
    /// What is wrong; empty if nothing is.
    pub problems: Vec<Problem>,
}

/// One table that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedTable {
    /// Its name.
    pub name: String,
    /// Rows in its view.
    pub rows: u64,
    /// Segments.
    pub segments: usize,
}

/// Something that is not as it was written. All of it is mended by the next start, which rebuilds
/// the index from the rows, unless the row store itself is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The table, if it is about one.
    pub table: Option<String>,
    /// What is wrong and in which file.
    pub what: String,
}

/// How far a check is.
#[derive(Clone, Copy, Debug)]
pub struct CheckStep<'c> {
    /// The table.
    pub table: &'c str,
    /// The segment that is compared next, from 0.
    pub segment: usize,
    /// How many the table has.
    pub segments: usize,
}

impl Problem {
    pub(crate) fn of_database(what: String) -> Self {
        Self { table: None, what }
    }

    pub(crate) fn of_table(table: &str, what: String) -> Self {
        Self { table: Some(table.to_owned()), what }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some(table) => write!(out, "table {table:?}: {}", self.what),
            None => out.write_str(&self.what),
        }
    }
}

/// Checks the directory against its store.
pub(crate) fn check(
    directory: &Path,
    store: &dyn Store,
    progress: &mut dyn FnMut(CheckStep<'_>),
) -> Result<CheckReport> {
    let Recovered { snapshot, damage, .. } = recover(directory, store)?;
    let mut report = CheckReport { tables: Vec::new(), problems: damage };
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
        let (name, segments) = (table.schema.name.clone(), table.segments.len());
        report.tables.push(CheckedTable { name, rows, segments });
        report.problems.extend(problems.finish());
    }
    Ok(report)
}

/// Each row of the view must be live in exactly one segment, and nothing else may be live.
fn check_rows(table: &TableView, problems: &mut Problems<'_>) -> Result<u64> {
    let required = RequiredRows::of(&table.schema)?;
    let mut rows = 0;
    table.rows.scan(&[], &mut |key, row| {
        let expected = usize::from(required.accept(&row));
        rows += expected as u64;
        let found = table.segments.iter().filter(|view| view.has_live(key)).count();
        if found != expected {
            problems.add(format!("key {key:02x?} is in {found} segments, not in {expected}"));
        }
        Ok(true)
    })?;
    if rows != table.live_count() {
        problems.add(format!("{} documents are live for {rows} rows", table.live_count()));
    }
    Ok(rows)
}

/// The segment without its deleted documents must equal one that is built from the rows.
fn check_segment(
    table: &TableView,
    number: usize,
    view: &SegmentView,
    problems: &mut Problems<'_>,
) -> Result<()> {
    let mut rebuilt = RowIndexer::as_in(&table.schema, &view.segment);
    let mut key = Vec::new();
    for doc in (0..view.segment.doc_count()).filter(|&doc| !view.is_deleted(doc)) {
        key.clear();
        view.segment.keys().read(doc, &mut key);
        match table.rows.get(&key, &|_| true)? {
            Some(row) => rebuilt.add(&key, &row)?,
            None => problems.add(format!("segment {number}: key {key:02x?} has no row")),
        }
    }
    let rebuilt = rebuilt.finish()?;
    let merged = merge_views(&table.schema, std::slice::from_ref(view))?;
    let same = match (&rebuilt, &merged) {
        (Some(rebuilt), Some(merged)) => rebuilt.bytes()? == merged.bytes()?,
        (None, None) => true,
        _ => false,
    };
    if !same {
        problems.add(format!("segment {number} does not hold what its rows hold"));
    }
    Ok(())
}

/// The problems of one table, bounded.
struct Problems<'t> {
    table: &'t TableView,
    told: Vec<Problem>,
    untold: u64,
}

impl<'t> Problems<'t> {
    fn new(table: &'t TableView) -> Self {
        Self { table, told: Vec::new(), untold: 0 }
    }

    fn add(&mut self, what: String) {
        if self.told.len() < PROBLEMS_PER_TABLE {
            self.told.push(Problem::of_table(&self.table.schema.name, what));
        } else {
            self.untold += 1;
        }
    }

    fn finish(mut self) -> Vec<Problem> {
        if self.untold > 0 {
            let what = format!("and {} more problems", self.untold);
            self.told.push(Problem::of_table(&self.table.schema.name, what));
        }
        self.told
    }
}
