//! JSON_TABLE over documents in rows, compared with JSON_TABLE over each document as a constant, which
//! `tests/dml/json_table.txt` compares with MySQL; where its conditions are evaluated; how much memory it needs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use remora_sql::Session;

use crate::support::{Server, random::Random, rows, run};

/// Columns of a JSON_TABLE over objects, with their names.
const COLUMNS: [(&str, &str); 4] = [
    ("o FOR ORDINALITY, a INT PATH '$.a'", "o, a"),
    ("a VARCHAR(3) PATH '$.a' DEFAULT '\"e\"' ON EMPTY DEFAULT '\"x\"' ON ERROR", "a"),
    (
        "a INT PATH '$.a', NESTED PATH '$.b[*]' COLUMNS (k FOR ORDINALITY, b INT PATH '$'), \
         NESTED PATH '$.c' COLUMNS (c JSON PATH '$')",
        "a, k, b, c",
    ),
    ("a BOOL EXISTS PATH '$.a', b JSON PATH '$.b', c DECIMAL(4,1) PATH '$.c'", "a, b, c"),
];

/// A document, or NULL.
fn document(random: &mut Random) -> Option<String> {
    if random.below(8) == 0 {
        return None;
    }
    let mut items = Vec::new();
    for _ in 0..random.below(5) {
        let mut members = Vec::new();
        for (name, values) in [
            ("a", &["1", "2", "-3", "4.5", "true", "null", "\"7\"", "\"word\"", "[1]", "{}"][..]),
            ("b", &["[1, 2]", "[]", "3", "[null, \"4\", 5]", "{\"x\": 1}"]),
            ("c", &["6.25", "\"c\"", "[8, [9]]", "false"]),
        ] {
            if random.below(3) > 0 {
                members.push(format!("\"{name}\": {}", random.choose(values)));
            }
        }
        items.push(format!("{{{}}}", members.join(", ")));
    }
    Some(format!("[{}]", items.join(", ")))
}

async fn made(session: &mut Session, statement: &str) {
    run(session, statement).await.unwrap();
}

/// A row of the table.
struct Document {
    id: u64,
    text: Option<String>,
}

/// Creates a table of documents.
async fn documents(session: &mut Session, random: &mut Random) -> Vec<Document> {
    made(session, "CREATE TABLE t (id INT PRIMARY KEY, doc JSON, txt TEXT, part INT, KEY (part))")
        .await;
    let mut all = Vec::new();
    for id in 0..60 {
        let text = document(random);
        let value = text.as_ref().map_or("NULL".to_owned(), |text| format!("'{text}'"));
        let put = format!("INSERT INTO t VALUES ({id}, {value}, {value}, {})", id % 5);
        made(session, &put).await;
        all.push(Document { id, text });
    }
    all
}

/// The rows of a document that meet a condition, from JSON_TABLE over a constant.
async fn rows_of(
    session: &mut Session,
    document: &Document,
    (columns, names): (&str, &str),
    condition: &str,
) -> Vec<String> {
    let Some(text) = &document.text else { return Vec::new() };
    let id = document.id;
    let statement = format!(
        "SELECT {id} AS id, {names} FROM JSON_TABLE('{text}', '$[*]' COLUMNS ({columns})) j \
         WHERE {condition}"
    );
    let answer = run(session, &statement).await.unwrap();
    answer.sets[0].rows.iter().map(|row| row.join("|")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_those_of_each_document() {
    for server in [Server::new(), Server::optimizing()] {
        let mut session = server.session();
        let random = &mut Random::seeded();
        let all = documents(&mut session, random).await;
        for _ in 0..40 {
            let (columns, names) = random.choose(&COLUMNS);
            let given = random.choose(&["t.doc", "t.txt", "JSON_EXTRACT(t.doc, '$')"]);
            let condition = random.choose(&["TRUE", "a = 1", "a IS NULL", "a <> 'e'", "FALSE"]);
            let is_left = random.below(2) == 0;
            let part = (random.below(2) == 0).then(|| random.below(5));
            let join = if is_left { "LEFT JOIN" } else { "JOIN" };
            let asked = part.map_or(String::new(), |part| format!(" WHERE t.part = {part}"));
            let statement = format!(
                "SELECT t.id, {names} FROM t {join} JSON_TABLE({given}, '$[*]' COLUMNS ({columns})) \
                 j ON {condition}{asked} ORDER BY t.id"
            );
            let mut expected = Vec::new();
            for each in all.iter().filter(|each| part.is_none_or(|part| each.id % 5 == part)) {
                let found = rows_of(&mut session, each, (columns, names), condition).await;
                if found.is_empty() && is_left {
                    let none = "|NULL".repeat(names.split(", ").count());
                    expected.push(format!("{}{none}", each.id));
                }
                expected.extend(found);
            }
            let got = rows(&mut session, &statement).await;
            let mut got: Vec<&str> = got.lines().collect();
            // The rows of one document have no defined order.
            got.sort_unstable();
            expected.sort_unstable();
            assert_eq!(got, expected, "{statement}");
        }
    }
}

/// Rows of one document may come in several batches: only after the last one is it known whether any of them met the
/// condition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_of_many_rows_are_kept_once() {
    let server = Server::new();
    let mut session = server.session();
    made(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, doc JSON)").await;
    for id in 0..4 {
        let mut text = String::new();
        for at in 0..20_000 {
            write!(text, "{}{at}", if at > 0 { "," } else { "" }).unwrap();
        }
        let put = format!("INSERT INTO t VALUES ({id}, '[{text}]')");
        made(&mut session, &put).await;
    }
    made(&mut session, "INSERT INTO t VALUES (4, '[]')").await;
    let mut asked = async |columns: &str, condition: &str| {
        let text = format!(
            "SELECT {columns} FROM t LEFT JOIN JSON_TABLE(t.doc, '$[*]' COLUMNS (v INT PATH '$')) j \
             ON {condition}"
        );
        rows(&mut session, &text).await
    };
    assert_eq!(asked("COUNT(*), COUNT(v), SUM(v)", "TRUE").await, "80001|80000|799960000");
    let some =
        "(t.id = 1 AND v = 0) OR (t.id = 2 AND v = 19999) OR (t.id = 3 AND v IN (8191, 8192))";
    assert_eq!(asked("t.id, v", some).await, "0|NULL\n1|0\n2|19999\n3|8191\n3|8192\n4|NULL");
    assert_eq!(asked("COUNT(*), COUNT(v)", "v < 0").await, "5|0");
    assert_eq!(asked("COUNT(*), MIN(v)", "v >= 10000").await, "40001|10000");
}

/// Conditions on the table alone use its keys, below JSON_TABLE.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_of_the_table_are_asked_of_its_keys() {
    let server = Server::new();
    let mut session = server.session();
    documents(&mut session, &mut Random::seeded()).await;
    let shown = |text: String| -> Vec<String> {
        let cells = |line: &str| {
            let cells: Vec<&str> = line.split('|').collect();
            [cells[2], cells[5], cells[9], cells[10], cells[11]].join("|")
        };
        text.lines().map(cells).collect()
    };
    let of = "JSON_TABLE(t.doc, '$[*]' COLUMNS (o FOR ORDINALITY, part INT PATH '$.a')) j";
    let said = "j|NULL|2|100|Table function: json_table; Using temporary";
    for (from, asked, told) in [
        (format!("t, {of}"), "t.id = 7 AND j.part > 0", "t|PRIMARY|60|1.67|Using where"),
        (format!("t, {of}"), "t.part = 3 AND j.part = 3", "t|part|60|20|Using where"),
        (format!("t LEFT JOIN {of} ON j.o > 1"), "t.part = 3", "t|part|60|20|Using where"),
    ] {
        let text = format!("EXPLAIN SELECT t.id, j.o FROM {from} WHERE {asked}");
        assert_eq!(shown(rows(&mut session, &text).await), [told, said], "{text}");
    }
    let tree = format!("EXPLAIN FORMAT=TREE SELECT t.id, j.o FROM t, {of} WHERE t.part = 3");
    assert!(rows(&mut session, &tree).await.contains("Rows of a document"));
    let json = format!("EXPLAIN FORMAT=JSON SELECT t.id, j.o FROM t, {of} WHERE t.part = 3");
    assert!(rows(&mut session, &json).await.contains("Table function: json_table"));
    let analyzed = format!("EXPLAIN ANALYZE SELECT t.id, j.o FROM t, {of} WHERE t.part = 3");
    assert!(rows(&mut session, &analyzed).await.contains("JSON_TABLE"));
}

/// What cannot be computed as in MySQL is refused by name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_done_is_refused_by_name() {
    let server = Server::new();
    let mut session = server.session();
    documents(&mut session, &mut Random::seeded()).await;
    let of = "JSON_TABLE(t.doc, '$[*]' COLUMNS (a INT PATH '$.a')) j";
    for from in [
        format!("t, {of} RIGHT JOIN t u ON u.id = j.a"),
        format!("t, t u RIGHT JOIN {of} ON u.id = j.a"),
        format!("t JOIN ({of} JOIN t u ON u.id = j.a) ON TRUE"),
        format!("t, LATERAL (SELECT SUM(a) AS s FROM {of}) s"),
        format!("t LEFT JOIN {of} ON j.a IN (SELECT id FROM t x)"),
    ] {
        let got = rows(&mut session, &format!("SELECT t.id FROM {from}")).await;
        assert!(got.starts_with("1235 ") && got.contains("JSON_TABLE"), "{from}: {got}");
    }
}
