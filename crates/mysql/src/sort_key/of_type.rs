//! Sort keys of MariaDB's INET4, INET6 and UUID, which are stored as texts: they compare as the values do, in whatever
//! spelling. Texts that are no such value follow all that are.

use std::net::Ipv6Addr;

use crate::Collation;

use super::push_key;

/// The first bytes of keys.
const VALUE: u8 = 1;
const OTHER: u8 = 2;

/// A type that is stored as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Inet4,
    Inet6,
    Uuid,
}

impl Type {
    /// The sort key of a text.
    pub(super) fn key(self, text: &str) -> Vec<u8> {
        let mut key = vec![VALUE];
        let found = match self {
            Self::Inet4 => inet4(text).map(|bytes| key.extend_from_slice(&bytes)),
            Self::Inet6 => {
                let value = text.parse::<Ipv6Addr>().ok();
                value.map(|value| key.extend_from_slice(&value.octets()))
            }
            Self::Uuid => uuid(text).map(|bytes| key.extend_from_slice(&bytes)),
        };
        if found.is_none() {
            key = vec![OTHER];
            push_key(text, Collation::UTF8MB4_0900_AI_CI, &mut key);
        }
        key
    }
}

/// Four numbers of up to three digits.
fn inet4(text: &str) -> Option<[u8; 4]> {
    let mut bytes = [0; 4];
    let mut parts = text.split('.');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| (1..=3).contains(&part.len()))?;
        // `parse` would take a sign.
        let is_number = part.bytes().all(|digit| digit.is_ascii_digit());
        *byte = if is_number { part.parse().ok()? } else { return None };
    }
    parts.next().is_none().then_some(bytes)
}

/// 32 hexadecimal digits, with hyphens between them or without, in the order of the bytes by which MariaDB compares: those
/// of versions 1 to 5 by node, clock and time, others as they are printed.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut digits = text.bytes().filter(|byte| *byte != b'-');
    for byte in &mut bytes {
        let high = char::from(digits.next()?).to_digit(16)?;
        let low = char::from(digits.next()?).to_digit(16)?;
        *byte = u8::try_from((high << 4) | low).ok()?;
    }
    if digits.next().is_some() {
        return None;
    }
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
    // `g` begins with the version, `i` with the variant.
    // As MariaDB decides it: by the byte of the version, not by its digit.
    let is_by_node = (1..0x60).contains(&g) && i >= 0x80;
    Some(if is_by_node { [k, l, m, n, o, p, i, j, g, h, e, f, a, b, c, d] } else { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_value_are_equal() {
        let same = |kind: Type, a, b| kind.key(a) == kind.key(b);
        assert!(same(Type::Inet4, "10.2.3.4", "010.2.003.4"));
        assert!(same(Type::Inet6, "::1", "0:0:0:0:0:0:0:0001"));
        assert!(same(Type::Inet6, "::FFFF:1.2.3.4", "::ffff:102:304"));
        let uuid = "7b8a2c14-d8f0-11ee-b63f-0242ac120002";
        assert!(same(Type::Uuid, uuid, "7B8A2C14D8F011EEB63F0242AC120002"));
        assert!(same(Type::Uuid, "no value", "NO VALUE"));
        for text in ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.+4", "1.2.3.4 ", "é.2.3.4"] {
            assert_eq!(Type::Inet4.key(text).first(), Some(&OTHER), "{text}");
        }
        for text in ["", "7b8a", "7b8a2c14-d8f0-11ee-b63f-0242ac12000é", &format!("{uuid}0")] {
            assert_eq!(Type::Uuid.key(text).first(), Some(&OTHER), "{text}");
        }
    }

    /// The order that MariaDB 11.8 gives.
    #[test]
    fn values_are_in_the_order_of_the_type() {
        let orders: [(Type, &[&str]); 3] = [
            (Type::Inet4, &["2.2.3.4", "9.2.3.4", "10.2.3.4", "no"]),
            (Type::Inet6, &["::1", "::ffff:1.2.3.4", "1::2", "9::", "10::", "fe80::1", ""]),
            (
                Type::Uuid,
                &[
                    "00000000-0000-0000-0000-000000000000",
                    "018dfd33-6e0b-1c4c-8d3a-000000000001",
                    "00112233-4455-6677-8899-aabbccddeeff",
                    "018dfd33-6e0b-7c4c-8d3a-000000000001",
                    "7b8a2c14-d8f0-11ee-b63f-0242ac120002",
                    "ffffffff-ffff-7fff-bfff-ffffffffffff",
                    "none",
                ],
            ),
        ];
        for (kind, order) in orders {
            let keys: Vec<_> = order.iter().map(|text| kind.key(text)).collect();
            assert!(keys.is_sorted(), "{kind:?}");
        }
    }
}
