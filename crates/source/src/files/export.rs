//! A table into a file: one record for each row, in key order, from one snapshot.
//!
//! What is written is read back by an import under the same schema as the same rows. In JSON an
//! integer, a float and a decimal of up to 15 digits is a number, a longer decimal a string, bytes
//! are hexadecimal digits in a string, dates and times strings, JSON stands as it is, and NULL is
//! left out. (A JSON column that holds the document `null` reads back as NULL.) CSV and TSV are
//! described at their reader; NULL is `\N` in text and bytes columns and empty in others.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use remora_engine::{ColumnType, Database, Position, Row, Schema, Value};

use super::{format::Format, literal::write_literal, row::is_null_like};
use crate::{Error, Result};

/// Digits that every reader of JSON numbers keeps.
const SAFE_DIGITS: usize = 15;

/// How the bytes of a file are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// Settings of an export.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// JSON Lines, CSV or TSV.
    pub format: Format,
    /// How the file is packed.
    pub compression: Compression,
    /// Set it from any thread to end the export.
    pub cancel: Arc<AtomicBool>,
}

/// What an export did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportReport {
    /// Rows written.
    pub rows: u64,
    /// The position of the snapshot that was written.
    pub position: Position,
}

/// Writes all rows of a table; `progress` is called with their number every so often.
///
/// # Errors
/// The table cannot be read, the file not be written, the format is `Cirrus`, a value has no text
/// form, or the export was cancelled.
pub fn export_table(
    database: &Database,
    table: &str,
    out: impl Write,
    options: &ExportOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<ExportReport> {
    let schema = database.schema(table)?;
    let mut writer = RowWriter::new(schema, options.format, options.compression, out)?;
    let mut failure = None;
    let mut rows = 0;
    let scanned = database.scan(table, &mut |row| {
        let written = match options.cancel.load(Ordering::Relaxed) {
            true => Err(Error::Cancelled),
            false => writer.write(&row),
        };
        rows += 1;
        if rows % 1024 == 0 {
            progress(rows);
        }
        written.map_err(|error| {
            let stop = remora_engine::Error::Io(error.to_string());
            failure = Some(error);
            stop
        })
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let position = scanned?;
    writer.finish()?;
    progress(rows);
    Ok(ExportReport { rows, position })
}

/// Writes rows of one schema to a file.
pub struct RowWriter<W: Write> {
    schema: Arc<Schema>,
    format: Format,
    out: Packed<W>,
    record: Vec<u8>,
    field: Vec<u8>,
}

enum Packed<W: Write> {
    None(io::BufWriter<W>),
    Gzip(flate2::write::GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> RowWriter<W> {
    /// Writes the header, where the format has one.
    ///
    /// # Errors
    /// The file cannot be written, or the format is `Cirrus`.
    pub fn new(
        schema: Arc<Schema>,
        format: Format,
        compression: Compression,
        out: W,
    ) -> Result<Self> {
        let out = Packed::new(compression, out).map_err(write_error)?;
        let mut writer = Self { schema, format, out, record: Vec::new(), field: Vec::new() };
        match writer.separator()? {
            None => {}
            Some(separator) => {
                for (position, column) in writer.schema.columns.iter().enumerate() {
                    let name = column.name.as_bytes();
                    push_field(&mut writer.record, position, name, separator);
                }
                writer.end_record()?;
            }
        }
        Ok(writer)
    }

    /// Writes a row.
    ///
    /// # Errors
    /// The file cannot be written, or a value has no text form.
    pub fn write(&mut self, row: &Row) -> Result<()> {
        match self.separator()? {
            Some(separator) => self.write_fields(row, separator)?,
            None => self.write_object(row)?,
        }
        self.end_record()
    }

    /// Writes what is held back and ends the packing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<W> {
        self.out.finish().map_err(write_error)
    }

    /// What stands between fields; `None` for JSON Lines.
    fn separator(&self) -> Result<Option<u8>> {
        match self.format {
            Format::JsonLines => Ok(None),
            Format::Csv => Ok(Some(b',')),
            Format::Tsv => Ok(Some(b'\t')),
            Format::Cirrus => {
                Err(Error::Export("tables are exported as jsonl, csv or tsv, not cirrus".into()))
            }
        }
    }

    fn write_fields(&mut self, row: &Row, separator: u8) -> Result<()> {
        for (position, (column, value)) in self.schema.columns.iter().zip(row).enumerate() {
            self.field.clear();
            match (column.kind, value) {
                (ColumnType::Text | ColumnType::Bytes, Value::Null) => {
                    self.field.extend_from_slice(b"\\N");
                }
                (_, Value::Text(text)) if is_null_like(text) => self.field.push(b'\\'),
                _ => {}
            }
            push_literal(&column.name, value, &mut self.field)?;
            push_field(&mut self.record, position, &self.field, separator);
        }
        Ok(())
    }

    fn write_object(&mut self, row: &Row) -> Result<()> {
        self.record.push(b'{');
        for (column, value) in self.schema.columns.iter().zip(row) {
            if *value == Value::Null {
                continue;
            }
            if self.record.len() > 1 {
                self.record.push(b',');
            }
            push_json_string(&column.name, &mut self.record)?;
            self.record.push(b':');
            self.field.clear();
            push_literal(&column.name, value, &mut self.field)?;
            match value {
                _ if is_json(value) => self.record.extend_from_slice(&self.field),
                Value::Text(text) => push_json_string(text, &mut self.record)?,
                _ => {
                    self.record.push(b'"');
                    self.record.extend_from_slice(&self.field);
                    self.record.push(b'"');
                }
            }
        }
        self.record.push(b'}');
        Ok(())
    }

    fn end_record(&mut self) -> Result<()> {
        self.record.push(b'\n');
        let written = self.out.write_all(&self.record);
        self.record.clear();
        written.map_err(write_error)
    }
}

impl<W: Write> Packed<W> {
    fn new(compression: Compression, out: W) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(io::BufWriter::with_capacity(256 << 10, out)),
            Compression::Gzip => {
                Self::Gzip(flate2::write::GzEncoder::new(out, flate2::Compression::default()))
            }
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(out, 3)?),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::None(out) => out.write_all(bytes),
            Self::Gzip(out) => out.write_all(bytes),
            Self::Zstd(out) => out.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<W> {
        let mut out = match self {
            Self::None(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?,
            Self::Gzip(out) => out.finish()?,
            Self::Zstd(out) => out.finish()?,
        };
        out.flush()?;
        Ok(out)
    }
}

fn write_error(error: io::Error) -> Error {
    Error::io("the exported file", error)
}

/// Whether the text form of a value stands in JSON as it is.
fn is_json(value: &Value) -> bool {
    match value {
        Value::Int(_) | Value::Uint(_) | Value::Float(_) | Value::Bool(_) | Value::Json(_) => true,
        Value::Decimal(decimal) => {
            decimal.as_str().bytes().filter(u8::is_ascii_digit).count() <= SAFE_DIGITS
        }
        _ => false,
    }
}

fn push_literal(column: &str, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    if let Value::Json(text) = value
        && text.contains(['\n', '\r'])
    {
        return push_json_line(text, out);
    }
    match write_literal(value, out) {
        true => Ok(()),
        false => Err(Error::Export(format!("column \"{column}\": {value:?} has no text form"))),
    }
}

/// JSON with its line breaks, which can only stand between tokens, turned into spaces.
fn push_json_line(text: &str, out: &mut Vec<u8>) -> Result<()> {
    out.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    Ok(())
}

fn push_json_string(text: &str, out: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(out, text).map_err(|error| Error::Export(error.to_string()))
}

fn push_field(record: &mut Vec<u8>, position: usize, field: &[u8], separator: u8) {
    if position > 0 {
        record.push(separator);
    }
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\n' | b'\r') && *byte != separator;
    // A record of one empty field would be a blank line, which readers pass over.
    let may_be_blank = position == 0 && field.is_empty();
    if !may_be_blank && field.iter().all(is_plain) {
        record.extend_from_slice(field);
        return;
    }
    record.push(b'"');
    for &byte in field {
        record.push(byte);
        if byte == b'"' {
            record.push(b'"');
        }
    }
    record.push(b'"');
}
