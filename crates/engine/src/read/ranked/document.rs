//! One document after the other of a segment, as the steps of a query ask for it.

use remora_index::{
    IndexError,
    column::Cell,
    words::{WordCursor, WordsIndex},
};
use remora_words::{
    WordsError,
    matching::{Document, Matcher, Place},
    rank::{Attribute, Row},
};

use crate::{ColumnType, Error, Result, Schema, Value, encode::decode_cell, snapshot::SegmentView};

/// The terms of a query in one segment.
pub(super) struct SegmentDocument<'a> {
    doc: u32,
    words: &'a WordsIndex,
    view: &'a SegmentView,
    schema: &'a Schema,
    /// For each term the cursors of its keywords.
    terms: Vec<Vec<WordCursor<'a>>>,
    places: Vec<Place>,
    failed: Option<IndexError>,
}

impl<'a> SegmentDocument<'a> {
    pub(super) fn new(
        matcher: &Matcher,
        words: &'a WordsIndex,
        view: &'a SegmentView,
        schema: &'a Schema,
    ) -> Result<Self> {
        let terms = matcher.terms().iter().map(|term| {
            let numbers = term.keywords.iter().filter_map(|keyword| words.find(keyword));
            numbers.map(|number| words.cursor(number)).collect::<Result<_, IndexError>>()
        });
        let terms = terms.collect::<Result<_, IndexError>>()?;
        Ok(Self { doc: 0, words, view, schema, terms, places: Vec::new(), failed: None })
    }

    /// Goes to a document; documents are asked in any order, ascending ones soonest.
    pub(super) fn go_to(&mut self, doc: u32) {
        self.doc = doc;
    }

    /// What the index said where evaluating failed.
    pub(super) fn error(&mut self, error: WordsError) -> Error {
        match self.failed.take() {
            Some(error) => error.into(),
            None => super::refused(error),
        }
    }

    /// Keeps what the index said.
    fn note(&mut self, error: IndexError) -> WordsError {
        let message = error.to_string();
        self.failed = Some(error);
        WordsError::Query(message)
    }
}

impl Document for SegmentDocument<'_> {
    fn frequency(&mut self, term: usize) -> remora_words::Result<u32> {
        let mut all = 0;
        let doc = self.doc;
        let Some(cursors) = self.terms.get_mut(term) else { return Ok(0) };
        let add = || {
            for cursor in cursors {
                if cursor.seek(doc)? {
                    all += cursor.frequency()?;
                }
            }
            Ok(())
        };
        match add() {
            Ok(()) => Ok(all),
            Err(error) => Err(self.note(error)),
        }
    }

    #[inline]
    fn places(&mut self, term: usize, mut each: impl FnMut(Place)) -> remora_words::Result<()> {
        let doc = self.doc;
        let Some(cursors) = self.terms.get_mut(term) else { return Ok(()) };
        if let [only] = &mut cursors[..] {
            let read = match only.seek(doc) {
                Ok(true) => only.places(each),
                Ok(false) => Ok(()),
                Err(error) => Err(error),
            };
            return read.map_err(|error| self.note(error));
        }
        let places = &mut self.places;
        places.clear();
        let read = || {
            for cursor in cursors {
                if cursor.seek(doc)? {
                    cursor.places(|place| places.push(place))?;
                }
            }
            Ok(())
        };
        if let Err(error) = read() {
            return Err(self.note(error));
        }
        self.places.sort_unstable();
        self.places.dedup();
        self.places.iter().for_each(|&place| each(place));
        Ok(())
    }
}

/// What ranking expressions ask of a row.
impl Row for SegmentDocument<'_> {
    fn length(&self, field: usize) -> u32 {
        self.words.count(self.doc, field)
    }

    fn attribute(&self, number: usize) -> Attribute {
        let Some(column) = self.schema.columns.get(number) else { return Attribute::Integer(0) };
        let values = self.view.segment.column(column.id);
        let cell = values.map_or(Cell::Null, |values| values.get(self.doc));
        match decode_cell(column.kind, cell) {
            Value::Int(number) => Attribute::Integer(number),
            Value::Uint(number) => Attribute::Integer(number as i64),
            Value::Bool(is_true) => Attribute::Integer(is_true.into()),
            Value::Float(number) => Attribute::Real(number as f32),
            // What has no value counts as 0, as in Sphinx.
            _ if matches!(column.kind, ColumnType::Float | ColumnType::Double) => {
                Attribute::Real(0.0)
            }
            _ => Attribute::Integer(0),
        }
    }
}
