//! The settings `phrase_boundary` and `phrase_boundary_step`: characters between which and the next word positions are
//! left out, so that no phrase reaches over them.

use std::collections::HashSet;

use crate::settings::{Charset, Settings};

/// The characters, and how many positions are left out.
#[derive(Debug)]
pub(super) struct PhraseBoundary {
    characters: HashSet<char>,
    step: u32,
}

impl PhraseBoundary {
    /// `None` if no positions are left out.
    ///
    /// # Errors
    /// A message for the user.
    pub(super) fn new(settings: &Settings) -> Result<Option<Self>, String> {
        let (list, step) = settings.phrase_boundary();
        if list.is_empty() || step == 0 {
            return Ok(None);
        }
        let mut characters = HashSet::new();
        Charset::parse(list)?.for_each(&mut |c, _| {
            characters.insert(c);
        });
        Ok(Some(Self { characters, step }))
    }

    /// The positions left out for the text between two words. A boundary counts if a separator is behind it, so not the
    /// dots of `e.g`, and several count once.
    pub(super) fn step(&self, between: &str, is_separator: impl Fn(char) -> bool) -> u32 {
        let mut pairs = between.chars().zip(between.chars().skip(1));
        let is_boundary =
            |(c, next): (char, char)| self.characters.contains(&c) && is_separator(next);
        if pairs.any(is_boundary) { self.step } else { 0 }
    }
}
