//! The source of a column's values: segments, keys or the row store.

use smallvec::SmallVec;

use crate::{ColumnType, Error, RequestPart, Result, Schema};

/// The source of a requested column.
#[derive(Clone, Copy)]
pub(super) enum ColumnSource {
    /// In the segments' columns.
    Column { position: usize, id: u32, kind: ColumnType },
    /// In the keys, as the part with this index.
    Key { position: usize, part: usize, kind: ColumnType },
    /// Only in the row store.
    Row { position: usize, kind: ColumnType },
}

impl ColumnSource {
    /// Whether it must be read from the row store.
    pub fn is_row(&self) -> bool {
        matches!(self, Self::Row { .. })
    }

    /// The column's position in the schema.
    pub fn position(&self) -> usize {
        match *self {
            Self::Column { position, .. }
            | Self::Key { position, .. }
            | Self::Row { position, .. } => position,
        }
    }

    /// The column's type.
    pub fn kind(&self) -> ColumnType {
        match *self {
            Self::Column { kind, .. } | Self::Key { kind, .. } | Self::Row { kind, .. } => kind,
        }
    }
}

/// A list of sources; short ones need no allocation.
pub(super) type Sources = SmallVec<[ColumnSource; 8]>;

/// A test for which columns of a row to decode: the requested ones, and all from the 65th on, so that the test is
/// a single bit operation.
pub(super) fn wanted(sources: &[ColumnSource]) -> impl Fn(usize) -> bool + use<> {
    let bit = |position: usize| 1u64.checked_shl(position as u32).unwrap_or(0);
    let asked = sources.iter().fold(0, |asked, source| asked | bit(source.position()));
    move |position| position >= 64 || asked & bit(position) != 0
}

/// The source of each of these columns; an error if a column does not exist.
pub(super) fn sources(schema: &Schema, columns: &[usize]) -> Result<Sources> {
    columns.iter().map(|&position| source(schema, position)).collect()
}

fn source(schema: &Schema, position: usize) -> Result<ColumnSource> {
    let column = schema.columns.get(position).ok_or_else(|| {
        let (name, count) = (&schema.name, schema.columns.len());
        let message = format!("table {name:?} has {count} columns: there is no column {position}");
        Error::request(RequestPart::Fields, message)
    })?;
    let kind = column.kind;
    let part = schema.primary_key.iter().position(|&part| part == position);
    Ok(match part {
        _ if column.indexed => ColumnSource::Column { position, id: column.id, kind },
        Some(part) => ColumnSource::Key { position, part, kind },
        None => ColumnSource::Row { position, kind },
    })
}
