//! Random tables, views over them and over each other, and queries of both. Views join, group and unite, and their
//! conditions have subqueries.

mod conditions;

use crate::queries::Generator as Random;
use conditions::Relation;

/// Tables, views and queries of an episode.
const TABLES: usize = 3;
const VIEWS: usize = 8;
const QUERIES: usize = 12;
/// The deepest nesting of views, and the most rows of a relation that others join.
const MAX_DEPTH: usize = 5;
const MAX_ROWS: usize = 400;

/// The kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Number,
    Decimal,
    Text,
    Date,
}

/// A column of a relation.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

/// Generates episodes; a seed always gives the same ones.
pub struct Episodes {
    random: Random,
    number: usize,
    relations: Vec<Relation>,
}

impl Episodes {
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), number: 0, relations: Vec::new() }
    }

    /// The statements of the next episode: tables, rows, views and queries of them.
    pub fn episode(&mut self) -> Vec<String> {
        self.number += 1;
        self.relations.clear();
        let mut steps = Vec::new();
        for number in 1..=TABLES {
            let (create, insert) = self.table(number);
            steps.push(create);
            steps.push(insert);
        }
        for number in 1..=VIEWS {
            let (select, columns, rows, depth) = self.select(3);
            let name = format!("e{}_v{number}", self.number);
            let names: Vec<String> = (1..=columns.len()).map(|at| format!("c{at}")).collect();
            steps.push(format!("CREATE VIEW {name} ({}) AS {select}", names.join(", ")));
            let column = |(name, kind)| Column { name, kind };
            let columns = names.into_iter().zip(columns).map(column).collect();
            if depth <= MAX_DEPTH && rows <= MAX_ROWS {
                self.relations.push(Relation { name, columns, rows, depth });
            }
        }
        for _ in 0..QUERIES {
            steps.push(self.select(3).0);
        }
        steps
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound)
    }

    fn table(&mut self, number: usize) -> (String, String) {
        let name = format!("e{}_t{number}", self.number);
        let mut columns = vec![Column { name: "id".to_owned(), kind: Kind::Number }];
        let mut declared = vec!["id INT PRIMARY KEY".to_owned()];
        for at in 1..=2 + self.below(4) {
            let (kind, sql) = [
                (Kind::Number, "INT"),
                (Kind::Number, "BIGINT"),
                (Kind::Decimal, "DECIMAL(8,2)"),
                (Kind::Text, "VARCHAR(20)"),
                (Kind::Text, "CHAR(12)"),
                (Kind::Date, "DATE"),
            ][self.below(6)];
            declared.push(format!("k{at} {sql}"));
            if self.below(3) == 0 {
                declared.push(format!("KEY (k{at})"));
            }
            columns.push(Column { name: format!("k{at}"), kind });
        }
        let rows = 4 + self.below(12);
        let mut values = Vec::new();
        for id in 1..=rows {
            let row: Vec<String> = columns[1..].iter().map(|it| self.literal(it.kind, 5)).collect();
            values.push(format!("({id}, {})", row.join(", ")));
        }
        let create = format!("CREATE TABLE {name} ({})", declared.join(", "));
        let insert = format!("INSERT INTO {name} VALUES {}", values.join(", "));
        self.relations.push(Relation { name, columns, rows, depth: 0 });
        (create, insert)
    }

    /// A value; NULL for one in `nulls`.
    fn literal(&mut self, kind: Kind, nulls: usize) -> String {
        if self.below(nulls) == 0 {
            return "NULL".to_owned();
        }
        match kind {
            Kind::Number => (self.below(9) as i64 - 2).to_string(),
            Kind::Decimal => {
                self.random.pick(&["0.00", "1.50", "2.25", "-3.10", "7.00"]).to_owned()
            }
            Kind::Text => self.random.pick(&["'ink'", "'pen'", "'pad'", "''", "'a b'"]).to_owned(),
            Kind::Date => {
                let days = ["'2020-01-01'", "'2020-02-29'", "'2021-07-15'", "'1999-12-31'"];
                self.random.pick(&days).to_owned()
            }
        }
    }

    /// A SELECT with the kinds of its columns, a bound of its rows, and the depth of its views.
    fn select(&mut self, depth: usize) -> (String, Vec<Kind>, usize, usize) {
        match self.below(10) {
            0..=2 => self.plain(depth),
            3..=5 => self.joined(depth),
            6 | 7 => self.grouped(depth),
            8 => self.united(depth),
            _ => self.derived(depth),
        }
    }

    fn relation(&mut self) -> Relation {
        // Later ones, which are views over views, more often.
        let (count, skipped) = (self.relations.len(), self.relations.len() / 2);
        let at = match self.below(2) {
            0 => skipped + self.below(count - skipped),
            _ => self.below(count),
        };
        self.relations[at].clone()
    }

    fn items(&mut self, columns: &[Column], count: usize) -> (String, Vec<Kind>) {
        let mut items = Vec::new();
        let mut kinds = Vec::new();
        for _ in 0..count {
            let kind = columns[self.below(columns.len())].kind;
            items.push(self.value(kind, columns, 1));
            kinds.push(kind);
        }
        (items.join(", "), kinds)
    }

    fn filter(&mut self, columns: &[Column], depth: usize) -> String {
        match self.below(4) {
            0 => String::new(),
            _ => format!(" WHERE {}", self.condition(columns, depth)),
        }
    }

    fn plain(&mut self, depth: usize) -> (String, Vec<Kind>, usize, usize) {
        let of = self.relation();
        let columns = of.under("a");
        let count = 1 + self.below(4);
        let (items, kinds) = self.items(&columns, count);
        let (filter, name) = (self.filter(&columns, depth), &of.name);
        let distinct = self.random.pick(&["", "", "DISTINCT "]);
        let limit = match self.below(5) {
            0 => {
                let places: Vec<String> = (1..=kinds.len()).map(|at| at.to_string()).collect();
                format!(" ORDER BY {} LIMIT {}", places.join(", "), 1 + self.below(6))
            }
            _ => String::new(),
        };
        let text = format!("SELECT {distinct}{items} FROM {name} a{filter}{limit}");
        (text, kinds, of.rows, of.depth + 1)
    }

    fn joined(&mut self, depth: usize) -> (String, Vec<Kind>, usize, usize) {
        let (left, right) = (self.relation(), self.relation());
        let mut columns = left.under("a");
        let on = match self.shared(&columns, &right.under("b")) {
            Some(on) => on,
            None => return self.plain(depth),
        };
        columns.extend(right.under("b"));
        let more = match self.below(4) {
            0 => format!(" AND {}", self.comparison(&columns)),
            _ => String::new(),
        };
        let join = self.random.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
        let count = 1 + self.below(4);
        let (items, kinds) = self.items(&columns, count);
        let filter = self.filter(&columns, depth);
        let (l, r) = (&left.name, &right.name);
        let text = format!("SELECT {items} FROM {l} a {join} {r} b ON {on}{more}{filter}");
        let rows = left.rows.saturating_mul(right.rows);
        (text, kinds, rows, left.depth.max(right.depth) + 1)
    }

    fn grouped(&mut self, depth: usize) -> (String, Vec<Kind>, usize, usize) {
        let of = self.relation();
        let columns = of.under("a");
        let key = columns[self.below(columns.len())].clone();
        let (mut items, mut kinds) = (vec![key.name.clone()], vec![key.kind]);
        for _ in 0..1 + self.below(3) {
            let (text, kind) = self.aggregate(&columns);
            items.push(text);
            kinds.push(kind);
        }
        let filter = self.filter(&columns, depth);
        let having = match self.below(3) {
            0 => format!(" HAVING {} > {}", self.aggregate_number(&columns), self.below(3)),
            _ => String::new(),
        };
        let (items, name) = (items.join(", "), &of.name);
        let by = key.name;
        let text = format!("SELECT {items} FROM {name} a{filter} GROUP BY {by}{having}");
        (text, kinds, of.rows, of.depth + 1)
    }

    fn aggregate_number(&mut self, columns: &[Column]) -> String {
        let value = self.value(Kind::Number, columns, 1);
        let form = self.random.pick(&["COUNT(*)", "COUNT({})", "SUM({})", "MAX({})", "MIN({})"]);
        form.replace("{}", &value)
    }

    fn aggregate(&mut self, columns: &[Column]) -> (String, Kind) {
        let kind = columns[self.below(columns.len())].kind;
        let value = self.value(kind, columns, 1);
        match self.below(5) {
            0 => ("COUNT(*)".to_owned(), Kind::Number),
            1 => (format!("COUNT(DISTINCT {value})"), Kind::Number),
            2 if matches!(kind, Kind::Number) => (format!("SUM({value})"), Kind::Decimal),
            3 => (format!("MIN({value})"), kind),
            _ => (format!("MAX({value})"), kind),
        }
    }

    fn united(&mut self, depth: usize) -> (String, Vec<Kind>, usize, usize) {
        let (left, right) = (self.relation(), self.relation());
        let (a, b) = (left.under("a"), right.under("b"));
        let count = 1 + self.below(3);
        let (items, kinds) = self.items(&a, count);
        let others: Vec<String> = kinds.iter().map(|kind| self.value(*kind, &b, 1)).collect();
        let (first, second) = (self.filter(&a, depth), self.filter(&b, depth));
        let union = self.random.pick(&["UNION", "UNION ALL"]);
        let (l, r, others) = (&left.name, &right.name, others.join(", "));
        let text =
            format!("SELECT {items} FROM {l} a{first} {union} SELECT {others} FROM {r} b{second}");
        (text, kinds, left.rows + right.rows, left.depth.max(right.depth) + 1)
    }

    fn derived(&mut self, depth: usize) -> (String, Vec<Kind>, usize, usize) {
        if depth == 0 {
            return self.plain(depth);
        }
        let (inner, kinds, rows, levels) = self.select(depth - 1);
        let names: Vec<String> = (1..=kinds.len()).map(|at| format!("d{at}")).collect();
        let column =
            |(name, kind): (&String, &Kind)| Column { name: format!("d.{name}"), kind: *kind };
        let columns: Vec<Column> = names.iter().zip(&kinds).map(column).collect();
        let count = 1 + self.below(3);
        let (items, kinds) = self.items(&columns, count);
        let filter = self.filter(&columns, depth - 1);
        let text = format!("SELECT {items} FROM ({inner}) d ({}){filter}", names.join(", "));
        (text, kinds, rows, levels)
    }
}
