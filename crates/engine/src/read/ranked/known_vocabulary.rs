//! The keywords of a table with parts in several places: with statistics that are known already, and statistics that
//! its parts add.

use remora_words::{
    WordsError,
    analysis::Analyzer,
    hits::PackedPosition,
    matching::{Counts, Expansion, Matcher, Vocabulary},
    query::Wildcard,
};

use super::{Ranked, is_by_expression, names, refused, vocabulary::ViewVocabulary, words_of};
use crate::{
    Error, KeywordQuery, KeywordStatistics, RequestPart, Result, Schema, WantedStatistics,
    interrupt::InterruptCheck, snapshot::TableView,
};

/// A vocabulary of statistics that are known already. It records the missing ones.
pub(super) struct KnownVocabulary<'s> {
    statistics: &'s KeywordStatistics,
    analyzer: &'s Analyzer,
    wanted: WantedStatistics,
    /// The number of sets of keywords that were asked for.
    sets: usize,
    /// The number of those whose positions do not matter. They all come before the others.
    first_sets: usize,
}

impl<'s> KnownVocabulary<'s> {
    pub(super) fn new(statistics: &'s KeywordStatistics, analyzer: &'s Analyzer) -> Self {
        let wanted = WantedStatistics::default();
        Self { statistics, analyzer, wanted, sets: 0, first_sets: 0 }
    }

    /// What is missing, as far as that is known before it is there: sets are of keywords that are, and in which order
    /// those are asked for that stand at certain places follows from the others.
    pub(super) fn missing(mut self) -> WantedStatistics {
        if self.wanted.keywords.is_empty() && self.wanted.patterns.is_empty() {
            let known = self.statistics.unions.len();
            let end = if self.first_sets > known { self.first_sets } else { self.sets };
            self.wanted.unions = end.saturating_sub(known);
        }
        self.wanted
    }

    /// The number of the next set of keywords, and its count if that is known.
    fn set(&mut self, is_anywhere: bool) -> (usize, Option<u64>) {
        let set = self.sets;
        self.sets += 1;
        if is_anywhere {
            self.first_sets = self.sets;
        }
        (set, self.statistics.unions.get(set).copied())
    }
}

impl Vocabulary for KnownVocabulary<'_> {
    fn total(&self) -> u64 {
        self.statistics.documents
    }

    fn keyword(&self, word: &str, is_exact: bool) -> Option<String> {
        self.analyzer.keyword(word, is_exact)
    }

    fn counts(&mut self, keyword: &str) -> remora_words::Result<Counts> {
        let known = self.statistics.counts_of(keyword);
        let keywords = &mut self.wanted.keywords;
        if known.is_none() && !keywords.iter().any(|noted| noted == keyword) {
            keywords.push(keyword.to_owned());
        }
        Ok(known.unwrap_or_default())
    }

    fn expand(&mut self, pattern: &str) -> remora_words::Result<Result<Vec<Expansion>, String>> {
        match Wildcard::new(pattern, self.analyzer.settings()) {
            Ok(wildcard) if wildcard.is_nothing() => return Ok(Ok(Vec::new())),
            Ok(_) => {}
            Err(warning) => return Ok(Err(warning)),
        }
        let Some(known) = self.statistics.expansions.get(pattern) else {
            let patterns = &mut self.wanted.patterns;
            if !patterns.iter().any(|noted| noted == pattern) {
                patterns.push(pattern.to_owned());
            }
            return Ok(Ok(Vec::new()));
        };
        let expansion = |(keyword, documents, hits): &(String, u64, u64)| Expansion {
            keyword: keyword.clone(),
            counts: Counts { documents: *documents, hits: *hits },
        };
        Ok(Ok(known.iter().map(expansion).collect()))
    }

    fn union(
        &mut self,
        _: &[String],
        counts: Option<&dyn Fn(PackedPosition) -> bool>,
    ) -> remora_words::Result<u64> {
        Ok(self.set(counts.is_none()).1.unwrap_or(0))
    }
}

/// The same for one part of the table. It counts the sets of keywords that come after the known ones.
struct Counting<'s, 'v> {
    known_words: KnownVocabulary<'s>,
    vocabulary: ViewVocabulary<'v>,
    counted: Vec<u64>,
    wanted: usize,
}

impl Vocabulary for Counting<'_, '_> {
    fn total(&self) -> u64 {
        self.known_words.total()
    }

    fn keyword(&self, word: &str, is_exact: bool) -> Option<String> {
        self.known_words.keyword(word, is_exact)
    }

    fn counts(&mut self, keyword: &str) -> remora_words::Result<Counts> {
        self.known_words.counts(keyword)
    }

    fn expand(&mut self, pattern: &str) -> remora_words::Result<Result<Vec<Expansion>, String>> {
        self.known_words.expand(pattern)
    }

    fn union(
        &mut self,
        keywords: &[String],
        counts: Option<&dyn Fn(PackedPosition) -> bool>,
    ) -> remora_words::Result<u64> {
        if let (_, Some(known)) = self.known_words.set(counts.is_none()) {
            return Ok(known);
        }
        if self.counted.len() >= self.wanted {
            return Ok(0);
        }
        let counted = self.vocabulary.union(keywords, counts)?;
        self.counted.push(counted);
        Ok(counted)
    }
}

impl Ranked {
    /// The statistics that are missing to plan a query.
    pub(crate) fn missing(
        schema: &Schema,
        asked: &KeywordQuery,
        statistics: &KeywordStatistics,
        needs_hits: bool,
    ) -> Result<WantedStatistics> {
        let words = words_of(schema)?;
        let analyzer = words.analyzer()?;
        let parsed = asked.parse(&analyzer, &names(schema, words)).map_err(refused)?;
        let mut known_words = KnownVocabulary::new(statistics, &analyzer);
        if let Some(root) = &parsed.root {
            Matcher::new(root, &mut known_words, asked.idf).map_err(refused)?;
        }
        let totals = is_by_expression(asked) && statistics.totals.is_none();
        Ok(WantedStatistics { totals, needs_hits, ..known_words.missing() })
    }

    /// Whether the keywords that a part gives for the wildcards really match them.
    pub(crate) fn are_expansions(
        schema: &Schema,
        wanted: &WantedStatistics,
        answer: &KeywordStatistics,
    ) -> Result<bool> {
        if wanted.patterns.is_empty() {
            return Ok(true);
        }
        let analyzer = words_of(schema)?.analyzer()?;
        for pattern in &wanted.patterns {
            let wildcard = Wildcard::new(pattern, analyzer.settings());
            let wildcard = wildcard.map_err(|warning| refused(WordsError::Query(warning)))?;
            let mut found = answer.expansions.get(pattern).into_iter().flatten();
            if found.any(|(keyword, ..)| wildcard.is_nothing() || !wildcard.matches(keyword)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The statistics that a part of a table adds. `asked` has those that are known.
    pub(crate) fn counted(
        view: &TableView,
        asked: &KeywordQuery,
        wanted: &WantedStatistics,
        unless: &InterruptCheck,
    ) -> Result<KeywordStatistics> {
        let words = words_of(&view.schema)?;
        let analyzer = words.analyzer()?;
        let mut vocabulary = ViewVocabulary::new(view, words, &analyzer, unless).of_a_part();
        if wanted.needs_hits {
            vocabulary = vocabulary.with_hits();
        }
        let mut counted =
            KeywordStatistics { documents: view.live_count(), ..KeywordStatistics::default() };
        for keyword in &wanted.keywords {
            let Counts { documents, hits } = vocabulary.counts_of(keyword)?;
            counted.counts.insert(keyword.clone(), (documents, hits));
        }
        for pattern in &wanted.patterns {
            let wildcard = Wildcard::new(pattern, analyzer.settings());
            let wildcard = wildcard.map_err(|warning| refused(WordsError::Query(warning)))?;
            let found = match wildcard.is_nothing() {
                true => Vec::new(),
                false => vocabulary.expanded(&wildcard)?,
            };
            let pair = |it: Expansion| (it.keyword, it.counts.documents, it.counts.hits);
            counted.expansions.insert(pattern.clone(), found.into_iter().map(pair).collect());
        }
        let fields = names(&view.schema, words);
        if wanted.totals {
            counted.totals = Some(vocabulary.totals(fields.len())?);
        }
        if wanted.unions > 0 {
            let nothing = KeywordStatistics::default();
            let known = asked.statistics.as_deref().unwrap_or(&nothing);
            let parsed = asked.parse(&analyzer, &fields).map_err(refused)?;
            let known_words = KnownVocabulary::new(known, &analyzer);
            let (counts, wanted) = (Vec::new(), wanted.unions);
            let mut counting = Counting { known_words, vocabulary, counted: counts, wanted };
            if let Some(root) = &parsed.root {
                let planned = Matcher::new(root, &mut counting, asked.idf);
                planned.map_err(|error| counting.vocabulary.error(error))?;
            }
            if counting.counted.len() != wanted {
                return Err(incomplete());
            }
            counted.unions = counting.counted;
        }
        Ok(counted)
    }
}

/// The error for statistics that do not suffice to plan a query.
pub(super) fn incomplete() -> Error {
    let message = "the keyword statistics sent with the query are not those that it needs";
    Error::request(RequestPart::Expression, message)
}
