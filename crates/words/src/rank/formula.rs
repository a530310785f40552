//! Computes weights by a ranking expression.

use std::sync::Arc;

use super::{
    expression::{Attribute, Expression, Factor, FactorValue, Reads, Values},
    factors::{Collector, Factors, OptionalFactors},
    query::Query,
};
use crate::hits::Hit;

/// What an expression reads of a row besides its hits.
pub trait Row {
    /// The number of keywords in a field.
    fn length(&self, field: usize) -> u32;

    /// The value of the column with this number (see [`super::Attributes`]).
    fn attribute(&self, number: usize) -> Attribute;
}

/// An unknown row: fields of length 0, and columns with the value 0.
impl Row for () {
    fn length(&self, _field: usize) -> u32 {
        0
    }

    fn attribute(&self, _number: usize) -> Attribute {
        Attribute::Integer(0)
    }
}

/// The parameters of `bm25a` for expressions without one.
const BM25A: (f32, f32) = (1.2, 0.75);

/// An expression, applied to the documents of a query.
#[derive(Clone, Debug)]
pub(super) struct Formula {
    expression: Arc<Expression>,
    reads: Reads,
    collector: Collector,
    field_weights: Vec<i32>,
    /// The greatest possible sum of weighted runs.
    max_lcs: i32,
    /// The mean length of documents in keywords.
    mean_length: f32,
    /// For each `bm25f` the weights of fields, and the mean weighted length.
    weighted: Vec<(Vec<i32>, f32)>,
    keeps_factors: bool,
    bm25: i32,
    bm25a: f32,
}

impl Formula {
    /// `folds`: whether repetitions of a word in the query count as one word.
    pub fn new(expression: Arc<Expression>, query: &Query, folds: bool, max_lcs: i32) -> Self {
        let reads = expression.reads();
        let collector = collector(reads, query, folds, reads.closeness);
        let weights = expression.weights();
        let weighted = weights.into_iter().map(|given| weights_of(given, query)).collect();
        let mean_length = mean(query, |total| total.cast_signed());
        Self {
            expression,
            reads,
            collector,
            field_weights: query.field_weights.clone(),
            max_lcs,
            mean_length,
            weighted,
            keeps_factors: false,
            bm25: 0,
            bm25a: 0.0,
        }
    }

    /// Keeps all factors of each document; `atc` only if `has_closeness`.
    pub fn keep_factors(&mut self, query: &Query, folds: bool, has_closeness: bool) {
        self.keeps_factors = true;
        let has_closeness = has_closeness || self.reads.closeness;
        self.collector = collector(self.reads, query, folds, has_closeness);
    }

    pub fn needs_hits(&self) -> bool {
        self.reads.hits || self.keeps_factors
    }

    /// Computes the weight of a document; `bm25` is its BM25 in thousandths.
    pub fn weight(&mut self, bm25: i32, hits: &[Hit], row: &dyn Row) -> i32 {
        self.bm25 = bm25;
        if self.needs_hits() {
            self.collector.read(hits);
        }
        if self.reads.bm25a.is_some() || self.keeps_factors {
            let lengths = (0..self.collector.fields()).map(|field| row.length(field) as f32);
            let length = lengths.fold(0.0, |sum, length| sum + length);
            let parameters = self.reads.bm25a.unwrap_or(BM25A);
            self.bm25a = self.collector.bm25a(parameters, length, self.mean_length);
        }
        self.expression.weight(&FormulaValues { formula: self, row })
    }

    /// The factors of the last document, if they are kept.
    pub fn factors(&self) -> Option<Factors> {
        self.keeps_factors.then(|| self.collector.factors(self.bm25, self.bm25a))
    }
}

fn collector(reads: Reads, query: &Query, folds: bool, has_closeness: bool) -> Collector {
    let wanted = OptionalFactors {
        closeness: has_closeness,
        field_frequencies: reads.field_frequencies,
        window: reads.window,
    };
    let fields = query.field_weights.len();
    Collector::new(&query.words, query.last_position, fields, folds, wanted)
}

/// The mean per document of the fields' totals, each mapped by `of`.
fn mean(query: &Query, mut of: impl FnMut(u64) -> i64) -> f32 {
    let sum = query.totals.iter().fold(0.0_f32, |sum, &total| sum + of(total) as f32);
    sum / query.documents as f32
}

/// The weights that a `bm25f` gives to fields by name, and the mean weighted length.
fn weights_of(given: &[(String, i32)], query: &Query) -> (Vec<i32>, f32) {
    let weight = |name: &String| {
        let mut named = given.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        named.next_back().map_or(1, |(_, weight)| *weight)
    };
    let weights: Vec<i32> = query.field_names.iter().map(weight).collect();
    let mut each = weights.iter();
    let mean = mean(query, |total| {
        let weight = each.next().copied().unwrap_or(1);
        total.cast_signed().wrapping_mul(weight.into())
    });
    (weights, mean)
}

/// A document, as the expression reads it.
struct FormulaValues<'d> {
    formula: &'d Formula,
    row: &'d dyn Row,
}

impl Values for FormulaValues<'_> {
    fn factor(&self, factor: Factor, field: usize) -> FactorValue {
        use FactorValue::{Real, Signed, Unsigned};
        let collector = &self.formula.collector;
        let of = collector.field(field);
        match factor {
            Factor::Bm25 => Unsigned(self.formula.bm25.cast_unsigned()),
            Factor::MaxLcs => Signed(self.formula.max_lcs),
            Factor::FieldMask => Unsigned(collector.field_mask()),
            Factor::QueryWordCount => Unsigned(collector.query_word_count()),
            Factor::DocWordCount => Unsigned(collector.doc_word_count()),
            Factor::Lcs => Unsigned(of.lcs.into()),
            Factor::UserWeight => {
                Signed(self.formula.field_weights.get(field).copied().unwrap_or(1))
            }
            Factor::HitCount => Unsigned(of.hit_count),
            Factor::WordCount => Unsigned(of.word_count()),
            Factor::TfIdf => Real(of.tf_idf),
            Factor::MinIdf => Real(of.min_idf),
            Factor::MaxIdf => Real(of.max_idf),
            Factor::SumIdf => Real(of.sum_idf),
            Factor::MinHitPosition => Unsigned(of.min_hit_pos),
            Factor::MinBestSpanPosition => Signed(of.min_best_span_pos),
            Factor::ExactHit => Unsigned(of.exact_hit.into()),
            Factor::ExactOrder => Unsigned(of.exact_order.into()),
            Factor::MinGaps => Signed(of.min_gaps),
            Factor::Lccs => Unsigned(of.lccs.into()),
            Factor::Wlccs => Real(of.wlccs),
            Factor::Closeness => Real(of.atc),
            Factor::MaxWindowHits => Unsigned(of.max_window_hits),
            Factor::Bm25a => Real(self.formula.bm25a),
        }
    }

    fn bm25f(&self, number: usize, parameters: (f32, f32)) -> f32 {
        let formula = self.formula;
        let Some((weights, mean)) = formula.weighted.get(number) else { return 0.0 };
        let lengths = weights.iter().enumerate().map(|(field, &weight)| {
            i64::from(self.row.length(field)).wrapping_mul(weight.into()) as f32
        });
        let length = lengths.fold(0.0, |sum, length| sum + length);
        formula.collector.bm25f(parameters, weights, length, *mean)
    }

    fn fields(&self) -> usize {
        self.formula.collector.fields()
    }

    fn is_matched(&self, field: usize) -> bool {
        self.formula.collector.is_matched(field)
    }

    fn attribute(&self, number: usize) -> Attribute {
        self.row.attribute(number)
    }
}
