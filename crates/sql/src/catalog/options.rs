//! A table's options, as they are after the closing parenthesis in SHOW CREATE TABLE.
//!
//! ```text
//! options := (option [","])*
//! option  := ["DEFAULT"] ("CHARSET" | "CHARACTER" "SET" | "COLLATE") ["="] name
//!          | "AUTO_INCREMENT" ["="] number | "COMMENT" ["="] text | "ENGINE" ["="] name
//!          | word_setting ["="] (text | number)      morphology='stem_en', words='title,body'
//!          | name ["="] (name | number | text)        of no meaning here, but kept
//! ```

use remora_engine::{ColumnDef, WordsDef};
use remora_mysql::{Collation, ErrorCode, TokenKind};
use remora_words::{WordsError, settings::Settings};

use super::{
    column::quoted_text,
    kind::{named_charset, named_collation, text_or_name},
};
use crate::{Error, Result, parse::Tokens};

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
    /// Parses all options that follow.
    pub(crate) fn parse(&mut self, tokens: &mut Tokens<'_>) -> Result<()> {
        let mut charset = None;
        while self.parse_one(tokens, &mut charset)? {
            tokens.take(",");
        }
        Ok(())
    }

    /// Parses an option if one is next.
    pub(crate) fn parse_one(
        &mut self,
        tokens: &mut Tokens<'_>,
        charset: &mut Option<Collation>,
    ) -> Result<bool> {
        const OTHERS: [&str; 18] = [
            "AUTOEXTEND_SIZE",
            "AVG_ROW_LENGTH",
            "CHECKSUM",
            "COMPRESSION",
            "CONNECTION",
            "DELAY_KEY_WRITE",
            "ENCRYPTION",
            "INSERT_METHOD",
            "KEY_BLOCK_SIZE",
            "MAX_ROWS",
            "MIN_ROWS",
            "PACK_KEYS",
            "PASSWORD",
            "ROW_FORMAT",
            "STATS_AUTO_RECALC",
            "STATS_PERSISTENT",
            "STATS_SAMPLE_PAGES",
            "TABLESPACE",
        ];
        let mut ahead = *tokens;
        ahead.accept("DEFAULT");
        if ahead.accept("CHARSET") || ahead.accept_all("CHARACTER SET") {
            ahead.take("=");
            let named = named_charset(&text_or_name(&mut ahead)?)?;
            *charset = Some(named);
            if !(self.collation_said && self.collation.charset() == named.charset()) {
                self.collation = named;
            }
            self.collation_said = true;
            *tokens = ahead;
            return Ok(true);
        }
        if ahead.accept("COLLATE") {
            ahead.take("=");
            self.collation = named_collation(&text_or_name(&mut ahead)?)?;
            self.collation_said = true;
            *tokens = ahead;
            return Ok(true);
        }
        let is_type = tokens.is_word("TYPE");
        if tokens.accept("ENGINE") || tokens.accept("TYPE") {
            tokens.take("=");
            let kind = text_or_name(tokens)?;
            let is = |name: &&str| kind.eq_ignore_ascii_case(name);
            self.is_percolate |= is_type && PERCOLATE.iter().any(is);
            if kind.eq_ignore_ascii_case(DISTRIBUTED) {
                let message = "type='distributed' stands alone, with local='table' for each part: its \
                               columns are theirs";
                return Err(Error::new(ErrorCode::ParseError, message));
            }
        } else if tokens.accept("AUTO_INCREMENT") {
            tokens.take("=");
            self.auto_increment = Some(tokens.number()?);
        } else if tokens.accept("COMMENT") {
            tokens.take("=");
            self.comment = tokens.utf8()?;
        } else if OTHERS.iter().any(|name| tokens.is_word(name)) {
            let name = tokens.name()?.to_uppercase();
            tokens.take("=");
            let value = option_value(tokens)?;
            if matches!(name.as_str(), "ROW_FORMAT" | "MAX_ROWS" | "MIN_ROWS") {
                self.others.push(format!("{name}={value}"));
            }
        } else {
            return self.word_setting(tokens);
        }
        Ok(true)
    }

    /// The settings of ranked search as options.
    pub(crate) fn of_words(words: &WordsDef, columns: &[ColumnDef]) -> Vec<(String, String)> {
        let names = words.columns.iter().filter_map(|&place| columns.get(place));
        let names: Vec<&str> = names.map(|column| column.name.as_str()).collect();
        let columns = (WORDS.to_owned(), names.join(","));
        std::iter::once(columns).chain(words.settings.iter().cloned()).collect()
    }

    /// Parses a setting of ranked search if one is next.
    pub(crate) fn word_setting(&mut self, tokens: &mut Tokens<'_>) -> Result<bool> {
        let mut ahead = *tokens;
        let Some(name) = ahead.accept_name().map(|name| name.to_lowercase()) else {
            return Ok(false);
        };
        if name != WORDS && !Settings::is_setting(&name) {
            return Ok(false);
        }
        ahead.take("=");
        let value = if ahead.is_text() { ahead.utf8()? } else { option_value(&mut ahead)? };
        if FILES.contains(&name.as_str()) {
            let message = format!(
                "{name} names a file of the server: give the list itself as {name}_list, or \
                 declare the words in remora.toml"
            );
            return Err(Error::new(ErrorCode::NotSupported, message));
        }
        if name == WORDS && value.trim().is_empty() {
            // Removes ranked search. Settings after this declare it anew.
            self.words.clear();
            *tokens = ahead;
            return Ok(true);
        }
        if name != WORDS {
            Settings::default().set(&name, &value).map_err(|error| wrong_setting(&error))?;
        }
        self.words.retain(|(other, _)| *other != name);
        self.words.push((name, value));
        *tokens = ahead;
        Ok(true)
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

/// The type of a distributed table.
pub(crate) const DISTRIBUTED: &str = "distributed";
/// The type of a table whose rows are queries.
const PERCOLATE: [&str; 2] = ["pq", "percolate"];
/// The option that names the columns whose words are searched.
pub(crate) const WORDS: &str = "words";
/// Settings with file names.
const FILES: [&str; 3] = ["stopwords", "wordforms", "exceptions"];

/// Error 1064 with the reason.
fn wrong_setting(error: &WordsError) -> Error {
    Error::new(ErrorCode::ParseError, error.to_string())
}

fn option_value(tokens: &mut Tokens<'_>) -> Result<String> {
    match tokens.peek() {
        Some(next) if matches!(next.kind, TokenKind::Integer | TokenKind::Word) => {
            tokens.next();
            Ok(String::from_utf8_lossy(tokens.bytes(next)).to_uppercase())
        }
        Some(_) if tokens.is_text() => Ok(quoted_text(&tokens.utf8()?)),
        _ => Err(tokens.syntax_error()),
    }
}
