//! The parser.

use super::{
    MAX_DEPTH, MAX_QUERY_POSITION, MAX_WORDS, expand,
    lexer::{LexedToken, Number, QueryLexer},
    negation,
    options::QueryOptions,
    raw::{QueryOperator, Raw},
    tree::{Node, Quoted, QuotedKind, Word},
};
use crate::{Result, WordsError, analysis::Analyzer};

/// A parsed query.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// Its tree; `None` if nothing is left of it, so that it matches nothing.
    pub root: Option<Node>,
    /// A warning about what was ignored, in Sphinx's words.
    pub warning: Option<String>,
}

/// Parses a query; `fields` are the names of the fields.
///
/// # Errors
/// [`WordsError::Query`] with Sphinx's message.
pub fn parse(text: &str, analyzer: &Analyzer, fields: &[String]) -> Result<Parsed> {
    parse_with(text, analyzer, fields, &QueryOptions::default())
}

/// Parses a query with options.
///
/// # Errors
/// [`WordsError::Query`] with Sphinx's message.
pub fn parse_with(
    text: &str,
    analyzer: &Analyzer,
    fields: &[String],
    options: &QueryOptions,
) -> Result<Parsed> {
    parse_written(&analyzer.replaced(text), analyzer, fields, options)
}

/// Parses a query without the replacements of `regexp_filter`, as its words are looked for in texts to highlight.
pub(crate) fn parse_written(
    text: &str,
    analyzer: &Analyzer,
    fields: &[String],
    options: &QueryOptions,
) -> Result<Parsed> {
    let lexer = QueryLexer::new(text, analyzer, fields);
    let joined = if options.is_any { QueryOperator::Any } else { QueryOperator::And };
    let token = LexedToken::End;
    let mut parser = Parser { lexer, token, joined, depth: 0, words: 0, changes: 0 };
    parser.advance()?;
    if parser.token == LexedToken::End && parser.lexer.is_empty {
        return Ok(Parsed { root: None, warning: None });
    }
    let root = parser.and()?;
    if parser.token != LexedToken::End {
        return Err(parser.unexpected(""));
    }
    // A single word or phrase is kept even if it is limited to no field, so that its words are reported.
    let is_single = matches!(root, Raw::Word(_) | Raw::Quoted(_));
    let is_dropped = parser.lexer.is_relaxed() && !is_single;
    let root = if is_dropped { root.with_fields() } else { root };
    let node = |root| negation::computable(root, options.takes_only_not);
    let mut root = root.swept().map(node).transpose()?;
    if let Some(root) = &mut root {
        expand::expand(root, options, analyzer.settings());
    }
    Ok(Parsed { root, warning: parser.lexer.warning })
}

struct Parser<'a> {
    lexer: QueryLexer<'a>,
    /// The current token.
    token: LexedToken,
    /// How parts without an operator between them are joined.
    joined: QueryOperator,
    depth: usize,
    words: usize,
    /// How often an operator joined a part built with another operator.
    changes: usize,
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<()> {
        self.token = self.lexer.next()?;
        if let LexedToken::Word(word, stars) = &self.token {
            let position = word.as_ref().map_or(0, |word| word.position);
            if position.saturating_add(*stars) > MAX_QUERY_POSITION {
                let message = format!("query has more than {MAX_QUERY_POSITION} positions");
                return Err(WordsError::Query(message));
            }
            self.words += 1;
            if self.words > MAX_WORDS {
                let message = format!("query has more than {MAX_WORDS} words");
                return Err(WordsError::Query(message));
            }
        }
        Ok(())
    }

    fn unexpected(&self, expecting: &str) -> WordsError {
        let (token, rest) = (self.token.name(), self.lexer.rest());
        WordsError::Query(format!("syntax error, unexpected {token}{expecting} near '{rest}'"))
    }

    fn starts_order(&self) -> bool {
        match self.token {
            LexedToken::Word(..) | LexedToken::Limit | LexedToken::Zone { .. } => true,
            LexedToken::Special(special) => matches!(special, '"' | '(' | '-' | '!' | '='),
            _ => false,
        }
    }

    /// Joins two parts. Each change of the operator makes the tree deeper.
    fn join(&mut self, operator: QueryOperator, left: Raw, right: Raw) -> Result<Raw> {
        if operator == QueryOperator::Before && (left.is_in_zone_span() || right.is_in_zone_span())
        {
            let warning = "BEFORE operator is incompatible with ZONESPAN, ZONESPAN ignored";
            self.lexer.warning = Some(warning.to_owned());
        }
        let is_other = |part: &Raw| matches!(part, Raw::Joined(other, _) if *other != operator);
        self.changes += usize::from(is_other(&left));
        if self.changes > MAX_DEPTH {
            let message = format!("query changes its operators more than {MAX_DEPTH} times");
            return Err(WordsError::Query(message));
        }
        Ok(Raw::join(operator, left, right))
    }

    fn and(&mut self) -> Result<Raw> {
        let mut all = self.order()?;
        while self.starts_order() {
            let next = self.order()?;
            all = self.join(self.joined, all, next)?;
        }
        Ok(all)
    }

    fn order(&mut self) -> Result<Raw> {
        let mut all = self.neg()?;
        loop {
            let operator = match self.token {
                LexedToken::Before => QueryOperator::Before,
                LexedToken::Near(distance) => QueryOperator::Near(distance),
                _ => return Ok(all),
            };
            self.advance()?;
            let next = self.neg()?;
            all = self.join(operator, all, next)?;
        }
    }

    fn neg(&mut self) -> Result<Raw> {
        let is_limited = self.limit()?;
        if !matches!(self.token, LexedToken::Special('-' | '!')) {
            return self.alt(is_limited);
        }
        self.advance()?;
        Ok(Raw::Not(Box::new(self.alt(false)?)))
    }

    fn limit(&mut self) -> Result<bool> {
        let is_limit = matches!(self.token, LexedToken::Limit | LexedToken::Zone { .. });
        if is_limit {
            self.advance()?;
        }
        Ok(is_limit)
    }

    fn alt(&mut self, is_limited: bool) -> Result<Raw> {
        if !is_limited {
            self.limit()?;
        }
        let mut all = self.atom()?;
        loop {
            let operator = match self.token {
                LexedToken::Special('|') => QueryOperator::Or,
                LexedToken::Maybe => QueryOperator::Maybe,
                _ => return Ok(all),
            };
            self.advance()?;
            self.limit()?;
            let next = self.atom()?;
            all = self.join(operator, all, next)?;
        }
    }

    fn atom(&mut self) -> Result<Raw> {
        let mut all = self.operand()?;
        while let LexedToken::NotNear(distance) = self.token {
            self.advance()?;
            let next = self.operand()?;
            all = self.join(QueryOperator::NotNear(distance), all, next)?;
        }
        Ok(all)
    }

    fn operand(&mut self) -> Result<Raw> {
        match self.token {
            LexedToken::Special('(') => self.group(),
            LexedToken::Special('=') => {
                self.advance()?;
                self.exact_quoted()
            }
            LexedToken::Special('"') => {
                let (part, is_plain) = self.quoted(false)?;
                if is_plain { self.unit(part) } else { Ok(part) }
            }
            LexedToken::Word(..) => {
                let part = self.keyword()?;
                self.unit(part)
            }
            _ => Err(self.unexpected("")),
        }
    }

    fn keyword(&mut self) -> Result<Raw> {
        let LexedToken::Word(word, _) = std::mem::replace(&mut self.token, LexedToken::End) else {
            return Err(self.unexpected(""));
        };
        self.advance()?;
        Ok(word.map_or(Raw::Empty, Raw::Word))
    }

    fn group(&mut self) -> Result<Raw> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("query nests more than {MAX_DEPTH} parentheses");
            return Err(WordsError::Query(message));
        }
        self.advance()?;
        let inner = self.and()?;
        if self.token != LexedToken::Special(')') {
            return Err(self.unexpected(""));
        }
        self.advance()?;
        self.depth -= 1;
        Ok(inner)
    }

    /// Parses SENTENCE and PARAGRAPH, whose operands are words and plain phrases.
    fn unit(&mut self, first: Raw) -> Result<Raw> {
        let LexedToken::Unit(unit) = self.token else { return Ok(first) };
        let mut all = first;
        while let LexedToken::Unit(next) = self.token {
            if next != unit {
                return Err(self.unexpected(""));
            }
            self.advance()?;
            let part = match self.token {
                LexedToken::Word(..) => self.keyword()?,
                LexedToken::Special('"') => self.plain_phrase()?,
                _ => return Err(self.unexpected("")),
            };
            all = Raw::join(QueryOperator::Unit(unit), all, part);
        }
        Ok(all)
    }

    /// Parses a phrase of at least one word, without `~` or `/`.
    fn plain_phrase(&mut self) -> Result<Raw> {
        let words = self.quoted_words(true)?.into_iter().map(|(word, _)| word).collect();
        self.advance()?;
        if matches!(self.token, LexedToken::Special('~' | '/')) {
            return Err(self.unexpected(""));
        }
        Ok(Raw::Quoted(Quoted { words, kind: QuotedKind::Phrase }))
    }

    fn exact_quoted(&mut self) -> Result<Raw> {
        if self.token != LexedToken::Special('"') {
            return Err(self.unexpected(""));
        }
        let (part, _) = self.quoted(true)?;
        Ok(part)
    }

    /// Parses words within quotes; also returns whether they are a plain phrase.
    fn quoted(&mut self, is_exact: bool) -> Result<(Raw, bool)> {
        let mut words = self.quoted_words(false)?;
        if is_exact {
            words.iter_mut().for_each(|(word, _)| {
                word.is_exact = true;
                word.others.iter_mut().for_each(|other| other.is_exact = true);
            });
        }
        self.advance()?;
        let kind = match self.token {
            LexedToken::Special('~') if !is_exact => {
                match self.number(false, ", expecting TOK_INT")? {
                    Number::Whole(distance) => QuotedKind::Proximity(distance),
                    Number::Fraction(_) => return Err(self.unexpected(", expecting TOK_INT")),
                }
            }
            LexedToken::Special('/') if !is_exact => {
                match self.number(true, ", expecting TOK_INT or TOK_FLOAT")? {
                    Number::Whole(count) => QuotedKind::Quorum(count),
                    Number::Fraction(share) => QuotedKind::QuorumShare(share),
                }
            }
            _ => {
                let words = shifted(words);
                return Ok((Raw::Quoted(Quoted { words, kind: QuotedKind::Phrase }), true));
            }
        };
        let words = words.into_iter().map(|(word, _)| word).collect();
        Ok((Raw::Quoted(Quoted { words, kind }), false))
    }

    /// Parses words up to the closing quote, which is then the current token; each with the number of stars before
    /// it.
    fn quoted_words(&mut self, needs_one: bool) -> Result<Vec<(Word, u32)>> {
        let mut words = Vec::new();
        let mut count = 0;
        self.lexer.is_quoted = true;
        self.advance()?;
        loop {
            match self.token.clone() {
                LexedToken::Word(word, stars) => words.extend(word.map(|word| (word, stars))),
                LexedToken::Special('(') => words.extend(self.quoted_group()?),
                LexedToken::Special('"') if count > 0 || !needs_one => break,
                _ => return Err(self.unexpected("")),
            }
            count += 1;
            self.advance()?;
        }
        self.lexer.is_quoted = false;
        Ok(words)
    }

    /// Parses the words of a group within quotes, of which one stands at its place, up to its end, which is then the
    /// current token.
    fn quoted_group(&mut self) -> Result<Option<(Word, u32)>> {
        let mut first: Option<(Word, u32)> = None;
        loop {
            self.advance()?;
            let LexedToken::Word(word, stars) = self.token.clone() else {
                return Err(self.unexpected(", expecting TOK_KEYWORD"));
            };
            match (&mut first, word) {
                (Some((first, _)), Some(word)) => first.others.push(word),
                (first @ None, Some(word)) => *first = Some((word, stars)),
                (_, None) => {}
            }
            self.advance()?;
            match self.token {
                LexedToken::Special('|') => {}
                LexedToken::Special(')') => return Ok(first),
                _ => return Err(self.unexpected(", expecting '|' or ')'")),
            }
        }
    }

    fn number(&mut self, takes_fraction: bool, expecting: &str) -> Result<Number> {
        match self.lexer.number(takes_fraction) {
            Some(number) => {
                self.advance()?;
                Ok(number)
            }
            None => {
                self.advance()?;
                Err(self.unexpected(expecting))
            }
        }
    }
}

/// The words of a phrase, with positions shifted by the stars before them.
fn shifted(words: Vec<(Word, u32)>) -> Vec<Word> {
    let shift = |(mut word, stars): (Word, u32)| {
        word.position += stars;
        word.others.iter_mut().for_each(|other| other.position += stars);
        word
    };
    words.into_iter().map(shift).collect()
}
