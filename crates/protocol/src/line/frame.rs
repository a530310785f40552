//! Frames: a request is the bytes before CRLF. A CR or LF alone ends nothing.

use std::collections::VecDeque;

use memchr::memchr_iter;

/// The most bytes of an empty buffer that are kept for the next request.
const KEPT_BYTES: usize = 64 << 10;

/// Limits of the input of a connection that was not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// The most bytes of a frame.
    pub frame_bytes: usize,
    /// The most complete frames that wait.
    pub pending_frames: usize,
    /// The size of waiting frames from which on no more input is taken.
    pub pending_bytes: usize,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self { frame_bytes: 1 << 20, pending_frames: 1024, pending_bytes: 4 << 20 }
    }
}

/// Why a connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame is longer than the limit.
    #[error("request too large: a request takes at most {limit} bytes")]
    TooLarge {
        /// [`FrameLimits::frame_bytes`].
        limit: usize,
    },
}

/// Splits a connection's input into frames.
#[derive(Debug)]
pub struct FrameReader {
    limits: FrameLimits,
    buffer: Vec<u8>,
    /// The position of the next frame.
    start: usize,
    /// The positions of the CRLFs of complete frames.
    ends: VecDeque<usize>,
    /// The number of bytes after the last complete frame.
    partial: usize,
}

impl FrameReader {
    /// An empty reader.
    pub fn new(limits: FrameLimits) -> Self {
        Self { limits, buffer: Vec::new(), start: 0, ends: VecDeque::new(), partial: 0 }
    }

    /// Appends bytes and returns how many were taken. Fewer than all means that enough complete
    /// frames wait: take them, then push the rest.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`] if a frame is longer than the limit. Answer the waiting frames,
    /// then close the connection.
    pub fn push(&mut self, bytes: &[u8]) -> Result<usize, FrameError> {
        self.reclaim();
        let mut taken = 0;
        while self.has_room() {
            let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) else { break };
            let (piece, is_end) = self.first_piece(rest);
            // A CR at the end may be the first half of a CRLF.
            let end_bytes = if is_end { 2 } else { usize::from(piece.ends_with(b"\r")) };
            let frame_bytes = self.partial + piece.len() - end_bytes;
            if frame_bytes > self.limits.frame_bytes {
                return Err(FrameError::TooLarge { limit: self.limits.frame_bytes });
            }
            self.buffer.extend_from_slice(piece);
            taken += piece.len();
            self.partial += piece.len();
            if is_end {
                self.ends.push_back(self.buffer.len() - 2);
                self.partial = 0;
            }
        }
        Ok(taken)
    }

    /// The next complete frame, without its CRLF.
    pub fn next_frame(&mut self) -> Option<&[u8]> {
        let end = self.ends.pop_front()?;
        let frame = self.buffer.get(self.start..end);
        self.start = end + 2;
        frame
    }

    /// The bytes in the buffer: waiting frames and the beginning of the next one.
    pub fn held_bytes(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn has_room(&self) -> bool {
        let whole_bytes = self.held_bytes() - self.partial;
        self.ends.len() < self.limits.pending_frames.max(1)
            && whole_bytes < self.limits.pending_bytes.max(1)
    }

    /// The bytes up to and including the first CRLF, or all of them, and whether there is a CRLF.
    fn first_piece<'a>(&self, bytes: &'a [u8]) -> (&'a [u8], bool) {
        for at in memchr_iter(b'\n', bytes) {
            let before = match at.checked_sub(1) {
                Some(before) => bytes.get(before),
                None => self.buffer.last().filter(|_| self.partial > 0),
            };
            if before == Some(&b'\r') {
                return (bytes.get(..=at).unwrap_or(bytes), true);
            }
        }
        (bytes, false)
    }

    /// Frees the room of frames that were taken.
    fn reclaim(&mut self) {
        if self.start == 0 || (!self.ends.is_empty() && self.start < KEPT_BYTES) {
            return;
        }
        self.buffer.drain(..self.start);
        self.ends.iter_mut().for_each(|end| *end -= self.start);
        self.start = 0;
        self.buffer.shrink_to(KEPT_BYTES);
    }
}

/// Whether a frame is a line of an HTTP request. Then the client is a browser by which a web page
/// attacks this server, so what follows must not be executed.
pub fn is_http(frame: &[u8]) -> bool {
    let frame = frame.trim_ascii();
    if frame.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"Host:")) {
        return true;
    }
    let mut words = frame.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let version = words.next_back().unwrap_or_default();
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_alphabetic);
    let is_target = target.starts_with(b"/")
        || target == b"*"
        || method.eq_ignore_ascii_case(b"CONNECT")
        || target.windows(3).any(|three| three == b"://");
    let is_version = version.strip_prefix(b"HTTP/").is_some_and(|number| {
        !number.is_empty() && number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
    });
    is_method && is_target && is_version
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drain(reader: &mut FrameReader, into: &mut Vec<Vec<u8>>) {
        while let Some(frame) = reader.next_frame() {
            into.push(frame.to_vec());
        }
    }

    fn feed(reader: &mut FrameReader, mut bytes: &[u8], into: &mut Vec<Vec<u8>>) {
        while !bytes.is_empty() {
            let taken = reader.push(bytes).unwrap();
            bytes = &bytes[taken..];
            drain(reader, into);
        }
    }

    /// The definition: split at each CRLF; the last piece is not a complete frame.
    fn oracle(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = vec![Vec::new()];
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            if rest.starts_with(b"\r\n") {
                frames.push(Vec::new());
                rest = &rest[2..];
            } else {
                frames.last_mut().unwrap().push(*first);
                rest = after;
            }
        }
        frames.pop();
        frames
    }

    #[test]
    fn http_request_lines_are_recognized() {
        for line in [
            "GET / HTTP/1.1",
            "POST /PUT HTTP/1.1",
            "PUT /articles HTTP/1.0",
            "DELETE /a?b=c HTTP/1.1",
            "SEARCH /articles HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "PRI * HTTP/2.0",
            "GET http://localhost:11016/ HTTP/1.1",
            "CONNECT localhost:11016 HTTP/1.1",
            "post / HTTP/1.1 ",
            "Host: localhost:11016",
            "host:evil.example",
        ] {
            assert!(is_http(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "SEARCH articles HTTP/1.1",
            "SEARCH articles the HTTP/1.1 protocol",
            "SEARCH articles / HTTP/1.1",
            "SEARCH articles 'GET / HTTP/1.1'",
            "PUT articles {\"a\": \"/ HTTP/1.1\"}",
            "GET articles /index",
            "GET articles 1",
            "COUNT hosts Host:",
        ] {
            assert!(!is_http(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn only_crlf_ends_a_frame() {
        let mut reader = FrameReader::new(FrameLimits::default());
        let mut frames = Vec::new();
        feed(&mut reader, b"a\nb\rc\r\n\r\nrest", &mut frames);
        assert_eq!(frames, [b"a\nb\rc".to_vec(), Vec::new()]);
        assert_eq!(reader.held_bytes(), 4);
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_and_earlier_ones_stay() {
        let mut reader = FrameReader::new(FrameLimits { frame_bytes: 4, ..FrameLimits::default() });
        assert_eq!(reader.push(b"1234\r\n"), Ok(6));
        assert_eq!(reader.push(b"12345\r\n"), Err(FrameError::TooLarge { limit: 4 }));
        assert_eq!(reader.next_frame(), Some(b"1234".as_slice()));
        assert_eq!(reader.next_frame(), None);
    }

    #[test]
    fn the_limit_is_the_same_wherever_reads_are_cut() {
        for cut in 1..6 {
            let limits = FrameLimits { frame_bytes: 4, ..FrameLimits::default() };
            let mut reader = FrameReader::new(limits);
            let (first, second) = b"1234\r\n".split_at(cut);
            assert_eq!(reader.push(first), Ok(cut));
            assert_eq!(reader.push(second), Ok(6 - cut), "cut at {cut}");
            assert_eq!(reader.next_frame(), Some(b"1234".as_slice()));
            assert_eq!(reader.push(b"1234\r"), Ok(5));
            assert!(reader.push(b"x").is_err());
        }
    }

    #[test]
    fn pending_frames_stop_reading() {
        let limits = FrameLimits { frame_bytes: 10, pending_frames: 2, pending_bytes: 100 };
        let mut reader = FrameReader::new(limits);
        assert_eq!(reader.push(b"a\r\nb\r\nc\r\n"), Ok(6));
        assert_eq!(reader.push(b"c\r\n"), Ok(0));
        assert_eq!(reader.next_frame(), Some(b"a".as_slice()));
        assert_eq!(reader.push(b"c\r\n"), Ok(3));
        let mut reader = FrameReader::new(FrameLimits { pending_bytes: 4, ..limits });
        assert_eq!(reader.push(b"ab\r\nc\r\n"), Ok(4));
    }

    proptest! {
        #[test]
        fn frames_do_not_depend_on_chunks(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'x')], 0..200),
            chunks in proptest::collection::vec(1usize..9, 1..50),
            pending_frames in 1usize..4,
        ) {
            let limits = FrameLimits { pending_frames, ..FrameLimits::default() };
            let mut reader = FrameReader::new(limits);
            let mut frames = Vec::new();
            let mut rest = bytes.as_slice();
            for size in chunks.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                feed(&mut reader, chunk, &mut frames);
                rest = after;
            }
            prop_assert_eq!(frames, oracle(&bytes));
        }
    }
}
