//! How a table is read, in the words of MySQL's EXPLAIN: type, possible keys, key, rows, Extra.

use std::borrow::Cow;

use remora_engine::{AccessPath, FoundBy, TableIndex};

use crate::{
    catalog::{Key, KeyKind, KeyPart, SqlTable},
    plan::Figures,
    resolve::{SelectKind, StatementTable},
    scan::paths::{declared, declared_texts},
};

/// The access path of one table: one row of EXPLAIN's answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableAccess {
    /// The number of its SELECT, from 1.
    pub select: usize,
    /// The role of that SELECT in the statement.
    pub select_kind: SelectKind,
    /// Whether that SELECT is correlated: it runs once for each outer row.
    pub is_dependent: bool,
    /// The table's name or alias in the statement; `None` if no table is read.
    pub table: Option<String>,
    /// The names of a distributed table's parts, separated by commas.
    pub parts: Option<String>,
    /// MySQL's access type: `const`, `ref`, `range`, `ALL`, …
    pub kind: Option<&'static str>,
    /// The keys that the condition could use.
    pub possible: Vec<String>,
    /// The key or keys that are used.
    pub key: Option<String>,
    /// The number of bytes of the key's columns that are used.
    pub key_len: Option<String>,
    /// What the key's columns are compared with.
    pub compared: Option<String>,
    /// The estimated number of rows read per row of the preceding tables.
    pub rows: Option<u64>,
    /// The estimated percentage of those rows that pass the condition.
    pub filtered: f64,
    /// The Extra column; MySQL's own words come first.
    pub extra: Vec<String>,
    /// Measured rows and times, if the statement ran.
    pub measured: Option<Figures>,
}

/// The accesses of a statement's tables, and its number of SELECTs.
pub(crate) struct Explained {
    pub accesses: Vec<TableAccess>,
    pub selects: usize,
}

/// The names of a distributed table's parts, separated by commas.
fn parts(table: &SqlTable) -> Option<String> {
    let parts = [table.schema.parts(), table.schema.agents()].concat();
    (!parts.is_empty()).then(|| parts.join(","))
}

/// Properties of the read that are not part of its access path.
#[derive(Clone, Copy, Default)]
pub(super) struct AccessRequest {
    /// Whether the rows must be in an order that is not the table's own.
    pub in_order: bool,
    /// Whether there is a condition.
    pub has_condition: bool,
}

impl TableAccess {
    /// The access of a table that is read by this path.
    pub fn of(table: &SqlTable, called: &str, path: &AccessPath, wanted: AccessRequest) -> Self {
        let mut this = Self {
            select: 1,
            table: Some(called.to_owned()),
            parts: parts(table),
            possible: possible(table, &path.possible),
            rows: Some(path.examined),
            filtered: share(path.matching, path.examined),
            ..Self::default()
        };
        this.find(table, path, wanted);
        let whole = matches!(this.kind, Some("ALL" | "index" | "range" | "index_merge"));
        if wanted.has_condition && (whole || path.matching < path.examined) {
            this.add_extra("Using where");
        }
        match (path.ordered_by, path.ordered_by_path) {
            (None, None) if wanted.in_order => this.add_extra("Using filesort"),
            (None, Some(place)) if this.kind != Some("index") => {
                let key = path_name(table, place).unwrap_or_default();
                this.add_extra(format!("read in the order of key {key}"));
            }
            _ => {}
        }
        let unused = unused(table);
        if this.kind == Some("ALL") && !unused.is_empty() {
            this.add_extra(format!("no row here has what key {} is over", unused.join(", ")));
        }
        if path.scanned > 0 && path.scanned < path.segments && !path.found_by.is_empty() {
            let (scanned, segments) = (path.scanned, path.segments);
            this.add_extra(format!("every row of {scanned} of {segments} segments"));
        }
        this
    }

    /// Fills in the type, the keys and their length.
    fn find(&mut self, table: &SqlTable, path: &AccessPath, wanted: AccessRequest) {
        if path.by_text {
            return self.find_by_text(table, path, wanted);
        }
        match path.found_by.as_slice() {
            [] if !path.by_paths.is_empty() => {
                self.kind = Some("range");
                let names = path.by_paths.iter().filter_map(|place| path_name(table, *place));
                self.key = Some(names.collect::<Vec<_>>().join(","));
                self.possible.extend(self.key.clone());
                if path.by_paths.iter().all(|place| text_key(table, *place).is_some()) {
                    self.kind = Some("fulltext");
                    self.key_len = Some("0".to_owned());
                    self.compared = Some("const".to_owned());
                }
            }
            [] => match (path.ordered_by.filter(|_| wanted.in_order), path.ordered_by_path) {
                (Some(index), _) => {
                    self.kind = Some("index");
                    self.by(table, &[(index, usize::MAX)]);
                }
                (None, Some(place)) => {
                    self.kind = Some("index");
                    self.key = path_name(table, place);
                }
                (None, None) => self.kind = Some("ALL"),
            },
            [one] => {
                self.kind = Some(kind(table, one));
                self.by(table, &[(one.index, used(one))]);
                if self.kind != Some("range") {
                    self.compared = Some(vec!["const"; one.columns].join(","));
                }
            }
            several => {
                self.kind = Some("index_merge");
                let used: Vec<_> = several.iter().map(|one| (one.index, used(one))).collect();
                self.by(table, &used);
                let keys = self.key.clone().unwrap_or_default();
                let intersected = several.iter().filter(|one| one.is_intersected).count();
                self.add_extra(if path.is_union {
                    format!("Using union({keys})")
                } else if intersected == several.len() {
                    format!("Using intersect({keys})")
                } else if intersected > 0 {
                    "the key that leaves the fewest rows of each segment, or two intersected"
                        .to_owned()
                } else {
                    "the key that leaves the fewest rows of each segment".to_owned()
                });
            }
        }
    }

    /// The same if a text index finds the rows first, and keys may leave some of them.
    fn find_by_text(&mut self, table: &SqlTable, path: &AccessPath, wanted: AccessRequest) {
        let is_of_columns = |key: &&Key| key.kind == KeyKind::Fulltext && key.columns().is_some();
        let text = table.keys.iter().find(is_of_columns).map(|key| key.name.clone());
        self.possible.extend(text.clone());
        self.kind = Some("fulltext");
        if path.found_by.is_empty() {
            (self.key, self.key_len) = (text, Some("0".to_owned()));
            self.compared = Some("const".to_owned());
        } else {
            let used: Vec<_> = path.found_by.iter().map(|one| (one.index, used(one))).collect();
            self.by(table, &used);
            if let Some(text) = text {
                let with = |of: &Option<String>, first: &str| {
                    of.as_ref().map(|of| format!("{first},{of}"))
                };
                self.kind = Some("index_merge");
                self.key = with(&self.key, &text);
                self.key_len = with(&self.key_len, "0");
            }
            self.add_extra(format!("Using intersect({})", self.key.as_deref().unwrap_or_default()));
        }
        if let Some(index @ TableIndex::Secondary(_)) = path.ordered_by.filter(|_| wanted.in_order)
        {
            self.add_extra(format!("read in the order of key {}", name_of(table, index)));
        }
    }

    /// Fills in the used keys and how many bytes of each are used.
    fn by(&mut self, table: &SqlTable, used: &[(TableIndex, usize)]) {
        let names = used.iter().map(|(index, _)| name_of(table, *index));
        self.key = Some(names.collect::<Vec<_>>().join(","));
        let bytes = used.iter().filter_map(|(index, columns)| {
            Some(table.key_bytes(table.key_of(*index)?, *columns).to_string())
        });
        self.key_len = Some(bytes.collect::<Vec<_>>().join(","));
    }

    /// Rows looked up by one or several whole keys.
    pub fn by_keys(table: &SqlTable, called: &str, kind: &'static str, keys: u64) -> Self {
        let mut this = Self {
            select: 1,
            table: Some(called.to_owned()),
            kind: Some(kind),
            rows: Some(keys),
            filtered: 100.0,
            possible: possible(table, &[TableIndex::Key]),
            parts: parts(table),
            ..Self::default()
        };
        this.by(table, &[(TableIndex::Key, usize::MAX)]);
        if kind != "range" {
            this.compared = Some(vec!["const"; table.schema.primary_key.len()].join(","));
        }
        this
    }

    /// A full table scan.
    pub fn every(called: &str, rows: u64) -> Self {
        Self {
            select: 1,
            table: Some(called.to_owned()),
            kind: Some("ALL"),
            rows: Some(rows),
            filtered: 100.0,
            ..Self::default()
        }
    }

    /// The target table of an INSERT.
    pub fn of_inserted(called: Option<&String>) -> Self {
        Self { select: 1, table: called.cloned(), kind: Some("ALL"), ..Self::default() }
    }

    /// No table is read.
    pub fn of_no_table(why: impl Into<String>) -> Self {
        Self { select: 1, extra: vec![why.into()], ..Self::default() }
    }

    /// Appends to the Extra column.
    pub fn add_extra(&mut self, what: impl Into<String>) {
        self.extra.push(what.into());
    }

    /// Prepends to the Extra column.
    pub fn add_extra_first(&mut self, what: impl Into<String>) {
        self.extra.insert(0, what.into());
    }

    /// Sets its SELECT from the table's place in the statement.
    pub fn placed(mut self, place: Option<&StatementTable>) -> Self {
        if let Some(place) = place {
            (self.select, self.select_kind) = (place.select, place.kind);
            self.table = Some(place.alias.clone());
        }
        self
    }

    /// MySQL's `select_type`, for a statement with this many SELECTs.
    pub fn select_type(&self, selects: usize) -> &'static str {
        match (self.select_kind, self.is_dependent) {
            (SelectKind::Primary, _) if selects <= 1 => "SIMPLE",
            (SelectKind::Primary, _) => "PRIMARY",
            (SelectKind::Union, false) => "UNION",
            (SelectKind::Union, true) => "DEPENDENT UNION",
            (SelectKind::Subquery, false) => "SUBQUERY",
            (SelectKind::Subquery, true) => "DEPENDENT SUBQUERY",
            (SelectKind::Derived, false) => "DERIVED",
            (SelectKind::Derived, true) => "DEPENDENT DERIVED",
        }
    }

    /// Its line in FORMAT=TREE with the estimated number of rows and Extra.
    pub fn estimated_line(&self) -> String {
        let extra = match self.extra.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.extra.join("; ")),
        };
        let rows = self.rows.map(|rows| format!(" (rows={rows})")).unwrap_or_default();
        format!("{}{extra} {rows}", self.line())
    }

    /// Its line in FORMAT=TREE, without estimates.
    pub fn line(&self) -> String {
        let table = self.table.as_deref().unwrap_or("<none>");
        let by: Cow<'static, str> = match self.kind {
            None => return format!("Rows fetched before execution: {}", self.extra.join("; ")),
            Some("ALL") => return format!("Table scan on {table}"),
            Some("const" | "eq_ref") => "Single-row index lookup".into(),
            Some("ref") => "Index lookup".into(),
            Some("range") => "Index range scan".into(),
            Some("index") => "Index scan".into(),
            Some("index_merge") => "Index merge".into(),
            Some("fulltext") => "Full-text index search".into(),
            Some(other) => other.into(),
        };
        match self.key.as_deref() {
            Some(key) => format!("{by} on {table} using {key}"),
            // The rows of other servers are found by theirs.
            None => format!("{by} on {table}"),
        }
    }
}

/// MySQL's access type of an index access: one row, all rows of a value, or a range.
fn kind(table: &SqlTable, found_by: &FoundBy) -> &'static str {
    if found_by.is_bounded || !found_by.is_single {
        return "range";
    }
    match table.key_of(found_by.index) {
        Some(key) if found_by.columns >= key.parts.len() && table.is_unique(key) => "const",
        _ => "ref",
    }
}

fn used(found_by: &FoundBy) -> usize {
    found_by.columns + usize::from(found_by.is_bounded)
}

fn possible(table: &SqlTable, indexes: &[TableIndex]) -> Vec<String> {
    let helps = |key: &&Key| table.index_of(key).is_some_and(|(index, _)| indexes.contains(&index));
    table.keys.iter().filter(helps).map(|key| key.name.clone()).collect()
}

/// The name of a path's index in SQL: that of the key that declares it, or the path's expression.
fn path_name(table: &SqlTable, place: usize) -> Option<String> {
    let path = table.schema.paths.get(place)?;
    let column = &table.schema.columns.get(path.column)?.name;
    let declares = |key: &&Key| {
        let mut expressions = key.parts.iter().filter_map(KeyPart::expression);
        expressions.any(|expression| declared(table, expression) == Some(place))
    };
    let asked = |names: &[String]| match names.is_empty() {
        true => column.clone(),
        false => format!("{column}->'$.{}'", names.join(".")),
    };
    if let Some(key) = text_key(table, place) {
        return Some(key.name.clone());
    }
    if path.texts {
        let paths: Vec<String> = path.paths().map(asked).collect();
        return Some(format!("texts of {}", paths.join(", ")));
    }
    let declared = table.keys.iter().find(declares).map(|key| key.name.clone());
    Some(declared.unwrap_or_else(|| asked(&path.names)))
}

/// The FULLTEXT key that declares the index of texts at paths.
fn text_key(table: &SqlTable, place: usize) -> Option<&Key> {
    table.keys.iter().find(|key| declared_texts(table, key) == Some(place))
}

/// The names of functional keys that cannot be used, because no column here holds the values of their expressions.
fn unused(table: &SqlTable) -> Vec<&str> {
    let is_unused = |key: &&Key| {
        matches!(key.kind, KeyKind::Unique | KeyKind::Plain)
            && key.parts.iter().enumerate().any(|(nth, part)| {
                part.expression().is_some_and(|expression| {
                    table.key_part(key, nth).is_none() && declared(table, expression).is_none()
                })
            })
    };
    table.keys.iter().filter(is_unused).map(|key| key.name.as_str()).collect()
}

/// An index's name in SQL. An index that the library declared has no name and is called by its first column.
fn name_of(table: &SqlTable, index: TableIndex) -> String {
    if let Some(key) = table.key_of(index) {
        return key.name.clone();
    }
    let first = match index {
        TableIndex::Key => table.schema.primary_key.first().copied(),
        TableIndex::Secondary(place) => {
            let columns = table.schema.indexes.get(place).map(|index| &index.columns);
            columns.and_then(|columns| columns.first()).map(|part| part.column)
        }
    };
    let column = first.and_then(|column| table.schema.columns.get(column));
    column.map(|column| column.name.clone()).unwrap_or_default()
}

/// `some` as a percentage of `all`.
fn share(some: u64, all: u64) -> f64 {
    match all {
        0 => 100.0,
        all => (some as f64 * 10_000.0 / all as f64).round() / 100.0,
    }
}
