//! Conditions on parts of dates, which the engine narrows down to stretches of time, select the rows that the same
//! conditions select where nothing is pushed down.

use crate::support::random::Random;
use crate::support::{Server, rows, run};

const COLUMNS: [&str; 3] = ["d", "t", "s"];
const ZONES: [&str; 4] = ["+00:00", "+14:00", "-12:00", "+05:30"];

fn date(random: &mut Random) -> String {
    let year = random.choose(&[1971, 1999, 2023, 2023, 2024, 2024, 2024]);
    let month = 1 + random.below(12);
    let day = random.choose(&[1, 2, 15, 27, 28, 28, 28]);
    format!("{year}-{month:02}-{day:02}")
}

fn moment(random: &mut Random) -> String {
    let time =
        random.choose(&["00:00:00", "23:59:59.999999", "23:59:59", "12:30:00.5", "00:00:01"]);
    format!("{} {time}", date(random))
}

/// A row; dates and datetimes may be zero or have zero parts.
fn row(random: &mut Random, id: u64) -> String {
    let mut any = |usual: fn(&mut Random) -> String, odd: &[&str]| match random.below(8) {
        0 => "NULL".to_owned(),
        1 if !odd.is_empty() => format!("'{}'", random.choose(odd)),
        _ => format!("'{}'", usual(random)),
    };
    let d = any(date, &["0000-00-00", "2024-00-00", "2023-08-00", "9999-12-31"]);
    let t = any(moment, &["0000-00-00", "2024-00-00 10:00:00", "9999-12-31 23:59:59.999999"]);
    let s = any(moment, &["0000-00-00", "2024-02-29 23:00:00", "2037-12-31 23:59:59"]);
    format!("({id}, {d}, {t}, {s})")
}

fn condition(random: &mut Random, depth: u32) -> String {
    if depth > 0 && random.below(3) == 0 {
        let both = random.choose(&["AND", "OR"]);
        return format!(
            "({} {both} {})",
            condition(random, depth - 1),
            condition(random, depth - 1)
        );
    }
    let column = random.choose(&COLUMNS);
    let compared = random.choose(&["=", "<", "<=", ">", ">=", "<=>", "<>"]);
    let year = random.choose(&[0, 1970, 1971, 2022, 2023, 2024, 9999]);
    match random.below(8) {
        0 => format!("DATE({column}) {compared} '{}'", date(random)),
        1 => format!("'{}' {compared} DATE({column})", moment(random)),
        2 => format!("DATE({column}) BETWEEN '{}' AND '{}'", date(random), date(random)),
        3 => format!("DATE({column}) IN ('{}', '{}', '2024-02-29')", date(random), date(random)),
        4 => format!("YEAR({column}) {compared} {year}"),
        5 => format!("YEAR({column}) IN ({year}, 2023)"),
        6 => format!("MONTH({column}) {compared} {}", random.below(13)),
        _ => {
            let whole = moment(random);
            let length = 1 + random.below(whole.len() as u64) as usize;
            let ends = random.choose(&["%", "%", "_%", "%0%", ""]);
            format!("{column} LIKE '{}{ends}'", &whole[..length])
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_of_time_lose_no_row() {
    let server = Server::optimizing();
    let mut session = server.session();
    let session = &mut session;
    let mut random = Random::seeded();
    for statement in ["SET sql_mode = ''", "SET time_zone = '+00:00'"] {
        run(session, statement).await.unwrap();
    }
    for (name, keys) in [("plain", ""), ("keyed", ", KEY (d), KEY (t), KEY (s)")] {
        let columns = "id INT PRIMARY KEY, d DATE, t DATETIME(6), s TIMESTAMP(6) NULL";
        run(session, &format!("CREATE TABLE {name} ({columns}{keys})")).await.unwrap();
        let values: Vec<String> = (0..400).map(|id| row(&mut random, id)).collect();
        run(session, &format!("INSERT INTO {name} VALUES {}", values.join(", "))).await.unwrap();
    }
    let mut found = 0;
    for number in 0..600 {
        let zone = random.choose(&ZONES);
        run(session, &format!("SET time_zone = '{zone}'")).await.unwrap();
        let condition = condition(&mut random, 2);
        let table = random.choose(&["plain", "keyed"]);
        let of = |condition: &str| format!("SELECT id FROM {table} WHERE {condition} ORDER BY id");
        let narrowed = rows(session, &of(&condition)).await;
        let tested = rows(session, &of(&format!("IF({condition}, 1, 0) = 1"))).await;
        assert_eq!(narrowed, tested, "{number}: {condition} in {zone} of {table}");
        found += usize::from(!narrowed.is_empty());
    }
    assert!(found > 200, "only {found} conditions found rows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_a_date_is_looked_up_by_an_index() {
    let server = Server::optimizing();
    let mut session = server.session();
    let session = &mut session;
    for statement in [
        "SET cte_max_recursion_depth = 10000",
        "CREATE TABLE t (id INT PRIMARY KEY, t DATETIME NOT NULL, KEY (t))",
        "INSERT INTO t WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 5000) \
         SELECT n, DATE '2000-01-01' + INTERVAL 3 * n DAY FROM n",
    ] {
        run(session, statement).await.unwrap();
    }
    for condition in
        ["DATE(t) = '2023-08-12'", "t LIKE '2023-08-12%'", "YEAR(t) = 2023 AND MONTH(t) = 8"]
    {
        let statement = format!("SELECT id FROM t WHERE {condition} ORDER BY UUID()");
        let plan = rows(session, &format!("EXPLAIN {statement}")).await;
        assert!(plan.contains("range"), "{condition}: {plan}");
    }
}

/// As MySQL 9.7 answers: a text that is no date is an error beside a date, and the date of zeros in a list of several or as
/// a bound of BETWEEN, with a warning that ends a statement that writes.
#[tokio::test]
async fn texts_that_are_no_dates() {
    let server = Server::new();
    let mut session = server.session();
    let table = "CREATE TABLE d (dt DATE, ts DATETIME, tm TIMESTAMP NULL, n INT, KEY (dt)); INSERT INTO d VALUES \
                 ('2020-01-01','2020-01-01','2020-01-01',1), ('2021-01-01','2021-01-01','2021-01-01',2), \
                 (NULL,NULL,NULL,3)";
    run(&mut session, table).await.unwrap();
    for (condition, found) in [
        ("dt = ''", "1525 Incorrect DATE value: ''"),
        ("dt IN ('')", "1525 Incorrect DATE value: ''"),
        ("dt NOT IN ('')", "1525 Incorrect DATE value: ''"),
        ("dt NOT IN ('','2020-01-01')", "2"),
        ("ts IN ('','2020-01-01')", "1"),
        ("tm IN ('','2020-01-01')", "1"),
        ("dt IN ('2020-02-30','2020-01-01')", "1"),
        ("dt IN ('', 20200101)", "1"),
        ("dt IN ('', dt)", "1\n2"),
        ("dt BETWEEN '' AND '2020-06-01'", "1"),
        ("dt BETWEEN '2020-06-01' AND ''", ""),
        ("dt NOT BETWEEN '' AND 'x'", "1\n2"),
    ] {
        let query = format!("SELECT n FROM d WHERE {condition} ORDER BY n");
        assert_eq!(rows(&mut session, &query).await, found, "{condition}");
        if !found.starts_with("1525") {
            let warned = rows(&mut session, "SHOW COUNT(*) WARNINGS").await;
            assert_ne!(warned, "0", "{condition}");
        }
    }
    let truths = "SELECT dt BETWEEN '' AND '2020-06-01' FROM d ORDER BY n";
    assert_eq!(rows(&mut session, truths).await, "1\n0\nNULL");
    for change in [
        "DELETE FROM d WHERE dt BETWEEN '' AND '2020-06-01'",
        "UPDATE d SET n = 9 WHERE dt IN ('', '2020-01-01')",
    ] {
        assert_eq!(run(&mut session, change).await.unwrap_err().code.number(), 1292, "{change}");
    }
    run(&mut session, "SET sql_mode = ''; DELETE FROM d WHERE dt IN ('', '2020-01-01')")
        .await
        .unwrap();
    assert_eq!(rows(&mut session, "SELECT n FROM d ORDER BY n").await, "2\n3");
}
