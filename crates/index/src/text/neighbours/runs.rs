//! Which runs of characters have lists, and their documents: length by length.

use rustc_hash::FxHashMap;

use super::{lists::Growing, stream::Stream};

/// A run with a list.
pub(super) struct Run {
    /// The run without its last character: a term, or an entry behind all terms.
    pub left: u32,
    /// The term of its last two characters.
    pub right: u32,
    /// The documents that hold it.
    pub docs: Growing,
}

/// What stands in a slot once a length is done: the number of a frequent run, and the term of its last two
/// characters by that number.
pub(super) struct Frequent {
    /// The run's number: a term, or an entry behind all terms.
    number: u32,
    last_term: u32,
}

/// Frequent runs of one length, by what stands in the slots.
pub(super) struct Runs {
    frequent: Vec<Frequent>,
}

impl Runs {
    /// The runs of two characters: these terms, ascending. What is no such term is taken out of
    /// the stream.
    pub fn of_terms(stream: &mut Stream, terms: &[u32]) -> Self {
        let places: FxHashMap<u32, u32> = terms.iter().copied().zip(0u32..).collect();
        stream.for_each_mut(|_, slots| {
            for slot in slots {
                let term = (*slot >> 1).checked_sub(1);
                let place = term.and_then(|term| places.get(&term));
                *slot = place.map_or(0, |place| (place + 1) << 1);
            }
        });
        let frequent = terms.iter().map(|&term| Frequent { number: term, last_term: term });
        Self { frequent: frequent.collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.frequent.is_empty()
    }

    /// The runs that are one character longer and stand in `least` documents at least, ascending.
    pub fn longer(&self, stream: &Stream, least: u32) -> Vec<Run> {
        let mut counts: FxHashMap<(u32, u32), (u32, u32)> = FxHashMap::default();
        stream.for_each(|doc, slots| {
            Self::for_each_pair(slots, |left, right| {
                let (count, last) = counts.entry((left, right)).or_insert((0, u32::MAX));
                *count += u32::from(*last != doc);
                *last = doc;
            });
        });
        counts.retain(|_, (count, _)| *count >= least);
        let mut kept: Vec<(u32, u32)> = counts.into_keys().collect();
        kept.sort_unstable_by_key(|&pair| self.key(pair));
        let slots_of: FxHashMap<(u32, u32), u32> = kept.iter().copied().zip(0u32..).collect();
        let mut docs: Vec<Growing> = kept.iter().map(|_| Growing::default()).collect();
        stream.for_each(|doc, slots| {
            Self::for_each_pair(slots, |left, right| {
                if let Some(&at) = slots_of.get(&(left, right)) {
                    docs[at as usize].add(doc);
                }
            });
        });
        let made = kept.into_iter().zip(docs).map(|(pair, docs)| {
            let (left, right) = self.key(pair);
            Run { left, right, docs }
        });
        made.collect()
    }

    /// Puts into the stream those of the longer runs that are frequent; `number` is the
    /// number of the first of them, others follow.
    pub fn extended(
        &self,
        stream: &mut Stream,
        longer: &[&Run],
        number: u32,
        frequent: u32,
    ) -> Self {
        let (mut places, mut kept) = (FxHashMap::default(), Vec::new());
        for (run, number) in longer.iter().zip(number..) {
            if run.docs.count() >= frequent {
                places.insert((run.left, run.right), kept.len() as u32);
                kept.push(Frequent { number, last_term: run.right });
            }
        }
        stream.for_each_mut(|_, slots| {
            // Each slot is read before the one that comes before it is written over.
            for at in 0..slots.len() {
                let behind = slots.get(at + 1).copied().unwrap_or(0);
                let pair = Self::pair(slots[at], behind).map(|pair| self.key(pair));
                let place = pair.and_then(|key| places.get(&key));
                slots[at] = place.map_or(0, |place| (place + 1) << 1);
            }
        });
        Self { frequent: kept }
    }

    /// Left and right number of a pair of places.
    fn key(&self, (left, right): (u32, u32)) -> (u32, u32) {
        let of = |place: u32| self.frequent.get(place as usize);
        (of(left).map_or(0, |run| run.number), of(right).map_or(0, |run| run.last_term))
    }

    /// The places in two slots behind each other. A run holds what its second slot begins with, so
    /// nothing stands between the two.
    #[inline]
    fn pair(left: u32, right: u32) -> Option<(u32, u32)> {
        Some(((left >> 1).checked_sub(1)?, (right >> 1).checked_sub(1)?))
    }

    #[inline]
    fn for_each_pair(slots: &[u32], mut visit: impl FnMut(u32, u32)) {
        for two in slots.windows(2) {
            if let Some((left, right)) = Self::pair(two[0], two[1]) {
                visit(left, right);
            }
        }
    }
}
