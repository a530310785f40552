//! The longest runs: `lcs`, `min_best_span_pos`, `exact_hit`, and `lccs` with `wlccs`.

use super::{FieldFactors, words::FactorWords};
use crate::hits::Hit;

/// The current run in query order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongestRun {
    length: u8,
    /// The place of the next hit of the same run, minus its query position.
    expected: Option<i64>,
    last: Option<u32>,
    /// State for queries that repeat words.
    at: u32,
    mask: u32,
    tail: u32,
    tail_mask: u32,
    begin: u32,
}

impl LongestRun {
    pub fn follow(
        &mut self,
        hit: &Hit,
        words: &FactorWords,
        folds: bool,
        field: &mut FieldFactors,
    ) {
        let shift = match folds {
            true => self.follow_repeated(hit, field),
            false => i64::from(hit.at) - i64::from(hit.query_position),
        };
        let continues = self.expected == Some(shift);
        let position = hit.position();
        if hit.is_last {
            field.exact_hit |= match continues {
                true => hit.query_position == words.last && position == words.last,
                false => position == 1 && words.last == 1,
            };
        }
        if !folds {
            self.follow_plain(hit, continues, field);
        }
        self.expected = Some(shift + i64::from(hit.span) - 1);
    }

    fn follow_plain(&mut self, hit: &Hit, continues: bool, field: &mut FieldFactors) {
        if self.last.is_none_or(|last| hit.at > last) {
            let before = if continues { self.length } else { 0 };
            self.length = before.wrapping_add(hit.weight as u8);
        }
        self.last = Some(hit.at);
        if self.length > field.lcs {
            field.lcs = self.length;
            field.min_best_span_pos = match field.min_best_span_pos {
                0 => hit.position() as i32,
                _ => hit.position() as i32 - i32::from(self.length) + 1,
            };
        }
    }

    /// Returns the distance from the end of the previous run.
    fn follow_repeated(&mut self, hit: &Hit, field: &mut FieldFactors) -> i64 {
        if (self.at >> 24) as u8 != hit.field() {
            (self.at, self.tail, self.mask, self.length) = (0, 0, 0, 0);
        }
        if self.at != hit.at {
            if self.length < 2 {
                (self.tail, self.tail_mask) = (self.at, self.mask);
                self.length = 1;
            }
            self.mask = 0;
            self.at = hit.at;
            if u32::from(field.lcs) < hit.weight {
                field.lcs = hit.weight as u8;
                field.min_best_span_pos = hit.position() as i32;
                self.begin = hit.position();
            }
        }
        let bit = hit.query_bit();
        self.mask |= bit;
        let step = self.at.wrapping_sub(self.tail).cast_signed();
        if (1..32).contains(&step) && self.mask >> step & self.tail_mask != 0 {
            self.tail = self.at;
            self.tail_mask = bit;
            self.mask = 0;
            self.length = self.length.wrapping_add(hit.weight as u8);
            if self.length > field.lcs {
                field.lcs = self.length;
                field.min_best_span_pos = self.begin.cast_signed();
            }
        }
        step.into()
    }
}

/// The current run of words that are adjacent in the query.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    length: u8,
    idf: f32,
    /// The expected next query position, and its place in the field.
    expected: Option<u32>,
    expected_at: i64,
}

impl Chain {
    pub fn follow(
        &mut self,
        hit: &Hit,
        words: &FactorWords,
        folds: bool,
        field: &mut FieldFactors,
    ) {
        let query_position = hit.query_position as usize;
        let position = i64::from(hit.position());
        let idf = words.idf(query_position);
        let mut keeps = false;
        if self.expected == Some(hit.query_position) && self.expected_at == position {
            self.length = self.length.wrapping_add(1);
            self.idf += idf;
        } else if folds
            && self.expected_at != 0
            && position <= self.expected_at
            && words.is_repeated(query_position)
        {
            keeps = true;
        } else {
            self.length = 1;
            self.idf = idf;
        }
        if !keeps {
            let next = words.next(query_position);
            self.expected = next;
            let step = i64::from(next.unwrap_or(NO_POSITION)) - i64::from(hit.query_position);
            self.expected_at = position + i64::from(hit.span) + step - 1;
        }
        if field.lccs <= self.length {
            field.lccs = self.length;
            field.wlccs = self.idf;
        }
    }
}

/// Stands for a query position that does not exist.
const NO_POSITION: u32 = 65_535;
