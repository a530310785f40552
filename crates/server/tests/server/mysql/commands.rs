//! Commands of the MySQL protocol and their replies.

use std::{
    thread,
    time::{Duration, Instant},
};

use mysql_common::constants::CapabilityFlags as Capabilities;

use crate::{
    mysql::{
        client::{Answer, Client, Entry, USUAL},
        connect,
    },
    support::TestServer,
};

const MORE_RESULTS: u16 = 8;
const DONE: Answer = Answer::Ok { affected: 0 };

fn with(server: &TestServer, more: Capabilities) -> Client {
    let entry = Entry { capabilities: USUAL | more, ..Entry::default() };
    Client::connect(server.sql_address(), &entry).unwrap()
}

#[test]
fn row_terminator_matches_client_capabilities() {
    let server = TestServer::start_empty("");
    for more in [Capabilities::empty(), Capabilities::CLIENT_DEPRECATE_EOF] {
        let mut client = with(&server, more);
        assert_eq!(client.query("SELECT 'a'").value(), "a");
        assert_eq!((client.last_ok.len() > 5, client.last_ok[0]), (!more.is_empty(), 0xFE));
        assert!(matches!(client.query("NO SUCH THING"), Answer::Error(_)));
        assert_eq!(client.query("SELECT 'b'").value(), "b");
    }
}

#[test]
fn simple_commands() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    assert_eq!(client.command(0x0E, b""), DONE);
    assert_eq!(client.command(0x02, b"remora"), DONE);
    assert_eq!(client.command(0x02, b"nosuch").error(), 1049);
    assert_eq!(client.command(0x1B, &[0, 0]), DONE);
    assert_eq!(client.command(0x1F, b""), DONE);
    for unknown in [0x00, 0x12, 0x13, 0x1E, 0x20, 0xFA] {
        assert_eq!(client.command(unknown, b"x").error(), 1047);
    }
    client.begin();
    client.send(&[0x09]);
    assert!(client.message().unwrap().starts_with(b"Uptime: "));
    assert_eq!(client.command(0x17, &[1]).error(), 1835);
    assert_eq!(client.query("SELECT 1"), Answer::Closed);
}

#[test]
fn quit_closes() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    assert_eq!(client.command(0x01, b""), Answer::Closed);
}

#[test]
fn a_transaction_may_end_its_connection() {
    let server = TestServer::start_empty("");
    let mut other = connect(&server);
    assert_eq!(other.query("CREATE TABLE t (id INT PRIMARY KEY)"), DONE);
    for (end, rows) in [("COMMIT RELEASE", "1"), ("ROLLBACK WORK AND NO CHAIN RELEASE", "1")] {
        let mut client = connect(&server);
        assert_eq!(client.query("BEGIN"), DONE);
        let id = if end.starts_with("COMMIT") { 1 } else { 2 };
        let insert = format!("INSERT INTO t VALUES ({id})");
        assert_eq!(client.query(&insert), Answer::Ok { affected: 1 });
        assert_eq!(client.query("ROLLBACK AND CHAIN RELEASE").error(), 1064);
        assert_eq!(client.query(end), DONE);
        assert_eq!(client.query("SELECT 1"), Answer::Closed);
        assert_eq!(other.query("SELECT COUNT(*) FROM t").value(), rows);
    }
    let mut client = with(&server, Capabilities::CLIENT_MULTI_STATEMENTS);
    assert_eq!(client.query("COMMIT NO RELEASE"), DONE);
    assert_eq!(client.query("COMMIT RELEASE; INSERT INTO t VALUES (3)"), DONE);
    assert_eq!(client.query("SELECT 1"), Answer::Closed);
    assert_eq!(other.query("SELECT COUNT(*) FROM t").value(), "1");
}

#[test]
fn commands_that_were_sent_together_are_answered_in_order() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    for number in 0..200 {
        client.begin();
        client.send(format!("\x03SELECT {number}").as_bytes());
    }
    for number in 0..200 {
        client.reader.expect(1);
        assert_eq!(client.answer().value(), number.to_string());
    }
}

#[test]
fn several_statements_in_one_text() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    assert!(matches!(client.query("SELECT 1; SELECT 2"), Answer::Error(_)));
    assert_eq!(client.command(0x1B, &[0, 0]), DONE);
    assert_eq!(client.query("SELECT 1; SET autocommit = 1; SELECT 3").value(), "1");
    assert_eq!(client.status() & MORE_RESULTS, MORE_RESULTS);
    assert_eq!(client.answer(), DONE);
    assert_eq!(client.status() & MORE_RESULTS, MORE_RESULTS);
    assert_eq!(client.answer().value(), "3");
    assert_eq!(client.status() & MORE_RESULTS, 0);
    assert_eq!(client.query("SELECT 1; NO SUCH THING; SELECT 3").value(), "1");
    assert!(matches!(client.answer(), Answer::Error(_)));
    assert_eq!(client.query("SELECT 4").value(), "4");
}

#[test]
fn messages_of_several_packets() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    for length in [(1 << 24) - 20, (1 << 24) - 19, 20_000_000, 40_000_000] {
        let text = format!("SELECT LENGTH('{}')", "x".repeat(length));
        assert_eq!(client.query(&text).value(), length.to_string());
    }
    let text = format!("SELECT '{}'", "y".repeat(17_000_000));
    assert_eq!(client.query(&text).value().len(), 17_000_000);
    assert_eq!(client.query("SELECT 1").value(), "1");
}

#[test]
fn session_changes_are_tracked() {
    let server = TestServer::start_empty("");
    let mut client = with(&server, Capabilities::CLIENT_SESSION_TRACK);
    let tells = |client: &Client, what: &str| {
        let ok = String::from_utf8_lossy(&client.last_ok).into_owned();
        assert!(ok.contains(what), "{ok:?}");
    };
    tells(&client, "\x01\x07\x06remora");
    client.query("SET autocommit = 0");
    tells(&client, "\x0aautocommit\x03OFF");
    client.query("SELECT 1");
    client.command(0x0E, b"");
    assert_eq!(client.last_ok.len(), 7);
}

#[test]
fn connections_are_listed_and_killed() {
    let server = TestServer::start_empty("");
    let (mut first, mut second) = (connect(&server), connect(&server));
    let list = format!("{:?}", first.query("SHOW PROCESSLIST"));
    for client in [&first, &second] {
        assert!(list.contains(&format!("Some(\"{}\")", client.connection_id)), "{list}");
    }
    assert_eq!(first.query("KILL 999999").error(), 1094);
    assert_eq!(first.command(0x0C, &999_999_u32.to_le_bytes()).error(), 1094);
    let id = second.connection_id;
    let sleeper = thread::spawn(move || {
        let started = Instant::now();
        let answer = second.query("SELECT SLEEP(30)");
        (answer, started.elapsed(), second)
    });
    let statement = |first: &mut Client| format!("{:?}", first.query("SHOW PROCESSLIST"));
    while !statement(&mut first).contains("SLEEP(30)") {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(first.query(&format!("KILL QUERY {id}")), DONE);
    let (answer, took, mut second) = sleeper.join().unwrap();
    // MySQL's SLEEP() gives 1 where it was interrupted.
    assert!(
        matches!(&answer, Answer::Error(error) if error.number == 1317) || answer.value() == "1"
    );
    assert!(took < Duration::from_secs(20));
    assert_eq!(second.query("SELECT 5").value(), "5");
    assert_eq!(first.command(0x0C, &id.to_le_bytes()), DONE);
    assert_eq!(second.query("SELECT 6"), Answer::Closed);
    while statement(&mut first).contains(&format!("Some(\"{id}\")")) {
        thread::sleep(Duration::from_millis(10));
    }
    // The number may be any expression.
    let threads =
        "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()";
    assert_eq!(first.query(threads).value(), "1");
    for unknown in ["@none", "'a'", "NULL", "QUERY (SELECT 99999999)", "CONNECTION 1.5e9"] {
        assert_eq!(first.query(&format!("KILL {unknown}")).error(), 1094, "{unknown}");
    }
    assert_eq!(first.query("KILL").error(), 1064);
    assert_eq!(first.query("KILL QUERY CONNECTION_ID()").error(), 1317);
    assert_eq!(first.query("SELECT 1").value(), "1");
    let mut other = connect(&server);
    assert_eq!(first.query(&format!("SET @other = {}", other.connection_id)), DONE);
    assert_eq!(first.query("KILL CONNECTION @other + 0"), DONE);
    assert_eq!(other.query("SELECT 7"), Answer::Closed);
    // Nothing is answered behind a KILL, however soon it comes.
    for _ in 0..100 {
        let mut third = connect(&server);
        assert_eq!(first.query(&format!("KILL {}", third.connection_id)), DONE);
        assert!(third.is_ended(), "it is closed before KILL is answered");
        assert_eq!(third.query("SELECT 7"), Answer::Closed);
    }
}

#[test]
fn server_stop_is_reported_to_waiting_clients() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    assert_eq!(client.query("SELECT 1").value(), "1");
    server.stop();
    client.reader.expect(1);
    assert_eq!(client.answer().error(), 1053);
    assert_eq!(client.answer(), Answer::Closed);
}

#[test]
fn client_file_is_requested_only_if_allowed() {
    let load = "LOAD DATA LOCAL INFILE 'a.tsv' INTO TABLE files (id, name)";
    let table = "CREATE TABLE files (id INT PRIMARY KEY, name VARCHAR(20))";
    let refusing = TestServer::start_empty("");
    let mut client = with(&refusing, Capabilities::CLIENT_LOCAL_FILES);
    assert_eq!(client.query(table), DONE);
    assert!(matches!(client.query(load), Answer::Error(_)));

    let server = TestServer::start_empty("[sql]\nlocal_infile = true\n");
    let mut client = with(&server, Capabilities::CLIENT_LOCAL_FILES);
    assert_eq!(client.query(table), DONE);
    client.begin();
    client.send(format!("\x03{load}").as_bytes());
    assert_eq!(client.message().unwrap(), b"\xfba.tsv");
    client.send(b"1\tone\n2\t");
    client.send(b"two\n");
    client.send(b"");
    assert!(matches!(client.answer(), Answer::Ok { .. }));
    assert_eq!(client.query("SELECT COUNT(*) FROM files").value(), "2");
    // A client that has no such file sends nothing of it.
    client.begin();
    client.send(format!("\x03{load}").as_bytes());
    assert_eq!(client.message().unwrap()[0], 0xFB);
    client.send(b"");
    assert!(matches!(client.answer(), Answer::Ok { .. }));
    assert_eq!(client.query("SELECT 8").value(), "8");
}

/// The column definitions and the first row of a statement that is not UTF-8.
fn sent(client: &mut Client, text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    client.begin();
    client.send(&[b"\x03", text].concat());
    let count = client.message().unwrap();
    assert_eq!(count, [1], "{count:?}");
    let column = client.message().unwrap();
    let end = client.message().unwrap();
    assert_eq!(end[0], 0xFE);
    let row = client.message().unwrap();
    assert_eq!(client.message().unwrap()[0], 0xFE);
    (column, row)
}

#[test]
fn texts_are_converted_to_the_session_character_sets() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    client.query("SET NAMES latin1");
    let (column, row) = sent(&mut client, b"SELECT 'a\xe9'");
    assert_eq!(row, b"\x02a\xe9");
    assert!(column.windows(2).any(|pair| pair == b"a\xe9"));
    // latin1_swedish_ci, and a byte for each of its two characters.
    assert!(
        column.ends_with(b"\x0c\x08\x00\x02\x00\x00\x00\xfd\x01\x00\x00\x00\x00"),
        "{column:x?}"
    );
}
