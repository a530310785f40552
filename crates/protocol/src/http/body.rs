//! Bodies of requests: converts JSON objects to requests of the engine.

use std::collections::BTreeMap;

use remora_engine::{FacetRequest, Highlight, Selection, SortBy, SortKey, TextQuery};
use serde_json::{Map, Value, value::RawValue};

use super::{conditions, rows::Columns, strict::duplicate};
use crate::line::{
    LineError, ParseLimits, Search, code,
    parse::{
        clause::{
            Clauses, MAX_FIELDS, MAX_FRAGMENTS, MAX_OFFSET, MAX_SNIPPET_CHARS, MAX_TAG_BYTES,
            default_highlight,
        },
        filter, text,
    },
};

/// The most sort columns, as in the line protocol.
const MAX_SORT_KEYS: usize = 16;

/// The fields of MygramDB's bodies.
const SEARCH_FIELDS: [&str; 8] =
    ["q", "mode", "filters", "limit", "offset", "sort", "highlight", "fuzzy"];
/// The additional fields of Remora.
const OWN_FIELDS: [&str; 4] = ["filter", "fields", "cursor", "after"];

/// Parses the body of a search. Without `fields` it requests the filter columns of the table, which
/// the caller knows.
///
/// # Errors
/// A [`LineError`] with the code of the line protocol: a field is missing, unknown, malformed or
/// exceeds its limit, or the body is not a JSON object.
pub fn parse_search(
    body: &[u8],
    table: &str,
    limits: &ParseLimits,
) -> Result<(Search, Columns), LineError> {
    let body = Body::read(body, limits)?;
    body.refuse_unknown(&[SEARCH_FIELDS.as_slice(), &OWN_FIELDS])?;
    let mut clauses = Clauses::new("SEARCH", limits);
    body.selection(&mut clauses, Text::Asked)?;
    let (limit, offset) = body.page()?;
    let sort = body.sort()?;
    clauses.query_bytes += sort.iter().map(sort_bytes).sum::<usize>();
    let highlight = body.highlight(&mut clauses)?;
    clauses.fuzzy = body.fuzzy()?;
    let after = body.own("after").map(|after| string(after, "after")).transpose()?;
    let cursor = body.own("cursor").map(|cursor| boolean(cursor, "cursor")).transpose()?;
    let fields = body.own("fields").map(fields).transpose()?.unwrap_or_default();
    let (limit_given, offset_given) = (body.has("limit"), body.has("offset"));
    let cursor = cursor == Some(true) || after.is_some();
    let selection = finish(clauses, table)?;
    let request =
        remora_engine::SearchRequest { selection, sort, limit, offset, after, fields, highlight };
    let columns = if body.own("fields").is_some() { Columns::Fields } else { Columns::Filters };
    Ok((Search { request, limit_given, offset_given, cursor }, columns))
}

/// Parses the body of a count.
///
/// # Errors
/// The same as those of [`parse_search`].
pub fn parse_count(body: &[u8], table: &str, limits: &ParseLimits) -> Result<Selection, LineError> {
    let body = Body::read(body, limits)?;
    body.refuse(&["limit", "offset", "sort", "highlight", "fuzzy"], "count")?;
    body.refuse_unknown(&[SEARCH_FIELDS.as_slice(), &["filter"]])?;
    let mut clauses = Clauses::new("COUNT", limits);
    body.selection(&mut clauses, Text::Asked)?;
    finish(clauses, table)
}

/// Parses the body of a facet.
///
/// # Errors
/// The same as those of [`parse_search`]. Also if `column` is missing or is not a valid name of a
/// column.
pub fn parse_facet(
    body: &[u8],
    table: &str,
    limits: &ParseLimits,
) -> Result<FacetRequest, LineError> {
    let body = Body::read(body, limits)?;
    body.refuse(&["sort", "highlight", "fuzzy"], "facet")?;
    body.refuse_unknown(&[SEARCH_FIELDS.as_slice(), &["filter", "column"]])?;
    let column =
        body.get("column").ok_or_else(|| syntax("Missing required field: column".to_owned()))?;
    let column = string(column, "column")?;
    filter::check_column(&column, limits)
        .map_err(|_| LineError::new(code::TOKEN, "Invalid facet column"))?;
    let mut clauses = Clauses::new("FACET", limits);
    body.selection(&mut clauses, Text::Optional)?;
    let (limit, offset) = body.page()?;
    let selection = finish(clauses, table)?;
    Ok(FacetRequest { selection, column, limit, offset, values_only: false })
}

/// Parses the body of a request to optimize: one table, or all.
///
/// # Errors
/// A [`LineError`] if the body is not a JSON object, has a field other than `table`, or `table` is
/// not a text.
pub fn parse_optimize(body: &[u8]) -> Result<Option<String>, LineError> {
    let limits = ParseLimits::default();
    let body = Body::read(body, &limits)?;
    if let Some(field) = body.fields.keys().find(|field| *field != "table") {
        return Err(syntax(format!("Unsupported field: {field}")));
    }
    body.get("table").map(|table| string(table, "table")).transpose()
}

/// The selected rows. A limit is named as `remora.toml` names it, unless a file of MygramDB sets it.
fn finish(clauses: Clauses<'_>, table: &str) -> Result<Selection, LineError> {
    let is_strict = clauses.limits.strict;
    clauses.finish(table.to_owned()).map_err(|error| match error.code == code::TOO_LONG {
        true if !is_strict => {
            let message = error.message.replace("api.max_query_length", "limits.max_query_length");
            LineError::new(error.code, message)
        }
        _ => error,
    })
}

/// Whether a body must have a text.
#[derive(PartialEq, Eq)]
enum Text {
    Asked,
    Optional,
}

/// The unparsed value of a field.
fn written(body: &[u8], name: &str) -> Result<Box<RawValue>, LineError> {
    let fields: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_slice(body);
    let field = fields.ok().and_then(|mut fields| fields.remove(name));
    field.ok_or_else(|| syntax(format!("Invalid JSON: field '{name}'")))
}

struct Body<'l> {
    fields: Map<String, Value>,
    /// The unparsed conditions.
    filters: Option<Box<RawValue>>,
    limits: &'l ParseLimits,
}

impl<'l> Body<'l> {
    fn read(body: &[u8], limits: &'l ParseLimits) -> Result<Self, LineError> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => {
                // MygramDB takes the last value.
                if let Some(message) = duplicate(body).filter(|_| !limits.strict) {
                    return Err(syntax(format!("Invalid JSON: {message}")));
                }
                let filters = match fields.contains_key("filters") {
                    true => Some(written(body, "filters")?),
                    false => None,
                };
                Ok(Self { fields, filters, limits })
            }
            Ok(_) => Err(syntax("Request body must be a JSON object".to_owned())),
            Err(error) => Err(syntax(format!("Invalid JSON: {error}"))),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// A field that only Remora has.
    fn own(&self, name: &str) -> Option<&Value> {
        self.get(name).filter(|_| !self.limits.strict)
    }

    fn refuse(&self, names: &[&str], route: &str) -> Result<(), LineError> {
        match names.iter().find(|name| self.has(name)) {
            None => Ok(()),
            Some(name) => Err(syntax(format!("Field '{name}' is not supported for {route}"))),
        }
    }

    /// Refuses unknown fields, which MygramDB ignores.
    fn refuse_unknown(&self, known: &[&[&str]]) -> Result<(), LineError> {
        let is_known = |field: &str| known.iter().any(|names| names.contains(&field));
        match self.fields.keys().find(|field| !is_known(field.as_str())) {
            Some(field) if !self.limits.strict => {
                let known = known.concat().join(", ");
                Err(syntax(format!("Unknown field '{field}': known here are {known}")))
            }
            _ => Ok(()),
        }
    }

    fn selection(&self, clauses: &mut Clauses, text: Text) -> Result<(), LineError> {
        if let Some(query) = self.text(text)? {
            clauses.query_bytes += self.get("q").and_then(Value::as_str).map_or(0, str::len);
            clauses.text.push(query);
        }
        if let Some(filters) = &self.filters {
            conditions::read(filters, clauses)?;
        }
        if let Some(expression) = self.own("filter") {
            let expression = string(expression, "filter")?;
            clauses.filter(filter::read_expression(&expression, self.limits)?);
        }
        Ok(())
    }

    fn text(&self, needed: Text) -> Result<Option<TextQuery>, LineError> {
        let boolean = match self.get("mode").map(|mode| string(mode, "mode")).transpose()? {
            None => false,
            Some(mode) if mode == "literal" => false,
            Some(mode) if mode == "boolean" => true,
            Some(_) => {
                return Err(syntax("Field 'mode' must be 'literal' or 'boolean'".to_owned()));
            }
        };
        let Some(query) = self.get("q") else {
            return match needed {
                Text::Asked if self.limits.strict => {
                    Err(syntax("Missing required field: q".to_owned()))
                }
                _ => Ok(None),
            };
        };
        let query = string(query, "q")?;
        if query.contains(['\r', '\n', '\0']) {
            let message = "Search text must not hold line breaks or NUL";
            return Err(LineError::new(code::TOKEN, message));
        }
        match query.trim().is_empty() {
            true if needed == Text::Optional => Ok(None),
            true => Err(syntax("Search text must not be empty".to_owned())),
            false if boolean => text::read_expression(&query, self.limits).map(Some),
            false => Ok(Some(TextQuery::Term(query))),
        }
    }

    fn page(&self) -> Result<(usize, usize), LineError> {
        let most = self.limits.max_limit;
        let limit = match self.get("limit") {
            None => self.limits.default_limit,
            Some(limit) => {
                whole(limit).filter(|limit| (1..=most).contains(limit)).ok_or_else(|| {
                    let message = format!("Invalid limit: must be between 1 and {most}");
                    LineError::new(code::LIMIT, message)
                })?
            }
        };
        let offset = match self.get("offset") {
            None => 0,
            Some(offset) => {
                whole(offset).filter(|offset| *offset <= MAX_OFFSET).ok_or_else(|| {
                    let message = format!("Invalid offset: must be between 0 and {MAX_OFFSET}");
                    LineError::new(code::OFFSET, message)
                })?
            }
        };
        Ok((limit, offset))
    }

    fn sort(&self) -> Result<Vec<SortKey>, LineError> {
        match self.get("sort") {
            None => Ok(Vec::new()),
            Some(Value::Object(key)) => Ok(vec![sort_key(key, self.limits)?]),
            Some(Value::Array(keys)) if !self.limits.strict => {
                if keys.len() > MAX_SORT_KEYS {
                    return Err(sort_error(format!("Too many sort columns (max {MAX_SORT_KEYS})")));
                }
                let objects = keys.iter().map(|key| key.as_object().ok_or_else(not_a_sort));
                objects.map(|key| sort_key(key?, self.limits)).collect()
            }
            Some(_) => Err(not_a_sort()),
        }
    }

    fn highlight(&self, clauses: &mut Clauses) -> Result<Option<Highlight>, LineError> {
        let Some(given) = self.get("highlight") else { return Ok(None) };
        let given = given
            .as_object()
            .ok_or_else(|| syntax("Field 'highlight' must be an object".to_owned()))?;
        let mut highlight = default_highlight();
        for (name, tag) in [("open_tag", &mut highlight.open), ("close_tag", &mut highlight.close)]
        {
            let name = format!("highlight.{name}");
            let Some(given) = given.get(name.trim_start_matches("highlight.")) else { continue };
            *tag = string(given, &name)?;
            if tag.len() > MAX_TAG_BYTES {
                let message = format!("Field '{name}' exceeds maximum length ({MAX_TAG_BYTES})");
                return Err(syntax(message));
            }
            clauses.query_bytes += tag.len();
        }
        let within = |name: &str, most: usize, setting: &mut usize| -> Result<(), LineError> {
            let Some(given) = given.get(name) else { return Ok(()) };
            *setting = whole(given).filter(|n| (1..=most).contains(n)).ok_or_else(|| {
                syntax(format!("Field 'highlight.{name}' must be between 1 and {most}"))
            })?;
            Ok(())
        };
        within("snippet_length", MAX_SNIPPET_CHARS, &mut highlight.snippet_chars)?;
        within("max_fragments", MAX_FRAGMENTS, &mut highlight.max_fragments)?;
        Ok(Some(highlight))
    }

    fn fuzzy(&self) -> Result<Option<u8>, LineError> {
        match self.get("fuzzy").map(Value::as_u64) {
            None => Ok(None),
            Some(Some(1)) => Ok(Some(1)),
            Some(Some(2)) => Ok(Some(2)),
            Some(_) => Err(syntax("Field 'fuzzy' must be 1 or 2".to_owned())),
        }
    }
}

fn sort_key(key: &Map<String, Value>, limits: &ParseLimits) -> Result<SortKey, LineError> {
    let by = match key.get("column") {
        None => SortBy::Key,
        Some(Value::String(column)) if column == "_score" => SortBy::Score,
        Some(Value::String(column)) => {
            filter::check_column(column, limits)
                .map_err(|error| sort_error(format!("Invalid sort column: {}", error.message)))?;
            SortBy::Column(column.clone())
        }
        Some(_) => return Err(sort_error("Field 'sort.column' must be a string".to_owned())),
    };
    let order = key.get("order").map_or(Some("DESC"), Value::as_str);
    let descending = match order {
        Some(order) if order.eq_ignore_ascii_case("DESC") => true,
        Some(order) if order.eq_ignore_ascii_case("ASC") => false,
        _ => return Err(sort_error("Field 'sort.order' must be 'ASC' or 'DESC'".to_owned())),
    };
    Ok(SortKey { by, descending })
}

fn sort_bytes(key: &SortKey) -> usize {
    match &key.by {
        SortBy::Column(name) | SortBy::TextKey(name, _) => name.len(),
        SortBy::Key | SortBy::Score => 0,
    }
}

/// Names in an array, or in one text separated by commas, as in the line protocol.
fn fields(given: &Value) -> Result<Vec<String>, LineError> {
    let wrong = || syntax("Field 'fields' must be an array of column names, or '*'".to_owned());
    let names: Vec<String> = match given {
        Value::String(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        Value::Array(names) => names
            .iter()
            .map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_, _>>()?,
        _ => return Err(wrong()),
    };
    if names.len() > MAX_FIELDS {
        return Err(syntax(format!("Too many fields (max {MAX_FIELDS})")));
    }
    if names.iter().any(String::is_empty) { Err(wrong()) } else { Ok(names) }
}

fn whole(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|number| usize::try_from(number).ok())
}

fn string(value: &Value, name: &str) -> Result<String, LineError> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| syntax(format!("Field '{name}' must be a string")))
}

fn boolean(value: &Value, name: &str) -> Result<bool, LineError> {
    value.as_bool().ok_or_else(|| syntax(format!("Field '{name}' must be true or false")))
}

fn syntax(message: String) -> LineError {
    LineError::syntax(message)
}

fn sort_error(message: String) -> LineError {
    LineError::new(code::SORT, message)
}

fn not_a_sort() -> LineError {
    sort_error("Field 'sort' must be an object with 'column' and 'order'".to_owned())
}

#[cfg(test)]
mod tests {
    use remora_engine::{Comparison, Filter, Literal};

    use super::*;
    use crate::line::{Command, parse};

    fn own() -> ParseLimits {
        ParseLimits::default()
    }

    fn refused(body: &str, limits: &ParseLimits) -> u16 {
        parse_search(body.as_bytes(), "t", limits).unwrap_err().code
    }

    /// A body gives the same request as the equivalent line.
    #[test]
    fn bodies_are_lines() {
        for (body, line) in [
            (r#"{"q":"quantum physics"}"#, "SEARCH t quantum physics"),
            (r#"{"q":"a AND b"}"#, "SEARCH t \"a AND b\""),
            (r#"{"q":"(a OR b) NOT \"c d\"","mode":"boolean"}"#, "SEARCH t (a OR b) NOT \"c d\""),
            (
                r#"{"q":"x","filters":{"a":1,"b":{"op":">=","value":"2"}},"limit":5,"offset":7}"#,
                "SEARCH t x FILTER a = 1 FILTER b >= 2 LIMIT 5 OFFSET 7",
            ),
            (
                r#"{"q":"x","sort":{"column":"y","order":"asc"},"fuzzy":2}"#,
                "SEARCH t x SORT y ASC FUZZY 2",
            ),
            (r#"{"q":"x","sort":{"column":"_score"}}"#, "SEARCH t x SORT _score"),
            (r#"{"q":"x","sort":{"order":"ASC"}}"#, "SEARCH t x SORT ASC"),
            (
                r#"{"q":"x","highlight":{"open_tag":"<b>","close_tag":"</b>","max_fragments":2}}"#,
                "SEARCH t x HIGHLIGHT TAG <b> </b> MAX_FRAGMENTS 2",
            ),
            (
                r#"{"filter":"a = 1 OR b IN (2,'x y')","fields":["a","b"],"cursor":true}"#,
                "SEARCH t FILTER (a = 1 OR b IN (2,'x y')) FIELDS a,b CURSOR",
            ),
            (
                r#"{"q":"x","sort":[{"column":"a"},{"column":"b","order":"ASC"}],"after":"c"}"#,
                "SEARCH t x SORT a DESC, b ASC AFTER c",
            ),
            (r#"{"filters":{"a":[1,2],"b":null}}"#, "SEARCH t FILTER a IN (1,2) FILTER b IS NULL"),
        ] {
            let Ok(Command::Search(line)) = parse(line.as_bytes(), &own()) else {
                panic!("{line}");
            };
            let (body, _) = parse_search(body.as_bytes(), "t", &own()).unwrap();
            assert_eq!(format!("{body:?}"), format!("{line:?}"));
        }
    }

    #[test]
    fn invalid_bodies_have_error_codes() {
        for (body, code) in [
            ("{", 3000),
            ("[]", 3000),
            (r#"{"q":1}"#, 3000),
            (r#"{"q":""}"#, 3000),
            (r#"{"q":"a\nb"}"#, 3001),
            (r#"{"q":"a","mode":"x"}"#, 3000),
            (r#"{"q":"a","limit":0}"#, 3008),
            (r#"{"q":"a","limit":"5"}"#, 3008),
            (r#"{"q":"a","limit":10001}"#, 3008),
            (r#"{"q":"a","offset":-1}"#, 3009),
            (r#"{"q":"a","filters":[]}"#, 3006),
            (r#"{"q":"a","filters":{"x y":1}}"#, 3006),
            (r#"{"q":"a","filters":{"x":{"op":"LIKE","value":1}}}"#, 3006),
            (r#"{"q":"a","filters":{"x":{"op":"="}}}"#, 3006),
            (r#"{"q":"a","filter":"x ="}"#, 3006),
            (r#"{"q":"a","filter":"x = 1 y = 2"}"#, 3006),
            (r#"{"q":"a","sort":"x"}"#, 3007),
            (r#"{"q":"a","sort":{"order":"up"}}"#, 3007),
            (r#"{"q":"a","highlight":{"snippet_length":0}}"#, 3000),
            (r#"{"q":"a","fuzzy":3}"#, 3000),
            (r#"{"q":"a","fields":[1]}"#, 3000),
            (r#"{"q":"a","fields":""}"#, 3000),
            (r#"{"q":"a","limits":1}"#, 3000),
            (r#"{"q":"(a","mode":"boolean"}"#, 3000),
            (r#"{"q":"a OR","mode":"boolean"}"#, 3010),
        ] {
            assert_eq!(refused(body, &own()), code, "{body}");
        }
    }

    #[test]
    fn limits_are_named_as_the_settings_name_them() {
        let long = format!(r#"{{"q":"{}"}}"#, "x".repeat(70_000));
        for (mut limits, name) in
            [(own(), "raise limits.max_query_length."), (ParseLimits::mygramdb(), "raise api.max")]
        {
            limits.max_query_bytes = 128;
            let error = parse_search(long.as_bytes(), "t", &limits).unwrap_err();
            assert!(error.code == code::TOO_LONG && error.message.contains(name), "{error:?}");
        }
    }

    #[test]
    fn a_field_that_comes_twice_is_refused() {
        let error = parse_search(br#"{"q":"a","q":"b"}"#, "t", &own()).unwrap_err();
        let expected = "Invalid JSON: the name \"q\" comes twice in an object: keep one";
        assert!(error.code == code::SYNTAX && error.message.ends_with(expected), "{error:?}");
        let twice = br#"{"q":"a","filters":{"b":1,"b":2}}"#;
        let error = parse_count(twice, "t", &own()).unwrap_err();
        assert!(error.message.ends_with("keep one, in filters"), "{error:?}");
        // MygramDB takes the last one.
        parse_search(br#"{"q":"a","q":"b"}"#, "t", &ParseLimits::mygramdb()).unwrap();
    }

    #[test]
    fn mygramdb_dialect_has_its_limits_and_ignores_unknown_fields() {
        let strict = ParseLimits::mygramdb();
        assert_eq!(refused("{}", &strict), 3000);
        assert_eq!(refused(r#"{"q":"a","limit":1001}"#, &strict), 3008);
        assert_eq!(refused(r#"{"q":"a","filters":{"b":null}}"#, &strict), 3006);
        let long = format!(r#"{{"q":"{}"}}"#, "x".repeat(129));
        assert_eq!(refused(&long, &strict), 3005);
        let body = br#"{"q":"a","filter":"b = 1","fields":["b"],"unknown":1,"cursor":true}"#;
        let (search, columns) = parse_search(body, "t", &strict).unwrap();
        assert_eq!(columns, Columns::Filters);
        assert!(search.request.fields.is_empty() && !search.cursor);
        assert_eq!(search.request.selection.filter, None);
    }

    #[test]
    fn count_and_facet_refuse_unsupported_clauses() {
        let count = |body: &str| parse_count(body.as_bytes(), "t", &own());
        for field in ["limit", "offset", "sort", "highlight", "fuzzy"] {
            let body = format!(r#"{{"q":"a","{field}":1}}"#);
            assert_eq!(count(&body).unwrap_err().code, code::SYNTAX, "{field}");
        }
        let filters = count(r#"{"q":"a","filters":{"b":true,"c":1.5}}"#).unwrap().filter;
        let compare = |column: &str, literal: &str| Filter::Compare {
            column: column.to_owned(),
            comparison: Comparison::Equal,
            literal: Literal::Text(literal.to_owned()),
        };
        assert_eq!(filters, Some(Filter::And(vec![compare("b", "1"), compare("c", "1.5")])));
        // Numbers keep digits that a double would lose.
        let (price, whole) = ("9007199254740993.25", "18446744073709551617");
        let body =
            format!(r#"{{"q":"a","filters":{{"b":{price},"c":{{"op":"=","value":{whole}}}}}}}"#);
        let filters = count(&body).unwrap().filter;
        assert_eq!(filters, Some(Filter::And(vec![compare("b", price), compare("c", whole)])));
        let facet = |body: &str| parse_facet(body.as_bytes(), "t", &own());
        assert_eq!(facet(r#"{"q":"a"}"#).unwrap_err().code, code::SYNTAX);
        assert_eq!(facet(r#"{"column":"a b"}"#).unwrap_err().code, code::TOKEN);
        assert_eq!(facet(r#"{"column":"a","fuzzy":1}"#).unwrap_err().code, code::SYNTAX);
        assert_eq!(facet(r#"{"column":"a","q":"","limit":3}"#).unwrap().limit, 3);
        assert_eq!(parse_optimize(b"{}"), Ok(None));
        assert_eq!(parse_optimize(br#"{"table":"t"}"#), Ok(Some("t".to_owned())));
        assert!(parse_optimize(br#"{"tables":"t"}"#).is_err());
    }
}
