//! tantivy, in this process. It finds words, not substrings: if a term is a part of longer words,
//! its counts are lower, which the report notes. Text without spaces between words is split into
//! characters and found by phrase queries, which is exact.

use std::path::Path;

use anyhow::{Context, Result};
use remora_engine::{Piece, TextQuery};
use tantivy::{
    Index, IndexReader, Order, Term,
    collector::{Count, TopDocs},
    query::{BooleanQuery, EmptyQuery, Occur, PhraseQuery, Query, TermQuery},
    schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{Token, TokenStream, Tokenizer},
};

use super::{Load, Peer, cached};
use crate::{
    corpus::Corpus,
    measure::{MeasuredProcess, once, processors},
    oracle::NEWEST,
    queries::is_unspaced,
};

/// The name under which the tokenizer is registered.
const TOKENIZER: &str = "words_and_characters";
/// Memory for all threads of the writer.
const WRITER_BYTES: usize = 512 << 20;

/// An open tantivy index with the corpus.
pub struct Tantivy {
    reader: IndexReader,
    body: Field,
}

impl Tantivy {
    /// Opens the index of this corpus.
    pub fn open(corpus: &Corpus) -> Result<(Load, Self)> {
        let (directory, load) = cached(corpus, "tantivy", |directory| {
            Ok(once(MeasuredProcess::Own, || fill(directory, corpus))?.1)
        })?;
        let index = Index::open_in_dir(directory)?;
        index.tokenizers().register(TOKENIZER, Atoms);
        let body = index.schema().get_field("body")?;
        Ok((load, Self { reader: index.reader()?, body }))
    }

    fn query(&self, query: &TextQuery) -> Box<dyn Query> {
        let all = |parts: &[TextQuery], occur: Occur| {
            let clauses = parts.iter().map(|part| match part {
                TextQuery::Not(part) => (Occur::MustNot, self.query(part)),
                part => (occur, self.query(part)),
            });
            Box::new(BooleanQuery::new(clauses.collect())) as Box<dyn Query>
        };
        match query {
            TextQuery::Term(text) | TextQuery::Piece(Piece { text, .. }) => self.phrase(text),
            TextQuery::Keywords(query) => self.phrase(&query.text),
            TextQuery::And(parts) => all(parts, Occur::Must),
            TextQuery::Or(parts) => all(parts, Occur::Should),
            TextQuery::Not(_) => all(std::slice::from_ref(query), Occur::Must),
        }
    }

    fn phrase(&self, text: &str) -> Box<dyn Query> {
        let mut terms: Vec<Term> =
            atoms(text).iter().map(|atom| Term::from_field_text(self.body, &atom.text)).collect();
        match (terms.len(), terms.pop()) {
            (_, None) => Box::new(EmptyQuery),
            (1, Some(term)) => Box::new(TermQuery::new(term, IndexRecordOption::Basic)),
            (_, Some(term)) => {
                terms.push(term);
                Box::new(PhraseQuery::new(terms))
            }
        }
    }
}

impl Peer for Tantivy {
    fn name(&self) -> &str {
        "tantivy 0.27 (words)"
    }

    fn in_process(&self) -> bool {
        true
    }

    fn processor(&self) -> MeasuredProcess {
        MeasuredProcess::Own
    }

    fn search(&mut self, query: &TextQuery) -> Result<Vec<u64>> {
        let newest = TopDocs::with_limit(NEWEST).order_by_fast_field::<u64>("id", Order::Desc);
        let found = self.reader.searcher().search(self.query(query).as_ref(), &newest)?;
        Ok(found.into_iter().filter_map(|(id, _)| id).collect())
    }

    fn count(&mut self, query: &TextQuery) -> Result<u64> {
        Ok(self.reader.searcher().search(self.query(query).as_ref(), &Count)? as u64)
    }
}

fn fill(directory: &Path, corpus: &Corpus) -> Result<()> {
    let mut schema = Schema::builder();
    let id = schema.add_u64_field("id", FAST);
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let body = schema.add_text_field("body", TextOptions::default().set_indexing_options(indexing));
    let index = Index::create_in_dir(directory, schema.build())?;
    index.tokenizers().register(TOKENIZER, Atoms);
    let mut writer = index.writer_with_num_threads(processors(), WRITER_BYTES)?;
    for (document, text) in corpus.documents.iter().zip(&corpus.texts) {
        writer.add_document(tantivy::doc!(id => document.id, body => text.as_str()))?;
    }
    writer.commit()?;
    let segments = index.searchable_segment_ids()?;
    if segments.len() > 1 {
        writer.merge(&segments).wait()?;
    }
    writer.garbage_collect_files().wait()?;
    writer.wait_merging_threads().context("merging failed")
}

/// Splits text into words and, for scripts without spaces, characters.
#[derive(Clone)]
struct Atoms;

impl Tokenizer for Atoms {
    type TokenStream<'t> = AtomStream;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> AtomStream {
        let mut atoms = atoms(text);
        atoms.reverse();
        AtomStream { behind: atoms, current: Token::default() }
    }
}

/// The remaining atoms in reverse order.
struct AtomStream {
    behind: Vec<Token>,
    current: Token,
}

impl TokenStream for AtomStream {
    fn advance(&mut self) -> bool {
        let next = self.behind.pop();
        let is_there = next.is_some();
        self.current = next.unwrap_or_default();
        is_there
    }

    fn token(&self) -> &Token {
        &self.current
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.current
    }
}

/// A separator leaves a gap in the positions, so that no phrase matches across it; a space between words does not.
fn atoms(text: &str) -> Vec<Token> {
    let mut atoms: Vec<Token> = Vec::new();
    let mut word_goes_on = false;
    let mut position = 0;
    for (offset, c) in text.char_indices() {
        let offset_to = offset + c.len_utf8();
        match atoms.last_mut() {
            Some(word) if word_goes_on && c.is_alphanumeric() && !is_unspaced(c) => {
                word.text.push(c);
                word.offset_to = offset_to;
            }
            _ if c.is_alphanumeric() || is_unspaced(c) => {
                word_goes_on = !is_unspaced(c);
                position += 1;
                let text = c.to_string();
                let offset_from = offset;
                atoms.push(Token { offset_from, offset_to, position, text, position_length: 1 });
            }
            _ => {
                position += usize::from(c != ' ' || !word_goes_on);
                word_goes_on = false;
            }
        }
    }
    atoms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_words_and_characters() {
        let cut = |text: &str| atoms(text).into_iter().map(|atom| atom.text).collect::<Vec<_>>();
        assert_eq!(cut("the café, 日本x2"), ["the", "café", "日", "本", "x2"]);
        assert!(cut(" .,").is_empty());
        let positions = |text: &str| atoms(text).iter().map(|a| a.position).collect::<Vec<_>>();
        assert_eq!(positions("a b, c"), [1, 2, 5]);
        assert_eq!(positions("日本 語"), [1, 2, 4]);
    }
}
