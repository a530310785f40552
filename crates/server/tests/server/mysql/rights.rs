//! Privileges, in every protocol and for every kind of read and write: an account can do what its rights say, on one
//! table of several, and learns nothing about the others.

use crate::{
    mysql::{
        client::{Answer, Client, Entry},
        protocols::{Outcome, basic, guarded, http, line, of_http, of_line, of_sql, sql},
    },
    support::TestServer,
};

/// Requests of the line protocol that read a table `{}`.
const LINE_READS: [&str; 7] = [
    "SEARCH {} reef",
    "SEARCH {} reef FIELDS * SORT id LIMIT 1",
    "COUNT {} reef",
    "GET {} 1",
    "FACET {} kind",
    "SCHEMA {}",
    "EXPORT {}",
];
/// HTTP requests that read a table: the request line and the body.
const HTTP_READS: [(&str, &str); 5] = [
    ("POST /tables/{}/search", r#"{"q":"reef"}"#),
    ("POST /tables/{}/search", r#"{"fields":"*","limit":1}"#),
    ("POST /tables/{}/count", r#"{"q":"reef"}"#),
    ("POST /tables/{}/facet", r#"{"column":"kind"}"#),
    ("GET /tables/{}/1", ""),
];
/// SQL statements that read a table.
const SQL_READS: [&str; 24] = [
    "SELECT * FROM {}",
    "SELECT COUNT(*) FROM {}",
    "SELECT body FROM {} WHERE id = 1",
    "SELECT body FROM {} WHERE id IN (1, 2)",
    "SELECT id FROM {} WHERE body LIKE '%reef%' LIMIT 1",
    "SELECT id FROM {} WHERE MATCH(body) AGAINST('reef')",
    "SELECT kind, COUNT(*) FROM {} GROUP BY kind",
    "SELECT MAX(id) FROM {}",
    "SELECT 1 FROM DUAL WHERE EXISTS (SELECT 1 FROM {})",
    "SELECT (SELECT MAX(id) FROM {})",
    "SELECT o.id FROM {} o JOIN {} p ON o.id = p.id WHERE o.id = 1",
    "WITH c AS (SELECT id FROM {}) SELECT * FROM c",
    "SELECT 1 UNION SELECT id FROM {}",
    "TABLE {}",
    "SELECT id FROM {} FOR UPDATE",
    "EXPLAIN SELECT * FROM {} WHERE id = 1",
    "DESCRIBE {}",
    "SHOW COLUMNS FROM {}",
    "SHOW INDEX FROM {}",
    "SHOW CREATE TABLE {}",
    "CHECKSUM TABLE {}",
    "PREPARE s FROM 'SELECT * FROM {}'",
    "LOCK TABLES {} READ",
    "CREATE TEMPORARY TABLE remora.copy SELECT * FROM {}",
];
/// Statements that change rows of a table.
const LINE_WRITES: [&str; 3] =
    [r#"PUT {} {"id":2,"kind":"b","body":"b"}"#, "DELETE {} 2", "OPTIMIZE {}"];
const SQL_WRITES: [&str; 12] = [
    "INSERT INTO {} VALUES (3, 'a', 'b')",
    "INSERT INTO {} (id) SELECT 4",
    "REPLACE INTO {} VALUES (3, 'c', 'd')",
    "INSERT INTO {} VALUES (3, 'a', 'b') ON DUPLICATE KEY UPDATE kind = 'x'",
    "UPDATE {} SET kind = 'b' WHERE id = 3",
    "DELETE FROM {} WHERE id > 1",
    "PREPARE s FROM 'INSERT INTO {} VALUES (5, ?, ?)'",
    "PREPARE s FROM 'REPLACE INTO {} VALUES (5, ?, ?)'",
    "PREPARE s FROM 'UPDATE {} SET kind = ? WHERE id = ?'",
    "PREPARE s FROM 'DELETE FROM {} WHERE id = ?'",
    "LOCK TABLES {} WRITE",
    "OPTIMIZE TABLE {}",
];
/// Statements that change a table's definition. Each is undone by the next or has no effect.
const SQL_DEFINITIONS: [&str; 7] = [
    "ALTER TABLE {} ADD COLUMN more INT",
    "ALTER TABLE {} DROP COLUMN more",
    "CREATE INDEX k ON {} (kind(5))",
    "DROP INDEX k ON {}",
    "ALTER TABLE {} COMMENT = 'x'",
    "TRUNCATE TABLE {}",
    "DROP TABLE {}",
];

fn at(form: &str, table: &str) -> String {
    form.replace("{}", table)
}

/// A user's clients.
struct Clients<'s> {
    server: &'s TestServer,
    user: &'static str,
    line: crate::support::Client,
    sql: Client,
}

impl<'s> Clients<'s> {
    fn new(server: &'s TestServer, user: &'static str) -> Self {
        Self { server, user, line: line(server, user), sql: sql(server, user) }
    }

    fn line(&mut self, request: &str) -> Outcome {
        of_line(self.line.ask(request))
    }

    fn http(&mut self, request: &str, body: &str) -> Outcome {
        of_http(http(self.server, request, &basic(self.user), body))
    }

    fn sql(&mut self, text: &str) -> Outcome {
        let outcome = of_sql(self.sql.query(text));
        self.sql.query("DROP TEMPORARY TABLE IF EXISTS remora.copy");
        outcome
    }

    /// All reads of the table with their outcomes.
    fn read(&mut self, table: &str) -> Vec<(String, Outcome)> {
        let mut told = Vec::new();
        for form in LINE_READS {
            told.push((form.to_owned(), self.line(&at(form, table))));
        }
        for (form, body) in HTTP_READS {
            told.push((format!("{form} {body}"), self.http(&at(form, table), body)));
        }
        for form in SQL_READS {
            if form.contains("TEMPORARY") && self.user != "boss" {
                continue;
            }
            told.push((form.to_owned(), self.sql(&at(form, table))));
        }
        let columns = self.sql.prepare_columns(&format!("SELECT * FROM {table}"));
        told.push(("COM_STMT_PREPARE".to_owned(), of_sql(columns)));
        told
    }
}

#[test]
fn table_read_right_is_enforced_by_every_protocol() {
    let server = guarded("");
    for (user, readable) in [
        ("reader", &["shop.orders"][..]),
        ("writer", &["shop.orders"]),
        ("builder", &["shop.orders"]),
        ("keeper", &["shop.orders", "shop.items"]),
        ("boss", &["shop.orders", "shop.items", "hr.pay"]),
        ("nobody", &[]),
    ] {
        let mut clients = Clients::new(&server, user);
        for table in ["shop.orders", "shop.items", "hr.pay"] {
            let may = readable.contains(&table);
            for (way, outcome) in clients.read(table) {
                let fits = if may { outcome.is_done() } else { outcome.is_denied() };
                assert!(fits, "{user} {table}: {way} gives {outcome:?}");
            }
        }
        if user != "boss" {
            // What one may not read looks the same whether it is there or not.
            let there = clients.read("hr.pay");
            let nowhere = clients.read("hr.nil");
            for ((way, there), (_, nowhere)) in there.into_iter().zip(nowhere) {
                let (there, nowhere) = (format!("{there:?}"), format!("{nowhere:?}"));
                assert_eq!(there.replace("pay", "nil"), nowhere, "{user}: {way}");
            }
        }
    }
}

#[test]
fn distributed_table_needs_read_rights_on_its_parts() {
    let server = guarded("");
    let mut boss = Clients::new(&server, "boss");
    for statement in [
        "CREATE TABLE shop.both type='distributed' local='orders' local='items'",
        "CREATE TABLE shop.mixed type='distributed' local='orders' local='hr.pay'",
    ] {
        let made = boss.sql(statement);
        assert!(made.is_done(), "{statement} gives {made:?}");
    }
    for (user, both, mixed) in
        [("boss", true, true), ("keeper", true, false), ("reader", false, false)]
    {
        let mut clients = Clients::new(&server, user);
        for (table, may) in [("shop.both", both), ("shop.mixed", mixed)] {
            for (way, outcome) in clients.read(table) {
                let fits = if may { outcome.is_done() } else { outcome.is_denied() };
                assert!(fits, "{user} {table}: {way} gives {outcome:?}");
            }
        }
    }
}

#[test]
fn unqualified_names_are_resolved_among_permitted_tables() {
    let server = guarded("");
    let mut reader = Clients::new(&server, "reader");
    assert_eq!(reader.line("COUNT orders reef"), Outcome::Done("OK COUNT 1\r\n".to_owned()));
    assert!(reader.http("POST /tables/orders/count", "{}").is_done());
    let (there, nowhere) = (reader.line("COUNT pay reef"), reader.line("COUNT nil reef"));
    assert!(there.is_denied(), "{there:?}");
    assert_eq!(format!("{there:?}").replace("pay", "nil"), format!("{nowhere:?}"));
    // To the boss, who sees two databases, a bare name is none.
    assert!(matches!(Clients::new(&server, "boss").line("COUNT orders reef"), Outcome::Failed(_)));
}

#[test]
fn writes_need_write_rights() {
    let server = guarded("");
    for (user, writable) in [
        ("reader", &[][..]),
        ("nobody", &[]),
        ("writer", &["shop.orders"]),
        ("builder", &["shop.orders"]),
        ("keeper", &["shop.orders", "shop.items"]),
        ("boss", &["shop.orders", "shop.items", "hr.pay"]),
    ] {
        let mut clients = Clients::new(&server, user);
        for table in ["shop.orders", "shop.items", "hr.pay"] {
            let may = writable.contains(&table);
            let fits =
                |outcome: &Outcome| if may { outcome.is_done() } else { outcome.is_denied() };
            for form in LINE_WRITES {
                let outcome = clients.line(&at(form, table));
                assert!(fits(&outcome), "{user} {table}: {form} gives {outcome:?}");
            }
            let optimized = clients.http("POST /optimize", &format!(r#"{{"table":"{table}"}}"#));
            assert!(fits(&optimized), "{user} {table}: {optimized:?}");
            for form in SQL_WRITES {
                let outcome = clients.sql(&at(form, table));
                if form.starts_with("OPTIMIZE") && !may {
                    // It answers with rows, and the refusal is one of them.
                    assert!(format!("{outcome:?}").contains("denied"), "{user}: {outcome:?}");
                    continue;
                }
                assert!(fits(&outcome), "{user} {table}: {form} gives {outcome:?}");
            }
            let rows = server.server().owner().ask(&format!("COUNT {table} reef"));
            assert_eq!(rows, "OK COUNT 1", "{user} {table}");
        }
    }
    let mut writer = Clients::new(&server, "writer");
    for text in [
        "INSERT INTO shop.orders (id) SELECT id + 10 FROM shop.items",
        "PREPARE s FROM 'INSERT INTO shop.orders (id) SELECT id FROM shop.items'",
        "UPDATE shop.orders SET kind = (SELECT MAX(kind) FROM shop.items)",
        "PREPARE s FROM 'UPDATE shop.orders SET kind = (SELECT MAX(kind) FROM shop.items)'",
        "DELETE FROM shop.orders WHERE id IN (SELECT id FROM hr.pay)",
        "PREPARE s FROM 'DELETE FROM shop.orders WHERE id IN (SELECT id FROM hr.pay)'",
        "UPDATE shop.orders o JOIN shop.items i ON i.id = o.id SET o.kind = 'z'",
    ] {
        let outcome = writer.sql(text);
        assert!(outcome.is_denied(), "{text}: {outcome:?}");
    }
}

/// SQL enforces its unique keys, lengths and conditions, and numbers rows, whoever writes them.
#[test]
fn what_sql_declared_is_kept_by_the_line_protocol() {
    let server = guarded("");
    let (mut line, mut sql) = (line(&server, "boss"), sql(&server, "boss"));
    sql.query(
        "CREATE TABLE shop.own (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(3) UNIQUE, n INT, CHECK (n < 9))",
    );
    sql.query("INSERT INTO shop.own (v) VALUES ('a')");
    for (write, words) in [
        (r#"PUT shop.own {"id":2,"v":"a"}"#, "ERROR 2 row 1: Duplicate entry 'a' for key 'own.v'"),
        (
            r#"PUT shop.own [{"id":2,"v":"x"},{"id":3,"v":"long"}]"#,
            "ERROR 2 row 2: Data too long for column 'v'",
        ),
        (r#"PUT shop.own [{"id":2},{"id":3,"n":9}]"#, "ERROR 2 row 2: Check constraint"),
        ("DELETE shop.own 1", "ERROR 7 Table 'shop.own' was defined by SQL"),
    ] {
        let told = line.ask(write);
        assert!(told.starts_with(words), "{write}: {told}");
    }
    let all = r#"EXPORT shop.own {"format":"csv","columns":["v"]}"#;
    assert_eq!(line.ask(all), "OK EXPORT\r\n4\r\nv\na\n\r\nEND 1\r\n");
    // One counter numbers the rows of both.
    for letter in ["b", "c"] {
        let told = line.ask(&format!("PUT shop.own {{\"v\":\"{letter}1\"}}"));
        assert!(told.starts_with("OK PUT 1 "), "{told}");
        sql.query(&format!("INSERT INTO shop.own (v) VALUES ('{letter}2')"));
    }
    assert_eq!(line.ask(all), "OK EXPORT\r\n16\r\nv\na\nb1\nb2\nc1\nc2\n\r\nEND 5\r\n");
    assert!(line.ask("GET shop.own 1").starts_with("OK DOC 1"));
    assert!(line.ask(r#"PUT shop.items {"id":2}"#).starts_with("OK PUT"));
}

#[test]
fn definitions_need_a_right_of_their_own() {
    for (user, definable) in [
        ("reader", &[][..]),
        ("nobody", &[]),
        ("writer", &[]),
        ("builder", &["shop.orders"]),
        ("keeper", &["shop.orders", "shop.items"]),
        ("boss", &["shop.orders", "shop.items", "hr.pay"]),
    ] {
        let server = guarded("");
        let mut clients = Clients::new(&server, user);
        for table in ["shop.orders", "shop.items", "hr.pay"] {
            let may = definable.contains(&table);
            let fits =
                |outcome: &Outcome| if may { outcome.is_done() } else { outcome.is_denied() };
            for form in SQL_DEFINITIONS {
                let outcome = clients.sql(&at(form, table));
                assert!(fits(&outcome), "{user} {table}: {form} gives {outcome:?}");
            }
            let definition =
                r#"{"name":"t","primary_key":["id"],"columns":[{"name":"id","type":"int64"}]}"#;
            let made = clients.line(&format!("CREATE TABLE {table} {definition}"));
            assert!(fits(&made), "{user} {table}: {made:?}");
        }
    }
}

#[test]
fn renames_need_rights_on_both_names() {
    let server = guarded("");
    let denied = [
        "RENAME TABLE shop.orders TO shop.old",
        "RENAME TABLE shop.items TO shop.orders2",
        "ALTER TABLE shop.orders RENAME TO shop.old",
        "ALTER TABLE shop.orders ADD COLUMN more INT, RENAME TO hr.orders",
        "CREATE TABLE shop.new (id INT PRIMARY KEY)",
        "CREATE TABLE hr.new (id INT PRIMARY KEY)",
        "CREATE TABLE shop.new LIKE shop.orders",
    ];
    for user in ["reader", "writer", "builder"] {
        let mut clients = Clients::new(&server, user);
        for text in denied {
            let outcome = clients.sql(text);
            assert!(outcome.is_denied(), "{user}: {text} gives {outcome:?}");
        }
    }
    let mut keeper = Clients::new(&server, "keeper");
    for text in [
        "RENAME TABLE shop.orders TO hr.orders",
        "RENAME TABLE hr.pay TO shop.pay",
        "ALTER TABLE shop.orders ADD COLUMN more INT, RENAME TO hr.orders",
    ] {
        let outcome = keeper.sql(text);
        assert!(outcome.is_denied(), "{text} gives {outcome:?}");
    }
    // Nothing of the statement was done.
    let columns = keeper.sql("SHOW COLUMNS FROM shop.orders LIKE 'more'");
    assert_eq!(columns, Outcome::Done("Rows([])".to_owned()));
    for text in [
        "RENAME TABLE shop.orders TO shop.old",
        "ALTER TABLE shop.old RENAME TO shop.orders",
        "CREATE TABLE shop.new LIKE shop.orders",
    ] {
        let outcome = keeper.sql(text);
        assert!(outcome.is_done(), "{text} gives {outcome:?}");
    }
}

#[test]
fn database_statements_need_all_rights_on_the_database() {
    let server = guarded("");
    let forms = [
        "CREATE DATABASE {}",
        "ALTER DATABASE {} COLLATE utf8mb4_bin",
        "DROP DATABASE {}",
        "DROP DATABASE IF EXISTS {}",
    ];
    for user in ["reader", "writer", "builder", "keeper", "nobody"] {
        let mut clients = Clients::new(&server, user);
        for form in forms {
            for database in ["shop", "hr", "nil"] {
                if (user, database) == ("keeper", "shop") {
                    continue;
                }
                // As MySQL 9.7 has it: whether it is there is not told.
                let outcome = clients.sql(&at(form, database));
                let host = "127.0.0.1";
                let message =
                    format!("Access denied for user '{user}'@'{host}' to database '{database}'");
                assert_eq!(outcome, Outcome::Denied(message), "{form}");
            }
        }
    }
    let mut keeper = Clients::new(&server, "keeper");
    assert!(keeper.sql("DROP DATABASE shop").is_done());
    assert!(keeper.sql("CREATE DATABASE shop").is_done());
    assert!(keeper.sql("DROP DATABASE shop").is_done());
    assert_eq!(server.server().owner().ask("COUNT hr.pay reef"), "OK COUNT 1");
}

#[test]
fn foreign_database_looks_like_a_missing_one() {
    let server = guarded("");
    let mut reader = Clients::new(&server, "reader");
    for form in
        ["USE {}", "SHOW TABLES FROM {}", "SHOW CREATE DATABASE {}", "SHOW TABLE STATUS FROM {}"]
    {
        for database in ["hr", "nil"] {
            let outcome = reader.sql(&at(form, database));
            assert!(outcome.is_denied(), "{form} {database}: {outcome:?}");
        }
        assert!(reader.sql(&at(form, "shop")).is_done(), "{form}");
    }
    for database in ["hr", "nil"] {
        assert_eq!(reader.sql.command(0x02, database.as_bytes()).error(), 1044);
        let entry = Entry {
            user: "reader",
            password: "geheim",
            database: Some(if database == "hr" { "hr" } else { "nil" }),
            ..Entry::default()
        };
        let refused = Client::connect(server.sql_address(), &entry).err().unwrap();
        assert_eq!(refused.error(), 1044);
    }
    assert_eq!(reader.sql.command(0x02, b"shop"), Answer::Ok { affected: 0 });
    let boss = &mut Clients::new(&server, "boss").sql;
    assert_eq!(boss.query("USE nil").error(), 1049);
}

#[test]
fn listings_and_statistics_show_only_permitted_tables() {
    let server = guarded("");
    for (user, known) in [("reader", &["shop.orders"][..]), ("nobody", &[]), ("boss", &["hr.pay"])]
    {
        let mut clients = Clients::new(&server, user);
        let told = [
            clients.line("INFO"),
            clients.http("GET /info", ""),
            clients.http("GET /metrics", ""),
            clients
                .sql("SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables"),
            clients.sql(
                "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.columns",
            ),
            clients.sql(
                "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.statistics",
            ),
            clients.sql("SHOW ENGINE remora STATUS"),
        ];
        for outcome in told {
            let Outcome::Done(text) = outcome else { panic!("{user}: {outcome:?}") };
            for table in ["shop.orders", "shop.items", "hr.pay"] {
                let sees = user == "boss" || known.contains(&table);
                assert_eq!(text.contains(table), sees, "{user} {table}: {text}");
            }
        }
        let Outcome::Done(info) = clients.line("INFO") else { panic!("INFO") };
        let rows = if user == "boss" { 3 } else { known.len() };
        assert!(info.contains(&format!("total_documents: {rows}\r")), "{user}: {info}");
        let Outcome::Done(opened) = clients.sql("SHOW STATUS LIKE 'Open_tables'") else {
            panic!("SHOW STATUS")
        };
        let counted = format!("{:?}", known.len().to_string());
        assert_eq!(opened.contains(&counted), user != "boss", "{user}: {opened}");
        let Outcome::Done(databases) = clients.sql("SHOW DATABASES") else { panic!("SHOW") };
        assert_eq!(databases.contains("\"hr\""), user == "boss", "{databases}");
    }
}

#[test]
fn server_commands_need_all_rights() {
    let server = guarded("");
    let lines = [
        "DUMP SAVE a.dump",
        "DUMP STATUS",
        "DUMP INFO a.dump",
        "DUMP VERIFY a.dump",
        "DUMP LOAD a.dump",
        "REPLICATION STATUS",
        "REPLICATION STOP",
        "SYNC STATUS",
        "SYNC shop.orders",
        "CACHE STATS",
        "CACHE CLEAR",
        "CONFIG SHOW",
        "CONFIG VERIFY remora.toml",
        "SET cache.enabled = true",
        "SHOW VARIABLES",
        "OPTIMIZE",
        "SOURCE #database.hr",
        r##"PUT shop.orders FROM ["#database.x","utf8mb4_bin"] [{"id":9}]"##,
    ];
    for user in ["reader", "writer", "keeper", "nobody"] {
        let mut clients = Clients::new(&server, user);
        for request in lines {
            let outcome = clients.line(request);
            assert!(outcome.is_denied(), "{user}: {request} gives {outcome:?}");
        }
        for request in ["GET /config", "GET /health/detail", "GET /replication/status"] {
            let outcome = clients.http(request, "");
            assert!(outcome.is_denied(), "{user}: {request} gives {outcome:?}");
        }
        assert!(clients.http("POST /optimize", "{}").is_denied());
        for text in ["SHOW REPLICA STATUS", "SET GLOBAL wait_timeout = 7"] {
            assert!(clients.sql(text).is_denied(), "{user}: {text}");
        }
        // What is about one's own session is one's own.
        for request in ["DEBUG ON", "POSITION ON"] {
            assert!(clients.line(request).is_done(), "{user}: {request}");
        }
    }
    let mut boss = Clients::new(&server, "boss");
    for request in ["DUMP STATUS", "CACHE STATS", "CONFIG SHOW", "SHOW VARIABLES", "OPTIMIZE"] {
        assert!(boss.line(request).is_done(), "{request}");
    }
    assert!(boss.http("GET /config", "").is_done() && boss.http("POST /optimize", "{}").is_done());
    assert!(boss.sql("SHOW REPLICA STATUS").is_done());
}

#[test]
fn cached_reply_needs_read_rights() {
    let server = guarded("[cache]\nenabled = true\nmin_query_cost_ms = 0.0\n");
    let (mut boss, mut reader) = (Clients::new(&server, "boss"), Clients::new(&server, "reader"));
    for _ in 0..2 {
        assert!(boss.line("COUNT hr.pay reef").is_done());
        assert!(boss.http("POST /tables/hr.pay/count", r#"{"q":"reef"}"#).is_done());
        assert!(reader.line("COUNT hr.pay reef").is_denied());
        assert!(reader.http("POST /tables/hr.pay/count", r#"{"q":"reef"}"#).is_denied());
    }
}

#[test]
fn only_own_accounts_are_visible() {
    let server = guarded("");
    let mut boss = Clients::new(&server, "boss").sql;
    let rows =
        boss.query("SELECT User, Host, Select_priv, Drop_priv FROM mysql.user ORDER BY User");
    let Answer::Rows(rows) = rows else { panic!("{rows:?}") };
    let names: Vec<&str> = rows.iter().map(|row| row[0].as_deref().unwrap()).collect();
    assert_eq!(names, ["boss", "builder", "keeper", "nobody", "reader", "writer"]);
    let shown: Vec<&str> = rows[0][1..].iter().map(|value| value.as_deref().unwrap()).collect();
    assert_eq!(shown, ["%", "Y", "Y"]);
    let all =
        boss.query("SELECT authentication_string, plugin FROM mysql.user WHERE User = 'boss'");
    let plugin = Some("caching_sha2_password".to_owned());
    assert_eq!(all, Answer::Rows(vec![vec![Some(String::new()), plugin]]));
    // A dump must not take it along.
    assert_eq!(boss.query("SHOW TABLES FROM mysql"), Answer::Rows(Vec::new()));
    let mut reader = Clients::new(&server, "reader").sql;
    assert_eq!(reader.query("SELECT COUNT(*) FROM mysql.user").value(), "1");
    let own = reader.query("SELECT User, Select_priv FROM mysql.user");
    assert_eq!(own, Answer::Rows(vec![vec![Some("reader".to_owned()), Some("N".to_owned())]]));
    for text in ["INSERT INTO mysql.user (User) VALUES ('x')", "DROP TABLE mysql.user"] {
        assert!(of_sql(reader.query(text)).is_denied(), "{text}");
    }
}
