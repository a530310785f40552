//! Exceptions: texts that become one keyword, whatever their characters are.

use rustc_hash::FxHashMap;

use super::characters::CharacterTable;

/// The exceptions, as a trie of bytes.
#[derive(Default)]
pub(super) struct Exceptions {
    next: FxHashMap<(u32, u8), u32>,
    nodes: u32,
    /// The keyword at the end of each exception.
    keywords: FxHashMap<u32, Box<str>>,
}

/// An exception found in a text.
pub(super) struct FoundException<'e> {
    /// The end of the exception in the text.
    pub end: usize,
    pub keyword: &'e str,
    /// Whether the part before its first separator has a blended character.
    pub is_blended: bool,
}

impl Exceptions {
    pub(super) fn is_empty(&self) -> bool {
        self.keywords.is_empty()
    }

    /// Parses and adds lines `from => to`; later lines override earlier ones.
    ///
    /// # Errors
    /// A message that names an invalid line.
    pub(super) fn add(&mut self, lines: &str) -> Result<(), String> {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            // A `=>` without a space before it belongs to the text.
            let is_sign =
                |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
            let at = line.match_indices("=>").map(|(at, _)| at).find(is_sign);
            let at =
                at.ok_or_else(|| format!("'{line}' is not an exception: write 'from => to'"))?;
            let (from, to) = (&line[..at], &line[at + 2..]);
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (from, to) = (words(from), words(to));
            if !from.is_empty() && !to.is_empty() {
                self.insert(&from, to);
            }
        }
        Ok(())
    }

    fn insert(&mut self, from: &str, to: String) {
        let mut node = 0;
        for byte in from.bytes() {
            node = *self.next.entry((node, byte)).or_insert_with(|| {
                self.nodes += 1;
                self.nodes
            });
        }
        self.keywords.insert(node, to.into());
    }

    /// The longest exception that begins at `start`. In a query backslashes are skipped.
    pub(super) fn find(
        &self,
        text: &str,
        start: usize,
        characters: &CharacterTable,
        is_query: bool,
    ) -> Option<FoundException<'_>> {
        let bytes = text.as_bytes();
        let (mut node, mut at, mut found) = (0, start, None);
        while let Some(&byte) = bytes.get(at) {
            if is_query && byte == b'\\' && at > start {
                at += 1;
                continue;
            }
            let is_space = byte.is_ascii_whitespace();
            let Some(&next) = self.next.get(&(node, if is_space { b' ' } else { byte })) else {
                break;
            };
            node = next;
            at += 1;
            while is_space && bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            if let Some(keyword) = self.keywords.get(&node)
                && is_whole(text, at, characters)
            {
                found = Some((at, &**keyword));
            }
        }
        let (end, keyword) = found?;
        let run = text[start..end].chars().map(|c| characters.get(c));
        let mut run = run.take_while(|entry| !entry.is_separator());
        Some(FoundException {
            end,
            keyword,
            is_blended: run.any(super::characters::Entry::is_blended),
        })
    }
}

/// Whether no word continues across this place.
fn is_whole(text: &str, end: usize, characters: &CharacterTable) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| characters.get(c).is_letter());
    !(is_letter(text[..end].chars().next_back()) && is_letter(text[end..].chars().next()))
}
