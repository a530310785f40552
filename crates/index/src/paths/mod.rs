//! Indexes of paths into JSON documents. They store which documents have which values at a path, in
//! the order of the values.
//!
//! A document has no value at a path, one value, or several (through arrays). A value is bytes in an
//! order-preserving encoding, which only the engine interprets.
//!
//! ```text
//! sections PHED and PENT, id of the path:
//! PHED  := doc_count:u32 block_count:u32 entry_count:u64 flags:u8 0:u8{3} label_length:u32 label end:u64{block_count}
//!                                                flags: 1 single
//! PENT  := block{block_count}                    `end` is where each ends
//! block := length:varint value doc:varint entry{0..31}          written with at most 15 entries behind the first
//! entry := 0 ahead:varint | suffix_length:varint shared:varint suffix doc:varint
//! ```
//! Entries ascend by value, then by document; none occurs twice. The first entry of a block stores its whole
//! value. The others are front-coded: they store the bytes after the prefix shared with the entry before. If
//! the value is the same, an entry stores only the distance to the next document. The flag *single* says that
//! no document has two entries. The label identifies the path.

mod builder;
mod merge;
mod part;
mod pieces;
#[cfg(test)]
mod tests;
mod texts;
mod writer;

use std::{
    cmp::Ordering,
    ops::{Bound, ControlFlow},
};

use builder::PathBuilder;
pub use builder::PathKeys;
pub use part::{PathKind, PathPart};
pub use pieces::{PIECE_BYTES, PathPieces, PathsBuilder};
pub use texts::PathTexts;

use crate::{
    Bitmap, DocSet, IndexError, Result, SectionTag, Sections, Slice,
    bytes::{read_u32, read_u64},
    varint::{self, VarintReader},
};

pub(crate) const HEAD: SectionTag = SectionTag(*b"PHED");
const ENTRIES: SectionTag = SectionTag(*b"PENT");
const HEAD_BYTES: usize = 24;
const SINGLE: u8 = 1;
/// The most entries of a block that is written; on average a look-up decodes half a block for each bound.
const BLOCK_ENTRIES: usize = 16;
/// The most entries of a block: earlier versions wrote so many.
const MAX_BLOCK_ENTRIES: usize = 32;

/// One path to be indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// The number of the path. Paths with other labels have other numbers.
    pub id: u32,
    /// Bytes that identify the path.
    pub label: Vec<u8>,
    /// What is indexed. For texts, `id` is also the number of a text index and must differ from those of
    /// other text indexes.
    pub kind: PathKind,
}

/// The values of one path in all documents of a segment.
pub struct PathIndex {
    label: Vec<u8>,
    doc_count: u32,
    entry_count: u64,
    block_count: usize,
    single: bool,
    ends: Slice,
    /// The first bytes of each block's first value. Most searches among blocks need no more.
    firsts: Vec<u64>,
    entries: Slice,
}

impl PathIndex {
    /// Opens the path of this number; `None` if the segment was written before it was indexed.
    pub(crate) fn open(sections: &Sections, id: u32, doc_count: u32) -> Result<Option<Self>> {
        match (sections.get(HEAD, id), sections.get(ENTRIES, id)) {
            (Some(head), Some(entries)) => Self::read(head, entries.clone(), doc_count).map(Some),
            (None, None) => Ok(None),
            _ => Err(IndexError::Corrupt(format!("a section of path {id} is missing"))),
        }
    }

    fn read(head: &Slice, entries: Slice, doc_count: u32) -> Result<Self> {
        let corrupt = || IndexError::corrupt("the head of a path's values");
        let (found, block_count) = (read_u32(head, 0)?, read_u32(head, 4)? as usize);
        let entry_count = read_u64(head, 8)?;
        let &[flags, reserved @ ..] =
            head.get(16..20).and_then(|it| it.first_chunk::<4>()).ok_or_else(corrupt)?;
        let label_end = HEAD_BYTES as u64 + u64::from(read_u32(head, 20)?);
        let is_right = found == doc_count
            && flags <= SINGLE
            && reserved == [0; 3]
            && head.len() as u64 == label_end + block_count as u64 * 8
            && entry_count >= block_count as u64
            && (entry_count > 0) == (block_count > 0)
            && entry_count.div_ceil(MAX_BLOCK_ENTRIES as u64) <= block_count as u64;
        if !is_right {
            return Err(corrupt());
        }
        let label = head.part(HEAD_BYTES..label_end as usize)?.to_vec();
        let ends = head.part(label_end as usize..head.len())?;
        let (single, entries_end) = (flags == SINGLE, entries.len() as u64);
        let firsts = Vec::with_capacity(block_count);
        let mut index =
            Self { label, doc_count, entry_count, block_count, single, ends, firsts, entries };
        let mut before = 0;
        for block in 0..block_count {
            let end = index.end(block);
            if end <= before || end > entries_end {
                return Err(corrupt());
            }
            before = end;
            let first = first_bytes(index.first_value(block)?);
            index.firsts.push(first);
        }
        if before != entries_end {
            return Err(corrupt());
        }
        Ok(index)
    }

    /// Whether it is the index of this path.
    pub(crate) fn is_of(&self, spec: &PathSpec) -> bool {
        self.label == spec.label
    }

    /// The number of entries: distinct values of each document, deleted documents included.
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Whether no document has more than one value.
    pub fn is_single(&self) -> bool {
        self.single
    }

    /// The documents, deleted ones included, that have a value within one of the ranges. Cost: a search for
    /// each range, and the decoding of each entry within it.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the values are damaged.
    pub fn select<'b>(
        &self,
        ranges: impl IntoIterator<Item = (Bound<&'b [u8]>, Bound<&'b [u8]>)>,
    ) -> Result<DocSet> {
        let mut docs = Vec::new();
        let mut bits: Option<Bitmap> = None;
        let many = (self.doc_count as usize / 32).max(1);
        let mut add = |doc: u32| {
            match &mut bits {
                Some(bits) => _ = bits.insert(doc),
                None => docs.push(doc),
            }
            if docs.len() > many {
                let mut filled = Bitmap::new(self.doc_count);
                docs.drain(..).for_each(|doc| _ = filled.insert(doc));
                bits = Some(filled);
            }
        };
        for range in ranges {
            if let (Bound::Included(value), Bound::Included(same)) = range
                && value == same
            {
                self.at_block(self.block_before(range.0)?).for_each_equal(value, &mut add)?;
                continue;
            }
            let mut entries = self.from(range.0)?;
            while let Some(doc) = entries.next_within(range.1)? {
                add(doc);
            }
        }
        if let Some(bits) = bits {
            return Ok(DocSet::Bits(bits.into()));
        }
        docs.sort_unstable();
        docs.dedup();
        Ok(DocSet::List(docs))
    }

    /// An upper bound of the number of entries within the bounds; it exceeds the true number by at most two
    /// blocks. Cost: two searches.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the values are damaged.
    pub fn most_within(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Result<u64> {
        let blocks = self.block_behind(high)?.saturating_sub(self.block_before(low)?) as u64;
        // All blocks but the last are full.
        let is_of_now = self.entry_count.div_ceil(BLOCK_ENTRIES as u64) <= self.block_count as u64;
        let most = if is_of_now { BLOCK_ENTRIES } else { MAX_BLOCK_ENTRIES };
        Ok((blocks * most as u64).min(self.entry_count))
    }

    /// All entries.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the values are damaged.
    pub fn entries(&self) -> Result<PathEntries<'_>> {
        self.from(Bound::Unbounded)
    }

    /// The entries from a lower bound on.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the values are damaged.
    pub fn from(&self, low: Bound<&[u8]>) -> Result<PathEntries<'_>> {
        let mut entries = self.at_block(self.block_before(low)?);
        match low {
            Bound::Unbounded => {}
            Bound::Included(low) => entries.seek(low, Ordering::is_ge)?,
            Bound::Excluded(low) => entries.seek(low, Ordering::is_gt)?,
        }
        Ok(entries)
    }

    /// Visits the entries within bounds in order, or in reverse order, until `visit` breaks.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the values are damaged.
    pub fn walk(
        &self,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        backwards: bool,
        visit: &mut dyn FnMut(&[u8], u32) -> ControlFlow<()>,
    ) -> Result<()> {
        if backwards {
            return self.walk_back((low, high), visit);
        }
        let mut entries = self.from(low)?;
        while let Some((value, doc)) = entries.next()? {
            if is_above(value, high) || visit(value, doc).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn walk_back(
        &self,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
        visit: &mut dyn FnMut(&[u8], u32) -> ControlFlow<()>,
    ) -> Result<()> {
        let (mut values, mut ends) = (Vec::new(), Vec::new());
        for block in (self.block_before(low)?..self.block_behind(high)?).rev() {
            values.clear();
            ends.clear();
            let mut entries = self.at_block(block);
            while let Some(()) = entries.step()?
                && entries.block == block + 1
            {
                values.extend_from_slice(&entries.value);
                ends.push((values.len(), entries.doc));
            }
            for at in (0..ends.len()).rev() {
                let start =
                    at.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |it| it.0);
                let Some(&(end, doc)) = ends.get(at) else { continue };
                let value = values.get(start..end).unwrap_or_default();
                if is_below(value, low) {
                    return Ok(());
                }
                if !is_above(value, high) && visit(value, doc).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The entries from the beginning of a block on.
    fn at_block(&self, block: usize) -> PathEntries<'_> {
        PathEntries {
            index: self,
            block,
            reader: VarintReader::new(&self.entries, 0),
            left: 0,
            value: Vec::new(),
            doc: 0,
            waits: false,
        }
    }

    /// The last block that begins below the bound: the first entry within it may be there.
    fn block_before(&self, low: Bound<&[u8]>) -> Result<usize> {
        let block = match low {
            Bound::Unbounded => return Ok(0),
            Bound::Included(low) => self.first_block(low, Ordering::is_ge)?,
            Bound::Excluded(low) => self.first_block(low, Ordering::is_gt)?,
        };
        Ok(block.saturating_sub(1))
    }

    /// The first block that begins above the bound: no entry from there on is within it.
    fn block_behind(&self, high: Bound<&[u8]>) -> Result<usize> {
        match high {
            Bound::Unbounded => Ok(self.block_count),
            Bound::Included(value) => self.first_block(value, Ordering::is_gt),
            Bound::Excluded(value) => self.first_block(value, Ordering::is_ge),
        }
    }

    /// The first block whose first value is not below the value (`compares` is [`Ordering::is_ge`]) or is
    /// above it ([`Ordering::is_gt`]).
    fn first_block(&self, value: &[u8], compares: fn(Ordering) -> bool) -> Result<usize> {
        let bytes = first_bytes(value);
        let mut low = self.firsts.partition_point(|first| *first < bytes);
        let rest = self.firsts.get(low..).unwrap_or_default();
        let mut high = match rest.first() == Some(&bytes) {
            true => low + rest.partition_point(|first| *first == bytes),
            false => low,
        };
        while low < high {
            let middle = low + (high - low) / 2;
            match compares(self.first_value(middle)?.cmp(value)) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Ok(low)
    }

    fn first_value(&self, block: usize) -> Result<&[u8]> {
        let mut reader = VarintReader::new(&self.entries, self.start(block));
        let length = reader.next()? as usize;
        let at = reader.position();
        let end = at.checked_add(length).ok_or_else(damaged)?;
        self.entries.get(at..end).ok_or_else(damaged)
    }

    fn start(&self, block: usize) -> usize {
        block.checked_sub(1).map_or(0, |before| self.end(before) as usize)
    }

    fn end(&self, block: usize) -> u64 {
        let at = block * 8;
        let bytes = self.ends.get(at..at + 8).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// Reads entries in order.
pub struct PathEntries<'i> {
    index: &'i PathIndex,
    /// The number of the next block.
    block: usize,
    reader: VarintReader<'i>,
    /// The end offset of the current block.
    left: usize,
    value: Vec<u8>,
    doc: u32,
    /// Whether the current entry was decoded but not returned yet.
    waits: bool,
}

/// An entry that was found by its value.
struct FoundEntry<'i> {
    /// How many bytes of the target its value begins with; the others are `rest`.
    shared: usize,
    rest: &'i [u8],
    /// How its value compares with the target.
    order: Ordering,
}

impl<'i> PathEntries<'i> {
    /// The next entry: its value and document.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the values are damaged.
    #[expect(clippy::should_implement_trait, reason = "what it gives is borrowed from it")]
    pub fn next(&mut self) -> Result<Option<(&[u8], u32)>> {
        if !std::mem::take(&mut self.waits) && self.step()?.is_none() {
            return Ok(None);
        }
        Ok(Some((&self.value, self.doc)))
    }

    /// The document of the next entry if its value is not above the bound.
    fn next_within(&mut self, high: Bound<&[u8]>) -> Result<Option<u32>> {
        let Some((value, doc)) = self.next()? else { return Ok(None) };
        Ok((!is_above(value, high)).then_some(doc))
    }

    /// Goes to the first entry whose value is not below `target` (`stops` is [`Ordering::is_ge`]) or is above it
    /// ([`Ordering::is_gt`]); to the end if there is none. No entry of the current block may have been read.
    fn seek(&mut self, target: &[u8], stops: fn(Ordering) -> bool) -> Result<()> {
        if let Some(found) = self.find(target, stops)? {
            self.value.clear();
            self.value.extend_from_slice(target.get(..found.shared).ok_or_else(damaged)?);
            self.value.extend_from_slice(found.rest);
            self.waits = true;
        }
        Ok(())
    }

    /// Calls `visit` with the document of each entry that has this value. No entry of the current
    /// block may have been read yet, and the block must begin at or below the value. Values are not
    /// decoded.
    fn for_each_equal(&mut self, value: &[u8], visit: &mut dyn FnMut(u32)) -> Result<()> {
        if self.find(value, Ordering::is_ge)?.is_none_or(|found| found.order.is_ne()) {
            return Ok(());
        }
        loop {
            visit(self.doc);
            if self.reader.position() >= self.left {
                if !self.begin_block()? {
                    return Ok(());
                }
                let length = self.reader.next()? as usize;
                if self.bytes(length)? != value {
                    return Ok(());
                }
                self.doc = self.reader.next()?;
            } else {
                if self.reader.next()? != 0 {
                    return Ok(());
                }
                let ahead = self.reader.next()?;
                self.doc = self.doc.checked_add(ahead).ok_or_else(damaged)?;
            }
            self.check()?;
        }
    }

    /// Checks that what was just read is an entry within its block.
    fn check(&self) -> Result<()> {
        match self.doc >= self.index.doc_count || self.reader.position() > self.left {
            true => Err(damaged()),
            false => Ok(()),
        }
    }

    /// Finds the entry that [`PathEntries::seek`] goes to.
    ///
    /// Values before it are not decoded. All of them are below the target, so each first differs
    /// from it behind a common prefix of `equal` bytes. An entry that shares more bytes than that
    /// with the previous entry is below the target too, and one that shares fewer is above it. Only
    /// an entry that shares just as many is compared. The documents of passed entries are skipped.
    fn find(
        &mut self,
        target: &[u8],
        stops: fn(Ordering) -> bool,
    ) -> Result<Option<FoundEntry<'i>>> {
        let stops_at_equal = stops(Ordering::Equal);
        while self.begin_block()? {
            let block = self.index.entries.get(..self.left).ok_or_else(damaged)?;
            let found = find_in_block(block, self.reader.position(), target, stops_at_equal);
            if let Some((entry, doc, at)) = found.ok_or_else(damaged)? {
                self.reader.go_to(at);
                self.doc = doc;
                self.check()?;
                return Ok(Some(entry));
            }
            // The rest of the block is skipped.
            self.reader.go_to(self.left);
        }
        Ok(None)
    }

    /// Goes to the next block; false after the last.
    fn begin_block(&mut self) -> Result<bool> {
        if self.block >= self.index.block_count {
            return Ok(false);
        }
        self.left = self.index.end(self.block) as usize;
        self.reader.go_to(self.index.start(self.block));
        self.block += 1;
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<()>> {
        if self.reader.position() >= self.left {
            if !self.begin_block()? {
                return Ok(None);
            }
            let length = self.reader.next()? as usize;
            self.value.clear();
            self.take(length)?;
            self.doc = self.reader.next()?;
        } else {
            match self.reader.next()? as usize {
                0 => {
                    let ahead = self.reader.next()?;
                    self.doc = self.doc.checked_add(ahead).ok_or_else(damaged)?;
                }
                length => {
                    let shared = self.reader.next()? as usize;
                    if shared > self.value.len() {
                        return Err(damaged());
                    }
                    self.value.truncate(shared);
                    self.take(length)?;
                    self.doc = self.reader.next()?;
                }
            }
        }
        self.check()?;
        Ok(Some(()))
    }

    /// Appends the next bytes to the value.
    fn take(&mut self, length: usize) -> Result<()> {
        let bytes = self.bytes(length)?;
        self.value.extend_from_slice(bytes);
        Ok(())
    }

    /// The next bytes.
    fn bytes(&mut self, length: usize) -> Result<&'i [u8]> {
        self.reader.take(length).ok_or_else(damaged)
    }
}

/// Searches a block that begins at `at` and ends with `bytes` for the entry of
/// [`PathEntries::find`]. Returns the entry, its document and where the next entry begins;
/// `Some(None)` if the block has no such entry, `None` if it is damaged.
fn find_in_block<'i>(
    bytes: &'i [u8],
    mut at: usize,
    target: &[u8],
    stops_at_equal: bool,
) -> Option<Option<(FoundEntry<'i>, u32, usize)>> {
    let mut length = varint::read(bytes, &mut at)? as usize;
    let (mut shared, mut equal, mut order) = (0, 0, Ordering::Less);
    loop {
        let end = at.checked_add(length)?;
        let rest = bytes.get(at..end)?;
        at = end;
        match shared.cmp(&equal) {
            Ordering::Greater => {}
            Ordering::Less => order = Ordering::Greater,
            Ordering::Equal => (equal, order) = compare_from(equal, rest, target),
        }
        if order == Ordering::Greater || (stops_at_equal && order == Ordering::Equal) {
            let doc = varint::read(bytes, &mut at)?;
            return Some(Some((FoundEntry { shared, rest, order }, doc, at)));
        }
        varint::skip(bytes, &mut at)?;
        // Skip to the next entry with another value.
        loop {
            if at >= bytes.len() {
                return Some(None);
            }
            length = varint::read(bytes, &mut at)? as usize;
            if length > 0 {
                break;
            }
            varint::skip(bytes, &mut at)?;
        }
        shared = varint::read(bytes, &mut at)? as usize;
    }
}

/// Compares a value with the target. The first `equal` bytes of both are the same, and `rest` are
/// the others of the value. Returns the length of the common prefix, and the order.
fn compare_from(equal: usize, rest: &[u8], target: &[u8]) -> (usize, Ordering) {
    let other = target.get(equal..).unwrap_or_default();
    if let (Some(one), Some(another)) = (rest.first(), other.first())
        && one != another
    {
        return (equal, one.cmp(another));
    }
    let more = common_prefix(rest, other);
    (equal + more, rest.get(more).cmp(&other.get(more)))
}

/// The length of the common prefix in bytes.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let ((words, _), (others, _)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let mut equal = 0;
    for (word, other) in words.iter().zip(others) {
        let differing = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return equal + differing.trailing_zeros() as usize / 8;
        }
        equal += 8;
    }
    let rest = one.iter().zip(other).skip(equal);
    equal + rest.take_while(|(one, other)| one == other).count()
}

fn is_below(value: &[u8], low: Bound<&[u8]>) -> bool {
    match low {
        Bound::Unbounded => false,
        Bound::Included(low) => value < low,
        Bound::Excluded(low) => value <= low,
    }
}

fn is_above(value: &[u8], high: Bound<&[u8]>) -> bool {
    match high {
        Bound::Unbounded => false,
        Bound::Included(high) => value > high,
        Bound::Excluded(high) => value >= high,
    }
}

/// The first eight bytes of a value as a number that keeps their order.
fn first_bytes(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(chunk)
        }
    }
}

fn damaged() -> IndexError {
    IndexError::corrupt("the values of a path")
}
