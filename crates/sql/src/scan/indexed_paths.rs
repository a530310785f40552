//! The indexed paths of a table, and conditions on their values.

use std::ops::Bound::{Included, Unbounded};

use datafusion::logical_expr::Expr;
use remora_engine::{ColumnType, Filter, PathDef, PathTest, PathValue};

use super::EngineTable;
use crate::{
    meaning::json::{JSON_PART, Path},
    search,
};

/// The functions that give the JSON value at a path.
pub(super) const EXTRACTS: [&str; 2] = ["json_extract", JSON_PART];

/// The table whose indexed paths a condition may use.
pub(super) struct IndexedTable<'t> {
    pub table: &'t EngineTable,
    /// Positions of the paths that every segment has indexed.
    pub indexed: &'t [usize],
    /// The condition of the engine that is equivalent to one on columns.
    pub translate: &'t dyn Fn(&Expr) -> Option<Filter>,
}

impl<'t> IndexedTable<'t> {
    /// The paths into a document column that every segment has indexed.
    pub fn paths_of(&self, column: usize) -> impl Iterator<Item = &'t PathDef> {
        let paths = &self.table.table.schema.paths;
        let indexed = self.indexed.iter().filter_map(|at| paths.get(*at));
        indexed.filter(move |path| path.column == column)
    }

    /// The name and the position of the document column that an expression reads.
    pub fn documents(&self, document: &Expr) -> Option<(&'t str, usize)> {
        let Expr::Column(named) = document else { return None };
        let table = self.table;
        let index = table.schema.index_of(&named.name).ok()?;
        let position = *table.positions.get(index)?;
        let column = table.table.schema.columns.get(position)?;
        (column.kind == ColumnType::Json).then_some((column.name.as_str(), position))
    }

    /// The document column and the path of a `->>`.
    pub fn unquoted(&self, expr: &Expr) -> Option<((&'t str, usize), Vec<String>)> {
        let Expr::ScalarFunction(call) = expr else { return None };
        match (call.name(), call.args.as_slice()) {
            ("->>", [document, path]) => Some((self.documents(document)?, names(path)?)),
            ("json_unquote", [Expr::ScalarFunction(inner)]) => {
                let ("json_extract" | JSON_PART, [document, path]) =
                    (inner.name(), inner.args.as_slice())
                else {
                    return None;
                };
                Some((self.documents(document)?, names(path)?))
            }
            _ => None,
        }
    }
}

/// The names in a literal path, if it consists of names only.
pub(super) fn names(path: &Expr) -> Option<Vec<String>> {
    Path::parse(&search::text(path)?).ok()?.names()
}

/// An indexed path and its document column.
pub(super) struct IndexedPath {
    column: String,
    /// The path alone, or the paths that are indexed together with it, itself first.
    paths: Vec<Vec<String>>,
}

impl IndexedPath {
    pub fn test(&self, test: PathTest) -> Filter {
        let column = self.column.clone();
        match self.paths.as_slice() {
            [names] => Filter::Path(column, names.clone(), test),
            // The engine refuses more bytes than it will look up.
            paths if is_long(&test) => {
                Filter::PathsTogether(column, paths.to_vec(), vec![PathTest::Exists])
            }
            paths => Filter::PathsTogether(column, paths.to_vec(), vec![test]),
        }
    }

    /// The path that an expression reads from a document by one of `functions`.
    pub fn of(asked: &IndexedTable<'_>, expr: &Expr, functions: &[&str]) -> Option<Self> {
        let Expr::ScalarFunction(call) = expr else { return None };
        if call.name() == "json_unquote" && functions.contains(&"->>") {
            let [inner] = call.args.as_slice() else { return None };
            return Self::of(asked, inner, &EXTRACTS);
        }
        let [document, path] = call.args.as_slice() else { return None };
        functions.contains(&call.name()).then(|| Self::at(asked, document, path))?
    }

    /// The path that an expression reads from a document, if the condition is about the elements of what it gives: then
    /// the path may lead into arrays by `[*]`.
    pub fn of_elements(asked: &IndexedTable<'_>, expr: &Expr) -> Option<Self> {
        let Expr::ScalarFunction(call) = expr else { return None };
        let [document, path] = call.args.as_slice() else { return None };
        let path = EXTRACTS.contains(&call.name()).then(|| search::text(path))??;
        Self::along(asked, document, Path::parse(&path).ok()?.names_through_arrays()?)
    }

    /// The path of a set, whose members the condition is about.
    pub fn of_set(asked: &IndexedTable<'_>, set: &Expr) -> Option<Self> {
        match set {
            Expr::ScalarFunction(call) if matches!(call.name(), "any" | "all") => {
                Self::of_set(asked, call.args.first()?)
            }
            set => Self::along(asked, set, Vec::new()),
        }
    }

    pub fn at(asked: &IndexedTable<'_>, document: &Expr, path: &Expr) -> Option<Self> {
        Self::along(asked, document, names(path)?)
    }

    fn along(asked: &IndexedTable<'_>, document: &Expr, names: Vec<String>) -> Option<Self> {
        let (column, position) = asked.documents(document)?;
        let begins = |index: &&PathDef| !index.texts && index.names == names;
        let index = asked.paths_of(position).filter(begins).min_by_key(|it| it.further.len())?;
        let paths = index.paths().map(<[String]>::to_vec).collect();
        Some(Self { column: column.to_owned(), paths })
    }
}

/// Whether the values of a list are too long to be looked up among several paths.
fn is_long(test: &PathTest) -> bool {
    let PathTest::In(values) = test else { return false };
    let bytes = |value: &PathValue| match value {
        PathValue::Text(text) => text.len(),
        _ => 0,
    };
    values.len() > 1 && values.iter().map(bytes).sum::<usize>() > MOST_LISTED_BYTES
}

/// The most bytes of texts in a list that are looked up among several paths.
const MOST_LISTED_BYTES: usize = 1 << 20;

/// Documents with a value at a path that passes one of the tests. The path must be indexed alone.
pub(super) fn any_of(column: &str, names: &[String], tests: Vec<PathTest>) -> Filter {
    any(&IndexedPath { column: column.to_owned(), paths: vec![names.to_vec()] }, tests)
}

pub(super) fn any(path: &IndexedPath, tests: impl IntoIterator<Item = PathTest>) -> Filter {
    Filter::Or(tests.into_iter().map(|test| path.test(test)).collect())
}

pub(super) fn null() -> PathTest {
    PathTest::In(vec![PathValue::Null])
}

pub(super) fn truths() -> PathTest {
    PathTest::In(vec![PathValue::Bool(false), PathValue::Bool(true)])
}

pub(super) fn every_number() -> PathTest {
    PathTest::Within(Included(PathValue::Float(f64::NEG_INFINITY)), Unbounded)
}

pub(super) fn every_text() -> PathTest {
    PathTest::Begins(String::new())
}
