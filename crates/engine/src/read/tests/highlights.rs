//! HIGHLIGHT: what is marked, and what is shown around it.

use proptest::prelude::*;

use super::{
    random::Random,
    searches::{answer, term},
    table::{row, schema, single},
};
use crate::{Highlight, SearchRequest};

fn style(snippet_chars: usize, max_fragments: usize) -> Option<Highlight> {
    Some(Highlight { open: "[".into(), close: "]".into(), snippet_chars, max_fragments })
}

fn snippet(text: &str, request: SearchRequest) -> String {
    let view = single(schema(false), vec![row(1, text, "")]);
    answer(&view, &request).hits[0].snippet.clone().unwrap()
}

fn marked(text: &str, query: &str) -> String {
    snippet(text, SearchRequest { highlight: style(1000, 3), ..term(query) })
}

#[test]
fn highlighting_marks_the_original_text_of_a_match() {
    let cases = [
        ("The RAIN in Spain", "rain", "The [RAIN] in Spain "),
        ("ＡＢＣ and abc", "abc", "[ＡＢＣ] and [abc] "),
        ("Straße", "strasse", "[Straße] "),
        ("cafe\u{301} au lait", "café", "[cafe\u{301}] au lait "),
        ("東京都と京都", "京都", "東[京都]と[京都] "),
        ("ｶﾞﾗｽの靴", "ガラス", "[ｶﾞﾗｽ]の靴 "),
        ("rainrain", "rain", "[rainrain] "),
        ("ﬁne", "fin", "[ﬁn]e "),
        ("a\r\nb", "a", "[a]\r\nb "),
        ("x ㄱㅏ y", "가", "x [ㄱㅏ ]y "),
    ];
    for (text, query, expected) in cases {
        assert_eq!(marked(text, query), expected, "{query} in {text}");
    }
}

#[test]
fn windows_around_matches_are_joined() {
    let text = "one two three rain four five six seven eight nine rain ten eleven rain";
    let shown = |chars, fragments| {
        snippet(text, SearchRequest { highlight: style(chars, fragments), ..term("rain") })
    };
    assert_eq!(shown(6, 3), "ee [rain] fo...ne [rain] te...en [rain] ");
    assert_eq!(shown(6, 1), "ee [rain] fo");
    assert_eq!(
        shown(24, 2),
        "e two three [rain] four five s... eight nine [rain] ten eleven [rain] "
    );
}

#[test]
fn snippet_without_a_match_is_the_beginning() {
    let mut request = term("antikithera");
    request.selection.fuzzy = Some(1);
    request.highlight = style(8, 3);
    assert_eq!(snippet("the antikythera mechanism", request), "the anti");
}

proptest! {
    #[test]
    fn highlighting_only_adds_marks(seed: u64) {
        let mut random = Random::new(seed);
        let text = random.text(10) + "alpha";
        let marked = marked(&text, "a");
        prop_assert_eq!(marked.replace(['[', ']'], ""), text + " ");
        prop_assert!(marked.contains("[a"));
    }
}
