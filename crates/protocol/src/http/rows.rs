//! Replies with rows and counts.

use remora_engine::{CountReply, FacetReply, Hit, SearchReply, Value};

use super::value::{write_filter_value, write_text, write_value};
use crate::line::{Search, reply::value::key_text};

/// The form of the columns beside a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// `"filters"`: the indexed columns, with dates and times as seconds, as in MygramDB.
    Filters,
    /// `"fields"`: the requested columns in their natural form.
    Fields,
}

/// The reply to a search.
pub fn write_search(out: &mut Vec<u8>, reply: &SearchReply, search: &Search, columns: Columns) {
    text(out, "{\"count\":");
    number(out, reply.total);
    text(out, ",\"limit\":");
    number(out, search.request.limit as u64);
    text(out, ",\"offset\":");
    number(out, search.request.offset as u64);
    text(out, ",\"results\":[");
    let scored = columns == Columns::Fields && search.returns_score();
    for (at, hit) in reply.hits.iter().enumerate() {
        text(out, if at > 0 { "," } else { "" });
        write_hit(out, hit, &reply.field_names, columns, scored);
    }
    text(out, "]");
    if search.cursor {
        text(out, ",\"cursor\":");
        match &reply.cursor {
            None => text(out, "null"),
            Some(cursor) => write_text(out, cursor),
        }
    }
    text(out, "}");
}

fn write_hit(out: &mut Vec<u8>, hit: &Hit, names: &[String], columns: Columns, scored: bool) {
    write_key(out, &hit.key);
    write_columns(out, names.iter().map(String::as_str).zip(&hit.fields), columns);
    if scored && let Some(score) = hit.score {
        text(out, ",\"score\":");
        write_value(out, &Value::Float(score));
    }
    if let Some(snippet) = &hit.snippet {
        text(out, ",\"highlight\":");
        write_text(out, snippet);
    }
    text(out, "}");
}

fn write_key(out: &mut Vec<u8>, key: &[Value]) {
    text(out, "{\"primary_key\":");
    write_text(out, &key_text(key));
}

/// Writes the columns, unless there are none.
fn write_columns<'a>(
    out: &mut Vec<u8>,
    values: impl Iterator<Item = (&'a str, &'a Value)>,
    columns: Columns,
) {
    let mut any = false;
    for (name, value) in values {
        text(
            out,
            match (any, columns) {
                (true, _) => ",",
                (false, Columns::Filters) => ",\"filters\":{",
                (false, Columns::Fields) => ",\"fields\":{",
            },
        );
        any = true;
        write_text(out, name);
        out.push(b':');
        match columns {
            Columns::Filters => write_filter_value(out, value),
            Columns::Fields => write_value(out, value),
        }
    }
    text(out, if any { "}" } else { "" });
}

/// `{"count": …}`
pub fn write_count(out: &mut Vec<u8>, reply: &CountReply) {
    text(out, "{\"count\":");
    number(out, reply.count);
    text(out, "}");
}

/// A row that was requested by its key.
pub fn write_document<'a>(
    out: &mut Vec<u8>,
    key: &[Value],
    values: impl Iterator<Item = (&'a str, &'a Value)>,
    columns: Columns,
) {
    write_key(out, key);
    write_columns(out, values, columns);
    text(out, "}");
}

/// The values of a column, with their counts.
pub fn write_facet(out: &mut Vec<u8>, reply: &FacetReply, column: &str) {
    text(out, "{\"column\":");
    write_text(out, column);
    text(out, ",\"count\":");
    number(out, reply.values.len() as u64);
    text(out, ",\"total_count\":");
    number(out, reply.distinct);
    text(out, ",\"facets\":[");
    for (at, (value, count)) in reply.values.iter().enumerate() {
        text(out, if at > 0 { ",{\"value\":" } else { "{\"value\":" });
        write_filter_value(out, value);
        text(out, ",\"count\":");
        number(out, *count);
        text(out, "}");
    }
    text(out, "]}");
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use remora_engine::{SearchRequest, SortBy, SortKey};

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> serde_json::Value {
        let mut out = Vec::new();
        write(&mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_search_is_an_object() {
        let hit = Hit {
            key: [Value::Int(7), Value::Text("a,b".into())].into_iter().collect(),
            fields: vec![Value::Text("x".into()), Value::Timestamp(2_000_000)],
            snippet: Some("<em>x</em>".to_owned()),
            score: Some(1.5),
        };
        let reply = SearchReply {
            total: 9,
            hits: vec![hit],
            field_names: vec!["kind".into(), "at".into()],
            cursor: Some("c".into()),
            ..SearchReply::default()
        };
        let request = SearchRequest {
            limit: 1,
            sort: vec![SortKey { by: SortBy::Score, descending: true }],
            ..SearchRequest::default()
        };
        let mut search = Search { request, ..Search::default() };
        let filters = written(|out| write_search(out, &reply, &search, Columns::Filters));
        let expected = serde_json::json!({"count": 9, "limit": 1, "offset": 0, "results": [{
            "primary_key": "7,a\\,b", "filters": {"kind": "x", "at": 2},
            "highlight": "<em>x</em>"}]});
        assert_eq!(filters, expected);
        search.cursor = true;
        let fields = written(|out| write_search(out, &reply, &search, Columns::Fields));
        let expected = serde_json::json!({"count": 9, "limit": 1, "offset": 0, "results": [{
            "primary_key": "7,a\\,b",
            "fields": {"kind": "x", "at": "1970-01-01 00:00:02"},
            "score": 1.5, "highlight": "<em>x</em>"}], "cursor": "c"});
        assert_eq!(fields, expected);
    }

    #[test]
    fn counts_rows_and_facets() {
        assert_eq!(
            written(|out| write_count(out, &CountReply { count: 3, ..CountReply::default() })),
            serde_json::json!({"count": 3})
        );
        let key = [Value::Text("a b".into())];
        assert_eq!(
            written(|out| write_document(out, &key, [].into_iter(), Columns::Filters)),
            serde_json::json!({"primary_key": "a b"})
        );
        let values = vec![(Value::Null, 7), (Value::Text("x".into()), 2)];
        let reply = FacetReply { values, distinct: 5, ..FacetReply::default() };
        let expected = serde_json::json!({"column": "kind", "count": 2, "total_count": 5,
            "facets": [{"value": null, "count": 7}, {"value": "x", "count": 2}]});
        assert_eq!(written(|out| write_facet(out, &reply, "kind")), expected);
    }
}
