//! Reads the fields of an event or a value front to back, with bounds checks.

/// An event ends in the middle of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnexpectedEnd;

impl std::fmt::Display for UnexpectedEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it ends too early")
    }
}

/// The bytes not yet read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the first of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next bytes.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if fewer bytes are left.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], UnexpectedEnd> {
        let (head, tail) = self.0.split_at_checked(length).ok_or(UnexpectedEnd)?;
        self.0 = tail;
        Ok(head)
    }

    /// The next bytes, as many as the array has.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if fewer bytes are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], UnexpectedEnd> {
        let (head, tail) = self.0.split_first_chunk().ok_or(UnexpectedEnd)?;
        self.0 = tail;
        Ok(*head)
    }

    /// Skips bytes.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if fewer bytes are left.
    pub fn skip(&mut self, length: usize) -> Result<(), UnexpectedEnd> {
        self.bytes(length).map(drop)
    }

    /// All remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// The number of remaining bytes.
    pub fn remaining(&self) -> usize {
        self.0.len()
    }

    /// One byte.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if no byte is left.
    pub fn u8(&mut self) -> Result<u8, UnexpectedEnd> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes, little-endian.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if fewer bytes are left.
    pub fn u16(&mut self) -> Result<u16, UnexpectedEnd> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if fewer bytes are left.
    pub fn u32(&mut self) -> Result<u32, UnexpectedEnd> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if fewer bytes are left.
    pub fn u64(&mut self) -> Result<u64, UnexpectedEnd> {
        self.array().map(u64::from_le_bytes)
    }

    /// Up to eight bytes, little-endian.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if fewer bytes are left, or if `length` is above eight.
    pub fn uint(&mut self, length: usize) -> Result<u64, UnexpectedEnd> {
        let mut whole = [0; 8];
        whole.get_mut(..length).ok_or(UnexpectedEnd)?.copy_from_slice(self.bytes(length)?);
        Ok(u64::from_le_bytes(whole))
    }

    /// A length-encoded integer of the protocol: one byte, or a prefix byte and 2, 3 or 8 bytes.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if fewer bytes are left, or if the first byte does not begin an integer.
    pub fn packed(&mut self) -> Result<u64, UnexpectedEnd> {
        match self.u8()? {
            small @ ..=250 => Ok(u64::from(small)),
            252 => self.uint(2),
            253 => self.uint(3),
            254 => self.uint(8),
            _ => Err(UnexpectedEnd),
        }
    }

    /// A length-encoded length, as a `usize`.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if fewer bytes are left, or if it is not a length.
    pub fn packed_length(&mut self) -> Result<usize, UnexpectedEnd> {
        usize::try_from(self.packed()?).map_err(|_| UnexpectedEnd)
    }
}
