//! Facts about MySQL: the statements of a text and their tokens, its errors and their texts, modes, types, character sets and
//! collations, time zones.
//!
//! It knows no tables and no sockets, and imports none of our other crates. The SQL crate, the protocol and the binlog
//! reader use it, so that all of them read MySQL's text and bytes alike.

mod block_mode;
mod charset;
mod collation;
mod error;
mod field_type;
mod lex;
pub mod messages;
pub mod sort_key;
mod split;
mod sql_mode;
mod zone;

pub use block_mode::{BlockMode, Chaining};
pub use charset::Charset;
pub use collation::{
    CHARSETS, COLLATIONS, CharsetInfo, Collation, CollationInfo, charset_default,
    charset_of_collation,
};
pub use error::ErrorCode;
pub use field_type::FieldType;
pub use lex::{Comments, LexMode, Lexer, Token, TokenKind, Unterminated, tokens, unquoted};
pub use split::{StatementTokens, split};
pub use sql_mode::SqlMode;
pub use zone::{UnknownZone, Zone, moment_of_clock};
