//! Maps a word to its keyword: word forms, stemming, stop words.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    stemming::Stemming,
    tokenizer::{TokenRules, Tokenizer},
};
use crate::settings::Settings;

/// The replacement of a word (word form).
pub(super) struct Form {
    pub word: Box<str>,
    /// Whether it replaces a stem instead of a word.
    pub after_stemming: bool,
}

/// Word forms, stemmers and stop words of the settings.
pub(super) struct Dictionary {
    pub forms: FxHashMap<Box<str>, Form>,
    pub stemming: Stemming,
    pub has_exact_words: bool,
    stop_words: FxHashSet<Box<str>>,
    are_stop_words_unstemmed: bool,
}

impl Dictionary {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            forms: FxHashMap::default(),
            stemming: Stemming::new(settings),
            has_exact_words: settings.index_exact_words(),
            stop_words: FxHashSet::default(),
            are_stop_words_unstemmed: settings.stopwords_unstemmed(),
        }
    }

    /// Whether every word is its own keyword.
    pub(super) fn is_plain(&self) -> bool {
        self.forms.is_empty()
            && self.stemming.is_empty()
            && self.stop_words.is_empty()
            && !self.has_exact_words
    }

    pub(super) fn add_stop_word(&mut self, word: &str) {
        let mut word = word.to_owned();
        if !self.are_stop_words_unstemmed {
            self.stemming.apply(&mut word);
        }
        self.stop_words.insert(word.into());
    }

    /// Adds a stop word that is not stemmed. Ignored unless the whole text is one word.
    pub(super) fn add_whole(&mut self, text: &str, rules: &TokenRules) {
        let mut word = String::new();
        let token = Tokenizer::document(rules, text).next(&mut word);
        if token.is_some_and(|token| token.start == 0 && token.end == text.len()) {
            self.add_stop_word(&word);
        }
    }

    /// Writes the keyword of the word into `keyword`; false for a stop word.
    pub(super) fn keyword(&self, word: &str, keyword: &mut String) -> bool {
        if self.are_stop_words_unstemmed && self.stop_words.contains(word) {
            return false;
        }
        keyword.clear();
        match self.forms.get(word) {
            Some(form) if !form.after_stemming => keyword.push_str(&form.word),
            _ => {
                keyword.push_str(word);
                self.stemming.apply(keyword);
                if let Some(form) = self.forms.get(keyword.as_str())
                    && form.after_stemming
                {
                    keyword.clear();
                    keyword.push_str(&form.word);
                }
            }
        }
        self.are_stop_words_unstemmed || !self.stop_words.contains(keyword.as_str())
    }
}
