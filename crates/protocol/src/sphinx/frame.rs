//! The heads of requests and replies.
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

/// What the server sends first: the version of the protocol.
pub const GREETING: [u8; GREETING_BYTES] = 1_u32.to_be_bytes();
/// Bytes of either side's greeting. What the client's says does not matter.
pub const GREETING_BYTES: usize = 4;
/// Bytes of a request's head.
pub const HEAD_BYTES: usize = 8;
/// Most bytes of a request's body: `max_packet_size` of `searchd`.
pub const MAX_REQUEST_BYTES: usize = 8 << 20;

/// How a reply begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As asked.
    Ok = 0,
    /// The body is a message.
    Error = 1,
    /// The body is a message; the same request may be answered later.
    Retry = 2,
    /// As asked; the body begins with a message.
    Warning = 3,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Search.
    Search,
    /// Mark words in texts.
    Excerpt,
    /// Change attributes.
    Update,
    /// Tell the words of a text.
    Keywords,
    /// Keep the connection, or not. Has no reply.
    Persist,
    /// Figures of the server, or of the last search.
    Status,
    /// Write changed attributes to disk.
    FlushAttributes,
    /// Are you there?
    Ping,
    /// A command that is known by this name and not answered.
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

    /// The newest version of it, which replies tell.
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

/// A request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// What is asked for.
    pub command: Command,
    /// The client's version of the command.
    pub version: u16,
    /// Bytes of the body, [`MAX_REQUEST_BYTES`] at most.
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

/// Appends a reply whose body `body` appends.
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

/// Appends a reply that says why there is none. Its version is 0, as that of `searchd` is.
pub fn put_error(out: &mut Vec<u8>, message: &str) {
    put_reply(out, Status::Error, 0, |out| put_text(out, message.as_bytes()));
}

/// Appends a reply that asks the client to come again later.
pub fn put_retry(out: &mut Vec<u8>, message: &str) {
    put_reply(out, Status::Retry, 0, |out| put_text(out, message.as_bytes()));
}

/// Appends a list of texts without their number.
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
