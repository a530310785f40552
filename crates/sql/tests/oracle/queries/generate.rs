//! Random queries.

use super::{
    expressions::Column,
    tree::{Kind, Part},
};

/// The tables, with the columns that queries use.
pub const TABLES: [(&str, &[(&str, Kind)]); 6] = [
    (
        "staff",
        &[
            ("id", Kind::Number),
            ("name", Kind::Text),
            ("dept", Kind::Number),
            ("boss", Kind::Number),
            ("salary", Kind::Number),
            ("hired", Kind::Date),
        ],
    ),
    ("depts", &[("id", Kind::Number), ("label", Kind::Text), ("city", Kind::Text)]),
    (
        "sales",
        &[
            ("id", Kind::Number),
            ("who", Kind::Number),
            ("item", Kind::Text),
            ("amount", Kind::Number),
            ("price", Kind::Number),
            ("day", Kind::Date),
        ],
    ),
    (
        "numbers",
        &[
            ("id", Kind::Number),
            ("ti", Kind::Number),
            ("si", Kind::Number),
            ("i", Kind::Number),
            ("b", Kind::Number),
            ("d", Kind::Number),
            ("w", Kind::Number),
        ],
    ),
    (
        "texts",
        &[
            ("id", Kind::Number),
            ("s", Kind::Text),
            ("c", Kind::Text),
            ("x", Kind::Text),
            ("t", Kind::Text),
        ],
    ),
    ("dates", &[("id", Kind::Number), ("dt", Kind::Date), ("dm", Kind::Date), ("ts", Kind::Date)]),
];

/// A query and how to compare its rows.
pub struct Query {
    pub part: Part,
    /// Whether its rows have only one possible order.
    pub is_ordered: bool,
}

/// Generates queries; a seed always gives the same ones.
pub struct Generator {
    state: u64,
    /// The number of aliases so far.
    aliases: usize,
    /// Subqueries of the current query so far.
    pub within: usize,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { state: seed | 1, aliases: 0, within: 0 }
    }

    pub fn below(&mut self, bound: usize) -> usize {
        // Xorshift.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) as usize % bound
    }

    pub fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// One of the first tables with a new alias, and its columns.
    pub fn table(&mut self, first: usize) -> (String, Vec<Column>) {
        let (table, columns) = TABLES[self.below(first)];
        self.aliases += 1;
        let alias = format!("q{}", self.aliases);
        let column =
            |(name, kind): &(&str, Kind)| Column { name: format!("{alias}.{name}"), kind: *kind };
        (format!("{table} {alias}"), columns.iter().map(column).collect())
    }

    /// The next query.
    pub fn query(&mut self) -> Query {
        (self.aliases, self.within) = (0, 0);
        match self.below(10) {
            0..=3 => self.plain(),
            4 | 5 => self.grouped(),
            6 => self.windowed(),
            7 => self.united(),
            8 => match self.below(2) {
                0 => self.derived(),
                _ => self.grouped_twice(),
            },
            _ => self.constant(),
        }
    }

    /// A FROM clause of one table or a join, and its columns.
    fn from(&mut self) -> (Part, Vec<Column>) {
        let (first, mut columns) = self.table(TABLES.len());
        let mut from = Part::words(Kind::Whole, first);
        for _ in 0..[0, 0, 1, 1, 2][self.below(5)] {
            let (table, more) = self.table(TABLES.len());
            columns.extend(more);
            let join = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN"]);
            let on = self.on(join, &columns);
            from = match join {
                "CROSS JOIN" => {
                    Part::of(Kind::Whole, &format!("{{}} CROSS JOIN {table}"), vec![from])
                }
                _ => Part::of(Kind::Whole, &format!("{{}} {join} {table} ON {{}}"), vec![from, on]),
            };
        }
        (from, columns)
    }

    /// A WHERE clause, or nothing.
    fn condition(&mut self, columns: &[Column]) -> Part {
        match self.below(4) {
            0 => Part::words(Kind::Clause, ""),
            _ => {
                let truth = self.truth(columns, 2);
                Part::of(Kind::Clause, " WHERE {}", vec![truth])
            }
        }
    }

    fn items(&mut self, kinds: &[Kind], columns: &[Column]) -> Part {
        let items = kinds.iter().map(|&kind| self.value(kind, columns, 2)).collect();
        Part::list(items)
    }

    fn kinds(&mut self, of: &[Kind]) -> Vec<Kind> {
        (0..1 + self.below(3)).map(|_| of[self.below(of.len())]).collect()
    }

    /// ORDER BY all places of what has one order only, and perhaps LIMIT.
    fn order(&mut self, places: usize) -> Part {
        let places: Vec<String> =
            (1..=places).map(|place| format!("{place}{}", self.pick(&["", " DESC"]))).collect();
        let limit = self.pick(&["", "", " LIMIT 3", " LIMIT 2 OFFSET 1"]);
        Part::words(Kind::Clause, format!(" ORDER BY {}{limit}", places.join(", ")))
    }

    fn plain(&mut self) -> Query {
        let (from, columns) = self.from();
        let is_ordered = self.below(2) == 0;
        // Equal texts are not always identical.
        let of: &[Kind] = match is_ordered {
            true => &[Kind::Number, Kind::Truth],
            false => &[Kind::Number, Kind::Text, Kind::Date, Kind::Truth],
        };
        let kinds = self.kinds(of);
        let distinct = if is_ordered { self.pick(&["", "DISTINCT "]) } else { "" };
        let (items, condition) = (self.items(&kinds, &columns), self.condition(&columns));
        let order = match is_ordered {
            true => self.order(kinds.len()),
            false => Part::words(Kind::Clause, ""),
        };
        let form = format!("SELECT {distinct}{{}} FROM {{}}{{}}{{}}");
        let part = Part::of(Kind::Whole, &form, vec![items, from, condition, order]);
        Query { part, is_ordered }
    }

    /// An aggregate.
    fn aggregate(&mut self, columns: &[Column]) -> Part {
        match self.below(8) {
            0 => Part::words(Kind::Number, "COUNT(*)"),
            1 => {
                let kind = [Kind::Text, Kind::Date][self.below(2)];
                let value = self.value(kind, columns, 1);
                Part::of(Kind::Number, "COUNT({})", vec![value])
            }
            2 => {
                let value = self.date(columns, 1);
                Part::of(Kind::Date, "MAX({})", vec![value])
            }
            _ => {
                let form = self.pick(&[
                    "SUM({})",
                    "MIN({})",
                    "MAX({})",
                    "AVG({})",
                    "COUNT(DISTINCT {})",
                    "SUM(DISTINCT {})",
                    "COUNT({})",
                ]);
                let value = self.number(columns, 2);
                Part::of(Kind::Number, form, vec![Part::of(Kind::Whole, "{}", vec![value])])
            }
        }
    }

    fn grouped(&mut self) -> Query {
        let (from, columns) = self.from();
        let numbers: Vec<Column> =
            columns.iter().filter(|column| column.kind == Kind::Number).cloned().collect();
        let keys: Vec<Column> =
            (0..self.below(3)).map(|_| numbers[self.below(numbers.len())].clone()).collect();
        let mut items: Vec<Part> =
            keys.iter().map(|key| Part::words(Kind::Whole, key.name.clone())).collect();
        for _ in 0..1 + self.below(3) {
            items.push(self.aggregate(&columns));
        }
        let condition = self.condition(&columns);
        let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        let by = if names.is_empty() {
            String::new()
        } else {
            format!(" GROUP BY {}", names.join(", "))
        };
        let having = match self.below(3) {
            0 => {
                let counted = self.number(&columns, 1);
                let form = self.pick(&["COUNT({})", "SUM({})", "MAX({})"]);
                let counted = Part::of(Kind::Whole, "{}", vec![counted]);
                let left = Part::of(Kind::Whole, form, vec![counted]);
                let right = self.number(&keys, 1);
                let compared = self.pick(&["<", ">", "=", "<>"]);
                Part::of(Kind::Clause, &format!(" HAVING {{}} {compared} {{}}"), vec![left, right])
            }
            _ => Part::words(Kind::Clause, ""),
        };
        let form = format!("SELECT {{}} FROM {{}}{{}}{by}{{}}");
        let part = Part::of(Kind::Whole, &form, vec![Part::list(items), from, condition, having]);
        Query { part, is_ordered: false }
    }

    fn windowed(&mut self) -> Query {
        let (table, columns) = self.table(TABLES.len());
        let id = columns[0].name.clone();
        let condition = self.condition(&columns);
        let key = self.number(&columns, 1);
        let call = match self.below(8) {
            0 => Part::words(Kind::Whole, "ROW_NUMBER()"),
            1 => Part::words(Kind::Whole, "RANK()"),
            2 => Part::words(Kind::Whole, "DENSE_RANK()"),
            3 => Part::words(Kind::Whole, "NTILE(3)"),
            4 => {
                let value = self.number(&columns, 1);
                let form =
                    self.pick(&["LAG({}, 1)", "LEAD({}, 2)", "FIRST_VALUE({})", "LAST_VALUE({})"]);
                Part::of(Kind::Whole, form, vec![value])
            }
            _ => {
                let value = self.number(&columns, 1);
                let form = self.pick(&["SUM({})", "COUNT({})", "MIN({})", "MAX({})"]);
                Part::of(Kind::Whole, form, vec![value])
            }
        };
        let is_ranked =
            ["ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(3)"].contains(&call.text().as_str());
        let frame =
            match is_ranked || call.text().starts_with("LAG") || call.text().starts_with("LEAD") {
                true => "",
                false => self.pick(&[
                    "",
                    " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
                    " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
                ]),
            };
        let partition = match self.below(2) {
            0 => {
                let by = self.number(&columns, 0);
                Part::of(Kind::Clause, "PARTITION BY {} ", vec![by])
            }
            _ => Part::words(Kind::Clause, ""),
        };
        let form =
            format!("SELECT {id}, {{}} OVER ({{}}ORDER BY {{}}, {id}{frame}) FROM {table}{{}}");
        let part = Part::of(Kind::Whole, &form, vec![call, partition, key, condition]);
        Query { part, is_ordered: false }
    }

    fn united(&mut self) -> Query {
        // The results of EXCEPT and INTERSECT have the types of the first part.
        let (sets, kinds) = match self.below(2) {
            0 => (["EXCEPT", "INTERSECT"], self.kinds(&[Kind::Number])),
            _ => (["UNION", "UNION ALL"], self.kinds(&[Kind::Number, Kind::Number, Kind::Date])),
        };
        let mut whole: Option<Part> = None;
        for _ in 0..2 + self.below(2) {
            let (from, columns) = self.from();
            let (items, condition) = (self.items(&kinds, &columns), self.condition(&columns));
            let one = Part::of(Kind::Whole, "SELECT {} FROM {}{}", vec![items, from, condition]);
            let set = self.pick(&sets);
            whole = Some(match whole {
                None => one,
                Some(before) => {
                    Part::of(Kind::Whole, &format!("{{}} {set} {{}}"), vec![before, one])
                }
            });
        }
        let part = whole.unwrap_or_else(|| Part::words(Kind::Whole, "SELECT 1"));
        Query { part, is_ordered: false }
    }

    /// A query over a derived table or a common table expression.
    fn derived(&mut self) -> Query {
        let (from, columns) = self.from();
        let kinds = self.kinds(&[Kind::Number]);
        let values: Vec<Part> = kinds.iter().map(|&kind| self.value(kind, &columns, 1)).collect();
        let named: Vec<String> = (1..=kinds.len()).map(|at| format!("{{}} AS c{at}")).collect();
        let condition = self.condition(&columns);
        let form = format!("SELECT {} FROM {{}}{{}}", named.join(", "));
        let inner =
            Part::of(Kind::Whole, &form, values.into_iter().chain([from, condition]).collect());
        let mut outer: Vec<Column> = (1..=kinds.len())
            .map(|at| Column { name: format!("d.c{at}"), kind: Kind::Number })
            .collect();
        let (table, more) = self.table(TABLES.len());
        outer.extend(more);
        let join = self.pick(&["JOIN", "LEFT JOIN"]);
        let on = self.on(join, &outer);
        let items = self.items(&[Kind::Number, Kind::Truth], &outer);
        let (form, parts) = match self.below(2) {
            0 => (
                format!("WITH d AS ({{}}) SELECT {{}} FROM d {join} {table} ON {{}}"),
                vec![inner, items, on],
            ),
            _ => (
                format!("SELECT {{}} FROM ({{}}) AS d {join} {table} ON {{}}"),
                vec![items, inner, on],
            ),
        };
        Query { part: Part::of(Kind::Whole, &form, parts), is_ordered: false }
    }

    /// Groups of a join with a grouped subquery.
    fn grouped_twice(&mut self) -> Query {
        let (table, columns) = self.table(TABLES.len());
        let key = self.number_column(&columns);
        let condition = self.condition(&columns);
        let inner = match self.below(3) {
            0 => format!("SELECT DISTINCT {key} AS k, 1 AS n FROM {table}{{}}"),
            1 => format!("SELECT {key} AS k, COUNT(*) AS n FROM {table}{{}} GROUP BY {key}"),
            _ => format!("SELECT {key} AS k, 1 AS n FROM {table}{{}} UNION SELECT 1, 2"),
        };
        let inner = Part::of(Kind::Whole, &inner, vec![condition]);
        let (other, more) = self.table(TABLES.len());
        let group = self.number_column(&more);
        let mut all = more.clone();
        all.extend(["g.k", "g.n"].map(|name| Column { name: name.to_owned(), kind: Kind::Number }));
        let join = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
        let on = self.on(join, &all);
        let (first, second) = (self.pick(&["", " DESC"]), self.pick(&["", " DESC"]));
        let mut form = format!(
            "SELECT g.k, {group} AS h, COUNT(*) AS c, SUM(g.n) AS s FROM ({{}}) AS g \
             {join} {other} ON {{}} GROUP BY g.k, {group}"
        );
        match self.below(2) {
            0 => form.push_str(&format!(" ORDER BY g.k{first}, {group}{second}")),
            _ => {
                form = format!(
                    "SELECT t.k, t.h, SUM(t.c) FROM ({form}) AS t GROUP BY t.k, t.h \
                     ORDER BY t.h{first}, t.k{second}"
                );
            }
        }
        Query { part: Part::of(Kind::Whole, &form, vec![inner, on]), is_ordered: true }
    }

    /// The name of a column with numbers.
    fn number_column(&mut self, columns: &[Column]) -> String {
        let numbers: Vec<&Column> =
            columns.iter().filter(|column| column.kind == Kind::Number).collect();
        numbers[self.below(numbers.len())].name.clone()
    }

    /// Expressions without a table, or over one row.
    fn constant(&mut self) -> Query {
        let kinds = self.kinds(&[Kind::Number, Kind::Text, Kind::Date, Kind::Truth]);
        let items = self.items(&kinds, &[]);
        Query { part: Part::of(Kind::Whole, "SELECT {}", vec![items]), is_ordered: false }
    }
}
