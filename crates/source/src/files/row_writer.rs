//! Writes rows as records of a file.
//!
//! An import under the same schema reads them back as the same rows. In JSON, integers, floats and decimals of up to 15
//! digits are numbers, longer decimals are strings, bytes are strings of hexadecimal digits, dates and times are
//! strings in ISO form, JSON is embedded as it is, and NULL is omitted. (The JSON document `null` reads back as NULL.)
//! In extended JSON dates are `$date`, decimals and integers beyond 63 bits `$numberDecimal`, and bytes `$binary`. CSV
//! and TSV are described at their reader; NULL is `\N` in text and bytes columns and empty in others.

use std::{
    io::{self, Write},
    sync::Arc,
};

use base64::Engine as _;
use remora_engine::{ColumnType, Row, Schema, Value};

use super::{
    format::Format,
    literal::write_literal,
    pretty::push_pretty,
    row::{is_not_given, is_null_like},
};
use crate::{Error, Result};

/// The digits of a number that every JSON reader preserves.
const SAFE_DIGITS: usize = 15;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// Gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// Writes rows of one schema to a file.
pub struct RowWriter<W: Write> {
    schema: Arc<Schema>,
    columns: Vec<usize>,
    format: Format,
    pretty: bool,
    /// Whether objects have members for NULLs, and none for what a row has no value for.
    is_for_sql: bool,
    /// Whether a record or the header was written.
    has_begun: bool,
    out: PackedFile<W>,
    record: Vec<u8>,
    field: Vec<u8>,
}

/// A file that is compressed as it is written.
pub enum PackedFile<W: Write> {
    /// As it is.
    None(io::BufWriter<W>),
    /// Gzip.
    Gzip(flate2::write::GzEncoder<W>),
    /// Zstandard.
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

/// The positions of all columns but the hidden ones: of functional keys, and of the key of a table without one.
pub(super) fn visible_columns(schema: &Schema) -> Vec<usize> {
    (0..schema.columns.len()).filter(|place| !schema.is_hidden(*place)).collect()
}

impl<W: Write> RowWriter<W> {
    /// Writes all visible columns, with a record on one line.
    ///
    /// # Errors
    /// The compressor cannot start, or the format is `Cirrus`.
    pub fn new(
        schema: Arc<Schema>,
        format: Format,
        compression: Compression,
        out: W,
    ) -> Result<Self> {
        if format == Format::Cirrus {
            let message = "tables are exported as json, jsonl, mongo, csv or tsv, not cirrus";
            return Err(Error::Export(message.into()));
        }
        let out = PackedFile::new(compression, out).map_err(write_error)?;
        let columns = visible_columns(&schema);
        let (record, field) = (Vec::new(), Vec::new());
        Ok(Self {
            schema,
            columns,
            format,
            pretty: false,
            is_for_sql: false,
            has_begun: false,
            out,
            record,
            field,
        })
    }

    /// For rows of an import into a table that SQL defined: NULL is written as `null`, and what a row has no value for
    /// ([`is_not_given`]) is left out.
    #[must_use]
    pub fn for_sql(mut self) -> Self {
        self.is_for_sql = true;
        self
    }

    /// Only the columns at these positions, in this order.
    #[must_use]
    pub fn columns(mut self, columns: Vec<usize>) -> Self {
        self.columns = columns;
        self
    }

    /// Indented JSON, if `pretty`.
    ///
    /// # Errors
    /// The format has one record per line.
    pub fn pretty(mut self, pretty: bool) -> Result<Self> {
        if pretty && !matches!(self.format, Format::Json | Format::Mongo) {
            let message = "only json and mongo are written over several lines (pretty): name one of them as the format";
            return Err(Error::Export(message.into()));
        }
        self.pretty = pretty;
        Ok(self)
    }

    /// Writes a row.
    ///
    /// # Errors
    /// The file cannot be written, or a value has no text form.
    pub fn write(&mut self, row: &Row) -> Result<()> {
        self.begin_record()?;
        match self.separator() {
            Some(separator) => self.write_fields(row, separator)?,
            None => self.write_object(row)?,
        }
        self.end_record()
    }

    /// Writes a JSON document as a row.
    ///
    /// # Errors
    /// The file cannot be written, or the format has no documents.
    pub fn write_document(&mut self, text: &str) -> Result<()> {
        if self.separator().is_some() {
            let message = "documents are exported as json, jsonl or mongo; CSV and TSV have rows: export the table";
            return Err(Error::Export(message.into()));
        }
        self.begin_record()?;
        push_json_line(text, &mut self.record);
        self.end_record()
    }

    /// Writes buffered bytes and finishes the compression.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<W> {
        let end: &[u8] = match (self.format, self.has_begun) {
            (Format::Json, true) => b"\n]\n",
            (Format::Json, false) => b"[]\n",
            (_, false) => {
                self.begin_record()?;
                b""
            }
            _ => b"",
        };
        self.record.extend_from_slice(end);
        self.out.write_all(&self.record).map_err(write_error)?;
        self.out.finish().map_err(write_error)
    }

    /// The field separator; `None` for JSON.
    fn separator(&self) -> Option<u8> {
        match self.format {
            Format::Csv => Some(b','),
            Format::Tsv => Some(b'\t'),
            Format::JsonLines | Format::Json | Format::Mongo | Format::Cirrus => None,
        }
    }

    /// Writes what precedes a record: the header, the array's bracket, or a comma.
    fn begin_record(&mut self) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        match (self.separator(), self.format) {
            (Some(separator), _) if is_first => {
                for (position, &place) in self.columns.iter().enumerate() {
                    let Some(column) = self.schema.columns.get(place) else { continue };
                    push_field(&mut self.record, position, column.name.as_bytes(), separator);
                }
                self.record.push(b'\n');
            }
            (None, Format::Json) => {
                let between: &[u8] = if is_first { b"[\n" } else { b",\n" };
                self.out.write_all(between).map_err(write_error)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn write_fields(&mut self, row: &Row, separator: u8) -> Result<()> {
        for (position, &place) in self.columns.iter().enumerate() {
            let (Some(column), Some(value)) = (self.schema.columns.get(place), row.get(place))
            else {
                continue;
            };
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
        let mut is_first = true;
        for &place in &self.columns {
            let (Some(column), Some(value)) = (self.schema.columns.get(place), row.get(place))
            else {
                continue;
            };
            let is_left_out = match self.is_for_sql {
                true => is_not_given(value),
                false => *value == Value::Null,
            };
            if is_left_out {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                self.record.push(b',');
            }
            push_json_string(&column.name, &mut self.record)?;
            self.record.push(b':');
            if *value == Value::Null {
                self.record.extend_from_slice(b"null");
                continue;
            }
            self.field.clear();
            push_literal(&column.name, value, &mut self.field)?;
            match (value, self.format) {
                (_, Format::Mongo) if push_extended(value, &self.field, &mut self.record) => {}
                _ if is_json(value) => self.record.extend_from_slice(&self.field),
                (Value::Text(text), _) => push_json_string(text, &mut self.record)?,
                _ => {
                    iso(value, &mut self.field);
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
        if self.pretty {
            self.field.clear();
            std::mem::swap(&mut self.record, &mut self.field);
            push_pretty(&self.field, &mut self.record);
        }
        if self.format != Format::Json {
            self.record.push(b'\n');
        }
        let written = self.out.write_all(&self.record);
        self.record.clear();
        written.map_err(write_error)
    }
}

impl<W: Write> PackedFile<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// The compressor cannot start.
    pub fn new(compression: Compression, out: W) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(io::BufWriter::with_capacity(256 << 10, out)),
            Compression::Gzip => {
                Self::Gzip(flate2::write::GzEncoder::new(out, flate2::Compression::default()))
            }
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(out, 3)?),
        })
    }

    /// Writes bytes of it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::None(out) => out.write_all(bytes),
            Self::Gzip(out) => out.write_all(bytes),
            Self::Zstd(out) => out.write_all(bytes),
        }
    }

    /// Writes what is buffered, and the end of the compressed form.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> io::Result<W> {
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

/// Whether the text form of a value is valid JSON as it is.
fn is_json(value: &Value) -> bool {
    match value {
        Value::Int(_) | Value::Uint(_) | Value::Float(_) | Value::Bool(_) | Value::Json(_) => true,
        Value::Decimal(decimal) => {
            decimal.as_str().bytes().filter(u8::is_ascii_digit).count() <= SAFE_DIGITS
        }
        _ => false,
    }
}

/// Puts the `T` of ISO 8601 before the time of a date and time.
fn iso(value: &Value, text: &mut [u8]) {
    if matches!(value, Value::DateTime(_) | Value::Timestamp(_))
        && let Some(space) = text.iter_mut().find(|byte| **byte == b' ')
    {
        *space = b'T';
    }
}

/// Writes a value that has a form of its own in extended JSON; false for other values.
fn push_extended(value: &Value, literal: &[u8], out: &mut Vec<u8>) -> bool {
    let (name, text) = match value {
        Value::Timestamp(_) => ("$date", literal.to_vec()),
        Value::Decimal(_) => ("$numberDecimal", literal.to_vec()),
        Value::Uint(number) if i64::try_from(*number).is_err() => {
            ("$numberDecimal", literal.to_vec())
        }
        Value::Bytes(bytes) => {
            let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
            out.extend_from_slice(br#"{"$binary":{"base64":""#);
            out.extend_from_slice(base64.as_bytes());
            out.extend_from_slice(br#"","subType":"00"}}"#);
            return true;
        }
        _ => return false,
    };
    let mut text = text;
    iso(value, &mut text);
    for part in [b"{\"", name.as_bytes(), b"\":\"", &text, b"\"}"] {
        out.extend_from_slice(part);
    }
    true
}

fn push_literal(column: &str, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    if let Value::Json(text) = value
        && text.contains(['\n', '\r'])
    {
        push_json_line(text, out);
        return Ok(());
    }
    match write_literal(value, out) {
        true => Ok(()),
        false => Err(Error::Export(format!("column \"{column}\": {value:?} has no text form"))),
    }
}

/// Appends JSON with its line breaks, which are only between tokens, replaced by spaces.
fn push_json_line(text: &str, out: &mut Vec<u8>) {
    out.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
}

fn push_json_string(text: &str, out: &mut Vec<u8>) -> Result<()> {
    serde_json::to_writer(out, text).map_err(|error| Error::Export(error.to_string()))
}

fn push_field(record: &mut Vec<u8>, position: usize, field: &[u8], separator: u8) {
    if position > 0 {
        record.push(separator);
    }
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\n' | b'\r') && *byte != separator;
    // A record with a single empty field would be a blank line, which readers skip.
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
