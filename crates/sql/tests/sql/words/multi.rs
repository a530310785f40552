//! Groups by multi-value attributes: what Sphinx 2.2.11 answered of the same rows, and random sets against a count of each
//! number.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use remora_sql::Session;

use super::{
    all, sets,
    support::{Server, random::Random, rows, run},
};

async fn filled(session: &mut Session) {
    all(
        session,
        &[
            "CREATE TABLE a (id BIGINT UNSIGNED PRIMARY KEY, title TEXT, g INT UNSIGNED NOT NULL, \
             h INT UNSIGNED NOT NULL, tags MULTI, big MULTI64) words='title'",
            "INSERT INTO a VALUES (1, 'reef one', 1, 10, (1,2,3), (5000000000,7)), \
             (2, 'reef reef two', 1, 20, (2,3), (7)), (3, 'sea three', 2, 10, (3), ())",
            "INSERT INTO a VALUES (4, 'reef four', 2, 30, (), (-5,7)), (5, 'fish five', 3, 10, (9,1), (8))",
        ],
    )
    .await;
}

/// In Sphinx's dialect.
const ASKED_OF_SPHINX: &[(&str, &str)] = &[
    (
        "SELECT id, tags, GROUPBY() gb, COUNT(*) c FROM a WHERE MATCH('reef') GROUP BY tags ORDER BY c DESC, gb ASC",
        "1|1,2,3|2|2 1|1,2,3|3|2 1|1,2,3|1|1",
    ),
    (
        "SELECT id, tags, GROUPBY() gb, COUNT(*) c, SUM(h), MIN(h) FROM a GROUP BY tags \
         WITHIN GROUP ORDER BY id DESC ORDER BY gb ASC",
        "5|1,9|1|2|20|10 2|2,3|2|2|30|10 3|3|3|3|40|10 5|1,9|9|1|10|10",
    ),
    ("SELECT id, GROUPBY() gb, COUNT(*) c FROM a GROUP BY tags HAVING c>1", "1|1|2 1|2|2 1|3|3"),
    (
        "SELECT id, GROUPBY() gb, COUNT(*) c FROM a GROUP BY big ORDER BY gb ASC",
        "4|-5|1 1|7|3 5|8|1 1|5000000000|1",
    ),
    (
        "SELECT id, GROUPBY() gb, COUNT(DISTINCT g) c FROM a GROUP BY tags ORDER BY gb ASC",
        "1|1|2 1|2|1 1|3|2 5|9|1",
    ),
    ("SELECT id FROM a LIMIT 1 FACET tags ORDER BY FACET() ASC", "1 ; 1|2 2|2 3|3 9|1"),
    ("SELECT id FROM a LIMIT 1 FACET tags BY g", "1 ; 1,2,3|2 3|2 1,9|1"),
    (
        "SELECT id FROM a WHERE tags = 1 AND g > 0 LIMIT 1 FACET tags ORDER BY FACET() DESC FACET g",
        "1 ; 9|1 3|1 2|1 1|2 ; 1|1 3|1",
    ),
    ("SELECT id FROM a LIMIT 1 FACET g BY tags ORDER BY COUNT(*) DESC", "1 ; 1|3 1|2 1|2 3|1"),
    (
        "SELECT id FROM a LIMIT 1 FACET tags AS t ORDER BY COUNT(*) DESC",
        "1 ; 1,2,3|3 1,2,3|2 1,2,3|2 1,9|1",
    ),
];

/// Statements that Sphinx has no syntax for, or counts wrongly.
const BEYOND_SPHINX: &[(&str, &str)] = &[
    (
        "SELECT id, GROUPBY() gb, COUNT(*) c FROM a GROUP 2 BY tags WITHIN GROUP ORDER BY id DESC \
         ORDER BY gb ASC",
        "5|1|2 1|1|2 2|2|2 1|2|2 3|3|3 2|3|3 5|9|1",
    ),
    (
        "SELECT id, GROUPBY() gb FROM a GROUP 2 BY tags HAVING COUNT(*) > 1 ORDER BY GROUPBY() DESC",
        "1|3 2|3 1|2 2|2 1|1 5|1",
    ),
    ("SELECT g, COUNT(DISTINCT tags) c FROM a GROUP BY g ORDER BY g ASC", "1|3 2|1 3|2"),
    ("SELECT g, COUNT(DISTINCT big) c FROM a GROUP 2 BY g ORDER BY g ASC", "1|2 1|2 2|2 2|2 3|1"),
    (
        "SELECT id FROM a LIMIT 1 FACET tags DISTINCT g ORDER BY FACET() ASC",
        "1 ; 1|2|2 2|2|1 3|3|2 9|1|1",
    ),
    ("SELECT id FROM a LIMIT 1 FACET g DISTINCT tags ORDER BY g ASC", "1 ; 1|2|3 2|2|1 3|1|2"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_in_the_group_of_each_of_its_numbers() {
    let server = Server::new();
    let session = &mut server.session();
    filled(session).await;
    all(session, &["SET sql_dialect = 'sphinx'"]).await;
    for (statement, expected) in ASKED_OF_SPHINX.iter().chain(BEYOND_SPHINX) {
        for _ in 0..2 {
            assert_eq!(sets(session, statement).await, *expected, "{statement}");
        }
    }
    for (statement, message) in [
        ("SELECT id FROM a LIMIT 1 FACET tags, g", "MVA values can't be used in multiple group-by"),
        ("SELECT id FROM a GROUP BY tags, big", "MVA values can't be used in multiple group-by"),
        ("SELECT id FROM a GROUP BY tags ORDER BY tags ASC", "order by MVA is undefined"),
    ] {
        let told = run(session, statement).await.unwrap_err().message;
        assert!(told.contains(message), "{statement}: {told}");
    }
    all(session, &["SET sql_dialect = 'mysql'"]).await;
    for (statement, expected) in [
        ("SELECT tags, COUNT(*) FROM a GROUP BY tags ORDER BY tags", "1|2 2|2 3|3 9|1"),
        (
            "SELECT g, tags, COUNT(*), SUM(h) FROM a GROUP BY g, tags ORDER BY g, tags",
            "1|1|1|10 1|2|2|30 1|3|2|30 2|3|1|10 3|1|1|10 3|9|1|10",
        ),
        (
            "SELECT tags t, COUNT(*) c FROM a GROUP BY t HAVING tags > 1 AND c > 1 ORDER BY c DESC, t",
            "3|3 2|2",
        ),
        ("SELECT tags, MAX(id) FROM a GROUP BY 1 ORDER BY 1", "1|5 2|2 3|3 9|5"),
        (
            "SELECT t.tags, COUNT(*) FROM a t JOIN a u ON u.g = t.g GROUP BY t.tags ORDER BY t.tags",
            "1|3 2|4 3|6 9|1",
        ),
        // Rows that an outer join fills with NULL have no numbers.
        ("SELECT t.tags, COUNT(*) FROM a u LEFT JOIN a t ON t.id = u.id + 100 GROUP BY t.tags", ""),
        (
            "SELECT t.tags, COUNT(*) FROM a u LEFT JOIN a t ON t.id = u.id + 3 GROUP BY t.tags \
             ORDER BY t.tags",
            "1|1 9|1",
        ),
        (
            "SELECT tags, big, COUNT(*) FROM a WHERE id < 3 GROUP BY tags, big ORDER BY tags, big",
            "1|7|1 1|5000000000|1 2|7|2 2|5000000000|1 3|7|2 3|5000000000|1",
        ),
        ("SELECT MAX(c) FROM (SELECT tags, COUNT(*) c FROM a GROUP BY tags) d", "3"),
        ("SELECT tags, COUNT(*) FROM a WHERE tags = 9 GROUP BY tags ORDER BY tags", "1|1 9|1"),
        ("SELECT id FROM a LIMIT 1 FACET tags ORDER BY FACET() DESC LIMIT 2", "1 ; 9|1 3|3"),
        ("SELECT COUNT(DISTINCT tags), COUNT(DISTINCT big) FROM a WHERE id > 9", "0|0"),
    ] {
        for _ in 0..3 {
            assert_eq!(sets(session, statement).await, expected, "{statement}");
        }
    }
    for (statement, message) in [
        ("SELECT tags, COUNT(*) FROM a GROUP BY tags WITH ROLLUP", "WITH ROLLUP"),
        ("SELECT tags FROM (SELECT tags FROM a) d GROUP BY tags", "GROUP BY of a multi-value"),
        ("SELECT COUNT(*) OVER (PARTITION BY tags) FROM a", "PARTITION BY of a multi-value"),
    ] {
        let told = run(session, statement).await.unwrap_err().message;
        assert!(told.contains(message), "{statement}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn facets_are_of_columns_with_their_tables_or_without() {
    let server = Server::new();
    let session = &mut server.session();
    filled(session).await;
    for (statement, expected) in [
        ("SELECT id FROM a LIMIT 1 FACET a.tags ORDER BY FACET() ASC", "1 ; 1|2 2|2 3|3 9|1"),
        ("SELECT id FROM a LIMIT 1 FACET a.`tags` ORDER BY tags DESC LIMIT 2", "1 ; 9|1 3|3"),
        ("SELECT id FROM a LIMIT 1 FACET a.g ORDER BY g", "1 ; 1|2 2|2 3|1"),
    ] {
        assert_eq!(sets(session, statement).await, expected, "{statement}");
    }
    for (statement, message) in [
        // An expression of another SELECT is not a column.
        ("SELECT id, g * 2 AS p FROM a LIMIT 1 FACET p", "Unknown column 'p' in 'group statement'"),
        ("SELECT GROUPBY() AS p, COUNT(*) FROM a GROUP BY p", "Unknown column 'p'"),
        ("SELECT GROUPBY() AS p, COUNT(*) FROM a GROUP BY 1", "Can't group on 'p'"),
    ] {
        let told = run(session, statement).await.unwrap_err().message;
        assert!(told.contains(message), "{statement}: {told}");
    }
}

/// GROUPBY() of several columns is a number that identifies the combination of their values.
#[tokio::test(flavor = "multi_thread")]
async fn groupby_of_several_columns_is_sphinxs_number() {
    let server = Server::new();
    let session = &mut server.session();
    filled(session).await;
    let by_text = "-6220680372190866204|1 3001441764907505720|1 8085227193059312510|1 \
                   -3037012627973723827|1 267303071211169854|1";
    for (statement, expected) in [
        (
            "SELECT id, GROUPBY() gb, g, h, COUNT(*) c FROM a GROUP BY g, h ORDER BY g ASC, h DESC",
            "2|-5988839322439006800|1|20|1 1|7993273937335365998|1|10|1 4|6034341829959011129|2|30|1 \
             3|-2306698979942510163|2|10|1 5|-7998709908043187860|3|10|1",
        ),
        (
            "SELECT id, GROUPBY() gb, COUNT(*) c FROM a GROUP BY h, g ORDER BY gb ASC LIMIT 2",
            "5|-7998709908043187860|1 2|-5988839322439006800|1",
        ),
        ("SELECT GROUPBY() gb, COUNT(*) FROM a GROUP BY title, g ORDER BY id ASC", by_text),
        ("SELECT GROUPBY() gb, COUNT(*) FROM a GROUP BY g, title ORDER BY id ASC", by_text),
        (
            "SELECT id, GROUPBY() gb, COUNT(*) FROM a GROUP BY g, g ORDER BY id ASC",
            "1|-8517097267634966620|2 3|-1820151046732198393|2 5|-4052466453699787802|1",
        ),
        (
            "SELECT id, GROUPBY() gb FROM a GROUP 2 BY g, h WITHIN GROUP ORDER BY id DESC \
             ORDER BY GROUPBY() DESC LIMIT 2",
            "1|7993273937335365998 4|6034341829959011129",
        ),
        (
            "SELECT id, GROUPBY() gb, COUNT(*) c FROM a GROUP BY g, h HAVING gb > 0 ORDER BY id ASC",
            "1|7993273937335365998|1 4|6034341829959011129|1",
        ),
    ] {
        all(session, &["SET sql_dialect = 'sphinx'"]).await;
        assert_eq!(sets(session, statement).await, expected, "{statement}");
    }
    all(session, &["SET sql_dialect = 'mysql'"]).await;
    let asked = "SELECT GROUPBY(), g, h FROM a GROUP BY g, h ORDER BY g, h LIMIT 1";
    assert_eq!(sets(session, asked).await, "7993273937335365998|1|10");
}

/// As `searchd` takes them: by their names, wherever the table has them.
#[tokio::test(flavor = "multi_thread")]
async fn groupby_takes_several_columns_by_their_names() {
    let server = Server::new();
    let session = &mut server.session();
    all(
        session,
        &[
            "CREATE TABLE y (id BIGINT UNSIGNED PRIMARY KEY, year INT UNSIGNED NOT NULL, \
             ts INT UNSIGNED NOT NULL)",
            "INSERT INTO y VALUES (1, 2001, 1000)",
            "CREATE TABLE z (id INT PRIMARY KEY, n INT NOT NULL, e DATETIME, d DATE)",
            "INSERT INTO z VALUES (1, 7, '2001-09-09 01:46:40', '1970-01-02'), (2, 8, NULL, NULL)",
            "CREATE TABLE k (id INT PRIMARY KEY, h INT NOT NULL)",
            "INSERT INTO k VALUES (1, 10), (2, 20), (3, 10), (4, 30), (5, 10)",
            "SET time_zone = '+00:00'",
        ],
    )
    .await;
    for (statement, expected) in [
        (
            "SELECT id, GROUPBY() FROM k GROUP BY id, h ORDER BY id",
            "1|9156436522380233934 2|8790660525774805939 3|4691805708445055116 \
             4|-3611575674121444737 5|227174894509876298",
        ),
        ("SELECT GROUPBY() FROM y GROUP BY ts, year", "-8708154742512278096"),
        ("SELECT GROUPBY() FROM y GROUP BY year, y.TS", "-8708154742512278096"),
        ("SELECT GROUPBY(), Year, ts FROM y GROUP BY 2, 3", "-8708154742512278096|2001|1000"),
        ("SELECT GROUPBY(), year AS A FROM y GROUP BY ts, a", "2199997744783324928|2001"),
        // As SphinxAPI sends moments.
        (
            "SELECT GROUPBY(), n FROM z GROUP BY n, d, e ORDER BY n",
            "4029753543449761825|7 8766388750687564813|8",
        ),
    ] {
        assert_eq!(sets(session, statement).await, expected, "{statement}");
    }
}

/// A row of a table: what it is grouped by besides, and its numbers.
type Numbered = BTreeMap<u64, (u64, BTreeSet<i64>)>;

/// For each number the count of its rows, and the sum and distinct count of their grouping values.
fn counted(table: &Numbered) -> String {
    let mut groups: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for (g, numbers) in table.values() {
        for number in numbers {
            groups.entry(*number).or_default().push(*g);
        }
    }
    let mut told = Vec::new();
    for (number, all) in groups {
        let different: BTreeSet<&u64> = all.iter().collect();
        told.push(format!(
            "{number}|{}|{}|{}",
            all.len(),
            all.iter().sum::<u64>(),
            different.len()
        ));
    }
    told.join("\n")
}

async fn compare(session: &mut Session, table: &Numbered) {
    for dialect in ["mysql", "sphinx"] {
        all(session, &[&format!("SET sql_dialect = '{dialect}'")]).await;
        let asked = "SELECT GROUPBY() AS n, COUNT(*), SUM(g), COUNT(DISTINCT g) FROM r GROUP BY tags \
                     ORDER BY n ASC LIMIT 1000";
        for _ in 0..3 {
            assert_eq!(rows(session, asked).await, counted(table), "{dialect}");
        }
        for group in 0..5 {
            let of_group = table.values().filter(|(g, _)| *g == group);
            let numbers: BTreeSet<i64> = of_group.flat_map(|(_, it)| it).copied().collect();
            let asked = format!("SELECT COUNT(DISTINCT tags) FROM r WHERE g = {group}");
            assert_eq!(rows(session, &asked).await, numbers.len().to_string(), "{asked}");
        }
    }
    all(session, &["SET sql_dialect = 'mysql'"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_sets_are_counted_by_each_number() {
    for server in [Server::new(), Server::optimizing()] {
        let session = &mut server.session();
        let mut random = Random::seeded();
        all(session, &["CREATE TABLE r (id INT PRIMARY KEY, g INT NOT NULL, tags MULTI64)"]).await;
        let mut table = Numbered::new();
        for part in 0..3 {
            let mut insert = "INSERT INTO r VALUES ".to_owned();
            for id in part * 200..part * 200 + 200 {
                let numbers = (0..random.below(7)).map(|_| random.below(30) as i64 - 9).collect();
                let row: (u64, BTreeSet<i64>) = (random.below(5), numbers);
                let list: Vec<String> = row.1.iter().map(i64::to_string).collect();
                let comma = if id > part * 200 { "," } else { "" };
                write!(insert, "{comma}({id},{},'{}')", row.0, list.join(",")).unwrap();
                table.insert(id, row);
            }
            all(session, &[&insert]).await;
        }
        compare(session, &table).await;
        all(
            session,
            &["DELETE FROM r WHERE id % 7 = 3", "UPDATE r SET tags = (5,6) WHERE id < 20"],
        )
        .await;
        table.retain(|id, _| id % 7 != 3);
        table.range_mut(..20).for_each(|(_, row)| row.1 = [5, 6].into());
        compare(session, &table).await;
        all(session, &["OPTIMIZE TABLE r"]).await;
        compare(session, &table).await;
    }
}

/// More numbers than one batch holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_sets_are_grouped_too() {
    let server = Server::new();
    let session = &mut server.session();
    let list = |step: usize| {
        (0..20_000).map(|number| (number * step).to_string()).collect::<Vec<_>>().join(",")
    };
    let (ones, twos) = (list(1), list(2));
    all(
        session,
        &[
            "CREATE TABLE b (id INT PRIMARY KEY, tags MULTI)",
            &format!("INSERT INTO b VALUES (1, '{ones}'), (2, ''), (3, '{twos}')"),
        ],
    )
    .await;
    let asked = "SELECT c, COUNT(*), MIN(n), MAX(n) FROM \
                 (SELECT tags AS n, COUNT(*) AS c FROM b GROUP BY tags) d GROUP BY c ORDER BY c";
    // Below 20,000 the even ones are twice there.
    assert_eq!(rows(session, asked).await, "1|20000|1|39998\n2|10000|0|19998");
    assert_eq!(rows(session, "SELECT COUNT(DISTINCT tags) FROM b").await, "30000");
}
