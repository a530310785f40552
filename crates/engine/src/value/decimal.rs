//! Exact decimals of up to 65 digits, stored as text.
//!
//! ```text
//! decimal := "-"? integer ("." fraction)?
//! integer := "0" | nonzero digit*
//! fraction := as many digits as the column's scale
//! ```

use std::{cmp::Ordering, fmt};

use smallvec::SmallVec;

/// The most digits of a decimal, as in MySQL.
pub(crate) const MAX_PRECISION: u8 = 65;
/// The most digits of the fraction, as in MariaDB; MySQL has 30.
pub(crate) const MAX_SCALE: u8 = 38;
/// For exponents beyond this, the result is zero or an overflow, whatever the digits.
const MAX_EXPONENT: i32 = 10_000;
/// Longer texts are refused, in bytes.
const MAX_TEXT_BYTES: usize = 10_000;

/// An exact decimal as canonical text: an optional `-`, integer digits without leading zeros (at least one), and as
/// many fraction digits as its column's scale. Never `-0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal(pub(crate) Box<str>);

impl Decimal {
    /// Parses `-12.5`, `.5`, `1.25e3`. Rounds to `scale` fraction digits, half away from zero, as MySQL does. `None`
    /// if it is no number or has more than `precision - scale` integer digits.
    pub fn parse(text: &str, precision: u8, scale: u8) -> Option<Self> {
        let scale = usize::from(scale);
        let integer_digits = usize::from(precision).checked_sub(scale)?;
        let mut number = Parts::parse(text)?;
        if !number.round(scale, integer_digits) {
            return None;
        }
        (number.integer_len() <= integer_digits).then(|| number.to_decimal(scale))
    }

    /// Checks that this is canonical text; cheaper than [`Decimal::parse`].
    pub fn from_canonical(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (integer, fraction) = match unsigned.split_once('.') {
            Some((_, "")) => return None,
            Some((integer, fraction)) => (integer, fraction),
            None => (unsigned, ""),
        };
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let digits = all_digits(integer) && all_digits(fraction);
        let leading = integer.is_empty() || integer.len() > 1 && integer.starts_with('0');
        let zero = unsigned.bytes().all(|byte| matches!(byte, b'0' | b'.'));
        let fits = fraction.len() <= usize::from(MAX_SCALE)
            && integer.len() + fraction.len() <= usize::from(MAX_PRECISION);
        let signed_zero = zero && unsigned.len() < text.len();
        (digits && !leading && !signed_zero && fits).then(|| Self(text.into()))
    }

    /// Whether it has exactly this scale, and no more digits than the precision.
    pub(crate) fn has_form(&self, precision: u8, scale: u8) -> bool {
        let (_, integer, fraction) = self.parts();
        let integer = if integer == "0" { 0 } else { integer.len() };
        fraction.len() == usize::from(scale) && integer + fraction.len() <= usize::from(precision)
    }

    /// The number `scaled / 10^scale`.
    pub fn from_scaled(scaled: i128, scale: u8) -> Self {
        let scale = usize::from(scale);
        let point = usize::from(scale > 0);
        // The digits are written from the last to the first.
        let mut text: SmallVec<[u8; 64]> = SmallVec::new();
        let mut left = scaled.unsigned_abs();
        while left > 0 || text.len() <= scale + point {
            if point > 0 && text.len() == scale {
                text.push(b'.');
            }
            // Most numbers fit into 64 bits, whose division is much faster.
            let digit = match u64::try_from(left) {
                Ok(narrow) => {
                    left = u128::from(narrow / 10);
                    narrow % 10
                }
                Err(_) => {
                    let digit = left % 10;
                    left /= 10;
                    digit as u64
                }
            };
            text.push(b'0' + digit as u8);
        }
        if scaled < 0 {
            text.push(b'-');
        }
        text.reverse();
        Self(std::str::from_utf8(&text).unwrap_or_default().into())
    }

    /// The number times `10^scale`, if it fits; further fraction digits are cut off.
    pub fn to_scaled(&self, scale: u8) -> Option<i128> {
        let (negative, integer, fraction) = self.parts();
        let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(usize::from(scale));
        let mut scaled: i128 = 0;
        for digit in integer.bytes().chain(fraction) {
            scaled = scaled.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        Some(if negative { -scaled } else { scaled })
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The sign (true if negative), the integer digits, the fraction digits.
    pub(crate) fn parts(&self) -> (bool, &str, &str) {
        let unsigned = self.0.strip_prefix('-');
        let (integer, fraction) = unsigned
            .unwrap_or(&self.0)
            .split_once('.')
            .unwrap_or((unsigned.unwrap_or(&self.0), ""));
        (unsigned.is_some(), integer, fraction)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Orders by size, whatever the scales. Numbers that differ only in trailing zeros are ordered by
/// scale, so that equal numbers have equal text.
impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let (negative, integer, fraction) = self.parts();
        let (other_negative, other_integer, other_fraction) = other.parts();
        if negative != other_negative {
            return other_negative.cmp(&negative);
        }
        let size = integer.len().cmp(&other_integer.len());
        let size = size.then_with(|| integer.cmp(other_integer));
        let size = size.then_with(|| fraction.cmp(other_fraction));
        if negative { size.reverse() } else { size }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `0.d1 d2 d3 … * 10^point`.
struct Parts {
    negative: bool,
    digits: Vec<u8>,
    point: i32,
}

impl Parts {
    fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (unsigned, 0),
        };
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = Vec::with_capacity(mantissa.len());
        for byte in integer.bytes().chain(fraction.bytes()) {
            digits.push(byte.is_ascii_digit().then_some(byte.wrapping_sub(b'0'))?);
        }
        if digits.is_empty() {
            return None;
        }
        let exponent = exponent.clamp(-2 * MAX_EXPONENT, 2 * MAX_EXPONENT);
        let point = integer.len() as i32 + exponent;
        let mut number = Self { negative: text.starts_with('-'), digits, point };
        number.drop_leading_zeros();
        Some(number)
    }

    fn drop_leading_zeros(&mut self) {
        let zeros = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..zeros);
        self.point -= zeros as i32;
        if self.digits.is_empty() {
            self.point = 0;
        }
    }

    fn integer_len(&self) -> usize {
        if self.digits.is_empty() { 0 } else { self.point.max(0) as usize }
    }

    /// Rounds the fraction to `scale` digits, half away from zero. False if the number has too many integer digits
    /// even before.
    fn round(&mut self, scale: usize, integer_digits: usize) -> bool {
        if self.integer_len() > integer_digits {
            return false;
        }
        let keep = i64::from(self.point) + scale as i64;
        if keep >= self.digits.len() as i64 {
            return true;
        }
        if keep < 0 {
            self.digits.clear();
            self.point = 0;
            return true;
        }
        let up = self.digits.get(keep as usize).is_some_and(|&digit| digit >= 5);
        self.digits.truncate(keep as usize);
        if up {
            self.add_one();
        }
        self.drop_leading_zeros();
        true
    }

    /// Adds one unit in the last place.
    fn add_one(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
        self.point += 1;
    }

    /// The digit at `10^place`.
    fn digit(&self, place: i32) -> char {
        let index = usize::try_from(self.point - 1 - place).ok();
        let digit = index.and_then(|index| self.digits.get(index)).copied().unwrap_or(0);
        char::from(b'0' + digit)
    }

    fn to_decimal(&self, scale: usize) -> Decimal {
        let mut text = String::with_capacity(self.integer_len() + scale + 3);
        if self.negative && self.digits.iter().any(|&digit| digit != 0) {
            text.push('-');
        }
        let integer_len = self.integer_len().max(1) as i32;
        text.extend((0..integer_len).rev().map(|place| self.digit(place)));
        if scale > 0 {
            text.push('.');
            text.extend((1..=scale as i32).map(|place| self.digit(-place)));
        }
        Decimal(text.into_boxed_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str, precision: u8, scale: u8) -> String {
        let number = Decimal::parse(text, precision, scale);
        number.map_or("none".to_owned(), |number| number.to_string())
    }

    #[test]
    fn numbers_are_rounded_half_away_from_zero() {
        assert_eq!(parsed("1.005", 5, 2), "1.01");
        assert_eq!(parsed("-1.005", 5, 2), "-1.01");
        assert_eq!(parsed("1.0049999", 5, 2), "1.00");
        assert_eq!(parsed("0.5", 3, 0), "1");
        assert_eq!(parsed("0.05", 3, 0), "0");
        assert_eq!(parsed("-0.004", 5, 2), "0.00");
        assert_eq!(parsed("999.995", 5, 2), "none");
        assert_eq!(parsed("999.994", 5, 2), "999.99");
        assert_eq!(parsed("0.99", 1, 1), "none");
        assert_eq!(parsed("9.5", 2, 0), "10");
    }

    #[test]
    fn every_form_of_a_number_is_read_and_nothing_else() {
        assert_eq!(parsed("007", 5, 2), "7.00");
        assert_eq!(parsed(".5", 5, 2), "0.50");
        assert_eq!(parsed("5.", 5, 2), "5.00");
        assert_eq!(parsed("+1.25e2", 5, 2), "125.00");
        assert_eq!(parsed("12500E-4", 5, 2), "1.25");
        assert_eq!(parsed("0e999999999", 5, 2), "0.00");
        assert_eq!(parsed("1e999999999", 5, 2), "none");
        assert_eq!(parsed("1e-999999999", 5, 2), "0.00");
        assert_eq!(parsed(&"9".repeat(65), 65, 0), "9".repeat(65));
        assert_eq!(parsed(&"9".repeat(66), 65, 0), "none");
        for text in ["", ".", "-", "e5", "1e", "0x1", "1,5", " 1", "1 ", "--1", "1.2.3", "ten"] {
            assert_eq!(parsed(text, 10, 2), "none", "{text:?}");
        }
    }

    #[test]
    fn canonical_decimals_are_accepted_and_others_refused() {
        for text in ["0", "-1", "0.00", "-0.01", "10.50"] {
            assert_eq!(Decimal::from_canonical(text).unwrap().as_str(), text);
        }
        for text in ["", "-", ".5", "5.", "00", "01", "-0", "-0.0", "+1", "1e5", "1.2.3", "--1"] {
            assert_eq!(Decimal::from_canonical(text), None, "{text:?}");
        }
        assert_eq!(Decimal::from_canonical(&"9".repeat(66)), None);
    }

    #[test]
    fn scaled_numbers_have_all_their_digits() {
        let shown = |scaled, scale| Decimal::from_scaled(scaled, scale).to_string();
        assert_eq!(shown(0, 0), "0");
        assert_eq!(shown(0, 2), "0.00");
        assert_eq!(shown(-1, 3), "-0.001");
        assert_eq!(shown(12_345, 2), "123.45");
        assert_eq!(shown(-100, 2), "-1.00");
        assert_eq!(shown(10, 0), "10");
        assert_eq!(shown(i128::MIN, 38), "-1.70141183460469231731687303715884105728");
        assert_eq!(shown(i128::MAX, 0), i128::MAX.to_string());
        assert_eq!(shown(7, 60), format!("0.{}7", "0".repeat(59)));
    }

    proptest! {
        #[test]
        fn scaled_numbers_round_trip_in_order(
            a in -10i128.pow(18)..10i128.pow(18),
            b in -10i128.pow(18)..10i128.pow(18),
            scale in 0u8..=18,
        ) {
            let (x, y) = (Decimal::from_scaled(a, scale), Decimal::from_scaled(b, scale));
            prop_assert_eq!(x.to_scaled(scale), Some(a));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(Decimal::parse(x.as_str(), 37, scale), Some(x));
        }

        #[test]
        fn rounding_is_that_of_integers(scaled in -10i128.pow(12)..10i128.pow(12), cut in 0u8..=6) {
            let exact = Decimal::from_scaled(scaled, 6);
            let unit = 10i128.pow(6 - u32::from(cut));
            let rounded = (scaled.abs() + unit / 2) / unit * scaled.signum();
            let expected = if unit == 1 { scaled } else { rounded };
            let parsed = Decimal::parse(exact.as_str(), 30, cut);
            prop_assert_eq!(parsed, Some(Decimal::from_scaled(expected, cut)));
        }

        #[test]
        fn any_text_is_refused_or_canonical(text in "[-+]?[0-9]{0,40}\\.?[0-9]{0,40}(e-?[0-9]{1,3})?") {
            if let Some(number) = Decimal::parse(&text, 65, 38) {
                prop_assert_eq!(Decimal::parse(number.as_str(), 65, 38), Some(number.clone()));
                prop_assert!(number.has_form(65, 38));
                prop_assert_eq!(Decimal::from_canonical(number.as_str()), Some(number));
            }
        }
    }
}
