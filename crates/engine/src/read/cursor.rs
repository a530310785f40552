//! Cursors: the last row of a page as opaque text, so that the next page starts behind it.
//!
//! ```text
//! cursor      := base64url(body crc32(body):u32)     without padding
//! body        := version:u8 fingerprint:u32 cell* key
//! cell        := 0:u8                                NULL
//!              | 1:u8 ordinal:u64                    ordinal column, or the bits of a score
//!              | 2:u8 length:u32 bytes
//! fingerprint := crc32 of the table's name and the parts of the order
//! key         := the encoded primary key
//! ```
//! All integers are little endian; there is one cell for each part of the order before the key. A cursor identifies a
//! row by its values: it stays valid when rows come and go, its own row included.

use remora_index::column::{Cell, ColumnKind};

use super::{
    literal::OwnedCell,
    order::{DocumentAddress, Order, PageStart, PartBy, SegmentOrder},
};
use crate::{
    Error, RequestPart, Result, Schema,
    encode::{column_kind, from_url_base64, to_url_base64},
    snapshot::TableView,
};

const VERSION: u8 = 1;
/// The most characters of a cursor. A row that needs a longer one has none.
const MAX_CHARS: usize = 1 << 20;

impl PageStart {
    /// Decodes a cursor, and checks that it was made for this table and order.
    pub fn decode(schema: &Schema, order: &Order, cursor: &str) -> Result<Self> {
        let bytes = cursor_bytes(cursor).ok_or_else(malformed)?;
        let (body, checksum) = bytes.split_last_chunk::<4>().ok_or_else(malformed)?;
        if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
            return Err(malformed());
        }
        let mut rest = body;
        let version = take::<1>(&mut rest).ok_or_else(malformed)?;
        let fingerprint_bytes = take::<4>(&mut rest).ok_or_else(malformed)?;
        if version != [VERSION] {
            return Err(invalid("The cursor was made by another version; start from page one"));
        }
        if u32::from_le_bytes(fingerprint_bytes) != fingerprint(schema, order) {
            return Err(invalid("The cursor was made for another table or another order"));
        }
        let cells: Option<_> = order.parts.iter().map(|part| cell(&part.by, &mut rest)).collect();
        Ok(Self { cells: cells.ok_or_else(malformed)?, key: rest.to_vec() })
    }

    /// The cursor of a row; `None` if it would be longer than the limit.
    pub fn encode(
        view: &TableView,
        order: &Order,
        segment_order: &SegmentOrder<'_>,
        place: DocumentAddress,
    ) -> Option<String> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&fingerprint(&view.schema, order).to_le_bytes());
        for cell in segment_order.cells(place.doc) {
            push_cell(cell, &mut bytes);
        }
        let mut key = Vec::new();
        place.read_key(view, &mut key);
        bytes.extend_from_slice(&key);
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        (bytes.len() <= MAX_CHARS / 4 * 3).then(|| to_url_base64(&bytes))
    }
}

fn fingerprint(schema: &Schema, order: &Order) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(schema.name.as_bytes());
    for part in &order.parts {
        let (tag, id, order) = match part.by {
            PartBy::Column(id, _) => (1, id, None),
            PartBy::Score => (2, 0, None),
            PartBy::Keyed(id, order) => (3, id, Some(order.number)),
        };
        hasher.update(&[0, tag, u8::from(part.descending)]);
        hasher.update(&id.to_le_bytes());
        order.iter().for_each(|order| hasher.update(&order.to_le_bytes()));
    }
    hasher.update(&[0, 0, u8::from(order.key_descending)]);
    hasher.finalize()
}

fn push_cell(cell: Cell<'_>, out: &mut Vec<u8>) {
    match cell {
        Cell::Null => out.push(0),
        Cell::Ordinal(ordinal) => {
            out.push(1);
            out.extend_from_slice(&ordinal.to_le_bytes());
        }
        Cell::Bytes(bytes) => {
            out.push(2);
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// Decodes a cell of the part's kind from the front.
fn cell(by: &PartBy, rest: &mut &[u8]) -> Option<OwnedCell> {
    let kind = match by {
        PartBy::Column(_, kind) => column_kind(*kind),
        PartBy::Keyed(..) => ColumnKind::Bytes,
        PartBy::Score => ColumnKind::Ordinal,
    };
    match (take::<1>(rest)?, kind) {
        ([0], _) => Some(OwnedCell::Null),
        ([1], ColumnKind::Ordinal) => {
            Some(OwnedCell::Ordinal(u64::from_le_bytes(take::<8>(rest)?)))
        }
        ([2], ColumnKind::Bytes) => {
            let length = u32::from_le_bytes(take::<4>(rest)?) as usize;
            let (bytes, behind) = rest.split_at_checked(length)?;
            *rest = behind;
            Some(OwnedCell::Bytes(bytes.to_vec()))
        }
        _ => None,
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*chunk)
}

fn cursor_bytes(text: &str) -> Option<Vec<u8>> {
    if text.len() > MAX_CHARS { None } else { from_url_base64(text) }
}

fn malformed() -> Error {
    invalid("The cursor is not one that a reply gave; start from page one")
}

fn invalid(message: &str) -> Error {
    Error::request(RequestPart::Sort, message)
}
