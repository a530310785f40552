//! Checks of unique paths: finds the row that has a value, and rows that share one.
//!
//! Both use the segments' indexes of the path, which contain every live row, so no document is
//! read.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Bound};

use remora_index::paths::{PathEntries, PathIndex, PathSpec};

use crate::{
    Error, PathDef, RequestPart, Result, Schema,
    encode::{
        AFTER_SCALARS, FIRST_SCALAR, TOO_MANY, are_scalars, decode_key, is_scalar, shown,
        shown_parts,
    },
    indexing::path_specs,
    snapshot::{SegmentView, TableView},
};

/// The places of a table's unique paths.
pub(crate) fn unique_places(schema: &Schema) -> impl Iterator<Item = usize> + '_ {
    let paths = schema.paths.iter().enumerate();
    paths.filter(|(_, path)| path.unique).map(|(place, _)| place)
}

/// Whether an entry of a path's index, or of an index of several paths, is compared with those of other rows.
pub(crate) fn is_compared(path: &PathDef, value: &[u8]) -> bool {
    match path.is_joint() {
        true => are_scalars(value),
        false => is_scalar(value),
    }
}

/// Refuses a row that has so many combinations of values at unique paths that its entry has none of them.
pub(crate) fn check_combinations(
    schema: &Schema,
    path: &PathDef,
    value: &[u8],
    key: &[u8],
) -> Result<()> {
    if !path.is_joint() || value != TOO_MANY {
        return Ok(());
    }
    let key: Vec<String> = decode_key(schema, key)?.iter().map(ToString::to_string).collect();
    let message = format!(
        "the document ({}) of {:?} has too many combinations of values at {} to be unique",
        key.join(", "),
        schema.name,
        names_of(path)
    );
    Err(Error::request(RequestPart::Row, message))
}

fn names_of(path: &PathDef) -> String {
    path.paths().map(|names| names.join(".")).collect::<Vec<_>>().join(", ")
}

/// Whether every segment has the indexes of these paths.
pub(crate) fn are_indexed(
    schema: &Schema,
    segments: &[SegmentView],
    mut places: impl Iterator<Item = usize>,
) -> bool {
    let specs = path_specs(schema);
    let has = |spec: &PathSpec| segments.iter().all(|view| view.segment.has_path(spec));
    places.all(|place| specs.get(place).is_some_and(has))
}

/// The key of a live row with this value at a path, ignoring keys for which `is_passed` is true. Cost: one search per
/// segment.
pub(crate) fn holder(
    segments: &[SegmentView],
    spec: &PathSpec,
    value: &[u8],
    is_passed: &dyn Fn(&[u8]) -> bool,
) -> Result<Option<Vec<u8>>> {
    let mut key = Vec::new();
    for view in segments {
        let found =
            index_of(view, spec)?.select([(Bound::Included(value), Bound::Included(value))])?;
        for doc in found.iter().filter(|doc| !view.is_deleted(*doc)) {
            key.clear();
            view.segment.keys().read(doc, &mut key);
            if !is_passed(&key) {
                return Ok(Some(key));
            }
        }
    }
    Ok(None)
}

/// Checks that no two rows of a table have the same value at one of these paths. Cost: reads each value.
pub(crate) fn check_paths(view: &TableView, places: impl Iterator<Item = usize>) -> Result<()> {
    check_segments(&view.schema, places, &view.segments, &[])
}

/// Checks that no row of the `new` segments shares a value at one of these paths with another row, in them or in the
/// other segments. Cost: reads each value of the new segments; if there are others, searches each of them per value.
pub(crate) fn check_segments(
    schema: &Schema,
    mut places: impl Iterator<Item = usize>,
    new: &[SegmentView],
    others: &[SegmentView],
) -> Result<()> {
    let specs = path_specs(schema);
    places.try_for_each(|place| match specs.get(place) {
        Some(spec) => check_path(schema, place, spec, new, others),
        None => Ok(()),
    })
}

fn check_path(
    schema: &Schema,
    place: usize,
    spec: &PathSpec,
    new: &[SegmentView],
    others: &[SegmentView],
) -> Result<()> {
    let Some(path) = schema.paths.get(place) else { return Ok(()) };
    let mut walks = Vec::with_capacity(new.len());
    for view in new {
        if path.is_joint() {
            check_all_combinations(schema, path, spec, view)?;
        }
        let entries = index_of(view, spec)?.from(Bound::Included(FIRST_SCALAR))?;
        walks.push(Walk { view, path, entries });
    }
    let mut heap = BinaryHeap::with_capacity(walks.len());
    for (at, walk) in walks.iter_mut().enumerate() {
        heap.extend(walk.next()?.map(|(value, doc)| Reverse((value, at, doc))));
    }
    let key = |at: usize, doc: u32| {
        let mut key = Vec::new();
        if let Some(view) = new.get(at) {
            view.segment.keys().read(doc, &mut key);
        }
        key
    };
    let mut last: Option<(Vec<u8>, usize, u32)> = None;
    while let Some(Reverse((value, at, doc))) = heap.pop() {
        if let Some(walk) = walks.get_mut(at) {
            heap.extend(walk.next()?.map(|(value, doc)| Reverse((value, at, doc))));
        }
        if let Some((before, other_at, other)) = &last
            && *before == value
        {
            let other = key(*other_at, *other);
            return Err(not_unique(schema, place, &value, [&other, &key(at, doc)]));
        }
        if !others.is_empty()
            && let Some(other) = holder(others, spec, &value, &|_| false)?
        {
            return Err(not_unique(schema, place, &value, [&other, &key(at, doc)]));
        }
        last = Some((value, at, doc));
    }
    Ok(())
}

/// Refuses a live row of a segment that has too many combinations of values.
fn check_all_combinations(
    schema: &Schema,
    path: &PathDef,
    spec: &PathSpec,
    view: &SegmentView,
) -> Result<()> {
    let too_many = (Bound::Included(TOO_MANY), Bound::Unbounded);
    let without = index_of(view, spec)?.select([too_many])?;
    let Some(doc) = without.iter().find(|doc| !view.is_deleted(*doc)) else { return Ok(()) };
    let mut key = Vec::new();
    view.segment.keys().read(doc, &mut key);
    check_combinations(schema, path, TOO_MANY, &key)
}

/// Iterates over a segment's values of a path in live rows.
struct Walk<'v> {
    view: &'v SegmentView,
    path: &'v PathDef,
    entries: PathEntries<'v>,
}

impl Walk<'_> {
    fn next(&mut self) -> Result<Option<(Vec<u8>, u32)>> {
        while let Some((value, doc)) = self.entries.next()? {
            if value >= AFTER_SCALARS {
                return Ok(None);
            }
            if is_compared(self.path, value) && !self.view.is_deleted(doc) {
                return Ok(Some((value.to_vec(), doc)));
            }
        }
        Ok(None)
    }
}

fn index_of<'v>(view: &'v SegmentView, spec: &PathSpec) -> Result<&'v PathIndex> {
    view.segment.path(spec).ok_or_else(|| {
        Error::Conflict("a path is not indexed yet: wait until it is, and try again".to_owned())
    })
}

/// The error for two rows with the same value.
pub(crate) fn not_unique(schema: &Schema, place: usize, value: &[u8], keys: [&[u8]; 2]) -> Error {
    let path = schema.paths.get(place);
    let shown = match path.is_some_and(PathDef::is_joint) {
        true => shown_parts(value),
        false => shown(value),
    };
    let path = path.map(names_of);
    let [one, other] = keys.map(|key| decode_key(schema, key));
    match (one, other) {
        (Ok(one), Ok(other)) => Error::NotUnique {
            table: schema.name.clone(),
            path: path.unwrap_or_default(),
            value: shown,
            keys: Box::new([one, other]),
        },
        (Err(error), _) | (_, Err(error)) => error,
    }
}
