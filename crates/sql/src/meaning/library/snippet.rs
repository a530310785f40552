//! SNIPPET(): an excerpt of a text, with the keyword settings of a table.

use std::sync::Arc;

use remora_mysql::{Collation, ErrorCode};
use remora_words::{
    WordsError,
    analysis::Analyzer,
    snippets::{OptionValue, SnippetOptions, Snippets},
};

use super::super::{
    call::{Call, TypeContext},
    function::{Definition, MANY},
    types::{ExprType, UNBOUNDED},
    value::SqlValue,
};
use crate::{Error, Result, error::from_engine, state::Context};

/// Arguments: the engine's name of the table, the text, the query, and options.
pub(super) const FUNCTIONS: &[Definition] =
    &[Definition::new("#snippet", 3, MANY, snippet_type, snippet).volatile()];

/// The longest text for an excerpt, in bytes. Making one takes several times as much memory.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Options with text values; all others are numbers.
const TEXTS: [&str; 6] = [
    "after_match",
    "before_match",
    "chunk_separator",
    "html_strip_mode",
    "passage_boundary",
    "snippet_separator",
];

fn snippet_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(UNBOUNDED, Collation::UTF8MB4_0900_AI_CI))
}

fn snippet<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let texts: Option<Vec<_>> = args.iter().map(SqlValue::string).collect();
    let (Some(texts), Some(context)) = (texts, call.context) else { return Ok(SqlValue::Null) };
    let [table, text, query, given @ ..] = texts.as_slice() else { return Ok(SqlValue::Null) };
    check_length("SNIPPET", text)?;
    // Nearly always, all but the text is the same for all rows.
    let asked = || [table, query].into_iter().chain(given).map(|text| &**text);
    let is_of_these = |made: &Excerpter| made.asked.iter().map(String::as_str).eq(asked());
    let make = || {
        let asked = asked().map(str::to_owned).collect();
        let Some(words) = SnippetWords::of(context, table)? else {
            return Ok(Excerpter { asked, snippets: None });
        };
        let mut options = SnippetOptions::default();
        for option in given {
            set(&mut options, "SNIPPET", option)?;
        }
        let snippets = Snippets::new(query, &words.fields, &words.analyzer, options);
        Ok(Excerpter { asked, snippets: Some(snippets.map_err(refused)?) })
    };
    let excerpt = |made: &Excerpter| match &made.snippets {
        None => Ok(SqlValue::Null),
        Some(snippets) => match snippets.of_unless(text, &|| context.is_over()) {
            Some(excerpt) => Ok(SqlValue::text(excerpt)),
            None => Err(Error::interrupted()),
        },
    };
    call.keep(is_of_these, make, excerpt)?
}

/// Makes the excerpts of one query.
struct Excerpter {
    /// The table, the query and the options.
    asked: Vec<String>,
    /// `None` if the table no longer has ranked search.
    snippets: Option<Snippets>,
}

/// Refuses a text that is too long for an excerpt.
pub(super) fn check_length(function: &str, text: &str) -> Result<()> {
    if text.len() <= MAX_TEXT_BYTES {
        return Ok(());
    }
    let bytes = text.len();
    let message = format!("{function} takes texts of {MAX_TEXT_BYTES} bytes, not {bytes}");
    Err(Error::new(ErrorCode::ParseError, message))
}

/// The keyword settings of a table.
pub(super) struct SnippetWords {
    pub analyzer: Arc<Analyzer>,
    /// The names of its fields.
    pub fields: Vec<String>,
}

impl SnippetWords {
    /// The settings of the table with this engine name; `None` if it no longer has ranked search.
    pub(super) fn of(context: &Context, table: &str) -> Result<Option<Self>> {
        let database = &context.shared.database;
        // For a table with rows on other servers, the settings are those servers'.
        let schema = match context.agents.upgrade() {
            Some(agents) => database.reader().with_remote_tables(agents).schema(table),
            None => database.schema(table),
        };
        let schema = schema.map_err(|error| from_engine(&error))?;
        let Some(words) = &schema.words else { return Ok(None) };
        let analyzer = words.analyzer().map_err(|error| from_engine(&error))?;
        let name = |&place: &usize| schema.columns.get(place).map(|column| column.name.clone());
        let fields = words.columns.iter().filter_map(name).collect();
        Ok(Some(Self { analyzer, fields }))
    }
}

/// Sets an option given as `name=value`.
pub(super) fn set(options: &mut SnippetOptions, function: &str, option: &str) -> Result<()> {
    let unknown =
        || Error::new(ErrorCode::ParseError, format!("Unknown {function} option: {option}"));
    let (name, value) = option.split_once('=').ok_or_else(unknown)?;
    let name = name.trim();
    let value = match TEXTS.iter().any(|text| name.eq_ignore_ascii_case(text)) {
        true => OptionValue::Text(value),
        false => OptionValue::Number(value.trim().parse().map_err(|_| unknown())?),
    };
    options.set(name, value).map_err(refused)
}

pub(super) fn refused(error: WordsError) -> Error {
    Error::new(ErrorCode::ParseError, error.to_string())
}
