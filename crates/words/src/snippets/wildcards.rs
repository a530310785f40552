//! Matches a word against several patterns with wildcards at once.

use rustc_hash::FxHashMap;

/// Patterns of `*`, `?` and `%` as one automaton, with a state bit for each prefix of each pattern.
#[derive(Debug, Default)]
pub(super) struct Wildcards {
    patterns: Vec<Pattern>,
    /// The states from which each character leads on.
    steps: FxHashMap<char, Vec<u64>>,
    /// The states from which every character leads on.
    any: Vec<u64>,
    /// The states that a `*` keeps.
    stays: Vec<u64>,
    /// The states whose next wildcard may match nothing.
    skips: Vec<u64>,
    begins: Vec<u64>,
}

/// The last state of a pattern, and its query word.
#[derive(Debug)]
struct Pattern {
    end: usize,
    word: u32,
}

impl Wildcards {
    /// Builds the automaton for these patterns and their words.
    pub(super) fn new(words: &[(String, u32)]) -> Self {
        let count: usize = words.iter().map(|(text, _)| text.chars().count() + 1).sum();
        let blank = || vec![0; count.div_ceil(64)];
        let mut machine = Self {
            patterns: Vec::new(),
            steps: FxHashMap::default(),
            any: blank(),
            stays: blank(),
            skips: blank(),
            begins: blank(),
        };
        let mut state = 0;
        for (text, word) in words {
            set(&mut machine.begins, state);
            for c in text.chars() {
                match c {
                    '*' => {
                        set(&mut machine.stays, state);
                        set(&mut machine.skips, state);
                    }
                    '?' => set(&mut machine.any, state),
                    '%' => {
                        set(&mut machine.any, state);
                        set(&mut machine.skips, state);
                    }
                    c => set(machine.steps.entry(c).or_insert_with(blank), state),
                }
                state += 1;
            }
            machine.patterns.push(Pattern { end: state, word: *word });
            state += 1;
        }
        machine
    }

    /// Calls `each` with the words of the patterns that match. Cost: the length of the word times that of all
    /// patterns, 64 characters of which count as one.
    pub(super) fn find(&self, word: &str, each: &mut impl FnMut(u32)) {
        if self.patterns.is_empty() {
            return;
        }
        let mut reached = self.begins.clone();
        self.skip(&mut reached);
        let mut next = vec![0; reached.len()];
        for c in word.chars() {
            let steps = self.steps.get(&c);
            let mut carry = 0;
            for (at, &states) in reached.iter().enumerate() {
                let named = steps.map_or(0, |steps| steps[at]);
                let moved = states & (self.any[at] | named);
                next[at] = moved << 1 | carry | states & self.stays[at];
                carry = moved >> 63;
            }
            std::mem::swap(&mut reached, &mut next);
            if reached.iter().all(|&states| states == 0) {
                return;
            }
            self.skip(&mut reached);
        }
        let is_reached = |end: usize| reached[end / 64] >> (end % 64) & 1 == 1;
        let found = self.patterns.iter().filter(|pattern| is_reached(pattern.end));
        found.for_each(|pattern| each(pattern.word));
    }

    /// Adds the states reached by wildcards that match nothing.
    fn skip(&self, reached: &mut [u64]) {
        loop {
            let (mut carry, mut is_more) = (0, false);
            for (states, skips) in reached.iter_mut().zip(&self.skips) {
                let moved = *states & skips;
                let all = *states | moved << 1 | carry;
                carry = moved >> 63;
                is_more |= all != *states;
                *states = all;
            }
            if !is_more {
                return;
            }
        }
    }
}

fn set(bits: &mut [u64], state: usize) {
    bits[state / 64] |= 1 << (state % 64);
}

#[cfg(test)]
mod tests {
    use super::Wildcards;

    #[test]
    fn wildcards_match_keywords() {
        for (pattern, word, is_it) in [
            ("al*", "al", true),
            ("al*", "alpha", true),
            ("*pha", "alpha", true),
            ("*ph*", "alpha", true),
            ("*p**%h*", "alpha", true),
            ("al?ha", "alpha", true),
            ("al?ha", "alha", false),
            ("al%ha", "alha", true),
            ("al%ha", "alpha", true),
            ("al%ha", "alppha", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyycd", false),
            ("??", "日本", true),
        ] {
            let mut words: Vec<(String, u32)> =
                (0..40).map(|number| (format!("no{number}*x?"), number)).collect();
            words.push((pattern.to_owned(), 99));
            let mut found = None;
            Wildcards::new(&words).find(word, &mut |number| found = Some(number));
            assert_eq!(found, is_it.then_some(99), "{pattern} {word}");
        }
    }
}
