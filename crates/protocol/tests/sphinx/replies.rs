//! Replies with the same results have the same bytes as those of `searchd`.

use remora_protocol::sphinx::{
    Answer, Attribute, AttributeKind, Found, Keyword, Match, Request, Value, Word, put_error,
    put_excerpts, put_flushed, put_keywords, put_ping, put_search, put_status, put_updated,
};

use crate::{
    exchange::{Sent, exchange, exchanges},
    reader::Reader,
};

fn status(reply: &[u8]) -> u16 {
    u16::from_be_bytes(reply[..2].try_into().unwrap())
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = b"before".to_vec();
    write(&mut out);
    out.split_off(6)
}

/// The result of a captured reply, encoded by our code.
fn rewritten(sent: &Sent<'_>, reply: &[u8]) -> Vec<u8> {
    let mut reader = Reader(&reply[8..]);
    let status = status(reply);
    if status == 1 && !matches!(sent.parse(), Ok(Request::Search(_))) {
        return written(|out| put_error(out, &reader.text()));
    }
    match sent.parse().unwrap() {
        Request::Search(search) => {
            // Rows of clients this old do not say what they are.
            if search.version < 0x102 {
                return reply.to_vec();
            }
            let answers = reader.answers(search.version, status);
            written(|out| put_search(out, search.version, &answers))
        }
        Request::Excerpt(request) => {
            let texts: Vec<String> = request.texts.iter().map(|_| reader.text()).collect();
            written(|out| put_excerpts(out, &texts))
        }
        Request::Update(_) => written(|out| put_updated(out, "", reader.u32())),
        Request::Keywords(request) => {
            let keywords: Vec<Keyword> = (0..reader.u32())
                .map(|_| {
                    let (tokenized, normalized) = (reader.text(), reader.text());
                    let mut number = || if request.with_numbers { reader.u32() } else { 0 };
                    Keyword { tokenized, normalized, documents: number(), hits: number() }
                })
                .collect();
            written(|out| put_keywords(out, request.with_numbers, &keywords))
        }
        Request::Status { .. } => {
            let rows = reader.u32();
            assert_eq!(reader.u32(), 2);
            let figures: Vec<_> = (0..rows).map(|_| (reader.text(), reader.text())).collect();
            written(|out| put_status(out, &figures))
        }
        Request::Ping(cookie) => written(|out| put_ping(out, cookie)),
        Request::FlushAttributes => written(|out| put_flushed(out, reader.u32())),
        Request::Persist(_) => Vec::new(),
    }
}

#[test]
fn captured_replies_are_reproduced() {
    let mut compared = 0;
    for exchange in exchanges() {
        let sent = exchange.sent();
        let answered = sent.iter().filter(
            |sent| !matches!(sent, Ok(sent) if matches!(sent.parse(), Ok(Request::Persist(_)))),
        );
        let replies = exchange.replies();
        assert_eq!(answered.clone().count(), replies.len(), "{}", exchange.name);
        for (sent, reply) in answered.zip(replies) {
            let ours = match sent {
                Ok(sent) => rewritten(sent, reply),
                Err(error) => written(|out| put_error(out, &error.to_string())),
            };
            assert_eq!(ours, reply, "{}", exchange.name);
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared} replies");
}

/// The answers of a captured reply.
fn answers(name: &str) -> Vec<Answer> {
    let exchange = exchange(name);
    let sent = exchange.only();
    let Request::Search(search) = sent.parse().unwrap() else { panic!("{name}") };
    let reply = exchange.replies()[0];
    Reader(&reply[8..]).answers(search.version, status(reply))
}

/// One search, sent in many protocol versions: each result equals that of the newest version.
#[test]
fn one_result_is_encoded_for_every_version() {
    let mut answers = answers("raw_11f");
    for version in 0x100..=0x11F {
        let exchange = exchange(&format!("raw_{version:x}"));
        let theirs = exchange.replies()[0];
        // How long it took stands before the two words, of 4 letters and of 3, and their numbers.
        let place = theirs.len() - 4 - 2 * 12 - 7 - 4;
        let Answer::Found { found, .. } = &mut answers[0] else { panic!("no rows") };
        assert!(found.matches.len() == 3 && found.words.len() == 2);
        let milliseconds = theirs[place..place + 4].try_into().unwrap();
        found.milliseconds = u32::from_be_bytes(milliseconds);
        assert_eq!(written(|out| put_search(out, version, &answers)), theirs, "{version:#x}");
    }
}

fn attributes() -> Vec<Attribute> {
    let attribute = |(name, kind): (&str, _)| Attribute { name: name.to_owned(), kind };
    [
        ("year", AttributeKind::Number),
        ("price", AttributeKind::Float),
        ("sold", AttributeKind::BigInt),
        ("kind", AttributeKind::Text),
        ("published", AttributeKind::Timestamp),
        ("fresh", AttributeKind::Bool),
        ("tags", AttributeKind::Set),
        ("wide", AttributeKind::WideSet),
        ("extra", AttributeKind::Text),
        ("lat", AttributeKind::Float),
        ("lon", AttributeKind::Float),
        ("@groupby", AttributeKind::Number),
        ("@count", AttributeKind::Number),
    ]
    .map(attribute)
    .into()
}

fn word(word: &str, documents: u32, hits: u32) -> Word {
    Word { word: word.to_owned(), documents, hits }
}

/// A row of the captured reply: its values, then the year of its group and the number of rows in it.
fn row(id: u64, weight: i32, values: [Value; 11], year: u32) -> Match {
    let count = if year == 2004 { 2 } else { 1 };
    let group = [Value::Number(year), Value::Number(count)];
    Match { id, weight, values: values.into_iter().chain(group).collect() }
}

fn text(text: &str) -> Value {
    Value::Text(text.as_bytes().to_vec())
}

fn rows() -> Vec<Match> {
    let newest = [
        Value::Number(2010),
        Value::Float(1.75),
        Value::BigInt(0),
        text(""),
        Value::Number(1_262_304_000),
        Value::Number(0),
        Value::Set(vec![4, 9]),
        Value::WideSet(vec![1]),
        text(r#"{"a":"z"}"#),
        Value::Float(0.1),
        Value::Float(0.1),
    ];
    let middle = [
        Value::Number(2004),
        Value::Float(20.25),
        Value::BigInt(7),
        text("atlas"),
        Value::Number(1_078_099_200),
        Value::Number(0),
        Value::Set(vec![2]),
        Value::WideSet(vec![]),
        text("{}"),
        Value::Float(0.75),
        Value::Float(0.5),
    ];
    let oldest = [
        Value::Number(1999),
        Value::Float(12.5),
        Value::BigInt(5_000_000_000),
        text("guide"),
        Value::Number(946_684_800),
        Value::Number(1),
        Value::Set(vec![1, 2, 3]),
        Value::WideSet(vec![7, 5_000_000_000]),
        text(r#"{"a":1,"t":["x",2]}"#),
        Value::Float(0.5),
        Value::Float(0.25),
    ];
    vec![
        row(5_000_000_007, 2451, newest, 2010),
        row(2, 2510, middle, 2004),
        row(1, 2460, oldest, 1999),
    ]
}

#[test]
fn hand_written_result_equals_the_captured_one() {
    let found = Found {
        fields: vec!["title".to_owned(), "body".to_owned()],
        attributes: attributes(),
        matches: rows(),
        total: 3,
        total_found: 3,
        milliseconds: 0,
        words: vec![word("reef", 3, 7), word("sea", 2, 3)],
    };
    let answer = Answer::Found { warning: String::new(), found };
    let ours = written(|out| put_search(out, 0x11E, &[answer]));
    let mut theirs = exchange("perl_11e_groupattr").reply;
    let place = theirs.len() - 4 - 2 * 12 - 7 - 4;
    theirs[place..place + 4].fill(0);
    assert_eq!(ours, theirs);
}

#[test]
fn errors_and_warnings_of_a_batch() {
    let answers = answers("perl_11e_batch");
    let [Answer::Found { warning, .. }, Answer::Error(error), Answer::Found { warning: third, .. }] =
        &answers[..]
    else {
        panic!("{answers:?}")
    };
    assert_eq!(warning, "");
    assert_eq!(error, "unknown local index 'nosuch' in search request");
    let text = "quorum threshold too high (words=2, thresh=3); replacing quorum operator with AND \
                operator";
    assert_eq!(third, text);
}

#[test]
fn refusals_have_the_messages_of_searchd() {
    for name in ["raw_newer", "raw_unknown", "perl_11e_update_mva"] {
        let exchange = exchange(name);
        let sent = exchange.sent().remove(0);
        let error = sent.and_then(|sent| sent.parse().map(drop)).unwrap_err();
        assert_eq!(written(|out| put_error(out, &error.to_string())), exchange.reply, "{name}");
    }
}
