//! A prepared text query: validated, simplified, with every term normalised and cut into atoms once.

use smallvec::SmallVec;

use remora_index::text::{AtomKind, Normalization, Pattern, WordPattern, atoms};

use super::{fuzzy::FuzzyTerm, letters::LetterTerm, ranked::Ranked};
use crate::{
    ColumnLetters, Error, Piece, PieceMatch, RequestPart, Result, Schema, Selection, TextDef,
    TextQuery, interrupt::InterruptCheck, schema::Synonyms, snapshot::TableView,
};

/// Deepest nesting of a query.
const MAX_DEPTH: usize = 32;
/// The most distinct terms of a query, synonyms included.
const MAX_TERMS: usize = 1024;

/// A boolean expression over terms.
pub(super) struct Expression {
    /// The whole condition.
    pub root: TextNode,
    /// The distinct terms in the order of the query, each followed by its synonyms.
    pub terms: Vec<Term>,
    /// The keyword queries.
    pub keywords: Vec<Ranked>,
    /// Asked before each term of a segment, and before each row whose text is read.
    pub unless: InterruptCheck,
}

/// One condition. Conjunctions are flat. Negations inside them are kept apart, so that they are subtracted instead
/// of complemented.
pub(super) enum TextNode {
    /// `terms[_]` matches.
    Term(usize),
    /// `keywords[_]` matches.
    Keywords(usize),
    /// Matches texts that match all nodes of `all` and no node of `none`.
    All { all: Vec<TextNode>, none: Vec<TextNode> },
    /// At least one matches.
    Any(Vec<TextNode>),
    /// Matches texts that do not match the node.
    Not(Box<TextNode>),
}

/// One search text of the query.
pub(super) struct Term {
    text: String,
    /// The properties of a [`Piece`] that distinguish it from a plain term with the same text.
    scope: Scope,
    /// For each text index of the schema how the term is matched there; `None` if nothing is left of it after the
    /// index's normalisation.
    pub matchers: SmallVec<[Option<Matcher>; 1]>,
    /// Whether it occurs under an even number of NOTs; such terms are scored and highlighted.
    pub positive: bool,
}

/// The text indexes in which a term is searched, and how it is compared.
#[derive(Clone, Debug, PartialEq)]
struct Scope {
    texts: Vec<u32>,
    matching: PieceMatch,
    letters: Option<ColumnLetters>,
}

impl Scope {
    /// Anywhere, as a substring.
    const ANY: Self = Self { texts: Vec::new(), matching: PieceMatch::Substring, letters: None };
}

/// The test of a term in one text index.
pub(super) enum Matcher {
    /// The term occurs as a substring.
    Exact(Pattern),
    /// A similar word or window of words occurs.
    Fuzzy(FuzzyTerm),
    /// The words of the term occur one after the other, with any separators between them.
    Words(WordPattern),
    /// Letter by letter in the original text.
    Letters(Box<LetterTerm>),
}

impl Matcher {
    /// The normalised text of the term.
    pub fn text(&self) -> &str {
        match self {
            Self::Exact(pattern) => pattern.text(),
            Self::Fuzzy(term) => term.whole.text(),
            Self::Words(words) => words.text(),
            Self::Letters(letters) => letters.text(),
        }
    }

    fn atoms(&self) -> u64 {
        match self {
            Self::Exact(pattern) => counted_atoms(pattern.text()),
            Self::Fuzzy(term) => term.atoms(),
            Self::Words(words) => counted_atoms(words.text()),
            Self::Letters(letters) => counted_atoms(letters.text()),
        }
    }
}

/// The number of words and characters in a normalised text.
fn counted_atoms(text: &str) -> u64 {
    atoms(text).filter(|(kind, _)| *kind != AtomKind::Separator).count() as u64
}

impl Expression {
    /// Whether the text index at this position of the schema is searched.
    pub fn asks(&self, text: usize) -> bool {
        self.terms.iter().any(|term| matches!(term.matchers.get(text), Some(Some(_))))
    }

    /// The selection's text condition, if it has one.
    pub fn new(
        view: &TableView,
        selection: &Selection,
        unless: &InterruptCheck,
    ) -> Result<Option<Self>> {
        let schema = &*view.schema;
        let Some(query) = &selection.text else { return Ok(None) };
        if schema.texts.is_empty() && !has_keywords(query) {
            return Err(invalid(format!("Table {} has no text index to search", schema.name)));
        }
        if let Some(distance @ (0 | 3..)) = selection.fuzzy {
            return Err(invalid(format!("FUZZY distance {distance} is not 1 or 2")));
        }
        let mut compiler = Compiler {
            view,
            unless,
            schema,
            synonyms: &view.synonyms,
            fuzzy: selection.fuzzy,
            terms: Vec::new(),
            keywords: Vec::new(),
        };
        let root = compiler.node(query, true, 1)?;
        let (terms, keywords) = (compiler.terms, compiler.keywords);
        Ok(Some(Self { root, terms, keywords, unless: unless.clone() }))
    }

    /// Whether it is only a single term: the case that must have no overhead.
    pub fn is_one_term(&self) -> bool {
        matches!(self.root, TextNode::Term(_))
    }

    /// The pattern of a query that is a single term in a single text index.
    pub fn only_pattern(&self) -> Option<&Pattern> {
        match (&self.root, self.terms.as_slice()) {
            (TextNode::Term(_), [term]) => match term.matchers.as_slice() {
                [Some(Matcher::Exact(pattern))] => Some(pattern),
                _ => None,
            },
            _ => None,
        }
    }

    /// The number of atoms of all terms, each in the first text index that can match it.
    pub fn atoms(&self) -> u64 {
        let first = |term: &Term| term.matchers.iter().flatten().next().map_or(0, Matcher::atoms);
        self.terms.iter().map(first).sum()
    }
}

struct Compiler<'s> {
    view: &'s TableView,
    unless: &'s InterruptCheck,
    schema: &'s Schema,
    synonyms: &'s Synonyms,
    fuzzy: Option<u8>,
    terms: Vec<Term>,
    keywords: Vec<Ranked>,
}

impl Compiler<'_> {
    fn node(&mut self, query: &TextQuery, positive: bool, depth: usize) -> Result<TextNode> {
        if depth > MAX_DEPTH {
            let message = format!("The expression nests deeper than {MAX_DEPTH}; flatten it");
            return Err(invalid(message));
        }
        match query {
            TextQuery::Term(text) => self.word(text, positive),
            TextQuery::Piece(piece) => self.piece(piece, positive),
            TextQuery::Keywords(query) => {
                self.keywords.push(Ranked::new(self.view, query, self.unless)?);
                Ok(TextNode::Keywords(self.keywords.len() - 1))
            }
            TextQuery::And(parts) => self.all(parts, positive, depth),
            TextQuery::Or(parts) => self.any(parts, positive, depth),
            TextQuery::Not(part) => Ok(match self.node(part, !positive, depth + 1)? {
                TextNode::Not(inner) => *inner,
                inner => TextNode::Not(Box::new(inner)),
            }),
        }
    }

    fn all(&mut self, parts: &[TextQuery], positive: bool, depth: usize) -> Result<TextNode> {
        check_operands(parts, "AND")?;
        let (mut all, mut none) = (Vec::new(), Vec::new());
        for part in parts {
            match self.node(part, positive, depth + 1)? {
                TextNode::All { all: inner, none: excluded } => {
                    all.extend(inner);
                    none.extend(excluded);
                }
                TextNode::Not(inner) => none.push(*inner),
                other => all.push(other),
            }
        }
        Ok(TextNode::All { all, none })
    }

    fn any(&mut self, parts: &[TextQuery], positive: bool, depth: usize) -> Result<TextNode> {
        check_operands(parts, "OR")?;
        let nodes: Result<_> =
            parts.iter().map(|part| self.node(part, positive, depth + 1)).collect();
        Ok(TextNode::Any(nodes?))
    }

    /// A term, or an OR of it and its synonyms.
    fn word(&mut self, text: &str, positive: bool) -> Result<TextNode> {
        let term = self.term(text, &Scope::ANY, positive)?;
        let term = term.ok_or_else(|| {
            invalid(format!("Nothing is left of the term '{text}' after normalisation"))
        })?;
        let synonyms = self.synonyms;
        let mut nodes = vec![TextNode::Term(term)];
        for word in synonyms.of_word(text) {
            match self.term(word, &Scope::ANY, positive)? {
                Some(other) if other != term => nodes.push(TextNode::Term(other)),
                _ => {}
            }
        }
        Ok(if nodes.len() > 1 { TextNode::Any(nodes) } else { TextNode::Term(term) })
    }

    fn piece(&mut self, piece: &Piece, positive: bool) -> Result<TextNode> {
        let (texts, letters) = (piece.texts.clone(), piece.letters.clone());
        let scope = Scope { texts, matching: piece.matching, letters };
        let term = self.term(&piece.text, &scope, positive)?;
        Ok(term.map_or_else(|| TextNode::Any(Vec::new()), TextNode::Term))
    }

    /// The number of the term of this text; `None` if no index can contain it.
    fn term(&mut self, text: &str, scope: &Scope, positive: bool) -> Result<Option<usize>> {
        let is_it = |term: &Term| term.text == text && term.scope == *scope;
        if let Some(known) = self.terms.iter().position(is_it) {
            self.terms[known].positive |= positive;
            return Ok(Some(known));
        }
        let matcher = |index: &TextDef| {
            let asked = scope.texts.is_empty() || scope.texts.contains(&index.id);
            if let (true, Some(letters)) = (asked, &scope.letters) {
                let term = LetterTerm::new(text, letters, index)?;
                return Some(Matcher::Letters(Box::new(term)));
            }
            asked.then(|| self.matcher(text, scope.matching, &index.normalization)).flatten()
        };
        let matchers: SmallVec<_> = self.schema.texts.iter().map(matcher).collect();
        if matchers.iter().all(Option::is_none) {
            return Ok(None);
        }
        if self.terms.len() == MAX_TERMS {
            let message = format!("The expression has more than {MAX_TERMS} terms; split it");
            return Err(invalid(message));
        }
        self.terms.push(Term { text: text.to_owned(), scope: scope.clone(), matchers, positive });
        Ok(Some(self.terms.len() - 1))
    }

    fn matcher(
        &self,
        text: &str,
        matching: PieceMatch,
        normalization: &Normalization,
    ) -> Option<Matcher> {
        let words = match matching {
            PieceMatch::Substring => None,
            PieceMatch::Words => Some(WordPattern::new(text, normalization, false)?),
            PieceMatch::WordPrefix => Some(WordPattern::new(text, normalization, true)?),
            PieceMatch::Near(apart) => Some(WordPattern::near(text, normalization, apart)?),
        };
        if let Some(words) = words {
            return Some(match words.as_pattern() {
                Some(word) => Matcher::Exact(word.clone()),
                None => Matcher::Words(words),
            });
        }
        let pattern = Pattern::new(text, normalization)?;
        Some(match self.fuzzy {
            Some(distance) => Matcher::Fuzzy(FuzzyTerm::new(pattern, normalization, distance)),
            None => Matcher::Exact(pattern),
        })
    }
}

/// Whether a condition contains a keyword query, as deep as one may nest.
pub(super) fn has_keywords(query: &TextQuery) -> bool {
    asks_keywords(query, MAX_DEPTH)
}

fn asks_keywords(query: &TextQuery, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match query {
        TextQuery::Keywords(_) => true,
        TextQuery::Term(_) | TextQuery::Piece(_) => false,
        TextQuery::And(parts) | TextQuery::Or(parts) => {
            parts.iter().any(|part| asks_keywords(part, depth))
        }
        TextQuery::Not(part) => asks_keywords(part, depth),
    }
}

fn check_operands(parts: &[TextQuery], operator: &str) -> Result<()> {
    if parts.is_empty() {
        return Err(invalid(format!("{operator} has no operands; give it one or leave it out")));
    }
    Ok(())
}

fn invalid(message: String) -> Error {
    Error::request(RequestPart::Expression, message)
}
