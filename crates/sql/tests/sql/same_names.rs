//! Joins of tables whose columns have the same names return what nested loops over their rows return.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;

use crate::support::random::Random;
use crate::support::{Server, rows, run};
use remora_sql::Session;

const COLUMNS: [&str; 3] = ["id", "k", "n"];
const TABLES: u64 = 7;
const MOST_ROWS: usize = 3_000;

type Row = [Option<i64>; 3];
/// A row of each joined table; `None` where an outer join found none.
type Joined = Vec<Option<Row>>;

/// `COLUMN OPERATOR COLUMN` or, without the second column, `COLUMN OPERATOR NUMBER`.
#[derive(Clone, Copy)]
struct Condition {
    left: (usize, usize),
    operator: &'static str,
    right: Option<(usize, usize)>,
    number: i64,
}

impl Condition {
    fn new(random: &mut Random, operator: &'static str, left: usize, right: Option<usize>) -> Self {
        let mut column = || random.below(3) as usize;
        let (left, right) = ((left, column()), right.map(|right| (right, column())));
        Self { left, operator, right, number: random.below(5) as i64 }
    }

    fn sql(&self) -> String {
        let name = |(table, column): (usize, usize)| format!("t{table}.{}", COLUMNS[column]);
        let right = self.right.map_or_else(|| self.number.to_string(), name);
        format!("{} {} {right}", name(self.left), self.operator)
    }

    fn holds(&self, row: &[Option<Row>]) -> bool {
        let value = |(table, column): (usize, usize)| row[table].and_then(|row| row[column]);
        let right = self.right.map_or(Some(self.number), value);
        let Some((left, right)) = value(self.left).zip(right) else { return false };
        match self.operator {
            "=" => left == right,
            "<>" => left != right,
            "<" => left < right,
            _ => left >= right,
        }
    }
}

const OPERATORS: [&str; 4] = ["=", "<>", "<", ">="];

fn table(random: &mut Random) -> Vec<Row> {
    let rows = 1 + random.below(9) as i64;
    let mut value = || Some(random.below(6) as i64).filter(|value| *value < 5);
    (0..rows).map(|id| [Some(id), value(), value()]).collect()
}

/// A SELECT over `tables`, and its rows by nested loops; `None` if those are too many.
fn query(random: &mut Random, tables: &[Vec<Row>]) -> Option<(String, Vec<String>)> {
    let count = 3 + random.below(4) as usize;
    let of: Vec<usize> = (0..=count).map(|_| random.below(TABLES) as usize).collect();
    let mut joined: Vec<Joined> = tables[of[0]].iter().map(|row| vec![Some(*row)]).collect();
    let mut from = format!("s{} t0", of[0]);
    for new in 1..count {
        let earlier = random.below(new as u64) as usize;
        let mut on = vec![Condition::new(random, "=", earlier, Some(new))];
        if random.below(3) == 0 {
            let operator = random.choose(&OPERATORS);
            let side = random.choose(&[None, Some(earlier)]);
            on.push(Condition::new(random, operator, new, side));
        }
        let outer = random.below(3) == 0;
        let texts: Vec<String> = on.iter().map(Condition::sql).collect();
        let word = if outer { "LEFT JOIN" } else { "JOIN" };
        write!(from, " {word} s{} t{new} ON {}", of[new], texts.join(" AND ")).unwrap();
        joined = with(joined, &tables[of[new]], &on, outer);
        if joined.len() > MOST_ROWS {
            return None;
        }
    }
    let mut conditions = Vec::new();
    for _ in 0..random.below(3) {
        let known = random.below(count as u64) as usize;
        let operator = random.choose(&OPERATORS);
        let condition = Condition::new(random, operator, known, None);
        conditions.push(condition.sql());
        joined.retain(|row| condition.holds(row));
    }
    if random.below(2) == 0 {
        let (of, known) = (of[count], random.below(count as u64) as usize);
        conditions.push(matched(random, &mut joined, (of, known, count), &tables[of]));
    }
    let ids: Vec<String> = (0..count).map(|each| format!("t{each}.id")).collect();
    let ids = ids.join(", ");
    let filter = match conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let mut keys: Vec<Vec<Option<i64>>> = joined
        .iter()
        .map(|row| row.iter().map(|each| each.and_then(|each| each[0])).collect())
        .collect();
    keys.sort();
    let mut sql = format!("SELECT {ids} FROM {from}{filter} ORDER BY {ids}");
    if random.below(3) == 0 {
        let most = 1 + random.below(5);
        keys.truncate(most as usize);
        write!(sql, " LIMIT {most}").unwrap();
    }
    Some((sql, keys.iter().map(|key| shown(key)).collect()))
}

fn with(joined: Vec<Joined>, new: &[Row], on: &[Condition], outer: bool) -> Vec<Joined> {
    let mut found = Vec::new();
    for row in joined {
        let before = found.len();
        for each in new {
            let whole: Joined = row.iter().copied().chain([Some(*each)]).collect();
            if on.iter().all(|condition| condition.holds(&whole)) {
                found.push(whole);
            }
        }
        if outer && found.len() == before {
            found.push(row.into_iter().chain([None]).collect());
        }
    }
    found
}

/// A semi-join or an anti-join of a further table, as a condition.
fn matched(
    random: &mut Random,
    joined: &mut Vec<Joined>,
    (of, known, new): (usize, usize, usize),
    rows: &[Row],
) -> String {
    let equal = Condition::new(random, "=", known, Some(new));
    let operator = random.choose(&OPERATORS);
    let further = Condition::new(random, operator, new, None);
    let negated = random.below(3) == 0;
    joined.retain(|row| {
        let matches = |each: &Row| {
            let whole: Joined = row.iter().copied().chain([Some(*each)]).collect();
            equal.holds(&whole) && further.holds(&whole)
        };
        rows.iter().any(matches) != negated
    });
    let outer = format!("t{known}.{}", COLUMNS[equal.left.1]);
    let inner = format!("t{new}.{}", COLUMNS[equal.right.unwrap().1]);
    let further = further.sql();
    match negated {
        true => {
            format!("NOT EXISTS (SELECT 1 FROM s{of} t{new} WHERE {inner} = {outer} AND {further})")
        }
        false if random.below(2) == 0 => {
            format!("EXISTS (SELECT 1 FROM s{of} t{new} WHERE {inner} = {outer} AND {further})")
        }
        false => format!("{outer} IN (SELECT {inner} FROM s{of} t{new} WHERE {further})"),
    }
}

fn shown(row: &[Option<i64>]) -> String {
    let cells: Vec<String> = row
        .iter()
        .map(|cell| cell.map_or_else(|| "NULL".to_owned(), |it| it.to_string()))
        .collect();
    cells.join("|")
}

async fn fill(session: &mut Session, name: &str, rows: &[Row]) {
    run(session, &format!("CREATE TABLE {name} (id INT PRIMARY KEY, k INT, n INT, KEY (k))"))
        .await
        .unwrap();
    let values: Vec<String> =
        rows.iter().map(|row| format!("({})", shown(row).replace('|', ", "))).collect();
    run(session, &format!("INSERT INTO {name} VALUES {}", values.join(", "))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_equal_column_names_answer_as_nested_loops() {
    let mut random = Random::seeded();
    let mut rows_seen = 0;
    for server in [Server::new(), Server::optimizing()] {
        let mut session = server.session();
        let tables: Vec<Vec<Row>> = (0..TABLES).map(|_| table(&mut random)).collect();
        for (index, rows) in tables.iter().enumerate() {
            fill(&mut session, &format!("s{index}"), rows).await;
        }
        for _ in 0..200 {
            let Some((sql, expected)) = query(&mut random, &tables) else { continue };
            rows_seen += expected.len();
            assert_eq!(rows(&mut session, &sql).await, expected.join("\n"), "{sql}\n{tables:?}");
        }
    }
    assert!(rows_seen > 100);
}

/// Tables whose key filter, found by name, would be that of another table.
const SETUP: [&str; 12] = [
    "CREATE TABLE a (id INT PRIMARY KEY, k INT, n INT)",
    "CREATE TABLE b (id INT PRIMARY KEY, k INT, n INT)",
    "CREATE TABLE e (id INT PRIMARY KEY, k INT, n INT)",
    "CREATE TABLE cc (id INT PRIMARY KEY, s INT)",
    "CREATE TABLE d (id INT PRIMARY KEY, c INT)",
    "CREATE TABLE d2 (id INT PRIMARY KEY, c INT)",
    "INSERT INTO a VALUES (1,1,1), (2,1,9), (3,2,1)",
    "INSERT INTO b VALUES (11,1,5), (12,2,5), (13,2,6)",
    "INSERT INTO e SELECT id + 20, k, n FROM a",
    "INSERT INTO d VALUES (1,11), (2,13)",
    "INSERT INTO cc VALUES (1,1), (2,1)",
    "INSERT INTO d2 VALUES (1,5), (2,7)",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_filters_the_table_of_its_key() {
    for server in [Server::new(), Server::optimizing()] {
        let session = &mut server.session();
        for statement in SETUP {
            run(session, statement).await.unwrap();
        }
        let within = "a JOIN b ON a.k = b.k LEFT JOIN cc ON a.n = cc.s";
        for (statement, expected) in [
            (
                "SELECT COUNT(*) FROM a JOIN b ON a.k = b.k JOIN e ON a.n = e.n JOIN d ON d.c = b.id",
                "5",
            ),
            (
                "SELECT COUNT(*) FROM a JOIN b ON a.k = b.k LEFT JOIN e ON a.n = e.n JOIN d ON d.c = b.id",
                "5",
            ),
            (&format!("SELECT COUNT(*) FROM {within} WHERE b.n IN (SELECT c FROM d2)"), "5"),
            (&format!("SELECT COUNT(*) FROM {within} JOIN d2 ON b.n = d2.c"), "5"),
            (
                &format!(
                    "SELECT COUNT(*) FROM {within} WHERE EXISTS (SELECT 1 FROM d2 WHERE d2.c = b.n)"
                ),
                "5",
            ),
        ] {
            assert_eq!(rows(session, statement).await, expected, "{statement}");
        }
        let delete = format!("DELETE b FROM {within} WHERE b.n IN (SELECT c FROM d2)");
        run(session, &delete).await.unwrap();
        assert_eq!(rows(session, "SELECT id FROM b").await, "13");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_stays_with_its_collation() {
    for server in [Server::new(), Server::optimizing()] {
        let session = &mut server.session();
        for statement in [
            "CREATE TABLE p (id INT PRIMARY KEY, s VARCHAR(9) COLLATE utf8mb4_0900_ai_ci)",
            "CREATE TABLE g (id INT PRIMARY KEY, r VARCHAR(9) COLLATE utf8mb4_0900_bin)",
            "INSERT INTO p VALUES (1, 'ab'), (2, 'AB')",
            "INSERT INTO g VALUES (1, 'ab')",
        ] {
            run(session, statement).await.unwrap();
        }
        for (statement, expected) in [
            (
                "SELECT p.s, g.r FROM p LEFT JOIN g ON p.s = g.r WHERE p.s LIKE 'ä%' ORDER BY p.id",
                "ab|ab\nAB|NULL",
            ),
            ("SELECT p.s, g.r FROM p JOIN g ON p.s = g.r WHERE p.s LIKE 'Ä%'", "ab|ab"),
            ("SELECT p.s, g.r FROM p JOIN g ON p.s = g.r WHERE g.r LIKE 'A%'", ""),
            ("SELECT p.s FROM p WHERE p.s LIKE 'Ä%' AND p.s IN (SELECT r FROM g)", "ab"),
        ] {
            assert_eq!(rows(session, statement).await, expected, "{statement}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_with_all_count_each_row() {
    for server in [Server::new(), Server::optimizing()] {
        let session = &mut server.session();
        for statement in [
            "CREATE TABLE m (x INT, y INT)",
            "INSERT INTO m VALUES (1, 2), (1, 2), (2, 3), (NULL, 4), (NULL, 4)",
            "CREATE TABLE w (s VARCHAR(9) COLLATE utf8mb4_0900_ai_ci)",
            "INSERT INTO w VALUES ('a'), ('A'), ('b')",
        ] {
            run(session, statement).await.unwrap();
        }
        for (statement, expected) in [
            ("SELECT * FROM m INTERSECT ALL SELECT 1, 2", "1|2"),
            ("SELECT * FROM m EXCEPT ALL SELECT 1, 2 ORDER BY x, y", "NULL|4\nNULL|4\n1|2\n2|3"),
            ("SELECT * FROM m EXCEPT ALL SELECT NULL, 4 ORDER BY x, y", "NULL|4\n1|2\n1|2\n2|3"),
            (
                "SELECT * FROM m INTERSECT ALL SELECT * FROM m ORDER BY x, y",
                "NULL|4\nNULL|4\n1|2\n1|2\n2|3",
            ),
            ("SELECT * FROM m INTERSECT SELECT * FROM m ORDER BY x, y", "NULL|4\n1|2\n2|3"),
            ("SELECT * FROM m EXCEPT SELECT 1, 2 ORDER BY x, y", "NULL|4\n2|3"),
            (
                "SELECT COUNT(*) FROM (SELECT s FROM w INTERSECT ALL SELECT s FROM w WHERE s = 'a') t",
                "2",
            ),
            ("SELECT s FROM w EXCEPT ALL (SELECT 'A' UNION ALL SELECT 'a')", "b"),
        ] {
            assert_eq!(rows(session, statement).await, expected, "{statement}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planned_shapes_that_were_refused_answer() {
    for server in [Server::new(), Server::optimizing()] {
        let session = &mut server.session();
        for statement in [
            "CREATE TABLE us (p INT UNSIGNED, c INT)",
            "INSERT INTO us VALUES (1, 2), (2, 3), (3, NULL)",
            "CREATE TABLE l (oid INT, price DECIMAL(7,2))",
            "INSERT INTO l VALUES (1, 2), (2, 5), (3, NULL)",
            "CREATE TABLE words (id INT PRIMARY KEY, v VARCHAR(9), e ENUM('z', 'a'))",
            "INSERT INTO words VALUES (1, 'b', 'z'), (2, 'C', 'a'), (3, NULL, NULL), (4, 'a', 'a')",
        ] {
            run(session, statement).await.unwrap();
        }
        for (statement, expected) in [
            (
                "WITH RECURSIVE r AS (SELECT p n FROM us WHERE p = 1 UNION SELECT u.c FROM us u JOIN r ON u.p = r.n) SELECT * FROM r",
                "1\n2\n3\nNULL",
            ),
            (
                "WITH RECURSIVE r AS (SELECT 1 = 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
                "1\n2\n3",
            ),
            ("SELECT p FROM us WHERE p < 3 GROUP BY p, p WITH ROLLUP", "1\n1\n2\n2\nNULL"),
            (
                "SELECT p FROM us WHERE c IN (SELECT l.price FROM l WHERE l.oid = us.p) OR p = 3 ORDER BY p",
                "1\n3",
            ),
            ("SELECT (2 BETWEEN 1 AND 3) v UNION ALL SELECT NULL", "1\nNULL"),
            (
                "SELECT (c BETWEEN 1 AND 2) v FROM us WHERE p = 1 UNION ALL SELECT NULL UNION ALL SELECT 7",
                "1\nNULL\n7",
            ),
            (
                "SELECT MAX(v) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM words ORDER BY id",
                "b\nC\nC\na",
            ),
            (
                "SELECT MIN(e) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM words ORDER BY id",
                "z\na\na\na",
            ),
            (
                "SELECT MIN(v) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM words ORDER BY id",
                "b\nC\na\na",
            ),
        ] {
            assert_eq!(rows(session, statement).await, expected, "{statement}");
        }
    }
}
