//! The keyword settings of a table, with Sphinx's names, defaults and limits.

mod blending;
mod charset;
mod expansion;
mod files;
mod lists;
mod morphology;

pub(crate) use blending::BlendMode;
pub(crate) use charset::Charset;
pub use expansion::WordExpansion;
pub use files::Files;
pub(crate) use morphology::{Morphology, SNOWBALL};

use crate::{Result, WordsError};

/// How texts become keywords.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    charset_table: String,
    ignore_chars: String,
    min_word_len: u32,
    overshort_step: u32,
    /// `None`: as [`Settings::ngram_len`] says.
    ngram_len: Option<u32>,
    ngram_chars: String,
    stopwords: Vec<String>,
    stopwords_list: Vec<String>,
    stopword_step: u32,
    stopwords_unstemmed: bool,
    wordforms: Vec<String>,
    wordforms_list: Vec<String>,
    exceptions: Vec<String>,
    exceptions_list: Vec<String>,
    blend_chars: String,
    blend_mode: BlendMode,
    morphology: Vec<Morphology>,
    min_stemming_len: u32,
    index_exact_words: bool,
    expand_keywords: WordExpansion,
    min_prefix_len: u32,
    min_infix_len: u32,
    html_strip: bool,
    html_index_attrs: String,
    html_remove_elements: String,
    regexp_filter: Vec<String>,
    phrase_boundary: String,
    phrase_boundary_step: u32,
    index_sp: bool,
    index_zones: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            charset_table: String::new(),
            ignore_chars: String::new(),
            min_word_len: 1,
            overshort_step: 1,
            ngram_len: None,
            ngram_chars: String::new(),
            stopwords: Vec::new(),
            stopwords_list: Vec::new(),
            stopword_step: 1,
            stopwords_unstemmed: false,
            wordforms: Vec::new(),
            wordforms_list: Vec::new(),
            exceptions: Vec::new(),
            exceptions_list: Vec::new(),
            blend_chars: String::new(),
            blend_mode: BlendMode::default(),
            morphology: Vec::new(),
            min_stemming_len: 1,
            index_exact_words: false,
            expand_keywords: WordExpansion::NONE,
            min_prefix_len: 0,
            min_infix_len: 0,
            html_strip: false,
            html_index_attrs: String::new(),
            html_remove_elements: String::new(),
            regexp_filter: Vec::new(),
            phrase_boundary: String::new(),
            phrase_boundary_step: 0,
            index_sp: false,
            index_zones: String::new(),
        }
    }
}

/// The names of all settings, in the order of [`Settings::to_pairs`].
const NAMES: [&str; 30] = [
    "charset_table",
    "ignore_chars",
    "min_word_len",
    "overshort_step",
    "ngram_len",
    "ngram_chars",
    "stopwords",
    "stopwords_list",
    "stopword_step",
    "stopwords_unstemmed",
    "wordforms",
    "wordforms_list",
    "exceptions",
    "exceptions_list",
    "blend_chars",
    "blend_mode",
    "morphology",
    "min_stemming_len",
    "index_exact_words",
    "expand_keywords",
    "min_prefix_len",
    "min_infix_len",
    "html_strip",
    "html_index_attrs",
    "html_remove_elements",
    "regexp_filter",
    "phrase_boundary",
    "phrase_boundary_step",
    "index_sp",
    "index_zones",
];

/// Sphinx's settings without effect here: they make phrases faster, which find the same rows.
const HARMLESS: [&str; 2] = ["bigram_freq_words", "bigram_index"];

/// Sphinx's settings that are not supported; they may only be turned off.
const UNSUPPORTED: [&str; 4] = ["hitless_words", "infix_fields", "prefix_fields", "rlp_context"];

/// The longest word in characters; longer ones are cut.
pub(crate) const MAX_WORD: u32 = 42;
/// The most positions between two phrases.
const MAX_BOUNDARY_STEP: u32 = 100_000;

impl Settings {
    /// Sets a setting by its Sphinx name, to a value as in sphinx.conf.
    ///
    /// # Errors
    /// [`WordsError::Setting`] if the name is unknown or the value is invalid.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let mut changed = self.clone();
        changed
            .try_set(name, value.trim())
            .and_then(|()| changed.check())
            .map_err(|message| WordsError::Setting { setting: name.to_owned(), message })?;
        *self = changed;
        Ok(())
    }

    fn try_set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "charset_table" => self.charset_table = charset(value)?,
            "ignore_chars" => self.ignore_chars = charset(value)?,
            "min_word_len" => self.min_word_len = number(value, 1..=MAX_WORD)?,
            "overshort_step" => self.overshort_step = number(value, 0..=1)?,
            "ngram_len" => self.ngram_len = Some(number(value, 0..=3)?),
            "ngram_chars" => self.ngram_chars = charset(value)?,
            "stopwords" => self.stopwords = lists::file_names(value),
            "stopwords_list" => self.stopwords_list = lists::split(value),
            "stopword_step" => self.stopword_step = number(value, 0..=1)?,
            "stopwords_unstemmed" => self.stopwords_unstemmed = number(value, 0..=1)? == 1,
            "wordforms" => self.wordforms = lists::file_names(value),
            "wordforms_list" => self.wordforms_list = lists::split(value),
            "exceptions" => self.exceptions = lists::file_names(value),
            "exceptions_list" => self.exceptions_list = lists::split(value),
            "blend_chars" => self.blend_chars = charset(value)?,
            "blend_mode" => self.blend_mode = BlendMode::parse(value)?,
            "morphology" => self.morphology = morphology::parse(value)?,
            "min_stemming_len" => self.min_stemming_len = number(value, 1..=MAX_WORD)?,
            "index_exact_words" => self.index_exact_words = number(value, 0..=1)? == 1,
            "expand_keywords" => self.expand_keywords = WordExpansion::parse(value)?,
            "min_prefix_len" => self.min_prefix_len = number(value, 0..=MAX_WORD)?,
            "min_infix_len" => self.min_infix_len = number(value, 0..=MAX_WORD)?,
            "html_strip" => self.html_strip = number(value, 0..=1)? == 1,
            "html_index_attrs" => self.html_index_attrs = value.to_owned(),
            "html_remove_elements" => self.html_remove_elements = value.to_owned(),
            "regexp_filter" => self.regexp_filter = lists::split(value),
            "phrase_boundary" => self.phrase_boundary = charset(value)?,
            "phrase_boundary_step" => {
                self.phrase_boundary_step = number(value, 0..=MAX_BOUNDARY_STEP)?;
            }
            "index_sp" => self.index_sp = number(value, 0..=1)? == 1,
            "index_zones" => self.index_zones = zones(value)?,
            _ if HARMLESS.contains(&name) => {}
            _ if !Self::is_setting(name) => return Err("there is no such setting".to_owned()),
            _ if ["", "0", "none"].contains(&value) => {}
            _ => return Err("not supported: leave it out".to_owned()),
        }
        Ok(())
    }

    /// Checks settings against each other.
    fn check(&self) -> Result<(), String> {
        self.check_signs()?;
        if self.charset_table.is_empty() || self.ignore_chars.is_empty() {
            return Ok(());
        }
        let mut letters = std::collections::HashSet::new();
        self.charset()?.for_each(&mut |c, _| {
            letters.insert(c);
        });
        let mut both = None;
        Charset::parse(&self.ignore_chars)?.for_each(&mut |c, _| {
            both = both.or(letters.contains(&c).then_some(c));
        });
        match both {
            None => Ok(()),
            Some(c) => Err(format!(
                "U+{:X} is in charset_table and in ignore_chars: take it out of one",
                c as u32
            )),
        }
    }

    /// Checks that the signs that end sentences have no other meaning.
    fn check_signs(&self) -> Result<(), String> {
        if !self.index_sp {
            return Ok(());
        }
        let mut taken = None;
        for list in [&self.ngram_chars, &self.phrase_boundary, &self.ignore_chars] {
            Charset::parse(list)?.for_each(&mut |c, _| {
                taken = taken.or(matches!(c, '.' | '?' | '!').then_some(c));
            });
        }
        taken.map_or(Ok(()), |sign| {
            Err(format!(
                "index_sp requires that character '{sign}' is not in ngram_chars, phrase_boundary, or ignore_chars"
            ))
        })
    }

    /// Whether this is the name of a setting, supported or not.
    #[must_use]
    pub fn is_setting(name: &str) -> bool {
        [&NAMES[..], &HARMLESS, &UNSUPPORTED].iter().any(|names| names.contains(&name))
    }

    /// The names and values of all settings that differ from their defaults, in a fixed order.
    #[must_use]
    pub fn to_pairs(&self) -> Vec<(&'static str, String)> {
        let default = Self::default();
        let pair = |name: &'static str| {
            let value = self.value(name);
            (value != default.value(name)).then_some((name, value))
        };
        NAMES.into_iter().filter_map(pair).collect()
    }

    fn value(&self, name: &str) -> String {
        let flag = |is_on: bool| u32::from(is_on).to_string();
        match name {
            "charset_table" => self.charset_table.clone(),
            "ignore_chars" => self.ignore_chars.clone(),
            "min_word_len" => self.min_word_len.to_string(),
            "overshort_step" => self.overshort_step.to_string(),
            "ngram_len" => self.ngram_len.map(|length| length.to_string()).unwrap_or_default(),
            "ngram_chars" => self.ngram_chars.clone(),
            "stopwords" => self.stopwords.join(" "),
            "stopwords_list" => lists::join(&self.stopwords_list),
            "stopword_step" => self.stopword_step.to_string(),
            "stopwords_unstemmed" => flag(self.stopwords_unstemmed),
            "wordforms" => self.wordforms.join(" "),
            "wordforms_list" => lists::join(&self.wordforms_list),
            "exceptions" => self.exceptions.join(" "),
            "exceptions_list" => lists::join(&self.exceptions_list),
            "blend_chars" => self.blend_chars.clone(),
            "blend_mode" => self.blend_mode.to_list(),
            "morphology" => morphology::to_list(&self.morphology),
            "min_stemming_len" => self.min_stemming_len.to_string(),
            "index_exact_words" => flag(self.index_exact_words),
            "expand_keywords" => self.expand_keywords.name().to_owned(),
            "min_prefix_len" => self.min_prefix_len.to_string(),
            "min_infix_len" => self.min_infix_len.to_string(),
            "html_strip" => flag(self.html_strip),
            "html_index_attrs" => self.html_index_attrs.clone(),
            "html_remove_elements" => self.html_remove_elements.clone(),
            "regexp_filter" => lists::join(&self.regexp_filter),
            "phrase_boundary" => self.phrase_boundary.clone(),
            "phrase_boundary_step" => self.phrase_boundary_step.to_string(),
            "index_sp" => flag(self.index_sp),
            "index_zones" => self.index_zones.clone(),
            _ => String::new(),
        }
    }

    /// Whether words are also indexed as written, as `=word`.
    ///
    /// Never if nothing changes words. Always if they are stemmed and wildcards are allowed, because wildcards match
    /// words as written.
    #[must_use]
    pub fn index_exact_words(&self) -> bool {
        let is_stemmed = !self.morphology.is_empty();
        let has_forms = !self.wordforms.is_empty() || !self.wordforms_list.is_empty();
        is_stemmed && self.has_wildcards() || self.index_exact_words && (is_stemmed || has_forms)
    }

    /// The forms of a word that queries look for beside it.
    #[must_use]
    pub fn expand_keywords(&self) -> WordExpansion {
        self.expand_keywords
    }

    /// The shortest literal prefix of `word*`; 0 if such queries are not allowed.
    #[must_use]
    pub fn min_prefix_len(&self) -> u32 {
        self.min_prefix_len
    }

    /// The shortest literal part of `*word*`; 0 if such queries are not allowed.
    #[must_use]
    pub fn min_infix_len(&self) -> u32 {
        self.min_infix_len
    }

    /// Whether queries may contain wildcards.
    #[must_use]
    pub fn has_wildcards(&self) -> bool {
        self.min_prefix_len > 0 || self.min_infix_len > 0
    }

    /// How many positions a stop word takes: 0 or 1.
    #[must_use]
    pub fn stopword_step(&self) -> u32 {
        self.stopword_step
    }

    /// How many positions a word shorter than `min_word_len` takes: 0 or 1.
    #[must_use]
    pub fn overshort_step(&self) -> u32 {
        self.overshort_step
    }

    /// The settings that name files, with the file names.
    pub(crate) fn file_names(&self) -> [(&'static str, &[String]); 3] {
        [
            ("stopwords", &self.stopwords),
            ("wordforms", &self.wordforms),
            ("exceptions", &self.exceptions),
        ]
    }

    /// The lists of entries given instead of files.
    pub(crate) fn lists(&self) -> [(&'static str, &[String]); 3] {
        [
            ("stopwords_list", &self.stopwords_list),
            ("wordforms_list", &self.wordforms_list),
            ("exceptions_list", &self.exceptions_list),
        ]
    }

    /// The characters of words.
    pub(crate) fn charset(&self) -> Result<Charset, String> {
        match self.charset_table.as_str() {
            "" => Ok(Charset::unicode()),
            list => Charset::parse(list),
        }
    }

    pub(crate) fn ignore_chars(&self) -> &str {
        &self.ignore_chars
    }

    pub(crate) fn blend_chars(&self) -> &str {
        &self.blend_chars
    }

    /// The characters that are indexed as n-grams of `ngram_len`. With the default characters of words, those of the
    /// scripts that write without spaces: between two spaces stands a sentence there, which nobody looks for whole.
    pub(crate) fn ngram_chars(&self) -> &str {
        match self.ngram_chars.as_str() {
            _ if self.ngram_len() == 0 => "",
            "" if self.charset_table.is_empty() => "cont",
            chars => chars,
        }
    }

    /// The length of n-grams; 0 if there are none. The default is 1 with the default characters of words, else 0.
    pub(crate) fn ngram_len(&self) -> u32 {
        self.ngram_len.unwrap_or_else(|| u32::from(self.charset_table.is_empty()))
    }

    pub(crate) fn min_word_len(&self) -> u32 {
        self.min_word_len
    }

    pub(crate) fn blend_mode(&self) -> &BlendMode {
        &self.blend_mode
    }

    pub(crate) fn morphology(&self) -> &[Morphology] {
        &self.morphology
    }

    pub(crate) fn min_stemming_len(&self) -> u32 {
        self.min_stemming_len
    }

    pub(crate) fn stopwords_unstemmed(&self) -> bool {
        self.stopwords_unstemmed
    }

    pub(crate) fn html_strip(&self) -> bool {
        self.html_strip
    }

    pub(crate) fn html_index_attrs(&self) -> &str {
        &self.html_index_attrs
    }

    pub(crate) fn html_remove_elements(&self) -> &str {
        &self.html_remove_elements
    }

    pub(crate) fn regexp_filter(&self) -> &[String] {
        &self.regexp_filter
    }

    /// The characters that end a phrase if a separator is behind them, and the positions that the next word is farther.
    pub(crate) fn phrase_boundary(&self) -> (&str, u32) {
        (&self.phrase_boundary, self.phrase_boundary_step)
    }

    /// Whether the ends of sentences and, of texts without their HTML tags, paragraphs are indexed.
    pub(crate) fn index_sp(&self) -> bool {
        self.index_sp
    }

    /// The elements of HTML that are zones, separated by commas; a `*` behind the beginning of names.
    pub(crate) fn index_zones(&self) -> &str {
        &self.index_zones
    }

    /// Whether sentences, paragraphs or zones are indexed.
    pub(crate) fn has_marks(&self) -> bool {
        self.index_sp || !self.index_zones.is_empty()
    }

    /// The value of a setting that lists these entries.
    #[must_use]
    pub fn list_of(entries: &[String]) -> String {
        lists::join(entries)
    }
}

fn charset(value: &str) -> Result<String, String> {
    Charset::parse(value)?;
    Ok(value.to_owned())
}

fn number(value: &str, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        format!("'{value}' is not allowed: take a number from {} to {}", range.start(), range.end())
    })
}

/// A list of elements, each by name or by the beginning of its name with a `*` behind.
fn zones(value: &str) -> Result<String, String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    for zone in value.split(',').map(str::trim).filter(|zone| !zone.is_empty()) {
        let name = zone.strip_suffix('*').unwrap_or(zone);
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || "_.:".contains(c));
        if !begins || !name.chars().all(is_of_name) {
            return Err(format!("unexpected char near '{zone}' in index_zones"));
        }
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: [(&str, &str); 30] = [
        ("charset_table", "0..9, english, _"),
        ("ignore_chars", "U+AD"),
        ("min_word_len", "3"),
        ("overshort_step", "0"),
        ("ngram_len", "1"),
        ("ngram_chars", "U+3000..U+2FA1F"),
        ("stopwords", "a.txt b.txt"),
        ("stopwords_list", "the; of;a\\;b"),
        ("stopword_step", "0"),
        ("stopwords_unstemmed", "1"),
        ("wordforms", "forms.txt"),
        ("wordforms_list", "walks > walk; u s a => usa"),
        ("exceptions", "exceptions.txt"),
        ("exceptions_list", "C++ => cplusplus; a\\\\\\;b => ab"),
        ("blend_chars", "&, +"),
        ("blend_mode", "trim_both, skip_pure"),
        ("morphology", "stem_en, libstemmer_french"),
        ("min_stemming_len", "4"),
        ("index_exact_words", "1"),
        ("expand_keywords", "exact"),
        ("min_prefix_len", "3"),
        ("min_infix_len", "2"),
        ("html_strip", "1"),
        ("html_index_attrs", "img=alt,title; a=title;"),
        ("html_remove_elements", "style, script"),
        ("regexp_filter", "(\\d+)\" => \\1 inch; a\\;b => c"),
        ("phrase_boundary", ":, -"),
        ("phrase_boundary_step", "100"),
        ("index_sp", "1"),
        ("index_zones", "h*, th, title"),
    ];

    #[test]
    fn settings_round_trip_as_pairs() {
        assert_eq!(Settings::default().to_pairs(), []);
        let mut all = Settings::default();
        for (name, value) in EACH {
            assert!(Settings::is_setting(name));
            let mut one = Settings::default();
            one.set(name, value).unwrap();
            all.set(name, value).unwrap();
            for settings in [&one, &all] {
                let mut again = Settings::default();
                for (name, value) in settings.to_pairs() {
                    again.set(name, &value).unwrap();
                }
                assert_eq!(again, *settings, "{name}");
            }
            assert_eq!(one.to_pairs().len(), 1, "{name}");
        }
        let names: Vec<_> = all.to_pairs().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn unknown_settings_are_refused_and_change_nothing() {
        let wrong = [
            ("colour", "red", "there is no such setting"),
            ("min_word_len", "0", "from 1 to 42"),
            ("min_word_len", "few", "from 1 to 42"),
            ("charset_table", "A..Z->a", "different lengths"),
            ("morphology", "lemmatize_en", "not supported"),
            ("morphology", "stem_xx", "take stem_en"),
            ("morphology", "libstemmer_xx", "take one of"),
            ("blend_mode", "skip_pure", "nothing would be indexed"),
            ("hitless_words", "all", "not supported"),
            ("index_sp", "2", "from 0 to 1"),
            ("index_zones", "h1, b c", "unexpected char near 'b c'"),
            ("index_zones", "*", "unexpected char near '*'"),
            ("expand_keywords", "2", "take 0, 1, star or exact"),
            ("ngram_len", "4", "from 0 to 3"),
        ];
        for (name, value, message) in wrong {
            let mut settings = Settings::default();
            let error = settings.set(name, value).unwrap_err().to_string();
            assert!(error.starts_with(name) && error.contains(message), "{error}");
            assert_eq!(settings, Settings::default());
        }
        let mut settings = Settings::default();
        settings.set("index_sp", "0").unwrap();
        settings.set("hitless_words", "").unwrap();
        settings.set("bigram_index", "all").unwrap();
        assert_eq!(settings, Settings::default());
        settings.set("charset_table", "a..z, -").unwrap();
        assert!(settings.set("ignore_chars", "-").unwrap_err().to_string().contains("U+2D"));
        settings.set("phrase_boundary", "!").unwrap();
        let error = settings.set("index_sp", "1").unwrap_err().to_string();
        assert!(error.contains("character '!' is not in ngram_chars"), "{error}");
    }

    #[test]
    fn exact_words_follow_what_changes_words() {
        let exact = |pairs: &[(&str, &str)]| {
            let mut settings = Settings::default();
            pairs.iter().for_each(|(name, value)| settings.set(name, value).unwrap());
            settings.index_exact_words()
        };
        let (asked, stem) = (("index_exact_words", "1"), ("morphology", "stem_en"));
        let (forms, infix) = (("wordforms_list", "a > b"), ("min_infix_len", "2"));
        assert!(!exact(&[asked]) && !exact(&[stem]) && !exact(&[infix, forms]));
        assert!(exact(&[asked, stem]) && exact(&[asked, forms]) && exact(&[stem, infix]));
    }
}
