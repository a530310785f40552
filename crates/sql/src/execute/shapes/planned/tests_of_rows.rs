//! Functions in cached plans, the ends of indexes, long texts, and the rows that statements change or lock.

use super::super::tests::{Fixture, fixture};

/// Texts of a shape.
fn texts(template: &str, literals: &[&str]) -> Vec<String> {
    literals.iter().map(|literal| template.replace('@', literal)).collect()
}

impl Fixture {
    /// Runs a template with several literals. All but the first are answered by a cached plan.
    fn kept_for(&mut self, template: &str, literals: &[&str], ordered: bool) {
        let texts = texts(template, literals);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.kept(&texts, ordered);
    }
}

/// A table whose rows are more than a connection's thread reads.
fn events() -> Fixture {
    let mut fixture = fixture();
    fixture.run(
        "CREATE TABLE shop.events (id INT PRIMARY KEY, who INT, made DATETIME(3), seen TIMESTAMP NULL, \
         took TIME(2), y YEAR, d DOUBLE, f FLOAT, n DECIMAL(9,2), note VARCHAR(40), doc JSON, \
         KEY (who, made), KEY (who, took), KEY (seen), KEY (took), KEY (y), KEY (d), KEY (f), KEY (n))",
    );
    for from in (0..12_000).step_by(2_000) {
        let rows: Vec<String> = (from..from + 2_000).map(row_of).collect();
        fixture.run(&format!("INSERT INTO shop.events VALUES {}", rows.join(", ")));
    }
    fixture
}

fn row_of(id: i64) -> String {
    let or_null = |value: String| if id % 7 == 0 { "NULL".to_owned() } else { value };
    let day = id * 5 % 28 + 1;
    format!(
        "({id}, {}, '2024-03-{day:02} 10:00:{:02}.5', {}, {}, {}, {}, {}, {}, 'Note {id}-2024-03-{day:02}', '{{\"a\": \"x{}\"}}')",
        id % 40,
        id % 60,
        or_null(format!("'2024-03-{day:02} 01:02:{:02}'", id * 7 % 60)),
        or_null(format!("'{}:00:{:02}.25'", id * 3 % 800 - 400, id % 60)),
        or_null((1970 + id % 100).to_string()),
        or_null(format!("{}e-1", id * 11 % 9_000 - 4_000)),
        or_null(format!("{}.5", id % 300 - 150)),
        or_null(format!("{}.25", id % 900 - 450)),
        id % 5,
    )
}

#[test]
fn all_functions_of_a_row_may_be_in_a_plan() {
    let mut fixture = events();
    for expressions in [
        "FROM_UNIXTIME(id * 86400), FROM_UNIXTIME(id, '%Y %m'), UNIX_TIMESTAMP(made)",
        "LPAD(id, 10, '0'), RPAD(note, 24, '-'), REPEAT(note, 3), SPACE(3), QUOTE(note), SOUNDEX(note)",
        "WEEK(made), WEEK(made, 3), YEARWEEK(made), WEEKOFYEAR(made), TIME(made), TO_SECONDS(made), MAKEDATE(2024, id)",
        "STR_TO_DATE(SUBSTRING_INDEX(note, '-', -3), '%Y-%m-%d'), DATE_FORMAT(made, '%W'), TIME_FORMAT(took, '%H')",
        "CONVERT_TZ(made, '+00:00', '+09:00'), TIMESTAMPADD(HOUR, id, made), ADDTIME(made, '01:00:00'), TIMEDIFF(made, seen)",
        "REGEXP_REPLACE(note, '[0-9]+', '#'), REGEXP_SUBSTR(note, '[0-9]+'), REGEXP_INSTR(note, '-'), REGEXP_LIKE(note, '9$')",
        "JSON_SEARCH(doc, 'one', 'x3'), JSON_SET(doc, '$.b', id), JSON_PRETTY(doc), JSON_OVERLAPS(doc, '[1]'), JSON_QUOTE(note)",
        "SEC_TO_TIME(id), MAKETIME(id % 800, 1, 2), PERIOD_ADD(202401, id), EXTRACT(YEAR_MONTH FROM made)",
        "PI() * id, SIN(id), ATAN2(id, 2), OCT(id), INET_NTOA(id), INET_ATON('1.2.3.4') + id, HEX(WEIGHT_STRING(note))",
        "CHARSET(note), COLLATION(note), EXPORT_SET(id, 'Y', 'N', ',', 4), MAKE_SET(id, 'a', 'b'), INTERVAL(id, 3, 5, 900)",
        "DATABASE(), USER(), CURRENT_USER(), CONNECTION_ID(), VERSION(), LAST_INSERT_ID(), ROW_COUNT()",
    ] {
        let template =
            format!("SELECT id, {expressions} FROM shop.events WHERE id BETWEEN @ AND @ + 9");
        fixture.kept_for(&template, &["5", "3", "70", "11999", "20000"], false);
    }
}

#[test]
fn functions_of_the_session_see_the_session_of_each_run() {
    let mut fixture = events();
    fixture.run("CREATE TABLE shop.made (id INT PRIMARY KEY AUTO_INCREMENT, v INT)");
    let found =
        "SELECT id, v + 0 AS w, LAST_INSERT_ID() FROM shop.made WHERE id = LAST_INSERT_ID()";
    for v in 1..5 {
        fixture.run(&format!("INSERT INTO shop.made (v) VALUES ({v}0)"));
        let general = fixture.general(found);
        assert_eq!(general.rows.len(), 1);
        match fixture.quick(found) {
            Some(quick) => assert_eq!(quick, general),
            None => assert_eq!(v, 1),
        }
    }
    // Of a time of the day a date is made by the current day, which the plan must not hold.
    let of_day = "SELECT id, TIMESTAMP(SEC_TO_TIME(id)), TIMESTAMP(SEC_TO_TIME(7)), CURTIME(), UTC_TIME(3), made > CURTIME() \
                  FROM shop.events WHERE id BETWEEN 4 AND 6";
    let zoned = "SELECT id, FROM_UNIXTIME(id), seen, WEEK(made), 7 / id FROM shop.events WHERE id BETWEEN 8 AND 9";
    for now in ["2026-02-14 12:00:00", "2026-02-27 23:59:59", "2024-03-02 10:00:01", "2030-01-01"] {
        fixture.run(&format!("SET timestamp = UNIX_TIMESTAMP('{now}')"));
        fixture.kept(
            &[
                &format!("{of_day} AND id <> 7 /* {now} */"),
                &format!("{of_day} AND id <> 5 /* {now} */"),
            ],
            false,
        );
        let general = fixture.general(of_day);
        if let Some(quick) = fixture.quick(of_day) {
            assert_eq!(quick, general, "{now}");
        }
    }
    for set in [
        "time_zone = '+05:00'",
        "time_zone = '-08:00'",
        "default_week_format = 3",
        "div_precision_increment = 2",
    ] {
        fixture.run(&format!("SET {set}"));
        for _ in 0..3 {
            let general = fixture.general(zoned);
            if let Some(quick) = fixture.quick(zoned) {
                assert_eq!(quick, general, "{set}");
            }
        }
    }
}

#[test]
fn the_ends_of_indexes_answer_without_reading_other_rows() {
    let mut fixture = events();
    let mut aggregated = Vec::new();
    for template in [
        "SELECT MAX(id) + 1 FROM shop.events WHERE id <> @",
        "SELECT COALESCE(MAX(id), 0) + 1 AS next FROM shop.events WHERE id > @",
        "SELECT COUNT(*), MAX(seen) FROM shop.events WHERE id <> @",
        "SELECT MIN(seen), MAX(seen), COUNT(*) AS c FROM shop.events WHERE id <> @",
        "SELECT MIN(took), MAX(took) FROM shop.events WHERE id <> @",
        "SELECT MAX(took) FROM shop.events WHERE id <> @",
        "SELECT MIN(d), MAX(d) FROM shop.events WHERE id <> @",
        "SELECT MIN(f), MAX(f) FROM shop.events WHERE id <> @",
        "SELECT MIN(n) * 2, MAX(n), MIN(id) FROM shop.events WHERE id <> @",
        "SELECT MAX(made), COUNT(*) FROM shop.events WHERE who = @",
        "SELECT MAX(took) AS longest, MIN(took) FROM shop.events WHERE who = @",
        "SELECT COUNT(*) + 1, MAX(made) FROM shop.events WHERE who = @ AND made < '2024-03-20'",
        "SELECT IFNULL(MAX(id), -1), DATE(MAX(made)) FROM shop.events WHERE who = @",
    ] {
        fixture.kept_for(template, &["5", "3", "39", "20", "999999"], false);
        let lines = fixture.measured(&template.replace('@', "4"));
        // Rows that were read would have been aggregated.
        if lines.iter().any(|line| line.contains("Aggregate")) {
            aggregated.push((template, lines));
        }
    }
    assert!(aggregated.is_empty(), "{aggregated:#?}");
    for template in [
        "SELECT e.id + 0, e.made FROM shop.events e WHERE e.id = (SELECT MAX(x.id) FROM shop.events x WHERE x.who <> @)",
        "SELECT s.o, (SELECT MAX(e.made) FROM shop.events e WHERE e.who = s.o) AS last FROM shop.sold s WHERE s.n = @ AND s.w = 1",
        "SELECT MAX(id) + 1 FROM shop.events WHERE who = @ AND UPPER(note) LIKE '%9'",
    ] {
        fixture.kept_for(template, &["1", "3", "2", "4"], false);
    }
    // Rows that are gone, and those that are not in a file yet.
    fixture.run("DELETE FROM shop.events WHERE id > 11000 OR seen > '2024-03-27'");
    fixture.run("INSERT INTO shop.events (id, took) VALUES (-5, '-838:59:59')");
    for text in [
        "SELECT MAX(id) + 1 FROM shop.events WHERE id <> 3",
        "SELECT MIN(took), MAX(took), MIN(y), MAX(y) FROM shop.events WHERE id <> 3",
        "SELECT MIN(seen), MAX(seen), COUNT(*) AS c FROM shop.events WHERE id <> 3",
    ] {
        // One of them is new.
        let _ = fixture.quick(text);
        assert_eq!(fixture.quick(text).unwrap(), fixture.general(text), "{text}");
    }
    fixture.run("DELETE FROM shop.events");
    let text = "SELECT MIN(seen), MAX(seen), COUNT(*) AS c FROM shop.events WHERE id <> 3";
    assert_eq!(fixture.quick(text).unwrap(), fixture.general(text));
}

/// MySQL 9.7.4 gives these: of texts that are equal in the index the first or the last one in it.
#[test]
fn the_least_and_greatest_texts_are_those_at_the_ends_of_their_index() {
    let mut fixture = fixture();
    fixture.run(
        "CREATE TABLE shop.words (id INT PRIMARY KEY, w VARCHAR(9) COLLATE utf8mb4_0900_ai_ci, v VARCHAR(9), \
         KEY (w), KEY (v(2)))",
    );
    fixture.run("INSERT INTO shop.words VALUES (1, 'b', 'b'), (2, 'Zoë', 'Zoë'), (3, 'A', 'A'), (4, 'a', 'a'), (5, 'ZOE', 'ZOE'), (6, NULL, NULL), (7, 'zoe', 'x')");
    let text = "SELECT MIN(w) AS a, MAX(w) AS z, COUNT(*) AS c FROM shop.words";
    let mut rows = Vec::new();
    for _ in 0..3 {
        rows = fixture.quick(text).map(|found| found.rows).unwrap_or_default();
    }
    assert_eq!(rows, [[r#"Text("A")"#, r#"Text("zoe")"#, "Int(7)"]]);
    // With a condition, or by an index over a prefix, it is the first one that is read.
    for text in [
        "SELECT MIN(w) AS a, MAX(w) AS z FROM shop.words WHERE id < 100",
        "SELECT MIN(v) AS a, MAX(v) AS z, COUNT(*) AS c FROM shop.words",
    ] {
        fixture.kept(&[text, text], true);
    }
}

#[test]
fn rows_before_offset_are_counted() {
    let mut fixture = events();
    fixture.run("CREATE TABLE shop.people (who INT PRIMARY KEY, name VARCHAR(9), KEY (name))");
    let rows: Vec<String> = (0..30).map(|who| format!("({who}, 'p{}')", who % 7)).collect();
    fixture.run(&format!("INSERT INTO shop.people VALUES {}", rows.join(", ")));
    fixture.run("DELETE FROM shop.events WHERE id % 11 = 3");
    for template in [
        "SELECT id + 1, UPPER(note) FROM shop.events ORDER BY id LIMIT @, 5",
        "SELECT id + 1, UPPER(note) FROM shop.events ORDER BY id DESC LIMIT 3 OFFSET @",
        "SELECT id + 1, seen FROM shop.events ORDER BY seen DESC, id DESC LIMIT @, 7",
        "SELECT e.id, p.name FROM shop.events e LEFT JOIN shop.people p ON p.who = e.who ORDER BY e.id LIMIT @, 9",
        "SELECT e.id + 1, p.name, q.name FROM shop.events e LEFT JOIN shop.people p ON p.who = e.who \
         LEFT JOIN shop.people q ON q.who = p.who AND q.name > 'p3' ORDER BY e.seen, e.id LIMIT @, 4",
        // Several rows for one.
        "SELECT e.id, p.who + 0 FROM shop.events e LEFT JOIN shop.people p ON p.name = CONCAT('p', e.who) ORDER BY e.id, p.who LIMIT @, 4",
        "SELECT e.id, p.who + 0 FROM shop.events e JOIN shop.people p ON p.who = e.who ORDER BY e.id LIMIT @, 4",
    ] {
        fixture.kept_for(template, &["2000", "900", "1000", "10500", "10905", "20000"], true);
    }
    for text in [
        "SELECT id + 1, UPPER(note) FROM shop.events ORDER BY id LIMIT 10500, 5",
        "SELECT e.id, p.name FROM shop.events e LEFT JOIN shop.people p ON p.who = e.who ORDER BY e.id LIMIT 10500, 9",
    ] {
        let lines = fixture.measured(text);
        let read = lines.iter().find(|line| line.contains(" on e")).unwrap();
        assert!(read.contains("rows=5 ") || read.contains("rows=9 "), "{lines:#?}");
    }
}

#[test]
fn distinct_values_are_read_from_an_index_without_an_order_too() {
    let mut fixture = events();
    for text in
        ["SELECT DISTINCT who FROM shop.events", "SELECT DISTINCT who FROM shop.events LIMIT 7"]
    {
        let told = fixture.explained(text).remove(0);
        assert!(
            told.extra.iter().any(|said| said == "Using index for group-by"),
            "{text}: {told:?}"
        );
    }
    let mut quick = fixture.quick("SELECT DISTINCT who FROM shop.events").unwrap();
    let mut general = fixture.general("SELECT DISTINCT who FROM shop.events");
    quick.rows.sort();
    general.rows.sort();
    assert_eq!(quick.rows, general.rows);
}

#[test]
fn long_lists_of_columns_have_plans() {
    let mut fixture = fixture();
    let items: Vec<String> = (0..150)
        .map(|at| {
            format!("a.`id` + k.`q` AS `t{at}_identifier_of_row`, a.`body` AS `t{at}_body_of_row`")
        })
        .collect();
    let template = format!(
        "SELECT {} FROM articles a LEFT JOIN shop.stock k ON k.w = a.kind AND k.i = 3 WHERE a.id = @",
        items.join(", ")
    );
    assert!((8_000..16_000).contains(&template.len()), "{}", template.len());
    fixture.kept_for(&template, &["4", "7", "9", "500"], false);
}

#[test]
fn statements_find_the_rows_that_they_change_by_cached_plans() {
    let mut fixture = fixture();
    let of_rows = "(id INT PRIMARY KEY, who INT, state VARCHAR(9), n INT, made DATETIME, KEY (who), KEY (state))";
    for table in ["one", "other"] {
        fixture.run(&format!("CREATE TABLE shop.{table} {of_rows}"));
        let rows = (0..300_usize).map(|id| {
            format!(
                "({id}, {}, '{}', {id}, '2024-03-{:02}')",
                id % 20,
                ["new", "paid", "sent"][id % 3],
                id % 28 + 1
            )
        });
        let rows: Vec<String> = rows.collect();
        fixture.run(&format!("INSERT INTO shop.{table} VALUES {}", rows.join(", ")));
    }
    for template in [
        "UPDATE shop.# SET state = 'x@' WHERE who = @",
        "UPDATE shop.# SET n = n + 10, made = made + INTERVAL 1 DAY WHERE who = @ AND state <> 'paid'",
        "UPDATE shop.# SET state = UPPER(state) WHERE DAY(made) = @ OR who = @ ORDER BY id DESC LIMIT 7",
        "UPDATE shop.# t SET t.n = t.id * 2 WHERE t.who = @ AND EXISTS (SELECT 1 FROM shop.stock k WHERE k.w = 1 AND k.i = t.who)",
        "UPDATE shop.# SET n = who, who = n WHERE who = @",
        "DELETE FROM shop.# WHERE who = @ AND n % 3 = 1",
        "DELETE FROM shop.# WHERE state = 'sent' AND who = @ ORDER BY n LIMIT 2",
    ] {
        let uses = fixture.uses();
        for literal in ["3", "4", "5", "17", "600"] {
            let text = template.replace('@', literal);
            fixture.run(&text.replace('#', "one"));
            fixture.run("SET sql_select_limit = 1000000");
            fixture.run(&text.replace('#', "other"));
            fixture.run("SET sql_select_limit = DEFAULT");
            let one = fixture.general("SELECT * FROM shop.one ORDER BY id");
            let other = fixture.general("SELECT * FROM shop.other ORDER BY id");
            assert_eq!(one.rows, other.rows, "{text}");
        }
        assert!(fixture.uses() > uses, "{template}");
    }
}

#[test]
fn rows_are_locked_by_cached_plans() {
    let mut fixture = fixture();
    fixture
        .run("CREATE TABLE shop.jobs (id INT PRIMARY KEY, state VARCHAR(9), n INT, KEY (state))");
    let rows: Vec<String> = (0..90).map(|id| format!("({id}, 's{}', {id})", id % 9)).collect();
    fixture.run(&format!("INSERT INTO shop.jobs VALUES {}", rows.join(", ")));
    fixture.run("START TRANSACTION");
    let uses = fixture.uses();
    for n in 0..6 {
        fixture.run(&format!("SELECT id, n + 1 FROM shop.jobs WHERE state = 's{n}' FOR UPDATE"));
    }
    // The keys and the rows.
    assert!(fixture.uses() >= uses + 7, "{} {uses}", fixture.uses());
    fixture.run("UPDATE shop.jobs SET n = 0 WHERE id = 1");
    let uses = fixture.uses();
    fixture.run("SELECT id, n + 1 FROM shop.jobs WHERE state = 's1' FOR UPDATE");
    assert_eq!(fixture.uses(), uses, "a changed row is not in the plan's snapshot");
    fixture.run("COMMIT");
}

#[test]
fn groups_in_the_order_of_an_index_are_read_until_the_page_is_full() {
    let mut fixture = events();
    for template in [
        "SELECT who, COUNT(*), MAX(made) FROM shop.events GROUP BY who ORDER BY who LIMIT @",
        "SELECT who, COUNT(*) FROM shop.events GROUP BY who ORDER BY who DESC LIMIT @",
        "SELECT who, SUM(n) FROM shop.events WHERE id > 100 GROUP BY who ORDER BY who LIMIT 2, @",
        "SELECT id, MIN(who) FROM shop.events GROUP BY id ORDER BY id LIMIT @",
        "SELECT n, COUNT(*), MIN(id) FROM shop.events GROUP BY n ORDER BY n LIMIT @",
        "SELECT who, COUNT(*) c FROM shop.events GROUP BY who HAVING c > 299 AND who % 3 = 1 \
         ORDER BY who LIMIT @",
        "SELECT who, made, COUNT(*) FROM shop.events GROUP BY who, made ORDER BY who, made LIMIT @",
        "SELECT who, made, COUNT(*) FROM shop.events GROUP BY made, who ORDER BY who, made LIMIT @",
        // The order has less, or more, than the groups.
        "SELECT who, y, COUNT(*) FROM shop.events GROUP BY who, y ORDER BY who, y LIMIT @",
        "SELECT who + 1 w, COUNT(*) FROM shop.events GROUP BY who ORDER BY w LIMIT @",
        "SELECT who, COUNT(*) c FROM shop.events GROUP BY who ORDER BY c, who LIMIT @",
        "SELECT e.id, COUNT(*) FROM shop.events e JOIN shop.events o ON o.who = e.who AND o.id < 50 \
         GROUP BY e.id ORDER BY e.id LIMIT @",
    ] {
        for text in texts(template, &["3", "1", "5", "39", "40", "41"]) {
            fixture.agrees(&text);
        }
    }
    let text = "SELECT id, COUNT(*) FROM shop.events GROUP BY id ORDER BY id DESC LIMIT 7";
    fixture.agrees(text);
    assert!(fixture.quick(text).is_some(), "it is not read along the key");
    fixture.run("DELETE FROM shop.events WHERE id > 11990 AND id <> 11996");
    fixture.agrees(text);
}

#[test]
fn groups_by_moments_are_whole_where_a_zone_has_an_hour_twice() {
    let mut fixture = fixture();
    fixture
        .run("CREATE TABLE shop.clock (id INT PRIMARY KEY, seen TIMESTAMP NOT NULL, KEY (seen))");
    let moments = ["00:30", "00:45", "01:30", "01:45", "02:00"];
    let rows: Vec<String> = (0..2_000)
        .map(|id| format!("({id}, '2024-10-27 {}:00')", moments[id % moments.len()]))
        .collect();
    fixture.run("SET time_zone = '+00:00'");
    fixture.run(&format!("INSERT INTO shop.clock VALUES {}", rows.join(", ")));
    for zone in ["Europe/Berlin", "+02:00"] {
        fixture.run(&format!("SET time_zone = '{zone}'"));
        for template in [
            "SELECT seen, SUM(id) FROM shop.clock GROUP BY seen ORDER BY seen LIMIT @",
            "SELECT seen, MAX(id) FROM shop.clock GROUP BY seen ORDER BY seen DESC LIMIT @",
        ] {
            texts(template, &["1", "2", "3"]).iter().for_each(|text| fixture.agrees(text));
        }
    }
}

#[test]
fn the_first_rows_of_derived_tables_and_of_parts_of_a_union_are_read() {
    let mut fixture = events();
    for template in [
        "SELECT * FROM (SELECT id, who, made FROM shop.events ORDER BY who, made, id LIMIT @) e ORDER BY id",
        "SELECT e.id, o.note FROM (SELECT * FROM shop.events ORDER BY id DESC LIMIT @) e \
         JOIN shop.events o ON o.id = e.who ORDER BY e.id",
        "SELECT e.id, o.id FROM (SELECT id, who FROM shop.events WHERE y > 2005 ORDER BY who DESC, made DESC, id DESC LIMIT @) e \
         LEFT JOIN shop.events o ON o.id = e.who + 3 ORDER BY e.id, o.id",
        // Rows before an offset, a condition that the engine cannot answer, and one above the LIMIT.
        "SELECT COUNT(*), SUM(id) FROM (SELECT id FROM shop.events ORDER BY took, id LIMIT 70, @) e",
        "SELECT id FROM (SELECT id, note FROM shop.events WHERE LENGTH(note) % 2 = 1 ORDER BY n, id LIMIT @) e \
         WHERE id % 3 = 0 ORDER BY id",
        "SELECT who, COUNT(*) FROM (SELECT who FROM shop.events ORDER BY note LIMIT @) e GROUP BY who ORDER BY who",
        "(SELECT id, 'a' k FROM shop.events ORDER BY seen DESC, id LIMIT @) UNION ALL \
         (SELECT id, 'b' FROM shop.events ORDER BY d, id LIMIT @) ORDER BY id, k LIMIT 7",
        "SELECT id FROM shop.events WHERE id IN (SELECT id FROM (SELECT id FROM shop.events ORDER BY f, id LIMIT @) e) \
         ORDER BY id",
    ] {
        for text in texts(template, &["3", "1", "5", "100"]) {
            fixture.agrees(&text);
        }
    }
    for (text, rows) in [
        (
            "SELECT e.id, o.y FROM (SELECT * FROM shop.events ORDER BY id DESC LIMIT 5) e \
          JOIN shop.events o ON o.id = e.who",
            5,
        ),
        (
            "SELECT id FROM (SELECT id, who FROM shop.events ORDER BY who, made LIMIT 7) e WHERE id > 3 ORDER BY id",
            7,
        ),
        (
            "SELECT COUNT(*) FROM (SELECT id, who FROM shop.events ORDER BY who, made LIMIT 3, 7) e",
            10,
        ),
    ] {
        let lines = fixture.measured(text);
        let read = lines.iter().find(|line| line.contains("events")).unwrap();
        assert!(read.contains(&format!("rows={rows} ")), "{text}: {lines:#?}");
    }
}

#[test]
fn first_rows_keep_their_order_without_one_of_the_query_around_them() {
    let mut fixture = events();
    for template in [
        "SELECT id, who, made FROM (SELECT id, who, made FROM shop.events ORDER BY who DESC, made, id DESC LIMIT @) e",
        "WITH e AS (SELECT id, note, who FROM shop.events ORDER BY took DESC, id LIMIT @) \
         SELECT UPPER(note) AS note, id FROM e WHERE who % 2 = 0",
        "SELECT * FROM (SELECT id, n FROM shop.events WHERE y > 2005 ORDER BY n DESC, id LIMIT @, 90) e",
        "SELECT e.who, e.many FROM (SELECT who, COUNT(*) AS many FROM shop.events GROUP BY who \
         ORDER BY many DESC, who DESC LIMIT @) e",
        "SELECT e.id, e.note FROM (SELECT o.id, p.note FROM shop.events o JOIN shop.events p ON p.id = o.who \
         ORDER BY o.note DESC, o.id LIMIT @) e",
    ] {
        fixture.kept_for(template, &["30", "1", "5", "100"], true);
        fixture.agrees(&template.replace('@', "0"));
    }
    // LIMIT of the query around, and joins with subqueries, are not the order's.
    for template in [
        "SELECT id FROM (SELECT id FROM shop.events ORDER BY who DESC, made, id LIMIT @) e LIMIT 7",
        "SELECT id FROM (SELECT id, who FROM shop.events ORDER BY who DESC, made, id LIMIT @) e \
         WHERE who IN (SELECT id FROM shop.events WHERE y > 2005)",
        "SELECT * FROM (SELECT id FROM (SELECT id FROM shop.events ORDER BY who DESC, made, id LIMIT @) e LIMIT 3) f",
    ] {
        texts(template, &["30", "1", "5", "100", "0"]).iter().for_each(|text| fixture.agrees(text));
    }
}

#[test]
fn groups_are_read_in_their_order_alone() {
    let mut fixture = events();
    fixture.run("CREATE TABLE shop.lines (id INT PRIMARY KEY, of INT, n INT, KEY (of))");
    for from in (0..12_000).step_by(2_000) {
        let rows = (from..from + 2_000).map(|id| format!("({id}, {}, {})", id * 7 % 4_000, id % 9));
        let rows: Vec<String> = rows.collect();
        fixture.run(&format!("INSERT INTO shop.lines VALUES {}", rows.join(", ")));
    }
    for text in [
        "SELECT of, SUM(n) FROM shop.lines GROUP BY of ORDER BY of LIMIT 5",
        "SELECT of, MIN(n), COUNT(*) c FROM shop.lines GROUP BY of HAVING c > 2 ORDER BY of DESC LIMIT 5",
        "SELECT l.id, COUNT(e.id) FROM shop.lines l LEFT JOIN shop.events e ON e.id = l.of \
         GROUP BY l.id ORDER BY l.id LIMIT 7",
        "SELECT l.of, COUNT(e.id) FROM shop.lines l LEFT JOIN shop.events e ON e.id = l.of \
         GROUP BY l.of ORDER BY l.of LIMIT 7",
    ] {
        fixture.agrees(text);
        let lines = fixture.measured(text);
        let is_read = |line: &&String| line.contains("lines") || line.contains(" on l");
        let read = lines.iter().find(is_read).unwrap();
        let rows = read.rsplit("rows=").next().and_then(|rest| rest.split(' ').next());
        let rows: u64 = rows.and_then(|rows| rows.parse().ok()).unwrap();
        assert!(rows <= 200, "{text}: {lines:#?}");
    }
    // Fewer groups than the page has: soon they are not tried.
    let text = "SELECT who, SUM(n) FROM shop.events GROUP BY who ORDER BY who LIMIT 50";
    (0..5).for_each(|_| fixture.agrees(text));
}

#[test]
fn expressions_that_are_named_several_times_have_plans() {
    let mut fixture = events();
    for template in [
        "WITH x AS (SELECT * FROM shop.events WHERE who = @) \
         SELECT (SELECT COUNT(*) FROM x), (SELECT SUM(id) FROM x), (SELECT MAX(made) FROM x)",
        "WITH x AS (SELECT id, who FROM shop.events WHERE who = @ AND id < 900) \
         SELECT a.id, b.id FROM x a JOIN x b ON b.id = a.id + 40 ORDER BY a.id",
        "WITH x AS (SELECT id FROM shop.events WHERE id < @) SELECT id FROM x UNION ALL SELECT id + 100 FROM x ORDER BY id",
        "SELECT EXISTS(SELECT 1 FROM shop.events WHERE who = @)",
        "SELECT EXISTS(SELECT 1 FROM shop.events WHERE who = @ AND id = 77) AS there, (SELECT MIN(who) FROM shop.events)",
    ] {
        for text in texts(template, &["3", "17", "500"]) {
            let general = fixture.general(&text);
            let uses = fixture.uses();
            (0..3).for_each(|_| drop(fixture.quick(&text)));
            assert!(fixture.uses() > uses, "{text} has no plan");
            assert_eq!(fixture.quick(&text).as_ref(), Some(&general), "{text}");
        }
    }
}

#[test]
fn pages_behind_a_row_are_read_along_the_index() {
    let mut fixture = fixture();
    fixture.run(
        "CREATE TABLE shop.places (id INT PRIMARY KEY, country CHAR(2) NOT NULL, city VARCHAR(40), n INT, made DATE, \
         KEY (country, city), KEY (city, n DESC), KEY (made, country, n))",
    );
    let cities = ["Oslo", "oslo", "ÅRE", "Bonn", "bönn", "Zürich", "Graz"];
    for from in (0..8_000).step_by(2_000) {
        let rows = (from..from + 2_000).map(|id: usize| {
            let country = ["FI", "NO", "de", "AT", "CH", "fi", "IT", "PL"][id * 7 % 8];
            let city = match id % 11 {
                0 => "NULL".to_owned(),
                _ => format!("'{} {}'", cities[id % 7], id % 90),
            };
            format!("({id}, '{country}', {city}, {}, '2024-{:02}-01')", id * 31 % 500, id % 12 + 1)
        });
        let rows: Vec<String> = rows.collect();
        fixture.run(&format!("INSERT INTO shop.places VALUES {}", rows.join(", ")));
    }
    for template in [
        "SELECT id, country, city FROM shop.places WHERE (country, city) > ('FI', '@') ORDER BY country, city, id LIMIT 5",
        "SELECT id FROM shop.places WHERE (country, city) <= ('no', '@') ORDER BY country DESC, city DESC, id DESC LIMIT 9",
        "SELECT id FROM shop.places WHERE country > 'CH' OR (country = 'ch' AND city >= '@') ORDER BY country, city, id LIMIT 4",
        "SELECT id FROM shop.places WHERE (country, city, id) >= ('DE', '@', 4000) ORDER BY country, city, id LIMIT 6",
        "SELECT id FROM shop.places WHERE (country > 'IT' OR (country = 'IT' AND (city > '@' OR (city = '@' AND id > 70)))) \
         AND n > 20 ORDER BY country, city, id LIMIT 6",
        "SELECT id FROM shop.places WHERE country = 'FI' AND (city < '@' OR (city = '@' AND id < 99)) \
         ORDER BY city DESC, id DESC LIMIT 6",
        "SELECT id FROM shop.places WHERE city > '@' OR (city = '@' AND n < 300) ORDER BY city, n DESC, id LIMIT 6",
        "SELECT id FROM shop.places WHERE (made, country, n) > ('2024-05-01', 'FI', 77) ORDER BY made, country, n, id LIMIT 6",
        "SELECT id FROM shop.places WHERE country >= 'AT' AND (country, city) > ('FI', '@') ORDER BY country, city, id LIMIT 5",
        "SELECT id FROM shop.places WHERE made <= '2024-09-01' AND (made > '2024-05-01' OR (made = '2024-05-01' AND id > 77)) \
         AND city <> '@' ORDER BY made, country, n, id LIMIT 5",
        // ORs that say nothing of the index.
        "SELECT id FROM shop.places WHERE country > 'FI' OR n > 100 ORDER BY country, city, id LIMIT 5",
        "SELECT id FROM shop.places WHERE country IN ('FI', 'NO') AND (city IS NULL OR city > '@') ORDER BY country, city, id LIMIT 5",
        "SELECT id FROM shop.places WHERE (country = 'IT' OR country = 'FI' AND n < 9) AND city <> '@' \
         ORDER BY country, city, id LIMIT 5",
    ] {
        for text in texts(template, &["Oslo 7", "bonn 33", "", "Zzz", "are"]) {
            fixture.agrees(&text);
        }
    }
    for text in [
        "SELECT id FROM shop.places WHERE (country, city) > ('FI', 'Oslo 7') ORDER BY country, city, id LIMIT 5",
        "SELECT id FROM shop.places WHERE (country, city, id) < ('NO', 'Oslo', 9) ORDER BY country DESC, city DESC, id DESC LIMIT 5",
        "SELECT id FROM shop.places WHERE country >= 'AT' AND (country, city) > ('FI', 'Oslo 7') ORDER BY country, city, id LIMIT 5",
    ] {
        fixture.agrees(text);
        let told = fixture.explained(text).remove(0);
        assert_eq!(told.key.as_deref(), Some("country"), "{text}: {told:?}");
        assert!(!told.extra.iter().any(|said| said == "Using filesort"), "{text}: {told:?}");
    }
}

#[test]
fn subqueries_of_a_select_list_run_for_the_rows_of_the_page() {
    let mut fixture = events();
    // For other rows they would have several rows.
    for template in [
        "SELECT e.id, (SELECT o.id FROM shop.events o WHERE o.who = e.id) i FROM shop.events e WHERE e.who < 9 \
         ORDER BY e.note DESC LIMIT @",
        "SELECT e.note, (SELECT o.note FROM shop.events o WHERE o.who = e.id ORDER BY o.made DESC) n, e.who \
         FROM shop.events e WHERE e.who < 9 ORDER BY e.who, e.id DESC LIMIT @",
    ] {
        for text in texts(template, &["3", "5", "40"]) {
            let general = fixture.general(&text);
            for _ in 0..3 {
                fixture.quick(&text);
            }
            assert_eq!(fixture.quick(&text), Some(general), "{text}");
        }
    }
    for text in texts(
        "SELECT e.id, (SELECT COUNT(*) + @ FROM shop.events o WHERE o.y < e.y AND o.id < 50) c FROM shop.events e \
         WHERE e.id < 300 ORDER BY c DESC, e.id LIMIT 4",
        &["3", "5"],
    ) {
        fixture.agrees(&text);
    }
}

#[test]
fn recursions_that_walk_up_have_plans() {
    let mut fixture = fixture();
    fixture.run("CREATE TABLE shop.tree (id INT PRIMARY KEY, up INT, name VARCHAR(20), KEY (up))");
    for from in (0..12_000).step_by(2_000) {
        let rows = (from..from + 2_000).map(|id| match id {
            0 => "(0, NULL, 'root')".to_owned(),
            id => format!("({id}, {}, 'n{id}')", id / 5),
        });
        let rows: Vec<String> = rows.collect();
        fixture.run(&format!("INSERT INTO shop.tree VALUES {}", rows.join(", ")));
    }
    for template in [
        "WITH RECURSIVE r AS (SELECT id, up FROM shop.tree WHERE id = @ UNION ALL \
         SELECT t.id, t.up FROM shop.tree t JOIN r ON t.id = r.up) SELECT * FROM r ORDER BY id",
        "WITH RECURSIVE r AS (SELECT id, up, 0 d FROM shop.tree WHERE id = @ UNION ALL \
         SELECT t.id, t.up, d + 1 FROM shop.tree t JOIN r ON t.id = r.up WHERE d < 50) SELECT COUNT(*), MAX(d) FROM r",
        "WITH RECURSIVE r AS (SELECT id FROM shop.tree WHERE id = @ UNION ALL \
         SELECT t.id FROM shop.tree t JOIN r ON t.up = r.id) SELECT COUNT(*) FROM r",
    ] {
        for text in texts(template, &["7777", "11999", "3", "0"]) {
            let general = fixture.general(&text);
            let uses = fixture.uses();
            (0..2).for_each(|_| drop(fixture.quick(&text)));
            assert!(fixture.uses() > uses, "{text} has no plan");
            assert_eq!(fixture.quick(&text), Some(general), "{text}");
        }
    }
}

#[test]
fn columns_are_called_as_the_text_of_each_statement() {
    let mut fixture = events();
    for template in [
        "SELECT EXISTS(SELECT 1 FROM shop.events WHERE who = @)",
        "SELECT  exists( select 1 from shop.events where who = @ and id > 40 ), (SELECT COUNT(*) FROM shop.events WHERE who < @)",
        "SELECT id + @, 'x', id % 7 FROM shop.events WHERE who = 5 AND id < 300 ORDER BY id",
        "SELECT IF(who = @, 'one', 'other'), UPPER('é@') FROM shop.events WHERE id < 50 ORDER BY id",
        "SELECT *, who = @ FROM shop.events WHERE id = 7",
        "SELECT who * @, shop.events.*, who + @ AS named, who - @ FROM shop.events WHERE id IN (7, 9)",
        "SELECT COUNT(*) * @ FROM shop.events GROUP BY who HAVING COUNT(*) > @ ORDER BY who",
        // The names of these are not those of the result, or of lists.
        "SELECT * FROM (SELECT id + @, who FROM shop.events WHERE id < 9) d ORDER BY who",
        "SELECT id + @ FROM shop.events WHERE id < 4 UNION ALL SELECT id FROM shop.events WHERE id = 8 ORDER BY 1",
        "SELECT who IN (@, 3, 4) FROM shop.events WHERE id < 9 ORDER BY id",
        "SELECT EXISTS(SELECT 1 FROM shop.events WHERE who IN (@))",
        "SELECT EXISTS(SELECT 1 FROM shop.events WHERE who IN (@, 8))",
        "SELECT (SELECT MAX(`who = @`) FROM (SELECT who = @ FROM shop.events WHERE id < 9) d)",
        "SELECT who = @ FROM shop.events WHERE id < 9 ORDER BY `who = @`, 1",
    ] {
        for text in texts(template, &["3", "17", "-5", "500", "0", "3, 4", "5"]) {
            if !text.contains("3, 4") || template.contains("IN (@") {
                fixture.agrees(&text);
            }
        }
    }
    for text in ["5", "-5", "7", "-7"] {
        let text = format!("SELECT EXISTS(SELECT 1 FROM shop.events WHERE who = {text})");
        fixture.agrees(&text);
        assert_eq!(fixture.quick(&text).unwrap().columns[0].name, text["SELECT ".len()..]);
    }
    let uses = fixture.uses();
    for text in texts(
        "SELECT EXISTS(SELECT 1 FROM shop.events WHERE who = @ AND id > 3)",
        &["3", "17", "5", "6", "8"],
    ) {
        fixture.agrees(&text);
    }
    assert!(fixture.uses() - uses >= 8, "each has a plan of its own");
}
