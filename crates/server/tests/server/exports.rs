//! EXPORT and PUT of the line protocol: what a client gets while the server works for it, and beside other writers.

use std::{
    io::Read,
    net::Shutdown,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{mysql::connect, support::TestServer};

const DOCUMENTS: usize = 5_000;
/// The conditions of an EXPORT that takes about a second, and of one that takes as many minutes.
const SECOND: i32 = 20;
const MINUTE: i32 = 1_000;

/// A server with a collection, and an EXPORT of it that takes so long and finds nothing.
fn searched_for_nothing(conditions: i32) -> (TestServer, String) {
    let server = TestServer::start("");
    let mut client = server.connect();
    let columns = r#"[{"name":"id","type":"int64"},{"name":"doc","type":"json","nullable":false}]"#;
    let made = client.ask(&format!(
        r#"CREATE TABLE notes {{"name":"notes","primary_key":["id"],"columns":{columns}}}"#
    ));
    assert!(made.starts_with("OK CREATED"), "{made}");
    let numbers = (1..=200).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    for start in (0..DOCUMENTS).step_by(1_000) {
        let row = |id| format!(r#"{{"id":{id},"doc":{{"n":[{numbers}]}}}}"#);
        let rows = (start..start + 1_000).map(row).collect::<Vec<_>>().join(",");
        let put = client.ask(&format!("PUT notes [{rows}]"));
        assert!(put.starts_with("OK PUT 1000"), "{put}");
    }
    let conditions: Vec<_> = (1..=conditions).map(|n| format!("n = -{n}")).collect();
    let condition = conditions.join(" OR ");
    (server, format!(r#"EXPORT notes {{"documents":true,"where":"{condition}"}}"#))
}

#[test]
fn exports_of_clients_that_left_leave_room_for_others() {
    let (server, export) = searched_for_nothing(MINUTE);
    let begin = || {
        let mut client = server.connect();
        client.send(format!("{export}\r\n").as_bytes());
        let mut begun = [0; 11];
        client.stream.read_exact(&mut begun).unwrap();
        assert_eq!(begun, *b"OK EXPORT\r\n");
        client
    };
    let few = "EXPORT articles {\"columns\":[\"id\"],\"where\":\"id = 1\"}";
    let running: Vec<_> = (0..16).map(|_| begin()).collect();
    let refused = server.connect().ask(few);
    assert!(refused.starts_with("ERROR 6030"), "{refused}");
    drop(running);
    let begun = Instant::now();
    loop {
        let reply = server.connect().ask(few);
        if reply.starts_with("OK EXPORT") {
            assert!(reply.ends_with("END 1\r\n"), "{reply}");
            break;
        }
        assert!(reply.starts_with("ERROR 6030"), "{reply}");
        assert!(begun.elapsed() < Duration::from_secs(60), "the exports go on without clients");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_sends_nothing_more_still_gets_its_export_and_signs_of_life() {
    let (server, export) = searched_for_nothing(SECOND);
    let mut client = server.connect();
    client.send(format!("COUNT articles mountain\r\n{export}\r\n").as_bytes());
    thread::sleep(Duration::from_millis(50));
    // What arrives meanwhile is answered behind it.
    client.send(b"COUNT articles city\r\n");
    client.stream.shutdown(Shutdown::Write).unwrap();
    let reply = client.rest();
    let parts = reply.strip_prefix("OK COUNT 1\r\nOK EXPORT\r\n").expect(&reply);
    let parts = parts.strip_suffix("END 0\r\nOK COUNT 1\r\n").expect(&reply);
    assert!(!parts.is_empty() && parts.replace("0\r\n\r\n", "").is_empty(), "{reply}");
}

#[test]
fn errors_of_exports_have_codes_and_speak_of_no_options_of_a_command_line() {
    let (server, _) = searched_for_nothing(SECOND);
    let mut client = server.connect();
    for (options, code) in [
        (r#"articles {"pretty":true}"#, 2),
        (r#"articles {"documents":true}"#, 2),
        (r#"articles {"where":"nosuch = 1"}"#, 3006),
        (r#"articles {"where":"id = 'x'"}"#, 2),
        (r#"articles {"columns":["nosuch"]}"#, 2),
        (r#"notes {"documents":true,"format":"csv"}"#, 2),
        (r#"notes {"documents":true,"columns":["doc"]}"#, 2),
        (r#"notes {"documents":true,"pretty":true}"#, 2),
        (r#"nosuch {"where":"id = 1"}"#, 4007),
    ] {
        let reply = client.ask(&format!("EXPORT {options}"));
        assert!(reply.starts_with(&format!("ERROR {code} ")), "{options}: {reply}");
        assert!(!reply.contains("--"), "{options}: {reply}");
    }
}

#[test]
fn rows_are_put_beside_other_writers_of_the_same_rows() {
    let server = TestServer::start_empty("");
    connect(&server).query("CREATE TABLE c (id INT PRIMARY KEY, n INT, u INT UNIQUE)");
    let rows: Vec<_> = (0..100).map(|id| format!(r#"{{"id":{id},"n":0,"u":{id}}}"#)).collect();
    let put = format!("PUT c [{}]", rows.join(","));
    let mut line = server.connect();
    assert!(line.ask(&put).starts_with("OK PUT 100 "));
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sql = connect(&server);
            while !ends.load(Ordering::Relaxed) {
                sql.query("UPDATE c SET n = n + 1 WHERE id < 50");
                thread::sleep(Duration::from_millis(5));
            }
        });
        let refused: Vec<_> =
            (0..60).map(|_| line.ask(&put)).filter(|it| !it.starts_with("OK PUT")).collect();
        ends.store(true, Ordering::Relaxed);
        assert!(refused.is_empty(), "{} {:?}", refused.len(), refused.first());
    });
    // The first row at fault is named, whichever of the steps of writing refuses it.
    let mut wrong = rows;
    wrong[40] = r#"{"id":40,"u":3}"#.to_owned();
    for (place, row) in [(60, r#"{"id":60,"n":"x"}"#), (20, r#"{"id":20,"n":"x"}"#)] {
        wrong[place] = row.to_owned();
        let told = line.ask(&format!("PUT c [{}]", wrong.join(",")));
        let named =
            if place == 60 { "row 41: Duplicate entry '3'" } else { "row 21: Incorrect integer" };
        assert!(told.starts_with(&format!("ERROR 2 {named}")), "{told}");
    }
}
