//! Exact letters in a column, as LIKE needs them.
//!
//! The text index knows normalised text. Which rows hold the letters is read from it wherever
//! normalised and original text say the same, which is nearly everywhere:
//! - Each letter of the text sought may stand for others (`e` for `É`). The index is asked for all
//!   of them, as they are normalised.
//! - A document whose characters all become their own lower case holds the letters iff its
//!   normalised text holds their normal forms, provided that letters of one lower case are equal.
//! - Characters that become anything else are known document by document, and letters in frames.
//!   Those that could hide the letters sought make their documents doubtful: their texts are read.
//!   Those that could pretend to be the letters do so where the index finds the letters. All that
//!   is found is doubtful where case makes letters differ.

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

/// Letters made ready for one text index.
pub(super) struct LetterTerm {
    letters: Vec<char>,
    /// The letters as they are looked for in a text.
    spelling: Spelling,
    column: usize,
    classes: Arc<dyn LetterClasses>,
    images: Images,
    /// What the index is asked for; `None` where it cannot be asked.
    pattern: Option<Pattern>,
    /// For each letter what may stand there, normalised.
    sets: Vec<HashSet<char>>,
    /// All of them, and all letters that are equal to one.
    alphabet: HashSet<char>,
    /// Whether letters of one lower case are equal, and the index holds this column alone.
    proves: bool,
    /// What the characters may do that were looked at.
    doubts: Mutex<FxHashMap<char, Doubt>>,
}

/// What a character may do to the letters that are sought.
#[derive(Clone, Copy)]
struct Doubt {
    /// It is one of them, and normalised text does not say so.
    hides: bool,
    /// It is none of them, and normalised text looks as if it were.
    pretends: bool,
}

/// What is known of a segment's documents.
pub(super) struct Held {
    /// They hold the letters.
    pub sure: DocSet,
    /// Their texts must be read.
    pub doubtful: DocSet,
}

impl LetterTerm {
    /// `None` for no letters.
    pub fn new(text: &str, column: &ColumnLetters, definition: &TextDef) -> Option<Self> {
        let letters: Vec<char> = text.chars().collect();
        if letters.is_empty() {
            return None;
        }
        let normalization = &definition.normalization;
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
            spelling.push(Equals::new(equals));
        }
        let alone = definition.columns == [column.column];
        let classes = Arc::clone(&column.classes);
        let proves = alone && case_is_one(&letters, &sets, &*classes, &images);
        let plain = |&letter: &char| single(letter, normalization, &images);
        let apart: Option<String> = letters.iter().map(plain).collect();
        let pattern = apart
            .filter(|apart| *apart == normalization.apply(text))
            .and_then(|apart| Pattern::new(&apart, normalization))
            // What is normalised twice may become another.
            .filter(|pattern| pattern.text().chars().count() == letters.len());
        let column = column.column;
        let doubts = Mutex::default();
        Some(Self {
            letters,
            spelling: Spelling::new(spelling),
            column,
            classes,
            images,
            pattern,
            sets,
            alphabet,
            proves,
            doubts,
        })
    }

    /// What the index knows.
    pub fn find(&self, index: &TextIndex, documents: u32) -> Result<Held> {
        let all = || Held { sure: DocSet::empty(), doubtful: DocSet::all(documents) };
        let mut strays = Vec::new();
        let spelled = self.pattern.as_ref().and_then(|pattern| {
            let spellings = |letter, out: &mut Vec<char>| self.spellings(letter, out);
            index.spelled(pattern, &spellings, &mut strays)
        });
        let may = |c: char| match self.images.is_framed(c) {
            true => Doubt { hides: strays.contains(&c), pretends: false },
            false => *self.doubts.lock().entry(c).or_insert_with(|| self.doubt(c)),
        };
        let hiding = index.documents_with(&mut |c| may(c).hides)?;
        let pretending = index.documents_with(&mut |c| may(c).pretends)?;
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
            return Ok(Held { sure: found.docs.subtract(&doubtful), doubtful });
        }
        let doubtful = found.docs.union(&hiding, documents);
        Ok(Held { sure: DocSet::empty(), doubtful })
    }

    /// Whether a row's text has the letters.
    pub fn occurs_in(&self, row: &[Value]) -> bool {
        let text = match row.get(self.column) {
            Some(Value::Text(text) | Value::Json(text)) => text,
            _ => return false,
        };
        self.spelling.occurs_in(text)
    }

    /// The column whose letters are meant.
    pub fn column(&self) -> usize {
        self.column
    }

    /// How it is told of.
    pub fn text(&self) -> &str {
        self.pattern.as_ref().map_or("", Pattern::text)
    }

    /// What may stand where a normalised letter is sought.
    fn spellings(&self, letter: char, out: &mut Vec<char>) {
        let asked = self.pattern.as_ref().map_or("", Pattern::text).chars();
        let sets = asked.zip(&self.sets).filter(|(asked, _)| *asked == letter);
        out.extend(sets.flat_map(|(_, set)| set));
        out.sort_unstable();
        out.dedup();
    }

    /// What a character may do that does not become its own lower case.
    fn doubt(&self, c: char) -> Doubt {
        if self.images.joins(c) {
            return Doubt { hides: true, pretends: true };
        }
        let Some(image) = self.images.get(c) else { return Doubt { hides: true, pretends: true } };
        let known = |c: &char| self.alphabet.contains(c);
        if !known(&c) && !image.iter().any(known) {
            // What is between two letters and becomes nothing makes them neighbours.
            return Doubt { hides: false, pretends: image.is_empty() };
        }
        let is_one = |letter: &char| self.classes.are_equal(*letter, c);
        match image {
            [single] => {
                let places = || self.sets.iter().zip(&self.letters);
                Doubt {
                    hides: places().any(|(set, one)| is_one(one) && !set.contains(single)),
                    pretends: places().any(|(set, one)| !is_one(one) && set.contains(single)),
                }
            }
            [] => Doubt { hides: self.letters.iter().any(is_one), pretends: true },
            image => {
                Doubt { hides: self.letters.iter().any(is_one), pretends: self.overlaps(image) }
            }
        }
    }

    /// Whether the characters fit the letters sought wherever the two overlap, for some place.
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

/// Letters behind each other, each with what is equal to it.
struct Spelling {
    letters: Vec<Equals>,
    /// The bytes with which what is equal to the first letter begins: never a byte within a
    /// character.
    first_bytes: [bool; 256],
}

impl Spelling {
    fn new(letters: Vec<Equals>) -> Self {
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
struct Equals {
    /// One bit for each of ASCII: nearly all of nearly every text.
    ascii: u128,
    /// All of them, ascending.
    characters: Vec<char>,
}

impl Equals {
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

/// What a letter becomes, if that is one character.
fn single(letter: char, normalization: &Normalization, images: &Images) -> Option<char> {
    let image = match images.get(letter) {
        None => simple_lower_case(letter),
        Some([single]) => *single,
        Some(_) => return None,
    };
    // Normalised text has only what stays as it is.
    (*normalization.apply(image.encode_utf8(&mut [0; 4])) == *image.to_string()).then_some(image)
}

/// Whether all characters whose lower case may stand for a letter are equal to that letter.
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

/// The characters of which another is the lower case.
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
