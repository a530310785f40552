//! Splits, classifies and parses statements.

mod call;
mod cast;
mod classify;
pub(crate) mod define;
mod depth;
mod dialect;
mod distance;
mod facets;
mod factors;
mod groups;
mod highlight;
mod interval;
mod json_value;
mod keywords;
mod lex;
mod options;
mod refused;
mod syntax;
mod table_lists;
mod tokens;
mod unit;
mod visit;
pub(crate) mod write;

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, atomic::AtomicBool},
};

use datafusion::sql::sqlparser::ast;
use remora_engine::Value;

pub(crate) use call::{
    MATCH, MATCH_AT_PATHS, MATCH_OF, MATCH_OF_PATHS, count_of, function_call, function_named,
};
pub(crate) use classify::StatementKind;
pub(crate) use depth::{checked_parts, too_costly};
pub(crate) use dialect::SOUNDS_LIKE;
pub(crate) use facets::{Faceted, faceted};
pub(crate) use factors::FACTORS;
pub(crate) use groups::{GroupRows, take_group_rows};
pub(crate) use highlight::{BETWEEN_OPTIONS, HIGHLIGHT};
pub(crate) use json_value::{DEFAULT, ERROR, JSON_VALUE_OF};
pub(crate) use keywords::{KEYWORDS, NamedOptions, OptionValue, UNKNOWN_RANKER, named_options};
pub(crate) use lex::{near, sent_bytes, tokens};
pub(crate) use options::{CUTOFF, MAX_MATCHES, MAX_QUERY_TIME, PARTIAL, RAND_SEED, check_option};
use remora_mysql::{LexMode, StatementTokens, Token, TokenKind, unquoted};
#[cfg(test)]
pub(crate) use syntax::PARSES;
use tokens::Place;
pub(crate) use tokens::{Tokens, read};
pub(crate) use unit::Unit;
pub(crate) use visit::{
    Visit, VisitMut, change_own_expressions, visit_expressions, visit_own_expressions,
};

use crate::Result;

/// Longer texts are parsed in a thread for blocking work.
pub(crate) const LONG_BYTES: usize = 4 << 10;

/// The prefix of the parser's errors for syntax that MySQL accepts and we do not support.
const UNSUPPORTED: &str = "unsupported: ";

/// The text of one statement and its tokens. Shared by all executions of a prepared statement.
#[derive(Debug)]
pub(crate) struct Source {
    /// The bytes of this statement alone.
    pub text: Vec<u8>,
    /// Its tokens, of which there is at least one.
    pub tokens: Vec<Token>,
    /// How quotes were read.
    pub mode: LexMode,
    /// Its class.
    pub kind: StatementKind,
    /// How many `?` it has.
    pub parameters: usize,
    /// Whether the text was stored, maybe by an older version or another server. It may have syntax that clients may
    /// not send.
    pub is_kept: bool,
    /// Set when the statement must end: parsing ends then too.
    pub interrupted: Arc<AtomicBool>,
}

/// A statement to be run: its text, and the values for its `?`.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'a> {
    /// The text.
    pub source: Arc<Source>,
    /// A value for each `?`.
    pub parameters: &'a [Value],
}

/// The statements of a text, without empty ones; if `many` is not set, a second one is left where
/// it is, for the parser to complain of.
pub(crate) fn split(text: &[u8], many: bool, mode: LexMode) -> Result<Vec<Source>> {
    let found = remora_mysql::split(text, many, mode).map_err(|open| near(text, open.start))?;
    let source = |each: StatementTokens| {
        let own = text.get(each.text).unwrap_or_default();
        Source::new(own.to_vec(), each.tokens, mode)
    };
    Ok(found.into_iter().map(source).collect())
}

impl Source {
    /// The statement of a text and its tokens.
    pub(crate) fn new(text: Vec<u8>, tokens: Vec<Token>, mode: LexMode) -> Self {
        let kind = classify::kind(&text, &tokens);
        let is_parameter = |token: &&Token| token.kind == TokenKind::Parameter;
        let parameters = tokens.iter().filter(is_parameter).count();
        let interrupted = Arc::default();
        Self { text, tokens, mode, kind, parameters, is_kept: false, interrupted }
    }

    /// The statement that these tokens of it are.
    pub(crate) fn within(&self, tokens: Range<usize>) -> Self {
        let tokens = self.tokens.get(tokens).unwrap_or_default();
        let start = tokens.first().map_or(0, |first| first.start);
        let end = tokens.last().map_or(0, |last| last.end);
        let moved = tokens.iter().map(|token| Token {
            start: token.start - start,
            end: token.end - start,
            ..*token
        });
        let text = self.text.get(start..end).unwrap_or_default().to_vec();
        let made = Self::new(text, moved.collect(), self.mode);
        Self { is_kept: self.is_kept, interrupted: Arc::clone(&self.interrupted), ..made }
    }

    /// Whether the text is so long that it is parsed in a thread for blocking work.
    pub(crate) fn is_long(&self) -> bool {
        self.text.len() > LONG_BYTES
    }

    /// The text, for people.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// The token's bytes.
    pub(crate) fn bytes(&self, token: &Token) -> &[u8] {
        token.bytes(&self.text)
    }

    /// Whether the token at this place is this keyword, given in upper case.
    pub(crate) fn is_word(&self, at: usize, keyword: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_word(&self.text, keyword))
    }

    /// Whether the token at this place is this operator.
    pub(crate) fn is(&self, at: usize, operator: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(&self.text, operator))
    }

    /// The content of the token at this place: a name or text without its quotes and escapes.
    pub(crate) fn plain(&self, at: usize) -> Option<String> {
        let token = self.tokens.get(at)?;
        let bytes = self.bytes(token);
        let bytes = match token.kind {
            TokenKind::Quoted | TokenKind::Text => unquoted(bytes, self.mode),
            _ => bytes.to_vec(),
        };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// 1064 at the first `?`: a text that comes without values has none for it.
    pub(crate) fn refuse_parameters(&self) -> crate::Result<()> {
        let mut tokens = self.tokens.iter();
        match tokens.position(|token| token.kind == TokenKind::Parameter) {
            Some(place) => Err(self.syntax_error(place)),
            None => Ok(()),
        }
    }

    /// 1064 at a token; behind the last one it is at the end.
    pub(crate) fn syntax_error(&self, at: usize) -> crate::Error {
        let place = self.tokens.get(at).map_or(self.text.len(), |token| token.start);
        lex::near(&self.text, place)
    }
}

impl Statement<'_> {
    /// What it is.
    pub(crate) fn kind(&self) -> StatementKind {
        self.source.kind
    }

    /// Its syntax tree, with the values in the places of `?`; 1064 with the place if it has none.
    /// Costs tens of microseconds.
    pub(crate) fn parse(&self) -> Result<ast::Statement> {
        syntax::statement(&self.source, self.parameters)
    }

    /// Likewise of a query; 1235 if it is none.
    pub(crate) fn parse_query(&self) -> Result<ast::Query> {
        self.parse().and_then(query)
    }

    /// The syntax tree of a statement inside this one, from these tokens. `parameters` are the values of its `?`.
    pub(crate) fn parse_within(
        &self,
        tokens: Range<usize>,
        parameters: &[Value],
    ) -> Result<ast::Statement> {
        syntax::statement_within(&self.source, tokens, parameters)
    }
}

/// The query that a statement is; 1235 if it is none.
pub(crate) fn query(statement: ast::Statement) -> Result<ast::Query> {
    match statement {
        ast::Statement::Query(query) => Ok(*query),
        other => Err(crate::Error::unsupported(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_split_outside_of_quotes() {
        let all = split(b"select ';' ; ; set a=1;-- x", true, LexMode::default()).unwrap();
        let shown: Vec<_> = all.iter().map(|each| each.shown().into_owned()).collect();
        assert_eq!(shown, ["select ';' ", " set a=1"]);
        assert_eq!((all[0].kind, all[1].kind), (StatementKind::Select, StatementKind::Set));
        assert!(all[1].is_word(0, "SET") && all[1].is(2, "="));
    }
}
