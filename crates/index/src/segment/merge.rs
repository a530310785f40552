//! Merges segments (compaction) without reading rows: keys and columns are copied in key order, postings are
//! renumbered.

use std::cell::RefCell;

use super::{
    IndexSpec, MAX_DOCUMENTS, MergeInput, SPEC, Segment, SegmentSpec, encode_spec,
    fences::OrderedDocuments,
    index::{self, ReadPart},
    sort_key,
};
use crate::{
    IndexError, Keys, KeysWriter, Result, SectionWriter,
    column::{Cell, ColumnWriter},
    paths::PathPart,
    text::{self, GONE, TextSource},
    words::{self, WordsSource},
};

/// Merges segments into one and drops deleted documents. No two inputs may hold the same live key. Every
/// input must have been built with a spec whose columns and texts are a subset of `spec`'s. The result has
/// the same bytes as a segment built from the live documents, with one exception: a path that some input
/// lacks is left out.
///
/// # Errors
/// - [`IndexError::Full`]: the inputs have more documents than one segment can hold, deleted ones
///   included, or a text index would be larger than the format allows.
/// - [`IndexError::Invalid`]: two inputs hold the same live key, a column is of another kind in
///   an input than in `spec`, or the pieces of a path leave out a document that is not deleted.
/// - [`IndexError::Corrupt`] or [`IndexError::Io`]: an input cannot be read.
pub fn merge(inputs: &[MergeInput], spec: &SegmentSpec) -> Result<Segment> {
    let order = MergeOrder::new(inputs)?;
    let doc_count = order.documents.len() as u32;
    let mut out = SectionWriter::new();
    // Unused capacity costs only address space, and growing copies all that was written.
    out.reserve(inputs.iter().map(|input| input.segment.byte_count() as usize).sum());
    out.add(SPEC, 0, &encode_spec(spec, doc_count));
    write_keys(inputs, &order, &mut out)?;
    for column in &spec.columns {
        let columns: Vec<_> = inputs.iter().map(|input| input.segment.column(column.id)).collect();
        let mut writer = ColumnWriter::new(column.id, column.kind);
        for &(input, doc) in &order.documents {
            let column = columns[input as usize];
            writer.push(column.map_or(Cell::Null, |column| column.get(doc)))?;
        }
        writer.finish(&mut out)?;
    }
    for text in &spec.texts {
        let sources = inputs
            .iter()
            .zip(&order.maps)
            .map(|(input, map)| TextSource { text: input.segment.text(text.id), map });
        text::merge(&sources.collect::<Vec<_>>(), doc_count, text.id, &mut out)?;
    }
    for spec in &spec.words {
        let sources = inputs
            .iter()
            .zip(&order.maps)
            .map(|(input, map)| WordsSource { words: input.segment.words(spec.id), map });
        let sources: Vec<_> = sources.collect();
        let size = (doc_count, spec.fields);
        words::merge(&sources, size, &spec.analyzer, spec.id, &mut out)?;
    }
    for spec in &spec.paths {
        let (mut sources, mut have_all) = (Vec::with_capacity(inputs.len()), true);
        for (input, map) in inputs.iter().zip(&order.maps) {
            have_all = have_all && input.push_path(spec, map, &mut sources)?;
        }
        if have_all {
            PathPart::merge(&sources, doc_count, spec, &mut out)?;
        }
    }
    for spec in &spec.indexes {
        index::write(spec, &order.sorted(inputs, spec), &mut out)?;
    }
    Segment::open(out.finish())
}

fn write_keys(inputs: &[MergeInput], order: &MergeOrder, out: &mut SectionWriter) -> Result<()> {
    let mut keys = KeysWriter::default();
    let mut key = Vec::new();
    for &(input, doc) in &order.documents {
        key.clear();
        inputs[input as usize].segment.keys().read(doc, &mut key);
        keys.push(&key)?;
    }
    keys.finish(out)
}

/// The order of the live documents of all inputs.
struct MergeOrder {
    /// (input, document) in key order.
    documents: Vec<(u32, u32)>,
    /// For each input the new number of each document.
    maps: Vec<Vec<u32>>,
}

impl MergeOrder {
    fn new(inputs: &[MergeInput]) -> Result<Self> {
        let total: u64 = inputs.iter().map(|input| u64::from(input.segment.doc_count())).sum();
        if total > u64::from(MAX_DOCUMENTS) {
            return Err(IndexError::Full("2^31 documents in one segment"));
        }
        let maps = inputs.iter().map(|input| vec![GONE; input.segment.doc_count() as usize]);
        let mut order = Self { documents: Vec::new(), maps: maps.collect() };
        let mut runs: Vec<Run<'_>> =
            (0..).zip(inputs).filter_map(|(number, input)| Run::new(number, input)).collect();
        while !runs.is_empty() {
            let least = least_run(&runs, None);
            let second = least_run(&runs, Some(least));
            let (second_keys, second_doc) = (runs[second].keys, runs[second].doc);
            let alone = least == second;
            let run = &mut runs[least];
            let mut left = true;
            while left && (alone || run.keys.compare(run.doc, second_keys, second_doc).is_le()) {
                order.push(run.number, run.doc);
                left = run.advance();
            }
            if !left {
                runs.swap_remove(least);
            }
        }
        Ok(order)
    }

    /// The new documents in the order of an index. An input that has the index is a sorted run already.
    fn sorted(&self, inputs: &[MergeInput], spec: &IndexSpec) -> OrderedDocuments {
        let of_input = inputs.iter().map(|input| {
            spec.parts.iter().map(|part| ReadPart::new(&input.segment, part)).collect()
        });
        let parts: Vec<Vec<ReadPart<'_>>> = of_input.collect();
        let text = RefCell::new(Vec::new());
        let write_key = |new: u32, key: &mut Vec<u8>| {
            let (input, doc) = self.documents[new as usize];
            let parts = &parts[input as usize];
            parts.iter().for_each(|part| part.push_key(doc, &mut text.borrow_mut(), key));
        };
        let runs = inputs.iter().zip(&self.maps).map(
            |(input, map)| -> Box<dyn Iterator<Item = u32> + '_> {
                let new = move |doc: u32| map.get(doc as usize).copied().filter(|&doc| doc != GONE);
                let docs = 0..input.segment.doc_count();
                match input.segment.index(spec) {
                    Some(index) => Box::new(docs.filter_map(move |at| new(index.doc(at)))),
                    None => Box::new(sort_key::sorted(docs.filter_map(new), write_key).into_iter()),
                }
            },
        );
        OrderedDocuments::new(sort_key::merged(runs.collect(), write_key), write_key)
    }

    fn push(&mut self, input: u32, doc: u32) {
        self.maps[input as usize][doc as usize] = self.documents.len() as u32;
        self.documents.push((input, doc));
    }
}

/// The run with the least key; if possible another run than `except`.
fn least_run(runs: &[Run<'_>], except: Option<usize>) -> usize {
    let candidates = (0..runs.len()).filter(|&index| Some(index) != except);
    let least =
        candidates.min_by(|&a, &b| runs[a].keys.compare(runs[a].doc, runs[b].keys, runs[b].doc));
    least.or(except).unwrap_or(0)
}

/// The live documents of one input.
struct Run<'a> {
    number: u32,
    keys: &'a Keys,
    input: &'a MergeInput,
    doc: u32,
}

impl<'a> Run<'a> {
    fn new(number: u32, input: &'a MergeInput) -> Option<Self> {
        let mut run = Self { number, keys: input.segment.keys(), input, doc: 0 };
        (!run.is_over() && (!run.is_deleted() || run.advance())).then_some(run)
    }

    fn is_over(&self) -> bool {
        self.doc >= self.input.segment.doc_count()
    }

    fn is_deleted(&self) -> bool {
        self.input.deleted.as_ref().is_some_and(|deleted| deleted.contains(self.doc))
    }

    /// Goes to the next live document; false at the end.
    fn advance(&mut self) -> bool {
        self.doc += 1;
        while !self.is_over() && self.is_deleted() {
            self.doc += 1;
        }
        !self.is_over()
    }
}
