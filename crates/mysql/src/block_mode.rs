//! `block_encryption_mode`: how long a key of AES is, and what AES_ENCRYPT does with one block after the other.

/// How the blocks of a text depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chaining {
    /// Not at all.
    Ecb,
    /// Each is mixed with the one before.
    Cbc,
    /// A stream of bits, which makes itself from what it gave.
    Cfb1,
    /// The same of bytes.
    Cfb8,
    /// The same of blocks.
    Cfb128,
    /// A stream that does not depend on the text.
    Ofb,
}

/// A value of `block_encryption_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMode {
    /// Bytes of a key.
    pub key_bytes: usize,
    /// What is done with the blocks.
    pub chaining: Chaining,
}

impl BlockMode {
    /// What MySQL begins with.
    pub const DEFAULT: Self = Self { key_bytes: 16, chaining: Chaining::Ecb };

    /// The mode of a name, in any case: `aes-256-cbc`.
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
