//! Packets: the frames of MySQL's protocol.
//!
//! ```text
//! message = { full packet } packet
//! packet  = length: u24   sequence: u8   payload: length bytes     length < 2^24 - 1
//! full packet = a packet whose length is 2^24 - 1: the message goes on in the next one
//! ```
//! Numbers are little-endian. A command begins with sequence number 0, and its reply continues the
//! count.

/// The length of a packet's header.
pub const HEADER_BYTES: usize = 4;
/// The payload length of a packet whose message continues in the next one.
pub const FULL_PAYLOAD: usize = 0xFF_FFFF;

/// The most bytes of an empty buffer that are kept for the next message.
const KEPT_BYTES: usize = 64 << 10;
/// The least room for one read.
const READ_BYTES: usize = 4 << 10;
/// The most memory that is reserved for a packet before its bytes were received.
const AHEAD_BYTES: usize = 1 << 20;

/// Why no more of a connection's input can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// A packet has an unexpected sequence number.
    #[error("got packet {found} where packet {expected} was due")]
    OutOfOrder {
        /// The expected number.
        expected: u8,
        /// The received number.
        found: u8,
    },
    /// A message is longer than the limit.
    #[error("got a message above the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
        /// The sequence number of the packet that exceeds it.
        sequence: u8,
    },
}

impl PacketError {
    /// The sequence number at which the client expects the error.
    pub fn reply_sequence(&self) -> u8 {
        match self {
            Self::OutOfOrder { found, .. } => found.wrapping_add(1),
            Self::TooLarge { sequence, .. } => sequence.wrapping_add(1),
        }
    }
}

/// A whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'r> {
    /// The content.
    pub payload: &'r [u8],
    /// The sequence number of the reply's first packet.
    pub reply_sequence: u8,
}

/// Splits a connection's input into messages.
#[derive(Debug)]
pub struct PacketReader {
    buffer: Vec<u8>,
    /// The position of the next packet.
    start: usize,
    /// The collected payloads of a message in several packets.
    joined: Vec<u8>,
    /// Whether `joined` was returned to the caller.
    is_joined_taken: bool,
    /// The expected sequence number.
    sequence: u8,
    /// Whether sequence numbers are checked. In the compressed protocol they are not.
    is_ordered: bool,
    limit: usize,
}

impl PacketReader {
    /// A reader of messages of at most `limit` bytes, at sequence 0.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            joined: Vec::new(),
            is_joined_taken: false,
            sequence: 0,
            is_ordered: true,
            limit,
        }
    }

    /// Sets the limit for further messages.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Stops checking sequence numbers, because the compressed protocol has its own.
    pub fn ignore_order(&mut self) {
        self.is_ordered = false;
    }

    /// The expected sequence number, which is also that of the first packet of the reply to the
    /// last message.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Sets the expected sequence number: 0 before a command, or the one after the last packet of a
    /// reply that the client must answer.
    pub fn expect(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The buffer to append input to, with room for one read. Call it when
    /// [`PacketReader::next_message`] returns `None`.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.reclaim();
        let missing = self.announced().saturating_sub(self.buffer.len());
        self.buffer.reserve(missing.clamp(READ_BYTES, AHEAD_BYTES));
        &mut self.buffer
    }

    /// The next complete message.
    ///
    /// # Errors
    /// [`PacketError::OutOfOrder`] if a packet has an unexpected sequence number,
    /// [`PacketError::TooLarge`] if the message is longer than the limit.
    pub fn next_message(&mut self) -> Result<Option<Message<'_>>, PacketError> {
        if self.is_joined_taken {
            self.joined.clear();
            self.joined.shrink_to(KEPT_BYTES);
            self.is_joined_taken = false;
        }
        loop {
            let Some(length) = self.check_header()? else { return Ok(None) };
            let payload = self.start + HEADER_BYTES;
            let end = payload + length;
            if end > self.buffer.len() {
                return Ok(None);
            }
            self.start = end;
            self.sequence = self.sequence.wrapping_add(1);
            let reply_sequence = self.sequence;
            let payload = self.buffer.get(payload..end).unwrap_or_default();
            if length < FULL_PAYLOAD && self.joined.is_empty() {
                return Ok(Some(Message { payload, reply_sequence }));
            }
            self.joined.extend_from_slice(payload);
            if length < FULL_PAYLOAD {
                self.is_joined_taken = true;
                return Ok(Some(Message { payload: &self.joined, reply_sequence }));
            }
        }
    }

    /// Whether a part of a message was received.
    pub fn is_partial(&self) -> bool {
        self.start < self.buffer.len() || (!self.joined.is_empty() && !self.is_joined_taken)
    }

    /// The memory it takes, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.buffer.capacity() + self.joined.capacity()
    }

    /// Takes the bytes that belong to no message yet, for another reader.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let rest = self.buffer.split_off(self.start.min(self.buffer.len()));
        self.buffer.clear();
        self.start = 0;
        rest
    }

    /// The length of the packet at `start`; `None` if its header is incomplete.
    fn check_header(&self) -> Result<Option<usize>, PacketError> {
        let header = self.buffer.get(self.start..self.start + HEADER_BYTES);
        let Some(&[low, middle, high, sequence]) = header else { return Ok(None) };
        if self.is_ordered && sequence != self.sequence {
            return Err(PacketError::OutOfOrder { expected: self.sequence, found: sequence });
        }
        let length = usize_of([low, middle, high]);
        if self.joined.len() + length > self.limit {
            return Err(PacketError::TooLarge { limit: self.limit, sequence });
        }
        Ok(Some(length))
    }

    /// The end of the packet at `start` in the buffer.
    fn announced(&self) -> usize {
        match self.check_header() {
            Ok(Some(length)) => self.start + HEADER_BYTES + length,
            _ => self.start + HEADER_BYTES,
        }
    }

    /// Frees the room of packets that were returned.
    fn reclaim(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
        }
        self.start = 0;
    }
}

pub(super) fn usize_of([low, middle, high]: [u8; 3]) -> usize {
    usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16
}

pub(super) fn u24_of(length: usize) -> [u8; 3] {
    let [low, middle, high, ..] = length.to_le_bytes();
    [low, middle, high]
}

/// Outgoing packets. Each is written in place, and its header is filled in at its end.
#[derive(Debug, Default)]
pub struct PacketWriter {
    bytes: Vec<u8>,
    sequence: u8,
}

impl PacketWriter {
    /// Sets the sequence number of the next packet.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The sequence number of the next packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Writes a message, whose content `payload` appends.
    pub fn message(&mut self, payload: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEADER_BYTES]);
        payload(&mut self.bytes);
        self.end(start);
    }

    /// Like [`PacketWriter::message`], for a payload that may fail.
    ///
    /// # Errors
    /// The error of `payload`. Then nothing is written.
    pub fn try_message<E>(
        &mut self,
        payload: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEADER_BYTES]);
        match payload(&mut self.bytes) {
            Ok(()) => self.end(start),
            Err(error) => {
                self.bytes.truncate(start);
                return Err(error);
            }
        }
        Ok(())
    }

    /// All complete packets that were not sent yet.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The memory it takes, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Drops what was sent.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(4 * KEPT_BYTES);
    }

    fn end(&mut self, start: usize) {
        let length = self.bytes.len() - start - HEADER_BYTES;
        if length >= FULL_PAYLOAD {
            self.split(start, length);
            return;
        }
        let [low, middle, high] = u24_of(length);
        if let Some(header) = self.bytes.get_mut(start..start + HEADER_BYTES) {
            header.copy_from_slice(&[low, middle, high, self.sequence]);
        }
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Splits the message at `start` into packets. It copies, because this is rare.
    fn split(&mut self, start: usize, length: usize) {
        let payload = self.bytes.split_off(start + HEADER_BYTES);
        self.bytes.truncate(start);
        self.bytes.reserve(length + (length / FULL_PAYLOAD + 1) * HEADER_BYTES);
        let pieces = payload.chunks(FULL_PAYLOAD);
        // A message that fills its last packet is followed by an empty one.
        let end = length.is_multiple_of(FULL_PAYLOAD).then_some(&[][..]);
        for piece in pieces.chain(end) {
            let [low, middle, high] = u24_of(piece.len());
            self.bytes.extend_from_slice(&[low, middle, high, self.sequence]);
            self.bytes.extend_from_slice(piece);
            self.sequence = self.sequence.wrapping_add(1);
        }
    }
}

impl AsMut<PacketWriter> for PacketWriter {
    fn as_mut(&mut self) -> &mut PacketWriter {
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn feed(reader: &mut PacketReader, wire: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        for piece in wire.chunks(piece) {
            reader.room().extend_from_slice(piece);
            while let Some(message) = reader.next_message().unwrap() {
                messages.push(message.payload.to_vec());
            }
        }
        messages
    }

    proptest! {
        #[test]
        fn written_packets_are_parsed(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
            piece in 1_usize..600,
            first in any::<u8>(),
        ) {
            let mut writer = PacketWriter::default();
            writer.set_sequence(first);
            for message in &messages {
                writer.message(|bytes| bytes.extend_from_slice(message));
            }
            let mut reader = PacketReader::new(1 << 20);
            reader.expect(first);
            prop_assert_eq!(feed(&mut reader, writer.bytes(), piece), messages);
            prop_assert!(!reader.is_partial());
            prop_assert_eq!(reader.sequence(), writer.sequence());
        }
    }

    #[test]
    fn long_messages_take_several_packets() {
        for extra in [-1_isize, 0, 1, 5000] {
            for full in [1, 2] {
                let length = (full * FULL_PAYLOAD).checked_add_signed(extra).unwrap();
                let message: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
                let mut writer = PacketWriter::default();
                writer.message(|bytes| bytes.extend_from_slice(b"before"));
                writer.message(|bytes| bytes.extend_from_slice(&message));
                let packets = length / FULL_PAYLOAD + 1;
                assert_eq!(usize::from(writer.sequence()), packets + 1);
                assert_eq!(writer.bytes().len(), 4 + 6 + length + 4 * packets);
                let mut reader = PacketReader::new(1 << 30);
                let read = feed(&mut reader, writer.bytes(), 1 << 20);
                assert!(read == [b"before".to_vec(), message], "{length}");
                assert!(reader.next_message().unwrap().is_none());
                assert!(reader.room().is_empty() && reader.held_bytes() <= 4 * KEPT_BYTES);
            }
        }
    }

    #[test]
    fn a_packet_out_of_order_or_too_large_is_refused_at_its_header() {
        let mut reader = PacketReader::new(10);
        reader.room().extend_from_slice(&[1, 0, 0, 3]);
        let order = PacketError::OutOfOrder { expected: 0, found: 3 };
        assert_eq!(order.reply_sequence(), 4);
        assert_eq!(reader.next_message(), Err(order));
        let mut reader = PacketReader::new(10);
        reader.room().extend_from_slice(&[11, 0, 0, 0]);
        assert_eq!(reader.next_message(), Err(PacketError::TooLarge { limit: 10, sequence: 0 }));
    }

    #[test]
    fn the_limit_holds_over_all_packets_of_a_message() {
        let mut writer = PacketWriter::default();
        writer.message(|bytes| bytes.extend(std::iter::repeat_n(7, FULL_PAYLOAD + 10)));
        let mut reader = PacketReader::new(FULL_PAYLOAD + 9);
        reader.room().extend_from_slice(writer.bytes());
        assert!(matches!(reader.next_message(), Err(PacketError::TooLarge { .. })));
        let mut reader = PacketReader::new(FULL_PAYLOAD + 10);
        reader.room().extend_from_slice(writer.bytes());
        assert_eq!(reader.next_message().unwrap().unwrap().payload.len(), FULL_PAYLOAD + 10);
    }

    #[test]
    fn failed_message_writes_no_bytes() {
        let mut writer = PacketWriter::default();
        writer.message(|bytes| bytes.push(1));
        let before = writer.bytes().to_vec();
        let failed = writer.try_message(|bytes| {
            bytes.push(2);
            Err("no")
        });
        assert_eq!(failed, Err("no"));
        assert_eq!((writer.bytes(), writer.sequence()), (&before[..], 1));
    }
}
