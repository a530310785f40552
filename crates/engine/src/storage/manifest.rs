//! The manifest: which segment files make up each table at one position of the change log.
//!
//! ```text
//! MANIFEST := "RMMF" version:u32 position:u64 tables:u32 table* crc:u32
//! table    := number:u32 segments:u32 segment*
//! segment  := file:u64 bytes:u64 crc:u32 documents:u32 words:u32 deleted:u64*
//! ```
//! Little endian. The `crc` at the end covers everything before it. The `crc` of a segment covers the last 20 bytes
//! of its file, which hold the checksum of its directory of sections and so cover the whole file. `deleted` is the
//! bitmap of deleted documents (tombstones), without its trailing zero words. The file is replaced as a whole. Like
//! segments it is a cache that can be rebuilt from the rows, so losing it costs only time.

use std::{fs, io::ErrorKind, path::Path};

use remora_index::Bitmap;

use super::durable::{io_error, write_atomically};
use crate::{Error, Position, Result};

const FILE: &str = "MANIFEST";
const MAGIC: &[u8; 4] = b"RMMF";
const VERSION: u32 = 1;

/// The segments of all tables at `position`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    /// The segments contain everything up to this batch.
    pub position: Position,
    /// The tables.
    pub tables: Vec<TableRecord>,
}

/// One table's segments, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableRecord {
    /// The table's number.
    pub number: u32,
    /// The segments of the table, each with its deleted documents.
    pub segments: Vec<(SegmentRecord, Bitmap)>,
}

/// One segment file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SegmentRecord {
    /// The number in its file name.
    pub file: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Checksum of the file's last 20 bytes, which cover the rest.
    pub crc: u32,
    /// Number of documents, deleted ones included.
    pub documents: u32,
}

impl Manifest {
    /// Reads the manifest; `None` if there is none.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(FILE);
        match fs::read(&path) {
            Ok(bytes) => Self::decode(&bytes).map(Some).ok_or_else(|| {
                Error::Corrupt(format!("{}: torn, damaged or of another version", path.display()))
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error("read", &path, &error)),
        }
    }

    /// Replaces the manifest; it is durable on return.
    pub fn write(&self, directory: &Path) -> Result<()> {
        write_atomically(&directory.join(FILE), &self.encode())
    }

    /// The numbers of all files it names.
    pub fn files(&self) -> Vec<u64> {
        let segments = self.tables.iter().flat_map(|table| &table.segments);
        segments.map(|(record, _)| record.file).collect()
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(self.position.0.to_le_bytes());
        out.extend((self.tables.len() as u32).to_le_bytes());
        for table in &self.tables {
            out.extend(table.number.to_le_bytes());
            out.extend((table.segments.len() as u32).to_le_bytes());
            table.segments.iter().for_each(|(record, deleted)| record.encode(deleted, &mut out));
        }
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, crc) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
            return None;
        }
        let mut reader = ManifestReader(body.strip_prefix(MAGIC)?);
        if reader.u32()? != VERSION {
            return None;
        }
        let position = Position(reader.u64()?);
        let tables = reader.u32()?;
        let tables =
            (0..tables).map(|_| TableRecord::decode(&mut reader)).collect::<Option<_>>()?;
        reader.0.is_empty().then_some(Self { position, tables })
    }
}

impl TableRecord {
    fn decode(reader: &mut ManifestReader<'_>) -> Option<Self> {
        let (number, segments) = (reader.u32()?, reader.u32()?);
        let segments = (0..segments).map(|_| SegmentRecord::decode(reader));
        Some(Self { number, segments: segments.collect::<Option<_>>()? })
    }
}

impl SegmentRecord {
    fn encode(&self, deleted: &Bitmap, out: &mut Vec<u8>) {
        out.extend(self.file.to_le_bytes());
        out.extend(self.bytes.to_le_bytes());
        out.extend(self.crc.to_le_bytes());
        out.extend(self.documents.to_le_bytes());
        let words = deleted.words();
        let used = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        out.extend((used as u32).to_le_bytes());
        words.iter().take(used).for_each(|word| out.extend(word.to_le_bytes()));
    }

    fn decode(reader: &mut ManifestReader<'_>) -> Option<(Self, Bitmap)> {
        let (file, bytes) = (reader.u64()?, reader.u64()?);
        let (crc, documents, words) = (reader.u32()?, reader.u32()?, reader.u32()?);
        if words > documents.div_ceil(64) {
            return None;
        }
        let words: Vec<u64> = (0..words).map(|_| reader.u64()).collect::<Option<_>>()?;
        Some((Self { file, bytes, crc, documents }, Bitmap::from_words(documents, words)))
    }
}

struct ManifestReader<'b>(&'b [u8]);

impl ManifestReader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*value))
    }

    fn u64(&mut self) -> Option<u64> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let mut deleted = Bitmap::new(300);
        for doc in [0, 64, 130] {
            deleted.insert(doc);
        }
        let record = SegmentRecord { file: 7, bytes: 1_234, crc: 0xfeed, documents: 300 };
        let other = SegmentRecord { file: 9, documents: 0, ..record.clone() };
        let segments = vec![(record, deleted), (other, Bitmap::new(0))];
        let empty = TableRecord { number: 2, segments: Vec::new() };
        let tables = vec![TableRecord { number: 1, segments }, empty];
        Manifest { position: Position(42), tables }
    }

    #[test]
    fn segment_round_trips_through_its_file() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::read(directory.path()).unwrap(), None);
        sample().write(directory.path()).unwrap();
        assert_eq!(Manifest::read(directory.path()).unwrap(), Some(sample()));
        assert_eq!(sample().files(), [7, 9]);
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_detected() {
        let good = sample().encode();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Manifest::decode(&bad), None, "bit {bit}");
        }
        for length in 0..good.len() {
            assert_eq!(Manifest::decode(&good[..length]), None, "length {length}");
        }
    }
}
