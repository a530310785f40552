//! Random statements over the tables of the corpus; a seed always gives the same ones.

/// A new seed, which a failing test prints.
pub fn new_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// Generates statements.
pub struct Generator {
    state: u64,
}

/// The type of value that an expression should have.
#[derive(Clone, Copy, PartialEq)]
enum Want {
    Number,
    Text,
    Truth,
}

const NUMBERS: [&str; 5] = ["ti", "si", "i", "d", "id"];
const LITERALS: [&str; 9] = ["0", "1", "-1", "2.5", "42", "0.05", "100", "7", "NULL"];
const TEXTS: [&str; 5] = ["'apple'", "'b'", "''", "'12'", "'Zoë'"];

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { state: seed | 1 }
    }

    fn below(&mut self, bound: usize) -> usize {
        // Xorshift.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) as usize % bound
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// The next statement.
    pub fn statement(&mut self) -> String {
        match self.below(4) {
            0 => {
                let (value, condition) = (self.number(3), self.truth(2));
                format!(
                    "SELECT id, {value} AS v FROM numbers WHERE id <> 3 AND id <> 2 AND ({condition}) ORDER BY id"
                )
            }
            1 => {
                let (key, column) = (self.pick(&NUMBERS), self.pick(&NUMBERS));
                let value = format!("{column} + {}", self.pick(&["1", "2.5", "0"]));
                let fold = self.pick(&["SUM", "MIN", "MAX", "COUNT", "AVG"]);
                format!(
                    "SELECT {key} AS k, {fold}({value}) AS v FROM numbers WHERE id NOT IN (2, 3) GROUP BY k ORDER BY k, v"
                )
            }
            2 => {
                let (value, condition) = (self.text(2), self.truth(1));
                format!("SELECT {value} AS v, {condition} AS c FROM numbers WHERE id = 6")
            }
            _ => {
                let want = [Want::Number, Want::Text, Want::Truth][self.below(3)];
                let value = self.value(want, 3);
                format!("SELECT {value} AS v FROM numbers WHERE id = 1")
            }
        }
    }

    fn value(&mut self, want: Want, depth: usize) -> String {
        match want {
            Want::Number => self.number(depth),
            Want::Text => self.text(depth),
            Want::Truth => self.truth(depth),
        }
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(4) == 0 {
            return match self.below(2) {
                0 => self.pick(&NUMBERS).to_owned(),
                _ => self.pick(&LITERALS).to_owned(),
            };
        }
        let (a, b) = (self.number(depth - 1), self.number(depth - 1));
        match self.below(8) {
            0 => format!("({a} + {b})"),
            1 => format!("({a} * {b})"),
            2 => format!("({} / {})", self.number(0), self.number(0)),
            3 => format!("ABS({a})"),
            4 => format!("ROUND({a}, 1)"),
            5 => format!("IFNULL({a}, {b})"),
            6 => format!("NULLIF({a}, {b})"),
            _ => format!("CHAR_LENGTH({})", self.text(depth - 1)),
        }
    }

    fn text(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(4) == 0 {
            return self.pick(&TEXTS).to_owned();
        }
        let (a, b) = (self.text(depth - 1), self.text(depth - 1));
        match self.below(6) {
            0 => format!("CONCAT({a}, {b})"),
            1 => format!("UPPER({a})"),
            2 => format!("SUBSTRING({a}, 2)"),
            3 => format!("REPLACE({a}, 'p', {b})"),
            4 => format!("COALESCE({a}, {b})"),
            _ => format!("CONCAT({a}, {})", self.number(depth - 1)),
        }
    }

    fn truth(&mut self, depth: usize) -> String {
        let (a, b) = (self.number(depth.saturating_sub(1)), self.number(depth.saturating_sub(1)));
        if depth == 0 {
            return format!("{a} = {b}");
        }
        match self.below(8) {
            0 => format!("{a} < {b}"),
            1 => format!("{a} <=> {b}"),
            2 => format!("{a} BETWEEN 0 AND {b}"),
            3 => format!("{a} IN ({b}, 1, 42)"),
            4 => format!("({a} > 0 AND {})", self.truth(depth - 1)),
            5 => format!("NOT ({})", self.truth(depth - 1)),
            6 => format!("{} LIKE '%p%'", self.text(depth - 1)),
            _ => format!("{a} IS NULL"),
        }
    }
}
