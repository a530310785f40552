//! TPC-C as the load of a source.

use std::time::Duration;

use anyhow::Result;
use mysql::Conn;
use remora_peers::Server;

use super::{ReplicationOptions, source};
use crate::tpcc::{self, Scale};

/// A server with TPC-C's tables.
pub struct Load<'o> {
    pub server: Server,
    pub options: &'o ReplicationOptions,
    pub scale: Scale,
}

impl Load<'_> {
    /// Connects to TPC-C's database.
    pub fn connect(&self) -> Result<Conn> {
        source::connect(&self.server, tpcc::DATABASE)
    }

    /// The source's URL for a follower.
    pub fn url(&self) -> String {
        self.server.follower_url(tpcc::DATABASE)
    }

    /// Runs TPC-C for this time; returns the transactions per minute.
    pub fn write(&self, time: Duration) -> Result<f64> {
        let connect = || self.connect();
        let figures = tpcc::write(&connect, self.scale, self.options.terminals, time)?;
        Ok(figures.committed() as f64 * 60.0 / figures.time.as_secs_f64())
    }

    /// How long a part writes.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.options.seconds)
    }
}
