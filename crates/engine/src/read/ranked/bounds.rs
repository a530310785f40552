//! Upper bounds on the weight of documents, before their positions are read.
//!
//! ```text
//! query a b c, idf 0.3 0.2 0.1, ranker proximity_bm25, one field of weight 1
//! a document with two of the words:   runs of at most 2 words              2 * 1000
//!                                     BM25 of at most 0.3 + 0.2            (0.5 + 0.5) * 1000
//!                                     weight at most                       3000
//! ```

use std::collections::BTreeMap;

use remora_index::words::MOST_FIELDS;
use remora_words::{
    matching::{Contributor, Contributors, saturated},
    rank::{HitBounds, Scorer},
};

/// The most fields whose words are counted separately.
pub(super) const MAX_FIELDS: usize = MOST_FIELDS;

/// The number of occurrences up to which saturated frequencies are computed in advance.
const SATURATIONS: usize = 64;

/// For queries of more words, bounds are computed each time instead of being stored.
const MOST_WORDS: usize = 12;

/// Computes upper bounds of weights.
pub(super) struct WeightBounds<'q> {
    pub contributors: Contributors,
    scorer: &'q Scorer,
    table_weight: i64,
    fields: usize,
    /// The terms, each with the number of its positions in the query.
    pub terms: Vec<(usize, usize)>,
    /// For each word, the index of its term in `terms` and the most that it adds to the sum.
    pub shares: Vec<(usize, f32)>,
    /// The position of the query's last word.
    pub last_position: u32,
    /// The saturated frequency for each small number of occurrences.
    saturations: [f32; SATURATIONS],
    /// The most that any `n` of the words add to the sum, by `n`.
    sums: Vec<f32>,
    /// The most by which a sum can grow if it is added in another order.
    slack: f32,
}

/// The facts about a document that bound its weight.
#[derive(Clone, Copy)]
pub(super) struct DocumentFacts<'k> {
    /// The number of words that it contains, counted by their positions in the query.
    pub words: usize,
    /// For each field, the most words that it contains; `None` if that is unknown.
    pub fields: Option<&'k [u32]>,
    /// The most words that the longest run of any field has.
    pub longest: u32,
    /// The most occurrences of the words.
    pub occurrences: u32,
    /// An upper bound of the sum that its words add.
    pub sum: f32,
}

/// A cache of the bounds of runs for documents with so many words.
pub(super) struct Points {
    side: usize,
    known: Vec<Option<i64>>,
}

impl Points {
    /// An empty cache for documents with so many words.
    pub fn new(words: usize) -> Self {
        let side = if words <= MOST_WORDS { words + 1 } else { 0 };
        Self { side, known: vec![None; side * side * side] }
    }

    /// The bound for three numbers of words (other fields, longest field, longest run), computed once.
    #[inline]
    pub fn get(&mut self, numbers: [u32; 3], work_out: impl FnOnce() -> i64) -> i64 {
        let side = self.side;
        let is_known = numbers.iter().all(|&number| (number as usize) < side);
        let place = numbers.iter().fold(0, |place, &number| place * side + number as usize);
        match self.known.get_mut(place).filter(|_| is_known) {
            Some(points) => *points.get_or_insert_with(work_out),
            None => work_out(),
        }
    }
}

impl<'q> WeightBounds<'q> {
    pub fn new(
        mut contributors: Contributors,
        scorer: &'q Scorer,
        table_weight: i32,
        fields: usize,
    ) -> Self {
        // The words with the highest idf first: they exclude the most documents.
        contributors.words.sort_by(|a, b| b.idf.total_cmp(&a.idf));
        let mut terms: BTreeMap<usize, usize> = BTreeMap::new();
        contributors.words.iter().for_each(|word| *terms.entry(word.term).or_default() += 1);
        let terms: Vec<(usize, usize)> = terms.into_iter().collect();
        let magnitude: f32 = contributors.words.iter().map(|word| word.idf.abs()).sum();
        let count = contributors.words.len() as f32;
        let mut bounds = Self {
            slack: (magnitude + 1.0) * (count + 2.0) * 2.0 * f32::EPSILON,
            table_weight: table_weight.into(),
            contributors,
            scorer,
            fields,
            terms,
            shares: Vec::new(),
            last_position: 0,
            saturations: std::array::from_fn(|occurrences| saturated(occurrences as u32)),
            sums: vec![0.0],
        };
        let words = bounds.contributors.words.iter();
        bounds.last_position = words.clone().map(|word| word.position).max().unwrap_or(0);
        let place = |word: &Contributor| bounds.terms.iter().position(|it| it.0 == word.term);
        let with_share = |word: &Contributor| place(word).map(|place| (place, bounds.share(word)));
        bounds.shares = words.clone().filter_map(with_share).collect();
        let words = bounds.contributors.words.iter();
        let mut shares: Vec<f32> = words.map(|word| bounds.share(word)).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        let mut sum = 0.0;
        bounds.sums.extend(shares.into_iter().map(|share| {
            sum += share;
            sum
        }));
        bounds
    }

    /// The number of fields that are counted separately.
    pub fn fields(&self) -> usize {
        self.fields.min(MAX_FIELDS)
    }

    /// The most that a word adds to the sum of a document that contains it.
    #[inline]
    pub fn share(&self, word: &Contributor) -> f32 {
        match word.idf < 0.0 {
            // The idf is negative: each further occurrence lowers the sum, so one occurrence is the most.
            true if self.contributors.is_certain => saturated(1) * word.idf,
            true => 0.0,
            false => word.idf,
        }
    }

    /// An upper bound of what a word adds to the sum of a document in which it occurs so often. With a negative idf it
    /// is 0, unless every occurrence certainly counts.
    #[inline]
    pub fn counted(&self, word: &Contributor, occurrences: u32) -> f32 {
        match word.idf < 0.0 && !self.contributors.is_certain {
            true => 0.0,
            false => {
                let known = self.saturations.get(occurrences as usize).copied();
                known.unwrap_or_else(|| saturated(occurrences)) * word.idf
            }
        }
    }

    /// Whether no run has more words than one shift of the query aligns with the document (see [`super::shifts`]).
    /// `keyword` gives the kind of a term, `None` if it is not one keyword. Two keywords of letters and digits never
    /// share a position: a word as written that is indexed beside its stem, and a blended word, contain other
    /// characters.
    pub fn runs_are_shifts(&self, mut keyword: impl FnMut(usize) -> Option<Keyword>) -> bool {
        let are_keywords =
            self.contributors.are_hits && self.terms.iter().all(|it| keyword(it.0).is_some());
        are_keywords && self.scorer.runs_are_shifts(self.are_apart(keyword))
    }

    /// Whether no two words of the query can be at one place.
    fn are_apart(&self, mut keyword: impl FnMut(usize) -> Option<Keyword>) -> bool {
        let mut terms = self.terms.iter();
        terms.all(|&(term, times)| times == 1 && keyword(term) == Some(Keyword::Plain))
    }

    /// Whether runs are made of groups of all words within a window (see [`super::groups`]). `keyword` as for
    /// [`WeightBounds::runs_are_shifts`].
    pub fn runs_are_groups(&self, keyword: impl FnMut(usize) -> Option<Keyword>) -> bool {
        let words = self.contributors.words.len();
        words > 1
            && self.contributors.window.is_some_and(|window| window as usize == words)
            && self.scorer.runs_are_groups()
            && self.are_apart(keyword)
    }

    /// An upper bound of the weight of a document that contains so many of the words.
    pub fn of_words(&self, words: usize, fields: Option<&[u32]>) -> i64 {
        self.of_run(words, fields, u32::MAX)
    }

    /// The same if no run has more than `longest` words.
    pub fn of_run(&self, words: usize, fields: Option<&[u32]>, longest: u32) -> i64 {
        let sum = self.sums.get(words).copied().unwrap_or_else(|| self.most_sum());
        self.of(DocumentFacts { words, fields, longest, occurrences: u32::MAX, sum })
    }

    /// The most that all words together add to the sum.
    pub fn most_sum(&self) -> f32 {
        self.sums.last().copied().unwrap_or(0.0)
    }

    /// An upper bound of the part of the weight that is not BM25, if the longest runs of the fields have no more words than
    /// these, and all of them together no more than `all`.
    pub fn of_runs(&self, fields: &[u32], all: u32) -> i64 {
        let longest = fields.iter().copied().max().unwrap_or(0);
        self.scorer.at_most(&HitBounds { fields, runs: all, longest, occurrences: u32::MAX })
    }

    /// The terms, by their indexes, of which a document with so many words must contain at least one to weigh `floor`.
    /// The others are too light: even the best of them together do not reach it.
    pub fn needed(&self, words: usize, fields: Option<&[u32]>, floor: i64, out: &mut Vec<usize>) {
        let mut shares: Vec<(f32, usize)> = Vec::with_capacity(self.terms.len());
        for (at, &(term, _)) in self.terms.iter().enumerate() {
            let of_term = self.contributors.words.iter().filter(|word| word.term == term);
            let share: f32 = of_term.map(|word| self.share(word)).sum();
            shares.push((share, at));
        }
        shares.sort_by(|a, b| a.0.total_cmp(&b.0));
        let reaches = |some: &[(f32, usize)]| {
            // Counts each term as one word. Terms that lower the sum can be missing.
            let best = some.iter().rev().take(words);
            let sum = best.map(|share| share.0.max(0.0)).sum();
            self.of(DocumentFacts { words, fields, longest: u32::MAX, occurrences: u32::MAX, sum })
                >= floor
        };
        let mut light = 0;
        while light < shares.len() && !reaches(&shares[..=light]) {
            light += 1;
        }
        out.extend(shares[light..].iter().map(|&(_, at)| at));
    }

    pub fn of(&self, known: DocumentFacts<'_>) -> i64 {
        self.with(self.points(known), known.words, known.sum)
    }

    /// An upper bound of the weight of a document, from the bound of its points.
    #[inline]
    pub fn with(&self, points: i64, words: usize, sum: f32) -> i64 {
        let slack = if words > 1 { self.slack } else { 0.0 };
        let bm25 = self.scorer.bm25_at_most(sum + slack);
        points.saturating_add(bm25).saturating_mul(self.table_weight)
    }

    /// An upper bound of the part of the weight that is not BM25. `known.sum` is not used.
    pub fn points(&self, known: DocumentFacts<'_>) -> i64 {
        let words = known.words as u32;
        let (runs, occurrences) = match self.contributors.window {
            // Groups within a window overlap: each occurrence but the first few can begin one.
            Some(window) => {
                let groups = known.occurrences.saturating_sub(window.saturating_sub(1));
                (groups.saturating_mul(window), known.occurrences)
            }
            None => (known.occurrences, known.occurrences),
        };
        let mut of_fields = [words; MAX_FIELDS];
        let mut many = Vec::new();
        let fields: &[u32] = match (known.fields, self.contributors.window) {
            (Some(fields), None) => fields,
            (_, window) if self.fields <= MAX_FIELDS => {
                let each = if window.is_some() { runs } else { words };
                of_fields.fill(each);
                of_fields.get(..self.fields).unwrap_or_default()
            }
            (_, window) => {
                many.resize(self.fields, if window.is_some() { runs } else { words });
                &many
            }
        };
        self.scorer.at_most(&HitBounds { fields, runs, longest: known.longest, occurrences })
    }
}

/// The kind of a term that is one keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    /// Letters and digits only.
    Plain,
    /// Other characters too.
    Other,
}
