//! `block_encryption_mode`: the key length of AES, and the mode in which AES_ENCRYPT chains blocks.

/// How the encryption of one block depends on the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chaining {
    /// Each block on its own.
    Ecb,
    /// Each block is combined with the encrypted block before it.
    Cbc,
    /// A stream cipher fed back bit by bit with its own output text.
    Cfb1,
    /// A stream cipher fed back byte by byte.
    Cfb8,
    /// A stream cipher fed back block by block.
    Cfb128,
    /// A stream cipher whose key stream does not depend on the text.
    Ofb,
}

/// A value of `block_encryption_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMode {
    /// The length of the key, in bytes.
    pub key_bytes: usize,
    /// How blocks are chained.
    pub chaining: Chaining,
}

impl BlockMode {
    /// MySQL's default, `aes-128-ecb`.
    pub const DEFAULT: Self = Self { key_bytes: 16, chaining: Chaining::Ecb };

    /// The mode of this name, in any case, such as `aes-256-cbc`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let (bits, chaining) = name.strip_prefix("aes-")?.split_once('-')?;
        let key_bytes = match bits {
            "128" => 16,
            "192" => 24,
            "256" => 32,
            _ => return None,
        };
        let chaining = match chaining {
            "ecb" => Chaining::Ecb,
            "cbc" => Chaining::Cbc,
            "cfb1" => Chaining::Cfb1,
            "cfb8" => Chaining::Cfb8,
            "cfb128" => Chaining::Cfb128,
            "ofb" => Chaining::Ofb,
            _ => return None,
        };
        Some(Self { key_bytes, chaining })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        let mode = BlockMode { key_bytes: 32, chaining: Chaining::Cbc };
        assert_eq!(BlockMode::parse("AES-256-CBC"), Some(mode));
        assert_eq!(BlockMode::parse("aes-128-ecb"), Some(BlockMode::DEFAULT));
        assert_eq!(BlockMode::parse("aes-64-ecb"), None);
        assert_eq!(BlockMode::parse("des-128-ecb"), None);
    }
}
