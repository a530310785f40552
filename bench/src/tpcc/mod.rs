//! A TPC-C-like writer: nine tables, the five transactions in their mix, and the twelve consistency conditions between
//! the tables, which hold after every transaction. It writes to a real server; a follower that shows part of a
//! transaction breaks a condition.
//!
//! This is not a TPC-C result: there are no think times and nothing is audited.

mod conditions;
mod load;
mod reads;
mod schema;
pub mod state;
mod terminal;
mod transactions;
mod values;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use mysql::{Conn, prelude::Queryable};
use remora_peers::{Kind, Server};

use conditions::broken_conditions;
pub use load::load;
pub use reads::{ReadsOptions, reads};
use terminal::{Figures, Terminal};

/// The database of all tables.
pub const DATABASE: &str = "tpcc";
/// Districts per warehouse.
const DISTRICTS: u32 = 10;

/// The size of the data. TPC-C's own scale is 100,000 items and 3,000 customers per district.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u32,
    /// Items, and stock rows per warehouse.
    pub items: u32,
    /// Customers per district, and initial orders per district.
    pub customers: u32,
}

impl Scale {
    /// How many of a district's initial orders are delivered: the first 70 %.
    fn delivered(self) -> u32 {
        self.customers * 7 / 10
    }
}

/// Opens a connection to the server under load.
pub type Connect<'c> = &'c (dyn Fn() -> Result<Conn> + Sync);

/// Options of `tpcc`.
#[derive(clap::Args, Debug)]
pub struct TpccOptions {
    /// The server to start: MySQL or MariaDB and its version.
    #[arg(long, value_name = "NAME", default_value = "mariadb1011", value_parser = kind)]
    server: Kind,
    /// Number of warehouses.
    #[arg(long, default_value_t = 1)]
    warehouses: u32,
    /// Number of items. TPC-C has 100,000.
    #[arg(long, default_value_t = 100_000)]
    items: u32,
    /// Number of customers per district. TPC-C has 3,000.
    #[arg(long, default_value_t = 3_000)]
    customers: u32,
    /// Number of connections that write.
    #[arg(long, default_value_t = 1)]
    terminals: u32,
    /// Running time in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
}

/// The server of this name.
pub fn kind(name: &str) -> Result<Kind> {
    let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    known.with_context(|| format!("one of {}", Kind::ALL.map(Kind::name).join(", ")))
}

/// Starts a server, loads it, writes to it and checks the conditions before and after.
pub fn tpcc(options: &TpccOptions) -> Result<()> {
    options.server.fetch()?;
    let buffers = ["--innodb-buffer-pool-size=1G", "--sync-binlog=1"];
    let server = Server::start(options.server, &buffers)?;
    let connect = || connection(&server);
    let scale = Scale {
        warehouses: options.warehouses,
        items: options.items,
        customers: options.customers,
    };
    let begun = Instant::now();
    load(&connect, scale)?;
    println!("loaded in {:.1} s", begun.elapsed().as_secs_f64());
    check(&mut connect()?, true)?;
    let time = Duration::from_secs(options.seconds);
    println!("{}", write(&connect, scale, options.terminals, time)?);
    check(&mut connect()?, false)
}

fn check(connection: &mut Conn, fresh: bool) -> Result<()> {
    let broken = broken_conditions(connection, fresh)?;
    anyhow::ensure!(broken.is_empty(), "broken conditions and their rows: {broken:?}");
    println!("conditions hold");
    Ok(())
}

/// Writes from several terminals for this time.
pub fn write(
    connect: Connect<'_>,
    scale: Scale,
    terminals: u32,
    time: Duration,
) -> Result<Figures> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..terminals)
            .map(|number| {
                let stop = &stop;
                scope.spawn(move || Terminal::new(connect()?, scale, number)?.run(stop))
            })
            .collect();
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let mut all = Figures::default();
        for writer in writers {
            let figures = writer.join().map_err(|_| anyhow::anyhow!("a terminal panicked"))??;
            all.add(figures);
        }
        Ok(all)
    })
}

/// Connects as root to the database, which is created if it does not exist.
fn connection(server: &Server) -> Result<Conn> {
    let mut connection = server.connect()?;
    connection.query_drop(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))?;
    connection.query_drop(format!("USE {DATABASE}"))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_before_and_after_and_see_half_a_transaction() {
        let server = Server::start(Kind::MariaDb1011, &[]).unwrap();
        let connect = || connection(&server);
        let scale = Scale { warehouses: 1, items: 200, customers: 30 };
        load(&connect, scale).unwrap();
        let mut reader = connect().unwrap();
        assert_eq!(broken_conditions(&mut reader, true).unwrap(), []);
        let figures = write(&connect, scale, 2, Duration::from_secs(2)).unwrap();
        assert!(figures.committed() > 0);
        assert_eq!(broken_conditions(&mut reader, false).unwrap(), []);
        reader.query_drop("UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 3").unwrap();
        assert_eq!(broken_conditions(&mut reader, false).unwrap(), [(1, 1), (9, 1)]);
    }
}
