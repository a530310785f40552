//! The weights of characters, decoded from the tables beside this file.
//!
//! ```text
//! table  := entry*                     in order of code points
//! entry  := varint(gap << 4 | count) weight{count}
//! weight := varint(zigzag(weight - the weight before))
//! gap    := number of code points without an entry before this one
//! ```
//!
//! A code point without an entry has a computed weight: a Hangul syllable has the weights of its
//! letters; any other has weights derived from its number, as the Unicode collation algorithm
//! defines (in the simple table the number itself).

use std::sync::LazyLock;

/// The code points in a page.
const PAGE: usize = 256;
const NO_PAGE: u16 = u16::MAX;
/// The bytes of a text whose weights are computed at once.
const PIECE: usize = 32;

/// `utf8mb4_0900_ai_ci`.
pub(super) static UCA_9: LazyLock<Table> =
    LazyLock::new(|| Table::decode(include_bytes!("uca0900.bin"), Missing::Unicode9));
/// `utf8mb4_unicode_ci`.
pub(super) static UCA_4: LazyLock<Table> =
    LazyLock::new(|| Table::decode(include_bytes!("uca0400.bin"), Missing::Unicode4));
/// `utf8mb4_general_ci`.
pub(super) static GENERAL: LazyLock<Table> =
    LazyLock::new(|| Table::decode(include_bytes!("general.bin"), Missing::Itself));

/// The weights of code points without an entry.
#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Unicode9,
    Unicode4,
    Itself,
}

/// The offset of a code point's weights and their number.
type WeightRange = (u32, u8);
/// The code point has no entry.
const NONE: WeightRange = (0, u8::MAX);

/// The weights in a collation.
pub(super) struct Table {
    weights: Vec<u16>,
    /// For each code point divided by 256, an index of `entries`.
    pages: Vec<u16>,
    entries: Vec<[WeightRange; PAGE]>,
    missing: Missing,
    /// The weight of each ASCII character that has exactly one, else 0. Most texts consist of
    /// these.
    plain: [u16; 256],
}

impl Table {
    fn decode(bytes: &[u8], missing: Missing) -> Self {
        let pages = vec![NO_PAGE; 0x11_0000 / PAGE];
        let (weights, entries) = (Vec::new(), Vec::new());
        let mut table = Self { weights, pages, entries, missing, plain: [0; 256] };
        let mut numbers = Numbers { bytes: bytes.iter() };
        let (mut code, mut weight) = (0usize, 0i64);
        while let Some(head) = numbers.next() {
            code += (head >> 4) as usize;
            let count = (head & 15) as u8;
            let first = table.weights.len() as u32;
            for _ in 0..count {
                let coded = numbers.next().unwrap_or(0);
                weight += (coded >> 1) as i64 ^ -((coded & 1) as i64);
                table.weights.push(u16::try_from(weight).unwrap_or(0));
            }
            table.place(code, (first, count));
            code += 1;
        }
        let plain = std::array::from_fn(|code| match table.explicit_weights(code) {
            _ if code > 127 => 0,
            Some([weight]) => *weight,
            None if missing == Missing::Itself => code as u16,
            _ => 0,
        });
        Self { plain, ..table }
    }

    fn place(&mut self, code: usize, place: WeightRange) {
        let Some(page) = self.pages.get_mut(code / PAGE) else { return };
        if *page == NO_PAGE {
            *page = self.entries.len() as u16;
            self.entries.push([NONE; PAGE]);
        }
        let entry = self.entries.get_mut(usize::from(*page));
        if let Some(slot) = entry.and_then(|entry| entry.get_mut(code % PAGE)) {
            *slot = place;
        }
    }

    fn explicit_weights(&self, code: usize) -> Option<&[u16]> {
        let page = *self.pages.get(code / PAGE)?;
        let (first, count) = *self.entries.get(usize::from(page))?.get(code % PAGE)?;
        if count == u8::MAX {
            return None;
        }
        let first = first as usize;
        self.weights.get(first..first + usize::from(count))
    }

    /// Appends the weights of a text's characters.
    pub(super) fn push_all(&self, text: &str, key: &mut Vec<u8>) {
        let mut rest = text;
        while !rest.is_empty() {
            let mut plain = 0;
            for piece in rest.as_bytes().chunks(PIECE) {
                // Weights are collected first, since a vector that grows by two bytes at a time is
                // slow.
                let mut weights = [[0; 2]; PIECE];
                let mut count = 0;
                for (place, byte) in weights.iter_mut().zip(piece) {
                    let weight = self.plain.get(usize::from(*byte)).copied().unwrap_or(0);
                    if weight == 0 {
                        break;
                    }
                    *place = weight.to_be_bytes();
                    count += 1;
                }
                key.extend_from_slice(weights.get(..count).unwrap_or_default().as_flattened());
                plain += count;
                if count < piece.len() {
                    break;
                }
            }
            let (_, behind) = rest.split_at(plain);
            let mut letters = behind.chars();
            if let Some(letter) = letters.next() {
                self.push(letter, key);
            }
            rest = letters.as_str();
        }
    }

    /// Appends the weights of a character.
    fn push(&self, letter: char, key: &mut Vec<u8>) {
        let code = letter as u32;
        if let Some(weights) = self.explicit_weights(code as usize) {
            weights.iter().for_each(|weight| key.extend_from_slice(&weight.to_be_bytes()));
            return;
        }
        match self.missing {
            Missing::Itself => {
                let weight = u16::try_from(code).unwrap_or(0xfffd);
                key.extend_from_slice(&weight.to_be_bytes());
            }
            Missing::Unicode9 if (0xac00..=0xd7a3).contains(&code) => self.push_hangul(code, key),
            Missing::Unicode4 if code > 0xffff => key.extend_from_slice(&[0xff, 0xfd]),
            missing => {
                let base = implicit_base(code, missing == Missing::Unicode9);
                let first = base + (code >> 15) as u16;
                let second = (code & 0x7fff) as u16 | 0x8000;
                key.extend_from_slice(&first.to_be_bytes());
                key.extend_from_slice(&second.to_be_bytes());
            }
        }
    }

    /// A Hangul syllable has the weights of its letters.
    fn push_hangul(&self, code: u32, key: &mut Vec<u8>) {
        let index = code - 0xac00;
        let (first, middle, last) = (index / 588, index % 588 / 28, index % 28);
        let letters = [0x1100 + first, 0x1161 + middle, 0x11a7 + last];
        let count = if last == 0 { 2 } else { 3 };
        for letter in letters.iter().take(count).filter_map(|code| char::from_u32(*code)) {
            self.push(letter, key);
        }
    }

    /// Whether a character has no weight.
    pub(super) fn is_ignored(&self, letter: char) -> bool {
        self.explicit_weights(letter as usize).is_some_and(<[u16]>::is_empty)
    }

    /// The weight of a space.
    pub(super) fn space(&self) -> u16 {
        self.explicit_weights(0x20).and_then(|weights| weights.first().copied()).unwrap_or(0x20)
    }
}

/// The base of computed weights: ideographs come first, then rarer ones, then unassigned code
/// points.
fn implicit_base(code: u32, later: bool) -> u16 {
    const COMPATIBILITY: [u32; 12] = [
        0xfa0e, 0xfa0f, 0xfa11, 0xfa13, 0xfa14, 0xfa1f, 0xfa21, 0xfa23, 0xfa24, 0xfa27, 0xfa28,
        0xfa29,
    ];
    let last = if later { 0x9fd5 } else { 0x9fa5 };
    let extensions = later
        && matches!(code, 0x20000..=0x2a6d6 | 0x2a700..=0x2b734 | 0x2b740..=0x2b81d | 0x2b820..=0x2cea1);
    if (0x4e00..=last).contains(&code) || later && COMPATIBILITY.contains(&code) {
        0xfb40
    } else if (0x3400..=0x4db5).contains(&code) || extensions {
        0xfb80
    } else {
        0xfbc0
    }
}

struct Numbers<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Numbers<'_> {
    /// Reads a variable-length integer: seven bits a byte, the lowest first.
    fn next(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = *self.bytes.next()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 || shift > 49 {
                return Some(number);
            }
            shift += 7;
        }
    }
}
