//! MySQL's binary JSON.
//!
//! ```text
//! document  := kind:u8 value
//! value     := count size key{count} entry{count} keys values     objects; arrays have no keys
//!            | literal:u8 | number | length string | type:u8 length byte*
//! key       := offset length:u16                                  from the value's first byte
//! entry     := kind:u8 (offset | the value itself, if it fits)
//! count, size, offset := u16, of large containers u32
//! length    := seven bits a byte, lowest first, the high bit set on all but the last
//! ```

use std::{borrow::Cow, str};

use super::{super::Malformed, Json, MAX_DEPTH};
use crate::mysql::bytes::Reader;

const LARGE_OBJECT: u8 = 1;
const SMALL_OBJECT: u8 = 0;
const SMALL_ARRAY: u8 = 2;
const LARGE_ARRAY: u8 = 3;
const LITERAL: u8 = 4;
const INT16: u8 = 5;
const UINT16: u8 = 6;
const INT32: u8 = 7;
const UINT32: u8 = 8;
const INT64: u8 = 9;
const UINT64: u8 = 10;
const DOUBLE: u8 = 11;
const STRING: u8 = 12;
const OPAQUE: u8 = 15;

/// The state while a document is parsed.
struct DecoderState {
    /// The most parts that may still come.
    left: usize,
    /// Whether all its texts are valid Unicode.
    is_text: bool,
}

impl DecoderState {
    fn text<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        self.is_text &= str::from_utf8(bytes).is_ok();
        String::from_utf8_lossy(bytes)
    }
}

/// Parses a document. Empty input is null, as at the server.
pub(super) fn parse(bytes: &[u8]) -> Result<Json<'_>, Malformed> {
    let (document, is_text) = read(bytes)?;
    if is_text { Ok(document) } else { Err(Malformed) }
}

/// Whether it is a valid document except for texts that are not valid Unicode.
pub(super) fn is_no_text(bytes: &[u8]) -> bool {
    read(bytes).is_ok_and(|(_, is_text)| !is_text)
}

fn read(bytes: &[u8]) -> Result<(Json<'_>, bool), Malformed> {
    let Some((&kind, value)) = bytes.split_first() else { return Ok((Json::Null, true)) };
    // Every container stores at least the offsets of its parts, so a valid document has fewer parts than bytes. This
    // limit refuses bytes that refer to one part many times.
    let mut state = DecoderState { left: bytes.len(), is_text: true };
    let document = parse_value(kind, value, MAX_DEPTH, &mut state)?;
    Ok((document, state.is_text))
}

fn parse_value<'a>(
    kind: u8,
    bytes: &'a [u8],
    depth: usize,
    state: &mut DecoderState,
) -> Result<Json<'a>, Malformed> {
    let mut reader = Reader::new(bytes);
    Ok(match kind {
        SMALL_OBJECT | LARGE_OBJECT | SMALL_ARRAY | LARGE_ARRAY => {
            let depth = depth.checked_sub(1).ok_or(Malformed)?;
            let large = matches!(kind, LARGE_OBJECT | LARGE_ARRAY);
            let container = Container { bytes, large };
            match kind {
                SMALL_OBJECT | LARGE_OBJECT => container.object(depth, state)?,
                _ => container.array(depth, state)?,
            }
        }
        LITERAL => match reader.u8()? {
            0 => Json::Null,
            1 => Json::Bool(true),
            2 => Json::Bool(false),
            _ => return Err(Malformed),
        },
        INT16 => Json::Int(i64::from(i16::from_le_bytes(reader.array()?))),
        UINT16 => Json::Uint(u64::from(reader.u16()?)),
        INT32 => Json::Int(i64::from(i32::from_le_bytes(reader.array()?))),
        UINT32 => Json::Uint(u64::from(reader.u32()?)),
        INT64 => Json::Int(i64::from_le_bytes(reader.array()?)),
        UINT64 => Json::Uint(reader.u64()?),
        DOUBLE => Json::Double(f64::from_le_bytes(reader.array()?)),
        STRING => Json::String(state.text(counted(&mut reader)?)),
        OPAQUE => {
            let kind = reader.u8()?;
            Json::Opaque(kind, counted(&mut reader)?)
        }
        _ => return Err(Malformed),
    })
}

struct Container<'a> {
    bytes: &'a [u8],
    large: bool,
}

impl<'a> Container<'a> {
    fn object(&self, depth: usize, state: &mut DecoderState) -> Result<Json<'a>, Malformed> {
        let (mut reader, count) = self.begin(state)?;
        let mut keys = Vec::with_capacity(count);
        for _ in 0..count {
            let offset = self.number(&mut reader)?;
            let length = usize::from(reader.u16()?);
            let key = self.bytes.get(offset..).and_then(|from| from.get(..length));
            keys.push(state.text(key.ok_or(Malformed)?));
        }
        let mut members = Vec::with_capacity(count);
        for key in keys {
            members.push((key, self.entry(&mut reader, depth, state)?));
        }
        Ok(Json::Object(members))
    }

    fn array(&self, depth: usize, state: &mut DecoderState) -> Result<Json<'a>, Malformed> {
        let (mut reader, count) = self.begin(state)?;
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(self.entry(&mut reader, depth, state)?);
        }
        Ok(Json::Array(elements))
    }

    /// The content after the counts, and the number of parts.
    fn begin(&self, state: &mut DecoderState) -> Result<(Reader<'a>, usize), Malformed> {
        let mut reader = Reader::new(self.bytes);
        let count = self.number(&mut reader)?;
        self.number(&mut reader)?;
        state.left = state.left.checked_sub(count).ok_or(Malformed)?;
        Ok((reader, count))
    }

    fn entry(
        &self,
        reader: &mut Reader<'a>,
        depth: usize,
        state: &mut DecoderState,
    ) -> Result<Json<'a>, Malformed> {
        let kind = reader.u8()?;
        let place = reader.bytes(if self.large { 4 } else { 2 })?;
        let inlined = match kind {
            LITERAL | INT16 | UINT16 => true,
            INT32 | UINT32 => self.large,
            _ => false,
        };
        if inlined {
            return parse_value(kind, place, depth, state);
        }
        let offset = self.number(&mut Reader::new(place))?;
        let value = self.bytes.get(offset..).filter(|_| offset > 0).ok_or(Malformed)?;
        parse_value(kind, value, depth, state)
    }

    fn number(&self, reader: &mut Reader<'_>) -> Result<usize, Malformed> {
        Ok(if self.large { reader.u32()? as usize } else { usize::from(reader.u16()?) })
    }
}

fn counted<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let mut length = 0_usize;
    for shift in [0, 7, 14, 21, 28] {
        let byte = reader.u8()?;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(reader.bytes(length)?);
        }
    }
    Err(Malformed)
}
