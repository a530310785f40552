//! What MySQL is: the tokens of its statements, its errors, its modes, its types, its character sets
//! and collations, its time zones.
//!
//! Knows neither tables nor sockets, and none of our other crates. Whoever reads MySQL's text or bytes
//! (SQL, the wire, a source's binlog) reads it by what stands here, so that all read it alike.

mod charset;
mod collation;
mod error;
mod field_type;
mod lex;
mod sql_mode;
mod zone;

pub use charset::Charset;
pub use collation::{
    CHARSETS, COLLATIONS, CharsetInfo, Collation, CollationInfo, charset_default,
    charset_of_collation,
};
pub use error::ErrorCode;
pub use field_type::FieldType;
pub use lex::{Comments, LexMode, Lexer, Token, TokenKind, Unterminated, tokens, unquoted};
pub use sql_mode::SqlMode;
pub use zone::{UnknownZone, Zone, moment_of_clock};
