//! A random-access array of 64-bit numbers: frame of reference in blocks of 1024, bit-packed.
//!
//! ```text
//! numbers := count:u32 data_bytes:u64 entry{blocks} data
//! entry   := min:u64 max:u64 place:u64     place = offset in data << 8 | width
//! data    := packed{blocks} zero{8}        value - min of its block
//! ```

use super::{
    cursor::SectionCursor,
    packed::{self, PADDING_BYTES},
};
use crate::{IndexError, Result, Slice};

/// Numbers in a block.
pub(crate) const BLOCK: u32 = 1024;
const ENTRY_BYTES: usize = 24;

/// The numbers, read in place. Access is O(1).
#[derive(Clone)]
pub(crate) struct Numbers {
    /// The directory and the data.
    bytes: Slice,
    data_start: usize,
    len: u32,
}

/// A block's entry in the directory.
#[derive(Clone, Copy)]
pub(crate) struct NumberBlock {
    /// The least value; packed values are relative to it.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
    offset: usize,
    width: u32,
}

impl NumberBlock {
    fn parse(entry: &[u8; ENTRY_BYTES]) -> Self {
        let number = |at: usize| {
            let bytes = entry.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let place = number(16);
        let (offset, width) = ((place >> 8) as usize, (place & 0xff) as u32);
        Self { min: number(0), max: number(8), offset, width }
    }
}

/// Appends the numbers to `out`.
pub(crate) fn write_numbers(values: &[u64], out: &mut Vec<u8>) {
    let (mut directory, mut data) = (Vec::new(), Vec::new());
    for block in values.chunks(BLOCK as usize) {
        let (min, max) =
            block.iter().fold((u64::MAX, 0), |(min, max), &value| (value.min(min), value.max(max)));
        let width = packed::width_for(max - min);
        let place = (data.len() as u64) << 8 | u64::from(width);
        directory.extend([min, max, place].into_iter().flat_map(u64::to_le_bytes));
        packed::pack(block.iter().map(|value| value - min), width, &mut data);
    }
    data.extend_from_slice(&[0; PADDING_BYTES]);
    out.extend_from_slice(&(values.len() as u32).to_le_bytes());
    out.extend_from_slice(&(data.len() as u64).to_le_bytes());
    out.extend_from_slice(&directory);
    out.extend_from_slice(&data);
}

impl Numbers {
    /// Reads the array that begins at the cursor and checks its directory: O(blocks).
    pub fn read(cursor: &mut SectionCursor<'_>) -> Result<Self> {
        let (len, data_bytes) = (cursor.u32()?, cursor.length()?);
        let data_start = len.div_ceil(BLOCK) as usize * ENTRY_BYTES;
        let total = data_start.checked_add(data_bytes);
        let total = total.ok_or_else(|| IndexError::corrupt("a number array's length"))?;
        let numbers = Self { bytes: cursor.slice(total)?, data_start, len };
        match (0..numbers.block_count()).all(|index| numbers.is_block_valid(index, data_bytes)) {
            true => Ok(numbers),
            false => Err(IndexError::corrupt("a block of numbers lies outside its section")),
        }
    }

    fn is_block_valid(&self, index: u32, data_bytes: usize) -> bool {
        self.block(index).is_some_and(|block| {
            let bytes = packed::packed_bytes(self.block_len(index), block.width) + PADDING_BYTES;
            let end = block.offset.checked_add(bytes);
            block.min <= block.max
                && packed::is_width(block.width)
                && end.is_some_and(|end| end <= data_bytes)
        })
    }

    /// The count of numbers.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The number at `index`; 0 past the end.
    #[inline]
    pub fn get(&self, index: u32) -> u64 {
        if index >= self.len {
            return 0;
        }
        self.block(index / BLOCK).map_or(0, |block| self.get_in(&block, index % BLOCK))
    }

    /// Calls `visit` with each index and its number, in the given order. Consecutive indexes of one block
    /// share one look-up of its directory entry. A number past the end is 0.
    #[inline]
    pub fn for_each_of(&self, indexes: &[u32], mut visit: impl FnMut(u32, u64)) {
        for run in indexes.chunk_by(|a, b| a / BLOCK == b / BLOCK) {
            let block = run.first().and_then(|first| self.block(first / BLOCK));
            let Some(block) = block else {
                run.iter().for_each(|&index| visit(index, 0));
                continue;
            };
            let packed = self.packed(&block);
            for &index in run {
                let value = packed::get(packed, block.width, (index % BLOCK) as usize);
                visit(index, block.min.wrapping_add(value));
            }
        }
    }

    /// The number at `index` within a block.
    #[inline]
    pub fn get_in(&self, block: &NumberBlock, index: u32) -> u64 {
        let packed = self.packed(block);
        block.min.wrapping_add(packed::get(packed, block.width, index as usize))
    }

    /// The number of blocks.
    pub fn block_count(&self) -> u32 {
        self.len.div_ceil(BLOCK)
    }

    /// The count of numbers in a block.
    pub fn block_len(&self, index: u32) -> u32 {
        self.len.saturating_sub(index * BLOCK).min(BLOCK)
    }

    /// The block's directory entry.
    #[inline]
    pub fn block(&self, index: u32) -> Option<NumberBlock> {
        let start = index as usize * ENTRY_BYTES;
        let entry = self.bytes.get(start..self.data_start)?.first_chunk()?;
        Some(NumberBlock::parse(entry))
    }

    /// Sets bit `i` of `words` where `test` holds for the value `i` of the block minus its `min`.
    pub fn scan(&self, block: &NumberBlock, test: impl Fn(u64) -> bool, words: &mut [u64]) {
        packed::scan(self.packed(block), block.width, test, words);
    }

    #[inline]
    fn packed(&self, block: &NumberBlock) -> &[u8] {
        self.bytes.get(self.data_start + block.offset..).unwrap_or_default()
    }
}
