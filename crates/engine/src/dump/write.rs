//! Writes a dump.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    BLOCK_BYTES, DumpInfo, DumpMeta, DumpProgress, DumpTable, MAGIC, MAX_SECTION_BYTES, Tag,
    Totals, VERSION,
};
use crate::{
    Error, RequestPart, Result, Row, Schema,
    encode::{encode_row, encode_schema},
    storage::{
        durable::{io_error, sync_directory},
        rows::RowReader,
    },
};

const COMPRESSION_LEVEL: i32 = 3;

/// Writes the rows of the readers to `path`. An existing file is replaced only after the new one is durable. Calls
/// `progress` after every block of about 1 MB. Ends with [`Error::Busy`] soon after `cancel` is set. Writes to the
/// database continue meanwhile.
pub(crate) fn save(
    tables: &[(Arc<Schema>, Arc<dyn RowReader>)],
    meta: &DumpMeta,
    path: &Path,
    progress: &mut dyn FnMut(&DumpProgress<'_>),
    cancel: &AtomicBool,
) -> Result<DumpInfo> {
    let temporary = temporary_path(path)?;
    let written = write_file(tables, meta, &temporary, progress, cancel);
    let placed = written.and_then(|info| {
        place(&temporary, path).map_err(|error| io_error("write", path, &error))?;
        Ok(info)
    });
    placed.inspect_err(|_| {
        // The dump has failed already; the next one overwrites a leftover.
        let _ = fs::remove_file(&temporary);
    })
}

fn temporary_path(path: &Path) -> Result<PathBuf> {
    let Some(name) = path.file_name() else {
        let message = format!("{} names no file: give the dump a file name", path.display());
        return Err(Error::request(RequestPart::Other, message));
    };
    let mut name = name.to_owned();
    name.push(".tmp");
    Ok(path.with_file_name(name))
}

fn place(temporary: &Path, path: &Path) -> std::io::Result<()> {
    fs::rename(temporary, path)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_directory(parent.unwrap_or(Path::new(".")))
}

fn write_file(
    tables: &[(Arc<Schema>, Arc<dyn RowReader>)],
    meta: &DumpMeta,
    path: &Path,
    progress: &mut dyn FnMut(&DumpProgress<'_>),
    cancel: &AtomicBool,
) -> Result<DumpInfo> {
    let mut writer = DumpWriter::create(path)?;
    writer.section(Tag::Header, &[&to_json(meta)?])?;
    for (schema, rows) in tables {
        writer.table(schema, &**rows, progress, cancel)?;
    }
    writer.finish(meta)
}

struct DumpWriter<'p> {
    path: &'p Path,
    file: BufWriter<File>,
    crc: crc32fast::Hasher,
    file_bytes: u64,
    totals: Totals,
    compressor: zstd::bulk::Compressor<'static>,
}

impl<'p> DumpWriter<'p> {
    fn create(path: &'p Path) -> Result<Self> {
        let failed = |error| io_error("write", path, &error);
        let mut writer = Self {
            path,
            file: BufWriter::new(File::create(path).map_err(failed)?),
            crc: crc32fast::Hasher::new(),
            file_bytes: 0,
            totals: Totals::default(),
            compressor: zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map_err(failed)?,
        };
        writer.bytes(MAGIC)?;
        writer.bytes(&VERSION.to_le_bytes())?;
        Ok(writer)
    }

    fn table(
        &mut self,
        schema: &Schema,
        reader: &dyn RowReader,
        progress: &mut dyn FnMut(&DumpProgress<'_>),
        cancel: &AtomicBool,
    ) -> Result<()> {
        self.section(Tag::Table, &[&encode_schema(schema)?])?;
        let before = self.totals.rows;
        let mut block = Block::default();
        reader.scan(&[], &mut |_, row| {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Busy("the dump was cancelled".to_owned()));
            }
            block.push(schema, &row)?;
            if block.bytes.len() >= BLOCK_BYTES {
                self.block(&mut block)?;
                let (rows, file_bytes) = (self.totals.rows, self.file_bytes);
                progress(&DumpProgress { table: &schema.name, rows, file_bytes });
            }
            Ok(true)
        })?;
        self.block(&mut block)?;
        let rows = self.totals.rows - before;
        self.section(Tag::TableEnd, &[&rows.to_le_bytes()])?;
        self.totals.tables.push(DumpTable { name: schema.name.clone(), rows });
        let (rows, file_bytes) = (self.totals.rows, self.file_bytes);
        progress(&DumpProgress { table: &schema.name, rows, file_bytes });
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<()> {
        if block.count == 0 {
            return Ok(());
        }
        let raw_length = block.bytes.len() as u32;
        let compressed = self.compressor.compress(&block.bytes);
        let compressed = compressed.map_err(|error| io_error("compress", self.path, &error))?;
        let frame = [block.count.to_le_bytes(), raw_length.to_le_bytes()].concat();
        self.section(Tag::Rows, &[&frame, &compressed])?;
        self.totals.rows += u64::from(block.count);
        self.totals.row_bytes += u64::from(raw_length);
        block.bytes.clear();
        block.count = 0;
        Ok(())
    }

    fn section(&mut self, tag: Tag, parts: &[&[u8]]) -> Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let length =
            u32::try_from(length).ok().filter(|&length| length as usize <= MAX_SECTION_BYTES);
        let Some(length) = length else {
            let message = format!("a section of the dump is above {MAX_SECTION_BYTES} bytes");
            return Err(Error::request(RequestPart::Other, message));
        };
        let mut crc = crc32fast::Hasher::new();
        let frame = [&[tag as u8][..], &length.to_le_bytes()];
        for part in frame.iter().chain(parts) {
            crc.update(part);
            self.bytes(part)?;
        }
        self.bytes(&crc.finalize().to_le_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.crc.update(bytes);
        self.file_bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|error| io_error("write", self.path, &error))
    }

    fn finish(mut self, meta: &DumpMeta) -> Result<DumpInfo> {
        let footer_offset = self.file_bytes;
        let footer = to_json(&self.totals)?;
        self.section(Tag::Footer, &[&footer])?;
        self.bytes(&footer_offset.to_le_bytes())?;
        let crc = self.crc.clone().finalize();
        self.bytes(&crc.to_le_bytes())?;
        self.bytes(MAGIC)?;
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        synced.map_err(|error| io_error("write", self.path, &error))?;
        Ok(self.totals.into_info(meta.clone(), self.file_bytes))
    }
}

/// Rows that are compressed together.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    count: u32,
}

impl Block {
    fn push(&mut self, schema: &Schema, row: &Row) -> Result<()> {
        let row = encode_row(schema, row)?;
        // A block has less than BLOCK_BYTES before its last row.
        if row.len() > MAX_SECTION_BYTES - 2 * BLOCK_BYTES {
            let message = format!("a row of table {:?} is too large for a dump", schema.name);
            return Err(Error::request(RequestPart::Row, message));
        }
        self.bytes.extend_from_slice(&(row.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&row);
        self.count += 1;
        Ok(())
    }
}

fn to_json(body: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(body).map_err(|error| Error::Corrupt(error.to_string()))
}
