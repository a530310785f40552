//! HIGHLIGHT(): excerpts of a row's fields with the search's matches marked.

use remora_mysql::{Collation, ErrorCode};
use remora_words::snippets::{OptionValue, SnippetOptions, Snippets};

use super::{
    super::{
        call::{Call, TypeContext},
        function::{Definition, MANY},
        types::{ExprType, UNBOUNDED},
        value::SqlValue,
    },
    snippet::{self, SnippetWords},
};
use crate::{Error, Result, parse::BETWEEN_OPTIONS, state::Context};

/// Arguments: the engine's name of the table, the query, options, then pairs of field name and
/// text.
pub(super) const FUNCTIONS: &[Definition] =
    &[Definition::new("#highlight", 5, MANY, highlight_type, highlight).volatile()];

/// The default separator of the fields' excerpts.
const FIELD_SEPARATOR: &str = " | ";
/// The most bytes of the separator.
const MAX_SEPARATOR_BYTES: usize = 256;
/// Manticore's names of options, with Sphinx's names for them.
const NAMES: [(&str, &str); 3] = [
    ("limit_snippets", "limit_passages"),
    ("start_snippet_id", "start_passage_id"),
    ("snippet_boundary", "passage_boundary"),
];
/// The placeholder for a match's number within marks, in Manticore's and in Sphinx's spelling.
const SNIPPET_ID: (&str, &str) = ("%SNIPPET_ID%", "%PASSAGE_ID%");

fn highlight_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::text(UNBOUNDED, Collation::UTF8MB4_0900_AI_CI))
}

fn highlight<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let [table, query, options, fields @ ..] = args else { return Ok(SqlValue::Null) };
    let (Some(table), Some(query)) = (table.string(), query.string()) else {
        return Ok(SqlValue::Null);
    };
    let Some(context) = call.context else { return Ok(SqlValue::Null) };
    let Some(words) = SnippetWords::of(context, &table)? else { return Ok(SqlValue::Null) };
    let options = Options::read(&options.string().unwrap_or_default())?;
    let making = Making { context, words: &words, query: &query, options: &options };
    let mut excerpts = Vec::new();
    for pair in fields.chunks_exact(2) {
        let [name, text] = pair else { continue };
        let name = name.string().unwrap_or_default();
        let text = text.string().unwrap_or_default();
        // Empty if the field has no match.
        let excerpt = making.excerpt(&name, &text, true)?;
        if !excerpt.is_empty() {
            excerpts.push(excerpt);
        }
    }
    if excerpts.is_empty() && !options.allows_empty {
        let mut texts = fields.chunks_exact(2).filter_map(|pair| match pair {
            [name, text] => Some((name.string().unwrap_or_default(), text.string()?)),
            _ => None,
        });
        if let Some((name, text)) = texts.find(|(_, text)| !text.is_empty()) {
            excerpts.push(making.excerpt(&name, &text, false)?);
        }
    }
    Ok(SqlValue::text(excerpts.join(&options.field_separator)))
}

/// The inputs for a row's excerpts.
struct Making<'m> {
    context: &'m Context,
    words: &'m SnippetWords,
    query: &'m str,
    options: &'m Options,
}

impl Making<'_> {
    /// The excerpt of a field. A text that is not a field has an empty name.
    fn excerpt(&self, name: &str, text: &str, allows_empty: bool) -> Result<String> {
        snippet::check_length("HIGHLIGHT", text)?;
        let fields = &self.words.fields;
        let field = fields.iter().position(|field| field == name);
        let field = field.and_then(|field| u8::try_from(field).ok());
        let mut options = self.options.given.clone();
        let allowed = OptionValue::Number(i64::from(allows_empty));
        options.set("allow_empty", allowed).map_err(snippet::refused)?;
        let analyzer = &self.words.analyzer;
        let snippets = Snippets::of_search(self.query, fields, field, analyzer, options);
        let excerpt =
            snippets.map_err(snippet::refused)?.of_unless(text, &|| self.context.is_over());
        excerpt.ok_or_else(Error::interrupted)
    }
}

/// The parsed options of a call.
struct Options {
    given: SnippetOptions,
    field_separator: String,
    allows_empty: bool,
}

impl Options {
    fn read(text: &str) -> Result<Self> {
        let mut options = Self {
            given: SnippetOptions::default(),
            field_separator: FIELD_SEPARATOR.to_owned(),
            allows_empty: false,
        };
        let each = text.split(BETWEEN_OPTIONS).filter(|option| !option.is_empty());
        for option in each {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            options.set(&name.to_ascii_lowercase(), value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let is = |wanted: &str| value.trim() == wanted;
        let refused = |why: &str| {
            let message = format!("option {name}={value} of HIGHLIGHT() {why}");
            Err(Error::new(ErrorCode::ParseError, message))
        };
        match name {
            "field_separator" if value.len() > MAX_SEPARATOR_BYTES => {
                return refused("is too long: 256 bytes are taken");
            }
            "field_separator" => self.field_separator = value.to_owned(),
            "limits_per_field" if !is("1") => {
                return refused("is not answered: limits are of each field");
            }
            "force_snippets" if !is("0") => {
                return refused("is not answered: a text that fits is shown whole");
            }
            "limits_per_field" | "force_snippets" => {}
            // These only affect how a search is displayed.
            "query_mode" | "exact_phrase" => return refused("is not one of its options"),
            "allow_empty" if is("0") || is("1") => self.allows_empty = is("1"),
            _ => {
                let known = NAMES.iter().find(|(theirs, _)| *theirs == name);
                let name = known.map_or(name, |(_, ours)| *ours);
                let value = value.replace(SNIPPET_ID.0, SNIPPET_ID.1);
                snippet::set(&mut self.given, "HIGHLIGHT", &format!("{name}={value}"))?;
            }
        }
        Ok(())
    }
}
