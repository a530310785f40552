//! The documents that may have a row of JSON_TABLE with a value, by the index of the value's path.

use std::ops::Bound::{Excluded, Included, Unbounded};

use datafusion::{
    catalog::TableProvider,
    common::ScalarValue,
    datasource::source_as_provider,
    logical_expr::{Expr, TableSource},
};
use remora_engine::{ColumnType, Filter, PathTest, PathValue};
use remora_mysql::Collation;
use rustc_hash::FxHashSet;

use super::{
    EngineTable,
    indexed_paths::{IndexedTable, any_of, every_number, every_text, truths},
};
use crate::{meaning::collation, search};

/// The most distinct texts that are looked up.
const MOST_TEXTS: usize = 1_000;
/// Numbers from here on are not narrowed: conversions may move them far.
const MOST_NUMBER: f64 = 1e15;

/// Whether a table has an index that begins with a path into a column.
pub(crate) fn indexes_path(
    source: &std::sync::Arc<dyn TableSource>,
    column: &str,
    names: &[String],
) -> bool {
    let Ok(provider) = source_as_provider(source) else { return false };
    let provider: &dyn TableProvider = provider.as_ref();
    let any: &dyn std::any::Any = provider;
    let Some(table) = any.downcast_ref::<EngineTable>() else { return false };
    let Ok(index) = table.schema.index_of(column) else { return false };
    let Some(position) = table.positions.get(index) else { return false };
    let schema = &table.sql().schema;
    let is_json = schema.columns.get(*position).is_some_and(|it| it.kind == ColumnType::Json);
    let mut paths = schema.paths.iter();
    is_json && paths.any(|it| it.is_plain() && it.column == *position && it.names == names)
}

/// Documents with a value that may satisfy the test of `#rows_may_have`; `None` if no index knows.
pub(super) fn may_have(asked: &IndexedTable<'_>, args: &[Expr]) -> Option<Filter> {
    let (document, count, rest) = match args {
        [document, Expr::Literal(ScalarValue::Int64(Some(count)), _), rest @ ..] => {
            (document, usize::try_from(*count).ok()?, rest)
        }
        _ => return None,
    };
    let (names, test) = rest.split_at_checked(count)?;
    let names: Vec<String> = names.iter().map(search::text).collect::<Option<_>>()?;
    let (column, position) = asked.documents(document)?;
    let mut paths = asked.paths_of(position);
    paths.find(|it| it.is_plain() && it.names == names)?;
    let (what, values) = test.split_first()?;
    let tests = match search::text(what)?.as_str() {
        "text" => texts(asked.table, (column, &names), values)?,
        op => numbers(op, values)?,
    };
    Some(any_of(column, &names, tests))
}

/// Values whose text has one of these collation keys. Numbers and truths are texts there.
fn texts(
    table: &EngineTable,
    (column, names): (&str, &[String]),
    values: &[Expr],
) -> Option<Vec<PathTest>> {
    // The plan of another snapshot has other texts.
    if table.is_kept {
        return None;
    }
    let (number, keys) = values.split_first()?;
    let Expr::Literal(ScalarValue::Int64(Some(number)), _) = number else { return None };
    let collation = Collation(u16::try_from(*number).ok()?);
    let key = |literal: &Expr| match literal {
        Expr::Literal(ScalarValue::BinaryView(Some(key)), _) => Some(key.clone()),
        _ => None,
    };
    let keys: FxHashSet<Vec<u8>> = keys.iter().map(key).collect::<Option<_>>()?;
    // A column that is shorter drops spaces at the end.
    let mut is_wanted =
        |text: &str| text.ends_with(' ') || keys.contains(collation::key(text, collation).as_ref());
    let found =
        table.reader.texts_at_path(&table.engine_name, (column, names), &mut is_wanted, MOST_TEXTS);
    let texts = found.ok()??.into_iter().map(PathValue::Text).collect();
    Some(vec![PathTest::In(texts), every_number(), truths()])
}

/// Values that may convert to numbers for which the comparison with one of these is true.
fn numbers(op: &str, values: &[Expr]) -> Option<Vec<PathTest>> {
    let mut tests = vec![
        PathTest::Within(Excluded(PathValue::Float(i64::MAX as f64 / 2.0)), Unbounded),
        every_text(),
        truths(),
    ];
    for value in values {
        let Expr::Literal(ScalarValue::Float64(Some(number)), _) = value else { return None };
        if number.is_nan() || number.abs() > MOST_NUMBER {
            return None;
        }
        // Conversions to integers, decimals and floats round.
        let around = 1.0 + number.abs() * 1e-6;
        let low = Included(PathValue::Float(number - around));
        let high = Included(PathValue::Float(number + around));
        tests.push(match op {
            "=" => PathTest::Within(low, high),
            "<" => PathTest::Within(Unbounded, high),
            ">" => PathTest::Within(low, Unbounded),
            _ => return None,
        });
    }
    Some(tests)
}
