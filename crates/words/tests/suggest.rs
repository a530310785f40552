//! Suggestions of similar words: their order and the bounds of the search, compared with a plain computation.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use remora_words::{
    analysis::Analyzer,
    settings::{Files, Settings},
    suggest::{SuggestOptions, WordChoice, suggest, word},
};

fn given(asked: &str, options: &[(&str, i64)], words: &[(&str, u64)]) -> Vec<(String, u32, u64)> {
    let mut all = SuggestOptions::default();
    options.iter().for_each(|(name, value)| all.set(name, *value).unwrap());
    let found = suggest(asked, &all, &mut |each| words.iter().for_each(|(word, n)| each(word, *n)));
    found.iter().map(|it| (it.word.clone(), it.distance, it.documents())).collect()
}

/// The edit distance, computed with the whole table.
fn distance(one: &str, other: &str) -> u32 {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut table = vec![vec![0_u32; other.len() + 1]; one.len() + 1];
    for at in 0..=one.len() {
        for to in 0..=other.len() {
            table[at][to] = match (at, to) {
                (0, _) => to as u32,
                (_, 0) => at as u32,
                _ => {
                    let changed = table[at - 1][to - 1] + u32::from(one[at - 1] != other[to - 1]);
                    changed.min(table[at - 1][to] + 1).min(table[at][to - 1] + 1)
                }
            };
        }
    }
    table[one.len()][other.len()]
}

const WORDS: [(&str, u64); 9] = [
    ("alpha", 3),
    ("alpa", 9),
    ("alphas", 9),
    ("alba", 9),
    ("=alpha", 50),
    ("beta", 7),
    ("alphabetical", 8),
    ("альфа", 2),
    ("a1pha", 4),
];

#[test]
fn the_nearest_come_first_then_those_of_most_documents_then_by_the_word() {
    let found = given("alpha", &[], &WORDS);
    let words: Vec<&str> = found.iter().map(|(word, ..)| word.as_str()).collect();
    assert_eq!(words, ["alpha", "alpa", "alphas", "alba", "beta"]);
    assert_eq!(given("alpha", &[("limit", 1)], &WORDS), [("alpha".to_owned(), 0, 3)]);
    assert_eq!(given("alpha", &[("max_edits", 0)], &WORDS).len(), 1);
    assert_eq!(given("alpha", &[("delta_len", 0), ("max_edits", 1)], &WORDS).len(), 1);
    let with_digits = given("alpha", &[("non_char", 1), ("max_edits", 1)], &WORDS);
    assert!(with_digits.contains(&("a1pha".to_owned(), 1, 4)));
    assert_eq!(given("", &[], &WORDS), []);
}

#[test]
fn bounded_suggestions_are_the_best() {
    let letters = ["a", "b", "c", "é"];
    let mut words = vec![String::new()];
    for _ in 0..5 {
        let longer = words.iter().flat_map(|word| letters.map(|letter| format!("{word}{letter}")));
        let longer: Vec<String> = longer.collect();
        words.extend(longer.into_iter().filter(|word| word.len() % 3 != 1));
        words.sort();
        words.dedup();
    }
    let counted: Vec<(&str, u64)> =
        words.iter().zip(0_u64..).map(|(word, n)| (word.as_str(), n * 7 % 11)).collect();
    for asked in ["abc", "cébab", "aaaa"] {
        let longest = asked.chars().count();
        let near = |word: &str| word.chars().count().abs_diff(longest) <= 3;
        let mut all: Vec<(u32, std::cmp::Reverse<u64>, &str)> = counted
            .iter()
            .filter(|(word, _)| near(word))
            .map(|(word, n)| (distance(asked, word), std::cmp::Reverse(*n), *word))
            .filter(|(distance, ..)| *distance <= 4.min(longest as u32 - 1))
            .collect();
        all.sort_unstable();
        let found = given(asked, &[("max_matches", 7), ("limit", 7)], &counted);
        let expected = all.iter().take(7);
        let expected: Vec<_> = expected.map(|(d, n, word)| ((*word).to_owned(), *d, n.0)).collect();
        assert_eq!(found, expected, "{asked}");
    }
}

#[test]
fn options_that_are_not_understood_are_refused() {
    let mut options = SuggestOptions::default();
    for (name, value, message) in [
        ("colour", 1, "unknown option colour"),
        ("limit", -1, "option limit is -1: take 0 to 10000"),
        ("sentence", 1, "option sentence is not supported: leave it out"),
    ] {
        assert_eq!(options.set(name, value).unwrap_err().to_string(), message);
    }
    assert_eq!(options, SuggestOptions::default());
}

#[test]
fn first_or_last_word_is_suggested() {
    let analyzer = Analyzer::new(&Settings::default(), &Files::none()).unwrap();
    assert_eq!(word("Alpha, beta!", WordChoice::First, &analyzer).as_deref(), Some("alpha"));
    assert_eq!(word("Alpha, beta!", WordChoice::Last, &analyzer).as_deref(), Some("beta"));
    assert_eq!(word(" - ", WordChoice::First, &analyzer), None);
}
