//! Random queries over small tables, of the kinds that database tests use. No two are equal, so each must be parsed,
//! planned and run.
//!
//! The kinds are those of sqllogictest (SQLite's corpus of 2008 and later): expressions with subqueries over a table of
//! thirty rows, expressions of constants and columns over tables of three rows, aggregates, groups, conditions on
//! indexed columns, joins of several tables.

use crate::random::SplitMix64;

/// Rows of `t1` and of the table with indexes.
const ROWS: usize = 30;
const INDEXED_ROWS: usize = 500;
/// Tables that are joined, and the rows of each.
const JOINED: usize = 9;
const JOINED_ROWS: usize = 10;

/// Generates a query of a kind.
type Make = fn(&mut QueryGenerator) -> String;

/// The kinds of queries, each with its share in per cent.
const KINDS: [(&str, usize, Make); 6] = [
    ("expressions", 30, expressions),
    ("constants", 25, constants),
    ("aggregates", 12, aggregates),
    ("groups", 8, groups),
    ("conditions", 17, conditions),
    ("joins", 8, joins),
];

/// A generator of queries.
pub struct QueryGenerator {
    random: SplitMix64,
}

impl QueryGenerator {
    /// The queries for a seed.
    pub fn new(seed: u64) -> Self {
        Self { random: SplitMix64::new(seed) }
    }

    /// The statements that create the tables.
    pub fn tables(&mut self) -> Vec<String> {
        let mut statements = vec![
            "CREATE TABLE t1 (a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER)".to_owned(),
        ];
        for row in 0..ROWS {
            // Five distinct numbers in random order, sometimes with one replaced by NULL.
            let mut values: Vec<String> =
                (0..5).map(|at| (100 + row * 5 + at).to_string()).collect();
            for at in (1..5).rev() {
                values.swap(at, self.random.below(at + 1));
            }
            if self.one_in(6) {
                let at = self.random.below(5);
                values[at] = "NULL".to_owned();
            }
            statements.push(format!("INSERT INTO t1 VALUES ({})", values.join(",")));
        }
        for table in 0..3 {
            statements.push(format!(
                "CREATE TABLE tab{table} (col0 INTEGER, col1 INTEGER, col2 INTEGER)"
            ));
            for _ in 0..3 {
                let row: Vec<String> = (0..3).map(|_| self.random.below(100).to_string()).collect();
                statements.push(format!("INSERT INTO tab{table} VALUES ({})", row.join(",")));
            }
        }
        statements.push(
            "CREATE TABLE keyed (pk INTEGER PRIMARY KEY, col0 INTEGER, col1 INTEGER, col2 VARCHAR(20), \
             col3 INTEGER, col4 INTEGER, KEY (col0), KEY (col3, col4))"
                .to_owned(),
        );
        let rows: Vec<String> = (0..INDEXED_ROWS)
            .map(|pk| {
                let mut number = || self.random.below(1_000);
                format!(
                    "({pk},{},{},'w{}',{},{})",
                    number(),
                    number(),
                    number(),
                    number(),
                    number()
                )
            })
            .collect();
        statements.push(format!("INSERT INTO keyed VALUES {}", rows.join(",")));
        for table in 1..=JOINED {
            statements.push(format!(
                "CREATE TABLE j{table} (a{table} INTEGER PRIMARY KEY, b{table} INTEGER, x{table} VARCHAR(40))"
            ));
            for row in 1..=JOINED_ROWS {
                let to = 1 + self.random.below(JOINED_ROWS);
                statements.push(format!(
                    "INSERT INTO j{table} VALUES ({row},{to},'table j{table} row {row}')"
                ));
            }
        }
        statements
    }

    /// The next query, and its kind.
    pub fn query(&mut self) -> (&'static str, String) {
        let mut at = self.random.below(KINDS.iter().map(|kind| kind.1).sum());
        for (name, share, make) in KINDS {
            if at < share {
                return (name, make(self));
            }
            at -= share;
        }
        ("constants", constants(self))
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.random.below(list.len())]
    }

    /// Distinct elements of a list, between `least` and `most` of them.
    fn some<'a>(&mut self, list: &[&'a str], least: usize, most: usize) -> Vec<&'a str> {
        let mut list = list.to_vec();
        let count = least + self.random.below(most - least + 1);
        (0..count.min(list.len()))
            .map(|_| list.swap_remove(self.random.below(list.len())))
            .collect()
    }

    fn number(&mut self) -> String {
        self.random.below(100).to_string()
    }

    /// An expression of constants and columns whose value is a small integer or NULL.
    fn expression(&mut self, columns: &[&str], depth: usize) -> String {
        if depth == 0 || self.one_in(4) {
            return match self.random.below(3) {
                0 => self.number(),
                _ if columns.is_empty() => self.number(),
                _ => self.of(columns).to_owned(),
            };
        }
        let left = self.expression(columns, depth - 1);
        match self.random.below(12) {
            0 | 1 => format!("- {left}"),
            2 => format!("+ {left}"),
            3..=5 => {
                let right = self.expression(columns, depth - 1);
                format!("{left} {} {right}", self.of(&["+", "-", "*"]))
            }
            6 => format!("( {left} )"),
            7 => format!("COALESCE ( {left}, {} )", self.expression(columns, depth - 1)),
            8 => format!("NULLIF ( {left}, {} )", self.expression(columns, depth - 1)),
            9 => format!("CAST( {left} AS SIGNED )"),
            10 => {
                let condition = self.condition(columns, depth - 1);
                let other = self.expression(columns, depth - 1);
                format!("CASE WHEN {condition} THEN {left} ELSE {other} END")
            }
            _ => format!("ABS( {left} )"),
        }
    }

    fn condition(&mut self, columns: &[&str], depth: usize) -> String {
        let left = self.expression(columns, depth.min(2));
        let right = self.expression(columns, depth.min(1));
        let not = self.of(&["", "", "NOT "]);
        match self.random.below(8) {
            0..=2 => format!("{left} {} {right}", self.of(&["<", ">", "=", "<>", "<=", ">="])),
            3 => format!("{left} {not}BETWEEN {right} AND {}", self.number()),
            4 => format!("{left} {not}IN ( {right}, {}, {} )", self.number(), self.number()),
            5 => format!("{left} IS {not}NULL"),
            6 if depth > 0 => format!("NOT ( {} )", self.condition(columns, depth - 1)),
            _ if depth > 0 => {
                let first = self.condition(columns, depth - 1);
                let second = self.condition(columns, depth - 1);
                format!("( {first} {} {second} )", self.of(&["AND", "OR"]))
            }
            _ => format!("{left} < {right}"),
        }
    }
}

const ITEMS: [&str; 22] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "a-b",
    "b-c",
    "c-d",
    "d-e",
    "abs(a)",
    "abs(b-c)",
    "a+b*2",
    "a+b*2+c*3",
    "a+b*2+c*3+d*4",
    "a+b*2+c*3+d*4+e*5",
    "(a+b+c+d+e)/5",
    "CASE WHEN c>(SELECT avg(c) FROM t1) THEN a*2 ELSE b*10 END",
    "CASE WHEN a<b-3 THEN 111 WHEN a<=b THEN 222 WHEN a<b+3 THEN 333 ELSE 444 END",
    "CASE a+1 WHEN b THEN 111 WHEN c THEN 222 WHEN d THEN 333 WHEN e THEN 444 ELSE 555 END",
    "(SELECT count(*) FROM t1 AS x WHERE x.b<t1.b)",
    "(SELECT count(*) FROM t1 AS x WHERE x.c>t1.c AND x.d<t1.d)",
    "coalesce(a,b,c,d,e)",
];

const CONDITIONS: [&str; 14] = [
    "a>b",
    "b>c",
    "c>d",
    "d>e",
    "(c<=d-2 OR c>=d+2)",
    "(e>c OR e<d)",
    "(e>a AND e<b)",
    "(a>b-2 AND a<b+2)",
    "c BETWEEN b-2 AND d+2",
    "d NOT BETWEEN 110 AND 150",
    "b IS NOT NULL",
    "a IS NULL",
    "EXISTS(SELECT 1 FROM t1 AS x WHERE x.b<t1.b)",
    "e+d BETWEEN a+b-10 AND c+130",
];

/// Several expressions over one table, with subqueries.
fn expressions(draw: &mut QueryGenerator) -> String {
    let items = draw.some(&ITEMS, 1, 8);
    let conditions = draw.some(&CONDITIONS, 0, 4);
    let mut query = format!("SELECT {} FROM t1", items.join(", "));
    if !conditions.is_empty() {
        query += &format!(" WHERE {}", conditions.join(draw.of(&[" AND ", " OR "])));
    }
    let mut places: Vec<String> = (1..=items.len()).map(|at| at.to_string()).collect();
    let first = draw.random.below(places.len());
    places.swap(0, first);
    query + &format!(" ORDER BY {}", places.join(","))
}

const COLUMNS: [&str; 3] = ["col0", "col1", "col2"];

/// Expressions of constants and columns over a table of three rows.
fn constants(draw: &mut QueryGenerator) -> String {
    let distinct = draw.of(&["", "ALL ", "DISTINCT "]);
    let table = draw.random.below(3);
    let columns: &[&str] = if draw.one_in(3) { &[] } else { &COLUMNS };
    let items: Vec<String> =
        (0..1 + draw.random.below(3)).map(|_| draw.expression(columns, 3)).collect();
    let mut query = format!("SELECT {distinct}{} FROM tab{table} AS cor0", items.join(", "));
    if draw.one_in(2) {
        query += &format!(" WHERE {}", draw.condition(&COLUMNS, 2));
    }
    query
}

/// Aggregates of a whole table.
fn aggregates(draw: &mut QueryGenerator) -> String {
    let table = draw.random.below(3);
    let count = 1 + draw.random.below(3);
    let item = |draw: &mut QueryGenerator| {
        let name = draw.of(&["COUNT", "SUM", "MIN", "MAX", "AVG"]);
        let distinct = draw.of(&["", "", "DISTINCT ", "ALL "]);
        let argument = draw.expression(&COLUMNS, 2);
        match draw.random.below(4) {
            0 => "COUNT( * )".to_owned(),
            1 => format!("- {name}( {distinct}{argument} )"),
            2 => format!("{} + {name}( {distinct}{argument} )", draw.number()),
            _ => format!("{name}( {distinct}{argument} )"),
        }
    };
    let items: Vec<String> = (0..count).map(|_| item(draw)).collect();
    let mut query = format!("SELECT {} FROM tab{table}", items.join(", "));
    if draw.one_in(3) {
        query += &format!(" WHERE {}", draw.condition(&COLUMNS, 1));
    }
    query
}

/// Groups of a small table.
fn groups(draw: &mut QueryGenerator) -> String {
    let table = draw.random.below(3);
    let by = draw.some(&COLUMNS, 1, 2);
    let item = draw.expression(&by, 2);
    let mut query = format!(
        "SELECT {item}, COUNT(*), MAX(col2) FROM tab{table} AS cor0 GROUP BY {}",
        by.join(", ")
    );
    if draw.one_in(2) {
        query += &format!(" HAVING {}", draw.condition(&by, 1));
    }
    query
}

/// Conditions over columns with and without an index.
fn conditions(draw: &mut QueryGenerator) -> String {
    let one = |draw: &mut QueryGenerator| {
        let column = draw.of(&["pk", "col0", "col1", "col3", "col4"]);
        let (low, high) = (draw.random.below(900), draw.random.below(1_000));
        match draw.random.below(7) {
            0 | 1 => format!("{column} {} {high}", draw.of(&["<", ">", "=", "<=", ">="])),
            2 => format!("{column} BETWEEN {low} AND {high}"),
            3 => format!("{column} IN ({low}, {high}, {}, {})", draw.number(), draw.number()),
            4 => format!("({column} IS NULL)"),
            5 => format!(
                "{column} IN (SELECT {} FROM keyed WHERE col0 > {high})",
                draw.of(&["col3", "col1"])
            ),
            _ => format!("col2 LIKE 'w{}%'", draw.number()),
        }
    };
    let mut whole = one(draw);
    for _ in 0..draw.random.below(5) {
        let next = one(draw);
        let joined = draw.of(&["AND", "AND", "OR"]);
        whole = format!("({whole} {joined} {next})");
    }
    let mut query = format!("SELECT pk, col2 FROM keyed WHERE {whole}");
    if draw.one_in(2) {
        query += draw.of(&[
            " ORDER BY 1 DESC",
            " ORDER BY col3, pk",
            " ORDER BY col0, col4, pk LIMIT 10",
        ]);
    }
    query
}

/// Joins of several tables in a chain.
fn joins(draw: &mut QueryGenerator) -> String {
    let count = 2 + draw.random.below(5);
    let mut tables: Vec<usize> = (1..=JOINED).collect();
    let tables: Vec<usize> =
        (0..count).map(|_| tables.swap_remove(draw.random.below(tables.len()))).collect();
    let items: Vec<String> = tables.iter().map(|table| format!("x{table}")).collect();
    let from: Vec<String> = tables.iter().map(|table| format!("j{table}")).collect();
    let mut conditions: Vec<String> =
        tables.windows(2).map(|pair| format!("a{}=b{}", pair[1], pair[0])).collect();
    if draw.one_in(2) {
        conditions.push(format!("a{}={}", tables[0], 1 + draw.random.below(JOINED_ROWS)));
    }
    format!(
        "SELECT {} FROM {} WHERE {}",
        items.join(", "),
        from.join(", "),
        conditions.join(" AND ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_queries_again() {
        let drawn = |seed| {
            let mut draw = QueryGenerator::new(seed);
            let tables = draw.tables();
            let queries: Vec<String> = (0..2_000).map(|_| draw.query().1).collect();
            (tables, queries)
        };
        assert_eq!(drawn(7), drawn(7));
        let (_, queries) = drawn(8);
        let different: std::collections::HashSet<&String> = queries.iter().collect();
        assert!(different.len() > 1_700, "{}", different.len());
    }

    #[test]
    fn each_kind_is_drawn() {
        let mut draw = QueryGenerator::new(1);
        let kinds: std::collections::HashSet<&str> = (0..500).map(|_| draw.query().0).collect();
        assert_eq!(kinds.len(), KINDS.len());
    }
}
