//! A client of the MySQL protocol that can also send wrong packets.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    sync::Arc,
    time::Duration,
};

use mysql_common::{
    constants::CapabilityFlags as Capabilities,
    io::ParseBuf,
    packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest},
    proto::MySerialize,
    scramble::{scramble_native, scramble_sha256},
};
use remora_protocol::mysql::{
    PacketReader, PacketWriter,
    compress::{Algorithm, Compressor},
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, pki_types::pem::PemObject,
};

/// The timeout of a reply in tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// The capabilities of every client.
pub const USUAL: Capabilities = Capabilities::from_bits_truncate(
    Capabilities::CLIENT_PROTOCOL_41.bits()
        | Capabilities::CLIENT_LONG_PASSWORD.bits()
        | Capabilities::CLIENT_SECURE_CONNECTION.bits()
        | Capabilities::CLIENT_PLUGIN_AUTH.bits()
        | Capabilities::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA.bits()
        | Capabilities::CLIENT_TRANSACTIONS.bits()
        | Capabilities::CLIENT_MULTI_RESULTS.bits(),
);

/// The contents of an error packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub number: u16,
    pub state: String,
    pub message: String,
}

/// The reply to a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok {
        affected: u64,
    },
    /// Rows of texts; `None` is NULL.
    Rows(Vec<Vec<Option<String>>>),
    Error(Refusal),
    /// The connection was closed.
    Closed,
}

impl Answer {
    pub fn error(&self) -> u16 {
        match self {
            Self::Error(refusal) => refusal.number,
            other => panic!("no error: {other:?}"),
        }
    }

    /// The only value of the only row.
    pub fn value(&self) -> &str {
        match self {
            Self::Rows(rows) => rows[0][0].as_deref().unwrap_or("NULL"),
            other => panic!("no rows: {other:?}"),
        }
    }
}

/// The login of a client.
#[derive(Clone, Debug)]
pub struct Entry {
    pub user: &'static str,
    pub password: &'static str,
    pub database: Option<&'static str>,
    pub native: bool,
    /// Names this authentication plugin instead, and sends no valid response.
    pub plugin: Option<&'static str>,
    pub capabilities: Capabilities,
    /// The server's certificate, if TLS is used.
    pub certificate: Option<&'static str>,
}

impl Default for Entry {
    fn default() -> Self {
        let capabilities = USUAL;
        Self {
            user: "root",
            password: "",
            database: None,
            native: false,
            plugin: None,
            capabilities,
            certificate: None,
        }
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Gone,
}

pub struct Client {
    stream: Stream,
    pub reader: PacketReader,
    pub writer: PacketWriter,
    pub capabilities: Capabilities,
    compressor: Option<Compressor>,
    pub connection_id: u32,
    pub version: String,
    nonce: Vec<u8>,
    /// The authentication plugins that the server switched to.
    pub switches: Vec<String>,
    /// The last OK packet.
    pub last_ok: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr, entry: &Entry) -> Result<Self, Answer> {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::enter(Stream::Tcp(stream), entry)
    }

    /// Whether the server has closed its side already. For TCP.
    pub fn is_ended(&self) -> bool {
        let Stream::Tcp(stream) = &self.stream else { return false };
        stream.set_nonblocking(true).unwrap();
        let ended = matches!(stream.peek(&mut [0]), Ok(0));
        stream.set_nonblocking(false).unwrap();
        ended
    }

    pub fn connect_local(path: &Path, entry: &Entry) -> Result<Self, Answer> {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::enter(Stream::Unix(stream), entry)
    }

    /// A connection that has read the greeting.
    pub fn greeted(address: SocketAddr) -> Result<Self, Answer> {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::greet(Stream::Tcp(stream))
    }

    fn greet(stream: Stream) -> Result<Self, Answer> {
        let mut client = Self {
            stream,
            reader: PacketReader::new(1 << 30),
            writer: PacketWriter::default(),
            capabilities: USUAL,
            compressor: None,
            connection_id: 0,
            version: String::new(),
            nonce: Vec::new(),
            switches: Vec::new(),
            last_ok: Vec::new(),
        };
        let greeting = client.message().map_err(|_| Answer::Closed)?;
        if greeting.first() == Some(&0xFF) {
            return Err(client.parse_error(&greeting));
        }
        let packet: HandshakePacket<'_> = ParseBuf(&greeting).parse(()).unwrap();
        client.connection_id = packet.connection_id();
        client.version = packet.server_version_str().into_owned();
        client.nonce = packet.nonce();
        assert_eq!(packet.auth_plugin_name_str().unwrap(), "caching_sha2_password");
        Ok(client)
    }

    fn enter(stream: Stream, entry: &Entry) -> Result<Self, Answer> {
        let mut client = Self::greet(stream)?;
        client.log_in(entry)?;
        Ok(client)
    }

    /// Logs in after the greeting.
    pub fn log_in(&mut self, entry: &Entry) -> Result<(), Answer> {
        let client = self;
        client.capabilities = entry.capabilities;
        if let Some(certificate) = entry.certificate {
            client.capabilities |= Capabilities::CLIENT_SSL;
            let request = SslRequest::new(client.capabilities, 1 << 24, 45);
            client.send(&bytes_of(&request));
            client.start_tls(certificate);
        }
        let plugin = match (entry.plugin, entry.native) {
            (Some(name), _) => AuthPlugin::Other(name.as_bytes().into()),
            (None, true) => AuthPlugin::MysqlNativePassword,
            (None, false) => AuthPlugin::CachingSha2Password,
        };
        let password = if entry.plugin.is_some() { "" } else { entry.password };
        let proof = client.proof(&plugin, password);
        let response = HandshakeResponse::new(
            Some(proof),
            (8, 0, 0),
            Some(entry.user.as_bytes()),
            entry.database.map(str::as_bytes),
            Some(plugin),
            client.capabilities,
            None,
            1 << 24,
        );
        client.send(&bytes_of(&response));
        client.finish_login(entry.password)?;
        if client.capabilities.contains(Capabilities::CLIENT_COMPRESS) {
            client.compressor = Some(Compressor::new(Algorithm::Zlib));
        } else if client.capabilities.contains(Capabilities::CLIENT_ZSTD_COMPRESSION_ALGORITHM) {
            client.compressor = Some(Compressor::new(Algorithm::Zstd(3)));
        }
        if client.compressor.is_some() {
            client.reader.ignore_order();
        }
        Ok(())
    }

    /// Answers authentication requests until the server accepts or refuses the login.
    fn finish_login(&mut self, password: &str) -> Result<(), Answer> {
        loop {
            let message = self.message().map_err(|_| Answer::Closed)?;
            match message.first() {
                Some(0x00) => {
                    self.last_ok = message;
                    return Ok(());
                }
                Some(0xFF) => return Err(self.parse_error(&message)),
                Some(0xFE) => {
                    let request: AuthSwitchRequest<'_> = ParseBuf(&message).parse(()).unwrap();
                    self.nonce = request.plugin_data().to_vec();
                    let name = request.auth_plugin().as_bytes().to_vec();
                    self.switches.push(String::from_utf8(name).unwrap());
                    let proof = self.proof(&request.auth_plugin(), password);
                    self.send(&proof);
                }
                Some(0x01) if message == [1, 3] => {}
                Some(0x01) if message == [1, 4] => {
                    let clear = [password.as_bytes(), &[0]].concat();
                    self.send(&clear);
                }
                _ => panic!("an unknown message: {message:?}"),
            }
        }
    }

    fn proof(&self, plugin: &AuthPlugin<'_>, password: &str) -> Vec<u8> {
        if password.is_empty() {
            return Vec::new();
        }
        match plugin {
            AuthPlugin::MysqlNativePassword => {
                scramble_native(&self.nonce, password.as_bytes()).unwrap().to_vec()
            }
            _ => scramble_sha256(&self.nonce, password.as_bytes()).unwrap().to_vec(),
        }
    }

    fn start_tls(&mut self, certificate: &str) {
        let Stream::Tcp(stream) = std::mem::replace(&mut self.stream, Stream::Gone) else {
            panic!("TLS over something else than TCP");
        };
        let mut roots = RootCertStore::empty();
        roots.add(PemObject::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        self.stream = Stream::Tls(Box::new(StreamOwned::new(connection, stream)));
    }

    /// Sends COM_CHANGE_USER; the reply is OK or an error.
    pub fn change_user(&mut self, user: &str, password: &str, database: &str) -> Answer {
        let proof = self.proof(&AuthPlugin::CachingSha2Password, password);
        let mut packet = vec![0x11];
        packet.extend_from_slice(user.as_bytes());
        packet.push(0);
        packet.push(proof.len() as u8);
        packet.extend_from_slice(&proof);
        packet.extend_from_slice(database.as_bytes());
        packet.extend_from_slice(b"\0\x2d\0caching_sha2_password\0");
        self.begin();
        self.send(&packet);
        match self.finish_login(password) {
            Ok(()) => Answer::Ok { affected: 0 },
            Err(answer) => answer,
        }
    }

    /// The next message begins a command.
    pub fn begin(&mut self) {
        self.writer.set_sequence(0);
        if let Some(compressor) = &mut self.compressor {
            compressor.set_sequence(0);
        }
    }

    /// Sends a message with the sequence number after the last one.
    pub fn send(&mut self, payload: &[u8]) {
        self.writer.message(|out| out.extend_from_slice(payload));
        self.reader.expect(self.writer.sequence());
        let mut wire = self.writer.bytes().to_vec();
        self.writer.clear();
        if let Some(compressor) = &mut self.compressor {
            let plain = std::mem::take(&mut wire);
            compressor.compress(&plain, &mut wire).unwrap();
        }
        self.send_raw(&wire);
    }

    /// Sends raw bytes; it is no failure if the server closes the connection meanwhile.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let _ = match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            Stream::Gone => Ok(()),
        };
    }

    /// The next message.
    pub fn message(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let next = self.reader.next_message().map_err(io::Error::other)?;
            if let Some(message) = next {
                let payload = message.payload.to_vec();
                self.writer.set_sequence(message.reply_sequence);
                return Ok(payload);
            }
            let mut bytes = vec![0; 64 << 10];
            let count = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(&mut bytes)?,
                Stream::Unix(stream) => stream.read(&mut bytes)?,
                Stream::Tls(stream) => stream.read(&mut bytes)?,
                Stream::Gone => 0,
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match &mut self.compressor {
                None => self.reader.room().extend_from_slice(&bytes[..count]),
                Some(compressor) => {
                    compressor.room().extend_from_slice(&bytes[..count]);
                    compressor.decompress(self.reader.room(), usize::MAX)?;
                }
            }
        }
    }

    pub fn command(&mut self, code: u8, rest: &[u8]) -> Answer {
        self.begin();
        self.send(&[&[code], rest].concat());
        self.answer()
    }

    /// Prepares a statement and closes it.
    pub fn prepare_columns(&mut self, text: &str) -> Answer {
        self.begin();
        self.send(&[b"\x16", text.as_bytes()].concat());
        let Ok(first) = self.message() else { return Answer::Closed };
        if first.first() == Some(&0xFF) {
            return self.parse_error(&first);
        }
        let count = |at: usize| usize::from(u16::from_le_bytes([first[at], first[at + 1]]));
        let (columns, parameters) = (count(5), count(7));
        self.skip_columns(parameters);
        self.skip_columns(columns);
        self.begin();
        self.send(&[b"\x19", &first[1..5]].concat());
        Answer::Ok { affected: 0 }
    }

    pub fn query(&mut self, text: &str) -> Answer {
        self.command(0x03, text.as_bytes())
    }

    /// One result with text rows.
    pub fn answer(&mut self) -> Answer {
        let Ok(first) = self.message() else { return Answer::Closed };
        match first.first() {
            Some(0x00) => {
                let affected = u64::from(first[1]);
                self.last_ok = first;
                Answer::Ok { affected }
            }
            Some(0xFF) => self.parse_error(&first),
            Some(0xFE) if first.len() < 9 => Answer::Ok { affected: 0 },
            _ => self.rows(usize::from(first[0])),
        }
    }

    fn rows(&mut self, columns: usize) -> Answer {
        self.skip_columns(columns);
        let mut rows = Vec::new();
        loop {
            let Ok(message) = self.message() else { return Answer::Closed };
            match message.first() {
                Some(0xFF) => return self.parse_error(&message),
                Some(0xFE) if message.len() < 0xFF_FFFF => {
                    self.last_ok = message;
                    return Answer::Rows(rows);
                }
                _ => rows.push(text_row(&message)),
            }
        }
    }

    /// Reads this number of column definitions and the packet after them.
    pub fn skip_columns(&mut self, columns: usize) {
        (0..columns).for_each(|_| assert_eq!(self.message().unwrap()[..4], *b"\x03def"));
        if columns > 0 && !self.capabilities.contains(Capabilities::CLIENT_DEPRECATE_EOF) {
            assert_eq!(self.message().unwrap()[0], 0xFE);
        }
    }

    /// The status flags of the last OK or EOF.
    pub fn status(&self) -> u16 {
        // Both have them there where no rows were changed.
        u16::from_le_bytes([self.last_ok[3], self.last_ok[4]])
    }

    fn parse_error(&self, message: &[u8]) -> Answer {
        let number = u16::from_le_bytes([message[1], message[2]]);
        let rest = String::from_utf8(message[3..].to_vec()).unwrap();
        let (state, message) = match rest.strip_prefix('#') {
            Some(rest) => rest.split_at(5),
            None => ("", rest.as_str()),
        };
        Answer::Error(Refusal { number, state: state.to_owned(), message: message.to_owned() })
    }
}

fn bytes_of(packet: &impl MySerialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.serialize(&mut bytes);
    bytes
}

fn text_row(message: &[u8]) -> Vec<Option<String>> {
    let mut rest = ParseBuf(message);
    let mut row = Vec::new();
    while !rest.is_empty() {
        if rest.0[0] == 0xFB {
            rest.skip(1);
            row.push(None);
        } else {
            let value = rest.checked_eat_lenenc_str().unwrap();
            row.push(Some(String::from_utf8_lossy(value).into_owned()));
        }
    }
    row
}
