//! Random expressions that rank.

use crate::{corpus::Corpus, random::Random};

const DOCUMENT_NUMBERS: [&str; 5] =
    ["bm25", "max_lcs", "field_mask", "query_word_count", "doc_word_count"];
const FIELD_NUMBERS: [&str; 11] = [
    "lcs",
    "user_weight",
    "hit_count",
    "word_count",
    "min_hit_pos",
    "min_best_span_pos",
    "exact_hit",
    "exact_order",
    "lccs",
    "min_gaps",
    "max_window_hits",
];
const FIELD_REALS: [&str; 6] = ["tf_idf", "min_idf", "max_idf", "sum_idf", "wlccs", "atc"];
const LITERALS: [&str; 7] = ["0", "1", "2", "3", "10", "0.5", "2.75"];

/// The factors an expression may have around it.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Document,
    Field,
}

/// A ranking expression that Sphinx takes.
pub fn expression(random: &mut Random, corpus: &Corpus) -> String {
    let mut writer = Writer { random, corpus };
    match writer.random.below(4) {
        // Each factor for itself now and then: what it is wrong about shows best alone.
        0 => writer.factor(Place::Document),
        1 => format!("sum({})", writer.factor(Place::Field)),
        _ => writer.value(Place::Document, 3),
    }
}

struct Writer<'a> {
    random: &'a mut Random,
    corpus: &'a Corpus,
}

impl Writer<'_> {
    fn value(&mut self, place: Place, depth: usize) -> String {
        if depth == 0 || self.random.once_in(4) {
            return match self.random.below(4) {
                0 => self.random.pick(&LITERALS).to_owned(),
                _ => self.factor(place),
            };
        }
        let (one, two) = (self.value(place, depth - 1), self.value(place, depth - 1));
        match self.random.below(14) {
            0..=2 => format!("({one}+{two})"),
            3 => format!("({one}-{two})"),
            4 => format!("{one}*{}", self.random.pick(&LITERALS)),
            5 => format!("({one})/({two})"),
            6 => format!("min({one},{two})"),
            7 => format!("max({one},{two})"),
            8 => format!("if({one}>{two},{one},{})", self.factor(place)),
            9 => format!("abs({one})"),
            10 => format!("1000*ln(1+abs({one}))"),
            11 => format!("100*sqrt(abs({one}))"),
            _ if place == Place::Document => {
                let fold = self.random.pick(&["sum", "sum", "top"]);
                format!("{fold}({})", self.value(Place::Field, depth - 1))
            }
            _ => format!("({one}+{two})"),
        }
    }

    /// Real ones are multiplied, so that their last bits show.
    fn factor(&mut self, place: Place) -> String {
        if place == Place::Field {
            return self.field_factor();
        }
        match self.random.below(12) {
            0 | 1 => format!("100000*{}", self.bm25a()),
            2 => format!("100000*{}", self.bm25f()),
            3..=6 => self.random.pick(&DOCUMENT_NUMBERS).to_owned(),
            _ => {
                let fold = self.random.pick(&["sum", "sum", "top"]);
                format!("{fold}({})", self.field_factor())
            }
        }
    }

    fn field_factor(&mut self) -> String {
        if self.random.once_in(3) {
            return format!("100000*{}", self.random.pick(&FIELD_REALS));
        }
        match self.random.pick(&FIELD_NUMBERS) {
            "max_window_hits" => format!("max_window_hits({})", self.random.below(12)),
            other => other.to_owned(),
        }
    }

    fn bm25a(&mut self) -> String {
        let saturation = self.random.pick(&["1.2", "2.0", "0.5"]);
        format!("bm25a({saturation},{})", self.random.pick(&["0.75", "0.0", "1.0", "0.3"]))
    }

    fn bm25f(&mut self) -> String {
        let parameters = self.random.pick(&["1.2,0.75", "2.0,0.0", "0.5,1.0"]);
        let mut weights = Vec::new();
        for field in &self.corpus.fields {
            if self.random.once_in(2) {
                weights.push(format!("{field}={}", self.random.between(1, 9)));
            }
        }
        match weights.is_empty() {
            true => format!("bm25f({parameters})"),
            false => format!("bm25f({parameters},{{{}}})", weights.join(",")),
        }
    }
}
