//! Random values as SQL writes them, edge cases often.

use remora_peers::Kind;

use super::shape::Column;
use crate::random::Random;

/// Words by the character sets that hold them.
const ASCII: [&str; 12] = [
    "coral",
    "reef",
    "shark",
    "Remora",
    "TIDE",
    "sea",
    "blue-green",
    "it's",
    "50%",
    "a_b",
    "c:\\d",
    "x\"y",
];
const LATIN1: [&str; 4] = ["café", "Straße", "naïve", "Ærø"];
const JAPANESE: [&str; 6] = ["東京タワー", "日本語", "表示ソ能", "さかな", "ｱｲｳ", "深海魚"];
const CHINESE: [&str; 3] = ["北京", "海洋", "中文"];
const KOREAN: [&str; 2] = ["대한민국", "바다"];
const CYRILLIC: [&str; 2] = ["Привет", "Море"];
const BASIC_PLANE: [&str; 5] = ["ﬁn", "ΑΒΓ", "Å", "ﾊﾟﾝ", "한국어 글"];
const BEYOND: [&str; 4] = ["😀", "👍🏽", "𠮷野家", "🐟🐠"];
const SEPARATORS: [&str; 8] = [" ", " ", " ", "", "  ", ", ", "\n", "-"];

/// A value for the column as an SQL expression.
pub fn literal(random: &mut Random, kind: Kind, column: &Column) -> String {
    if column.nullable && random.chance(12) {
        return "NULL".to_owned();
    }
    match &*column.data_type {
        "tinyint" => integer(random, 8, column.is_unsigned()),
        "smallint" => integer(random, 16, column.is_unsigned()),
        "mediumint" => integer(random, 24, column.is_unsigned()),
        "int" => integer(random, 32, column.is_unsigned()),
        "bigint" => integer(random, 64, column.is_unsigned()),
        "decimal" => decimal(random, column),
        "float" | "double" => float(random, column),
        "bit" => format!("b'{:b}'", random.next() >> random.below(64)),
        "year" => random.pick(&["0", "1901", "2155", "1999", "2024"]).to_string(),
        "date" => date(random),
        "time" => time(random),
        "datetime" => date_time(random),
        "timestamp" => timestamp(random),
        "enum" | "set" => label(random, column),
        "json" => quoted(&json(random, 3)),
        "uuid" => {
            format!("'{:08x}-1234-7abc-8def-{:012x}'", random.next() >> 32, random.next() >> 16)
        }
        "inet6" => {
            random.pick(&["'::'", "'2001:db8::ff00:42:8329'", "'::ffff:1.2.3.4'"]).to_string()
        }
        "inet4" => random.pick(&["'0.0.0.0'", "'192.168.0.1'", "'255.255.255.255'"]).to_string(),
        "vector" => vector(random, kind),
        "point" => format!("ST_GeomFromText('POINT({} {})')", random.below(90), random.below(90)),
        "geometry" => geometry(random),
        // What MariaDB makes of JSON, checked to be a document.
        "longtext" if column.collation.as_deref() == Some("utf8mb4_bin") => {
            quoted(&json(random, 3))
        }
        _ if column.is_text() => text(random, column),
        _ => bytes(random, column),
    }
}

fn integer(random: &mut Random, bits: u32, unsigned: bool) -> String {
    let (low, high) = match unsigned {
        true => (0, (1_i128 << bits) - 1),
        false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
    };
    let small = random.below(100) as i128;
    let any = low + i128::from(random.next()) % (high - low + 1);
    [low, high, -1, 0, 1, small, any, any][random.below(8)].clamp(low, high).to_string()
}

fn decimal(random: &mut Random, column: &Column) -> String {
    let inside = column.declared.split(['(', ')']).nth(1).unwrap_or("10,0");
    let mut sizes = inside.split(',').map(|part| part.trim().parse::<usize>().unwrap());
    let (precision, scale) = (sizes.next().unwrap(), sizes.next().unwrap_or(0));
    let all_nines = random.chance(10);
    let few = random.chance(40);
    let digits = |random: &mut Random, count: usize| -> String {
        let count = if few { count.min(3) } else { count };
        (0..count)
            .map(|_| if all_nines { '9' } else { char::from(b'0' + random.below(10) as u8) })
            .collect()
    };
    let sign = if !column.is_unsigned() && random.chance(40) { "-" } else { "" };
    let (whole, fraction) = (digits(random, precision - scale), digits(random, scale));
    format!("{sign}0{whole}.{fraction}0")
}

fn float(random: &mut Random, column: &Column) -> String {
    let unsigned = column.is_unsigned();
    let edges: &[&str] = match (&*column.data_type, unsigned) {
        ("float", false) => {
            &["0", "-0e0", "0.1", "-1.5", "3.402823e38", "1.17549435e-38", "16777217"]
        }
        ("float", true) => &["0", "0.1", "3.402823e38", "16777217"],
        (_, false) => {
            &["0", "-0e0", "0.1", "-2.5", "1.7976931348623157e308", "2.2250738585072014e-308"]
        }
        (_, true) => &["0", "0.1", "9007199254740993"],
    };
    if random.chance(60) {
        return random.pick(edges).to_string();
    }
    let number =
        random.next() as f64 / 1e9 * if unsigned || random.chance(50) { 1.0 } else { -1.0 };
    format!("{number:e}")
}

fn date(random: &mut Random) -> String {
    let edges = ["'0000-00-00'", "'1000-01-01'", "'9999-12-31'", "'2024-02-29'", "'2021-00-00'"];
    if random.chance(30) {
        return random.pick(&edges).to_string();
    }
    format!(
        "'{:04}-{:02}-{:02}'",
        1970 + random.below(99),
        1 + random.below(12),
        1 + random.below(28)
    )
}

fn fraction(random: &mut Random) -> String {
    if random.chance(40) { String::new() } else { format!(".{:06}", random.below(1_000_000)) }
}

fn time(random: &mut Random) -> String {
    let sign = if random.chance(40) { "-" } else { "" };
    let hours = [random.below(24), random.below(839), 838, 0][random.below(4)];
    let (minutes, seconds) = (random.below(60), random.below(60));
    format!("'{sign}{hours:02}:{minutes:02}:{seconds:02}{}'", fraction(random))
}

fn clock(random: &mut Random) -> String {
    let (hours, minutes, seconds) = (random.below(24), random.below(60), random.below(60));
    format!("{hours:02}:{minutes:02}:{seconds:02}{}", fraction(random))
}

fn date_time(random: &mut Random) -> String {
    if random.chance(10) {
        return "'0000-00-00 00:00:00'".to_owned();
    }
    format!("'{} {}'", date(random).trim_matches('\''), clock(random))
}

fn timestamp(random: &mut Random) -> String {
    match random.below(10) {
        0 => "'0000-00-00 00:00:00'".to_owned(),
        1 => "'1970-01-01 00:00:01'".to_owned(),
        2 => "'2038-01-19 03:14:07'".to_owned(),
        _ => {
            let day = format!("{}-{:02}-{:02}", 1971 + random.below(66), 1 + random.below(12), 5);
            format!("'{day} {}'", clock(random))
        }
    }
}

fn label(random: &mut Random, column: &Column) -> String {
    let labels = column.labels();
    if column.data_type == "enum" {
        // An index of 0 is the empty string, which stands for a wrong value.
        return if random.chance(8) { "''".to_owned() } else { quoted(&random.pick(&labels)) };
    }
    let chosen: Vec<_> = labels.iter().filter(|_| random.chance(40)).cloned().collect();
    quoted(&chosen.join(","))
}

/// A document as text: numbers of every size, all kinds of strings, nested.
pub fn json(random: &mut Random, depth: usize) -> String {
    let scalars = [
        "null",
        "true",
        "false",
        "0",
        "-1",
        "32768",
        "-32769",
        "2147483648",
        "18446744073709551615",
        "-9223372036854775808",
        "1.5",
        "1e100",
        "\"\"",
        "\"東京 😀\"",
        "\"a\\\"b\\\\c\\n\"",
    ];
    let count = random.below(4);
    match random.below(if depth == 0 { 1 } else { 4 }) {
        0 | 1 => random.pick(&scalars).to_string(),
        2 => {
            let items: Vec<_> = (0..count).map(|_| json(random, depth - 1)).collect();
            format!("[{}]", items.join(", "))
        }
        _ => {
            let items: Vec<_> = (0..count)
                .map(|number| {
                    format!("\"k{number}{}\": {}", "é".repeat(number), json(random, depth - 1))
                })
                .collect();
            format!("{{{}}}", items.join(", "))
        }
    }
}

fn vector(random: &mut Random, kind: Kind) -> String {
    let numbers: Vec<_> =
        (0..3).map(|_| format!("{}", (random.below(2000) as f64 - 1000.0) / 16.0)).collect();
    let function = if kind.is_mariadb() { "VEC_FromText" } else { "STRING_TO_VECTOR" };
    format!("{function}('[{}]')", numbers.join(","))
}

fn geometry(random: &mut Random) -> String {
    let shapes = [
        "POINT(1.5 -2)",
        "LINESTRING(0 0, 1 1, 2 3)",
        "POLYGON((0 0, 4 0, 4 4, 0 0))",
        "MULTIPOINT((1 1), (2 2))",
        "GEOMETRYCOLLECTION(POINT(1 1), LINESTRING(1 2, 3 4))",
    ];
    format!("ST_GeomFromText('{}')", random.pick(&shapes))
}

fn text(random: &mut Random, column: &Column) -> String {
    let charset = column.charset.as_deref().unwrap_or_default();
    let special: &[&[&str]] = match charset {
        "latin1" => &[&LATIN1],
        "sjis" | "ujis" | "cp932" | "eucjpms" => &[&JAPANESE],
        "gbk" | "gb2312" => &[&CHINESE],
        "euckr" => &[&KOREAN],
        "cp1251" | "koi8r" => &[&CYRILLIC],
        "utf8" | "utf8mb3" | "ucs2" => {
            &[&LATIN1, &JAPANESE, &CHINESE, &KOREAN, &CYRILLIC, &BASIC_PLANE]
        }
        "utf8mb4" | "utf16" | "utf32" | "gb18030" => {
            &[&LATIN1, &JAPANESE, &CHINESE, &KOREAN, &BASIC_PLANE, &BEYOND]
        }
        _ => &[],
    };
    let mut value = String::new();
    for _ in 0..random.below(10) {
        let from_special = !special.is_empty() && random.chance(50);
        let words: &[&str] = if from_special { random.pick(special) } else { &ASCII };
        value.push_str(random.pick(words));
        value.push_str(random.pick(&SEPARATORS));
    }
    // Bytes are what limits a TINYTEXT; no character has more than four.
    let limit = column.length.unwrap_or(60).min(1000) as usize;
    let limit = if column.data_type.ends_with("text") { limit / 4 } else { limit };
    quoted(&value.chars().take(limit).collect::<String>())
}

fn bytes(random: &mut Random, column: &Column) -> String {
    let limit = column.length.unwrap_or(8).min(400) as usize;
    let length =
        [0, limit, random.below(limit + 1), random.below(limit.min(8) + 1)][random.below(4)];
    let mut digits = String::with_capacity(2 * length);
    let zero = random.chance(20);
    for _ in 0..length {
        let byte = if zero { 0 } else { random.below(256) };
        digits.push_str(&format!("{byte:02X}"));
    }
    format!("X'{digits}'")
}

/// A string literal.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
