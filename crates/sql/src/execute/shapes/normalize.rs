//! Makes the syntax tree of a statement without its literals. What is repeated with other literals is parsed once.
//!
//! A literal becomes a text that names its group ([`group_of`]). The texts of a statement do not reach the parser, so that
//! it is found again wherever the parser puts it. A list of literals becomes one member. Of `a OR b OR c`, where they differ only in
//! their literals, `a` is parsed as the first argument of a call of [`REPEATED`]; of a UNION of such SELECTs the first
//! one is parsed.

use std::{
    cell::Cell,
    ops::Range,
    sync::{Arc, atomic::AtomicBool},
};

use datafusion::sql::sqlparser::ast::{self, Expr, Query};
use remora_engine::Value;
use remora_mysql::{LexMode, Token, TokenKind};

use super::{
    parameterize::TextPiece,
    shape::{LiteralGroup, Repeated},
};
use crate::parse::{NamedOptions, Source, Statement, named_options, write::changed_rows};

/// The function that the repeated operand of an OR becomes: of the operand and the number of its [`Repeated`].
pub(super) const REPEATED: &str = "#repeated";

/// What the parser reads and the text does not have. It is put behind the text.
const ADDED: &[u8] = b"`#repeated`(,)?";

/// How deep the parentheses of a statement with a shape may nest.
const MAX_NESTING: usize = 64;

/// The first character of a text that stands for a group of literals, and of one that stands for a [`Repeated`].
/// Only texts are looked at, and the texts of a statement do not reach the parser, but for the table of MATCH, which
/// [`group_of`] leaves alone.
const GROUP: char = '\0';
const REPETITION: char = '\u{1}';

/// A statement without its literals.
pub(super) struct NormalizedQuery<'t> {
    text: &'t [u8],
    pieces: &'t [TextPiece],
    pub query: Query,
    pub options: NamedOptions,
    /// The repetitions of the statement in a UNION.
    pub branches: Repeated,
    /// Whether the UNION keeps duplicates.
    pub all: bool,
    /// The repetitions of operands of OR, by number.
    repeated: Vec<Repeated>,
    /// The number of the piece before which no call is sought any more.
    passed: Cell<usize>,
}

/// The group of literals that a value stands for.
pub(super) fn group_of(value: &ast::Value) -> Option<LiteralGroup> {
    let ast::Value::SingleQuotedString(text) = value else { return None };
    group_of_text(text)
}

/// The group of literals that a text stands for.
pub(super) fn group_of_text(text: &str) -> Option<LiteralGroup> {
    text.strip_prefix(GROUP)?.parse().ok()
}

/// What is asked for the rows that a statement changes: items of a query, which are made if it has no cached plan.
pub(crate) type ItemsOfChanged<'i> = &'i dyn Fn() -> Vec<Expr>;

/// Parses a statement without its literals; `None` if it surely has no shape, or is none. Errors are left to the general
/// path. With `items` the pieces are the tables and conditions of a statement that changes rows.
pub(super) fn parsed<'t>(
    text: &'t [u8],
    mode: LexMode,
    pieces: &'t [TextPiece],
    items: Option<ItemsOfChanged<'_>>,
    interrupted: &Arc<AtomicBool>,
) -> Option<NormalizedQuery<'t>> {
    let (end, branches, all) = match items {
        None => branches(text, pieces)?,
        Some(_) => {
            let all = 0..pieces.len();
            (all.end, Repeated { times: 1, groups: groups(pieces, all) }, false)
        }
    };
    let first = pieces.get(..end)?;
    let Folded { tokens, values, repeated } = Folding::new(text, first).run()?;
    let mut source = Source::new([text, ADDED].concat(), tokens, mode);
    source.interrupted = Arc::clone(interrupted);
    let options = match named_options(&source, &values).ok()? {
        Some((start, options)) => {
            source.tokens.truncate(start);
            options
        }
        None => Vec::new(),
    };
    let statement = Statement { source: Arc::new(source), parameters: &values };
    let query = match items {
        None => statement.parse_query().ok()?,
        Some(items) => changed_rows(&statement).ok()?.select(items()),
    };
    let passed = Cell::new(0);
    Some(NormalizedQuery { text, pieces, query, options, branches, all, repeated, passed })
}

impl NormalizedQuery<'_> {
    /// How often the operand is repeated whose call of [`REPEATED`] has this second argument.
    pub fn repeated(&self, value: &ast::Value) -> Option<Repeated> {
        let ast::Value::SingleQuotedString(text) = value else { return None };
        let number: usize = text.strip_prefix(REPETITION)?.parse().ok()?;
        self.repeated.get(number).copied()
    }

    /// The text of a call whose name begins at this position. Calls are asked for in the order of the text.
    pub fn call_at(&self, start: usize) -> Option<String> {
        let is_name =
            |piece: &TextPiece| matches!(piece, TextPiece::Token(it) if it.start == start);
        let passed = self.passed.get();
        let from = passed + self.pieces.get(passed..)?.iter().position(is_name)?;
        self.passed.set(from);
        let mut depth = 0_usize;
        for piece in self.pieces.get(from..)? {
            let TextPiece::Token(token) = piece else { continue };
            depth += usize::from(token.is(self.text, "("));
            if token.is(self.text, ")") {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    let text = self.text.get(start..token.end)?;
                    return Some(std::str::from_utf8(text).ok()?.to_owned());
                }
            }
        }
        None
    }
}

/// How many pieces the first SELECT has, how often a UNION repeats it, and whether duplicates are kept. `None` if the
/// statement surely has no shape: it is no SELECT, or the SELECTs of a UNION differ in more than their literals.
fn branches(text: &[u8], pieces: &[TextPiece]) -> Option<(usize, Repeated, bool)> {
    let is = |at: usize, word: &str| is_word(text, pieces.get(at), word);
    if !is(0, "SELECT") && !is_mark(text, pieces.first(), "(") {
        return None;
    }
    let end = first_union(text, pieces)?;
    let (mut at, mut times, mut all) = (end, 1, false);
    while is(at, "UNION") {
        let this_all = is(at + 1, "ALL");
        at += if this_all || is(at + 1, "DISTINCT") { 2 } else { 1 };
        if !same(text, pieces, 0..end, at) || (times > 1 && this_all != all) {
            return None;
        }
        all = this_all;
        at += end;
        times += 1;
    }
    let branches = Repeated { times, groups: groups(pieces, 0..end) };
    (at == pieces.len()).then_some((end, branches, all))
}

/// The number of the first UNION outside of parentheses; that of the end without one.
fn first_union(text: &[u8], pieces: &[TextPiece]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, piece) in pieces.iter().enumerate() {
        let piece = Some(piece);
        if is_mark(text, piece, "(") {
            depth += 1;
        } else if is_mark(text, piece, ")") {
            depth = depth.checked_sub(1)?;
        } else if depth == 0 && is_word(text, piece, "UNION") {
            return Some(at);
        }
    }
    Some(pieces.len())
}

fn is_word(text: &[u8], piece: Option<&TextPiece>, word: &str) -> bool {
    matches!(piece, Some(TextPiece::Token(token)) if token.is_word(text, word))
}

fn is_mark(text: &[u8], piece: Option<&TextPiece>, mark: &str) -> bool {
    matches!(piece, Some(TextPiece::Token(token)) if token.is(text, mark))
}

/// Whether the pieces from `at` on equal those of the range, apart from their literals.
fn same(text: &[u8], pieces: &[TextPiece], range: Range<usize>, at: usize) -> bool {
    let (Some(first), Some(other)) = (pieces.get(range.clone()), pieces.get(at..at + range.len()))
    else {
        return false;
    };
    first.iter().zip(other).all(|pair| match pair {
        (TextPiece::Token(a), TextPiece::Token(b)) => {
            a.kind == b.kind && a.bytes(text) == b.bytes(text)
        }
        (TextPiece::Literal(_), TextPiece::Literal(_)) => true,
        (TextPiece::List(_, a), TextPiece::List(_, b)) => a == b,
        _ => false,
    })
}

/// The number of literal groups in the range.
fn groups(pieces: &[TextPiece], range: Range<usize>) -> usize {
    let pieces = pieces.get(range).unwrap_or_default();
    pieces.iter().filter(|piece| !matches!(piece, TextPiece::Token(_))).count()
}

/// What the parser reads.
struct Folded {
    tokens: Vec<Token>,
    /// The values of the parameters that stand for literals.
    values: Vec<Value>,
    repeated: Vec<Repeated>,
}

struct Folding<'t> {
    text: &'t [u8],
    pieces: &'t [TextPiece],
    out: Folded,
    /// Where the operand of an OR began, in each of the open parentheses.
    operands: Vec<Operand>,
}

/// Where an operand of OR begins.
#[derive(Clone, Copy)]
struct Operand {
    piece: usize,
    token: usize,
}

impl<'t> Folding<'t> {
    fn new(text: &'t [u8], pieces: &'t [TextPiece]) -> Self {
        let tokens = Vec::with_capacity(pieces.len().min(256));
        let out = Folded { tokens, values: Vec::new(), repeated: Vec::new() };
        Self { text, pieces, out, operands: vec![Operand { piece: 0, token: 0 }] }
    }

    /// `None` if the statement surely has no shape.
    fn run(mut self) -> Option<Folded> {
        let mut at = 0;
        while let Some(piece) = self.pieces.get(at) {
            match piece {
                TextPiece::Token(token) if token.is_word(self.text, "OR") => {
                    at = self.either(at)?;
                    continue;
                }
                TextPiece::Token(token) => self.token(at, token)?,
                TextPiece::Literal(_) | TextPiece::List(..) if self.is_behind_literal(at) => {
                    return None;
                }
                TextPiece::Literal(group) => self.value(GROUP, *group),
                TextPiece::List(group, 1) => self.value(GROUP, *group),
                TextPiece::List(group, arity) => self.tuple(*group, *arity),
            }
            at += 1;
        }
        Some(self.out)
    }

    /// Whether a literal stands before, which the parser might make one text of.
    fn is_behind_literal(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.pieces.get(before));
        matches!(before, Some(TextPiece::Literal(_) | TextPiece::List(..)))
    }

    fn token(&mut self, at: usize, token: &Token) -> Option<()> {
        // It means OR or CONCAT, and binds as either.
        if token.is(self.text, "||") {
            return None;
        }
        self.out.tokens.push(*token);
        if token.is(self.text, "(") {
            self.operands.push(self.operand(at + 1));
            return (self.operands.len() <= MAX_NESTING).then_some(());
        }
        if token.is(self.text, ")") {
            self.operands.pop();
            return (!self.operands.is_empty()).then_some(());
        }
        if token.is_word(self.text, "WHERE") {
            self.begin_operand(at + 1);
        }
        Some(())
    }

    fn operand(&self, piece: usize) -> Operand {
        Operand { piece, token: self.out.tokens.len() }
    }

    fn begin_operand(&mut self, piece: usize) {
        let operand = self.operand(piece);
        if let Some(last) = self.operands.last_mut() {
            *last = operand;
        }
    }

    /// Passes an OR, and the operands behind it that repeat the one before. Says where it goes on.
    fn either(&mut self, at: usize) -> Option<usize> {
        let operand = *self.operands.last()?;
        let range = operand.piece..at;
        let times = self.times(&range);
        let mut end = at;
        if times > 1 {
            end += (times - 1) * (range.len() + 1);
            let groups = groups(self.pieces, range);
            self.out.repeated.push(Repeated { times, groups });
            let open =
                [self.added(0..11, TokenKind::Quoted), self.added(11..12, TokenKind::Operator)];
            self.out.tokens.splice(operand.token..operand.token, open);
            self.out.tokens.push(self.added(12..13, TokenKind::Operator));
            self.value(REPETITION, self.out.repeated.len() - 1);
            self.out.tokens.push(self.added(13..14, TokenKind::Operator));
        }
        if let Some(TextPiece::Token(or)) = self.pieces.get(end)
            && or.is_word(self.text, "OR")
        {
            self.out.tokens.push(*or);
            end += 1;
        }
        self.begin_operand(end);
        Some(end)
    }

    /// How often the operand of OR is there in a row.
    fn times(&self, range: &Range<usize>) -> usize {
        let mut times = 1;
        let mut at = range.end;
        while is_word(self.text, self.pieces.get(at), "OR") {
            let end = at + 1 + range.len();
            if !same(self.text, self.pieces, range.clone(), at + 1) || !self.ends_operand(end) {
                break;
            }
            at = end;
            times += 1;
        }
        times
    }

    /// Whether an operand of OR surely ends before this piece.
    fn ends_operand(&self, at: usize) -> bool {
        const ENDS: [&str; 5] = ["OR", "GROUP", "ORDER", "LIMIT", "OPTION"];
        let piece = self.pieces.get(at);
        piece.is_none()
            || is_mark(self.text, piece, ")")
            || ENDS.iter().any(|word| is_word(self.text, piece, word))
    }

    /// A token of what is added to the text.
    fn added(&self, range: Range<usize>, kind: TokenKind) -> Token {
        let start = self.text.len();
        Token { kind, start: start + range.start, end: start + range.end }
    }

    /// A parameter whose value names a group or a repetition.
    fn value(&mut self, kind: char, number: usize) {
        let token = self.added(14..15, TokenKind::Parameter);
        self.out.tokens.push(token);
        self.out.values.push(Value::Text(format!("{kind}{number}").into()));
    }

    /// A list of tuples, as one tuple.
    fn tuple(&mut self, group: LiteralGroup, arity: usize) {
        let (open, comma, close) = (
            self.added(11..12, TokenKind::Operator),
            self.added(12..13, TokenKind::Operator),
            self.added(13..14, TokenKind::Operator),
        );
        self.out.tokens.push(open);
        for member in 0..arity {
            if member > 0 {
                self.out.tokens.push(comma);
            }
            self.value(GROUP, group);
        }
        self.out.tokens.push(close);
    }
}
