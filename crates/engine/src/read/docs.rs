//! The selected documents of one segment, and a lazy iterator over the live ones.

use remora_index::{Bitmap, DocSet};

use crate::snapshot::SegmentView;

/// Documents of one segment; may include deleted ones.
pub(super) enum Docs {
    /// All documents of the segment.
    Every,
    /// These documents.
    Some(DocSet),
}

impl Docs {
    /// The number of live documents. Allocates nothing.
    pub fn count_live(&self, view: &SegmentView) -> u64 {
        match self {
            Self::Every => u64::from(view.live_count()),
            Self::Some(docs) => count_live(docs, view),
        }
    }

    /// The live documents as a set.
    pub fn into_live(self, view: &SegmentView) -> DocSet {
        self.into_set(view.segment.doc_count()).without(view.deleted.as_ref())
    }

    /// The documents as an explicit set, in a segment of `len` documents.
    pub fn into_set(self, len: u32) -> DocSet {
        match self {
            Self::Every => DocSet::all(len),
            Self::Some(docs) => docs,
        }
    }

    /// An iterator over the live documents, from either end.
    pub fn walk<'v>(&'v self, view: &'v SegmentView) -> DocsIter<'v> {
        let (source, high) = match self {
            Self::Every => (Source::Every, view.segment.doc_count()),
            Self::Some(DocSet::List(docs)) => (Source::List(docs), u32::MAX),
            Self::Some(DocSet::Bits(bits)) => (Source::Bits(bits), bits.len()),
        };
        DocsIter { source, low: 0, high, deleted: view.deleted.as_deref() }
    }

    /// Calls `visit` with each live document in ascending order.
    pub fn for_each_live(&self, view: &SegmentView, mut visit: impl FnMut(u32)) {
        match (self, view.deleted.as_deref()) {
            (Self::Every, None) => (0..view.segment.doc_count()).for_each(visit),
            (Self::Some(docs), None) => docs.for_each(visit),
            (_, Some(deleted)) => {
                let unless_deleted = |doc| {
                    if !deleted.contains(doc) {
                        visit(doc)
                    }
                };
                match self {
                    Self::Every => (0..view.segment.doc_count()).for_each(unless_deleted),
                    Self::Some(docs) => docs.for_each(unless_deleted),
                }
            }
        }
    }
}

/// The number of live documents. Allocates nothing.
pub(super) fn count_live(docs: &DocSet, view: &SegmentView) -> u64 {
    let count = match (docs, view.deleted.as_deref()) {
        (docs, None) => docs.count(),
        (DocSet::Bits(bits), Some(deleted)) => {
            let words = bits.words().iter().zip(deleted.words());
            words.map(|(word, deleted)| (word & !deleted).count_ones()).sum()
        }
        (DocSet::List(docs), Some(deleted)) => {
            docs.iter().filter(|&&doc| !deleted.contains(doc)).count() as u32
        }
    };
    u64::from(count)
}

/// A double-ended, lazy iterator over the live documents of a set.
pub(super) struct DocsIter<'v> {
    source: Source<'v>,
    low: u32,
    high: u32,
    deleted: Option<&'v Bitmap>,
}

enum Source<'v> {
    Every,
    List(&'v [u32]),
    Bits(&'v Bitmap),
}

impl<'v> DocsIter<'v> {
    /// Restricts it to documents within `low..high`.
    pub fn within(mut self, low: u32, high: u32) -> Self {
        self.low = self.low.max(low);
        self.high = self.high.min(high);
        if let Source::List(docs) = &mut self.source {
            let start = docs.partition_point(|&doc| doc < low);
            let end = docs.partition_point(|&doc| doc < high);
            *docs = docs.get(start..end).unwrap_or_default();
        }
        self
    }

    /// An iterator in this direction.
    pub fn directed(mut self, descending: bool) -> impl Iterator<Item = u32> + 'v {
        std::iter::from_fn(move || {
            loop {
                let doc = if descending { self.highest() } else { self.lowest() }?;
                if self.deleted.is_none_or(|deleted| !deleted.contains(doc)) {
                    return Some(doc);
                }
            }
        })
    }

    fn lowest(&mut self) -> Option<u32> {
        let doc = match &mut self.source {
            Source::List(docs) => return docs.split_off_first().copied(),
            Source::Every => self.low,
            Source::Bits(bits) => first_from(bits.words(), self.low)?,
        };
        self.low = doc.saturating_add(1);
        (doc < self.high).then_some(doc)
    }

    fn highest(&mut self) -> Option<u32> {
        let doc = match &mut self.source {
            Source::List(docs) => return docs.split_off_last().copied(),
            Source::Every => self.high.checked_sub(1)?,
            Source::Bits(bits) => last_below(bits.words(), self.high)?,
        };
        self.high = doc;
        (doc >= self.low).then_some(doc)
    }
}

/// The lowest set bit that is not below `low`.
fn first_from(words: &[u64], low: u32) -> Option<u32> {
    let mut index = low as usize / 64;
    let mut word = words.get(index)? & (!0 << (low % 64));
    while word == 0 {
        index += 1;
        word = *words.get(index)?;
    }
    Some(index as u32 * 64 + word.trailing_zeros())
}

/// The highest set bit below `high`.
fn last_below(words: &[u64], high: u32) -> Option<u32> {
    let last = high.checked_sub(1)?;
    let mut index = last as usize / 64;
    let mut word = words.get(index)? & (!0 >> (63 - last % 64));
    while word == 0 {
        index = index.checked_sub(1)?;
        word = words[index];
    }
    Some(index as u32 * 64 + 63 - word.leading_zeros())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use proptest::prelude::*;

    use super::*;

    const LEN: u32 = 200;

    fn walk<'v>(source: Source<'v>, deleted: Option<&'v Bitmap>) -> DocsIter<'v> {
        DocsIter { source, low: 0, high: LEN, deleted }
    }

    proptest! {
        #[test]
        fn walk_visits_the_elements_of_a_set(
            docs in proptest::collection::btree_set(0..LEN, 0..60),
            gone in proptest::collection::btree_set(0..LEN, 0..60),
            low in 0..LEN + 9, high in 0..LEN + 9,
        ) {
            let list: Vec<u32> = docs.iter().copied().collect();
            let bits = Arc::new(DocSet::List(list.clone()).into_bitmap(LEN));
            let deleted = DocSet::List(gone.iter().copied().collect()).into_bitmap(LEN);
            let every: BTreeSet<u32> = (0..LEN).collect();
            for (form, all) in [(0, &docs), (1, &docs), (2, &every)] {
                let source = || match form {
                    0 => Source::List(&list),
                    1 => Source::Bits(&bits),
                    _ => Source::Every,
                };
                let expected: Vec<u32> = (all - &gone).into_iter()
                    .filter(|doc| (low..high).contains(doc)).collect();
                let up = walk(source(), Some(&deleted)).within(low, high).directed(false);
                prop_assert_eq!(up.collect::<Vec<_>>(), expected.clone());
                let down = walk(source(), Some(&deleted)).within(low, high).directed(true);
                prop_assert!(down.eq(expected.into_iter().rev()));
            }
        }
    }
}
