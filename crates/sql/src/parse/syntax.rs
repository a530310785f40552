//! Converts our tokens to the parser's, adapting MySQL syntax that it does not know, and converts its errors to
//! MySQL's. A token's position is its first byte, so that errors can quote it.

use std::{ops::Range, sync::atomic::Ordering};

use datafusion::sql::sqlparser::{
    ast,
    keywords::Keyword,
    parser::{Parser, ParserError},
    tokenizer::{Location, Span, Token as Out, TokenWithSpan, Word},
};
use remora_engine::Value;
use remora_mysql::{Charset, Token, TokenKind, unquoted};
use rustc_hash::FxHashMap;

use super::{
    Source, StatementKind, Tokens, UNSUPPORTED, depth,
    dialect::MySql,
    groups, keywords, near, refused, sent_bytes,
    table_lists::{self, ListToken},
};
use crate::{Error, Result};

/// The deepest nesting of parentheses and subqueries. The parser needs much stack for each level.
const MAX_NESTING: usize = 200;
/// How far before a `?` its ORDER BY or GROUP BY is looked for.
const MAX_KEY_TOKENS: usize = 256;
/// Words that end ORDER BY and GROUP BY, or begin what has neither.
const BEHIND_KEYS: [&str; 5] = ["HAVING", "LIMIT", "SELECT", "SET", "VALUES"];

#[cfg(test)]
thread_local! {
    /// The number of times that this thread called the parser.
    pub(crate) static PARSES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The syntax tree of a statement.
pub(super) fn statement(source: &Source, parameters: &[Value]) -> Result<ast::Statement> {
    statement_within(source, 0..source.tokens.len(), parameters)
}

/// The syntax tree of a statement inside another one, from these tokens. `parameters` are the values of its own `?`.
pub(super) fn statement_within(
    source: &Source,
    tokens: Range<usize>,
    parameters: &[Value],
) -> Result<ast::Statement> {
    depth::check(source, std::slice::from_ref(&tokens))?;
    let options = keywords::option_clause(source, &tokens, parameters)?;
    let mut parsed = None;
    let end = options.as_ref().map_or(tokens.end, |(start, _)| *start);
    let read = Part { tokens: tokens.start..end, end: tokens.end };
    read.read(source, parameters, &mut |parser| {
        parsed = Some(parser.parse_statement()?);
        Ok(())
    })?;
    let mut parsed = parsed.ok_or_else(|| source.syntax_error(tokens.start))?;
    if let Some((start, options)) = options
        && !keywords::set_options(&mut parsed, &options)
    {
        return Err(source.syntax_error(start));
    }
    Ok(parsed)
}

/// The tokens of a statement that the parser reads.
pub(super) struct Part {
    /// The tokens to read.
    pub tokens: Range<usize>,
    /// The position that an error at their end reports.
    pub end: usize,
}

impl Part {
    /// Passes the tokens to the parser. Error 1064 unless `read` consumes all of them. `parameters` are the values of
    /// the `?` among them. A `?` without a value is NULL.
    pub(super) fn read(
        &self,
        source: &Source,
        parameters: &[Value],
        read: &mut dyn FnMut(&mut Parser<'_>) -> std::result::Result<(), ParserError>,
    ) -> Result<()> {
        #[cfg(test)]
        PARSES.set(PARSES.get() + 1);
        let tokens = TokenConverter::new(source, parameters).convert(&self.tokens)?;
        let dialect = MySql::new(tokens.len(), &source.interrupted, source.is_kept);
        let mut parser = Parser::new(&dialect)
            .with_recursion_limit(MAX_NESTING)
            .with_tokens_with_locations(tokens);
        read(&mut parser).map_err(|error| self.syntax_error(source, &parser, &error))?;
        match parser.peek_token_ref().token {
            Out::EOF => Ok(()),
            _ => Err(near(&source.text, self.place(source, &parser))),
        }
    }

    /// The parser's position in the text.
    fn place(&self, source: &Source, parser: &Parser<'_>) -> usize {
        match parser.peek_token_ref().span.start.column {
            0 => source.tokens.get(self.end).map_or(source.text.len(), |token| token.start),
            column => column as usize - 1,
        }
    }

    fn syntax_error(&self, source: &Source, parser: &Parser<'_>, error: &ParserError) -> Error {
        let message = match error {
            ParserError::RecursionLimitExceeded if source.interrupted.load(Ordering::Relaxed) => {
                return Error::interrupted();
            }
            ParserError::RecursionLimitExceeded => return depth::too_deep(),
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
        };
        if let Some(what) = message.strip_prefix(UNSUPPORTED) {
            return Error::unsupported(what);
        }
        let told = message.rsplit_once("Column: ").and_then(|(_, column)| column.parse().ok());
        let place =
            told.map_or_else(|| self.place(source, parser), |column: usize| column.max(1) - 1);
        near(&source.text, place)
    }
}

struct TokenConverter<'a> {
    source: &'a Source,
    parameters: std::slice::Iter<'a, Value>,
    /// The ends of queries that are wrapped as the FROM of another query.
    wrapped: Vec<usize>,
    /// The converted tokens.
    tokens: Range<usize>,
    /// The ends of WITHIN GROUP ORDER BY clauses.
    ordered: Vec<usize>,
    /// The end of a `ROLLUP(…)` in GROUP BY.
    rollups: Vec<usize>,
    /// The tokens of lists of tables in parentheses.
    lists: FxHashMap<usize, ListToken>,
    /// The place of the last `?`, and whether it was an element of ORDER BY or GROUP BY.
    last_parameter: Option<(usize, bool)>,
    out: Vec<TokenWithSpan>,
}

impl<'a> TokenConverter<'a> {
    fn new(source: &'a Source, parameters: &'a [Value]) -> Self {
        let out = Vec::new();
        let (wrapped, ordered, tokens) = (Vec::new(), Vec::new(), 0..source.tokens.len());
        let rollups = Vec::new();
        let parameters = parameters.iter();
        let (lists, last_parameter) = (FxHashMap::default(), None);
        Self { source, parameters, wrapped, tokens, ordered, rollups, lists, last_parameter, out }
    }

    /// Converts these tokens.
    fn convert(mut self, tokens: &Range<usize>) -> Result<Vec<TokenWithSpan>> {
        let (mut at, end) = (tokens.start, tokens.end);
        self.tokens = tokens.clone();
        self.lists = table_lists::find(self.source, tokens);
        self.out.reserve(tokens.len() + 1);
        while let Some(token) = self.source.tokens.get(at).filter(|_| at < end) {
            self.end_orders(at, token);
            at += self.one(at, token)?;
        }
        if let Some(last) = end.checked_sub(1).and_then(|last| self.source.tokens.get(last)) {
            self.end_orders(end, last);
        }
        Ok(self.out)
    }

    /// Closes the WITHIN GROUP ORDER BY clauses that end here.
    fn end_orders(&mut self, at: usize, token: &Token) {
        while self.ordered.last() == Some(&at) {
            self.ordered.pop();
            self.push(token, Out::RParen);
        }
    }

    /// Converts the construct that begins at a token. Returns its number of tokens.
    fn one(&mut self, at: usize, token: &Token) -> Result<usize> {
        refused::check(self.source, at)?;
        if let Some(taken) = self.phrase(at, token).or_else(|| self.list(at, token)) {
            return Ok(taken);
        }
        if self.wrapped.last() == Some(&at) {
            self.wrapped.pop();
            let close = [Out::RParen, Out::make_keyword("AS"), Out::make_word("united", Some('`'))];
            close.into_iter().for_each(|each| self.push(token, each));
        } else if let Some(end) = self.union_in_parentheses(at) {
            self.wrapped.push(end);
            let open = [Out::LParen, Out::make_keyword("SELECT"), Out::Mul];
            open.into_iter().for_each(|each| self.push(token, each));
            self.push(token, Out::make_keyword("FROM"));
        }
        let bytes = self.source.bytes(token);
        let converted = match token.kind {
            TokenKind::Word if self.source.mode.high_not && self.is_high_not(at) => {
                Out::ExclamationMark
            }
            TokenKind::Word => Out::make_word(self.text(token, bytes)?, None),
            TokenKind::Quoted => {
                let plain = unquoted(bytes, self.source.mode);
                Out::make_word(self.text(token, &plain)?, Some('`'))
            }
            TokenKind::Text => return self.texts(at, token),
            TokenKind::National => {
                let quoted = bytes.get(1..).unwrap_or_default();
                let plain = unquoted(quoted, self.source.mode);
                Out::NationalStringLiteral(self.text(token, &plain)?.to_owned())
            }
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Float => {
                Out::Number(self.text(token, bytes)?.to_owned(), false)
            }
            TokenKind::Hex => Out::HexStringLiteral(self.hex(token, bytes)?),
            TokenKind::Bits => Out::SingleQuotedByteStringLiteral(self.bits(token, bytes)?),
            TokenKind::Parameter if self.is_moment(at) => {
                self.moment(token);
                return Ok(1);
            }
            TokenKind::Parameter if self.is_sort_key(at) => {
                self.push(token, Out::LParen);
                self.parameter(token);
                self.push(token, Out::RParen);
                return Ok(1);
            }
            TokenKind::Parameter => {
                self.parameter(token);
                return Ok(1);
            }
            TokenKind::UserVariable => plain_word(self.text(token, bytes)?.to_owned()),
            TokenKind::SystemVariable => return self.system_variable(at, token),
            TokenKind::Operator if bytes == b"||" && !self.source.mode.pipes_as_concat => {
                Out::make_keyword("OR")
            }
            TokenKind::Operator => {
                let bracket = self.bracket(at, bytes);
                bracket.or_else(|| operator(bytes)).ok_or_else(|| self.error(token))?
            }
        };
        self.push(token, converted);
        Ok(1)
    }

    /// A bracket of `j.list[0]`, which Sphinx's dialect allows in a SELECT.
    fn bracket(&self, at: usize, bytes: &[u8]) -> Option<Out> {
        if !matches!(self.source.kind, StatementKind::Select | StatementKind::Rows) {
            return None;
        }
        let before = at.checked_sub(1)?;
        let kind = self.source.tokens.get(before)?.kind;
        let is_behind_name = matches!(kind, TokenKind::Word | TokenKind::Quoted);
        match bytes {
            b"[" if is_behind_name || self.source.is(before, "]") => Some(Out::LBracket),
            b"]" => Some(Out::RBracket),
            _ => None,
        }
    }

    /// Whether NOT begins an expression here.
    fn is_high_not(&self, at: usize) -> bool {
        let Source { text, tokens, mode, .. } = self.source;
        Tokens::new(text, tokens, *mode).is_prefix_not(at)
    }

    /// Replaces words by the parser's own words for the same thing.
    fn phrase(&mut self, at: usize, token: &Token) -> Option<usize> {
        let source = self.source;
        let words = |words: &[&str]| {
            words.iter().enumerate().all(|(index, word)| source.is_word(at + index, word))
        };
        if words(&["LOCK", "IN", "SHARE", "MODE"]) {
            self.push(token, Out::make_keyword("FOR"));
            self.push(token, Out::make_keyword("SHARE"));
            return Some(4);
        }
        let locks = words(&["FOR", "UPDATE", "OF"]) || words(&["FOR", "SHARE", "OF"]);
        if locks && let Some(taken) = self.lock_of(at, token) {
            return Some(taken);
        }
        if refused::is_table_query(source, at) {
            for word in [Out::make_keyword("SELECT"), Out::Mul, Out::make_keyword("FROM")] {
                self.push(token, word);
            }
            return Some(1);
        }
        // The parser knows an ORDER BY form that MySQL does not have. A quoted name prevents it.
        if words(&["NULLS", "FIRST"]) || words(&["NULLS", "LAST"]) {
            self.push(token, Out::make_word(&source.plain(at)?, Some('`')));
            return Some(1);
        }
        if words(&["OFFSET"]) && !refused::is_offset(source, at) {
            self.push(token, Out::make_word(&source.plain(at)?, Some('`')));
            return Some(1);
        }
        if words(&["SIGNED", "INT"]) || words(&["UNSIGNED", "INT"]) {
            self.push(token, Out::make_keyword(&source.plain(at)?.to_uppercase()));
            return Some(2);
        }
        if let Some(taken) = self.rollup(at, token) {
            return Some(taken);
        }
        if words(&["DISTINCTROW"]) {
            self.push(token, Out::make_keyword("DISTINCT"));
            return Some(1);
        }
        let groups::TokenReplacement { taken, tokens, closes_at } =
            groups::replacement(source, at, self.tokens.end)?;
        tokens.into_iter().for_each(|each| self.push(token, each));
        self.ordered.extend(closes_at);
        Some(taken)
    }

    /// A list of tables in parentheses as a cross join, `{OJ …}` as a join in parentheses.
    fn list(&mut self, at: usize, token: &Token) -> Option<usize> {
        let (open, close) = (Out::LParen, Out::RParen);
        let (made, taken) = match self.lists.get(&at)? {
            ListToken::Open => (vec![open.clone(), open], 1),
            ListToken::Close => (vec![close.clone(), close], 1),
            ListToken::Comma => {
                (vec![close, Out::make_keyword("CROSS"), Out::make_keyword("JOIN"), open], 1)
            }
            ListToken::OpenJoin => (vec![open], 2),
            ListToken::CloseJoin => (vec![close], 1),
        };
        made.into_iter().for_each(|each| self.push(token, each));
        Some(taken)
    }

    /// `GROUP BY ROLLUP(a, b)` as `GROUP BY a, b WITH ROLLUP`.
    fn rollup(&mut self, at: usize, token: &Token) -> Option<usize> {
        const OPENS: usize = 3;
        let source = self.source;
        if self.rollups.last() == Some(&at) {
            self.rollups.pop();
            self.push(token, Out::make_keyword("WITH"));
            self.push(token, Out::make_keyword("ROLLUP"));
            return Some(1);
        }
        let mut words = ["GROUP", "BY", "ROLLUP"].into_iter().enumerate();
        let begins = words.all(|(nth, word)| source.is_word(at + nth, word));
        if !begins || !source.is(at + OPENS, "(") {
            return None;
        }
        self.rollups.push(refused::closing(source, at + OPENS)?);
        self.push(token, Out::make_keyword("GROUP"));
        self.push(token, Out::make_keyword("BY"));
        Some(OPENS + 1)
    }

    /// `FOR UPDATE OF a, b` as `FOR UPDATE OF a FOR UPDATE OF b`: the parser allows one table for each clause.
    fn lock_of(&mut self, at: usize, token: &Token) -> Option<usize> {
        const START: usize = 3;
        let source = self.source;
        let kind = if source.is_word(at + 1, "UPDATE") { "UPDATE" } else { "SHARE" };
        let mut end = at + START;
        let is_name = |at: usize| {
            let kind = source.tokens.get(at).map(|token| token.kind);
            matches!(kind, Some(TokenKind::Word | TokenKind::Quoted))
        };
        while is_name(end) && source.is(end + 1, ",") && is_name(end + 2) {
            for word in ["FOR", kind, "OF"] {
                self.push(token, Out::make_keyword(word));
            }
            let name = source.tokens.get(end)?;
            self.one(end, name).ok()?;
            end += 2;
        }
        if end == at + START {
            return None;
        }
        for word in ["FOR", kind, "OF"] {
            self.push(token, Out::make_keyword(word));
        }
        Some(end - at)
    }

    /// The end of a `((SELECT …) UNION …)` that begins here and is used as a value. The parser would read its first
    /// SELECT as an expression.
    fn union_in_parentheses(&self, at: usize) -> Option<usize> {
        const QUERIES: [&str; 6] = ["FROM", "JOIN", "LATERAL", "IN", "EXISTS", "AS"];
        const SETS: [&str; 3] = ["UNION", "EXCEPT", "INTERSECT"];
        let source = self.source;
        if at == self.tokens.start || !source.is(at, "(") || !source.is(at + 1, "(") {
            return None;
        }
        let follows = |at, words: &[&str]| words.iter().any(|word| source.is_word(at, word));
        let is_part = match follows(at - 1, &["ALL", "DISTINCT"]) {
            true => at > 1 && follows(at - 2, &SETS),
            false => follows(at - 1, &SETS),
        };
        let after_query = is_part || follows(at - 1, &QUERIES);
        let first = (at + 1..).find(|place| !source.is(*place, "("))?;
        if after_query || !follows(first, &["SELECT", "WITH", "TABLE"]) {
            return None;
        }
        let inner = refused::closing(source, at + 1)?;
        if follows(inner + 1, &SETS) { refused::closing(source, at) } else { None }
    }

    /// Adjacent text literals are one text.
    fn texts(&mut self, at: usize, token: &Token) -> Result<usize> {
        let mut plain = unquoted(self.source.bytes(token), self.source.mode);
        let rest = self.source.tokens.get(at + 1..).unwrap_or_default();
        let more = rest.iter().take_while(|next| next.kind == TokenKind::Text);
        let mut taken = 1;
        for next in more {
            plain.extend(unquoted(self.source.bytes(next), self.source.mode));
            taken += 1;
        }
        let client = self.source.mode.client;
        if self.is_binary(at) && !client.is_utf8() {
            self.out.pop();
            plain = sent_bytes(plain, self.source.mode);
            self.push(token, Out::HexStringLiteral(hex_digits(&plain)));
            return Ok(taken);
        }
        // The introducer declares another character set than the client's.
        let is_other = |other: Charset| other != client && !(other.is_utf8() && client.is_utf8());
        if !plain.is_ascii() && self.introduced(at).is_some_and(is_other) {
            plain = sent_bytes(plain, self.source.mode);
            self.push(token, Out::HexStringLiteral(hex_digits(&plain)));
            return Ok(taken);
        }
        let converted = match String::from_utf8(plain) {
            Ok(text) => Out::SingleQuotedString(text),
            Err(error) if self.is_binary(at) => {
                self.out.pop();
                Out::HexStringLiteral(hex_digits(error.as_bytes()))
            }
            Err(error) => {
                // Invalid bytes stay as they are; the statement reports a warning for them.
                self.push(token, Out::make_word("_binary", None));
                Out::HexStringLiteral(hex_digits(error.as_bytes()))
            }
        };
        self.push(token, converted);
        Ok(taken)
    }

    /// The character set introducer before a text, as in `_latin1'x'`.
    fn introduced(&self, at: usize) -> Option<Charset> {
        let before = self.source.tokens.get(at.checked_sub(1)?)?;
        let name = self.source.bytes(before).strip_prefix(b"_")?;
        Charset::named(std::str::from_utf8(name).ok()?)
    }

    /// Whether the introducer `_binary` precedes.
    fn is_binary(&self, at: usize) -> bool {
        at.checked_sub(1).is_some_and(|before| self.source.is_word(before, "_BINARY"))
    }

    /// `@@scope.name` becomes one word.
    fn system_variable(&mut self, at: usize, token: &Token) -> Result<usize> {
        let mut name = self.text(token, self.source.bytes(token))?.to_owned();
        let mut taken = 1;
        if name.len() == 2 {
            let next = self.source.tokens.get(at + 1).ok_or_else(|| self.error(token))?;
            if next.kind != TokenKind::Quoted {
                return Err(self.error(next));
            }
            name.push_str(&self.source.plain(at + 1).unwrap_or_default());
            taken = 2;
        }
        if self.source.is(at + taken, ".") {
            let part = self.source.plain(at + taken + 1).ok_or_else(|| self.error(token))?;
            name = format!("{name}.{part}");
            taken += 2;
        }
        self.push(token, plain_word(name));
        Ok(taken)
    }

    /// The value of the next `?`, or NULL if values are not known yet.
    fn parameter(&mut self, token: &Token) {
        let null = || Out::make_keyword("NULL");
        let Some(value) = self.parameters.next() else { return self.push(token, null()) };
        let converted = match value {
            Value::Null => null(),
            Value::Int(number) if *number < 0 => {
                self.push(token, Out::Minus);
                Out::Number(number.unsigned_abs().to_string(), false)
            }
            Value::Int(number) => Out::Number(number.to_string(), false),
            Value::Uint(number) => Out::Number(number.to_string(), false),
            Value::Bool(truth) => Out::Number(u8::from(*truth).to_string(), false),
            Value::Float(number) => return self.number(token, &format!("{number:e}")),
            Value::Decimal(number) => return self.number(token, &number.to_string()),
            Value::Bytes(bytes) => {
                self.push(token, Out::make_word("_binary", None));
                Out::HexStringLiteral(hex_digits(bytes))
            }
            Value::Text(text) | Value::Json(text) => Out::SingleQuotedString(text.to_string()),
            Value::Date(_) => return self.typed(token, "DATE", value),
            Value::DateTime(_) | Value::Timestamp(_) => {
                return self.typed(token, "TIMESTAMP", value);
            }
            Value::Time(_) => return self.typed(token, "TIME", value),
        };
        self.push(token, converted);
    }

    /// Whether a `?` is a DATETIME(6) whatever its value is: `UNIX_TIMESTAMP(?)` has six digits.
    fn is_moment(&self, at: usize) -> bool {
        let source = self.source;
        at >= 2
            && source.is_word(at - 2, "UNIX_TIMESTAMP")
            && source.is(at - 1, "(")
            && source.is(at + 1, ")")
    }

    /// Whether a `?` is an element of ORDER BY or GROUP BY. Its number is a constant, not the position of a column.
    fn is_sort_key(&mut self, at: usize) -> bool {
        // In `?, ?` the second is what the first is, however long the list.
        let is = match self.last_parameter {
            Some((before, is)) if before + 2 == at && self.source.is(at - 1, ",") => is,
            _ => self.is_behind_by(at),
        };
        self.last_parameter = Some((at, is));
        is
    }

    fn is_behind_by(&self, at: usize) -> bool {
        let source = self.source;
        let Some(last) = at.checked_sub(1) else { return false };
        if !source.is(last, ",") {
            return source.is_word(last, "BY");
        }
        let mut depth = 0u32;
        for before in (last.saturating_sub(MAX_KEY_TOKENS)..last).rev() {
            if source.is(before, ")") {
                depth += 1;
            } else if source.is(before, "(") {
                let Some(outer) = depth.checked_sub(1) else { return false };
                depth = outer;
            } else if depth == 0 && source.is_word(before, "BY") {
                return true;
            } else if depth == 0 && BEHIND_KEYS.iter().any(|word| source.is_word(before, word)) {
                return false;
            }
        }
        false
    }

    /// The value of the next `?` as DATETIME(6).
    fn moment(&mut self, token: &Token) {
        let open = [Out::make_keyword("CAST"), Out::LParen];
        open.into_iter().for_each(|each| self.push(token, each));
        self.parameter(token);
        let (digits, kind) = (Out::Number("6".to_owned(), false), Out::make_keyword("DATETIME"));
        let close = [Out::make_keyword("AS"), kind, Out::LParen, digits, Out::RParen, Out::RParen];
        close.into_iter().for_each(|each| self.push(token, each));
    }

    fn number(&mut self, token: &Token, text: &str) {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        if negative {
            self.push(token, Out::Minus);
        }
        self.push(token, Out::Number(digits.to_owned(), false));
    }

    fn typed(&mut self, token: &Token, kind: &str, value: &Value) {
        self.push(token, Out::make_keyword(kind));
        self.push(token, Out::SingleQuotedString(value.to_string()));
    }

    fn hex(&self, token: &Token, bytes: &[u8]) -> Result<String> {
        let digits = self.text(token, bytes.get(2..).unwrap_or_default())?;
        let quoted = digits.ends_with('\'');
        let digits = digits.trim_end_matches('\'');
        let valid = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match (valid, digits.len() % 2) {
            (true, 0) => Ok(digits.to_owned()),
            (true, _) if !quoted => Ok(format!("0{digits}")),
            _ => Err(self.error(token)),
        }
    }

    fn bits(&self, token: &Token, bytes: &[u8]) -> Result<String> {
        let digits = self.text(token, bytes.get(2..).unwrap_or_default())?;
        let digits = digits.trim_end_matches('\'');
        match digits.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
            true => Ok(digits.to_owned()),
            false => Err(self.error(token)),
        }
    }

    fn text<'b>(&self, token: &Token, bytes: &'b [u8]) -> Result<&'b str> {
        std::str::from_utf8(bytes).map_err(|_| self.error(token))
    }

    fn error(&self, token: &Token) -> Error {
        near(&self.source.text, token.start)
    }

    fn push(&mut self, token: &Token, converted: Out) {
        let at = |place: usize| Location { line: 1, column: place as u64 + 1 };
        let span = Span { start: at(token.start), end: at(token.end) };
        self.out.push(TokenWithSpan { token: converted, span });
    }
}

/// A word that is no keyword.
fn plain_word(value: String) -> Out {
    Out::Word(Word { value, quote_style: None, keyword: Keyword::NoKeyword })
}

fn operator(bytes: &[u8]) -> Option<Out> {
    Some(match bytes {
        b"," => Out::Comma,
        b"(" => Out::LParen,
        b")" => Out::RParen,
        b"=" => Out::Eq,
        b"." => Out::Period,
        b"*" => Out::Mul,
        b"+" => Out::Plus,
        b"-" => Out::Minus,
        b"/" => Out::Div,
        b"%" => Out::Mod,
        b"<" => Out::Lt,
        b">" => Out::Gt,
        b"<=" => Out::LtEq,
        b">=" => Out::GtEq,
        b"<>" | b"!=" => Out::Neq,
        b"<=>" => Out::Spaceship,
        b":=" => Out::Assignment,
        b"&&" => Out::make_keyword("AND"),
        b"||" => Out::StringConcat,
        b"<<" => Out::ShiftLeft,
        b">>" => Out::ShiftRight,
        b"&" => Out::Ampersand,
        b"|" => Out::Pipe,
        b"^" => Out::Caret,
        b"~" => Out::Tilde,
        b"!" => Out::ExclamationMark,
        b"->" => Out::Arrow,
        b"->>" => Out::LongArrow,
        b"{" => Out::LBrace,
        b"}" => Out::RBrace,
        b":" => Out::Colon,
        b";" => Out::SemiColon,
        _ => return None,
    })
}

fn hex_digits(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a text does not fail.
        let _ = write!(out, "{byte:02X}");
    }
    out
}

#[cfg(test)]
mod tests {
    use remora_mysql::LexMode;

    use super::*;
    use crate::parse::split;

    fn parsed(text: &str, parameters: &[Value]) -> Result<String> {
        let mut all = split(text.as_bytes(), false, LexMode::default())?;
        statement(&all.remove(0), parameters).map(|statement| statement.to_string())
    }

    #[test]
    fn operators_bind_as_in_mysql() {
        let shown = |text: &str| {
            format!("{:?}", {
                let mut all = split(text.as_bytes(), false, LexMode::default()).unwrap();
                statement(&all.remove(0), &[]).unwrap()
            })
        };
        let same = |a: &str, b: &str| {
            let strip = |text: &str| parsed(text, &[]).unwrap();
            let (a, b) = (strip(a), strip(b));
            assert_eq!(a, b);
        };
        same("select a mod b", "select a % b");
        same("select a || b && c", "select a or b and c");
        same("select match a, t.b against ('x')", "select match (a, t.b) against ('x')");
        assert!(shown("select 7 DIV 2 + 1").contains("op: Plus, right: Value"));
        assert!(shown("select 1 | 2 & 3").contains("op: BitwiseOr, right: BinaryOp"));
        assert!(shown("select 2 ^ 3 * 4").contains("op: Multiply, right: Value"));
        assert!(shown("select 1 << 2 + 3").contains("op: PGBitwiseShiftLeft, right: BinaryOp"));
        assert!(shown("select not a = b").contains("op: Not, expr: BinaryOp"));
    }

    #[test]
    fn parameters_become_literals() {
        let values = [Value::Int(-3), Value::Text("a'b".into()), Value::Null];
        let text = parsed("select ? + 1, ? from t where a is ? limit 1", &values).unwrap();
        assert_eq!(text, "SELECT -3 + 1, 'a''b' FROM t WHERE a IS NULL LIMIT 1");
    }

    #[test]
    fn clauses_of_json_value_are_read_or_refused_by_name() {
        let read = |clauses: &str| parsed(&format!("select json_value(a, '$' {clauses})"), &[]);
        let typed = read("returning char(9) charset utf8mb4 default date '2020-01-01' on empty");
        let typed = typed.unwrap();
        assert!(typed.contains("'char 9', '=2020-01-01', 'null'"), "{typed}");
        let other = read("returning char character set utf8 default true on error").unwrap();
        assert!(other.contains("'char', 'null', '=true'"), "{other}");
        let refused = read("returning char(9) character set latin1").unwrap_err().message;
        assert!(refused.contains("JSON_VALUE with CHARACTER SET latin1"), "{refused}");
        let refused = read("default x'61' on empty").unwrap_err().message;
        assert!(refused.contains("JSON_VALUE with DEFAULT"), "{refused}");
    }

    #[test]
    fn errors_name_the_place() {
        let error = |text: &str| parsed(text, &[]).unwrap_err().message;
        assert!(error("selec 1").ends_with("near 'selec 1' at line 1"));
        assert!(error("select 1 from").ends_with("near '' at line 1"));
        assert!(error("select 1\nfrom t limit 1 where a").ends_with("near 'where a' at line 2"));
        assert!(error("select 1 2").ends_with("near '2' at line 1"));
        let every = error("select 1, ( * ) from t");
        assert!(every.ends_with("near '* ) from t' at line 1"), "{every}");
        assert!(error("select (*) from t").ends_with("near '*) from t' at line 1"));
        let null = error("select a from t where a not null");
        assert!(null.ends_with("near 'not null' at line 1"), "{null}");
        assert!(parsed("select not null, count( * ) from t where not null", &[]).is_ok());
        let order = error("select a from t order by a nulls last");
        assert!(order.ends_with("near 'nulls last' at line 1"), "{order}");
        let group = error("select group_concat(a order by a nulls first) from t");
        assert!(group.ends_with("near 'nulls first) from t' at line 1"), "{group}");
    }
}
