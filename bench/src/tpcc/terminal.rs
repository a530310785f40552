//! A connection that runs transactions in their mix, and its statistics.

use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use anyhow::Result;
use mysql::{Conn, prelude::Queryable};

use super::{Scale, transactions, values::Values};

/// Errors after which a transaction is retried: deadlock and lock wait timeout.
const AGAIN: [u16; 2] = [1213, 1205];

/// The five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// In the order of [`Figures::kinds`], each with its share in per cent.
const MIX: [(Transaction, u32); 5] = [
    (Transaction::NewOrder, 45),
    (Transaction::Payment, 43),
    (Transaction::OrderStatus, 4),
    (Transaction::Delivery, 4),
    (Transaction::StockLevel, 4),
];

/// Statistics of terminals.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Running time.
    pub time: Duration,
    /// Latencies by transaction, in the order of the mix.
    pub kinds: [Vec<Duration>; 5],
    /// Orders of an item that does not exist, which must be rolled back.
    pub rolled_back: u64,
    /// Retries after a deadlock or lock wait timeout.
    pub again: u64,
}

impl Figures {
    /// Adds the statistics of another terminal that ran at the same time.
    pub fn add(&mut self, other: Self) {
        self.time = self.time.max(other.time);
        for (mine, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            mine.extend(theirs);
        }
        self.rolled_back += other.rolled_back;
        self.again += other.again;
    }

    /// Transactions that were not rolled back.
    pub fn committed(&self) -> u64 {
        self.kinds.iter().map(|times| times.len() as u64).sum::<u64>() - self.rolled_back
    }

    fn per_minute(&self, count: usize) -> f64 {
        count as f64 * 60.0 / self.time.as_secs_f64()
    }
}

/// New orders and all transactions per minute, and the latencies of each kind.
impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.kinds.iter().map(Vec::len).sum();
        writeln!(
            out,
            "{:.0} new orders and {:.0} transactions a minute; {} committed, {} rolled back, \
             {} run again",
            self.per_minute(self.kinds[0].len()),
            self.per_minute(all),
            self.committed(),
            self.rolled_back,
            self.again
        )?;
        for ((kind, _), times) in MIX.iter().zip(&self.kinds) {
            let mut times = times.clone();
            times.sort();
            let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
            writeln!(out, "  {kind:?}: {} runs, p50 {:?}, p99 {:?}", times.len(), at(50), at(99))?;
        }
        Ok(())
    }
}

/// A terminal of one warehouse.
pub struct Terminal {
    pub connection: Conn,
    pub values: Values,
    pub scale: Scale,
    pub warehouse: u32,
}

impl Terminal {
    /// The terminal with this number, from 0.
    pub fn new(mut connection: Conn, scale: Scale, number: u32) -> Result<Self> {
        connection.query_drop("SET autocommit = 0")?;
        let values = Values::new(u64::from(number) + 1_000);
        Ok(Self { connection, values, scale, warehouse: number % scale.warehouses + 1 })
    }

    /// Runs transactions until `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<Figures> {
        let mut figures = Figures::default();
        let begun = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let kind = self.next_kind();
            let start = Instant::now();
            match transactions::run(self, MIX[kind].0) {
                Ok(committed) => {
                    figures.rolled_back += u64::from(!committed);
                    figures.kinds[kind].push(start.elapsed());
                }
                Err(mysql::Error::MySqlError(error)) if AGAIN.contains(&error.code) => {
                    figures.again += 1;
                    self.connection.query_drop("ROLLBACK")?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        figures.time = begun.elapsed();
        Ok(figures)
    }

    fn next_kind(&mut self) -> usize {
        let mut drawn = self.values.between(1, 100);
        for (place, (_, share)) in MIX.iter().enumerate() {
            if drawn <= *share {
                return place;
            }
            drawn -= share;
        }
        0
    }
}
