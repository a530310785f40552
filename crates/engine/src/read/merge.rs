//! A k-way merge of sorted streams.

use std::cmp::Ordering;

/// Yields the items of several sorted streams in order: O(log streams) comparisons for each item. An item is taken
/// from a stream only when it is needed.
pub(super) struct Merge<T, S, F> {
    /// A binary heap with the smallest head on top.
    heads: Vec<(T, S)>,
    compare: F,
}

impl<T, S: Iterator<Item = T>, F: FnMut(&T, &T) -> Ordering> Merge<T, S, F> {
    /// A merge of `streams`, each sorted by `compare`.
    pub fn new(streams: impl IntoIterator<Item = S>, compare: F) -> Self {
        let first = |mut stream: S| stream.next().map(|item| (item, stream));
        let heads = streams.into_iter().filter_map(first).collect();
        let mut merge = Self { heads, compare };
        (0..merge.heads.len() / 2).rev().for_each(|at| merge.sift_down(at));
        merge
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut least = at;
            for child in [left, right] {
                if child < self.heads.len() && self.is_before(child, least) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heads.swap(at, least);
            at = least;
        }
    }

    fn is_before(&mut self, a: usize, b: usize) -> bool {
        (self.compare)(&self.heads[a].0, &self.heads[b].0).is_lt()
    }
}

impl<T, S: Iterator<Item = T>, F: FnMut(&T, &T) -> Ordering> Iterator for Merge<T, S, F> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let (item, stream) = self.heads.first_mut()?;
        let out = match stream.next() {
            Some(next) => std::mem::replace(item, next),
            None => self.heads.swap_remove(0).0,
        };
        self.sift_down(0);
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn merging_equals_sorting(mut lists: Vec<Vec<u16>>) {
            lists.iter_mut().for_each(|list| list.sort_unstable());
            let mut all = lists.concat();
            all.sort_unstable();
            let streams = lists.into_iter().map(Vec::into_iter);
            prop_assert_eq!(Merge::new(streams, u16::cmp).collect::<Vec<_>>(), all);
        }
    }
}
