//! The best documents so far.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::Weights;

/// The weights so far of all segments.
pub(super) struct Race {
    /// The highest weights, as many as rows are wanted.
    lowest: BinaryHeap<Reverse<i32>>,
    pub rows: usize,
    pub by_key: bool,
}

impl Race {
    pub fn new(rows: usize, by_key: bool) -> Self {
        Self { lowest: BinaryHeap::new(), rows, by_key }
    }

    /// What a row must weigh to be among the best, or to tie with the last of them.
    #[inline]
    pub fn floor(&self) -> i64 {
        match self.lowest.peek() {
            Some(&Reverse(lowest)) if self.lowest.len() == self.rows => lowest.into(),
            _ => i64::MIN,
        }
    }

    fn note(&mut self, weight: i32) {
        if self.lowest.len() < self.rows {
            self.lowest.push(Reverse(weight));
        } else if let Some(mut lowest) = self.lowest.peek_mut()
            && weight > lowest.0
        {
            lowest.0 = weight;
        }
    }
}

/// The winners of one segment so far, in the race of all.
pub(super) struct Winners<'r> {
    race: &'r mut Race,
    /// The one that is beaten first on top.
    heap: BinaryHeap<(Reverse<i32>, u32)>,
    /// How many are kept; those that tie are many where they are all asked for.
    most: usize,
}

impl<'r> Winners<'r> {
    pub fn new(race: &'r mut Race) -> Self {
        let most = if race.by_key { race.rows } else { usize::MAX };
        Self { race, heap: BinaryHeap::new(), most }
    }

    /// See [`Race::floor`].
    #[inline]
    pub fn floor(&self) -> i64 {
        self.race.floor()
    }

    /// Whether a document that weighs at most this, or one behind it, can be among them.
    #[inline]
    pub fn may_win(&self, most: i64, doc: u32) -> bool {
        if most < self.race.floor() {
            return false;
        }
        match self.heap.peek() {
            Some(&(Reverse(weight), last)) if self.heap.len() >= self.most => {
                (most, Reverse(doc)) > (i64::from(weight), Reverse(last))
            }
            _ => true,
        }
    }

    /// Takes a document with its weight.
    pub fn take(&mut self, weight: i32, doc: u32) {
        let may_win = self.may_win(weight.into(), doc);
        self.race.note(weight);
        if may_win {
            self.heap.push((Reverse(weight), doc));
            if self.heap.len() > self.most {
                self.heap.pop();
            }
        }
    }

    /// All of them, by ascending documents.
    pub fn finish(self) -> Weights {
        let best = self.heap.into_iter();
        let mut best: Weights = best.map(|(Reverse(weight), doc)| (doc, weight)).collect();
        best.sort_unstable();
        best
    }
}
