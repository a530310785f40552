//! Random statements, keys and rows of a table with columns of all types.
//!
//! A statement is made in two steps: a shape has places for literals, and each filling of a shape is a statement. Most
//! shapes are planned twice and then answered by their cached plans, so that many statements take the time of a few plans.

use std::fmt::Write;

use crate::support::random::Random;

/// The rows of the table have ids below this.
pub const ROWS: u64 = 300;

/// Statements of a shape that is planned each time: the third would be answered by a cached plan.
pub const FEW: usize = 3;
/// Statements of a shape that a cached plan answers.
const MANY: usize = 50;

/// The columns that keys are over, with their types.
pub const COLUMNS: [(&str, &str); 33] = [
    ("a", "INT"),
    ("b", "TINYINT"),
    ("c", "BIGINT UNSIGNED"),
    ("d", "DATETIME"),
    ("e", "DECIMAL(8,2)"),
    ("f", "VARCHAR(20) COLLATE utf8mb4_0900_bin"),
    ("g", "VARCHAR(20) COLLATE utf8mb4_0900_ai_ci"),
    ("h", "CHAR(6) COLLATE utf8mb4_general_ci"),
    ("i", "DATE"),
    ("k", "SMALLINT"),
    ("l", "ENUM('mid', 'low', 'top', 'high')"),
    ("m", "TIMESTAMP NULL"),
    ("n", "TIME"),
    ("o", "DOUBLE"),
    ("p", "BINARY(4)"),
    ("q", "SET('z', 'x', 'y')"),
    ("s", "VARCHAR(20) COLLATE utf8mb4_unicode_ci"),
    ("v", "FLOAT"),
    ("w", "YEAR"),
    ("z", "VARBINARY(6)"),
    ("aa", "BIT(9)"),
    ("bb", "DATETIME(3)"),
    ("cc", "MEDIUMINT UNSIGNED NOT NULL"),
    ("dd", "VARCHAR(12) COLLATE utf8mb4_bin"),
    ("ee", "VARCHAR(12) CHARACTER SET latin1"),
    ("ff", "DECIMAL(24,3)"),
    ("gg", "VARCHAR(12) COLLATE utf8mb4_0900_as_cs"),
    ("hh", "VARCHAR(12) COLLATE utf8mb4_de_pb_0900_ai_ci"),
    // Keys over these have prefixes, since segments do not hold them.
    ("xa", "BLOB"),
    ("xb", "VARCHAR(300) COLLATE utf8mb4_0900_ai_ci"),
    ("xc", "TEXT COLLATE utf8mb4_general_ci"),
    ("xd", "TEXT COLLATE utf8mb4_0900_bin"),
    ("u", "INT"),
];
/// The one that is never NULL.
const NEVER_NULL: usize = 22;

/// The columns and the keys that every table has. The keys continue the numbers of the random ones.
const OTHERS: &str = "r TEXT, doc JSON, FULLTEXT KEY (r)";
const KEYS: [(&str, &[&str]); 12] = [
    ("KEY @ (b, i, k)", &["b", "i", "k"]),
    ("UNIQUE KEY @ (u)", &["u"]),
    ("KEY @ ((LOWER(f)), a)", &["f", "a"]),
    ("KEY @ ((CAST(doc->>'$.y' AS SIGNED)) DESC)", &["doc"]),
    ("KEY @ ((CAST(doc->'$.tags' AS UNSIGNED ARRAY)))", &["doc"]),
    ("KEY @ (xc(20), a)", &["xc", "a"]),
    ("KEY @ (b, xb(30) DESC)", &["b", "xb"]),
    ("KEY @ (xd(12))", &["xd"]),
    ("KEY @ (xd(30), k)", &["xd", "k"]),
    ("KEY @ (xa(40))", &["xa"]),
    ("KEY @ (a)", &["a"]),
    ("KEY @ (k)", &["k"]),
];
/// Encloses the column and the word of a text condition until it is known what answers it.
const TEXT: char = '\u{a7}';
/// Encloses what a literal is of.
const LITERAL: char = '\u{b6}';

/// Columns in which equal values are written identically.
const PLAIN: [&str; 22] = [
    "a", "b", "c", "d", "e", "f", "i", "k", "m", "n", "o", "p", "u", "v", "w", "z", "aa", "bb",
    "cc", "ff", "xa", "xd",
];

/// Columns with a defined order; the labels of `l` and `q` do not ascend like their numbers.
const ORDERED: [&str; 25] = [
    "a", "b", "c", "d", "e", "f", "i", "k", "l", "m", "n", "o", "p", "q", "u", "v", "w", "z", "aa",
    "bb", "cc", "ff", "gg", "xa", "xd",
];

/// The definition of a table.
pub struct Table {
    pub definition: String,
    /// The columns that each key has. The name of a key is `k` and its place here.
    pub keys: Vec<Vec<&'static str>>,
}

/// A table with random keys.
pub fn table(random: &mut Random) -> Table {
    let (mut keys, mut definitions) = (Vec::new(), Vec::new());
    for number in 0..3 + random.below(3) {
        let mut columns: Vec<&'static str> = Vec::new();
        for _ in 0..=random.below(3) {
            let column = column(random);
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let parts = columns.iter().map(|column| {
            let prefix = match *column {
                "g" if random.below(2) == 0 => "(3)",
                "xa" | "xb" | "xc" | "xd" => random.choose(&["(5)", "(20)", "(64)"]),
                _ => "",
            };
            format!("{column}{prefix}{}", random.choose(&["", " DESC"]))
        });
        let parts = parts.collect::<Vec<_>>().join(", ");
        definitions.push(format!("KEY k{number} ({parts})"));
        keys.push(columns);
    }
    for (definition, columns) in KEYS {
        definitions.push(definition.replace('@', &format!("k{}", keys.len())));
        keys.push(columns.to_vec());
    }
    let columns = COLUMNS.map(|(name, declared)| format!("{name} {declared}")).join(", ");
    let definitions = definitions.join(", ");
    let definition =
        format!("CREATE TABLE t (id INT PRIMARY KEY, {columns}, {OTHERS}, {definitions})");
    Table { definition, keys }
}

impl Table {
    /// Hints that force each access path that can serve a statement: no hint, the primary key, each key with a column
    /// that the statement names, and two of these keys together.
    pub fn paths(&self, statement: &str, random: &mut Random) -> Vec<String> {
        let is_part = |at: Option<char>| at.is_some_and(|it| it.is_alphanumeric() || it == '\'');
        let names = |column: &&str| {
            statement.match_indices(column).any(|(at, _)| {
                let behind = statement[at + column.len()..].chars().next();
                !is_part(statement[..at].chars().next_back()) && !is_part(behind)
            })
        };
        let keys = self.keys.iter().enumerate().filter(|(_, key)| key.iter().any(names));
        let keys: Vec<String> = keys.map(|(number, _)| format!("k{number}")).collect();
        let primary = random.choose(&["FORCE INDEX (PRIMARY)", "USE INDEX (PRIMARY)"]);
        let mut paths = vec![String::new(), primary.to_owned()];
        paths.extend(keys.iter().map(|key| format!("FORCE INDEX ({key})")));
        if keys.len() > 1 {
            let (one, other) = (random.below(keys.len() as u64), random.below(keys.len() as u64));
            if one != other {
                let (one, other) = (&keys[one as usize], &keys[other as usize]);
                paths.push(format!("FORCE INDEX ({one}, {other})"));
            }
        }
        paths
    }

    /// The hint that leaves a scan.
    pub fn scan(&self) -> String {
        let names: Vec<String> = (0..self.keys.len()).map(|number| format!("k{number}")).collect();
        format!("IGNORE INDEX (PRIMARY, {})", names.join(", "))
    }
}

/// An INSERT or REPLACE, as `verb` says, of rows with these ids. A REPLACE looks at one row after the other.
pub fn written(random: &mut Random, verb: &str, from: u64, to: u64) -> String {
    let mut statement = format!("{verb} INTO t VALUES ");
    for id in from..to {
        let mut values = COLUMNS.map(|(column, _)| value(random, column)).to_vec();
        values[COLUMNS.len() - 1] = (id * 3 + random.below(3)).to_string();
        values.extend([text(random), format!("'{}'", document(random))]);
        for _ in 0..random.choose(&[0, 0, 0, 1, 1, 6]) {
            let at = random.below(values.len() as u64) as usize;
            if at != NEVER_NULL {
                values[at] = "NULL".to_owned();
            }
        }
        let comma = if id == from { "" } else { "," };
        // Writing to a `String` cannot fail.
        let _ = write!(statement, "{comma}({id},{})", values.join(","));
    }
    statement
}

/// An UPDATE of one column in some rows.
pub fn update(random: &mut Random) -> String {
    let id = random.below(ROWS);
    let (column, value) = match (random.below(8), column(random)) {
        (0, _) => ("r", text(random)),
        (1, _) => ("doc", format!("'{}'", document(random))),
        // It is unique.
        (_, "u") => ("u", format!("id * 3 + {}", random.below(3))),
        (2, column) if column != COLUMNS[NEVER_NULL].0 => (column, "NULL".to_owned()),
        (_, column) => (column, value(random, column)),
    };
    format!("UPDATE t SET {column} = {value} WHERE id BETWEEN {id} AND {}", id + 3)
}

fn value(random: &mut Random, column: &str) -> String {
    match column {
        "a" => (random.below(300) as i64 - 150).to_string(),
        // Most rows have the same value.
        "b" => (if random.below(8) > 0 { 1 } else { random.below(5) }).to_string(),
        "c" => (random.below(40) * 3_000_000_000).to_string(),
        "d" => {
            let (day, hour) = (1 + random.below(28), random.below(24));
            format!("'2026-0{}-{day:02} {hour:02}:30:00'", 1 + random.below(9))
        }
        "e" => format!("{}.{:02}", random.below(60), random.below(4) * 25),
        "f" => format!("'n{}'", random.below(120)),
        "g" => format!("'{}{}'", random.choose(&["Ki", "ki", "KÍ", "kj"]), random.below(50)),
        "h" => format!("'{}'", random.choose(&["ab", "AB", "b", "b ", "c", "é", "E"])),
        "i" => format!("'2026-03-{:02}'", 1 + random.below(28)),
        "l" => format!("'{}'", random.choose(&["mid", "low", "top", "high"])),
        "m" => format!("'2026-02-{:02} {:02}:00:07'", 1 + random.below(28), random.below(24)),
        "n" => {
            let sign = random.choose(&["", "-"]);
            format!("'{sign}{}:{:02}:00'", random.below(30), random.below(60))
        }
        "o" => random.choose(&["-1e300", "-2.5", "0e0", "0.1", "7", "1e-9", "3e12"]).to_owned(),
        "p" => format!("X'0{}FF000{}'", random.below(3), random.below(9)),
        "q" => format!("'{}'", random.choose(&["", "x", "z,x", "x,y", "z,x,y", "y"])),
        "s" => format!("'{}{}'", random.choose(&["ß", "ss", "SS", "sz "]), random.below(9)),
        "v" => random.choose(&["-8", "0.5", "2.25", "1e10", "0", "-0.125"]).to_owned(),
        "w" => (1990 + random.below(50)).to_string(),
        "z" => random.choose(&["X''", "X'00'", "X'0000'", "X'FF'", "X'61FF'", "'A'"]).to_owned(),
        "aa" => random.below(512).to_string(),
        "bb" => format!("'2026-01-01 00:00:{:02}.{:03}'", random.below(6), random.below(4) * 250),
        "cc" => (random.below(30) * 500_000).to_string(),
        "dd" => format!("'{}'", random.choose(&["a", "A", "a ", "ä", "", "日本"])),
        "ee" => format!("'{}{}'", random.choose(&["é", "E", "ß", "s"]), random.below(9)),
        "ff" => format!("{}00000000000.{:03}", random.below(9) as i64 - 4, random.below(5)),
        "gg" => format!("'{}{}'", random.choose(&["k", "K", "ķ"]), random.below(20)),
        "hh" => format!("'{}{}'", random.choose(&["ä", "ae", "Ä", "a"]), random.below(9)),
        "xa" | "xb" | "xc" | "xd" => long(random),
        "u" => (random.below(ROWS) * 3 + random.below(3)).to_string(),
        _ => random.below(2_000).to_string(),
    }
}

/// A text whose prefixes of several lengths are those of others. Some differ in characters that are equal to others, or
/// to several, in a collation.
fn long(random: &mut Random) -> String {
    let host = random.choose(&["", "Ab ", "https://example.com/", "HTTPS://EXAMPLE.COM/"]);
    let path = random.choose(&["", "stra\u{df}e/", "strasse/", "STRASSE/", "e\u{301}/", "\u{e9}/"]);
    let space = random.choose(&["", "", "  "]);
    let rest =
        random.choose(&["", "/a/very/long/path/that/no/prefix/of/forty/characters/contains"]);
    format!("'{host}{path}{}{rest}{space}'", random.below(12))
}

fn column(random: &mut Random) -> &'static str {
    random.choose(&COLUMNS).0
}

/// A text of which each word is found by itself.
fn text(random: &mut Random) -> String {
    let words = (0..random.below(5)).map(|_| word(random));
    format!("'a {}'", words.collect::<Vec<_>>().join(" "))
}

/// A word that is no part of another. Some are frequent.
fn word(random: &mut Random) -> String {
    let bound = random.choose(&[4, 90]);
    format!("w{:02}x", random.below(bound))
}

fn document(random: &mut Random) -> String {
    match random.below(9) {
        0 => "{}".to_owned(),
        // A JSON null is the text 'null' for the key over y, which strict mode refuses as a number.
        1 => "{\"tags\": 7}".to_owned(),
        _ => format!(
            "{{\"y\": {}, \"tags\": [{}, {}]}}",
            random.below(60),
            random.below(40),
            random.below(40)
        ),
    }
}

/// The place of a literal: of a column, or of another name that [`filled`] knows.
fn literal(of: &str) -> String {
    format!("{LITERAL}{of}{LITERAL}")
}

/// Statements of a shape: few of one that may be planned for each statement.
pub fn statements_of(shape: &str) -> usize {
    const PLANNED: [&str; 15] = [
        " OR ", "LOWER(", "CAST(", "MEMBER", "GROUP BY", "COUNT(", "(SELECT", " JOIN ", " OVER ",
        "DISTINCT", "(a, id)", " n ", " o ", " ff ", " aa ",
    ];
    let is_planned = shape.contains(TEXT) || PLANNED.iter().any(|words| shape.contains(words));
    match is_planned {
        _ if !shape.contains(LITERAL) => 1,
        true => FEW,
        false => MANY,
    }
}

/// A shape with literals in its places.
pub fn filled(shape: &str, random: &mut Random) -> String {
    let mut pieces = shape.split(LITERAL);
    let mut statement = pieces.next().unwrap_or_default().to_owned();
    let (mut id, mut from) = (0, 0);
    while let (Some(of), Some(behind)) = (pieces.next(), pieces.next()) {
        statement += &match of {
            "id" => {
                id = random.below(ROWS);
                id.to_string()
            }
            "near id" => (id + 4).to_string(),
            "low id" => random.below(40).to_string(),
            "limit" => (1 + random.below(30)).to_string(),
            "number" => random.below(60).to_string(),
            "text number" => format!("'n{}'", random.below(60)),
            "prefix" => format!("'n{}%'", random.below(12)),
            "long prefix" => {
                let patterns = ["https://example.com/s%", "ab %", "stra%1%", "%9", "HTTPS%/1"];
                format!("'{}'", random.choose(&patterns))
            }
            "from" => {
                from = random.below(270) as i64 - 150;
                from.to_string()
            }
            "near from" => (from + 30).to_string(),
            "below" => random.below(300).to_string(),
            "word" => word(random),
            column => value(random, column),
        };
        statement += behind;
    }
    statement
}

fn comparison(random: &mut Random, of: &str) -> String {
    let column = column(random);
    let (one, number) = (literal(column), literal("number"));
    // What is planned for each statement comes less often.
    match random.below(32) {
        0 => format!("{TEXT}{of}r{TEXT}{}{TEXT}", literal("word")),
        1 => format!("LOWER({of}f) = {}", literal("text number")),
        2 => {
            let comparison = random.choose(&["=", ">", "<="]);
            format!("CAST({of}doc->>'$.y' AS SIGNED) {comparison} {number}")
        }
        3 => format!("{number} MEMBER OF({of}doc->'$.tags')"),
        4..6 => format!("{of}u = {}", literal("u")),
        6..16 => format!("{of}{column} = {one}"),
        16..19 => format!("{of}{column} IN ({one}, {one})"),
        19..23 => format!("{of}{column} BETWEEN {one} AND {one}"),
        23..25 => format!("{of}{column} IS NULL"),
        25..27 => format!("{of}f LIKE {}", literal("prefix")),
        27 => {
            let column = random.choose(&["xb", "xc", "xd"]);
            format!("{of}{column} LIKE {}", literal("long prefix"))
        }
        _ => format!("{of}{column} {} {one}", random.choose(&["<", ">=", "<>", "<=>"])),
    }
}

fn condition(random: &mut Random, of: &str) -> String {
    match random.below(8) {
        // Both keys find too many to be used alone.
        6 => {
            let (from, to, below) = (literal("from"), literal("near from"), literal("below"));
            format!("{of}a BETWEEN {from} AND {to} AND {of}k < {below}")
        }
        7 => format!("{of}k > {} AND {}", literal("k"), comparison(random, of)),
        0..3 => comparison(random, of),
        3 => format!("{} AND {}", comparison(random, of), comparison(random, of)),
        4 => format!("({} OR {})", comparison(random, of), comparison(random, of)),
        _ => format!("{of}id < {} AND {}", literal("id"), comparison(random, of)),
    }
}

/// A shape, with `@` in place of the table's hint.
pub fn shape(random: &mut Random) -> String {
    let filter = condition(random, "");
    let way = random.choose(&["", " DESC"]);
    let plain = random.choose(&PLAIN);
    let ordered = random.choose(&ORDERED);
    let (id, limit) = (literal("id"), literal("limit"));
    match random.below(48) {
        0 => joined(random),
        1 => format!(
            "SELECT id FROM t @ WHERE {filter} AND a IN (SELECT a FROM t @ WHERE id < {}) ORDER BY id",
            literal("low id")
        ),
        2 => beside_others(random),
        3..8 => format!("SELECT COUNT(*), SUM(a), MIN(d), MAX(c) FROM t @ WHERE {filter}"),
        8..13 => format!("SELECT id, {plain} FROM t @ WHERE {filter} ORDER BY id{way}"),
        13..17 => {
            format!("SELECT DISTINCT {ordered} FROM t @ WHERE {filter} ORDER BY {ordered}{way}")
        }
        17..21 => format!(
            "SELECT {ordered}, COUNT(*), MIN(id) FROM t @ WHERE {filter} GROUP BY {ordered} ORDER BY {ordered}"
        ),
        21 => format!("SELECT MIN({plain}), MAX({plain}) FROM t @"),
        22..26 => format!("SELECT MIN({plain}), MAX(id) FROM t @ WHERE {filter}"),
        26..29 => format!(
            "SELECT a, id FROM t @ WHERE (a, id) > ({}, {id}) ORDER BY a, id LIMIT {limit}",
            literal("a")
        ),
        29..32 => {
            let filter = random.choose(&["1 = 1", "b = 1", "# >= @1", "# BETWEEN @1 AND @1"]);
            let filter = filter.replace('#', plain).replace("@1", &literal(plain));
            format!(
                "SELECT DISTINCT {plain} FROM t @ WHERE {filter} ORDER BY {plain}{way} LIMIT {limit}"
            )
        }
        32..36 => {
            let filter = random.choose(&["", " WHERE b = 1", " WHERE b IN (0, 1)"]);
            let by = random.choose(&PLAIN);
            let what = random.choose(&["COUNT(*)", "MIN(#), MAX(#)", "MAX(#), COUNT(*)"]);
            let what = what.replace('#', by);
            let limit = random.choose(&["", " LIMIT 9"]);
            format!(
                "SELECT {ordered}, {what} FROM t @{filter} GROUP BY {ordered} ORDER BY {ordered}{way}{limit}"
            )
        }
        36..39 => of_several(random, way),
        _ => {
            let second = random.choose(&["", "", "b, ", "d, "]);
            let by = format!("{plain}, {second}id").replace(',', &format!("{way},"));
            let (filter, offset) = match random.below(3) {
                0 => (String::new(), random.choose(&[0, 7, 120])),
                _ => (format!(" WHERE {filter}"), random.choose(&[0, 0, 20])),
            };
            format!(
                "SELECT id, {plain} FROM t @{filter} ORDER BY {by}{way} LIMIT {limit} OFFSET {offset}"
            )
        }
    }
}

/// A join of a few rows with those that have the same value.
fn joined(random: &mut Random) -> String {
    let by = random.choose(&PLAIN);
    let join = random.choose(&["JOIN", "JOIN", "LEFT JOIN"]);
    format!(
        "SELECT x.id, y.id FROM t x @ {join} t y @ ON y.{by} = x.{by} AND {} \
         WHERE x.id BETWEEN {} AND {} ORDER BY x.id, y.id LIMIT 60",
        condition(random, "y."),
        literal("id"),
        literal("near id")
    )
}

/// DISTINCT or GROUP BY of several columns.
fn of_several(random: &mut Random, way: &str) -> String {
    let by = random.choose(&["b, i", "i, b", "b, i, k", "k, i"]);
    let ordered = format!("{by}{way}").replace(',', &format!("{way},"));
    let limit = random.choose(&["", " LIMIT 9"]);
    match random.below(3) {
        0 => format!("SELECT DISTINCT {by} FROM t @ ORDER BY {ordered}{limit}"),
        1 => {
            format!("SELECT {by}, MAX(k) FROM t @ GROUP BY {by} ORDER BY {ordered}{limit}")
        }
        _ => format!("SELECT COUNT(*), {by} FROM t @ GROUP BY i, {by} ORDER BY {ordered}{limit}"),
    }
}

/// Rows of which others exist or not, and rows counted in their order.
fn beside_others(random: &mut Random) -> String {
    let (by, not) = (random.choose(&PLAIN), random.choose(&["", "NOT "]));
    let near = format!("x.id BETWEEN {} AND {}", literal("id"), literal("near id"));
    match random.below(3) {
        0 => format!(
            "SELECT x.id FROM t x @ WHERE {near} AND {not}EXISTS (SELECT 1 FROM t y @ WHERE y.{by} = x.{by} AND \
             y.id <> x.id AND {}) ORDER BY x.id",
            condition(random, "y.")
        ),
        1 => format!(
            "SELECT x.id, (SELECT COUNT(*) FROM t y @ WHERE y.{by} = x.{by}) FROM t x @ WHERE {near} ORDER BY x.id"
        ),
        _ => format!(
            "SELECT id, ROW_NUMBER() OVER (ORDER BY {by}, id) FROM t @ WHERE {} ORDER BY {by}, id",
            condition(random, "")
        ),
    }
}

/// A statement with its text conditions as MATCH or LIKE, or as LIKE of an expression, which no index answers.
pub fn with_texts(statement: &str, form: usize) -> String {
    let mut pieces = statement.split(TEXT);
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    while let (Some(column), Some(word)) = (pieces.next(), pieces.next()) {
        whole += &match form {
            0 => format!("CONCAT({column}, '') LIKE '%{word}%'"),
            1 => format!("{column} LIKE '%{word}%'"),
            _ => format!("MATCH({column}) AGAINST('+{word}' IN BOOLEAN MODE)"),
        };
        whole += pieces.next().unwrap_or_default();
    }
    whole
}
