//! Converts a request for the words of a text to CALL KEYWORDS.

use super::{TableShape, quote};
use crate::sphinx::KeywordsRequest;

/// The statement that splits a text into words, by the settings of this table.
pub fn keywords(request: &KeywordsRequest<'_>, shape: &TableShape) -> String {
    format!(
        "CALL KEYWORDS({}, {}, {})",
        quote::text(&request.text),
        quote::text(&shape.named()),
        u8::from(request.with_numbers)
    )
}
