//! The documents of one segment that a condition holds for.

use std::sync::Arc;

use crate::Bitmap;

/// A set of document numbers: a sorted list where it is sparse, bits where it is dense.
///
/// Both forms mean the same; operations pick the cheaper one. A list longer than one in 32
/// documents costs more than the bits would.
#[derive(Clone, Debug)]
pub enum DocSet {
    /// Strictly ascending document numbers.
    List(Vec<u32>),
    /// One bit a document; shared, since segments keep ready-made ones.
    Bits(Arc<Bitmap>),
}

impl DocSet {
    /// The empty set.
    pub fn empty() -> Self {
        Self::List(Vec::new())
    }

    /// The documents of an ascending list out of `len`, as bits where they are many.
    pub fn ascending(docs: Vec<u32>, len: u32) -> Self {
        match docs.len() > len as usize / 32 {
            true => Self::Bits(Self::List(docs).into_bitmap(len).into()),
            false => Self::List(docs),
        }
    }

    /// Every document of a segment of `len`.
    pub fn all(len: u32) -> Self {
        Self::Bits(Arc::new(Bitmap::full(len)))
    }

    /// The number of documents.
    pub fn count(&self) -> u32 {
        match self {
            Self::List(docs) => docs.len() as u32,
            Self::Bits(bits) => bits.count(),
        }
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::List(docs) => docs.is_empty(),
            Self::Bits(bits) => bits.is_empty(),
        }
    }

    /// Whether `doc` is in the set: O(1) for bits, O(log n) for a list.
    pub fn contains(&self, doc: u32) -> bool {
        match self {
            Self::List(docs) => docs.binary_search(&doc).is_ok(),
            Self::Bits(bits) => bits.contains(doc),
        }
    }

    /// `self ∩ other`.
    pub fn intersect(self, other: &DocSet) -> DocSet {
        match (self, other) {
            (Self::List(mut a), Self::Bits(b)) => {
                a.retain(|&doc| b.contains(doc));
                Self::List(a)
            }
            (Self::Bits(a), Self::List(b)) => {
                Self::List(b.iter().copied().filter(|&doc| a.contains(doc)).collect())
            }
            (Self::List(a), Self::List(b)) => Self::List(intersect_lists(&a, b)),
            (Self::Bits(a), Self::Bits(b)) => {
                let mut bits = Arc::unwrap_or_clone(a);
                bits.intersect(b);
                Self::Bits(Arc::new(bits))
            }
        }
    }

    /// `self ∪ other` in a segment of `len` documents.
    pub fn union(self, other: &DocSet, len: u32) -> DocSet {
        if let (Self::List(a), Self::List(b)) = (&self, other)
            && (a.len() + b.len()) as u32 <= len / 32
        {
            return Self::List(union_lists(a, b));
        }
        let mut bits = self.into_bitmap(len);
        match other {
            Self::List(docs) => docs.iter().for_each(|&doc| {
                bits.insert(doc);
            }),
            Self::Bits(theirs) => bits.union(theirs),
        }
        Self::Bits(Arc::new(bits))
    }

    /// `self − other`.
    pub fn subtract(self, other: &DocSet) -> DocSet {
        match (self, other) {
            (Self::List(mut a), _) => {
                a.retain(|&doc| !other.contains(doc));
                Self::List(a)
            }
            (Self::Bits(a), Self::List(b)) => {
                let mut bits = Arc::unwrap_or_clone(a);
                b.iter().for_each(|&doc| {
                    bits.remove(doc);
                });
                Self::Bits(Arc::new(bits))
            }
            (Self::Bits(a), Self::Bits(b)) => {
                let mut bits = Arc::unwrap_or_clone(a);
                bits.subtract(b);
                Self::Bits(Arc::new(bits))
            }
        }
    }

    /// The set without the documents of `deleted`.
    pub fn without(self, deleted: Option<&Arc<Bitmap>>) -> DocSet {
        match deleted {
            Some(deleted) => self.subtract(&DocSet::Bits(Arc::clone(deleted))),
            None => self,
        }
    }

    /// The complement in a segment of `len` documents.
    pub fn complement(self, len: u32) -> DocSet {
        let mut bits = self.into_bitmap(len);
        bits.invert();
        Self::Bits(Arc::new(bits))
    }

    /// The set as bits over `0..len`.
    pub fn into_bitmap(self, len: u32) -> Bitmap {
        match self {
            Self::Bits(bits) => Arc::unwrap_or_clone(bits),
            Self::List(docs) => {
                let mut bits = Bitmap::new(len);
                docs.into_iter().for_each(|doc| {
                    bits.insert(doc);
                });
                bits
            }
        }
    }

    /// Calls `visit` with each document in ascending order.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(u32)) {
        match self {
            Self::List(docs) => docs.iter().for_each(|&doc| visit(doc)),
            Self::Bits(bits) => bits.iter().for_each(visit),
        }
    }

    /// The documents, ascending.
    pub fn iter(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::List(docs) => Box::new(docs.iter().copied()),
            Self::Bits(bits) => Box::new(bits.iter()),
        }
    }

    /// The documents, descending: the newest keys first.
    pub fn iter_descending(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::List(docs) => Box::new(docs.iter().rev().copied()),
            Self::Bits(bits) => Box::new(bits.iter_descending()),
        }
    }
}

/// Walks the shorter list and gallops through the longer one.
fn intersect_lists(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (short, mut long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut common = Vec::with_capacity(short.len());
    for &doc in short {
        long = &long[gallop(long, doc)..];
        if long.first() == Some(&doc) {
            common.push(doc);
        }
    }
    common
}

/// The index of the first element that is not below `doc`.
pub(crate) fn gallop(list: &[u32], doc: u32) -> usize {
    let mut step = 1;
    while step < list.len() && list[step] < doc {
        step *= 2;
    }
    let start = step / 2;
    let end = list.len().min(step + 1);
    start + list[start..end].partition_point(|&other| other < doc)
}

fn union_lists(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        all.push(x.min(y));
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    all.extend_from_slice(&a[i..]);
    all.extend_from_slice(&b[j..]);
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const LEN: u32 = 300;

    fn both_forms(docs: &BTreeSet<u32>) -> [DocSet; 2] {
        let list = DocSet::List(docs.iter().copied().collect());
        [list.clone(), DocSet::Bits(Arc::new(list.into_bitmap(LEN)))]
    }

    fn set(docs: &DocSet) -> BTreeSet<u32> {
        docs.iter().collect()
    }

    proptest! {
        #[test]
        fn every_form_agrees_with_a_plain_set(
            a in proptest::collection::btree_set(0..LEN, 0..80),
            b in proptest::collection::btree_set(0..LEN, 0..80),
        ) {
            for x in both_forms(&a) {
                for y in both_forms(&b) {
                    prop_assert_eq!(set(&x.clone().intersect(&y)), &a & &b);
                    prop_assert_eq!(set(&x.clone().union(&y, LEN)), &a | &b);
                    prop_assert_eq!(set(&x.clone().subtract(&y)), &a - &b);
                    prop_assert_eq!(x.count() as usize, a.len());
                    prop_assert!(x.iter_descending().eq(a.iter().rev().copied()));
                    let rest = x.clone().complement(LEN);
                    prop_assert_eq!(rest.count() as usize, LEN as usize - a.len());
                }
            }
        }
    }
}
