//! Which documents of a segment a condition may hold for, as far as keys and indexes tell that sooner than columns.
//!
//! A condition narrows by the primary key (`key_ranges`) or by the secondary index that leaves the fewest
//! (`index_ranges`). Where conditions are joined by OR, each must narrow, by whatever it can, and what is left is
//! what any of them leaves. These are candidates: the whole condition is asked of them afterwards.

use remora_index::segment::Segment;

use super::{filter::Condition, index_ranges::IndexRanges, key_ranges::KeyRanges};
use crate::Schema;

/// More candidates than one in this many documents are found sooner from the columns.
const CANDIDATE_SHARE: u32 = 32;
/// What one condition of several joined by OR costs is about a look at so many values of a column.
const PART_COST: usize = 256;

/// What a condition says of keys and indexes.
pub(super) struct Narrowing {
    keys: Option<KeyRanges>,
    indexes: Option<IndexRanges>,
    /// Of each of these one holds.
    either: Vec<Vec<Narrowing>>,
}

impl Narrowing {
    /// What the condition says; `None` if that is nothing that keys or indexes help with.
    pub fn new(schema: &Schema, condition: &Condition) -> Option<Self> {
        let keys = KeyRanges::new(schema, condition);
        let indexes = IndexRanges::new(schema, condition);
        let each = |parts: &[Condition]| parts.iter().map(|part| Self::new(schema, part)).collect();
        let either: Vec<Vec<Self>> =
            condition.alternatives().into_iter().filter_map(each).collect();
        let helps = keys.is_some() || indexes.is_some() || !either.is_empty();
        helps.then_some(Self { keys, indexes, either })
    }

    /// The documents of a segment that the condition may hold for, ascending; `None` where they are found
    /// sooner from the columns.
    pub fn candidates(&self, segment: &Segment) -> Option<Vec<u32>> {
        let by_key = self.keys.as_ref().and_then(|keys| keys.candidates(segment));
        let by_index = || self.indexes.as_ref().and_then(|it| it.candidates(segment));
        let by_any = || self.either.iter().find_map(|parts| any_of(parts, segment));
        by_key.or_else(by_index).or_else(by_any)
    }
}

/// What any of the parts leaves.
fn any_of(parts: &[Narrowing], segment: &Segment) -> Option<Vec<u32>> {
    let doc_count = segment.doc_count();
    if parts.len().saturating_mul(PART_COST) > doc_count as usize {
        return None;
    }
    let most = (doc_count / CANDIDATE_SHARE) as usize;
    let mut docs = Vec::new();
    for part in parts {
        docs.append(&mut part.candidates(segment)?);
        if docs.len() > most {
            return None;
        }
    }
    docs.sort_unstable();
    docs.dedup();
    Some(docs)
}
