//! COMPRESS and its inverse. The format is the length of the original in four bytes, then zlib
//! data.

use std::io::{Read, Write};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use remora_mysql::ErrorCode;

use super::super::{
    call::{Call, TypeContext},
    function::{Caching, Definition},
    types::{ExprType, UNBOUNDED},
    value::SqlValue,
};
use crate::Result;

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("compress", 1, 1, compressed_type, compress),
    Definition::new("uncompress", 1, 1, uncompressed_type, uncompress).cached(Caching::Never),
    Definition::new("uncompressed_length", 1, 1, length_type, uncompressed_length),
];

/// The bytes of the length.
const HEAD: usize = 4;
/// The bits of the length that count.
const LENGTH_BITS: u32 = 0x3FFF_FFFF;
/// Appended if the data ends with a space, which some columns would strip.
const BEHIND_SPACE: u8 = b'.';

/// The upper bound of zlib's output.
fn compressed_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let length = typing.get(0).characters().saturating_mul(4);
    Ok(ExprType::binary(length.saturating_add(length / 1_000).saturating_add(120)))
}

fn uncompressed_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::binary(UNBOUNDED))
}

fn length_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(10))
}

fn compress<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(bytes) = args.first().and_then(SqlValue::octets) else { return Ok(SqlValue::Null) };
    if bytes.is_empty() {
        return Ok(SqlValue::bytes(Vec::new()));
    }
    if bytes.len() as u64 > call.longest_text() {
        return Ok(call.too_long("compress"));
    }
    let length = u32::try_from(bytes.len()).unwrap_or(LENGTH_BITS) & LENGTH_BITS;
    let made = ZlibEncoder::new(length.to_le_bytes().to_vec(), Compression::default());
    // Writing to memory never fails.
    let written = written(made, &bytes);
    let Ok(mut made) = written else { return Ok(SqlValue::Null) };
    if made.last() == Some(&b' ') {
        made.push(BEHIND_SPACE);
    }
    Ok(SqlValue::bytes(made))
}

fn written(mut encoder: ZlibEncoder<Vec<u8>>, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The original length in the header; `None` if there is no header.
fn said_length(bytes: &[u8]) -> Option<u32> {
    let head: [u8; HEAD] = bytes.get(..HEAD)?.try_into().ok()?;
    (bytes.len() > HEAD).then(|| u32::from_le_bytes(head) & LENGTH_BITS)
}

fn warn_of_data(call: &Call<'_>) {
    call.warn(ErrorCode::UncompressData, || "ZLIB: Input data corrupted".to_owned());
}

fn uncompress<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(bytes) = args.first().and_then(SqlValue::octets) else { return Ok(SqlValue::Null) };
    if bytes.is_empty() {
        return Ok(SqlValue::bytes(Vec::new()));
    }
    let Some(length) = said_length(&bytes) else {
        warn_of_data(call);
        return Ok(SqlValue::Null);
    };
    let most = call.longest_text();
    if u64::from(length) > most {
        call.warn(ErrorCode::UncompressTooLarge, || {
            format!(
                "Uncompressed data size too large; the maximum size is {most} (probably, length of \
                 uncompressed data was corrupted)"
            )
        });
        return Ok(SqlValue::Null);
    }
    let mut made = Vec::new();
    let body = bytes.get(HEAD..).unwrap_or_default();
    // Reading one byte more detects data that is longer than its header says.
    let read = ZlibDecoder::new(body).take(u64::from(length) + 1).read_to_end(&mut made);
    if made.len() as u64 > u64::from(length) {
        call.warn(ErrorCode::UncompressRoom, || {
            "ZLIB: Not enough room in the output buffer (probably, length of uncompressed data was \
             corrupted)"
                .to_owned()
        });
        return Ok(SqlValue::Null);
    }
    if read.is_err() {
        warn_of_data(call);
        return Ok(SqlValue::Null);
    }
    Ok(SqlValue::bytes(made))
}

fn uncompressed_length<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(bytes) = args.first().and_then(SqlValue::octets) else { return Ok(SqlValue::Null) };
    if bytes.is_empty() {
        return Ok(SqlValue::Int(0));
    }
    Ok(SqlValue::Int(match said_length(&bytes) {
        Some(length) => i64::from(length),
        None => {
            warn_of_data(call);
            0
        }
    }))
}
