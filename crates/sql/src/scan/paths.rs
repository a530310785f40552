//! Narrows conditions on JSON documents by indexed paths, so that rows without a matching value are not read. The
//! original condition is still evaluated, because the engine's paths descend into arrays where SQL's do not, and
//! because SQL functions convert values.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use datafusion::{
    arrow::datatypes::Field,
    common::ScalarValue,
    logical_expr::{
        BinaryExpr, Expr, Operator,
        expr::{InList, ScalarFunction},
    },
};
use remora_engine::{Filter, PathDef, PathTest, PathValue};

use super::{
    EngineTable,
    indexed_paths::{
        EXTRACTS, IndexedPath, IndexedTable, any, every_number, every_text, null, truths,
    },
    path_rows,
    path_texts::{by_letters, by_words},
};
use crate::{
    catalog::{Key, SqlTable, array_path},
    meaning::{
        NUMBERS_OF, ROWS_MAY_HAVE,
        json::{JSON_PART, Json, Path},
        types::ExprType,
    },
    parse::MATCH_AT_PATHS,
    search,
};

/// Up to this size, every integer has an exact double.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;
/// The deepest nesting of AND and OR that is examined.
const DEEPEST: usize = 8;
/// The most alternatives of a list.
const MOST_LISTED: usize = 1_000;
/// The collation of the results of `->>`. Its keys are the text and a space.
const TEXTS_OF_DOCUMENTS: i64 = 46;

/// A necessary condition for `filter` on indexed paths. `indexed` holds the paths' positions in the table's definition.
/// `None` if no path helps.
/// `translate` gives the condition of the engine that is equivalent to one on columns.
pub(super) fn by_paths(
    table: &EngineTable,
    indexed: &[usize],
    filter: &Expr,
    translate: &dyn Fn(&Expr) -> Option<Filter>,
) -> Option<Filter> {
    (!indexed.is_empty())
        .then(|| at_depth(&IndexedTable { table, indexed, translate }, filter, 0))?
}

/// The position of the path that a functional key indexes (a multi-valued index over array members); `None` if there is
/// none.
pub(crate) fn declared(table: &SqlTable, expression: &str) -> Option<usize> {
    let (column, path) = array_path(expression)?;
    let (column, names) =
        (table.column(&column)?, Path::parse(&path).ok()?.names_through_arrays()?);
    let mut paths = table.schema.paths.iter();
    paths.position(|path| path.is_plain() && path.column == column && path.names == names)
}

/// The text index that a FULLTEXT key over texts at paths declares. `place` gives the position of its column. `None` for
/// other keys, and for paths that are more than names.
pub(crate) fn texts_of(key: &Key, place: impl FnOnce(&str) -> Option<usize>) -> Option<PathDef> {
    let (column, paths) = key.texts_at_paths()?;
    let paths = paths.iter().map(|path| Path::parse(path).ok()?.names());
    PathDef::of_texts(place(&column)?, paths.collect::<Option<_>>()?)
}

/// The position of the text index that a FULLTEXT key over texts at paths declares.
pub(crate) fn declared_texts(table: &SqlTable, key: &Key) -> Option<usize> {
    let texts = texts_of(key, |name| table.column(name))?;
    table.schema.paths.iter().position(|path| path.is_along(&texts))
}

fn at_depth(asked: &IndexedTable<'_>, filter: &Expr, depth: usize) -> Option<Filter> {
    by_value(asked, filter, depth).or_else(|| by_letters(asked, filter))
}

fn by_value(asked: &IndexedTable<'_>, filter: &Expr, depth: usize) -> Option<Filter> {
    match filter {
        Expr::BinaryExpr(binary) => compared(asked, binary, depth),
        Expr::InList(list) => listed(asked, list),
        Expr::ScalarFunction(call) => called(asked, call, depth),
        _ => None,
    }
}

fn compared(asked: &IndexedTable<'_>, binary: &BinaryExpr, depth: usize) -> Option<Filter> {
    let BinaryExpr { left, op, right } = binary;
    match op {
        Operator::Or => {
            let side =
                |part: &Expr| at_depth(asked, part, depth + 1).or_else(|| (asked.translate)(part));
            let parts = parts(binary).filter(|_| depth < DEEPEST)?;
            parts.into_iter().map(side).collect::<Option<_>>().map(Filter::Or)
        }
        Operator::And => {
            let parts = parts(binary).filter(|_| depth < DEEPEST)?.into_iter();
            let parts = parts.filter_map(|part| at_depth(asked, part, depth + 1));
            let parts: Vec<Filter> = parts.collect();
            (!parts.is_empty()).then_some(Filter::And(parts))
        }
        _ => match (left.as_ref(), right.as_ref()) {
            (Expr::ScalarFunction(call), literal @ Expr::Literal(..)) => {
                function_compared(asked, call, *op, literal)
            }
            (literal @ Expr::Literal(..), Expr::ScalarFunction(call)) => {
                function_compared(asked, call, op.swap()?, literal)
            }
            _ => None,
        },
    }
}

/// The conditions of a left-deep chain of AND or of OR as one list; `None` if there are too many.
fn parts(binary: &BinaryExpr) -> Option<Vec<&Expr>> {
    let mut parts = vec![binary.right.as_ref()];
    let mut rest = binary.left.as_ref();
    while let Expr::BinaryExpr(BinaryExpr { left, op, right }) = rest
        && *op == binary.op
    {
        parts.push(right);
        rest = left;
        if parts.len() >= MOST_LISTED {
            return None;
        }
    }
    parts.push(rest);
    Some(parts)
}

fn function_compared(
    asked: &IndexedTable<'_>,
    call: &ScalarFunction,
    op: Operator,
    literal: &Expr,
) -> Option<Filter> {
    let Expr::Literal(value, _) = literal else { return None };
    match (call.name(), call.args.as_slice(), value) {
        ("match_score", [of], _) if is_of_matches(op, value) => by_value(asked, of, DEEPEST),
        ("json_order", [a, b], ScalarValue::Int64(Some(0))) => {
            let sides =
                (IndexedPath::of(asked, a, &EXTRACTS), IndexedPath::of(asked, b, &EXTRACTS));
            let (path, op, value) = match sides {
                (Some(path), None) => (path, op, b),
                (None, Some(path)) => (path, op.swap()?, a),
                _ => return None,
            };
            ordered(&path, op, path_value(&json_of(value)?)?)
        }
        ("to_double", [of], ScalarValue::Float64(Some(number))) => {
            let path = IndexedPath::of(asked, of, &["->>", "json_value"])?;
            numbers(&path, op, *number, (number.next_down(), number.next_up()))
        }
        ("cast_signed", [of], ScalarValue::Int64(Some(number))) => {
            let path =
                IndexedPath::of(asked, of, &["->>", "json_value", "json_extract", JSON_PART])?;
            let number = *number as f64;
            // The function rounds and truncates.
            numbers(&path, op, number, (number - 1.0, number + 1.0))
        }
        (
            "collation_key",
            [of, Expr::Literal(ScalarValue::Int64(Some(TEXTS_OF_DOCUMENTS)), _)],
            key,
        ) => {
            let path = IndexedPath::of(asked, of, &["->>"])?;
            match op {
                Operator::Eq => text(&path, key),
                _ => texts_beyond(&path, op, key),
            }
        }
        _ => None,
    }
}

/// Whether a score that satisfies the comparison belongs to a match: all other rows score 0.
fn is_of_matches(op: Operator, value: &ScalarValue) -> bool {
    let number = match value {
        ScalarValue::Int64(Some(number)) => *number as f64,
        ScalarValue::Float64(Some(number)) => *number,
        _ => return false,
    };
    match op {
        Operator::Gt => number >= 0.0,
        Operator::GtEq => number > 0.0,
        _ => false,
    }
}

/// Documents with a number in the range, or with a value that may convert to such a number: texts, booleans and large
/// unsigned integers. `None` if the comparison is true for 0, because any other value converts to 0.
fn numbers(
    path: &IndexedPath,
    op: Operator,
    number: f64,
    (low, high): (f64, f64),
) -> Option<Filter> {
    let holds_for_zero = match op {
        Operator::Eq => number == 0.0,
        Operator::Lt => 0.0 < number,
        Operator::LtEq => 0.0 <= number,
        Operator::Gt => 0.0 > number,
        Operator::GtEq => 0.0 >= number,
        _ => return None,
    };
    if holds_for_zero || number.is_nan() || number.abs() >= MOST_EXACT {
        return None;
    }
    let (low, high) = (Included(PathValue::Float(low)), Included(PathValue::Float(high)));
    let (low, high): (Bound<PathValue>, Bound<PathValue>) = match op {
        Operator::Eq => (low, high),
        Operator::Lt | Operator::LtEq => (Unbounded, high),
        _ => (low, Unbounded),
    };
    let tests = [
        PathTest::Within(low, high),
        PathTest::Within(Excluded(PathValue::Float(i64::MAX as f64 / 2.0)), Unbounded),
        every_text(),
        truths(),
    ];
    Some(any(path, tests))
}

/// Documents with the text that has this key. `None` if the text is also that of another JSON value.
fn text(path: &IndexedPath, key: &ScalarValue) -> Option<Filter> {
    let ScalarValue::BinaryView(Some(key)) = key else { return None };
    let text = std::str::from_utf8(key.strip_suffix(b" ")?).ok()?;
    let is_of_another = serde_json::from_str::<serde_json::Value>(text).is_ok();
    (!is_of_another).then(|| path.test(PathTest::Begins(text.to_owned())))
}

/// Documents with a value before or behind a number or a text in the order of JSON values: null, numbers, texts, objects,
/// arrays, truths. A value beyond 64 bits is compared as the nearest double, so bounds are the neighbouring doubles.
fn ordered(path: &IndexedPath, op: Operator, value: PathValue) -> Option<Filter> {
    let (low, high) = match &value {
        PathValue::Int(number) => neighbours(*number as f64),
        PathValue::Uint(number) => neighbours(*number as f64),
        PathValue::Float(number) => neighbours(*number),
        PathValue::Text(_) => (value.clone(), value.clone()),
        PathValue::Null | PathValue::Bool(_) => return equal(path, op, value),
    };
    let is_text = matches!(value, PathValue::Text(_));
    let tests = match op {
        Operator::Eq => return equal(path, op, value),
        Operator::Lt | Operator::LtEq => {
            let numbers = is_text.then(every_number);
            let before = [PathTest::Within(Unbounded, Included(high)), null()];
            before.into_iter().chain(numbers).collect::<Vec<_>>()
        }
        Operator::Gt | Operator::GtEq => {
            let texts = (!is_text).then(every_text);
            let behind =
                [PathTest::Within(Included(low), Unbounded), PathTest::Container, truths()];
            behind.into_iter().chain(texts).collect()
        }
        _ => return None,
    };
    Some(any(path, tests))
}

fn equal(path: &IndexedPath, op: Operator, value: PathValue) -> Option<Filter> {
    (op == Operator::Eq).then(|| path.test(PathTest::In(vec![value])))
}

fn neighbours(number: f64) -> (PathValue, PathValue) {
    (PathValue::Float(number.next_down()), PathValue::Float(number.next_up()))
}

/// Documents with a text before or behind another, or with a value that is not a text: `->>` shows it as one. Texts are
/// compared as if spaces followed them; `None` if the text has a character below the space, which would sort before
/// the end of a shorter text.
fn texts_beyond(path: &IndexedPath, op: Operator, key: &ScalarValue) -> Option<Filter> {
    let ScalarValue::BinaryView(Some(key)) = key else { return None };
    let text = std::str::from_utf8(key.strip_suffix(b" ")?).ok()?.trim_end_matches(' ');
    if text.bytes().any(|byte| byte < b' ') {
        return None;
    }
    let texts = match op {
        // No text that sorts up to this one is longer by a character above the space.
        Operator::Lt | Operator::LtEq => {
            PathTest::Within(Unbounded, Excluded(PathValue::Text(format!("{text}!"))))
        }
        Operator::Gt | Operator::GtEq => {
            PathTest::Within(Included(PathValue::Text(text.to_owned())), Unbounded)
        }
        _ => return None,
    };
    Some(any(path, [texts, every_number(), null(), truths(), PathTest::Container]))
}

fn listed(asked: &IndexedTable<'_>, list: &InList) -> Option<Filter> {
    let Expr::ScalarFunction(call) = list.expr.as_ref() else { return None };
    if list.negated || list.list.len() > MOST_LISTED {
        return None;
    }
    let mut parts = Vec::with_capacity(list.list.len());
    for each in &list.list {
        match each {
            // A NULL in the list never makes IN true.
            Expr::Literal(value, _) if value.is_null() => {}
            each => parts.push(function_compared(asked, call, Operator::Eq, each)?),
        }
    }
    Some(Filter::Or(parts))
}

fn called(asked: &IndexedTable<'_>, call: &ScalarFunction, depth: usize) -> Option<Filter> {
    match (call.name(), call.args.as_slice()) {
        ("truth" | "match_score", [inner]) if depth < DEEPEST => at_depth(asked, inner, depth + 1),
        (MATCH_AT_PATHS, [mode, query, document, paths @ ..]) => {
            by_words(asked, (mode, query), document, paths)
        }
        (NUMBERS_OF, [set, name, values @ ..]) => {
            numbers_of(&IndexedPath::of_set(asked, set)?, &search::text(name)?, values)
        }
        (ROWS_MAY_HAVE, args) => path_rows::may_have(asked, args),
        ("member of", [value, document @ Expr::Column(_)]) => {
            let path = IndexedPath::of_set(asked, document)?;
            Some(path.test(PathTest::In(vec![path_value(&json_of(value)?)?])))
        }
        ("member of", [value, array]) => {
            let path = IndexedPath::of_elements(asked, array)?;
            Some(path.test(PathTest::In(vec![path_value(&json_of(value)?)?])))
        }
        ("json_contains", [array, candidate]) => {
            contains(&IndexedPath::of_elements(asked, array)?, candidate)
        }
        ("json_contains", [document, candidate, path]) => {
            contains(&IndexedPath::at(asked, document, path)?, candidate)
        }
        ("json_overlaps", [a, b]) => {
            let of = |expr| IndexedPath::of_elements(asked, expr);
            let (path, other) = of(a).map(|path| (path, b)).or_else(|| Some((of(b)?, a)))?;
            let values = match Json::parse(&search::text(other)?).ok()? {
                Json::Array(values) => values.iter().map(path_value).collect::<Option<_>>()?,
                value => vec![path_value(&value)?],
            };
            Some(path.test(PathTest::In(values)))
        }
        _ => None,
    }
}

/// Documents with a set that has a number for which the comparison is true; `None` if the comparison may be true for an
/// empty set.
fn numbers_of(path: &IndexedPath, name: &str, values: &[Expr]) -> Option<Filter> {
    let literal = |expr: &Expr| {
        let Expr::Literal(value, metadata) = expr else { return None };
        if let Some(metadata) = metadata {
            let field = Field::new("", value.data_type(), true);
            // Temporal values look like numbers here.
            if !ExprType::of_field(&field.with_metadata(metadata.to_hashmap())).is_integer() {
                return None;
            }
        }
        match value {
            ScalarValue::Int64(Some(number)) => Some(PathValue::Int(*number)),
            ScalarValue::UInt64(Some(number)) => Some(PathValue::Uint(*number)),
            _ => None,
        }
    };
    let is_null = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.is_null());
    let present = values.iter().filter(|value| !is_null(value));
    let numbers: Vec<PathValue> = present.map(literal).collect::<Option<_>>()?;
    // Looking up more alternatives costs more than testing rows.
    if numbers.len() > MOST_LISTED {
        return None;
    }
    let mut numbers = numbers.into_iter();
    let test = match name {
        "in" => PathTest::In(numbers.collect()),
        "between" => within(numbers.next()?, numbers.next()?),
        "<" => PathTest::Within(Unbounded, Excluded(numbers.next()?)),
        "<=" => PathTest::Within(Unbounded, Included(numbers.next()?)),
        ">" => PathTest::Within(Excluded(numbers.next()?), Unbounded),
        ">=" => PathTest::Within(Included(numbers.next()?), Unbounded),
        _ => return None,
    };
    Some(path.test(test))
}

/// A range. An empty range becomes a test that matches nothing.
fn within(low: PathValue, high: PathValue) -> PathTest {
    let whole = |value: &PathValue| match value {
        PathValue::Int(number) => i128::from(*number),
        PathValue::Uint(number) => i128::from(*number),
        _ => 0,
    };
    match whole(&low) <= whole(&high) {
        true => PathTest::Within(Included(low), Included(high)),
        false => PathTest::In(Vec::new()),
    }
}

/// JSON_CONTAINS: all scalars of the candidate are at the path.
fn contains(path: &IndexedPath, candidate: &Expr) -> Option<Filter> {
    let values: Vec<PathValue> = match Json::parse(&search::text(candidate)?).ok()? {
        Json::Array(values) => values.iter().take(MOST_LISTED).filter_map(path_value).collect(),
        value => vec![path_value(&value)?],
    };
    let parts =
        values.into_iter().map(|value| any(path, [PathTest::In(vec![value]), PathTest::Nested]));
    let parts: Vec<Filter> = parts.collect();
    (!parts.is_empty()).then_some(Filter::And(parts))
}

/// An SQL literal as a JSON value.
fn json_of(expr: &Expr) -> Option<Json> {
    let Expr::Literal(value, metadata) = expr else { return None };
    if let Some(metadata) = metadata {
        let field = Field::new("", value.data_type(), true);
        let kind = ExprType::of_field(&field.with_metadata(metadata.to_hashmap()));
        if kind.kind == crate::SqlType::Json {
            // TRUE and FALSE become documents beside one.
            let document = Json::parse(&search::text(expr)?).ok()?;
            return matches!(document, Json::Bool(_)).then_some(document);
        }
        // Documents, temporal values and bits look like texts and numbers here.
        if !(kind.is_text() || matches!(kind.kind, crate::SqlType::BigInt | crate::SqlType::Int)) {
            return None;
        }
    }
    match value {
        ScalarValue::Int64(Some(number)) => Some(Json::Int(*number)),
        ScalarValue::UInt64(Some(number)) => Some(Json::Uint(*number)),
        _ => search::text(expr).map(Json::Text),
    }
}

/// A scalar as the engine's path value; `None` for other values and for scalars that the engine compares differently.
fn path_value(value: &Json) -> Option<PathValue> {
    Some(match value {
        Json::Null => PathValue::Null,
        Json::Bool(truth) => PathValue::Bool(*truth),
        Json::Int(number) if (*number as f64).abs() < MOST_EXACT => PathValue::Int(*number),
        Json::Uint(number) if (*number as f64) < MOST_EXACT => PathValue::Uint(*number),
        Json::Double(number) if number.abs() < MOST_EXACT => PathValue::Float(*number),
        Json::Text(text) => PathValue::Text(text.clone()),
        _ => return None,
    })
}
