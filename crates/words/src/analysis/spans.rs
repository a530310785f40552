//! The words of a text with their places in it, for excerpts and CALL KEYWORDS.

use std::borrow::Cow;

use super::{
    Analyzer,
    forms::Tokens,
    html, marks,
    tokenizer::{Kind, Tokenizer},
};

/// A word at its place in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'w> {
    /// The range of the word in the text, in bytes.
    pub start: usize,
    pub end: usize,
    /// The position of the word, from 1, as the index counts.
    pub position: u32,
    /// The number of stop words before it.
    pub stops: u32,
    /// Whether it is a blended word whose parts follow.
    pub is_whole: bool,
    /// The folded word, before stemming.
    pub written: &'w str,
    /// The keyword in the index; `None` for a stop word.
    pub keyword: Option<&'w str>,
}

impl Analyzer {
    /// Calls `each` with every word of the text. HTML tags count as text.
    pub(crate) fn spans(&self, text: &str, each: &mut dyn FnMut(Span<'_>)) {
        self.spans_while(text, &mut |span| {
            each(span);
            true
        });
    }

    /// Like [`Self::spans`], but stops as soon as `each` returns false.
    pub(crate) fn spans_while(&self, text: &str, each: &mut dyn FnMut(Span<'_>) -> bool) {
        let mut tokens = Tokens::new(Tokenizer::document(&self.rules, text), &self.sequences);
        let (overshort, stop_step) =
            (self.settings.overshort_step(), self.settings.stopword_step());
        let (mut word, mut keyword) = (String::new(), String::new());
        let (mut position, mut step, mut stops) = (0_u32, 1, 0);
        while let Some(token) = tokens.next(&mut word) {
            position += step + token.skipped * overshort;
            let is_kept = self.dictionary.keyword(&word, &mut keyword);
            let is_whole = token.kind == Kind::Whole;
            step = match (is_kept, token.kind) {
                (false, _) => stop_step,
                (true, Kind::Whole | Kind::Exception { is_blended: true }) => 0,
                (true, _) => 1,
            };
            let goes_on = each(Span {
                start: token.start,
                end: token.end,
                position,
                stops,
                is_whole,
                written: &word,
                keyword: is_kept.then_some(keyword.as_str()),
            });
            if !goes_on {
                return;
            }
            stops += u32::from(!is_kept);
        }
    }

    /// The text without HTML tags, with runs of spaces reduced to one, if the settings strip HTML or `always` is set.
    pub(crate) fn stripped<'t>(&self, text: &'t str, always: bool) -> Cow<'t, str> {
        let plain = html::HtmlRules::default();
        let rules = match &self.html {
            Some(rules) => rules,
            None if always => &plain,
            None => return Cow::Borrowed(text),
        };
        let mut bare = String::with_capacity(text.len());
        html::strip(text, rules, &mut bare);
        let bare = if rules.has_marks() { marks::without(bare) } else { bare };
        let mut out = String::with_capacity(bare.len());
        for c in bare.chars() {
            let is_space = c.is_ascii_whitespace();
            if !is_space || !out.ends_with(' ') {
                out.push(if is_space { ' ' } else { c });
            }
        }
        Cow::Owned(out)
    }
}

/// The text with HTML tags replaced by spaces, byte for byte.
pub(crate) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = html::mark_length(rest).unwrap_or(0);
        if length == 0 {
            out.push('<');
            rest = &rest[1..];
        }
        out.extend(std::iter::repeat_n(' ', length));
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}
