//! The clauses after the text.

use remora_engine::{Filter, Highlight, Selection, SortBy, SortKey, TextQuery};

use super::{
    ParseLimits, filter,
    keywords::{KEYWORDS, begins_clause},
    sort, text,
};
use crate::line::{
    LineError, code,
    token::{Token, Tokens},
};

/// The most names of FIELDS.
pub(crate) const MAX_FIELDS: usize = 1024;
/// The most bytes of a highlighting tag.
pub(crate) const MAX_TAG_BYTES: usize = 256;
/// The most characters of a snippet.
pub(crate) const MAX_SNIPPET_CHARS: usize = 10_000;
/// The most fragments of a snippet.
pub(crate) const MAX_FRAGMENTS: usize = 100;
/// The greatest OFFSET.
pub(crate) const MAX_OFFSET: usize = u32::MAX as usize;

/// The text and the clauses of a query that were parsed so far.
pub(crate) struct Clauses<'l> {
    pub command: &'static str,
    pub limits: &'l ParseLimits,
    /// The text and the terms of AND and NOT. All of them must match.
    pub text: Vec<TextQuery>,
    pub sort: Vec<SortKey>,
    pub limit: Option<usize>,
    pub offset: Option<usize>,
    pub after: Option<String>,
    pub cursor: bool,
    pub fields: Vec<String>,
    pub highlight: Option<Highlight>,
    /// The bytes that count towards the limit of a query.
    pub query_bytes: usize,
    /// The maximum edit distance of a matching word.
    pub fuzzy: Option<u8>,
    filters: Vec<Filter>,
    and_terms: usize,
    not_terms: usize,
    conditions: usize,
}

impl<'l> Clauses<'l> {
    pub(crate) fn new(command: &'static str, limits: &'l ParseLimits) -> Self {
        Self {
            command,
            limits,
            text: Vec::new(),
            sort: Vec::new(),
            limit: None,
            offset: None,
            after: None,
            cursor: false,
            fields: Vec::new(),
            highlight: None,
            query_bytes: 0,
            filters: Vec::new(),
            fuzzy: None,
            and_terms: 0,
            not_terms: 0,
            conditions: 0,
        }
    }

    /// Adds a condition. All conditions must hold.
    pub(crate) fn filter(&mut self, read: filter::ReadFilter) {
        self.query_bytes += read.bytes;
        self.conditions += read.conditions;
        self.filters.push(read.filter);
    }

    /// The selected rows, if all limits are observed.
    pub(crate) fn finish(self, table: String) -> Result<Selection, LineError> {
        self.check_limits()?;
        let text = combined(self.text, TextQuery::And);
        let filter = combined(self.filters, Filter::And);
        Ok(Selection { table, text, filter, fuzzy: self.fuzzy, ..Selection::default() })
    }

    fn check_limits(&self) -> Result<(), LineError> {
        let ParseLimits { max_terms, max_filters, max_query_bytes, .. } = *self.limits;
        let counts = [
            (self.and_terms, max_terms, "AND terms"),
            (self.not_terms, max_terms, "NOT terms"),
            (self.conditions, max_filters, "FILTER conditions"),
        ];
        if let Some((_, max, what)) = counts.iter().find(|(count, max, _)| count > max) {
            return Err(LineError::syntax(format!("Too many {what} (max {max})")));
        }
        let bytes = self.query_bytes;
        if max_query_bytes > 0 && bytes > max_query_bytes {
            let message = format!(
                "Query expression length ({bytes}) exceeds maximum allowed length of \
                 {max_query_bytes} characters. Shorten it or raise api.max_query_length."
            );
            return Err(LineError::new(code::TOO_LONG, message));
        }
        Ok(())
    }
}

/// The conjunction of all; a single one is returned as it is.
fn combined<T>(mut all: Vec<T>, and: fn(Vec<T>) -> T) -> Option<T> {
    match all.len() {
        0 | 1 => all.pop(),
        _ => Some(and(all)),
    }
}

/// Parses clauses up to the end.
pub(super) fn read_clauses(tokens: &mut Tokens, clauses: &mut Clauses) -> Result<(), LineError> {
    while let Some(keyword) = tokens.next().cloned() {
        read_clause(&keyword, tokens, clauses)?;
    }
    Ok(())
}

fn read_clause(
    keyword: &Token,
    tokens: &mut Tokens,
    clauses: &mut Clauses,
) -> Result<(), LineError> {
    match () {
        () if keyword.is("AND") => read_and(tokens, clauses),
        () if keyword.is("NOT") => read_not(tokens, clauses),
        () if keyword.is("FILTER") => read_filter(tokens, clauses),
        () if keyword.is("ORDER") => Err(LineError::syntax(text::ORDER_BY)),
        () if !is_allowed(keyword, clauses) => Err(refused(keyword, clauses.command)),
        () if keyword.is("SORT") => read_sort(tokens, clauses),
        () if keyword.is("LIMIT") => read_limit(tokens, clauses),
        () if keyword.is("OFFSET") => {
            let token = tokens.next().ok_or_else(|| offset_error("OFFSET requires a number"))?;
            clauses.offset = Some(parse_offset(&token.text, "OFFSET", code::OFFSET)?);
            Ok(())
        }
        () if keyword.is("HIGHLIGHT") => read_highlight(tokens, clauses),
        () if keyword.is("FUZZY") => read_fuzzy(tokens, clauses),
        () if keyword.is("FIELDS") => {
            clauses.fields = read_fields(tokens)?;
            Ok(())
        }
        () if keyword.is("AFTER") => {
            let cursor = tokens
                .next()
                .ok_or_else(|| LineError::new(code::SORT, "AFTER requires a cursor"))?;
            clauses.after = Some(cursor.text.to_string());
            Ok(())
        }
        () => {
            clauses.cursor = true;
            Ok(())
        }
    }
}

/// Whether the command permits the clause in this dialect.
fn is_allowed(keyword: &Token, clauses: &Clauses) -> bool {
    match clauses.command {
        "SEARCH" => begins_clause(keyword, clauses.limits.strict),
        "FACET" => keyword.is_any(&["LIMIT", "OFFSET"]),
        _ => false,
    }
}

fn refused(keyword: &Token, command: &str) -> LineError {
    match command {
        "COUNT" => LineError::syntax("COUNT only supports AND, NOT and FILTER clauses"),
        "FACET" => {
            LineError::syntax("FACET only supports AND, NOT, FILTER, LIMIT and OFFSET clauses")
        }
        _ => LineError::syntax(format!("Unknown keyword: {}", keyword.text)),
    }
}

fn read_and(tokens: &mut Tokens, clauses: &mut Clauses) -> Result<(), LineError> {
    if tokens.eat("NOT") {
        return read_not(tokens, clauses);
    }
    clauses.and_terms += 1;
    let term = read_term(tokens, clauses, "AND")?;
    clauses.text.push(TextQuery::Term(term));
    Ok(())
}

fn read_not(tokens: &mut Tokens, clauses: &mut Clauses) -> Result<(), LineError> {
    clauses.not_terms += 1;
    let term = read_term(tokens, clauses, "NOT")?;
    clauses.text.push(TextQuery::Not(Box::new(TextQuery::Term(term))));
    Ok(())
}

fn read_term(
    tokens: &mut Tokens,
    clauses: &mut Clauses,
    operator: &str,
) -> Result<String, LineError> {
    match tokens.next() {
        Some(term) if !term.text.is_empty() && !term.is_any(&KEYWORDS) => {
            clauses.query_bytes += term.text.len();
            Ok(term.text.to_string())
        }
        _ => Err(LineError::syntax(format!("{operator} requires a term"))),
    }
}

fn read_filter(tokens: &mut Tokens, clauses: &mut Clauses) -> Result<(), LineError> {
    clauses.filter(filter::read(tokens, clauses.limits)?);
    Ok(())
}

/// `n`, or `offset,n`.
fn read_sort(tokens: &mut Tokens, clauses: &mut Clauses) -> Result<(), LineError> {
    clauses.sort = sort::read(tokens, clauses.limits.strict)?;
    let bytes = |key: &SortKey| match &key.by {
        SortBy::Column(name) | SortBy::TextKey(name, _) => name.len(),
        SortBy::Key | SortBy::Score => 0,
    };
    clauses.query_bytes += clauses.sort.iter().map(bytes).sum::<usize>();
    Ok(())
}

fn read_limit(tokens: &mut Tokens, clauses: &mut Clauses) -> Result<(), LineError> {
    let missing = || limit_error("LIMIT requires a number or offset,count");
    let token = tokens.next().ok_or_else(missing)?.text.to_string();
    let Some((offset, count)) = token.split_once(',') else {
        clauses.limit = Some(parse_limit(&token, clauses.limits)?);
        return Ok(());
    };
    clauses.offset = Some(parse_offset(offset, "LIMIT offset", code::LIMIT)?);
    let next = if count.is_empty() { tokens.next() } else { None };
    let count = next.map_or(count, |token| &*token.text);
    clauses.limit = Some(parse_limit(count, clauses.limits)?);
    Ok(())
}

fn parse_limit(text: &str, limits: &ParseLimits) -> Result<usize, LineError> {
    match parse_number(text) {
        Some(0) => Err(limit_error("LIMIT must be positive")),
        Some(limit) if limit > limits.max_limit => {
            Err(limit_error(format!("LIMIT exceeds maximum of {}", limits.max_limit)))
        }
        Some(limit) => Ok(limit),
        None if text.starts_with('-') => Err(limit_error("LIMIT must be positive")),
        None => Err(limit_error(format!("Invalid LIMIT value: {text}"))),
    }
}

fn parse_offset(text: &str, what: &str, code: u16) -> Result<usize, LineError> {
    let error = |message| Err(LineError::new(code, message));
    match parse_number(text) {
        Some(offset) if offset <= MAX_OFFSET => Ok(offset),
        Some(_) => error(format!("{what} exceeds maximum of {MAX_OFFSET}")),
        None if text.starts_with('-') => error(format!("{what} must be non-negative")),
        None => error(format!("Invalid {what} value: {text}")),
    }
}

/// An unsigned number in digits. If it is too large, the greatest number.
fn parse_number(text: &str) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(usize::MAX))
}

fn read_highlight(tokens: &mut Tokens, clauses: &mut Clauses) -> Result<(), LineError> {
    let mut highlight = default_highlight();
    loop {
        if tokens.eat("TAG") {
            highlight.open = read_tag(tokens, clauses)?;
            highlight.close = read_tag(tokens, clauses)?;
        } else if tokens.eat("SNIPPET_LEN") {
            highlight.snippet_chars = read_within(tokens, "SNIPPET_LEN", MAX_SNIPPET_CHARS)?;
        } else if tokens.eat("MAX_FRAGMENTS") {
            highlight.max_fragments = read_within(tokens, "MAX_FRAGMENTS", MAX_FRAGMENTS)?;
        } else {
            break;
        }
    }
    clauses.highlight = Some(highlight);
    Ok(())
}

/// The default settings of HIGHLIGHT.
pub(crate) fn default_highlight() -> Highlight {
    Highlight {
        open: "<em>".to_owned(),
        close: "</em>".to_owned(),
        snippet_chars: 100,
        max_fragments: 3,
    }
}

fn read_tag(tokens: &mut Tokens, clauses: &mut Clauses) -> Result<String, LineError> {
    let missing = || LineError::syntax("HIGHLIGHT TAG requires open and close tag arguments");
    let tag = &tokens.next().ok_or_else(missing)?.text;
    if tag.len() > MAX_TAG_BYTES {
        let message = format!("HIGHLIGHT TAG exceeds maximum length ({MAX_TAG_BYTES})");
        return Err(LineError::syntax(message));
    }
    clauses.query_bytes += tag.len();
    Ok(tag.to_string())
}

fn read_within(tokens: &mut Tokens, option: &str, max: usize) -> Result<usize, LineError> {
    let missing = || LineError::syntax(format!("HIGHLIGHT {option} requires a number"));
    let token = tokens.next().ok_or_else(missing)?;
    match parse_number(&token.text) {
        Some(number) if (1..=max).contains(&number) => Ok(number),
        _ => Err(LineError::syntax(format!("HIGHLIGHT {option} must be between 1 and {max}"))),
    }
}

/// `[1|2]`
fn read_fuzzy(tokens: &mut Tokens, clauses: &mut Clauses) -> Result<(), LineError> {
    let distance = tokens.peek().and_then(|token| parse_number(&token.text));
    clauses.fuzzy = match distance {
        None => Some(1),
        Some(1) => Some(1),
        Some(2) => Some(2),
        Some(other) => {
            let message = format!("FUZZY distance must be 1 or 2, got: {other}");
            return Err(LineError::syntax(message));
        }
    };
    tokens.skip(usize::from(distance.is_some()));
    Ok(())
}

/// Names separated by commas, or `*`.
pub(super) fn read_fields(tokens: &mut Tokens) -> Result<Vec<String>, LineError> {
    let missing = || LineError::syntax("FIELDS requires column names with commas between, or *");
    let mut fields = Vec::new();
    loop {
        let token = tokens.next().ok_or_else(missing)?.clone();
        if token.quoted {
            fields.push(token.text.to_string());
        } else {
            let names = token.text.split(',').filter(|name| !name.is_empty());
            fields.extend(names.map(str::to_owned));
        }
        let goes_on = |token: &Token| !token.quoted && token.text.starts_with(',');
        let ends_open = !token.quoted && token.text.ends_with(',');
        if !ends_open && !tokens.peek().is_some_and(goes_on) {
            break;
        }
        if fields.len() > MAX_FIELDS {
            return Err(LineError::syntax(format!("Too many FIELDS (max {MAX_FIELDS})")));
        }
    }
    if fields.iter().any(String::is_empty) || fields.is_empty() {
        return Err(missing());
    }
    Ok(fields)
}

fn limit_error(message: impl Into<String>) -> LineError {
    LineError::new(code::LIMIT, message)
}

fn offset_error(message: impl Into<String>) -> LineError {
    LineError::new(code::OFFSET, message)
}
