//! Ascending numbers with interpolation search. They are eight-byte keys, or the heads of longer keys.

use crate::{
    IndexError, Result,
    column::{
        cursor::SectionCursor,
        leading_number,
        numbers::{BLOCK, NumberBlock, Numbers},
    },
};

/// Ascending numbers.
#[derive(Clone)]
pub(super) struct Integers {
    numbers: Numbers,
    first: u64,
    last: u64,
    /// Blocks per unit of key value, if keys were evenly spread.
    density: f64,
}

impl Integers {
    /// Reads `len` keys.
    pub fn read(cursor: &mut SectionCursor<'_>, len: u32) -> Result<Self> {
        let numbers = Numbers::read(cursor)?;
        if numbers.len() != len {
            return Err(IndexError::corrupt("another number of keys"));
        }
        let blocks = numbers.block_count();
        let first = numbers.block(0).map_or(1, |block| block.min);
        let last = blocks.checked_sub(1).and_then(|index| numbers.block(index));
        let last = last.map_or(0, |block| block.max);
        let density = f64::from(blocks) / last.saturating_sub(first).max(1) as f64;
        Ok(Self { numbers, first, last, density })
    }

    /// The key of a document.
    #[inline]
    pub fn get(&self, doc: u32) -> u64 {
        self.numbers.get(doc)
    }

    /// Whether the key lies between the first and the last.
    #[inline]
    pub fn spans(&self, key: u64) -> bool {
        self.first <= key && key <= self.last
    }

    /// The document of a key.
    pub fn find(&self, key: u64) -> Option<u32> {
        let doc = self.first_not_below(key);
        (doc < self.numbers.len() && self.numbers.get(doc) == key).then_some(doc)
    }

    /// The first document whose key is not below `key`, of any length: a shorter key sorts as if
    /// zeros followed, a longer one right after its first eight bytes.
    pub fn lower_bound(&self, key: &[u8]) -> u32 {
        let number = leading_number(key);
        match key.len() > 8 {
            false => self.first_not_below(number),
            true => number.checked_add(1).map_or(self.numbers.len(), |n| self.first_not_below(n)),
        }
    }

    /// The first number that is not below `key`.
    pub fn first_not_below(&self, key: u64) -> u32 {
        let guess = (key.saturating_sub(self.first) as f64 * self.density) as u32;
        let index = partition_near(self.numbers.block_count(), guess, |index| {
            self.numbers.block(index).is_some_and(|block| block.max < key)
        });
        let Some(block) = self.numbers.block(index) else { return self.numbers.len() };
        index * BLOCK + self.first_not_below_in(&block, self.numbers.block_len(index), key)
    }

    fn first_not_below_in(&self, block: &NumberBlock, len: u32, key: u64) -> u32 {
        let Some(distance) = key.checked_sub(block.min) else { return 0 };
        let span = (block.max - block.min).max(1);
        let last = len.saturating_sub(1);
        let guess = match span == u64::from(last) {
            true => distance as u32,
            false => (distance as f64 * f64::from(last) / span as f64) as u32,
        };
        partition_near(len, guess, |index| self.numbers.get_in(block, index) < key)
    }
}

/// The first of `0..len` for which `below` is false, searched in steps that double away from
/// `guess`: O(log of the error of the guess).
fn partition_near(len: u32, guess: u32, below: impl Fn(u32) -> bool) -> u32 {
    let guess = guess.min(len.saturating_sub(1));
    let (mut start, mut end, mut step) = (0, len, 1);
    if len > 0 && below(guess) {
        start = guess + 1;
        while let Some(probe) = start.checked_add(step - 1).filter(|probe| *probe < len) {
            if !below(probe) {
                end = probe;
                break;
            }
            start = probe + 1;
            step *= 2;
        }
    } else if len > 0 {
        end = guess;
        while let Some(probe) = end.checked_sub(step) {
            if below(probe) {
                start = probe + 1;
                break;
            }
            end = probe;
            step *= 2;
        }
    }
    while start < end {
        let middle = start + (end - start) / 2;
        match below(middle) {
            true => start = middle + 1,
            false => end = middle,
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_estimate_finds_the_same_position() {
        for len in 0..70 {
            for answer in 0..=len {
                for guess in 0..len + 2 {
                    assert_eq!(partition_near(len, guess, |index| index < answer), answer);
                }
            }
        }
    }
}
