//! Servers of distributed tables that send false answers, are slow, disconnect or are gone. The statement fails in
//! time, or is answered without them if that was requested, and the server keeps running.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use mysql::{Conn, prelude::Queryable};

use super::agents::{Random, TABLE, connect, connect_as, head, sets};
use crate::support::TestServer;

/// The handling of bytes on their way to a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Pass,
    /// They are delayed.
    Late(Duration),
    /// The connection is closed.
    Close,
    /// They are dropped.
    Lose,
}

type Decide = Arc<dyn Fn(&[u8]) -> Way + Send + Sync>;
pub(super) type Change = Arc<dyn Fn(&mut Vec<u8>) + Send + Sync>;

/// A proxy to a server that inspects the bytes of clients and can change those of the server.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    decide: Arc<Mutex<Decide>>,
    /// All requests.
    pub(super) asked: Arc<Mutex<Vec<u8>>>,
    opened: Arc<AtomicU64>,
}

impl Proxy {
    pub(super) fn new(server: SocketAddr, change: Option<Change>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let pass: Decide = Arc::new(|_| Way::Pass);
        let this = Self {
            address,
            decide: Arc::new(Mutex::new(pass)),
            asked: Arc::default(),
            opened: Arc::default(),
        };
        let (decide, asked) = (Arc::clone(&this.decide), Arc::clone(&this.asked));
        let opened = Arc::clone(&this.opened);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else { return };
                opened.fetch_add(1, Ordering::SeqCst);
                let (decide, asked) = (Arc::clone(&decide), Arc::clone(&asked));
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || {
                    pump(from, to, |bytes| {
                        asked.lock().unwrap().extend_from_slice(bytes);
                        let decide = Arc::clone(&decide.lock().unwrap());
                        decide(bytes)
                    });
                });
                let change = change.clone();
                thread::spawn(move || {
                    pump(server, client, |bytes| {
                        change.iter().for_each(|change| change(bytes));
                        Way::Pass
                    });
                });
            }
        });
        this
    }

    pub(super) fn set(&self, decide: impl Fn(&[u8]) -> Way + Send + Sync + 'static) {
        *self.decide.lock().unwrap() = Arc::new(decide);
    }

    /// The number of requests of this name since the last call.
    pub(super) fn count(&self, request: &str) -> usize {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let name = format!("{{\"{request}\"");
        asked.windows(name.len()).filter(|bytes| *bytes == name.as_bytes()).count()
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, mut way: impl FnMut(&mut Vec<u8>) -> Way) {
    let mut bytes = vec![0; 256 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let mut piece = bytes[..count].to_vec();
        match way(&mut piece) {
            Way::Pass => {}
            Way::Late(by) => thread::sleep(by),
            Way::Close => break,
            Way::Lose => continue,
        }
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

pub(super) fn holds(bytes: &[u8], request: &str) -> bool {
    let name = format!("{{\"{request}\"");
    bytes.windows(name.len()).any(|window| window == name.as_bytes())
}

/// A server with a table of rows of these keys, whose texts have `often`.
pub(super) fn shard(keys: std::ops::Range<u32>) -> (TestServer, Conn) {
    let server = TestServer::start_empty("");
    let mut conn = connect(&server);
    conn.query_drop(format!("CREATE TABLE t {TABLE}")).unwrap();
    let row = |id| format!("({id}, {id}, 1, NULL, 'often', 'often rare')");
    let rows: Vec<String> = keys.map(row).collect();
    conn.query_drop(format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
    (server, conn)
}

const FOUND: &str = "SELECT id, WEIGHT() FROM d WHERE MATCH('often') ORDER BY id LIMIT 500";

/// A message of the protocol.
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

fn greeting() -> Vec<u8> {
    let mut payload = b"\x0a8.0\0\x07\0\0\0nnnnnnnn\0".to_vec();
    // All that a client may ask but TLS and compression.
    payload.extend_from_slice(&[0xDF, 0xF7, 45, 2, 0, 0xFF, 0x80, 21]);
    payload.extend_from_slice(&[0; 10]);
    payload.extend_from_slice(b"nnnnnnnnnnnn\0mysql_native_password\0");
    packet(0, &payload)
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const COLUMN: &[u8] = b"\x03def\0\0\0\x06answer\x06answer\x0c\x3f\0\0\0\0\x40\xfb\0\0\0\0\0";
const EOF: &[u8] = &[0xFE, 0, 0, 2, 0];

/// A server that lets everybody in and answers what it is asked with these bytes, one after the other with these
/// pauses.
fn liar(answer: Vec<u8>, piece: usize, pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let answer = answer.clone();
            thread::spawn(move || {
                let mut asked = [0; 64 << 10];
                let _ = stream.write_all(&greeting());
                let _ = stream.read(&mut asked);
                let _ = stream.write_all(&packet(2, OK));
                // What the session is set to.
                let _ = stream.read(&mut asked);
                let _ = stream.write_all(&packet(1, OK));
                let _ = stream.read(&mut asked);
                for piece in answer.chunks(piece) {
                    if stream.write_all(piece).is_err() {
                        return;
                    }
                    thread::sleep(pause);
                }
                // Until the other side leaves.
                while stream.read(&mut asked).is_ok_and(|count| count > 0) {}
            });
        }
    });
    address
}

/// A complete reply with one row of one value.
fn value(value: &str) -> Vec<u8> {
    let bytes = value.as_bytes();
    let length = [&[0xFD][..], &(bytes.len() as u32).to_le_bytes()[..3]].concat();
    let row = [&length[..], bytes].concat();
    [&packet(1, &[1])[..], &packet(2, COLUMN), &packet(3, EOF), &packet(4, &row), &packet(5, EOF)]
        .concat()
}

#[test]
fn false_agent_answers_are_errors_with_bounded_cost() {
    let at_once = Duration::ZERO;
    let begin = [&packet(1, &[1])[..], &packet(2, COLUMN), &packet(3, EOF)].concat();
    let with = |rest: &[u8]| [&begin[..], rest].concat();
    let huge_row = [&[0xFE][..], &(1_u64 << 40).to_le_bytes(), b"x"].concat();
    let opened = |rows: &str, ends: &str| {
        format!(
            r#"{{"schema":{{"name":"t","columns":[],"primary_key":[]}},"rows":{rows},"version":"v","ends":{ends},"lost":[]}}"#
        )
    };
    let lies: Vec<(Vec<u8>, usize)> = vec![
        // 2^40 columns, 2^64 - 1 columns, many, none.
        (packet(1, &[0xFE, 0, 0, 0, 0, 0, 1, 0, 0]), 99),
        (packet(1, &[0xFE, 255, 255, 255, 255, 255, 255, 255, 255]), 99),
        (packet(1, &[0xFC, 255, 255]), 99),
        (packet(1, &[]), 99),
        (packet(1, OK), 99),
        // A message of 16 MiB that does not come, and one that never ends.
        (vec![255, 255, 255, 1], 99),
        ([&[255, 255, 255, 1][..], &vec![7; 40 << 20]].concat(), 1 << 20),
        // Wrong sequences, lengths and ends.
        (packet(9, &[1]), 99),
        (with(&packet(4, &huge_row)), 99),
        (with(&packet(4, b"\x09short")), 99),
        (with(&packet(4, &[0xFB])), 99),
        (with(&[20, 0, 0, 4, 1, 2, 3]), 99),
        ([&value("{}")[..], b"more"].concat(), 9_999),
        (packet(1, b"\xff\x15"), 99),
        (packet(1, b"\xfbfile"), 99),
        // Answers that are none.
        (value(""), 99),
        (value(&"[".repeat(100_000)), 1 << 20),
        (value(&opened("1", "null")), 9_999),
        (value(&opened("18446744073709551615", r#"["00","ff"]"#)), 9_999),
        (value(&opened("1", r#"["ff","00"]"#)), 9_999),
        (value(&opened("1", r#"["zz","00"]"#)), 9_999),
    ];
    let liars: Vec<SocketAddr> =
        lies.iter().map(|(answer, piece)| liar(answer.clone(), *piece, at_once)).collect();
    // One byte after the other, for ever.
    let slow = liar(value(&"x".repeat(100_000)), 1, Duration::from_millis(50));
    let all: Vec<SocketAddr> = liars.into_iter().chain([slow]).collect();
    let server = head(&all, "");
    let mut conn = connect(&server);
    for (number, lying) in all.iter().enumerate() {
        let made = format!(
            "CREATE TABLE d type='distributed' agent='{lying}:t[conn=pconn]' agent_query_timeout='700'"
        );
        conn.query_drop(made).unwrap();
        let begun = Instant::now();
        let failed = sets(&mut conn, "SELECT id FROM d");
        assert!(
            failed.contains("1430") && failed.contains(&lying.to_string()),
            "{number} {failed}"
        );
        assert!(begun.elapsed() < Duration::from_secs(10), "{number}");
        conn.query_drop("DROP TABLE d").unwrap();
    }
    assert_eq!(sets(&mut conn, "SELECT 1"), "1\n--\n");
}

#[test]
fn corrupted_agent_replies_do_no_harm() {
    let mut random = Random::seeded();
    let (shard, _conn) = shard(0..40);
    let seed = Arc::new(Mutex::new(Random::seeded()));
    let count = Arc::new(AtomicU64::new(0));
    let change: Change = Arc::new(move |bytes: &mut Vec<u8>| {
        let mut random = seed.lock().unwrap();
        // The login is mostly let through.
        if count.fetch_add(1, Ordering::SeqCst) % 5 > 2 || random.below(8) == 0 {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, random.below(256) as u8),
                _ => bytes[at] = random.below(256) as u8,
            }
        }
    });
    let proxy = Proxy::new(shard.sql_address(), Some(change));
    let server = head(&[proxy.address], "");
    let mut conn = connect(&server);
    conn.query_drop(format!(
        "CREATE TABLE d type='distributed' agent='{}:t' agent_query_timeout='300' agent_connect_timeout='300'",
        proxy.address
    ))
    .unwrap();
    for _ in 0..60 {
        let statement = random.one(&[FOUND, "SELECT * FROM d", "SELECT COUNT(*) FROM d"]);
        let begun = Instant::now();
        let _ = sets(&mut conn, statement);
        assert!(begun.elapsed() < Duration::from_secs(5), "{statement}");
    }
    assert_eq!(sets(&mut conn, "SELECT 1"), "1\n--\n");
}

#[test]
fn statement_with_many_agent_requests_has_one_time_limit() {
    let (shard, _conn) = shard(0..40);
    let proxy = Proxy::new(shard.sql_address(), None);
    let server = head(&[proxy.address], "");
    let mut conn = connect(&server);
    conn.query_drop(format!(
        "CREATE TABLE d type='distributed' agent='{}:t' agent_query_timeout='5000' agent_connect_timeout='20000'",
        proxy.address
    ))
    .unwrap();
    assert_eq!(sets(&mut conn, FOUND).lines().count(), 41);
    // Each answer comes in time, and all together do not.
    proxy.set(|bytes| match holds(bytes, "statistics") || holds(bytes, "scan") {
        true => Way::Late(Duration::from_millis(3_000)),
        false => Way::Pass,
    });
    let begun = Instant::now();
    let late = sets(&mut conn, FOUND);
    assert!(late.contains("1430") && late.contains("in time"), "{late}");
    assert!(begun.elapsed() < Duration::from_secs(15));
    let patient = format!("{FOUND} OPTION agent_query_timeout=60000");
    assert_eq!(sets(&mut conn, &patient).lines().count(), 41);
}

#[test]
fn partial_answers_have_the_reachable_parts() {
    // Of the keys from 20 on both have rows, and the last ones count.
    let (first, _first_conn) = shard(0..30);
    let (second, mut there) = shard(20..50);
    there.query_drop("UPDATE t SET n = 1000 WHERE id >= 20").unwrap();
    let proxy = Proxy::new(second.sql_address(), None);
    let server = head(&[first.sql_address(), proxy.address], "");
    let mut conn = connect(&server);
    let made = |first: SocketAddr, second: SocketAddr| {
        format!(
            "type='distributed' agent='{first}:t' agent='{second}:t' agent_query_timeout='4000' agent_connect_timeout='4000'"
        )
    };
    conn.query_drop(format!("CREATE TABLE d {}", made(first.sql_address(), proxy.address)))
        .unwrap();
    conn.query_drop(format!("CREATE TABLE e {}", made(proxy.address, first.sql_address())))
        .unwrap();
    let sum = "SELECT COUNT(*), SUM(n) FROM d";
    let whole = (0..20).sum::<u32>() + 30 * 1_000;
    assert_eq!(sets(&mut conn, sum), format!("50|{whole}\n--\n"));
    let partial = |statement: &str| format!("{statement} OPTION partial=1");
    let alone = |conn: &mut Conn, table: &str, keys: usize| {
        let rows = sets(conn, &partial(&FOUND.replace(" d ", &format!(" {table} "))));
        assert_eq!(rows.lines().count(), keys + 1, "{rows}");
        let warned = sets(conn, "SHOW WARNINGS");
        assert!(warned.contains("is left out"), "{warned}");
        rows
    };
    // Lost as it is opened, as keys are compared, and as rows are hidden in it: the other has all of its own rows.
    for (request, table) in
        [("open", "d"), ("open", "e"), ("keys", "d"), ("keys", "e"), ("hide", "e")]
    {
        // Else what keys they share is known.
        there.query_drop("UPDATE t SET n = n + 1 WHERE id = 49").unwrap();
        proxy.set(move |bytes| if holds(bytes, request) { Way::Close } else { Way::Pass });
        let failed = sets(&mut conn, &format!("SELECT COUNT(*) FROM {table}"));
        assert!(failed.contains("1430"), "{request} {table}: {failed}");
        alone(&mut conn, table, 30);
        // What was found is told of the same servers.
        let meta = sets(&mut conn, "SHOW META");
        assert!(
            meta.contains("docs[0]|30") && meta.contains("total_found|30"),
            "{request}: {meta}"
        );
    }
    // Lost behind that: what was read so far was weighed by its numbers, so that nothing is told.
    for request in ["statistics", "scan"] {
        proxy.set(move |bytes| if holds(bytes, request) { Way::Close } else { Way::Pass });
        let failed = sets(&mut conn, &partial(FOUND));
        assert!(failed.contains("1430"), "{request}: {failed}");
    }
    proxy.set(|_| Way::Pass);
    assert_eq!(sets(&mut conn, FOUND).lines().count(), 51);
    assert_eq!(sets(&mut conn, "SHOW WARNINGS"), "--\n");
}

#[test]
fn agent_connections_are_pooled_and_a_dead_host_is_waited_for_once() {
    let (shard, mut there) = shard(0..40);
    let proxy = Proxy::new(shard.sql_address(), None);
    let server = head(&[proxy.address, shard.sql_address()], "");
    let mut conn = connect(&server);
    let table = |agent: &str| {
        format!(
            "type='distributed' agent='{agent}[conn=pconn,ha_strategy=roundrobin]' agent_connect_timeout='2000' agent_query_timeout='6000'"
        )
    };
    conn.query_drop(format!("CREATE TABLE d {}", table(&format!("{}:t", proxy.address)))).unwrap();
    // However long each waits, they share connections.
    for ms in 0..40 {
        let statement =
            format!("SELECT COUNT(*) FROM d OPTION agent_query_timeout={}", 20_000 + ms);
        assert_eq!(sets(&mut conn, &statement), "40\n--\n");
    }
    // The thread of one gives it back a little later than its statement ends.
    assert!(proxy.opened.load(Ordering::SeqCst) < 20, "{:?}", proxy.opened);
    // Several that wait.
    let asking: Vec<_> = (0..6)
        .map(|_| {
            let mut conn = connect(&server);
            thread::spawn(move || {
                let counts = (0..5).map(|_| sets(&mut conn, "SELECT COUNT(*) FROM d"));
                counts.collect::<String>()
            })
        })
        .collect();
    asking.into_iter().for_each(|asking| assert_eq!(asking.join().unwrap(), "40\n--\n".repeat(5)));
    let processes = sets(&mut there, "SHOW PROCESSLIST").lines().count();
    assert!(processes < 30, "{processes}");
    // Now the host says nothing any more.
    proxy.set(|_| Way::Lose);
    let mirrored = table(&format!("{}:t|{}:t", proxy.address, shard.sql_address()));
    conn.query_drop(format!("CREATE TABLE e {mirrored}")).unwrap();
    for _ in 0..2 {
        let begun = Instant::now();
        assert_eq!(sets(&mut conn, "SELECT COUNT(*) FROM e"), "40\n--\n");
        assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    }
}

#[test]
fn connections_are_bounded() {
    let (shard, _there) = shard(0..4);
    let address = shard.sql_address();
    let server = head(&[address], "max_connections = 2\nmax_connections_per_server = 1\n");
    let mut conn = connect(&server);
    conn.query_drop(format!(
        "CREATE TABLE d type='distributed' agent='{address}:t' agent_query_timeout='20000' agent_connect_timeout='20000'"
    ))
    .unwrap();
    conn.query_drop(format!(
        "CREATE TABLE e type='distributed' agent='{address}:t' agent_query_timeout='20000' agent_connect_timeout='20000'"
    ))
    .unwrap();
    let refused = sets(&mut conn, "SELECT COUNT(*) FROM d JOIN e ON d.id = e.id");
    assert!(refused.contains("agents.max_connections_per_server"), "{refused}");
    // So are those that are waited for.
    let made = (0..3).map(|_| format!("agent='{address}:t'")).collect::<Vec<_>>().join(" ");
    conn.query_drop(format!("CREATE TABLE many type='distributed' {made}")).unwrap();
    let refused = sets(&mut conn, "SELECT COUNT(*) FROM many");
    assert!(refused.contains("1430") && refused.contains("agents.max_connections"), "{refused}");
    // Counted only as long as they are used.
    let begun = Instant::now();
    while sets(&mut conn, "SELECT COUNT(*) FROM d") != "4\n--\n" {
        assert!(begun.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn facets_report_missing_agents() {
    let (first, _first_conn) = shard(0..4);
    let (second, _second_conn) = shard(10..14);
    let proxy = Proxy::new(second.sql_address(), None);
    let server = head(&[first.sql_address(), proxy.address], "");
    let mut conn = connect(&server);
    conn.query_drop(format!("CREATE TABLE t {TABLE}")).unwrap();
    conn.query_drop("INSERT INTO t VALUES (1, 1, 1, NULL, 'often', 'often rare')").unwrap();
    conn.query_drop(format!(
        "CREATE TABLE d type='distributed' agent='{}:t' agent='{}:t' agent_query_timeout='4000' agent_connect_timeout='4000'",
        first.sql_address(),
        proxy.address
    ))
    .unwrap();
    let excerpt = sets(&mut conn, "SELECT SNIPPET(body, 'rare') FROM d WHERE id = 1");
    assert_eq!(excerpt, sets(&mut conn, "SELECT SNIPPET(body, 'rare') FROM t WHERE id = 1"));
    assert!(excerpt.contains("rare"), "{excerpt}");
    let refused = sets(&mut conn, "SELECT id FROM d WHERE MATCH(body) AGAINST('often')");
    assert!(refused.contains("1235"), "{refused}");
    let refused = sets(&mut conn, "UPDATE t JOIN d ON t.id = d.id SET n = 5");
    assert!(refused.contains("1052"), "{refused}");
    conn.query_drop("BEGIN").unwrap();
    let refused = sets(&mut conn, "SELECT id FROM d FOR UPDATE");
    assert!(refused.contains("1235"), "{refused}");
    conn.query_drop("ROLLBACK").unwrap();
    let rows = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_NAME = 'd'";
    assert_eq!(sets(&mut conn, rows), "NULL\n--\n");
    proxy.set(|bytes| if holds(bytes, "open") { Way::Close } else { Way::Pass });
    let faceted = "SELECT id FROM d WHERE MATCH('often') LIMIT 2 OPTION partial=1 FACET g FACET n";
    conn.query_drop("SET sql_dialect = 'sphinx'").unwrap();
    let answer = sets(&mut conn, faceted);
    assert!(answer.starts_with("0\n1\n--\n"), "{answer}");
    let warned = sets(&mut conn, "SHOW WARNINGS");
    assert!(warned.contains("is left out"), "{warned}");
    conn.query_drop("SET sql_dialect = 'mysql'").unwrap();
    // SHOW META is of the same servers, also where the other has come back.
    assert_eq!(sets(&mut conn, &format!("{FOUND} OPTION partial=1")).lines().count(), 5);
    proxy.set(|_| Way::Pass);
    let meta = sets(&mut conn, "SHOW META");
    assert!(meta.contains("docs[0]|4") && meta.contains("total_found|4"), "{meta}");
}

#[test]
fn abandoned_agent_requests_are_ended() {
    let (shard, _there) = shard(0..40);
    let silent = Proxy::new(shard.sql_address(), None);
    silent.set(|bytes| if holds(bytes, "open") { Way::Lose } else { Way::Pass });
    let middle = head(&[silent.address], "");
    let server = head(&[middle.sql_address()], "");
    let (mut between, mut conn) = (connect(&middle), connect(&server));
    between
        .query_drop(format!(
            "CREATE TABLE n type='distributed' agent='{}:t' agent_query_timeout='100000' agent_connect_timeout='20000'",
            silent.address
        ))
        .unwrap();
    conn.query_drop(format!(
        "CREATE TABLE d type='distributed' agent='{}:n' agent_query_timeout='100000' agent_connect_timeout='20000'",
        middle.sql_address()
    ))
    .unwrap();
    let is_asked = |between: &mut Conn| {
        let list = sets(between, "SHOW FULL PROCESSLIST");
        list.lines().filter(|line| line.contains("CALL REMORA_PART(")).count()
    };
    let wait_for = |between: &mut Conn, count: usize| {
        let begun = Instant::now();
        while is_asked(between) != count {
            assert!(begun.elapsed() < Duration::from_secs(10), "not {count}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    let id = conn.connection_id();
    let waiting = thread::spawn(move || {
        let killed = sets(&mut conn, "SELECT COUNT(*) FROM d");
        (killed, conn)
    });
    wait_for(&mut between, 1);
    connect(&server).query_drop(format!("KILL QUERY {id}")).unwrap();
    let (killed, mut conn) = waiting.join().unwrap();
    assert!(killed.contains("1317"), "{killed}");
    wait_for(&mut between, 0);
    // So it is where the time is over, by either name.
    for statement in [
        "SELECT /*+ MAX_EXECUTION_TIME(400) */ id FROM d",
        "SELECT id FROM d OPTION max_query_time=400",
    ] {
        let late = sets(&mut conn, statement);
        assert!(late.contains("3024"), "{statement}: {late}");
        wait_for(&mut between, 0);
    }
}

#[test]
fn distributed_planning_sends_no_counts_and_running_at_most_one() {
    let (shard, _there) = shard(0..40);
    let proxy = Proxy::new(shard.sql_address(), None);
    let server = head(&[proxy.address], "");
    let mut conn = connect(&server);
    conn.query_drop(format!(
        "CREATE TABLE d type='distributed' agent='{}:t' agent_query_timeout='20000' agent_connect_timeout='20000'",
        proxy.address
    ))
    .unwrap();
    for filter in ["n > 7", "MATCH('often') AND n > 7"] {
        let statement = format!("SELECT id FROM d WHERE {filter} ORDER BY n LIMIT 3");
        let _ = sets(&mut conn, &format!("EXPLAIN {statement}"));
        assert_eq!(sets(&mut conn, &statement), "8\n9\n10\n--\n");
        assert_eq!(proxy.count("count"), 0, "{statement}");
        assert_eq!(sets(&mut conn, &format!("SELECT COUNT(*) FROM d WHERE {filter}")), "32\n--\n");
        let asked = proxy.asked.lock().unwrap().clone();
        assert!(!holds(&asked, "scan"), "{filter}");
        assert_eq!(proxy.count("count"), 1, "{filter}");
    }
}

/// Requests a part like another server.
fn ask(conn: &mut Conn, request: &str) -> String {
    sets(conn, &format!("CALL REMORA_PART('{request}')"))
}

const OPEN: &str = r#"{"open":{"version":4,"tables":["remora.t"],"trail":[],"is_partial":false}}"#;

#[test]
fn parts_are_bounded() {
    let (_shard, mut conn) = shard(0..40);
    assert!(ask(&mut conn, OPEN).contains(r#""rows":40"#));
    // Scans that are ended make room for others.
    let scan = |cursor: u32| {
        format!(
            r#"{{"scan":{{"cursor":{cursor},"text":null,"filter":null,"columns":[0],"scores":[],"limit":null,"page_rows":1,"page_bytes":65536}}}}"#
        )
    };
    for cursor in 0..200 {
        let page = ask(&mut conn, &scan(cursor));
        assert!(!page.contains("ERROR"), "{cursor} {page}");
        let ended = ask(&mut conn, &format!(r#"{{"end":{{"cursor":{cursor}}}}}"#));
        assert!(!ended.contains("ERROR"), "{cursor} {ended}");
    }
    for cursor in 0..64 {
        assert!(!ask(&mut conn, &scan(cursor)).contains("ERROR"));
    }
    let refused = ask(&mut conn, &scan(64));
    assert!(refused.contains("64 scans"), "{refused}");
    // A part that failed is closed.
    assert!(ask(&mut conn, &scan(1)).contains("no part is open"));
    assert!(ask(&mut conn, OPEN).contains(r#""rows":40"#));
    assert!(!ask(&mut conn, &scan(1)).contains("ERROR"));
    let twice = ask(&mut conn, &scan(1));
    assert!(twice.contains("already"), "{twice}");
    // Rows are hidden so often, and no more.
    let keys = keys_of(&mut conn);
    assert!(ask(&mut conn, OPEN).contains(r#""rows":40"#));
    for hidden in 1..=8 {
        let told = ask(&mut conn, &format!(r#"{{"hide":{{"keys":["{}"]}}}}"#, keys[hidden - 1]));
        assert!(told.contains(&format!(r#""rows":{}"#, 40 - hidden)), "{told}");
    }
    let refused = ask(&mut conn, &format!(r#"{{"hide":{{"keys":["{}"]}}}}"#, keys[9]));
    assert!(refused.contains("hidden 8 times"), "{refused}");
    for request in [
        r#"{"open":{"version":1,"tables":["remora.t"],"trail":[],"is_partial":false}}"#,
        r#"{"open":{"version":5,"tables":["remora.t"],"trail":[],"is_partial":false}}"#,
        r#"{"open":{"version":4,"tables":["remora.t"],"trail":["a","b","c","d","e"],"is_partial":false}}"#,
        r#"{"open":{"version":4,"tables":[],"trail":[],"is_partial":false}}"#,
        r#"{"open":{"version":4,"tables":["remora.t","x.t"],"trail":[],"is_partial":false}}"#,
    ] {
        let refused = ask(&mut conn, request);
        assert!(refused.contains("ERROR"), "{request}: {refused}");
    }
    assert!(ask(&mut conn, OPEN).contains(r#""rows":40"#));
    let by_path = r#"{"count":{"text":null,"filter":{"path_texts":["body",[["b"]],"x"]}}}"#;
    let refused = ask(&mut conn, by_path);
    assert!(refused.contains("conditions by paths"), "{refused}");
    let deep = format!("{}{}", r#"{"not":"#.repeat(300), "}".repeat(300));
    let refused = ask(&mut conn, &format!(r#"{{"count":{{"text":{deep},"filter":null}}}}"#));
    assert!(refused.contains("ERROR"), "{refused}");
    assert_eq!(sets(&mut conn, "SELECT 1"), "1\n--\n");
}

#[test]
fn pages_have_the_requested_size() {
    let (_shard, mut conn) = shard(0..40);
    // Each column once, and as many bytes as a page may have, but one row at least.
    let scan = |cursor: u32, columns: &str, bytes: usize| {
        let asked = format!(
            r#"{{"scan":{{"cursor":{cursor},"text":null,"filter":null,"columns":[{columns}],"scores":[],"limit":null,"page_rows":40,"page_bytes":{bytes}}}}}"#
        );
        format!("CALL REMORA_PART('{asked}')")
    };
    assert!(ask(&mut conn, OPEN).contains(r#""rows":40"#));
    let mut page = |statement: String| -> usize {
        let page: Option<Vec<u8>> = conn.query_first(statement).unwrap();
        page.unwrap().windows(10).filter(|bytes| *bytes == b"often rare").count()
    };
    // A row has 3 * 16 bytes and its 15 of texts.
    for (cursor, bytes, rows) in [(1, 0, 1), (2, 63, 1), (3, 126, 2), (4, 480, 8), (5, 1 << 20, 40)]
    {
        assert_eq!(page(scan(cursor, "0,4,5", bytes)), rows, "{bytes}");
    }
    // What was read and had no room comes next.
    assert_eq!(page(r#"CALL REMORA_PART('{"next":{"cursor":4}}')"#.to_owned()), 2);
    let twice = sets(&mut conn, &scan(6, "0,4,0", 1 << 20));
    assert!(twice.contains("twice"), "{twice}");
    assert!(ask(&mut conn, OPEN).contains(r#""rows":40"#));
    let patterns = vec![r#""a*""#; 65].join(",");
    let many = format!(
        r#"{{"statistics":{{"query":{{"text":"a","ranker":"none","expression":null,"field_weights":[],"table_weight":null,"is_plain":false,"is_divided":true,"options":{{"expand_keywords":null,"expansion_limit":0,"is_any":false,"is_unstemmed":false,"takes_only_not":false}},"factors":null,"statistics":null}},"wanted":{{"keywords":[],"patterns":[{patterns}],"unions":0,"totals":false,"needs_hits":false}}}}}}"#
    );
    let refused = ask(&mut conn, &many);
    assert!(refused.contains("64 words with wildcards"), "{refused}");
}

/// The first keys of the table, in hexadecimal digits: those of whole numbers of 32 bits stand in order.
fn keys_of(conn: &mut Conn) -> Vec<String> {
    let told = ask(conn, OPEN);
    let ends = told.split(r#""ends":[""#).nth(1).unwrap();
    let first = ends.split('"').next().unwrap();
    let number = u128::from_str_radix(first, 16).unwrap();
    let width = first.len();
    (0..10).map(|more| format!("{:0width$x}", number + more)).collect()
}

#[test]
fn distributed_tables_that_contain_themselves_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // A server does not know its port before it starts, so it is asked by way of another.
    let address = listener.local_addr().unwrap();
    let server = head(&[address], "");
    let own = server.sql_address();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(own)) else { return };
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pump(from, to, |_| Way::Pass));
            thread::spawn(move || pump(server, client, |_| Way::Pass));
        }
    });
    let mut conn = connect(&server);
    let make = |conn: &mut Conn, name: &str, agents: &[&str]| {
        let agents: Vec<String> =
            agents.iter().map(|it| format!("agent='{address}:{it}'")).collect();
        conn.query_drop(format!(
            "CREATE TABLE {name} type='distributed' {} agent_query_timeout='20000' agent_connect_timeout='20000'",
            agents.join(" ")
        ))
        .unwrap();
    };
    conn.query_drop(format!("CREATE TABLE t {TABLE}")).unwrap();
    make(&mut conn, "itself", &["itself", "itself", "itself"]);
    make(&mut conn, "one", &["other"]);
    make(&mut conn, "other", &["one"]);
    for table in ["itself", "one", "other"] {
        let begun = Instant::now();
        let refused = sets(&mut conn, &format!("SELECT COUNT(*) FROM {table}"));
        assert!(refused.contains("lies in itself"), "{table}: {refused}");
        assert!(begun.elapsed() < Duration::from_secs(15));
    }
    // Four behind the first, and no more.
    make(&mut conn, "d1", &["t"]);
    for depth in 2..=5 {
        make(&mut conn, &format!("d{depth}"), &[&format!("d{}", depth - 1)]);
    }
    assert_eq!(sets(&mut conn, "SELECT COUNT(*) FROM d4"), "0\n--\n");
    let refused = sets(&mut conn, "SELECT COUNT(*) FROM d5");
    assert!(refused.contains("no more may"), "{refused}");
}

#[test]
fn agents_need_administrators_and_a_user() {
    let (shard, mut there) = shard(0..4);
    there.query_drop(format!("CREATE TABLE secret {TABLE}")).unwrap();
    let address = shard.sql_address();
    let settings = format!(
        "[agents]\naddresses = [\"{address}\"]\nuser = \"root\"\nserves = [\"reader\"]\n\
         [[users]]\nname = \"owner\"\npassword = \"owner\"\n\
         [[users]]\nname = \"maker\"\npassword = \"maker\"\ndefine = [\"remora.*\"]\n\
         [[users]]\nname = \"reader\"\npassword = \"reader\"\nread = [\"remora.d\"]\n"
    );
    let server = TestServer::start_empty(&settings);
    let of = |user: &str| connect_as(server.sql_address(), user, user);
    let (mut owner, mut maker, mut reader) = (of("owner"), of("maker"), of("reader"));
    let declared = |verb: &str, name: &str, table: &str, option: &str| {
        let kind = if verb == "CREATE" { "type='distributed'" } else { "" };
        format!("{verb} TABLE {name} {kind} {option}='{address}:{table}'")
    };
    for option in ["agent", "agent_persistent"] {
        let denied = sets(&mut maker, &declared("CREATE", "mine", "secret", option));
        assert!(denied.contains("1227"), "{denied}");
    }
    owner.query_drop(declared("CREATE", "d", "t", "agent")).unwrap();
    let denied = sets(&mut maker, &declared("ALTER", "d", "secret", "agent"));
    assert!(denied.contains("1227"), "{denied}");
    // Who may read it reads it, and nothing beside it.
    for conn in [&mut reader, &mut maker] {
        assert_eq!(sets(conn, "SELECT COUNT(*) FROM d"), "4\n--\n");
    }
    owner.query_drop(declared("CREATE", "e", "secret", "agent")).unwrap();
    let denied = sets(&mut reader, "SELECT COUNT(*) FROM e");
    assert!(denied.contains("1142"), "{denied}");
    let asked = sets(
        &mut reader,
        r#"CALL REMORA_PART('{"open":{"version":4,"tables":["remora.e"],"trail":[],"is_partial":false}}')"#,
    );
    assert!(asked.contains("1142"), "{asked}");
    // How other servers answered is not told to those who may not do everything.
    assert_eq!(sets(&mut reader, "SHOW AGENT STATUS"), "--\n");
    assert!(sets(&mut owner, "SHOW AGENT STATUS").contains(" asked|"));
    // There is no account by default.
    let nobody = TestServer::start_empty(&format!("[agents]\naddresses = [\"{address}\"]\n"));
    let mut conn = connect(&nobody);
    conn.query_drop(declared("CREATE", "d", "t", "agent")).unwrap();
    let refused = sets(&mut conn, "SELECT COUNT(*) FROM d");
    assert!(refused.contains("agents.user"), "{refused}");
    // Who was not asked is not told of.
    assert_eq!(sets(&mut conn, "SHOW AGENT STATUS"), "--\n");
}

#[test]
fn local_part_counts_in_weights() {
    let (shard, _there) = shard(20..24);
    let server = head(&[shard.sql_address()], "");
    let mut conn = connect(&server);
    conn.query_drop(format!("CREATE TABLE here {TABLE}")).unwrap();
    let row = |id| format!("({id}, {id}, 1, NULL, 'often', 'often rare')");
    let rows: Vec<String> = (0..4).map(row).collect();
    conn.query_drop(format!("INSERT INTO here VALUES {}", rows.join(", "))).unwrap();
    conn.query_drop(format!(
        "CREATE TABLE d type='distributed' local='here' agent='{}:t' agent_query_timeout='20000' agent_connect_timeout='20000'",
        shard.sql_address()
    ))
    .unwrap();
    let mut weights = |options: &str| -> Vec<(u32, i64)> {
        conn.query(format!("{FOUND} OPTION {options}")).unwrap()
    };
    let plain = weights("index_weights=(here=1)");
    let weighed = weights("index_weights=(here=3)");
    let both = weights("index_weights=(here=3, d=2)");
    assert_eq!(plain.len(), 8);
    for ((plain, weighed), both) in plain.iter().zip(&weighed).zip(&both) {
        let times = if plain.0 < 20 { 3 } else { 1 };
        assert_eq!((weighed.0, weighed.1), (plain.0, plain.1 * times));
        assert_eq!((both.0, both.1), (plain.0, plain.1 * times * 2));
    }
}
