//! `atc`: how close the words are to each other, summed over pairs of hits; closer pairs count more.

use super::{FieldFactors, words::FactorWords};
use crate::hits::Hit;

/// How many hits on each side of a hit are considered.
const NEIGHBOURS: usize = 10;
/// Hits kept in memory: those to the left, those being processed, and those to the right.
const KEPT: usize = 3 * NEIGHBOURS;
/// Factor for a pair of hits of the same word.
const SAME: f32 = 0.25;
/// The weight of a pair decreases with this power of the distance.
const POWER: f32 = 1.75;

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    position: i32,
    word: usize,
}

/// The last hits of the current field.
#[derive(Clone, Debug)]
pub(super) struct Closeness {
    /// A ring buffer; its first hit is at `start`.
    ring: [Seen; KEPT],
    start: usize,
    count: usize,
    field: u8,
    is_head_done: bool,
    /// The sum of each word, and the words that have one.
    sums: Vec<Option<f32>>,
    words: Vec<usize>,
}

impl Closeness {
    /// `positions` is the number of query positions.
    pub fn new(positions: usize) -> Self {
        Self {
            ring: [Seen::default(); KEPT],
            start: 0,
            count: 0,
            field: 0,
            is_head_done: false,
            sums: vec![None; positions],
            words: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        (self.start, self.count, self.field, self.is_head_done) = (0, 0, 0, false);
    }

    pub fn follow(&mut self, hit: &Hit, words: &FactorWords, fields: &mut [FieldFactors]) {
        if self.field != hit.field() {
            self.end_field(words, fields);
            self.field = hit.field();
        } else if self.count == KEPT {
            let from = if self.is_head_done { NEIGHBOURS } else { 0 };
            self.add_up(from, 2 * NEIGHBOURS, words);
            self.start = (self.start + NEIGHBOURS) % KEPT;
            self.count -= NEIGHBOURS;
        }
        let seen = Seen { position: hit.position() as i32, word: hit.query_position as usize };
        self.ring[(self.start + self.count) % KEPT] = seen;
        self.count += 1;
    }

    /// Processes the remaining hits of the field and stores its factor.
    pub fn end_field(&mut self, words: &FactorWords, fields: &mut [FieldFactors]) {
        if self.count == 0 {
            return;
        }
        let from = if self.is_head_done { NEIGHBOURS } else { 0 };
        self.add_up(from, self.count, words);
        let mut sum = 0.0;
        self.words.sort_unstable();
        for word in self.words.drain(..) {
            if let Some(own) = self.sums.get_mut(word).and_then(Option::take) {
                sum += own * words.idf(word);
            }
        }
        if let Some(field) = fields.get_mut(usize::from(self.field)) {
            field.atc = (1.0_f32 + sum).ln();
        }
        self.clear();
    }

    fn seen(&self, number: usize) -> Seen {
        self.ring[(self.start + number) % KEPT]
    }

    /// Adds the neighbours of the hits `from..to` to the sums of their words.
    fn add_up(&mut self, from: usize, to: usize, words: &FactorWords) {
        for number in from..to {
            let left = self.neighbours(number, (0..number).rev(), words);
            let right = self.neighbours(number, number + 1..self.count, words);
            let word = self.seen(number).word;
            if let Some(sum) = self.sums.get_mut(word) {
                if sum.is_none() {
                    self.words.push(word);
                }
                *sum = Some(sum.unwrap_or(0.0) + (left + right));
            }
        }
        self.is_head_done = true;
    }

    /// The sum over the hits on one side, nearest first; each word counts once.
    fn neighbours(
        &self,
        number: usize,
        others: impl Iterator<Item = usize>,
        words: &FactorWords,
    ) -> f32 {
        let hit = self.seen(number);
        let (mut done, mut count) = ([0; NEIGHBOURS], 0);
        let mut sum = 0.0;
        for other in others.take(NEIGHBOURS) {
            if count == words.last as usize {
                break;
            }
            let other = self.seen(other);
            if done[..count].contains(&other.word) || other.position == hit.position {
                continue;
            }
            let distance = (hit.position.abs_diff(other.position) as f32).powf(POWER);
            let mut share = words.idf(other.word) / distance;
            if other.word == hit.word {
                share *= SAME;
            }
            sum += share;
            done[count] = other.word;
            count += 1;
        }
        sum
    }
}
