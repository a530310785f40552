//! Documents that are read, and the errors of those that are not.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

fn shape(rows: Rows, key: &[&str]) -> Shape {
    Shape { rows, key: key.iter().map(|&path| path.to_owned()).collect() }
}

fn read(text: &str, rows: Rows) -> Result<String, String> {
    read_document(text, 1, &shape(rows, &[]), false).map(|document| document.text.into_owned())
}

fn extended(text: &str) -> Result<String, String> {
    let document = read_document(text, 1, &shape(Rows::Documents, &[]), true);
    document.map(|document| document.text.into_owned())
}

#[test]
fn numbers_keep_their_digits() {
    let text = r#" { "a" : [ 9223372036854775807, 18446744073709551615, -0, 1.10, 1e2,
        123456789012345678901234567890.123456789 ], "b \" 1" : "7", "c": {"d": -1.5E-3} } "#;
    let expected = concat!(
        r#"{"a":[9223372036854775807,18446744073709551615,-0,1.10,1e2,"#,
        r#"123456789012345678901234567890.123456789],"b \" 1":"7","c":{"d":-1.5E-3}}"#
    );
    assert_eq!(read(text, Rows::Documents).unwrap(), expected);
    // The JSON of a row is the original text.
    assert_eq!(read(text, Rows::Members).unwrap(), text);
}

/// As by every other door of a collection. Columns of tables have types that say what becomes of digits.
#[test]
fn integers_that_a_collection_would_lose_digits_of_are_refused() {
    let text = "{\"a\": 1,\n\"b\": [7, -9223372036854775809]}";
    let refused = "an integer beyond 64 bits would lose digits: give it as a text";
    let expected = format!("{refused} at byte 29 of line 2, in b[1]");
    for rows in [Rows::Documents, Rows::IdsAndDocuments] {
        assert_eq!(read(text, rows).unwrap_err(), expected);
    }
    assert_eq!(read(text, Rows::Members).unwrap(), text);
    let decimal = |digits| format!("{{\"a\": {{\"$numberDecimal\": \"{digits}\"}}}}");
    assert!(extended(&decimal("18446744073709551616")).unwrap_err().starts_with(refused));
    // These are doubles, with all their digits.
    for digits in ["100000000000000000000", "18446744073709551615", "1.8446744073709551616e30"] {
        assert!(extended(&decimal(digits)).unwrap().contains(digits));
        assert!(read(&format!("{{\"a\": {digits}}}"), Rows::Documents).is_ok());
    }
}

#[test]
fn hostile_files_are_refused_with_a_position() {
    let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(99), "]".repeat(99));
    let cases = [
        (
            r#"{"a":1,"b":{"c":1,"c":2}}"#,
            r#"the name "c" comes twice in an object: keep one at byte 21, in b"#,
        ),
        (r#"{"a":["x",{"b":"\ud800"}]}"#, ", in a[1].b"),
        (r#"{"a":"\udc00\ud800"}"#, "not JSON: "),
        (r#"{"a":NaN}"#, "not JSON: expected value at byte 6, in a"),
        (r#"{"a":-Infinity}"#, "not JSON: invalid number at byte 7, in a"),
        (r#"{"a":1e999}"#, "not JSON: number out of range at byte 10, in a"),
        (r#"{"a":01}"#, "not JSON: "),
        (r#"{"a":1,}"#, "not JSON: trailing comma at byte 8"),
        (r#"{"a":1"#, "not JSON: EOF while parsing an object at byte 6"),
        ("{\"a\":\n\n{\"b\" 1}}", "not JSON: expected `:` at byte 6 of line 3, in a"),
        (r#"{"a":1} x"#, "not JSON: trailing characters at byte 9"),
        ("[1]", "not a JSON object: [1]"),
        ("7", "not a JSON object: 7"),
        (&deep, "nests deeper than 100 levels: flatten the document, or leave the inner part out"),
        ("", "not JSON: EOF while parsing a value"),
    ];
    for (text, message) in cases {
        for rows in [Rows::Members, Rows::FlatMembers, Rows::Documents] {
            let found = read(text, rows).unwrap_err();
            assert!(found.contains(message), "{text}: {found} / {message}");
        }
    }
    let long = "[".repeat(200_000);
    assert!(
        read(&format!("{{\"a\":{long}"), Rows::Members).unwrap_err().contains("deeper than 100")
    );
    let many: String = (0..100).map(|at| format!("\"m{at}\":1,")).collect();
    assert!(
        read(&format!("{{{many}\"m50\":2}}"), Rows::Members)
            .unwrap_err()
            .contains("\"m50\" comes twice")
    );
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_DOCUMENT_BYTES));
    assert!(read(&long, Rows::Documents).unwrap_err().contains("16 MiB"));
    assert!(read(&long, Rows::Members).is_ok());
}

#[test]
fn the_deepest_document_is_read() {
    let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(98), "]".repeat(98));
    assert_eq!(read(&deep, Rows::Documents).unwrap(), deep);
}

#[test]
fn members_of_nested_objects_are_columns() {
    let text = r#"{"a":{"b":1,"c":{"d":"x","e":{}}},"f":[{"g":{"h":1}}],"i":null,"j.k":2,"l":{"m":{"n":[]}}}"#;
    let flat =
        r#"{"a.b":1,"a.c.d":"x","a.c.e":{},"f":[{"g":{"h":1}}],"i":null,"j.k":2,"l.m.n":[]}"#;
    assert_eq!(read(text, Rows::FlatMembers).unwrap(), flat);
    assert_eq!(read(flat, Rows::FlatMembers).unwrap(), flat);
    let message = read(r#"{"a.b":1,"a":{"b":2}}"#, Rows::FlatMembers).unwrap_err();
    assert!(message.contains("two members lead to the column \"a.b\""), "{message}");
    assert_eq!(read("{}", Rows::FlatMembers).unwrap(), "{}");
}

#[test]
fn keys_are_found_at_their_paths() {
    let keys = |text: &str, paths: &[&str], rows| {
        read_document(text, 1, &shape(rows, paths), false).map(|it| (it.text.into_owned(), it.keys))
    };
    let text = r#"{"a":{"b":{"c":18446744073709551615}},"a.b":"x","n":null,"l":[1]}"#;
    let found = keys(text, &["a.b.c"], Rows::Documents).unwrap();
    assert_eq!(found, (text.to_owned(), vec![Some("18446744073709551615".to_owned())]));
    for (path, key) in [("n", None), ("a.x", None), ("a.b", Some("\"x\"")), ("b", None)] {
        // The last value that the path leads to; here a.b is an object first.
        let found = keys(text, &[path], Rows::Documents);
        match path {
            "a.b" => assert!(found.unwrap_err().contains("the key is an object")),
            _ => assert_eq!(found.unwrap().1, [key.map(str::to_owned)], "{path}"),
        }
    }
    assert!(keys(text, &["l"], Rows::Documents).unwrap_err().contains("the key is an array"));
    // In a row the key is a column of its own.
    let text = r#" {"x":[5,"6"],"a":{"b":"é\n","d":-7.50},"c":1} "#;
    let (text, found) = keys(text, &["a.b", "c", "a.d"], Rows::Members).unwrap();
    assert_eq!(found, [Some("\"é\\n\""), Some("1"), Some("-7.50")].map(|it| it.map(str::to_owned)));
    let row: Json = serde_json::from_str(&text).unwrap();
    let expected =
        json!({"x": [5, "6"], "a": {"b": "é\n", "d": -7.5}, "c": 1, "a.b": "é\n", "a.d": -7.5});
    assert_eq!(row, expected);
}

#[test]
fn extended_json_is_what_it_stands_for() {
    let cases = [
        (r#"{"$oid":"5d505646cf6d4fe581014ab2"}"#, r#""5d505646cf6d4fe581014ab2""#),
        (r#"{"$numberLong":"-9223372036854775808"}"#, "-9223372036854775808"),
        (r#"{"$numberInt":"7"}"#, "7"),
        (r#"{"$numberDouble":"-0.0"}"#, "-0.0"),
        (
            r#"{"$numberDecimal":"1234567890.12345678901234567890"}"#,
            "1234567890.12345678901234567890",
        ),
        (r#"{"$numberDecimal":"1E+3"}"#, "1E+3"),
        (r#"{"$date":"2019-08-11T17:54:14.692Z"}"#, r#""2019-08-11T17:54:14.692Z""#),
        (r#"{"$date":"2019-08-11T17:54:14.692+0200"}"#, r#""2019-08-11T15:54:14.692Z""#),
        (r#"{"$date":{"$numberLong":"1565546054692"}}"#, r#""2019-08-11T17:54:14.692Z""#),
        (r#"{"$date":-1}"#, r#""1969-12-31T23:59:59.999Z""#),
        (r#"{"$binary":{"base64":"AQL/","subType":"00"}}"#, r#""0102ff""#),
        (r#"{"$binary":"AQI=","$type":"80"}"#, r#""0102""#),
        (
            r#"{"$binary":{"subType":"04","base64":"c//SZESzTGmQ6OfR38A11A=="}}"#,
            r#""73ffd264-44b3-4c69-90e8-e7d1dfc035d4""#,
        ),
        (
            r#"{"$uuid":"73ffd264-44b3-4c69-90e8-e7d1dfc035d4"}"#,
            r#""73ffd264-44b3-4c69-90e8-e7d1dfc035d4""#,
        ),
        (r#"{"$regularExpression":{"pattern":"^H","options":"i"}}"#, r#""/^H/i""#),
        (r#"{"$regex":"^H","$options":""}"#, r#""/^H/""#),
        (r#"{"$timestamp":{"t":1565545664,"i":1}}"#, r#"{"i":1,"t":1565545664}"#),
        (r#"{"$symbol":"s"}"#, r#""s""#),
        (r#"{"$code":"function() {}"}"#, r#""function() {}""#),
        (r#"{"$undefined":true}"#, "null"),
        (
            r#"{"$ref":"c","$id":{"$oid":"5d505646cf6d4fe581014ab2"}}"#,
            r#"{"$ref":"c","$id":"5d505646cf6d4fe581014ab2"}"#,
        ),
    ];
    for (text, value) in cases {
        // The surrounding numbers are left alone.
        let text = format!(r#"{{"a":1.0,"b":[{text},2.0],"c":{text},"d":3.0}}"#);
        let expected = format!(r#"{{"a":1.0,"b":[{value},2.0],"c":{value},"d":3.0}}"#);
        assert_eq!(extended(&text).unwrap(), expected);
    }
    for (text, message) in [
        (r#"{"$oid":"5d"}"#, "is not 24 hexadecimal digits"),
        (r#"{"$numberDouble":"NaN"}"#, "is no number that JSON and doubles have"),
        (r#"{"$numberDecimal":"-Infinity"}"#, "is no number that JSON and doubles have"),
        (r#"{"$numberDecimal":"1E+6144"}"#, "is no number that JSON and doubles have"),
        (r#"{"$numberLong":"9223372036854775808"}"#, "is no such integer"),
        (r#"{"$numberLong":5}"#, "is followed by 5, not by a text"),
        (r#"{"$date":"yesterday"}"#, "is neither milliseconds since 1970"),
        (r#"{"$date":{"$numberLong":"999999999999999999"}}"#, "is neither milliseconds"),
        (r#"{"$binary":{"base64":"?","subType":"00"}}"#, "$binary has no text of base64"),
        (r#"{"$minKey":1}"#, "the extended JSON of $minKey is not supported"),
        (r#"{"$code":"x","$scope":{}}"#, "the extended JSON of $code with $scope is not supported"),
        (r#"{"$oid":"5d505646cf6d4fe581014ab2","$oid":"x"}"#, "stands beside"),
    ] {
        let text = format!(r#"{{"a":{{"b":{text}}}}}"#);
        let found = extended(&text).unwrap_err();
        assert!(found.contains(message) && found.ends_with(", in a.b"), "{found}");
        // Without `extended` they are ordinary objects.
        let plain = read(&text, Rows::Documents);
        assert!(plain.is_ok() || text.matches("$oid").count() == 2, "{plain:?}");
    }
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_filter("JSON has none", |it| it.is_finite()).prop_map(Json::from),
        "[-a1\"\\\\\u{e9}\u{1f600}\n$.]{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-c.\"]{0,2}", inner, 0..4)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

/// The members by their dotted paths; `None` if two paths are equal.
fn flat(value: &Json) -> Option<serde_json::Map<String, Json>> {
    fn add(path: &str, value: &Json, out: &mut serde_json::Map<String, Json>) -> Option<()> {
        match value {
            Json::Object(members) if !members.is_empty() => members
                .iter()
                .try_for_each(|(name, value)| add(&format!("{path}.{name}"), value, out)),
            _ => out.insert(path.to_owned(), value.clone()).is_none().then_some(()),
        }
    }
    let mut out = serde_json::Map::new();
    for (name, value) in value.as_object()? {
        add(name, value, &mut out)?;
    }
    Some(out)
}

proptest! {
    #[test]
    fn document_equals_the_parsed_json(
        members in prop::collection::btree_map("[a-c.]{0,2}", any_json(), 0..4),
        pretty in any::<bool>(),
    ) {
        let document = Json::Object(members.into_iter().collect());
        let text = match pretty {
            true => serde_json::to_string_pretty(&document).unwrap(),
            false => document.to_string(),
        };
        prop_assert_eq!(read(&text, Rows::Documents).unwrap(), document.to_string());
        prop_assert_eq!(read(&text, Rows::Members).unwrap(), text.clone());
        match flat(&document) {
            None => prop_assert!(read(&text, Rows::FlatMembers).is_err()),
            Some(members) => {
                let found: Json = serde_json::from_str(&read(&text, Rows::FlatMembers).unwrap()).unwrap();
                prop_assert_eq!(found, Json::Object(members));
            }
        }
    }

    #[test]
    fn any_text_is_read_as_serde_reads_it_or_refused(text in "([{}\\[\\]\",:a\\\\u0-9de.+-]|\"a\":){0,40}") {
        let parsed = serde_json::from_str::<serde_json::Map<String, Json>>(&text);
        for rows in [Rows::Members, Rows::FlatMembers, Rows::Documents] {
            let found = read(&text, rows);
            if let Err(error) = &parsed {
                prop_assert!(found.is_err(), "{} {:?}", error, found);
            }
        }
        let _ = extended(&text);
    }
}
