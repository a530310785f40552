//! The format description: the first event of a binlog file, which names the server and its version.
//!
//! ```text
//! version u16 (4) | server version, 50 bytes, zero-padded | created u32 | header length u8 (19)
//! | post-header length of each event kind from 1 on, u8 each | checksum algorithm u8
//! ```

use crate::mysql::bytes::{Reader, UnexpectedEnd};

/// What is needed to parse later events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatDescription {
    /// The server's version, like `10.11.19-MariaDB-log`.
    pub server_version: String,
    post_header_lengths: Vec<u8>,
}

impl FormatDescription {
    /// Reads the event's body, without its checksum and algorithm.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if the body ends too early.
    pub fn parse(body: &[u8]) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        reader.skip(2)?;
        let name = reader.bytes(50)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        reader.skip(4 + 1)?;
        Ok(Self {
            server_version: String::from_utf8_lossy(name).into_owned(),
            post_header_lengths: reader.rest().to_vec(),
        })
    }

    /// The length in bytes of the fixed part of events of this kind; `None` if the server does not know the kind.
    pub fn post_header_length(&self, kind: u8) -> Option<usize> {
        let index = usize::from(kind).checked_sub(1)?;
        self.post_header_lengths.get(index).map(|length| usize::from(*length))
    }

    /// The length in bytes of the table id in table map and rows events of this kind: 6, or 4 in very old ones.
    pub fn table_id_length(&self, kind: u8) -> usize {
        if self.post_header_length(kind) == Some(6) { 4 } else { 6 }
    }

    /// Whether MariaDB wrote the file.
    pub fn is_mariadb(&self) -> bool {
        self.server_version.contains("MariaDB")
    }
}
