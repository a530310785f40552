//! Exact decimals for calculations: a 256-bit number of units and a scale.

use std::{cmp::Ordering, fmt};

use datafusion::arrow::datatypes::i256;

use super::types::{MAX_DIGITS, MAX_SCALE};

/// `units / 10^scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dec {
    /// The number in units of its scale.
    pub units: i256,
    /// The number of fraction digits.
    pub scale: u8,
}

/// Ten to this power, for powers that fit in 256 bits.
pub(crate) fn power_of_ten(power: u8) -> i256 {
    const TEN: i256 = i256::from_i128(10);
    let wide = 10i128.checked_pow(u32::from(power)).map(i256::from_i128);
    wide.unwrap_or_else(|| TEN.checked_pow(u32::from(power)).unwrap_or(i256::MAX))
}

impl Dec {
    /// Zero.
    pub(crate) const ZERO: Self = Self { units: i256::ZERO, scale: 0 };

    /// A whole number.
    pub(crate) fn whole(number: i128) -> Self {
        Self { units: i256::from_i128(number), scale: 0 }
    }

    /// The largest decimal with so many digits.
    pub(crate) fn largest(digits: u8, scale: u8) -> Self {
        Self { units: power_of_ten(digits) - i256::ONE, scale }
    }

    /// Parses the number at the start of a text, after spaces; returns it and the bytes consumed.
    /// Digits beyond MySQL's limit are cut.
    pub(crate) fn parse_prefix(text: &str) -> (Self, usize) {
        let bytes = text.as_bytes();
        let start = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let (mut at, mut negative) = (start, false);
        if let Some(sign @ (b'-' | b'+')) = bytes.get(at) {
            negative = *sign == b'-';
            at += 1;
        }
        let (mut digits, mut scale, mut point) = (String::new(), 0i32, false);
        let first = at;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    digits.push(char::from(*byte));
                    scale += i32::from(point);
                }
                b'.' if !point => point = true,
                _ => break,
            }
            at += 1;
        }
        if digits.is_empty() {
            return (Self::ZERO, 0);
        }
        let _ = first;
        let (exponent, end) = exponent(bytes, at);
        (Self::assemble(negative, &digits, scale - exponent), end)
    }

    /// `digits * 10^-scale`, within MySQL's limits.
    fn assemble(negative: bool, digits: &str, scale: i32) -> Self {
        let mut digits = digits.trim_start_matches('0').to_owned();
        let mut scale = scale;
        if scale < 0 {
            let zeros = usize::try_from(-scale).unwrap_or(0);
            if digits.is_empty() {
                return Self::ZERO;
            }
            if digits.len() + zeros > usize::from(MAX_DIGITS) {
                let most = Self::largest(MAX_DIGITS, 0);
                return if negative { most.negated() } else { most };
            }
            digits.extend(std::iter::repeat_n('0', zeros));
            scale = 0;
        }
        // Excess fraction digits are rounded away.
        let mut round_up = false;
        while scale > i32::from(MAX_SCALE) {
            round_up = digits.pop().is_some_and(|digit| digit >= '5');
            scale -= 1;
        }
        let whole = digits.len().saturating_sub(usize::try_from(scale).unwrap_or(0));
        if whole > usize::from(MAX_DIGITS) {
            let most = Self::largest(MAX_DIGITS, 0);
            return if negative { most.negated() } else { most };
        }
        let mut units = i256::from_string(&digits).unwrap_or(i256::ZERO);
        if round_up {
            units = units.wrapping_add(i256::ONE);
        }
        let number = Self { units, scale: u8::try_from(scale).unwrap_or(0) };
        if negative { number.negated() } else { number }
    }

    /// The decimal with the shortest text that identifies the double.
    pub(crate) fn from_double(number: f64) -> Self {
        Self::parse_prefix(&format!("{number:e}")).0
    }

    /// The negated number.
    pub(crate) fn negated(self) -> Self {
        Self { units: self.units.wrapping_neg(), ..self }
    }

    /// Whether it is zero.
    pub(crate) fn is_zero(self) -> bool {
        self.units == i256::ZERO
    }

    /// Whether it is below zero.
    pub(crate) fn is_negative(self) -> bool {
        self.units < i256::ZERO
    }

    /// The number with this scale: padded with zeros, or rounded half away from zero. `None` on
    /// overflow.
    pub(crate) fn rescaled(self, scale: u8) -> Option<Self> {
        if scale >= self.scale {
            let units = self.units.checked_mul(power_of_ten(scale - self.scale))?;
            return Some(Self { units, scale });
        }
        let unit = power_of_ten(self.scale - scale);
        let half = unit.checked_div(i256::from_i128(2))?;
        let half = if self.is_negative() { half.wrapping_neg() } else { half };
        let units = self.units.checked_add(half)?.checked_div(unit)?;
        Some(Self { units, scale })
    }

    /// The number with this scale, truncated.
    pub(crate) fn cut(self, scale: u8) -> Option<Self> {
        if scale >= self.scale {
            return self.rescaled(scale);
        }
        let units = self.units.checked_div(power_of_ten(self.scale - scale))?;
        Some(Self { units, scale })
    }

    /// Rounded to so many fraction digits; negative `digits` round to tens, hundreds and so on.
    /// With `cut` it truncates.
    pub(crate) fn rounded(self, digits: i64, cut: bool) -> Option<Self> {
        if digits >= 0 {
            let scale = u8::try_from(digits).unwrap_or(u8::MAX).min(self.scale);
            return if cut { self.cut(scale) } else { self.rescaled(scale) };
        }
        let places = u8::try_from(-digits).unwrap_or(u8::MAX);
        if places > MAX_DIGITS {
            return Some(Self::ZERO);
        }
        let shifted = Self { units: self.units, scale: self.scale.checked_add(places)? };
        let whole = if cut { shifted.cut(0) } else { shifted.rescaled(0) }?;
        let units = whole.units.checked_mul(power_of_ten(places))?;
        Some(Self { units, scale: 0 })
    }

    fn aligned(self, other: Self) -> Option<(i256, i256, u8)> {
        let scale = self.scale.max(other.scale);
        Some((self.rescaled(scale)?.units, other.rescaled(scale)?.units, scale))
    }

    /// The sum, or `None` on overflow.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let (a, b, scale) = self.aligned(other)?;
        Some(Self { units: a.checked_add(b)?, scale })
    }

    /// The difference, or `None` on overflow.
    pub(crate) fn minus(self, other: Self) -> Option<Self> {
        self.plus(other.negated())
    }

    /// The product, its scale limited to the maximum; `None` on overflow.
    pub(crate) fn times(self, other: Self) -> Option<Self> {
        let units = self.units.checked_mul(other.units)?;
        let product = Self { units, scale: self.scale + other.scale };
        if product.scale > MAX_SCALE { product.rescaled(MAX_SCALE) } else { Some(product) }
    }

    /// The quotient with this scale, rounded half away from zero. `None` on overflow and for a
    /// divisor of zero.
    pub(crate) fn divided_by(self, other: Self, scale: u8) -> Option<Self> {
        // One extra digit decides the rounding.
        let wanted = scale.checked_add(1)?.checked_add(other.scale)?;
        let up = i16::from(wanted) - i16::from(self.scale);
        let units = if up >= 0 {
            let factor = power_of_ten(u8::try_from(up).ok()?);
            self.units.checked_mul(factor)?.checked_div(other.units)?
        } else {
            let divisor = other.units.checked_mul(power_of_ten(u8::try_from(-up).ok()?))?;
            self.units.checked_div(divisor)?
        };
        Self { units, scale: scale + 1 }.rescaled(scale)
    }

    /// The integer part of the quotient.
    pub(crate) fn whole_quotient(self, other: Self) -> Option<i256> {
        let (a, b, _) = self.aligned(other)?;
        a.checked_div(b)
    }

    /// The remainder, with the sign of the dividend.
    pub(crate) fn remainder(self, other: Self) -> Option<Self> {
        let (a, b, scale) = self.aligned(other)?;
        Some(Self { units: a.checked_rem(b)?, scale })
    }

    /// The nearest integer, rounded half away from zero.
    pub(crate) fn to_whole(self) -> Option<i128> {
        self.rescaled(0)?.units.to_i128()
    }

    /// The nearest double.
    pub(crate) fn to_double(self) -> f64 {
        match (self.units.to_i128(), self.scale) {
            (Some(units), 0) => units as f64,
            // Both operands are exact doubles, so the division rounds only once.
            (Some(units), scale) if units.unsigned_abs() < 1 << 53 && scale <= 22 => {
                units as f64 / 10f64.powi(i32::from(scale))
            }
            _ => self.to_string().parse().unwrap_or(0.0),
        }
    }

    /// The number of integer digits.
    pub(crate) fn integer_digits(self) -> usize {
        let digits = self.units.wrapping_abs().to_string().len();
        digits.saturating_sub(usize::from(self.scale))
    }
}

/// Parses an exponent at an offset; returns it and the offset after it.
fn exponent(bytes: &[u8], at: usize) -> (i32, usize) {
    if !matches!(bytes.get(at), Some(b'e' | b'E')) {
        return (0, at);
    }
    let mut end = at + 1;
    let mut negative = false;
    if let Some(sign @ (b'-' | b'+')) = bytes.get(end) {
        negative = *sign == b'-';
        end += 1;
    }
    let first = end;
    let mut exponent = 0i32;
    while let Some(digit @ b'0'..=b'9') = bytes.get(end) {
        exponent = (exponent * 10 + i32::from(digit - b'0')).min(10_000);
        end += 1;
    }
    if end == first {
        return (0, at);
    }
    (if negative { -exponent } else { exponent }, end)
}

impl PartialEq for Dec {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Dec {}

impl PartialOrd for Dec {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Dec {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.aligned(*other) {
            Some((a, b, _)) => a.cmp(&b),
            // Only the operand with the smaller scale can be too large to align, and it then
            // exceeds any value of the other.
            None => match self.scale < other.scale {
                true => self.units.cmp(&i256::ZERO),
                false => i256::ZERO.cmp(&other.units),
            },
        }
    }
}

impl fmt::Display for Dec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.units.wrapping_abs().to_string();
        let sign = if self.is_negative() { "-" } else { "" };
        let scale = usize::from(self.scale);
        if scale == 0 {
            return write!(out, "{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        write!(out, "{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dec(text: &str) -> Dec {
        Dec::parse_prefix(text).0
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        assert_eq!(dec(" -12.50x").to_string(), "-12.50");
        assert_eq!(dec("1e3").to_string(), "1000");
        assert_eq!(dec("1.5e-3").to_string(), "0.0015");
        assert_eq!(Dec::parse_prefix("12abc").1, 2);
        assert_eq!(Dec::parse_prefix("abc").1, 0);
        assert_eq!(Dec::parse_prefix("1e").1, 1);
        assert_eq!(dec(".5").to_string(), "0.5");
        assert_eq!(dec("1e100"), Dec::largest(65, 0));
    }

    #[test]
    fn what_cannot_be_aligned_is_ordered_exactly() {
        let long = "9".repeat(64);
        let (most, fraction) = (dec(&long), dec("0.00000000000000000000000000001"));
        assert!(most.aligned(fraction).is_none());
        for (a, b) in [(most.negated(), fraction), (most.negated(), fraction.negated())] {
            assert_eq!((a.cmp(&b), b.cmp(&a)), (Ordering::Less, Ordering::Greater));
            let (a, b) = (a.negated(), b.negated());
            assert_eq!((a.cmp(&b), b.cmp(&a)), (Ordering::Greater, Ordering::Less));
        }
    }

    #[test]
    fn arithmetic_is_exact_and_rounds_half_away_from_zero() {
        assert_eq!(dec("0.1").plus(dec("0.2")).unwrap().to_string(), "0.3");
        assert_eq!(dec("1").divided_by(dec("3"), 4).unwrap().to_string(), "0.3333");
        assert_eq!(dec("2").divided_by(dec("3"), 4).unwrap().to_string(), "0.6667");
        assert_eq!(dec("-2.5").rescaled(0).unwrap().to_string(), "-3");
        assert_eq!(dec("155").rounded(-1, false).unwrap().to_string(), "160");
        assert_eq!(dec("-1.999").rounded(1, true).unwrap().to_string(), "-1.9");
        assert_eq!(dec("-7.5").remainder(dec("2")).unwrap().to_string(), "-1.5");
    }
}
