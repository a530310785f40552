//! The layout of a table's row images, from its table map and its definition. Where both describe a column, they must
//! agree.

use std::sync::Arc;

use remora_engine::Value;
use remora_mysql::FieldType;

use crate::{
    Error, Result,
    mysql::{
        binlog::{MappedColumn, TableMap},
        bytes::Reader,
        schema::{Labels, SourceColumn, SourceTable, SourceType, TextType},
        values::{Cell, CellLength, Malformed},
    },
};

/// The most digits of a DECIMAL.
const MAX_DECIMAL_DIGITS: u8 = 65;

/// A column of a row image.
#[derive(Clone, Debug)]
pub(super) struct ImageColumn {
    name: String,
    length: CellLength,
    is_document: bool,
    /// Whether it is the end of the row's period (system versioning).
    is_period_end: bool,
    /// Its position in the engine's rows, and its reader, if the column is followed.
    followed: Option<(usize, Cell)>,
}

impl ImageColumn {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn length(&self) -> CellLength {
        self.length
    }

    /// Whether it is a JSON column of MySQL, which may come as differences.
    pub(super) fn is_document(&self) -> bool {
        self.is_document
    }

    /// Whether it is the end of the row's period (system versioning).
    pub(super) fn is_period_end(&self) -> bool {
        self.is_period_end
    }

    pub(super) fn followed_at(&self) -> Option<usize> {
        self.followed.as_ref().map(|&(place, _)| place)
    }

    /// Whether the column is text and these bytes are invalid in its character set.
    pub(super) fn is_no_text(&self, bytes: &[u8]) -> bool {
        self.followed.as_ref().is_some_and(|(_, cell)| cell.is_no_text(bytes))
    }

    /// Reads the value. A column that is not followed is skipped and gives NULL.
    pub(super) fn read(&self, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
        match &self.followed {
            Some((_, cell)) => cell.read(reader),
            None => self.length.take(reader).map(|_| Value::Null),
        }
    }
}

/// The columns of the images, or an error that names the column that does not match the definition.
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
            refused(format!(
                "column {name:?} has the type {}, which is not known",
                mapped.kind.code()
            ))
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
            is_document: mapped.kind == FieldType::Json,
            is_period_end: source.period_end == Some(ordinal),
            followed,
        });
    }
    check_period(&columns, source.period_end).map_err(refused)?;
    Ok(columns)
}

/// Checks that the end of a period is a timestamp with microseconds or a transaction number.
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

/// The length of values of a column; `None` if its type is unknown.
fn length(mapped: &MappedColumn) -> Option<CellLength> {
    let metadata = usize::from(mapped.metadata);
    let fraction = metadata.min(6).div_ceil(2);
    Some(match mapped.kind {
        FieldType::Tiny | FieldType::Year => CellLength::Fixed(1),
        FieldType::Short => CellLength::Fixed(2),
        FieldType::Int24 | FieldType::Date | FieldType::NewDate | FieldType::Time => {
            CellLength::Fixed(3)
        }
        FieldType::Long | FieldType::Float | FieldType::Timestamp => CellLength::Fixed(4),
        FieldType::LongLong | FieldType::Double | FieldType::DateTime => CellLength::Fixed(8),
        FieldType::Time2 => CellLength::Fixed(3 + fraction),
        FieldType::DateTime2 => CellLength::Fixed(5 + fraction),
        FieldType::Timestamp2 => CellLength::Fixed(4 + fraction),
        FieldType::NewDecimal => CellLength::Fixed(decimal_bytes(mapped.metadata)?),
        FieldType::Enum | FieldType::Set => CellLength::Fixed(metadata),
        FieldType::Bit => {
            let [bits, bytes] = mapped.metadata.to_le_bytes();
            CellLength::Fixed(usize::from(bytes) + usize::from(bits > 0))
        }
        FieldType::String
        | FieldType::VarChar
        | FieldType::VarString
        | FieldType::VarCharCompressed => CellLength::Prefixed(if metadata > 255 { 2 } else { 1 }),
        FieldType::TinyBlob
        | FieldType::Blob
        | FieldType::MediumBlob
        | FieldType::LongBlob
        | FieldType::BlobCompressed
        | FieldType::Geometry
        | FieldType::Json
        | FieldType::Vector => CellLength::Prefixed(metadata),
        _ => return None,
    })
}

fn decimal_bytes(metadata: u16) -> Option<usize> {
    let [precision, scale] = metadata.to_be_bytes();
    let bytes = |digits: u8| usize::from(digits) / 9 * 4 + usize::from(digits % 9).div_ceil(2);
    Some(bytes(precision.checked_sub(scale)?) + bytes(scale))
}

/// The reader of a column, if the binlog's type matches the definition.
fn cell(column: &SourceColumn, mapped: &MappedColumn, length: CellLength) -> Result<Cell, String> {
    let found = match &column.kind {
        SourceType::Int { bits, unsigned } => integer(*bits, *unsigned, mapped),
        SourceType::Decimal { precision, scale } => {
            let [digits, decimals] = mapped.metadata.to_be_bytes();
            // In CREATE … SELECT of a long number MySQL declares more digits than a DECIMAL can have; the rows have the
            // valid number.
            let same = digits == *precision || *precision > MAX_DECIMAL_DIGITS;
            is(mapped, FieldType::NewDecimal)
                .filter(|_| same && decimals == *scale)
                .map(|_| Cell::Decimal(digits, decimals))
        }
        SourceType::Float => is(mapped, FieldType::Float).map(|_| Cell::Float),
        SourceType::Double => is(mapped, FieldType::Double).map(|_| Cell::Double),
        SourceType::Bit(bits) => bit(*bits, mapped, length),
        SourceType::Year => is(mapped, FieldType::Year).map(|_| Cell::Year),
        SourceType::ShortYear => is(mapped, FieldType::Year).map(|_| Cell::ShortYear),
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
        SourceType::Enum(labels) => is(mapped, FieldType::Enum)
            .map(|at| Cell::Enum(usize::from(at.metadata), self::labels(labels, at))),
        SourceType::Set(labels) => is(mapped, FieldType::Set)
            .map(|at| Cell::Set(usize::from(at.metadata), self::labels(labels, at))),
        SourceType::Json => is(mapped, FieldType::Json).map(|_| Cell::Json(length)),
        SourceType::Geometry => is(mapped, FieldType::Geometry).map(|_| Cell::Bytes(length)),
        SourceType::Vector(_) => {
            let known = matches!(
                mapped.kind,
                FieldType::Vector | FieldType::VarChar | FieldType::VarString
            );
            known.then_some(Cell::Bytes(length))
        }
        SourceType::Uuid => is(mapped, FieldType::String).map(|_| Cell::Uuid(length)),
        SourceType::Inet4 => is(mapped, FieldType::String).map(|_| Cell::Inet4(length)),
        SourceType::Inet6 => is(mapped, FieldType::String).map(|_| Cell::Inet6(length)),
    };
    found.ok_or_else(|| {
        format!(
            "column {:?} is of the type {} ({}) in the binlog and {:?} in its definition",
            column.name,
            mapped.kind.code(),
            mapped.metadata,
            column.kind
        )
    })
}

fn is(mapped: &MappedColumn, kind: FieldType) -> Option<&MappedColumn> {
    (mapped.kind == kind).then_some(mapped)
}

fn integer(bits: u8, unsigned: bool, mapped: &MappedColumn) -> Option<Cell> {
    let expected = match bits {
        8 => FieldType::Tiny,
        16 => FieldType::Short,
        24 => FieldType::Int24,
        32 => FieldType::Long,
        _ => FieldType::LongLong,
    };
    let bytes = usize::from(bits / 8);
    let same = mapped.kind == expected && mapped.unsigned.is_none_or(|mapped| mapped == unsigned);
    same.then_some(if unsigned { Cell::Uint(bytes) } else { Cell::Int(bytes) })
}

fn bit(bits: u8, mapped: &MappedColumn, length: CellLength) -> Option<Cell> {
    let [rest, whole] = mapped.metadata.to_le_bytes();
    let same =
        mapped.kind == FieldType::Bit && u16::from(whole) * 8 + u16::from(rest) == u16::from(bits);
    match length {
        CellLength::Fixed(bytes) if same && bytes <= 8 => Some(Cell::Bit(bytes)),
        _ => None,
    }
}

fn temporal(declared: &SourceType, mapped: &MappedColumn) -> Option<Cell> {
    let digits = mapped.metadata;
    Some(match (declared, mapped.kind) {
        (SourceType::Date, FieldType::Date | FieldType::NewDate) => Cell::Date,
        (SourceType::Time(same), FieldType::Time2) if u16::from(*same) == digits => {
            Cell::Time(digits)
        }
        (SourceType::DateTime(same), FieldType::DateTime2) if u16::from(*same) == digits => {
            Cell::DateTime(digits)
        }
        (SourceType::Timestamp(same), FieldType::Timestamp2) if u16::from(*same) == digits => {
            Cell::Timestamp(digits)
        }
        (SourceType::Time(digits), FieldType::Time) => Cell::OldTime(*digits),
        (SourceType::DateTime(digits), FieldType::DateTime) => Cell::OldDateTime(*digits),
        (SourceType::Timestamp(digits), FieldType::Timestamp) => Cell::OldTimestamp(*digits),
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
        (SourceType::Char(_), FieldType::String) => Cell::Padded(length, text.charset),
        (SourceType::VarChar(_), FieldType::VarChar | FieldType::VarString) => {
            Cell::Text(length, text.charset)
        }
        (
            SourceType::Text(_),
            FieldType::TinyBlob | FieldType::MediumBlob | FieldType::LongBlob | FieldType::Blob,
        ) => Cell::Text(length, text.charset),
        (SourceType::VarChar(_), FieldType::VarCharCompressed)
        | (SourceType::Text(_), FieldType::BlobCompressed) => {
            Cell::CompressedText(length, text.charset)
        }
        _ => return None,
    })
}

fn bytes(declared: &SourceType, mapped: &MappedColumn, length: CellLength) -> Option<Cell> {
    Some(match (declared, mapped.kind) {
        (SourceType::Binary(_), FieldType::String) => {
            Cell::Filled(length, usize::from(mapped.metadata))
        }
        (SourceType::VarBinary(_), FieldType::VarChar | FieldType::VarString)
        | (
            SourceType::Blob(_),
            FieldType::TinyBlob | FieldType::MediumBlob | FieldType::LongBlob | FieldType::Blob,
        ) => Cell::Bytes(length),
        (SourceType::VarBinary(_), FieldType::VarCharCompressed)
        | (SourceType::Blob(_), FieldType::BlobCompressed) => Cell::CompressedBytes(length),
        _ => return None,
    })
}

/// The labels from the event's map, which is more current than the definition.
fn labels(declared: &Labels, mapped: &MappedColumn) -> Arc<[Arc<str>]> {
    match &mapped.labels {
        Some(labels) => labels.iter().map(|label| declared.charset.text(label)).collect(),
        None => declared.labels.iter().map(|label| Arc::from(label.as_str())).collect(),
    }
}
