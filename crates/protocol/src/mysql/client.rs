//! The client's side of MySQL's protocol, as far as one server queries another: a login without TLS and compression,
//! and statements that return one value.
//!
//! ```text
//! greeting -> login -> { AuthSwitch | AuthMore } -> OK
//! statement -> OK                                   nothing was to be told
//!            | 1 column EOF value EOF [OK]          one row of one column
//!            | ERR                                  anywhere
//! ```
//! Everything is checked: a length may only cover received bytes, counts must be 1, and anything unexpected is an
//! error. The caller limits the size of messages and the time to wait.

use mysql_common::scramble::{scramble_native, scramble_sha256};

use super::{StatusFlags, auth::Plugin, encode::Fields, handshake::Capabilities};

/// utf8mb4_general_ci, which all servers know.
const COLLATION: u8 = 45;
/// The largest message that the client announces to accept.
const MAX_MESSAGE: u32 = 1 << 30;
const PROTOCOL: u8 = 10;
const NONCE_BYTES: usize = 20;
/// First bytes of messages.
const OK: u8 = 0;
const AUTH_MORE: u8 = 1;
const NULL: u8 = 0xFB;
const EOF: u8 = 0xFE;
const ERR: u8 = 0xFF;
/// An EOF is shorter than any row that begins like it.
const MAX_EOF_BYTES: usize = 8;
/// Message of caching_sha2_password: the scramble was enough. The next one: the password itself is
/// needed.
const FAST_RIGHT: u8 = 3;
const NEEDS_PASSWORD: u8 = 4;
/// The most characters of a server's error that are passed on.
const MAX_TOLD: usize = 1_000;

/// Why another server returned no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The server reported an error.
    #[error("{message}")]
    Server {
        /// The number of the error.
        code: u16,
        /// The message of the error.
        message: String,
    },
    /// A message is malformed or unexpected.
    #[error("what answers there does not speak the MySQL protocol rightly: {0}")]
    Malformed(&'static str),
    /// The server requires something that this client does not do.
    #[error("{0}")]
    Refused(&'static str),
}

type Result<T> = std::result::Result<T, ClientError>;

/// The first packet of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    nonce: [u8; NONCE_BYTES],
    plugin: Option<Plugin>,
}

impl Greeting {
    /// Parses the packet.
    ///
    /// # Errors
    /// [`ClientError::Server`] if the server refuses the connection, [`ClientError::Malformed`] if
    /// the packet is not a greeting.
    pub fn parse(packet: &[u8]) -> Result<Self> {
        check(packet)?;
        Self::read(packet).ok_or(ClientError::Malformed("its greeting is none"))
    }

    fn read(packet: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(packet);
        if fields.u8()? != PROTOCOL {
            return None;
        }
        let _version = fields.text();
        let _connection = fields.u32()?;
        let first: [u8; 8] = fields.array()?;
        let _zero = fields.u8()?;
        let low = fields.u16()?;
        let (_collation, _status) = (fields.u8()?, fields.u16()?);
        let high = fields.u16()?;
        let length = fields.u8()?;
        fields.take(10)?;
        let second = fields.take(usize::from(length).saturating_sub(8).max(13))?;
        let mut nonce = [0; NONCE_BYTES];
        nonce.iter_mut().zip(first.iter().chain(second)).for_each(|(place, byte)| *place = *byte);
        let bits = u32::from(low) | u32::from(high) << 16;
        let has_all = Capabilities::from_bits_truncate(bits).contains(wanted());
        has_all.then(|| Self { nonce, plugin: Plugin::named(fields.text()) })
    }
}

/// The capabilities that the client requests.
fn wanted() -> Capabilities {
    Capabilities::CLIENT_LONG_PASSWORD
        | Capabilities::CLIENT_PROTOCOL_41
        | Capabilities::CLIENT_TRANSACTIONS
        | Capabilities::CLIENT_SECURE_CONNECTION
        | Capabilities::CLIENT_PLUGIN_AUTH
}

/// Writes the login packet. `user` must not contain a zero byte.
pub fn put_login(out: &mut Vec<u8>, greeting: &Greeting, user: &str, password: &str) {
    let plugin = greeting.plugin.unwrap_or(Plugin::CachingSha2);
    out.extend_from_slice(&wanted().bits().to_le_bytes());
    out.extend_from_slice(&MAX_MESSAGE.to_le_bytes());
    out.push(COLLATION);
    out.extend_from_slice(&[0; 23]);
    out.extend_from_slice(user.as_bytes());
    out.push(0);
    let proof = proof(plugin, &greeting.nonce, password);
    // A scramble has at most 32 bytes.
    out.push(proof.len() as u8);
    out.extend_from_slice(&proof);
    out.extend_from_slice(plugin.name().as_bytes());
    out.push(0);
}

fn proof(plugin: Plugin, nonce: &[u8], password: &str) -> Vec<u8> {
    let password = password.as_bytes();
    let proof = match plugin {
        Plugin::Native => scramble_native(nonce, password).map(|it| it.to_vec()),
        Plugin::CachingSha2 => scramble_sha256(nonce, password).map(|it| it.to_vec()),
    };
    // An empty password has an empty proof.
    proof.unwrap_or_default()
}

/// What to do after a message of the login phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// The login succeeded.
    Done,
    /// Wait for another message.
    Wait,
    /// Send this message.
    Send(Vec<u8>),
}

/// Handles a message of the login phase.
///
/// # Errors
/// [`ClientError::Server`] if the login is refused, [`ClientError::Refused`] if the server requires
/// an unsupported proof, [`ClientError::Malformed`] for any other message.
pub fn login_step(packet: &[u8], password: &str) -> Result<LoginStep> {
    check(packet)?;
    match packet {
        [OK, ..] => Ok(LoginStep::Done),
        [AUTH_MORE, FAST_RIGHT] => Ok(LoginStep::Wait),
        [AUTH_MORE, NEEDS_PASSWORD] => Err(ClientError::Refused(
            "it wants the password itself, which is not sent without TLS: log that account in over TLS or a Unix socket once, or \
             give it mysql_native_password",
        )),
        [EOF, rest @ ..] => {
            let mut fields = Fields::new(rest);
            let plugin = Plugin::named(fields.text());
            let plugin = plugin.ok_or(ClientError::Refused(
                "it wants another proof of the password than mysql_native_password and caching_sha2_password",
            ))?;
            let nonce: [u8; NONCE_BYTES] =
                fields.array().ok_or(ClientError::Malformed("it wants a proof without a nonce"))?;
            Ok(LoginStep::Send(proof(plugin, &nonce, password)))
        }
        _ => Err(ClientError::Malformed("it answers the login with something else")),
    }
}

/// The result of a statement, as far as it was received.
#[derive(Debug, Default)]
pub struct Answer {
    expected: ExpectedPacket,
    value: Option<Vec<u8>>,
}

/// The packet that is expected next.
#[derive(Debug, Default, PartialEq, Eq)]
enum ExpectedPacket {
    #[default]
    First,
    Column,
    EndOfColumns,
    Row,
    EndOfRows,
    /// The OK that ends the result of a procedure.
    Outcome,
    Nothing,
}

impl Answer {
    /// Takes a message. True if it was the last one.
    ///
    /// # Errors
    /// [`ClientError::Server`] if the server reports an error, [`ClientError::Malformed`] if the
    /// result is anything but one value.
    pub fn take(&mut self, packet: &[u8]) -> Result<bool> {
        check(packet)?;
        let is_row = self.expected == ExpectedPacket::Row;
        let is_eof = packet.first() == Some(&EOF) && packet.len() <= MAX_EOF_BYTES;
        self.expected = match (&self.expected, packet) {
            (ExpectedPacket::First, [OK, ..]) => after(ok_flags(packet), ExpectedPacket::Nothing)?,
            (ExpectedPacket::First, [1]) => ExpectedPacket::Column,
            (ExpectedPacket::First, _) => {
                return Err(ClientError::Malformed("it gives something else than one column"));
            }
            (ExpectedPacket::Column, _) if !is_eof => ExpectedPacket::EndOfColumns,
            (ExpectedPacket::EndOfColumns, _) if is_eof => ExpectedPacket::Row,
            (ExpectedPacket::Row, _) if !is_eof => ExpectedPacket::EndOfRows,
            (ExpectedPacket::EndOfRows, _) if is_eof => {
                after(eof_flags(packet), ExpectedPacket::Outcome)?
            }
            (ExpectedPacket::Outcome, [OK, ..]) => {
                after(ok_flags(packet), ExpectedPacket::Nothing)?
            }
            _ => return Err(ClientError::Malformed("it gives something else than one row")),
        };
        if is_row {
            self.value =
                Some(value(packet).ok_or(ClientError::Malformed("it gives a value that is none"))?);
        }
        Ok(self.expected == ExpectedPacket::Nothing)
    }

    /// The value; `None` if the statement returned none.
    pub fn into_value(self) -> Option<Vec<u8>> {
        self.value
    }
}

/// The packet expected after a message with these flags: `more` if they announce another result.
fn after(flags: Option<u16>, more: ExpectedPacket) -> Result<ExpectedPacket> {
    let flags = flags.ok_or(ClientError::Malformed("the end of its answer is cut off"))?;
    let has_more =
        StatusFlags::from_bits_truncate(flags).contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS);
    match (has_more, more) {
        (false, _) => Ok(ExpectedPacket::Nothing),
        (true, ExpectedPacket::Outcome) => Ok(ExpectedPacket::Outcome),
        (true, _) => Err(ClientError::Malformed("it gives several answers")),
    }
}

fn ok_flags(packet: &[u8]) -> Option<u16> {
    let mut fields = Fields::new(packet.get(1..)?);
    let (_rows, _id) = (fields.number()?, fields.number()?);
    fields.u16()
}

fn eof_flags(packet: &[u8]) -> Option<u16> {
    let mut fields = Fields::new(packet.get(1..)?);
    let _warnings = fields.u16()?;
    fields.u16()
}

fn value(packet: &[u8]) -> Option<Vec<u8>> {
    if packet.first() == Some(&NULL) {
        return None;
    }
    let mut fields = Fields::new(packet);
    let value = fields.bytes()?;
    fields.rest().is_empty().then(|| value.to_vec())
}

/// Returns the error if the message is one.
fn check(packet: &[u8]) -> Result<()> {
    let [ERR, rest @ ..] = packet else {
        return match packet.is_empty() {
            true => Err(ClientError::Malformed("it sends an empty message")),
            false => Ok(()),
        };
    };
    let mut fields = Fields::new(rest);
    let code = fields.u16().ok_or(ClientError::Malformed("it tells an error that is none"))?;
    let said = match fields.rest() {
        [b'#', _, _, _, _, _, said @ ..] => said,
        said => said,
    };
    let said = String::from_utf8_lossy(said.get(..MAX_TOLD).unwrap_or(said));
    let message = said.chars().filter(|character| !character.is_control()).collect();
    Err(ClientError::Server { code, message })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use remora_mysql::ErrorCode;

    use super::*;
    use crate::mysql::{WireError, auth::Nonce, handshake, put_error};

    fn greeting() -> Vec<u8> {
        let mut out = Vec::new();
        let nonce = Nonce::from_random([b'n'; NONCE_BYTES]);
        handshake::put_greeting(&mut out, "8.0", 7, &nonce, handshake::offered(false, false));
        out
    }

    fn taken(packets: &[&[u8]]) -> Result<Option<Vec<u8>>> {
        let mut answer = Answer::default();
        for (at, packet) in packets.iter().enumerate() {
            let is_last = answer.take(packet)?;
            assert_eq!(is_last, at + 1 == packets.len(), "{packets:?}");
        }
        Ok(answer.into_value())
    }

    const COLUMN: &[u8] =
        b"\x03def\x00\x00\x00\x06answer\x06answer\x0c\x3f\x00\0\0\0\x40\xfb\0\0\0\0\0";
    const END: &[u8] = &[EOF, 0, 0, 2, 0];
    const END_OF_RESULT: &[u8] = &[EOF, 0, 0, 10, 0];
    const DONE: &[u8] = &[OK, 0, 0, 2, 0, 0, 0];

    #[test]
    fn own_login_packet_is_parsed() {
        let packet = greeting();
        let greeting = Greeting::parse(&packet).unwrap();
        assert_eq!((greeting.nonce, greeting.plugin), ([b'n'; 20], Some(Plugin::CachingSha2)));
        let mut out = Vec::new();
        put_login(&mut out, &greeting, "anna", "secret");
        let hello = handshake::Hello::parse(&out, handshake::offered(false, false)).unwrap();
        assert_eq!(hello.login.user, "anna");
        assert_eq!(hello.login.answer, scramble_sha256(&[b'n'; 20], b"secret").unwrap());
        assert_eq!(hello.login.plugin.as_deref(), Some(&b"caching_sha2_password"[..]));
        assert_eq!(login_step(DONE, "secret"), Ok(LoginStep::Done));
        assert_eq!(login_step(&[AUTH_MORE, FAST_RIGHT], "secret"), Ok(LoginStep::Wait));
        let mut switch = Vec::new();
        let nonce = Nonce::from_random([b'm'; NONCE_BYTES]);
        handshake::put_auth_switch(&mut switch, Plugin::Native, &nonce);
        let proof = scramble_native(&[b'm'; 20], b"secret").unwrap().to_vec();
        assert_eq!(login_step(&switch, "secret"), Ok(LoginStep::Send(proof)));
        assert_eq!(login_step(&switch, ""), Ok(LoginStep::Send(Vec::new())));
        for packet in [&[AUTH_MORE, NEEDS_PASSWORD][..], b"\xfemysql_clear_password\0", b"\xfe"] {
            assert!(matches!(login_step(packet, "x"), Err(ClientError::Refused(_))), "{packet:?}");
        }
        for packet in [&[][..], &[7], &[AUTH_MORE, 9], b"\xfemysql_native_password\0short"] {
            assert!(
                matches!(login_step(packet, "x"), Err(ClientError::Malformed(_))),
                "{packet:?}"
            );
        }
    }

    #[test]
    fn a_value_is_one_row_of_one_column() {
        let row = b"\x05value";
        assert_eq!(taken(&[&[1], COLUMN, END, row, END]), Ok(Some(b"value".to_vec())));
        assert_eq!(
            taken(&[&[1], COLUMN, END, row, END_OF_RESULT, DONE]),
            Ok(Some(b"value".to_vec()))
        );
        assert_eq!(taken(&[DONE]), Ok(None));
        let long = [&[0xFE][..], &70_000_u64.to_le_bytes(), &vec![7; 70_000]].concat();
        assert_eq!(taken(&[&[1], COLUMN, END, &long, END]), Ok(Some(vec![7; 70_000])));
        let wrong: [&[&[u8]]; 12] = [
            // 2^40 columns, and then two.
            &[&[0xFE, 0, 0, 0, 0, 0, 1, 0, 0]],
            &[&[2]],
            &[&[NULL]],
            &[&[1], END],
            &[&[1], COLUMN, COLUMN],
            &[&[1], COLUMN, END, END],
            &[&[1], COLUMN, END, &[NULL]],
            &[&[1], COLUMN, END, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7fx"],
            &[&[1], COLUMN, END, b"\x09value"],
            &[&[1], COLUMN, END, b"\x05value!"],
            &[&[1], COLUMN, END, row, row],
            &[&[1], COLUMN, END, row, &[EOF, 0]],
        ];
        for packets in wrong {
            let error = taken(packets).unwrap_err();
            assert!(matches!(error, ClientError::Malformed(_)), "{packets:?}: {error}");
        }
        let mut error = Vec::new();
        put_error(&mut error, &WireError::interrupted(), None);
        let told = taken(&[&[1], COLUMN, END, &error]).unwrap_err();
        let ClientError::Server { code, message } = told else { panic!("{told:?}") };
        assert_eq!(code, ErrorCode::Interrupted.number());
        assert!(!message.is_empty() && !message.contains('#'), "{message}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(packets: Vec<Vec<u8>>, cut: prop::sample::Index, byte: u8) {
            let mut answer = Answer::default();
            for packet in &packets {
                let _ = (Greeting::parse(packet), login_step(packet, "x"));
                if answer.take(packet).is_err() {
                    break;
                }
            }
            let mut packet = greeting();
            let at = cut.index(packet.len());
            let _ = Greeting::parse(&packet[..at]);
            packet[at] = byte;
            let _ = Greeting::parse(&packet);
        }
    }
}
