//! Recorded excerpts and keywords of Sphinx 2.2.11, and properties of every excerpt.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{cell::Cell, fmt::Write as _, sync::Arc, time::Instant};

use remora_words::{
    analysis::Analyzer,
    keywords,
    settings::{Files, Settings},
    snippets::{OptionValue, SnippetOptions, Snippets},
};

const ANSWERS: &str = include_str!("answers/excerpts.txt");

fn analyzer(settings: &str) -> Arc<Analyzer> {
    let mut all = Settings::default();
    all.set("charset_table", "sphinx22").unwrap();
    for setting in settings.split(' ').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        all.set(name, value).unwrap();
    }
    Arc::new(Analyzer::new(&all, &Files::none()).unwrap())
}

fn options(text: &str) -> Result<SnippetOptions, String> {
    let mut options = SnippetOptions::default();
    for option in text.split(' ').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap();
        let number = value.parse().map(OptionValue::Number);
        let value = number.unwrap_or(OptionValue::Text(value));
        options.set(name, value).map_err(|error| error.to_string())?;
    }
    Ok(options)
}

/// The queries of a section with their answers.
fn section(name: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let begin = format!("[{name}]\n");
    let mut lines = ANSWERS.split_once(&begin).unwrap().1.lines();
    std::iter::from_fn(move || Some((lines.next()?, lines.next()?.strip_prefix("=> ")?)))
}

fn excerpt(
    query: &str,
    text: &str,
    analyzer: &Arc<Analyzer>,
    given: &str,
) -> Result<String, String> {
    let fields = ["title".to_owned()];
    let snippets = Snippets::new(query, &fields, analyzer, options(given)?);
    Ok(snippets.map_err(|error| error.to_string())?.of(text))
}

#[test]
fn excerpts_are_those_of_sphinx() {
    let (mut wrong, mut count) = (String::new(), 0);
    for (asked, theirs) in section("excerpts") {
        let asked: Vec<&str> = asked.split('\t').collect();
        let &[settings, given, query, text] = &asked[..] else { break };
        count += 1;
        let text = text.replace("\\n", "\n");
        let ours = excerpt(query, &text, &analyzer(settings), given);
        let ours = ours.unwrap_or_else(|error| format!("error {error}")).replace('\n', "\\n");
        if ours != theirs {
            writeln!(wrong, "{settings} | {given} | {query}\n  {theirs}\n  {ours}").unwrap();
        }
    }
    assert!(count > 150, "{count}");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{wrong}", wrong.lines().count() / 3);
}

/// The matching parts of a row are marked in each field that the query searches.
#[test]
fn matches_are_marked_in_each_field() {
    let (analyzer, fields) = (analyzer(""), ["title".to_owned(), "body".to_owned()]);
    let made = |query: &str, field, text: &str| {
        let options = options("allow_empty=1").unwrap();
        let snippets = Snippets::of_search(query, &fields, field, &analyzer, options);
        snippets.unwrap().of(text)
    };
    for (query, field, text, expected) in [
        // The other word is in the other field.
        ("one robots", Some(0), "Book one", "Book <b>one</b>"),
        ("@title one", Some(0), "Book one", "Book <b>one</b>"),
        ("@title one", Some(1), "Book one", ""),
        ("@title one", None, "Book one", "Book <b>one</b>"),
        ("@!title one | book", Some(0), "Book one", ""),
        ("one -book", Some(1), "Book one", "Book <b>one</b>"),
        ("one MAYBE book", Some(1), "Book one", "<b>Book one</b>"),
        ("\"book one\"", Some(1), "one book one", "one <b>book one</b>"),
        ("\"book two\" | one", Some(1), "book one", "book <b>one</b>"),
        ("\"book two three\"/2", Some(1), "a book", "a <b>book</b>"),
        ("book << two", Some(1), "two book", ""),
        ("(book NEAR/2 two) one", Some(1), "one two a book", "<b>one two</b> a <b>book</b>"),
        ("", Some(1), "one", ""),
    ] {
        assert_eq!(made(query, field, text), expected, "{query} in {field:?}");
    }
    let phrase = options("exact_phrase=1").unwrap();
    assert!(Snippets::of_search("a", &fields, None, &analyzer, phrase).is_err());
}

/// The interruption is polled repeatedly within one text, and an interrupted excerpt gives nothing.
#[test]
fn excerpt_generation_is_interruptible() {
    let (analyzer, text) = (analyzer(""), "the reef fish and a sea ".repeat(10_000));
    for (given, query) in [
        ("", "reef fish"),
        ("limit_words=9 around=2", "reef fish sea"),
        ("force_all_words=1", "reef fish"),
        ("exact_phrase=1", "reef fish and"),
        ("query_mode=1", "\"fish reef\"~5 (reef << sea) (fish NEAR/3 sea) \"a sea\""),
    ] {
        let snippets = Snippets::new(query, &[], &analyzer, options(given).unwrap()).unwrap();
        let questions = Cell::new(0);
        let until = |end: usize| {
            questions.set(0);
            snippets.of_unless(&text, &|| {
                questions.set(questions.get() + 1);
                questions.get() >= end
            })
        };
        assert_eq!(until(usize::MAX), Some(snippets.of(&text)), "{given}");
        let all = questions.get();
        assert!(all > 20, "{given}: {all}");
        for end in [1, all / 2, all] {
            assert_eq!((until(end), questions.get()), (None, end), "{given}");
        }
    }
}

#[test]
fn keywords_are_those_of_sphinx() {
    let mut count = 0;
    for (asked, theirs) in section("keywords") {
        let (settings, text) = asked.split_once('\t').unwrap();
        let found = keywords::keywords(text, &analyzer(settings));
        let each = found.iter().map(|keyword| {
            format!("{}:{}:{}", keyword.position, keyword.tokenized, keyword.normalized)
        });
        assert_eq!(each.collect::<Vec<_>>().join(" "), theirs, "{asked}");
        count += 1;
    }
    assert!(count > 7, "{count}");
}

#[test]
fn options_that_are_not_understood_are_refused() {
    for (given, message) in [
        ("colour=1", "unknown option colour"),
        ("limit=x", "unexpected option limit type"),
        ("before_match=1", "unexpected option before_match type"),
        ("limit=-1", "option limit is -1: take 0 to 2147483647"),
        ("use_boundaries=1", "option use_boundaries is not supported: leave it out"),
        ("load_files=1", "option load_files is not supported: leave it out"),
        ("passage_boundary=zone", "option passage_boundary is not supported: leave it out"),
        ("passage_boundary=word", "unknown passage_boundary=word"),
        ("html_strip_mode=all", "unknown html_strip_mode=all"),
    ] {
        assert_eq!(options(given), Err(message.to_owned()));
    }
    options("use_boundaries=0 emit_zones=0 load_files=0 load_files_scattered=0").unwrap();
    options("passage_boundary=none").unwrap();
}

#[test]
fn empty_texts_and_queries_have_excerpts() {
    let plain = analyzer("");
    for (query, text) in [("", ""), ("", "alpha"), ("alpha", ""), ("\"", "\u{0}"), ("*", "*")] {
        for given in ["", "query_mode=1", "exact_phrase=1", "limit=1 around=0", "limit=0"] {
            if let Ok(found) = excerpt(query, text, &plain, given) {
                assert_eq!(found, text, "{query} {given}");
            }
        }
    }
}

#[test]
fn hostile_texts_and_queries_take_bounded_time() {
    let begin = Instant::now();
    let plain = analyzer("min_infix_len=1");
    let size = 1 << 17;
    let texts =
        ["a ".repeat(size / 2), "a b ".repeat(size / 4), "<".repeat(size), "a<b ".repeat(9)];
    let queries = ["a ".repeat(4_096), "a* ".repeat(4_000), "\"a a a a b\"".to_owned()];
    for text in &texts {
        for query in &queries {
            for given in ["", "query_mode=1", "exact_phrase=1 around=200", "html_strip_mode=strip"]
            {
                let found = excerpt(query, text, &plain, given);
                assert!(found.is_err() || found.unwrap().len() < size * 8, "{given}");
            }
        }
    }
    // Overlapping windows, places that are never all there, words that come one by one.
    let words = |count: usize| (0..count).map(|n| format!("y{n} ")).collect::<String>();
    let rare = format!("x {} {}", words(63), "x z z z y1 z z ".repeat(size / 16));
    for (text, query, given) in [
        ("x y ".repeat(size), "x", "limit=0 passage_boundary=sentence around=256"),
        ("a ".repeat(size), "\"*a a* *a* zzz\"~5", "query_mode=1"),
        (rare, &format!("x {}", words(63)), ""),
    ] {
        assert!(excerpt(query, &text, &plain, given).unwrap().len() < size * 32, "{given}");
    }
    for given in ["around=65536", &format!("before_match={}", "<".repeat(300))] {
        let refused = excerpt("a", "a", &plain, given).unwrap_err();
        assert!(refused.contains("take 0 to 256"), "{refused}");
    }
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}
