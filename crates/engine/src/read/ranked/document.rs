//! Steps through the documents of a segment, as the operators of a query need them.

use remora_index::{
    column::Cell,
    words::{WordCursor, WordsIndex},
};
use remora_words::{
    WordsError,
    hits::PackedPosition,
    matching::{Document, Matcher},
    rank::{Attribute, Row},
};

use super::{Ranked, present::Present};
use crate::{
    ColumnType, Error, Result, Schema, Value, encode::decode_cell, interrupt::InterruptTicker,
    snapshot::SegmentView,
};

/// The number of postings that can be read in the time of finding a keyword and its first documents.
const CURSOR_POSTINGS: usize = 32;

/// With more keywords than this, those of a document are found together.
const FEW_KEYWORDS: usize = if cfg!(test) { 3 } else { 16 };

/// The terms of a query in one segment.
pub(super) struct SegmentDocument<'a> {
    doc: u32,
    words: &'a WordsIndex,
    view: &'a SegmentView,
    schema: &'a Schema,
    /// The cursors of the keywords of each term.
    terms: Vec<Vec<WordCursor<'a>>>,
    /// Which keywords the current document has, if there are many.
    present: Option<Present>,
    places: Vec<PackedPosition>,
    /// Checks for an interruption as documents are read.
    pub(super) looks: InterruptTicker,
    failed: Option<Error>,
}

impl<'a> SegmentDocument<'a> {
    pub(super) fn new(
        ranked: &'a Ranked,
        matcher: &Matcher,
        words: &'a WordsIndex,
        view: &'a SegmentView,
    ) -> Result<Self> {
        let mut looks = InterruptTicker::new(&ranked.unless);
        let mut terms = Vec::with_capacity(matcher.terms().len());
        for term in matcher.terms() {
            let mut cursors = Vec::new();
            for keyword in &term.keywords {
                looks.steps(CURSOR_POSTINGS)?;
                let Some(number) = words.find(keyword) else { continue };
                cursors.push(words.cursor(number)?);
            }
            terms.push(cursors);
        }
        let schema = &ranked.schema;
        let keywords: usize = terms.iter().map(Vec::len).sum();
        let present = (keywords > FEW_KEYWORDS).then(|| Present::new(terms.len()));
        let places = Vec::new();
        Ok(Self { doc: 0, words, view, schema, terms, present, places, looks, failed: None })
    }

    /// Stands the cursors of many keywords on the current document. False if it does not have the term.
    #[inline]
    fn may_have(&mut self, term: usize) -> Result<bool> {
        match &mut self.present {
            None => Ok(true),
            Some(present) => {
                present.go_to(self.doc, &mut self.terms, &mut self.looks)?;
                Ok(present.has(term))
            }
        }
    }

    /// Goes to a document. Any order is allowed; ascending documents are fastest.
    pub(super) fn go_to(&mut self, doc: u32) {
        self.doc = doc;
    }

    /// The number of occurrences of a term in the current document. The term has to be one keyword.
    #[inline]
    pub(super) fn occurrences(&mut self, term: usize) -> Result<u32> {
        self.looks.step()?;
        if !self.may_have(term)? {
            return Ok(0);
        }
        let Some([cursor]) = self.terms.get_mut(term).map(Vec::as_mut_slice) else { return Ok(0) };
        Ok(if cursor.seek(self.doc)? { cursor.frequency()? } else { 0 })
    }

    /// The positions of a term in the current document, as [`WordCursor::steps`] gives them. The term has to be one
    /// keyword.
    #[inline]
    pub(super) fn steps(&mut self, term: usize) -> Result<&[u32]> {
        if !self.may_have(term)? {
            return Ok(&[]);
        }
        let Some([cursor]) = self.terms.get_mut(term).map(Vec::as_mut_slice) else {
            return Ok(&[]);
        };
        if !cursor.seek(self.doc)? {
            return Ok(&[]);
        }
        let steps = cursor.steps()?;
        self.looks.steps(1 + steps.len())?;
        Ok(steps)
    }

    /// Whether two positions, given as sums of steps, are in the same field of the document.
    #[inline]
    pub(super) fn are_in_one_field(&self, first: u32, last: u32) -> bool {
        self.words.are_in_one_field(self.doc, first, last)
    }

    /// The error of the index, or of the interruption, that made evaluating fail.
    pub(super) fn error(&mut self, error: WordsError) -> Error {
        self.failed.take().unwrap_or_else(|| super::refused(error))
    }

    /// Keeps an error until [`SegmentDocument::error`] returns it.
    fn note(&mut self, error: impl Into<Error>) -> WordsError {
        let error = error.into();
        let message = error.to_string();
        self.failed = Some(error);
        WordsError::Query(message)
    }
}

impl SegmentDocument<'_> {
    /// Calls `each` with each cursor of a term that stands on the current document.
    fn each_cursor(
        &mut self,
        term: usize,
        mut each: impl FnMut(&mut WordCursor<'_>, &mut InterruptTicker) -> Result<()>,
    ) -> Result<()> {
        if !self.may_have(term)? {
            return Ok(());
        }
        let Some(cursors) = self.terms.get_mut(term) else { return Ok(()) };
        if let Some(present) = &self.present {
            return present.of_term(term).try_for_each(|place| match cursors.get_mut(place) {
                Some(cursor) => each(cursor, &mut self.looks),
                None => Ok(()),
            });
        }
        for cursor in cursors {
            self.looks.step()?;
            if cursor.seek(self.doc)? {
                each(cursor, &mut self.looks)?;
            }
        }
        Ok(())
    }

    fn all_places(&mut self, term: usize) -> Result<()> {
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        let read = self.each_cursor(term, |cursor, looks| {
            let before = places.len();
            cursor.places(|place| places.push(place))?;
            looks.steps(places.len() - before)
        });
        places.sort_unstable();
        places.dedup();
        self.places = places;
        read
    }
}

impl Document for SegmentDocument<'_> {
    fn frequency(&mut self, term: usize) -> remora_words::Result<u32> {
        let mut all = 0;
        let added = self.each_cursor(term, |cursor, _| {
            all += cursor.frequency()?;
            Ok(())
        });
        match added {
            Ok(()) => Ok(all),
            Err(error) => Err(self.note(error)),
        }
    }

    #[inline]
    fn places(
        &mut self,
        term: usize,
        mut each: impl FnMut(PackedPosition),
    ) -> remora_words::Result<()> {
        if self.terms.get(term).is_some_and(|cursors| cursors.len() == 1) {
            let read = self.each_cursor(term, |only, looks| {
                let mut count = 0;
                only.places(|place| {
                    count += 1;
                    each(place);
                })?;
                looks.steps(count)
            });
            return read.map_err(|error| self.note(error));
        }
        self.all_places(term).map_err(|error| self.note(error))?;
        self.places.iter().for_each(|&place| each(place));
        Ok(())
    }
}

/// The values of the row that ranking expressions read.
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
