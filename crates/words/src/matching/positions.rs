//! What stands at each position of a query.

use std::collections::HashMap;

use crate::rank::QueryWord;

/// The words of a query, while it is planned.
#[derive(Default)]
pub(super) struct Positions {
    at: Vec<At>,
    /// Where each word stands first.
    firsts: HashMap<String, u32>,
}

#[derive(Clone, Copy, Default)]
struct At {
    /// The sum of idf of the terms of which one stands there first, and how many they are.
    idf: f32,
    terms: u32,
    first: Option<u32>,
}

impl Positions {
    /// Notes a term of a word that is not excluded; `idf` where the word stands first.
    pub fn note(&mut self, word: &str, position: u32, idf: Option<f32>) {
        let first = match self.firsts.get(word) {
            Some(&first) => first,
            None => *self.firsts.entry(word.to_owned()).or_insert(position),
        };
        let place = position as usize;
        if self.at.len() <= place {
            self.at.resize(place + 1, At::default());
        }
        let Some(at) = self.at.get_mut(place) else { return };
        at.first = Some(first);
        if let Some(idf) = idf.filter(|_| first == position) {
            at.idf += idf;
            at.terms += 1;
        }
    }

    /// From position 0 to the last one.
    pub fn words(self, last: u32) -> Vec<QueryWord> {
        let mut words: Vec<QueryWord> = self
            .at
            .into_iter()
            .map(|at| QueryWord {
                idf: if at.terms > 1 { at.idf / at.terms as f32 } else { at.idf },
                is_first: at.terms > 0,
                first: at.first,
            })
            .collect();
        words.resize(last as usize + 1, QueryWord::default());
        words
    }
}
