//! The longest run in a field: consecutive words of the query at the same distances as in the query.

use crate::hits::Hit;

/// Computes the longest run of each field from the hits of a document.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Whether a keyword occurs in the query twice.
    has_repeats: bool,
    /// The longest run of each field. Eight bits wide and wrapping, as in Sphinx.
    longest: Vec<u8>,
    plain: Plain,
    repeated: Repeated,
}

/// The current run, for queries without repeated keywords.
#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    length: u8,
    /// The place of the next hit of the same run, minus its query position.
    expected: Option<i64>,
    last: Option<u32>,
}

/// The current run, for queries with repeated keywords: each query position of a place may continue it.
#[derive(Clone, Copy, Debug, Default)]
struct Repeated {
    length: u8,
    /// The place where the run ended, and the query positions it may have reached.
    tail: Option<u32>,
    tail_mask: u32,
    at: Option<u32>,
    mask: u32,
}

impl Runs {
    pub(super) fn new(fields: usize, has_repeats: bool) -> Self {
        Self {
            has_repeats,
            longest: vec![0; fields],
            plain: Plain::default(),
            repeated: Repeated::default(),
        }
    }

    /// The longest run of each field of a document.
    pub(super) fn of(&mut self, hits: &[Hit]) -> &[u8] {
        self.longest.fill(0);
        self.plain = Plain::default();
        self.repeated = Repeated::default();
        for hit in hits {
            let length =
                if self.has_repeats { self.repeated.follow(hit) } else { self.plain.follow(hit) };
            if let Some(longest) = self.longest.get_mut(usize::from(hit.field())) {
                *longest = length.max(*longest);
            }
        }
        &self.longest
    }
}

impl Plain {
    fn follow(&mut self, hit: &Hit) -> u8 {
        let shift = i64::from(hit.at) - i64::from(hit.query_position);
        if self.last.is_none_or(|last| hit.at > last) {
            let before = if self.expected == Some(shift) { self.length } else { 0 };
            self.length = before.wrapping_add(hit.weight as u8);
        }
        self.last = Some(hit.at);
        self.expected = Some(shift + i64::from(hit.span) - 1);
        self.length
    }
}

impl Repeated {
    fn follow(&mut self, hit: &Hit) -> u8 {
        let mut longest = 0;
        if self.at != Some(hit.at) {
            if self.length < 2 {
                (self.tail, self.tail_mask) = (self.at, self.mask);
                self.length = 1;
            }
            self.mask = 0;
            self.at = Some(hit.at);
            longest = hit.weight as u8;
        }
        let bit = hit.query_bit();
        self.mask |= bit;
        let step = self.tail.and_then(|tail| hit.at.checked_sub(tail));
        if let Some(step @ 1..32) = step
            && self.mask >> step & self.tail_mask != 0
        {
            self.tail = Some(hit.at);
            self.tail_mask = bit;
            self.mask = 0;
            self.length = self.length.wrapping_add(hit.weight as u8);
            longest = longest.max(self.length);
        }
        longest
    }
}
