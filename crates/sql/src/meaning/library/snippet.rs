//! SNIPPET(): an excerpt of a text, by the words of a table.

use remora_mysql::{Collation, ErrorCode};
use remora_words::{
    WordsError,
    snippets::{OptionValue, SnippetOptions, Snippets},
};

use super::super::{
    call::{Call, Typing},
    function::{Definition, MANY},
    types::{ExprType, UNBOUNDED},
    value::V,
};
use crate::{Error, Result, error::from_engine};

/// Of the engine's name of the table, the text, the query, and options.
pub(super) const FUNCTIONS: &[Definition] =
    &[Definition::new("#snippet", 3, MANY, snippet_type, snippet).volatile()];

/// Longest text of which an excerpt is made, in bytes: making it is not interrupted.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Options that are texts; the others are numbers.
const TEXTS: [&str; 6] = [
    "after_match",
    "before_match",
    "chunk_separator",
    "html_strip_mode",
    "passage_boundary",
    "snippet_separator",
];

fn snippet_type(_typing: &Typing<'_>) -> Result<ExprType> {
    Ok(ExprType::text(UNBOUNDED, Collation::UTF8MB4_0900_AI_CI))
}

fn snippet<'a>(call: &Call<'_>, args: &[V<'a>]) -> Result<V<'a>> {
    let texts: Option<Vec<_>> = args.iter().map(V::string).collect();
    let (Some(texts), Some(context)) = (texts, call.context) else { return Ok(V::Null) };
    let [table, text, query, given @ ..] = texts.as_slice() else { return Ok(V::Null) };
    if text.len() > MAX_TEXT_BYTES {
        let message = format!("SNIPPET takes texts of {MAX_TEXT_BYTES} bytes, not {}", text.len());
        return Err(Error::new(ErrorCode::ParseError, message));
    }
    let schema = context.shared.database.schema(table).map_err(|error| from_engine(&error))?;
    let Some(words) = &schema.words else { return Ok(V::Null) };
    let analyzer = words.analyzer().map_err(|error| from_engine(&error))?;
    let mut options = SnippetOptions::default();
    for option in given {
        set(&mut options, option)?;
    }
    let name = |&place: &usize| schema.columns.get(place).map(|column| column.name.clone());
    let fields: Vec<String> = words.columns.iter().filter_map(name).collect();
    let snippets = Snippets::new(query, &fields, &analyzer, options).map_err(refused)?;
    Ok(V::text(snippets.of(text)))
}

/// Sets `name=value`.
fn set(options: &mut SnippetOptions, option: &str) -> Result<()> {
    let unknown = || Error::new(ErrorCode::ParseError, format!("Unknown SNIPPET option: {option}"));
    let (name, value) = option.split_once('=').ok_or_else(unknown)?;
    let name = name.trim();
    let value = match TEXTS.iter().any(|text| name.eq_ignore_ascii_case(text)) {
        true => OptionValue::Text(value),
        false => OptionValue::Number(value.trim().parse().map_err(|_| unknown())?),
    };
    options.set(name, value).map_err(refused)
}

fn refused(error: WordsError) -> Error {
    Error::new(ErrorCode::ParseError, error.to_string())
}
