//! Finds where atoms begin, 64 bytes at a time.
//!
//! Words and separators alternate, and their lengths are random, so a loop over bytes mispredicts a branch with
//! each atom. Here the kinds of 64 bytes are bits of a number, and the places where they change are found without
//! a branch. Text with characters of scripts without spaces is left to [`super::atoms`].

use super::atoms::{AtomKind, first};

/// The kinds of the bytes of a text, one bit for each byte and kind.
pub(super) struct Kinds {
    blocks: Vec<Block>,
    /// The first character of a script without spaces, or the end of the text.
    end: usize,
}

#[derive(Clone, Copy, Default)]
struct Block {
    /// The bytes of words.
    words: u64,
    /// The bytes that are spaces.
    spaces: u64,
}

/// An atom that the index has as a term: not a single space between two words.
pub(super) struct WordOrSeparator {
    pub start: usize,
    pub end: usize,
    /// Whether a single space stands before it.
    pub has_space: bool,
}

const BLOCK_BYTES: usize = u64::BITS as usize;
/// The number of ASCII bytes that are classified at once.
const AT_ONCE: usize = 8;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

impl Kinds {
    /// Classifies all bytes up to the first character of a script without spaces.
    pub fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        // One block more, so that each block has a next one.
        let mut blocks = vec![Block::default(); bytes.len() / BLOCK_BYTES + 2];
        let mut at = 0;
        while at < bytes.len() {
            let block = &mut blocks[at / BLOCK_BYTES];
            let eight =
                bytes[at..].first_chunk::<AT_ONCE>().map(|eight| u64::from_le_bytes(*eight));
            if let (0, Some(eight)) = (at % AT_ONCE, eight.filter(|eight| eight & HIGH_BITS == 0)) {
                block.words |= gather(are_alphanumeric(eight)) << (at % BLOCK_BYTES);
                block.spaces |= gather(are_spaces(eight)) << (at % BLOCK_BYTES);
                at += AT_ONCE;
                continue;
            }
            let Some((kind, length)) = first(&text[at..]) else { break };
            match kind {
                AtomKind::Character => break,
                AtomKind::Word => {
                    let bits = ((1u128 << length) - 1) << (at % BLOCK_BYTES);
                    block.words |= bits as u64;
                    blocks[at / BLOCK_BYTES + 1].words |= (bits >> BLOCK_BYTES) as u64;
                }
                AtomKind::Separator if bytes[at] == b' ' => {
                    block.spaces |= 1 << (at % BLOCK_BYTES);
                }
                AtomKind::Separator => {}
            }
            at += length;
        }
        Self { blocks, end: at }
    }

    /// Visits each atom that is followed by another one. The last atom is returned instead, because
    /// it may continue in text that was not classified.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(WordOrSeparator)) -> WordOrSeparator {
        let mut atom = WordOrSeparator { start: 0, end: self.end, has_space: false };
        let mut is_single_space = false;
        let mut before = self.blocks.first().map_or(0, |block| block.words & 1);
        for (two, start) in self.blocks.windows(2).zip((0..self.end).step_by(BLOCK_BYTES)) {
            let (Block { words, spaces }, behind) = (two[0], two[1]);
            let previous = words << 1 | before;
            let next = words >> 1 | behind.words << (BLOCK_BYTES - 1);
            before = words >> (BLOCK_BYTES - 1);
            let single = spaces & previous & next;
            let seen = (self.end - start).min(BLOCK_BYTES);
            let mut changes = (words ^ previous) & (u64::MAX >> (BLOCK_BYTES - seen));
            while changes != 0 {
                let at = changes.trailing_zeros();
                changes &= changes - 1;
                let end = start + at as usize;
                if !is_single_space {
                    visit(WordOrSeparator { end, ..atom });
                }
                atom = WordOrSeparator { start: end, end: self.end, has_space: is_single_space };
                is_single_space = single >> at & 1 == 1;
            }
        }
        atom
    }
}

/// Sets the high bit of each byte that is from `low` to `high`. All bytes must be ASCII.
#[inline]
fn are_between(eight: u64, low: u8, high: u8) -> u64 {
    let each = |byte: u8| u64::from(byte) * 0x0101_0101_0101_0101;
    (eight + each(0x80 - low)) & !(eight + each(0x7f - high)) & HIGH_BITS
}

#[inline]
fn are_alphanumeric(eight: u64) -> u64 {
    let lower = eight | 0x2020_2020_2020_2020;
    are_between(lower, b'a', b'z') | are_between(eight, b'0', b'9')
}

#[inline]
fn are_spaces(eight: u64) -> u64 {
    are_between(eight, b' ', b' ')
}

/// Gathers the high bits of eight bytes into eight adjacent bits.
#[inline]
fn gather(high_bits: u64) -> u64 {
    (high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ascii_character_has_its_kind() {
        for byte in 0..0x80u8 {
            for place in 0..AT_ONCE {
                let mut eight = [b'-'; AT_ONCE];
                eight[place] = byte;
                let eight = u64::from_le_bytes(eight);
                let is = |all: u64| all == 1 << place;
                assert_eq!(is(gather(are_alphanumeric(eight))), byte.is_ascii_alphanumeric());
                assert_eq!(is(gather(are_spaces(eight))), byte == b' ');
            }
        }
    }
}
