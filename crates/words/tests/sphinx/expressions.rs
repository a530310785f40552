//! Random ranking expressions.

use super::{corpus::Corpus, random::Random};

const DOCUMENT_NUMBERS: [&str; 5] =
    ["bm25", "max_lcs", "field_mask", "query_word_count", "doc_word_count"];
const FIELD_NUMBERS: [&str; 12] = [
    "lcs",
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
const LITERALS: [&str; 9] = ["0", "1", "2", "3", "10", "0.5", "2.75", ".25", "1e3"];
const COMPARISONS: [&str; 6] = ["<", ">", "<=", ">=", "=", "<>"];
const OF_ONE: [&str; 12] = [
    "abs", "ceil", "floor", "sin", "cos", "ln", "log2", "log10", "sqrt", "uint", "double", "bigint",
];
const OF_TWO: [&str; 5] = ["min", "max", "pow", "idiv", "atan2"];
const OF_THREE: [&str; 3] = ["if", "madd", "mul3"];
/// The columns that each index has.
const COLUMNS: [&str; 3] = ["attribute", "share", "large"];

/// Templates around an expression.
#[derive(Clone, Copy, PartialEq)]
enum FactorScope {
    Document,
    Field,
}

/// A random ranking expression; most are valid in Sphinx.
pub fn expression(random: &mut Random, corpus: &Corpus) -> String {
    let mut writer = Writer { random, corpus };
    match writer.random.below(4) {
        // Each factor for itself now and then: what it is wrong about shows best alone.
        0 => writer.factor(FactorScope::Document),
        1 => format!("sum({})", writer.factor(FactorScope::Field)),
        _ => writer.value(FactorScope::Document, 3),
    }
}

struct Writer<'a> {
    random: &'a mut Random,
    corpus: &'a Corpus,
}

impl Writer<'_> {
    fn value(&mut self, place: FactorScope, depth: usize) -> String {
        if depth == 0 || self.random.once_in(4) {
            return match self.random.below(6) {
                0 => self.random.pick(&LITERALS).to_owned(),
                1 => self.random.pick(&COLUMNS).to_owned(),
                _ => self.factor(place),
            };
        }
        let (one, two) = (self.value(place, depth - 1), self.value(place, depth - 1));
        match self.random.below(20) {
            0..=2 => format!("({one}+{two})"),
            3 => format!("({one}-{two})"),
            4 => format!("{one}*{}", self.random.pick(&LITERALS)),
            5 => format!("({one})/({two})"),
            6 => format!("{one}*{two}-{}", self.value(place, depth - 1)),
            7 => format!("-{one}"),
            8 => format!("({one} {} {two})", self.random.pick(&COMPARISONS)),
            9 => format!("{}({one})", self.random.pick(&OF_ONE)),
            10 => format!("{}({one},{two})", self.random.pick(&OF_TWO)),
            11 => {
                let three = self.factor(place);
                format!("{}({one},{two},{three})", self.random.pick(&OF_THREE))
            }
            12 => self.integers(place),
            13 => format!("1000*ln(1+abs({one}))"),
            14 => self.set(&one, &two),
            _ if place == FactorScope::Document => {
                let fold = self.random.pick(&["sum", "sum", "top"]);
                format!("{fold}({})", self.value(FactorScope::Field, depth - 1))
            }
            _ => format!("({one}+{two})"),
        }
    }

    /// An operation on integers only. Reals are refused, but the surrounding expression changes Sphinx's message.
    fn integers(&mut self, place: FactorScope) -> String {
        let (one, two) = (self.integer(place), self.integer(place));
        match self.random.below(6) {
            0 => format!("({one} & {two})"),
            1 => format!("({one} | {two})"),
            2 => format!("({one} and {two} or not {one})"),
            // A remainder by zero makes Sphinx crash.
            3 => format!("({one} % {})", self.random.pick(&["2", "3", "7", "-2"])),
            4 => format!("({one} div {two})"),
            _ => format!("fibonacci({one} % 40)"),
        }
    }

    fn integer(&mut self, place: FactorScope) -> String {
        match place {
            FactorScope::Document => self.random.pick(&["bm25", "attribute", "5"]).to_owned(),
            FactorScope::Field => self.random.pick(&["lcs", "hit_count", "word_count"]).to_owned(),
        }
    }

    fn set(&mut self, one: &str, two: &str) -> String {
        match self.random.below(4) {
            0 => format!("in({one},1,2,-3,500)"),
            1 => format!("in({one},0.5,2)"),
            2 => format!("interval({one},1,{two},30)"),
            _ => format!("bitdot(attribute,{one},{two},10)"),
        }
    }

    /// Reals are multiplied, so that their last bits are visible.
    fn factor(&mut self, place: FactorScope) -> String {
        if place == FactorScope::Field {
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
        let saturation = self.random.pick(&["1.2", "2.0", "0.5", "2", "0"]);
        format!("bm25a({saturation},{})", self.random.pick(&["0.75", "0.0", "1.0", "0.3", "2"]))
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
