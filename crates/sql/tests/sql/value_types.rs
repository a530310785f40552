//! MariaDB's UUID, INET6 and INET4, and its collations of the Unicode algorithm 14.0: comparisons and orders as MariaDB
//! 11.8 gives them, of columns with and without keys, before and after rows are in segments.

use remora_sql::Session;

use crate::support::{Server, rows, run};

const VALUES: &str = "INSERT INTO t VALUES \
    (1, '00112233-4455-6677-8899-aabbccddeeff', '::ffff:1.2.3.4', '10.2.3.4'), \
    (2, '7b8a2c14-d8f0-11ee-b63f-0242ac120002', '1::2', '9.2.3.4'), \
    (3, '018dfd33-6e0b-7c4c-8d3a-000000000001', '9::', '10.2.3.4'), \
    (4, '018dfd33-6e0b-1c4c-8d3a-000000000001', '10::', '2.2.3.4')";

/// Statements and the numbers that MariaDB gives.
const OF_TYPES: [(&str, &str); 18] = [
    ("SELECT id FROM t WHERE u = '7B8A2C14D8F011EEB63F0242AC120002'", "2"),
    ("SELECT id FROM t WHERE i = '0001::0002'", "2"),
    ("SELECT id FROM t WHERE i IN ('0:0:0:0:0:FFFF:102:304', '9:0::') ORDER BY id", "1 3"),
    ("SELECT id FROM t WHERE j = '009.2.3.4'", "2"),
    ("SELECT id FROM t WHERE i > '2::' ORDER BY id", "3 4"),
    ("SELECT id FROM t WHERE j BETWEEN '2.2.3.5' AND '9.255.0.0'", "2"),
    ("SELECT id FROM t WHERE u < '018dfd33-6e0b-7c4c-8d3a-000000000001' ORDER BY id", "1 4"),
    ("SELECT id FROM t ORDER BY u", "4 1 3 2"),
    ("SELECT id FROM t ORDER BY i DESC", "4 3 2 1"),
    ("SELECT id FROM t ORDER BY j, id", "4 2 1 3"),
    ("SELECT id FROM t ORDER BY j LIMIT 2", "4 2"),
    ("SELECT MIN(i) = '::ffff:1.2.3.4', MAX(i) = '10::' FROM t", "1|1"),
    ("SELECT id FROM t WHERE j = (SELECT MIN(j) FROM t)", "4"),
    ("SELECT COUNT(DISTINCT j) FROM t", "3"),
    ("SELECT COUNT(*) FROM t GROUP BY j ORDER BY j", "1 1 2"),
    ("SELECT a.id FROM t a JOIN t b ON a.u = UPPER(b.u) ORDER BY a.id", "1 2 3 4"),
    ("SELECT id FROM t WHERE u LIKE '7b8%'", "2"),
    ("SELECT COUNT(*) FROM t WHERE u = 'x' OR i = '' OR j = '1.2.3'", "0"),
];

const TEXTS: &str = "INSERT INTO c VALUES (1, 'a', 'a', 'a'), (2, 'A ', 'A ', 'A '), (3, 'á', 'á', 'á'), \
    (4, 'b', 'b', 'b'), (5, 'a  ', 'a  ', 'a  ')";

const OF_COLLATIONS: [(&str, &str); 10] = [
    ("SELECT id FROM c WHERE a = 'a' ORDER BY id", "1 2 3 5"),
    ("SELECT id FROM c WHERE a = 'B  '", "4"),
    ("SELECT COUNT(DISTINCT a) FROM c", "2"),
    ("SELECT COUNT(*) FROM c GROUP BY a ORDER BY a", "4 1"),
    ("SELECT id FROM c ORDER BY a, id", "1 2 3 5 4"),
    ("SELECT id FROM c WHERE s = 'a' ORDER BY id", "1 5"),
    ("SELECT COUNT(DISTINCT s) FROM c", "4"),
    ("SELECT id FROM c WHERE n = 'a' ORDER BY id", "1 3"),
    ("SELECT COUNT(DISTINCT n) FROM c", "4"),
    ("SELECT id FROM c WHERE a BETWEEN 'a ' AND 'a' ORDER BY id", "1 2 3 5"),
];

async fn check(session: &mut Session, expected: &[(&str, &str)], what: &str) {
    for (statement, numbers) in expected {
        let found = rows(session, statement).await;
        let found: Vec<_> = found.split_whitespace().collect();
        assert_eq!(found.join(" "), *numbers, "{what}: {statement}");
    }
}

#[tokio::test]
async fn values_of_mariadbs_types_compare_as_there() {
    for keys in
        ["", ", KEY (u), KEY (i), KEY (j)", ", UNIQUE KEY (u, i), KEY (j, id), KEY (i DESC)"]
    {
        let server = Server::new();
        let mut session = server.session();
        let table = format!("CREATE TABLE t (id INT PRIMARY KEY, u UUID, i INET6, j INET4{keys})");
        run(&mut session, &table).await.unwrap();
        run(&mut session, VALUES).await.unwrap();
        check(&mut session, &OF_TYPES, &format!("new rows{keys}")).await;
        run(&mut session, "OPTIMIZE TABLE t").await.unwrap();
        check(&mut session, &OF_TYPES, &format!("segments{keys}")).await;
        let shown = rows(&mut session, "SHOW CREATE TABLE t").await;
        assert!(shown.contains("`i` inet6 DEFAULT NULL"), "{shown}");
    }
}

#[tokio::test]
async fn collations_of_mariadb_ignore_trailing_spaces() {
    for keys in ["", ", KEY (a), KEY (s), KEY (n)"] {
        let server = Server::new();
        let mut session = server.session();
        let table = format!(
            "CREATE TABLE c (id INT PRIMARY KEY, a VARCHAR(9), \
             s VARCHAR(9) CHARACTER SET utf8mb3 COLLATE utf8mb3_uca1400_as_cs, \
             n VARCHAR(9) COLLATE utf8mb4_uca1400_nopad_ai_ci{keys}) \
             COLLATE=utf8mb4_uca1400_ai_ci"
        );
        run(&mut session, &table).await.unwrap();
        run(&mut session, TEXTS).await.unwrap();
        check(&mut session, &OF_COLLATIONS, &format!("new rows{keys}")).await;
        run(&mut session, "OPTIMIZE TABLE c").await.unwrap();
        check(&mut session, &OF_COLLATIONS, &format!("segments{keys}")).await;
        let shown = rows(&mut session, "SHOW CREATE TABLE c").await;
        for name in ["COLLATE=utf8mb4_uca1400_ai_ci", "COLLATE utf8mb3_uca1400_as_cs"] {
            assert!(shown.contains(name), "{shown}");
        }
        let told = "SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 'c' \
                    AND COLUMN_NAME = 's'";
        assert_eq!(rows(&mut session, told).await.trim(), "utf8mb3_uca1400_as_cs");
    }
}

/// Equal texts are one key.
#[tokio::test]
async fn unique_keys_ignore_trailing_spaces() {
    let server = Server::new();
    let mut session = server.session();
    let table = "CREATE TABLE c (id INT PRIMARY KEY, a VARCHAR(9) COLLATE utf8mb4_uca1400_ai_ci, UNIQUE KEY (a))";
    run(&mut session, table).await.unwrap();
    run(&mut session, "INSERT INTO c VALUES (1, 'a')").await.unwrap();
    assert!(run(&mut session, "INSERT INTO c VALUES (2, 'A ')").await.is_err());
    run(&mut session, "INSERT INTO c VALUES (2, 'b')").await.unwrap();
}

#[tokio::test]
async fn labels_of_the_character_set_binary_are_texts() {
    let server = Server::new();
    let mut session = server.session();
    for statement in [
        "CREATE TABLE l (id INT PRIMARY KEY, e ENUM('x', 'y'), s SET('a', 'b', 'c')) DEFAULT CHARSET=binary",
        "INSERT INTO l VALUES (1, 'x', 'a,c'), (2, 'y', 'b'), (3, NULL, ''), (4, 'x', 'c')",
    ] {
        run(&mut session, statement).await.unwrap();
    }
    for (statement, expected) in [
        ("SELECT e, s FROM l WHERE id = 1", "x|a,c"),
        ("SELECT e FROM l ORDER BY id DESC LIMIT 2", "x\nNULL"),
        ("SELECT id FROM l WHERE e = 'x' ORDER BY id", "1\n4"),
        ("SELECT id FROM l WHERE e = 'X' ORDER BY id", ""),
        ("SELECT e + 0, s + 0 FROM l WHERE id < 3 ORDER BY id", "1|5\n2|2"),
        ("SELECT e, COUNT(*) FROM l GROUP BY e ORDER BY e", "NULL|1\nx|2\ny|1"),
        ("SELECT UPPER(e), CONCAT(s, '!') FROM l WHERE id = 4", "X|c!"),
        ("SELECT id FROM l WHERE FIND_IN_SET('c', s) ORDER BY id", "1\n4"),
    ] {
        assert_eq!(rows(&mut session, statement).await, expected, "{statement}");
    }
}
