//! Parses tokens as commands.

mod admin;
pub(crate) mod clause;
mod expression;
pub(crate) mod filter;
mod keywords;
mod lexeme;
mod sort;
pub(crate) mod text;
mod words;

use remora_engine::{FacetRequest, SearchRequest, Selection};

use super::{Command, Dump, Get, LineError, Search, code, token::Tokens};
use clause::{Clauses, read_clauses, read_fields};

/// The limits and the dialect of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLimits {
    /// Whether to refuse what MygramDB does not support: FIELDS, CURSOR, AFTER, filters in
    /// parentheses, IN, BETWEEN, IS NULL, several sort columns, a search without text.
    pub strict: bool,
    /// The default of LIMIT.
    pub default_limit: usize,
    /// The greatest LIMIT.
    pub max_limit: usize,
    /// The most bytes of text, terms, filters, sort columns and tags together; 0 means no limit.
    pub max_query_bytes: usize,
    /// The most terms of an expression, and the most AND and the most NOT clauses.
    pub max_terms: usize,
    /// The most conditions.
    pub max_filters: usize,
    /// The deepest nesting of parentheses and NOT.
    pub max_depth: usize,
}

impl Default for ParseLimits {
    /// The limits of Remora.
    fn default() -> Self {
        Self {
            strict: false,
            default_limit: 100,
            max_limit: 10_000,
            max_query_bytes: 1 << 20,
            max_terms: 64,
            max_filters: 64,
            max_depth: 32,
        }
    }
}

impl ParseLimits {
    /// The limits and the dialect of MygramDB.
    pub fn mygramdb() -> Self {
        Self {
            strict: true,
            max_limit: 1000,
            max_query_bytes: 128,
            max_depth: 31,
            ..Self::default()
        }
    }
}

/// Parses a frame without its CRLF.
///
/// # Errors
/// A [`LineError`] with the code for what is wrong: the frame is empty, the command is unknown, a
/// clause violates the grammar or exceeds `limits`, or something follows a complete command.
pub fn parse(frame: &[u8], limits: &ParseLimits) -> Result<Command, LineError> {
    let tokens = &mut Tokens::cut(frame)?;
    let Some(command) = tokens.next().cloned() else {
        return Err(LineError::syntax("Empty query"));
    };
    let parsed = match () {
        () if command.is("SEARCH") => parse_search(tokens, limits)?,
        () if command.is("COUNT") => parse_count(tokens, limits)?,
        () if command.is("GET") => parse_get(tokens, limits)?,
        () if command.is("FACET") => parse_facet(tokens, limits)?,
        () if !limits.strict && command.is("WAIT") => admin::parse_wait(tokens)?,
        () if !limits.strict && command.is("POSITION") => admin::parse_position(tokens)?,
        () if command.is("AUTH") => admin::parse_auth(tokens, limits.strict)?,
        () => admin::parse(&command, tokens)?,
    };
    match tokens.peek() {
        None => Ok(parsed),
        Some(_) if ignores_rest(&parsed, limits) => Ok(parsed),
        Some(token) => Err(LineError::syntax(format!("Unexpected argument: {}", token.text))),
    }
}

/// Whether surplus words after a command are ignored: like in MygramDB, for most commands that do
/// not read rows; and for INFO in both dialects.
fn ignores_rest(command: &Command, limits: &ParseLimits) -> bool {
    match command {
        Command::Info => true,
        Command::Dump(dump) => limits.strict && !matches!(dump, Dump::Save(_)),
        Command::Replication(_)
        | Command::Sync(_)
        | Command::Optimize(_)
        | Command::Debug(_)
        | Command::Cache(_)
        | Command::Config(_) => limits.strict,
        _ => false,
    }
}

/// Splits the text of a composite key. Commas and backslashes within a part are escaped by a
/// backslash. `None` if the number of parts is another. A key of one part is taken literally.
pub fn split_key(key: &str, parts: usize) -> Option<Vec<String>> {
    if parts == 1 {
        return Some(vec![key.to_owned()]);
    }
    let mut found = vec![String::new()];
    let mut chars = key.chars();
    while let Some(char) = chars.next() {
        match char {
            ',' => found.push(String::new()),
            '\\' => found.last_mut()?.push(chars.next()?),
            other => found.last_mut()?.push(other),
        }
    }
    (found.len() == parts).then_some(found)
}

fn parse_search(tokens: &mut Tokens, limits: &ParseLimits) -> Result<Command, LineError> {
    let missing = "SEARCH requires at least table and search text";
    let mut clauses = Clauses::new("SEARCH", limits);
    let table = read_table(tokens, missing)?;
    read_selection(tokens, &mut clauses, Text::Asked)?;
    let (limit_given, offset_given) = (clauses.limit.is_some(), clauses.offset.is_some());
    let cursor = clauses.cursor || clauses.after.is_some();
    let request = SearchRequest {
        sort: std::mem::take(&mut clauses.sort),
        limit: clauses.limit.unwrap_or(limits.default_limit),
        offset: clauses.offset.unwrap_or(0),
        after: clauses.after.take(),
        fields: std::mem::take(&mut clauses.fields),
        highlight: clauses.highlight.take(),
        selection: clauses.finish(table)?,
    };
    Ok(Command::Search(Box::new(Search { request, limit_given, offset_given, cursor })))
}

fn parse_count(tokens: &mut Tokens, limits: &ParseLimits) -> Result<Command, LineError> {
    let mut clauses = Clauses::new("COUNT", limits);
    let table = read_table(tokens, "COUNT requires at least table and search text")?;
    read_selection(tokens, &mut clauses, Text::Asked)?;
    Ok(Command::Count(clauses.finish(table)?))
}

fn parse_facet(tokens: &mut Tokens, limits: &ParseLimits) -> Result<Command, LineError> {
    let mut clauses = Clauses::new("FACET", limits);
    let table = read_table(tokens, "FACET requires table name")?;
    let Some(column) = tokens.next() else {
        return Err(LineError::syntax("FACET requires column name"));
    };
    let column = column.text.to_string();
    filter::check_column(&column, limits)
        .map_err(|error| LineError::new(code::FACET_COLUMN, error.message))?;
    read_selection(tokens, &mut clauses, Text::Optional)?;
    let limit = clauses.limit.unwrap_or(limits.default_limit);
    let offset = clauses.offset.unwrap_or(0);
    let selection: Selection = clauses.finish(table)?;
    Ok(Command::Facet(FacetRequest { selection, column, limit, offset, values_only: false }))
}

fn parse_get(tokens: &mut Tokens, limits: &ParseLimits) -> Result<Command, LineError> {
    let usage = || LineError::syntax("GET requires table and primary_key");
    let table = tokens.next().ok_or_else(usage)?.text.to_string();
    let key = tokens.next().ok_or_else(usage)?.text.to_string();
    let mut fields = Vec::new();
    if !tokens.is_done() {
        if limits.strict || !tokens.eat("FIELDS") {
            return Err(usage());
        }
        fields = read_fields(tokens)?;
    }
    Ok(Command::Get(Get { table, key, fields }))
}

fn read_table(tokens: &mut Tokens, missing: &str) -> Result<String, LineError> {
    let Some(table) = tokens.next() else { return Err(LineError::syntax(missing)) };
    let table = table.text.to_string();
    if table.contains(',') || tokens.peek().is_some_and(|token| token.is(",")) {
        let mend = "Multiple tables not supported: send one query for each table";
        return Err(LineError::syntax(mend));
    }
    Ok(table)
}

/// Whether a command must have a text.
#[derive(PartialEq, Eq)]
enum Text {
    Asked,
    Optional,
}

fn read_selection(tokens: &mut Tokens, clauses: &mut Clauses, text: Text) -> Result<(), LineError> {
    let command = clauses.command;
    if text == Text::Asked && tokens.is_done() {
        let missing = format!("{command} requires at least table and search text");
        return Err(LineError::syntax(missing));
    }
    let read = text::read(tokens, clauses.limits, command)?;
    if read.is_none() && text == Text::Asked && clauses.limits.strict {
        return Err(LineError::syntax(format!("{command} requires search text")));
    }
    if let Some(read) = read {
        clauses.query_bytes += read.bytes;
        clauses.text.push(read.query);
    }
    read_clauses(tokens, clauses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composite_keys_are_cut_at_bare_commas() {
        let parts = |parts: &[&str]| Some(parts.iter().map(|part| part.to_string()).collect());
        assert_eq!(split_key("a,b", 1), parts(&["a,b"]));
        assert_eq!(split_key(r"a\,b,c\\", 2), parts(&["a,b", r"c\"]));
        assert_eq!(split_key(",", 2), parts(&["", ""]));
        assert_eq!(split_key("a", 2), None);
        assert_eq!(split_key("a,\\", 2), None);
    }
}
