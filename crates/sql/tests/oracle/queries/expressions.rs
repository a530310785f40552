//! Random expressions over the columns in scope.

use super::{
    generate::{Generator, TABLES},
    tree::{Kind, Part},
};

/// A column that an expression may name.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

/// Most subqueries of a query, including nested ones.
const MAX_WITHIN: usize = 2;

const NUMBERS: [&str; 21] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "42",
    "100",
    "0.5",
    "-2.5",
    "3.75",
    "NULL",
    "127",
    "-128",
    "255",
    "65535",
    "2147483647",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "99999999.99",
    "0.0000001",
];
const TEXTS: [&str; 14] = [
    "''", "'a'", "'apple'", "'APPLE'", "'b'", "'12'", "'12abc'", "' x '", "'Zoë'", "'日本'", "'%'",
    "'a_b'", "NULL", "'ß'",
];
const DATES: [&str; 7] = [
    "DATE'2020-01-02'",
    "DATE'2020-02-29'",
    "DATE'1999-12-31'",
    "TIMESTAMP'2020-01-31 10:11:12'",
    "DATE'2024-07-15'",
    "NULL",
    "TIMESTAMP'2019-03-10 12:00:00.5'",
];
const COMPARED: [&str; 7] = ["=", "<>", "<", "<=", ">", ">=", "<=>"];

impl Generator {
    /// A random expression of a kind.
    pub fn value(&mut self, kind: Kind, columns: &[Column], depth: usize) -> Part {
        match kind {
            Kind::Text => self.text(columns, depth),
            Kind::Date => self.date(columns, depth),
            Kind::Truth => self.truth(columns, depth),
            _ => self.number(columns, depth),
        }
    }

    fn leaf(&mut self, kind: Kind, columns: &[Column]) -> Part {
        let of_kind: Vec<&Column> = columns.iter().filter(|column| column.kind == kind).collect();
        if !of_kind.is_empty() && self.below(3) > 0 {
            let name = of_kind[self.below(of_kind.len())].name.clone();
            return Part::words(kind, name);
        }
        let words = match kind {
            Kind::Text => self.pick(&TEXTS),
            Kind::Date => self.pick(&DATES),
            _ => self.pick(&NUMBERS),
        };
        Part::words(kind, words)
    }

    /// A column with numbers, if there is one.
    fn column(&mut self, columns: &[Column]) -> Part {
        self.leaf_column(Kind::Number, columns)
    }

    /// A column of a kind, if there is one.
    fn leaf_column(&mut self, kind: Kind, columns: &[Column]) -> Part {
        let of_kind: Vec<&Column> = columns.iter().filter(|column| column.kind == kind).collect();
        if columns.is_empty() {
            return self.leaf(kind, columns);
        }
        let name = match of_kind.is_empty() {
            true => columns[0].name.clone(),
            false => of_kind[self.below(of_kind.len())].name.clone(),
        };
        Part::words(Kind::Whole, name)
    }

    pub fn number(&mut self, columns: &[Column], depth: usize) -> Part {
        if depth == 0 || self.below(4) == 0 {
            return self.leaf(Kind::Number, columns);
        }
        let depth = depth - 1;
        let forms = [
            "({} + {})",
            "({} - {})",
            "({} * {})",
            "({} / {})",
            "({} DIV {})",
            "({} % {})",
            "IFNULL({}, {})",
            "NULLIF({}, {})",
            "COALESCE({}, {}, 0)",
            "GREATEST({}, {})",
            "LEAST({}, {})",
            "ROUND({}, 1)",
            "TRUNCATE({}, 1)",
            "ABS({})",
            "-({})",
            "FLOOR({})",
            "CEILING({})",
            "SIGN({})",
            "CAST({} AS SIGNED)",
            "CAST({} AS DECIMAL(12,3))",
            "CHAR_LENGTH(#)",
            "LOCATE(#, #)",
            "FIELD(COALESCE(#, ''), COALESCE(#, ''), 'a')",
            "ASCII(#)",
            "YEAR(@)",
            "DAYOFYEAR(@)",
            "DATEDIFF(@, @)",
            "WEEKDAY(@)",
            "IF(?, {}, {})",
            "CASE WHEN ? THEN {} ELSE {} END",
            "CASE {} WHEN {} THEN {} END",
            "STRCMP(#, #)",
            "INTERVAL(COALESCE({}, 0), 1, 10)",
            "Q",
            "Q",
        ];
        match self.pick(&forms) {
            "Q" => self.scalar(Kind::Number, columns),
            form => self.formed(Kind::Number, form, columns, depth),
        }
    }

    pub fn text(&mut self, columns: &[Column], depth: usize) -> Part {
        if depth == 0 || self.below(4) == 0 {
            return self.leaf(Kind::Text, columns);
        }
        let forms = [
            "CONCAT(#, #)",
            "CONCAT_WS('-', #, #)",
            "UPPER(#)",
            "LOWER(#)",
            "SUBSTRING(#, 2)",
            "SUBSTRING(#, -2, 1)",
            "LEFT(#, 2)",
            "RIGHT(#, 2)",
            "REPLACE(#, 'a', #)",
            "TRIM(#)",
            "LPAD(#, 5, 'x')",
            "REVERSE(#)",
            "COALESCE(#, #)",
            "IFNULL(#, #)",
            "NULLIF(#, #)",
            "IF(?, #, #)",
            "CASE WHEN ? THEN # ELSE # END",
            "REPEAT(#, 2)",
            "SUBSTRING_INDEX(#, 'p', 1)",
            "DATE_FORMAT(@, '%Y-%m')",
            "INSERT(#, 1, 1, 'q')",
            // Not of a column: MySQL takes ELT for NULL wherever its first choice is, and so makes a LEFT JOIN an inner
            // one by a condition that is true without the row.
            "ELT(2, 'x', #)",
            "Q",
        ];
        match self.pick(&forms) {
            "Q" => self.scalar(Kind::Text, columns),
            form => self.formed(Kind::Text, form, columns, depth - 1),
        }
    }

    pub fn date(&mut self, columns: &[Column], depth: usize) -> Part {
        if depth == 0 || self.below(3) == 0 {
            return self.leaf(Kind::Date, columns);
        }
        let forms = [
            "DATE(@)",
            "DATE_ADD(@, INTERVAL 1 DAY)",
            "DATE_SUB(@, INTERVAL 1 MONTH)",
            "LAST_DAY(@)",
            "DATE(COALESCE(@, @))",
            "DATE(@ + INTERVAL 36 HOUR)",
            "CAST(@ AS DATE)",
        ];
        let form = self.pick(&forms);
        self.formed(Kind::Date, form, columns, depth - 1)
    }

    pub fn truth(&mut self, columns: &[Column], depth: usize) -> Part {
        let kind = [Kind::Number, Kind::Number, Kind::Text, Kind::Date][self.below(4)];
        let value = match kind {
            Kind::Text => "#",
            Kind::Date => "@",
            _ => "{}",
        };
        let inner = depth.saturating_sub(1);
        let compared = self.pick(&COMPARED);
        let simple = format!("{value} {compared} {value}");
        if depth == 0 {
            return self.formed(Kind::Truth, &simple, columns, 0);
        }
        let form = match self.below(22) {
            0..=4 => simple,
            5 => format!("{value} BETWEEN {value} AND {value}"),
            6 => format!("{value} NOT BETWEEN {value} AND {value}"),
            7 => format!("{value} IN ({value}, {value}, {value})"),
            8 => format!("{value} NOT IN ({value}, {value})"),
            9 => format!("{value} IS NULL"),
            10 => format!("{value} IS NOT NULL"),
            11 => "# LIKE '%a%'".to_owned(),
            12 => "# NOT LIKE '_p%'".to_owned(),
            13 => "(? AND ?)".to_owned(),
            14 => "(? OR ?)".to_owned(),
            15 => "NOT (?)".to_owned(),
            16 => "(? XOR ?)".to_owned(),
            17 => "(?) IS TRUE".to_owned(),
            // Rows that are greater or less: MySQL takes an outer join below for an inner one.
            18 => format!("({value}, {{}}) {} ({value}, {{}})", self.pick(&["=", "<>"])),
            _ => return self.of_query(columns),
        };
        self.formed(Kind::Truth, &form, columns, inner)
    }

    /// An expression from a template: `{}` is a number, `#` a text, `@` a date and `?` a condition.
    fn formed(&mut self, kind: Kind, form: &str, columns: &[Column], depth: usize) -> Part {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = form;
        while let Some(at) = rest.find(['{', '#', '@', '?']) {
            let (before, behind) = rest.split_at(at);
            plain.push_str(before);
            plain.push_str("{}");
            let wanted = match behind.as_bytes()[0] {
                b'#' => Kind::Text,
                b'@' => Kind::Date,
                b'?' => Kind::Truth,
                _ => Kind::Number,
            };
            parts.push(self.value(wanted, columns, depth));
            rest = &behind[if wanted == Kind::Number { 2 } else { 1 }..];
        }
        plain.push_str(rest);
        Part::of(kind, &plain, parts)
    }

    /// A scalar subquery.
    fn scalar(&mut self, kind: Kind, columns: &[Column]) -> Part {
        if self.within >= MAX_WITHIN {
            return self.leaf(kind, columns);
        }
        let (table, inner, all) = self.inner(columns);
        self.within += 1;
        let part = if kind == Kind::Number && self.below(2) == 0 {
            // An aggregate's argument uses columns of its own query only.
            let value = self.number(&inner, 1);
            let fold = self.pick(&["COUNT", "SUM", "MIN", "MAX", "COUNT(DISTINCT", "AVG"]);
            let close = if fold.contains('(') { "))" } else { ")" };
            let open = if fold.contains('(') { " " } else { "(" };
            let condition = self.truth(&all, 1);
            let form = format!("(SELECT {fold}{open}{{}}{close} FROM {table} WHERE {{}})");
            Part::of(kind, &form, vec![Part::of(Kind::Whole, "{}", vec![value]), within(condition)])
        } else {
            // At most one row has a given key.
            let alias = table.rsplit(' ').next().unwrap_or_default().to_owned();
            let value = self.leaf_column(kind, &inner);
            let key = self.number(columns, 1);
            let form = format!("(SELECT {{}} FROM {table} WHERE {alias}.id = {{}})");
            Part::of(kind, &form, vec![Part::of(Kind::Whole, "{}", vec![value]), within(key)])
        };
        self.within -= 1;
        part
    }

    /// The condition of a join. MySQL 9.7 drops conditions of queries within that of an outer one: of `t LEFT JOIN u ON
    /// u.id IN (SELECT v.id FROM v WHERE v.name LIKE '%a%')` it gives rows of all v.
    pub(super) fn on(&mut self, join: &str, columns: &[Column]) -> Part {
        let within = self.within;
        if join != "JOIN" {
            self.within = MAX_WITHIN;
        }
        let on = self.truth(columns, 1);
        self.within = within;
        on
    }

    /// A condition with a subquery.
    fn of_query(&mut self, columns: &[Column]) -> Part {
        if self.within >= MAX_WITHIN {
            return Part::words(Kind::Truth, "1 = 1");
        }
        let (table, inner, all) = self.inner(columns);
        self.within += 1;
        let condition = within(self.truth(&all, 1));
        let part = match self.below(4) {
            0 | 1 => {
                let not = self.pick(&["", "NOT "]);
                let limit = self.pick(&["", " LIMIT 1"]);
                let form = format!("{not}EXISTS (SELECT 1 FROM {table} WHERE {{}}{limit})");
                Part::of(Kind::Truth, &form, vec![condition])
            }
            2 => {
                let not = self.pick(&["", "NOT "]);
                let (left, value) = match self.below(2) {
                    0 => (self.column(columns), self.column(&inner)),
                    _ => (self.number(columns, 1), self.number(&inner, 1)),
                };
                let form = format!("{{}} {not}IN (SELECT {{}} FROM {table} WHERE {{}})");
                Part::of(Kind::Truth, &form, vec![left, within(value), condition])
            }
            _ => {
                let (left, value) = (self.number(columns, 1), self.number(&inner, 1));
                let compared = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
                let of = self.pick(&["ANY", "ALL"]);
                let form = format!("{{}} {compared} {of} (SELECT {{}} FROM {table} WHERE {{}})");
                Part::of(Kind::Truth, &form, vec![left, within(value), condition])
            }
        };
        self.within -= 1;
        part
    }

    /// A table for a subquery: its text in FROM, its columns, and those together with the outer ones.
    fn inner(&mut self, outer: &[Column]) -> (String, Vec<Column>, Vec<Column>) {
        let (table, inner) = self.table(TABLES.len());
        let mut all = inner.clone();
        // Its own columns are used more often.
        let named = inner.len().min(outer.len());
        all.extend((0..named).map(|_| outer[self.below(outer.len())].clone()));
        (table, inner, all)
    }
}

/// What names columns of the query that it stands in.
fn within(part: Part) -> Part {
    Part::of(Kind::Whole, "{}", vec![part])
}
