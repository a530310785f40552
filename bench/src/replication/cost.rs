//! How much TPC-C on the source slows down with Remora attached, compared with an ordinary replica.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use mysql::prelude::Queryable;
use remora_peers::{Kind, Server, replicate};

use super::{
    remora::{Remora, add, spent_between},
    report::{Figure, Report, Spread, Target},
    source,
};
use crate::measure::MeasuredProcess;

/// Measurements with each of them.
const ROUNDS: usize = 3;
/// The longest wait for the replica to have applied everything.
const MAX_WAIT: Duration = Duration::from_secs(1_200);

/// Measures with Remora and with the replica by turns. `write` runs TPC-C and returns the transactions per minute.
pub fn measure(
    server: &Server,
    remora: &mut Remora,
    write: &dyn Fn() -> Result<f64>,
    report: &mut Report,
) -> Result<()> {
    eprintln!("making a replica");
    let replica = Replica::of(server)?;
    replica.catch_up(server)?;
    let (mut ours, mut theirs) = (Attached::default(), Attached::default());
    let (mut threads, begun) = (Vec::new(), Instant::now());
    for _ in 0..ROUNDS {
        replica.stop()?;
        remora.follow_if_stopped()?;
        remora.wait_for(&source::position(server)?)?;
        remora.settle()?;
        let before = remora.threads()?;
        ours.write(remora.processor(), write)?;
        add(&mut threads, spent_between(&before, &remora.threads()?));
        remora.wait_for(&source::position(server)?)?;
        remora.stop_following()?;

        replica.start()?;
        replica.catch_up(server)?;
        theirs.write(replica.processor(), write)?;
    }
    remora.follow_if_stopped()?;
    let ratios = ours.rates.iter().zip(&theirs.rates).map(|(ours, theirs)| 100.0 * ours / theirs);
    let ratios = Spread::of(ratios.collect());
    report.add(theirs.figure("TPC-C with a replica"));
    report.add(Figure { threads, ..ours.figure("TPC-C with Remora") });
    report.add(Figure {
        wall_s: begun.elapsed().as_secs_f64(),
        note: "Remora to replica, in pairs".to_owned(),
        ..Figure::new("the two as a ratio", "%", ratios, Target::AtLeast(95.0))
    });
    Ok(())
}

/// The figures with one of them attached.
#[derive(Default)]
struct Attached {
    /// Transactions per minute.
    rates: Vec<f64>,
    /// CPU time of the attached process, in seconds.
    cpu_s: f64,
}

impl Attached {
    fn write(&mut self, follower: MeasuredProcess, write: &dyn Fn() -> Result<f64>) -> Result<()> {
        let before = follower.whole().unwrap_or_default();
        self.rates.push(write()?);
        let after = follower.whole().unwrap_or_default();
        self.cpu_s += after.saturating_sub(before).as_secs_f64();
        Ok(())
    }

    fn figure(self, name: &str) -> Figure {
        let rates = Spread::of(self.rates);
        Figure {
            cpu_s: Some(self.cpu_s),
            note: "cpu s of what is attached".to_owned(),
            ..Figure::new(name, "transactions/min", rates, Target::None)
        }
    }
}

/// An ordinary replica.
struct Replica {
    server: Server,
}

impl Replica {
    fn of(source: &Server) -> Result<Self> {
        let server = source::start_replica(source.kind())?;
        replicate(source, &server)?;
        Ok(Self { server })
    }

    fn processor(&self) -> MeasuredProcess {
        self.server.process_id().map_or(MeasuredProcess::Unknown, MeasuredProcess::Of)
    }

    fn start(&self) -> Result<()> {
        self.run(match self.server.kind() {
            Kind::MySql97 => "START REPLICA",
            _ => "START SLAVE",
        })
    }

    fn stop(&self) -> Result<()> {
        self.run(match self.server.kind() {
            Kind::MySql97 => "STOP REPLICA",
            _ => "STOP SLAVE",
        })
    }

    fn run(&self, sql: &str) -> Result<()> {
        Ok(self.server.connect()?.query_drop(sql)?)
    }

    /// Waits until the replica has applied everything that the source has committed.
    fn catch_up(&self, source: &Server) -> Result<()> {
        let wanted = source::position(source)?;
        let sql = match self.server.kind().is_mariadb() {
            true => format!("SELECT MASTER_GTID_WAIT('{wanted}', 0.2)"),
            false => format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{wanted}', 0.2)"),
        };
        let mut connection = self.server.connect()?;
        let begun = Instant::now();
        while connection.query_first::<i64, _>(&sql)? != Some(0) {
            if begun.elapsed() > MAX_WAIT {
                bail!("the replica does not reach {wanted}");
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}
