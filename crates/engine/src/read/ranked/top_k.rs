//! The top k documents of a ranked query so far, and the weight that a document must reach to join them: the threshold.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::atomic::{AtomicI64, Ordering},
};

use parking_lot::Mutex;

use super::Weights;

/// The k highest weights so far, over all segments. Threads that weigh different segments share it.
pub(super) struct TopWeights {
    /// The highest weights, as many as rows are wanted.
    highest: Mutex<BinaryHeap<Reverse<i32>>>,
    /// The threshold. It only grows, so a thread that reads an old one visits more documents, but misses none.
    threshold: AtomicI64,
    pub rows: usize,
    pub by_key: bool,
}

impl TopWeights {
    pub fn new(rows: usize, by_key: bool) -> Self {
        let threshold = AtomicI64::new(i64::MIN);
        Self { highest: Mutex::default(), threshold, rows, by_key }
    }

    /// The threshold: the weight of the k-th best row, which a row must reach to be one of them. `i64::MIN` while there
    /// are fewer than k rows.
    #[inline]
    pub fn threshold(&self) -> i64 {
        self.threshold.load(Ordering::Relaxed)
    }

    fn note(&self, weight: i32) {
        if i64::from(weight) <= self.threshold() {
            return;
        }
        let mut highest = self.highest.lock();
        if highest.len() < self.rows {
            highest.push(Reverse(weight));
        } else if let Some(mut lowest) = highest.peek_mut()
            && weight > lowest.0
        {
            lowest.0 = weight;
        }
        if highest.len() == self.rows
            && let Some(&Reverse(lowest)) = highest.peek()
        {
            self.threshold.store(lowest.into(), Ordering::Relaxed);
        }
    }
}

/// The documents of one segment that are in the top k so far.
pub(super) struct TopRows<'r> {
    top: &'r TopWeights,
    /// A heap whose top is the document that leaves first.
    heap: BinaryHeap<(Reverse<i32>, u32)>,
    /// How many documents are kept: k, or all that reach the threshold if the order among equal weights is not by key.
    most: usize,
}

impl<'r> TopRows<'r> {
    pub fn new(top: &'r TopWeights) -> Self {
        let most = if top.by_key { top.rows } else { usize::MAX };
        Self { top, heap: BinaryHeap::new(), most }
    }

    /// See [`TopWeights::threshold`].
    #[inline]
    pub fn threshold(&self) -> i64 {
        self.top.threshold()
    }

    /// How many rows are wanted.
    pub fn rows(&self) -> usize {
        self.top.rows
    }

    /// Whether `doc`, which weighs at most `most`, or a later document of that weight can be among the top k.
    #[inline]
    pub fn may_win(&self, most: i64, doc: u32) -> bool {
        if most < self.top.threshold() {
            return false;
        }
        match self.heap.peek() {
            Some(&(Reverse(weight), last)) if self.heap.len() >= self.most => {
                (most, Reverse(doc)) > (i64::from(weight), Reverse(last))
            }
            _ => true,
        }
    }

    /// Adds a document with its weight.
    pub fn take(&mut self, weight: i32, doc: u32) {
        let may_win = self.may_win(weight.into(), doc);
        self.top.note(weight);
        if may_win {
            self.heap.push((Reverse(weight), doc));
            if self.heap.len() > self.most {
                self.heap.pop();
            }
        }
    }

    /// The documents with their weights, in ascending order of documents.
    pub fn finish(self) -> Weights {
        let best = self.heap.into_iter();
        let mut best: Weights = best.map(|(Reverse(weight), doc)| (doc, weight)).collect();
        best.sort_unstable();
        best
    }
}
