//! Chooses the passages of an excerpt and cuts them to size.
//!
//! The best passage comes first. While words of the query are missing, the others are ranked by the number of missing
//! words they have, then by weight without the lengths of words already present. A passage with a missing word is
//! taken if the matches of all taken passages fit; another one if its matches fit beside the whole of the others. The
//! first one that does not fit ends the choice. Then pieces are removed from both sides until everything fits.

use super::{
    passages::{self, Hits, Limits, Passage},
    pieces::Pieces,
    work::Work,
};

/// How often at most passages are ranked again by missing words.
const MAX_RANKINGS: usize = 64;
/// The number of rankings shrinks with the length of the text, so that all of them together read
/// about [`RANKED_PIECES`] pieces, but not below this.
const MIN_RANKINGS: usize = 4;
const RANKED_PIECES: usize = 1 << 24;

/// The limits of an excerpt.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub characters: Option<u64>,
    pub words: Option<u64>,
    pub passages: Option<usize>,
}

/// The size of a part of an excerpt.
#[derive(Clone, Copy, Default)]
struct Size {
    characters: u64,
    words: u64,
}

impl Size {
    fn plus(self, other: Self) -> Self {
        let characters = self.characters + other.characters;
        Self { characters, words: self.words + other.words }
    }

    fn fits(self, room: Room) -> bool {
        room.characters.is_none_or(|most| self.characters <= most)
            && room.words.is_none_or(|most| self.words <= most)
    }
}

/// The passages of the excerpt, the best first, cut to size. `lengths` are those of the query's words. Cost: linear
/// in the pieces, at most [`MAX_RANKINGS`] times, and n log n in the passages. If the work is ended, the result has
/// no meaning.
pub(super) fn choose(
    pieces: &Pieces,
    hits: &Hits,
    lengths: &[u32],
    limits: Limits<'_>,
    room: Room,
    has_all_words: bool,
    work: &Work<'_>,
) -> Vec<Passage> {
    let number_of = |hit: usize| pieces.number(hits.piece(hit)).map_or(0, |it| it as usize);
    let mut wanted = vec![false; lengths.len()];
    for hit in 0..hits.hits.len() {
        wanted.get_mut(number_of(hit)).into_iter().for_each(|wanted| *wanted = true);
    }
    let mut left = wanted.clone();
    let mut choice = Choice::new(pieces, hits, room, work);
    let rankings = (RANKED_PIECES / pieces.len().max(1)).clamp(MIN_RANKINGS, MAX_RANKINGS);
    for ranking in 0..rankings {
        let passages = passages::find(pieces, hits, lengths, &wanted, limits, work);
        if work.is_over() {
            break;
        }
        let rank = |passage: &Passage| match ranking {
            0 => (passage.distinct, passage.weight),
            _ if passage.wanted > 0 => (passage.wanted, passage.wanted_weight),
            _ => (0, passage.weight),
        };
        let is_changed = choice.take(&passages, rank, |passage| {
            for hit in passage.first..=passage.last {
                left.get_mut(number_of(hit)).into_iter().for_each(|left| *left = false);
            }
            // If no word is missing any more, the order stays.
            left != wanted && left.contains(&true)
        });
        if !is_changed {
            break;
        }
        wanted.clone_from(&left);
    }
    if has_all_words {
        choice.cut_front();
    } else {
        choice.cut();
    }
    choice.chosen
}

/// The state of the choice.
struct Choice<'a> {
    pieces: &'a Pieces,
    hits: &'a Hits,
    room: Room,
    work: &'a Work<'a>,
    /// The hits in no passage yet, and those of them whose words no passage has.
    free: Free,
    missing: Missing,
    /// The size of the chosen passages, and that of the matches in them.
    size: Size,
    found_size: Size,
    /// Which passages were considered.
    is_done: Vec<bool>,
    chosen: Vec<Passage>,
}

impl<'a> Choice<'a> {
    fn new(pieces: &'a Pieces, hits: &'a Hits, room: Room, work: &'a Work<'a>) -> Self {
        Self {
            pieces,
            hits,
            room,
            work,
            free: Free::new(hits.hits.len()),
            missing: Missing::new(pieces, hits),
            size: Size::default(),
            found_size: Size::default(),
            is_done: Vec::new(),
            chosen: Vec::new(),
        }
    }

    /// Takes passages, ordered by `rank` and then by size, while they fit. Stops when a passage changes the ranks;
    /// returns whether one did.
    fn take(
        &mut self,
        passages: &[Passage],
        rank: impl Fn(&Passage) -> (u32, u64),
        mut changes: impl FnMut(&Passage) -> bool,
    ) -> bool {
        self.is_done.resize(passages.len(), false);
        let mut order: Vec<usize> = (0..passages.len()).filter(|&it| !self.is_done[it]).collect();
        order.sort_by_key(|&number| {
            let passage = &passages[number];
            let characters = self.pieces.characters(passage.start, passage.end);
            std::cmp::Reverse((rank(passage), characters))
        });
        for number in order {
            let passage = &passages[number];
            self.is_done[number] = true;
            if !self.work.goes_on(1) {
                return false;
            }
            if self.free.next(passage.first) > passage.last {
                continue;
            }
            if !self.fits(passage) {
                return false;
            }
            self.choose(passage.clone());
            if changes(passage) {
                return true;
            }
        }
        false
    }

    fn size_of(&self, passage: &Passage) -> Size {
        let (start, end) = (passage.start, passage.end);
        let words = self.pieces.words(start, end);
        Size { characters: self.pieces.characters(start, end), words }
    }

    /// The size from the first to the last match of the passage.
    fn found_in(&self, passage: &Passage) -> Size {
        let hits = self.hits;
        let (start, end) = (hits.piece(passage.first), hits.piece(passage.last) + 1);
        let words = (hits.ordinal(passage.last) - hits.ordinal(passage.first)) as u64 + 1;
        Size { characters: self.pieces.characters(start, end), words }
    }

    fn fits(&mut self, passage: &Passage) -> bool {
        if self.chosen.is_empty() {
            return true;
        }
        let taken = if self.missing.is_in(passage) { self.found_size } else { self.size };
        self.room.passages.is_none_or(|most| self.chosen.len() < most)
            && taken.plus(self.found_in(passage)).fits(self.room)
    }

    fn choose(&mut self, passage: Passage) {
        self.free.take(passage.first, passage.last);
        self.missing.take(&passage, self.pieces, self.hits);
        self.size = self.size.plus(self.size_of(&passage));
        self.found_size = self.found_size.plus(self.found_in(&passage));
        self.chosen.push(passage);
    }

    /// Removes pieces from the passages, the worst first and one each in turn, until they fit. Matches stay.
    fn cut(&mut self) {
        let mut left: Vec<usize> = (0..self.chosen.len()).rev().collect();
        let mut is_odd = true;
        while !left.is_empty() {
            left.retain(|&number| {
                if self.size.fits(self.room) || !self.work.goes_on(1) {
                    return false;
                }
                let Some(dropped) = self.drop_one(number, is_odd) else { return false };
                self.size.characters -= self.pieces.characters(dropped, dropped + 1);
                self.size.words -= u64::from(self.pieces.is_word(dropped));
                true
            });
            is_odd = !is_odd;
        }
    }

    /// Removes a piece from the side of a passage that has more of them, and returns it; `None` if only matches are
    /// left.
    fn drop_one(&mut self, number: usize, is_odd: bool) -> Option<usize> {
        let passage = self.chosen.get_mut(number)?;
        let (first, last) = (self.hits.piece(passage.first), self.hits.piece(passage.last));
        let (can_front, can_back) = (passage.start < first, passage.end > last + 1);
        // The part cut off the window before it counts too.
        let before = first - passage.start + passage.cut;
        let after = passage.end - 1 - last;
        let is_front = match before.cmp(&after) {
            std::cmp::Ordering::Equal => {
                let front_is_sign = !self.pieces.is_word(passage.start);
                let back_is_sign = !self.pieces.is_word(passage.end - 1);
                if front_is_sign == back_is_sign { is_odd } else { front_is_sign }
            }
            order => order.is_gt(),
        };
        if can_front && (is_front || !can_back) {
            passage.start += 1;
            return Some(passage.start - 1);
        }
        can_back.then(|| {
            passage.end -= 1;
            passage.end
        })
    }

    /// Removes what precedes the first match of each passage, if the passages do not fit.
    fn cut_front(&mut self) {
        if self.size.fits(self.room) {
            return;
        }
        for passage in &mut self.chosen {
            passage.start = self.hits.piece(passage.first);
        }
    }
}

/// A set of numbers from which ranges are removed.
struct Free {
    /// For each number: the next free one, or a step towards it.
    next: Vec<u32>,
}

impl Free {
    fn new(count: usize) -> Self {
        Self { next: (0..=count as u32).collect() }
    }

    /// The first free number from `from` on.
    fn next(&mut self, from: usize) -> usize {
        let mut at = from;
        while let Some(&next) = self.next.get(at)
            && next as usize != at
        {
            let further = self.next.get(next as usize).copied().unwrap_or(next);
            self.next[at] = further;
            at = next as usize;
        }
        at
    }

    fn take(&mut self, first: usize, last: usize) {
        let mut at = self.next(first);
        while at <= last {
            self.next[at] = at as u32 + 1;
            at = self.next(at + 1);
        }
    }
}

/// The hits of words that no passage has yet.
struct Missing {
    /// The hits by word number.
    by_number: Vec<Vec<u32>>,
    free: Free,
}

impl Missing {
    fn new(pieces: &Pieces, hits: &Hits) -> Self {
        let mut by_number: Vec<Vec<u32>> = Vec::new();
        for (hit, found) in hits.hits.iter().enumerate() {
            let number = pieces.number(found.piece).map_or(0, |number| number as usize);
            if by_number.len() <= number {
                by_number.resize(number + 1, Vec::new());
            }
            by_number[number].push(hit as u32);
        }
        Self { by_number, free: Free::new(hits.hits.len()) }
    }

    fn is_in(&mut self, passage: &Passage) -> bool {
        self.free.next(passage.first) <= passage.last
    }

    /// Marks the words of the passage as present.
    fn take(&mut self, passage: &Passage, pieces: &Pieces, hits: &Hits) {
        loop {
            let hit = self.free.next(passage.first);
            if hit > passage.last {
                return;
            }
            let number = pieces.number(hits.piece(hit)).map_or(0, |number| number as usize);
            let all = self.by_number.get_mut(number).map(std::mem::take).unwrap_or_default();
            self.free.take(hit, hit);
            all.into_iter().for_each(|hit| self.free.take(hit as usize, hit as usize));
        }
    }
}
