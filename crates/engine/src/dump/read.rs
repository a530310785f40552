//! Reads a dump, which may be damaged or hostile.

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use super::{
    DumpInfo, DumpMeta, DumpTable, DumpVisitor, MAGIC, MAX_SECTION_BYTES, PREAMBLE_BYTES,
    SECTION_FRAME_BYTES, TRAILER_BYTES, Tag, Totals, VERSION,
};
use crate::{
    Error, Missing, Result, Row, Schema,
    encode::{decode_row, decode_schema, encode_key},
    storage::durable::io_error,
};

/// The contents of a dump, from its header and footer. Fast, but no proof that the rest is intact: see [`verify`].
///
/// # Errors
/// [`Error::NotFound`] if there is no such file, [`Error::Io`] if it cannot be read, [`Error::Corrupt`] if its header
/// or footer is not that of a dump of this version.
pub fn info(path: &Path) -> Result<DumpInfo> {
    let mut reader = DumpReader::open(path)?;
    let meta = reader.header()?;
    let trailer_offset = reader.length.checked_sub(TRAILER_BYTES);
    let trailer_offset = trailer_offset.ok_or_else(|| reader.corrupt("is cut short"))?;
    reader.seek(trailer_offset)?;
    let footer_offset = u64::from_le_bytes(reader.array()?);
    let _crc: [u8; 4] = reader.array()?;
    reader.expect_magic()?;
    if footer_offset < PREAMBLE_BYTES || footer_offset > trailer_offset {
        return Err(reader.corrupt("has a footer outside the file"));
    }
    reader.seek(footer_offset)?;
    let (tag, body) = reader.section()?;
    if tag != Tag::Footer || reader.offset != trailer_offset {
        return Err(reader.corrupt("has no footer where its end says"));
    }
    let totals: Totals = reader.json(&body)?;
    Ok(totals.into_info(meta, reader.length))
}

/// Reads a dump from start to end and passes tables and rows to `visitor`, each block after its checksum was
/// verified. Only the end of the file proves that it is complete: call [`verify`] first if a partial result does
/// harm.
///
/// # Errors
/// [`Error::NotFound`] if there is no such file, [`Error::Io`] if it cannot be read, [`Error::Corrupt`] if it is not
/// a complete dump of this version; and the first error of `visitor`.
pub fn read(path: &Path, visitor: &mut dyn DumpVisitor) -> Result<DumpInfo> {
    let mut reader = DumpReader::open(path)?;
    let meta = reader.header()?;
    let mut totals = Totals::default();
    loop {
        let footer_offset = reader.offset;
        match reader.section()? {
            (Tag::Table, body) => {
                let schema = decode_schema(&body)?;
                let table = reader.table(schema, visitor, &mut totals)?;
                totals.tables.push(table);
            }
            (Tag::Footer, body) => {
                if reader.json::<Totals>(&body)? != totals {
                    return Err(reader.corrupt("has totals that do not match its tables"));
                }
                reader.end(footer_offset)?;
                return Ok(totals.into_info(meta, reader.length));
            }
            _ => return Err(reader.corrupt("has its parts in a wrong order")),
        }
    }
}

/// Reads the whole file and checks every checksum, count and row, and the key order of rows.
///
/// # Errors
/// [`Error::NotFound`] if there is no such file, [`Error::Io`] if it cannot be read, [`Error::Corrupt`] if it is not
/// a complete dump of this version or its rows are out of order.
pub fn verify(path: &Path) -> Result<DumpInfo> {
    read(path, &mut KeyOrder { path, schema: None, last: None })
}

struct KeyOrder<'p> {
    path: &'p Path,
    schema: Option<Schema>,
    last: Option<Vec<u8>>,
}

impl DumpVisitor for KeyOrder<'_> {
    fn table(&mut self, schema: Schema) -> Result<()> {
        self.schema = Some(schema);
        self.last = None;
        Ok(())
    }

    fn row(&mut self, row: Row, _bytes: usize) -> Result<()> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let parts: Vec<_> =
            schema.primary_key.iter().filter_map(|&part| row.get(part).cloned()).collect();
        let key = encode_key(schema, &parts)
            .map_err(|error| corrupt(self.path, &format!("holds a row without a key: {error}")))?;
        if self.last.as_ref().is_some_and(|last| *last >= key) {
            return Err(corrupt(self.path, "holds rows out of key order"));
        }
        self.last = Some(key);
        Ok(())
    }
}

struct DumpReader<'p> {
    path: &'p Path,
    file: BufReader<File>,
    length: u64,
    offset: u64,
    crc: crc32fast::Hasher,
}

impl<'p> DumpReader<'p> {
    /// Opens the file and checks magic and version.
    fn open(path: &'p Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::missing(Missing::Path, format!("there is no dump {}", path.display()))
            }
            _ => io_error("open", path, &error),
        })?;
        let metadata = file.metadata().map_err(|error| io_error("read", path, &error))?;
        let crc = crc32fast::Hasher::new();
        let file = BufReader::new(file);
        let mut reader = Self { path, file, length: metadata.len(), offset: 0, crc };
        if reader.array::<8>().ok().as_ref() != Some(MAGIC) {
            return Err(reader.corrupt("is not a Remora dump"));
        }
        let version = u32::from_le_bytes(reader.array()?);
        if version != VERSION {
            let what = format!("has version {version}, this program reads {VERSION}");
            return Err(reader.corrupt(&what));
        }
        Ok(reader)
    }

    fn header(&mut self) -> Result<DumpMeta> {
        match self.section()? {
            (Tag::Header, body) => self.json(&body),
            _ => Err(self.corrupt("has no header")),
        }
    }

    fn table(
        &mut self,
        schema: Schema,
        visitor: &mut dyn DumpVisitor,
        totals: &mut Totals,
    ) -> Result<DumpTable> {
        visitor.table(schema.clone())?;
        let mut table = DumpTable { name: schema.name.clone(), rows: 0 };
        loop {
            let (tag, body) = self.section()?;
            match tag {
                Tag::Rows => {
                    let (rows, bytes) = self.rows(&schema, &body, visitor)?;
                    table.rows += u64::from(rows);
                    totals.rows += u64::from(rows);
                    totals.row_bytes += bytes;
                }
                Tag::TableEnd if body == table.rows.to_le_bytes() => return Ok(table),
                Tag::TableEnd => {
                    return Err(self.corrupt("has another number of rows than it states"));
                }
                _ => return Err(self.corrupt("has its parts in a wrong order")),
            }
        }
    }

    /// Passes the rows of a block to `visitor`; returns their count and bytes.
    fn rows(
        &self,
        schema: &Schema,
        body: &[u8],
        visitor: &mut dyn DumpVisitor,
    ) -> Result<(u32, u64)> {
        let malformed = || self.corrupt("holds a malformed block of rows");
        let (count, rest) = split_u32(body).ok_or_else(malformed)?;
        let (raw_length, compressed) = split_u32(rest).ok_or_else(malformed)?;
        let block = decompress(compressed, raw_length).ok_or_else(malformed)?;
        let mut rest = block.as_slice();
        for _ in 0..count {
            let (length, behind) = split_u32(rest).ok_or_else(malformed)?;
            let (row, behind) = behind.split_at_checked(length as usize).ok_or_else(malformed)?;
            visitor.row(decode_row(schema, row)?, row.len())?;
            rest = behind;
        }
        if rest.is_empty() { Ok((count, u64::from(raw_length))) } else { Err(malformed()) }
    }

    /// Reads the trailer, which must end the file.
    fn end(&mut self, footer_offset: u64) -> Result<()> {
        if u64::from_le_bytes(self.array()?) != footer_offset {
            return Err(self.corrupt("has a wrong footer offset"));
        }
        let crc = self.crc.clone().finalize();
        if u32::from_le_bytes(self.array()?) != crc {
            return Err(self.corrupt("has a wrong checksum"));
        }
        self.expect_magic()?;
        if self.offset == self.length {
            Ok(())
        } else {
            Err(self.corrupt("has bytes after its end"))
        }
    }

    fn section(&mut self) -> Result<(Tag, Vec<u8>)> {
        let frame: [u8; 5] = self.array()?;
        let [tag, length @ ..] = frame;
        let length = u32::from_le_bytes(length);
        let left = self.length.saturating_sub(self.offset + SECTION_FRAME_BYTES - 5);
        if length as usize > MAX_SECTION_BYTES || u64::from(length) > left {
            return Err(self.corrupt("is cut short or holds a wrong length"));
        }
        let mut body = vec![0; length as usize];
        self.fill(&mut body)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&frame);
        crc.update(&body);
        if u32::from_le_bytes(self.array()?) != crc.finalize() {
            return Err(self.corrupt("has a wrong checksum"));
        }
        let tags = [Tag::Header, Tag::Table, Tag::Rows, Tag::TableEnd, Tag::Footer];
        let tag = tags.into_iter().find(|&known| known as u8 == tag);
        Ok((tag.ok_or_else(|| self.corrupt("holds an unknown part"))?, body))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.file.read_exact(bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.corrupt("is cut short"),
            _ => io_error("read", self.path, &error),
        })?;
        self.crc.update(bytes);
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn seek(&mut self, offset: u64) -> Result<()> {
        let sought = self.file.seek(SeekFrom::Start(offset));
        self.offset = sought.map_err(|error| io_error("read", self.path, &error))?;
        Ok(())
    }

    fn expect_magic(&mut self) -> Result<()> {
        if self.array::<8>()? == *MAGIC { Ok(()) } else { Err(self.corrupt("is cut short")) }
    }

    fn json<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T> {
        serde_json::from_slice(body).map_err(|error| self.corrupt(&format!("holds {error}")))
    }

    fn corrupt(&self, what: &str) -> Error {
        corrupt(self.path, what)
    }
}

fn corrupt(path: &Path, what: &str) -> Error {
    Error::Corrupt(format!("{} {what}", path.display()))
}

fn split_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), rest))
}

/// Decompresses a block; `None` unless it has exactly `raw_length` bytes. Memory grows with the output, not with
/// `raw_length`.
fn decompress(compressed: &[u8], raw_length: u32) -> Option<Vec<u8>> {
    if raw_length as usize > MAX_SECTION_BYTES {
        return None;
    }
    let decoder = zstd::stream::read::Decoder::with_buffer(compressed).ok()?;
    let mut bytes = Vec::new();
    decoder.take(u64::from(raw_length) + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() == raw_length as usize).then_some(bytes)
}
