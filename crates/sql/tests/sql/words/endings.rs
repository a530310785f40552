//! Keyword searches and excerpts are ended by KILL and by time limits while they work, and no work goes on afterwards.

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use remora_sql::{Result, Session};

use super::{
    all, sets,
    support::{Answers, Server, run},
};

/// A query whose rows are slow to find and to rank.
fn slow() -> String {
    let near = |apart: usize| format!("\"alpha gamma beta delta\"~{apart}");
    (5..25).map(near).collect::<Vec<_>>().join(" | ")
}

/// Rows that each have its words forty times.
async fn filled(session: &mut Session) {
    all(
        session,
        &[
            "CREATE TABLE slow (id INT PRIMARY KEY, n INT, body TEXT) words='body' min_infix_len='2'",
            "INSERT INTO slow WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r \
             WHERE i < 150) SELECT i, i % 7, REPEAT('beta alpha gamma delta ', 40) FROM r",
        ],
    )
    .await;
}

/// The time of the whole statement.
async fn whole(session: &mut Session, statement: &str) -> Duration {
    let mut whole = Duration::MAX;
    for _ in 0..2 {
        let begin = Instant::now();
        if let Err(error) = run(session, statement).await {
            panic!("{statement}: {error}");
        }
        whole = whole.min(begin.elapsed());
    }
    whole
}

/// On a busy machine any attempt may be slow: one of this many must end early.
const ATTEMPTS: usize = 30;

/// Whether all work of a statement has ended after this time.
async fn is_quiet(server: &Server, most: Duration) -> bool {
    let until = Instant::now() + most;
    let mut was_quiet = true;
    while server.instance.usage().running > 0 {
        was_quiet &= Instant::now() < until;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    was_quiet
}

/// The result of a statement that is killed after a third of its time, and how long it then takes.
async fn killed(
    session: &mut Session,
    statement: &str,
    whole: Duration,
) -> (Result<Answers>, Duration) {
    let interrupter = session.interrupter();
    let ending = std::thread::spawn(move || {
        std::thread::sleep(whole / 3);
        interrupter.store(true, Relaxed);
        Instant::now()
    });
    let ended = run(session, statement).await;
    let took = ending.join().unwrap().elapsed();
    session.interrupter().store(false, Relaxed);
    (ended, took)
}

/// KILL ends a statement and all its work long before it would have finished.
async fn check_killed(server: &Server, session: &mut Session, statement: &str, whole: Duration) {
    let said = statement.get(..30).unwrap_or(statement);
    for _ in 0..ATTEMPTS {
        let (ended, took) = killed(session, statement, whole).await;
        let was_quiet = is_quiet(server, whole / 3).await;
        let Err(error) = ended else { continue };
        assert_eq!(error.code.number(), 1317, "{said}: {error}");
        if took < whole / 3 && was_quiet {
            return;
        }
    }
    panic!("{said} is not ended before its end, after {whole:?}");
}

/// So does a time limit of the session; one of the statement's own options with a warning instead of an error.
async fn check_limited(server: &Server, session: &mut Session, statement: &str, whole: Duration) {
    for _ in 0..ATTEMPTS {
        let begin = Instant::now();
        let ended = run(session, statement).await;
        let took = begin.elapsed();
        let was_quiet = is_quiet(server, whole / 3).await;
        if statement.contains("max_query_time") {
            // A plan that is not made in time has no columns to send.
            if let Err(error) = &ended {
                assert_eq!(error.code.number(), 3024, "{statement}: {error}");
                return;
            }
            let told = sets(session, "SHOW WARNINGS").await;
            if !told.ends_with("query time exceeded max_query_time") {
                continue;
            }
        } else {
            let Err(error) = ended else { continue };
            assert_eq!(error.code.number(), 3024, "{statement}: {error}");
        }
        if took < whole * 3 / 4 && was_quiet {
            return;
        }
    }
    panic!("{statement} is not ended before its end, after {whole:?}");
}

/// All forms of a search, and statements that follow one.
#[tokio::test(flavor = "multi_thread")]
async fn searches_by_keywords_end_while_they_run() {
    let server = Server::new();
    let mut session = server.session();
    filled(&mut session).await;
    let slow = slow();
    for statement in [
        format!("SELECT COUNT(*) FROM slow WHERE MATCH('{slow}')"),
        format!("SELECT id, WEIGHT() FROM slow WHERE MATCH('{slow}') LIMIT 5"),
        format!("SELECT id FROM slow WHERE MATCH('{slow}') ORDER BY n DESC, id LIMIT 5"),
        format!("SELECT n, COUNT(*) FROM slow WHERE MATCH('{slow}') GROUP BY n"),
        format!("SELECT id, WEIGHT() + 0 FROM slow WHERE MATCH('{slow}') AND n + 0 < 9"),
        format!(
            "SELECT id, PACKEDFACTORS({{no_atc=1}}) FROM slow WHERE MATCH('{slow}') \
             OPTION ranker=expr('1')"
        ),
    ] {
        let whole = whole(&mut session, &statement).await;
        check_killed(&server, &mut session, &statement, whole).await;

        let limit_ms = (whole / 4).as_millis().max(1);
        let link = if statement.contains("OPTION") { "," } else { " OPTION" };
        let own = format!("{statement}{link} max_query_time={limit_ms}");
        for (limit_ms, statement) in [(limit_ms, &statement), (0, &own)] {
            run(&mut session, &format!("SET max_execution_time = {limit_ms}")).await.unwrap();
            check_limited(&server, &mut session, statement, whole).await;
        }
        run(&mut session, "SET max_execution_time = 0").await.unwrap();
    }
}

/// A search whose rows are found at once and take seconds to weigh.
async fn slow_to_weigh(session: &mut Session) -> String {
    all(
        session,
        &[
            "CREATE TABLE deep (id INT PRIMARY KEY, n INT, body TEXT) words='body'",
            "INSERT INTO deep WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 20) \
             SELECT id + 1000 * i, n, REPEAT(body, 10) FROM slow, r",
            "INSERT INTO deep SELECT id + 100000, n, body FROM deep",
        ],
    )
    .await;
    // Each size of a window is a number of its own, which is computed once for a row.
    let windows: Vec<String> = (2..2_500).map(|size| format!("max_window_hits({size})")).collect();
    // The sum of columns makes it a plan, which does not run in the thread of its connection.
    format!(
        "SELECT id, WEIGHT() + 0 FROM deep WHERE MATCH('alpha') AND n + 0 < 9 OPTION ranker=expr('sum({})')",
        windows.join("+")
    )
}

/// More long searches than there are threads for plans do not keep others waiting until they end.
#[tokio::test(flavor = "multi_thread")]
async fn long_searches_leave_threads_for_others() {
    let server = Server::new();
    let mut session = server.session();
    filled(&mut session).await;
    let search = slow_to_weigh(&mut session).await;
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let searches = (0..processors * 4 + 2).map(|_| {
        let (mut session, search) = (server.session(), search.clone());
        let interrupter = session.interrupter();
        let running = tokio::spawn(async move { run(&mut session, &search).await });
        (interrupter, running)
    });
    let searches: Vec<_> = searches.collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let other = run(&mut session, "SELECT AVG(n + 0) FROM slow WHERE n + 0 < 5").await;
    let are_running = searches.iter().all(|(_, running)| !running.is_finished());
    for (interrupter, _) in &searches {
        interrupter.store(true, Relaxed);
    }
    for (_, running) in searches {
        assert_eq!(running.await.unwrap().unwrap_err().code.number(), 1317);
    }
    assert!(other.is_ok() && are_running);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_for_meta_ends_and_can_be_counted_again() {
    let server = Server::new();
    let mut session = server.session();
    filled(&mut session).await;
    let slow = slow();
    let search = format!("SELECT id FROM slow WHERE MATCH('{slow}') LIMIT 5");
    let mut whole = Duration::MAX;
    for _ in 0..2 {
        run(&mut session, &search).await.unwrap();
        let begin = Instant::now();
        run(&mut session, "SHOW META").await.unwrap();
        whole = whole.min(begin.elapsed());
    }
    let mut attempts = 0;
    loop {
        run(&mut session, &search).await.unwrap();
        let (ended, took) = killed(&mut session, "SHOW META", whole).await;
        attempts += 1;
        assert!(attempts <= ATTEMPTS, "it is not ended before its end, after {whole:?}");
        let Err(error) = ended else { continue };
        assert_eq!(error.code.number(), 1317, "{error}");
        if took < whole / 3 {
            break;
        }
    }
    let meta = &run(&mut session, "SHOW META").await.unwrap().sets[0].rows;
    let found = ["total_found", "150"].map(str::to_owned).to_vec();
    assert!(meta.contains(&found), "{meta:?}");
}

/// A statement that is ended while it builds an excerpt does not finish the excerpt.
#[tokio::test(flavor = "multi_thread")]
async fn excerpts_are_interrupted_within_a_text() {
    let server = Server::new();
    let mut session = server.session();
    let text = "alphabetical reefs and fishes ".repeat(34_000);
    let query: String = (10..70).map(|number| format!("*q{number}*e* ")).collect();
    let create =
        "CREATE TABLE wide (id INT PRIMARY KEY, body LONGTEXT) words='body' min_infix_len='2'";
    all(&mut session, &[create, &format!("INSERT INTO wide VALUES (1, '{text}')")]).await;
    for statement in [
        format!("CALL SNIPPETS('{text}', 'wide', '{query}')"),
        // These run on another thread and the client gets its error at once; only the end of the work shows that it was
        // interrupted.
        format!("SELECT SNIPPET(body, '{query}') FROM wide"),
        format!("SELECT HIGHLIGHT({{}}, body, '{query}') FROM wide"),
    ] {
        let whole = whole(&mut session, &statement).await;
        check_killed(&server, &mut session, &statement, whole).await;
    }
}
