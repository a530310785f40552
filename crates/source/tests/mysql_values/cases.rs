//! Column declarations and literals for them.

use remora_peers::Kind;

type Cases = Vec<(String, Vec<String>)>;

/// The cases of a server: declarations, and values that each takes.
pub fn of(kind: Kind) -> Cases {
    let mut cases = numbers();
    cases.extend(times());
    cases.extend(texts());
    cases.extend(bytes());
    match kind {
        Kind::MySql97 => cases.extend(only_mysql_9()),
        Kind::MySql56 => {}
        _ => cases.extend(only_mariadb(kind)),
    }
    cases
}

fn case(column: &str, values: &[&str]) -> (String, Vec<String>) {
    (column.to_owned(), values.iter().map(|&value| value.to_owned()).collect())
}

fn numbers() -> Cases {
    let mut cases = Vec::new();
    for (name, bits) in
        [("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)]
    {
        let most = 1_i128 << (bits - 1);
        let signed = [-most, most - 1, -1, 0, 1, most / 3].map(|number| number.to_string());
        let unsigned = [0, 1, most, 2 * most - 1, most / 3].map(|number| number.to_string());
        cases.push((name.to_owned(), signed.to_vec()));
        cases.push((format!("{name} UNSIGNED"), unsigned.to_vec()));
        cases.push((format!("{name} UNSIGNED ZEROFILL"), unsigned.to_vec()));
    }
    for bits in [1, 5, 8, 9, 16, 17, 24, 31, 33, 48, 63, 64] {
        let most = (1_u128 << bits) - 1;
        let values = [0, 1, most, most / 3 * 2].map(|number| number.to_string());
        cases.push((format!("BIT({bits})"), values.to_vec()));
    }
    for (precision, scale) in
        [(1, 0), (1, 1), (5, 2), (9, 0), (10, 10), (18, 9), (19, 3), (38, 19), (65, 0), (65, 30)]
    {
        let integer = "9".repeat(precision - scale);
        let fraction = "9".repeat(scale);
        let most = format!("{integer}.{fraction}");
        let small = format!(".{}1", "0".repeat(scale.saturating_sub(1)));
        let values =
            [most.clone(), format!("-{most}"), "0".into(), small.clone(), format!("-{small}")];
        cases.push((format!("DECIMAL({precision},{scale})"), values.to_vec()));
    }
    cases.push(case("DECIMAL(8,2) ZEROFILL", &["1.5", "0", "999999.99"]));
    let floats = ["0", "-0e0", "1.5", "0.1", "-123456.789", "1e-38", "3.4e38", "16777217", "1e10"];
    cases.push(case("FLOAT", &floats));
    cases.push(case("FLOAT UNSIGNED", &["0", "0.1", "8388608.5"]));
    cases.push(case("FLOAT(7,4)", &["0.1", "-999.9999", "12.34567"]));
    let doubles =
        ["0", "-0e0", "0.1", "1.7976931348623157e308", "-5e-324", "2.2250738585072014e-308"];
    cases.push(case("DOUBLE", &doubles));
    cases.push(case("DOUBLE", &["123456789.123456789", "1e15", "1e16", "0.00001", "-1e-300"]));
    cases.push(case("DOUBLE(10,3)", &["0.1", "-9999999.999", "12.3456"]));
    cases
}

fn times() -> Cases {
    let mut cases = vec![
        case("YEAR", &["0", "1901", "2155", "1970", "'0000'"]),
        case(
            "DATE",
            &[
                "'1000-01-01'",
                "'9999-12-31'",
                "'0000-00-00'",
                "'2024-00-00'",
                "'2024-02-00'",
                "'2024-02-30'",
                "'0001-01-01'",
            ],
        ),
    ];
    for digits in 0..=6 {
        let fraction =
            if digits == 0 { String::new() } else { format!(".{}", &"987654"[..digits]) };
        let time = |text: &str| format!("'{text}{fraction}'");
        cases.push((
            format!("TIME({digits})"),
            vec![
                time("00:00:00"),
                time("-00:00:00"),
                time("-00:00:01"),
                time("838:59:58"),
                time("-838:59:58"),
                time("12:34:56"),
                time("-100:00:59"),
                "'00:00:00'".to_owned(),
                "'838:59:59'".to_owned(),
                "'-838:59:59'".to_owned(),
                "'-00:00:00.1'".to_owned(),
            ],
        ));
        cases.push((
            format!("DATETIME({digits})"),
            vec![
                time("1000-01-01 00:00:00"),
                time("9999-12-31 23:59:58"),
                time("2024-02-29 12:34:56"),
                "'0000-00-00 00:00:00'".to_owned(),
                "'2024-00-00 10:00:00'".to_owned(),
                "'2024-02-31 10:00:00'".to_owned(),
                "'0000-00-01 00:00:01'".to_owned(),
            ],
        ));
        cases.push((
            format!("TIMESTAMP({digits}) NULL"),
            vec![
                time("1970-01-01 00:00:01"),
                time("2038-01-19 03:14:06"),
                time("2024-02-29 12:34:56"),
                "'0000-00-00 00:00:00'".to_owned(),
                "'2001-09-09 01:46:40'".to_owned(),
            ],
        ));
    }
    cases
}

fn texts() -> Cases {
    let values =
        ["''", "'a'", "'a  '", "'  '", "'Grüße'", "'日本'", "'a\\0b\\n\"'", "REPEAT('ä', 20)"];
    let mut cases = Vec::new();
    for column in [
        "CHAR(20)",
        "CHAR(255)",
        "VARCHAR(20)",
        "VARCHAR(63)",
        "VARCHAR(64)",
        "VARCHAR(300)",
        "TINYTEXT",
        "TEXT",
        "MEDIUMTEXT",
        "LONGTEXT",
    ] {
        for charset in
            ["utf8mb4", "latin1", "utf8", "utf16", "utf32", "ucs2", "sjis", "gbk", "ascii"]
        {
            cases.push(case(&format!("{column} CHARACTER SET {charset}"), &values));
        }
    }
    cases.push(case("CHAR(0)", &["''"]));
    cases.push(case("VARCHAR(3000)", &["REPEAT('é', 3000)", "''"]));
    cases.push(case("MEDIUMTEXT", &["REPEAT('日本', 50000)", "'x'"]));
    cases.push(case("CHAR(10) COLLATE utf8mb4_bin", &["'a '", "'A'", "'😀'"]));
    cases.push(case(
        "ENUM('a','b''c','d\\\\e','f\"g','h,i','j\\nk','','ü','日')",
        &["'a'", "'b''c'", "'d\\\\e'", "4", "5", "6", "7", "8", "9", "0", "'none of them'"],
    ));
    cases.push(case("ENUM('é','ü','z') CHARACTER SET latin1", &["'é'", "'ü'", "'z'"]));
    cases.push(case("ENUM('日','本') CHARACTER SET sjis", &["'日'", "'本'"]));
    let many: Vec<_> = (0..300).map(|number| format!("'label {number}'")).collect();
    cases.push(case(&format!("ENUM({})", many.join(",")), &["'label 0'", "'label 299'", "256"]));
    cases.push(case("SET('a','b c','ü')", &["''", "'a'", "'ü,a'", "'a,b c,ü'"]));
    let many: Vec<_> = (0..64).map(|number| format!("'m{number}'")).collect();
    cases.push(case(
        &format!("SET({})", many.join(",")),
        &["'m0'", "'m63'", "'m1,m62'", "18446744073709551615"],
    ));
    for count in [9, 17, 25, 33] {
        cases.push(case(&format!("SET({})", many[..count].join(",")), &["'m0,m8'", "'m7'", "''"]));
    }
    cases
}

fn bytes() -> Cases {
    let values = ["''", "'a'", "'a\\0'", "'a  '", "x'00ff80'", "x'0000000000'"];
    let mut cases = Vec::new();
    for column in [
        "BINARY(5)",
        "BINARY(255)",
        "VARBINARY(20)",
        "VARBINARY(3000)",
        "TINYBLOB",
        "BLOB",
        "MEDIUMBLOB",
        "LONGBLOB",
        "VARCHAR(20) CHARACTER SET binary",
    ] {
        cases.push(case(column, &values));
    }
    cases.push(case("MEDIUMBLOB", &["REPEAT(x'00ff', 200000)"]));
    cases.push(case(
        "GEOMETRY",
        &[
            "ST_GeomFromText('POINT(1 2)')",
            "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')",
            "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))', 4326)",
        ],
    ));
    cases.push(case("POINT", &["ST_GeomFromText('POINT(-1.5 2e10)')"]));
    cases
}

fn only_mysql_9() -> Cases {
    vec![
        case("VECTOR(3)", &["TO_VECTOR('[1,2.5,-3]')", "TO_VECTOR('[0,0]')"]),
        case("VECTOR(2000)", &["TO_VECTOR(CONCAT('[1', REPEAT(',2', 1999), ']'))"]),
        case("GEOMETRY SRID 4326", &["ST_GeomFromText('POINT(1 2)', 4326)"]),
        case("TEXT CHARACTER SET gb18030", &["'日本😀'"]),
        case("VARCHAR(20) INVISIBLE", &["'a'"]),
        case("VARCHAR(20) COLLATE utf8mb4_0900_as_cs", &["'a'", "'ä '"]),
    ]
}

fn only_mariadb(kind: Kind) -> Cases {
    let mut cases = vec![
        case(
            "UUID",
            &[
                "'00000000-0000-0000-0000-000000000000'",
                "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
                "'123e4567-e89b-12d3-a456-426614174000'",
                "'550e8400-e29b-41d4-a716-446655440000'",
                "'1ec9414c-232a-6b00-b3c8-9e6bdeced846'",
                "'01890a5d-ac96-774b-bcce-b302099a8057'",
                "'01890a5d-ac96-774b-0cce-b302099a8057'",
                "'320c3d4d-cc00-875b-8ec9-32d5f69181c0'",
                "'000003e8-0000-1000-8000-000000000000'",
            ],
        ),
        case(
            "INET6",
            &[
                "'::'",
                "'::1'",
                "'2001:db8::ff00:42:8329'",
                "'::ffff:192.0.2.128'",
                "'::192.0.2.128'",
                "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'",
                "'1:0:0:2::3'",
                "'::1:2'",
                "'fe80::'",
                "'1::2:3:4:5:6:7'",
                "'::0.1.2.3'",
                "'::1:0:0'",
            ],
        ),
        case("INET4", &["'0.0.0.0'", "'127.0.0.1'", "'255.255.255.0'"]),
        case("JSON", &["'{\"b\": 1,  \"a\": [1.50, \"ü\"]}'", "'[]'", "'null'"]),
    ];
    let long = ["REPEAT('ab', 500)", "''", "'short'", "REPEAT('é', 200)"];
    for column in [
        "VARCHAR(2000) COMPRESSED",
        "TEXT COMPRESSED",
        "BLOB COMPRESSED",
        "VARBINARY(2000) COMPRESSED",
        "VARCHAR(2000) COMPRESSED CHARACTER SET latin1",
        "TINYTEXT COMPRESSED",
        "LONGTEXT COMPRESSED",
    ] {
        cases.push(case(column, &long));
    }
    if kind == Kind::MariaDb118 {
        cases.push(case("VECTOR(3)", &["VEC_FromText('[1,2.5,-3]')"]));
        cases
            .push(case("TIMESTAMP(3) NULL", &["'2106-02-07 06:28:15.5'", "'2038-01-20 00:00:00'"]));
        cases.push(case("VARCHAR(20) COLLATE utf8mb4_uca1400_ai_ci", &["'a'"]));
    }
    cases
}
