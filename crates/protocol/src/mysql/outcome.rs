//! The packets that end a result: OK, EOF and ERR.
//!
//! ```text
//! OK  = 0x00 or 0xFE  affected: number  last id: number  status: u16  warnings: u16
//!       [ info: bytes ]  [ session state: bytes, where the status says so ]
//! EOF = 0xFE  warnings: u16  status: u16
//! ERR = 0xFF  number: u16  "#" SQLSTATE  message
//! ```
//! Clients that do not expect EOF get an OK that begins with 0xFE instead.

use mysql_common::{
    constants::StatusFlags,
    packets::{ErrPacket, ServerError, SqlState},
    proto::MySerialize,
};
use remora_mysql::Charset;
use remora_sql::{Outcome, Status};

use super::{
    encode::{put_bytes, put_number},
    error::WireError,
    handshake::Capabilities,
};

/// The first byte of an OK that ends rows, and of EOF.
const END_OF_ROWS: u8 = 0xFE;

/// A change of the session's state that is reported to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// A system variable and its new value.
    Variable(String, String),
    /// The new current database.
    Database(String),
    /// Eight characters that describe the state of the transaction.
    Transaction(String),
}

/// The status flags of a session.
pub fn flags_of(status: Status) -> StatusFlags {
    let mut flags = StatusFlags::empty();
    flags.set(StatusFlags::SERVER_STATUS_IN_TRANS, status.in_transaction);
    flags.set(StatusFlags::SERVER_STATUS_AUTOCOMMIT, status.autocommit);
    flags.set(StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES, status.no_backslash_escapes);
    flags
}

/// Writes the OK of a statement without rows.
pub fn put_ok(
    out: &mut Vec<u8>,
    outcome: &Outcome,
    flags: StatusFlags,
    capabilities: Capabilities,
    changes: &[SessionChange],
) {
    out.push(0);
    put_ok_body(out, outcome, flags, capabilities, changes);
}

/// Writes the packet that ends rows, as the client expects it.
pub fn put_end_of_rows(
    out: &mut Vec<u8>,
    outcome: &Outcome,
    flags: StatusFlags,
    capabilities: Capabilities,
    changes: &[SessionChange],
) {
    if capabilities.contains(Capabilities::CLIENT_DEPRECATE_EOF) {
        out.push(END_OF_ROWS);
        put_ok_body(out, outcome, flags, capabilities, changes);
    } else {
        put_eof(out, outcome.warnings, flags);
    }
}

/// Writes EOF.
pub fn put_eof(out: &mut Vec<u8>, warnings: u16, flags: StatusFlags) {
    out.push(END_OF_ROWS);
    out.extend_from_slice(&warnings.to_le_bytes());
    out.extend_from_slice(&flags.bits().to_le_bytes());
}

/// Writes an error. The message is converted if a character set is given.
pub fn put_error(out: &mut Vec<u8>, error: &WireError, charset: Option<Charset>) {
    let mut state = [b'0'; 5];
    state.iter_mut().zip(error.code.state().bytes()).for_each(|(byte, given)| *byte = given);
    let mut encoded = Vec::new();
    let message = match charset {
        Some(charset) => {
            charset.encode(&error.message, &mut encoded);
            &encoded
        }
        None => error.message.as_bytes(),
    };
    let packet = ServerError::new(error.code.number(), Some(SqlState::new(state)), message);
    ErrPacket::Error(packet).serialize(out);
}

/// Writes an error without SQLSTATE, for a client whose protocol is not known yet.
pub fn put_early_error(out: &mut Vec<u8>, error: &WireError) {
    let packet = ServerError::new(error.code.number(), None, error.message.as_bytes());
    ErrPacket::Error(packet).serialize(out);
}

fn put_ok_body(
    out: &mut Vec<u8>,
    outcome: &Outcome,
    mut flags: StatusFlags,
    capabilities: Capabilities,
    changes: &[SessionChange],
) {
    let is_changed =
        !changes.is_empty() && capabilities.contains(Capabilities::CLIENT_SESSION_TRACK);
    flags.set(StatusFlags::SERVER_SESSION_STATE_CHANGED, is_changed);
    put_number(out, outcome.affected_rows);
    put_number(out, outcome.last_insert_id);
    out.extend_from_slice(&flags.bits().to_le_bytes());
    out.extend_from_slice(&outcome.warnings.to_le_bytes());
    if is_changed || !outcome.info.is_empty() {
        put_bytes(out, outcome.info.as_bytes());
    }
    if is_changed {
        let mut state = Vec::new();
        changes.iter().for_each(|change| put_change(&mut state, change));
        put_bytes(out, &state);
    }
}

fn put_change(out: &mut Vec<u8>, change: &SessionChange) {
    let mut data = Vec::new();
    let kind = match change {
        SessionChange::Variable(name, value) => {
            put_bytes(&mut data, name.as_bytes());
            put_bytes(&mut data, value.as_bytes());
            0
        }
        SessionChange::Database(name) => {
            put_bytes(&mut data, name.as_bytes());
            1
        }
        SessionChange::Transaction(letters) => {
            put_bytes(&mut data, letters.as_bytes());
            5
        }
    };
    out.push(kind);
    put_bytes(out, &data);
}

#[cfg(test)]
mod tests {
    use mysql_common::{
        io::ParseBuf,
        packets::{
            CommonOkPacket, OkPacketDeserializer, ResultSetTerminator,
            session_state_change::SessionStateChange,
        },
    };

    use super::*;

    const ALL: Capabilities = Capabilities::all();

    fn outcome() -> Outcome {
        Outcome {
            affected_rows: 300,
            last_insert_id: 7,
            warnings: 2,
            info: "Records: 300".to_owned(),
        }
    }

    #[test]
    fn ok_eof_and_err_bytes_are_exact() {
        let flags = flags_of(Status { autocommit: true, ..Status::default() });
        let mut bytes = Vec::new();
        put_ok(&mut bytes, &Outcome::default(), flags, ALL, &[]);
        assert_eq!(bytes, [0, 0, 0, 2, 0, 0, 0]);
        bytes.clear();
        put_end_of_rows(&mut bytes, &Outcome::default(), flags, ALL, &[]);
        assert_eq!(bytes, [0xFE, 0, 0, 2, 0, 0, 0]);
        bytes.clear();
        put_end_of_rows(&mut bytes, &outcome(), flags, Capabilities::empty(), &[]);
        assert_eq!(bytes, [0xFE, 2, 0, 2, 0]);
        bytes.clear();
        put_error(&mut bytes, &WireError::unknown_command(), None);
        assert_eq!(bytes, b"\xff\x17\x04#08S01Unknown command");
        bytes.clear();
        put_early_error(&mut bytes, &WireError::too_many_connections());
        assert_eq!(bytes, b"\xff\x10\x04Too many connections");
    }

    #[test]
    fn client_reads_the_ok_packet() {
        let changes = [
            SessionChange::Variable("autocommit".to_owned(), "OFF".to_owned()),
            SessionChange::Database("wiki".to_owned()),
            SessionChange::Transaction("T_______".to_owned()),
        ];
        let flags = flags_of(Status { in_transaction: true, ..Status::default() });
        let mut bytes = Vec::new();
        put_ok(&mut bytes, &outcome(), flags, ALL, &changes);
        let ok = ParseBuf(&bytes).parse::<OkPacketDeserializer<'_, CommonOkPacket>>(ALL);
        let ok = ok.unwrap().into_inner();
        assert_eq!((ok.affected_rows(), ok.last_insert_id(), ok.warnings()), (300, Some(7), 2));
        assert_eq!(ok.info_str().unwrap(), "Records: 300");
        assert!(ok.status_flags().contains(StatusFlags::SERVER_STATUS_IN_TRANS));
        let read: Vec<String> = ok
            .session_state_info()
            .unwrap()
            .iter()
            .map(|info| match info.decode().unwrap() {
                SessionStateChange::SystemVariables(all) => {
                    format!("{}={}", all[0].name_str(), all[0].value_str())
                }
                SessionStateChange::Schema(schema) => schema.as_str().into_owned(),
                SessionStateChange::TransactionState(state) => state.as_str().into_owned(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(read, ["autocommit=OFF", "wiki", "T_______"]);
    }

    #[test]
    fn client_reads_the_end_of_rows() {
        let mut bytes = Vec::new();
        put_end_of_rows(&mut bytes, &outcome(), StatusFlags::empty(), ALL, &[]);
        let ok = ParseBuf(&bytes).parse::<OkPacketDeserializer<'_, ResultSetTerminator>>(ALL);
        assert_eq!(ok.unwrap().into_inner().warnings(), 2);
    }
}
