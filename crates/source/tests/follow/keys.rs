//! Keys of every type: copied in chunks of a few rows, changed and deleted by the stream.

use mysql::prelude::Queryable;
use remora_peers::Kind;

use crate::pair::Pair;

/// A key's type and values of it, in no order; those that a server refuses are left out.
const KEYS: [(&str, &[&str]); 24] = [
    ("TINYINT", &["-128", "-1", "0", "1", "127", "5", "-7"]),
    ("BIGINT UNSIGNED", &["0", "18446744073709551615", "9223372036854775808", "7", "12"]),
    ("DECIMAL(20,5)", &["-12.5", "0", "-0.00001", "99999999999999.99999", "3", "-99"]),
    ("DECIMAL(40,10)", &["-12.5", "0", "1e29", "-1e29", "3.0000000001", "3"]),
    ("FLOAT", &["-1.5", "0", "1e20", "3.4028e38", "-0.1", "0.1", "1.1754e-38"]),
    ("DOUBLE", &["-1.5", "0", "1e200", "0.1", "-1e-300", "123456789.125", "4.9e-300"]),
    ("BIT(9)", &["b'0'", "b'111111111'", "b'101'", "b'100000000'", "b'11'"]),
    ("BIT(64)", &["b'0'", "0xffffffffffffffff", "0x8000000000000000", "5", "6", "7"]),
    ("YEAR", &["1901", "2155", "0", "2024", "1999"]),
    ("DATE", &["'0000-00-00'", "'2024-02-29'", "'9999-12-31'", "'1000-01-01'", "'2024-00-00'"]),
    ("TIME(3)", &["'-838:59:59'", "'00:00:00'", "'838:59:59'", "'-00:00:00.5'", "'12:30:00.25'"]),
    (
        "DATETIME(6)",
        &[
            "'0000-00-00'",
            "'2024-01-01 00:00:00.000001'",
            "'9999-12-31 23:59:59'",
            "'2024-01-01'",
            "'1999-01-01 01:01:01.5'",
        ],
    ),
    (
        "TIMESTAMP(2) DEFAULT '2000-01-01'",
        &[
            "'0000-00-00'",
            "'1970-01-01 00:00:01'",
            "'2038-01-19 03:14:07.99'",
            "'2024-06-01 12:00:00.5'",
            "'2024-06-01 12:00:00'",
        ],
    ),
    (
        "CHAR(10) CHARACTER SET utf8mb4",
        &[
            "''", "'a'", "'B'", "'b c'", "'é'", "'ß'", "'Z'", "'ä'", "'🐟'", "'it''s'", "'a\\\\b'",
            "'zz'",
        ],
    ),
    (
        "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci",
        &["'a'", "'Ö'", "'z'", "'å'", "'Y'", "'ü'", "'0'", "' '", "'-'"],
    ),
    (
        "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        &["'a'", "'A'", "'á'", "'海'", "'🐟'", "''", "'a '", "'%_'"],
    ),
    ("VARCHAR(20) CHARACTER SET sjis", &["'a'", "'表'", "'ソ'", "'能'", "'ｱ'", "'ア'", "'b'"]),
    ("BINARY(4)", &["''", "'a'", "0x00ff00ff", "0xffffffff", "0x5c27", "0x61000001"]),
    ("VARBINARY(20)", &["''", "0x00", "0x0000", "0xff", "0x5c", "0x27", "'abc'"]),
    ("ENUM('z','y','x','a''b')", &["'z'", "'y'", "'x'", "'a''b'"]),
    ("SET('c','b','a')", &["''", "'c'", "'b'", "'c,a'", "'c,b,a'", "'a'"]),
    (
        "UUID",
        &[
            "'00000000-0000-0000-0000-000000000001'",
            "'ffffffff-ffff-1fff-8fff-ffffffffffff'",
            "'123e4567-e89b-12d3-a456-426655440000'",
            "'123e4567-e89b-42d3-a456-426655440001'",
        ],
    ),
    ("INET6", &["'::'", "'::1'", "'2001:db8::ff00:42:8329'", "'ffff::'", "'::ffff:1.2.3.4'"]),
    ("INET4", &["'0.0.0.0'", "'255.255.255.255'", "'10.0.0.1'", "'9.255.0.1'"]),
];

/// Compares what stands behind the keys of every table; how many tables there are.
fn compare(pair: &mut Pair) -> usize {
    pair.catch_up();
    let names: Vec<String> = pair.conn.query("SHOW TABLES").unwrap();
    for name in &names {
        let sql = format!("SELECT CAST(v AS CHAR) FROM {name}");
        let mut theirs: Vec<String> = pair.conn.query(sql).unwrap();
        theirs.sort();
        let mut ours: Vec<_> =
            pair.rows(name).into_iter().map(|mut row| row.pop().unwrap()).collect();
        ours.sort();
        assert_eq!(ours, theirs, "{name}");
    }
    names.len()
}

fn keys_of_every_type(kind: Kind) {
    let mut pair = Pair::start_with(kind, &[], &[], |settings| settings.chunk_rows = 2);
    pair.run("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'");
    let mut tables = 0;
    for (number, (declared, values)) in KEYS.iter().enumerate() {
        let server_has = kind.is_mariadb() || !matches!(*declared, "UUID" | "INET6" | "INET4");
        let server_has = server_has && (*declared != "UUID" || kind != Kind::MySql56);
        if !server_has {
            continue;
        }
        tables += 1;
        pair.run(&format!("CREATE TABLE t{number} (k {declared} NOT NULL PRIMARY KEY, v INT)"));
        // Two parts: the key is the second, so that chunks end within equal first ones.
        pair.run(&format!(
            "CREATE TABLE p{number} (a INT, k {declared} NOT NULL, v INT, PRIMARY KEY (a, k))"
        ));
        for (place, value) in values.iter().enumerate() {
            pair.run(&format!("INSERT IGNORE INTO t{number} VALUES ({value}, {place})"));
            pair.run(&format!("INSERT IGNORE INTO p{number} VALUES (1, {value}, {place})"));
            pair.run(&format!("INSERT IGNORE INTO p{number} VALUES (2, {value}, {place})"));
        }
    }
    assert_eq!(compare(&mut pair), 2 * tables);
    // And by copies, while the same rows change.
    pair.close();
    pair.move_to(tempfile::tempdir().unwrap());
    pair.open();
    let names: Vec<String> = pair.conn.query("SHOW TABLES").unwrap();
    for name in &names {
        pair.run(&format!("UPDATE {name} SET v = v + 100 WHERE v % 2 = 0"));
        pair.run(&format!("DELETE FROM {name} WHERE v = 3"));
    }
    assert_eq!(compare(&mut pair), 2 * tables);
    for name in &names {
        pair.follower().sync(&format!("shop.{name}")).unwrap();
        pair.run(&format!("UPDATE {name} SET v = v + 1000 WHERE v < 2"));
    }
    assert_eq!(compare(&mut pair), 2 * tables);
}

#[test]
fn mariadb_10_11_keys() {
    keys_of_every_type(Kind::MariaDb1011);
}

#[test]
fn mysql_9_7_keys() {
    keys_of_every_type(Kind::MySql97);
}

#[test]
fn mysql_5_6_keys() {
    keys_of_every_type(Kind::MySql56);
}
