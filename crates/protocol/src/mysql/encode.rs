//! The integers and strings of MySQL's packets.

/// Appends a length-encoded integer: 1, 3, 4 or 9 bytes.
#[inline]
pub fn put_number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..=0xFA => out.push(number as u8),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&(number as u16).to_le_bytes());
        }
        0x1_0000..=0xFF_FFFF => {
            let [low, middle, high, ..] = number.to_le_bytes();
            out.extend_from_slice(&[0xFD, low, middle, high]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Appends bytes with a length-encoded length.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends what `text` appends, with its length before it. That must be at most 250 bytes.
#[inline]
pub fn put_short(out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(0);
    text(out);
    let length = u8::try_from(out.len() - start - 1).unwrap_or(0xFA);
    if let Some(byte) = out.get_mut(start) {
        *byte = length;
    }
}

/// Reads a client's packet from front to back. All methods return `None` if it is too short.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// A reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A length-encoded integer.
    pub fn number(&mut self) -> Option<u64> {
        match self.u8()? {
            0xFC => self.u16().map(u64::from),
            0xFD => {
                let [low, middle, high] = self.array()?;
                Some(u64::from_le_bytes([low, middle, high, 0, 0, 0, 0, 0]))
            }
            0xFE => self.array().map(u64::from_le_bytes),
            0xFB | 0xFF => None,
            small => Some(u64::from(small)),
        }
    }

    /// Bytes with a length-encoded length.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.take(usize::try_from(count).ok()?)
    }

    /// The bytes up to a zero byte, or all remaining ones.
    pub fn text(&mut self) -> &'a [u8] {
        let end = memchr::memchr(0, self.rest);
        let text = self.rest.get(..end.unwrap_or(self.rest.len())).unwrap_or_default();
        let after = end.map_or(self.rest.len(), |end| end + 1);
        self.rest = self.rest.get(after..).unwrap_or_default();
        text
    }
}

#[cfg(test)]
mod tests {
    use mysql_common::io::BufMutExt;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_print_like_mysql(number in any::<u64>(), shift in 0_u32..64) {
            let number = number >> shift;
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            put_number(&mut ours, number);
            theirs.put_lenenc_int(number);
            prop_assert_eq!(&ours, &theirs);
            prop_assert_eq!(Fields::new(&ours).number(), Some(number));
        }

        #[test]
        fn short_fields_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut fields = Fields::new(&bytes);
            let _ = (fields.number(), fields.bytes(), fields.text(), fields.u32());
        }
    }

    #[test]
    fn texts_end_at_zero_or_at_the_end() {
        let mut fields = Fields::new(b"ab\0c");
        assert_eq!(
            (fields.text(), fields.text(), fields.text()),
            (&b"ab"[..], &b"c"[..], &b""[..])
        );
    }
}
