//! Packets: the frames of MySQL's protocol.
//!
//! ```text
//! message = { full packet } packet
//! packet  = length: u24   sequence: u8   payload: length bytes     length < 2^24 - 1
//! full packet = a packet whose length is 2^24 - 1: the message goes on in the next one
//! ```
//! Numbers are little-endian. A command begins at sequence 0 and its reply goes on counting.

/// Bytes before each payload.
pub const HEADER_BYTES: usize = 4;
/// The payload length that says that the message goes on.
pub const FULL_PAYLOAD: usize = 0xFF_FFFF;

/// Bytes of a buffer that are kept for the next message.
const KEPT_BYTES: usize = 64 << 10;
/// The least room that one read gets.
const READ_BYTES: usize = 4 << 10;
/// The most room that is made for a packet before its bytes have come.
const AHEAD_BYTES: usize = 1 << 20;

/// Why a connection's input cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// A packet is not the next one.
    #[error("got packet {found} where packet {expected} was due")]
    OutOfOrder {
        /// The sequence number that was due.
        expected: u8,
        /// The one that came.
        found: u8,
    },
    /// A message is longer than the limit.
    #[error("got a message above the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
        /// The packet that goes beyond it.
        sequence: u8,
    },
}

impl PacketError {
    /// The sequence number that the client expects an answer at.
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
    /// What it says.
    pub payload: &'r [u8],
    /// The sequence number that a reply begins at.
    pub reply_sequence: u8,
}

/// Cuts one connection's input into messages.
#[derive(Debug)]
pub struct PacketReader {
    buffer: Vec<u8>,
    /// Where the next packet begins.
    start: usize,
    /// The payloads so far of a message in several packets.
    joined: Vec<u8>,
    /// Whether `joined` was handed out.
    is_joined_taken: bool,
    /// The sequence number that is due.
    sequence: u8,
    /// Whether sequence numbers are compared; inside the compressed protocol they are not.
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

    /// Most bytes of a message from here on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Stops comparing sequence numbers: the compressed protocol counts its own packets.
    pub fn ignore_order(&mut self) {
        self.is_ordered = false;
    }

    /// The sequence number that is due: the first of a reply to the message that came last.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Sets the sequence number that is due: 0 before a command, the one after the reply's last
    /// where the client has to answer.
    pub fn expect(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The buffer to append input to, with room for one read. To be called when
    /// [`PacketReader::next_message`] has nothing more.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.reclaim();
        let missing = self.announced().saturating_sub(self.buffer.len());
        self.buffer.reserve(missing.clamp(READ_BYTES, AHEAD_BYTES));
        &mut self.buffer
    }

    /// The next whole message.
    ///
    /// # Errors
    /// [`PacketError::OutOfOrder`] if a packet does not have the sequence number that is due,
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

    /// Whether a part of a message has come.
    pub fn is_partial(&self) -> bool {
        self.start < self.buffer.len() || (!self.joined.is_empty() && !self.is_joined_taken)
    }

    /// Bytes that the reader takes in memory.
    pub fn held_bytes(&self) -> usize {
        self.buffer.capacity() + self.joined.capacity()
    }

    /// Takes out the bytes that no message was made of, for another reader.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let rest = self.buffer.split_off(self.start.min(self.buffer.len()));
        self.buffer.clear();
        self.start = 0;
        rest
    }

    /// The length of the packet that begins, once its header is there and right.
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

    /// Where the packet that begins will end in the buffer.
    fn announced(&self) -> usize {
        match self.check_header() {
            Ok(Some(length)) => self.start + HEADER_BYTES + length,
            _ => self.start + HEADER_BYTES,
        }
    }

    /// Frees the room of packets that were taken.
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

/// Packets on their way out: each is written in place, its header filled in when it ends.
#[derive(Debug, Default)]
pub struct PacketWriter {
    bytes: Vec<u8>,
    sequence: u8,
}

impl PacketWriter {
    /// Counts on from this sequence number.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// The next packet's sequence number.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Writes one message: whatever `payload` appends.
    pub fn message(&mut self, payload: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEADER_BYTES]);
        payload(&mut self.bytes);
        self.end(start);
    }

    /// As [`PacketWriter::message`], for a payload that may fail.
    ///
    /// # Errors
    /// That of `payload`; nothing is written then.
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

    /// All whole packets that wait to be sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that the writer takes in memory.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Forgets what was sent.
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

    /// Cuts the message at `start` into packets. Rare, so that it may copy.
    fn split(&mut self, start: usize, length: usize) {
        let payload = self.bytes.split_off(start + HEADER_BYTES);
        self.bytes.truncate(start);
        self.bytes.reserve(length + (length / FULL_PAYLOAD + 1) * HEADER_BYTES);
        let pieces = payload.chunks(FULL_PAYLOAD);
        // A message that fills its last packet is ended by an empty one.
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
