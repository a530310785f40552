//! The keywords of a document's field, with their positions.

use super::{
    Analyzer,
    forms::Tokens,
    html::{self, HtmlRules},
    marks,
    tokenizer::{Kind, Tokenizer},
};

/// Buffers for the analysis of documents, reused from one to the next.
#[derive(Debug, Default)]
pub struct Scratch {
    html: String,
    collapsed: String,
    word: String,
    keyword: String,
    exact: String,
    variants: Vec<String>,
}

impl Analyzer {
    /// Calls `each` with the keywords of a field and their positions, which begin at 1 and never decrease.
    ///
    /// Several keywords may have one position: the word as written (`=word`), a blended word and its first part; a
    /// blended word may even give the same keyword twice there. The marks of sentences, paragraphs and zones are
    /// keywords too ([`super::is_mark`]). Returns the position of the last keyword (0 without any), which is the field's
    /// length as Sphinx counts it.
    pub fn document(
        &self,
        text: &str,
        scratch: &mut Scratch,
        each: &mut (impl FnMut(&str, u32) + ?Sized),
    ) -> u32 {
        if let Some(rules) = &self.html {
            let mut stripped = std::mem::take(&mut scratch.html);
            stripped.clear();
            html::strip(text, rules, &mut stripped);
            if rules.has_marks() {
                let mut collapsed = std::mem::take(&mut scratch.collapsed);
                html::collapse(&stripped, &mut collapsed);
                std::mem::swap(&mut stripped, &mut collapsed);
                scratch.collapsed = collapsed;
            }
            let last = self.plain_document(&stripped, scratch, each);
            scratch.html = stripped;
            return last;
        }
        self.plain_document(text, scratch, each)
    }

    fn plain_document(
        &self,
        text: &str,
        scratch: &mut Scratch,
        each: &mut (impl FnMut(&str, u32) + ?Sized),
    ) -> u32 {
        let text = &match self.html.as_ref().is_some_and(HtmlRules::has_marks) {
            true => marks::replaced_between(text, |piece| self.replaced(piece)),
            // Without marks the codes of marks are characters like others.
            false => self.replaced(text),
        };
        let mut tokens = Tokens::new(Tokenizer::marked(&self.rules, text), &self.sequences);
        let is_plain = self.dictionary.is_plain();
        let (overshort_step, stop_step) =
            (self.settings.overshort_step(), self.settings.stopword_step());
        let Scratch { word, keyword, exact, variants, .. } = scratch;
        let (mut position, mut step, mut last) = (0_u32, 1, 0);
        let mut end = 0;
        while let Some(token) = tokens.next(word) {
            position += step + token.skipped * overshort_step;
            if let Some(boundary) = &self.boundary {
                let between = text.get(end..token.start).unwrap_or_default();
                let is_separator = |c| self.rules.characters.get(c).is_separator();
                position = position.saturating_add(boundary.step(between, is_separator));
                end = end.max(token.end);
            }
            if let Kind::Mark(mark) = token.kind {
                marks::indexed(mark, word, |keyword| each(keyword, position));
                (step, last) = (1, position);
                continue;
            }
            if is_plain && token.kind != Kind::Whole {
                each(word, position);
                last = position;
                step = u32::from(token.kind != Kind::Exception { is_blended: true });
                continue;
            }
            let kept_step = u32::from(!takes_no_position(token.kind));
            variants.clear();
            if token.kind == Kind::Whole {
                self.variants(word, variants);
            } else {
                std::mem::swap(word, keyword);
                variants.push(std::mem::take(keyword));
            }
            for (number, variant) in variants.drain(..).enumerate() {
                position += if number > 0 { step } else { 0 };
                step = stop_step;
                if self.dictionary.keyword(&variant, keyword) {
                    (step, last) = (kept_step, position);
                    each(keyword, position);
                    if self.dictionary.has_exact_words {
                        exact.clear();
                        exact.push('=');
                        exact.push_str(&variant);
                        each(exact, position);
                    }
                }
                *word = variant;
            }
        }
        last
    }

    /// The variants under which a blended word is indexed.
    fn variants(&self, word: &str, variants: &mut Vec<String>) {
        let is_blended = |c: char| self.rules.characters.get(c).is_blended();
        for trim in &self.rules.blend_mode.variants {
            let mut variant = word;
            if trim.head {
                variant = variant.trim_start_matches(is_blended);
            }
            if trim.tail {
                variant = variant.trim_end_matches(is_blended);
            }
            let variant = match trim.middle {
                true => variant.replace(is_blended, ""),
                false => variant.to_owned(),
            };
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
    }
}

/// Whether the next keyword has the same position.
fn takes_no_position(kind: Kind) -> bool {
    matches!(kind, Kind::Whole | Kind::Exception { is_blended: true })
}
