//! SphinxAPI connections: greetings, persistent connections, limits, users, and refusals.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use mysql::prelude::Queryable;

use crate::{
    sphinx::{
        books, sql,
        wire::{Client, Reply, captured, resent},
    },
    support::TestServer,
};

const PING: u16 = 9;
const STATUS: u16 = 5;

#[test]
fn connection_closes_after_a_reply_unless_persistent() {
    let server = books("");
    let pong = Reply(0, 0x100, vec![0, 0, 0, 5]);
    let mut once = Client::connect(&server);
    assert_eq!(once.ask(PING, 0x100, &[0, 0, 0, 5]), pong);
    assert!(once.is_closed());
    let mut stays = Client::persistent(&server);
    for _ in 0..3 {
        assert_eq!(stays.ask(PING, 0x100, &[0, 0, 0, 5]), pong);
    }
    // A refused request does not end it, unless what follows cannot be told apart.
    let refused = stays.ask(0, 0x120, &[]);
    assert_eq!((refused.0, refused.1), (1, 0));
    assert!(refused.message().starts_with("client version is higher than daemon version"));
    let refused = stays.ask(8, 0x100, &[0; 4]);
    assert_eq!(refused.message(), "command 'sphinxql' is not answered here: use the SQL port");
    assert_eq!(stays.ask(PING, 0x100, &[0, 0, 0, 5]), pong);
    let refused = stays.ask(99, 0, &[1, 2, 3]);
    assert_eq!(refused.message(), "invalid command (code=99, len=3)");
    assert!(stays.is_closed());
}

#[test]
fn captured_small_requests() {
    let server = books("");
    for name in ["raw_ping", "raw_newer", "raw_unknown", "perl_11e_update_mva"] {
        let (request, theirs) = captured(name);
        assert_eq!(resent(&server, &request), theirs, "{name}");
    }
    // Two searches after one that makes the connection stay.
    let (request, theirs) = captured("perl_11e_persist");
    let mut client = Client::connect(&server);
    client.0.write_all(&request).unwrap();
    let replies = [client.reply(), client.reply()];
    client.0.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(replies.iter().all(|reply| (reply.0, reply.1) == (0, 0x11F)), "{theirs:?}");
    assert!(client.is_closed());
}

#[test]
fn figures_of_the_last_search_and_of_the_server() {
    let server = books("");
    let mut client = Client::persistent(&server);
    let (request, _) = captured("perl_11e_all");
    client.0.write_all(&request).unwrap();
    client.reply();
    let figures = |reply: Reply| {
        let mut reader = crate::sphinx::reader::Reader(&reply.2);
        let rows = reader.u32();
        assert_eq!(reader.u32(), 2);
        (0..rows).map(|_| (reader.text(), reader.text())).collect::<Vec<_>>()
    };
    let last = figures(client.ask(STATUS, 0x101, &[0; 4]));
    let named = |name: &str| last.iter().find(|(key, _)| key == name).unwrap().1.clone();
    assert_eq!((named("total"), named("total_found")), ("2".to_owned(), "2".to_owned()));
    assert_eq!((named("keyword[0]"), named("docs[0]")), ("reef".to_owned(), "3".to_owned()));
    let server_wide = figures(client.ask(STATUS, 0x101, &[0, 0, 0, 1]));
    assert!(server_wide.iter().any(|(name, _)| name == "uptime"));
}

#[test]
fn keywords_and_excerpts_run_as_sql() {
    let server = books("");
    for (name, command) in [
        ("perl_11e_keywords", "KEYWORDS"),
        ("perl_11e_keywords_plain", "KEYWORDS"),
        ("perl_11e_excerpt", "SNIPPETS"),
    ] {
        let (request, theirs) = captured(name);
        let ours = resent(&server, &request);
        assert_eq!(ours, theirs, "{command}");
    }
    let mut client = Client::connect(&server);
    let mut body = Vec::new();
    for text in ["fish", "nope"] {
        body.extend((text.len() as u32).to_be_bytes());
        body.extend(text.as_bytes());
    }
    body.extend([0; 4]);
    let refused = client.ask(3, 0x100, &body);
    assert_eq!(refused.message(), "unknown local index 'nope' in search request");
}

#[test]
fn sphinx_api_shares_the_connection_limit_of_sql() {
    let toml = "[listen]\nsphinx_api = '127.0.0.1:0'\n[sql]\nmax_connections = 2\n";
    let server = TestServer::start_empty(toml);
    let _both = [(); 2].map(|()| {
        let mut client = Client::persistent(&server);
        client.ask(PING, 0x100, &[0; 4]);
        client
    });
    let mut third = Client::connect(&server);
    let reply = third.reply();
    assert_eq!((reply.0, reply.message()), (2, "server maxed out, retry in a second".to_owned()));
    assert!(third.is_closed());
}

#[test]
fn sql_shows_a_connection_and_ends_it() {
    let server = books("");
    let mut client = Client::persistent(&server);
    client.ask(PING, 0x100, &[0; 4]);
    let mut sql = sql(&server, "", "");
    let own: u64 = sql.query_first("SELECT CONNECTION_ID()").unwrap().unwrap();
    let mut others = || {
        let rows: Vec<mysql::Row> = sql.query("SHOW PROCESSLIST").unwrap();
        let ids = rows.iter().map(|row| row.get::<u64, _>(0).unwrap());
        ids.filter(|id| *id != own).collect::<Vec<u64>>()
    };
    let begin = Instant::now();
    // The connection that made the table may still be on its way out.
    while others().len() > 1 && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let others = others();
    assert_eq!(others.len(), 1);
    sql.query_drop(format!("KILL {}", others[0])).unwrap();
    assert!(client.is_closed());
}

const USERS: &str = "[[users]]\nname = 'boss'\npassword = 'x'\n\
                     [[users]]\nname = 'reader'\npassword = 'x'\nread = ['remora.other']\n";

#[test]
fn sphinx_api_clients_are_the_configured_user() {
    let text = format!("sphinx_api_user = 'reader'\n{USERS}");
    let toml = format!("[listen]\nsphinx_api = '127.0.0.1:0'\n{text}");
    let server = TestServer::start_empty(&toml);
    let mut boss = sql(&server, "boss", "x");
    crate::sphinx::BOOKS.iter().for_each(|statement| boss.query_drop(statement).unwrap());
    let (request, _) = captured("perl_11e_all");
    let reply = resent(&server, &request);
    let text = String::from_utf8_lossy(&reply).into_owned();
    // Who may not read a table does not learn that there is one.
    assert!(text.contains("unknown local index 'books' in search request"), "{text}");
    let (request, _) = captured("perl_11e_update");
    let text = String::from_utf8_lossy(&resent(&server, &request)).into_owned();
    assert!(text.contains("unknown index 'books' in update request"), "{text}");
}
