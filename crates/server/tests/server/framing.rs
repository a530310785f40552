//! Request framing of the line protocol on a real connection, byte by byte.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::time::Duration;

use crate::support::TestServer;

#[test]
fn a_reply_is_its_body_and_crlf() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.send(b"COUNT articles mountain\r\n");
    assert_eq!(client.read(12), b"OK COUNT 1\r\n");
    client.send(b"FACET articles kind city\r\n");
    let facet = b"OK FACET 1 1\r\ncity\t1\r\n\r\n";
    assert_eq!(client.read(facet.len()).as_slice(), facet);
    client.send(b"\r\n");
    assert_eq!(client.reply(), b"ERROR 3000 Empty query\r\n");
}

#[test]
fn only_crlf_ends_a_request() {
    let server = TestServer::start("");
    let mut client = server.connect();
    client.send(b"COUNT\narticles\rmountain");
    client.send(b"\r");
    std::thread::sleep(Duration::from_millis(20));
    client.send(b"\n");
    assert_eq!(client.reply(), b"OK COUNT 1\r\n");
}

#[test]
fn requests_do_not_depend_on_read_boundaries() {
    let server = TestServer::start("");
    let mut client = server.connect();
    for byte in b"COUNT articles mountain\r\nCOUNT articles city\r\n" {
        client.send(&[*byte]);
    }
    assert_eq!(client.read(24), b"OK COUNT 1\r\nOK COUNT 1\r\n");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let requests: Vec<u8> = (0..5000)
        .flat_map(|number| match number % 3 {
            0 => b"COUNT articles mountain\r\n".to_vec(),
            1 => b"WHAT\r\n".to_vec(),
            _ => b"SEARCH articles the SORT ASC LIMIT 2\r\n".to_vec(),
        })
        .collect();
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        std::io::Write::write_all(&mut sender, &requests).unwrap();
    });
    let expected: Vec<&[u8]> =
        vec![b"OK COUNT 1\r\n", b"ERROR 3000 Unknown command: WHAT\r\n", b"OK RESULTS 4 1 2\r\n"];
    for number in 0..5000 {
        let reply = expected[number % 3];
        assert_eq!(client.read(reply.len()), reply, "reply {number}");
    }
    sending.join().unwrap();
}

#[test]
fn too_large_request_is_answered_and_closes_only_its_connection() {
    let server = TestServer::start("[limits]\nmax_request_bytes = 2048\n");
    let mut other = server.connect();
    let mut client = server.connect();
    client.send(b"COUNT articles city\r\n");
    client.send(&vec![b'x'; 100_000]);
    let rest = client.rest();
    assert!(rest.starts_with("OK COUNT 1\r\nERROR 6007 request too large"), "{rest}");
    assert!(rest.ends_with("\r\n"));
    assert_eq!(other.ask("COUNT articles city"), "OK COUNT 1\r\n");
}

#[test]
fn malformed_requests_keep_the_connection() {
    let server = TestServer::start("");
    let mut other = server.connect();
    let mut client = server.connect();
    for (request, reply) in [
        (&b"\xff\xfe\r\n"[..], "ERROR 3001 "),
        (b"SEARCH articles \"open\r\n", "ERROR 3000 Unclosed quote: \"\r\n"),
        (b"SEARCH nothing x\r\n", "ERROR 4007 Table not found: nothing\r\n"),
        (b"SEARCH articles ((((\r\n", "ERROR 3"),
        (b"GET articles abc\r\n", "ERROR 2 "),
        (b"PUT articles {\"id\":\r\n", "ERROR 2 not JSON"),
        (b"PUT articles {\"id\":1,\"colour\":2}\r\n", "ERROR 2 "),
        (b"\0\0\0\r\n", "ERROR 3000 "),
        (b"SET a\r\n", "ERROR "),
    ] {
        client.send(request);
        let answer = String::from_utf8(client.reply()).unwrap();
        assert!(answer.starts_with(reply), "{:?} -> {answer}", request.escape_ascii().to_string());
    }
    assert_eq!(other.ask("COUNT articles city"), "OK COUNT 1\r\n");
    assert_eq!(client.ask("COUNT articles city"), "OK COUNT 1\r\n");
}

#[test]
fn multi_line_replies_are_complete() {
    let server = TestServer::start("");
    let mut client = server.connect();
    let info = client.ask("INFO");
    assert!(info.starts_with("OK INFO\r\n\r\n# Server\r\nversion: Remora v"), "{info}");
    assert!(info.ends_with("\r\nEND\r\n") && info.contains("\r\ntotal_documents: 7\r\n"), "{info}");
    assert!(info.contains("\r\ntables: articles\r\n") && info.contains("connected_clients: 1"));
    let highlighted = client.ask("SEARCH articles city HIGHLIGHT");
    assert!(highlighted.starts_with("OK RESULTS 1\r\n4\t"), "{highlighted}");
    assert!(highlighted.ends_with("\r\n\r\n"), "{highlighted}");
    assert_eq!(client.ask("DEBUG ON"), "OK DEBUG_ON\r\n");
    let debugged = client.ask("SEARCH articles city");
    assert!(debugged.starts_with("OK RESULTS 1 4\r\n\r\n# DEBUG\r\nquery_time: "), "{debugged}");
    assert!(server.connect().ask("SEARCH articles city") == "OK RESULTS 1 4\r\n");
}

#[test]
fn browser_requests_are_refused_before_the_body() {
    let server = TestServer::start("");
    let body = "PUT articles {\"id\":100,\"title\":\"x\"}\r\nDELETE articles 1\r\n";
    for request in [
        format!("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n{body}"),
        format!("PUT /a HTTP/1.1\r\nHost: localhost\r\n\r\n{body}"),
        format!("Host: localhost\r\n{body}"),
        format!("POST http://localhost/ HTTP/1.0\r\n{body}"),
    ] {
        let mut client = server.connect();
        client.send(request.as_bytes());
        let rest = client.rest();
        assert!(rest.starts_with("ERROR 6007 This is the line protocol"), "{rest}");
        assert_eq!(rest.lines().count(), 1, "{rest}");
    }
    assert!(server.connect().ask("GET articles 1").starts_with("OK DOC 1"));
    assert_eq!(server.connect().ask("GET articles 100"), "ERROR 8 Document not found\r\n");
    assert_eq!(server.connect().ask("COUNT articles HTTP/1.1"), "OK COUNT 0\r\n");
}
