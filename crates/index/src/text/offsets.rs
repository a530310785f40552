//! Start offsets of consecutive byte strings, in about 1.3 bytes each.
//!
//! ```text
//! offsets := strings:u32 group{strings / 16 + 1} long{*}
//! group   := start:u32 bytes:u8{16}    the last one padded with zeros; 255: that or more
//! long    := string:u32 more:u32       how many bytes above 255 each such string has, ascending
//! ```

use std::ops::Range;

use super::sorted::partition;
use crate::{IndexError, Result, Slice, bytes::read_u32};

const GROUP: usize = 16;
const GROUP_BYTES: usize = 4 + GROUP;
const LONG: usize = 255;
const LONG_BYTES: usize = 8;
const HEAD_BYTES: usize = 4;

/// Collects the lengths of strings.
#[derive(Default)]
pub(crate) struct OffsetsWriter {
    groups: Vec<u8>,
    long: Vec<u8>,
    strings: u32,
    end: u32,
}

impl OffsetsWriter {
    /// Appends a string that ends at `end`.
    ///
    /// # Errors
    /// [`IndexError::Full`] with `what` if that is past 4 GiB.
    pub fn push(&mut self, end: usize, what: &'static str) -> Result<()> {
        let end = u32::try_from(end).map_err(|_| IndexError::Full(what))?;
        let bytes = end.saturating_sub(self.end) as usize;
        self.begin_group();
        self.groups.push(bytes.min(LONG) as u8);
        if bytes >= LONG {
            self.long.extend_from_slice(&self.strings.to_le_bytes());
            self.long.extend_from_slice(&((bytes - LONG) as u32).to_le_bytes());
        }
        self.strings += 1;
        self.end = end;
        Ok(())
    }

    fn begin_group(&mut self) {
        if self.groups.len().is_multiple_of(GROUP_BYTES) {
            self.groups.extend_from_slice(&self.end.to_le_bytes());
        }
    }

    /// The encoded offsets, for [`Offsets::open`].
    pub fn finish(mut self) -> Vec<u8> {
        self.begin_group();
        let padded = self.groups.len().next_multiple_of(GROUP_BYTES);
        self.groups.resize(padded, 0);
        let mut bytes = self.strings.to_le_bytes().to_vec();
        bytes.append(&mut self.groups);
        bytes.append(&mut self.long);
        bytes
    }
}

/// The offsets of strings.
#[derive(Clone)]
pub(crate) struct Offsets {
    strings: u32,
    groups: Slice,
    long: Slice,
}

impl Offsets {
    /// Opens the bytes that [`OffsetsWriter::finish`] returned.
    pub fn open(section: &Slice) -> Result<Self> {
        let strings = read_u32(section, 0)?;
        let groups_end = HEAD_BYTES + (strings as usize / GROUP + 1) * GROUP_BYTES;
        let groups = section.part(HEAD_BYTES..groups_end)?;
        let long = section.part(groups_end..section.len())?;
        if !long.len().is_multiple_of(LONG_BYTES) {
            return Err(IndexError::corrupt("the size of offsets"));
        }
        Ok(Self { strings, groups, long })
    }

    /// The number of strings.
    pub fn len(&self) -> u32 {
        self.strings
    }

    /// The start of the string; the end of the last one for a number past it.
    #[inline]
    pub fn start(&self, string: u32) -> usize {
        let string = string.min(self.strings);
        let (start, lengths) = self.group(string / GROUP as u32);
        let before = lengths & ((1u128 << (string as usize % GROUP * 8)) - 1);
        let start = start as usize + sum(before as u64) + sum((before >> 64) as u64);
        if has_long(before as u64) || has_long((before >> 64) as u64) {
            return start + self.more(string / GROUP as u32 * GROUP as u32..string);
        }
        start
    }

    /// The byte range of the string.
    #[inline]
    pub fn range(&self, string: u32) -> Range<usize> {
        let start = self.start(string);
        start..start + self.bytes(string)
    }

    /// The length of the string in bytes.
    #[inline]
    pub fn bytes(&self, string: u32) -> usize {
        let (_, lengths) = self.group(string / GROUP as u32);
        let bytes = (lengths >> (string as usize % GROUP * 8)) as usize & 0xff;
        if bytes == LONG { bytes + self.more(string..string + 1) } else { bytes }
    }

    /// The string that covers the byte `offset`, and its range. It must be at or after the first one of
    /// `group`. O(distance).
    #[inline]
    pub fn covering(&self, group: u32, offset: usize) -> (u32, Range<usize>) {
        let last = self.strings / GROUP as u32;
        let mut group = group.min(last);
        while group < last && self.group(group + 1).0 as usize <= offset {
            group += 1;
        }
        let (start, lengths) = self.group(group);
        let first = group * GROUP as u32;
        let (mut found, mut begin, mut end) = (first, start as usize, start as usize);
        // Sums over the whole group, without a branch that could be mispredicted.
        for (string, length) in (first..u32::MAX).zip(lengths.to_le_bytes()) {
            end += usize::from(length);
            if usize::from(length) == LONG {
                end += self.more(string..string + 1);
            }
            if end <= offset {
                (found, begin) = (string + 1, end);
            }
        }
        (found, begin..begin + self.bytes(found))
    }

    /// For each multiple of `step` below `bytes`, the group that covers that byte.
    pub fn samples(&self, step: usize, bytes: usize) -> Vec<u8> {
        let mut group = 0;
        let samples = (0..bytes).step_by(step).flat_map(|offset| {
            group = self.covering(group, offset).0 / GROUP as u32;
            group.to_le_bytes()
        });
        samples.collect()
    }

    #[inline]
    fn group(&self, group: u32) -> (u32, u128) {
        let bytes = self.groups.get(group as usize * GROUP_BYTES..);
        match bytes.and_then(|bytes| bytes.first_chunk::<GROUP_BYTES>()) {
            Some(&[a, b, c, d, ref lengths @ ..]) => {
                (u32::from_le_bytes([a, b, c, d]), u128::from_le_bytes(*lengths))
            }
            None => (0, 0),
        }
    }

    /// The sum of the bytes above 255 of the strings in the range.
    #[cold]
    fn more(&self, strings: Range<u32>) -> usize {
        let number = |index: usize| read_u32(&self.long, index * LONG_BYTES).unwrap_or(u32::MAX);
        let count = self.long.len() / LONG_BYTES;
        let first = partition(0, count, |index| number(index) < strings.start);
        let more = (first..count).take_while(|&index| number(index) < strings.end);
        more.map(|index| read_u32(&self.long, index * LONG_BYTES + 4).unwrap_or(0) as usize).sum()
    }
}

/// The sum of eight bytes.
#[inline]
fn sum(bytes: u64) -> usize {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let pairs = (bytes & EVEN) + (bytes >> 8 & EVEN);
    (pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48) as usize
}

/// Whether one of eight bytes is 255.
#[inline]
fn has_long(bytes: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    (!bytes).wrapping_sub(ONES) & bytes & (ONES << 7) != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_found_at_their_offsets(
            lengths in proptest::collection::vec(
                prop_oneof![1usize..30, 1usize..30, 250usize..260, 1usize..70_000],
                0..100,
            ),
            damage: (usize, u8),
        ) {
            let mut writer = OffsetsWriter::default();
            let mut ends = vec![0];
            for length in lengths {
                ends.push(ends[ends.len() - 1] + length);
                writer.push(ends[ends.len() - 1], "").unwrap();
            }
            let mut bytes = writer.finish();
            let offsets = Offsets::open(&Slice::new(bytes.clone())).unwrap();
            prop_assert_eq!(offsets.len() as usize, ends.len() - 1);
            prop_assert_eq!(offsets.start(u32::MAX), ends[ends.len() - 1]);
            let samples = offsets.samples(64, ends[ends.len() - 1]);
            for (string, pair) in ends.windows(2).enumerate() {
                prop_assert_eq!(offsets.range(string as u32), pair[0]..pair[1]);
                for offset in [pair[0], pair[1] - 1] {
                    let group = read_u32(&samples, offset / 64 * 4).unwrap();
                    let found = offsets.covering(group, offset);
                    prop_assert_eq!(found, (string as u32, pair[0]..pair[1]));
                }
            }
            let at = damage.0 % bytes.len();
            bytes[at] = damage.1;
            if let Ok(offsets) = Offsets::open(&Slice::new(bytes)) {
                for string in (0..200).chain([u32::MAX]) {
                    offsets.range(string);
                    offsets.covering(string, string as usize * 50);
                }
            }
        }
    }
}
