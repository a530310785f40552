//! The events that begin a transaction and carry its GTID.
//!
//! ```text
//! MySQL    flags u8 | uuid (16) | number i64
//!          [| 2 u8 | last committed i64 | sequence i64 [| committed at, microseconds, 7 bytes | …]]
//! tagged   a message of MySQL's serialization library: version | size | last field that must be
//!          known | *(field id | value), all integers of variable length; fields are 0 flags,
//!          1 uuid (16 integers), 2 number (signed), 3 tag (length and bytes), 4 last committed
//!          (signed), 5 sequence (signed), 6 committed at at the immediate source, …
//! MariaDB  sequence u64 | domain u32 | flags u8 | [commit id u64, if flag 2]
//!          [| xid, if flags 64 or 128] [| extra flags u8 …] | zeroes up to 19 bytes
//! xid      format u32 | length of global part u8 | length of branch part u8 | both parts
//! ```

use super::xa::Xid;
use crate::mysql::{
    bytes::{Reader, UnexpectedEnd},
    gtid::{MariaDbGtid, MySqlGtid, Tag, Uuid},
};

/// Set in the 7 bytes of a commit time if the commit time at the original source follows.
const ORIGINAL_TIME_FOLLOWS: u64 = 1 << 55;
/// The type code of the logical clock, which precedes the commit time.
const LOGICAL_CLOCK: u8 = 2;

/// The beginning of a MySQL transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MySqlBegin {
    /// Its GTID.
    pub gtid: MySqlGtid,
    /// The commit time in microseconds since 1970; from MySQL 8.0 on.
    pub committed_at_us: Option<i64>,
}

/// The beginning of a MariaDB transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MariaDbBegin {
    /// Its GTID.
    pub gtid: MariaDbGtid,
    /// The transaction consists of the one query that follows.
    pub standalone: bool,
    /// It is the prepare of an XA transaction.
    pub prepared: bool,
    /// It commits or rolls back this prepared XA transaction.
    pub completed: Option<Xid>,
    /// A schema change that has only started, or has failed after its start: it has no effect.
    pub alter_without_effect: bool,
}

impl MySqlBegin {
    /// Reads the body of a GTID event.
    pub fn parse(body: &[u8]) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        reader.skip(1)?;
        let uuid = Uuid(reader.array()?);
        let number = reader.u64()?;
        let gtid = MySqlGtid { uuid, tag: Tag::default(), number };
        Ok(Self { gtid, committed_at_us: Self::commit_time(&mut reader).ok() })
    }

    fn commit_time(reader: &mut Reader<'_>) -> Result<i64, UnexpectedEnd> {
        if reader.u8()? != LOGICAL_CLOCK {
            return Err(UnexpectedEnd);
        }
        reader.skip(16)?;
        let time = reader.uint(7)? & !ORIGINAL_TIME_FOLLOWS;
        i64::try_from(time).map_err(|_| UnexpectedEnd)
    }

    /// Reads the body of a tagged GTID event.
    pub fn parse_tagged(body: &[u8]) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        // Version, size, last required field.
        for _ in 0..3 {
            variable(&mut reader)?;
        }
        let (mut uuid, mut tag) = (Uuid::default(), Tag::default());
        let (mut number, mut committed_at_us) = (0, None);
        while reader.remaining() > 0 {
            match variable(&mut reader)? {
                0 => drop(variable(&mut reader)?),
                1 => uuid = variable_uuid(&mut reader)?,
                2 => number = variable_signed(&mut reader)?,
                3 => tag = variable_tag(&mut reader)?,
                4 | 5 => drop(variable(&mut reader)?),
                6 => committed_at_us = i64::try_from(variable(&mut reader)?).ok(),
                // Later fields are not needed, and may belong to later versions.
                _ => break,
            }
        }
        let number = u64::try_from(number).map_err(|_| UnexpectedEnd)?;
        Ok(Self { gtid: MySqlGtid { uuid, tag, number }, committed_at_us })
    }
}

/// A variable-length integer: the trailing ones of its first byte are the number of bytes that follow.
fn variable(reader: &mut Reader<'_>) -> Result<u64, UnexpectedEnd> {
    let first = reader.u8()?;
    let more = first.trailing_ones() as usize;
    let low = u64::from(first).checked_shr(first.trailing_ones() + 1).unwrap_or(0);
    let high = reader.uint(more)?;
    Ok(low | high.checked_shl(7_u32.saturating_sub(first.trailing_ones())).unwrap_or(0))
}

/// A signed one: the sign is in the lowest bit, and negative numbers are inverted.
fn variable_signed(reader: &mut Reader<'_>) -> Result<i64, UnexpectedEnd> {
    let value = variable(reader)?;
    let half = i64::try_from(value >> 1).map_err(|_| UnexpectedEnd)?;
    Ok(if value & 1 == 1 { !half } else { half })
}

fn variable_uuid(reader: &mut Reader<'_>) -> Result<Uuid, UnexpectedEnd> {
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = u8::try_from(variable(reader)?).map_err(|_| UnexpectedEnd)?;
    }
    Ok(Uuid(bytes))
}

fn variable_tag(reader: &mut Reader<'_>) -> Result<Tag, UnexpectedEnd> {
    let length = usize::try_from(variable(reader)?).map_err(|_| UnexpectedEnd)?;
    let text = std::str::from_utf8(reader.bytes(length)?).map_err(|_| UnexpectedEnd)?;
    if text.is_empty() { Ok(Tag::default()) } else { Tag::parse(text).ok_or(UnexpectedEnd) }
}

impl MariaDbBegin {
    const STANDALONE: u8 = 1;
    const GROUP_COMMIT_ID: u8 = 2;
    const PREPARED_XA: u8 = 64;
    const COMPLETED_XA: u8 = 128;
    const EXTRA_START_ALTER: u8 = 2;
    const EXTRA_ROLLBACK_ALTER: u8 = 8;

    /// Reads the body of a MariaDB GTID event. The server id is in the event's header.
    pub fn parse(body: &[u8], server: u32) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        let sequence = reader.u64()?;
        let domain = reader.u32()?;
        let flags = reader.u8()?;
        if flags & Self::GROUP_COMMIT_ID != 0 {
            reader.skip(8)?;
        }
        let xid = match flags & (Self::PREPARED_XA | Self::COMPLETED_XA) {
            0 => None,
            _ => Some(Self::read_xid(&mut reader)?),
        };
        let extra = reader.u8().unwrap_or(0);
        Ok(Self {
            gtid: MariaDbGtid { domain, server, sequence },
            standalone: flags & Self::STANDALONE != 0,
            prepared: flags & Self::PREPARED_XA != 0,
            completed: xid.filter(|_| flags & Self::COMPLETED_XA != 0),
            alter_without_effect: extra & (Self::EXTRA_START_ALTER | Self::EXTRA_ROLLBACK_ALTER)
                != 0,
        })
    }

    fn read_xid(reader: &mut Reader<'_>) -> Result<Xid, UnexpectedEnd> {
        let format = reader.u32()?;
        let (global, branch) = (usize::from(reader.u8()?), usize::from(reader.u8()?));
        let (global, branch) = (reader.bytes(global)?.to_vec(), reader.bytes(branch)?.to_vec());
        Ok(Xid { format, global, branch })
    }
}
