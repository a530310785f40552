//! Candidates for an excerpt: the best windows over the matches.
//!
//! A window slides over the pieces of a text. It has at most `characters` characters and, besides matches, at most
//! twice `around` words; or at most `words` words, if they are limited. The weight of a window is 2 per match, plus
//! the length of each distinct matched word times the number of words of its longest run, plus the number of words on
//! the side of its matches that has fewer. A run is a sequence of query words that are adjacent in the text as in the
//! query. Of windows with the same weight the one with more even sides is better. A passage is the best window until
//! its first match leaves the window and a new one enters.

use std::collections::VecDeque;

use super::{pieces::Pieces, work::Work};

/// The size limits of passages.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    /// The most characters of a passage.
    pub characters: u64,
    /// The most words of a passage, including matches; if `None`, `around` limits them.
    pub words: Option<u64>,
    /// The most words on each side of the matches.
    pub around: usize,
    /// The pieces at which passages end, ascending.
    pub ends: &'a [usize],
}

/// A matched word.
pub(super) struct MarkedWord {
    pub piece: usize,
    /// The number of words before it.
    ordinal: usize,
    /// The number of words of the longest run that ends with it.
    run: usize,
}

/// The matches of a text, and the pieces of its words.
pub(super) struct Hits {
    pub hits: Vec<MarkedWord>,
    /// The piece of each word.
    words: Vec<u32>,
}

impl Hits {
    /// `places` are the places of each word in the query.
    pub(super) fn new(pieces: &Pieces, places: &[Vec<u32>]) -> Self {
        let (mut hits, mut words) = (Vec::new(), Vec::new());
        // The places of the last word, each with the length of the run that ends there.
        let mut runs: Vec<(u32, usize)> = Vec::new();
        let mut last_runs: Vec<(u32, usize)> = Vec::new();
        for piece in (0..pieces.len()).filter(|&piece| pieces.is_word(piece)) {
            runs.clear();
            if let Some(number) = pieces.number(piece) {
                for &place in places.get(number as usize).into_iter().flatten() {
                    let before = last_runs.iter().find(|(last, _)| last + 1 == place);
                    runs.push((place, before.map_or(0, |(_, length)| *length) + 1));
                }
                let run = runs.iter().map(|(_, length)| *length).max().unwrap_or(1);
                hits.push(MarkedWord { piece, ordinal: words.len(), run });
            }
            std::mem::swap(&mut runs, &mut last_runs);
            words.push(piece as u32);
        }
        Self { hits, words }
    }

    /// The piece of a match.
    pub(super) fn piece(&self, hit: usize) -> usize {
        self.hits.get(hit).map_or(0, |hit| hit.piece)
    }

    /// The number of words before a match.
    pub(super) fn ordinal(&self, hit: usize) -> usize {
        self.hits.get(hit).map_or(0, |hit| hit.ordinal)
    }

    /// The number of words of the run that ends with a match, counting from the match `first` on.
    fn run(&self, hit: usize, first: usize) -> usize {
        self.hits.get(hit).map_or(0, |it| it.run).min((hit + 1).saturating_sub(first))
    }

    fn word(&self, ordinal: usize) -> usize {
        self.words.get(ordinal).map_or(0, |&piece| piece as usize)
    }
}

/// A window that may become a part of an excerpt.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    /// The pieces of the window, with at most `around` words on each side of the matches.
    pub start: usize,
    pub end: usize,
    /// The number of pieces of the window before these.
    pub cut: usize,
    /// The first and last match in it.
    pub first: usize,
    pub last: usize,
    /// The number of distinct matched words, and how many of those are wanted.
    pub distinct: u32,
    pub wanted: u32,
    pub weight: u64,
    /// The weight without the lengths of words that are not wanted.
    pub wanted_weight: u64,
    imbalance: usize,
}

impl Passage {
    fn is_better(&self, other: &Self) -> bool {
        match self.weight.cmp(&other.weight) {
            std::cmp::Ordering::Equal => {
                self.distinct >= other.distinct && self.imbalance < other.imbalance
            }
            order => order.is_gt(),
        }
    }
}

/// The passages of a text in order; `wanted` says which words are wanted, `lengths` are those of the query's words.
/// Cost: linear in the pieces. If the work is ended, only the passages found so far.
pub(super) fn find(
    pieces: &Pieces,
    hits: &Hits,
    lengths: &[u32],
    wanted: &[bool],
    limits: Limits<'_>,
    work: &Work<'_>,
) -> Vec<Passage> {
    let mut window = Window::new(pieces, hits, lengths, wanted, limits);
    let mut out = Vec::new();
    let mut is_full = false;
    let mut ends = limits.ends.iter().peekable();
    for piece in 0..pieces.len() {
        if !work.goes_on(1) {
            break;
        }
        if ends.next_if(|&&end| end == piece).is_some() {
            window.grow();
            window.slide();
            window.offer(&mut out);
            window.clear();
            is_full = false;
            continue;
        }
        let is_word = pieces.is_word(piece);
        let is_first = !is_full && window.would_overflow();
        // The first window that is full is offered with the word that exceeds the limit of words,
        // but without one that exceeds the limit of characters. It is offered again after it was
        // shrunk.
        if is_first && window.would_exceed_characters() {
            window.offer(&mut out);
        }
        window.grow();
        if is_first && !window.exceeds_characters() {
            window.offer(&mut out);
        }
        is_full |= is_first;
        let has_slid = window.slide();
        if is_first || is_full && (is_word || has_slid) {
            window.offer(&mut out);
        }
    }
    window.offer(&mut out);
    out
}

struct Window<'a> {
    pieces: &'a Pieces,
    hits: &'a Hits,
    lengths: &'a [u32],
    wanted: &'a [bool],
    limits: Limits<'a>,
    /// The pieces, the words and the matches of the window.
    start: usize,
    end: usize,
    words: std::ops::Range<usize>,
    found: std::ops::Range<usize>,
    /// How often each word of the query is in the window.
    counts: Vec<u32>,
    distinct: u32,
    wanted_count: u32,
    /// The total length of distinct words, and of the wanted ones.
    length: u64,
    wanted_length: u64,
    /// Matches that end long runs, in order; each run is longer than the later ones.
    runs: VecDeque<usize>,
}

impl<'a> Window<'a> {
    fn new(
        pieces: &'a Pieces,
        hits: &'a Hits,
        lengths: &'a [u32],
        wanted: &'a [bool],
        limits: Limits<'a>,
    ) -> Self {
        Self {
            pieces,
            hits,
            lengths,
            wanted,
            limits,
            start: 0,
            end: 0,
            words: 0..0,
            found: 0..0,
            counts: vec![0; lengths.len()],
            distinct: 0,
            wanted_count: 0,
            length: 0,
            wanted_length: 0,
            runs: VecDeque::new(),
        }
    }

    fn most_words(&self, found: usize) -> u64 {
        let around = 2 * self.limits.around as u64 + found as u64;
        self.limits.words.unwrap_or(around)
    }

    fn exceeds_characters(&self) -> bool {
        self.pieces.characters(self.start, self.end) > self.limits.characters
    }

    fn overflows(&self) -> bool {
        self.words.len() as u64 > self.most_words(self.found.len()) || self.exceeds_characters()
    }

    fn would_exceed_characters(&self) -> bool {
        self.pieces.characters(self.start, self.end + 1) > self.limits.characters
    }

    /// Whether the next piece does not fit.
    fn would_overflow(&self) -> bool {
        let words = self.words.len() + usize::from(self.pieces.is_word(self.end));
        let found = self.found.len() + usize::from(self.pieces.number(self.end).is_some());
        words as u64 > self.most_words(found) || self.would_exceed_characters()
    }

    fn grow(&mut self) {
        self.words.end += usize::from(self.pieces.is_word(self.end));
        if let Some(number) = self.pieces.number(self.end) {
            self.add_run();
            self.count(number as usize, true);
        }
        self.end += 1;
    }

    fn shrink(&mut self) {
        self.words.start += usize::from(self.pieces.is_word(self.start));
        if let Some(number) = self.pieces.number(self.start) {
            self.found.start += 1;
            self.leave_runs();
            self.count(number as usize, false);
        }
        self.start += 1;
    }

    /// Shrinks the window until it fits; returns whether that was needed.
    fn slide(&mut self) -> bool {
        let start = self.start;
        while self.start + 1 < self.end && self.overflows() {
            self.shrink();
        }
        self.start > start
    }

    fn clear(&mut self) {
        while self.start < self.end {
            self.shrink();
        }
    }

    /// Counts a match that enters or leaves the window.
    fn count(&mut self, number: usize, comes: bool) {
        let Some(count) = self.counts.get_mut(number) else { return };
        *count = if comes { *count + 1 } else { *count - 1 };
        if *count != u32::from(comes) {
            return;
        }
        let length = self.lengths.get(number).map_or(0, |&length| u64::from(length));
        let is_wanted = self.wanted.get(number).copied().unwrap_or(false);
        let wanted_length = if is_wanted { length } else { 0 };
        if comes {
            self.distinct += 1;
            self.wanted_count += u32::from(is_wanted);
            self.length += length;
            self.wanted_length += wanted_length;
        } else {
            self.distinct -= 1;
            self.wanted_count -= u32::from(is_wanted);
            self.length -= length;
            self.wanted_length -= wanted_length;
        }
    }

    fn add_run(&mut self) {
        let hit = self.found.end;
        self.found.end += 1;
        let run = self.hits.run(hit, 0);
        while self.runs.back().is_some_and(|&other| self.hits.run(other, 0) <= run) {
            self.runs.pop_back();
        }
        self.runs.push_back(hit);
    }

    /// Removes runs that are now shorter than later ones.
    fn leave_runs(&mut self) {
        let first = self.found.start;
        while let Some(&hit) = self.runs.front() {
            let next = self.runs.get(1).map_or(0, |&next| self.hits.run(next, first));
            if hit >= first && self.hits.run(hit, first) >= next {
                return;
            }
            self.runs.pop_front();
        }
    }

    /// The window as a passage, if it has matches.
    fn passage(&self) -> Option<Passage> {
        if self.found.is_empty() {
            return None;
        }
        let (first, last) = (self.found.start, self.found.end - 1);
        let (first_word, last_word) = (self.hits.ordinal(first), self.hits.ordinal(last));
        let before = first_word - self.words.start;
        let after = self.words.end - 1 - last_word;
        let around = self.limits.around;
        let start = match before > around {
            true => self.hits.word(first_word - around - 1) + 1,
            false => self.start,
        };
        let end = match after > around {
            true => self.hits.word(last_word + around + 1),
            false => self.end,
        };
        // The first piece of a passage does not count, except at the beginning of the text.
        let pieces_before = self.hits.piece(first) - start;
        let pieces_before = pieces_before.saturating_sub(usize::from(start > 0));
        let pieces_after = end - 1 - self.hits.piece(last);
        let run = self.runs.front().map_or(1, |&hit| self.hits.run(hit, first)) as u64;
        let base = 2 * self.found.len() as u64 + before.min(after) as u64;
        Some(Passage {
            start,
            end,
            cut: start - self.start,
            first,
            last,
            distinct: self.distinct,
            wanted: self.wanted_count,
            weight: base + self.length * run,
            wanted_weight: base + self.wanted_length * run,
            imbalance: pieces_before.abs_diff(pieces_after),
        })
    }

    /// Adds the window as a passage, or replaces the last passage if the window is better.
    fn offer(&self, out: &mut Vec<Passage>) {
        let Some(passage) = self.passage() else { return };
        let Some(last) = out.last_mut() else {
            out.push(passage);
            return;
        };
        let first_piece = self.hits.piece(last.first);
        let is_behind = self.start > self.hits.piece(last.last);
        if is_behind || self.start > first_piece && passage.last > last.last {
            out.push(passage);
        } else if passage.is_better(last) {
            *last = passage;
        }
    }
}
