//! Scrambles: hashes of a password and a nonce, so that neither the wire nor the disk shows the
//! password.

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The length of a nonce.
pub const NONCE_BYTES: usize = 20;

/// The random bytes from which the scrambles of a connection are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; NONCE_BYTES]);

impl Nonce {
    /// A nonce of random bytes. Bytes that end texts in packets are replaced.
    pub fn from_random(bytes: [u8; NONCE_BYTES]) -> Self {
        Self(bytes.map(|byte| match byte & 0x7F {
            0 | b'$' => b'a',
            byte => byte,
        }))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; NONCE_BYTES] {
        &self.0
    }
}

pub(super) fn native_stage_two(password: &[u8]) -> [u8; 20] {
    Sha1::digest(Sha1::digest(password)).into()
}

pub(super) fn sha2_digest(password: &[u8]) -> [u8; 32] {
    Sha256::digest(Sha256::digest(password)).into()
}

/// Parses `*` and 40 hexadecimal digits.
pub(super) fn parse_native(text: &str) -> Option<[u8; 20]> {
    let digits = text.strip_prefix('*').filter(|digits| digits.len() == 40)?;
    parse_hex(digits)?.try_into().ok()
}

pub(super) fn parse_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}

/// answer = SHA1(password) XOR SHA1(nonce, stage two).
pub(super) fn verify_native(nonce: &Nonce, answer: &[u8], stage_two: &[u8; 20]) -> bool {
    let Ok(answer) = <[u8; 20]>::try_from(answer) else { return false };
    let mask: [u8; 20] =
        Sha1::new().chain_update(nonce.0).chain_update(stage_two).finalize().into();
    let stage_one = xor(answer, mask);
    same_bytes(&<[u8; 20]>::from(Sha1::digest(stage_one)), stage_two)
}

/// answer = SHA256(password) XOR SHA256(digest, nonce).
pub(super) fn verify_sha2(nonce: &Nonce, answer: &[u8], digest: &[u8; 32]) -> bool {
    let Ok(answer) = <[u8; 32]>::try_from(answer) else { return false };
    let mask: [u8; 32] = Sha256::new().chain_update(digest).chain_update(nonce.0).finalize().into();
    let stage_one = xor(answer, mask);
    same_bytes(&<[u8; 32]>::from(Sha256::digest(stage_one)), digest)
}

fn xor<const N: usize>(mut left: [u8; N], right: [u8; N]) -> [u8; N] {
    left.iter_mut().zip(right).for_each(|(left, right)| *left ^= right);
    left
}

/// Compares in constant time, so that the duration does not reveal the position of a difference.
pub(super) fn same_bytes(left: &[u8], right: &[u8]) -> bool {
    let differences = left.iter().zip(right).fold(0, |all, (left, right)| all | (left ^ right));
    left.len() == right.len() && std::hint::black_box(differences) == 0
}
