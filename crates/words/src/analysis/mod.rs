//! Text analysis: turns documents and queries into keywords.
//!
//! ```text
//! text ──> html ──> replacements ──> tokenizer: exceptions, characters, grams, blended words, marks
//!      ──> sequences of word forms ──> dictionary: word forms, stemming, stop words ──> keywords
//! ```

mod characters;
mod dictionary;
mod document;
mod entities;
mod exceptions;
mod forms;
mod html;
mod marks;
mod phrase_boundary;
mod query;
mod replacements;
mod spans;
mod stemming;
#[cfg(test)]
mod tests;
mod tokenizer;

pub use document::Scratch;
pub use marks::is_mark;
pub(crate) use marks::{PARAGRAPH, SENTENCE, of_zone};
pub use query::{QueryToken, QueryTokenKind, QueryTokens};
pub(crate) use spans::{Span, masked};

use self::{
    characters::CharacterTable,
    dictionary::Dictionary,
    exceptions::Exceptions,
    forms::Sequences,
    phrase_boundary::PhraseBoundary,
    replacements::Replacements,
    tokenizer::{TokenRules, Tokenizer},
};
use crate::{
    Result, WordsError,
    settings::{Files, Settings},
};

/// Makes keywords of texts and queries, according to the settings.
pub struct Analyzer {
    settings: Settings,
    rules: TokenRules,
    dictionary: Dictionary,
    sequences: Sequences,
    html: Option<html::HtmlRules>,
    replacements: Replacements,
    boundary: Option<PhraseBoundary>,
}

impl std::fmt::Debug for Analyzer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Analyzer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Analyzer {
    /// Whether words can contain blended characters. Then a blended word, or an exception with such characters, may
    /// take no position of its own.
    #[must_use]
    pub fn blends(&self) -> bool {
        !self.settings.blend_chars().is_empty()
    }

    /// Builds an analyzer from the settings and the files that they name.
    ///
    /// # Errors
    /// [`WordsError::Setting`] if a setting is invalid, a file is missing or one of its lines is invalid.
    pub fn new(settings: &Settings, files: &Files) -> Result<Self> {
        let mut exceptions = Exceptions::default();
        for (setting, text) in texts(settings, files, 2)? {
            exceptions.add(text).map_err(|message| refused(setting, message))?;
        }
        let rules = TokenRules::new(settings, CharacterTable::new(settings)?, exceptions);
        let mut dictionary = Dictionary::new(settings);
        let mut word = String::new();
        for (_, text) in texts(settings, files, 0)? {
            if settings.stopwords_unstemmed() {
                text.split_whitespace().for_each(|text| dictionary.add_whole(text, &rules));
                continue;
            }
            let mut tokenizer = Tokenizer::document(&rules, text);
            while tokenizer.next(&mut word).is_some() {
                dictionary.add_stop_word(&word);
            }
        }
        let mut sequences = Sequences::default();
        for (setting, text) in texts(settings, files, 1)? {
            forms::add(text, &rules, &mut dictionary, &mut sequences)
                .map_err(|message| refused(setting, message))?;
        }
        let html = settings.html_strip().then(|| html::HtmlRules::new(settings)).transpose()?;
        let replacements = Replacements::new(settings.regexp_filter())
            .map_err(|message| refused("regexp_filter", message))?;
        let boundary =
            PhraseBoundary::new(settings).map_err(|message| refused("phrase_boundary", message))?;
        let settings = settings.clone();
        Ok(Self { settings, rules, dictionary, sequences, html, replacements, boundary })
    }

    /// The settings from which it was built.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A text after the replacements of `regexp_filter`, as queries and documents are read.
    #[must_use]
    pub fn replaced<'t>(&self, text: &'t str) -> std::borrow::Cow<'t, str> {
        self.replacements.apply(text)
    }

    /// The tokens of a query.
    #[must_use]
    pub fn query<'a>(&'a self, text: &'a str) -> QueryTokens<'a> {
        QueryTokens::new(self, text)
    }

    /// The keyword under which a query's word is indexed; `None` for a stop word.
    ///
    /// With `exact`, the word as written (`=word`), if the settings index such words. A word with wildcards is not
    /// changed.
    #[must_use]
    pub fn keyword(&self, word: &str, exact: bool) -> Option<String> {
        let mut keyword = String::new();
        if word.contains(|c| self.rules.is_wildcard(c)) {
            keyword.push_str(word);
        } else if !self.dictionary.keyword(word, &mut keyword) {
            return None;
        }
        Some(if exact && self.dictionary.has_exact_words { format!("={word}") } else { keyword })
    }
}

/// The contents of a setting's files and of the list that may replace them; `place` is its index in
/// [`Settings::file_names`].
fn texts<'f>(
    settings: &'f Settings,
    files: &'f Files,
    place: usize,
) -> Result<Vec<(&'static str, &'f str)>> {
    let (setting, names) = settings.file_names()[place];
    let (list, entries) = settings.lists()[place];
    let texts = files.texts(setting, names)?.into_iter().map(|text| (setting, text));
    Ok(texts.chain(entries.iter().map(|entry| (list, entry.as_str()))).collect())
}

fn refused(setting: &str, message: String) -> WordsError {
    WordsError::Setting { setting: setting.to_owned(), message }
}
