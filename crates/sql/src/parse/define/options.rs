//! A table's options, as they are written.
//!
//! ```text
//! options := (option [","])*
//! option  := ["DEFAULT"] ("CHARSET" | "CHARACTER" "SET" | "COLLATE") ["="] name
//!          | "AUTO_INCREMENT" ["="] number | "COMMENT" ["="] text | ("ENGINE" | "TYPE") ["="] name
//!          | word_setting ["="] (text | number)      morphology='stem_en', words='title,body'
//!          | name ["="] (name | number | text)        of no meaning here, but some are kept
//! part    := ("LOCAL" | "AGENT" | "AGENT_PERSISTENT") ["="] text | name ["="] (text | number)
//! ```
//! Only a distributed table has parts.

use remora_mysql::TokenKind;
use remora_words::settings::Settings;

use super::{Place, data_type::text_or_name, expression::quoted_text};
use crate::{Result, parse::Tokens};

/// The type of a distributed table.
pub(crate) const DISTRIBUTED: &str = "distributed";
/// The type of a table whose rows are queries.
const PERCOLATE: [&str; 2] = ["pq", "percolate"];
/// The option that names the columns whose words are searched.
pub(crate) const WORDS: &str = "words";
/// The option that names a local part of a distributed table.
pub(crate) const LOCAL: &str = "local";
/// The option that names a part on other servers.
pub(crate) const AGENT: &str = "agent";
/// Likewise, with persistent connections.
pub(crate) const AGENT_PERSISTENT: &str = "agent_persistent";

/// Options of no meaning here.
#[rustfmt::skip]
const OTHERS: [&str; 18] = [
    "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE",
    "ENCRYPTION", "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS",
    "PASSWORD", "ROW_FORMAT", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES",
    "TABLESPACE",
];

/// An option of a table.
#[derive(Clone, Debug)]
pub(crate) enum TableOption {
    /// CHARACTER SET.
    Charset(String),
    /// COLLATE.
    Collation(String),
    /// ENGINE.
    Engine(String),
    /// TYPE.
    Type(String),
    /// AUTO_INCREMENT.
    AutoIncrement(u64),
    /// COMMENT.
    Comment(String),
    /// An option of no meaning here: its name in upper case, and its value as it is printed.
    Other { name: String, value: String },
    /// A setting of ranked search, or `words`, its columns: the name in lower case.
    Words { name: String, value: String },
}

/// A part of a distributed table, or a setting of its agents.
#[derive(Clone, Debug)]
pub(crate) struct PartOption {
    /// The option's name in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where it stands.
    pub place: Place,
}

impl TableOption {
    /// The options of a stored text, up to one that is not understood, such as partitioning.
    pub(super) fn stored(tokens: &mut Tokens<'_>) -> Vec<Self> {
        let mut options = Vec::new();
        while let Ok(Some(option)) = Self::read(tokens) {
            options.push(option);
            tokens.take(",");
        }
        options
    }

    /// Reads all options that follow.
    pub(super) fn all(tokens: &mut Tokens<'_>) -> Result<Vec<Self>> {
        let mut options = Vec::new();
        while let Some(option) = Self::read(tokens)? {
            options.push(option);
            tokens.take(",");
        }
        Ok(options)
    }

    /// Reads an option if one is next.
    pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Option<Self>> {
        let named = |tokens: &mut Tokens<'_>, make: fn(String) -> Self| {
            tokens.take("=");
            text_or_name(tokens).map(|name| Some(make(name)))
        };
        let mut ahead = *tokens;
        ahead.accept("DEFAULT");
        if ahead.accept("CHARSET") || ahead.accept_all("CHARACTER SET") {
            *tokens = ahead;
            named(tokens, Self::Charset)
        } else if ahead.accept("COLLATE") {
            *tokens = ahead;
            named(tokens, Self::Collation)
        } else if tokens.accept("ENGINE") {
            named(tokens, Self::Engine)
        } else if tokens.accept("TYPE") {
            named(tokens, Self::Type)
        } else {
            Self::read_other(tokens)
        }
    }

    fn read_other(tokens: &mut Tokens<'_>) -> Result<Option<Self>> {
        Ok(Some(if tokens.accept("AUTO_INCREMENT") {
            tokens.take("=");
            Self::AutoIncrement(tokens.number()?)
        } else if tokens.accept("COMMENT") {
            tokens.take("=");
            Self::Comment(tokens.utf8()?)
        } else if OTHERS.iter().any(|name| tokens.is_word(name)) {
            let name = tokens.name()?.to_uppercase();
            tokens.take("=");
            Self::Other { name, value: option_value(tokens)? }
        } else {
            let mut ahead = *tokens;
            let name = ahead.accept_name().map(|name| name.to_lowercase());
            let is_setting = |name: &String| name == WORDS || Settings::is_setting(name);
            let Some(name) = name.filter(is_setting) else { return Ok(None) };
            ahead.take("=");
            let value = if ahead.is_text() { ahead.utf8()? } else { option_value(&mut ahead)? };
            *tokens = ahead;
            Self::Words { name, value }
        }))
    }

    /// Whether the table's columns describe documents, and its rows are queries.
    pub(crate) fn is_percolate(&self) -> bool {
        let Self::Type(kind) = self else { return false };
        PERCOLATE.iter().any(|name| kind.eq_ignore_ascii_case(name))
    }
}

impl PartOption {
    /// Reads all options up to the end.
    pub(super) fn all(tokens: &mut Tokens<'_>) -> Result<Vec<Self>> {
        let mut parts = Vec::new();
        while !tokens.at_end() {
            parts.push(Self::read(tokens)?);
            tokens.take(",");
        }
        Ok(parts)
    }

    /// Reads an option.
    pub(super) fn read(tokens: &mut Tokens<'_>) -> Result<Self> {
        let place = tokens.here();
        let name = tokens.name()?.to_lowercase();
        tokens.take("=");
        let value = match name.as_str() {
            LOCAL | AGENT | AGENT_PERSISTENT => tokens.utf8()?,
            _ if tokens.is_text() => tokens.utf8()?,
            _ => tokens.number()?.to_string(),
        };
        Ok(Self { name, value, place })
    }
}

/// Consumes `TYPE = 'distributed'`.
pub(super) fn accept_distributed(tokens: &mut Tokens<'_>) -> bool {
    let mut ahead = *tokens;
    let is_type = ahead.accept("TYPE");
    ahead.take("=");
    let named = text_or_name(&mut ahead);
    let is_it = is_type && named.is_ok_and(|named| named.eq_ignore_ascii_case(DISTRIBUTED));
    if is_it {
        *tokens = ahead;
    }
    is_it
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
