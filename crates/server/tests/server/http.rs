//! The HTTP API, tested over plain connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use crate::support::TestServer;
use serde_json::{Value, json};

/// A response.
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn json(&self) -> Value {
        assert!(self.has("content-type: application/json"), "{}", self.head);
        serde_json::from_str(&self.body).unwrap()
    }

    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line.eq_ignore_ascii_case(header))
    }

    fn code(&self) -> u64 {
        self.json()["error_code"].as_u64().unwrap()
    }
}

/// Sends bytes and reads one response.
fn send(stream: &mut TcpStream, request: &[u8]) -> Response {
    stream.write_all(request).unwrap();
    receive(stream)
}

fn receive(stream: &mut TcpStream) -> Response {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&bytes));
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).unwrap();
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head, body: String::from_utf8(body).unwrap() }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn address(server: &TestServer) -> SocketAddr {
    server.server().http_address().unwrap()
}

fn get(server: &TestServer, path: &str) -> Response {
    get_with(server, path, "")
}

fn get_with(server: &TestServer, path: &str, headers: &str) -> Response {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    send(&mut connect(address(server)), request.as_bytes())
}

fn post(server: &TestServer, path: &str, body: &str) -> Response {
    post_with(server, path, "content-type: application/json\r\n", body)
}

fn post_with(server: &TestServer, path: &str, headers: &str, body: &str) -> Response {
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}");
    send(&mut connect(address(server)), format!("{head}\r\n{body}").as_bytes())
}

/// The settings of a MygramDB file, with free ports.
fn mygramdb(more: &str) -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mygram.yaml");
    let yaml = "mysql: {user: reader, database: shop}\ntables:\n  - name: items\n    text_source: {column: body}\n    \
                filters: [{name: kind, type: string}]\nnetwork: {allow_cidrs: [127.0.0.0/8]}\n";
    std::fs::write(&path, format!("{yaml}{more}")).unwrap();
    TestServer::start_with(&path, directory)
}

#[test]
fn searches_answer_rows_and_columns() {
    let server = TestServer::start("");
    let found = post(&server, "/tables/articles/search", r#"{"q":"mountain"}"#);
    assert_eq!(found.status, 200, "{}", found.body);
    let expected = json!({"count": 1, "limit": 100, "offset": 0, "results": [{
        "primary_key": "1",
        "filters": {"title": "Mount Everest", "kind": "mountain", "year": 1953, "height": 8849.0},
    }]});
    assert_eq!(found.json(), expected);
    let body = r#"{"filters":{"kind":"city"},"sort":{"column":"year","order":"ASC"},"limit":1,
        "fields":["title","year"],"cursor":true}"#;
    let first = post(&server, "/tables/articles/search", body).json();
    assert_eq!(first["count"], 2);
    assert_eq!(
        first["results"],
        json!([{"primary_key": "2",
        "fields": {"title": "Tokyo", "year": 1868}}])
    );
    let next = body.replace("\"cursor\":true", &format!("\"after\":{}", first["cursor"]));
    let second = post(&server, "/tables/articles/search", &next).json();
    assert_eq!(second["results"][0]["primary_key"], "4");
    let body = r#"{"q":"日本","highlight":{"open_tag":"<b>","close_tag":"</b>"},"fields":[],
        "sort":{"column":"id"}}"#;
    let marked = post(&server, "/tables/articles/search", body).json();
    assert_eq!(marked["results"][0]["primary_key"], "3");
    let snippet = marked["results"][0]["highlight"].as_str().unwrap();
    assert!(snippet.contains("<b>日本</b>"), "{snippet}");
    assert_eq!(marked["results"][0].get("filters"), None);
    let body = r#"{"q":"(mountain OR 山) AND NOT Nepal","mode":"boolean"}"#;
    let found = post(&server, "/tables/articles/search", body).json();
    assert_eq!((&found["count"], &found["results"][0]["primary_key"]), (&json!(1), &json!("3")));
    let body = r#"{"q":"cathedrul","fuzzy":1}"#;
    assert_eq!(post(&server, "/tables/articles/search", body).json()["count"], 1);
    let body = r#"{"q":"c++ has a \"plus\""}"#;
    assert_eq!(post(&server, "/tables/articles/search", body).json()["count"], 1);
}

/// HTTP and the line protocol give equal rows in equal order.
#[test]
fn line_protocol_gives_equal_answers() {
    let server = TestServer::start("");
    let mut line = server.connect();
    for (body, request) in [
        (r#"{"q":"a"}"#, "a"),
        (r#"{"q":"city of"}"#, "city of"),
        (r#"{"q":"o","filters":{"year":{"op":">","value":1800}}}"#, "o FILTER year > 1800"),
        (r#"{"q":"o","filters":{"kind":{"op":"!=","value":"city"}}}"#, "o FILTER kind != city"),
        (r#"{"q":"a","sort":{"column":"height","order":"ASC"}}"#, "a SORT height ASC"),
        (r#"{"q":"a","sort":{"column":"_score"},"limit":2}"#, "a SORT _score LIMIT 2"),
        (r#"{"filters":{"kind":null}}"#, "FILTER kind IS NULL"),
        (r#"{"filters":{"kind":["city","writing"]}}"#, "FILTER kind IN (city,writing)"),
        (
            r#"{"filter":"year < 1800 OR NOT kind = 'city'"}"#,
            "FILTER (year < 1800 OR NOT kind = 'city')",
        ),
    ] {
        let found = post(&server, "/tables/articles/search", body).json();
        let mut expected = format!("OK RESULTS {}", found["count"]);
        for row in found["results"].as_array().unwrap() {
            expected.push(' ');
            expected.push_str(row["primary_key"].as_str().unwrap());
        }
        assert_eq!(line.ask(&format!("SEARCH articles {request}")), expected + "\r\n");
    }
    let facet = post(&server, "/tables/articles/facet", r#"{"column":"kind"}"#).json();
    let mut expected = format!("OK FACET {} {}\r\n", facet["count"], facet["total_count"]);
    for value in facet["facets"].as_array().unwrap() {
        let shown = value["value"].as_str().unwrap_or("NULL");
        expected.push_str(&format!("{shown}\t{}\r\n", value["count"]));
    }
    assert_eq!(line.ask("FACET articles kind"), expected + "\r\n");
    let count = post(&server, "/tables/articles/count", r#"{"q":"city"}"#).json();
    assert_eq!(line.ask("COUNT articles city"), format!("OK COUNT {}\r\n", count["count"]));
}

#[test]
fn rows_are_read_by_key() {
    let server = TestServer::start("");
    let row = get(&server, "/tables/articles/7");
    let expected = json!({"primary_key": "7",
        "filters": {"title": "Nothing", "kind": null, "year": null, "height": null}});
    assert_eq!((row.status, row.json()), (200, expected));
    let row = get(&server, "/tables/articles/4?fields=title,height").json();
    let expected = json!({"primary_key": "4", "fields": {"title": "Köln", "height": 53.0}});
    assert_eq!(row, expected);
    let missing = get(&server, "/tables/articles/99");
    let expected = json!({"error": "Document not found", "error_code": 8});
    assert_eq!((missing.status, missing.json()), (404, expected));
    let missing = get(&server, "/tables/nothing/1");
    let expected = json!({"error": "Table not found: nothing", "error_code": 4007});
    assert_eq!((missing.status, missing.json()), (404, expected));
    assert_eq!(get(&server, "/tables/articles/search").status, 400);
    assert_eq!(get(&server, "/tables/articles/x").code(), 2);
}

#[test]
fn wrong_requests_have_status_and_code() {
    let server = TestServer::start("");
    let search = "/tables/articles/search";
    for (path, body, status, code) in [
        (search, "{", 400, 3000),
        (search, r#"{"q":"a","limit":0}"#, 400, 3008),
        (search, r#"{"q":"a","filters":{"nope":1}}"#, 400, 3006),
        (search, r#"{"q":"a","sort":{"column":"nope"}}"#, 400, 3007),
        (search, r#"{"q":"a","unknown":1}"#, 400, 3000),
        ("/tables/nothing/search", r#"{"q":"a"}"#, 404, 4007),
        ("/tables/articles/facet", r#"{"column":"nope"}"#, 400, 4000),
        ("/tables/articles/count", r#"{"q":"a","limit":5}"#, 400, 3000),
        ("/tables/articles/other", "{}", 404, 8),
        ("/nothing", "{}", 404, 8),
        ("/info", "{}", 405, 6007),
    ] {
        let answer = post(&server, path, body);
        assert_eq!((answer.status, answer.code()), (status, code), "{path} {body}");
    }
    let plain = post_with(&server, search, "content-type: text/plain\r\n", r#"{"q":"a"}"#);
    assert_eq!((plain.status, plain.code()), (415, 6007));
    let kind = "content-type: Application/JSON; charset=utf-8\r\n";
    assert_eq!(post_with(&server, search, kind, r#"{"q":"a"}"#).status, 200);
}

#[test]
fn operators_see_the_server() {
    let server = TestServer::start("");
    assert_eq!(get(&server, "/health").json()["status"], "ok");
    assert_eq!(get(&server, "/health/live").json()["status"], "alive");
    let ready = get(&server, "/health/ready");
    assert_eq!((ready.status, &ready.json()["status"]), (200, &json!("ready")));
    let detail = get(&server, "/health/detail").json();
    assert_eq!(detail["status"], "healthy");
    assert_eq!(detail["components"]["index"]["total_documents"], 7);
    post(&server, "/tables/articles/count", r#"{"q":"city"}"#);
    let info = get(&server, "/info").json();
    assert_eq!(info["server"], "Remora");
    assert_eq!(info["tables"]["articles"]["documents"], 7);
    assert_eq!(info["cache"], json!({"enabled": false}));
    let config = get(&server, "/config");
    assert_eq!(config.json()["api"]["http"]["cors_enabled"], false);
    assert!(!config.body.contains("127.0.0.1"), "{}", config.body);
    let replication = get(&server, "/replication/status");
    assert_eq!((replication.status, replication.code()), (503, 4));
    let metrics = get(&server, "/metrics");
    assert!(metrics.has("content-type: text/plain; version=0.0.4; charset=utf-8"));
    for sample in [
        "mygramdb_command_total{command=\"count\"} 1\n",
        "mygramdb_index_documents_total{table=\"articles\"} 7\n",
        "remora_table_segments{table=\"articles\"} 1\n",
    ] {
        assert!(metrics.body.contains(sample), "{sample}{}", metrics.body);
    }
}

#[test]
fn mygramdb_clients_see_a_mygramdb_server() {
    let server = mygramdb("");
    let info = get(&server, "/info").json();
    assert_eq!((&info["server"], &info["version"]), (&json!("MygramDB"), &json!("1.10.0")));
    assert_eq!(info["remora_version"], env!("CARGO_PKG_VERSION"));
    let body = get(&server, "/metrics").body;
    assert!(body.contains("mygramdb_server_info{version=\"1.10.0\"} 1\n"), "{body}");
    let own = format!("remora_server_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION"));
    assert!(body.contains(&own), "{body}");
}

/// One value of `/metrics`.
fn sample(server: &TestServer, name: &str) -> u64 {
    let body = get(server, "/metrics").body;
    let line = body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not there")).parse().unwrap()
}

#[test]
fn line_protocol_connections_are_counted_separately() {
    let server = TestServer::start("[limits]\nmax_connections = 2\n");
    let before = sample(&server, "mygramdb_clients_total");
    let idle: Vec<TcpStream> = (0..3).map(|_| connect(address(&server))).collect();
    assert_eq!(sample(&server, "mygramdb_clients_connected"), 0);
    for _ in 0..3 {
        assert!(server.connect().ask("INFO").starts_with("OK INFO"));
        // The server notices a moment later that the connection has ended; two may be open.
        while sample(&server, "mygramdb_clients_connected") > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert_eq!(sample(&server, "mygramdb_clients_total") - before, 3);
    drop(idle);
}

#[test]
fn writes_invalidate_cached_replies() {
    let cache = "[cache]\nenabled = true\nmin_query_cost_ms = 0.0\n";
    let server = TestServer::start(cache);
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.ask("COUNT articles city"), "OK COUNT 1\r\n");
    }
    let phase = |phase| {
        sample(&server, &format!("mygramdb_cache_invalidations_total{{phase=\"{phase}\"}}"))
    };
    assert_eq!((phase("immediate"), phase("deferred"), phase("batch")), (0, 0, 0));
    let kept = sample(&server, "mygramdb_cache_memory_bytes{type=\"cache\"}");
    assert!(kept > 0);
    assert_eq!(sample(&server, "mygramdb_cache_memory_bytes{type=\"accounted_total\"}"), kept);
    let put = r#"PUT articles {"id":9,"title":"Bonn","body":"A city."}"#;
    assert!(client.ask(put).starts_with("OK PUT"));
    assert_eq!((phase("immediate"), phase("deferred"), phase("batch")), (0, 1, 1));
    assert_eq!(sample(&server, "mygramdb_cache_entries"), 0);
    assert_eq!(client.ask("COUNT articles city"), "OK COUNT 2\r\n");
    let misses =
        |reason| sample(&server, &format!("mygramdb_cache_misses_total{{reason=\"{reason}\"}}"));
    assert_eq!((misses("not_found"), misses("invalidated"), misses("ttl_expired")), (2, 0, 0));
    assert_eq!(sample(&server, "mygramdb_cache_hits_total"), 1);
    client.ask("CACHE DISABLE");
    assert_eq!(sample(&server, "mygramdb_cache_hits_total"), 1, "figures stay while it is off");
}

#[test]
fn all_requests_need_the_configured_token() {
    let server = TestServer::start("[auth]\nadmin_token = 's3cret'\n");
    let kind = "content-type: application/json\r\n";
    let right = format!("{kind}authorization: Bearer s3cret\r\n");
    for path in ["/info", "/metrics", "/config", "/tables/articles/1", "/health/detail", "/nothing"]
    {
        let none = get(&server, path);
        assert_eq!((none.status, none.code()), (401, 7), "{path}");
        assert!(none.has("www-authenticate: Bearer"));
        assert_ne!(get_with(&server, path, &right).status, 401, "{path}");
    }
    for probe in ["/health", "/health/live", "/health/ready"] {
        assert_eq!(get(&server, probe).status, 200, "{probe}");
    }
    let none = post(&server, "/optimize", "{}");
    assert_eq!((none.status, none.code()), (401, 7));
    let wrong = format!("{kind}authorization: Bearer s3cre\r\n");
    assert_eq!(post_with(&server, "/optimize", &wrong, "{}").status, 401);
    let done = post_with(&server, "/optimize", &right, r#"{"table":"articles"}"#).json();
    assert_eq!(done["status"], "ok");
    assert!(done["result"].as_str().unwrap().starts_with("OPTIMIZED tables=1 "), "{done}");
    let missing = post_with(&server, "/optimize", &right, r#"{"table":"nothing"}"#);
    assert_eq!((missing.status, missing.code()), (404, 4007));
    let unknown = post_with(&server, "/optimize", &right, r#"{"tables":1}"#);
    assert_eq!((unknown.status, unknown.code()), (400, 3000));
    let bearer = "authorization: Bearer s3cret\r\n";
    assert_eq!(post_with(&server, "/optimize", bearer, "{}").status, 415);
    assert_eq!(post(&TestServer::start(""), "/optimize", "{}").status, 200);
}

#[test]
fn users_authenticate_with_each_request() {
    let server = TestServer::start(
        "[auth]\nadmin_token = 's3cret'\n[[users]]\nname = 'anna'\npassword = 'geheim'\n",
    );
    let with = |value: &str| get_with(&server, "/info", &format!("authorization: {value}\r\n"));
    let none = get(&server, "/info");
    assert_eq!((none.status, none.code()), (401, 7));
    assert!(none.has("www-authenticate: Basic realm=\"remora\""), "{}", none.head);
    // printf 'anna:geheim' | base64, then with Geheim, then bert:geheim.
    assert_eq!(with("Basic YW5uYTpnZWhlaW0=").status, 200);
    assert_eq!(with("Bearer s3cret").status, 200);
    for wrong in
        ["Basic YW5uYTpHZWhlaW0=", "Basic YmVydDpnZWhlaW0=", "Bearer geheim", "Basic x", "x"]
    {
        assert_eq!(with(wrong).status, 401, "{wrong}");
    }
}

#[test]
fn failed_logins_of_one_protocol_delay_all_protocols() {
    let server = TestServer::start("[[users]]\nname = 'anna'\npassword = 'geheim'\n");
    let mut line = server.connect();
    for number in 0..26 {
        assert!(line.ask(&format!("AUTH anna {number}")).starts_with("ERROR 7 "));
    }
    // printf 'anna:geheim' | base64
    let request =
        b"GET /info HTTP/1.1\r\nhost: localhost\r\nauthorization: Basic YW5uYTpnZWhlaW0=\r\n\r\n";
    let mut streams: Vec<TcpStream> = (0..20).map(|_| connect(address(&server))).collect();
    streams.iter_mut().for_each(|stream| stream.write_all(request).unwrap());
    let answers: Vec<Response> = streams.iter_mut().map(receive).collect();
    let refused = answers.iter().filter(|answer| answer.status == 429 && answer.code() == 6030);
    assert!(refused.clone().count() >= 10, "{}", refused.count());
    assert!(refused.clone().all(|answer| answer.has("retry-after: 5")));
    assert!(answers.iter().all(|answer| answer.status == 429 || answer.status == 200));
}

#[test]
fn mygramdb_maintenance_needs_the_token() {
    let server = mygramdb("api: {admin_token: s3cret}\n");
    let kind = "content-type: application/json\r\n";
    let none = post(&server, "/optimize", "{}");
    assert_eq!((none.status, none.code()), (401, 7));
    let wrong = format!("{kind}authorization: Bearer s3cre\r\n");
    assert_eq!(post_with(&server, "/optimize", &wrong, "{}").status, 401);
    let right = format!("{kind}authorization: Bearer s3cret\r\n");
    assert_eq!(post_with(&server, "/optimize", &right, "{}").status, 200);
    assert_eq!(get(&server, "/info").status, 200);
}

#[test]
fn foreign_web_pages_are_refused_on_this_machine() {
    let server = TestServer::start("");
    let ask = |headers: &str| {
        let request = format!("GET /tables/articles/1 HTTP/1.1\r\n{headers}\r\n");
        send(&mut connect(address(&server)), request.as_bytes())
    };
    let port = address(&server).port();
    for host in ["localhost", "127.0.0.1", &format!("localhost:{port}"), "[::1]:80"] {
        assert_eq!(ask(&format!("host: {host}\r\n")).status, 200, "{host}");
    }
    // A name that its owner lets point to this machine.
    let rebound = ask(&format!("host: evil.example:{port}\r\n"));
    assert_eq!((rebound.status, rebound.code()), (403, 7));
    assert!(rebound.body.contains("http.trusted_proxies"), "{}", rebound.body);
    let foreign = ask("host: localhost\r\norigin: https://evil.example\r\n");
    assert_eq!((foreign.status, foreign.code()), (403, 7));
    assert_eq!(ask("host: localhost\r\norigin: http://localhost\r\n").status, 200);
    let server = TestServer::start("[http]\ntrusted_proxies = ['127.0.0.1']\n");
    let request = "GET /tables/articles/1 HTTP/1.1\r\nhost: search.example\r\n\r\n";
    assert_eq!(send(&mut connect(address(&server)), request.as_bytes()).status, 200);
}

#[test]
fn denied_addresses_and_rate_limited_clients_are_refused() {
    let server = TestServer::start(
        "[network]\nallow_cidrs = ['10.0.0.0/8']\n[http]\ntrusted_proxies = ['127.0.0.1']\n",
    );
    let denied = get(&server, "/health/live");
    assert_eq!((denied.status, denied.code()), (403, 7));
    let forwarded = "x-forwarded-for: 192.0.2.1, 10.1.2.3\r\n";
    assert_eq!(get_with(&server, "/health/live", forwarded).status, 200);
    let metrics = get_with(&server, "/metrics", forwarded).body;
    let sample = "mygramdb_requests_denied_total{reason=\"acl\",surface=\"http\"} 1\n";
    assert!(metrics.contains(sample), "{metrics}");

    let toml = "[limits.rate]\nenable = true\ncapacity = 2\nrefill_rate = 1\n";
    let server = TestServer::start(toml);
    let statuses: Vec<u16> = (0..6).map(|_| get(&server, "/info").status).collect();
    assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
    assert_eq!(get(&server, "/health/ready").status, 200);
    let mut line = server.connect();
    assert_eq!(line.ask("COUNT articles a"), "ERROR 6030 Rate limit exceeded\r\n");
}

#[test]
fn cors_is_allowed_by_setting() {
    let server = TestServer::start("[http]\ncors_allow_origin = 'https://example.com'\n");
    let request = b"OPTIONS /tables/articles/search HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let preflight = send(&mut connect(address(&server)), request);
    assert_eq!((preflight.status, preflight.body.as_str()), (204, ""));
    assert!(preflight.has("access-control-allow-methods: GET, POST, OPTIONS"));
    assert!(preflight.has("access-control-allow-headers: Content-Type, Authorization"));
    let origin = "access-control-allow-origin: https://example.com";
    assert!(preflight.has(origin) && get(&server, "/nothing").has(origin));
    let server = TestServer::start("");
    let refused = send(&mut connect(address(&server)), request);
    assert_eq!(refused.status, 405);
    assert!(!refused.head.to_lowercase().contains("access-control"), "{}", refused.head);
}

#[test]
fn bodies_and_connections_are_limited() {
    let server = TestServer::start("[http]\nmax_body_bytes = 1024\nmax_connections = 2\n");
    let search = "/tables/articles/search";
    let large = post(&server, search, &format!(r#"{{"q":"{}"}}"#, "x".repeat(2000)));
    assert_eq!((large.status, large.code()), (413, 6007));
    let kind = "content-type: application/json\r\ntransfer-encoding: chunked\r\n";
    let head = format!("POST {search} HTTP/1.1\r\nhost: localhost\r\n{kind}\r\n");
    let mut stream = connect(address(&server));
    let chunk = format!("{head}800\r\n{}\r\n0\r\n\r\n", "x".repeat(0x800));
    assert_eq!(send(&mut stream, chunk.as_bytes()).status, 413);
    drop(stream);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let (mut first, mut second) = loop {
        let mut pair = (connect(address(&server)), connect(address(&server)));
        // Connections that were dropped are noticed a moment later.
        if send(&mut pair.0, request).status == 200 && send(&mut pair.1, request).status == 200 {
            break pair;
        }
        assert!(std::time::Instant::now() < deadline);
    };
    let busy = receive(&mut connect(address(&server)));
    assert_eq!((busy.status, busy.code()), (503, 6030));
    assert_eq!(send(&mut first, request).status, 200);
    assert_eq!(send(&mut second, request).status, 200);
}

#[test]
fn slow_and_silent_clients_are_closed() {
    let server = TestServer::start("[limits]\nidle_timeout_s = 1\n[http]\nread_timeout_s = 1\n");
    let mut rest = Vec::new();
    let mut silent = connect(address(&server));
    silent.read_to_end(&mut rest).unwrap();
    let mut slow = connect(address(&server));
    let mut sender = slow.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        (0..60).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            sender.write_all(b"x").is_err()
        })
    });
    slow.write_all(b"GET /health HTTP/1.1\r\nx: ").unwrap();
    // A reset ends it as well as a close.
    let _ = slow.read_to_end(&mut rest);
    assert!(trickle.join().unwrap(), "the server went on reading");
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    let mut body = connect(address(&server));
    let head = "POST /tables/articles/count HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\
                content-type: application/json\r\n\r\n{";
    assert_eq!(send(&mut body, head.as_bytes()).status, 408);
}

#[test]
fn a_stop_ends_idle_connections() {
    let server = TestServer::start("");
    let mut kept = connect(address(&server));
    assert_eq!(send(&mut kept, b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").status, 200);
    let start = std::time::Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(5));
    let mut rest = Vec::new();
    kept.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
}

#[test]
fn a_mygramdb_file_has_its_own_rules() {
    let server = mygramdb("api: {http: {enable: true}}\n");
    let search = "/tables/items/search";
    let own = r#"{"q":"a","fields":["kind"],"cursor":true,"unknown":1}"#;
    let found = post(&server, search, own).json();
    assert_eq!(found, json!({"count": 0, "limit": 100, "offset": 0, "results": []}));
    let long = format!(r#"{{"q":"{}"}}"#, "x".repeat(129));
    assert_eq!(post(&server, search, &long).code(), 3005);
    assert_eq!(post(&server, search, r#"{"q":"a","limit":1001}"#).code(), 3008);
    assert_eq!(post(&server, search, "{}").code(), 3000);
    assert_eq!(post(&server, "/tables/a%20b/search", r#"{"q":"a"}"#).code(), 3001);
    let config = get(&server, "/config").json();
    assert_eq!(config["mysql"], json!({"configured": true, "database_defined": true}));
}
