//! SEARCH while rows are written: 2,000 batches of one row per second, each durable when it is acknowledged. That rate
//! needs several batches in flight at once, as from a client that does not wait for each acknowledgement.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::Engine;
use crate::{
    corpus::Corpus,
    measure::{Timing, timing},
    queries::Query,
    report::UnderWrites,
};

/// Batches per second in all.
const RATE: u32 = 2_000;
/// Batches in flight at once.
const WRITERS: u32 = 8;
/// The duration of each of the two measurements.
const TIME: Duration = Duration::from_secs(5);

/// Measures SEARCH of these queries in turn, idle and under writes. Adds rows to the table.
pub fn under_writes(engine: &Engine, corpus: &Corpus, queries: &[&Query]) -> Result<UnderWrites> {
    engine.settle()?;
    let idle = searches(engine, queries)?;
    let stop = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let write = || writer(engine, corpus, &next, &written, &stop);
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
        let start = Instant::now();
        let writing = searches(engine, queries);
        let batches_per_second =
            written.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            match writer.join() {
                Ok(result) => result?,
                Err(_) => bail!("a writer ended early"),
            }
        }
        Ok(UnderWrites { idle, writing: writing?, batches_per_second })
    })
}

/// Writes one row at a time under new ids, no faster than the rate.
fn writer(
    engine: &Engine,
    corpus: &Corpus,
    next: &AtomicU64,
    written: &AtomicU64,
    stop: &AtomicBool,
) -> Result<()> {
    let first_id = corpus.documents.last().map_or(1, |document| document.id + 1);
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let due = start + Duration::from_secs(1) / RATE * number as u32;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let document = &corpus.documents[number as usize % corpus.documents.len()];
        engine.apply(std::iter::once((document, first_id + number)))?;
        written.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn searches(engine: &Engine, queries: &[&Query]) -> Result<Timing> {
    let mut walls = Vec::new();
    let start = Instant::now();
    while start.elapsed() < TIME {
        for query in queries {
            let start = Instant::now();
            std::hint::black_box(engine.search(&query.expression)?);
            walls.push(start.elapsed());
        }
    }
    Ok(timing(&mut walls))
}
