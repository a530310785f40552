//! MySQL's JSON: random documents, values of every type within them, and partial updates.

use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server};

use super::{
    check as compare, execute,
    follow::Followed,
    random::{Random, SEED},
    table,
};

/// Expressions that make values of all the types that JSON can hold.
const VALUES: [&str; 34] = [
    "CAST('null' AS JSON)",
    "CAST('[]' AS JSON)",
    "CAST('{}' AS JSON)",
    "CAST('[1, -1, 32767, 32768, -32769, 65535, 65536, 2147483647, 2147483648, 4294967296]' AS JSON)",
    "CAST('[9223372036854775807, 9223372036854775808, 18446744073709551615, -9223372036854775808]' AS JSON)",
    "CAST('[18446744073709551616, 1e308]' AS JSON)",
    "CAST('[0.1, 1.0, 1e0, -0.0, 1e15, 1e16, 123456789012345678, 1.5e300, 1e-10, 1e-15, 5e-324]' AS JSON)",
    "CAST('[100000000000000.5, 1000000000000000.5, 0.00001, 123456.789e3, 1e14, 1e21]' AS JSON)",
    "JSON_ARRAY(CAST(1.50 AS DECIMAL(5,2)), CAST(-0.001 AS DECIMAL(65,30)), 12345678901234567890.5)",
    "JSON_ARRAY(DATE'2024-02-29', TIME'-12:34:56.5', TIMESTAMP'2024-02-29 12:34:56.000001', NOW())",
    "JSON_ARRAY(TIME'838:59:59', TIME'00:00:00', TIMESTAMP'0001-01-01 00:00:00')",
    "JSON_ARRAY(x'00ff', b'101', CAST(REPEAT('x', 100) AS BINARY))",
    "JSON_ARRAY('a\"b\\\\c/\\n\\t\\r\\b', CHAR(1, 31, 127 USING utf8mb4), 'ü日😀')",
    "JSON_OBJECT('b', 1, 'a', 2, 'aa', 3, 'ü', 4, '', 5, 'a b', 6, 'B', 7)",
    "JSON_ARRAY(TRUE, FALSE, NULL, 0e0, 1.0e0, -2e0, 1e22, 3.0e-7)",
    "JSON_ARRAY(ST_GeomFromText('POINT(1 2)'))",
    "CAST(CONCAT('[', REPEAT('[', 98), REPEAT(']', 98), ']') AS JSON)",
    "CAST(CONCAT('[\"', REPEAT('x', 70000), '\", 1]') AS JSON)",
    "CAST(CONCAT('[1', REPEAT(',2', 40000), ']') AS JSON)",
    "CAST(CONCAT('{\"a\": \"', REPEAT('ü', 40000), '\", \"b\": {\"c\": 1}}') AS JSON)",
    "CAST('\"text\"' AS JSON)",
    "CAST('1' AS JSON)",
    "CAST('-1.5' AS JSON)",
    "CAST('true' AS JSON)",
    "CAST('{\"a\": {\"b\": [1, {\"c\": [true, false, null]}]}}' AS JSON)",
    "CAST(CONCAT('{\"', REPEAT('k', 300), '\": 1}') AS JSON)",
    "CAST('[\"\\\\u0000\\\\u001f\\\\u007f\\\\u20ac\"]' AS JSON)",
    "CAST(DATE'2024-01-01' AS JSON)",
    "CAST(1.25 AS JSON)",
    "CAST(1.0E0 AS JSON)",
    "CAST(18446744073709551615 AS JSON)",
    "JSON_ARRAY(CAST(2024 AS YEAR))",
    "JSON_ARRAY(1e100, 1.7976931348623157e308, 4.9e-324, 0.3, 2e0/3)",
    "JSON_ARRAY(CAST(1.5 AS FLOAT), CAST(0.1 AS FLOAT))",
];

/// What partial updates do, each to the document that is there.
const UPDATES: [&str; 12] = [
    "JSON_SET(v, '$.n', 5)",
    "JSON_SET(v, '$.text', 'short')",
    "JSON_SET(v, '$.list[1]', 77)",
    "JSON_SET(v, '$.list[9]', 'behind')",
    "JSON_SET(v, '$.object.\"a b\".c', JSON_OBJECT('x', 1.50))",
    "JSON_REMOVE(v, '$.list[0]')",
    "JSON_REMOVE(v, '$.object.gone')",
    "JSON_REPLACE(v, '$.object.\"q\\\\\"uote\"', 3)",
    "JSON_SET(v, '$.new', 1, '$.newer', '2', '$.n', 6)",
    "JSON_SET(v, '$.text', REPEAT('longer ', 30))",
    "JSON_SET(v, '$.ü', TRUE)",
    "JSON_SET(JSON_REMOVE(v, '$.n'), '$.list[0]', NULL)",
];

const RANDOM_DOCUMENTS: usize = 300;

/// A random document as text.
fn document(random: &mut Random, depth: usize) -> String {
    let parts = if depth == 0 { 0 } else { random.below(6) };
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => ["null", "true", "false"][random.below(3)].to_owned(),
        1 => (random.below(70_000) as i64 - 35_000).to_string(),
        2 => (random.0 as i64).to_string(),
        3 => random.0.to_string(),
        4 => format!("{:e}", f64::from_bits(random.0 & !(1 << 62))),
        5 => format!("\"{}\"", "xü日😀\\n\\\"'".repeat(random.below(20))),
        6 => {
            let parts: Vec<_> = (0..parts).map(|_| document(random, depth - 1)).collect();
            format!("[{}]", parts.join(","))
        }
        _ => {
            let member = |random: &mut Random, key: usize| {
                let name = "kéy".repeat(random.below(4));
                format!("\"{name}{key}\": {}", document(random, depth - 1))
            };
            let parts: Vec<_> = (0..parts).map(|key| member(random, key)).collect();
            format!("{{{}}}", parts.join(","))
        }
    }
}

pub fn check(server: &Server, connection: &mut Conn, kind: Kind) {
    if kind != Kind::MySql97 {
        return;
    }
    let mut followed = Followed::start(server);
    execute(
        connection,
        "CREATE TABLE documents (id INT AUTO_INCREMENT PRIMARY KEY, before_it INT, v JSON, w JSON, \
         g INT GENERATED ALWAYS AS (v->'$.n') VIRTUAL, h TEXT GENERATED ALWAYS AS (v->>'$.text') STORED, \
         KEY f ((CAST(w->'$[*]' AS UNSIGNED ARRAY))))",
    );
    for value in VALUES {
        execute(connection, &format!("INSERT INTO documents (before_it, v) VALUES (1, {value})"));
    }
    execute(connection, "INSERT INTO documents (v, w) VALUES (NULL, '[1, 2]')");
    let mut random = Random(SEED);
    for _ in 0..RANDOM_DOCUMENTS {
        let text = document(&mut random, 5).replace('\\', "\\\\").replace('\'', "''");
        execute(connection, &format!("INSERT INTO documents (v) VALUES ('{text}')"));
    }
    let document = "{\"n\": 1, \"text\": \"some longer text here\", \"list\": [1, 2, 3], \
        \"object\": {\"a b\": {\"c\": 1}, \"gone\": [1], \"q\\\\\"uote\": 2}, \"pad\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}";
    for _ in 0..20 {
        execute(connection, &format!("INSERT INTO documents (v, w) VALUES ('{document}', '[3]')"));
    }
    for (at, update) in UPDATES.iter().enumerate() {
        execute(
            connection,
            &format!("UPDATE documents SET v = {update} WHERE w = CAST('[3]' AS JSON)"),
        );
        execute(
            connection,
            &format!(
                "UPDATE documents SET v = JSON_SET(v, '$.n', {at}), before_it = {at} \
                      WHERE w = CAST('[3]' AS JSON) AND id % 2 = 0"
            ),
        );
    }
    followed.add(table(connection, "documents"));
    followed.until_end(connection);
    let option: Option<String> =
        connection.query_first("SELECT @@GLOBAL.binlog_row_value_options").unwrap();
    assert_eq!(followed.partial_updates() > 0, option.is_some_and(|option| !option.is_empty()));
    compare(connection, &followed, kind.name());
}
