//! TPC-C's random values.

use crate::random::SplitMix64;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The constants of the non-uniform distribution; arbitrary, but always the same.
const NAME_CONSTANT: u32 = 123;
const CUSTOMER_CONSTANT: u32 = 259;
const ITEM_CONSTANT: u32 = 7_911;

/// A stream of random values.
pub struct Values(SplitMix64);

impl Values {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.0.below((high - low + 1) as usize) as u32
    }

    /// True with a probability of `percent` per cent.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.between(1, 100) <= percent
    }

    /// `low` to `high` letters.
    pub fn letters(&mut self, low: u32, high: u32) -> String {
        (0..self.between(low, high))
            .map(|_| char::from(LETTERS[self.0.below(LETTERS.len())]))
            .collect()
    }

    /// `low` to `high` letters; 10 % of the texts contain `ORIGINAL`.
    pub fn data(&mut self, low: u32, high: u32) -> String {
        let mut text = self.letters(low, high);
        if self.chance(10) {
            let start = self.0.below(text.len() - 7);
            text.replace_range(start..start + 8, "ORIGINAL");
        }
        text
    }

    /// `count` digits.
    pub fn digits(&mut self, count: u32) -> String {
        (0..count).map(|_| char::from(b'0' + self.0.below(10) as u8)).collect()
    }

    /// A customer's number; some are far more frequent.
    pub fn customer(&mut self, customers: u32) -> u32 {
        self.uneven(1_023, CUSTOMER_CONSTANT, customers) + 1
    }

    /// An item's number; some are far more frequent.
    pub fn item(&mut self, items: u32) -> u32 {
        self.uneven(8_191, ITEM_CONSTANT, items) + 1
    }

    /// A random last name.
    pub fn last_name(&mut self, customers: u32) -> String {
        let number = self.uneven(255, NAME_CONSTANT, customers.min(1_000));
        last_name(number)
    }

    /// A number below `bound`, not uniformly distributed.
    fn uneven(&mut self, spread: u32, constant: u32, bound: u32) -> u32 {
        ((self.between(0, spread) | self.between(0, bound - 1)) + constant) % bound
    }
}

/// The last name with a number below 1,000.
pub fn last_name(number: u32) -> String {
    let syllable = |digit: u32| SYLLABLES[(digit % 10) as usize];
    [syllable(number / 100), syllable(number / 10), syllable(number)].concat()
}

/// Cents as a decimal number.
pub fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_money_and_bounds() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(money(1_205), "12.05");
        let mut values = Values::new(1);
        assert!((0..1_000).all(|_| (1..=30).contains(&values.customer(30))));
        assert!((0..1_000).any(|_| values.data(26, 50).contains("ORIGINAL")));
    }
}
