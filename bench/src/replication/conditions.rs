//! TPC-C's conditions at positions that readers see: while a recorded load is applied, and while TPC-C writes. The
//! engine runs in this process, because all tables must be read in one snapshot.

use std::{
    collections::BTreeSet,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use remora_engine::{ColumnData, ColumnValues, Database, Options, Reader, ScanRequest};
use remora_source::mysql::{
    Follower, TableState,
    gtid::{Flavor, GtidSet},
    settings::MysqlSettings,
};

use super::{
    load::Load,
    report::{Figure, Report, Spread, Target},
    source,
};
use crate::tpcc::{
    DATABASE,
    state::{COLUMNS, Numbers, State},
};

/// Rows of one batch of a scan.
const BATCH_ROWS: usize = 8_192;
/// The longest wait for a copy or a position.
const MAX_WAIT: Duration = Duration::from_secs(1_200);
/// Polling interval where no time is measured.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The positions that were checked, and the first violation.
#[derive(Default)]
struct CheckedPositions {
    positions: BTreeSet<String>,
    wrong: Option<String>,
}

/// Checks the conditions while a recorded load is applied and while one is written, each for about `time`.
pub fn measure(
    load: &Load<'_>,
    time: Duration,
    directory: &Path,
    report: &mut Report,
) -> Result<()> {
    eprintln!("looking at TPC-C's conditions");
    let database = Database::open(directory, Options::default())?;
    let settings = MysqlSettings::from_url(&load.url())?;
    let name = settings.name.clone();
    let follower = Follower::start(database.clone(), settings)?;
    wait_until_live(&follower)?;
    follower.stop()?;
    load.write(time)?;
    let begun = Instant::now();
    let mut seen = CheckedPositions::default();
    follower.resume()?;
    let end = position(load)?;
    while follower.wait_for(&end, Duration::ZERO).is_err() {
        seen.look(&database.reader(), &name)?;
        if begun.elapsed() > MAX_WAIT {
            bail!("the load is not applied: {:?}", follower.status());
        }
    }
    let replayed = seen.positions.len();
    thread::scope(|scope| {
        let writer = scope.spawn(|| load.write(time));
        while !writer.is_finished() {
            seen.look(&database.reader(), &name)?;
        }
        writer.join().ok().context("the writer panicked")?
    })?;
    follower.wait_for(&position(load)?, MAX_WAIT)?;
    seen.look(&database.reader(), &name)?;
    follower.close();
    database.close()?;
    let live = seen.positions.len() - replayed;
    report.add(Figure {
        wall_s: begun.elapsed().as_secs_f64(),
        note: format!("{replayed} while a recorded load was applied, {live} while it was written"),
        wrong: seen.wrong,
        ..Figure::new(
            "TPC-C's conditions 1-10 and 12 hold",
            "positions",
            Spread::single((replayed + live) as f64),
            Target::None,
        )
    });
    Ok(())
}

impl CheckedPositions {
    /// Checks a snapshot of all tables, unless its position was checked before.
    fn look(&mut self, reader: &Reader, source: &str) -> Result<()> {
        let at = reader.sources().get(source).unwrap_or_default().to_owned();
        if self.positions.contains(&at) {
            thread::sleep(Duration::from_millis(1));
            return Ok(());
        }
        let broken = state(reader)?.broken_conditions();
        if !broken.is_empty() && self.wrong.is_none() {
            self.wrong = Some(format!("broken conditions and their rows at {at}: {broken:?}"));
        }
        self.positions.insert(at);
        Ok(())
    }
}

/// The columns that the conditions need, from the reader's snapshot.
fn state(reader: &Reader) -> Result<State> {
    let mut tables: [Numbers; 7] = Default::default();
    for (numbers, (table, names)) in tables.iter_mut().zip(COLUMNS) {
        let table = format!("{DATABASE}.{table}");
        let schema = reader.schema(&table)?;
        let place = |name: &&str| {
            let place = schema.columns.iter().position(|column| column.name == *name);
            place.with_context(|| format!("no column {name} in {table}"))
        };
        let columns = names.iter().map(place).collect::<Result<Vec<_>>>()?;
        numbers.0 = vec![Vec::new(); columns.len()];
        let scan = reader.scan(ScanRequest {
            table: table.clone(),
            columns,
            batch_rows: BATCH_ROWS,
            ..ScanRequest::default()
        })?;
        for batch in scan {
            let batch = batch?;
            for (into, column) in numbers.0.iter_mut().zip(&batch.columns) {
                append(into, column, batch.rows)?;
            }
        }
    }
    Ok(State::new(tables))
}

fn append(into: &mut Vec<Option<i64>>, column: &ColumnValues, rows: usize) -> Result<()> {
    let is_valid = |row| column.valid.as_ref().is_none_or(|valid| valid.contains(row));
    let mut extend = |number: &dyn Fn(usize) -> Option<i64>| {
        into.extend((0..rows).map(|row| if is_valid(row) { number(row) } else { None }));
    };
    match &column.data {
        ColumnData::Int(values) | ColumnData::Timestamp(values) => {
            extend(&|row| values.get(row).copied());
        }
        ColumnData::Decimal { unscaled, .. } => {
            extend(&|row| i64::try_from(*unscaled.get(row)?).ok());
        }
        other => bail!("TPC-C has no such column: {other:?}"),
    }
    Ok(())
}

fn wait_until_live(follower: &Follower) -> Result<()> {
    let begun = Instant::now();
    loop {
        let status = follower.status();
        let mut states = status.tables.iter().map(|table| &table.state);
        if status.tables.len() >= COLUMNS.len() && states.all(|state| *state == TableState::Live) {
            return Ok(());
        }
        if begun.elapsed() > MAX_WAIT {
            bail!("the tables are not copied: {status:?}");
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn position(load: &Load<'_>) -> Result<GtidSet> {
    let flavor = if load.server.kind().is_mariadb() { Flavor::MariaDb } else { Flavor::MySql };
    Ok(GtidSet::parse_as(flavor, &source::position(&load.server)?)?)
}
