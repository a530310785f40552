//! Random queries with syntax errors.

use super::{corpus::Corpus, queries, queries::QueryStyle, random::Random};

/// Texts that are inserted.
const STRAYS: [&str; 46] = [
    "(",
    ")",
    "|",
    "-",
    "!",
    "@",
    "~",
    "\"",
    "/",
    "^",
    "$",
    "<",
    "=",
    "<<",
    "NEAR/2",
    "NEAR/0",
    "NEAR",
    "MAYBE",
    "SENTENCE",
    "PARAGRAPH",
    "ZONE:h1",
    "ZONESPAN:(h1,h2)",
    "ZONE:",
    "ZONE",
    "ZONE:(h1",
    "ZONESPAN:(h1,)",
    "@title",
    "@nosuch",
    "@(title",
    "@(title,",
    "@!",
    "[2]",
    "*",
    "\\",
    ",",
    "&",
    ".",
    "0",
    "1",
    "0.5",
    "1.5",
    "~2",
    "/2",
    "\"\"",
    "()",
    " ",
];

/// A query with a part removed, doubled, swapped or inserted.
pub fn query(random: &mut Random, corpus: &Corpus) -> String {
    let mut tokens = tokens(&queries::query(random, corpus, QueryStyle::Distinct));
    for _ in 0..random.between(1, 3) {
        let (one, two) = (random.below(tokens.len()), random.below(tokens.len()));
        match random.below(5) {
            0 if tokens.len() > 1 => drop(tokens.remove(one)),
            1 => tokens.insert(one, tokens[one].clone()),
            2 => tokens.swap(one, two),
            _ => tokens.insert(one, random.pick(&STRAYS).to_owned()),
        }
    }
    tokens.concat()
}

/// The parts of a query: words, numbers, spaces, and each other character for itself.
pub fn tokens(query: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut joins = false;
    for character in query.chars() {
        let is_word = character.is_alphanumeric() || character == '_';
        match tokens.last_mut() {
            Some(last) if joins && is_word => last.push(character),
            _ => tokens.push(character.to_string()),
        }
        joins = is_word;
    }
    tokens
}
