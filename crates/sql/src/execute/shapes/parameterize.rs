//! Separates a statement's text from its literals. The rest is the same for all statements of a shape, and is the key
//! of the plan cache.
//!
//! ```text
//! key  := mode:u8 database 0x00 [changed] (bytes of the text | 0x01 | 0x02 arity:u8)*
//! 0x01 := one literal      0x02 := a list of IN, of any length, of tuples of `arity` literals
//! changed := 0x02 0x00               the tables and conditions of a statement that changes rows
//!          | 0x02 0x01 number parts  the parts of a statement for which a query finds rows
//! ```
//! The key keeps blanks and comments, because column names may contain them.

use std::ops::Range;

use jiff::tz::TimeZone;
use remora_engine::Value;
use remora_mysql::{LexMode, Lexer, Token, TokenKind};

use crate::{
    parse::{
        Source,
        write::{ChangedQuery, ChangedRows, SoughtRows},
    },
    state::SessionState,
};

/// The longest key that is cached.
const MAX_KEY_BYTES: usize = 16 << 10;
/// The most members of a tuple.
const MAX_ARITY: usize = 64;

/// Groups from this number on are values made of literals.
pub(super) const FIRST_MADE: usize = usize::MAX / 2;

const LITERAL: u8 = 1;
const LIST: u8 = 2;

/// The kind of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiteralKind {
    /// Digits.
    Integer,
    /// Digits after a minus sign.
    Negative,
    /// Text in quotes.
    Text,
    /// A number with a decimal point or an exponent.
    Inexact,
    /// Bytes as hexadecimal digits.
    Hex,
    /// `?`; its `start` is the parameter's number.
    Parameter,
}

/// A literal and its position in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literal {
    pub kind: LiteralKind,
    pub start: usize,
    pub end: usize,
}

/// A token of the text without its literals.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextPiece {
    /// A word, a name in quotes, or an operator.
    Token(Token),
    /// A single literal: the number of its group.
    Literal(usize),
    /// A list: the number of its group, and the arity of its tuples.
    List(usize, usize),
}

/// A statement separated from its literals. Reused between statements for its allocations.
#[derive(Default)]
pub(super) struct ParameterizedText {
    /// The key in the plan cache.
    pub key: Vec<u8>,
    /// Whether the key is short enough to be cached.
    pub has_key: bool,
    /// The tokens and literals of the text.
    pub pieces: Vec<TextPiece>,
    /// The literals in text order.
    pub literals: Vec<Literal>,
    /// The end of each group in `literals`.
    pub ends: Vec<usize>,
}

impl ParameterizedText {
    /// Whether the text has this word outside of quotes. `word` is in upper case.
    pub fn has_word(&self, text: &[u8], word: &str) -> bool {
        let is_it =
            |piece: &TextPiece| matches!(piece, TextPiece::Token(it) if it.is_word(text, word));
        self.pieces.iter().any(is_it)
    }
}

/// A value made of literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MadeValue {
    Integer(i64),
    Text(String),
}

/// The values of a statement's literals.
#[derive(Clone)]
pub(super) struct Constants<'a> {
    pub text: &'a [u8],
    pub mode: LexMode,
    pub literals: &'a [Literal],
    pub ends: &'a [usize],
    pub parameters: &'a [Value],
    /// The values that a plan makes of literals, the groups from [`FIRST_MADE`] on; `None` if their types do not fit.
    pub made: Vec<Option<MadeValue>>,
    /// The session's time zone.
    pub zone: TimeZone,
}

impl ParameterizedText {
    /// Separates the text; `false` if it cannot have a shape: it is not a single SELECT, or has literals that are not
    /// plain numbers or texts.
    pub fn read(&mut self, text: &[u8], mode: LexMode, database: Option<&str>) -> bool {
        if !self.begin(text, mode, database) {
            return false;
        }
        let lexer = Lexer::new(text, mode);
        match lexer.clone().next() {
            Ok(Some(first)) if begins(&first, text) => {}
            _ => return false,
        }
        let mut reading = Reading::new(text, lexer, 0);
        reading.variables = VariablePlaces::OutsideOfTables;
        reading.run(self).is_some()
    }

    /// The text of a statement, or the tables and the conditions of one that changes rows, if they can have a shape.
    pub fn of(
        source: &Source,
        changed: Option<&ChangedQuery>,
        database: Option<&str>,
    ) -> Option<Self> {
        let mut read = Self::default();
        let is_read = match changed {
            None => read.read(&source.text, source.mode, database),
            Some(changed) => read.read_changed(source, &changed.rows, database),
        };
        is_read.then_some(read)
    }

    /// Separates the tables and the conditions of a statement that changes rows. `false` if they cannot have a shape.
    pub fn read_changed(
        &mut self,
        source: &Source,
        rows: &ChangedRows,
        database: Option<&str>,
    ) -> bool {
        if rows.with.is_some() || !self.begin(&source.text, source.mode, database) {
            return false;
        }
        self.key.extend_from_slice(&[LIST, 0]);
        self.parts(source, &[rows.tables_at.clone(), rows.rest_at.clone()])
    }

    /// Separates what decides a query that finds rows for a statement. `false` if it cannot have a shape.
    pub fn read_found(
        &mut self,
        source: &Source,
        found: &SoughtRows,
        database: Option<&str>,
    ) -> bool {
        if found.tokens.is_empty() || !self.begin(&source.text, source.mode, database) {
            return false;
        }
        let Ok(parts) = u8::try_from(found.tokens.len()) else { return false };
        self.key.extend_from_slice(&[LIST, 1, found.number, parts]);
        self.parts(source, &found.tokens)
    }

    /// Separates parts of a statement, in the order of its text.
    fn parts(&mut self, source: &Source, parts: &[Range<usize>]) -> bool {
        let is_parameter = |token: &&Token| token.kind == TokenKind::Parameter;
        for tokens in parts {
            let before = source.tokens.get(..tokens.start).unwrap_or_default();
            let parameters = before.iter().filter(is_parameter).count();
            let tokens = source.tokens.get(tokens.clone()).unwrap_or_default();
            let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { continue };
            let text = source.text.get(..last.end).unwrap_or_default();
            let lexer = Lexer::new_at(text, first.start, source.mode);
            let mut reading = Reading { parameters, ..Reading::new(text, lexer, first.start) };
            if reading.run(self).is_none() {
                return false;
            }
            self.key.push(b'\n');
        }
        !self.pieces.is_empty()
    }

    /// Forgets the last text. `false` if this one cannot have a shape.
    fn begin(&mut self, text: &[u8], mode: LexMode, database: Option<&str>) -> bool {
        self.key.clear();
        self.pieces.clear();
        self.literals.clear();
        self.ends.clear();
        self.has_key = true;
        // Shapes know one precedence of NOT.
        if mode.high_not || has_index_hint(text) {
            return false;
        }
        let modes = [mode.ansi_quotes, mode.no_backslash_escapes, mode.pipes_as_concat];
        self.key.push(modes.into_iter().fold(0, |bits, mode| bits << 1 | u8::from(mode)));
        self.key.extend_from_slice(database.unwrap_or("").as_bytes());
        self.key.push(0);
        true
    }

    /// Whether the text has a `?`.
    pub fn has_parameters(&self) -> bool {
        self.literals.iter().any(|literal| literal.kind == LiteralKind::Parameter)
    }

    /// Whether its buffers are small enough to be kept.
    pub fn is_small(&self) -> bool {
        const KEPT: usize = 4_096;
        self.pieces.capacity() <= KEPT && self.literals.capacity() <= KEPT
    }

    /// The literals of a group.
    pub fn literals_of(&self, group: usize) -> &[Literal] {
        literals_of(&self.literals, &self.ends, group)
    }

    /// The literal that begins at this position of the text, after its sign, and its group.
    pub fn literal_at(&self, place: usize) -> Option<(&Literal, usize)> {
        let begins = |literal: &&Literal| match literal.kind {
            LiteralKind::Parameter => literal.end == place + 1,
            _ => literal.start == place,
        };
        let at = self.literals.partition_point(|literal| literal.end <= place);
        let literal = self.literals.get(at).filter(begins)?;
        Some((literal, self.ends.partition_point(|end| *end <= at)))
    }

    /// The statement's literals with the session's parameters and time zone.
    pub fn constants<'a>(
        &'a self,
        text: &'a [u8],
        mode: LexMode,
        parameters: &'a [Value],
        session: &SessionState,
    ) -> Constants<'a> {
        let zone = session.variables.time_zone.zone.clone();
        let (literals, ends) = (&self.literals, &self.ends);
        Constants { text, mode, literals, ends, parameters, made: Vec::new(), zone }
    }
}

/// Whether a comment may hold an index hint.
fn has_index_hint(text: &[u8]) -> bool {
    let Some(place) = memchr::memmem::find(text, b"/*+") else { return false };
    let hint = text.get(place..).unwrap_or_default();
    let hint = hint.get(..memchr::memmem::find(hint, b"*/").unwrap_or(hint.len()));
    hint.unwrap_or_default().windows(5).any(|word| word.eq_ignore_ascii_case(b"INDEX"))
}

/// The literals of a group, given the end of each group.
pub(super) fn literals_of<'l>(
    literals: &'l [Literal],
    ends: &[usize],
    group: usize,
) -> &'l [Literal] {
    let end = ends.get(group).copied().unwrap_or(0);
    let start = match group.checked_sub(1) {
        Some(before) => ends.get(before).copied().unwrap_or(0),
        None => 0,
    };
    literals.get(start..end).unwrap_or_default()
}

struct Reading<'a> {
    text: &'a [u8],
    lexer: Lexer<'a>,
    /// The text before this position is in the key.
    copied: usize,
    parameters: usize,
    /// Whether this is in ORDER BY, where a number is a column and not a literal.
    in_order: bool,
    variables: VariablePlaces,
}

/// Where a text may have variables of the session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VariablePlaces {
    Nowhere,
    /// In a statement that reads no table and assigns no variable. It has none yet.
    OutsideOfTables,
    /// The same, and it has some.
    Found,
}

impl<'a> Reading<'a> {
    fn new(text: &'a [u8], lexer: Lexer<'a>, copied: usize) -> Self {
        let variables = VariablePlaces::Nowhere;
        Self { text, lexer, copied, parameters: 0, in_order: false, variables }
    }

    /// Notes a token that is no literal. `None` if the text has variables where it may not have them.
    fn note_variable(&mut self, token: &Token) -> Option<()> {
        let is_variable = matches!(token.kind, TokenKind::UserVariable | TokenKind::SystemVariable);
        if !is_variable {
            let ends = ["FROM", "INTO", "TABLE"].iter().any(|word| token.is_word(self.text, word));
            if !ends && !token.is(self.text, ":=") {
                return Some(());
            }
        }
        match (is_variable, self.variables) {
            (true, VariablePlaces::Nowhere) | (false, VariablePlaces::Found) => None,
            (true, _) => {
                self.variables = VariablePlaces::Found;
                Some(())
            }
            (false, _) => {
                self.variables = VariablePlaces::Nowhere;
                Some(())
            }
        }
    }

    /// `None` if the text cannot be tokenized.
    fn run(&mut self, out: &mut ParameterizedText) -> Option<()> {
        let mut after_in = false;
        let mut ended = false;
        while let Some(token) = self.lexer.next().ok()? {
            let text = self.text;
            if ended {
                return None;
            }
            let before = out.pieces.last().copied();
            self.in_order = match token.is_word(text, "BY") {
                true => matches!(before, Some(TextPiece::Token(by)) if by.is_word(text, "ORDER")),
                false => self.in_order && !token.is_word(text, "LIMIT") && !token.is(text, ")"),
            };
            if self.in_order && token.kind == TokenKind::Integer {
                out.pieces.push(TextPiece::Token(token));
                continue;
            }
            if let Some(literal) = self.literal(&token, before)? {
                self.copy(out, token.start, literal.end);
                out.key.push(LITERAL);
                out.literals.push(literal);
                out.ends.push(out.literals.len());
                out.pieces.push(TextPiece::Literal(out.ends.len() - 1));
                continue;
            }
            ended = token.is(text, ";");
            if ended {
                continue;
            }
            self.note_variable(&token)?;
            out.pieces.push(TextPiece::Token(token));
            if after_in && token.is(text, "(") {
                self.list(out, token.end);
            }
            after_in = token.is_word(text, "IN");
        }
        self.copy(out, self.text.len(), self.text.len());
        Some(())
    }

    /// Appends the text up to `until` to the key and continues at `behind`.
    fn copy(&mut self, out: &mut ParameterizedText, until: usize, behind: usize) {
        let bytes = self.text.get(self.copied..until).unwrap_or_default();
        let fits = out.key.len() + bytes.len() <= MAX_KEY_BYTES;
        if out.has_key && fits && memchr::memchr2(LITERAL, LIST, bytes).is_none() {
            out.key.extend_from_slice(bytes);
        } else {
            out.has_key = false;
        }
        self.copied = behind;
    }

    /// The literal that the token is or begins; the outer `None` stops the whole reading.
    fn literal(&mut self, token: &Token, before: Option<TextPiece>) -> Option<Option<Literal>> {
        let (start, end) = (token.start, token.end);
        let of = |kind| Some(Some(Literal { kind, start, end }));
        match token.kind {
            TokenKind::Integer => of(LiteralKind::Integer),
            TokenKind::Decimal | TokenKind::Float => of(LiteralKind::Inexact),
            TokenKind::Hex => of(LiteralKind::Hex),
            TokenKind::Text => match before {
                // Adjacent string literals are concatenated into one.
                Some(TextPiece::Literal(_)) => None,
                _ => of(LiteralKind::Text),
            },
            TokenKind::Parameter => {
                self.parameters += 1;
                let start = self.parameters - 1;
                Some(Some(Literal { kind: LiteralKind::Parameter, start, end }))
            }
            TokenKind::Operator if token.is(self.text, "-") => {
                let mut ahead = self.lexer.clone();
                let next = ahead.next().ok()??;
                if !before.is_none_or(|piece| self.before_sign(piece)) {
                    return Some(None);
                }
                if next.kind != TokenKind::Integer {
                    return None;
                }
                self.lexer = ahead;
                let kind = LiteralKind::Negative;
                Some(Some(Literal { kind, start: next.start, end: next.end }))
            }
            TokenKind::Word
            | TokenKind::Quoted
            | TokenKind::Operator
            | TokenKind::UserVariable
            | TokenKind::SystemVariable => Some(None),
            _ => None,
        }
    }

    /// Whether a minus sign after this piece is unary.
    fn before_sign(&self, piece: TextPiece) -> bool {
        const WORDS: [&str; 7] = ["AND", "OR", "BETWEEN", "IN", "NOT", "WHERE", "LIMIT"];
        match piece {
            TextPiece::Token(token) if token.kind == TokenKind::Operator => {
                !token.is(self.text, ")")
            }
            TextPiece::Token(token) => WORDS.iter().any(|word| token.is_word(self.text, word)),
            _ => false,
        }
    }

    /// Reads the list of literals, or of tuples of them, after `IN (`. Reads nothing if it is not such a list.
    fn list(&mut self, out: &mut ParameterizedText, start: usize) {
        let (lexer, copied, parameters) = (self.lexer.clone(), self.copied, self.parameters);
        let (literals, key_bytes, has_key) = (out.literals.len(), out.key.len(), out.has_key);
        self.copy(out, start, start);
        match self.tuples(out) {
            Some((arity, end)) => {
                out.key.extend_from_slice(&[LIST, arity as u8]);
                out.ends.push(out.literals.len());
                out.pieces.push(TextPiece::List(out.ends.len() - 1, arity));
                self.copied = end;
            }
            None => {
                (self.lexer, self.copied, self.parameters) = (lexer, copied, parameters);
                out.literals.truncate(literals);
                out.key.truncate(key_bytes);
                out.has_key = has_key;
            }
        }
    }

    /// The arity of the tuples, and the position of the closing parenthesis, which stays unread.
    fn tuples(&mut self, out: &mut ParameterizedText) -> Option<(usize, usize)> {
        let mut arity = None;
        loop {
            let before = out.literals.len();
            self.lexer.pass_listed_integers(|start, end| {
                out.literals.push(Literal { kind: LiteralKind::Integer, start, end });
            });
            if out.literals.len() > before && *arity.get_or_insert(1) != 1 {
                return None;
            }
            let token = self.lexer.next().ok()??;
            let this = if token.is(self.text, "(") {
                self.tuple(out)?
            } else {
                out.literals.push(self.member(token)?);
                1
            };
            if *arity.get_or_insert(this) != this || this > MAX_ARITY {
                return None;
            }
            let before = self.lexer.clone();
            let token = self.lexer.next().ok()??;
            if token.is(self.text, ")") {
                self.lexer = before;
                return Some((this, token.start));
            }
            if !token.is(self.text, ",") {
                return None;
            }
        }
    }

    fn tuple(&mut self, out: &mut ParameterizedText) -> Option<usize> {
        let mut count = 0;
        loop {
            let token = self.lexer.next().ok()??;
            out.literals.push(self.member(token)?);
            count += 1;
            let token = self.lexer.next().ok()??;
            if token.is(self.text, ")") {
                // `(1)` is not a tuple.
                return (count > 1).then_some(count);
            }
            if !token.is(self.text, ",") {
                return None;
            }
        }
    }

    fn member(&mut self, token: Token) -> Option<Literal> {
        self.literal(&token, None)?
    }
}

/// Whether a statement that may have a shape begins with this token.
fn begins(token: &Token, text: &[u8]) -> bool {
    token.is_word(text, "SELECT") || token.is_word(text, "WITH") || token.is(text, "(")
}
