//! A table's options: what they mean, and how SHOW CREATE TABLE prints them after the closing parenthesis.

use remora_engine::{ColumnDef, WordsDef};
use remora_mysql::{Collation, ErrorCode, messages};
use remora_words::{WordsError, settings::Settings};

use super::kind::{named_charset, named_collation};
use crate::{
    Error, Result,
    parse::define::{DISTRIBUTED, TableOption, WORDS, quoted_text},
};

/// A table's options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableOptions {
    /// The default collation of text columns.
    pub collation: Collation,
    /// Whether it was given explicitly.
    pub collation_said: bool,
    /// The next AUTO_INCREMENT value, if one was given.
    pub auto_increment: Option<u64>,
    /// COMMENT.
    pub comment: String,
    /// Other options, as written: ROW_FORMAT=DYNAMIC.
    pub others: Vec<String>,
    /// The settings of ranked search, and `words`, its columns.
    pub words: Vec<(String, String)>,
    /// Whether `type='pq'` was given: the columns describe documents, and the rows are queries.
    /// Only parsed statements set it.
    pub is_percolate: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            collation: Collation::UTF8MB4_0900_AI_CI,
            collation_said: false,
            auto_increment: None,
            comment: String::new(),
            others: Vec::new(),
            words: Vec::new(),
            is_percolate: false,
        }
    }
}

impl TableOptions {
    /// Sets what options say, one after the other.
    ///
    /// # Errors
    /// 1115 and 1273 for unknown character sets and collations, 1253 for those that do not belong together, 1064 and
    /// 1235 for settings of ranked search.
    pub(crate) fn set_all(&mut self, options: &[TableOption]) -> Result<()> {
        let charset = options.iter().rev().find_map(|option| match option {
            TableOption::Charset(name) => Some(named_charset(name)),
            _ => None,
        });
        let collation = options.iter().rev().find_map(|option| match option {
            TableOption::Collation(name) => Some(named_collation(name)),
            _ => None,
        });
        if let (Some(charset), Some(collation)) = (charset.transpose()?, collation.transpose()?)
            && charset.charset() != collation.charset()
        {
            let message = messages::collation_charset_mismatch(collation.name(), charset.charset());
            return Err(Error::new(ErrorCode::CollationCharsetMismatch, message));
        }
        options.iter().try_for_each(|option| self.set(option))
    }

    /// Sets what stored options say, up to one that is not understood.
    pub(crate) fn set_stored(&mut self, options: &[TableOption]) {
        let _ = options.iter().try_for_each(|option| self.set(option));
    }

    fn set(&mut self, option: &TableOption) -> Result<()> {
        match option {
            TableOption::Charset(name) => {
                let named = named_charset(name)?;
                if !(self.collation_said && self.collation.charset() == named.charset()) {
                    self.collation = named;
                }
                self.collation_said = true;
            }
            TableOption::Collation(name) => {
                self.collation = named_collation(name)?;
                self.collation_said = true;
            }
            TableOption::Engine(name) | TableOption::Type(name) => {
                if name.eq_ignore_ascii_case(DISTRIBUTED) {
                    let message = "type='distributed' stands alone, with local='table' for each part: its \
                                   columns are theirs";
                    return Err(Error::new(ErrorCode::ParseError, message));
                }
                self.is_percolate |= option.is_percolate();
            }
            TableOption::AutoIncrement(next) => self.auto_increment = Some(*next),
            TableOption::Comment(comment) => self.comment.clone_from(comment),
            TableOption::Other { name, value } => {
                if matches!(name.as_str(), "ROW_FORMAT" | "MAX_ROWS" | "MIN_ROWS") {
                    self.others.push(format!("{name}={value}"));
                }
            }
            TableOption::Words { name, value } => self.set_words(name, value)?,
        }
        Ok(())
    }

    /// The settings of ranked search as options.
    pub(crate) fn of_words(words: &WordsDef, columns: &[ColumnDef]) -> Vec<(String, String)> {
        let names = words.columns.iter().filter_map(|&place| columns.get(place));
        let names: Vec<&str> = names.map(|column| column.name.as_str()).collect();
        let columns = (WORDS.to_owned(), names.join(","));
        std::iter::once(columns).chain(words.settings.iter().cloned()).collect()
    }

    fn set_words(&mut self, name: &str, value: &str) -> Result<()> {
        if FILES.contains(&name) {
            let message = format!(
                "{name} names a file of the server: give the list itself as {name}_list, or \
                 declare the words in remora.toml"
            );
            return Err(Error::new(ErrorCode::NotSupported, message));
        }
        if name == WORDS && value.trim().is_empty() {
            // Removes ranked search. Settings after this declare it anew.
            self.words.clear();
            return Ok(());
        }
        if name != WORDS {
            Settings::default().set(name, value).map_err(|error| wrong_setting(&error))?;
        }
        self.words.retain(|(other, _)| other != name);
        self.words.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// The settings of ranked search.
    ///
    /// # Errors
    /// 1064 if they contradict each other.
    pub(crate) fn word_settings(&self) -> Result<Settings> {
        let mut settings = Settings::default();
        for (name, value) in self.words.iter().filter(|(name, _)| name != WORDS) {
            settings.set(name, value).map_err(|error| wrong_setting(&error))?;
        }
        Ok(settings)
    }

    /// The options as SHOW CREATE TABLE prints them. `auto_increment` is the next value, if the table has such a
    /// column.
    pub(crate) fn written(&self, auto_increment: Option<u64>) -> String {
        let mut out = "ENGINE=InnoDB".to_owned();
        if let Some(next) = auto_increment.filter(|next| *next > 1) {
            out.push_str(&format!(" AUTO_INCREMENT={next}"));
        }
        let info = self.collation.info();
        out.push_str(&format!(" DEFAULT CHARSET={}", info.charset));
        if !info.is_default || info.charset == "utf8mb4" {
            out.push_str(&format!(" COLLATE={}", info.name));
        }
        for other in &self.others {
            out.push(' ');
            out.push_str(other);
        }
        for (name, value) in &self.words {
            out.push_str(&format!(" {name}={}", quoted_text(value)));
        }
        if !self.comment.is_empty() {
            out.push_str(&format!(" COMMENT={}", quoted_text(&self.comment)));
        }
        out
    }
}

/// Settings with file names.
const FILES: [&str; 3] = ["stopwords", "wordforms", "exceptions"];

/// Error 1064 with the reason.
fn wrong_setting(error: &WordsError) -> Error {
    Error::new(ErrorCode::ParseError, error.to_string())
}
