//! The keywords of clauses.

use crate::line::token::Token;

/// Keywords that begin a clause.
pub(super) const KEYWORDS: [&str; 8] =
    ["AND", "NOT", "FILTER", "SORT", "LIMIT", "OFFSET", "HIGHLIGHT", "FUZZY"];

/// Those that only Remora has.
const REMORA_KEYWORDS: [&str; 3] = ["FIELDS", "AFTER", "CURSOR"];

/// Whether the token begins a clause. `strict`: of MygramDB's dialect.
pub(super) fn begins_clause(token: &Token, strict: bool) -> bool {
    token.is_any(&KEYWORDS) || (!strict && token.is_any(&REMORA_KEYWORDS))
}
