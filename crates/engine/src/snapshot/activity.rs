//! Counters of a table's look-ups and merges since the data directory was opened.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use remora_index::{BloomCounts, paths::PathSpec, segment::Segment};

use super::SegmentView;

/// The pause before the next merge after a failure, if an input segment of the failed merge is gone
/// since.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause if nothing has changed; the pause doubles with each failure.
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// Searches wake the merge threads each time they have looked into this many more segments.
const ASKED_STEP: u64 = 1 << 14;

/// Counters of one table, shared by all its views. Updating them takes no lock.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    bloom_checks: AtomicU64,
    bloom_saves: AtomicU64,
    /// The number of segments that searches looked into, and that number at the table's last change
    /// or merge.
    asked: AtomicU64,
    asked_before: AtomicU64,
    merges: AtomicU64,
    merged_bytes: AtomicU64,
    merge_failure: Mutex<Option<MergeFailure>>,
    without_path: Mutex<Vec<UnindexedPath>>,
}

/// A segment that is left without the index of a path.
#[derive(Clone, Debug)]
struct UnindexedPath {
    segment: Weak<Segment>,
    spec: PathSpec,
    /// The document with too much at the path. The segment stays without the path while this document is live.
    doc: u32,
    why: String,
}

/// A merge that failed.
#[derive(Debug)]
struct MergeFailure {
    why: String,
    /// The input segments of the failed merge.
    inputs: Vec<Weak<Segment>>,
    at: Instant,
    /// The number of consecutive failures.
    times: u32,
}

impl MergeFailure {
    fn pause(&self, segments: &[SegmentView]) -> Duration {
        match self.inputs.iter().all(|input| is_of(input, segments)) {
            true => FIRST_PAUSE.saturating_mul(1 << self.times.min(6)).min(LAST_PAUSE),
            false => FIRST_PAUSE,
        }
    }

    /// Whether the failure is still current after these segments were merged.
    fn stands(&self, merged: &[SegmentView]) -> bool {
        let is_there = |input: &Weak<Segment>| input.strong_count() > 0;
        self.inputs.iter().all(is_there) && !self.inputs.iter().any(|input| is_of(input, merged))
    }
}

fn is_of(segment: &Weak<Segment>, views: &[SegmentView]) -> bool {
    views.iter().any(|view| std::ptr::eq(segment.as_ptr(), Arc::as_ptr(&view.segment)))
}

/// The values of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub bloom: BloomCounts,
    pub merges: u64,
    pub merged_bytes: u64,
}

impl Activity {
    /// Adds look-ups in bloom filters.
    #[inline]
    pub fn looked_up(&self, counts: BloomCounts) {
        if counts.checks > 0 {
            self.bloom_checks.fetch_add(counts.checks, Relaxed);
        }
        if counts.saves > 0 {
            self.bloom_saves.fetch_add(counts.saves, Relaxed);
        }
    }

    /// Counts a search of so many segments. Returns whether the merge threads should be woken for
    /// the table.
    #[inline]
    pub fn asked(&self, segments: usize) -> bool {
        let before = self.asked.fetch_add(segments as u64, Relaxed);
        before / ASKED_STEP != before.wrapping_add(segments as u64) / ASKED_STEP
    }

    /// Records that rows were changed or segments merged.
    pub fn changed(&self) {
        self.asked_before.store(self.asked.load(Relaxed), Relaxed);
    }

    /// The number of segment look-ups by searches since the last change or merge.
    pub fn asked_since_change(&self) -> u64 {
        // The order of the loads matters: a change in between must not make the difference
        // negative.
        let before = self.asked_before.load(Relaxed);
        self.asked.load(Relaxed).saturating_sub(before)
    }

    /// Records why a merge of these segments failed; returns whether the reason is new.
    pub fn merge_failed(&self, why: String, inputs: &[SegmentView], at: Instant) -> bool {
        let mut failure = self.merge_failure.lock();
        let before = failure.as_ref();
        let is_new = before.is_none_or(|before| before.why != why);
        let times = before.map_or(0, |before| before.times.saturating_add(1));
        let inputs = inputs.iter().map(|view| Arc::downgrade(&view.segment)).collect();
        *failure = Some(MergeFailure { why, inputs, at, times });
        is_new
    }

    /// Why the table's last merge failed, if it did.
    pub fn merge_failure(&self) -> Option<String> {
        self.merge_failure.lock().as_ref().map(|failure| failure.why.clone())
    }

    /// Whether merges leave this segment out for now, because a merge of it failed. `segments` are
    /// all segments of the table.
    pub fn holds_back(
        &self,
        segment: &Arc<Segment>,
        segments: &[SegmentView],
        now: Instant,
    ) -> bool {
        self.merge_failure.lock().as_ref().is_some_and(|failure| {
            let same = |input: &Weak<Segment>| std::ptr::eq(input.as_ptr(), Arc::as_ptr(segment));
            now < failure.at + failure.pause(segments) && failure.inputs.iter().any(same)
        })
    }

    /// Counts a merge of these segments. A recorded failure is cleared once one of its segments is merged or gone.
    pub fn merged(&self, inputs: &[SegmentView]) {
        let bytes = inputs.iter().map(SegmentView::bytes).sum();
        self.merge_failure.lock().take_if(|failure| !failure.stands(inputs));
        self.changed();
        self.merges.fetch_add(1, Relaxed);
        self.merged_bytes.fetch_add(bytes, Relaxed);
    }

    /// Records that a segment is left without a path, because this document has too much there.
    pub fn leave_without(&self, segment: &Arc<Segment>, spec: &PathSpec, doc: u32, why: &str) {
        let mut all = self.without_path.lock();
        all.retain(|one| one.segment.strong_count() > 0);
        let (segment, spec) = (Arc::downgrade(segment), spec.clone());
        all.push(UnindexedPath { segment, spec, doc, why: why.to_owned() });
    }

    /// Why a segment is left without a path, if it is.
    pub fn why_without(&self, view: &SegmentView, spec: &PathSpec) -> Option<String> {
        let all = self.without_path.lock();
        let stands = |one: &&UnindexedPath| {
            one.spec == *spec
                && std::ptr::eq(one.segment.as_ptr(), Arc::as_ptr(&view.segment))
                && !view.is_deleted(one.doc)
        };
        all.iter().find(stands).map(|one| one.why.clone())
    }

    /// Copies the records of a segment to the one that replaces it with the same documents. Older snapshots still
    /// have the old segment, so its records stay too.
    pub fn exchanged(&self, old: &Arc<Segment>, new: &Arc<Segment>) {
        let is_old = |segment: &Weak<Segment>| std::ptr::eq(segment.as_ptr(), Arc::as_ptr(old));
        let mut all = self.without_path.lock();
        let of_old = all.iter().filter(|one| is_old(&one.segment));
        let of_new: Vec<UnindexedPath> = of_old
            .map(|one| UnindexedPath { segment: Arc::downgrade(new), ..one.clone() })
            .collect();
        all.extend(of_new);
        drop(all);
        if let Some(failure) = &mut *self.merge_failure.lock() {
            let inputs = failure.inputs.iter_mut().filter(|input| is_old(input));
            inputs.for_each(|input| *input = Arc::downgrade(new));
        }
    }

    pub fn done(&self) -> Done {
        Done {
            bloom: BloomCounts {
                checks: self.bloom_checks.load(Relaxed),
                saves: self.bloom_saves.load(Relaxed),
            },
            merges: self.merges.load(Relaxed),
            merged_bytes: self.merged_bytes.load(Relaxed),
        }
    }
}
