//! SHA-256 crypt, as MySQL stores `caching_sha2_password`.
//!
//! ```text
//! hash = "$A$" rounds/1000 as three hexadecimal digits "$" salt: 20 bytes, digest: 43 characters
//! ```
//! The algorithm is Ulrich Drepper's "Unix crypt using SHA-256 and SHA-512", with a longer salt.

use sha2::{Digest, Sha256};

use super::scramble::{parse_hex, same_bytes};

const SALT_BYTES: usize = 20;
const DIGEST_CHARS: usize = 43;
const DIGEST_BYTES: usize = 32;
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// MySQL's limits, in thousands of rounds.
const ROUNDS: std::ops::RangeInclusive<u32> = 5..=4095;
/// Longer passwords cost too much to hash; MySQL has the same limit.
const MAX_PASSWORD_BYTES: usize = 256;

/// A stored hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CryptHash {
    rounds: u32,
    salt: [u8; SALT_BYTES],
    digest: [u8; DIGEST_CHARS],
}

impl CryptHash {
    /// The bytes of salt and digest.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        self.salt.into_iter().chain(self.digest)
    }

    /// Reads MySQL's `authentication_string`, as text or as `0x…`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => Self::from_bytes(&parse_hex(digits)?),
            None => Self::from_bytes(text.as_bytes()),
        }
    }

    /// Whether the password has this hash. Cost: a millisecond or more.
    pub fn matches(&self, password: &[u8]) -> bool {
        password.len() <= MAX_PASSWORD_BYTES
            && same_bytes(&encode(&hash(password, &self.salt, self.rounds)), &self.digest)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.strip_prefix(b"$A$")?.split_at_checked(3)?;
        let thousands = u32::from_str_radix(std::str::from_utf8(head).ok()?, 16).ok()?;
        let (salt, digest) = rest.strip_prefix(b"$")?.split_at_checked(SALT_BYTES)?;
        Some(Self {
            rounds: ROUNDS.contains(&thousands).then_some(thousands * 1000)?,
            salt: salt.try_into().ok()?,
            digest: digest.try_into().ok()?,
        })
    }
}

fn hash(password: &[u8], salt: &[u8], rounds: u32) -> [u8; DIGEST_BYTES] {
    let mut digest = first_digest(password, salt);
    let password_bytes = repeated(&digest_of_copies(password, password.len()), password.len());
    let salt_copies = 16 + usize::from(digest[0]);
    let salt_bytes = repeated(&digest_of_copies(salt, salt_copies), salt.len());
    for round in 0..rounds {
        let mut next = Sha256::new();
        next.update(if round % 2 == 1 { &password_bytes[..] } else { &digest });
        if round % 3 != 0 {
            next.update(&salt_bytes);
        }
        if round % 7 != 0 {
            next.update(&password_bytes);
        }
        next.update(if round % 2 == 1 { &digest[..] } else { &password_bytes });
        digest = next.finalize().into();
    }
    digest
}

fn first_digest(password: &[u8], salt: &[u8]) -> [u8; DIGEST_BYTES] {
    let both = Sha256::new().chain_update(password).chain_update(salt);
    let other: [u8; DIGEST_BYTES] = Sha256::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize()
        .into();
    let mut first = both.chain_update(repeated(&other, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        first.update(if bits & 1 == 1 { &other[..] } else { password });
        bits >>= 1;
    }
    first.finalize().into()
}

fn digest_of_copies(bytes: &[u8], copies: usize) -> [u8; DIGEST_BYTES] {
    let mut all = Sha256::new();
    (0..copies).for_each(|_| all.update(bytes));
    all.finalize().into()
}

fn repeated(bytes: &[u8], length: usize) -> Vec<u8> {
    bytes.iter().copied().cycle().take(length).collect()
}

/// Crypt's own base 64: three bytes, a third of the digest apart, become four characters, low bits
/// first.
fn encode(digest: &[u8; DIGEST_BYTES]) -> [u8; DIGEST_CHARS] {
    let mut text = [0; DIGEST_CHARS];
    let byte = |at: usize| u32::from(digest.get(at).copied().unwrap_or(0));
    let mut places = text.iter_mut();
    let mut put = |bits: u32, chars: u32| {
        for at in 0..chars {
            let six = (bits >> (6 * at)) & 0x3F;
            if let (Some(place), Some(char)) = (places.next(), ALPHABET.get(six as usize)) {
                *place = *char;
            }
        }
    };
    let mut triple = [0, 10, 20];
    for _ in 0..10 {
        let [high, middle, low] = triple;
        put(byte(high) << 16 | byte(middle) << 8 | byte(low), 4);
        // The order of the three bytes rotates: 0 10 20, 21 1 11, 12 22 2, 3 13 23, ...
        triple = [low + 1, high + 1, middle + 1];
    }
    put(byte(31) << 8 | byte(30), 3);
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Made by MySQL 9.7: CREATE USER u IDENTIFIED BY 'geheim'.
    pub const HASH_OF_GEHEIM: &str = concat!(
        "0x244124303041247E214F464943753A6D344F6030795C394C716F31326E6539",
        "5143426A6F43676C636C2E584950484B6A4A376C6D543851304B683534397A6476357068416743",
    );

    #[test]
    fn known_answers() {
        // From crypt() of the C library.
        let digest = hash(b"Hello world!", b"saltstring", 5000);
        let text = encode(&digest);
        assert_eq!(
            std::str::from_utf8(&text).unwrap(),
            "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"
        );
        let digest = hash(b"This is just a test", b"toolongsaltstrin", 5000);
        let text = encode(&digest);
        assert_eq!(
            std::str::from_utf8(&text).unwrap(),
            "Un/5jzAHMgOGZ5.mWJpuVolil07guHPvOW8mGRcvxa5"
        );
    }

    #[test]
    fn mysql_password_hash_is_verified() {
        let hash = CryptHash::parse(HASH_OF_GEHEIM).unwrap();
        assert_eq!(hash.rounds, 10_000);
        assert!(hash.matches(b"geheim"));
        assert!(!hash.matches(b"geheim "));
        assert!(!hash.matches(&[b'x'; 300]));
    }

    #[test]
    fn invalid_hash_texts_are_refused() {
        let salt_and_digest = "x".repeat(63);
        assert!(CryptHash::parse(&format!("$A$005${salt_and_digest}")).is_some());
        for wrong in ["", "0x", "0x2", "$A$005$", "$A$005", "$5$abc", "*ABCDEF"] {
            assert!(CryptHash::parse(wrong).is_none(), "{wrong}");
        }
        assert!(CryptHash::parse(&format!("$A$004${salt_and_digest}")).is_none());
        assert!(CryptHash::parse(&format!("$A$FFFF${salt_and_digest}")).is_none());
        assert!(CryptHash::parse(&format!("$A$005${salt_and_digest}x")).is_none());
    }
}
