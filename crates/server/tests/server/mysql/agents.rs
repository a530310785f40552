//! Distributed tables over other servers, compared with one table of the same rows. If several servers have a key, the
//! last server's row counts. Servers that are silent, close the connection or send false answers cause errors.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    thread,
    time::{Duration, Instant},
};

use mysql::{Conn, OptsBuilder, Value, prelude::Queryable};

use crate::support::TestServer;

const WORDS: [&str; 8] = ["alpha", "beta", "gamma", "delta", "alphabet", "often", "rare", "often"];
const QUERIES: [&str; 10] = [
    "alpha",
    "alpha beta",
    "often | rare",
    "\"alpha beta\"",
    "\"often gamma\"~4",
    "\"alpha beta gamma delta\"/2",
    "often -beta",
    "alph* | ^rare",
    "@title often gamma NEAR/3 delta",
    "^alp* | @body *ta",
];
const RANKERS: [&str; 6] = [
    "proximity_bm25",
    "bm25",
    "wordcount",
    "matchany",
    "sph04",
    "expr('sum(lcs*user_weight)*1000+bm25+10000*bm25a(1.2,0.75)+doc_word_count+n')",
];
/// Queries on any table `{}`.
const PLAIN: [&str; 20] = [
    "SELECT n, COUNT(*) FROM {} GROUP BY n ORDER BY n LIMIT 2, 5",
    "SELECT s, COUNT(*) c FROM {} WHERE g <> 1 GROUP BY s ORDER BY c DESC, s ASC",
    "SELECT COUNT(*), n FROM {} GROUP BY n ORDER BY COUNT(*) DESC, n LIMIT 4",
    "SELECT id, n FROM {} WHERE g <> 1 ORDER BY n DESC LIMIT 3, 7",
    "SELECT id, title FROM {} WHERE n IN (3, 5) OR g = 2 ORDER BY id DESC LIMIT 4",
    "SELECT MIN(n), MAX(id), MAX(g) FROM {} WHERE s IS NULL",
    "SELECT COUNT(s) FROM {} WHERE n BETWEEN 2 AND 9",
    "SELECT id FROM {} WHERE s = 'odd' AND n < 4",
    "SELECT COUNT(*), SUM(n), MIN(id), MAX(s) FROM {}",
    "SELECT * FROM {} ORDER BY id LIMIT 500",
    "SELECT id, n FROM {} WHERE n > 5 AND s = 'odd' ORDER BY n, id LIMIT 7",
    "SELECT g, COUNT(*), AVG(n) FROM {} GROUP BY g ORDER BY g",
    "SELECT id, s, n FROM {} WHERE g < 3 ORDER BY s DESC, n, id LIMIT 2, 6",
    "SELECT * FROM {} WHERE id = 17",
    "SELECT id, title FROM {} WHERE id IN (3, 17, 40) OR title LIKE '%lph%' ORDER BY id",
    "SELECT x.id, y.n FROM {} AS x JOIN {} AS y ON x.id = y.n ORDER BY 1, 2",
    "SELECT DISTINCT s FROM {} ORDER BY s",
    "SELECT id FROM {} WHERE id NOT IN (SELECT id FROM {} WHERE g = 1) ORDER BY id LIMIT 9",
    "SELECT (SELECT MAX(id) FROM {}), id FROM {} LIMIT 3, 4",
    "DESCRIBE {}",
];
/// Queries on the rows that a keyword query `?` finds.
const FOUND: [&str; 18] = [
    "SELECT g, COUNT(*) FROM {} WHERE MATCH('?') GROUP BY g ORDER BY g DESC",
    "SELECT n, COUNT(*) c FROM {} WHERE MATCH('?') AND g > 0 GROUP BY n ORDER BY c DESC, n ASC LIMIT 4",
    "SELECT id, WEIGHT() FROM {} WHERE MATCH('?') AND n > 2 LIMIT 3, 5 OPTION ranker=%",
    "SELECT id, WEIGHT(), n FROM {} WHERE MATCH('?') ORDER BY WEIGHT() DESC, n DESC LIMIT 7 OPTION ranker=%",
    "SELECT id, n FROM {} WHERE MATCH('?') ORDER BY n DESC, id ASC LIMIT 6",
    "SELECT MAX(n), MIN(id) FROM {} WHERE MATCH('?')",
    "SELECT id, WEIGHT() FROM {} WHERE MATCH('?')",
    "SELECT id, WEIGHT() w, n FROM {} WHERE MATCH('?') AND n > 3 ORDER BY n DESC, id ASC LIMIT 3, 8",
    "SELECT id, WEIGHT() w, s FROM {} WHERE MATCH('?') ORDER BY w ASC, s DESC, id DESC LIMIT 2, 6 OPTION ranker=%",
    "SELECT id, s, n FROM {} WHERE MATCH('?') ORDER BY s ASC, n DESC, id ASC LIMIT 5",
    "SELECT g, COUNT(*), MAX(n), MAX(WEIGHT()) FROM {} WHERE MATCH('?') GROUP BY g ORDER BY g ASC",
    "SELECT id FROM {} WHERE MATCH('?') LIMIT 4 FACET g FACET s ORDER BY FACET() ASC",
    "SELECT id, g, COUNT(*) FROM {} WHERE MATCH('?') GROUP 2 BY g WITHIN GROUP ORDER BY n DESC, id ASC",
    "SELECT COUNT(*) FROM {} WHERE MATCH('?')",
    "SELECT id, WEIGHT(), SNIPPET(body, '?') FROM {} WHERE MATCH('?') LIMIT 3",
    "SELECT id, WEIGHT() FROM {} WHERE MATCH('?') LIMIT 9 OPTION field_weights=(title=7, body=2), ranker=%",
    "SELECT id, WEIGHT() FROM {} WHERE MATCH('?') OR n = 3 ORDER BY id LIMIT 20 OPTION ranker=%",
    "CALL KEYWORDS('alpha beta nothing', '{}', 1)",
];
pub(super) const TABLE: &str = "(id INT PRIMARY KEY, n INT NOT NULL, g INT NOT NULL, s VARCHAR(9), title VARCHAR(200), body TEXT) \
                     words='title,body' min_infix_len='2'";

/// A small random number generator.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn seeded() -> Self {
        let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            u64::from(now.subsec_nanos())
        });
        println!("REMORA_SEED={seed}");
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % end
    }

    pub(super) fn one<'c>(&mut self, of: &[&'c str]) -> &'c str {
        of[self.below(of.len() as u64) as usize]
    }
}

pub(super) fn connect(server: &TestServer) -> Conn {
    connect_as(server.sql_address(), "root", "")
}

pub(super) fn connect_as(address: SocketAddr, user: &str, password: &str) -> Conn {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some(address.ip().to_string()))
        .tcp_port(address.port())
        .user(Some(user))
        .pass(Some(password))
        .prefer_socket(false);
    let mut conn = Conn::new(options).unwrap();
    conn.query_drop("USE remora").unwrap();
    conn
}

/// A server that may query these addresses.
pub(super) fn head(addresses: &[SocketAddr], more: &str) -> TestServer {
    let addresses: Vec<String> = addresses.iter().map(|it| format!("\"{it}\"")).collect();
    let user = if more.contains("user = ") { "" } else { "user = \"root\"\n" };
    TestServer::start_empty(&format!(
        "[agents]\naddresses = [{}]\n{user}{more}",
        addresses.join(", ")
    ))
}

/// All result sets of a statement, or its error.
pub(super) fn sets(conn: &mut Conn, statement: &str) -> String {
    let mut told = String::new();
    let mut result = match conn.query_iter(statement) {
        Ok(result) => result,
        Err(error) => return format!("{error}"),
    };
    while let Some(set) = result.iter() {
        for row in set {
            match row {
                Ok(row) => {
                    let cells = row.unwrap().into_iter().map(|cell| match cell {
                        Value::NULL => "NULL".to_owned(),
                        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                        other => format!("{other:?}"),
                    });
                    told.push_str(&cells.collect::<Vec<_>>().join("|"));
                }
                Err(error) => told.push_str(&format!("{error}")),
            }
            told.push('\n');
        }
        told.push_str("--\n");
    }
    told
}

/// The result of a statement and of SHOW META after it, without times and without entries that depend on the plan.
fn results_with_meta(conn: &mut Conn, statement: &str) -> String {
    let answer = sets(conn, statement);
    let meta = sets(conn, "SHOW META");
    let is_of_found = |line: &&str| {
        ["total_found", "keyword", "docs", "hits", "warning"].iter().any(|it| line.starts_with(it))
    };
    let meta: Vec<&str> = meta.lines().filter(is_of_found).collect();
    match statement.starts_with("SELECT id, WEIGHT()") {
        true => format!("{answer}\n{}", meta.join("\n")),
        false => answer,
    }
}

fn compare(conn: &mut Conn, statement: &str, tables: &[&str]) {
    let mut answers = Vec::new();
    for table in tables {
        answers.push(results_with_meta(conn, &statement.replace("{}", table)));
    }
    let (whole, others) = answers.split_last().unwrap();
    for (other, table) in others.iter().zip(tables) {
        assert_eq!(other, whole, "{statement} of {table}");
    }
}

fn text(random: &mut Random, words: u64) -> String {
    let words: Vec<&str> = (0..random.below(words)).map(|_| random.one(&WORDS)).collect();
    words.join(" ")
}

/// Rows by their keys, as lists of values.
type Rows = BTreeMap<u64, String>;

fn change(conn: &mut Conn, random: &mut Random, table: &str, rows: &mut Rows) {
    for _ in 0..1 + random.below(3) {
        let from = random.below(120);
        if random.below(4) == 0 {
            let to = from + random.below(9);
            conn.query_drop(format!("DELETE FROM {table} WHERE id BETWEEN {from} AND {to}"))
                .unwrap();
            rows.retain(|id, _| !(from..=to).contains(id));
            continue;
        }
        let mut values = Vec::new();
        for _ in 0..1 + random.below(30) {
            let id = random.below(120);
            let s = random.one(&["'odd'", "'even'", "NULL"]);
            let (title, body) = (text(random, 5), text(random, 12));
            let row = format!(
                "({id}, {}, {}, {s}, '{title}', '{body}')",
                random.below(12),
                random.below(3)
            );
            rows.insert(id, row.clone());
            values.push(row);
        }
        conn.query_drop(format!("REPLACE INTO {table} VALUES {}", values.join(", "))).unwrap();
    }
}

/// Writes all rows of parts into one table.
fn fill_whole(conn: &mut Conn, parts: &[Rows]) {
    let mut all = Rows::new();
    parts.iter().for_each(|part| all.extend(part.clone()));
    conn.query_drop("DELETE FROM whole WHERE id >= 0").unwrap();
    let values: Vec<String> = all.into_values().collect();
    if !values.is_empty() {
        conn.query_drop(format!("INSERT INTO whole VALUES {}", values.join(", "))).unwrap();
    }
}

#[test]
fn tables_of_several_servers_are_one_table() {
    let mut random = Random::seeded();
    let shards: Vec<TestServer> = (0..2).map(|_| TestServer::start_empty("")).collect();
    // The third has a table of its own and one of the second.
    let middle = head(&[shards[1].sql_address()], "");
    let asked = [shards[0].sql_address(), middle.sql_address()];
    let first = head(&asked, "");
    let mut conns: Vec<Conn> = shards.iter().map(connect).collect();
    let (mut between, mut conn) = (connect(&middle), connect(&first));
    for conn in conns.iter_mut().chain([&mut between, &mut conn]) {
        conn.query_drop(format!("CREATE TABLE t {TABLE}")).unwrap();
    }
    conn.query_drop(format!("CREATE TABLE whole {TABLE}")).unwrap();
    let nested = format!(
        "CREATE TABLE n type='distributed' local='t' agent='{}:t' agent_query_timeout='20000' \
         agent_connect_timeout='20000'",
        shards[1].sql_address()
    );
    between.query_drop(nested).unwrap();
    let all = format!(
        "CREATE TABLE d type='distributed' local='t' agent='{}:t[conn=pconn]' agent='{}:n' \
         agent_query_timeout='20000' agent_connect_timeout='20000'",
        asked[0], asked[1]
    );
    conn.query_drop(all).unwrap();
    let shown = sets(&mut conn, "SHOW CREATE TABLE d");
    assert!(shown.contains(&format!("agent='{}:remora.t[conn=pconn]'", asked[0])), "{shown}");
    // In the order of the parts: here, the first shard, the middle, the second shard.
    let mut parts = vec![Rows::new(); 4];
    for _ in 0..3 {
        change(&mut conn, &mut random, "t", &mut parts[0]);
        change(&mut conns[0], &mut random, "t", &mut parts[1]);
        change(&mut between, &mut random, "t", &mut parts[2]);
        change(&mut conns[1], &mut random, "t", &mut parts[3]);
        fill_whole(&mut conn, &parts);
        for dialect in ["mysql", "sphinx"] {
            conn.query_drop(format!("SET sql_dialect = '{dialect}'")).unwrap();
            for statement in PLAIN {
                if dialect == "mysql" || !statement.contains(" JOIN ") {
                    compare(&mut conn, statement, &["d", "whole"]);
                }
            }
            for _ in 0..4 {
                let (query, ranker) = (random.one(&QUERIES), random.one(&RANKERS));
                for statement in FOUND {
                    let statement = statement.replace('?', query).replace('%', ranker);
                    compare(&mut conn, &statement, &["d", "whole"]);
                }
            }
        }
        conn.query_drop("SET sql_dialect = 'mysql'").unwrap();
    }
    // A join with a table that is here, and a statement that is prepared.
    compare(
        &mut conn,
        "SELECT x.id, t.n FROM {} x JOIN t ON x.id = t.id ORDER BY 1",
        &["d", "whole"],
    );
    let prepared = ["d", "whole"].map(|table| {
        let statement = format!("SELECT id, WEIGHT() FROM {table} WHERE MATCH(?) LIMIT 5");
        let rows: Vec<mysql::Row> = conn.exec(statement, ("often",)).unwrap();
        rows.into_iter().map(mysql::Row::unwrap).collect::<Vec<_>>()
    });
    assert_eq!(prepared[0], prepared[1]);
    let denied = sets(&mut conn, "INSERT INTO d VALUES (1, 1, 1, 'a', 'b', 'c')");
    assert!(denied.contains("1288"), "{denied}");
}

#[test]
fn servers_are_asked_for_the_first_rows_alone() {
    let shard = TestServer::start_empty("");
    let address = shard.sql_address();
    let (mut there, server) = (connect(&shard), head(&[address], ""));
    there.query_drop(format!("CREATE TABLE t {TABLE}")).unwrap();
    let rows: Vec<String> =
        (0..400).map(|id| format!("({id}, {}, {}, 'a', 'often', 'b')", id % 7, id % 3)).collect();
    there.query_drop(format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
    there.query_drop("CREATE TABLE m (id INT PRIMARY KEY, at TIMESTAMP, b TEXT)").unwrap();
    let mut conn = connect(&server);
    conn.query_drop(format!("CREATE TABLE d type='distributed' agent='{address}:t'")).unwrap();
    conn.query_drop(format!("CREATE TABLE moments type='distributed' agent='{address}:m'"))
        .unwrap();
    let first = "; of each server its first 9 rows";
    let found = "SELECT id, WEIGHT() w, s, n FROM d WHERE MATCH('often')";
    for (statement, is_first) in [
        (format!("{found} LIMIT 4, 5"), true),
        (format!("{found} ORDER BY n DESC, w ASC, s LIMIT 9"), true),
        ("SELECT id, title FROM d WHERE n > 2 ORDER BY s, id DESC LIMIT 9".to_owned(), true),
        (format!("{found} ORDER BY n + id LIMIT 9"), false),
        (format!("{found} ORDER BY n"), false),
        ("SELECT n, COUNT(*) c FROM d GROUP BY n ORDER BY n LIMIT 9".to_owned(), false),
        ("SELECT d.id FROM d JOIN d e ON e.id = d.n ORDER BY d.n LIMIT 9".to_owned(), false),
    ] {
        let plan = sets(&mut conn, &format!("EXPLAIN FORMAT=TREE {statement}"));
        assert_eq!(plan.contains(first), is_first, "{statement}\n{plan}");
        // The last step of EXPLAIN ANALYZE tells how many rows came.
        let run = sets(&mut conn, &format!("EXPLAIN ANALYZE {statement}"));
        let scan = run.lines().rfind(|line| line.contains("loops="));
        let is_short = scan.is_some_and(|line| line.ends_with("rows=9 loops=1)"));
        assert_eq!(is_short, is_first, "{statement}\n{run}");
    }
    // Moments are in another order than local times where those of an hour come twice. TEXT is not indexed.
    for (zone, column, is_first) in
        [("+02:00", "at", true), ("Europe/Berlin", "at", false), ("+02:00", "b", false)]
    {
        conn.query_drop(format!("SET time_zone = '{zone}'")).unwrap();
        let explained =
            format!("EXPLAIN FORMAT=TREE SELECT id FROM moments ORDER BY {column} LIMIT 9");
        let plan = sets(&mut conn, &explained);
        assert_eq!(plan.contains(first), is_first, "{zone} {column}\n{plan}");
    }
}

/// A server that sends no answer or an invalid one, until it is dropped.
fn fake(answer: Option<&'static [u8]>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || match answer {
                Some(bytes) => {
                    let _ = stream.write_all(bytes);
                }
                // Until the other side leaves.
                None => {
                    let mut bytes = [0];
                    let _ = stream.read(&mut bytes);
                }
            });
        }
    });
    address
}

#[test]
fn wrong_agent_answers_are_statement_errors() {
    let shard = TestServer::start_empty("");
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let (silent, closing) = (fake(None), fake(Some(b"")));
    let lying = fake(Some(b"\xff\xff\xff\x00\x0alies, lies, lies"));
    let addresses = [shard.sql_address(), closed, silent, closing, lying];
    let server = head(&addresses, "");
    let (mut there, mut conn) = (connect(&shard), connect(&server));
    there.query_drop(format!("CREATE TABLE t {TABLE}")).unwrap();
    there.query_drop("INSERT INTO t VALUES (1, 1, 1, NULL, 'often', 'often rare')").unwrap();
    let live = shard.sql_address();
    for dead in [closed, silent, closing, lying] {
        let made = format!(
            "CREATE TABLE d type='distributed' agent='{live}:t' agent='{dead}:t' agent_query_timeout='1500' \
             agent_connect_timeout='1500'"
        );
        conn.query_drop(made).unwrap();
        let begun = Instant::now();
        let failed = sets(&mut conn, "SELECT id FROM d WHERE MATCH('often')");
        assert!(begun.elapsed() < Duration::from_secs(15), "{dead}");
        assert!(failed.contains("1430") && failed.contains(&dead.to_string()), "{failed}");
        // The rest, and a warning.
        let partial = "SELECT id, WEIGHT() FROM d WHERE MATCH('often') OPTION partial=1";
        let rest = sets(&mut conn, partial);
        assert!(rest.starts_with("1|"), "{rest}");
        let warned = sets(&mut conn, "SHOW WARNINGS");
        assert!(warned.contains("is left out") && warned.contains(&dead.to_string()), "{warned}");
        // A mirror that answers does for one that does not.
        let mirrored = format!(
            "ALTER TABLE d agent='{dead}:t|{live}:t' agent_query_timeout='1500' agent_connect_timeout='1500'"
        );
        conn.query_drop(mirrored).unwrap();
        for _ in 0..4 {
            assert_eq!(sets(&mut conn, "SELECT id FROM d WHERE MATCH('often')"), "1\n--\n");
        }
        conn.query_drop("DROP TABLE d").unwrap();
    }
    let status = sets(&mut conn, "SHOW AGENT STATUS");
    assert!(status.contains(&format!("{silent} failed|")), "{status}");
    // The server goes on.
    assert_eq!(sets(&mut conn, "SELECT 1"), "1\n--\n");
}

#[test]
fn waits_for_a_silent_agent_end_by_kill_and_timeout() {
    let silent = fake(None);
    let server = head(&[silent], "");
    let (mut conn, mut other) = (connect(&server), connect(&server));
    let made = format!(
        "CREATE TABLE d type='distributed' agent='{silent}:t' agent_connect_timeout='60000'"
    );
    conn.query_drop(made).unwrap();
    let begun = Instant::now();
    let id = conn.connection_id();
    let waiting = thread::spawn(move || sets(&mut conn, "SELECT id FROM d"));
    thread::sleep(Duration::from_millis(500));
    other.query_drop(format!("KILL QUERY {id}")).unwrap();
    let ended = waiting.join().unwrap();
    assert!(ended.contains("1317"), "{ended}");
    let late = sets(&mut other, "SELECT /*+ MAX_EXECUTION_TIME(300) */ id FROM d");
    assert!(late.contains("3024"), "{late}");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn agents_are_limited_to_configured_hosts_and_users() {
    let users = "[agents]\nserves = [\"reader\"]\n\
                 [[users]]\nname = \"reader\"\npassword = \"secret\"\nread = [\"remora.t\"]\n\
                 [[users]]\nname = \"owner\"\npassword = \"owner\"\n";
    let shard = TestServer::start_empty(users);
    let mut there = connect_as(shard.sql_address(), "owner", "owner");
    there.query_drop(format!("CREATE TABLE t {TABLE}")).unwrap();
    there.query_drop(format!("CREATE TABLE hidden {TABLE}")).unwrap();
    there.query_drop("INSERT INTO t VALUES (1, 1, 1, NULL, 'often', 'often rare')").unwrap();
    let address = shard.sql_address();
    let of = |server: &TestServer, table: &str| {
        let mut conn = connect(server);
        let made = format!(
            "CREATE TABLE d_{table} type='distributed' agent='{address}:{table}' agent_query_timeout='20000' \
             agent_connect_timeout='20000'"
        );
        conn.query_drop(made).unwrap();
        sets(&mut conn, &format!("SELECT id FROM d_{table}"))
    };
    let right = head(&[address], "user = \"reader\"\npassword = \"secret\"\n");
    assert_eq!(of(&right, "t"), "1\n--\n");
    let denied = of(&right, "hidden");
    assert!(denied.contains("1430") && denied.contains("denied"), "{denied}");
    let missing = of(&right, "missing");
    assert!(missing.contains("1430"), "{missing}");
    let wrong = of(&head(&[address], "user = \"reader\"\npassword = \"wrong\"\n"), "t");
    assert!(wrong.contains("1430"), "{wrong}");
    let unnamed = of(&TestServer::start_empty(""), "t");
    assert!(unnamed.contains("agents.addresses"), "{unnamed}");
    // Other accounts are not those of other servers, whatever they may do.
    let open = r#"CALL REMORA_PART('{"open":{"version":4,"tables":["remora.t"],"trail":[],"is_partial":false}}')"#;
    let denied = sets(&mut there, open);
    assert!(denied.contains("1227") && denied.contains("agents.serves"), "{denied}");
    let mut there = connect_as(address, "reader", "secret");
    assert!(sets(&mut there, open).contains(r#""rows":1"#));
    // What is asked of a part is not asked otherwise.
    for request in ["{}", "[]", r#"{"next":{"cursor":1}}"#, r#"{"keys":{"from":"0g"}}"#] {
        let refused = sets(&mut there, &format!("CALL REMORA_PART('{request}')"));
        assert!(refused.contains("ERROR") && !refused.contains("1227"), "{request}: {refused}");
    }
}
