//! Posting lists: for each term the documents that contain it, the frequencies and the positions.
//!
//! ```text
//! record    := small                   when df < 128, see `small`
//!            | 0:u8 varint(df) large
//! large     := form:u8 docs_bytes:u32 positions_start:u32 positions_bytes:u32
//!              skip{blocks} [ranks words] docs       blocks = ceil(df / 128)
//! form      := 0 (list) | 1 (bits)     bits where more than one in 16 documents holds the term
//! skip      := last_doc:u32 docs_offset:u32 positions_offset:u32 max_tf:u8 min_length:u8
//! ranks     := u32{ceil(documents / 512)}   documents with the term before each 512
//! words     := u64{ceil(documents / 64)}
//! docs      := for each 128 postings: [width:u8 packed gaps (list form)] frequencies, see `packing`
//!              the last, if shorter: [varint(gap){n} (list form)] varint(tf - 1){n}
//! ```
//! The positions of terms in 16 or more documents are in a separate section, because they are most of the
//! bytes and only phrases need them. A segment opened from a file leaves that section in the file.
//! ```text
//! TPOS      := (positions | places){records}     places: those of small records, see `small`
//! positions := for each 128 postings: width:u8{chunks} packed{chunks}
//!                                      chunks of 128 places, the last of a block shorter
//! ```
//! `max_tf` (255 means 255 or more) and `min_length` (see [`length_code`]) give an upper bound of a block's
//! score for ranked search. Offsets are relative to the start of the docs or of the term's positions.

mod bits;
mod cursor;
mod decoded;
pub(crate) mod packing;
mod places;
mod reader;
mod small;
mod writer;

pub(crate) use bits::{BitReader, BitWriter, best_rice};
pub(crate) use cursor::PostingsCursor;
pub(crate) use decoded::Decoded;
pub(crate) use reader::{Postings, positions};
pub(crate) use writer::PostingsWriter;

/// Bytes of one skip entry.
const SKIP_BYTES: usize = 14;
/// A term in more than one in this many documents is stored as a bitmap.
const BITS_THRESHOLD: u32 = 16;
/// Documents between two ranks.
const RANK_DOCS: usize = 512;

/// Whether a term in `df` of `doc_count` documents is stored as a bitmap.
pub(crate) fn is_bits(df: usize, doc_count: u32) -> bool {
    df >= packing::BLOCK && df as u32 > doc_count / BITS_THRESHOLD
}

/// A document length in one byte, rounded down: exact to 15, then 16 steps for each doubling.
pub(crate) fn length_code(length: u32) -> u8 {
    if length < 16 {
        return length as u8;
    }
    let exponent = 31 - length.leading_zeros();
    let code = (exponent - 3) * 16 + (length >> (exponent - 4)) % 16;
    code.min(255) as u8
}

/// The smallest length with this code.
#[cfg(test)]
pub(crate) fn length_from_code(code: u8) -> u32 {
    let (exponent, mantissa) = (u32::from(code) / 16, u32::from(code) % 16);
    if exponent == 0 { mantissa } else { (16 + mantissa) << (exponent - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_code_never_exceeds_the_length() {
        let mut last = 0;
        for length in (0..5000).chain([65_535, 65_536, 100_000, 200_000]) {
            let code = length_code(length);
            assert!(code >= last && length_from_code(code) <= length, "{length}");
            assert!(length_from_code(code) as f64 >= f64::from(length) * 0.93 - 1.0, "{length}");
            last = code;
        }
    }
}
