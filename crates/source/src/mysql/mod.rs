//! A MySQL or MariaDB as the source of changes: its tables are copied without a lock and its binlog
//! is followed, exactly.
//!
//! [`Follower`] is what a program needs: it connects ([`settings`], [`connection`]), checks what
//! the source must be set up for ([`requirements`]), reads its tables ([`schema`]), copies them,
//! and applies its transactions ([`binlog`], [`gtid`], [`values`]), each whole and once, at a
//! position that is stored with the rows.

pub mod binlog;
pub mod bytes;
mod client_error;
pub mod connection;
pub mod coordinates;
mod copy;
mod follow;
pub mod gtid;
pub mod requirements;
mod scan;
pub mod schema;
pub mod settings;
mod statement;
mod table_name;
mod type_code;
pub mod values;

pub use follow::{
    Copied, Follower, FollowerStatus, State, TableState, TableStatus, followed_server,
    followed_tables,
};
pub use settings::MysqlSettings;
