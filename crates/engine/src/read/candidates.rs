//! Candidate documents of a condition, and which keys and indexes found them.

use smallvec::SmallVec;

use crate::FoundBy;

/// The keys and indexes that found documents, each once.
pub(super) type FoundByKeys = SmallVec<[FoundBy; 2]>;

/// Candidate documents of a condition.
pub(super) struct Candidates {
    /// The documents, ascending.
    pub docs: Vec<u32>,
    /// The keys and indexes that found them.
    pub found: FoundByKeys,
    /// Whether all of them certainly satisfy the condition.
    pub is_all: bool,
}

impl Candidates {
    pub fn of(docs: Vec<u32>, found: impl IntoIterator<Item = FoundBy>, is_all: bool) -> Self {
        Self { docs, found: FoundByKeys::from_iter(found), is_all }
    }
}

/// Adds the indexes that found documents of another part or segment.
pub(super) fn add(more: FoundByKeys, found: &mut FoundByKeys) {
    for it in more {
        match found.iter_mut().find(|other| other.index == it.index) {
            None => found.push(it),
            Some(other) => {
                other.columns = other.columns.max(it.columns);
                other.is_bounded |= it.is_bounded;
                other.is_single &= it.is_single;
                other.is_intersected |= it.is_intersected;
            }
        }
    }
}
