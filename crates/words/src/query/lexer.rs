//! The tokens of a query: words with their modifiers, operators and field limits.

use std::sync::Arc;

use super::{
    MAX_ZONES, fields,
    tree::{Limit, TextUnit, Word, Zones},
};
use crate::{
    Result, WordsError,
    analysis::{Analyzer, QueryToken, QueryTokenKind, QueryTokens},
};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LexedToken {
    /// The end of the query.
    End,
    /// A word, and the number of stars before it within its quotes. `None` for a stop word.
    Word(Option<Word>, u32),
    /// An operator or another special character.
    Special(char),
    /// `<<`.
    Before,
    /// `NEAR/3`.
    Near(u32),
    /// `NOTNEAR/3`.
    NotNear(u32),
    /// `MAYBE`.
    Maybe,
    /// `SENTENCE` or `PARAGRAPH`.
    Unit(TextUnit),
    /// `@title`: the words that follow are limited to fields.
    Limit,
    /// `ZONE:h1` or `ZONESPAN:h1`: the words that follow are limited to zones.
    Zone { is_span: bool },
}

impl LexedToken {
    /// The token's name in Sphinx's error messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::End => "$end".to_owned(),
            Self::Word(..) => "TOK_KEYWORD".to_owned(),
            Self::Special(special) => format!("'{special}'"),
            Self::Before => "TOK_BEFORE".to_owned(),
            Self::Near(_) => "TOK_NEAR".to_owned(),
            Self::NotNear(_) => "TOK_NOTNEAR".to_owned(),
            Self::Maybe => "TOK_MAYBE".to_owned(),
            Self::Unit(TextUnit::Sentence) => "TOK_SENTENCE".to_owned(),
            Self::Unit(TextUnit::Paragraph) => "TOK_PARAGRAPH".to_owned(),
            Self::Limit => "TOK_FIELDLIMIT".to_owned(),
            Self::Zone { is_span: false } => "TOK_ZONE".to_owned(),
            Self::Zone { is_span: true } => "TOK_ZONESPAN".to_owned(),
        }
    }
}

/// Splits a query into tokens.
pub(super) struct QueryLexer<'a> {
    text: &'a str,
    tokens: QueryTokens<'a>,
    fields: &'a [String],
    has_exact_words: bool,
    takes_wildcards: bool,
    stop_step: u32,
    is_relaxed: bool,
    /// Where the search for the next token starts.
    offset: usize,
    /// Where the search for the last token started, after skipped text.
    looked_from: usize,
    /// The current limits, and those of the surrounding groups.
    limit: Limit,
    zones: Option<Arc<Zones>>,
    /// The number of names of zones so far.
    zone_names: usize,
    outer_limits: Vec<(Limit, Option<Arc<Zones>>)>,
    /// The position of the last word.
    position: u32,
    /// Within quotes most special characters have no effect.
    pub is_quoted: bool,
    /// Within a group in quotes, the position before it.
    group: Option<u32>,
    /// The number of stars so far within the quotes.
    stars: u32,
    /// Whether the last token was a word.
    is_behind_word: bool,
    /// The end of a `^` modifier: a word that starts there must be the first of its field.
    caret: Option<usize>,
    /// The number of `=` before the next word.
    equals: usize,
    /// Whether nothing was read yet except stars.
    pub is_empty: bool,
    /// The last warning about something ignored.
    pub warning: Option<String>,
}

impl<'a> QueryLexer<'a> {
    pub(super) fn new(text: &'a str, analyzer: &'a Analyzer, fields: &'a [String]) -> Self {
        const RELAXED: &str = "@@relaxed";
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let relaxed = text.strip_prefix(RELAXED).filter(|rest| !rest.starts_with(is_name));
        let settings = analyzer.settings();
        Self {
            text,
            tokens: analyzer.query(text),
            fields,
            has_exact_words: settings.index_exact_words(),
            takes_wildcards: settings.has_wildcards(),
            stop_step: settings.stopword_step(),
            is_relaxed: relaxed.is_some(),
            offset: relaxed.map_or(0, |_| RELAXED.len()),
            looked_from: 0,
            limit: Limit::NONE,
            zones: None,
            zone_names: 0,
            outer_limits: Vec::new(),
            position: 0,
            is_quoted: false,
            group: None,
            stars: 0,
            is_behind_word: false,
            caret: None,
            equals: 0,
            is_empty: true,
            warning: None,
        }
    }

    pub(super) fn is_relaxed(&self) -> bool {
        self.is_relaxed
    }

    /// The text from where the search for the last token started.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.looked_from..).unwrap_or("")
    }

    /// The next token.
    ///
    /// # Errors
    /// [`WordsError::Query`] for an unknown field or a list of fields that is not closed.
    pub(super) fn next(&mut self) -> Result<LexedToken> {
        loop {
            self.tokens.seek(self.offset);
            let from = self.offset;
            self.looked_from = from;
            let Some(token) = self.tokens.next() else {
                self.offset = self.text.len();
                return Ok(LexedToken::End);
            };
            self.is_empty &= token.kind == QueryTokenKind::Special('*');
            let is_word = !matches!(token.kind, QueryTokenKind::Special(c) if c != '$');
            self.is_behind_word &= is_word;
            let found = match &token.kind {
                QueryTokenKind::Special(special) => self.special(*special, &token)?,
                QueryTokenKind::Word { .. } => self.word(token, from)?,
            };
            if let Some(found) = found {
                self.is_behind_word = matches!(found, LexedToken::Word(..));
                return Ok(found);
            }
        }
    }

    fn follows(&self, end: usize, what: &str) -> bool {
        self.text.get(end..).is_some_and(|rest| rest.starts_with(what))
    }

    /// Whether a group such as `( a | b )` goes on here, within quotes.
    fn begins_group(&self, start: usize) -> bool {
        let rest = self.text.get(start..).unwrap_or("");
        let end = rest.find(['(', ')', '"']).unwrap_or(rest.len());
        rest[end..].starts_with(')') && rest[..end].contains('|')
    }

    /// Whether a character within quotes belongs to a group. All words of a group have the same position.
    fn is_of_group(&mut self, special: char, end: usize) -> bool {
        match (special, self.group) {
            ('(', None) if self.begins_group(end) => self.group = Some(self.position),
            ('|', Some(position)) => self.position = position,
            (')', Some(position)) => (self.position, self.group) = (position + 1, None),
            _ => return false,
        }
        true
    }

    fn special(&mut self, special: char, token: &QueryToken) -> Result<Option<LexedToken>> {
        self.offset = token.end;
        let is_passed_over = match special {
            '"' => {
                self.stars = 0;
                false
            }
            '^' => {
                self.caret(token.end);
                true
            }
            '=' => {
                self.equals += usize::from(self.has_exact_words);
                // Whether it belongs to a word depends on what follows.
                return Ok(self.exact());
            }
            '$' => {
                let behind = self.text.get(token.end..).unwrap_or("").trim_start();
                let is_of_word = self.is_behind_word
                    || behind.is_empty()
                    || behind.starts_with(|c: char| c.is_ascii_digit());
                if !self.is_quoted && !is_of_word {
                    self.warn_of_modifier();
                }
                true
            }
            '*' => {
                let is_run =
                    self.follows(token.end, "*") || self.text[..token.start].ends_with('*');
                self.stars += u32::from(self.is_quoted && !is_run);
                self.position += u32::from(self.takes_wildcards && !self.is_quoted);
                true
            }
            _ if self.is_quoted => !self.is_of_group(special, token.end),
            '<' if self.follows(token.end, "<") => {
                // The second `<` is skipped as a single one.
                return Ok(Some(LexedToken::Before));
            }
            '<' => true,
            '@' => return self.field_limit(token.end),
            '(' => {
                self.outer_limits.push((self.limit, self.zones.clone()));
                false
            }
            ')' => {
                (self.limit, self.zones) = self.outer_limits.pop().unwrap_or((Limit::NONE, None));
                false
            }
            _ => false,
        };
        Ok((!is_passed_over).then_some(LexedToken::Special(special)))
    }

    /// Before quotes or a group, `=` is a token; before a word it is the word's modifier.
    fn exact(&mut self) -> Option<LexedToken> {
        let behind = self.text.get(self.offset..).unwrap_or("").trim_start();
        if self.equals > 0 && !self.is_quoted && behind.starts_with(['"', '(']) {
            self.equals = 0;
            return Some(LexedToken::Special('='));
        }
        None
    }

    fn caret(&mut self, end: usize) {
        self.caret = Some(end);
        let next = self.text.get(end..).and_then(|rest| rest.chars().next());
        let specials = ['(', ')', '|', '-', '!', '@', '~', '"', '/', '<'];
        let is_operator = |c: char| specials.contains(&c) || c == '=' && self.has_exact_words;
        if !self.is_quoted && next.is_some_and(is_operator) {
            self.warn_of_modifier();
        }
    }

    fn warn_of_modifier(&mut self) {
        let warning = "query warning: modifiers must be applied to keywords, not operators";
        self.warning = Some(warning.to_owned());
    }

    fn field_limit(&mut self, end: usize) -> Result<Option<LexedToken>> {
        if end == self.text.len() {
            return Ok(Some(LexedToken::Limit));
        }
        let found = fields::parse(self.text, end, self.fields, self.is_relaxed)?;
        self.offset = found.end;
        if let Some(name) = found.unknown {
            self.warning = Some(format!("query warning: no field '{name}' found in schema"));
        }
        let Some(limit) = found.limit else { return Ok(None) };
        self.limit = limit;
        Ok(Some(LexedToken::Limit))
    }

    fn word(&mut self, token: QueryToken, from: usize) -> Result<Option<LexedToken>> {
        let raw = self.text.get(token.start..token.end).unwrap_or("");
        let is_alone = self.text.get(from..token.start).is_some_and(|gap| gap.trim().is_empty());
        if !self.is_quoted
            && is_alone
            && let Some(operator) = self.operator(raw, token.end)?
        {
            return Ok(Some(operator));
        }
        let QueryTokenKind::Word { word, is_stop, positions } = token.kind else {
            return Ok(None);
        };
        let position = self.position + token.skipped + 1;
        self.position += token.skipped + positions;
        if is_stop {
            self.position = (self.position + self.stop_step).saturating_sub(1);
        }
        let at_start = self.caret.take() == Some(token.start);
        let equals = std::mem::take(&mut self.equals);
        self.offset = token.end;
        let (at_end, boost) = self.modifiers();
        let word = (!is_stop).then_some(Word {
            text: format!("{}{word}", "=".repeat(equals.saturating_sub(1))),
            position,
            is_exact: equals > 0,
            at_start,
            at_end,
            boost,
            limit: self.limit,
            zones: self.zones.clone(),
            others: Vec::new(),
            most_expansions: 0,
        });
        Ok(Some(LexedToken::Word(word, self.stars)))
    }

    /// Parses the modifiers after a word: `$`, and `^2.5`. Without modifiers the separator after the word is skipped.
    fn modifiers(&mut self) -> (bool, f32) {
        let start = self.offset;
        let at_end = self.follows(self.offset, "$");
        self.offset += usize::from(at_end);
        let mut boost = 1.0;
        if self.follows(self.offset, "^")
            && let Some((number, length)) = float(&self.text[self.offset + 1..])
        {
            boost = number;
            self.offset += 1 + length;
        }
        // Skips stars that expand nothing.
        let stars = self.text[self.offset..].bytes().take_while(|&byte| byte == b'*').count();
        self.offset += stars;
        if self.offset == start && !self.is_quoted {
            self.take_separator();
        }
        (at_end, boost)
    }

    /// Skips one separator after a word.
    fn take_separator(&mut self) {
        let next = self.text[self.offset..].chars().next();
        let is_separator = |c: &char| *c == '-' || *c != '\\' && self.tokens.is_separator(*c);
        self.offset += next.filter(is_separator).map_or(0, char::len_utf8);
    }

    /// Parses an operator that is written as a word.
    fn operator(&mut self, raw: &str, end: usize) -> Result<Option<LexedToken>> {
        let token = match raw {
            "MAYBE" => LexedToken::Maybe,
            "SENTENCE" => LexedToken::Unit(TextUnit::Sentence),
            "PARAGRAPH" => LexedToken::Unit(TextUnit::Paragraph),
            "NEAR" | "NOTNEAR" => {
                let digits = self.text[end..].strip_prefix('/').unwrap_or("");
                let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
                if length == 0 {
                    return Ok(None);
                }
                let distance = digits[..length].parse::<u64>().unwrap_or(u64::MAX);
                self.offset = end + 1 + length;
                let distance = distance.min(1 << 24) as u32;
                return Ok(Some(match raw {
                    "NEAR" => LexedToken::Near(distance),
                    _ => LexedToken::NotNear(distance),
                }));
            }
            "ZONE" | "ZONESPAN" if self.follows(end, ":") => {
                return self.zone(end + 1, raw == "ZONESPAN");
            }
            _ => return Ok(None),
        };
        self.offset = end;
        self.take_separator();
        Ok(Some(token))
    }

    /// Parses the names of zones.
    fn zone(&mut self, start: usize, is_span: bool) -> Result<Option<LexedToken>> {
        let rest = &self.text[start..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let length = |text: &str| text.find(|c| !is_name(c)).unwrap_or(text.len());
        let (mut names, mut end) = (Vec::new(), length(rest));
        if let Some(mut list) = rest.strip_prefix('(') {
            loop {
                let (name, behind) = list.split_at(length(list));
                let next = behind.chars().next();
                if name.is_empty() || !matches!(next, Some(',' | ')')) {
                    return Err(WordsError::Query(match next {
                        Some(c) => format!(
                            "query error: unexpected character '{c}' in zone block operator"
                        ),
                        None => {
                            "query error: missing closing ')' in zone block operator".to_owned()
                        }
                    }));
                }
                names.push(name.to_ascii_lowercase());
                list = &behind[1..];
                if next == Some(')') {
                    break;
                }
            }
            end = rest.len() - list.len();
        } else if end == 0 {
            return Ok(None);
        } else {
            names.push(rest[..end].to_ascii_lowercase());
        }
        self.zone_names += names.len();
        if self.zone_names > MAX_ZONES {
            return Err(WordsError::Query(format!("query has more than {MAX_ZONES} zones")));
        }
        self.offset = start + end;
        self.zones = Some(Arc::new(Zones { names, is_span }));
        Ok(Some(LexedToken::Zone { is_span }))
    }

    /// Parses a whole number or, if `takes_fraction`, a fraction. It must be followed by a space, the end or an
    /// operator.
    pub(super) fn number(&mut self, takes_fraction: bool) -> Option<Number> {
        let rest = self.text.get(self.offset..)?;
        let trimmed = rest.trim_start();
        let is_number = |c: char| c.is_ascii_digit() || c == '.' && takes_fraction;
        let length = trimmed.find(|c| !is_number(c)).unwrap_or(trimmed.len());
        let (number, behind) = trimmed.split_at(length);
        let ends = |c: char| c.is_whitespace() || "()|-!@~\"/^$<=".contains(c);
        let goes_on = !behind.is_empty() && !behind.starts_with(ends);
        if goes_on || number.len() > 9 && !number.contains('.') {
            return None;
        }
        let found = match number.contains('.') {
            true => Number::Fraction(number.parse().ok()?),
            false => Number::Whole(number.parse().ok()?),
        };
        self.offset += rest.len() - behind.len();
        // It takes a position, like a word.
        self.position += 1;
        self.is_behind_word = true;
        Some(found)
    }
}

/// A number after quotes.
pub(super) enum Number {
    Whole(u32),
    Fraction(f32),
}

/// Parses the number at the start of the text: digits, an optional fraction and exponent. Returns its length in
/// bytes.
fn float(text: &str) -> Option<(f32, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or(&[]);
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if !bytes.get(..end)?.iter().any(u8::is_ascii_digit) {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    Some((text[..end].parse().ok()?, end))
}
