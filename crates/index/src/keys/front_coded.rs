//! Keys of any length, front-coded in blocks of 16.
//!
//! ```text
//! front_coded := heads offsets data_bytes:u64 block{}
//! heads  := numbers             one a block, see below
//! offsets := numbers            where each block begins, then the end of the last
//! block  := key{1..16}
//! key    := shared:varint length:varint byte{length}
//! varint := seven bits a byte, lowest first, high bit set while more follow; at most three bytes
//! ```
//! A key is the first `shared` bytes of the key before it (none for the first key of a block) and the bytes
//! that follow. The head of a block is taken from its first key: the eight bytes after the prefix that all
//! keys of the segment share, as a big-endian number (missing bytes are zero). A search interpolates among
//! the heads and compares keys only where heads are equal.

use std::sync::Arc;

use super::integers::Integers;
use crate::{
    IndexError, Result, Slice,
    column::{
        cursor::SectionCursor,
        leading_number,
        numbers::{Numbers, write_numbers},
    },
};

const BLOCK: u32 = 16;
const VARINT_BYTES: usize = 3;

/// Encodes keys one after the other.
#[derive(Default)]
pub(super) struct FrontCodedWriter {
    offsets: Vec<u64>,
    data: Vec<u8>,
    last: Vec<u8>,
    len: u32,
}

impl FrontCodedWriter {
    /// Appends a key; false, and nothing appended, if it does not follow the last.
    pub fn push(&mut self, key: &[u8]) -> bool {
        if self.len > 0 && self.last.as_slice() >= key {
            return false;
        }
        let mut shared = 0;
        if self.len.is_multiple_of(BLOCK) {
            self.offsets.push(self.data.len() as u64);
        } else {
            shared = shared_length(&self.last, key);
        }
        write_varint(shared, &mut self.data);
        write_varint(key.len() - shared, &mut self.data);
        self.data.extend_from_slice(&key[shared..]);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.len += 1;
        true
    }

    /// Appends the finished part to `out`.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        write_numbers(&self.heads(), out);
        self.offsets.push(self.data.len() as u64);
        write_numbers(&self.offsets, out);
        out.extend_from_slice(&(self.data.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.data);
    }

    fn heads(&self) -> Vec<u64> {
        let firsts = self.offsets.iter().filter_map(|offset| {
            let bytes = self.data.get(*offset as usize..)?;
            Entries { bytes }.next().map(|(_, first)| first)
        });
        let prefix = firsts.clone().next().map_or(0, |first| shared_length(first, &self.last));
        firsts.map(|first| leading_number(first.get(prefix..).unwrap_or_default())).collect()
    }
}

fn shared_length(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn write_varint(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Front-coded keys, read in place.
#[derive(Clone)]
pub(super) struct FrontCoded {
    /// The prefix that all keys of the segment share.
    prefix: Arc<[u8]>,
    heads: Integers,
    offsets: Numbers,
    data: Slice,
    len: u32,
}

impl FrontCoded {
    /// Reads `len` keys.
    pub fn read(cursor: &mut SectionCursor<'_>, len: u32) -> Result<Self> {
        let heads = Integers::read(cursor, len.div_ceil(BLOCK))?;
        let offsets = Numbers::read(cursor)?;
        let data_bytes = cursor.length()?;
        let data = cursor.slice(data_bytes)?;
        if offsets.len() != len.div_ceil(BLOCK) + 1 {
            return Err(IndexError::corrupt("another number of blocks of keys"));
        }
        let mut keys = Self { prefix: Arc::default(), heads, offsets, data, len };
        keys.prefix = keys.common_prefix();
        Ok(keys)
    }

    fn common_prefix(&self) -> Arc<[u8]> {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        self.get(0, &mut first);
        self.get(self.len.saturating_sub(1), &mut last);
        first.truncate(shared_length(&first, &last));
        first.into()
    }

    /// Appends the key of a document.
    pub fn get(&self, doc: u32, out: &mut Vec<u8>) {
        let start = out.len();
        for (shared, suffix) in self.block(doc / BLOCK).take(doc as usize % BLOCK as usize + 1) {
            out.truncate(start.saturating_add(shared));
            out.extend_from_slice(suffix);
        }
    }

    /// The document of a key.
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        let (doc, is_found) = self.search(key);
        is_found.then_some(doc)
    }

    /// The first document whose key is not below `key`.
    pub fn lower_bound(&self, key: &[u8]) -> u32 {
        self.search(key).0
    }

    /// The first document whose key is not below `key`, and whether it is `key`.
    fn search(&self, key: &[u8]) -> (u32, bool) {
        let Some(rest) = key.strip_prefix(&*self.prefix) else {
            return (if *key < *self.prefix { 0 } else { self.len }, false);
        };
        let block = self.blocks_not_above(key, leading_number(rest)).checked_sub(1);
        let Some(block) = block else { return (0, false) };
        let (place, is_found) = search_block(self.block(block), key);
        let doc = block * BLOCK + place;
        // A damaged last block may hold more keys than there are documents.
        (doc.min(self.len), is_found && doc < self.len)
    }

    /// How many blocks begin with a key that is not above `key`.
    fn blocks_not_above(&self, key: &[u8], head: u64) -> u32 {
        let mut start = self.heads.first_not_below(head);
        let mut end = match head.checked_add(1) {
            Some(next) if self.heads.get(start) == head => self.heads.first_not_below(next),
            Some(_) => start,
            None => self.offsets.len() - 1,
        };
        while start < end {
            let middle = start + (end - start) / 2;
            match self.block(middle).next().is_some_and(|(_, first)| first <= key) {
                true => start = middle + 1,
                false => end = middle,
            }
        }
        start
    }

    fn block(&self, index: u32) -> Entries<'_> {
        let (start, end) = (self.offsets.get(index), self.offsets.get(index.saturating_add(1)));
        Entries { bytes: self.data.get(start as usize..end as usize).unwrap_or_default() }
    }
}

/// The place in the block of the first key that is not below `key`, and whether it is `key`.
///
/// No key is decoded as a whole. `matched` is the number of bytes that `key` has in common with the
/// previous key, which is below it. A key that shares more bytes with its predecessor than that
/// differs from `key` at the same byte, and so is below it too. A key that shares fewer is above
/// it. Only a key that shares just as many has to be compared.
fn search_block(entries: Entries<'_>, key: &[u8]) -> (u32, bool) {
    let (mut matched, mut place) = (0, 0);
    for (shared, suffix) in entries.take(BLOCK as usize) {
        if shared < matched {
            return (place, false);
        }
        if shared == matched {
            let rest = key.get(matched..).unwrap_or_default();
            if suffix >= rest {
                return (place, suffix == rest);
            }
            matched += shared_length(suffix, rest);
        }
        place += 1;
    }
    (place, false)
}

/// The keys of a block as (bytes shared with the one before, bytes that follow).
struct Entries<'k> {
    bytes: &'k [u8],
}

impl<'k> Iterator for Entries<'k> {
    type Item = (usize, &'k [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let shared = self.varint()?;
        let length = self.varint()?;
        let (suffix, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some((shared, suffix))
    }
}

impl Entries<'_> {
    #[inline]
    fn varint(&mut self) -> Option<usize> {
        let mut number = 0;
        for index in 0..VARINT_BYTES {
            let byte = *self.bytes.get(index)?;
            number |= usize::from(byte & 0x7f) << (index * 7);
            if byte < 0x80 {
                self.bytes = self.bytes.get(index + 1..)?;
                return Some(number);
            }
        }
        None
    }
}
