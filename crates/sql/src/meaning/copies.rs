//! Limits on expressions that are written once but planned several times: `a BETWEEN b AND c`
//! compares `a` twice, and nested copies double with each level. Volatile expressions such as
//! RAND() are never copied; a function takes them as an argument instead. The same is done for
//! expressions that are too large, where such a function exists.

use remora_mysql::ErrorCode;

use crate::Error;

/// The most nodes of all copies of an expression together.
const MOST_NODES: usize = 200_000;
/// The most nodes of an expression that is copied.
const LARGEST: usize = 500;

/// The most nodes of an expression that is copied this many times.
pub(super) fn nodes_allowed(copies: usize) -> usize {
    LARGEST.min(MOST_NODES / copies.max(1))
}

/// 1038: the expression is too large to be copied.
pub(super) fn too_large() -> Error {
    Error::new(ErrorCode::OutOfMemory, "The statement compares too large an expression too often")
}
