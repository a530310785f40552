//! Requests that are truncated, changed or have wrong lengths.

use std::time::{SystemTime, UNIX_EPOCH};

use remora_protocol::sphinx::{
    FilterTest, HEAD_BYTES, Request, RequestError, RequestHead, UpdatedValue,
    statement::{Column, ColumnKind, TableShape, excerpts, keywords, search, updates},
};

use crate::exchange::exchanges;

/// Changed requests for each captured one.
const CHANGES: usize = 400;

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn shape() -> TableShape {
    let column = |(name, kind): (&str, _)| Column { name: name.into(), kind, is_nullable: true };
    TableShape {
        database: "d".into(),
        name: "books".into(),
        key: "id".into(),
        columns: [
            ("title", ColumnKind::Text),
            ("year", ColumnKind::Number),
            ("price", ColumnKind::Float),
            ("published", ColumnKind::Time),
            ("kind", ColumnKind::Text),
        ]
        .map(column)
        .into(),
        fields: vec!["title".into()],
    }
}

/// The number of entries and the bytes of text in a request.
fn held(request: &Request<'_>) -> usize {
    match request {
        Request::Search(request) => request
            .queries
            .iter()
            .map(|query| {
                let filters = query.filters.iter().map(|filter| {
                    4 + match &filter.test {
                        FilterTest::Values(values) => values.capacity(),
                        FilterTest::Texts(texts) => texts.capacity(),
                        _ => 1,
                    }
                });
                let lists = query.weights.capacity() + query.index_weights.capacity();
                let lists = lists + query.field_weights.capacity() + query.overrides.capacity();
                filters.sum::<usize>() + lists + query.filters.capacity()
            })
            .sum(),
        Request::Excerpt(request) => request.texts.capacity(),
        Request::Update(request) => {
            let values = request.rows.iter().map(|row| {
                row.values
                    .iter()
                    .map(|value| match value {
                        UpdatedValue::List(list) => list.capacity(),
                        UpdatedValue::Number(_) => 0,
                    })
                    .sum::<usize>()
                    + row.values.len()
            });
            request.attributes.capacity() + request.rows.capacity() + values.sum::<usize>()
        }
        _ => 0,
    }
}

/// Parses a request like a server and translates it to statements.
fn answer(head: [u8; HEAD_BYTES], body: &[u8]) {
    let head = match RequestHead::parse(head) {
        Ok(head) => head,
        Err(error) => return assert!(error.is_final()),
    };
    let request = match Request::parse(&head, body) {
        Ok(request) => request,
        Err(error) => return assert!(!error.is_final() && !error.to_string().is_empty()),
    };
    assert!(held(&request) <= body.len() + 8, "{} for {}", held(&request), body.len());
    let shape = shape();
    match &request {
        Request::Search(request) => {
            for query in &request.queries {
                let _ = search(query, &shape);
            }
        }
        Request::Excerpt(request) => drop(excerpts(request, &shape)),
        Request::Update(request) => drop(updates(request, &shape)),
        Request::Keywords(request) => drop(keywords(request, &shape)),
        _ => {}
    }
}

#[test]
fn changed_requests_are_answered_or_refused() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = now.as_nanos() as u64 | 1;
    println!("seed {seed}");
    let mut random = Random(seed);
    for exchange in exchanges() {
        for sent in exchange.sent().into_iter().flatten() {
            let start = sent.body.as_ptr() as usize - exchange.request.as_ptr() as usize;
            let head = &exchange.request[start - HEAD_BYTES..start];
            for _ in 0..CHANGES {
                let mut head: [u8; HEAD_BYTES] = head.try_into().unwrap();
                let mut body = sent.body.to_vec();
                if random.below(3) == 0 {
                    body.truncate(random.below(body.len() + 1));
                }
                for _ in 0..random.below(4) {
                    let place = random.below(body.len());
                    let value = [0, 1, 0x7F, 0x80, 0xFF, random.next() as u8][random.below(6)];
                    if let Some(byte) = body.get_mut(place) {
                        *byte = value;
                    }
                }
                if random.below(8) == 0 {
                    head[random.below(4)] = random.next() as u8 & 0x1F;
                }
                answer(head, &body);
            }
        }
    }
}

#[test]
fn requests_that_end_too_soon_are_refused() {
    for exchange in exchanges() {
        for sent in exchange.sent().into_iter().flatten() {
            let Ok(Request::Search(_) | Request::Excerpt(_) | Request::Update(_)) = sent.parse()
            else {
                continue;
            };
            for length in 0..sent.body.len() {
                let cut = Request::parse(&sent.head, &sent.body[..length]).map(drop);
                assert_eq!(cut, Err(RequestError::Truncated), "{} at {length}", exchange.name);
            }
        }
    }
}
