//! Captured requests have the same results here as at `searchd`: rows, weights, values, totals and words.

use mysql::prelude::Queryable;
use remora_protocol::sphinx::{Answer, Found, Value};

use crate::{
    sphinx::{
        BOOKS, books,
        reader::Reader,
        wire::{Client, SEARCH_VERSION, captured, grouped, resent, search, search_in},
    },
    support::TestServer,
};

/// The attribute that only `searchd` has.
const ONLY_THERE: [&str; 1] = ["extra"];

/// The answers in a reply to a client of this version.
fn answers(version: u16, reply: &[u8]) -> Vec<Answer> {
    let status = u16::from_be_bytes(reply[..2].try_into().unwrap());
    Reader(&reply[8..]).answers(version, status)
}

/// The parts that must be equal: without times, and without attributes that only one server has.
fn comparable(answer: &Answer) -> Answer {
    let Answer::Found { warning, found } = answer else { return answer.clone() };
    let is_common = |name: &str| !ONLY_THERE.contains(&name);
    let mut found = Found { milliseconds: 0, ..found.clone() };
    for row in &mut found.matches {
        let values = row.values.iter().zip(&found.attributes);
        let common = values.filter(|(_, attribute)| is_common(&attribute.name));
        row.values = common.map(|(value, _)| value.clone()).collect();
    }
    found.attributes.retain(|attribute| is_common(&attribute.name));
    Answer::Found { warning: warning.clone(), found }
}

fn compare(server: &TestServer, name: &str) {
    let (request, theirs) = captured(name);
    let version = u16::from_be_bytes(request[2..4].try_into().unwrap());
    let ours = resent(server, &request);
    let both = [ours, theirs]
        .map(|reply| answers(version, &reply).iter().map(comparable).collect::<Vec<_>>());
    assert_eq!(both[0], both[1], "{name}: ours, theirs");
}

#[test]
fn searches_find_what_searchd_found() {
    let server = books("");
    for name in ["perl_11e_all", "perl_11e_any", "perl_11e_group", "perl_11e_groupattr"] {
        compare(&server, name);
    }
    compare(&server, "perl_11e_batch");
    for version in ["102", "103", "105", "108", "10c", "10d", "10e", "112", "117", "11b", "11f"] {
        compare(&server, &format!("raw_{version}"));
    }
    // The exchanges behind this one were captured after it, for it changes a row.
    let (request, theirs) = captured("perl_11e_update");
    assert_eq!(resent(&server, &request), theirs);
    compare(&server, "python_11d_select");
    for version in ["116", "113", "107"] {
        for kind in ["filters", "group", "error"] {
            compare(&server, &format!("python_{version}_{kind}"));
        }
    }
}

/// Filters on multi-value attributes, expressions with them, and their values after an update.
#[test]
fn sets_of_numbers() {
    let server = books("");
    compare(&server, "raw_mva");
    let (request, theirs) = captured("raw_update");
    assert_eq!(resent(&server, &request), theirs);
    compare(&server, "raw_mva_updated");
}

/// Grouping like `searchd` 2.2.11: each number of a set has a group, an empty set has none.
#[test]
fn groups_of_each_number() {
    let server = books("");
    let asked = grouped("tags", "@groupby, @count, tags", "@group asc");
    let reply = Client::connect(&server).ask(0, SEARCH_VERSION, &asked);
    let answer = Reader(&reply.2).answers(SEARCH_VERSION, reply.0).remove(0);
    let Answer::Found { found, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(found.total_found, 5);
    let rows: Vec<_> = found.matches.into_iter().map(|row| (row.id, row.values)).collect();
    let row = |id, number, count, set: &[u32]| {
        (id, vec![Value::Number(number), Value::Number(count), Value::Set(set.to_vec())])
    };
    assert_eq!(
        rows,
        [
            row(1, 1, 1, &[1, 2, 3]),
            row(1, 2, 2, &[1, 2, 3]),
            row(1, 3, 1, &[1, 2, 3]),
            row(5_000_000_007, 4, 1, &[4, 9]),
            row(5_000_000_007, 9, 1, &[4, 9]),
        ]
    );
}

/// A search of all indexes uses those that have the requested attributes.
#[test]
fn star_searches_indexes_with_the_attributes() {
    let server = books("");
    let mut sql = crate::sphinx::sql(&server, "", "");
    for statement in [
        "CREATE TABLE notes (id BIGINT UNSIGNED PRIMARY KEY, note TEXT, depth INT UNSIGNED NOT NULL) words='note'",
        "INSERT INTO notes VALUES (77, 'reef', 5)",
    ] {
        sql.query_drop(statement).unwrap();
    }
    let found = |select: &str, order: &str| {
        let asked = search_in("*", "reef", 1, select, order);
        let reply = Client::connect(&server).ask(0, SEARCH_VERSION, &asked);
        Reader(&reply.2).answers(SEARCH_VERSION, reply.0).remove(0)
    };
    let ids = |answer: Answer| match answer {
        Answer::Found { found, .. } => found.matches.iter().map(|row| row.id).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let warning = |answer: Answer| match answer {
        Answer::Found { warning, .. } => warning,
        other => panic!("{other:?}"),
    };
    // What is left out is told, and nothing where nothing is.
    let left_out = "index books: sort-by attribute 'depth' not found";
    assert_eq!(warning(found("id", "depth asc")), left_out);
    let of_notes = warning(found("year", "@id asc"));
    assert!(of_notes.contains("year") && !of_notes.contains("books"), "{of_notes}");
    assert_eq!(ids(found("depth", "@id asc")), [77]);
    assert_eq!(ids(found("year", "@id asc")), [1, 2, 5_000_000_007]);
    assert_eq!(ids(found("id", "depth asc")), [77]);
    let Answer::Error(error) = found("id", "@id asc") else { panic!("it was answered") };
    assert!(error.starts_with("index books: it differs from notes"), "{error}");
    let Answer::Error(error) = found("nowhere", "@id asc") else { panic!("it was answered") };
    assert!(error.contains("nowhere"), "{error}");
}

/// Distances are computed with 64 bits here and with 32 bits in `searchd`.
#[test]
fn rows_near_a_place() {
    let server = books("");
    let (request, theirs) = captured("python_116_geo");
    let ours = resent(&server, &request);
    let ids = |reply: &[u8]| match &answers(0x116, reply)[..] {
        [Answer::Found { found, .. }] => {
            let ids: Vec<u64> = found.matches.iter().map(|row| row.id).collect();
            (ids, found.total_found)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(ids(&ours), ids(&theirs));
}

/// In `searchd` 2.2.11, a division by zero and an undefined logarithm are 0 within expressions.
#[test]
fn null_results_become_zero() {
    let server = books("");
    let select = "1/(year-2004)+5 as x, ln(sold) as l";
    let reply = Client::connect(&server).ask(0, SEARCH_VERSION, &search(1, select, "x desc"));
    let answer = Reader(&reply.2).answers(SEARCH_VERSION, reply.0).remove(0);
    let Answer::Found { found, .. } = answer else { panic!("{answer:?}") };
    let rows = found.matches.into_iter().map(|row| (row.id, row.values));
    let float = |number: f64| Value::Float(number as f32);
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            (5_000_000_007, vec![float(1.0 / 6.0 + 5.0), float(0.0)]),
            (2, vec![float(5.0), float(7_f64.ln())]),
            (3, vec![float(5.0), float(0.0)]),
            (1, vec![float(1.0 / -5.0 + 5.0), float(5e9_f64.ln())]),
        ]
    );
}

#[test]
fn settings_without_equivalent_are_refused_by_name() {
    let server = books("");
    let error = |name: &str| {
        let (request, _) = captured(name);
        let version = u16::from_be_bytes(request[2..4].try_into().unwrap());
        match answers(version, &resent(&server, &request)).remove(0) {
            Answer::Error(error) => error,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        error("python_116_override"),
        "index books: an override of attribute 'year' is not answered: update its rows"
    );
}

/// The oracle is a table with the rows of both.
#[test]
fn several_indexes_are_searched_as_one() {
    let server = books("");
    let mut sql = crate::sphinx::sql(&server, "", "");
    for table in ["more", "whole"] {
        sql.query_drop(BOOKS[0].replace("TABLE books", &format!("TABLE {table}"))).unwrap();
    }
    for statement in [
        "INSERT INTO more SELECT * FROM books WHERE id < 3",
        "UPDATE more SET id = 9, title = 'fish' WHERE id = 1",
        "UPDATE more SET title = 'reef reef', year = 2020 WHERE id = 2",
        "REPLACE INTO whole SELECT * FROM books",
        "REPLACE INTO whole SELECT * FROM more",
        "CREATE TABLE every type='distributed' local='books' local='more'",
    ] {
        sql.query_drop(statement).unwrap();
    }
    let ask = |indexes: &str, query: &str, order: &str| {
        let body = search_in(indexes, query, 1, "*", order);
        let reply = Client::connect(&server).ask(0, SEARCH_VERSION, &body);
        comparable(&Reader(&reply.2).answers(SEARCH_VERSION, reply.0).remove(0))
    };
    for (query, order) in [
        ("reef", "@weight desc"),
        ("fish | sea", "@weight desc"),
        ("\"deep sea\" | reef", "year desc"),
        ("", "year asc"),
    ] {
        let whole = ask("whole", query, order);
        let Answer::Found { found, .. } = &whole else { panic!("{whole:?}") };
        assert!(found.total_found > 1, "{query}");
        for indexes in ["every", "books,more", "books; more", "whole every", "*"] {
            assert_eq!(ask(indexes, query, order), whole, "{indexes}: {query}");
        }
        assert_ne!(ask("more,books", query, order), whole, "{query}");
    }
    let unknown = Answer::Error("unknown local index 'nope' in search request".to_owned());
    assert_eq!(ask("books, nope", "reef", ""), unknown);
}

#[test]
fn global_variables_do_not_affect_sphinx_api() {
    let server = books("");
    let mut root = crate::sphinx::sql(&server, "", "");
    root.query_drop("SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'").unwrap();
    root.query_drop("SET GLOBAL character_set_client = gbk").unwrap();
    for name in ["perl_11e_all", "perl_11e_group", "python_116_filters"] {
        compare(&server, name);
    }
}
