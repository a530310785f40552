//! tiedot's HTTP API: the session of its tutorial, every form of query, and hostile requests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::{
    fmt::Write as _,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::TestServer;

const FORM: &str = "application/x-www-form-urlencoded";

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line.eq_ignore_ascii_case(header))
    }

    fn json(&self) -> Value {
        assert!(self.has("content-type: application/json"), "{} {}", self.head, self.body);
        serde_json::from_str(&self.body).unwrap()
    }
}

fn start(toml: &str) -> TestServer {
    TestServer::start_empty(&format!("[listen]\ntiedot = '127.0.0.1:0'\n{toml}"))
}

fn connect(server: &TestServer) -> TcpStream {
    let stream = TcpStream::connect(server.server().tiedot_address().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn send(server: &TestServer, request: &[u8]) -> Response {
    let mut stream = connect(server);
    // A request that is refused may not be read to its end.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap();
    Response { status, head: head.to_owned(), body: body.to_owned() }
}

fn request(server: &TestServer, line: &str, headers: &str, body: &str) -> Response {
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    let text = format!("{head}content-length: {length}\r\n{headers}\r\n{body}");
    send(server, text.as_bytes())
}

fn get(server: &TestServer, path: &str) -> Response {
    request(server, &format!("GET {path}"), "", "")
}

/// A body of any type.
fn post(server: &TestServer, path: &str, kind: &str, body: &str) -> Response {
    request(server, &format!("POST {path}"), &format!("content-type: {kind}\r\n"), body)
}

/// Percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "%{byte:02X}");
        out
    })
}

fn body_text(response: &Response, status: u16) -> &str {
    assert_eq!(response.status, status, "{} {}", response.head, response.body);
    response.body.trim_end()
}

fn insert(server: &TestServer, col: &str, doc: &Value) -> String {
    let path = format!("/insert?col={col}");
    body_text(&post(server, &path, "application/json", &doc.to_string()), 201).to_owned()
}

/// The sorted ids of a query's documents; `/count` must return their number.
fn find(server: &TestServer, col: &str, query: &Value) -> Vec<String> {
    let form = format!("col={col}&q={}", encoded(&query.to_string()));
    let found = post(server, "/query", FORM, &form);
    assert_eq!(found.status, 200, "{query}: {}", found.body);
    let found = found.json();
    let mut ids: Vec<String> = found.as_object().unwrap().keys().cloned().collect();
    ids.sort_by_key(|id| id.parse::<i64>().unwrap());
    let count = post(server, "/count", FORM, &form);
    assert_eq!(body_text(&count, 200), ids.len().to_string(), "{query}");
    ids
}

/// A request of the tutorial: the address, and what `--data-ascii` is given.
fn curl(server: &TestServer, path: &str, data: &str) -> Response {
    match data {
        "" => get(server, path),
        data => post(server, path, FORM, data),
    }
}

#[test]
fn the_tutorial_of_tiedot() {
    let server = start("");
    for (path, status) in [
        ("/create?col=Feeds", 201),
        ("/create?col=Votes&numparts=2", 201),
        ("/rename?old=Votes&new=Points", 200),
    ] {
        assert_eq!(body_text(&get(&server, path), status), "", "{path}");
    }
    assert_eq!(get(&server, "/all").body, r#"["Feeds","Points"]"#);
    assert_eq!(body_text(&get(&server, "/drop?col=Points"), 200), "");
    assert_eq!(get(&server, "/all").body, r#"["Feeds"]"#);
    // curl encodes nothing of --data-ascii.
    let inserted = curl(&server, "/insert?col=Feeds", r#"doc={"a": 1, "b": 2}"#);
    let id = body_text(&inserted, 201).to_owned();
    assert!(id.parse::<i64>().unwrap() > 1 << 53 && inserted.has("content-type: text/plain"));
    let read = format!("/get?col=Feeds&id={id}");
    assert_eq!(body_text(&get(&server, &read), 200), r#"{"a":1,"b":2}"#);
    let update = format!("/update?col=Feeds&id={id}");
    assert_eq!(body_text(&curl(&server, &update, r#"doc={"a": 3, "b": 4}"#), 200), "");
    assert_eq!(get(&server, &read).json(), json!({"a": 3, "b": 4}));
    assert_eq!(body_text(&get(&server, &format!("/delete?col=Feeds&id={id}")), 200), "");
    for path in ["a,b,c", "Title", "Source", "Age"] {
        assert_eq!(get(&server, &format!("/index?col=Feeds&path={path}")).status, 201);
    }
    let indexes = get(&server, "/indexes?col=Feeds");
    assert_eq!(indexes.body, r#"[["a","b","c"],["Title"],["Source"],["Age"]]"#);
    assert_eq!(body_text(&get(&server, "/unindex?col=Feeds&path=a,b,c"), 200), "");
    let ids = [
        r#"doc={"Title": "New Go release", "Source": "golang.org", "Age": 3}"#,
        r#"doc={"Title": "Kitkat is here", "Source": "android.com", "Age": 2}"#,
        r#"doc={"Title": "Slackware Beta", "Source": "slackware.com", "Age": 1}"#,
    ]
    .map(|doc| curl(&server, "/insert?col=Feeds", doc).body);
    let go = r#"q={"eq": "New Go release", "in": ["Title"]}"#;
    let found = curl(&server, "/query?col=Feeds", go);
    let document = json!({"Title": "New Go release", "Source": "golang.org", "Age": 3});
    assert_eq!(found.json(), json!({ &ids[0]: document }));
    let feeds = |query: &Value| find(&server, "Feeds", query);
    let (title, android) = (
        json!({"eq": "New Go release", "in": ["Title"]}),
        json!({"eq": "android.com", "in": ["Source"]}),
    );
    assert_eq!(feeds(&json!([title, android])), ids[..2]);
    assert_eq!(feeds(&json!({"c": [{"eq": "golang.org", "in": ["Source"]}, "all"]})), ids[1..]);
    let young = json!({"n": [{"eq": "slackware.com", "in": ["Source"]}, {"int-from": 1, "int-to": 3, "in": ["Age"]}]});
    assert_eq!(feeds(&young), ids[2..]);
    let refused = get(&server, "/shutdown");
    assert!(body_text(&refused, 403).contains("auth.admin_token"), "{}", refused.body);
}

#[test]
fn every_form_of_query() {
    let server = start("");
    assert_eq!(get(&server, "/create?col=c").status, 201);
    let ids: Vec<String> = [
        json!({"Author": {"Name": "John", "Born": 1980}, "Year": 5, "tags": ["a", "b"]}),
        json!({"Author": {"Name": "Mary", "Born": 1990}, "Year": "5", "tags": []}),
        json!({"Author": [{"Name": "John", "Born": 2000}, {"Name": "Ann", "Born": 1970}], "Year": 7}),
        json!({"Author": null, "Year": 1e21, "tags": null}),
    ]
    .iter()
    .map(|doc| insert(&server, "c", doc))
    .collect();
    let at = |places: &[usize]| places.iter().map(|place| ids[*place].clone()).collect::<Vec<_>>();
    for path in ["Author,Name", "Author,Born", "Year", "tags", "Author"] {
        assert_eq!(get(&server, &format!("/index?col=c&path={path}")).status, 201, "{path}");
    }
    let john = json!({"eq": "John", "in": ["Author", "Name"]});
    let cases: Vec<(Value, &[usize])> = vec![
        (json!("all"), &[0, 1, 2, 3]),
        (json!(ids[1]), &[1]),
        // One that is not there is none.
        (json!([ids[1], "456", ids[1]]), &[1]),
        (john.clone(), &[0, 2]),
        (json!({"eq": "John", "in": ["Author", "Name"], "limit": 1}), &[0]),
        (json!({"eq": "John", "in": ["Author", "Name"], "limit": 0}), &[0, 2]),
        // Values are what they are.
        (json!({"eq": 5, "in": ["Year"]}), &[0]),
        (json!({"eq": "5", "in": ["Year"]}), &[1]),
        (json!({"eq": 5.0, "in": ["Year"]}), &[0]),
        (json!({"eq": 1e21, "in": ["Year"]}), &[3]),
        (json!({"eq": null, "in": ["Author"]}), &[3]),
        (json!({"eq": "b", "in": ["tags"]}), &[0]),
        // Paths of several names, downwards, limits.
        (json!({"int-from": 1975, "int-to": 1995, "in": ["Author", "Born"]}), &[0, 1]),
        (json!({"int-from": 1970, "int-to": 1970, "in": ["Author", "Born"]}), &[2]),
        (json!({"int-from": 1970, "int-to": 2000, "in": ["Author", "Born"], "limit": 2}), &[0, 2]),
        (json!({"int-from": 1999, "int-to": 0, "in": ["Author", "Born"], "limit": 1}), &[1]),
        (json!({"int from": 4, "int to": 8, "in": ["Year"]}), &[0, 2]),
        (json!({"has": ["tags"]}), &[0]),
        (json!({"has": ["Author"]}), &[0, 1, 2]),
        (json!({"has": ["Author", "Name"], "limit": 2}), &[0, 1]),
        (json!([john, ids[3]]), &[0, 2, 3]),
        (json!([]), &[]),
        (json!({"n": [john, {"has": ["tags"]}]}), &[0]),
        (json!({"n": [john, {"eq": "nobody", "in": ["Author", "Name"]}]}), &[]),
        (json!({"c": ["all", john]}), &[1, 3]),
        (json!({"c": ["all", john, [ids[0], ids[1]]]}), &[0, 3]),
        (json!({"n": [{"c": ["all", {"eq": 7, "in": ["Year"]}]}, [john, "77"]]}), &[0]),
    ];
    for (query, places) in cases {
        assert_eq!(find(&server, "c", &query), at(places), "{query}");
    }
    let form = r#"col=c&q={"int-from":1,"int-to":2,"in":["Author","Age"]}"#;
    let refused = post(&server, "/query", FORM, form);
    let text = r#"Please index Author,Age and retry query {"in":["Author","Age"],"int-from":1,"int-to":2}."#;
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    // In whichever order the keys of an object stand.
    assert_eq!(sorted(body_text(&refused, 400)), sorted(text));
    // The body is the query, too.
    assert_eq!(body_text(&post(&server, "/count?col=c", FORM, "\"all\""), 200), "4");
}

#[test]
fn limited_ranges_return_documents_nearest_to_the_start() {
    let server = start("");
    assert_eq!(get(&server, "/create?col=f").status, 201);
    assert_eq!(get(&server, "/index?col=f&path=y").status, 201);
    let values =
        [json!(5), json!(7), json!(5.25), json!([5, 9]), json!(5.5), json!(-3), json!("6")];
    let ids = values.map(|value| insert(&server, "f", &json!({ "y": value })));
    for (from, to, limit, places) in [
        (0, 10, 1, &[0][..]),
        (0, 10, 2, &[0, 3]),
        (0, 10, 3, &[0, 2, 3]),
        (10, 0, 1, &[3]),
        (10, 0, 3, &[1, 3, 4]),
        (10, 0, 4, &[1, 2, 3, 4]),
        (i64::MAX, i64::MIN, 5, &[0, 1, 2, 3, 4]),
        (i64::MIN, i64::MAX, 1, &[5]),
        (5, 5, 1, &[0]),
        (-2, -2, 1, &[]),
    ] {
        let query = json!({"int-from": from, "int-to": to, "in": ["y"], "limit": limit});
        let expected: Vec<String> = places.iter().map(|place| ids[*place].clone()).collect();
        assert_eq!(find(&server, "f", &query), expected, "{query}");
    }
}

#[test]
fn documents_are_found_by_their_ids_alone() {
    let server = start("");
    assert_eq!(get(&server, "/create?col=a").status, 201);
    for kind in [FORM, "application/json", "text/plain"] {
        assert_eq!(
            post(&server, "/insert?col=a", kind, r#"{"kind":"x&y=z"}"#).status,
            201,
            "{kind}"
        );
    }
    assert_eq!(request(&server, r"PUT /insert?col=a&doc={%22a%22:1}", "", "").status, 201);
    assert_eq!(body_text(&get(&server, "/approxdoccount?col=a"), 200), "4");
    for path in ["/get?col=a&id=5", "/delete?col=a&id=5", "/update?col=a&id=5&doc={}"] {
        assert_eq!(body_text(&get(&server, path), 404), "No such document ID 5.", "{path}");
    }
    // Pages are parts without overlap, whatever their number.
    for total in [1, 3, 4, 9] {
        let pages = (0..total).map(|page| {
            let found = get(&server, &format!("/getpage?col=a&page={page}&total={total}"));
            found.json().as_object().unwrap().len()
        });
        assert_eq!(pages.sum::<usize>(), 4, "{total}");
    }
    // SQL sees a table, and its collections are found here.
    let table = server.database.schema("a").unwrap();
    assert_eq!((table.columns[0].name.as_str(), table.columns[1].name.as_str()), ("id", "doc"));
    let scrubbed = get(&server, "/scrub?col=a");
    assert!(scrubbed.has("cache-control: must-revalidate"), "{}", scrubbed.head);
    assert!(scrubbed.has("access-control-allow-origin: *"), "{}", scrubbed.head);
    assert_eq!(body_text(&get(&server, "/sync"), 200), "");
    assert_eq!(body_text(&get(&server, "/version"), 200), "6");
    assert!(body_text(&get(&server, "/"), 200).starts_with("Welcome"));
    assert!(get(&server, "/memstats").json()["Sys"].as_u64().unwrap() > 0);
}

#[test]
fn errors_have_the_messages_of_tiedot() {
    let server = start("");
    assert_eq!(get(&server, "/create?col=a").status, 201);
    assert_eq!(get(&server, "/create?col=b").status, 201);
    assert_eq!(get(&server, "/index?col=a&path=x,y").status, 201);
    for (path, status, text) in [
        ("/create", 400, "Please pass POST/PUT/GET parameter value of 'col'."),
        ("/insert?col=a", 400, "Please pass POST/PUT/GET parameter value of 'doc'."),
        ("/query?col=a&q=", 400, "Please pass POST/PUT/GET parameter value of 'q'."),
        ("/getpage?col=a&page=0", 400, "Please pass POST/PUT/GET parameter value of 'total'."),
        ("/create?col=a", 400, "Collection a already exists"),
        ("/rename?old=a&new=b", 400, "Collection b already exists"),
        ("/rename?old=x&new=y", 400, "Collection 'x' does not exist."),
        ("/drop?col=x", 400, "Collection 'x' does not exist."),
        ("/get?col=x&id=1", 400, "Collection 'x' does not exist."),
        ("/get?col=a&id=1x", 400, "Invalid document ID '1x'."),
        ("/get?col=a&id=99999999999999999999", 400, "Invalid document ID"),
        ("/insert?col=a&doc={", 400, "'{' is not valid JSON document."),
        ("/insert?col=a&doc=[1]", 400, "'[1]' is not valid JSON document."),
        ("/insert?col=a&doc={%22a%22:1e999}", 400, "is not valid JSON document."),
        ("/index?col=a&path=x,y", 400, "Path [x y] is already indexed"),
        ("/unindex?col=a&path=y", 400, "Path [y] is not indexed"),
        ("/index?col=a&path=x,,y", 400, "has an empty name in it."),
        ("/getpage?col=a&page=3&total=3", 400, "Invalid page number '3'."),
        ("/getpage?col=a&page=-1&total=3", 400, "Invalid page number '-1'."),
        ("/getpage?col=a&page=0&total=0", 400, "Invalid total page number '0'."),
        ("/query?col=a&q=5", 400, "Query 5 is none"),
        ("/query?col=a&q={", 400, "'{' is not valid JSON."),
        ("/drop?col=a&force=1", 400, "Unknown parameter 'force'"),
        ("/drop?col=a&col=b", 400, "Parameter 'col' is given twice."),
        ("/drop?col=%ff", 400, "is no percent-encoded UTF-8."),
        ("/dropped", 404, "Invalid API endpoint"),
        ("/create/", 404, "Invalid API endpoint"),
        ("/getjwt?user=a&pass=b", 404, "nobody logs in here"),
        ("/checkjwt", 404, "nobody logs in here"),
        ("/shutdown", 403, "/shutdown is refused"),
        ("/dump?dest=x", 403, "/dump is refused"),
    ] {
        let response = get(&server, path);
        assert!(body_text(&response, status).contains(text), "{path}: {}", response.body);
    }
    // Names lead neither out of the database nor into another one.
    for name in ["../x", "/etc/x", "..", "a%5Cb", "mysql.user", "%23ids.a", "a%00b", "%0a"] {
        let made = get(&server, &format!("/create?col={name}"));
        assert!(body_text(&made, 400).contains("is not valid"), "{name}: {}", made.body);
        assert_eq!(get(&server, &format!("/rename?old=a&new={name}")).status, 400, "{name}");
        assert_eq!(get(&server, &format!("/drop?col={name}")).status, 400, "{name}");
    }
    assert_eq!(get(&server, "/all").body, r#"["a","b"]"#);
}

#[test]
fn a_query_ends_when_its_time_is_over() {
    let answer = |limit_ms: u64| {
        let server = start(&format!("[limits]\nmax_query_time_ms = {limit_ms}\n"));
        assert_eq!(get(&server, "/create?col=a").status, 201);
        let form = format!("doc={}", encoded(&json!({"text": "long".repeat(2_500)}).to_string()));
        for _ in 0..500 {
            assert_eq!(post(&server, "/insert?col=a", FORM, &form).status, 201);
        }
        // Each text is read: that takes longer than a millisecond on any machine.
        get(&server, "/query?col=a&q=%22all%22")
    };
    let ended = body_text(&answer(1), 503).to_owned();
    assert!(ended.contains("the read took longer than allowed"), "{ended}");
    assert_eq!(answer(0).json().as_object().unwrap().len(), 500);
}

#[test]
fn too_large_and_too_deep_requests_are_refused() {
    let toml =
        "[http]\nmax_body_bytes = 20000\nread_timeout_s = 1\n[limits]\nwrite_queue_bytes = 8192\n";
    let server = start(toml);
    assert_eq!(get(&server, "/create?col=a").status, 201);
    let nested = |levels| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(post(&server, "/insert?col=a", FORM, &nested(90)).status, 201);
    for levels in [100, 126, 9_000] {
        assert_eq!(post(&server, "/insert?col=a", FORM, &nested(levels)).status, 400, "{levels}");
    }
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let refused = post(&server, "/query?col=a", "x", &deep);
    assert!(body_text(&refused, 400).contains("deeper than 16"), "{}", refused.body);
    let huge = format!("{{\"a\":\"{}\"}}", "x".repeat(30_000));
    assert_eq!(post(&server, "/insert?col=a", FORM, &huge).status, 413);
    // A body without a length ends there as well.
    let head = "POST /insert?col=a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunks = format!("{head}7530\r\n{}\r\n0\r\n\r\n", "x".repeat(30_000));
    assert_eq!(send(&server, chunks.as_bytes()).status, 413);
    let slow = "POST /insert?col=a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 9\r\n\r\n{";
    assert_eq!(send(&server, slow.as_bytes()).status, 408);
    // A result has an end, and pages of it are the way on.
    for _ in 0..3 {
        insert(&server, "a", &json!({"text": "y".repeat(3_000)}));
    }
    let refused = post(&server, "/query?col=a", FORM, "\"all\"");
    assert!(body_text(&refused, 400).contains("limits.write_queue_bytes"), "{}", refused.body);
    assert_eq!(body_text(&post(&server, "/count?col=a", FORM, "\"all\""), 200), "4");
    assert_eq!(get(&server, "/getpage?col=a&page=1&total=2").status, 200);
}

#[test]
fn the_encoding_of_a_form_may_take_more_bytes_than_a_body() {
    let server = start("[http]\nmax_body_bytes = 20000\n");
    assert_eq!(get(&server, "/create?col=a").status, 201);
    let document = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    let percent = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let insert = |doc: &str| post(&server, "/insert?col=a", FORM, &format!("doc={doc}")).status;
    assert_eq!(insert(&percent(&document(20_000))), 201);
    assert_eq!(insert(&percent(&document(20_001))), 413);
    assert_eq!(insert(&document(20_001)), 413);
    // Together with other parameters.
    let most = 3 * 20_000 + (64 << 10);
    let parameters = |bytes: usize| format!("{{}}&{}", "y=&".repeat(bytes / 3));
    assert_eq!(insert(&parameters(most - 20)), 400);
    assert_eq!(insert(&parameters(most + 20)), 413);
}

#[test]
fn a_form_that_breaks_off_does_nothing() {
    let server = start("[auth]\nadmin_token = 's3cret'\n");
    assert_eq!(get(&server, "/create?col=a&access_token=s3cret").status, 201);
    let form = "access_token=s3cret&col=abc";
    let head = format!(
        "POST /drop HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {FORM}\r\n\
         content-length: {}\r\n\r\n",
        form.len()
    );
    // Of the collection's name only the first letter comes, which is another collection.
    for ends in [true, false] {
        let mut stream = connect(&server);
        stream.write_all(format!("{head}{}", &form[..form.len() - 2]).as_bytes()).unwrap();
        if ends {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(get(&server, "/all?access_token=s3cret").body, "[\"a\"]");
    assert_eq!(send(&server, format!("{head}{form}").as_bytes()).status, 400);
}

#[test]
fn a_document_of_almost_16_mib_is_stored_grown_and_read() {
    const LIMIT: usize = 16 << 20;
    let server =
        start("[http]\nmax_body_bytes = 40000000\n[limits]\nwrite_queue_bytes = 40000000\n");
    assert_eq!(get(&server, "/create?col=a").status, 201);
    // Its text takes this many bytes.
    let document = |bytes: usize| format!("{{\"t\":\"{}\"}}", "x".repeat(bytes - 8));
    let path = "/insert?col=a";
    let id = post(&server, path, "application/json", &document(LIMIT - 1_000));
    let id = body_text(&id, 201).to_owned();
    let path = format!("/update?col=a&id={id}");
    assert_eq!(post(&server, &path, "application/json", &document(LIMIT)).status, 200);
    let refused = post(&server, &path, "application/json", &document(LIMIT + 1));
    assert!(body_text(&refused, 400).contains("more than 16 MiB"), "{}", refused.body.len());
    let server = server.restart();
    let found = get(&server, &format!("/get?col=a&id={id}"));
    assert!(found.status == 200 && found.body == document(LIMIT), "{}", found.body.len());
    assert_eq!(body_text(&get(&server, "/approxdoccount?col=a"), 200), "1");
}

#[test]
fn what_is_no_document_is_refused_with_its_place() {
    let server = start("");
    assert_eq!(get(&server, "/create?col=a").status, 201);
    let id = insert(&server, "a", &json!({"n": 1}));
    let deep = format!("{{\"a\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    for (text, words) in [
        (
            "{\"a\": {\"b\": 1, \"b\": 2}}",
            "the name \"b\" comes twice in an object: keep one, in a at line 1",
        ),
        ("{\"a\": \"\\ud83d\"}", "hex escape at line 1 column"),
        ("{\"a\": 18446744073709551616}", "beyond 64 bits"),
        ("{\"a\": 1e999}", "number out of range at line 1 column"),
        ("{\"a\": [1, 2", "EOF while parsing a list at line 1 column"),
        (deep.as_str(), "deeper than 100 levels"),
        ("[1]", "A document is an object"),
    ] {
        for path in ["/insert?col=a".to_owned(), format!("/update?col=a&id={id}")] {
            let refused = post(&server, &path, "application/json", text);
            assert!(body_text(&refused, 400).contains(words), "{text}: {}", refused.body);
        }
    }
    assert_eq!(body_text(&get(&server, "/approxdoccount?col=a"), 200), "1");
    assert_eq!(get(&server, &format!("/get?col=a&id={id}")).json(), json!({"n": 1}));
}

#[test]
fn cross_origin_pages_are_refused_without_login() {
    let server = start("");
    let ask = |headers: &str| request(&server, "GET /create?col=a", headers, "").status;
    for foreign in [
        "origin: https://evil.example\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
        "referer: https://evil.example/\r\n",
    ] {
        assert_eq!(ask(foreign), 403, "{foreign}");
    }
    let rebound = b"GET /all HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert_eq!(send(&server, rebound).status, 403);
    assert_eq!(get(&server, "/all").body, "[]");
    assert_eq!(ask("sec-fetch-site: none\r\n"), 201);
    let guarded = start("[auth]\nadmin_token = 's3cret'\n");
    let headers = "origin: https://app.example\r\nauthorization: token s3cret\r\n";
    let answered = request(&guarded, "GET /all", headers, "");
    assert!(answered.status == 200 && answered.has("access-control-allow-origin: *"));
    let asked = request(&guarded, "OPTIONS /all", "origin: https://app.example\r\n", "");
    assert!(
        asked.has("access-control-allow-headers: Content-Type, Authorization"),
        "{}",
        asked.head
    );
}

#[test]
fn token_is_required_and_permits_shutdown() {
    let server = start("[auth]\nadmin_token = 's3cret'\n");
    for open in ["/", "/version", "/memstats"] {
        assert_eq!(get(&server, open).status, 200, "{open}");
    }
    for path in ["/all", "/all?access_token=secret", "/shutdown", "/create?col=a"] {
        assert!(body_text(&get(&server, path), 401).contains("token"), "{path}");
    }
    let with = |headers: &str| request(&server, "GET /all", headers, "").status;
    assert_eq!(with("authorization: token wrong\r\n"), 401);
    assert_eq!(with("authorization: s3cret\r\n"), 401);
    for proof in ["token s3cret", "Bearer s3cret", "Basic eDpzM2NyZXQ="] {
        assert_eq!(with(&format!("authorization: {proof}\r\n")), 200, "{proof}");
    }
    assert_eq!(get(&server, "/all?access_token=s3cret").status, 200);
    assert_eq!(get(&server, "/create?col=a&access_token=s3cret").status, 201);
    assert_eq!(get(&server, "/insert?col=a&doc={}&access_token=s3cret").status, 201);
    let form = |body: &str| post(&server, "/insert?col=a", FORM, body).status;
    assert_eq!(form("doc={}&access_token=s3cret"), 201);
    assert_eq!(form("access_token=wrong&doc={}"), 401);
    assert_eq!(form("{\"a\": \"&access_token=s3cret&\"}"), 401);
    // The token is looked for where a form begins; what comes behind it is read once it is proved.
    let long = format!("doc={}", encoded(&json!({"a": "x".repeat(70_000)}).to_string()));
    assert_eq!(form(&format!("access_token=s3cret&{long}")), 201);
    assert_eq!(form(&format!("{long}&access_token=s3cret")), 401);
    let dump = |name: &str| get(&server, &format!("/dump?dest={name}&access_token=s3cret"));
    assert_eq!(body_text(&dump("one.dump"), 200), "");
    assert!(server.directory.path().join("dumps/one.dump").exists());
    assert!(body_text(&dump("one.dump"), 500).contains("already exists"));
    // How far ids are given is kept beside the positions of sources, and is none.
    let info = server.server().owner().ask("DUMP INFO one.dump");
    assert!(info.contains("gtid: \r\n"), "{info}");
    for outside in ["../x", "/etc/x", "a/../../x"] {
        assert_eq!(dump(outside).status, 400, "{outside}");
    }
    assert_eq!(body_text(&get(&server, "/shutdown?access_token=s3cret"), 200), "");
    assert!(server.is_asked_to_stop());
}

/// A form has three bytes for a byte of a document.
#[test]
fn documents_of_the_greatest_size_come_as_forms_too() {
    let server = start("");
    assert_eq!(get(&server, "/create?col=a").status, 201);
    // `{"a":"ü…"}`
    let form = |letters: usize| {
        let text = "%C3%BC".repeat(letters);
        let body = format!("col=a&doc={}{text}{}", encoded("{\"a\":\""), encoded("\"}"));
        post(&server, "/insert", FORM, &body)
    };
    let most = (16 << 20) / 2 - 4;
    let id = body_text(&form(most), 201).to_owned();
    assert_eq!(get(&server, &format!("/get?col=a&id={id}")).body.len(), 16 << 20);
    // Longer ones are refused by the limit of a body, which is that of a document.
    assert_eq!(form(most + 1).status, 413);
    assert_eq!(
        post(&server, "/insert?col=a", "text/plain", &"x".repeat((16 << 20) + 1)).status,
        413
    );
    assert_eq!(post(&server, "/insert?col=a", FORM, &"x".repeat(51 << 20)).status, 413);
}

#[test]
fn users_rights_apply_to_http() {
    let users = "[[users]]\nname = 'reader'\npassword = 'r'\nread = ['remora.a']\n\
                 [[users]]\nname = 'all'\npassword = 'a'\n";
    let server = start(users);
    let ask = |proof: &str, path: &str| {
        request(&server, &format!("GET {path}"), &format!("authorization: Basic {proof}\r\n"), "")
    };
    let (reader, all) = ("cmVhZGVyOnI=", "YWxsOmE=");
    for name in ["a", "b"] {
        assert_eq!(ask(all, &format!("/create?col={name}")).status, 201);
    }
    assert_eq!(ask(reader, "/all").body, r#"["a"]"#);
    assert_eq!(ask(reader, "/count?col=a&q=%22all%22").status, 200);
    for path in [
        "/count?col=b&q=%22all%22",
        "/insert?col=a&doc={}",
        "/drop?col=a",
        "/create?col=c",
        "/index?col=a&path=x",
        "/scrub?col=a",
        "/rename?old=a&new=c",
        "/sync",
        "/shutdown",
        // One that is not there is as one that may not be read.
        "/get?col=x&id=1",
    ] {
        assert_eq!(ask(reader, path).status, 403, "{path}");
    }
    assert_eq!(ask("cmVhZGVyOng=", "/all").status, 401);
    // Without a token nobody stops the server.
    assert_eq!(ask(all, "/shutdown").status, 403);
    assert!(!server.is_asked_to_stop());
}

/// The token of a login.
fn web_token(response: &Response) -> String {
    assert_eq!(response.status, 200, "{}", response.body);
    let head = "authorization: Bearer ";
    let line = response.head.lines().find(|line| line.starts_with(head)).unwrap();
    line[head.len()..].to_owned()
}

#[test]
fn users_log_in_by_json_web_tokens() {
    let users = "[[users]]\nname = 'reader'\npassword = 'r%3'\nread = ['remora.a']\n\
                 [[users]]\nname = 'all'\npassword = 'a'\n";
    let server = start(users);
    let all = web_token(&get(&server, "/getjwt?user=all&pass=a"));
    let reader = web_token(&post(&server, "/getjwt", FORM, "user=reader&pass=r%253"));
    let ask = |token: &str, path: &str| {
        request(&server, &format!("GET {path}"), &format!("authorization: Bearer {token}\r\n"), "")
    };
    assert_eq!(ask(&all, "/create?col=a").status, 201);
    assert_eq!(ask(&reader, "/count?col=a&q=%22all%22").status, 200);
    assert_eq!(ask(&reader, "/insert?col=a&doc={}").status, 403);
    assert_eq!(get(&server, &format!("/insert?col=a&doc={{}}&access_token={all}")).status, 201);
    for token in [&all, &reader] {
        assert_eq!(ask(token, "/checkjwt").status, 200);
        assert_eq!(get(&server, &format!("/checkjwt?access_token={token}")).status, 200);
    }
    for (path, status) in [
        ("/checkjwt", 401),
        ("/checkjwt?access_token=a.b.c", 401),
        ("/getjwt?user=all", 400),
        ("/getjwt?pass=a", 400),
        ("/getjwt?user=all&pass=b", 401),
        // As in tiedot: 400 is for a request without a user, not for a user who is not there.
        ("/getjwt?user=nobody&pass=a", 401),
    ] {
        assert_eq!(get(&server, path).status, status, "{path}");
    }
    // Tokens of before a restart do not make their clients wait.
    let old = format!("{}.{}", all.rsplit_once('.').unwrap().0, "A".repeat(43));
    for _ in 0..60 {
        assert_eq!(ask(&old, "/all").status, 401);
    }
    assert_eq!(get(&server, "/getjwt?user=all&pass=a").status, 200);
    // One user's signature proves no other.
    let signature = |token: &str| token.rsplit_once('.').unwrap().1.to_owned();
    let mixed = all.replace(&signature(&all), &signature(&reader));
    assert_eq!(ask(&mixed, "/all").status, 401);
}

#[test]
fn connections_and_requests_are_limited() {
    let server = start("[http]\nmax_connections = 1\nread_timeout_s = 1\n");
    let held = connect(&server);
    let busy = get(&server, "/version");
    assert_eq!(busy.status, 503, "{}", busy.head);
    drop(held);
    // A head that trickles in is cut off.
    let mut slow = connect(&server);
    let mut rest = Vec::new();
    slow.write_all(b"GET /version HT").unwrap();
    let _ = slow.read_to_end(&mut rest);
    assert!(!rest.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&rest));
    let server = start("[limits.rate]\nenable = true\ncapacity = 2\nrefill_rate = 1\n");
    let statuses: Vec<u16> = (0..4).map(|_| get(&server, "/version").status).collect();
    assert!(statuses.starts_with(&[200, 200]) && statuses.contains(&429), "{statuses:?}");
    let server = start("[network]\nallow_cidrs = ['10.0.0.0/8']\n");
    assert_eq!(get(&server, "/version").status, 403);
}
