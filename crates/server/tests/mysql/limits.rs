//! What is too much, too early, too late.

use std::time::Instant;

use crate::{
    client::{Answer, Client, Entry},
    connect,
    support::TestServer,
};

#[test]
fn one_connection_too_many_is_told_so() {
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
fn before_the_login_little_is_taken() {
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
fn a_login_and_a_silence_have_their_time() {
    let server = TestServer::start_empty("[sql]\nconnect_timeout_s = 1\nwait_timeout_s = 1\n");
    let mut late = Client::greeted(server.sql_address()).unwrap();
    late.reader.expect(1);
    assert!(matches!(late.answer(), Answer::Error(_)));
    assert_eq!(late.answer(), Answer::Closed);
    let mut silent = connect(&server);
    assert_eq!(silent.query("SELECT 1").value(), "1");
    silent.reader.expect(1);
    assert_eq!(silent.answer().error(), 4031);
    assert_eq!(silent.answer(), Answer::Closed);
}

#[test]
fn a_statement_has_its_time() {
    let server = TestServer::start_empty("[sql]\nmax_execution_time_ms = 100\n");
    let mut client = connect(&server);
    let answer = client.query("SELECT SLEEP(30)");
    // MySQL's SLEEP() gives 1 where it was interrupted.
    assert!(
        matches!(&answer, Answer::Error(error) if error.number == 3024) || answer.value() == "1"
    );
    assert_eq!(client.query("SELECT 1").value(), "1");
}
