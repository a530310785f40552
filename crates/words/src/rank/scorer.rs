//! Computes the weights of documents.

use super::{
    Ranker,
    factors::Factors,
    formula::{Formula, Row},
    query::Query,
    runs::Runs,
};
use crate::hits::{Found, Hit};

/// The parts of a match that a ranker reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Whether it reads the matched fields.
    pub fields: bool,
    /// Whether it reads the hits.
    pub hits: bool,
}

/// Upper bounds on the matches of a document, from which an upper bound of its weight follows.
#[derive(Clone, Copy, Debug)]
pub struct HitBounds<'m> {
    /// For each field: the number of words in a run, counted by query position.
    pub fields: &'m [u32],
    /// The number of words in the runs of all fields together.
    pub runs: u32,
    /// The number of words in the longest run of any field.
    pub longest: u32,
    /// The number of occurrences.
    pub occurrences: u32,
}

/// Computes the weights of the documents that a query finds.
#[derive(Clone, Debug)]
pub struct Scorer {
    ranker: Ranker,
    query: Query,
    runs: Runs,
    /// The weight of each further word of a run for `matchany`.
    run_weight: i32,
    /// Whether `run_weight` overflowed.
    wraps: bool,
    /// The greatest field weight.
    heaviest: i32,
    formula: Option<Formula>,
}

impl Scorer {
    /// A scorer for the documents of one query.
    pub fn new(ranker: Ranker, query: Query) -> Self {
        let repeats = matches!(ranker, Ranker::ProximityBm25 | Ranker::Proximity);
        let runs = Runs::new(query.field_weights.len(), repeats && query.has_repeats);
        let sum = query.field_weights.iter().fold(0i32, |sum, weight| sum.wrapping_add(*weight));
        let run_weight = sum.wrapping_mul(query.keywords as i32);
        let exact: i64 = query.field_weights.iter().map(|&weight| i64::from(weight)).sum();
        let wraps = exact.saturating_mul(query.keywords as i64) != i64::from(run_weight);
        let formula = match &ranker {
            Ranker::Expression(expression) => {
                let folds = query.has_repeats;
                Some(Formula::new(expression.clone(), &query, folds, run_weight))
            }
            Ranker::Export(expression) => {
                Some(Formula::new(expression.clone(), &query, false, run_weight))
            }
            _ => None,
        };
        let heaviest = query.field_weights.iter().copied().max().unwrap_or(1);
        Self { ranker, query, runs, run_weight, wraps, heaviest, formula }
    }

    /// Keeps the factors of each document, for [`Scorer::factors`], if the ranker is an expression; `atc` only if
    /// `has_closeness`. Hits are needed then.
    #[must_use]
    pub fn with_factors(mut self, has_closeness: bool) -> Self {
        let folds = self.query.has_repeats && matches!(self.ranker, Ranker::Expression(_));
        if let Some(formula) = &mut self.formula {
            formula.keep_factors(&self.query, folds, has_closeness);
        }
        self
    }

    /// The factors of the last document, if they are kept.
    pub fn factors(&self) -> Option<Factors> {
        self.formula.as_ref().and_then(Formula::factors)
    }

    /// Whether all documents that a query finds weigh 1.
    pub fn is_even(&self) -> bool {
        matches!(self.ranker, Ranker::None)
    }

    /// The parts of a match that [`Scorer::weight`] reads.
    pub fn needs(&self) -> Needs {
        match self.ranker {
            Ranker::None => Needs { fields: false, hits: false },
            Ranker::Bm25 => Needs { fields: self.has_fields(), hits: false },
            Ranker::Expression(_) | Ranker::Export(_) => {
                let hits = self.formula.as_ref().is_some_and(Formula::needs_hits);
                Needs { fields: false, hits }
            }
            Ranker::ProximityBm25 | Ranker::Proximity if self.query.is_single() => {
                Needs { fields: self.has_fields(), hits: false }
            }
            _ => Needs { fields: false, hits: true },
        }
    }

    /// An upper bound of the weight of documents within these bounds, without BM25 ([`Scorer::bm25_at_most`]).
    pub fn at_most(&self, bounds: &HitBounds<'_>) -> i64 {
        let heaviest = i64::from(self.heaviest);
        let weighed = || self.query.field_weights.iter().zip(bounds.fields);
        let sum = |of: &dyn Fn(u32) -> i64| {
            weighed().fold(0i64, |sum, (&weight, &words)| {
                sum.saturating_add(i64::from(weight).saturating_mul(of(words)))
            })
        };
        let longest = bounds.longest;
        let of_runs = || sum(&|words| i64::from(words.min(longest)));
        let runs = || of_runs().min(heaviest.saturating_mul(bounds.runs.into()));
        let fields = || {
            let matched = sum(&|words| i64::from(words > 0));
            matched.min(heaviest.saturating_mul(bounds.occurrences.into()))
        };
        // A value that overflowed is no bound.
        let most_run_weight = if self.wraps { i64::MAX } else { self.run_weight.into() };
        let by_thousands = |points: i64| points.saturating_mul(1000);
        match self.ranker {
            Ranker::None => 1,
            Ranker::Bm25 => by_thousands(fields()),
            Ranker::ProximityBm25 => by_thousands(runs()),
            Ranker::Proximity => runs(),
            Ranker::WordCount => heaviest.saturating_mul(bounds.occurrences.into()),
            Ranker::FieldMask => i64::from(u32::MAX),
            Ranker::MatchAny => sum(&|words| {
                let words = words.min(bounds.runs);
                let run = i64::from(words.min(longest));
                let more = (run - 1).max(0).saturating_mul(most_run_weight);
                i64::from(words).saturating_add(more)
            }),
            Ranker::Sph04 => {
                by_thousands(runs().saturating_mul(4).saturating_add(fields().saturating_mul(3)))
            }
            Ranker::Expression(_) | Ranker::Export(_) => i64::MAX,
        }
    }

    /// An upper bound of what BM25 adds to a weight, given an upper bound of its sum, in whatever order that was
    /// added.
    #[inline]
    pub fn bm25_at_most(&self, sum: f32) -> i64 {
        match self.ranker {
            Ranker::Bm25 | Ranker::ProximityBm25 | Ranker::Sph04 => ((sum + 0.5) * 1000.0) as i64,
            _ => 0,
        }
    }

    /// Whether shifts bound the runs: a run in a field has no more words than occur there at their
    /// query positions plus one common distance. `are_apart` says that no two words of the query
    /// can be at one place, from which a run could continue with either.
    pub fn runs_are_shifts(&self, are_apart: bool) -> bool {
        match self.ranker {
            // With repeated words only that many positions are distinguished.
            Ranker::ProximityBm25 | Ranker::Proximity if self.query.has_repeats => {
                self.query.last_position < 32
            }
            Ranker::ProximityBm25 | Ranker::Proximity => are_apart && !self.query.is_single(),
            Ranker::MatchAny | Ranker::Sph04 => are_apart,
            _ => false,
        }
    }

    /// Whether only the lengths of runs count, of words each of which stands once in the query.
    pub fn runs_are_groups(&self) -> bool {
        let has_runs = matches!(self.ranker, Ranker::ProximityBm25 | Ranker::Proximity);
        has_runs && !self.query.has_repeats && !self.query.is_single()
    }

    /// Whether [`Scorer::at_most`] depends on the fields in which words occur.
    pub fn tells_fields_apart(&self) -> bool {
        use Ranker::{Bm25, MatchAny, Proximity, ProximityBm25, Sph04};
        let by_fields = matches!(self.ranker, Bm25 | MatchAny | Proximity | ProximityBm25 | Sph04);
        by_fields && self.has_fields()
    }

    /// Computes the weight of a document. Expressions may read its row.
    pub fn weight(&mut self, found: &Found, hits: &[Hit], row: &dyn Row) -> i32 {
        match self.ranker {
            Ranker::None => 1,
            Ranker::Bm25 => thousands(self.of_fields(found.fields), found.sum),
            // The longest run of a single word is 1 in each field that has it.
            Ranker::ProximityBm25 if self.query.is_single() => {
                thousands(self.of_fields(found.fields), found.sum)
            }
            Ranker::ProximityBm25 => thousands(self.of_runs(hits), found.sum),
            Ranker::Proximity if self.query.is_single() => self.of_fields(found.fields),
            Ranker::Proximity => self.of_runs(hits),
            Ranker::WordCount => self.of_words(hits),
            Ranker::FieldMask => hits.iter().fold(0, |mask, hit| mask | bit(hit)) as i32,
            Ranker::MatchAny => self.of_any(hits),
            Ranker::Sph04 => thousands(self.of_heads(hits), found.sum),
            Ranker::Expression(_) | Ranker::Export(_) => {
                let bm25 = thousands(0, found.sum);
                self.formula.as_mut().map_or(0, |formula| formula.weight(bm25, hits, row))
            }
        }
    }

    fn field_weight(&self, field: usize) -> i32 {
        self.query.field_weights.get(field).copied().unwrap_or(1)
    }

    /// Whether there are several fields (or none) to distinguish.
    fn has_fields(&self) -> bool {
        self.query.field_weights.len() != 1
    }

    fn of_fields(&self, fields: u32) -> i32 {
        if !self.has_fields() {
            return self.field_weight(0);
        }
        let matched = (0..32).filter(|field| fields >> field & 1 == 1);
        sum(matched.map(|field| self.field_weight(field)))
    }

    fn of_runs(&mut self, hits: &[Hit]) -> i32 {
        let weights = &self.query.field_weights;
        let runs = self.runs.of(hits).iter().zip(weights);
        sum(runs.map(|(&run, &weight)| i32::from(run).wrapping_mul(weight)))
    }

    fn of_words(&self, hits: &[Hit]) -> i32 {
        sum(hits.iter().map(|hit| self.field_weight(usize::from(hit.field()))))
    }

    fn of_any(&mut self, hits: &[Hit]) -> i32 {
        let mut masks = vec![0u8; self.query.field_weights.len()];
        for hit in hits {
            if let Some(mask) = masks.get_mut(usize::from(hit.field())) {
                *mask |= 1u8.checked_shl(hit.query_position.wrapping_sub(1)).unwrap_or(0);
            }
        }
        let run_weight = self.run_weight;
        let runs = self.runs.of(hits).iter().zip(&masks).zip(&self.query.field_weights);
        sum(runs.filter(|((run, _), _)| **run > 0).map(|((&run, mask), &weight)| {
            let more = (i32::from(run) - 1).wrapping_mul(run_weight);
            (mask.count_ones() as i32).wrapping_add(more).wrapping_mul(weight)
        }))
    }

    /// Runs, with a bonus for fields that begin with the query or equal it.
    fn of_heads(&self, hits: &[Hit]) -> i32 {
        let mut fields = vec![Head::default(); self.query.field_weights.len()];
        let mut run = Run::default();
        for hit in hits {
            if let Some(field) = fields.get_mut(usize::from(hit.field())) {
                run.follow(hit, self.query.last_position, field);
            }
        }
        let weighed = fields.iter().zip(&self.query.field_weights);
        sum(weighed.map(|(field, &weight)| {
            let points = 4 * i32::from(field.longest)
                + 2 * i32::from(field.is_head)
                + i32::from(field.is_exact);
            points.wrapping_mul(weight)
        }))
    }
}

/// The state of `sph04` for a field.
#[derive(Clone, Copy, Default)]
struct Head {
    longest: u8,
    is_head: bool,
    is_exact: bool,
}

/// The current run of `sph04`.
#[derive(Default)]
struct Run {
    length: u8,
    expected: Option<i64>,
    least: u32,
}

impl Run {
    fn follow(&mut self, hit: &Hit, last_position: u32, field: &mut Head) {
        let shift = i64::from(hit.at) - i64::from(hit.query_position);
        let position = hit.position();
        if self.expected == Some(shift) && hit.at >= self.least {
            self.length = self.length.wrapping_add(hit.weight as u8);
            let is_last = hit.query_position == last_position && position == last_position;
            field.is_exact |= hit.is_last && is_last;
        } else {
            field.is_exact |= position == 1 && hit.is_last && last_position == 1;
            field.is_head |= position == 1;
            if hit.at >= self.least {
                self.length = hit.weight as u8;
            }
        }
        field.longest = field.longest.max(self.length);
        self.expected = Some(shift + i64::from(hit.span) - 1);
        self.least = hit.at + 1;
    }
}

fn bit(hit: &Hit) -> u32 {
    1u32.checked_shl(u32::from(hit.field())).unwrap_or(0)
}

fn sum(weights: impl Iterator<Item = i32>) -> i32 {
    weights.fold(0, i32::wrapping_add)
}

/// Thousands for the points, and BM25 in thousandths.
fn thousands(points: i32, sum: f32) -> i32 {
    points.wrapping_mul(1000).wrapping_add(((sum + 0.5) * 1000.0) as i32)
}
