//! Parses queries.

use serde_json::{Map, Value as Json};

use crate::tiedot::reply::{Refusal, shortened};

/// The most bytes of a query.
const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting of a query. The engine permits a little more.
const MAX_DEPTH: usize = 16;
/// The most parts of a query that are not ids.
const MAX_PARTS: usize = 1_000;
/// The most names of a path: the deepest nesting of a document.
const MAX_NAMES: usize = 100;

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tiedot) enum Query {
    All,
    Id(i64),
    /// A lookup by an indexed path.
    Lookup(Lookup),
    Union(Vec<Query>),
    Intersection(Vec<Query>),
    /// Ids in an odd number of the sets.
    Difference(Vec<Query>),
}

/// A lookup by an indexed path.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tiedot) struct Lookup {
    pub path: Vec<String>,
    pub test: Test,
    /// The most results.
    pub limit: Option<usize>,
    /// Its text.
    text: String,
}

/// The condition on a value.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tiedot) enum Test {
    /// Equal to this text, number, boolean or null.
    Equal(Json),
    /// Any value.
    Has,
    /// In this inclusive range; descending if the first is greater.
    Range(i64, i64),
}

impl Query {
    /// Parses a query.
    ///
    /// # Errors
    /// 400 with the reason, in tiedot's wording where it has one.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if text.len() > MAX_BYTES {
            let text = format!("The query takes more than {MAX_BYTES} bytes, which is the limit.");
            return Err(Refusal::wrong(text));
        }
        let not_json =
            |error| Refusal::wrong(format!("'{}' is not valid JSON. {error}", shortened(text)));
        let query: Json = serde_json::from_str(text).map_err(not_json)?;
        Reader { parts: 0 }.query(query, 0)
    }

    /// Refuses a query on a path without an index.
    pub fn check_indexes(&self, is_indexed: &dyn Fn(&[String]) -> bool) -> Result<(), Refusal> {
        match self {
            Self::All | Self::Id(_) => Ok(()),
            Self::Union(parts) | Self::Intersection(parts) | Self::Difference(parts) => {
                parts.iter().try_for_each(|part| part.check_indexes(is_indexed))
            }
            Self::Lookup(Lookup { path, text, .. }) => match is_indexed(path) {
                true => Ok(()),
                false => {
                    let path = path.join(",");
                    let text = format!("Please index {} and retry query {text}.", shortened(&path));
                    Err(Refusal::wrong(text))
                }
            },
        }
    }
}

struct Reader {
    /// The number of parts that are not ids.
    parts: usize,
}

impl Reader {
    fn query(&mut self, query: Json, depth: usize) -> Result<Query, Refusal> {
        if depth >= MAX_DEPTH {
            let text =
                format!("The query nests deeper than {MAX_DEPTH} levels, which is the limit.");
            return Err(Refusal::wrong(text));
        }
        if let Json::String(text) = &query
            && text != "all"
        {
            let id = text.parse().map(Query::Id);
            return id.map_err(|_| expecting_integer("Single Document ID", &query));
        }
        self.parts += 1;
        if self.parts > MAX_PARTS {
            let text = format!("The query has more than {MAX_PARTS} parts, which is the limit.");
            return Err(Refusal::wrong(text));
        }
        match query {
            Json::String(_) => Ok(Query::All),
            Json::Array(parts) => Ok(Query::Union(self.all(parts, depth)?)),
            Json::Object(keys) => self.operation(keys, depth),
            other => Err(Refusal::wrong(format!(
                "Query {} is none: a query is a text, a list or an object.",
                shortened(&other.to_string())
            ))),
        }
    }

    fn all(&mut self, parts: Vec<Json>, depth: usize) -> Result<Vec<Query>, Refusal> {
        parts.into_iter().map(|part| self.query(part, depth + 1)).collect()
    }

    fn operation(&mut self, mut keys: Map<String, Json>, depth: usize) -> Result<Query, Refusal> {
        for (name, join) in [
            ("n", Query::Intersection as fn(Vec<Query>) -> Query),
            ("c", Query::Difference as fn(Vec<Query>) -> Query),
        ] {
            let Some(parts) = keys.remove(name) else { continue };
            check_rest(&keys)?;
            let Json::Array(parts) = parts else {
                let given = shortened(&parts.to_string());
                let text = format!("Expecting a vector of sub-queries, but {given} given.");
                return Err(Refusal::wrong(text));
            };
            return Ok(join(self.all(parts, depth)?));
        }
        lookup(keys).map(Query::Lookup)
    }
}

fn lookup(mut keys: Map<String, Json>) -> Result<Lookup, Refusal> {
    let text = shortened(&Json::Object(keys.clone()).to_string());
    let limit = match keys.remove("limit") {
        None => None,
        Some(limit) => {
            let number = integer(&limit).and_then(|limit| usize::try_from(limit).ok());
            let number = number.ok_or_else(|| expecting_integer("limit", &limit))?;
            // As in tiedot.
            (number > 0).then_some(number)
        }
    };
    let (path, test) = if let Some(path) = keys.remove("has") {
        (path, Test::Has)
    } else if let Some(value) = keys.remove("eq") {
        if value.is_array() || value.is_object() {
            return Err(Refusal::wrong(
                "`eq` takes a text, a number, true, false or null; an array is asked for by its elements.",
            ));
        }
        (path_of(&mut keys)?, Test::Equal(value))
    } else if let Some((name, from)) = take_either(&mut keys, "int-from", "int from") {
        let (other, to) = take_either(&mut keys, "int-to", "int to")
            .ok_or_else(|| Refusal::wrong("Missing `int-to`"))?;
        let from = integer(&from).ok_or_else(|| expecting_integer(name, &from))?;
        let to = integer(&to).ok_or_else(|| expecting_integer(other, &to))?;
        (path_of(&mut keys)?, Test::Range(from, to))
    } else {
        let text = format!("Query {text} does not contain any operation (lookup/union/etc)");
        return Err(Refusal::wrong(text));
    };
    check_rest(&keys)?;
    Ok(Lookup { path: names(path)?, test, limit, text })
}

fn path_of(keys: &mut Map<String, Json>) -> Result<Json, Refusal> {
    keys.remove("in").ok_or_else(|| Refusal::wrong("Missing lookup path `in`"))
}

fn take_either(
    keys: &mut Map<String, Json>,
    name: &'static str,
    other: &'static str,
) -> Option<(&'static str, Json)> {
    let found = keys.remove(name).map(|value| (name, value));
    found.or_else(|| keys.remove(other).map(|value| (other, value)))
}

/// Refuses unknown keys.
fn check_rest(keys: &Map<String, Json>) -> Result<(), Refusal> {
    match keys.keys().next() {
        None => Ok(()),
        Some(key) => Err(Refusal::wrong(format!("Unknown key '{}' in a query.", shortened(key)))),
    }
}

fn names(path: Json) -> Result<Vec<String>, Refusal> {
    let wrong = |path: &str| {
        Refusal::wrong(format!("Expecting vector lookup path `in`, but {} given", shortened(path)))
    };
    let Json::Array(path) = path else { return Err(wrong(&path.to_string())) };
    if path.is_empty() || path.len() > MAX_NAMES {
        return Err(wrong(&format!("one of {} names", path.len())));
    }
    let name = |name: Json| match name {
        Json::String(name) => Ok(name),
        Json::Number(number) => Ok(number.to_string()),
        other => Err(wrong(&other.to_string())),
    };
    path.into_iter().map(name).collect()
}

/// An integer, also if it is written as a double.
fn integer(number: &Json) -> Option<i64> {
    let integer = |float: f64| {
        // Beyond this, doubles are not exact integers.
        let fits = float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
        fits.then_some(float as i64)
    };
    number.as_i64().or_else(|| number.as_f64().and_then(integer))
}

fn expecting_integer(name: &str, given: &Json) -> Refusal {
    let given = shortened(given.as_str().unwrap_or(&given.to_string()));
    Refusal::wrong(format!("Expecting `{name}` as an integer, but {given} given."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message_of(text: &str) -> String {
        Query::parse(text).unwrap_err().text
    }

    #[test]
    fn every_form_is_read() {
        let text = r#"[{"eq":1,"in":["a","b"],"limit":2.0},"77","all",{"has":["u",3]},
            {"n":[{"int-from":9,"int to":-1,"in":["y"],"limit":0}]},{"c":["all"]}]"#;
        let Query::Union(parts) = Query::parse(text).unwrap() else { panic!() };
        let lookup = |part: &Query| match part {
            Query::Lookup(it) => (it.path.join("/"), it.test.clone(), it.limit),
            other => panic!("{other:?}"),
        };
        assert_eq!(lookup(&parts[0]), ("a/b".to_owned(), Test::Equal(1.into()), Some(2)));
        assert_eq!(&parts[1..3], [Query::Id(77), Query::All]);
        assert_eq!(lookup(&parts[3]), ("u/3".to_owned(), Test::Has, None));
        let Query::Intersection(range) = &parts[4] else { panic!() };
        assert_eq!(lookup(&range[0]), ("y".to_owned(), Test::Range(9, -1), None));
        assert_eq!(parts[5], Query::Difference(vec![Query::All]));
    }

    #[test]
    fn invalid_queries_have_the_messages_of_tiedot() {
        for (text, why) in [
            ("{", "'{' is not valid JSON."),
            ("5", "Query 5 is none"),
            ("null", "Query null is none"),
            ("\"x\"", "Expecting `Single Document ID` as an integer, but x given."),
            ("\"12345678901234567890\"", "Expecting `Single Document ID` as an integer"),
            ("{}", "Query {} does not contain any operation (lookup/union/etc)"),
            (r#"{"re":"a","in":["b"]}"#, "does not contain any operation"),
            (r#"{"eq":1}"#, "Missing lookup path `in`"),
            (r#"{"eq":1,"in":"a"}"#, "Expecting vector lookup path `in`, but \"a\" given"),
            (r#"{"eq":1,"in":[]}"#, "Expecting vector lookup path `in`"),
            (r#"{"eq":1,"in":[null]}"#, "but null given"),
            (r#"{"eq":{"a":1},"in":["a"]}"#, "`eq` takes a text"),
            (r#"{"eq":1,"in":["a"],"limit":"x"}"#, "Expecting `limit` as an integer, but x given."),
            (r#"{"eq":1,"in":["a"],"limit":-1}"#, "Expecting `limit`"),
            (r#"{"eq":1,"in":["a"],"limit":1.5}"#, "Expecting `limit`"),
            (r#"{"eq":1,"in":["a"],"limits":1}"#, "Unknown key 'limits'"),
            (r#"{"eq":1,"has":["b"],"in":["a"]}"#, "Unknown key"),
            (r#"{"int-from":1,"in":["a"]}"#, "Missing `int-to`"),
            (r#"{"int-from":"1","int-to":2,"in":["a"]}"#, "Expecting `int-from` as an integer"),
            (r#"{"int-from":1,"int-to":1e300,"in":["a"]}"#, "Expecting `int-to` as an integer"),
            (r#"{"n":5}"#, "Expecting a vector of sub-queries, but 5 given."),
            (r#"{"n":[],"limit":1}"#, "Unknown key 'limit'"),
        ] {
            assert!(message_of(text).contains(why), "{text}: {}", message_of(text));
        }
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(Query::parse(&nested(16)).is_ok());
        for levels in [17, 100, 127, 200_000] {
            let message = message_of(&nested(levels));
            assert!(
                message.contains("deeper than 16") || message.contains("recursion limit"),
                "{message}"
            );
        }
        let many = |part: &str, count: usize| format!("[{}]", vec![part; count].join(","));
        assert!(Query::parse(&many("\"5\"", 50_000)).is_ok());
        assert!(message_of(&many("\"all\"", 1_000)).contains("more than 1000 parts"));
        assert!(message_of(&many("\"5\"", 500_000)).contains("more than 1048576 bytes"));
        let path = format!(r#"{{"has":{}}}"#, many("\"a\"", 101));
        assert!(message_of(&path).contains("one of 101 names"));
    }

    #[test]
    fn paths_must_be_indexed() {
        let query = r#"{"c":["all",{"n":["5",{"eq":"x","in":["a","b"]}]}]}"#;
        let query = Query::parse(query).unwrap();
        assert!(query.check_indexes(&|path| path == ["a", "b"]).is_ok());
        let message = query.check_indexes(&|path| path == ["a"]).unwrap_err().text;
        assert_eq!(message, r#"Please index a,b and retry query {"eq":"x","in":["a","b"]}."#);
    }
}
