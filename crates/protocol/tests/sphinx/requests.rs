//! The parsed contents of captured requests.

use remora_protocol::sphinx::{
    Anchor, ExcerptRequest, Filter, FilterTest, Group, KeywordsRequest, MatchMode, Outer, Query,
    Ranker, Request, SortMode, UpdateRequest, UpdatedAttribute, UpdatedRow, UpdatedValue,
};

use crate::exchange::{Sent, exchange, exchanges};

/// The default query of clients.
fn query(text: &'static str) -> Query<'static> {
    Query {
        limit: 20,
        max_matches: 1000,
        text: text.into(),
        indexes: "books".into(),
        select: "*".into(),
        ..Query::default()
    }
}

fn queries<'s>(sent: &'s Sent<'_>) -> Vec<Query<'s>> {
    match sent.parse().unwrap() {
        Request::Search(search) => {
            assert_eq!(search.version, sent.head.version);
            search.queries
        }
        other => panic!("{other:?}"),
    }
}

fn filter(
    attribute: &'static str,
    test: FilterTest<'static>,
    is_excluding: bool,
) -> Filter<'static> {
    Filter { attribute: attribute.into(), test, is_excluding }
}

#[test]
fn query_with_all_clauses_is_parsed() {
    let expected = Query {
        limit: 10,
        mode: MatchMode::Extended,
        ranker: Ranker::Expression("sum(lcs*user_weight)*1000+bm25".into()),
        sort: SortMode::Extended,
        sort_clause: "@weight DESC, year asc, @id DESC".into(),
        min_id: 1,
        max_id: 6_000_000_000,
        filters: vec![
            filter("year", FilterTest::Values(vec![1999, 2004, 2010]), false),
            filter("fresh", FilterTest::Values(vec![1]), true),
            filter("sold", FilterTest::Range(-5, 6_000_000_000), false),
            filter("price", FilterTest::FloatRange(0.5, 30.25), false),
            filter("kind", FilterTest::Text("guide".into()), true),
        ],
        max_matches: 200,
        anchor: Some(Anchor {
            latitude_column: "lat".into(),
            longitude_column: "lon".into(),
            latitude: 0.5,
            longitude: 0.25,
        }),
        index_weights: vec![("books".into(), 3)],
        max_query_ms: 900,
        field_weights: vec![("title".into(), 10)],
        comment: "a comment".into(),
        select: "*, year+1 AS next, @geodist AS far".into(),
        outer: Some(Outer { order: "price asc".into(), offset: 0, limit: 5 }),
        ..query("reef | fish")
    };
    assert_eq!(queries(&exchange("perl_11e_everything").only()), [expected]);
}

#[test]
fn batches_and_groups() {
    let extended = |text| Query { mode: MatchMode::Extended, ..query(text) };
    let expected = [
        extended("fish"),
        Query { indexes: "nosuch".into(), ..extended("nope") },
        Query { comment: "warned".into(), ..extended("\"deep sea\"/3") },
    ];
    assert_eq!(queries(&exchange("perl_11e_batch").only()), expected);
    let group = Group {
        function: 3,
        column: "published".into(),
        order: "@count desc, @group asc".into(),
        distinct: "year".into(),
    };
    let expected = Query { group, ..extended("reef | sea") };
    assert_eq!(queries(&exchange("perl_11e_group").only()), [expected]);
}

#[test]
fn queries_of_older_clients() {
    let expected = Query {
        mode: MatchMode::Extended,
        ranker: Ranker::Sph04,
        sort: SortMode::AttributeDescending,
        sort_clause: "year".into(),
        filters: vec![filter("price", FilterTest::FloatRange(1.0, 15.0), false)],
        select: "year, price*2 as twice, kind".into(),
        ..query("reef")
    };
    assert_eq!(queries(&exchange("python_11d_select").only()), [expected]);
    // The second sends ids of 32 bits, and the greatest of them for any.
    for (version, select, max_id) in [(0x116, "*", 0), (0x113, "", u32::MAX.into()), (0x107, "", 0)]
    {
        let expected = Query {
            offset: 1,
            limit: 5,
            mode: MatchMode::Extended,
            sort: SortMode::TimeSegments,
            sort_clause: "published".into(),
            weights: vec![3, 1],
            max_id,
            filters: vec![
                filter("year", FilterTest::Values(vec![2004]), false),
                filter("published", FilterTest::Range(900_000_000, 1_300_000_000), true),
            ],
            select: select.into(),
            ..query("sea")
        };
        let exchange = exchange(&format!("python_{version:x}_filters"));
        assert_eq!(exchange.only().head.version, version);
        assert_eq!(queries(&exchange.only()), [expected], "{version:#x}");
    }
    let exchange = exchange("python_116_override");
    assert_eq!(queries(&exchange.only())[0].overrides, ["year"]);
}

#[test]
fn flags_of_queries() {
    let sent = exchange("raw_11e");
    let mut body = sent.only().body.to_vec();
    let head = sent.only().head;
    // Behind the master's version and the number of queries.
    let mut asked = |flags: u32| {
        body[8..12].copy_from_slice(&flags.to_be_bytes());
        match Request::parse(&head, &body) {
            Ok(Request::Search(search)) => {
                let query = &search.queries[0];
                Ok([query.is_idf_plain, query.is_idf_global, query.is_idf_undivided])
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    };
    assert_eq!(asked(0x40), Ok([false, false, false]));
    assert_eq!(asked(0x10), Ok([true, false, true]));
    assert_eq!(asked(0x60), Ok([false, true, false]));
    // Reverse scan, sorting, simplifying, local_df, low priority.
    assert_eq!(asked(0x1 | 0x2 | 0x8 | 0x40 | 0x80 | 0x100), Ok([false, false, false]));
    let refused = |bits: &str| {
        Err(format!("unknown flags of a query ({bits}): those from 1 to 0x100 are known"))
    };
    assert_eq!(asked(0x40 | 0x200 | 0x800), refused("0xa00"));
    assert_eq!(asked(0x8000_0000), refused("0x80000000"));
}

#[test]
fn one_query_is_encoded_for_every_version() {
    let versions = exchanges();
    let versions = versions.iter().filter(|exchange| {
        u16::from_str_radix(exchange.name.trim_start_matches("raw_"), 16).is_ok()
    });
    let mut compared = 0;
    for exchange in versions {
        let sent = exchange.only();
        let version = sent.head.version;
        let years = match version {
            0x10E.. => vec![filter("year", FilterTest::Range(1990, 2015), false)],
            0x102.. => vec![filter("year", FilterTest::Values(vec![1999, 2004, 2010]), false)],
            _ => Vec::new(),
        };
        let weight = |name: &'static str, since| match version >= since {
            true => vec![(name.into(), 1)],
            false => Vec::new(),
        };
        let expected = Query {
            limit: 3,
            mode: MatchMode::Extended,
            min_id: 1,
            filters: years,
            group: Group { function: if version >= 0x103 { 4 } else { 0 }, ..Group::default() },
            max_matches: if version >= 0x104 { 500 } else { 1000 },
            index_weights: weight("books", 0x10F),
            field_weights: weight("title", 0x112),
            comment: if version >= 0x113 { "hand-written".into() } else { "".into() },
            select: "".into(),
            ..query("reef | sea")
        };
        assert_eq!(queries(&sent), [expected], "{version:#x}");
        compared += 1;
    }
    assert_eq!(compared, 32);
}

#[test]
fn excerpts() {
    let expected = ExcerptRequest {
        // Remove spaces, weight order, query mode, force all words, allow empty.
        flags: 1 | 16 | 32 | 64 | 256,
        index: "books".into(),
        words: "deep fish".into(),
        before_match: "[".into(),
        after_match: "]".into(),
        chunk_separator: "~".into(),
        limit: 60,
        around: 2,
        limit_passages: 3,
        limit_words: 9,
        start_passage_id: 7,
        html_strip_mode: "none".into(),
        passage_boundary: "none".into(),
        texts: vec!["the deep sea and its fish".into(), "nothing".into()],
    };
    let exchange = exchange("perl_11e_excerpt");
    assert_eq!(exchange.only().parse(), Ok(Request::Excerpt(expected)));
    let old = crate::exchange::exchange("python_107_excerpt");
    let expected = ExcerptRequest {
        flags: 1,
        index: "books".into(),
        words: "fish".into(),
        before_match: "<b>".into(),
        after_match: "</b>".into(),
        chunk_separator: " ... ".into(),
        limit: 256,
        around: 5,
        limit_passages: 0,
        limit_words: 0,
        start_passage_id: 1,
        html_strip_mode: "index".into(),
        passage_boundary: "".into(),
        texts: vec!["a fish here".into()],
    };
    assert_eq!(old.only().parse(), Ok(Request::Excerpt(expected)));
}

#[test]
fn updates() {
    let attribute = |name: &'static str, is_list| UpdatedAttribute { name: name.into(), is_list };
    let row = |id, values| UpdatedRow { id, values };
    let number = UpdatedValue::Number;
    let expected = UpdateRequest {
        indexes: "books".into(),
        ignores_unknown: false,
        attributes: vec![attribute("year", false), attribute("sold", false)],
        rows: vec![row(1, vec![number(2001), number(9)])],
    };
    let sent = exchange("perl_11e_update");
    assert_eq!(sent.only().parse(), Ok(Request::Update(expected)));
    let expected = UpdateRequest {
        indexes: "books".into(),
        ignores_unknown: true,
        attributes: vec![attribute("tags", true), attribute("year", false)],
        rows: vec![
            row(2, vec![UpdatedValue::List(vec![6, 5, 6]), number(2010)]),
            row(5_000_000_007, vec![UpdatedValue::List(vec![]), number(1990)]),
        ],
    };
    let sent = exchange("raw_update");
    assert_eq!(sent.only().parse(), Ok(Request::Update(expected)));
}

#[test]
fn small_requests() {
    let sent = exchange("perl_11e_keywords");
    let expected =
        KeywordsRequest { text: "Deep FISH zzz".into(), index: "books".into(), with_numbers: true };
    assert_eq!(sent.only().parse(), Ok(Request::Keywords(expected)));
    for (name, expected) in [
        ("perl_11e_status", Request::Status { of_server: false }),
        ("raw_status", Request::Status { of_server: true }),
        ("raw_ping", Request::Ping(5)),
        ("perl_11e_flush", Request::FlushAttributes),
    ] {
        let exchange = exchange(name);
        assert_eq!(exchange.only().parse(), Ok(expected), "{name}");
    }
    let persistent = exchange("perl_11e_persist");
    let sent = persistent.sent();
    assert_eq!(sent[0].as_ref().unwrap().parse(), Ok(Request::Persist(true)));
    assert_eq!(sent.len(), 3);
}
