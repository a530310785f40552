//! Limits of the MySQL protocol: sizes, connections, timeouts and memory.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    mysql::{
        client::{Answer, Client, Entry},
        connect,
    },
    support::TestServer,
};

#[test]
fn connection_over_the_limit_gets_an_error() {
    let server = TestServer::start_empty("[sql]\nmax_connections = 2\n");
    let (first, _second) = (connect(&server), connect(&server));
    let third = || Client::connect(server.sql_address(), &Entry::default());
    assert_eq!(third().err().unwrap().error(), 1040);
    drop(first);
    let deadline = Instant::now() + std::time::Duration::from_secs(10);
    while third().is_err() {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn a_user_has_a_limit_of_connections() {
    let server = TestServer::start_empty("[sql]\nmax_user_connections = 1\n");
    let _first = connect(&server);
    let second = Client::connect(server.sql_address(), &Entry::default());
    assert_eq!(second.err().unwrap().error(), 1203);
    let other = Entry { user: "other", ..Entry::default() };
    assert!(Client::connect(server.sql_address(), &other).is_ok());
}

#[test]
fn a_message_above_the_limit_ends_the_connection() {
    let server = TestServer::start_empty("[sql]\nmax_allowed_packet = 2000\n");
    let mut client = connect(&server);
    let text = |length: usize| format!("SELECT LENGTH('{}')", "x".repeat(length));
    assert_eq!(client.query(&text(1000)).value(), "1000");
    assert_eq!(client.query(&text(2000)).error(), 1153);
    assert_eq!(client.answer(), Answer::Closed);
}

#[test]
fn input_before_login_is_bounded() {
    let server = TestServer::start_empty("");
    let mut client = Client::greeted(server.sql_address()).unwrap();
    client.send_raw(&[0xFF, 0xFF, 0xFF, 1]);
    client.reader.expect(2);
    assert_eq!(client.answer().error(), 1153);
    let mut client = Client::greeted(server.sql_address()).unwrap();
    client.send(b"short");
    assert_eq!(client.answer().error(), 1251);
    let mut client = Client::greeted(server.sql_address()).unwrap();
    client.send(&[0xFF; 33]);
    assert_eq!(client.answer().error(), 1043);
    assert_eq!(client.answer(), Answer::Closed);
}

#[test]
fn packets_out_of_order_end_the_connection() {
    let server = TestServer::start_empty("");
    let mut client = connect(&server);
    client.writer.set_sequence(5);
    client.send(b"\x0e");
    assert_eq!(client.answer().error(), 1156);
    assert_eq!(client.answer(), Answer::Closed);
}

#[test]
fn login_and_idle_timeouts_are_enforced() {
    let server = TestServer::start_empty("[sql]\nconnect_timeout_s = 1\nwait_timeout_s = 1\n");
    let mut late = Client::greeted(server.sql_address()).unwrap();
    late.reader.expect(1);
    assert!(matches!(late.answer(), Answer::Error(_)));
    assert_eq!(late.answer(), Answer::Closed);
    let mut silent = connect(&server);
    assert_eq!(silent.query("SELECT 1").value(), "1");
    // As MySQL numbers it: an answer to nothing.
    silent.reader.expect(0);
    assert_eq!(silent.answer().error(), 4031);
    assert_eq!(silent.answer(), Answer::Closed);
}

#[test]
fn statement_time_limit_is_enforced() {
    let server = TestServer::start_empty("[sql]\nmax_execution_time_ms = 100\n");
    let mut client = connect(&server);
    let answer = client.query("SELECT SLEEP(30)");
    // MySQL's SLEEP() gives 1 where it was interrupted.
    assert!(
        matches!(&answer, Answer::Error(error) if error.number == 3024) || answer.value() == "1"
    );
    assert_eq!(client.query("SELECT 1").value(), "1");
}

/// Enough rows for an endless join.
fn with_endless_join(server: &TestServer) -> &'static str {
    let mut client = connect(server);
    let table = "CREATE TABLE n (i INT PRIMARY KEY)";
    assert_eq!(client.query(table), Answer::Ok { affected: 0 });
    let rows = "INSERT INTO n WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE \
                i < 1000) SELECT i FROM r";
    assert!(matches!(client.query(rows), Answer::Ok { .. }));
    "SELECT a.i, b.i, COUNT(*) FROM n a, n b, n c, n d, n e GROUP BY 1, 2"
}

/// The number of statements that are being planned or run.
fn running(client: &mut Client) -> String {
    let asked = "SHOW STATUS LIKE 'Remora_statements_running'";
    match client.query(asked) {
        Answer::Rows(rows) => format!("{rows:?}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn statement_ends_on_disconnect_and_on_server_stop() {
    let server = TestServer::start_empty("");
    let endless = with_endless_join(&server);
    let mut other = connect(&server);
    let idle = running(&mut other);
    for _ in 0..3 {
        let mut client = connect(&server);
        client.begin();
        client.send(format!("\x03{endless}").as_bytes());
        let until = Instant::now() + Duration::from_secs(10);
        while running(&mut other) == idle {
            assert!(Instant::now() < until, "it has not begun");
            thread::sleep(Duration::from_millis(5));
        }
        drop(client);
        let until = Instant::now() + Duration::from_secs(5);
        while running(&mut other) != idle {
            assert!(Instant::now() < until, "it goes on without its client");
            thread::sleep(Duration::from_millis(5));
        }
    }
    let mut client = connect(&server);
    client.begin();
    client.send(format!("\x03{endless}").as_bytes());
    thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// One statement used to block all connections, because parsing its text took very long in their thread.
#[test]
fn expensive_parse_does_not_block_other_connections() {
    let server = TestServer::start_empty("");
    let mut other = connect(&server);
    for (open, close) in [("SUBSTRING(", ",1)"), ("CAST(", " AS CHAR)"), ("CONVERT(", ",CHAR)")] {
        for levels in [150, 198, 390] {
            let mut client = connect(&server);
            client.begin();
            let text = format!("\x03SELECT {}'a'{}", open.repeat(levels), close.repeat(levels));
            client.send(text.as_bytes());
            let began = Instant::now();
            assert_eq!(other.query("SELECT 1").value(), "1");
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
            client.reader.expect(1);
            assert_ne!(client.answer(), Answer::Closed);
        }
    }
}
