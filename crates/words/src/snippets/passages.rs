//! The passages of a text: windows around what matches.
//!
//! A window holds all matches among `2 x around` other words, as far as they fit the limits; with a limit of words all
//! that it holds. It slides over the text; the best window with a match
//! is kept until its first match is out of sight and a new match has come. The value of a window is twice its matches,
//! the lengths of the query's words in it, and the words at its shorter side.

use std::collections::VecDeque;

use super::text::{Limits, Part, Size, Text};

/// Most passages that are weighed against each other.
const MAX_PASSAGES: usize = 1_024;
/// The widest that a passage reaches to each side.
const MAX_AROUND: usize = 256;
/// Most matches of a passage that tell which of the query's words it has.
const MAX_TOLD: usize = 4_096;

/// A part of a text.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub part: Part,
    /// The query's words in it, in order.
    pub terms: Vec<usize>,
    /// What it is worth without its words.
    pub base: i64,
    /// What its words add.
    pub weight: i64,
    /// How often each word's length counts.
    pub run: i64,
}

impl Passage {
    pub(super) fn value(&self) -> i64 {
        self.base + self.weight
    }
}

/// The passages of a text, in its order. `weights` are those of the query's words.
///
/// Time is that of the words, and of the matches times `around`.
pub(super) fn extract(
    text: &Text<'_>,
    weights: &[u32],
    around: u32,
    limits: Limits,
) -> Vec<Passage> {
    let around = (around as usize).min(MAX_AROUND);
    let mut window = Window {
        text,
        weights,
        around,
        limits,
        most_others: if limits.words == u64::MAX { 2 * around } else { usize::MAX },
        start: 0,
        from: 0,
        size: Size::default(),
        others: 0,
        counts: vec![0; weights.len()],
        matches: VecDeque::new(),
        runs: VecDeque::new(),
        last: None,
        weight: 0,
        best: None,
        passages: Vec::new(),
    };
    let count = text.words.len();
    for number in 0..count {
        window.push(number);
        if window.is_full() || number + 1 == count {
            window.judge(number);
        }
    }
    window.flush();
    let mut passages = window.passages;
    keep_best(&mut passages);
    passages
}

/// The best so far: words by number.
struct Best {
    start: usize,
    from: usize,
    end: usize,
    first_match: usize,
    last_match: usize,
    base: i64,
    weight: i64,
    run: i64,
}

struct Window<'a> {
    text: &'a Text<'a>,
    weights: &'a [u32],
    around: usize,
    limits: Limits,
    most_others: usize,
    /// The number of its first word.
    start: usize,
    /// Where it begins, in bytes: behind the word before, or at its first word.
    from: usize,
    size: Size,
    /// Words that match nothing.
    others: usize,
    /// How often each word of the query is in it.
    counts: Vec<u32>,
    matches: VecDeque<usize>,
    /// Matches with the length of the run of the query's words that ends there; longer ones before shorter ones.
    runs: VecDeque<(usize, i64)>,
    /// The last match: its word, the query's, and its run.
    last: Option<(usize, usize, i64)>,
    weight: i64,
    best: Option<Best>,
    passages: Vec<Passage>,
}

impl Window<'_> {
    fn term(&self, number: usize) -> Option<usize> {
        self.text.words.get(number)?.term()
    }

    /// Whether what comes pushes out what is there.
    fn is_full(&self) -> bool {
        self.others == self.most_others || self.from > 0 || self.size.words == self.limits.words
    }

    fn push(&mut self, number: usize) {
        let end_of =
            |number: usize| self.text.words.get(number).map_or(0, |word| word.end as usize);
        let before = number.checked_sub(1).map_or(0, end_of).max(self.from);
        self.size.add(self.text.size(Part { start: before, end: end_of(number) }));
        match self.term(number) {
            None => self.others += 1,
            Some(term) => {
                self.matches.push_back(number);
                self.change(term, true);
                self.add_run(number, term);
            }
        }
        while self.others > self.most_others {
            self.drop_first();
        }
        while self.start < number && !self.limits.fit(self.size) {
            let gap = self.text.words.get(self.start).map_or(0, |word| word.start as usize);
            let has_room = self.size.words <= self.limits.words;
            if has_room && self.from < gap {
                self.size.subtract(self.text.size(Part { start: self.from, end: gap }));
                self.from = gap;
            } else {
                self.drop_first();
            }
        }
    }

    /// Leaves the first word out, with what is before it.
    fn drop_first(&mut self) {
        let end = self.text.words.get(self.start).map_or(0, |word| word.end as usize);
        self.size.subtract(self.text.size(Part { start: self.from, end }));
        self.from = end;
        match self.term(self.start) {
            None => self.others -= 1,
            Some(term) => {
                self.matches.pop_front();
                self.change(term, false);
            }
        }
        self.start += 1;
        while self.runs.front().is_some_and(|(number, _)| *number < self.start) {
            self.runs.pop_front();
        }
    }

    fn add_run(&mut self, number: usize, term: usize) {
        let run = match self.last {
            Some((word, other, run)) if word + 1 == number && other + 1 == term => run + 1,
            _ => 1,
        };
        self.last = Some((number, term, run));
        while self.runs.back().is_some_and(|(_, other)| *other <= run) {
            self.runs.pop_back();
        }
        self.runs.push_back((number, run));
    }

    fn change(&mut self, term: usize, is_added: bool) {
        let weight = i64::from(self.weights.get(term).copied().unwrap_or(0));
        let Some(count) = self.counts.get_mut(term) else { return };
        if is_added {
            *count += 1;
            self.weight += if *count == 1 { weight } else { 0 };
        } else {
            *count -= 1;
            self.weight -= if *count == 0 { weight } else { 0 };
        }
    }

    /// Compares the window that ends with this word with the best.
    fn judge(&mut self, end: usize) {
        let (Some(&first), Some(&last)) = (self.matches.front(), self.matches.back()) else {
            return;
        };
        let side = (first - self.start).min(end - last) as i64;
        let base = 2 * self.matches.len() as i64 + side;
        let run = self.runs.front().map_or(1, |(_, run)| *run);
        let weight = self.weight * run;
        let is_new = match &self.best {
            None => true,
            Some(best) if best.first_match < self.start && last > best.last_match => {
                self.flush();
                true
            }
            Some(best) => base + weight > best.base + best.weight,
        };
        if is_new {
            self.best = Some(Best {
                start: self.start,
                from: self.from,
                end,
                first_match: first,
                last_match: last,
                base,
                weight,
                run,
            });
        }
    }

    /// The best is a passage, as far as `around` reaches.
    fn flush(&mut self) {
        let Some(best) = self.best.take() else { return };
        let start = best.start.max(best.first_match.saturating_sub(self.around));
        let end = best.end.min(best.last_match + self.around);
        // A word that is cut off leaves what was between it and the next.
        let is_cut = end < best.end || end + 1 == self.text.words.len();
        let before = start.checked_sub(1).and_then(|before| self.text.words.get(before));
        let first = before.map_or(0, |word| word.end as usize).max(best.from);
        let last = match is_cut {
            true => {
                let next = self.text.words.get(end + 1);
                next.map_or(self.text.text.len(), |word| word.start as usize)
            }
            false => self.text.words.get(end).map_or(first, |word| word.end as usize),
        };
        let part = Part { start: first, end: last };
        let words = best.first_match..=best.last_match;
        let terms = words.filter_map(|number| self.term(number)).take(MAX_TOLD);
        let mut terms: Vec<usize> = terms.collect();
        terms.sort_unstable();
        terms.dedup();
        self.passages.push(Passage {
            part,
            terms,
            base: best.base,
            weight: best.weight,
            run: best.run,
        });
        if self.passages.len() >= 2 * MAX_PASSAGES {
            keep_best(&mut self.passages);
        }
    }
}

/// Leaves the most valuable ones in their order.
fn keep_best(passages: &mut Vec<Passage>) {
    if passages.len() > MAX_PASSAGES {
        passages.sort_by_key(|passage| std::cmp::Reverse(passage.value()));
        passages.truncate(MAX_PASSAGES);
        passages.sort_by_key(|passage| passage.part.start);
    }
}
