//! Inverts documents: from texts to keywords.

use std::sync::Arc;

use remora_words::{
    analysis::{Analyzer, Scratch},
    hits::MAX_POSITION,
};

use super::{lengths::FieldLengths, writer::WordsWriter};
use crate::{
    IndexError, Result, SectionWriter,
    text::parts::{Gathered, Interner, OrderedOccurrences, prefix_key},
};

/// Collects the texts of a segment's documents in order. Memory is about 20 bytes a keyword.
pub(crate) struct WordsBuilder {
    analyzer: Arc<Analyzer>,
    scratch: Scratch,
    terms: Interner,
    /// The keyword of each occurrence, document by document; `occurrence_places` has their places.
    occurrence_terms: Vec<u32>,
    occurrence_places: Vec<u32>,
    /// Where each document's occurrences end.
    doc_ends: Vec<u32>,
    lengths: FieldLengths,
}

impl WordsBuilder {
    /// No documents yet.
    pub(crate) fn new(analyzer: Arc<Analyzer>, fields: usize) -> Self {
        Self {
            analyzer,
            scratch: Scratch::default(),
            terms: Interner::default(),
            occurrence_terms: Vec::new(),
            occurrence_places: Vec::new(),
            doc_ends: Vec::new(),
            lengths: FieldLengths { fields, ..FieldLengths::default() },
        }
    }

    /// Adds the next document: the text of each field.
    pub(crate) fn add(&mut self, fields: &[&str]) -> Result<()> {
        if fields.len() != self.lengths.fields {
            return Err(IndexError::Invalid("a document has other fields".to_owned()));
        }
        let mut before = 0;
        for text in fields {
            let (terms, numbers) = (&mut self.terms, &mut self.occurrence_terms);
            let places = &mut self.occurrence_places;
            let (mut last, start) = (0, places.len());
            let count =
                self.analyzer.document(text, &mut self.scratch, &mut |keyword, position| {
                    // A keyword behind the greatest position cannot be found, so it is not indexed.
                    if position > MAX_POSITION {
                        return;
                    }
                    let number = terms.intern(keyword);
                    // A keyword is indexed once at a place.
                    let mut same = (start..places.len()).rev();
                    let mut same = same.by_ref().take_while(|&at| places[at] == before + position);
                    if same.any(|at| numbers[at] == number) {
                        return;
                    }
                    last = last.max(position);
                    numbers.push(number);
                    places.push(before + position);
                });
            self.lengths.last.push(last);
            self.lengths.counts.push(count.min(MAX_POSITION));
            before += last;
        }
        let end = u32::try_from(self.occurrence_terms.len());
        self.doc_ends.push(end.map_err(|_| IndexError::Full("2^32 words in one batch"))?);
        Ok(())
    }

    /// Writes the sections of the words `id`.
    pub(crate) fn finish(self, id: u32, out: &mut SectionWriter) -> Result<()> {
        let order = self.terms.sorted(prefix_key);
        let (terms, places) = (self.occurrence_terms, self.occurrence_places);
        let ordered = OrderedOccurrences::new(&order, &terms, &places, &self.doc_ends);
        drop((terms, places));
        let mut writer = WordsWriter::new(self.lengths, &self.analyzer);
        let mut gathered = Gathered::default();
        ordered.for_each_part(|ranks, part| {
            gathered.gather(&self.terms, &order[ranks]);
            part.for_each(|at, postings| writer.push(gathered.term(at).as_bytes(), postings))
        })?;
        writer.finish(id, out)
    }
}
