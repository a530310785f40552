//! Plans a query: looks up keywords, turns the tree into steps, and fixes the order of additions.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
};

use super::{
    Candidates, Contributors, Document,
    evaluate::evaluate,
    positions::QueryPositions,
    quorum::{MergedWords, QuorumPlan, text_of},
    step::{PhraseWords, QuorumWord, Step, TermStep, ZoneTerms},
    term::Term,
};
use crate::{
    Result,
    analysis::{PARAGRAPH, SENTENCE, of_zone},
    hits::{Found, Hit, MAX_POSITION, PackedPosition},
    query::{FieldMask, Limit, Node, Quoted, QuotedKind, TextUnit, Word, Zones},
    rank::{IdfKind, Needs, QueryWord, idf},
};

/// Counts of a keyword in the live documents of the whole table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of documents that contain the keyword.
    pub documents: u64,
    /// The number of its occurrences.
    pub hits: u64,
}

/// The terms of a phrase or a proximity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotedTerms {
    /// Each term and its position in the query, the rarest first.
    pub terms: Vec<(usize, u32)>,
    /// `None` for a phrase: in a match its places have the same distances as the positions. Of a proximity, the
    /// first and the last place of a match are less than that apart. Either way they are in one field.
    pub reach: Option<u32>,
    /// Whether all places count, so that nothing else is needed for a match.
    pub is_unlimited: bool,
}

/// A keyword that a wildcard expands to.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// The keyword.
    pub keyword: String,
    /// The counts of the keyword.
    pub counts: Counts,
}

/// The keyword statistics of a whole table. They must not depend on how the table is split into segments or
/// parts.
pub trait Vocabulary {
    /// The number of live documents.
    fn total(&self) -> u64;

    /// The keyword of a tokenised word; `None` if it is a stop word.
    fn keyword(&self, word: &str, is_exact: bool) -> Option<String>;

    /// The counts of a keyword.
    ///
    /// # Errors
    /// Errors of the index.
    fn counts(&mut self, keyword: &str) -> Result<Counts>;

    /// The keywords that a wildcard expands to, in order. An inner `Err` is a warning: nothing is expanded.
    ///
    /// # Errors
    /// Errors of the index.
    fn expand(&mut self, pattern: &str) -> Result<Result<Vec<Expansion>, String>>;

    /// The number of documents that contain any of the keywords; if `counts` is given, only at places for which
    /// it is true.
    ///
    /// # Errors
    /// Errors of the index.
    fn union(
        &mut self,
        keywords: &[String],
        counts: Option<&dyn Fn(PackedPosition) -> bool>,
    ) -> Result<u64>;
}

/// A keyword of the query, for reports.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedWord {
    /// The keyword in the index; for a wildcard the word as written.
    pub word: String,
    /// The counts of the keyword, or of the wildcard as a whole.
    pub counts: Counts,
}

/// A query over known keywords.
#[derive(Clone, Debug)]
pub struct Matcher {
    root: Step,
    terms: Vec<Term>,
    words: Vec<PlannedWord>,
    query_words: Vec<QueryWord>,
    keywords: usize,
    has_repeats: bool,
    last_position: u32,
    warning: Option<String>,
}

/// The marks of words that stand for several keywords.
const WILDCARDS: [char; 3] = ['*', '?', '%'];
/// An expansion with more hits, in at least [`RARE_DOCUMENTS`] documents, is a term of its own.
const RARE_HITS: u64 = 256;
/// See [`RARE_HITS`].
const RARE_DOCUMENTS: u64 = 32;

impl Matcher {
    /// Plans a query.
    ///
    /// # Errors
    /// Errors of the vocabulary.
    pub fn new(root: &Node, vocabulary: &mut dyn Vocabulary, kind: IdfKind) -> Result<Self> {
        let mut planner = Planner::new(vocabulary);
        let mut words = Vec::new();
        collect(root, false, &mut (&mut words, 0));
        planner.merged.is_any = words.iter().any(|it| it.quorum.is_some());
        // Wildcards are reported in the order of the tree, other words in that of their positions.
        words.iter().try_for_each(|it| planner.expand(it.word))?;
        let warning = planner.too_short(&words);
        // If several are at one place, as wildcards make them, the last comes first.
        words.reverse();
        words.sort_by_key(|it| it.word.position);
        for it in words {
            if planner.look_up(it.word, it.quorum)? && !it.is_excluded {
                planner.last_position = planner.last_position.max(it.word.position);
            }
        }
        planner.kind = kind;
        let root = planner.step(root)?;
        let expanded = planner.expanded.into_iter().filter(|it| it.is_kept);
        let told = |it: Expanded| PlannedWord { word: it.word, counts: it.counts };
        let mut words: Vec<PlannedWord> = expanded.map(told).collect();
        words.append(&mut planner.plain);
        Ok(Self {
            root,
            terms: planner.terms,
            words,
            query_words: planner.positions.query_words(planner.last_position),
            keywords: planner.named.len(),
            has_repeats: planner.has_repeats,
            last_position: planner.last_position,
            warning: planner.quorum_warning.or(warning),
        })
    }

    /// The terms of the query, by number.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The words of the query, as shown by `SHOW META`.
    pub fn words(&self) -> &[PlannedWord] {
        &self.words
    }

    /// The words at each position of the query, without excluded ones, for ranking expressions.
    pub fn query_words(&self) -> &[QueryWord] {
        &self.query_words
    }

    /// The number of distinct keywords.
    pub fn keywords(&self) -> usize {
        self.keywords
    }

    /// Whether no word is wanted, so that each row found has the weight 1.
    pub fn is_unranked(&self) -> bool {
        matches!(&self.root, Step::AndNot(wanted, _) if matches!(**wanted, Step::Every))
    }

    /// Whether a word occurs twice in the query.
    pub fn has_repeats(&self) -> bool {
        self.has_repeats
    }

    /// The position of the query's last word.
    pub fn last_position(&self) -> u32 {
        self.last_position
    }

    /// A warning about a change of the query, in Sphinx's wording.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The candidate documents, and whether each of them matches.
    pub fn candidates(&self) -> (Candidates, bool) {
        Candidates::of(&self.root)
    }

    /// The words that can contribute to a weight; `None` if no upper bound follows from them.
    pub fn contributors(&self) -> Option<Contributors> {
        Contributors::of(&self.root, &self.terms)
    }

    /// The terms of a query that is a single phrase or a single proximity, and how far apart they
    /// may be. `None` for any other query, or if several terms have one position. A window that is
    /// longer than a field may reach into the next one.
    pub fn quoted(&self) -> Option<QuotedTerms> {
        let (words, reach) = match &self.root {
            Step::Phrase(words) => (words, None),
            Step::Proximity(words, distance) => {
                let (first, last) = (words.positions.first()?, words.positions.last()?);
                (words, Some(last - first + distance))
            }
            _ => return None,
        };
        let leaf = |step: &Step| match step {
            Step::Leaf(leaf) => Some((leaf.term, leaf.query_position, leaf.is_unlimited())),
            _ => None,
        };
        let leaves: Vec<_> = words.leaves.iter().map(leaf).collect::<Option<_>>()?;
        // A word that takes no position may have the place of the next one.
        let are_apart = words.positions.is_sorted_by(|before, behind| before < behind);
        let is_of_one_field = reach.is_none_or(|reach| reach <= MAX_POSITION);
        let is_plain = are_apart && is_of_one_field && leaves.len() == words.positions.len();
        is_plain.then(|| QuotedTerms {
            is_unlimited: leaves.iter().all(|leaf| leaf.2),
            terms: leaves.into_iter().map(|(term, position, _)| (term, position)).collect(),
            reach,
        })
    }

    /// Evaluates the query on a document; `None` if it does not match. `hits` receives the hits that a ranker
    /// needs.
    ///
    /// # Errors
    /// Errors of the document.
    pub fn evaluate(
        &self,
        document: &mut impl Document,
        needs: Needs,
        hits: &mut Vec<Hit>,
    ) -> Result<Option<Found>> {
        evaluate(&self.root, document, needs.fields, needs.hits.then_some(hits))
    }
}

/// A word of the query, looked up.
#[derive(Clone)]
struct ResolvedWord {
    terms: Rc<[ResolvedTerm]>,
}

/// A term of a word.
struct ResolvedTerm {
    /// The number of the term.
    number: usize,
    /// The text by which Sphinx tells keywords apart. One that a wildcard stands for is the same as that keyword
    /// where the query names it, unless words are indexed as written.
    identity: Rc<str>,
}

/// A wildcard, for reports.
struct Expanded {
    word: String,
    counts: Counts,
    /// The counts of one occurrence in the query.
    once: Counts,
    /// Whether no quorum has merged it with another word.
    is_kept: bool,
}

/// A word in the tree of the query.
#[derive(Clone, Copy)]
struct TreeWord<'n> {
    word: &'n Word,
    is_excluded: bool,
    /// The number of the quorum that merges it with words of the same keyword.
    quorum: Option<usize>,
}

/// What a word stands for.
enum Meaning {
    Keyword(String),
    /// Of a wildcard: keywords that are terms of their own, and rare ones that are one term.
    Expansions {
        frequent: Vec<Expansion>,
        rare: Vec<Expansion>,
    },
}

impl Meaning {
    /// What tells the word from others of a quorum: its keyword; of the word `text` with wildcards those that are terms
    /// of their own, and `text` for the rest.
    fn identity(&self, text: &str) -> Vec<String> {
        match self {
            Self::Keyword(keyword) => vec![keyword.clone()],
            Self::Expansions { frequent, rare } => {
                let mut all: Vec<String> = frequent.iter().map(|it| it.keyword.clone()).collect();
                if all.is_empty() || !rare.is_empty() {
                    all.push(text.to_owned());
                }
                all
            }
        }
    }
}

struct Planner<'a> {
    vocabulary: &'a mut dyn Vocabulary,
    known: HashMap<String, ResolvedWord>,
    /// The texts of all words.
    texts: HashSet<String>,
    merged: MergedWords,
    /// The numbers of terms by keyword.
    numbers: HashMap<(Vec<String>, bool), usize>,
    terms: Vec<Term>,
    plain: Vec<PlannedWord>,
    expanded: Vec<Expanded>,
    /// What words with wildcards stand for; an inner `Err` is a warning.
    expansions: HashMap<String, Result<Vec<Expansion>, String>>,
    /// The keywords of the query, by identity.
    named: HashSet<Rc<str>>,
    /// The keywords whose idf has been used, by identity.
    weighed: HashSet<Rc<str>>,
    /// The words by position; excluded parts are not recorded.
    positions: QueryPositions,
    is_excluded: bool,
    kind: IdfKind,
    has_repeats: bool,
    last_position: u32,
    quorum_warning: Option<String>,
}

impl<'a> Planner<'a> {
    fn new(vocabulary: &'a mut dyn Vocabulary) -> Self {
        Self {
            vocabulary,
            known: HashMap::new(),
            texts: HashSet::new(),
            merged: MergedWords::default(),
            numbers: HashMap::new(),
            terms: Vec::new(),
            plain: Vec::new(),
            expanded: Vec::new(),
            expansions: HashMap::new(),
            named: HashSet::new(),
            weighed: HashSet::new(),
            positions: QueryPositions::default(),
            is_excluded: false,
            kind: IdfKind::default(),
            has_repeats: false,
            last_position: 0,
            quorum_warning: None,
        }
    }

    /// Finds out what a word with wildcards stands for.
    fn expand(&mut self, word: &Word) -> Result<()> {
        let text = text_of(word);
        if !word.text.contains(WILDCARDS) || self.expansions.contains_key(&text) {
            return Ok(());
        }
        let mut found = self.vocabulary.expand(&word.text)?;
        if let Ok(expansions) = &mut found {
            keep_most(expansions, word.most_expansions as usize);
            let sum = |of: fn(&Counts) -> u64| expansions.iter().map(|it| of(&it.counts)).sum();
            let counts = Counts { documents: sum(|it| it.documents), hits: sum(|it| it.hits) };
            let word = word.text.clone();
            self.expanded.push(Expanded { word, counts, once: counts, is_kept: false });
        }
        self.expansions.insert(text, found);
        Ok(())
    }

    /// The warning of a word that is too short for its wildcards: the last one of the tree, excluded words behind the
    /// rest. One with a star at an end comes before others.
    fn too_short(&self, words: &[TreeWord<'_>]) -> Option<String> {
        let has_star = |word: &Word| word.text.starts_with('*') || word.text.ends_with('*');
        let warning = |it: &TreeWord<'_>| self.expansions.get(&text_of(it.word))?.as_ref().err();
        let told = |with_star: bool| {
            let mut words = words.iter().rev().filter(|it| has_star(it.word) == with_star);
            words.find_map(warning)
        };
        told(true).or_else(|| told(false)).cloned()
    }

    /// Looks up a word. False if it is merged with an earlier word of its quorum, so that it does not count.
    fn look_up(&mut self, word: &Word, quorum: Option<usize>) -> Result<bool> {
        let text = text_of(word);
        self.has_repeats |= !self.texts.insert(text.clone());
        let has_identity = self.merged.knows(&text);
        if has_identity && !self.merged.keeps(word, quorum) {
            return Ok(false);
        }
        if self.known.contains_key(&text) {
            // A wildcard is reported as often as it is written.
            if let Some(known) = self.expanded.iter_mut().find(|it| it.word == word.text) {
                known.counts.documents += known.once.documents;
                known.counts.hits += known.once.hits;
            }
            return Ok(true);
        }
        let meaning = self.meaning(word);
        if self.merged.is_any && !has_identity {
            self.merged.note(&text, meaning.identity(&word.text));
            if !self.merged.keeps(word, quorum) {
                return Ok(false);
            }
        }
        let terms = match meaning {
            Meaning::Keyword(keyword) => {
                let number = self.plain(keyword)?;
                vec![ResolvedTerm { number, identity: text.as_str().into() }]
            }
            Meaning::Expansions { frequent, rare } => self.wildcard(word, frequent, rare)?,
        };
        for term in &terms {
            self.has_repeats |= !self.named.insert(Rc::clone(&term.identity));
        }
        self.known.insert(text, ResolvedWord { terms: terms.into() });
        Ok(true)
    }

    fn meaning(&self, word: &Word) -> Meaning {
        if !word.text.contains(WILDCARDS) {
            let keyword = self.vocabulary.keyword(&word.text, word.is_exact);
            return Meaning::Keyword(keyword.unwrap_or_else(|| word.text.clone()));
        }
        match self.expansions.get(&text_of(word)) {
            // It is too short.
            Some(Err(_)) => Meaning::Keyword(word.text.clone()),
            found => {
                let expansions = found.and_then(|found| found.as_ref().ok());
                let is_rare = |it: &Expansion| {
                    it.counts.hits <= RARE_HITS || it.counts.documents < RARE_DOCUMENTS
                };
                let expansions = expansions.into_iter().flatten().cloned();
                let (rare, frequent) = expansions.partition(is_rare);
                Meaning::Expansions { frequent, rare }
            }
        }
    }

    fn plain(&mut self, keyword: String) -> Result<usize> {
        let counts = self.vocabulary.counts(&keyword)?;
        match self.plain.iter_mut().find(|word| word.word == keyword) {
            Some(word) => {
                word.counts.documents += counts.documents;
                word.counts.hits += counts.hits;
            }
            None => self.plain.push(PlannedWord { word: keyword.clone(), counts }),
        }
        Ok(self.term(vec![keyword], counts.documents, false))
    }

    fn term(&mut self, keywords: Vec<String>, documents: u64, is_union: bool) -> usize {
        let (numbers, terms) = (&mut self.numbers, &mut self.terms);
        *numbers.entry((keywords, is_union)).or_insert_with_key(|(keywords, _)| {
            terms.push(Term { keywords: keywords.clone(), documents, is_union });
            terms.len() - 1
        })
    }

    fn wildcard(
        &mut self,
        word: &Word,
        frequent: Vec<Expansion>,
        rare: Vec<Expansion>,
    ) -> Result<Vec<ResolvedTerm>> {
        let mut unkept = self.expanded.iter_mut().filter(|it| !it.is_kept);
        if let Some(expanded) = unkept.find(|it| it.word == word.text) {
            expanded.is_kept = true;
        }
        let mut terms = Vec::new();
        for Expansion { keyword, counts } in frequent {
            let identity = match keyword.strip_prefix('=') {
                Some(written) => format!("\u{2}{written}").into(),
                None => keyword.as_str().into(),
            };
            let number = self.term(vec![keyword], counts.documents, false);
            terms.push(ResolvedTerm { number, identity });
        }
        let rare: Vec<String> = rare.into_iter().map(|expansion| expansion.keyword).collect();
        if !rare.is_empty() || terms.is_empty() {
            let documents = self.vocabulary.union(&rare, None)?;
            let number = self.term(rare, documents, true);
            terms.push(ResolvedTerm { number, identity: text_of(word).into() });
        }
        Ok(terms)
    }

    /// The step of a word, or of the words that may stand at its place.
    fn word(&mut self, word: &Word) -> Result<Step> {
        let own = self.only(word)?;
        if word.others.is_empty() {
            return Ok(own);
        }
        let mut steps = vec![own];
        for other in &word.others {
            steps.push(self.only(other)?);
        }
        Ok(Step::Or(steps))
    }

    /// The step of a word without the others at its place. Only the first occurrence of a keyword in the query has
    /// its idf; the rare keywords of a wildcard have it at each occurrence.
    fn only(&mut self, word: &Word) -> Result<Step> {
        let Some(known) = self.known.get(&text_of(word)).cloned() else { return Ok(Step::Nothing) };
        let leaves = known.terms.iter().map(|term| {
            let is_first = self.weighed.insert(Rc::clone(&term.identity));
            self.leaf(word, term, is_first)
        });
        let mut leaves = leaves.collect::<Result<Vec<Step>>>()?;
        Ok(match leaves.len() {
            0 => Step::Nothing,
            1 => leaves.pop().unwrap_or(Step::Nothing),
            _ => Step::Or(leaves),
        })
    }

    fn leaf(&mut self, word: &Word, resolved: &ResolvedTerm, is_first: bool) -> Result<Step> {
        let mut leaf = TermStep {
            term: resolved.number,
            query_position: word.position,
            idf: 0.0,
            limit: word.limit,
            at_start: word.at_start,
            at_end: word.at_end,
            is_union: false,
            zones: word.zones.as_deref().map(|zones| self.zones(zones)),
        };
        let Some(term) = self.terms.get(resolved.number) else { return Ok(Step::Nothing) };
        leaf.is_union = term.is_union;
        if is_first || term.is_union {
            let documents = match term.is_union && !leaf.is_unlimited() {
                true => self.vocabulary.union(&term.keywords, Some(&|at| leaf.counts(at)))?,
                false => term.documents,
            };
            let total = self.vocabulary.total();
            leaf.idf = idf(documents, total, self.named.len(), word.boost, self.kind);
        }
        if !self.is_excluded {
            let own = is_first.then_some(leaf.idf);
            self.positions.note(&resolved.identity, word.position, own);
        }
        Ok(Step::Leaf(leaf))
    }

    /// The terms of marks. They are no words of the query: no weight depends on their counts, which stay 0.
    fn mark(&mut self, keyword: String) -> usize {
        self.term(vec![keyword], 0, false)
    }

    fn zones(&mut self, zones: &Zones) -> Arc<[ZoneTerms]> {
        let terms = zones.names.iter().map(|name| {
            let (begin, end) = of_zone(name);
            ZoneTerms { begin: self.mark(begin), end: self.mark(end) }
        });
        terms.collect()
    }

    /// The marks that divide units, in the fields of the unit's words.
    fn divider(&mut self, unit: TextUnit, parts: &[Node]) -> TermStep {
        let keyword = match unit {
            TextUnit::Sentence => SENTENCE,
            TextUnit::Paragraph => PARAGRAPH,
        };
        let fields = match parts.last() {
            Some(Node::Word(word)) => word.limit.fields,
            Some(Node::Quoted(Quoted { words, .. })) => {
                words.last().map_or(FieldMask::ALL, |word| word.limit.fields)
            }
            _ => FieldMask::ALL,
        };
        TermStep {
            term: self.mark(keyword.to_owned()),
            query_position: 0,
            idf: 0.0,
            limit: Limit { fields, ..Limit::NONE },
            at_start: false,
            at_end: false,
            is_union: false,
            zones: None,
        }
    }

    /// The number of documents by which words are ordered; of several at one place it is not known.
    fn documents(&self, word: &Word) -> u64 {
        if !word.others.is_empty() {
            return u64::MAX;
        }
        let terms = self.known.get(&text_of(word)).map_or(&[][..], |known| &known.terms);
        terms.iter().filter_map(|term| self.terms.get(term.number)).map(|term| term.documents).sum()
    }

    /// The order in which the sums of words are added: the rarest first; of equal ones the last first.
    fn order(&self, words: &[&Word]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..words.len()).rev().collect();
        order.sort_by_key(|&place| self.documents(words[place]));
        order
    }

    fn words(&mut self, words: &[Word]) -> Result<PhraseWords> {
        let order = self.order(&words.iter().collect::<Vec<_>>());
        let leaves = order.into_iter().map(|place| self.word(&words[place]));
        let leaves = leaves.collect::<Result<_>>()?;
        Ok(PhraseWords { leaves, positions: words.iter().map(|word| word.position).collect() })
    }

    fn step(&mut self, node: &Node) -> Result<Step> {
        Ok(match node {
            Node::Every => Step::Every,
            Node::Word(word) => self.word(word)?,
            Node::Quoted(quoted) => self.quoted(quoted)?,
            Node::And(parts) => match plain_words(parts) {
                Some(words) => {
                    let order = self.order(&words);
                    let steps = order.into_iter().map(|place| self.word(words[place]));
                    let steps = steps.collect::<Result<Vec<Step>>>()?;
                    let is_span =
                        |word: &&Word| word.zones.as_ref().is_some_and(|zones| zones.is_span);
                    match leaves(&steps).filter(|_| words.iter().all(is_span)) {
                        Some(leaves) => Step::InOneZone(leaves),
                        None => Step::And(steps),
                    }
                }
                None => Step::And(self.steps(parts)?),
            },
            Node::Or(parts) => Step::Or(self.steps(parts)?),
            Node::Maybe(parts) => Step::Maybe(self.steps(parts)?),
            Node::Before(parts) => Step::Before(self.steps(parts)?),
            Node::Unit(parts, unit) => {
                let steps = self.steps(parts)?;
                Step::Unit(steps, self.divider(*unit, parts))
            }
            Node::AndNot(wanted, unwanted) => {
                let wanted = self.step(wanted)?;
                // An exclusion within an exclusion is included again.
                self.is_excluded = !self.is_excluded;
                let unwanted = self.step(unwanted);
                self.is_excluded = !self.is_excluded;
                Step::AndNot(Box::new(wanted), Box::new(unwanted?))
            }
            Node::NotNear { wanted, unwanted, distance } => {
                let wanted = self.step(wanted)?;
                self.is_excluded = !self.is_excluded;
                let unwanted = self.steps(unwanted);
                self.is_excluded = !self.is_excluded;
                Step::NotNear(Box::new(wanted), unwanted?, *distance)
            }
            Node::Near { parts, distance } => {
                let parts = spliced(parts);
                // In the order of an AND; operands of several words come last.
                let rank = |part: &Node| match part {
                    Node::Word(word) => self.documents(word),
                    _ => u64::MAX,
                };
                let mut order: Vec<usize> = (0..parts.len()).rev().collect();
                order.sort_by_key(|&place| rank(&parts[place]));
                let mut steps: Vec<Step> = vec![Step::Nothing; parts.len()];
                for &place in &order {
                    steps[place] = self.step(&parts[place])?;
                }
                Step::Near { parts: steps, order, distance: *distance }
            }
        })
    }

    fn steps(&mut self, parts: &[Node]) -> Result<Vec<Step>> {
        parts.iter().map(|part| self.step(part)).collect()
    }

    fn quoted(&mut self, quoted: &Quoted) -> Result<Step> {
        let words = &quoted.words;
        match quoted.kind {
            QuotedKind::Phrase => Ok(Step::Phrase(self.words(words)?)),
            QuotedKind::Proximity(distance) => Ok(Step::Proximity(self.words(words)?, distance)),
            kind @ (QuotedKind::Quorum(_) | QuotedKind::QuorumShare(_)) => self.quorum(words, kind),
        }
    }

    fn quorum(&mut self, words: &[Word], kind: QuotedKind) -> Result<Step> {
        let least = match QuorumPlan::of(words.len(), kind) {
            QuorumPlan::Any => {
                let steps = words.iter().map(|word| self.word(word));
                return Ok(Step::Or(steps.collect::<Result<_>>()?));
            }
            QuorumPlan::All(warning) => {
                self.quorum_warning = warning.or(self.quorum_warning.take());
                return Ok(Step::And(self.words(words)?.leaves));
            }
            QuorumPlan::AtLeast(least) => least,
        };
        let distinct = self.merged.distinct(words).into_iter();
        let steps = distinct.map(|(word, times)| Ok(QuorumWord { step: self.word(word)?, times }));
        Ok(Step::Quorum(steps.collect::<Result<_>>()?, least))
    }
}

/// Keeps the keywords with the most documents, if they are more than `most`, in their order; 0 for no limit.
fn keep_most(expansions: &mut Vec<Expansion>, most: usize) {
    if most == 0 || expansions.len() <= most {
        return;
    }
    expansions.sort_by_key(|it| std::cmp::Reverse(it.counts.documents));
    expansions.truncate(most);
    expansions.sort_by(|a, b| a.keyword.cmp(&b.keyword));
}

/// All words of a query in the order of its tree, and the number of its quoted parts.
fn collect<'n>(node: &'n Node, is_excluded: bool, out: &mut (&mut Vec<TreeWord<'n>>, usize)) {
    let mut all = |word: &'n Word, quorum: Option<usize>| {
        let quorum = quorum.filter(|_| word.others.is_empty());
        let words = std::iter::once(word).chain(&word.others);
        out.0.extend(words.map(|word| TreeWord { word, is_excluded, quorum }));
    };
    match node {
        Node::Every => {}
        Node::Word(word) => all(word, None),
        Node::Quoted(quoted) => {
            let plan = QuorumPlan::of(quoted.words.len(), quoted.kind);
            let quorum = matches!(plan, QuorumPlan::AtLeast(_)).then_some(out.1);
            quoted.words.iter().for_each(|word| all(word, quorum));
            out.1 += 1;
        }
        Node::And(parts)
        | Node::Or(parts)
        | Node::Maybe(parts)
        | Node::Before(parts)
        | Node::Unit(parts, _)
        | Node::Near { parts, .. } => {
            parts.iter().for_each(|part| collect(part, is_excluded, out));
        }
        Node::AndNot(wanted, unwanted) => {
            collect(wanted, is_excluded, out);
            collect(unwanted, !is_excluded, out);
        }
        Node::NotNear { wanted, unwanted, .. } => {
            collect(wanted, is_excluded, out);
            unwanted.iter().for_each(|part| collect(part, !is_excluded, out));
        }
    }
}

/// The operands of a NEAR; an AND among them is replaced by its words.
fn spliced(parts: &[Node]) -> Vec<Node> {
    let mut all = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Node::And(words) if plain_words(words).is_some() => all.extend_from_slice(words),
            other => all.push(other.clone()),
        }
    }
    all
}

/// The terms, if each step is one.
fn leaves(steps: &[Step]) -> Option<Vec<TermStep>> {
    let leaf = |step: &Step| if let Step::Leaf(leaf) = step { Some(leaf.clone()) } else { None };
    steps.iter().map(leaf).collect()
}

/// The words, if all parts are words without others at their places.
fn plain_words(parts: &[Node]) -> Option<Vec<&Word>> {
    fn word(part: &Node) -> Option<&Word> {
        if let Node::Word(word) = part {
            Some(word).filter(|it| it.others.is_empty())
        } else {
            None
        }
    }
    parts.iter().map(word).collect()
}
