//! Replies with rows and counts.

use remora_engine::{CountReply, FacetReply, Hit, SearchReply, Value};

use super::{
    number, one_line, text,
    value::{escaped, write_escaped_key, write_field, write_filter_value, write_key},
};
use crate::line::Search;

/// The room for a typical key.
const KEY_BYTES: usize = 12;

/// The reply to SEARCH in the requested form:
///
/// ```text
/// keys       "OK RESULTS " total { " " key }
/// highlight  "OK RESULTS " total CRLF { key TAB snippet CRLF }
/// fields     "OK RESULTS " total CRLF header CRLF { row CRLF }
/// header     "_key" { TAB name } [ TAB "_score" ] [ TAB "_snippet" ]
/// cursor     "# CURSOR" [ " " text ] CRLF        ; behind the rows, only if it was asked for
/// ```
pub fn write_search(out: &mut Vec<u8>, reply: &SearchReply, search: &Search) {
    text(out, "OK RESULTS ");
    number(out, reply.total);
    if !search.request.fields.is_empty() {
        write_table(out, reply, search);
    } else if search.request.highlight.is_some() {
        write_snippets(out, &reply.hits);
    } else {
        write_keys(out, &reply.hits);
        if search.cursor {
            text(out, "\r\n");
        }
    }
    if search.cursor {
        write_cursor(out, reply.cursor.as_deref());
    }
}

fn write_keys(out: &mut Vec<u8>, hits: &[Hit]) {
    out.reserve(hits.len() * KEY_BYTES);
    for hit in hits {
        out.push(b' ');
        write_key(out, &hit.key);
    }
}

fn write_snippets(out: &mut Vec<u8>, hits: &[Hit]) {
    text(out, "\r\n");
    for hit in hits {
        write_key(out, &hit.key);
        out.push(b'\t');
        one_line(out, hit.snippet.as_deref().unwrap_or_default());
        text(out, "\r\n");
    }
}

fn write_table(out: &mut Vec<u8>, reply: &SearchReply, search: &Search) {
    let scored = search.returns_score();
    let highlighted = search.request.highlight.is_some();
    write_header(out, reply.field_names.iter().map(String::as_str));
    for (name, shown) in [("\t_score", scored), ("\t_snippet", highlighted)] {
        text(out, if shown { name } else { "" });
    }
    text(out, "\r\n");
    for hit in &reply.hits {
        write_escaped_key(out, &hit.key);
        write_fields(out, &hit.fields);
        if scored {
            out.push(b'\t');
            write_field(out, &hit.score.map_or(Value::Null, Value::Float));
        }
        if highlighted {
            out.push(b'\t');
            escaped(out, hit.snippet.as_deref().unwrap_or_default());
        }
        text(out, "\r\n");
    }
}

fn write_header<'a>(out: &mut Vec<u8>, names: impl Iterator<Item = &'a str>) {
    text(out, "\r\n_key");
    for name in names {
        out.push(b'\t');
        escaped(out, name);
    }
}

fn write_fields(out: &mut Vec<u8>, values: &[Value]) {
    for value in values {
        out.push(b'\t');
        write_field(out, value);
    }
}

fn write_cursor(out: &mut Vec<u8>, cursor: Option<&str>) {
    text(out, "# CURSOR");
    if let Some(cursor) = cursor {
        out.push(b' ');
        one_line(out, cursor);
    }
    text(out, "\r\n");
}

/// `OK COUNT <n>`
pub fn write_count(out: &mut Vec<u8>, reply: &CountReply) {
    text(out, "OK COUNT ");
    number(out, reply.count);
}

/// The reply to GET: `OK DOC <key> name=value …`
pub fn write_document<'a>(
    out: &mut Vec<u8>,
    key: &[Value],
    columns: impl IntoIterator<Item = (&'a str, &'a Value)>,
) {
    text(out, "OK DOC ");
    write_key(out, key);
    for (name, value) in columns {
        out.push(b' ');
        text(out, name);
        out.push(b'=');
        write_filter_value(out, value);
    }
}

/// The reply to GET with FIELDS: one row in the form of SEARCH with FIELDS.
pub fn write_row<'a>(
    out: &mut Vec<u8>,
    key: &[Value],
    columns: impl IntoIterator<Item = (&'a str, &'a Value), IntoIter: Clone>,
) {
    let columns = columns.into_iter();
    text(out, "OK RESULTS 1");
    write_header(out, columns.clone().map(|(name, _)| name));
    text(out, "\r\n");
    write_escaped_key(out, &key.iter().cloned().collect());
    for (_, value) in columns {
        out.push(b'\t');
        write_field(out, value);
    }
    text(out, "\r\n");
}

/// The reply to FACET: `OK FACET <rows> <distinct>`, and a line `value` TAB `count` for each value.
pub fn write_facet(out: &mut Vec<u8>, reply: &FacetReply) {
    text(out, "OK FACET ");
    number(out, reply.values.len() as u64);
    out.push(b' ');
    number(out, reply.distinct);
    text(out, "\r\n");
    for (value, count) in &reply.values {
        match value {
            Value::Text(value) | Value::Json(value) => one_line(out, value),
            value => write_filter_value(out, value),
        }
        out.push(b'\t');
        number(out, *count);
        text(out, "\r\n");
    }
}

#[cfg(test)]
mod tests {
    use remora_engine::{Highlight, SearchRequest, SortBy, SortKey};

    use super::*;

    fn hit(key: i64, fields: Vec<Value>, snippet: Option<&str>) -> Hit {
        let key = std::iter::once(Value::Int(key)).collect();
        Hit { key, fields, snippet: snippet.map(str::to_owned), score: Some(1.25) }
    }

    fn printed(reply: &SearchReply, search: &Search) -> String {
        let mut out = Vec::new();
        write_search(&mut out, reply, search);
        String::from_utf8(out).unwrap()
    }

    fn highlight() -> Option<Highlight> {
        let tag = "*".to_owned();
        Some(Highlight { open: tag.clone(), close: tag, snippet_chars: 100, max_fragments: 3 })
    }

    #[test]
    fn search_is_printed_canonically() {
        let reply = SearchReply {
            total: 9,
            hits: vec![
                hit(3, vec!["a\tb".into()].into_iter().map(Value::Text).collect(), Some("x\ny")),
                hit(-1, vec![Value::Null], None),
            ],
            field_names: vec!["name".into()],
            cursor: Some("c1".into()),
            ..SearchReply::default()
        };
        let mut search = Search::default();
        assert_eq!(printed(&reply, &search), "OK RESULTS 9 3 -1");
        search.cursor = true;
        assert_eq!(printed(&reply, &search), "OK RESULTS 9 3 -1\r\n# CURSOR c1\r\n");
        search.request.highlight = highlight();
        let expected = "OK RESULTS 9\r\n3\tx y\r\n-1\t\r\n# CURSOR c1\r\n";
        assert_eq!(printed(&reply, &search), expected);
        search.request.fields = vec!["name".into()];
        search.request.sort = vec![SortKey { by: SortBy::Score, descending: true }];
        search.cursor = false;
        let expected = "OK RESULTS 9\r\n_key\tname\t_score\t_snippet\r\n\
            3\ta\\tb\t1.25\tx\\ny\r\n-1\t\\N\t1.25\t\r\n";
        assert_eq!(printed(&reply, &search), expected);
    }

    #[test]
    fn empty_result_keeps_the_format() {
        let request = SearchRequest { highlight: highlight(), ..SearchRequest::default() };
        let search = Search { request, cursor: true, ..Search::default() };
        let reply = SearchReply::default();
        assert_eq!(printed(&reply, &search), "OK RESULTS 0\r\n# CURSOR\r\n");
    }

    #[test]
    fn documents_and_facets_are_printed() {
        let key = [Value::Text("a b".into())];
        let (price, note) = (Value::Float(2.5), Value::Text("x y".into()));
        let columns = [("price", &price), ("note", &note)];
        let mut out = Vec::new();
        write_document(&mut out, &key, columns);
        assert_eq!(out, br#"OK DOC "a b" price=2.500000 note="x y""#);
        out.clear();
        write_row(&mut out, &key, columns);
        assert_eq!(out, b"OK RESULTS 1\r\n_key\tprice\tnote\r\na b\t2.5\tx y\r\n");
        out.clear();
        let values = vec![(Value::Null, 7), (Value::Text("a\tb c".into()), 2)];
        write_facet(&mut out, &FacetReply { values, distinct: 5, ..FacetReply::default() });
        assert_eq!(out, b"OK FACET 2 5\r\nNULL\t7\r\na b c\t2\r\n");
    }
}
