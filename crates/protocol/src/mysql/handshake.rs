//! The beginning of a connection: greeting and login. Also the change of user.

use mysql_common::{
    constants::{CapabilityFlags, StatusFlags},
    packets::{AuthMoreData, AuthSwitchRequest, HandshakePacket},
    proto::MySerialize,
};
use remora_mysql::Collation;

use super::{
    auth::{Nonce, Plugin},
    compress::Algorithm,
    encode::Fields,
};

/// The features of the protocol that client and server agree on.
pub type Capabilities = CapabilityFlags;

const DEFAULT_COLLATION: Collation = Collation::UTF8MB4_0900_AI_CI;
/// Message of caching_sha2_password: the scramble was enough.
const FAST_RIGHT: u8 = 3;
/// Message of caching_sha2_password: the password itself is needed.
const NEEDS_PASSWORD: u8 = 4;
const DEFAULT_ZSTD_LEVEL: u8 = 3;
const MAX_ZSTD_LEVEL: u8 = 22;

/// The capabilities that the server offers, with TLS and LOCAL INFILE if they are enabled.
pub fn offered(tls: bool, local_infile: bool) -> Capabilities {
    let always = Capabilities::CLIENT_LONG_PASSWORD
        | Capabilities::CLIENT_FOUND_ROWS
        | Capabilities::CLIENT_LONG_FLAG
        | Capabilities::CLIENT_CONNECT_WITH_DB
        | Capabilities::CLIENT_COMPRESS
        | Capabilities::CLIENT_ODBC
        | Capabilities::CLIENT_IGNORE_SPACE
        | Capabilities::CLIENT_PROTOCOL_41
        | Capabilities::CLIENT_INTERACTIVE
        | Capabilities::CLIENT_IGNORE_SIGPIPE
        | Capabilities::CLIENT_TRANSACTIONS
        | Capabilities::CLIENT_RESERVED
        | Capabilities::CLIENT_SECURE_CONNECTION
        | Capabilities::CLIENT_MULTI_STATEMENTS
        | Capabilities::CLIENT_MULTI_RESULTS
        | Capabilities::CLIENT_PS_MULTI_RESULTS
        | Capabilities::CLIENT_PLUGIN_AUTH
        | Capabilities::CLIENT_CONNECT_ATTRS
        | Capabilities::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
        | Capabilities::CLIENT_SESSION_TRACK
        | Capabilities::CLIENT_DEPRECATE_EOF
        | Capabilities::CLIENT_ZSTD_COMPRESSION_ALGORITHM;
    let mut offered = always;
    offered.set(Capabilities::CLIENT_SSL, tls);
    offered.set(Capabilities::CLIENT_LOCAL_FILES, local_infile);
    offered
}

/// Writes the first packet of a connection.
pub fn put_greeting(
    out: &mut Vec<u8>,
    version: &str,
    connection_id: u32,
    nonce: &Nonce,
    capabilities: Capabilities,
) {
    let nonce = nonce.bytes();
    let (first, second) = nonce.split_at(8);
    let mut scramble = [0; 8];
    scramble.copy_from_slice(first);
    let second = [second, &[0]].concat();
    HandshakePacket::new(
        10,
        version.as_bytes(),
        connection_id,
        scramble,
        Some(second),
        capabilities,
        DEFAULT_COLLATION.0 as u8,
        StatusFlags::SERVER_STATUS_AUTOCOMMIT,
        Some(Plugin::CachingSha2.name().as_bytes()),
    )
    .serialize(out);
}

/// Asks the client to authenticate by another method.
pub fn put_auth_switch(out: &mut Vec<u8>, plugin: Plugin, nonce: &Nonce) {
    let data = [&nonce.bytes()[..], &[0]].concat();
    AuthSwitchRequest::new(plugin.name().as_bytes(), data).serialize(out);
}

/// Tells the client that the scramble was enough.
pub fn put_fast_right(out: &mut Vec<u8>) {
    AuthMoreData::new(&[FAST_RIGHT][..]).serialize(out);
}

/// Asks the client for the password itself.
pub fn put_needs_password(out: &mut Vec<u8>) {
    AuthMoreData::new(&[NEEDS_PASSWORD][..]).serialize(out);
}

/// Whether a client's first packet requests TLS: a login packet that ends before the user's name.
pub fn is_tls_request(packet: &[u8]) -> bool {
    packet.len() == 32
        && Fields::new(packet).u32().is_some_and(|bits| bits & Capabilities::CLIENT_SSL.bits() != 0)
}

/// Whether a client's first packet is in the protocol from before MySQL 4.1.
pub fn is_old_client(packet: &[u8]) -> bool {
    let bits = Fields::new(packet).u16().unwrap_or(0);
    u32::from(bits) & Capabilities::CLIENT_PROTOCOL_41.bits() == 0
}

/// The user's part of a login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The user's name.
    pub user: String,
    /// The proof of the password.
    pub answer: Vec<u8>,
    /// The name of the method that made the proof.
    pub plugin: Option<Vec<u8>>,
    /// The initial database; empty means none.
    pub database: String,
    /// The number of the client's collation.
    pub collation: u16,
    /// The connection attributes, names and values.
    pub attributes: Vec<(String, String)>,
}

/// A client's login packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The client's capabilities, among the offered ones.
    pub capabilities: Capabilities,
    /// The user's part.
    pub login: Login,
    /// The zstd level that the client requests.
    zstd_level: u8,
}

impl Hello {
    /// Parses the packet; `None` if it is malformed.
    pub fn parse(packet: &[u8], offered: Capabilities) -> Option<Self> {
        let mut fields = Fields::new(packet);
        let asked = Capabilities::from_bits_truncate(fields.u32()?);
        let _max_packet_bytes = fields.u32()?;
        let collation = u16::from(fields.u8()?);
        fields.take(23)?;
        let mut login = Login { user: text(fields.text()), collation, ..Login::default() };
        let answer = if asked.contains(Capabilities::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            fields.bytes()?
        } else if asked.contains(Capabilities::CLIENT_SECURE_CONNECTION) {
            let length = fields.u8()?;
            fields.take(usize::from(length))?
        } else {
            fields.text()
        };
        login.answer = answer.to_vec();
        if asked.contains(Capabilities::CLIENT_CONNECT_WITH_DB) {
            login.database = text(fields.text());
        }
        if asked.contains(Capabilities::CLIENT_PLUGIN_AUTH) {
            login.plugin = Some(fields.text().to_vec());
        }
        if asked.contains(Capabilities::CLIENT_CONNECT_ATTRS) {
            login.attributes = parse_attributes(&mut fields)?;
        }
        let zstd_level = fields.u8().unwrap_or(DEFAULT_ZSTD_LEVEL);
        Some(Self { capabilities: asked & offered, login, zstd_level })
    }

    /// The compression of the connection after the login.
    pub fn compression(&self) -> Option<Algorithm> {
        if self.capabilities.contains(Capabilities::CLIENT_COMPRESS) {
            return Some(Algorithm::Zlib);
        }
        let level = self.zstd_level.clamp(1, MAX_ZSTD_LEVEL);
        self.capabilities
            .contains(Capabilities::CLIENT_ZSTD_COMPRESSION_ALGORITHM)
            .then_some(Algorithm::Zstd(i32::from(level)))
    }
}

impl Login {
    /// Parses COM_CHANGE_USER without the command's byte; `None` if it is malformed.
    pub fn parse_change(packet: &[u8], capabilities: Capabilities) -> Option<Self> {
        let mut fields = Fields::new(packet);
        let mut login = Login { user: text(fields.text()), ..Login::default() };
        let length = fields.u8()?;
        login.answer = fields.take(usize::from(length))?.to_vec();
        login.database = text(fields.text());
        login.collation = fields.u16().unwrap_or(DEFAULT_COLLATION.0);
        if capabilities.contains(Capabilities::CLIENT_PLUGIN_AUTH) && !fields.rest().is_empty() {
            login.plugin = Some(fields.text().to_vec());
        }
        if capabilities.contains(Capabilities::CLIENT_CONNECT_ATTRS) && !fields.rest().is_empty() {
            login.attributes = parse_attributes(&mut fields)?;
        }
        Some(login)
    }

    /// The names of the client's character set and collation; `None` if they are the server's
    /// default or unknown.
    pub fn names(&self) -> Option<(&'static str, &'static str)> {
        let collation = Collation(self.collation);
        let known = collation.known().filter(|_| !collation.is_of_type())?;
        (self.collation != DEFAULT_COLLATION.0).then_some((known.charset, known.name))
    }
}

/// Parses the attributes after their length. No bytes at all mean no attributes.
fn parse_attributes(fields: &mut Fields<'_>) -> Option<Vec<(String, String)>> {
    if fields.rest().is_empty() {
        return Some(Vec::new());
    }
    let mut pairs = Fields::new(fields.bytes()?);
    let mut attributes = Vec::new();
    while !pairs.rest().is_empty() {
        let name = text(pairs.bytes()?);
        attributes.push((name, text(pairs.bytes()?)));
    }
    Some(attributes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use mysql_common::packets::{
        AuthPlugin, ComChangeUser, ComChangeUserMoreData, HandshakeResponse, SslRequest,
    };
    use proptest::prelude::*;

    use super::{super::auth::NONCE_BYTES, *};

    fn everything() -> Capabilities {
        offered(true, true)
    }

    fn bytes_of(packet: &impl MySerialize) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.serialize(&mut bytes);
        bytes
    }

    #[test]
    fn greeting_bytes_are_exact() {
        let mut nonce = [0; NONCE_BYTES];
        nonce.iter_mut().zip(1..).for_each(|(byte, at)| *byte = at);
        let nonce = Nonce::from_random(nonce);
        let mut bytes = Vec::new();
        put_greeting(&mut bytes, "8.4.0-x", 0x0102_0304, &nonce, offered(true, false));
        let mut golden = b"\x0a8.4.0-x\0\x04\x03\x02\x01".to_vec();
        golden.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 0]);
        golden.extend_from_slice(b"\x6f\xff\xff\x02\x00\xbf\x05\x15");
        golden.extend_from_slice(&[0; 10]);
        golden.extend_from_slice(&[9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0]);
        golden.extend_from_slice(b"caching_sha2_password\0");
        assert_eq!(bytes, golden);
    }

    #[test]
    fn auth_switch_bytes_are_exact() {
        let mut bytes = Vec::new();
        put_auth_switch(&mut bytes, Plugin::Native, &Nonce::from_random([b'n'; NONCE_BYTES]));
        assert_eq!(bytes, b"\xfemysql_native_password\0nnnnnnnnnnnnnnnnnnnn\0");
        bytes.clear();
        put_fast_right(&mut bytes);
        put_needs_password(&mut bytes);
        assert_eq!(bytes, [1, 3, 1, 4]);
    }

    #[test]
    fn login_packet_is_parsed() {
        let attributes: HashMap<String, String> =
            [("_client_name".to_owned(), "libmysql".to_owned())].into();
        let packet = HandshakeResponse::new(
            Some(&[7; 32][..]),
            (8, 0, 0),
            Some(&b"anna"[..]),
            Some(&b"wiki"[..]),
            Some(AuthPlugin::CachingSha2Password),
            Capabilities::CLIENT_PROTOCOL_41
                | Capabilities::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
                | Capabilities::CLIENT_ZSTD_COMPRESSION_ALGORITHM,
            Some(attributes),
            1 << 24,
        );
        let mut bytes = bytes_of(&packet);
        bytes.push(7);
        let hello = Hello::parse(&bytes, everything()).unwrap();
        assert_eq!(hello.login.user, "anna");
        assert_eq!(hello.login.answer, [7; 32]);
        assert_eq!(hello.login.database, "wiki");
        assert_eq!(hello.login.plugin.as_deref(), Some(&b"caching_sha2_password"[..]));
        assert_eq!(hello.login.attributes, [("_client_name".to_owned(), "libmysql".to_owned())]);
        assert_eq!(hello.compression(), Some(Algorithm::Zstd(7)));
        assert!(!is_old_client(&bytes));
        for length in 0..bytes.len() {
            let _ = Hello::parse(&bytes[..length], everything());
        }
    }

    #[test]
    fn change_user_packet_is_parsed() {
        let more =
            ComChangeUserMoreData::new(45).with_auth_plugin(Some(AuthPlugin::MysqlNativePassword));
        let packet = ComChangeUser::new()
            .with_user(Some(&b"bert"[..]))
            .with_database(Some(&b"db"[..]))
            .with_auth_plugin_data(Some(&[9; 20][..]))
            .with_more_data(Some(more));
        let bytes = bytes_of(&packet);
        let login = Login::parse_change(&bytes[1..], everything()).unwrap();
        assert_eq!((login.user.as_str(), login.database.as_str()), ("bert", "db"));
        assert_eq!((login.answer, login.collation), (vec![9; 20], 45));
        assert_eq!(login.plugin.as_deref(), Some(&b"mysql_native_password"[..]));
        for length in 1..bytes.len() {
            let _ = Login::parse_change(&bytes[1..length], everything());
        }
    }

    #[test]
    fn collations_have_names() {
        let names = |collation| Login { collation, ..Login::default() }.names();
        assert_eq!(names(45), Some(("utf8mb4", "utf8mb4_general_ci")));
        assert_eq!(names(8), Some(("latin1", "latin1_swedish_ci")));
        assert_eq!((names(255), names(0), names(9999)), (None, None, None));
    }

    #[test]
    fn tls_request_is_recognized() {
        let asked = Capabilities::CLIENT_PROTOCOL_41 | Capabilities::CLIENT_SSL;
        assert!(is_tls_request(&bytes_of(&SslRequest::new(asked, 1 << 24, 45))));
        let asked = Capabilities::CLIENT_PROTOCOL_41;
        assert!(!is_tls_request(&bytes_of(&SslRequest::new(asked, 1 << 24, 45))));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Hello::parse(&bytes, everything());
            let _ = Login::parse_change(&bytes, everything());
            let _ = (is_tls_request(&bytes), is_old_client(&bytes));
        }
    }
}
