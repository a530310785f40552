//! Compares two answers.

use crate::{
    corpus::Corpus,
    engine::{Found, Options},
};

/// The most rows of a differing answer in a report.
const SHOWN: usize = 12;

/// The kind of a difference. A shrunk case must have the same kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Error,
    Warning,
    Count,
    Ids,
    Weights,
    Order,
    Words,
}

/// The size of a difference between two answers.
#[derive(Clone, Debug)]
pub struct Difference {
    pub kind: Kind,
    pub text: String,
}

/// Whether a weight may be one more or less. Sphinx adds up the parts of bm25 in an order that
/// depends on what its lists of hits held so far: of the words a wildcard stands for, and of
/// quorums of more than one word, once a list has ended.
pub fn tolerated(corpus: &Corpus, query: &str) -> bool {
    (corpus.has_wildcards() && has_wildcard(query)) || has_quorum(query)
}

/// Removes options that would enlarge the tolerated difference of one, or change which rows are returned.
pub fn make_tolerable(options: &mut Options) {
    let plain = Options::default();
    options.index_weight = None;
    (options.offset, options.limit) = (plain.offset, plain.limit);
}

/// Whether Sphinx's answer follows no known rule: stars in phrases of a SENTENCE, hits that an unfound part
/// leaves behind within a MAYBE, the positions that hits of a word have which a quorum or a proximity has twice, and
/// chains of NEARs or a NEAR of composed parts, for which 2.2.11 writes behind its arrays.
pub fn undefined(query: &str) -> bool {
    let has = |mark: &str| query.contains(mark);
    let nears = query.matches("NEAR/").count();
    let is_composed = has("(") || has("<<") || has("\"");
    let stars = has("SENTENCE") && has(" * ") || has("PARAGRAPH") && has(" * ");
    stars || repeats(query) || has("MAYBE") && is_composed || nears > 1 || nears == 1 && is_composed
}

/// A `*`, `?` or `%` that touches a word.
fn has_wildcard(query: &str) -> bool {
    let bytes = query.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    (0..bytes.len())
        .any(|at| b"*?%".contains(&bytes[at]) && (is_word(at + 1) || is_word(at.wrapping_sub(1))))
}

/// Whether a quorum or a proximity has a word twice.
fn repeats(query: &str) -> bool {
    let parts: Vec<&str> = query.split('"').collect();
    parts.windows(2).skip(1).step_by(2).any(|pair| {
        let is_quorum = pair[1].trim_start().starts_with(['/', '~']);
        let letter = |c: char| !c.is_ascii_alphanumeric();
        let mut words: Vec<String> =
            pair[0].split(letter).filter(|it| !it.is_empty()).map(str::to_lowercase).collect();
        let count = words.len();
        words.sort();
        words.dedup();
        is_quorum && words.len() < count
    })
}

/// A `"..."/N` with an N other than 1.
fn has_quorum(query: &str) -> bool {
    let behind = query.split('"').filter_map(|part| part.trim_start().strip_prefix('/'));
    let mut thresholds = behind.map(|text| text.trim_start().split([' ', ')', '|']).next());
    thresholds.any(|threshold| threshold != Some("1"))
}

/// A description of how the second answer differs.
pub fn difference(
    query: &str,
    theirs: &Result<Found, String>,
    ours: &Result<Found, String>,
    tolerated: bool,
) -> Option<Difference> {
    let (theirs, ours) = match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => (theirs, ours),
        (Err(theirs), Err(ours)) if theirs == ours => return None,
        _ => return differs(Kind::Error, short(theirs), short(ours)),
    };
    if theirs.warning != ours.warning {
        return differs(Kind::Warning, &theirs.warning, &ours.warning);
    }
    if (theirs.total_found, theirs.total) != (ours.total_found, ours.total) {
        return differs(Kind::Count, shown(theirs), shown(ours));
    }
    if let Some(kind) = rows_differ(&theirs.rows, &ours.rows, tolerated) {
        return differs(kind, pairs(theirs, ours), pairs(ours, theirs));
    }
    // Where stars leave several words at one position of the query they come in an order of no known rule.
    if query.contains('*') && sorted(&theirs.words) == sorted(&ours.words) {
        return None;
    }
    if theirs.words != ours.words {
        return differs(Kind::Words, &theirs.words, &ours.words);
    }
    None
}

fn sorted(words: &[(String, u64, u64)]) -> Vec<&(String, u64, u64)> {
    let mut words: Vec<_> = words.iter().collect();
    words.sort();
    words
}

fn rows_differ(theirs: &[(u64, u32)], ours: &[(u64, u32)], tolerated: bool) -> Option<Kind> {
    if theirs == ours {
        return None;
    }
    let by_id = |rows: &[(u64, u32)]| {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        rows
    };
    let (their_rows, our_rows) = (by_id(theirs), by_id(ours));
    if !their_rows.iter().map(|row| row.0).eq(our_rows.iter().map(|row| row.0)) {
        return Some(Kind::Ids);
    }
    let distance = |one: u32, two: u32| one.wrapping_sub(two).cast_signed().unsigned_abs();
    let most = u32::from(tolerated);
    if their_rows.iter().zip(&our_rows).any(|(one, two)| distance(one.1, two.1) > most) {
        return Some(Kind::Weights);
    }
    // Other weights make another order, which must be the right one still.
    let order = |row: &(u64, u32)| (std::cmp::Reverse(row.1.cast_signed()), row.0);
    (!tolerated || !ours.is_sorted_by_key(order)).then_some(Kind::Order)
}

fn differs(
    kind: Kind,
    theirs: impl std::fmt::Debug,
    ours: impl std::fmt::Debug,
) -> Option<Difference> {
    let text = format!("{kind:?}\n  theirs: {theirs:?}\n  ours:   {ours:?}");
    Some(Difference { kind, text })
}

fn short(answer: &Result<Found, String>) -> Result<Found, &String> {
    answer.as_ref().map(shown)
}

/// Only the first rows.
fn shown(found: &Found) -> Found {
    let rows = found.rows.iter().take(SHOWN).copied().collect();
    Found { rows, ..found.clone() }
}

/// The first rows that differ from the other answer.
fn pairs(found: &Found, other: &Found) -> Vec<(u64, u32)> {
    let is_same = |number: usize, row: &(u64, u32)| other.rows.get(number) == Some(row);
    let rows = found.rows.iter().enumerate().filter(|(number, row)| !is_same(*number, row));
    rows.map(|(_, row)| *row).take(SHOWN).collect()
}
