//! Unique paths. The writer thread checks them at the batch's place in the commit order.
//!
//! ```text
//! caller   collect the rows' values at unique paths, sorted; refuse duplicates in one batch   (prepare)
//! writer   collect them again if the paths have changed since                                (update_paths)
//!          wait for merges if a segment lacks the values of a path
//!          look up each value in every segment; rows that the batch changes do not count
//! ```
//! A path becomes unique between two groups of batches, if every segment has its values and no two rows share one.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use remora_index::paths::{PathKeys, PathSpec};

use super::writer::{Writer, find_table};
use crate::{
    Error, PathDef, RequestPart, Result, Schema,
    encode::path_values,
    indexing::path_specs,
    shared::{Built, DatabaseState, LargeCommit, PreparedTable, UniqueValue},
    snapshot::{SegmentView, Snapshot, TableView},
    unique::{
        are_indexed, check_combinations, check_segments, holder, is_compared, not_unique,
        unique_places,
    },
};

/// How long to wait for merges before checking whether they fail.
const MERGE_WAIT: Duration = Duration::from_millis(20);

impl PreparedTable {
    /// Collects the values at unique paths; refuses duplicates among these rows.
    pub(super) fn find_unique(&mut self) -> Result<()> {
        self.unique.clear();
        if unique_places(&self.schema).next().is_none() {
            return Ok(());
        }
        for (change, row) in self.changes.iter().enumerate() {
            if let Some(fitted) = &row.row {
                push_unique(&self.schema, (change, &row.key), &fitted.paths, &mut self.unique)?;
            }
        }
        self.normalize_unique()
    }

    /// Switches to the table's current paths if they changed after the batch was prepared.
    pub(super) fn update_paths(&mut self, view: &TableView) -> Result<()> {
        let schema = &view.schema;
        if Arc::ptr_eq(&self.schema, schema)
            || self.schema.paths == schema.paths
            || self.defined != view.defined
        {
            return Ok(());
        }
        let specs = path_specs(schema);
        let is_in = |place: usize, segment: &remora_index::segment::Segment| {
            specs.get(place).is_some_and(|spec| segment.has_path(spec))
        };
        if let Some(segment) = &self.segment
            && !unique_places(schema).all(|place| is_in(place, segment))
        {
            return Err(Error::Conflict(format!(
                "table {:?} has a unique path since this batch was made: send it again",
                schema.name
            )));
        }
        self.schema = Arc::clone(schema);
        self.unique.clear();
        let has_unique = unique_places(schema).next().is_some();
        let mut keys = PathKeys::default();
        for (change, row) in self.changes.iter_mut().enumerate() {
            // Errors are impossible here: rows that are not documents were refused.
            if let Some(fitted) = &mut row.row {
                let _ = path_values(&schema.paths, &fitted.row, &mut fitted.paths);
            }
            let Some(stored) = row.stored.as_ref().filter(|_| has_unique) else { continue };
            match &row.row {
                Some(fitted) => {
                    push_unique(schema, (change, &row.key), &fitted.paths, &mut self.unique)?;
                }
                None => {
                    let _ = path_values(&schema.paths, &view.format.decode(stored)?, &mut keys);
                    push_unique(schema, (change, &row.key), &keys, &mut self.unique)?;
                }
            }
        }
        self.normalize_unique()
    }

    /// Sorts the values, each once per row; refuses two rows with the same value.
    fn normalize_unique(&mut self) -> Result<()> {
        self.unique.sort_unstable();
        self.unique.dedup();
        let same = |pair: &&[UniqueValue]| match pair {
            [one, other] => one.path == other.path && one.value == other.value,
            _ => false,
        };
        let Some([one, other]) = self.unique.windows(2).find(same) else { return Ok(()) };
        let key = |at: &UniqueValue| {
            self.changes.get(at.change).map(|change| change.key.as_slice()).unwrap_or_default()
        };
        Err(not_unique(&self.schema, one.path, &one.value, [key(one), key(other)]))
    }
}

/// Appends the values of a change, whose key is given, at unique paths.
fn push_unique(
    schema: &Schema,
    (change, key): (usize, &[u8]),
    keys: &PathKeys,
    unique: &mut Vec<UniqueValue>,
) -> Result<()> {
    for path in unique_places(schema) {
        let Some(definition) = schema.paths.get(path) else { continue };
        for value in keys.of(path) {
            check_combinations(schema, definition, value, key)?;
            if is_compared(definition, value) {
                unique.push(UniqueValue { path, value: value.to_vec(), change });
            }
        }
    }
    Ok(())
}

impl Writer<'_> {
    /// Refuses rows with a value that another row has, unless the batch changes that row.
    pub(super) fn check_unique(&self, table: &PreparedTable) -> Result<()> {
        if table.unique.is_empty() {
            return Ok(());
        }
        wait_for_unique_paths(self.shared, table.number)?;
        let current = self.shared.published.load();
        let Some(view) = find_table(&current, table.number) else { return Ok(()) };
        let specs = path_specs(&view.schema);
        for UniqueValue { path, value, change } in &table.unique {
            let Some(spec) = specs.get(*path) else { continue };
            let other = holder(&view.segments, spec, value, &|key| table.changes_key(key))?;
            if let (Some(other), Some(change)) = (other, table.changes.get(*change)) {
                return Err(not_unique(&view.schema, *path, value, [&other, &change.key]));
            }
        }
        Ok(())
    }

    /// Refuses a large batch if a row of it shares a value with another row.
    pub(super) fn check_unique_large(&self, large: &mut LargeCommit) -> Result<()> {
        let current = self.shared.published.load();
        let unique: Vec<u32> = large.tables.keys().copied().collect();
        for number in unique {
            let has = |view: &TableView| unique_places(&view.schema).next().is_some();
            if find_table(&current, number).is_some_and(has)
                && let Some(built) = large.tables.get_mut(&number)
            {
                self.check_built(large.number, number, built)?;
            }
        }
        Ok(())
    }

    fn check_built(&self, staged: u32, number: u32, built: &mut Built) -> Result<()> {
        loop {
            wait_for_unique_paths(self.shared, number)?;
            let current = self.shared.published.load();
            let Some(view) = find_table(&current, number) else { return Ok(()) };
            self.read_store(|store| built.find_replaced(staged, view, store))?;
            // A merge may have exchanged a segment meanwhile.
            let Some(segments) = built.segments_with_batch(view) else { continue };
            let count = segments.len().saturating_sub(built.segments.len());
            let (others, new) = segments.split_at(count);
            return check_segments(&view.schema, unique_places(&view.schema), new, others);
        }
    }
}

/// Refuses a new unique path if two rows share a value or a segment lacks its values.
pub(super) fn check_defined(
    schema: &Schema,
    segments: &[SegmentView],
    before: Option<&TableView>,
) -> Result<()> {
    let old: Vec<PathSpec> = before.map(|view| path_specs(&view.schema)).unwrap_or_default();
    let was_unique = |spec: &PathSpec| {
        before.is_some_and(|view| {
            unique_places(&view.schema).any(|place| old.get(place) == Some(spec))
        })
    };
    let specs = path_specs(schema);
    let new: BTreeSet<usize> = unique_places(schema)
        .filter(|&place| specs.get(place).is_some_and(|spec| !was_unique(spec)))
        .collect();
    check_segments(schema, new.into_iter(), segments, &[])
}

pub(super) fn wait_for_unique_paths(shared: &DatabaseState, number: u32) -> Result<()> {
    wait_for_paths(shared, number, &|path| path.unique)
}

/// Waits until every segment of a table has the values of the wanted paths.
pub(crate) fn wait_for_paths(
    shared: &DatabaseState,
    number: u32,
    is_wanted: &dyn Fn(&PathDef) -> bool,
) -> Result<()> {
    let published = &shared.published;
    let are_there = |current: &Snapshot| {
        find_table(current, number).is_none_or(|view| {
            let paths = view.schema.paths.iter().enumerate();
            let wanted = paths.filter(|(_, path)| is_wanted(path)).map(|(place, _)| place);
            are_indexed(&view.schema, &view.segments, wanted)
        })
    };
    if are_there(&published.load()) {
        return Ok(());
    }
    let tables = BTreeSet::from([number]);
    loop {
        published.notify_work();
        if published.wait_until(Some(Instant::now() + MERGE_WAIT), are_there)? {
            return Ok(());
        }
        let current = published.load();
        if let Some(why) = find_table(&current, number).and_then(|view| why_never(view, is_wanted))
        {
            let message = format!("a path cannot be indexed until this document is changed: {why}");
            return Err(Error::request(RequestPart::Schema, message));
        }
        if published.is_merging(&tables) {
            continue;
        }
        let current = published.load();
        let failure = find_table(&current, number).and_then(|view| view.activity.merge_failure());
        if let Some(why) = failure
            && !are_there(&current)
        {
            return Err(Error::Busy(format!(
                "a path that is to be unique could not be indexed: {why}. It is tried again; if \
                 it keeps failing, restart: a damaged segment is rebuilt from the rows"
            )));
        }
    }
}

/// Why one of the paths can never be indexed in a segment; no merge changes that.
fn why_never(view: &TableView, is_wanted: &dyn Fn(&PathDef) -> bool) -> Option<String> {
    let specs = path_specs(&view.schema);
    let wanted = specs.iter().zip(&view.schema.paths).filter(|(_, path)| is_wanted(path));
    let specs: Vec<&PathSpec> = wanted.map(|(spec, _)| spec).collect();
    let mut segments = view.segments.iter();
    segments.find_map(|one| specs.iter().find_map(|spec| view.activity.why_without(one, spec)))
}
