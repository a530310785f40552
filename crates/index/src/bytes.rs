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
//! All integers are little endian. Checksums cover every byte of the file except the first eight, which are
//! compared with their expected value.

use std::{
    borrow::Cow,
    fs::File,
    ops::{Deref, Range},
    os::unix::fs::FileExt,
    sync::Arc,
};

use crate::{IndexError, Result, pages::Pages};

const MAGIC: [u8; 4] = *b"RMSG";
/// Version of the segment format; a file of another version is rebuilt from the row store.
pub const FORMAT_VERSION: u32 = 1;
const HEADER_BYTES: usize = 8;
const ENTRY_BYTES: usize = 28;
const FOOTER_BYTES: usize = 20;
/// A read of more bytes bypasses the page cache: such reads are those of a merge, which reads each byte once.
const MOST_PAGED: usize = 256 << 10;

/// Four bytes that name the kind of a section.
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

    /// A part of this slice.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the range does not lie inside the slice.
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

    /// Reserves capacity for sections of so many bytes in all.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
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

/// Bytes of a section that are in memory, or were verified and left in the file.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// The bytes are in memory.
    Memory(Slice),
    /// The bytes are in the file and are read on demand, in about 1 us if the page is in the
    /// system's cache.
    File {
        /// The segment's file; nothing ever writes to it.
        file: Arc<File>,
        /// The range of the section in the file.
        range: Range<u64>,
        /// The cache of its pages, if it has one.
        pages: Option<Arc<Pages>>,
    },
}

impl Stored {
    /// All bytes.
    pub fn read_all(&self) -> Result<Slice> {
        match self {
            Self::Memory(slice) => Ok(slice.clone()),
            Self::File { range, .. } => {
                let length = range.end.saturating_sub(range.start) as usize;
                Ok(Slice::new(self.read(0, length)?.into_owned()))
            }
        }
    }

    /// `length` bytes from `start` on.
    pub fn read(&self, start: u64, length: usize) -> Result<Cow<'_, [u8]>> {
        let outside = || IndexError::corrupt("a part lies outside its section");
        match self {
            Self::Memory(slice) => {
                let rest = usize::try_from(start).ok().and_then(|start| slice.get(start..));
                Ok(Cow::Borrowed(rest.and_then(|rest| rest.get(..length)).ok_or_else(outside)?))
            }
            Self::File { .. } => {
                let mut bytes = Vec::new();
                self.read_into(start, length, &mut bytes)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// `length` bytes from `start` on, appended to `out`.
    pub fn read_into(&self, start: u64, length: usize, out: &mut Vec<u8>) -> Result<()> {
        let outside = || IndexError::corrupt("a part lies outside its section");
        let Self::File { file, range, pages } = self else {
            out.extend_from_slice(&self.read(start, length)?);
            return Ok(());
        };
        let at = range.start.checked_add(start).ok_or_else(outside)?;
        if range.end.checked_sub(at).is_none_or(|left| left < length as u64) {
            return Err(outside());
        }
        if let (Some(pages), 1..=MOST_PAGED) = (pages, length) {
            let from_file = |from: u64, to: u64| {
                let mut page = vec![0; (to - from) as usize];
                file.read_exact_at(&mut page, range.start + from)?;
                Ok(page)
            };
            return pages.read_into((start, start + length as u64), from_file, out);
        }
        let before = out.len();
        out.resize(before + length, 0);
        Ok(file.read_exact_at(&mut out[before..], at)?)
    }

    /// The same section with a page cache, if it lies in a file.
    pub fn paged(&self) -> Self {
        match self {
            Self::File { file, range, .. } => {
                let pages = Some(Arc::new(Pages::new(range.end - range.start)));
                Self::File { file: Arc::clone(file), range: range.clone(), pages }
            }
            Self::Memory(_) => self.clone(),
        }
    }
}

/// The verified sections of one segment.
#[derive(Clone, Debug)]
pub struct Sections {
    source: Source,
    directory: Vec<(SectionTag, u32, Stored)>,
}

#[derive(Clone, Debug)]
enum Source {
    Memory(Slice),
    File(Arc<File>, u64),
}

impl Sections {
    /// Opens a buffer, checking every checksum: O(bytes), about 10 GB/s.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the buffer is not a segment, has another format version, is cut
    /// short, or a checksum is wrong.
    pub fn open(bytes: Vec<u8>) -> Result<Self> {
        let tail = &bytes[bytes.len().saturating_sub(FOOTER_BYTES)..];
        let place =
            DirectoryPlace::read(&bytes[..bytes.len().min(HEADER_BYTES)], tail, bytes.len())?;
        let entries = place.entries(&bytes[place.range.clone()])?;
        let whole = Slice::new(bytes);
        let mut directory = Vec::with_capacity(entries.len());
        for entry in entries {
            let slice = whole.part(entry.range.clone())?;
            entry.verify(crc32fast::hash(&slice))?;
            directory.push((entry.tag, entry.id, Stored::Memory(slice)));
        }
        Ok(Self { source: Source::Memory(whole), directory })
    }

    /// Opens a file, checking every checksum; sections with a tag of `left` are verified but stay
    /// in the file, the others are read into memory.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] if the file is not a segment, has another format version, is cut
    /// short, or a checksum is wrong. [`IndexError::Io`] if the file cannot be read.
    pub fn open_file(file: File, left: &[SectionTag]) -> Result<Self> {
        let length = usize::try_from(file.metadata()?.len());
        let length = length.map_err(|_| IndexError::corrupt("the file's length"))?;
        let file = Arc::new(file);
        let read = |start: usize, end: usize| -> Result<Vec<u8>> {
            let mut bytes = vec![0; end - start];
            file.read_exact_at(&mut bytes, start as u64)?;
            Ok(bytes)
        };
        let head = read(0, length.min(HEADER_BYTES))?;
        let tail = read(length.saturating_sub(FOOTER_BYTES), length)?;
        let place = DirectoryPlace::read(&head, &tail, length)?;
        let entries = place.entries(&read(place.range.start, place.range.end)?)?;
        let mut directory = Vec::with_capacity(entries.len());
        for entry in entries {
            let Range { start, end } = entry.range;
            let stored = if left.contains(&entry.tag) {
                entry.verify(hash_file(&file, &entry.range)?)?;
                let (file, range) = (Arc::clone(&file), start as u64..end as u64);
                Stored::File { file, range, pages: None }
            } else {
                let bytes = read(start, end)?;
                entry.verify(crc32fast::hash(&bytes))?;
                Stored::Memory(Slice::new(bytes))
            };
            directory.push((entry.tag, entry.id, stored));
        }
        Ok(Self { source: Source::File(file, length as u64), directory })
    }

    fn stored(&self, tag: SectionTag, id: u32) -> Option<&Stored> {
        self.directory.iter().find(|entry| (entry.0, entry.1) == (tag, id)).map(|entry| &entry.2)
    }

    /// The section, if the segment has it in memory.
    pub fn get(&self, tag: SectionTag, id: u32) -> Option<&Slice> {
        match self.stored(tag, id)? {
            Stored::Memory(slice) => Some(slice),
            Stored::File { .. } => None,
        }
    }

    /// The section, which must be in memory.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] names the section if the segment does not have it in memory.
    pub fn require(&self, tag: SectionTag, id: u32) -> Result<&Slice> {
        self.get(tag, id).ok_or_else(|| missing(tag))
    }

    /// The section, in memory or in the file.
    ///
    /// # Errors
    /// [`IndexError::Corrupt`] names the section if the segment does not have it.
    pub(crate) fn require_stored(&self, tag: SectionTag, id: u32) -> Result<&Stored> {
        self.stored(tag, id).ok_or_else(|| missing(tag))
    }

    /// The ids that have a section `tag`.
    pub fn ids(&self, tag: SectionTag) -> impl Iterator<Item = u32> + '_ {
        self.directory.iter().filter(move |entry| entry.0 == tag).map(|entry| entry.1)
    }

    /// All bytes of the segment's file. If the segment was opened from a file, they are read back from it.
    ///
    /// # Errors
    /// [`IndexError::Io`] if the segment lies in a file that cannot be read.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        match &self.source {
            Source::Memory(whole) => Ok(Cow::Borrowed(whole)),
            Source::File(file, length) => {
                let mut bytes = vec![0; *length as usize];
                file.read_exact_at(&mut bytes, 0)?;
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// How many bytes [`Sections::bytes`] are.
    pub fn len(&self) -> u64 {
        match &self.source {
            Source::Memory(whole) => whole.len() as u64,
            Source::File(_, length) => *length,
        }
    }

    /// Whether there is no section.
    pub fn is_empty(&self) -> bool {
        self.directory.is_empty()
    }

    /// Bytes held in memory.
    pub fn memory_bytes(&self) -> u64 {
        match &self.source {
            Source::Memory(whole) => whole.len() as u64,
            Source::File(..) => self.directory.iter().map(|(.., stored)| stored.memory()).sum(),
        }
    }

    /// Name, part and size of each section, for reports.
    pub fn sizes(&self) -> impl Iterator<Item = (SectionTag, u32, u64)> + '_ {
        self.directory.iter().map(|(tag, id, stored)| match stored {
            Stored::Memory(slice) => (*tag, *id, slice.len() as u64),
            Stored::File { range, .. } => (*tag, *id, range.end - range.start),
        })
    }
}

impl Stored {
    fn memory(&self) -> u64 {
        match self {
            Self::Memory(slice) => slice.len() as u64,
            Self::File { .. } => 0,
        }
    }
}

fn missing(tag: SectionTag) -> IndexError {
    IndexError::Corrupt(format!("no section {}", String::from_utf8_lossy(&tag.0)))
}

fn hash_file(file: &File, range: &Range<usize>) -> Result<u32> {
    const CHUNK_BYTES: usize = 1 << 18;
    let mut hasher = crc32fast::Hasher::new();
    let mut chunk = vec![0; CHUNK_BYTES.min(range.len())];
    let mut at = range.start;
    while at < range.end {
        let length = chunk.len().min(range.end - at);
        file.read_exact_at(&mut chunk[..length], at as u64)?;
        hasher.update(&chunk[..length]);
        at += length;
    }
    Ok(hasher.finalize())
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

    fn verify(&self, crc: u32) -> Result<()> {
        if crc == self.crc {
            return Ok(());
        }
        let tag = String::from_utf8_lossy(&self.tag.0).into_owned();
        Err(IndexError::Corrupt(format!("checksum of section {tag}")))
    }
}

/// The location of the directory, read from the two ends of a file.
struct DirectoryPlace {
    range: Range<usize>,
    /// The checksummed end of the footer.
    counts: [u8; 12],
    crc: u32,
}

impl DirectoryPlace {
    fn read(head: &[u8], tail: &[u8], length: usize) -> Result<Self> {
        let corrupt = |what: &str| Err(IndexError::corrupt(what));
        if length < HEADER_BYTES + FOOTER_BYTES || head.get(..4) != Some(&MAGIC) {
            return corrupt("not a segment file");
        }
        if read_u32(head, 4)? != FORMAT_VERSION {
            return corrupt("segment format version");
        }
        if !tail.ends_with(&MAGIC) {
            return corrupt("the file's end is missing");
        }
        let start = read_u64(tail, 0)? as usize;
        let count = read_u32(tail, 8)? as usize;
        let end = count.checked_mul(ENTRY_BYTES).and_then(|length| length.checked_add(start));
        match (end, tail.first_chunk()) {
            (Some(end), Some(&counts)) if start >= HEADER_BYTES && end == length - FOOTER_BYTES => {
                Ok(Self { range: start..end, counts, crc: read_u32(tail, 12)? })
            }
            _ => corrupt("the directory's place"),
        }
    }

    /// Parses the entries and checks that their sections are adjacent, from the header to the directory.
    fn entries(&self, directory: &[u8]) -> Result<Vec<Entry>> {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(directory);
        hasher.update(&self.counts);
        if hasher.finalize() != self.crc {
            return Err(IndexError::corrupt("checksum of the directory"));
        }
        let entries = directory.chunks_exact(ENTRY_BYTES).map(Entry::parse);
        let entries = entries.collect::<Result<Vec<_>>>()?;
        let mut next = HEADER_BYTES;
        for entry in &entries {
            if entry.range.start != next {
                return Err(IndexError::corrupt("sections do not follow each other"));
            }
            next = entry.range.end;
        }
        if next != self.range.start {
            return Err(IndexError::corrupt("bytes that belong to no section"));
        }
        Ok(entries)
    }
}

/// The little-endian `u32` at `offset`; a corrupt error past the end.
#[inline]
pub(crate) fn read_u32(bytes: &[u8], offset: usize) -> Result<u32> {
    match bytes.get(offset..).and_then(|rest| rest.first_chunk()) {
        Some(chunk) => Ok(u32::from_le_bytes(*chunk)),
        None => Err(IndexError::corrupt("a number lies past the end")),
    }
}

/// The little-endian `u64` at `offset`; a corrupt error past the end.
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
    const LEFT: SectionTag = SectionTag(*b"LEFT");

    fn sample() -> Vec<u8> {
        let mut writer = SectionWriter::new();
        writer.add(TAG, 0, b"zero");
        writer.add(TAG, 7, b"");
        writer.add(TAG, 9, b"nine");
        writer.add(LEFT, 1, b"left in the file");
        writer.finish()
    }

    #[test]
    fn sections_round_trip() {
        let sections = Sections::open(sample()).unwrap();
        assert_eq!(&**sections.get(TAG, 9).unwrap(), b"nine");
        assert_eq!(sections.ids(TAG).collect::<Vec<_>>(), [0, 7, 9]);
        assert!(sections.get(TAG, 1).is_none());
    }

    fn open_file(bytes: &[u8]) -> Result<Sections> {
        use std::io::Write;
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        Sections::open_file(file, &[LEFT])
    }

    #[test]
    fn segment_file_reads_like_its_buffer() {
        let sections = open_file(&sample()).unwrap();
        assert_eq!(&**sections.get(TAG, 9).unwrap(), b"nine");
        assert!(sections.get(LEFT, 1).is_none());
        let left = sections.require_stored(LEFT, 1).unwrap();
        assert_eq!(&*left.read(2, 3).unwrap(), b"ft ");
        assert!(left.read(2, 100).is_err() && left.read(u64::MAX, 1).is_err());
        assert_eq!(*sections.bytes().unwrap(), *sample());
        assert_eq!(sections.memory_bytes(), 8);
        assert_eq!(sections.len(), sample().len() as u64);
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_detected() {
        let good = sample();
        for index in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[index / 8] ^= 1 << (index % 8);
            assert!(open_file(&bad).is_err(), "bit {index} of the file");
            assert!(Sections::open(bad).is_err(), "bit {index}");
        }
        for length in 0..good.len() {
            assert!(open_file(&good[..length]).is_err(), "length {length} of the file");
            assert!(Sections::open(good[..length].to_vec()).is_err(), "length {length}");
        }
    }
}
