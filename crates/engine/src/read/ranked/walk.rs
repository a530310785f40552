//! What the documents of a tier can weigh at most, by the fields in which their words stand.

use std::{cell::RefCell, ops::ControlFlow};

use super::{
    bounds::{DocumentFacts, MAX_FIELDS, Points, WeightBounds},
    passes::{Needed, Pass, TierSelection},
    tiers::Tiers,
    top_k::TopRows,
};

/// The documents that contain the words in each field but the longest one.
pub(super) struct Levels {
    pub longest: usize,
    pub fields: Vec<usize>,
    /// For each of the fields, how many of the words a document has there.
    pub tiers: Vec<Tiers<'static>>,
}

/// A walk over the documents of a tier, with what is known of their fields.
pub(super) struct TierWalk<'w> {
    pub pass: Pass<'w>,
    pub levels: Option<&'w Levels>,
    pub points: RefCell<Points>,
}

/// The most words that each field can have.
pub(super) type Fields = [u32; MAX_FIELDS];

impl TierWalk<'_> {
    /// The fields of a document with so many words, all of them in the longest field only.
    pub fn fields_without(&self, words: usize) -> Option<Fields> {
        let mut fields = [0; MAX_FIELDS];
        if let Some(field) = fields.get_mut(self.levels?.longest) {
            *field = words as u32;
        }
        Some(fields)
    }

    /// The fields of a document with so many words in the longest field and `least` words in each other field.
    pub fn fields_with(&self, words: usize, least: usize) -> Option<Fields> {
        let mut fields = [least as u32; MAX_FIELDS];
        if let Some(field) = fields.get_mut(self.levels?.longest) {
            *field = words as u32;
        }
        Some(fields)
    }

    pub fn fields(&self, doc: u32, bounds: &WeightBounds<'_>) -> Option<Fields> {
        let levels = self.levels?;
        let mut fields = self.fields_without(self.pass.count)?;
        if self.pass.part == TierSelection::With {
            for (tiers, &field) in levels.tiers.iter().zip(&levels.fields) {
                let terms = bounds.terms.iter().enumerate();
                let has = terms.filter(|(at, _)| tiers.has_word(*at, doc));
                if let Some(slot) = fields.get_mut(field) {
                    *slot = has.map(|(_, &(_, times))| times as u32).sum();
                }
            }
        }
        Some(fields)
    }

    /// The bound of the longest run; `u32::MAX` if it is not below the number of words, because runs over phrases can
    /// have more words than the document has.
    pub fn known_longest(&self, longest: u32) -> u32 {
        if (longest as usize) < self.pass.count { longest } else { u32::MAX }
    }

    /// An upper bound of the part of the weight that is not BM25, if no run has more than `longest` words.
    pub fn points(&self, bounds: &WeightBounds<'_>, fields: Option<&Fields>, longest: u32) -> i64 {
        let words = self.pass.count;
        let of_fields = fields.map(|fields| &fields[..bounds.fields()]);
        let work_out = || {
            let (longest, occurrences) = (self.known_longest(longest), u32::MAX);
            let known = DocumentFacts { words, fields: of_fields, longest, occurrences, sum: 0.0 };
            bounds.points(known)
        };
        let numbers = match (self.levels, fields) {
            (Some(Levels { longest: field, fields: others, .. }), Some(fields)) => {
                let [other] = others[..] else { return work_out() };
                let of = |field: usize| fields.get(field).copied().unwrap_or(0);
                [of(other), of(*field), longest]
            }
            _ => [0, words as u32, longest],
        };
        self.points.borrow_mut().get(numbers, work_out)
    }

    /// Lowers the bound of the longest field: each word in another field takes one of the occurrences.
    pub fn limit(&self, fields: &mut Option<Fields>, occurrences: u32) {
        let (Some(levels), Some(fields)) = (self.levels, fields) else { return };
        let others = levels.fields.iter().filter_map(|&field| fields.get(field));
        let others: u32 = others.sum();
        if let Some(longest) = fields.get_mut(levels.longest) {
            *longest = (*longest).min(occurrences.saturating_sub(others));
        }
    }

    /// Finds for each number of words in the only other field how long a run must be.
    pub fn look_by_field(
        &self,
        bounds: &WeightBounds<'_>,
        top: &TopRows<'_>,
        first: u32,
        needed: &mut Needed,
    ) {
        needed.runs.clear();
        let words = self.pass.count;
        let is_single = self.levels.is_some_and(|levels| levels.fields.len() == 1);
        if !is_single || self.pass.part != TierSelection::With {
            return;
        }
        for in_field in needed.least.max(1)..=words {
            let fields = self.fields_with(words, in_field);
            let fields = fields.as_ref().map(|fields| &fields[..bounds.fields()]);
            let may_win = |run: &u32| top.may_win(bounds.of_run(words, fields, *run), first);
            let run = (needed.run.max(1)..words as u32).find(may_win);
            needed.runs.push(run.unwrap_or(words as u32));
        }
    }

    /// Finds what documents from `first` on must have to reach the threshold; breaks if none can reach it.
    pub fn look(
        &self,
        bounds: &WeightBounds<'_>,
        top: &TopRows<'_>,
        first: u32,
        needed: &mut Needed,
    ) -> ControlFlow<()> {
        let words = self.pass.count;
        let all = match self.pass.part {
            TierSelection::Without => self.fields_without(words),
            _ => self.fields_with(words, words),
        };
        let fields = all.as_ref().map(|fields| &fields[..bounds.fields()]);
        if !top.may_win(bounds.of_words(words, fields), first) {
            return ControlFlow::Break(());
        }
        if needed.threshold.replace(top.threshold()) == Some(top.threshold()) {
            return ControlFlow::Continue(());
        }
        // Where nothing is known of fields it does not matter. What could not win before cannot now.
        let least = if self.levels.is_some() { needed.least.max(1) } else { words };
        let mut fewer = least..words;
        needed.least = fewer
            .find(|&least| {
                let fields = self.fields_with(words, least);
                let fields = fields.as_ref().map(|fields| &fields[..bounds.fields()]);
                top.may_win(bounds.of_words(words, fields), first)
            })
            .unwrap_or(words);
        if self.pass.neighbours.is_some() {
            let mut shorter = needed.run.max(1)..words as u32;
            let may_win = |run: &u32| top.may_win(bounds.of_run(words, fields, *run), first);
            needed.run = shorter.find(may_win).unwrap_or(words as u32);
            self.look_by_field(bounds, top, first, needed);
        }
        needed.words.clear();
        if self.pass.tiers.words() > 0 {
            bounds.needed(words, fields, top.threshold(), &mut needed.words);
        }
        ControlFlow::Continue(())
    }
}
