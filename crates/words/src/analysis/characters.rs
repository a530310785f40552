//! The class and folding of each character, in a table of two levels.

use rustc_hash::FxHashMap;

use super::marks;
use crate::{
    Result, WordsError,
    settings::{Charset, Settings},
};

/// The entry of a character: its folded form and class bits. Zero is a separator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(u32);

const FOLDED: u32 = 0x1F_FFFF;
const LETTER: u32 = 1 << 21;
const BLENDED: u32 = 1 << 22;
const GRAM: u32 = 1 << 23;
const IGNORED: u32 = 1 << 24;

impl Entry {
    const SEPARATOR: Self = Self(0);

    #[inline]
    pub(super) fn is_letter(self) -> bool {
        self.0 & LETTER != 0
    }

    #[inline]
    pub(super) fn is_blended(self) -> bool {
        self.0 & BLENDED != 0
    }

    #[inline]
    pub(super) fn is_gram(self) -> bool {
        self.0 & GRAM != 0
    }

    #[inline]
    pub(super) fn is_separator(self) -> bool {
        self.0 == 0
    }

    /// The folded form.
    #[inline]
    pub(super) fn folded(self) -> char {
        char::from_u32(self.0 & FOLDED).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

const PAGE: usize = 256;

/// The entries of all characters.
pub(super) struct CharacterTable {
    ascii: [Entry; 128],
    /// Whether each byte is an ASCII letter whose folded form is its lower case.
    lowered: [bool; 256],
    /// The start of each page of characters in `entries`; equal pages are stored once.
    pages: Box<[u32]>,
    entries: Box<[Entry]>,
}

impl CharacterTable {
    /// Builds the table for these settings.
    ///
    /// # Errors
    /// [`WordsError::Setting`] for an invalid list.
    pub(super) fn new(settings: &Settings) -> Result<Self> {
        let mut all = vec![Entry::SEPARATOR; char::MAX as usize + 1];
        let mut add = |name: &str, charset: Result<Charset, String>, kind: u32| {
            let wrong = |message| WordsError::Setting { setting: name.to_owned(), message };
            charset.map_err(wrong)?.for_each(&mut |from, to| {
                all[from as usize] = Entry(to as u32 | kind);
            });
            Ok::<_, WordsError>(())
        };
        add("charset_table", settings.charset(), LETTER)?;
        add("ngram_chars", Charset::parse(settings.ngram_chars()), GRAM)?;
        add("blend_chars", Charset::parse(settings.blend_chars()), BLENDED)?;
        add("ignore_chars", Charset::parse(settings.ignore_chars()), IGNORED)?;
        // A zero byte is always a separator, and so is what stands for marks.
        all[0] = Entry::SEPARATOR;
        if settings.has_marks() {
            for code in [marks::PARAGRAPH_CODE, marks::ZONE_CODE] {
                all[code as usize] = Entry::SEPARATOR;
            }
        }
        let mut ascii = [Entry::SEPARATOR; 128];
        ascii.copy_from_slice(&all[..128]);
        let mut lowered = [false; 256];
        for ((byte, entry), lowered) in (0..=u8::MAX).zip(&ascii).zip(&mut lowered) {
            *lowered = entry.is_letter() && entry.folded() == char::from(byte.to_ascii_lowercase());
        }
        let mut known: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let (mut pages, mut entries) = (Vec::new(), Vec::new());
        for page in all.chunks(PAGE) {
            let key: Vec<u32> = page.iter().map(|entry| entry.0).collect();
            let start = *known.entry(key).or_insert_with(|| {
                entries.extend_from_slice(page);
                (entries.len() - page.len()) as u32
            });
            pages.push(start);
        }
        Ok(Self { ascii, lowered, pages: pages.into(), entries: entries.into() })
    }

    #[inline]
    pub(super) fn get(&self, c: char) -> Entry {
        match self.ascii.get(c as usize) {
            Some(&entry) => entry,
            None => {
                let (page, at) = (c as usize / PAGE, c as usize % PAGE);
                self.entries[self.pages[page] as usize + at]
            }
        }
    }

    /// The length of the prefix of ASCII letters whose folded form is their lower case.
    #[inline]
    pub(super) fn lowered_prefix(&self, bytes: &[u8]) -> usize {
        bytes.iter().take_while(|&&byte| self.lowered[usize::from(byte)]).count()
    }

    /// The entry of an ASCII byte; `None` for other bytes.
    #[inline]
    pub(super) fn ascii(&self, byte: u8) -> Option<Entry> {
        self.ascii.get(usize::from(byte)).copied()
    }
}
