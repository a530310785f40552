//! Commands: the first byte of a message, and the fields after it.

use super::encode::Fields;

/// A command, borrowed from its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Close the connection.
    Quit,
    /// Select a database.
    InitDb(&'a [u8]),
    /// Run a statement.
    Query(&'a [u8]),
    /// Return the columns of a table whose names match a pattern.
    FieldList {
        /// The table.
        table: &'a [u8],
        /// The pattern; an empty one matches all names.
        pattern: &'a [u8],
    },
    /// Return a line of server statistics.
    Statistics,
    /// List the connections.
    ProcessInfo,
    /// Kill a connection.
    ProcessKill(u32),
    /// Check that the server is alive.
    Ping,
    /// Log in as another user. Holds the packet without its first byte.
    ChangeUser(&'a [u8]),
    /// Prepare a statement.
    Prepare(&'a [u8]),
    /// Run a prepared statement.
    Execute {
        /// The number of the statement.
        id: u32,
        /// Whether to keep the rows for [`Command::Fetch`].
        cursor: bool,
        /// The values of its parameters.
        parameters: &'a [u8],
    },
    /// Append to a parameter's value.
    SendLongData {
        /// The number of the statement.
        id: u32,
        /// The position of the parameter.
        parameter: u16,
        /// The bytes.
        data: &'a [u8],
    },
    /// Drop a prepared statement. This has no reply.
    Close(u32),
    /// Drop a prepared statement's long data and rows.
    Reset(u32),
    /// Return further rows of a prepared statement.
    Fetch {
        /// The number of the statement.
        id: u32,
        /// The most rows to return.
        rows: u32,
    },
    /// Set whether a text may hold several statements.
    MultiStatements(bool),
    /// Reset the session and keep the user.
    ResetConnection,
    /// A command that this server does not support.
    Unknown,
    /// A supported command with missing fields.
    Malformed,
}

const CURSOR_READ_ONLY: u8 = 1;

impl<'a> Command<'a> {
    /// Parses a message.
    pub fn parse(message: &'a [u8]) -> Self {
        let Some((code, rest)) = message.split_first() else { return Self::Malformed };
        let mut fields = Fields::new(rest);
        let command = match code {
            0x01 => Some(Self::Quit),
            0x02 => Some(Self::InitDb(rest)),
            0x03 => Some(Self::Query(rest)),
            0x04 => Some(Self::FieldList { table: fields.text(), pattern: fields.rest() }),
            0x09 => Some(Self::Statistics),
            0x0A => Some(Self::ProcessInfo),
            0x0C => fields.u32().map(Self::ProcessKill),
            0x0E => Some(Self::Ping),
            0x11 => Some(Self::ChangeUser(rest)),
            0x16 => Some(Self::Prepare(rest)),
            0x17 => Self::parse_execute(&mut fields),
            0x18 => Self::parse_long_data(&mut fields),
            0x19 => fields.u32().map(Self::Close),
            0x1A => fields.u32().map(Self::Reset),
            0x1B => match fields.u16() {
                Some(0) => Some(Self::MultiStatements(true)),
                Some(1) => Some(Self::MultiStatements(false)),
                Some(_) => Some(Self::Unknown),
                None => None,
            },
            0x1C => fields.u32().zip(fields.u32()).map(|(id, rows)| Self::Fetch { id, rows }),
            0x1F => Some(Self::ResetConnection),
            _ => Some(Self::Unknown),
        };
        command.unwrap_or(Self::Malformed)
    }

    /// The name in SHOW PROCESSLIST.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Quit => "Quit",
            Self::InitDb(_) => "Init DB",
            Self::Query(_) => "Query",
            Self::FieldList { .. } => "Field List",
            Self::Statistics => "Statistics",
            Self::ProcessInfo => "Processlist",
            Self::ProcessKill(_) => "Kill",
            Self::Ping => "Ping",
            Self::ChangeUser(_) => "Change user",
            Self::Prepare(_) => "Prepare",
            Self::Execute { .. } => "Execute",
            Self::SendLongData { .. } => "Long Data",
            Self::Close(_) => "Close stmt",
            Self::Reset(_) => "Reset stmt",
            Self::Fetch { .. } => "Fetch",
            Self::MultiStatements(_) => "Set option",
            Self::ResetConnection => "Reset Connection",
            Self::Unknown | Self::Malformed => "Error",
        }
    }

    fn parse_execute(fields: &mut Fields<'a>) -> Option<Self> {
        let id = fields.u32()?;
        let cursor = fields.u8()? & CURSOR_READ_ONLY != 0;
        let _iterations = fields.u32()?;
        Some(Self::Execute { id, cursor, parameters: fields.rest() })
    }

    fn parse_long_data(fields: &mut Fields<'a>) -> Option<Self> {
        let id = fields.u32()?;
        let parameter = fields.u16()?;
        Some(Self::SendLongData { id, parameter, data: fields.rest() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands() {
        assert_eq!(Command::parse(b"\x03SELECT 1"), Command::Query(b"SELECT 1"));
        assert_eq!(Command::parse(b"\x01"), Command::Quit);
        assert_eq!(
            Command::parse(b"\x04pages\0t%"),
            Command::FieldList { table: b"pages", pattern: b"t%" }
        );
        assert_eq!(
            Command::parse(&[0x17, 2, 0, 0, 0, 1, 1, 0, 0, 0, 9]),
            Command::Execute { id: 2, cursor: true, parameters: &[9] }
        );
        assert_eq!(
            Command::parse(&[0x18, 2, 0, 0, 0, 1, 0, 7, 8]),
            Command::SendLongData { id: 2, parameter: 1, data: &[7, 8] }
        );
        assert_eq!(Command::parse(&[0x1B, 0, 0]), Command::MultiStatements(true));
        assert_eq!(
            Command::parse(&[0x1C, 1, 0, 0, 0, 5, 0, 0, 0]),
            Command::Fetch { id: 1, rows: 5 }
        );
        assert_eq!(Command::parse(&[0x17, 2, 0]), Command::Malformed);
        assert_eq!(Command::parse(&[]), Command::Malformed);
        for unknown in [0x00, 0x12, 0x13, 0x1E, 0x20, 0xFA, 0xFF] {
            assert_eq!(Command::parse(&[unknown, 1]), Command::Unknown, "{unknown:#x}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            let _ = Command::parse(&bytes).name();
        }
    }
}
