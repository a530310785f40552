//! Rank and select over the live documents of a sequence: of an index, or of the keys.
//!
//! Deleted documents stay in a segment until it is merged. The positions of the deleted ones as a bitmap, with their
//! number before each block, say how many live documents a range of positions has and where the nth one is, without
//! reading the range. In key order that bitmap is that of the deleted documents itself. For an index it is made when
//! reading the ranges asked for would have cost as much ([`SegmentIndex::live_ranks`](super::SegmentIndex::live_ranks)),
//! and kept until documents were deleted.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::Bitmap;

/// The words of the bitmap in a block.
const BLOCK_WORDS: usize = 8;
/// The positions of a block.
const BLOCK: u32 = BLOCK_WORDS as u32 * u64::BITS;

/// Which positions of a sequence have live documents. Memory: 9/64 of a byte for each position.
pub struct LiveRanks {
    /// The positions of deleted documents.
    gone: Arc<Bitmap>,
    /// The number of deleted documents before each block, and of all of them.
    before: Vec<u32>,
}

impl LiveRanks {
    /// The ranks of a sequence whose deleted documents are at the positions `gone`; `gone.len()` is its length. Cost:
    /// counts its bits.
    pub fn new(gone: Arc<Bitmap>) -> Self {
        let (mut before, mut count) = (vec![0], 0);
        for block in gone.words().chunks(BLOCK_WORDS) {
            count += block.iter().map(|word| word.count_ones()).sum::<u32>();
            before.push(count);
        }
        Self { gone, before }
    }

    /// The number of live documents in a range of positions. Reads at most two blocks of the bitmap.
    pub fn count(&self, range: &Range<u32>) -> u32 {
        self.before(range.end).saturating_sub(self.before(range.start))
    }

    /// The number of live documents before a position.
    pub fn before(&self, position: u32) -> u32 {
        let position = position.min(self.gone.len());
        let block = (position / BLOCK) as usize;
        let (word, bit) = ((position / u64::BITS) as usize, position % u64::BITS);
        let words = self.gone.words();
        let whole = words.get(block * BLOCK_WORDS..word).unwrap_or_default();
        let whole: u32 = whole.iter().map(|word| word.count_ones()).sum();
        let part = words.get(word).map_or(0, |word| (word & ((1 << bit) - 1)).count_ones());
        position - self.gone_before(block) - whole - part
    }

    /// The position of the live document with so many live ones before it; `None` if there are not more of them. Cost:
    /// a binary search among the blocks.
    pub fn nth(&self, nth: u32) -> Option<u32> {
        let starts = 0..self.before.len() as u32;
        let live_before =
            |block: u32| (block * BLOCK).min(self.gone.len()) - self.gone_before(block as usize);
        let (mut low, mut high) = (starts.start, starts.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match live_before(middle) <= nth {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let block = low.checked_sub(1)?;
        let mut left = nth - live_before(block);
        let first = block as usize * BLOCK_WORDS;
        for (word, gone) in self.gone.words().iter().enumerate().skip(first).take(BLOCK_WORDS) {
            let live = gone.count_zeros();
            if left < live {
                let position = word as u32 * u64::BITS + nth_zero(*gone, left);
                return (position < self.gone.len()).then_some(position);
            }
            left -= live;
        }
        None
    }

    /// Whether the document at a position is live.
    pub fn is_live(&self, position: u32) -> bool {
        !self.gone.contains(position)
    }

    /// The positions of deleted documents.
    pub(super) fn gone(&self) -> &Bitmap {
        &self.gone
    }

    fn gone_before(&self, block: usize) -> u32 {
        self.before.get(block).copied().unwrap_or_default()
    }
}

/// The bit of the zero of a word that has `nth` zeros before it.
fn nth_zero(word: u64, nth: u32) -> u32 {
    let mut zeros = !word;
    for _ in 0..nth {
        zeros &= zeros.wrapping_sub(1);
    }
    zeros.trailing_zeros()
}

/// The ranks of an index that were asked for last. Other deletions replace them.
#[derive(Default)]
pub(super) struct RanksCache {
    kept: Mutex<Option<KeptRanks>>,
    /// The positions that were read since because there were no ranks.
    read: AtomicU64,
    /// What it would have cost to make them, in positions; 0 if that is not known.
    cost: AtomicU64,
}

/// The ranks for a set of deleted documents.
#[derive(Clone)]
pub(super) struct KeptRanks {
    pub deleted: Arc<Bitmap>,
    pub ranks: Arc<LiveRanks>,
}

impl RanksCache {
    pub fn kept(&self) -> Option<KeptRanks> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn keep(&self, kept: KeptRanks) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        self.read.store(0, Ordering::Relaxed);
        self.set_cost(0);
    }

    /// Notes that a request reads so many positions unless there are ranks, and returns the number of all that were
    /// read since the ranks were made: once that is their cost, requests together pay at most twice the cost.
    pub fn note(&self, reads: u64) -> u64 {
        self.read.fetch_add(reads, Ordering::Relaxed).saturating_add(reads)
    }

    /// What making the ranks would have cost when that was last found out, in positions.
    pub fn cost(&self) -> u64 {
        self.cost.load(Ordering::Relaxed)
    }

    pub fn set_cost(&self, cost: u64) {
        self.cost.store(cost, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_equal_those_of_a_list(
            len in 0_u32..1_700,
            share in 0_u32..11,
            seed in proptest::collection::vec(0_u32..10, 1_700),
            asked in proptest::collection::vec(0_u32..1_800, 40),
        ) {
            let is_gone = |at: u32| seed[at as usize] < share;
            let mut gone = Bitmap::new(len);
            (0..len).filter(|at| is_gone(*at)).for_each(|at| { gone.insert(at); });
            let ranks = LiveRanks::new(Arc::new(gone));
            let live: Vec<u32> = (0..len).filter(|at| !is_gone(*at)).collect();
            for pair in asked.windows(2) {
                let (start, end) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
                let within = |at: &&u32| (start..end).contains(*at);
                prop_assert_eq!(ranks.count(&(start..end)) as usize, live.iter().filter(within).count());
                prop_assert_eq!(ranks.nth(start), live.get(start as usize).copied());
                prop_assert_eq!(ranks.is_live(start) && start < len, live.contains(&start));
            }
            prop_assert_eq!(ranks.nth(live.len() as u32), None);
        }
    }
}
