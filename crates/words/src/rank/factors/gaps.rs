//! `min_gaps`: the fewest other words among those of the query, in the windows that hold the most of its words.

use std::collections::VecDeque;

use super::FieldFactors;
use crate::matching::Hit;

/// A word of the query and its position in the field.
#[derive(Clone, Copy, Debug)]
struct Seen {
    word: usize,
    position: i32,
}

/// The current window. Each hit enters and leaves it once.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// The words of the query: of two or three a window is followed otherwise than of more.
    words: usize,
    field: Option<u8>,
    seen: VecDeque<Seen>,
    /// How often each word is among them.
    counts: Vec<u32>,
    /// The distinct words of the best window; of more than three words those of the current one.
    distinct: i32,
}

impl Gaps {
    /// Of so many words, at positions up to `positions`.
    pub fn new(words: usize, positions: usize) -> Self {
        Self { words, field: None, seen: VecDeque::new(), counts: vec![0; positions], distinct: 0 }
    }

    pub fn clear(&mut self) {
        self.field = None;
        self.distinct = 0;
        for seen in self.seen.drain(..) {
            if let Some(count) = self.counts.get_mut(seen.word) {
                *count = 0;
            }
        }
    }

    /// A hit of the word that counts under that number.
    pub fn follow(&mut self, hit: &Hit, word: usize, field: &mut FieldFactors) {
        if self.words < 2 {
            return;
        }
        if self.field != Some(hit.field()) {
            self.clear();
            self.field = Some(hit.field());
        }
        let seen = Seen { word, position: hit.position() as i32 };
        match self.words {
            2 => self.follow_two(seen, field),
            3 => self.follow_three(seen, field),
            _ => self.follow_many(seen, field),
        }
    }

    fn note(&mut self, distinct: i32, gaps: i32, field: &mut FieldFactors) {
        let is_better =
            self.distinct < distinct || self.distinct == distinct && field.min_gaps > gaps;
        if is_better {
            field.min_gaps = gaps;
            self.distinct = distinct;
        }
    }

    fn follow_two(&mut self, seen: Seen, field: &mut FieldFactors) {
        if let Some(last) = self.seen.pop_back()
            && last.word != seen.word
        {
            self.note(2, seen.position - last.position - 1, field);
        }
        self.seen.push_back(seen);
    }

    fn follow_three(&mut self, seen: Seen, field: &mut FieldFactors) {
        let (first, second) = (self.seen.front().copied(), self.seen.get(1).copied());
        match (first, second) {
            (None, _) => {}
            (Some(first), None) if first.word == seen.word => self.seen.clear(),
            (Some(first), None) => self.note(2, seen.position - first.position - 1, field),
            (Some(first), Some(second)) if first.word == seen.word => {
                self.note(2, seen.position - second.position - 1, field);
                self.seen.pop_front();
            }
            (Some(_), Some(second)) if second.word == seen.word => drop(self.seen.pop_back()),
            (Some(first), Some(_)) => {
                self.note(3, seen.position - first.position - 2, field);
                self.seen.pop_front();
            }
        }
        self.seen.push_back(seen);
    }

    fn follow_many(&mut self, seen: Seen, field: &mut FieldFactors) {
        if let Some(last) = self.seen.back_mut()
            && last.word == seen.word
        {
            last.position = seen.position;
            return;
        }
        self.seen.push_back(seen);
        let Some(count) = self.counts.get_mut(seen.word) else { return };
        *count += 1;
        let is_new = *count == 1;
        let Some(first) = self.seen.front().copied() else { return };
        if is_new {
            field.min_gaps = seen.position - first.position - self.distinct;
            self.distinct += 1;
        } else if first.word == seen.word {
            self.shrink();
            let first = self.seen.front().map_or(seen.position, |first| first.position);
            field.min_gaps = field.min_gaps.min(seen.position - first - self.distinct + 1);
        }
    }

    /// Drops the first words until the first is there once.
    fn shrink(&mut self) {
        while let Some(first) = self.seen.front()
            && let Some(count) = self.counts.get_mut(first.word)
            && *count > 1
        {
            *count -= 1;
            self.seen.pop_front();
        }
    }
}
