//! A text to be found, cut into what the index is asked for.
//!
//! A piece cut out of a text has the atoms of the text but for its ends: its first word may be
//! the end of a longer one, its last the beginning of one, and likewise separators. So a pattern
//! becomes elements at fixed distances, each a set of terms: those that end with the first piece,
//! that begin with the last, that are the one between.

use super::{
    Normalization,
    atoms::{AtomKind, atoms},
};

/// A normalised, non-empty text to be found, cut once for all segments.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// The pattern holds where one of these does.
    pub(crate) alternatives: Vec<Vec<Element>>,
    /// The elements hold for more than the pattern does: the text must be read.
    pub(crate) verify: bool,
}

/// One term set at a distance from the pattern's first atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// Ordinals behind the first atom.
    pub distance: u32,
    /// Whether a single space must (`true`) or must not stand before the atom.
    pub space: Option<bool>,
    /// Which terms.
    pub terms: TermMatch,
}

/// A set of terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TermMatch {
    /// This term.
    Exact(String),
    /// Terms that begin so.
    Prefix(String),
    /// Terms that end so.
    Suffix(String),
    /// Terms that contain it.
    Contains(String),
}

impl Pattern {
    /// Normalises and cuts `text`; `None` if nothing is left of it.
    pub fn new(text: &str, normalization: &Normalization) -> Option<Self> {
        let text = normalization.apply(text).into_owned();
        let (alternatives, verify) = alternatives(&text)?;
        Some(Self { text, alternatives, verify })
    }

    /// The normalised text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many term sets the index is asked for.
    pub fn element_count(&self) -> usize {
        self.alternatives.iter().map(Vec::len).sum()
    }
}

fn alternatives(text: &str) -> Option<(Vec<Vec<Element>>, bool)> {
    let all: Vec<(AtomKind, &str)> = atoms(text).collect();
    if all.is_empty() {
        return None;
    }
    if text == " " {
        // Nearly every text has one; single spaces are not terms.
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

/// Whether the first atom may be the end, and the last the beginning, of a longer one.
#[derive(Clone, Copy)]
struct Ends {
    open_start: bool,
    open_end: bool,
}

fn elements(atoms: &[(AtomKind, &str)], ends: Ends) -> Vec<Element> {
    let mut elements = Vec::new();
    let (mut distance, mut space) = (0, false);
    for (index, &(kind, atom)) in atoms.iter().enumerate() {
        let last = index + 1 == atoms.len();
        if kind == AtomKind::Separator && atom == " " && index > 0 && !last {
            space = true;
            continue;
        }
        let starts = index == 0 && ends.open_start;
        let ends = last && ends.open_end;
        let terms = match kind {
            AtomKind::Character => character_terms(atoms, index, ends, &elements, distance),
            _ => Some(run_terms(atom, starts, ends)),
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

fn run_terms(atom: &str, open_start: bool, open_end: bool) -> TermMatch {
    let atom = atom.to_owned();
    match (open_start, open_end) {
        (true, true) => TermMatch::Contains(atom),
        (true, false) => TermMatch::Suffix(atom),
        (false, true) => TermMatch::Prefix(atom),
        (false, false) => TermMatch::Exact(atom),
    }
}

/// Every second pair of a run of characters tells the whole run, since a pair that stands where
/// it must without a space before it follows the one before directly.
fn character_terms(
    atoms: &[(AtomKind, &str)],
    index: usize,
    open_end: bool,
    elements: &[Element],
    distance: u32,
) -> Option<TermMatch> {
    let is_character = |index: usize| atoms.get(index).filter(|a| a.0 == AtomKind::Character);
    let previous = index.checked_sub(1).and_then(is_character);
    let next = is_character(index + 1);
    let told = previous.is_some()
        && elements.last().is_some_and(|element| element.distance + 1 == distance);
    match next {
        Some(next) if !told || is_character(index + 2).is_none() => {
            Some(TermMatch::Exact([atoms[index].1, next.1].concat()))
        }
        Some(_) => None,
        None if told => None,
        None if open_end => Some(TermMatch::Prefix(atoms[index].1.to_owned())),
        None => Some(TermMatch::Exact(atoms[index].1.to_owned())),
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
    fn patterns_become_elements() {
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
        assert_eq!(shown("Tシャツ"), ["0?*t 1シャ 2ャツ"]);
        assert_eq!(shown(" or"), ["0_or*", "0?*  1or*"]);
        assert_eq!(shown("or "), ["0?*or", "verify"]);
        assert_eq!(shown(" "), ["verify"]);
        assert_eq!(shown("++"), ["0?*++*"]);
        assert!(Pattern::new("", &Normalization::default()).is_none());
    }
}
