//! A request with many queries: they share one time limit, and ending one of them ends the request.

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use remora_protocol::sphinx::Answer;
use remora_server::settings::Settings;

use crate::{
    sphinx::{
        books,
        reader::Reader,
        sql,
        wire::{Client, Reply, SEARCH_VERSION, search, timed},
    },
    support::TestServer,
};

/// The most queries in a request.
const QUERIES: u32 = 32;
/// A query that takes some time.
const SLOW: (&str, &str) = ("crc32(kind) + ln(year) as x", "x desc");

/// Enough rows for a slow query.
fn with_many_rows() -> TestServer {
    let server = books("");
    let mut sql = sql(&server, "", "");
    for statement in [
        "CREATE TABLE n (i INT PRIMARY KEY)",
        "INSERT INTO n WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE \
         i < 1000) SELECT i FROM r",
        "INSERT INTO books SELECT 1000 * b.i + a.i, 'reef', 'fish', 1000 + a.i, 1, a.i, 'many', \
         FROM_UNIXTIME(946684800), 0, '', '', 0, 0 FROM n a JOIN n b WHERE b.i <= 50",
    ] {
        sql.query_drop(statement).unwrap();
    }
    server
}

/// Sets the time limit of statements and requests; 0 means none.
fn limit(server: &TestServer, limit_ms: u128) {
    let path = server.directory.path().join("remora.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = format!("{text}\n[sql]\nmax_execution_time_ms = {limit_ms}\n");
    let mut settings = Settings::parse(&path, &text).unwrap();
    settings.data = server.directory.path().join("data");
    server.server().reload(settings.finish().unwrap());
}

fn body(times: u32) -> Vec<u8> {
    let (select, order) = SLOW;
    search(times, select, order)
}

fn answers(reply: &Reply) -> Vec<Answer> {
    Reader(&reply.2).answers(SEARCH_VERSION, reply.0)
}

/// The error of the last query of a request whose first query has an answer.
fn refusal_of_last(reply: &Reply) -> String {
    let answers = answers(reply);
    assert_eq!(answers.len(), QUERIES as usize);
    match answers.last() {
        Some(Answer::Error(error)) => error.clone(),
        other => panic!("the last query was answered: {other:?}"),
    }
}

#[test]
fn queries_of_a_request_share_a_time_limit() {
    let server = with_many_rows();
    let mut client = Client::persistent(&server);
    let mut took = || {
        let begin = Instant::now();
        let reply = client.ask(0, SEARCH_VERSION, &body(1));
        assert!(matches!(&answers(&reply)[..], [Answer::Found { .. }]));
        begin.elapsed()
    };
    took();
    let one = (0..3).map(|_| took()).min().unwrap();
    // Time for some, and for each of them, but not for all.
    let limit_ms = (12 * one).as_millis().max(1);
    limit(&server, limit_ms);
    let reply = client.ask(0, SEARCH_VERSION, &body(QUERIES));
    assert!(matches!(answers(&reply)[0], Answer::Found { .. }));
    let error = refusal_of_last(&reply);
    assert!(error.contains("maximum statement execution time exceeded"), "{error}");
    // The next request has its own, and this one as much as it needs.
    limit(&server, 0);
    assert!(matches!(
        &answers(&client.ask(0, SEARCH_VERSION, &body(1)))[..],
        [Answer::Found { .. }]
    ));
}

#[test]
fn query_time_limit_ends_only_that_query() {
    let server = with_many_rows();
    let mut client = Client::persistent(&server);
    let (select, order) = SLOW;
    let reply = client.ask(0, SEARCH_VERSION, &timed(&[0, 1, 60_000, 1, 0], select, order));
    let answers = answers(&reply);
    for (place, answer) in answers.iter().enumerate() {
        match (answer, place) {
            (Answer::Found { found, .. }, 0 | 2 | 4) => assert!(found.total_found > 50_000),
            // As in Sphinx, what was found until then is the answer.
            (Answer::Found { warning, found }, 1 | 3) => {
                assert_eq!(warning, "query time exceeded max_query_time");
                assert_eq!(found.total_found as usize, found.matches.len());
            }
            _ => panic!("{place}: {answer:?}"),
        }
    }
    assert_eq!(answers.len(), 5);
}

#[test]
fn killed_request_runs_no_further_queries() {
    let server = with_many_rows();
    let mut client = Client::persistent(&server);
    client.send(0, SEARCH_VERSION, &body(QUERIES));
    let mut sql = sql(&server, "", "");
    let until = Instant::now() + Duration::from_secs(60);
    let id = loop {
        let rows: Vec<mysql::Row> = sql.query("SHOW PROCESSLIST").unwrap();
        let mut running = rows.iter().filter(|row| {
            let statement = row.get::<Option<String>, _>(7).flatten().unwrap_or_default();
            statement.contains("CRC32")
        });
        if let Some(row) = running.next() {
            break row.get::<u64, _>(0).unwrap();
        }
        assert!(Instant::now() < until, "it does not run");
    };
    sql.query_drop(format!("KILL QUERY {id}")).unwrap();
    let error = refusal_of_last(&client.reply());
    assert!(error.contains("Query execution was interrupted"), "{error}");
    assert!(matches!(
        &answers(&client.ask(0, SEARCH_VERSION, &body(1)))[..],
        [Answer::Found { .. }]
    ));
}
