//! The top k documents of a proximity of keywords, those that can have the longest runs first.
//!
//! Each time all words stand within the window, they are a group, which weighs as many words as stand to each other as in
//! the query, 1 at least. A run goes on from one group to the next if this one begins where that one ended. So runs may
//! have more words than the query, and the number of groups in one is bounded by how often the words occur: two groups of a
//! run share one place at most, and of three in a row the second shares places of two words.
//!
//! ```text
//! query "a b"~3           b a x b a b         4 groups: b a, a b, b a, a b; they weigh 1, 1, 1 and 2
//! n groups of k words     each word occurs n / 2 times at least, all together n * (k - 1) + 1 times
//! ```
//! Term frequencies are read in bulk and give each document a bound. Then the positions of the documents with the highest
//! bounds are read, and so on, until no other document can reach the threshold. Positions give the runs themselves.

use remora_index::{DocSet, words::WordsIndex};
use remora_words::matching::{Contributor, Matcher};

use super::{Weighing, bounds::WeightBounds, document::SegmentDocument, top_k::TopRows, until};
use crate::Result;

/// The most words of a proximity. With more, each position costs more than it can save.
const MOST_WORDS: usize = 12;

/// The most documents whose bounds are in memory, ten bytes for each.
const MOST_DOCUMENTS: u32 = 1 << 22;

/// A run has no more words than this in a field: it is counted in a byte.
const LONGEST_RUN: u32 = u8::MAX as u32;

/// The number of documents that are visited first is this, or that of the wanted rows times [`FIRST_ROWS`]; the next step
/// has [`STEP`] times as many.
const FIRST: usize = if cfg!(test) { 4 } else { 512 };
const FIRST_ROWS: usize = if cfg!(test) { 1 } else { 4 };
const STEP: usize = if cfg!(test) { 2 } else { 16 };

/// Finds the groups of a proximity.
pub(super) struct Groups {
    /// By their positions in the query.
    words: Vec<GroupWord>,
    /// The first and the last place of a group are less than this apart.
    reach: u32,
    /// The longest run of each field of the current document.
    runs: Vec<u32>,
}

/// A word of the query.
struct GroupWord {
    word: Contributor,
    /// Its places in the current document, and how many of them were taken.
    places: Vec<u32>,
    taken: usize,
    /// Its last place that is in no group, if it is still within reach.
    seen: Option<u32>,
}

impl Groups {
    /// For a query that is one proximity, whose runs are groups ([`WeightBounds::runs_are_groups`]); `None` for any other,
    /// or if it limits fields or positions.
    pub fn new(matcher: &Matcher, bounds: &WeightBounds<'_>, fields: usize) -> Option<Self> {
        let quoted = matcher.quoted().filter(|quoted| quoted.is_unlimited)?;
        let reach = quoted.reach?;
        let mut words = bounds.contributors.words.clone();
        if !(2..=MOST_WORDS).contains(&words.len()) {
            return None;
        }
        words.sort_by_key(|word| word.position);
        let words = words.into_iter();
        let words = words.map(|word| GroupWord { word, places: Vec::new(), taken: 0, seen: None });
        Some(Self { words: words.collect(), reach, runs: vec![0; fields] })
    }

    /// Takes the best of the documents, which contain all words; false if there are too many of them to know their bounds.
    pub fn best(
        &mut self,
        docs: &DocSet,
        weighing: &mut Weighing<'_>,
        (index, bounds): (&WordsIndex, &WeightBounds<'_>),
        top: &mut TopRows<'_>,
    ) -> Result<bool> {
        if docs.count() > MOST_DOCUMENTS {
            return Ok(false);
        }
        let mut all = Vec::with_capacity(docs.count() as usize);
        docs.for_each(|doc| all.push(doc));
        let most = self.most_groups(&all, index, weighing)?;
        let mut counts = vec![0; most.iter().max().map_or(1, |&most| usize::from(most) + 1)];
        for &groups in &most {
            if let Some(count) = counts.get_mut(usize::from(groups)) {
                *count += 1;
            }
        }
        let weights: Vec<i64> =
            (0..counts.len() as u32).map(|groups| self.at_most(groups, bounds)).collect();
        let mut below = counts.len();
        for from in steps(&counts, top.rows()) {
            if weights.get(below - 1).is_none_or(|&weight| weight < top.threshold()) {
                break;
            }
            for (&doc, &groups) in all.iter().zip(&most) {
                let groups = usize::from(groups);
                if groups < from || groups >= below {
                    continue;
                }
                weighing.document.looks.step()?;
                if weights.get(groups).is_some_and(|&weight| top.may_win(weight, doc)) {
                    self.visit(doc, weighing, (index, bounds), top)?;
                }
            }
            below = from;
        }
        Ok(true)
    }

    /// The most groups that the runs of each document can have, over all fields.
    fn most_groups(
        &self,
        docs: &[u32],
        index: &WordsIndex,
        weighing: &mut Weighing<'_>,
    ) -> Result<Vec<u16>> {
        let (mut least, mut all) = (vec![u32::MAX; docs.len()], vec![0u32; docs.len()]);
        for GroupWord { word, .. } in &self.words {
            let term = weighing.matcher.terms().get(word.term);
            let keyword = term.and_then(|term| index.find(term.keywords.first()?));
            let Some(keyword) = keyword else { return Ok(vec![0; docs.len()]) };
            let (mut failed, looks) = (None::<crate::Error>, &mut weighing.document.looks);
            index.for_each_frequency(keyword, docs, |at, occurrences| {
                if let (Some(least), Some(all)) = (least.get_mut(at), all.get_mut(at)) {
                    *least = (*least).min(occurrences);
                    *all = all.saturating_add(occurrences);
                }
                until(looks.step(), &mut failed)
            })?;
            failed.map_or(Ok(()), Err)?;
        }
        let others = self.words.len() as u32 - 1;
        let most = LONGEST_RUN * self.runs.len() as u32;
        let of = |(&least, &all): (&u32, &u32)| {
            let groups = least.saturating_mul(2).min(all.saturating_sub(1) / others);
            // More groups do not make a higher bound.
            groups.min(most).min(u16::MAX.into()) as u16
        };
        Ok(least.iter().zip(&all).map(of).collect())
    }

    /// An upper bound of the weight of a document whose runs have so many groups, over all fields.
    fn at_most(&self, groups: u32, bounds: &WeightBounds<'_>) -> i64 {
        let words = self.words.len() as u32;
        let fields = self.runs.len() as u32;
        let most = |fields: u32| {
            // Of three words or two, all stand as in the query only if the last one ends the group. The next one begins
            // there and cannot be so.
            let fewer = if words <= 3 { (groups + 1).saturating_sub(fields) / 2 } else { 0 };
            groups.saturating_mul(words) - fewer
        };
        let runs = vec![most(1).min(LONGEST_RUN); self.runs.len()];
        let points = bounds.of_runs(&runs, most(fields));
        bounds.with(points, self.words.len(), bounds.most_sum())
    }

    /// Weighs a document if its runs are long enough.
    fn visit(
        &mut self,
        doc: u32,
        weighing: &mut Weighing<'_>,
        (index, bounds): (&WordsIndex, &WeightBounds<'_>),
        top: &mut TopRows<'_>,
    ) -> Result<()> {
        weighing.document.go_to(doc);
        self.read(&mut weighing.document)?;
        self.find(|field| index.last_position(doc, field));
        let all: u32 = self.runs.iter().sum();
        // Without a group the document does not match.
        if all == 0 {
            return Ok(());
        }
        let counted = |it: &GroupWord| {
            bounds.counted(&it.word, it.places.len().try_into().unwrap_or(u32::MAX))
        };
        let sum = self.words.iter().map(counted).sum();
        if !top.may_win(bounds.with(bounds.of_runs(&self.runs, all), self.words.len(), sum), doc) {
            return Ok(());
        }
        if let Some(weight) = weighing.weight(doc)? {
            top.take(weight, doc);
        }
        Ok(())
    }

    /// Reads the places of the words in the current document. Those of its fields lie one after the other.
    fn read(&mut self, document: &mut SegmentDocument<'_>) -> Result<()> {
        for GroupWord { word, places, .. } in &mut self.words {
            places.clear();
            let mut at = 0u32;
            places.extend(document.steps(word.term)?.iter().map(|step| {
                at = at.wrapping_add(*step);
                at
            }));
        }
        Ok(())
    }

    /// Finds the longest run of each field by the places of the words. `last` is the last position of a field.
    fn find(&mut self, last: impl Fn(usize) -> u32) {
        self.runs.fill(0);
        let mut border = Border { field: 0, end: last(0), fields: self.runs.len(), last };
        match &self.words[..] {
            [one, two] => find_two((one, two), self.reach, &mut border, &mut self.runs),
            _ => find_more(&mut self.words, self.reach, &mut border, &mut self.runs),
        }
        self.runs.iter_mut().for_each(|run| *run = (*run).min(LONGEST_RUN));
    }
}

/// The fewest groups of the documents of each step; each step has more documents than the one before.
fn steps(counts: &[usize], rows: usize) -> Vec<usize> {
    let mut wanted = FIRST.max(rows.saturating_mul(FIRST_ROWS));
    let (mut taken, mut steps) = (0usize, Vec::new());
    for (groups, count) in counts.iter().enumerate().skip(1).rev() {
        taken += count;
        // Documents without a group do not match.
        if taken >= wanted || groups == 1 {
            steps.push(groups);
            wanted = taken.saturating_mul(STEP);
        }
    }
    steps
}

/// The field in which a place is. Places ascend.
struct Border<F> {
    field: usize,
    /// The field's last place.
    end: u32,
    fields: usize,
    last: F,
}

impl<F: Fn(usize) -> u32> Border<F> {
    /// Goes to the field of a place; true if it is another one than before.
    #[inline]
    fn is_passed(&mut self, at: u32) -> bool {
        let before = self.field;
        while at > self.end && self.field + 1 < self.fields {
            self.field += 1;
            self.end = self.end.saturating_add((self.last)(self.field));
        }
        self.field != before
    }
}

/// Of two words, each two places one behind the other are a group if they are of both words and within reach.
fn find_two(
    (one, two): (&GroupWord, &GroupWord),
    reach: u32,
    border: &mut Border<impl Fn(usize) -> u32>,
    runs: &mut [u32],
) {
    let apart = two.word.position.saturating_sub(one.word.position);
    let (ones, twos) = (&one.places[..], &two.places[..]);
    let (mut next_one, mut next_two) = (0, 0);
    let (mut before, mut was_second, mut is_first) = (0u32, false, true);
    let (mut run, mut longest) = (0, 0);
    // Which word comes next cannot be predicted, so nothing but a border of fields branches.
    for _ in 0..ones.len() + twos.len() {
        let one = ones.get(next_one).copied().unwrap_or(u32::MAX);
        let two = twos.get(next_two).copied().unwrap_or(u32::MAX);
        let (is_second, at) = (two < one, one.min(two));
        next_one += usize::from(!is_second);
        next_two += usize::from(is_second);
        let field = border.field;
        if border.is_passed(at) {
            if let Some(of_field) = runs.get_mut(field) {
                *of_field = longest;
            }
            (longest, is_first) = (0, true);
        }
        let gap = at.wrapping_sub(before);
        let is_group = !is_first & (is_second != was_second) & (gap < reach);
        let more = 1 + u32::from(is_second & (gap == apart));
        run = if is_group { run + more } else { 0 };
        longest = longest.max(run);
        (before, was_second, is_first) = (at, is_second, false);
    }
    if let Some(of_field) = runs.get_mut(border.field) {
        *of_field = longest;
    }
}

fn find_more(
    words: &mut [GroupWord],
    reach: u32,
    border: &mut Border<impl Fn(usize) -> u32>,
    runs: &mut [u32],
) {
    words.iter_mut().for_each(|word| (word.taken, word.seen) = (0, None));
    let (mut end, mut run) = (None, 0);
    loop {
        let next = words.iter().enumerate();
        let next = next.filter_map(|(nth, word)| Some((*word.places.get(word.taken)?, nth))).min();
        let Some((at, nth)) = next else { return };
        if border.is_passed(at) {
            words.iter_mut().for_each(|word| word.seen = None);
            (end, run) = (None, 0);
        }
        if let Some(word) = words.get_mut(nth) {
            (word.taken, word.seen) = (word.taken + 1, Some(at));
        }
        let mut first = Some((at, nth));
        for (nth, word) in words.iter_mut().enumerate() {
            word.seen = word.seen.filter(|place| place.saturating_add(reach) > at);
            first = first.and_then(|first| Some(first.min((word.seen?, nth))));
        }
        let Some((begin, nth)) = first else { continue };
        run = weight(words) + if end == Some(begin) { run } else { 0 };
        end = Some(at);
        if let Some(longest) = runs.get_mut(border.field) {
            *longest = run.max(*longest);
        }
        if let Some(word) = words.get_mut(nth) {
            word.seen = None;
        }
    }
}

/// How many words of a group stand to another one as in the query; 1 if none does.
fn weight(words: &[GroupWord]) -> u32 {
    let shift = |it: &GroupWord| i64::from(it.seen.unwrap_or(0)) - i64::from(it.word.position);
    let is_paired = |(nth, word): (usize, &GroupWord)| {
        let others = words.iter().enumerate().filter(|(other, _)| *other != nth);
        others.map(|(_, other)| shift(other)).any(|other| other == shift(word))
    };
    let paired = words.iter().enumerate().filter(|it| is_paired(*it)).count();
    paired.max(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(positions: &[u32], reach: u32, fields: usize) -> Groups {
        let word = |(term, &position): (usize, &u32)| GroupWord {
            word: Contributor { term, idf: 0.0, position },
            places: Vec::new(),
            taken: 0,
            seen: None,
        };
        let words = positions.iter().enumerate().map(word).collect();
        Groups { words, reach, runs: vec![0; fields] }
    }

    #[test]
    fn groups_of_two_words_are_those_of_more() {
        let mut state = 17u64;
        let mut below = |most: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % most
        };
        let mut longest = 0;
        for _ in 0..3_000 {
            let mut both = groups(&[2, 3 + below(3)], 1 + below(7), 2);
            let lasts = [below(30), 500];
            let gap = 2 + below(9);
            let (mut at, mut word) = (0, 0);
            for _ in 0..below(25) {
                at += 1 + below(gap);
                // Mostly one after the other, so that there are long runs.
                word ^= usize::from(below(4) > 0);
                both.words[word].places.push(at);
            }
            both.find(|field| lasts[field]);
            let found = both.runs.clone();
            both.runs.fill(0);
            let last = |field: usize| lasts[field];
            let mut border = Border { field: 0, end: lasts[0], fields: 2, last };
            let reach = both.reach;
            find_more(&mut both.words, reach, &mut border, &mut both.runs);
            assert_eq!(found, both.runs);
            longest = found.iter().copied().fold(longest, u32::max);
            // No run is longer than the occurrences allow.
            let (one, two) = (both.words[0].places.len(), both.words[1].places.len());
            let most = (2 * one.min(two)).min((one + two).saturating_sub(1));
            assert!(found.iter().sum::<u32>() as usize <= 2 * most - most.saturating_sub(1) / 2);
        }
        assert!(longest > 12, "{longest}");
    }

    #[test]
    fn groups_weigh_the_words_that_stand_as_in_the_query() {
        let mut three = groups(&[1, 2, 3], 6, 2);
        for (places, lasts, expected) in [
            // a b c, then c b a begins with that c.
            ([&[1, 5][..], &[2, 4], &[3]], [9, 9], [4, 0]),
            // b a c: none stands as in the query.
            ([&[2], &[1], &[3]], [9, 9], [1, 0]),
            // The second field begins at 2.
            ([&[1, 4], &[2, 5], &[3, 6]], [1, 9], [0, 3]),
            ([&[1], &[8], &[9]], [9, 9], [0, 0]),
        ] {
            for (word, places) in three.words.iter_mut().zip(places) {
                word.places = places.to_vec();
            }
            three.find(|field| lasts[field]);
            assert_eq!(three.runs, expected, "{places:?}");
        }
    }

    #[test]
    fn steps_have_more_documents_each() {
        assert_eq!(steps(&[3, 10, 0, 5, 1, 2], 1), [3, 1]);
        assert_eq!(steps(&[9], 1), [0; 0]);
    }
}
