//! A request for the words of a text as CALL KEYWORDS.

use super::quote;
use crate::sphinx::KeywordsRequest;

/// The statement that gives the words of a text.
pub fn keywords(request: &KeywordsRequest<'_>) -> String {
    format!(
        "CALL KEYWORDS({}, {}, {})",
        quote::text(&request.text),
        quote::text(&request.index),
        u8::from(request.with_numbers)
    )
}
