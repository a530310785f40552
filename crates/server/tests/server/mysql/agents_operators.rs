//! Statements over other servers that are answered without a plan of DataFusion: what the servers are asked, and how
//! often; failures, ends and new definitions.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

use mysql::{Conn, prelude::Queryable};

use super::{
    agents::{connect, head, sets},
    agents_faults::{Proxy, Way, holds, shard},
};

fn distributed(agents: &[SocketAddr]) -> String {
    let agents: Vec<String> = agents.iter().map(|it| format!("agent='{it}:t'")).collect();
    format!(
        "CREATE TABLE d type='distributed' {} agent_query_timeout='20000' agent_connect_timeout='20000'",
        agents.join(" ")
    )
}

#[test]
fn servers_are_asked_for_pages_counts_and_values() {
    let (shard, _there) = shard(0..40);
    let proxy = Proxy::new(shard.sql_address(), None);
    let server = head(&[proxy.address], "");
    let mut conn = connect(&server);
    conn.query_drop(distributed(&[proxy.address])).unwrap();
    const NAMES: [&str; 6] = ["open", "statistics", "count", "facet", "scan", "next"];
    let mut asked = |statement: &str| {
        let answer = sets(&mut conn, statement);
        let bytes = std::mem::take(&mut *proxy.asked.lock().unwrap());
        let count = |name: &&str| {
            let name = format!("{{\"{name}\"");
            bytes.windows(name.len()).filter(|window| *window == name.as_bytes()).count()
        };
        let every = br#""best":null"#;
        let is_every = bytes.windows(every.len()).any(|window| window == every);
        (answer, NAMES.iter().map(count).collect::<Vec<_>>(), is_every)
    };
    for (statement, answer, counts) in [
        (
            "SELECT id, n FROM d WHERE MATCH('often') AND n > 3 ORDER BY n DESC LIMIT 2",
            "39|39\n38|38\n--\n",
            [1, 1, 0, 0, 1, 0],
        ),
        ("SELECT id FROM d WHERE MATCH('often') LIMIT 30, 2", "30\n31\n--\n", [1, 1, 0, 0, 1, 0]),
        ("SELECT id FROM d WHERE n IN (7, 9)", "7\n9\n--\n", [1, 0, 0, 0, 1, 0]),
        ("SELECT n FROM d WHERE id = 17", "17\n--\n", [1, 0, 0, 0, 1, 0]),
        ("SELECT MAX(n), MIN(id) FROM d WHERE id > 2", "39|3\n--\n", [1, 0, 0, 0, 2, 0]),
        ("SELECT COUNT(*) FROM d WHERE MATCH('rare')", "40\n--\n", [1, 1, 1, 0, 0, 0]),
        ("SELECT COUNT(*) FROM d", "40\n--\n", [1, 0, 0, 0, 0, 0]),
        (
            "SELECT g, COUNT(*) FROM d WHERE MATCH('often') GROUP BY g",
            "1|40\n--\n",
            [1, 1, 0, 1, 0, 0],
        ),
        ("SELECT n FROM d GROUP BY n ORDER BY n LIMIT 2", "0\n1\n--\n", [1, 0, 0, 1, 0, 0]),
    ] {
        // Once before the shape is known, and once with its plan.
        for _ in 0..2 {
            let (given, asked, is_every) = asked(statement);
            assert_eq!((given.as_str(), &asked[..]), (answer, &counts[..]), "{statement}");
            assert!(!is_every, "{statement}");
        }
    }
}

#[test]
fn show_meta_is_of_pages_with_keywords() {
    let (shard, _there) = shard(0..40);
    let proxy = Proxy::new(shard.sql_address(), None);
    let server = head(&[proxy.address], "");
    let mut conn = connect(&server);
    conn.query_drop(distributed(&[proxy.address])).unwrap();
    let plain = "SELECT id FROM d WHERE n > 3 ORDER BY n LIMIT 2";
    let without_limit = "SELECT id FROM d WHERE n IN (4, 5)";
    for statement in [plain, without_limit] {
        assert_eq!(sets(&mut conn, statement), "4\n5\n--\n");
        assert_eq!(proxy.count("open"), 1, "{statement}");
        assert_eq!(sets(&mut conn, "SHOW META"), "--\n", "{statement}");
        assert_eq!(proxy.count("open"), 0, "{statement}");
    }
    assert_eq!(sets(&mut conn, "SELECT id FROM d WHERE MATCH('often') LIMIT 3"), "0\n1\n2\n--\n");
    let meta = sets(&mut conn, "SHOW META");
    assert!(meta.contains("total_found|40") && meta.contains("docs[0]|40"), "{meta}");
    for statement in [plain, without_limit] {
        assert_eq!(sets(&mut conn, statement), "4\n5\n--\n");
        assert_eq!(sets(&mut conn, "SHOW META"), meta, "{statement}");
    }
}

#[test]
fn pages_that_are_too_large_are_tried_once() {
    let (shard, _there) = shard(0..10_050);
    let proxy = Proxy::new(shard.sql_address(), None);
    let server = head(&[proxy.address], "");
    let mut conn = connect(&server);
    conn.query_drop(distributed(&[proxy.address])).unwrap();
    // How often first rows alone are asked for: by a page, and not by a plan without LIMIT.
    let mut tried = |statement: &str| {
        let rows = sets(&mut conn, statement).lines().count() - 1;
        let bytes = std::mem::take(&mut *proxy.asked.lock().unwrap());
        let first = br#""best":{"#;
        (rows, bytes.windows(first.len()).filter(|window| *window == &first[..]).count())
    };
    for (statement, rows) in [
        ("SELECT id FROM d WHERE n >= 50", 10_000),
        ("SELECT id FROM d WHERE n >= 49", 10_001),
        ("SELECT id, WEIGHT() FROM d WHERE MATCH('often')", 10_050),
    ] {
        for _ in 0..2 {
            assert_eq!(tried(statement), (rows, 1), "{statement}");
        }
    }
}

#[test]
fn pages_and_facets_without_a_server_warn() {
    let (first, _first) = shard(0..20);
    let (second, _second) = shard(20..50);
    let proxy = Proxy::new(second.sql_address(), None);
    let server = head(&[first.sql_address(), proxy.address], "");
    let mut conn = connect(&server);
    conn.query_drop(distributed(&[first.sql_address(), proxy.address])).unwrap();
    let statements = [
        ("SELECT id, WEIGHT() FROM d WHERE MATCH('often') LIMIT 500", 20),
        ("SELECT COUNT(*) FROM d WHERE MATCH('often')", 1),
        ("SELECT n, COUNT(*) FROM d WHERE MATCH('often') GROUP BY n", 20),
    ];
    for round in 0..2 {
        proxy.set(|bytes| if holds(bytes, "open") { Way::Close } else { Way::Pass });
        for (statement, rows) in statements {
            let failed = sets(&mut conn, statement);
            assert!(failed.contains("1430"), "{round} {statement}: {failed}");
            let answer = sets(&mut conn, &format!("{statement} OPTION partial=1"));
            assert_eq!(answer.lines().count(), rows + 1, "{round} {statement}: {answer}");
            let warned = sets(&mut conn, "SHOW WARNINGS");
            assert_eq!(warned.matches("is left out").count(), 1, "{round} {statement}: {warned}");
            let meta = sets(&mut conn, "SHOW META");
            let is_of_first = meta.contains("docs[0]|20") && meta.contains("total_found|20");
            assert!(is_of_first, "{round} {statement}: {meta}");
        }
        // One that was lost for some time is asked again.
        proxy.set(|_| Way::Pass);
        for (statement, rows) in statements {
            let whole = if rows == 1 { 1 } else { 50 };
            let answer = sets(&mut conn, &format!("{statement} OPTION partial=1"));
            assert_eq!(answer.lines().count(), whole + 1, "{round} {statement}: {answer}");
            assert_eq!(sets(&mut conn, "SHOW WARNINGS"), "--\n");
        }
        let meta = sets(&mut conn, "SHOW META");
        assert!(meta.contains("total_found|50"), "{meta}");
        // Behind the first question a server that is lost is an error.
        for name in ["statistics", "scan"] {
            proxy.set(move |bytes| if holds(bytes, name) { Way::Close } else { Way::Pass });
            let failed = sets(&mut conn, &format!("{} OPTION partial=1", statements[0].0));
            assert!(failed.contains("1430"), "{name}: {failed}");
        }
    }
}

#[test]
fn waits_for_pages_and_values_end() {
    let (shard, mut there) = shard(0..40);
    let proxy = Proxy::new(shard.sql_address(), None);
    let server = head(&[proxy.address], "");
    let (mut conn, mut other) = (connect(&server), connect(&server));
    conn.query_drop(distributed(&[proxy.address])).unwrap();
    for (request, statement) in [
        ("open", "SELECT COUNT(*) FROM d"),
        ("statistics", "SELECT id, WEIGHT() FROM d WHERE MATCH('often') LIMIT 5"),
        ("scan", "SELECT id FROM d WHERE n > 3 ORDER BY n LIMIT 5"),
        ("count", "SELECT COUNT(*) FROM d WHERE n > 3"),
        ("facet", "SELECT g, COUNT(*) FROM d GROUP BY g"),
    ] {
        proxy.set(move |bytes| if holds(bytes, request) { Way::Lose } else { Way::Pass });
        let id = conn.connection_id();
        let killed = thread::scope(|scope| {
            let waiting = scope.spawn(|| sets(&mut conn, statement));
            let begun = Instant::now();
            while proxy.count(request) == 0 {
                assert!(begun.elapsed() < Duration::from_secs(10), "{request} is not asked");
                thread::sleep(Duration::from_millis(10));
            }
            other.query_drop(format!("KILL QUERY {id}")).unwrap();
            waiting.join().unwrap()
        });
        assert!(killed.contains("1317"), "{request}: {killed}");
        conn.query_drop("SET max_execution_time = 300").unwrap();
        let late = sets(&mut conn, statement);
        assert!(late.contains("3024"), "{request}: {late}");
        conn.query_drop("SET max_execution_time = 0").unwrap();
        let begun = Instant::now();
        let impatient = match statement.contains("MATCH") {
            true => format!("{statement} OPTION agent_query_timeout=300"),
            false => continue,
        };
        let late = sets(&mut conn, &impatient);
        assert!(late.contains("1430") && begun.elapsed() < Duration::from_secs(15), "{late}");
    }
    proxy.set(|_| Way::Pass);
    assert_eq!(sets(&mut conn, "SELECT COUNT(*) FROM d"), "40\n--\n");
    let processes = sets(&mut there, "SHOW FULL PROCESSLIST");
    assert!(processes.lines().count() < 30, "{processes}");
}

#[test]
fn plans_follow_definitions_of_other_servers() {
    let (shard, mut there) = shard(0..4);
    let server = head(&[shard.sql_address()], "");
    let mut conn = connect(&server);
    conn.query_drop(distributed(&[shard.sql_address()])).unwrap();
    let asked = |conn: &mut Conn| sets(conn, "SELECT * FROM d WHERE id = 1 LIMIT 1");
    assert_eq!(asked(&mut conn), "1|1|1|NULL|often|often rare\n--\n");
    assert_eq!(asked(&mut conn), "1|1|1|NULL|often|often rare\n--\n");
    let prepared = conn.prep("SELECT id, n FROM d WHERE n > ? ORDER BY n DESC LIMIT 2").unwrap();
    let run = |conn: &mut Conn, least: u32| -> Vec<(u32, u32)> {
        conn.exec(&prepared, (least,)).unwrap()
    };
    assert_eq!(run(&mut conn, 0), [(3, 3), (2, 2)]);
    there.query_drop("ALTER TABLE t ADD COLUMN z INT NOT NULL DEFAULT 7").unwrap();
    assert_eq!(asked(&mut conn), "1|1|1|NULL|often|often rare|7\n--\n");
    assert_eq!(run(&mut conn, 2), [(3, 3)]);
    // A table of this server takes the name, and gives it back.
    conn.query_drop("DROP TABLE d").unwrap();
    conn.query_drop("CREATE TABLE d (id INT PRIMARY KEY, n INT NOT NULL)").unwrap();
    conn.query_drop("INSERT INTO d VALUES (1, 5)").unwrap();
    assert_eq!(asked(&mut conn), "1|5\n--\n");
    assert_eq!(run(&mut conn, 0), [(1, 5)]);
    conn.query_drop("DROP TABLE d").unwrap();
    conn.query_drop(distributed(&[shard.sql_address()])).unwrap();
    assert_eq!(asked(&mut conn), "1|1|1|NULL|often|often rare|7\n--\n");
    assert_eq!(run(&mut conn, 2), [(3, 3)]);
    // So does a temporary one.
    conn.query_drop("CREATE TEMPORARY TABLE d (id INT PRIMARY KEY, n INT)").unwrap();
    assert_eq!(asked(&mut conn), "--\n");
}
