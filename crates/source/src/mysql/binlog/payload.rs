//! Transaction payloads: a transaction compressed into one event. It is unpacked event by event, so that the needed
//! memory is that of its largest event.
//!
//! ```text
//! payload = *(field u8, length packed, value) | 0 | compressed events, without checksums
//! field   = 1 payload size | 2 compression (0 zstd, 255 none) | 3 uncompressed size; packed
//! ```

use std::io::{self, Cursor, Read};

use super::{
    EventBody,
    raw_event::{HEADER_BYTES, Header, RawEvent},
};
use crate::mysql::bytes::{Reader, UnexpectedEnd};

/// The largest event.
const MAX_EVENT_BYTES: u64 = 1 << 30;

/// The remaining events of a transaction payload.
pub struct Payload {
    events: Events,
}

enum Events {
    Plain(Cursor<EventBody>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Cursor<EventBody>>>),
}

impl Payload {
    /// Reads the fields before the events.
    pub fn parse(body: EventBody) -> Result<Self, String> {
        let (compression, start) =
            Self::fields(&body).map_err(|UnexpectedEnd| "it is too short")?;
        let mut events = Cursor::new(body);
        events.set_position(start);
        let events = match compression {
            0 => zstd::stream::read::Decoder::with_buffer(events)
                .map(|decoder| Events::Zstd(Box::new(decoder)))
                .map_err(|error| error.to_string())?,
            255 => Events::Plain(events),
            other => return Err(format!("its compression {other} is not known")),
        };
        Ok(Self { events })
    }

    fn fields(body: &[u8]) -> Result<(u64, u64), UnexpectedEnd> {
        let mut reader = Reader::new(body);
        let mut compression = 255;
        loop {
            let field = reader.packed()?;
            if field == 0 {
                break;
            }
            let length = reader.packed_length()?;
            let mut value = Reader::new(reader.bytes(length)?);
            if field == 2 {
                compression = value.packed()?;
            }
        }
        let start = u64::try_from(body.len() - reader.remaining()).map_err(|_| UnexpectedEnd)?;
        Ok((compression, start))
    }

    /// The next event; `None` after the last.
    pub fn next_event(&mut self) -> Result<Option<RawEvent>, String> {
        let mut header = [0; HEADER_BYTES];
        let read = self.read_up_to(&mut header).map_err(|error| error.to_string())?;
        if read == 0 {
            return Ok(None);
        }
        if read < header.len() {
            return Err("it ends within the header of an event".to_owned());
        }
        let header = Header::parse(&header);
        let length = u64::from(header.size).checked_sub(HEADER_BYTES as u64);
        let length = length.filter(|length| *length <= MAX_EVENT_BYTES);
        let length = length.ok_or_else(|| format!("an event of it has {} bytes", header.size))?;
        let body = self.read_body(length).map_err(|error| error.to_string())?;
        Ok(Some(RawEvent::unpacked(header, body)))
    }

    fn read_body(&mut self, length: u64) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        let read = match &mut self.events {
            Events::Plain(events) => events.take(length).read_to_end(&mut body)?,
            Events::Zstd(events) => events.take(length).read_to_end(&mut body)?,
        };
        if read as u64 == length { Ok(body) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn read_up_to(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let read = match &mut self.events {
                Events::Plain(events) => events.read(rest)?,
                Events::Zstd(events) => events.read(rest)?,
            };
            if read == 0 {
                break;
            }
            filled += read;
        }
        Ok(filled)
    }
}
