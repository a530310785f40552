//! The merge policy: size-tiered compaction with a factor of eight.
//!
//! Segments below [`TIER_BYTES`] are in tier 0, those below eight times that in tier 1, and so on. When a tier has
//! six segments, they and all smaller ones are merged into one. Merges of upper tiers are expensive, so they wait
//! until the table has [`WIDE`] segments or is not written to any more. The lowest full tier, which removes the
//! most segments for its bytes, is merged first. So a load of large batches is merged once, with all segments that
//! exist by then, and not once for each tier. (40,000 appends of 3 KB: at most 27 segments, each byte merged 4.9
//! times. 300 appends of 500 KB: 27 segments, each byte merged once.) If merges of the upper tiers come too late,
//! the quick thread and finally the writer itself do some: see [`NEARLY_CROWDED`] and [`Size::Relief`]. A quiet
//! table is merged further, because each look-up asks every segment: see [`QUIET_SHARE`]. It is quiet after some
//! seconds without a change, or once searches since its last change have cost as much as that merge.

use std::time::Instant;

use crate::{
    Options,
    indexing::{lacks_an_index, stored_indexes},
    snapshot::{Claims, SegmentView, TableView},
};

/// Segments of fewer bytes are in tier 0.
const TIER_BYTES: u64 = 32 << 10;
/// The ratio of sizes between tiers.
const FACTOR: u64 = 8;
/// This many segments of one tier are merged.
const FULL_TIER: usize = 6;
/// In a table with fewer segments, upper tiers are not merged while it is written to.
const WIDE: usize = 28;
/// Merges up to this tier are small and belong to the quick thread.
const LAST_SMALL_TIER: u32 = 1;
/// With this many segments, the quick thread also merges the next tier: the other thread may be busy with a long
/// merge of another table until [`SEGMENTS_MAX`] is reached.
const NEARLY_CROWDED: usize = 40;
/// In a quiet table a segment is merged with all smaller ones unless it has more than this many times their bytes.
/// Each byte is then merged about five times while a table grows by a factor of eight, and few segments are left.
const QUIET_SHARE: u64 = 4;
/// The assumed size of a document whose paths are indexed from its row, which may be far larger than its part of a
/// segment.
const PATH_ROW_BYTES: u64 = 64;
/// From this many segments on, the writer of a table pauses: it merges, or waits for merges (backpressure). Segments
/// near the size limit do not count.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// The size limit of merged segments. It is far below the format's offset limits, and bounds the memory of a
/// merge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// Bytes of a segment.
    pub bytes: u64,
    /// Documents of a segment.
    pub documents: u64,
}

impl Limit {
    /// The limit by a database's options.
    pub fn of(options: &Options) -> Self {
        Self { bytes: options.max_segment_bytes, documents: options.max_segment_documents }
    }

    /// Whether a segment of this size is allowed.
    pub fn allows(&self, (bytes, documents): (u64, u64)) -> bool {
        bytes <= self.bytes && documents <= self.documents
    }
}

/// The bytes and documents of the live part of a segment.
pub(super) fn live_size(view: &SegmentView) -> (u64, u64) {
    let (all, live) = (u128::from(view.segment.doc_count()), u64::from(view.live_count()));
    let bytes = u128::from(view.bytes()) * u128::from(live) / all.max(1);
    (bytes as u64, live)
}

pub(super) fn sum(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (one.0 + other.0, one.1 + other.1)
}

/// Groups all segments of a table so that each group fits into one segment: first-fit, the largest first.
pub(crate) fn groups(views: &[SegmentView], limit: &Limit) -> Vec<Vec<SegmentView>> {
    let mut views: Vec<&SegmentView> = views.iter().collect();
    views.sort_by_key(|view| std::cmp::Reverse(live_size(view)));
    let mut groups: Vec<((u64, u64), Vec<SegmentView>)> = Vec::new();
    for view in views {
        let size = live_size(view);
        match groups.iter_mut().find(|(total, _)| limit.allows(sum(*total, size))) {
            Some((total, group)) => {
                *total = sum(*total, size);
                group.push(view.clone());
            }
            None => groups.push((size, vec![view.clone()])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// A class of merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Merges that take milliseconds.
    Small,
    /// The others.
    Large,
    /// Large merges of a quiet table, however few segments it has.
    Idle,
    /// Merges by a writer that would otherwise wait: the quickest of the small ones, and one tier more.
    Relief,
}

impl Size {
    /// Whether this class includes merges of the tier, in a table with so many segments.
    fn takes(self, tier: u32, segments: usize) -> bool {
        match self {
            Self::Small if segments < NEARLY_CROWDED => tier <= LAST_SMALL_TIER,
            Self::Small | Self::Relief => tier <= LAST_SMALL_TIER + 1,
            Self::Large | Self::Idle => tier > LAST_SMALL_TIER,
        }
    }
}

/// The indexes of a table's segments to be merged next; `None` if there is nothing to do.
pub(crate) fn plan(
    table: &TableView,
    claims: &Claims<'_>,
    size: Size,
    limit: &Limit,
) -> Option<Vec<usize>> {
    let now = Instant::now();
    let free: Vec<usize> = (0..table.segments.len())
        .filter(|&index| {
            let segment = &table.segments[index].segment;
            !claims.has(segment) && !table.activity.holds_back(segment, &table.segments, now)
        })
        .collect();
    let bytes: Vec<u64> = free.iter().map(|&index| table.segments[index].bytes()).collect();
    let chosen = full_tier(&bytes, size, table.segments.len())
        .or_else(|| (size == Size::Idle).then(|| similar(&bytes)).flatten());
    let chosen = chosen.map(|chosen| chosen.into_iter().map(|i| free[i]).collect());
    let chosen = chosen.and_then(|chosen| within(table, chosen, limit));
    let alone = || mostly_deleted(table, &free, size).or_else(|| unindexed(table, &free, size));
    chosen.or_else(|| alone().map(|index| vec![index]))
}

/// As many of the chosen segments as fit into one, the smallest first.
fn within(table: &TableView, mut chosen: Vec<usize>, limit: &Limit) -> Option<Vec<usize>> {
    let mut total = (0, 0);
    chosen.retain(|&index| {
        let view = &table.segments[index];
        let size = (view.bytes(), u64::from(view.segment.doc_count()));
        total = sum(total, size);
        limit.allows(total)
    });
    (chosen.len() > 1).then_some(chosen)
}

/// Whether a merge of the table is due for any thread, ignoring claims.
pub(crate) fn is_merge_due(table: &TableView, limit: &Limit) -> bool {
    let due = |size| plan(table, &Claims::none(), size, limit).is_some();
    due(Size::Small) || due(Size::Large)
}

/// Whether the table has so many segments that its writer must wait.
pub(crate) fn is_crowded(table: &TableView, limit: &Limit) -> bool {
    let mergeable = |view: &&SegmentView| {
        view.bytes() < limit.bytes / FACTOR
            && u64::from(view.segment.doc_count()) < limit.documents / FACTOR
    };
    table.segments.iter().filter(mergeable).count() >= SEGMENTS_MAX
}

/// The tier of a segment of so many bytes.
pub(crate) fn tier(bytes: u64) -> u32 {
    (bytes / TIER_BYTES).checked_ilog(FACTOR).map_or(0, |power| power + 1)
}

/// The segments of one full tier and of all tiers below it. Among small tiers the highest full one is taken; among
/// others, or if a writer waits, the lowest. `segments` is the number of the table's segments, including those
/// being merged.
fn full_tier(bytes: &[u64], size: Size, segments: usize) -> Option<Vec<usize>> {
    if size == Size::Large && bytes.len() < WIDE {
        return None;
    }
    let tiers: Vec<u32> = bytes.iter().map(|&bytes| tier(bytes)).collect();
    let count = |wanted| tiers.iter().filter(|&&tier| tier == wanted).count();
    let full = tiers.iter().copied();
    let full = full.filter(|&tier| size.takes(tier, segments) && count(tier) >= FULL_TIER);
    let last = match size {
        Size::Small => full.max()?,
        Size::Large | Size::Idle | Size::Relief => full.min()?,
    };
    let mut chosen: Vec<usize> = (0..tiers.len()).filter(|&index| tiers[index] <= last).collect();
    // Smallest first, so that the size limit leaves out the largest.
    chosen.sort_by_key(|&index| bytes[index]);
    (chosen.len() > 1).then_some(chosen)
}

/// The bytes of the segments that are merged when a table is not written to; `None` if there is nothing to merge.
pub(super) fn quiet_bytes(table: &TableView) -> Option<u64> {
    let bytes: Vec<u64> = table.segments.iter().map(SegmentView::bytes).collect();
    let chosen = similar(&bytes)?;
    Some(chosen.into_iter().filter_map(|index| bytes.get(index)).sum())
}

/// The longest list of segments, smallest first, of which the largest is not far larger than the others together.
fn similar(bytes: &[u64]) -> Option<Vec<usize>> {
    let mut chosen: Vec<usize> = (0..bytes.len()).collect();
    chosen.sort_by_key(|&index| bytes[index]);
    while let Some(last) = chosen.pop() {
        let others: u64 = chosen.iter().map(|&index| bytes[index]).sum();
        if !chosen.is_empty() && bytes[last] <= others.saturating_mul(QUIET_SHARE) {
            chosen.push(last);
            return Some(chosen);
        }
    }
    None
}

/// A segment of whose documents more than half are deleted. Merged alone, it shrinks.
fn mostly_deleted(table: &TableView, free: &[usize], size: Size) -> Option<usize> {
    free.iter().copied().find(|&index| {
        let view = &table.segments[index];
        view.deleted_count > view.live_count()
            && size.takes(tier(view.bytes()), table.segments.len())
    })
}

/// A segment that lacks an index or a path declared after it was built. Merged alone, it gets it. Segments
/// recorded as left without a path are skipped.
fn unindexed(table: &TableView, free: &[usize], size: Size) -> Option<usize> {
    let schema = &table.schema;
    if schema.indexes.is_empty() && schema.paths.is_empty() || size == Size::Relief {
        return None;
    }
    let stored = stored_indexes(schema);
    let lacks_a_path = |view: &SegmentView| {
        table.paths.iter().any(|spec| {
            !view.segment.has_path(spec) && table.activity.why_without(view, spec).is_none()
        })
    };
    free.iter().copied().find(|&index| {
        let view = &table.segments[index];
        let bytes = match lacks_a_path(view) {
            true => view.bytes().max(u64::from(view.live_count()) * PATH_ROW_BYTES),
            false if lacks_an_index(&view.segment, &stored) => view.bytes(),
            false => return false,
        };
        size.takes(tier(bytes), table.segments.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_grow_by_the_factor() {
        let tiers = [0, TIER_BYTES - 1, TIER_BYTES, 8 * TIER_BYTES - 1, 8 * TIER_BYTES];
        assert_eq!(tiers.map(tier), [0, 0, 1, 1, 2]);
    }

    /// Appends segments and merges as planned. Returns the greatest number of segments, and how
    /// often each byte was merged.
    fn append(appended: u64, bytes: u64) -> (usize, f64) {
        let (mut segments, mut merged, mut most) = (Vec::new(), 0, 0);
        for _ in 0..appended {
            segments.push(bytes);
            while let Some(mut chosen) = [Size::Small, Size::Large]
                .iter()
                .find_map(|&size| full_tier(&segments, size, segments.len()))
            {
                chosen.sort_unstable_by(|a, b| b.cmp(a));
                let sum: u64 = chosen.into_iter().map(|index| segments.remove(index)).sum();
                merged += sum;
                segments.push(sum);
            }
            most = most.max(segments.len());
        }
        let amplification = merged as f64 / (appended * bytes) as f64;
        println!("{most} segments at most, each byte merged {amplification:.1} times");
        (most, amplification)
    }

    #[test]
    fn merges_continue_after_a_load() {
        let loaded = [TIER_BYTES * 100; FULL_TIER + 1];
        assert_eq!(full_tier(&loaded, Size::Large, FULL_TIER), None);
        assert_eq!(full_tier(&loaded, Size::Small, FULL_TIER), None);
        assert_eq!(
            full_tier(&loaded, Size::Idle, FULL_TIER).map(|chosen| chosen.len()),
            Some(FULL_TIER + 1)
        );
        assert_eq!(full_tier(&loaded[2..], Size::Idle, FULL_TIER), None);
        assert_eq!(full_tier(&[1; FULL_TIER], Size::Idle, FULL_TIER), None);
    }

    #[test]
    fn idle_table_merges_segments_of_similar_size() {
        let count = |bytes: &[u64]| similar(bytes).map(|chosen| chosen.len());
        assert_eq!((count(&[]), count(&[5])), (None, None));
        assert_eq!(count(&[100, 90, 110, 95, 105]), Some(5));
        assert_eq!(count(&[1_000, 249]), None);
        assert_eq!(count(&[1_000, 250]), Some(2));
        // The largest segment is left out, and the others are merged.
        assert_eq!(count(&[10_000, 90, 110]), Some(2));
        assert_eq!(similar(&[10_000, 110, 90]), Some(vec![2, 1]));
    }

    #[test]
    fn fastest_merge_is_chosen_under_pressure() {
        let segments = [[1; FULL_TIER], [TIER_BYTES * FACTOR; FULL_TIER]].concat();
        let chosen = |size, segments: &[u64], count| {
            full_tier(segments, size, count).map(|chosen| chosen.len())
        };
        assert_eq!(chosen(Size::Relief, &segments, SEGMENTS_MAX), Some(FULL_TIER));
        assert_eq!(chosen(Size::Small, &segments, SEGMENTS_MAX), Some(2 * FULL_TIER));
        let large = &segments[FULL_TIER..];
        assert_eq!(chosen(Size::Relief, large, SEGMENTS_MAX), Some(FULL_TIER));
        assert_eq!(chosen(Size::Small, large, NEARLY_CROWDED), Some(FULL_TIER));
        assert_eq!(chosen(Size::Small, large, NEARLY_CROWDED - 1), None);
    }

    #[test]
    fn small_merges_bound_the_segment_count() {
        let mut segments = Vec::new();
        let mut most = 0;
        // A batch every 8 ms for three minutes.
        for _ in 0..22_500 {
            segments.push(3_000);
            while let Some(mut chosen) = full_tier(&segments, Size::Small, segments.len()) {
                chosen.sort_unstable_by(|a, b| b.cmp(a));
                let sum: u64 = chosen.into_iter().map(|index| segments.remove(index)).sum();
                segments.push(sum);
            }
            most = most.max(segments.len());
        }
        assert!(most < SEGMENTS_MAX, "{most}");
    }

    #[test]
    fn segments_stay_few_and_merges_cheap() {
        for (appended, bytes, merges_max) in [(40_000, 3_000, 5.0), (300, 500_000, 1.0)] {
            let (most, amplification) = append(appended, bytes);
            assert!(most <= FULL_TIER * 5, "{most}");
            assert!(amplification <= merges_max, "{amplification}");
        }
    }
}
