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
//! Integers are little endian, checksums CRC-32. Rows stand in key order, in the form of the row
//! store. The file gets its name by a rename after its bytes are durable, so a dump that was
//! interrupted leaves no file of that name. Readers trust nothing: every length is checked before
//! memory is taken, and memory grows with the bytes that are there, not with what a length claims.

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

/// Rows are collected up to this many bytes before they are compressed.
const BLOCK_BYTES: usize = 1 << 20;
/// Most bytes of a section and of the rows that one section holds: more than any row may have.
const MAX_SECTION_BYTES: usize = 256 << 20;

/// The sections by their tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Header = b'H' as isize,
    Table = b'T' as isize,
    Rows = b'R' as isize,
    TableEnd = b'E' as isize,
    Footer = b'F' as isize,
}

/// What a dump was taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpMeta {
    /// The position of the snapshot in the change log.
    pub position: u64,
    /// The positions of the sources at that position, by name.
    pub sources: BTreeMap<String, String>,
    /// When it was taken, in microseconds since 1970.
    pub created_micros: i64,
}

/// What a dump holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpInfo {
    /// What it was taken from.
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
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
}

/// How far a dump is.
#[derive(Clone, Debug)]
pub struct DumpProgress<'a> {
    /// The table that is being written.
    pub table: &'a str,
    /// Rows written, of all tables.
    pub rows: u64,
    /// Bytes written.
    pub file_bytes: u64,
}

/// Takes what a dump holds.
pub trait DumpVisitor {
    /// A table begins; its rows follow.
    ///
    /// # Errors
    /// Whatever the visitor refuses: it ends the reading, and [`read()`] returns it.
    fn table(&mut self, schema: Schema) -> Result<()>;
    /// A row of the table that began last; `bytes` are those of its encoded form.
    ///
    /// # Errors
    /// Whatever the visitor refuses: it ends the reading, and [`read()`] returns it.
    fn row(&mut self, row: Row, bytes: usize) -> Result<()>;
}

/// The footer's body.
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
