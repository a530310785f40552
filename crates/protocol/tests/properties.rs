//! Properties of the line protocol, checked with random requests and replies.

#![expect(clippy::unwrap_used, reason = "tests fail by panics")]

mod support;

use proptest::prelude::*;
use remora_engine::{
    Comparison, Filter, Highlight, Hit, Literal, SearchReply, SearchRequest, Selection, SortBy,
    SortKey, TextQuery, Value,
};
use remora_protocol::line::{
    Command, LineError, ParseLimits, Search, parse, reply, reply_is_complete,
};
use support::print::print;

/// Texts that could be mistaken for syntax: operators, quotes, white space, keywords.
fn text() -> impl Strategy<Value = String> {
    let tricky = prop::sample::select(vec![
        "AND", "or", "NOT", "(", ")", "\"", "'", "\\", ",", "=", ">=", "!", " ", "\t", "\r\n",
        "\u{3000}", "\u{200b}", "東京", "é", "FILTER", "LIMIT", "FIELDS", "AFTER", "0", "-1", "x",
        "\0", "\u{7f}", "*", "#",
    ]);
    prop::collection::vec(tricky, 1..5).prop_map(|parts| parts.concat())
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "limit", "NOT", "in", "Price", "db.t", "x-1", "$c", "and", "by"])
        .prop_map(str::to_owned)
}

fn text_query() -> impl Strategy<Value = TextQuery> {
    text().prop_map(TextQuery::Term).prop_recursive(4, 20, 4, |inner| {
        let several = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            several().prop_map(TextQuery::And),
            several().prop_map(TextQuery::Or),
            inner.clone().prop_map(|inner| TextQuery::Not(Box::new(inner))),
        ]
    })
}

fn literal() -> impl Strategy<Value = Literal> {
    text().prop_map(Literal::Text)
}

fn filter() -> impl Strategy<Value = Filter> {
    let comparison = prop::sample::select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
    ]);
    let condition = prop_oneof![
        (name(), comparison, literal()).prop_map(|(column, comparison, literal)| {
            Filter::Compare { column, comparison, literal }
        }),
        (name(), prop::collection::vec(literal(), 1..4)).prop_map(|(c, v)| Filter::In(c, v)),
        (name(), literal(), literal()).prop_map(|(c, low, high)| Filter::Between(c, low, high)),
        name().prop_map(Filter::IsNull),
        name().prop_map(Filter::IsNotNull),
    ];
    condition.prop_recursive(4, 16, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            several().prop_map(Filter::And),
            several().prop_map(Filter::Or),
            inner.clone().prop_map(|inner| Filter::Not(Box::new(inner))),
        ]
    })
}

fn sort() -> impl Strategy<Value = Vec<SortKey>> {
    let by = prop_oneof![Just(SortBy::Key), Just(SortBy::Score), name().prop_map(SortBy::Column),];
    let key = (by, any::<bool>()).prop_map(|(by, descending)| SortKey { by, descending });
    prop::collection::vec(key, 0..4)
}

fn highlight() -> impl Strategy<Value = Option<Highlight>> {
    let highlight = (text(), text(), 1usize..10_000, 1usize..100);
    prop::option::of(highlight.prop_map(|(open, close, snippet_chars, max_fragments)| Highlight {
        open,
        close,
        snippet_chars,
        max_fragments,
    }))
}

/// Searches that a request line can express. `SEARCH t` alone is refused, so a search with nothing but a table is not
/// generated.
fn search() -> impl Strategy<Value = Search> {
    any_search().prop_filter("a line asks for more than a table", |search| {
        let request = &search.request;
        let selection = &request.selection;
        selection.text.is_some()
            || selection.filter.is_some()
            || selection.fuzzy.is_some()
            || !request.sort.is_empty()
            || !request.fields.is_empty()
            || request.highlight.is_some()
            || search.limit_given
            || search.offset_given
            || search.cursor
    })
}

prop_compose! {
    fn any_search()(
        table in name(),
        text in prop::option::of(text_query()),
        filter in prop::option::of(filter()),
        fuzzy in prop::option::of(1u8..3),
        sort in sort(),
        limit in prop::option::of(1usize..10_000),
        offset in prop::option::of(0usize..1 << 30),
        after in prop::option::of(text()),
        fields in prop::collection::vec(name(), 0..3),
        highlight in highlight(),
        cursor in any::<bool>(),
    ) -> Search {
        let cursor = cursor || after.is_some();
        let (limit_given, offset_given) = (limit.is_some(), offset.is_some());
        let (limit, offset) = (limit.unwrap_or(100), offset.unwrap_or(0));
        let selection = Selection { table, text, filter, fuzzy, ..Selection::default() };
        let request = SearchRequest { selection, sort, limit, offset, after, fields, highlight };
        Search { request, limit_given, offset_given, cursor }
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::Uint),
        text().prop_map(|text| Value::Text(text.into())),
        any::<bool>().prop_map(Value::Bool),
    ]
}

fn hit() -> impl Strategy<Value = Hit> {
    let parts = (value(), prop::collection::vec(value(), 2), prop::option::of(text()));
    parts.prop_map(|(key, fields, snippet)| {
        let key = std::iter::once(key).collect();
        Hit { key, fields, snippet, score: Some(0.5) }
    })
}

fn written(reply: &SearchReply, search: &Search) -> Vec<u8> {
    let mut out = Vec::new();
    reply::write_search(&mut out, reply, search);
    reply::end_reply(&mut out);
    out
}

/// One escaped field of a FIELDS row, as a client parses it.
fn unescaped(field: &str) -> Option<String> {
    if field == "\\N" {
        return None;
    }
    let mut text = String::new();
    let mut chars = field.chars();
    while let Some(char) = chars.next() {
        match (char, char == '\\') {
            (_, true) => match chars.next().unwrap() {
                't' => text.push('\t'),
                'n' => text.push('\n'),
                'r' => text.push('\r'),
                'x' => {
                    let hex: String = chars.by_ref().take(2).collect();
                    text.push(char::from(u8::from_str_radix(&hex, 16).unwrap()));
                }
                other => text.push(other),
            },
            (char, false) => text.push(char),
        }
    }
    Some(text)
}

proptest! {
    #[test]
    fn a_printed_search_parses_back(search in search()) {
        let line = print(&Command::Search(Box::new(search.clone())));
        let parsed = parse(line.as_bytes(), &ParseLimits::default());
        let Ok(Command::Search(parsed)) = parsed else {
            return Err(TestCaseError::fail(format!("{line}\n{parsed:?}")));
        };
        prop_assert_eq!(format!("{:?}", parsed), format!("{:?}", search), "{}", line);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, &ParseLimits::default());
        let _ = parse(&bytes, &ParseLimits::mygramdb());
    }

    #[test]
    fn no_words_panic_and_errors_are_one_line(
        words in prop::collection::vec(prop::sample::select(vec![
            "SEARCH", "COUNT", "FACET", "GET", "SET", "t", "a", "AND", "OR", "NOT", "FILTER", "SORT",
            "LIMIT", "OFFSET", "HIGHLIGHT", "TAG", "SNIPPET_LEN", "FUZZY", "FIELDS", "AFTER", "IN",
            "CURSOR", "(", ")", "(1,2)", "=", "a=1", ">=", "BETWEEN", "IS", "NULL", "1", "2", "-1",
            "10,20", ",", "a,b", "ASC", "DESC,", "\"x y\"", "'", "\\", "''", "≥", "99999999999",
        ]), 1..12),
    ) {
        let line = words.join(" ");
        for limits in [ParseLimits::default(), ParseLimits::mygramdb()] {
            if let Err(error) = parse(line.as_bytes(), &limits) {
                let mut out = Vec::new();
                reply::write_error(&mut out, &error);
                reply::end_reply(&mut out);
                prop_assert!(reply_is_complete(&out));
                prop_assert!((3000..3012).contains(&error.code) || error.code == 4000);
            }
        }
    }

    #[test]
    fn every_search_reply_is_framed(
        search in search(),
        hits in prop::collection::vec(hit(), 0..5),
        cursor in prop::option::of(text()),
    ) {
        let field_names = vec!["a".to_owned(), "b".to_owned()];
        let reply = SearchReply { total: 9, hits, field_names, cursor, ..SearchReply::default() };
        let mut out = written(&reply, &search);
        prop_assert!(reply_is_complete(&out));
        prop_assert_eq!(out.windows(4).filter(|end| end == b"\r\n\r\n").count(),
            usize::from(!is_one_line(&search)));
        out.truncate(out.len() - 2);
        reply::write_search_debug(&mut out, &reply.report, &search, reply::CacheUse::Disabled);
        reply::end_reply(&mut out);
        prop_assert!(reply_is_complete(&out));
    }

    #[test]
    fn keys_of_a_reply_can_be_requested(keys in prop::collection::vec(text(), 1..4)) {
        let hits = keys.iter().map(|key| Hit {
            key: std::iter::once(Value::Text(key.as_str().into())).collect(),
            fields: Vec::new(),
            snippet: None,
            score: None,
        });
        let reply = SearchReply { hits: hits.collect(), ..SearchReply::default() };
        let out = written(&reply, &Search::default());
        let line = String::from_utf8(out).unwrap().replacen("OK RESULTS 0", "SEARCH t x FIELDS", 1);
        let line = line.strip_suffix("\r\n").unwrap().replacen("FIELDS ", "", 1);
        // Each key is one token: as further words of a text they are joined by spaces again.
        let parsed = parse(format!("GET t {}", first_token(&line)).as_bytes(), &ParseLimits::default());
        let Ok(Command::Get(get)) = parsed else {
            return Err(TestCaseError::fail(format!("{line}\n{parsed:?}")));
        };
        prop_assert_eq!(&get.key, &keys[0]);
    }

    #[test]
    fn rows_of_fields_are_read_back(hits in prop::collection::vec(hit(), 0..5)) {
        let field_names = vec!["a".to_owned(), "b".to_owned()];
        let request = SearchRequest { fields: field_names.clone(), ..SearchRequest::default() };
        let search = Search { request, ..Search::default() };
        let reply = SearchReply { field_names, hits, ..SearchReply::default() };
        let out = String::from_utf8(written(&reply, &search)).unwrap();
        let lines: Vec<&str> = out.strip_suffix("\r\n\r\n").unwrap().split("\r\n").collect();
        prop_assert_eq!(lines.len(), reply.hits.len() + 2);
        for (line, hit) in lines[2..].iter().zip(&reply.hits) {
            let fields: Vec<Option<String>> = line.split('\t').map(unescaped).collect();
            let values = hit.key.iter().chain(&hit.fields);
            let expected: Vec<Option<String>> =
                values.map(|value| (!value.is_null()).then(|| value.to_string())).collect();
            prop_assert_eq!(fields, expected);
        }
    }
}

fn is_one_line(search: &Search) -> bool {
    let request = &search.request;
    request.fields.is_empty() && request.highlight.is_none() && !search.cursor
}

/// The first key of `SEARCH t x <key> …`, split by the quoting rules.
fn first_token(line: &str) -> &str {
    let keys = line.strip_prefix("SEARCH t x ").unwrap();
    if !keys.starts_with('"') {
        return keys.split(' ').next().unwrap();
    }
    let mut escaped = false;
    let end = keys[1..].char_indices().find(|(_, char)| {
        let ends = *char == '"' && !escaped;
        escaped = *char == '\\' && !escaped;
        ends
    });
    &keys[..end.unwrap().0 + 2]
}

#[test]
fn engine_errors_are_one_line() {
    let error = remora_engine::Error::Io("a\r\nb".to_owned());
    let mut out = Vec::new();
    reply::write_error(&mut out, &LineError::from(error));
    assert_eq!(out, b"ERROR 5001 a  b");
}
