//! A server on a free port of this machine, and clients for it.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use remora_engine::Database;
use remora_protocol::line::reply_is_complete;
use remora_server::{Server, open_database, settings::Settings};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The timeout of a reply in tests.
const PATIENCE: Duration = Duration::from_secs(20);
/// The stack size of the threads of `remora serve`.
const STACK_BYTES: usize = 16 << 20;

/// The rows that tests search.
const ROWS: &str = r#"[
{"id":1,"title":"Mount Everest","body":"The highest mountain, between Nepal and China.","kind":"mountain","year":1953,"height":8849.0},
{"id":2,"title":"Tokyo","body":"The capital of Japan, once called Edo. 日本の首都。","kind":"city","year":1868,"height":40.0},
{"id":3,"title":"富士山","body":"日本で最も高い山。","kind":"mountain","year":1707,"height":3776.0},
{"id":4,"title":"Köln","body":"A city on the Rhine; its cathedral was finished in 1880.","kind":"city","year":1880,"height":53.0},
{"id":5,"title":"Hangul","body":"한글 is the alphabet of Korea.","kind":"writing","year":1446},
{"id":6,"title":"C++","body":"A language; c++ has a \"plus\" and a\ttab.","kind":"writing","year":1985},
{"id":7,"title":"Nothing","body":"","kind":null,"year":null}
]"#;

const TABLE: &str = r#"
[tables.articles]
primary_key = ["id"]
columns = [
    { name = "id", type = "int64" },
    { name = "title", type = "text", indexed = true },
    { name = "body", type = "text" },
    { name = "kind", type = "text" },
    { name = "year", type = "int32" },
    { name = "height", type = "double" },
]
[[tables.articles.texts]]
columns = ["title", "body"]
"#;

/// A server and its data.
pub struct TestServer {
    runtime: Runtime,
    server: Option<Server>,
    pub database: Database,
    pub address: SocketAddr,
    pub directory: TempDir,
}

impl TestServer {
    /// A server of seven articles, with these lines of a remora.toml before the table's.
    pub fn start(toml: &str) -> Self {
        let server = Self::start_empty(&format!("{toml}\n{TABLE}"));
        server.fill();
        server
    }

    /// A server with only the tables of the settings.
    pub fn start_empty(toml: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("remora.toml");
        std::fs::write(&path, toml).unwrap();
        Self::start_with(&path, directory)
    }

    /// An empty server that replicates from this source.
    pub fn following(url: &str) -> Self {
        let server = Self::start_empty("");
        let text = format!("[mysql]\nurl = \"{url}\"\n");
        let settings = Settings::parse(Path::new("remora.toml"), &text).unwrap();
        let followed = remora_server::follow(&server.database, &settings.sources).unwrap();
        server.server().follow(followed);
        server
    }

    /// A server with a settings file of any kind; data and port are the test's own. Its tables are made
    /// here, followed ones too.
    pub fn start_with(path: &Path, directory: TempDir) -> Self {
        Self::start_of(path, directory, false)
    }

    /// The same like `remora serve`: the source creates replicated tables.
    pub fn start_beside_source(path: &Path, directory: TempDir) -> Self {
        Self::start_of(path, directory, true)
    }

    fn start_of(path: &Path, directory: TempDir, beside_source: bool) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let mut settings = Settings::parse(path, &text).unwrap();
        settings.file = Some(path.to_owned());
        settings.data = directory.path().join("data");
        settings.dump.dir = directory.path().join("dumps");
        settings.listen.line = "127.0.0.1:0".to_owned();
        settings.listen.http = "127.0.0.1:0".to_owned();
        settings.listen.sql = "127.0.0.1:0".to_owned();
        let settings = settings.finish().unwrap();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime =
            builder.worker_threads(2).thread_stack_size(STACK_BYTES).enable_all().build().unwrap();
        let mut own = settings.clone();
        own.tables.retain(|schema| !(beside_source && settings.is_followed(&schema.name)));
        let database = open_database(&own).unwrap();
        let server = runtime.block_on(Server::start(settings, database.clone(), None)).unwrap();
        let address = server.line_address().unwrap();
        Self { runtime, server: Some(server), database, address, directory }
    }

    /// Loads the seven articles through a server session.
    pub fn fill(&self) {
        let rows = ROWS.replace('\n', "");
        let mut session = self.server().owner();
        let reply = session.ask(&format!("PUT articles {rows}"));
        assert!(reply.starts_with("OK PUT 7 "), "{reply}");
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// The address of the MySQL protocol.
    pub fn sql_address(&self) -> SocketAddr {
        self.server().sql_address().unwrap()
    }

    /// The address of the MySQL protocol in Sphinx's dialect.
    pub fn sphinx_sql_address(&self) -> SocketAddr {
        self.server().sphinx_sql_address().unwrap()
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Whether a client has asked it to stop.
    pub fn is_asked_to_stop(&self) -> bool {
        let patience = Duration::from_millis(50);
        let asked =
            async { tokio::time::timeout(patience, self.server().stop_asked()).await.is_ok() };
        self.runtime.block_on(asked)
    }

    /// Stops the server, and starts one with the same settings over the same data.
    pub fn restart(mut self) -> Self {
        let directory = std::mem::replace(&mut self.directory, tempfile::tempdir().unwrap());
        drop(self);
        let path = directory.path().join("remora.toml");
        Self::start_with(&path, directory)
    }

    /// Stops the server like SIGTERM.
    pub fn stop(mut self) {
        let server = self.server.take().unwrap();
        self.runtime.block_on(server.stop()).unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let _ = self.runtime.block_on(server.stop());
        }
    }
}

/// One connection.
pub struct Client {
    pub stream: TcpStream,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends a request and reads its reply with CRLF.
    pub fn ask(&mut self, request: &str) -> String {
        self.send(request.as_bytes());
        self.send(b"\r\n");
        String::from_utf8(self.reply()).unwrap()
    }

    /// Reads a reply like a client.
    pub fn reply(&mut self) -> Vec<u8> {
        let mut reply = Vec::new();
        let mut chunk = [0; 64 << 10];
        while !reply_is_complete(&reply) {
            let bytes = self.stream.read(&mut chunk).unwrap();
            assert!(bytes > 0, "closed after {:?}", String::from_utf8_lossy(&reply));
            reply.extend_from_slice(&chunk[..bytes]);
        }
        reply
    }

    /// Reads up to the next line's end.
    pub fn reply_line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend_from_slice(&self.read(1));
        }
        line
    }

    /// Reads this number of bytes.
    pub fn read(&mut self, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.stream.read_exact(&mut read).unwrap();
        read
    }

    /// Reads until the server closes.
    pub fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A reset ends it as well as a close.
        let _ = self.stream.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    }
}
