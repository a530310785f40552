//! Reads and writes the numbers and texts of SphinxAPI.

use std::borrow::Cow;

use super::RequestError;

/// A request's text. Bytes that are not UTF-8 become U+FFFD.
pub type Text<'a> = Cow<'a, str>;

/// Most entries of a list, but for filters and their values, which have limits of their own.
pub const MAX_ENTRIES: u32 = 4_096;

type Result<T> = std::result::Result<T, RequestError>;

/// Reads a request from front to back. A request that ends too soon is [`RequestError::Truncated`]. Memory is reserved
/// only for bytes that were received.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// A reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(RequestError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| RequestError::Truncated)
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// Reads four bytes as a number without a sign.
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads four bytes as a number with a sign.
    pub fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// Reads eight bytes as a number without a sign.
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads eight bytes as a number with a sign.
    pub fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Reads four bytes as a floating-point number.
    pub fn f32(&mut self) -> Result<f32> {
        self.array().map(f32::from_be_bytes)
    }

    /// Reads four bytes as a truth: any number but zero is true.
    pub fn flag(&mut self) -> Result<bool> {
        self.u32().map(|number| number != 0)
    }

    /// Reads a text: its length in four bytes, then its bytes.
    pub fn text(&mut self) -> Result<Text<'a>> {
        let length = self.u32()?;
        let bytes = self.take(usize::try_from(length).map_err(|_| RequestError::Truncated)?)?;
        Ok(String::from_utf8_lossy(bytes))
    }

    /// A list after the number of its entries, each of which takes `least` bytes or more.
    ///
    /// # Errors
    /// [`RequestError::TooMany`] above [`MAX_ENTRIES`], with the name of the list.
    pub fn list<T>(
        &mut self,
        name: &'static str,
        least: usize,
        entry: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.u32()?;
        if count > MAX_ENTRIES {
            return Err(RequestError::TooMany { name, count, most: MAX_ENTRIES });
        }
        self.entries(count, least, entry)
    }

    /// Reads `count` entries, each of which takes `least` bytes or more.
    pub fn entries<T>(
        &mut self,
        count: u32,
        least: usize,
        mut entry: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = usize::try_from(count).map_err(|_| RequestError::Truncated)?;
        if count.saturating_mul(least) > self.rest.len() {
            return Err(RequestError::Truncated);
        }
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            entries.push(entry(self)?);
        }
        Ok(entries)
    }
}

/// Appends two bytes.
pub fn put_u16(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends four bytes.
pub fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends a count. Replies never have so many entries that four bytes cannot count them.
pub fn put_count(out: &mut Vec<u8>, count: usize) {
    put_u32(out, u32::try_from(count).unwrap_or(u32::MAX));
}

/// Appends a text: its length in four bytes, then its bytes.
pub fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_count(out, text.len());
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_length_is_truncated() {
        let lying = [0xFF, 0xFF, 0xFF, 0xFF, b'a'];
        assert_eq!(Fields::new(&lying).text(), Err(RequestError::Truncated));
        let entries = Fields::new(&lying).entries(u32::MAX, 4, Fields::u32);
        assert_eq!(entries, Err(RequestError::Truncated));
        // More than any machine has: nothing was reserved.
        let huge = |fields: &mut Fields<'_>| fields.u8().map(|byte| [byte; 1 << 16]);
        assert!(Fields::new(&lying).entries(u32::MAX, 1, huge).is_err());
        let list = Fields::new(&lying).list("weights", 4, Fields::u32);
        let too_many = RequestError::TooMany { name: "weights", count: u32::MAX, most: 4_096 };
        assert_eq!(list, Err(too_many));
    }

    #[test]
    fn texts_that_are_not_utf_8_are_read_too() {
        assert_eq!(Fields::new(&[0, 0, 0, 2, b'a', 0xFF]).text(), Ok(Text::from("a\u{FFFD}")));
    }
}
