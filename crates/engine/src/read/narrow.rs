//! Narrows a condition to candidate documents of a segment, by keys and indexes instead of columns.
//!
//! A condition is narrowed by the primary key (`key_ranges`) or by the secondary index that leaves the fewest
//! candidates, perhaps intersected with another one (`index_ranges`). In an OR each part must narrow, and the candidates are their union.
//! The whole condition is then evaluated on the candidates.

use std::ops::Range;

use remora_index::segment::Segment;

use super::{
    candidates::{Candidates, FoundByKeys, add},
    filter::CompiledFilter,
    index_ranges::{IndexRanges, KEYED_CANDIDATE_SHARE, KEYED_SEARCH_COST},
    key_ranges::KeyRanges,
};
use crate::{Allowed, FoundBy, Schema, TableIndex};

/// If more than one in this many documents is a candidate, reading the columns is cheaper.
const CANDIDATE_SHARE: u32 = 32;
/// An alternative of an OR costs about as much as reading this many values of a column.
const PART_COST: usize = 256;

/// A condition as ranges of the primary key and of indexes.
pub(super) struct Narrowing {
    keys: Option<KeyRanges>,
    indexes: Option<IndexRanges>,
    /// The ORs of the condition that narrow it: each is the list of its alternatives.
    either: Vec<Vec<Narrowing>>,
    /// Whether they are used even if reading the columns is cheaper.
    forced: bool,
}

impl Narrowing {
    /// The ranges; `None` if neither the key nor an allowed index helps.
    pub fn new(schema: &Schema, condition: &CompiledFilter, allowed: Allowed) -> Option<Self> {
        let by_key = allowed.indexes.contains(TableIndex::Key);
        let keys = by_key.then(|| KeyRanges::new(schema, condition)).flatten();
        let indexes = IndexRanges::new(schema, condition, allowed.indexes);
        let each = |parts: &[CompiledFilter]| {
            parts.iter().map(|part| Self::new(schema, part, allowed)).collect()
        };
        let either: Vec<Vec<Self>> =
            condition.alternatives().into_iter().filter_map(each).collect();
        let helps = keys.is_some() || indexes.is_some() || !either.is_empty();
        helps.then_some(Self { keys, indexes, either, forced: allowed.forced })
    }

    /// The candidates of a segment; `None` if reading the columns is cheaper.
    pub fn candidates(&self, segment: &Segment) -> Option<Candidates> {
        let keys = self.keys.as_ref();
        let by_key = keys.and_then(|keys| {
            Some(Candidates::of(keys.candidates(segment, self.forced)?, [keys.found_by()], false))
        });
        let by_index = || self.indexes.as_ref()?.candidates(segment, self.forced);
        let by_any = || self.either.iter().find_map(|parts| any_of(parts, segment, self.forced));
        by_key.or_else(by_index).or_else(by_any)
    }

    /// The candidates even if reading the columns is cheaper, provided that there are at most
    /// `most` candidates and `most` searches.
    pub fn most_candidates(&self, segment: &Segment, most: u64) -> Option<Candidates> {
        if let Some(keys) = &self.keys
            && keys.ranges() as u64 <= most
            && u64::from(keys.most(segment)) <= most
        {
            let docs = keys.candidates(segment, true)?;
            return Some(Candidates::of(docs, [keys.found_by()], false));
        }
        let indexes = self.indexes.as_ref().filter(|it| it.most_searches() as u64 <= most)?;
        let is_few = |count: &u32| u64::from(*count) <= most;
        indexes.count(segment, true).filter(is_few)?;
        indexes.candidates(segment, true)
    }

    /// An upper bound of the number of candidates of a segment, by the key or one index; `None` if neither helps.
    pub fn count(&self, segment: &Segment) -> Option<u32> {
        let by_key = self.keys.as_ref().map(|keys| keys.most(segment));
        let by_index =
            self.indexes.as_ref().and_then(|indexes| indexes.count(segment, self.forced));
        by_key.into_iter().chain(by_index).min()
    }

    /// A range of documents that contains all candidates; `None` if the key does not help.
    pub fn bounding_range(&self, segment: &Segment) -> Option<Range<u32>> {
        self.keys.as_ref()?.bounding_range(segment)
    }

    /// Whether only ORs help.
    pub fn is_union(&self) -> bool {
        self.keys.is_none() && self.indexes.is_none()
    }

    /// Whether only indexes with a text order help.
    fn is_keyed(&self) -> bool {
        self.keys.is_none() && self.indexes.as_ref().is_some_and(IndexRanges::is_keyed)
    }

    /// Adds the usable indexes to `indexes`.
    pub fn possible(&self, indexes: &mut Vec<TableIndex>) {
        let keys = self.keys.iter().map(|_| TableIndex::Key);
        let secondary = self.indexes.iter().flat_map(IndexRanges::possible);
        for index in keys.chain(secondary) {
            if !indexes.contains(&index) {
                indexes.push(index);
            }
        }
        self.either.iter().flatten().for_each(|part| part.possible(indexes));
    }
}

/// The union of the candidates of all alternatives.
fn any_of(parts: &[Narrowing], segment: &Segment, forced: bool) -> Option<Candidates> {
    let doc_count = segment.doc_count();
    let (cost, share) = match forced {
        true => (1, 1),
        false if parts.iter().all(Narrowing::is_keyed) => {
            (KEYED_SEARCH_COST, KEYED_CANDIDATE_SHARE)
        }
        false => (PART_COST, CANDIDATE_SHARE),
    };
    if parts.len().saturating_mul(cost) > doc_count as usize {
        return None;
    }
    let most = (doc_count / share) as usize;
    let (mut docs, mut found) = (Vec::new(), FoundByKeys::new());
    for part in parts {
        let Candidates { docs: mut of_part, found: found_by, .. } = part.candidates(segment)?;
        docs.append(&mut of_part);
        if docs.len() > most {
            if !forced {
                return None;
            }
            // Alternatives may have candidates in common.
            docs.sort_unstable();
            docs.dedup();
        }
        let again = found_by.into_iter().map(|it| FoundBy {
            is_single: it.is_single && found.iter().all(|other: &FoundBy| other.index != it.index),
            ..it
        });
        let again: FoundByKeys = again.collect();
        add(again, &mut found);
    }
    docs.sort_unstable();
    docs.dedup();
    Some(Candidates { docs, found, is_all: false })
}
