//! The rows that weigh most, without weighing the others.
//!
//! What a document can weigh at most follows from how many of the query's words it has: a run of words in a field is
//! no longer than that, and BM25 is what the words' idf can sum up to. Documents with more of the words are taken first
//! ([`super::tiers`]); once enough of them weigh more than documents with fewer can, those are not looked at. Within a
//! tier the occurrences alone say what BM25 is, so that places are read only of documents that can still win. No
//! answer depends on any of this.

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    ops::ControlFlow,
};

use remora_index::{DocSet, words::WordsIndex};
use remora_words::{
    matching::{Contributor, Contributors, Matcher, saturated},
    rank::Scorer,
};

use super::{
    Ranked, Wanted, Weighing, Weights,
    tiers::{MAX_WORDS, Tiers},
};
use crate::{
    Result,
    snapshot::{SegmentView, TableView},
};

/// So few rows are weighed at once; fewer in tests, whose tables are small.
const FEW_ROWS: u64 = if cfg!(test) { 3 } else { 64 };

impl Ranked {
    /// The best rows by segment, by ascending documents; `None` where all are to be weighed.
    pub(super) fn best(
        &self,
        view: &TableView,
        docs: &[DocSet],
        wanted: Wanted,
    ) -> Result<Option<Vec<Weights>>> {
        let (Some(matcher), Some(rows @ 1..)) = (&self.matcher, wanted.rows) else {
            return Ok(None);
        };
        let all: u64 = docs.iter().map(|docs| u64::from(docs.count())).sum();
        if all <= FEW_ROWS.max(rows as u64) || self.table_weight < 1 {
            return Ok(None);
        }
        let Some(contributors) = matcher.contributors() else { return Ok(None) };
        if !contributors.is_all && contributors.words.len() > MAX_WORDS {
            return Ok(None);
        }
        let bounds = Bounds::new(contributors, &self.scorer, self.table_weight);
        let mut race = Race { lowest: BinaryHeap::new(), rows, by_key: wanted.by_key };
        let mut best: Vec<Weights> = vec![Weights::new(); docs.len()];
        // The most documents first, so that the others meet a high bar.
        let mut order: Vec<usize> = (0..docs.len()).collect();
        order.sort_by_key(|&at| Reverse(docs[at].count()));
        for at in order {
            let Some(words) = view.segments[at].segment.words(self.id) else { continue };
            let view = &view.segments[at];
            let weighing = Weighing::new(self, matcher, words, view)?;
            let mut segment =
                Segment { ranked: self, view, matcher, words, bounds: &bounds, weighing };
            best[at] = segment.best(&docs[at], &mut race)?;
        }
        let floor = race.floor();
        best.iter_mut().for_each(|best| best.retain(|&(_, weight)| i64::from(weight) >= floor));
        Ok(Some(best))
    }
}

/// What documents can weigh at most.
struct Bounds<'q> {
    contributors: Contributors,
    scorer: &'q Scorer,
    table_weight: i64,
    /// The terms, and how many places of the query have each.
    terms: Vec<(usize, usize)>,
    /// What the words can add to the sum, the most first.
    shares: Vec<f32>,
}

impl<'q> Bounds<'q> {
    fn new(mut contributors: Contributors, scorer: &'q Scorer, table_weight: i32) -> Self {
        // The words that tell most first: by them most documents are told to lose.
        contributors.words.sort_by(|a, b| b.idf.total_cmp(&a.idf));
        let mut terms: BTreeMap<usize, usize> = BTreeMap::new();
        contributors.words.iter().for_each(|word| *terms.entry(word.term).or_default() += 1);
        let mut shares: Vec<f32> =
            contributors.words.iter().map(|word| word.idf.max(0.0)).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        let (terms, table_weight) = (terms.into_iter().collect(), i64::from(table_weight));
        Self { contributors, scorer, table_weight, terms, shares }
    }

    /// What a document with so many of the words can weigh, however often it has them.
    fn of_tier(&self, words: usize) -> i64 {
        let sum = self.shares.iter().take(words).sum();
        self.of(words as u32, u32::MAX, sum)
    }

    /// The words, by their places among the terms, of which a document with so many must have one to weigh `floor`: all
    /// but those whose best do not reach it.
    fn needed(&self, words: usize, floor: i64, needed: &mut Vec<usize>) {
        let mut shares: Vec<(f32, usize, usize)> = Vec::with_capacity(self.terms.len());
        for (at, &(term, times)) in self.terms.iter().enumerate() {
            let of_term = self.contributors.words.iter().filter(|word| word.term == term);
            let share = of_term.map(|word| word.idf.max(0.0)).sum();
            shares.push((share, at, times));
        }
        shares.sort_by(|a, b| a.0.total_cmp(&b.0));
        let reaches = |some: &[(f32, usize, usize)]| {
            // As if each of them counted as one word: no less than they can add.
            let sum = some.iter().rev().take(words).map(|share| share.0).sum();
            self.of(words as u32, u32::MAX, sum) >= floor
        };
        let mut light = 0;
        while light < shares.len() && !reaches(&shares[..=light]) {
            light += 1;
        }
        needed.extend(shares[light..].iter().map(|&(_, at, _)| at));
    }

    fn of(&self, words: u32, occurrences: u32, sum: f32) -> i64 {
        self.scorer.at_most(words, occurrences, sum).saturating_mul(self.table_weight)
    }
}

/// The weights so far of all segments.
struct Race {
    /// The highest weights, as many as rows are wanted.
    lowest: BinaryHeap<Reverse<i32>>,
    rows: usize,
    by_key: bool,
}

impl Race {
    /// What a row must weigh to be among the best, or to tie with the last of them.
    fn floor(&self) -> i64 {
        match self.lowest.peek() {
            Some(&Reverse(lowest)) if self.lowest.len() == self.rows => lowest.into(),
            _ => i64::MIN,
        }
    }

    fn note(&mut self, weight: i32) {
        if self.lowest.len() < self.rows {
            self.lowest.push(Reverse(weight));
        } else if let Some(mut lowest) = self.lowest.peek_mut()
            && weight > lowest.0
        {
            lowest.0 = weight;
        }
    }
}

/// The winners of one segment so far: the one that is beaten first on top.
struct Winners {
    heap: BinaryHeap<(Reverse<i32>, u32)>,
    /// How many are kept; those that tie are many where they are all asked for.
    most: usize,
}

impl Winners {
    /// Whether a document that weighs at most this can be among them.
    fn may_win(&self, most: i64, doc: u32) -> bool {
        match self.heap.peek() {
            Some(&(Reverse(weight), last)) if self.heap.len() >= self.most => {
                (most, Reverse(doc)) > (i64::from(weight), Reverse(last))
            }
            _ => true,
        }
    }

    fn take(&mut self, weight: i32, doc: u32) {
        if self.may_win(weight.into(), doc) {
            self.heap.push((Reverse(weight), doc));
            if self.heap.len() > self.most {
                self.heap.pop();
            }
        }
    }
}

struct Segment<'a> {
    ranked: &'a Ranked,
    view: &'a SegmentView,
    matcher: &'a Matcher,
    words: &'a WordsIndex,
    bounds: &'a Bounds<'a>,
    weighing: Weighing<'a>,
}

impl Segment<'_> {
    fn best(&mut self, docs: &DocSet, race: &mut Race) -> Result<Weights> {
        let most = if race.by_key { race.rows } else { usize::MAX };
        let mut winners = Winners { heap: BinaryHeap::new(), most };
        match self.bounds.contributors.words[..] {
            [word] if self.is_plain() => {
                self.by_occurrences(word, |doc| docs.contains(doc), race, &mut winners)?;
            }
            _ if self.bounds.contributors.is_all => self.of_all(docs, race, &mut winners)?,
            _ => {
                let tiers = self.ranked.tiers(self.matcher, self.view)?;
                self.by_tiers(&tiers, docs, race, &mut winners)?;
            }
        }
        let mut best: Weights =
            winners.heap.into_iter().map(|(Reverse(weight), doc)| (doc, weight)).collect();
        best.sort_unstable();
        Ok(best)
    }

    /// Documents each of which has all words.
    fn of_all(&mut self, docs: &DocSet, race: &mut Race, winners: &mut Winners) -> Result<()> {
        let mut failed = None;
        let present: Vec<usize> = (0..self.bounds.contributors.words.len()).collect();
        docs.for_each(|doc| {
            let result = self.try_document(doc, &present, race, winners);
            failed = failed.take().or(result.err());
        });
        failed.map_or(Ok(()), Err)
    }

    /// Documents that have this word alone: those that have it rarely are left out by blocks.
    fn by_occurrences(
        &mut self,
        word: Contributor,
        is_asked: impl Fn(u32) -> bool,
        race: &mut Race,
        winners: &mut Winners,
    ) -> Result<()> {
        let Some(term) = self.matcher.terms().get(word.term) else { return Ok(()) };
        let (bounds, idf) = (self.bounds, word.idf);
        let most = |occurrences| bounds.of(1, occurrences, saturated(occurrences) * idf);
        let most_of_block = |occurrences| match idf < 0.0 {
            // A word of most documents counts the less the more often it stands there.
            true => bounds.of(1, occurrences, saturated(1) * idf),
            false => most(occurrences),
        };
        let found: Vec<u32> = term.keywords.iter().filter_map(|it| self.words.find(it)).collect();
        if let [number] = found[..] {
            self.weighing = Weighing::new(self.ranked, self.matcher, self.words, self.view)?;
            let mut failed = None;
            // With the document that was looked at last, behind which those of a block stand.
            let state = RefCell::new((race, winners, 0));
            let may_have = |occurrences| {
                let (race, winners, last) = &*state.borrow();
                let most = most_of_block(occurrences);
                most >= race.floor() && winners.may_win(most, *last)
            };
            self.words.for_each_frequent(number, may_have, |doc, occurrences| {
                let (race, winners, last) = &mut *state.borrow_mut();
                *last = doc;
                let most = most(occurrences);
                if most < race.floor() || !winners.may_win(most, doc) || !is_asked(doc) {
                    return;
                }
                match self.weighing.weight(doc) {
                    Ok(Some(weight)) => {
                        race.note(weight);
                        winners.take(weight, doc);
                    }
                    Ok(None) => {}
                    Err(error) => failed = failed.take().or(Some(error)),
                }
            })?;
            return failed.map_or(Ok(()), Err);
        }
        Ok(())
    }

    fn by_tiers(
        &mut self,
        tiers: &Tiers,
        docs: &DocSet,
        race: &mut Race,
        winners: &mut Winners,
    ) -> Result<()> {
        let words = self.bounds.contributors.words.len();
        for tier in (1..=words).rev() {
            if self.bounds.of_tier(tier) < race.floor() {
                break;
            }
            if tier == 1 && self.is_plain() {
                let is_asked = |doc| tiers.has(1, doc) && docs.contains(doc);
                let contributors = self.bounds.contributors.words.clone();
                for word in contributors {
                    self.by_occurrences(word, is_asked, race, winners)?;
                }
                break;
            }
            self.tier(tier, tiers, docs, race, winners)?;
        }
        Ok(())
    }

    /// Whether each word is one keyword and stands in the query once.
    fn is_plain(&self) -> bool {
        let terms = &self.bounds.terms;
        terms.iter().all(|&(term, times)| {
            times == 1 && self.matcher.terms().get(term).is_some_and(|it| it.keywords.len() == 1)
        })
    }

    fn tier(
        &mut self,
        tier: usize,
        tiers: &Tiers,
        docs: &DocSet,
        race: &mut Race,
        winners: &mut Winners,
    ) -> Result<()> {
        self.weighing = Weighing::new(self.ranked, self.matcher, self.words, self.view)?;
        let bounds = self.bounds;
        let place = |term| bounds.terms.iter().position(|&(it, _)| it == term);
        let words = bounds.contributors.words.iter();
        let words: Vec<(usize, f32)> =
            words.filter_map(|word| Some((place(word.term)?, word.idf.max(0.0)))).collect();
        let race = RefCell::new(race);
        let (mut present, mut failed) = (Vec::new(), None);
        let needed = |words: &mut Vec<usize>| bounds.needed(tier, race.borrow().floor(), words);
        tiers.for_each(tier, docs, needed, |doc| {
            present.clear();
            let mut sum = 0.0;
            for (at, &(word, idf)) in words.iter().enumerate() {
                if tiers.has_word(word, doc) {
                    present.push(at);
                    sum += idf;
                }
            }
            let mut race = race.borrow_mut();
            if bounds.of(tier as u32, u32::MAX, sum) < race.floor() {
                return ControlFlow::Continue(());
            }
            match self.try_document(doc, &present, &mut race, winners) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Weighs a document that has these of the words, unless it cannot win.
    fn try_document(
        &mut self,
        doc: u32,
        present: &[usize],
        race: &mut Race,
        winners: &mut Winners,
    ) -> Result<()> {
        let bounds = self.bounds;
        // Where not each word must count, one that would lower the sum may not.
        let idf_of = |word: &Contributor| match bounds.contributors.is_all {
            true => word.idf,
            false => word.idf.max(0.0),
        };
        let words = || present.iter().filter_map(|&word| bounds.contributors.words.get(word));
        let (mut occurrences, mut sum) = (0u32, 0.0);
        let mut rest: f32 = words().map(|word| word.idf.max(0.0)).sum();
        self.weighing.document.go_to(doc);
        for word in words() {
            let frequency = self.weighing.frequency(word.term)?;
            occurrences = occurrences.saturating_add(frequency);
            sum += saturated(frequency) * idf_of(word);
            rest -= word.idf.max(0.0);
            // Less than this, however often the others stand there.
            let most = bounds.of(present.len() as u32, u32::MAX, sum + rest.max(0.0));
            if most < race.floor() {
                return Ok(());
            }
        }
        let most = bounds.of(present.len() as u32, occurrences, sum);
        if most < race.floor() || !winners.may_win(most, doc) {
            return Ok(());
        }
        if let Some(weight) = self.weighing.weight(doc)? {
            race.note(weight);
            winners.take(weight, doc);
        }
        Ok(())
    }
}
