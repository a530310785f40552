//! Requests that are wrong say which part and how to mend it.

use super::{
    searches::term,
    table::{BM25, moment, row, schema, single},
};
use crate::{
    Comparison, Error, FacetRequest, Filter, Literal, RequestPart, SearchRequest, SortBy, SortKey,
    TextQuery, Value,
    read::{facet::facet, search::search},
};

fn error(request: SearchRequest) -> (RequestPart, String) {
    let view = single(schema(false), vec![row(1, "rain", "")]);
    match search(&view, &request, BM25, moment()) {
        Err(Error::Request { part, message }) => (part, message),
        other => panic!("{other:?}"),
    }
}

fn filtered(column: &str, literal: Literal) -> SearchRequest {
    let mut request = term("rain");
    request.selection.filter = Some(Filter::Compare {
        column: column.to_owned(),
        comparison: Comparison::Greater,
        literal,
    });
    request
}

#[test]
fn missing_names_are_refused() {
    let literal = Literal::Text("1".to_owned());
    let (part, message) = error(filtered("colour", literal.clone()));
    assert_eq!(part, RequestPart::Filter);
    assert!(message.contains("colour") && message.contains("category"), "{message}");
    assert_eq!(error(filtered("body", literal)).0, RequestPart::Filter);
    let by = SortBy::Column("colour".to_owned());
    let sort = vec![SortKey { by, descending: true }];
    assert_eq!(error(SearchRequest { sort, ..term("rain") }).0, RequestPart::Sort);
    let fields = vec!["colour".to_owned()];
    assert_eq!(error(SearchRequest { fields, ..term("rain") }).0, RequestPart::Fields);
    let view = single(schema(false), vec![row(1, "rain", "")]);
    let request = FacetRequest { column: "colour".to_owned(), ..FacetRequest::default() };
    let reply = facet(&view, &request, moment());
    assert!(matches!(reply, Err(Error::Request { part: RequestPart::Facet, .. })));
}

#[test]
fn literals_of_the_wrong_type_are_refused() {
    let (part, message) = error(filtered("number", Literal::Text("many".to_owned())));
    assert_eq!(part, RequestPart::Filter);
    assert!(message.contains("many") && message.contains("number"), "{message}");
    let (_, message) = error(filtered("number", Literal::Value(Value::Null)));
    assert!(message.contains("IS NULL"), "{message}");
}

#[test]
fn expressions_beyond_the_limits_are_refused() {
    let mut request = term("");
    assert_eq!(error(request.clone()).0, RequestPart::Expression);
    let deep = (0..40).fold(TextQuery::Term("rain".to_owned()), |query, _| {
        TextQuery::And(vec![query, TextQuery::Term("sun".to_owned())])
    });
    request.selection.text = Some(deep);
    assert!(error(request.clone()).1.contains("deeper"));
    let wide = (0..2000).map(|index| TextQuery::Term(format!("word{index}"))).collect();
    request.selection.text = Some(TextQuery::Or(wide));
    assert!(error(request.clone()).1.contains("1024"));
    request.selection.text = Some(TextQuery::And(Vec::new()));
    assert_eq!(error(request.clone()).0, RequestPart::Expression);
    request = term("rain");
    request.selection.fuzzy = Some(3);
    assert_eq!(error(request).0, RequestPart::Expression);
}

#[test]
fn pages_that_would_need_unbounded_memory() {
    let limit = SearchRequest { limit: usize::MAX, ..term("rain") };
    assert_eq!(error(limit).0, RequestPart::Limit);
    let (part, message) = error(SearchRequest { offset: usize::MAX, ..term("rain") });
    assert_eq!(part, RequestPart::Offset);
    assert!(message.contains("cursor"), "{message}");
}

#[test]
fn numbers_between_whole_ones_are_compared_as_numbers() {
    const NONE: [i64; 0] = [];
    let mut rows = vec![row(1, "rain", ""), row(2, "rain", ""), row(3, "rain", "")];
    for (row, number) in rows.iter_mut().zip([-5, 5, 6]) {
        row[super::table::NUMBER] = Value::Int(number);
    }
    let view = single(schema(false), rows);
    let ids = |comparison, literal: &str| {
        let mut request = term("rain");
        request.selection.filter = Some(Filter::Compare {
            column: "number".to_owned(),
            comparison,
            literal: Literal::Text(literal.to_owned()),
        });
        super::searches::ids(&super::searches::answer(&view, &request))
    };
    assert_eq!(ids(Comparison::Greater, "5.5"), [3]);
    assert_eq!(ids(Comparison::Less, "5.5"), [2, 1]);
    assert_eq!(ids(Comparison::LessOrEqual, "-5.5"), NONE);
    assert_eq!(ids(Comparison::GreaterOrEqual, "-5.5"), [3, 2, 1]);
    assert_eq!(ids(Comparison::Equal, "5.5"), NONE);
    assert_eq!(ids(Comparison::NotEqual, "5.5"), [3, 2, 1]);
    assert_eq!(ids(Comparison::Less, "99999999999999999999999"), [3, 2, 1]);
    assert_eq!(ids(Comparison::Greater, "99999999999999999999999"), NONE);
}
