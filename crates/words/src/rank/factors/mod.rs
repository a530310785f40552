//! The ranking factors of a document, for ranking expressions and `PACKEDFACTORS()`.
//!
//! The hits are read once, in the order of their places; each factor keeps the state it needs. The reference is
//! Sphinx 2.2.11, including its oddities.

mod closeness;
mod collector;
mod gaps;
mod longest;
mod order;
mod window;
mod words;

use std::fmt;

pub(super) use collector::{Collector, OptionalFactors};
pub use words::QueryWord;

/// The factors of one field of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FieldFactors {
    /// The longest run of words in query order.
    pub lcs: u8,
    /// The number of hits.
    pub hit_count: u32,
    /// The distinct words, one bit each; only their number is public.
    words: u32,
    /// The sum of the idf of all hits.
    pub tf_idf: f32,
    /// The least idf.
    pub min_idf: f32,
    /// The greatest idf.
    pub max_idf: f32,
    /// The sum of the idf of distinct words.
    pub sum_idf: f32,
    /// The position of the first hit.
    pub min_hit_pos: u32,
    /// The position where the longest run begins.
    pub min_best_span_pos: i32,
    /// Whether the field equals the query.
    pub exact_hit: bool,
    /// Whether all words of the query occur in its order.
    pub exact_order: bool,
    /// The most hits within a window.
    pub max_window_hits: u32,
    /// The fewest other words between query words.
    pub min_gaps: i32,
    /// The longest run of words that are adjacent in the query and in the field.
    pub lccs: u8,
    /// The sum of the idf of that run.
    pub wlccs: f32,
    /// How close the words are to each other.
    pub atc: f32,
}

impl FieldFactors {
    /// The number of distinct words.
    pub fn word_count(&self) -> u32 {
        self.words.count_ones()
    }
}

/// The factors of one word of the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WordFactors {
    /// The position of the word in the query, from 0.
    pub number: usize,
    /// The number of its hits in the document.
    pub tf: u32,
    /// The idf of the word.
    pub idf: f32,
}

/// All factors of a document. Its text form is that of `PACKEDFACTORS()`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors {
    /// BM25 in thousandths.
    pub bm25: i32,
    /// `bm25a` with the parameters of the expression.
    pub bm25a: f32,
    /// The first 32 matched fields, one bit each.
    pub field_mask: u32,
    /// The number of distinct words.
    pub doc_word_count: u32,
    /// The fields with hits, by number.
    pub fields: Vec<(usize, FieldFactors)>,
    /// The words of the query.
    pub words: Vec<WordFactors>,
}

/// Formats a real like C's `%f`.
struct Six(f32);

impl fmt::Display for Six {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = f64::from(self.0);
        match value.is_nan() {
            true => to.write_str(if value.is_sign_negative() { "-nan" } else { "nan" }),
            false => write!(to, "{value:.6}"),
        }
    }
}

/// The two text forms of factors.
struct Style {
    /// The text before a name, and the text between the name and its value.
    name: (&'static str, &'static str),
}

const TEXT: Style = Style { name: ("", "=") };
const JSON: Style = Style { name: ("\"", "\":") };

impl FieldFactors {
    fn write(&self, to: &mut fmt::Formatter<'_>, style: &Style) -> fmt::Result {
        let (before, behind) = style.name;
        let mut separator = "";
        let mut pair = |name: &str, value: &dyn fmt::Display| {
            let written = write!(to, "{separator}{before}{name}{behind}{value}");
            separator = ", ";
            written
        };
        pair("lcs", &self.lcs)?;
        pair("hit_count", &self.hit_count)?;
        pair("word_count", &self.word_count())?;
        pair("tf_idf", &Six(self.tf_idf))?;
        pair("min_idf", &Six(self.min_idf))?;
        pair("max_idf", &Six(self.max_idf))?;
        pair("sum_idf", &Six(self.sum_idf))?;
        pair("min_hit_pos", &self.min_hit_pos)?;
        pair("min_best_span_pos", &self.min_best_span_pos)?;
        pair("exact_hit", &u8::from(self.exact_hit))?;
        pair("max_window_hits", &self.max_window_hits)?;
        pair("min_gaps", &self.min_gaps)?;
        pair("exact_order", &u8::from(self.exact_order))?;
        pair("lccs", &self.lccs)?;
        pair("wlccs", &Six(self.wlccs))?;
        pair("atc", &Six(self.atc))
    }
}

impl fmt::Display for Factors {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bm25, bm25a, field_mask, doc_word_count, fields, words } = self;
        write!(to, "bm25={bm25}, bm25a={}, field_mask={field_mask}, ", Six(*bm25a))?;
        write!(to, "doc_word_count={doc_word_count}")?;
        for (number, field) in fields {
            write!(to, ", field{number}=(")?;
            field.write(to, &TEXT)?;
            to.write_str(")")?;
        }
        for WordFactors { number, tf, idf } in words {
            write!(to, ", word{number}=(tf={tf}, idf={})", Six(*idf))?;
        }
        Ok(())
    }
}

impl Factors {
    /// The text form of `PACKEDFACTORS({json=1})`.
    pub fn to_json(&self) -> String {
        Json(self).to_string()
    }
}

struct Json<'f>(&'f Factors);

impl fmt::Display for Json<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Factors { bm25, bm25a, field_mask, doc_word_count, fields, words } = self.0;
        write!(to, "{{\"bm25\":{bm25}, \"bm25a\":{}, ", Six(*bm25a))?;
        write!(to, "\"field_mask\":{field_mask}, \"doc_word_count\":{doc_word_count}, ")?;
        to.write_str("\"fields\":[")?;
        for (place, (number, field)) in fields.iter().enumerate() {
            write!(to, "{}{{\"field\":{number}, ", if place > 0 { ", " } else { "" })?;
            field.write(to, &JSON)?;
            to.write_str("}")?;
        }
        to.write_str("], \"words\":[")?;
        for (place, WordFactors { tf, idf, .. }) in words.iter().enumerate() {
            let separator = if place > 0 { ", " } else { "" };
            write!(to, "{separator}{{\"tf\":{tf}, \"idf\":{}}}", Six(*idf))?;
        }
        to.write_str("]}")
    }
}
