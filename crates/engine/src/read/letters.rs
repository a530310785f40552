//! Exact substring search in a column under a collation, for LIKE.
//!
//! The text index contains normalised text. In most documents it decides exactly; the rest are read:
//! - Each letter may match others (`e` matches `É`). The index is asked for the normalised forms of all of them.
//! - If all characters of a document normalise to their own lower case, its normalised text decides, provided that
//!   letters with the same lower case are equal.
//! - For other characters, and for framed letters, the index knows the documents that contain them. If such a
//!   character can cause a false negative, its documents are doubtful: their texts are read. If it can cause a
//!   false positive, its documents are doubtful where the index finds a match. If case distinguishes letters, all
//!   matches are doubtful.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use remora_index::{
    DocSet,
    text::{Images, Normalization, Pattern, TextIndex, simple_lower_case},
};
use rustc_hash::FxHashMap;

use crate::{ColumnLetters, LetterClasses, Result, TextDef, Value};

/// A search text prepared for one text index.
pub(super) struct LetterTerm {
    letters: Vec<char>,
    /// The letters as they are matched in an original text.
    spelling: LetterSequence,
    column: usize,
    /// Whether the caller tests the rows again.
    pub is_tested_again: bool,
    classes: Arc<dyn LetterClasses>,
    images: Images,
    /// The pattern for the index; `None` if the index cannot be used.
    pattern: Option<Pattern>,
    /// For each letter, the normalised forms of all letters equal to it.
    sets: Vec<HashSet<char>>,
    /// All of these forms, and all letters that equal a letter of the text.
    alphabet: HashSet<char>,
    /// Whether an index match is exact: letters with the same lower case are equal, and the index covers only this
    /// column.
    proves: bool,
    /// Cached effects of special characters.
    doubts: Mutex<FxHashMap<char, CharacterEffect>>,
}

/// How a special character can falsify the index's answer for the search text.
#[derive(Clone, Copy)]
struct CharacterEffect {
    /// It can cause a false negative: it is equal to a letter, but its normalised form is not.
    false_negative: bool,
    /// It can cause a false positive: it is equal to no letter, but its normalised form looks like one.
    false_positive: bool,
}

/// The result for a segment's documents.
pub(super) struct SubstringDocs {
    /// Documents that certainly contain the text.
    pub sure: DocSet,
    /// Documents whose texts must be read.
    pub doubtful: DocSet,
}

impl LetterTerm {
    /// `None` if the text is empty.
    pub fn new(text: &str, column: &ColumnLetters, definition: &TextDef) -> Option<Self> {
        let alone = definition.columns == [column.column];
        Self::of(text, column, &definition.normalization, alone)
    }

    /// A text to find letter by letter in an index that is not over a column. There are no rows to
    /// read, so all matches are doubtful. `None` if the text is empty.
    pub fn as_spelled(text: &str, normalization: &Normalization) -> Option<Self> {
        let column = ColumnLetters {
            column: usize::MAX,
            classes: Arc::new(ExactLetters),
            is_tested_again: true,
        };
        Self::of(text, &column, normalization, false)
    }

    /// `alone` says that the index covers only this column.
    fn of(
        text: &str,
        column: &ColumnLetters,
        normalization: &Normalization,
        alone: bool,
    ) -> Option<Self> {
        let letters: Vec<char> = text.chars().collect();
        if letters.is_empty() {
            return None;
        }
        let images = Images::of(normalization);
        let mut alphabet = HashSet::new();
        let (mut sets, mut spelling) = (Vec::new(), Vec::new());
        for &letter in &letters {
            let mut equals = Vec::new();
            column.classes.equals(letter, &mut equals);
            let set = equals.iter().filter_map(|&other| single(other, normalization, &images));
            let set: HashSet<char> = set.collect();
            alphabet.extend(set.iter().chain(&equals));
            sets.push(set);
            spelling.push(EqualCharacters::new(equals));
        }
        let classes = Arc::clone(&column.classes);
        let proves = alone && case_is_one(&letters, &sets, &*classes, &images);
        let plain = |&letter: &char| single(letter, normalization, &images);
        let apart: Option<String> = letters.iter().map(plain).collect();
        let pattern = apart
            .filter(|apart| *apart == normalization.apply(text))
            .and_then(|apart| Pattern::new(&apart, normalization))
            // Normalising a second time may change the text.
            .filter(|pattern| pattern.text().chars().count() == letters.len());
        let &ColumnLetters { column, is_tested_again, .. } = column;
        let doubts = Mutex::default();
        Some(Self {
            letters,
            spelling: LetterSequence::new(spelling),
            column,
            is_tested_again,
            classes,
            images,
            pattern,
            sets,
            alphabet,
            proves,
            doubts,
        })
    }

    /// Asks the index of a segment.
    pub fn find(&self, index: &TextIndex, documents: u32) -> Result<SubstringDocs> {
        let all = || SubstringDocs { sure: DocSet::empty(), doubtful: DocSet::all(documents) };
        let mut strays = Vec::new();
        let spelled = self.pattern.as_ref().and_then(|pattern| {
            let spellings = |letter, out: &mut Vec<char>| self.spellings(letter, out);
            index.spelled(pattern, &spellings, &mut strays)
        });
        let may = |c: char| match self.images.is_framed(c) {
            true => CharacterEffect { false_negative: strays.contains(&c), false_positive: false },
            false => *self.doubts.lock().entry(c).or_insert_with(|| self.doubt(c)),
        };
        let hiding = index.documents_with(&mut |c| may(c).false_negative)?;
        let pretending = index.documents_with(&mut |c| may(c).false_positive)?;
        let (Some(mut hiding), Some(pretending), Some(pattern)) = (hiding, pretending, spelled)
        else {
            return Ok(all());
        };
        for stray in strays.into_iter().filter(|&stray| !self.images.is_framed(stray)) {
            if let Some(stray) = Pattern::new(&stray.to_string(), &Normalization::default()) {
                hiding = hiding.union(&index.find(&stray)?.docs, documents);
            }
        }
        let found = index.find(&pattern)?;
        if self.proves && !found.verify {
            let doubtful = hiding.union(&found.docs.clone().intersect(&pretending), documents);
            return Ok(SubstringDocs { sure: found.docs.subtract(&doubtful), doubtful });
        }
        let doubtful = found.docs.union(&hiding, documents);
        Ok(SubstringDocs { sure: DocSet::empty(), doubtful })
    }

    /// Whether a row's text contains the letters.
    pub fn occurs_in(&self, row: &[Value]) -> bool {
        let text = match row.get(self.column) {
            Some(Value::Text(text) | Value::Json(text)) => text,
            _ => return false,
        };
        self.spelling.occurs_in(text)
    }

    /// The position of the column.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The normalised text, for reports.
    pub fn text(&self) -> &str {
        self.pattern.as_ref().map_or("", Pattern::text)
    }

    /// The characters that may occur in the place of a normalised letter.
    fn spellings(&self, letter: char, out: &mut Vec<char>) {
        let asked = self.pattern.as_ref().map_or("", Pattern::text).chars();
        let sets = asked.zip(&self.sets).filter(|(asked, _)| *asked == letter);
        out.extend(sets.flat_map(|(_, set)| set));
        out.sort_unstable();
        out.dedup();
    }

    /// The effect of a character that does not normalise to its own lower case.
    fn doubt(&self, c: char) -> CharacterEffect {
        if self.images.joins(c) {
            return CharacterEffect { false_negative: true, false_positive: true };
        }
        let Some(image) = self.images.get(c) else {
            return CharacterEffect { false_negative: true, false_positive: true };
        };
        let known = |c: &char| self.alphabet.contains(c);
        if !known(&c) && !image.iter().any(known) {
            // A character that normalises to nothing makes the letters around it adjacent.
            return CharacterEffect { false_negative: false, false_positive: image.is_empty() };
        }
        let is_one = |letter: &char| self.classes.are_equal(*letter, c);
        match image {
            [single] => {
                let places = || self.sets.iter().zip(&self.letters);
                CharacterEffect {
                    false_negative: places().any(|(set, one)| is_one(one) && !set.contains(single)),
                    false_positive: places().any(|(set, one)| !is_one(one) && set.contains(single)),
                }
            }
            [] => CharacterEffect {
                false_negative: self.letters.iter().any(is_one),
                false_positive: true,
            },
            image => CharacterEffect {
                false_negative: self.letters.iter().any(is_one),
                false_positive: self.overlaps(image),
            },
        }
    }

    /// Whether a character's normalised form matches the text at some shift, where the two overlap.
    fn overlaps(&self, image: &[char]) -> bool {
        let (letters, width) = (self.sets.len(), image.len());
        (1..letters + width).any(|shift| {
            // The first of the image stands at `shift - width`, counted in letters sought.
            let mut both = image
                .iter()
                .enumerate()
                .map(|(at, c)| (at + shift, c))
                .filter(|(at, _)| (width..width + letters).contains(at));
            both.all(|(at, c)| self.sets.get(at - width).is_some_and(|set| set.contains(c)))
        })
    }
}

/// Every letter is equal to itself only.
#[derive(Debug)]
struct ExactLetters;

impl LetterClasses for ExactLetters {
    fn are_equal(&self, a: char, b: char) -> bool {
        a == b
    }

    fn equals(&self, letter: char, out: &mut Vec<char>) {
        out.push(letter);
    }
}

/// Consecutive letters, each with all characters equal to it.
struct LetterSequence {
    letters: Vec<EqualCharacters>,
    /// The first bytes of the characters equal to the first letter; never a continuation byte.
    first_bytes: [bool; 256],
}

impl LetterSequence {
    fn new(letters: Vec<EqualCharacters>) -> Self {
        let mut first_bytes = [false; 256];
        for c in letters.first().iter().flat_map(|first| &first.characters) {
            first_bytes[usize::from(c.encode_utf8(&mut [0; 4]).as_bytes()[0])] = true;
        }
        Self { letters, first_bytes }
    }

    fn occurs_in(&self, text: &str) -> bool {
        let begins = |(at, byte): (usize, u8)| {
            self.first_bytes[usize::from(byte)] && {
                let mut here = text[at..].chars();
                self.letters.iter().all(|equals| here.next().is_some_and(|c| equals.has(c)))
            }
        };
        text.bytes().enumerate().any(begins)
    }
}

/// The characters that are equal to a letter.
struct EqualCharacters {
    /// One bit for each ASCII character; almost all of most texts.
    ascii: u128,
    /// All the characters, in ascending order.
    characters: Vec<char>,
}

impl EqualCharacters {
    fn new(mut characters: Vec<char>) -> Self {
        characters.sort_unstable();
        let ascii = characters.iter().filter(|c| c.is_ascii());
        Self { ascii: ascii.fold(0, |bits, &c| bits | 1 << u32::from(c)), characters }
    }

    #[inline]
    fn has(&self, c: char) -> bool {
        match c.is_ascii() {
            true => self.ascii >> u32::from(c) & 1 == 1,
            false => self.characters.binary_search(&c).is_ok(),
        }
    }
}

/// The normalised form of a letter, if that is one character.
fn single(letter: char, normalization: &Normalization, images: &Images) -> Option<char> {
    let image = match images.get(letter) {
        None => simple_lower_case(letter),
        Some([single]) => *single,
        Some(_) => return None,
    };
    // Normalised text contains only characters that normalise to themselves.
    (*normalization.apply(image.encode_utf8(&mut [0; 4])) == *image.to_string()).then_some(image)
}

/// Whether, for each letter, all characters whose lower case is in the letter's set are equal to that letter.
fn case_is_one(
    letters: &[char],
    sets: &[HashSet<char>],
    classes: &dyn LetterClasses,
    images: &Images,
) -> bool {
    letters.iter().zip(sets).all(|(letter, set)| {
        set.iter().all(|lower| {
            let cased = UPPER.get(lower).map_or(&[][..], |cased| cased);
            let own = std::iter::once(lower).chain(cased);
            own.filter(|&&c| images.get(c).is_none()).all(|&c| classes.are_equal(c, *letter))
        })
    })
}

/// Maps each lower-case character to those whose lower case it is.
static UPPER: LazyLock<HashMap<char, Vec<char>>> = LazyLock::new(|| {
    let mut upper: HashMap<char, Vec<char>> = HashMap::new();
    for c in (0..0x11_0000).filter_map(char::from_u32) {
        let lower = simple_lower_case(c);
        if lower != c {
            upper.entry(lower).or_default().push(c);
        }
    }
    upper
});
