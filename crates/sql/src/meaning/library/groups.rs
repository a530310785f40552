//! GROUPBY() for several columns: a hash of all of them, the same as Sphinx 2.2.11's.

use super::super::{
    call::{Call, TypeContext},
    function::{Definition, MANY},
    temporal::{SECOND, utc_of_local},
    types::ExprType,
    value::SqlValue,
};
use crate::Result;

/// The hash of group keys.
pub(crate) const GROUP_KEY: &str = "#group_key";

pub(super) const FUNCTIONS: &[Definition] =
    &[Definition::new(GROUP_KEY, 1, MANY, key_type, group_key)];

fn key_type(_typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::int(20))
}

/// 64-bit FNV-1a.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds an attribute: its 64-bit value.
    fn number(&mut self, bits: u64) {
        self.add(&bits.to_le_bytes());
    }

    /// Adds a float attribute, which has 32 bits.
    fn real(&mut self, number: f64) {
        self.number((number as f32).to_bits().into());
    }

    /// Adds a text: each byte in lower case as a 32-bit number. An empty text adds nothing.
    fn text(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(&u32::from(byte.to_ascii_lowercase()).to_le_bytes());
        }
    }
}

fn group_key<'a>(call: &Call<'_>, args: &[SqlValue<'a>]) -> Result<SqlValue<'a>> {
    let mut hash = Hash::new();
    for (place, value) in args.iter().enumerate() {
        match value {
            // Sphinx treats NULL as 0 or as an empty text.
            SqlValue::Null if call.type_of(place).is_some_and(ExprType::is_string) => {}
            SqlValue::Null => hash.number(0),
            SqlValue::Int(number) => hash.number(number.cast_unsigned()),
            SqlValue::Uint(number) => hash.number(*number),
            SqlValue::Float(_) | SqlValue::Double(_) | SqlValue::Dec(_) => {
                hash.real(value.double(call))
            }
            // As SphinxAPI sends dates: before 1970 they are 0.
            SqlValue::Date(moment) | SqlValue::DateTime(moment, _) => {
                let micros = utc_of_local(*moment, &call.time_zone()).unwrap_or(0);
                hash.number(micros.max(0).unsigned_abs() / SECOND.unsigned_abs());
            }
            value => hash.text(value.string().unwrap_or_default().as_bytes()),
        }
    }
    Ok(SqlValue::Int(hash.0.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of GROUPBY() recorded from `searchd` 2.2.11.
    #[test]
    fn keys_are_sphinxs() {
        let of = |add: &dyn Fn(&mut Hash)| {
            let mut hash = Hash::new();
            add(&mut hash);
            hash.0.cast_signed()
        };
        let numbers = |numbers: &[u64]| of(&|hash| numbers.iter().for_each(|it| hash.number(*it)));
        assert_eq!(numbers(&[1, 10]), 7_993_273_937_335_365_998);
        assert_eq!(numbers(&[1, 20]), -5_988_839_322_439_006_800);
        assert_eq!(numbers(&[1]), -8_517_097_267_634_966_620);
        let text = |number: u64, text: &str| {
            of(&|hash| {
                hash.number(number);
                hash.text(text.as_bytes());
            })
        };
        assert_eq!(text(1, "reef one"), -6_220_680_372_190_866_204);
        assert_eq!(text(1, "Reef ONE"), -6_220_680_372_190_866_204);
        assert_eq!(text(3, "fish five"), 267_303_071_211_169_854);
        let real = of(&|hash| {
            hash.number(1);
            hash.real(15.0);
        });
        assert_eq!(real, 5_814_674_118_272_006_711);
    }
}
