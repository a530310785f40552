//! The options of excerpts.

use crate::{Result, WordsError};

/// The longest mark in bytes: an excerpt has one per match.
const MAX_MARK_BYTES: usize = 256;
/// The most words on each side of a match; this limits the size of a passage.
const MAX_AROUND: u32 = 256;

/// Sphinx's options of excerpts, with its defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct SnippetOptions {
    pub(super) before_match: String,
    pub(super) after_match: String,
    pub(super) chunk_separator: String,
    /// The most characters; 0: no limit.
    pub(super) limit: u32,
    /// The most passages; 0: no limit.
    pub(super) limit_passages: u32,
    /// The most words; 0: no limit.
    pub(super) limit_words: u32,
    /// Words on each side of a match.
    pub(super) around: u32,
    pub(super) start_passage_id: u32,
    pub(super) html_strip_mode: HtmlStripMode,
    /// Whether passages end at sentences.
    pub(super) in_sentences: bool,
    pub(super) exact_phrase: bool,
    pub(super) query_mode: bool,
    pub(super) weight_order: bool,
    pub(super) force_all_words: bool,
    pub(super) allow_empty: bool,
}

/// How HTML tags in a text are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HtmlStripMode {
    /// Tags are ordinary text.
    None,
    /// Tags are removed if the table's settings remove them from indexed texts.
    Index,
    /// Tags are removed.
    Strip,
    /// Tags stay but contain no words.
    Retain,
}

impl Default for SnippetOptions {
    fn default() -> Self {
        Self {
            before_match: "<b>".to_owned(),
            after_match: "</b>".to_owned(),
            chunk_separator: " ... ".to_owned(),
            limit: 256,
            limit_passages: 0,
            limit_words: 0,
            around: 5,
            start_passage_id: 1,
            html_strip_mode: HtmlStripMode::Index,
            in_sentences: false,
            exact_phrase: false,
            query_mode: false,
            weight_order: false,
            force_all_words: false,
            allow_empty: false,
        }
    }
}

/// The value of an option in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue<'v> {
    /// Quoted text.
    Text(&'v str),
    /// A whole number.
    Number(i64),
}

impl SnippetOptions {
    /// Sets an option by name, ignoring case.
    ///
    /// # Errors
    /// [`WordsError::Option`] if the name is unknown, the value has the wrong type, or the option is not supported.
    pub fn set(&mut self, name: &str, value: OptionValue<'_>) -> Result<()> {
        let name = name.to_ascii_lowercase();
        let value = Given { name: &name, value };
        match name.as_str() {
            "before_match" => self.before_match = value.mark()?,
            "after_match" => self.after_match = value.mark()?,
            "chunk_separator" | "snippet_separator" => {
                self.chunk_separator = value.mark()?;
            }
            "limit" => self.limit = value.number()?,
            "limit_passages" => self.limit_passages = value.number()?,
            "limit_words" => self.limit_words = value.number()?,
            "around" => self.around = value.at_most(MAX_AROUND)?,
            "start_passage_id" => self.start_passage_id = value.number()?,
            "html_strip_mode" => self.html_strip_mode = value.strip_mode()?,
            "exact_phrase" => self.exact_phrase = value.flag()?,
            "query_mode" => self.query_mode = value.flag()?,
            "weight_order" => self.weight_order = value.flag()?,
            "force_all_words" => self.force_all_words = value.flag()?,
            "allow_empty" => self.allow_empty = value.flag()?,
            "use_boundaries" | "emit_zones" | "load_files" | "load_files_scattered" => {
                value.off()?;
            }
            "passage_boundary" => self.in_sentences = value.boundary()?,
            _ => return Err(error(format!("unknown option {name}"))),
        }
        Ok(())
    }

    /// Checks options against each other.
    ///
    /// # Errors
    /// [`WordsError::Option`] for `html_strip_mode=retain` together with a limit.
    pub(super) fn check(&self) -> Result<()> {
        let is_limited = self.limit != 0 || self.limit_passages != 0 || self.limit_words != 0;
        if self.html_strip_mode == HtmlStripMode::Retain && is_limited {
            let message = "html_strip_mode=retain requires that all limits are zero";
            return Err(error(message.to_owned()));
        }
        Ok(())
    }
}

/// An option's name with its value.
struct Given<'v> {
    name: &'v str,
    value: OptionValue<'v>,
}

impl<'v> Given<'v> {
    /// A text put around matches or between passages.
    fn mark(&self) -> Result<String> {
        let text = self.text()?;
        if text.len() > MAX_MARK_BYTES {
            let bytes = text.len();
            let message =
                format!("option {} is {bytes} bytes: take 0 to {MAX_MARK_BYTES}", self.name);
            return Err(error(message));
        }
        Ok(text.to_owned())
    }

    fn at_most(&self, most: u32) -> Result<u32> {
        let number = self.number()?;
        if number > most {
            return Err(error(format!("option {} is {number}: take 0 to {most}", self.name)));
        }
        Ok(number)
    }

    fn text(&self) -> Result<&'v str> {
        match self.value {
            OptionValue::Text(text) => Ok(text),
            OptionValue::Number(_) => Err(self.wrong_kind()),
        }
    }

    fn whole(&self) -> Result<i64> {
        match self.value {
            OptionValue::Number(number) => Ok(number),
            OptionValue::Text(_) => Err(self.wrong_kind()),
        }
    }

    fn number(&self) -> Result<u32> {
        let number = self.whole()?;
        u32::try_from(number).ok().filter(|number| *number <= i32::MAX as u32).ok_or_else(|| {
            error(format!("option {} is {number}: take 0 to {}", self.name, i32::MAX))
        })
    }

    fn flag(&self) -> Result<bool> {
        Ok(self.whole()? != 0)
    }

    fn strip_mode(&self) -> Result<HtmlStripMode> {
        match self.text()? {
            "none" => Ok(HtmlStripMode::None),
            "" | "index" => Ok(HtmlStripMode::Index),
            "strip" => Ok(HtmlStripMode::Strip),
            "retain" => Ok(HtmlStripMode::Retain),
            other => Err(error(format!("unknown html_strip_mode={other}"))),
        }
    }

    fn off(&self) -> Result<()> {
        if self.flag()? { Err(self.unsupported()) } else { Ok(()) }
    }

    /// Whether passages end at sentences.
    fn boundary(&self) -> Result<bool> {
        match self.text()? {
            "" | "none" => Ok(false),
            "sentence" => Ok(true),
            "paragraph" | "zone" => Err(self.unsupported()),
            other => Err(error(format!("unknown passage_boundary={other}"))),
        }
    }

    fn wrong_kind(&self) -> WordsError {
        error(format!("unexpected option {} type", self.name))
    }

    fn unsupported(&self) -> WordsError {
        error(format!("option {} is not supported: leave it out", self.name))
    }
}

fn error(message: String) -> WordsError {
    WordsError::Option(message)
}
