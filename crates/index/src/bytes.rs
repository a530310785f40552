//! The container of a segment: named, checksummed sections in one buffer.
//!
//! ```text
//! file    := magic version section* directory footer
//! magic   := "RMSG"                                     4 bytes
//! version := u32                                        FORMAT_VERSION
//! section := bytes                                      at any offset, no padding
//! directory := (tag:u32 id:u32 offset:u64 length:u64 crc:u32)*
//! footer  := directory_offset:u64 count:u32 crc(directory, offset and count):u32 magic
//! ```
//! All integers are little endian. Every byte of the file but the leading eight is under one of
//! the checksums, and those eight are compared whole.

use std::{ops::Deref, ops::Range, sync::Arc};

use crate::{IndexError, Result};

const MAGIC: [u8; 4] = *b"RMSG";
/// Version of the segment format; a file of another version is rebuilt from the row store.
pub const FORMAT_VERSION: u32 = 1;
const HEADER_BYTES: usize = 8;
const ENTRY_BYTES: usize = 28;
const FOOTER_BYTES: usize = 20;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SectionTag(pub [u8; 4]);

/// A part of a shared, verified buffer. Cloning it copies no bytes.
#[derive(Clone)]
pub struct Slice {
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Slice {
    /// The whole of `bytes`.
    pub fn new(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { buffer: Arc::new(bytes), range }
    }

    /// A part of this slice, or corrupt if it does not lie inside.
    pub fn part(&self, range: Range<usize>) -> Result<Slice> {
        if range.start > range.end || range.end > self.len() {
            return Err(IndexError::corrupt("a part lies outside its section"));
        }
        let start = self.range.start;
        let range = start + range.start..start + range.end;
        Ok(Self { buffer: Arc::clone(&self.buffer), range })
    }
}

impl Deref for Slice {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

impl std::fmt::Debug for Slice {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Slice({} bytes)", self.len())
    }
}

/// Collects sections and lays them out as one buffer.
#[derive(Default)]
pub struct SectionWriter {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u32,
}

impl SectionWriter {
    /// An empty container.
    pub fn new() -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        Self { bytes, ..Self::default() }
    }

    /// Appends the section `tag` of the part `id` (a column's or text index's number, else 0).
    pub fn add(&mut self, tag: SectionTag, id: u32, section: &[u8]) {
        self.directory.extend_from_slice(&tag.0);
        self.directory.extend_from_slice(&id.to_le_bytes());
        self.directory.extend_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        self.directory.extend_from_slice(&(section.len() as u64).to_le_bytes());
        self.directory.extend_from_slice(&crc32fast::hash(section).to_le_bytes());
        self.bytes.extend_from_slice(section);
        self.count += 1;
    }

    /// The finished buffer.
    pub fn finish(mut self) -> Vec<u8> {
        let directory_offset = self.bytes.len() as u64;
        self.directory.extend_from_slice(&directory_offset.to_le_bytes());
        self.directory.extend_from_slice(&self.count.to_le_bytes());
        self.bytes.extend_from_slice(&self.directory);
        self.bytes.extend_from_slice(&crc32fast::hash(&self.directory).to_le_bytes());
        self.bytes.extend_from_slice(&MAGIC);
        self.bytes.shrink_to_fit();
        self.bytes
    }
}

/// The sections of one verified buffer.
#[derive(Clone, Debug)]
pub struct Sections {
    whole: Slice,
    directory: Vec<(SectionTag, u32, Slice)>,
}

impl Sections {
    /// Opens a buffer, checking every checksum: O(bytes), about 10 GB/s.
    pub fn open(bytes: Vec<u8>) -> Result<Self> {
        let (directory_bytes, directory_end) = verified_directory(&bytes)?;
        let entries: Vec<Entry> = bytes[directory_bytes.clone()]
            .chunks_exact(ENTRY_BYTES)
            .map(Entry::parse)
            .collect::<Result<_>>()?;
        debug_assert!(directory_end <= bytes.len());
        let whole = Slice::new(bytes);
        let mut next = HEADER_BYTES;
        let mut directory = Vec::with_capacity(entries.len());
        for entry in entries {
            if entry.range.start != next || entry.range.end > directory_bytes.start {
                return Err(IndexError::corrupt("sections do not follow each other"));
            }
            next = entry.range.end;
            let slice = whole.part(entry.range)?;
            if crc32fast::hash(&slice) != entry.crc {
                let tag = String::from_utf8_lossy(&entry.tag.0).into_owned();
                return Err(IndexError::Corrupt(format!("checksum of section {tag}")));
            }
            directory.push((entry.tag, entry.id, slice));
        }
        if next != directory_bytes.start {
            return Err(IndexError::corrupt("bytes that belong to no section"));
        }
        Ok(Self { whole, directory })
    }

    /// The section, if the segment has it.
    pub fn get(&self, tag: SectionTag, id: u32) -> Option<&Slice> {
        self.directory.iter().find(|entry| (entry.0, entry.1) == (tag, id)).map(|entry| &entry.2)
    }

    /// The section, or a corrupt error that names it.
    pub fn require(&self, tag: SectionTag, id: u32) -> Result<&Slice> {
        self.get(tag, id).ok_or_else(|| {
            IndexError::Corrupt(format!("no section {}", String::from_utf8_lossy(&tag.0)))
        })
    }

    /// The ids that have a section `tag`.
    pub fn ids(&self, tag: SectionTag) -> impl Iterator<Item = u32> + '_ {
        self.directory.iter().filter(move |entry| entry.0 == tag).map(|entry| entry.1)
    }

    /// The whole buffer, as it is written to a file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.whole
    }

    /// Name, part and size of each section, for reports.
    pub fn sizes(&self) -> impl Iterator<Item = (SectionTag, u32, usize)> + '_ {
        self.directory.iter().map(|(tag, id, slice)| (*tag, *id, slice.len()))
    }
}

struct Entry {
    tag: SectionTag,
    id: u32,
    range: Range<usize>,
    crc: u32,
}

impl Entry {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let (offset, length) = (read_u64(bytes, 8)? as usize, read_u64(bytes, 16)? as usize);
        let end = offset.checked_add(length);
        let end = end.ok_or_else(|| IndexError::corrupt("a section's length"))?;
        let tag = SectionTag([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Ok(Self { tag, id: read_u32(bytes, 4)?, range: offset..end, crc: read_u32(bytes, 24)? })
    }
}

/// Where the directory lies and where its checksum begins.
fn verified_directory(bytes: &[u8]) -> Result<(Range<usize>, usize)> {
    let corrupt = |what: &str| Err(IndexError::corrupt(what));
    if bytes.len() < HEADER_BYTES + FOOTER_BYTES || bytes[..4] != MAGIC {
        return corrupt("not a segment file");
    }
    if read_u32(bytes, 4)? != FORMAT_VERSION {
        return corrupt("segment format version");
    }
    if bytes[bytes.len() - 4..] != MAGIC {
        return corrupt("the file's end is missing");
    }
    let checksum_at = bytes.len() - 8;
    let start = read_u64(bytes, checksum_at - 12)? as usize;
    let count = read_u32(bytes, checksum_at - 4)? as usize;
    let end = count.checked_mul(ENTRY_BYTES).and_then(|length| length.checked_add(start));
    if start < HEADER_BYTES || end != Some(checksum_at - 12) {
        return corrupt("the directory's place");
    }
    if crc32fast::hash(&bytes[start..checksum_at]) != read_u32(bytes, checksum_at)? {
        return corrupt("checksum of the directory");
    }
    Ok((start..checksum_at - 12, checksum_at))
}

/// The little-endian `u32` at `offset`, or corrupt past the end.
#[inline]
pub(crate) fn read_u32(bytes: &[u8], offset: usize) -> Result<u32> {
    match bytes.get(offset..).and_then(|rest| rest.first_chunk()) {
        Some(chunk) => Ok(u32::from_le_bytes(*chunk)),
        None => Err(IndexError::corrupt("a number lies past the end")),
    }
}

/// The little-endian `u64` at `offset`, or corrupt past the end.
#[inline]
pub(crate) fn read_u64(bytes: &[u8], offset: usize) -> Result<u64> {
    match bytes.get(offset..).and_then(|rest| rest.first_chunk()) {
        Some(chunk) => Ok(u64::from_le_bytes(*chunk)),
        None => Err(IndexError::corrupt("a number lies past the end")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: SectionTag = SectionTag(*b"TEST");

    fn sample() -> Vec<u8> {
        let mut writer = SectionWriter::new();
        writer.add(TAG, 0, b"zero");
        writer.add(TAG, 7, b"");
        writer.add(TAG, 9, b"nine");
        writer.finish()
    }

    #[test]
    fn sections_come_back() {
        let sections = Sections::open(sample()).unwrap();
        assert_eq!(&**sections.get(TAG, 9).unwrap(), b"nine");
        assert_eq!(sections.ids(TAG).collect::<Vec<_>>(), [0, 7, 9]);
        assert!(sections.get(TAG, 1).is_none());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let good = sample();
        for index in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[index / 8] ^= 1 << (index % 8);
            assert!(Sections::open(bad).is_err(), "bit {index}");
        }
        for length in 0..good.len() {
            assert!(Sections::open(good[..length].to_vec()).is_err(), "length {length}");
        }
    }
}
