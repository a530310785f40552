//! MySQL's client and server protocol, without sockets.
//!
//! The bytes of a connection become messages (`packet`, and `compress` if the client requested it).
//! It begins with `handshake` and `auth`. Then each message is a `command`; those that execute
//! prepared statements have `parameters`. The results go through `results` to `column`, `text` and
//! `binary` rows and end in an `outcome` or an `error`. `client` is the client's side, by which a
//! server queries another.

pub mod auth;
mod binary;
pub mod client;
mod column;
mod command;
pub mod compress;
mod encode;
mod error;
pub mod handshake;
mod outcome;
mod packet;
mod parameters;
mod results;
mod text;

pub use command::Command;
pub use error::WireError;
pub use mysql_common::constants::StatusFlags;
pub use outcome::{SessionChange, flags_of, put_early_error, put_end_of_rows, put_error, put_ok};
pub use packet::{Message, PacketError, PacketReader, PacketWriter};
pub use parameters::{ParameterType, Parameters};
pub use results::{Cursor, Results, RowFormat, put_field_list, put_file_request, put_prepared};
pub use text::{put_double, put_float};
