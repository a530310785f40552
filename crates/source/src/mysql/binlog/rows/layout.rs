//! How a table's row images are read: its map and its definition together, compared where both
//! say something.

use std::sync::Arc;

use remora_engine::Value;

use crate::{
    Error, Result,
    mysql::{
        binlog::{MappedColumn, TableMap},
        bytes::Reader,
        schema::{Labels, SourceColumn, SourceTable, SourceType, TextType},
        type_code,
        values::{Cell, CellLength, Malformed},
    },
};

/// Digits that a DECIMAL can have.
const MAX_DECIMAL_DIGITS: u8 = 65;

/// A column of a row image.
#[derive(Clone, Debug)]
pub(super) struct ImageColumn {
    name: String,
    length: CellLength,
    is_document: bool,
    /// Whether it says until when the row was current.
    is_period_end: bool,
    /// Place in the engine's rows and how it is read, if it is followed.
    followed: Option<(usize, Cell)>,
}

impl ImageColumn {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn length(&self) -> CellLength {
        self.length
    }

    /// Whether it is JSON of MySQL, of which there may be differences.
    pub(super) fn is_document(&self) -> bool {
        self.is_document
    }

    /// Whether it says until when the row was current.
    pub(super) fn is_period_end(&self) -> bool {
        self.is_period_end
    }

    pub(super) fn followed_at(&self) -> Option<usize> {
        self.followed.as_ref().map(|&(place, _)| place)
    }

    /// Whether bytes of the column are to be a text and are none.
    pub(super) fn is_no_text(&self, bytes: &[u8]) -> bool {
        self.followed.as_ref().is_some_and(|(_, cell)| cell.is_no_text(bytes))
    }

    /// The value; of a column that is not followed, it is passed over and NULL.
    pub(super) fn read(&self, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
        match &self.followed {
            Some((_, cell)) => cell.read(reader),
            None => self.length.take(reader).map(|_| Value::Null),
        }
    }
}

/// The columns of the images, or which of them is another than the table's.
pub(super) fn columns(source: &SourceTable, map: &TableMap) -> Result<Vec<ImageColumn>> {
    let refused = |reason| Error::TableRefused { table: source.full_name(), reason };
    if map.columns.is_empty() {
        return Err(refused("what the binlog says of its columns is not understood".to_owned()));
    }
    if map.columns.len() != source.image_columns {
        return Err(refused(format!(
            "its rows have {} columns in the binlog and {} in its definition",
            map.columns.len(),
            source.image_columns
        )));
    }
    let mut columns = Vec::with_capacity(map.columns.len());
    for (ordinal, mapped) in map.columns.iter().enumerate() {
        let found = source.columns.iter().enumerate().find(|(_, column)| column.ordinal == ordinal);
        let name = found.map_or(mapped.name.clone(), |(_, column)| Some(column.name.clone()));
        let name = name.unwrap_or_else(|| format!("number {}", ordinal + 1));
        let length = length(mapped).ok_or_else(|| {
            refused(format!("column {name:?} has the type {}, which is not known", mapped.kind))
        })?;
        let followed = match found {
            None => None,
            Some((place, column)) => {
                check_name(column, mapped).map_err(refused)?;
                check_collation(column, mapped).map_err(refused)?;
                Some((place, cell(column, mapped, length).map_err(refused)?))
            }
        };
        columns.push(ImageColumn {
            name,
            length,
            is_document: mapped.kind == type_code::JSON,
            is_period_end: source.period_end == Some(ordinal),
            followed,
        });
    }
    check_period(&columns, source.period_end).map_err(refused)?;
    Ok(columns)
}

/// The end of a period is a moment with microseconds or the number of a transaction.
fn check_period(columns: &[ImageColumn], period_end: Option<usize>) -> Result<(), String> {
    let Some(ordinal) = period_end else { return Ok(()) };
    match columns.get(ordinal).map(ImageColumn::length) {
        Some(CellLength::Fixed(7 | 8)) => Ok(()),
        _ => {
            Err(format!("column number {} does not say until when a row was current", ordinal + 1))
        }
    }
}

fn check_name(column: &SourceColumn, mapped: &MappedColumn) -> Result<(), String> {
    match &mapped.name {
        Some(name) if name.to_lowercase() != column.name.to_lowercase() => {
            Err(format!("column {:?} has the name {name:?} in the binlog", column.name))
        }
        _ => Ok(()),
    }
}

fn check_collation(column: &SourceColumn, mapped: &MappedColumn) -> Result<(), String> {
    match (mapped.collation, column.collation) {
        (Some(mapped), Some(declared)) if column.has_collation() && mapped != declared => {
            Err(format!(
                "column {:?} has the collation {mapped} in the binlog and {declared} in its \
                 definition",
                column.name
            ))
        }
        _ => Ok(()),
    }
}

/// How many bytes a column of this type takes; `None` if the type is not known.
fn length(mapped: &MappedColumn) -> Option<CellLength> {
    let metadata = usize::from(mapped.metadata);
    let fraction = metadata.min(6).div_ceil(2);
    Some(match mapped.kind {
        type_code::TINY | type_code::YEAR => CellLength::Fixed(1),
        type_code::SHORT => CellLength::Fixed(2),
        type_code::INT24 | type_code::DATE | type_code::NEWDATE | type_code::TIME => {
            CellLength::Fixed(3)
        }
        type_code::LONG | type_code::FLOAT | type_code::TIMESTAMP => CellLength::Fixed(4),
        type_code::LONGLONG | type_code::DOUBLE | type_code::DATETIME => CellLength::Fixed(8),
        type_code::TIME2 => CellLength::Fixed(3 + fraction),
        type_code::DATETIME2 => CellLength::Fixed(5 + fraction),
        type_code::TIMESTAMP2 => CellLength::Fixed(4 + fraction),
        type_code::NEWDECIMAL => CellLength::Fixed(decimal_bytes(mapped.metadata)?),
        type_code::ENUM | type_code::SET => CellLength::Fixed(metadata),
        type_code::BIT => {
            let [bits, bytes] = mapped.metadata.to_le_bytes();
            CellLength::Fixed(usize::from(bytes) + usize::from(bits > 0))
        }
        type_code::STRING
        | type_code::VARCHAR
        | type_code::VAR_STRING
        | type_code::VARCHAR_COMPRESSED => CellLength::Prefixed(if metadata > 255 { 2 } else { 1 }),
        type_code::TINY_BLOB
        | type_code::BLOB
        | type_code::MEDIUM_BLOB
        | type_code::LONG_BLOB
        | type_code::BLOB_COMPRESSED
        | type_code::GEOMETRY
        | type_code::JSON
        | type_code::VECTOR => CellLength::Prefixed(metadata),
        _ => return None,
    })
}

fn decimal_bytes(metadata: u16) -> Option<usize> {
    let [precision, scale] = metadata.to_be_bytes();
    let bytes = |digits: u8| usize::from(digits) / 9 * 4 + usize::from(digits % 9).div_ceil(2);
    Some(bytes(precision.checked_sub(scale)?) + bytes(scale))
}

/// How the column is read, if the binlog's type is that of its definition.
fn cell(column: &SourceColumn, mapped: &MappedColumn, length: CellLength) -> Result<Cell, String> {
    let found = match &column.kind {
        SourceType::Int { bits, unsigned } => integer(*bits, *unsigned, mapped),
        SourceType::Decimal { precision, scale } => {
            let [digits, decimals] = mapped.metadata.to_be_bytes();
            // MySQL defines a column that it makes of a long number with more digits than numbers
            // have; its rows have what they say.
            let same = digits == *precision || *precision > MAX_DECIMAL_DIGITS;
            is(mapped, type_code::NEWDECIMAL)
                .filter(|_| same && decimals == *scale)
                .map(|_| Cell::Decimal(digits, decimals))
        }
        SourceType::Float => is(mapped, type_code::FLOAT).map(|_| Cell::Float),
        SourceType::Double => is(mapped, type_code::DOUBLE).map(|_| Cell::Double),
        SourceType::Bit(bits) => bit(*bits, mapped, length),
        SourceType::Year => is(mapped, type_code::YEAR).map(|_| Cell::Year),
        SourceType::ShortYear => is(mapped, type_code::YEAR).map(|_| Cell::ShortYear),
        SourceType::Date
        | SourceType::Time(_)
        | SourceType::DateTime(_)
        | SourceType::Timestamp(_) => temporal(&column.kind, mapped),
        SourceType::Char(text) | SourceType::VarChar(text) | SourceType::Text(text) => {
            self::text(&column.kind, text, mapped, length)
        }
        SourceType::Binary(_) | SourceType::VarBinary(_) | SourceType::Blob(_) => {
            bytes(&column.kind, mapped, length)
        }
        SourceType::Enum(labels) => is(mapped, type_code::ENUM)
            .map(|at| Cell::Enum(usize::from(at.metadata), self::labels(labels, at))),
        SourceType::Set(labels) => is(mapped, type_code::SET)
            .map(|at| Cell::Set(usize::from(at.metadata), self::labels(labels, at))),
        SourceType::Json => is(mapped, type_code::JSON).map(|_| Cell::Json(length)),
        SourceType::Geometry => is(mapped, type_code::GEOMETRY).map(|_| Cell::Bytes(length)),
        SourceType::Vector(_) => {
            let known = matches!(
                mapped.kind,
                type_code::VECTOR | type_code::VARCHAR | type_code::VAR_STRING
            );
            known.then_some(Cell::Bytes(length))
        }
        SourceType::Uuid => is(mapped, type_code::STRING).map(|_| Cell::Uuid(length)),
        SourceType::Inet4 => is(mapped, type_code::STRING).map(|_| Cell::Inet4(length)),
        SourceType::Inet6 => is(mapped, type_code::STRING).map(|_| Cell::Inet6(length)),
    };
    found.ok_or_else(|| {
        format!(
            "column {:?} is of the type {} ({}) in the binlog and {:?} in its definition",
            column.name, mapped.kind, mapped.metadata, column.kind
        )
    })
}

fn is(mapped: &MappedColumn, kind: u8) -> Option<&MappedColumn> {
    (mapped.kind == kind).then_some(mapped)
}

fn integer(bits: u8, unsigned: bool, mapped: &MappedColumn) -> Option<Cell> {
    let expected = match bits {
        8 => type_code::TINY,
        16 => type_code::SHORT,
        24 => type_code::INT24,
        32 => type_code::LONG,
        _ => type_code::LONGLONG,
    };
    let bytes = usize::from(bits / 8);
    let same = mapped.kind == expected && mapped.unsigned.is_none_or(|mapped| mapped == unsigned);
    same.then_some(if unsigned { Cell::Uint(bytes) } else { Cell::Int(bytes) })
}

fn bit(bits: u8, mapped: &MappedColumn, length: CellLength) -> Option<Cell> {
    let [rest, whole] = mapped.metadata.to_le_bytes();
    let same =
        mapped.kind == type_code::BIT && u16::from(whole) * 8 + u16::from(rest) == u16::from(bits);
    match length {
        CellLength::Fixed(bytes) if same && bytes <= 8 => Some(Cell::Bit(bytes)),
        _ => None,
    }
}

fn temporal(declared: &SourceType, mapped: &MappedColumn) -> Option<Cell> {
    let digits = mapped.metadata;
    Some(match (declared, mapped.kind) {
        (SourceType::Date, type_code::DATE | type_code::NEWDATE) => Cell::Date,
        (SourceType::Time(same), type_code::TIME2) if u16::from(*same) == digits => {
            Cell::Time(digits)
        }
        (SourceType::DateTime(same), type_code::DATETIME2) if u16::from(*same) == digits => {
            Cell::DateTime(digits)
        }
        (SourceType::Timestamp(same), type_code::TIMESTAMP2) if u16::from(*same) == digits => {
            Cell::Timestamp(digits)
        }
        (SourceType::Time(digits), type_code::TIME) => Cell::OldTime(*digits),
        (SourceType::DateTime(digits), type_code::DATETIME) => Cell::OldDateTime(*digits),
        (SourceType::Timestamp(digits), type_code::TIMESTAMP) => Cell::OldTimestamp(*digits),
        _ => return None,
    })
}

fn text(
    declared: &SourceType,
    text: &TextType,
    mapped: &MappedColumn,
    length: CellLength,
) -> Option<Cell> {
    Some(match (declared, mapped.kind) {
        (SourceType::Char(_), type_code::STRING) => Cell::Padded(length, text.charset),
        (SourceType::VarChar(_), type_code::VARCHAR | type_code::VAR_STRING) => {
            Cell::Text(length, text.charset)
        }
        (SourceType::Text(_), type_code::TINY_BLOB..=type_code::BLOB) => {
            Cell::Text(length, text.charset)
        }
        (SourceType::VarChar(_), type_code::VARCHAR_COMPRESSED)
        | (SourceType::Text(_), type_code::BLOB_COMPRESSED) => {
            Cell::CompressedText(length, text.charset)
        }
        _ => return None,
    })
}

fn bytes(declared: &SourceType, mapped: &MappedColumn, length: CellLength) -> Option<Cell> {
    Some(match (declared, mapped.kind) {
        (SourceType::Binary(_), type_code::STRING) => {
            Cell::Filled(length, usize::from(mapped.metadata))
        }
        (SourceType::VarBinary(_), type_code::VARCHAR | type_code::VAR_STRING)
        | (SourceType::Blob(_), type_code::TINY_BLOB..=type_code::BLOB) => Cell::Bytes(length),
        (SourceType::VarBinary(_), type_code::VARCHAR_COMPRESSED)
        | (SourceType::Blob(_), type_code::BLOB_COMPRESSED) => Cell::CompressedBytes(length),
        _ => return None,
    })
}

/// The labels as the event's map names them, which is nearer to the event than the definition.
fn labels(declared: &Labels, mapped: &MappedColumn) -> Arc<[Arc<str>]> {
    match &mapped.labels {
        Some(labels) => labels.iter().map(|label| declared.charset.text(label)).collect(),
        None => declared.labels.iter().map(|label| Arc::from(label.as_str())).collect(),
    }
}
