//! AES_ENCRYPT and AES_DECRYPT, in the modes of `block_encryption_mode`.

use aes::{
    Aes128, Aes192, Aes256, Block,
    cipher::{BlockDecrypt, BlockEncrypt, KeyInit},
};
use hmac::{Hmac, Mac};
use remora_mysql::{BlockMode, Chaining, ErrorCode, messages};
use sha2::Sha512;

use super::super::{
    call::{Call, TypeContext},
    function::{Caching, Definition},
    types::ExprType,
    value::SqlValue,
};
use crate::{Error, Result, state::Context};

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition::new("aes_encrypt", 2, 6, encrypted_type, |call, args| {
        crypted(call, args, "aes_encrypt", encrypt)
    })
    .cached(Caching::Never),
    Definition::new("aes_decrypt", 2, 6, decrypted_type, |call, args| {
        crypted(call, args, "aes_decrypt", decrypt)
    })
    .cached(Caching::Never),
];

/// The block size in bytes.
const BLOCK: usize = 16;
/// The permitted iterations of PBKDF2.
const ROUNDS: std::ops::RangeInclusive<i64> = 1_000..=65_535;
/// How many bytes (whole blocks) are processed between checks for an interrupt. A stream mode may
/// need a block for each bit.
const PART_BYTES: usize = 64 << 10;
/// The most bytes of a salt.
const MAX_OPTION_BYTES: usize = 255;

/// Encrypts or decrypts bytes, checking for an interrupt; `None` if decryption fails.
type Work = fn(&Cipher, Chaining, u128, &[u8], &dyn Fn() -> bool) -> Result<Option<Vec<u8>>>;

fn encrypted_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    let bytes = typing.get(0).characters().saturating_mul(4);
    Ok(ExprType::binary((bytes / BLOCK as u32).saturating_add(1).saturating_mul(BLOCK as u32)))
}

fn decrypted_type(typing: &TypeContext<'_>) -> Result<ExprType> {
    Ok(ExprType::binary(typing.get(0).characters()))
}

fn crypted<'a>(
    call: &Call<'_>,
    args: &[SqlValue<'a>],
    name: &str,
    work: Work,
) -> Result<SqlValue<'a>> {
    let mode = call.session().map_or(BlockMode::DEFAULT, |context| context.block_mode);
    let vector = vector(call, args, mode, name)?;
    let bytes = args.first().and_then(SqlValue::octets);
    let (Some(bytes), Some(password)) = (bytes, args.get(1).and_then(SqlValue::octets)) else {
        return Ok(SqlValue::Null);
    };
    let key = key(call, &password, args, mode)?;
    let Some(cipher) = Cipher::new(&key) else { return Ok(SqlValue::Null) };
    let is_over = || call.context.is_some_and(Context::is_over);
    Ok(SqlValue::or_null(work(&cipher, mode.chaining, vector, &bytes, &is_over)?, SqlValue::bytes))
}

/// The initialization vector.
fn vector(call: &Call<'_>, args: &[SqlValue<'_>], mode: BlockMode, name: &str) -> Result<u128> {
    if mode.chaining == Chaining::Ecb {
        if args.len() == 3 {
            call.warn(ErrorCode::OptionIgnored, || "<IV> option ignored".to_owned());
        }
        return Ok(0);
    }
    let Some(given) = args.get(2) else {
        let message = messages::wrong_parameter_count(name);
        return Err(Error::new(ErrorCode::WrongParameterCount, message));
    };
    let bytes = given.octets().unwrap_or_default();
    let block = bytes.first_chunk::<BLOCK>().ok_or_else(|| {
        let message = format!(
            "The initialization vector supplied to {name} is too short. Must be at least {BLOCK} \
             bytes long"
        );
        Error::new(ErrorCode::ShortVector, message)
    })?;
    Ok(u128::from_be_bytes(*block))
}

/// The key for a password: folded to the key length, or derived with a key derivation function.
fn key(
    call: &Call<'_>,
    password: &[u8],
    args: &[SqlValue<'_>],
    mode: BlockMode,
) -> Result<Vec<u8>> {
    let Some(method) = args.get(3) else {
        if password.len() > mode.key_bytes {
            let size = mode.key_bytes;
            call.warn(ErrorCode::KeySize, || {
                format!(
                    "AES key size should be {size} bytes length or secure KDF methods hkdf or \
                     pbkdf2_hmac should be used, please provide exact AES key size or use KDF \
                     methods for better security."
                )
            });
        }
        return Ok(folded(password, mode.key_bytes));
    };
    let method = option(method)?;
    let salt = args.get(4).map_or(Ok(Vec::new()), option)?;
    let mut key = match method.as_slice() {
        b"hkdf" => {
            let info = args.get(5).map_or(Ok(Vec::new()), option)?;
            hkdf(password, &salt, &info)
        }
        b"pbkdf2_hmac" => {
            let rounds = args.get(5).map(|rounds| option(rounds).map(|_| rounds.count(call)));
            let rounds = rounds.transpose()?.unwrap_or(*ROUNDS.start());
            if !ROUNDS.contains(&rounds) {
                let message = "For KDF method pbkdf2_hmac iterations value less than 1000 or more \
                               than 65535 is not allowed due to security reasons. Please provide \
                               iterations >= 1000 and iterations < 65535";
                return Err(Error::new(ErrorCode::KeyIterations, message));
            }
            pbkdf2(password, &salt, rounds)
        }
        _ => {
            let message =
                "KDF method name is not valid. Please use hkdf or pbkdf2_hmac method name";
            return Err(Error::new(ErrorCode::KeyMethod, message));
        }
    };
    key.truncate(mode.key_bytes);
    Ok(key)
}

fn option(value: &SqlValue<'_>) -> Result<Vec<u8>> {
    let bytes = value.octets().filter(|bytes| bytes.len() <= MAX_OPTION_BYTES);
    bytes.map(|bytes| bytes.to_vec()).ok_or_else(|| {
        let message =
            "KDF option size is invalid, please provide valid size < 256 bytes and not NULL";
        Error::new(ErrorCode::KeyOption, message)
    })
}

/// Folds a password of any length to a key, by XOR of its parts.
fn folded(password: &[u8], length: usize) -> Vec<u8> {
    let mut key = vec![0; length];
    for part in password.chunks(length) {
        key.iter_mut().zip(part).for_each(|(key, byte)| *key ^= byte);
    }
    key
}

/// HMAC-SHA-512 of the parts. Any key is valid, so the empty result does not occur.
fn code(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let Ok(mut made) = <Hmac<Sha512> as Mac>::new_from_slice(key) else { return Vec::new() };
    parts.iter().for_each(|part| made.update(part));
    made.finalize().into_bytes().to_vec()
}

/// HKDF (RFC 5869). One output block is enough for every key length.
fn hkdf(password: &[u8], salt: &[u8], info: &[u8]) -> Vec<u8> {
    let extracted = code(salt, &[password]);
    code(&extracted, &[info, &[1]])
}

/// PBKDF2 (RFC 8018). One output block is enough for every key length.
fn pbkdf2(password: &[u8], salt: &[u8], rounds: i64) -> Vec<u8> {
    let mut last = code(password, &[salt, &1_u32.to_be_bytes()]);
    let mut key = last.clone();
    for _ in 1..rounds {
        last = code(password, &[&last]);
        key.iter_mut().zip(&last).for_each(|(key, byte)| *key ^= byte);
    }
    key
}

/// A cipher with its key schedule.
enum Cipher {
    K128(Box<Aes128>),
    K192(Box<Aes192>),
    K256(Box<Aes256>),
}

impl Cipher {
    fn new(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Aes128::new_from_slice(key).ok().map(|it| Self::K128(Box::new(it))),
            24 => Aes192::new_from_slice(key).ok().map(|it| Self::K192(Box::new(it))),
            _ => Aes256::new_from_slice(key).ok().map(|it| Self::K256(Box::new(it))),
        }
    }

    fn encrypted(&self, block: u128) -> u128 {
        let mut block = Block::from(block.to_be_bytes());
        match self {
            Self::K128(key) => key.encrypt_block(&mut block),
            Self::K192(key) => key.encrypt_block(&mut block),
            Self::K256(key) => key.encrypt_block(&mut block),
        }
        u128::from_be_bytes(block.into())
    }

    fn decrypted(&self, block: u128) -> u128 {
        let mut block = Block::from(block.to_be_bytes());
        match self {
            Self::K128(key) => key.decrypt_block(&mut block),
            Self::K192(key) => key.decrypt_block(&mut block),
            Self::K256(key) => key.decrypt_block(&mut block),
        }
        u128::from_be_bytes(block.into())
    }
}

fn encrypt(
    cipher: &Cipher,
    chaining: Chaining,
    vector: u128,
    bytes: &[u8],
    is_over: &dyn Fn() -> bool,
) -> Result<Option<Vec<u8>>> {
    if matches!(chaining, Chaining::Ecb | Chaining::Cbc) {
        return Ok(encrypt_blocks(cipher, chaining, vector, bytes));
    }
    let mut register = vector;
    let mut made = Vec::with_capacity(bytes.len());
    for part in bytes.chunks(PART_BYTES) {
        if is_over() {
            return Err(Error::interrupted());
        }
        register = stream(cipher, chaining, register, part, true, &mut made);
    }
    Ok(Some(made))
}

fn encrypt_blocks(
    cipher: &Cipher,
    chaining: Chaining,
    vector: u128,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    // Padding as in PKCS #7: each added byte is their number.
    let left = BLOCK - bytes.len() % BLOCK;
    let mut padded = bytes.to_vec();
    padded.extend(std::iter::repeat_n(left as u8, left));
    let mut made = Vec::with_capacity(padded.len());
    let mut before = vector;
    for block in padded.as_chunks::<BLOCK>().0 {
        let block = u128::from_be_bytes(*block);
        let mixed = if chaining == Chaining::Cbc { block ^ before } else { block };
        before = cipher.encrypted(mixed);
        made.extend(before.to_be_bytes());
    }
    Some(made)
}

fn decrypt(
    cipher: &Cipher,
    chaining: Chaining,
    vector: u128,
    bytes: &[u8],
    is_over: &dyn Fn() -> bool,
) -> Result<Option<Vec<u8>>> {
    if matches!(chaining, Chaining::Ecb | Chaining::Cbc) {
        return Ok(decrypt_blocks(cipher, chaining, vector, bytes));
    }
    let mut register = vector;
    let mut made = Vec::with_capacity(bytes.len());
    for part in bytes.chunks(PART_BYTES) {
        if is_over() {
            return Err(Error::interrupted());
        }
        register = stream(cipher, chaining, register, part, false, &mut made);
    }
    Ok(Some(made))
}

fn decrypt_blocks(
    cipher: &Cipher,
    chaining: Chaining,
    vector: u128,
    bytes: &[u8],
) -> Option<Vec<u8>> {
    let (blocks, []) = bytes.as_chunks::<BLOCK>() else { return None };
    let mut made = Vec::with_capacity(bytes.len());
    let mut before = vector;
    for block in blocks {
        let block = u128::from_be_bytes(*block);
        let plain = cipher.decrypted(block);
        let plain = if chaining == Chaining::Cbc { plain ^ before } else { plain };
        before = block;
        made.extend(plain.to_be_bytes());
    }
    let left = usize::from(*made.last()?);
    let end = made.len().checked_sub(left)?;
    let is_padded = (1..=BLOCK).contains(&left)
        && made.get(end..)?.iter().all(|byte| usize::from(*byte) == left);
    made.truncate(end);
    is_padded.then_some(made)
}

/// The stream modes, for any number of bytes. Returns the register for the next call, which is
/// valid if `bytes` are whole blocks.
fn stream(
    cipher: &Cipher,
    chaining: Chaining,
    vector: u128,
    bytes: &[u8],
    encrypts: bool,
    made: &mut Vec<u8>,
) -> u128 {
    const TOP_BYTE: u32 = 120;
    let mut register = vector;
    match chaining {
        Chaining::Cfb1 => {
            for byte in bytes {
                let mut out = 0_u8;
                for place in (0..u8::BITS).rev() {
                    let bit = byte >> place & 1;
                    let mixed = bit ^ (cipher.encrypted(register) >> 127) as u8;
                    out = out << 1 | mixed;
                    register = register << 1 | u128::from(if encrypts { mixed } else { bit });
                }
                made.push(out);
            }
        }
        Chaining::Cfb8 => {
            for byte in bytes {
                let mixed = byte ^ (cipher.encrypted(register) >> TOP_BYTE) as u8;
                register = register << 8 | u128::from(if encrypts { mixed } else { *byte });
                made.push(mixed);
            }
        }
        _ => {
            for part in bytes.chunks(BLOCK) {
                register = cipher.encrypted(register);
                let mut block = [0; BLOCK];
                block.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
                let given = u128::from_be_bytes(block);
                let mixed = given ^ register;
                made.extend(mixed.to_be_bytes().iter().take(part.len()));
                if chaining == Chaining::Cfb128 {
                    register = if encrypts { mixed } else { given };
                }
            }
        }
    }
    register
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of FIPS 197, appendix C.
    #[test]
    fn a_block_is_that_of_the_standard() {
        let block = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;
        let made = [
            (16, 0x69c4_e0d8_6a7b_0430_d8cd_b780_70b4_c55a_u128),
            (24, 0xdda9_7ca4_864c_dfe0_6eaf_70a0_ec0d_7191),
            (32, 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089),
        ];
        for (bytes, expected) in made {
            let key: Vec<u8> = (0..bytes).collect();
            let cipher = Cipher::new(&key).unwrap();
            assert_eq!(cipher.encrypted(block), expected, "{bytes}");
            assert_eq!(cipher.decrypted(expected), block, "{bytes}");
        }
    }

    #[test]
    fn what_is_encrypted_is_decrypted() {
        let cipher = Cipher::new(&folded(b"a key", 32)).unwrap();
        for name in ["ecb", "cbc", "cfb1", "cfb8", "cfb128", "ofb"] {
            let mode = BlockMode::parse(&format!("aes-256-{name}")).unwrap();
            for length in [0, 1, 15, 16, 17, 40] {
                let bytes: Vec<u8> = (0..length).collect();
                let made = encrypt(&cipher, mode.chaining, 7, &bytes, &|| false).unwrap().unwrap();
                let back = decrypt(&cipher, mode.chaining, 7, &made, &|| false).unwrap();
                assert_eq!(back.as_deref(), Some(bytes.as_slice()), "{name} of {length}");
            }
        }
        assert_eq!(decrypt(&cipher, Chaining::Ecb, 0, &[1; 15], &|| false).unwrap(), None);
        assert_eq!(decrypt(&cipher, Chaining::Ecb, 0, &[], &|| false).unwrap(), None);
    }

    #[test]
    fn streams_go_on_over_parts_and_end_with_the_statement() {
        let cipher = Cipher::new(&folded(b"a key", 16)).unwrap();
        let bytes = vec![b'a'; PART_BYTES + BLOCK + 1];
        for name in ["cfb1", "cfb8", "cfb128", "ofb"] {
            let mode = BlockMode::parse(&format!("aes-128-{name}")).unwrap();
            let made = encrypt(&cipher, mode.chaining, 7, &bytes, &|| false).unwrap().unwrap();
            let mut whole = Vec::new();
            stream(&cipher, mode.chaining, 7, &bytes, true, &mut whole);
            assert!(made == whole, "{name}");
            let back = decrypt(&cipher, mode.chaining, 7, &made, &|| false).unwrap().unwrap();
            assert!(back == bytes, "{name}");
            let asked = std::cell::Cell::new(0);
            let is_over = || asked.replace(asked.get() + 1) > 0;
            assert!(encrypt(&cipher, mode.chaining, 7, &bytes, &is_over).is_err(), "{name}");
            assert!(decrypt(&cipher, mode.chaining, 7, &made, &|| true).is_err(), "{name}");
        }
    }
}
