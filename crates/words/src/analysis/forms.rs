//! Word forms: replacements of words and of sequences of words.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{
    dictionary::{Dictionary, Form},
    tokenizer::{Kind, TextToken, TokenRules, Tokenizer},
};

/// A sequence of words and its replacement.
struct Sequence {
    /// The words after the first.
    rest: Vec<Box<str>>,
    replacement: Vec<Box<str>>,
}

/// The sequences by first word, the longest first.
#[derive(Default)]
pub(super) struct Sequences {
    by_first: FxHashMap<Box<str>, Vec<Sequence>>,
}

impl Sequences {
    pub(super) fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }

    fn insert(&mut self, source: &[String], replacement: Vec<Box<str>>) {
        let Some((first, rest)) = source.split_first() else { return };
        let sequences = self.by_first.entry(first.as_str().into()).or_default();
        let rest: Vec<Box<str>> = rest.iter().map(|word| word.as_str().into()).collect();
        sequences.retain(|sequence| sequence.rest != rest);
        let at = sequences.partition_point(|sequence| sequence.rest.len() > rest.len());
        sequences.insert(at, Sequence { rest, replacement });
    }
}

/// Parses and adds lines `a b > c` or `a b => c`; later lines override earlier ones.
///
/// # Errors
/// A message that names an invalid line.
pub(super) fn add(
    lines: &str,
    rules: &TokenRules,
    dictionary: &mut Dictionary,
    sequences: &mut Sequences,
) -> Result<(), String> {
    let is_comment = |line: &str| line.is_empty() || line.starts_with('#');
    for line in lines.lines().map(str::trim).filter(|line| !is_comment(line)) {
        let (from, to) = line
            .split_once('>')
            .filter(|(from, _)| !from.contains('#'))
            .ok_or_else(|| format!("'{line}' is not a word form: write 'from > to'"))?;
        let from = from.strip_suffix('=').unwrap_or(from);
        let (from, after_stemming) = match from.strip_prefix('~') {
            Some(from) => (from, true),
            None => (from, false),
        };
        let mut keyword = String::new();
        let mut source = words(from, rules);
        source.retain(|word| dictionary.keyword(word, &mut keyword));
        // After the `>` a `#` is a word of its own.
        let mut target = Vec::new();
        for (number, piece) in to.split('#').enumerate() {
            target.extend((number > 0).then(|| "#".to_owned()));
            target.extend(words(piece, rules));
        }
        if let Some(first) = target.first().cloned().filter(|_| target.len() > 1) {
            target.retain(|word| dictionary.keyword(word, &mut keyword));
            if target.is_empty() {
                target.push(first);
            }
        }
        match (source.as_slice(), target.as_slice()) {
            ([], _) | (_, []) => {}
            ([word], [form]) => {
                let form = Form { word: form.as_str().into(), after_stemming };
                dictionary.forms.insert(word.as_str().into(), form);
            }
            (source, target) => {
                if let [word] = target {
                    // The replacement of a sequence is not stemmed.
                    let word: Box<str> = word.as_str().into();
                    let form = Form { word: word.clone(), after_stemming: false };
                    dictionary.forms.entry(word).or_insert(form);
                }
                let target = target.iter().map(|word| word.as_str().into()).collect();
                sequences.insert(source, target);
            }
        }
    }
    Ok(())
}

/// The words of a text; blended words as written.
fn words(text: &str, rules: &TokenRules) -> Vec<String> {
    let mut tokenizer = Tokenizer::document(rules, text);
    let (mut found, mut word) = (Vec::new(), String::new());
    while let Some(token) = tokenizer.next(&mut word) {
        if token.kind != Kind::Part {
            found.push(word.clone());
        }
    }
    found
}

/// Tokens with sequences replaced.
pub(super) struct Tokens<'a> {
    pub tokenizer: Tokenizer<'a>,
    sequences: &'a Sequences,
    /// Tokens read ahead to check whether they continue a sequence.
    ahead: VecDeque<(TextToken, String)>,
    /// The rest of the last sequence's replacement.
    ready: VecDeque<(TextToken, &'a str)>,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(tokenizer: Tokenizer<'a>, sequences: &'a Sequences) -> Self {
        Self { tokenizer, sequences, ahead: VecDeque::new(), ready: VecDeque::new() }
    }

    /// Drops tokens read ahead and continues at `offset`.
    pub(super) fn seek(&mut self, offset: usize) {
        self.ahead.clear();
        self.ready.clear();
        self.tokenizer.take_skipped();
        self.tokenizer.seek(offset);
    }

    /// Whether more of the last replacement follows.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next token; its text is written to `word`.
    #[inline]
    pub(super) fn next(&mut self, word: &mut String) -> Option<TextToken> {
        if self.sequences.is_empty() {
            return self.tokenizer.next(word);
        }
        if let Some((token, text)) = self.ready.pop_front() {
            text.clone_into(word);
            return Some(token);
        }
        self.replace();
        if let Some((token, text)) = self.ready.pop_front() {
            text.clone_into(word);
            return Some(token);
        }
        let (token, text) = self.ahead.pop_front()?;
        *word = text;
        Some(token)
    }

    fn ahead(&mut self, at: usize) -> Option<&(TextToken, String)> {
        while self.ahead.len() <= at {
            let mut word = String::new();
            let token = self.tokenizer.next(&mut word)?;
            self.ahead.push_back((token, word));
        }
        self.ahead.get(at)
    }

    /// Replaces the sequence that begins here, if there is one.
    fn replace(&mut self) {
        let sequences = self.sequences;
        let Some((token, word)) = self.ahead(0) else { return };
        let token = *token;
        match token.kind {
            Kind::Whole => self.replace_whole(),
            kind if stands_alone(kind) => {
                let candidates = sequences.by_first.get(word.as_str());
                let mut candidates = candidates.into_iter().flatten();
                let Some(found) = candidates.find(|sequence| self.follows(sequence)) else {
                    return;
                };
                let mut last = token;
                for (token, _) in self.ahead.drain(..=found.rest.len()) {
                    last = token;
                }
                let token = TextToken { start: token.start, kind: Kind::Word, ..last };
                self.ready.extend(found.replacement.iter().map(|word| (token, &**word)));
            }
            _ => {}
        }
    }

    /// Whether the other words of the sequence follow.
    fn follows(&mut self, sequence: &Sequence) -> bool {
        sequence.rest.iter().zip(1..).all(|(expected, at)| {
            let next = self.ahead(at);
            next.is_some_and(|(token, word)| stands_alone(token.kind) && **word == **expected)
        })
    }

    /// Replaces a blended word whose parts are a sequence; the parts stay.
    fn replace_whole(&mut self) {
        let sequences = self.sequences;
        let mut count = 0;
        while self.ahead(count + 1).is_some_and(|(token, _)| token.kind == Kind::Part) {
            count += 1;
        }
        let Some((_, first)) = self.ahead.get(1).filter(|_| count > 0) else { return };
        let parts = || self.ahead.iter().skip(2).take(count - 1).map(|(_, word)| word.as_str());
        let candidates = sequences.by_first.get(first.as_str());
        let found = candidates.into_iter().flatten().find(|sequence| {
            sequence.rest.len() == count - 1 && parts().eq(sequence.rest.iter().map(|word| &**word))
        });
        let Some(found) = found else { return };
        if let Some((token, _)) = self.ahead.pop_front() {
            self.ready.extend(found.replacement.iter().map(|word| (token, &**word)));
        }
    }
}

/// Whether the token can be a word of a sequence.
fn stands_alone(kind: Kind) -> bool {
    matches!(kind, Kind::Word | Kind::Exception { is_blended: false })
}
