//! COMPRESSED columns of MariaDB.
//!
//! ```text
//! value  := nothing                        the empty value
//!         | 0x00 byte*                     as it is
//!         | head length deflated           head: 0x80 | 8 without a zlib frame | bytes of length
//! length := of the value, big endian
//! ```

use std::{borrow::Cow, io::Read};

use flate2::read::{DeflateDecoder, ZlibDecoder};

use super::Malformed;

/// The most bytes of a LONGBLOB.
const MAX_BYTES: u64 = u32::MAX as u64;
/// The most memory that is reserved before anything is decompressed.
const MAX_RESERVED: u64 = 1 << 24;

/// Decompresses a value.
pub(super) fn decompress(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let Some((&head, rest)) = bytes.split_first() else { return Ok(Cow::Borrowed(bytes)) };
    if head == 0 {
        return Ok(Cow::Borrowed(rest));
    }
    let (length, deflated) = rest.split_at_checked(usize::from(head & 7)).ok_or(Malformed)?;
    let length = length.iter().fold(0, |length, &byte| length << 8 | u64::from(byte));
    if head & 0xf0 != 0x80 || length > MAX_BYTES {
        return Err(Malformed);
    }
    let mut value = Vec::with_capacity(length.min(MAX_RESERVED) as usize);
    // One byte more than expected, so that a longer value is noticed.
    let read = match head & 8 {
        0 => ZlibDecoder::new(deflated).take(length + 1).read_to_end(&mut value),
        _ => DeflateDecoder::new(deflated).take(length + 1).read_to_end(&mut value),
    };
    let whole = read.is_ok() && value.len() as u64 == length;
    whole.then_some(Cow::Owned(value)).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::ZlibEncoder};

    use super::*;

    #[test]
    fn compressed_values_round_trip_and_damage_is_detected() {
        let mut encoder = ZlibEncoder::new(vec![0x82, 1, 0x2c], Compression::default());
        encoder.write_all(&[7; 300]).unwrap();
        let stored = encoder.finish().unwrap();
        assert_eq!(decompress(&stored).unwrap().as_ref(), &[7; 300]);
        assert_eq!(decompress(b"\0ab").unwrap().as_ref(), b"ab");
        assert_eq!(decompress(b"").unwrap().as_ref(), b"");
        for cut in 1..stored.len() - 4 {
            assert!(decompress(&stored[..cut]).is_err(), "{cut}");
        }
        let mut longer = stored.clone();
        longer[2] = 0x2b;
        assert!(decompress(&longer).is_err());
        assert!(decompress(b"\x81").is_err());
        assert!(decompress(b"\x10abc").is_err());
    }
}
