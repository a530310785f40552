//! Column metadata and values of a source, of its replica and of local tables, in the text and the binary protocol.

use std::{thread::sleep, time::Duration};

use mysql::{Conn, OptsBuilder, prelude::Queryable};
use remora_peers::{Kind, Server as Peer};

use crate::support::{Client, TestServer};

const NUMBERS: [&str; 3] = [
    "CREATE TABLE numbers (id INT PRIMARY KEY, z INT(5) ZEROFILL, zb BIGINT ZEROFILL, \
     zt TINYINT(2) UNSIGNED ZEROFILL, n INT, u INT UNSIGNED, truth TINYINT(1), f FLOAT(7,4), \
     d DOUBLE(9,2), plain DOUBLE, single FLOAT, fz FLOAT(7,4) ZEROFILL, ffz FLOAT ZEROFILL, \
     dz DOUBLE ZEROFILL, cz DECIMAL(6,2) ZEROFILL, cu DECIMAL(6,2) UNSIGNED, du DOUBLE UNSIGNED)",
    "INSERT INTO numbers VALUES (1, 42, 7, 3, 42, 42, 1, 1.5, 2.5, 2.5, 2.5, 1.5, 1.5, 1.25, 12.5, \
     12.5, 1.5), (2, 1234567, 12345678901, 123, -1234567, 1234567, 0, -12.34567, -1234567.891, 1e20, \
     1e20, 12.34567, 12345678, 1e20, 1.005, 1.005, 1e30)",
    "INSERT INTO numbers (id) VALUES (3)",
];

/// Of each column of `numbers` that is shown in a way of its own; and of each of them as a part of an
/// expression, which has or has not that way any more.
const EXPRESSIONS: [&str; 23] = [
    "{}",
    "{} + 0",
    "-{}",
    "MAX({})",
    "IFNULL({}, 1)",
    "COALESCE({0}, {0})",
    "CASE WHEN id > 0 THEN {} END",
    "CONCAT({})",
    "CONCAT('<', {}, '>')",
    "CAST({} AS CHAR)",
    "LENGTH({})",
    "GROUP_CONCAT({})",
    "CONCAT(MAX({}))",
    "CONCAT(IFNULL({}, 0))",
    "LPAD({}, 12, 'x')",
    "{} LIKE '0%'",
    "CONCAT({} + 0)",
    "CAST({} AS DECIMAL(12,3))",
    "UPPER({})",
    "LEFT({}, 3)",
    "REPLACE({}, '0', 'o')",
    "FORMAT({}, 2)",
    "{} = 42",
];

/// Name, type, length, decimals and flags, then the values.
type Shown = Vec<(String, Vec<String>)>;

fn text_of(value: &mysql::Value) -> String {
    match value {
        mysql::Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

fn shown<P: mysql::prelude::Protocol>(mut result: mysql::QueryResult<'_, '_, '_, P>) -> Shown {
    // Which of its indexes a column is in is not said of columns here.
    let keys = mysql::consts::ColumnFlags::MULTIPLE_KEY_FLAG
        | mysql::consts::ColumnFlags::NO_DEFAULT_VALUE_FLAG
        | mysql::consts::ColumnFlags::PART_KEY_FLAG;
    let columns = result.columns();
    let told = columns.as_ref().iter().map(|column| {
        let (kind, length) = (column.column_type(), column.column_length());
        let (decimals, flags) = (column.decimals(), column.flags() - keys);
        format!("{} {kind:?} length {length} decimals {decimals} {flags:?}", column.name_str())
    });
    let mut shown: Shown = told.map(|told| (told, Vec::new())).collect();
    for row in result.by_ref() {
        for (column, value) in shown.iter_mut().zip(row.unwrap().unwrap()) {
            column.1.push(text_of(&value));
        }
    }
    shown
}

fn text(conn: &mut Conn, sql: &str) -> Shown {
    shown(conn.query_iter(sql).unwrap_or_else(|error| panic!("{sql}: {error}")))
}

fn binary(conn: &mut Conn, sql: &str) -> Shown {
    shown(conn.exec_iter(sql, ()).unwrap())
}

fn client(server: &TestServer, database: &str) -> Conn {
    let address = server.sql_address();
    let options = OptsBuilder::new()
        .ip_or_hostname(Some(address.ip().to_string()))
        .tcp_port(address.port())
        .user(Some("root"))
        .prefer_socket(false);
    let mut conn = Conn::new(options).unwrap();
    conn.query_drop(format!("USE {database}")).unwrap();
    conn
}

fn same(ours: &Shown, theirs: &Shown, what: &str) {
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours, theirs, "{what}");
    }
    assert_eq!(ours.len(), theirs.len(), "{what}");
}

/// Compares the table `numbers` of two servers in all protocols.
fn compare(ours: &mut Conn, theirs: &mut Conn, is_mysql: bool) {
    let all = "SELECT * FROM numbers ORDER BY id";
    same(&text(ours, all), &text(theirs, all), "by the text protocol");
    same(&binary(ours, all), &binary(theirs, all), "by the binary protocol");
    for (column, expression) in
        ["z", "f", "d", "cz", "fz"].into_iter().flat_map(|c| EXPRESSIONS.map(|e| (c, e)))
    {
        // MySQL alone keeps the zeros of a decimal in a CASE, but not in a COALESCE.
        if is_mysql && column == "cz" && expression.starts_with("CASE") {
            continue;
        }
        let expression = expression.replace("{0}", column).replace("{}", column);
        for sql in [
            format!("SELECT {expression} x FROM numbers WHERE id = 1"),
            format!("SELECT {expression} x FROM numbers WHERE id < 3 AND d < 0"),
        ] {
            let sql = if sql.contains("MAX") || sql.contains("GROUP_CONCAT") {
                sql
            } else {
                format!("{sql} ORDER BY id")
            };
            let (ours, theirs) = (text(ours, &sql), text(theirs, &sql));
            assert_eq!(ours[0].1, theirs[0].1, "{sql}");
        }
    }
    for sql in [
        "SELECT z, f FROM (SELECT DISTINCT z, f FROM numbers LIMIT 9) q ORDER BY z",
        "SELECT z, f FROM numbers GROUP BY z, f ORDER BY z",
        "SELECT z FROM numbers UNION SELECT z FROM numbers ORDER BY 1",
        "SELECT f FROM numbers UNION ALL SELECT 1 ORDER BY 1",
        "SELECT MIN(z), MIN(f), MIN(cz) FROM numbers",
    ] {
        let values = |shown: Shown| shown.into_iter().map(|(_, values)| values).collect::<Vec<_>>();
        assert_eq!(values(text(ours, sql)), values(text(theirs, sql)), "{sql}");
    }
    let types = "SELECT column_name, column_type FROM information_schema.columns WHERE \
                 table_name = 'numbers' AND table_schema = DATABASE() ORDER BY ordinal_position";
    let declared = |conn: &mut Conn| conn.query::<(String, String), _>(types).unwrap();
    let (ours, theirs) = (declared(ours), declared(theirs));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let formatted = theirs.1.contains("zerofill") || theirs.1.contains(',');
        if is_mysql || formatted {
            assert_eq!(ours, theirs);
        }
    }
    assert_eq!(ours.len(), theirs.len());
}

/// FIELDS prints values like this too; GET prints them without padding, like MygramDB.
fn by_line(line: &mut Client, theirs: &mut Conn) {
    let columns = "z,zb,zt,n,f,d,fz,cz,cu";
    for id in [1, 2, 3] {
        let sql = format!("SELECT {columns} FROM numbers WHERE id = {id}");
        let values = text(theirs, &sql).into_iter().map(|(_, values)| values[0].clone());
        let values: Vec<String> =
            values.map(|value| if value == "Null" { "\\N".to_owned() } else { value }).collect();
        let row = format!("\r\n{id}\t{}\r\n", values.join("\t"));
        for request in [
            format!("GET shop.numbers {id} FIELDS {columns}"),
            format!("SEARCH shop.numbers FILTER id = {id} FIELDS {columns}"),
        ] {
            let reply = line.ask(&request);
            assert!(reply.contains(&row), "{request}: {reply} lacks {row}");
        }
    }
    let plain = line.ask("GET shop.numbers 1");
    assert!(plain.contains(" z=42 ") && plain.contains(" f=1.500000 "), "{plain}");
}

/// Waits until a query has this answer.
fn wait(conn: &mut Conn, sql: &str, expected: &str) {
    let mut answer = String::new();
    for _ in 0..3_000 {
        if let Ok(Some(found)) = conn.query_first::<mysql::Row, _>(sql) {
            answer = text_of(&found[0]);
            if answer == expected {
                return;
            }
        }
        sleep(Duration::from_millis(20));
    }
    panic!("{sql} is {answer}, not {expected}");
}

fn names(conn: &mut Conn, sql: &str, place: usize) -> Vec<String> {
    let rows: Vec<mysql::Row> = conn.query(sql).unwrap();
    rows.iter().map(|row| text_of(&row[place])).collect()
}

fn followed_columns_are_shown_as_the_source_shows_them(kind: Kind) {
    let source = Peer::start(kind, &[]).unwrap();
    let mut theirs = source.connect().unwrap();
    theirs.query_drop("CREATE DATABASE shop").unwrap();
    theirs.query_drop("USE shop").unwrap();
    theirs.query_drop("SET sql_mode = ''").unwrap();
    NUMBERS.iter().for_each(|sql| theirs.query_drop(sql).unwrap());
    let server = TestServer::following(&source.follower_url("shop"));
    let mut ours = client(&server, "information_schema");
    wait(&mut ours, "SELECT COUNT(*) FROM shop.numbers", "3");
    ours.query_drop("USE shop").unwrap();
    compare(&mut ours, &mut theirs, !kind.is_mariadb());
    by_line(&mut server.connect(), &mut theirs);
    // The order of columns, wherever it is told.
    for (change, first) in [
        ("MODIFY f FLOAT(7,4) FIRST", "f"),
        ("ADD fresh INT(4) ZEROFILL DEFAULT 9 FIRST", "fresh"),
        ("CHANGE z zz INT(5) ZEROFILL AFTER d, MODIFY n INT FIRST", "n"),
    ] {
        theirs.query_drop(format!("ALTER TABLE numbers {change}")).unwrap();
        let place = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'shop' \
                     AND table_name = 'numbers' AND ordinal_position = 1";
        wait(&mut ours, place, first);
        let all = "SELECT * FROM numbers ORDER BY id";
        same(&text(&mut ours, all), &text(&mut theirs, all), change);
        for sql in ["SHOW COLUMNS FROM numbers", "DESCRIBE numbers"] {
            assert_eq!(names(&mut ours, sql, 0), names(&mut theirs, sql, 0), "{change}: {sql}");
        }
        let created = |conn: &mut Conn| -> Vec<String> {
            let text = names(conn, "SHOW CREATE TABLE numbers", 1).remove(0);
            let lines = text.lines().filter_map(|line| line.trim().strip_prefix('`'));
            lines.filter_map(|line| line.split('`').next()).map(str::to_owned).collect()
        };
        assert_eq!(created(&mut ours), created(&mut theirs), "{change}");
    }
}

#[test]
fn mysql_columns_show_like_at_the_source() {
    followed_columns_are_shown_as_the_source_shows_them(Kind::MySql97);
}

#[test]
fn mariadb_columns_show_like_at_the_source() {
    followed_columns_are_shown_as_the_source_shows_them(Kind::MariaDb1011);
}

/// Local tables: written values are rounded and refused like in MySQL.
#[test]
fn locally_created_columns_show_like_in_mysql() {
    let source = Peer::start(Kind::MySql97, &[]).unwrap();
    let mut theirs = source.connect().unwrap();
    let server = TestServer::start_empty("");
    let mut ours = client(&server, "information_schema");
    for conn in [&mut theirs, &mut ours] {
        conn.query_drop("CREATE DATABASE shop").unwrap();
        conn.query_drop("USE shop").unwrap();
        conn.query_drop("SET sql_mode = ''").unwrap();
        NUMBERS.iter().for_each(|sql| conn.query_drop(sql).unwrap());
    }
    compare(&mut ours, &mut theirs, true);
    for conn in [&mut theirs, &mut ours] {
        conn.query_drop("SET sql_mode = 'STRICT_ALL_TABLES'").unwrap();
    }
    let writes = [
        "UPDATE numbers SET f = 2.00005, d = 0.005 WHERE id = 3",
        "UPDATE numbers SET f = 999.99994 WHERE id = 3",
        "UPDATE numbers SET f = 1000 WHERE id = 3",
        "UPDATE numbers SET f = -1000 WHERE id = 3",
        "UPDATE numbers SET d = 9999999.994 WHERE id = 3",
        "UPDATE numbers SET d = 9999999.996 WHERE id = 3",
        "UPDATE numbers SET z = 4294967295 WHERE id = 3",
        "UPDATE numbers SET z = -1 WHERE id = 3",
        "UPDATE numbers SET fz = -1 WHERE id = 3",
    ];
    let code = |conn: &mut Conn, sql: &str| match conn.query_drop(sql) {
        Ok(()) => 0,
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(error) => panic!("{sql}: {error}"),
    };
    for sql in writes {
        assert_eq!(code(&mut ours, sql), code(&mut theirs, sql), "{sql}");
        let row = "SELECT z, f, d, fz FROM numbers WHERE id = 3";
        same(&text(&mut ours, row), &text(&mut theirs, row), sql);
    }
}
