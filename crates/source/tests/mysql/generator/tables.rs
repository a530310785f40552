//! The tables a run begins with: every type the server has, spread over several tables with all
//! shapes of keys.

use remora_peers::Kind;

use crate::random::Random;

/// The types every server has.
const COMMON: [&str; 66] = [
    "TINYINT",
    "TINYINT UNSIGNED",
    "SMALLINT",
    "SMALLINT UNSIGNED",
    "MEDIUMINT",
    "MEDIUMINT UNSIGNED",
    "INT",
    "INT UNSIGNED",
    "BIGINT",
    "BIGINT UNSIGNED",
    "INT(5) ZEROFILL",
    "DECIMAL(65,30)",
    "DECIMAL(10,2) UNSIGNED",
    "DECIMAL(5,0)",
    "DECIMAL(9,9)",
    "DECIMAL(18,9)",
    "FLOAT",
    "FLOAT UNSIGNED",
    "DOUBLE",
    "DOUBLE UNSIGNED",
    "FLOAT(7,3)",
    "DOUBLE(12,4)",
    "BIT(1)",
    "BIT(9)",
    "BIT(33)",
    "BIT(64)",
    "YEAR",
    "DATE",
    "TIME",
    "TIME(1)",
    "TIME(3)",
    "TIME(6)",
    "DATETIME",
    "DATETIME(2)",
    "DATETIME(5)",
    "DATETIME(6)",
    "TIMESTAMP NULL",
    "TIMESTAMP(3) NULL",
    "TIMESTAMP(6) NULL",
    "CHAR(20) CHARACTER SET latin1",
    "CHAR(12) CHARACTER SET utf8mb4",
    "CHAR(90) CHARACTER SET utf8mb4",
    "VARCHAR(300) CHARACTER SET latin1",
    "VARCHAR(40) CHARACTER SET sjis",
    "VARCHAR(40) CHARACTER SET ujis",
    "VARCHAR(40) CHARACTER SET gbk",
    "VARCHAR(40) CHARACTER SET euckr",
    "VARCHAR(40) CHARACTER SET cp1251",
    "VARCHAR(40) CHARACTER SET ucs2",
    "VARCHAR(40) CHARACTER SET utf16",
    "VARCHAR(60) CHARACTER SET utf8",
    "VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "TINYTEXT CHARACTER SET utf8mb4",
    "TEXT CHARACTER SET latin1",
    "MEDIUMTEXT CHARACTER SET utf8mb4",
    "LONGTEXT CHARACTER SET utf8mb4",
    "BINARY(4)",
    "BINARY(200)",
    "VARBINARY(255)",
    "VARBINARY(300)",
    "TINYBLOB",
    "BLOB",
    "LONGBLOB",
    "ENUM('small','it''s','größe')",
    "SET('a','b','c','d','e','f','g','h','ü')",
    "GEOMETRY",
];

/// What only some have.
fn special(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::MySql56 => &["POINT"],
        Kind::MySql97 => &["POINT", "JSON", "JSON", "VECTOR(3)"],
        Kind::MariaDb1011 => &[
            "POINT",
            "JSON",
            "UUID",
            "INET6",
            "INET4",
            "VARCHAR(200) CHARACTER SET utf8mb4 COMPRESSED",
            "TEXT CHARACTER SET latin1 COMPRESSED",
            "BLOB COMPRESSED",
            "VARBINARY(100) COMPRESSED",
        ],
        Kind::MariaDb118 => {
            &["POINT", "JSON", "UUID", "INET6", "INET4", "VECTOR(3)", "TEXT COMPRESSED"]
        }
    }
}

/// What a table's key may be: columns and the key's clause.
const KEYS: [&str; 8] = [
    "id INT NOT NULL AUTO_INCREMENT, PRIMARY KEY (id)",
    "k1 INT NOT NULL DEFAULT 0, k2 VARCHAR(10) CHARACTER SET latin1 NOT NULL DEFAULT '',
     PRIMARY KEY (k2, k1)",
    "k VARCHAR(40) CHARACTER SET utf8mb4 NOT NULL DEFAULT '', PRIMARY KEY (k)",
    "k BINARY(6) NOT NULL DEFAULT '', PRIMARY KEY (k)",
    "id BIGINT UNSIGNED NOT NULL DEFAULT 0, UNIQUE KEY u (id)",
    "k DECIMAL(20,5) NOT NULL DEFAULT 0, d DATETIME(6) NOT NULL DEFAULT 0, PRIMARY KEY (k, d)",
    "id MEDIUMINT NOT NULL DEFAULT 0, e ENUM('x','y','z') NOT NULL DEFAULT 'x', PRIMARY KEY (e, id)",
    "k CHAR(12) CHARACTER SET utf8mb4 NOT NULL DEFAULT '', PRIMARY KEY (k)",
];

/// A type at random, of those a column may be given later.
pub fn random_type(random: &mut Random, kind: Kind) -> &'static str {
    let special = special(kind);
    match random.below(COMMON.len() + special.len()) {
        place if place < COMMON.len() => COMMON[place],
        place => special[place - COMMON.len()],
    }
}

/// CREATE TABLE for a random table.
pub fn random_table(random: &mut Random, kind: Kind, name: &str) -> String {
    let types: Vec<&str> = (0..1 + random.below(8)).map(|_| random_type(random, kind)).collect();
    create(kind, name, random.pick(&KEYS), &types)
}

/// CREATE TABLE statements that use every type.
pub fn every_type(kind: Kind) -> Vec<String> {
    let mut types = COMMON.to_vec();
    types.extend(special(kind));
    let chunk = types.len().div_ceil(KEYS.len());
    types
        .chunks(chunk)
        .zip(KEYS)
        .enumerate()
        .map(|(number, (types, key))| create(kind, &format!("types_{number}"), key, types))
        .collect()
}

fn create(kind: Kind, name: &str, key: &str, types: &[&str]) -> String {
    let mut columns: Vec<String> =
        types.iter().enumerate().map(|(number, kind)| format!("c{number} {kind}")).collect();
    if kind != Kind::MySql56 && key.contains("id ") && !key.contains("AUTO_INCREMENT") {
        columns.push("twice BIGINT AS (id / 2) VIRTUAL".to_owned());
        columns.push("text_of VARCHAR(50) AS (CONCAT('number ', id)) STORED".to_owned());
    }
    format!(
        "CREATE TABLE {name} ({}, {key}) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
        columns.join(", ")
    )
}
