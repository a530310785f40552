//! Lists of the documents in which two frequent keywords stand at a short distance.
//!
//! Whether words are neighbours in a document as they are in a query decides its rank. Their positions tell, at the
//! price of reading those of both words: too much for words that most documents contain.
//!
//! ```text
//! TPRK := distances:u32 side:u32{distances} keyword:u32{the first side}    the frequent keywords, the most frequent first
//! TPRO := offsets            where each list lies in TPRL, see `text/offsets`: for each distance from 1 on, for each of
//!                            the first `side` keywords as the left one, for each of them as the right one; empty if no
//!                            document has the pair
//! TPRL := list*              see `text/neighbours/lists`
//! ```
//! A pair stands at a distance if a place of the right keyword is the left one's plus the distance. Fields are
//! concatenated, so a list can also have documents in which the two stand on either side of a border of fields. A document of
//! more than 2^18 keywords is in the lists of all its pairs.
//! The greater the distance, the fewer keywords have lists. `TPRL` stays in the file of a segment that was opened from
//! one. Few documents have no lists, and so have segments that were written before the lists existed.

use crate::{
    DocSet, IndexError, Result, SectionTag, Sections,
    bytes::{Stored, read_u32},
    text::parts::{Offsets, lists},
};

/// The greatest distance of two keywords that have a list.
pub const MOST_DISTANCE: u32 = 4;

pub(super) const PAIR_KEYWORDS: SectionTag = SectionTag(*b"TPRK");
pub(super) const PAIR_OFFSETS: SectionTag = SectionTag(*b"TPRO");
/// The lists.
pub(crate) const PAIR_LISTS: SectionTag = SectionTag(*b"TPRL");

/// The lists of a segment.
#[derive(Clone)]
pub(super) struct PairLists {
    /// For each distance, how many of the keywords have lists.
    sides: Vec<u32>,
    /// The keywords that have lists, with their ranks; ascending by keyword.
    ranks: Vec<(u32, u32)>,
    offsets: Offsets,
    lists: Stored,
}

impl PairLists {
    /// Opens the lists of the words `id`; `None` if they have none.
    pub(super) fn open(sections: &Sections, id: u32) -> Result<Option<Self>> {
        let Some(keys) = sections.get(PAIR_KEYWORDS, id) else { return Ok(None) };
        let corrupt = || IndexError::corrupt("the keywords that have lists of pairs");
        let distances = read_u32(keys, 0)?;
        if !(1..=MOST_DISTANCE).contains(&distances) {
            return Err(corrupt());
        }
        let numbers = keys.len() / 4;
        let number = |at: usize| read_u32(keys, at * 4);
        let first = 1 + distances as usize;
        let sides: Vec<u32> = (1..first).map(number).collect::<Result<_>>()?;
        let cells: u64 = sides.iter().map(|&side| u64::from(side) * u64::from(side)).sum();
        let offsets = Offsets::open(sections.require(PAIR_OFFSETS, id)?)?;
        let most = sides.first().map_or(0, |&side| side as usize);
        let is_right = sides.is_sorted_by(|a, b| a >= b)
            && keys.len().is_multiple_of(4)
            && numbers == first + most
            && u64::from(offsets.len()) == cells;
        if !is_right {
            return Err(corrupt());
        }
        let ranked = (0..most as u32).map(|rank| Ok((number(first + rank as usize)?, rank)));
        let mut ranks = ranked.collect::<Result<Vec<_>>>()?;
        ranks.sort_unstable();
        let lists = sections.require_stored(PAIR_LISTS, id)?.paged();
        Ok(Some(Self { sides, ranks, offsets, lists }))
    }

    /// Whether both have the same lists.
    pub(super) fn is_same(&self, other: &Self) -> Result<bool> {
        let count = self.offsets.len();
        Ok(self.sides == other.sides
            && self.ranks == other.ranks
            && count == other.offsets.len()
            && (0..count).all(|cell| self.offsets.range(cell) == other.offsets.range(cell))
            && *self.lists.read_all()? == *other.lists.read_all()?)
    }

    /// The documents in which `right` stands so far behind `left`; `None` if that is not known.
    pub(super) fn documents(
        &self,
        (left, right): (u32, u32),
        distance: u32,
        documents: u32,
    ) -> Result<Option<DocSet>> {
        let Some(nth) = distance.checked_sub(1).map(|nth| nth as usize) else { return Ok(None) };
        let Some(&side) = self.sides.get(nth) else { return Ok(None) };
        let rank = |keyword: u32| {
            let at = self.ranks.binary_search_by_key(&keyword, |&(keyword, _)| keyword).ok()?;
            self.ranks.get(at).map(|&(_, rank)| rank).filter(|&rank| rank < side)
        };
        let (Some(left), Some(right)) = (rank(left), rank(right)) else { return Ok(None) };
        let before = self.sides.iter().take(nth).map(|side| side * side).sum::<u32>();
        let range = self.offsets.range(before + left * side + right);
        if range.is_empty() {
            return Ok(Some(DocSet::empty()));
        }
        let list = self.lists.read(range.start as u64, range.len())?;
        lists::read(&list, documents).map(Some)
    }
}
