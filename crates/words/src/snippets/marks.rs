//! Which positions of a text a query marks: those that make it match, and none if it does not match.
//!
//! Positions are bit sets, and ordered occurrences are read lazily, so that memory stays small for hostile queries.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque},
};

use rustc_hash::FxHashSet;

use super::{
    shape::{Shape, SnippetWord},
    work::Work,
};

/// A set of positions, as bits.
#[derive(Clone, Debug, Default)]
pub(super) struct PositionBits(Vec<u64>);

impl PositionBits {
    fn new(last: u32) -> Self {
        Self(vec![0; last as usize / 64 + 1])
    }

    pub(super) fn contains(&self, position: u32) -> bool {
        let bits = self.0.get(position as usize / 64).copied().unwrap_or(0);
        bits >> (position % 64) & 1 == 1
    }

    fn insert(&mut self, position: u32) {
        if let Some(bits) = self.0.get_mut(position as usize / 64) {
            *bits |= 1 << (position % 64);
        }
    }

    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(bits, other)| *bits |= other);
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|&bits| bits == 0)
    }

    /// Keeps the positions p for which `other` has p + `distance`.
    fn keep_before(&mut self, other: &Self, distance: u32) {
        let (words, shift) = (distance as usize / 64, distance % 64);
        for (at, bits) in self.0.iter_mut().enumerate() {
            let low = other.0.get(at + words).copied().unwrap_or(0) >> shift;
            let high = other.0.get(at + words + 1).copied().unwrap_or(0);
            *bits &= if shift == 0 { low } else { low | high << (64 - shift) };
        }
    }

    /// The first position from `from` on.
    fn next(&self, from: u32) -> Option<u32> {
        let first = from as usize / 64;
        let masked = self.0.get(first)? >> (from % 64) << (from % 64);
        let rest = self.0.iter().copied().enumerate().skip(first + 1);
        let (at, bits) =
            std::iter::once((first, masked)).chain(rest).find(|(_, bits)| *bits != 0)?;
        Some(at as u32 * 64 + bits.trailing_zeros())
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.next(0), |&at| self.next(at + 1))
    }
}

/// The positions of each word of a query, by its number. A word takes at most one bit per position of the text. Words
/// without wildcards together take at most four bytes per word found.
#[derive(Debug)]
pub(super) struct Places(Vec<PositionSet>);

#[derive(Clone, Debug)]
enum PositionSet {
    Few(Vec<u32>),
    Many(PositionBits),
}

/// Up to this many positions are always stored as a list.
const MAX_FEW: usize = 1024;

impl Places {
    pub(super) fn new(words: usize) -> Self {
        Self(vec![PositionSet::Few(Vec::new()); words])
    }

    /// Whether a word was found.
    pub(super) fn has(&self, number: usize) -> bool {
        match self.0.get(number) {
            Some(PositionSet::Few(few)) => !few.is_empty(),
            Some(PositionSet::Many(_)) => true,
            None => false,
        }
    }

    /// Adds a position of a word. Positions must not decrease.
    pub(super) fn insert(&mut self, number: u32, position: u32) {
        let Some(place) = self.0.get_mut(number as usize) else { return };
        match place {
            PositionSet::Few(few) => {
                few.push(position);
                // From here on bits take less memory.
                if few.len() > MAX_FEW && few.len() > position as usize / 32 {
                    let mut many = PositionBits::new(position);
                    few.iter().for_each(|&position| many.insert(position));
                    *place = PositionSet::Many(many);
                }
            }
            PositionSet::Many(many) => {
                many.0.resize(many.0.len().max(position as usize / 64 + 1), 0);
                many.insert(position);
            }
        }
    }
}

/// The words of a query found in a text.
pub(super) struct FoundWords<'a> {
    pub places: &'a Places,
    /// The last position of the text.
    pub last: u32,
    pub work: &'a Work<'a>,
}

/// Positions processed at once that count as a step of work.
const STEP_POSITIONS: u32 = 1 << 10;

/// The first and last position of an occurrence.
type MarkedSpan = (u32, u32);

impl FoundWords<'_> {
    /// The positions that a query marks; `None` if it does not match or the work is ended. Cost: the product of the
    /// query's words and the text's words, 64 of which count as one, and n log n in the occurrences.
    pub(super) fn marked(&self, shape: &Shape) -> Option<PositionBits> {
        if !self.goes_on() {
            return None;
        }
        match shape {
            Shape::Word(leaf) => self.word(*leaf),
            Shape::Phrase(leaves) => {
                let mut found = PositionBits::new(self.last);
                let first = leaves.first()?.position;
                for (start, _) in self.phrase(leaves)? {
                    let places = leaves.iter().map(|leaf| leaf.position.saturating_sub(first));
                    places.for_each(|place| found.insert(start.saturating_add(place)));
                }
                filled(found)
            }
            Shape::Span(leaves) => {
                let mut found = PositionBits::new(self.last);
                self.phrase(leaves)?.for_each(|span| self.mark(span, &mut found));
                filled(found)
            }
            Shape::Proximity(leaves, distance) => self.proximity(leaves, *distance),
            Shape::Quorum(leaves, least) => self.quorum(leaves, *least),
            Shape::And(parts) => {
                let mut all = PositionBits::new(self.last);
                for part in parts {
                    all.add(&self.marked(part)?);
                }
                filled(all)
            }
            Shape::Or(parts) => filled(self.any(parts)),
            Shape::Maybe(parts) => {
                let (first, others) = parts.split_first()?;
                let mut found = self.marked(first)?;
                found.add(&self.any(others));
                Some(found)
            }
            Shape::AndNot(part, without) => {
                self.marked(part).filter(|_| self.marked(without).is_none())
            }
            Shape::Before(parts) => self.before(parts),
            Shape::Near(parts, distance) => self.near(parts, *distance),
        }
    }

    /// Counts the work on all positions; returns whether to continue.
    fn goes_on(&self) -> bool {
        self.work.goes_on(1 + (self.last / STEP_POSITIONS) as usize)
    }

    fn any(&self, parts: &[Shape]) -> PositionBits {
        let mut any = PositionBits::new(self.last);
        parts.iter().filter_map(|part| self.marked(part)).for_each(|found| any.add(&found));
        any
    }

    /// The positions of a word that satisfy its modifiers, in order.
    fn places_of(&self, leaf: SnippetWord) -> Option<Box<dyn Iterator<Item = u32> + '_>> {
        let places: Box<dyn Iterator<Item = u32>> = match self.places.0.get(leaf.term? as usize)? {
            PositionSet::Few(few) => Box::new(few.iter().copied()),
            PositionSet::Many(many) => Box::new(many.iter()),
        };
        if is_plain(leaf) {
            return Some(places);
        }
        let is_kept = move |position: &u32| {
            (!leaf.at_start || *position == 1)
                && (!leaf.at_end || *position == self.last)
                && (leaf.last_position == 0 || *position <= leaf.last_position)
        };
        Some(Box::new(places.filter(is_kept)))
    }

    fn word(&self, leaf: SnippetWord) -> Option<PositionBits> {
        if !self.goes_on() {
            return None;
        }
        let mut found = PositionBits::new(self.last);
        match self.places.0.get(leaf.term? as usize)? {
            PositionSet::Many(many) if is_plain(leaf) => found.add(many),
            _ => self.places_of(leaf)?.for_each(|position| found.insert(position)),
        }
        filled(found)
    }

    /// The occurrences of a phrase, without overlaps.
    fn phrase(&self, leaves: &[SnippetWord]) -> Option<impl Iterator<Item = MarkedSpan> + use<>> {
        let (first, others) = leaves.split_first()?;
        let mut starts = self.word(*first)?;
        let mut length = 0;
        for leaf in others {
            length = leaf.position.saturating_sub(first.position);
            starts.keep_before(&self.word(*leaf)?, length);
        }
        let mut from = 0;
        Some(std::iter::from_fn(move || {
            let start = starts.next(from)?;
            let end = start.saturating_add(length);
            from = end.saturating_add(1);
            Some((start, end))
        }))
    }

    fn mark(&self, (start, end): MarkedSpan, found: &mut PositionBits) {
        (start..=end.min(self.last)).for_each(|position| found.insert(position));
    }

    fn quorum(&self, leaves: &[SnippetWord], least: usize) -> Option<PositionBits> {
        let (mut all, mut count) = (PositionBits::new(self.last), 0);
        for found in leaves.iter().filter_map(|leaf| self.word(*leaf)) {
            all.add(&found);
            count += 1;
        }
        filled(all).filter(|_| count >= least.min(leaves.len()))
    }

    /// Marks all words if they are close enough to each other, in any order. After a match, the leftmost word must be
    /// found again.
    fn proximity(&self, leaves: &[SnippetWord], distance: u32) -> Option<PositionBits> {
        let mut terms = FxHashSet::default();
        let mut places = Vec::new();
        for leaf in leaves {
            if terms.insert(leaf.term?) {
                places.push(self.places_of(*leaf)?.map(|place| (place, place)));
            }
        }
        let most = (leaves.len() as u32).saturating_add(distance).saturating_sub(1);
        let count = places.len();
        let mut found = PositionBits::new(self.last);
        // The last position of each word, by word and in order; and the positions that are not marked yet.
        let mut last: Vec<Option<u32>> = vec![None; count];
        let (mut order, mut unmarked) = (BTreeSet::new(), Vec::new());
        for ((position, _), index) in merged(places) {
            if !self.work.goes_on(1) {
                return None;
            }
            if let Some(before) = last[index].replace(position) {
                order.remove(&(before, index));
            }
            order.insert((position, index));
            unmarked.push((position, index));
            // Only the last position of each word can still be marked.
            if unmarked.len() > 2 * count {
                unmarked.retain(|&(at, index)| last[index] == Some(at));
            }
            let Some(&(first, leftmost)) = order.first() else { continue };
            if order.len() < count || position - first >= most {
                continue;
            }
            let current = unmarked.drain(..).filter(|&(at, index)| last[index] == Some(at));
            current.for_each(|(at, _)| found.insert(at));
            order.remove(&(first, leftmost));
            last[leftmost] = None;
        }
        filled(found)
    }

    /// The occurrences of a part, in order.
    fn occurrences(&self, shape: &Shape) -> Box<dyn Iterator<Item = MarkedSpan> + '_> {
        if let Shape::Phrase(leaves) = shape {
            return Box::new(self.phrase(leaves).into_iter().flatten());
        }
        let found = self.marked(shape).unwrap_or_default();
        let mut next = 0;
        Box::new(std::iter::from_fn(move || {
            let at = found.next(next)?;
            next = at.saturating_add(1);
            Some((at, at))
        }))
    }

    /// Marks parts that occur one after the other. Two sequences are tracked: the longest so far, and one that began
    /// later and replaces it once it is as long.
    fn before(&self, parts: &[Shape]) -> Option<PositionBits> {
        let mut found = PositionBits::new(self.last);
        let (mut longest, mut recent): (Vec<MarkedSpan>, Vec<MarkedSpan>) =
            (Vec::new(), Vec::new());
        // The end of the last complete sequence.
        let mut behind = 0;
        let goes_on = |sequence: &[MarkedSpan], behind: u32, part: usize, span: MarkedSpan| {
            let end = sequence.last().map_or(behind, |(_, end)| *end);
            part == sequence.len() && span.0 > end
        };
        for (span, part) in merged(parts.iter().map(|part| self.occurrences(part)).collect()) {
            if !self.work.goes_on(1) {
                return None;
            }
            if goes_on(&longest, behind, part, span) {
                longest.push(span);
                if longest.len() == parts.len() {
                    longest.drain(..).for_each(|span| self.mark(span, &mut found));
                    recent.clear();
                    behind = span.1;
                }
            } else if part == 0 {
                recent.clear();
                recent.push(span);
                if longest.is_empty() {
                    longest.push(span);
                }
            } else if goes_on(&recent, behind, part, span) {
                recent.push(span);
                if recent.len() >= longest.len() {
                    longest.clone_from(&recent);
                }
            }
        }
        filled(found)
    }

    /// Marks parts of which each is close after another one.
    fn near(&self, parts: &[Shape], distance: u32) -> Option<PositionBits> {
        let mut found = PositionBits::new(self.last);
        let mut chain: VecDeque<(MarkedSpan, usize)> = VecDeque::new();
        for (span, part) in merged(parts.iter().map(|part| self.occurrences(part)).collect()) {
            if !self.work.goes_on(1) {
                return None;
            }
            let last = chain.back().map(|(last, _)| *last);
            if last.is_some_and(|last| span.0 > last.1.saturating_add(distance)) {
                chain.clear();
            }
            // An earlier occurrence of the same part is removed, with everything before it.
            if let Some(place) = chain.iter().position(|(_, other)| *other == part) {
                chain.drain(..=place);
            }
            chain.push_back((span, part));
            if chain.len() < parts.len() {
                continue;
            }
            chain.iter().for_each(|(span, _)| self.mark(*span, &mut found));
            // With two parts, the second one also begins the next pair.
            let first = chain.front().map(|(_, part)| *part).filter(|_| parts.len() == 2);
            chain.clear();
            chain.extend(first.map(|part| (span, part)));
        }
        filled(found)
    }
}

fn is_plain(leaf: SnippetWord) -> bool {
    !leaf.at_start && !leaf.at_end && leaf.last_position == 0
}

fn filled(found: PositionBits) -> Option<PositionBits> {
    Some(found).filter(|found| !found.is_empty())
}

/// Merges several ordered iterators; each item comes with the number of its iterator.
fn merged<I: Iterator<Item = MarkedSpan>>(
    mut parts: Vec<I>,
) -> impl Iterator<Item = (MarkedSpan, usize)> {
    let mut next: BinaryHeap<Reverse<(MarkedSpan, usize)>> = BinaryHeap::new();
    for (number, part) in parts.iter_mut().enumerate() {
        next.extend(part.next().map(|span| Reverse((span, number))));
    }
    std::iter::from_fn(move || {
        let Reverse((span, number)) = next.pop()?;
        let following = parts.get_mut(number).and_then(Iterator::next);
        next.extend(following.map(|span| Reverse((span, number))));
        Some((span, number))
    })
}
