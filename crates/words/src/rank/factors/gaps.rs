//! `min_gaps`: the fewest other words between query words, in the windows with the most distinct query words.

use std::collections::VecDeque;

use super::FieldFactors;
use crate::hits::Hit;

/// An occurrence of a query word in the field.
#[derive(Clone, Copy, Debug)]
struct Seen {
    word: usize,
    position: i32,
}

/// The current window. Each hit enters and leaves it once.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// The number of query words. As in Sphinx, windows of two or three words are computed differently from larger
    /// ones.
    words: usize,
    field: Option<u8>,
    seen: VecDeque<Seen>,
    /// How often each word is in the window.
    counts: Vec<u32>,
    /// The distinct words of the best window; with more than three words, those of the current one.
    distinct: i32,
}

impl Gaps {
    /// `words` is the number of query words, `positions` that of query positions.
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

    /// Adds a hit, which counts for this word.
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

    /// Removes the first words until the first one is in the window only once.
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
