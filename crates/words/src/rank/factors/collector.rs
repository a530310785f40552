//! Computes the factors of documents from their hits, one document after the other.

use super::{
    Factors, FieldFactors, QueryWord, WordFactors,
    closeness::Closeness,
    gaps::Gaps,
    longest::{Chain, LongestRun},
    order::Order,
    window::HitWindow,
    words::FactorWords,
};
use crate::hits::Hit;

/// Factors that are computed only on request, because of their cost.
#[derive(Clone, Copy, Debug)]
pub(in crate::rank) struct OptionalFactors {
    /// `atc`.
    pub closeness: bool,
    /// The occurrences of each word in each field.
    pub field_frequencies: bool,
    /// The width of the window of `max_window_hits`.
    pub window: i32,
}

/// The factors of a document. Cost: linear in its hits; for `atc` also in the neighbours of each hit.
#[derive(Clone, Debug)]
pub(in crate::rank) struct Collector {
    words: FactorWords,
    /// Whether repetitions of a word in the query count as one word.
    folds: bool,
    fields: Vec<FieldFactors>,
    /// Which fields have hits, and their numbers.
    is_matched: Vec<bool>,
    matched: Vec<usize>,
    /// The occurrences of each word in the document, and the words that occur.
    frequencies: Vec<u32>,
    found: Vec<usize>,
    /// The occurrences of each word in each field: all words of field 0, then of field 1, and so
    /// on.
    field_frequencies: Vec<u32>,
    /// The distinct words, one bit each.
    word_mask: u32,
    /// The last place at which each word was counted.
    counted_at: Vec<Option<u32>>,
    any_counted_at: Option<u32>,
    run: LongestRun,
    chain: Chain,
    order: Order,
    window: HitWindow,
    gaps: Gaps,
    closeness: Option<Closeness>,
}

impl Collector {
    pub fn new(
        words: &[QueryWord],
        last: u32,
        fields: usize,
        folds: bool,
        wanted: OptionalFactors,
    ) -> Self {
        let words = FactorWords::new(words, last, folds);
        let positions = words.positions();
        let has_closeness = wanted.closeness && words.count > 1;
        let table = if wanted.field_frequencies { positions * fields } else { 0 };
        Self {
            folds,
            fields: vec![FieldFactors::default(); fields],
            is_matched: vec![false; fields],
            matched: Vec::new(),
            frequencies: vec![0; positions],
            found: Vec::new(),
            field_frequencies: vec![0; table],
            word_mask: 0,
            counted_at: vec![None; positions],
            any_counted_at: None,
            run: LongestRun::default(),
            chain: Chain::default(),
            order: Order::default(),
            window: HitWindow::new(wanted.window),
            gaps: Gaps::new(words.count, positions),
            closeness: has_closeness.then(|| Closeness::new(positions)),
            words,
        }
    }

    /// Reads the hits of a document.
    pub fn read(&mut self, hits: &[Hit]) {
        self.clear();
        hits.iter().for_each(|hit| self.follow(hit));
        if let Some(closeness) = &mut self.closeness {
            closeness.end_field(&self.words, &mut self.fields);
        }
        self.matched.sort_unstable();
    }

    fn clear(&mut self) {
        for field in self.matched.drain(..) {
            self.fields[field] = FieldFactors::default();
            self.is_matched[field] = false;
        }
        let positions = self.words.positions();
        for word in self.found.drain(..) {
            self.frequencies[word] = 0;
            let rows = self.field_frequencies.iter_mut().skip(word).step_by(positions.max(1));
            rows.for_each(|frequency| *frequency = 0);
        }
        if self.folds {
            self.counted_at.fill(None);
            self.any_counted_at = None;
        }
        self.word_mask = 0;
        self.run = LongestRun::default();
        self.chain = Chain::default();
        self.order = Order::default();
        self.window.clear();
        self.gaps.clear();
        if let Some(closeness) = &mut self.closeness {
            closeness.clear();
        }
    }

    fn follow(&mut self, hit: &Hit) {
        let number = usize::from(hit.field());
        if number >= self.fields.len() {
            return;
        }
        if let Some(closeness) = &mut self.closeness {
            closeness.follow(hit, &self.words, &mut self.fields);
        }
        let field = &mut self.fields[number];
        if !std::mem::replace(&mut self.is_matched[number], true) {
            self.matched.push(number);
        }
        self.run.follow(hit, &self.words, self.folds, field);
        self.chain.follow(hit, &self.words, self.folds, field);
        if field.min_hit_pos == 0 {
            field.min_hit_pos = hit.position();
        }
        self.window.follow(hit, field);
        self.order.follow(hit, &self.words, field);
        let counts_as = self.counts_as(hit);
        if let Some(word) = counts_as {
            self.count(word, number);
        }
        self.count_others(hit, number);
        if let Some(word) = counts_as
            && let Some(field) = self.fields.get_mut(number)
        {
            self.gaps.follow(hit, word, field);
        }
    }

    /// The word that a hit counts for. If repetitions count as one word, each place counts once.
    fn counts_as(&mut self, hit: &Hit) -> Option<usize> {
        let position = hit.query_position as usize;
        if !self.words.is_word(position) {
            return None;
        }
        if !self.folds {
            return Some(position);
        }
        let word = self.words.counts_as(position)?;
        let place = Some(place(hit));
        let is_new = self.counted_at[word] != place && self.any_counted_at != place;
        self.counted_at[word] = place;
        self.any_counted_at = place;
        is_new.then_some(word)
    }

    /// Counts the other words of a hit that stands for several.
    fn count_others(&mut self, hit: &Hit, field: usize) {
        if hit.span <= 1 {
            return;
        }
        let place = Some(place(hit));
        for step in 1..32 {
            if hit.others >> step & 1 == 0 {
                continue;
            }
            let mut word = hit.query_position as usize + step;
            if self.folds {
                let Some(first) = self.words.counts_as(word) else { continue };
                word = first;
                if self.counted_at[word] == place {
                    continue;
                }
                self.counted_at[word] = place;
            }
            self.count(word, field);
        }
    }

    /// Counts an occurrence of a word in a field.
    fn count(&mut self, word: usize, number: usize) {
        let positions = self.words.positions();
        let Some(frequency) = self.frequencies.get_mut(word) else { return };
        if *frequency == 0 {
            self.found.push(word);
        }
        *frequency += 1;
        if let Some(frequency) = self.field_frequencies.get_mut(number * positions + word) {
            *frequency += 1;
        }
        let idf = self.words.idf(word);
        let bit = 1u32.wrapping_shl(word as u32);
        let Some(field) = self.fields.get_mut(number) else { return };
        if field.words & bit == 0 {
            field.sum_idf += idf;
        }
        if field.hit_count == 0 || idf < field.min_idf {
            field.min_idf = idf;
        }
        if field.hit_count == 0 || idf > field.max_idf {
            field.max_idf = idf;
        }
        field.hit_count += 1;
        field.words |= bit;
        field.tf_idf += idf;
        self.word_mask |= bit;
    }

    /// The factors of a field.
    pub fn field(&self, number: usize) -> FieldFactors {
        self.fields.get(number).copied().unwrap_or_default()
    }

    /// The number of fields.
    pub fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Whether the field has hits.
    pub fn is_matched(&self, field: usize) -> bool {
        self.is_matched.get(field).copied().unwrap_or_default()
    }

    /// The first 32 fields that have hits, one bit each.
    pub fn field_mask(&self) -> u32 {
        let low = self.matched.iter().filter(|&&field| field < 32);
        low.fold(0, |mask, field| mask | 1 << field)
    }

    /// The number of distinct words of the query.
    pub fn query_word_count(&self) -> u32 {
        self.words.distinct
    }

    /// The number of distinct words in the document.
    pub fn doc_word_count(&self) -> u32 {
        self.word_mask.count_ones()
    }

    /// BM25 over counted hits. `length` is the document's length and `mean` the mean length, in keywords.
    pub fn bm25a(&self, parameters: (f32, f32), length: f32, mean: f32) -> f32 {
        let mut sum = 0.0;
        for &word in &self.words.counted {
            let frequency = self.frequencies.get(word).copied().unwrap_or_default() as f32;
            sum += saturated(frequency, parameters, length, mean) * self.words.idf(word);
        }
        sum + 0.5
    }

    /// BM25 with a weight for each field, applied to its hits and its length.
    pub fn bm25f(&self, parameters: (f32, f32), weights: &[i32], length: f32, mean: f32) -> f32 {
        let positions = self.words.positions();
        let mut sum = 0.0;
        for &word in &self.words.counted {
            let mut frequency = 0.0;
            for &field in &self.matched {
                let hits = self.field_frequencies.get(field * positions + word).copied();
                let weight = weights.get(field).copied().unwrap_or(1);
                let hits = hits.unwrap_or_default().cast_signed();
                frequency += hits.wrapping_mul(weight) as f32;
            }
            sum += saturated(frequency, parameters, length, mean) * self.words.idf(word);
        }
        sum + 0.5
    }

    /// All factors.
    pub fn factors(&self, bm25: i32, bm25a: f32) -> Factors {
        let fields = self.matched.iter().map(|&number| (number, self.field(number)));
        let words = self.words.counted.iter().filter(|&&word| word > 0);
        Factors {
            bm25,
            bm25a,
            field_mask: self.field_mask(),
            doc_word_count: self.doc_word_count(),
            fields: fields.filter(|(_, field)| field.hit_count > 0).collect(),
            words: words
                .map(|&word| WordFactors {
                    number: word - 1,
                    tf: self.frequencies.get(word).copied().unwrap_or_default(),
                    idf: self.words.idf(word),
                })
                .collect(),
        }
    }
}

/// The BM25 term of a word before idf: it saturates as the occurrences grow.
fn saturated(frequency: f32, parameters: (f32, f32), length: f32, mean: f32) -> f32 {
    let (saturation, share) = parameters;
    frequency / (frequency + saturation * (1.0 - share + share * length / mean))
}

/// Field and position (23 bits), and a bit for the last position of the field.
fn place(hit: &Hit) -> u32 {
    const END: u32 = 1 << 23;
    hit.at | if hit.is_last { END } else { 0 }
}
