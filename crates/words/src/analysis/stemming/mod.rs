//! Stemming: reduces the forms of a word to one keyword.

mod english;
mod russian;
mod snowball;
mod soundex;

use crate::settings::{Morphology, Settings};

/// The stemmers of a table, in order.
pub(super) struct Stemming {
    morphology: Vec<Morphology>,
    least_length: usize,
}

impl Stemming {
    pub(super) fn new(settings: &Settings) -> Self {
        let least_length = settings.min_stemming_len() as usize;
        Self { morphology: settings.morphology().to_vec(), least_length }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.morphology.is_empty()
    }

    /// Applies the first stemmer that changes the word.
    pub(super) fn apply(&self, word: &mut String) {
        if self.least_length > 1 && word.chars().count() < self.least_length {
            return;
        }
        let Some((first, others)) = self.morphology.split_first() else { return };
        if others.is_empty() {
            return change(*first, word);
        }
        let before = word.clone();
        for one in &self.morphology {
            change(*one, word);
            if *word != before {
                return;
            }
        }
    }
}

fn change(morphology: Morphology, word: &mut String) {
    match morphology {
        Morphology::English => english::stem(word),
        Morphology::Russian => russian::stem(word),
        Morphology::Soundex => soundex::encode(word),
        Morphology::Snowball(number) => snowball::stem(number, word),
    }
}
