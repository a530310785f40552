//! The parts that need TPC-C's tables: one source and one Remora that follows it.

use std::{path::Path, thread, time::Duration};

use anyhow::{Context, Result};
use mysql::prelude::Queryable;

use super::{
    Part, ReplicationOptions, backlog, conditions, cost, latency,
    latency::Probe,
    load::Load,
    remora::Remora,
    report::{Report, Target},
    source,
};
use crate::{
    suite::WorkDirectory,
    tpcc::{self, Scale},
};

/// TPC-C's tables and the probed one.
const TABLES: usize = 10;
/// Recorded binlogs to apply.
const RUNS: u32 = 3;
/// How long the load writes before latencies are measured.
const WARM_UP: Duration = Duration::from_secs(2);

/// Measures the selected parts.
pub fn measure(options: &ReplicationOptions, program: &Path, report: &mut Report) -> Result<()> {
    let share = |count: u32| (count * options.scale / 100).max(30);
    let scale = Scale { warehouses: 1, items: share(100_000), customers: share(3_000) };
    let load = Load { server: source::start(options.server)?, options, scale };
    eprintln!("loading TPC-C's tables");
    tpcc::load(&|| load.connect(), scale)?;
    load.connect()?.query_drop(latency::CREATE)?;
    let work = WorkDirectory::new()?;
    if [Part::Apply, Part::Latency, Part::Cost].iter().any(|&part| options.wants(part)) {
        eprintln!("copying TPC-C's tables");
        let mut remora = Remora::start(program, &work.path().join("follower"), &load.url())?;
        remora.wait_until_live(TABLES)?;
        remora.settle()?;
        following(&load, &mut remora, report)?;
    }
    if options.wants(Part::Conditions) {
        conditions::measure(&load, load.time(), &work.path().join("conditions"), report)?;
    }
    Ok(())
}

fn following(load: &Load<'_>, remora: &mut Remora, report: &mut Report) -> Result<()> {
    let options = load.options;
    if options.wants(Part::Apply) {
        apply(load, remora, report)?;
    }
    if options.wants(Part::Latency) {
        latencies(load, remora, report)?;
    }
    if options.wants(Part::Cost) {
        cost::measure(&load.server, remora, &|| load.write(load.time()), report)?;
    }
    Ok(())
}

/// Applies binlogs that were recorded while Remora did not follow.
fn apply(load: &Load<'_>, remora: &mut Remora, report: &mut Report) -> Result<()> {
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        eprintln!("recording TPC-C");
        let write = || load.write(load.time()).map(drop);
        runs.push(backlog::apply(remora, &load.server, write)?);
    }
    let target = Target::AtLeast(50_000.0);
    report.add(backlog::per_core("recorded TPC-C binlog", &runs, target));
    report.add(backlog::per_second("recorded TPC-C binlog, wall", &runs, Target::None));
    Ok(())
}

fn latencies(load: &Load<'_>, remora: &mut Remora, report: &mut Report) -> Result<()> {
    eprintln!("measuring latencies");
    let (mut source, mut client) = (load.connect()?, remora.connect()?);
    remora.settle()?;
    let (pause, look) = (Duration::from_millis(10), Duration::from_micros(50));
    let probe = Probe { time: load.time().min(Duration::from_secs(10)), pause, look };
    let waits = latency::measure(&mut source, &mut client, probe)?;
    let name = "commit to searchable, idle, p50";
    report.add(latency::figure(name, &waits, 50, Target::AtMost(1.5)));

    let (waits, rate) = thread::scope(|scope| {
        let writer = scope.spawn(|| load.write(load.time() + 2 * WARM_UP));
        thread::sleep(WARM_UP);
        let probe = Probe { time: load.time(), pause, look: 4 * look };
        let waits = latency::measure(&mut source, &mut client, probe);
        let rate = writer.join().ok().context("the writer panicked")??;
        Ok::<_, anyhow::Error>((waits?, rate))
    })?;
    let name = "commit to searchable under TPC-C, p99";
    let mut figure = latency::figure(name, &waits, 99, Target::AtMost(20.0));
    figure.note += &format!("; {rate:.0} transactions/min");
    report.add(figure);
    Ok(())
}
