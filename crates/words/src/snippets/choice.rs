//! Which passages are shown, and how they are cut until they fit the limits.
//!
//! The best passage comes first; then those that have words that are not shown yet, and so on while they fit. Then
//! tokens are taken off: from each passage, the least first, one at its beginning, then one at its end, and so on; never
//! a match. What still does not fit is left out from the least on.

use super::{SnippetOptions, passages::Passage, text::Text};

/// The passages that are shown, in order of their worth.
pub(super) fn choose(
    text: &Text<'_>,
    passages: Vec<Passage>,
    weights: &[u32],
    options: &SnippetOptions,
) -> Vec<Passage> {
    let mut chosen = pick(text, passages, weights, options);
    let mut sum = Size::default();
    chosen.iter().for_each(|passage| sum.add(size(text, passage)));
    let limits = Limits::new(options);
    trim(text, &mut chosen, &mut sum, limits);
    while !limits.fit(sum) && !options.force_all_words && chosen.len() > 1 {
        if let Some(last) = chosen.pop() {
            sum.subtract(size(text, &last));
        }
    }
    chosen
}

/// What the limits are of.
#[derive(Clone, Copy, Default)]
struct Size {
    characters: u64,
    words: u64,
}

impl Size {
    fn add(&mut self, other: Self) {
        self.characters += other.characters;
        self.words += other.words;
    }

    fn subtract(&mut self, other: Self) {
        self.characters = self.characters.saturating_sub(other.characters);
        self.words = self.words.saturating_sub(other.words);
    }
}

#[derive(Clone, Copy)]
struct Limits {
    characters: u64,
    words: u64,
}

impl Limits {
    fn new(options: &SnippetOptions) -> Self {
        let limit = |number: u32| if number == 0 { u64::MAX } else { number.into() };
        Self { characters: limit(options.limit), words: limit(options.limit_words) }
    }

    fn fit(self, size: Size) -> bool {
        size.characters <= self.characters && size.words <= self.words
    }
}

fn size(text: &Text<'_>, passage: &Passage) -> Size {
    let mut sum = Size::default();
    (passage.first..=passage.last).for_each(|token| sum.add(token_size(text, token)));
    sum
}

fn token_size(text: &Text<'_>, token: usize) -> Size {
    Size { characters: text.length(token), words: u64::from(text.is_word(token)) }
}

/// The best passages, with more than the limits hold where words are still to be shown.
fn pick(
    text: &Text<'_>,
    mut passages: Vec<Passage>,
    weights: &[u32],
    options: &SnippetOptions,
) -> Vec<Passage> {
    let limits = Limits::new(options);
    let most = match options.limit_passages {
        0 => passages.len(),
        most => most as usize,
    };
    let full: Vec<i64> = passages.iter().map(|passage| passage.weight).collect();
    let mut is_left = vec![false; weights.len()];
    for term in passages.iter().flat_map(|passage| &passage.terms) {
        is_left[*term] = true;
    }
    let mut left = is_left.iter().filter(|is_left| **is_left).count();
    let keywords: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let mut is_taken = vec![false; passages.len()];
    let (mut chosen, mut sum) = (Vec::new(), Size::default());
    while chosen.len() < most {
        let open = (0..passages.len()).filter(|number| !is_taken[*number]);
        let Some(best) = open.rev().max_by_key(|number| passages[*number].value()) else { break };
        let added = size(text, &passages[best]);
        let mut total = sum;
        total.add(added);
        if left == 0 && !limits.fit(total) {
            // There may be room for a part of it.
            if sum.characters + keywords <= limits.characters && sum.words < limits.words {
                chosen.push(passages[best].clone());
            }
            break;
        }
        (is_taken[best], sum) = (true, total);
        chosen.push(passages[best].clone());
        if left == 0 {
            continue;
        }
        let shown = passages[best].terms.clone();
        for term in &shown {
            left -= usize::from(std::mem::take(&mut is_left[*term]));
        }
        for (number, passage) in passages.iter_mut().enumerate() {
            if left == 0 {
                passage.weight = full[number];
                continue;
            }
            passage.terms.retain(|term| {
                let is_shown = shown.binary_search(term).is_ok();
                passage.weight -= if is_shown { i64::from(weights[*term]) } else { 0 };
                !is_shown
            });
        }
    }
    chosen
}

/// Takes tokens off until the passages fit or nothing but matches is left.
fn trim(text: &Text<'_>, chosen: &mut [Passage], sum: &mut Size, limits: Limits) {
    let (mut is_at_start, mut was_changed) = (true, true);
    while !limits.fit(*sum) {
        let mut is_changed = false;
        for passage in chosen.iter_mut().rev() {
            if passage.first >= passage.last {
                continue;
            }
            let token = if is_at_start { passage.first } else { passage.last };
            if text.term(token).is_some() {
                continue;
            }
            if is_at_start {
                passage.first += 1;
            } else {
                passage.last -= 1;
            }
            sum.subtract(token_size(text, token));
            is_changed = true;
            if limits.fit(*sum) {
                return;
            }
        }
        if !is_changed && !was_changed {
            return;
        }
        (is_at_start, was_changed) = (!is_at_start, is_changed);
    }
}
