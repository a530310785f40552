//! Converts values of row images and SELECT results exactly to the engine's values.
//!
//! | source                            | engine           | note                                  |
//! |-----------------------------------|------------------|---------------------------------------|
//! | TINYINT … BIGINT, UNSIGNED too    | Int, Uint (bits) | BOOL is TINYINT                       |
//! | DECIMAL(p,s)                      | Decimal(p,s)     |                                       |
//! | FLOAT, DOUBLE                     | Float, Double    | exact, whatever digits are declared   |
//! | BIT(n)                            | Uint(8 … 64)     | the number                            |
//! | YEAR                              | Uint(16)         | `0000` is 0                           |
//! | YEAR(2)                           | Uint(8)          | the two digits                        |
//! | DATE, TIME, DATETIME              | the same         | zero and partial dates as they are    |
//! | TIMESTAMP                         | Timestamp        | UTC; `0000-00-00 00:00:00` below all  |
//! | CHAR, VARCHAR, TEXT, of any set   | Text             | in UTF-8                              |
//! | MariaDB's JSON                    | Text             | it is LONGTEXT there                  |
//! | BINARY, VARBINARY, BLOB           | Bytes            | BINARY with its zeros                 |
//! | ENUM, SET                         | Text             | labels; ordered as text               |
//! | MySQL's JSON                      | Json             | the text that a SELECT prints         |
//! | GEOMETRY                          | Bytes            | SRID and WKB, as a SELECT gives       |
//! | VECTOR                            | Bytes            | 32-bit floats, little endian          |
//! | UUID, INET4, INET6                | Text             | as printed                            |
//!
//! COMPRESSED columns of MariaDB have their uncompressed values. Every other type is refused by name.

mod address;
mod cell;
mod compressed;
mod decimal;
mod json;
mod select;
mod temporal;

pub(crate) use cell::{Cell, CellLength};
pub(crate) use json::{Differences, updated_json_text};
pub use select::from_select;

use super::bytes::UnexpectedEnd;

/// Bytes that are not a value of their column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl From<UnexpectedEnd> for Malformed {
    fn from(_: UnexpectedEnd) -> Self {
        Self
    }
}
