//! A request for the words of a text as CALL KEYWORDS.

use super::{TableShape, quote};
use crate::sphinx::KeywordsRequest;

/// The statement that gives the words of a text, by those of this table.
pub fn keywords(request: &KeywordsRequest<'_>, shape: &TableShape) -> String {
    format!(
        "CALL KEYWORDS({}, {}, {})",
        quote::text(&request.text),
        quote::text(&shape.named()),
        u8::from(request.with_numbers)
    )
}
