//! Conditions on the leading parts of the primary key, answered from the order of the keys.
//!
//! Documents are stored in key order. So rows whose first key parts have given values, and whose next part lies in a
//! range, are runs of documents; two binary searches find each run. The whole condition is then evaluated on these
//! candidates.

use std::ops::{
    Bound::{Excluded, Included, Unbounded},
    Range,
};

use remora_index::{column::Predicate, segment::Segment};

use super::filter::CompiledFilter;
use crate::{FoundBy, Schema, TableIndex};

/// If more than one in this many documents is a candidate, reading the columns is cheaper.
const CANDIDATE_SHARE: usize = 32;
/// A search among the keys costs about as much as reading this many values of a column.
const SEARCH_COST: usize = 64;

/// A condition as ranges of the primary key. Values are ordinals.
pub(super) struct KeyRanges {
    /// The values of each leading part fixed by `=` or IN, ascending.
    values: Vec<Vec<u64>>,
    /// The least and the greatest value of the next part.
    range: Option<(u64, u64)>,
    /// Whether all parts of the key are fixed.
    whole: bool,
}

impl KeyRanges {
    /// The ranges; `None` if the key does not help.
    pub fn new(schema: &Schema, condition: &CompiledFilter) -> Option<Self> {
        let conjuncts = condition.conjuncts();
        let (mut values, mut range) = (Vec::new(), None);
        for &position in &schema.primary_key {
            let column = schema.columns.get(position)?;
            if !column.kind.is_ordinal_in_keys() {
                break;
            }
            let of_column = conjuncts.iter().filter(|it| it.id == column.id && it.order.is_none());
            match KeyPartConstraint::of(of_column.map(|it| it.predicate)) {
                KeyPartConstraint::Values(of_part) => values.push(of_part),
                KeyPartConstraint::Range(low, high) => {
                    range = Some((low, high));
                    break;
                }
                KeyPartConstraint::Nothing => break,
            }
        }
        let whole = values.len() == schema.primary_key.len();
        (!values.is_empty() || range.is_some()).then_some(Self { values, range, whole })
    }

    /// The candidate documents of a segment, ascending; `None` if reading the columns is cheaper, unless that is
    /// `forced`.
    pub fn candidates(&self, segment: &Segment, forced: bool) -> Option<Vec<u32>> {
        let doc_count = segment.doc_count() as usize;
        let (cost, most) = match forced {
            true => (1, doc_count),
            false => (SEARCH_COST, doc_count / CANDIDATE_SHARE),
        };
        let searches = self.ranges();
        if searches.saturating_mul(cost) > doc_count {
            return None;
        }
        let mut docs = Vec::new();
        let mut chosen = vec![0; self.values.len()];
        let mut prefix = Vec::with_capacity(8 * self.values.len() + 8);
        for _ in 0..searches {
            prefix.clear();
            for (of_part, &at) in self.values.iter().zip(&chosen) {
                prefix.extend_from_slice(&of_part.get(at).copied()?.to_be_bytes());
            }
            self.find(segment, &mut prefix, &mut docs, most)?;
            self.advance(&mut chosen);
        }
        Some(docs)
    }

    /// A range of documents that contains all candidates, by the least and the greatest value of each part. Cost:
    /// two searches.
    pub fn bounding_range(&self, segment: &Segment) -> Option<Range<u32>> {
        let keys = segment.keys();
        let mut least = Vec::with_capacity(8 * self.values.len() + 8);
        let mut greatest = least.clone();
        for of_part in &self.values {
            least.extend_from_slice(&of_part.first()?.to_be_bytes());
            greatest.extend_from_slice(&of_part.last()?.to_be_bytes());
        }
        if let Some((low, high)) = self.range {
            least.extend_from_slice(&low.to_be_bytes());
            greatest.extend_from_slice(&high.to_be_bytes());
        }
        let start = keys.lower_bound(&least);
        let end = if increment(&mut greatest) { keys.lower_bound(&greatest) } else { keys.len() };
        Some(start..end.max(start))
    }

    /// An upper bound of the number of candidates of a segment.
    pub fn most(&self, segment: &Segment) -> u32 {
        let count = self.bounding_range(segment).map_or(segment.doc_count(), |bounding_range| {
            bounding_range.end - bounding_range.start
        });
        match self.whole {
            true => u32::try_from(self.ranges()).unwrap_or(u32::MAX).min(count),
            false => count,
        }
    }

    /// The number of searches: combinations of the leading parts' values.
    pub fn ranges(&self) -> usize {
        self.values.iter().fold(1, |all: usize, of| all.saturating_mul(of.len()))
    }

    /// How rows are found.
    pub fn found_by(&self) -> FoundBy {
        FoundBy {
            index: TableIndex::Key,
            columns: self.values.len(),
            is_bounded: self.range.is_some(),
            is_single: self.ranges() == 1,
            is_intersected: false,
        }
    }

    /// Appends the documents of one prefix; `None` if there are then more than `most`.
    fn find(
        &self,
        segment: &Segment,
        prefix: &mut Vec<u8>,
        docs: &mut Vec<u32>,
        most: usize,
    ) -> Option<()> {
        let keys = segment.keys();
        if self.whole {
            docs.extend(keys.find(prefix));
            return (docs.len() <= most).then_some(());
        }
        let parts = prefix.len();
        let (low, high) = self.range.unwrap_or((0, u64::MAX));
        prefix.extend_from_slice(&low.to_be_bytes());
        let start = keys.lower_bound(prefix);
        prefix.truncate(parts);
        prefix.extend_from_slice(&high.to_be_bytes());
        let end = match increment(prefix) {
            true => keys.lower_bound(prefix),
            false => keys.len(),
        };
        let count = end.saturating_sub(start) as usize;
        if docs.len() + count > most {
            return None;
        }
        docs.extend(start..end);
        Some(())
    }

    /// Advances to the next combination of values, in key order.
    fn advance(&self, chosen: &mut [usize]) {
        for (of_part, at) in self.values.iter().zip(chosen).rev() {
            *at += 1;
            if *at < of_part.len() {
                return;
            }
            *at = 0;
        }
    }
}

/// The conditions on one part.
enum KeyPartConstraint {
    Nothing,
    Values(Vec<u64>),
    Range(u64, u64),
}

impl KeyPartConstraint {
    fn of<'p>(predicates: impl Iterator<Item = &'p Predicate>) -> Self {
        let (mut low, mut high, mut is_bounded) = (0, u64::MAX, false);
        let mut list: Option<&[u64]> = None;
        for predicate in predicates {
            match predicate {
                Predicate::OrdinalRange(from, to) => {
                    let from = match from {
                        Included(from) => Some(*from),
                        Excluded(from) => from.checked_add(1),
                        Unbounded => Some(0),
                    };
                    let to = match to {
                        Included(to) => Some(*to),
                        Excluded(to) => to.checked_sub(1),
                        Unbounded => Some(u64::MAX),
                    };
                    let (Some(from), Some(to)) = (from, to) else {
                        return Self::Values(Vec::new());
                    };
                    (low, high, is_bounded) = (low.max(from), high.min(to), true);
                }
                Predicate::OrdinalIn(values) => list = Some(values),
                _ => {}
            }
        }
        match list {
            _ if low > high => Self::Values(Vec::new()),
            Some(values) => {
                let within = values.iter().copied().filter(|value| (low..=high).contains(value));
                Self::Values(within.collect())
            }
            None if low == high => Self::Values(vec![low]),
            None if is_bounded => Self::Range(low, high),
            None => Self::Nothing,
        }
    }
}

/// Increments the bytes as a big-endian number; false on overflow.
fn increment(bytes: &mut [u8]) -> bool {
    for byte in bytes.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return true;
        }
    }
    false
}
