//! Stored queries, which are matched against documents that come later. A query is parsed once. The keywords that it
//! requires are known, so most queries need not be evaluated for a document.

use remora_words::{
    analysis::Analyzer,
    hits::PackedPosition,
    matching::{Candidates, Counts, Expansion, Matcher, Term, Vocabulary},
    query::{self, Parsed},
    rank::Ranker,
};

use super::{names, refused, words_of};
use crate::{KeywordQuery, Result, Schema};

/// A keyword query, parsed for the documents of a definition.
#[derive(Debug)]
pub struct StoredQuery {
    pub(super) asked: KeywordQuery,
    pub(super) parsed: Parsed,
    required: Vec<Vec<String>>,
}

impl StoredQuery {
    /// Parses a query. An empty text finds every document.
    ///
    /// # Errors
    /// [`crate::Error::Request`] with Sphinx's text if the query is wrong, or if the definition has no words.
    pub fn new(documents: &Schema, text: &str) -> Result<Self> {
        let words = words_of(documents)?;
        let analyzer = words.analyzer()?;
        let parsed = query::parse(text, &analyzer, &names(documents, words)).map_err(refused)?;
        let required = match &parsed.root {
            Some(root) => {
                let mut vocabulary = EveryWord { analyzer: &analyzer };
                let matcher = Matcher::new(root, &mut vocabulary, Default::default());
                let matcher = matcher.map_err(refused)?;
                required(&matcher.candidates().0, matcher.terms())
            }
            None if text.is_empty() => Vec::new(),
            // Nothing is left of it.
            None => vec![Vec::new()],
        };
        let asked =
            KeywordQuery { text: text.to_owned(), ranker: Ranker::None, ..KeywordQuery::default() };
        Ok(Self { asked, parsed, required })
    }

    /// The groups of keywords that the query requires: a document that it finds contains at least one keyword of each
    /// group. Without groups it may find any document. With an empty group it finds none.
    pub fn required(&self) -> &[Vec<String>] {
        &self.required
    }
}

/// The vocabulary of documents that are not known yet: it contains every word, and the expansion of wildcards is
/// unknown.
struct EveryWord<'a> {
    analyzer: &'a Analyzer,
}

impl Vocabulary for EveryWord<'_> {
    fn total(&self) -> u64 {
        1
    }

    fn keyword(&self, word: &str, is_exact: bool) -> Option<String> {
        self.analyzer.keyword(word, is_exact)
    }

    fn counts(&mut self, _: &str) -> remora_words::Result<Counts> {
        Ok(Counts { documents: 1, hits: 1 })
    }

    fn expand(&mut self, _: &str) -> remora_words::Result<Result<Vec<Expansion>, String>> {
        Ok(Ok(Vec::new()))
    }

    fn union(
        &mut self,
        _: &[String],
        _: Option<&dyn Fn(PackedPosition) -> bool>,
    ) -> remora_words::Result<u64> {
        Ok(1)
    }
}

/// The groups of keywords of which a candidate has one each.
fn required(candidates: &Candidates, terms: &[Term]) -> Vec<Vec<String>> {
    match candidates {
        Candidates::Every => Vec::new(),
        Candidates::Term(term) => match terms.get(*term) {
            Some(term) if !term.is_union => vec![term.keywords.clone()],
            _ => Vec::new(),
        },
        Candidates::All(parts) => parts.iter().flat_map(|part| required(part, terms)).collect(),
        Candidates::Any(parts) => of_some(parts, 1, terms),
        Candidates::AtLeast(parts, least) => of_some(parts, *least, terms),
        Candidates::Without(wanted, _) => required(wanted, terms),
    }
}

/// The groups for documents that are in at least `least` of the parts. Such a document is outside of at most
/// `parts - least` parts, so it is in at least one of any `parts - least + 1`.
fn of_some(parts: &[Candidates], least: usize, terms: &[Term]) -> Vec<Vec<String>> {
    let shortest = |part| required(part, terms).into_iter().min_by_key(Vec::len);
    let mut known: Vec<Vec<String>> = parts.iter().filter_map(shortest).collect();
    let needed = (parts.len() + 1).saturating_sub(least);
    if known.len() < needed {
        return Vec::new();
    }
    known.sort_by_key(Vec::len);
    let mut any: Vec<String> = known.into_iter().take(needed).flatten().collect();
    any.sort_unstable();
    any.dedup();
    vec![any]
}
