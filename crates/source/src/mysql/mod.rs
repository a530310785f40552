//! Follows a MySQL or MariaDB exactly: copies its tables without a lock and applies its binlog.
//!
//! A program uses [`Follower`]: it connects ([`settings`], [`connection`]), checks the source's configuration
//! ([`requirements`]), reads its tables ([`schema`]), copies them, and applies its transactions ([`binlog`], [`gtid`],
//! [`values`]), each atomically and once. The position is stored with the rows.
//!
//! Imports go one way, from the last of these to the first:
//! - [`settings`], [`gtid`], [`coordinates`], [`bytes`], `table_name`, `quote`, `scan`: what
//!   the others read, each by itself;
//! - [`connection`], `client_error`: how the source is asked, and what its errors mean;
//! - [`schema`], [`values`]: its tables, and their values here;
//! - [`binlog`], `statement`, [`schema_change`]: its events, what its statements do to tables, and
//!   what that means for stored rows;
//! - [`requirements`]: whether it can be followed;
//! - `inbox`: what waits for the applier, from the stream and from copies;
//! - `copy`: how tables are read; `follow`: the session, the applier and what is written.

pub mod binlog;
pub mod bytes;
mod client_error;
pub mod connection;
pub mod coordinates;
mod copy;
mod follow;
pub mod gtid;
mod inbox;
mod quote;
pub mod requirements;
mod scan;
pub mod schema;
pub mod schema_change;
pub mod settings;
mod statement;
mod table_name;
pub mod values;

pub use follow::{
    Copied, Follower, FollowerStatus, SCHEMA_INCOMPATIBLE, State, TableState, TableStatus,
    followed_server, followed_tables,
};
pub use settings::MysqlSettings;
