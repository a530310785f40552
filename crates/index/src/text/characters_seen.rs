//! Posting lists of special characters: those whose normalised form does not determine the
//! original.
//!
//! Most characters normalise to their own lower case, one by one. If a document has only such characters, its
//! normalised text equals the original up to case, and the index alone can decide exact matches. For all
//! other characters this section lists the documents that contain them: characters that become another or
//! several (`ﬁ`, `ß`, `Ａ`, `…`); marks that join the character before them; and framed letters that stay as
//! they are (`🅐`), which collations treat as letters although no term contains them.
//!
//! ```text
//! TCH2 := count:u32 (code_point:u32 documents:u32 end:u32){count} (delta:varint …){count}
//! ```
//! Entries ascend by code point. Documents are delta-encoded, the first from 0; `end` is the end of a
//! character's deltas within all deltas. A text index without this section was written before it existed;
//! nothing is known of its documents.

use std::{
    collections::{BTreeMap, HashMap},
    ops::RangeInclusive,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use super::{Normalization, ascii_runs::ascii_runs, character::is_mark};
use crate::{
    DocSet, IndexError, Result, SectionTag, SectionWriter, Sections, Slice,
    bytes::read_u32,
    varint::{self, VarintReader},
};

const CHARACTERS: SectionTag = SectionTag(*b"TCH2");
/// A character's code point, documents and end.
const ENTRY_BYTES: usize = 12;
/// The block of letters and digits in circles and squares.
const FRAMED: RangeInclusive<u32> = 0x1_f100..=0x1_f1ff;

/// Collects characters, document by document.
pub(crate) struct SeenWriter {
    normalization: Normalization,
    /// Made for the first text; the first one of a process examines every character of Unicode.
    tracker: Option<Arc<Tracker>>,
    documents: BTreeMap<char, Vec<u32>>,
}

/// The special characters of a text index's documents.
#[derive(Clone)]
pub(crate) struct Seen {
    section: Slice,
    count: usize,
}

impl SeenWriter {
    /// No documents yet.
    pub fn new(normalization: &Normalization) -> Self {
        Self { normalization: *normalization, tracker: None, documents: BTreeMap::new() }
    }

    /// Adds the special characters of a text of the document. Almost free for ASCII.
    pub fn add(&mut self, doc: u32, text: &str) {
        let normalization = &self.normalization;
        let tracker = self.tracker.get_or_insert_with(|| Tracker::of(normalization));
        let tracker = Arc::clone(tracker);
        if tracker.tracks_ascii {
            return self.add_characters(&tracker, doc, text);
        }
        ascii_runs(text).for_each(|(_, rest)| self.add_characters(&tracker, doc, rest));
    }

    fn add_characters(&mut self, tracker: &Tracker, doc: u32, text: &str) {
        let documents = &mut self.documents;
        let mut note = |c: char| {
            let docs = documents.entry(c).or_default();
            if docs.last() != Some(&doc) {
                docs.push(doc);
            }
        };
        let mut cluster = 0;
        let mut has_marks = false;
        for (at, c) in text.char_indices() {
            if tracker.is_mark(c) {
                has_marks = true;
                continue;
            }
            if has_marks {
                tracker.joined(&text[cluster..at], &mut note);
            }
            (cluster, has_marks) = (at, false);
            if tracker.is_tracked(c) {
                note(c);
            }
        }
        if has_marks {
            tracker.joined(&text[cluster..], &mut note);
        }
    }

    /// Adds documents, not below those added before, to a character's list.
    fn note(&mut self, c: char, docs: impl Iterator<Item = u32>) {
        self.documents.entry(c).or_default().extend(docs);
    }

    /// Writes the section of the text index `id`.
    pub fn finish(mut self, id: u32, out: &mut SectionWriter) {
        let mut bytes = (self.documents.len() as u32).to_le_bytes().to_vec();
        let mut deltas = Vec::new();
        for (c, docs) in &mut self.documents {
            docs.sort_unstable();
            docs.dedup();
            bytes.extend_from_slice(&u32::from(*c).to_le_bytes());
            bytes.extend_from_slice(&(docs.len() as u32).to_le_bytes());
            let mut previous = 0;
            for doc in docs {
                varint::push(&mut deltas, *doc - previous);
                previous = *doc;
            }
            bytes.extend_from_slice(&(deltas.len() as u32).to_le_bytes());
        }
        bytes.extend_from_slice(&deltas);
        out.add(CHARACTERS, id, &bytes);
    }
}

impl Seen {
    /// Opens the section of the text index `id`; `None` if it has none.
    pub fn open(sections: &Sections, id: u32) -> Result<Option<Self>> {
        let Some(section) = sections.get(CHARACTERS, id) else { return Ok(None) };
        let count = read_u32(section, 0)? as usize;
        if section.len() < 4 + count * ENTRY_BYTES {
            return Err(IndexError::corrupt("the size of the characters"));
        }
        Ok(Some(Self { section: section.clone(), count }))
    }

    /// Calls `visit` with each character for which `wanted` is true, and its documents, ascending.
    pub fn for_each(
        &self,
        wanted: &mut dyn FnMut(char) -> bool,
        visit: &mut dyn FnMut(char, u32),
    ) -> Result<()> {
        let first = 4 + self.count * ENTRY_BYTES;
        let mut start = first;
        for index in 0..self.count {
            let entry = 4 + index * ENTRY_BYTES;
            let code = read_u32(&self.section, entry)?;
            let documents = read_u32(&self.section, entry + 4)?;
            let end = first.saturating_add(read_u32(&self.section, entry + 8)? as usize);
            let c = char::from_u32(code).ok_or_else(|| IndexError::corrupt("a character"))?;
            if wanted(c) {
                let mut reader = VarintReader::new(&self.section, start);
                let mut doc = 0u32;
                for _ in 0..documents {
                    doc = doc.saturating_add(reader.next()?);
                    visit(c, doc);
                }
            }
            start = end;
        }
        Ok(())
    }

    /// The documents that contain a character for which `wanted` is true.
    pub fn documents(&self, wanted: &mut dyn FnMut(char) -> bool) -> Result<DocSet> {
        let mut docs = Vec::new();
        self.for_each(wanted, &mut |_, doc| docs.push(doc))?;
        docs.sort_unstable();
        docs.dedup();
        Ok(DocSet::List(docs))
    }
}

/// Merges the lists of several inputs under their documents' new numbers; writes nothing if an input has no
/// such section.
pub(crate) fn merge<'a>(
    inputs: impl Iterator<Item = (Option<&'a Seen>, &'a [u32])>,
    gone: u32,
    id: u32,
    out: &mut SectionWriter,
) -> Result<()> {
    let mut writer = SeenWriter::new(&Normalization::default());
    for (seen, map) in inputs {
        let Some(seen) = seen else { return Ok(()) };
        let live = |doc: u32| map.get(doc as usize).copied().filter(|&new| new != gone);
        seen.for_each(&mut |_| true, &mut |c, doc| writer.note(c, live(doc).into_iter()))?;
    }
    writer.documents.retain(|_, docs| !docs.is_empty());
    writer.finish(id, out);
    Ok(())
}

/// Which characters are tracked under a normalisation.
#[derive(Default)]
struct Tracker {
    normalization: Option<Normalization>,
    /// One bit for each code point of the basic multilingual plane: set if it becomes anything but its lower
    /// case.
    tracked: Vec<u64>,
    /// Likewise: set if it may join the character before it.
    marks: Vec<u64>,
    tracks_ascii: bool,
    /// The normalised forms of the tracked characters.
    images: HashMap<char, Box<[char]>>,
}

/// The normalised forms of characters that become anything but their own lower case. The first call for a
/// normalisation normalises every character of Unicode; later ones are cheap.
#[derive(Clone)]
pub struct Images(Arc<Tracker>);

impl Images {
    /// The forms under a normalisation.
    pub fn of(normalization: &Normalization) -> Self {
        Self(Tracker::of(normalization))
    }

    /// The normalised form of a character; `None` if it is its own lower case.
    pub fn get(&self, c: char) -> Option<&[char]> {
        self.0.images.get(&c).map(|image| &**image)
    }

    /// Whether it is a framed letter that stays as it is.
    pub fn is_framed(&self, c: char) -> bool {
        is_framed(c) && !self.0.images.contains_key(&c)
    }

    /// Whether it may join the character before it.
    pub fn joins(&self, c: char) -> bool {
        self.0.is_mark(c)
    }
}

type Trackers = Mutex<HashMap<[u8; 4], Arc<Tracker>>>;

impl Tracker {
    fn of(normalization: &Normalization) -> Arc<Self> {
        static KNOWN: LazyLock<Trackers> = LazyLock::new(Trackers::default);
        let Normalization { nfkc, width, fold_case, fold_accents } = *normalization;
        let key = [u8::from(nfkc), width as u8, u8::from(fold_case), u8::from(fold_accents)];
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(key).or_insert_with(|| Arc::new(Self::new(normalization))))
    }

    fn new(normalization: &Normalization) -> Self {
        let bits = |is: &dyn Fn(char) -> bool| -> Vec<u64> {
            let bit = |code| u64::from(char::from_u32(code).is_some_and(is));
            let word = |start: u32| (0..64).fold(0, |word, at| word | bit(start + at) << at);
            (0..0x1_0000).step_by(64).map(word).collect()
        };
        let marks = bits(&is_mark);
        let others = (0..0x11_0000).filter_map(char::from_u32);
        let image = |c: char| {
            let normalized = normalization.apply(c.encode_utf8(&mut [0; 4])).into_owned();
            (c, normalized.chars().collect())
        };
        let images: HashMap<char, Box<[char]>> =
            others.filter(|&c| becomes_other(normalization, c)).map(image).collect();
        let tracked = bits(&|c| images.contains_key(&c));
        let tracks_ascii = tracked[..2].iter().any(|&word| word != 0);
        Self { normalization: Some(*normalization), tracked, marks, tracks_ascii, images }
    }

    #[inline]
    fn is_tracked(&self, c: char) -> bool {
        let code = c as usize;
        match self.tracked.get(code / 64) {
            Some(word) => word >> (code % 64) & 1 == 1,
            None => is_framed(c) || self.images.contains_key(&c),
        }
    }

    #[inline]
    fn is_mark(&self, c: char) -> bool {
        let code = c as usize;
        match self.marks.get(code / 64) {
            Some(word) => word >> (code % 64) & 1 == 1,
            None => is_mark(c),
        }
    }

    /// Reports the marks of a cluster (a character with marks after it) that is not normalised character by
    /// character, and its other tracked characters.
    fn joined(&self, cluster: &str, note: &mut impl FnMut(char)) {
        let Some(normalization) = &self.normalization else { return };
        let single = |c: char| normalization.apply(c.encode_utf8(&mut [0; 4])).into_owned();
        let apart: String = cluster.chars().map(single).collect();
        let together = normalization.apply(cluster);
        for c in cluster.chars().filter(|&c| self.is_mark(c)) {
            if apart != *together || self.is_tracked(c) {
                note(c);
            }
        }
    }
}

fn is_framed(c: char) -> bool {
    FRAMED.contains(&u32::from(c))
}

/// Whether the character becomes anything but its lower case.
fn becomes_other(normalization: &Normalization, c: char) -> bool {
    let mut buffer = [0; 4];
    let normalized = normalization.apply(c.encode_utf8(&mut buffer));
    let mut becomes = normalized.chars();
    becomes.next() != Some(simple_lower_case(c)) || becomes.next().is_some()
}

/// The lower case of a character, where that is one character; else itself.
pub fn simple_lower_case(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(normalization: &Normalization, texts: &[&str]) -> Seen {
        let mut writer = SeenWriter::new(normalization);
        (0..).zip(texts).for_each(|(doc, text)| writer.add(doc, text));
        let mut out = SectionWriter::new();
        writer.finish(7, &mut out);
        Seen::open(&Sections::open(out.finish()).unwrap(), 7).unwrap().unwrap()
    }

    fn holding(seen: &Seen, c: char) -> Vec<u32> {
        seen.documents(&mut |other| other == c).unwrap().iter().collect()
    }

    #[test]
    fn characters_changed_by_normalization_are_recorded() {
        let texts =
            ["plain É Ä Я 東京 가", "ﬁne Ａ… ﬁ", "e\u{301} Strasse", "а\u{301} Straße", "ﬁ 🅐"];
        let seen = seen(&Normalization::default(), &texts);
        assert_eq!(holding(&seen, 'ﬁ'), [1, 4]);
        assert_eq!(holding(&seen, 'Ａ'), [1]);
        assert_eq!(holding(&seen, '…'), [1]);
        assert_eq!(holding(&seen, 'ß'), [3]);
        assert_eq!(holding(&seen, '🅐'), [4]);
        // The mark joins the Latin letter but not the Cyrillic one.
        assert_eq!(holding(&seen, '\u{301}'), [2]);
        let all: Vec<u32> = seen.documents(&mut |_| true).unwrap().iter().collect();
        assert_eq!(all, [1, 2, 3, 4]);
    }

    #[test]
    fn documents_without_such_characters_are_normalised_character_by_character() {
        let normalization = Normalization::default();
        for code in 0..0x1_0000 {
            let Some(c) = char::from_u32(code) else { continue };
            for before in ["e", "か", "가", "ｶ"] {
                let text = format!("{before}{c}b");
                let noted = seen(&normalization, &[&text]).documents(&mut |_| true).unwrap();
                let apart: String = text.chars().map(simple_lower_case).collect();
                if noted.is_empty() {
                    assert_eq!(normalization.apply(&text), apart, "U+{code:04x}");
                }
            }
        }
    }
}
