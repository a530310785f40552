//! An event as it was received: header, body and checksum.
//!
//! ```text
//! event  = header body [crc32 u32]
//! header = timestamp u32 | kind u8 | server id u32 | size u32 | end in the file u32 | flags u16
//! ```

use mysql_common::binlog::events::Event;

use super::{EventBody, event_kind};
use crate::mysql::bytes::{Reader, UnexpectedEnd};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 19;
/// Bytes of a checksum.
pub const CHECKSUM_BYTES: usize = 4;
/// A format description of a file that is still being written; not part of the checksum.
const FLAG_IN_USE: u16 = 0x1;
/// The statement used a temporary table of its session.
const FLAG_THREAD_SPECIFIC: u16 = 0x4;
/// Created by the source for this connection; not in its file.
const FLAG_ARTIFICIAL: u16 = 0x20;
/// May be ignored if its kind is unknown.
const FLAG_IGNORABLE: u16 = 0x80;

/// The fields of an event's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Seconds since 1970.
    pub timestamp: u32,
    /// See [`event_kind`].
    pub kind: u8,
    /// The id of the server where it originated.
    pub server_id: u32,
    /// In bytes, including header and checksum.
    pub size: u32,
    /// The position of its end in the file, modulo 2^32; 0 for artificial events.
    pub end: u32,
    /// See the flags above.
    pub flags: u16,
}

/// An event as it was received.
#[derive(Clone, Debug)]
pub struct RawEvent {
    /// Its header.
    pub header: Header,
    /// The event without its header and checksum.
    pub body: EventBody,
    /// The checksum, and in a format description the byte with the algorithm.
    checksum: Option<(u32, Option<u8>)>,
}

impl Header {
    /// Reads a header.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let mut reader = Reader::new(bytes);
        Self::read(&mut reader).unwrap_or_default()
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, UnexpectedEnd> {
        Ok(Self {
            timestamp: reader.u32()?,
            kind: reader.u8()?,
            server_id: reader.u32()?,
            size: reader.u32()?,
            end: reader.u32()?,
            flags: reader.u16()?,
        })
    }

    /// Whether the source created it for this connection: it has no position in the file.
    pub fn is_artificial(&self) -> bool {
        self.flags & FLAG_ARTIFICIAL != 0 || self.end == 0
    }

    /// Whether a statement used a temporary table of its session.
    pub fn uses_temporary(&self) -> bool {
        self.flags & FLAG_THREAD_SPECIFIC != 0
    }

    /// Whether it may be ignored if its kind is unknown.
    pub fn is_ignorable(&self) -> bool {
        self.flags & FLAG_IGNORABLE != 0
    }

    fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let flags = match self.kind {
            event_kind::FORMAT_DESCRIPTION => self.flags & !FLAG_IN_USE,
            _ => self.flags,
        };
        let fields = self.timestamp.to_le_bytes().into_iter().chain([self.kind]);
        let fields = fields.chain(self.server_id.to_le_bytes()).chain(self.size.to_le_bytes());
        let fields = fields.chain(self.end.to_le_bytes()).chain(flags.to_le_bytes());
        bytes.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
        bytes
    }
}

impl RawEvent {
    /// An event of the client crate.
    pub fn received(event: Event) -> Self {
        let from = event.header();
        let header = Header {
            timestamp: from.timestamp(),
            kind: from.event_type_raw(),
            server_id: from.server_id(),
            size: from.event_size(),
            end: from.log_pos(),
            flags: from.flags_raw(),
        };
        let algorithm = match header.kind {
            event_kind::FORMAT_DESCRIPTION => {
                Some(event.footer().get_checksum_alg().ok().flatten().map_or(0, |alg| alg as u8))
            }
            _ => None,
        };
        let checksum = event.checksum().map(|bytes| (u32::from_le_bytes(bytes), algorithm));
        Self { header, body: EventBody::received(event), checksum }
    }

    /// An event from a transaction payload, which has no checksum of its own.
    pub fn unpacked(header: Header, body: Vec<u8>) -> Self {
        Self { header, body: body.into(), checksum: None }
    }

    /// An event as it is stored in a file. With `summed`, its last bytes are its checksum.
    #[cfg(test)]
    pub fn of_file(bytes: &[u8], summed: bool) -> Option<Self> {
        let (header, body) = bytes.split_first_chunk()?;
        let header = Header::parse(header);
        let (body, sum) = body.split_last_chunk()?;
        let (body, algorithm) = match (header.kind, body) {
            (event_kind::FORMAT_DESCRIPTION, [body @ .., algorithm]) => (body, Some(*algorithm)),
            _ => (body, None),
        };
        let checksum = summed.then_some((u32::from_le_bytes(*sum), algorithm));
        Some(Self { header, body: body.to_vec().into(), checksum })
    }

    /// Whether it begins a binlog file.
    pub fn is_format_description(&self) -> bool {
        self.header.kind == event_kind::FORMAT_DESCRIPTION
    }

    /// Whether the source writes checksums. Known from format descriptions only.
    pub fn sums_events(&self) -> bool {
        self.checksum.is_some_and(|(_, algorithm)| algorithm != Some(0))
    }

    /// Verifies the checksum, if there is one. A format description that announces no checksums still has room for one,
    /// with arbitrary contents.
    pub fn verify(&self) -> Result<(), String> {
        let Some((written, algorithm)) = self.checksum.filter(|(_, of)| *of != Some(0)) else {
            return Ok(());
        };
        let found = self.sum(&self.body, algorithm);
        if found == written {
            return Ok(());
        }
        Err(format!("its checksum is {written:08x} but its bytes sum up to {found:08x}"))
    }

    /// A rotate event before the format description may or may not end in a checksum. If its last bytes are the
    /// checksum of the preceding ones, they are removed.
    pub fn cut_unannounced_checksum(&mut self) {
        if self.checksum.is_some() {
            return;
        }
        if let Some((body, sum)) = self.body.split_last_chunk::<CHECKSUM_BYTES>()
            && self.sum(body, None) == u32::from_le_bytes(*sum)
        {
            self.body = body.to_vec().into();
        }
    }

    fn sum(&self, body: &[u8], algorithm: Option<u8>) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.header.bytes());
        hasher.update(body);
        if let Some(algorithm) = algorithm {
            hasher.update(&[algorithm]);
        }
        hasher.finalize()
    }
}
