//! HIGHLIGHT(): excerpts of a row's fields with the search's matches marked.

use std::{borrow::Cow, cell::OnceCell};

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
    let [table, query, given, fields @ ..] = args else { return Ok(SqlValue::Null) };
    let (Some(table), Some(query), Some(context)) = (table.string(), query.string(), call.context)
    else {
        return Ok(SqlValue::Null);
    };
    let given = given.string().unwrap_or_default();
    let names = || {
        fields
            .chunks_exact(2)
            .map(|pair| pair.first().and_then(SqlValue::string).unwrap_or_default())
    };
    // Nearly always, all of this is the same for all rows.
    let is_of_these = |made: &Highlighter| {
        (&*made.table, &*made.query, &*made.given) == (&*table, &*query, &*given)
            && made.fields.iter().map(|field| field.name.as_str()).eq(names())
    };
    let make = || {
        Ok(Highlighter {
            table: table.to_string(),
            query: query.to_string(),
            given: given.to_string(),
            options: Options::read(&given)?,
            words: SnippetWords::of(context, &table)?,
            fields: names()
                .map(|name| Field { name: name.into_owned(), ..Field::default() })
                .collect(),
        })
    };
    let texts = fields.chunks_exact(2).map(|pair| pair.get(1).and_then(SqlValue::string));
    call.keep(is_of_these, make, |made| made.excerpts(context, texts.collect()))?
}

/// Makes the excerpts of rows, whose queries and fields are the same.
struct Highlighter {
    table: String,
    query: String,
    given: String,
    options: Options,
    /// `None` if the table no longer has ranked search.
    words: Option<SnippetWords>,
    fields: Vec<Field>,
}

/// A field, or with an empty name a text that is none.
#[derive(Default)]
struct Field {
    name: String,
    /// Makes excerpts that are empty without a match.
    of_matches: OnceCell<Snippets>,
    /// Makes excerpts that are the beginning of the text without a match.
    of_any: OnceCell<Snippets>,
}

impl Highlighter {
    /// The excerpts of the fields' texts, as one text.
    fn excerpts(
        &self,
        context: &Context,
        texts: Vec<Option<Cow<'_, str>>>,
    ) -> Result<SqlValue<'static>> {
        let Some(words) = &self.words else { return Ok(SqlValue::Null) };
        let mut excerpts = Vec::new();
        for (field, text) in self.fields.iter().zip(&texts) {
            let text = text.as_deref().unwrap_or_default();
            // Empty if the field has no match.
            let excerpt = self.excerpt(context, words, (field, true), text)?;
            if !excerpt.is_empty() {
                excerpts.push(excerpt);
            }
        }
        if excerpts.is_empty() && !self.options.allows_empty {
            let mut texts = self.fields.iter().zip(&texts);
            let first = texts.find_map(|(field, text)| {
                Some((field, text.as_deref().filter(|text| !text.is_empty())?))
            });
            if let Some((field, text)) = first {
                excerpts.push(self.excerpt(context, words, (field, false), text)?);
            }
        }
        Ok(SqlValue::text(excerpts.join(&self.options.field_separator)))
    }

    fn excerpt(
        &self,
        context: &Context,
        words: &SnippetWords,
        (field, allows_empty): (&Field, bool),
        text: &str,
    ) -> Result<String> {
        snippet::check_length("HIGHLIGHT", text)?;
        let place = if allows_empty { &field.of_matches } else { &field.of_any };
        let snippets = match place.get() {
            Some(snippets) => snippets,
            None => {
                let made = self.snippets(words, &field.name, allows_empty)?;
                place.get_or_init(|| made)
            }
        };
        let excerpt = snippets.of_unless(text, &|| context.is_over());
        excerpt.ok_or_else(Error::interrupted)
    }

    fn snippets(&self, words: &SnippetWords, name: &str, allows_empty: bool) -> Result<Snippets> {
        let field = words.fields.iter().position(|field| field == name);
        let field = field.and_then(|field| u8::try_from(field).ok());
        let mut options = self.options.given.clone();
        let allowed = OptionValue::Number(i64::from(allows_empty));
        options.set("allow_empty", allowed).map_err(snippet::refused)?;
        let SnippetWords { analyzer, fields } = words;
        Snippets::of_search(&self.query, fields, field, analyzer, options).map_err(snippet::refused)
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
