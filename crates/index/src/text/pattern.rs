//! A search text, cut into the term sets that are looked up in the index.
//!
//! A substring has the atoms of its text, except at its ends: its first word may be the end of a longer one,
//! its last word the beginning of one, and likewise separators. So a pattern becomes elements at fixed
//! distances. Each is a set of terms: those that end with the first piece, those that begin with the last,
//! and the exact terms between.

use super::{
    Normalization,
    atoms::{AtomKind, atoms},
    element::{Element, TermMatch},
    neighbours::Chains,
    terms::joined_bytes,
};

/// Consecutive atoms, none of them a separator.
pub(crate) type AtomRun<'t> = Vec<(AtomKind, &'t str)>;

/// A normalised, non-empty search text. It is cut once for all segments.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// The pattern matches where one of these sequences matches.
    pub(crate) alternatives: Vec<Vec<Element>>,
    /// The parts of the pattern that may have precomputed lists.
    pub(crate) chains: Chains,
    /// Whether the elements match more than the pattern does, so that texts must be verified.
    pub(crate) verify: bool,
}

impl Pattern {
    /// Normalises and cuts `text`; `None` if nothing is left of it.
    pub fn new(text: &str, normalization: &Normalization) -> Option<Self> {
        let text = normalization.apply(text).into_owned();
        let (alternatives, verify) = alternatives(&text)?;
        let chains = chains(&alternatives);
        Some(Self { text, alternatives, chains, verify })
    }

    /// A sequence of whole-word runs. The last word may be the beginning of a longer one if `open_end`. Each
    /// element of `gaps` is one alternative: a bit for each pair of neighbours, set if a separator other than a
    /// single space is between them.
    pub(crate) fn of_runs(
        runs: &[AtomRun<'_>],
        gaps: impl IntoIterator<Item = u32>,
        open_end: bool,
    ) -> Self {
        let alternatives = gaps.into_iter().map(|gaps| place_runs(runs, gaps, open_end));
        let words: Vec<String> =
            runs.iter().map(|run| run.iter().map(|atom| atom.1).collect()).collect();
        let alternatives: Vec<Vec<Element>> = alternatives.collect();
        let chains = chains(&alternatives);
        Self { text: words.join(" "), alternatives, chains, verify: false }
    }

    /// The normalised text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether positions must be read to find it.
    pub fn is_sequence(&self) -> bool {
        let alone = |elements: &Vec<Element>| elements.len() == 1 && elements[0].space.is_none();
        !self.alternatives.iter().all(alone)
    }

    /// Whether the index may return false positives ([`super::Matches::verify`]).
    pub fn needs_texts(&self) -> bool {
        self.verify
    }
}

/// The parts of a pattern that may have precomputed lists; none if it has alternatives.
pub(super) fn chains(alternatives: &[Vec<Element>]) -> Chains {
    match alternatives {
        [elements] => Chains::new(elements),
        _ => Chains::default(),
    }
}

/// The elements of consecutive runs. Between two runs there is a separator with an ordinal of its own if the
/// bit of `gaps` is set, else a single space.
fn place_runs(runs: &[AtomRun<'_>], gaps: u32, open_end: bool) -> Vec<Element> {
    let mut placed: Vec<Element> = Vec::new();
    let mut distance = 0;
    for (index, run) in runs.iter().enumerate() {
        let last = index + 1 == runs.len();
        let kind = run.last().map(|atom| atom.0);
        let open_end = last && (open_end || kind == Some(AtomKind::Character));
        let mut elements = elements(run, Ends { open_start: false, open_end });
        let separated = index > 0 && gaps >> (index - 1) & 1 == 1;
        distance += u32::from(separated);
        elements.iter_mut().for_each(|element| element.distance += distance);
        if let (Some(first), true) = (elements.first_mut(), index > 0) {
            first.space = Some(!separated);
        }
        if let (Some(end), true, false) = (elements.last_mut(), last, open_end)
            && let TermMatch::Exact(word) = &mut end.terms
        {
            end.terms = TermMatch::Word(std::mem::take(word));
        }
        placed.extend(elements);
        distance += run.len() as u32;
    }
    placed
}

fn alternatives(text: &str) -> Option<(Vec<Vec<Element>>, bool)> {
    let all: Vec<(AtomKind, &str)> = atoms(text).collect();
    if all.is_empty() {
        return None;
    }
    if text == " " {
        // Almost every text has a space, and single spaces are not terms.
        return Some((Vec::new(), true));
    }
    let leading = all.first() == Some(&(AtomKind::Separator, " "));
    let trailing = all.last() == Some(&(AtomKind::Separator, " "));
    let body = &all[usize::from(leading)..all.len() - usize::from(trailing)];
    let ends = Ends { open_start: !leading, open_end: !trailing };
    let mut elements = elements(body, ends);
    if !leading {
        return Some((vec![elements], trailing));
    }
    let mut behind_separator = elements.clone();
    for element in &mut behind_separator {
        element.distance += 1;
    }
    if let (Some(first), Some(behind)) = (elements.first_mut(), behind_separator.first_mut()) {
        first.space = Some(true);
        behind.space = Some(false);
    }
    let terms = TermMatch::Suffix(" ".to_owned());
    behind_separator.insert(0, Element { distance: 0, space: None, terms });
    Some((vec![elements, behind_separator], trailing))
}

/// Whether the first atom may be the end of a longer one, and the last atom the beginning of one.
#[derive(Clone, Copy)]
struct Ends {
    open_start: bool,
    open_end: bool,
}

fn elements(atoms: &[(AtomKind, &str)], ends: Ends) -> Vec<Element> {
    let mut elements: Vec<Element> = Vec::new();
    let (mut distance, mut space) = (0, false);
    for (index, &(kind, atom)) in atoms.iter().enumerate() {
        let last = index + 1 == atoms.len();
        if kind == AtomKind::Separator && atom == " " && index > 0 && !last {
            space = true;
            continue;
        }
        let starts = index == 0 && ends.open_start;
        let ends = last && ends.open_end;
        let previous = elements.last().filter(|element| element.distance + 1 == distance);
        let terms = match kind {
            AtomKind::Character => character_terms(atoms, index, ends, previous),
            _ if index > 0 && ends && is_told(atoms[index - 1].1, atom, previous) => None,
            _ => Some(run_terms(atoms, index, starts, ends)),
        };
        if let Some(terms) = terms {
            let space = (index > 0).then_some(space);
            elements.push(Element { distance, space, terms });
        }
        distance += 1;
        space = false;
    }
    elements
}

/// The terms of a word or separator; a word is indexed with the character that directly follows it.
fn run_terms(
    atoms: &[(AtomKind, &str)],
    index: usize,
    open_start: bool,
    open_end: bool,
) -> TermMatch {
    let term = joined(atoms, index);
    match (open_start, open_end) {
        (true, true) => TermMatch::Contains(term),
        (true, false) => TermMatch::Suffix(term),
        (false, true) => TermMatch::Prefix(term),
        (false, false) => TermMatch::Exact(term),
    }
}

/// The term that begins at an atom.
fn joined(atoms: &[(AtomKind, &str)], index: usize) -> String {
    let (kind, atom) = atoms[index];
    let next = atoms.get(index + 1);
    let bytes = joined_bytes(kind, next);
    [atom, next.map_or("", |next| &next.1[..bytes])].concat()
}

/// Whether the element before already implies the last piece: a single code point that is part of that term.
fn is_told(before: &str, piece: &str, previous: Option<&Element>) -> bool {
    let term = previous.map(|element| &element.terms);
    matches!(term, Some(TermMatch::Exact(term)) if *term == [before, piece].concat())
}

/// The terms of a character. `previous` is the element of the atom before it, if there is one,
/// which may already imply this character. Every second pair of a run of characters implies the
/// whole run: a pair at the right position, without a space before it, directly follows the
/// previous one.
fn character_terms(
    atoms: &[(AtomKind, &str)],
    index: usize,
    open_end: bool,
    previous: Option<&Element>,
) -> Option<TermMatch> {
    let kind = |index: usize| atoms.get(index).map(|atom| atom.0);
    let before = index.checked_sub(1).and_then(kind);
    let told = previous.is_some() && before.is_some_and(|kind| kind != AtomKind::Separator);
    match kind(index + 1) {
        Some(AtomKind::Character) if told && kind(index + 2) == Some(AtomKind::Character) => None,
        Some(AtomKind::Character) => Some(TermMatch::Exact(joined(atoms, index))),
        // The prefix of a last word is expensive to look up alone.
        Some(AtomKind::Word) if told && index + 2 < atoms.len() => None,
        None | Some(AtomKind::Separator) if told => None,
        None if open_end => Some(TermMatch::Prefix(atoms[index].1.to_owned())),
        _ => Some(TermMatch::Exact(joined(atoms, index))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let pattern = Pattern::new(text, &Normalization::default()).unwrap();
        let show = |element: &Element| {
            let (open, term, close) = match &element.terms {
                TermMatch::Exact(term) => ("", term, ""),
                TermMatch::Prefix(term) => ("", term, "*"),
                TermMatch::Suffix(term) => ("*", term, ""),
                TermMatch::Contains(term) => ("*", term, "*"),
                TermMatch::Word(term) => ("", term, "."),
                TermMatch::Terms(_) => unreachable!("nothing was looked up"),
            };
            let space = match element.space {
                None => "?",
                Some(true) => "_",
                Some(false) => "",
            };
            format!("{}{space}{open}{term}{close}", element.distance)
        };
        let verify = pattern.verify.then(|| "verify".to_owned());
        let alternatives = pattern
            .alternatives
            .iter()
            .map(|elements| elements.iter().map(show).collect::<Vec<_>>().join(" "));
        alternatives.chain(verify).collect()
    }

    #[test]
    fn patterns_are_parsed_into_elements() {
        assert_eq!(shown("Quantum"), ["0?*quantum*"]);
        assert_eq!(shown("quantum physics"), ["0?*quantum 1_physics*"]);
        assert_eq!(shown("to be or"), ["0?*to 1_be 2_or*"]);
        assert_eq!(shown("c++"), ["0?*c 1++*"]);
        assert_eq!(shown("(e-mail)"), ["0?*( 1e 2- 3mail 4)*"]);
        assert_eq!(shown("東"), ["0?東*"]);
        assert_eq!(shown("東京"), ["0?東京"]);
        assert_eq!(shown("東京都"), ["0?東京 1京都"]);
        assert_eq!(shown("大韓民国"), ["0?大韓 2民国"]);
        assert_eq!(shown("국 정부"), ["0?*국 1_정부*"]);
        assert_eq!(shown("国 政府"), ["0?国 1_政府"]);
        assert_eq!(shown("Tシャツ"), ["0?*tシ 2ャツ"]);
        assert_eq!(shown("0年"), ["0?*0年"]);
        assert_eq!(shown("第1"), ["0?第1"]);
        assert_eq!(shown("第12"), ["0?第1 112*"]);
        assert_eq!(shown("2010年1月3日"), ["0?*2010年 21月 43日"]);
        assert_eq!(shown("75年1"), ["0?*75年 1年1"]);
        assert_eq!(shown("都 2年度"), ["0?都 1_2年 2年度"]);
        assert_eq!(shown(" or"), ["0_or*", "0?*  1or*"]);
        assert_eq!(shown("or "), ["0?*or", "verify"]);
        assert_eq!(shown(" "), ["verify"]);
        assert_eq!(shown("++"), ["0?*++*"]);
        assert!(Pattern::new("", &Normalization::default()).is_none());
    }
}
