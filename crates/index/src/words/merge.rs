//! Merges keyword indexes: keywords in one ordered pass, postings without reading any text.

use remora_words::analysis::Analyzer;

use super::{WordsIndex, lengths::FieldLengths, writer::WordsWriter};
use crate::{
    Result, SectionWriter,
    text::{
        GONE,
        parts::{TermInput, merge_terms},
    },
};

/// One input of a merge.
pub(crate) struct WordsSource<'a> {
    /// The keyword index; `None` if the segment was written before it was declared.
    pub words: Option<&'a WordsIndex>,
    /// The new number of each document, ascending, or [`GONE`].
    pub map: &'a [u32],
}

/// Writes the merged sections of the keyword index `id` for `doc_count` documents of so many fields.
pub(crate) fn merge(
    sources: &[WordsSource<'_>],
    (doc_count, fields): (u32, usize),
    analyzer: &Analyzer,
    id: u32,
    out: &mut SectionWriter,
) -> Result<()> {
    let mut writer = WordsWriter::new(merged_lengths(sources, doc_count, fields), analyzer);
    let inputs = sources.iter().filter_map(|source| {
        let words = source.words?;
        Some(TermInput {
            vocabulary: &words.vocabulary,
            records: &words.records,
            offsets: &words.posting_offsets,
            positions: &words.positions,
            doc_count: words.doc_count,
            map: source.map,
        })
    });
    merge_terms(inputs.collect(), |term, postings| writer.push(term, postings))?;
    writer.finish(id, out)
}

fn merged_lengths(sources: &[WordsSource<'_>], doc_count: u32, fields: usize) -> FieldLengths {
    let size = doc_count as usize * fields;
    let mut lengths = FieldLengths { fields, last: vec![0; size], counts: vec![0; size] };
    for source in sources {
        let Some(words) = source.words.filter(|words| words.fields() == fields) else { continue };
        for (doc, &new) in source.map.iter().enumerate().filter(|(_, new)| **new != GONE) {
            for field in 0..fields {
                let at = new as usize * fields + field;
                if let (Some(last), Some(count)) =
                    (lengths.last.get_mut(at), lengths.counts.get_mut(at))
                {
                    *last = words.lengths.last(doc as u32, field);
                    *count = words.lengths.count(doc as u32, field);
                }
            }
        }
    }
    lengths
}
