//! Upper bounds on the weight of documents, before their positions are read.

use std::collections::BTreeMap;

use remora_index::words::MOST_FIELDS;
use remora_words::{
    matching::{Contributor, Contributors, saturated},
    rank::{Most, Scorer},
};

/// Most fields that are told apart.
pub(super) const MAX_FIELDS: usize = MOST_FIELDS;

/// So many occurrences are not worked out each time.
const SATURATIONS: usize = 64;

/// Queries of more words work out each time what documents can weigh.
const MOST_WORDS: usize = 12;

/// What documents can weigh at most.
pub(super) struct Bounds<'q> {
    pub contributors: Contributors,
    scorer: &'q Scorer,
    table_weight: i64,
    fields: usize,
    /// The terms, and how many places of the query have each.
    pub terms: Vec<(usize, usize)>,
    /// Of each word the place of its term among `terms`, and what it adds at most.
    pub shares: Vec<(usize, f32)>,
    /// The position of the query's last word.
    pub last_position: u32,
    /// What so many occurrences are worth.
    saturations: [f32; SATURATIONS],
    /// What so many of the words can add to the sum at most, by their number.
    sums: Vec<f32>,
    /// By how much a sum may be greater that is added in another order.
    slack: f32,
}

/// What is known of a document.
#[derive(Clone, Copy)]
pub(super) struct DocumentFacts<'k> {
    /// How many of the words it has, counted by their places in the query.
    pub words: usize,
    /// How many of them in each field at most; `None` if nothing is known of fields.
    pub fields: Option<&'k [u32]>,
    /// How many of them the longest run of any field has at most.
    pub longest: u32,
    /// How many occurrences at most.
    pub occurrences: u32,
    /// The sum of what its words add at most.
    pub sum: f32,
}

/// What the runs of documents with so many words count at most, once worked out.
pub(super) struct Points {
    side: usize,
    known: Vec<Option<i64>>,
}

impl Points {
    /// Of documents with so many words.
    pub fn new(words: usize) -> Self {
        let side = if words <= MOST_WORDS { words + 1 } else { 0 };
        Self { side, known: vec![None; side * side * side] }
    }

    /// Those of these numbers of words, none of which is above that.
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

impl<'q> Bounds<'q> {
    pub fn new(
        mut contributors: Contributors,
        scorer: &'q Scorer,
        table_weight: i32,
        fields: usize,
    ) -> Self {
        // The words that tell most first: by them most documents are told to lose.
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

    /// How many fields there are, but no more than are told apart.
    pub fn fields(&self) -> usize {
        self.fields.min(MAX_FIELDS)
    }

    /// What a word adds to the sum of a document at most that has it.
    #[inline]
    pub fn share(&self, word: &Contributor) -> f32 {
        match word.idf < 0.0 {
            // A word of most documents counts the less the more often it stands there.
            true if self.contributors.is_certain => saturated(1) * word.idf,
            true => 0.0,
            false => word.idf,
        }
    }

    /// What a word adds to the sum of a document that has it so often, or more than that.
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

    /// Whether a run has no more words than one shift of the query puts on their places: `keyword` tells what
    /// a term is, `None` if it is not one keyword. Those of letters and digits do not stand at one place together; a form
    /// that is kept beside its stem, or a blended word, has other characters.
    pub fn runs_are_shifts(&self, mut keyword: impl FnMut(usize) -> Option<Keyword>) -> bool {
        let mut are_apart = true;
        let mut are_keywords = self.contributors.are_hits;
        for &(term, times) in &self.terms {
            let keyword = keyword(term);
            are_keywords &= keyword.is_some();
            are_apart &= times == 1 && keyword == Some(Keyword::Plain);
        }
        are_keywords && self.scorer.runs_are_shifts(are_apart)
    }

    /// What a document with so many of the words can weigh.
    pub fn of_words(&self, words: usize, fields: Option<&[u32]>) -> i64 {
        let sum = self.sums.get(words).or(self.sums.last()).copied().unwrap_or(0.0);
        self.of(DocumentFacts { words, fields, longest: u32::MAX, occurrences: u32::MAX, sum })
    }

    /// The words, by their places among the terms, of which a document with so many must have one to weigh `floor`: all
    /// but those whose best do not reach it.
    pub fn needed(&self, words: usize, fields: Option<&[u32]>, floor: i64, out: &mut Vec<usize>) {
        let mut shares: Vec<(f32, usize)> = Vec::with_capacity(self.terms.len());
        for (at, &(term, _)) in self.terms.iter().enumerate() {
            let of_term = self.contributors.words.iter().filter(|word| word.term == term);
            let share: f32 = of_term.map(|word| self.share(word)).sum();
            shares.push((share, at));
        }
        shares.sort_by(|a, b| a.0.total_cmp(&b.0));
        let reaches = |some: &[(f32, usize)]| {
            // As if each of them counted as one word, and those that lower the sum need not be there.
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

    /// What a document weighs at most whose points are these.
    #[inline]
    pub fn with(&self, points: i64, words: usize, sum: f32) -> i64 {
        let slack = if words > 1 { self.slack } else { 0.0 };
        let bm25 = self.scorer.bm25_at_most(sum + slack);
        points.saturating_add(bm25).saturating_mul(self.table_weight)
    }

    /// What counts beside BM25; the sum is not asked for.
    pub fn points(&self, known: DocumentFacts<'_>) -> i64 {
        let words = known.words as u32;
        let (runs, occurrences) = match self.contributors.window {
            // Of each group a place is left out of those behind it.
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
        self.scorer.at_most(&Most { fields, runs, longest: known.longest, occurrences })
    }
}

/// What a term is that is one keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    /// Of letters and digits alone.
    Plain,
    /// Of others too.
    Other,
}
