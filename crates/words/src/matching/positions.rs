//! The words at each position of a query.

use std::collections::HashMap;

use crate::rank::QueryWord;

/// Collects the words of a query, except excluded ones, during planning.
#[derive(Default)]
pub(super) struct QueryPositions {
    words: HashMap<String, Noted>,
    /// Pairs of position and word number, in the order recorded.
    notes: Vec<(u32, usize)>,
}

/// A distinct word.
struct Noted {
    number: usize,
    /// The least of its positions.
    first: u32,
    /// The sum of idf of its terms, and how many they are.
    idf: f32,
    terms: u32,
}

impl QueryPositions {
    /// Records a term of a word; `idf` is given at the word's first occurrence.
    pub fn note(&mut self, word: &str, position: u32, idf: Option<f32>) {
        if !self.words.contains_key(word) {
            let number = self.words.len();
            let noted = Noted { number, first: position, idf: 0.0, terms: 0 };
            self.words.insert(word.to_owned(), noted);
        }
        let Some(noted) = self.words.get_mut(word) else { return };
        noted.first = noted.first.min(position);
        if let Some(idf) = idf {
            noted.idf += idf;
            noted.terms += 1;
        }
        self.notes.push((position, noted.number));
    }

    /// The words at the positions from 0 to the last one.
    pub fn query_words(self, last: u32) -> Vec<QueryWord> {
        let mut at = vec![QueryWord::default(); last as usize + 1];
        let mut terms = vec![0_u32; at.len()];
        let mut firsts = vec![0; self.words.len()];
        for noted in self.words.values() {
            if let Some(first) = firsts.get_mut(noted.number) {
                *first = noted.first;
            }
            let place = noted.first as usize;
            if let (Some(at), Some(terms)) = (at.get_mut(place), terms.get_mut(place)) {
                at.idf += noted.idf;
                at.is_first = true;
                *terms += noted.terms;
            }
        }
        for (at, terms) in at.iter_mut().zip(terms) {
            if terms > 1 {
                at.idf /= terms as f32;
            }
        }
        for (position, number) in self.notes {
            if let Some(at) = at.get_mut(position as usize) {
                at.first = firsts.get(number).copied();
            }
        }
        at
    }
}
