//! The keywords of a whole table, with the counts of its live rows.

use std::{collections::BTreeMap, ops::ControlFlow};

use remora_index::{Bitmap, DocSet, words::WordsIndex};
use remora_words::{
    WordsError,
    analysis::{Analyzer, is_mark},
    hits::PackedPosition,
    matching::{Counts, Expansion, Vocabulary},
    query::Wildcard,
};

use super::{refused, until};
use crate::{
    Error, Result, WordsDef,
    interrupt::{InterruptCheck, InterruptTicker},
    keyword_statistics::{MAX_EXPANDED, MAX_EXPANDED_BYTES, too_many_expanded},
    read::docs::count_live,
    snapshot::{SegmentView, TableView},
};

/// The vocabulary of a table at one moment.
pub(super) struct ViewVocabulary<'v> {
    view: &'v TableView,
    id: u32,
    analyzer: &'v Analyzer,
    /// Whether the occurrences of plain keywords are counted too, which reads all their documents.
    needs_hits: bool,
    looks: InterruptTicker,
    /// The number of keywords, and of their bytes, to which wildcards may still expand.
    room: (usize, usize),
    /// The first error while a query was planned.
    failed: Option<Error>,
}

/// Deleted documents that are fewer than one in so many of a keyword's are looked for one by one; all in tests, whose
/// tables are small.
const FEW_SHARE: u32 = if cfg!(test) { 1 } else { 16 };

impl<'v> ViewVocabulary<'v> {
    pub(super) fn new(
        view: &'v TableView,
        words: &WordsDef,
        analyzer: &'v Analyzer,
        unless: &InterruptCheck,
    ) -> Self {
        let looks = InterruptTicker::new(unless);
        let (id, room) = (words.segment_id(), (usize::MAX, usize::MAX));
        Self { view, id, analyzer, needs_hits: false, looks, room, failed: None }
    }

    /// The vocabulary of one part of a table, whose expansions of wildcards are sent to others: their length is
    /// limited.
    pub(super) fn of_a_part(self) -> Self {
        Self { room: (MAX_EXPANDED, MAX_EXPANDED_BYTES), ..self }
    }

    /// The vocabulary with counts of occurrences of plain keywords.
    pub(super) fn with_hits(self) -> Self {
        Self { needs_hits: true, ..self }
    }

    /// The segments that index the words.
    fn segments(&self) -> impl Iterator<Item = (&'v SegmentView, &'v WordsIndex)> + use<'v> {
        let (id, view) = (self.id, self.view);
        view.segments.iter().filter_map(move |view| Some((view, view.segment.words(id)?)))
    }

    /// The keywords of each field in all live rows. Cost: one step for each deleted row and field.
    pub(super) fn totals(&mut self, fields: usize) -> Result<Vec<u64>> {
        let mut totals = vec![0_u64; fields];
        for (view, words) in self.segments() {
            for (field, (total, of_all)) in totals.iter_mut().zip(words.totals()).enumerate() {
                let mut gone = 0;
                for doc in view.deleted.iter().flat_map(|deleted| deleted.iter()) {
                    self.looks.step()?;
                    gone += u64::from(words.count(doc, field));
                }
                *total += of_all.saturating_sub(gone);
            }
        }
        Ok(totals)
    }

    /// The counts of a keyword, given by its number, in a segment. Occurrences are counted only if `needs_hits`.
    fn counts_in(
        &mut self,
        view: &SegmentView,
        words: &WordsIndex,
        number: u32,
        needs_hits: bool,
    ) -> Result<Counts> {
        let mut counts = Counts::default();
        self.looks.step()?;
        if !needs_hits {
            let all = words.document_count(number)?;
            counts.documents = match &view.deleted {
                None => all.into(),
                Some(deleted) if view.deleted_count < all / FEW_SHARE => {
                    let gone = words.having(number, deleted.iter().collect())?;
                    u64::from(all) - gone.len() as u64
                }
                Some(_) => count_live(&words.documents(number)?, view),
            };
            return Ok(counts);
        }
        let mut failed = None;
        let looks = &mut self.looks;
        words.for_each_posting(number, |doc, hits: u32| {
            if !view.is_deleted(doc) {
                counts.documents += 1;
                counts.hits += u64::from(hits);
            }
            until(looks.step(), &mut failed)
        })?;
        failed.map_or(Ok(counts), Err)
    }

    /// The counts of a keyword in the table.
    pub(super) fn counts_of(&mut self, keyword: &str) -> Result<Counts> {
        let mut all = Counts::default();
        for (view, words) in self.segments() {
            let Some(number) = words.find(keyword) else { continue };
            let counts = self.counts_in(view, words, number, self.needs_hits)?;
            all.documents += counts.documents;
            all.hits += counts.hits;
        }
        Ok(all)
    }

    /// Calls `visit` with each keyword of live documents that a query may name, and the number of these documents, in
    /// order.
    pub(super) fn for_each(&mut self, visit: &mut dyn FnMut(&str, u64)) -> Result<()> {
        let segments: Vec<_> = self.segments().collect();
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        let is_only = segments.len() == 1;
        for (view, words) in segments {
            let mut failed = None;
            words.for_each_with_prefix("", |keyword, number| {
                if is_mark(keyword) {
                    return ControlFlow::Continue(());
                }
                let mut note = |documents| match (is_only, documents) {
                    (true, 0) => {}
                    (true, documents) => visit(keyword, documents),
                    (false, _) => *all.entry(keyword.to_owned()).or_default() += documents,
                };
                let counts = self.counts_in(view, words, number, false);
                until(counts.map(|counts| note(counts.documents)), &mut failed)
            });
            failed.map_or(Ok(()), Err)?;
        }
        for (word, count) in all.iter().filter(|(_, count)| **count > 0) {
            self.looks.step()?;
            visit(word, *count);
        }
        Ok(())
    }

    /// The keywords that match a pattern, in order.
    pub(super) fn expanded(&mut self, pattern: &Wildcard) -> Result<Vec<Expansion>> {
        let mut found: BTreeMap<String, Counts> = BTreeMap::new();
        for (view, words) in self.segments() {
            let (mut numbers, mut failed) = (Vec::new(), None);
            let (looks, mut room) = (&mut self.looks, self.room);
            let mut note = |keyword: &str, number| {
                if pattern.matches(keyword) {
                    match take(room, keyword) {
                        Some(left) => room = left,
                        None => return until(Err(too_many_expanded()), &mut failed),
                    }
                    numbers.push((keyword.to_owned(), number));
                }
                until(looks.step(), &mut failed)
            };
            match pattern.prefix() {
                "" => words.for_each_with_piece(pattern.longest_piece(), &mut note),
                prefix => words.for_each_with_prefix(prefix, &mut note),
            }
            failed.map_or(Ok(()), Err)?;
            for (keyword, number) in numbers {
                let counts = self.counts_in(view, words, number, true)?;
                let all = found.entry(keyword).or_default();
                all.documents += counts.documents;
                all.hits += counts.hits;
            }
        }
        for keyword in found.keys() {
            self.room = take(self.room, keyword).ok_or_else(too_many_expanded)?;
        }
        let live = found.into_iter().filter(|(_, counts)| counts.documents > 0);
        Ok(live.map(|(keyword, counts)| Expansion { keyword, counts }).collect())
    }

    /// The number of live documents that contain any of the keywords.
    fn united(
        &mut self,
        keywords: &[String],
        counts: Option<&dyn Fn(PackedPosition) -> bool>,
    ) -> Result<u64> {
        let mut all = 0;
        for (view, words) in self.segments() {
            let mut docs = Bitmap::new(view.segment.doc_count());
            for keyword in keywords {
                self.looks.step()?;
                let Some(number) = words.find(keyword) else { continue };
                insert(words, number, counts, &mut docs, &mut self.looks)?;
            }
            all += count_live(&DocSet::Bits(docs.into()), view);
        }
        Ok(all)
    }

    /// Keeps the error of a result until [`ViewVocabulary::error`] returns it.
    fn noted<T>(&mut self, result: Result<T>) -> remora_words::Result<T> {
        result.map_err(|error| {
            let message = error.to_string();
            self.failed = Some(error);
            WordsError::Query(message)
        })
    }

    /// The error that made planning fail.
    pub(super) fn error(&mut self, error: WordsError) -> Error {
        self.failed.take().unwrap_or_else(|| refused(error))
    }
}

impl Vocabulary for ViewVocabulary<'_> {
    fn total(&self) -> u64 {
        self.view.live_count()
    }

    fn keyword(&self, word: &str, is_exact: bool) -> Option<String> {
        self.analyzer.keyword(word, is_exact)
    }

    fn counts(&mut self, keyword: &str) -> remora_words::Result<Counts> {
        let counts = self.counts_of(keyword);
        self.noted(counts)
    }

    fn expand(&mut self, pattern: &str) -> remora_words::Result<Result<Vec<Expansion>, String>> {
        let pattern = match Wildcard::new(pattern, self.analyzer.settings()) {
            Ok(pattern) => pattern,
            Err(warning) => return Ok(Err(warning)),
        };
        if pattern.is_nothing() {
            return Ok(Ok(Vec::new()));
        }
        let expanded = self.expanded(&pattern);
        self.noted(expanded).map(Ok)
    }

    fn union(
        &mut self,
        keywords: &[String],
        counts: Option<&dyn Fn(PackedPosition) -> bool>,
    ) -> remora_words::Result<u64> {
        let united = self.united(keywords, counts);
        self.noted(united)
    }
}

/// The room for keywords and bytes that is left after one more; `None` if there is too little.
fn take((keywords, bytes): (usize, usize), keyword: &str) -> Option<(usize, usize)> {
    Some((keywords.checked_sub(1)?, bytes.checked_sub(keyword.len())?))
}

/// Adds the documents in which the keyword has a position that counts.
fn insert(
    words: &WordsIndex,
    number: u32,
    counts: Option<&dyn Fn(PackedPosition) -> bool>,
    docs: &mut Bitmap,
    looks: &mut InterruptTicker,
) -> Result<()> {
    let Some(counts) = counts else {
        let mut failed = None;
        words.for_each_posting(number, |doc, _| {
            docs.insert(doc);
            until(looks.step(), &mut failed)
        })?;
        return failed.map_or(Ok(()), Err);
    };
    let mut cursor = words.cursor(number)?;
    let mut next = cursor.advance(0)?;
    while let Some(doc) = next {
        looks.step()?;
        let mut is_counted = false;
        cursor.places(|place| is_counted |= counts(place))?;
        if is_counted {
            docs.insert(doc);
        }
        next = cursor.advance(doc + 1)?;
    }
    Ok(())
}
