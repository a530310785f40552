//! Limits of connections and requests, AUTH, and permitted networks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::time::{Duration, Instant};

use crate::support::{Client, TestServer};

#[test]
fn connections_are_limited() {
    let server = TestServer::start("[limits]\nmax_connections = 2\n");
    let mut first = server.connect();
    let mut second = server.connect();
    assert_eq!(first.ask("COUNT articles city"), "OK COUNT 1\r\n");
    assert_eq!(second.ask("COUNT articles city"), "OK COUNT 1\r\n");
    let rest = server.connect().rest();
    assert!(rest.starts_with("ERROR 6030 SERVER_BUSY") && rest.ends_with("\r\n"), "{rest}");
    drop(second);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let mut again = server.connect();
        again.send(b"COUNT articles city\r\n");
        if again.reply() == b"OK COUNT 1\r\n" {
            break;
        }
        assert!(Instant::now() < deadline, "the place of a closed connection stays taken");
    }
    assert_eq!(first.ask("COUNT articles city"), "OK COUNT 1\r\n");
}

#[test]
fn silent_and_slow_clients_are_closed() {
    let server = TestServer::start("[limits]\nidle_timeout_s = 1\nrecv_timeout_s = 1\n");
    let mut silent = server.connect();
    assert_eq!(silent.rest(), "");
    let mut slow = server.connect();
    slow.send(b"COUNT artic");
    assert_eq!(slow.rest(), "");
    // Bytes that trickle in do not make a request that never ends last longer.
    let mut trickling = server.connect();
    let mut stream = trickling.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(100));
            if std::io::Write::write_all(&mut stream, b"x").is_err() {
                return true;
            }
        }
        false
    });
    assert_eq!(trickling.rest(), "");
    assert!(sender.join().unwrap(), "the server went on reading");
}

#[test]
fn a_query_ends_when_its_time_is_over() {
    let answer = |limit_ms: u64| {
        let server = TestServer::start(&format!("[limits]\nmax_query_time_ms = {limit_ms}\n"));
        let mut client = server.connect();
        for batch in 0..10 {
            let rows = (0..2000).map(|row| {
                let id = 1000 + batch * 2000 + row;
                format!("{{\"id\":{id},\"title\":\"x\",\"body\":\"long text {id}\"}}")
            });
            let rows: Vec<String> = rows.collect();
            assert!(
                client.ask(&format!("PUT articles [{}]", rows.join(","))).starts_with("OK PUT")
            );
        }
        // Each row is read: that takes longer than a millisecond on any machine.
        client.ask("SEARCH articles long LIMIT 20000 FIELDS body")
    };
    let ended = answer(1);
    assert!(ended.starts_with("ERROR 10 the read took longer than allowed"), "{ended}");
    let whole = answer(0);
    assert!(whole.starts_with("OK RESULTS 20000"), "{}", &whole[..whole.len().min(200)]);
}

#[test]
fn a_reply_above_the_write_queue_is_an_error() {
    let server = TestServer::start("[limits]\nwrite_queue_bytes = 4096\n");
    let mut client = server.connect();
    let text = "long ".repeat(2000);
    let put = format!("PUT articles {{\"id\":100,\"title\":\"x\",\"body\":\"{text}\"}}");
    assert!(client.ask(&put).starts_with("OK PUT 1 "));
    let reply = client.ask("SEARCH articles long FIELDS body");
    assert!(reply.starts_with("ERROR 6030 SERVER_BUSY the reply takes"), "{reply}");
    assert_eq!(client.ask("SEARCH articles long"), "OK RESULTS 1 100\r\n");
}

#[test]
fn requests_of_one_address_are_limited() {
    let toml = "[limits.rate]\nenable = true\ncapacity = 3\nrefill_rate = 1\n";
    let server = TestServer::start(toml);
    let mut client = server.connect();
    let mut replies: Vec<String> = (0..6).map(|_| client.ask("COUNT articles city")).collect();
    let refused = replies.iter().filter(|reply| *reply == "ERROR 6030 Rate limit exceeded\r\n");
    assert!((2..=3).contains(&refused.count()), "{replies:?}");
    replies.retain(|reply| !reply.starts_with("ERROR 6030"));
    assert!(replies.iter().all(|reply| reply == "OK COUNT 1\r\n"), "{replies:?}");
}

#[test]
fn all_requests_need_the_configured_token() {
    let server = TestServer::start("[auth]\nadmin_token = 's3cret'\n");
    let mut client = server.connect();
    let required = "ERROR 7 This server asks for a login first: AUTH <token>\r\n";
    for command in [
        "DUMP STATUS",
        "CACHE STATS",
        "PUT articles {\"id\":1}",
        "CONFIG SHOW",
        "COUNT articles city",
        "SEARCH articles city",
        "GET articles 1",
        "FACET articles kind",
        "INFO",
        "DEBUG ON",
        "WAIT a:1",
        "nonsense",
        "",
    ] {
        assert_eq!(client.ask(command), required, "{command}");
    }
    assert_eq!(client.ask("AUTH s3cre"), "ERROR 7 Authentication failed\r\n");
    assert_eq!(client.ask("CACHE STATS"), required);
    assert_eq!(client.ask("AUTH s3cret"), "OK AUTHENTICATED\r\n");
    assert!(client.ask("CACHE STATS").starts_with("OK CACHE_STATS"));
    assert_eq!(server.connect().ask("CACHE STATS"), required);
    let shown = client.ask("CONFIG SHOW");
    assert!(shown.contains("auth.admin_token: ***\r\n") && !shown.contains("s3cret"), "{shown}");
    let open = TestServer::start("");
    assert_eq!(open.connect().ask("AUTH x"), "ERROR 7 Authentication failed\r\n");
}

#[test]
fn addresses_outside_the_networks_are_refused() {
    let server = TestServer::start("[network]\nallow_cidrs = ['10.0.0.0/8']\n");
    assert_eq!(server.connect().rest(), "");
    let server = TestServer::start("[network]\nallow_cidrs = ['10.0.0.0/8', '127.0.0.0/8']\n");
    assert_eq!(server.connect().ask("COUNT articles city"), "OK COUNT 1\r\n");
}

#[test]
fn mygramdb_token_protects_only_administration() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mygram.yaml");
    let yaml = "mysql: {user: reader, database: shop}\ntables:\n  - name: items\n    text_source: {column: body}\n\
                network: {allow_cidrs: [127.0.0.0/8]}\napi: {admin_token: s3cret}\n";
    std::fs::write(&path, yaml).unwrap();
    let server = TestServer::start_with(&path, directory);
    let mut client = server.connect();
    assert_eq!(client.ask("COUNT items reef"), "OK COUNT 0\r\n");
    assert!(client.ask("INFO").starts_with("OK INFO"));
    assert_eq!(client.ask("CACHE STATS"), "ERROR 7 Administrative command requires AUTH\r\n");
    assert_eq!(client.ask("AUTH wrong"), "ERROR 7 Authentication failed\r\n");
    assert!(client.ask("AUTH s3cret more").starts_with("ERROR 3000 "));
    assert_eq!(client.ask("AUTH s3cret"), "OK AUTHENTICATED\r\n");
    assert!(client.ask("CACHE STATS").starts_with("OK CACHE_STATS"));
}

#[test]
fn users_and_the_token_can_log_in() {
    let server = TestServer::start(
        "[auth]\nadmin_token = 's3cret'\n[[users]]\nname = 'anna'\npassword = 'geheim'\n\
         [[users]]\nname = 'far'\nhost = '10.0.0.0/8'\npassword = 'geheim'\n\
         [[users]]\nname = 'old'\npassword_native = '*462366917EEDD1970A48E87D8EF59EB67D2CA26F'\n\
         [[users]]\nname = 'open'\npassword = ''\n",
    );
    let required = "ERROR 7 This server asks for a login first: AUTH <user> <password>\r\n";
    let failed = "ERROR 7 Authentication failed\r\n";
    let mut client = server.connect();
    assert_eq!(client.ask("COUNT articles city"), required);
    for wrong in ["anna Geheim", "anna ''", "anna", "bert geheim", "far geheim", "geheim", "'' ''"]
    {
        assert_eq!(client.ask(&format!("AUTH {wrong}")), failed, "{wrong}");
        assert_eq!(client.ask("COUNT articles city"), required);
    }
    for right in ["anna geheim", "old geheim", "open ''", "s3cret"] {
        let mut client = server.connect();
        assert_eq!(client.ask(&format!("auth {right}")), "OK AUTHENTICATED\r\n", "{right}");
        assert_eq!(client.ask("COUNT articles city"), "OK COUNT 1\r\n");
        assert!(client.ask("CACHE STATS").starts_with("OK CACHE_STATS"));
    }
}

#[test]
fn failed_logins_are_delayed_by_address() {
    let server = TestServer::start("[[users]]\nname = 'anna'\npassword = 'geheim'\n");
    let mut client = server.connect();
    let start = Instant::now();
    for number in 0..29 {
        assert_eq!(client.ask(&format!("AUTH anna {number}")), "ERROR 7 Authentication failed\r\n");
    }
    assert!(start.elapsed() > Duration::from_secs(2), "{:?}", start.elapsed());
    // What is right waits as what is wrong does.
    let again = Instant::now();
    assert_eq!(server.connect().ask("AUTH anna geheim"), "OK AUTHENTICATED\r\n");
    assert!(again.elapsed() > Duration::from_millis(500), "{:?}", again.elapsed());
    // Those who come together wait one behind the other, and no more than a few.
    let mut clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(b"AUTH anna x\r\n"));
    let replies: Vec<Vec<u8>> = clients.iter_mut().map(Client::reply).collect();
    let count = |start: &[u8]| replies.iter().filter(|reply| reply.starts_with(start)).count();
    let late =
        b"ERROR 6030 Too many failed logins from this address, try again in a few seconds\r\n";
    assert!(count(late) >= 10, "{}", count(late));
    assert_eq!(count(late) + count(b"ERROR 7 Authentication failed\r\n"), 20);
}
