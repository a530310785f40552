//! The compressed protocol: frames whose content is compressed packets.
//!
//! ```text
//! compressed packet = length: u24   sequence: u8   plain length: u24   content: length bytes
//! ```
//! The decompressed content has `plain length` bytes of the ordinary stream. A plain length of 0
//! means that it is not compressed. Packets of the ordinary stream may be split anywhere.

use std::{
    cell::RefCell,
    io::{self, Read, Write},
};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::packet::{FULL_PAYLOAD, u24_of, usize_of};

const HEADER_BYTES: usize = 7;
/// Shorter pieces would not get smaller.
const LEAST_COMPRESSED: usize = 50;
/// The memory that is reserved before anything is decompressed.
const INFLATED_AT_ONCE: u64 = 64 << 10;
/// The zstd window, as a power of two. It covers a whole packet.
const WINDOW_LOG: u32 = 24;
/// The plain bytes of a packet when writing, so that a client can read before everything is
/// compressed.
const PIECE_BYTES: usize = 1 << 20;

thread_local! {
    /// Shared by the connections of a thread, because creating one costs more than compressing most
    /// replies, and one for each connection would take hundreds of kilobytes.
    static DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(Compression::fast(), true));
    static INFLATE: RefCell<Decompress> = RefCell::new(Decompress::new(true));
}

/// The algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// zlib at its fast level.
    Zlib,
    /// zstd at the level that the client requested.
    Zstd(i32),
}

/// The compression of one connection, in both directions.
#[derive(Debug)]
pub struct Compressor {
    algorithm: Algorithm,
    /// Input that was not decompressed yet.
    input: Vec<u8>,
    sequence: u8,
}

impl Compressor {
    /// The compression of a connection that switches to it.
    pub fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, input: Vec::new(), sequence: 0 }
    }

    /// The buffer to append input to.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.input.reserve(4 << 10);
        &mut self.input
    }

    /// The memory it takes, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.input.capacity()
    }

    /// Decompresses whole packets into `plain`, until that holds at least `most` bytes. False if
    /// the next packet is incomplete.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if a packet does not hold what its header says, or the
    /// algorithm's error if it cannot be decompressed. The connection must then be closed.
    pub fn decompress(&mut self, plain: &mut Vec<u8>, most: usize) -> io::Result<bool> {
        let mut start = 0;
        let mut is_stopped = false;
        while let Some((sequence, length, plain_length)) = self.header_at(start) {
            let content = start + HEADER_BYTES;
            if plain.len() >= most {
                is_stopped = true;
                break;
            }
            let Some(content) = self.input.get(content..content + length) else { break };
            match plain_length {
                0 => plain.extend_from_slice(content),
                _ => expand(self.algorithm, content, plain_length, plain)?,
            }
            self.sequence = sequence.wrapping_add(1);
            start += HEADER_BYTES + length;
        }
        self.input.drain(..start);
        self.input.shrink_to(64 << 10);
        Ok(is_stopped)
    }

    /// Sets the sequence number of the next packet, which continues the request's or starts again.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Compresses bytes of the ordinary stream into `wire`.
    ///
    /// # Errors
    /// The algorithm's error if it fails.
    pub fn compress(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        for piece in plain.chunks(PIECE_BYTES) {
            let start = wire.len();
            wire.extend_from_slice(&[0; HEADER_BYTES]);
            let mut plain_length = 0;
            if piece.len() >= LEAST_COMPRESSED {
                shrink(self.algorithm, piece, wire)?;
                plain_length = piece.len();
            }
            if plain_length == 0 || wire.len() - start - HEADER_BYTES >= piece.len() {
                wire.truncate(start + HEADER_BYTES);
                wire.extend_from_slice(piece);
                plain_length = 0;
            }
            let [low, middle, high] = u24_of(wire.len() - start - HEADER_BYTES);
            let [plain_low, plain_middle, plain_high] = u24_of(plain_length);
            if let Some(header) = wire.get_mut(start..start + HEADER_BYTES) {
                let sequence = self.sequence;
                header.copy_from_slice(&[
                    low,
                    middle,
                    high,
                    sequence,
                    plain_low,
                    plain_middle,
                    plain_high,
                ]);
            }
            self.sequence = self.sequence.wrapping_add(1);
        }
        Ok(())
    }

    /// The sequence number, length and plain length of the packet at this position.
    fn header_at(&self, start: usize) -> Option<(u8, usize, usize)> {
        let header = self.input.get(start..start + HEADER_BYTES)?;
        let &[low, middle, high, sequence, plain_low, plain_middle, plain_high] = header else {
            return None;
        };
        let length = usize_of([low, middle, high]);
        Some((sequence, length, usize_of([plain_low, plain_middle, plain_high])))
    }
}

fn expand(
    algorithm: Algorithm,
    content: &[u8],
    plain_length: usize,
    plain: &mut Vec<u8>,
) -> io::Result<()> {
    let start = plain.len();
    // One byte more than announced is accepted, so that surplus data is noticed.
    let most = plain_length.min(FULL_PAYLOAD) as u64 + 1;
    match algorithm {
        Algorithm::Zlib => INFLATE.with_borrow_mut(|it| inflate(it, content, most, plain))?,
        Algorithm::Zstd(_) => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(content)?;
            // A frame may not require a larger window than a packet can fill.
            decoder.window_log_max(WINDOW_LOG)?;
            decoder.take(most).read_to_end(plain)?;
        }
    }
    if plain.len() - start != plain_length {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a compressed packet does not hold what its header says",
        ));
    }
    Ok(())
}

/// Appends the decompressed content, at most `most` bytes.
fn inflate(
    stream: &mut Decompress,
    content: &[u8],
    most: u64,
    plain: &mut Vec<u8>,
) -> io::Result<()> {
    stream.reset(true);
    while stream.total_out() < most {
        let before = (stream.total_in(), stream.total_out());
        let rest = content.get(before.0 as usize..).unwrap_or_default();
        // A header may announce more than there is.
        let room = (most - before.1).min(INFLATED_AT_ONCE) as usize;
        let start = plain.len();
        plain.resize(start + room, 0);
        let room = plain.get_mut(start..).unwrap_or_default();
        let status = stream.decompress(rest, room, FlushDecompress::None);
        plain.truncate(start + (stream.total_out() - before.1) as usize);
        let stuck = (stream.total_in(), stream.total_out()) == before;
        if status? == Status::StreamEnd || stuck {
            break;
        }
    }
    Ok(())
}

/// Appends the compressed piece. If it does not compress, its size is about that of the piece.
fn deflate(stream: &mut Compress, piece: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
    stream.reset();
    let start = wire.len();
    wire.resize(start + piece.len(), 0);
    let room = wire.get_mut(start..).unwrap_or_default();
    let status = stream.compress(piece, room, FlushCompress::Finish)?;
    if status == Status::StreamEnd {
        wire.truncate(start + stream.total_out() as usize);
    }
    Ok(())
}

fn shrink(algorithm: Algorithm, piece: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
    match algorithm {
        Algorithm::Zlib => DEFLATE.with_borrow_mut(|it| deflate(it, piece, wire))?,
        Algorithm::Zstd(level) => {
            let mut encoder = zstd::stream::write::Encoder::new(wire, level)?;
            encoder.write_all(piece)?;
            encoder.finish()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip(algorithm: Algorithm, plain: &[u8], piece: usize) -> Vec<u8> {
        let mut wire = Vec::new();
        Compressor::new(algorithm).compress(plain, &mut wire).unwrap();
        let mut reader = Compressor::new(algorithm);
        let mut read = Vec::new();
        for piece in wire.chunks(piece) {
            reader.room().extend_from_slice(piece);
            assert!(!reader.decompress(&mut read, usize::MAX).unwrap());
        }
        read
    }

    proptest! {
        #[test]
        fn compressed_packets_round_trip(
            plain in prop::collection::vec(0_u8..4, 0..5000),
            piece in 1_usize..3000,
        ) {
            for algorithm in [Algorithm::Zlib, Algorithm::Zstd(3)] {
                prop_assert_eq!(&round_trip(algorithm, &plain, piece), &plain);
            }
        }

        #[test]
        fn arbitrary_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            for algorithm in [Algorithm::Zlib, Algorithm::Zstd(3)] {
                let mut reader = Compressor::new(algorithm);
                reader.room().extend_from_slice(&bytes);
                let _ = reader.decompress(&mut Vec::new(), usize::MAX);
            }
        }
    }

    #[test]
    fn long_streams_and_random_bytes() {
        let mut seed = 1_u64;
        let mut plain: Vec<u8> = vec![b'a'; 3 << 20];
        plain.extend((0..1 << 20).map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        }));
        for algorithm in [Algorithm::Zlib, Algorithm::Zstd(1)] {
            assert!(round_trip(algorithm, &plain, 70_000) == plain);
        }
    }

    #[test]
    fn a_packet_that_expands_beyond_its_header_is_refused() {
        for algorithm in [Algorithm::Zlib, Algorithm::Zstd(3)] {
            let mut wire = Vec::new();
            Compressor::new(algorithm).compress(&[7; 100_000], &mut wire).unwrap();
            wire[4..7].copy_from_slice(&u24_of(1000));
            let mut reader = Compressor::new(algorithm);
            reader.room().extend_from_slice(&wire);
            let mut read = Vec::new();
            assert!(reader.decompress(&mut read, usize::MAX).is_err());
            assert!(read.len() <= 1001);
        }
    }

    #[test]
    fn a_frame_that_asks_for_a_large_window_is_refused() {
        let mut content = Vec::new();
        let mut encoder = zstd::stream::write::Encoder::new(&mut content, 1).unwrap();
        encoder.window_log(WINDOW_LOG + 3).unwrap();
        encoder.write_all(&[7; 1000]).unwrap();
        encoder.finish().unwrap();
        let [low, middle, high] = u24_of(content.len());
        let [plain_low, plain_middle, plain_high] = u24_of(1000);
        let mut wire = vec![low, middle, high, 0, plain_low, plain_middle, plain_high];
        wire.extend(content);
        let mut reader = Compressor::new(Algorithm::Zstd(1));
        reader.room().extend_from_slice(&wire);
        assert!(reader.decompress(&mut Vec::new(), usize::MAX).is_err());
    }

    #[test]
    fn decompression_waits_for_its_reader() {
        let mut wire = Vec::new();
        let mut writer = Compressor::new(Algorithm::Zlib);
        for _ in 0..3 {
            writer.compress(&[1; 1000], &mut wire).unwrap();
        }
        let mut reader = Compressor::new(Algorithm::Zlib);
        reader.room().extend_from_slice(&wire);
        let mut read = Vec::new();
        assert!(reader.decompress(&mut read, 500).unwrap());
        assert_eq!(read.len(), 1000);
        assert!(!reader.decompress(&mut read, usize::MAX).unwrap());
        assert_eq!(read.len(), 3000);
    }
}
