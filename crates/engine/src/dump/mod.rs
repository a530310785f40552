//! Dumps: tables at one position in one compressed, checksummed file.
//!
//! ```text
//! dump      := magic version:u32 section* trailer
//! section   := tag:u8 length:u32 body crc(tag, length, body):u32
//! sections  := header (table rows* table_end)* footer
//! header    := "H" JSON { position, sources, created_micros }
//! table     := "T" schema                       as the store holds it, see `encode`
//! rows      := "R" count:u32 raw_length:u32 zstd((length:u32 row)*)
//! table_end := "E" count:u64
//! footer    := "F" JSON { tables, rows, row_bytes }
//! trailer   := footer_offset:u64 crc(every byte before):u32 magic
//! magic     := "RMDUMP\r\n"
//! ```
//! Integers are little endian, checksums CRC-32. Rows are in key order, encoded as in the row store. The file is
//! renamed to its name after its bytes are durable, so an interrupted dump leaves no file of that name. Readers check
//! every length before they allocate, and memory grows with the bytes read, not with a claimed length.

mod database;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use read::{info, read, verify};

use crate::{Result, Row, Schema};

const MAGIC: &[u8; 8] = b"RMDUMP\r\n";
const VERSION: u32 = 1;
const PREAMBLE_BYTES: u64 = 12;
const TRAILER_BYTES: u64 = 20;
const SECTION_FRAME_BYTES: u64 = 9;

/// Rows are collected up to this many bytes, then compressed.
const BLOCK_BYTES: usize = 1 << 20;
/// The most bytes of a section, and of the rows of one section before compression: more than any
/// row may have.
const MAX_SECTION_BYTES: usize = 256 << 20;

/// Section tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Header = b'H' as isize,
    Table = b'T' as isize,
    Rows = b'R' as isize,
    TableEnd = b'E' as isize,
    Footer = b'F' as isize,
}

/// The position and the time of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpMeta {
    /// The position of the snapshot in the change log.
    pub position: u64,
    /// The positions of the sources in that snapshot, by name.
    pub sources: BTreeMap<String, String>,
    /// When it was taken, in microseconds since 1970 (UTC).
    pub created_micros: i64,
}

/// What a dump contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpInfo {
    /// The position and the time of the dump.
    pub meta: DumpMeta,
    /// The tables in the order of the file.
    pub tables: Vec<DumpTable>,
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of all rows before compression.
    pub row_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// One table of a dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpTable {
    /// The name of the table.
    pub name: String,
    /// The number of its rows.
    pub rows: u64,
}

/// The progress of a dump.
#[derive(Clone, Debug)]
pub struct DumpProgress<'a> {
    /// The table being written.
    pub table: &'a str,
    /// Rows written so far, of all tables.
    pub rows: u64,
    /// Bytes written so far.
    pub file_bytes: u64,
}

/// Receives the tables and rows of a dump.
pub trait DumpVisitor {
    /// A table begins; its rows follow.
    ///
    /// # Errors
    /// An error of the visitor ends the reading, and [`read()`] returns it.
    fn table(&mut self, schema: Schema) -> Result<()>;
    /// A row of the current table; `bytes` is its encoded length.
    ///
    /// # Errors
    /// An error of the visitor ends the reading, and [`read()`] returns it.
    fn row(&mut self, row: Row, bytes: usize) -> Result<()>;
}

/// The body of the footer.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Totals {
    tables: Vec<DumpTable>,
    rows: u64,
    row_bytes: u64,
}

impl Totals {
    fn into_info(self, meta: DumpMeta, file_bytes: u64) -> DumpInfo {
        let Self { tables, rows, row_bytes } = self;
        DumpInfo { meta, tables, rows, row_bytes, file_bytes }
    }
}
