//! ORDER BY with a LIMIT over conditions that the engine does not answer, or only by reading texts: the first rows of the
//! order give the page that all rows give, whatever the share of rows that satisfy the condition.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use remora_sql::Session;

use crate::support::random::Random;
use crate::support::{Server, rows, run};

const ROWS: u64 = 6_000;
const WORDS: [&str; 12] =
    ["the", "The", "of", "often", "Crème", "creme", "über", "STRASSE", "c++", "x", "日本", "end"];

fn row(id: u64, random: &mut Random) -> String {
    let count = 1 + random.below(6);
    let between = [" ", " ", " ", "  ", ", "];
    let mut title = String::new();
    for _ in 0..count {
        title.push_str(random.choose(&WORDS));
        title.push_str(random.choose(&between));
    }
    let title = if random.below(2) == 0 { title.trim_end() } else { &title };
    // Rare words stand at one end of the table.
    let title = if id > ROWS - 300 { format!("rare {title}") } else { title.to_owned() };
    let rank = if random.below(9) == 0 { "NULL".to_owned() } else { random.below(700).to_string() };
    let (score, kind) = (random.below(90), random.choose(&["a", "b", "c"]));
    format!("({id}, '{title}', {rank}, {score}, '{{\"kind\": \"{kind}\", \"n\": {score}}}')")
}

async fn filled(session: &mut Session, random: &mut Random) {
    let table = "CREATE TABLE t (id INT PRIMARY KEY, title VARCHAR(200) NOT NULL, `rank` INT, score INT NOT NULL, \
                 doc JSON, KEY (`rank`), KEY (score), FULLTEXT KEY (title))";
    run(session, table).await.unwrap();
    // Several segments.
    for from in (0..ROWS).step_by(1_500) {
        let values: Vec<String> = (from..from + 1_500).map(|id| row(id, random)).collect();
        run(session, &format!("INSERT INTO t VALUES {}", values.join(", "))).await.unwrap();
    }
    for _ in 0..20 {
        changed(session, random).await;
    }
}

async fn changed(session: &mut Session, random: &mut Random) {
    let id = random.below(ROWS);
    let changed = match random.below(3) {
        0 => format!("DELETE FROM t WHERE id = {id}"),
        1 => format!("REPLACE INTO t VALUES {}", row(id, random)),
        _ => format!("REPLACE INTO t VALUES {}", row(ROWS + random.below(500), random)),
    };
    run(session, &changed).await.unwrap();
}

fn condition(random: &mut Random) -> String {
    let (word, number) = (random.choose(&WORDS), random.below(90));
    match random.below(14) {
        0 => format!("title LIKE '{word} %'"),
        1 => format!("title LIKE '%{word} %'"),
        2 => format!("title LIKE '%{word} %' AND score < {number}"),
        3 => format!("title LIKE '{word}%' AND LENGTH(title) > {number}"),
        4 => format!("title LIKE '_{}%'", word.chars().skip(1).collect::<String>()),
        5 => format!("title REGEXP '^{}'", word.replace('+', "[+]")),
        6 => "title REGEXP '^rare.*end'".to_owned(),
        7 => format!("LENGTH(title) > {number}"),
        8 => format!("MOD(id, 7) = {} AND score > {number}", random.below(8)),
        9 => format!("doc->>'$.kind' = '{}'", random.choose(&["a", "b", "none"])),
        10 => format!("JSON_EXTRACT(doc, '$.n') > {number}"),
        11 => format!("title LIKE '%{word}%' OR score = {number}"),
        12 => format!("REVERSE(title) LIKE '{word}%'"),
        _ => format!("`rank` + 0 < {number} AND title NOT LIKE '%{word}%'"),
    }
}

/// Compares pages with parts of all rows, and returns how many pages the general path made of the first rows.
async fn compare(session: &mut Session, random: &mut Random, times: u64) -> u32 {
    let mut made = 0;
    for _ in 0..times {
        // With a limit for all statements the general path answers.
        let most = random.choose(&["1000000", "1000000", "DEFAULT"]);
        run(session, &format!("SET sql_select_limit = {most}")).await.unwrap();
        let condition = condition(random);
        let order = random.choose(&[
            "id",
            "id DESC",
            "`rank`, id",
            "`rank` DESC, id DESC",
            "`rank`, id DESC",
            "score, id",
            "score DESC, `rank`, id",
            "LENGTH(title), id",
        ]);
        let (limit, offset) = (1 + random.below(30), random.below(3) * random.below(40));
        let whole = format!("SELECT id, title FROM t WHERE {condition} ORDER BY {order}");
        let every = rows(session, &whole).await;
        let page = every.split('\n').skip(offset as usize).take(limit as usize);
        let page = page.collect::<Vec<_>>().join("\n");
        let asked = format!("{whole} LIMIT {limit} OFFSET {offset}");
        for _ in 0..2 {
            assert_eq!(rows(session, &asked).await, page, "{asked}");
        }
        let told = rows(session, &format!("EXPLAIN FORMAT=TREE {asked}")).await;
        made += u32::from(told.contains("First rows of the order"));
    }
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_equals_that_of_all_rows() {
    let server = Server::with_most_direct_rows(1_000);
    let session = &mut server.session();
    let mut random = Random::seeded();
    filled(session, &mut random).await;
    let made = compare(session, &mut random, 90).await;
    assert!(made > 20, "{made}");
    // Uncommitted rows are among them.
    run(session, "BEGIN").await.unwrap();
    for _ in 0..60 {
        changed(session, &mut random).await;
    }
    let made = compare(session, &mut random, 90).await;
    assert!(made > 20, "{made}");
    run(session, "ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volatile_condition_is_asked_of_all_rows() {
    let server = Server::new();
    let session = &mut server.session();
    filled(session, &mut Random::seeded()).await;
    let asked = "SELECT id FROM t WHERE RAND() < 2 ORDER BY id LIMIT 3";
    let told = rows(session, &format!("EXPLAIN FORMAT=TREE {asked}")).await;
    assert!(!told.contains("First rows of the order"), "{told}");
}
