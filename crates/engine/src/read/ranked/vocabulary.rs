//! The keywords of a whole table, with the counts of its live rows.

use std::collections::BTreeMap;

use remora_index::{Bitmap, DocSet, IndexError, words::WordsIndex};
use remora_words::{
    Result, WordsError,
    analysis::Analyzer,
    matching::{Counts, Expansion, Place, Vocabulary},
    query::Wildcard,
};

use crate::{
    WordsDef,
    read::docs::count_live,
    snapshot::{SegmentView, TableView},
};

/// The vocabulary of a table at one moment.
pub(super) struct ViewVocabulary<'v> {
    view: &'v TableView,
    id: u32,
    analyzer: &'v Analyzer,
    /// Whether it is asked how often plain keywords stand in documents, which costs a look at all of them.
    needs_hits: bool,
}

/// Deleted documents that are fewer than one in so many of a keyword's are looked for one by one; all in tests, whose
/// tables are small.
const FEW_SHARE: u32 = if cfg!(test) { 1 } else { 16 };

impl<'v> ViewVocabulary<'v> {
    pub(super) fn new(
        view: &'v TableView,
        words: &WordsDef,
        analyzer: &'v Analyzer,
        needs_hits: bool,
    ) -> Self {
        Self { view, id: words.segment_id(), analyzer, needs_hits }
    }

    /// The segments that have the words.
    fn segments(&self) -> impl Iterator<Item = (&'v SegmentView, &'v WordsIndex)> {
        let id = self.id;
        self.view.segments.iter().filter_map(move |view| Some((view, view.segment.words(id)?)))
    }

    /// The keywords of each field in all live rows. Cost: one step for each deleted row and field.
    pub(super) fn totals(&self, fields: usize) -> Vec<u64> {
        let mut totals = vec![0_u64; fields];
        for (view, words) in self.segments() {
            let deleted = || view.deleted.iter().flat_map(|deleted| deleted.iter());
            for (field, (total, of_all)) in totals.iter_mut().zip(words.totals()).enumerate() {
                let gone: u64 = deleted().map(|doc| u64::from(words.count(doc, field))).sum();
                *total += of_all.saturating_sub(gone);
            }
        }
        totals
    }

    /// Where the keyword of that number stands in a segment; how often only if `needs_hits`.
    fn counts_in(
        view: &SegmentView,
        words: &WordsIndex,
        number: u32,
        needs_hits: bool,
    ) -> Result<Counts> {
        let mut counts = Counts::default();
        if !needs_hits {
            let all = words.document_count(number).map_err(corrupt)?;
            counts.documents = match &view.deleted {
                None => all.into(),
                Some(deleted) if view.deleted_count < all / FEW_SHARE => {
                    let gone = words.having(number, deleted.iter().collect());
                    u64::from(all) - gone.map_err(corrupt)?.len() as u64
                }
                Some(_) => count_live(&words.documents(number).map_err(corrupt)?, view),
            };
            return Ok(counts);
        }
        let is_live = |doc| !view.is_deleted(doc);
        let add = |doc, hits: u32| {
            if is_live(doc) {
                counts.documents += 1;
                counts.hits += u64::from(hits);
            }
        };
        words.for_each_posting(number, add).map_err(corrupt)?;
        Ok(counts)
    }
}

impl ViewVocabulary<'_> {
    /// Calls `visit` with each keyword that is in live documents, and in how many, in order.
    pub(super) fn for_each(&self, visit: &mut dyn FnMut(&str, u64)) -> Result<()> {
        let mut failed = None;
        let segments: Vec<_> = self.segments().collect();
        let count = |(view, words): (&SegmentView, &WordsIndex), number| {
            Self::counts_in(view, words, number, false).map(|counts| counts.documents)
        };
        if let [only] = segments[..] {
            only.1.for_each_with_prefix("", |keyword, number| match count(only, number) {
                Ok(0) => {}
                Ok(documents) => visit(keyword, documents),
                Err(error) => failed = failed.take().or(Some(error)),
            });
            return failed.map_or(Ok(()), Err);
        }
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        for segment in segments {
            segment.1.for_each_with_prefix("", |keyword, number| match count(segment, number) {
                Ok(documents) => *all.entry(keyword.to_owned()).or_default() += documents,
                Err(error) => failed = failed.take().or(Some(error)),
            });
        }
        all.iter().filter(|(_, count)| **count > 0).for_each(|(word, count)| visit(word, *count));
        failed.map_or(Ok(()), Err)
    }
}

impl Vocabulary for ViewVocabulary<'_> {
    fn total(&self) -> u64 {
        self.view.live_count()
    }

    fn keyword(&self, word: &str, is_exact: bool) -> Option<String> {
        self.analyzer.keyword(word, is_exact)
    }

    fn counts(&mut self, keyword: &str) -> Result<Counts> {
        let mut all = Counts::default();
        for (view, words) in self.segments() {
            let Some(number) = words.find(keyword) else { continue };
            let counts = Self::counts_in(view, words, number, self.needs_hits)?;
            all.documents += counts.documents;
            all.hits += counts.hits;
        }
        Ok(all)
    }

    fn expand(&mut self, pattern: &str) -> Result<Result<Vec<Expansion>, String>> {
        let pattern = match Wildcard::new(pattern, self.analyzer.settings()) {
            Ok(pattern) => pattern,
            Err(warning) => return Ok(Err(warning)),
        };
        if pattern.is_nothing() {
            return Ok(Ok(Vec::new()));
        }
        let mut found: BTreeMap<String, Counts> = BTreeMap::new();
        for (view, words) in self.segments() {
            let mut numbers = Vec::new();
            let mut note = |keyword: &str, number| {
                if pattern.matches(keyword) {
                    numbers.push((keyword.to_owned(), number));
                }
            };
            match pattern.prefix() {
                "" => words.for_each_with_piece(pattern.longest_piece(), &mut note),
                prefix => words.for_each_with_prefix(prefix, &mut note),
            }
            for (keyword, number) in numbers {
                let counts = Self::counts_in(view, words, number, true)?;
                let all = found.entry(keyword).or_default();
                all.documents += counts.documents;
                all.hits += counts.hits;
            }
        }
        let live = found.into_iter().filter(|(_, counts)| counts.documents > 0);
        Ok(Ok(live.map(|(keyword, counts)| Expansion { keyword, counts }).collect()))
    }

    fn union(
        &mut self,
        keywords: &[String],
        counts: Option<&dyn Fn(Place) -> bool>,
    ) -> Result<u64> {
        let mut all = 0;
        for (view, words) in self.segments() {
            let mut docs = Bitmap::new(view.segment.doc_count());
            for number in keywords.iter().filter_map(|keyword| words.find(keyword)) {
                insert(words, number, counts, &mut docs).map_err(corrupt)?;
            }
            all += count_live(&DocSet::Bits(docs.into()), view);
        }
        Ok(all)
    }
}

/// Adds the documents in which the keyword stands at a place that counts.
fn insert(
    words: &WordsIndex,
    number: u32,
    counts: Option<&dyn Fn(Place) -> bool>,
    docs: &mut Bitmap,
) -> remora_index::Result<()> {
    let Some(counts) = counts else {
        return words.for_each_posting(number, |doc, _| {
            docs.insert(doc);
        });
    };
    let mut cursor = words.cursor(number)?;
    let mut next = cursor.advance(0)?;
    while let Some(doc) = next {
        let mut is_counted = false;
        cursor.places(|place| is_counted |= counts(place))?;
        if is_counted {
            docs.insert(doc);
        }
        next = cursor.advance(doc + 1)?;
    }
    Ok(())
}

fn corrupt(error: IndexError) -> WordsError {
    WordsError::Query(error.to_string())
}
