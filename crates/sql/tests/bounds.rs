//! Every statement is bounded: wide statements cost time in proportion to their length or are refused; a statement ends
//! when its client is gone; its memory and disk space are counted and released.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    path::Path,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use remora_sql::Session;
use support::{Server, rows, run};

/// The most time that work goes on after its end; generous, for a busy machine.
const SOON: Duration = Duration::from_secs(5);
/// An endless join whose rows are grouped, so that it returns nothing before its end.
const ENDLESS: &str = "SELECT a.i, b.i, COUNT(*) FROM n a, n b, n c, n d, n e GROUP BY 1, 2";

/// Runs with stacks as large as the server's connections have, because the frames of this build are large.
fn on_threads(test: impl Future<Output = ()> + Send + 'static) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(2).thread_stack_size(64 << 20).enable_all();
    let runtime = builder.build().unwrap();
    runtime.block_on(runtime.spawn(test)).unwrap();
}

/// A server with a table of a thousand numbers.
async fn server() -> (Server, Session) {
    let server = Server::new();
    let mut session = server.session();
    make_numbers(&mut session).await;
    (server, session)
}

async fn make_numbers(session: &mut Session) {
    for statement in [
        "CREATE TABLE n (i INT PRIMARY KEY, s VARCHAR(100))",
        "INSERT INTO n WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < \
         1000) SELECT i, REPEAT('x', 100) FROM r",
    ] {
        run(session, statement).await.unwrap();
    }
}

fn nested(times: usize, inner: &str, level: impl Fn(String) -> String) -> String {
    (0..times).fold(inner.to_owned(), |inner, _| level(inner))
}

fn listed(times: usize, item: impl Fn(usize) -> String) -> String {
    (0..times).map(item).collect::<Vec<_>>().join(", ")
}

fn is_error(got: &str, number: &str) -> bool {
    got.strip_prefix(number).is_some_and(|rest| rest.starts_with(' '))
}

/// Waits until nothing runs and no memory is reserved.
async fn is_quiet(server: &Server) {
    let until = Instant::now() + SOON;
    loop {
        let usage = server.instance.usage();
        if usage.running == 0 && usage.memory_bytes == 0 && usage.spilled_bytes == 0 {
            return;
        }
        assert!(Instant::now() < until, "{usage:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A form that did not match was parsed again as another one at each nesting level: 30 levels took an hour.
#[test]
fn a_nest_is_read_once() {
    on_threads(async {
        let (_server, mut session) = server().await;
        let levels: [fn(String) -> String; 10] = [
            |inner| format!("SUBSTRING({inner}, 1)"),
            |inner| format!("CAST({inner} AS CHAR)"),
            |inner| format!("CONVERT({inner}, CHAR)"),
            |inner| format!("CONVERT({inner} USING utf8mb4)"),
            |inner| format!("TRIM({inner})"),
            |inner| format!("POSITION({inner} IN 'a')"),
            |inner| format!("CEIL({inner})"),
            |inner| format!("CASE WHEN {inner} THEN 1 END"),
            |inner| format!("(1 IN ((SELECT {inner})))"),
            |inner| format!("CURRENT_TIMESTAMP({inner})"),
        ];
        for level in levels {
            for (times, inner) in [(60, "a b c"), (60, "')"), (300, "1"), (300, "a b c")] {
                let text = format!("SELECT {}", nested(times, inner, level));
                let began = Instant::now();
                let got = rows(&mut session, &text).await;
                let is_refused = ["1064", "1038", "1473"].iter().any(|code| is_error(&got, code));
                assert!(is_refused, "{text}: {got}");
                assert!(began.elapsed() < SOON, "{:?}: {text}", began.elapsed());
            }
        }
        let from = |times| nested(times, "n x y", |inner| format!("((SELECT * FROM {inner}))"));
        for times in [5, 30, 90] {
            let began = Instant::now();
            let got = rows(&mut session, &format!("SELECT * FROM {}", from(times))).await;
            assert!(is_error(&got, "1064") || is_error(&got, "1038"), "{got}");
            assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        }
        let cast = nested(100, "'a'", |inner| format!("CAST({inner} AS CHAR)"));
        assert_eq!(rows(&mut session, &format!("SELECT {cast}")).await, "a");
        let named = "SELECT ceil, `cast` FROM (SELECT 1 AS ceil, 2 AS `cast`) t";
        assert_eq!(rows(&mut session, named).await, "1|2");
    });
}

/// The cost of a shape at one size and at twice the size, in milliseconds.
async fn costs(session: &mut Session, shape: fn(usize) -> String, size: usize) -> (f64, f64) {
    let mut cost = [f64::MAX; 2];
    // The best of several runs, because other programs use the machine.
    for _ in 0..8 {
        for (best, size) in cost.iter_mut().zip([size, size * 2]) {
            let text = shape(size);
            let began = Instant::now();
            let got = rows(session, &text).await;
            *best = best.min(began.elapsed().as_secs_f64() * 1_000.0);
            let begins = got.chars().take(40).collect::<String>();
            assert!(!is_error(&got, "1105") && !is_error(&got, "1064"), "{begins}");
        }
    }
    (cost[0], cost[1])
}

/// A name, a size, and a function that writes the text for a size.
type Shape = (&'static str, usize, fn(usize) -> String);

#[test]
fn cost_of_what_is_wide_grows_as_the_text_does() {
    on_threads(async {
        let (_server, mut session) = server().await;
        let shapes: [Shape; 5] = [
            ("literals", 400, |size| format!("SELECT {}", listed(size, |at| at.to_string()))),
            ("stars", 200, |size| {
                format!("SELECT {} FROM n LIMIT 1", listed(size, |_| "n.*".into()))
            }),
            ("IN", 1_000, |size| {
                format!("SELECT i FROM n WHERE i IN ({})", listed(size, |at| format!("{at} + 0")))
            }),
            ("arguments", 1_000, |size| {
                format!("SELECT CONCAT({}) FROM n LIMIT 1", listed(size, |_| "i".into()))
            }),
            ("branches", 200, |size| {
                let branches = (0..size).map(|at| format!("WHEN {at} THEN {at} "));
                format!("SELECT CASE i {}END FROM n LIMIT 1", branches.collect::<String>())
            }),
        ];
        for (name, size, shape) in shapes {
            let (one, two) = costs(&mut session, shape, size).await;
            // The text is twice as long: quadratic cost would be 4 times as high, cubic cost 8 times.
            assert!(two < one * 3.5 + 20.0, "{name}: {one:.1} ms, twice as long {two:.1} ms");
        }
    });
}

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[test]
fn what_would_be_too_much_is_refused_before() {
    on_threads(async {
        let (server, mut session) = server().await;
        let wide = |columns| format!("SELECT {}", listed(columns, |at| at.to_string()));
        let from = format!("{} FROM n", wide(4_097));
        assert!(is_error(&rows(&mut session, &from).await, "1117"));
        assert!(is_error(&rows(&mut session, &wide(65_536)).await, "1117"));
        // Without a table a row is made in parts.
        let row = rows(&mut session, &wide(4_097)).await;
        assert_eq!(row.split('|').map(str::to_owned).collect::<Vec<_>>(), numbers(4_097));
        let quotes = format!("SELECT '''', '''''', {}", listed(4_095, |at| at.to_string()));
        let row = rows(&mut session, &quotes).await;
        assert!(row.starts_with("'|''|0|"), "{}", &row[..20]);
        // All queries of a statement read one moment; its parts do not.
        let queries = format!("{}, (SELECT COUNT(*) FROM n)", wide(4_096));
        assert!(is_error(&rows(&mut session, &queries).await, "1117"));
        let sleeps =
            listed(4_160, |at| if at % 64 == 0 { "SLEEP(0.2)".into() } else { at.to_string() });
        run(&mut session, "SET max_execution_time = 500").await.unwrap();
        assert!(is_error(&rows(&mut session, &format!("SELECT {sleeps}")).await, "3024"));
        run(&mut session, "SET max_execution_time = 0").await.unwrap();
        let star = format!("SELECT {} FROM n", listed(2_049, |_| "n.*".into()));
        assert!(is_error(&rows(&mut session, &star).await, "1117"));
        let parameters = format!("SELECT {}", listed(65_535, |_| "?".into()));
        let prepared = session.prepare(parameters.as_bytes()).await.unwrap();
        assert_eq!(prepared.columns.len(), 65_535);
        let named = format!("SELECT {}", listed(4_097, |at| format!("{at} + 1 AS c{at}, {at}")));
        let prepared = session.prepare(named.as_bytes()).await.unwrap();
        let names = ["c4095", "4095", "c4096", "4096"];
        let last = prepared.columns.iter().skip(8_190).map(|column| column.name.as_str());
        assert_eq!(last.collect::<Vec<_>>(), names);
        let values = format!("VALUES {}", listed(4_097, |at| format!("ROW({at})")));
        assert!(is_error(&rows(&mut session, &values).await, "1038"));
        for step in [
            "SELECT v FROM a# UNION ALL SELECT v FROM a#",
            "SELECT x.v FROM a# x JOIN a# y ON x.v = y.v",
            "SELECT v FROM a# WHERE v IN (SELECT v FROM a#)",
        ] {
            let chain = |levels: usize| {
                let each = (1..=levels)
                    .map(|at| format!(", a{at} AS ({})", step.replace('#', &(at - 1).to_string())));
                let each = each.collect::<String>();
                format!("WITH a0 AS (SELECT 1 AS v){each} SELECT COUNT(*) FROM a{levels}")
            };
            assert!(!is_error(&rows(&mut session, &chain(3)).await, "1038"), "{step}");
            for levels in [12, 20, 100] {
                let got = rows(&mut session, &chain(levels)).await;
                assert!(is_error(&got, "1038"), "{levels} of {step}: {got}");
            }
        }
        is_quiet(&server).await;
    });
}

#[test]
fn what_would_be_nested_too_deep_is_refused_before() {
    on_threads(async {
        let (server, mut session) = server().await;
        // Rows beside queries are said twice, again and again.
        let within = |inner: &str, levels| {
            let row = |row: String, _| format!("(({row}, 2) IN (SELECT 1, 2))");
            format!("SELECT {}", (0..levels).fold(inner.to_owned(), row))
        };
        assert_eq!(rows(&mut session, &within("1", 3)).await, "1");
        let sum = format!("1{}", " + 0".repeat(300));
        assert!(is_error(&rows(&mut session, &within(&sum, 4)).await, "1038"));
        assert!(is_error(&rows(&mut session, &within("1", 40)).await, "1473"));
        // Conditions that no index takes stay a chain, which a plan walks down.
        let chain = |count| {
            let conditions =
                (0..count).map(|at| format!(" AND ABS(i) <> -{at} AND NOT i <=> -{at}"));
            format!("SELECT COUNT(*) FROM n WHERE 1{}", conditions.collect::<String>())
        };
        assert_eq!(rows(&mut session, &chain(1_000)).await, "1000");
        assert!(is_error(&rows(&mut session, &chain(1_025)).await, "1038"));
        assert!(is_error(&rows(&mut session, "SELECT 1 = ALL (SELECT 1) + 1").await, "1235"));
        // Each doubles the text, up to what a packet holds.
        let doubled = |times| {
            format!("SELECT LENGTH({})", nested(times, "'a'", |text| format!("HEX({text})")))
        };
        assert_eq!(rows(&mut session, &doubled(10)).await, "1024");
        assert_eq!(rows(&mut session, &doubled(28)).await, "NULL");
        let all = format!("SELECT 1{}", " = ALL (SELECT 1)".repeat(64));
        assert_eq!(rows(&mut session, &all).await, "1");
        // More than a quarter of what a statement may have.
        let repeated = rows(&mut session, "SELECT REPEAT('a', 1000000000) IS NULL").await;
        assert_eq!(repeated, "1");
        is_quiet(&server).await;
    });
}

/// Memory for a document's rows is counted while they are built, one document at a time.
#[test]
fn documents_that_become_rows_are_counted() {
    on_threads(async {
        let (server, mut session) = server().await;
        for statement in [
            "CREATE TABLE d (id INT PRIMARY KEY, doc LONGTEXT)",
            "INSERT INTO d SELECT i, CONCAT('[', REPEAT('1,', 9999), '1]') FROM n WHERE i <= 120",
        ] {
            run(&mut session, statement).await.unwrap();
        }
        let counted = "SELECT COUNT(*), SUM(j.v) FROM d, JSON_TABLE(d.doc, '$[*]' COLUMNS (v INT PATH '$')) j";
        assert_eq!(rows(&mut session, counted).await, "1200000|1200000");
        is_quiet(&server).await;
        let large = "INSERT INTO d VALUES (0, CONCAT('[', REPEAT('1,', 2000000), '1]'))";
        run(&mut session, large).await.unwrap();
        let got = rows(&mut session, counted).await;
        assert!(is_error(&got, "1038"), "{got}");
        is_quiet(&server).await;
        assert_eq!(
            rows(&mut session, &format!("{counted} WHERE d.id > 0")).await,
            "1200000|1200000"
        );
    });
}

/// The client gets its error at once; the work must stop too.
#[test]
fn what_nobody_waits_for_ends() {
    on_threads(async {
        let (server, mut other) = server().await;
        let endless = [
            ENDLESS,
            "SELECT SUM(a.i + b.i) FROM n a, n b, n c, n d, n e",
            "SELECT COUNT(*) FROM n a JOIN n b JOIN n c ON a.i + b.i + c.i < 0",
            "SELECT a.i FROM n a, n b, n c, n d, n e ORDER BY a.s DESC, b.i, c.i LIMIT 1",
            "SELECT SUM(j.v) FROM n a JOIN n b JOIN n c, JSON_TABLE(CONCAT('[', a.i, ',', b.i, ']'), '$[*]' \
             COLUMNS (v INT PATH '$')) j",
        ];
        for text in endless {
            let mut session = server.session();
            let interrupter = session.interrupter();
            let task = tokio::spawn(async move { rows(&mut session, text).await });
            tokio::time::sleep(Duration::from_millis(300)).await;
            // Other statements still make progress.
            let began = Instant::now();
            let short = "SELECT SUM(x.a) FROM (SELECT 1 AS a UNION SELECT 2) x";
            assert_eq!(rows(&mut other, short).await, "3");
            assert!(began.elapsed() < SOON, "{text}: others waited {:?}", began.elapsed());
            interrupter.store(true, Relaxed);
            let got = task.await.unwrap();
            assert!(is_error(&got, "1317"), "{text}: {got}");
            is_quiet(&server).await;
            // The client disconnects: its connection's task is dropped.
            let mut session = server.session();
            let task = tokio::spawn(async move { rows(&mut session, text).await });
            tokio::time::sleep(Duration::from_millis(300)).await;
            task.abort();
            is_quiet(&server).await;
            let mut session = server.session();
            run(&mut session, "SET max_execution_time = 200").await.unwrap();
            let got = rows(&mut session, text).await;
            assert!(is_error(&got, "3024"), "{text}: {got}");
            is_quiet(&server).await;
        }
    });
}

/// A recursion ends in any of its rounds. What it keeps is counted.
#[test]
fn recursions_end() {
    on_threads(async {
        let (server, mut other) = server().await;
        let deep = "SET cte_max_recursion_depth = 4294967295";
        let counted = |blocks: &str| {
            format!("WITH RECURSIVE r AS (SELECT 1 AS i UNION {blocks}) SELECT COUNT(*) FROM r")
        };
        for blocks in [
            "ALL SELECT i % 10 + 1 FROM r",
            "ALL SELECT i FROM r WHERE i < 0 UNION ALL SELECT i FROM r",
            "ALL SELECT n.i FROM r JOIN n ON n.i = r.i",
            "DISTINCT SELECT i + 1 FROM r",
            "DISTINCT SELECT -ABS(i) - 1 FROM r UNION DISTINCT SELECT i % 1000 FROM r",
        ] {
            let text = counted(blocks);
            let statement = |limit: u32| {
                let (mut session, text) = (server.session(), text.clone());
                let interrupter = session.interrupter();
                let task = tokio::spawn(async move {
                    run(&mut session, deep).await.unwrap();
                    let limit = format!("SET max_execution_time = {limit}");
                    run(&mut session, &limit).await.unwrap();
                    rows(&mut session, &text).await
                });
                (task, interrupter)
            };
            let (task, interrupter) = statement(0);
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(rows(&mut other, "SELECT COUNT(*) FROM n").await, "1000");
            interrupter.store(true, Relaxed);
            let got = task.await.unwrap();
            assert!(is_error(&got, "1317"), "{text}: {got}");
            is_quiet(&server).await;
            let (task, _) = statement(0);
            tokio::time::sleep(Duration::from_millis(300)).await;
            task.abort();
            is_quiet(&server).await;
            let (task, _) = statement(200);
            let got = task.await.unwrap();
            assert!(is_error(&got, "3024"), "{text}: {got}");
            is_quiet(&server).await;
        }
        run(&mut other, deep).await.unwrap();
        for text in [
            counted("ALL SELECT n.i FROM r JOIN n"),
            counted("ALL SELECT n.i FROM r JOIN n UNION ALL SELECT n.i FROM r JOIN n"),
            counted("DISTINCT SELECT r.i * 1000 + n.i FROM r JOIN n"),
            counted("ALL SELECT i + 1 FROM r UNION ALL SELECT i FROM r")
                .replace("1 AS i", "REPEAT('x', 1000) AS i")
                .replace("i + 1", "CONCAT(i, '')"),
        ] {
            let got = rows(&mut other, &text).await;
            assert!(is_error(&got, "1038"), "{text}: {got}");
            is_quiet(&server).await;
        }
    });
}

/// Planning can be ended like execution.
#[test]
fn what_is_planned_for_long_ends() {
    on_threads(async {
        let (server, _) = server().await;
        let deep = |inner: String| format!("(i + {inner} * 2 IN (1, i) XOR s < 'a')");
        let text = format!("SELECT {} FROM n", listed(600, |_| nested(4, "i", deep)));
        let mut session = server.session();
        let interrupter = session.interrupter();
        let task = tokio::spawn(async move { rows(&mut session, &text).await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        interrupter.store(true, Relaxed);
        let got = task.await.unwrap();
        assert!(is_error(&got, "1317"), "{}", got.chars().take(80).collect::<String>());
        is_quiet(&server).await;
    });
}

/// Many deep expressions would take minutes to plan.
#[test]
fn what_would_be_planned_for_long_is_refused() {
    on_threads(async {
        let (server, mut session) = server().await;
        let deep = |inner: String| format!("(i + {inner} * 2 IN (1, i) XOR s < 'a')");
        let text = format!("SELECT {} FROM n", listed(600, |_| nested(20, "i", deep)));
        assert!(is_error(&rows(&mut session, &text).await, "1038"));
        let equal = format!("SELECT 1{}", " = 1".repeat(380));
        assert!(is_error(&rows(&mut session, &equal).await, "1038"));
        let sum = format!("SELECT 1{}", " + 1".repeat(120));
        assert_eq!(rows(&mut session, &sum).await, "121");
        is_quiet(&server).await;
    });
}

/// Rows beyond the memory limit are spilled to disk while their statement runs, up to a limit.
#[test]
fn what_is_spilled_is_limited_and_goes() {
    on_threads(async {
        let directory = tempfile::tempdir().unwrap();
        let spill = directory.path().join("spill");
        let server = Server::at(directory.path());
        let mut session = server.session();
        make_numbers(&mut session).await;
        let grouped = |rows: usize| {
            format!(
                "SELECT COUNT(*) FROM (SELECT CONCAT(a.s, b.s, a.i, ' ', b.i) AS k, COUNT(*) FROM n a, \
                 n b WHERE b.i <= {rows} GROUP BY k) AS d"
            )
        };
        let got = rows(&mut session, &grouped(250)).await;
        assert!(is_error(&got, "1038") && got.contains("sql.max_spill_mb"), "{got}");
        is_quiet(&server).await;
        assert_eq!(files_in(&spill), 0);
    });
}

fn files_in(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let count = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => files_in(&entry.path()),
        false => 1,
    };
    entries.map(count).sum()
}

#[test]
fn what_a_crash_left_of_spilled_rows_goes() {
    on_threads(async {
        let directory = tempfile::tempdir().unwrap();
        let spill = directory.path().join("spill");
        std::fs::create_dir(&spill).unwrap();
        std::fs::write(spill.join("left by a crash"), "x").unwrap();
        let server = Server::at(directory.path());
        assert_eq!(files_in(&spill), 0);
        is_quiet(&server).await;
    });
}

#[test]
fn wide_rows_and_many_parts_are_answered_or_refused() {
    on_threads(async {
        let (server, mut session) = server().await;
        let row = |width: usize| format!("({})", numbers(width).join(","));
        // Each value becomes a condition: a chain that ended the server.
        let equal = |width| format!("SELECT {} = {}", row(width), row(width));
        assert_eq!(rows(&mut session, &equal(500)).await, "1");
        for width in [513, 20_000] {
            assert!(is_error(&rows(&mut session, &equal(width)).await, "1038"));
        }
        let joined = |count, by| vec!["(1, 2) = (1, 2)"; count].join(by);
        let many = |count, by| format!("SELECT COUNT(*) FROM n WHERE {}", joined(count, by));
        assert_eq!(rows(&mut session, &many(300, " AND ")).await, "1000");
        assert!(is_error(&rows(&mut session, &many(1_100, " AND ")).await, "1038"));
        assert_eq!(rows(&mut session, &many(2_000, " OR ")).await, "1000");
        let one = format!("SELECT {} IN ({})", row(20_000), row(20_000));
        assert!(is_error(&rows(&mut session, &one).await, "1038"));
        // Sorting copied them repeatedly.
        let ordered = |width| format!("SELECT {} <= {}", row(width), row(width));
        assert_eq!(rows(&mut session, &ordered(2_000)).await, "1");
        assert!(is_error(&rows(&mut session, &ordered(20_000)).await, "1038"));
        let pairs = listed(20_000, |at| format!("({at}, {at})"));
        let found = |negated| {
            format!("SELECT COUNT(*) FROM n WHERE i < 5 AND (i, i + 0) {negated} IN ({pairs})")
        };
        assert_eq!(rows(&mut session, &found("NOT")).await, "0");
        assert_eq!(rows(&mut session, &found("")).await, "4");
        // What no index answers stays as deep as it was.
        let sums = (0..4_000).map(|at| format!(" OR i + s = -{at}")).collect::<String>();
        let either = format!("SELECT COUNT(*) FROM n WHERE i < 3 AND (i = 0{sums})");
        assert_eq!(rows(&mut session, &either).await, "0");
        let having = (0..20_000).map(|at| format!(" OR i = -{at}")).collect::<String>();
        let having = format!("SELECT i FROM n WHERE i < 3 GROUP BY i HAVING i = 1{having}");
        assert_eq!(rows(&mut session, &having).await, "1");
        // What planning walks again for each.
        let windows = |count| listed(count, |at| format!("RANK() OVER (ORDER BY i + {at})"));
        let over = |count| format!("SELECT {} FROM n LIMIT 1", windows(count));
        assert!(is_error(&rows(&mut session, &over(257)).await, "1038"));
        let sums =
            |count| format!("SELECT {} FROM n", listed(count, |at| format!("SUM(i + {at})")));
        assert!(is_error(&rows(&mut session, &sums(1_025)).await, "1038"));
        let columns = listed(1_025, |at| format!("c{at} INT PATH '$'"));
        let table = format!("SELECT 1 FROM JSON_TABLE('[1]', '$[*]' COLUMNS ({columns})) AS j");
        assert!(is_error(&rows(&mut session, &table).await, "1117"));
        let pattern = format!("SELECT 'aaaa' REGEXP '{}b'", "(a*)*".repeat(16_384));
        assert!(is_error(&rows(&mut session, &pattern).await, "3700"));
        // Conditions that are evaluated in turn are no deeper for being many.
        let queries = " AND i IN (SELECT i FROM n)".repeat(500);
        let counted = format!("SELECT COUNT(s) FROM n WHERE 1{queries}");
        assert_eq!(rows(&mut session, &counted).await, "1000");
        is_quiet(&server).await;
    });
}
