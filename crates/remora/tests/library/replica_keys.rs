//! Functional keys and generated columns of replicated tables: their results equal those of the source, and EXPLAIN
//! shows them.

use std::time::{Duration, Instant};

use mysql::{Conn, prelude::Queryable};
use remora::{Database, Replica};
use remora_peers::{Kind, Server};
use serde::Deserialize;

use crate::Tested;

const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: u32 = 400;

type Failure = Box<dyn std::error::Error>;

/// A condition and the key that EXPLAIN must name, if any: for so few rows a scan is often cheaper.
type Case = (&'static str, Option<&'static str>);

#[derive(Deserialize)]
struct ExplainedAccess {
    key: Option<String>,
    #[serde(rename = "Extra")]
    extra: Option<String>,
}

/// The EXPLAIN of a condition, with this key forced if given.
fn told(db: &Database, condition: &str, key: Option<&str>) -> Result<ExplainedAccess, Failure> {
    let forced = key.map(|key| format!("FORCE INDEX ({key})")).unwrap_or_default();
    let asked = format!("EXPLAIN SELECT id FROM shop.people {forced} WHERE {condition}");
    Ok(db
        .query(&asked, [])?
        .deserialize::<ExplainedAccess>()?
        .into_iter()
        .next()
        .ok_or("nothing is told")?)
}

/// Whether a key, which may not exist yet, is used for a condition.
fn is_found_by(db: &Database, condition: &str, key: &str) -> bool {
    told(db, condition, Some(key)).is_ok_and(|told| told.key.as_deref() == Some(key))
}

/// Waits until the source's committed transactions are applied.
fn catch_up(kind: Kind, conn: &mut Conn, replica: &Replica) -> Tested {
    let variable = if kind.is_mariadb() { "@@gtid_binlog_pos" } else { "@@GLOBAL.gtid_executed" };
    let set: Option<String> = conn.query_first(format!("SELECT {variable}"))?;
    replica.wait_for(&set.ok_or("no position")?.replace('\n', ""), PATIENCE)?;
    Ok(replica.wait_until_live(PATIENCE)?)
}

/// Both have equal answers: with a new plan, when the plan is cached, and with the cached plan.
fn compare(conn: &mut Conn, db: &Database, rest: &str) -> Tested {
    // It asks this column instead of the expression that it rounds.
    let there = conn.query(format!("SELECT id FROM people IGNORE INDEX (tens) {rest}"));
    let there: Vec<i64> = there.or_else(|_| conn.query(format!("SELECT id FROM people {rest}")))?;
    for _ in 0..3 {
        let here = db.query(&format!("SELECT id FROM shop.people {rest}"), [])?;
        assert_eq!(here.deserialize::<i64>()?, there, "{rest}");
    }
    Ok(())
}

fn compare_all(conn: &mut Conn, db: &Database, cases: &[Case]) -> Tested {
    for (condition, key) in cases {
        compare(conn, db, &format!("WHERE {condition} ORDER BY id"))?;
        let found = told(db, condition, *key)?.key;
        assert_eq!(found.as_deref(), *key, "{condition}");
        if let Some(key) = key {
            let asked = format!(
                "SELECT id FROM shop.people FORCE INDEX ({key}) WHERE {condition} ORDER BY id"
            );
            let forced = db.query(&asked, [])?.deserialize::<i64>()?;
            let there =
                format!("SELECT id FROM people IGNORE INDEX ({key}) WHERE {condition} ORDER BY id");
            assert_eq!(forced, conn.query::<i64, _>(there)?, "{condition}");
        }
    }
    Ok(())
}

/// The start of a statement that writes rows, and the rows.
fn rows(from: u32, to: u32) -> String {
    let row = |id: u32| {
        let year = match id % 9 {
            0 => format!("\"{}\"", 1900 + id % 100),
            _ => (1900 + id % 100).to_string(),
        };
        let (name, tag, day) = (id % 50, id % 40, 1 + id % 20);
        let words = format!("[\"w{tag}\", \"W{name}\"]");
        let document = format!(
            "{{\"year\": {year}, \"tens\": {}.{}, \"name\": \"Ann{name}\", \"tags\": [{tag}, {}], \"words\": {words}, \
             \"day\": \"20{tag:02}-01-{day:02}\"}}",
            id % 60,
            id % 10,
            100 + id % 7
        );
        format!("({id}, 'User{id}@X', {}, '{document}')", id % 11)
    };
    let rows: Vec<String> = (from..to).map(row).collect();
    format!("INSERT INTO people (id, mail, n, doc) VALUES {}", rows.join(", "))
}

/// A table of people with these additional columns and keys, and its replica.
fn followed(kind: Kind, more: &str) -> Result<(Server, Conn, Database, Replica), Failure> {
    let server = Server::start(kind, &[])?;
    let mut conn = server.connect()?;
    conn.query_drop("CREATE DATABASE shop CHARACTER SET utf8mb4")?;
    conn.query_drop("USE shop")?;
    conn.query_drop("SET NAMES utf8mb4")?;
    conn.query_drop(format!(
        "CREATE TABLE people (id INT PRIMARY KEY, mail VARCHAR(60), n INT, doc JSON, {more})"
    ))?;
    conn.query_drop(rows(0, ROWS))?;
    let db = Database::in_memory()?;
    let replica = db.follow(&server.follower_url("shop"), ["people"])?;
    replica.wait_until_live(PATIENCE)?;
    Ok((server, conn, db, replica))
}

const OF_MYSQL: &str = "
    day DATE AS (CAST(doc->>'$.day' AS DATE)) VIRTUAL, KEY day (day),
    loud VARCHAR(60) AS (UPPER(mail)) STORED, KEY loud (loud),
    tens SMALLINT AS (doc->>'$.tens') VIRTUAL, KEY tens (tens),
    word VARCHAR(20) COLLATE utf8mb4_bin AS (doc->>'$.words[0]') STORED, KEY word (word),
    KEY year ((CAST(doc->>'$.year' AS SIGNED))),
    KEY name ((CAST(doc->>'$.name' AS CHAR(20)))),
    KEY low ((LOWER(mail))),
    KEY mixed (n, (LEFT(mail, 6)) DESC, id),
    KEY tags ((CAST(doc->'$.tags' AS UNSIGNED ARRAY))),
    KEY words ((CAST(doc->'$.words' AS CHAR(20) ARRAY))),
    KEY odd ((CASE WHEN n > 3 THEN 1 ELSE 0 END))";

const CASES: &[Case] = &[
    ("CAST(doc->>'$.year' AS SIGNED) = 1999", Some("year")),
    ("cast(json_unquote(json_extract(doc, '$.year')) as signed) = 1999", Some("year")),
    ("CAST(doc->>'$.year' AS SIGNED) BETWEEN 1990 AND 1991", Some("year")),
    ("CAST(doc->>'$.year' AS SIGNED) IN (1971, 1999, 5)", Some("year")),
    ("CAST(doc->>'$.year' AS SIGNED) > 1998", Some("year")),
    ("CAST(doc->>'$.name' AS CHAR(20)) = 'ANN3'", Some("name")),
    ("LOWER(mail) = 'user7@x'", Some("low")),
    ("LOWER(mail) LIKE 'user39%'", Some("low")),
    ("n = 3 AND LEFT(mail, 6) = 'user36'", Some("mixed")),
    ("UPPER(mail) = 'USER8@X'", Some("loud")),
    ("loud = 'USER8@X'", Some("loud")),
    ("day = '2005-01-06'", Some("day")),
    // In which zone and mode the source computed that column nobody knows.
    ("CAST(doc->>'$.day' AS DATE) = '2005-01-06'", None),
    ("doc->>'$.words[0]' = 'w33'", Some("word")),
    ("33 MEMBER OF (doc->'$.tags')", Some("tags")),
    ("JSON_CONTAINS(doc->'$.tags', '[33]')", Some("tags")),
    ("JSON_OVERLAPS(doc->'$.words', '[\"w33\", \"none\"]')", Some("words")),
    ("'w33' MEMBER OF (doc->'$.words')", Some("words")),
    ("CASE WHEN n > 3 THEN 1 ELSE 0 END = 1", None),
];

/// Conditions and orders of which only the answers are compared.
const RESTS: &[&str] = &[
    // A column that rounds is asked beside the expression, which decides.
    "WHERE doc->>'$.tens' = 20 ORDER BY id",
    "WHERE doc->>'$.tens' < 3 ORDER BY id",
    "WHERE 7 <= doc->>'$.tens' AND NOT (doc->>'$.tens' > 9) ORDER BY id",
    "WHERE doc->>'$.tens' BETWEEN -1 AND 4 ORDER BY id",
    "WHERE doc->>'$.tens' IN (10, 50, 7) ORDER BY id",
    "WHERE doc->>'$.tens' > 32767 ORDER BY id",
    "WHERE NOT (doc->>'$.tens' < 58) ORDER BY id",
    "WHERE CAST(doc->>'$.year' AS SIGNED) IS NULL ORDER BY id",
    "ORDER BY CAST(doc->>'$.year' AS SIGNED) DESC, id LIMIT 7",
    "ORDER BY LOWER(mail), id LIMIT 9",
    "WHERE n = 4 ORDER BY LEFT(mail, 6) DESC, id LIMIT 5",
];

fn compare_answers(conn: &mut Conn, db: &Database) -> Tested {
    for (condition, _) in CASES {
        compare(conn, db, &format!("WHERE {condition} ORDER BY id"))?;
    }
    RESTS.iter().try_for_each(|rest| compare(conn, db, rest))
}

/// SHOW CREATE TABLE and `information_schema` show the same keys as the source.
fn compare_what_is_told(conn: &mut Conn, db: &Database) -> Tested {
    let keys = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.trim().trim_end_matches(',').to_owned());
        lines.filter(|line| line.contains("KEY `")).collect()
    };
    let there: Option<(String, String)> = conn.query_first("SHOW CREATE TABLE people")?;
    let here: (String, String) = db.query("SHOW CREATE TABLE shop.people", [])?.one()?;
    assert_eq!(keys(&here.1), keys(&there.ok_or("no table")?.1));
    let asked = "SELECT INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, EXPRESSION \
                 FROM information_schema.STATISTICS \
                 WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'people' \
                 ORDER BY LOWER(INDEX_NAME), SEQ_IN_INDEX";
    type KeyPartRow = (String, u64, Option<String>, Option<String>);
    let there: Vec<KeyPartRow> = conn.query(asked)?;
    assert_eq!(db.query(asked, [])?.deserialize::<KeyPartRow>()?, there);
    Ok(())
}

#[test]
fn keys_over_expressions_find_rows_of_a_followed_table() -> Tested {
    let kind = Kind::MySql97;
    let (_server, mut conn, db, replica) = followed(kind, OF_MYSQL)?;
    compare_all(&mut conn, &db, CASES)?;
    compare_answers(&mut conn, &db)?;
    let extra = told(&db, "CASE WHEN n > 3 THEN 1 ELSE 0 END = 1", None)?.extra.unwrap_or_default();
    assert!(extra.contains("no row here has what key odd is over"), "{extra}");
    // The hidden columns are nobody's.
    assert_eq!(db.query("SELECT * FROM shop.people LIMIT 1", [])?.columns().len(), 8);
    compare_what_is_told(&mut conn, &db)?;
    // Rows come, change and go.
    conn.query_drop(rows(ROWS, ROWS + 60))?;
    for statement in [
        "UPDATE people SET doc = JSON_SET(doc, '$.year', 1999), mail = 'NEW@x' WHERE id % 37 = 5",
        "UPDATE people SET doc = NULL, mail = NULL WHERE id % 41 = 7",
        "UPDATE people SET doc = '{\"tags\": [33, 33]}' WHERE id = 1",
        "DELETE FROM people WHERE id % 13 = 6",
    ] {
        conn.query_drop(statement)?;
    }
    catch_up(kind, &mut conn, &replica)?;
    compare_answers(&mut conn, &db)?;
    compare(&mut conn, &db, "WHERE LOWER(mail) = 'new@x' ORDER BY id")?;
    // So do keys.
    for statement in [
        "CREATE INDEX late ON people ((n * 2 + id))",
        "ALTER TABLE people ADD COLUMN more INT DEFAULT 3, \
         ADD KEY sizes ((CAST(doc->'$.sizes' AS SIGNED ARRAY)))",
        "DROP INDEX low ON people",
        "INSERT INTO people (id, mail, n, doc) VALUES (9000, 'z', 1, '{\"sizes\": [7]}')",
    ] {
        conn.query_drop(statement)?;
    }
    until_used((&mut conn, &db, &replica), "n * 2 + id = 9002", "late")?;
    let cases: &[Case] = &[
        ("n * 2 + id = 9002", Some("late")),
        ("7 MEMBER OF (doc->'$.sizes')", Some("sizes")),
        ("LOWER(mail) = 'user8@x'", None),
    ];
    compare_all(&mut conn, &db, cases)?;
    compare_answers(&mut conn, &db)?;
    compare_what_is_told(&mut conn, &db)
}

/// Waits until a condition uses a key; the results must be right before that too.
fn until_used(
    (conn, db, replica): (&mut Conn, &Database, &Replica),
    condition: &str,
    key: &str,
) -> Tested {
    let end = Instant::now() + PATIENCE;
    loop {
        catch_up(Kind::MySql97, conn, replica)?;
        compare(conn, db, &format!("WHERE {condition} ORDER BY id"))?;
        if is_found_by(db, condition, key) {
            return Ok(());
        }
        assert!(Instant::now() < end, "{key} is not used for {condition}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn keys_over_expressions_are_of_columns_and_not_of_names() -> Tested {
    let kind = Kind::MySql97;
    let more = "a VARCHAR(20), b VARCHAR(20), made DATETIME, KEY k ((LOWER(b))), KEY day ((DATE(made))), \
                KEY rest ((MOD(id, 100)))";
    let (_server, mut conn, db, replica) = followed(kind, more)?;
    conn.query_drop(
        "UPDATE people SET a = CONCAT('A', id), b = CONCAT('B', id), made = '2020-01-01' + INTERVAL id HOUR",
    )?;
    catch_up(kind, &mut conn, &replica)?;
    let cases: &[Case] = &[
        ("LOWER(b) = 'b7'", Some("k")),
        // As they are asked, and as SHOW CREATE TABLE has them there.
        ("DATE(made) = '2020-01-03'", Some("day")),
        ("CAST(made AS DATE) = '2020-01-03'", Some("day")),
        ("MOD(id, 100) = 7", Some("rest")),
        ("id % 100 = 7", Some("rest")),
        ("id MOD 100 = 7", Some("rest")),
    ];
    compare_all(&mut conn, &db, cases)?;
    // Each column gets the other's name, and the key is over the same name.
    let swapped = "ALTER TABLE people DROP KEY k, RENAME COLUMN a TO b, RENAME COLUMN b TO a, ADD KEY k ((LOWER(b)))";
    if conn.query_drop(swapped).is_err() {
        for statement in [
            "ALTER TABLE people DROP KEY k",
            "ALTER TABLE people RENAME COLUMN a TO b, RENAME COLUMN b TO a",
            "ALTER TABLE people ADD KEY k ((LOWER(b)))",
        ] {
            conn.query_drop(statement)?;
        }
    }
    until_used((&mut conn, &db, &replica), "LOWER(b) = 'a7'", "k")?;
    compare_all(&mut conn, &db, &[("LOWER(b) = 'b7'", Some("k"))])?;
    // Another name of the key changes no row: it is used at once.
    conn.query_drop("ALTER TABLE people RENAME INDEX k TO l")?;
    catch_up(kind, &mut conn, &replica)?;
    compare_all(&mut conn, &db, &[("LOWER(b) = 'a9'", Some("l"))])?;
    // What the key is over is of another collation.
    conn.query_drop(
        "ALTER TABLE people DROP KEY l, MODIFY b VARCHAR(20) COLLATE utf8mb4_bin, ADD KEY l ((LOWER(b)))",
    )?;
    until_used((&mut conn, &db, &replica), "LOWER(b) = 'a7'", "l")?;
    compare_all(&mut conn, &db, &[("LOWER(b) = 'A7'", Some("l"))])
}

#[test]
fn generated_columns_of_mariadb_are_found_by_their_expressions() -> Tested {
    let kind = Kind::MariaDb1011;
    let more = "low VARCHAR(60) AS (LOWER(mail)) STORED, KEY low (low), \
                year BIGINT AS (CAST(JSON_VALUE(doc, '$.year') AS SIGNED)) STORED, KEY year (year)";
    let (_server, mut conn, db, replica) = followed(kind, more)?;
    let cases: &[Case] = &[
        ("low = 'user7@x'", Some("low")),
        ("LOWER(mail) = 'user7@x'", Some("low")),
        ("year = 1999", Some("year")),
        ("CAST(JSON_VALUE(doc, '$.year') AS SIGNED) = 1999", Some("year")),
        ("CAST(JSON_VALUE(doc, '$.year') AS SIGNED) IN (1971, 1999, 5)", Some("year")),
    ];
    compare_all(&mut conn, &db, cases)?;
    conn.query_drop(
        "UPDATE people SET mail = 'USER7@x', doc = '{\"year\": 1971}' WHERE id % 97 = 5",
    )?;
    conn.query_drop("DELETE FROM people WHERE id % 13 = 6")?;
    catch_up(kind, &mut conn, &replica)?;
    compare_all(&mut conn, &db, cases)
}
