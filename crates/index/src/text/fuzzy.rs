//! Words within a few edits of a word, found by one walk over the ordered vocabulary.
//!
//! The terms are fed to a Levenshtein automaton byte by byte. The prefix that a term shares with the one
//! before is not fed again. If the automaton dies, all terms with that prefix are skipped. So the cost is
//! about proportional to the number of near matches.

use std::{cell::RefCell, collections::HashMap};

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};

use super::{
    atoms::{AtomKind, atoms},
    vocabulary::Vocabulary,
};

/// The longest word for which similar ones are searched, in code points; a longer one matches only itself.
const MAX_WORD_CHARS: usize = 64;

thread_local! {
    /// The tables for each distance. Building one takes milliseconds.
    static BUILDERS: RefCell<HashMap<u8, LevenshteinAutomatonBuilder>> = RefCell::default();
}

/// The terms within `distance` edits (insert, delete, replace a code point), ascending.
pub(crate) fn similar_terms(vocabulary: &Vocabulary, word: &str, distance: u8) -> Vec<(u32, u32)> {
    if word.chars().count() > MAX_WORD_CHARS {
        let numbers = vocabulary.lower_bound(word.as_bytes())..vocabulary.words();
        let begins = |&number: &u32| vocabulary.word(number).starts_with(word.as_bytes());
        let same = numbers
            .take_while(begins)
            .filter(|&number| without_character(vocabulary.word(number)) == word.as_bytes());
        return same.map(|number| (number, 1)).collect();
    }
    let automaton = BUILDERS.with_borrow_mut(|builders| {
        let builder = builders.entry(distance.min(2));
        builder
            .or_insert_with_key(|&distance| LevenshteinAutomatonBuilder::new(distance, false))
            .build_dfa(word)
    });
    walk(vocabulary, &automaton)
}

fn walk(vocabulary: &Vocabulary, automaton: &DFA) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    let mut states = vec![automaton.initial_state()];
    let mut last: Vec<u8> = Vec::new();
    let mut number = 0;
    while number < vocabulary.words() {
        let term = without_character(vocabulary.word(number));
        let shared = term.iter().zip(&last).take_while(|(a, b)| a == b).count();
        states.truncate(shared + 1);
        last.truncate(shared);
        let mut dead = false;
        for &byte in &term[last.len()..] {
            let from = states.last().copied().unwrap_or(SINK_STATE);
            let state = automaton.transition(from, byte);
            last.push(byte);
            states.push(state);
            if state == SINK_STATE {
                dead = true;
                break;
            }
        }
        if dead {
            number = behind(vocabulary, number, &last).max(number + 1);
            continue;
        }
        let state = states.last().copied().unwrap_or(SINK_STATE);
        if matches!(automaton.distance(state), Distance::Exact(_)) && is_word(term) {
            found.push((number, 1));
        }
        number += 1;
    }
    found
}

/// The word of a term, without the character that directly follows it and is indexed with it.
fn without_character(term: &[u8]) -> &[u8] {
    if term.is_ascii() {
        return term;
    }
    let last = std::str::from_utf8(term).ok().and_then(|term| atoms(term).last());
    match last {
        Some((AtomKind::Character, last)) => &term[..term.len() - last.len()],
        _ => term,
    }
}

fn is_word(term: &[u8]) -> bool {
    let first = std::str::from_utf8(term).ok().and_then(|term| atoms(term).next());
    first.is_some_and(|(kind, _)| kind == AtomKind::Word)
}

/// The first term after `number` that does not begin with `prefix`; the term `number` does.
fn behind(vocabulary: &Vocabulary, number: u32, prefix: &[u8]) -> u32 {
    if !vocabulary.word(number + 1).starts_with(prefix) {
        return number + 1;
    }
    let mut next = prefix.to_vec();
    next.push(0xff);
    vocabulary.lower_bound(&next)
}
