//! A page of keys in order, after a given key: the segments' sorted keys are merged.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::snapshot::{SegmentView, TableView};

/// The first `limit` keys of live rows behind `after`. Cost: a search in each segment, and one step for each key
/// returned.
pub(super) fn keys_after(view: &TableView, after: Option<&[u8]>, limit: usize) -> Vec<Vec<u8>> {
    // The successor of `after`.
    keys_from(view, &after.map_or_else(Vec::new, |after| [after, &[0]].concat()), limit)
}

/// The first `limit` keys of live rows from a key on, that key included.
pub(super) fn keys_from(view: &TableView, from: &[u8], limit: usize) -> Vec<Vec<u8>> {
    let mut heap = BinaryHeap::with_capacity(view.segments.len());
    for (at, segment) in view.segments.iter().enumerate() {
        let start = if from.is_empty() { 0 } else { segment.segment.keys().lower_bound(from) };
        heap.extend(next(segment, start).map(|(key, doc)| Reverse((key, at, doc))));
    }
    let mut page = Vec::new();
    while page.len() < limit
        && let Some(Reverse((key, at, doc))) = heap.pop()
    {
        page.push(key);
        let segment = view.segments.get(at);
        let behind = segment.and_then(|segment| next(segment, doc.saturating_add(1)));
        heap.extend(behind.map(|(key, doc)| Reverse((key, at, doc))));
    }
    page
}

/// The least and the greatest key; `None` without rows.
pub(super) fn key_ends(view: &TableView) -> Option<(Vec<u8>, Vec<u8>)> {
    let first = keys_from(view, &[], 1).pop()?;
    let last = view.segments.iter().filter_map(|segment| {
        let doc = (0..segment.segment.doc_count()).rev().find(|doc| !segment.is_deleted(*doc))?;
        let mut key = Vec::new();
        segment.segment.keys().read(doc, &mut key);
        Some(key)
    });
    Some((first, last.max()?))
}

/// The first live document from `start` on, with its key.
fn next(view: &SegmentView, start: u32) -> Option<(Vec<u8>, u32)> {
    let doc = (start..view.segment.doc_count()).find(|doc| !view.is_deleted(*doc))?;
    let mut key = Vec::new();
    view.segment.keys().read(doc, &mut key);
    Some((key, doc))
}
