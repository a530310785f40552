//! Checks of unique paths: finds the row that has a value, and rows that share one.
//!
//! Both use the segments' indexes of the path, which contain every live row, so no document is
//! read.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Bound};

use remora_index::paths::{PathEntries, PathIndex, PathSpec};

use crate::{
    Error, Result, Schema,
    encode::{FIRST_SCALAR, decode_key, is_scalar, shown},
    indexing::path_specs,
    snapshot::{SegmentView, TableView},
};

/// The places of a table's unique paths.
pub(crate) fn unique_places(schema: &Schema) -> impl Iterator<Item = usize> + '_ {
    let paths = schema.paths.iter().enumerate();
    paths.filter(|(_, path)| path.unique).map(|(place, _)| place)
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
    let mut walks = Vec::with_capacity(new.len());
    for view in new {
        let entries = index_of(view, spec)?.from(Bound::Included(FIRST_SCALAR))?;
        walks.push(Walk { view, entries });
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

/// Iterates over a segment's values of a path in live rows.
struct Walk<'v> {
    view: &'v SegmentView,
    entries: PathEntries<'v>,
}

impl Walk<'_> {
    fn next(&mut self) -> Result<Option<(Vec<u8>, u32)>> {
        while let Some((value, doc)) = self.entries.next()? {
            if !is_scalar(value) {
                return Ok(None);
            }
            if !self.view.is_deleted(doc) {
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
    let path = schema.paths.get(place).map(|path| path.names.join("."));
    let [one, other] = keys.map(|key| decode_key(schema, key));
    match (one, other) {
        (Ok(one), Ok(other)) => Error::NotUnique {
            table: schema.name.clone(),
            path: path.unwrap_or_default(),
            value: shown(value),
            keys: Box::new([one, other]),
        },
        (Err(error), _) | (_, Err(error)) => error,
    }
}
