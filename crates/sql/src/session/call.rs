//! CALL KEYWORDS, SNIPPETS, SUGGEST and QSUGGEST of Sphinx and Manticore. CALL PQ is in
//! `percolate.rs`.
//!
//! ```text
//! call     := "CALL" "KEYWORDS" "(" text "," table ["," (0 | 1)] ")"
//!           | "CALL" "SNIPPETS" "(" (text | "(" text ("," text)* ")") "," table "," text option* ")"
//!           | "CALL" ("SUGGEST" | "QSUGGEST") "(" text "," table option* ")"
//! option   := "," value ["AS"] name          table := a text: [database "."] name
//! ```

use std::sync::Arc;

use remora_engine::{KeywordCounts, Schema};
use remora_mysql::{Collation, ErrorCode, messages};
use remora_words::{
    WordsError,
    analysis::Analyzer,
    keywords::keywords,
    snippets::{OptionValue, SnippetOptions, Snippets},
    suggest::{self, SuggestOptions, WordChoice},
};
use rustc_hash::FxHashMap;

use super::{
    arguments::{Argument, Arguments},
    part, percolate,
};
use crate::{
    Cell, Column, Error, Outcome, Reply, Result,
    agents::wire::PROCEDURE,
    catalog::{TableName, Verb},
    error::from_engine,
    meaning::types::ExprType,
    parse::{Statement, Tokens},
    state::SessionState,
};

/// The most texts of a CALL SNIPPETS.
const MAX_TEXTS: usize = 10_000;
/// The longest text for an excerpt, in bytes. Making one takes several times as much memory.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Runs the statement.
pub(super) async fn run<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let source = &statement.source;
    let tokens = source.tokens.get(1..).unwrap_or_default();
    let mut tokens = Tokens::new(&source.text, tokens, source.mode);
    let name = tokens.name()?.to_uppercase();
    if name == PROCEDURE {
        tokens.need("(")?;
        part::run(session, &mut tokens, reply).await?;
        return Ok(Outcome::default());
    }
    if !matches!(name.as_str(), "KEYWORDS" | "SNIPPETS" | "SUGGEST" | "QSUGGEST" | "PQ") {
        return Err(Error::unsupported(format!("CALL {name}")));
    }
    let mut arguments = Arguments { tokens, parameters: statement.parameters.iter() };
    arguments.tokens.need("(")?;
    match name.as_str() {
        "KEYWORDS" => call_keywords(session, &mut arguments, reply)?,
        "PQ" => percolate::call(session, &mut arguments, reply).await?,
        "SNIPPETS" => call_snippets(session, &mut arguments, reply).await?,
        "SUGGEST" => call_suggest(session, &mut arguments, WordChoice::First, reply)?,
        _ => call_suggest(session, &mut arguments, WordChoice::Last, reply)?,
    }
    Ok(Outcome::default())
}

/// The table of a call, with its keyword settings.
struct Words {
    name: String,
    schema: Arc<Schema>,
    analyzer: Arc<Analyzer>,
}

impl Words {
    /// Finds the table: 1046 without a database, 1142 and 1146 as in a SELECT, 1191 if it has no
    /// ranked search.
    fn of(session: &mut SessionState, named: &str) -> Result<Self> {
        let (database, table) = match named.split_once('.') {
            Some((database, table)) => (Some(database.to_owned()), table),
            None => (session.database.clone(), named),
        };
        let database =
            database.ok_or_else(|| Error::new(ErrorCode::NoDatabase, messages::NO_DATABASE))?;
        let table = TableName::new(database, table);
        table.check(&session.identity, Verb::Select)?;
        let name = table.engine_name(&session.shared);
        let schema = match session.reading().schema(&name) {
            Err(error @ remora_engine::Error::RemoteServer(_)) => return Err(from_engine(&error)),
            found => found.map_err(|_| table.missing())?,
        };
        TableName::check_parts(&schema, &session.shared, &session.identity)?;
        let Some(words) = &schema.words else {
            let message = format!("Table '{named}' has no words: ALTER TABLE … MORPHOLOGY='none'");
            return Err(Error::new(ErrorCode::NoFulltextIndex, message));
        };
        let analyzer = words.analyzer().map_err(|error| from_engine(&error))?;
        Ok(Self { name, schema, analyzer })
    }

    /// The names of the fields.
    fn fields(&self) -> Vec<String> {
        let columns = self.schema.words.iter().flat_map(|words| &words.columns);
        let name = |&place: &usize| self.schema.columns.get(place).map(|it| it.name.clone());
        columns.filter_map(name).collect()
    }
}

fn call_keywords<R: Reply>(
    session: &mut SessionState,
    arguments: &mut Arguments<'_>,
    reply: &mut R,
) -> Result<()> {
    let text = arguments.text()?;
    arguments.tokens.need(",")?;
    let words = Words::of(session, &arguments.text()?)?;
    let is_counted = match arguments.tokens.take(",") {
        true => matches!(arguments.value()?, Argument::Number(number) if number != 0),
        false => false,
    };
    arguments.end()?;
    let found = keywords(&text, &words.analyzer);
    // Each keyword is counted once, however often the text contains it.
    let mut counts: FxHashMap<&str, KeywordCounts> = FxHashMap::default();
    if is_counted {
        let reader = session.reading_own()?;
        for keyword in &found {
            if counts.contains_key(keyword.normalized.as_str()) {
                continue;
            }
            session.check_interrupted()?;
            let counted = reader.keyword_counts(&words.name, &keyword.normalized);
            counts.insert(&keyword.normalized, counted.map_err(|error| from_engine(&error))?);
        }
    }
    let names: &[&str] = match is_counted {
        true => &["qpos", "tokenized", "normalized", "docs", "hits"],
        false => &["qpos", "tokenized", "normalized"],
    };
    reply.columns(&names.iter().map(|name| column(name)).collect::<Vec<_>>())?;
    for keyword in &found {
        let mut row = vec![
            keyword.position.to_string(),
            keyword.tokenized.clone(),
            keyword.normalized.clone(),
        ];
        if let Some(counts) = counts.get(keyword.normalized.as_str()) {
            row.extend([counts.documents.to_string(), counts.hits.to_string()]);
        }
        reply.row(&row.iter().map(|cell| Cell::Text(cell)).collect::<Vec<_>>())?;
    }
    Ok(())
}

async fn call_snippets<R: Reply>(
    session: &mut SessionState,
    arguments: &mut Arguments<'_>,
    reply: &mut R,
) -> Result<()> {
    let texts = arguments.texts()?;
    if texts.len() > MAX_TEXTS || texts.iter().any(|text| text.len() > MAX_TEXT_BYTES) {
        let message = format!(
            "CALL SNIPPETS takes {MAX_TEXTS} texts of {MAX_TEXT_BYTES} bytes: make several calls"
        );
        return Err(Error::new(ErrorCode::ParseError, message));
    }
    arguments.tokens.need(",")?;
    let words = Words::of(session, &arguments.text()?)?;
    arguments.tokens.need(",")?;
    let query = arguments.text()?;
    let mut options = SnippetOptions::default();
    arguments.options(|name, value| {
        let value = match &value {
            Argument::Text(text) => OptionValue::Text(text),
            Argument::Number(number) => OptionValue::Number(*number),
        };
        options.set(name, value).map_err(refused)
    })?;
    let fields = words.fields();
    let snippets = Snippets::new(&query, &fields, &words.analyzer, options).map_err(refused)?;
    reply.columns(&[column("snippet")])?;
    for text in &texts {
        session.check_interrupted()?;
        let excerpt = snippets.of_unless(text, &|| session.check_interrupted().is_err());
        let excerpt = excerpt.ok_or_else(Error::interrupted)?;
        reply.row(&[Cell::Text(&excerpt)])?;
        reply.drain().await?;
    }
    Ok(())
}

fn call_suggest<R: Reply>(
    session: &mut SessionState,
    arguments: &mut Arguments<'_>,
    which: WordChoice,
    reply: &mut R,
) -> Result<()> {
    let text = arguments.text()?;
    arguments.tokens.need(",")?;
    let words = Words::of(session, &arguments.text()?)?;
    let mut options = SuggestOptions::default();
    arguments.options(|name, value| match value {
        Argument::Number(number) => options.set(name, number).map_err(refused),
        Argument::Text(_) => {
            let message = format!("unknown option '{name}' (or bad argument type)");
            Err(Error::new(ErrorCode::ParseError, message))
        }
    })?;
    let mut found = Vec::new();
    if let Some(word) = suggest::word(&text, which, &words.analyzer) {
        let (reader, mut failed) = (session.reader(), None);
        found = suggest::suggest(&word, &options, &mut |each| {
            failed =
                reader.for_each_keyword(&words.name, &mut |word, count| each(word, count)).err();
        });
        if let Some(error) = failed {
            return Err(from_engine(&error));
        }
    }
    let columns = ["suggest", "distance", "docs"].map(column);
    if options.result_line() {
        return lines(&found, &options, reply);
    }
    let shown = if options.result_stats() { 3 } else { 1 };
    reply.columns(&columns[..shown])?;
    for suggestion in &found {
        let (distance, documents) =
            (suggestion.distance.to_string(), suggestion.documents().to_string());
        let row = [Cell::Text(&suggestion.word), Cell::Text(&distance), Cell::Text(&documents)];
        reply.row(&row[..shown])?;
    }
    Ok(())
}

/// The suggestions as rows: the word, its distance and its document count.
fn lines<R: Reply>(
    found: &[suggest::Suggestion],
    options: &SuggestOptions,
    reply: &mut R,
) -> Result<()> {
    reply.columns(&[column("name"), column("value")])?;
    let line = |of: &dyn Fn(&suggest::Suggestion) -> String| {
        found.iter().map(of).collect::<Vec<_>>().join(",")
    };
    let mut rows = vec![("suggests", line(&|it| it.word.clone()))];
    if options.result_stats() {
        rows.push(("distances", line(&|it| it.distance.to_string())));
        rows.push(("docs", line(&|it| it.documents().to_string())));
    }
    for (name, value) in &rows {
        reply.row(&[Cell::Text(name), Cell::Text(value)])?;
    }
    Ok(())
}

fn refused(error: WordsError) -> Error {
    Error::new(ErrorCode::ParseError, error.to_string())
}

fn column(name: &str) -> Column {
    ExprType::text(255, Collation::UTF8MB4_0900_AI_CI).not_null().column_named(name)
}
