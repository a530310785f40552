//! MariaDB's compressed events: queries and rows.
//!
//! ```text
//! compressed = head u8 | uncompressed length, big-endian, of (head & 7) bytes | zlib data
//! head       = 0x80 | algorithm << 4 (0: zlib) | bytes of the length
//! ```
//! In a rows event only the rows, after the bitmaps, are compressed.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::{RowsKind, RowsVersion};
use crate::mysql::bytes::{Reader, UnexpectedEnd};

/// The largest event.
const MAX_BYTES: u64 = 1 << 30;
/// Memory that is allocated for an event's declared length before any bytes are decompressed.
const TRUSTED_BYTES: u64 = 1 << 20;

/// Appends the uncompressed bytes.
pub fn inflate(compressed: &[u8], to: &mut Vec<u8>) -> Result<(), UnexpectedEnd> {
    let mut reader = Reader::new(compressed);
    let head = reader.u8()?;
    if head & 0xf0 != 0x80 {
        return Err(UnexpectedEnd);
    }
    let length = reader.bytes(usize::from(head & 7))?;
    let length =
        length.iter().try_fold(0_u64, |sum, byte| Some(sum.checked_mul(256)? + u64::from(*byte)));
    let length = length.filter(|length| *length <= MAX_BYTES).ok_or(UnexpectedEnd)?;
    to.reserve(usize::try_from(length.min(TRUSTED_BYTES)).map_err(|_| UnexpectedEnd)?);
    let plain = ZlibDecoder::new(reader.rest()).take(length + 1).read_to_end(to);
    if plain.is_ok_and(|plain| plain as u64 == length) { Ok(()) } else { Err(UnexpectedEnd) }
}

/// The body of a rows event with its rows uncompressed.
pub fn inflate_rows(
    body: &[u8],
    kind: RowsKind,
    version: RowsVersion,
) -> Result<Vec<u8>, UnexpectedEnd> {
    let mut reader = Reader::new(body);
    reader.skip(8)?;
    if version == RowsVersion::V2 {
        let extra = usize::from(reader.u16()?);
        reader.skip(extra.checked_sub(2).ok_or(UnexpectedEnd)?)?;
    }
    let bitmap = reader.packed_length()?.div_ceil(8);
    let bitmaps = if kind == RowsKind::Update { 2 } else { 1 };
    reader.skip(bitmap.checked_mul(bitmaps).ok_or(UnexpectedEnd)?)?;
    let head = body.get(..body.len() - reader.remaining()).ok_or(UnexpectedEnd)?;
    let mut plain = Vec::with_capacity(body.len().saturating_mul(2));
    plain.extend_from_slice(head);
    inflate(reader.rest(), &mut plain)?;
    Ok(plain)
}
