//! The top k rows of a ranked query, without weighing the others.
//!
//! [`super::bounds`] gives an upper bound on the weight of a document: from how many of the query's words it has, and
//! in which fields. A run of words in a field is no longer than that, and BM25 is at most the sum of the words' idf.
//! Documents with more of the words are taken first ([`super::tiers`]), among them those with words in several fields.
//! Documents below the threshold ([`super::top_k`]) are skipped. Within a tier, occurrences alone give BM25, so
//! positions are read only of documents that can still win; they bound the length of runs ([`super::shifts`]), so that
//! few more documents are weighed than become one of the best. For frequent words, lists of pairs bound runs before that
//! ([`super::neighbours`]), and how often the rarer words occur bounds BM25 ([`super::impacts`]). The documents of a
//! proximity are taken in the order of their bounds ([`super::groups`]). No answer depends on any of this.

use std::{cell::RefCell, cmp::Reverse};

use remora_index::{DocSet, words::WordsIndex};
use remora_words::matching::{Candidates, Contributors, Matcher, Term};

use super::{
    Ranked, RankedRequest, Weighing, Weights,
    bounds::{DocumentFacts, Keyword, MAX_FIELDS, Points, WeightBounds},
    groups::Groups,
    impacts::Impacts,
    neighbours::Neighbours,
    parallel,
    passes::{Pass, TierSelection},
    shifts::Shifts,
    tiers::{MAX_WORDS, Set, Tiers},
    top_k::{TopRows, TopWeights},
    until,
    walk::{Fields, Levels, TierWalk},
};
use crate::{
    Result,
    interrupt::InterruptTicker,
    snapshot::{SegmentView, TableView},
};

/// If no more rows than this match, all are weighed without pruning. Fewer in tests, whose tables are small.
const FEW_ROWS: u64 = if cfg!(test) { 3 } else { 64 };

/// The number of words whose presence in a document can be checked in the time of reading one posting.
const WORDS_PER_POSTING: usize = 8;

/// The most words for which bounds are computed if all documents weigh the same.
const FEW_EVEN: usize = if cfg!(test) { 2 } else { 16 };

/// The number of documents in a block of postings.
const BLOCK: usize = 128;

/// For so many occurrences of a word the bounds are computed in advance.
const FEW_OCCURRENCES: usize = 32;

/// The most bytes per segment for knowing which fields contain which words.
const MOST_LEVEL_BYTES: u64 = 64 << 20;

/// For this many documents or fewer, it is not looked up which fields contain the words.
const FEW_DOCUMENTS: u32 = if cfg!(test) { 8 } else { 512 };

/// The documents of a segment that are candidates for the best rows.
enum CandidateDocs<'d> {
    /// These documents, none of which is deleted.
    Docs(&'d DocSet),
    /// All documents that contain any of the words.
    Any,
}

impl Ranked {
    /// The best of these rows, by segment and ascending documents; `None` if all of them have to be weighed.
    pub(super) fn best(
        &self,
        view: &TableView,
        docs: &[DocSet],
        wanted: RankedRequest,
    ) -> Result<Option<Vec<Weights>>> {
        let (Some(matcher), Some(rows @ 1..)) = (&self.matcher, wanted.rows) else {
            return Ok(None);
        };
        let all: u64 = docs.iter().map(|docs| u64::from(docs.count())).sum();
        if all <= FEW_ROWS.max(rows as u64) {
            return Ok(None);
        }
        let Some(contributors) = self.contributors(matcher) else { return Ok(None) };
        let among: Vec<CandidateDocs<'_>> = docs.iter().map(CandidateDocs::Docs).collect();
        self.run(view, (matcher, contributors), &among, wanted).map(Some)
    }

    /// The best rows of the whole query, by segment and ascending documents, without visiting all rows that it finds;
    /// `None` if the query has no keywords.
    pub(crate) fn first(
        &self,
        view: &TableView,
        wanted: RankedRequest,
    ) -> Result<Option<Vec<Weights>>> {
        let (Some(matcher), Some(1..)) = (&self.matcher, wanted.rows) else { return Ok(None) };
        let contributors = self.contributors(matcher);
        let (candidates, is_exact) = matcher.candidates();
        let parts = match &candidates {
            Candidates::Any(parts) => &parts[..],
            Candidates::Term(term) if matcher.terms().get(*term).is_some_and(is_keyword) => {
                std::slice::from_ref(&candidates)
            }
            _ => &[],
        };
        let is_of_terms = |contributors: &Contributors| {
            let is_there = |term| parts.contains(&Candidates::Term(term));
            contributors.words.iter().all(|word| is_there(word.term))
                && parts.iter().all(|part| matches!(part, Candidates::Term(_)))
        };
        if let Some(contributors) = contributors.as_ref().filter(|it| is_exact && is_of_terms(it)) {
            let among: Vec<CandidateDocs<'_>> =
                view.segments.iter().map(|_| CandidateDocs::Any).collect();
            return self.run(view, (matcher, contributors.clone()), &among, wanted).map(Some);
        }
        let candidates = view.segments.iter().map(|view| match view.segment.words(self.id) {
            Some(words) => {
                let docs = self.set(matcher, words, &candidates, view.segment.doc_count())?;
                let docs = if is_exact { docs } else { self.narrowed(matcher, words, docs)? };
                Ok(docs.without(view.deleted.as_ref()))
            }
            None => Ok(DocSet::empty()),
        });
        let candidates: Vec<DocSet> = candidates.collect::<Result<_>>()?;
        match contributors {
            Some(contributors) => {
                let among: Vec<CandidateDocs<'_>> =
                    candidates.iter().map(CandidateDocs::Docs).collect();
                self.run(view, (matcher, contributors), &among, wanted).map(Some)
            }
            None => {
                let segments = view.segments.iter().zip(&candidates);
                let all = segments.map(|(segment, docs)| self.all_weights(segment, docs));
                all.collect::<Result<_>>().map(Some)
            }
        }
    }

    /// The words from which upper bounds of weights follow; `None` if no bounds follow.
    fn contributors(&self, matcher: &Matcher) -> Option<Contributors> {
        let mut contributors = matcher.contributors()?;
        if self.blends && contributors.window.is_none() && !contributors.are_hits {
            // The last word of a phrase can have the position of the first one.
            contributors.window = Some(1);
        }
        let is_counted = contributors.is_all || contributors.words.len() <= MAX_WORDS;
        // If all weigh the same, bounds of many words cost more than they save.
        let is_worth = !self.scorer.is_even() || contributors.words.len() <= FEW_EVEN;
        // Only words with a negative idf can make a weight so low that it wraps around.
        let taken: f32 = contributors.words.iter().map(|word| (-word.idf).max(0.0)).sum();
        let lowest = f64::from(taken + 1.0) * 1000.0 * f64::from(self.table_weight);
        let is_bounded = lowest < f64::from(i32::MAX);
        // The bounds assume one table weight for all rows.
        let is_even = self.segment_weights.is_empty();
        (is_counted && is_worth && is_bounded && is_even && self.table_weight >= 1)
            .then_some(contributors)
    }

    fn run(
        &self,
        view: &TableView,
        (matcher, contributors): (&Matcher, Contributors),
        among: &[CandidateDocs<'_>],
        wanted: RankedRequest,
    ) -> Result<Vec<Weights>> {
        let bounds = WeightBounds::new(contributors, &self.scorer, self.table_weight, self.fields);
        let top = TopWeights::new(wanted.rows.unwrap_or(usize::MAX), wanted.by_key);
        let postings = among.iter().map(|among| match among {
            CandidateDocs::Docs(docs) => u64::from(docs.count()),
            CandidateDocs::Any => 0,
        });
        let postings = match among.first() {
            Some(CandidateDocs::Any) => matcher.terms().iter().map(|term| term.documents).sum(),
            _ => postings.sum(),
        };
        // The segment with the most documents first, so that the threshold is high for the others.
        let mut order: Vec<usize> = (0..among.len()).collect();
        order.sort_by_cached_key(|&at| match &among[at] {
            CandidateDocs::Docs(docs) => Reverse(docs.count()),
            CandidateDocs::Any => Reverse(view.segments[at].segment.doc_count()),
        });
        let found = parallel::each(order.len(), postings, |nth| {
            let at = order[nth];
            let view = &view.segments[at];
            let Some(words) = view.segment.words(self.id) else { return Ok(Weights::new()) };
            Segment::new(self, view, (matcher, words), &bounds)?.best(&among[at], &top)
        })?;
        let threshold = top.threshold();
        let mut best: Vec<Weights> = vec![Weights::new(); among.len()];
        for (&at, mut found) in order.iter().zip(found) {
            found.retain(|&(_, weight)| i64::from(weight) >= threshold);
            best[at] = found;
        }
        Ok(best)
    }
}

/// Whether a term is one keyword.
fn is_keyword(term: &Term) -> bool {
    term.keywords.len() == 1
}

struct Segment<'a> {
    ranked: &'a Ranked,
    view: &'a SegmentView,
    matcher: &'a Matcher,
    words: &'a WordsIndex,
    bounds: &'a WeightBounds<'a>,
    weighing: Weighing<'a>,
    /// The words that the current document contains.
    present: Vec<usize>,
    /// The most that each of them adds to the sum.
    most: Vec<f32>,
    /// How often rarer words stand in documents.
    impacts: Option<Impacts>,
    /// For each word, a bit for each of 64 neighbouring documents that says whether it contains the word; empty if the
    /// documents are not known as bits.
    of_near: Vec<u64>,
    /// The number of these 64 documents.
    near: Option<usize>,
    /// Whether each term is one keyword.
    are_keywords: bool,
    /// Set if positions of words bound the length of runs before a document is weighed.
    shifts: Option<Shifts>,
    /// Set if the query is a proximity whose runs are made of its groups.
    groups: Option<Groups>,
}

impl<'a> Segment<'a> {
    fn new(
        ranked: &'a Ranked,
        view: &'a SegmentView,
        (matcher, words): (&'a Matcher, &'a WordsIndex),
        bounds: &'a WeightBounds<'a>,
    ) -> Result<Self> {
        let weighing = Weighing::new(ranked, matcher, words, view)?;
        // An expanded wildcard may contain another word of the query, and a blended word may share the position of its
        // part.
        let keyword = |term: usize| {
            let term = matcher.terms().get(term)?;
            let is_plain = |keyword: &str| keyword.chars().all(char::is_alphanumeric);
            match &term.keywords[..] {
                [keyword] if !term.is_union && !ranked.blends && is_plain(keyword) => {
                    Some(Keyword::Plain)
                }
                [_] => Some(Keyword::Other),
                _ => None,
            }
        };
        let are_keywords = bounds.terms.iter().all(|&(term, _)| keyword(term).is_some());
        let shifts = bounds.runs_are_shifts(keyword).then(Shifts::new);
        let groups = bounds.runs_are_groups(keyword);
        let groups = groups.then(|| Groups::new(matcher, bounds, ranked.fields)).flatten();
        Ok(Self {
            ranked,
            view,
            matcher,
            words,
            bounds,
            weighing,
            present: Vec::new(),
            most: Vec::new(),
            impacts: None,
            of_near: Vec::new(),
            near: None,
            are_keywords,
            shifts,
            groups,
        })
    }

    fn best(&mut self, among: &CandidateDocs<'_>, top: &TopWeights) -> Result<Weights> {
        let mut top = TopRows::new(top);
        let documents = self.view.segment.doc_count();
        let contributors = &self.bounds.contributors;
        let count = contributors.words.len();
        let is_few = matches!(among, CandidateDocs::Docs(docs) if docs.count() <= FEW_DOCUMENTS);
        if let (CandidateDocs::Docs(docs), Some(groups), false) = (among, &mut self.groups, is_few)
            && groups.best(docs, &mut self.weighing, (self.words, self.bounds), &mut top)?
        {
            return Ok(top.finish());
        }
        let levels = if is_few { None } else { self.levels()? };
        let (docs, deleted) = match among {
            CandidateDocs::Docs(docs) => (Some(*docs), None),
            CandidateDocs::Any => (None, self.view.deleted.as_deref()),
        };
        let is_single = count == 1 && self.is_plain();
        let is_same = contributors.is_all || is_single;
        let tiers = match is_same {
            true => Tiers::same(documents, count),
            false => self.tiers(documents)?,
        };
        if !is_few && !tiers.are_lists() {
            let candidates = docs.map_or(documents, DocSet::count);
            let (numbers, looks) = (self.numbers(), &mut self.weighing.document.looks);
            let of = (&numbers[..], candidates);
            self.impacts = Some(Impacts::read(self.words, self.bounds, of, looks)?);
        }
        let neighbours = if is_few { None } else { self.neighbours(&tiers, among)? };
        let neighbours = neighbours.as_ref();
        let least = if is_same { count } else { 1 };
        for count in (least..=count).rev() {
            // The loop goes on: because of negative idf, documents with fewer words can weigh more.
            if self.bounds.of_words(count, None) < top.threshold() {
                continue;
            }
            let of_fields = levels.as_ref().map_or(&[][..], |levels| &levels.tiers[..]);
            let parts: &[TierSelection] = if levels.is_some() {
                &[TierSelection::With, TierSelection::Without]
            } else {
                &[TierSelection::Every]
            };
            for &part in parts {
                let pass = Pass {
                    tiers: &tiers,
                    count,
                    among: docs,
                    deleted,
                    levels: of_fields,
                    part,
                    neighbours,
                };
                let points = RefCell::new(Points::new(count));
                let walk = TierWalk { pass, levels: levels.as_ref(), points };
                let is_listed = matches!(among, CandidateDocs::Docs(DocSet::List(_)));
                // Few documents have words in another field.
                let is_with = part == TierSelection::With;
                if count == 1 && !is_listed && !is_with && self.is_plain() {
                    self.by_occurrences(&walk, &mut top)?;
                } else {
                    self.walk(&walk, &mut top)?;
                }
            }
        }
        Ok(top.finish())
    }

    /// Counts for each document how many of the words it contains.
    fn tiers(&self, documents: u32) -> Result<Tiers<'a>> {
        let of = |&(term, _): &(usize, usize)| {
            self.ranked.unless.check()?;
            if let Some(Term { keywords, .. }) = self.matcher.terms().get(term)
                && let [keyword] = &keywords[..]
                && let Some(number) = self.words.find(keyword)
                && let Some(words) = self.words.bits(number)?
            {
                return Ok(Set::Words(words));
            }
            self.ranked.of_term(self.matcher, self.words, term, documents).map(Set::Docs)
        };
        let sets: Vec<Set<'a>> = self.bounds.terms.iter().map(of).collect::<Result<_>>()?;
        let times: Vec<usize> = self.bounds.terms.iter().map(|&(_, times)| times).collect();
        Ok(Tiers::new(documents, sets, &times))
    }

    /// Counts the pairs of words that documents may have, if that bounds runs.
    fn neighbours(
        &self,
        tiers: &Tiers<'_>,
        among: &CandidateDocs<'_>,
    ) -> Result<Option<Neighbours>> {
        let candidates = match among {
            CandidateDocs::Docs(docs) => docs.count(),
            CandidateDocs::Any => tiers.documents(),
        };
        if self.shifts.is_none() {
            return Ok(None);
        }
        let (numbers, unless) = (self.numbers(), &self.ranked.unless);
        Neighbours::new(self.words, self.bounds, &numbers, (tiers, candidates), unless)
    }

    /// The numbers of the terms' keywords; `None` for a term of several, or of one that the segment does not have.
    fn numbers(&self) -> Vec<Option<u32>> {
        let number = |&(term, _): &(usize, usize)| {
            let [keyword] = &self.matcher.terms().get(term)?.keywords[..] else { return None };
            self.words.find(keyword)
        };
        self.bounds.terms.iter().map(number).collect()
    }

    /// Looks up which fields contain which words, if weights depend on that.
    fn levels(&self) -> Result<Option<Levels>> {
        let (bounds, documents) = (self.bounds, self.view.segment.doc_count());
        let Some(longest) = self.words.longest_field() else { return Ok(None) };
        let count = self.words.fields();
        let is_useful = self.ranked.scorer.tells_fields_apart() && count <= MAX_FIELDS;
        if !is_useful || bounds.contributors.window.is_some() {
            return Ok(None);
        }
        let bytes = (bounds.terms.len() * (count - 1)) as u64 * u64::from(documents) / 8;
        if bounds.terms.len() > MAX_WORDS || bytes > MOST_LEVEL_BYTES {
            return Ok(None);
        }
        let times: Vec<usize> = bounds.terms.iter().map(|&(_, times)| times).collect();
        let fields: Vec<usize> = (0..count).filter(|&field| field != longest).collect();
        let mut tiers = Vec::with_capacity(fields.len());
        for &field in &fields {
            let mut sets = Vec::with_capacity(bounds.terms.len());
            for &(term, _) in &bounds.terms {
                let Some(term) = self.matcher.terms().get(term) else { return Ok(None) };
                let [keyword] = &term.keywords[..] else { return Ok(None) };
                self.ranked.unless.check()?;
                sets.push(match self.words.find(keyword) {
                    Some(number) => match self.words.documents_in(number, field)? {
                        Some(docs) => Set::Docs(docs),
                        None => return Ok(None),
                    },
                    None => Set::Docs(DocSet::empty()),
                });
            }
            tiers.push(Tiers::new(documents, sets, &times));
        }
        Ok(Some(Levels { longest, fields, tiers }))
    }

    /// Whether each word is one keyword and occurs once in the query.
    fn is_plain(&self) -> bool {
        let terms = &self.bounds.terms;
        terms.iter().all(|&(term, times)| {
            times == 1 && self.matcher.terms().get(term).is_some_and(is_keyword)
        })
    }

    /// Visits documents with only one of the words. Blocks in which the word is too rare to win are skipped.
    fn by_occurrences(&mut self, walk: &TierWalk<'_>, top: &mut TopRows<'_>) -> Result<()> {
        let bounds = self.bounds;
        let of = |occurrences, sum| {
            let mut fields = match walk.pass.part {
                TierSelection::With => walk.fields_with(1, 1),
                _ => walk.fields_without(1),
            };
            if walk.levels.is_some_and(|levels| levels.fields.len() == 1) {
                walk.limit(&mut fields, occurrences);
            }
            let fields = fields.as_ref().map(|fields| &fields[..bounds.fields()]);
            bounds.of(DocumentFacts { words: 1, fields, longest: u32::MAX, occurrences, sum })
        };
        for word in &bounds.contributors.words {
            if !top.may_win(of(u32::MAX, bounds.share(word)), 0) {
                continue;
            }
            let term = self.matcher.terms().get(word.term);
            let found = term.iter().flat_map(|term| &term.keywords);
            let mut found = found.filter_map(|keyword| self.words.find(keyword));
            let Some(number) = found.next() else { continue };
            let most = |occurrences: u32| of(occurrences, bounds.counted(word, occurrences));
            let few: [i64; FEW_OCCURRENCES] = std::array::from_fn(|few| most(few as u32));
            let most = |occurrences: u32| {
                let known = few.get(occurrences as usize).copied();
                known.unwrap_or_else(|| most(occurrences))
            };
            // A word with a negative idf lowers the sum with each occurrence. In a block it may occur only once.
            let most_of_block = |occurrences| match word.idf < 0.0 {
                true => of(occurrences, bounds.share(word)),
                false => most(occurrences),
            };
            let mut looks = InterruptTicker::new(&self.ranked.unless);
            // With the last document that was visited. The documents of a block come after it.
            let state = RefCell::new((&mut *top, 0, None));
            let may_have = |occurrences| {
                let (top, last, failed) = &mut *state.borrow_mut();
                let continues = failed.is_none() && until(looks.steps(BLOCK), failed).is_continue();
                continues && top.may_win(most_of_block(occurrences), *last)
            };
            let weighing = &mut self.weighing;
            self.words.for_each_frequent(number, may_have, |doc, occurrences| {
                let (top, last, failed) = &mut *state.borrow_mut();
                *last = doc;
                let may_win = failed.is_none() && top.may_win(most(occurrences), doc);
                if !may_win || !walk.pass.is_of_tier(doc) {
                    return;
                }
                match weighing.weight(doc) {
                    Ok(Some(weight)) => top.take(weight, doc),
                    Ok(None) => {}
                    Err(error) => *failed = Some(error),
                }
            })?;
            state.into_inner().2.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    fn walk(&mut self, walk: &TierWalk<'_>, top: &mut TopRows<'_>) -> Result<()> {
        let (bounds, top) = (self.bounds, RefCell::new(top));
        let (unless, failed) = (&self.ranked.unless, RefCell::new(None));
        walk.pass.run(
            |first, needed| {
                until(unless.check(), &mut failed.borrow_mut())?;
                walk.look(bounds, &top.borrow(), first, needed)
            },
            |doc| {
                let visited = self.visit(doc, walk, &mut top.borrow_mut());
                until(visited, &mut failed.borrow_mut())
            },
        );
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// What is known of a document before it is read. Its words are in [`Segment::present`] then.
    #[inline]
    fn reach(&mut self, doc: u32, walk: &TierWalk<'_>) -> Reach {
        let rest = self.find_present(doc, walk.pass.tiers);
        let words = walk.pass.count;
        let fields = walk.fields(doc, self.bounds);
        let longest = walk.pass.neighbours.map_or(u32::MAX, |it| it.longest(doc, &self.present));
        let longest = longest.min(words as u32);
        let points = walk.points(self.bounds, fields.as_ref(), longest);
        Reach { rest, fields, longest, most: self.bounds.with(points, words, rest) }
    }

    /// Weighs a document, unless its bound is below the threshold.
    fn visit(&mut self, doc: u32, walk: &TierWalk<'_>, top: &mut TopRows<'_>) -> Result<()> {
        let bounds = self.bounds;
        self.weighing.document.looks.steps(1 + bounds.shares.len() / WORDS_PER_POSTING)?;
        let Reach { rest, mut fields, longest, most } = self.reach(doc, walk);
        if !top.may_win(most, doc) {
            return Ok(());
        }
        let words = walk.pass.count;
        let most = |run| bounds.with(walk.points(bounds, fields.as_ref(), run), words, rest);
        let by_runs = longest > 1 && self.shifts.is_some() && !top.may_win(most(1), doc);
        self.weighing.document.go_to(doc);
        let found = self
            .read(walk, fields.as_ref(), (by_runs, longest), rest, |most| top.may_win(most, doc))?;
        let Some(Read { occurrences, sum, longest }) = found else { return Ok(()) };
        let known = fields;
        walk.limit(&mut fields, occurrences);
        let fields = fields.as_ref().map(|fields| &fields[..bounds.fields()]);
        let most = |run| {
            let longest = walk.known_longest(run);
            bounds.of(DocumentFacts { words, fields, longest, occurrences, sum })
        };
        if !top.may_win(most(longest), doc) {
            return Ok(());
        }
        if longest > 1 && !by_runs && self.shifts.is_some() && !top.may_win(most(1), doc) {
            // With the occurrences known only a run can win.
            let may_win = |most| top.may_win(most, doc);
            match self.read(walk, known.as_ref(), (true, longest), rest, may_win)? {
                Some(Read { longest, .. }) if top.may_win(most(longest), doc) => {}
                _ => return Ok(()),
            }
        }
        if let Some(weight) = self.weighing.weight(doc)? {
            top.take(weight, doc);
        }
        Ok(())
    }

    /// Finds the words that a document contains; returns an upper bound of what they add to the sum.
    #[inline]
    fn find_present(&mut self, doc: u32, tiers: &Tiers<'_>) -> f32 {
        let at = doc as usize / 64;
        if self.near != Some(at) {
            tiers.words_at(at, &mut self.of_near);
            self.near = Some(at);
        }
        self.present.clear();
        self.most.clear();
        let mut rest = 0.0;
        for (at, &(place, share)) in self.bounds.shares.iter().enumerate() {
            let is_there = match self.of_near.get(place) {
                Some(word) => word >> (doc % 64) & 1 == 1,
                None => tiers.has_word(place, doc),
            };
            if is_there {
                let known = self.impacts.as_ref().and_then(|it| it.share(at, doc, self.bounds));
                let share = known.unwrap_or(share);
                self.present.push(at);
                self.most.push(share);
                rest += share;
            }
        }
        rest
    }

    /// Reads the words of the current document one after the other: how often they occur, and, if `by_runs`, their
    /// positions. Stops with `None` as soon as the document cannot win any more. No run has more than `longest` words;
    /// `rest` is an upper bound of what the words add to the sum.
    fn read(
        &mut self,
        walk: &TierWalk<'_>,
        fields: Option<&Fields>,
        (by_runs, longest): (bool, u32),
        mut rest: f32,
        may_win: impl Fn(i64) -> bool,
    ) -> Result<Option<Read>> {
        let (bounds, words) = (self.bounds, walk.pass.count);
        let mut shifts = self.shifts.as_mut().filter(|_| by_runs);
        if let Some(shifts) = &mut shifts {
            shifts.begin();
        }
        let mut read = Read { occurrences: 0, sum: 0.0, longest };
        let mut points = walk.points(bounds, fields, read.longest);
        let (mut last, mut placed, mut reached) = (None, 0, 0);
        for (nth, &at) in self.present.iter().enumerate() {
            let Some(word) = bounds.contributors.words.get(at) else { continue };
            let frequency = match last {
                Some((term, frequency)) if term == word.term => frequency,
                _ if self.are_keywords => self.weighing.document.occurrences(word.term)?,
                _ => self.weighing.frequency(word.term)?,
            };
            last = Some((word.term, frequency));
            read.occurrences = read.occurrences.saturating_add(frequency);
            let share = self.most.get(nth).copied().unwrap_or_else(|| bounds.share(word));
            let counted = bounds.counted(word, frequency);
            // A repeated word of the query adds nothing, so the test before still holds.
            if counted != 0.0 || share != 0.0 {
                read.sum += counted;
                rest -= share;
                // The bound holds however often the remaining words occur.
                if !may_win(bounds.with(points, words, read.sum + rest)) {
                    return Ok(None);
                }
            }
            let Some(shifts) = shifts.as_mut().filter(|_| nth > 0) else { continue };
            // The positions of the first word are read only when the second word is reached.
            for &at in self.present.get(placed..=nth).unwrap_or_default() {
                let Some(word) = bounds.contributors.words.get(at) else { continue };
                let steps = self.weighing.document.steps(word.term)?;
                reached = reached.max(shifts.add(steps, bounds.last_position - word.position));
            }
            placed = nth + 1;
            let longest = reached + (self.present.len() - placed) as u32;
            if longest < read.longest {
                read.longest = longest;
                points = walk.points(bounds, fields, longest);
                if !may_win(bounds.with(points, words, read.sum + rest)) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(read))
    }
}

/// What is known of a document before it is read.
struct Reach {
    /// An upper bound of what its words add to the sum.
    rest: f32,
    fields: Option<Fields>,
    /// The most words that its longest run can have.
    longest: u32,
    /// An upper bound of its weight.
    most: i64,
}

/// The data read of a document.
struct Read {
    occurrences: u32,
    /// What the words of the document add to the sum.
    sum: f32,
    /// The most words that the longest run can have.
    longest: u32,
}
