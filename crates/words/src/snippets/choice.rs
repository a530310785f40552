//! Which passages are shown, and how they are cut until they fit the limits.
//!
//! The best passage comes first; then those that have words that are not shown yet, and so on while they fit. Then
//! tokens are taken off: from each passage, the least first, one at its beginning, then one at its end, and so on; never
//! a match. Passages whose matches alone do not fit are left out before, from the least on; one is left, which ends
//! where the limit is reached.

use super::{
    SnippetOptions,
    passages::Passage,
    text::{Limits, Size, Text},
};

/// The passages that are shown, in order of their worth.
pub(super) fn choose(
    text: &Text<'_>,
    passages: Vec<Passage>,
    weights: &[u32],
    options: &SnippetOptions,
    limits: Limits,
) -> Vec<Passage> {
    let mut chosen = pick(text, passages, weights, options, limits);
    let total = |chosen: &[Passage], size: &dyn Fn(&Passage) -> Size| {
        let mut sum = Size::default();
        chosen.iter().for_each(|passage| sum.add(size(passage)));
        sum
    };
    let mut least = total(&chosen, &|passage| text.match_size(passage.part));
    while !limits.fit(least) && !options.force_all_words && chosen.len() > 1 {
        if let Some(last) = chosen.pop() {
            least.subtract(text.match_size(last.part));
        }
    }
    let mut sum = total(&chosen, &|passage| text.size(passage.part));
    trim(text, &mut chosen, &mut sum, limits);
    if let [passage] = &mut chosen[..] {
        passage.part = text.cut(passage.part, limits.characters, limits.words);
    }
    chosen
}

/// The best passages, with more than the limits hold where words are still to be shown.
fn pick(
    text: &Text<'_>,
    mut passages: Vec<Passage>,
    weights: &[u32],
    options: &SnippetOptions,
    limits: Limits,
) -> Vec<Passage> {
    let most = match options.limit_passages {
        0 => passages.len(),
        most => most as usize,
    };
    let sizes: Vec<Size> = passages.iter().map(|passage| text.size(passage.part)).collect();
    let full: Vec<i64> = passages.iter().map(|passage| passage.weight).collect();
    let mut is_left = vec![false; weights.len()];
    for term in passages.iter().flat_map(|passage| &passage.terms) {
        is_left[*term] = true;
    }
    let mut left = is_left.iter().filter(|is_left| **is_left).count();
    let mut is_taken = vec![false; passages.len()];
    let (mut chosen, mut sum) = (Vec::new(), Size::default());
    while chosen.len() < most {
        let open = (0..passages.len()).filter(|number| !is_taken[*number]);
        // Of two that are worth the same the longer one is shown.
        let worth = |number: &usize| (passages[*number].value(), sizes[*number].characters);
        let Some(best) = open.rev().max_by_key(worth) else { break };
        let mut total = sum;
        total.add(sizes[best]);
        if left == 0 && !limits.fit(total) {
            // There may be room for a part of it.
            let mut total = sum;
            total.add(text.match_size(passages[best].part));
            if limits.fit(total) {
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
                passage.weight -=
                    if is_shown { i64::from(weights[*term]) * passage.run } else { 0 };
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
            let part = passage.part;
            let token = match is_at_start {
                true => text.first_token(part),
                false => text.last_token(part),
            };
            let Some(token) = token.filter(|token| *token != part) else { continue };
            if is_at_start {
                passage.part.start = token.end;
            } else {
                passage.part.end = token.start;
            }
            sum.subtract(text.size(token));
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
