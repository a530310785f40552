//! Both paths give the same columns and rows for every shape.

use std::sync::Arc;

use remora_engine::{
    Change, ChangeBatch, ColumnDef, ColumnType, Database, Options, Schema, TableChanges, TextDef,
    Value,
};
use remora_mysql::LexMode;

use crate::{
    Cell, Column, ColumnKeys, EmbeddedHost, Identity, Instance, Outcome, Reply, Result, Settings,
    execute::{self, access::TableAccess, shapes},
    parse::{Statement, split},
    state::SessionState,
};

#[derive(Debug, Default, PartialEq)]
pub(super) struct Collected {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Reply for Collected {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        self.rows.push(cells.iter().map(|cell| format!("{cell:?}")).collect());
        Ok(())
    }

    fn done(&mut self, _outcome: &Outcome, _more: bool) -> Result<()> {
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        Ok(())
    }
}

pub(super) struct Fixture {
    _directory: tempfile::TempDir,
    session: SessionState,
    runtime: tokio::runtime::Runtime,
}

fn column(id: u32, name: &str, kind: ColumnType, nullable: bool) -> ColumnDef {
    ColumnDef { id, name: name.to_owned(), kind, nullable, indexed: true, declared: None }
}

fn schema(name: &str, columns: Vec<ColumnDef>, key: &[usize], texts: &[&[usize]]) -> Schema {
    let texts = (0..).zip(texts).map(|(id, columns)| TextDef {
        id,
        columns: columns.to_vec(),
        delimiter: None,
        normalization: Default::default(),
    });
    Schema { texts: texts.collect(), ..Schema::over(name, columns, key.to_vec()) }
}

fn put(database: &Database, table: &str, rows: Vec<Vec<Value>>) {
    let changes = rows.into_iter().map(Change::Put).collect();
    let tables = vec![TableChanges { table: table.into(), changes }];
    database.apply(ChangeBatch { tables, ..ChangeBatch::default() }).unwrap();
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

const BODIES: [&str; 8] = [
    "Quantum physics in a nutshell",
    "QUANTUM, physics: a history",
    "the quántum of solace",
    "ﬁne print and Straße",
    "Physicists don't wait",
    "東京タワー quantum",
    "",
    "nothing at all",
];

fn articles() -> Schema {
    let columns = vec![
        column(1, "id", ColumnType::Int(32), false),
        column(2, "kind", ColumnType::Uint(8), true),
        column(3, "body", ColumnType::Text, false),
        column(4, "note", ColumnType::Text, true),
        column(5, "price", ColumnType::Decimal(8, 2), true),
        column(6, "at", ColumnType::DateTime, true),
    ];
    schema("articles", columns, &[0], &[&[2], &[3]])
}

pub(super) fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), Options::default()).unwrap();
    database.create_table(articles()).unwrap();
    let parts = vec![
        column(1, "w", ColumnType::Int(32), false),
        column(2, "i", ColumnType::Int(32), false),
        column(3, "q", ColumnType::Int(32), true),
    ];
    database.create_table(schema("shop.stock", parts, &[0, 1], &[])).unwrap();
    let row = |id: i64| {
        let body = BODIES[(id as usize) % BODIES.len()];
        let note = if id % 3 == 0 { Value::Null } else { text(body) };
        let kind = if id % 5 == 0 { Value::Null } else { Value::Uint(id as u64 % 4) };
        vec![Value::Int(id), kind, text(body), note, Value::Null, Value::Null]
    };
    put(&database, "articles", (0..60).map(row).collect());
    put(&database, "articles", (60..80).map(row).collect());
    put(&database, "articles", (70..75).map(row).collect());
    let stock = |w: i64, i: i64| vec![Value::Int(w), Value::Int(i), Value::Int(w * i)];
    let stock = (1..4).flat_map(|w| (1..20).map(move |i| stock(w, i)));
    put(&database, "shop.stock", stock.collect());
    sales(&database);
    let settings = Settings {
        version: "9.7.0-remora".to_owned(),
        max_query_memory_bytes: 1 << 30,
        max_total_memory_bytes: 2 << 30,
        max_temporary_memory_bytes: 1 << 30,
        spill: None,
        max_spill_bytes: 1 << 30,
        max_direct_rows: crate::MAX_DIRECT_ROWS,
        default_database: "main".to_owned(),
    };
    let instance = Instance::new(database, Arc::new(EmbeddedHost), settings);
    let session = SessionState::new(instance.shared(), 1, Identity::default());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    Fixture { _directory: directory, session, runtime }
}

/// Locations of a shop, and what each sold.
fn sales(database: &Database) {
    let places = vec![
        column(1, "p_w", ColumnType::Int(32), false),
        column(2, "p_d", ColumnType::Uint(8), false),
        column(3, "next", ColumnType::Int(32), true),
        column(4, "name", ColumnType::Text, true),
    ];
    database.create_table(schema("shop.place", places, &[0, 1], &[])).unwrap();
    let sold = vec![
        column(1, "w", ColumnType::Int(32), false),
        column(2, "d", ColumnType::Int(16), false),
        column(3, "o", ColumnType::Int(32), false),
        column(4, "n", ColumnType::Int(8), false),
        column(5, "item", ColumnType::Int(32), true),
        column(6, "price", ColumnType::Decimal(6, 2), true),
    ];
    database.create_table(schema("shop.sold", sold, &[0, 1, 2, 3], &[])).unwrap();
    let pairs = || (1..4_i64).flat_map(|w| (1..3_i64).map(move |d| (w, d)));
    let place = |(w, d): (i64, i64)| {
        let next = if w == 3 { Value::Null } else { Value::Int(16 - d) };
        vec![Value::Int(w), Value::Uint(d as u64), next, text(&format!("place {d}"))]
    };
    put(database, "shop.place", pairs().map(place).collect());
    let sold = pairs().flat_map(|(w, d)| (1..16).map(move |o| (w, d, o))).flat_map(|(w, d, o)| {
        (1..5).map(move |n| {
            let item = if (o + n) % 9 == 0 { Value::Null } else { Value::Int((o * n + w) % 23) };
            let price = Value::Decimal(remora_engine::Decimal::from_scaled((o * n).into(), 2));
            vec![Value::Int(w), Value::Int(d), Value::Int(o), Value::Int(n), item, price]
        })
    });
    put(database, "shop.sold", sold.collect());
}

impl Fixture {
    /// How often cached plans of statements without a shape were used.
    pub(super) fn uses(&self) -> u32 {
        let plans = self.session.shared.plans.all();
        let plans = plans.into_iter().filter_map(|plan| plan.downcast::<shapes::AnyPlan>().ok());
        let uses = plans.map(|plan| match &*plan {
            shapes::AnyPlan::Planned(kept) => kept.uses(),
            _ => 0,
        });
        uses.sum()
    }

    /// The measured steps of a statement.
    pub(super) fn measured(&mut self, text: &str) -> Vec<String> {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().pop().unwrap();
        let source = Arc::new(source);
        let analyzed = shapes::analyze(&mut self.session, &source, &[]);
        self.runtime.block_on(analyzed).unwrap().unwrap_or_else(|| panic!("{text} has no plan"))
    }

    /// Answers by a shape; `None` if the statement has none.
    pub(super) fn quick(&mut self, text: &str) -> Option<Collected> {
        let mut reply = Collected::default();
        let run = shapes::run_text(&mut self.session, text.as_bytes(), &mut reply);
        let outcome = self.runtime.block_on(run).unwrap();
        outcome.map(|_| reply)
    }

    /// The accesses of a statement's tables.
    pub(super) fn explained(&mut self, text: &str) -> Vec<TableAccess> {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().pop().unwrap();
        let statement = Statement { source: Arc::new(source), parameters: &[] };
        let explained = shapes::explain(&mut self.session, &statement, None);
        self.runtime.block_on(explained).unwrap().unwrap().accesses
    }

    pub(super) fn general(&mut self, text: &str) -> Collected {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().pop().unwrap();
        let statement = Statement { source: Arc::new(source), parameters: &[] };
        let mut reply = Collected::default();
        let run = execute::run_planned(&mut self.session, &statement, &mut reply);
        self.runtime.block_on(run).unwrap_or_else(|error| panic!("{text}: {error}"));
        reply
    }

    /// The tables of a plan that is not cached, in its order.
    pub(super) fn planned_tables(&mut self, text: &str) -> Vec<String> {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().pop().unwrap();
        let statement = Statement { source: Arc::new(source), parameters: &[] };
        let query = execute::run::parsed(&statement).unwrap();
        let planned = execute::planned_accesses(&mut self.session, query, &statement.source);
        let (_, accesses, _) = self.runtime.block_on(planned).unwrap();
        accesses.into_iter().filter_map(|access| access.table).collect()
    }

    /// Runs any statement.
    pub(super) fn run(&mut self, text: &str) {
        let source = split(text.as_bytes(), false, LexMode::default()).unwrap().pop().unwrap();
        let statement = Statement { source: Arc::new(source), parameters: &[] };
        let mut reply = Collected::default();
        let run = self.session.run(&statement, false, &mut reply);
        self.runtime.block_on(run).unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    fn same(&mut self, text: &str, ordered: bool) {
        let mut quick = self.quick(text).unwrap_or_else(|| panic!("no shape: {text}"));
        let mut general = self.general(text);
        if !ordered {
            quick.rows.sort();
            general.rows.sort();
        }
        assert_eq!(quick.rows, general.rows, "{text}");
        for (quick, general) in quick.columns.iter().zip(&general.columns) {
            let (mut quick, mut general) = (quick.clone(), general.clone());
            if quick.table.is_empty() || general.database.is_empty() {
                // For computed, united or grouped columns the shape knows more: NOT NULL, and the table.
                for column in [&mut quick, &mut general] {
                    column.database.clear();
                    column.table.clear();
                    column.original_table.clear();
                    column.original_name.clear();
                    (column.not_null, column.primary_key) = (false, false);
                    column.keys = ColumnKeys::default();
                }
            }
            assert_eq!(quick, general, "{text}");
        }
        assert_eq!(quick.columns.len(), general.columns.len(), "{text}");
        // The second time the plan is cached.
        let mut again = self.quick(text).unwrap();
        if !ordered {
            again.rows.sort();
        }
        assert_eq!(again.rows, general.rows, "{text}");
    }
}

#[test]
fn rows_by_their_keys() {
    let mut fixture = fixture();
    for text in [
        "SELECT * FROM articles WHERE id = 7",
        "SELECT id, body FROM articles WHERE id = '7'",
        "select `id` AS x, a.body from main.articles a where a.id=-7",
        "SELECT id FROM articles WHERE 7 = id",
        "SELECT id FROM articles WHERE id = 99999999999",
        "SELECT id FROM articles WHERE id IN (5, 3, 3, 500, 4)",
        "SELECT id FROM articles WHERE id IN (5, 3, 4) ORDER BY id DESC LIMIT 2",
        "SELECT id FROM articles WHERE id = 5 OR id = 3 OR id = 71 OR id = 5",
        "SELECT id FROM articles WHERE (id = 5) OR (id IN (7, 8))",
        "SELECT q FROM shop.stock WHERE w = 2 AND i = 3",
        "SELECT q, w FROM shop.stock WHERE i = 3 AND w = 2",
        "SELECT w, i, q FROM shop.stock WHERE (w, i) IN ((1,2), (3,4), (9,9))",
        "SELECT w, i, q FROM shop.stock WHERE (i, w) IN ((1,2), (3,4), (9,9))",
        "SELECT w, i FROM shop.stock WHERE w = 1 AND i IN (3, 4, 5)",
        "SELECT w, i FROM shop.stock WHERE (w = 1 AND i = 3) OR (w = 2 AND i = 5)",
        "SELECT id, body FROM articles WHERE id = 1 UNION ALL SELECT id, body FROM articles \
         WHERE id = 2 UNION ALL SELECT id, body FROM articles WHERE id = 1",
        "SELECT id FROM articles WHERE id = 4 UNION SELECT id FROM articles WHERE id = 2 \
         UNION SELECT id FROM articles WHERE id = 4",
        "(SELECT id FROM articles WHERE id = 4) UNION (SELECT id FROM articles WHERE id = 2)",
    ] {
        let ordered = text.contains("ORDER BY");
        fixture.same(text, ordered);
    }
}

#[test]
fn parts_of_a_row_s_documents() {
    let mut fixture = fixture();
    fixture.run("CREATE TABLE held (id INT PRIMARY KEY, doc JSON, t LONGTEXT, b VARBINARY(99))");
    fixture.run(
        "INSERT INTO held VALUES \
         (1, '{\"a\": \"x\", \"b\": {\"c\": [1, \"y\"]}}', '{\"a\": \"x\", \"a\": \"é\", \"b\": 1.50}', '{}'), \
         (2, '[{\"a\": null}, {\"a\": 7}]', '[1, 2, {\"a\": \"q\\\\\"\"}]', '[]'), \
         (3, NULL, NULL, NULL), (4, '\"a\"', '{\"a\": 1', '{'), (5, '7', '', '')",
    );
    for id in 1..=6 {
        for path in ["$", "$.a", "$.b.c", "$.b.c[1]", "$[*].a", "$[1]", "$**.a"] {
            // The texts of two rows are no documents.
            let columns =
                ["doc", "t"].into_iter().filter(|of| *of == "doc" || ![4, 5].contains(&id));
            for of in columns {
                fixture.same(
                    &format!(
                        "SELECT id, JSON_UNQUOTE(JSON_EXTRACT({of}, '{path}')) AS p, {of}, \
                         JSON_EXTRACT({of}, '{path}') e, {of} ->> '{path}' AS q, h.{of}->'{path}' r \
                         FROM held h WHERE id = {id}"
                    ),
                    true,
                );
            }
        }
    }
    for text in [
        // Errors, and what has no name without its literals.
        "SELECT JSON_EXTRACT(t, '$.a') AS p FROM held WHERE id = 4",
        "SELECT JSON_EXTRACT(t, '$.a') AS p FROM held WHERE id = 5",
        "SELECT JSON_EXTRACT(doc, '$.') AS p FROM held WHERE id = 1",
        "SELECT JSON_EXTRACT(doc, NULL) AS p FROM held WHERE id = 1",
        "SELECT JSON_EXTRACT(b, '$.a') AS p FROM held WHERE id = 1",
        "SELECT JSON_EXTRACT(id, '$.a') AS p FROM held WHERE id = 1",
        "SELECT JSON_EXTRACT(doc, '$.a') FROM held WHERE id = 1",
        "SELECT JSON_EXTRACT(doc, '$.a', '$.b') AS p FROM held WHERE id = 1",
        "SELECT JSON_UNQUOTE(doc) AS p FROM held WHERE id = 1",
    ] {
        assert_eq!(fixture.quick(text), None, "{text}");
    }
    fixture.run("UPDATE held SET doc = JSON_OBJECT('a', REPEAT('x', 2000), 'b', 1) WHERE id = 1");
    fixture.session.variables.max_allowed_packet = 1024;
    assert_eq!(fixture.quick("SELECT doc -> '$' AS p FROM held WHERE id = 1"), None);
    fixture.same("SELECT doc -> '$.b' AS p FROM held WHERE id = 1", true);
}

#[test]
fn searches_counts_and_facets() {
    let mut fixture = fixture();
    for (text, ordered) in [
        ("SELECT COUNT(*) FROM articles", true),
        ("SELECT count( * ) AS n FROM articles WHERE kind = 3", true),
        ("SELECT COUNT(*) FROM articles WHERE kind <> 3 AND id > 10", true),
        ("SELECT COUNT(*) FROM articles WHERE kind NOT IN (1, 2)", true),
        ("SELECT COUNT(*) FROM articles WHERE NOT (kind = 1 OR id < 5)", true),
        ("SELECT COUNT(*) FROM articles WHERE kind IS NULL", true),
        ("SELECT COUNT(id) FROM articles WHERE id BETWEEN 5 AND 9 OR id BETWEEN 7 AND 30", true),
        ("SELECT COUNT(note) AS n FROM articles", true),
        ("SELECT COUNT(kind) FROM articles WHERE kind > 1 OR kind IS NULL", true),
        ("SELECT COUNT(*) FROM articles WHERE kind < 300 AND kind > -1", true),
        ("SELECT COUNT(*) FROM articles WHERE id NOT BETWEEN 10 AND 20", true),
        ("SELECT COUNT(*) FROM articles WHERE body LIKE '%quantum%'", true),
        ("SELECT COUNT(*) FROM articles WHERE note LIKE '%QUANTUM%'", true),
        ("SELECT COUNT(*) FROM articles WHERE body NOT LIKE '%quantum%'", true),
        ("SELECT COUNT(*) FROM articles WHERE body LIKE '%fi%'", true),
        ("SELECT COUNT(*) FROM articles WHERE body LIKE '%strasse%'", true),
        ("SELECT COUNT(*) FROM articles WHERE INSTR(body, 'physic') > 0 AND id < 50", true),
        ("SELECT COUNT(*) FROM articles WHERE LOCATE('physic', body) > 0", true),
        ("SELECT COUNT(*) FROM articles WHERE MATCH(body) AGAINST('quantum wait')", true),
        (
            "SELECT COUNT(*) FROM articles WHERE MATCH(body) AGAINST('+quantum -physics' \
             IN BOOLEAN MODE)",
            true,
        ),
        ("SELECT id, body FROM articles WHERE body LIKE '%quantum%' ORDER BY id LIMIT 5", true),
        ("SELECT id FROM articles WHERE kind = 2 ORDER BY id DESC LIMIT 3, 4", true),
        ("SELECT id, note FROM articles WHERE body LIKE '%quantum%' ORDER BY id DESC", true),
        ("SELECT id, kind FROM articles WHERE kind = 2 AND id > 9 ORDER BY kind, id", true),
        ("SELECT id FROM articles WHERE body LIKE '%nowhere%'", true),
        ("SELECT id FROM articles ORDER BY id LIMIT 3 OFFSET 4", true),
        ("SELECT id AS n FROM articles WHERE kind = 2 ORDER BY n DESC LIMIT 3", true),
        ("SELECT kind, COUNT(*) FROM articles GROUP BY kind", false),
        ("SELECT kind, COUNT(*) AS n FROM articles WHERE id > 5 GROUP BY kind ORDER BY kind", true),
        ("SELECT COUNT(*), kind FROM articles GROUP BY kind ORDER BY 1 DESC, kind LIMIT 2", true),
        ("SELECT DISTINCT kind FROM articles ORDER BY kind DESC LIMIT 1, 2", true),
        ("SELECT DISTINCT a.body AS b FROM articles a WHERE id < 70 ORDER BY b LIMIT 5", true),
        ("SELECT DISTINCT note FROM articles WHERE id > 3", false),
        ("SELECT note, COUNT(*) FROM articles GROUP BY note ORDER BY note DESC", true),
        ("SELECT COUNT(*) AS n, body FROM articles GROUP BY body ORDER BY n DESC, body", true),
        ("SELECT price, COUNT(*) FROM shop.sold GROUP BY price ORDER BY price DESC", true),
        ("SELECT COUNT(*) FROM shop.sold WHERE price > 0.25 AND price <> 0.3", true),
        (
            "SELECT COUNT(*) FROM shop.sold WHERE price IN (0.3, 0.12, 0.125, 7) OR price = 0.040",
            true,
        ),
        ("SELECT COUNT(*) FROM shop.sold WHERE price BETWEEN 0.105 AND 1", true),
        ("SELECT COUNT(*) FROM shop.sold WHERE NOT price >= 0.1111", true),
        ("SELECT MIN(id), MAX(id) FROM articles", true),
        ("SELECT MAX(id) FROM articles WHERE id > 1000", true),
        ("SELECT MAX(price), MIN(at), MIN(kind) FROM articles", true),
        ("SELECT MIN(q) AS least, MAX(q), MAX(i) FROM shop.stock WHERE w = 2 AND i > 4", true),
        ("SELECT MIN(price), MAX(price), MIN(item) FROM shop.sold WHERE d = 2", true),
        ("SELECT MIN(id) AS first FROM articles WHERE kind = 3", true),
    ] {
        fixture.same(text, ordered);
    }
}

#[test]
fn a_part_of_a_text_is_found_without_reading_plain_texts() {
    let mut fixture = fixture();
    let database = fixture.session.shared.database.clone();
    let columns =
        vec![column(1, "id", ColumnType::Int(32), false), column(2, "t", ColumnType::Text, false)];
    database.create_table(schema("plain", columns, &[0], &[&[1]])).unwrap();
    let texts =
        ["The quick brown fox, jumps (over) 42 lazy dogs!", "no. 7 & co", "a 🅠uick 🇩🇪 flag"];
    let rows = (0..60).map(|id| vec![Value::Int(id), text(texts[usize::from(id % 20 == 0)])]);
    put(&database, "plain", rows.collect());
    let framed = (60..63).map(|id| vec![Value::Int(id), text(texts[2])]);
    put(&database, "plain", framed.collect());
    let mut count = |part: &str| {
        let text = format!("SELECT COUNT(*) FROM plain WHERE t LIKE '%{part}%'");
        let found = fixture.quick(&text).unwrap().rows;
        (found, fixture.session.meta.as_ref().unwrap().texts_read())
    };
    for part in ('a'..='z').chain('0'..='9') {
        let (_, read) = count(&part.to_string());
        assert!(read <= 3, "{read} texts were read for {part}");
    }
    assert_eq!(count("quick"), (vec![vec!["Int(60)".to_owned()]], 3));
    assert_eq!(count("lag"), (vec![vec!["Int(3)".to_owned()]], 0));
}

#[test]
fn joins_by_keys() {
    let mut fixture = fixture();
    fixture.session.database = Some("shop".to_owned());
    for text in [
        "SELECT count(*) AS low FROM (SELECT w, i, q FROM stock WHERE w = 2 AND q < 20 AND i IN (
           SELECT /*+ HINT(sold) */ item FROM place JOIN sold ON w = p_w AND d = p_d
             AND o >= next - 5 AND o < next WHERE p_w = 2 AND p_d = 1)) AS l",
        "SELECT COUNT(DISTINCT stock.i) FROM place JOIN sold ON sold.w = p_w AND d = p_d
           AND o >= next - 5 AND o < next JOIN stock ON stock.w = p_w AND i = item
         WHERE p_w = 1 AND p_d = 2 AND q < 12",
        "SELECT COUNT(DISTINCT (i)) FROM sold, stock WHERE sold.w = 1 AND d = 2 AND o < 15
           AND o >= 9 AND stock.w = 1 AND i = item AND q < 12",
        "SELECT count(*) FROM sold s JOIN stock t ON t.w = s.w AND t.i = s.item WHERE s.w = 2",
        "SELECT name, next, q FROM place JOIN stock ON w = p_w WHERE p_w = 1 AND p_d = 1 AND i = 5",
        "SELECT a.name AS x, s.price, item FROM place AS a, sold s
         WHERE s.w = a.p_w AND s.d = a.p_d AND a.p_w IN (1, 3) AND a.p_d = 2 AND o BETWEEN 4 AND 6",
        "SELECT s.o, t.q FROM stock t CROSS JOIN sold s ON (s.item = t.i AND s.w = t.w)
         WHERE t.w = 3 AND t.i IN (2, 4, 4, 99) AND s.d = 1 AND s.n <> 3",
        "SELECT count(*) FROM place, sold WHERE p_w = 1 AND p_d = 1 AND w = p_w AND o > next + 1",
        "SELECT count(*) FROM place, sold WHERE p_w = 1 AND p_d = 1 AND w = p_w AND next - 14 < o",
        "SELECT count(*) FROM place, sold WHERE p_w = 3 AND p_d = 1 AND w = p_w AND o <> next",
        "SELECT count(*) FROM stock JOIN sold ON sold.w = stock.w WHERE stock.w = 1 AND i = 7777",
        "SELECT count(*) FROM stock JOIN sold ON sold.w = stock.w WHERE stock.w = 99999999999",
        "SELECT d, o FROM sold WHERE w = 1 AND o = 3 AND item IN (SELECT i FROM stock WHERE w = 2)",
    ] {
        fixture.same(text, false);
    }
}

#[test]
fn temporary_tables_are_joined_by_keys() {
    let mut fixture = fixture();
    fixture.session.database = Some("shop".to_owned());
    fixture.run("CREATE TEMPORARY TABLE wanted (id INT, mark VARCHAR(9))");
    fixture.run("CREATE TEMPORARY TABLE place (i INT PRIMARY KEY)");
    let joined = "SELECT t.q, wanted.mark, t.i FROM wanted JOIN stock AS t
                  ON t.w = 2 AND t.i = wanted.id";
    fixture.same(joined, false);
    fixture.run("INSERT INTO wanted VALUES (3, 'a'), (3, 'b'), (NULL, 'c'), (77, 'd'), (5, NULL)");
    fixture.same(joined, false);
    assert_eq!(fixture.general(joined).rows.len(), 3);
    for text in [
        "SELECT t.q, mark FROM stock AS t, wanted WHERE id = t.i AND t.w = id AND id < 5",
        "SELECT COUNT(*) FROM stock JOIN wanted ON i = id AND w IN (1, 3) WHERE id <> 5",
        "SELECT COUNT(DISTINCT id) FROM wanted, stock, sold
         WHERE stock.w = 1 AND i = id AND sold.w = stock.w AND d = 1 AND o = id",
        "SELECT q FROM stock WHERE w = 2 AND i IN (SELECT id FROM wanted)",
        "SELECT mark FROM wanted, stock WHERE w = 1 AND stock.i = 2",
    ] {
        fixture.same(text, false);
    }
    // Changes are seen. A condition that is not on the key takes the general path.
    fixture.run("DELETE FROM wanted WHERE mark = 'a'");
    fixture.same(joined, false);
    for text in [
        "SELECT mark FROM wanted, place WHERE place.i = id",
        "SELECT mark FROM wanted, stock WHERE stock.i = id",
        "SELECT next FROM place, stock WHERE w = 1 AND stock.i = 2",
    ] {
        assert!(fixture.quick(text).is_none(), "{text}");
    }
    let told = kinds(fixture.explained(joined));
    assert_eq!(told, [("wanted".to_owned(), "ALL"), ("t".to_owned(), "eq_ref")]);
    fixture.run("DROP TEMPORARY TABLE wanted");
    assert!(fixture.quick(joined).is_none());
}

#[test]
fn joins_that_are_not_by_keys_go_the_general_way() {
    let mut fixture = fixture();
    fixture.session.database = Some("shop".to_owned());
    for text in [
        "SELECT count(*) FROM stock, sold WHERE i = item",
        "SELECT count(*) FROM stock, sold WHERE stock.w = 1",
        "SELECT w FROM stock, sold WHERE stock.w = 1 AND sold.w = 1",
        "SELECT count(*) FROM stock LEFT JOIN sold ON sold.w = stock.w WHERE stock.w = 1",
        "SELECT count(*) FROM stock, stock WHERE w = 1",
        "SELECT count(*) FROM stock, sold WHERE sold.w = stock.w AND stock.w = 1 OR stock.w = 2",
        "SELECT count(*) FROM stock, sold WHERE sold.w = stock.w AND stock.w = NULL",
        "SELECT name FROM place, stock WHERE p_w = 1 AND w = p_w AND name = 'place 1'",
        "SELECT count(*) FROM place, stock WHERE p_w = 1 AND w = 1 AND i > p_d - 1",
        "SELECT count(*) FROM (SELECT w, w FROM stock WHERE w = 1) AS l",
        "SELECT count(*) FROM (SELECT missing FROM stock WHERE w = 1) AS l",
        "SELECT count(*) FROM stock WHERE w = 1 AND i IN (SELECT item FROM sold WHERE sold.w = q)",
        "SELECT name FROM place JOIN stock ON w = p_w WHERE p_w = 1 LIMIT 1",
        "SELECT name FROM place JOIN stock ON w = p_w WHERE p_w = 1 FOR UPDATE",
        "SELECT count(*) FROM place, stock WHERE p_w = 1 AND w = p_w AND next - '1' = i",
    ] {
        assert!(fixture.quick(text).is_none(), "{text}");
    }
}

#[test]
fn what_takes_a_conversion_goes_the_general_way() {
    let mut fixture = fixture();
    for text in [
        "SELECT id FROM articles WHERE id = '7a'",
        "SELECT id FROM articles WHERE id = 7.0",
        "SELECT id FROM articles WHERE id = 7 FOR UPDATE",
        "SELECT DISTINCT id, body FROM articles WHERE id = 7",
        "SELECT DISTINCT SQL_NO_CACHE id FROM articles WHERE id = 7",
        "SELECT id + 1 FROM articles WHERE id = 7",
        "SELECT id FROM articles WHERE id = 'a' 'b'",
        "SELECT COUNT(*) FROM articles WHERE kind NOT IN (1, NULL, 2)",
        "SELECT 1",
        "SELECT id FROM missing WHERE id = 1",
        "SELECT missing FROM articles WHERE id = 1",
        "SELECT b.id FROM articles a WHERE a.id = 1",
        "SELECT id FROM articles WHERE id = 1; SELECT 2",
        "SELECT id FROM articles WHERE id = 1 OR id = 2 || id = 3",
        "INSERT INTO articles (id) VALUES (1)",
    ] {
        assert!(fixture.quick(text).is_none(), "{text}");
    }
}

#[test]
fn moments_are_compared_with_what_is_surely_one() {
    let mut fixture = fixture();
    fixture.run("CREATE TABLE visits (id INT PRIMARY KEY, day DATE, at DATETIME(3))");
    fixture.run(
        "INSERT INTO visits VALUES (1, '2025-03-01', '2025-03-01 00:00:00'), (2, '2025-03-02', \
         '2025-03-01 10:00:00.5'), (3, NULL, NULL), (4, '2024-02-29', '2025-03-02 10:00:00.501')",
    );
    for (text, count) in [
        ("day = '2025-03-01'", 1),
        ("day <> '2025-03-01'", 2),
        ("day IN ('2025-03-01', '2024-02-29', '2024-02-28')", 2),
        ("day BETWEEN '2024-03-01' AND '2025-03-02'", 2),
        ("at = '2025-03-01'", 1),
        ("at > '2025-03-01'", 2),
        ("at >= '2025-03-01 10:00:00.5' AND at < '2025-03-02 10:00:00.5011'", 2),
        ("NOT at < '2025-03-02'", 1),
    ] {
        let text = format!("SELECT COUNT(*) FROM visits WHERE {text}");
        fixture.same(&text, true);
        assert_eq!(fixture.quick(&text).unwrap().rows, [[format!("Int({count})")]], "{text}");
    }
    for text in ["day = '2025-03-01 10:00:00'", "day = '2025-3-1'", "at > 20250301", "day = '0'"] {
        let text = format!("SELECT COUNT(*) FROM visits WHERE {text}");
        assert!(fixture.quick(&text).is_none(), "{text}");
    }
}

#[test]
fn texts_are_compared_by_their_collation() {
    let mut fixture = fixture();
    for text in [
        "SELECT COUNT(*) FROM articles WHERE body = 'QUANTUM physics in a nutshell'",
        "SELECT id FROM articles WHERE body = 'the Quantum of SOLACE' ORDER BY id LIMIT 5",
        "SELECT COUNT(*) FROM articles WHERE body <> 'fine print AND strasse'",
        "SELECT COUNT(*) FROM articles WHERE note <> 'nothing at all'",
        "SELECT COUNT(*) FROM articles WHERE note = 'NOTHING AT ALL' OR note IS NULL",
        "SELECT COUNT(*) FROM articles WHERE NOT (note = 'NOTHING AT ALL')",
        "SELECT COUNT(*) FROM articles WHERE note IN ('', 'NOTHING at all', 'x')",
        "SELECT COUNT(*) FROM articles WHERE note NOT IN ('', 'NOTHING at all', 'x')",
        "SELECT COUNT(*) FROM articles WHERE body BETWEEN 'F' AND 'quantum q'",
        "SELECT COUNT(*) FROM articles WHERE body NOT BETWEEN 'F' AND 'quantum q'",
        "SELECT COUNT(*) FROM articles WHERE body < 'PHYSICISTS' AND body >= ''",
        "SELECT COUNT(*) FROM articles WHERE 'Physicists don\\'t wait' > body",
    ] {
        fixture.same(text, true);
    }
    // Literals that are bytes compare by bytes.
    fixture.run("SET NAMES binary");
    assert!(fixture.quick("SELECT COUNT(*) FROM articles WHERE body = 'x'").is_none());
}

#[test]
fn texts_that_match_come_by_score() {
    let mut fixture = fixture();
    let found = fixture
        .quick(
            "SELECT id, MATCH(body) AGAINST('physics quantum') AS score FROM articles \
             WHERE MATCH(body) AGAINST('physics quantum') ORDER BY score DESC LIMIT 5",
        )
        .unwrap();
    assert_eq!(found.rows.len(), 5);
    let score = |row: &Vec<String>| -> f64 {
        row[1].trim_start_matches("Double(").trim_end_matches(')').parse().unwrap()
    };
    assert!(found.rows.is_sorted_by(|a, b| score(a) >= score(b)), "{:?}", found.rows);
    assert!(score(&found.rows[0]) > 0.0);
}

#[test]
fn many_keys_are_looked_up_whatever_their_form() {
    let mut fixture = fixture();
    let count = 20_000;
    let list: Vec<String> = (0..count).map(|id| id.to_string()).collect();
    let forms = [
        format!("SELECT id FROM articles WHERE id IN ({})", list.join(", ")),
        format!("SELECT id FROM articles WHERE id = {}", list.join(" OR id = ")),
        list.iter()
            .map(|id| format!("SELECT id FROM articles WHERE id = {id}"))
            .collect::<Vec<_>>()
            .join(" UNION ALL "),
    ];
    let array = format!(
        "SELECT t.id FROM JSON_TABLE('[{}]', '$[*]' COLUMNS (id INT PATH '$')) AS wanted \
         JOIN articles AS t ON t.id = wanted.id",
        list.join(",")
    );
    for form in forms.into_iter().chain([array]) {
        let found = fixture.quick(&form).unwrap();
        assert_eq!(found.rows.len(), 80);
        assert!(found.rows.is_sorted_by_key(|row| row[0].len()));
    }
}

#[test]
fn the_shape_of_a_text_does_not_depend_on_its_literals() {
    let mut fixture = fixture();
    for id in 0..90 {
        let found = fixture.quick(&format!("SELECT id FROM articles WHERE id = {id}")).unwrap();
        assert_eq!(found.rows.len(), usize::from(id < 80));
    }
    assert_eq!(fixture.session.shared.plans.len(), 1);
}

#[test]
fn writes_by_key_share_the_plan_of_their_shape() {
    let mut fixture = fixture();
    fixture.run("CREATE TABLE counted (id INT PRIMARY KEY, n INT)");
    fixture.run("INSERT INTO counted VALUES (1, 10), (2, 20), (3, 30), (4, 40)");
    let before = fixture.session.shared.plans.len();
    for id in 1..=3 {
        fixture.run(&format!("UPDATE counted SET n = n + 1 WHERE id = {id}"));
    }
    assert_eq!(fixture.session.shared.plans.len(), before + 1);
    for id in 4..=9 {
        fixture.run(&format!("DELETE FROM counted WHERE id = {id}"));
    }
    assert!(fixture.session.shared.plans.len() <= before + 2);
    // The plan is made anew for another definition of the table.
    fixture.run("ALTER TABLE counted ADD COLUMN m INT NOT NULL DEFAULT 3 FIRST");
    fixture.run("UPDATE counted SET m = m + 1 WHERE id = 2");
    let rows = fixture.general("SELECT m, id, n FROM counted ORDER BY id").rows;
    let row = |m, id, n| [m, id, n].map(|number: i64| format!("Int({number})"));
    assert_eq!(rows, [row(3, 1, 11), row(4, 2, 21), row(3, 3, 31)]);
}

fn kinds(accesses: Vec<TableAccess>) -> Vec<(String, &'static str)> {
    let kind = |access: TableAccess| (access.table.unwrap(), access.kind.unwrap());
    accesses.into_iter().map(kind).collect()
}

#[test]
fn explain_says_which_index_answers() {
    let mut fixture = fixture();
    let mut say = |text: &str| fixture.explained(text).remove(0);
    let access = say("SELECT * FROM articles WHERE id IN (1, 2)");
    assert_eq!((access.kind, access.rows), (Some("range"), Some(2)));
    assert!(access.extra.iter().any(|said| said.contains("2 keys")), "{:?}", access.extra);
    let access = say("SELECT COUNT(*) FROM articles WHERE body LIKE '%quantum%'");
    assert_eq!(access.kind, Some("fulltext"));
    let said = access.extra.join("; ");
    assert!(said.contains("the text index finds 'quantum'"), "{said}");
    // With so few rows, a lookup by keys is not worth it.
    let joined = "SELECT q FROM shop.stock s, shop.place WHERE p_w = 1 AND p_d = 1 AND s.w = p_w";
    let told = kinds(fixture.explained(joined));
    assert_eq!(told, [("place".to_owned(), "const"), ("s".to_owned(), "ALL")]);
}
