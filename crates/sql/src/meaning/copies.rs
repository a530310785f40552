//! Limits on expressions that are written once and planned several times: `a BETWEEN b AND c` compares `a` twice.
//! Nested, the copies double with each level. An expression with another value each time, such as RAND(), is not
//! copied: a function takes it once. So does a function for an expression that is too large, if there is such a
//! function.

use remora_mysql::ErrorCode;

use crate::Error;

/// Most nodes of all copies together.
const MOST_NODES: usize = 200_000;
/// Most nodes of what is copied at all.
const LARGEST: usize = 500;

/// How many nodes an expression may have that stands so many times in the place of one.
pub(super) fn nodes_allowed(copies: usize) -> usize {
    LARGEST.min(MOST_NODES / copies.max(1))
}

/// 1038 for one that has more.
pub(super) fn too_large() -> Error {
    Error::new(ErrorCode::OutOfMemory, "The statement compares too large an expression too often")
}
