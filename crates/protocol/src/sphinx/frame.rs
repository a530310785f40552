//! The headers of requests and replies.
//!
//! ```text
//! greeting := u32 1                                     from the server, then any u32 from the client
//! request  := u16 command, u16 version, u32 length, body
//! reply    := u16 status, u16 version, u32 length, body
//! ```

use super::{
    RequestError,
    encode::{put_text, put_u16},
};

/// The server's greeting: the version of the protocol.
pub const GREETING: [u8; GREETING_BYTES] = 1_u32.to_be_bytes();
/// The bytes of a greeting, the server's or the client's. The content of the client's greeting is ignored.
pub const GREETING_BYTES: usize = 4;
/// The bytes of a request's header.
pub const HEAD_BYTES: usize = 8;
/// The most bytes of a request's body: `max_packet_size` of `searchd`.
pub const MAX_REQUEST_BYTES: usize = 8 << 20;

/// The status of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The request was answered.
    Ok = 0,
    /// The request failed; the body is the message.
    Error = 1,
    /// The request cannot be answered now; the body is the message.
    Retry = 2,
    /// The request was answered; the body begins with a warning.
    Warning = 3,
}

/// The command of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Search.
    Search,
    /// Make excerpts.
    Excerpt,
    /// Change the values of attributes.
    Update,
    /// Split a text into words.
    Keywords,
    /// Keep the connection open after replies, or not. It has no reply.
    Persist,
    /// Report the status of the server, or of the last search.
    Status,
    /// Write changed attributes to disk.
    FlushAttributes,
    /// Answer with the number of the request.
    Ping,
    /// A command of this name, which this server does not support.
    Unanswered(&'static str),
}

/// The newest versions of commands, those of 2.2.11.
const SEARCH_VERSION: u16 = 0x11F;
const EXCERPT_VERSION: u16 = 0x104;
const UPDATE_VERSION: u16 = 0x103;
const STATUS_VERSION: u16 = 0x101;
const FIRST_VERSION: u16 = 0x100;

impl Command {
    fn numbered(code: u16) -> Option<Self> {
        Some(match code {
            0 => Self::Search,
            1 => Self::Excerpt,
            2 => Self::Update,
            3 => Self::Keywords,
            4 => Self::Persist,
            5 => Self::Status,
            6 => Self::Unanswered("6"),
            7 => Self::FlushAttributes,
            8 => Self::Unanswered("sphinxql"),
            9 => Self::Ping,
            10 => Self::Unanswered("delete"),
            11 => Self::Unanswered("uservar"),
            _ => return None,
        })
    }

    /// The newest version of the command. Replies carry it.
    pub fn version(self) -> u16 {
        match self {
            Self::Search => SEARCH_VERSION,
            Self::Excerpt => EXCERPT_VERSION,
            Self::Update => UPDATE_VERSION,
            Self::Status => STATUS_VERSION,
            Self::Keywords
            | Self::Persist
            | Self::FlushAttributes
            | Self::Ping
            | Self::Unanswered(_) => FIRST_VERSION,
        }
    }

    /// Checks a client's version of it.
    ///
    /// # Errors
    /// [`RequestError::MajorVersion`] and [`RequestError::NewerVersion`].
    pub fn check_version(self, client: u16) -> Result<(), RequestError> {
        let ours = self.version();
        if client >> 8 != ours >> 8 {
            return Err(RequestError::MajorVersion { client, ours });
        }
        if client > ours {
            return Err(RequestError::NewerVersion { client, ours });
        }
        Ok(())
    }
}

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The command.
    pub command: Command,
    /// The client's version of the command.
    pub version: u16,
    /// The length of the body in bytes, at most [`MAX_REQUEST_BYTES`].
    pub length: usize,
}

impl RequestHead {
    /// Reads a head.
    ///
    /// # Errors
    /// [`RequestError::InvalidCommand`], after which the connection ends.
    pub fn parse(bytes: [u8; HEAD_BYTES]) -> Result<Self, RequestError> {
        let [c0, c1, v0, v1, length @ ..] = bytes;
        let code = u16::from_be_bytes([c0, c1]);
        let length = i32::from_be_bytes(length);
        let invalid = RequestError::InvalidCommand { code, length };
        let bytes = usize::try_from(length).ok().filter(|bytes| *bytes <= MAX_REQUEST_BYTES);
        let (Some(command), Some(length)) = (Command::numbered(code), bytes) else {
            return Err(invalid);
        };
        Ok(Self { command, version: u16::from_be_bytes([v0, v1]), length })
    }
}

/// Appends a reply. `body` appends its body.
pub fn put_reply(out: &mut Vec<u8>, status: Status, version: u16, body: impl FnOnce(&mut Vec<u8>)) {
    put_u16(out, status as u16);
    put_u16(out, version);
    let place = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = u32::try_from(out.len() - place - 4).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(slot) = out.get_mut(place..place + 4) {
        slot.copy_from_slice(&length);
    }
}

/// Appends an error reply. Its version is 0, as in `searchd`'s error replies.
pub fn put_error(out: &mut Vec<u8>, message: &str) {
    put_reply(out, Status::Error, 0, |out| put_text(out, message.as_bytes()));
}

/// Appends a reply that asks the client to try again later.
pub fn put_retry(out: &mut Vec<u8>, message: &str) {
    put_reply(out, Status::Retry, 0, |out| put_text(out, message.as_bytes()));
}

/// Appends texts one after the other, without their count.
pub fn put_texts<'t>(out: &mut Vec<u8>, texts: impl IntoIterator<Item = &'t [u8]>) {
    texts.into_iter().for_each(|text| put_text(out, text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(code: u16, version: u16, length: u32) -> Result<RequestHead, String> {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..2].copy_from_slice(&code.to_be_bytes());
        bytes[2..4].copy_from_slice(&version.to_be_bytes());
        bytes[4..].copy_from_slice(&length.to_be_bytes());
        RequestHead::parse(bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn request_heads_match_searchd() {
        let search = RequestHead { command: Command::Search, version: 0x119, length: 5 };
        assert_eq!(head(0, 0x119, 5), Ok(search));
        assert!(head(11, 0x100, 8 << 20).is_ok());
        // Each of these texts is what searchd 2.2.11 sent.
        for (code, length, text) in [
            (12, 4, "invalid command (code=12, len=4)"),
            (99, 4, "invalid command (code=99, len=4)"),
            (0, (8 << 20) + 1, "invalid command (code=0, len=8388609)"),
            (0, u32::MAX, "invalid command (code=0, len=-1)"),
        ] {
            assert_eq!(head(code, 0x100, length), Err(text.to_owned()));
        }
    }

    #[test]
    fn versions_match_searchd() {
        let check = |command: Command, version| {
            command.check_version(version).map_err(|error| error.to_string())
        };
        for (command, newest) in [
            (Command::Search, 0x11F),
            (Command::Excerpt, 0x104),
            (Command::Update, 0x103),
            (Command::Keywords, 0x100),
            (Command::Status, 0x101),
            (Command::FlushAttributes, 0x100),
            (Command::Ping, 0x100),
        ] {
            assert_eq!(check(command, newest), Ok(()));
            assert!(check(command, newest + 1).is_err(), "{command:?}");
        }
        // Each of these texts is what searchd 2.2.11 sent.
        for (version, text) in [
            (
                0x120,
                "client version is higher than daemon version (client is v.1.32, daemon is v.1.31)",
            ),
            (0x200, "major command version mismatch (expected v.1.x, got v.2.0)"),
            (0x21, "major command version mismatch (expected v.1.x, got v.0.33)"),
        ] {
            assert_eq!(check(Command::Search, version), Err(text.to_owned()));
        }
    }
}
