//! Functions over JSON documents.

use std::borrow::Cow;

use datafusion::logical_expr::{Expr, expr::ScalarFunction};
use remora_engine::Value;
use remora_mysql::{Collation, ErrorCode, messages};

use super::super::{
    call::{Call, TypeContext},
    function::{Definition, Dialect, MANY},
    json::{self, ArrayCell, JSON_PART, Json, MAX_DEPTH, Path, PathStep},
    types::{ExprType, UNBOUNDED, coercibility},
    value::SqlValue,
};
use crate::{Error, Result, SqlType};

/// A placeholder condition for JSON_TABLE's rows. Its argument is the document.
pub(crate) const JSON_ROWS: &str = "#json_rows";

/// A necessary condition for a row of JSON_TABLE, which an index may answer. Its arguments are the document, the number of
/// names of a path, these names, and a test of the values there.
pub(crate) const ROWS_MAY_HAVE: &str = "#rows_may_have";

/// A call of [`ROWS_MAY_HAVE`].
pub(crate) fn rows_may_have(args: Vec<Expr>) -> Option<Expr> {
    let udf = super::function(ROWS_MAY_HAVE, Dialect::default())?;
    Some(Expr::ScalarFunction(ScalarFunction::new_udf(udf, args)))
}

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::truth(JSON_ROWS, 1, 1, rows),
    Definition::truth(ROWS_MAY_HAVE, 3, MANY, |_, _| Ok(SqlValue::truth(true))),
    Definition::new("json_extract", 2, MANY, json_type, extract),
    Definition::new("->>", 2, 2, long_text, extract_unquoted),
    Definition::new(JSON_PART, 2, 2, json_type, part),
    Definition::new("json_unquote", 1, 1, unquote_type, unquote).expanding(expand_unquote),
    Definition::new("json_quote", 1, 1, quote_type, quote),
    Definition::new("json_object", 0, MANY, json_type, object),
    Definition::new("json_array", 0, MANY, json_type, array),
    Definition::new("json_contains", 2, 3, truth_type, contains),
    Definition::new("json_contains_path", 3, MANY, truth_type, contains_path),
    Definition::new("json_overlaps", 2, 2, truth_type, overlaps),
    Definition::truth("member of", 2, 2, member_of),
    Definition::new("json_keys", 1, 2, json_type, keys),
    Definition::new("json_length", 1, 2, int_type, length),
    Definition::new("json_depth", 1, 1, int_type, depth),
    Definition::new("json_type", 1, 1, type_type, type_name),
    Definition::new("json_valid", 1, 1, truth_type, valid),
    Definition::new("json_search", 3, MANY, json_type, search),
    Definition::new("json_pretty", 1, 1, long_text, pretty),
    Definition::new("json_storage_size", 1, 1, int_type, storage_size),
    Definition::new("json_set", 3, MANY, json_type, |c, args| {
        change(c, args, "json_set", (true, true))
    }),
    Definition::new("json_insert", 3, MANY, json_type, |c, args| {
        change(c, args, "json_insert", (true, false))
    }),
    Definition::new("json_replace", 3, MANY, json_type, |c, args| {
        change(c, args, "json_replace", (false, true))
    }),
    Definition::new("json_remove", 2, MANY, json_type, remove),
    Definition::new("json_array_append", 3, MANY, json_type, array_append),
    Definition::new("json_array_insert", 3, MANY, json_type, array_insert),
    Definition::new("json_merge", 2, MANY, json_type, merge_preserve),
    Definition::new("json_merge_patch", 2, MANY, json_type, merge_patch),
    Definition::new("json_merge_preserve", 2, MANY, json_type, merge_preserve),
];

/// Planning replaces it, so it never runs.
fn rows<'a>(_call: &Call<'_>, _args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Err(Error::unsupported("JSON_TABLE in this place"))
}

fn json_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(extracted_type(false))
}

/// Texts extracted from documents compare by code points, like documents.
fn document_text(characters: u32) -> ExprType {
    let kind = ExprType::text(characters, Collation::UTF8MB4_BIN);
    kind.with_coercibility(coercibility::LITERAL)
}

fn long_text(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(extracted_type(true))
}

fn quote_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(document_text(typing.get(0).characters().saturating_mul(6).saturating_add(2)))
}

fn unquote_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let kind = typing.get(0);
    if kind.kind == SqlType::Json {
        return long_text(typing);
    }
    Ok(document_text(kind.characters()))
}

fn type_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(document_text(17))
}

fn int_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(21))
}

fn truth_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::truth())
}

fn any_null(args: &[SqlValue<'_>]) -> bool {
    args.iter().any(SqlValue::is_null)
}

fn path(value: &SqlValue<'_>) -> Result<Path> {
    Path::parse(&value.string().unwrap_or_default())
}

/// Parses a path, which must not match several values.
fn single_path(value: &SqlValue<'_>) -> Result<Path> {
    let path = path(value)?;
    if path.is_multiple() {
        let message = "In this situation, path expressions may not contain the * and ** tokens \
                       or an array range.";
        return Err(Error::new(ErrorCode::JsonPathWildcard, message));
    }
    Ok(path)
}

fn extract_json(args: &[SqlValue<'_>]) -> Result<Option<Json>> {
    let Some((document, paths)) = args.split_first() else { return Ok(None) };
    if any_null(args) {
        return Ok(None);
    }
    match (document, paths) {
        (SqlValue::Json(text), [only]) => {
            let only = path(only)?;
            if only.is_of_keys() {
                return Ok(json::member(text, &only.steps));
            }
        }
        (SqlValue::Text(text), [only]) => {
            // Reports invalid text before an invalid path, as below.
            if let Ok(only) = path(only)
                && only.is_of_keys()
                && let Ok(found) = json::checked_member(text, &only.steps)
            {
                return Ok(found);
            }
        }
        _ => {}
    }
    let document = json::argument(document, 1, "json_extract")?;
    let paths: Vec<Path> = paths.iter().map(path).collect::<Result<_>>()?;
    let several = paths.len() > 1 || paths.iter().any(Path::is_multiple);
    let found: Vec<Json> = paths.iter().flat_map(|path| path.find(&document)).cloned().collect();
    Ok(match several {
        true if found.is_empty() => None,
        true => Some(Json::Array(found)),
        false => found.into_iter().next(),
    })
}

/// The value at a path of a stored document or of its text.
pub(crate) fn extracted(document: &Value, path: &str) -> Result<Option<Json>> {
    let document = match document {
        Value::Json(text) => SqlValue::Json(Cow::Borrowed(&**text)),
        Value::Text(text) => SqlValue::Text(Cow::Borrowed(&**text)),
        _ => return Ok(None),
    };
    extract_json(&[document, SqlValue::Text(Cow::Borrowed(path))])
}

/// The type of an extracted value, or of its text.
pub(crate) fn extracted_type(is_text: bool) -> ExprType {
    if is_text { document_text(UNBOUNDED / 4) } else { ExprType::json() }
}

fn extract<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(extract_json(args)?, |found| json::to_value(&found)))
}

/// The value at a path, as JSON_EXTRACT gives it, but NULL for a JSON null.
fn part<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let found = extract_json(args)?.filter(|found| *found != Json::Null);
    Ok(SqlValue::or_null(found, |found| json::to_value(&found)))
}

fn extract_unquoted<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(extract_json(args)?, |found| SqlValue::text(found.into_plain_text())))
}

fn unquote<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(match args.first() {
        None | Some(SqlValue::Null) => SqlValue::Null,
        Some(SqlValue::Json(text)) => SqlValue::text(super::super::value::unquoted(text)),
        Some(value) => {
            let text = value.string().unwrap_or_default();
            let quoted = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
            match quoted {
                true => SqlValue::text(
                    json::parse_argument(&text, 1, "json_unquote")?.into_plain_text(),
                ),
                false => SqlValue::text(text.into_owned()),
            }
        }
    })
}

/// Rewrites `JSON_UNQUOTE(JSON_EXTRACT(document, path))` to `document ->> path`, which avoids
/// building a document.
fn expand_unquote(args: &[Expr], typing: &TypeContext<'_>) -> Result<Option<Expr>> {
    let [Expr::ScalarFunction(inner)] = args else { return Ok(None) };
    if inner.name() != "json_extract" || inner.args.len() != 2 {
        return Ok(None);
    }
    let dialect = Dialect { collation: typing.collation, division_digits: typing.division_digits };
    let udf = super::function("->>", dialect);
    Ok(udf.map(|udf| Expr::ScalarFunction(ScalarFunction::new_udf(udf, inner.args.clone()))))
}

fn quote<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(SqlValue::or_null(args.first().and_then(SqlValue::string), |text| {
        SqlValue::text(json::quoted(&text))
    }))
}

/// An argument as a value inside a document. Booleans stay booleans.
fn inner(call: &Call<'_>, args: &[SqlValue<'_>], index: usize) -> Json {
    let Some(value) = args.get(index) else { return Json::Null };
    let is_truth = call.type_of(index).is_some_and(|kind| kind.is_integer() && kind.length == 1);
    match value {
        SqlValue::Int(number @ (0 | 1)) if is_truth => Json::Bool(*number == 1),
        value => json::of_typed(value, call.type_of(index)),
    }
}

fn object<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if args.len() % 2 == 1 {
        let message = messages::wrong_parameter_count("json_object");
        return Err(Error::new(ErrorCode::WrongParameterCount, message));
    }
    let mut members = Vec::with_capacity(args.len() / 2);
    for index in (0..args.len()).step_by(2) {
        let Some(key) = args.get(index).and_then(SqlValue::string) else {
            let message = messages::JSON_NULL_KEY;
            return Err(Error::new(ErrorCode::JsonNullKey, message));
        };
        members.push((key.into_owned(), inner(call, args, index + 1)));
    }
    Ok(json::to_value(&Json::object(members)))
}

fn array<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let values = (0..args.len()).map(|index| inner(call, args, index));
    Ok(json::to_value(&Json::Array(values.collect())))
}

fn is_in(candidate: &Json, target: &Json) -> bool {
    match (target, candidate) {
        (Json::Array(_), Json::Array(candidates)) => {
            candidates.iter().all(|candidate| is_in(candidate, target))
        }
        (Json::Array(values), candidate) => values.iter().any(|value| is_in(candidate, value)),
        (Json::Object(_), Json::Object(members)) => members
            .iter()
            .all(|(key, value)| target.get(key).is_some_and(|found| is_in(value, found))),
        (target, candidate) => json::compare(target, candidate).is_eq(),
    }
}

fn contains<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [target, candidate, rest @ ..] = args else { return Ok(SqlValue::Null) };
    if any_null(args) {
        return Ok(SqlValue::Null);
    }
    let target = json::argument(target, 1, "json_contains")?;
    let candidate = json::argument(candidate, 2, "json_contains")?;
    let target = match rest.first() {
        None => Some(&target),
        Some(value) => single_path(value)?.find(&target).first().copied(),
    };
    Ok(SqlValue::or_null(target, |target| SqlValue::truth(is_in(&candidate, target))))
}

/// Whether the argument is `all`; an error unless it is `all` or `one`.
fn all(value: &SqlValue<'_>, function: &str) -> Result<bool> {
    match value.string().unwrap_or_default().to_ascii_lowercase().as_str() {
        "all" => Ok(true),
        "one" => Ok(false),
        _ => {
            let message = format!(
                "The oneOrAll argument to {function} may take these values: 'one' or 'all'."
            );
            Err(Error::new(ErrorCode::JsonOneOrAll, message))
        }
    }
}

fn contains_path<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [document, word, paths @ ..] = args else { return Ok(SqlValue::Null) };
    if any_null(args) {
        return Ok(SqlValue::Null);
    }
    let document = json::argument(document, 1, "json_contains_path")?;
    let all = all(word, "json_contains_path")?;
    let paths: Vec<Path> = paths.iter().map(path).collect::<Result<_>>()?;
    let mut found = paths.iter().map(|path| !path.find(&document).is_empty());
    Ok(SqlValue::truth(if all { found.all(|found| found) } else { found.any(|found| found) }))
}

fn overlaps<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [a, b] = args else { return Ok(SqlValue::Null) };
    if any_null(args) {
        return Ok(SqlValue::Null);
    }
    let a = json::argument(a, 1, "json_overlaps")?;
    let b = json::argument(b, 2, "json_overlaps")?;
    let same = |a: &Json, b: &Json| json::compare(a, b).is_eq();
    let truth = match (&a, &b) {
        (Json::Array(a), Json::Array(b)) => a.iter().any(|a| b.iter().any(|b| same(a, b))),
        (Json::Array(values), other) | (other, Json::Array(values)) => {
            values.iter().any(|value| same(value, other))
        }
        (Json::Object(members), other) => members
            .iter()
            .any(|(key, value)| other.get(key).is_some_and(|found| same(value, found))),
        (a, b) => same(a, b),
    };
    Ok(SqlValue::truth(truth))
}

fn member_of<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [value, array] = args else { return Ok(SqlValue::Null) };
    if any_null(args) {
        return Ok(SqlValue::Null);
    }
    let value = json::of_value(value);
    Ok(SqlValue::truth(match json::argument(array, 2, "member of")? {
        Json::Array(values) => values.iter().any(|each| json::compare(each, &value).is_eq()),
        other => json::compare(&other, &value).is_eq(),
    }))
}

/// The document, or the value at a path in it.
fn at_path(args: &[SqlValue<'_>], function: &str) -> Result<Option<Json>> {
    if any_null(args) {
        return Ok(None);
    }
    let Some(document) = args.first() else { return Ok(None) };
    let document = json::argument(document, 1, function)?;
    match args.get(1) {
        None => Ok(Some(document)),
        Some(value) => Ok(single_path(value)?.find(&document).first().copied().cloned()),
    }
}

fn keys<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    Ok(match at_path(args, "json_keys")? {
        Some(Json::Object(members)) => {
            let keys = members.into_iter().map(|(key, _)| Json::Text(key));
            json::to_value(&Json::Array(keys.collect()))
        }
        _ => SqlValue::Null,
    })
}

fn length<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let count = |length: usize| SqlValue::Int(i64::try_from(length).unwrap_or(0));
    if let [document, at] = args
        && !any_null(args)
        && let several = path(at)?
        && several.is_multiple()
    {
        // What such a path finds is an array.
        let document = json::argument(document, 1, "json_length")?;
        let found = several.find(&document).len();
        return Ok(if found == 0 { SqlValue::Null } else { count(found) });
    }
    Ok(SqlValue::or_null(at_path(args, "json_length")?, |found| count(found.len())))
}

fn depth<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let found = at_path(args, "json_depth")?;
    Ok(SqlValue::or_null(found, |found| SqlValue::Int(i64::try_from(found.depth()).unwrap_or(0))))
}

fn type_name<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let found = at_path(args, "json_type")?;
    Ok(SqlValue::or_null(found, |found| SqlValue::text(found.type_name())))
}

fn valid<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    // No number and no date is a document, whatever its value.
    let may_be = |kind: &ExprType| kind.is_null() || kind.is_string() || kind.kind == SqlType::Json;
    Ok(match args.first() {
        Some(SqlValue::Null) if call.type_of(0).is_some_and(|kind| !may_be(kind)) => {
            SqlValue::Int(0)
        }
        None | Some(SqlValue::Null) => SqlValue::Null,
        Some(SqlValue::Json(_)) => SqlValue::Int(1),
        Some(SqlValue::Text(text)) => {
            SqlValue::truth(Json::parse(text).is_ok_and(|document| document.depth() <= MAX_DEPTH))
        }
        Some(_) => SqlValue::Int(0),
    })
}

fn pretty<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some(found) = at_path(args, "json_pretty")? else { return Ok(SqlValue::Null) };
    let text = found.pretty();
    Ok(if text.len() as u64 > call.longest_text() {
        call.too_long("json_pretty")
    } else {
        SqlValue::text(text)
    })
}

/// The length of the text, since documents are stored as text here.
fn storage_size<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let found = at_path(args, "json_storage_size")?;
    Ok(SqlValue::or_null(found, |found| {
        SqlValue::Int(i64::try_from(found.text().len()).unwrap_or(0))
    }))
}

/// JSON_SEARCH: the paths of strings that match a LIKE pattern.
fn search<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [document, word, pattern, rest @ ..] = args else { return Ok(SqlValue::Null) };
    if document.is_null() || word.is_null() || pattern.is_null() {
        return Ok(SqlValue::Null);
    }
    let document = json::argument(document, 1, "json_search")?;
    let all = all(word, "json_search")?;
    let _ = rest;
    let mut found = Vec::new();
    find_strings(&document, &mut "$".to_owned(), &mut |text, path| {
        let fits = super::search::is_like(text, &pattern.string().unwrap_or_default());
        if fits && (all || found.is_empty()) {
            found.push(Json::Text(path.to_owned()));
        }
    });
    Ok(match found.len() {
        0 => SqlValue::Null,
        1 => SqlValue::or_null(found.first(), json::to_value),
        _ => json::to_value(&Json::Array(found)),
    })
}

fn find_strings(value: &Json, path: &mut String, take: &mut impl FnMut(&str, &str)) {
    let length = path.len();
    match value {
        Json::Text(text) => take(text, path),
        Json::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find_strings(value, path, take);
                path.truncate(length);
            }
        }
        Json::Object(members) => {
            for (key, value) in members {
                let plain = key.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
                let plain = plain && !key.starts_with(|first: char| first.is_ascii_digit());
                path.push('.');
                path.push_str(&if plain { key.clone() } else { json::quoted(key) });
                find_strings(value, path, take);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Sets the value at a path: adds a new one if `inserts`, replaces an existing one if `replaces`.
fn set(document: &mut Json, steps: &[PathStep], value: &Json, inserts: bool, replaces: bool) {
    let Some((step, rest)) = steps.split_first() else {
        if replaces {
            *document = value.clone();
        }
        return;
    };
    match (step, document) {
        (PathStep::Key(key), Json::Object(members)) => {
            match members.iter_mut().find(|(other, _)| other == key) {
                Some((_, member)) => set(member, rest, value, inserts, replaces),
                None if rest.is_empty() && inserts => {
                    let more = std::iter::once((key.clone(), value.clone()));
                    let all = std::mem::take(members).into_iter().chain(more);
                    if let Json::Object(new) = Json::object(all) {
                        *members = new;
                    }
                }
                None => {}
            }
        }
        (PathStep::Index(place), Json::Array(values)) => match place.index(values.len()) {
            Some(index) => {
                if let Some(element) = values.get_mut(index) {
                    set(element, rest, value, inserts, replaces);
                }
            }
            None if rest.is_empty() && inserts => match place {
                ArrayCell::First(_) => values.push(value.clone()),
                // Counted from the last, it is before the first.
                ArrayCell::Last(_) => values.insert(0, value.clone()),
            },
            None => {}
        },
        (PathStep::Index(place), scalar) => match place.index(1) {
            Some(_) => set(scalar, rest, value, inserts, replaces),
            None if rest.is_empty() && inserts => {
                let held = std::mem::replace(scalar, Json::Null);
                *scalar = Json::Array(match place {
                    ArrayCell::First(_) => vec![held, value.clone()],
                    ArrayCell::Last(_) => vec![value.clone(), held],
                });
            }
            None => {}
        },
        _ => {}
    }
}

fn change<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    name: &str,
    (inserts, replaces): (bool, bool),
) -> Result<SqlValue<'a>> {
    let Some((document, pairs)) = args.split_first() else { return Ok(SqlValue::Null) };
    if pairs.len() % 2 == 1 {
        let message = messages::wrong_parameter_count(name);
        return Err(Error::new(ErrorCode::WrongParameterCount, message));
    }
    if document.is_null() || pairs.iter().step_by(2).any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let mut document = json::argument(document, 1, name)?;
    for (place, index) in pairs.iter().step_by(2).zip((2..).step_by(2)) {
        let path = single_path(place)?;
        set(&mut document, &path.steps, &inner(call, args, index), inserts, replaces);
    }
    Ok(json::to_value(&document))
}

fn is_array_at(members: &[(String, Json)], key: &str) -> bool {
    members.iter().any(|(other, value)| other == key && matches!(value, Json::Array(_)))
}

fn remove_at(document: &mut Json, steps: &[PathStep]) {
    match (steps, document) {
        ([PathStep::Key(key)], Json::Object(members)) => members.retain(|(other, _)| other != key),
        ([PathStep::Index(place)], Json::Array(values)) => {
            if let Some(index) = place.index(values.len()) {
                values.remove(index);
            }
        }
        // A value that is not an array counts as an array of one element.
        ([PathStep::Key(key), PathStep::Index(place)], Json::Object(members))
            if place.index(1).is_some() && !is_array_at(members, key) =>
        {
            members.retain(|(other, _)| other != key);
        }
        ([PathStep::Key(key), rest @ ..], Json::Object(members)) => {
            if let Some((_, member)) = members.iter_mut().find(|(other, _)| other == key) {
                remove_at(member, rest);
            }
        }
        ([PathStep::Index(place), rest @ ..], Json::Array(values)) => {
            let index = place.index(values.len());
            if let Some(value) = index.and_then(|index| values.get_mut(index)) {
                remove_at(value, rest);
            }
        }
        _ => {}
    }
}

fn remove<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((document, paths)) = args.split_first() else { return Ok(SqlValue::Null) };
    if any_null(args) {
        return Ok(SqlValue::Null);
    }
    let mut document = json::argument(document, 1, "json_remove")?;
    for place in paths {
        let path = single_path(place)?;
        if path.steps.is_empty() {
            let message = "The path expression '$' is not allowed in this context.";
            return Err(Error::new(ErrorCode::JsonVacuousPath, message));
        }
        remove_at(&mut document, &path.steps);
    }
    Ok(json::to_value(&document))
}

fn array_append<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((document, pairs)) = args.split_first() else { return Ok(SqlValue::Null) };
    if document.is_null() || pairs.iter().step_by(2).any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let mut document = json::argument(document, 1, "json_array_append")?;
    // A pair without a value is ignored.
    for index in (2..args.len()).step_by(2) {
        let Some(place) = args.get(index - 1) else { continue };
        let path = single_path(place)?;
        let Some(old) = path.find(&document).first().copied().cloned() else { continue };
        let mut values = match old {
            Json::Array(values) => values,
            scalar => vec![scalar],
        };
        values.push(inner(call, args, index));
        set(&mut document, &path.steps, &Json::Array(values), false, true);
    }
    Ok(json::to_value(&document))
}

fn array_insert<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let Some((document, pairs)) = args.split_first() else { return Ok(SqlValue::Null) };
    if pairs.len() % 2 == 1 {
        let message = messages::wrong_parameter_count("json_array_insert");
        return Err(Error::new(ErrorCode::WrongParameterCount, message));
    }
    if document.is_null() || pairs.iter().step_by(2).any(SqlValue::is_null) {
        return Ok(SqlValue::Null);
    }
    let mut document = json::argument(document, 1, "json_array_insert")?;
    for (place, index) in pairs.iter().step_by(2).zip((2..).step_by(2)) {
        let path = single_path(place)?;
        let Some((PathStep::Index(cell), way)) = path.steps.split_last() else {
            let message = "A path expression is not a path to a cell in an array.";
            return Err(Error::new(ErrorCode::JsonPathNoCell, message));
        };
        insert_at(&mut document, way, *cell, inner(call, args, index));
    }
    Ok(json::to_value(&document))
}

/// Inserts an element before a cell, or at the end if the array is shorter. Does nothing if the
/// path does not lead to an array.
fn insert_at(document: &mut Json, way: &[PathStep], cell: ArrayCell, value: Json) {
    match (way, document) {
        ([], Json::Array(values)) => {
            let behind = match cell {
                ArrayCell::First(_) => values.len(),
                ArrayCell::Last(_) => 0,
            };
            values.insert(cell.index(values.len()).unwrap_or(behind), value);
        }
        ([PathStep::Key(key), rest @ ..], Json::Object(members)) => {
            if let Some((_, member)) = members.iter_mut().find(|(other, _)| other == key) {
                insert_at(member, rest, cell, value);
            }
        }
        ([PathStep::Index(place), rest @ ..], Json::Array(values)) => {
            let index = place.index(values.len());
            if let Some(element) = index.and_then(|index| values.get_mut(index)) {
                insert_at(element, rest, cell, value);
            }
        }
        // A value that is not an array counts as an array of one element.
        ([PathStep::Index(place), rest @ ..], scalar) if place.index(1).is_some() => {
            insert_at(scalar, rest, cell, value);
        }
        _ => {}
    }
}

fn patched(target: Json, patch: Json) -> Json {
    let changes = match patch {
        Json::Object(changes) => changes,
        patch => return patch,
    };
    let members = match target {
        Json::Object(members) => members,
        _ => Vec::new(),
    };
    let made = json::joined(members, changes).filter_map(|(key, old, change)| match change {
        None => Some((key, old?)),
        Some(Json::Null) => None,
        Some(change) => Some((key, patched(old.unwrap_or(Json::Null), change))),
    });
    Json::Object(made.collect())
}

fn merge_patch<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let mut merged: Option<Json> = None;
    for (index, value) in args.iter().enumerate() {
        if value.is_null() {
            merged = None;
            continue;
        }
        let next = json::argument(value, index + 1, "json_merge_patch")?;
        merged = match (merged, index) {
            (None, 0) => Some(next),
            (None, _) if !matches!(next, Json::Object(_)) => Some(next),
            (None, _) => None,
            (Some(target), _) => Some(patched(target, next)),
        };
    }
    Ok(SqlValue::or_null(merged, |merged| json::to_value(&merged)))
}

fn preserved(a: Json, b: Json) -> Json {
    match (a, b) {
        (Json::Object(members), Json::Object(more)) => {
            let made = json::joined(members, more).filter_map(|(key, a, b)| match (a, b) {
                (Some(a), Some(b)) => Some((key, preserved(a, b))),
                (a, b) => Some((key, a.or(b)?)),
            });
            Json::Object(made.collect())
        }
        (a, b) => {
            let values = |value: Json| match value {
                Json::Array(values) => values,
                other => vec![other],
            };
            Json::Array(values(a).into_iter().chain(values(b)).collect())
        }
    }
}

fn merge_preserve<'a>(_call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    if any_null(args) {
        return Ok(SqlValue::Null);
    }
    let mut merged: Option<Json> = None;
    for (index, value) in args.iter().enumerate() {
        let next = json::argument(value, index + 1, "json_merge_preserve")?;
        merged = Some(match merged {
            None => next,
            Some(before) => preserved(before, next),
        });
    }
    Ok(SqlValue::or_null(merged, |merged| json::to_value(&merged)))
}
