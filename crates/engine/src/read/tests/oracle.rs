//! What a scan of the rows answers.

use std::{borrow::Cow, cell::RefCell, cmp::Ordering, collections::HashMap};

use remora_index::text::{AtomKind, atoms};

use super::table::{BM25, BODY, ID, TITLE};
use crate::{
    Comparison, Filter, Literal, Piece, PieceMatch, Row, Schema, SortBy, SortKey, TextDef,
    TextQuery, Value, value::compare,
};

pub struct Oracle<'t> {
    schema: &'t Schema,
    rows: &'t [Row],
    /// Each row by its id, with its normalised texts of each index.
    texts: HashMap<i64, (&'t Row, Vec<Vec<String>>)>,
    /// The mean number of characters of a row.
    average: f64,
    /// How many rows hold a term, of those that were asked for.
    holding: RefCell<HashMap<String, usize>>,
}

/// The normalised texts of an index.
pub fn texts(index: &TextDef, row: &Row) -> Vec<String> {
    let columns: Vec<String> = index
        .columns
        .iter()
        .filter_map(|&at| match &row[at] {
            Value::Text(text) => Some(text.to_string()),
            _ => None,
        })
        .collect();
    let texts = match &index.delimiter {
        Some(_) if columns.is_empty() => Vec::new(),
        Some(delimiter) => vec![columns.join(delimiter)],
        None => columns,
    };
    texts.iter().map(|text| index.normalization.apply(text).into_owned()).collect()
}

impl<'t> Oracle<'t> {
    pub fn new(schema: &'t Schema, rows: &'t [Row]) -> Self {
        let of_row = |row| schema.texts.iter().map(|index| texts(index, row)).collect();
        let texts: HashMap<i64, (&Row, Vec<Vec<String>>)> =
            rows.iter().map(|row| (id(row), (row, of_row(row)))).collect();
        let mut this = Self { schema, rows, texts, average: 0.0, holding: RefCell::default() };
        let lengths = rows.iter().map(|row| this.length(row));
        this.average = lengths.sum::<f64>() / rows.len().max(1) as f64;
        this
    }

    /// The normalised texts that the index at a place has of a row, which may be another than the one of its id.
    fn texts(&self, place: usize, row: &Row) -> Cow<'_, [String]> {
        match self.texts.get(&id(row)) {
            Some((known, texts)) if *known == row => Cow::Borrowed(&texts[place]),
            _ => Cow::Owned(texts(&self.schema.texts[place], row)),
        }
    }

    fn length(&self, row: &Row) -> f64 {
        let characters = |place| -> usize {
            self.texts(place, row).iter().map(|text| text.chars().count()).sum()
        };
        (0..self.schema.texts.len()).map(characters).sum::<usize>() as f64
    }

    pub fn matches(&self, query: &TextQuery, row: &Row) -> bool {
        match query {
            TextQuery::Term(term) => self.occurrences(term, row) > 0,
            TextQuery::Piece(piece) => self.holds_piece(piece, row),
            TextQuery::Keywords(query) => unreachable!("not asked for here: {query:?}"),
            TextQuery::And(parts) => parts.iter().all(|part| self.matches(part, row)),
            TextQuery::Or(parts) => parts.iter().any(|part| self.matches(part, row)),
            TextQuery::Not(part) => !self.matches(part, row),
        }
    }

    fn holds_piece(&self, piece: &Piece, row: &Row) -> bool {
        let asked = |index: &TextDef| piece.texts.is_empty() || piece.texts.contains(&index.id);
        let mut indexes = self.schema.texts.iter().enumerate().filter(|(_, index)| asked(index));
        indexes.any(|(place, index)| {
            let needle = index.normalization.apply(&piece.text);
            self.texts(place, row).iter().any(|text| match piece.matching {
                PieceMatch::Substring => !needle.is_empty() && text.contains(&*needle),
                PieceMatch::Words => holds_words(text, &needle, false),
                PieceMatch::WordPrefix => holds_words(text, &needle, true),
                PieceMatch::Near(apart) => holds_near(text, &needle, apart as usize),
            })
        })
    }

    fn occurrences(&self, term: &str, row: &Row) -> usize {
        let count = |(place, index): (usize, &TextDef)| {
            let term = index.normalization.apply(term);
            let places = |text: &String| {
                text.char_indices().filter(|(at, _)| text[*at..].starts_with(&*term)).count()
            };
            self.texts(place, row).iter().map(places).sum::<usize>()
        };
        self.schema.texts.iter().enumerate().map(count).sum()
    }

    pub fn holds(&self, filter: &Filter, row: &Row) -> bool {
        let value = |name: &str| {
            &row[self.schema.columns.iter().position(|column| column.name == name).unwrap()]
        };
        let ordering = |name: &str, literal: &Literal| {
            let Literal::Value(literal) = literal else { panic!("the oracle takes values only") };
            (!value(name).is_null()).then(|| compare(value(name), literal))
        };
        match filter {
            Filter::Compare { column, comparison, literal } => {
                let ordering = ordering(column, literal);
                match comparison {
                    Comparison::Equal => ordering == Some(Ordering::Equal),
                    Comparison::NotEqual => ordering != Some(Ordering::Equal),
                    Comparison::Greater => ordering.is_some_and(Ordering::is_gt),
                    Comparison::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
                    Comparison::Less => ordering.is_some_and(Ordering::is_lt),
                    Comparison::LessOrEqual => ordering.is_some_and(Ordering::is_le),
                }
            }
            Filter::In(column, literals) => {
                literals.iter().any(|literal| ordering(column, literal) == Some(Ordering::Equal))
            }
            Filter::Between(column, low, high) => {
                ordering(column, low).is_some_and(Ordering::is_ge)
                    && ordering(column, high).is_some_and(Ordering::is_le)
            }
            Filter::KeyIn(..)
            | Filter::Prefix(_)
            | Filter::KeyWithin(..)
            | Filter::Begins(..)
            | Filter::Path(..)
            | Filter::PathsTogether(..)
            | Filter::PathTexts(..)
            | Filter::PathMayHold(..)
            | Filter::Rows(_) => {
                panic!("no order of texts is known here, and no path")
            }
            Filter::IsNull(column) => value(column).is_null(),
            Filter::IsNotNull(column) => !value(column).is_null(),
            Filter::And(parts) => parts.iter().all(|part| self.holds(part, row)),
            Filter::Or(parts) => parts.iter().any(|part| self.holds(part, row)),
            Filter::Not(part) => !self.holds(part, row),
        }
    }

    /// The rows of a selection.
    pub fn select(&self, text: Option<&TextQuery>, filter: Option<&Filter>) -> Vec<&Row> {
        let rows = self.rows.iter();
        let rows = rows.filter(|row| text.is_none_or(|query| self.matches(query, row)));
        rows.filter(|row| filter.is_none_or(|filter| self.holds(filter, row))).collect()
    }

    /// Puts rows in order.
    pub fn sort(&self, rows: &mut [&Row], order: &[SortKey], text: Option<&TextQuery>) {
        let key_descending = order.last().is_none_or(|key| key.descending);
        let scores: HashMap<i64, f64> =
            rows.iter().map(|row| (id(row), self.score(text, row))).collect();
        rows.sort_by(|a, b| {
            for key in order {
                let ordering = match &key.by {
                    SortBy::Key => id(a).cmp(&id(b)),
                    SortBy::Score => scores[&id(a)].total_cmp(&scores[&id(b)]),
                    SortBy::Column(name) => {
                        let column = self.schema.columns.iter().position(|one| one.name == *name);
                        compare(&a[column.unwrap()], &b[column.unwrap()])
                    }
                    SortBy::TextKey(..) => panic!("no keys of texts are known here"),
                };
                if ordering.is_ne() {
                    return if key.descending { ordering.reverse() } else { ordering };
                }
            }
            let ordering = id(a).cmp(&id(b));
            if key_descending { ordering.reverse() } else { ordering }
        });
    }

    /// BM25 by its definition.
    pub fn score(&self, text: Option<&TextQuery>, row: &Row) -> f64 {
        let mut terms = Vec::new();
        positive_terms(text, true, &mut terms);
        let (k1, b) = BM25;
        let norm = k1 * (1.0 - b + b * (self.length(row) / self.average.max(f64::MIN_POSITIVE)));
        let parts = terms.into_iter().map(|term| {
            let (holding, rows) = (self.holding(term) as f64, self.rows.len() as f64);
            let weight = ((rows - holding + 0.5) / (holding + 0.5)).ln_1p() * (k1 + 1.0);
            let occurrences = self.occurrences(term, row) as f64;
            weight * occurrences / (occurrences + norm)
        });
        parts.fold(0.0, |sum, part| sum + part)
    }

    fn holding(&self, term: &str) -> usize {
        if let Some(holding) = self.holding.borrow().get(term) {
            return *holding;
        }
        let holding = self.rows.iter().filter(|row| self.occurrences(term, row) > 0).count();
        self.holding.borrow_mut().insert(term.to_owned(), holding);
        holding
    }
}

/// Whether the words stand behind each other in the text, read from every atom of it on.
fn holds_words(text: &str, needle: &str, open_end: bool) -> bool {
    let words: Vec<_> = atoms(needle).skip_while(|atom| atom.0 == AtomKind::Separator).collect();
    let end = words.iter().rposition(|atom| atom.0 != AtomKind::Separator);
    let Some(end) = end else { return false };
    let text: Vec<_> = atoms(text).collect();
    (0..text.len()).any(|start| {
        words[..=end].iter().zip(0..).all(|(word, at)| match text.get(start + at) {
            Some(atom) if word.0 == AtomKind::Separator => atom.0 == AtomKind::Separator,
            Some(atom) if at == end && open_end => atom.1.starts_with(word.1),
            other => other == Some(word),
        })
    })
}

/// Whether some stretch of so many words has all of them.
fn holds_near(text: &str, needle: &str, apart: usize) -> bool {
    let words = |text: &str| -> Vec<String> {
        let separated: String = atoms(text)
            .map(|(kind, atom)| if kind == AtomKind::Separator { "\0" } else { atom })
            .collect();
        let words = separated.split('\0').filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let (text_words, wanted) = (words(text), words(needle));
    match wanted.len() {
        0 => false,
        1 => holds_words(text, needle, false),
        _ => (0..text_words.len()).any(|start| {
            let stretch = text_words.iter().skip(start).take(apart + 1);
            let stretch: Vec<_> = stretch.collect();
            wanted.iter().all(|word| stretch.contains(&word))
        }),
    }
}

fn positive_terms<'q>(query: Option<&'q TextQuery>, positive: bool, terms: &mut Vec<&'q str>) {
    match query {
        Some(TextQuery::Term(term)) if positive && !terms.contains(&term.as_str()) => {
            terms.push(term);
        }
        Some(TextQuery::And(parts) | TextQuery::Or(parts)) => {
            parts.iter().for_each(|part| positive_terms(Some(part), positive, terms));
        }
        Some(TextQuery::Not(part)) => positive_terms(Some(part), !positive, terms),
        _ => {}
    }
}

pub fn id(row: &Row) -> i64 {
    match row[ID] {
        Value::Int(id) => id,
        _ => panic!("ids are integers"),
    }
}

/// All that a reader may search in a row.
pub fn searched(row: &Row) -> String {
    let text = |at: usize| match &row[at] {
        Value::Text(text) => text.to_string(),
        _ => String::new(),
    };
    format!("{} {}", text(TITLE), text(BODY))
}
