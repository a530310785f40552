//! Compares two answers.

use std::collections::BTreeMap;

use super::{
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
    /// The engine's own ways to answer differ.
    Own,
}

/// How two answers differ.
#[derive(Clone, Debug)]
pub struct Difference {
    pub kind: Kind,
    /// The kinds of all differences.
    pub kinds: Vec<Kind>,
    /// How many rows are in one answer only, or have another weight.
    pub rows: usize,
    pub text: String,
}

/// Whether a weight may be one more or less. Sphinx adds up the parts of bm25 in an order that
/// depends on what its lists of hits held so far: of the words a wildcard stands for, and of
/// quorums of more than one word, once a list has ended.
pub fn tolerated(corpus: &Corpus, query: &str) -> bool {
    let expands = corpus.setting("expand_keywords").is_some();
    (corpus.has_wildcards() && (expands || has_wildcard(query))) || has_quorum(query)
}

/// Removes options that would enlarge the tolerated difference of one, or change which rows are returned.
pub fn make_tolerable(options: &mut Options) {
    let plain = Options::default();
    options.index_weight = None;
    (options.offset, options.limit) = (plain.offset, plain.limit);
}

/// A `*`, `?` or `%` that touches a word.
pub fn has_wildcard(query: &str) -> bool {
    let bytes = query.as_bytes();
    let is_word = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    (0..bytes.len())
        .any(|at| b"*?%".contains(&bytes[at]) && (is_word(at + 1) || is_word(at.wrapping_sub(1))))
}

/// Whether a proximity has a word twice.
pub fn repeats(query: &str) -> bool {
    let parts: Vec<&str> = query.split('"').collect();
    parts.windows(2).skip(1).step_by(2).any(|pair| {
        let is_proximity = pair[1].trim_start().starts_with('~');
        let letter = |c: char| !c.is_ascii_alphanumeric();
        let mut words: Vec<String> =
            pair[0].split(letter).filter(|it| !it.is_empty()).map(str::to_lowercase).collect();
        let count = words.len();
        words.sort();
        words.dedup();
        is_proximity && words.len() < count
    })
}

/// A `"..."/N` with an N other than 1.
pub fn has_quorum(query: &str) -> bool {
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
        _ => return Some(differs(vec![Kind::Error], 0, short(theirs), short(ours))),
    };
    let mut kinds = Vec::new();
    if theirs.warning != ours.warning {
        kinds.push(Kind::Warning);
    }
    if (theirs.total_found, theirs.total) != (ours.total_found, ours.total) {
        kinds.push(Kind::Count);
    }
    let (by_rows, rows) = rows_differ(&theirs.rows, &ours.rows, tolerated);
    kinds.extend(by_rows);
    // Where wildcards leave several words at one position of the query they come in an order of no known rule.
    let is_same = match query.contains(['*', '?', '%']) {
        true => sorted(&theirs.words) == sorted(&ours.words),
        false => theirs.words == ours.words,
    };
    if !is_same {
        kinds.push(Kind::Words);
    }
    let (their_rows, our_rows) = (pairs(theirs, ours), pairs(ours, theirs));
    match kinds.first()? {
        Kind::Warning => Some(differs(kinds, rows, &theirs.warning, &ours.warning)),
        Kind::Words => Some(differs(kinds, rows, &theirs.words, &ours.words)),
        Kind::Count => Some(differs(kinds, rows, shown(theirs), shown(ours))),
        _ => Some(differs(kinds, rows, their_rows, our_rows)),
    }
}

fn sorted(words: &[(String, u64, u64)]) -> Vec<&(String, u64, u64)> {
    let mut words: Vec<_> = words.iter().collect();
    words.sort();
    words
}

/// The kind of the rows' difference, and how many rows are in one answer only or have another weight.
fn rows_differ(
    theirs: &[(u64, u32)],
    ours: &[(u64, u32)],
    tolerated: bool,
) -> (Option<Kind>, usize) {
    if theirs == ours {
        return (None, 0);
    }
    let by_id = |rows: &[(u64, u32)]| rows.iter().copied().collect::<BTreeMap<u64, u32>>();
    let (their_rows, our_rows) = (by_id(theirs), by_id(ours));
    let lacking = |one: &BTreeMap<u64, u32>, other: &BTreeMap<u64, u32>| {
        one.keys().filter(|id| !other.contains_key(id)).count()
    };
    let missing = lacking(&their_rows, &our_rows) + lacking(&our_rows, &their_rows);
    let distance = |one: u32, two: u32| one.wrapping_sub(two).cast_signed().unsigned_abs();
    let most = u32::from(tolerated);
    let heavier = |(id, weight): &(&u64, &u32)| {
        our_rows.get(id).is_some_and(|ours| distance(**weight, *ours) > most)
    };
    let reweighed = their_rows.iter().filter(heavier).count();
    if missing > 0 {
        return (Some(Kind::Ids), missing + reweighed);
    }
    if reweighed > 0 {
        return (Some(Kind::Weights), reweighed);
    }
    // Other weights make another order, which must be the right one still.
    let order = |row: &(u64, u32)| (std::cmp::Reverse(row.1.cast_signed()), row.0);
    ((!tolerated || !ours.is_sorted_by_key(order)).then_some(Kind::Order), 0)
}

fn differs(
    kinds: Vec<Kind>,
    rows: usize,
    theirs: impl std::fmt::Debug,
    ours: impl std::fmt::Debug,
) -> Difference {
    let kind = kinds.first().copied().unwrap_or(Kind::Own);
    let text = format!("{kinds:?}, {rows} rows\n  theirs: {theirs:?}\n  ours:   {ours:?}");
    Difference { kind, kinds, rows, text }
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
