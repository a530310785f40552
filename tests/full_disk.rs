//! A server whose disk fills up: it reports so, answers reads, and accepts writes again when there is room.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    io::{BufRead, BufReader, Lines, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

/// A server on its own file system; another file occupies most of it until a line is sent.
const SCRIPT: &str = "mkdir disk && mount -t tmpfs -o size=160m tmpfs disk && echo mounted && \
    head -c 140M /dev/zero > disk/other && \
    { $SERVER & server=$!; read line; rm disk/other; read line; kill $server; wait $server; }";

struct OnSmallDisk {
    child: Child,
    orders: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    _directory: tempfile::TempDir,
}

impl OnSmallDisk {
    /// `None` if nothing can be mounted.
    fn start() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let server = format!(
            "{} serve --data disk/data --line 127.0.0.1:0 --http 127.0.0.1:0 --sql",
            env!("CARGO_BIN_EXE_remora")
        );
        let mut child = Command::new("unshare")
            .args(["-rm", "sh", "-c", SCRIPT])
            .current_dir(directory.path())
            .env("SERVER", format!("{server} 127.0.0.1:0"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let orders = child.stdin.take().unwrap();
        match output.next() {
            Some(Ok(line)) if line == "mounted" => {
                Some(Self { child, orders, output, _directory: directory })
            }
            _ => {
                child.wait().unwrap();
                None
            }
        }
    }

    /// The value that the server reports under this name.
    fn told(&mut self, name: &str) -> String {
        loop {
            let line = self.output.next().unwrap().unwrap();
            if let Some(value) = line.strip_prefix(name) {
                return value.to_owned();
            }
        }
    }

    fn order(&mut self) {
        writeln!(self.orders).unwrap();
    }
}

fn exchange(address: &str, request: &str, is_whole: impl Fn(&[u8]) -> bool) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let (mut reply, mut chunk) = (Vec::new(), [0; 4096]);
    while !is_whole(&reply) {
        match stream.read(&mut chunk).unwrap() {
            0 => break,
            bytes => reply.extend_from_slice(&chunk[..bytes]),
        }
    }
    String::from_utf8(reply).unwrap()
}

fn ask(address: &str, request: &str) -> String {
    exchange(address, &format!("{request}\r\n"), |reply| reply.ends_with(b"\r\n"))
}

fn ready(address: &str) -> String {
    let request = "GET /health/ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    exchange(address, request, |_| false)
}

#[test]
fn a_server_says_that_its_disk_is_full_and_goes_on_when_it_is_not() {
    let Some(mut server) = OnSmallDisk::start() else {
        assert!(std::env::var("REMORA_REQUIRE_MOUNT").is_err(), "nothing can be mounted");
        // Written directly, because the output of passing tests is captured.
        let said = b"NOT TESTED ON A FULL DISK: nothing can be mounted here\n";
        std::io::stderr().write_all(said).unwrap();
        return;
    };
    let line = server.told("line protocol: ");
    let http = server.told("HTTP: http://");
    let schema = r#"{"name":"t","primary_key":["id"],"columns":[{"name":"id","type":"int64"},{"name":"body","type":"text"}],"texts":[{"columns":["body"]}]}"#;
    assert!(ask(&line, &format!("CREATE TABLE t {schema}")).starts_with("OK CREATED"), "{schema}");
    let body = |id: u32| -> String {
        let letter = |at: u32| char::from(b'a' + (id.wrapping_mul(at * at + 7) >> 9) as u8 % 26);
        (0..60_000).map(letter).collect()
    };
    let put = |id: u32| ask(&line, &format!(r#"PUT t {{"id":{id},"body":"kept {}"}}"#, body(id)));
    // Some tens of megabytes fit.
    let refused =
        (0..20_000).map(|id| (id, put(id))).find(|(_, reply)| !reply.starts_with("OK PUT 1"));
    let (rows, said) = refused.unwrap();
    assert!(
        rows > 0 && said.contains("the disk is full") && said.contains("MiB are free"),
        "{said}"
    );
    assert!(put(rows).contains("the disk is full"));
    assert_eq!(ask(&line, "COUNT t kept"), format!("OK COUNT {rows}\r\n"));
    let told = ready(&http);
    assert!(told.starts_with("HTTP/1.1 200"), "{told}");
    assert!(told.contains("\"writes_refused\":true"), "{told}");
    assert!(told.contains("\"storage_error\":\"writes are refused: the disk is full"), "{told}");
    assert!(ask(&line, "INFO").contains("storage_error: writes are refused: "));
    server.order();
    let deadline = Instant::now() + Duration::from_secs(120);
    while ready(&http).contains("writes_refused") {
        assert!(Instant::now() < deadline, "writing does not go on: {}", ready(&http));
        std::thread::sleep(Duration::from_millis(20));
    }
    for id in rows..rows + 20 {
        let reply = put(id);
        assert!(reply.starts_with("OK PUT 1"), "{reply}");
    }
    assert_eq!(ask(&line, "COUNT t kept"), format!("OK COUNT {}\r\n", rows + 20));
    server.order();
    server.child.wait().unwrap();
}
