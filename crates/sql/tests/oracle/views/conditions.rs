//! Values and conditions, with subqueries.

use super::{Column, Episodes, Kind};

/// A table or a view.
#[derive(Clone, Debug)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<Column>,
    /// A bound of its rows.
    pub rows: usize,
    /// How deeply views are nested in it.
    pub depth: usize,
}

impl Relation {
    /// Its columns with an alias before their names.
    pub fn under(&self, alias: &str) -> Vec<Column> {
        let named = |it: &Column| Column { name: format!("{alias}.{}", it.name), kind: it.kind };
        self.columns.iter().map(named).collect()
    }
}

impl Episodes {
    fn column(&mut self, kind: Kind, columns: &[Column]) -> Option<String> {
        let of: Vec<&Column> = columns.iter().filter(|it| it.kind == kind).collect();
        match of.is_empty() {
            true => None,
            false => Some(of[self.below(of.len())].name.clone()),
        }
    }

    /// A value of a kind.
    pub fn value(&mut self, kind: Kind, columns: &[Column], depth: usize) -> String {
        let plain = match self.column(kind, columns) {
            Some(column) => column,
            None => return self.cast(kind),
        };
        if depth == 0 || self.below(3) > 0 {
            return plain;
        }
        let other = self.value(kind, columns, 0);
        match (kind, self.below(4)) {
            (_, 0) => format!("COALESCE({plain}, {other})"),
            (_, 1) => {
                let condition = self.comparison(columns);
                format!("CASE WHEN {condition} THEN {plain} ELSE {other} END")
            }
            (Kind::Number, 2) => format!("{plain} + 1"),
            (Kind::Number, _) => match self.column(Kind::Text, columns) {
                Some(text) => format!("CHAR_LENGTH({text})"),
                None => format!("{plain} * 2"),
            },
            (Kind::Decimal, _) => format!("{plain} + {other}"),
            (Kind::Text, _) => format!("CONCAT({plain}, '-')"),
            (Kind::Date, _) => format!("{plain} + INTERVAL 1 DAY"),
        }
    }

    /// A constant of a kind, with its type.
    fn cast(&mut self, kind: Kind) -> String {
        let literal = self.literal(kind, 6);
        match kind {
            Kind::Number => format!("CAST({literal} AS SIGNED)"),
            Kind::Decimal => format!("CAST({literal} AS DECIMAL(8,2))"),
            Kind::Text => format!("CAST({literal} AS CHAR(20))"),
            Kind::Date => format!("CAST({literal} AS DATE)"),
        }
    }

    /// The equality of a column of either side, which have the same kind.
    pub fn shared(&mut self, left: &[Column], right: &[Column]) -> Option<String> {
        for _ in 0..4 {
            let first = left[self.below(left.len())].clone();
            if let Some(second) = self.column(first.kind, right) {
                return Some(format!("{} = {second}", first.name));
            }
        }
        None
    }

    /// A comparison without a subquery.
    pub fn comparison(&mut self, columns: &[Column]) -> String {
        let kind = columns[self.below(columns.len())].kind;
        let (left, literal) = (self.value(kind, columns, 0), self.literal(kind, 12));
        let right = match self.below(2) {
            0 => literal,
            _ => self.value(kind, columns, 0),
        };
        match self.below(8) {
            0 => format!("{left} IS NULL"),
            1 => format!("{left} IS NOT NULL"),
            2 => format!("{left} IN ({right}, {})", self.literal(kind, 12)),
            3 => format!("{left} <=> {right}"),
            4 if kind == Kind::Text => format!("{left} LIKE '%n%'"),
            _ => format!("{left} {} {right}", self.random.pick(&["=", "<>", "<", ">", "<=", ">="])),
        }
    }

    /// A condition, with subqueries if `depth` permits.
    pub fn condition(&mut self, columns: &[Column], depth: usize) -> String {
        if depth == 0 {
            return self.comparison(columns);
        }
        match self.below(9) {
            0 | 1 => self.comparison(columns),
            2 => {
                let (a, b) =
                    (self.condition(columns, depth - 1), self.condition(columns, depth - 1));
                format!("({a} {} {b})", self.random.pick(&["AND", "OR"]))
            }
            3 => format!("NOT ({})", self.condition(columns, depth - 1)),
            4 | 5 => self.exists(columns, depth - 1),
            6 | 7 => self.within(columns, depth - 1),
            _ => self.scalar(columns, depth - 1),
        }
    }

    /// The FROM and WHERE of a subquery with a new alias, and its columns.
    fn inner(&mut self, outer: &[Column], depth: usize) -> (String, Vec<Column>) {
        let of = self.relation();
        // Names of different levels differ, so that no level hides another.
        let alias = format!("s{depth}_{}", self.below(1_000));
        let columns = of.under(&alias);
        let mut conditions = Vec::new();
        if self.below(4) > 0 {
            conditions.extend(self.shared(&columns, outer));
        }
        if self.below(3) == 0 {
            let kind = columns[self.below(columns.len())].kind;
            if let (Some(inner), Some(outer)) =
                (self.column(kind, &columns), self.column(kind, outer))
            {
                let operator = self.random.pick(&["<", ">", "<>", "<="]);
                conditions.push(format!("{inner} {operator} {outer}"));
            }
        }
        if self.below(3) == 0 {
            conditions.push(self.condition(&columns, depth));
        }
        let filter = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(" AND ")),
        };
        (format!("FROM {} {alias}{filter}", of.name), columns)
    }

    fn exists(&mut self, columns: &[Column], depth: usize) -> String {
        let (from, _) = self.inner(columns, depth);
        format!("{}EXISTS (SELECT 1 {from})", self.random.pick(&["", "NOT "]))
    }

    fn within(&mut self, columns: &[Column], depth: usize) -> String {
        let kind = columns[self.below(columns.len())].kind;
        let value = self.value(kind, columns, 1);
        let (from, inner) = self.inner(columns, depth);
        let selected = self.value(kind, &inner, 1);
        match self.below(5) {
            0 => {
                let quantified = self.random.pick(&["< ALL", "> ANY", ">= ALL", "= ANY", "<> ALL"]);
                format!("{value} {quantified} (SELECT {selected} {from})")
            }
            _ => {
                let not = self.random.pick(&["", "", "NOT "]);
                format!("{value} {not}IN (SELECT {selected} {from})")
            }
        }
    }

    fn scalar(&mut self, columns: &[Column], depth: usize) -> String {
        let value = self.value(Kind::Number, columns, 1);
        let (from, inner) = self.inner(columns, depth);
        let operator = self.random.pick(&["=", "<", ">", "<>"]);
        let selected = match self.below(3) {
            0 => "COUNT(*)".to_owned(),
            1 => format!("MAX({})", self.value(Kind::Number, &inner, 1)),
            _ => format!("AVG({})", self.value(Kind::Number, &inner, 0)),
        };
        match self.below(4) {
            0 => {
                let first = self.value(Kind::Number, &inner, 0);
                format!("{value} {operator} (SELECT {first} {from} ORDER BY 1 LIMIT 1)")
            }
            _ => format!("{value} {operator} (SELECT {selected} {from})"),
        }
    }
}
